/*
 * The fold (docs/kv.md, A session without an end): how a session goes on behind its model's context. Keys stay
 * rotated at their own phases, which grow for ever. A table gives each group of MODEL_ROWS_GROUP tokens a
 * gap, and its rows are read as if their phase were larger by that: older rows move up to where their evicted
 * neighbours were. Gaps never grow with the index, and the newest groups have none, so the order of groups
 * stays and nothing lies ahead of the newest token.
 *
 * One table for all lanes, active and evicted rows. It changes only by plans (kv_plan.fold), and where tokens
 * are truncated inside of it.
 */
#ifndef KVIST_KV_FOLD_H
#define KVIST_KV_FOLD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

typedef struct kv_fold {
    uint32_t *gaps; /* [n] none grows; groups behind have no gap */
    uint32_t n, cap;
} kv_fold;

void kv_fold_free(kv_fold *f);
int kv_fold_copy(kv_fold *f, const kv_fold *from, base_err *err); /* replaces f */
/* Adds changes ([n], by group) to the gaps. False, and nothing has changed: what comes of it is no fold. */
bool kv_fold_change(kv_fold *f, const int32_t *changes, uint32_t n);
/* Is that a fold over n_tokens: gaps that never grow, and none that no token could have? */
bool kv_fold_is_valid(const kv_fold *f, uint32_t n_tokens);
/* Tokens at and behind n_tokens are gone: the group of the next one and the one before it have no gap. */
void kv_fold_truncate(kv_fold *f, uint32_t n_tokens);

#endif
