/*
 * Changed signatures: the declaration, every call, and the body behind them.
 */
#include "refactor.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>

static void test_refactor_signature__changes_every_call(void **state)
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
static void test_refactor_signature__a_value_may_declare_its_parameter_again(void **state)
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

/* What a call gives by name stays; what it gave by place and cannot any more is given by name, or the call is listed. */
static void test_refactor_signature__an_order_keeps_what_each_parameter_gets(void **state)
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
static void test_refactor_signature__puts_what_all_calls_give_into_the_body(void **state)
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

/* Rust's tests call what they test in a macro, of which the tree has brackets and single words. */
static void test_refactor_signature__calls_in_a_macro_follow(void **state)
{
    tree t;
    tree_make(&t, true);
    tree_put(&t, "src/lib.rs",
        "fn near(value: &str, name: &str, least: u8) -> bool {\n    value == name && least > 0\n}\n\n"
        "#[cfg(test)]\nmod tests {\n    use super::*;\n\n    #[test]\n    fn good() {\n"
        "        assert_eq!(near(\"a,b\", &join(\"c\", 'd'), 1), true);\n        assert!(near(\"a\", \"b\", 2));\n    }\n}\n");
    tree_open(&t);
    free(refactor_with(
        &t, "{\"operation\":\"signature\",\"name\":\"near\",\"parameter\":\"1,3,2\"}", TOOL_OK));
    expect(&t, "src/lib.rs",
        "fn near(value: &str, least: u8, name: &str) -> bool {\n    value == name && least > 0\n}\n\n"
        "#[cfg(test)]\nmod tests {\n    use super::*;\n\n    #[test]\n    fn good() {\n"
        "        assert_eq!(near(\"a,b\", 1, &join(\"c\", 'd')), true);\n        assert!(near(\"a\", 2, \"b\"));\n    }\n}\n");
    tree_remove(&t);
}

/* What is still used goes where the call says what stands there instead; the refusal shows what that is made from. */
static void test_refactor_signature__says_what_stands_instead(void **state)
{
    tree t;
    tree_make(&t, true);
    tree_put(&t, "c.js",
        "function cut(s, by, n) {\n  by = by || ','\n  return s.split(by) + n * 2\n}\n\ncut('a', '.', 3)\n"
        "cut('b', ';', 4)\n");
    tree_open(&t);
    refuses(&t, "{\"operation\":\"signature\",\"name\":\"cut\",\"parameter\":\"n\"}", TOOL_REFUSED,
        "This is the current text:\nfunction cut(s, by, n) {");
    refuses(&t, "{\"operation\":\"signature\",\"name\":\"cut\",\"parameter\":\"n\",\"to\":\"n + 1\"}",
        TOOL_REFUSED, "c.js:3 still uses n");
    refuses(&t, "{\"operation\":\"signature\",\"name\":\"cut\",\"parameter\":\"n\",\"to\":\"s.length)\"}",
        TOOL_REFUSED, "c.js:3 still uses n");
    refuses(&t, "{\"operation\":\"signature\",\"name\":\"cut\",\"parameter\":\"by\",\"to\":\"','\"}",
        TOOL_REFUSED, "Next: rewrite cut without it first");
    free(refactor_with(&t,
        "{\"operation\":\"signature\",\"name\":\"cut\",\"parameter\":\"n\",\"to\":\"s.length + 1\"}",
        TOOL_OK));
    expect(&t, "c.js",
        "function cut(s, by) {\n  by = by || ','\n  return s.split(by) + (s.length + 1) * 2\n}\n\ncut('a', '.')\n"
        "cut('b', ';')\n");
    tree_remove(&t);
}

/* A default of a literal is what the body has when its parameter goes; who gave another value is told. */
static void test_refactor_signature__puts_the_default_into_the_body(void **state)
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
static void test_refactor_signature__declares_as_the_language_does(void **state)
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
static void test_refactor_signature__parts_go_s_groups(void **state)
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

/* A file of tests that includes the source of C sees what is static there; another file's function of that name does not count. */
static void test_refactor_signature__changes_what_a_test_includes(void **state)
{
    tree t;
    tree_make(&t, true);
    tree_put(&t, "src/low.c",
        "static int low(int a, char *b)\n{\n    return a + *b;\n}\n\nint use(void)\n{\n    return low(1, 0);\n}\n");
    tree_put(
        &t, "test/low_test.c", "#include \"../src/low.c\"\n\nvoid test(void)\n{\n    check(low(2, 0));\n}\n");
    static const char other[] =
        "static int low(int a)\n{\n    return a;\n}\n\nint f(void)\n{\n    return low(3);\n}\n";
    tree_put(&t, "other.c", other);
    tree_open(&t);
    free(refactor_with(
        &t, "{\"operation\":\"signature\",\"name\":\"src/low.c:low\",\"parameter\":\"2,1\"}", TOOL_OK));
    expect(
        &t, "test/low_test.c", "#include \"../src/low.c\"\n\nvoid test(void)\n{\n    check(low(0, 2));\n}\n");
    expect(&t, "other.c", other);
    tree_remove(&t);
}

static void test_refactor_signature__changes_what_is_assigned_to_exports(void **state)
{
    static const operation_case done[] = {
        {"{\"operation\":\"signature\",\"name\":\"f\",\"parameter\":\"b\",\"value\":\"7\"}",
            "4 calls in 2 files",
            {{"a.js", "exports.f = function (a) { return a; };\nexports.g = () => exports.f(1);\n",
                 "exports.f = function (a, b) { return a; };\nexports.g = () => exports.f(1, 7);\n"},
                {"b.js",
                    "const a = require('./a');\nconst { f } = require('./a');\na.f(1), f(2), require('./a').f(3);\n",
                    "const a = require('./a');\nconst { f } = require('./a');\na.f(1, 7), f(2, 7), require('./a').f(3, 7);\n"}}},
        {"{\"operation\":\"signature\",\"name\":\"f\",\"parameter\":\"b\",\"value\":\"7\"}",
            "1 call in 2 files",
            {{"a.js", "module.exports.f = function f(a) { return a; };\n",
                 "module.exports.f = function f(a, b) { return a; };\n"},
                {"b.js", "const a = require('./a');\na.f(1);\n", "const a = require('./a');\na.f(1, 7);\n"}}},
    };
    static const operation_case refused[] = {
        {"{\"operation\":\"signature\",\"name\":\"f\",\"parameter\":\"b\",\"value\":\"7\"}",
            "no list of parameters in parentheses", {{"a.js", "const f = a => a;\nf(1);\n"}}},
    };
    DONE(done);
    REFUSED(refused);
}

/* A default is written as those beside it are, and a function that nothing calls needs no value. */
static void test_refactor_signature__writes_as_its_neighbours_do(void **state)
{
    tree t;
    tree_make(&t, true);
    tree_put(&t, "a.py", "def f(word: str) -> str:\n    return word\n\n\ndef g(word):\n    return f(word)\n");
    tree_put(&t, "b.js", "function h(a) {\n    return a;\n}\n");
    tree_put(&t, "c.c",
        "typedef char *reader(char *s, int n);\nstatic char *next(char *s, int n)\n{\n    return s + n;\n}\n\n"
        "int all(reader *r);\nint some(void)\n{\n    return all((reader *)next);\n}\n");
    tree_open(&t);
    free(refactor_with(
        &t, "{\"operation\":\"signature\",\"name\":\"f\",\"parameter\":\"by=\\\"_\\\"\"}", TOOL_OK));
    free(refactor_with(&t, "{\"operation\":\"signature\",\"name\":\"g\",\"parameter\":\"by = 1\"}", TOOL_OK));
    expect(&t, "a.py",
        "def f(word: str, by: str = \"_\") -> str:\n    return word\n\n\ndef g(word, by=1):\n    return f(word)\n");
    free(refactor_with(&t, "{\"operation\":\"signature\",\"name\":\"h\",\"parameter\":\"b='.'\"}", TOOL_OK));
    expect(&t, "b.js", "function h(a, b = '.') {\n    return a;\n}\n");
    free(refactor_with(&t,
        "{\"operation\":\"signature\",\"name\":\"next\",\"parameter\":\"int line\",\"value\":\"int line, char "
        "*s\"}",
        TOOL_OK));
    expect(&t, "c.c",
        "typedef char *reader(char *s, int n);\nstatic char *next(char *s, int n, int line)\n{\n    return s + "
        "n;\n}\n\nint all(reader *r);\nint some(void)\n{\n    return all((reader *)next);\n}\n");
    tree_remove(&t);
}

/* A parameter that the body only hands on goes together with the argument, where the function behind it has a default. */
static void test_refactor_signature__takes_what_is_only_handed_on(void **state)
{
    static const operation_case done[] = {
        {"{\"operation\":\"signature\",\"name\":\"show\",\"parameter\":\"style\"}",
            "Not handed on any more, the default holds: render (util.py:4), render (util.py:8).",
            {{"util.py",
                 "from out import render\n\n"
                 "def show(tree, style):\n"
                 "    render(tree, style=style)\n"
                 "    return render(\n"
                 "        tree,\n"
                 "        wide=True,\n"
                 "        style=style,\n"
                 "    )\n",
                 "from out import render\n\n"
                 "def show(tree):\n"
                 "    render(tree)\n"
                 "    return render(\n"
                 "        tree,\n"
                 "        wide=True,\n"
                 "    )\n"},
                {"out.py",
                    "STYLE = 'x'\n\ndef render(tree, wide=False, style: str = STYLE):\n    return tree\n",
                    NULL},
                {"use.py", "from util import show\nshow(1, 'a')\nshow(2, style=b)\n",
                    "from util import show\nshow(1)\nshow(2)\n"}}},
        {"{\"operation\":\"signature\",\"name\":\"Page.show\",\"parameter\":\"style\"}", NULL,
            {{"page.py",
                "class Page:\n"
                "    def show(self, pen, style):\n"
                "        self.draw(pen, style)\n"
                "        pen.stroke(style, x=style_of(1))\n\n"
                "    def draw(self, pen, style=None):\n"
                "        return pen\n\n"
                "class Pen:\n"
                "    def stroke(self, style=None, *, x=0):\n"
                "        return style\n",
                "class Page:\n"
                "    def show(self, pen):\n"
                "        self.draw(pen)\n"
                "        pen.stroke(x=style_of(1))\n\n"
                "    def draw(self, pen, style=None):\n"
                "        return pen\n\n"
                "class Pen:\n"
                "    def stroke(self, style=None, *, x=0):\n"
                "        return style\n"}}},
        {"{\"operation\":\"signature\",\"name\":\"f\",\"parameter\":\"by\"}", NULL,
            {{"a.js",
                "function g(a, by = at()) {\n  return a;\n}\nfunction f(a, by) {\n  return g(a, by);\n}\n",
                "function g(a, by = at()) {\n  return a;\n}\nfunction f(a) {\n  return g(a);\n}\n"}}},
        {"{\"operation\":\"signature\",\"name\":\"f\",\"parameter\":\"b\"}", NULL,
            {{"g.hpp", "int g(int a, int b = 1);\nint f(int a, int b);\n",
                 "int g(int a, int b = 1);\nint f(int a);\n"},
                {"g.cpp",
                    "#include \"g.hpp\"\nint g(int a, int b)\n{\n    return a + b;\n}\nint f(int a, int b)\n{\n    return g(a, b);\n}\n",
                    "#include \"g.hpp\"\nint g(int a, int b)\n{\n    return a + b;\n}\nint f(int a)\n{\n    return g(a);\n}\n"}}}};
    static const operation_case refused[] = {
        {"{\"operation\":\"signature\",\"name\":\"f\",\"parameter\":\"b\"}", "a.py:3 still uses b",
            {{"a.py", "def f(a, b):\n    g(a, b=b)\n    return b\n\ndef g(a, b=1):\n    return a\n", NULL}}},
        {"{\"operation\":\"signature\",\"name\":\"f\",\"parameter\":\"b\"}", "a.py:2 still uses b",
            {{"a.py", "def f(a, b):\n    g(a, b=b)\n\ndef g(a, b):\n    return a\n", NULL}}},
        {"{\"operation\":\"signature\",\"name\":\"f\",\"parameter\":\"b\"}", "a.py:2 still uses b",
            {{"a.py", "def f(a, b):\n    g(b, a)\n\ndef g(b=1, a=2):\n    return a\n", NULL}}},
        {"{\"operation\":\"signature\",\"name\":\"f\",\"parameter\":\"b\"}", "a.py:2 still uses b",
            {{"a.py", "def f(a, b):\n    g(a, b=b, **a)\n\ndef g(a, b=1, **c):\n    return a\n", NULL}}},
        {"{\"operation\":\"signature\",\"name\":\"f\",\"parameter\":\"b\"}", "a.py:2 still uses b",
            {{"a.py", "def f(a, b):\n    print(a, b=b)\n", NULL}}},
        {"{\"operation\":\"signature\",\"name\":\"f\",\"parameter\":\"b\"}", "a.py:2 still uses b",
            {{"a.py",
                "def f(a, b):\n    a.g(b=b)\n\nclass A:\n    def g(self, b=1):\n        pass\n\n"
                "class B:\n    def g(self, b=1):\n        pass\n",
                NULL}}},
        {"{\"operation\":\"signature\",\"name\":\"A.f\",\"parameter\":\"b\"}", "a.py:3 still uses b",
            {{"a.py",
                "class A:\n    def f(self, b):\n        self.g(b)\n\n    def g(self, b=1):\n        pass\n\n"
                "class B(A):\n    def g(self, b):\n        pass\n",
                NULL}}}};
    DONE(done);
    REFUSED(refused);
}

#define DROP_B "{\"operation\":\"signature\",\"name\":\"f\",\"parameter\":\"b\"}"
#define B_TO_C "{\"operation\":\"rename\",\"name\":\"f.b\",\"to\":\"c\"}"

/* What the documents of a function list of a parameter goes with it, and nothing else does. */
static void test_refactor_signature__takes_the_parameter_out_of_the_documents(void **state)
{
    static const operation_case done[] = {
        {DROP_B, NULL,
            {{"a.py",
                "def f(a, b=1):\n    \"\"\"Do a and b.\n\n    :param a: one\n    :param int b: two,\n        and more\n    :type b: int\n    :return: b\n    \"\"\"\n    return a\n",
                "def f(a):\n    \"\"\"Do a and b.\n\n    :param a: one\n    :return: b\n    \"\"\"\n    return a\n"}}},
        {DROP_B, NULL,
            {{"a.py",
                "def f(a, b=1):\n    \"\"\"Do.\n\n    Args:\n        a: one\n        b (int): two\n            and more\n\n    Returns:\n        b: as it was\n    \"\"\"\n    return a\n",
                "def f(a):\n    \"\"\"Do.\n\n    Args:\n        a: one\n\n    Returns:\n        b: as it was\n    \"\"\"\n    return a\n"}}},
        {DROP_B, NULL,
            {{"a.py",
                "def f(b=1):\n    \"\"\"Do.\n\n    Args:\n        b: two\n    \"\"\"\n    return 1\n\ndef g():\n    \"\"\"Not.\n\n    :param b: no\n    \"\"\"\n",
                "def f():\n    \"\"\"Do.\n    \"\"\"\n    return 1\n\ndef g():\n    \"\"\"Not.\n\n    :param b: no\n    \"\"\"\n"}}},
        {DROP_B, NULL,
            {{"a.py",
                "def f(b=1):\n    \"\"\"Do.\n\n    Parameters\n    ----------\n    b : int\n        two\n\n    Returns\n    -------\n    b : int\n    \"\"\"\n    return 1\n",
                "def f():\n    \"\"\"Do.\n\n    Returns\n    -------\n    b : int\n    \"\"\"\n    return 1\n"}}},
        {DROP_B, NULL,
            {{"a.py",
                "def f(a, b=1):\n    \"\"\"Do.\n    :param a: one\n    :param b: two\"\"\"\n    return a\n",
                "def f(a):\n    \"\"\"Do.\n    :param a: one\"\"\"\n    return a\n"}}},
        {DROP_B, NULL,
            {{"a.js",
                "/**\n * Does.\n * @param {string} a one\n * @param {number} [b=1] two,\n * and more\n * @param {string} b.c part\n * @returns {b}\n */\nexport function f(a, b = 1) {\n  return a;\n}\n",
                "/**\n * Does.\n * @param {string} a one\n * @returns {b}\n */\nexport function f(a) {\n  return a;\n}\n"}}},
        {DROP_B, NULL,
            {{"a.c",
                "/**\n * Does.\n *\n * @param[in] b two\n */\nint f(int b);\n\n/* Does.\n   \\param b two */\nint f(int b)\n{\n    return 1;\n}\n",
                "/**\n * Does.\n */\nint f(void);\n\n/* Does. */\nint f(void)\n{\n    return 1;\n}\n"}}},
        {DROP_B, NULL,
            {{"a.c", "int a;\n/** @param b two */\nint f(int b)\n{\n    return 1;\n}\n",
                "int a;\nint f(void)\n{\n    return 1;\n}\n"}}},
        {DROP_B, NULL,
            {{"a.c", "/** @param b two\n *  @param c three */\nint f(int b, int c)\n{\n    return c;\n}\n",
                "/** @param c three */\nint f(int c)\n{\n    return c;\n}\n"}}},
        {DROP_B, NULL,
            {{"A.java",
                "class A {\n    /**\n     * Does.\r\n     * @param b two\r\n     */\n    @Deprecated\n    static int f(int b) {\n        return 1;\n    }\n}\n",
                "class A {\n    /**\n     * Does.\r\n     */\n    @Deprecated\n    static int f() {\n        return 1;\n    }\n}\n"}}},
        {DROP_B, NULL,
            {{"a.c", "//\n// @param b two */\nint f(int b)\n{\n    return 1;\n}\n",
                "int f(void)\n{\n    return 1;\n}\n"}}},
        {B_TO_C, NULL,
            {{"a.py",
                "def f(a, b=1):\n    \"\"\"Do.\n\n    :param b: two,\n        and b\n    :type b: int\n    \"\"\"\n    return b\n",
                "def f(a, c=1):\n    \"\"\"Do.\n\n    :param c: two,\n        and b\n    :type c: int\n    \"\"\"\n    return c\n"}}},
        {B_TO_C, NULL,
            {{"a.js", "/**\n * @param {number} [b=1] two\n */\nfunction f(a, b = 1) {\n  return b;\n}\n",
                "/**\n * @param {number} [c=1] two\n */\nfunction f(a, c = 1) {\n  return c;\n}\n"}}}};
    DONE(done);
}

/* TypeScript's "b?: T" may be left out: callers stay as they are. */
static void test_refactor_signature__what_may_be_left_out_needs_no_value(void **state)
{
    static const operation_case done[] = {
        {"{\"operation\":\"signature\",\"name\":\"two\",\"parameter\":\"c?: number\"}", NULL,
            {{"s.ts", "export function two (a: number, b?: string): number {\n  return a\n}\ntwo(1)\n",
                "export function two (a: number, b?: string, c?: number): number {\n  return a\n}\ntwo(1)\n"}}},
    };
    static const operation_case refused[] = {
        {"{\"operation\":\"signature\",\"name\":\"two\",\"parameter\":\"c: number\"}", "needs \"value\"",
            {{"s.ts", "export function two (a: number): number {\n  return a\n}\ntwo(1)\n", NULL}}},
    };
    DONE(done);
    run_cases(refused, 1, TOOL_FAILED);
}

/* A method of the literal that a module gives is called as a.f, and by its name; it goes with its comma. */
static void test_refactor_signature__what_a_literal_gives_is_followed(void **state)
{
#define GIVES "module.exports = {\n  f(a, b) {\n    return a + b\n  },\n  g: (x) => 1\n}\n"
#define USES                                                                                                 \
    "const a = require('./a')\nconst { f } = require('./a')\nconst h = (f) => f(5, 6)\nconsole.log(a.f(1, 2), f(3, 4))\n"
    static const operation_case done[] = {
        {"{\"operation\":\"signature\",\"name\":\"f\",\"parameter\":\"c\",\"value\":\"7\"}", "2 calls",
            {{"a.js", GIVES,
                 "module.exports = {\n  f(a, b, c) {\n    return a + b\n  },\n  g: (x) => 1\n}\n"},
                {"b.js", USES,
                    "const a = require('./a')\nconst { f } = require('./a')\nconst h = (f) => f(5, 6)\nconsole.log(a.f(1, 2, 7), f(3, 4, 7))\n"}}},
        {"{\"operation\":\"rename\",\"name\":\"f\",\"to\":\"sum\"}", NULL,
            {{"a.js", GIVES, "module.exports = {\n  sum(a, b) {\n    return a + b\n  },\n  g: (x) => 1\n}\n"},
                {"b.js", USES,
                    "const a = require('./a')\nconst { sum } = require('./a')\nconst h = (f) => f(5, 6)\nconsole.log(a.sum(1, 2), sum(3, 4))\n"}}},
        {"{\"operation\":\"delete\",\"name\":\"f\"}", NULL,
            {{"a.js", GIVES, "module.exports = {\n  g: (x) => 1\n}\n"}}},
    };
    static const operation_case refused[] = {
        {"{\"operation\":\"delete\",\"name\":\"f\"}", "is used in 2 places",
            {{"a.js", GIVES, NULL}, {"b.js", USES, NULL}}},
        /* the literal is not what the module gives, as far as it can be seen */
        {"{\"operation\":\"delete\",\"name\":\"f\"}", "b.js:2",
            {{"a.js", "module.exports = make({ f(a, b) { return a } })\n", NULL},
                {"b.js", "const a = require('./a')\na.f(1, 2)\n", NULL}}},
    };
    DONE(done);
    REFUSED(refused);
}

/* What a module gives under a name is not the function of that name that stands beside it. */
static void test_refactor_signature__what_is_given_is_another_function(void **state)
{
#define TWO_OF_F "function f(a) { return a }\nexports.f = (a, b) => a + b\nexports.h = f\n"
    static const operation_case refused[] = {
        {"{\"operation\":\"signature\",\"name\":\"f\",\"parameter\":\"c=1\"}",
            "the same call with \"name\": \"a.js:1\"", {{"a.js", TWO_OF_F, NULL}}},
    };
    static const operation_case done[] = {
        {"{\"operation\":\"signature\",\"name\":\"a.js:1\",\"parameter\":\"c=1\"}", NULL,
            {{"a.js", TWO_OF_F,
                "function f(a, c = 1) { return a }\nexports.f = (a, b) => a + b\nexports.h = f\n"}}},
    };
    run_cases(refused, 1, TOOL_FAILED);
    DONE(done);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_refactor_signature__what_may_be_left_out_needs_no_value),
        cmocka_unit_test(test_refactor_signature__what_is_given_is_another_function),
        cmocka_unit_test(test_refactor_signature__what_a_literal_gives_is_followed),
        cmocka_unit_test(test_refactor_signature__writes_as_its_neighbours_do),
        cmocka_unit_test(test_refactor_signature__changes_every_call),
        cmocka_unit_test(test_refactor_signature__a_value_may_declare_its_parameter_again),
        cmocka_unit_test(test_refactor_signature__an_order_keeps_what_each_parameter_gets),
        cmocka_unit_test(test_refactor_signature__puts_what_all_calls_give_into_the_body),
        cmocka_unit_test(test_refactor_signature__says_what_stands_instead),
        cmocka_unit_test(test_refactor_signature__calls_in_a_macro_follow),
        cmocka_unit_test(test_refactor_signature__puts_the_default_into_the_body),
        cmocka_unit_test(test_refactor_signature__declares_as_the_language_does),
        cmocka_unit_test(test_refactor_signature__parts_go_s_groups),
        cmocka_unit_test(test_refactor_signature__changes_what_a_test_includes),
        cmocka_unit_test(test_refactor_signature__changes_what_is_assigned_to_exports),
        cmocka_unit_test(test_refactor_signature__takes_what_is_only_handed_on),
        cmocka_unit_test(test_refactor_signature__takes_the_parameter_out_of_the_documents),
    };
    return refactor_run(tests, sizeof tests / sizeof *tests, "refactor_signature");
}
