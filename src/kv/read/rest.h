/*
 * What stands in for evicted rows that a token weighed and left out: the means of their values, by 64 tokens
 * and lane. Such rows hold some percent of a head's attention, spread over thousands of rows; without them
 * the output would lean towards the rows that are read.
 */
#ifndef KVIST_KV_REST_H
#define KVIST_KV_REST_H

#include "base/err.h"
#include "model/ops/rows.h"

enum { KV_REST_GROUP = 64 }; /* tokens: a word of bits */

typedef struct kv_rest kv_rest;

kv_rest *kv_rest_new(const model_rows_shape *shape, uint32_t n_tokens); /* NULL: no memory */
void kv_rest_free(kv_rest *r);                                          /* NULL is fine */
/* Rows of tokens at and behind `from` are others now. */
void kv_rest_forget(kv_rest *r, uint32_t from);
/*
 * The means of a lane's groups, [n_groups][head_dim]: rows: bits by group of those that the lane does not list,
 * which are in F16; a group without any has none. Means are kept until a group's rows are others.
 */
const float *kv_rest_means(
    kv_rest *r, const model_rows_view *view, uint32_t lane, const uint64_t *rows, uint32_t n_groups);

#endif
