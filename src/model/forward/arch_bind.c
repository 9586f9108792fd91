/* Binding tensors to the fields of a layer: see arch.h. */
#include "model/forward/arch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

typedef enum arch_presence {
    ARCH_MUST,
    ARCH_ROWS,   /* in layers with rows */
    ARCH_KEYS,   /* in layers with rows of their own */
    ARCH_VALUES, /* ... where values are not made of the keys */
    ARCH_K_NORM,
    ARCH_UNGATED, /* in those whose output passes no gate */
    ARCH_GATED,   /* in those whose output does */
    ARCH_STATE,   /* in layers that keep a state */
    ARCH_APART,   /* ... whose beta and alpha are matrices of their own */
    ARCH_TOGETHER,
    ARCH_FFN_NORM,
    ARCH_FFN_PRE, /* the same norm under its other name */
    ARCH_SHARED,
    ARCH_BIAS,
    ARCH_BIASES, /* those that few have */
    ARCH_SINKS,
    ARCH_QK_NORM,
    ARCH_POST_NORM,
    ARCH_DENSE,       /* one feed-forward for all tokens */
    ARCH_DENSE_PARTS, /* ... whose gate and up are matrices of their own */
    ARCH_IN_ONE,      /* what other architectures have in several matrices */
    ARCH_EXPERTS,     /* what chooses experts */
    ARCH_STACK,       /* a matrix for each expert */
    ARCH_HALF,        /* ... which may be two in one (ARCH_FUSED) where the architecture writes those */
    ARCH_FUSED,
    ARCH_BESIDE,        /* of experts beside a feed-forward of all tokens */
    ARCH_EXPERTS_SCALE, /* what an expert's output is multiplied by */
    ARCH_PER_LAYER,
    ARCH_OUT_SCALE,
} arch_presence;

/* Does the architecture compute such a tensor, and can it do without? */
typedef struct arch_demand {
    bool used, must;
} arch_demand;

static arch_demand demand_of(const model_hyper *h, uint32_t layer, arch_presence presence)
{
    const model_arch *a = h->arch;
    const bool is_hybrid = a->rows_every, has_rows = !model_layer_is_recurrent(h, layer),
               owns_rows = has_rows && !model_layer_is_sharing(h, layer), mixture = h->n_experts > 0;
    const arch_demand demands[] = {
        [ARCH_MUST] = {true, true},
        [ARCH_ROWS] = {has_rows, true},
        [ARCH_KEYS] = {owns_rows && !a->fused, true},
        [ARCH_VALUES] = {owns_rows && !a->fused, !a->v_norm},
        [ARCH_K_NORM] = {owns_rows && a->qk_norm, true},
        [ARCH_UNGATED] = {has_rows && !is_hybrid && !a->fused, true},
        [ARCH_GATED] = {has_rows && is_hybrid, true},
        [ARCH_STATE] = {!has_rows, true},
        [ARCH_APART] = {!has_rows && !a->state_neighbours, true},
        [ARCH_TOGETHER] = {!has_rows && a->state_neighbours, true},
        [ARCH_FFN_NORM] = {!a->ffn_pre, true},
        [ARCH_FFN_PRE] = {a->ffn_pre, true},
        [ARCH_SHARED] = {a->shared, true},
        [ARCH_BIAS] = {has_rows && !is_hybrid, a->qkv_bias},
        [ARCH_BIASES] = {a->biases, true},
        [ARCH_SINKS] = {a->sinks, true},
        [ARCH_QK_NORM] = {has_rows && a->qk_norm, true},
        [ARCH_POST_NORM] = {a->post_norm, true},
        [ARCH_DENSE] = {!mixture, true},
        [ARCH_DENSE_PARTS] = {!mixture && !a->fused, true},
        [ARCH_IN_ONE] = {a->fused, true},
        [ARCH_EXPERTS] = {mixture, true},
        [ARCH_STACK] = {mixture, true},
        [ARCH_HALF] = {mixture, !a->beside},
        [ARCH_FUSED] = {mixture && a->beside, false},
        [ARCH_BESIDE] = {mixture && a->beside, true},
        [ARCH_EXPERTS_SCALE] = {mixture && a->beside, false},
        [ARCH_PER_LAYER] = {h->n_embd_layer > 0, true},
        [ARCH_OUT_SCALE] = {a->apart, false},
    };
    return demands[presence];
}

/* What a tensor must be: n_out 0 a vector, n_stack 0 or 1 one matrix. */
typedef struct arch_shape {
    uint64_t n_in, n_out, n_stack;
} arch_shape;

/* Shape and type of one tensor; vectors are F32, matrices any type of the table. */
static int check_tensor(const gguf_tensor *t, const char *name, arch_shape want, base_err *err)
{
    uint32_t elements, bytes;
    const uint64_t n_in = want.n_in, n_out = want.n_out;
    const uint64_t want_out = n_out ? n_out : 1, want_stack = want.n_stack ? want.n_stack : 1;

    if (t->ne[0] != n_in || t->ne[1] != want_out || t->ne[2] != want_stack || t->ne[3] != 1)
        return base_fail(err, BASE_E_FORMAT,
            "tensor %s is %llu x %llu x %llu; the metadata asks for %llu x %llu x %llu", name,
            (unsigned long long)t->ne[0], (unsigned long long)t->ne[1], (unsigned long long)t->ne[2],
            (unsigned long long)n_in, (unsigned long long)want_out, (unsigned long long)want_stack);
    if (!gguf_tensor_block(t->type, &elements, &bytes) || (!n_out && t->type != GGUF_TENSOR_F32))
        return base_fail(err, BASE_E_UNSUPPORTED, "tensor %s has type %s, which is not built here", name,
            gguf_tensor_type_name(t->type));
    return 0;
}

static int bind_one(const gguf_file *f, const char *name, arch_shape shape, bool must,
    const gguf_tensor **ret, uint64_t *n_bound, base_err *err)
{
    const gguf_tensor *t = gguf_find_tensor(f, name);
    *ret = NULL;
    if (!t) return must ? base_fail(err, BASE_E_FORMAT, "tensor %s is missing", name) : 0;
    int rc = check_tensor(t, name, shape, err);
    if (rc) return rc;
    *ret = t;
    ++*n_bound;
    return 0;
}

static int bind_layer(const gguf_file *f, const model_hyper *h, uint32_t layer, model_layer_tensors *ret,
    uint64_t *n_bound, base_err *err)
{
    const struct {
        const char *name;
        uint64_t n_in, n_out;
        arch_presence presence;
        const gguf_tensor **to;
    } table[] = {
#define ROW(field, name, n_in, n_out, presence) {name, n_in, n_out, presence, &ret->field},
        MODEL_LAYER_TENSORS(ROW)
#undef ROW
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        char name[64];
        arch_demand demand = demand_of(h, layer, table[i].presence);
        if (!demand.used) continue;
        snprintf(name, sizeof name, "blk.%u.%s", layer, table[i].name);
        const bool is_stack = table[i].presence == ARCH_STACK || table[i].presence == ARCH_HALF ||
                              table[i].presence == ARCH_FUSED;
        arch_shape shape = {table[i].n_in, table[i].n_out, is_stack ? h->n_experts : 1};
        int rc = bind_one(f, name, shape, demand.must, table[i].to, n_bound, err);
        if (rc) return rc;
    }
    if (h->n_experts && !ret->gate_up_exps && !(ret->gate_exps && ret->up_exps))
        return base_fail(err, BASE_E_FORMAT, "tensor blk.%u.ffn_gate_up_exps.weight is missing", layer);
    return 0;
}

bool model_arch_is_left_out(const model_hyper *h, const gguf_tensor *t)
{
    static const char *const encoders[] = {"v.", "a.", "mm."};
    char name[64];
    unsigned block;
    for (size_t i = 0; i < sizeof encoders / sizeof *encoders; i++)
        if (t->name.len > strlen(encoders[i]) && !memcmp(t->name.ptr, encoders[i], strlen(encoders[i])))
            return true;
    snprintf(name, sizeof name, "%.*s", (int)(t->name.len < 63 ? t->name.len : 63), t->name.ptr);
    if (sscanf(name, "blk.%u.", &block) != 1) return false;
    if (block >= h->n_layer) return block < h->n_blocks;
    return model_layer_is_sharing(h, block) && (strstr(name, ".attn_k") || strstr(name, ".attn_v"));
}

/* A tensor nobody bound would be arithmetic left out. Name the first. */
static int refuse_unbound(const gguf_file *f, const model_hyper *h, const model_tensors *t, base_err *err)
{
    for (uint64_t i = 0; i < gguf_n_tensors(f); i++) {
        const gguf_tensor *one = gguf_tensor_at(f, i);
        bool known = one == t->token_embd || one == t->output_norm || one == t->output ||
                     one == t->rope_freqs || one == t->rope_long || one == t->rope_short ||
                     one == t->own_embd || one == t->own_model || one == t->own_norm ||
                     model_arch_is_left_out(h, one);
        for (uint32_t l = 0; l < h->n_layer && !known; l++) {
            const model_layer_tensors *layer = &t->layers[l];
#define KNOWN(field, name, n_in, n_out, presence) known = known || one == layer->field;
            MODEL_LAYER_TENSORS(KNOWN)
#undef KNOWN
        }
        if (!known)
            return base_fail(err, BASE_E_UNSUPPORTED,
                "tensor %.*s is nothing that this architecture computes",
                (int)(one->name.len < 64 ? one->name.len : 64), one->name.ptr);
    }
    return 0;
}

static int bind_all(
    const gguf_file *f, const model_hyper *h, model_tensors *t, uint64_t *n_bound, base_err *err)
{
    int rc;
    if ((rc = bind_one(f, "token_embd.weight", (arch_shape){h->n_embd, h->n_vocab}, true, &t->token_embd,
             n_bound, err)))
        return rc;
    if ((rc = bind_one(
             f, "output_norm.weight", (arch_shape){h->n_embd}, true, &t->output_norm, n_bound, err)))
        return rc;
    if ((rc = bind_one(
             f, "output.weight", (arch_shape){h->n_embd, h->n_vocab}, false, &t->output, n_bound, err)))
        return rc;
    if ((rc = bind_one(
             f, "rope_freqs.weight", (arch_shape){h->n_rot / 2}, false, &t->rope_freqs, n_bound, err)))
        return rc;
    if (h->arch->long_rope && ((rc = bind_one(f, "rope_factors_long.weight", (arch_shape){h->n_rot / 2},
                                    false, &t->rope_long, n_bound, err)) ||
                                  (rc = bind_one(f, "rope_factors_short.weight", (arch_shape){h->n_rot / 2},
                                       false, &t->rope_short, n_bound, err))))
        return rc;
    const bool own = h->n_embd_layer > 0;
    const uint64_t all = (uint64_t)h->n_embd_layer * h->n_layer;
    if (own && ((rc = bind_one(f, "per_layer_token_embd.weight", (arch_shape){all, h->n_vocab}, true,
                     &t->own_embd, n_bound, err)) ||
                   (rc = bind_one(f, "per_layer_model_proj.weight", (arch_shape){h->n_embd, all}, true,
                        &t->own_model, n_bound, err)) ||
                   (rc = bind_one(f, "per_layer_proj_norm.weight", (arch_shape){h->n_embd_layer}, true,
                        &t->own_norm, n_bound, err))))
        return rc;
    if (!t->output) t->output = t->token_embd;
    for (uint32_t l = 0; l < h->n_layer; l++)
        if ((rc = bind_layer(f, h, l, &t->layers[l], n_bound, err))) return rc;
    return 0;
}

int model_arch_bind(const gguf_file *f, const model_hyper *h, model_tensors *ret, base_err *err)
{
    model_tensors t = {.layers = base_xcalloc(h->n_layer, sizeof *t.layers)};
    uint64_t n_bound = 0;
    int rc = bind_all(f, h, &t, &n_bound, err);
    if (!rc && n_bound < gguf_n_tensors(f)) rc = refuse_unbound(f, h, &t, err);
    if (rc) {
        model_arch_unbind(&t);
        return rc;
    }
    *ret = t;
    return 0;
}

void model_arch_unbind(model_tensors *t)
{
    free(t->layers);
    t->layers = NULL;
}
