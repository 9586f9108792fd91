/* Whole sessions: where a turn's time goes, the judge, going on, and the tables. */
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

#include "base/fs.h"
#include "bench/common/statistics.h"
#include "bench/long/long_result.h"
#include "bench/long/long_tree.h"
#include "bench/long/long_turn.h"

static agent_event append(const char *origin)
{
    return (agent_event){.type = AGENT_EVENT_append, .append = {.origin = origin}};
}

static agent_event token(const char *origin)
{
    return (agent_event){.type = AGENT_EVENT_token, .token = {.origin = origin}};
}

static void test_bench_long__time_goes_to_the_part_that_took_it(void **state)
{
    (void)state;
    const agent_event events[] = {
        append("scaffold"),
        append("context"),
        append("user"),     /* 10 each: message */
        append("scaffold"), /* the answer opens behind a repair */
        token(NULL),
        token("call"),
        token("call"),
        {.type = AGENT_EVENT_tool_call},
        {.type = AGENT_EVENT_tool_result},
        append("scaffold"),
        append("tool"),
        append("scaffold"),
        token(NULL),
        {.type = AGENT_EVENT_notice, .notice = {.text = "not told apart"}},
        token(NULL),
        {.type = AGENT_EVENT_answer, .answer = {.text = "first"}},
        {.type = AGENT_EVENT_answer, .answer = {.text = "It is `key`."}},
        {.type = AGENT_EVENT_ledger, .ledger = {.new = 7, .generated = 3, .evicted = 2, .promoted = 1}},
        {.type = AGENT_EVENT_turn_end, .turn_end = {.status = "closed"}},
    };
    long_turn t;
    uint64_t now = 1000;
    long_turn_begin(&t, now);
    for (size_t i = 0; i < sizeof events / sizeof *events; i++) long_turn_event(&t, &events[i], now += 10);
    long_turn_end(&t, now += 10);
    static const uint64_t want[LONG_N_PARTS] = {[LONG_MESSAGE] = 50,
        [LONG_REPAIR] = 20,
        [LONG_CALL] = 20,
        [LONG_PROSE] = 40,
        [LONG_TOOL] = 10,
        [LONG_REST] = 60};
    uint64_t all = 0;
    for (int p = 0; p < LONG_N_PARTS; p++) {
        if (t.ns[p] != want[p]) fail_msg("%s: %llu", long_part_words[p], (unsigned long long)t.ns[p]);
        all += t.ns[p];
    }
    assert_int_equal(all, now - 1000);
    assert_string_equal(t.answer.data, "It is `key`.");
    assert_int_equal(t.n_calls, 1);
    assert_int_equal(t.added + t.generated + t.evicted + t.promoted, 13);
    assert_false(t.failed);
    long_turn_free(&t);
}

static void test_bench_long__an_answer_holds_words_not_pieces_of_them(void **state)
{
    (void)state;
    static const struct {
        const char *step, *answer;
        bool right;
    } cases[] = {
        {"{\"all\":[\"key\",\"value\"]}", "`key` and value.", true},
        {"{\"all\":[\"key\",\"value\"]}", "key, values", false},
        {"{\"all\":[\"key\"]}", "monkey key_1 then key", true},
        {"{\"all\":[\"key\"]}", "monkey key_1", false},
        {"{\"any\":[\"a_b\",\"c_d\"]}", "c_d", true},
        {"{\"any\":[\"a_b\"],\"all\":[\"x\"]}", "x", false},
        {"{\"all\":[\"0x200\"]}", "It is 0x2000", false},
        {"{\"all\":[\"Failed to load.\"]}", "\"Failed to load.\"", true},
        {"{\"all\":[]}", "anything", false},
        {"{}", "anything", false},
        {"{\"all\":[\"\"]}", "anything", false},
        {"{\"all\":[3]}", "3", false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        base_json_doc *doc = NULL;
        assert_int_equal(base_json_parse(cases[i].step, strlen(cases[i].step), &doc, NULL), 0);
        if (long_is_right(base_json_root(doc), cases[i].answer) != cases[i].right)
            fail_msg("%s: %s", cases[i].step, cases[i].answer);
        base_json_free(doc);
    }
}

static void test_bench_long__trees_are_made_anew_and_judged(void **state)
{
    (void)state;
    char folder[] = "/tmp/kvist-long-XXXXXX", data[64], tree[64];
    base_err err = {0};
    int status = 9;
    assert_non_null(mkdtemp(folder));
    snprintf(data, sizeof data, "%s/data", folder);
    snprintf(tree, sizeof tree, "%s/a tree", folder);
    assert_int_equal(base_fs_mkdirs(data, NULL), 0);
    assert_int_equal(long_tree_run(folder,
                         "mkdir data/repos made && cd made && git init -q && echo one >file && git add -A && "
                         "git -c user.name=n -c user.email=e commit -q -m one && "
                         "git bundle create ../data/repos/made.bundle HEAD 2>/dev/null",
                         &status, NULL),
        0);
    assert_int_equal(status, 0);
    assert_int_equal(long_tree_make(data, "made", NULL, tree, &err), 0);
    assert_int_equal(long_tree_run(tree, "grep -q one file && echo more >other", &status, NULL), 0);
    assert_int_equal(status, 0);
    assert_int_equal(long_tree_make(data, "made", NULL, tree, &err), 0);
    assert_int_equal(long_tree_run(tree, "test -f other", &status, NULL), 0);
    assert_int_equal(status, 1);
    assert_int_equal(long_tree_make(data, "no such", NULL, tree, &err), BASE_E_IO);
    assert_non_null(strstr(err.msg, "the tree of no such could not be made"));
    base_fs_remove(folder, NULL);
}

#define LINE(session, arm, step, right, host, seconds)                                                       \
    "{\"bench\":\"long\",\"model\":\"m\",\"kind\":\"facts\",\"session\":\"" session "\",\"arm\":\"" arm      \
    "\",\"id\":\"id-" arm "\",\"step\":" step ",\"of\":2,\"asked\":true,\"right\":" right ",\"host\":" host  \
    ",\"seconds\":{\"message\":" seconds ",\"idle\":5},\"new\":10,\"rows\":100,\"peak_mb\":7}\n"

static void test_bench_long__tables_compare_finished_sessions(void **state)
{
    (void)state;
    static const char text[] =
        LINE("a", "full", "0", "true", "0", "1") LINE("a", "full", "1", "true", "0", "1")
            LINE("a", "kvist", "0", "true", "0", "2") LINE("a", "kvist", "1", "false", "9", "2")
                LINE("b", "full", "0", "true", "0", "1") "not a line\n{\"bench\":\"other\"}\n";
    base_buf lines = {0};
    base_buf_puts(&lines, text);
    char *id = NULL, *out = NULL;
    size_t n_out = 0;
    assert_int_equal(long_result_next(&lines, "m", "a", "kvist", &id), 2);
    assert_string_equal(id, "id-kvist");
    free(id);
    assert_int_equal(long_result_next(&lines, "m", "b", "full", &id), 1);
    free(id);
    assert_int_equal(long_result_next(&lines, "other", "b", "full", &id), 0);
    assert_null(id);
    FILE *to = open_memstream(&out, &n_out);
    long_summarise(&lines, to);
    fclose(to);
    assert_non_null(strstr(out, "right   2 of   2 (rows out: 0 of 0)  waited 2 s"));
    assert_non_null(strstr(out, "right   1 of   2 (rows out: 0 of 1)  waited 4 s: message 4.0"));
    assert_non_null(strstr(out, "against full -50.0 points [-50.0, -50.0]"));
    assert_non_null(strstr(out, "1 runs belong to sessions that not every arm has finished"));
    free(out);
    base_buf_free(&lines);
}

static void test_bench_long__sessions_are_drawn_again(void **state)
{
    (void)state;
    double low, high, mean;
    const double same[] = {4, 4, 4}, mixed[] = {-10, 0, 0, 0, 0, 0, 0, 0, 0, 10};
    bench_bootstrap(same, 3, 22, &mean, &low, &high);
    assert_true(mean == 4 && low == 4 && high == 4);
    bench_bootstrap(mixed, 10, 22, &mean, &low, &high);
    assert_true(fabs(mean) < 1e-9);
    assert_true(
        low >= -4 && low <= -2 && high >= 2 && high <= 4); /* two of ten differ: 1.4 points of error */
    bench_bootstrap(NULL, 0, 22, &mean, &low, &high);
    assert_true(mean == 0 && low == 0 && high == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bench_long__time_goes_to_the_part_that_took_it),
        cmocka_unit_test(test_bench_long__an_answer_holds_words_not_pieces_of_them),
        cmocka_unit_test(test_bench_long__trees_are_made_anew_and_judged),
        cmocka_unit_test(test_bench_long__tables_compare_finished_sessions),
        cmocka_unit_test(test_bench_long__sessions_are_drawn_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
