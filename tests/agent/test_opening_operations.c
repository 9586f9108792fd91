/* The call that the program begins for the model: a renaming, a move, a deletion, of one definition or of several. */
#include "stage.h"

#define TWO_FUNCTIONS                                                                                        \
    "static int one(void)\n{\n    return 1;\n}\n\nstatic int two(void)\n{\n    return 2;\n}\n"

#define GETS_VALUE                                                                                           \
    "def value_of(node):\n    return getattr(node, \"value\")\n\n\ndef f(node):\n    return str(value_of(node.left))\n"

static void test_opening_operations__an_operation_is_done_for_each_of_a_list(void **state)
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
static void test_opening_operations__an_operation_is_opened_by_other_words(void **state)
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

/* What only calls another function gives its callers that call, with what it gives it. */
static void test_opening_operations__what_only_calls_another_is_inlined(void **state)
{
    NEEDS_GRAMMAR;
    put_file("a.c",
        "int span_of(int from, int to)\n{\n    return to - from;\n}\n\n/* From the start. */\nint span_to(int to)\n{\n"
        "    return span_of(0, to);\n}\n\nint three(void)\n{\n    return span_to(3);\n}\n");
    host h = new_host();
    agent_session *s =
        open_session(&h, "opens 1\nanswer }}</tools>\nanswer Done.\n", AGENT_MODE_ALL, NULL, false);
    assert_int_equal(submit(s, &h, "Delete span_to, call span_of instead."), 0);
    assert_file("a.c",
        "int span_of(int from, int to)\n{\n    return to - from;\n}\n\nint three(void)\n{\n    return span_of(0, 3);\n}\n");
    agent_session_close(s);
    free_host(&h);
}

/* What is only told the model names, among the tree's names. */
static void test_opening_operations__what_is_told_is_renamed(void **state)
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

/* "Remove the deprecated functions from a.py": each of them, by what its text says, and nothing where the words say too little. */
static void test_opening_operations__a_group_is_deleted(void **state)
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
static void test_opening_operations__operations_are_read_whole(void **state)
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
        {"get rid of value_of, since the old classes are gone it's just a getattr. Use .value directly where it was called",
            "a.py", GETS_VALUE, "def f(node):\n    return str(node.left.value)\n"},
        {"Drop value_of, it's only a getattr. Its callers can use node.value instead.", "a.py", GETS_VALUE,
            "def f(node):\n    return str(node.left.value)\n"},
        {"Take value_of out, and put `.value` in its place.", "a.py", GETS_VALUE,
            "def f(node):\n    return str(node.left.value)\n"},
        {"Inline twice into its callers.", "a.py",
            "def twice(n):\n    return 2 * n\n\n\ndef f(n):\n    return twice(n)\n",
            "def f(n):\n    return 2 * n\n"},
        {"twice has one caller. Delete it and double there.", "a.py",
            "def twice(n):\n    return 2 * n\n\n\ndef f(n):\n    return twice(n)\n",
            "def f(n):\n    return 2 * n\n"},
        {"Delete twice in a.py and multiply directly where it's used", "a.py",
            "def twice(n):\n    return 2 * n\n\n\ndef f(n):\n    return twice(n)\n",
            "def f(n):\n    return 2 * n\n"},
        {"Delete WORDS, use TEXT instead", "a.py",
            "TEXT = 'a'\nWORDS = 'a'\n\n\ndef f(n):\n    return n + WORDS\n",
            "TEXT = 'a'\n\n\ndef f(n):\n    return n + TEXT\n"},
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

/* "Move X from a.py to b.py": the request says the whole call, so a small model cannot take "a" for the definition. */
static void test_opening_operations__what_a_request_says_of_a_move_is_not_asked_of_the_model(void **state)
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

/* A variable is no definition: its function is written again, and no renaming of another one is made for it. */
static void test_opening_operations__what_is_no_definition_renames_no_other(void **state)
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
static void test_opening_operations__several_moves_go_to_one_file(void **state)
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
static void test_opening_operations__several_operations_are_all_begun(void **state)
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

/* "Queue::pop": pop is to go, its type stays. */
static void test_opening_operations__a_qualifier_is_not_what_goes(void **state)
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

/* "Call it" in front of a name is a renaming; in front of a place it asks for a call. */
static void test_opening_operations__what_is_called_there_keeps_its_name(void **state)
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

/* "Everywhere" takes along the function that only calls the method of its name, and no other method. */
static void test_opening_operations__everywhere_takes_a_delegate_along(void **state)
{
#define STORE(method, call)                                                                                  \
    "class Store:\n    def " method "(self, k):\n        return k\n\n\nstore = Store()\n\n\ndef " call       \
    "(k):\n    return store." method "(k)\n"
    static const struct {
        const char *request, *before, *after;
    } cases[] = {
        {"Rename fetch_one to load_one everywhere.", STORE("fetch_one", "fetch_one"),
            STORE("load_one", "load_one")},
        {"Rename fetch_one to load_one.", STORE("fetch_one", "fetch_one"), STORE("fetch_one", "load_one")},
    };
    NEEDS_GRAMMAR;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        put_file("store.py", cases[i].before);
        host h = new_host();
        agent_session *s = open_session(&h,
            i ? "opens 1\nanswer }}</tools>\n" NO NO NO
              : "opens 1\nanswer }}</tools>\nopens 1\nanswer }}</tools>\n" NO NO NO,
            AGENT_MODE_ALL, NULL, false);
        agent_session_agent(s)->settings.tries = 0;
        submit(s, &h, cases[i].request);
        assert_file("store.py", cases[i].after);
        agent_session_close(s);
        free_host(&h);
    }
    remove("store.py");
}

/* "Delete notes.txt": the file, whatever the tree defines of its name, and nothing where a part of it or a list is spoken of. */
static void test_opening_operations__files_are_deleted(void **state)
{
    NEEDS_GRAMMAR;
    static const struct {
        const char *request;
        bool goes, goes_too; /* shop.py; notes.txt */
    } cases[] = {{"delete shop.py", true, false},
        {"Remove the file notes.txt, we don't keep notes", false, true},
        {"shop.py is no longer needed, delete it", true, false}, {"Drop shop.py and notes.txt.", true, true},
        {"get rid of `notes.txt` please", false, true}, {"delete shop.py's old comment", false, false},
        {"delete shop.py if nobody imports it", false, false},
        {"remove notes.txt from the list in keep.py", false, false},
        {"shop.py has a mistake, remove it", false, false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        put_file("shop.py", "def shop():\n    return 1\n");
        put_file("notes.txt", "Buy.\n");
        put_file("keep.py", "names = ['notes.txt']\n");
        host h = new_host();
        const bool both = cases[i].goes && cases[i].goes_too, none = !cases[i].goes && !cases[i].goes_too;
        agent_session *s = open_session(&h,
            none   ? NO NO NO
            : both ? "opens 1\nanswer }}</tools>\nopens 1\nanswer }}</tools>\n" NO NO NO
                   : "opens 1\nanswer }}</tools>\n" NO NO NO,
            AGENT_MODE_ALL, NULL, false);
        agent_session_agent(s)->settings.tries = 0;
        submit(s, &h, cases[i].request);
        char *shop = get_file("shop.py"), *notes = get_file("notes.txt");
        if (!strcmp(shop, "(missing)") != cases[i].goes || !strcmp(notes, "(missing)") != cases[i].goes_too)
            fail_msg("%s\n%s", cases[i].request, h.json.data);
        free(shop);
        free(notes);
        agent_session_close(s);
        free_host(&h);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST_CASE(test_opening_operations__an_operation_is_done_for_each_of_a_list),
        TEST_CASE(test_opening_operations__an_operation_is_opened_by_other_words),
        TEST_CASE(test_opening_operations__what_only_calls_another_is_inlined),
        TEST_CASE(test_opening_operations__a_group_is_deleted),
        TEST_CASE(test_opening_operations__operations_are_read_whole),
        TEST_CASE(test_opening_operations__what_is_told_is_renamed),
        TEST_CASE(test_opening_operations__what_is_no_definition_renames_no_other),
        TEST_CASE(test_opening_operations__several_moves_go_to_one_file),
        TEST_CASE(test_opening_operations__what_a_request_says_of_a_move_is_not_asked_of_the_model),
        TEST_CASE(test_opening_operations__several_operations_are_all_begun),
        TEST_CASE(test_opening_operations__a_qualifier_is_not_what_goes),
        TEST_CASE(test_opening_operations__what_is_called_there_keeps_its_name),
        TEST_CASE(test_opening_operations__files_are_deleted),
        TEST_CASE(test_opening_operations__everywhere_takes_a_delegate_along),
    };
    find_grammars();
    return RUN_ON_BOTH(tests);
}
