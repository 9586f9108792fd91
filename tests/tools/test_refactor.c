/*
 * Deletions, changed signatures and moves: what happens to callers, tests, exports and imports.
 */
#include "refactor.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

static void test_refactor__delete_lists_callers_or_replaces_them(void **state)
{
    tree t;
    tree_make(&t, true);
    tree_put(&t, "a.py",
        "import os\n\n\n"
        "# Says it.\n"
        "def note(x):\n"
        "    return note(x)\n\n\n"
        "def keep(y):\n"
        "    note(y)\n"
        "    return y\n");
    tree_put(&t, "b.py", "from a import keep, note\n\nprint(note(1) + keep(2))\n");
    tree_put(&t, "c.py", "from a import note\nnote(3)\n");
    tree_open(&t);
    refuses(&t, "{\"operation\":\"delete\",\"name\":\"note\"}", TOOL_REFUSED, "a.py:10 (in keep)");
    refuses(&t, "{\"operation\":\"delete\",\"name\":\"note\",\"to\":\"nothing\"}", TOOL_REFUSED, "b.py:3");
    char *said = refactor_with(&t, "{\"operation\":\"delete\",\"name\":\"note\",\"to\":\"0\"}", TOOL_OK);
    assert_contains(said, "deleted function note from a.py and its 3 calls: 3 files");
    free(said);
    expect(&t, "a.py", "import os\n\n\ndef keep(y):\n    0\n    return y\n");
    expect(&t, "b.py", "from a import keep\n\nprint(0 + keep(2))\n");
    expect(&t, "c.py", "0\n");
    tree_put(&t, "l.h", "int log_it(int x);\nint stay(void);\n");
    tree_put(&t, "l.c",
        "#include \"l.h\"\n\n"
        "int log_it(int x)\n"
        "{\n"
        "    return x;\n"
        "}\n\n"
        "int stay(void)\n"
        "{\n"
        "    log_it(1);\n"
        "    return 0;\n"
        "}\n");
    tree_open(&t);
    said = refactor_with(&t, "{\"operation\":\"delete\",\"name\":\"log_it\",\"to\":\"nothing\"}", TOOL_OK);
    free(said);
    expect(&t, "l.h", "int stay(void);\n");
    expect(&t, "l.c", "#include \"l.h\"\n\nint stay(void)\n{\n    return 0;\n}\n");
    tree_remove(&t);
}

/* What only tests the deleted function goes with it: assertions, tests, classes, a file; other uses refuse it. */

static void test_refactor__delete_takes_its_tests(void **state)
{
    tree t;
    tree_make(&t, true);
    tree_put(&t, "m.py",
        "def pack(x):\n    return x\n\n\ndef unpack(x):\n    return x\n\n\ndef keep(x):\n    return x\n");
    tree_put(&t, "tests/test_m.py",
        "import m\nfrom unittest import TestCase\n\n\ndef test_round():\n    a = b'a' * 10\n"
        "    assert m.unpack(m.pack(a)) == a\n\n    assert m.unpack(m.pack(b'')) == b''\n\n\n"
        "def test_keep():\n"
        "    assert m.keep(1) == 1\n"
        "    # don't\n"
        "    assert m.keep(\n"
        "        m.pack(2)) == 2\n\n"
        "    for i in range(3):\n        assert m.pack(i) == i\n    assert m.keep(3) == 3\n\n\n"
        "def test_read():\n    got = m.pack(1)\n    for g in got:\n        assert g\n\n\n"
        "class TestPack(TestCase):\n    def test_one(self):\n        with self.assertRaises(ValueError):\n"
        "            m.pack(None)\n\n\ndef test_last():\n    assert m.keep(4) == 4\n");
    tree_open(&t);
    char *said = refactor_with(&t, "{\"operation\":\"delete\",\"name\":\"pack\"}", TOOL_OK);
    assert_contains(said, "3 whole tests and 2 assertions, test_round (tests/test_m.py), tests/test_m.py");
    free(said);
    expect(&t, "tests/test_m.py",
        "import m\nfrom unittest import TestCase\n\n\n"
        "def test_keep():\n    assert m.keep(1) == 1\n\n"
        "    assert m.keep(3) == 3\n\n\ndef test_last():\n    assert m.keep(4) == 4\n");
    tree_put(&t, "tests/test_n.py",
        "from m import keep, unpack\n\n\ndef test_both():\n"
        "    got = unpack(1)\n    assert got == 1\n    assert keep(2) == 2\n");
    tree_open(&t);
    refuses(&t, "{\"operation\":\"delete\",\"name\":\"unpack\"}", TOOL_REFUSED,
        "tests/test_n.py:5 (in test_both)");
    tree_put(&t, "a.ts",
        "export function one(x: number) {\n"
        "  return x;\n"
        "}\n\n"
        "export function two(x: number) {\n"
        "  return x;\n"
        "}\n");
    tree_put(&t, "a.test.ts",
        "import { one, two } from './a';\n\ndescribe('two', () => {\n  it('is \"it\"', () => {\n"
        "    expect(two(1)).toBe(1);\n  });\n\n  it('throws', () => {\n    expect(() => {\n      two(0);\n"
        "    }).not.toThrow();\n  });\n});\n\ndescribe('one', () => {\n  it('is', () => {\n"
        "    expect(one(1)).toBe(1);\n\n    // both\n    expect(two(2))\n      .toBe(2);\n  });\n});\n");
    tree_put(&t, "two.test.ts",
        "import { test } from 'vitest';\n"
        "import { two } from './a';\n\n"
        "test('two', () => {\n"
        "  const a = two(1);\n\n"
        "  expect(a).toBe(1);\n});\n");
    tree_open(&t);
    said = refactor_with(&t, "{\"operation\":\"delete\",\"name\":\"two\"}", TOOL_OK);
    assert_contains(said, "3 whole tests and 1 assertion");
    free(said);
    expect(&t, "a.test.ts",
        "import { one } from './a';\n\ndescribe('one', () => {\n  it('is', () => {\n"
        "    expect(one(1)).toBe(1);\n  });\n});\n");
    assert_false(tree_has(&t, "two.test.ts"));
    tree_remove(&t);
}

/* The same where an attribute, an annotation or a name marks a test, with tables and imports that only such tests used. */

static void test_refactor__delete_takes_marked_tests(void **state)
{
    tree t;
    tree_make(&t, true);
    tree_put(&t, "src/lib.rs",
        "pub fn twice(x: i32) -> i32 {\n"
        "    x * 2\n"
        "}\n\n"
        "pub fn keep<'a>(s: &'a str) -> &'a str {\n"
        "    s\n"
        "}\n\n"
        "#[cfg(test)]\nmod tests {\n    use super::*;\n\n    #[test]\n    fn doubles() {\n"
        "        assert_eq!(2, twice(1));\n    }\n\n    #[test]\n    fn both() {\n"
        "        assert_eq!('\\'', keep(\"'\").chars().next().unwrap());\n"
        "        assert_eq!(4, twice(2));\n"
        "    }\n"
        "}\n");
    tree_put(&t, "benches/b.rs",
        "#[bench]\n"
        "fn bench_twice(b: &mut Bencher) {\n"
        "    let n = 3;\n"
        "    b.iter(|| { lib::twice(n); })\n"
        "}\n\n"
        "#[bench]\nfn bench_keep(b: &mut Bencher) {\n    b.iter(|| { lib::keep(\"\"); })\n}\n");
    tree_put(&t, "g/a.go",
        "package g\n\nfunc Twice(n int) int { return n * 2 }\n\nfunc Keep() int { return 1 }\n");
    tree_put(&t, "g/a_test.go",
        "package g\n\n"
        "import (\n"
        "\t\"fmt\"\n"
        "\t\"testing\"\n"
        ")\n\n"
        "func ExampleTwice() {\n"
        "\tfmt.Println(Twice(2))\n"
        "}\n\n"
        "func TestKeep(t *testing.T) {\n\tif got := Keep(); got != 1 {\n\t\tt.Error(got)\n\t}\n"
        "\tif got := Twice(1); got != 2 {\n\t\tt.Error(got)\n\t}\n}\n");
    tree_put(&t, "J.java", "class J {\n    static int once() {\n        return 1;\n    }\n}\n");
    tree_put(&t, "JTest.java",
        "class JTest {\n"
        "    @Test\n"
        "    void once() {\n"
        "        assertEquals(1, J.once());\n"
        "    }\n\n"
        "    @Test\n"
        "    void other() {\n        assertTrue(true);\n    }\n}\n");
    tree_put(&t, "m.py", "def pack(x):\n    return x\n\n\ndef keep(x):\n    return x\n");
    tree_put(&t, "test_m.py",
        "import m\n\nROWS = [1, 2]\nOTHERS = [3]\n\n\ndef rows():\n    return ROWS\n\n\ndef test_pack():\n"
        "    for r in rows():\n"
        "        assert m.pack(r) == r\n\n\n"
        "def test_keep():\n"
        "    assert m.keep(OTHERS)\n");
    tree_put(&t, "README.md", "Call `pack(1)`.\n");
    tree_open(&t);
    char *said = refactor_with(&t, "{\"operation\":\"delete\",\"name\":\"twice\"}", TOOL_OK);
    assert_contains(said, "2 whole tests and 1 assertion");
    free(said);
    expect(&t, "src/lib.rs",
        "pub fn keep<'a>(s: &'a str) -> &'a str {\n    s\n}\n\n"
        "#[cfg(test)]\nmod tests {\n    use super::*;\n\n    #[test]\n    fn both() {\n"
        "        assert_eq!('\\'', keep(\"'\").chars().next().unwrap());\n    }\n}\n");
    expect(&t, "benches/b.rs",
        "#[bench]\nfn bench_keep(b: &mut Bencher) {\n    b.iter(|| { lib::keep(\"\"); })\n}\n");
    free(refactor_with(&t, "{\"operation\":\"delete\",\"name\":\"Twice\"}", TOOL_OK));
    expect(&t, "g/a_test.go",
        "package g\n\nimport (\n\t\"testing\"\n)\n\n"
        "func TestKeep(t *testing.T) {\n\tif got := Keep(); got != 1 {\n\t\tt.Error(got)\n\t}\n}\n");
    free(refactor_with(&t, "{\"operation\":\"delete\",\"name\":\"J.once\"}", TOOL_OK));
    expect(&t, "JTest.java",
        "class JTest {\n    @Test\n    void other() {\n        assertTrue(true);\n    }\n}\n");
    said = refactor_with(&t, "{\"operation\":\"delete\",\"name\":\"pack\"}", TOOL_OK);
    assert_contains(said, "Documents that still write it, left: README.md:1.");
    free(said);
    expect(&t, "test_m.py", "import m\n\nOTHERS = [3]\n\n\ndef test_keep():\n    assert m.keep(OTHERS)\n");
    tree_remove(&t);
}

/* What a call gives stands where the text that replaces it has the parameter's name; imports follow. */

static void test_refactor__delete_writes_what_callers_use_instead(void **state)
{
    tree t;
    tree_make(&t, true);
    tree_put(&t, "m.py",
        "def most(n, base, limit):\n"
        "    return n\n\n\n"
        "def more(n, base=10):\n"
        "    return most(n, base, -1)\n\n\n"
        "class Box:\n"
        "    def put(self, a):\n"
        "        self.store(a, 0)\n\n"
        "    def store(self, a, at):\n"
        "        return more(more(1, 2), base=a + 1)\n");
    tree_put(&t, "u.py", "from m import more\n\nprint(more(3), more(1 + 2, 4) * 2)\n");
    tree_put(&t, "v.py", "from m import Box\n\n\ndef fill(b: Box):\n    b.put(1)\n");
    tree_open(&t);
    char *said = refactor_with(
        &t, "{\"operation\":\"delete\",\"name\":\"more\",\"to\":\"most(n, base, -1)\"}", TOOL_OK);
    assert_contains(said, "deleted function more from m.py and its 4 calls: 2 files");
    free(said);
    expect(&t, "u.py", "from m import most\n\nprint(most(3, 10, -1), most(1 + 2, 4, -1) * 2)\n");
    char *m = tree_get(&t, "m.py");
    assert_contains(m, "        return most(most(1, 2, -1), a + 1, -1)\n");
    free(m);
    free(refactor_with(
        &t, "{\"operation\":\"delete\",\"name\":\"Box.put\",\"to\":\"self.store(a, 0)\"}", TOOL_OK));
    expect(&t, "v.py", "from m import Box\n\n\ndef fill(b: Box):\n    b.store(1, 0)\n");
    tree_put(&t, "w.py", "from m import most\n\nmost(*range(3))\n");
    tree_open(&t);
    refuses(&t, "{\"operation\":\"delete\",\"name\":\"most\",\"to\":\"n * limit\"}", TOOL_REFUSED, "w.py:3");
    tree_remove(&t);
}

static void test_refactor__signature_changes_every_call(void **state)
{
    tree t;
    tree_make(&t, true);
    tree_put(&t, "s.h", "int add(int a, int b);\n");
    tree_put(&t, "s.c",
        "#include \"s.h\"\n"
        "int add(int a, int b)\n"
        "{\n"
        "    return a;\n"
        "}\n"
        "int one(void)\n"
        "{\n"
        "    return add(1, add(2, 3));\n"
        "}\n");
    tree_put(&t, "k.py",
        "class K:\n"
        "    def put(self, a, b=2):\n"
        "        return a\n\n\n"
        "def use(k: K):\n"
        "    k.put(1)\n"
        "    k.put(1, b=3)\n"
        "    k.put(*k)\n");
    tree_open(&t);
    free(refactor_with(&t,
        "{\"operation\":\"signature\",\"name\":\"add\",\"parameter\":\"int flags\",\"value\":\"0\",\"at\":2}",
        TOOL_OK));
    expect(&t, "s.h", "int add(int a, int flags, int b);\n");
    expect(&t, "s.c",
        "#include \"s.h\"\n"
        "int add(int a, int flags, int b)\n"
        "{\n"
        "    return a;\n"
        "}\n"
        "int one(void)\n"
        "{\n"
        "    return add(1, 0, add(2, 0, 3));\n"
        "}\n");
    free(
        refactor_with(&t, "{\"operation\":\"signature\",\"name\":\"add\",\"parameter\":\"flags\"}", TOOL_OK));
    free(refactor_with(&t, "{\"operation\":\"signature\",\"name\":\"add\",\"parameter\":\"2,1\"}", TOOL_OK));
    expect(&t, "s.h", "int add(int b, int a);\n");
    refuses(&t, "{\"operation\":\"signature\",\"name\":\"add\",\"parameter\":\"a\"}", TOOL_REFUSED,
        "s.c:4 still uses a");
    refuses(&t, "{\"operation\":\"signature\",\"name\":\"add\",\"parameter\":\"int c\"}", TOOL_FAILED,
        "needs \"value\"");
    refuses(&t, "{\"operation\":\"signature\",\"name\":\"add\",\"parameter\":\"1,1\"}", TOOL_REFUSED,
        "is no order");
    free(refactor_with(&t,
        "{\"operation\":\"signature\",\"name\":\"one\",\"parameter\":\"int n\",\"value\":\"1\"}", TOOL_OK));
    char *c = tree_get(&t, "s.c");
    assert_contains(c, "int one(int n)\n{\n    return add(add(3, 2), 1);");
    free(c);
    char *said = refactor_with(&t,
        "{\"operation\":\"signature\",\"name\":\"K.put\",\"parameter\":\"c=None\",\"value\":\"9\"}", TOOL_OK);
    assert_contains(said, "Left, look at them: k.py:9");
    free(said);
    expect(&t, "k.py",
        "class K:\n"
        "    def put(self, a, b=2, c=None):\n"
        "        return a\n\n\n"
        "def use(k: K):\n"
        "    k.put(1, c=9)\n"
        "    k.put(1, b=3, c=9)\n"
        "    k.put(*k)\n");
    tree_remove(&t);
}

/* A model that is asked what callers give begins with the declaration again. */
static void test_refactor__a_value_may_declare_its_parameter_again(void **state)
{
    tree t;
    tree_make(&t, true);
    tree_put(&t, "m.py", "def pad(row):\n    return row\n\n\npad(1)\n");
    tree_put(&t, "s.c", "int one(void)\n{\n    return 1;\n}\n\nint two(void)\n{\n    return one();\n}\n");
    tree_open(&t);
    refuses(&t,
        "{\"operation\":\"signature\",\"name\":\"pad\",\"parameter\":\"fill: str\",\"value\":\"fill: str\"}",
        TOOL_FAILED, "is what the callers give for fill");
    free(refactor_with(&t,
        "{\"operation\":\"signature\",\"name\":\"pad\",\"parameter\":\"fill: str\",\"value\":\"str fill: str = ' '\"}",
        TOOL_OK));
    expect(&t, "m.py", "def pad(row, fill: str = ' '):\n    return row\n\n\npad(1)\n");
    free(refactor_with(&t,
        "{\"operation\":\"signature\",\"name\":\"one\",\"parameter\":\"int n\",\"value\":\"int n = 7\"}",
        TOOL_OK));
    expect(&t, "s.c", "int one(int n)\n{\n    return 1;\n}\n\nint two(void)\n{\n    return one(7);\n}\n");
    tree_remove(&t);
}

/* "old = new": who says old can say new; a comment behind it on its line goes with it. */
static void test_refactor__what_uses_an_alias_says_its_name(void **state)
{
    tree t;
    tree_make(&t, true);
    tree_put(&t, "m.py",
        "def parse(text):\n    return text\n\n\nread = parse  # legacy\n\n\ndef use():\n    return read(1)\n");
    tree_put(&t, "n.py", "import m\nfrom m import read\n\nall = [m.read, read]\nread(2)\n");
    tree_put(
        &t, "c.c", "int put(int n) { return n; }\n#define old_put put\nint f(void) { return old_put(1); }\n");
    tree_put(&t, "k.py", "def one():\n    return 1\n\n\ntwo = one()\n\nprint(two)\n");
    tree_open(&t);
    char *said = refactor_with(&t, "{\"operation\":\"delete\",\"name\":\"read\"}", TOOL_OK);
    assert_contains(said, "4 places say parse now");
    free(said);
    expect(&t, "m.py", "def parse(text):\n    return text\n\n\ndef use():\n    return parse(1)\n");
    expect(&t, "n.py", "import m\nfrom m import parse\n\nall = [m.parse, parse]\nparse(2)\n");
    free(refactor_with(&t, "{\"operation\":\"delete\",\"name\":\"old_put\"}", TOOL_OK));
    expect(&t, "c.c", "int put(int n) { return n; }\nint f(void) { return put(1); }\n");
    refuses(&t, "{\"operation\":\"delete\",\"name\":\"two\"}", TOOL_REFUSED, "k.py:7");
    tree_remove(&t);
}

/* What a call gives by name stays; what it gave by place and cannot any more is given by name, or the call is listed. */
static void test_refactor__an_order_keeps_what_each_parameter_gets(void **state)
{
    tree t;
    tree_make(&t, true);
    tree_put(&t, "k.py",
        "def run(task, verbose, limit=3, *rest):\n"
        "    return task\n\n\n"
        "run(1, True)\n"
        "run(1, run(2, False, 5), limit=4)\n"
        "run(1, True, 7, 8)\n"
        "run(task=1, verbose=True)\n"
        "run(*all)\n");
    tree_put(&t, "f.js",
        "function f(a, b, c) {\n  return a;\n}\n\n"
        "f(1);\nf(1, 2);\nf(1, 2, 3);\n");
    tree_put(&t, "g.py", "def g(a, b=1):\n    return a\n");
    tree_put(&t, "arrow.js",
        "const pick = (list, at) => list[at];\n"
        "const cut = async function(text, n) {\n  return text.slice(n);\n};\n"
        "const sum = (1 + 2) * pick([3], 0);\n"
        "cut('abc', sum);\n");
    tree_open(&t);
    free(refactor_with(&t, "{\"operation\":\"signature\",\"name\":\"pick\",\"parameter\":\"2,1\"}", TOOL_OK));
    free(refactor_with(&t, "{\"operation\":\"signature\",\"name\":\"cut\",\"parameter\":\"2,1\"}", TOOL_OK));
    refuses(&t, "{\"operation\":\"signature\",\"name\":\"sum\",\"parameter\":\"2,1\"}", TOOL_REFUSED,
        "no function");
    expect(&t, "arrow.js",
        "const pick = (at, list) => list[at];\n"
        "const cut = async function(n, text) {\n  return text.slice(n);\n};\n"
        "const sum = (1 + 2) * pick(0, [3]);\n"
        "cut(sum, 'abc');\n");
    char *said = refactor_with(&t,
        "{\"operation\":\"signature\",\"name\":\"run\",\"parameter\":\"verbose=False\",\"at\":3}", TOOL_OK);
    assert_contains(said, "Left, look at them: k.py:9");
    free(said);
    expect(&t, "k.py",
        "def run(task, limit=3, verbose=False, *rest):\n"
        "    return task\n\n\n"
        "run(1, verbose=True)\n"
        "run(1, verbose=run(2, 5, False), limit=4)\n"
        "run(1, 7, True, 8)\n"
        "run(task=1, verbose=True)\n"
        "run(*all)\n");
    said = refactor_with(&t, "{\"operation\":\"signature\",\"name\":\"f\",\"parameter\":\"2,1,3\"}", TOOL_OK);
    assert_contains(said, "Left, look at them: f.js:5");
    free(said);
    expect(&t, "f.js",
        "function f(b, a, c) {\n  return a;\n}\n\n"
        "f(1);\nf(2, 1);\nf(2, 1, 3);\n");
    refuses(&t, "{\"operation\":\"signature\",\"name\":\"g\",\"parameter\":\"2,1\"}", TOOL_REFUSED,
        "cannot stand behind one that has one");
    free(refactor_with(&t, "{\"operation\":\"signature\",\"name\":\"g\",\"parameter\":\"a=None\"}", TOOL_OK));
    expect(&t, "g.py", "def g(a=None, b=1):\n    return a\n");
    tree_remove(&t);
}

/* What all calls give for a parameter, where it is one literal, is what the body has without it. */
static void test_refactor__signature_puts_what_all_calls_give_into_the_body(void **state)
{
    tree t;
    tree_make(&t, true);
    tree_put(&t, "c.js",
        "function cut(s, by) {\n  return s.split(by).length + by.length\n}\n\n"
        "function far(a, limit) {\n  return a > limit\n}\n\n"
        "cut('a', '.')\ncut('b', '.')\nfar(1, 2)\nfar(1, 3)\n");
    tree_put(&t, "d.py",
        "def mean(a, round_to):\n    return round(a, round_to)\n\n\nmean(1, round_to=2)\nmean(3, 2)\n");
    tree_open(&t);
    free(refactor_with(&t, "{\"operation\":\"signature\",\"name\":\"cut\",\"parameter\":\"by\"}", TOOL_OK));
    expect(&t, "c.js",
        "function cut(s) {\n  return s.split('.').length + '.'.length\n}\n\n"
        "function far(a, limit) {\n  return a > limit\n}\n\n"
        "cut('a')\ncut('b')\nfar(1, 2)\nfar(1, 3)\n");
    refuses(&t, "{\"operation\":\"signature\",\"name\":\"far\",\"parameter\":\"limit\"}", TOOL_REFUSED,
        "c.js:6 still uses limit");
    free(refactor_with(
        &t, "{\"operation\":\"signature\",\"name\":\"mean\",\"parameter\":\"round_to\"}", TOOL_OK));
    expect(&t, "d.py", "def mean(a):\n    return round(a, 2)\n\n\nmean(1)\nmean(3)\n");
    tree_remove(&t);
}

/* A default of a literal is what the body has when its parameter goes; who gave another value is told. */

static void test_refactor__signature_puts_the_default_into_the_body(void **state)
{
    tree t;
    tree_make(&t, true);
    tree_put(&t, "a.py",
        "def clear(mode=2, fill=' '):\n"
        "    return 'x' + str(mode) + fill\n\n\n"
        "def up(n=1):\n"
        "    n += 1\n"
        "    return n\n\n\n"
        "clear()\nclear(2, '.')\nclear(mode=3)\n");
    tree_put(&t, "b.js",
        "export function far(a, limit = 3) {\n  return { limit, far: a > limit };\n}\n\nfar(1, 3);\n");
    tree_open(&t);
    char *said =
        refactor_with(&t, "{\"operation\":\"signature\",\"name\":\"clear\",\"parameter\":\"mode\"}", TOOL_OK);
    assert_contains(said, "removed mode from clear: 3 calls in 1 file");
    assert_contains(said, "Its body has 2 where it had mode: 1 place.");
    assert_contains(said, "What these calls gave is dropped: a.py:12");
    free(said);
    expect(&t, "a.py",
        "def clear(fill=' '):\n"
        "    return 'x' + str(2) + fill\n\n\n"
        "def up(n=1):\n"
        "    n += 1\n"
        "    return n\n\n\n"
        "clear()\nclear('.')\nclear()\n");
    refuses(&t, "{\"operation\":\"signature\",\"name\":\"up\",\"parameter\":\"n\"}", TOOL_REFUSED,
        "a.py:6 still uses n");
    refuses(&t, "{\"operation\":\"signature\",\"name\":\"up\",\"parameter\":\"n\",\"value\":\"1\"}",
        TOOL_REFUSED, "has a parameter n already");
    free(
        refactor_with(&t, "{\"operation\":\"signature\",\"name\":\"far\",\"parameter\":\"limit\"}", TOOL_OK));
    expect(&t, "b.js", "export function far(a) {\n  return { limit: 3, far: a > 3 };\n}\n\nfar(1);\n");
    tree_remove(&t);
}

/* A bare name gets the type of the literal that callers give; with a default callers stay, where there are defaults. */

static void test_refactor__signature_declares_as_the_language_does(void **state)
{
    tree t;
    tree_make(&t, true);
    tree_put(&t, "a.c", "int f(void)\n{\n    return 1;\n}\n\nint g(void)\n{\n    return f();\n}\n");
    tree_put(&t, "go.mod", "module m\n");
    tree_put(&t, "b.go", "package m\n\nfunc h(a, b int) int {\n\treturn h(a, b)\n}\n");
    tree_put(&t, "c.py", "def p(a, b=1, **rest):\n    return a\n\n\np(1, c=3)\np(1, 2)\n");
    tree_open(&t);
    free(refactor_with(&t,
        "{\"operation\":\"signature\",\"name\":\"f\",\"parameter\":\"name\",\"value\":\"\\\"x\\\"\"}",
        TOOL_OK));
    free(refactor_with(
        &t, "{\"operation\":\"signature\",\"name\":\"f\",\"parameter\":\"int flags = 0\"}", TOOL_OK));
    expect(&t, "a.c",
        "int f(const char *name, int flags)\n"
        "{\n"
        "    return 1;\n"
        "}\n\n"
        "int g(void)\n"
        "{\n"
        "    return f(\"x\", 0);\n"
        "}\n");
    refuses(&t, "{\"operation\":\"signature\",\"name\":\"f\",\"parameter\":\"more\",\"value\":\"rest\"}",
        TOOL_FAILED, "more has no type");
    free(refactor_with(&t,
        "{\"operation\":\"signature\",\"name\":\"h\",\"parameter\":\"deep\",\"value\":\"true\",\"at\":2}",
        TOOL_OK));
    expect(&t, "b.go", "package m\n\nfunc h(a int, deep bool, b int) int {\n\treturn h(a, true, b)\n}\n");
    /* Only its call of itself gave it on. */
    free(refactor_with(&t, "{\"operation\":\"signature\",\"name\":\"h\",\"parameter\":\"b\"}", TOOL_OK));
    expect(&t, "b.go", "package m\n\nfunc h(a int, deep bool) int {\n\treturn h(a, true)\n}\n");
    free(refactor_with(&t, "{\"operation\":\"signature\",\"name\":\"p\",\"parameter\":\"c=None\"}", TOOL_OK));
    expect(&t, "c.py", "def p(a, b=1, c=None, **rest):\n    return a\n\n\np(1, c=3)\np(1, 2)\n");
    free(refactor_with(
        &t, "{\"operation\":\"signature\",\"name\":\"p\",\"parameter\":\"d\",\"value\":\"4\"}", TOOL_OK));
    expect(&t, "c.py", "def p(a, d, b=1, c=None, **rest):\n    return a\n\n\np(1, 4, c=3)\np(1, 4, 2)\n");
    tree_remove(&t);
}

/* Go writes a type once for several names: in another order each has its own. */

static void test_refactor__signature_parts_go_s_groups(void **state)
{
    tree t;
    tree_make(&t, true);
    tree_put(&t, "go.mod", "module m\n");
    tree_put(&t, "l.go",
        "package m\n\n"
        "func logn(n, b float64) float64 {\n"
        "\treturn n / b\n"
        "}\n\n"
        "func use() float64 {\n"
        "\treturn logn(1, 2)\n"
        "}\n\n"
        "func three(a, b int, s string) {\n"
        "\tthree(1, 2, s)\n"
        "}\n");
    tree_open(&t);
    free(refactor_with(&t, "{\"operation\":\"signature\",\"name\":\"logn\",\"parameter\":\"2,1\"}", TOOL_OK));
    free(refactor_with(
        &t, "{\"operation\":\"signature\",\"name\":\"three\",\"parameter\":\"3,1,2\"}", TOOL_OK));
    expect(&t, "l.go",
        "package m\n\n"
        "func logn(b float64, n float64) float64 {\n"
        "\treturn n / b\n"
        "}\n\n"
        "func use() float64 {\n"
        "\treturn logn(2, 1)\n"
        "}\n\n"
        "func three(s string, a int, b int) {\n"
        "\tthree(s, 1, 2)\n"
        "}\n");
    tree_remove(&t);
}

static void test_refactor__move_takes_exports_along(void **state)
{
    tree t;
    tree_make(&t, true);
    tree_put(&t, "shop/__init__.py", "from .total import add_up, twice\n\n__all__ = ['add_up', 'twice']\n");
    tree_put(&t, "shop/total.py",
        "__all__ = ['add_up', 'twice']\n\n\n"
        "def add_up(prices):\n"
        "    return sum(prices)\n\n\n"
        "def twice(x):\n"
        "    return 2 * x\n");
    tree_put(&t, "shop/sums.py",
        "__all__ = [\n    \"zero\",\n    \"one\",\n]\n\n\ndef zero():\n    return 0\n\n\n"
        "def one():\n    return 1\n");
    /* A package that is called as the source is, and hands the name on. */
    tree_put(&t, "total/__init__.py", "from shop.total import add_up\n");
    tree_put(&t, "main.py", "from shop import add_up\n\nprint(add_up([1]))\n");
    tree_put(&t, "far.py", "from total import add_up\n\nprint(add_up([1]))\n");
    tree_open(&t);
    free(refactor_with(
        &t, "{\"operation\":\"move\",\"name\":\"shop/total.py:add_up\",\"to\":\"shop/sums.py\"}", TOOL_OK));
    expect(&t, "shop/total.py", "__all__ = ['twice']\n\n\ndef twice(x):\n    return 2 * x\n");
    expect(&t, "shop/sums.py",
        "__all__ = [\n"
        "    \"zero\",\n"
        "    \"one\",\n"
        "    \"add_up\",\n"
        "]\n\n\n"
        "def zero():\n"
        "    return 0\n\n\n"
        "def one():\n"
        "    return 1\n\n\n"
        "def add_up(prices):\n"
        "    return sum(prices)\n");
    expect(&t, "shop/__init__.py",
        "from .sums import add_up\nfrom .total import twice\n\n__all__ = ['add_up', 'twice']\n");
    expect(&t, "total/__init__.py", "from shop.sums import add_up\n");
    expect(&t, "main.py", "from shop import add_up\n\nprint(add_up([1]))\n");
    expect(&t, "far.py", "from total import add_up\n\nprint(add_up([1]))\n");
    tree_put(&t, "shop/all.py", "from .total import *\n\nprint(twice(1))\n");
    tree_open(&t);
    refuses(&t, "{\"operation\":\"move\",\"name\":\"twice\",\"to\":\"shop/sums.py\"}", TOOL_REFUSED,
        "shop/all.py takes twice with an import of *");
    /* Who takes all of the new module too has it still. */
    tree_put(&t, "shop/more.py", "def four():\n    return 4\n");
    tree_put(&t, "shop/all.py", "from .total import *\nfrom .more import *\n\nprint(twice(1))\n");
    tree_open(&t);
    free(refactor_with(&t, "{\"operation\":\"move\",\"name\":\"twice\",\"to\":\"shop/more.py\"}", TOOL_OK));
    tree_remove(&t);
}

/* A file is named as a person does: by the end of its path, and a new one without its folder. */

static void test_refactor__move_finds_the_file_that_is_meant(void **state)
{
    tree t;
    tree_make(&t, false);
    tree_put(&t, "src/shop/__init__.py", "");
    tree_put(&t, "src/shop/total.py",
        "import os\n"
        "from .sums import none\n\n\n"
        "def add_up(a):\n"
        "    return a + none()\n\n\n"
        "def twice(a):\n"
        "    return 2 * a\n");
    tree_put(&t, "src/shop/sums.py", "def none():\n    return 0\n");
    tree_open(&t);
    assert_int_equal(tool_workspace_refresh(t.w, NULL, NULL, NULL), 0);
    free(refactor_with(&t, "{\"operation\":\"move\",\"name\":\"add_up\",\"to\":\"sums.py\"}", TOOL_OK));
    free(refactor_with(&t, "{\"operation\":\"move\",\"name\":\"twice\",\"to\":\"more.py\"}", TOOL_OK));
    char *sums = tree_get(&t, "src/shop/sums.py"), *more = tree_get(&t, "src/shop/more.py");
    assert_contains(sums, "def add_up(a):");
    assert_true(!strstr(sums, "import")); /* of what it has itself */
    assert_contains(more, "def twice(a):");
    free(sums);
    free(more);
    tree_remove(&t);
}

static void test_refactor__move_takes_what_is_needed(void **state)
{
    tree t;
    tree_make(&t, true);
    tree_put(&t, "shop/__init__.py", "");
    tree_put(&t, "shop/total.py",
        "import math\n"
        "import os\n\n\n"
        "# Adds.\n"
        "def add_up(prices):\n"
        "    return math.fsum(prices)\n\n\n"
        "def twice(prices):\n"
        "    return 2 * add_up(prices)\n");
    tree_put(&t, "main.py", "from shop.total import add_up, twice\n\nprint(add_up([1]), twice([2]))\n");
    tree_put(&t, "late.py",
        "\"\"\"Says when.\"\"\"\n\n"
        "from __future__ import annotations\n\n\n"
        "def late(x):\n"
        "    return x\n\n\n"
        "def soon():\n"
        "    return late(1)\n");
    tree_put(&t, "go.mod", "module example.com/x\n");
    tree_put(&t, "f.go",
        "package x\n\n"
        "import (\n"
        "\t\"fmt\"\n"
        "\t\"strings\"\n"
        ")\n\n"
        "func Up(s string) string {\n"
        "\treturn strings.ToUpper(s)\n"
        "}\n\n"
        "func Say() {\n"
        "\tfmt.Println(Up(\"a\"))\n"
        "}\n");
    tree_put(&t, "m.c",
        "#include <stdio.h>\n\n"
        "static int own(void)\n"
        "{\n"
        "    return 1;\n"
        "}\n\n"
        "int free_one(int x)\n"
        "{\n"
        "    return x;\n"
        "}\n\n"
        "int bound(void)\n"
        "{\n"
        "    return own() + free_one(1);\n"
        "}\n\n"
        "int other(void)\n"
        "{\n"
        "    return own();\n"
        "}\n");
    tree_put(&t, "n.c", "#include <stdlib.h>\n\nint n;\n");
    tree_open(&t);
    free(refactor_with(&t, "{\"operation\":\"move\",\"name\":\"add_up\",\"to\":\"shop/sums.py\"}", TOOL_OK));
    expect(
        &t, "shop/sums.py", "import math\n\n\n# Adds.\ndef add_up(prices):\n    return math.fsum(prices)\n");
    expect(&t, "shop/total.py",
        "import os\n"
        "from .sums import add_up\n\n\n"
        "def twice(prices):\n"
        "    return 2 * add_up(prices)\n");
    expect(&t, "main.py",
        "from shop.sums import add_up\nfrom shop.total import twice\n\nprint(add_up([1]), twice([2]))\n");
    free(refactor_with(&t, "{\"operation\":\"move\",\"name\":\"late\",\"to\":\"later.py\"}", TOOL_OK));
    expect(&t, "late.py",
        "\"\"\"Says when.\"\"\"\n\n"
        "from __future__ import annotations\n"
        "from later import late\n\n\n"
        "def soon():\n"
        "    return late(1)\n");
    expect(&t, "later.py", "from __future__ import annotations\n\n\ndef late(x):\n    return x\n");
    free(refactor_with(&t, "{\"operation\":\"move\",\"name\":\"Up\",\"to\":\"up.go\"}", TOOL_OK));
    expect(&t, "up.go",
        "package x\n\nimport \"strings\"\n\nfunc Up(s string) string {\n\treturn strings.ToUpper(s)\n}\n");
    expect(&t, "f.go", "package x\n\nimport (\n\t\"fmt\"\n)\n\nfunc Say() {\n\tfmt.Println(Up(\"a\"))\n}\n");
    refuses(&t, "{\"operation\":\"move\",\"name\":\"bound\",\"to\":\"n.c\"}", TOOL_REFUSED, "uses own");
    refuses(&t, "{\"operation\":\"move\",\"name\":\"bound\",\"to\":\"x.py\"}", TOOL_REFUSED,
        "no file of that language");
    free(refactor_with(&t, "{\"operation\":\"move\",\"name\":\"free_one\",\"to\":\"n.c\"}", TOOL_OK));
    expect(&t, "n.c",
        "#include <stdlib.h>\n#include <stdio.h>\n\nint n;\n\nint free_one(int x)\n{\n    return x;\n}\n");
    expect(&t, "m.c",
        "#include <stdio.h>\n"
        "int free_one(int x);\n\n"
        "static int own(void)\n"
        "{\n"
        "    return 1;\n"
        "}\n\n"
        "int bound(void)\n"
        "{\n"
        "    return own() + free_one(1);\n"
        "}\n\n"
        "int other(void)\n"
        "{\n"
        "    return own();\n"
        "}\n");
    tree_remove(&t);
}

/* A file of tests that includes the source of C sees what is static there; a name alone on its line of a list takes the line along. */
static void test_refactor__what_is_included_and_lists_of_names(void **state)
{
    tree t;
    tree_make(&t, true);
    tree_put(&t, "src/low.c",
        "static int low(int a, char *b)\n{\n    return a + *b;\n}\n\nint use(void)\n{\n    return low(1, 0);\n}\n");
    tree_put(
        &t, "test/low_test.c", "#include \"../src/low.c\"\n\nvoid test(void)\n{\n    check(low(2, 0));\n}\n");
    tree_put(&t, "other.c",
        "static int low(int a)\n{\n    return a;\n}\n\nint f(void)\n{\n    return low(3);\n}\n");
    tree_put(&t, "a.py", "def old():\n    return 1\n\n\ndef kept():\n    return 2\n");
    tree_put(&t, "b.py", "from a import (\n    old,\n    kept,\n)\n\nprint(kept())\n");
    tree_open(&t);
    free(refactor_with(
        &t, "{\"operation\":\"signature\",\"name\":\"src/low.c:low\",\"parameter\":\"2,1\"}", TOOL_OK));
    expect(
        &t, "test/low_test.c", "#include \"../src/low.c\"\n\nvoid test(void)\n{\n    check(low(0, 2));\n}\n");
    free(refactor_with(&t, "{\"operation\":\"delete\",\"name\":\"old\"}", TOOL_OK));
    expect(&t, "b.py", "from a import (\n    kept,\n)\n\nprint(kept())\n");
    tree_remove(&t);
}

/* "keep": the old place imports back what went, also what nothing there uses, and never in a circle. */
static void test_refactor__move_keeps_the_old_place(void **state)
{
    tree t;
    tree_make(&t, true);
    tree_put(&t, "shop/__init__.py", "from .page import *\n");
    tree_put(&t, "shop/page.py",
        "\"\"\"Pages.\"\"\"\n\nimport re\n\n__all__ = ['strip', 'title']\nBLANK = ' '\n\n\n"
        "def strip(text):\n    return text.strip(BLANK)\n\n\ndef plain(text):\n    return re.sub('!', '', text)\n\n\n"
        "def loud(text):\n    return own(text)\n\n\ndef own(text):\n    return text\n\n\n"
        "def title(text):\n    return plain(text) + BLANK + own(text)\n");
    tree_put(&t, "shop/words.py", "def word():\n    return 1\n");
    tree_put(&t, "m.c", "int far(void)\n{\n    return 1;\n}\n");
    tree_put(&t, "n.c", "int n;\n");
    tree_open(&t);
    refuses(&t, "{\"operation\":\"move\",\"name\":\"loud\",\"to\":\"shop/words.py\",\"keep\":true}",
        TOOL_REFUSED, "the old place is to hand on what goes");
    char *said = refactor_with(&t,
        "{\"operation\":\"move\",\"name\":\"strip\",\"with\":\"plain\",\"to\":\"shop/words.py\",\"keep\":true}",
        TOOL_OK);
    assert_contains(said, "shop/page.py imports it back: importing it from there goes on working.");
    free(said);
    expect(&t, "shop/page.py",
        "\"\"\"Pages.\"\"\"\n\nfrom .words import plain, BLANK\nfrom .words import strip  # noqa: F401\n\n"
        "__all__ = ['strip', 'title']\n\n\n"
        "def loud(text):\n    return own(text)\n\n\ndef own(text):\n    return text\n\n\n"
        "def title(text):\n    return plain(text) + BLANK + own(text)\n");
    said =
        refactor_with(&t, "{\"operation\":\"move\",\"name\":\"far\",\"to\":\"n.c\",\"keep\":true}", TOOL_OK);
    assert_contains(said, "What declares it declares it as before.");
    free(said);
    tree_remove(&t);
}

/* What only the moved definition uses goes along by itself; what others use stays, and is imported where the language can. */
static void test_refactor__move_takes_along_what_nothing_else_uses(void **state)
{
    static const char page[] = "import re\n\n"
                               "MARK = r'[!#]'\n"
                               "WIDE = 3\n"
                               "_ESCAPE_RE = re.compile(MARK)\n\n\n"
                               "def unescape(text):\n"
                               "    return _ESCAPE_RE.sub('', text)\n\n\n"
                               "def title(text):\n"
                               "    return unescape(text) + MARK\n";
    tree t;
    tree_make(&t, true);
    tree_put(&t, "shop/__init__.py", "");
    tree_put(&t, "shop/page.py", page);
    tree_put(&t, "shop/part.py",
        "LEFT = 1\n_RIGHT = 2\n\n\ndef both():\n    return LEFT + _RIGHT\n\n\ndef left():\n    return LEFT\n");
    tree_put(&t, "shop/loud.py",
        "VOLUME = 1\n\n\ndef louder():\n    global VOLUME\n    VOLUME += volume()\n\n\n"
        "def volume():\n    return VOLUME\n");
    tree_put(&t, "shop/words.py", "import os\n\n\ndef word():\n    return os.sep\n");
    tree_put(&t, "main.py", "from shop.page import MARK, unescape\n\nprint(unescape(MARK))\n");
    tree_put(&t, "m.c",
        "#include <stdio.h>\n\n"
        "#define MOST 3\n"
        "#define LEAST 1\n\n"
        "static int own(void)\n{\n    return MOST;\n}\n\n"
        "int bound(void)\n{\n    return own();\n}\n\n"
        "int least(void)\n{\n    return LEAST;\n}\n\n"
        "int both(void)\n{\n    return LEAST;\n}\n");
    tree_put(&t, "n.c", "int n;\n");
    tree_open(&t);
    /* The modules would import each other: constants go that others use, and come back by an import. */
    char *said =
        refactor_with(&t, "{\"operation\":\"move\",\"name\":\"unescape\",\"to\":\"shop/words.py\"}", TOOL_OK);
    assert_contains(said, "moved unescape, ");
    free(said);
    expect(&t, "shop/words.py",
        "import os\n"
        "import re\n\n\n"
        "def word():\n"
        "    return os.sep\n\n\n"
        "MARK = r'[!#]'\n\n\n"
        "_ESCAPE_RE = re.compile(MARK)\n\n\n"
        "def unescape(text):\n"
        "    return _ESCAPE_RE.sub('', text)\n");
    expect(&t, "shop/page.py",
        "from .words import unescape, MARK\n\n"
        "WIDE = 3\n\n\n"
        "def title(text):\n"
        "    return unescape(text) + MARK\n");
    expect(&t, "main.py", "from shop.words import MARK, unescape\n\nprint(unescape(MARK))\n");
    /* What is used elsewhere stays. */
    free(refactor_with(&t,
        "{\"operation\":\"move\",\"name\":\"both\",\"path\":\"shop/part.py\",\"to\":\"shop/sum.py\"}",
        TOOL_OK));
    expect(&t, "shop/sum.py",
        "from .part import LEFT\n\n\n_RIGHT = 2\n\n\ndef both():\n    return LEFT + _RIGHT\n");
    refuses(&t, "{\"operation\":\"move\",\"name\":\"volume\",\"to\":\"shop/words.py\"}", TOOL_REFUSED,
        "the two modules would import each other");
    free(refactor_with(&t, "{\"operation\":\"move\",\"name\":\"bound\",\"to\":\"n.c\"}", TOOL_OK));
    expect(&t, "n.c",
        "#include <stdio.h>\nint n;\n\n"
        "#define MOST 3\n\n"
        "static int own(void)\n{\n    return MOST;\n}\n\n"
        "int bound(void)\n{\n    return own();\n}\n");
    refuses(&t, "{\"operation\":\"move\",\"name\":\"least\",\"to\":\"n.c\"}", TOOL_REFUSED, "uses LEAST");
    tree_remove(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_refactor__delete_lists_callers_or_replaces_them),
        cmocka_unit_test(test_refactor__delete_takes_its_tests),
        cmocka_unit_test(test_refactor__delete_takes_marked_tests),
        cmocka_unit_test(test_refactor__delete_writes_what_callers_use_instead),
        cmocka_unit_test(test_refactor__signature_changes_every_call),
        cmocka_unit_test(test_refactor__what_uses_an_alias_says_its_name),
        cmocka_unit_test(test_refactor__a_value_may_declare_its_parameter_again),
        cmocka_unit_test(test_refactor__an_order_keeps_what_each_parameter_gets),
        cmocka_unit_test(test_refactor__signature_puts_what_all_calls_give_into_the_body),
        cmocka_unit_test(test_refactor__signature_puts_the_default_into_the_body),
        cmocka_unit_test(test_refactor__signature_declares_as_the_language_does),
        cmocka_unit_test(test_refactor__signature_parts_go_s_groups),
        cmocka_unit_test(test_refactor__move_takes_exports_along),
        cmocka_unit_test(test_refactor__move_finds_the_file_that_is_meant),
        cmocka_unit_test(test_refactor__move_takes_what_is_needed),
        cmocka_unit_test(test_refactor__what_is_included_and_lists_of_names),
        cmocka_unit_test(test_refactor__move_keeps_the_old_place),
        cmocka_unit_test(test_refactor__move_takes_along_what_nothing_else_uses),
    };
    return refactor_run(tests, sizeof tests / sizeof *tests, "refactor");
}
