/*
 * States of layers that have no rows (model.h, state_bytes): what such a layer remembers is one matrix that
 * every token changes. It cannot forget a token, go back, or be put together from parts; so whoever goes back
 * begins at a state that was kept, and computes from there (plan/walk.h).
 *
 * A state, once made, is never written again: the next token's is made beside it. So keeping one, or sharing
 * it with a fork, is a reference. States are kept where a session is gone back to: at the beginning of a
 * turn, of an answer, and of a tool's result; beyond a limit the one goes whose neighbours are closest, by
 * how far back they are. Thread: the engine thread.
 */
#ifndef KVIST_KV_STATES_H
#define KVIST_KV_STATES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

enum { KV_STATES_MOST = 256, KV_STATE_NOWHERE = UINT32_MAX };

/* Behind the first `at` tokens of the sequence. */
typedef struct kv_state {
    uint32_t refs, at;
    uint32_t place; /* in the session's file of states; KV_STATE_NOWHERE: not written */
    uint64_t hash;  /* of what is there */
    size_t n_bytes;
    float *numbers;
} kv_state;

/* What a manifest names of the file of states. */
typedef struct kv_state_place {
    uint32_t at, place;
    uint64_t hash;
    bool kept, before; /* which of these it was; neither: the newest */
} kv_state_place;

typedef struct kv_states {
    kv_state *live;   /* behind the newest token, or further back where the session was cut; NULL: empty */
    kv_state *before; /* what live was made of; may be NULL */
    kv_state *ahead;  /* behind a draft's last token; NULL: there is none */
    kv_state *again;  /* while tokens are computed again: behind those that were */
    kv_state *look;   /* the newest one that was only looked at */
    kv_state *spare;  /* memory for the next one */
    kv_state *kept[KV_STATES_MOST];
    uint32_t n_kept;
    bool is_cut;     /* the session was cut back since live was behind its newest token */
    uint32_t walked; /* tokens computed again to make a state, since this object was made */
    kv_state_place saved[KV_STATES_MOST + 2],
        on_disk[KV_STATES_MOST + 2]; /* for the next manifest; in the last */
    uint32_t n_saved, n_on_disk;
} kv_states;

struct kv_session;

kv_state *kv_state_ref(kv_state *x); /* NULL of NULL */
/* Gives a reference back; *x becomes NULL. */
void kv_state_drop(kv_states *s, kv_state **x);
kv_state *kv_state_new(kv_states *s, size_t n_bytes, base_err *err); /* what its numbers are is not said */
void kv_states_free(kv_states *s);
/* into an empty one; shares all but work at hand */
void kv_states_copy(kv_states *to, const kv_states *from);

/*
 * The newest state at or before token t; NULL: none, so the sequence's start. One that was only looked at
 * counts where it is behind token t itself: from where a walk begins must not hang on who looked before.
 */
kv_state *kv_states_newest(const kv_states *s, uint32_t t);
/* Forgets what is behind token n. */
void kv_states_truncate(kv_states *s, uint32_t n);
/* Keeps the live state, if it is behind token n, and at most `most` in all. */
void kv_states_keep(kv_states *s, uint32_t n, uint32_t most);
uint32_t kv_states_most(const struct kv_session *s); /* how many are kept in memory */
uint64_t kv_states_bytes(const kv_states *s);        /* all that are there */

#endif
