/*
 * Carrying a plan out: the only code that changes live lists after rows were appended, and the forward passes
 * that this takes over rows that are there already.
 */
#ifndef KVIST_KV_APPLY_H
#define KVIST_KV_APPLY_H

#include "kv/core/state.h"
#include "kv/plan/plan.h"

/*
 * apply.c: all or nothing; the epoch says whether anything changed, and what follows from that is the
 * caller's to do. undoable: it goes into the journal.
 */
int kv__apply(kv_session *s, const kv_plan *plan, bool undoable, const atomic_bool *cancel, base_err *err);
/* Does applying it compute rows above a cut? */
bool kv__plan_computes(const kv_session *s, const kv_plan *plan);
/* plan runs out of flips: evict and promote reasons per token ([n]; KV_N_REASONS: the default given). */
void kv__describe_flips(
    const kv_session *s, kv_plan *p, const uint8_t *reasons, kv_reason evict, kv_reason promote);

/*
 * rerun.c: computes rows [from, n) again over `lists`, in which they are active in every lane; lists and
 * table change only when all of it succeeded.
 */
int kv__replay(kv_session *s, kv_lists *lists, uint32_t from, const atomic_bool *cancel, base_err *err);
/*
 * recompute.c: the forward pass of token i again, over the rows that are active below it, into a row nobody
 * sees. queries ([n_layer][n_head][1][head_dim]) and logits may be NULL.
 */
int kv__recompute(
    kv_session *s, uint32_t i, float *queries, float *logits, const atomic_bool *cancel, base_err *err);

/* ---- deferred.c: tokens whose layers above a cut are not computed ---- */

/* Keeps the hidden states ([n][n_embd]) that tokens [from, from + n) had at the cut, in their own slots. */
void kv__put_states(kv_session *s, uint32_t from, uint32_t n, uint32_t cut, float *states);
/* Staged tokens from `from` on leave the lists of the layers above the cut. BASE_E_NOMEM. */
int kv__hide_staged(kv_session *s, uint32_t from, uint32_t cut, base_err *err);
/*
 * Computes the deferred layers of `tokens` ([bits]) over `lists`, in which they are active: all of them, or nothing
 * has changed.
 */
int kv__compute_deferred(
    kv_session *s, const kv_lists *lists, const uint64_t *tokens, const atomic_bool *cancel, base_err *err);
uint32_t kv__deferred_tokens(const kv_session *s); /* those with a row that is not computed */
uint64_t kv__deferred_rows(const kv_session *s);   /* such rows of all lanes */

#endif
