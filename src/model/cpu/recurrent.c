/*
 * Recurrent layers: the convolution over the last tokens (conv), and the state that the delta rule writes and
 * reads (delta).
 *
 * Tokens of one sequence depend on each other here, so threads share channels and columns, never tokens: a
 * head's columns know nothing of one another, and 32 of them, 16 KiB, stay in the nearest cache for the whole
 * batch. What a token gives is the same in every batch, since each step is made of the one before.
 */
#include <math.h>
#include <string.h>

#include "model/cpu/cpu.h"

enum { MIN_PARALLEL = 32 * 1024, COLUMNS = OPS_DELTA_COLUMNS };

static bool share(cpu_ops *cpu, cpu_items_fn *fn, const void *arg, uint32_t n_items, size_t n_elements)
{
    if (n_elements >= MIN_PARALLEL) return cpu_run_items(cpu, fn, arg, n_items, 1);
    fn(arg, 0, n_items, 0);
    return !cpu_is_cancelled(cpu);
}

/* ---- conv ---- */

typedef struct conv_job {
    const cpu_kernels *kernels;
    const ops_conv_args *args;
} conv_job;

/* One head's channels, all tokens. The raw rows that are still looked back at lie in a ring. */
static void convolve_head(const conv_job *j, uint32_t head)
{
    const ops_conv_args *a = j->args;
    const uint32_t d = a->head_dim, n_taps = a->n_taps, at = head * d;
    float ring[OPS_CONV_TAPS][CPU_HEAD_DIM_MAX], weight[CPU_HEAD_DIM_MAX];
    const float *taps[OPS_CONV_TAPS], *rows[OPS_CONV_TAPS];
    const float length = head < a->n_query ? 1.0f / (float)d : 1.0f / sqrtf((float)d);

    for (uint32_t i = 0; i < d; i++) weight[i] = length;
    for (uint32_t k = 0; k < n_taps; k++) taps[k] = cpu_floats(a->taps) + (size_t)k * a->n_channels + at;
    for (uint32_t k = 0; k + 1 < n_taps; k++) {
        if (a->before)
            memcpy(ring[k], a->before + (size_t)k * a->n_channels + at, d * sizeof(float));
        else
            memset(ring[k], 0, d * sizeof(float));
    }
    for (uint32_t t = 0; t < a->n; t++) {
        float *x = cpu_row(a->x, t) + at;
        memcpy(ring[(t + n_taps - 1) % n_taps], x, d * sizeof *x);
        for (uint32_t k = 0; k < n_taps; k++) rows[k] = ring[(t + k) % n_taps];
        j->kernels->conv_row(rows, taps, n_taps, d, x);
        /* x / sqrt(x . x + eps): an RMSNorm whose weight is 1 / sqrt(d), and whose eps is a d-th. */
        if (head < a->n_unit) j->kernels->norm_row(x, weight, d, a->eps / (float)d, x);
    }
    for (uint32_t k = 0; k + 1 < n_taps; k++)
        memcpy(a->after + (size_t)k * a->n_channels + at, ring[(a->n + k) % n_taps], d * sizeof(float));
}

static void convolve(const void *arg, uint32_t first, uint32_t last, int thread)
{
    (void)thread;
    for (uint32_t head = first; head < last; head++) convolve_head(arg, head);
}

int cpu_op_conv(model_ops *ops, const ops_conv_args *a, base_err *err)
{
    cpu_ops *cpu = (cpu_ops *)ops;
    if (a->n_taps < 2 || a->n_taps > OPS_CONV_TAPS || a->head_dim == 0 || a->head_dim > CPU_HEAD_DIM_MAX ||
        a->head_dim % CPU_LANES || a->n_channels % a->head_dim ||
        (size_t)a->n_taps * a->n_channels * sizeof(float) > a->taps->n_bytes)
        return base_fail(err, BASE_E_UNSUPPORTED, "a convolution of %u taps over %u channels in heads of %u",
            a->n_taps, a->n_channels, a->head_dim);
    const conv_job j = {&cpu->kernels, a};
    if (!share(cpu, convolve, &j, a->n_channels / a->head_dim, (size_t)a->n * a->n_channels))
        return cpu_cancelled(err);
    return 0;
}

/* ---- delta ---- */

typedef struct delta_job {
    const cpu_kernels *kernels;
    const ops_delta_args *args;
    float *factors; /* [n][n_value_heads][2]: decay, beta */
} delta_job;

/*
 * In F64, as angles are: what a library's exp does in its last place would otherwise show in every later
 * token.
 */
static void make_factors(const void *arg, uint32_t first, uint32_t last, int thread)
{
    const delta_job *j = arg;
    const ops_delta_args *a = j->args;
    (void)thread;
    for (uint32_t t = first; t < last; t++) {
        const float *alpha = cpu_row(a->alpha, t), *beta = cpu_row(a->beta, t);
        float *out = j->factors + (size_t)t * a->n_value_heads * 2;
        for (uint32_t h = 0; h < a->n_value_heads; h++) {
            const double x = (double)alpha[h] + cpu_floats(a->dt)[h], softplus = x > 20 ? x : log1p(exp(x));
            out[2 * h] = (float)exp(cpu_floats(a->a)[h] * softplus);
            out[2 * h + 1] = (float)(1 / (1 + exp(-(double)beta[h])));
        }
    }
}

/* Items: 32 columns of a value head, all tokens. */
static void walk_columns(const void *arg, uint32_t first, uint32_t last, int thread)
{
    const delta_job *j = arg;
    const ops_delta_args *a = j->args;
    const uint32_t d = a->head_dim, n_parts = d / COLUMNS, group = a->n_value_heads / a->n_key_heads;
    static const float zeros[CPU_HEAD_DIM_MAX * COLUMNS];
    (void)thread;
    for (uint32_t i = first; i < last; i++) {
        const uint32_t h = i / n_parts, key_head = a->neighbours ? h / group : h % a->n_key_heads,
                       column = h * d + i % n_parts * COLUMNS;
        float *to = a->after + (size_t)i * d * COLUMNS;
        const float *from = a->before ? a->before + (size_t)i * d * COLUMNS : zeros;
        for (uint32_t t = 0; t < a->n; t++, from = to) {
            const float *factors = j->factors + ((size_t)t * a->n_value_heads + h) * 2;
            const cpu_delta step = {.q = cpu_row(a->q, t) + (size_t)key_head * d,
                .k = cpu_row(a->k, t) + (size_t)key_head * d,
                .v = cpu_row(a->v, t) + column,
                .n_keys = d,
                .decay = factors[0],
                .beta = factors[1]};
            j->kernels->delta_step(&step, from, to, cpu_row(a->out, t) + column);
        }
    }
}

int cpu_op_delta(model_ops *ops, const ops_delta_args *a, base_err *err)
{
    cpu_ops *cpu = (cpu_ops *)ops;
    if (a->head_dim == 0 || a->head_dim > CPU_HEAD_DIM_MAX || a->head_dim % COLUMNS || a->n_key_heads == 0 ||
        a->n_value_heads % a->n_key_heads)
        return base_fail(err, BASE_E_UNSUPPORTED, "a state of %u heads of %u for %u heads of keys",
            a->n_value_heads, a->head_dim, a->n_key_heads);
    const size_t n_factors = (size_t)a->n * a->n_value_heads * 2;
    int rc = cpu_scratch_reserve(cpu, 0, n_factors * sizeof(float), err);
    if (rc) return rc;
    const delta_job j = {&cpu->kernels, a, cpu->shared.data};
    const size_t n_state = (size_t)a->n_value_heads * a->head_dim * a->head_dim;
    if (!share(cpu, make_factors, &j, a->n, 8 * n_factors)) return cpu_cancelled(err);
    if (!share(cpu, walk_columns, &j, a->n_value_heads * (a->head_dim / COLUMNS), a->n * n_state))
        return cpu_cancelled(err);
    return 0;
}
