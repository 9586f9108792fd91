/* What a turn says that it did: a change that was asked for and is not in the tree is never told as done. */
#include "agent/asked/asked.h"
#include "agent/words/request_words.h"
#include "agent/retrieve/retrieve.h"
#include "stage.h"

static void test_outcome__knows_a_change_from_a_question(void **state)
{
    static const char *const changes[] = {"Add a function f", "Rename f to g.", "please remove f",
        "pls rename the n parameter of f to k",
        "A closed stream is no terminal: isatty() should return False.", "can you add a test for f?",
        "The helper that writes capitals should be called g.", "Let f take a second parameter",
        "Move f to a.py", "When the name is empty, return 0", "When f is called twice it should fail",
        "Count the calls: a field long n in struct s, increased by one in f", "Ignore empty lines at the end",
        "Don't allow timestamps from the future", "Capitalize the first letter too",
        "Show the old text when the edit was refused", "Warn when the file is empty",
        "What a list prints as should end with its length.",
        "What StringWrapper holds is a str. It should be called StrWrapper.",
        "In encode, skip keys without a value", "encode: fail on an empty key",
        "encode counts blanks; ignore them", "I'd like encode to skip None", "Have encode skip None",
        "Teach parse_size about MB", "Could encode please skip None?",
        "I need ring_peek, which leaves the value", "Ring needs a way to be emptied: clear()",
        "parse('x') crashes with KeyError", "where('a').fragment(1) ends in a TypeError",
        "Rename f to g and change nothing else", "Delete f; don't change anything in b.c",
        "Could I have f renamed to g please?", "is_url() doesn't work without a scheme",
        "MP4 files with that brand aren't detected."};
    static const char *const others[] = {"Which function adds two numbers?", "Should f be renamed?",
        "how do I add a flag", "Explain this diff", "what changed since v1.0?", "say something",
        "Review my changes", "Where is it made?", "hello", "go on with add", "the drop in speed",
        "When is f called?", "When does it fail", "Count the tests", "count the lines of a.py",
        "Summarize the file", "stop here", "Keep going", "Show the old text", "Don't change it, explain it",
        "List what is there", "What should a list print", "What a list prints as?",
        "What StringWrapper should hold?", "I'd like to know what encode skips",
        "Have you seen where it is set", "Could you please explain encode?", "Can it skip None?",
        "In short, what is it", "The cache, where is it", "Why does parse crash on x",
        "parse crashes on x, doesn't it?", "FYI parse crashes on x in 1.2", "Tell me when f crashes",
        "Where f is wrong", "can I delete a key while I go over the map? just tell me, change nothing",
        "Delete f? Just asking.", "I'd like to drop it, but change nothing"};
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++)
        if (!agent_asks_for_change(changes[i])) fail_msg("a change: %s", changes[i]);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (agent_asks_for_change(others[i])) fail_msg("no change: %s", others[i]);
}

/* git heads a hunk with the function above it; the model is shown what the changed lines stand in. */
static void test_outcome__hunks_are_headed_with_what_they_change(void **state)
{
    NEEDS_GRAMMAR;
    static const char diff[] =
        "diff --git a/n.py b/n.py\n--- a/n.py\n+++ b/n.py\n"
        "@@ -3,6 +3,6 @@ def one():\n \n \n def two():\n-    return 1\n+    return 2\n \n \n"
        "@@ -12 +12 @@ def two():\n-old = 0\n+last = 1\n"
        "--- a/gone.py\n+++ /dev/null\n@@ -1 +0,0 @@ def gone():\n-x\n";
    base_buf out = {0};
    host h = new_host();
    put_file("n.py",
        "def one():\n    return 1\n\n\ndef two():\n    return 2\n\n\ndef three():\n    return 3\n\nlast = 1\n");
    agent_session *s = open_session(&h, "answer Done.\n", AGENT_MODE_ALL, NULL, false);
    agent__put_headed(agent_session_agent(s), diff, strlen(diff), &out);
    assert_non_null(strstr(out.data, "@@ -3,6 +3,6 @@ two\n \n \n def two():\n-    return 1\n"));
    assert_non_null(strstr(out.data, "@@ -12 +12 @@ last\n-old = 0\n"));
    assert_non_null(strstr(out.data, "@@ -1 +0,0 @@ def gone():\n-x\n"));
    agent_session_close(s);
    base_buf_free(&out);
    free_host(&h);
}

static void test_outcome__a_lie_is_followed_by_the_truth(void **state)
{
    put_program();
    host h = new_host();
    agent_session *s = open_session(
        &h, "answer Renamed `add` to `sum`.\nanswer Renamed it, I say.\n", AGENT_MODE_ALL, NULL, false);
    assert_int_equal(submit(s, &h, "Rename add to sum_up"), 0);
    assert_true(told(&h, "asking for the change"));
    assert_true(told(&h, "\"event\":\"outcome\""));
    assert_true(told(&h, "\"state\":\"nothing\""));
    assert_file("add.sh", PROGRAM);
    agent_session_close(s);
    free_host(&h);
}

#define ADD_SUB                                                                                              \
    "answer <<X\n<tools>{\"name\": \"rewrite\", \"arguments\": {\"path\": \"add.sh\", \"name\": "            \
    "\"sub_two\"}}</tools>\n"                                                                                \
    "```sh\nsub_two() {\n    echo $(($1 - $2))\n}\n```\nX\n"

/* "Use it in other.sh" is not met by another change of other.sh, which would look done. */
static void test_outcome__what_does_not_use_what_it_is_to_use_is_refused(void **state)
{
    (void)state;
    put_program();
    put_file("other.sh", "show() {\n    echo none\n}\n");
    host h = new_host();
    agent_session *s = open_session(&h,
        ADD_SUB "answer <<X\n<tools>{\"name\": \"rewrite\", \"arguments\": {\"path\": \"other.sh\", "
                "\"name\": \"show\"}}</tools>\n```sh\nshow() {\n    echo nothing\n}\n```\nX\n"
                "answer <<X\necho none`\nshow() {\n    sub_two 3 1\n}\n```\nX\n" NO NO NO,
        AGENT_MODE_ALL, NULL, false);
    agent_session_agent(s)->settings.tries = 0;
    submit(s, &h, "Add sub_two() to add.sh, and use it in other.sh");
    assert_true(told(&h, "other.sh is to use sub_two, and this text does not"));
    assert_file("other.sh", "show() {\n    sub_two 3 1\n}\n");
    agent_session_close(s);
    free_host(&h);
}

/* What the request writes between the brackets is what its caller counts on, whatever would compile. */
static void test_outcome__other_parameters_than_the_request_s_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *request, *text, *why; /* NULL: nothing against it */
    } cases[] = {
        {"add a function f(int fd, void* user) to f.c",
            "int f(void *fd, void *user)\n{\n    return g(fd);\n}\n",
            "the request gives f the parameters (int fd, void* user), and this text gives it (void *fd, void *user)"},
        {"add a function f(int fd, void* user) to f.c",
            "int f(int fd, void *user)\n{\n    return g(fd);\n}\n", NULL},
        {"add a method f(a, b) to C", "def f(self, a: int, b: str = ''):\n    return f(b, a)\n", NULL},
        {"add a method f(a, b) to C", "def f(self, b):\n    return b\n",
            "the request gives f the parameters (a, b), and this text gives it (self, b)"},
        {"add a function f(int fd, void* user) to f.c",
            "/* f(x): as g. */\nint f(int fd, void *user)\n{\n    return g(fd);\n}\n", NULL},
        {"add a function f(\"x\") to f.py", "def f(text):\n    return text\n", NULL},
        {"add a function f to f.py", "def f(text):\n    return text\n", NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        host h = new_host();
        bool is_whole;
        agent_session *s = open_session(&h, NO NO NO NO NO, AGENT_MODE_ALL, NULL, false);
        base_json_doc *arguments = base_json_parse_begun("{\"name\":\"f\"}", &is_whole);
        submit(s, &h, cases[i].request);
        char *why = agent__why_other_parameters(agent_session_agent(s), base_json_root(arguments),
            (base_str){cases[i].text, strlen(cases[i].text)});
        if (!cases[i].why != !why || (why && strcmp(why, cases[i].why) != 0))
            fail_msg("%s: %s", cases[i].request, why ? why : "nothing against it");
        free(why);
        base_json_free(arguments);
        agent_session_close(s);
        free_host(&h);
    }
}

static void test_outcome__what_is_missing_is_asked_for_and_told(void **state)
{
    put_program();
    host h = new_host();
    agent_session *s =
        open_session(&h, ADD_SUB "answer Added both.\n" NO NO NO NO NO NO, AGENT_MODE_ALL, NULL, false);
    assert_int_equal(submit(s, &h, "Add sub_two() and mul_two() to add.sh"), 0);
    assert_true(told(&h, "not all of the change is in the tree"));
    assert_true(told(&h, "Changed: add.sh. Asked for and not in the tree: mul_two."));
    assert_true(told(&h, "\"state\":\"partial\""));
    agent_session_close(s);
    free_host(&h);
}

/* With nothing written, too: what the model is asked then says which names are missing. */
static void test_outcome__what_is_missing_is_named_where_nothing_was_changed(void **state)
{
    put_program();
    host h = new_host();
    agent_session *s =
        open_session(&h, "answer Added both.\n" ADD_SUB NO NO NO NO NO NO NO, AGENT_MODE_ALL, NULL, false);
    assert_int_equal(submit(s, &h, "Add sub_two() and mul_two() to add.sh"), 0);
    assert_true(told(&h, "nothing was changed: asking for the change"));
    assert_true(
        told(&h, "No file was changed yet. sub_two, mul_two is not in the tree yet. Make that change"));
    assert_true(told(&h, "Asked for and not in the tree: mul_two."));
    agent_session_close(s);
    free_host(&h);
}

/* A file with an order of its own stays asked for; one that is only spoken of does not. */
static void test_outcome__a_file_that_has_an_order_is_to_change(void **state)
{
    static const struct {
        const char *request;
        bool is_wanted;
    } cases[] = {{"Add sub_two() to add.sh, and describe it in README.md behind add.", true},
        {"Add sub_two() to add.sh. Say in README.md what it is for.", true},
        {"Add sub_two() to add.sh, and say so at the top of the README.", true},
        {"Add sub_two() to add.sh, in the readme too", true},
        {"Add sub_two() to add.sh and update the README.", true},
        {"Add sub_two() to add.sh, with an entry in README.md.", true},
        {"Add sub_two() to add.sh, with a declaration in README.md.", true},
        {"Add sub_two() to add.sh, as the README has it", false},
        {"Add sub_two() to add.sh, as README.md has it", false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        put_program();
        put_file("README.md", "# Sums\n");
        host h = new_host();
        agent_session *s = open_session(&h, ADD_SUB NO NO NO NO NO, AGENT_MODE_ALL, NULL, false);
        submit(s, &h, cases[i].request);
        char *text = get_file("README.md");
        const char *now = cases[i].is_wanted ? "# Sums\n\nsub_twoAdded both, really.\n" : "# Sums\n";
        if (strcmp(text, now) != 0) fail_msg("%s: %s\n%s", cases[i].request, text, h.json.data);
        free(text);
        agent_session_close(s);
        free_host(&h);
    }
}

/* Code is ordered first, and a document alone was written: the model is asked for the rest, and the last line says what is missing. */
static void test_outcome__code_that_was_not_changed_is_told(void **state)
{
    static const struct {
        const char *request;
        bool is_missing;
    } cases[] = {{"Quux should be possible. Say so in NOTES.md, please.", true},
        {"NOTES.md should say that numbers add up.", false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        put_file("add.sh", "add_up() {\n    echo $(($1 + $2))\n}\n");
        host h = new_host();
        agent_session *s = open_session(&h,
            "answer <<X\n<tools>{\"name\": \"write\", \"arguments\": {\"path\": \"NOTES.md\"}}</tools>\n"
            "```\nNegative numbers too.\n```\nX\n" NO NO NO NO NO,
            AGENT_MODE_ALL, NULL, false);
        agent_session_agent(s)->settings.tries = 0;
        submit(s, &h, cases[i].request);
        if (told(&h, "Changed: NOTES.md. No code was changed.") != cases[i].is_missing)
            fail_msg("%s\n%s", cases[i].request, h.json.data);
        agent_session_close(s);
        free_host(&h);
    }
}

/* Its call is begun for the model, which writes the body only. */
static void test_outcome__what_is_missing_is_begun(void **state)
{
    put_program();
    host h = new_host();
    agent_session *s = open_session(&h,
        ADD_SUB "answer Added both.\n"
                "answer <<X\nmul_two() {\n    echo $(($1 * $2))\n}\n```\nX\nanswer Now both.\n",
        AGENT_MODE_ALL, NULL, false);
    assert_int_equal(submit(s, &h, "Add sub_two() and mul_two() to add.sh"), 0);
    assert_true(told(&h, "\"state\":\"changed\",\"text\":\"Changed: add.sh. No test has judged it.\""));
    char *text = get_file("add.sh");
    assert_non_null(strstr(text, "sub_two() {"));
    assert_non_null(strstr(text, "mul_two() {"));
    free(text);
    agent_session_close(s);
    free_host(&h);
}

/* "in add_up": what is to be changed in a definition that is named is looked for there. */
static void test_outcome__a_definition_that_stays_as_it_was_is_asked_for(void **state)
{
    put_file("add.sh", "add_up() {\n    echo $(($1 + $2))\n}\n");
    host h = new_host();
    agent_session *s = open_session(&h,
        ADD_SUB "answer Added.\n"
                "answer <<X\nadd_up() {\n    echo $(($1 + $2 + 0))\n}\n```\nX\nanswer Both.\n",
        AGENT_MODE_ALL, NULL, false);
    assert_int_equal(submit(s, &h, "Add sub_two() to add.sh and add 0 in add_up"), 0);
    assert_true(told(&h, "add_up is as it was"));
    assert_file(
        "add.sh", "add_up() {\n    echo $(($1 + $2 + 0))\n}\n\nsub_two() {\n    echo $(($1 - $2))\n}\n");
    agent_session_close(s);
    free_host(&h);
}

/* A function of which the request says that it uses the new one changes too, by a call that is begun. */
static void test_outcome__who_is_to_use_what_is_new_changes_too(void **state)
{
    static const struct {
        const char *request;
        bool is_wanted;
    } cases[] = {{"Add a function sub_two(a, b) to add.sh and call it in total instead of by hand.", true},
        {"Add a function sub_two(a, b) to add.sh. Use the new function from total.", true},
        {"Add a function sub_two(a, b) to add.sh, and let total use it.", true},
        {"Add a function sub_two(a, b) to add.sh, so that total calls sub_two.", true},
        {"Add a function sub_two(a, b) to add.sh that subtracts as total does.", false},
        {"Add a function sub_two(a, b) to add.sh; use it rather than total.", false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        put_file("add.sh", "total() {\n    echo $(($1 - $2))\n}\n");
        host h = new_host();
        agent_session *s = open_session(&h,
            "answer <<X\nsub_two() {\n    echo $(($1 - $2))\n}\n```\nX\nanswer Added, and total uses it.\n"
            "answer <<X\ntotal() {\n    sub_two $1 $2\n}\n```\nX\nanswer Both.\n" NO NO,
            AGENT_MODE_ALL, NULL, false);
        submit(s, &h, cases[i].request);
        char *text = get_file("add.sh");
        if (!strstr(text, "    sub_two $1 $2\n") == cases[i].is_wanted)
            fail_msg("%s: %s\n%s", cases[i].request, text, h.outline.data);
        assert_non_null(strstr(text, "sub_two() {"));
        if (cases[i].is_wanted) assert_true(told(&h, "total in add.sh is as it was"));
        free(text);
        agent_session_close(s);
        free_host(&h);
    }
}

/* A small model copies what it sees: its next answer begins inside of the definition, past what it doubts. */
static void test_outcome__the_old_text_again_is_no_change(void **state)
{
    put_file("add.sh", "add_up() {\n    echo $(($1 + $2))\n}\n");
    host h = new_host();
    agent_session *s = open_session(&h,
        "answer <<X\n"
        "<tools>{\"name\": \"rewrite\", \"arguments\": "
        "{\"path\": \"add.sh\", \"name\": \"add_up\"}}</tools>\n"
        "```sh\n"
        "add_up() {\n"
        "    echo $(($1 + $2))\n"
        "}\n"
        "```\n"
        "X\n"
        "answer <<X\necho`.\nadd_up() {\n    echo $(($1 + $2 + $3))\n}\n```\nX\nanswer Three now.\n",
        AGENT_MODE_ALL, NULL, false);
    assert_int_equal(submit(s, &h, "add_up should add three numbers"), 0);
    assert_true(told(&h, "is the same as the old"));
    assert_file("add.sh", "add_up() {\n    echo $(($1 + $2 + $3))\n}\n");
    agent_session_close(s);
    free_host(&h);
}

/* What it doubts comes before a condition in front. A value of the language and a quoted text are not missed in the tree. */
static void test_outcome__a_copy_is_followed_by_what_is_doubted(void **state)
{
    NEEDS("doubts");
    put_file("add.sh", "add_up() {\n    echo $(($1 + $2))\n}\n");
    host h = new_host();
    agent_session *s = open_session(&h,
        "doubt 2 9\n"
        "answer <<X\n"
        "<tools>{\"name\": \"rewrite\", \"arguments\": "
        "{\"path\": \"add.sh\", \"name\": \"add_up\"}}</tools>\n"
        "```sh\n"
        "add_up() {\n"
        "    echo $(($1 + $2))\n"
        "}\n"
        "```\n"
        "X\n"
        "answer <<X\n))\n}\n```\nX\nanswer Nine now.\n",
        AGENT_MODE_ALL, NULL, false);
    assert_int_equal(submit(s, &h, "add_up should take its ninth argument, or give NaN or 'no_number'"), 0);
    assert_true(told(&h, "is the same as the old"));
    assert_file("add.sh", "add_up() {\n    echo $(($1 + $9))\n}\n");
    assert_false(told(&h, "is not in the tree"));
    agent_session_close(s);
    free_host(&h);
}

/* Most of a long function is gone, and nobody asked for that. */
static void test_outcome__a_function_is_not_cut_short(void **state)
{
    static const char text[] = "add_up() {\n"
                               "    a=1\n"
                               "    b=2\n"
                               "    c=3\n"
                               "    d=4\n"
                               "    e=5\n"
                               "    f=6\n"
                               "    g=7\n"
                               "    h=8\n"
                               "    i=9\n"
                               "    j=10\n"
                               "    echo $a\n"
                               "}\n";
    static const struct {
        const char *request;
        bool is_cut;
    } cases[] = {{"add_up should print b", false}, {"add_up should be simplified and print 1", true}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        put_file("add.sh", text);
        host h = new_host();
        agent_session *s = open_session(&h,
            "answer <<X\n"
            "<tools>{\"name\": \"rewrite\", \"arguments\": "
            "{\"path\": \"add.sh\", \"name\": \"add_up\"}}</tools>\n"
            "```sh\n"
            "add_up() {\n"
            "    echo 1\n"
            "}\n"
            "```\n"
            "X\n"
            "answer No.\n",
            AGENT_MODE_ALL, NULL, false);
        submit(s, &h, cases[i].request); /* it is asked until the script ends */
        assert_file("add.sh", cases[i].is_cut ? "add_up() {\n    echo 1\n}\n" : text);
        assert_int_equal(told(&h, "has 3 lines of 13: the others are gone"), !cases[i].is_cut);
        agent_session_close(s);
        free_host(&h);
    }
}

#define LIST(more) "print_all() {\n    sort | uniq\n    echo end\n" more "}\n"
#define REWRITE_LIST                                                                                         \
    "answer <<X\n<tools>{\"name\": \"rewrite\", \"arguments\": {\"path\": \"option.sh\", \"name\": "         \
    "\"print_all\"}}</tools>\n```sh\n" LIST("    echo\n") "```\nX\nanswer Both.\n"

/* One name, one text, two places of which the request speaks: the second is begun. */
static void test_outcome__a_twin_is_changed_too(void **state)
{
    static const struct {
        const char *request, *other;
        bool is_meant;
    } cases[] = {
        {"print_all should end in an empty line, for options and arguments", LIST(""), true},
        {"both kinds of list should end in an empty line", LIST(""), true},
        {"print_all for an option should end in an empty line where both lines are there", LIST(""), false},
        {"print_all should end in an empty line, for options", LIST(""), false},
        {"print_all should end in an empty line, for options and arguments", "print_all() {\n    true\n}\n",
            false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        put_file("option.sh", LIST(""));
        put_file("argument.sh", cases[i].other);
        host h = new_host();
        base_buf script = {0};
        base_buf_printf(&script, REWRITE_LIST "answer <<X\n" LIST("    echo\n") "```\nX\nanswer Now both.\n");
        agent_session *s = open_session(&h, script.data, AGENT_MODE_ALL, NULL, false);
        assert_int_equal(submit(s, &h, cases[i].request), 0);
        assert_file("option.sh", LIST("    echo\n"));
        assert_file("argument.sh", cases[i].is_meant ? LIST("    echo\n") : cases[i].other);
        assert_int_equal(told(&h, "print_all in argument.sh is as it was"), cases[i].is_meant);
        assert_true(told(&h, "\"state\":\"changed\""));
        agent_session_close(s);
        free_host(&h);
        base_buf_free(&script);
    }
}

/* A file of which the request says "too" is asked for, and told where it stays as it was. */
static void test_outcome__a_second_file_is_asked_for(void **state)
{
    static const struct {
        const char *request;
        bool is_second;
    } cases[] = {{"Add sub_two() to add.sh, and to other.sh too", true},
        {"Add sub_two() to add.sh. Also call it in other.sh.", true},
        {"Add sub_two() to add.sh, and use it in other.sh", true},
        {"Add sub_two() to add.sh, like the one of other.sh", false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        put_program();
        put_file("other.sh", "true\n");
        host h = new_host();
        agent_session *s =
            open_session(&h, ADD_SUB "answer Added.\n" NO NO NO NO, AGENT_MODE_ALL, NULL, false);
        agent_session_agent(s)->settings.tries = 0;
        submit(s, &h, cases[i].request);
        const bool is_asked = told(&h, "The file other.sh is as it was: it was to be changed too.");
        const bool is_told = told(&h, "Changed: add.sh. As it was: other.sh.");
        if (is_asked != cases[i].is_second || is_told != cases[i].is_second)
            fail_msg("%s\n%s", cases[i].request, h.json.data);
        agent_session_close(s);
        free_host(&h);
    }
}

static void test_outcome__what_stands_there_is_told(void **state)
{
    put_program();
    host h = new_host();
    agent_session *s = open_session(&h, ADD_SUB "answer Added.\n", AGENT_MODE_ALL, NULL, false);
    assert_int_equal(submit(s, &h, "Add sub_two() to add.sh"), 0);
    assert_true(told(&h, "\"state\":\"changed\",\"text\":\"Changed: add.sh. No test has judged it.\""));
    assert_file("add.sh", PROGRAM "\nsub_two() {\n    echo $(($1 - $2))\n}\n");
    agent_session_close(s);
    free_host(&h);
}

static void test_outcome__a_question_has_none(void **state)
{
    put_program();
    host h = new_host();
    agent_session *s = open_session(&h, "answer In add.sh.\n", AGENT_MODE_ALL, NULL, false);
    assert_int_equal(submit(s, &h, "Explain add."), 0);
    assert_false(told(&h, "\"event\":\"outcome\""));
    agent_session_close(s);
    free_host(&h);
}

#define TWICE                                                                                                \
    "static int twice(int x)\n{\n    return x + x;\n}\n\nint main(void)\n{\n    return twice(2);\n}\n"

/* A second definition, another list of parameters than the callers give. */
static void test_outcome__what_was_refused_is_not_done_by_hand(void **state)
{
    NEEDS_GRAMMAR;
    static const struct {
        const char *request, *call, *write, *said;
    } cases[] = {
        {"Move twice to other.py and say why", "\"move\", \"name\": \"twice\", \"to\": \"other.py\"",
            "\"write\", \"arguments\": {\"path\": \"other.py\"}}</tools>\n"
            "```python\n"
            "def twice(x):\n"
            "    return 2 * x\n",
            "the move of twice to other.py was refused"},
        {"Remove twice and say why", "\"delete\", \"name\": \"twice\"",
            "\"rewrite\", \"arguments\": {\"path\": \"twice.c\", \"name\": \"twice\"}}</tools>\n"
            "```c\n"
            "static int twice(int x)\n"
            "{\n"
            "    return 0;\n"
            "}\n",
            "the delete of twice was refused"},
        {"twice should take one parameter only", "\"signature\", \"name\": \"twice\", \"parameter\": \"3,1\"",
            "\"rewrite\", \"arguments\": {\"path\": \"twice.c\", \"name\": \"twice\"}}</tools>\n"
            "```c\n"
            "static int twice(void)\n"
            "{\n"
            "    return 4;\n"
            "}\n",
            "the signature of twice was refused"},
        {"Rename twice to while and say why", "\"rename\", \"name\": \"twice\", \"to\": \"while\"",
            "\"refactor\", \"arguments\": {\"operation\": \"rename\", "
            "\"name\": \"twice\", \"to\": \"doubled\"}}</tools>\n"
            "```c\n",
            "the rename of twice to while was refused"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        host h = new_host();
        base_buf script = {0};
        base_buf_printf(&script,
            "answer <tools>{\"name\": \"refactor\", \"arguments\": {\"operation\": %s}}</tools>\n"
            "answer <<X\n<tools>{\"name\": %s```\nX\nanswer Done.\n" NO NO NO NO,
            cases[i].call, cases[i].write);
        put_file("twice.c", TWICE);
        agent_session *s = open_session(&h, script.data, AGENT_MODE_ALL, NULL, false);
        assert_int_equal(submit(s, &h, cases[i].request), 0);
        if (!told(&h, cases[i].said)) fail_msg("%s\n%s", cases[i].said, h.json.data);
        assert_file("twice.c", TWICE);
        assert_file("other.py", "(missing)");
        assert_true(told(&h, "\"state\":\"nothing\""));
        agent_session_close(s);
        free_host(&h);
        base_buf_free(&script);
    }
}

/* Nor what was refused: a small model claims it all the same, or does it by hand. */
static void test_outcome__a_refused_operation_answers_by_itself(void **state)
{
    NEEDS_GRAMMAR;
    put_file("twice.c", TWICE);
    host h = new_host();
    agent_session *s = open_session(
        &h, "opens 1\nanswer }}</tools>\nanswer Renamed it.\n" NO NO NO NO, AGENT_MODE_ALL, NULL, false);
    submit(s, &h, "Rename twice to while");
    assert_file("twice.c", TWICE);
    assert_true(
        told(&h, "\"event\":\"answer\",\"turn\":1,\"text\":\"The rename of twice to while was refused: "));
    assert_true(told(&h, "\"state\":\"nothing\",\"text\":\"Nothing was changed in the tree.\""));
    assert_false(told(&h, "Renamed it."));
    agent_session_close(s);
    free_host(&h);
}

/* A model says what was done once more, and not always right: the tool has said it. */
static void test_outcome__an_operation_that_is_all_answers_by_itself(void **state)
{
    NEEDS_GRAMMAR;
    static const struct {
        const char *request;
        bool is_all;
    } cases[] = {{"Rename twice to doubled", true}, {"twice should be called doubled from now on", true},
        {"Rename twice to doubled and tell me why that is better", false},
        {"Rename twice to doubled, and add a comment", false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        host h = new_host();
        base_buf script = {0};
        base_buf_puts(&script, "opens 1\nanswer }}</tools>\nanswer Renamed in nowhere.py.\n" NO NO NO NO);
        put_file("twice.c", TWICE);
        agent_session *s = open_session(&h, script.data, AGENT_MODE_ALL, NULL, false);
        submit(s, &h, cases[i].request);
        char *text = get_file("twice.c");
        if (!strstr(text, "return doubled(2)")) fail_msg("%s\n%s", cases[i].request, h.json.data);
        free(text);
        if (told(&h, "nowhere.py") == cases[i].is_all) fail_msg("%s", cases[i].request);
        if (cases[i].is_all) {
            assert_true(told(&h,
                "\"event\":\"answer\",\"turn\":1,\"text\":\"Renamed function twice to doubled: 2 places"));
            assert_false(told(&h, "\"event\":\"context\"")); /* nothing is read for it */
        }
        agent_session_close(s);
        free_host(&h);
        base_buf_free(&script);
    }
}

/* What an answer claims and what was not done stands in the last line. */
static void test_outcome__claims_are_held_against_the_tree(void **state)
{
    put_file("shop.py", "def price():\n    return 1\n");
    put_file("other.py", "def other():\n    return 1\n");
    host h = new_host();
    agent_session *s = open_session(&h,
        "answer <<X\n"
        "<tools>{\"name\": \"rewrite\", \"arguments\": "
        "{\"path\": \"shop.py\", \"name\": \"price\"}}</tools>\n"
        "```python\n"
        "def price():\n"
        "    return 2\n"
        "```\n"
        "X\n"
        "answer Changed price in shop.py and other.py. The tests pass now.\n",
        AGENT_MODE_ALL, NULL, false);
    agent_session_agent(s)->settings.tries = 0;
    submit(s, &h, "price should return 2.");
    assert_true(told(
        &h, "Not changed, whatever the answer says: other.py. No test has run, whatever the answer says."));
    agent_session_close(s);
    free_host(&h);
}

/* A request for a test changes no code, and an error that the language has is no name that is to come. */
static void test_outcome__a_test_leaves_the_code_alone(void **state)
{
    put_file("shop.py", "def price():\n    return 1\n");
    host h = new_host();
    agent_session *s = open_session(&h,
        "answer <<X\n<tools>{\"name\": \"rewrite\", \"arguments\": {\"path\": \"shop.py\", \"name\": "
        "\"price\"}}</tools>\n```python\ndef price():\n    return 2\n```\nX\n" NO NO NO,
        AGENT_MODE_ALL, NULL, false);
    agent_session_agent(s)->settings.tries = 0;
    submit(s, &h, "Add a test that an empty shop has a price.");
    assert_true(told(&h, "the request asks for a test, and this is code"));
    assert_file("shop.py", "def price():\n    return 1\n");
    submit(s, &h, "new Shop(null) ends in a NullPointerException. It should return nothing.");
    assert_false(told(&h, "NullPointerException is not in the tree yet"));
    agent_session_close(s);
    free_host(&h);
}

/* A file that is too large for the index is in the tree; one that is not there is not. */
static void test_outcome__a_file_that_is_not_indexed_is_there(void **state)
{
    static const char answer[] = "The routes are in `route.json`, others in `away.json`.";
    base_buf large = {0};
    while (large.len <= (1 << 20)) base_buf_puts(&large, "[1, 2, 3, 4, 5, 6, 7, 8, 9]\n");
    put_file("route.json", large.data);
    base_buf_free(&large);
    host h = new_host();
    agent_session *s = open_session(&h, "answer Nothing.\n", AGENT_MODE_ALL, NULL, false);
    agent *a = agent_session_agent(s);
    tool_workspace_refresh(a->workspace, NULL, a->cancel, NULL);
    agent__tell_places(a, answer, strlen(answer));
    assert_false(told(&h, "no route.json in this tree"));
    assert_true(told(&h, "no away.json in this tree"));
    agent_session_close(s);
    free_host(&h);
}

/* What was renamed in this turn is no library's function, though a document still names it. */
static void test_outcome__a_name_that_went_is_not_defined_elsewhere(void **state)
{
    static const char answer[] = "It calls gone() on it.";
    put_file("use.c", "int use(void)\n{\n    return gone(1);\n}\n");
    host h = new_host();
    agent_session *s = open_session(&h, "answer Nothing.\n", AGENT_MODE_ALL, NULL, false);
    agent *a = agent_session_agent(s);
    tool_workspace_refresh(a->workspace, NULL, a->cancel, NULL);
    agent__tell_places(a, answer, strlen(answer));
    assert_true(told(&h, "gone: used in this tree, defined elsewhere"));
    base_buf_clear(&h.json);
    agent__changed(a, "use.c");
    agent__name_went(a, "gone");
    agent__tell_places(a, answer, strlen(answer));
    assert_false(told(&h, "defined elsewhere"));
    agent_session_close(s);
    free_host(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST_CASE(test_outcome__knows_a_change_from_a_question),
        TEST_CASE(test_outcome__a_file_that_is_not_indexed_is_there),
        TEST_CASE(test_outcome__a_name_that_went_is_not_defined_elsewhere),
        TEST_CASE(test_outcome__hunks_are_headed_with_what_they_change),
        TEST_CASE(test_outcome__a_lie_is_followed_by_the_truth),
        TEST_CASE(test_outcome__what_does_not_use_what_it_is_to_use_is_refused),
        TEST_CASE(test_outcome__other_parameters_than_the_request_s_are_refused),
        TEST_CASE(test_outcome__what_is_missing_is_asked_for_and_told),
        TEST_CASE(test_outcome__what_is_missing_is_named_where_nothing_was_changed),
        TEST_CASE(test_outcome__a_file_that_has_an_order_is_to_change),
        TEST_CASE(test_outcome__what_is_missing_is_begun),
        TEST_CASE(test_outcome__code_that_was_not_changed_is_told),
        TEST_CASE(test_outcome__who_is_to_use_what_is_new_changes_too),
        TEST_CASE(test_outcome__a_definition_that_stays_as_it_was_is_asked_for),
        TEST_CASE(test_outcome__the_old_text_again_is_no_change),
        TEST_CASE(test_outcome__a_copy_is_followed_by_what_is_doubted),
        TEST_CASE(test_outcome__a_function_is_not_cut_short),
        TEST_CASE(test_outcome__a_twin_is_changed_too),
        TEST_CASE(test_outcome__a_second_file_is_asked_for),
        TEST_CASE(test_outcome__what_stands_there_is_told),
        TEST_CASE(test_outcome__a_question_has_none),
        TEST_CASE(test_outcome__what_was_refused_is_not_done_by_hand),
        TEST_CASE(test_outcome__a_refused_operation_answers_by_itself),
        TEST_CASE(test_outcome__an_operation_that_is_all_answers_by_itself),
        TEST_CASE(test_outcome__claims_are_held_against_the_tree),
        TEST_CASE(test_outcome__a_test_leaves_the_code_alone),
    };
    find_grammars();
    return RUN_ON_BOTH(tests);
}
