/* The cache's table as events tell it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "kv/plan/plan.h"
#include "tui/state/row_journal.h"

enum { LANES = 8 };

static tui_journal *fresh(void)
{
    static const uint16_t lens[] = {3, 1, 2, 1, 3};
    tui_journal *j = tui_journal_new();
    tui_journal_append(j, &(tui_appended){0, 0, 5, "system", "", 0, {"one, two x", 10}, lens});
    tui_journal_append(j, &(tui_appended){1, 5, 2, "user", "", 0, {"ask", 3}, (const uint16_t[]){2, 1}});
    tui_journal_append(j, &(tui_appended){1, 7, 10, "tool", "a.c", 12, {"0123456789", 10},
                              (const uint16_t[]){1, 1, 1, 1, 1, 1, 1, 1, 1, 1}});
    return j;
}

static char *text_of(const tui_rows *r, uint32_t from, uint32_t to)
{
    base_buf b = {0};
    tui_rows_text(r, from, to, &b);
    return base_buf_take(&b);
}

static void test_rows__a_fold_counts_lanes(void **state)
{
    tui_journal *j = fresh();
    tui_rows r = {0};
    tui_journal_run(j, 1, 7, 11, "evict", "budget", LANES, false);
    tui_journal_run(j, 1, 11, 13, "evict", "budget", 2, false);
    tui_rows_update(&r, j, LANES, UINT32_MAX);
    assert_int_equal(r.n, 17);
    tui_count c = tui_rows_count(&r, 0, 17);
    assert_int_equal(c.host, 4);
    assert_true(c.active > 12.4 && c.active < 12.6); /* 17 - 4 - 2 * 2/8 */
    assert_int_equal(r.lanes_sum, 17 * LANES - 4 * LANES - 2 * 2);
    uint32_t fewest, most;
    tui_rows_lanes(&r, 10, 17, &fewest, &most);
    assert_int_equal(fewest, 0);
    assert_int_equal(most, LANES);
    tui_journal_run(j, 2, 8, 9, "promote", "repair-anchor", LANES, false);
    tui_rows_update(&r, j, LANES, UINT32_MAX);
    c = tui_rows_count(&r, 7, 11);
    assert_int_equal(c.promoted, 1);
    assert_int_equal(tui_count_look(&c), TUI_LOOK_PROMOTED);
    assert_string_equal(tui_rows_word(&r, r.row + 8), "repair-anchor");
    tui_rows_free(&r);
    tui_journal_free(j);
}

static void test_rows__a_former_turn_is_as_it_was(void **state)
{
    tui_journal *j = fresh();
    tui_rows before = {0}, now = {0};
    tui_rows_update(&before, j, LANES, UINT32_MAX);
    uint64_t sum = before.lanes_sum;
    tui_journal_run(j, 2, 7, 17, "evict", "budget", LANES, false);
    tui_journal_append(j, &(tui_appended){2, 17, 1, "answer", "", 0, {"!", 1}});
    tui_rows_update(&now, j, LANES, UINT32_MAX);
    assert_int_equal(now.n, 18);
    assert_int_equal(tui_rows_count(&now, 7, 17).host, 10);
    tui_rows_update(&now, j, LANES, 1);
    assert_int_equal(now.n, 17);
    assert_int_equal(now.lanes_sum, sum);
    tui_rows_update(&now, j, LANES, UINT32_MAX);
    assert_int_equal(tui_rows_count(&now, 7, 17).host, 10);
    tui_rows_free(&before);
    tui_rows_free(&now);
    tui_journal_free(j);
}

static void test_rows__text_follows_a_rewind(void **state)
{
    tui_journal *j = fresh();
    tui_rows r = {0};
    tui_journal_truncate(j, 2, 9);
    tui_journal_append(j, &(tui_appended){2, 9, 2, "user", "", 0, {"new", 3}, (const uint16_t[]){1, 2}});
    tui_rows_update(&r, j, LANES, UINT32_MAX);
    assert_int_equal(r.n, 11);
    char *s = text_of(&r, 5, 11);
    assert_string_equal(s, "ask01new");
    free(s);
    assert_int_equal(r.sources[r.n_sources - 1].from, 9);
    assert_int_equal(r.sources[r.n_sources - 2].to, 9);
    assert_int_equal(r.lanes_sum, 11 * LANES);
    tui_rows_free(&r);
    tui_journal_free(j);
}

static void test_rows__protection_is_of_the_last_pass(void **state)
{
    tui_journal *j = fresh();
    tui_rows r = {0};
    tui_journal_span(j, 1, 7, 9, "signature");
    tui_rows_update(&r, j, LANES, UINT32_MAX);
    assert_true(tui_row_protected(&r, r.row + 0)); /* the fixed prompt */
    assert_true(tui_row_protected(&r, r.row + 5)); /* the request, in its turn */
    assert_true(tui_row_protected(&r, r.row + 7)); /* a span nobody has looked at yet */
    assert_false(tui_row_protected(&r, r.row + 9));
    tui_journal_pass(j, 1);
    tui_journal_run(j, 1, 10, 12, "protect", "window", LANES, false);
    tui_rows_update(&r, j, LANES, UINT32_MAX);
    assert_false(tui_row_protected(&r, r.row + 7)); /* the pass did not keep it */
    assert_true(tui_row_protected(&r, r.row + 10));
    tui_journal_pass(j, 2);
    tui_rows_update(&r, j, LANES, UINT32_MAX);
    assert_false(tui_row_protected(&r, r.row + 10));
    tui_rows_free(&r);
    tui_journal_free(j);
}

static void test_rows__a_persons_hand(void **state)
{
    tui_journal *j = fresh();
    tui_rows r = {0};
    tui_journal_run(j, 1, 7, 9, "bar", "manual", LANES, false);
    tui_rows_update(&r, j, LANES, UINT32_MAX);
    tui_count c = tui_rows_count(&r, 7, 9);
    assert_int_equal(c.barred, 2);
    assert_int_equal(tui_count_look(&c), TUI_LOOK_BARRED);
    tui_journal_run(j, 1, 7, 9, "protect", "pin", LANES, false);
    tui_rows_update(&r, j, LANES, UINT32_MAX);
    c = tui_rows_count(&r, 7, 9);
    assert_int_equal(c.barred, 0);
    assert_int_equal(c.host, 0);
    assert_int_equal(c.protected_, 2);
    tui_journal_pass(j, 2);
    tui_rows_update(&r, j, LANES, UINT32_MAX);
    assert_true(tui_row_protected(&r, r.row + 7)); /* a pin outlives passes */
    tui_journal_run(j, 2, 7, 9, "keep", "manual", LANES, false);
    tui_journal_pass(j, 2);
    tui_rows_update(&r, j, LANES, UINT32_MAX);
    assert_false(tui_row_protected(&r, r.row + 7));
    tui_rows_free(&r);
    tui_journal_free(j);
}

static void test_rows__broken_events_are_bounded(void **state)
{
    tui_journal *j = tui_journal_new();
    tui_rows r = {0};
    tui_journal_append(j, &(tui_appended){1, 50, 3, "tool", "", 0, {"gap", 3}}); /* of another session */
    tui_journal_append(
        j, &(tui_appended){1, 0, 2, "tool", NULL, 0, {"ab", 2}, (const uint16_t[]){60000, 60000}});
    tui_journal_run(j, 1, 1, 4000000000u, "evict", "budget", 4000000000u, false);
    tui_journal_run(j, 1, 0, 2, "unheard-of", "budget", 1, false);
    tui_journal_span(j, 1, 7, 4000000000u, "signature");
    tui_journal_truncate(j, 1, 4000000000u);
    tui_rows_update(&r, j, LANES, UINT32_MAX);
    assert_int_equal(r.n, 2);
    assert_int_equal(r.row[0].lanes, LANES);
    assert_int_equal(r.row[1].lanes, 0);
    char *s = text_of(&r, 0, 100);
    assert_string_equal(s, "ab");
    free(s);
    tui_rows_free(&r);
    tui_journal_free(j);
}

/* Lanes of layers with a window are of plans, and of nothing that is counted. */
static void test_rows__lanes_with_a_window_are_left_out(void **state)
{
    tui_journal *j = fresh();
    tui_rows r = {0};
    const uint32_t n = tui_journal_windows(j, LANES, "w.w.");
    assert_int_equal(n, LANES / 2);
    tui_journal_lanes(j, 5); /* of the last 10 tokens the first three layers, of which one counts */
    kv_plan *p = kv_plan_new(1, KV_CAUSE_MANUAL, 17, LANES);
    assert_non_null(p);
    for (uint32_t lane = 0; lane < LANES; lane++) p->flips[lane * kv_plan_words(p)] = lane < 7 ? 0x0f : 0x07;
    base_buf blob = {0};
    kv_plan_pack(p, &blob);
    assert_true(tui_journal_plan(j, 2, blob.data, blob.len));
    tui_journal_run(j, 2, 0, 4, "evict", "manual", 4, true);
    tui_rows_update(&r, j, n, UINT32_MAX);
    assert_int_equal(r.row[0].lanes, 0);
    assert_int_equal(r.row[3].lanes, 1); /* lane 7, the last that counts, has it */
    assert_true(tui_row_in_lane(&r, 3, 3) && !tui_row_in_lane(&r, 3, 2));
    assert_int_equal(r.row[5].lanes, 4);
    assert_int_equal(r.row[7].lanes, 2);
    assert_int_equal(r.row[7].deferred, 2);
    tui_count c = tui_rows_count(&r, 0, 3);
    assert_int_equal(c.host, 3);
    /* A word that does not fit, or has no layer of the other kind, leaves out none. */
    assert_int_equal(tui_journal_windows(j, LANES, "w.w"), LANES);
    assert_int_equal(tui_journal_windows(j, LANES, "wwww"), LANES);
    assert_int_equal(tui_journal_windows(j, LANES, ""), LANES);
    assert_int_equal(tui_journal_windows(j, LANES, NULL), LANES);
    base_buf_free(&blob);
    kv_plan_free(p);
    tui_rows_free(&r);
    tui_journal_free(j);
}

/*
 * Fresh text below the pivot: some lanes are not computed; a plan says which tokens go up, a later one brings
 * more.
 */
static void test_rows__what_is_not_computed_is_deferred(void **state)
{
    tui_journal *j = tui_journal_new();
    tui_rows r = {0};
    tui_journal_append(j, &(tui_appended){1, 0, 8, "context", "", 0, {"abcdefgh", 8},
                              (const uint16_t[]){1, 1, 1, 1, 1, 1, 1, 1}});
    tui_journal_lanes(j, 2);
    tui_rows_update(&r, j, LANES, UINT32_MAX);
    assert_int_equal(r.lanes_sum, 8 * 2);
    tui_count c = tui_rows_count(&r, 0, 8);
    assert_int_equal(c.deferred, 8);
    assert_true(c.deferred_rows > 5.99 && c.deferred_rows < 6.01); /* of 8 tokens, 6 of 8 lanes */
    assert_int_equal(tui_count_look(&c), TUI_LOOK_DEFERRED);
    kv_plan *p = kv_plan_new(1, KV_CAUSE_PRUNE, 8, LANES);
    assert_non_null(p);
    for (uint32_t lane = 2; lane < LANES; lane++) p->flips[lane * kv_plan_words(p)] = 0x03;
    p->deferred = calloc(kv_plan_words(p) + 1, sizeof *p->deferred);
    p->deferred[0] = 0xfc;
    base_buf blob = {0};
    kv_plan_pack(p, &blob);
    assert_true(tui_journal_plan(j, 1, blob.data, blob.len));
    tui_journal_run(j, 1, 0, 2, "keep", "centrality", LANES - 2, true);
    tui_journal_run(j, 1, 2, 8, "defer", "centrality", LANES - 2, true);
    tui_rows_update(&r, j, LANES, UINT32_MAX);
    c = tui_rows_count(&r, 0, 8);
    assert_int_equal(c.deferred, 6);
    assert_int_equal(c.promoted, 0); /* nothing came back: it is new */
    c = tui_rows_count(&r, 0, 2);
    assert_int_equal(tui_count_look(&c), TUI_LOOK_KEPT);
    tui_journal_run(j, 2, 4, 5, "promote", "repair-anchor", LANES - 2, false);
    tui_rows_update(&r, j, LANES, UINT32_MAX);
    c = tui_rows_count(&r, 0, 8);
    assert_int_equal(c.deferred, 5);
    assert_int_equal(c.promoted, 1);
    base_buf_free(&blob);
    kv_plan_free(p);
    tui_rows_free(&r);
    tui_journal_free(j);
}

/* The runs' counts are rounded; what flips in which lane stands in the plan. */
static void test_rows__a_plan_is_exact(void **state)
{
    tui_journal *j = fresh();
    tui_rows r = {0};
    kv_plan *p = kv_plan_new(1, KV_CAUSE_EVICT, 17, LANES);
    assert_non_null(p);
    p->flips[0] = 0x380;                    /* lane 0: tokens 7, 8, 9 */
    p->flips[3 * kv_plan_words(p)] = 0x100; /* lane 3: token 8 */
    base_buf blob = {0};
    kv_plan_pack(p, &blob);
    assert_true(tui_journal_plan(j, 1, blob.data, blob.len));
    tui_journal_run(j, 1, 7, 10, "evict", "budget", 2, true);
    tui_rows_update(&r, j, LANES, UINT32_MAX);
    assert_int_equal(r.lanes_sum, 17 * LANES - 4);
    assert_int_equal(r.row[8].lanes, LANES - 2);
    assert_false(tui_row_in_lane(&r, 8, 3));
    assert_true(tui_row_in_lane(&r, 7, 3));
    assert_string_equal(tui_rows_word(&r, r.row + 9), "budget");
    assert_true(tui_journal_plan(j, 2, blob.data, blob.len)); /* the same flips again: all is back */
    tui_rows_update(&r, j, LANES, UINT32_MAX);
    assert_int_equal(r.lanes_sum, 17 * LANES);
    tui_count c = tui_rows_count(&r, 0, 17);
    assert_true(c.promoted_rows > 0.49 && c.promoted_rows < 0.51); /* 4 of 8 lanes */
    tui_journal_run(j, 2, 8, 9, "evict", "budget", LANES, false);
    tui_rows_update(&r, j, LANES, UINT32_MAX);
    c = tui_rows_count(&r, 0, 17);
    assert_true(c.promoted_rows > 0.24 && c.promoted_rows < 0.26); /* what left again does not count */
    assert_false(tui_journal_plan(j, 2, "KP", 2));
    base_buf_free(&blob);
    kv_plan_free(p);
    tui_rows_free(&r);
    tui_journal_free(j);
}

typedef struct touched {
    int n;
    tui_change last;
} touched;

static void count_touch(void *user, uint32_t turn, tui_change change, const char *reason, uint32_t lanes)
{
    touched *t = user;
    t->n++;
    t->last = change;
}

static void test_rows__the_story_of_a_row(void **state)
{
    tui_journal *j = fresh();
    tui_journal_run(j, 1, 7, 9, "evict", "budget", LANES, false);
    tui_journal_run(j, 2, 7, 8, "promote", "repair-anchor", LANES, false);
    touched t = {0};
    tui_journal_touches(j, 7, UINT32_MAX, count_touch, &t);
    assert_int_equal(t.n, 3); /* arrived, evicted, promoted */
    assert_int_equal(t.last, TUI_PROMOTED_ROW);
    t = (touched){0};
    tui_journal_touches(j, 7, 1, count_touch, &t);
    assert_int_equal(t.n, 2);
    tui_journal_truncate(j, 3, 7);
    tui_journal_append(j, &(tui_appended){3, 7, 1, "user", "", 0, {"x", 1}});
    t = (touched){0};
    tui_journal_touches(j, 7, UINT32_MAX, count_touch, &t);
    assert_int_equal(t.n, 1); /* the old branch is another row's story */
    tui_journal_free(j);
}

/* What frame after frame adds up is what one fold of everything gives, for every stretch. */
static void test_rows__sums_follow_each_operation(void **state)
{
    tui_journal *j = fresh();
    tui_rows frames = {0};
    uint32_t seed = 7, n = 17;
    for (uint32_t i = 0; i < 400; i++) {
        static const char *const actions[] = {"evict", "promote", "protect", "bar", "keep"};
        uint32_t turn = 1 + i / 60;
        seed = seed * 1664525u + 1013904223u;
        uint32_t from = (seed >> 8) % n, to = from + 1 + (seed >> 20) % 6;
        if (seed >> 28 < 6)
            tui_journal_append(j, &(tui_appended){turn, n++, 1, "answer", "", 0, {"w", 1}});
        else if (seed >> 28 == 6 && n > 20)
            tui_journal_truncate(j, turn, n -= 3);
        else if (seed >> 28 == 7)
            tui_journal_pass(j, turn);
        else if (seed >> 28 == 8)
            tui_journal_span(j, turn, from, to, "signature");
        else
            tui_journal_run(j, turn, from, to, actions[seed % 5], "budget", 1 + seed % LANES, false);
        tui_rows_update(&frames, j, LANES, UINT32_MAX);
        tui_rows whole = {0};
        tui_rows_update(&whole, j, LANES, UINT32_MAX);
        assert_int_equal(frames.n, whole.n);
        for (uint32_t a = 0; a < n; a += 5) {
            const tui_count x = tui_rows_count(&frames, a, n), y = tui_rows_count(&whole, a, n);
            assert_int_equal(x.promoted, y.promoted);
            assert_true(x.active == y.active && x.protected_rows == y.protected_rows);
            assert_true(x.promoted_rows == y.promoted_rows);
            uint32_t host = 0, barred = 0, protected_ = 0;
            for (uint32_t k = a; k < n; k++) {
                host += whole.row[k].lanes == 0;
                barred += (whole.row[k].flags & TUI_ROW_BARRED) != 0;
                protected_ += whole.row[k].lanes > 0 && tui_row_protected(&whole, whole.row + k);
            }
            assert_int_equal(x.host, host);
            assert_int_equal(x.barred, barred);
            assert_int_equal(x.protected_, protected_);
        }
        tui_rows_free(&whole);
    }
    tui_rows_free(&frames);
    tui_journal_free(j);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows__a_fold_counts_lanes),
        cmocka_unit_test(test_rows__a_former_turn_is_as_it_was),
        cmocka_unit_test(test_rows__text_follows_a_rewind),
        cmocka_unit_test(test_rows__protection_is_of_the_last_pass),
        cmocka_unit_test(test_rows__a_persons_hand),
        cmocka_unit_test(test_rows__broken_events_are_bounded),
        cmocka_unit_test(test_rows__lanes_with_a_window_are_left_out),
        cmocka_unit_test(test_rows__what_is_not_computed_is_deferred),
        cmocka_unit_test(test_rows__a_plan_is_exact),
        cmocka_unit_test(test_rows__the_story_of_a_row),
        cmocka_unit_test(test_rows__sums_follow_each_operation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
