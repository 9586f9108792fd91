/*
 * Limits: rows in memory, rows on disk, a budget that changes in mid-session, a rewind that takes the memory
 * of requests back. Everything through plans; over the model without weights (fake_compute.h).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/fs.h"
#include "fake_compute.h"
#include "kit.h"
#include "kv/core/state.h"
#include "kv/plan/plan.h"
#include "kv/session.h"

enum { CTX = 6000 };

typedef struct seen {
    uint32_t n_plans, lost, n_pressure;
    kv_cause last_cause;
} seen;

static void see(void *user, const kv_plan *p)
{
    seen *s = user;
    s->n_plans++;
    s->last_cause = p->cause;
    s->lost += kv_plan_lost(p);
    s->n_pressure += p->cause == KV_CAUSE_PRESSURE;
}

static kv_session *open_session(
    fake_model *m, const char *policy, const char *const *set, const char *path, seen *log)
{
    const kv_compute c = fake_compute(m, CTX);
    const kv_options o = {.budget = 800, .policy = policy, .set = set, .repair = -1, .row_file = path};
    const kv_observer observer = {.user = log, .plan = see};
    kv_session *s = NULL;
    base_err err = {0};
    if (kv_session_new_over(&s, &c, &o, &observer, &err)) fail_msg("%s", err.msg);
    return s;
}

static void append(kv_session *s, kv_origin origin, uint32_t turn, uint32_t n, uint64_t seed)
{
    int32_t ids[5000];
    const kv_segment g = {.origin = origin, .turn = turn};
    for (uint32_t i = 0; i < n; i++) ids[i] = (int32_t)test_below(&seed, FAKE_VOCAB);
    base_err err = {0};
    if (kv_session_append(s, &g, ids, n, NULL, NULL, &err)) fail_msg("%s", err.msg);
}

static void test_limits__rows_on_disk_give_the_bits_of_rows_in_memory(void **state)
{
    static const char *const host[] = {"host=.125", NULL};
    float want[FAKE_VOCAB], got[FAKE_VOCAB];
    fake_model m = {0};
    seen log = {0}, other = {0};
    (void)state;
    kv_session *a = open_session(&m, "streaming-llm", NULL, NULL, &other),
               *b = open_session(&m, "streaming-llm", host, kit_row_path, &log);
    append(a, KV_ORIGIN_TOOL, 1, 4000, 1);
    append(b, KV_ORIGIN_TOOL, 1, 4000, 1);
    uint32_t n_on_disk = 0;
    for (uint32_t i = 0; i < b->table.n; i++) n_on_disk += b->table.blocks[i]->on_disk;
    assert_true(n_on_disk >= 8);
    for (uint32_t i = 0; i < 4000; i += 7) {
        uint16_t x[FAKE_LANES * FAKE_DIM * 2], y[FAKE_LANES * FAKE_DIM * 2];
        kv_table_get_row(&a->table, i, x);
        kv_table_get_row(&b->table, i, y);
        assert_memory_equal(x, y, sizeof x);
    }
    assert_int_equal(kv_session_manual(a, KV_MANUAL_PROMOTE, 300, 350, NULL), 0);
    assert_int_equal(kv_session_manual(b, KV_MANUAL_PROMOTE, 300, 350, NULL), 0);
    append(a, KV_ORIGIN_USER, 2, 50, 2);
    append(b, KV_ORIGIN_USER, 2, 50, 2);
    assert_int_equal(kv_session_logits(a, want, NULL, NULL), 0);
    assert_int_equal(kv_session_logits(b, got, NULL, NULL), 0);
    assert_memory_equal(want, got, sizeof want);
    assert_int_equal(log.lost, 0);
    kv_session_free(a);
    kv_session_free(b);
}

static void test_limits__rows_given_up_are_told_and_never_come_back(void **state)
{
    static const char *const disk[] = {"host=.125", "disk=.5", NULL};
    fake_model m = {0};
    seen log = {0};
    kv_stats stats;
    (void)state;
    kv_session *s = open_session(&m, "streaming-llm", disk, kit_row_path, &log);
    append(s, KV_ORIGIN_TOOL, 1, 5000, 3);
    kv_session_get_stats(s, &stats);
    assert_true(log.lost > 0 && stats.lost == log.lost && log.n_pressure > 0);
    assert_int_equal(stats.active + stats.host + stats.lost, 5000);
    base_err err = {0};
    assert_int_equal(kv_session_manual(s, KV_MANUAL_PROMOTE, 300, 310, &err), BASE_E_STATE);
    assert_non_null(strstr(err.msg, "given up"));
    kv_plan *p = kv_plan_new(stats.epoch, KV_CAUSE_REPAIR, 5000, stats.n_lanes);
    kv_bits_set(p->flips, 300);
    assert_int_equal(kv_session_apply(s, p, NULL), BASE_E_STATE);
    kv_plan_free(p);
    /* They stay lost across a resume, and their places in the row file go to others. */
    assert_int_equal(kv_session_compact(s, NULL), 0);
    kv_session_free(s);
    const kv_compute c = fake_compute(&m, CTX);
    const kv_options o = {.budget = 800, .policy = "streaming-llm", .repair = -1, .row_file = kit_row_path};
    if (kv_session_resume_over(&s, &c, &o, NULL, &err)) fail_msg("%s", err.msg);
    kv_stats after;
    kv_session_get_stats(s, &after);
    assert_int_equal(after.lost, stats.lost);
    assert_int_equal(after.file_waste, 0);
    assert_true(after.file_bytes < 5000 * kv_row_bytes(&c.shape));
    kv_session_free(s);
}

static void test_limits__a_budget_changed_in_mid_session_is_a_plan(void **state)
{
    fake_model m = {0};
    seen log = {0};
    kv_stats stats;
    (void)state;
    kv_session *s = open_session(&m, "snapkv", NULL, NULL, &log);
    append(s, KV_ORIGIN_USER, 1, 40, 4);
    append(s, KV_ORIGIN_TOOL, 1, 700, 5);
    assert_int_equal(log.n_plans, 0);
    assert_int_equal(kv_session_set_budget(s, (kv_limit){600}, NULL), 0);
    assert_int_equal(log.n_plans, 1);
    assert_int_equal(log.last_cause, KV_CAUSE_EVICT);
    kv_session_get_stats(s, &stats);
    assert_true(stats.active_max <= 600);
    assert_int_equal(kv_session_set_budget(s, (kv_limit){500}, NULL), BASE_E_LIMIT);
    assert_int_equal(log.n_plans, 1);
    kv_session_free(s);
}

static void test_limits__a_rewind_takes_back_what_the_cut_messages_asked(void **state)
{
    fake_model m = {.lanes_differ = true};
    seen log = {0};
    (void)state;
    kv_session *a = open_session(&m, "intentkv", NULL, NULL, &log),
               *b = open_session(&m, "intentkv", NULL, NULL, &log);
    append(a, KV_ORIGIN_USER, 1, 30, 6);
    append(b, KV_ORIGIN_USER, 1, 30, 6);
    append(b, KV_ORIGIN_TOOL, 1, 200, 7);
    append(b, KV_ORIGIN_USER, 2, 30, 8);
    assert_int_equal(kv_session_truncate(b, 30, NULL), 0);
    const size_t n_bytes = kv__memory_floats(a) * sizeof(float);
    assert_memory_equal(a->memory->sum, b->memory->sum, n_bytes);
    assert_null(b->memory->past);
    append(a, KV_ORIGIN_TOOL, 3, 1200, 9);
    append(b, KV_ORIGIN_TOOL, 3, 1200, 9);
    assert_memory_equal(a->memory->sum, b->memory->sum, n_bytes);
    for (uint32_t lane = 0; lane < FAKE_LANES; lane++)
        assert_memory_equal(a->lists.lane[lane]->bits, b->lists.lane[lane]->bits, kv_bits_words(1230) * 8);
    kv_session_free(a);
    kv_session_free(b);
}

static void test_limits__a_request_asks_by_its_last_w_queries(void **state)
{
    static const char *const wide[] = {"w=64", NULL};
    fake_model m = {.lanes_differ = true};
    seen log = {0};
    kv_session *s = open_session(&m, "snapkv", wide, NULL, &log);
    append(s, KV_ORIGIN_SYSTEM, 0, 100, 1);
    append(s, KV_ORIGIN_USER, 1, 50, 2);
    assert_int_equal(s->request.n, 50);
    assert_int_equal(kv_session_set_policy(s, &(kv_options){.policy = "snapkv", .budget = 800}, NULL), 0);
    assert_int_equal(s->request.n, 32); /* another policy's own w, of the same request */
    assert_int_equal(s->request.tokens[31], 149);
    append(s, KV_ORIGIN_USER, 2, 50, 3);
    assert_int_equal(s->request.n, 32);
    kv_session_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            test_limits__rows_on_disk_give_the_bits_of_rows_in_memory, kit_make_folder, kit_remove_folder),
        cmocka_unit_test_setup_teardown(
            test_limits__rows_given_up_are_told_and_never_come_back, kit_make_folder, kit_remove_folder),
        cmocka_unit_test(test_limits__a_budget_changed_in_mid_session_is_a_plan),
        cmocka_unit_test(test_limits__a_request_asks_by_its_last_w_queries),
        cmocka_unit_test(test_limits__a_rewind_takes_back_what_the_cut_messages_asked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
