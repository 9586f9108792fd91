/* The scripted engine: text survives its tokens, answers come in order, and its session is a real one. */
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

/* Live sets as somebody rebuilds them who sees appended counts and plans only. */
typedef struct shadow {
    engine *e;
    uint8_t live[8][4096];
    uint32_t n_plans, causes[32];
    bool differs; /* some plan did another thing in each lane */
} shadow;

static void on_plan(void *user, const kv_plan *p)
{
    shadow *s = user;
    size_t words = kv_plan_words(p);
    for (uint32_t lane = 0; lane < p->n_lanes; lane++)
        for (uint32_t i = 0; i < p->n_tokens; i++) {
            const bool flips = (p->flips[lane * words + i / 64] >> (i % 64)) & 1;
            s->live[lane][i] ^= flips;
            s->differs = s->differs || flips != ((p->flips[i / 64] >> (i % 64)) & 1);
        }
    s->n_plans++;
    s->causes[p->cause]++;
}

static engine *open_script(const char *script, shadow *s)
{
    engine *e = NULL;
    base_err err = {0};
    if (engine_fake_open(&e, script, strlen(script), NULL, NULL, NULL, &err)) fail_msg("%s", err.msg);
    memset(s, 0, sizeof *s);
    memset(s->live, 1, sizeof s->live);
    s->e = e;
    e->observer = (kv_observer){.user = s, .plan = on_plan};
    return e;
}

static void append(engine *e, kv_origin origin, uint32_t turn, const char *text)
{
    model_ids ids = {0};
    base_err err = {0};
    assert_int_equal(e->ops->encode(e, text, strlen(text), &ids, &err), 0);
    kv_segment segment = {.origin = origin, .turn = turn};
    if (e->ops->append(e, &segment, ids.ids, (uint32_t)ids.n, &err)) fail_msg("%s", err.msg);
    model_ids_free(&ids);
}

static void assert_shadow_agrees(shadow *s)
{
    kv_stats stats;
    s->e->ops->stats(s->e, &stats);
    uint64_t bits[64];
    for (uint32_t lane = 0; lane < stats.n_lanes; lane++) {
        kv_session_lane_bits(s->e->session, lane, bits);
        for (uint32_t i = 0; i < stats.n_tokens; i++)
            assert_int_equal(bits[i / 64] >> (i % 64) & 1, s->live[lane][i]);
    }
    assert_int_equal(stats.active + stats.host, stats.n_tokens);
}

static void test_engine_fake__text_survives_tokens(void **state)
{
    shadow s;
    engine *e = open_script("answer x\n", &s);
    static const char text[] = "int main_loop(void) {\n\treturn   a[i]; // \xc3\xa9 \xf0\x9f\x8c\xbf\n}";
    model_ids ids = {0};
    assert_int_equal(e->ops->encode(e, text, strlen(text), &ids, NULL), 0);
    base_buf back = {0};
    for (size_t i = 0; i < ids.n; i++) {
        size_t n;
        const char *piece = e->ops->piece(e, ids.ids[i], &n);
        base_buf_add(&back, piece, n);
    }
    assert_string_equal(back.data, text);
    assert_true(ids.n < strlen(text));
    base_buf_free(&back);
    model_ids_free(&ids);
    e->ops->close(e);
}

/* A query asks for the rows of its own word: they come back, and what nobody asked for stays out. */
static void test_engine_fake__plans_explain_the_live_rows(void **state)
{
    shadow s;
    engine *e = open_script("lanes 3\nbudget 700\nrepair 20\nanswer ok\n", &s);
    append(e, KV_ORIGIN_TOOL, 1, "static int zebra(void);\n");
    append(e, KV_ORIGIN_USER, 1, "what is a walk?");
    for (int i = 0; i < 60; i++) {
        append(e, KV_ORIGIN_TOOL, 1, "static int walk(struct node *n) { return n->left; }\n");
        assert_shadow_agrees(&s);
    }
    kv_stats stats;
    e->ops->stats(e, &stats);
    assert_true(stats.n_tokens > 700 && stats.active_max <= 700 + 64);
    assert_true(s.causes[KV_CAUSE_EVICT] > 0 && s.differs);
    uint32_t from = stats.n_tokens;
    kv_session_set_turn(e->session, 2);
    append(e, KV_ORIGIN_USER, 2, "where is zebr?");
    const uint32_t queries[] = {from + 3};
    size_t n;
    assert_string_equal(e->ops->piece(e, kv_session_ids(e->session, &stats.n_tokens)[from + 3], &n), " zeb");
    uint32_t lanes[4096];
    assert_int_equal(kv_session_manual(e->session, KV_MANUAL_EVICT, 3, 6, NULL), 0);
    kv_session_active_lanes(e->session, lanes);
    assert_int_equal(lanes[3], 0);
    assert_int_equal(
        kv_session_repair(e->session, &(kv_ask){from, stats.n_tokens, queries, 1}, NULL, NULL), 0);
    assert_shadow_agrees(&s);
    kv_session_active_lanes(e->session, lanes);
    assert_int_equal(lanes[3], 3);
    assert_true(s.causes[KV_CAUSE_REPAIR] > 0);
    e->ops->close(e);
}

static void test_engine_fake__answers_in_order_then_an_error(void **state)
{
    shadow s;
    engine *e = open_script("answer one\nwanted Foo\nanswer <<.\ntwo\n\nlines\n.\n", &s);
    static const char *const expected[] = {"one", "two\n\nlines"};
    for (int i = 0; i < 2; i++) {
        base_buf out = {0};
        int32_t id, wanted, first_wanted = -2;
        bool end = false;
        e->ops->answer_begins(e);
        while (!end) {
            assert_int_equal(e->ops->next(e, KV_ORIGIN_ANSWER, 1, &id, &end, &wanted, NULL), 0);
            if (first_wanted == -2) first_wanted = wanted;
            size_t n;
            const char *piece = e->ops->piece(e, id, &n);
            if (!end) base_buf_add(&out, piece, n);
        }
        assert_string_equal(out.data, expected[i]);
        assert_int_equal(first_wanted >= 0, i == 1);
        base_buf_free(&out);
    }
    e->ops->answer_begins(e);
    int32_t id;
    bool end;
    base_err err = {0};
    assert_int_equal(e->ops->next(e, KV_ORIGIN_ANSWER, 1, &id, &end, NULL, &err), BASE_E_STATE);
    e->ops->close(e);
}

static void test_engine_fake__resumes_what_it_saved(void **state)
{
    char folder[] = "/tmp/kvist-fake-XXXXXX", path[64], manifest[80];
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/rows", folder);
    snprintf(manifest, sizeof manifest, "%s.manifest", path);
    engine_options options = {.kv = {.row_file = path, .repair = -1}};
    engine *e;
    static const char script[] = "budget 700\nanswer x\n";
    assert_int_equal(engine_fake_open(&e, script, strlen(script), &options, NULL, NULL, NULL), 0);
    for (int i = 0; i < 80; i++) append(e, KV_ORIGIN_TOOL, 1, "some words to be forgotten soon, ");
    kv_stats before, after;
    e->ops->stats(e, &before);
    assert_true(before.host > 0);
    uint64_t bits[2][32] = {{0}};
    assert_true(before.n_tokens <= 32 * 64);
    kv_session_lane_bits(e->session, 1, bits[0]);
    assert_int_equal(e->ops->save(e, NULL), 0);
    e->ops->close(e);
    options.resume = true;
    bool resumed = false;
    assert_int_equal(engine_fake_open(&e, script, strlen(script), &options, &resumed, NULL, NULL), 0);
    assert_true(resumed);
    e->ops->stats(e, &after);
    kv_session_lane_bits(e->session, 1, bits[1]);
    assert_int_equal(after.n_tokens, before.n_tokens);
    assert_int_equal(after.computed, 0);
    assert_memory_equal(bits[0], bits[1], (before.n_tokens + 63) / 64 * 8);
    e->ops->close(e);
    unlink(path);
    unlink(manifest);
    rmdir(folder);
}

static void test_engine_fake__names_a_bad_line(void **state)
{
    static const char *const wrong[] = {
        "answer a\nfoo bar\n", "budget lots of it\nevict 1 2\n", "lanes 99\n", "answer <<X\nabc\n"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        engine *e;
        base_err err = {0};
        assert_int_equal(
            engine_fake_open(&e, wrong[i], strlen(wrong[i]), NULL, NULL, NULL, &err), BASE_E_FORMAT);
        assert_non_null(strstr(err.msg, "line "));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_engine_fake__text_survives_tokens),
        cmocka_unit_test(test_engine_fake__plans_explain_the_live_rows),
        cmocka_unit_test(test_engine_fake__answers_in_order_then_an_error),
        cmocka_unit_test(test_engine_fake__resumes_what_it_saved),
        cmocka_unit_test(test_engine_fake__names_a_bad_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
