/* What an eviction pass keeps, over the model without weights (fake_compute.h). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "kit.h"
#include "kv/policy/policy.h"

static void test_policy__streaming_keeps_sinks_and_the_newest(void **state)
{
    int32_t ids[2000];
    kit_make_classes(ids, 2000, 50, 1);
    fake_model m = {0};
    kit_seen log = {0};
    kv_session *s = kit_open(&m, &(kv_options){.budget = 1000, .policy = "streaming-llm"}, &log);
    kit_append_segment(s, (kv_segment){.origin = KV_ORIGIN_TOOL, .turn = 1}, ids, 2000);
    kv_stats stats;
    kv_session_get_stats(s, &stats);
    assert_true(stats.active <= 1000 && stats.active >= 875);
    assert_int_equal(kit_active_in(s, 0, 4), 4);
    assert_int_equal(kit_active_in(s, 4, 2000 - (stats.active - 4)), 0);
    assert_int_equal(kit_active_in(s, 2000 - (stats.active - 4), 2000), stats.active - 4);
    assert_int_equal(log.last_cause, KV_CAUSE_EVICT);
    kv_session_free(s);
}

static void test_policy__snapkv_keeps_what_the_request_asks_for_per_lane(void **state)
{
    int32_t ids[2000], question[8];
    kit_make_classes(ids, 2000, 50, 2);
    for (uint32_t i = 0; i < 8; i++) question[i] = 55; /* class 55: nowhere else */
    for (uint32_t i = 300; i < 310; i++) ids[i] = 55;
    fake_model m = {.lanes_differ = true};
    kv_session *s = kit_open(&m, &(kv_options){.budget = 900, .policy = "snapkv"}, NULL);
    kit_append_segment(s, (kv_segment){.origin = KV_ORIGIN_USER, .turn = 1}, question, 8);
    kit_append_segment(s, (kv_segment){.origin = KV_ORIGIN_TOOL, .turn = 1}, ids, 2000);
    assert_int_equal(kit_active_in(s, 308, 318), 10);
    assert_int_equal(kit_active_in(s, 2008 - 32, 2008), 32);
    /* Each lane has its own code, so beyond the asked rows lanes choose differently. */
    uint64_t a[(KIT_CTX + 63) / 64] = {0}, b[(KIT_CTX + 63) / 64] = {0};
    kv_session_lane_bits(s, 0, a);
    kv_session_lane_bits(s, 1, b);
    assert_memory_not_equal(a, b, sizeof a);
    kv_why why;
    kv_session_why(s, 310, &why);
    assert_true(why.attention > 0.01 && why.rank < 0.1 && why.rank < why.threshold);
    assert_int_equal(why.lanes_active, FAKE_LANES);
    kv_session_free(s);
}

static void test_policy__the_seeds_selector_has_one_set_for_all_lanes(void **state)
{
    int32_t ids[2000], answer[8];
    kit_make_classes(ids, 2000, 50, 12);
    for (uint32_t i = 0; i < 8; i++) answer[i] = 55;
    for (uint32_t i = 300; i < 310; i++) ids[i] = 55;
    fake_model m = {.lanes_differ = true};
    kv_session *s = kit_open(&m, &(kv_options){.budget = 900, .policy = "snapkv-seed"}, NULL);
    kv_session_set_automatic(s, false);
    kit_append_segment(s, (kv_segment){.origin = KV_ORIGIN_TOOL, .turn = 1}, ids, 2000);
    kit_append_segment(s, (kv_segment){.origin = KV_ORIGIN_ANSWER, .turn = 1}, answer, 8);
    assert_int_equal(kv_session_evict(s, NULL), 0);
    kv_stats stats;
    kv_session_get_stats(s, &stats);
    assert_int_equal(kit_active_in(s, 0, 2008), stats.active); /* active in one lane, active in all */
    assert_true(stats.active <= 900);
    assert_int_equal(kit_active_in(s, 300, 310), 10);
    assert_int_equal(kit_active_in(s, 2008 - 128, 2008), 128);
    kv_session_free(s);
}

static void test_policy__hard_rows_stay_and_soft_spans_go_before_the_rest(void **state)
{
    int32_t ids[2000];
    kit_make_classes(ids, 2000, 50, 3);
    const kv_span spans[] = {
        {.from = 100, .to = 150, .reason = KV_REASON_SIGNATURE, .weight = 2},
        {.from = 200, .to = 260, .reason = KV_REASON_CALL, .weight = 1},
        {.from = 400,
            .to = 900,
            .reason = KV_REASON_RETURN,
            .weight = .5f}, /* larger than the share, and the last in line */
        {.from = 950, .to = 960, .reason = KV_REASON_ASSIGN, .weight = .75f},
    };
    static const char *const structure[] = {"soft=.75", NULL};
    fake_model m = {.lanes_differ = true};
    kit_seen log = {0}, plain = {0};
    kv_session *s = kit_open(&m, &(kv_options){.budget = 1000, .set = structure}, &log),
               *without = kit_open(&m, &(kv_options){.budget = 1000}, &plain);
    kv_session *const both[] = {s, without};
    for (int i = 0; i < 2; i++) {
        kit_append_segment(both[i], (kv_segment){.origin = KV_ORIGIN_SYSTEM}, ids, 200);
        kit_append_segment(both[i], (kv_segment){.origin = KV_ORIGIN_USER, .turn = 1}, ids + 200, 60);
        kit_append_segment(both[i],
            (kv_segment){.origin = KV_ORIGIN_TOOL, .turn = 1, .spans = spans, .n_spans = 4}, ids + 260, 1700);
        assert_int_equal(kit_active_in(both[i], 0, 260), 260);
        assert_int_equal(kit_active_in(both[i], 1960 - 32, 1960), 32);
    }
    /* By default attention alone chooses behind the hard rows. */
    assert_int_equal(plain.by_reason[KV_REASON_SIGNATURE], 0);
    assert_true(kit_active_in(without, 260 + 100, 260 + 150) < 50);
    kv_session_free(without);
    assert_int_equal(kit_active_in(s, 260 + 100, 260 + 150), 50);
    assert_int_equal(kit_active_in(s, 260 + 200, 260 + 260), 60);
    assert_int_equal(kit_active_in(s, 260 + 950, 260 + 960), 10);
    assert_true(kit_active_in(s, 260 + 400, 260 + 900) < 400);
    assert_true(log.by_reason[KV_REASON_SYSTEM] && log.by_reason[KV_REASON_REQUEST] &&
                log.by_reason[KV_REASON_WINDOW] && log.by_reason[KV_REASON_SIGNATURE]);
    /* The next turn: the old request is hard no longer, and goes when it must. */
    kit_append_segment(s, (kv_segment){.origin = KV_ORIGIN_USER, .turn = 2}, ids, 40);
    kit_append_segment(s, (kv_segment){.origin = KV_ORIGIN_TOOL, .turn = 2}, ids, 1900);
    assert_int_equal(kit_active_in(s, 0, 200), 200);
    assert_true(kit_active_in(s, 200, 260) < 60);
    assert_int_equal(kit_active_in(s, 1960, 2000), 40);
    kv_score scores[16];
    const uint32_t n = kv_session_scores(s, scores, 16);
    assert_int_equal(n, 3 + 4 + 2);
    assert_int_equal(scores[0].origin, KV_ORIGIN_SYSTEM);
    assert_int_equal(scores[0].reason, KV_N_REASONS);
    assert_true(scores[0].active == 1);
    assert_int_equal(scores[3].reason, KV_REASON_SIGNATURE);
    kv_session_free(s);
}

/* What is asked for stands in spans: had those chosen first, attention's half would have been what no span holds. */
static void test_policy__what_is_asked_for_counts_before_structure_chooses(void **state)
{
    enum { N = 2000, LONG = 20, N_SPANS = N / (2 * LONG) };
    static const char *const half[] = {"soft=.5", "kernel=1", "visit=0", "memory=0", NULL};
    int32_t ids[N], question[8];
    kv_span spans[N_SPANS];
    kit_make_classes(ids, N, 50, 5);
    for (uint32_t i = 0; i < 8; i++) question[i] = 55;
    for (uint32_t k = 0; k < N_SPANS; k++) {
        spans[k] = (kv_span){
            .from = 2 * k * LONG, .to = (2 * k + 1) * LONG, .reason = KV_REASON_CALL, .marks = KV_MARK_CALL};
        for (uint32_t i = spans[k].from; k % 2 && i < spans[k].to; i++) ids[i] = 55;
    }
    fake_model m = {.lanes_differ = true};
    kv_session *s = kit_open(&m, &(kv_options){.budget = 900, .set = half}, NULL);
    kv_session_set_automatic(s, false);
    kit_append_segment(
        s, (kv_segment){.origin = KV_ORIGIN_CONTEXT, .turn = 1, .spans = spans, .n_spans = N_SPANS}, ids, N);
    kit_append_segment(s, (kv_segment){.origin = KV_ORIGIN_USER, .turn = 1}, question, 8);
    assert_int_equal(kv_session_evict(s, NULL), 0);
    uint64_t bits[(KIT_CTX + 63) / 64] = {0};
    kv_session_lane_bits(s, 0, bits);
    uint32_t asked = 0, marked = 0, kept = 0;
    for (uint32_t i = 0; i < N; i++) {
        const uint32_t k = i / LONG;
        if (!(bits[i / 64] >> (i % 64) & 1)) continue;
        kept++;
        marked += k % 2 == 0;
        asked += k % 4 == 2;
    }
    assert_true(kept > 600);
    assert_int_equal(asked, N_SPANS / 2 * LONG); /* all of it */
    assert_true(marked > kept * 9 / 10);
    kv_session_free(s);
}

static void test_policy__more_hard_rows_than_budget_give_way_by_class(void **state)
{
    int32_t ids[3000];
    kit_make_classes(ids, 3000, 50, 4);
    fake_model m = {0};
    kit_seen log = {0};
    kv_session *s = kit_open(&m, &(kv_options){.budget = 800}, &log);
    kit_append_segment(s, (kv_segment){.origin = KV_ORIGIN_SYSTEM}, ids, 200);
    kit_append_segment(s, (kv_segment){.origin = KV_ORIGIN_USER, .turn = 1}, ids,
        2000); /* a request longer than the budget */
    kv_stats stats;
    kv_session_get_stats(s, &stats);
    assert_int_equal(stats.active_max, 800 - 160); /* 160 may visit */
    assert_int_equal(log.last_cause, KV_CAUSE_PRESSURE);
    assert_int_equal(kit_active_in(s, 0, 200), 200);
    assert_int_equal(kit_active_in(s, 2200 - 32, 2200), 32);
    kv_session_free(s);
}

static void test_policy__a_pin_outranks_a_bar_and_a_bar_everything_else(void **state)
{
    int32_t ids[1500];
    kit_make_classes(ids, 1500, 50, 5);
    fake_model m = {0};
    kv_session *s = kit_open(&m, &(kv_options){.budget = 1000}, NULL);
    kit_append_segment(s, (kv_segment){.origin = KV_ORIGIN_SYSTEM}, ids, 100);
    kit_append_segment(s, (kv_segment){.origin = KV_ORIGIN_TOOL, .turn = 1}, ids, 400);
    assert_int_equal(kv_session_manual(s, KV_MANUAL_PIN, 10, 20, NULL), 0);
    assert_int_equal(kv_session_manual(s, KV_MANUAL_DROP, 0, 50, NULL), 0);
    assert_int_equal(kit_active_in(s, 0, 50), 10);
    assert_int_equal(kv_session_manual(s, KV_MANUAL_DROP, 12, 15, NULL), BASE_E_STATE);
    /* Repair never returns what is barred, a person does. */
    kit_append_segment(s, (kv_segment){.origin = KV_ORIGIN_USER, .turn = 2}, ids, 40);
    assert_int_equal(kv_session_repair(s, &(kv_ask){500, 540}, NULL, NULL), 0);
    assert_int_equal(kit_active_in(s, 0, 50), 10);
    kv_why why;
    kv_session_why(s, 5, &why);
    assert_true(why.barred && why.lanes_active == 0);
    assert_int_equal(why.last_action, KV_BAR);
    assert_int_equal(kv_session_manual(s, KV_MANUAL_PROMOTE, 0, 10, NULL), 0);
    assert_int_equal(kit_active_in(s, 0, 50), 20);
    assert_int_equal(kv_session_undo_plan(s, NULL), 0);
    assert_int_equal(kit_active_in(s, 0, 50), 10);
    /* What a person brings back stays through the pass that makes room for it. */
    kit_append_segment(s, (kv_segment){.origin = KV_ORIGIN_TOOL, .turn = 2}, ids, 900);
    assert_int_equal(kv_session_manual(s, KV_MANUAL_PROMOTE, 100, 500, NULL), 0);
    assert_int_equal(kit_active_in(s, 100, 500), 400);
    kv_stats stats;
    kv_session_get_stats(s, &stats);
    assert_true(stats.active_max <= 1000);
    kv_session_free(s);
}

/* `kvist kv policies` leaves out a name that it does not know. */
static void test_policy__what_a_policy_lists_are_parameters(void **state)
{
    uint32_t n_policies = 0, n_parameters = 0;
    const kv_policy_info *policies = kv_policy_list(&n_policies);
    const kv_parameter_info *parameters = kv_parameter_list(&n_parameters);
    for (uint32_t i = 0; i < n_policies; i++)
        for (const char *at = policies[i].parameters; *at; at += strspn(at, " ")) {
            const size_t n = strcspn(at, " ");
            uint32_t p = 0;
            while (p < n_parameters && (strlen(parameters[p].name) != n || memcmp(parameters[p].name, at, n)))
                p++;
            if (p == n_parameters) fail_msg("%s lists %.*s", policies[i].name, (int)n, at);
            at += n;
        }
}

/* A name that --kv-set took once says what holds now; one it never took lists those that there are. */
static void test_policy__a_parameter_that_is_gone_says_what_holds(void **state)
{
    static const char *const names[] = {"first=.1", "even=1", "block=16", "floor=0", "decay=.5",
        "hysteresis=0", "seed=2", "least_span=0", "flow=0", "dependence=0", "tau_call=1", "tau_control=1",
        "tau_return=1", "tau_assign=1", "tau_flow=1", "tau_dependence=1"};
    const kv_policy *policy = kv_policy_find("kvist", NULL);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *const set[] = {names[i], NULL};
        kv_parameters p;
        base_err err = {0};
        assert_int_equal(kv_parameters_parse(&policy->defaults, set, &p, &err), BASE_E_USAGE);
        assert_non_null(strstr(err.msg, "can no longer be set"));
    }
    kv_parameters p;
    base_err err = {0};
    const char *const never[] = {"floors=1", NULL};
    assert_int_equal(kv_parameters_parse(&policy->defaults, never, &p, &err), BASE_E_USAGE);
    assert_non_null(strstr(err.msg, "no such parameter"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_policy__streaming_keeps_sinks_and_the_newest),
        cmocka_unit_test(test_policy__snapkv_keeps_what_the_request_asks_for_per_lane),
        cmocka_unit_test(test_policy__the_seeds_selector_has_one_set_for_all_lanes),
        cmocka_unit_test(test_policy__hard_rows_stay_and_soft_spans_go_before_the_rest),
        cmocka_unit_test(test_policy__what_is_asked_for_counts_before_structure_chooses),
        cmocka_unit_test(test_policy__more_hard_rows_than_budget_give_way_by_class),
        cmocka_unit_test(test_policy__a_pin_outranks_a_bar_and_a_bar_everything_else),
        cmocka_unit_test(test_policy__what_a_policy_lists_are_parameters),
        cmocka_unit_test(test_policy__a_parameter_that_is_gone_says_what_holds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
