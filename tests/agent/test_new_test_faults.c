/* A new test that passes has to fail where its subject is broken, and gives way where it does not. */
#include "agent/newtest/newtest.h"
#include "wish.h"

static void check_notices(wish w, const char *answer, const char *notice, const char *state)
{
    if (!has_pytest()) skip();
    base_buf script = {0};
    base_buf_printf(&script, "answer <<X\n%s\n```\nX\n" ADDED, answer);
    w.script = script.data;
    host h = ask_for(&w, "def test_is_odd():\n    assert is_odd(");
    if (!told(&h, notice) || !told(&h, state)) fail_msg("%s and %s not in %s", notice, state, h.json.data);
    free_host(&h);
    base_buf_free(&script);
    char *tests = get_file("test_even.py");
    assert_non_null(strstr(tests, "from even import is_even, is_odd"));
    free(tests);
}

static void test_new_test__it_fails_where_its_subject_is_broken(void **state)
{
    check_notices(EVEN, "3)", "in is_odd the test file fails, as it should", "\"state\":\"done\"");
}

static void test_new_test__one_that_notices_nothing_is_told(void **state)
{
    wish w = EVEN;
    w.tries = 0;
    check_notices(w, "3) or True", "in is_odd: it may test nothing", "The new test does not notice a fault");
}

/* In copies of the tree, before anything is written: why one did not do stands in front of the next. */
static void test_new_test__one_that_fails_gives_way(void **state)
{
    NEEDS("branches");
    wish w = EVEN;
    w.script = ANSWER("'x')") ANSWER("hm\n5)") ADDED;
    if (!has_pytest()) skip();
    host h = ask_for(&w, "def test_is_odd():\n    assert is_odd(5)\n");
    assert_true(told(&h, "\"number\":1,\"of\":6,\"status\":\"failed\""));
    assert_true(told(&h, "The last test is wrong: TypeError"));
    assert_true(told(&h, "\"number\":2,\"of\":6,\"status\":\"passed\""));
    assert_true(told(&h, "in is_odd the test file fails, as it should"));
    free_host(&h);
}

/* One that notices no fault gives way to its calls with what they give, which costs no token. */
static void test_new_test__what_its_calls_give_is_expected(void **state)
{
    NEEDS("branches");
    wish w = EVEN;
    w.script = ANSWER("3) or True\n    assert is_odd(8) == 'no'\n    assert is_odd(n)") ADDED;
    if (!has_pytest()) skip();
    host h = ask_for(&w, "def test_is_odd():\n    assert is_odd(3) is True\n    assert is_odd(8) is False\n");
    assert_true(told(&h, "\"number\":2,\"of\":6,\"status\":\"passed\""));
    assert_true(told(&h, "It expects what the code gives now"));
    free_host(&h);
}

/* A model that makes one call after another is stopped: a few are enough. */
static void test_new_test__it_is_cut_where_it_has_calls_enough(void **state)
{
    NEEDS("branches");
    wish w = EVEN;
    base_buf script = {0};
    base_buf_puts(&script, "answer <<X\n3) == 0\n");
    for (int i = 0; i < 20; i++) base_buf_printf(&script, "    assert is_odd(%d) == 0\n", 2 * i);
    base_buf_puts(&script, "    assert is_odd(77) == 0\n```\nX\n" ADDED);
    w.script = script.data;
    if (!has_pytest()) skip();
    host h = ask_for(
        &w, "    assert is_odd(3) is True\n    assert is_odd(0) is False\n    assert is_odd(2) is False\n");
    assert_false(told(&h, "is_odd(77)"));
    free_host(&h);
    base_buf_free(&script);
}

/* An object that pytest hands the tests: the new one is handed it, too, and so is the one that is written from what its calls give. */
static void test_new_test__of_a_fixture(void **state)
{
    NEEDS("branches");
    wish w = STACK;
    w.tests =
        "import pytest\nfrom stack import Stack\n\n\n@pytest.fixture\ndef pile():\n    return Stack()\n\n\n"
        "def test_size(pile):\n    pile.push(1)\n    assert 1 == pile.size()\n";
    w.script = ANSWER(") == 'x'") ADDED;
    w.tries = 6;
    if (!has_pytest()) skip();
    host h = ask_for(&w, "def test_is_empty(pile):\n    assert pile.is_empty() is True\n");
    assert_true(told(&h, "as it should"));
    free_host(&h);
}

/* A function with overloads is one: imported, begun with what its first type begins with, broken where something is done. */
static void test_new_test__of_a_function_with_overloads(void **state)
{
    NEEDS("branches");
    const wish w = {.module = "conv",
        .code =
            "import typing as t\n\n\n@t.overload\ndef to_bytes(  # noqa: D103\n    b: t.Union[str, bytes]) -> bytes:\n"
            "    ...\n\n\n@t.overload\ndef to_bytes(b: None) -> None:\n    ...\n\n\n"
            "def to_bytes(b):\n    return b if b is None else b.encode()\n\n\ndef low(s):\n    return s.lower()\n",
        .tests = "from conv import low\n\n\ndef test_low():\n    assert low('A') == 'a'\n",
        .request = "Add a test for to_bytes",
        .script = ANSWER("x') == 'x'") ADDED,
        .tries = 6};
    if (!has_pytest()) skip();
    host h = ask_for(&w, "    assert to_bytes('x') == b'x'\n    assert to_bytes('X') == b'X'\n");
    assert_true(told(&h, "in to_bytes the test file fails, as it should"));
    free_host(&h);
}

/* What a request says that comes of a call is not what the code gives. */
static void test_new_test__values_of_a_request_are_not_recorded(void **state)
{
    NEEDS("branches");
    wish w = EVEN;
    char *tests;
    w.request = "Add a test for is_odd: is_odd(8) == True";
    w.script = ANSWER("8) == True") ANSWER("hm\n8) is True") ADDED ADDED ADDED ADDED ADDED;
    w.tries = 2;
    if (!has_pytest()) skip();
    host h = ask(&w, &tests);
    assert_true(told(&h, "\"number\":2,\"of\":2,\"status\":\"failed\""));
    assert_false(told(&h, "It expects what the code gives now"));
    assert_null(strstr(tests, "False"));
    free_host(&h);
    free(tests);
}

/* Its file fails without the new test as well: no other one would be judged by it either. */
static void test_new_test__a_file_that_fails_anyway_judges_none(void **state)
{
    NEEDS("branches");
    wish w = EVEN;
    w.tests = "from even import is_even\n\n\ndef test_is_even():\n    assert is_even(3)\n";
    w.script = ANSWER("3)") ADDED;
    if (!has_pytest()) skip();
    host h = ask_for(&w, "def test_is_odd():\n    assert is_odd(3)\n");
    assert_true(
        told(&h, "candidate 1 of 6") && !told(&h, "could not be tried") && !told(&h, "no candidates"));
    free_host(&h);
}

static void test_new_test__one_that_does_not_parse_gives_way(void **state)
{
    NEEDS("branches");
    wish w = EVEN;
    w.script = ANSWER("3 == ") ANSWER("hm\n5)") ADDED;
    if (!has_pytest()) skip();
    host h = ask_for(&w, "def test_is_odd():\n    assert is_odd(5)\n");
    assert_true(told(&h, "\"number\":2,\"of\":6,\"status\":\"passed\""));
    free_host(&h);
}

static void test_new_test__faults_are_small_and_of_each_kind(void **state)
{
    static const struct {
        const char *language, *body, *faults[3]; /* the body with each */
    } cases[] = {
        {"python", "return data.strip().lower()", {"return data.strip()"}},
        {"python", "return enc(data).replace(b'=', b'')", {"return enc(data)"}},
        {"python", "if not a: # a == b\n    return 1",
            {"if a: # a == b\n    return 1", "if not a: # a == b\n    return 2"}},
        {"c", "if (a == 'x' && b > 10) return \"no\";",
            {"if (a != 'x' && b > 10) return \"no\";", "if (a == 'x' && b > 11) return \"no\";",
                "if (a == 'x' && b <= 10) return \"no\";"}},
        {"rust", "s.len()", {NULL}},
        {"python", "cache.clear()", {"pass"}},
        {"python", "return len(s)", {"raise AssertionError(\"broken\")\n return len(s)"}},
        {"rust", "{ s.len() }", {"{panic!(\"broken\"); s.len() }"}},
        {"c", "void f(T *a) {\n    T *b = a;\n    a->n = 0;\n    free(b);\n    if (a == b)\n        g(a);\n}",
            {"void f(T *a) {\n    T *b = a;\n    a->n = 0;\n    free(b);\n    if (a != b)\n        g(a);\n}",
                "void f(T *a) {\n    T *b = a;\n    a->n = 1;\n    free(b);\n    if (a == b)\n        g(a);\n}",
                "void f(T *a) {\n    T *b = a;\n    a->n = 0;\n    free(b);\n    if (a == b)\n        ;\n}"}},
        {"python", "raise ValueError(\n    \"no color\")", {"return ValueError(\n    \"no color\")"}},
        {"javascript", "throw new TypeError(`${g('ab')} bad`)", {"return new TypeError(`${g('ab')} bad`)"}},
        {"python", "def f(self, x):\n    n = x\n    print(n)\n    self.n = n\n    return n",
            {"def f(self, x):\n    n = x\n    print(n)\n    pass\n    return n"}},
        {"go", "func (c *C) F() {\n\tn := c.n\n\tc.Lock()\n\tc.g(n)\n}",
            {"func (c *C) F() {\n\tn := c.n\n\tc.Lock()\n\t\n}"}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        agent_mutant all[3];
        base_buf text = {0};
        base_buf_printf(&text, " %s ", cases[i].body);
        const size_t n = agent__mutants(cases[i].language, &text, 1, text.len - 1, NULL, all, 3);
        for (size_t k = 0; k < 3; k++) {
            base_buf broken = {0};
            if (k < n) agent__put_mutant(&text, &all[k], &broken);
            if (k >= n && !cases[i].faults[k]) continue;
            if (k >= n || !cases[i].faults[k] || strlen(cases[i].faults[k]) + 2 != broken.len ||
                memcmp(broken.data + 1, cases[i].faults[k], broken.len - 2) != 0)
                fail_msg("%s: %s, not %s", cases[i].body, broken.data ? broken.data : "nothing",
                    cases[i].faults[k] ? cases[i].faults[k] : "nothing");
            base_buf_free(&broken);
        }
        agent__mutants_free(all, n);
        base_buf_free(&text);
    }
}

/* Of several faults those of the line that the request speaks of come first. */
static void test_new_test__faults_are_where_the_request_is(void **state)
{
    static const struct {
        const char *language, *body, *request,
            *fault; /* NULL: the request is about no line more than others */
    } cases[] = {
        {"python",
            "if point_no < 0 or point_no >= len(self.points):\n    return\ndel self.points[point_no + 1]\n",
            "Nothing tests that remove_point leaves a segment alone when the index is negative.",
            "if point_no >= 0 or point_no >= len(self.points):\n    return\ndel self.points[point_no + 1]\n"},
        {"c", "int n = 1 + a;\nif (!map) return;\nfree(map);\n",
            "a test that hashmap_free does nothing for NULL",
            "int n = 1 + a;\nif (map) return;\nfree(map);\n"},
        {"go", "n := a + b\nif stopped {\n\treturn errLast\n}\n",
            "that the last error is returned once it is stopped",
            "n := a + b\nif false && (stopped) {\n\treturn errLast\n}\n"},
        {"python", "if not a == b:\n    raise ValueError('x')\nreturn a + 1\n",
            "Write a unit test for f with an invalid color",
            "if not a == b:\n    return ValueError('x')\nreturn a + 1\n"},
        {"python", "if a > 1:\n    return b\n", "Add a test for f", NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        agent_mutant all[3];
        base_buf text = {0}, broken = {0};
        base_buf_printf(&text, "\n%s", cases[i].body);
        const size_t n = agent__mutants(cases[i].language, &text, 1, text.len, cases[i].request, all, 3);
        if (n) agent__put_mutant(&text, &all[0], &broken);
        if (!n || all[0].is_aimed != (cases[i].fault != NULL) ||
            (cases[i].fault && (strlen(cases[i].fault) + 1 != broken.len ||
                                   memcmp(broken.data + 1, cases[i].fault, broken.len - 1) != 0)))
            fail_msg("%s: %.*s", cases[i].request, (int)broken.len, broken.data ? broken.data : "nothing");
        agent__mutants_free(all, n);
        base_buf_free(&text);
        base_buf_free(&broken);
    }
}

/* What a runner says is told to the next candidate in one line. */
static void test_new_test__a_failure_is_a_line(void **state)
{
    static const struct {
        const char *output, *line;
    } cases[] = {
        {"a.py:3: in test_f\n    f(1)\nE   TypeError: no len()\nE   more\n", "TypeError: no len()"},
        {"--- FAIL: TestF (0.00s)\n    a_test.go:7: got 1, want 2\nFAIL\n", "a_test.go:7: got 1, want 2"},
        {"error[E0308]: mismatched types\n  --> a.rs\n", "error[E0308]: mismatched types"},
        {"a.c:7:3: error: too few arguments to f\n", "a.c:7:3: error: too few arguments to f"},
        {"all is well\n", NULL},
        {NULL, NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        base_buf out = {0};
        agent__put_failure(cases[i].output, &out);
        if (cases[i].line)
            assert_string_equal(out.data, cases[i].line);
        else
            assert_int_equal(out.len, 0);
        base_buf_free(&out);
    }
}

/* A word of a docstring is no operator: with that turned nothing is broken. */
static void test_new_test__a_docstring_is_not_broken(void **state)
{
    wish w = EVEN;
    w.code =
        "def is_even(n):\n    return n % 2 == 0\n\n\ndef is_odd(n):\n    \"\"\"Whole and odd == odd.\"\"\"\n"
        "    return n % 2 == 1  # and == so\n";
    check_notices(w, "3)", "in is_odd the test file fails, as it should", "\"state\":\"done\"");
}

/* "Refuse ..., and add a test" names nothing: the change comes first, and the test is of what was changed. */
static void test_new_test__of_what_the_turn_changed(void **state)
{
    if (!has_pytest()) skip();
    wish w = EVEN;
    w.request = "Refuse negative numbers with a clear ValueError, and add a test";
    w.tests = "import even\n\n\ndef test_is_even():\n    assert even.is_even(4)\n";
    w.script = ANSWER("<tools>{\"name\": \"rewrite\", \"arguments\": "
                      "{\"path\": \"even.py\", \"name\": \"is_odd\"}}</tools>\n"
                      "```python\n"
                      "def is_odd(n):\n"
                      "    if n < 0:\n"
                      "        raise ValueError(n)\n"
                      "    return n % 2 == 1") ADDED ANSWER("-8)") ADDED;
    host h = ask_for(&w, "    with pytest.raises(ValueError):\n        even.is_odd(-8)\n");
    char *code = get_file("even.py");
    if (!strstr(code, "def is_odd(n):\n    if n < 0:\n")) fail_msg("%s\n%s", code, h.json.data);
    free(code);
    if (!told(&h, "Its test passes") ||
        !told(&h, "with the text before the change in is_odd the test file fails, as it should"))
        fail_msg("%s", h.json.data);
    free_host(&h);
}

/* A test of what changed that passes without the change shows nothing of it, whatever else it would notice. */
static void test_new_test__that_passes_without_the_change_gives_way(void **state)
{
    NEEDS("branches");
    wish w = EVEN;
    if (!has_pytest()) skip();
    w.request = "Let is_odd give False for negative numbers, and add a test for it";
    w.tests = "import even\n\n\ndef test_is_even():\n    assert even.is_even(4)\n";
    w.script = ANSWER("<tools>{\"name\": \"rewrite\", \"arguments\": "
                      "{\"path\": \"even.py\", \"name\": \"is_odd\"}}</tools>\n"
                      "```python\n"
                      "def is_odd(n):\n"
                      "    return n > 0 and n % 2 == 1") ADDED ANSWER("3)") ANSWER("hm\n-3) is False") ADDED;
    host h = ask_for(&w, "def test_is_odd():\n    assert even.is_odd(-3) is False\n");
    if (!told(&h, "\"number\":1,\"of\":6,\"status\":\"passed, and notices no fault\""))
        fail_msg("%s", h.json.data);
    free_host(&h);
}

static void test_new_test__one_that_leaves_its_subject_out_is_refused_once(void **state)
{
    wish w = STACK;
    w.tests = "from stack import Stack\n\n\ndef test_nothing():\n    assert True\n";
    w.script = ANSWER("):\n    assert Stack().size() == 0") ANSWER("\n    assert Stack().size() == 0") ADDED;
    if (!has_pytest()) skip();
    host h = ask_for(&w, "def test_is_empty():\n    # is_empty\n    assert Stack().size() == 0\n");
    assert_true(told(&h, "Refused: test_is_empty does not call is_empty, which it is to test."));
    assert_true(told(&h, "the new test does not write is_empty: it tests something else"));
    assert_true(told(&h, "The new test does not notice a fault"));
    free_host(&h);
}

static void test_new_test__a_copy_of_its_neighbour_is_refused(void **state)
{
    wish w = EVEN;
    w.request = "Add another test for is_even";
    w.script = ANSWER("4)") ANSWER("6)") ADDED;
    w.tries = 0;
    if (!has_pytest()) skip();
    host h = ask_for(&w, "def test_is_even_2():\n    assert is_even(6)\n");
    assert_true(told(&h, "Refused: test_is_even_2 is the text of test_is_even once more."));
    free_host(&h);
}

/* What fails in a copy of the tree for a reason of its own is no proof. */
static void test_new_test__a_file_that_fails_in_every_copy_proves_nothing(void **state)
{
    wish w = STACK;
    base_buf tests = {0};
    base_buf_printf(&tests,
        "import os\n"
        "from stack import Stack\n\n"
        "assert os.getcwd() == '%s'\n\n\n"
        "def test_size():\n"
        "    stack = Stack()\n    assert stack.size() == 0\n",
        tree);
    w.tests = tests.data;
    w.script = ANSWER(") is True") ADDED;
    if (!has_pytest()) skip();
    host h = ask_for(&w, "assert stack.is_empty() is True\n");
    if (!told(&h, "could not be tried: its test file fails in a copy of the tree as it is"))
        fail_msg("%s", h.json.data);
    free_host(&h);
    base_buf_free(&tests);
}

/* An engine that has text only is told otherwise how its answer begins; all else is the same code, and mostly pytest's time. */
int main(int argc, char **argv)
{
    if (argc == 2) cmocka_set_test_filter(argv[1]); /* by hand: "*rust*" */
    const struct CMUnitTest both[] = {
        TEST_CASE(test_new_test__it_fails_where_its_subject_is_broken),
    };
    const struct CMUnitTest once[] = {
        TEST_CASE(test_new_test__of_what_the_turn_changed),
        TEST_CASE(test_new_test__that_passes_without_the_change_gives_way),
        TEST_CASE(test_new_test__one_that_fails_gives_way),
        TEST_CASE(test_new_test__what_its_calls_give_is_expected),
        TEST_CASE(test_new_test__values_of_a_request_are_not_recorded),
        TEST_CASE(test_new_test__of_a_function_with_overloads),
        TEST_CASE(test_new_test__of_a_fixture),
        TEST_CASE(test_new_test__it_is_cut_where_it_has_calls_enough),
        TEST_CASE(test_new_test__a_file_that_fails_anyway_judges_none),
        TEST_CASE(test_new_test__one_that_does_not_parse_gives_way),
        cmocka_unit_test(test_new_test__faults_are_small_and_of_each_kind),
        cmocka_unit_test(test_new_test__faults_are_where_the_request_is),
        cmocka_unit_test(test_new_test__a_failure_is_a_line),
        TEST_CASE(test_new_test__one_that_notices_nothing_is_told),
        TEST_CASE(test_new_test__a_docstring_is_not_broken),
        TEST_CASE(test_new_test__one_that_leaves_its_subject_out_is_refused_once),
        TEST_CASE(test_new_test__a_copy_of_its_neighbour_is_refused),
        TEST_CASE(test_new_test__a_file_that_fails_in_every_copy_proves_nothing),
    };
    return cmocka_run_group_tests(once, NULL, NULL) + RUN_ON_BOTH(both);
}
