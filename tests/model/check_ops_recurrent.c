/*
 * The two operations of layers that keep a state: against F64, and a batch cut in two anywhere against the
 * whole of it, bit by bit.
 */
#include "check_ops.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

static float *copy_of(const float *x, size_t n)
{
    return memcpy(base_xmalloc(n * sizeof *x), x, n * sizeof *x);
}

/* ---- conv ---- */

typedef struct conv {
    uint32_t n, n_channels, n_taps, head_dim, n_query, n_unit;
    const float *x, *taps, *before; /* before: NULL for zeros */
} conv;

/* What x becomes, and behind it what stands before the next token; the first `cut` tokens as a batch of their own. */
static float *convolve(check *c, model_ops *ops, const conv *v, uint32_t cut)
{
    const size_t n_state = (size_t)(v->n_taps - 1) * v->n_channels, n = (size_t)v->n * v->n_channels;
    float *ret = base_xcalloc(n + n_state, sizeof *ret), *state = ret + n;
    ops_buffer *taps = buffer_of(ops, v->taps, (size_t)v->n_taps * v->n_channels * sizeof(float));
    for (uint32_t from = 0, to; from < v->n; from = to) {
        base_err err;
        to = from < cut ? cut : v->n;
        matrix x = matrix_new(ops, to - from, v->n_channels, v->x + (size_t)from * v->n_channels);
        ops_conv_args args = {.x = x.m,
            .taps = taps,
            .n = to - from,
            .n_channels = v->n_channels,
            .n_taps = v->n_taps,
            .head_dim = v->head_dim,
            .n_query = v->n_query,
            .n_unit = v->n_unit,
            .eps = 1e-6f,
            .before = from ? state : v->before,
            .after = state};
        expect_ok(c, "conv", ops->conv(ops, &args, &err), &err);
        float *got = matrix_take(c, "conv", x);
        memcpy(ret + (size_t)from * v->n_channels, got, (size_t)(to - from) * v->n_channels * sizeof *got);
        free(got);
    }
    ops->buffer_free(ops, taps);
    return ret;
}

static double tap_of(const conv *v, int64_t t, uint32_t channel)
{
    if (t >= 0) return v->x[(size_t)t * v->n_channels + channel];
    return v->before ? v->before[(size_t)(t + v->n_taps - 1) * v->n_channels + channel] : 0;
}

static void expect_convolved(check *c, const conv *v, const float *got)
{
    double *truth = base_xcalloc((size_t)v->n * v->n_channels, sizeof *truth);
    for (uint32_t t = 0; t < v->n; t++) {
        double *y = truth + (size_t)t * v->n_channels;
        for (uint32_t i = 0; i < v->n_channels; i++) {
            for (uint32_t k = 0; k < v->n_taps; k++)
                y[i] += v->taps[k * v->n_channels + i] * tap_of(v, (int64_t)t + k + 1 - v->n_taps, i);
            y[i] /= 1 + exp(-y[i]);
        }
        for (uint32_t h = 0; h < v->n_unit; h++) {
            double sum = 1e-6;
            for (uint32_t i = 0; i < v->head_dim; i++) sum += pow(y[h * v->head_dim + i], 2);
            for (uint32_t i = 0; i < v->head_dim; i++)
                y[h * v->head_dim + i] /= sqrt(sum) * (h < v->n_query ? sqrt(v->head_dim) : 1);
        }
    }
    expect_near(c, "conv", got, truth, (size_t)v->n * v->n_channels, 2e-5);
    free(truth);
}

static void check_conv(check *c, uint32_t n, uint32_t n_taps, uint32_t head_dim, uint32_t n_heads, bool first)
{
    const uint32_t n_channels = n_heads * head_dim;
    const size_t n_all = (size_t)n * n_channels, n_state = (size_t)(n_taps - 1) * n_channels;
    float *x = random_floats(n_all), *taps = random_floats((size_t)n_taps * n_channels),
          *before = random_floats(n_state);
    const conv v = {n, n_channels, n_taps, head_dim, 1, n_heads - 1, x, taps, first ? NULL : before};
    float *a = convolve(c, c->a, &v, 0), *b = convolve(c, c->b, &v, 0);
    expect_same(c, "conv", a, b, n_all + n_state);
    expect_convolved(c, &v, a);
    for (uint32_t cut = 1; cut < n; cut += n / 3 + 1) {
        float *parts = convolve(c, c->b, &v, cut);
        expect_same(c, "conv (in two batches)", a, parts, n_all + n_state);
        free(parts);
    }
    free(x);
    free(taps);
    free(before);
    free(a);
    free(b);
}

void cases_conv(check *c)
{
    c->what = "at a sequence's start";
    check_conv(c, 1, 4, 32, 3, true);
    check_conv(c, 2, 4, 128, 8, true);
    c->what = "behind other tokens";
    check_conv(c, 1, 4, 64, 5, false);
    check_conv(c, 7, 2, 48, 4, false);
    check_conv(c, 130, 8, 128, 6, false);
}

/* ---- delta ---- */

typedef struct delta {
    uint32_t n, n_key_heads, n_value_heads, head_dim;
    bool neighbours;
    const float *q, *k, *v, *alpha, *beta, *a, *dt, *before;
} delta;

static matrix part(model_ops *ops, const float *x, uint32_t from, uint32_t to, uint32_t width)
{
    return matrix_new(ops, to - from, width, x + (size_t)from * width);
}

/* Outputs, and behind them the state; the first `cut` tokens as a batch of their own. */
static float *walk(check *c, model_ops *ops, const delta *s, uint32_t cut)
{
    const uint32_t d = s->head_dim, n_keys = s->n_key_heads * d, n_values = s->n_value_heads * d;
    const size_t n_out = (size_t)s->n * n_values, n_state = (size_t)n_values * d;
    float *ret = base_xcalloc(n_out + n_state, sizeof *ret), *state = ret + n_out;
    ops_buffer *a = buffer_of(ops, s->a, s->n_value_heads * sizeof(float)),
               *dt = buffer_of(ops, s->dt, s->n_value_heads * sizeof(float));
    for (uint32_t from = 0, to; from < s->n; from = to) {
        base_err err;
        to = from < cut ? cut : s->n;
        matrix q = part(ops, s->q, from, to, n_keys), k = part(ops, s->k, from, to, n_keys),
               v = part(ops, s->v, from, to, n_values),
               alpha = part(ops, s->alpha, from, to, s->n_value_heads),
               beta = part(ops, s->beta, from, to, s->n_value_heads),
               out = matrix_new(ops, to - from, n_values, NULL);
        const ops_delta_args args = {.q = q.m,
            .k = k.m,
            .v = v.m,
            .out = out.m,
            .alpha = alpha.m,
            .beta = beta.m,
            .a = a,
            .dt = dt,
            .n = to - from,
            .n_key_heads = s->n_key_heads,
            .n_value_heads = s->n_value_heads,
            .head_dim = d,
            .neighbours = s->neighbours,
            .before = from ? state : s->before,
            .after = state};
        expect_ok(c, "delta", ops->delta(ops, &args, &err), &err);
        matrix read[] = {q, k, v, alpha, beta};
        for (size_t i = 0; i < COUNT(read); i++) free(matrix_take(c, "delta", read[i]));
        float *got = matrix_take(c, "delta", out);
        memcpy(ret + (size_t)from * n_values, got, (size_t)(to - from) * n_values * sizeof *got);
        free(got);
    }
    ops->buffer_free(ops, a);
    ops->buffer_free(ops, dt);
    return ret;
}

/* Where a number of a state lies (ops_delta_args). */
static size_t state_at(uint32_t d, uint32_t head, uint32_t key, uint32_t value)
{
    return (((size_t)head * (d / OPS_DELTA_COLUMNS) + value / OPS_DELTA_COLUMNS) * d + key) *
               OPS_DELTA_COLUMNS +
           value % OPS_DELTA_COLUMNS;
}

static void expect_walked(check *c, const delta *s, const float *got)
{
    const uint32_t d = s->head_dim, n_values = s->n_value_heads * d;
    const size_t n_out = (size_t)s->n * n_values, n_state = (size_t)n_values * d;
    double *truth = base_xcalloc(n_out + n_state, sizeof *truth), *state = truth + n_out;
    for (size_t i = 0; i < n_state && s->before; i++) state[i] = s->before[i];
    for (uint32_t t = 0; t < s->n; t++)
        for (uint32_t h = 0; h < s->n_value_heads; h++) {
            const size_t at = (size_t)t * s->n_value_heads + h;
            const uint32_t key = s->neighbours ? h / (s->n_value_heads / s->n_key_heads) : h % s->n_key_heads;
            const float *k = s->k + ((size_t)t * s->n_key_heads + key) * d,
                        *q = s->q + ((size_t)t * s->n_key_heads + key) * d;
            const double decay = exp(s->a[h] * log1p(exp((double)s->alpha[at] + s->dt[h]))),
                         beta = 1 / (1 + exp(-s->beta[at]));
            for (uint32_t j = 0; j < d; j++) {
                double kept = 0, sum = 0;
                for (uint32_t i = 0; i < d; i++) kept += decay * state[state_at(d, h, i, j)] * k[i];
                const double by = beta * (s->v[at * d + j] - kept);
                for (uint32_t i = 0; i < d; i++) {
                    double *x = &state[state_at(d, h, i, j)];
                    *x = *x * decay + k[i] * by;
                    sum += *x * q[i];
                }
                truth[at * d + j] = sum;
            }
        }
    expect_near(c, "delta", got, truth, n_out + n_state, 1e-4);
    free(truth);
}

/* Keys of length 1, as the layer makes them: others would let a state grow without end. */
static float *unit_heads(uint32_t n_heads, uint32_t d)
{
    float *x = random_floats((size_t)n_heads * d);
    for (uint32_t h = 0; h < n_heads; h++) {
        float sum = 0;
        for (uint32_t i = 0; i < d; i++) sum += x[h * d + i] * x[h * d + i];
        for (uint32_t i = 0; i < d; i++) x[h * d + i] /= sqrtf(sum);
    }
    return x;
}

static void check_delta(check *c, uint32_t n, uint32_t n_key_heads, uint32_t n_value_heads, uint32_t d,
    bool first, bool neighbours)
{
    const size_t n_out = (size_t)n * n_value_heads * d, n_state = (size_t)n_value_heads * d * d;
    float *all[] = {unit_heads(n * n_key_heads, d), unit_heads(n * n_key_heads, d), random_floats(n_out),
        random_floats((size_t)n * n_value_heads), random_floats((size_t)n * n_value_heads),
        random_floats(n_value_heads), random_floats(n_value_heads), random_floats(n_state)};
    for (uint32_t h = 0; h < n_value_heads; h++) all[5][h] = -fabsf(all[5][h]);
    all[3][0] = 40; /* softplus is then its argument */
    const delta s = {n, n_key_heads, n_value_heads, d, neighbours, all[0], all[1], all[2], all[3], all[4],
        all[5], all[6], first ? NULL : all[7]};
    float *before = copy_of(all[7], n_state), *a = walk(c, c->a, &s, 0), *b = walk(c, c->b, &s, 0);
    expect_same(c, "delta", a, b, n_out + n_state);
    expect_walked(c, &s, a);
    for (uint32_t cut = 1; cut < n; cut += n / 3 + 1) {
        float *parts = walk(c, c->b, &s, cut);
        expect_same(c, "delta (in two batches)", a, parts, n_out + n_state);
        free(parts);
    }
    expect_same(c, "delta (the state before)", before, all[7], n_state); /* it was only read */
    free(before);
    for (size_t i = 0; i < COUNT(all); i++) free(all[i]);
    free(a);
    free(b);
}

void cases_delta(check *c)
{
    c->what = "at a sequence's start";
    check_delta(c, 1, 1, 1, 32, true, false);
    check_delta(c, 5, 2, 4, 64, true, false);
    c->what = "behind other tokens";
    check_delta(c, 1, 4, 8, 128, false, false);
    check_delta(c, 40, 2, 6, 128, false, false);
    check_delta(c, 11, 2, 6, 64, false, true);
    check_delta(c, 9, 3, 3, 256, false, false);
}
