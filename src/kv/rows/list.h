/*
 * Live lists: per lane the rows that attention reads, as bits (which decide) and as runs (which the model
 * walks).
 *
 * Lanes that agree share one list; a plan that tells them apart splits it, one that makes them agree again
 * joins them. A row's slot is its token's index, so a run's slot and index are equal; runs end at blocks.
 */
#ifndef KVIST_KV_LIST_H
#define KVIST_KV_LIST_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "model/ops/rows.h"

typedef struct kv_list {
    uint32_t refs; /* lanes of this kv_lists that use it */
    uint32_t n_rows, n_runs, cap_runs;
    model_run *runs;
    uint64_t *bits; /* [n_words of the kv_lists] */
} kv_list;

typedef struct kv_lists {
    uint32_t n_lanes, n_words; /* words that lists have room for */
    uint32_t n_tokens;
    kv_list **lane;        /* [n_lanes] */
    model_lane_list *view; /* [n_lanes], always current */
} kv_lists;

/* Of no tokens, with room for max_tokens; kv_lists_fini. Every error here is BASE_E_NOMEM. */
int kv_lists_init(kv_lists *l, uint32_t n_lanes, uint32_t max_tokens, base_err *err);
void kv_lists_fini(kv_lists *l);
int kv_lists_copy(kv_lists *l, const kv_lists *other, base_err *err); /* l is uninitialised */

/* Room for so many tokens at least. On failure nothing that counts has changed. */
int kv_lists_reserve(kv_lists *l, uint32_t max_tokens, base_err *err);

/* Tokens [n_tokens, n_tokens + n) become active in every lane. */
int kv_lists_append(kv_lists *l, uint32_t n, base_err *err);
/* Forgets tokens at and behind n. Never fails. */
void kv_lists_truncate(kv_lists *l, uint32_t n);
/* XORs [n_lanes][(n_tokens + 63) / 64] bits in. On failure nothing has changed. */
int kv_lists_flip(kv_lists *l, const uint64_t *flips, base_err *err);

/* Runs of a set of tokens, for views of our own: NULL when memory is gone. *ret_n runs, *ret_rows rows. */
model_run *kv_runs_of_bits(const uint64_t *bits, uint32_t n_tokens, uint32_t *ret_n, uint32_t *ret_rows);

#endif
