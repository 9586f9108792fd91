/*
 * The buffers in which a forward pass computes: their sizes stand in one table, for the allocation and for the
 * plan of memory.
 */
#include <stdlib.h>

#include "model/forward/forward.h"

static uint32_t larger(uint32_t a, uint32_t b)
{
    return a > b ? a : b;
}

static uint32_t widest(const model_hyper *h)
{
    return larger(larger(larger(h->n_embd, h->n_ff_sharing), larger(h->n_ff, h->n_ff_shared)),
        larger(larger(model_query_width(h), h->n_embd_layer), model_state_values(h)));
}

/* Columns of one half of scratch.gate_up: a mixture's experts have their own place. */
static uint32_t gate_width(const model_hyper *h)
{
    return larger(h->n_experts ? h->n_ff_shared : larger(h->n_ff, h->n_ff_sharing), h->n_embd_layer);
}

/* Floats of each scratch buffer, in one place for the allocation and for the plan of memory. */
#define SCRATCH_BUFFERS(X)                                                                                   \
    X(x, FORWARD_BATCH, h->n_embd)                                                                           \
    X(qkv, FORWARD_BATCH, larger(forward_qkv_width(h), forward_state_width(h)))                              \
    X(mixed, FORWARD_BATCH, larger(model_query_width(h), model_state_values(h)))                             \
    X(sums, FORWARD_BATCH, 2 * (size_t)h->n_head)                                                            \
    X(gate_up, gate_width(h) ? FORWARD_BATCH : 0, 2 * (size_t)gate_width(h))                                 \
    X(share_all, h->n_ff_shared ? FORWARD_BATCH : 0, 1)                                                      \
    X(branch, h->arch->post_norm || h->n_experts ? FORWARD_BATCH : 0, h->n_embd)                             \
    X(chosen, h->n_experts ? FORWARD_BATCH : 0, h->n_experts_used)                                           \
    X(shares, h->n_experts ? FORWARD_BATCH : 0, h->n_experts_used)                                           \
    X(logits, FORWARD_HEADS, h->n_vocab)                                                                     \
    X(rope, FORWARD_BATCH, h->n_rot)                                                                         \
    X(rope_window, h->window_rope_base ? FORWARD_BATCH : 0, h->n_rot)                                        \
    X(rope_own, FORWARD_BATCH, h->n_rot)                                                                     \
    X(narrow, h->window_head_dim ? FORWARD_BATCH : 0, forward_narrow_width(h))                               \
    X(small_lanes, h->window_head_dim ? FORWARD_BATCH : 0, forward_qkv_width(h))                             \
    X(second, h->arch->beside && h->n_experts ? FORWARD_BATCH : 0, h->n_embd)                                \
    X(own_embd, h->n_embd_layer ? FORWARD_BATCH : 0, (size_t)h->n_layer * h->n_embd_layer)                   \
    X(own_read, h->n_embd_layer ? FORWARD_BATCH : 0, (size_t)h->n_layer * h->n_embd_layer)

uint64_t forward_scratch_bytes(const model_hyper *h)
{
    uint64_t bytes =
        (uint64_t)FORWARD_BATCH * widest(h) * 2; /* activations: a byte and their scales, twice */
#define ADD(field, rows, width) bytes += (uint64_t)(rows) * (width) * sizeof(float);
    SCRATCH_BUFFERS(ADD)
#undef ADD
    /* What the backend keeps of each token's experts: the first columns, gate and up, the hidden numbers. */
    return bytes + (uint64_t)FORWARD_BATCH * h->n_experts_used * (4ull * h->n_embd + 13ull * h->n_ff);
}

int forward_scratch_make(model *m, base_err *err)
{
    const model_hyper *h = &m->hyper;
    forward_scratch *s = &m->scratch;
    int rc = m->ops->activations_new(m->ops, &s->wide, FORWARD_BATCH, widest(h), err);
#define MAKE(field, rows, width)                                                                             \
    if (!rc && (rows) > 0)                                                                                   \
        rc = m->ops->buffer_new(m->ops, &s->field, (size_t)(rows) * (width) * sizeof(float), err);
    SCRATCH_BUFFERS(MAKE)
#undef MAKE
    s->captured = malloc(model_query_width(h) * sizeof *s->captured);
    if (!rc && !s->captured) rc = base_fail(err, BASE_E_NOMEM, "no memory for queries");
    return rc;
}

void forward_scratch_free(model *m)
{
    forward_scratch *s = &m->scratch;
    free(s->captured);
    if (s->wide) m->ops->activations_free(m->ops, s->wide);
#define DROP(field, rows, width)                                                                             \
    if (s->field) m->ops->buffer_free(m->ops, s->field);
    SCRATCH_BUFFERS(DROP)
#undef DROP
}
