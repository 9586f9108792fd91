/* How much of a file or a result one message brings, whatever the budget of rows is. */
#include "stage.h"

/* A function: 4 lines, 21 tokens of the engines here. */
static void put_functions(const char *name, uint32_t n)
{
    base_buf text = {0};
    for (uint32_t i = 0; i < n; i++)
        base_buf_printf(&text, "int part_%u(int a)\n{\n    return a + %u;\n}\n", i, i * 7);
    put_file(name, text.data);
    base_buf_free(&text);
}

static host ask(const char *script, bool can_ask, agent_answer answer, const char *request)
{
    host h = new_host();
    h.answer = answer;
    agent_session *s = open_session(&h, script, AGENT_MODE_ASK, NULL, can_ask);
    base_buf_clear(&h.json);
    assert_int_equal(submit(s, &h, request), 0);
    agent_session_close(s);
    return h;
}

static void test_room__a_named_file_comes_whole_under_any_budget(void **state)
{
    put_functions("big.c", 180);
    host h = ask("ctx 12000\nbudget 2600\nanswer Yes.\n", true, AGENT_YES, "What is in @big.c ?");
    assert_true(told(&h, "return a + 1253;")); /* the last one */
    assert_int_equal(h.asked, 0);
    assert_false(told(&h, "first part"));
    if (!stage_chat) {
        const char *file = strstr(h.json.data, "\"path\":\"big.c\",\"line\":1"),
                   *request = strstr(h.json.data, "\"label\":\"request\""),
                   *plan = strstr(h.json.data, "\"event\":\"plan\"");
        assert_true(file && request && plan);
        assert_true(plan > request); /* nothing was evicted while the file came */
        assert_true(last_number(&h, "\"event\":\"ledger\"", "n") > 2600);
        assert_true(last_number(&h, "\"event\":\"ledger\"", "active") <= 2600);
    }
    free_host(&h);
}

static void test_room__beyond_half_of_the_context_the_person_decides(void **state)
{
    put_functions("big.c", 240);
    static const char script[] = "ctx 9000\nbudget 2600\nanswer Yes.\n";
    host h = ask(script, true, AGENT_YES, "What is in @big.c ?");
    assert_int_equal(h.asked, 1);
    assert_true(told(&h, "in 960 lines, more than half of the model's context of 9,000"));
    assert_true(told(&h, "return a + 1673;"));
    free_host(&h);

    h = ask(script, true, AGENT_NO, "What is in @big.c ?");
    assert_int_equal(h.asked, 1);
    assert_true(told(&h, "@big.c is left out"));
    assert_false(told(&h, "\"why\":\"@file\""));
    free_host(&h);

    h = ask(script, false, AGENT_NO, "What is in @big.c ?"); /* nobody to ask */
    assert_int_equal(h.asked, 0);
    assert_true(told(&h, "nobody can be asked in this run: its first 4,500 tokens are put in front"));
    assert_true(told(&h, "return a + 0;"));
    assert_false(told(&h, "return a + 1673;"));
    free_host(&h);
}

static void test_room__files_of_one_message_share_it(void **state)
{
    put_functions("one.c", 120);
    put_functions("two.c", 140);
    host h = ask("ctx 9000\nbudget 2600\nanswer Yes.\n", true, AGENT_YES, "Compare @one.c and @two.c please");
    assert_int_equal(h.asked, 1); /* for the second */
    assert_true(told(&h, "@two.c: "));
    assert_true(told(&h, "more than half of the model's context of 9,000 with what else this message names"));
    assert_true(told(&h, "return a + 833;"));
    assert_true(told(&h, "return a + 973;"));
    free_host(&h);
}

static void test_room__what_the_context_cannot_hold_is_said(void **state)
{
    put_functions("big.c", 300);
    host h = ask("ctx 7000\nbudget 2600\nanswer Yes.\n", true, AGENT_YES, "What is in @big.c ?");
    assert_int_equal(h.asked, 1);
    assert_true(told(&h, " have room"));
    assert_true(told(&h, "return a + 0;"));
    assert_false(told(&h, "return a + 2093;"));
    free_host(&h);

    put_functions("small.c", 150);
    put_functions("next.c", 100);
    h = new_host();
    agent_session *s = open_session(
        &h, "ctx 7000\nbudget 2600\nanswer Yes.\nanswer Yes.\nanswer Yes.\n", AGENT_MODE_ASK, NULL, true);
    assert_int_equal(submit(s, &h, "Read @small.c now"), 0);
    assert_int_equal(submit(s, &h, "Read @next.c too"), 0);
    assert_true(told(&h, "that the session's context has left: its first part is put in front"));
    assert_int_equal(h.asked, 0);
    agent_session_close(s);
    free_host(&h);
}

static void test_room__a_line_that_does_not_fit_is_said(void **state)
{
    base_buf text = {0};
    for (uint32_t i = 0; i < 8000; i++) base_buf_printf(&text, "a%u;", i);
    put_file("min.js", text.data);
    base_buf_free(&text);
    host h = ask("ctx 6000\nanswer Yes.\n", false, AGENT_NO, "What is in @min.js ?");
    assert_true(told(&h, "@min.js: no line of it fits into that"));
    free_host(&h);
}

/* The same page, to the byte. */
static void test_room__results_keep_their_pages_under_any_budget(void **state)
{
    static const char *const scripts[] = {"ctx 20000\n", "ctx 20000\nbudget 2600\n"};
    uint32_t n_shown[2] = {0};
    put_functions("big.c", 700);
    for (int i = 0; i < 2; i++) {
        base_buf script = {0};
        base_buf_printf(&script,
            "%sanswer <tools>{\"name\": \"read\", \"arguments\": "
            "{\"path\": \"big.c\", \"count\": 2000}}</tools>\n"
            "answer ok\n",
            scripts[i]);
        host h = ask(script.data, true, AGENT_YES, "read it");
        const char *at = strstr(h.json.data, "\"event\":\"tool_result\""), *to = at ? strchr(at, '\n') : NULL;
        assert_non_null(to);
        assert_true(to - at > 15000);
        for (const char *p = at; (p = strstr(p, "return a + ")) && p < to; p++) n_shown[i]++;
        free_host(&h);
        base_buf_free(&script);
    }
    assert_true(n_shown[0] > 200);
    assert_int_equal(n_shown[0], n_shown[1]);
}

static void test_room__names_beyond_the_most_are_told(void **state)
{
    static const char *const names[] = {
        "a.txt", "b.txt", "c.txt", "d.txt", "e.txt", "f.txt", "g.txt", "h.txt"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) put_file(names[i], "A line of text.\n");
    host h = ask("ctx 20000\nanswer Yes.\n", false, AGENT_NO,
        "Compare @a.txt @b.txt @c.txt @d.txt @e.txt @f.txt @g.txt and @h.txt.");
    assert_true(told(&h, "\"path\":\"f.txt\""));
    assert_true(told(&h, "@g.txt, @h.txt were not looked at: a request brings at most 6 files and names"));
    assert_false(told(&h, "\"path\":\"g.txt\""));
    free_host(&h);

    h = ask("ctx 20000\nanswer Yes.\n", false, AGENT_NO,
        "Compare @a.txt @b.txt @c.txt @d.txt @e.txt @f.txt in words");
    assert_false(told(&h, "not looked at")); /* six are looked at, and no more were named */
    free_host(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST_CASE(test_room__a_named_file_comes_whole_under_any_budget),
        TEST_CASE(test_room__beyond_half_of_the_context_the_person_decides),
        TEST_CASE(test_room__files_of_one_message_share_it),
        TEST_CASE(test_room__what_the_context_cannot_hold_is_said),
        TEST_CASE(test_room__a_line_that_does_not_fit_is_said),
        TEST_CASE(test_room__results_keep_their_pages_under_any_budget),
        TEST_CASE(test_room__names_beyond_the_most_are_told),
    };
    return RUN_ON_BOTH(tests);
}
