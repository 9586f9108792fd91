/*
 * What is skipped: the layers above a cut, for rows of fresh bulk that nobody asks for (docs/kv.md, Pruned
 * prefill; StructKV). prune.c chooses, plan/deferred.c computes.
 */
#ifndef KVIST_KV_PRUNE_H
#define KVIST_KV_PRUNE_H

#include "kv/core/state.h"

/*
 * prune.c: the layer at which this segment's prefill is cut, 0: none; whether its rows may stay below the
 * cut; whether the segment, now complete, is one that asks.
 */
uint32_t kv__prune_cut(const kv_session *s, const kv_segment *g, uint32_t n, bool wants_logits);
bool kv__is_bulk(const kv_session *s, const kv_segment *g, uint32_t n);
bool kv__may_settle(const kv_session *s, const kv_segment *g);
/* Chooses among what is pending by a plan, computes it; and what is due once such a plan is applied. */
int kv__settle(kv_session *s, const atomic_bool *cancel, base_err *err);
int kv__settled(kv_session *s, base_err *err);

/* pivot_detect.c: finds the pivot and writes its file; the same at a model's first bulk. */
int kv__detect_pivot(kv_session *s, const atomic_bool *cancel, base_err *err);
int kv__detect_when_due(kv_session *s, const kv_segment *g, const atomic_bool *cancel, base_err *err);

#endif
