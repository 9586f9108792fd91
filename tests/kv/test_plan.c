/* Plans as bytes, orders as orders, lists and tables against naive ones. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "fake_compute.h"
#include "kv/core/rank.h"
#include "kv/plan/plan.h"
#include "kv/rows/bits.h"
#include "kv/rows/list.h"
#include "kv/rows/store.h"

static kv_plan *random_plan(uint64_t *random)
{
    kv_plan *p = kv_plan_new(test_random(random), (kv_cause)test_below(random, 6), test_below(random, 700),
        1 + test_below(random, 60));
    assert_non_null(p);
    const uint32_t n_words = kv_plan_words(p);
    for (uint32_t lane = 0; lane < p->n_lanes; lane++) {
        uint64_t *bits = p->flips + (size_t)lane * n_words;
        if (lane && test_below(random, 3)) {
            memcpy(bits, bits - n_words, n_words * sizeof *bits);
            continue;
        }
        for (uint32_t k = test_below(random, 6); k > 0 && p->n_tokens; k--) {
            const uint32_t from = test_below(random, p->n_tokens);
            kv_bits_set_range(bits, from, from + 1 + test_below(random, p->n_tokens - from));
        }
    }
    if (p->n_tokens && test_below(random, 2)) {
        p->barred = calloc(n_words, sizeof *p->barred);
        kv_bits_set(p->barred, test_below(random, p->n_tokens));
    }
    if (p->n_tokens && test_below(random, 2)) {
        p->pinned = calloc(n_words, sizeof *p->pinned);
        kv_bits_set(p->pinned, p->n_tokens - 1);
    }
    if (p->n_tokens > 64 && test_below(random, 3) == 0) {
        p->n_fold = p->n_tokens / 64;
        p->fold = calloc(p->n_fold, sizeof *p->fold);
        p->fold[test_below(random, p->n_fold)] = (int32_t)test_below(random, 200) - 100;
    }
    if (p->n_tokens && test_below(random, 2)) {
        p->outshone = calloc(n_words, sizeof *p->outshone);
        kv_bits_set(p->outshone, test_below(random, p->n_tokens));
    }
    return p;
}

static void assert_same_set(const uint64_t *a, const uint64_t *b, size_t n_words)
{
    assert_int_equal(a != NULL, b != NULL);
    if (a) assert_memory_equal(a, b, n_words * sizeof *a);
}

static void test_plan__comes_back_from_its_bytes(void **state)
{
    uint64_t random = test_seed("plans", 5);
    for (int k = 0; k < 300; k++) {
        kv_plan *p = random_plan(&random), *q = NULL;
        base_buf blob = {0}, again = {0};
        base_err err = {0};
        kv_plan_pack(p, &blob);
        if (kv_plan_unpack(blob.data, blob.len, &q, &err)) fail_msg("%s", err.msg);
        assert_true(q->epoch == p->epoch && q->cause == p->cause && q->n_tokens == p->n_tokens &&
                    q->n_lanes == p->n_lanes);
        assert_memory_equal(q->flips, p->flips, (size_t)p->n_lanes * kv_plan_words(p) * sizeof *p->flips);
        assert_same_set(p->barred, q->barred, kv_plan_words(p));
        assert_same_set(p->pinned, q->pinned, kv_plan_words(p));
        assert_same_set(p->outshone, q->outshone, kv_plan_words(p));
        assert_null(q->stale);
        assert_null(q->deferred);
        for (uint32_t g = 0; g < q->n_fold; g++) assert_int_equal(q->fold[g], p->fold[g]);
        kv_plan_pack(q, &again);
        assert_int_equal(again.len, blob.len);
        assert_memory_equal(again.data, blob.data, blob.len);
        kv_plan_free(q);
        q = NULL;
        /* Cut anywhere it is no plan, or, where what only some have is cut off, the plan without that. */
        const size_t cut = test_below(&random, (uint32_t)blob.len);
        if (kv_plan_unpack(blob.data, cut, &q, NULL)) {
            assert_null(q);
        } else {
            assert_true((p->fold || p->outshone) && !q->outshone);
            kv_plan_free(q);
        }
        kv_plan_free(p);
        base_buf_free(&blob);
        base_buf_free(&again);
    }
}

static void test_plan__lanes_that_agree_cost_their_runs_once(void **state)
{
    kv_plan *p = kv_plan_new(1, KV_CAUSE_EVICT, 30000, 56);
    for (uint32_t lane = 0; lane < 56; lane++)
        for (uint32_t k = 0; k < 100; k++)
            kv_bits_set_range(p->flips + (size_t)lane * kv_plan_words(p), k * 200, k * 200 + 90);
    base_buf blob = {0};
    kv_plan_pack(p, &blob);
    assert_true(blob.len < 100 * 3 + 56 + 32);
    base_buf_free(&blob);
    kv_plan_free(p);
}

static void test_plan__runs_join_when_they_say_the_same(void **state)
{
    kv_plan *p = kv_plan_new(1, KV_CAUSE_EVICT, 100, 56);
    kv_plan_add_run(p, 0, 10, KV_EVICT, KV_REASON_BUDGET, 50);
    kv_plan_add_run(p, 10, 20, KV_EVICT, KV_REASON_BUDGET, 54);
    kv_plan_add_run(p, 20, 30, KV_EVICT, KV_REASON_BUDGET, 4);
    kv_plan_add_run(p, 30, 30, KV_EVICT, KV_REASON_STALE, 4);
    kv_plan_add_run(p, 31, 40, KV_EVICT, KV_REASON_BUDGET, 4);
    assert_int_equal(p->n_runs, 3);
    assert_int_equal(p->runs[0].to, 20);
    assert_int_equal(p->runs[0].lanes, 52);
    assert_int_equal(p->runs[2].from, 31);
    assert_string_equal(kv_reason_word(KV_REASON_REPAIR_ANCHOR), "repair-anchor");
    assert_string_equal(kv_action_word(KV_BAR), "bar");
    assert_string_equal(kv_cause_word(KV_CAUSE_PRESSURE), "pressure");
    kv_plan_free(p);
}

static void test_rank__orders_by_score_then_previous_then_index(void **state)
{
    static const float score[] = {1, 3, NAN, 3, -INFINITY, 3, 0, -0.0f, -2},
                       previous[] = {0, 1, 9, 2, 0, 2, 0, 0, 0};
    static const uint32_t want[] = {3, 5, 1, 0, 6, 7, 8, 4, 2};
    uint32_t order[9];
    kv_ranker r = {0};
    assert_int_equal(kv_ranker_reserve(&r, 9), 0);
    kv_rank(&r, score, previous, 9, order);
    assert_memory_equal(order, want, sizeof want);
    kv_ranker_free(&r);
}

static void test_list__agrees_with_a_naive_one(void **state)
{
    enum { LANES = 5, MOST = 1500 };
    uint64_t random = test_seed("lists", 9);
    static bool active[LANES][MOST];
    for (int k = 0; k < 20; k++) {
        kv_lists l;
        uint32_t n = 0;
        memset(active, 0, sizeof active);
        assert_int_equal(kv_lists_init(&l, LANES, MOST, NULL), 0);
        for (int step = 0; step < 60; step++) {
            const uint32_t what = test_below(&random, 4);
            if (what < 2) {
                const uint32_t more = test_below(&random, 2) ? 1 : test_below(&random, 400);
                if (n + more > MOST) continue;
                assert_int_equal(kv_lists_append(&l, more, NULL), 0);
                for (uint32_t lane = 0; lane < LANES; lane++) memset(&active[lane][n], 1, more);
                n += more;
            } else if (what == 2) {
                const uint32_t to = n - (n ? test_below(&random, n < 50 ? n : 50) : 0);
                kv_lists_truncate(&l, to);
                for (uint32_t lane = 0; lane < LANES; lane++) memset(&active[lane][to], 0, MOST - to);
                n = to;
            } else if (n) {
                const size_t n_words = kv_bits_words(n);
                uint64_t *flips = calloc(LANES * n_words, sizeof *flips);
                const bool same = test_below(&random, 2);
                for (uint32_t lane = 0; lane < LANES; lane++) {
                    if (lane && same)
                        memcpy(flips + lane * n_words, flips, n_words * sizeof *flips);
                    else
                        for (uint32_t r = 0; r < 5; r++) {
                            const uint32_t from = test_below(&random, n);
                            kv_bits_set_range(
                                flips + lane * n_words, from, from + 1 + test_below(&random, n - from));
                        }
                    for (uint32_t i = 0; i < n; i++)
                        active[lane][i] ^= kv_bits_get(flips + lane * n_words, i);
                }
                assert_int_equal(kv_lists_flip(&l, flips, NULL), 0);
                free(flips);
            }
            for (uint32_t lane = 0; lane < LANES; lane++) {
                const model_lane_list *v = &l.view[lane];
                uint32_t rows = 0, next = 0;
                for (uint32_t r = 0; r < v->n_runs; r++) {
                    const model_run *run = &v->runs[r];
                    assert_true(run->n && run->index >= next && run->slot == run->index);
                    assert_int_equal(
                        run->index / MODEL_ROWS_BLOCK, (run->index + run->n - 1) / MODEL_ROWS_BLOCK);
                    for (uint32_t i = next; i < run->index; i++) assert_false(active[lane][i]);
                    for (uint32_t i = run->index; i < run->index + run->n; i++) assert_true(active[lane][i]);
                    rows += run->n;
                    next = run->index + run->n;
                }
                for (uint32_t i = next; i < n; i++) assert_false(active[lane][i]);
                assert_int_equal(rows, v->n_rows);
            }
        }
        kv_lists_fini(&l);
    }
}

static void test_store__writers_never_touch_a_shared_block(void **state)
{
    const model_rows_shape shape = {.n_layer = 1, .n_head_kv = 2, .head_dim = 4};
    uint16_t row[16], got[16];
    assert_int_equal(kv_row_bytes(&shape), sizeof row);
    kv_table a, b;
    kv_table_init(&a, &shape);
    kv_table_init(&b, &shape);
    assert_int_equal(kv_table_make_writable(&a, 0, 600, NULL), 0);
    for (uint32_t i = 0; i < 600; i++) {
        for (uint32_t k = 0; k < 16; k++) row[k] = (uint16_t)(i * 16 + k);
        kv_table_put_row(&a, i, row);
    }
    assert_int_equal(kv_table_share(&b, &a, NULL), 0);
    assert_ptr_equal(a.rows[2], b.rows[2]);
    assert_int_equal(kv_table_make_writable(&b, 600, 700, NULL), 0);
    assert_ptr_equal(a.rows[1], b.rows[1]);
    assert_ptr_not_equal(a.rows[2], b.rows[2]);
    memset(row, 0xee, sizeof row);
    kv_table_put_row(&b, 600, row);
    kv_table_get_row(&b, 599, got);
    assert_int_equal(got[3], (uint16_t)(599 * 16 + 3));
    /* Adopting behind 260 rows of one's own copies inside that block and shares the next. */
    kv_table c;
    kv_table_init(&c, &shape);
    assert_int_equal(kv_table_make_writable(&c, 0, 260, NULL), 0);
    kv_table_put_row(&c, 259, row);
    assert_int_equal(kv_table_adopt(&c, &a, 260, 600, NULL), 0);
    assert_ptr_not_equal(c.rows[1], a.rows[1]);
    assert_ptr_equal(c.rows[2], a.rows[2]);
    kv_table_get_row(&c, 259, got);
    assert_memory_equal(got, row, sizeof row);
    kv_table_get_row(&c, 260, got);
    assert_int_equal(got[15], (uint16_t)(260 * 16 + 15));
    kv_table_fini(&a);
    kv_table_get_row(&c, 599, got);
    assert_int_equal(got[0], (uint16_t)(599 * 16));
    kv_table_fini(&b);
    kv_table_fini(&c);
}

static void test_bits__are_counted_as_one_by_one(void **state)
{
    uint64_t random = 5;
    (void)state;
    for (int round = 0; round < 20000; round++) {
        uint64_t word = test_random(&random);
        if (round % 3 == 0) word &= test_random(&random) & test_random(&random); /* few */
        if (round % 3 == 1) word |= test_random(&random) | test_random(&random); /* many */
        uint32_t n = 0;
        for (int i = 0; i < 64; i++) n += word >> i & 1;
        assert_int_equal(kv_bits_count_word(word), n);
    }
    assert_int_equal(kv_bits_count_word(0), 0);
    assert_int_equal(kv_bits_count_word(~UINT64_C(0)), 64);
    for (int i = 0; i < 64; i++) assert_int_equal(kv_bits_count_word(UINT64_C(1) << i), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bits__are_counted_as_one_by_one),
        cmocka_unit_test(test_plan__comes_back_from_its_bytes),
        cmocka_unit_test(test_plan__lanes_that_agree_cost_their_runs_once),
        cmocka_unit_test(test_plan__runs_join_when_they_say_the_same),
        cmocka_unit_test(test_rank__orders_by_score_then_previous_then_index),
        cmocka_unit_test(test_list__agrees_with_a_naive_one),
        cmocka_unit_test(test_store__writers_never_touch_a_shared_block),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
