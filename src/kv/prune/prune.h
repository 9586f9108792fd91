/*
 * What is skipped: a long text that was just put into the session (fresh bulk) goes through the lower layers only,
 * up to a cut. Which of its rows the upper layers are computed for is chosen once somebody asks about it; the others
 * are deferred, and computed if they are ever wanted (docs/kv.md, Pruned prefill; StructKV). prune.c chooses,
 * plan/deferred.c computes.
 */
#ifndef KVIST_KV_PRUNE_H
#define KVIST_KV_PRUNE_H

#include "kv/core/state.h"

/* ---- prune.c ---- */

/* The layer at which the prefill of this segment of n tokens is cut; 0: it is not. */
uint32_t kv__prune_cut(const kv_session *s, const kv_segment *g, uint32_t n, bool wants_logits);
/* May rows of this segment stay below the cut? */
bool kv__is_bulk(const kv_session *s, const kv_segment *g, uint32_t n);
/* Is this complete segment a question, so that what is pending can be chosen by it? */
bool kv__may_settle(const kv_session *s, const kv_segment *g);
/* Chooses among what is pending, and computes what was chosen, as one plan. */
int kv__settle(kv_session *s, const atomic_bool *cancel, base_err *err);
/* What is due once such a plan is applied: the message that waited becomes the newest signal. */
int kv__settled(kv_session *s, base_err *err);

/* ---- pivot_detect.c: the pivot, the layer where a model's prefill is cut ---- */

/* Measures it on this session's rows and writes its file. */
int kv__detect_pivot(kv_session *s, const atomic_bool *cancel, base_err *err);
/* The same, where this segment is the first bulk of a model whose pivot is not known. */
int kv__detect_when_due(kv_session *s, const kv_segment *g, const atomic_bool *cancel, base_err *err);

#endif
