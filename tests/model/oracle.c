/* See oracle.h. */
#include "oracle.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

static float half_of(uint16_t bits)
{
    int exponent = bits >> 10 & 31, fraction = bits & 1023;
    double x = exponent == 0    ? ldexp(fraction, -24)
               : exponent == 31 ? (fraction ? NAN : INFINITY)
                                : ldexp(1024 + fraction, exponent - 25);
    return (float)(bits & 0x8000 ? -x : x);
}

/* Each half once: models read the same ones millions of times. */
float oracle_from_half(uint16_t bits)
{
    static float all[UINT16_MAX + 1];
    static bool is_made;
    for (uint32_t i = 0; !is_made && i <= UINT16_MAX; i++) all[i] = half_of((uint16_t)i);
    is_made = true;
    return all[bits];
}

float oracle_round_half(float x)
{
    int exponent;
    if (!isfinite(x) || x == 0) return x;
    frexp(x, &exponent);
    double unit = ldexp(1, (exponent < -13 ? -13 : exponent) - 11); /* the last place of a half near x */
    double rounded = nearbyint(x / unit) * unit;
    return fabs(rounded) > 65504 ? copysignf(INFINITY, x) : (float)rounded;
}

/* ---- the file's numbers ---- */

static const gguf_tensor *tensor_of(const oracle *o, int layer, const char *name)
{
    char full[64];
    if (layer >= 0)
        snprintf(full, sizeof full, "blk.%d.%s", layer, name);
    else
        snprintf(full, sizeof full, "%s", name);
    return gguf_find_tensor(o->file, full);
}

/* A vector, or a matrix that is F32; NULL when the file has none. */
static const float *weights(const oracle *o, int layer, const char *name)
{
    const gguf_tensor *t = tensor_of(o, layer, name);
    return t ? (const float *)(const void *)t->data : NULL;
}

static double half_at(const uint8_t *p)
{
    return oracle_from_half((uint16_t)(p[0] | p[1] << 8));
}

/* out[ne[0]]: a row's numbers, by the layouts of ggml-org/ggml src/ggml-common.h; apart from src/model/file/quant.c. */
static void row_of(const gguf_tensor *t, uint64_t row, double *out)
{
    const uint64_t n = t->ne[0];
    if (t->type == GGUF_TENSOR_Q8_0) {
        const uint8_t *block = t->data + row * n / 32 * 34;
        for (uint64_t b = 0; b < n / 32; b++, block += 34) {
            const double scale = half_at(block);
            for (uint32_t i = 0; i < 32; i++) *out++ = scale * (int8_t)block[2 + i];
        }
    } else if (t->type == GGUF_TENSOR_Q4_K) {
        const uint8_t *block = t->data + row * n / 256 * 144;
        for (uint64_t b = 0; b < n / 256; b++, block += 144) {
            const double scales = half_at(block), leasts = half_at(block + 2);
            const uint8_t *q = block + 4;
            for (uint32_t i = 0; i < 256; i++) {
                uint32_t j = i / 32, byte = i / 64 * 32 + i % 32;
                int scale = j < 4 ? q[j] & 63 : (q[j + 4] & 15) | (q[j - 4] >> 6) << 4;
                int least = j < 4 ? q[j + 4] & 63 : q[j + 4] >> 4 | (q[j] >> 6) << 4;
                int quant = j % 2 ? block[16 + byte] >> 4 : block[16 + byte] & 15;
                *out++ = scales * scale * quant - leasts * least;
            }
        }
    } else if (t->type == GGUF_TENSOR_Q2_K) {
        const uint8_t *block = t->data + row * n / 256 * 84;
        for (uint64_t b = 0; b < n / 256; b++, block += 84) {
            const double scales = half_at(block + 80), leasts = half_at(block + 82);
            for (uint32_t i = 0; i < 256; i++) {
                int quant = block[16 + i / 128 * 32 + i % 32] >> i / 32 % 4 * 2 & 3;
                *out++ = scales * (block[i / 16] & 15) * quant - leasts * (block[i / 16] >> 4);
            }
        }
    } else if (t->type == GGUF_TENSOR_MXFP4) {
        static const double values[8] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
        const uint8_t *block = t->data + row * n / 32 * 17;
        for (uint64_t b = 0; b < n / 32; b++, block += 17) {
            const double scale = ldexp(1, block[0] - 127);
            for (uint32_t i = 0; i < 32; i++) {
                int quant = i < 16 ? block[1 + i] & 15 : block[1 + i - 16] >> 4;
                *out++ = scale * (quant & 8 ? -values[quant & 7] : values[quant & 7]);
            }
        }
    } else {
        for (uint64_t i = 0; i < n; i++) {
            float x;
            memcpy(&x, t->data + (row * n + i) * sizeof x, sizeof x);
            out[i] = x;
        }
    }
}

/* ---- arithmetic ---- */

/*
 * The loops that take nearly all of the time. Each sum is added in the order of its terms, so no bit depends
 * on how they are written; four sums at a time do not wait for one another. Their bounds are their arguments:
 * a sanitizer's check of every term is left out.
 */
#define UNCHECKED __attribute__((no_sanitize("address", "undefined")))

UNCHECKED static double dot(const double *a, const double *b, uint32_t n)
{
    double sum = 0;
    for (uint32_t i = 0; i < n; i++) sum += a[i] * b[i];
    return sum;
}

UNCHECKED static void add_times(double *out, double factor, const double *x, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) out[i] += factor * x[i];
}

/* Adds to four numbers, `step` apart, the products of a vector with four others that lie behind one another. */
UNCHECKED static void four_sums(
    const double *one, const double *others, uint64_t n, double *out, uint64_t step)
{
    const double *x1 = others + n, *x2 = x1 + n, *x3 = x2 + n;
    double a = out[0], b = out[step], c = out[2 * step], d = out[3 * step];
    for (uint64_t i = 0; i < n; i++) {
        a += one[i] * others[i];
        b += one[i] * x1[i];
        c += one[i] * x2[i];
        d += one[i] * x3[i];
    }
    out[0] = a;
    out[step] = b;
    out[2 * step] = c;
    out[3 * step] = d;
}

/* Matrices that were read out of the file, for one run: an expert's is asked for by each of its tokens. */
static struct matrix {
    const uint8_t *data;
    uint64_t n_rows;
    double *numbers; /* [n_rows][ne[0]] */
} * known;
static size_t n_known, cap_known;

static const double *numbers_of(const gguf_tensor *w)
{
    for (size_t i = 0; i < n_known; i++)
        if (known[i].data == w->data && known[i].n_rows == w->ne[1]) return known[i].numbers;
    double *numbers = base_xcalloc(w->ne[0] * w->ne[1], sizeof *numbers);
    for (uint64_t r = 0; r < w->ne[1]; r++) row_of(w, r, numbers + r * w->ne[0]);
    base_grow(&known, &cap_known, n_known + 1, sizeof *known);
    known[n_known++] = (struct matrix){w->data, w->ne[1], numbers};
    return numbers;
}

static void forget_numbers(void)
{
    for (size_t i = 0; i < n_known; i++) free(known[i].numbers);
    free(known);
    known = NULL;
    n_known = cap_known = 0;
}

/* Matrix e of a stack. */
static gguf_tensor slab_of(const gguf_tensor *stack, uint32_t e)
{
    gguf_tensor t = *stack;
    t.n_bytes /= t.ne[2];
    t.data += e * t.n_bytes;
    t.ne[2] = 1;
    return t;
}

/* Rows [first, first + n) of a matrix that holds several. */
static gguf_tensor rows_from(const gguf_tensor *w, uint64_t first, uint64_t n)
{
    gguf_tensor t = *w;
    t.data += first * (w->n_bytes / w->ne[1]);
    t.n_bytes = n * (w->n_bytes / w->ne[1]);
    t.ne[1] = n;
    return t;
}

/* out[n][n_out] = w x[n][n_in] + bias. */
static void product(const gguf_tensor *w, const float *bias, uint32_t n, const double *x, double *out)
{
    const uint64_t n_in = w->ne[0], n_out = w->ne[1];
    const double *rows = numbers_of(w);
    uint32_t four = n / 4 * 4;
    for (uint32_t t = 0; t < n; t++)
        for (uint64_t r = 0; r < n_out; r++) out[t * n_out + r] = bias ? bias[r] : 0;
    for (uint64_t r = 0; r < n_out; r++)
        for (uint32_t t = 0; t < four; t += 4)
            four_sums(rows + r * n_in, x + t * n_in, n_in, out + t * n_out + r, n_out);
    for (uint32_t t = four; t < n; t++) {
        uint64_t r = 0;
        for (; r + 4 <= n_out; r += 4) four_sums(x + t * n_in, rows + r * n_in, n_in, out + t * n_out + r, 1);
        for (; r < n_out; r++) out[t * n_out + r] += dot(rows + r * n_in, x + t * n_in, (uint32_t)n_in);
    }
}

static void norm(const float *w, const double *x, uint32_t n, double *out)
{
    double sum = 0;
    for (uint32_t i = 0; i < n; i++) sum += x[i] * x[i];
    double scale = 1 / sqrt(sum / n + 1e-5);
    for (uint32_t i = 0; i < n; i++) out[i] = x[i] * scale * (w ? w[i] : 1);
}

static void norm_heads(const float *w, double *x, uint32_t n_heads, uint32_t head_dim)
{
    for (uint32_t h = 0; h < n_heads && w; h++) norm(w, x + h * head_dim, head_dim, x + h * head_dim);
}

typedef struct turn {
    double base, stretch;
    double yarn_low, yarn_high,
        size; /* YaRN: between these pairs the stretch sets in; what is turned grows by size (0: not) */
    bool yarn;
    const float *factors; /* [head_dim / 2] or NULL */
    bool neox;
} turn;

/* head_dim: of what is turned, which may be a part of the head. */
static void rope(double *head, uint32_t head_dim, uint32_t phase, turn how)
{
    for (uint32_t i = 0; i < head_dim / 2; i++) {
        double angle = phase * pow(how.base, -2.0 * i / head_dim);
        if (how.factors) angle /= how.factors[i];
        double kept =
            how.yarn ? 1 - fmin(1, fmax(0, (i - how.yarn_low) / fmax(0.001, how.yarn_high - how.yarn_low)))
                     : 0;
        angle = angle / how.stretch * (1 - kept) + angle * kept;
        double size = how.size > 0 ? how.size : 1, c = size * cos(angle), s = size * sin(angle);
        uint32_t a = how.neox ? i : 2 * i, b = how.neox ? i + head_dim / 2 : 2 * i + 1;
        double x = head[a], y = head[b];
        head[a] = x * c - y * s;
        head[b] = x * s + y * c;
    }
}

static double silu(double x)
{
    return x / (1 + exp(-x));
}

static double gelu(double x)
{
    return 0.5 * x * (1 + tanh(sqrt(2 / acos(-1)) * (x + 0.044715 * x * x * x)));
}

static bool is_gemma4(const oracle *o)
{
    return strcmp(o->spec->architecture, "gemma4") == 0;
}

static bool is_gemma(const oracle *o)
{
    return is_gemma4(o) || strcmp(o->spec->architecture, "gemma3") == 0;
}

static bool is_oss(const oracle *o)
{
    return strcmp(o->spec->architecture, "gpt-oss") == 0;
}

/*
 * Gemma: five layers with a window and a base of their own, then one that reads everything. gpt-oss: every other
 * layer has one, and turns as those without.
 */
static bool has_window(const oracle *o, uint32_t layer)
{
    if (is_oss(o)) return o->spec->window && layer % 2 == 0;
    if (is_gemma4(o)) return o->spec->window && tiny_has_window(o->spec, layer);
    return is_gemma(o) && o->spec->window && layer % 6 < 5;
}

static turn turn_of(const oracle *o, uint32_t layer)
{
    const tiny_gguf *s = o->spec;
    turn t = {.base = s->rope_base ? s->rope_base : 10000,
        .stretch = s->rope_factor ? s->rope_factor : 1,
        .factors = weights(o, -1, "rope_freqs.weight"),
        .neox = strcmp(s->architecture, "llama") != 0 && strcmp(s->architecture, "mistral3") != 0 &&
                strcmp(s->architecture, "granite") != 0 && strcmp(s->architecture, "smollm3") != 0};
    if (s->long_trained) { /* LongRoPE */
        t.size = s->rope_growth;
        t.factors = weights(
            o, -1, s->n_ctx > s->long_trained ? "rope_factors_long.weight" : "rope_factors_short.weight");
    }
    if (s->yarn_trained) { /* Peng et al. 2023, section 3.2, with beta 32 and 1 */
        double pi = acos(-1), d = s->head_dim ? s->head_dim : s->n_embd / s->n_head;
        t.yarn = true;
        t.yarn_low = fmax(0, floor(d * log(s->yarn_trained / (32 * 2 * pi)) / (2 * log(t.base))));
        t.yarn_high = fmin(d - 1, ceil(d * log(s->yarn_trained / (2 * pi)) / (2 * log(t.base))));
        t.size = 1 + 0.1 * log(t.stretch);
        if (!t.neox) t.size /= 1 + 0.1 * s->yarn_less * log(t.stretch); /* mistral3 */
    }
    if (is_gemma(o) && has_window(o, layer)) t = (turn){.base = 10000, .stretch = 1, .neox = true};
    return t;
}

/* Everything of one run; sized for the whole sequence. */
typedef struct work {
    uint32_t head_dim, n_heads_kv, n_q, n_kv; /* of the layer at hand */
    double *kept_k[2], *kept_v[2];            /* the newest rows of each kind, for layers that share them */
    double *own;                              /* [n][n_layer][n_embd_layer] */
    double *x;                                /* [n][n_embd] */
    double *q, *k, *v, *normed, *wide, *gate, *mixed; /* [n][...] of the layer at hand */
    double *weights_of_rows;                          /* of one token and head */
    double *mixture;                                  /* [n_embd], of one token */
} work;

/* Layers with rows come every so many; the others keep a state. */
static bool has_rows(const oracle *o, uint32_t layer)
{
    return !o->spec->rows_every || (layer + 1) % o->spec->rows_every == 0;
}

static uint32_t rows_layer(const oracle *o, uint32_t layer)
{
    return o->spec->rows_every ? layer / o->spec->rows_every : layer;
}

static void attend(const oracle *o, work *w, uint32_t layer, uint32_t t)
{
    const tiny_gguf *s = o->spec;
    uint32_t group = s->n_head / w->n_heads_kv, d = w->head_dim;
    uint32_t first = has_window(o, layer) && t >= s->window ? t - s->window + 1 : 0;

    for (uint32_t head = 0; head < s->n_head; head++) {
        uint32_t kv = head / group, lane = rows_layer(o, layer) * w->n_heads_kv + kv;
        const double *q = w->q + (size_t)t * w->n_q + head * d;
        const float *sinks = weights(o, (int)layer, "attn_sinks.weight");
        double max = sinks ? sinks[head] : -INFINITY, sum = 0, *p = w->weights_of_rows,
               *out = w->mixed + (size_t)t * w->n_q + head * d;
        for (uint32_t i = first; i <= t; i++) {
            p[i] = -INFINITY;
            if (o->mask && !o->mask(o->user, lane, t, i)) continue;
            p[i] = dot(q, w->k + (size_t)i * w->n_kv + kv * d, d) * (is_gemma4(o)       ? 1
                                                                        : s->attn_scale ? s->attn_scale
                                                                                        : 1 / sqrt(d));
            if (p[i] > max) max = p[i];
        }
        for (uint32_t i = first; i <= t; i++) sum += p[i] = exp(p[i] - max);
        if (sinks && !o->spec->without_sinks) sum += exp(sinks[head] - max);
        memset(out, 0, d * sizeof *out);
        for (uint32_t i = first; i <= t; i++)
            add_times(out, p[i] / sum, w->v + (size_t)i * w->n_kv + kv * d, d);
    }
}

/* gpt-oss's gate: min(g, 7) sigmoid(1.702 min(g, 7)) (u within 7 of 0, plus 1) */
static double clamped(double g, double u)
{
    g = fmin(g, 7);
    return g / (1 + exp(-1.702 * g)) * (fmax(-7, fmin(u, 7)) + 1);
}

/* The biases of expert e; NULL: there are none. */
static const float *bias_of(const oracle *o, int layer, const char *name, uint32_t e)
{
    const gguf_tensor *t = tensor_of(o, layer, name);
    return t ? (const float *)(const void *)t->data + e * t->ne[0] : NULL;
}

/* out[n_embd] = down (silu(gate x) * up x) of expert e */
static void expert(const oracle *o, int layer, uint32_t e, const double *x, double *out)
{
    const gguf_tensor *fused = tensor_of(o, layer, "ffn_gate_up_exps.weight");
    gguf_tensor gate = slab_of(fused ? fused : tensor_of(o, layer, "ffn_gate_exps.weight"), e),
                up = slab_of(fused ? fused : tensor_of(o, layer, "ffn_up_exps.weight"), e),
                down = slab_of(tensor_of(o, layer, "ffn_down_exps.weight"), e);
    if (fused) { /* gates, then ups */
        gate.ne[1] = up.ne[1] /= 2;
        up.data += up.n_bytes /= 2;
    }
    double *gated = base_xcalloc(2 * gate.ne[1], sizeof *gated), *wide = gated + gate.ne[1];
    product(&gate, bias_of(o, layer, "ffn_gate_exps.bias", e), 1, x, gated);
    product(&up, bias_of(o, layer, "ffn_up_exps.bias", e), 1, x, wide);
    for (uint64_t i = 0; i < gate.ne[1]; i++)
        wide[i] = is_oss(o) && !o->spec->without_clamp ? clamped(gated[i], wide[i])
                  : is_gemma(o)                        ? gelu(gated[i]) * wide[i]
                                                       : silu(gated[i]) * wide[i];
    product(&down, bias_of(o, layer, "ffn_down_exps.bias", e), 1, wide, out);
    free(gated);
}

/*
 * A mixture for one token: p = softmax(router asked); the best experts (of equals the first) of x, each by its share
 * of the p of all that were chosen.
 */
static void mix(const oracle *o, int layer, uint32_t t, const double *asked, const double *x, double *out)
{
    const float *scales = o->spec->without_scales ? NULL : weights(o, layer, "ffn_down_exps.scale");
    const tiny_gguf *s = o->spec;
    const gguf_tensor *router = tensor_of(o, layer, "ffn_gate_inp.weight");
    double *p = base_xcalloc(router->ne[1], sizeof *p), *one = base_xcalloc(s->n_embd, sizeof *one), all = 0;
    uint32_t *chosen = base_xcalloc(s->n_experts_used, sizeof *chosen);
    product(router, weights(o, layer, "ffn_gate_inp.bias"), 1, asked, p);
    for (uint32_t i = 0; i < s->n_experts_used; i++) {
        for (uint32_t e = 1; e < s->n_experts; e++)
            if (p[e] > p[chosen[i]]) chosen[i] = e;
        one[i] = exp(p[chosen[i]]);
        all += one[i];
        p[chosen[i]] = -INFINITY;
    }
    for (uint32_t e = 0; o->margins && e < s->n_experts; e++)
        o->margins[t] = fminf(o->margins[t], (float)(log(one[s->n_experts_used - 1]) - p[e]));
    for (uint32_t i = 0; i < s->n_experts_used; i++) p[i] = one[i] / all;
    memset(out, 0, s->n_embd * sizeof *out);
    for (uint32_t i = 0; i < s->n_experts_used; i++) {
        expert(o, layer, chosen[i], x, one);
        add_times(out, p[i] * (scales ? scales[chosen[i]] : 1), one, s->n_embd);
    }
    if (s->n_ff_shared && !is_gemma4(o)) {
        const float *gate = weights(o, layer, "ffn_gate_inp_shexp.weight");
        double score = 0, *gated = base_xcalloc(2 * s->n_ff_shared, sizeof *gated),
               *wide = gated + s->n_ff_shared;
        for (uint32_t i = 0; i < s->n_embd; i++) score += gate[i] * x[i];
        product(tensor_of(o, layer, "ffn_gate_shexp.weight"), NULL, 1, x, gated);
        product(tensor_of(o, layer, "ffn_up_shexp.weight"), NULL, 1, x, wide);
        for (uint32_t i = 0; i < s->n_ff_shared; i++) wide[i] *= silu(gated[i]);
        product(tensor_of(o, layer, "ffn_down_shexp.weight"), NULL, 1, wide, one);
        add_times(out, 1 / (1 + exp(-score)), one, s->n_embd);
        free(gated);
    }
    free(p);
    free(one);
    free(chosen);
}

/* x / |x|, times `length` */
static void set_length(double *x, uint32_t n, double length)
{
    double sum = 1e-5;
    for (uint32_t i = 0; i < n; i++) sum += x[i] * x[i];
    for (uint32_t i = 0; i < n; i++) x[i] *= length / sqrt(sum);
}

/* One value head of one token: S decays, S^T k is corrected towards v, S^T q is read. */
static void step_state(double *state, uint32_t d, double decay, double beta, const double *q, const double *k,
    const double *v, double *out)
{
    for (uint32_t c = 0; c < d; c++) { /* state[key][value] */
        double kept = 0, sum = 0;
        for (uint32_t i = 0; i < d; i++) kept += (state[i * d + c] *= decay) * k[i];
        for (uint32_t i = 0; i < d; i++) sum += (state[i * d + c] += k[i] * beta * (v[c] - kept)) * q[i];
        out[c] = sum;
    }
}

/*
 * A layer that keeps a state (gated delta net: Yang et al. 2024, and Qwen3-Next's form of it): normed inputs
 * to what is added to the residual stream, both w->normed.
 */
static void layer_of_state(const oracle *o, work *w, int l)
{
    enum { TAPS = 4 };
    const tiny_gguf *s = o->spec;
    const uint32_t d = s->state_dim, n_keys = s->n_state_keys * d, n_values = s->n_state_values * d,
                   n_channels = 2 * n_keys + n_values;
    const bool next = strcmp(s->architecture, "qwen3next") == 0;
    const uint32_t group = s->n_state_values / s->n_state_keys;
    const float *taps = weights(o, l, "ssm_conv1d.weight"), *a = weights(o, l, "ssm_a"),
                *dt = weights(o, l, "ssm_dt.bias");
    double *u = base_xcalloc((size_t)o->n * n_channels, sizeof *u),
           *z = base_xcalloc((size_t)o->n * n_values, sizeof *z),
           *alpha = base_xcalloc((size_t)o->n * s->n_state_values, sizeof *alpha),
           *beta = base_xcalloc((size_t)o->n * s->n_state_values, sizeof *beta),
           *both = base_xcalloc((size_t)o->n * 2 * s->n_state_values, sizeof *both),
           *out = base_xcalloc((size_t)o->n * n_values, sizeof *out),
           *x = base_xcalloc(n_channels, sizeof *x),
           *states = base_xcalloc((size_t)s->n_state_values * d * d, sizeof *states);
    product(tensor_of(o, l, "attn_qkv.weight"), NULL, o->n, w->normed, u);
    product(tensor_of(o, l, "attn_gate.weight"), NULL, o->n, w->normed, z);
    if (next) {
        product(tensor_of(o, l, "ssm_ba.weight"), NULL, o->n, w->normed, both);
        for (uint32_t i = 0; i < o->n * s->n_state_values; i++) { /* a head of keys': betas, then alphas */
            beta[i] = both[i / group * 2 * group + i % group];
            alpha[i] = both[i / group * 2 * group + group + i % group];
        }
    } else {
        product(tensor_of(o, l, "ssm_alpha.weight"), NULL, o->n, w->normed, alpha);
        product(tensor_of(o, l, "ssm_beta.weight"), NULL, o->n, w->normed, beta);
    }
    for (uint32_t t = 0; t < o->n; t++) {
        for (uint32_t c = 0; c < n_channels; c++) {
            x[c] = 0;
            for (uint32_t k = 0; k < TAPS && k <= t; k++)
                x[c] += taps[c * TAPS + TAPS - 1 - k] * u[(size_t)(t - k) * n_channels + c];
            x[c] = silu(x[c]);
        }
        for (uint32_t h = 0; h < s->n_state_keys; h++) {
            set_length(x + h * d, d, 1 / sqrt(d));
            set_length(x + n_keys + h * d, d, 1);
        }
        for (uint32_t h = 0; h < s->n_state_values; h++) {
            const uint32_t key = (next ? h / group : h % s->n_state_keys) * d;
            const size_t at = (size_t)t * s->n_state_values + h;
            double *y = out + (size_t)t * n_values + h * d;
            step_state(states + (size_t)h * d * d, d, exp(a[h] * log1p(exp(alpha[at] + dt[h]))),
                1 / (1 + exp(-beta[at])), x + key, x + n_keys + key, x + 2 * n_keys + h * d, y);
            norm(weights(o, l, "ssm_norm.weight"), y, d, y);
            for (uint32_t c = 0; c < d; c++) y[c] *= silu(z[(size_t)t * n_values + h * d + c]);
        }
    }
    product(tensor_of(o, l, "ssm_out.weight"), NULL, o->n, out, w->normed);
    double *all[] = {u, z, alpha, beta, both, out, x, states};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) free(all[i]);
}

/* Queries out of what holds a gate behind each head; the gates go to their place. */
static void split_gates(const work *w, uint32_t n, uint32_t n_head, const double *both, double *gates)
{
    const uint32_t d = w->head_dim;
    for (size_t i = 0; i < (size_t)n * n_head; i++) {
        memcpy(w->q + i * d, both + 2 * i * d, d * sizeof *both);
        memcpy(gates + i * d, both + (2 * i + 1) * d, d * sizeof *both);
    }
}

/* Attention: normed inputs to what is added to the residual stream, both w->normed. */
static void layer_of_rows(const oracle *o, work *w, uint32_t layer)
{
    const tiny_gguf *s = o->spec;
    const uint32_t d = w->head_dim, n_rot = s->n_rot ? s->n_rot : d, at = rows_layer(o, layer);
    const int l = (int)layer;
    const size_t n_gates = s->rows_every ? (size_t)o->n * w->n_q : 0;
    double *both = base_xcalloc(3 * n_gates + 1, sizeof *both), *gates = both + 2 * n_gates;
    turn how = turn_of(o, layer);

    const gguf_tensor *wq = tensor_of(o, l, "attn_q.weight"), *wk = tensor_of(o, l, "attn_k.weight"),
                      *wv = tensor_of(o, l, "attn_v.weight"), *all = tensor_of(o, l, "attn_qkv.weight");
    gguf_tensor parts[3];
    if (!wq) { /* one below another */
        parts[0] = rows_from(all, 0, w->n_q);
        parts[1] = rows_from(all, w->n_q, w->n_kv);
        parts[2] = rows_from(all, w->n_q + w->n_kv, w->n_kv);
        wq = &parts[0];
        wk = &parts[1];
        wv = &parts[2];
    }
    product(wq, weights(o, l, "attn_q.bias"), o->n, w->normed, n_gates ? both : w->q);
    if (n_gates) split_gates(w, o->n, s->n_head, both, gates);
    const size_t n_rows = (size_t)o->n * w->n_kv;
    const bool kind = has_window(o, layer);
    if (wk) product(wk, weights(o, l, "attn_k.bias"), o->n, w->normed, w->k);
    if (wk) product(wv ? wv : wk, weights(o, l, "attn_v.bias"), o->n, w->normed, w->v);
    for (uint32_t t = 0; t < o->n && is_gemma4(o); t++)
        for (uint32_t h = 0; h < w->n_heads_kv; h++)
            norm(NULL, w->v + (size_t)t * w->n_kv + h * d, d, w->v + (size_t)t * w->n_kv + h * d);
    for (uint32_t t = 0; t < o->n; t++) {
        double *q = w->q + (size_t)t * w->n_q, *k = w->k + (size_t)t * w->n_kv,
               *v = w->v + (size_t)t * w->n_kv;
        norm_heads(weights(o, l, "attn_q_norm.weight"), q, s->n_head, d);
        norm_heads(weights(o, l, "attn_k_norm.weight"), k, w->n_heads_kv, d);
        const bool turns = !s->unturned_every || (layer + 1) % s->unturned_every != 0;
        for (uint32_t h = 0; h < s->n_head && turns; h++) rope(q + h * d, n_rot, o->phases[t], how);
        for (uint32_t h = 0; h < w->n_heads_kv && wk && turns; h++) rope(k + h * d, n_rot, o->phases[t], how);
        for (uint32_t i = 0; i < w->n_q && s->q_scale > 0; i++)
            q[i] *= 1 + s->q_scale * log(1 + o->phases[t] / s->yarn_trained);
        for (uint32_t i = 0; i < w->n_kv; i++) {
            k[i] = oracle_round_half((float)k[i]);
            v[i] = oracle_round_half((float)v[i]);
        }
        for (uint32_t h = 0; h < s->n_head && o->queries; h++)
            for (uint32_t c = 0; c < d; c++)
                o->queries[(((size_t)at * s->n_head + h) * o->n + t) * d + c] = (float)q[h * d + c];
        for (uint32_t h = 0; h < s->n_head_kv && o->keys; h++)
            for (uint32_t c = 0; c < d; c++)
                o->keys[(((size_t)at * s->n_head_kv + h) * o->n + t) * d + c] = (float)k[h * d + c];
    }
    if (is_gemma4(o)) {
        memcpy(wk ? w->kept_k[kind] : w->k, wk ? w->k : w->kept_k[kind], n_rows * sizeof *w->k);
        memcpy(wk ? w->kept_v[kind] : w->v, wk ? w->v : w->kept_v[kind], n_rows * sizeof *w->v);
    }
    for (uint32_t t = 0; t < o->n; t++) attend(o, w, layer, t);
    for (size_t i = 0; i < n_gates; i++) w->mixed[i] /= 1 + exp(-gates[i]);
    product(
        tensor_of(o, l, "attn_output.weight"), weights(o, l, "attn_output.bias"), o->n, w->mixed, w->normed);
    free(both);
}

/* Gemma 4's mixture: w->normed, the input of what all tokens go to, becomes what both halves add up to. */
static void beside(const oracle *o, work *w, int l)
{
    const tiny_gguf *s = o->spec;
    const uint32_t n_embd = s->n_embd, n_ff = s->n_ff_shared;
    const float *scale = weights(o, l, "ffn_gate_inp.scale");
    double *gate = base_xcalloc(2 * n_ff, sizeof *gate), *wide = gate + n_ff,
           *asked = base_xcalloc(3 * n_embd, sizeof *asked), *x2 = asked + n_embd, *all = x2 + n_embd;
    for (uint32_t t = 0; t < o->n; t++) {
        const double *x = w->x + (size_t)t * n_embd;
        double *normed = w->normed + (size_t)t * n_embd;
        product(tensor_of(o, l, "ffn_gate.weight"), NULL, 1, normed, gate);
        product(tensor_of(o, l, "ffn_up.weight"), NULL, 1, normed, wide);
        for (uint32_t i = 0; i < n_ff; i++) wide[i] *= gelu(gate[i]);
        product(tensor_of(o, l, "ffn_down.weight"), NULL, 1, wide, all);
        norm(weights(o, l, "post_ffw_norm_1.weight"), all, n_embd, all);
        norm(NULL, x, n_embd, asked);
        for (uint32_t i = 0; i < n_embd; i++) asked[i] *= scale[i] / sqrt(n_embd);
        norm(weights(o, l, "pre_ffw_norm_2.weight"), x, n_embd, x2);
        mix(o, l, t, asked, x2, w->mixture);
        norm(weights(o, l, "post_ffw_norm_2.weight"), w->mixture, n_embd, normed);
        for (uint32_t i = 0; i < n_embd; i++) normed[i] += all[i];
    }
    free(gate);
    free(asked);
}

/* A token's embeddings for every layer, from its scaled embedding in w->x. */
static void make_own(const oracle *o, work *w)
{
    const tiny_gguf *s = o->spec;
    const uint32_t d = s->n_embd_layer, width = d * s->n_layer;
    const gguf_tensor *table = tensor_of(o, -1, "per_layer_token_embd.weight");
    double *read = base_xcalloc(width, sizeof *read);
    w->own = base_xcalloc((size_t)o->n * width, sizeof *w->own);
    product(tensor_of(o, -1, "per_layer_model_proj.weight"), NULL, o->n, w->x, w->own);
    for (uint32_t t = 0; t < o->n; t++) {
        double *own = w->own + (size_t)t * width;
        row_of(table, (uint64_t)o->ids[t], read);
        for (uint32_t i = 0; i < width; i++) own[i] /= sqrt(s->n_embd);
        norm_heads(weights(o, -1, "per_layer_proj_norm.weight"), own, s->n_layer, d);
        for (uint32_t i = 0; i < width; i++) own[i] = (own[i] + read[i] * sqrt(d)) / sqrt(2);
    }
    free(read);
}

/* x += what the token's embedding for this layer lets through. */
static void add_own(const oracle *o, const work *w, uint32_t layer, uint32_t t, double *x)
{
    const tiny_gguf *s = o->spec;
    const int l = (int)layer;
    const uint32_t d = s->n_embd_layer;
    const double *own = w->own + ((size_t)t * s->n_layer + layer) * d;
    double *gate = base_xcalloc(d + s->n_embd, sizeof *gate), *out = gate + d;
    product(tensor_of(o, l, "inp_gate.weight"), NULL, 1, x, gate);
    for (uint32_t i = 0; i < d; i++) gate[i] = gelu(gate[i]) * own[i];
    product(tensor_of(o, l, "proj.weight"), NULL, 1, gate, out);
    norm(weights(o, l, "post_norm.weight"), out, s->n_embd, out);
    for (uint32_t i = 0; i < s->n_embd; i++) x[i] += out[i];
    free(gate);
}

static void layer_of(const oracle *o, work *w, uint32_t layer)
{
    const tiny_gguf *s = o->spec;
    const uint32_t n_embd = s->n_embd;
    const int l = (int)layer;
    const bool small = is_gemma4(o) && tiny_has_window(s, layer);
    const double branch = s->branch_scale ? s->branch_scale : 1;

    w->head_dim = small ? s->window_head_dim : s->head_dim ? s->head_dim : s->n_embd / s->n_head;
    w->n_heads_kv = is_gemma4(o) && !small ? s->n_head_kv_all : s->n_head_kv;
    w->n_q = s->n_head * w->head_dim;
    w->n_kv = w->n_heads_kv * w->head_dim;
    for (uint32_t t = 0; t < o->n; t++)
        norm(weights(o, l, "attn_norm.weight"), w->x + (size_t)t * n_embd, n_embd,
            w->normed + (size_t)t * n_embd);
    if (has_rows(o, layer))
        layer_of_rows(o, w, layer);
    else
        layer_of_state(o, w, l);
    for (uint32_t t = 0; t < o->n; t++) {
        double *x = w->x + (size_t)t * n_embd, *normed = w->normed + (size_t)t * n_embd;
        const float *post = weights(o, l, "post_attention_norm.weight");
        const bool pre =
            s->rows_every || is_oss(o) ||
            strcmp(s->architecture, "seed_oss") == 0; /* there it stands before the feed-forward */
        if (!pre) norm_heads(post, normed, 1, n_embd);
        for (uint32_t i = 0; i < n_embd; i++) x[i] += branch * normed[i];
        norm(pre ? post : weights(o, l, "ffn_norm.weight"), x, n_embd, normed);
    }
    if (s->n_experts && is_gemma4(o)) {
        beside(o, w, l);
    } else if (s->n_experts) {
        for (uint32_t t = 0; t < o->n; t++) {
            mix(o, l, t, w->normed + (size_t)t * n_embd, w->normed + (size_t)t * n_embd, w->mixture);
            memcpy(w->normed + (size_t)t * n_embd, w->mixture, n_embd * sizeof *w->mixture);
        }
    } else {
        const gguf_tensor *gate = tensor_of(o, l, "ffn_gate.weight"), *up = tensor_of(o, l, "ffn_up.weight");
        gguf_tensor halves[2];
        if (!gate) { /* the gate's rows, then up's */
            const uint64_t n_ff = up->ne[1] / 2;
            halves[0] = rows_from(up, 0, n_ff);
            halves[1] = rows_from(up, n_ff, n_ff);
            gate = &halves[0];
            up = &halves[1];
        }
        product(gate, NULL, o->n, w->normed, w->gate);
        product(up, NULL, o->n, w->normed, w->wide);
        for (size_t i = 0; i < (size_t)o->n * gate->ne[1]; i++)
            w->wide[i] *= is_gemma(o) ? gelu(w->gate[i]) : silu(w->gate[i]);
        product(tensor_of(o, l, "ffn_down.weight"), NULL, o->n, w->wide, w->normed);
    }
    for (uint32_t t = 0; t < o->n; t++) {
        double *x = w->x + (size_t)t * n_embd, *normed = w->normed + (size_t)t * n_embd;
        norm_heads(weights(o, l, "post_ffw_norm.weight"), normed, 1, n_embd);
        for (uint32_t i = 0; i < n_embd; i++) x[i] += branch * normed[i];
        if (w->own) add_own(o, w, layer, t, x);
        for (uint32_t i = 0; i < n_embd; i++) {
            if (is_gemma4(o) && !s->without_scales) x[i] *= weights(o, l, "layer_output_scale.weight")[0];
            if (o->hidden) o->hidden[((size_t)layer * o->n + t) * n_embd + i] = (float)x[i];
        }
    }
}

void oracle_run(const oracle *o)
{
    const tiny_gguf *s = o->spec;
    uint32_t d = s->head_dim ? s->head_dim : s->n_embd / s->n_head;
    double embd_scale = s->embd_scale ? s->embd_scale : is_gemma(o) ? sqrt(s->n_embd) : 1;
    const uint32_t most_kv = s->n_head_kv > s->n_head_kv_all ? s->n_head_kv : s->n_head_kv_all;
    work w = {.n_q = s->n_head * d, .n_kv = most_kv * d};
    const gguf_tensor *embd = tensor_of(o, -1, "token_embd.weight"),
                      *head = tensor_of(o, -1, "output.weight");

    w.x = base_xcalloc((size_t)o->n * s->n_embd, sizeof(double));
    w.q = base_xcalloc((size_t)o->n * w.n_q, sizeof(double));
    w.k = base_xcalloc((size_t)o->n * w.n_kv, sizeof(double));
    w.v = base_xcalloc((size_t)o->n * w.n_kv, sizeof(double));
    w.normed = base_xcalloc((size_t)o->n * s->n_embd, sizeof(double));
    w.wide = base_xcalloc((size_t)o->n * 2 * s->n_ff, sizeof(double));
    w.gate = base_xcalloc((size_t)o->n * 2 * s->n_ff, sizeof(double));
    for (int i = 0; i < 2; i++) {
        w.kept_k[i] = base_xcalloc((size_t)o->n * w.n_kv, sizeof(double));
        w.kept_v[i] = base_xcalloc((size_t)o->n * w.n_kv, sizeof(double));
    }
    w.weights_of_rows = base_xcalloc(o->n, sizeof(double));
    w.mixed = base_xcalloc((size_t)o->n * w.n_q, sizeof(double));
    w.mixture = base_xcalloc(s->n_embd, sizeof(double));
    for (uint32_t t = 0; t < o->n; t++) {
        double *x = w.x + (size_t)t * s->n_embd;
        row_of(embd, (uint64_t)o->ids[t], x);
        for (uint32_t i = 0; i < s->n_embd; i++) x[i] *= embd_scale;
    }
    if (s->n_embd_layer) make_own(o, &w);
    for (uint32_t t = 0; t < o->n && o->margins; t++) o->margins[t] = INFINITY;
    for (uint32_t l = 0; l < s->n_layer; l++) layer_of(o, &w, l);
    if (o->logits) {
        double *logits = base_xcalloc((size_t)o->n * TINY_GGUF_VOCAB, sizeof *logits);
        for (uint32_t t = 0; t < o->n; t++)
            norm(weights(o, -1, "output_norm.weight"), w.x + (size_t)t * s->n_embd, s->n_embd,
                w.normed + (size_t)t * s->n_embd);
        product(head ? head : embd, NULL, o->n, w.normed, logits);
        const bool capped = is_gemma4(o) && !s->without_cap;
        for (size_t i = 0; i < (size_t)o->n * TINY_GGUF_VOCAB; i++)
            o->logits[i] = (float)(capped           ? TINY_CAP * tanh(logits[i] / TINY_CAP)
                                   : s->logit_scale ? logits[i] / s->logit_scale
                                                    : logits[i]);
        free(logits);
    }
    double *all[] = {w.x, w.q, w.k, w.v, w.normed, w.wide, w.gate, w.weights_of_rows, w.mixed, w.mixture,
        w.own, w.kept_k[0], w.kept_k[1], w.kept_v[0], w.kept_v[1]};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) free(all[i]);
    forget_numbers();
}
