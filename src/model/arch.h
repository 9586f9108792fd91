/*
 * What an architecture is made of: hyper-parameters out of the metadata, and the tensors of every layer with their shapes
 * checked against them. Two tables: one row of flags an architecture, one row a tensor of a layer.
 *
 * Only model_open calls this. A file that holds anything we would have to ignore (an unknown tensor, a soft cap, experts,
 * a RoPE scaling that is not built) is refused with the name: a wrong answer costs more than a refusal.
 */
#ifndef KVIST_MODEL_ARCH_H
#define KVIST_MODEL_ARCH_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "model/gguf.h"

/* Flags of one architecture. */
typedef struct model_arch {
    const char *name;
    bool rope_neox; /* RoPE turns the pair (i, i + n_rot / 2); else (2i, 2i + 1) */
    bool qkv_bias;  /* the biases of Q, K and V must be there; else they may be */
} model_arch;

typedef struct model_hyper {
    const model_arch *arch;
    uint32_t n_layer, n_embd, n_ff, n_head, n_head_kv, head_dim, n_rot, n_vocab, n_ctx;
    float norm_eps, attn_scale;
    /* The angle of pair i at phase p is p / rope_factor * rope_base^(-2i / n_rot) / rope_freqs[i]. */
    double rope_base, rope_factor;
} model_hyper;

/*
 * Tensors of a layer: X(field, "name behind blk.N.", n_in, n_out or 0 for a vector, presence). Sizes are expressions over a
 * model_hyper *h; presence: ARCH_MUST, ARCH_BIAS (as the architecture says), both of them in order of the forward pass.
 */
/* clang-format off */
#define MODEL_LAYER_TENSORS(X)                                                                                \
    X(attn_norm, "attn_norm.weight",   h->n_embd, 0, ARCH_MUST)                                               \
    X(q,         "attn_q.weight",      h->n_embd, h->n_head * h->head_dim, ARCH_MUST)                         \
    X(k,         "attn_k.weight",      h->n_embd, h->n_head_kv * h->head_dim, ARCH_MUST)                      \
    X(v,         "attn_v.weight",      h->n_embd, h->n_head_kv * h->head_dim, ARCH_MUST)                      \
    X(q_bias,    "attn_q.bias",        h->n_head * h->head_dim, 0, ARCH_BIAS)                                 \
    X(k_bias,    "attn_k.bias",        h->n_head_kv * h->head_dim, 0, ARCH_BIAS)                              \
    X(v_bias,    "attn_v.bias",        h->n_head_kv * h->head_dim, 0, ARCH_BIAS)                              \
    X(o,         "attn_output.weight", h->n_head * h->head_dim, h->n_embd, ARCH_MUST)                         \
    X(ffn_norm,  "ffn_norm.weight",    h->n_embd, 0, ARCH_MUST)                                               \
    X(gate,      "ffn_gate.weight",    h->n_embd, h->n_ff, ARCH_MUST)                                         \
    X(up,        "ffn_up.weight",      h->n_embd, h->n_ff, ARCH_MUST)                                         \
    X(down,      "ffn_down.weight",    h->n_ff, h->n_embd, ARCH_MUST)
/* clang-format on */

#define MODEL_LAYER_FIELD(field, name, n_in, n_out, presence) const gguf_tensor *field;
typedef struct model_layer_tensors {
    MODEL_LAYER_TENSORS(MODEL_LAYER_FIELD) /* NULL: not in the file */
} model_layer_tensors;

typedef struct model_tensors {
    const gguf_tensor *token_embd, *output_norm;
    const gguf_tensor *output;     /* token_embd when the file has none (tied) */
    const gguf_tensor *rope_freqs; /* may be NULL */
    model_layer_tensors *layers;   /* [n_layer] */
} model_tensors;

int model_arch_read(const gguf_file *f, model_hyper *ret, base_err *err);
int model_arch_bind(const gguf_file *f, const model_hyper *h, model_tensors *ret, base_err *err);
void model_arch_unbind(model_tensors *t);

#endif
