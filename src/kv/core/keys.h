/*
 * Keys in the place of queries: RepairKV's code scores rows by the keys of an answer or a question where its
 * queries were not kept (order=keys, the policy snapkv-seed).
 */
#ifndef KVIST_KV_KEYS_H
#define KVIST_KV_KEYS_H

#include "kv/core/compute.h"

/*
 * The keys of these tokens as queries of every head of their lane, [n_layer][n_head][n][head_dim]; of one
 * whose row was given up zeros, which prefer nothing. NULL when memory is gone.
 */
float *kv__keys_as_queries(
    const kv_compute *compute, const model_rows_view *rows, const uint32_t *tokens, uint32_t n);
float kv__float_of_half(uint16_t half);

#endif
