/*
 * Values that a request gives ("twice(2) should be 4") judge a change where no test does, and choose among candidates.
 */
#include <sys/stat.h>
#include <unistd.h>

#include "stage.h"

#define PY_DOUBLE "def twice(x):\n    return x + x\n"
#define WRITE_PY(name, text)                                                                                 \
    "answer <<X\n<tools>{\"name\": \"rewrite\", \"arguments\": {\"path\": \"num.py\", \"name\": \"" name     \
    "\"}}</tools>\n```python\n" text "```\nX\n"
/* Behind the call and the bracket, which the program writes. */
#define THRICE(body) "answer <<X\nx):\n    return " body "\n```\nX\n"

static agent_session *open_numbers(host *h, const char *script, agent_mode mode)
{
    put_file("num.py", PY_DOUBLE);
    return open_session(h, script, mode, NULL, false);
}

static void test_judge_values__values_of_the_request_judge(void **state)
{
    host h = new_host();
    agent_session *s = open_numbers(&h, THRICE("3 * x") "answer Added.\n", AGENT_MODE_ALL);
    assert_int_equal(
        submit(s, &h, "Add a function thrice to num.py: thrice(2) is 6 and thrice('a') is 'aaa'"), 0);
    assert_true(told(&h, "$ values of the request"));
    assert_true(told(&h, "checked by values of your request: 2 of 2"));
    assert_true(told(&h, "Checked by values of your request: 2 of 2."));
    assert_true(told(&h, "\"state\":\"changed\"")); /* some values are not all that was asked for */
    agent_session_close(s);
    free_host(&h);
}

/* What would run the tree's tests is missing: the values have judged, and that is said. */
static void test_judge_values__values_judge_where_the_runner_is_missing(void **state)
{
    put_file("test_num.py", "import num\n\n\ndef test_double():\n    assert num.double(2) == 4\n");
    host h = new_host();
    agent_session *s = open_numbers(&h, THRICE("3 * x") "answer Added.\n", AGENT_MODE_ALL);
    char *path = base_xstrdup(getenv("PATH"));
    char bin[] = "/tmp/kvist-no-pytest-XXXXXX";
    base_buf first = {0}, python = {0};
    assert_non_null(mkdtemp(bin));
    base_buf_printf(&python, "%s/python3", bin);
    FILE *f = fopen(python.data, "w");
    fputs("#!/bin/sh\n[ \"$2\" = pytest ] && { echo 'No module named pytest'; exit 1; }\n"
          "exec /usr/bin/python3 \"$@\"\n",
        f);
    fclose(f);
    chmod(python.data, 0755);
    base_buf_printf(&first, "%s:%s", bin, path);
    setenv("PATH", first.data, 1);
    submit(s, &h, "Add a function thrice to num.py: thrice(2) is 6");
    setenv("PATH", path, 1);
    unlink(python.data);
    rmdir(bin);
    if (!told(&h, "Checked by values of your request: 1 of 1. The tree's own tests could not judge it.") ||
        told(&h, "No test has judged it"))
        fail_msg("%s", h.json.data);
    agent_session_close(s);
    free_host(&h);
    base_buf_free(&first);
    base_buf_free(&python);
    free(path);
}

static void test_judge_values__wrong_values_go_back(void **state)
{
    host h = new_host();
    agent_session *s = open_numbers(&h,
        THRICE("x + x") "answer <<X\nx + x`.\ndef thrice(x):\n    return 3 * x\n```\nX\nanswer Added.\n",
        AGENT_MODE_ALL);
    agent_session_agent(s)->settings.tries = 0;
    assert_int_equal(
        submit(s, &h, "Add a function thrice to num.py: thrice(2) is 6 and thrice('') is ''"), 0);
    assert_true(told(&h, "checked by values of the request: 1 of 2 hold"));
    assert_true(told(&h, "thrice(2) gives 4, and should give 6"));
    assert_true(told(&h, "Checked by values of your request: 2 of 2."));
    assert_file("num.py", PY_DOUBLE "\ndef thrice(x):\n    return 3 * x\n");
    agent_session_close(s);
    free_host(&h);
}

/* Which value it is stands in the turn's last line. */
static void test_judge_values__the_value_that_fails_is_named(void **state)
{
    host h = new_host();
    agent_session *s =
        open_numbers(&h, THRICE("x + x") "answer Added.\nanswer Added.\nanswer Added.\n", AGENT_MODE_ALL);
    agent_session_agent(s)->settings.tries = 0;
    submit(s, &h, "Add a function thrice to num.py: thrice(0) is 0 and thrice(2) is 6");
    assert_true(
        told(&h, "Of the values that your request gives 1 of 2 hold: thrice(2) gives 4, and should give 6."));
    assert_true(told(&h, "\"state\":\"failing\""));
    agent_session_close(s);
    free_host(&h);
}

/* Candidates are tried with the values. */
static void test_judge_values__values_choose_a_candidate(void **state)
{
    NEEDS(
        "branches"); /* the second candidate may be begun while the first is tried, or not: an answer more */
    host h = new_host();
    agent_session *s = open_numbers(&h,
        THRICE("x + x") "answer <<X\n"
                        "x + x`.\n"
                        "def thrice(x):\n"
                        "    return 3 * x\n"
                        "```\n"
                        "X\n"
                        "answer Added.\n"
                        "answer Added.\n",
        AGENT_MODE_ALL);
    agent_session_agent(s)->settings.tries = 2;
    assert_int_equal(submit(s, &h, "Add a function thrice to num.py: thrice(2) is 6"), 0);
    assert_true(told(&h, "\"number\":1,\"of\":2,\"status\":\"passed\""));
    assert_true(told(&h, "Checked by values of your request: 1 of 1."));
    agent_session_close(s);
    free_host(&h);
}

/* A tree in which no such program runs refuses no change. */
static void test_judge_values__values_that_cannot_run_are_told(void **state)
{
    host h = new_host();
    put_file("num.py", "import not_here_at_all\n\n\n" PY_DOUBLE);
    agent_session *s = open_session(&h, THRICE("3 * x") "answer Added.\n", AGENT_MODE_ALL, NULL, false);
    assert_int_equal(submit(s, &h, "Add a function thrice to num.py: thrice(2) is 6"), 0);
    assert_true(told(&h, "the values of the request cannot be checked here: "));
    assert_true(told(&h, "No test has judged it."));
    agent_session_close(s);
    free_host(&h);
}

static void test_judge_values__values_that_held_before_say_nothing(void **state)
{
    host h = new_host();
    agent_session *s = open_numbers(
        &h, WRITE_PY("twice", "def twice(x):\n    return 2 * x\n") "answer Done.\n", AGENT_MODE_ALL);
    assert_int_equal(submit(s, &h, "Let twice multiply: twice(2) should be 4"), 0);
    assert_true(told(&h, "hold without the change too"));
    assert_false(told(&h, "Checked by values"));
    agent_session_close(s);
    free_host(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST_CASE(test_judge_values__values_of_the_request_judge),
        TEST_CASE(test_judge_values__wrong_values_go_back),
        TEST_CASE(test_judge_values__values_judge_where_the_runner_is_missing),
        TEST_CASE(test_judge_values__the_value_that_fails_is_named),
        TEST_CASE(test_judge_values__values_choose_a_candidate),
        TEST_CASE(test_judge_values__values_that_cannot_run_are_told),
        TEST_CASE(test_judge_values__values_that_held_before_say_nothing),
    };
    return RUN_ON_BOTH(tests);
}
