/* What an eviction pass keeps and what a repair brings back, over the model without weights (fake_compute.h). */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "kit.h"
#include "kv/bits.h"

enum { CTX = 6000 };

/* The plans that a session announced, as far as the tests ask. */
typedef struct seen {
    uint32_t n_plans, promoted, evicted;
    kv_cause last_cause;
    uint32_t by_reason[KV_N_REASONS]; /* tokens in runs of a reason, all plans */
} seen;

static void see(void *user, const kv_plan *p)
{
    seen *s = user;
    s->n_plans++;
    s->last_cause = p->cause;
    s->promoted += p->promoted;
    s->evicted += p->evicted;
    for (uint32_t i = 0; i < p->n_runs; i++)
        s->by_reason[p->runs[i].reason] += p->runs[i].to - p->runs[i].from;
}

static kv_session *open_session(fake_model *m, const kv_options *o, seen *log)
{
    const kv_compute c = fake_compute(m, CTX);
    const kv_observer observer = {.user = log, .plan = see};
    kv_session *s = NULL;
    base_err err = {0};
    if (kv_session_new_over(&s, &c, o, log ? &observer : NULL, &err)) fail_msg("%s", err.msg);
    return s;
}

/* Ids of classes 0..class_n-1 only: what a query of another class finds is then known. */
static void make_ids(int32_t *ids, uint32_t n, uint32_t n_classes, uint64_t seed)
{
    for (uint32_t i = 0; i < n; i++)
        ids[i] = (int32_t)(test_below(&seed, n_classes) + FAKE_CLASSES * test_below(&seed, 5));
}

static void append(kv_session *s, kv_segment g, const int32_t *ids, uint32_t n)
{
    base_err err = {0};
    if (kv_session_append(s, &g, ids, n, NULL, NULL, NULL, &err)) fail_msg("%s", err.msg);
}

static uint32_t active_in(const kv_session *s, uint32_t from, uint32_t to)
{
    static uint32_t lanes[CTX];
    kv_session_active_lanes(s, lanes);
    uint32_t n = 0;
    for (uint32_t i = from; i < to; i++) n += lanes[i] == FAKE_LANES;
    return n;
}

static void test_policy__streaming_keeps_sinks_and_the_newest(void **state)
{
    int32_t ids[2000];
    make_ids(ids, 2000, 50, 1);
    fake_model m = {0};
    seen log = {0};
    kv_session *s = open_session(&m, &(kv_options){.budget = 1000, .policy = "streaming-llm"}, &log);
    append(s, (kv_segment){.origin = KV_ORIGIN_TOOL, .turn = 1}, ids, 2000);
    kv_stats stats;
    kv_session_get_stats(s, &stats);
    assert_true(stats.active <= 1000 && stats.active >= 875);
    assert_int_equal(active_in(s, 0, 4), 4);
    assert_int_equal(active_in(s, 4, 2000 - (stats.active - 4)), 0);
    assert_int_equal(active_in(s, 2000 - (stats.active - 4), 2000), stats.active - 4);
    assert_int_equal(log.last_cause, KV_CAUSE_EVICT);
    kv_session_free(s);
}

static void test_policy__snapkv_keeps_what_the_request_asks_for_per_lane(void **state)
{
    int32_t ids[2000], question[8];
    make_ids(ids, 2000, 50, 2);
    for (uint32_t i = 0; i < 8; i++) question[i] = 55; /* class 55: nowhere else */
    for (uint32_t i = 300; i < 310; i++) ids[i] = 55;
    fake_model m = {.lanes_differ = true};
    kv_session *s = open_session(&m, &(kv_options){.budget = 900, .policy = "snapkv"}, NULL);
    append(s, (kv_segment){.origin = KV_ORIGIN_USER, .turn = 1}, question, 8);
    append(s, (kv_segment){.origin = KV_ORIGIN_TOOL, .turn = 1}, ids, 2000);
    assert_int_equal(active_in(s, 308, 318), 10);
    assert_int_equal(active_in(s, 2008 - 32, 2008), 32);
    /* Each lane has its own code, so beyond the asked rows lanes choose differently. */
    uint64_t a[(CTX + 63) / 64] = {0}, b[(CTX + 63) / 64] = {0};
    kv_session_lane_bits(s, 0, a);
    kv_session_lane_bits(s, 1, b);
    assert_memory_not_equal(a, b, sizeof a);
    kv_why why;
    kv_session_why(s, 310, &why);
    assert_true(why.attention > 0.01 && why.rank < 0.1 && why.rank < why.cut);
    assert_int_equal(why.lanes_active, FAKE_LANES);
    kv_session_free(s);
}

static void test_policy__the_seeds_selector_has_one_set_for_all_lanes(void **state)
{
    int32_t ids[2000], answer[8];
    make_ids(ids, 2000, 50, 12);
    for (uint32_t i = 0; i < 8; i++) answer[i] = 55;
    for (uint32_t i = 300; i < 310; i++) ids[i] = 55;
    fake_model m = {.lanes_differ = true};
    kv_session *s = open_session(&m, &(kv_options){.budget = 900, .policy = "snapkv-seed"}, NULL);
    kv_session_set_automatic(s, false);
    append(s, (kv_segment){.origin = KV_ORIGIN_TOOL, .turn = 1}, ids, 2000);
    append(s, (kv_segment){.origin = KV_ORIGIN_ANSWER, .turn = 1}, answer, 8);
    assert_int_equal(kv_session_evict(s, NULL, NULL), 0);
    kv_stats stats;
    kv_session_get_stats(s, &stats);
    assert_int_equal(active_in(s, 0, 2008), stats.active); /* active in one lane, active in all */
    assert_true(stats.active <= 900);
    assert_int_equal(active_in(s, 300, 310), 10);
    assert_int_equal(active_in(s, 2008 - 128, 2008), 128);
    kv_session_free(s);
}

static void test_policy__hard_rows_stay_and_soft_spans_go_before_the_rest(void **state)
{
    int32_t ids[2000];
    make_ids(ids, 2000, 50, 3);
    const kv_span spans[] = {
        {.from = 100, .to = 150, .reason = KV_REASON_SIGNATURE, .weight = 2},
        {.from = 200, .to = 260, .reason = KV_REASON_CALL, .weight = 1},
        {.from = 400,
            .to = 900,
            .reason = KV_REASON_RETURN,
            .weight = .5f}, /* larger than the share, and the last in line */
        {.from = 950, .to = 960, .reason = KV_REASON_ASSIGN, .weight = .75f},
    };
    fake_model m = {.lanes_differ = true};
    seen log = {0};
    kv_session *s = open_session(&m, &(kv_options){.budget = 1000}, &log);
    append(s, (kv_segment){.origin = KV_ORIGIN_SYSTEM}, ids, 200);
    append(s, (kv_segment){.origin = KV_ORIGIN_USER, .turn = 1}, ids + 200, 60);
    append(
        s, (kv_segment){.origin = KV_ORIGIN_TOOL, .turn = 1, .spans = spans, .n_spans = 4}, ids + 260, 1700);
    assert_int_equal(active_in(s, 0, 260), 260);
    assert_int_equal(active_in(s, 1960 - 32, 1960), 32);
    assert_int_equal(active_in(s, 260 + 100, 260 + 150), 50);
    assert_int_equal(active_in(s, 260 + 200, 260 + 260), 60);
    assert_int_equal(active_in(s, 260 + 950, 260 + 960), 10);
    assert_true(active_in(s, 260 + 400, 260 + 900) < 400);
    assert_true(log.by_reason[KV_REASON_SYSTEM] && log.by_reason[KV_REASON_REQUEST] &&
                log.by_reason[KV_REASON_WINDOW] && log.by_reason[KV_REASON_SIGNATURE]);
    /* The next turn: the old request is hard no longer, and goes when it must. */
    append(s, (kv_segment){.origin = KV_ORIGIN_USER, .turn = 2}, ids, 40);
    append(s, (kv_segment){.origin = KV_ORIGIN_TOOL, .turn = 2}, ids, 1900);
    assert_int_equal(active_in(s, 0, 200), 200);
    assert_true(active_in(s, 200, 260) < 60);
    assert_int_equal(active_in(s, 1960, 2000), 40);
    kv_score scores[16];
    const uint32_t n = kv_session_scores(s, scores, 16);
    assert_int_equal(n, 3 + 4 + 2);
    assert_int_equal(scores[0].origin, KV_ORIGIN_SYSTEM);
    assert_int_equal(scores[0].reason, KV_N_REASONS);
    assert_true(scores[0].active == 1);
    assert_int_equal(scores[3].reason, KV_REASON_SIGNATURE);
    kv_session_free(s);
}

static void test_policy__more_hard_rows_than_budget_give_way_by_class(void **state)
{
    int32_t ids[3000];
    make_ids(ids, 3000, 50, 4);
    fake_model m = {0};
    seen log = {0};
    kv_session *s = open_session(&m, &(kv_options){.budget = 800}, &log);
    append(s, (kv_segment){.origin = KV_ORIGIN_SYSTEM}, ids, 200);
    append(s, (kv_segment){.origin = KV_ORIGIN_USER, .turn = 1}, ids,
        2000); /* a request longer than the budget */
    kv_stats stats;
    kv_session_get_stats(s, &stats);
    assert_int_equal(stats.active_max, 800 - 160); /* 160 may visit */
    assert_int_equal(log.last_cause, KV_CAUSE_PRESSURE);
    assert_int_equal(active_in(s, 0, 200), 200);
    assert_int_equal(active_in(s, 2200 - 32, 2200), 32);
    kv_session_free(s);
}

static void test_policy__a_pin_outranks_a_bar_and_a_bar_everything_else(void **state)
{
    int32_t ids[1500];
    make_ids(ids, 1500, 50, 5);
    fake_model m = {0};
    kv_session *s = open_session(&m, &(kv_options){.budget = 1000}, NULL);
    append(s, (kv_segment){.origin = KV_ORIGIN_SYSTEM}, ids, 100);
    append(s, (kv_segment){.origin = KV_ORIGIN_TOOL, .turn = 1}, ids, 400);
    assert_int_equal(kv_session_manual(s, KV_MANUAL_PIN, 10, 20, NULL), 0);
    assert_int_equal(kv_session_manual(s, KV_MANUAL_DROP, 0, 50, NULL), 0);
    assert_int_equal(active_in(s, 0, 50), 10);
    assert_int_equal(kv_session_manual(s, KV_MANUAL_DROP, 12, 15, NULL), BASE_E_STATE);
    /* Repair never returns what is barred, a person does. */
    append(s, (kv_segment){.origin = KV_ORIGIN_USER, .turn = 2}, ids, 40);
    assert_int_equal(kv_session_repair(s, 500, 540, NULL, 0, NULL, NULL), 0);
    assert_int_equal(active_in(s, 0, 50), 10);
    kv_why why;
    kv_session_why(s, 5, &why);
    assert_true(why.barred && !why.active_anywhere);
    assert_int_equal(why.last_action, KV_BAR);
    assert_int_equal(kv_session_manual(s, KV_MANUAL_PROMOTE, 0, 10, NULL), 0);
    assert_int_equal(active_in(s, 0, 50), 20);
    assert_int_equal(kv_session_undo_plan(s, NULL), 0);
    assert_int_equal(active_in(s, 0, 50), 10);
    /* What a person brings back stays through the pass that makes room for it. */
    append(s, (kv_segment){.origin = KV_ORIGIN_TOOL, .turn = 2}, ids, 900);
    assert_int_equal(kv_session_manual(s, KV_MANUAL_PROMOTE, 100, 500, NULL), 0);
    assert_int_equal(active_in(s, 100, 500), 400);
    kv_stats stats;
    kv_session_get_stats(s, &stats);
    assert_true(stats.active_max <= 1000);
    kv_session_free(s);
}

/* A needle of class 55 far back, evicted; a question of class 55 later. */
static kv_session *with_needle(fake_model *m, seen *log, const char *const *set, uint32_t budget)
{
    int32_t ids[3000], question[20];
    uint32_t lines[300];
    make_ids(ids, 3000, 50, 6);
    for (uint32_t i = 0; i < 300; i++) lines[i] = i * 10;
    ids[405] = 55;
    make_ids(question, 20, 50, 7);
    kv_session *s = open_session(m, &(kv_options){.budget = budget, .repair = 40, .set = set}, log);
    append(s, (kv_segment){.origin = KV_ORIGIN_USER, .turn = 1}, question, 20);
    append(s, (kv_segment){.origin = KV_ORIGIN_TOOL, .turn = 1, .lines = lines, .n_lines = 300}, ids, 3000);
    assert_int_equal(kv_session_manual(s, KV_MANUAL_EVICT, 420, 440, NULL), 0);
    assert_int_equal(active_in(s, 420, 440), 0);
    question[7] = 55;
    const uint32_t asks[] = {7};
    append(
        s, (kv_segment){.origin = KV_ORIGIN_USER, .turn = 2, .queries = asks, .n_queries = 1}, question, 20);
    return s;
}

static const char *const reuse[] = {"signal=reuse", NULL};

static void test_repair__brings_the_asked_line_back_within_the_budget(void **state)
{
    fake_model m = {.lanes_differ = true};
    seen log = {0};
    kv_session *s = with_needle(&m, &log, reuse, 1000);
    const uint32_t query = 3020 + 7;
    log = (seen){0};
    const uint64_t before = m.n_forward;
    assert_int_equal(kv_session_repair(s, 3020, 3040, &query, 1, NULL, NULL), 0);
    assert_int_equal(m.n_forward, before); /* its query was kept */
    assert_int_equal(log.n_plans, 1);
    assert_int_equal(log.last_cause, KV_CAUSE_REPAIR);
    assert_int_equal(active_in(s, 420, 430), 10); /* the line of token 405 + 20 */
    kv_why why;
    kv_session_why(s, 425, &why);
    assert_int_equal(why.last_reason, KV_REASON_REPAIR_ANCHOR);
    kv_session_why(s, 421, &why);
    assert_int_equal(why.last_reason, KV_REASON_REPAIR_BURST);
    assert_true(log.promoted <= 40);
    kv_stats stats;
    kv_session_get_stats(s, &stats);
    assert_true(stats.active_max <= 1000);
    kv_session_free(s);
}

/* Its rows were made before it could read what it asks for; of a long one they stay. */
static void test_repair__computes_a_short_message_again(void **state)
{
    static const char *const shorter[] = {"again=19", NULL};
    const char *const *const set[] = {NULL, shorter};
    for (int i = 0; i < 2; i++) {
        fake_model m = {.lanes_differ = true};
        seen log = {0};
        kv_session *s = with_needle(&m, &log, set[i], 1000);
        const uint32_t query = 3020 + 7;
        const uint64_t before = m.n_forward;
        assert_int_equal(kv_session_repair(s, 3020, 3040, &query, 1, NULL, NULL), 0);
        assert_int_equal(active_in(s, 420, 430), 10);
        assert_int_equal(m.n_forward - before, i ? 0 : 20);
        kv_session_free(s);
    }
}

static void test_repair__what_came_back_stays_for_the_turn(void **state)
{
    fake_model m = {.lanes_differ = true};
    seen log = {0};
    kv_session *s = with_needle(&m, &log, NULL, 1000);
    const uint32_t query = 3020 + 7;
    int32_t more[1500];
    make_ids(more, 1500, 50, 11);
    assert_int_equal(kv_session_repair(s, 3020, 3040, &query, 1, NULL, NULL), 0);
    log = (seen){0};
    append(s, (kv_segment){.origin = KV_ORIGIN_ANSWER, .turn = 2}, more, 40);
    assert_int_equal(log.n_plans, 0); /* the repair left room for an answer's beginning */
    append(s, (kv_segment){.origin = KV_ORIGIN_TOOL, .turn = 2}, more, 1400);
    assert_true(log.n_plans > 0 && log.by_reason[KV_REASON_REPAIR_ANCHOR] > 0);
    assert_int_equal(active_in(s, 420, 430), 10);
    kv_session_free(s);
}

static void test_repair__swaps_when_lanes_are_full(void **state)
{
    fake_model m = {.lanes_differ = true};
    seen log = {0};
    static const char *const full[] = {"low=1", NULL}; /* passes leave no room */
    kv_session *s = with_needle(&m, &log, full, 1000);
    const uint32_t query = 3020 + 7;
    assert_int_equal(kv_session_evict(s, NULL, NULL), 0);
    int32_t more[100];
    make_ids(more, 100, 50, 8);
    kv_stats stats;
    kv_session_get_stats(s, &stats);
    if (stats.active < 1000)
        append(s, (kv_segment){.origin = KV_ORIGIN_ANSWER, .turn = 2}, more,
            1000 - stats.active < 100 ? 1000 - stats.active : 100);
    log = (seen){0};
    assert_int_equal(kv_session_repair(s, 3020, 3040, &query, 1, NULL, NULL), 0);
    assert_int_equal(active_in(s, 420, 430), 10);
    assert_true(log.promoted > 0);
    kv_session_get_stats(s, &stats);
    assert_true(stats.active_max <= 1000);
    kv_session_free(s);
}

static void test_repair__computes_queries_that_were_not_kept(void **state)
{
    fake_model m = {0};
    seen log = {0};
    kv_session *s = with_needle(&m, &log, reuse, 1000);
    int32_t said[30];
    make_ids(said, 30, 50, 9);
    said[12] = 55;
    append(s, (kv_segment){.origin = KV_ORIGIN_ANSWER, .turn = 2}, said, 30);
    const uint32_t query = 3040 + 12;
    const uint64_t before = m.n_forward;
    assert_int_equal(kv_session_repair(s, 3040, 3070, &query, 1, NULL, NULL), 0);
    assert_int_equal(m.n_forward - before, 1);
    assert_int_equal(active_in(s, 420, 430), 10);
    kv_session_free(s);
}

static void test_repair__the_papers_form_takes_bursts(void **state)
{
    fake_model m = {0};
    seen log = {0};
    static const char *const paper[] = {"grow=burst", "heads=all", NULL};
    kv_session *s = with_needle(&m, &log, paper, 1000);
    const uint32_t query = 3020 + 7;
    assert_int_equal(kv_session_manual(s, KV_MANUAL_EVICT, 400, 500, NULL), 0);
    assert_int_equal(kv_session_repair(s, 3020, 3040, &query, 1, NULL, NULL), 0);
    assert_int_equal(active_in(s, 423, 446), 23); /* {i-2..i+20} around 425 */
    kv_session_free(s);
}

static void test_repair__does_nothing_when_off_or_when_nothing_is_missing(void **state)
{
    int32_t ids[600];
    make_ids(ids, 600, 50, 10);
    fake_model m = {0};
    seen log = {0};
    kv_session *s = open_session(&m, &(kv_options){.budget = 1000, .repair = -1}, &log);
    append(s, (kv_segment){.origin = KV_ORIGIN_TOOL, .turn = 1}, ids, 600);
    assert_int_equal(kv_session_repair(s, 300, 600, NULL, 0, NULL, NULL), 0);
    assert_int_equal(log.n_plans, 0);
    assert_int_equal(m.n_scored, 0);
    kv_session_free(s);
    s = open_session(&m, &(kv_options){.budget = 1000, .repair = 0}, &log);
    append(s, (kv_segment){.origin = KV_ORIGIN_TOOL, .turn = 1}, ids, 600);
    assert_int_equal(kv_session_manual(s, KV_MANUAL_EVICT, 100, 200, NULL), 0);
    assert_int_equal(kv_session_repair(s, 300, 600, NULL, 0, NULL, NULL), 0);
    assert_int_equal(active_in(s, 100, 200), 0);
    assert_int_equal(kv_session_repair(s, 300, 601, NULL, 0, NULL, NULL), BASE_E_USAGE);
    kv_session_free(s);
}

static void test_repair__stale_text_does_not_come_back(void **state)
{
    fake_model m = {0};
    seen log = {0};
    kv_session *s = with_needle(&m, &log, NULL, 1000);
    const uint32_t query = 3020 + 7;
    assert_int_equal(kv_session_mark_stale(s, 420, 430, NULL), 0);
    assert_int_equal(kv_session_repair(s, 3020, 3040, &query, 1, NULL, NULL), 0);
    assert_int_equal(active_in(s, 420, 430), 0);
    assert_int_equal(kv_session_manual(s, KV_MANUAL_PROMOTE, 420, 430, NULL), 0);
    assert_int_equal(active_in(s, 420, 430), 10);
    kv_session_free(s);
}

static void test_repair__looks_only_at_the_evicted_rows_it_is_given(void **state)
{
    const uint32_t query = 3020 + 7;
    for (int with = 0; with < 2; with++) {
        fake_model m = {.lanes_differ = true};
        seen log = {0};
        static uint32_t rank[CTX];
        uint64_t among[CTX / 64 + 1] = {0};
        kv_session *s = with_needle(&m, &log, NULL, 1000);
        for (uint32_t t = with ? 420 : 440; t < 3000; t++) kv_bits_set(among, t);
        log = (seen){0};
        const kv_ask ask = {.among = among, .rank = rank};
        assert_int_equal(kv_session_repair_by(s, 3020, 3040, &query, 1, &ask, NULL, NULL), 0);
        assert_int_equal(active_in(s, 420, 430), with ? 10 : 0);
        assert_int_equal(rank[425], with ? 0 : UINT32_MAX);
        assert_int_equal(rank[3030], UINT32_MAX); /* the message itself */
        assert_true(log.n_plans == 1 && log.promoted > 0);
        kv_session_free(s);
    }
}

static void test_repair__says_how_many_evicted_rows_were_asked_for_more(void **state)
{
    fake_model m = {0};
    static uint32_t rank[CTX];
    bool taken[CTX] = {false};
    uint32_t n_evicted = 0, before[CTX];
    const uint32_t query = 3020 + 7;
    kv_session *s = with_needle(&m, NULL, NULL, 1000);
    kv_session_active_lanes(s, before);
    assert_int_equal(kv_session_repair_by(s, 3020, 3040, &query, 1, &(kv_ask){.rank = rank}, NULL, NULL), 0);
    assert_int_equal(rank[425], 0);
    for (uint32_t t = 0; t < 3020; t++) n_evicted += before[t] < FAKE_LANES;
    for (uint32_t t = 0; t < 3020; t++) {
        assert_true(rank[t] <= n_evicted);
        if (before[t] == FAKE_LANES) continue;
        assert_false(taken[rank[t]]);
        taken[rank[t]] = true;
    }
    kv_session_free(s);
}

static void test_chunks__the_one_whose_largest_keys_answer_comes_first(void **state)
{
    fake_model m = {.lanes_differ = true};
    uint64_t bits[CTX / 64 + 1] = {0};
    uint32_t lanes[CTX];
    const uint32_t query = 3020 + 7;
    kv_signal signal = {0};
    kv_session *s = with_needle(&m, NULL, NULL, 1000);
    assert_int_equal(kv_session_signal(s, 3020, 3040, &query, 1, 64, &signal, NULL), 0);
    assert_int_equal(kv_session_chunks(s, 3020, &signal, 1, 1, bits, NULL), 0);
    for (uint32_t t = 0; t < 3020; t++) assert_int_equal(kv_bits_get(bits, t), t == 425);
    kv_bits_clear_range(bits, 0, 3020);
    assert_int_equal(kv_session_chunks(s, 3020, &signal, 16, 100, bits, NULL), 0);
    assert_int_equal(kv_bits_count(bits, CTX / 64), 100);
    kv_session_active_lanes(s, lanes);
    for (uint32_t t = 0; t < 3020; t++) assert_true(!kv_bits_get(bits, t) || lanes[t] < FAKE_LANES);
    kv_signal_fini(&signal);
    kv_session_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_policy__streaming_keeps_sinks_and_the_newest),
        cmocka_unit_test(test_policy__snapkv_keeps_what_the_request_asks_for_per_lane),
        cmocka_unit_test(test_policy__the_seeds_selector_has_one_set_for_all_lanes),
        cmocka_unit_test(test_policy__hard_rows_stay_and_soft_spans_go_before_the_rest),
        cmocka_unit_test(test_policy__more_hard_rows_than_budget_give_way_by_class),
        cmocka_unit_test(test_policy__a_pin_outranks_a_bar_and_a_bar_everything_else),
        cmocka_unit_test(test_repair__brings_the_asked_line_back_within_the_budget),
        cmocka_unit_test(test_repair__computes_a_short_message_again),
        cmocka_unit_test(test_repair__what_came_back_stays_for_the_turn),
        cmocka_unit_test(test_repair__swaps_when_lanes_are_full),
        cmocka_unit_test(test_repair__computes_queries_that_were_not_kept),
        cmocka_unit_test(test_repair__the_papers_form_takes_bursts),
        cmocka_unit_test(test_repair__does_nothing_when_off_or_when_nothing_is_missing),
        cmocka_unit_test(test_repair__stale_text_does_not_come_back),
        cmocka_unit_test(test_repair__looks_only_at_the_evicted_rows_it_is_given),
        cmocka_unit_test(test_repair__says_how_many_evicted_rows_were_asked_for_more),
        cmocka_unit_test(test_chunks__the_one_whose_largest_keys_answer_comes_first),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
