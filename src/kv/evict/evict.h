/* What leaves: eviction passes, the limits of memory and disk, sums of what tokens attended to. */
#ifndef KVIST_KV_EVICT_H
#define KVIST_KV_EVICT_H

#include "kv/core/state.h"
#include "kv/policy/shown.h"

/*
 * select.c: one eviction pass down to the policy's share of what the budget leaves beside visitors, tokens of
 * `keep` ([bits], may be NULL) as if they were pinned. 0 also when there was nothing to do.
 */
int kv__evict(kv_session *s, const uint64_t *keep, const atomic_bool *cancel, base_err *err);
/*
 * select.c: while a message comes whose question is not complete. Lists may grow beyond the budget, to
 * `message` of the context; a pass goes down to the policy's share of that.
 */
int kv__evict_within_message(kv_session *s, const atomic_bool *cancel, base_err *err);
/* What such a pass sees, for later ones, and nothing else: its plan is in a log. */
int kv__score_again(kv_session *s, base_err *err);

/*
 * fold.c: before the phases that a token reads would leave the model's context, folds old rows (core/fold.h).
 * Nothing in a session that ends there.
 */
int kv__fold(kv_session *s, const atomic_bool *cancel, base_err *err);

/*
 * tier.c: keeps rows in memory and on disk within the parameters' limits, by plans; after anything that added
 * rows or evicted some. Does nothing without limits.
 */
int kv__tier(kv_session *s, base_err *err);
uint64_t kv__folded_most(void); /* bytes: what kv_session.folded_most is on this machine */
int kv__to_disk(kv_session *s, uint32_t b, base_err *err); /* block b, nobody else's and as it was computed */
bool kv__block_is_computed(const kv_session *s, uint32_t b); /* not below a cut: it has rows to round */

/*
 * heavy.c: adds up what the tokens [from, from + n) attended to, each over the rows that it could read.
 * queries: [n_layer][n_head][n][head_dim].
 */
int kv__heavy_add(
    kv_session *s, uint32_t from, uint32_t n, const float *queries, const atomic_bool *cancel, base_err *err);

/*
 * show.c: what a trained residual would be shown now, over the session's memory of requests (src/learn). kv_shown_free in
 * any case; BASE_E_STATE before the first request.
 */
int kv_session_shown(const kv_session *s, const atomic_bool *cancel, kv_shown *ret, base_err *err);

#endif
