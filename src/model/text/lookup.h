/*
 * Prompt lookup: what a model writes often stands in its session already (a definition it rewrites, a path it
 * names). The last tokens are looked up among all earlier ones, evicted rows' tokens included, and what
 * followed there is the draft of what comes next; the engine verifies it in one batch (agent/engine/engine_local.c).
 * Ids cost nothing, so nothing is left out.
 *
 * Pure: no model, no clock. How much to draft is decided by what was seen: how often tokens behind a match of
 * this length were right lately, and what a batch of n cost against a batch of 1.
 */
#ifndef KVIST_MODEL_LOOKUP_H
#define KVIST_MODEL_LOOKUP_H

#include <stdint.h>

typedef struct model_lookup model_lookup;

enum { MODEL_LOOKUP_MAX = 15 }; /* tokens of a draft */

model_lookup *model_lookup_new(void);
void model_lookup_free(model_lookup *l);

/*
 * The sequence is now ids [n]: the index follows it, also backwards (a rewind). Costs as much as what
 * changed, and a compare.
 */
void model_lookup_sync(model_lookup *l, const int32_t *ids, uint32_t n);

/*
 * What may follow the sequence with `next` behind it: up to max (at most MODEL_LOOKUP_MAX) ids into ret, as
 * many as pay. Returns how many; 0: nothing stood before, or it does not pay.
 */
uint32_t model_lookup_draft(model_lookup *l, int32_t next, uint32_t max, int32_t *ret);

/*
 * How the last draft went: its first n_right tokens were what the model said, and the next one was not,
 * unless n_right is all.
 */
void model_lookup_learn(model_lookup *l, uint32_t n_right);
/* The last draft came to no end (its answer was cut off): only that the first n_right were right is known. */
void model_lookup_leave(model_lookup *l, uint32_t n_right);
/* A batch of n took this long. */
void model_lookup_cost(model_lookup *l, uint32_t n, uint64_t ns);

typedef struct model_lookup_stats {
    uint64_t drafted, accepted; /* tokens */
    uint64_t batches;           /* drafts */
} model_lookup_stats;
model_lookup_stats model_lookup_get_stats(const model_lookup *l);

#endif
