/*
 * States of layers without rows: where a session goes back to, what that costs, and that nothing shows
 * otherwise. Over the fake model with a state (KVIST_FAKE_STATES), which ends the program when a batch is
 * given a state that is not the one in front of it; and over a little real one.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fs.h"
#include "kit.h"
#include "kv/core/states.h"

enum { CTX = 4000, PROMPT = 100, REQUEST = 60, ANSWER = 40, RESULT = 120 };

static char prefix_path[96];

static int make_folder(void **state)
{
    setenv("KVIST_FAKE_STATES", "1", 1);
    if (kit_make_folder(state)) return -1;
    snprintf(prefix_path, sizeof prefix_path, "%s/prefix", kit_folder);
    return 0;
}

static kv_session *open_session(fake_model *m, const kv_options *o)
{
    return kit_open_as(m, CTX, o);
}

static kv_stats stats_of(const kv_session *s)
{
    kv_stats ret;
    kv_session_get_stats(s, &ret);
    return ret;
}

/* A prompt, and turns of a request, an answer, a result and an answer. `starts`: where each turn begins. */
static void live(kv_session *s, uint32_t n_turns, uint32_t *starts)
{
    int32_t ids[PROMPT + REQUEST + RESULT];
    kit_make_ids(ids, PROMPT, FAKE_VOCAB, 1);
    kit_append(s, KV_ORIGIN_SYSTEM, 0, ids, PROMPT, NULL);
    for (uint32_t turn = 1; turn <= n_turns; turn++) {
        uint32_t n;
        kit_make_ids(ids, REQUEST + RESULT, FAKE_VOCAB, turn + 10);
        kv_session_ids(s, &starts[turn]);
        kit_append(s, KV_ORIGIN_USER, turn, ids, REQUEST, NULL);
        for (uint32_t i = 0; i < ANSWER; i++) kit_append(s, KV_ORIGIN_ANSWER, turn, ids + i, 1, NULL);
        kit_append(s, KV_ORIGIN_TOOL, turn, ids + REQUEST, RESULT, NULL);
        for (uint32_t i = 0; i < ANSWER; i++) kit_append(s, KV_ORIGIN_ANSWER, turn, ids + i, 1, NULL);
        kv_session_ids(s, &n);
    }
}

static void expect_logits(kv_session *s, const float *want)
{
    float got[FAKE_VOCAB];
    base_err err = {0};
    if (kv_session_logits(s, got, NULL, &err)) fail_msg("%s", err.msg);
    kit_assert_same_logits(got, want);
}

static void test_states__going_back_to_a_turn_costs_nothing(void **state)
{
    fake_model m = {.fail_after = -1};
    kv_session *s = open_session(&m, &(kv_options){.repair = -1});
    uint32_t starts[6];
    int32_t ids[50];
    float want[FAKE_VOCAB], got[FAKE_VOCAB];
    live(s, 5, starts);
    kit_make_ids(ids, 50, FAKE_VOCAB, 99);
    for (uint32_t turn = 5; turn >= 3; turn--) {
        kv_session *fresh = open_session(&m, &(kv_options){.repair = -1});
        assert_int_equal(kv_session_truncate(s, starts[turn], NULL), 0);
        assert_int_equal(stats_of(s).to_walk, 0);
        const uint64_t before = m.n_forward;
        kit_append(s, KV_ORIGIN_USER, turn, ids, 50, got);
        assert_int_equal(m.n_forward - before, 50);
        live(fresh, turn - 1, starts);
        kit_append(fresh, KV_ORIGIN_USER, turn, ids, 50, want);
        kit_assert_same_logits(got, want);
        kv_session_free(fresh);
    }
    kv_session_free(s);
}

static void test_states__between_two_the_tokens_are_computed_again_and_counted(void **state)
{
    fake_model m = {.fail_after = -1};
    kv_session *s = open_session(&m, &(kv_options){.repair = -1}), *fresh;
    uint32_t starts[4], n;
    live(s, 3, starts);
    /* 30 tokens into the last answer: it began 40 before the end. */
    kv_session_ids(s, &n);
    int32_t ids[CTX];
    memcpy(ids, kv_session_ids(s, &n), n * sizeof *ids);
    assert_int_equal(kv_session_truncate(s, n - 10, NULL), 0);
    assert_int_equal(stats_of(s).to_walk, 30);
    const uint64_t before = m.n_forward;
    float want[FAKE_VOCAB], got[FAKE_VOCAB];
    kit_append(s, KV_ORIGIN_ANSWER, 3, ids + 5, 1, got);
    assert_int_equal(m.n_forward - before, 31);
    assert_int_equal(stats_of(s).walked, 30);
    assert_int_equal(stats_of(s).to_walk, 0);
    fresh = open_session(&m, &(kv_options){.repair = -1});
    kit_append(fresh, KV_ORIGIN_TOOL, 3, ids, n - 10, NULL); /* all at once: the same state */
    kit_append(fresh, KV_ORIGIN_ANSWER, 3, ids + 5, 1, want);
    kit_assert_same_logits(got, want);
    kv_session_free(fresh);
    kv_session_free(s);
}

static void test_states__a_cancelled_batch_leaves_the_state_before_it(void **state)
{
    fake_model m = {.fail_after = -1};
    kv_session *s = open_session(&m, &(kv_options){.repair = -1}),
               *other = open_session(&m, &(kv_options){.repair = -1});
    uint32_t starts[3];
    int32_t ids[700];
    float want[FAKE_VOCAB];
    base_err err = {0};
    live(s, 2, starts);
    live(other, 2, starts);
    kit_make_ids(ids, 700, FAKE_VOCAB, 5);
    m.fail_after = 1; /* the second batch of 512 */
    const kv_segment g = {.origin = KV_ORIGIN_TOOL, .turn = 2};
    const uint32_t before = stats_of(s).n_tokens;
    assert_int_equal(kv_session_append(s, &g, ids, 700, NULL, NULL, &err), BASE_E_CANCELLED);
    assert_int_equal(stats_of(s).n_tokens, before + 512);
    assert_int_equal(stats_of(s).to_walk, 0);
    kit_append(s, KV_ORIGIN_TOOL, 2, ids + 512, 188, NULL);
    kit_append(other, KV_ORIGIN_TOOL, 2, ids, 700, want);
    expect_logits(s, want);
    kv_session_free(s);
    kv_session_free(other);
}

static void test_states__a_resumed_session_computes_nothing_and_goes_back_as_far(void **state)
{
    fake_model m = {.fail_after = -1};
    const kv_options o = {.repair = -1, .row_file = kit_row_path};
    const kv_compute c = fake_compute(&m, CTX);
    kv_session *s = open_session(&m, &o);
    uint32_t starts[5];
    float want[FAKE_VOCAB];
    base_err err = {0};
    live(s, 4, starts);
    assert_int_equal(kv_session_logits(s, want, NULL, NULL), 0);
    for (int times = 0; times < 3; times++) assert_int_equal(kv_session_save(s, NULL), 0);
    const uint32_t n_kept = stats_of(s).states;
    kv_session_free(s);
    const uint64_t before = m.n_forward;
    if (kv_session_resume_over(&s, &c, &o, NULL, &err)) fail_msg("%s", err.msg);
    assert_int_equal(stats_of(s).states, n_kept);
    assert_int_equal(stats_of(s).to_walk, 0);
    assert_int_equal(m.n_forward, before);
    expect_logits(s, want);
    assert_int_equal(kv_session_truncate(s, starts[2], NULL), 0);
    assert_int_equal(stats_of(s).to_walk, 0);
    kv_session_free(s);
    /* A state that is not what was written is found. */
    char path[128];
    snprintf(path, sizeof path, "%s.states", kit_row_path);
    FILE *f = fopen(path, "r+b");
    assert_non_null(f);
    fputc(0x55, f);
    fclose(f);
    assert_int_equal(kv_session_resume_over(&s, &c, &o, NULL, &err), BASE_E_FORMAT);
    assert_non_null(strstr(err.msg, "state behind token"));
}

static void test_states__the_fixed_prompts_state_is_kept_with_its_rows(void **state)
{
    fake_model m = {.fail_after = -1};
    const kv_options o = {.repair = -1, .prefix_file = prefix_path};
    uint32_t starts[3];
    float want[FAKE_VOCAB];
    kv_session *a = open_session(&m, &o), *b;
    live(a, 2, starts);
    assert_int_equal(kv_session_logits(a, want, NULL, NULL), 0);
    assert_int_equal(kv_session_save_prefix(a, prefix_path, PROMPT, NULL), 0);
    b = open_session(&m, &o);
    const uint64_t before = m.n_forward;
    live(b, 2, starts);
    assert_int_equal(m.n_forward - before, stats_of(b).n_tokens - PROMPT);
    expect_logits(b, want);
    kv_session_free(a);
    kv_session_free(b);
}

static void test_states__forks_share_them_and_go_their_own_ways(void **state)
{
    fake_model m = {.fail_after = -1};
    kv_session *s = open_session(&m, &(kv_options){.repair = -1}), *f;
    uint32_t starts[4];
    int32_t ids[30];
    float want[FAKE_VOCAB], got[FAKE_VOCAB];
    live(s, 3, starts);
    kit_make_ids(ids, 30, FAKE_VOCAB, 7);
    assert_int_equal(kv_session_fork(s, &f, NULL, NULL), 0);
    assert_int_equal(stats_of(f).states, stats_of(s).states);
    kit_append(f, KV_ORIGIN_TOOL, 3, ids, 30, NULL);
    assert_int_equal(kv_session_truncate(f, starts[2], NULL), 0);
    assert_int_equal(stats_of(f).to_walk, 0);
    kit_append(s, KV_ORIGIN_TOOL, 3, ids, 30, got);
    kv_session_free(f);
    f = open_session(&m, &(kv_options){.repair = -1});
    live(f, 3, starts);
    kit_append(f, KV_ORIGIN_TOOL, 3, ids, 30, want);
    kit_assert_same_logits(got, want);
    kv_session_free(f);
    kv_session_free(s);
}

/* Over a hundred calls of tools, eight states: no more are ever there, and how far one has to go back. */
static void test_states__are_thinned_under_their_limit(void **state)
{
    enum { MOST = 8, CALLS = 100, STEP = 300, BYTES = 64 };
    kv_states st = {.n_kept = 0};
    uint32_t n = 0;
    for (uint32_t i = 0; i < 2 * CALLS; i++) {
        n += i % 2 ? STEP : STEP / 4;
        kv_state *x = kv_state_new(&st, BYTES, NULL);
        assert_non_null(x);
        x->at = n;
        kv_state_drop(&st, &st.live);
        st.live = x;
        kv_states_keep(&st, n, MOST);
        assert_in_range(st.n_kept, 1, MOST);
        assert_int_equal(st.kept[st.n_kept - 1]->at, n);
        assert_int_equal(st.kept[0]->at, STEP / 4); /* the fixed prompt's end stays */
        for (uint32_t k = 1; k < st.n_kept; k++) assert_true(st.kept[k]->at > st.kept[k - 1]->at);
        assert_in_range(kv_states_bytes(&st), BYTES, (MOST + 1) * BYTES);
    }
    uint64_t walked = 0, most = 0;
    for (uint32_t i = 0, at = 0; i < 2 * CALLS; i++) {
        at += i % 2 ? STEP : STEP / 4;
        const uint32_t far = at - kv_states_newest(&st, at)->at;
        walked += far;
        if (far > most) most = far;
    }
    print_message("behind %d calls (%u tokens) with %d states: going back "
                  "to any of them computes %.0f tokens again, at most %u\n",
        CALLS, n, MOST, (double)walked / (2 * CALLS), (unsigned)most);
    assert_true(most <= n / 2); /* each state is at most about twice as far back as the next */
    kv_states_free(&st);
}

/* A little model with real layers: what was gone back over and computed again has the bits it had. */
static void test_states__a_real_models_bits_come_back(void **state)
{
    enum { V = TINY_GGUF_VOCAB };
    const tiny_gguf spec = TINY_GGUF_QWEN35;
    model *m = kit_open_tiny(&spec, 2);
    kv_session *s, *other;
    int32_t ids[900];
    float want[V], got[V], behind[V];
    base_err err = {0};
    const kv_options o = {.repair = -1, .row_file = kit_row_path};
    kit_make_ids(ids, 900, V, 3);
    if (kv_session_new(&s, m, &o, NULL, &err)) fail_msg("%s", err.msg);
    assert_int_equal(kv_session_new(&other, m, &(kv_options){.repair = -1}, NULL, NULL), 0);
    kit_append(s, KV_ORIGIN_SYSTEM, 0, ids, 300, NULL);
    kit_append(s, KV_ORIGIN_USER, 1, ids + 300, 200, NULL);
    for (uint32_t i = 500; i < 560; i++) kit_append(s, KV_ORIGIN_ANSWER, 1, ids + i, 1, behind);
    kit_append(other, KV_ORIGIN_TOOL, 1, ids, 560, want);
    assert_memory_equal(behind, want, sizeof want);
    assert_int_equal(kv_session_truncate(s, 530, NULL), 0); /* 30 tokens into the answer */
    for (uint32_t i = 530; i < 560; i++) kit_append(s, KV_ORIGIN_ANSWER, 1, ids + i, 1, got);
    assert_memory_equal(got, want, sizeof want);
    /* A draft of which some are taken. */
    const kv_segment g = {.origin = KV_ORIGIN_ANSWER, .turn = 1};
    static float drafted[KV_DRAFT_MAX][V];
    if (kv_session_draft(s, &g, ids + 560, 8, 0, drafted[0], NULL, &err)) fail_msg("%s", err.msg);
    for (uint32_t i = 0; i < 5; i++) assert_int_equal(kv_session_accept(s, &g, drafted[i], NULL, NULL), 0);
    kit_append(s, KV_ORIGIN_ANSWER, 1, ids + 700, 1, got);
    kit_append(other, KV_ORIGIN_TOOL, 1, ids + 560, 5, NULL);
    kit_append(other, KV_ORIGIN_TOOL, 1, ids + 700, 1, want);
    assert_memory_equal(got, want, sizeof want);
    assert_int_equal(kv_session_save(s, NULL), 0);
    kv_session_free(s);
    if (kv_session_resume(&s, m, &o, NULL, &err)) fail_msg("%s", err.msg);
    assert_int_equal(stats_of(s).computed, 0);
    if (kv_session_logits(s, got, NULL, &err)) fail_msg("%s", err.msg);
    assert_memory_equal(got, want, sizeof want);
    kv_session_free(s);
    kv_session_free(other);
    model_close(m);
}

/* Evictions, repairs, visits and messages computed again, over real layers: twice the same. */
static void test_states__a_real_model_evicts_and_goes_on(void **state)
{
    enum { V = TINY_GGUF_VOCAB, BUDGET = 700 };
    const tiny_gguf spec = TINY_GGUF_QWEN35;
    model *m = kit_open_tiny(&spec, 2);
    kv_session *s, *again;
    int32_t ids[400];
    float a[V], b[V];
    base_err err = {0};
    const kv_options o = {.repair = -1, .budget = BUDGET, .policy = "kvist"};
    assert_int_equal(kv_session_new(&s, m, &o, NULL, &err), 0);
    assert_int_equal(kv_session_new(&again, m, &o, NULL, &err), 0);
    for (uint32_t turn = 1; turn <= 6; turn++)
        for (int i = 0; i < 2; i++) {
            kv_session *x = i ? again : s;
            uint32_t n;
            kit_make_ids(ids, 400, V, turn);
            kit_append(x, KV_ORIGIN_USER, turn, ids, 300, NULL);
            for (uint32_t k = 0; k < 20; k++) kit_append(x, KV_ORIGIN_ANSWER, turn, ids + 300 + k, 1, NULL);
            kv_session_ids(x, &n);
            if (kv_session_repair(x, &(kv_ask){n - 320, n - 20}, NULL, &err)) fail_msg("%s", err.msg);
        }
    assert_true(stats_of(s).active < stats_of(s).n_tokens); /* it did evict */
    assert_int_equal(stats_of(s).to_walk, 0);
    assert_int_equal(kv_session_logits(s, a, NULL, NULL), 0);
    assert_int_equal(kv_session_logits(again, b, NULL, NULL), 0);
    assert_memory_equal(a, b, sizeof a);
    kv_session_free(s);
    kv_session_free(again);
    model_close(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_states__going_back_to_a_turn_costs_nothing),
        cmocka_unit_test(test_states__between_two_the_tokens_are_computed_again_and_counted),
        cmocka_unit_test(test_states__a_cancelled_batch_leaves_the_state_before_it),
        cmocka_unit_test(test_states__a_resumed_session_computes_nothing_and_goes_back_as_far),
        cmocka_unit_test(test_states__the_fixed_prompts_state_is_kept_with_its_rows),
        cmocka_unit_test(test_states__forks_share_them_and_go_their_own_ways),
        cmocka_unit_test(test_states__are_thinned_under_their_limit),
        cmocka_unit_test(test_states__a_real_models_bits_come_back),
        cmocka_unit_test(test_states__a_real_model_evicts_and_goes_on),
    };
    return cmocka_run_group_tests(tests, make_folder, kit_remove_folder);
}
