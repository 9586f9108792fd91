/*
 * What `kvist-bench long --out FILE` wrote, as tables: every arm over the sessions that all arms finished, and
 * each against the full cache, by session.
 */
#ifndef KVIST_BENCH_LONG_RESULT_H
#define KVIST_BENCH_LONG_RESULT_H

#include <stdint.h>
#include <stdio.h>

#include "base/buf.h"
#include "base/err.h"

/* How far a session came under an arm: its next step, 0 at first; *ret_id (heap): the agent's session. */
uint32_t long_result_next(
    const base_buf *lines, const char *model, const char *session, const char *arm, char **ret_id);

/* Lines that are none of the bench's are passed over. */
void long_summarise(const base_buf *lines, FILE *to);

#endif
