/*
 * The kernel version is part of a cache state's identity: rows that were saved are continued only by kernels
 * that would have made the same bits. So a change of bits must raise model_ops.kernel_version, and this
 * notices: fixed inputs through every kind of kernel of plain C (the levels equal it), hashed, against the
 * hash that belongs to the version.
 *
 * RoPE is left out: its angles come from the C library.
 */
#include "check_ops.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/mem.h"
#include "model/file/quant.h"
#include "model/ops/sketch.h"

/*
 * After a change that is meant: raise kernel_version (cpu_ops.c), and put it here with the hash that is
 * printed.
 */
static const uint32_t version = 3;
static const uint64_t fingerprint = 0xcdee4b3f00f3a499, fingerprint_of_mixtures = 0x94fca915246fc714,
                      fingerprint_of_visits = 0x3a60330a0f2c4e67;

typedef struct maker {
    model_ops *ops;
    uint64_t hash;
} maker;

static void add(maker *m, check *c, const char *op, matrix x)
{
    float *values = matrix_take(c, op, x);
    m->hash = base_hash64(values, (size_t)x.n * x.width * sizeof *values, m->hash);
    free(values);
}

/*
 * One row alone and twelve together, one of them with an enormous element: columns, panels, second columns.
 */
static void add_products(maker *m, check *c, gguf_tensor_type type)
{
    enum { N_IN = 256, N_OUT = 16 };
    static const uint32_t sizes[] = {1, 12};
    gguf_tensor t = tensor_new(type, N_IN, N_OUT);
    base_err err;
    ops_weight *w = NULL;
    expect_ok(c, "pack", m->ops->pack(m->ops, &w, &t, &err), &err);
    for (size_t i = 0; i < COUNT(sizes); i++) {
        float *values = random_floats((size_t)sizes[i] * N_IN);
        if (i) values[N_IN + 7] = 30000;
        ops_activations *x = activations(c, m->ops, sizes[i], N_IN, values);
        matrix y = matrix_new(m->ops, sizes[i], N_OUT, NULL);
        ops_matmul_args args = {.x = x, .n_parts = 1, .parts = {{.weight = w, .y = y.m}}};
        expect_ok(c, "matmul", m->ops->matmul(m->ops, &args, &err), &err);
        m->ops->activations_free(m->ops, x);
        free(values);
        add(m, c, "matmul", y);
    }
    m->ops->weight_free(m->ops, w);
    tensor_free(t);
}

static void add_rows(maker *m, check *c)
{
    enum { N = 3, WIDTH = 128 };
    base_err err;
    float *values = random_floats(N * WIDTH), *weight = random_floats(WIDTH);
    ops_buffer *w = buffer_of(m->ops, weight, WIDTH * sizeof *weight);
    matrix x = matrix_new(m->ops, N, WIDTH, values);
    ops_norm_args norm = {
        .x = x.m, .out = x.m, .weight = w, .n = N, .n_groups = 1, .width = WIDTH, .eps = 1e-6f};
    expect_ok(c, "norm", m->ops->norm(m->ops, &norm, &err), &err);
    for (int kind = 0; kind < 2; kind++) {
        ops_activations *out = NULL;
        expect_ok(c, "activations_new", m->ops->activations_new(m->ops, &out, N, WIDTH, &err), &err);
        ops_gate_quant_args gate = {
            .gate = x.m, .up = x.m, .kind = (ops_gate)kind, .n = N, .width = WIDTH, .out = out};
        expect_ok(c, "gate_quant", m->ops->gate_quant(m->ops, &gate, &err), &err);
        float *taken = activations_take(c, m->ops, out, N, WIDTH);
        m->hash = base_hash64(taken, N * WIDTH * sizeof *taken, m->hash);
        free(taken);
    }
    m->ops->buffer_free(m->ops, w);
    add(m, c, "norm", x);
    free(values);
    free(weight);
}

/* One lane, 300 rows in two tiles: written, attended to by one token and by twelve, scored. */
static void add_attention(maker *m, check *c)
{
    enum { HEADS = 3, HEAD = 48, ROWS = 300 };
    static const uint32_t sizes[] = {1, 12};
    const model_rows_shape shape = {1, 1, HEAD};
    base_err err;
    uint16_t *blocks[ROWS / MODEL_ROWS_BLOCK + 1];
    for (size_t i = 0; i < COUNT(blocks); i++) blocks[i] = base_xcalloc(1, model_rows_block_bytes(&shape));
    model_run runs[COUNT(blocks)]; /* none crosses a block */
    for (uint32_t at = 0; at < ROWS; at += MODEL_ROWS_BLOCK)
        runs[at / MODEL_ROWS_BLOCK] =
            (model_run){at, at, ROWS - at < MODEL_ROWS_BLOCK ? ROWS - at : MODEL_ROWS_BLOCK};
    model_lane_list lane = {runs, COUNT(blocks), ROWS};
    model_rows_view view = {shape, blocks, COUNT(blocks), &lane};
    float *keys = random_floats(ROWS * HEAD), *values = random_floats(ROWS * HEAD);
    matrix k = matrix_new(m->ops, ROWS, HEAD, keys), v = matrix_new(m->ops, ROWS, HEAD, values);
    ops_rows_write_args write = {.rows = &view, .n = ROWS, .k = k.m, .v = v.m};
    expect_ok(c, "rows_write", m->ops->rows_write(m->ops, &write, &err), &err);
    for (size_t i = 0; i < COUNT(sizes); i++) {
        float *queries = random_floats((size_t)sizes[i] * HEADS * HEAD);
        matrix q = matrix_new(m->ops, sizes[i], HEADS * HEAD, queries);
        ops_attention_args a = {
            .rows = &view, .n = sizes[i], .n_head = HEADS, .scale = 0.2f, .q = q.m, .out = q.m};
        expect_ok(c, "attention", m->ops->attention(m->ops, &a, &err), &err);
        add(m, c, "attention", q);
        free(queries);
    }
    float mass[ROWS], *of_lane = mass;
    ops_score_rows_args score = {
        .rows = &view, .queries = keys, .n_queries = 4, .n_head = HEADS, .scale = 0.2f, .mass = &of_lane};
    expect_ok(c, "score_rows", m->ops->score_rows(m->ops, &score, &err), &err);
    m->hash = base_hash64(mass, sizeof mass, m->hash);
    m->ops->buffer_free(m->ops, k.m.buffer);
    m->ops->buffer_free(m->ops, v.m.buffer);
    for (size_t i = 0; i < COUNT(blocks); i++) free(blocks[i]);
    free(keys);
    free(values);
}

/* Seven tokens that go to two of five experts. */
static void add_mixture(maker *m, check *c)
{
    enum { N = 7, WIDTH = 256, EXPERTS = 5, USED = 2 };
    base_err err;
    float *values = random_floats(N * WIDTH), *scores = random_floats(EXPERTS * WIDTH), none[N * USED] = {0};
    gguf_tensor t = tensor_new(GGUF_TENSOR_Q4_K, WIDTH, WIDTH * EXPERTS);
    gguf_tensor fp4 = tensor_new(GGUF_TENSOR_MXFP4, WIDTH, WIDTH * EXPERTS);
    ops_weight *w = NULL, *down = NULL;
    expect_ok(c, "pack", m->ops->pack(m->ops, &w, &t, &err), &err);
    expect_ok(c, "pack", m->ops->pack(m->ops, &down, &fp4, &err), &err);
    ops_buffer *router = buffer_of(m->ops, scores, EXPERTS * WIDTH * sizeof *scores),
               *chosen = buffer_of(m->ops, none, sizeof none),
               *weights = buffer_of(m->ops, none, sizeof none);
    matrix x = matrix_new(m->ops, N, WIDTH, values);
    ops_route_args route = {.x = x.m,
        .router = router,
        .n = N,
        .width = WIDTH,
        .n_experts = EXPERTS,
        .n_used = USED,
        .chosen = chosen,
        .weights = weights};
    expect_ok(c, "route", m->ops->route(m->ops, &route, &err), &err);
    ops_activations *q = activations(c, m->ops, N, WIDTH, values);
    ops_experts_args experts = {.x = q,
        .chosen = chosen,
        .weights = weights,
        .n_experts = EXPERTS,
        .n_used = USED,
        .gate = w,
        .up = w,
        .down = down,
        .y = x.m,
        .add = x.m};
    expect_ok(c, "experts", m->ops->experts(m->ops, &experts, &err), &err);
    m->ops->buffer_free(m->ops, router);
    m->ops->buffer_free(m->ops, chosen);
    m->ops->buffer_free(m->ops, weights);
    m->ops->activations_free(m->ops, q);
    m->ops->weight_free(m->ops, w);
    m->ops->weight_free(m->ops, down);
    add(m, c, "experts", x);
    tensor_free(t);
    tensor_free(fp4);
    free(values);
    free(scores);
}

static void expect_hash(check *c, uint64_t hash, uint64_t known)
{
    c->n_cases++;
    if (hash == known && c->a->kernel_version == version) return;
    printf("FAILED: kernel_version %" PRIu32 " gives 0x%016" PRIx64 "; %" PRIu32 " was 0x%016" PRIx64
           ".\nWhen bits changed, raise kernel_version; then both go into check_ops_version.c\n",
        c->a->kernel_version, hash, version, known);
    c->n_failed++;
}

/* One lane of two blocks, 40 rows listed: of the others 20 visit, by sketch and by key. */
static void add_visits(maker *m, check *c)
{
    enum { N = 2, HEADS = 3, HEAD = 48, LISTED = 40, SLOTS = 2 * MODEL_ROWS_BLOCK, MOST = 20 };
    const model_rows_shape shape = {1, 1, HEAD};
    base_err err;
    uint16_t *blocks[2];
    uint8_t *sketch = aligned_alloc(64, model_sketch_bytes(model_rows_lanes(&shape), shape.head_dim));
    const uint8_t *sketches[2] = {sketch, NULL};
    for (int b = 0; b < 2; b++) {
        blocks[b] = base_xcalloc(1, model_rows_block_bytes(&shape));
        for (size_t i = 0; i < model_rows_block_bytes(&shape) / 2; i++)
            blocks[b][i] = quant_f32_to_f16(random_float());
    }
    model_sketch_make(shape.head_dim, NULL, model_rows_lanes(&shape), blocks[0], sketch);
    const model_run run = {SLOTS - LISTED, SLOTS - LISTED, LISTED};
    const model_lane_list lane = {&run, 1, LISTED};
    const model_rows_view view = {shape, blocks, 2, &lane};
    uint64_t bits[SLOTS / 64];
    for (size_t i = 0; i < COUNT(bits); i++)
        bits[i] = i + 1 < COUNT(bits) ? UINT64_C(0xff0ff0f0ffffff0f) : 0xff;
    const uint64_t *evicted = bits;
    uint16_t *means = random_halves(SLOTS / 64 * HEAD);
    const uint16_t *of_lane = means;
    float *queries = random_floats(N * HEADS * HEAD);
    uint32_t chosen[N * MOST], n_chosen[N];
    const model_visit visit = {.rows = &view,
        .evicted = &evicted,
        .sketches = sketches,
        .means = &of_lane,
        .n_slots = SLOTS,
        .most = MOST,
        .chosen = chosen,
        .n_chosen = n_chosen};
    matrix q = matrix_new(m->ops, N, HEADS * HEAD, queries), out = matrix_new(m->ops, N, HEADS * HEAD, NULL),
           sums = matrix_new(m->ops, N, 2 * HEADS, NULL);
    const ops_attention_args a = {
        .rows = &view, .n = N, .n_head = HEADS, .scale = 0.2f, .q = q.m, .out = out.m, .sums = sums.m};
    const ops_visit_args v = {
        .visit = &visit, .n = N, .n_head = HEADS, .scale = 0.2f, .q = q.m, .out = out.m, .sums = sums.m};
    expect_ok(c, "attention", m->ops->attention(m->ops, &a, &err), &err);
    expect_ok(c, "visit", m->ops->visit(m->ops, &v, &err), &err);
    free(matrix_take(c, "visit", q));
    free(matrix_take(c, "visit", sums));
    add(m, c, "visit", out);
    for (int b = 0; b < 2; b++) free(blocks[b]);
    free(sketch);
    free(means);
    free(queries);
}

void check_version(check *c)
{
    maker m = {.ops = c->a};
    static const gguf_tensor_type types[] = {
        GGUF_TENSOR_F32, GGUF_TENSOR_Q4_1, GGUF_TENSOR_Q8_0, GGUF_TENSOR_Q4_K, GGUF_TENSOR_Q6_K};
    random_state = 2026;
    for (size_t i = 0; i < COUNT(types); i++) add_products(&m, c, types[i]); /* every kind of scales */
    add_rows(&m, c);
    add_attention(&m, c);
    expect_hash(c, m.hash, fingerprint);
    m.hash = 0;
    add_mixture(&m, c);
    expect_hash(c, m.hash, fingerprint_of_mixtures);
    random_state = 2027;
    m.hash = 0;
    add_visits(&m, c);
    expect_hash(c, m.hash, fingerprint_of_visits);
}
