/* The call that the program begins for the model: a change of what is there, a further attempt. */
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

/* Where the code is said to be right, the test is what changes: its call is begun, and code is not written. */
static void test_opening__a_test_that_is_wrong_is_mended(void **state)
{
    NEEDS_GRAMMAR;
    static const char code[] = "def text():\n    return 'new'\n";
    put_file("text.py", code);
    put_file("test_text.py", "from text import text\n\n\ndef test_text():\n    assert text() == 'old'\n");
    host h = new_host();
    agent_session *s = open_session(&h,
        "answer <<X\ndef test_text():\n    assert text() == 'new'\n```\nX\n"
        "answer <<X\n<tools>{\"name\": \"rewrite\", \"arguments\": {\"path\": \"text.py\", \"name\": "
        "\"text\"}}</tools>\n```\ndef text():\n    return 'old'\n```\nX\n" NO NO NO,
        AGENT_MODE_EDITS, NULL, false);
    agent_session_agent(s)->settings.tries = 0;
    submit(s, &h, "test_text fails since the text was reworded. The new wording is right, fix the test.");
    assert_file("text.py", code);
    assert_file("test_text.py", "from text import text\n\n\ndef test_text():\n    assert text() == 'new'\n");
    agent_session_close(s);
    free_host(&h);
}

/* Where both spellings are said, the old one goes from what the tests expect, and stays in what they give the code. */
static void test_opening__a_test_gets_the_new_spelling(void **state)
{
    NEEDS_GRAMMAR;
    static const char
        code[] = "def text(s):\n    return s.replace(':returns:', ':return:')\n",
        test[] =
            "from text import text\n\n\ndef test_text():\n    s = ':returns: a'\n    assert text(s) == (\n"
            "        ':param:'\n        %s: a'\n    )\n    assert text(':returns: b') == %s: b'\n";
    static const char *const requests[] = {
        "pytest fails since we compose reST with :return: instead of :returns:. The code is right like that, the old spelling "
        "in the test's expectations isn't. Please fix the test.",
        "`:returns:` became `:return:` in what text gives, that's on purpose. Please adapt the tests.",
        "The test is outdated: we write ':return:' rather than ':returns:' now. Update the test."};
    for (size_t i = 0; i < sizeof requests / sizeof *requests; i++) {
        base_buf before = {0}, after = {0};
        base_buf_printf(&before, test, "':returns", "':returns");
        base_buf_printf(&after, test, "':return", "':return");
        put_file("text.py", code);
        put_file("test_text.py", before.data);
        host h = new_host();
        agent_session *s = open_session(&h, "answer <<X\n```\nX\nanswer Done.\nanswer Done.\nanswer Done.\n",
            AGENT_MODE_EDITS, NULL, false);
        agent_session_agent(s)->settings.tries = 0;
        submit(s, &h, requests[i]);
        assert_file("text.py", code);
        assert_file("test_text.py", after.data);
        agent_session_close(s);
        free_host(&h);
        base_buf_free(&before);
        base_buf_free(&after);
    }
}

/* The version is written where the tree gives it, and nothing else of that number is touched. */
static void test_opening__a_version_is_bumped(void **state)
{
    static const struct {
        const char *request, *now;
    } cases[] = {{"Bump the version to 1.3.0, please", "1.3.0"}, {"chore: release version v1.3.0", "1.3.0"},
        {"Prepare release 1.3: bump the version.", "1.3"},
        {"pad should raise the error of version 1.3.0", "1.2.0"}};
    static const char manifest[] =
        "[project]\nname = \"pad\"\nversion = \"%s\"\nrequires-python = \">=3.8\"\n"
        "dependencies = [\"pal==1.2.0\"]\n\n[tool.x]\ntarget_version = \"1.2.0\"\n";
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        base_buf before = {0}, after = {0}, module = {0};
        base_buf_printf(&before, manifest, "1.2.0");
        base_buf_printf(&after, manifest, cases[i].now);
        base_buf_printf(&module,
            "\"\"\"Since version 1.0.\"\"\"\n\n__version__ = '%s'\n\n\ndef pad(s):\n    return s\n",
            cases[i].now);
        put_file("pyproject.toml", before.data);
        put_file("version.py",
            "\"\"\"Since version 1.0.\"\"\"\n\n__version__ = '1.2.0'\n\n\ndef pad(s):\n    return s\n");
        put_file("setup.cfg", "[metadata]\nversion = 9.9\n"); /* another thing's */
        host h = new_host();
        agent_session *s =
            open_session(&h, "answer Done.\nanswer Done.\nanswer Done.\nanswer Done.\nanswer Done.\n",
                AGENT_MODE_ALL, NULL, false);
        agent_session_agent(s)->settings.tries = 0;
        submit(s, &h, cases[i].request);
        assert_file("pyproject.toml", after.data);
        assert_file("version.py", module.data);
        assert_file("setup.cfg", "[metadata]\nversion = 9.9\n");
        agent_session_close(s);
        free_host(&h);
        base_buf_free(&before);
        base_buf_free(&after);
        base_buf_free(&module);
    }
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST_CASE(test_opening__a_condition_in_front_is_begun),
        TEST_CASE(test_opening__a_copied_condition_is_followed_by_no_return),
        TEST_CASE(test_opening__words_that_name_the_place_are_followed),
        TEST_CASE(test_opening__behaviour_in_plain_words_finds_its_function),
        TEST_CASE(test_opening__of_long_functions_a_short_one_is_taken),
        TEST_CASE(test_opening__a_test_that_is_wrong_is_mended),
        TEST_CASE(test_opening__a_test_gets_the_new_spelling),
        TEST_CASE(test_opening__a_version_is_bumped),
        TEST_CASE(test_opening__comments_of_each_are_wanted),
        TEST_CASE(test_opening__a_comment_is_begun),
        TEST_CASE(test_opening__a_prototype_follows_its_function),
        TEST_CASE(test_opening__lists_and_members_are_read),
    };
    find_grammars();
    return RUN_ON_BOTH(tests);
}
