/*
 * `check_ops --bench [threads] [matmul|rows|visit]`: speeds of the best level, beside what the machine's memory
 * gives before and after. Each number is the best of many calls: these machines are shared.
 */
#include "check_ops.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/pool.h"
#include "model/file/quant.h"
#include "model/ops/sketch.h"

typedef struct reader {
    const uint64_t *data;
    size_t n;
    _Atomic uint64_t sum;
} reader;

static void read_run(void *arg, int thread, int n_threads)
{
    reader *r = arg;
    uint64_t sums[8] = {0};
    const uint64_t *p = r->data + r->n / (size_t)n_threads * (size_t)thread;
    for (size_t i = 0; i + 8 <= r->n / (size_t)n_threads; i += 8) {
        __builtin_prefetch(p + i + 1024);
        for (int k = 0; k < 8; k++) sums[k] += p[i + (size_t)k];
    }
    for (int k = 0; k < 8; k++) r->sum += sums[k];
}

static double seconds(void)
{
    return (double)base_clock_ns() * 1e-9;
}

static double read_speed(int n_threads)
{
    size_t n_bytes = (size_t)512 << 20;
    base_pool *pool = NULL;
    if (base_pool_new(&pool, n_threads, NULL) < 0) return 0;
    reader r = {.data = base_huge_alloc(n_bytes), .n = n_bytes / 8};
    memset((void *)r.data, 1, n_bytes);
    double best = 0;
    for (int i = 0; i < 5; i++) {
        double from = seconds();
        base_pool_run(pool, read_run, &r);
        best = fmax(best, (double)n_bytes / (seconds() - from) * 1e-9);
    }
    base_huge_free((void *)r.data, n_bytes);
    base_pool_free(pool);
    return best;
}

static void bench_matmul(check *c, gguf_tensor_type type, uint32_t n_in, uint32_t n_out, uint32_t n)
{
    model_ops *ops = c->b;
    base_err err;
    gguf_tensor t = tensor_new(type, n_in, n_out);
    ops_weight *w = NULL;
    double from = seconds();
    expect_ok(c, "pack", ops->pack(ops, &w, &t, &err), &err);
    double pack_seconds = seconds() - from;
    float *values = random_floats((size_t)n * n_in);
    ops_activations *x = activations(c, ops, n, n_in, values);
    matrix y = matrix_new(ops, n, n_out, NULL);
    ops_matmul_args args = {.x = x, .n_parts = 1, .parts = {{.weight = w, .y = y.m}}};
    double best = 1e9, began = seconds();
    for (int i = 0; i < 5 || seconds() - began < 0.4; i++) {
        from = seconds();
        ops->matmul(ops, &args, &err);
        best = fmin(best, seconds() - from);
    }
    printf("  %-7s %6u x %5u, n %4u: %8.1f us, %5.1f GB/s, %6.1f "
           "GMAC/s; packed at %.2f GB/s to %.2f times the file\n",
        gguf_tensor_type_name(type), n_out, n_in, n, best * 1e6, (double)ops->weight_bytes(w) / best * 1e-9,
        (double)n_in * n_out * n / best * 1e-9, (double)t.n_bytes / pack_seconds * 1e-9,
        (double)ops->weight_bytes(w) / (double)t.n_bytes);
    ops->weight_free(ops, w);
    ops->activations_free(ops, x);
    ops->buffer_free(ops, y.m.buffer);
    free(values);
    tensor_free(t);
}

/*
 * The default model's shape, nothing evicted; attention over all layers in turn, so that no cache holds the
 * rows of the next.
 */
static void bench_rows(check *c, uint32_t n_rows, uint32_t n, uint32_t n_queries)
{
    model_ops *ops = c->b;
    base_err err;
    enum { LAYERS = 28, LANES = 2 * LAYERS };
    model_rows_shape shape = {n_queries ? 8 : LAYERS, 2, 128};
    uint16_t *blocks[128];
    model_run runs[128];
    model_lane_list lanes[LANES];
    uint32_t n_blocks = n_rows / MODEL_ROWS_BLOCK;
    for (uint32_t i = 0; i < n_blocks; i++) {
        size_t n_bytes = model_rows_block_bytes(&shape);
        blocks[i] = base_huge_alloc(n_bytes);
        for (size_t k = 0; k < n_bytes / 2; k++) blocks[i][k] = (uint16_t)(0x3000 + k % 1024);
        runs[i] = (model_run){i * MODEL_ROWS_BLOCK, i * MODEL_ROWS_BLOCK, MODEL_ROWS_BLOCK};
    }
    for (int i = 0; i < LANES; i++) lanes[i] = (model_lane_list){runs, n_blocks, n_rows};
    model_rows_view view = {shape, blocks, n_blocks, lanes};
    float *q = random_floats((size_t)(n + shape.n_layer * n_queries) * 1536), *mass[LANES];
    for (int i = 0; i < LANES; i++) mass[i] = base_xmalloc(n_rows * sizeof(float));
    matrix mq = matrix_new(ops, n, 1536, q), out = matrix_new(ops, n, 1536, NULL);
    double best = 1e9, began = seconds();
    for (uint32_t i = 0; i < 2 * shape.n_layer || seconds() - began < 0.4; i++) {
        ops_attention_args attention = {
            .rows = &view, .layer = i % shape.n_layer, .n = n, .n_head = 12, .scale = 0.088f};
        ops_score_rows_args score = {
            .rows = &view, .queries = q, .n_queries = n_queries, .n_head = 12, .scale = 0.088f, .mass = mass};
        attention.q = mq.m;
        attention.out = out.m;
        double from = seconds();
        if (n_queries)
            ops->score_rows(ops, &score, &err);
        else
            ops->attention(ops, &attention, &err);
        best = fmin(best, (seconds() - from) / (n_queries ? shape.n_layer : 1));
    }
    double bytes = (double)n_rows * 2 * 128 * 2 * 2, pairs = (double)n * (n_rows - n / 2.0) * 12;
    if (n_queries)
        printf("  scores of %u rows by %u queries a head: %8.1f us a layer, %6.1f GMAC/s\n", n_rows,
            n_queries, best * 1e6, (double)n_rows * n_queries * 12 * 128 / best * 1e-9);
    else
        printf("  attention over %u rows, n %3u: %8.1f us a layer, %5.1f GB/s, %6.1f GMAC/s\n", n_rows, n,
            best * 1e6, bytes / best * 1e-9, pairs * 256 / best * 1e-9);
    for (uint32_t i = 0; i < n_blocks; i++) base_huge_free(blocks[i], model_rows_block_bytes(&shape));
    for (int i = 0; i < LANES; i++) free(mass[i]);
    ops->buffer_free(ops, mq.m.buffer);
    ops->buffer_free(ops, out.m.buffer);
    free(q);
}

/* Sketches of n mean keys, as a session has them of its pages. */
static uint8_t *sketch_pages(const uint16_t *keys, uint32_t n, uint32_t d)
{
    const uint32_t n_parts = (n + MODEL_ROWS_BLOCK - 1) / MODEL_ROWS_BLOCK;
    uint8_t *ret = base_xcalloc(n_parts, model_sketch_lane_bytes(d));
    for (uint32_t part = 0; part < n_parts; part++) {
        const uint16_t *some[MODEL_ROWS_BLOCK] = {NULL};
        for (uint32_t i = 0; i < MODEL_ROWS_BLOCK && part * MODEL_ROWS_BLOCK + i < n; i++)
            some[i] = keys + ((size_t)part * MODEL_ROWS_BLOCK + i) * d;
        model_sketch_make_some(d, some, ret + part * model_sketch_lane_bytes(d));
    }
    return ret;
}

/*
 * n tokens at once behind n_rows rows of the default model's shape, of which 3,840 stay in runs of about 20: what each
 * reads of the others by their sketches, in so many of their pages (0: in all). Keys are drawn about normal, so that
 * few of them weigh much. Behind very many rows there are fewer layers, so that they fit into memory.
 */
static void bench_visit(check *c, uint32_t n_rows, uint32_t open, uint32_t n)
{
    model_ops *ops = c->b;
    base_err err;
    enum {
        LAYERS = 28,
        N_KV = 2,
        N_HEAD = 12,
        D = 128,
        KEPT = 3840,
        RUN = 20,
        MOST = 256,
        WORD = 64,
        COLUMN = 16,
        DRAWN = 4099
    };
    const uint32_t n_layers = n_rows > 65536 ? LAYERS / 4 : LAYERS;
    const model_rows_shape shape = {n_layers, N_KV, D};
    const uint32_t n_blocks = n_rows / MODEL_ROWS_BLOCK, n_words = n_rows / WORD;
    const size_t n_bytes = model_rows_block_bytes(&shape),
                 n_sketch = model_sketch_bytes(model_rows_lanes(&shape), shape.head_dim);
    uint16_t **blocks = base_xcalloc(n_blocks, sizeof *blocks), drawn[DRAWN];
    uint8_t *sketches = base_huge_alloc(n_blocks * n_sketch);
    const uint8_t **sketch_of = base_xcalloc(n_blocks, sizeof *sketch_of);
    for (uint32_t i = 0; i < DRAWN; i++) drawn[i] = quant_f32_to_f16(random_float());
    for (uint32_t b = 0; b < n_blocks; b++) {
        blocks[b] = base_huge_alloc(n_bytes);
        for (size_t k = 0; k < n_bytes / 2; k++) blocks[b][k] = drawn[(k + random_state % DRAWN) % DRAWN];
        random_u32();
        model_sketch_make(shape.head_dim, NULL, model_rows_lanes(&shape), blocks[b], sketches + b * n_sketch);
        sketch_of[b] = sketches + b * n_sketch;
    }
    uint64_t *bits = base_xcalloc(n_words, sizeof *bits);
    model_run *runs = base_xcalloc(KEPT / RUN, sizeof *runs);
    memset(bits, 0xff, n_words * sizeof *bits);
    for (uint32_t i = 0; i < KEPT / RUN; i++) {
        const uint32_t at = (uint32_t)((uint64_t)i * (n_rows - RUN) / (KEPT / RUN - 1));
        runs[i] = (model_run){at, at, RUN};
        for (uint32_t t = at; t < at + RUN; t++) bits[t / WORD] &= ~(UINT64_C(1) << t % WORD);
    }
    model_lane_list lanes[LAYERS * N_KV];
    for (uint32_t i = 0; i < n_layers * N_KV; i++) lanes[i] = (model_lane_list){runs, KEPT / RUN, KEPT};
    const model_rows_view view = {.shape = shape, .blocks = blocks, .n_blocks = n_blocks, .lanes = lanes};
    float *q = random_floats((size_t)n * N_HEAD * D);
    uint16_t *means = random_halves((size_t)n_words * D),
             *chapters = random_halves((size_t)(n_words / MODEL_CHAPTER) * D);
    const uint64_t *evicted[N_KV] = {bits, bits};
    const uint16_t *mean_of[N_KV] = {means, means};
    uint8_t *pages = sketch_pages(means, n_words, D);
    const uint32_t n_columns = (n_words + COLUMN - 1) / COLUMN;
    uint16_t *some = base_xcalloc(n_columns, sizeof *some);
    float *counts = base_xcalloc((size_t)n_columns * COLUMN, sizeof *counts);
    for (uint32_t i = 0; i < n_words; i++) {
        counts[i] = (float)__builtin_popcountll(bits[i]);
        some[i / COLUMN] |= (uint16_t)((bits[i] != 0) << i % COLUMN);
    }
    const model_pages of_lane = {open && n_words > open ? pages : NULL, some, counts, chapters};
    const model_pages page_of[N_KV] = {of_lane, of_lane};
    uint32_t *chosen = base_xcalloc((size_t)n * N_KV * MOST, sizeof *chosen),
             *n_chosen = base_xcalloc((size_t)n * N_KV, sizeof *n_chosen);
    matrix mq = matrix_new(ops, n, N_HEAD * D, q), out = matrix_new(ops, n, N_HEAD * D, NULL),
           sums = matrix_new(ops, n, 2 * N_HEAD, NULL);
    const model_visit visit = {.rows = &view,
        .evicted = evicted,
        .sketches = sketch_of,
        .means = mean_of,
        .pages = page_of,
        .open = open,
        .n_slots = n_rows,
        .most = MOST,
        .chosen = chosen,
        .n_chosen = n_chosen};
    double best[LAYERS][2], both[2] = {0}, began = seconds();
    uint64_t sum = 0;
    for (uint32_t layer = 0; layer < n_layers; layer++) best[layer][0] = best[layer][1] = 1e9;
    for (uint32_t i = 0; i < 2 || seconds() - began < 3; i++)
        for (uint32_t layer = 0; layer < n_layers; layer++) {
            double from = seconds();
            ops->attention(ops,
                &(ops_attention_args){.rows = &view,
                    .layer = layer,
                    .n = n,
                    .n_head = N_HEAD,
                    .scale = .088f,
                    .q = mq.m,
                    .out = out.m,
                    .sums = sums.m},
                &err);
            best[layer][0] = fmin(best[layer][0], seconds() - from);
            from = seconds();
            ops->visit(ops,
                &(ops_visit_args){.visit = &visit,
                    .layer = layer,
                    .n = n,
                    .n_head = N_HEAD,
                    .scale = .088f,
                    .q = mq.m,
                    .out = out.m,
                    .sums = sums.m},
                &err);
            best[layer][1] = fmin(best[layer][1], seconds() - from);
            for (uint32_t t = 0; t < n && !i; t++)
                for (uint32_t k = 0; k < n_chosen[t]; k++) sum = sum * 31 + chosen[t * MOST + k];
        }
    for (uint32_t layer = 0; layer < n_layers; layer++)
        for (int k = 0; k < 2; k++) both[k] += best[layer][k] / n_layers / n;
    printf("  of %u rows %d on the list, %u at once: a token's attention %7.1f us a "
           "layer, visit of %4u pages %7.1f us (choice %016llx)\n",
        n_rows, KEPT, n, both[0] * 1e6, open ? open : n_words, both[1] * 1e6, (unsigned long long)sum);
    for (uint32_t b = 0; b < n_blocks; b++) base_huge_free(blocks[b], n_bytes);
    base_huge_free(sketches, n_blocks * n_sketch);
    ops->buffer_free(ops, mq.m.buffer);
    ops->buffer_free(ops, out.m.buffer);
    ops->buffer_free(ops, sums.m.buffer);
    free(chosen);
    free(n_chosen);
    free(pages);
    free(some);
    free(counts);
    free(blocks);
    free(sketch_of);
    free(bits);
    free(runs);
    free(q);
    free(means);
    free(chapters);
}

/* Matrices of the default and of the test model. */
static const struct {
    gguf_tensor_type type;
    uint32_t n_in, n_out, n;
} bench_products[] = {{GGUF_TENSOR_Q4_K, 1536, 17920, 1}, {GGUF_TENSOR_Q4_K, 8960, 1536, 1},
    {GGUF_TENSOR_Q6_K, 1536, 60000, 1}, {GGUF_TENSOR_Q6_K, 8960, 1536, 1}, {GGUF_TENSOR_Q4_1, 576, 30000, 1},
    {GGUF_TENSOR_Q5_0, 576, 30000, 1}, {GGUF_TENSOR_Q8_0, 576, 49152, 1}, {GGUF_TENSOR_F16, 1536, 4096, 1},
    {GGUF_TENSOR_Q4_K, 1536, 8960, 4}, {GGUF_TENSOR_Q4_K, 1536, 8960, 8}, {GGUF_TENSOR_Q4_K, 1536, 8960, 16},
    {GGUF_TENSOR_Q4_K, 1536, 8960, 512}, {GGUF_TENSOR_Q4_K, 8960, 1536, 512},
    {GGUF_TENSOR_Q6_K, 8960, 1536, 512}, {GGUF_TENSOR_Q4_1, 576, 1536, 512},
    {GGUF_TENSOR_Q8_0, 576, 1536, 512}};

/* Every quantised format, side by side: a decode that no cache holds, and a prefill. */
static void bench_formats(check *c)
{
    gguf_tensor_type type;
    for (size_t i = 0; quant_type_at(i, &type); i++) {
        if (quant_format_of(type)->kind == QUANT_FLOAT) continue;
        bench_matmul(c, type, 4096, 24576, 1);
        bench_matmul(c, type, 1536, 8960, 512);
    }
}

/* `only`: "matmul", "formats", "rows", "visit" or "" for all. */
void bench(check *c, int n_threads, const char *only)
{
    printf("%s, %d threads; memory: %.1f GB/s\n", c->b->isa, n_threads, read_speed(n_threads));
    for (size_t i = 0; i < COUNT(bench_products) && (!*only || !strcmp(only, "matmul")); i++)
        bench_matmul(
            c, bench_products[i].type, bench_products[i].n_in, bench_products[i].n_out, bench_products[i].n);
    if (!*only || !strcmp(only, "formats")) bench_formats(c);
    if (!*only || !strcmp(only, "rows")) {
        bench_rows(c, 4096, 1, 0);
        bench_rows(c, 16384, 1, 0);
        bench_rows(c, 4096, 128, 0);
        bench_rows(c, 16384, 1, 8);
    }
    if (!*only || !strcmp(only, "visit")) {
        bench_visit(c, 16384, 0, 1);
        bench_visit(c, 65536, 0, 1);
        bench_visit(c, 65536, 256, 1);
        bench_visit(c, 262144, 0, 1);
        bench_visit(c, 262144, 256, 1);
        for (uint32_t n_rows = 16384; n_rows <= 262144; n_rows *= 4) bench_visit(c, n_rows, 256, 64);
    }
    printf("memory again: %.1f GB/s\n", read_speed(n_threads));
}
