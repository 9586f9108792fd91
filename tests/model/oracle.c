/* See oracle.h. */
#include "oracle.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

float oracle_from_half(uint16_t bits)
{
    int exponent = bits >> 10 & 31, fraction = bits & 1023;
    double x = exponent == 0    ? ldexp(fraction, -24)
               : exponent == 31 ? (fraction ? NAN : INFINITY)
                                : ldexp(1024 + fraction, exponent - 25);
    return (float)(bits & 0x8000 ? -x : x);
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

static const float *weights(const oracle *o, int layer, const char *name)
{
    char full[64];
    if (layer >= 0)
        snprintf(full, sizeof full, "blk.%d.%s", layer, name);
    else
        snprintf(full, sizeof full, "%s", name);
    const gguf_tensor *t = gguf_find_tensor(o->file, full);
    return t ? (const float *)(const void *)t->data : NULL;
}

/* out[n_out] = w x + bias */
static void product(
    const float *w, const float *bias, const double *x, uint32_t n_in, uint32_t n_out, double *out)
{
    for (uint32_t r = 0; r < n_out; r++) {
        double sum = bias ? bias[r] : 0;
        for (uint32_t i = 0; i < n_in; i++) sum += (double)w[(size_t)r * n_in + i] * x[i];
        out[r] = sum;
    }
}

static void norm(const float *w, const double *x, uint32_t n, double *out)
{
    double sum = 0;
    for (uint32_t i = 0; i < n; i++) sum += x[i] * x[i];
    double scale = 1 / sqrt(sum / n + 1e-5);
    for (uint32_t i = 0; i < n; i++) out[i] = x[i] * scale * w[i];
}

static void rope(double *head, uint32_t head_dim, uint32_t phase, bool neox)
{
    for (uint32_t i = 0; i < head_dim / 2; i++) {
        double angle = phase * pow(10000, -2.0 * i / head_dim), c = cos(angle), s = sin(angle);
        uint32_t a = neox ? i : 2 * i, b = neox ? i + head_dim / 2 : 2 * i + 1;
        double x = head[a], y = head[b];
        head[a] = x * c - y * s;
        head[b] = x * s + y * c;
    }
}

/* Everything of one run; sized for the whole sequence. */
typedef struct work {
    uint32_t head_dim, n_q, n_kv;
    double *x;         /* [n][n_embd] */
    double *q, *k, *v; /* [n][...] of the layer at hand */
    double *normed, *wide, *gate, *weights_of_rows, *mixed;
} work;

static void attend(const oracle *o, work *w, uint32_t layer, uint32_t t)
{
    const tiny_gguf *s = o->spec;
    uint32_t group = s->n_head / s->n_head_kv, d = w->head_dim;

    for (uint32_t head = 0; head < s->n_head; head++) {
        uint32_t kv = head / group, lane = layer * s->n_head_kv + kv;
        const double *q = w->q + (size_t)t * w->n_q + head * d;
        double max = -INFINITY, sum = 0, *p = w->weights_of_rows, *out = w->mixed + head * d;
        for (uint32_t i = 0; i <= t; i++) {
            p[i] = -INFINITY;
            if (o->mask && !o->mask(o->user, lane, t, i)) continue;
            p[i] = 0;
            for (uint32_t c = 0; c < d; c++) p[i] += q[c] * w->k[(size_t)i * w->n_kv + kv * d + c];
            p[i] /= sqrt(d);
            if (p[i] > max) max = p[i];
        }
        for (uint32_t i = 0; i <= t; i++) sum += p[i] = exp(p[i] - max);
        memset(out, 0, d * sizeof *out);
        for (uint32_t i = 0; i <= t; i++)
            for (uint32_t c = 0; c < d; c++) out[c] += p[i] / sum * w->v[(size_t)i * w->n_kv + kv * d + c];
    }
}

static void layer_of(const oracle *o, work *w, uint32_t layer)
{
    const tiny_gguf *s = o->spec;
    uint32_t n_embd = s->n_embd, d = w->head_dim;
    int l = (int)layer;
    bool neox = strcmp(s->architecture, "qwen2") == 0;

    for (uint32_t t = 0; t < o->n; t++) {
        double *q = w->q + (size_t)t * w->n_q, *k = w->k + (size_t)t * w->n_kv,
               *v = w->v + (size_t)t * w->n_kv;
        norm(weights(o, l, "attn_norm.weight"), w->x + (size_t)t * n_embd, n_embd, w->normed);
        product(weights(o, l, "attn_q.weight"), weights(o, l, "attn_q.bias"), w->normed, n_embd, w->n_q, q);
        product(weights(o, l, "attn_k.weight"), weights(o, l, "attn_k.bias"), w->normed, n_embd, w->n_kv, k);
        product(weights(o, l, "attn_v.weight"), weights(o, l, "attn_v.bias"), w->normed, n_embd, w->n_kv, v);
        for (uint32_t h = 0; h < s->n_head; h++) rope(q + h * d, d, o->phases[t], neox);
        for (uint32_t h = 0; h < s->n_head_kv; h++) rope(k + h * d, d, o->phases[t], neox);
        for (uint32_t i = 0; i < w->n_kv; i++) {
            k[i] = oracle_round_half((float)k[i]);
            v[i] = oracle_round_half((float)v[i]);
        }
        for (uint32_t h = 0; h < s->n_head && o->queries; h++)
            for (uint32_t c = 0; c < d; c++)
                o->queries[(((size_t)layer * s->n_head + h) * o->n + t) * d + c] = (float)q[h * d + c];
        for (uint32_t h = 0; h < s->n_head_kv && o->keys; h++)
            for (uint32_t c = 0; c < d; c++)
                o->keys[(((size_t)layer * s->n_head_kv + h) * o->n + t) * d + c] = (float)k[h * d + c];
    }
    for (uint32_t t = 0; t < o->n; t++) {
        double *x = w->x + (size_t)t * n_embd;
        attend(o, w, layer, t);
        product(weights(o, l, "attn_output.weight"), NULL, w->mixed, w->n_q, n_embd, w->normed);
        for (uint32_t i = 0; i < n_embd; i++) x[i] += w->normed[i];
        norm(weights(o, l, "ffn_norm.weight"), x, n_embd, w->normed);
        product(weights(o, l, "ffn_gate.weight"), NULL, w->normed, n_embd, s->n_ff, w->gate);
        product(weights(o, l, "ffn_up.weight"), NULL, w->normed, n_embd, s->n_ff, w->wide);
        for (uint32_t i = 0; i < s->n_ff; i++) w->wide[i] *= w->gate[i] / (1 + exp(-w->gate[i]));
        product(weights(o, l, "ffn_down.weight"), NULL, w->wide, s->n_ff, n_embd, w->normed);
        for (uint32_t i = 0; i < n_embd; i++) {
            x[i] += w->normed[i];
            if (o->hidden) o->hidden[((size_t)layer * o->n + t) * n_embd + i] = (float)x[i];
        }
    }
}

void oracle_run(const oracle *o)
{
    const tiny_gguf *s = o->spec;
    uint32_t d = s->n_embd / s->n_head;
    work w = {.head_dim = d, .n_q = s->n_head * d, .n_kv = s->n_head_kv * d};
    const float *embd = weights(o, -1, "token_embd.weight"), *head = weights(o, -1, "output.weight");

    w.x = base_xcalloc((size_t)o->n * s->n_embd, sizeof(double));
    w.q = base_xcalloc((size_t)o->n * w.n_q, sizeof(double));
    w.k = base_xcalloc((size_t)o->n * w.n_kv, sizeof(double));
    w.v = base_xcalloc((size_t)o->n * w.n_kv, sizeof(double));
    w.normed = base_xcalloc(s->n_embd, sizeof(double));
    w.wide = base_xcalloc(s->n_ff, sizeof(double));
    w.gate = base_xcalloc(s->n_ff, sizeof(double));
    w.weights_of_rows = base_xcalloc(o->n, sizeof(double));
    w.mixed = base_xcalloc(w.n_q, sizeof(double));
    for (uint32_t t = 0; t < o->n; t++)
        for (uint32_t i = 0; i < s->n_embd; i++)
            w.x[(size_t)t * s->n_embd + i] = embd[(size_t)o->ids[t] * s->n_embd + i];
    for (uint32_t l = 0; l < s->n_layer; l++) layer_of(o, &w, l);
    for (uint32_t t = 0; t < o->n && o->logits; t++) {
        double row[TINY_GGUF_VOCAB];
        norm(weights(o, -1, "output_norm.weight"), w.x + (size_t)t * s->n_embd, s->n_embd, w.normed);
        product(head ? head : embd, NULL, w.normed, s->n_embd, TINY_GGUF_VOCAB, row);
        for (uint32_t i = 0; i < TINY_GGUF_VOCAB; i++)
            o->logits[(size_t)t * TINY_GGUF_VOCAB + i] = (float)row[i];
    }
    double *all[] = {w.x, w.q, w.k, w.v, w.normed, w.wide, w.gate, w.weights_of_rows, w.mixed};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) free(all[i]);
}
