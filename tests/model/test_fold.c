/*
 * Folded rows (ops/rows.h, gaps): what is read from another distance is read as if it had been computed so
 * near, at any phase; nothing else changes a bit, and batch shape and threads change none of those that
 * folding changes.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/mem.h"
#include "little.h"
#include "model/forward/profile.h"

enum { BEFORE = 7 * MODEL_ROWS_GROUP, AFTER = 40, D = 64, MOST_HEADS = 6, QUERIES = 3 };

static const tiny_gguf specs[] = {
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
        .tied = true,
        .rope_freqs = true},
    {.architecture = "mistral3", /* its queries grow with their place */
        .n_layer = 2,
        .n_embd = 128,
        .n_ff = 96,
        .n_head = 4,
        .n_head_kv = 2,
        .head_dim = 64,
        .n_ctx = 4096,
        .seed = 3,
        .rope_base = 1e4f,
        .rope_factor = 16,
        .yarn_trained = 128,
        .yarn_less = 1,
        .q_scale = .1f},
    {.architecture = "smollm3", /* its last layer has no places */
        .n_layer = 4,
        .n_embd = 128,
        .n_ff = 96,
        .n_head = 4,
        .n_head_kv = 2,
        .head_dim = 64,
        .n_ctx = 4096,
        .seed = 4,
        .unturned_every = 4},
};
enum { N_SPECS = sizeof specs / sizeof *specs };

/* Logits of AFTER tokens from `phase` on, behind BEFORE at their own phases, in batches of `step`. */
typedef struct reading {
    uint32_t phase, step;
    const uint32_t *gaps;
    uint32_t n_gaps;
    float *queries; /* [..][QUERIES][..] of the last batch's last tokens; NULL: not asked for */
    bool copied;    /* the first block's rows are read from a copy with turned keys */
} reading;

/* Lists whose first block is a copy that lies behind all others. */
typedef struct copied {
    uint16_t *block, *blocks[8];
    model_lane_list lists[16];
    model_run runs[16][8];
} copied;

static void read_copy(model *m, model_rows_view *view, copied *ret)
{
    const uint32_t n_lanes = model_rows_lanes(&view->shape), at = view->n_blocks;
    const size_t n_bytes = model_rows_block_bytes(&view->shape);
    assert_true(at < 8);
    ret->block = base_xmalloc(n_bytes);
    memcpy(ret->blocks, view->blocks, at * sizeof *ret->blocks);
    memcpy(ret->block, view->blocks[0], n_bytes);
    ret->blocks[at] = ret->block;
    const model_rows_view as_they_lie = *view;
    view->blocks = ret->blocks;
    view->n_blocks++;
    view->turned_from = at * MODEL_ROWS_BLOCK;
    for (uint32_t lane = 0; lane < n_lanes; lane++) {
        ret->lists[lane] = view->lanes[lane];
        memcpy(ret->runs[lane], view->lanes[lane].runs, view->lanes[lane].n_runs * sizeof(model_run));
        ret->lists[lane].runs = ret->runs[lane];
        assert_int_equal(ret->runs[lane][0].n, MODEL_ROWS_BLOCK);
        ret->runs[lane][0].slot = view->turned_from;
        uint16_t *keys = model_rows_key(view, lane, view->turned_from);
        assert_int_equal(model_turn_rows(m, &as_they_lie, lane, 0, 1, MODEL_ROWS_BLOCK, keys, NULL), 0);
    }
    view->lanes = ret->lists;
}

static void read_rows(little *l, model *m, model_dense *d, const reading *r, float *logits)
{
    base_err err = {0};
    assert_int_equal(model_dense_compute(d, m, l->ids, BEFORE, 0, NULL, NULL, NULL), 0);
    for (uint32_t at = 0; at < AFTER; at += r->step) {
        const uint32_t n = AFTER - at < r->step ? AFTER - at : r->step;
        uint32_t phases[AFTER], want[AFTER], last[QUERIES];
        const model_rows_view *dense;
        for (uint32_t i = 0; i < n; i++) {
            phases[i] = r->phase + at + i;
            want[i] = i;
        }
        for (uint32_t i = 0; i < QUERIES; i++) last[i] = n - QUERIES + i;
        assert_int_equal(model_dense_append(d, n, &dense, NULL), 0);
        model_rows_view view = *dense;
        view.gaps = r->gaps;
        view.n_gaps = r->n_gaps;
        copied copy = {.block = NULL};
        if (r->copied) read_copy(m, &view, &copy);
        const model_capture capture = {last, QUERIES, r->queries};
        const model_batch batch = {.ids = l->ids + BEFORE + at,
            .phases = phases,
            .n = n,
            .rows = &view,
            .want = want,
            .n_want = n,
            .capture = r->queries && at + n == AFTER ? &capture : NULL,
            .logits = logits + (size_t)at * V};
        if (model_forward(m, &batch, &err)) fail_msg("%s", err.msg);
        free(copy.block);
    }
}

static void read_once(little *l, const reading *r, float *logits)
{
    model_dense *d = little_dense(&l->shape, N);
    read_rows(l, l->m, d, r, logits);
    model_dense_free(d);
}

static void test_fold__gaps_of_zero_change_no_bit(void **state)
{
    static const uint32_t zeros[12] = {0};
    static float without[AFTER * V], with[AFTER * V];
    for (size_t k = 0; k < N_SPECS; k++) {
        little l = little_open(&specs[k]);
        read_once(&l, &(reading){.phase = BEFORE, .step = AFTER}, without);
        read_once(&l, &(reading){.phase = BEFORE, .step = AFTER, .gaps = zeros, .n_gaps = 12}, with);
        assert_memory_equal(without, with, sizeof with);
        little_close(&l);
    }
}

/* The exact agreement that a rotation has at small phases is there at a million and at a hundred millions. */
static void test_fold__far_rows_are_as_near_as_their_gap_says(void **state)
{
    static const uint32_t far[] = {5000, 1000000, 100000000};
    static float near[AFTER * V], folded[AFTER * V], apart[AFTER * V];
    for (size_t k = 0; k < N_SPECS; k++) {
        little l = little_open(&specs[k]);
        read_once(&l, &(reading){.phase = BEFORE, .step = AFTER}, near);
        for (size_t i = 0; i < sizeof far / sizeof *far; i++) {
            uint32_t gaps[BEFORE / MODEL_ROWS_GROUP];
            for (size_t g = 0; g < BEFORE / MODEL_ROWS_GROUP; g++) gaps[g] = far[i] - BEFORE;
            read_once(&l,
                &(reading){.phase = far[i], .step = AFTER, .gaps = gaps, .n_gaps = BEFORE / MODEL_ROWS_GROUP},
                folded);
            read_once(&l, &(reading){.phase = far[i], .step = AFTER}, apart);
            const double off = little_difference(folded, near, AFTER * V),
                         else_off = little_difference(apart, near, AFTER * V);
            if (!(off < little_tolerance / 2 && else_off > 8 * off))
                fail_msg(
                    "%s at %u: folded %g away, not folded %g", specs[k].architecture, far[i], off, else_off);
        }
        little_close(&l);
    }
}

static void test_fold__batch_shapes_and_threads_give_the_same_bits(void **state)
{
    static const uint32_t gaps[] = {9000, 8990, 8990, 700, 64, 64, 0}, steps[] = {1, 7, 16};
    static float whole[AFTER * V], pieces[AFTER * V];
    for (size_t k = 0; k < N_SPECS; k++) {
        little l = little_open(&specs[k]);
        reading r = {.phase = BEFORE, .step = AFTER, .gaps = gaps, .n_gaps = 7};
        read_once(&l, &r, whole);
        for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
            r.step = steps[i];
            read_once(&l, &r, pieces);
            assert_memory_equal(whole, pieces, sizeof whole);
        }
        for (int threads = 1; threads <= 3; threads += 2) {
            model *m = little_open_model(l.path, threads);
            model_dense *d = little_dense(&l.shape, N);
            model_profile *p = NULL;
            if (threads == 1) assert_int_equal(model_profile_start(&p, m, NULL), 0);
            read_rows(&l, m, d, &r, pieces);
            model_profile_stop(p);
            assert_memory_equal(whole, pieces, sizeof whole);
            model_dense_free(d);
            model_close(m);
        }
        little_close(&l);
    }
}

/* Whoever turns a key, once for all tokens or for each batch. */
static void test_fold__copies_with_turned_keys_give_the_same_bits(void **state)
{
    static const uint32_t gaps[] = {9000, 8990, 8990, 700, 64, 64, 0};
    static float lying[AFTER * V], copies[AFTER * V];
    for (size_t k = 0; k < N_SPECS; k++)
        for (uint32_t step = 1; step <= AFTER; step += AFTER - 1) {
            little l = little_open(&specs[k]);
            reading r = {.phase = BEFORE, .step = step, .gaps = gaps, .n_gaps = 7};
            read_once(&l, &r, lying);
            r.copied = true;
            read_once(&l, &r, copies);
            assert_memory_equal(lying, copies, sizeof lying);
            little_close(&l);
        }
}

/* Tokens that are folded with all that they read see it where it was; what is kept of them is not turned. */
static void test_fold__folded_tokens_read_from_their_own_place(void **state)
{
    static float alone[AFTER * V], together[AFTER * V];
    uint32_t gaps[BEFORE / MODEL_ROWS_GROUP + 1];
    for (size_t g = 0; g < sizeof gaps / sizeof *gaps; g++) gaps[g] = 123456;
    for (size_t k = 0; k < N_SPECS; k++) {
        little l = little_open(&specs[k]);
        const size_t n = (size_t)specs[k].n_layer * specs[k].n_head * QUERIES * l.shape.head_dim;
        float *kept[2] = {base_xcalloc(n, sizeof(float)), base_xcalloc(n, sizeof(float))};
        read_once(&l, &(reading){.phase = BEFORE, .step = AFTER, .queries = kept[0]}, alone);
        read_once(&l,
            &(reading){.phase = BEFORE,
                .step = AFTER,
                .gaps = gaps,
                .n_gaps = BEFORE / MODEL_ROWS_GROUP + 1,
                .queries = kept[1]},
            together);
        assert_true(little_difference(together, alone, AFTER * V) < little_tolerance / 2);
        assert_memory_equal(kept[0], kept[1], n / specs[k].n_layer * sizeof(float)); /* the first layer's */
        free(kept[0]);
        free(kept[1]);
        little_close(&l);
    }
}

/* A query's mass at a distance is what it is at that distance in fact, from its own folded place. */
static void test_fold__masses_are_those_of_the_folded_distance(void **state)
{
    static const uint32_t tokens[QUERIES] = {BEFORE + AFTER - 3, BEFORE + AFTER - 2, BEFORE + AFTER - 1};
    static float logits[AFTER * V];
    enum { ROWS = BEFORE, GAP = 250000 };
    for (size_t k = 0; k < N_SPECS; k++) {
        little l = little_open(&specs[k]);
        const uint32_t n_lanes = model_rows_lanes(&l.shape);
        const size_t n = (size_t)specs[k].n_layer * specs[k].n_head * QUERIES * l.shape.head_dim;
        float *queries = base_xcalloc(n, sizeof *queries), *turned = base_xcalloc(n, sizeof *turned),
              *mass[2] = {base_xcalloc((size_t)n_lanes * N, 4), base_xcalloc((size_t)n_lanes * N, 4)};
        uint32_t gaps[N / MODEL_ROWS_GROUP] = {0};
        int64_t by[QUERIES];
        model_dense *d = little_dense(&l.shape, N);
        base_err err = {0};
        read_rows(&l, l.m, d, &(reading){.phase = BEFORE, .step = AFTER, .queries = queries}, logits);
        /* 0: true phases; 1: rows and queries folded alike; 2: queries far away, rows folded towards them. */
        for (int way = 0; way < 3; way++) {
            const model_rows_view *dense;
            float *lanes[16];
            for (uint32_t lane = 0; lane < n_lanes; lane++) lanes[lane] = mass[way > 0] + lane * N;
            assert_int_equal(model_dense_append(d, 0, &dense, NULL), 0);
            model_rows_view view = *dense;
            for (size_t g = 0; g < N / MODEL_ROWS_GROUP; g++)
                gaps[g] = way == 1 || g < BEFORE / MODEL_ROWS_GROUP ? GAP : 0;
            for (uint32_t i = 0; i < QUERIES; i++) by[i] = way == 2 ? GAP : 0;
            memcpy(turned, queries, n * sizeof *queries);
            model_turn_queries(l.m, turned, QUERIES, by);
            model_run runs[ROWS / MODEL_ROWS_BLOCK + 1];
            model_lane_list lists[16];
            for (uint32_t at = 0, i = 0; at < ROWS; at += runs[i++].n)
                runs[i] = (model_run){at, at, ROWS - at < MODEL_ROWS_BLOCK ? ROWS - at : MODEL_ROWS_BLOCK};
            for (uint32_t lane = 0; lane < n_lanes; lane++)
                lists[lane] = (model_lane_list){runs, (ROWS + MODEL_ROWS_BLOCK - 1) / MODEL_ROWS_BLOCK, ROWS};
            view.lanes = lists;
            view.gaps = way ? gaps : NULL;
            view.n_gaps = way ? N / MODEL_ROWS_GROUP : 0;
            const model_score score = {.queries = turned,
                .n_queries = QUERIES,
                .tokens = tokens,
                .rows = &view,
                .pool = MODEL_POOL_MAX,
                .mass = lanes};
            if (model_score_rows(l.m, &score, &err)) fail_msg("%s", err.msg);
            for (uint32_t lane = 0; lane < n_lanes && way; lane++)
                for (uint32_t i = 0; i < ROWS; i++) {
                    const double a = mass[0][lane * N + i], b = mass[1][lane * N + i];
                    if (!(fabs(a - b) <= 1e-5 + 1e-3 * a))
                        fail_msg("way %d, lane %u, row %u: %g is not %g", way, lane, i, b, a);
                }
        }
        model_dense_free(d);
        for (int i = 0; i < 2; i++) free(mass[i]);
        free(queries);
        free(turned);
        little_close(&l);
    }
}

/* Layers with a window read their rows as they are. */
static void test_fold__windows_turn_nothing(void **state)
{
    static float plain[AFTER * V], folded[AFTER * V];
    tiny_gguf spec = TINY_GGUF_GEMMA3;
    spec.n_layer = 5; /* all of them with a window */
    little l = little_open(&spec);
    static const uint32_t gaps[] = {9000, 8990, 8990, 700, 300, 64, 32};
    read_once(&l, &(reading){.phase = BEFORE, .step = AFTER}, plain);
    read_once(&l, &(reading){.phase = BEFORE, .step = AFTER, .gaps = gaps, .n_gaps = 7}, folded);
    assert_memory_equal(plain, folded, sizeof folded);
    little_close(&l);
    spec = TINY_GGUF_GEMMA3; /* the sixth reads everything */
    l = little_open(&spec);
    read_once(&l, &(reading){.phase = BEFORE, .step = AFTER}, plain);
    read_once(&l, &(reading){.phase = BEFORE, .step = AFTER, .gaps = gaps, .n_gaps = 7}, folded);
    assert_true(memcmp(plain, folded, sizeof folded));
    little_close(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fold__gaps_of_zero_change_no_bit),
        cmocka_unit_test(test_fold__far_rows_are_as_near_as_their_gap_says),
        cmocka_unit_test(test_fold__batch_shapes_and_threads_give_the_same_bits),
        cmocka_unit_test(test_fold__copies_with_turned_keys_give_the_same_bits),
        cmocka_unit_test(test_fold__folded_tokens_read_from_their_own_place),
        cmocka_unit_test(test_fold__masses_are_those_of_the_folded_distance),
        cmocka_unit_test(test_fold__windows_turn_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
