/*
 * Where a forward pass spends its time: a backend that stands before a model's own, passes every operation on
 * and adds up its time, the bytes of weights and rows that it had to read, and its multiplications. A model
 * without a profile is not timed.
 *
 * `kvist bench speed` calls this, on the thread that computes.
 */
#ifndef KVIST_MODEL_PROFILE_H
#define KVIST_MODEL_PROFILE_H

#include "model/forward/model.h"
#include "model/ops/ops.h"

/* All calls of one operation; products and gates are told apart by their shape. */
typedef struct model_profile_row {
    const char *op;
    uint32_t n_in, n_out; /* of a product; 0: not one */
    uint64_t n_calls, ns;
    double bytes; /* weights and rows that had to be read */
    double macs;  /* multiplications, of `kind` */
    ops_peak kind;
} model_profile_row;

typedef struct model_profile model_profile;

/*
 * From here to model_profile_stop everything that `m` computes is timed. The model must outlive the profile.
 */
int model_profile_start(model_profile **ret, model *m, base_err *err);
void model_profile_stop(model_profile *p);

/* In the order in which the operations first came. */
const model_profile_row *model_profile_rows(const model_profile *p, uint32_t *ret_n);

/*
 * Multiplications a second of the model's threads when nothing else is asked of them; 0: this backend cannot
 * say.
 */
double model_peak(model *m, ops_peak kind);

#endif
