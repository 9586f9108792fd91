/*
 * A side that reads the text as tokens of its own (src/whatif/translate.h): the fake model again, whose tokens here are
 * three bytes of text in place of a word.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/fs.h"
#include "base/mem.h"
#include "record.h"
#include "tui/tui.h"
#include "whatif/distance.h"
#include "whatif/translate.h"

static int setup(void **state)
{
    record_has_calls = false;
    return record_make_folder(state);
}

/* Texts of this vocabulary as they came up, an id each; the ids above END are none of a text. */
enum { END = FAKE_VOCAB - 8 };
static char words[FAKE_VOCAB][4];

static int32_t id_of(const char *text, size_t n)
{
    int32_t id = 0;
    while (id < END && *words[id] && (strlen(words[id]) != n || memcmp(words[id], text, n) != 0)) id++;
    assert_true(id < END);
    if (!*words[id]) memcpy(words[id], text, n);
    return id;
}

static void encode_by_three(const void *user, const char *text, size_t n, model_ids *out)
{
    for (size_t i = 0; i < n; i += 3) model_ids_add(out, id_of(text + i, n - i < 3 ? n - i : 3));
}

static const char *piece_of_three(const void *user, int32_t id, size_t *ret_n)
{
    if (id < 0 || id >= FAKE_VOCAB) return NULL;
    *ret_n = strlen(words[id]);
    return words[id];
}

static bool is_end_of_three(const void *user, int32_t id)
{
    return id == END;
}

/* An id for the session's beginning, one for each message's, one for the end of any. */
static void scaffold_of_three(const void *user, int end, int begin, model_ids *out)
{
    if (end == WHATIF_START) model_ids_add(out, END + 1);
    if (end >= 0) model_ids_add(out, END);
    if (begin >= 0) model_ids_add(out, END + 2 + begin);
}

static whatif_engine engine_by_three(fake_model *m)
{
    whatif_engine e = fake_engine(m);
    e.piece = piece_of_three;
    e.is_end = is_end_of_three;
    e.encode = encode_by_three;
    e.scaffold = scaffold_of_three;
    return e;
}

static void put_bytes(const whatif_engine *e, const whatif_step *t, base_buf *out)
{
    for (uint32_t i = 0; i < t->text.n; i++) {
        size_t n = 0;
        const bool is_end = t->kind == WHATIF_ANSWER && e->is_end(e->user, t->text.ids[i]);
        const char *piece = is_end ? NULL : e->piece(e->user, t->text.ids[i], &n);
        if (piece) base_buf_add(out, piece, n);
    }
}

static whatif_schedule *read_schedule(agent_log *l)
{
    whatif_schedule *s = NULL;
    base_err err = {0};
    if (whatif_schedule_read(&s, l, "one", &err)) fail_msg("%s", err.msg);
    return s;
}

/* Every step has the same text; what asks and what is structure covers the same bytes; places follow each other. */
static void test_translate__keeps_texts_and_places(void **state)
{
    fake_model m = {.fail_after = -1};
    agent_log *l = record_open_log();
    recorder r = record_begin(l, "one", &m);
    record_turns(&r, &m);
    assert_int_equal(kv_session_manual(r.s, KV_MANUAL_PIN, 80, 90, NULL), 0);
    record_release(&r);
    record_begin_turn(&r, "and this?");
    record_ask(&r);
    record_end_turn(&r);
    uint32_t behind;
    kv_session_ids(r.s, &behind);
    record_event(&r, &(agent_event){.type = AGENT_EVENT_rewind, .rewind = {.turn = 5, .n = 64}});
    assert_int_equal(kv_session_truncate(r.s, 64, NULL), 0);
    record_begin_turn(&r, "or this?");
    record_ask(&r);
    record_end_turn(&r);
    whatif_schedule *s = read_schedule(l), *other = NULL;
    const whatif_engine words_of = fake_engine(&m), threes = engine_by_three(&m);
    base_err err = {0};
    if (whatif_schedule_translate(&other, s, &threes, &err)) fail_msg("%s", err.msg);
    assert_int_equal(other->n_steps, s->n_steps);
    uint32_t n = 0, n_repairs = 0, n_queries = 0, n_spans = 0;
    for (size_t i = 0; i < s->n_steps; i++) {
        const whatif_step *a = &s->steps[i], *b = &other->steps[i];
        assert_int_equal(a->kind, b->kind);
        if (b->kind == WHATIF_REWIND) {
            assert_int_equal(b->from, other->steps[0].text.n); /* as the prompt's 64 tokens were */
            n = b->from;
        }
        n_repairs += b->kind == WHATIF_REPAIR && b->to > b->from && b->to <= n;
        if (b->kind == WHATIF_ORDER) assert_true(b->to > b->from && b->to <= n);
        if (b->kind != WHATIF_TEXT && b->kind != WHATIF_ANSWER) continue;
        assert_int_equal(b->text.from, n);
        n += b->text.n;
        if (a->text.origin == KV_ORIGIN_SCAFFOLD) continue;
        base_buf x = {0}, y = {0};
        put_bytes(&words_of, a, &x);
        put_bytes(&threes, b, &y);
        assert_string_equal(x.data ? x.data : "", y.data ? y.data : "");
        assert_int_equal(b->text.n, (x.len + 2) / 3);
        n_queries += b->text.n_queries > 0;
        n_spans += b->text.n_spans == 1;
        if (b->text.n_spans) { /* tokens 3 to 9 of six bytes */
            assert_int_equal(b->text.spans[0].from, 6);
            assert_int_equal(b->text.spans[0].to, 18);
        }
        base_buf_free(&x);
        base_buf_free(&y);
    }
    assert_int_equal(n_repairs, TURNS + 2);
    assert_int_equal(n_spans, TURNS + 2);
    assert_true(n_queries > 0);
    whatif_schedule_free(other);
    /* A log without texts cannot be read so. */
    free(s->steps[0].json);
    s->steps[0].json = NULL;
    assert_int_equal(whatif_schedule_translate(&other, s, &threes, &err), BASE_E_FORMAT);
    assert_non_null(strstr(err.msg, "has no texts"));
    whatif_schedule_free(s);
    kv_session_free(r.s);
    agent_log_close(l);
}

typedef struct told {
    base_buf turns, end;
    uint32_t n_turns, n_sides, n_plans, cancel_behind;
    int64_t bytes;
    atomic_bool cancel;
} told;

static void take(void *user, const agent_event *e)
{
    told *t = user;
    t->n_plans += e->type == AGENT_EVENT_plan;
    if (e->type == AGENT_EVENT_what_if_end) base_buf_puts(&t->end, e->what_if_end.text);
    if (e->type == AGENT_EVENT_what_if) assert_true(e->what_if.apart);
    if (e->type != AGENT_EVENT_what_if_turn) return;
    t->n_turns++;
    t->bytes += e->what_if_turn.bytes;
    t->n_sides = (uint32_t)e->what_if_turn.sides.n;
    assert_true(e->what_if_turn.kl == 0 && e->what_if_turn.differ == 0 && !e->what_if_turn.was);
    base_buf_printf(&t->turns, "%d %d %d %d", (int)e->what_if_turn.turn, (int)e->what_if_turn.bytes,
        (int)e->what_if_turn.tokens, (int)e->what_if_turn.said);
    for (size_t i = 0; i < e->what_if_turn.sides.n; i++) {
        const agent_side_row *row = &e->what_if_turn.sides.rows[i];
        assert_true(row->nll > 0 && isfinite(row->nll));
        base_buf_printf(&t->turns, " [%d %d %a]", (int)row->evicted, (int)row->promoted, row->nll);
    }
    base_buf_putc(&t->turns, '\n');
    if (t->cancel_behind && t->n_turns == t->cancel_behind) atomic_store(&t->cancel, true);
}

static int compare_apart(agent_log *l, bool is_absent, uint32_t budget, told *t)
{
    fake_model m = {.fail_after = -1};
    whatif_schedule *s = read_schedule(l), *own = NULL;
    base_err err = {0};
    const kv_options original = {.policy = "kvist", .budget = BUDGET, .repair = -1, .set = s->set};
    kv_options changed = original;
    changed.budget = budget;
    const whatif_options o = {
        .original = {.engine = fake_engine(&m), .kv = original, .name = "original", .is_absent = is_absent},
        .changed = {.engine = engine_by_three(&m), .kv = changed, .keeps_budget = true, .name = "changed"},
        .settings = is_absent ? "{}" : "{\"model\":1}",
        .phrase = "with other words",
        .cancel = &t->cancel,
        .user = t,
        .event = take};
    whatif_options with = o;
    if (whatif_schedule_translate(&own, s, &o.changed.engine, &err)) fail_msg("%s", err.msg);
    with.changed.own = own;
    const int rc = whatif_run(l, s, &with, NULL, &err);
    if (rc && rc != BASE_E_CANCELLED) fail_msg("%s", err.msg);
    whatif_schedule_free(own);
    whatif_schedule_free(s);
    return rc;
}

static void told_free(told *t)
{
    base_buf_free(&t->turns);
    base_buf_free(&t->end);
}

static void test_apart__texts_are_compared_by_bytes(void **state)
{
    for (int is_absent = 0; is_absent < 2; is_absent++) {
        fake_model m = {.fail_after = -1};
        assert_int_equal(is_absent ? setup(NULL) : 0, 0);
        agent_log *l = record_open_log();
        recorder r = record_begin(l, "one", &m);
        record_turns(&r, &m);
        told whole = {0}, half = {.cancel_behind = 2}, rest = {0};
        base_err err = {0};
        char *id = NULL;
        int64_t bytes = 0;
        whatif_schedule *s = read_schedule(l);
        for (size_t i = 0; i < s->n_steps; i++) bytes += (int64_t)s->steps[i].said.len;
        whatif_schedule_free(s);
        assert_int_equal(compare_apart(l, is_absent, 1000, &whole), 0);
        assert_int_equal(whole.n_turns, TURNS);
        assert_int_equal(whole.bytes, bytes);
        assert_int_equal(whole.n_sides, is_absent ? 1 : 2);
        assert_int_equal(whole.n_plans, 0); /* they are of other tokens than the session's */
        assert_non_null(strstr(whole.end.data, "bytes of the answers are expected with"));
        assert_int_equal(strstr(whole.end.data, "a byte instead of") != NULL, !is_absent);
        assert_int_equal(agent_log_find(l, "2", NULL, &id, NULL), 0);
        base_buf screen = {0};
        if (tui_replay_text(l, id, 0, 120, 40, &screen, &err)) fail_msg("%s", err.msg);
        assert_non_null(strstr(screen.data, "bytes are expected with"));
        assert_null(strstr(screen.data, "^ differs")); /* one strip */
        base_buf_free(&screen);
        /* Interrupted, it comes out the same. */
        assert_int_equal(agent_log_delete(l, id, NULL), 0);
        assert_int_equal(compare_apart(l, is_absent, 1000, &half), BASE_E_CANCELLED);
        assert_int_equal(compare_apart(l, is_absent, 1000, &rest), 0);
        assert_string_equal(rest.turns.data, whole.turns.data);
        free(id);
        told_free(&whole);
        told_free(&half);
        told_free(&rest);
        kv_session_free(r.s);
        agent_log_close(l);
        if (!is_absent) record_drop_folder(NULL);
    }
}

static void test_nll__is_of_the_softmax(void **state)
{
    const float x[] = {2, 1, 0};
    int32_t best;
    assert_float_equal(whatif_nll(x, 3, 1, &best), 1.40760596, 1e-6);
    assert_int_equal(best, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_translate__keeps_texts_and_places, setup, record_drop_folder),
        cmocka_unit_test_setup_teardown(test_apart__texts_are_compared_by_bytes, setup, record_drop_folder),
        cmocka_unit_test(test_nll__is_of_the_softmax),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
