/*
 * Rows of one whole sequence, nothing evicted: the plainest owner of a model_rows_view. For `kvist eval`,
 * `kvist bench speed` and tests, which look at the model alone; sessions have kv/.
 *
 * One list that every lane shares, block by block. Thread: the owner's.
 */
#ifndef KVIST_MODEL_DENSE_H
#define KVIST_MODEL_DENSE_H

#include "base/err.h"
#include "model/forward/model.h"
#include "model/ops/rows.h"

typedef struct model_dense model_dense;

/* Memory is taken as rows are appended, at most for n_max of them. */
int model_dense_new(model_dense **ret, const model_rows_shape *shape, uint32_t n_max, base_err *err);
void model_dense_free(model_dense *d); /* NULL is fine */

/*
 * n more rows, not computed yet: the view is what model_forward is to get for a batch of n. Valid until the
 * next call.
 */
int model_dense_append(model_dense *d, uint32_t n, const model_rows_view **ret, base_err *err);

/* Cuts back to the first n rows; they stay as they are. */
void model_dense_truncate(model_dense *d, uint32_t n);

/*
 * Appends and computes n tokens at the phases that follow the rows there are. `wants` logits are those of the
 * batch's last n_want tokens, [n_want][n_vocab].
 */
int model_dense_compute(model_dense *d, model *m, const int32_t *ids, uint32_t n, uint32_t n_want,
    float *logits, const atomic_bool *cancel, base_err *err);

#endif
