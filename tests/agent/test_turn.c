/* Whole turns on the scripted engine in a real tree: requests, calls, approvals, changes and their tests. */
#include "stage.h"

static void test_turn__rewrites_runs_the_named_test_and_answers(void **state)
{
    put_program();
    host h = new_host();
    agent_session *s =
        open_session(&h, REWRITE(FIXED) "answer Fixed: `add` in add.sh.\n", AGENT_MODE_ASK, NULL, true);
    assert_int_equal(submit(s, &h, "test_add.sh fails; fix it"), 0);
    assert_file("add.sh", FIXED);
    assert_int_equal(h.asked, 2); /* the test, which says that it runs again, and the rewrite */
    assert_true(told(&h, "\"headline\":\"$ sh test_add.sh (runs again after the change)\""));
    assert_true(told(&h, "$ sh test_add.sh runs again: approved in this turn"));
    assert_outline(&h, "user context tool_call approval_request approval:yes shell:failed "
                       "tool_call approval_request approval:yes rewrite:ok plan:stale "
                       "tool_call notice shell:ok answer places outcome ledger turn_end:closed ");
    assert_true(told(&h, "\"headline\":\"$ sh test_add.sh\""));
    agent_session_close(s);
    free_host(&h);
}

static void test_turn__a_no_leaves_the_file_and_tells_the_model_why(void **state)
{
    put_program();
    host h = new_host();
    h.answer = AGENT_NO;
    h.text = "not this file";
    agent_session *s =
        open_session(&h, REWRITE(FIXED) "answer Then I leave it.\n", AGENT_MODE_ASK, NULL, true);
    assert_int_equal(submit(s, &h, "test_add.sh fails; fix it"), 0);
    assert_file("add.sh", PROGRAM);
    assert_true(told(&h, "The person said no: not this file."));
    assert_non_null(strstr(h.outline.data, "rewrite:denied answer"));
    agent_session_close(s);
    free_host(&h);
}

static void test_turn__without_anybody_to_ask_it_is_denied(void **state)
{
    put_program();
    host h = new_host();
    agent_session *s = open_session(&h, REWRITE(FIXED) "answer No.\n", AGENT_MODE_ASK, NULL, false);
    assert_int_equal(submit(s, &h, "test_add.sh fails; fix it"), 0);
    assert_file("add.sh", PROGRAM);
    assert_true(agent_was_denied(agent_session_agent(s)));
    agent_session_close(s);
    free_host(&h);
}

static void test_turn__plan_mode_refuses_without_asking(void **state)
{
    put_program();
    host h = new_host();
    agent_session *s =
        open_session(&h, REWRITE(FIXED) "answer I would change the sign.\n", AGENT_MODE_PLAN, NULL, true);
    submit(s, &h, "test_add.sh fails; fix it");
    assert_file("add.sh", PROGRAM);
    assert_int_equal(h.asked, 0);
    assert_non_null(strstr(h.outline.data, "rewrite:refused"));
    agent_session_close(s);
    free_host(&h);
}

static void test_turn__an_edited_command_is_what_runs(void **state)
{
    put_program();
    host h = new_host();
    h.answer = AGENT_EDIT;
    h.text = "echo harmless";
    agent_session *s = open_session(&h,
        "answer <tools>{\"name\": \"shell\", \"arguments\": {\"command\": \"echo danger\"}}</tools>\n"
        "answer ok\n",
        AGENT_MODE_ASK, NULL, true);
    submit(s, &h, "say something");
    assert_true(told(&h, "harmless\\n"));
    assert_false(told(&h, "danger\\n"));
    agent_session_close(s);
    free_host(&h);
}

static void test_turn__an_edited_text_is_what_is_written(void **state)
{
    put_program();
    host h = new_host();
    h.answer = AGENT_EDIT;
    h.text = "by hand\n";
    agent_session *s = open_session(&h,
        "answer <<X\n"
        "<tools>{\"name\": \"write\", \"arguments\": {\"path\": \"n.txt\"}}</tools>\n"
        "```\n"
        "by the model\n"
        "```\n"
        "X\n"
        "answer ok\n",
        AGENT_MODE_ASK, NULL, true);
    submit(s, &h, "write n.txt");
    assert_file("n.txt", "by hand\n");
    assert_true(told(&h, "\"payload\":\"by the model\\n\"")); /* what the screen offers for editing */
    agent_session_close(s);
    free_host(&h);
}

static void test_turn__always_covers_the_exact_command_only(void **state)
{
    put_program();
    host h = new_host();
    h.answer = AGENT_ALWAYS;
#define RUN(command)                                                                                         \
    "answer <tools>{\"name\": \"shell\", \"arguments\": {\"command\": \"" command "\"}}</tools>\n"
    agent_session *s = open_session(
        &h, RUN("echo a") "answer 1\n" RUN("echo b") RUN("echo a") "answer 2\n", AGENT_MODE_ASK, NULL, true);
    submit(s, &h, "first");
    assert_int_equal(h.asked, 1);
    submit(s, &h, "second");
    assert_int_equal(h.asked, 2); /* for echo b */
    agent_session_close(s);
    free_host(&h);
}

/* A yes to the harness's test is for this command, this turn and changes that were approved. */
static void test_turn__a_yes_to_the_test_covers_nothing_else(void **state)
{
    put_program();
    host h = new_host();
    agent_session *s = open_session(&h,
        REWRITE(FIXED)
            RUN("sh -e test_add.sh") "answer 1\n" REWRITE(PROGRAM) "answer 2\n" REWRITE(FIXED) "answer 3\n",
        AGENT_MODE_ASK, NULL, true);
    submit(s, &h, "test_add.sh fails; fix it");
    assert_int_equal(h.asked, 3); /* the test, the rewrite, and what the model calls */
    h.asked = 0;
    submit(s, &h, "put the sign back in add.sh");
    assert_int_equal(h.asked, 2); /* another turn: the rewrite, the test behind it */
    h.asked = 0;
    base_buf_clear(&h.json);
    assert_int_equal(agent_set_mode(agent_session_agent(s), AGENT_MODE_EDITS, NULL), 0);
    submit(s, &h, "test_add.sh fails; fix it");
    assert_true(told(&h, "$ sh test_add.sh (runs again after each change of this turn)"));
    assert_int_equal(
        h.asked, 1); /* in this mode nobody is asked about a change: the yes was to the test behind it */
    agent_session_close(s);
    free_host(&h);
}

/*
 * A further attempt: the model ends the line that the harness began, the harness writes call and fence, the
 * model the body.
 */
#define BODY(text) "answer <<X\necho`.\n" text "```\nX\n"

static void test_turn__a_failed_attempt_is_barred_before_the_next_output(void **state)
{
    put_program();
    host h = new_host();
    agent_session *s =
        open_session(&h, REWRITE("add() {\n    echo $(($1 * $2))\n}\n") BODY(FIXED) "answer Fixed.\n",
            AGENT_MODE_ALL, NULL, true);
    submit(s, &h, "test_add.sh fails; fix it");
    assert_file("add.sh", FIXED);
    assert_outline_has(
        &h, "rewrite:ok plan:stale tool_call shell:failed plan:failed undo plan:manual tool_call rewrite:ok");
    /* The plan stands in front of the output's tokens. */
    const char *plan = stage_chat ? h.json.data : strstr(h.json.data, "\"cause\":\"failed\"");
    assert_non_null(plan);
    assert_non_null(strstr(plan, "\"label\":\"test\"")); /* the second output */
    assert_sent(s, "$1 * $2", false);
    assert_sent(s, "$1 + $2", true);
    assert_true(told(&h, "This change was taken back: add.sh is as it was before."));
    agent_session_close(s);
    free_host(&h);
}

/* The least certain token first; what would only begin a comment never. */
static void test_turn__after_a_copy_the_doubts_are_tried_in_turn(void **state)
{
    NEEDS("doubts");
    put_program();
    host h = new_host();
    agent_session *s = open_session(&h,
        "doubt echo #\ndoubt 1 3\ndoubt - +\n" REWRITE(PROGRAM) /* a copy */
        "answer <<X\n - $2))\n}\n```\nX\n"                      /* behind "echo $(($3" */
        "answer <<X\n $2))\n}\n```\nX\n"                        /* behind "echo $(($1 +" */
        "answer Fixed.\n",
        AGENT_MODE_ALL, NULL, true);
    submit(s, &h, "test_add.sh fails; fix it");
    assert_true(told(&h, "echo $(($3 - $2))"));
    assert_file("add.sh", FIXED);
    assert_false(told(&h, "The wrong line in")); /* no thought in front of a doubt */
    agent_session_close(s);
    free_host(&h);
}

static void test_turn__the_test_that_judges_stays_as_it_is(void **state)
{
    put_program();
    host h = new_host();
    agent_session *s = open_session(&h,
        "answer <<X\n<tools>{\"name\": \"write\", \"arguments\": {\"path\": "
        "\"test_add.sh\"}}</tools>\n```\nexit 0\n```\nX\n" BODY(FIXED) "answer Fixed.\n",
        AGENT_MODE_ALL, NULL, true);
    submit(s, &h, "test_add.sh fails; fix it");
    assert_true(told(&h, "the test judges and stays as it is"));
    assert_file("add.sh", FIXED);
    agent_session_close(s);
    free_host(&h);
}

static void test_turn__the_last_attempt_stays_and_words_alone_are_asked_again(void **state)
{
    put_program();
    host h = new_host();
#define WRONG(n) "add() {\n    echo " #n "\n}\n"
    agent_session *s = open_session(&h,
        "answer The sign is wrong, I think.\n" BODY(WRONG(1)) BODY(WRONG(2))
            BODY(WRONG(3)) "answer I give up.\n",
        AGENT_MODE_ALL, NULL, true);
    submit(s, &h, "test_add.sh fails; fix it");
    assert_true(told(&h, "nothing was changed: asking for the change"));
    assert_true(told(&h, "No file was changed yet. Make the change now"));
    assert_file("add.sh", WRONG(3));
    assert_non_null(strstr(h.outline.data, "answer"));
    assert_int_equal(submit(s, &h, "/undo"), 0);
    assert_file("add.sh", PROGRAM);
    agent_session_close(s);
    free_host(&h);
}

static const char fenced[] =
    "answer <<X\nThe sign is wrong:\n```python\ndef add(a, b):\n    return a + b\n```\nX\nanswer Fixed.\n";

static void test_turn__a_fenced_definition_without_a_call_is_offered_as_a_rewrite(void **state)
{
    put_file("add.py", "def add(a, b):\n    return a - b\n");
    put_file("test_add.sh", "grep -q 'a + b' add.py\n");
    host h = new_host();
    agent_session *s = open_session(&h, fenced, AGENT_MODE_ASK, NULL, true);
    submit(s, &h, "test_add.sh fails; fix add");
    assert_file("add.py", "def add(a, b):\n    return a + b\n");
    agent_session_close(s);
    free_host(&h);
}

/*
 * A test that could not be run says nothing about a change: it stays, and the person hears what is missing.
 */
static void test_turn__a_test_without_its_runner_judges_nothing(void **state)
{
    put_file("add.py", "def add(a, b):\n    return a - b\n");
    host h = new_host();
    agent_session *s = open_session(&h, fenced, AGENT_MODE_ASK, NULL, true);
    submit(s, &h, "`no-such-runner test_add` fails; fix add in add.py");
    assert_file("add.py", "def add(a, b):\n    return a + b\n");
    assert_true(told(&h, "what runs it is not installed: no-such-runner test_add"));
    agent_session_close(s);
    free_host(&h);
}

/* A pytest that is missing is no reason to judge nothing where the tests are unittest's, and is looked for once. */
static void test_turn__tests_of_unittest_need_no_pytest(void **state)
{
    put_file("pytest.py", "import sys\nsys.exit('python3: No module named pytest')\n");
    put_file("add.py", "def add(a, b):\n    return a - b\n");
    put_file("test_add.py", "import unittest\nfrom add import add\n\n\nclass TestAdd(unittest.TestCase):\n"
                            "    def test_add(self):\n        self.assertEqual(add(2, 3), 5)\n");
    host h = new_host();
    agent_session *s = open_session(&h, fenced, AGENT_MODE_ALL, NULL, true);
    submit(s, &h, "test_add.py fails; fix add");
    assert_file("add.py", "def add(a, b):\n    return a + b\n");
    if (!told(&h, "Its test passes: python3 -m unittest -q -f test_add.py")) fail_msg("%s", h.json.data);
    agent_session_close(s);
    free_host(&h);
    put_file(
        "sum.py", "def sum_of(a, b):\n    return a - b\n"); /* nor is one found again that cannot judge */
    put_file("test_sum.py", "import unittest\nimport nothing_of_that_name\nfrom sum import sum_of\n");
    h = new_host();
    s = open_session(&h,
        "answer <<X\n<tools>{\"name\": \"rewrite\", \"arguments\": {\"path\": \"sum.py\", \"name\": "
        "\"sum_of\"}}</tools>\n```python\ndef sum_of(a, b):\n    return a + b\n```\nX\nanswer Done.\n",
        AGENT_MODE_ALL, NULL, true);
    submit(s, &h, "sum_of should give the sum of both");
    assert_file("sum.py", "def sum_of(a, b):\n    return a + b\n");
    const char *said = strstr(h.json.data, "unittest -q -f test_sum.py cannot judge the change");
    assert_non_null(said);
    assert_null(strstr(said + 1, "unittest -q -f test_sum.py cannot judge the change"));
    agent_session_close(s);
    free_host(&h);
}

/* A test that the model runs itself and that is not there, or without its runner, judges nothing: no attempt follows. */
static void test_turn__a_test_that_is_not_there_is_no_failing_one(void **state)
{
    (void)state;
    static const struct {
        const char *says;
        bool is_judge;
    } cases[] = {{"ERROR: file or directory not found: tests/test_ini.py", false},
        {"No module named pytest", false}, {"1 failed", true}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        base_buf fake = {0};
        put_file("add.py", "def add(a, b):\n    return a - b\n");
        base_buf_printf(&fake, "import sys\nsys.exit('%s')\n", cases[i].says);
        put_file("pytest.py", fake.data);
        host h = new_host();
        agent_session *s = open_session(&h,
            "answer <tools>{\"name\": \"shell\", \"arguments\": {\"command\": \"python3 -m pytest -q "
            "tests/test_ini.py\"}}</tools>\n" NO NO NO NO NO NO NO NO,
            AGENT_MODE_ALL, NULL, false);
        submit(s, &h, "Which of the tests pass?");
        const agent *a = agent_session_agent(s);
        if (!a->test.command == cases[i].is_judge || a->fix.failing != cases[i].is_judge)
            fail_msg("%s: %s", cases[i].says, h.json.data);
        agent_session_close(s);
        free_host(&h);
        base_buf_free(&fake);
    }
}

/* The scripted engine's tokens have four letters at most: the stop string begins and ends inside of one. */
static void test_turn__an_answer_ends_in_front_of_a_stop_string(void **state)
{
    static const char *const stops[] = {"ree\nfo", "never", NULL};
    host h = new_host();
    agent_session *s = open_session(
        &h, "answer one two three\\nfour five\nanswer one nev three re\n", AGENT_MODE_ASK, NULL, true);
    agent_session_agent(s)->settings.stop = stops;
    submit(s, &h, "count");
    assert_true(told(&h, "\"text\":\"one two th\""));
    assert_false(told(&h, "\"text\":\"three\""));
    assert_false(told(&h, "five"));
    base_buf_clear(&h.json);
    submit(s, &h, "again"); /* what only began like one is told after all */
    assert_true(told(&h, "\"text\":\"one nev three re\""));
    agent_session_close(s);
    free_host(&h);
}

static void test_turn__an_answer_that_names_nothing_is_asked_for_the_name(void **state)
{
    put_program();
    host h = new_host();
    agent_session *s = open_session(&h,
        "answer It is added where numbers are added.\nanswer `add` in add.sh.\n"
        "answer In `frobnicate`.\nanswer Nowhere.\nanswer It subtracts.\n",
        AGENT_MODE_ASK, NULL, true);
    submit(s, &h, "Which function can add numbers?");
    assert_outline(&h, "user context notice answer places ledger turn_end:closed ");
    assert_true(told(&h, "\"text\":\"`add` in add.sh.\""));
    put_file("sub.sh", "subtract() {\n    echo 1\n}\n");
    base_buf_clear(&h.outline);
    submit(s, &h, "Where does it subtract numbers?"); /* once, and what comes then is the answer */
    assert_true(told(&h, "\"event\":\"answer\",\"turn\":2,\"text\":\"Nowhere.\""));
    submit(s, &h, "What does subtract do?"); /* no name is asked for */
    assert_true(told(&h, "\"event\":\"answer\",\"turn\":3,\"text\":\"It subtracts.\""));
    agent_session_close(s);
    free_host(&h);
}

static void test_turn__names_of_the_excerpts_stand_next_to_a_question(void **state)
{
    put_program();
    put_file("best.sh", "# adds two numbers together\nadd_numbers() {\n    echo $(($1 + $2))\n}\n");
    put_file("other.sh", "# prints numbers\nprint_numbers() {\n    echo $1\n}\n");
    host h = new_host();
    agent_session *s = open_session(&h, "answer `add_numbers` in best.sh.\n" REWRITE(FIXED) "answer Fixed.\n",
        AGENT_MODE_ALL, NULL, true);
    submit(s, &h, "Which function adds two numbers?");
    const char *names = strstr(h.json.data, "\"label\":\"names\""),
               *request = strstr(h.json.data, "\"label\":\"request\"");
    assert_true(names && request && names < request);
    base_buf_clear(&h.json);
    submit(s, &h, "test_add.sh fails; fix it"); /* a repair has its program in view and needs none */
    assert_false(told(&h, "\"label\":\"names\""));
    agent_session_close(s);
    free_host(&h);
}

/* Who asks for a change of a wrapper means what it calls; a question about it, and what does more, bring nothing along. */
static void test_turn__what_a_wrapper_calls_comes_with_it(void **state)
{
    static const struct {
        const char *request;
        bool has;
    } cases[] = {{"to_bool should also accept yes", true}, {"What does to_bool return?", false},
        {"to_both should also accept yes", false}, {"to_many should also accept yes", false}};
    put_file("wrap.py",
        "from basic import inner_read, inner_more\n\n\n"
        "def to_bool(x):\n"
        "    # other(x)\n"
        "    return inner_read(x)\n\n\n"
        "def to_both(x):\n    return inner_read(x) or inner_more(x)\n\n\n"
        "def to_many(x):\n    y = 1\n    y += 1\n    y += 2\n    y += 3\n    return inner_read(y)\n");
    put_file("basic.py", "def inner_read(x):\n    return x\n\n\ndef inner_more(x):\n    return x\n");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        print_message("%s\n", cases[i].request);
        host h = new_host();
        agent_session *s = open_session(&h, "answer Yes.\nanswer Yes.\n", AGENT_MODE_ALL, NULL, true);
        submit(s, &h, cases[i].request);
        assert_int_equal(told(&h, "all that to_bool does is to call it"), cases[i].has);
        agent_session_close(s);
        free_host(&h);
    }
}

static size_t count_of(const char *text, const char *part)
{
    size_t n = 0;
    for (const char *at = text; (at = strstr(at, part)); at += strlen(part)) n++;
    return n;
}

/* Which of them it is, their comments tell; what is to be changed has to be seen whole. */
static void test_turn__a_question_sees_more_definitions_by_their_heads(void **state)
{
    static const struct {
        const char *request;
        bool has_heads;
    } cases[] = {
        {"Which function decodes a frame?", true}, {"Change what decodes a frame to return 0", false}};
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        host h = new_host();
        for (char c = 'a'; c <= 'e'; c++) {
            char name[16], text[200];
            snprintf(name, sizeof name, "%c.c", c);
            snprintf(text, sizeof text,
                "/* Decodes a frame. */\nint decode_%c(int x)\n{\n    return deep(x);\n}\n", c);
            put_file(name, text);
        }
        agent_session *s =
            open_session(&h, "answer `decode_a` in a.c.\nanswer Done.\nanswer Done.\nanswer Done.\n",
                AGENT_MODE_ALL, NULL, true);
        submit(s, &h, cases[k].request);
        const size_t whole = count_of(h.json.data, "deep(x);\\n}\\n\\n\""),
                     heads = count_of(h.json.data, "(int x)\\n{\\n\\n\"");
        if (whole != (cases[k].has_heads ? 3 : 5) || heads != (cases[k].has_heads ? 2 : 0))
            fail_msg("%s: %zu whole, %zu heads", cases[k].request, whole, heads);
        agent_session_close(s);
        free_host(&h);
    }
}

static void test_turn__who_calls_it_is_looked_up(void **state)
{
    put_file("count.c",
        "int count(int n)\n{\n    return n;\n}\n\nint add_one(int n)\n{\n    return count(n) + 1;\n}\n");
    put_file("main.c", "int main(void)\n{\n    return add_one(1) + count(2);\n}\n");
    put_file("counted.h", "struct counted {\n    int n;\n};\n");
    base_buf many = {0}; /* more than are shown */
    base_buf_puts(&many, "void tally_up(void)\n{\n}\n");
    for (int i = 0; i < 30; i++) base_buf_printf(&many, "void f%d(void)\n{\n    tally_up();\n}\n", i);
    put_file("many.c", many.data);
    base_buf_free(&many);
    static const struct {
        const char *request, *list; /* NULL: none */
    } cases[] = {
        {"Who calls tally_up?", "Callers of `tally_up`, all 30 of the tree:\\n- `f0` in many.c:6\\n"},
        {"Who calls tally_up?", " more\\n"},
        {"Which functions call `count`?",
            "Callers of `count`, all 2 of the tree:\\n- `add_one` in count.c:8\\n- `main` in main.c:3\\n"},
        {"Where is count used, and who calls count?", "Callers of `count`, all 2 of the tree"},
        {"who are the users of the function count, please", "Callers of `count`, all 2 of the tree"},
        {"And the callers of add_one?", "Callers of `add_one`, all 1 of the tree:\\n- `main` in main.c:3\\n"},
        {"Which function adds one to a number, and who calls it?", "Callers of `add_one`, all 1 of the tree"},
        {"What adds one? Where is it used?", "Callers of `add_one`, all 1 of the tree"},
        {"Who calls main?", "Callers of `main`, none: `main` is called by no function of this tree.\\n"},
        {"What does add_one call?", NULL}, {"Who calls the counted?", NULL}, /* a type */
        {"Who calls it?", NULL},                                             /* nothing was answered before */
        {"Find the function that calls something twice", NULL},
        {"Which functions are called by add_one?", NULL},
        {"I count on you: what is called first?", NULL}, /* a word, no name */
        {"What is add_one?", NULL},
        {"Rename add_one where it is called", NULL}, /* what is to be written needs its rows, and no list */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        host h = new_host();
        agent_session *s =
            open_session(&h, "answer Well.\nanswer Well.\nanswer Well.\n", AGENT_MODE_ALL, NULL, true);
        submit(s, &h, cases[i].request);
        if (told(&h, "\"label\":\"callers\"") != (cases[i].list != NULL) ||
            (cases[i].list && !told(&h, cases[i].list)))
            fail_msg("%s", cases[i].request);
        const char *why = strstr(h.json.data, "the request asks who calls it");
        assert_true((why != NULL) == (cases[i].list != NULL));
        if (why)
            assert_null(
                strstr(why + 1, "the request asks who calls it")); /* once, however often it is named */
        agent_session_close(s);
        free_host(&h);
    }
}

static void test_turn__an_answer_without_a_name_is_asked_for_it(void **state)
{
    put_file("count.c", "/* counts */\nint count(int n)\n{\n    return n;\n}\n");
    static const struct {
        const char *request, *answer;
        bool asks;
    } cases[] = {
        {"Which function counts?", "The function that counts.", true},
        {"Where is counting done?", "It counts.", true},
        {"What counts here?", "A loop counts.", true},
        {"How is counting done?", "By one after another.", true},
        {"How does counting work?", "`count` in count.c returns it.", false}, /* it names it */
        {"What is counting?", "It says how many there are.", false},
        {"What has to count?", "Nothing.", false},
        {"How do I count?", "With your fingers.", false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        host h = new_host();
        base_buf script = {0};
        base_buf_printf(&script, "answer %s\nanswer `count` in count.c.\n", cases[i].answer);
        agent_session *s = open_session(&h, script.data, AGENT_MODE_PLAN, NULL, true);
        submit(s, &h, cases[i].request);
        if (told(&h, "it is asked for the name") != cases[i].asks) fail_msg("%s", cases[i].request);
        agent_session_close(s);
        free_host(&h);
        base_buf_free(&script);
    }
}

/* The answer's event keeps what the model wrote. */
static void test_turn__what_the_tree_contradicts_is_put_right_by_an_event(void **state)
{
    static const struct {
        const char *answer, *corrected; /* NULL: nothing is */
    } cases[] = {{"`tally_upp` in many.c.", "`tally_up` [corrected from tally_upp] in many.c."},
        {"`tally_up` in many.c.", NULL}};
    put_file("many.c", "void tally_up(void)\n{\n}\n");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        host h = new_host();
        base_buf script = {0}, answer = {0};
        base_buf_printf(&script, "answer %s\n", cases[i].answer);
        base_buf_printf(&answer, "\"text\":\"%s\"", cases[i].answer);
        agent_session *s = open_session(&h, script.data, AGENT_MODE_PLAN, NULL, true);
        submit(s, &h, "Where is it tallied?");
        assert_true(told(&h, answer.data));
        assert_int_equal(told(&h, "corrected from"), cases[i].corrected != NULL);
        if (cases[i].corrected) assert_true(told(&h, cases[i].corrected));
        agent_session_close(s);
        free_host(&h);
        base_buf_free(&script);
        base_buf_free(&answer);
    }
}

static void test_turn__a_question_for_one_name_says_so(void **state)
{
    put_file("count.c", "/* counts */\nint count(int n)\n{\n    return n;\n}\n");
    static const struct {
        const char *request;
        bool says_so;
    } cases[] = {{"Which function counts?", true}, {"Which functions count?", false},
        {"Where is counting done?", false},
        {"Which function counts? Rename count to tally.", false}, /* asks for a change */
        {"Which function?", false}};                              /* nothing is in front of it */
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        host h = new_host();
        agent_session *s =
            open_session(&h, "answer `count` in count.c.\nanswer Done.\nanswer Done.\nanswer Done.\n",
                AGENT_MODE_ALL, NULL, true);
        submit(s, &h, cases[i].request);
        if (told(&h, "? Name the one.") != cases[i].says_so) fail_msg("%s", cases[i].request);
        agent_session_close(s);
        free_host(&h);
    }
}

static void test_turn__it_is_what_the_answer_before_named(void **state)
{
    put_file("count.c",
        "int count(int n)\n{\n    return n;\n}\n\nint more(int n)\n{\n    return count(n) + 1;\n}\n");
    host h = new_host();
    agent_session *s = open_session(
        &h, "answer `count` in count.c does.\nanswer `more` does.\n", AGENT_MODE_ALL, NULL, true);
    submit(s, &h, "Which function counts?");
    assert_false(told(&h, "\"label\":\"callers\""));
    submit(s, &h, "And who calls it?");
    assert_true(told(&h, "Callers of `count`, all 1 of the tree:\\n- `more` in count.c:8"));
    assert_true(told(&h, "\"text\":\"count is called by more (count.c:8)\"")); /* not what calls `more` */
    agent_session_close(s);
    free_host(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST_CASE(test_turn__an_answer_without_a_name_is_asked_for_it),
        TEST_CASE(test_turn__what_the_tree_contradicts_is_put_right_by_an_event),
        TEST_CASE(test_turn__a_question_for_one_name_says_so),
        TEST_CASE(test_turn__it_is_what_the_answer_before_named),
        TEST_CASE(test_turn__rewrites_runs_the_named_test_and_answers),
        TEST_CASE(test_turn__a_no_leaves_the_file_and_tells_the_model_why),
        TEST_CASE(test_turn__without_anybody_to_ask_it_is_denied),
        TEST_CASE(test_turn__plan_mode_refuses_without_asking),
        TEST_CASE(test_turn__an_edited_command_is_what_runs),
        TEST_CASE(test_turn__an_edited_text_is_what_is_written),
        TEST_CASE(test_turn__always_covers_the_exact_command_only),
        TEST_CASE(test_turn__a_yes_to_the_test_covers_nothing_else),
        TEST_CASE(test_turn__a_failed_attempt_is_barred_before_the_next_output),
        TEST_CASE(test_turn__after_a_copy_the_doubts_are_tried_in_turn),
        TEST_CASE(test_turn__the_test_that_judges_stays_as_it_is),
        TEST_CASE(test_turn__the_last_attempt_stays_and_words_alone_are_asked_again),
        TEST_CASE(test_turn__an_answer_ends_in_front_of_a_stop_string),
        TEST_CASE(test_turn__a_fenced_definition_without_a_call_is_offered_as_a_rewrite),
        TEST_CASE(test_turn__a_test_without_its_runner_judges_nothing),
        TEST_CASE(test_turn__a_test_that_is_not_there_is_no_failing_one),
        TEST_CASE(test_turn__tests_of_unittest_need_no_pytest),
        TEST_CASE(test_turn__an_answer_that_names_nothing_is_asked_for_the_name),
        TEST_CASE(test_turn__names_of_the_excerpts_stand_next_to_a_question),
        TEST_CASE(test_turn__what_a_wrapper_calls_comes_with_it),
        TEST_CASE(test_turn__a_question_sees_more_definitions_by_their_heads),
        TEST_CASE(test_turn__who_calls_it_is_looked_up),
    };
    return RUN_ON_BOTH(tests);
}
