/*
 * "Add a test for X": begun like its nearest neighbour, run, put right where it expects what the code does not give. That it
 * notices a broken X: test_new_test_faults.c.
 */
#include <sys/stat.h>

#include "agent/newtest/newtest.h"
#include "wish.h"

/* A file that imports the module calls its functions by that. */
static void test_new_test__it_calls_its_subject_by_the_module(void **state)
{
    static const struct {
        const char *imports, *begins;
    } cases[] = {{"import even", "assert even.is_odd("}, {"import os, even", "assert even.is_odd("},
        {"from even import is_odd", "assert is_odd("}, {"import even as e", "assert is_odd("}};
    if (!has_pytest()) skip();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        base_buf tests = {0};
        wish w = EVEN;
        base_buf_printf(&tests, "%s\n\n\ndef test_nothing():\n    assert True\n", cases[i].imports);
        w.tests = tests.data;
        w.script = ANSWER("3)") ADDED;
        w.tries = 0;
        host h = ask_for(&w, cases[i].begins);
        free_host(&h);
        base_buf_free(&tests);
    }
}

/* In a package it is the folder that is imported. */
static void test_new_test__it_calls_its_subject_by_the_package(void **state)
{
    if (!has_pytest()) skip();
    const wish w = EVEN;
    host h = new_host();
    char folder[200];
    snprintf(folder, sizeof folder, "%s/even", tree);
    assert_int_equal(mkdir(folder, 0700), 0);
    put_file("even/__init__.py", w.code);
    static const struct {
        const char *tests, *imports, *has;
    } cases[] = {
        {"import even\n\n\ndef test_is_even():\n    assert even.is_even(4)\n", "import even\n",
            "assert even.is_odd(3)"},
        {"from even import (\n    is_even,\n)\n\n\ndef test_is_even():\n    assert is_even(4)\n",
            "    is_even,\n    is_odd,\n)", "assert is_odd(3)"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        put_file("test_even.py", cases[i].tests);
        agent_session *s = open_session(&h, ANSWER("3)") ADDED, AGENT_MODE_ALL, NULL, false);
        submit(s, &h, w.request);
        char *tests = get_file("test_even.py");
        if (!strstr(tests, cases[i].has) || !strstr(tests, cases[i].imports))
            fail_msg("%s\n%s", tests, h.json.data);
        free(tests);
        agent_session_close(s);
    }
    free_host(&h);
}

/* A file of tests that takes nothing from the subject's module gets it: from the package that hands it out, else from the module. */
static void test_new_test__its_subject_is_imported_where_nothing_is_of_its_module(void **state)
{
    static const struct {
        const char *init, *tests, *imports;
    } cases[] = {
        {"from pkg.even import is_odd\n", "import os\n\nfrom pkg import (\n    name,\n)\n",
            "from pkg import (\n    name,\n    is_odd,\n)\n"},
        {"name = 1\n", "import os\n", "import os\nfrom pkg.even import is_odd\n"},
    };
    if (!has_pytest()) skip();
    char folder[200];
    snprintf(folder, sizeof folder, "%s/pkg", tree);
    assert_int_equal(mkdir(folder, 0700), 0);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        base_buf tests = {0}, init = {0};
        base_buf_printf(&tests, "%s\n\ndef test_os():\n    assert os.sep == '/'\n", cases[i].tests);
        base_buf_printf(&init, "name = 1\n%s", cases[i].init);
        put_file("pkg/even.py", EVEN.code);
        put_file("pkg/__init__.py", init.data);
        put_file("test_all.py", tests.data);
        host h = new_host();
        agent_session *s =
            open_session(&h, ANSWER("3)\n    assert is_odd(5)") ADDED, AGENT_MODE_ALL, NULL, false);
        submit(s, &h, "Add a test for is_odd to test_all.py");
        char *now = get_file("test_all.py");
        const char *import = strstr(now, "import is_odd\n");
        if (!strstr(now, "    assert is_odd(3)\n") || !strstr(now, cases[i].imports) ||
            (import && strstr(import + 1, "import is_odd\n")))
            fail_msg("%s\n%s", now, h.json.data);
        free(now);
        agent_session_close(s);
        free_host(&h);
        base_buf_free(&tests);
        base_buf_free(&init);
    }
}

/* "Add f, with a test": first f, then a test that calls it. */
static void test_new_test__of_a_function_that_is_added_too(void **state)
{
    static const char *const requests[] = {"Add a function is_third(n) to even.py, with a test",
        "add a function is_third(n) to even.py and write tests for it"};
    if (!has_pytest()) skip();
    for (size_t i = 0; i < sizeof requests / sizeof *requests; i++) {
        wish w = EVEN;
        w.request = requests[i];
        w.tests = "import even\n\n\ndef test_is_even():\n    assert even.is_even(4)\n";
        w.script = ANSWER(":\n    return n % 3 == 0") ADDED ANSWER("9)") ADDED;
        host h = ask_for(&w, "def test_is_third():\n    assert even.is_third(9)\n");
        char *code = get_file("even.py");
        if (!strstr(code, "def is_third(n):\n    return n % 3 == 0\n")) fail_msg("%s", code);
        free(code);
        if (!told(&h, "\"state\":\"done\"")) fail_msg("%s", h.json.data);
        free_host(&h);
    }
}

/* "Let f ..., and add a test": f changes first, and no test of f is begun while it is as it was. */
static void test_new_test__of_a_function_that_changes_first(void **state)
{
    static const char *const requests[] = {
        "make is_even raise ValueError when n is negative, and add a test for it",
        "is_even should refuse negative numbers with a ValueError. Add a test."};
    if (!has_pytest()) skip();
    for (size_t i = 0; i < sizeof requests / sizeof *requests; i++) {
        wish w = EVEN;
        w.request = requests[i];
        w.tests = "import even\n\n\ndef test_is_even():\n    assert even.is_even(4)\n";
        w.script = ANSWER("<tools>{\"name\": \"rewrite\", "
                          "\"arguments\": {\"path\": \"even.py\", "
                          "\"name\": \"is_even\"}}</tools>\n"
                          "```python\n"
                          "def is_even(n):\n"
                          "    if n < 0:\n"
                          "        raise ValueError(n)\n"
                          "    return n % 2 == 0") ADDED ANSWER("-8)") ADDED;
        host h = ask_for(&w, "    with pytest.raises(ValueError):\n        even.is_even(-8)\n");
        char *code = get_file("even.py");
        if (!strstr(code, "def is_even(n):\n    if n < 0:\n")) fail_msg("%s\n%s", code, h.json.data);
        free(code);
        if (!told(&h, "\"state\":\"done\"")) fail_msg("%s", h.json.data);
        free_host(&h);
    }
}

/* An error that the request names is what the new test waits for, in the words of its neighbours. */
static void test_new_test__it_waits_for_the_error(void **state)
{
    static const struct {
        const char *request, *tests, *has, *script;
    } cases[] = {
        {"Add a test that is_odd raises a TypeError for a string",
            "from even import is_even\n\n\ndef test_is_even():\n    assert is_even(4)\n",
            "    with pytest.raises(TypeError):\n        is_odd('3')\n", ANSWER("'3')") ADDED},
        {"Add a test that is_odd raises a TypeError for a string",
            "import unittest\n\nfrom even import is_even\n\n\nclass EvenTest(unittest.TestCase):\n"
            "    def test_is_even(self):\n        self.assertEqual(is_even(4), True)\n",
            "        with self.assertRaises(TypeError):\n            is_odd('3')\n", ANSWER("'3')") ADDED},
        {"Add a test that is_odd raises a TypeError where n is text, like \"a\"",
            "from even import is_even\n\n\ndef test_is_even():\n    assert is_even(4)\n",
            "    # is_odd raises a TypeError where n is text, like \"a\"\n"
            "    with pytest.raises(TypeError):\n        is_odd(\"a\")\n",
            ANSWER(")") ADDED},
        /* "because" brings nothing, as "use super::*" would. */
        {"Add a test that is_odd raises a TypeError because of a string",
            "from even import is_even\n\n\ndef test_is_even():\n    assert is_even(4)\n",
            "    # is_odd raises a TypeError because of a string\n"
            "    with pytest.raises(TypeError):\n        is_odd('3')\n",
            ANSWER("'3')") ADDED},
        {"Add a test for is_odd; it raises no TypeError for a number",
            "from even import is_even\n\n\ndef test_is_even():\n    assert is_even(4)\n",
            "    assert is_odd(3)\n", ANSWER("3)") ADDED},
    };
    if (!has_pytest()) skip();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        wish w = EVEN;
        w.request = cases[i].request;
        w.tests = cases[i].tests;
        w.script = cases[i].script;
        w.tries = 0;
        host h = ask_for(&w, cases[i].has);
        free_host(&h);
    }
}

/* "remove" is the name of what is tested: nothing is deleted for it. */
static void test_new_test__of_a_member_that_is_called_like_an_operation(void **state)
{
    NEEDS_GRAMMAR;
    put_file("pair.py", "class Pair:\n    def remove(self, x):\n        return x == 1\n");
    put_file("test_pair.py", "from pair import Pair\n\n\ndef test_pair():\n    assert Pair()\n");
    host h = new_host();
    agent_session *s = open_session(&h, ADDED ADDED ADDED ADDED, AGENT_MODE_ALL, NULL, false);
    agent_session_agent(s)->settings.tries = 0;
    submit(s, &h, "Add a test to test_pair.py that Pair.remove returns whether it was there, with test_pair");
    if (told(&h, "delete")) fail_msg("%s", h.json.data);
    agent_session_close(s);
    free_host(&h);
}

/* C: begun as its neighbour begins, and run where that is run. */
static void test_new_test__of_c_runs_with_the_others(void **state)
{
    NEEDS_GRAMMAR;
    put_file("list.c", "int list_at(int i) {\n  return i;\n}\n\nint list_len(void) {\n  return 0;\n}\n");
    put_file("test.c", "#include <assert.h>\n"
                       "int list_at(int i);\n\n"
                       "static void\n"
                       "test_list_at() {\n"
                       "  assert(list_at(1) == 1);\n"
                       "}\n\n"
                       "int main(void) {\n"
                       "  test_list_at();\n"
                       "  return 0;\n"
                       "}\n");
    host h = new_host();
    agent_session *s = open_session(
        &h, "answer <<X\n  assert(list_len() == 0);\n}\n```\nX\n" ADDED ADDED, AGENT_MODE_ALL, NULL, false);
    agent_session_agent(s)->settings.tries = 0;
    submit(s, &h, "Add a test for list_len to test.c. It has to run with the others.");
    char *tests = get_file("test.c");
    if (!strstr(tests, "static void\ntest_list_len() {\n  assert(list_len() == 0);\n}\n") ||
        !strstr(tests, "  test_list_at();\n  test_list_len();\n  return 0;"))
        fail_msg("%s\n%s", tests, h.json.data);
    free(tests);
    agent_session_close(s);
    free_host(&h);
}

/* It begins with what makes the object that its subject is given, as a test beside it does, and is called as that one is. */
static void test_new_test__of_c_makes_what_its_subject_is_given(void **state)
{
    NEEDS_GRAMMAR;
    put_file("bag.h",
        "typedef struct bag { int n; } bag;\nbag *bag_new(int n);\nvoid bag_put(bag *b, const char *s);\nint bag_len(const bag *b);\n");
    put_file("bag.c",
        "#include \"bag.h\"\n\nvoid bag_put(bag *b, const char *s)\n{\n    b->n++;\n}\n\nint bag_len(const bag *b)\n{\n    return b->n;\n}\n");
    put_file("test_bag.c",
        "#include \"bag.h\"\n\n"
        "void Test_bag_put(Case *c)\n{\n"
        "    int i;\n    bag *b;\n\n"
        "    /* NULL */\n    bag_put(0, 0);\n"
        "    b = bag_new(3);\n    AssertNotNull(c, b);\n"
        "    for (i = 0; i < 2; i++)\n        bag_put(b, \"x\");\n    bag_put(b, 0);\n    bag_del(b);\n}\n");
    host h = new_host();
    agent_session *s = open_session(&h,
        "answer <<X\n    AssertInt(c, 0, bag_len(b));\n}\n```\nX\n" ADDED ADDED, AGENT_MODE_ALL, NULL, false);
    agent_session_agent(s)->settings.tries = 0;
    submit(s, &h, "bag_len has no test at all. Write one.");
    char *tests = get_file("test_bag.c");
    if (!strstr(tests,
            "void Test_bag_len(Case *c)\n{\n    bag *b;\n\n    b = bag_new(3);\n    AssertNotNull(c, b);\n"
            "    AssertInt(c, 0, bag_len(b));\n}\n"))
        fail_msg("%s\n%s", tests, h.json.data);
    assert_true(told(&h, "and calls bag_len. It ends with bag_del(b);"));
    free(tests);
    agent_session_close(s);
    free_host(&h);
}

/* In Go with the check of the error that it may give. */
static void test_new_test__of_go_makes_what_its_subject_is_given(void **state)
{
    NEEDS_GRAMMAR;
    put_file("go.mod", "module bag\n");
    put_file("bag.go",
        "package bag\n\ntype Bag struct{ n int }\n\nfunc New(n int) (*Bag, error) { return &Bag{n}, nil }\n\n"
        "func (b *Bag) Put() {\n\tb.n++\n}\n\nfunc (b *Bag) Len() int {\n\treturn b.n\n}\n");
    put_file("bag_test.go",
        "package bag\n\nimport \"testing\"\n\nfunc TestPut(t *testing.T) {\n\tvar n int\n"
        "\tb, err := NewBag(3)\n\tif err != nil {\n\t\tt.Fatal(err)\n\t}\n\tb.Put()\n\tn++\n}\n");
    host h = new_host();
    agent_session *s = open_session(&h,
        "answer <<X\n\tif b.Len() != 3 {\n\t\tt.Error(b.Len())\n\t}\n}\n```\nX\n" ADDED ADDED, AGENT_MODE_ALL,
        NULL, false);
    agent_session_agent(s)->settings.tries = 0;
    submit(s, &h, "Add a test for Bag.Len.");
    char *tests = get_file("bag_test.go");
    if (!strstr(tests,
            "func TestLen(t *testing.T) {\n\tb, err := NewBag(3)\n\tif err != nil {\n\t\tt.Fatal(err)\n\t}\n\tif b.Len() != 3 {\n"))
        fail_msg("%s\n%s", tests, h.json.data);
    free(tests);
    agent_session_close(s);
    free_host(&h);
}

static void make_folder(const char *name)
{
    char path[200];
    snprintf(path, sizeof path, "%s/%s", tree, name);
    assert_int_equal(mkdir(path, 0700), 0);
}

/* Sources that share a prefix which their tests leave out, and a table of tests whose rows have titles. */
static void test_new_test__of_c_goes_into_the_tests_without_the_prefix(void **state)
{
    NEEDS_GRAMMAR;
    make_folder("src");
    make_folder("test");
    put_file(
        "src/cc_list.c", "int cc_at(int i)\n{\n    return i;\n}\n\nint cc_len(void)\n{\n    return 0;\n}\n");
    put_file("src/cc_queue.c", "int cc_first(int i)\n{\n    return i;\n}\n");
    put_file("test/queue_test.c", "int test_first(void *p)\n{\n    return cc_first(0);\n}\n");
    put_file("test/list_test.c",
        "#include \"tests.h\"\n\n"
        "static int test_at(void *p)\n{\n    check_int(cc_at(0), == , 0);\n    return cc_at(0);\n}\n\n"
        "static struct test all[] = {\n"
        "    {\"/list/test_at\", test_at, 0},\n"
        "    {0, 0, 0}\n};\n");
    host h = new_host();
    agent_session *s = open_session(&h,
        "answer <<X\n    check_int(cc_len(), == , 0);\n    return 0;\n}\n```\nX\n" ADDED ADDED,
        AGENT_MODE_ALL, NULL, false);
    agent_session_agent(s)->settings.tries = 0;
    submit(s, &h, "Add a missing test: cc_len has none.");
    char *tests = get_file("test/list_test.c");
    if (!strstr(tests,
            "static int test_cc_len(void *p)\n{\n    check_int(cc_len(), == , 0);\n    return 0;\n}\n") ||
        !strstr(tests, "test_at, 0},\n    {\"/list/test_cc_len\", test_cc_len, 0},\n"))
        fail_msg("%s\n%s", tests, h.json.data);
    free(tests);
    agent_session_close(s);
    free_host(&h);
}

/* A file of tests that has the subject's own name is the one, however both are written. */
static void test_new_test__goes_into_the_file_of_its_subject_s_name(void **state)
{
    NEEDS_GRAMMAR;
    make_folder("src");
    put_file("src/index.c", "int list_at(int i) {\n  return i;\n}\n\nint list_len(void) {\n  return 0;\n}\n");
    put_file("src/test_all.c",
        "#include <assert.h>\n\nstatic void test_list_at(void) {\n  assert(list_at(1) == 1);\n}\n");
    put_file("src/test_list-len.c",
        "#include <assert.h>\n\nstatic void test_none(void) {\n  assert(list_at(0) == 0);\n}\n");
    host h = new_host();
    agent_session *s = open_session(
        &h, "answer <<X\n  assert(list_len() == 0);\n}\n```\nX\n" ADDED ADDED, AGENT_MODE_ALL, NULL, false);
    agent_session_agent(s)->settings.tries = 0;
    submit(s, &h, "Write a test for list_len.");
    char *tests = get_file("src/test_list-len.c");
    if (!strstr(tests, "  assert(list_len() == 0);\n}\n")) fail_msg("%s\n%s", tests, h.json.data);
    free(tests);
    agent_session_close(s);
    free_host(&h);
}

/* A new file of tests is in its subject's language, unless the tree tests that in another one. */
static void test_new_test__is_in_its_subject_s_language(void **state)
{
    static const struct {
        const char *there, *made, *request;
        bool may;
    } cases[] = {
        {NULL, "tests/test_list.py", "Add a test for list_at", false},
        {"tests/other.c", "tests/test_list.py", "Add a test for list_at", false},
        {"tests/test_all.py", "tests/test_list.py", "Add a test for list_at", true},
        {NULL, "tests/test_list.py", "Add a test for list_at: tests/test_list.py", true},
        {NULL, "tests/test_list.c", "Add a test for list_at", true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        base_buf script = {0};
        make_folder("tests");
        put_file("list.c", "int list_at(int i)\n{\n    return i;\n}\n");
        if (cases[i].there) put_file(cases[i].there, "\n");
        base_buf_printf(&script,
            "answer <<X\n<tools>{\"name\": \"write\", \"arguments\": {\"path\": \"%s\"}}</tools>\n```\n"
            "list_at(1);\n```\nX\n" ADDED ADDED ADDED,
            cases[i].made);
        host h = new_host();
        agent_session *s = open_session(&h, script.data, AGENT_MODE_ALL, NULL, false);
        agent_session_agent(s)->settings.tries = 0;
        submit(s, &h, cases[i].request);
        char *tests = get_file(cases[i].made);
        if (!strcmp(tests, "(missing)") == cases[i].may) fail_msg("%zu: %s\n%s", i, tests, h.json.data);
        if (!cases[i].may && !told(&h, "list_at is c (list.c)")) fail_msg("%zu: %s", i, h.json.data);
        free(tests);
        agent_session_close(s);
        free_host(&h);
        base_buf_free(&script);
        drop_folders(state);
        make_folders(state);
    }
}

/* A function that takes what is tested is called once more: one beside it would be called by nobody. */
static void test_new_test__of_c_is_a_further_call_where_tests_are_calls(void **state)
{
    NEEDS_GRAMMAR;
    put_file("csv.c", "int csv_quote(const char *s) {\n  return *s ? 2 : 0;\n}\n");
    put_file("test.c", "#include <assert.h>\n"
                       "int csv_quote(const char *s);\n\n"
                       "static void test_quote(const char *s, int should) {\n"
                       "  assert(csv_quote(s) == should);\n"
                       "}\n\n"
                       "int main(void) {\n"
                       "  test_quote(\"a\", 2);\n"
                       "  test_quote(\n"
                       "    \"b\", 2);\n\n"
                       "  return 0;\n"
                       "}\n");
    host h = new_host();
    agent_session *s =
        open_session(&h, "answer <<X\n\"\", 0);\n```\nX\n" ADDED ADDED, AGENT_MODE_ALL, NULL, false);
    agent_session_agent(s)->settings.tries = 0;
    submit(s, &h, "Add a test of csv_quote to test.c: an empty string needs none.");
    char *tests = get_file("test.c");
    if (!strstr(tests, "  test_quote(\n    \"b\", 2);\n  test_quote(\"\", 0);\n\n  return 0;"))
        fail_msg("%s\n%s", tests, h.json.data);
    free(tests);
    agent_session_close(s);
    free_host(&h);
}

/* Rows for a test that is told by words of its name and its file's, among others of the same table. */
static void test_new_test__rows_go_to_the_test_that_is_told(void **state)
{
    static const char even[] = "from even import is_even\n\n\n"
                               "def test_is_even_less():\n"
                               "    for n in [\n"
                               "        (2),\n"
                               "        (4),\n"
                               "        (6),\n"
                               "    ]:\n"
                               "        assert is_even(n)\n\n\n";
    static const char odd[] = "def test_is_even_greater():\n"
                              "    for n in [\n"
                              "        (12),\n"
                              "        (14),\n"
                              "        (16),\n"
                              "    ]:\n"
                              "        assert is_even(n)\n";
    static const struct {
        const char *request, *has;
    } cases[] = {
        {"Our tests of even numbers lack a case. Add 8 to the cases that are greater.",
            "(16),\n        (8),\n    ]"},
        {"Our tests of even numbers lack a case. Add 8 to the cases that are less.",
            "(6),\n        (8),\n    ]"},
    };
    if (!has_pytest()) skip();
    base_buf tests = {0};
    base_buf_printf(&tests, "%s%s", even, odd);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        wish w = EVEN;
        w.request = cases[i].request;
        w.tests = tests.data;
        w.script = ANSWER("8),\n    ]:\n        assert is_even(n)") ADDED;
        w.tries = 0;
        host h = ask_for(&w, cases[i].has);
        free_host(&h);
    }
    base_buf_free(&tests);
}

/* --- methods -------------------------------------------------------------------------------------------- */

/* No test calls the method: the one that makes such an object shows how, and not the file's last. */
static void test_new_test__of_a_method_it_begins_like_the_nearest(void **state)
{
    wish w = STACK;
    w.tests = "from stack import Stack\n\n\n"
              "def test_size():\n"
              "    stack = Stack()\n"
              "    stack.push(1)\n"
              "    assert stack.size() == 1\n\n\n"
              "def test_nothing():\n    assert True\n";
    w.script = ANSWER(") is False") ADDED;
    if (!has_pytest()) skip();
    host h = ask_for(&w, "def test_is_empty():\n"
                         "    stack = Stack()\n"
                         "    stack.push(1)\n"
                         "    assert stack.is_empty() is False\n");
    assert_true(told(&h, "in is_empty the test file fails, as it should"));
    free_host(&h);
}

/* A test whose arguments its decorator gives is no way to begin one without. */
static void test_new_test__of_a_method_it_begins_without_decorated_ones(void **state)
{
    wish w = STACK;
    w.tests = "import pytest\nfrom stack import Stack\n\n\n@pytest.mark.parametrize('n', [1, 2])\n"
              "def test_size(n):\n    stack = Stack()\n    stack.push(n)\n    assert stack.size() == 1\n";
    w.script = ANSWER("):\n    assert Stack().is_empty()") ADDED;
    if (!has_pytest()) skip();
    host h = ask_for(&w, "def test_is_empty():\n    assert Stack().is_empty()\n");
    free_host(&h);
}

static void test_new_test__of_a_method_it_waits_for_the_error(void **state)
{
    wish w = STACK;
    w.request = "Add a test that is_empty raises TypeError for an argument";
    w.tests = "from stack import Stack\n\n\n"
              "def test_size():\n"
              "    stack = Stack()\n"
              "    stack.push(1)\n"
              "    assert stack.size() == 1\n";
    w.script = ANSWER("3)") ADDED;
    if (!has_pytest()) skip();
    host h = ask_for(&w, "def test_is_empty():\n"
                         "    # is_empty raises TypeError for an argument\n"
                         "    stack = Stack()\n"
                         "    stack.push(1)\n"
                         "    with pytest.raises(TypeError):\n"
                         "        stack.is_empty(3)\n");
    free_host(&h);
}

/* "C should get a method m(). Add it, and a test in test_c.py": the class gets it, not the file of the test. */
static void test_new_test__the_class_that_should_get_a_method_gets_it(void **state)
{
    wish w = STACK;
    if (!has_pytest()) skip();
    w.request =
        "Stack should get a method is_full(), true from 9 items on. Add it, and a test in test_stack.py.";
    w.tests = "from stack import Stack\n\n\n"
              "def test_size():\n"
              "    stack = Stack()\n"
              "    stack.push(1)\n"
              "    assert stack.size() == 1\n";
    w.script = ANSWER("):\n    return self.size() >= 9") ADDED ANSWER(") is False") ADDED;
    host h = ask_for(&w, "def test_is_full():\n"
                         "    stack = Stack()\n"
                         "    stack.push(1)\n"
                         "    assert stack.is_full() is False\n");
    char *code = get_file("stack.py");
    if (!strstr(code, "    def is_full(self):\n        return self.size() >= 9\n")) fail_msg("%s", code);
    free(code);
    free_host(&h);
}

/* "Type.member" is the member, whoever else has one of its name. */
static void test_new_test__of_a_member_it_knows_the_type(void **state)
{
    const wish w = {.module = "text",
        .code = "class Top:\n"
                "    def low(self):\n"
                "        return 1\n\n\n"
                "class Box:\n"
                "    def low(self):\n"
                "        return 0\n",
        .tests = "from text import Box\n\n\ndef test_box():\n    assert Box()\n",
        .request = "Add a test for Box.low.",
        .script = ANSWER("):\n    assert Box().low() == 0") ADDED ADDED};
    if (!has_pytest()) skip();
    host h = ask_for(&w, "def test_low():\n    assert Box().low() == 0\n");
    free_host(&h);
}

/* --- what it gives and expects -------------------------------------------------------------------------- */

#define SHOUT                                                                                                \
    (wish)                                                                                                   \
    {                                                                                                        \
        .module = "text",                                                                                    \
        .code = "def shout(s):\n    return 'a' + s\n\n\ndef low(s):\n    return s.lower()\n",                \
        .tests = "from text import low\n\n\ndef test_low():\n    assert low('A') == 'a'\n",                  \
        .request = "Add a test for shout"                                                                    \
    }

/* The call is the model's, what it gives is the code's: told, and no proof. */
static void test_new_test__it_expects_what_the_code_gives(void **state)
{
    wish w = SHOUT;
    w.code = "def shout(s):\n    return s.upper() + '\\t!'\n\n\ndef low(s):\n    return s.lower()\n";
    w.script = ANSWER("'ab') == 'ab!'\n    assert shout('c') == 'C!'") ADDED;
    w.tries = 0; /* no candidate: what stands in the tree is put right */
    if (!has_pytest()) skip();
    host h = ask_for(&w, "assert shout('ab') == 'AB\\t!'\n    assert shout('c') == 'C\\t!'\n");
    assert_true(told(&h, "the new test expected 'ab!' where the code gives 'AB"));
    assert_true(told(&h, "It expects what the code gives now"));
    assert_true(told(&h, "\"state\":\"changed\""));
    free_host(&h);
}

/* Where the runner, or the subject itself, says that it wants a string, the next attempt is begun with one. */
static void test_new_test__it_gives_a_string_where_one_is_wanted(void **state)
{
    wish w = SHOUT;
    w.script = ANSWER("12) == 'a12'") ANSWER("b') == 'ab'") ANSWER("c') == 'ac'") ADDED;
    if (!has_pytest()) skip();
    host h = ask_for(&w, "assert shout('b') == 'ab'\n");
    assert_true(told(&h, "\"state\":\"done\""));
    free_host(&h);
    w.code =
        "def shout(s: str, n: int = 1) -> str:\n    return 'a' + s\n\n\ndef low(s):\n    return s.lower()\n";
    w.script = ANSWER("b') == 'ab'") ADDED;
    h = ask_for(&w, "def test_shout():\n    assert shout('b') == 'ab'\n");
    free_host(&h);
}

/* Where its type says so, or the runner does, the first argument is begun as a list. */
static void test_new_test__it_gives_a_list_where_one_is_wanted(void **state)
{
    wish w = SHOUT;
    if (!has_pytest()) skip();
    w.code = "from typing import List\n\n\ndef shout(s: List[str]) -> int:\n    return len(s) + 1\n\n\n"
             "def low(s):\n    return s.lower()\n";
    w.script = ANSWER("'b']) == 2") ADDED;
    host h = ask_for(&w, "def test_shout():\n    assert shout(['b']) == 2\n");
    free_host(&h);
    w.code = "def shout(s: bytes) -> bytes:\n    return s + b'!'\n\n\ndef low(s):\n    return s.lower()\n";
    w.script = ANSWER("a') == b'a!'") ADDED;
    h = ask_for(&w, "def test_shout():\n    assert shout(b'a') == b'a!'\n");
    free_host(&h);
    w.code = "def shout(s):\n    return len(s) + 1\n\n\ndef low(s):\n    return s.lower()\n";
    w.script = ANSWER("12) == 13") ANSWER("1]) == 2") ANSWER("1]) == 2") ADDED;
    h = ask_for(&w, "def test_shout():\n    assert shout([1]) == 2\n");
    free_host(&h);
}

/* What a function of Rust gives says how it is asserted. */
static void test_new_test__of_rust_it_asserts_what_is_given(void **state)
{
    static const struct {
        const char *gives, *request, *begins;
    } cases[] = {{"bool { s.is_empty() }", "Add a test for parse", "assert!(super::parse("},
        {"Result<u8, ()> { Err(()) }", "Add a test that parse gives an error for an empty text",
            "assert!(super::parse("},
        {"u8 { 1 }", "Add a test for parse", "assert_eq!(super::parse("},
        {"Option<&str> { None }", "Add a test that parse gives None for an empty text",
            "// parse gives None for an empty text"}};
    NEEDS_GRAMMAR;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        host h = new_host();
        base_buf code = {0};
        base_buf_printf(&code,
            "pub fn parse(s: &str) -> %s\n\n#[cfg(test)]\nmod test {\n    #[test]\n    fn one() {\n"
            "        assert_eq!(1, 1);\n    }\n}\n",
            cases[i].gives);
        put_file("parse.rs", code.data);
        agent_session *s = open_session(&h, ANSWER("x") ADDED, AGENT_MODE_ALL, NULL, false);
        agent_session_agent(s)->settings.tries = 0;
        submit(s, &h, cases[i].request);
        if (!told(&h, cases[i].begins)) fail_msg("%s not in %s", cases[i].begins, h.json.data);
        agent_session_close(s);
        free_host(&h);
        base_buf_free(&code);
    }
}

/* A name that means nothing there is what a small model writes for "some title". */
static void test_new_test__it_gives_a_literal_for_a_name_of_nothing(void **state)
{
    wish w = SHOUT;
    w.script = ANSWER("Text) == 'a12'") ANSWER("b') == 'ab'") ADDED;
    if (!has_pytest()) skip();
    host h = ask_for(&w, "assert shout('b') == 'ab'\n");
    free_host(&h);
}

/* A candidate that fails for such a value only needs no other: what its call gives is the next. */
static void test_new_test__a_candidate_s_expectation_is_put_right(void **state)
{
    NEEDS("branches");
    wish w = SHOUT;
    w.script = ANSWER("12) == 'a12'") ANSWER("hm\nb') == 'b'") ADDED;
    w.tries = 4;
    if (!has_pytest()) skip();
    host h = ask_for(&w, "assert shout('b') == 'ab'\n");
    assert_true(told(&h, "\"number\":2,\"of\":4,\"status\":\"failed for a value that it expects\""));
    assert_true(told(&h, "\"number\":3,\"of\":4,\"status\":\"passed\""));
    assert_true(told(&h, "It expects what the code gives now"));
    assert_true(told(&h, "\"state\":\"changed\""));
    free_host(&h);
}

/* What the person says is to come out stays, and the test fails. */
static void test_new_test__what_the_request_expects_stays(void **state)
{
    wish w = SHOUT;
    w.code = "def low(s):\n    return s\n\n\ndef shout(s):\n    return s\n";
    w.tests = "from text import low\n\n\ndef test_low():\n    assert low('a') == 'a'\n";
    w.request = "Add a test for shout: 'ab' becomes 'AB'";
    w.script = ANSWER("'ab') == 'AB'") ADDED ADDED ADDED ADDED;
    if (!has_pytest()) skip();
    char *tests;
    host h = ask(&w, &tests);
    free(tests);
    assert_true(told(&h, "'ab' == 'AB'"));
    assert_false(told(&h, "where the code gives"));
    assert_false(told(&h, "It expects what the code gives now"));
    assert_true(told(&h, "The new test stays in test_text.py: /undo takes it back."));
    free_host(&h);
}

/* A new test is written beside those that stand there, not in their place. */
static void test_new_test__a_whole_file_keeps_its_tests(void **state)
{
    static const char low[] = "def test_low():\n    assert low('a') == 'a'\n",
                      new[] = "def test_shout():\n    assert shout('a') == 'A'\n";
    put_file("text.py", "def low(s):\n    return s\n\n\ndef shout(s):\n    return s.upper()\n");
    put_file("test_text.py", low);
    host h = new_host();
    agent_session *s = open_session(&h, NO, AGENT_MODE_ALL, NULL, false);
    agent *a = agent_session_agent(s);
    base_json_doc *doc = NULL;
    static const char json[] = "{\"path\": \"test_text.py\"}";
    assert_int_equal(base_json_parse(json, strlen(json), &doc, NULL), 0);
    a->asked.test_alone = true;
    a->asked.new_test.path = base_xstrdup("test_text.py");
    a->asked.new_test.subject = base_xstrdup("shout");
    a->asked.new_test.name = base_xstrdup("test_shout");
    char *why = agent__why_no_test(a, base_json_root(doc), base_str_of(new));
    assert_string_equal(why, "test_low stands there, and this text leaves it out");
    free(why);
    base_buf both = {0};
    base_buf_printf(&both, "%s\n\n%s", low, new);
    assert_null(agent__why_no_test(a, base_json_root(doc), base_str_of(both.data)));
    base_buf_free(&both);
    base_json_free(doc);
    agent_session_close(s);
    free_host(&h);
}

/* An engine that has text only is told otherwise how its answer begins; all else is the same code, and mostly pytest's time. */
int main(int argc, char **argv)
{
    if (argc == 2) cmocka_set_test_filter(argv[1]); /* by hand: "*rust*" */
    const struct CMUnitTest both[] = {
        TEST_CASE(test_new_test__of_a_method_it_begins_like_the_nearest),
        TEST_CASE(test_new_test__it_gives_a_string_where_one_is_wanted),
    };
    const struct CMUnitTest once[] = {
        TEST_CASE(test_new_test__it_waits_for_the_error),
        TEST_CASE(test_new_test__the_class_that_should_get_a_method_gets_it),
        TEST_CASE(test_new_test__rows_go_to_the_test_that_is_told),
        TEST_CASE(test_new_test__of_a_method_it_begins_without_decorated_ones),
        TEST_CASE(test_new_test__of_a_method_it_waits_for_the_error),
        TEST_CASE(test_new_test__it_calls_its_subject_by_the_module),
        TEST_CASE(test_new_test__it_calls_its_subject_by_the_package),
        TEST_CASE(test_new_test__its_subject_is_imported_where_nothing_is_of_its_module),
        TEST_CASE(test_new_test__of_a_function_that_is_added_too),
        TEST_CASE(test_new_test__of_a_function_that_changes_first),
        TEST_CASE(test_new_test__of_a_member_it_knows_the_type),
        TEST_CASE(test_new_test__it_expects_what_the_code_gives),
        TEST_CASE(test_new_test__it_gives_a_list_where_one_is_wanted),
        TEST_CASE(test_new_test__it_gives_a_literal_for_a_name_of_nothing),
        TEST_CASE(test_new_test__a_candidate_s_expectation_is_put_right),
        TEST_CASE(test_new_test__what_the_request_expects_stays),
        TEST_CASE(test_new_test__a_whole_file_keeps_its_tests),
    };
    /* The others' scripts are of trees that are not parsed. */
    const struct CMUnitTest parsed[] = {
        TEST_CASE(test_new_test__of_rust_it_asserts_what_is_given),
        TEST_CASE(test_new_test__of_c_is_a_further_call_where_tests_are_calls),
        TEST_CASE(test_new_test__of_a_member_that_is_called_like_an_operation),
        TEST_CASE(test_new_test__of_c_runs_with_the_others),
        TEST_CASE(test_new_test__goes_into_the_file_of_its_subject_s_name),
        TEST_CASE(test_new_test__of_c_makes_what_its_subject_is_given),
        TEST_CASE(test_new_test__of_go_makes_what_its_subject_is_given),
        TEST_CASE(test_new_test__of_c_goes_into_the_tests_without_the_prefix),
        TEST_CASE(test_new_test__is_in_its_subject_s_language),
    };
    const int failed = cmocka_run_group_tests(once, NULL, NULL) + RUN_ON_BOTH(both);
    stage_chat = false;
    find_grammars();
    return failed + cmocka_run_group_tests(parsed, NULL, NULL);
}
