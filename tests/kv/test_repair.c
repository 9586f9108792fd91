/* What a repair brings back, over the model without weights (fake_compute.h). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "kit.h"
#include "kv/core/state.h"
#include "kv/lab/lab.h"
#include "kv/rows/bits.h"

/* A needle of class 55 far back, evicted; a question of class 55 later. */
static kv_session *with_needle(fake_model *m, kit_seen *log, const char *const *set, uint32_t budget)
{
    int32_t ids[3000], question[20];
    uint32_t lines[300];
    kit_make_classes(ids, 3000, 50, 6);
    for (uint32_t i = 0; i < 300; i++) lines[i] = i * 10;
    ids[405] = 55;
    kit_make_classes(question, 20, 50, 7);
    kv_session *s = kit_open(m, &(kv_options){.budget = budget, .repair = 40, .set = set}, log);
    kit_append_segment(s, (kv_segment){.origin = KV_ORIGIN_USER, .turn = 1}, question, 20);
    kit_append_segment(
        s, (kv_segment){.origin = KV_ORIGIN_TOOL, .turn = 1, .lines = lines, .n_lines = 300}, ids, 3000);
    assert_int_equal(kv_session_manual(s, KV_MANUAL_EVICT, 420, 440, NULL), 0);
    assert_int_equal(kit_active_in(s, 420, 440), 0);
    question[7] = 55;
    const uint32_t asks[] = {7};
    kit_append_segment(
        s, (kv_segment){.origin = KV_ORIGIN_USER, .turn = 2, .queries = asks, .n_queries = 1}, question, 20);
    return s;
}

static const char *const reuse[] = {"signal=reuse", NULL};

static void test_repair__brings_the_asked_line_back_within_the_budget(void **state)
{
    fake_model m = {.lanes_differ = true};
    kit_seen log = {0};
    kv_session *s = with_needle(&m, &log, reuse, 1000);
    const uint32_t query = 3020 + 7;
    log = (kit_seen){0};
    const uint64_t before = m.n_forward;
    assert_int_equal(kv_session_repair(s, &(kv_ask){3020, 3040, &query, 1}, NULL, NULL), 0);
    assert_int_equal(m.n_forward, before); /* its query was kept */
    assert_int_equal(log.n_plans, 1);
    assert_int_equal(log.last_cause, KV_CAUSE_REPAIR);
    assert_int_equal(kit_active_in(s, 420, 430), 10); /* the line of token 405 + 20 */
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

/* What is asked for much less than the best row does not come with it, though there is room. */
static void test_repair__focuses_on_what_answers_clearly(void **state)
{
    static const char *const focus[] = {"focus=0", "focus=.5"};
    uint32_t promoted[2];
    for (int i = 0; i < 2; i++) {
        fake_model m = {.lanes_differ = true};
        kit_seen log = {0};
        const char *const set[] = {"signal=reuse", focus[i], NULL};
        kv_session *s = with_needle(&m, &log, set, 1000);
        const uint32_t query = 3020 + 7;
        log = (kit_seen){0};
        assert_int_equal(kv_session_repair(s, &(kv_ask){3020, 3040, &query, 1}, NULL, NULL), 0);
        assert_int_equal(kit_active_in(s, 420, 430), 10);
        promoted[i] = (uint32_t)log.promoted;
        kv_session_free(s);
    }
    assert_true(promoted[1] == 10 && promoted[0] > 10);
}

/*
 * A word beside the name draws a sink's mass, so the whole is not clear and everything comes back as without quotes; by the name
 * alone its line is, and is to be said again.
 */
static void test_repair__quotes_what_a_name_asks_for_in_an_unclear_request(void **state)
{
    static const char *const off[] = {"signal=reuse", "quote=0", NULL};
    static const uint32_t asks[] = {3027, 3032}, named[] = {7, 12};
    uint64_t schedules[2];
    for (int i = 0; i < 2; i++) {
        fake_model m = {.lanes_differ = true};
        kit_seen log = {0};
        int32_t ids[3000], question[20];
        uint32_t lines[300];
        kit_make_classes(ids, 3000, 50, 6);
        for (uint32_t k = 0; k < 300; k++) lines[k] = k * 10;
        ids[405] = 55;
        kv_session *s =
            kit_open(&m, &(kv_options){.budget = 1000, .repair = 40, .set = i ? reuse : off}, &log);
        kit_make_classes(question, 20, 50, 7);
        question[1] = 56;
        kit_append_segment(s, (kv_segment){.origin = KV_ORIGIN_USER, .turn = 1}, question, 20);
        kit_append_segment(
            s, (kv_segment){.origin = KV_ORIGIN_TOOL, .turn = 1, .lines = lines, .n_lines = 300}, ids, 3000);
        assert_int_equal(kv_session_manual(s, KV_MANUAL_EVICT, 420, 440, NULL), 0);
        question[1] = 1;
        question[7] = 55;
        question[12] = 56;
        kit_append_segment(s,
            (kv_segment){.origin = KV_ORIGIN_USER, .turn = 2, .queries = named, .n_queries = 2}, question,
            20);
        kv_quotes quotes;
        const kv_ask ask = {.from = 3020, .to = 3040, .queries = asks, .n_queries = 2, .quotes = &quotes};
        assert_int_equal(kv_session_repair(s, &ask, NULL, NULL), 0);
        assert_int_equal(kv_bits_count(s->outshone, kv_bits_words(s->n)), 0);
        assert_int_equal(quotes.n, i);
        if (i) assert_true(quotes.lines[0].from == 420 && quotes.lines[0].to == 430);
        schedules[i] = kv_session_schedule_hash(s);
        kv_session_free(s);
    }
    assert_true(schedules[0] == schedules[1]);
}

/* Two are asked for; 120 lines have the second one's class, so each has less than half of the first one's mass. */
static void test_repair__brings_a_line_for_each_name(void **state)
{
    static const uint32_t asks[] = {3027, 3032};
    uint32_t promoted[2];
    for (uint32_t n = 1; n <= 2; n++) {
        fake_model m = {.lanes_differ = true};
        kit_seen log = {0};
        static const char *const set[] = {"signal=reuse", NULL};
        int32_t ids[3000], question[20];
        uint32_t lines[300];
        kit_make_classes(ids, 3000, 50, 6);
        for (uint32_t i = 0; i < 300; i++) lines[i] = i * 10;
        ids[405] = 55;
        for (uint32_t i = 0; i < 120; i++) ids[1005 + 10 * i] = 56;
        kv_session *s = kit_open(&m, &(kv_options){.budget = 1000, .repair = 400, .set = set}, &log);
        kit_append_segment(s, (kv_segment){.origin = KV_ORIGIN_USER, .turn = 1}, ids, 20);
        kit_append_segment(
            s, (kv_segment){.origin = KV_ORIGIN_TOOL, .turn = 1, .lines = lines, .n_lines = 300}, ids, 3000);
        assert_int_equal(kv_session_manual(s, KV_MANUAL_EVICT, 420, 2240, NULL), 0);
        kit_make_classes(question, 20, 50, 7);
        question[7] = 55;
        question[12] = 56;
        const uint32_t named[] = {7, 12};
        kit_append_segment(s,
            (kv_segment){.origin = KV_ORIGIN_USER, .turn = 2, .queries = named, .n_queries = 2}, question,
            20);
        log = (kit_seen){0};
        kv_quotes quotes;
        const kv_ask ask = {.from = 3020, .to = 3040, .queries = asks, .n_queries = n, .quotes = &quotes};
        assert_int_equal(kv_session_repair(s, &ask, NULL, NULL), 0);
        assert_int_equal(kit_active_in(s, 420, 430), 10);
        assert_int_equal(quotes.n, n);
        assert_int_equal(quotes.lines[0].from, 420);
        if (n > 1) { /* one of the lines that hold the second name */
            assert_int_equal(quotes.lines[1].from % 10, 0);
            assert_true(quotes.lines[1].from >= 1020 && quotes.lines[1].from < 2240);
        }
        promoted[n - 1] = (uint32_t)log.promoted;
        kv_session_free(s);
    }
    assert_int_equal(promoted[0], 10);
    assert_int_equal(promoted[1], 20);
}

/* What with_needle's question, the tokens [3020, 3040), finds to be said again. */
static kv_quotes find_quotes(kv_session *s)
{
    const uint32_t query = 3020 + 7;
    kv_quotes found = {.n = 9}; /* to be written */
    const kv_ask ask = {.from = 3020, .to = 3040, .queries = &query, .n_queries = 1, .quotes = &found};
    assert_int_equal(kv_session_repair(s, &ask, NULL, NULL), 0);
    return found;
}

static void assert_quoted(kv_session *s, uint32_t from, uint32_t to)
{
    const kv_quotes found = find_quotes(s);
    assert_int_equal(found.n, 1);
    assert_true(found.lines[0].from == from && found.lines[0].to == to);
    assert_true(found.lines[0].times >= 1.6f);
}

/*
 * The line that answers clearly is to be said again: whether it comes back now or is there, after the plan was taken back, and in
 * a fork; not without the parameter.
 */
static void test_repair__says_which_line_to_quote(void **state)
{
    static const char *const off[] = {"quote=0", "signal=reuse", NULL}, *const on[] = {"signal=reuse", NULL};
    for (int i = 0; i < 2; i++) {
        fake_model m = {.lanes_differ = true};
        kit_seen log = {0};
        kv_session *s = with_needle(&m, &log, i ? on : off, 1000), *f = NULL;
        assert_true(s->fold.n > 0);
        if (!i) {
            assert_int_equal(find_quotes(s).n, 0);
            kv_session_free(s);
            continue;
        }
        assert_int_equal(kv_session_fork(s, &f, NULL, NULL), 0);
        assert_quoted(s, 420, 430);
        assert_int_equal(kit_active_in(s, 420, 430), 10);
        assert_quoted(s, 420, 430);
        assert_int_equal(kv_session_undo_plan(s, NULL), 0);
        assert_quoted(s, 420, 430);
        assert_quoted(f, 420, 430);
        assert_true(kv_session_schedule_hash(s) != kv_session_schedule_hash(f)); /* it says what was done */
        kv_session_free(f);
        kv_session_free(s);
    }
}

/* Not what stands among the newest tokens, nor what answers no more clearly than the first tokens, nor a result's. */
static void test_repair__quotes_no_line_that_is_in_view_or_unclear(void **state)
{
    enum { NEW, UNCLEAR, RESULT, UNFOLDED, N_CASES };
    for (int i = 0; i < N_CASES; i++) {
        fake_model m = {.lanes_differ = true};
        kit_seen log = {0};
        int32_t ids[3000], question[20];
        uint32_t lines[300];
        const uint32_t asks = 7;
        kit_make_classes(ids, 3000, 50, 6);
        for (uint32_t k = 0; k < 300; k++) lines[k] = k * 10;
        ids[i == NEW ? 2505 : 405] = 55;
        kv_session *s = kit_open(&m, &(kv_options){.budget = 1000, .repair = 40, .set = reuse}, &log);
        kit_make_classes(question, 20, 50, 7);
        if (i == UNCLEAR) question[1] = 55; /* a sink has as much */
        kit_append_segment(s, (kv_segment){.origin = KV_ORIGIN_USER, .turn = 1}, question, 20);
        kit_append_segment(
            s, (kv_segment){.origin = KV_ORIGIN_TOOL, .turn = 1, .lines = lines, .n_lines = 300}, ids, 3000);
        assert_int_equal(kv_session_manual(s, KV_MANUAL_EVICT, 420, 440, NULL), 0);
        question[1] = 1;
        question[7] = 55;
        kit_append_segment(s,
            (kv_segment){.origin = i == RESULT ? KV_ORIGIN_TOOL : KV_ORIGIN_USER,
                .turn = 2,
                .queries = &asks,
                .n_queries = 1},
            question, 20);
        if (i == UNFOLDED) s->fold.n = 0;
        assert_int_equal(find_quotes(s).n, 0);
        kv_session_free(s);
    }
}

/* Unless it is long; with signal=unvisited only where its tokens could not visit what comes back, with reuse never. */
static void test_repair__computes_a_message_again(void **state)
{
    static const struct {
        const char *set[4];
        uint64_t computed;
    } cases[] = {{{NULL}, 20}, {{"again=19"}, 0}, {{"signal=unvisited"}, 0},
        {{"visit=0", "signal=unvisited"}, 20}, {{"visit=0", "signal=unvisited", "again=19"}, 0},
        {{"signal=reuse"}, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        fake_model m = {.lanes_differ = true};
        kit_seen log = {0};
        kv_session *s = with_needle(&m, &log, cases[i].set, 1000);
        const uint32_t query = 3020 + 7;
        const uint64_t before = m.n_forward;
        assert_int_equal(kv_session_repair(s, &(kv_ask){3020, 3040, &query, 1}, NULL, NULL), 0);
        assert_int_equal(kit_active_in(s, 420, 430), 10);
        assert_int_equal(m.n_forward - before, cases[i].computed);
        kv_session_free(s);
    }
}

static void test_repair__what_came_back_stays_for_the_turn(void **state)
{
    fake_model m = {.lanes_differ = true};
    kit_seen log = {0};
    kv_session *s = with_needle(&m, &log, NULL, 1000);
    const uint32_t query = 3020 + 7;
    int32_t more[1500];
    kit_make_classes(more, 1500, 50, 11);
    assert_int_equal(kv_session_repair(s, &(kv_ask){3020, 3040, &query, 1}, NULL, NULL), 0);
    log = (kit_seen){0};
    kit_append_segment(s, (kv_segment){.origin = KV_ORIGIN_ANSWER, .turn = 2}, more, 40);
    assert_int_equal(log.n_plans, 0); /* the repair left room for an answer's beginning */
    kit_append_segment(s, (kv_segment){.origin = KV_ORIGIN_TOOL, .turn = 2}, more, 1400);
    assert_true(log.n_plans > 0 && log.by_reason[KV_REASON_REPAIR_ANCHOR] > 0);
    assert_int_equal(kit_active_in(s, 420, 430), 10);
    kv_session_free(s);
}

static void test_repair__swaps_when_lanes_are_full(void **state)
{
    fake_model m = {.lanes_differ = true};
    kit_seen log = {0};
    static const char *const full[] = {"low=1", NULL}; /* passes leave no room */
    kv_session *s = with_needle(&m, &log, full, 1000);
    const uint32_t query = 3020 + 7;
    assert_int_equal(kv_session_evict(s, NULL), 0);
    int32_t more[100];
    kit_make_classes(more, 100, 50, 8);
    kv_stats stats;
    kv_session_get_stats(s, &stats);
    if (stats.active < 1000)
        kit_append_segment(s, (kv_segment){.origin = KV_ORIGIN_ANSWER, .turn = 2}, more,
            1000 - stats.active < 100 ? 1000 - stats.active : 100);
    log = (kit_seen){0};
    assert_int_equal(kv_session_repair(s, &(kv_ask){3020, 3040, &query, 1}, NULL, NULL), 0);
    assert_int_equal(kit_active_in(s, 420, 430), 10);
    assert_true(log.promoted > 0);
    kv_session_get_stats(s, &stats);
    assert_true(stats.active_max <= 1000);
    kv_session_free(s);
}

static void test_repair__computes_queries_that_were_not_kept(void **state)
{
    fake_model m = {0};
    kit_seen log = {0};
    kv_session *s = with_needle(&m, &log, reuse, 1000);
    int32_t said[30];
    kit_make_classes(said, 30, 50, 9);
    said[12] = 55;
    kit_append_segment(s, (kv_segment){.origin = KV_ORIGIN_ANSWER, .turn = 2}, said, 30);
    const uint32_t query = 3040 + 12;
    const uint64_t before = m.n_forward;
    assert_int_equal(kv_session_repair(s, &(kv_ask){3040, 3070, &query, 1}, NULL, NULL), 0);
    assert_int_equal(m.n_forward - before, 1);
    assert_int_equal(kit_active_in(s, 420, 430), 10);
    kv_session_free(s);
}

static void test_repair__the_papers_form_takes_bursts(void **state)
{
    fake_model m = {0};
    kit_seen log = {0};
    static const char *const paper[] = {"grow=burst", "heads=all", NULL};
    kv_session *s = with_needle(&m, &log, paper, 1000);
    const uint32_t query = 3020 + 7;
    assert_int_equal(kv_session_manual(s, KV_MANUAL_EVICT, 400, 500, NULL), 0);
    assert_int_equal(kv_session_repair(s, &(kv_ask){3020, 3040, &query, 1}, NULL, NULL), 0);
    assert_int_equal(kit_active_in(s, 423, 446), 23); /* {i-2..i+20} around 425 */
    kv_session_free(s);
}

static void test_repair__does_nothing_when_off_or_when_nothing_is_missing(void **state)
{
    int32_t ids[600];
    kit_make_classes(ids, 600, 50, 10);
    fake_model m = {0};
    kit_seen log = {0};
    kv_session *s = kit_open(&m, &(kv_options){.budget = 1000, .repair = -1}, &log);
    kit_append_segment(s, (kv_segment){.origin = KV_ORIGIN_TOOL, .turn = 1}, ids, 600);
    assert_int_equal(kv_session_repair(s, &(kv_ask){300, 600}, NULL, NULL), 0);
    assert_int_equal(log.n_plans, 0);
    assert_int_equal(m.n_scored, 0);
    kv_session_free(s);
    s = kit_open(&m, &(kv_options){.budget = 1000, .repair = 0}, &log);
    kit_append_segment(s, (kv_segment){.origin = KV_ORIGIN_TOOL, .turn = 1}, ids, 600);
    assert_int_equal(kv_session_manual(s, KV_MANUAL_EVICT, 100, 200, NULL), 0);
    assert_int_equal(kv_session_repair(s, &(kv_ask){300, 600}, NULL, NULL), 0);
    assert_int_equal(kit_active_in(s, 100, 200), 0);
    assert_int_equal(kv_session_repair(s, &(kv_ask){300, 601}, NULL, NULL), BASE_E_USAGE);
    kv_session_free(s);
}

static void test_repair__stale_text_does_not_come_back(void **state)
{
    fake_model m = {0};
    kit_seen log = {0};
    kv_session *s = with_needle(&m, &log, NULL, 1000);
    const uint32_t query = 3020 + 7;
    assert_int_equal(kv_session_mark_stale(s, 420, 430, NULL), 0);
    assert_int_equal(kv_session_repair(s, &(kv_ask){3020, 3040, &query, 1}, NULL, NULL), 0);
    assert_int_equal(kit_active_in(s, 420, 430), 0);
    assert_int_equal(kv_session_manual(s, KV_MANUAL_PROMOTE, 420, 430, NULL), 0);
    assert_int_equal(kit_active_in(s, 420, 430), 10);
    kv_session_free(s);
}

static void test_repair__looks_only_at_the_evicted_rows_it_is_given(void **state)
{
    const uint32_t query = 3020 + 7;
    for (int with = 0; with < 2; with++) {
        fake_model m = {.lanes_differ = true};
        kit_seen log = {0};
        static uint32_t rank[KIT_CTX];
        uint64_t among[KIT_CTX / 64 + 1] = {0};
        kv_session *s = with_needle(&m, &log, NULL, 1000);
        for (uint32_t t = with ? 420 : 440; t < 3000; t++) kv_bits_set(among, t);
        log = (kit_seen){0};
        const kv_ask ask = {3020, 3040, &query, 1, .among = among, .rank = rank};
        assert_int_equal(kv_session_repair(s, &ask, NULL, NULL), 0);
        assert_int_equal(kit_active_in(s, 420, 430), with ? 10 : 0);
        assert_int_equal(rank[425], with ? 0 : UINT32_MAX);
        assert_int_equal(rank[3030], UINT32_MAX); /* the message itself */
        assert_true(log.n_plans == 1 && log.promoted > 0);
        kv_session_free(s);
    }
}

static void test_repair__says_how_many_evicted_rows_were_asked_for_more(void **state)
{
    fake_model m = {0};
    static uint32_t rank[KIT_CTX];
    bool taken[KIT_CTX] = {false};
    uint32_t n_evicted = 0, before[KIT_CTX];
    const uint32_t query = 3020 + 7;
    kv_session *s = with_needle(&m, NULL, NULL, 1000);
    kv_session_active_lanes(s, before);
    assert_int_equal(kv_session_repair(s, &(kv_ask){3020, 3040, &query, 1, .rank = rank}, NULL, NULL), 0);
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

static void test_pages__the_one_whose_largest_keys_answer_comes_first(void **state)
{
    fake_model m = {.lanes_differ = true};
    uint64_t bits[KIT_CTX / 64 + 1] = {0};
    uint32_t lanes[KIT_CTX];
    const uint32_t query = 3020 + 7;
    kv_signal signal = {0};
    kv_session *s = with_needle(&m, NULL, NULL, 1000);
    assert_int_equal(kv_session_signal(s, &(kv_ask){3020, 3040, &query, 1}, 64, &signal, NULL), 0);
    assert_int_equal(kv_session_pages(s, 3020, &signal, 1, 1, bits, NULL), 0);
    for (uint32_t t = 0; t < 3020; t++) assert_int_equal(kv_bits_get(bits, t), t == 425);
    kv_bits_clear_range(bits, 0, 3020);
    assert_int_equal(kv_session_pages(s, 3020, &signal, 16, 100, bits, NULL), 0);
    assert_int_equal(kv_bits_count(bits, KIT_CTX / 64), 100);
    kv_session_active_lanes(s, lanes);
    for (uint32_t t = 0; t < 3020; t++) assert_true(!kv_bits_get(bits, t) || lanes[t] < FAKE_LANES);
    kv_signal_fini(&signal);
    kv_session_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_repair__brings_the_asked_line_back_within_the_budget),
        cmocka_unit_test(test_repair__focuses_on_what_answers_clearly),
        cmocka_unit_test(test_repair__says_which_line_to_quote),
        cmocka_unit_test(test_repair__quotes_no_line_that_is_in_view_or_unclear),
        cmocka_unit_test(test_repair__quotes_what_a_name_asks_for_in_an_unclear_request),
        cmocka_unit_test(test_repair__brings_a_line_for_each_name),
        cmocka_unit_test(test_repair__computes_a_message_again),
        cmocka_unit_test(test_repair__what_came_back_stays_for_the_turn),
        cmocka_unit_test(test_repair__swaps_when_lanes_are_full),
        cmocka_unit_test(test_repair__computes_queries_that_were_not_kept),
        cmocka_unit_test(test_repair__the_papers_form_takes_bursts),
        cmocka_unit_test(test_repair__does_nothing_when_off_or_when_nothing_is_missing),
        cmocka_unit_test(test_repair__stale_text_does_not_come_back),
        cmocka_unit_test(test_repair__looks_only_at_the_evicted_rows_it_is_given),
        cmocka_unit_test(test_repair__says_how_many_evicted_rows_were_asked_for_more),
        cmocka_unit_test(test_pages__the_one_whose_largest_keys_answer_comes_first),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
