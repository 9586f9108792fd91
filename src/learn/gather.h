/*
 * Sessions computed again with everything active, as far as a residual needs them: at every message or result whose next
 * calls quote something, what the network would be shown there (kv/policy/shown.h) and what became of it.
 */
#ifndef KVIST_LEARN_GATHER_H
#define KVIST_LEARN_GATHER_H

#include "kv/core/compute.h"
#include "learn/history.h"
#include "learn/train.h"

enum {
    LEARN_TOKENS = 8192, /* of a session that are looked at */
    LEARN_LEAST_ROWS =
        512 /* in front of a place: fewer are no history to choose from (the paper's trigger) */
};

typedef struct learn_gatherer {
    const kv_compute *compute;
    const atomic_bool *cancel;
    /* of the session before: what the next has in common with it is not computed again */
    kv_session *session;
} learn_gatherer;

/*
 * Adds a session with its places, one group for those that are held out together. A session without such a place adds
 * nothing; *ret_added says. Errors are those of an append (BASE_E_CANCELLED, BASE_E_NOMEM, the model's). Engine thread.
 */
int learn_gather(learn_gatherer *g, learn_set *set, uint32_t group, const learn_history *h, bool *ret_added,
    base_err *err);
void learn_gatherer_close(learn_gatherer *g);

#endif
