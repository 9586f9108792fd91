/* The loss of a residual at one place (IntentKV, equation 8) and its gradient. Pure; one thread. */
#ifndef KVIST_LEARN_GRADIENT_H
#define KVIST_LEARN_GRADIENT_H

#include "kv/policy/residual.h"

/*
 * Rows of a place with what became of them. The paper's last term, the norm of the memory, is left out: the memory has
 * norm 1 already and is not trained.
 */
typedef struct learn_rows {
    kv_residual_input in;
    const uint8_t *quoted; /* [in.n] 1: the next calls quote it */
    const float *weight;   /* [in.n] how many rows it stands for, where rows were drawn */
} learn_rows;

typedef struct learn_loss {
    double rank, keep; /* weights: .05 of hard negatives ranked below, .01 of the mean probability to stay */
} learn_loss;

enum { LEARN_HARD_NEGATIVES = 64 };

/* *ret_loss; the gradient (r->n numbers) is added to grad. Both kinds of rows must be there. BASE_E_NOMEM. */
int learn_gradient(const kv_residual *r, const learn_rows *rows, const learn_loss *how, double *ret_loss,
    float *grad, base_err *err);

#endif
