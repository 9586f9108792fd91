/*
 * Where a layer's heads lie in its lanes. Everything that keeps, scores or chooses rows knows lanes of one size
 * and number (model_hyper.head_dim, n_head_kv), and a query head belongs to one of them. A model whose layers
 * with a window have smaller heads (Gemma 4) puts those side by side in a lane, and a query is as wide as the
 * lane with zeros beside its own numbers: it meets only its own head's keys, and of what it gathers of the
 * values only its own head's are read. Where smaller heads leave a part of the lane, it stays zero; where a
 * layer has fewer heads than lanes, each lane of a head's queries has a copy.
 */
#ifndef KVIST_MODEL_LANES_H
#define KVIST_MODEL_LANES_H

#include "model/forward/layer.h"

/* Rows of a batch's queries, keys and values, and the gates behind the queries where there are some. */
typedef struct lane_rows {
    ops_mat q, k, v;
} lane_rows;

/* Where the products of a layer write: heads of the layer's own size, one behind another. */
lane_rows lanes_products(const model *m, uint32_t layer);
/* The same heads in lanes: what rows are written from, and what attention asks with. Moves what has to move. */
int lanes_spread(model *m, uint32_t layer, uint32_t n, lane_rows from, lane_rows *ret, base_err *err);
/* What attention made, [n][n_head lanes] in `mixed`, as heads of the layer's own size: *ret. */
int lanes_gather(model *m, uint32_t layer, uint32_t n, ops_mat mixed, ops_mat *ret, base_err *err);

#endif
