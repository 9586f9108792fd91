/*
 * What an architecture is made of: hyper-parameters out of the metadata, and the tensors of every layer with
 * their shapes checked against them. Two tables: one row of flags an architecture, one row a tensor of a
 * layer.
 *
 * Only model_open calls this. A file that holds anything we would have to ignore (an unknown tensor, a soft
 * cap, a router or a RoPE scaling that is not built) is refused with the name: a wrong answer costs more than
 * a refusal. Encoders of pictures, and blocks that guess tokens ahead, are no part of a text's pass and left
 * out.
 */
#ifndef KVIST_MODEL_ARCH_H
#define KVIST_MODEL_ARCH_H

#include <stdbool.h>
#include <stddef.h>
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
    bool scaled;     /* by a number of the file, and so are the branches and the logits */
    /* of so many layers the last reads everything, the others a window; 0: all read everything */
    uint32_t window_every;
    /* RoPE's base in layers with a window, where it is never stretched; 0: they turn as the others do */
    double window_rope_base;
    bool experts; /* the feed-forward is a mixture of experts */
    bool shared;  /* ... beside one that every token goes to, as much as a gate says */
    bool ffn_pre; /* the norm before the feed-forward is called post_attention_norm */
    bool sinks;   /* every query head has a sink (ops.h, attention) */
    bool biases;  /* of attention's output, the router and the experts, too */
    /*
     * Of so many layers the last has rows; the others keep a state (gated delta net), and attention's output
     * passes a gate that is made with the queries. 0: all layers have rows.
     */
    uint32_t rows_every;
    bool state_neighbours; /* neighbouring heads of values share one of keys, and beta and alpha a matrix */
    bool long_context;     /* its own keys of YaRN, and queries that are scaled by their position */
    bool apart;            /* layers with a window have heads of their own size and number (lanes.h) */
    bool v_norm;   /* values are normalised, too; they are made of the keys where there is no attn_v */
    bool unscaled; /* scores are not divided by the root of a head's size */
    bool capped;   /* logits are cap * tanh(logit / cap) */
    /* a feed-forward that all tokens go to, beside the experts where the file has some, each between norms */
    bool beside;
    bool per_layer; /* a token has an embedding for each layer, where the file has those */
    /* a model of so many layers scales scores by n_embd / n_head, not by the head's size */
    uint32_t wide_layers;
    bool fused; /* queries, keys and values are one matrix, and so are gates and ups */
    /* divisors of RoPE's angles for the trained context and for longer ones, and what is turned grows (LongRoPE) */
    bool long_rope;
    uint32_t unturned_every; /* of so many layers the last turns nothing by RoPE; 0: all turn */
} model_arch;

const model_arch *model_arch_at(size_t i); /* those that are built; NULL behind the last */

/* An architecture that is not: what it lacks here, and which models to take instead. */
typedef struct model_arch_refused {
    const char *name, *families, *lacks, *instead;
} model_arch_refused;

const model_arch_refused *model_arch_refused_at(size_t i); /* NULL behind the last */

typedef struct model_hyper {
    const model_arch *arch;
    uint32_t n_layer, n_embd, n_head, n_head_kv, head_dim, n_rot, n_vocab, n_ctx;
    uint32_t n_ff;                      /* of one expert, where there are experts */
    uint32_t n_experts, n_experts_used; /* 0: no mixture */
    uint32_t n_ff_shared;               /* of the expert of all tokens; 0: there is none */
    /* what the file calls layers: those behind n_layer predict tokens ahead, and are left out */
    uint32_t n_blocks;
    /*
     * Layers that keep a state: bit per layer, and what it is made of. Heads of queries and keys, heads of
     * values, all of state_dim; a convolution over n_taps tokens before them.
     */
    uint64_t recurrent[1024 / 64];
    uint32_t n_rows_layers; /* the others */
    uint32_t n_state_keys, n_state_values, state_dim, n_taps;
    float norm_eps, attn_scale;
    /* The angle of pair i at phase p is p / rope_factor * rope_base^(-2i / n_rot) / rope_freqs[i]. */
    double rope_base, rope_factor;
    /* LongRoPE: what keys and queries are multiplied by where they are turned (else 1), and the trained context. */
    double rope_growth;
    uint32_t rope_trained;
    /*
     * YaRN (Peng et al. 2023, section 3.2), yarn_factor > 1: pairs up to yarn_low keep their angle, those from
     * yarn_high on are divided by the factor, those between by something between. It also scales every key and
     * query; that is in attn_scale.
     */
    double yarn_factor, yarn_low, yarn_high;
    /* A query at phase p is multiplied by 1 + q_scale * ln(1 + floor(p / q_scale_every)); 0: no query is. */
    double q_scale;
    uint32_t q_scale_every;
    uint64_t unturned[1024 / 64]; /* layers whose queries and keys have no place: bit per layer */
    /*
     * Layers with a window: row p is read from position q when q - p < window, and rope_base is another one.
     */
    uint32_t window; /* 0: no layer has one */
    uint64_t windowed[1024 / 64];
    double window_rope_base; /* 0: rope_base, and all that stretches it */
    /*
     * Where layers with a window have heads of another size and number (0: they do not): theirs, and the
     * number that the other layers have. Then n_head_kv and head_dim are those of the lanes (lanes.h).
     */
    uint32_t window_head_dim, window_n_rot, n_head_kv_window, n_head_kv_all;
    uint32_t n_sharing;            /* so many of the last layers read the rows of one before them */
    uint32_t n_ff_sharing;         /* n_ff in those; 0: the same */
    uint32_t n_embd_layer;         /* of a token's embeddings for each layer; 0: it has none */
    float final_cap;               /* 0: logits are not capped */
    float embd_scale, logit_scale; /* what embeddings and logits are multiplied by */
} model_hyper;

static inline bool model_layer_has_window(const model_hyper *h, uint32_t layer)
{
    return h->window && h->windowed[layer / 64] >> layer % 64 & 1;
}

/* Bytes of a token's rows in layers with a window; 0 where all have one: then none is outside of policy (docs/kv.md). */
uint64_t model_window_bytes(const model_hyper *h);

static inline bool model_layer_is_turned(const model_hyper *h, uint32_t layer)
{
    return !(h->unturned[layer / 64] >> layer % 64 & 1);
}

/* Are rows of this layer read as if they were nearer where they are folded? */
static inline bool model_layer_folds(const model_hyper *h, uint32_t layer)
{
    return !model_layer_has_window(h, layer) && model_layer_is_turned(h, layer);
}

static inline bool model_layer_is_recurrent(const model_hyper *h, uint32_t layer)
{
    return h->recurrent[layer / 64] >> layer % 64 & 1;
}

static inline bool model_layer_is_sharing(const model_hyper *h, uint32_t layer)
{
    return layer + h->n_sharing >= h->n_layer && layer < h->n_layer;
}

/*
 * Where a layer's rows are: its place among those that have some (model_rows_shape.n_layer counts these). A layer
 * that shares reads those of the last one of its kind.
 */
static inline uint32_t model_layer_rows(const model_hyper *h, uint32_t layer)
{
    uint32_t n = layer;
    if (h->n_sharing && layer + h->n_sharing >= h->n_layer) {
        n = h->n_rows_layers;
        if (layer == h->n_layer) return n;
        while (n > 1 && model_layer_has_window(h, n - 1) != model_layer_has_window(h, layer)) n--;
        return n - 1;
    }
    for (uint32_t l = 0; l < layer; l++) n -= model_layer_is_recurrent(h, l);
    return n;
}

/* Heads of one layer, which may be others than its lanes. */
static inline uint32_t model_layer_head_dim(const model_hyper *h, uint32_t layer)
{
    return h->window_head_dim && model_layer_has_window(h, layer) ? h->window_head_dim : h->head_dim;
}

static inline uint32_t model_layer_heads_kv(const model_hyper *h, uint32_t layer)
{
    if (!h->window_head_dim) return h->n_head_kv;
    return model_layer_has_window(h, layer) ? h->n_head_kv_window : h->n_head_kv_all;
}

static inline uint32_t model_layer_query_width(const model_hyper *h, uint32_t layer)
{
    return h->n_head * model_layer_head_dim(h, layer);
}

static inline uint32_t model_layer_key_width(const model_hyper *h, uint32_t layer)
{
    return model_layer_heads_kv(h, layer) * model_layer_head_dim(h, layer);
}

static inline uint32_t model_layer_n_ff(const model_hyper *h, uint32_t layer)
{
    return h->n_ff_sharing && model_layer_is_sharing(h, layer) ? h->n_ff_sharing : h->n_ff;
}

/* Floats of a token's queries, and of its keys (or values), in the lanes of one layer. */
static inline uint32_t model_query_width(const model_hyper *h)
{
    return h->n_head * h->head_dim;
}

static inline uint32_t model_key_width(const model_hyper *h)
{
    return h->n_head_kv * h->head_dim;
}

/* Numbers of the state's convolution, of its values, and of one layer's state. */
static inline uint32_t model_state_channels(const model_hyper *h)
{
    return (2 * h->n_state_keys + h->n_state_values) * h->state_dim;
}

static inline uint32_t model_state_values(const model_hyper *h)
{
    return h->n_state_values * h->state_dim;
}

static inline size_t model_state_floats(const model_hyper *h)
{
    return h->n_taps ? (size_t)(h->n_taps - 1) * model_state_channels(h) +
                           (size_t)model_state_values(h) * h->state_dim
                     : 0;
}

/*
 * Tensors of a layer: X(field, "name behind blk.N.", n_in, n_out or 0 for a vector, presence). Sizes are
 * expressions over a model_hyper *h; presence: ARCH_MUST, or the flag of the architecture that asks for it
 * (ARCH_STACK: such a matrix for each expert; ARCH_ROWS and ARCH_STATE: in layers with rows, or with a
 * state). In order of the forward pass.
 */
/* clang-format off */
#define MODEL_LAYER_TENSORS(X)                                                                                \
    X(attn_norm, "attn_norm.weight",   h->n_embd, 0, ARCH_MUST)                                               \
    X(q,         "attn_q.weight",      h->n_embd, model_layer_query_width(h, layer), ARCH_UNGATED)            \
    X(q_gated,   "attn_q.weight",      h->n_embd, 2 * h->n_head * h->head_dim, ARCH_GATED)                    \
    X(k,         "attn_k.weight",      h->n_embd, model_layer_key_width(h, layer), ARCH_KEYS)                 \
    X(v,         "attn_v.weight",      h->n_embd, model_layer_key_width(h, layer), ARCH_VALUES)               \
    X(qkv,       "attn_qkv.weight",    h->n_embd, model_layer_query_width(h, layer) + 2 * model_layer_key_width(h, layer), ARCH_IN_ONE) \
    X(q_bias,    "attn_q.bias",        h->n_head * h->head_dim, 0, ARCH_BIAS)                                 \
    X(k_bias,    "attn_k.bias",        h->n_head_kv * h->head_dim, 0, ARCH_BIAS)                              \
    X(v_bias,    "attn_v.bias",        h->n_head_kv * h->head_dim, 0, ARCH_BIAS)                              \
    X(q_norm,    "attn_q_norm.weight", model_layer_head_dim(h, layer), 0, ARCH_QK_NORM)                       \
    X(k_norm,    "attn_k_norm.weight", model_layer_head_dim(h, layer), 0, ARCH_K_NORM)                        \
    X(o,         "attn_output.weight", model_layer_query_width(h, layer), h->n_embd, ARCH_ROWS)               \
    X(o_bias,    "attn_output.bias",   h->n_embd, 0, ARCH_BIASES)                                             \
    X(sinks,     "attn_sinks.weight",  h->n_head, 0, ARCH_SINKS)                                              \
    X(mix,       "attn_qkv.weight",    h->n_embd, model_state_channels(h), ARCH_STATE)                        \
    X(z,         "attn_gate.weight",   h->n_embd, model_state_values(h), ARCH_STATE)                          \
    X(alpha,     "ssm_alpha.weight",   h->n_embd, h->n_state_values, ARCH_APART)                              \
    X(beta,      "ssm_beta.weight",    h->n_embd, h->n_state_values, ARCH_APART)                              \
    X(both,      "ssm_ba.weight",      h->n_embd, 2 * h->n_state_values, ARCH_TOGETHER)                       \
    X(taps,      "ssm_conv1d.weight",  h->n_taps, model_state_channels(h), ARCH_STATE)                        \
    X(decay,     "ssm_a",              h->n_state_values, 0, ARCH_STATE)                                      \
    X(dt,        "ssm_dt.bias",        h->n_state_values, 0, ARCH_STATE)                                      \
    X(state_norm, "ssm_norm.weight",   h->state_dim, 0, ARCH_STATE)                                           \
    X(state_out, "ssm_out.weight",     model_state_values(h), h->n_embd, ARCH_STATE)                          \
    X(attn_post, "post_attention_norm.weight", h->n_embd, 0, ARCH_POST_NORM)                                  \
    X(ffn_norm,  "ffn_norm.weight",    h->n_embd, 0, ARCH_FFN_NORM)                                           \
    X(ffn_pre,   "post_attention_norm.weight", h->n_embd, 0, ARCH_FFN_PRE)                                    \
    X(router,    "ffn_gate_inp.weight", h->n_embd, h->n_experts, ARCH_EXPERTS)                                \
    X(router_bias, "ffn_gate_inp.bias", h->n_experts, 0, ARCH_BIASES)                                        \
    X(gate,      "ffn_gate.weight",    h->n_embd, model_layer_n_ff(h, layer), ARCH_DENSE_PARTS)               \
    X(up,        "ffn_up.weight",      h->n_embd, model_layer_n_ff(h, layer), ARCH_DENSE_PARTS)               \
    X(gate_up,   "ffn_up.weight",      h->n_embd, 2 * model_layer_n_ff(h, layer), ARCH_IN_ONE)                \
    X(down,      "ffn_down.weight",    model_layer_n_ff(h, layer), h->n_embd, ARCH_DENSE)                     \
    X(gate_exps, "ffn_gate_exps.weight", h->n_embd, h->n_ff, ARCH_HALF)                                       \
    X(up_exps,   "ffn_up_exps.weight", h->n_embd, h->n_ff, ARCH_HALF)                                         \
    X(gate_up_exps, "ffn_gate_up_exps.weight", h->n_embd, 2 * h->n_ff, ARCH_FUSED)                            \
    X(down_exps, "ffn_down_exps.weight", h->n_ff, h->n_embd, ARCH_STACK)                                      \
    X(gate_bias, "ffn_gate_exps.bias", h->n_ff, h->n_experts, ARCH_BIASES)                                    \
    X(up_bias,   "ffn_up_exps.bias",   h->n_ff, h->n_experts, ARCH_BIASES)                                    \
    X(down_bias, "ffn_down_exps.bias", h->n_embd, h->n_experts, ARCH_BIASES)                                  \
    X(shared,    "ffn_gate_inp_shexp.weight", h->n_embd, 0, ARCH_SHARED)                                      \
    X(gate_all,  "ffn_gate_shexp.weight", h->n_embd, h->n_ff_shared, ARCH_SHARED)                             \
    X(up_all,    "ffn_up_shexp.weight", h->n_embd, h->n_ff_shared, ARCH_SHARED)                               \
    X(down_all,  "ffn_down_shexp.weight", h->n_ff_shared, h->n_embd, ARCH_SHARED)                             \
    X(router_scale, "ffn_gate_inp.scale", h->n_embd, 0, ARCH_BESIDE)                                          \
    X(gate_beside, "ffn_gate.weight",  h->n_embd, h->n_ff_shared, ARCH_BESIDE)                                \
    X(up_beside, "ffn_up.weight",      h->n_embd, h->n_ff_shared, ARCH_BESIDE)                                \
    X(down_beside, "ffn_down.weight",  h->n_ff_shared, h->n_embd, ARCH_BESIDE)                                \
    X(all_post,  "post_ffw_norm_1.weight", h->n_embd, 0, ARCH_BESIDE)                                         \
    X(exps_norm, "pre_ffw_norm_2.weight", h->n_embd, 0, ARCH_BESIDE)                                          \
    X(exps_post, "post_ffw_norm_2.weight", h->n_embd, 0, ARCH_BESIDE)                                         \
    X(exps_scale, "ffn_down_exps.scale", h->n_experts, 0, ARCH_EXPERTS_SCALE)                                 \
    X(ffn_post,  "post_ffw_norm.weight", h->n_embd, 0, ARCH_POST_NORM)                                        \
    X(own_gate,  "inp_gate.weight",    h->n_embd, h->n_embd_layer, ARCH_PER_LAYER)                            \
    X(own_out,   "proj.weight",        h->n_embd_layer, h->n_embd, ARCH_PER_LAYER)                            \
    X(own_post,  "post_norm.weight",   h->n_embd, 0, ARCH_PER_LAYER)                                          \
    X(out_scale, "layer_output_scale.weight", 1, 0, ARCH_OUT_SCALE)
/* clang-format on */

#define MODEL_LAYER_FIELD(field, name, n_in, n_out, presence) const gguf_tensor *field;
typedef struct model_layer_tensors {
    MODEL_LAYER_TENSORS(MODEL_LAYER_FIELD) /* NULL: not in the file */
} model_layer_tensors;

typedef struct model_tensors {
    const gguf_tensor *token_embd, *output_norm;
    const gguf_tensor *output;                 /* token_embd when the file has none (tied) */
    const gguf_tensor *rope_freqs;             /* may be NULL */
    const gguf_tensor *rope_long, *rope_short; /* LongRoPE's; may be NULL */
    /* A token's embeddings for each layer, and what adds to them; NULL: it has none. */
    const gguf_tensor *own_embd, *own_model, *own_norm;
    model_layer_tensors *layers; /* [n_layer] */
} model_tensors;

int model_arch_read(const gguf_file *f, model_hyper *ret, base_err *err);
int model_arch_bind(const gguf_file *f, const model_hyper *h, model_tensors *ret, base_err *err);
void model_arch_unbind(model_tensors *t);
/* Of the file but not of the text's forward pass: blocks that predict ahead, a vision or audio encoder. */
bool model_arch_is_left_out(const model_hyper *h, const gguf_tensor *t);

/* model_info.hash of a file that is not loaded; path: for a model without a name of its own. */
void model_hash_of(const gguf_file *f, const char *path, char ret[65]);

#endif
