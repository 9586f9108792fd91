/*
 * Candidates: sampled in branches, tried in a copy of the tree, the first that passes goes the way of any
 * other call.
 */
#include "agent/turn/turn.h"
#include "stage.h"

/* What the model says behind the harness's opening: the end of a line, then the body of the fence. */
#define BODY(text) "answer <<X\necho`.\n" text "```\nX\n"
#define WRONG(n)   "add() {\n    echo " #n "\n}\n"
#define TIMES      "add() {\n    echo $(($1 * $2))\n}\n"
#define NOTED_TEST "echo ran >> ran.log\n" TEST
#define TEST_FAILS "test_add.sh fails; fix it"

static agent_session *open_tries(host *h, const char *script, agent_mode mode, const char *tries)
{
    put_file("add.sh", PROGRAM);
    put_file("test_add.sh", NOTED_TEST);
    agent_session *s = open_session(h, script, mode, NULL, true);
    base_buf command = {0};
    base_buf_printf(&command, "/tries %s", tries);
    assert_int_equal(submit(s, h, command.data), 0);
    base_buf_free(&command);
    base_buf_clear(&h->outline);
    base_buf_clear(&h->json);
    return s;
}

static void test_tries__the_first_that_passes_is_offered_and_the_others_stay_in_the_log(void **state)
{
    NEEDS("branches");
    host h = new_host();
    agent_session *s = open_tries(
        &h, REWRITE(TIMES) BODY(WRONG(1)) BODY(FIXED) BODY(WRONG(2)) "answer Fixed.\n", AGENT_MODE_ASK, "6");
    assert_int_equal(submit(s, &h, TEST_FAILS), 0);
    assert_file("add.sh", FIXED);
    assert_int_equal(h.asked, 2); /* the test and the rewrite: candidates ask nothing */
    assert_non_null(strstr(h.outline.data, "shell:failed candidate notice candidate notice candidate "
                                           "notice tool_call approval_request approval:yes rewrite:ok"));
    assert_true(told(&h, "\"number\":1,\"of\":6,\"status\":\"failed\""));
    assert_true(told(&h, "\"number\":3,\"of\":6,\"status\":\"passed\""));
    assert_false(told(&h, "\"number\":4,"));
    assert_file("ran.log", "ran\nran\n"); /* before and after the change: the others ran elsewhere */
    /* A branch costs its own tokens: the session's are shared, and are as many for each. */
    long long shared = last_number(&h, "\"event\":\"candidate\"", "shared");
    long long own = last_number(&h, "\"event\":\"candidate\"", "tokens");
    assert_true(shared > 100 && own > 0 && own < shared);
    char *log = logged(agent_session_id(agent_session_agent(s)));
    assert_non_null(strstr(log, "echo $(($1 * $2))"));
    assert_non_null(strstr(log, "\"status\":\"passed\""));
    free(log);
    agent_session_close(s);
    free_host(&h);
}

static void test_tries__the_winner_can_be_undone(void **state)
{
    host h = new_host();
    agent_session *s =
        open_tries(&h, REWRITE(TIMES) BODY(FIXED) BODY(WRONG(1)) "answer Fixed.\n", AGENT_MODE_EDITS, "3");
    assert_int_equal(submit(s, &h, TEST_FAILS), 0);
    assert_file("add.sh", FIXED);
    assert_int_equal(submit(s, &h, "/undo"), 0);
    assert_file("add.sh", PROGRAM);
    agent_session_close(s);
    free_host(&h);
}

/* Nothing may judge then, and nothing is tried. */
static void test_tries__a_no_to_the_test_is_a_no_to_candidates(void **state)
{
    host h = new_host();
    agent_session *s = open_tries(&h, REWRITE(FIXED) "answer Then not.\n", AGENT_MODE_ASK, "2");
    h.answer = AGENT_NO;
    assert_int_equal(submit(s, &h, TEST_FAILS), 0);
    assert_file("add.sh", PROGRAM);
    assert_false(told(&h, "\"event\":\"candidate\""));
    agent_session_close(s);
    free_host(&h);
}

static void test_tries__where_none_passes_it_goes_on_as_without(void **state)
{
    NEEDS("branches");
    host h = new_host();
    agent_session *s = open_tries(&h,
        REWRITE(TIMES) "answer <<X\necho`.\n" TIMES "```\nX\n"
                       "answer <<X\nhm\nno code at all\nX\n" REWRITE(FIXED) "answer Fixed.\n",
        AGENT_MODE_ALL, "3");
    assert_int_equal(submit(s, &h, TEST_FAILS), 0);
    assert_true(told(&h, "\"number\":2,\"of\":3,\"status\":\"the same as an earlier one\""));
    assert_true(told(&h, "\"number\":3,\"of\":3,"));
    assert_false(told(&h, "\"status\":\"passed\""));
    assert_file("add.sh", FIXED);
    assert_file("ran.log", "ran\nran\n");
    agent_session_close(s);
    free_host(&h);
}

static void test_tries__a_test_that_the_model_ran_may_judge_too(void **state)
{
    NEEDS("branches");
    host h = new_host();
    agent_session *s = open_tries(&h,
        READ "answer <tools>{\"name\": \"shell\", \"arguments\": {\"command\": \"sh "
             "test_add.sh\"}}</tools>\n" REWRITE(FIXED) BODY(WRONG(1)) "answer Done.\n",
        AGENT_MODE_ALL, "2");
    assert_int_equal(submit(s, &h, "is add.sh right?"), 0);
    assert_true(told(&h, "\"number\":1,\"of\":2,\"status\":\"passed\""));
    assert_file("add.sh", FIXED);
    agent_session_close(s);
    free_host(&h);
}

/*
 * Tokens of the winner are tokens of the session, those of the others are not: a resume without the rows
 * reaches the same.
 */
static void test_tries__a_resumed_session_has_the_winner_only(void **state)
{
    host h = new_host();
    agent_session *s =
        open_tries(&h, REWRITE(TIMES) BODY(FIXED) BODY(WRONG(1)) "answer Fixed.\n", AGENT_MODE_ALL, "3");
    assert_int_equal(submit(s, &h, TEST_FAILS), 0);
    char *id = base_xstrdup(agent_session_id(agent_session_agent(s)));
    uint32_t n, n_again;
    agent *a = agent_session_agent(s);
    const int32_t *ids = a->engine->ops->ids(a->engine, &n);
    int32_t *copy = base_xcalloc(n, sizeof *copy);
    memcpy(copy, ids, n * sizeof *copy);
    agent_session_close(s);
    s = open_session(&h, "answer Again.\n", AGENT_MODE_ALL, id, true);
    a = agent_session_agent(s);
    ids = a->engine->ops->ids(a->engine, &n_again);
    assert_int_equal(n, n_again);
    assert_memory_equal(ids, copy, n * sizeof *copy);
    agent_session_close(s);
    free(copy);
    free(id);
    free_host(&h);
}

static void test_tries__refuses_what_is_no_number(void **state)
{
    host h = new_host();
    put_program();
    agent_session *s = open_session(&h, "answer x\n", AGENT_MODE_ASK, NULL, true);
    assert_int_not_equal(submit(s, &h, "/tries many"), 0);
    assert_int_not_equal(submit(s, &h, "/tries -1"), 0);
    assert_int_not_equal(submit(s, &h, "/tries 33"), 0);
    assert_int_equal(submit(s, &h, "/tries 0"), 0);
    agent_session_close(s);
    free_host(&h);
}

static agent_session *open_by_mode(host *h, agent_mode mode)
{
    put_program();
    agent_session *s =
        open_session(h, REWRITE(TIMES) BODY(FIXED) BODY(WRONG(1)) "answer Done.\n", mode, NULL, true);
    agent_session_agent(s)->settings.tries = AGENT_TRIES_BY_MODE;
    assert_int_equal(submit(s, h, TEST_FAILS), 0);
    return s;
}

static void test_tries__are_usual_where_changes_are_not_asked_about(void **state)
{
    NEEDS("branches");
    static const struct {
        agent_mode mode;
        uint32_t n, asked;
    } modes[] = {{AGENT_MODE_ALL, AGENT_USUAL_TRIES, 0}, {AGENT_MODE_EDITS, AGENT_USUAL_TRIES, 1}};
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        host h = new_host();
        agent_session *s = open_by_mode(&h, modes[i].mode);
        assert_int_equal(agent__tries(agent_session_agent(s)), modes[i].n);
        assert_true(told(&h, "\"number\":2,\"of\":6,\"status\":\"passed\""));
        assert_int_equal(h.asked, modes[i].asked); /* one yes to the test is for the whole turn */
        assert_file("add.sh", FIXED);
        agent_session_close(s);
        free_host(&h);
    }
    host h = new_host();
    agent_session *s = open_by_mode(&h, AGENT_MODE_ASK);
    assert_int_equal(agent__tries(agent_session_agent(s)), 0);
    assert_false(told(&h, "\"event\":\"candidate\""));
    agent_session_close(s);
    free_host(&h);
}

/*
 * Models whose calls stand between control tokens: a line is begun, then the call in their form, whose last argument is
 * the new text, quoted. c: the channels of the script.
 */
#define QUOTED(sign) "add() {\\n    echo $(($1 " sign " $2))\\n}\\n"
#define MISTRAL(sign)                                                                                        \
    "answer <<X\n[TOOL_CALLS]rewrite[ARGS]{\"path\": \"add.sh\", \"name\": \"add\", \"content\": \"" QUOTED( \
        sign) "\"}\nX\n"
#define HARMONY(sign)                                                                                        \
    "answer <<X\n<|channel|>analysis<|message|>The sign.<|end|><|start|>assistant<|channel|>commentary "     \
    "to=functions.rewrite <|constrain|>json<|message|>{\"path\": \"add.sh\", \"name\": \"add\", "            \
    "\"content\": \"" QUOTED(sign) "\"}<|call|>\nX\n"

static void check_marked(const char *script, const char *begun)
{
    host h = new_host();
    agent_session *s = open_tries(&h, script, AGENT_MODE_ALL, "4");
    assert_int_equal(submit(s, &h, TEST_FAILS), 0);
    assert_true(told(&h, "\"number\":1,\"of\":4,\"status\":\"failed\""));
    assert_true(told(&h, "\"number\":3,\"of\":4,\"status\":\"passed\""));
    assert_false(told(&h, "\"number\":4,"));
    assert_file("add.sh", FIXED);
    char *log = logged(agent_session_id(agent_session_agent(s)));
    assert_null(strstr(log, "\\u001e")); /* what tells marks from text is in no event */
    free(log);
    agent *a = agent_session_agent(s);
    base_buf all = {0};
    uint32_t n;
    const int32_t *ids = a->engine->ops->ids(a->engine, &n);
    for (uint32_t i = 0; i < n; i++) {
        size_t len;
        const char *piece = a->engine->ops->piece(a->engine, ids[i], &len);
        base_buf_add(&all, piece, len);
    }
    assert_non_null(strstr(all.data, begun));
    base_buf_free(&all);
    agent_session_close(s);
    free_host(&h);
}

static void test_tries__begin_calls_in_the_form_of_mistral(void **state)
{
    NEEDS("branches");
    check_marked("channels 2\n" MISTRAL("*") "answer <<X\necho`.\n" QUOTED(
                     "/") "\"}\nX\n"
                          "answer <<X\necho`.[TOOL_CALLS]" QUOTED("+") "\"}\nX\n"
                                                                       "answer <<X\necho`.\n" QUOTED(
                                                                           "%") "\"}\nX\n"
                                                                                "answer Fixed.\n",
        "`echo`.[TOOL_CALLS]rewrite[ARGS]{\"path\": \"add.sh\", \"name\": \"add\", \"content\": \"add()");
}

static void test_tries__begin_calls_in_the_form_of_harmony(void **state)
{
    NEEDS("branches");
    check_marked(
        "channels 1\n" HARMONY("*") "answer <<X\necho`.\n" QUOTED(
            "/") "\"}<|call|>\nX\n"
                 "answer <<X\necho`.<|end|>" QUOTED(
                     "+") "\"}<|call|>\nX\n"
                          "answer <<X\necho`.\n" QUOTED("%") "\"}<|call|>\nX\n"
                                                             "answer <|channel|>final<|message|>Fixed.\n",
        "<|channel|>analysis<|message|>The wrong line in the definition of `add` is `echo`.<|end|><|start|>"
        "assistant<|channel|>commentary to=functions.rewrite <|constrain|>json<|message|>{\"path\": "
        "\"add.sh\", "
        "\"name\": \"add\", \"content\": \"add()");
}

/* Gemma's text is not quoted. */
static void test_tries__begin_calls_in_the_form_of_gemma(void **state)
{
    NEEDS("branches");
#define PLAIN(sign)      "add() {\n    echo $(($1 " sign " $2))\n}\n<|\"|>}<tool_call|>\nX\n"
#define BEGUN(end, sign) "answer <<X\necho`." end PLAIN(sign)
    check_marked(
        "channels 5\nanswer <<X\n<|tool_call>call:rewrite{name:<|\"|>add<|\"|>,path:<|\"|>add.sh<|\"|>,"
        "content:<|\"|>" PLAIN("*") BEGUN("\n", "/") BEGUN("<|tool_call>", "+")
            BEGUN("\n", "%") "answer Fixed.\n",
        "`echo`.<|tool_call>call:rewrite{path:<|\"|>add.sh<|\"|>,name:<|\"|>add<|\"|>,content:<|\"|>add()");
#undef BEGUN
#undef PLAIN
}

/* Without candidates: the first answer only talks, and the call is begun for the next one. */
static void test_tries__a_begun_rewrite_between_marks_repairs(void **state)
{
    NEEDS("branches");
    host h = new_host();
    agent_session *s = open_tries(&h,
        "channels 2\nanswer It looks fine.\nanswer <<X\necho`.\n" QUOTED("+") "\"}\nX\nanswer Fixed.\n",
        AGENT_MODE_ALL, "0");
    assert_int_equal(submit(s, &h, TEST_FAILS), 0);
    assert_file("add.sh", FIXED);
    agent_session_close(s);
    free_host(&h);
}

/* A candidate's thought has the same limit. */
static void test_tries__a_candidate_thinks_for_a_while(void **state)
{
    NEEDS("branches");
    host h = new_host();
    agent_session *s = open_tries(&h,
        "channels 3\n"
        "answer <<X\n"
        "<think>one two six ten<tools>{\"name\": \"rewrite\", \"arguments\": {\"path\": "
        "\"add.sh\", \"name\": \"add\"}}</tools>\n```sh\n" FIXED "```\nX\n" BODY(WRONG(1)) "answer Fixed.\n",
        AGENT_MODE_ALL, "2");
    agent_session_agent(s)->settings.max_thought = 5;
    assert_int_equal(submit(s, &h, TEST_FAILS), 0);
    assert_true(told(&h, "--max-thought"));
    assert_true(told(&h, "\"number\":1,\"of\":2,\"status\":\"passed\""));
    assert_file("add.sh", FIXED);
    agent_session_close(s);
    free_host(&h);
}

/* What a candidate thinks is not read for calls, and is no text of it. */
static void test_tries__a_thought_is_no_part_of_a_candidate(void **state)
{
    NEEDS("branches");
    host h = new_host();
    agent_session *s = open_tries(&h,
        "channels 3\nanswer <<X\n<think>\nPerhaps <tools>{\"name\": \"shell\"}</tools>?\n</think>\n\n"
        "<tools>{\"name\": \"rewrite\", \"arguments\": {\"path\": \"add.sh\", \"name\": "
        "\"add\"}}</tools>\n```sh\n" FIXED "```\nX\n" BODY(WRONG(1)) "answer Fixed.\n",
        AGENT_MODE_ALL, "2");
    assert_int_equal(submit(s, &h, TEST_FAILS), 0);
    assert_true(told(&h, "\"number\":1,\"of\":2,\"status\":\"passed\""));
    assert_file("add.sh", FIXED);
    assert_true(last_number(&h, "\"event\":\"candidate\"", "number") > 0);
    assert_false(told(&h, "\"text\":\"<think>"));
    assert_outline_has(&h, "plan:thought"); /* it leaves with the turn */
    agent_session_close(s);
    free_host(&h);
}

/* No test can tell, so the change is taken behind which the request is likeliest; the others stay in the log. */
static void test_choose__the_change_that_fits_the_request_is_taken(void **state)
{
    NEEDS("branches");
    static const char *const first[] = {"cat \"$1\" || exit", "cat \"$1\""}; /* the second: a copy */
    static const char further[] = "answer <<X\nload_config() {\n    test -s \"$1\" && cat \"$1\"\n}\n```\nX\n"
                                  "answer <<X\nload_config() {\n    test -s \"$1\" && cat \"$1\"\n}\n```\nX\n"
                                  "answer <<X\nload_config() {\n    cat \"$1\"\n}\n```\nX\n"
                                  "answer <<X\nload_config() {\n    echo missing\n}\n```\nX\n"
                                  "answer Done.\n";
    for (size_t i = 0; i < sizeof first / sizeof *first; i++) {
        host h = new_host();
        base_buf script = {0};
        base_buf_printf(&script,
            "likely echo missing\nlikely test -s\nanswer <<X\nload_config() {\n    %s\n}\n```\nX\n%s",
            first[i], further);
        put_file("all.sh", "load_config() {\n    cat \"$1\"\n}\n\nother() {\n    exit 1\n}\n");
        agent_session *s = open_session(&h, script.data, AGENT_MODE_ALL, NULL, false);
        submit(s, &h, "/tries 6");
        submit(s, &h, "Fail on an empty config");
        assert_file(
            "all.sh", "load_config() {\n    test -s \"$1\" && cat \"$1\"\n}\n\nother() {\n    exit 1\n}\n");
        assert_true(told(&h, "\"number\":3,\"of\":5,\"status\":\"the same as an earlier one\""));
        assert_true(told(&h, "\"number\":4,\"of\":5,\"status\":\"no change\""));
        assert_true(told(&h, "candidate 2 is taken"));
        assert_true(told(&h, "\"answer\",\"turn\":1,\"text\":\"Done.\""));
        agent_session_close(s);
        free_host(&h);
        base_buf_free(&script);
    }
}

/* A method and a function of one name: what the first answer's parameters fit is what the others are sampled of. */
static void test_choose__of_two_of_one_name_the_one_that_is_written(void **state)
{
    NEEDS("branches");
    static const char script[] =
        "likely +        return True\n"
        "answer <<X\n<tools>{\"name\": \"rewrite\", \"arguments\": {\"path\": \"a.py\", \"name\": \"cancel\"}}</tools>\n```python\ndef cancel(self, job):\n    self.jobs.discard(job)\n```\nX\n"
        "answer <<X\n    def cancel(self, job):\n        self.jobs.remove(job)\n        return True\n```\nX\n"
        "answer <<X\n    def cancel(self, job):\n        self.jobs.remove(job)\n```\nX\n"
        "answer <<X\n    def cancel(self, job):\n        self.jobs.remove(job)\n```\nX\n"
        "answer <<X\n    def cancel(self, job):\n        self.jobs.remove(job)\n```\nX\n"
        "answer Done.\n";
    host h = new_host();
    put_file("a.py", "class Scheduler:\n    def cancel(self, job):\n        self.jobs.remove(job)\n\n\n"
                     "def cancel(job):\n    default.cancel(job)\n");
    agent_session *s = open_session(&h, script, AGENT_MODE_ALL, NULL, false);
    submit(s, &h, "/tries 6");
    submit(s, &h, "Let cancel return True where a job was cancelled");
    assert_true(told(&h, "candidate 2 is taken"));
    assert_file("a.py",
        "class Scheduler:\n    def cancel(self, job):\n        self.jobs.remove(job)\n        return True\n\n\n"
        "def cancel(job):\n    default.cancel(job)\n");
    agent_session_close(s);
    free_host(&h);
}

/* Words, and a request for something new, are taken as they come. */
static void test_choose__what_is_no_change_is_not_weighed(void **state)
{
    NEEDS("branches");
    static const char *const requests[] = {
        "Fail on an empty config", "Add a function fails() to all.sh", "What does other do?"};
    for (size_t i = 0; i < sizeof requests / sizeof *requests; i++) {
        host h = new_host();
        put_file("all.sh", "load_config() {\n    cat \"$1\"\n}\n\nother() {\n    exit 1\n}\n");
        agent_session *s =
            open_session(&h, "likely exit\n" NO NO NO NO NO NO NO NO, AGENT_MODE_ALL, NULL, false);
        submit(s, &h, "/tries 6");
        submit(s, &h, requests[i]);
        assert_false(told(&h, " is taken: "));
        if (i) assert_false(told(&h, "\"candidate\""));
        agent_session_close(s);
        free_host(&h);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST_CASE(test_choose__the_change_that_fits_the_request_is_taken),
        TEST_CASE(test_choose__of_two_of_one_name_the_one_that_is_written),
        TEST_CASE(test_choose__what_is_no_change_is_not_weighed),
        TEST_CASE(test_tries__the_first_that_passes_is_offered_and_the_others_stay_in_the_log),
        TEST_CASE(test_tries__the_winner_can_be_undone),
        TEST_CASE(test_tries__a_no_to_the_test_is_a_no_to_candidates),
        TEST_CASE(test_tries__where_none_passes_it_goes_on_as_without),
        TEST_CASE(test_tries__a_test_that_the_model_ran_may_judge_too),
        TEST_CASE(test_tries__a_resumed_session_has_the_winner_only),
        TEST_CASE(test_tries__refuses_what_is_no_number),
        TEST_CASE(test_tries__begin_calls_in_the_form_of_mistral),
        TEST_CASE(test_tries__begin_calls_in_the_form_of_gemma),
        TEST_CASE(test_tries__begin_calls_in_the_form_of_harmony),
        TEST_CASE(test_tries__a_begun_rewrite_between_marks_repairs),
        TEST_CASE(test_tries__a_candidate_thinks_for_a_while),
        TEST_CASE(test_tries__a_thought_is_no_part_of_a_candidate),
        TEST_CASE(test_tries__are_usual_where_changes_are_not_asked_about),
    };
    return RUN_ON_BOTH(tests);
}
