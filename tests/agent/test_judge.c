/*
 * What judges a change where nobody named a test: found for the changed file, run like a named one, and never
 * counted where it cannot tell right from wrong.
 */
#include <sys/stat.h>
#include <unistd.h>

#include "agent/asked/asked.h"
#include "agent/judge/judge.h"
#include "stage.h"

#define C_FILE                                                                                               \
    "static int twice(int x)\n{\n    return x + x;\n}\n\nint main(void)\n{\n    return twice(2);\n}\n"
#define REWRITE_TWICE(body)                                                                                  \
    "answer <<X\n<tools>{\"name\": \"rewrite\", \"arguments\": {\"path\": \"twice.c\", \"name\": "           \
    "\"twice\"}}</tools>\n```c\nstatic int twice(int x)\n{\n    return " body ";\n}\n```\nX\n"
#define FURTHER(body) "answer <<X\ny`.\nstatic int twice(int x)\n{\n    return " body ";\n}\n```\nX\n"
#define NOTHING       "answer It is doubled.\n"
#define ASK_FOR_IT    "twice should double by multiplying"

static agent_session *open_in(host *h, const char *text, const char *script, agent_mode mode, bool ask)
{
    put_file("twice.c", text);
    return open_session(h, script, mode, NULL, ask);
}

static void test_judge__a_compiler_s_no_goes_back_and_is_mended(void **state)
{
    host h = new_host();
    agent_session *s = open_in(
        &h, C_FILE, REWRITE_TWICE("mul(2, x)") FURTHER("2 * x") "answer Doubled.\n", AGENT_MODE_ALL, false);
    assert_int_equal(submit(s, &h, ASK_FOR_IT), 0);
    assert_true(told(&h, "cc -fsyntax-only"));
    assert_true(told(&h, "implicit declaration of function"));
    assert_true(told(&h, "It compiles: cc -fsyntax-only"));
    assert_true(told(&h, "\"state\":\"changed\"")); /* a compiler's yes is no proof */
    char *text = get_file("twice.c");
    assert_non_null(strstr(text, "return 2 * x;"));
    free(text);
    agent_session_close(s);
    free_host(&h);
}

/* Not all of it came, so nothing was judged on the way: what did come is, at the end. */
static void test_judge__what_is_there_of_a_change_is_judged_at_the_end(void **state)
{
    static const struct {
        const char *body, *says;
    } cases[] = {{"sizeof(struct unseen)", "It does not compile: cc -fsyntax-only"},
        {"x / 2", "It compiles: cc -fsyntax-only"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        host h = new_host();
        base_buf script = {0};
        base_buf_printf(&script,
            "answer <<X\n<tools>{\"name\": \"rewrite\", \"arguments\": {\"path\": \"twice.c\", \"name\": "
            "\"half_of\"}}</tools>\n```c\nint half_of(int x)\n{\n    return %s;\n}\n```\nX\n" NOTHING NOTHING
                NOTHING NOTHING NOTHING NOTHING NOTHING NOTHING NOTHING NOTHING NOTHING NOTHING,
            cases[i].body);
        agent_session *s = open_in(&h, C_FILE, script.data, AGENT_MODE_ALL, false);
        agent_session_agent(s)->settings.tries = 0;
        submit(s, &h, "Add half_of() and thrice() to twice.c");
        assert_true(told(&h, "Asked for and not in the tree: thrice"));
        if (!told(&h, cases[i].says)) fail_msg("%s", strstr(h.json.data, "\"event\":\"outcome\""));
        agent_session_close(s);
        free_host(&h);
        base_buf_free(&script);
    }
}

/* A header is found wherever the tree has it. */
static void test_judge__headers_are_found_in_their_folders(void **state)
{
    char folder[200];
    snprintf(folder, sizeof folder, "%s/src", tree);
    assert_int_equal(mkdir(folder, 0700), 0);
    snprintf(folder, sizeof folder, "%s/src/api", tree);
    assert_int_equal(mkdir(folder, 0700), 0);
    put_file("src/api/twice.h", "int twice_of(int x);\n");
    host h = new_host();
    agent_session *s = open_in(&h, "#include \"twice.h\"\n\n" C_FILE,
        REWRITE_TWICE("twice_off(x)") FURTHER("twice_of(x)") "answer Doubled.\n", AGENT_MODE_ALL, false);
    agent_session_agent(s)->settings.tries = 0;
    submit(s, &h, ASK_FOR_IT);
    assert_true(told(&h, "implicit declaration of function"));
    assert_true(told(&h, "It compiles: cc -fsyntax-only"));
    agent_session_close(s);
    free_host(&h);
}

/* What fails at the end and did not before is told, with the way back. */
static void test_judge__what_was_whole_before_is_told(void **state)
{
    static const struct {
        const char *code;
        bool was_whole;
    } cases[] = {{C_FILE, true}, {C_FILE "\nint broken(void) { return none; }\n", false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        host h = new_host();
        agent_session *s = open_in(
            &h, cases[i].code, REWRITE_TWICE("mul(2, x)") NOTHING NOTHING NOTHING, AGENT_MODE_ALL, false);
        submit(s, &h, "/tries 0");
        submit(s, &h, ASK_FOR_IT);
        assert_int_equal(told(&h, "\"state\":\"failing\""), cases[i].was_whole);
        assert_int_equal(
            told(&h, "That was not so before this turn: /undo takes its changes back."), cases[i].was_whole);
        agent_session_close(s);
        free_host(&h);
    }
}

/* What was not chosen is tried before anything else is sampled. */
static void test_judge__the_next_best_change_is_tried_first(void **state)
{
    NEEDS("branches");
    host h = new_host();
    agent_session *s = open_in(&h, C_FILE,
        "likely 2 * x\nlikely mul(2\n" REWRITE_TWICE(
            "mul(2, x)") "answer <<X\nstatic int twice(int x)\n{\n    return 2 * x;\n}\n```\nX\n"
                         "answer No.\nanswer No.\nanswer No.\n"
                         "answer Doubled.\nanswer Doubled.\n", /* one of them may be sampled while the first candidate is judged */
        AGENT_MODE_ALL, false);
    submit(s, &h, "/tries 6");
    assert_int_equal(submit(s, &h, ASK_FOR_IT), 0);
    assert_true(told(&h, "candidate 1 is taken"));
    assert_true(told(&h, "\"number\":1,\"of\":6,\"status\":\"passed\""));
    char *text = get_file("twice.c");
    assert_non_null(strstr(text, "return 2 * x;"));
    free(text);
    agent_session_close(s);
    free_host(&h);
}

#define BOX(more)     "struct box {\n    int n;\n" more "};\n"
#define BOX_USE(more) "#include \"box.h\"\nint twice(struct box *b)\n{\n" more "    return b->n + b->n;\n}\n"

/* The field that is asked for stands in another file than what uses it: the compiler says which. */
static void test_judge__a_field_that_is_missing_is_begun(void **state)
{
    static const struct {
        const char *request;
        bool is_meant;
    } cases[] = {
        {"twice should count its calls: a field calls at the end of struct box", true},
        {"twice should count how often it is called", false}, /* the model made the field up */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        host h = new_host();
        put_file("box.h", BOX(""));
        agent_session *s = open_in(&h, BOX_USE(""),
            "answer <<X\n"
            "<tools>{\"name\": \"rewrite\", \"arguments\": "
            "{\"path\": \"twice.c\", \"name\": \"twice\"}}</tools>\n"
            "```c\n"
            "int twice(struct box *b)\n"
            "{\n"
            "    b->calls++;\n"
            "    return b->n + b->n;\n"
            "}\n"
            "```\n"
            "X\n"
            "answer <<X\nint calls;`.\n" BOX("    int calls;\n") "```\nX\nanswer Counted.\nanswer Counted.\n",
            AGENT_MODE_ALL, false);
        agent_session_agent(s)->settings.tries = 0;
        submit(s, &h, cases[i].request);
        assert_true(told(&h, "has no member named"));
        assert_int_equal(told(&h, "`box` has no `calls` yet."), cases[i].is_meant);
        if (cases[i].is_meant) {
            assert_file("box.h", BOX("    int calls;\n"));
            assert_file("twice.c", BOX_USE("    b->calls++;\n"));
            assert_true(told(&h, "It compiles: cc -fsyntax-only"));
        } else {
            assert_file("box.h", BOX(""));
        }
        agent_session_close(s);
        free_host(&h);
    }
}

/* As other compilers say it. */
static void test_judge__a_field_is_found_in_what_compilers_say(void **state)
{
    static const struct {
        const char *says;
        bool is_found;
    } cases[] = {
        {"a.c:3:6: error: no member named 'calls' in 'struct box'", true},
        {"a.c:3:6: error: ‘struct box’ has no member named ‘calls’; did you mean ‘n’?", true},
        {"./a.go:9:4: b.calls undefined (type *box has no field or method calls)", true},
        {"./a.go:9:4: b.calls undefined (type *box has no field or method calls, but does have Calls)",
            false},
        {"error[E0609]: no field `calls` on type `&mut box`", true},
        {"a.ts(3,6): error TS2339: Property 'calls' does not exist on type 'box'.", true},
        {"error: cannot find symbol\n  symbol:   variable calls\n  location: variable b of type box\n", true},
        {"a.c:3:6: error: ‘struct other’ has no member named ‘calls’", false},
        {"a.c:3:6: error: ‘struct box’ has no member named ‘times’", false}, /* nobody asked for it */
        {"has no member named ", false},
        {"symbol:   variable \n", false},
        {"", false},
    };
    host h = new_host();
    put_file("box.h", BOX(""));
    agent_session *s =
        open_in(&h, BOX_USE(""), "answer No.\nanswer No.\nanswer No.\n", AGENT_MODE_ALL, false);
    submit(s, &h, "twice should count its calls");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        agent_lacking l;
        if (agent__find_lacking(agent_session_agent(s), cases[i].says, &l) != cases[i].is_found)
            fail_msg("%s", cases[i].says);
        if (cases[i].is_found) {
            assert_string_equal(l.path, "box.h");
            assert_string_equal(l.type, "box");
            assert_string_equal(l.field, "calls");
        }
        agent__lacking_free(&l);
    }
    agent_session_close(s);
    free_host(&h);
}

static void test_judge__what_fails_without_the_change_too_is_not_counted(void **state)
{
    host h = new_host();
    agent_session *s = open_in(&h, "#include \"not_here.h\"\n" C_FILE,
        REWRITE_TWICE("2 * x") "answer Doubled.\n", AGENT_MODE_ALL, false);
    assert_int_equal(submit(s, &h, ASK_FOR_IT), 0);
    assert_true(told(&h, "cannot judge the change: it fails without the change too"));
    assert_true(told(&h, "No test has judged it: "));
    assert_true(told(&h, " fails without the change too.\""));
    agent_session_close(s);
    free_host(&h);
}

static void test_judge__a_test_runs_alone_where_its_runner_can(void **state)
{
    static const struct {
        const char *command, *name, *alone;
    } cases[] = {
        {"PYTHONPATH=src python3 -m pytest -q -x tests/test_a.py", "test_f",
            "PYTHONPATH=src python3 -m pytest -q -x tests/test_a.py -k test_f"},
        {"python3 -m unittest -q -f a.py", "test_f", "python3 -m unittest -q -f a.py -k test_f"},
        {"go test ./", "TestF", "go test -run '^TestF$' ./"},
        {"CARGO_TARGET_DIR=\"$TMPDIR/target\" cargo test --offline -q", "f",
            "CARGO_TARGET_DIR=\"$TMPDIR/target\" cargo test --offline -q f"},
        {"cargo test -q -- --nocapture", "f", "cargo test -q -- --nocapture"},
        {"make -s test", "test_f", "make -s test"},
        {"go test ./", "an odd name", "go test ./"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        base_buf out = {0};
        agent__put_test_alone(cases[i].command, cases[i].name, &out);
        assert_string_equal(out.data, cases[i].alone);
        base_buf_free(&out);
    }
}

static void test_judge__asks_as_the_mode_says(void **state)
{
    static const struct {
        agent_mode mode;
        agent_answer answer;
        bool has_person;
        uint32_t asked;
        const char *told;
    } cases[] = {
        {AGENT_MODE_ASK, AGENT_YES, true, 2, "It compiles"},
        {AGENT_MODE_EDITS, AGENT_YES, true, 1, "It compiles"},
        {AGENT_MODE_EDITS, AGENT_NO, true, 1, "No test has judged it."},
        {AGENT_MODE_EDITS, AGENT_YES, false, 0, "No test has judged it."},
        {AGENT_MODE_ALL, AGENT_YES, true, 0, "It compiles"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        host h = new_host();
        h.answer = cases[i].answer;
        agent_session *s = open_in(
            &h, C_FILE, REWRITE_TWICE("2 * x") "answer Doubled.\n", cases[i].mode, cases[i].has_person);
        assert_int_equal(submit(s, &h, ASK_FOR_IT), 0);
        assert_int_equal(h.asked, cases[i].asked);
        assert_true(told(&h, cases[i].told));
        assert_false(agent_was_denied(agent_session_agent(s)));
        agent_session_close(s);
        free_host(&h);
    }
}

/* A test that wants the old behaviour passes with the old text: going back is no answer. */
static void test_judge__the_old_text_is_no_candidate(void **state)
{
    NEEDS("branches");
    host h = new_host();
    agent_session *s =
        open_in(&h, C_FILE, REWRITE_TWICE("mul(2, x)") FURTHER("x + x") FURTHER("2 * x") "answer Doubled.\n",
            AGENT_MODE_ALL, false);
    agent_session_agent(s)->settings.tries = 2;
    assert_int_equal(submit(s, &h, ASK_FOR_IT), 0);
    assert_true(told(&h, "\"status\":\"the text before the change\""));
    char *text = get_file("twice.c");
    assert_non_null(strstr(text, "return 2 * x;"));
    free(text);
    agent_session_close(s);
    free_host(&h);
}

/* What was asked for is right, and a line that nobody spoke of is not: the change without that is tried first. */
static void test_judge__a_change_is_tried_in_parts(void **state)
{
    NEEDS("branches");
    static const char file[] =
        "static int twice(int x)\n{\n    const int more = 1;\n    int y = x + more;\n    return 2 * y - 2 * more;\n}\n\n"
        "int main(void)\n{\n    return twice(2);\n}\n";
    host h = new_host();
    agent_session *s = open_in(&h, file,
        "answer <<X\n<tools>{\"name\": \"rewrite\", \"arguments\": {\"path\": \"twice.c\", \"name\": \"twice\"}}</tools>\n"
        "```c\nstatic int twice(int x)\n{\n    const int more = 1;\n    if (x < 0) {\n        return 0;\n    }\n"
        "    int y = x + moreover;\n    return 2 * y - 2 * more;\n}\n```\nX\n"
        "answer Done.\nanswer Done.\n",
        AGENT_MODE_ALL, false);
    agent_session_agent(s)->settings.tries = 6;
    assert_int_equal(submit(s, &h, "twice should give 0 for what is less than 0"), 0);
    assert_true(told(&h, "candidate 1 of 6: rewrite twice in twice.c (+1 -1): passed (0 tokens of its own"));
    assert_file("twice.c",
        "static int twice(int x)\n{\n    const int more = 1;\n    if (x < 0) {\n        return 0;\n    }\n    int y = x + more;\n"
        "    return 2 * y - 2 * more;\n}\n\nint main(void)\n{\n    return twice(2);\n}\n");
    agent_session_close(s);
    free_host(&h);
}

static void test_judge__what_is_as_before_is_told_as_nothing(void **state)
{
    host h = new_host();
    agent_session *s = open_in(&h, C_FILE,
        REWRITE_TWICE("mul(2, x)") FURTHER("x + x") "answer Doubled.\n" NOTHING NOTHING NOTHING,
        AGENT_MODE_ALL, false);
    assert_int_equal(submit(s, &h, ASK_FOR_IT), 0);
    assert_file("twice.c", C_FILE);
    assert_true(told(&h, "\"state\":\"nothing\""));
    agent_session_close(s);
    free_host(&h);
}

/* A text that does by hand what rename refused would leave the other places with the old name. */
static void test_judge__a_refused_rename_is_not_done_by_hand(void **state)
{
    host h = new_host();
    agent_session *s = open_in(&h, C_FILE,
        "answer <<X\n"
        "<tools>{\"name\": \"refactor\", \"arguments\": {\"operation\": "
        "\"rename\", \"name\": \"twice\", \"to\": \"main\"}}</tools>\n"
        "X\n"
        "answer <<X\n"
        "<tools>{\"name\": \"rewrite\", \"arguments\": "
        "{\"path\": \"twice.c\", \"name\": \"twice\"}}</tools>\n"
        "```c\n"
        "static int main(int x)\n"
        "{\n"
        "    return x + x;\n"
        "}\n"
        "```\n"
        "X\n"
        "answer Renamed.\n" NOTHING NOTHING NOTHING,
        AGENT_MODE_ALL, false);
    assert_int_equal(submit(s, &h, "twice should be called main from now on"), 0);
    if (!told(&h, "the rename of twice to main was refused, and a text that does it in one place"))
        fail_msg("%s", h.json.data);
    assert_file("twice.c", C_FILE);
    assert_true(told(&h, "whatever the answer says. The rename of twice to main was refused: "));
    assert_true(told(&h, "\"state\":\"nothing\""));
    agent_session_close(s);
    free_host(&h);
}

/* What was changed in one file may be missed in another. */
static void test_judge__a_compiler_looks_at_every_changed_file(void **state)
{
    host h = new_host();
    put_file("four.c", "int four(int x)\n{\n    return x + x + x + x;\n}\n");
    agent_session *s = open_in(&h, C_FILE,
        REWRITE_TWICE("2 * x") "answer <<X\n"
                               "<tools>{\"name\": \"rewrite\", \"arguments\": "
                               "{\"path\": \"four.c\", \"name\": \"four\"}}</tools>\n"
                               "```c\n"
                               "int four(int x)\n"
                               "{\n"
                               "    return 4 * x;\n"
                               "}\n"
                               "```\nX\nanswer Both are changed.\n" NOTHING NOTHING,
        AGENT_MODE_ALL, false);
    submit(s, &h, "twice and four should multiply");
    if (!told(&h, "-Isrc four.c twice.c")) fail_msg("%.600s", strstr(h.json.data, "event\":\"outcome"));
    agent_session_close(s);
    free_host(&h);
}

/* --- what the repository has, beyond a compiler -------------------------------------------------------- */

static bool has_program(const char *command)
{
    return system(command) == 0;
}

static void test_judge__make_s_check_judges_in_a_copy(void **state)
{
    if (!has_program("make --version >/dev/null 2>&1")) skip();
    host h = new_host();
    put_file(
        "Makefile", "twice: twice.c\n\tcc -w -o twice twice.c\n\ncheck: twice\n\t./twice; test $$? = 4\n");
    agent_session *s = open_in(
        &h, C_FILE, REWRITE_TWICE("3 * x") FURTHER("2 * x") "answer Doubled.\n", AGENT_MODE_ALL, false);
    agent_session_agent(s)->settings.tries = 0;
    assert_int_equal(submit(s, &h, ASK_FOR_IT), 0);
    assert_true(told(&h, "The tests of it pass: make -s check."));
    char *text = get_file("twice.c");
    assert_non_null(strstr(text, "return 2 * x;"));
    free(text);
    assert_file("twice", "(missing)"); /* the tree keeps no products */
    agent_session_close(s);
    free_host(&h);
}

/* The person is asked about the command alone, and told where it runs. */
static void test_judge__the_question_shows_the_command_and_says_where(void **state)
{
    if (!has_program("make --version >/dev/null 2>&1")) skip();
    host h = new_host();
    h.answer = AGENT_YES;
    put_file("Makefile", "check:\n\tcc -w -o twice twice.c && pwd >where\n");
    agent_session *s =
        open_in(&h, C_FILE, REWRITE_TWICE("2 * x") "answer Doubled.\n", AGENT_MODE_EDITS, true);
    assert_int_equal(submit(s, &h, ASK_FOR_IT), 0);
    assert_int_equal(h.asked, 1);
    if (!told(&h, "$ make -s check   (in a copy of this tree: /tmp/kvist-copy-")) fail_msg("%s", h.json.data);
    assert_true(told(&h, "\"arguments\":{\"command\":\"make -s check\"}"));
    assert_true(told(&h, "The tests of it pass: make -s check."));
    assert_false(told(&h, "mkdir"));
    assert_file("twice", "(missing)");
    assert_file("where", "(missing)");
    agent_session_close(s);
    free_host(&h);
}

/* A yes for the session to a command in the copy is none to the same command in the tree. */
static void test_judge__a_yes_for_the_copy_is_none_for_the_tree(void **state)
{
    if (!has_program("make --version >/dev/null 2>&1")) skip();
    host h = new_host();
    h.answer = AGENT_ALWAYS;
    put_file("Makefile", "check:\n\tcc -w -o twice twice.c\n");
    agent_session *s = open_in(&h, C_FILE,
        REWRITE_TWICE("2 * x") "answer Doubled.\n" REWRITE_TWICE(
            "x * 2") "answer Doubled.\n"
                     "answer <tools>{\"name\": \"shell\", \"arguments\": "
                     "{\"command\": \"make -s check\"}}</tools>\n"
                     "answer Made.\n",
        AGENT_MODE_EDITS, true);
    agent_session_agent(s)->settings.tries = 0;
    assert_int_equal(submit(s, &h, ASK_FOR_IT), 0);
    assert_int_equal(submit(s, &h, ASK_FOR_IT), 0);
    assert_int_equal(h.asked, 1);
    assert_int_equal(submit(s, &h, "Now build it"), 0);
    assert_int_equal(h.asked, 2);
    agent_session_close(s);
    free_host(&h);
}

/* The copy stays for the session: a file that left the tree must not be built or read there any more. */
static void test_judge__the_copy_loses_what_the_tree_lost(void **state)
{
    if (!has_program("make --version >/dev/null 2>&1")) skip();
    host h = new_host();
    put_file("other.txt", "1\n");
    put_file("count", "1\n");
    put_file("Makefile", "check:\n\ttest $$(ls *.txt | wc -l) = $$(cat count); echo made >product\n");
    agent_session *s = open_in(&h, C_FILE,
        REWRITE_TWICE("2 * x") "answer Doubled.\n" REWRITE_TWICE("x * 2") "answer Doubled.\n", AGENT_MODE_ALL,
        false);
    agent_session_agent(s)->settings.tries = 0;
    assert_int_equal(submit(s, &h, ASK_FOR_IT), 0);
    assert_true(told(&h, "The tests of it pass: make -s check."));
    char path[200];
    snprintf(path, sizeof path, "%s/other.txt", tree);
    assert_int_equal(remove(path), 0);
    put_file("new.txt", "1\n");
    put_file("Makefile", "check:\n\ttest $$(ls *.txt | wc -l) = 1 && test -e product\n");
    base_buf_clear(&h.json);
    assert_int_equal(submit(s, &h, ASK_FOR_IT), 0);
    if (!told(&h, "The tests of it pass: make -s check.")) fail_msg("%s", h.json.data);
    agent_session_close(s);
    free_host(&h);
}

/* A check that lacks its program, or fails without the change too, gives way to the next judge. */
static void test_judge__one_that_cannot_judge_gives_way(void **state)
{
    static const struct {
        const char *makefile, *told;
    } cases[] = {
        {"check:\n\tno-such-server-here\n", "what runs it is not installed: make -s check"},
        {"test:\n\tfalse\n", "make -s test cannot judge the change: it fails without the change too"},
    };
    if (!has_program("make --version >/dev/null 2>&1")) skip();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        host h = new_host();
        put_file("Makefile", cases[i].makefile);
        agent_session *s = open_in(&h, C_FILE,
            REWRITE_TWICE("mul(2, x)") FURTHER("2 * x") "answer Doubled.\n", AGENT_MODE_ALL, false);
        agent_session_agent(s)->settings.tries = 0;
        assert_int_equal(submit(s, &h, ASK_FOR_IT), 0);
        if (!told(&h, cases[i].told)) fail_msg("%s", h.json.data);
        assert_true(told(&h, "It compiles: cc -fsyntax-only"));
        agent_session_close(s);
        free_host(&h);
    }
}

/* Tests that need a module which is not here say nothing of the change; the package itself builds or does not. */
static void test_judge__a_go_package_without_its_tests_modules_is_compiled(void **state)
{
    static const struct {
        const char *body, *told;
    } cases[] = {{"2 * x", "It compiles: go build"}, {"mul(x)", "It does not compile: go build"}};
    if (!has_program("go version >/dev/null 2>&1")) skip();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        host h = new_host();
        base_buf script = {0};
        put_file("go.mod", "module example.test/two\n\ngo 1.18\n\nrequire not.here.test/at/all v1.0.0\n");
        put_file("twice.go", "package two\n\nfunc Twice(x int) int {\n\treturn x + x\n}\n");
        put_file("twice_test.go",
            "package two\n\nimport (\n\t\"testing\"\n\n\t\"not.here.test/at/all\"\n)\n\n"
            "func TestTwice(t *testing.T) {\n\tall.Equal(t, 4, Twice(2))\n}\n");
        base_buf_printf(&script,
            "answer <<X\n"
            "<tools>{\"name\": \"rewrite\", \"arguments\": "
            "{\"path\": \"twice.go\", \"name\": \"Twice\"}}</tools>\n"
            "```go\n"
            "func Twice(x int) int {\n"
            "\treturn %s\n"
            "}\n"
            "```\n"
            "X\n"
            "answer Doubled.\n"
            "answer Doubled.\nanswer Doubled.\nanswer Doubled.\n",
            cases[i].body);
        agent_session *s = open_session(&h, script.data, AGENT_MODE_ALL, NULL, false);
        agent_session_agent(s)->settings.tries = 0;
        submit(s, &h, "Twice should double by multiplying");
        if (!told(&h, "go test ./ cannot judge the change") || !told(&h, cases[i].told))
            fail_msg("%s", h.json.data);
        agent_session_close(s);
        free_host(&h);
        base_buf_free(&script);
    }
}

/* A runner of node_modules that is not there is told at once, and one that is there runs. */
static void test_judge__a_runner_of_node_modules_is_found_there(void **state)
{
    for (int is_there = 0; is_there < 2; is_there++) {
        host h = new_host();
        base_buf path = {0};
        base_err err = {0};
        put_file("package.json", "{\"devDependencies\": {\"jest\": \"1\"}}\n");
        put_file("one.js", "function one() {\n  return 1;\n}\n");
        put_file("one.test.js", "one();\n");
        base_buf_printf(&path, "%s/node_modules/.bin", tree);
        assert_int_equal(base_fs_mkdirs(path.data, &err), 0);
        if (is_there) {
            put_file("node_modules/.bin/jest", "#!/bin/sh\ntest \"$1\" = one.test.js && echo 1 passed\n");
            base_buf_puts(&path, "/jest");
            assert_int_equal(chmod(path.data, 0755), 0);
        }
        agent_session *s = open_session(&h,
            "answer <<X\n"
            "<tools>{\"name\": \"rewrite\", \"arguments\": "
            "{\"path\": \"one.js\", \"name\": \"one\"}}</tools>\n"
            "```js\n"
            "function one() {\n"
            "  return 2;\n"
            "}\n"
            "```\n"
            "X\n"
            "answer Changed.\n",
            AGENT_MODE_ALL, NULL, false);
        agent_session_agent(s)->settings.tries = 0;
        submit(s, &h, "one should return two");
        if (!told(&h,
                is_there
                    ? "The tests of it pass: PATH=node_modules/.bin:$PATH jest one.test.js"
                    : "No test has judged it: what runs PATH=node_modules/.bin:$PATH jest one.test.js is not installed."))
            fail_msg("%s", h.json.data);
        agent_session_close(s);
        free_host(&h);
        base_buf_free(&path);
    }
}

/* What is to run before the tests is not there (a linter, mostly): the tests can judge without it. */
static void test_judge__tests_of_npm_run_without_what_comes_before(void **state)
{
    host h = new_host();
    char bin[] = "/tmp/kvist-npm-XXXXXX", *path = base_xstrdup(getenv("PATH"));
    base_buf npm = {0}, first = {0};
    assert_non_null(mkdtemp(bin));
    base_buf_printf(&npm, "%s/npm", bin);
    FILE *f = fopen(npm.data, "w");
    assert_non_null(f);
    fputs("#!/bin/sh\n"
          "case \"$*\" in *--ignore-scripts*) echo 1 passed; exit 0;; esac\n"
          "echo 'sh: 1: eslint: not found' >&2\nexit 127\n",
        f);
    fclose(f);
    assert_int_equal(chmod(npm.data, 0755), 0);
    base_buf_printf(&first, "%s:%s", bin, path);
    put_file("package.json", "{\"scripts\": {\"pretest\": \"eslint .\", \"test\": \"sh run\"}}\n");
    put_file("one.js", "function one() {\n  return 1;\n}\n");
    agent_session *s = open_session(&h,
        "answer <<X\n"
        "<tools>{\"name\": \"rewrite\", \"arguments\": {\"path\": \"one.js\", \"name\": \"one\"}}</tools>\n"
        "```js\nfunction one() {\n  return 2;\n}\n```\nX\nanswer Changed.\n",
        AGENT_MODE_ALL, NULL, false);
    agent_session_agent(s)->settings.tries = 0;
    setenv("PATH", first.data, 1);
    submit(s, &h, "one should return two");
    setenv("PATH", path, 1);
    unlink(npm.data);
    rmdir(bin);
    if (!told(&h, "The tests of it pass: npm test --silent --ignore-scripts")) fail_msg("%s", h.json.data);
    agent_session_close(s);
    free_host(&h);
    base_buf_free(&first);
    base_buf_free(&npm);
    free(path);
}

static void test_judge__a_linter_that_is_configured_and_missing_is_told(void **state)
{
    host h = new_host();
    put_file("alone.py", "def alone(x):\n    return x\n");
    put_file("ruff.toml", "line-length = 100\n");
    agent_session *s = open_session(&h,
        "answer <<X\n"
        "<tools>{\"name\": \"rewrite\", \"arguments\": "
        "{\"path\": \"alone.py\", \"name\": \"alone\"}}</tools>\n"
        "```python\ndef alone(x):\n    return 2 * x\n```\nX\nanswer Doubled.\n",
        AGENT_MODE_ALL, NULL, false);
    agent_session_agent(s)->settings.tries = 0;
    assert_int_equal(submit(s, &h, "alone should double its argument"), 0);
    if (has_program("command -v ruff >/dev/null 2>&1"))
        assert_true(told(&h, "ruff check -q alone.py"));
    else
        assert_true(told(&h, "what runs it is not installed: ruff check -q alone.py"));
    agent_session_close(s);
    free_host(&h);
}

/* Of several test files of one source, the one that is called after what was changed. */
static void test_judge__the_test_of_the_definition_is_chosen(void **state)
{
    static const struct {
        const char *other, *chosen;
    } cases[] = {
        {"test_text_shout.py", "tests/test_text_shout.py"},
        {"test_text_shouting.py", "tests/test_text_alone.py"}, /* another word: the first, as ever */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        base_buf path = {0};
        base_err err = {0};
        base_buf_printf(&path, "%s/tests", tree);
        assert_int_equal(base_fs_mkdirs(path.data, &err), 0);
        base_buf_clear(&path);
        base_buf_printf(&path, "tests/%s", cases[i].other);
        put_file("text.py", "def shout(s):\n    return s\n");
        put_file("tests/test_text_alone.py", "def test_alone():\n    assert True\n");
        put_file(path.data, "def test_other():\n    assert True\n");
        host h = new_host();
        agent_session *s = open_session(&h,
            "answer <<X\n"
            "<tools>{\"name\": \"rewrite\", \"arguments\": "
            "{\"path\": \"text.py\", \"name\": \"shout\"}}</tools>\n"
            "```python\n"
            "def shout(s):\n"
            "    return s.upper()\n"
            "```\n"
            "X\n"
            "answer Loud.\n"
            "answer Loud.\n",
            AGENT_MODE_ALL, NULL, false);
        agent_session_agent(s)->settings.tries = 0;
        submit(s, &h, "shout should give capitals");
        if (!told(&h, cases[i].chosen)) fail_msg("%s: %s", cases[i].chosen, h.json.data);
        base_buf command = {0};
        base_buf_printf(&command, "--tb=short %s", cases[i].chosen);
        assert_string_equal(strstr(agent_session_agent(s)->test.command, "--tb=short "), command.data);
        agent_session_close(s);
        free_host(&h);
        drop_folders(state);
        make_folders(state);
        base_buf_free(&command);
        base_buf_free(&path);
    }
}

/* A change may reach into another test than the one of its file. */
static void test_judge__the_tests_that_were_changed_run_too(void **state)
{
    put_file("text.py", "def shout(s):\n    return s.upper()\n");
    put_file("test_text.py", "def test_alone():\n    assert True\n");
    put_file("test_use.py", "def test_use():\n    assert True\n");
    put_file("use.py", "def use():\n    return 1\n");
    host h = new_host();
    agent_session *s = open_session(&h, "answer Nothing.\n", AGENT_MODE_ALL, NULL, false);
    agent *a = agent_session_agent(s);
    agent__changed(a, "text.py");
    agent__changed(a, "use.py");
    agent__changed(a, "test_use.py");
    agent__changed(a, "test_gone.py");
    agent__find_judge(a, "text.py");
    assert_string_equal(strstr(a->test.command, "--tb=short "), "--tb=short test_text.py test_use.py");
    agent__find_judge(a, "test_use.py");
    assert_string_equal(strstr(a->test.command, "--tb=short "), "--tb=short test_use.py");
    agent_session_close(s);
    free_host(&h);
}

/* A linter says nothing of what code does: where pytest judges another file of the turn, the last line names pytest. */
static void test_judge__tests_of_another_file_go_before_a_linter(void **state)
{
    put_file("calc.py", "def add(a, b):\n    return a + b\n");
    put_file("test_calc.py", "from calc import add\n\n\ndef test_add():\n    assert add(1, 2) == 3\n");
    put_file("alone.py", "def alone(x):\n    return x\n");
    put_file("ruff.toml", "line-length = 100\n");
    host h = new_host();
    agent_session *s = open_session(&h, "answer Nothing.\n", AGENT_MODE_ALL, NULL, false);
    agent *a = agent_session_agent(s);
    agent__changed(a, "alone.py");
    agent__find_judge(a, "alone.py");
    assert_string_equal(a->test.command, "ruff check -q alone.py");
    assert_non_null(a->test.words);
    agent__changed(a, "calc.py");
    agent__find_judge(a, "alone.py");
    assert_string_equal(strstr(a->test.command, "--tb=short "), "--tb=short test_calc.py");
    assert_null(a->test.words);
    assert_true(agent__find_next_judge(a, "alone.py")); /* where pytest cannot judge, the linter does */
    assert_string_equal(a->test.command, "ruff check -q alone.py");
    assert_non_null(a->test.words);
    agent_session_close(s);
    free_host(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST_CASE(test_judge__a_compiler_s_no_goes_back_and_is_mended),
        TEST_CASE(test_judge__the_next_best_change_is_tried_first),
        TEST_CASE(test_judge__what_was_whole_before_is_told),
        TEST_CASE(test_judge__what_is_there_of_a_change_is_judged_at_the_end),
        TEST_CASE(test_judge__headers_are_found_in_their_folders),
        TEST_CASE(test_judge__a_field_that_is_missing_is_begun),
        TEST_CASE(test_judge__a_field_is_found_in_what_compilers_say),
        cmocka_unit_test(test_judge__a_test_runs_alone_where_its_runner_can),
        TEST_CASE(test_judge__what_fails_without_the_change_too_is_not_counted),
        TEST_CASE(test_judge__a_refused_rename_is_not_done_by_hand),
        TEST_CASE(test_judge__a_compiler_looks_at_every_changed_file),
        TEST_CASE(test_judge__make_s_check_judges_in_a_copy),
        TEST_CASE(test_judge__the_question_shows_the_command_and_says_where),
        TEST_CASE(test_judge__a_yes_for_the_copy_is_none_for_the_tree),
        TEST_CASE(test_judge__the_copy_loses_what_the_tree_lost),
        TEST_CASE(test_judge__one_that_cannot_judge_gives_way),
        TEST_CASE(test_judge__a_go_package_without_its_tests_modules_is_compiled),
        TEST_CASE(test_judge__a_runner_of_node_modules_is_found_there),
        TEST_CASE(test_judge__tests_of_npm_run_without_what_comes_before),
        TEST_CASE(test_judge__a_linter_that_is_configured_and_missing_is_told),
        TEST_CASE(test_judge__the_test_of_the_definition_is_chosen),
        TEST_CASE(test_judge__the_tests_that_were_changed_run_too),
        TEST_CASE(test_judge__tests_of_another_file_go_before_a_linter),
        TEST_CASE(test_judge__asks_as_the_mode_says),
        TEST_CASE(test_judge__the_old_text_is_no_candidate),
        TEST_CASE(test_judge__a_change_is_tried_in_parts),
        TEST_CASE(test_judge__what_is_as_before_is_told_as_nothing),
    };
    return RUN_ON_BOTH(tests);
}
