/*
 * Structure's part in what stays: scores, budgets and choices of CodeComp, excerpts computed by themselves,
 * the structure score.
 */
#include <math.h>
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
#include "kv/policy/policy.h"
#include "kv/policy/structure.h"

enum { CTX = 4096 };

static kv_parameters parameters_of(const char *const *set)
{
    kv_parameters p;
    base_err err = {0};
    if (kv_parameters_parse(&kv_policy_find("codecomp", NULL)->defaults, set, &p, &err))
        fail_msg("%s", err.msg);
    return p;
}

static kv_session *open_session(fake_model *m, const kv_options *o)
{
    return kit_open_as(m, CTX, o);
}

static void append(kv_session *s, kv_segment g, const int32_t *ids, uint32_t n, float *logits)
{
    base_err err = {0};
    if (kv_session_append(s, &g, ids, n, logits, NULL, &err)) fail_msg("%s", err.msg);
}

static void test_structure__protected_spans_come_first_then_cores_then_extents(void **state)
{
    const kv_parameters p = parameters_of(NULL),
                        no_call = parameters_of((const char *const[]){"call=0", NULL}),
                        flat = parameters_of((const char *const[]){"protect=0", "cores=0", NULL});
    const kv_span signature = {.reason = KV_REASON_SIGNATURE, .marks = KV_MARK_SIGNATURE},
                  core = {.reason = KV_REASON_CALL, .marks = KV_MARK_CALL | KV_MARK_CORE},
                  extent = {.reason = KV_REASON_ASSIGN,
                      .marks = KV_MARK_ASSIGN | KV_MARK_CALL | KV_MARK_DEFUSE},
                  named = {.reason = KV_REASON_RETURN, .marks = KV_MARK_RETURN | KV_MARK_SYMBOL};
    assert_true(kv_span_score(&p, &named, false) > kv_span_score(&p, &core, true));
    assert_true(kv_span_score(&p, &signature, false) > kv_span_score(&p, &core, true));
    assert_true(kv_span_score(&p, &core, false) > kv_span_score(&p, &extent, true));
    assert_true(kv_span_score(&p, &extent, true) > kv_span_score(&p, &extent, false));
    assert_true(kv_span_score(&no_call, &extent, false) < kv_span_score(&p, &extent, false));
    assert_true(kv_span_score(&flat, &extent, false) > kv_span_score(&flat, &core, false));
    assert_int_equal(kv_span_reason(&p, &named), KV_REASON_SYMBOL);
    assert_int_equal(kv_span_reason(&flat, &named), KV_REASON_RETURN);
    assert_int_equal(kv_span_reason(&p, &signature), KV_REASON_SIGNATURE);
}

static void test_structure__budgets_use_every_row_and_follow_structure(void **state)
{
    uint64_t seed = test_seed("structure budgets", 7);
    const kv_parameters p = parameters_of(NULL), even = parameters_of((const char *const[]){"alloc=0", NULL});
    for (int round = 0; round < 200; round++) {
        double sigma[12];
        uint32_t n_rows[12], budget[12], sum = 0, all = 0;
        const uint32_t n = 1 + test_below(&seed, 12);
        for (uint32_t i = 0; i < n; i++) {
            sigma[i] = test_below(&seed, 8) ? test_below(&seed, 1000) / 1000.0 : NAN;
            all += n_rows[i] = test_below(&seed, 900);
        }
        const uint32_t rows = test_below(&seed, all + 1);
        kv_chunk_budgets(&p, sigma, n_rows, n, rows, budget);
        for (uint32_t i = 0; i < n; i++) {
            assert_true(budget[i] <= n_rows[i]);
            sum += budget[i];
        }
        assert_int_equal(sum, rows);
        kv_chunk_budgets(&even, sigma, n_rows, n, rows, budget);
        for (uint32_t i = 0; i < n; i++) /* in proportion, but for what the floors leave */
            assert_true(!(fabs(budget[i] - (double)rows * n_rows[i] / (all ? all : 1)) > 13));
    }
    const double sigma[] = {.1, .9};
    const uint32_t n_rows[] = {500, 500};
    uint32_t budget[2];
    kv_chunk_budgets(&p, sigma, n_rows, 2, 400, budget);
    assert_int_equal(budget[0], 100); /* m is .5 and 1.5 */
    assert_int_equal(budget[1], 300);
}

static void test_structure__a_chunk_is_scored_by_what_512_of_its_tokens_hold(void **state)
{
    const kv_parameters p = parameters_of(NULL);
    const kv_chunk_counts none = {.n_tokens = 512},
                          some = {.n_tokens = 512, .n_calls = 8, .n_controls = 3, .n_assigns = 6},
                          same = {.n_tokens = 1024, .n_calls = 16, .n_controls = 6, .n_assigns = 12},
                          full = {512, 1000, 1000, 1000, 1000, 1000, 1000};
    assert_true(kv_chunk_score(&p, &none) == 0);
    assert_true(!(fabs(kv_chunk_score(&p, &some) - kv_chunk_score(&p, &same)) > 1e-12));
    assert_true(!(fabs(kv_chunk_score(&p, &full) - 1) > 1e-12));
    /*
     * Equation 4 by hand: call .20 log(9)/log(25), control .18 log(4)/log(15), assign .14 log(7)/log(21),
     * over .86.
     */
    const double by_hand = (.20 * log(9) / log(25) + .18 * log(4) / log(15) + .14 * log(7) / log(21)) / .86;
    assert_true(!(fabs(kv_chunk_score(&p, &some) - by_hand) > 1e-12));
}

static uint32_t count(const uint8_t *chosen, uint32_t from, uint32_t to)
{
    uint32_t n = 0;
    for (uint32_t i = from; i < to; i++) n += chosen[i];
    return n;
}

static void test_structure__inside_a_chunk_spans_have_their_share_and_mass_the_rest(void **state)
{
    enum { N = 100 };
    float mass[N];
    uint8_t chosen[N], why[N];
    for (uint32_t i = 0; i < N; i++) mass[i] = i >= 90 ? 5 : (float)i / N;
    const kv_parameters p = parameters_of(NULL), none = parameters_of((const char *const[]){"span=0", NULL}),
                        nearest = parameters_of((const char *const[]){"fill=nearest", NULL});
    const kv_chunk_span spans[] = {
        {.from = 10, .to = 14, .score = 3, .is_protected = true, .reason = KV_REASON_SIGNATURE},
        {.from = 20, .to = 30, .score = 2, .reason = KV_REASON_CALL},
        {.from = 40, .to = 60, .score = 1, .reason = KV_REASON_ASSIGN},
        {.from = 60, .to = 62, .score = .5f, .reason = KV_REASON_RETURN}};
    kv_chunk_span copy[4];
    memcpy(copy, spans, sizeof spans);
    assert_int_equal(kv_chunk_choose(&p, copy, 4, mass, N, 40, chosen, why), 0);
    assert_int_equal(count(chosen, 0, N), 40);
    assert_int_equal(count(chosen, 10, 14), 4);
    assert_int_equal(count(chosen, 20, 30), 10);
    assert_int_equal(
        count(chosen, 60, 62), 2); /* the whole assignment does not fit into 20 rows, this does */
    assert_int_equal(count(chosen, 90, 100), 10);
    assert_int_equal(why[25], KV_REASON_CALL);
    assert_int_equal(why[95], KV_NO_SPAN);
    assert_int_equal(kv_chunk_choose(&none, copy, 4, mass, N, 10, chosen, why), 0);
    assert_int_equal(count(chosen, 90, 100), 10);
    memcpy(copy, spans, sizeof spans);
    assert_int_equal(kv_chunk_choose(&nearest, copy, 4, mass, N, 40, chosen, why), 0);
    assert_int_equal(count(chosen, 0, N), 40);
    assert_int_equal(chosen[9] + chosen[14] + chosen[19] + chosen[30], 4);
    assert_int_equal(count(chosen, 90, 100), 0);
    /* What is protected outgrows the chunk: its first rows stay. */
    kv_chunk_span wide = {.from = 30, .to = 90, .score = 9, .is_protected = true, .reason = KV_REASON_SYMBOL};
    assert_int_equal(kv_chunk_choose(&p, &wide, 1, mass, N, 25, chosen, why), 0);
    assert_int_equal(count(chosen, 30, 55), 25);
    assert_int_equal(count(chosen, 0, N), 25);
}

static int compare(const void *a, const void *b)
{
    const float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

static void test_structure__spans_of_neighbouring_lines_are_one(void **state)
{
    const uint32_t lines[] = {0, 20, 40, 60, 80, 100};
    kv_span spans[] = {{.from = 65, .to = 70, .marks = KV_MARK_RETURN},
        {.from = 2, .to = 8, .marks = KV_MARK_CALL},
        {.from = 3, .to = 5, .marks = KV_MARK_CALL | KV_MARK_CORE},
        {.from = 22, .to = 39, .marks = KV_MARK_ASSIGN}};
    kv_span apart[4], at_the_end[] = {{.from = 118, .to = 119, .marks = KV_MARK_CALL}};
    memcpy(apart, spans, sizeof spans);
    /* Lines 1 and 2 touch, line 4 is two further. */
    assert_int_equal(kv_spans_merge(spans, 4, lines, 6, 1, 0, 120), 2);
    assert_int_equal(spans[0].from, 2);
    assert_int_equal(spans[0].to, 39);
    assert_int_equal(spans[0].marks, KV_MARK_CALL | KV_MARK_ASSIGN);
    assert_int_equal(spans[1].marks, KV_MARK_RETURN);
    assert_int_equal(spans[1].to - spans[1].from, 16);
    assert_true(spans[1].from <= 65 && spans[1].to >= 70);
    assert_int_equal(kv_spans_merge(apart, 4, lines, 6, 2, 0, 120), 1);
    assert_int_equal(apart[0].to, 70);
    assert_int_equal(kv_spans_merge(at_the_end, 1, lines, 6, 1, 0, 120), 1);
    assert_int_equal(at_the_end[0].to, 120);
    assert_int_equal(kv_spans_merge(at_the_end, 0, NULL, 0, 1, 0, 120), 0);
}

static void test_structure__the_median_is_that_of_the_sorted_numbers(void **state)
{
    uint64_t seed = test_seed("structure median", 11);
    float x[64], scratch[64];
    assert_true(isnan(kv_median(x, 0, scratch)));
    for (int round = 0; round < 500; round++) {
        const uint32_t n = 1 + test_below(&seed, 64), values = 1 + test_below(&seed, 40);
        for (uint32_t i = 0; i < n; i++) x[i] = (float)test_below(&seed, values);
        const float median = kv_median(x, n, scratch);
        qsort(x, n, sizeof *x, compare);
        assert_true(median == x[(n - 1) / 2]);
    }
}

static void test_structure__an_excerpt_reads_what_stands_before_all_of_them_and_itself(void **state)
{
    int32_t ids[900];
    kit_make_ids(ids, 900, FAKE_VOCAB, 5);
    fake_model m = {0};
    static float with[FAKE_VOCAB], without[FAKE_VOCAB], question[FAKE_VOCAB], other[FAKE_VOCAB];
    const kv_segment prompt = {.origin = KV_ORIGIN_SYSTEM},
                     excerpt = {.origin = KV_ORIGIN_CONTEXT, .turn = 1},
                     request = {.origin = KV_ORIGIN_USER, .turn = 1};
    kv_session *two = open_session(&m, &(kv_options){.policy = "codecomp"}),
               *one = open_session(&m, &(kv_options){.policy = "codecomp"});
    append(two, prompt, ids, 40, NULL);
    append(two, excerpt, ids + 40, 300, NULL);
    append(two, excerpt, ids + 340, 600 - 340, with);
    append(one, prompt, ids, 40, NULL);
    append(one, excerpt, ids + 340, 600 - 340, without);
    assert_memory_equal(with, without, sizeof with);
    /* Both begin at the same phase; the request stands behind the longer one and reads both. */
    assert_int_equal(two->phases[40], 40);
    assert_int_equal(two->phases[340], 40);
    append(two, request, ids + 600, 20, question);
    append(one, request, ids + 600, 20, other);
    assert_int_equal(two->phases[600], 340);
    assert_int_equal(one->phases[300], 300);
    assert_memory_not_equal(question, other, sizeof question);
    assert_int_equal(two->lists.view[0].n_rows, 620);
    kv_session_free(one);
    kv_session_free(two);
}

static void test_structure__a_probe_leaves_the_sequence_as_it_was(void **state)
{
    int32_t ids[500];
    kit_make_ids(ids, 500, FAKE_VOCAB, 6);
    fake_model m = {0};
    static float before[FAKE_VOCAB], after[FAKE_VOCAB];
    kv_session *s = open_session(&m, &(kv_options){.policy = "codecomp"});
    append(s, (kv_segment){.origin = KV_ORIGIN_SYSTEM}, ids, 30, NULL);
    append(s, (kv_segment){.origin = KV_ORIGIN_CONTEXT}, ids + 30, 200, NULL);
    append(s, (kv_segment){.origin = KV_ORIGIN_CONTEXT}, ids + 230, 100, before);
    kv_stats stats, now;
    double surprise = -1, other = -1;
    kv_session_get_stats(s, &stats);
    assert_int_equal(kv_session_probe(s, 30, ids + 330, 150, &surprise, NULL), 0);
    assert_int_equal(kv_session_probe(s, 230, ids + 330, 150, &other, NULL), 0);
    kv_session_get_stats(s, &now);
    assert_int_equal(now.n_tokens, stats.n_tokens);
    assert_int_equal(now.epoch, stats.epoch);
    assert_true(surprise > 0 && isfinite(surprise) && surprise != other);
    assert_int_equal(kv_session_logits(s, after, NULL, NULL), 0);
    assert_memory_equal(before, after, sizeof before);
    double sum = 0; /* 128 queries; what they give the prompt's rows is not the excerpt's */
    const kv_stored_segment *part = &s->segments[1];
    for (uint32_t i = 0; i < part->n_mass; i++) sum += part->mass[i];
    assert_int_equal(part->n_mass, 200);
    assert_true(sum > 0 && !(sum > 128.01));
    assert_int_equal(kv_session_probe(s, 31, ids, 10, NULL, NULL), BASE_E_USAGE);
    kv_session_free(s);
}

static void test_structure__codecomp_keeps_protected_spans_at_equal_rows(void **state)
{
    int32_t ids[2000];
    kit_make_ids(ids, 2000, FAKE_VOCAB, 8);
    kv_span spans[40];
    for (uint32_t i = 0; i < 40; i++)
        spans[i] = (kv_span){.from = 10 + i * 12,
            .to = 14 + i * 12,
            .reason = i % 10 ? KV_REASON_CALL : KV_REASON_SIGNATURE,
            .marks = (uint16_t)((i % 10 ? KV_MARK_CALL : KV_MARK_SIGNATURE) | KV_MARK_CORE),
            .n_flow = 1};
    fake_model m = {.lanes_differ = true};
    kv_session *s = open_session(&m, &(kv_options){.policy = "full"});
    append(s, (kv_segment){.origin = KV_ORIGIN_SYSTEM}, ids, 100, NULL);
    for (uint32_t i = 0; i < 3; i++)
        append(s,
            (kv_segment){.origin = KV_ORIGIN_CONTEXT, .turn = 1, .spans = spans, .n_spans = i == 1 ? 10 : 40},
            ids + 100 + i * 500, 500, NULL);
    append(s, (kv_segment){.origin = KV_ORIGIN_USER, .turn = 1}, ids + 1600, 40, NULL);
    const char *const set[] = {"low=1", "local=0", NULL};
    assert_int_equal(kv_session_set_policy(s,
                         &(kv_options){.policy = "codecomp", .budget = 740, .set = set, .bare = true}, NULL),
        0);
    assert_int_equal(kv_session_evict(s, NULL), 0);
    kv_stats stats;
    kv_session_get_stats(s, &stats);
    assert_int_equal(stats.active_min, 740);
    assert_int_equal(stats.active_max, 740);
    uint32_t lanes[2000];
    kv_session_active_lanes(s, lanes);
    for (uint32_t t = 110; t < 114; t++) assert_int_equal(lanes[t], FAKE_LANES); /* a signature */
    for (uint32_t t = 0; t < 100; t++) assert_int_equal(lanes[t], FAKE_LANES);
    uint32_t sums[3] = {0};
    for (uint32_t t = 100; t < 1600; t++) sums[(t - 100) / 500] += lanes[t];
    assert_true(sums[0] > sums[1] && sums[2] > sums[1]); /* less structure, fewer rows */
    kv_structure score;
    kv_session_structure(s, true, &score);
    assert_int_equal(score.n_segments, 3);
    assert_int_equal(score.n_tokens, 4 * 90);
    assert_true(score.share > score.chance && !(score.share > score.ceiling + 1e-9));
    assert_true(score.of[4] == 1); /* signatures */
    kv_session_free(s);
}

static void test_structure__everything_kept_is_a_score_of_one(void **state)
{
    int32_t ids[300];
    kit_make_ids(ids, 300, FAKE_VOCAB, 9);
    const kv_span spans[] = {
        {.from = 5, .to = 9, .reason = KV_REASON_CALL, .marks = KV_MARK_CALL | KV_MARK_CORE},
        {.from = 5, .to = 25, .reason = KV_REASON_CALL, .marks = KV_MARK_CALL},
        {.from = 100, .to = 200, .reason = KV_REASON_SYMBOL, .marks = KV_MARK_SYMBOL}};
    fake_model m = {0};
    kv_structure score;
    kv_session *s = open_session(&m, &(kv_options){.policy = "full"});
    kv_session_structure(s, false, &score);
    assert_true(isnan(score.share) && !score.n_tokens);
    append(
        s, (kv_segment){.origin = KV_ORIGIN_TOOL, .turn = 1, .spans = spans, .n_spans = 3}, ids, 300, NULL);
    kv_session_structure(s, false, &score);
    assert_int_equal(score.n_tokens, 20); /* a definition that the request names is no anchor */
    assert_true(score.share == 1 && score.ceiling == 1 && score.chance == 1 && score.of[0] == 1);
    kv_session_structure(s, true, &score);
    assert_int_equal(score.n_tokens, 4);
    kv_session_free(s);
}

static void test_structure__a_segment_may_get_other_spans(void **state)
{
    int32_t ids[100];
    kit_make_ids(ids, 100, FAKE_VOCAB, 8);
    fake_model m = {0};
    kv_session *s = open_session(&m, &(kv_options){.policy = "codecomp"});
    const kv_span first = {.from = 10, .to = 20, .reason = KV_REASON_CALL, .marks = KV_MARK_CALL},
                  other[] = {{.from = 0, .to = 5, .reason = KV_REASON_CALL, .marks = KV_MARK_CALL},
                      {.from = 60, .to = 80, .reason = KV_REASON_RETURN, .marks = KV_MARK_RETURN}},
                  beyond = {.from = 60, .to = 81, .reason = KV_REASON_CALL, .marks = KV_MARK_CALL};
    append(s, (kv_segment){.origin = KV_ORIGIN_SYSTEM}, ids, 20, NULL);
    append(s, (kv_segment){.origin = KV_ORIGIN_TOOL, .turn = 1, .spans = &first, .n_spans = 1}, ids + 20, 80,
        NULL);
    kv_structure score;
    kv_session_structure(s, false, &score);
    assert_int_equal(score.n_tokens, 10);
    assert_int_equal(kv_session_set_spans(s, 20, other, 2, NULL), 0);
    kv_session_structure(s, false, &score);
    assert_int_equal(score.n_tokens, 25);
    assert_int_equal(kv_session_set_spans(s, 21, other, 2, NULL), BASE_E_USAGE);
    assert_int_equal(kv_session_set_spans(s, 20, &beyond, 1, NULL), BASE_E_USAGE);
    assert_int_equal(kv_session_set_spans(s, 20, NULL, 0, NULL), 0);
    kv_session_structure(s, false, &score);
    assert_int_equal(score.n_tokens, 0);
    kv_session_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_structure__protected_spans_come_first_then_cores_then_extents),
        cmocka_unit_test(test_structure__budgets_use_every_row_and_follow_structure),
        cmocka_unit_test(test_structure__a_chunk_is_scored_by_what_512_of_its_tokens_hold),
        cmocka_unit_test(test_structure__inside_a_chunk_spans_have_their_share_and_mass_the_rest),
        cmocka_unit_test(test_structure__spans_of_neighbouring_lines_are_one),
        cmocka_unit_test(test_structure__the_median_is_that_of_the_sorted_numbers),
        cmocka_unit_test(test_structure__an_excerpt_reads_what_stands_before_all_of_them_and_itself),
        cmocka_unit_test(test_structure__a_probe_leaves_the_sequence_as_it_was),
        cmocka_unit_test(test_structure__codecomp_keeps_protected_spans_at_equal_rows),
        cmocka_unit_test(test_structure__everything_kept_is_a_score_of_one),
        cmocka_unit_test(test_structure__a_segment_may_get_other_spans),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
