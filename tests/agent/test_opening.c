/* The call that the program begins for the model: an operation, an addition, a new test, a further attempt. */
#include <unistd.h>

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

/* Where the request names the new function and its place, its call is begun, and where a language says how, its text. */
static void test_opening__an_addition_is_begun(void **state)
{
    NEEDS_GRAMMAR;
    static const char stack[] = "class Stack:\n"
                                "    def push(self, x):\n"
                                "        return x\n\n\n"
                                "class Empty:\n"
                                "    pass\n\n\n"
                                "def top(s):\n"
                                "    return s\n";
    static const struct {
        const char *request, *answer, *file, *has;
    } cases[] = {
        {"Add a method pop_all to class Stack that empties it", "):\n    return []", "stack.py",
            "        return x\n\n    def pop_all(self):\n        return []\n"},
        {"Add a method pop_all(n) to Stack", ":\n    return n", "stack.py",
            "        return x\n\n    def pop_all(self, n):\n        return n\n"},
        {"Write a function is_top(s, t) in stack.py", ":\n    return s == t", "stack.py",
            "def is_top(s, t):\n    return s == t\n"},
        {"Add a function is_top to the stack module", "s):\n    return s", "stack.py",
            "def is_top(s):\n    return s\n"},
        {"Add a static method pop_all to Stack", "):\n    return []", "stack.py",
            "        return x\n\n    @staticmethod\n    def pop_all():\n        return []\n"},
        {"Add a function twice_more and declare it in twice.h",
            "static int twice_more(int a)\n{\n    return a;\n}", "twice.h",
            "int twice(int a);\nint twice_more(int a);\n"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        host h = new_host();
        base_buf script = {0};
        put_file("stack.py", stack);
        put_file("twice.h", "int twice(int a);\n");
        put_file("twice.c", "#include \"twice.h\"\n\n"
                            "int twice(int a)\n"
                            "{\n"
                            "    return 2 * a;\n"
                            "}\n\n"
                            "static int more(int a)\n"
                            "{\n"
                            "    return twice(a);\n"
                            "}\n");
        base_buf_printf(&script, "answer <<X\n%s\n```\nX\nanswer Added.\nanswer Added.\nanswer Added.\n",
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
    /* What is there already is not added, and a question of many places is the model's. */
    static const char *const others[] = {"Add a method push to class Stack that calls print",
        "Add a function is_top that compares", "Add a test for the function top in stack.py"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        host h = new_host();
        put_file("stack.py", stack);
        agent_session *s = open_session(&h, "answer (no call)\n" NO NO NO NO, AGENT_MODE_EDITS, NULL, false);
        submit(s, &h, others[i]);
        if (told(&h, "pop_all") || told(&h, "(self(no call)")) fail_msg("%s", h.json.data);
        assert_file("stack.py", stack);
        agent_session_close(s);
        free_host(&h);
    }
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

/* What other files say in the same words is copied from by a small model. */
static void test_opening__an_addition_to_a_file_sees_that_file(void **state)
{
    static const char body[] = "\n\n"
                               "def is_%s_number(n):\n"
                               "    \"\"\"Whether a number is %s and divides by two.\"\"\"\n"
                               "    return n\n";
    base_buf numbers = {0}, others = {0};
    base_buf_printf(&numbers, "import os\n");
    base_buf_printf(&others, "import os\n");
    base_buf_printf(&numbers, body, "prime", "prime");
    base_buf_printf(&others, body, "even", "even");
    put_file("numbers.py", numbers.data);
    put_file("others.py", others.data);
    put_file("numbers.rst", "Numbers\n=======\n\nAll about them.\n");
    static const struct {
        const char *request;
        bool sees_others;
    } cases[] = {{"Add a function halved(n) to numbers that divides an even number by two", false},
        {"Write a function halved(n) in the module numbers: an even number by two", false},
        {"Add a function halved(n) that divides an even number by two", true}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        host h = new_host();
        agent_session *s = open_session(&h, "answer Added.\n" NO NO NO NO, AGENT_MODE_ALL, NULL, false);
        submit(s, &h, cases[i].request);
        assert_true(told(&h, "\"path\":\"numbers.py\"") || cases[i].sees_others);
        if (told(&h, "\"path\":\"others.py\"") != cases[i].sees_others) fail_msg("%s", cases[i].request);
        agent_session_close(s);
        free_host(&h);
    }
    base_buf_free(&numbers);
    base_buf_free(&others);
}

/* In front of it stands the function of its own type that it is most like, not only another type's of its name. */
static void test_opening__an_addition_sees_what_it_is_like(void **state)
{
    NEEDS_GRAMMAR;
    static const struct {
        const char *request;
        bool is_shown;
    } cases[] = {{"q: add the missing GetOldest() to Cache, as Queue has it", true},
        {"Add GetOldest() to Cache, like RemoveOldest", false}, /* as every definition that is named */
        {"Add a method Len() to Cache", false}};
    put_file("queue.go",
        "package q\n\ntype Queue struct{ l list }\n\nfunc (q *Queue) GetOldest() int {\n\treturn q.l.last\n}\n");
    put_file("cache.go",
        "package q\n\ntype Cache struct{ q Queue }\n\nfunc (c *Cache) Purge() {\n\tc.q.Purge()\n}\n\n"
        "func (c *Cache) RemoveOldest() int {\n\treturn c.q.RemoveOldest()\n}\n");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        host h = new_host();
        agent_session *s = open_session(&h, NO NO NO NO, AGENT_MODE_ALL, NULL, false);
        agent_session_agent(s)->settings.tries = 0;
        submit(s, &h, cases[i].request);
        const bool is_shown = told(&h, "is made like it");
        if (is_shown != cases[i].is_shown) fail_msg("%s: %s", cases[i].request, h.json.data);
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

/* "Export X": what is there goes into its package's file, by the program's text alone. */
static void test_opening__what_is_there_is_exported(void **state)
{
    NEEDS_GRAMMAR;
    static const char package[] =
        "\"\"\"Marks.\"\"\"\nfrom .ends import last_end\n\n__all__ = [\n    \"last_end\",\n]\n";
    static const struct {
        const char *request;
        const char *after; /* of the package's file */
    } cases[] = {
        {"Export FirstMark from the package.",
            "\"\"\"Marks.\"\"\"\nfrom .ends import last_end\nfrom .marks import FirstMark\n\n__all__ = [\n    "
            "\"last_end\",\n    \"FirstMark\",\n]\n"},
        {"FirstMark should be importable from the package: export it in __init__.py.",
            "\"\"\"Marks.\"\"\"\nfrom .ends import last_end\nfrom .marks import FirstMark\n\n__all__ = [\n    "
            "\"last_end\",\n    \"FirstMark\",\n]\n"},
        {"Export last_end from the package.", package}, /* it is */
        {"Export NoMark from the package.", package},   /* nobody has it */
    };
    base_buf path = {0};
    base_buf_printf(&path, "%s/marks", tree);
    assert_int_equal(base_fs_mkdirs(path.data, NULL), 0);
    base_buf_free(&path);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        put_file("marks/__init__.py", package);
        put_file("marks/ends.py", "def last_end():\n    return 1\n");
        put_file("marks/marks.py", "class FirstMark:\n    def at(self):\n        return 0\n");
        host h = new_host();
        agent_session *s = open_session(&h, "answer ```\n" NO NO NO NO, AGENT_MODE_ALL, NULL, false);
        agent_session_agent(s)->settings.tries = 0;
        submit(s, &h, cases[i].request);
        char *text = get_file("marks/__init__.py");
        if (strcmp(text, cases[i].after) != 0) fail_msg("%s\n%s\n%s", cases[i].request, text, h.json.data);
        free(text);
        agent_session_close(s);
        free_host(&h);
    }
}

/* A new function of a named type: its call is begun, with the receiver and in the place of the type's others. */
static void test_opening__a_function_of_a_type_is_begun(void **state)
{
    NEEDS_GRAMMAR;
    static const struct {
        const char *path, *text, *request, *begins, *answer, *after; /* begins NULL: nothing is begun */
    } cases[] = {
        {"queue.go", "package q\n\ntype Queue struct{ n int }\n\nfunc (q *Queue) Pop() {\n\tq.n--\n}\n",
            "Add a method Reset to Queue that sets n to 0", "func (q *Queue) Reset",
            "() {\n\tq.n = 0\n}\n```",
            "package q\n\n"
            "type Queue struct{ n int }\n\n"
            "func (q *Queue) Pop() {\n"
            "\tq.n--\n"
            "}\n\n"
            "func (q *Queue) Reset() {\n"
            "\tq.n = 0\n"
            "}\n"},
        {"queue.rs", "pub struct Queue;\n\nimpl Queue {\n    pub fn pop(&self) {}\n}\n",
            "Queue needs a method `reset`", "pub fn reset", "(&self) {}\n```",
            "pub struct Queue;\n\nimpl Queue {\n    pub fn pop(&self) {}\n\n    pub fn reset(&self) {}\n}\n"},
        {"queue.js", "export class Queue {\n  pop() {\n    return 1;\n  }\n}\n",
            "Add a reset() method to Queue", "\nreset", "() {\n  return 0;\n}\n```",
            "export class Queue {\n  pop() {\n    return 1;\n  }\n\n  reset() {\n    return 0;\n  }\n}\n"},
        {"queue.js", "export function pop() {\n  return 1;\n}\n", "Add a function reset to queue.js",
            "export function reset", "() {\n  return 0;\n}\n```",
            "export function pop() {\n  return 1;\n}\n\nexport function reset() {\n  return 0;\n}\n"},
        {"queue.py", "class Queue:\n    def pop(self):\n        return 1\n", "Add a method reset to Queue",
            "def reset(self", "):\n    return 0\n```",
            "class Queue:\n    def pop(self):\n        return 1\n\n    def reset(self):\n        return 0\n"},
        {"queue.py", "class Queue:\n    def pop(self):\n        return 1\n",
            "Ask a queue whether it is empty: add is_empty, which returns a bool", "def is_empty(self",
            "):\n    return 0\n```",
            "class Queue:\n"
            "    def pop(self):\n"
            "        return 1\n\n"
            "    def is_empty(self):\n"
            "        return 0\n"},
        {"index.js", "exports.parse = parse\n\nfunction parse (s) {\n  return s\n}\n",
            "Add and export isValid(s), which returns true if it can be parsed, and describe it in README.md",
            "function isValid", " (s) {\n  return true\n}\n```",
            "exports.parse = parse\nexports.isValid = isValid\n\nfunction parse (s) {\n  return s\n}\n\n"
            "function isValid (s) {\n  return true\n}\n"},
        /* Another type's method of that name is another thing. */
        {"queue.go",
            "package q\n\ntype Queue struct{ n int }\n\nfunc (q *Queue) Pop() {\n\tq.n--\n}\n\ntype Stack struct{ n "
            "int }\n",
            "q: add the missing Pop() to Stack", "func (s *Stack) Pop", "() {\n\ts.n--\n}\n```",
            "package q\n\n"
            "type Queue struct{ n int }\n\n"
            "func (q *Queue) Pop() {\n"
            "\tq.n--\n"
            "}\n\n"
            "type Stack struct{ n int }\n\n"
            "func (s *Stack) Pop() {\n"
            "\ts.n--\n"
            "}\n"},
        {"queue.py",
            "from contextlib import contextmanager\n\n\nclass Queue:\n    @contextmanager\n    def held(self):\n     "
            "   yield\n",
            "Add a `muted` context manager to Queue", "@contextmanager\ndef muted(self",
            "):\n    yield 1\n```",
            "from contextlib import contextmanager\n\n\nclass Queue:\n    @contextmanager\n    def held(self):\n     "
            "   yield\n\n    @contextmanager\n    def muted(self):\n        yield 1\n"},
        /* Where nothing says the place: beside the function that it is compared with. */
        {"split.go", "package q\n\nfunc Split(s string) []string {\n\treturn nil\n}\n",
            "Add a function MustSplit(s string) that splits like Split and panics on an error",
            "func MustSplit(s string)", " []string {\n\treturn Split(s)\n}\n```",
            "package q\n\nfunc Split(s string) []string {\n\treturn nil\n}\n\n"
            "func MustSplit(s string) []string {\n\treturn Split(s)\n}\n"},
        {"sum.c", "static int twice(int a)\n{\n    return 2 * a;\n}\n",
            "Add a function int half(int a) to sum.c", "int half(int a)", "\n{\n    return a / 2;\n}\n```",
            "static int twice(int a)\n{\n    return 2 * a;\n}\n\nint half(int a)\n{\n    return a / 2;\n}\n"},
        /* A file that is not there yet is the place, whatever the request's words fit elsewhere. */
        {"lists.py", "", "Add joined(items) in a new file lists.py: it joins the items of a queue",
            "def joined(items)", ":\n    return 1\n```", "def joined(items):\n    return 1\n"},
        {"queue.py", "class Queue:\n    def pop(self):\n        return 1\n",
            "Add a method pop to Queue, if it has none", NULL, "None is needed.", NULL}, /* it has one */
        {"queue.py", "class Queue:\n    def pop(self):\n        return 1\n", "Add a method reset to Stack",
            NULL, "There is no Stack.", NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        if (*cases[i].text)
            put_file(cases[i].path, cases[i].text);
        else
            put_file("queue.py", "def pop(queue, items):\n    return items\n");
        host h = new_host();
        base_buf script = {0};
        base_buf_printf(&script, "answer <<X\n%s\nX\n" NO NO NO NO, cases[i].answer);
        agent_session *s = open_session(&h, script.data, AGENT_MODE_ALL, NULL, false);
        agent_session_agent(s)->settings.tries = 0;
        submit(s, &h, cases[i].request);
        if (cases[i].after) {
            assert_file(cases[i].path, cases[i].after);
            base_buf begins = {0};
            base_json_put_str(&begins, cases[i].begins, strlen(cases[i].begins));
            begins.data[begins.len - 1] = '\0'; /* without its quotes */
            if (!told(&h, begins.data + 1)) fail_msg("%s: %s", cases[i].request, h.json.data);
            base_buf_free(&begins);
        } else if (told(&h, "\"label\":\"opening\"")) {
            fail_msg("%s: %s", cases[i].request, h.json.data);
        }
        agent_session_close(s);
        free_host(&h);
        base_buf_free(&script);
        drop_folders(state);
        make_folders(state);
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

/* Rust's tests stand in the file itself, in a module; JavaScript's are calls, so a new one gets a file. */
static void test_opening__a_new_test_finds_its_place(void **state)
{
    NEEDS_GRAMMAR;
    static const char rust[] =
        "pub fn twice(x: i32) -> i32 {\n    x + x\n}\n\npub fn half(x: i32) -> i32 {\n    x / 2\n}\n\n"
        "#[cfg(test)]\nmod tests {\n    use super::*;\n\n    #[test]\n    fn twice_of_two() {\n"
        "        assert_eq!(twice(2), 4);\n    }\n}\n";
    static const char *const folders[] = {"src", "lib", "tests"};
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        base_buf path = {0};
        base_err err = {0};
        base_buf_printf(&path, "%s/%s", tree, folders[i]);
        assert_int_equal(base_fs_mkdirs(path.data, &err), 0);
        base_buf_free(&path);
    }
    put_file("src/lib.rs", rust);
    put_file("lib/shape.js", "export class Shape {\n"
                             "  area(n) {\n"
                             "    return n * n;\n"
                             "  }\n\n"
                             "  edgeLength(n) {\n"
                             "    return 4 * n;\n"
                             "  }\n"
                             "}\n");
    put_file("tests/shape.test.js", "import { test } from 'node:test';\n"
                                    "import assert from 'node:assert';\n"
                                    "import { Shape } from '../lib/shape.js';\n\n"
                                    "test('area', () => {\n  assert.equal(new Shape().area(2), 4);\n});\n");
    put_file("third.go", "package third\n\nfunc third(a int) int {\n\treturn a / 3\n}\n");
    put_file("third_test.go", "package third\n\n"
                              "import \"testing\"\n\n"
                              "func TestThird(t *testing.T) {\n"
                              "\tfor _, c := range []struct{ a, b int }{\n"
                              "\t\t{0, 0},\n"
                              "\t\t{3, 1},\n"
                              "\t\t{6, 2},\n"
                              "\t} {\n"
                              "\t\tcheck(t, third(c.a), c.b)\n"
                              "\t}\n"
                              "}\n");
    static const struct {
        const char *request, *answer, *file, *has;
    } cases[] = {
        {"Add a test for half", "8), 4);\n}", "src/lib.rs",
            "4);\n"
            "    }\n\n"
            "    #[test]\n"
            "    fn test_half() {\n"
            "        assert_eq!(half(8), 4);\n"
            "    }\n"
            "}\n"},
        {"Add a test for edgeLength", "new Shape().edgeLength(2), 8);\n});", "tests/edgeLength.test.js",
            "import { Shape } from '../lib/shape.js';\n\n"
            "test('edgeLength', () => {\n"
            "  assert.equal(new Shape().edgeLength(2), 8);\n"
            "});\n"},
        {"Add a test for edgeLength which fails", "throws(() => new Shape().edgeLength());\n});",
            "tests/edgeLength2.test.js", "{\n  assert.throws(() => new Shape().edgeLength());\n});\n"},
        /* A table's rows are its tests. */
        {"Add tests for third with 9 and 12",
            "9, 3},\n\t\t{12, 4},\n\t} {\n\t\tcheck(t, third(c.a), c.b)\n\t}\n}", "third_test.go",
            "\t\t{3, 1},\n"
            "\t\t{6, 2},\n"
            "\t\t{9, 3},\n"
            "\t\t{12, 4},\n"
            "\t} {\n"
            "\t\tcheck(t, third(c.a), c.b)\n"
            "\t}\n"
            "}\n"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        host h = new_host();
        base_buf script = {0};
        base_buf_printf(&script, "answer <<X\n%s\n```\nX\nanswer Added.\nanswer Added.\nanswer Added.\n",
            cases[i].answer);
        agent_session *s = open_session(&h, script.data, AGENT_MODE_EDITS, NULL, false);
        submit(s, &h, cases[i].request);
        char *text = get_file(cases[i].file);
        if (!strstr(text, cases[i].has)) fail_msg("%s\n%s", text, h.json.data);
        assert_false(told(&h, "No test was added"));
        free(text);
        agent_session_close(s);
        free_host(&h);
        base_buf_free(&script);
    }
}

/* Where tests stand in a "describe", a new one stands behind its nearest; one that a block of its own surrounds needs another. */
static void test_opening__a_new_test_stands_in_its_describe(void **state)
{
    NEEDS_GRAMMAR;
    static const struct {
        const char *request, *tests, *answers, *after;
    } cases[] = {
        {"Nothing tests that nothing is ended by nothing: halfOf(0) is 0. Add a test for halfOf.",
            "describe('halves', function () {\n"
            "  it('should halve', function () {\n"
            "    assert(m.halfOf(4) === 2)\n"
            "  })\n\n"
            "  it('should double', function () {\n"
            "    assert(m.twice(4) === 8)\n"
            "  })\n"
            "})\n",
            "answer <<X\n0) === 0)\n  })\n```\nX\n",
            "  })\n\n"
            "  it('nothing is ended by nothing', function () {\n"
            "    assert(m.halfOf(0) === 0)\n"
            "  })\n\n"
            "  it('should double', function () {\n"},
        /* The second attempt takes the place of the first. */
        {"Add a test that the half of zero is zero: halfOf(0) is 0.",
            "it('should halve', () => {\n"
            "  assert(m.halfOf(4) === 2)\n"
            "})\n",
            "answer <<X\n0) === 1)\n})\n```\nX\nanswer <<X\n0) === 0)\n})\n```\nX\n",
            "it('should halve', () => {\n"
            "  assert(m.halfOf(4) === 2)\n"
            "})\n\n"
            "it('the half of zero is zero', () => {\n"
            "  assert(m.halfOf(0) === 0)\n"
            "})\n"},
        {"Add a test for halfOf of zero",
            "describe('halves', () => {\n"
            "  given(4, () => {\n"
            "    it('is 2', () => {\n"
            "      assert(m.halfOf(value) === 2)\n"
            "    })\n"
            "  })\n"
            "})\n",
            "answer <<X\n0, () => {\n    it('is 0', () => {\n      assert(m.halfOf(value) === 0)\n    })\n  })\n```\nX\n",
            "  })\n\n"
            "  given(0, () => {\n"
            "    it('is 0', () => {\n"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        base_buf path = {0}, tests = {0}, script = {0};
        base_buf_printf(&path, "%s/test", tree);
        assert_int_equal(base_fs_mkdirs(path.data, NULL), 0);
        base_buf_printf(&tests,
            "const assert = require('assert')\nconst m = require('../half')\n"
            "const it = (name, f) => f(), describe = it\nlet value = 0\n"
            "function given(n, f) {\n  value = n\n  f()\n}\n\n%s",
            cases[i].tests);
        put_file("half.js", "exports.halfOf = halfOf\n\nfunction halfOf(n) {\n  return n / 2\n}\n");
        put_file("test/half.js", tests.data);
        put_file("package.json", "{\"name\": \"half\", \"scripts\": {\"test\": \"node test/half.js\"}}\n");
        base_buf_printf(&script, "%s" NO NO NO NO, cases[i].answers);
        host h = new_host();
        agent_session *s = open_session(&h, script.data, AGENT_MODE_ALL, NULL, false);
        agent_session_agent(s)->settings.tries = 0;
        submit(s, &h, cases[i].request);
        char *text = get_file("test/half.js");
        if (!strstr(text, cases[i].after)) fail_msg("%s\n%s\n%s", cases[i].request, text, h.json.data);
        free(text);
        agent_session_close(s);
        free_host(&h);
        base_buf_free(&path);
        base_buf_free(&tests);
        base_buf_free(&script);
    }
}

/* A test of JavaScript is a file of its own: once it is there, the attempt behind a failure writes its lines, not a second file. */
static void test_opening__a_scripts_new_test_is_written_again_by_its_lines(void **state)
{
    NEEDS_GRAMMAR;
    static const char imports[] = "import { test } from 'node:test';\n"
                                  "import assert from 'node:assert';\n"
                                  "import { Shape } from '../lib/shape.js';\n\n";
    static const char *const folders[] = {"lib", "tests"};
    /* The first candidate begins as it likes, the others with a line of their own. */
    static const char *const tries[][3] = {{"0", "", ""}, {"3", "answer Hm.\n", "Eight.\n"}};
    base_buf old = {0}, after = {0};
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        base_buf path = {0};
        base_buf_printf(&path, "%s/%s", tree, folders[i]);
        assert_int_equal(base_fs_mkdirs(path.data, NULL), 0);
        base_buf_free(&path);
    }
    base_buf_printf(&old, "%stest('area', () => {\n  assert.equal(new Shape().area(2), 4);\n});\n", imports);
    base_buf_printf(&after,
        "%stest('edgeLength', () => {\n  assert.equal(new Shape().edgeLength(2), 8);\n});\n", imports);
    put_file("lib/shape.js", "export class Shape {\n"
                             "  area(n) {\n"
                             "    return n * n;\n"
                             "  }\n\n"
                             "  edgeLength(n) {\n"
                             "    return 4 * n;\n"
                             "  }\n"
                             "}\n");
    put_file("tests/shape.test.js", old.data);
    for (size_t i = 0; i < sizeof tries / sizeof *tries; i++) {
        host h = new_host();
        base_buf command = {0}, path = {0}, script = {0};
        stage_configured[AGENT_CONFIGURED_TEST] = (agent_configured_command){
            "cd tests; ! test -s edgeLength.test.js || grep -q 'edgeLength(2), 8)' edgeLength.test.js",
            "the command line", true};
        base_buf_printf(&script,
            "answer <<X\n"
            "new Shape().edgeLength(2), 9);\n"
            "});\n"
            "```\n"
            "X\n"
            "%sanswer <<X\n"
            "%snew Shape().edgeLength(2), 8);\n"
            "});\n"
            "```\n"
            "X\n"
            "answer Added.\n"
            "answer Added.\n",
            tries[i][1], tries[i][2]);
        agent_session *s = open_session(&h, script.data, AGENT_MODE_ALL, NULL, false);
        base_buf_printf(&command, "/tries %s", tries[i][0]);
        assert_int_equal(submit(s, &h, command.data), 0);
        submit(s, &h, "Add a test for edgeLength");
        char *text = get_file("tests/edgeLength.test.js");
        if (strcmp(text, after.data) != 0) fail_msg("%s\n%s", text, h.json.data);
        assert_true(told(&h, "\"status\":\"failed\""));
        if (!told(&h, "\"from\":1,\"to\":7")) fail_msg("tries %s: %s", tries[i][0], h.json.data);
        assert_file("tests/edgeLength2.test.js", "(missing)");
        assert_file("tests/shape.test.js", old.data);
        free(text);
        agent_session_close(s);
        free_host(&h);
        base_buf_free(&command);
        base_buf_free(&script);
        base_buf_printf(&path, "%s/tests/edgeLength.test.js", tree);
        assert_int_equal(unlink(path.data), 0);
        base_buf_free(&path);
    }
    base_buf_free(&old);
    base_buf_free(&after);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST_CASE(test_opening__a_condition_in_front_is_begun),
        TEST_CASE(test_opening__a_copied_condition_is_followed_by_no_return),
        TEST_CASE(test_opening__words_that_name_the_place_are_followed),
        TEST_CASE(test_opening__an_operation_is_done_for_each_of_a_list),
        TEST_CASE(test_opening__an_operation_is_opened_by_other_words),
        TEST_CASE(test_opening__parameters_are_turned_round_with_their_calls),
        TEST_CASE(test_opening__a_parameter_comes_and_goes_by_words),
        TEST_CASE(test_opening__behaviour_in_plain_words_finds_its_function),
        TEST_CASE(test_opening__an_addition_is_begun),
        TEST_CASE(test_opening__what_a_request_says_of_a_move_is_not_asked_of_the_model),
        TEST_CASE(test_opening__an_addition_to_a_file_sees_that_file),
        TEST_CASE(test_opening__an_addition_sees_what_it_is_like),
        TEST_CASE(test_opening__what_is_there_is_exported),
        TEST_CASE(test_opening__a_prototype_follows_its_function),
        TEST_CASE(test_opening__a_function_of_a_type_is_begun),
        TEST_CASE(test_opening__a_qualifier_is_not_what_goes),
        TEST_CASE(test_opening__a_new_parameter_is_to_be_used),
        TEST_CASE(test_opening__lists_and_members_are_read),
        TEST_CASE(test_opening__what_is_called_there_keeps_its_name),
        TEST_CASE(test_opening__a_new_test_finds_its_place),
        TEST_CASE(test_opening__a_new_test_stands_in_its_describe),
        TEST_CASE(test_opening__a_scripts_new_test_is_written_again_by_its_lines),
    };
    find_grammars();
    return RUN_ON_BOTH(tests);
}
