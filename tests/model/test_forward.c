/*
 * The forward pass against an oracle (oracle.h) on little random models of each architecture, and what must
 * hold to the bit: batch shape, thread count, prefix reuse and a split of the layers change nothing.
 *
 * Products use 8-bit activations, so numbers agree with the oracle to a few percent of their size, while any
 * mistake of order, pairing or mask is as large as the numbers themselves; tests check both sides of that.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/fs.h"
#include "base/mem.h"
#include "model/forward/dense.h"
#include "model/forward/model.h"
#include "little.h"
#include "oracle.h"
#include "tiny_gguf.h"

static const tiny_gguf specs[2] = {
    {.architecture = "qwen2",
        .n_layer = 2,
        .n_embd = 128,
        .n_ff = 192,
        .n_head = 4,
        .n_head_kv = 2,
        .n_ctx = 4096,
        .seed = 1},
    {.architecture = "llama",
        .n_layer = 2,
        .n_embd = 192,
        .n_ff = 256,
        .n_head = 3,
        .n_head_kv = 1,
        .n_ctx = 4096,
        .seed = 2,
        .tied = true},
};

/* Lists with holes: which rows each lane still lists. */

typedef struct holes {
    const little *l;
    uint32_t n_before; /* tokens computed before the holes were made; they read everything */
} holes;

static bool lane_has(uint32_t lane, uint32_t i)
{
    return (i * 2654435761u + lane * 40503u) >> 8 & 1 ||
           i % 37 == lane; /* about half of them, other ones a lane */
}

static bool holes_mask(void *user, uint32_t lane, uint32_t t, uint32_t i)
{
    const holes *h = user;
    return t < h->n_before || i >= h->n_before || lane_has(lane, i);
}

/* The view of n rows of which the first n_before have holes; slots lie as in a dense view. */
static model_rows_view holes_view(const model_rows_view *dense, uint32_t n_before, uint32_t n)
{
    uint32_t n_lanes = model_rows_lanes(&dense->shape);
    model_lane_list *lanes = base_xcalloc(n_lanes, sizeof *lanes);
    for (uint32_t lane = 0; lane < n_lanes; lane++) {
        model_run *runs = base_xcalloc(n, sizeof *runs);
        uint32_t n_runs = 0, n_rows = 0;
        for (uint32_t i = 0; i < n; i++) {
            if (i < n_before && !lane_has(lane, i)) continue;
            model_run *last = n_runs ? &runs[n_runs - 1] : NULL;
            if (last && last->index + last->n == i && i % MODEL_ROWS_BLOCK)
                last->n++;
            else
                runs[n_runs++] = (model_run){i, i, 1};
            n_rows++;
        }
        lanes[lane] = (model_lane_list){runs, n_runs, n_rows};
    }
    model_rows_view v = *dense;
    v.lanes = lanes;
    return v;
}

static void holes_free(model_rows_view *v)
{
    for (uint32_t lane = 0; lane < model_rows_lanes(&v->shape); lane++)
        free((void *)(uintptr_t)v->lanes[lane].runs);
    free((void *)(uintptr_t)v->lanes);
}

/* Tests */

static void test_forward__agrees_with_the_oracle(void **state)
{
    for (int k = 0; k < 2; k++) {
        little l = little_open(&specs[k]);

        tiny_gguf swapped = specs[k];
        float *ours = base_xcalloc((size_t)N * V, sizeof *ours),
              *truth = base_xcalloc((size_t)N * V, sizeof *truth);
        float *wrong = base_xcalloc((size_t)N * V, sizeof *wrong);
        little_compute(l.m, &l.shape, l.ids, N, N, ours);
        oracle_run(&(oracle){
            .spec = l.spec, .file = l.file, .n = N, .ids = l.ids, .phases = l.phases, .logits = truth});
        assert_near(ours, truth, (size_t)N * V);
        assert_near(ours + (size_t)(N - 1) * V, truth + (size_t)(N - 1) * V, V);
        swapped.architecture = specs[1 - k].architecture;
        oracle_run(&(oracle){
            .spec = &swapped, .file = l.file, .n = N, .ids = l.ids, .phases = l.phases, .logits = wrong});
        assert_far(ours, wrong, (size_t)N * V);
        free(ours);
        free(truth);
        free(wrong);
        little_close(&l);
    }
}

static void test_forward__holes_equal_a_mask(void **state)
{
    enum { BEFORE = 400, AFTER = 90 };
    for (int k = 0; k < 2; k++) {
        little l = little_open(&specs[k]);
        holes h = {&l, BEFORE};
        float *ours = base_xcalloc((size_t)AFTER * V, sizeof *ours);
        float *truth = base_xcalloc((size_t)N * V, sizeof *truth),
              *whole = base_xcalloc((size_t)N * V, sizeof *whole);
        model_dense *d = little_dense(&l.shape, N);
        const model_rows_view *dense;
        uint32_t want[AFTER];
        base_err err = {0};

        for (uint32_t i = 0; i < AFTER; i++) want[i] = i;
        assert_int_equal(model_dense_compute(d, l.m, l.ids, BEFORE, 0, NULL, NULL, &err), 0);
        assert_int_equal(model_dense_append(d, AFTER, &dense, NULL), 0);
        model_rows_view view = holes_view(dense, BEFORE, BEFORE + AFTER);
        model_batch batch = {.ids = l.ids + BEFORE,
            .phases = l.phases + BEFORE,
            .n = AFTER,
            .rows = &view,
            .want = want,
            .n_want = AFTER,
            .logits = ours};
        if (model_forward(l.m, &batch, &err)) fail_msg("%s", err.msg);
        oracle_run(&(oracle){.spec = l.spec,
            .file = l.file,
            .n = BEFORE + AFTER,
            .ids = l.ids,
            .phases = l.phases,
            .mask = holes_mask,
            .user = &h,
            .logits = truth});
        assert_near(ours, truth + (size_t)BEFORE * V, (size_t)AFTER * V);
        oracle_run(&(oracle){.spec = l.spec,
            .file = l.file,
            .n = BEFORE + AFTER,
            .ids = l.ids,
            .phases = l.phases,
            .logits = whole});
        assert_far(ours, whole + (size_t)BEFORE * V, (size_t)AFTER * V);
        holes_free(&view);
        model_dense_free(d);
        free(ours);
        free(truth);
        free(whole);
        little_close(&l);
    }
}

static void test_forward__batch_shapes_give_the_same_bits(void **state)
{
    static const uint32_t steps[] = {1, 7, 512, 33};
    for (int k = 0; k < 2; k++) {
        little l = little_open(&specs[k]);
        size_t n = (size_t)N * V;
        float *whole = base_xcalloc(n, sizeof *whole), *pieces = base_xcalloc(n, sizeof *pieces);
        little_compute(l.m, &l.shape, l.ids, N, N, whole);
        for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
            little_compute(l.m, &l.shape, l.ids, N, steps[i], pieces);
            assert_memory_equal(whole, pieces, n * sizeof *whole);
        }
        free(whole);
        free(pieces);
        little_close(&l);
    }
}

static void test_forward__some_logits_have_the_bits_of_all(void **state)
{
    enum { COMPUTED = 3, VOCAB_WORDS = (V + 63) / 64 };
    static const uint32_t want[COMPUTED] = {0, 2, 3};
    uint64_t only[VOCAB_WORDS] = {1ull << 5 | 1ull << 17, 0, 0, 1ull << 40};
    for (int k = 0; k < 2; k++) {
        little l = little_open(&specs[k]);
        float logits[2][COMPUTED][V];
        for (int way = 0; way < 2; way++) {
            model_dense *d = little_dense(&l.shape, N);
            const model_rows_view *view;
            base_err err = {0};
            assert_int_equal(model_dense_append(d, 4, &view, NULL), 0);
            model_batch batch = {.ids = l.ids,
                .phases = l.phases,
                .n = 4,
                .rows = view,
                .want = want,
                .n_want = COMPUTED,
                .logits = logits[way][0],
                .only = way ? only : NULL};
            if (model_forward(l.m, &batch, &err)) fail_msg("%s", err.msg);
            model_dense_free(d);
        }
        for (int i = 0; i < COMPUTED; i++)
            for (uint32_t id = 0; id < V; id++) {
                if (!(only[id / 64] >> id % 64 & 1)) logits[0][i][id] = -INFINITY;
                assert_memory_equal(&logits[0][i][id], &logits[1][i][id], sizeof(float));
            }
        little_close(&l);
    }
}

static void test_forward__holes_and_batch_shapes_give_the_same_bits(void **state)
{
    enum { BEFORE = 300, AFTER = 64 };
    little l = little_open(&specs[0]);
    float logits[2][V];
    for (int way = 0; way < 2; way++) {
        model_dense *d = little_dense(&l.shape, N);
        uint32_t step = way == 0 ? AFTER : 5;
        assert_int_equal(model_dense_compute(d, l.m, l.ids, BEFORE, 0, NULL, NULL, NULL), 0);
        for (uint32_t at = 0; at < AFTER; at += step) {
            uint32_t n = AFTER - at < step ? AFTER - at : step, last = n - 1;
            const model_rows_view *dense;
            base_err err = {0};
            assert_int_equal(model_dense_append(d, n, &dense, NULL), 0);
            model_rows_view view = holes_view(dense, BEFORE, BEFORE + at + n);
            model_batch batch = {.ids = l.ids + BEFORE + at,
                .phases = l.phases + BEFORE + at,
                .n = n,
                .rows = &view,
                .want = &last,
                .n_want = 1,
                .logits = logits[way]};
            if (model_forward(l.m, &batch, &err)) fail_msg("%s", err.msg);
            holes_free(&view);
        }
        model_dense_free(d);
    }
    assert_memory_equal(logits[0], logits[1], sizeof logits[0]);
    little_close(&l);
}

static void test_forward__threads_give_the_same_bits(void **state)
{
    for (int k = 0; k < 2; k++) {
        little l = little_open(&specs[k]);
        size_t n = (size_t)N * V;
        float *two = base_xcalloc(n, sizeof *two), *others = base_xcalloc(n, sizeof *others);
        little_compute(l.m, &l.shape, l.ids, N, N, two);
        for (int threads = 1; threads <= 3; threads += 2) {
            model *m = little_open_model(l.path, threads);
            little_compute(m, &l.shape, l.ids, N, 512, others);
            assert_memory_equal(two, others, n * sizeof *two);
            model_close(m);
        }
        free(two);
        free(others);
        little_close(&l);
    }
}

static void test_forward__a_reused_prefix_gives_the_same_bits(void **state)
{
    little l = little_open(&specs[0]);
    model_dense *d = little_dense(&l.shape, N);
    float fresh[V], reused[V];
    assert_int_equal(model_dense_compute(d, l.m, l.ids, 300, 1, fresh, NULL, NULL), 0);
    model_dense_truncate(d, 130);
    assert_int_equal(
        model_dense_compute(d, l.m, l.ids + 200, 60, 0, NULL, NULL, NULL), 0); /* another continuation */
    model_dense_truncate(d, 130);
    assert_int_equal(model_dense_compute(d, l.m, l.ids + 130, 170, 1, reused, NULL, NULL), 0);
    assert_memory_equal(fresh, reused, sizeof fresh);
    model_dense_free(d);
    little_close(&l);
}

static void test_forward__layers_in_two_calls_give_the_same_bits(void **state)
{
    tiny_gguf spec = specs[0];
    spec.n_layer = 5;
    little l = little_open(&spec);
    uint32_t n_embd = spec.n_embd, n = 530, want = n - 1; /* across a micro-batch */
    float whole[V], parts[V], *hidden = base_xcalloc((size_t)n * n_embd, sizeof *hidden);
    float *truth = base_xcalloc((size_t)spec.n_layer * n * n_embd, sizeof *truth);
    model_dense *d = little_dense(&l.shape, n);
    const model_rows_view *view;
    base_err err = {0};

    assert_int_equal(model_dense_compute(d, l.m, l.ids, n, 1, whole, NULL, NULL), 0);
    model_dense_truncate(d, 0);
    assert_int_equal(model_dense_append(d, n, &view, NULL), 0);
    model_batch batch = {
        .ids = l.ids, .phases = l.phases, .n = n, .rows = view, .hidden = hidden, .layer_last = 2};
    if (model_forward(l.m, &batch, &err)) fail_msg("%s", err.msg);
    oracle_run(
        &(oracle){.spec = l.spec, .file = l.file, .n = n, .ids = l.ids, .phases = l.phases, .hidden = truth});
    assert_near(hidden, truth + (size_t)1 * n * n_embd, (size_t)n * n_embd);
    batch.layer_first = 2;
    batch.layer_last = 4;
    if (model_forward(l.m, &batch, &err)) fail_msg("%s", err.msg);
    batch.layer_first = 4;
    batch.layer_last = 5;
    batch.want = &want;
    batch.n_want = 1;
    batch.logits = parts;
    if (model_forward(l.m, &batch, &err)) fail_msg("%s", err.msg);
    assert_memory_equal(whole, parts, sizeof whole);
    model_dense_free(d);
    free(hidden);
    free(truth);
    little_close(&l);
}

static void test_forward__captures_rotated_queries(void **state)
{
    static const uint32_t tokens[] = {0, 3, 511, 512, 599};
    enum { K = 5 };
    for (int k = 0; k < 2; k++) {
        little l = little_open(&specs[k]);
        uint32_t head_dim = l.shape.head_dim, n_heads = specs[k].n_layer * specs[k].n_head, last = N - 1;
        float *ours = base_xcalloc((size_t)n_heads * K * head_dim, sizeof *ours);
        float *truth = base_xcalloc((size_t)n_heads * N * head_dim, sizeof *truth), with[V], without[V];
        model_dense *d = little_dense(&l.shape, N);
        model_capture capture = {tokens, K, ours};
        const model_rows_view *view;
        base_err err = {0};

        assert_int_equal(model_dense_compute(d, l.m, l.ids, N, 1, without, NULL, NULL), 0);
        model_dense_truncate(d, 0);
        assert_int_equal(model_dense_append(d, N, &view, NULL), 0);
        model_batch batch = {.ids = l.ids,
            .phases = l.phases,
            .n = N,
            .rows = view,
            .capture = &capture,
            .want = &last,
            .n_want = 1,
            .logits = with};
        if (model_forward(l.m, &batch, &err)) fail_msg("%s", err.msg);
        assert_memory_equal(with, without, sizeof with);
        oracle_run(&(oracle){
            .spec = l.spec, .file = l.file, .n = N, .ids = l.ids, .phases = l.phases, .queries = truth});
        for (uint32_t h = 0; h < n_heads; h++)
            for (uint32_t i = 0; i < K; i++)
                assert_near(ours + ((size_t)h * K + i) * head_dim,
                    truth + ((size_t)h * N + tokens[i]) * head_dim, head_dim);
        model_dense_free(d);
        free(ours);
        free(truth);
        little_close(&l);
    }
}

/* Mass as model.h defines it, from our own queries and the rows as stored. */
static void score_oracle(const little *l, const float *queries, uint32_t n_queries, const model_rows_view *v,
    bool max_pool, const uint8_t *heads, uint32_t lane, float *mass)
{
    uint32_t n_head = l->spec->n_head, group = n_head / l->shape.n_head_kv, d = l->shape.head_dim,
             counted = 0;
    uint32_t layer = lane / l->shape.n_head_kv,
             first_head = layer * n_head + lane % l->shape.n_head_kv * group;
    const model_lane_list *list = &v->lanes[lane];
    double *p = base_xcalloc(list->n_rows, sizeof *p), *pooled = base_xcalloc(list->n_rows, sizeof *pooled);
    double *sum_heads = base_xcalloc(list->n_rows, sizeof *sum_heads);

    for (uint32_t g = 0; g < group; g++) {
        if (heads && !heads[first_head + g]) continue;
        counted++;
        memset(pooled, 0, list->n_rows * sizeof *pooled);
        for (uint32_t t = 0; t < n_queries; t++) {
            const float *q = queries + ((size_t)(first_head + g) * n_queries + t) * d;
            double max = -INFINITY, sum = 0;
            uint32_t o = 0;
            for (uint32_t r = 0; r < list->n_runs; r++)
                for (uint32_t i = 0; i < list->runs[r].n; i++, o++) {
                    const uint16_t *key = model_rows_key(v, lane, list->runs[r].slot + i);
                    p[o] = 0;
                    for (uint32_t c = 0; c < d; c++) p[o] += (double)q[c] * oracle_from_half(key[c]);
                    p[o] /= sqrt(d);
                    if (p[o] > max) max = p[o];
                }
            for (o = 0; o < list->n_rows; o++) sum += p[o] = exp(p[o] - max);
            for (o = 0; o < list->n_rows; o++) {
                if (max_pool && p[o] / sum > pooled[o]) pooled[o] = p[o] / sum;
                if (!max_pool) pooled[o] += p[o] / sum / n_queries;
            }
        }
        for (uint32_t o = 0; o < list->n_rows; o++) sum_heads[o] += pooled[o];
    }
    for (uint32_t o = 0; o < list->n_rows; o++) mass[o] = counted ? (float)(sum_heads[o] / counted) : 0;
    free(p);
    free(pooled);
    free(sum_heads);
}

static void test_score_rows__is_the_mass_of_a_softmax(void **state)
{
    enum { Q = 9, ROWS = 520 };
    little l = little_open(&specs[0]);
    uint32_t n_lanes = model_rows_lanes(&l.shape), tokens[Q], n_heads = specs[0].n_layer * specs[0].n_head;
    float *queries = base_xcalloc((size_t)n_heads * Q * l.shape.head_dim, sizeof *queries);
    float *truth = base_xcalloc(N, sizeof *truth), *mass[16] = {NULL};
    uint8_t heads[16] = {1, 0, 0, 0, 1, 1, 1, 0}; /* lane 1 counts none */
    model_dense *d = little_dense(&l.shape, N);
    const model_rows_view *dense;
    base_err err = {0};

    for (uint32_t i = 0; i < Q; i++) tokens[i] = ROWS - Q + i;
    assert_int_equal(model_dense_append(d, ROWS, &dense, NULL), 0);
    model_capture capture = {tokens, Q, queries};
    model_batch batch = {.ids = l.ids, .phases = l.phases, .n = ROWS, .rows = dense, .capture = &capture};
    if (model_forward(l.m, &batch, &err)) fail_msg("%s", err.msg);
    model_rows_view view = holes_view(dense, 400, ROWS);
    for (uint32_t lane = 0; lane < n_lanes; lane++) mass[lane] = base_xcalloc(N, sizeof **mass);
    for (int way = 0; way < 4; way++) {
        model_score score = {.queries = queries,
            .n_queries = Q,
            .rows = &view,
            .pool = way & 1 ? MODEL_POOL_MAX : MODEL_POOL_MEAN,
            .heads = way & 2 ? heads : NULL,
            .mass = mass};
        if (model_score_rows(l.m, &score, &err)) fail_msg("%s", err.msg);
        for (uint32_t lane = 0; lane < n_lanes; lane++) {
            uint32_t n = view.lanes[lane].n_rows;
            double largest = 0;
            score_oracle(&l, queries, Q, &view, way & 1, score.heads, lane, truth);
            for (uint32_t i = 0; i < n; i++)
                if (!(fabs(mass[lane][i] - truth[i]) <= largest)) largest = fabs(mass[lane][i] - truth[i]);
            if (!(largest <= 1e-5)) fail_msg("way %d, lane %u: a mass is %g away", way, lane, largest);
        }
    }
    for (uint32_t lane = 0; lane < n_lanes; lane++) free(mass[lane]);
    holes_free(&view);
    model_dense_free(d);
    free(queries);
    free(truth);
    little_close(&l);
}

static void test_forward__refuses_what_it_cannot_do(void **state)
{
    little l = little_open(&specs[0]);
    model_dense *d = little_dense(&l.shape, N);
    const model_rows_view *view;
    float logits[V];
    uint32_t outside = 4, zero = 0;
    int32_t bad_id = V;
    base_err err = {0};

    assert_int_equal(model_dense_append(d, 4, &view, NULL), 0);
    model_batch fine = {
        .ids = l.ids, .phases = l.phases, .n = 4, .rows = view, .want = &zero, .n_want = 1, .logits = logits};
    model_batch b = fine;
    assert_int_equal(model_forward(l.m, &b, &err), 0);
    b.n = 0;
    assert_int_not_equal(model_forward(l.m, &b, &err), 0);
    b = fine;
    b.n = 5; /* the lists have 4 */
    assert_int_not_equal(model_forward(l.m, &b, &err), 0);
    b = fine;
    b.want = &outside;
    assert_int_not_equal(model_forward(l.m, &b, &err), 0);
    b = fine;
    b.layer_last = 3;
    assert_int_not_equal(model_forward(l.m, &b, &err), 0);
    b = fine;
    b.layer_first = 1;
    b.layer_last = 2; /* no hidden states */
    assert_int_not_equal(model_forward(l.m, &b, &err), 0);
    b = fine;
    b.ids = &bad_id;
    b.n = 1;
    assert_int_equal(model_forward(l.m, &b, &err), BASE_E_LIMIT);
    model_dense_free(d);
    little_close(&l);
}

static void test_forward__a_cancelled_batch_says_so_and_the_next_one_is_fine(void **state)
{
    little l = little_open(&specs[0]);
    model_dense *d = little_dense(&l.shape, N);
    atomic_bool cancel = true;
    float before[V], after[V];
    base_err err = {0};
    assert_int_equal(model_dense_compute(d, l.m, l.ids, 50, 1, before, NULL, &err), 0);
    model_dense_truncate(d, 0);
    assert_int_equal(model_dense_compute(d, l.m, l.ids, 50, 1, after, &cancel, &err), BASE_E_CANCELLED);
    atomic_store(&cancel, false);
    assert_int_equal(model_dense_compute(d, l.m, l.ids, 50, 1, after, &cancel, &err), 0);
    assert_memory_equal(before, after, sizeof before);
    model_dense_free(d);
    little_close(&l);
}

/* What `info` and the check of a session's room count: rows behind a window leave memory, where there is a file for them. */
static void test_model_rows_memory__counts_what_a_window_keeps(void **state)
{
    const uint32_t kept = 128 + 512 + 2 * MODEL_ROWS_BLOCK;
    assert_int_equal(model_rows_memory(100, 0, 0, 1000000), 100000000);
    assert_int_equal(model_rows_memory(100, 60, 128, kept), 100 * kept);
    assert_int_equal(model_rows_memory(100, 60, 128, kept + 1000), 100 * kept + 40 * 1000);
    assert_int_equal(model_rows_memory(1 << 20, 1 << 19, 128, UINT32_MAX),
        ((uint64_t)UINT32_MAX << 19) + ((uint64_t)kept << 19));
}

static void test_model_open__describes(void **state)
{
    little l = little_open(&specs[0]), other;
    tiny_gguf spec = specs[0];
    const model_info *info = model_get_info(l.m);
    assert_string_equal(info->architecture, "qwen2");
    assert_string_equal(info->name, "tiny");
    assert_int_equal(info->n_vocab, V);
    assert_int_equal(info->head_dim, 32);
    assert_int_equal(info->row_bytes, 2 * 2 * 32 * 2 * 2);
    assert_int_equal(strlen(info->hash), 64);
    spec.seed = 99;
    other = little_open(&spec);
    assert_string_not_equal(info->hash, model_get_info(other.m)->hash);
    little_close(&other);
    other = little_open(&specs[0]);
    assert_string_equal(info->hash, model_get_info(other.m)->hash);
    little_close(&other);
    little_close(&l);
}

static void refuse(const char *path, int code, const char *words)
{
    model *m = NULL;
    base_err err = {0};
    assert_int_equal(model_open(&m, path, NULL, &err), code);
    assert_null(m);
    if (!strstr(err.msg, words)) fail_msg("\"%s\" does not say \"%s\"", err.msg, words);
}

static void test_model_open__refuses_with_the_reason(void **state)
{
    tiny_gguf spec = specs[0];
    char *path;

    refuse("/nonexistent/model.gguf", BASE_E_NOT_FOUND, "/nonexistent/model.gguf");
    spec.leave_out = "blk.1.attn_k.bias";
    path = tiny_gguf_temp(&spec);
    refuse(path, BASE_E_FORMAT, "blk.1.attn_k.bias");
    unlink(path);
    free(path);

    spec = specs[1];
    spec.architecture = "mamba";
    path = tiny_gguf_temp(&spec);
    refuse(path, BASE_E_UNSUPPORTED, "mamba");
    unlink(path);
    free(path);

    path = tiny_gguf_temp(&specs[0]);
    assert_int_equal(truncate(path, 200000), 0);
    refuse(path, BASE_E_FORMAT, path);
    unlink(path);
    free(path);
}

static void note_progress(void *user, double share, const char *what)
{
    double *last = user;
    assert_true(share >= *last && share <= 1);
    assert_non_null(what);
    *last = share;
}

static void test_model_open__reports_and_can_be_cancelled(void **state)
{
    char *path = tiny_gguf_temp(&specs[0]);
    double last = 0;
    atomic_bool cancel = true;
    model_options options = {.n_threads = 1, .progress = note_progress, .user = &last};
    model *m = NULL;
    assert_int_equal(model_open(&m, path, &options, NULL), 0);
    assert_true(last > 0.9);
    model_close(m);
    m = NULL;
    options = (model_options){.n_threads = 1, .cancel = &cancel};
    assert_int_equal(model_open(&m, path, &options, NULL), BASE_E_CANCELLED);
    assert_null(m);
    unlink(path);
    free(path);
}

/* The same bits on real weights: quantised formats, and enough rows for every kernel's tiles. */
static void test_forward__real_weights_give_the_same_bits(void **state)
{
    enum { TOKENS = 512 };
    static const uint32_t steps[] = {1, 7, 100};
    char *path = tiny_gguf_small_model();
    int32_t ids[TOKENS];
    if (!base_fs_exists(path)) {
        fprintf(stderr, "needs %s\n", path);
        free(path);
        skip();
    }
    model *m = little_open_model(path, 2), *three = little_open_model(path, 3);
    model_rows_shape shape = model_get_rows_shape(m);
    uint32_t n_vocab = model_get_info(m)->n_vocab;
    float *whole = base_xcalloc(n_vocab, sizeof *whole), *pieces = base_xcalloc(n_vocab, sizeof *pieces);
    for (int i = 0; i < TOKENS; i++) ids[i] = (int32_t)((unsigned)(i + 1) * 7919u % 40000u);
    model_dense *d = little_dense(&shape, TOKENS);
    assert_int_equal(model_dense_compute(d, m, ids, TOKENS, 1, whole, NULL, NULL), 0);
    for (size_t k = 0; k < sizeof steps / sizeof steps[0]; k++) {
        model_dense_truncate(d, 0);
        for (uint32_t at = 0; at < TOKENS; at += steps[k]) {
            uint32_t now = TOKENS - at < steps[k] ? TOKENS - at : steps[k];
            assert_int_equal(model_dense_compute(d, m, ids + at, now, 1, pieces, NULL, NULL), 0);
        }
        assert_memory_equal(whole, pieces, n_vocab * sizeof *whole);
    }
    model_dense_truncate(d, 0);
    assert_int_equal(model_dense_compute(d, three, ids, TOKENS, 1, pieces, NULL, NULL), 0);
    assert_memory_equal(whole, pieces, n_vocab * sizeof *whole);
    model_dense_free(d);
    model_close(m);
    model_close(three);
    free(whole);
    free(pieces);
    free(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_forward__agrees_with_the_oracle),
        cmocka_unit_test(test_forward__holes_equal_a_mask),
        cmocka_unit_test(test_forward__batch_shapes_give_the_same_bits),
        cmocka_unit_test(test_forward__some_logits_have_the_bits_of_all),
        cmocka_unit_test(test_forward__holes_and_batch_shapes_give_the_same_bits),
        cmocka_unit_test(test_forward__threads_give_the_same_bits),
        cmocka_unit_test(test_forward__a_reused_prefix_gives_the_same_bits),
        cmocka_unit_test(test_forward__layers_in_two_calls_give_the_same_bits),
        cmocka_unit_test(test_forward__captures_rotated_queries),
        cmocka_unit_test(test_score_rows__is_the_mass_of_a_softmax),
        cmocka_unit_test(test_forward__refuses_what_it_cannot_do),
        cmocka_unit_test(test_forward__a_cancelled_batch_says_so_and_the_next_one_is_fine),
        cmocka_unit_test(test_model_rows_memory__counts_what_a_window_keeps),
        cmocka_unit_test(test_model_open__describes),
        cmocka_unit_test(test_model_open__refuses_with_the_reason),
        cmocka_unit_test(test_model_open__reports_and_can_be_cancelled),
        cmocka_unit_test(test_forward__real_weights_give_the_same_bits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
