/*
 * A model's insides, for the files of this folder: weights by layer, and the buffers in which a forward pass
 * computes. Nobody else includes this.
 */
#ifndef KVIST_MODEL_FORWARD_H
#define KVIST_MODEL_FORWARD_H

#include "base/buf.h"
#include "model/forward/arch.h"
#include "model/file/gguf.h"
#include "model/forward/model.h"
#include "model/ops/ops.h"

enum {
    FORWARD_BATCH = 512, /* tokens that go through the layers together; longer batches are split */
    FORWARD_HEADS = 64,  /* wanted tokens whose logits are made together */
};

typedef struct forward_layer {
    ops_weight *q, *k, *v, *o;    /* q of a gated layer: all queries, then all gates */
    ops_weight *gate, *up, *down; /* of a mixture: of all experts */
    ops_buffer *attn_norm, *ffn_norm;
    ops_buffer *router; /* [n_experts][n_embd], or NULL */
    /* gpt-oss, else NULL: [n_experts], [n_experts][n_ff], the same, [n_experts][n_embd]; [n_embd], [n_head] */
    ops_buffer *router_bias, *gate_bias, *up_bias, *down_bias, *o_bias, *sinks;
    /* A layer that keeps a state; else NULL. taps: [n_taps][channels] */
    ops_weight *mix, *z, *alpha, *beta, *state_out;
    ops_buffer *taps, *decay, *dt, *state_norm;
    ops_weight *gate_all, *up_all, *down_all; /* the expert of all tokens, and who says how much; or NULL */
    ops_buffer *shared;
    ops_buffer *q_bias, *k_bias, *v_bias, *q_norm, *k_norm, *attn_post, *ffn_post; /* each may be NULL */
    /*
     * Of experts beside the expert of all tokens, each between norms (Gemma 4), else NULL: the norms of the
     * router, before the experts, behind each of the two; what an expert's output is multiplied by, or NULL.
     */
    ops_buffer *router_norm, *exps_norm, *all_post, *exps_post, *exps_scale;
    ops_weight *own_gate, *own_out; /* how a token's embedding for this layer is added; or NULL */
    ops_buffer *own_post;
    float out_scale; /* x is multiplied by it in the end; 0: by nothing */
} forward_layer;

/* Everything that a micro-batch needs, made once. */
typedef struct forward_scratch {
    ops_buffer *x;       /* [FORWARD_BATCH][n_embd], the residual stream */
    ops_buffer *qkv;     /* [FORWARD_BATCH][...] queries (gates) keys values; or what a state is made of */
    ops_buffer *mixed;   /* [FORWARD_BATCH][n_q or a state's values] */
    ops_buffer *sums;    /* [FORWARD_BATCH][n_head][2], attention's largest scores and sums */
    ops_buffer *gate_up; /* [FORWARD_BATCH][2 n_ff], of the expert of all tokens where there is a mixture */
    /* [FORWARD_BATCH][n_embd], what a half adds to x, where it is normalised first; else NULL */
    ops_buffer *branch;
    ops_buffer *chosen, *shares; /* [FORWARD_BATCH][n_experts_used], a mixture's: ids, weights; else NULL */
    ops_buffer *share_all;       /* [FORWARD_BATCH] how much the expert of all tokens counts; else NULL */
    ops_buffer *logits;          /* [FORWARD_HEADS][n_vocab] */
    ops_buffer *rope;            /* [FORWARD_BATCH][n_rot] */
    ops_buffer *rope_window;     /* the same for layers with a window of another base; else NULL */
    ops_activations *wide;       /* FORWARD_BATCH rows of the widest product */
    /* host, [n_q]: one token's queries on their way to a model_capture */
    float *captured;
    ops_buffer *rope_own; /* [FORWARD_BATCH][n_rot], the batch's own gaps (turn.c) */
    /* Where layers have heads of other sizes (lanes.h), else NULL: their products; small heads in lanes. */
    ops_buffer *narrow, *small_lanes;
    ops_buffer *second;              /* [FORWARD_BATCH][n_embd] of experts beside a feed-forward; else NULL */
    ops_buffer *own_embd, *own_read; /* [FORWARD_BATCH][n_layer * n_embd_layer]; or NULL */
} forward_scratch;

/* The turns of the fold that was read last (turn.c). */
typedef struct forward_fold {
    uint32_t *gaps; /* [turns.n] */
    ops_buffer *table;
    uint32_t cap;
    uint8_t *layers; /* [n_layer] */
    ops_turns turns;
} forward_fold;

struct model {
    model_info info;
    char *path, *name;
    gguf_file *file;
    model_hyper hyper;
    model_tensors tensors;
    model_tokenizer *tokenizer;
    model_template *template;
    model_ops *ops;
    forward_layer *layers; /* [n_layer] */
    ops_weight *output;
    ops_buffer *output_norm;
    ops_buffer *ones;      /* [head_dim], the weights of a norm that has none; or NULL */
    ops_weight *own_model; /* embeddings for each layer: what adds to the token's, and its norm; or NULL */
    ops_buffer *own_norm;
    float *rope_factors; /* [n_rot / 2], divisors of angles (the file's, YaRN's), or NULL */
    void (*tell)(void *user, const char *sentence); /* model_options.notice */
    void *tell_user;
    char notice[560];
    forward_scratch scratch;
    forward_fold fold;
    model_lane_list *near; /* [lanes] forward_near's; NULL: no layer has a window */
};

/*
 * `rows` with lists that begin, in layers with a window, at the block in which the first of the last n rows begins to
 * read (n 0: the token that comes): a backend that copies what lists name need not hold what such a layer keeps behind
 * it. Tiles stay as they are, since only whole blocks in front are left out. Valid until the next call.
 */
model_rows_view forward_near(model *m, const model_rows_view *rows, uint32_t n);

/* Floats of a token's heads in the layers whose heads are not their lanes (lanes.h); 0: there are none. */
static inline uint32_t forward_narrow_width(const model_hyper *h)
{
    uint32_t most = 0;
    for (uint32_t l = 0; l < h->n_layer && h->window_head_dim; l++) {
        const uint32_t one = model_layer_query_width(h, l) + 2 * model_layer_key_width(h, l);
        if (one > most) most = one;
    }
    return most;
}

/* A token's row of scratch.qkv in a layer with rows: queries, their gates where there are some, keys, values. */
static inline uint32_t forward_qkv_width(const model_hyper *h)
{
    return (h->arch->rows_every ? 2 : 1) * model_query_width(h) + 2 * model_key_width(h);
}

/* And in one with a state: what is convolved, z, alpha, beta. */
static inline uint32_t forward_state_width(const model_hyper *h)
{
    return model_state_channels(h) + model_state_values(h) + 2 * h->n_state_values;
}

/* scratch.c: all buffers of the scratch, sized for h; bytes of them all, before anything is allocated. */
int forward_scratch_make(model *m, base_err *err);
void forward_scratch_free(model *m);
uint64_t forward_scratch_bytes(const model_hyper *h);
/* weights.c: packs everything; an error leaves a part, which free takes as well as a whole. */
typedef struct forward_loader {
    model *m;
    const model_options *options;
    uint64_t done, total; /* bytes of the file */
    uint32_t layer;       /* whose tensors these are; n_layer: no layer's */
} forward_loader;
int forward_load_weights(forward_loader *l, base_err *err);
/* What those take that stay in the host's memory though a GPU computes (model_options). */
uint64_t forward_bytes_on_host(const forward_loader *l);
void forward_free_weights(model *m);
/* turn.c: the turns by which the view's rows are read, until the next call; *ret NULL: nothing is folded. */
int forward_turns_of(model *m, const model_rows_view *rows, const ops_turns **ret, base_err *err);
void forward_turns_free(model *m);
/*
 * model.c: computes. Where the GPU is gone (BASE_E_DEVICE), the weights are packed for the CPU, which gives the same
 * bits, the person is told why, and `compute` is called once more.
 */
int model_try(
    model *m, int (*compute)(model *m, const void *what, base_err *err), const void *what, base_err *err);

#endif
