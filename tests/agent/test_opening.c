/* The call that the program begins for the model: an operation, a change of what is there, a further attempt. */
#include "agent/repair/attempt.h"
#include "stage.h"

/* The old text again: the next attempt is begun with a condition in front of it, where no error is asked for with its return. */
static void test_opening__a_condition_in_front_is_begun(void **state)
{
    NEEDS_GRAMMAR;
    static const struct {
        const char *file, *text, *request, *name, *answer, *after;
    } cases[] = {
        {"rank.go", "package rank\n\nfunc Rank(x int) string {\n\ty := x\n\treturn name(y)\n}\n",
            "Rank of a negative number should be that of the positive one", "Rank",
            " x < 0 {\n Rank(-x)\n\t}\n\ty := x\n\treturn name(y)\n}",
            "package rank\n\n"
            "func Rank(x int) string {\n"
            "\tif x < 0 {\n"
            "\t\treturn Rank(-x)\n"
            "\t}\n"
            "\ty := x\n"
            "\treturn name(y)\n"
            "}\n"},
        {"rank.py", "def rank(x):\n    \"\"\"Its name.\"\"\"\n    return name(x)\n",
            "rank of a negative number should be refused with a ValueError, an error", "rank",
            " x < 0:\n        raise ValueError(x)\n    return name(x)",
            "def rank(x):\n"
            "    \"\"\"Its name.\"\"\"\n"
            "    if x < 0:\n"
            "        raise ValueError(x)\n"
            "    return name(x)\n"},
        {"rank.c", "int rank(int x)\n{\n    return name(x);\n}\n", "rank of a negative number should be 0",
            "rank", "x < 0) return 0;\n    return name(x);\n}",
            "int rank(int x)\n{\n    if (x < 0) return 0;\n    return name(x);\n}\n"},
        /* The body's own condition, copied: nothing cuts off what stands behind it. */
        {"own.py", "def rank(x):\n    y = x\n    if y > 9:\n        y = 9\n    return name(y)\n",
            "rank of a number above nine should be that of eight", "rank",
            " y > 9:\n        y = 8\n    return name(y)",
            "def rank(x):\n    if y > 9:\n        y = 8\n    return name(y)\n"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        put_file(cases[i].file, cases[i].text);
        host h = new_host();
        base_buf script = {0};
        const char *body = strstr(cases[i].text, "package") ? strstr(cases[i].text, "func") : cases[i].text;
        base_buf_printf(&script,
            "answer <<X\n"
            "<tools>{\"name\": \"rewrite\", \"arguments\": {\"path\": \"%s\", \"name\": \"%s\"}}</tools>\n"
            "```\n"
            "%s```\n"
            "X\n"
            "answer <<X\n"
            "%s\n"
            "```\n"
            "X\n"
            "answer Done.\n"
            "answer Done.\n"
            "answer Done.\n",
            cases[i].file, cases[i].name, body, cases[i].answer);
        agent_session *s = open_session(&h, script.data, AGENT_MODE_EDITS, NULL, false);
        agent_session_agent(s)->settings.tries = 0;
        submit(s, &h, cases[i].request);
        char *text = get_file(cases[i].file);
        if (strcmp(text, cases[i].after) != 0) fail_msg("%s\n%s", text, h.json.data);
        free(text);
        agent_session_close(s);
        free_host(&h);
        base_buf_free(&script);
    }
}

/* Whose next line would be cut off from it by a return. */
static void test_opening__a_copied_condition_is_followed_by_no_return(void **state)
{
    static const struct {
        const char *old, *line;
        bool is_followed;
    } cases[] = {
        {"def f(x):\n    y = x\n    if y > 9:\n        y = 9\n", " y > 9:\n", false},
        {"def f(x):\n    y = x\n    if y > 9:\n        y = 9\n", " y > 8:\n", true},
        {"int f(int x)\n{\n    if (x > 9) {\n        g();\n    }\n}\n", "x > 9) {\n", false},
        {"int f(int x)\r\n{\r\n    if (x > 9) {\r\n        g();\r\n    }\r\n}\r\n", "x > 9) {\n", false},
        {"int f(int x)\n{\n    if (x > 9) {\n        g();\n    }\n}\n", "x > 90) {\n", true},
        {"", " x > 9:\n", true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        agent_opening o = {0};
        base_buf out = {0};
        bool is_over = false;
        base_buf_puts(&o.behind, "        return");
        base_buf_puts(&o.old, cases[i].old);
        const char *line = cases[i].line;
        const bool has_more = agent__put_behind_line(&o, line, strlen(line), &is_over, &out);
        assert_true(is_over);
        if (has_more != cases[i].is_followed) fail_msg("%s behind %s", line, cases[i].old);
        if (has_more) assert_string_equal(out.data, "        return");
        base_buf_free(&out);
        agent_opening_free(&o);
    }
}

/* "Change add_up" and no call: the call is begun where the words say, in the file that they name. */
static void test_opening__words_that_name_the_place_are_followed(void **state)
{
    static const char old[] = "add_up() {\n    echo $(($1 + $2))\n}\n",
                      new[] = "add_up() {\n    echo $(($1 + $2 + $3))\n}\n";
    static const struct {
        const char *words;
        bool is_done;
    } cases[] = {
        {"In add.sh the function `add_up` has to add a third number.", true},
        {"The function `add_up` has to add a third number.", false}, /* which of the two? */
        {"In add.sh `add_up` and `add_all` have to add a third number.", false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        put_file("add.sh", old);
        put_file("other.sh", "add_up() {\n    echo 0\n}\nadd_all() {\n    echo 1\n}\n");
        host h = new_host();
        base_buf script = {0};
        base_buf_printf(&script, "answer %s\nanswer <<X\n%s```\nX\nanswer Three now.\n", cases[i].words, new);
        agent_session *s = open_session(&h, script.data, AGENT_MODE_ALL, NULL, false);
        submit(s, &h, "three numbers should be added up");
        assert_true(told(&h, "nothing was changed: asking for the change"));
        assert_file("add.sh", cases[i].is_done ? new : old);
        agent_session_close(s);
        free_host(&h);
        base_buf_free(&script);
    }
}

#define TWO_FUNCTIONS                                                                                        \
    "static int one(void)\n{\n    return 1;\n}\n\nstatic int two(void)\n{\n    return 2;\n}\n"

static void test_opening__an_operation_is_done_for_each_of_a_list(void **state)
{
    NEEDS_GRAMMAR;
    put_file("a.c", TWO_FUNCTIONS "\nint three(void)\n{\n    return 3;\n}\n");
    host h = new_host();
    agent_session *s =
        open_session(&h, "opens 1\nanswer }}</tools>\nanswer }}</tools>\nanswer Both are gone.\n",
            AGENT_MODE_ALL, NULL, false);
    assert_int_equal(submit(s, &h, "Remove the functions one and two, nothing calls them."), 0);
    char *text = get_file("a.c");
    assert_null(strstr(text, "one("));
    assert_null(strstr(text, "two("));
    assert_non_null(strstr(text, "three("));
    free(text);
    agent_session_close(s);
    free_host(&h);
}

/* The whole call is in the request, without the operation's verb. */
static void test_opening__an_operation_is_opened_by_other_words(void **state)
{
    NEEDS_GRAMMAR;
    static const char before[] =
        "static int one(void)\n{\n    return 1;\n}\n\nint two(void)\n{\n    return one();\n}\n";
    static const struct {
        const char *request, *after;
    } cases[] = {
        {"one is a bad name; make it unity",
            "static int unity(void)\n{\n    return 1;\n}\n\nint two(void)\n{\n    return unity();\n}\n"},
        {"two is not needed any more.", "static int one(void)\n{\n    return 1;\n}\n"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        put_file("a.c", before);
        host h = new_host();
        agent_session *s = open_session(&h,
            "opens 1\nanswer }}</tools>\nanswer Neither `one` nor `two` is in a.c as it was.\n",
            AGENT_MODE_ALL, NULL, false);
        assert_int_equal(submit(s, &h, cases[i].request), 0);
        assert_file("a.c", cases[i].after);
        assert_false(told(&h, "in this tree\"")); /* the old name is not missing: it was to go */
        agent_session_close(s);
        free_host(&h);
    }
}

/* What is only told the model names, among the tree's names. */
static void test_opening__what_is_told_is_renamed(void **state)
{
    NEEDS_GRAMMAR;
    put_file("a.c",
        "static int clamp(int x)\n{\n    return x;\n}\n\nint total(void)\n{\n    return clamp(1);\n}\n");
    host h = new_host();
    agent_session *s =
        open_session(&h, "opens 1\nanswer clamp\", \"to\": \"keep_within\"}}</tools>\nanswer Renamed.\n",
            AGENT_MODE_ALL, NULL, false);
    assert_int_equal(
        submit(s, &h, "The helper in a.c that keeps a number in its bounds should be called keep_within."),
        0);
    assert_file("a.c",
        "static int keep_within(int x)\n{\n    return x;\n}\n\nint total(void)\n{\n    return keep_within(1);\n}\n");
    agent_session_close(s);
    free_host(&h);
}

static void test_opening__parameters_are_turned_round_with_their_calls(void **state)
{
    NEEDS_GRAMMAR;
    put_file("a.c", "static int less(int a, int b)\n"
                    "{\n"
                    "    return a - b;\n"
                    "}\n\n"
                    "int main(void)\n"
                    "{\n"
                    "    return less(3, 2);\n"
                    "}\n");
    host h = new_host();
    agent_session *s =
        open_session(&h, "opens 1\nanswer }}</tools>\nanswer Turned.\n", AGENT_MODE_ALL, NULL, false);
    assert_int_equal(submit(s, &h, "Turn the parameters of less round, in everything that calls it too."), 0);
    assert_file("a.c", "static int less(int b, int a)\n"
                       "{\n"
                       "    return a - b;\n"
                       "}\n\n"
                       "int main(void)\n"
                       "{\n"
                       "    return less(2, 3);\n"
                       "}\n");
    agent_session_close(s);
    free_host(&h);
}

/* "Remove the deprecated functions from a.py": each of them, by what its text says, and nothing where the words say too little. */
static void test_opening__a_group_is_deleted(void **state)
{
    static const struct {
        const char *request, *after;
    } cases[] = {
        {"Remove deprecated functions from a.py, and the tests of them.",
            "def parse_a():\n    return 1\n\n\ndef kept():\n    return 2\n"},
        {"please delete all the parse_* functions of a.py",
            "import warnings\n\n\n# Deprecated: use kept\ndef old_a():\n    return 3\n\n\n"
            "def kept():\n    return 2\n\n\ndef old_b():\n    warnings.warn('deprecated')\n"},
        {"Remove the functions from a.py", NULL},
    };
    static const char before[] =
        "import warnings\n\n\n# Deprecated: use kept\ndef old_a():\n    return 3\n\n\n"
        "def parse_a():\n    return 1\n\n\ndef kept():\n    return 2\n\n\ndef old_b():\n    warnings.warn('deprecated')\n";
    NEEDS_GRAMMAR;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        put_file("a.py", before);
        host h = new_host();
        agent_session *s = open_session(&h,
            cases[i].after
                ? "opens 1\nanswer }}</tools>\nopens 1\nanswer }}</tools>\nanswer Done.\nanswer Done.\n"
                : "answer No.\nanswer No.\nanswer No.\nanswer No.\n",
            AGENT_MODE_ALL, NULL, false);
        submit(s, &h, cases[i].request);
        char *now = get_file("a.py");
        const char *after = cases[i].after ? cases[i].after : before, *end = strstr(now, after);
        if (!end || strlen(end) != strlen(after) || (i == 0 && strstr(now, "old")))
            fail_msg("%s\n%s\n%s", cases[i].request, now, h.json.data);
        free(now);
        agent_session_close(s);
        free_host(&h);
    }
}

/* What a request says whole leaves the model nothing to write: a group that moves, an inlining, a parameter for keywords alone. */
static void test_opening__operations_are_read_whole(void **state)
{
    static const struct {
        const char *request, *path, *text, *after;
    } cases[] = {
        {"Move the error types from a.py to a file of their own, errors.py.", "errors.py",
            "class KeyError2(Exception):\n    pass\n\n\ndef error():\n    pass\n\n\nclass MultiError(KeyError2):\n    pass\n",
            "class KeyError2(Exception):\n    pass\n\n\nclass MultiError(KeyError2):\n    pass\n"},
        {"please move all the parse_* functions of a.py into parse.py", "parse.py",
            "def parse_a():\n    return parse_b()\n\n\ndef parse_b():\n    return parse_a\n\n\ndef other():\n    return 1\n",
            "def parse_a():\n    return parse_b()\n\n\ndef parse_b():\n    return parse_a\n"},
        {"Inline twice into its callers.", "a.py",
            "def twice(n):\n    return 2 * n\n\n\ndef f(n):\n    return twice(n)\n",
            "def f(n):\n    return 2 * n\n"},
        {"twice has one caller. Delete it and double there.", "a.py",
            "def twice(n):\n    return 2 * n\n\n\ndef f(n):\n    return twice(n)\n",
            "def f(n):\n    return 2 * n\n"},
        {"Make sep of join keyword-only.", "a.py",
            "def join(x, sep=1):\n    return x + sep\n\n\ny = join(1, 2)\n",
            "def join(x, *, sep=1):\n    return x + sep\n\n\ny = join(1, sep=2)\n"},
    };
    NEEDS_GRAMMAR;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        remove("errors.py");
        remove("parse.py");
        put_file("a.py", cases[i].text);
        host h = new_host();
        agent_session *s =
            open_session(&h, "opens 1\nanswer }}</tools>\nanswer Done.\n", AGENT_MODE_ALL, NULL, false);
        submit(s, &h, cases[i].request);
        assert_file(cases[i].path, cases[i].after);
        agent_session_close(s);
        free_host(&h);
    }
}

/* The model ends the call; which function, parameter and value is the request's. */
static void test_opening__a_parameter_comes_and_goes_by_words(void **state)
{
    NEEDS_GRAMMAR;
    static const char before[] =
        "static int edit_distance(int a, int b)\n{\n    return a - b;\n}\n\nint main(void)\n{\n"
        "    return edit_distance(3, 2);\n}\n";
    static const struct {
        const char *before, *request, *answer, *after;
    } cases[] = {
        {before, "Add an int parameter `flags` to edit_distance; its callers pass 0.", "}}</tools>",
            "static int edit_distance(int a, int b, int flags)\n"
            "{\n"
            "    return a - b;\n"
            "}\n\n"
            "int main(void)\n"
            "{\n"
            "    return edit_distance(3, 2, 0);\n"
            "}\n"},
        {before,
            "The function that computes the edit distance should "
            "take a second parameter flags; callers pass 1.",
            "}}</tools>",
            "static int edit_distance(int a, int flags, int b)\n"
            "{\n"
            "    return a - b;\n"
            "}\n\n"
            "int main(void)\n"
            "{\n"
            "    return edit_distance(3, 1, 2);\n"
            "}\n"},
        /* What callers pass is not said: the model says it. */
        {before, "Add a parameter flags to edit_distance.", "7\"}}</tools>",
            "static int edit_distance(int a, int b, int flags)\n"
            "{\n"
            "    return a - b;\n"
            "}\n\n"
            "int main(void)\n"
            "{\n"
            "    return edit_distance(3, 2, 7);\n"
            "}\n"},
        {"static int one(int unused)\n{\n    return 1;\n}\n\nint main(void)\n{\n    return one(3);\n}\n",
            "Drop the parameter of the function one.", "}}</tools>",
            "static int one(void)\n{\n    return 1;\n}\n\nint main(void)\n{\n    return one();\n}\n"},
        {"static int most(int n, int limit)\n"
         "{\n"
         "    return n < limit;\n"
         "}\n\n"
         "static int more(int n)\n"
         "{\n"
         "    return most(n, -1);\n"
         "}\n\n"
         "int main(void)\n"
         "{\n"
         "    return more(3 + 1);\n"
         "}\n",
            "Remove more and let its caller use most with -1 instead.", "}}</tools>",
            "static int most(int n, int limit)\n"
            "{\n"
            "    return n < limit;\n"
            "}\n\n"
            "int main(void)\n"
            "{\n"
            "    return most(3 + 1, -1);\n"
            "}\n"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        put_file("a.c", cases[i].before);
        host h = new_host();
        base_buf script = {0};
        base_buf_printf(&script, "opens 1\nanswer %s\nanswer Done.\n", cases[i].answer);
        agent_session *s = open_session(&h, script.data, AGENT_MODE_ALL, NULL, false);
        assert_int_equal(submit(s, &h, cases[i].request), 0);
        char *text = get_file("a.c");
        if (strcmp(text, cases[i].after) != 0) fail_msg("%s\n%s\n%s", cases[i].request, text, h.json.data);
        free(text);
        agent_session_close(s);
        free_host(&h);
        base_buf_free(&script);
    }
}

/* No definition is named: the call for the one that fits best is begun. */
static void test_opening__behaviour_in_plain_words_finds_its_function(void **state)
{
    static const struct {
        const char *request, *new, *then;
    } cases[] = {
        {"Fail on an empty config", "load_config() {\n    test -s \"$1\" && cat \"$1\"\n}\n", "load_config"},
        {"Warn about logs that are missing", "open_log() {\n    echo \"no $1\"\n}\n", "open_log"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        host h = new_host();
        base_buf script = {0};
        put_file("all.sh", "load_config() {\n"
                           "    cat \"$1\"\n"
                           "}\n\n"
                           "open_log() {\n"
                           "    echo \"file $1\"\n"
                           "}\n\n"
                           "other() {\n"
                           "    exit 1\n"
                           "}\n");
        base_buf_printf(&script, "answer <<X\n%s%s```\nX\nanswer Done.\n",
            stage_chat ? "echo` here.\n" : "", /* behind a thought, where doubts do not follow a copy */
            cases[i].new);
        agent_session *s = open_session(&h, script.data, AGENT_MODE_ALL, NULL, false);
        submit(s, &h, cases[i].request);
        char *text = get_file("all.sh");
        if (!strstr(text, cases[i].new)) fail_msg("%s: %s", cases[i].request, text);
        free(text);
        base_buf_printf(&script, "\"arguments\":{\"path\":\"all.sh\",\"name\":\"%s\"}", cases[i].then);
        assert_true(told(&h, strstr(script.data, "\"arguments\":")));
        agent_session_close(s);
        base_buf_free(&script);
        free_host(&h);
    }
}

/* A function that a small model cannot write again is passed over for one that is nearly as likely. */
static void test_opening__of_long_functions_a_short_one_is_taken(void **state)
{
    host h = new_host();
    base_buf text = {0};
    base_buf_puts(&text, "load_config() {\n    cat \"$1\"\n}\n\nreport_config() {\n    echo config\n");
    for (int i = 0; i < 60; i++) base_buf_puts(&text, "    :\n");
    base_buf_puts(&text, "}\n\nopen_log() {\n    echo \"file $1\"\n}\n\nother() {\n    exit 1\n}\n");
    put_file("all.sh", text.data);
    agent_session *s = open_session(&h, "answer No.\n", AGENT_MODE_ALL, NULL, false);
    submit(s, &h, "Fail on an empty config");
    assert_true(told(&h, "\"name\":\"load_config\""));
    assert_false(told(&h, "\"name\":\"report_config\""));
    agent_session_close(s);
    free_host(&h);
    base_buf_free(&text);
}

/* "Move X from a.py to b.py": the request says the whole call, so a small model cannot take "a" for the definition. */
static void test_opening__what_a_request_says_of_a_move_is_not_asked_of_the_model(void **state)
{
    NEEDS_GRAMMAR;
    static const struct {
        const char *request, *answer, *file, *has;
    } cases[] = {
        {"Move twice from signer.py to coder.py.", "", "coder.py", "def twice(n):"},
        {"Move `twice` into coder.py", "", "coder.py", "def twice(n):"},
        {"Move twice from signer.py to a new file coder.py and import it.", "", "coder.py", "def twice(n):"},
        {"Move twice from signer.py to coder.py. Importing it from there has to go on working.", "",
            "signer.py", "from coder import twice"},
        {"Rename twice to doubled everywhere", "", "signer.py", "def doubled(n):"},
        {"Rename the function twice in signer.py to `doubled`", "", "signer.py", "def doubled(n):"},
        {"The name of twice says too little. Rename it to doubled.", "", "signer.py", "def doubled(n):"},
        {"Nobody calls twice; it is a number's double. Call it doubled.", "", "signer.py", "def doubled(n):"},
        {"The function twice doubles, as half halves. It should be called doubled_one.", "", "signer.py",
            "def doubled_one(n):"},
        {"twice is half the other way round. Rename it to doubled.", "", "signer.py", "def doubled(n):"},
        /* What it does not say the model writes. */
        {"Rename twice to something better", "doubled\"", "signer.py", "def doubled(n):"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        host h = new_host();
        base_buf script = {0};
        put_file("signer.py", "signer = 1\n\n\ndef twice(n):\n    return 2 * n\n");
        put_file("coder.py", "def half(n):\n    return n / 2\n");
        base_buf_printf(&script, "opens 1\nanswer %s}}</tools>\nanswer Done.\nanswer Done.\nanswer Done.\n",
            cases[i].answer);
        agent_session *s = open_session(&h, script.data, AGENT_MODE_EDITS, NULL, false);
        submit(s, &h, cases[i].request);
        char *text = get_file(cases[i].file);
        if (!strstr(text, cases[i].has)) fail_msg("%s\n%s\n%s", cases[i].request, text, h.json.data);
        free(text);
        agent_session_close(s);
        free_host(&h);
        base_buf_free(&script);
    }
}

/* A request about parameters is a call in whole where it names the function and one of its parameters. */
static void test_opening__a_request_about_parameters_is_a_call(void **state)
{
    NEEDS_GRAMMAR;
    static const struct {
        const char *request, *has;
    } cases[] = {
        {"make sep the first argument of join", "def join(sep, words, quote):"},
        {"join should take the quote after the words", "def join(words, quote, sep):"},
        {"Make words the last argument of join and default it to none", "def join(sep, quote, words=None):"},
        {"swap sep and quote in join", "def join(words, quote, sep):"},
        {"could you rename the parameter `sep` of join to glue?", "def join(words, glue, quote):"},
        {"the quote argument of join should be called tail", "def join(words, sep, tail):"},
        {"drop the unused quote parameter of join", "def join(words, sep):"},
        {"add a parameter quiet to join, default false", "def join(words, sep, quote, quiet=False):"},
        {"Give join an optional fourth parameter limit: how many it takes.",
            "def join(words, sep, quote, limit=None):"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        host h = new_host();
        put_file("words.py", "def join(words, sep, quote):\n    return sep.join(words)\n");
        put_file("use.py", "from words import join\n\nprint(join(['a'], '-', 'b'))\n");
        agent_session *s =
            open_session(&h, "opens 1\nanswer }}</tools>\nanswer Done.\nanswer Done.\nanswer Done.\n",
                AGENT_MODE_EDITS, NULL, false);
        submit(s, &h, cases[i].request);
        char *text = get_file("words.py");
        if (!strstr(text, cases[i].has)) fail_msg("%s\n%s\n%s", cases[i].request, text, h.json.data);
        free(text);
        agent_session_close(s);
        free_host(&h);
    }
}

/* "Rename sep to glue", where sep is a parameter of two functions: of both, and nothing else is renamed. */
static void test_opening__a_parameter_of_several_functions_is_renamed_in_each(void **state)
{
    NEEDS_GRAMMAR;
    host h = new_host();
    put_file("words.py", "def join(words, sep):\n    return sep.join(words)\n\n\n"
                         "def split(text, *, sep=','):\n    return text.split(sep)\n\n\n"
                         "def count(words):\n    return len(words)\n");
    put_file("use.py", "from words import join, split\n\nprint(split('a-b', sep='-'))\n");
    agent_session *s = open_session(&h,
        "opens 1\nanswer }}</tools>\nopens 1\nanswer }}</tools>\nanswer Done.\nanswer Done.\n",
        AGENT_MODE_EDITS, NULL, false);
    submit(s, &h, "Rename sep to glue");
    assert_file("words.py", "def join(words, glue):\n    return glue.join(words)\n\n\n"
                            "def split(text, *, glue=','):\n    return text.split(glue)\n\n\n"
                            "def count(words):\n    return len(words)\n");
    assert_file("use.py", "from words import join, split\n\nprint(split('a-b', glue='-'))\n");
    agent_session_close(s);
    free_host(&h);
}

/* A parameter of more functions than a request can list: of none of them, and of nothing else. */
static void test_opening__a_parameter_of_too_many_functions_stays(void **state)
{
    NEEDS_GRAMMAR;
    base_buf text = {0};
    for (int i = 0; i <= AGENT_MAX_WISHES; i++)
        base_buf_printf(&text, "def join%d(words, sep):\n    return sep.join(words)\n\n\n", i);
    host h = new_host();
    put_file("words.py", text.data);
    agent_session *s = open_session(&h,
        "answer <tools>{\"name\": \"refactor\", \"arguments\": {\"operation\": \"rename\", \"name\": "
        "\"join1\", \"to\": \"glue\"}}</tools>\nanswer No.\nanswer No.\nanswer No.\n",
        AGENT_MODE_EDITS, NULL, false);
    submit(s, &h, "Rename sep to glue");
    assert_file("words.py", text.data);
    assert_true(told(&h, "the request renames sep, not join1"));
    agent_session_close(s);
    free_host(&h);
    base_buf_free(&text);
}

/* A variable is no definition: its function is written again, and no renaming of another one is made for it. */
static void test_opening__what_is_no_definition_renames_no_other(void **state)
{
    NEEDS_GRAMMAR;
    static const char one[] = "def split_words(text):\n    parts = text.split()\n    return parts\n",
                      renamed[] = "def split_words(text):\n    pieces = text.split()\n    return pieces\n",
                      two[] = "\n\ndef other_words(text):\n    parts = text.split()\n    return parts\n",
                      call[] = "answer <tools>{\"name\": \"refactor\", \"arguments\": {\"operation\": "
                               "\"rename\", \"name\": \"split_words\", \"to\": \"pieces\"}}</tools>\n";
    for (int n = 1; n <= 2; n++) {
        base_buf text = {0}, script = {0};
        base_buf_printf(&text, "%s%s", one, n == 2 ? two : "");
        if (n == 1)
            base_buf_printf(&script, "answer <<X\n%s```\nX\nanswer Done.\n", renamed);
        else
            base_buf_printf(&script, "%sanswer No.\nanswer No.\nanswer No.\n", call);
        host h = new_host();
        put_file("words.py", text.data);
        agent_session *s = open_session(&h, script.data, AGENT_MODE_EDITS, NULL, false);
        submit(s, &h, "Rename parts to pieces");
        assert_file("words.py", n == 1 ? renamed : text.data);
        assert_int_equal(told(&h, "the request renames parts, not split_words"), n == 2);
        agent_session_close(s);
        free_host(&h);
        base_buf_free(&text);
        base_buf_free(&script);
    }
}

/* "Move a and b from x.py to y.py": both go there. */
static void test_opening__several_moves_go_to_one_file(void **state)
{
    NEEDS_GRAMMAR;
    host h = new_host();
    put_file("signer.py",
        "signer = 1\n\n\ndef twice(n):\n    return 2 * n\n\n\ndef thrice(n):\n    return 3 * n\n");
    put_file("coder.py", "def half(n):\n    return n / 2\n");
    agent_session *s = open_session(&h,
        "opens 1\nanswer }}</tools>\nopens 1\nanswer }}</tools>\nanswer Done.\nanswer Done.\n",
        AGENT_MODE_EDITS, NULL, false);
    submit(s, &h, "move twice and thrice from signer.py to coder.py pls");
    char *text = get_file("coder.py");
    if (!strstr(text, "def twice(n):") || !strstr(text, "def thrice(n):"))
        fail_msg("%s\n%s", text, h.json.data);
    free(text);
    agent_session_close(s);
    free_host(&h);
}

/* "Rename a to b and c to d": each is begun; one that is refused keeps the next from nothing, and is named at the end. */
static void test_opening__several_operations_are_all_begun(void **state)
{
    NEEDS_GRAMMAR;
    static const struct {
        const char *request, *has[2], *lacks, *told;
    } cases[] = {
        {"Rename twice to doubled and half to halved", {"def doubled(n)", "def halved(n)"}, "twice", NULL},
        {"twice and half say little. Call them doubled and halved.", {"def doubled(n)", "def halved(n)"},
            "twice", NULL},
        {"The third time that I read twice and half. Call them doubled and halved.",
            {"def doubled(n)", "def halved(n)"}, "twice", NULL},
        {"Rename twice to doubled in both.py, and rename half in both.py to `halved`.",
            {"def doubled(n)", "def halved(n)"}, "twice", NULL},
        {"Delete third and rename twice to doubled, half to halved", {"def doubled(n)", "def halved(n)"},
            "third", NULL},
        {"Rename twice to def and half to halved", {"def twice(n)", "def halved(n)"}, "doubled",
            "Not done: rename of twice to def."},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        host h = new_host();
        put_file("both.py", "def twice(n):\n    return 2 * n\n\n\ndef half(n):\n    return n / 2\n\n\n"
                            "def third(n):\n    return n / 3\n\n\ndef one():\n    return half(twice(1))\n");
        agent_session *s = open_session(&h,
            "opens 1\nanswer }}</tools>\nopens 1\nanswer }}</tools>\nopens 1\nanswer }}</tools>\n" NO NO NO
                NO,
            AGENT_MODE_ALL, NULL, false);
        agent_session_agent(s)->settings.tries = 0;
        submit(s, &h, cases[i].request);
        char *text = get_file("both.py");
        if (!strstr(text, cases[i].has[0]) || !strstr(text, cases[i].has[1]) ||
            strstr(text, cases[i].lacks) || (cases[i].told ? !told(&h, cases[i].told) : told(&h, "Not done")))
            fail_msg("%s\n%s\n%s", cases[i].request, text, h.json.data);
        free(text);
        agent_session_close(s);
        free_host(&h);
    }
}

/* A function of C is given another signature: its prototype follows, in the header's own words. */
static void test_opening__a_prototype_follows_its_function(void **state)
{
    NEEDS_GRAMMAR;
    static const struct {
        const char *header, *after;
    } cases[] = {
        {"#pragma once\nbool is_full(struct map *map);\nint other(void);\n",
            "#pragma once\nbool is_full(const struct map *map);\nint other(void);\n"},
        {"API bool is_full(struct map *m);\n", "API bool is_full(const struct map *map);\n"},
        {"bool is_full(const struct map *map);\n", "bool is_full(const struct map *map);\n"},
        {"int other(void);\n", "int other(void);\n"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        put_file("map.h", cases[i].header);
        put_file(
            "map.c", "#include \"map.h\"\n\nbool is_full(struct map *map)\n{\n    return map->full;\n}\n");
        host h = new_host();
        agent_session *s = open_session(&h,
            "answer <<X\n<tools>{\"name\": \"rewrite\", \"arguments\": {\"path\": \"map.c\", \"name\": "
            "\"is_full\"}}</tools>\n```c\nbool is_full(const struct map *map)\n{\n    return "
            "map->full;\n}\n```\nX\n" NO NO NO NO,
            AGENT_MODE_ALL, NULL, false);
        agent_session_agent(s)->settings.tries = 0;
        submit(s, &h, "Make the argument of is_full const.");
        char *text = get_file("map.h");
        if (strcmp(text, cases[i].after) != 0) fail_msg("%s\n%s", text, h.json.data);
        free(text);
        agent_session_close(s);
        free_host(&h);
    }
}

/* "Queue::pop": pop is to go, its type stays. */
static void test_opening__a_qualifier_is_not_what_goes(void **state)
{
    NEEDS_GRAMMAR;
    put_file("queue.rs", "pub struct Queue;\n\nimpl Queue {\n    pub fn pop(&self) {}\n}\n");
    host h = new_host();
    agent_session *s = open_session(&h, "opens 1\nanswer }}</tools>\n" NO NO NO, AGENT_MODE_ALL, NULL, false);
    agent_session_agent(s)->settings.tries = 0;
    submit(s, &h, "Rename Queue::pop to take_one");
    assert_file("queue.rs", "pub struct Queue;\n\nimpl Queue {\n    pub fn take_one(&self) {}\n}\n");
    assert_false(told(&h, "asking for the rest"));
    assert_false(told(&h, "till in the tree"));
    agent_session_close(s);
    free_host(&h);
}

/* What a request says of a new parameter besides its callers is the body's, which a small model leaves as it was. */
static void test_opening__a_new_parameter_is_to_be_used(void **state)
{
    NEEDS_GRAMMAR;
    put_file(
        "a.c", "struct item {\n    unsigned mode;\n};\n\nvoid put(struct item *i)\n{\n    i->mode = 0;\n}\n");
    host h = new_host();
    agent_session *s =
        open_session(&h, "opens 1\nanswer 0\"}}</tools>\n" NO NO NO, AGENT_MODE_ALL, NULL, false);
    agent_session_agent(s)->settings.tries = 0;
    submit(s, &h, "Add a parameter unsigned mode to put. The item gets it instead of 0.");
    assert_file("a.c", "struct item {\n"
                       "    unsigned mode;\n"
                       "};\n\n"
                       "void put(struct item *i, unsigned mode)\n"
                       "{\n"
                       "    i->mode = 0;\n"
                       "}\n");
    assert_true(told(&h, "As it was: put in a.c."));
    assert_true(told(&h, "put is now:"));
    agent_session_close(s);
    free_host(&h);
}

/* Each function of a list has to change; of several members of a name the one whose type stands beside it is meant. */
static void test_opening__lists_and_members_are_read(void **state)
{
    NEEDS_GRAMMAR;
    put_file("shop.py", "class Cart:\n"
                        "    def add(self):\n"
                        "        return 1\n\n\n"
                        "class Shelf:\n"
                        "    def add(self):\n"
                        "        return 2\n\n\n"
                        "def open_it():\n    return Cart().add()\n\n\ndef close_it():\n    return 3\n");
    host h = new_host();
    agent_session *s = open_session(&h, "opens 1\nanswer }}</tools>\n" NO NO NO, AGENT_MODE_ALL, NULL, false);
    agent_session_agent(s)->settings.tries = 0;
    submit(s, &h, "Rename the method add of Cart to put.");
    assert_false(told(&h, "till in the tree"));
    assert_true(told(&h, "renamed method add to put: 2 places in 1 file."));
    assert_true(told(&h, "Another add stays: shop.py:7."));
    submit(s, &h, "The functions open_it and close_it should return 4.");
    assert_true(told(&h, "open_it, close_it is as it was: it was to be changed too."));
    agent_session_close(s);
    free_host(&h);
}

/* A comment above a function is a change of it; the second of two is asked for. */
static void test_opening__comments_of_each_are_wanted(void **state)
{
    NEEDS_GRAMMAR;
    put_file("a.c", "int open_it(void)\n{\n    return 1;\n}\n\nint close_it(void)\n{\n    return 2;\n}\n");
    host h = new_host();
    agent_session *s = open_session(&h,
        "answer <<X\n<tools>{\"name\": \"rewrite\", \"arguments\": {\"path\": \"a.c\", \"name\": "
        "\"open_it\"}}</tools>\n```c\n/* Opens it. */\nint open_it(void)\n{\n    return 7;\n}\n```\nX\n" NO NO
            NO NO,
        AGENT_MODE_ALL, NULL, false);
    agent_session_agent(s)->settings.tries = 0;
    submit(s, &h, "Add a comment to open_it and close_it");
    assert_file("a.c",
        "/* Opens it. */\nint open_it(void)\n{\n    return 1;\n}\n\nint close_it(void)\n{\n    return 2;\n}\n");
    assert_true(told(&h, "As it was: close_it."));
    agent_session_close(s);
    free_host(&h);
}

/* ... and its call goes on into the comment. */
static void test_opening__a_comment_is_begun(void **state)
{
    NEEDS_GRAMMAR;
    put_file("a.py", "def open_it():\n    return 1\n\n\ndef close_it():\n    return 2\n");
    host h = new_host();
    agent_session *s = open_session(&h,
        "answer <<X\n<tools>{\"name\": \"rewrite\", \"arguments\": {\"path\": \"a.py\", \"name\": "
        "\"open_it\"}}</tools>\n```python\ndef open_it():\n    \"\"\"Opens it.\"\"\"\n    return 1\n```\nX\n"
        "answer I added it.\nopens 1\nanswer <<X\nCloses it.\"\"\"\n    return 7\n```\nX\n" NO NO NO,
        AGENT_MODE_ALL, NULL, false);
    agent_session_agent(s)->settings.tries = 0;
    submit(s, &h, "Please add docstrings to open_it and close_it.");
    char *text = get_file("a.py");
    if (strcmp(text, "def open_it():\n    \"\"\"Opens it.\"\"\"\n    return 1\n\n\n"
                     "def close_it():\n    \"\"\"Closes it.\"\"\"\n    return 2\n"))
        fail_msg("%s\n%s", text, h.json.data);
    free(text);
    assert_false(told(&h, "As it was"));
    agent_session_close(s);
    free_host(&h);
}

/* "Call it" in front of a name is a renaming; in front of a place it asks for a call. */
static void test_opening__what_is_called_there_keeps_its_name(void **state)
{
    NEEDS_GRAMMAR;
    static const struct {
        const char *request;
        bool is_renaming;
    } cases[] = {{"The name add says little. Call it total.", true}, {"Call it total, instead of add", true},
        {"Change add so that it gives 2. Also call it in other.py.", false},
        {"Change add so that it gives 2, and call it there.", false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        put_file("shop.py", "def add():\n    return 1\n");
        put_file("other.py", "import shop\n");
        host h = new_host();
        agent_session *s =
            open_session(&h, "opens 1\nanswer }}</tools>\n" NO NO NO, AGENT_MODE_ALL, NULL, false);
        agent_session_agent(s)->settings.tries = 0;
        submit(s, &h, cases[i].request);
        if (told(&h, "refactor") != cases[i].is_renaming) fail_msg("%s", cases[i].request);
        agent_session_close(s);
        free_host(&h);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST_CASE(test_opening__a_condition_in_front_is_begun),
        TEST_CASE(test_opening__a_copied_condition_is_followed_by_no_return),
        TEST_CASE(test_opening__words_that_name_the_place_are_followed),
        TEST_CASE(test_opening__an_operation_is_done_for_each_of_a_list),
        TEST_CASE(test_opening__an_operation_is_opened_by_other_words),
        TEST_CASE(test_opening__a_group_is_deleted),
        TEST_CASE(test_opening__operations_are_read_whole),
        TEST_CASE(test_opening__what_is_told_is_renamed),
        TEST_CASE(test_opening__parameters_are_turned_round_with_their_calls),
        TEST_CASE(test_opening__a_parameter_comes_and_goes_by_words),
        TEST_CASE(test_opening__behaviour_in_plain_words_finds_its_function),
        TEST_CASE(test_opening__of_long_functions_a_short_one_is_taken),
        TEST_CASE(test_opening__a_request_about_parameters_is_a_call),
        TEST_CASE(test_opening__a_parameter_of_several_functions_is_renamed_in_each),
        TEST_CASE(test_opening__a_parameter_of_too_many_functions_stays),
        TEST_CASE(test_opening__what_is_no_definition_renames_no_other),
        TEST_CASE(test_opening__several_moves_go_to_one_file),
        TEST_CASE(test_opening__what_a_request_says_of_a_move_is_not_asked_of_the_model),
        TEST_CASE(test_opening__several_operations_are_all_begun),
        TEST_CASE(test_opening__comments_of_each_are_wanted),
        TEST_CASE(test_opening__a_comment_is_begun),
        TEST_CASE(test_opening__a_prototype_follows_its_function),
        TEST_CASE(test_opening__a_qualifier_is_not_what_goes),
        TEST_CASE(test_opening__a_new_parameter_is_to_be_used),
        TEST_CASE(test_opening__lists_and_members_are_read),
        TEST_CASE(test_opening__what_is_called_there_keeps_its_name),
    };
    find_grammars();
    return RUN_ON_BOTH(tests);
}
