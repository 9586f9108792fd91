/*
 * A session over its turns on the scripted engine: rows and their ledger, staleness, undo, rewind.
 */
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "agent/session/ledger.h"
#include "agent/session/segments.h"
#include "agent/session/tell.h"
#include "stage.h"

/* --- memory --------------------------------------------------------------------------------------------- */

static void test_session__a_follow_up_computes_new_tokens_only(void **state)
{
    host h = new_host();
    agent_session *s = open_session(&h, "answer a\nanswer b\n", AGENT_MODE_ASK, NULL, true);
    submit(s, &h, "one");
    submit(s, &h, "two");
    long long n1 = 0, new1 = 0, reused = 0, new2 = 0;
    const char *first = strstr(h.json.data, "\"event\":\"ledger\""),
               *second = strstr(first + 1, "\"event\":\"ledger\"");
    assert_int_equal(sscanf(strstr(first, "\"new\":"), "\"new\":%lld", &new1), 1);
    assert_int_equal(sscanf(strstr(first, "\"n\":"), "\"n\":%lld", &n1), 1);
    assert_int_equal(sscanf(strstr(second, "\"reused\":"), "\"reused\":%lld", &reused), 1);
    assert_int_equal(sscanf(strstr(second, "\"new\":"), "\"new\":%lld", &new2), 1);
    assert_true(reused == n1 && new1 > 0 && new2 > 0 && new2 < 60);
    agent_session_close(s);
    free_host(&h);
}

static void test_session__what_the_person_changed_is_stale_and_told(void **state)
{
    put_program();
    host h = new_host();
    agent_session *s = open_session(&h, READ "answer seen\nanswer again\n", AGENT_MODE_ASK, NULL, true);
    submit(s, &h, "hello");
    put_file("add.sh", "add() {\n    echo 0\n}\n");
    submit(s, &h, "look again");
    assert_outline_has(&h, "user plan:stale notice");
    assert_sent(s, "$1 - $2", false);
    assert_sent(s, "changed on disk", true);
    assert_true(told(&h, "add.sh changed on disk since it was shown.\\nRequest: look again"));
    agent_session_close(s);
    free_host(&h);
}

static void test_session__undo_gives_the_file_back(void **state)
{
    put_program();
    host h = new_host();
    agent_session *s = open_session(&h, REWRITE(FIXED) "answer Fixed.\n", AGENT_MODE_ALL, NULL, true);
    submit(s, &h, "test_add.sh fails; fix it");
    assert_file("add.sh", FIXED);
    assert_int_equal(submit(s, &h, "/undo"), 0);
    assert_file("add.sh", PROGRAM);
    assert_non_null(strstr(h.outline.data, "undo "));
    agent_session_close(s);
    free_host(&h);
}

static void test_session__commands_act_on_rows_through_plans(void **state)
{
    NEEDS("rows: pins, reasons, plans that can be undone");
    put_program();
    host h = new_host();
    agent_session *s = open_session(&h, READ "answer seen\nanswer x\n", AGENT_MODE_ASK, NULL, true);
    submit(s, &h, "hello");
    base_buf_clear(&h.outline);
    assert_int_equal(submit(s, &h, "/pin add.sh"), 0);
    assert_int_equal(submit(s, &h, "/drop last"), BASE_E_STATE); /* it is pinned */
    assert_int_equal(submit(s, &h, "/unpin add.sh"), 0);
    assert_int_equal(submit(s, &h, "/drop last"), 0);
    assert_int_equal(submit(s, &h, "/why last"), 0);
    assert_true(told(&h, "barred; last bar for manual"));
    assert_int_equal(submit(s, &h, "/undo-evict"), 0);
    assert_int_equal(submit(s, &h, "/promote 10-20"), 0); /* they are there: nothing changes */
    assert_int_equal(submit(s, &h, "/evict last"), 0);
    assert_int_equal(submit(s, &h, "/promote last"), 0);
    assert_outline(&h,
        "plan:manual notice error plan:manual notice plan:manual notice notice plan:manual notice notice "
        "plan:manual notice plan:manual notice ");
    assert_int_equal(submit(s, &h, "/why 10-20"), 0);
    assert_true(told(&h, "10-20: active")); /* both ends, as they were given */
    assert_int_equal(submit(s, &h, "/pin 20-10"), BASE_E_USAGE);
    assert_int_equal(submit(s, &h, "/pin 0-4294967295"), BASE_E_USAGE);
    assert_int_equal(submit(s, &h, "/why 3"), 0);
    assert_true(told(&h, "\"3: active"));
    assert_int_equal(submit(s, &h, "! "), BASE_E_USAGE);
    assert_int_equal(submit(s, &h, "/pin nowhere"), BASE_E_NOT_FOUND);
    assert_int_equal(submit(s, &h, "/budget 10"), BASE_E_LIMIT);
    assert_int_equal(submit(s, &h, "/nonsense"), BASE_E_USAGE);
    assert_int_equal(submit(s, &h, "/context"), 0);
    assert_true(told(&h, "add.sh:1-3"));
    const char *prompt = strstr(h.json.data, "\\tsystem\\t"); /* many messages, one line */
    assert_true(prompt && !strstr(prompt + 1, "\\tsystem\\t"));
    assert_int_equal(submit(s, &h, "/help"), 0);
    assert_int_equal(submit(s, &h, "/mode plan"), 0);
    assert_true(told(&h, "mode plan"));
    agent_session_close(s);
    free_host(&h);
}

/*
 * Where an engine shows no rows, what asks for them says so, and text is left out or sent again as a whole.
 */
static void test_session__without_rows_commands_say_so(void **state)
{
    static const char *const refused[] = {
        "/pin last", "/unpin last", "/why 3", "/budget 3000", "/undo-evict"};
    if (!stage_chat) skip();
    put_program();
    host h = new_host();
    agent_session *s =
        open_session(&h, READ "answer seen\nanswer a\nanswer b\nanswer c\n", AGENT_MODE_ASK, NULL, true);
    submit(s, &h, "hello");
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
        assert_int_equal(submit(s, &h, refused[i]), BASE_E_UNSUPPORTED);
    assert_true(told(&h, "this engine shows no rows"));
    submit(s, &h, "more");
    assert_sent(s, "$1 - $2", true);
    assert_int_equal(submit(s, &h, "/drop last"), 0);
    submit(s, &h, "more");
    assert_sent(s, "$1 - $2", false);
    assert_sent(s, "hello", true);
    assert_int_equal(submit(s, &h, "/context"), 0);
    assert_true(told(&h, "0% active"));
    assert_int_equal(submit(s, &h, "/promote last"), 0);
    submit(s, &h, "more");
    assert_sent(s, "$1 - $2", true);
    agent_session_close(s);
    free_host(&h);
}

static void test_session__a_budget_is_told_at_once(void **state)
{
    NEEDS("rows: a budget of them");
    host h = new_host(), again = new_host();
    agent_session *s = open_session(&h, "answer a\nanswer b\n", AGENT_MODE_ASK, NULL, true);
    submit(s, &h, "one");
    long long new = last_number(&h, "\"event\":\"ledger\"", "new");
    base_buf_clear(&h.outline);
    assert_int_equal(submit(s, &h, "/budget 2200"), 0);
    assert_non_null(strstr(h.outline.data, "ledger"));
    assert_int_equal(last_number(&h, "\"event\":\"ledger\"", "budget"), 2200);
    assert_int_equal(last_number(&h, "\"event\":\"ledger\"", "new"), new); /* still turn 1's */
    agent_session_close(s);
    /* Also of a turn that another process ran. The session goes on under the budget that it had last. */
    s = open_session(&again, "answer c\n", AGENT_MODE_ASK, "", true);
    assert_int_equal(submit(s, &again, "/budget"), 0);
    assert_true(told(&again, "budget 2,200 rows"));
    assert_int_equal(submit(s, &again, "/budget off"), 0);
    assert_int_equal(last_number(&again, "\"event\":\"ledger\"", "budget"), 0);
    assert_int_equal(last_number(&again, "\"event\":\"ledger\"", "new"), new);
    agent_session_close(s);
    free_host(&h);
    free_host(&again);
}

/* The sum of the counts in "VERB 12 budget, 3 stale" of the last ledger's why. */
static long long sum_of_why(const host *h, const char *verb)
{
    const char *at = NULL;
    for (const char *p = h->json.data; p && (p = strstr(p, "\"event\":\"ledger\"")); p++) at = p;
    at = at ? strstr(at, "\"why\":") : NULL;
    at = at ? strstr(at, verb) : NULL;
    if (!at) return 0;
    long long sum = 0;
    for (at += strlen(verb); *at != ';' && *at != '"'; at++)
        if (*at == ' ' && at[1] >= '0' && at[1] <= '9') sum += strtoll(at, NULL, 10);
    return sum;
}

static void test_session__a_ledger_and_its_reasons_add_up(void **state)
{
    NEEDS("rows that a policy evicts");
    put_program();
    put_notes();
    host h = new_host(), again = new_host();
    agent_session *s = open_session(&h,
        "budget 2200\nrepair 16\n" NOTES("1") NOTES("2") "answer It subtracts. \n" NOTES("3")
            NOTES("4") "answer more words about add\nanswer x\n",
        AGENT_MODE_ASK, NULL, true);
    submit(s, &h, "what does add do?");
    base_buf_clear(&h.json);
    submit(s, &h, "and the test of add?");
    long long evicted = last_number(&h, "\"event\":\"ledger\"", "evicted"),
              promoted = last_number(&h, "\"event\":\"ledger\"", "promoted");
    assert_true(evicted > 0 && promoted > 0);
    assert_int_equal(sum_of_why(&h, "evicted"), evicted);
    assert_int_equal(sum_of_why(&h, "promoted"), promoted);
    assert_int_equal(
        last_number(&h, "\"event\":\"ledger\"", "n") - last_number(&h, "\"event\":\"ledger\"", "active"),
        last_number(&h, "\"event\":\"ledger\"", "host"));
    agent_session_close(s);
    s = open_session(&again, "budget 2200\nrepair 16\nanswer x\n", AGENT_MODE_ASK, "", true);
    agent__ledger(agent_session_agent(s)); /* the same again from the log */
    assert_int_equal(last_number(&again, "\"event\":\"ledger\"", "evicted"), evicted);
    assert_int_equal(sum_of_why(&again, "promoted"), promoted);
    agent_session_close(s);
    free_host(&h);
    free_host(&again);
}

static void test_session__rewind_new_and_compact(void **state)
{
    host h = new_host();
    agent_session *s =
        open_session(&h, "answer a\nanswer b\nanswer c\nanswer d\n", AGENT_MODE_ASK, NULL, true);
    char *first_id = base_xstrdup(agent_session_id(agent_session_agent(s)));
    submit(s, &h, "the first question about walruses");
    submit(s, &h, "two");
    assert_int_equal(submit(s, &h, "/rewind 2"), 0);
    assert_true(told(&h, "\"event\":\"rewind\",\"turn\":2"));
    assert_int_equal(submit(s, &h, "two again"), 0);
    assert_int_equal(submit(s, &h, "/compact"), 0);
    assert_string_not_equal(agent_session_id(agent_session_agent(s)), first_id);
    base_buf parent = {0};
    base_buf_printf(&parent, "\"parent\":\"%s\"", first_id);
    assert_true(told(&h, parent.data));
    assert_int_equal(submit(s, &h, "go on"), 0);
    assert_non_null(strstr(h.outline.data, "turn_end:closed "));
    base_buf_free(&parent);
    free(first_id);
    agent_session_close(s);
    free_host(&h);
}

#define WRITE_NEW                                                                                            \
    "answer <<X\nA new file.\n<tools>{\"name\": \"write\", \"arguments\": {\"path\": "                       \
    "\"d/new.sh\"}}</tools>\n"                                                                               \
    "```sh\necho new\n```\nX\n"
#define FIXED_AGAIN "add() {\n    echo $(($1 + $2 + 0))\n}\n"
#define TWO_TURNS                                                                                            \
    READ REWRITE(FIXED) "answer Fixed.\n" READ REWRITE(FIXED_AGAIN) WRITE_NEW "answer Again.\nanswer more\n"

/* Two turns write add.sh, the second one makes d/new.sh. */
static agent_session *open_two_turns(host *h)
{
    put_program();
    agent_session *s = open_session(h, TWO_TURNS, AGENT_MODE_ALL, NULL, true);
    submit(s, h, "fix `add` in add.sh");
    assert_file("add.sh", FIXED);
    submit(s, h, "add zero too in add.sh, and write d/new.sh");
    assert_file("add.sh", FIXED_AGAIN);
    assert_file("d/new.sh", "echo new\n");
    h->asked = 0;
    return s;
}

static void test_session__a_rewind_takes_the_files_of_its_turns_back(void **state)
{
    host h = new_host();
    agent_session *s = open_two_turns(&h);
    assert_int_equal(submit(s, &h, "/rewind 1"), 0);
    assert_int_equal(h.asked, 1);
    assert_true(told(&h, "rewind to before turn 1: take its files back too? (2 files, +1 -2)"));
    assert_file("add.sh", PROGRAM);
    assert_file("d/new.sh", "(missing)");
    assert_file("d", "(missing)");
    assert_true(told(&h, "\"event\":\"rewind\",\"turn\":1"));
    assert_true(
        told(&h, "\"summary\":\"files: 1 restored, 1 removed (add.sh, d/new.sh)\",\"changed\":[\"add.sh\","));
    assert_int_equal(submit(s, &h, "/undo"), 0);
    assert_true(told(&h, "undid what the rewind did to files: 2 restored (add.sh, d/new.sh)"));
    assert_file("add.sh", FIXED_AGAIN);
    assert_file("d/new.sh", "echo new\n");
    agent_session_close(s);
    free_host(&h);
}

static void test_session__a_rewind_can_leave_the_files_or_be_left(void **state)
{
    host h = new_host();
    agent_session *s = open_two_turns(&h);
    h.answer = AGENT_NO;
    h.cancel_at_question = true;
    assert_int_equal(submit(s, &h, "/rewind 2"), 0);
    assert_false(told(&h, "\"event\":\"rewind\""));
    assert_true(told(&h, "not rewound"));
    assert_file("add.sh", FIXED_AGAIN);
    h.cancel_at_question = false;
    assert_int_equal(submit(s, &h, "/rewind 2"), 0);
    assert_int_equal(h.asked, 2);
    assert_true(told(&h, "\"event\":\"rewind\",\"turn\":2"));
    assert_file("add.sh", FIXED_AGAIN);
    assert_file("d/new.sh", "echo new\n");
    /* What the person left once belongs to no turn any more: the first turn's own text is what comes back. */
    h.answer = AGENT_YES;
    put_file("add.sh", "mine\n");
    assert_int_equal(submit(s, &h, "/rewind 1"), 0);
    assert_int_equal(h.asked, 2);
    assert_true(told(&h, "add.sh stays as it is: it was changed after kvist wrote it"));
    assert_true(told(&h, "\"event\":\"rewind\",\"turn\":1"));
    assert_file("add.sh", "mine\n");
    agent_session_close(s);
    free_host(&h);
}

static void test_session__a_rewind_asks_nobody_where_nobody_is(void **state)
{
    put_program();
    host h = new_host();
    agent_session *s = open_session(&h, REWRITE(FIXED) "answer Fixed.\n", AGENT_MODE_ALL, NULL, false);
    submit(s, &h, "fix `add` in add.sh");
    assert_file("add.sh", FIXED);
    assert_int_equal(submit(s, &h, "/rewind"), 0);
    assert_true(told(&h, "nobody can be asked"));
    assert_true(told(&h, "\"event\":\"rewind\",\"turn\":1"));
    assert_file("add.sh", FIXED);
    agent_session_close(s);
    free_host(&h);
}

static void test_session__exports_a_page_and_events(void **state)
{
    host h = new_host();
    agent_session *s = open_session(&h, "answer it has tusks\n", AGENT_MODE_ASK, NULL, true);
    submit(s, &h, "what has a walrus?");
    static const char *const lines[] = {"%s/a.md", "%s/b --markdown", "--markdown %s/c", "%s/d"};
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        base_buf line = {0}, path = {0};
        base_buf_puts(&line, "/export ");
        base_buf_printf(&line, lines[i], tree);
        assert_int_equal(submit(s, &h, line.data), 0);
        assert_int_equal(submit(s, &h, line.data), BASE_E_USAGE); /* no file is written over */
        base_buf_printf(&path, "%c%s", 'a' + (int)i, i ? "" : ".md");
        char *text = get_file(path.data);
        const bool is_page = i < 3;
        assert_true(!!strstr(text, "## Request\n\nwhat has a walrus?\n\nit has tusks") == is_page);
        assert_true(!!strstr(text, "{\"event\":\"user\"") == !is_page);
        free(text);
        base_buf_free(&line);
        base_buf_free(&path);
    }
    agent_session_close(s);
    free_host(&h);
}

static void test_session__a_shell_line_runs_unasked_and_is_seen_by_the_next_request(void **state)
{
    host h = new_host();
    agent_session *s = open_session(&h, "answer ok\n", AGENT_MODE_ASK, NULL, true);
    assert_int_equal(submit(s, &h, "!echo marmalade"), 0);
    assert_int_equal(h.asked, 0);
    submit(s, &h, "what did I run?");
    assert_true(told(&h, "The person ran: $ echo marmalade"));
    agent_session_close(s);
    free_host(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST_CASE(test_session__a_follow_up_computes_new_tokens_only),
        TEST_CASE(test_session__what_the_person_changed_is_stale_and_told),
        TEST_CASE(test_session__undo_gives_the_file_back),
        TEST_CASE(test_session__commands_act_on_rows_through_plans),
        TEST_CASE(test_session__without_rows_commands_say_so),
        TEST_CASE(test_session__a_budget_is_told_at_once),
        TEST_CASE(test_session__a_ledger_and_its_reasons_add_up),
        TEST_CASE(test_session__rewind_new_and_compact),
        TEST_CASE(test_session__a_rewind_takes_the_files_of_its_turns_back),
        TEST_CASE(test_session__a_rewind_can_leave_the_files_or_be_left),
        TEST_CASE(test_session__a_rewind_asks_nobody_where_nobody_is),
        TEST_CASE(test_session__exports_a_page_and_events),
        TEST_CASE(test_session__a_shell_line_runs_unasked_and_is_seen_by_the_next_request),
    };
    return RUN_ON_BOTH(tests);
}
