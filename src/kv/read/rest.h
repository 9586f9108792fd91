/*
 * What stands in for evicted rows that a token does not read: the means of their keys and values, by pages of 64
 * tokens and lane. Such rows hold some percent of a head's attention, spread over thousands of rows; without their
 * values the output would lean towards the rows that are read. Behind very many of them a token weighs pages by their
 * keys first (model/ops/ops.h, visit).
 */
#ifndef KVIST_KV_REST_H
#define KVIST_KV_REST_H

#include <stdbool.h>

#include "kv/core/compute.h"
#include "kv/core/fold.h"
#include "kv/rows/store.h"

enum { KV_REST_PAGE = 64 }; /* tokens: a word of bits */

typedef struct kv_rest kv_rest;

kv_rest *kv_rest_new(const model_rows_shape *shape, uint32_t n_tokens); /* NULL: no memory */
void kv_rest_free(kv_rest *r);                                          /* NULL is fine */
/* What is known of the first n_pages pages of the same rows, in a fork or where there is more room now. */
void kv_rest_copy(kv_rest *r, const kv_rest *from, uint32_t n_pages);
/* Rows of tokens at and behind `from` are others now. */
void kv_rest_forget(kv_rest *r, uint32_t from);
/*
 * Finds the means of a lane's pages: rows: bits by page of those that the lane does not list, which are in F16; a page
 * without any has none. Means are kept until a page's rows are others. `of`: the table whose rows `view` shows, whose
 * filed blocks may have them already, or NULL. *ret: those of values, [n_pages][head_dim] in F16. BASE_E_FORMAT as
 * kv_table_check.
 */
int kv_rest_find(kv_rest *r, const kv_table *of, const model_rows_view *view, uint32_t lane,
    const uint64_t *rows, uint32_t n_pages, const uint16_t **ret, base_err *err);
/* A page's mean in a lane as it was found last: its rows, 0 where it has none, key and value [head_dim]. */
uint64_t kv_rest_get(
    const kv_rest *r, uint32_t lane, uint32_t page, const uint16_t **ret_key, const uint16_t **ret_value);
/* Turns the mean keys of folded pages as those are read now, so that no query is turned to each of them. False: no memory. */
bool kv_rest_fold(kv_rest *r, const kv_compute *compute, const kv_fold *fold, uint32_t n_pages);
/* A lane's mean keys, [n_pages][head_dim] in F16; of what kv_rest_find found for it before kv_rest_fold. */
const uint16_t *kv_rest_keys(const kv_rest *r, uint32_t lane);

#endif
