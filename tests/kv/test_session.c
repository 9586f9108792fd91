/*
 * What must always hold of a session (docs/kv.md, "What always holds"), over a model without weights whose
 * rows tell what they read: directed cases first, then generated sequences of operations. KVIST_SEED repeats
 * a failed one.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/hash.h"
#include "kit.h"
#include "kv/lab/lab.h"

enum { CTX = 3000 };

static void test_session__batches_give_the_bits_of_single_tokens(void **state)
{
    static const uint32_t steps[] = {1, 7, 512, 700};
    int32_t ids[700];
    float first[FAKE_VOCAB], logits[FAKE_VOCAB];
    kit_make_ids(ids, 700, FAKE_VOCAB, 1);
    for (size_t k = 0; k < sizeof steps / sizeof *steps; k++) {
        fake_model m = {0};
        kv_session *s = kit_open_session(&m, CTX, 0, NULL, NULL);
        for (uint32_t i = 0; i < 700; i += steps[k])
            kit_append(
                s, KV_ORIGIN_ANSWER, 1, ids + i, 700 - i < steps[k] ? 700 - i : steps[k], k ? logits : first);
        if (k) kit_assert_same_logits(first, logits);
        kv_session_free(s);
    }
}

static void test_session__evict_all_then_promote_all_changes_no_bit(void **state)
{
    int32_t ids[900];
    float want[FAKE_VOCAB], got[FAKE_VOCAB], holed[FAKE_VOCAB];
    kit_make_ids(ids, 900, FAKE_VOCAB, 2);
    fake_model m = {0};
    kv_session *a = kit_open_session(&m, CTX, 0, NULL, NULL), *b = kit_open_session(&m, CTX, 0, NULL, NULL),
               *c = kit_open_session(&m, CTX, 0, NULL, NULL);
    kit_append(a, KV_ORIGIN_TOOL, 1, ids, 600, NULL);
    kit_append(b, KV_ORIGIN_TOOL, 1, ids, 600, NULL);
    kit_append(c, KV_ORIGIN_TOOL, 1, ids, 600, NULL);
    assert_int_equal(kv_session_manual(b, KV_MANUAL_EVICT, 0, 600, NULL), 0);
    kv_stats stats;
    kv_session_get_stats(b, &stats);
    assert_int_equal(stats.active, 0);
    assert_int_equal(stats.host, 600);
    assert_int_equal(kv_session_manual(b, KV_MANUAL_PROMOTE, 0, 600, NULL), 0);
    assert_int_equal(kv_session_manual(c, KV_MANUAL_EVICT, 100, 200, NULL), 0);
    kit_append(a, KV_ORIGIN_TOOL, 1, ids + 600, 300, want);
    kit_append(b, KV_ORIGIN_TOOL, 1, ids + 600, 300, got);
    kit_append(c, KV_ORIGIN_TOOL, 1, ids + 600, 300, holed);
    kit_assert_same_logits(want, got);
    assert_memory_not_equal(want, holed, sizeof want); /* the fake model does see holes */
    kv_session_free(a);
    kv_session_free(b);
    kv_session_free(c);
}

static void test_session__a_budget_above_n_gives_the_bits_of_full(void **state)
{
    uint32_t n_policies = 0;
    const kv_policy_info *policies = kv_policy_list(&n_policies);
    assert_true(n_policies >= 5);
    int32_t ids[1500];
    float want[FAKE_VOCAB], got[FAKE_VOCAB];
    kit_make_ids(ids, 1500, FAKE_VOCAB, 3);
    for (uint32_t p = 0; p < n_policies; p++) {
        fake_model m = {0};
        kv_session *full = kit_open_session(&m, CTX, 0, "full", NULL),
                   *s = kit_open_session(&m, CTX, 1500, policies[p].name, NULL);
        for (int k = 0; k < 3; k++) {
            const kv_origin origin = k == 1 ? KV_ORIGIN_TOOL : KV_ORIGIN_USER;
            kit_append(full, origin, 1, ids + k * 500, 500, want);
            kit_append(s, origin, 1, ids + k * 500, 500, got);
            assert_int_equal(
                kv_session_repair(s, &(kv_ask){(uint32_t)k * 500, (uint32_t)k * 500 + 500}, NULL, NULL), 0);
            kit_assert_same_logits(want, got);
        }
        assert_int_equal(kv_session_schedule_hash(s), kv_session_schedule_hash(full));
        kv_session_free(full);
        kv_session_free(s);
    }
}

static uint32_t most_active(const kv_session *s)
{
    kv_stats stats;
    kv_session_get_stats(s, &stats);
    return stats.active_max;
}

/* Up to `until` all rows stay, with the bits of `full`; the first pass goes down to the budget for good. */
static void test_session__nothing_leaves_before_until(void **state)
{
    int32_t ids[2400];
    float want[FAKE_VOCAB], got[FAKE_VOCAB];
    kit_make_ids(ids, 2400, FAKE_VOCAB, 11);
    fake_model m = {0};
    kit_seen seen = {0};
    kv_session *s = kit_open(&m, &(kv_options){.budget = 700, .until = 1500, .repair = 0}, &seen),
               *full = kit_open_session(&m, KIT_CTX, 0, "full", NULL), *fork = NULL;
    kit_append(s, KV_ORIGIN_TOOL, 1, ids, 1000, NULL);
    kit_append(full, KV_ORIGIN_TOOL, 1, ids, 1000, NULL);
    kit_append(s, KV_ORIGIN_TOOL, 1, ids + 1000, 500, got);
    kit_append(full, KV_ORIGIN_TOOL, 1, ids + 1000, 500, want);
    kit_assert_same_logits(want, got);
    assert_int_equal(seen.n_plans, 0);
    assert_int_equal(most_active(s), 1500);
    assert_true(kv_session_schedule_hash(s) == kv_session_schedule_hash(full));
    assert_int_equal(kv_session_fork(s, &fork, NULL, NULL), 0);
    kit_append(s, KV_ORIGIN_TOOL, 1, ids + 1500, 20, NULL);
    kit_append(fork, KV_ORIGIN_TOOL, 1, ids + 1500, 20, NULL);
    assert_int_equal(seen.n_plans, 1);
    assert_true(most_active(s) <= 700);
    assert_true(kv_session_schedule_hash(fork) == kv_session_schedule_hash(s));
    kit_append(s, KV_ORIGIN_TOOL, 1, ids + 1520, 600, NULL);
    assert_true(most_active(s) <= 700);
    /* Everything back: nobody is out, and the rows may stay again. */
    while (!kv_session_undo_plan(s, NULL)) {
    }
    assert_int_equal(kv_session_set_budget(s, (kv_limit){.rows = 700, .until = 2200}, NULL), 0);
    assert_int_equal(most_active(s), 2120);
    /* A budget by itself has no grace. */
    assert_int_equal(kv_session_set_budget(s, (kv_limit){.rows = 700}, NULL), 0);
    assert_true(most_active(s) <= 700);
    kv_session_free(fork);
    kv_session_free(full);
    kv_session_free(s);
}

/* Excerpts wait for their question, a result for its end; only half of the context bounds them. */
static void test_session__a_message_is_whole_until_its_question_is_complete(void **state)
{
    int32_t ids[3000];
    float want[FAKE_VOCAB], got[FAKE_VOCAB];
    kit_make_ids(ids, 3000, FAKE_VOCAB, 9);
    fake_model m = {0};
    kit_seen seen = {0};
    const kv_options o = {.budget = 700, .repair = -1};
    kv_session *s = kit_open(&m, &o, &seen), *full = kit_open_session(&m, KIT_CTX, 0, "full", NULL);
    kit_append(s, KV_ORIGIN_CONTEXT, 1, ids, 1200, NULL);
    kit_append(s, KV_ORIGIN_SCAFFOLD, 1, ids + 1200, 4, NULL);
    kit_append(s, KV_ORIGIN_CONTEXT, 1, ids + 1204, 300, NULL);
    assert_int_equal(seen.n_plans, 0);
    assert_int_equal(most_active(s), 1504);
    kv_session *fork = NULL; /* what waits needs nothing that a fork has not */
    assert_int_equal(kv_session_fork(s, &fork, NULL, NULL), 0);
    kit_append(s, KV_ORIGIN_USER, 1, ids + 1504, 20, NULL);
    assert_int_equal(seen.n_plans, 1);
    assert_true(most_active(s) <= 700);
    kit_append(fork, KV_ORIGIN_USER, 1, ids + 1504, 20, NULL);
    assert_true(kv_session_schedule_hash(fork) == kv_session_schedule_hash(s));
    kv_session_free(fork);
    kv_session_free(s);

    /* All that follows a message reads all of it: these are the bits of a cache without a budget. */
    seen = (kit_seen){0};
    s = kit_open(&m, &o, &seen);
    kit_append(s, KV_ORIGIN_TOOL, 1, ids, 1500, want);
    kit_append(full, KV_ORIGIN_TOOL, 1, ids, 1500, got);
    kit_assert_same_logits(want, got);
    assert_int_equal(seen.n_plans, 1);
    assert_true(most_active(s) <= 700);

    /* Beyond half of the context the rows of one message have to share that. */
    kit_append(s, KV_ORIGIN_CONTEXT, 1, ids, 3000, NULL);
    assert_true(seen.n_plans > 1);
    assert_true(most_active(s) > 700 && most_active(s) <= KIT_CTX / 2);
    kv_session_free(s);

    /* Somebody goes on behind it at once. */
    s = kit_open(&m, &o, NULL);
    kit_append(s, KV_ORIGIN_CONTEXT, 1, ids, 1200, got);
    assert_true(most_active(s) <= 700);
    kv_session_free(s);

    static const char *const set[] = {"message=0", NULL}; /* as papers have it */
    const kv_options batch = {.budget = 700, .repair = -1, .set = set};
    s = kit_open(&m, &batch, NULL);
    kit_append(s, KV_ORIGIN_CONTEXT, 1, ids, 1200, NULL);
    assert_true(most_active(s) <= 700);
    kv_session_free(s);
    kv_session_free(full);
}

static void test_session__a_cancelled_append_keeps_whole_batches_only(void **state)
{
    int32_t ids[1200];
    float want[FAKE_VOCAB], got[FAKE_VOCAB];
    kit_make_ids(ids, 1200, FAKE_VOCAB, 4);
    fake_model m = {0};
    kv_session *a = kit_open_session(&m, CTX, 0, NULL, NULL), *b = kit_open_session(&m, CTX, 0, NULL, NULL);
    kit_append(a, KV_ORIGIN_TOOL, 1, ids, 1200, want);
    const kv_segment g = {.origin = KV_ORIGIN_TOOL, .turn = 1};
    kv_stats stats;
    m.fail_after = 0;
    assert_int_equal(kv_session_append(b, &g, ids, 1200, got, NULL, NULL), BASE_E_CANCELLED);
    kv_session_get_stats(b, &stats);
    assert_int_equal(stats.n_tokens, 0);
    m.fail_after = 1;
    assert_int_equal(kv_session_append(b, &g, ids, 1200, got, NULL, NULL), BASE_E_CANCELLED);
    kv_session_get_stats(b, &stats);
    assert_int_equal(stats.n_tokens, 512);
    assert_int_equal(stats.active_max, 512);
    kit_append(b, KV_ORIGIN_TOOL, 1, ids + 512, 1200 - 512, got);
    kit_assert_same_logits(want, got);
    kv_session_free(a);
    kv_session_free(b);
}

static void test_session__truncate_then_append_is_as_if_never_appended(void **state)
{
    int32_t ids[800], other[400];
    float want[FAKE_VOCAB], got[FAKE_VOCAB];
    kit_make_ids(ids, 800, FAKE_VOCAB, 5);
    kit_make_ids(other, 400, FAKE_VOCAB, 6);
    fake_model m = {0};
    kv_session *a = kit_open_session(&m, CTX, 0, NULL, NULL), *b = kit_open_session(&m, CTX, 0, NULL, NULL);
    kit_append(a, KV_ORIGIN_TOOL, 1, ids, 300, NULL);
    kit_append(a, KV_ORIGIN_TOOL, 1, other, 400, want);
    kit_append(b, KV_ORIGIN_TOOL, 1, ids, 800, NULL);
    assert_int_equal(kv_session_truncate(b, 300, NULL), 0);
    kit_append(b, KV_ORIGIN_TOOL, 1, other, 400, got);
    kit_assert_same_logits(want, got);
    assert_int_equal(kv_session_truncate(b, 701, NULL), BASE_E_USAGE);
    kv_session_free(a);
    kv_session_free(b);
}

static void test_session__a_fork_shares_rows_and_nothing_else(void **state)
{
    int32_t ids[600], other[200];
    float want[FAKE_VOCAB], got[FAKE_VOCAB], mine[FAKE_VOCAB];
    kit_make_ids(ids, 600, FAKE_VOCAB, 7);
    kit_make_ids(other, 200, FAKE_VOCAB, 8);
    fake_model m = {0};
    kv_session *a = kit_open_session(&m, CTX, 0, NULL, NULL), *b = kit_open_session(&m, CTX, 0, NULL, NULL),
               *f = NULL;
    kit_append(a, KV_ORIGIN_TOOL, 1, ids, 300, NULL); /* ends inside a block */
    kit_append(b, KV_ORIGIN_TOOL, 1, ids, 600, want);
    assert_int_equal(kv_session_fork(a, &f, NULL, NULL), 0);
    const uint64_t before = m.n_forward;
    kit_append(f, KV_ORIGIN_TOOL, 1, other, 200, mine);
    assert_int_equal(m.n_forward - before, 200);
    assert_int_equal(kv_session_manual(f, KV_MANUAL_EVICT, 0, 100, NULL), 0);
    kit_append(a, KV_ORIGIN_TOOL, 1, ids + 300, 300, got);
    kit_assert_same_logits(want, got);
    kv_session_free(a);
    float again[FAKE_VOCAB];
    assert_int_equal(kv_session_undo_plan(f, NULL), 0);
    assert_int_equal(kv_session_logits(f, again, NULL, NULL), 0);
    kit_assert_same_logits(mine, again);
    kv_session_free(b);
    kv_session_free(f);
}

static void test_session__logits_can_be_computed_again(void **state)
{
    int32_t ids[513];
    float want[FAKE_VOCAB], got[FAKE_VOCAB];
    kit_make_ids(ids, 513, FAKE_VOCAB, 9);
    for (uint32_t n = 1; n <= 513; n += 256) {
        fake_model m = {0};
        kv_session *a = kit_open_session(&m, CTX, 0, NULL, NULL),
                   *b = kit_open_session(&m, CTX, 0, NULL, NULL);
        assert_int_equal(kv_session_logits(a, got, NULL, NULL), BASE_E_STATE);
        kit_append(a, KV_ORIGIN_TOOL, 1, ids, n, want);
        kit_append(b, KV_ORIGIN_TOOL, 1, ids, n, NULL);
        assert_int_equal(kv_session_logits(b, got, NULL, NULL), 0);
        kit_assert_same_logits(want, got);
        uint32_t n_after = 0;
        kv_session_ids(b, &n_after);
        assert_int_equal(n_after, n);
        kv_session_free(a);
        kv_session_free(b);
    }
}

static void test_session__refuses_what_does_not_fit(void **state)
{
    int32_t ids[CTX + 1];
    kit_make_ids(ids, CTX + 1, FAKE_VOCAB, 10);
    fake_model m = {0};
    const kv_compute c = fake_compute(&m, CTX);
    kv_session *s = NULL;
    base_err err = {0};
    assert_int_equal(kv_session_new_over(&s, &c, &(kv_options){.budget = 100}, NULL, &err), BASE_E_LIMIT);
    assert_non_null(strstr(err.msg, "at least 548"));
    assert_int_equal(
        kv_session_new_over(&s, &c, &(kv_options){.policy = "nonsense"}, NULL, &err), BASE_E_USAGE);
    assert_non_null(strstr(err.msg, "streaming-llm"));
    const char *const wrong[] = {"low=7", NULL};
    assert_int_equal(kv_session_new_over(&s, &c, &(kv_options){.set = wrong}, NULL, &err), BASE_E_USAGE);
    s = kit_open_session(&m, CTX, 1000, NULL, NULL);
    const kv_segment system = {.origin = KV_ORIGIN_SYSTEM, .turn = 0},
                     tool = {.origin = KV_ORIGIN_TOOL, .turn = 1};
    assert_int_equal(kv_session_append(s, &system, ids, 600, NULL, NULL, &err), BASE_E_LIMIT);
    assert_non_null(strstr(err.msg, "1112"));
    kit_append(s, KV_ORIGIN_SYSTEM, 0, ids, 300, NULL);
    assert_int_equal(kv_session_append(s, &tool, ids, CTX, NULL, NULL, &err), BASE_E_LIMIT);
    const int32_t bad = FAKE_VOCAB;
    assert_int_equal(kv_session_append(s, &tool, &bad, 1, NULL, NULL, &err), BASE_E_USAGE);
    assert_int_equal(kv_session_set_budget(s, (kv_limit){700}, &err), BASE_E_LIMIT);
    assert_non_null(strstr(err.msg, "at least 812"));
    assert_int_equal(kv_session_set_budget(s, (kv_limit){812}, &err), 0);
    assert_int_equal(kv_session_manual(s, KV_MANUAL_PIN, 10, 5, &err), BASE_E_USAGE);
    assert_int_equal(kv_session_manual(s, KV_MANUAL_PIN, 0, 301, &err), BASE_E_USAGE);
    kv_session_free(s);
}

static void test_session__refuses_a_plan_of_another_epoch(void **state)
{
    int32_t ids[100];
    kit_make_ids(ids, 100, FAKE_VOCAB, 11);
    fake_model m = {0};
    kv_session *s = kit_open_session(&m, CTX, 0, NULL, NULL);
    kit_append(s, KV_ORIGIN_TOOL, 1, ids, 100, NULL);
    kv_stats stats;
    kv_session_get_stats(s, &stats);
    kv_plan *p = kv_plan_new(stats.epoch + 1, KV_CAUSE_MANUAL, 100, FAKE_LANES);
    p->flips[0] = 1;
    assert_int_equal(kv_session_apply(s, p, NULL), BASE_E_STATE);
    p->epoch = stats.epoch;
    assert_int_equal(kv_session_apply(s, p, NULL), 0);
    assert_int_equal(kv_session_apply(s, p, NULL), BASE_E_STATE); /* it has been applied */
    uint64_t bits[2];
    kv_session_lane_bits(s, 0, bits);
    assert_int_equal(bits[0] & 1, 0);
    kv_session_lane_bits(s, 1, bits);
    assert_int_equal(bits[0] & 1, 1);
    kv_plan_free(p);
    kv_session_free(s);
}

/* ---- generated sequences ---- */

/* What a generated sequence tells of its plans. */
typedef struct witness {
    uint64_t hash;
    const kv_session *session;
} witness;

/* An eviction may take a hard row of a lane only when nothing else is left there. */
static void check_hard(const kv_session *s, const kv_plan *p)
{
    static uint8_t states[CTX];
    uint64_t active[(CTX + 63) / 64];
    kv_session_token_flags(s, states);
    for (uint32_t lane = 0; lane < p->n_lanes; lane++) {
        const uint64_t *flips = p->flips + (size_t)lane * kv_plan_words(p);
        uint32_t n_hard_gone = 0, n_soft_left = 0;
        kv_session_lane_bits(s, lane, active);
        for (uint32_t i = 0; i < p->n_tokens; i++) {
            const bool was = active[i / 64] >> i % 64 & 1, flips_now = flips[i / 64] >> i % 64 & 1;
            if (was && flips_now && states[i] & KV_TOKEN_HARD) n_hard_gone++;
            if (was && !flips_now && !(states[i] & KV_TOKEN_HARD)) n_soft_left++;
            if (p->cause == KV_CAUSE_EVICT || p->cause == KV_CAUSE_PRESSURE) assert_false(!was && flips_now);
        }
        if (p->cause == KV_CAUSE_EVICT) assert_int_equal(n_hard_gone, 0);
        if (p->cause == KV_CAUSE_REPAIR) assert_int_equal(n_hard_gone, 0);
        if (p->cause == KV_CAUSE_PRESSURE && n_hard_gone) assert_int_equal(n_soft_left, 0);
    }
}

/* Folds every plan that a session announces, and checks what every plan must keep. */
static void fold_plan(void *user, const kv_plan *p)
{
    base_buf blob = {0};
    witness *w = user;
    kv_plan_pack(p, &blob);
    w->hash = base_hash64(blob.data, blob.len, w->hash);
    for (uint32_t i = 0; i < p->n_runs; i++) {
        assert_true(p->runs[i].from < p->runs[i].to && p->runs[i].to <= p->n_tokens);
        assert_true(i == 0 || p->runs[i - 1].from <= p->runs[i].from);
        assert_true(p->runs[i].lanes <= p->n_lanes);
    }
    base_buf_free(&blob);
    if (w->session) check_hard(w->session, p);
}

/* most: rows that a lane may hold now; 0: any. */
static void check_invariants(const kv_session *s, uint32_t most)
{
    kv_stats stats;
    kv_session_get_stats(s, &stats);
    static uint32_t lanes[CTX];
    static uint8_t states[CTX];
    uint64_t bits[(CTX + 63) / 64];
    kv_session_active_lanes(s, lanes);
    kv_session_token_flags(s, states);
    uint64_t total = 0;
    for (uint32_t lane = 0; lane < stats.n_lanes; lane++) {
        uint32_t n = 0;
        kv_session_lane_bits(s, lane, bits);
        for (uint32_t i = 0; i < stats.n_tokens; i++) {
            const bool active = bits[i / 64] >> i % 64 & 1;
            n += active;
            lanes[i] -= active; /* the runs told the same as the bits */
            if (states[i] & KV_TOKEN_BARRED) assert_false(active);
            if (states[i] & KV_TOKEN_PINNED) assert_true(active);
        }
        if (stats.n_tokens % 64) assert_int_equal(bits[stats.n_tokens / 64] >> stats.n_tokens % 64, 0);
        if (most && stats.budget) assert_true(n <= most);
        total += n;
    }
    for (uint32_t i = 0; i < stats.n_tokens; i++) assert_int_equal(lanes[i], 0);
    assert_int_equal(stats.active + stats.host, stats.n_tokens);
    assert_true(
        stats.active_bytes + stats.host_bytes == (uint64_t)stats.n_tokens * FAKE_LANES * FAKE_DIM * 4);
    assert_true(stats.active_min <= stats.active && stats.active <= stats.active_max);
    assert_true((total + stats.n_lanes / 2) / stats.n_lanes == stats.active);
}

/* A sequence of operations from a seed; returns a hash of all its plans and last logits. */
static uint64_t run_sequence(uint64_t seed, const char *policy, bool lanes_differ)
{
    uint64_t random = seed;
    witness w = {0};
    fake_model m = {.lanes_differ = lanes_differ};
    const kv_observer observer = {.user = &w, .plan = fold_plan};
    kv_session *s = kit_open_session(&m, CTX, 700 + test_below(&random, 300), policy, &observer);
    w.session = s;
    float logits[FAKE_VOCAB];
    int32_t ids[700];
    uint32_t turn = 1, n = 0;
    kit_make_ids(ids, 40, FAKE_VOCAB, random);
    kit_append(s, KV_ORIGIN_SYSTEM, 0, ids, 40, NULL);
    for (int step = 0; step < 40; step++) {
        kv_session_ids(s, &n);
        const uint32_t what = test_below(&random, 16), from = test_below(&random, n),
                       to = from + 1 + test_below(&random, n - from < 60 ? n - from : 60);
        uint32_t most = 0;
        if (what < 6) {
            static const kv_origin origins[] = {
                KV_ORIGIN_USER, KV_ORIGIN_CONTEXT, KV_ORIGIN_TOOL, KV_ORIGIN_ANSWER};
            const uint32_t more = 1 + test_below(&random, what < 3 ? 30 : 700);
            kv_span spans[3];
            uint32_t lines[8], n_spans = more > 40 ? 3 : 0, n_lines = 0;
            for (uint32_t k = 0; k < n_spans; k++)
                spans[k] = (kv_span){
                    .from = k * 12, .to = k * 12 + 10, .reason = KV_REASON_CALL, .weight = (float)(k % 2)};
            for (uint32_t k = 0; k < 8 && k * 10 < more; k++) lines[n_lines++] = k * 10;
            const kv_segment g = {.origin = origins[test_below(&random, 4)],
                .turn = turn,
                .spans = spans,
                .n_spans = n_spans,
                .lines = lines,
                .n_lines = n_lines};
            if (n + more > CTX) break;
            kit_make_ids(ids, more, FAKE_VOCAB, test_random(&random));
            base_err err = {0};
            if (kv_session_append(s, &g, ids, more, step % 2 ? logits : NULL, NULL, &err))
                fail_msg("%s", err.msg);
            if (step % 2) w.hash = base_hash64(logits, sizeof logits, w.hash);
            kv_stats now;
            kv_session_get_stats(s, &now);
            /* Excerpts wait for their question, unless somebody wants to go on behind them. */
            const bool waits = g.origin == KV_ORIGIN_CONTEXT && step % 2 == 0 && !strcmp(policy, "kvist");
            most = waits && CTX / 2 > now.budget ? CTX / 2 : now.budget;
        } else if (what == 6) {
            kv_session_set_turn(s, ++turn);
        } else if (what < 9) {
            assert_int_equal(kv_session_repair(s, &(kv_ask){from, to}, NULL, NULL), 0);
        } else if (what < 12) {
            const int r = kv_session_manual(s, (kv_manual)test_below(&random, 5), from, to, NULL);
            assert_true(r == 0 || r == BASE_E_STATE || r == BASE_E_LIMIT);
        } else if (what == 12) {
            const uint32_t which = test_below(&random, 3);
            const int r = which == 0   ? kv_session_mark_stale(s, from, to, NULL)
                          : which == 1 ? kv_session_mark_failed(s, from, to, NULL)
                                       : kv_session_mark_thought(s, from, to, NULL);
            assert_true(r == 0 || r == BASE_E_STATE);
        } else if (what == 13) {
            const int r = kv_session_undo_plan(s, NULL);
            assert_true(r == 0 || r == BASE_E_NOT_FOUND);
        } else if (what == 14) {
            assert_int_equal(
                kv_session_truncate(s, n - test_below(&random, n < 100 ? n - 40 + 1 : 60), NULL), 0);
        } else {
            const int r = kv_session_set_budget(s, (kv_limit){600 + test_below(&random, 400)}, NULL);
            assert_true(r == 0 || r == BASE_E_LIMIT || r == BASE_E_STATE);
            kv_stats now;
            kv_session_get_stats(s, &now);
            most = r == 0 ? now.budget : 0;
        }
        check_invariants(s, most);
    }
    kv_session_ids(s, &n);
    if (n) assert_int_equal(kv_session_logits(s, logits, NULL, NULL), 0);
    w.hash = base_hash64(logits, sizeof logits, w.hash);
    kv_session_free(s);
    assert_int_equal(m.n_pinned, 0);
    return w.hash;
}

static void test_session__generated_sequences_keep_the_invariants(void **state)
{
    static const char *const policies[] = {
        "kvist", "snapkv", "streaming-llm", "random", "snapkv-seed", "full"};
    uint64_t seed = test_seed("generated sequences", 20261);
    for (int k = 0; k < 24; k++) {
        const uint64_t one = test_random(&seed);
        const char *policy = policies[k % 6];
        const uint64_t first = run_sequence(one, policy, k % 2);
        assert_true(first == run_sequence(one, policy, k % 2)); /* same operations, same plans, same bits */
    }
}

static void test_session__undo_takes_every_plan_back(void **state)
{
    uint64_t random = test_seed("undo", 3);
    int32_t ids[600];
    kit_make_ids(ids, 600, FAKE_VOCAB, 12);
    fake_model m = {0};
    kv_session *s = kit_open_session(&m, CTX, 0, NULL, NULL);
    kit_append(s, KV_ORIGIN_TOOL, 1, ids, 600, NULL);
    uint32_t before[600], after[600];
    uint8_t states_before[600], states_after[600];
    kv_session_active_lanes(s, before);
    kv_session_token_flags(s, states_before);
    uint32_t n_plans = 0;
    for (int k = 0; k < 30; k++) {
        kv_stats a, b;
        kv_session_get_stats(s, &a);
        const uint32_t from = test_below(&random, 590), what = test_below(&random, 7);
        if (what < 5)
            kv_session_manual(s, (kv_manual)what, from, from + 10, NULL);
        else if (what == 5)
            kv_session_mark_failed(s, from, from + 10, NULL);
        else
            kv_session_mark_stale(s, from, from + 10, NULL);
        kv_session_get_stats(s, &b);
        n_plans += a.epoch != b.epoch;
    }
    assert_true(n_plans > 10);
    assert_int_equal(m.n_brought, n_plans); /* a device hears of each */
    assert_int_equal(m.n_pinned, 3);
    while (n_plans--) assert_int_equal(kv_session_undo_plan(s, NULL), 0);
    assert_int_equal(kv_session_undo_plan(s, NULL), BASE_E_NOT_FOUND);
    kv_session_active_lanes(s, after);
    kv_session_token_flags(s, states_after);
    assert_memory_equal(before, after, sizeof before);
    assert_memory_equal(states_before, states_after, sizeof states_before);
    kv_session_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_session__batches_give_the_bits_of_single_tokens),
        cmocka_unit_test(test_session__evict_all_then_promote_all_changes_no_bit),
        cmocka_unit_test(test_session__a_budget_above_n_gives_the_bits_of_full),
        cmocka_unit_test(test_session__nothing_leaves_before_until),
        cmocka_unit_test(test_session__a_message_is_whole_until_its_question_is_complete),
        cmocka_unit_test(test_session__a_cancelled_append_keeps_whole_batches_only),
        cmocka_unit_test(test_session__truncate_then_append_is_as_if_never_appended),
        cmocka_unit_test(test_session__a_fork_shares_rows_and_nothing_else),
        cmocka_unit_test(test_session__logits_can_be_computed_again),
        cmocka_unit_test(test_session__refuses_what_does_not_fit),
        cmocka_unit_test(test_session__refuses_a_plan_of_another_epoch),
        cmocka_unit_test(test_session__undo_takes_every_plan_back),
        cmocka_unit_test(test_session__generated_sequences_keep_the_invariants),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
