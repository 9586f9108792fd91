/*
 * A side that answers by itself (src/whatif/free.h), over the fake model: what it says is the likeliest token of a
 * hash of all that it read.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <cmocka.h>

#include "base/fs.h"
#include "base/hash.h"
#include "base/mem.h"
#include "record.h"
#include "tui/tui.h"
#include "whatif/reader.h"

static int setup(void **state)
{
    record_has_calls = false;
    return record_make_folder(state);
}

static int setup_calls(void **state)
{
    record_has_calls = true;
    return record_make_folder(state);
}

/* With the settings of the record every token is the record's: the changed side says nothing of its own. */
static void test_free__equal_settings_answer_as_recorded(void **state)
{
    fake_model m = {.fail_after = -1};
    agent_log *l = record_open_log();
    recorder r = record_begin(l, "one", &m);
    record_turns(&r, &m);
    for (uint32_t from = 1; from <= TURNS; from++) {
        seen s = {.free_from = from};
        uint32_t n;
        assert_int_equal(record_compare(l, "one", 0, &s, NULL), 0);
        assert_int_equal(s.n_turns, TURNS);
        assert_int_equal(s.n_tokens, s.n_said);
        assert_int_equal(s.n_differ, 0);
        assert_true(s.kl == 0);
        assert_null(strstr(s.answers.data, "other"));
        assert_null(strstr(s.answers.data, ";"));
        kv_session_ids(r.s, &n);
        assert_int_equal(s.n_own, n); /* its own stream is as long */
        assert_int_equal(s.checks.len, 0);
        assert_non_null(strstr(s.end.data, "as recorded"));
        seen_free(&s);
    }
    kv_session_free(r.s);
    agent_log_close(l);
}

static void test_free__fewer_rows_answer_otherwise(void **state)
{
    fake_model m = {.fail_after = -1};
    agent_log *l = record_open_log();
    recorder r = record_begin(l, "one", &m);
    seen s = {.free_from = 3}, forced = {0}, again = {.free_from = 3};
    base_err err = {0};
    char *id = NULL;
    bool was_known;
    record_turns(&r, &m);
    assert_int_equal(record_compare(l, "one", 700, &forced, NULL), 0);
    assert_int_equal(agent_log_find(l, "2", NULL, &id, NULL), 0);
    assert_int_equal(agent_log_delete(l, id, NULL), 0);
    free(id);
    assert_int_equal(record_compare(l, "one", 700, &s, NULL), 0);
    assert_int_equal(s.n_turns, TURNS);
    assert_non_null(strstr(s.answers.data, "3 other"));
    assert_non_null(
        strstr(s.end.data, "by itself from turn 3 on it would have answered turns 3 and 4 otherwise"));
    /* Up to turn 3 nothing is different from a forced run; there both stop being compared at the first other token. */
    const char *third = strstr(forced.turns.data, "\n3 ");
    assert_non_null(third);
    assert_int_equal(strncmp(forced.turns.data, s.turns.data, (size_t)(third - forced.turns.data)), 0);
    assert_true(s.n_tokens < forced.n_tokens);
    assert_int_equal(record_compare(l, "one", 700, &again, &was_known), 0);
    assert_true(was_known);
    assert_string_equal(again.answers.data, s.answers.data);
    assert_string_equal(again.end.data, s.end.data);
    /* On the screen: what it says instead, as events of its own. */
    base_buf screen = {0};
    assert_int_equal(agent_log_find(l, "2", NULL, &id, NULL), 0);
    if (tui_replay_text(l, id, 3, 120, 40, &screen, &err)) fail_msg("%s", err.msg);
    assert_non_null(strstr(screen.data, "as recorded"));
    base_buf_free(&screen);
    free(id);
    seen_free(&s);
    seen_free(&again);
    seen_free(&forced);
    kv_session_free(r.s);
    agent_log_close(l);
}

/* Interrupted in front of, at and behind the first free turn: the same comes out. */
static void test_free__goes_on_behind_what_is_kept(void **state)
{
    for (uint32_t behind = 1; behind <= 3; behind++) {
        fake_model m = {.fail_after = -1};
        assert_int_equal(behind > 1 ? setup(NULL) : 0, 0);
        agent_log *l = record_open_log();
        recorder r = record_begin(l, "one", &m);
        seen whole = {.free_from = 2}, half = {.free_from = 2, .cancel_behind = behind},
             rest = {.free_from = 2};
        char *child = NULL;
        record_turns(&r, &m);
        assert_int_equal(record_compare(l, "one", 700, &half, NULL), BASE_E_CANCELLED);
        assert_int_equal(half.n_turns, behind);
        assert_int_equal(record_compare(l, "one", 700, &rest, NULL), 0);
        assert_int_equal(agent_log_find(l, "2", NULL, &child, NULL), 0);
        assert_int_equal(agent_log_delete(l, child, NULL), 0);
        assert_int_equal(record_compare(l, "one", 700, &whole, NULL), 0);
        assert_string_equal(rest.turns.data, whole.turns.data);
        assert_string_equal(rest.answers.data, whole.answers.data);
        assert_int_equal(rest.n_plans, whole.n_plans);
        assert_int_equal(rest.n_own, whole.n_own);
        free(child);
        seen_free(&half);
        seen_free(&rest);
        seen_free(&whole);
        kv_session_free(r.s);
        agent_log_close(l);
        if (behind < 3) record_drop_folder(NULL);
    }
}

/* A call is answered from the record where that has an equal one, and is the end where it has none. */
static void test_free__calls_are_answered_from_the_record_or_end_it(void **state)
{
    uint32_t n_recorded = 0, n_missing = 0, n_again = 0, n_to_the_end = 0;
    fake_model m = {.fail_after = -1};
    agent_log *l = record_open_log();
    recorder r = record_begin(l, "one", &m);
    record_turns(&r, &m);
    seen same = {.free_from = 1};
    assert_int_equal(record_compare(l, "one", 0, &same, NULL), 0);
    assert_null(strstr(same.answers.data, "other"));
    seen_free(&same);
    for (uint32_t budget = 600; budget < 780; budget += 10) {
        seen s = {.free_from = 2};
        assert_int_equal(record_compare(l, "one", budget, &s, NULL), 0);
        for (const char *at = s.answers.data; (at = strstr(at, ": the record, turn ")); at++) n_recorded++;
        const char *missing = strstr(s.answers.data, ": missing; in turn ");
        n_missing += missing != NULL;
        n_again += strstr(s.answers.data, "a second time") != NULL;
        n_to_the_end += s.n_turns == TURNS && !strstr(s.answers.data, ";");
        if (missing) {
            assert_non_null(strstr(missing, "the record has no equal call"));
            assert_null(strchr(strchr(missing, '\n') + 1, '\n')); /* nothing comes behind it */
            assert_non_null(strstr(s.end.data, "is not followed to the end"));
        }
        seen_free(&s);
    }
    assert_true(n_recorded > 0 && n_missing > 0 && n_again + n_to_the_end > 0);
    kv_session_free(r.s);
    agent_log_close(l);
}

/* A tree that the record changed and the free side did not is another tree. */
static void test_free__stops_where_the_tree_is_another_one(void **state)
{
    fake_model m = {.fail_after = -1};
    agent_log *l = record_open_log();
    recorder r = record_begin(l, "one", &m);
    whatif_schedule *schedule = NULL;
    base_err err = {0};
    record_turns(&r, &m);
    assert_int_equal(whatif_schedule_read(&schedule, l, "one", &err), 0);
    /* Of turn 2 the last step is behind a change. */
    size_t end = 0;
    for (uint32_t n = 0; n < 2; end++) n += schedule->steps[end].kind == WHATIF_END;
    for (size_t i = end - 2; i < schedule->n_steps; i++) schedule->steps[i].world++;
    const kv_options original = {.policy = "kvist", .budget = BUDGET, .repair = -1, .set = schedule->set};
    kv_options changed = original;
    changed.budget = 700;
    for (int with_same = 0; with_same < 2; with_same++) {
        seen s = {0};
        const whatif_options o = {.original = {fake_engine(&m), original, false, "original"},
            .changed = {fake_engine(&m), with_same ? original : changed, true, "changed"},
            .settings = with_same ? "{}" : "{\"budget\":700}",
            .phrase = "with other rows",
            .free_from = 2,
            .user = &s,
            .event = record_see};
        s.n_own = -1;
        if (whatif_run(l, schedule, &o, NULL, &err)) fail_msg("%s", err.msg);
        const bool is_other = strstr(s.answers.data, "2 other") != NULL;
        assert_int_equal(is_other, !with_same);
        assert_int_equal(s.n_turns, is_other ? 2 : TURNS);
        assert_int_equal(strstr(s.end.data, "was asked over files that") != NULL, is_other);
        seen_free(&s);
    }
    whatif_schedule_free(schedule);
    kv_session_free(r.s);
    agent_log_close(l);
}

static void test_free__a_full_context_is_told(void **state)
{
    fake_model m = {.fail_after = -1};
    agent_log *l = record_open_log();
    recorder r = record_begin(l, "one", &m);
    uint32_t n;
    record_turns(&r, &m);
    kv_session_ids(r.s, &n);
    seen s = {.free_from = 2, .n_ctx = n - 150};
    assert_int_equal(record_compare(l, "one", 700, &s, NULL), 0);
    assert_non_null(strstr(s.end.data, "is not followed to the end"));
    assert_non_null(strstr(s.answers.data, "context"));
    seen_free(&s);
    kv_session_free(r.s);
    agent_log_close(l);
}

static int read_file(
    whatif_reader *r, const char *arguments, const char *version, base_buf *out, base_err *err)
{
    base_json_doc *doc = NULL;
    assert_int_equal(base_json_parse(arguments, strlen(arguments), &doc, NULL), 0);
    base_buf_clear(out);
    const int rc = whatif_reader_read(r, base_json_root(doc), version, out, err);
    base_json_free(doc);
    return rc;
}

static void test_reader__reads_what_is_as_it_was(void **state)
{
    static const char text[] = "int one;\nint two;\nint three;\n", other[] = "int four;\n";
    char path[96], version[65];
    base_buf out = {0};
    base_err err = {0};
    whatif_reader r = {.root = record_folder};
    snprintf(path, sizeof path, "%s/a.c", record_folder);
    assert_int_equal(base_fs_write(path, text, sizeof text - 1, 0600, NULL), 0);
    base_sha256_hex(text, sizeof text - 1, version);
    if (read_file(&r, "{\"path\":\"a.c\"}", version, &out, &err)) fail_msg("%s", err.msg);
    assert_string_equal(out.data, "a.c, all 3 lines:\nint one;\nint two;\nint three;\n");
    assert_int_equal(read_file(&r, "{\"path\":\"a.c\",\"from\":2,\"count\":1}", version, &out, &err), 0);
    assert_non_null(strstr(out.data, "int two;"));
    assert_null(strstr(out.data, "int three;"));
    assert_int_equal(base_fs_write(path, other, sizeof other - 1, 0600, NULL), 0);
    assert_int_equal(read_file(&r, "{\"path\":\"a.c\"}", version, &out, &err), BASE_E_NOT_FOUND);
    assert_non_null(strstr(err.msg, "a.c does not hold any more what it held then"));
    assert_int_equal(out.len, 0);
    assert_int_equal(read_file(&r, "{\"path\":\"../../etc/passwd\"}", version, &out, &err), BASE_E_NOT_FOUND);
    assert_int_equal(read_file(&r, "{\"path\":\"gone.c\"}", version, &out, &err), BASE_E_NOT_FOUND);
    whatif_reader_close(&r);
    whatif_reader gone = {.root = "/nowhere/at/all"};
    assert_int_not_equal(read_file(&gone, "{\"path\":\"a.c\"}", version, &out, &err), 0);
    whatif_reader_close(&gone);
    base_buf_free(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            test_free__equal_settings_answer_as_recorded, setup, record_drop_folder),
        cmocka_unit_test_setup_teardown(test_free__fewer_rows_answer_otherwise, setup, record_drop_folder),
        cmocka_unit_test_setup_teardown(test_free__goes_on_behind_what_is_kept, setup, record_drop_folder),
        cmocka_unit_test_setup_teardown(
            test_free__calls_are_answered_from_the_record_or_end_it, setup_calls, record_drop_folder),
        cmocka_unit_test_setup_teardown(
            test_free__stops_where_the_tree_is_another_one, setup, record_drop_folder),
        cmocka_unit_test_setup_teardown(test_free__a_full_context_is_told, setup, record_drop_folder),
        cmocka_unit_test_setup_teardown(test_reader__reads_what_is_as_it_was, setup, record_drop_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
