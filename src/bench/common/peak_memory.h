/* The most memory that this process has had. */
#ifndef KVIST_BENCH_PEAK_MEMORY_H
#define KVIST_BENCH_PEAK_MEMORY_H

void bench_forget_peak(void); /* counts from here on; where the kernel does not do that it is the process's */
double bench_peak_mb(void);

#endif
