/*
 * One layer of the forward pass: x += attention (or a state), then x += feed forward (or experts), over a piece of
 * a batch.
 */
#ifndef KVIST_MODEL_LAYER_H
#define KVIST_MODEL_LAYER_H

#include "model/forward/forward.h"

/* A piece of a batch: at most FORWARD_BATCH tokens, with the view in which its rows are every list's last. */
typedef struct micro_batch {
    const model_batch *whole;
    uint32_t from, n;
    const model_rows_view *rows;
    uint32_t want_from, n_want; /* of whole->want, those inside */
    const ops_turns *turns;     /* of rows; NULL: nothing is folded */
    bool has_own;               /* its tokens are folded themselves: scratch.rope_own has their turns */
    /* how much less than its phase a token's place is among what it reads: 0 where nothing is folded */
    uint32_t less[FORWARD_BATCH];
    const float *state; /* before its first token; NULL: zeros. whole->state_out gets what follows */
} micro_batch;

/* The residual stream: scratch.x as [n][n_embd]. */
static inline ops_mat layer_hidden(const model *m)
{
    return (ops_mat){.buffer = m->scratch.x, .stride = m->hyper.n_embd};
}

/*
 * scratch.wide = RMSNorm of the residual stream's rows, in the form that products take. rows: which n of them; NULL:
 * the first n.
 */
int layer_norm(model *m, const ops_buffer *weight, const uint32_t *rows, uint32_t n, base_err *err);
/* Layer `layer` over all tokens of b. Errors: the operations', and BASE_E_CANCELLED. */
int layer_run(model *m, const micro_batch *b, uint32_t layer, base_err *err);

#endif
