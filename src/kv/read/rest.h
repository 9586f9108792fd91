/*
 * What stands in for evicted rows that a token does not read: the means of their keys and values, by pages of 64
 * tokens and lane. Such rows hold some percent of a head's attention, spread over thousands of rows; without their
 * values the output would lean towards the rows that are read. Behind very many of them a token weighs pages by their
 * keys first (model/ops/ops.h, visit).
 */
#ifndef KVIST_KV_REST_H
#define KVIST_KV_REST_H

#include "base/err.h"
#include "model/ops/rows.h"

enum { KV_REST_PAGE = 64 }; /* tokens: a word of bits */

typedef struct kv_rest kv_rest;

kv_rest *kv_rest_new(const model_rows_shape *shape, uint32_t n_tokens); /* NULL: no memory */
void kv_rest_free(kv_rest *r);                                          /* NULL is fine */
/* Rows of tokens at and behind `from` are others now. */
void kv_rest_forget(kv_rest *r, uint32_t from);
typedef struct kv_rest_means {
    const float *values;  /* [n_pages][head_dim] */
    const uint16_t *keys; /* the same, F16 */
} kv_rest_means;

/*
 * The means of a lane's pages: rows: bits by page of those that the lane does not list, which are in F16; a page
 * without any has none. Means are kept until a page's rows are others.
 */
kv_rest_means kv_rest_find(
    kv_rest *r, const model_rows_view *view, uint32_t lane, const uint64_t *rows, uint32_t n_pages);

#endif
