/* The scripted engine keeps the books that a real session keeps: plans explain every change of the live rows. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "agent/engine.h"

/* Live sets as somebody rebuilds them who sees appended counts and plans only. */
typedef struct shadow {
    engine *e;
    uint8_t live[8][4096];
    uint32_t n_plans, causes[8];
} shadow;

static void on_plan(void *user, const kv_plan *p)
{
    shadow *s = user;
    size_t words = kv_plan_words(p);
    for (uint32_t lane = 0; lane < p->n_lanes; lane++)
        for (uint32_t i = 0; i < p->n_tokens; i++)
            s->live[lane][i] ^= (p->flips[lane * words + i / 64] >> (i % 64)) & 1;
    s->n_plans++;
    s->causes[p->cause]++;
}

static engine *open_script(const char *script, shadow *s)
{
    engine *e = NULL;
    base_err err = {0};
    assert_int_equal(engine_fake_open(&e, script, strlen(script), NULL, NULL, NULL, &err), 0);
    memset(s, 0, sizeof *s);
    memset(s->live, 1, sizeof s->live);
    s->e = e;
    e->ops->observe(e, &(kv_observer){.user = s, .plan = on_plan});
    return e;
}

static void append(engine *e, kv_origin origin, uint32_t turn, const char *text)
{
    model_ids ids = {0};
    e->ops->encode(e, text, strlen(text), &ids);
    kv_segment segment = {.origin = origin, .turn = turn};
    assert_int_equal(e->ops->append(e, &segment, ids.ids, (uint32_t)ids.n, NULL), 0);
    model_ids_free(&ids);
}

static void assert_shadow_agrees(shadow *s)
{
    kv_stats stats;
    s->e->ops->stats(s->e, &stats);
    uint64_t bits[64];
    for (uint32_t lane = 0; lane < stats.n_lanes; lane++) {
        s->e->ops->lane_bits(s->e, lane, bits);
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
    e->ops->encode(e, text, strlen(text), &ids);
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

static void test_engine_fake__plans_explain_the_live_rows(void **state)
{
    shadow s;
    engine *e = open_script("lanes 3\nbudget 120\nrepair 20\nchunk 64\nevict 10 14 stale 2\nanswer ok\n", &s);
    for (int i = 0; i < 40; i++) {
        append(e, KV_ORIGIN_TOOL, 1, "static int walk(struct node *n) { return n->left; }\n");
        assert_shadow_agrees(&s);
    }
    kv_stats stats;
    e->ops->stats(e, &stats);
    assert_true(stats.active_max <= 120 + 64);
    assert_true(s.causes[KV_CAUSE_EVICT] > 0);
    uint32_t from = stats.n_tokens;
    append(e, KV_ORIGIN_USER, 2, "what does walk do with struct?");
    uint32_t queries[] = {from + 2, from + 3};
    assert_int_equal(e->ops->repair(e, from, from + 5, queries, 2, NULL), 0);
    assert_shadow_agrees(&s);
    assert_int_equal(e->ops->manual(e, KV_MANUAL_PIN, 0, 10, NULL), 0);
    assert_int_equal(e->ops->manual(e, KV_MANUAL_DROP, 20, 30, NULL), 0);
    assert_int_equal(e->ops->mark_failed(e, 30, 33, NULL), 0);
    assert_shadow_agrees(&s);
    kv_why why;
    e->ops->why(e, 25, &why);
    assert_true(why.barred);
    assert_int_equal(why.lanes_active, 0);
    assert_int_equal(e->ops->undo_plan(e, NULL), 0);
    assert_int_equal(e->ops->undo_plan(e, NULL), 0);
    assert_shadow_agrees(&s);
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
    char path[] = "/tmp/kvist-fake-XXXXXX";
    close(mkstemp(path));
    engine_options options = {.kv = {.row_file = path, .repair = -1}};
    engine *e;
    static const char script[] = "budget 50\nanswer x\n";
    assert_int_equal(engine_fake_open(&e, script, strlen(script), &options, NULL, NULL, NULL), 0);
    for (int i = 0; i < 10; i++) append(e, KV_ORIGIN_TOOL, 1, "some words to be forgotten soon, ");
    kv_stats before, after;
    e->ops->stats(e, &before);
    uint64_t bits[2][8];
    e->ops->lane_bits(e, 1, bits[0]);
    assert_int_equal(e->ops->save(e, NULL), 0);
    e->ops->close(e);
    options.resume = true;
    bool resumed = false;
    assert_int_equal(engine_fake_open(&e, script, strlen(script), &options, &resumed, NULL, NULL), 0);
    assert_true(resumed);
    e->ops->stats(e, &after);
    e->ops->lane_bits(e, 1, bits[1]);
    assert_int_equal(after.n_tokens, before.n_tokens);
    assert_int_equal(after.reused, before.n_tokens);
    assert_memory_equal(bits[0], bits[1], (before.n_tokens + 63) / 64 * 8);
    e->ops->close(e);
    unlink(path);
}

static void test_engine_fake__names_a_bad_line(void **state)
{
    static const char *const wrong[] = {
        "answer a\nfoo bar\n", "evict 1 2 nonsense 3\n", "lanes 99\n", "answer <<X\nabc\n"};
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
