/*
 * The prefill of one text, computed once for all sessions that begin with it: a compute that keeps each
 * batch's rows, and its hidden states at the layers named, and copies them where another session would
 * compute the same. A session that cuts its prefill at one of those layers then costs what goes above the cut
 * alone, and nothing for batches that go above it whole where an uncut session went before. The bits are the model's own (a batch is computed in the same steps that a cut one is), so nothing
 * that is found can differ; only times say nothing any more.
 *
 * For experiments: one thread, and sessions over one text at a time.
 */
#ifndef KVIST_BENCH_SHARE_H
#define KVIST_BENCH_SHARE_H

#include "kv/core/compute.h"

enum { BENCH_SHARE_CUTS = 32 };

typedef struct bench_share bench_share;

/* cuts: the layers before which sessions will cut, in any order, twice if need be. */
bench_share *bench_share_new(model *m, const uint32_t *cuts, size_t n);
void bench_share_free(bench_share *s);
/* For kv_session_new_over; s lives as long as the sessions over it. */
kv_compute bench_share_compute(bench_share *s);
/*
 * Between on and off, batches without logits are kept and found; off: they are computed as ever, but for what goes
 * above a cut. Another text: forget first.
 */
void bench_share_keep(bench_share *s, bool on);
void bench_share_forget(bench_share *s);

#endif
