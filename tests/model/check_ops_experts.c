/*
 * The two operations of a mixture of experts: the router against softmax in F64, and the experts against the
 * same sums made of single products, bit by bit. Batches, spread over few and many experts, must not show.
 */
#include "check_ops.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

typedef struct routing {
    uint32_t n, width, n_experts, n_used;
    const float *x, *router;
    const float *shared; /* of an expert that all tokens go to, or NULL */
    float *shares;       /* [n] out: how much it counts */
    const float *bias;   /* [n_experts] or NULL */
    const float *scales; /* the same */
} routing;

/* Experts and weights, as floats [n][2][n_used]. */
static float *route(check *c, model_ops *ops, const routing *r)
{
    base_err err;
    const size_t n_chosen = (size_t)r->n * r->n_used;
    uint32_t *ids = base_xcalloc(n_chosen, sizeof *ids);
    float *weights = base_xcalloc(n_chosen, sizeof *weights), *ret = base_xcalloc(2 * n_chosen, sizeof *ret);
    matrix x = matrix_new(ops, r->n, r->width, r->x);
    ops_buffer *router = buffer_of(ops, r->router, (size_t)r->n_experts * r->width * sizeof(float)),
               *chosen = buffer_of(ops, ids, n_chosen * sizeof *ids),
               *shares = buffer_of(ops, weights, n_chosen * sizeof *weights),
               *shared = buffer_of(ops, r->shared ? r->shared : r->x, r->width * sizeof(float)),
               *all = buffer_of(ops, r->x, r->n * sizeof(float)),
               *bias = r->bias ? buffer_of(ops, r->bias, r->n_experts * sizeof(float)) : NULL,
               *scales = r->scales ? buffer_of(ops, r->scales, r->n_experts * sizeof(float)) : NULL;
    const ops_route_args args = {.x = x.m,
        .router = router,
        .bias = bias,
        .scales = scales,
        .n = r->n,
        .width = r->width,
        .n_experts = r->n_experts,
        .n_used = r->n_used,
        .chosen = chosen,
        .weights = shares,
        .shared = r->shared ? shared : NULL,
        .shares = all};
    expect_ok(c, "route", ops->route(ops, &args, &err), &err);
    if (r->shared) ops->download(ops, r->shares, all, 0, r->n * sizeof *r->shares);
    ops->download(ops, ids, chosen, 0, n_chosen * sizeof *ids);
    ops->download(ops, weights, shares, 0, n_chosen * sizeof *weights);
    for (uint32_t t = 0; t < r->n; t++)
        for (uint32_t i = 0; i < r->n_used; i++) {
            ret[(2 * (size_t)t) * r->n_used + i] = (float)ids[t * r->n_used + i];
            ret[(2 * (size_t)t + 1) * r->n_used + i] = weights[t * r->n_used + i];
        }
    ops->buffer_free(ops, router);
    if (bias) ops->buffer_free(ops, bias);
    if (scales) ops->buffer_free(ops, scales);
    ops->buffer_free(ops, chosen);
    ops->buffer_free(ops, shares);
    ops->buffer_free(ops, shared);
    ops->buffer_free(ops, all);
    free(matrix_take(c, "route", x));
    free(ids);
    free(weights);
    return ret;
}

/* One token's choice by F64. */
static void expect_routed(check *c, const routing *r, uint32_t t, const float *got)
{
    double *p = base_xcalloc(r->n_experts, sizeof *p), *truth = base_xcalloc(2 * r->n_used, sizeof *truth);
    double sum = 0;
    for (uint32_t e = 0; e < r->n_experts; e++) {
        for (uint32_t k = 0; k < r->width; k++)
            p[e] += (double)r->router[(size_t)e * r->width + k] * r->x[(size_t)t * r->width + k];
        p[e] = exp(p[e] + (r->bias ? r->bias[e] : 0));
    }
    for (uint32_t i = 0; i < r->n_used; i++) {
        uint32_t best = 0;
        for (uint32_t e = 1; e < r->n_experts; e++)
            if (p[e] > p[best]) best = e;
        truth[i] = best;
        truth[r->n_used + i] = p[best];
        sum += p[best];
        p[best] = -1;
    }
    for (uint32_t i = 0; i < r->n_used; i++)
        truth[r->n_used + i] *= (r->scales ? r->scales[(uint32_t)truth[i]] : 1) / sum;
    expect_near(c, "route", got, truth, 2 * r->n_used, 1e-5);
    free(p);
    free(truth);
}

static void check_route(
    check *c, uint32_t n, uint32_t width, uint32_t n_experts, uint32_t n_used, bool biased)
{
    float *bias = random_floats(n_experts), *x = random_floats((size_t)n * width),
          *router = random_floats((size_t)n_experts * width);
    for (size_t i = 0; i < (size_t)n_experts * width; i++) router[i] /= sqrtf((float)width);
    routing r = {n, width, n_experts, n_used, x, router, NULL, NULL, biased ? bias : NULL, biased ? x : NULL};
    float *a = route(c, c->a, &r), *b = route(c, c->b, &r);
    expect_same(c, "route", a, b, 2 * (size_t)n * n_used);
    for (uint32_t t = 0; t < n && t < 4; t++) expect_routed(c, &r, t, a + 2 * (size_t)t * n_used);
    routing alone = r;
    alone.n = 1;
    alone.x += (size_t)(n - 1) * width;
    float *last = route(c, c->b, &alone);
    expect_same(c, "route (a row alone)", b + 2 * (size_t)(n - 1) * n_used, last, 2 * n_used);
    free(a);
    free(b);
    free(last);
    free(x);
    free(router);
    free(bias);
}

/* Experts that no number tells apart are taken in the order of their index; what is no number says so. */
static void check_route_ties(check *c)
{
    enum { WIDTH = 32, EXPERTS = 6, USED = 3 };
    float x[2 * WIDTH], router[EXPERTS * WIDTH];
    for (int i = 0; i < WIDTH; i++) x[i] = 1;
    for (int i = 0; i < WIDTH; i++) x[WIDTH + i] = NAN;
    for (int e = 0; e < EXPERTS; e++)
        for (int i = 0; i < WIDTH; i++) router[e * WIDTH + i] = e == 1 || e == 3 || e == 4 ? 0.25f : e == 5;
    float *got = route(c, c->b, &(routing){2, WIDTH, EXPERTS, USED, x, router, NULL, NULL, NULL});
    const float best[USED] = {5, 1, 3}, none[USED] = {0, 1, 2}, nan[USED] = {NAN, NAN, NAN};
    expect_same(c, "route (ties)", best, got, USED);
    expect_same(c, "route (not numbers)", none, got + 2 * USED, USED);
    expect_same(c, "route (not numbers)", nan, got + 3 * USED, USED);
    free(got);
}

/* An expert that all tokens go to counts by its own gate, and exchanges no other. */
static void check_route_shared(check *c)
{
    enum { N = 9, WIDTH = 96, EXPERTS = 8, USED = 2 };
    float *x = random_floats(N * WIDTH), *router = random_floats(EXPERTS * WIDTH),
          *shared = random_floats(WIDTH);
    float shares[2][N];
    double truth[N];
    routing r = {N, WIDTH, EXPERTS, USED, x, router, shared, shares[0], NULL}, none = r;
    none.shared = NULL;
    float *a = route(c, c->a, &r), *without = route(c, c->b, &none);
    r.shares = shares[1];
    float *b = route(c, c->b, &r);
    expect_same(c, "route (shared)", a, b, 2 * N * USED);
    expect_same(c, "route (not shared)", a, without, 2 * N * USED);
    expect_same(c, "route (shares)", shares[0], shares[1], N);
    for (int t = 0; t < N; t++) {
        double sum = 0;
        for (int i = 0; i < WIDTH; i++) sum += (double)shared[i] * x[t * WIDTH + i];
        truth[t] = 1 / (1 + exp(-sum));
    }
    expect_near(c, "route (shares)", shares[0], truth, N, 1e-5);
    free(x);
    free(router);
    free(shared);
    free(a);
    free(b);
    free(without);
}

void cases_route(check *c)
{
    c->what = "softmax, the best";
    check_route(c, 1, 64, 4, 2, false);
    check_route(c, 7, 96, 37, 5, true);
    check_route(c, 40, 512, 128, 8, false);
    check_route(c, 3, 64, 8, 8, true);
    check_route_ties(c);
    check_route_shared(c);
}

/* ---- experts ---- */

typedef struct mixture {
    gguf_tensor gate, up, down; /* of all experts */
    uint32_t n, width, n_ff, n_experts, n_used;
    const float *x, *weights, *add;
    const uint32_t *chosen;
    ops_gate kind;
    const float *gate_bias, *up_bias, *down_bias; /* [n_experts][outputs], or NULL */
} mixture;

static ops_buffer *biases(model_ops *ops, const float *of, size_t n)
{
    return of ? buffer_of(ops, of, n * sizeof *of) : NULL;
}

static ops_weight *packed(check *c, model_ops *ops, const gguf_tensor *t)
{
    base_err err;
    ops_weight *w = NULL;
    expect_ok(c, "pack", ops->pack(ops, &w, t, &err), &err);
    return w;
}

static float *mix(check *c, model_ops *ops, const mixture *m)
{
    base_err err;
    const size_t n_chosen = (size_t)m->n * m->n_used;
    ops_weight *gate = packed(c, ops, &m->gate), *up = packed(c, ops, &m->up),
               *down = packed(c, ops, &m->down);
    ops_activations *x = activations(c, ops, m->n, m->width, m->x);
    ops_buffer *chosen = buffer_of(ops, m->chosen, n_chosen * sizeof *m->chosen),
               *weights = buffer_of(ops, m->weights, n_chosen * sizeof *m->weights);
    ops_buffer *more[] = {biases(ops, m->gate_bias, (size_t)m->n_experts * m->n_ff),
        biases(ops, m->up_bias, (size_t)m->n_experts * m->n_ff),
        biases(ops, m->down_bias, (size_t)m->n_experts * m->width)};
    matrix y = matrix_new(ops, m->n, m->width, m->add);
    ops_experts_args args = {.x = x,
        .chosen = chosen,
        .weights = weights,
        .n_experts = m->n_experts,
        .n_used = m->n_used,
        .gate = gate,
        .up = up,
        .down = down,
        .gate_bias = more[0],
        .up_bias = more[1],
        .down_bias = more[2],
        .kind = m->kind,
        .y = y.m};
    if (m->add) args.add = y.m;
    expect_ok(c, "experts", ops->experts(ops, &args, &err), &err);
    for (size_t i = 0; i < COUNT(more); i++)
        if (more[i]) ops->buffer_free(ops, more[i]);
    ops->activations_free(ops, x);
    ops->buffer_free(ops, chosen);
    ops->buffer_free(ops, weights);
    ops->weight_free(ops, gate);
    ops->weight_free(ops, up);
    ops->weight_free(ops, down);
    return matrix_take(c, "experts", y);
}

/* The matrix of one expert. */
static gguf_tensor slab(gguf_tensor t, uint32_t expert)
{
    t.n_bytes /= t.ne[2];
    t.data += expert * t.n_bytes;
    t.ne[2] = 1;
    return t;
}

/* y[t] of one token, expert by expert with operations that know nothing of mixtures. */
static void mix_apart(check *c, const mixture *m, uint32_t t, float *y)
{
    model_ops *ops = c->a;
    base_err err;
    for (uint32_t i = 0; i < m->n_used; i++) {
        const uint32_t e = m->chosen[t * m->n_used + i];
        gguf_tensor of_gate = slab(m->gate, e), of_up = slab(m->up, e), of_down = slab(m->down, e);
        ops_weight *gate = packed(c, ops, &of_gate), *up = packed(c, ops, &of_up),
                   *down = packed(c, ops, &of_down);
        ops_activations *x = activations(c, ops, 1, m->width, m->x + (size_t)t * m->width), *hidden = NULL;
        matrix g = matrix_new(ops, 1, m->n_ff, NULL), u = matrix_new(ops, 1, m->n_ff, NULL),
               out = matrix_new(ops, 1, m->width, NULL);
        ops_buffer *more[] = {biases(ops, m->gate_bias ? m->gate_bias + (size_t)e * m->n_ff : NULL, m->n_ff),
            biases(ops, m->up_bias ? m->up_bias + (size_t)e * m->n_ff : NULL, m->n_ff),
            biases(ops, m->down_bias ? m->down_bias + (size_t)e * m->width : NULL, m->width)};
        ops_matmul_args first = {.x = x,
            .n_parts = 2,
            .parts = {
                {.weight = gate, .bias = more[0], .y = g.m}, {.weight = up, .bias = more[1], .y = u.m}}};
        expect_ok(c, "matmul", ops->matmul(ops, &first, &err), &err);
        expect_ok(c, "activations_new", ops->activations_new(ops, &hidden, 1, m->n_ff, &err), &err);
        ops_gate_quant_args act = {
            .gate = g.m, .up = u.m, .kind = m->kind, .n = 1, .width = m->n_ff, .out = hidden};
        expect_ok(c, "gate_quant", ops->gate_quant(ops, &act, &err), &err);
        ops_matmul_args second = {
            .x = hidden, .n_parts = 1, .parts = {{.weight = down, .bias = more[2], .y = out.m}}};
        expect_ok(c, "matmul", ops->matmul(ops, &second, &err), &err);
        for (size_t k = 0; k < COUNT(more); k++)
            if (more[k]) ops->buffer_free(ops, more[k]);
        ops->activations_free(ops, x);
        ops->activations_free(ops, hidden);
        ops->weight_free(ops, gate);
        ops->weight_free(ops, up);
        ops->weight_free(ops, down);
        free(matrix_take(c, "matmul", g));
        free(matrix_take(c, "matmul", u));
        float *one = matrix_take(c, "matmul", out);
        const float weight = m->weights[t * m->n_used + i];
        for (uint32_t k = 0; k < m->width; k++) y[k] = i ? y[k] + weight * one[k] : weight * one[k];
        free(one);
    }
    for (uint32_t k = 0; k < m->width && m->add; k++) y[k] += m->add[(size_t)t * m->width + k];
}

static gguf_tensor stack_of(gguf_tensor_type type, uint32_t n_in, uint32_t n_out, uint32_t n_experts)
{
    gguf_tensor t = tensor_new(type, n_in, n_out * n_experts);
    t.ne[1] = n_out;
    t.ne[2] = n_experts;
    return t;
}

/* Distinct experts for each token; with `crowd` nearly all tokens choose the same ones. */
static uint32_t *choices(uint32_t n, uint32_t n_experts, uint32_t n_used, bool crowd)
{
    uint32_t *chosen = base_xcalloc((size_t)n * n_used, sizeof *chosen);
    for (uint32_t t = 0; t < n; t++) {
        const uint32_t first = crowd && t % 5 ? 2 : random_u32() % n_experts;
        for (uint32_t i = 0; i < n_used; i++) chosen[t * n_used + i] = (first + i * i) % n_experts;
        for (uint32_t i = 1; i < n_used;
             i++) /* i * i may meet itself: then it goes on to the next free one */
            for (uint32_t k = 0; k < i; k++)
                if (chosen[t * n_used + k] == chosen[t * n_used + i]) {
                    chosen[t * n_used + i] = (chosen[t * n_used + i] + 1) % n_experts;
                    k = UINT32_MAX;
                }
    }
    return chosen;
}

static void check_experts(
    check *c, gguf_tensor_type gate, gguf_tensor_type down, uint32_t n, uint32_t n_experts, bool crowd)
{
    enum { WIDTH = 256, N_FF = 512, USED = 3 };
    float *x = random_floats((size_t)n * WIDTH), *weights = random_floats((size_t)n * USED),
          *add = random_floats((size_t)n * WIDTH), apart[WIDTH];
    if (n > 1) x[WIDTH + 3] = 40000; /* a row with a second column, and its hidden numbers too */
    uint32_t *chosen = choices(n, n_experts, USED, crowd);
    mixture m = {stack_of(gate, WIDTH, N_FF, n_experts), stack_of(gate, WIDTH, N_FF, n_experts),
        stack_of(down, N_FF, WIDTH, n_experts), n, WIDTH, N_FF, n_experts, USED, x, weights,
        n % 2 ? add : NULL, chosen, n % 3 ? OPS_GATE_SILU : OPS_GATE_GELU_TANH, NULL, NULL, NULL};
    float *bias = random_floats((size_t)n_experts * (N_FF + N_FF + WIDTH));
    if (gate == GGUF_TENSOR_MXFP4) { /* as gpt-oss has it */
        m.kind = OPS_GATE_CLAMPED;
        m.gate_bias = bias;
        m.up_bias = m.gate_bias + (size_t)n_experts * N_FF;
        m.down_bias = m.up_bias + (size_t)n_experts * N_FF;
    }
    float *a = mix(c, c->a, &m), *b = mix(c, c->b, &m);
    expect_same(c, "experts", a, b, (size_t)n * WIDTH);
    for (uint32_t t = 0; t < n; t += n / 3 + 1) {
        mix_apart(c, &m, t, apart);
        expect_same(c, "experts (one by one)", apart, a + (size_t)t * WIDTH, WIDTH);
    }
    tensor_free(m.gate);
    tensor_free(m.up);
    tensor_free(m.down);
    free(x);
    free(weights);
    free(add);
    free(chosen);
    free(bias);
    free(a);
    free(b);
}

/* The CPU says so; on a device, where nobody waits for the choice, what comes of it is no number. */
static void check_unknown_expert(check *c)
{
    base_err err = {0};
    c->what = "an expert that does not exist";
    gguf_tensor t = stack_of(GGUF_TENSOR_Q8_0, 32, 32, 2);
    const uint32_t none = 2;
    const float one = 1;
    ops_weight *w = packed(c, c->b, &t);
    float values[32] = {0};
    ops_activations *x = activations(c, c->b, 1, 32, values);
    ops_buffer *chosen = buffer_of(c->b, &none, sizeof none), *weights = buffer_of(c->b, &one, sizeof one);
    matrix y = matrix_new(c->b, 1, 32, NULL);
    ops_experts_args args = {.x = x,
        .chosen = chosen,
        .weights = weights,
        .n_experts = 2,
        .n_used = 1,
        .gate = w,
        .up = w,
        .down = w,
        .y = y.m};
    const bool is_device = strncmp(c->b->backend, "cuda", 4) == 0;
    const int rc = c->b->experts(c->b, &args, &err);
    if (rc != (is_device ? 0 : BASE_E_LIMIT)) fail(c, "was taken", "experts", 0, 0, 0);
    if (is_device) {
        c->b->download(c->b, values, y.m.buffer, y.m.first * sizeof *values, sizeof values);
        for (int i = 0; i < 32; i++)
            if (!isnan(values[i])) fail(c, "is a number", "experts", 0, (uint32_t)i, values[i]);
    }
    args.n_experts = 3; /* 64 outputs are no three experts' */
    if (c->b->experts(c->b, &args, &err) != BASE_E_UNSUPPORTED) fail(c, "was taken", "experts", 0, 0, 0);
    c->n_cases++;
    c->b->activations_free(c->b, x);
    c->b->weight_free(c->b, w);
    c->b->buffer_free(c->b, chosen);
    c->b->buffer_free(c->b, weights);
    free(matrix_take(c, "experts", y));
    tensor_free(t);
}

void cases_experts(check *c)
{
    c->what = "few tokens";
    check_experts(c, GGUF_TENSOR_Q4_K, GGUF_TENSOR_Q6_K, 1, 8, false);
    check_experts(c, GGUF_TENSOR_F32, GGUF_TENSOR_F32, 2, 5, false);
    check_experts(c, GGUF_TENSOR_Q8_0, GGUF_TENSOR_Q5_0, 5, 4, false);
    check_experts(c, GGUF_TENSOR_MXFP4, GGUF_TENSOR_MXFP4, 7, 6, false);
    check_experts(c, GGUF_TENSOR_Q2_K, GGUF_TENSOR_Q3_K, 6, 8, false);
    check_experts(c, GGUF_TENSOR_IQ2_XXS, GGUF_TENSOR_IQ3_S, 3, 4, false);
    c->what = "many tokens";
    check_experts(c, GGUF_TENSOR_Q4_K, GGUF_TENSOR_Q6_K, 33, 8, true);
    check_experts(c, GGUF_TENSOR_Q2_K, GGUF_TENSOR_Q2_K, 40, 8, true);
    check_experts(c, GGUF_TENSOR_Q4_0, GGUF_TENSOR_Q4_1, 130, 32, false);
    check_experts(c, GGUF_TENSOR_MXFP4, GGUF_TENSOR_Q8_0, 64, 4, true);
    check_unknown_expert(c);
}
