/*
 * The one way to the model for tokens of a session: where the model keeps a state, it is given the one in
 * front of the batch and what is behind goes to where it belongs. Other models are called as they are.
 *
 * Where no state is in front of the tokens (the session was cut back to a place between two that are kept; a
 * draft was taken in part), the tokens between are *walked*: computed again from the newest state before
 * them, over the rows that are active now, into rows that nobody sees. Whatever changes the live lists does
 * so first (kv__bring_state), so a walk reads what the tokens read when they came, unless the session was cut.
 */
#ifndef KVIST_KV_WALK_H
#define KVIST_KV_WALK_H

#include "kv/core/state.h"

typedef enum kv_purpose {
    KV_TO_APPEND,  /* the next tokens: the state behind them is the session's */
    KV_TO_DRAFT,   /* the next tokens, perhaps: a draft */
    KV_TO_REPLACE, /* tokens that are there, whose rows are replaced, batch by batch up to the newest */
    KV_TO_LOOK,    /* tokens that are there; nothing stays */
} kv_purpose;

/*
 * The batch's tokens are those from `from` on. As kv_compute.forward. The state in front of them has to be
 * there: kv__stand_at comes first, and before any reader begins (read/visit.h), since a walk reads too.
 */
int kv__stand_at(kv_session *s, uint32_t t, const atomic_bool *cancel, base_err *err);
int kv__forward(kv_session *s, model_batch *batch, uint32_t from, kv_purpose purpose, base_err *err);
/* The state behind the first n tokens, a reference; NULL for none of them. */
int kv__walk_to(kv_session *s, uint32_t n, kv_state **ret, const atomic_bool *cancel, base_err *err);
/* The state behind the newest token, walked to if need be. */
int kv__bring_state(kv_session *s, const atomic_bool *cancel, base_err *err);
uint32_t kv__to_walk(const kv_session *s); /* tokens that this would compute again */
/* Behind KV_TO_REPLACE from `from` on: what was made is the session's, or (not done) is forgotten. */
void kv__end_again(kv_session *s, uint32_t from, bool done);

#endif
