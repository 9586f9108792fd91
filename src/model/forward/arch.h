/*
 * What an architecture is made of: hyper-parameters out of the metadata, and the tensors of every layer with
 * their shapes checked against them. Two tables: one row of flags an architecture, one row a tensor of a
 * layer.
 *
 * Only model_open calls this. A file that holds anything we would have to ignore (an unknown tensor, a soft
 * cap, experts, a RoPE scaling that is not built) is refused with the name: a wrong answer costs more than a
 * refusal.
 */
#ifndef KVIST_MODEL_ARCH_H
#define KVIST_MODEL_ARCH_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "model/file/gguf.h"
#include "model/ops/ops.h"

/* What one architecture does otherwise than the others; the forward pass asks for nothing else. */
typedef struct model_arch {
    const char *name, *families; /* "llama", "Llama 2 and 3, SmolLM2" */
    ops_rope_pairing rope;
    ops_gate gate;
    bool qkv_bias;   /* the biases of Q, K and V must be there; else they may be */
    bool qk_norm;    /* an RMSNorm of every query and key head, before RoPE */
    bool post_norm;  /* an RMSNorm of what attention and the feed-forward add to the residual stream */
    bool embd_scale; /* the embedding is multiplied by sqrt(n_embd) */
    /* of so many layers the last reads everything, the others a window; 0: all read everything */
    uint32_t window_every;
    double window_rope_base; /* RoPE's base in layers with a window, where it is never stretched */
    bool experts;            /* the feed-forward is a mixture of experts */
    bool long_context;       /* its own keys of YaRN, and queries that are scaled by their position */
    uint32_t
        wide_layers; /* a model of so many layers scales scores by n_embd / n_head, not by the head's size */
} model_arch;

typedef struct model_hyper {
    const model_arch *arch;
    uint32_t n_layer, n_embd, n_head, n_head_kv, head_dim, n_rot, n_vocab, n_ctx;
    uint32_t n_ff;                      /* of one expert, where there are experts */
    uint32_t n_experts, n_experts_used; /* 0: no mixture */
    float norm_eps, attn_scale;
    /* The angle of pair i at phase p is p / rope_factor * rope_base^(-2i / n_rot) / rope_freqs[i]. */
    double rope_base, rope_factor;
    /*
     * YaRN (Peng et al. 2023, section 3.2), yarn_factor > 1: pairs up to yarn_low keep their angle, those from
     * yarn_high on are divided by the factor, those between by something between. It also scales every key and
     * query; that is in attn_scale.
     */
    double yarn_factor, yarn_low, yarn_high;
    /* A query at phase p is multiplied by 1 + q_scale * ln(1 + floor(p / q_scale_every)); 0: no query is. */
    double q_scale;
    uint32_t q_scale_every;
    /*
     * Layers with a window: row p is read from position q when q - p < window, and rope_base is another one.
     */
    uint32_t window, window_every; /* window 0: no layer has one */
    double window_rope_base;
} model_hyper;

static inline bool model_layer_has_window(const model_hyper *h, uint32_t layer)
{
    return h->window && (layer + 1) % h->window_every != 0;
}

/*
 * Tensors of a layer: X(field, "name behind blk.N.", n_in, n_out or 0 for a vector, presence). Sizes are
 * expressions over a model_hyper *h; presence: ARCH_MUST, or the flag of the architecture that asks for it
 * (ARCH_STACK: such a matrix for each expert). In order of the forward pass.
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
    X(q_norm,    "attn_q_norm.weight", h->head_dim, 0, ARCH_QK_NORM)                                          \
    X(k_norm,    "attn_k_norm.weight", h->head_dim, 0, ARCH_QK_NORM)                                          \
    X(o,         "attn_output.weight", h->n_head * h->head_dim, h->n_embd, ARCH_MUST)                         \
    X(attn_post, "post_attention_norm.weight", h->n_embd, 0, ARCH_POST_NORM)                                  \
    X(ffn_norm,  "ffn_norm.weight",    h->n_embd, 0, ARCH_MUST)                                               \
    X(router,    "ffn_gate_inp.weight", h->n_embd, h->n_experts, ARCH_EXPERTS)                                \
    X(gate,      "ffn_gate.weight",    h->n_embd, h->n_ff, ARCH_DENSE)                                        \
    X(up,        "ffn_up.weight",      h->n_embd, h->n_ff, ARCH_DENSE)                                        \
    X(down,      "ffn_down.weight",    h->n_ff, h->n_embd, ARCH_DENSE)                                        \
    X(gate_exps, "ffn_gate_exps.weight", h->n_embd, h->n_ff, ARCH_STACK)                                      \
    X(up_exps,   "ffn_up_exps.weight", h->n_embd, h->n_ff, ARCH_STACK)                                        \
    X(down_exps, "ffn_down_exps.weight", h->n_ff, h->n_embd, ARCH_STACK)                                      \
    X(ffn_post,  "post_ffw_norm.weight", h->n_embd, 0, ARCH_POST_NORM)
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

/* model_info.hash of a file that is not loaded; path: for a model without a name of its own. */
void model_hash_of(const gguf_file *f, const char *path, char ret[65]);

#endif
