/*
 * What stands in for evicted rows that a token does not read: the means of their keys and values, by pages of 64
 * tokens and lane. Such rows hold some percent of a head's attention, spread over thousands of rows; without their
 * values the output would lean towards the rows that are read. Behind very many of them a token weighs pages by sketches
 * of their keys first (model/ops/ops.h, visit).
 */
#ifndef KVIST_KV_REST_H
#define KVIST_KV_REST_H

#include <stdbool.h>

#include "kv/core/compute.h"
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
 * Finds the means of pages: rows: [lane] bits by page of those that the lane does not list, which are in F16 (NULL: the
 * lane stays as it is); a page without any has none. Means are kept until a page's rows are others. `of`: the table whose
 * rows `view` shows, whose filed blocks may have them already, or NULL. BASE_E_FORMAT as kv_table_check.
 */
int kv_rest_find(kv_rest *r, const kv_table *of, const model_rows_view *view, const uint64_t *const *rows,
    uint32_t n_pages, base_err *err);
const uint16_t *kv_rest_values(
    const kv_rest *r, uint32_t lane); /* a lane's means, [pages][head_dim] in F16 */
/* A page's mean in a lane as it was found last: its rows, 0 where it has none, key and value [head_dim]. */
uint64_t kv_rest_get(
    const kv_rest *r, uint32_t lane, uint32_t page, const uint16_t **ret_key, const uint16_t **ret_value);
/* The pages are folded as the view says from now on. */
void kv_rest_fold(kv_rest *r, const model_rows_view *view, uint32_t n_pages);
/*
 * Sketches (model/ops/sketch.h) of a lane's mean keys, 256 pages each, turned as the view's folded rows are read, so that
 * no query is turned to each of them. Of what kv_rest_find found, under the fold told last. BASE_E_NOMEM.
 */
int kv_rest_sketch(kv_rest *r, const kv_compute *compute, const model_rows_view *view, uint32_t lane,
    uint32_t n_pages, const uint8_t **ret, base_err *err);
/*
 * What it also finds out: the means of values by MODEL_CHAPTER pages, [chapters][head_dim] in F16; of 256 pages of which none
 * has rows nothing is there.
 */
const uint16_t *kv_rest_chapters(const kv_rest *r, uint32_t lane);

#endif
