/*
 * Weights out of the file into the backend's memory: what each tensor of a layer becomes stands in one table. A
 * tensor's pages are let go behind it.
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/mem.h"
#include "model/file/quant.h"
#include "model/forward/forward.h"

static int load_step(forward_loader *l, const gguf_tensor *t, base_err *err)
{
    int rc = gguf_check_unchanged(l->m->file, l->m->path, err);
    if (rc) return rc;
    l->done += t->n_bytes;
    if (l->options->cancel && atomic_load_explicit(l->options->cancel, memory_order_relaxed))
        return base_fail(err, BASE_E_CANCELLED, "loading was cancelled");
    if (l->options->progress)
        l->options->progress(l->options->user, (double)l->done / (double)l->total, "preparing the weights");
    return 0;
}

/* Lets the pages of a tensor go: they stay in the page cache, and leave our memory. */
static void release_pages(const gguf_tensor *t)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), from = ((uintptr_t)t->data + page - 1) / page * page;
    uintptr_t to = ((uintptr_t)t->data + t->n_bytes) / page * page;
    if (to > from) madvise((void *)from, to - from, MADV_DONTNEED);
}

/* Where a layer's matrices lie: what is not left to the GPU's memory stays in the host's. */
static bool stays_on_host(const forward_loader *l, bool of_experts)
{
    const model_options *o = l->options;
    if (!l->m->ops->pack_host || l->layer >= l->m->hyper.n_layer) return false;
    return (o->gpu_layers && l->layer >= o->gpu_layers) || (o->cpu_moe && of_experts);
}

static bool is_stack(const gguf_tensor *t)
{
    return t->ne[2] > 1;
}

static int pack_where_it_lies(
    forward_loader *l, const gguf_tensor *t, bool of_experts, ops_weight **ret, base_err *err)
{
    model_ops *ops = l->m->ops;
    return (stays_on_host(l, of_experts) ? ops->pack_host : ops->pack)(ops, ret, t, err);
}

static int pack(forward_loader *l, const gguf_tensor *t, ops_weight **ret, base_err *err)
{
    model *m = l->m;
    if (!t) return 0;
    if (t->ne[0] % 32)
        return base_fail(err, BASE_E_UNSUPPORTED,
            "tensor %.*s has rows of %" PRIu64 "; kvist needs a multiple of 32",
            (int)(t->name.len < 64 ? t->name.len : 64), t->name.ptr, t->ne[0]);
    madvise((void *)((uintptr_t)t->data / 4096 * 4096), t->n_bytes, MADV_WILLNEED);
    int rc = pack_where_it_lies(l, t, is_stack(t), ret, err); /* its sentence names the tensor */
    if (rc) return rc;
    /* Of a stack of experts a token reads those that it goes to. */
    m->info.weight_bytes_per_token +=
        m->ops->weight_bytes(*ret) * (is_stack(t) ? m->hyper.n_experts_used : 1) / t->ne[2];
    release_pages(t);
    return load_step(l, t, err);
}

static int check_finite(const gguf_tensor *t, base_err *err)
{
    if (quant_is_finite(t->type, t->data, (size_t)(t->ne[0] * t->ne[1]))) return 0;
    return base_fail(err, BASE_E_FORMAT, "tensor %.*s holds a number that is not finite: the file is damaged",
        (int)(t->name.len < 64 ? t->name.len : 64), t->name.ptr);
}

/* A vector of F32, or nothing for a tensor that the file does not have. */
static int copy_vector(forward_loader *l, const gguf_tensor *t, ops_buffer **ret, base_err *err)
{
    model *m = l->m;
    if (!t) return 0;
    int rc = check_finite(t, err);
    if (!rc) rc = m->ops->buffer_new(m->ops, ret, t->n_bytes, err);
    if (rc) return rc;
    m->ops->upload(m->ops, *ret, 0, t->data, t->n_bytes);
    m->info.weight_bytes_per_token += t->n_bytes;
    return load_step(l, t, err);
}

/* A router's matrix, or biases of experts, computed with as they are: some files have them in F16 or BF16. */
static int copy_floats(forward_loader *l, const gguf_tensor *t, ops_buffer **ret, base_err *err)
{
    model *m = l->m;
    if (!t) return 0;
    const size_t n = (size_t)(t->ne[0] * t->ne[1]), n_bytes = n * sizeof(float);
    int rc = check_finite(t, err);
    if (!rc) rc = m->ops->buffer_new(m->ops, ret, n_bytes, err);
    if (rc) return rc;
    float *values = malloc(n_bytes);
    if (!values) return base_fail(err, BASE_E_NOMEM, "no memory for a tensor of %zu numbers", n);
    quant_to_f32(t->type, t->data, n, values);
    m->ops->upload(m->ops, *ret, 0, values, n_bytes);
    free(values);
    m->info.weight_bytes_per_token += n_bytes;
    return load_step(l, t, err);
}

/* A convolution's taps, one row a tap: what a product over channels reads. */
static int copy_taps(forward_loader *l, const gguf_tensor *t, ops_buffer **ret, base_err *err)
{
    model *m = l->m;
    if (!t) return 0;
    const uint64_t n_taps = t->ne[0], n = t->ne[1];
    int rc = check_finite(t, err);
    if (!rc) rc = m->ops->buffer_new(m->ops, ret, (size_t)(n_taps * n) * sizeof(float), err);
    if (rc) return rc;
    float *in = base_xcalloc(n_taps * n, 2 * sizeof *in), *out = in + n_taps * n;
    quant_to_f32(t->type, t->data, (size_t)(n_taps * n), in);
    for (uint64_t i = 0; i < n; i++)
        for (uint64_t k = 0; k < n_taps; k++) out[k * n + i] = in[i * n_taps + k];
    m->ops->upload(m->ops, *ret, 0, out, (size_t)(n_taps * n) * sizeof *out);
    free(in);
    m->info.weight_bytes_per_token += n_taps * n * sizeof(float);
    return load_step(l, t, err);
}

/* Rows [first, first + n) of a matrix that holds several, one below another. */
static int pack_rows(
    forward_loader *l, const gguf_tensor *t, uint64_t first, uint64_t n, ops_weight **ret, base_err *err)
{
    if (!t) return 0;
    const uint64_t row_bytes = t->n_bytes / t->ne[1];
    gguf_tensor rows = *t;
    rows.data += first * row_bytes;
    rows.n_bytes = n * row_bytes;
    rows.ne[1] = n;
    return pack(l, &rows, ret, err);
}

static int pack_queries(forward_loader *l, const gguf_tensor *t, ops_weight **ret, base_err *err)
{
    return pack_rows(l, t, 0, model_layer_query_width(&l->m->hyper, l->layer), ret, err);
}

static int pack_keys(forward_loader *l, const gguf_tensor *t, ops_weight **ret, base_err *err)
{
    const model_hyper *h = &l->m->hyper;
    return pack_rows(
        l, t, model_layer_query_width(h, l->layer), model_layer_key_width(h, l->layer), ret, err);
}

static int pack_values(forward_loader *l, const gguf_tensor *t, ops_weight **ret, base_err *err)
{
    const model_hyper *h = &l->m->hyper;
    const uint32_t n = model_layer_key_width(h, l->layer);
    return pack_rows(l, t, model_layer_query_width(h, l->layer) + n, n, ret, err);
}

static int pack_gate(forward_loader *l, const gguf_tensor *t, ops_weight **ret, base_err *err)
{
    return t ? pack_rows(l, t, 0, t->ne[1] / 2, ret, err) : 0;
}

static int pack_up(forward_loader *l, const gguf_tensor *t, ops_weight **ret, base_err *err)
{
    return t ? pack_rows(l, t, t->ne[1] / 2, t->ne[1] / 2, ret, err) : 0;
}

/* Every how many rows of a matrix come together, and which of them: rows [first, first + n) of each `step`. */
typedef struct part {
    uint64_t step, first, n;
} part;

/* Packs such parts one behind another, and those of `then` behind them all (n 0: nothing). */
static int pack_parts(
    forward_loader *l, const gguf_tensor *t, part from, part then, ops_weight **ret, base_err *err)
{
    const part parts[] = {from, then};
    const size_t row_bytes = (size_t)(t->n_bytes / t->ne[1]);
    uint8_t *rows = malloc((size_t)t->n_bytes), *to = rows;
    if (!rows)
        return base_fail(err, BASE_E_NOMEM, "no memory to pack %llu bytes", (unsigned long long)t->n_bytes);
    for (size_t i = 0; i < 2; i++)
        for (uint64_t at = parts[i].first; parts[i].n && at < t->ne[1]; at += parts[i].step) {
            memcpy(to, t->data + at * row_bytes, parts[i].n * row_bytes);
            to += parts[i].n * row_bytes;
        }
    gguf_tensor sorted = *t;
    sorted.data = rows;
    sorted.n_bytes = (uint64_t)(to - rows);
    sorted.ne[1] = sorted.n_bytes / row_bytes;
    sorted.ne[2] = 1;
    int rc = pack_where_it_lies(l, &sorted, is_stack(t), ret, err);
    free(rows);
    if (rc) return rc;
    l->m->info.weight_bytes_per_token += l->m->ops->weight_bytes(*ret);
    release_pages(t);
    return load_step(l, t, err);
}

/* The file has head by head its queries' rows and its gates'; we have all queries first. */
static int pack_gated(forward_loader *l, const gguf_tensor *t, ops_weight **ret, base_err *err)
{
    const uint64_t d = l->m->hyper.head_dim;
    return t ? pack_parts(l, t, (part){2 * d, 0, d}, (part){2 * d, d, d}, ret, err) : 0;
}

/* Head of keys by head of keys the betas of its heads of values, then their alphas. */
static int pack_beta(forward_loader *l, const gguf_tensor *t, ops_weight **ret, base_err *err)
{
    const uint64_t n = l->m->hyper.n_state_values / (l->m->hyper.n_state_keys ? l->m->hyper.n_state_keys : 1);
    return t ? pack_parts(l, t, (part){2 * n, 0, n}, (part){0}, ret, err) : 0;
}

static int pack_alpha(forward_loader *l, const gguf_tensor *t, ops_weight **ret, base_err *err)
{
    const uint64_t n = l->m->hyper.n_state_values / (l->m->hyper.n_state_keys ? l->m->hyper.n_state_keys : 1);
    return t ? pack_parts(l, t, (part){2 * n, n, n}, (part){0}, ret, err) : 0;
}

/* Expert by expert the rows of its gate, then those of up. */
static int pack_half(forward_loader *l, const gguf_tensor *t, uint64_t first, ops_weight **ret, base_err *err)
{
    if (!t) return 0;
    gguf_tensor all = *t; /* the experts' matrices one below another */
    all.ne[1] *= all.ne[2];
    const uint64_t n = t->ne[1] / 2, before = l->m->info.weight_bytes_per_token;
    int rc = pack_parts(l, &all, (part){2 * n, first * n, n}, (part){0}, ret, err);
    /* Of a stack of experts a token reads those that it goes to. */
    const uint64_t bytes = l->m->info.weight_bytes_per_token - before;
    l->m->info.weight_bytes_per_token = before + bytes * l->m->hyper.n_experts_used / l->m->hyper.n_experts;
    return rc;
}

static int pack_first_half(forward_loader *l, const gguf_tensor *t, ops_weight **ret, base_err *err)
{
    return pack_half(l, t, 0, ret, err);
}

static int pack_second_half(forward_loader *l, const gguf_tensor *t, ops_weight **ret, base_err *err)
{
    return pack_half(l, t, 1, ret, err);
}

/* What a router's input is multiplied by, and its root of the width, as the weights of a norm. */
static int copy_router_norm(forward_loader *l, const gguf_tensor *t, ops_buffer **ret, base_err *err)
{
    model *m = l->m;
    if (!t) return 0;
    int rc = check_finite(t, err);
    if (!rc) rc = m->ops->buffer_new(m->ops, ret, t->n_bytes, err);
    if (rc) return rc;
    float *values = base_xmalloc(t->n_bytes);
    memcpy(values, t->data, t->n_bytes);
    for (uint64_t i = 0; i < t->ne[0]; i++) values[i] /= sqrtf((float)m->hyper.n_embd);
    m->ops->upload(m->ops, *ret, 0, values, t->n_bytes);
    free(values);
    return load_step(l, t, err);
}

static int read_scale(forward_loader *l, const gguf_tensor *t, float *ret, base_err *err)
{
    if (!t) return 0;
    int rc = check_finite(t, err);
    if (rc) return rc;
    memcpy(ret, t->data, sizeof *ret);
    if (*ret == 0)
        return base_fail(err, BASE_E_FORMAT, "tensor %.*s is 0: the file is damaged",
            (int)(t->name.len < 64 ? t->name.len : 64), t->name.ptr);
    return load_step(l, t, err);
}

/* Tensors of a layer, the field that each becomes, and what makes it: X(tensor, field, maker) */
/* clang-format off */
#define LAYER_FIELDS(X)                                                                                       \
    X(attn_norm, attn_norm, copy_vector) X(q, q, pack) X(k, k, pack) X(v, v, pack)                            \
    X(qkv, q, pack_queries) X(qkv, k, pack_keys) X(qkv, v, pack_values)                                       \
    X(q_bias, q_bias, copy_vector) X(k_bias, k_bias, copy_vector) X(v_bias, v_bias, copy_vector)              \
    X(q_norm, q_norm, copy_vector) X(k_norm, k_norm, copy_vector) X(o, o, pack)                               \
    X(o_bias, o_bias, copy_vector) X(sinks, sinks, copy_vector) X(router_bias, router_bias, copy_vector)      \
    X(gate_bias, gate_bias, copy_floats) X(up_bias, up_bias, copy_floats)                                    \
    X(down_bias, down_bias, copy_floats)                                                                     \
    X(attn_post, attn_post, copy_vector) X(ffn_norm, ffn_norm, copy_vector) X(router, router, copy_floats)    \
    X(gate, gate, pack) X(up, up, pack) X(gate_up, gate, pack_gate) X(gate_up, up, pack_up) X(down, down, pack) \
    X(gate_exps, gate, pack) X(up_exps, up, pack) X(down_exps, down, pack)                                    \
    X(q_gated, q, pack_gated) X(ffn_pre, ffn_norm, copy_vector)                                               \
    X(mix, mix, pack) X(z, z, pack) X(alpha, alpha, pack) X(beta, beta, pack) X(both, beta, pack_beta)                    \
    X(both, alpha, pack_alpha) X(taps, taps, copy_taps)        \
    X(decay, decay, copy_vector) X(dt, dt, copy_vector) X(state_norm, state_norm, copy_vector)                \
    X(state_out, state_out, pack) X(shared, shared, copy_vector)                                              \
    X(gate_all, gate_all, pack) X(up_all, up_all, pack) X(down_all, down_all, pack)                           \
    X(ffn_post, ffn_post, copy_vector) X(gate_up_exps, gate, pack_first_half)                                 \
    X(gate_up_exps, up, pack_second_half) X(router_scale, router_norm, copy_router_norm)                      \
    X(gate_beside, gate_all, pack) X(up_beside, up_all, pack) X(down_beside, down_all, pack)                  \
    X(all_post, all_post, copy_vector) X(exps_norm, exps_norm, copy_vector)                                   \
    X(exps_post, exps_post, copy_vector) X(exps_scale, exps_scale, copy_vector)                               \
    X(own_gate, own_gate, pack) X(own_out, own_out, pack) X(own_post, own_post, copy_vector)                  \
    X(out_scale, out_scale, read_scale)
/* clang-format on */

/* By how much YaRN divides the angle of pair i. */
static double yarn_divisor(const model_hyper *h, uint32_t i)
{
    const double wide = h->yarn_high - h->yarn_low, at = (i - h->yarn_low) / (wide > 0.001 ? wide : 0.001);
    const double stretched = at < 0 ? 0 : at > 1 ? 1 : at;
    return 1 / (stretched / h->yarn_factor + 1 - stretched);
}

/* Divisors of angles: the file's, YaRN's, or both. */
static int make_rope_factors(model *m, const gguf_tensor *t, base_err *err)
{
    const model_hyper *h = &m->hyper;
    if (!t && !h->yarn_factor) return 0;
    m->rope_factors = base_xcalloc(h->n_rot / 2, sizeof *m->rope_factors);
    for (uint32_t i = 0; i < h->n_rot / 2; i++) {
        m->rope_factors[i] = 1;
        if (t) memcpy(&m->rope_factors[i], t->data + i * sizeof(float), sizeof(float));
        if (!(m->rope_factors[i] > 0 && isfinite(m->rope_factors[i]))) /* 1e30: that pair is not turned */
            return base_fail(err, BASE_E_FORMAT, "tensor %.*s divides by %g", t ? (int)t->name.len : 0,
                t ? t->name.ptr : "", (double)m->rope_factors[i]);
        if (h->yarn_factor) m->rope_factors[i] *= (float)yarn_divisor(h, i);
    }
    return 0;
}

static int make_ones(model *m, base_err *err)
{
    const size_t n = m->hyper.head_dim;
    int rc = m->ops->buffer_new(m->ops, &m->ones, n * sizeof(float), err);
    if (rc) return rc;
    float *ones = base_xcalloc(n, sizeof *ones);
    for (size_t i = 0; i < n; i++) ones[i] = 1;
    m->ops->upload(m->ops, m->ones, 0, ones, n * sizeof *ones);
    free(ones);
    return 0;
}

uint64_t forward_bytes_on_host(const forward_loader *l)
{
    forward_loader at = *l;
    const gguf_tensor *before = NULL; /* of some two matrices are made, one after the other */
    uint64_t n_bytes = 0;
    for (at.layer = 0; at.layer < l->m->hyper.n_layer; at.layer++) {
        const model_layer_tensors *t = &l->m->tensors.layers[at.layer];
#define COUNT(tensor, field, maker)                                                                          \
    if (t->tensor && t->tensor != before && stays_on_host(&at, is_stack(t->tensor)))                         \
        n_bytes += cpu_packed_bytes(t->tensor);                                                              \
    before = t->tensor;
        LAYER_FIELDS(COUNT)
#undef COUNT
    }
    return n_bytes;
}

int forward_load_weights(forward_loader *l, base_err *err)
{
    model *m = l->m;
    const model_tensors *t = &m->tensors;
    int rc = 0;

    m->layers = base_xcalloc(m->hyper.n_layer, sizeof *m->layers);
    l->layer = m->hyper.n_layer;
    rc = pack(l, t->output, &m->output, err); /* the largest first: its file pages go before the rest comes */
    for (uint32_t i = 0; i < m->hyper.n_layer && !rc; i++) {
        l->layer = i;
#define LOAD(tensor, field, maker)                                                                           \
    if (!rc) rc = maker(l, t->layers[i].tensor, &m->layers[i].field, err);
        LAYER_FIELDS(LOAD)
#undef LOAD
    }
    l->layer = m->hyper.n_layer;
    if (!rc) rc = copy_vector(l, t->output_norm, &m->output_norm, err);
    if (!rc) rc = pack(l, t->own_model, &m->own_model, err);
    if (!rc) rc = copy_vector(l, t->own_norm, &m->own_norm, err);
    if (!rc && m->hyper.arch->v_norm) rc = make_ones(m, err);
    if (!rc && t->own_embd) {
        rc = check_finite(t->own_embd, err);
        release_pages(t->own_embd);
    }
    const gguf_tensor *long_rope = m->hyper.n_ctx > m->hyper.rope_trained ? t->rope_long : t->rope_short;
    if (!rc) rc = make_rope_factors(m, t->rope_freqs ? t->rope_freqs : long_rope, err);
    /* The embedding stays in the file; it is packed, and so checked, only where it is the head too. */
    if (!rc && t->output != t->token_embd) {
        rc = check_finite(t->token_embd, err);
        release_pages(t->token_embd);
    }
    if (!rc) rc = gguf_check_unchanged(m->file, m->path, err);
    return rc;
}

void forward_free_weights(model *m)
{
    const struct model_ops *ops = m->ops;
    for (uint32_t i = 0; m->layers && i < m->hyper.n_layer; i++) {
        forward_layer *w = &m->layers[i];
        ops_weight *matrices[] = {w->q, w->k, w->v, w->o, w->gate, w->up, w->down, w->mix, w->z, w->alpha,
            w->beta, w->state_out, w->gate_all, w->up_all, w->down_all, w->own_gate, w->own_out};
        ops_buffer *vectors[] = {w->attn_norm, w->ffn_norm, w->router, w->q_bias, w->k_bias, w->v_bias,
            w->q_norm, w->k_norm, w->attn_post, w->ffn_post, w->taps, w->decay, w->dt, w->state_norm,
            w->shared, w->o_bias, w->sinks, w->router_bias, w->gate_bias, w->up_bias, w->down_bias,
            w->router_norm, w->exps_norm, w->all_post, w->exps_post, w->exps_scale, w->own_post};
        for (size_t k = 0; k < sizeof matrices / sizeof matrices[0]; k++)
            if (matrices[k]) ops->weight_free(m->ops, matrices[k]);
        for (size_t k = 0; k < sizeof vectors / sizeof vectors[0]; k++)
            if (vectors[k]) ops->buffer_free(m->ops, vectors[k]);
    }
    if (m->output) ops->weight_free(m->ops, m->output);
    if (m->output_norm) ops->buffer_free(m->ops, m->output_norm);
    if (m->own_model) ops->weight_free(m->ops, m->own_model);
    if (m->own_norm) ops->buffer_free(m->ops, m->own_norm);
    if (m->ones) ops->buffer_free(m->ops, m->ones);
    free(m->layers);
    free(m->rope_factors);
}
