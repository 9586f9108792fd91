/*
 * Deletions: what happens to callers, to the tests of what goes, and to what imports it.
 */
#include "refactor.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>

static void test_refactor_delete__lists_callers_or_replaces_them(void **state)
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
static void test_refactor_delete__takes_its_tests(void **state)
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
static void test_refactor_delete__takes_marked_tests(void **state)
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
static void test_refactor_delete__writes_what_callers_use_instead(void **state)
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

/* "old = new": who says old can say new; a comment behind it on its line goes with it. */
static void test_refactor_delete__an_alias_leaves_the_name_it_stood_for(void **state)
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

/* A name alone on its line of a list takes the line along. */
static void test_refactor_delete__takes_its_line_of_a_list(void **state)
{
    tree t;
    tree_make(&t, true);
    tree_put(&t, "a.py", "def old():\n    return 1\n\n\ndef kept():\n    return 2\n");
    tree_put(&t, "b.py", "from a import (\n    old,\n    kept,\n)\n\nprint(kept())\n");
    tree_open(&t);
    free(refactor_with(&t, "{\"operation\":\"delete\",\"name\":\"old\"}", TOOL_OK));
    expect(&t, "b.py", "from a import (\n    kept,\n)\n\nprint(kept())\n");
    tree_remove(&t);
}

/* What stands instead is one value, its export goes, and so does a comment whose lines have no star. */
static void test_refactor_delete__puts_one_value_instead(void **state)
{
    tree t;
    tree_make(&t, true);
    tree_put(&t, "a.h", "int one(int n);\n\n/* Counts on,\n   and no further. */\nint next(int n);\n");
    tree_put(&t, "a.c",
        "#include \"a.h\"\n\nint one(int n)\n{\n    return n;\n}\n\nint next(int n)\n{\n    return n + 1;\n}\n\n"
        "int two(int side)\n{\n    int x = next(side);\n    return 2 * next(side) + one(next(x));\n}\n");
    tree_put(&t, "u.js",
        "var isBuffer = function isBuffer(obj) {\n    return obj ? isBuffer(null) : false;\n};\n\n"
        "module.exports = {\n    a: 1,\n    isBuffer: isBuffer,\n    z: 2\n};\n");
    tree_put(&t, "m.js", "var u = require('./u');\nconsole.log(u.isBuffer(3), u.a);\n");
    tree_open(&t);
    free(refactor_with(&t, "{\"operation\":\"delete\",\"name\":\"next\",\"to\":\"n + 1\"}", TOOL_OK));
    expect(&t, "a.h", "int one(int n);\n");
    expect(&t, "a.c",
        "#include \"a.h\"\n\nint one(int n)\n{\n    return n;\n}\n\n"
        "int two(int side)\n{\n    int x = side + 1;\n    return 2 * (side + 1) + one(x + 1);\n}\n");
    free(refactor_with(
        &t, "{\"operation\":\"delete\",\"name\":\"isBuffer\",\"to\":\"Buffer.isBuffer(obj)\"}", TOOL_OK));
    expect(&t, "u.js", "module.exports = {\n    a: 1,\n    z: 2\n};\n");
    expect(&t, "m.js", "var u = require('./u');\nconsole.log(Buffer.isBuffer(3), u.a);\n");
    tree_remove(&t);
}

/* A function in a function goes too, and `(&a)->b` is written a.b. */
static void test_refactor_delete__takes_inner_functions_and_members(void **state)
{
    static const operation_case cases[] = {
        {"{\"operation\":\"delete\",\"name\":\"isU\",\"to\":\"num === undefined\"}", "2 calls",
            {{"s.ts",
                "export function parse (a: number): string {\n  function isU (num: any): num is undefined {\n"
                "    return num === undefined\n  }\n  if (isU(a) || !isU(parse)) return 'y'\n  return 'x'\n}\n",
                "export function parse (a: number): string {\n"
                "  if ((a === undefined) || !(parse === undefined)) return 'y'\n  return 'x'\n}\n"}}},
        {"{\"operation\":\"delete\",\"name\":\"value_of\",\"to\":\"b->value\"}", "3 calls",
            {{"a.c",
                "struct buf { int value; };\nint value_of(struct buf *b) { return b->value; }\n"
                "int f(struct buf *x, struct buf y) { return value_of(x) + value_of(&y) + value_of(x + 1); }\n",
                "struct buf { int value; };\n"
                "int f(struct buf *x, struct buf y) { return x->value + y.value + (x + 1)->value; }\n"}}},
    };
    DONE(cases);
}

/* A value gives way to another one of its file, wherever it stands; what the file does not define is no such value. */
static void test_refactor_delete__puts_another_value_everywhere(void **state)
{
    static const operation_case done[] = {
        {"{\"operation\":\"delete\",\"name\":\"WORDS\",\"to\":\"TEXT\"}", "2 places say TEXT now",
            {{"a.ts",
                 "export const WORDS = 'a'\nexport const TEXT = 'a'\nexport const f = () => WORDS + TEXT\n",
                 "export const TEXT = 'a'\nexport const f = () => TEXT + TEXT\n"},
                {"b.ts", "import { WORDS } from './a'\nconsole.log(WORDS)\n",
                    "import { TEXT } from './a'\nconsole.log(TEXT)\n"}}},
        {"{\"operation\":\"delete\",\"name\":\"OLD\",\"to\":\"MOST\"}", NULL,
            {{"a.h", "#define OLD 10\n#define MOST 10\nint f(int x);\n", "#define MOST 10\nint f(int x);\n"},
                {"a.c", "#include \"a.h\"\nint f(int x) { return x > OLD ? OLD : x; }\n",
                    "#include \"a.h\"\nint f(int x) { return x > MOST ? MOST : x; }\n"}}},
    };
    static const operation_case refused[] = {
        {"{\"operation\":\"delete\",\"name\":\"OLD\",\"to\":\"MOST\"}", "is used in 1 place",
            {{"a.py", "OLD = 1\nprint(OLD)\n", NULL}, {"b.py", "MOST = 1\n", NULL}}},
    };
    DONE(done);
    REFUSED(refused);
}

/* A whole file goes, and who names it or imports from it is said; undo brings it back. A definition of its name is meant before it. */
static void test_refactor_delete__takes_a_file(void **state)
{
    tree t;
    tree_make(&t, true);
    tree_put(&t, ".ci.yml", "script: true\n");
    tree_put(&t, "old.py", "def f():\n    return 1\n");
    tree_put(&t, "use.py", "import os\nfrom old import f\n");
    tree_put(&t, "fold.py", "hold = 1  # old.pyc, bold.py\n");
    tree_put(&t, "MANIFEST.in", "include a.txt\ninclude .ci.yml old.py\n");
    tree_put(&t, "picture.dat", "");
    tree_put_bytes(&t, "picture.dat", "a\0b", 3);
    tree_open(&t);
    char *said = refactor_with(&t, "{\"operation\":\"delete\",\"name\":\".ci.yml\"}", TOOL_OK);
    assert_string_equal(said, "deleted the file .ci.yml.\n1 file still names it: MANIFEST.in:2\n");
    free(said);
    assert_false(tree_has(&t, ".ci.yml"));
    said = refactor_with(&t, "{\"operation\":\"delete\",\"name\":\"old.py\"}", TOOL_OK);
    assert_contains(said, "2 files still name it: MANIFEST.in:2, use.py:2\n");
    free(said);
    char *undone = NULL;
    assert_int_equal(tool_undo_apply(t.w, &undone, NULL), 0);
    free(undone);
    expect(&t, "old.py", "def f():\n    return 1\n");
    refuses(&t, "{\"operation\":\"delete\",\"name\":\"picture.dat\"}", TOOL_REFUSED, "is no text");
    assert_true(tree_has(&t, "picture.dat"));
    tree_remove(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_refactor_delete__puts_one_value_instead),
        cmocka_unit_test(test_refactor_delete__lists_callers_or_replaces_them),
        cmocka_unit_test(test_refactor_delete__takes_its_tests),
        cmocka_unit_test(test_refactor_delete__takes_marked_tests),
        cmocka_unit_test(test_refactor_delete__writes_what_callers_use_instead),
        cmocka_unit_test(test_refactor_delete__an_alias_leaves_the_name_it_stood_for),
        cmocka_unit_test(test_refactor_delete__takes_its_line_of_a_list),
        cmocka_unit_test(test_refactor_delete__takes_a_file),
        cmocka_unit_test(test_refactor_delete__puts_another_value_everywhere),
        cmocka_unit_test(test_refactor_delete__takes_inner_functions_and_members),
    };
    return refactor_run(tests, sizeof tests / sizeof *tests, "refactor_delete");
}
