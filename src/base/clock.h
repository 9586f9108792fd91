/* Times: for measuring, for a log, and what a thread itself computed. */
#ifndef KVIST_BASE_CLOCK_H
#define KVIST_BASE_CLOCK_H

#include <stdint.h>

uint64_t base_clock_ns(void);     /* monotonic */
int64_t base_clock_wall_ms(void); /* since 1970, UTC */
uint64_t base_clock_cpu_ns(void); /* CPU time of the calling thread */

#endif
