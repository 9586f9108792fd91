/*
 * Tokens computed ahead: what is accepted is what an append would have made, what is not was never there.
 * Over a model without weights whose rows tell what they read; KVIST_SEED repeats a failed run.
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

/* What a session shows of itself, for two that should not differ. */
static uint64_t fold_session(kv_session *s)
{
    uint32_t n;
    kv_stats stats;
    kv_session_get_stats(s, &stats);
    const int32_t *ids = kv_session_ids(s, &n);
    uint64_t hash = base_hash64(ids, n * sizeof *ids, kv_session_schedule_hash(s));
    const uint64_t numbers[] = {n, stats.active, stats.host, stats.protected_, stats.epoch};
    hash = base_hash64(numbers, sizeof numbers, hash);
    uint64_t *bits = calloc(CTX / 64 + 1, sizeof *bits);
    for (uint32_t lane = 0; lane < FAKE_LANES; lane++) {
        kv_session_lane_bits(s, lane, bits);
        hash = base_hash64(bits, (n + 63) / 64 * sizeof *bits, hash);
    }
    free(bits);
    base_err err = {0};
    float logits[FAKE_VOCAB];
    if (kv_session_logits(s, logits, NULL, &err)) fail_msg("%s", err.msg);
    return base_hash64(logits, sizeof logits, hash);
}

/*
 * An answer with drafts, right, wrong or cut off by an eviction, and other operations in between, against one
 * that appends token by token: after every token both are the same session.
 */
static void test_draft__leaves_no_trace_of_what_was_not_accepted(void **state)
{
    enum { TOKENS = 1500 };
    fake_model m = {.fail_after = -1};
    uint64_t seed = test_seed("draft", 11), plans[2] = {0};
    const kv_observer watch[2] = {
        {.user = &plans[0], .plan = kit_fold_plan}, {.user = &plans[1], .plan = kit_fold_plan}};
    kv_session *plain = kit_open_session(&m, CTX, 900, "kvist", &watch[0]),
               *ahead = kit_open_session(&m, CTX, 900, "kvist", &watch[1]);
    const kv_segment g = {.origin = KV_ORIGIN_ANSWER, .turn = 1};
    int32_t ids[TOKENS], draft[KV_DRAFT_MAX];
    static float logits[KV_DRAFT_MAX][FAKE_VOCAB], want[FAKE_VOCAB];
    uint32_t n_accepted = 0;
    base_err err = {0};
    kit_make_ids(ids, TOKENS, FAKE_VOCAB, 5);
    kit_append(plain, KV_ORIGIN_USER, 1, ids, 600, NULL);
    kit_append(ahead, KV_ORIGIN_USER, 1, ids, 600, NULL);
    for (uint32_t i = 600, row = 0, first = 0; i < TOKENS; i++) {
        kit_append(plain, KV_ORIGIN_ANSWER, 1, ids + i, 1, want);
        const int32_t *next;
        uint32_t left = kv_session_drafted(ahead, &next);
        if (!left || next[0] != ids[i]) {
            uint32_t n = 1 + test_below(&seed, KV_DRAFT_MAX), wrong = test_below(&seed, 2 * KV_DRAFT_MAX);
            if (n > TOKENS - i) n = TOKENS - i;
            for (uint32_t k = 0; k < n; k++)
                draft[k] = k && k == wrong ? (ids[i + k] + 1) % FAKE_VOCAB : ids[i + k];
            first = test_below(&seed, n);
            row = 0;
            if (kv_session_draft(ahead, &g, draft, n, first, logits[0], NULL, &err)) fail_msg("%s", err.msg);
        }
        const float *own = row >= first ? logits[row - first] : NULL;
        if (own) kit_assert_same_logits(own, want);
        if (kv_session_accept(ahead, &g, own, NULL, &err)) fail_msg("%s", err.msg);
        row++;
        n_accepted++;
        if (i % 40 == 0 || i + 1 == TOKENS) assert_int_equal(fold_session(plain), fold_session(ahead));
        if (i % 97 == 0) { /* a person's hand between two tokens of a draft */
            assert_int_equal(kv_session_manual(plain, KV_MANUAL_EVICT, i - 5, i - 2, NULL), 0);
            assert_int_equal(kv_session_manual(ahead, KV_MANUAL_EVICT, i - 5, i - 2, NULL), 0);
            assert_int_equal(kv_session_drafted(ahead, NULL), 0);
        }
    }
    assert_int_equal(plans[0], plans[1]);
    assert_true(plans[0] != 0); /* it did evict */
    assert_int_equal(n_accepted, TOKENS - 600);
    kv_session_free(plain);
    kv_session_free(ahead);
}

static void test_draft__is_forgotten_by_whatever_else_happens(void **state)
{
    fake_model m = {.fail_after = -1};
    kv_session *s = kit_open_session(&m, CTX, 0, NULL, NULL);
    const kv_segment g = {.origin = KV_ORIGIN_ANSWER, .turn = 1};
    int32_t ids[40];
    static float logits[KV_DRAFT_MAX][FAKE_VOCAB], after[FAKE_VOCAB], again[FAKE_VOCAB];
    base_err err = {0};
    kit_make_ids(ids, 40, FAKE_VOCAB, 9);
    kit_append(s, KV_ORIGIN_USER, 1, ids, 20, NULL);
    assert_int_equal(kv_session_accept(s, &g, NULL, NULL, &err), BASE_E_STATE);
    assert_int_equal(kv_session_draft(s, &g, ids, 0, 0, logits[0], NULL, &err), BASE_E_USAGE);
    assert_int_equal(kv_session_draft(s, &g, ids, 4, 4, logits[0], NULL, &err), BASE_E_USAGE);
    /* An append writes over its rows, also one that is cancelled. */
    assert_int_equal(kv_session_draft(s, &g, ids + 20, 4, 0, logits[0], NULL, &err), 0);
    kit_append(s, KV_ORIGIN_ANSWER, 1, ids + 30, 1, after);
    assert_int_equal(kv_session_drafted(s, NULL), 0);
    assert_int_equal(kv_session_accept(s, &g, NULL, NULL, &err), BASE_E_STATE);
    assert_int_equal(kv_session_draft(s, &g, ids + 20, 4, 0, logits[0], NULL, &err), 0);
    m.fail_after = 0;
    assert_int_equal(kv_session_append(s, &g, ids + 31, 2, NULL, NULL, &err), BASE_E_CANCELLED);
    m.fail_after = -1;
    assert_int_equal(kv_session_drafted(s, NULL), 0);
    /* A cancelled draft leaves the sequence as it was. */
    m.fail_after = 0;
    assert_int_equal(kv_session_draft(s, &g, ids + 20, 4, 0, logits[0], NULL, &err), BASE_E_CANCELLED);
    m.fail_after = -1;
    assert_int_equal(kv_session_drafted(s, NULL), 0);
    assert_int_equal(kv_session_logits(s, again, NULL, &err), 0);
    kit_assert_same_logits(after, again);
    /* Cutting back forgets; a fork has none and does not harm ours. */
    assert_int_equal(kv_session_draft(s, &g, ids + 20, 4, 0, logits[0], NULL, &err), 0);
    assert_int_equal(kv_session_truncate(s, 10, &err), 0);
    assert_int_equal(kv_session_drafted(s, NULL), 0);
    assert_int_equal(kv_session_draft(s, &g, ids + 20, 4, 0, logits[0], NULL, &err), 0);
    kv_session *f = NULL;
    assert_int_equal(kv_session_fork(s, &f, NULL, &err), 0);
    assert_int_equal(kv_session_drafted(f, NULL), 0);
    kit_append(f, KV_ORIGIN_ANSWER, 1, ids, 6, NULL);
    for (int i = 0; i < 4; i++) assert_int_equal(kv_session_accept(s, &g, logits[i], NULL, &err), 0);
    kit_append(s, KV_ORIGIN_ANSWER, 1, ids + 30, 1, after);
    assert_int_equal(kv_session_truncate(f, 10, &err), 0);
    kit_append(f, KV_ORIGIN_ANSWER, 1, ids + 20, 4, NULL);
    kit_append(f, KV_ORIGIN_ANSWER, 1, ids + 30, 1, again);
    kit_assert_same_logits(after, again);
    kv_session_free(f);
    kv_session_free(s);
}

static void test_draft__a_look_ahead_sees_what_appends_would_and_adds_nothing(void **state)
{
    (void)state;
    enum { N = 90 };
    fake_model m = {.fail_after = -1};
    kv_session *s = kit_open_session(&m, CTX, 0, NULL, NULL);
    const kv_segment g = {.origin = KV_ORIGIN_USER, .turn = 1};
    int32_t ids[40 + N];
    static float logits[3][FAKE_VOCAB], want[FAKE_VOCAB];
    base_err err = {0};
    const uint32_t places[] = {0, 17, N - 1}, wrong[] = {3, 3};
    kit_make_ids(ids, 40 + N, FAKE_VOCAB, 4);
    kit_append(s, KV_ORIGIN_TOOL, 1, ids, 40, NULL);
    const uint64_t before = fold_session(s);
    assert_int_equal(kv_session_peek(s, &g, ids + 40, N, places, 3, logits[0], &err), 0);
    assert_true(fold_session(s) == before);
    assert_int_equal(kv_session_drafted(s, NULL), 0);
    assert_int_equal(kv_session_peek(s, &g, ids + 40, N, wrong, 2, logits[0], &err), BASE_E_USAGE);
    assert_int_equal(kv_session_peek(s, &g, ids + 40, 0, places, 1, logits[0], &err), BASE_E_USAGE);
    for (uint32_t k = 0, at = 0; k < 3; k++) {
        const uint32_t n = places[k] + 1 - at;
        kit_append(s, KV_ORIGIN_USER, 1, ids + 40 + at, n, want);
        kit_assert_same_logits(logits[k], want);
        at += n;
    }
    kv_session_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_draft__leaves_no_trace_of_what_was_not_accepted),
        cmocka_unit_test(test_draft__is_forgotten_by_whatever_else_happens),
        cmocka_unit_test(test_draft__a_look_ahead_sees_what_appends_would_and_adds_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
