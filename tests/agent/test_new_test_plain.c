/* Plain requests for a test that name what it is of: how the test is begun, and where. */
#include <sys/stat.h>

#include "agent/newtest/newtest.h"
#include "wish.h"

static void make_folder(const char *name)
{
    char path[200];
    snprintf(path, sizeof path, "%s/%s", tree, name);
    assert_int_equal(mkdir(path, 0700), 0);
}

typedef struct plain {
    const char *request, *begins; /* begins: told in the call, with the escapes of JSON */
} plain;

/* The tree's files are there; the model writes "ZZZ". */
static void check_begins(const plain *all, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        host h = new_host();
        agent_session *s =
            open_session(&h, ANSWER("ZZZ)") ADDED ADDED ADDED ADDED, AGENT_MODE_ALL, NULL, false);
        agent_session_agent(s)->settings.tries = 0;
        submit(s, &h, all[i].request);
        const char *call = strstr(h.json.data, "\"tool_call\"");
        if (!told(&h, all[i].begins))
            fail_msg("%s: %s not in %.600s", all[i].request, all[i].begins, call ? call : "no call");
        agent_session_close(s);
        free_host(&h);
        assert_int_equal(drop_folders(NULL), 0);
        assert_int_equal(make_folders(NULL), 0);
    }
}

#define CHECK(all) check_begins(all, sizeof all / sizeof *all)

/* "test" is what is ordered where a name of the tree stands behind it, and the name is what the sentence begins with. */
static void test_new_test_plain__the_word_is_an_order(void **state)
{
    static const plain all[] = {
        {"test is_odd with a negative number", "# is_odd with a negative number\\n    assert is_odd(ZZZ"},
        {"write a unit test that first raises StopIteration on an empty list",
            "with pytest.raises(StopIteration):\\n        first(ZZZ"},
        {"test that first raises StopIteration on an empty list", "        first(ZZZ"}};
    NEEDS_GRAMMAR;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        put_file("even.py",
            "def is_odd(n):\n    return n % 2 == 1\n\n\ndef first(seq):\n    return next(iter(seq))\n\n\n"
            "def empty_list(raises):\n    return raises\n");
        put_file("test_even.py", "from even import is_odd\n\n\ndef test_is_odd():\n    assert is_odd(3)\n");
        check_begins(all + i, 1);
    }
}

/* Of two functions that are named the one is meant that "one" is ordered for. */
static void test_new_test_plain__the_one_behind_for_is_meant(void **state)
{
    static const plain all[] = {{"is_odd has a test. Add one for first", "assert first(ZZZ"},
        {"There are no tests for first, only some for is_odd. Please add one for first", "assert first(ZZZ"}};
    NEEDS_GRAMMAR;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        put_file("even.py",
            "def is_odd(n):\n    return n % 2 == 1\n\n\ndef first(seq):\n    return next(iter(seq))\n");
        put_file("test_even.py", "from even import is_odd\n\n\ndef test_is_odd():\n    assert is_odd(3)\n");
        check_begins(all + i, 1);
    }
}

/* Go: the call is begun up to a value of its first parameter. */
static void test_new_test_plain__of_go_begins_with_a_value(void **state)
{
    static const plain all[] = {{"add a test for Up", "\\tif got := Up(\\\"ZZZ"},
        {"add a test for Cut", "\\tgot, err := Cut([]byte(\\\"ZZZ"},
        {"add a test for Add", "\\tif got := Add(ZZZ"}, {"add a test for Two", "\\tif got := Two(\\\"ZZZ"}};
    NEEDS_GRAMMAR;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        put_file("a.go",
            "package a\n\n// Up is Up(it).\nfunc Up(s string) string {\n\treturn s\n}\n\nfunc Cut(b []byte, n int) (int, error) {\n"
            "\treturn n, nil\n}\n\nfunc Add(n, m int) int {\n\treturn n + m\n}\n\nfunc Two(s, t string) bool {\n\treturn s == t\n}\n");
        put_file("a_test.go",
            "package a\n\nimport \"testing\"\n\nfunc TestOther(t *testing.T) {\n\tother(t)\n}\n");
        check_begins(all + i, 1);
    }
}

/* Python: the test beside it asserts in other words, and the call is begun all the same. */
static void test_new_test_plain__beside_other_assertions(void **state)
{
    static const plain all[] = {
        {"add a test for is_odd", "def test_is_odd_2(self):\\n    self.assertEqual(is_odd(ZZZ"}};
    NEEDS_GRAMMAR;
    put_file("even.py", "def is_odd(n):\n    return n % 2 == 1\n");
    put_file("test_even.py",
        "import unittest\nfrom even import is_odd\n\n\nclass EvenTest(unittest.TestCase):\n    def test_is_odd(self):\n"
        "        self.assertTrue(is_odd(3))\n");
    check_begins(all, 1);
}

/* Tests of node's own runner: beside the nested one, but behind the whole where that counts what is in it. */
static void test_new_test_plain__of_nested_tests(void **state)
{
    static const plain all[] = {
        {"add a test for double with an empty list",
            "  await t.test('double with an empty list', () => {\\n    assert.equal(double(ZZZ"},
        {"add a test for double with an empty list",
            "\\ntest('double with an empty list', async (t) => {\\n    assert.equal(double(ZZZ"}};
    NEEDS_GRAMMAR;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        base_buf tests = {0};
        base_buf_printf(&tests,
            "const test = require('node:test')\n\ntest('double', async (t) => {\n%s  await t.test('of one', () => {\n"
            "    assert.equal(double(1), 2)\n  })\n\n  await t.test('other', () => {\n    run()\n  })\n})\n",
            i ? "  t.plan(2)\n" : "");
        put_file("double.js", "function double(n) {\n  return 2 * n\n}\n\nmodule.exports = { double }\n");
        put_file("double.test.js", tests.data);
        check_begins(all + i, 1);
        base_buf_free(&tests);
    }
}

/* No order: what is behind "test" is no name of the tree, or something asks. */
static void test_new_test_plain__a_run_is_no_new_test(void **state)
{
    static const char *const all[] = {
        "test the build with make", "test is_odd with a negative number, does it work?"};
    NEEDS_GRAMMAR;
    put_file("even.py", "def is_odd(n):\n    return n % 2 == 1\n");
    put_file("test_even.py", "from even import is_odd\n\n\ndef test_is_odd():\n    assert is_odd(3)\n");
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        host h = new_host();
        agent_session *s = open_session(&h, ANSWER("ZZZ") ADDED ADDED, AGENT_MODE_ALL, NULL, false);
        agent_session_agent(s)->settings.tries = 0;
        submit(s, &h, all[i]);
        if (told(&h, "is_odd_2")) fail_msg("%s: %s", all[i], h.json.data);
        agent_session_close(s);
        free_host(&h);
    }
}

/* The file of a subject's tests is one whose tests are named after it or its type, or that writes it; benches are none. */
static void test_new_test_plain__of_several_files(void **state)
{
    static const plain all[] = {
        {"add a test for methodkey that checks keyword arguments",
            "def test_methodkey_2(self):\\n    self.assertEqual(cache.keys.methodkey(ZZZ"},
        {"add a test for LruCache with maxsize 0", "\"path\":\"tests/test_two.py\",\"name\":\"LruCacheTest."},
        {"add a test that popitem of an empty FifoCache raises KeyError",
            "\"path\":\"tests/test_one.py\",\"name\":\"FifoCacheTest."},
        {"add a test for timed with two arguments", "\"path\":\"tests/test_keys.py\""}};
    NEEDS_GRAMMAR;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        make_folder("cache");
        make_folder("tests");
        make_folder("bench");
        put_file("cache/__init__.py", "class FifoCache:\n    def popitem(self):\n        return 1\n\n\n"
                                      "class LruCache:\n    def popitem(self):\n        return 2\n");
        put_file("cache/keys.py",
            "def methodkey(self, *args):\n    return args\n\n\ndef timed(a, b):\n    return a\n");
        put_file(
            "bench/test_timed.py", "from cache.keys import timed\n\n\ndef test_timed():\n    timed(1, 2)\n");
        put_file("tests/test_keys.py",
            "import unittest\nimport cache.keys\n\n\nclass KeysTest(unittest.TestCase):\n"
            "    def test_methodkey(self, key=cache.keys.methodkey):\n        self.assertEqual(key('x'), ())\n\n"
            "    def test_timed(self, key=cache.keys.timed):\n        self.assertEqual(key('x', 1), 'x')\n");
        put_file("tests/test_all.py",
            "from cache import FifoCache, LruCache, keys\n\n\ndef test_all():\n    assert keys.methodkey(1, 2)\n"
            "    assert LruCache()\n    assert LruCache()\n    assert LruCache()\n    assert FifoCache().popitem()\n");
        put_file("tests/test_one.py",
            "import unittest\nfrom cache import FifoCache\n\n\nclass FifoCacheTest(unittest.TestCase):\n"
            "    def test_it(self):\n        self.assertTrue(FifoCache())\n");
        put_file("tests/test_two.py",
            "import unittest\nfrom cache import LruCache\n\n\nclass LruCacheTest(unittest.TestCase):\n"
            "    def test_it(self):\n        self.assertTrue(LruCache())\n");
        check_begins(all + i, 1);
    }
}

/* mocha: what a test is given stands in a block of the file's own, so the new one begins such a block. */
static void test_new_test_plain__in_a_block_that_says_what_is_given(void **state)
{
    static const plain all[] = {{"add a test for encoding with deflate", "  })\\n\\n  whenAccept('ZZZ"}};
    NEEDS_GRAMMAR;
    put_file("index.js", "exports.encoding = function encoding(x) {\n  return x\n}\n");
    put_file("test.js",
        "describe('encoding()', function () {\n  whenAccept('gzip', function () {\n"
        "    it('should return gzip', function () {\n      assert.equal(this.n.encoding(), 'gzip')\n"
        "    })\n\n    it('should take a list', function () {\n"
        "      assert.equal(this.n.encoding(['gzip']), 'gzip')\n    })\n  })\n})\n\n"
        "function whenAccept(x, f) {\n  describe(x, f)\n}\n");
    check_begins(all, 1);
}

/* Go: a table of values has no row for an error, unless it has a place for one. */
static void test_new_test_plain__an_error_is_no_row_of_values(void **state)
{
    static const struct {
        const char *table, *begins;
    } cases[] = {{"x, out int", "func TestClip2(t *testing.T) {\\n\\t// Clip returns an error"},
        {"x, out int; wantErr bool", "\"name\":\"TestClip\""}};
    NEEDS_GRAMMAR;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        base_buf tests = {0};
        put_file("go.mod", "module clip\n");
        put_file(
            "clip.go", "package clip\n\nfunc Clip(x, min, max int) (int, error) {\n\treturn x, nil\n}\n");
        base_buf_printf(&tests,
            "package clip\n\nimport \"testing\"\n\nfunc TestClip(t *testing.T) {\n\tfor _, c := range []struct {\n"
            "\t\t%s\n\t}{\n\t\t{1, 1},\n\t\t{2, 2},\n\t\t{3, 3},\n\t} {\n"
            "\t\tif x, err := Clip(c.x, 1, 2); x != c.out {\n\t\t\tt.Error(x, err)\n\t\t}\n\t}\n}\n",
            cases[i].table);
        put_file("clip_test.go", tests.data);
        base_buf_free(&tests);
        check_begins(
            &(plain){"write a test that Clip returns an error when min is larger than max", cases[i].begins},
            1);
    }
}

/* C: a test is given nothing, nothing that its neighbour alone has is used in it, and it is declared as that one is. */
static void test_new_test_plain__of_c_is_on_its_own(void **state)
{
    static const plain all[] = {
        {"add a test for list_len", "\"payload\":\"void test_list_len(void) {\\nZZZ"}};
    static const char code[] =
        "struct list {\n  int n;\n};\n\nint list_len(struct list *l) {\n  return l->n;\n}\n";
    static const char tests[] =
        "#include \"list.c\"\n\nvoid test_list(struct list *given);\nvoid test_all(void);\n\n"
        "int main(void) {\n  test_all();\n  return 0;\n}\n\nvoid test_list(struct list *given) {\n"
        "  struct list *l;\n\n  l = list_of(given);\n  check(list_len(l) == 1);\n}\n\n"
        "void test_all(void) {\n  test_list(0);\n}\n";
    NEEDS_GRAMMAR;
    put_file("list.c", code);
    put_file("test_list.c", tests);
    check_begins(all, 1);
    put_file("list.c", "int list_max(void) {\n  return 3;\n}\n");
    put_file("test_list.c", "#include \"list.c\"\n\nvoid test_all(void);\n\nint main(void) {\n  test_all();\n"
                            "  return 0;\n}\n\nvoid test_all(void) {\n  check(1);\n}\n");
    host h = new_host();
    agent_session *s = open_session(
        &h, "answer <<X\n  check(list_max() == 3);\n}\n```\nX\n" ADDED ADDED, AGENT_MODE_ALL, NULL, false);
    agent_session_agent(s)->settings.tries = 0;
    submit(s, &h, "add a test for list_max");
    char *now = get_file("test_list.c");
    if (!strstr(now, "void test_all(void);\nvoid test_list_max(void);\n\n") ||
        !strstr(now, "  test_list_max();\n"))
        fail_msg("%s", now);
    free(now);
    agent_session_close(s);
    free_host(&h);
}

/* Python: what has no literal is compared by what it gives, or by what it begins with. */
static void test_new_test_plain__an_iterator_is_compared_by_what_it_gives(void **state)
{
    static const struct {
        const char *text, *output, *line; /* line NULL: stays */
    } cases[] = {
        {"def test_a():\n    assert take(3, [1, 2]) == [1, 2]\n",
            "E   assert <itertools.islice object at 0x7f> == [1, 2]\n",
            "    assert list(take(3, [1, 2])) == [1, 2]\n"},
        {"def test_a():\n    self.assertEqual(take(3, 'ab'), ('a',))\n",
            "AssertionError: <generator object take at 0x7f> != ('a',)\n",
            "    self.assertEqual(tuple(take(3, 'ab')), ('a',))\n"},
        {"def test_a():\n    assert peekn(2, 'abc') == ('a', 'b')\n",
            "E   AssertionError: assert (('a', 'c'), <itertools.chain object at 0x7f>) == ('a', 'b')\n",
            "    assert peekn(2, 'abc')[0] == ('a', 'c')\n"},
        {"def test_a():\n    assert f(1) == 2\n    assert f(2) == 2\n",
            "test_a.py:2: in test_a\nE   assert 5 == 2\n",
            "    assert f(1) == 5\n"}, /* the line that failed */
        {"def test_a():\n    self.assertEqual(f(1), 2)\n    self.assertEqual(f(2), 2)\n",
            "  File \"/x/test_a.py\", line 2, in test_a\nAssertionError: 5 != 2\n",
            "    self.assertEqual(f(1), 5)\n"},
        {"def test_a():\n    x = 2\n    assert f(1) == x\n", "test_a.py:3: in test_a\nE   assert 5 == 2\n",
            "    x = 5\n"},
        {"it('a', function () {\n  assert.equal(f('a'), 'a')\n})\n",
            "Expected values to be strictly equal:\n+ actual - expected\n\n+ undefined\n- 'a'\n    at x (test_a.py:2:3)\n",
            "  assert.equal(f('a'), undefined)\n"},
        {"it('a', function () {\n  assert.equal(f(1), 1)\n})\n",
            "Expected values to be strictly equal:\n\n3 !== 1\n", "  assert.equal(f(1), 3)\n"},
        {"def test_a():\n    assert [1, 2] == take(3, [1, 2])\n",
            "E   assert [1, 2] == <itertools.islice object at 0x7f>\n", NULL},
        {"def test_a():\n    assert make() == {}\n", "E   assert <object object at 0x7f> == {}\n", NULL},
        {"def test_a():\n    x = [1]\n", "E   assert <a object at 0x7f> == [1]\n", NULL},
        {"def test_a():\n    assert f() == [1]\n", "E   assert <a object at 0x7f", NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        base_buf text = {0};
        agent_expectation e;
        base_buf_puts(&text, cases[i].text);
        const bool is_found =
            agent__read_expectation(&text, 0, text.len, "test_a.py", NULL, cases[i].output, &e);
        assert_int_equal(is_found, cases[i].line != NULL);
        if (is_found) assert_string_equal(e.text.data, cases[i].line);
        if (is_found) assert_int_equal(e.line, 2);
        agent_expectation_free(&e);
        base_buf_free(&text);
    }
}

/* pytest cuts what is longer than some thirty letters: what it gives in full is what the test expects then. */
static void test_new_test_plain__what_is_cut_is_read_in_full(void **state)
{
    base_buf command = {0};
    assert_true(
        agent__is_output_cut("x\nE   AssertionError: assert (('Alice', 'B...a0>) == ('Alice', 'Bob')\n"));
    assert_false(agent__is_output_cut("x\nE   assert 1 == 2\n...F\n"));
    assert_false(agent__is_output_cut(NULL));
    agent__put_verbose("python3 -m pytest -q -x --tb=short test_a.py", "test_f", &command);
    assert_string_equal(command.data, "python3 -m pytest -vv -x --tb=short test_a.py -k test_f");
    base_buf_clear(&command);
    agent__put_verbose("python3 -m unittest -q -f test_a.py", "test_f", &command);
    assert_int_equal(command.len, 0);
    base_buf_free(&command);
    wish w = EVEN;
    w.code =
        "def is_even(n):\n    return n % 2 == 0\n\n\ndef is_odd(n):\n    return [n * 1000000000 + i for i in range(6)]\n";
    w.script = ANSWER("3) == [3000000000, 3000000001, 3000000002, 3]") ADDED;
    w.tries = 6;
    if (!has_pytest()) skip();
    host h = ask_for(&w,
        "    assert is_odd(3) == [3000000000, 3000000001, 3000000002, 3000000003, 3000000004, 3000000005]\n");
    free_host(&h);
}

/* C: a program that ends with 0 all the same says of what failed. */
static void test_new_test_plain__what_is_printed_of_it_counts(void **state)
{
    static const struct {
        const char *output;
        bool is_one;
    } cases[] = {{"Running tests\n12 list_max() == 4    - FAILED\nTests failed: 1\n", true},
        {"[FAIL] test_list_max\n", true}, {"not ok 3 test_list_max\n", true},
        {"12 other() == 4 - FAILED\nTests failed: 1\n", false}, /* another test's */
        {"test_list_max: ok\nTests failed: 0\n", false}, {"list_max() == 4 FAILEDX\n", false}, {"", false},
        {NULL, false}};
    static const char body[] = "{\n  CHECK(list_max() == 4);\n  f();\n}\n";
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *line = agent__read_printed_failure(body, sizeof body - 1, "test_list_max", cases[i].output);
        assert_int_equal(line != NULL, cases[i].is_one);
        free(line);
    }
    NEEDS_GRAMMAR;
    put_file("Makefile", "test: test_list.c list.c\n\tcc -w -o t test_list.c\n\t./t\n");
    put_file("list.c", "int list_max(void) {\n  return 3;\n}\n");
    put_file("test_list.c",
        "#include <stdio.h>\n#include \"list.c\"\n\n"
        "#define CHECK(x) printf(\"%d %s - %s\\n\", __LINE__, #x, (x) ? \"ok\" : \"FAILED\")\n\n"
        "void test_all(void) {\n  CHECK(1);\n}\n\nint main(void) {\n  test_all();\n  return 0;\n}\n");
    host h = new_host();
    agent_session *s =
        open_session(&h, "answer <<X\n  CHECK(list_max() == 4);\n}\n```\nX\n" ADDED ADDED ADDED ADDED,
            AGENT_MODE_ALL, NULL, false);
    agent_session_agent(s)->settings.tries = 0;
    submit(s, &h, "add a test for list_max");
    if (!told(&h, "make -s test ends with 0, and says that the new test fails: ") ||
        !told(&h, " list_max() == 4 - FAILED") || !told(&h, "Its test fails: make -s test"))
        fail_msg("%.3000s", strstr(h.json.data, "\"tool_call\""));
    agent_session_close(s);
    free_host(&h);
}

/* Python: what fails behind an assertion that holds goes, with its block; the first one stays, since it is what was asked for. */
static void test_new_test_plain__what_the_code_does_not_do_is_left_out(void **state)
{
    static const char text[] =
        "class A:\n    def test_f(self):\n        self.assertEqual(f(1), f(1))\n"
        "        with self.assertRaises(TypeError):\n            f(2)\n\n        x = f(3)\n";
    static const struct {
        const char *output, *subject, *text; /* text NULL: stays */
        uint32_t line, line_end;
    } cases[] = {
        {"test_a.py:4: in test_f\nE   AssertionError: TypeError not raised\n", "f",
            "        self.assertEqual(f(1), f(1))\n", 3, 5},
        {"test_a.py:5: in test_f\nE   ValueError\n", "f", NULL, 0,
            0}, /* in the block: its head would be left alone */
        {"  File \"/x/test_a.py\", line 7, in test_f\nKeyError\n", "f", "\n", 6, 7},
        {"test_a.py:3: in test_f\nE   assert 1 == 2\n", "f", NULL, 0, 0},
        {"test_a.py:4: in test_f\n", "g", NULL, 0, 0},
        {"test_b.py:4: in test_f\n", "f", NULL, 0, 0},
        {"", "f", NULL, 0, 0},
    };
    base_buf file = {0};
    base_buf_puts(&file, text);
    const size_t from = (size_t)(strstr(text, "self.assertEqual") - text);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        agent_expectation e;
        const bool is_left =
            agent__leave_out(&file, from, file.len, "test_a.py", cases[i].subject, cases[i].output, &e);
        assert_int_equal(is_left, cases[i].text != NULL);
        if (is_left) assert_string_equal(e.text.data, cases[i].text);
        if (is_left) assert_true(e.line == cases[i].line && e.line_end == cases[i].line_end);
        agent_expectation_free(&e);
    }
    base_buf_free(&file);
    wish w = EVEN;
    w.script =
        ANSWER("3)\n    with pytest.raises(TypeError):\n        is_odd(4)\n    assert is_odd(5)") ADDED;
    w.tries = 0;
    if (!has_pytest()) skip();
    host h = ask_for(&w, "def test_is_odd():\n    assert is_odd(3)\n    assert is_odd(5)\n");
    assert_true(told(&h, "the new test expected what the code does not do: with pytest.raises(TypeError):"));
    free_host(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST_CASE(test_new_test_plain__the_word_is_an_order),
        TEST_CASE(test_new_test_plain__the_one_behind_for_is_meant),
        TEST_CASE(test_new_test_plain__of_go_begins_with_a_value),
        TEST_CASE(test_new_test_plain__beside_other_assertions),
        TEST_CASE(test_new_test_plain__of_nested_tests),
        TEST_CASE(test_new_test_plain__a_run_is_no_new_test),
        TEST_CASE(test_new_test_plain__of_several_files),
        TEST_CASE(test_new_test_plain__in_a_block_that_says_what_is_given),
        TEST_CASE(test_new_test_plain__an_error_is_no_row_of_values),
        TEST_CASE(test_new_test_plain__of_c_is_on_its_own),
        TEST_CASE(test_new_test_plain__an_iterator_is_compared_by_what_it_gives),
        TEST_CASE(test_new_test_plain__what_is_cut_is_read_in_full),
        TEST_CASE(test_new_test_plain__what_is_printed_of_it_counts),
        TEST_CASE(test_new_test_plain__what_the_code_does_not_do_is_left_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
