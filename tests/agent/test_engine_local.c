/*
 * The engine over a real model (SmolLM2, where it is at hand): what it says beside a session, computed in
 * other batches, is what the session itself would say.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/engine/engine.h"
#include "base/fs.h"
#include "tiny_gguf.h"

/* Takes the path. */
static engine *open_path(char *path, const char *cache, kv_options kv, bool lookup)
{
    if (!path || access(path, R_OK)) {
        free(path);
        print_message("SmolLM2 is not at hand: scripts/fetch small\n");
        skip();
    }
    engine *e = NULL;
    base_err err = {0};
    const engine_options options = {.model = {.n_threads = 2},
        .kv = kv,
        .sampling = MODEL_SAMPLING_DEFAULTS,
        .lookup = lookup,
        .prompt_cache = cache};
    if (engine_local_open(&e, path, &options, NULL, NULL, &err)) fail_msg("%s", err.msg);
    free(path);
    return e;
}

static engine *open_or_skip(kv_options kv, bool lookup)
{
    return open_path(
        base_fs_home(BASE_HOME_DATA, "models/SmolLM2-135M-Instruct.Q4_1.gguf"), NULL, kv, lookup);
}

static void append(engine *e, const int32_t *ids, uint32_t n)
{
    base_err err = {0};
    const kv_segment segment = {.origin = KV_ORIGIN_USER, .turn = 1};
    if (e->ops->append(e, &segment, ids, n, &err)) fail_msg("%s", err.msg);
}

static void test_engine_local__doubts_are_what_the_session_would_say(void **state)
{
    static const char head[] = "int main(void)\n{\n", text[] = "    puts(\"hello\");\n"
                                                               "    for (int i = 0; i < n; i--) sum += i;\n"
                                                               "    return 0;\n"
                                                               "}\n";
    engine *e = open_or_skip((kv_options){.n_ctx = 512}, false);
    engine_info info;
    base_err err = {0};
    model_ids before = {0}, ids = {0};
    e->ops->info(e, &info);
    assert_int_equal(e->ops->encode(e, head, strlen(head), &before, &err), 0);
    assert_int_equal(e->ops->encode(e, text, strlen(text), &ids, &err), 0);
    assert_true(ids.n > 20); /* more than one batch */
    engine_doubt *found = calloc(ids.n, sizeof *found), *behind = calloc(ids.n, sizeof *behind);
    float *logits = malloc(info.n_vocab * sizeof *logits);
    append(e, before.ids, (uint32_t)before.n);
    if (e->ops->doubts(e, ids.ids, 0, (uint32_t)ids.n, found, &err)) fail_msg("%s", err.msg);
    for (uint32_t n_read = 1; n_read < ids.n;
         n_read += KV_DRAFT_MAX - 1) { /* what is read only is not told of */
        if (e->ops->doubts(e, ids.ids, n_read, (uint32_t)ids.n, behind, &err)) fail_msg("%s", err.msg);
        assert_memory_equal(behind, found + n_read, (ids.n - n_read) * sizeof *found);
    }
    double weight = 0, sum = 0;
    if (e->ops->weigh(e, ids.ids, (uint32_t)ids.n, &weight, &err)) fail_msg("%s", err.msg);
    for (uint32_t i = 0; i < ids.n; i++) {
        if (kv_session_logits(e->session, logits, NULL, &err)) fail_msg("%s", err.msg);
        double all = 0;
        for (uint32_t id = 0; id < info.n_vocab; id++) all += exp((double)logits[id]);
        sum += logits[ids.ids[i]] - log(all);
        int32_t best = ids.ids[i] ? 0 : 1;
        for (int32_t id = 0; id < (int32_t)info.n_vocab; id++)
            if (id != ids.ids[i] && logits[id] > logits[best]) best = id;
        assert_int_equal(found[i].instead, best);
        assert_true(found[i].behind == logits[ids.ids[i]] - logits[best]);
        append(e, ids.ids + i, 1);
    }
    assert_true(fabs(weight - sum) < 1e-3);
    uint32_t n;
    e->ops->ids(e, &n);
    assert_int_equal(n, before.n + ids.n); /* the branch is gone */
    free(found);
    free(behind);
    free(logits);
    model_ids_free(&before);
    model_ids_free(&ids);
    e->ops->close(e);
}

static double weigh_behind(engine *e, const model_ids *asked, const model_ids *answer)
{
    double weight = 0;
    append(e, asked->ids, (uint32_t)asked->n);
    if (e->ops->weigh(e, answer->ids, (uint32_t)answer->n, &weight, NULL)) fail();
    return weight;
}

/* A branch that begins anew says what an empty session would, and its rows are there for the next process. */
static void test_engine_local__what_is_fixed_is_computed_once(void **state)
{
    static const char front[] = "Request: Rename a to b.\nCalls: rename(a, b)\n\nRequest:",
                      asks[] = " c should be d\nCalls:", says[] = " rename(c, d)\n";
    char folder[] = "/tmp/kvist-fixed-XXXXXX";
    assert_non_null(mkdtemp(folder));
    model_ids fixed = {0}, asked = {0}, answer = {0};
    kv_stats s;
    double weights[3];
    for (int i = 0; i < 3; i++) {
        engine *e = open_path(base_fs_home(BASE_HOME_DATA, "models/SmolLM2-135M-Instruct.Q4_1.gguf"), folder,
            (kv_options){.n_ctx = 512}, false);
        if (!i) {
            assert_int_equal(e->ops->encode(e, front, strlen(front), &fixed, NULL), 0);
            assert_int_equal(e->ops->encode(e, asks, strlen(asks), &asked, NULL), 0);
            assert_int_equal(e->ops->encode(e, says, strlen(says), &answer, NULL), 0);
            append(e, fixed.ids, (uint32_t)fixed.n);
        } else {
            append(e, asked.ids, 3); /* what the session has is not in view */
            if (e->ops->fork_fixed(e, "test", fixed.ids, (uint32_t)fixed.n, NULL)) fail();
            e->ops->stats(e, &s);
            assert_int_equal(s.n_tokens, fixed.n);
            assert_int_equal(s.reused, i == 1 ? 0 : fixed.n);
        }
        weights[i] = weigh_behind(e, &asked, &answer);
        if (i) {
            uint32_t n;
            e->ops->unfork(e);
            e->ops->ids(e, &n);
            assert_int_equal(n, 3);
        }
        e->ops->close(e);
    }
    assert_true(weights[0] < 0 && weights[1] == weights[0] && weights[2] == weights[0]);
    model_ids_free(&fixed);
    model_ids_free(&asked);
    model_ids_free(&answer);
    base_fs_remove(folder, NULL);
}

enum { WRITTEN = 16, CALL_FROM = 6 };

/* What the model writes, a call from the CALL_FROM-th token on; how many rows visited it. */
static uint64_t write_call(bool lookup, int32_t *ret)
{
    engine *e = open_or_skip((kv_options){.n_ctx = 1024, .budget = 560, .repair = -1}, lookup);
    base_err err = {0};
    model_ids ids = {0};
    kv_visits visits;
    char text[4096];
    size_t n = 0;
    for (int i = 0; i < 42; i++)
        n += (size_t)snprintf(text + n, sizeof text - n, "Room %d is kept by item %d, which costs %d.\n", i,
            7 * i % 61, 13 * i % 97);
    n += (size_t)snprintf(
        text + n, sizeof text - n, "Again, the rooms in their order:\nRoom 0 is kept by item");
    assert_int_equal(e->ops->encode(e, text, n, &ids, &err), 0);
    assert_true(ids.n > 600 && ids.n < 1000);
    const kv_segment context = {.origin = KV_ORIGIN_CONTEXT, .turn = 1};
    if (e->ops->append(e, &context, ids.ids, (uint32_t)ids.n - 1, &err)) fail_msg("%s", err.msg);
    const kv_segment answer = {.origin = KV_ORIGIN_ANSWER, .turn = 1};
    if (e->ops->append(e, &answer, ids.ids + ids.n - 1, 1, &err)) fail_msg("%s", err.msg);
    e->ops->answer_begins(e);
    kv_session_take_visits(e->session, &visits, NULL);
    for (uint32_t i = 0; i < WRITTEN; i++) {
        bool end = false;
        const kv_origin origin = i < CALL_FROM ? KV_ORIGIN_ANSWER : KV_ORIGIN_CALL;
        if (e->ops->next(e, origin, 1, &ret[i], &end, NULL, &err)) fail_msg("%s", err.msg);
        if (i + 1 == CALL_FROM) {
            kv_session_take_visits(e->session, &visits, NULL);
            assert_true(visits.tokens > 0 && visits.rows > 0); /* so is what stands before it */
        }
    }
    kv_session_take_visits(e->session, &visits, NULL);
    model_ids_free(&ids);
    e->ops->close(e);
    return visits.rows;
}

/* With and without drafts the same tokens are written. */
static void test_engine_local__a_call_is_visited_with_drafts_too(void **state)
{
    (void)state;
    int32_t plain[WRITTEN], drafted[WRITTEN];
    assert_true(write_call(false, plain) > 0);
    assert_true(write_call(true, drafted) > 0);
    assert_memory_equal(plain, drafted, sizeof plain);
}

static void count_told(void *user, const char *what)
{
    assert_non_null(what);
    ++*(uint32_t *)user;
}

/*
 * A model's first session finds the heads in front of its first eviction; no later one does. When it happens is
 * asked, not what is found: so over the model's first layers, as each test of a whole session.
 */
static void test_engine_local__heads_are_found_before_the_first_eviction(void **state)
{
    (void)state;
    enum { BUDGET = 1800, SHORT = 100, LONG = 700 };
    char folder[] = "/tmp/kvist-heads-XXXXXX";
    assert_non_null(mkdtemp(folder));
    for (int session = 0; session < 2; session++) {
        engine *e =
            open_path(tiny_gguf_small_model(), folder, (kv_options){.budget = BUDGET, .repair = -1}, false);
        int32_t ids[2 * LONG];
        uint32_t told = 0;
        for (uint32_t i = 0; i < 2 * LONG; i++) ids[i] = (int32_t)(100 + i * 37 % 3000);
        assert_true(kv_session_wants_heads(e->session) == (session == 0));
        e->ops->prepare(e, SHORT, count_told, &told);
        assert_int_equal(told, 0); /* far from the budget */
        append(e, ids, SHORT);
        e->ops->prepare(e, LONG, count_told, &told);
        assert_int_equal(told, session == 0);
        assert_false(kv_session_wants_heads(e->session));
        append(e, ids, LONG);
        append(e, ids, 2 * LONG);
        kv_stats stats;
        kv_session_get_stats(e->session, &stats);
        assert_true(stats.host > 0);
        e->ops->prepare(e, LONG, count_told, &told);
        assert_int_equal(told, session == 0);
        e->ops->close(e);
    }
    base_fs_remove(folder, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_engine_local__doubts_are_what_the_session_would_say),
        cmocka_unit_test(test_engine_local__what_is_fixed_is_computed_once),
        cmocka_unit_test(test_engine_local__a_call_is_visited_with_drafts_too),
        cmocka_unit_test(test_engine_local__heads_are_found_before_the_first_eviction),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
