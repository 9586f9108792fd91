/* What a rewrite leaves as it was: the head, where the parameters are the same, and lines whose names nothing binds. */
#include "tree.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct rewriting {
    const char *path, *name, *block, *request;
    tool_status status;
    const char *says, *has; /* in the result; in the file behind it */
} rewriting;

/* The call, of a file that was shown. */
static void check(tree *t, const rewriting *c)
{
    char arguments[100];
    assert_int_equal(tool_workspace_refresh(t->w, NULL, NULL, NULL), 0);
    tool_workspace_mark_shown(t->w, c->path, tree_version(t, c->path));
    snprintf(arguments, sizeof arguments, "{\"path\": \"%s\", \"name\": \"%s\"}", c->path, c->name);
    t->request = c->request;
    tool_result r = tree_call(t, "rewrite", arguments, c->block);
    char *text = tree_get(t, c->path);
    if (r.status != c->status || !strstr(text, c->has))
        print_message("%s\n%s%s\n", c->block, r.text.data, text);
    assert_int_equal(r.status, c->status);
    assert_contains(r.text.data, c->says);
    assert_contains(text, c->has);
    free(text);
    tool_result_free(&r);
}

/* With its annotations; not where another parameter or default is given, or the request speaks of types. */
static void test_rewrite__keeps_the_head(void **state)
{
    static const rewriting calls[] = {
        {"a.py", "f", "def f(self, a, b=\":\", *c):\n    return 2\n", "f should give 2, no TypeError",
            TOOL_OK, "rewrote f",
            "def f(\n    self,\n    a: dict[str, int],\n    b: str = \":\",\n    *c: int,\n) -> int:\n    return 2\n"},
        {"a.py", "f", "def f(self, a, b=\"\", *c):\n    return 2\n", "f should give 2", TOOL_OK, "rewrote f",
            "def f(self, a, b=\"\", *c):\n    return 2\n"},
        {"a.py", "f", "def f(self, a, b=\":\"):\n    return 2\n", "f should give 2", TOOL_OK, "rewrote f",
            "def f(self, a, b=\":\"):\n    return 2\n"},
        {"a.py", "f", "def f(self, a, b=\":\", *c):\n    return 2\n", "drop the type hints of f", TOOL_OK,
            "rewrote f", "def f(self, a, b=\":\", *c):\n    return 2\n"},
        {"a.c", "f", "int f(int a, char *b)\n{\n    return 2;\n}\n", "f should give 2", TOOL_OK, "rewrote f",
            "int f(int a,\n      char *b)\n{\n    return 2;"},
        {"a.c", "f", "int f(int a, char **b)\n{\n    return 2;\n}\n", "f should give 2", TOOL_OK, "rewrote f",
            "int f(int a, char **b)\n{\n    return 2;"},
        {"a.js", "f", "export function f({a, b}, c = 'x  y') {\n  return 2;\n}\n", "f should give 2", TOOL_OK,
            "rewrote f", "export function f(\n  { a, b },\n  c = 'x  y',\n) {\n  return 2;"},
        {"a.js", "f", "export function f({a, b}, c = 'x y') {\n  return 2;\n}\n", "f should give 2", TOOL_OK,
            "rewrote f", "export function f({a, b}, c = 'x y') {\n  return 2;"},
    };
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        tree t;
        tree_make(&t, false);
        tree_put(&t, "a.py",
            "def f(\n    self,\n    a: dict[str, int],\n    b: str = \":\",\n    *c: int,\n) -> int:\n    return 1\n");
        tree_put(&t, "a.c", "int f(int a,\n      char *b)\n{\n    return 1;\n}\n");
        tree_put(&t, "a.js", "export function f(\n  { a, b },\n  c = 'x  y',\n) {\n  return 1;\n}\n");
        tree_open(&t);
        check(&t, &calls[i]);
        tree_remove(&t);
    }
}

/* Calls that give values by place mean what they meant; the request's own order stays. */
static void test_rewrite__keeps_old_parameters_in_their_places(void **state)
{
    static const rewriting calls[] = {
        {"a.py", "C.f", "    def f(self, start: int = 1, name=\"x\"):\n        return start\n",
            "f should take a start", TOOL_OK, "start stands behind the parameters that calls give by place.",
            "def f(self, name=\"x\", start: int = 1):\n"},
        {"a.py", "C.f", "    def f(self, start: int = 1, name=\"x\"):\n        return start\n",
            "f should take a start in front of name", TOOL_OK, "rewrote",
            "def f(self, start: int = 1, name=\"x\"):\n"},
        {"a.py", "C.f", "    def f(self, name=\"x\", start=1):\n        return start\n",
            "f should take a start", TOOL_OK, "now lines 2-3.\n", "def f(self, name=\"x\", start=1):\n"},
        {"a.py", "C.f", "    def f(self, start=1, title=\"x\"):\n        return start\n",
            "f should take a title", TOOL_OK, "rewrote", "def f(self, start=1, title=\"x\"):\n"},
        {"a.py", "g", "def g(a, deep=True, *rest, key, **more):\n    return deep\n", "g should be deep",
            TOOL_OK, "deep stands behind", "def g(a, *rest, key, deep=True, **more):\n"},
        {"a.py", "g", "def g(a, deep=True, *rest, key, **more):\n    return g(a, deep)\n", "g should be deep",
            TOOL_OK, "rewrote", "def g(a, deep=True, *rest, key, **more):\n"},
        {"a.js", "f", "function f(deep = true, a, ...rest) {\n  return deep;\n}\n", "f should be deep",
            TOOL_OK, "deep stands behind", "function f(a, deep = true, ...rest) {\n"},
    };
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        tree t;
        tree_make(&t, false);
        tree_put(&t, "a.py",
            "class C:\n    def f(self, name=\"x\"):\n        return name\n\n\ndef g(a, *rest, key, **more):\n    return a\n");
        tree_put(&t, "a.js", "function f(a, ...rest) {\n  return a;\n}\n");
        tree_open(&t);
        check(&t, &calls[i]);
        tree_remove(&t);
    }
}

/* Where something is left of the change; and not where the request says the name. */
static void test_rewrite__takes_back_names_that_nothing_binds(void **state)
{
    static const rewriting calls[] = {
        {"a.py", "f", "def f(a):\n    return g(a, limit=limit)\n", "f should be bounded", TOOL_FAILED,
            "uses limit, which nothing in a.py defines or imports. Nothing was changed.",
            "def f(a):\n    b = a\n    return g(a)\n"},
        {"a.py", "f",
            "def f(a):\n    if a is None:\n        return None\n    b = a\n    return cast(a, limit=limit)\n",
            "f should take None", TOOL_OK,
            "rewrote f in a.py, now lines 5-9. Nothing defines or imports cast and limit here: lines with that stay",
            "def f(a):\n    if a is None:\n        return None\n    b = a\n    return g(a)\n"},
        {"a.py", "f", "def f(a):\n    if a == limit:\n        return None\n    b = a\n    return g(a)\n",
            "f should take None", TOOL_FAILED, "uses limit,", "    if a is None:\n"},
        {"a.py", "h", "def h(a):\n    return near(a) + far(a)\n", "add h", TOOL_FAILED, "uses near and far,",
            "def f"},
        {"a.py", "k", "def k(a):\n    return later(a)\n", "add k, which calls later", TOOL_OK, "added k",
            "later(a)"},
        {"a.py", "g", "def g(a, limit=3):\n    return math.floor(a)\n", "round it", TOOL_OK, "mported math",
            "import math\n"},
        {"test_a.py", "test_f", "def test_f():\n    assert fixture\n", "add a test", TOOL_FAILED,
            "uses fixture,", "test_g"},
        {"test_a.py", "test_f", "def test_f(fixture):\n    assert fixture\n", "add a test", TOOL_OK, "added",
            "fixture"},
        {"test_b.py", "T.test_h", "def test_h(self):\n    assert g(Title) == 1\n", "add a test of g",
            TOOL_FAILED, "uses Title,", "from a import f\n"},
        {"a.test.js", "f", "function f() {\n  expect(1);\n}\n", "let f expect", TOOL_OK, "rewrote f",
            "expect(1)"},
    };
    tree t;
    tree_make(&t, false);
    tree_put(&t, "a.py", "def g(a, limit=3):\n    return a\n\n\ndef f(a):\n    b = a\n    return g(a)\n");
    tree_put(&t, "test_a.py", "def test_g():\n    assert True\n");
    tree_put(&t, "test_b.py", "from a import f\n\n\nclass T:\n    def test_g(self):\n        assert f(1)\n");
    tree_put(&t, "a.test.js", "import {g} from './a.js';\nfunction f() {\n  g();\n}\n");
    tree_open(&t);
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) check(&t, &calls[i]);
    tree_remove(&t);
}

/* C, as seen on hiredis: lines of another file's function came along, with its locals. */
static void test_rewrite__takes_back_locals_of_another_function(void **state)
{
    static const rewriting calls[] = {
        {"a.c", "f",
            "void f(struct item *i)\n{\n    if (i == NULL)\n        return;\n    put(i);\n"
            "    if (state)\n        put(state);\n}\n",
            "f should return early when the item is NULL", TOOL_OK,
            "Nothing defines or imports state here: lines with that stay as they were.",
            "    if (i == NULL)\n        return;\n    put(i);\n}\n"},
        {"a.c", "f", "void f(struct item *i)\n{\n    put(state);\n}\n", "f should be safe", TOOL_FAILED,
            "uses state, which nothing in a.c defines or imports.", "    put(i);\n}\n"},
        /* What headers may bind, what the tree uses so elsewhere, and what the request says. */
        {"a.c", "f",
            "void f(struct item *i)\n{\n    if (errno == LIMIT)\n        put(i);\n    put(found);\n}\n",
            "f should be safe", TOOL_OK, "rewrote f", "errno == LIMIT"},
        {"a.c", "f", "void f(struct item *i)\n{\n    put(state);\n}\n", "f should put the state", TOOL_OK,
            "rewrote f", "put(state)"},
    };
    tree t;
    tree_make(&t, false);
    tree_put(&t, "a.c", "#include \"b.h\"\n\nvoid f(struct item *i)\n{\n    put(i);\n}\n");
    tree_put(&t, "b.h",
        "struct item {\n    int state;\n};\nvoid put(struct item *i);\nvoid get(struct item *state);\n"
        "#define AGAIN(state) put(state)\n");
    /* Macros leave errors in files of C. */
    tree_put(&t, "c.c", "void more(struct item *state UNUSED, int k)\n{\n    put(state);\n}\n");
    tree_put(&t, "b.c",
        "#include \"b.h\"\n\nvoid get(struct item *state)\n{\n    struct item *found = state;\n    put(found);\n}\n\n"
        "void other(void)\n{\n    put(found);\n}\n");
    tree_open(&t);
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) check(&t, &calls[i]);
    tree_remove(&t);
}

/* A fixture is no variable: a test that uses one has it as parameter. */
static void test_rewrite__gives_a_test_its_fixtures(void **state)
{
    static const rewriting calls[] = {
        {"tests/test_a.py", "test_new", "def test_new():\n    assert shop.total == 3\n", "add a test",
            TOOL_OK, "shop is a fixture: it is a parameter of test_new.", "def test_new(shop):\n"},
        {"tests/test_a.py", "test_two",
            "def test_two(shop):\n    cart.add(shop)\n    assert tmp_path, cart\n", "add a test", TOOL_OK,
            "cart is a fixture", "def test_two(shop, tmp_path, cart):\n"},
        /* No fixture of that name: only where nothing in the file, a decorator or the body say, has it. */
        {"tests/test_a.py", "test_none", "def test_none(basket, shop, tmp_path):\n    assert shop\n",
            "add a test", TOOL_OK, "No fixture is called basket: it is no parameter of test_none.",
            "def test_none(shop, tmp_path):\n"},
        {"tests/test_a.py", "test_only", "def test_only(basket):\n    assert 1\n", "add a test", TOOL_OK,
            "No fixture is called basket", "def test_only():\n"},
        {"tests/test_a.py", "test_each",
            "@pytest.mark.parametrize('n', [1])\ndef test_each(n, more=1):\n    assert 1\n", "add a test",
            TOOL_OK, "added test_each", "def test_each(n, more=1):\n"},
        /* One of the same name that the test has itself, what is called, and a test of unittest. */
        {"tests/test_a.py", "test_own", "def test_own():\n    shop = 1\n    assert shop\n", "add a test",
            TOOL_OK, "added test_own", "def test_own():\n"},
        {"tests/test_a.py", "test_made", "def test_made():\n    assert shop()\n", "add a test", TOOL_OK,
            "added test_made", "def test_made():\n"},
        {"tests/test_b.py", "TestB.test_new", "    def test_new(self):\n        assert shop\n",
            "add a test of shop", TOOL_OK, "added", "    def test_new(self):\n"},
    };
    tree t;
    tree_make(&t, false);
    tree_put(&t, "conftest.py",
        "import pytest\n\n\n@pytest.fixture(\n    scope='module',\n)\ndef cart():\n    return []\n");
    tree_put(&t, "tests/test_a.py",
        "import pytest\n\n\n@pytest.fixture\ndef shop():\n    return 1\n\n\ndef test_old(shop):\n    assert shop\n");
    tree_put(&t, "tests/test_b.py",
        "import pytest\nimport unittest\n\n\n@pytest.fixture\ndef shop():\n    return 1\n\n\n"
        "class TestB(unittest.TestCase):\n    def test_old(self):\n        assert 1\n");
    tree_open(&t);
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) check(&t, &calls[i]);
    tree_remove(&t);
}

/* A method of Go sets what its struct lacks: the struct gets it, in its own file or beside, or nothing is touched. */
static void test_rewrite__gives_a_struct_the_fields_that_a_method_sets(void **state)
{
    static const struct {
        const char *name, *block;
        const char *says; /* NULL: of no field */
        const char *path, *has;
    } calls[] = {
        {"Decoder.MaxSize", "func (d *Decoder) MaxSize(most int) {\n\td.maxSize = most\n}\n",
            "added Decoder.MaxSize (lines 15-17, behind Decode) to decoder.go. Decoder had no field maxSize: it "
            "has now, int, in decoder.go. Nothing reads it yet. ",
            "decoder.go", "\tignore  bool\n\tmaxSize int\n}\n"},
        {"Decoder.Tag", "func (d *Decoder) Tag(a, tag string, more ...int) {\n\td.cache.tagOf = tag\n}\n",
            "cache had no field tagOf: it has now, string, in cache.go.", "cache.go",
            "\tm     map[string]int // all\n\n\ttagOf string\n}\n"},
        {"Decoder.Decode", "func (d *Decoder) Decode() {\n\td.names = all\n\td.strict = true // always\n}\n",
            "now lines 11-14. Only Decode was taken from the block. Decoder had no field strict",
            "decoder.go", "\tcache *cache\n\n\tignore bool\n\tstrict bool\n}\n"},
        /* A field that is there, one that an embedded type may have, what no line says the type of, no struct of the folder. */
        {"Decoder.Ignore", "func (d *Decoder) Ignore(on bool) {\n\td.ignore = on\n}\n", NULL, "decoder.go",
            "\tignore bool\n}\n"},
        {"Other.Set", "func (o *Other) Set(n int) {\n\to.size = n\n}\n", NULL, "decoder.go",
            "type Other struct {\n\tDecoder\n}\n"},
        {"Decoder.Grow", "func (d *Decoder) Grow(n int) {\n\td.size = n * 2\n}\n", NULL, "decoder.go",
            "\tignore bool\n}\n"},
        {"Decoder.Far", "func (d *Decoder) Far(n int) {\n\td.far.size = n\n}\n", NULL, "decoder.go",
            "\tignore bool\n}\n"},
    };
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        tree t;
        tree_make(&t, false);
        tree_put(&t, "decoder.go",
            "package schema\n\ntype Decoder struct {\n\tcache *cache\n\n\tignore bool\n}\n\n"
            "// Decode decodes.\nfunc (d *Decoder) Decode() {\n\td.ignore = true\n}\n\n"
            "type Other struct {\n\tDecoder\n}\n\nfunc (o *Other) Get() int {\n\treturn 1\n}\n");
        tree_put(&t, "cache.go", "package schema\n\ntype cache struct {\n\tm     map[string]int // all\n}\n");
        tree_open(&t);
        assert_int_equal(tool_workspace_refresh(t.w, NULL, NULL, NULL), 0);
        base_buf arguments = {0};
        base_buf_printf(&arguments, "{\"path\": \"decoder.go\", \"name\": \"%s\"}", calls[i].name);
        tool_result r = tree_call(&t, "read", "{\"path\": \"decoder.go\"}", NULL);
        tool_result_free(&r);
        r = tree_call(&t, "rewrite", arguments.data, calls[i].block);
        assert_int_equal(r.status, TOOL_OK);
        if (calls[i].says)
            assert_contains(r.text.data, calls[i].says);
        else
            assert_lacks(r.text.data, "had no field");
        char *text = tree_get(&t, calls[i].path);
        assert_contains(text, calls[i].has);
        free(text);
        base_buf_free(&arguments);
        tool_result_free(&r);
        tree_remove(&t);
    }
}

/* "Add a docstring": what the model lost of the code stays. */
static void test_rewrite__takes_comments_alone(void **state)
{
    static const rewriting calls[] = {
        {"a.c", "f", "/* Puts a. */\nint f(int a)\n{\n    return 1;\n}\n", "Add a doc comment to f and g",
            TOOL_OK, "Its comments were taken: the code stays as it was.",
            "\n/* Puts a. */\nint f(int a)\n{\n    /* twice */\n    a += a;\n    return put(a);\n}\n"},
        {"a.c", "g", "int g(int a)\n{\n    // Nothing more to do.\n    return put(a);\n}\n",
            "write a comment in g", TOOL_OK, "rewrote g",
            "int g(int a)\n{\n    /* Nothing more to do. */\n    return put(a);\n}\n"},
        {"a.c", "f", "int f(int a)\n{\n    /* twice */\n    return 1;\n}\n", "Add a comment to f",
            TOOL_FAILED, "brings none that is not there. Nothing was changed.", "return put(a);"},
        {"a.py", "A.f", "def f(self, a):\n    \"\"\"Give a.\n\n    Or not.\n    \"\"\"\n    return b\n",
            "add a docstring to A.f", TOOL_OK, "rewrote A.f",
            "class A:\n    def f(self, a):\n        \"\"\"Give a.\n\n        Or not.\n        \"\"\"\n        return a\n"},
        /* What is a comment for us and more than that for the language. */
        {"a.c", "f", "int f(int a)\n{\n    // Twice: \\\n    a += a;\n    return put(a);\n}\n",
            "Add a comment to f", TOOL_FAILED, "would change the code around it. Nothing was changed.",
            "    a += a;\n"},
        {"a.c", "f", "int f(int a)\n{\n    a += a; /* once */ /* more\n    return put(a);\n}\n",
            "Add a comment to f", TOOL_FAILED, "would change the code", "    a += a;\n"},
        {"A.java", "f", "int f(int a) {\n    // \\u000a a = 0;\n    return a;\n}\n", "Add a comment to f",
            TOOL_FAILED, "would change the code", "    return a;\n"},
        {"a.js", "f", "function f(a) {\n  // \xe2\x80\xa8 a = 0\n  return a\n}\n", "Add a comment to f",
            TOOL_FAILED, "would change the code", "  return a\n"},
        /* More than that is asked for. */
        {"a.c", "g", "/* Puts. */\nint g(int a)\n{\n    return 2;\n}\n", "add a comment to g and return 2",
            TOOL_OK, "rewrote g", "return 2;"},
    };
    tree t;
    tree_make(&t, false);
    tree_put(&t, "a.c",
        "int put(int);\n\nint f(int a)\n{\n    /* twice */\n    a += a;\n    return put(a);\n}\n\n"
        "int g(int a)\n{\n    return put(a);\n}\n");
    tree_put(&t, "a.py", "class A:\n    def f(self, a):\n        return a\n");
    tree_put(&t, "A.java", "class A {\n    int f(int a) {\n        return a;\n    }\n}\n");
    tree_put(&t, "a.js", "function f(a) {\n  return a\n}\n");
    tree_open(&t);
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) check(&t, &calls[i]);
    tree_remove(&t);
}

/* A body that is a comment is no body. */
static void test_rewrite__refuses_a_stub(void **state)
{
    static const rewriting calls[] = {
        {"a.c", "g", "int g(int a)\n{\n    // Your implementation here\n}\n", "add g", TOOL_FAILED,
            "The body of g is a comment alone. Nothing was changed.", "int f(int a)\n"},
        {"a.c", "f", "int f(int a)\n{\n    /* implementation */\n}\n", "f should double it", TOOL_FAILED,
            "is a comment alone", "return a;"},
        {"a.c", "g", "void g(int a)\n{\n    /* nothing to do */\n}\n", "add an empty g", TOOL_OK, "added g",
            "/* nothing to do */"},
        {"a.c", "h", "void h(int a)\n{\n}\n", "add h", TOOL_OK, "added h", "void h(int a)\n{\n}\n"},
        /* An exception is its docstring. */
        {"a.py", "AnError", "class AnError(ValueError):\n    \"\"\"A is wrong.\"\"\"\n", "add AnError",
            TOOL_OK, "added AnError", "class AnError(ValueError):\n    \"\"\"A is wrong.\"\"\"\n"},
    };
    tree t;
    tree_make(&t, false);
    tree_put(&t, "a.c", "int f(int a)\n{\n    return a;\n}\n");
    tree_put(&t, "a.py", "import b\n");
    tree_open(&t);
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) check(&t, &calls[i]);
    tree_remove(&t);
}

/* What the new text uses and nothing binds is imported as the tree's other files do, and not where they differ. */
static void test_rewrite__imports_as_elsewhere(void **state)
{
    static const rewriting calls[] = {
        {"a.py", "f", "def f(a):\n    return issubclass(a, Enum)\n", "f is for an Enum", TOOL_OK,
            "Imported Enum from enum, as elsewhere in the tree.",
            "import os\nfrom enum import Enum\n\n\ndef f(a):\n    return issubclass(a, Enum)\n"},
        {"a.py", "f", "def f(a):\n    return Either(a)\n", "f is for one", TOOL_FAILED,
            "uses Either, which nothing", "import os\n\n\ndef f(a):\n    return a\n"},
        {"a.py", "f", "def f(a):\n    return E(a)\n", "f is for one", TOOL_FAILED, "uses E, which nothing",
            "import os\n\n\ndef f(a):\n    return a\n"},
    };
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        tree t;
        tree_make(&t, false);
        tree_put(&t, "a.py", "import os\n\n\ndef f(a):\n    return a\n");
        tree_put(&t, "b.py",
            "from enum import IntEnum, Enum\nfrom one import Either\nfrom enum import Flag as E\n");
        tree_put(&t, "c.py", "from enum import Enum\nfrom two import Either\n");
        tree_open(&t);
        check(&t, &calls[i]);
        tree_remove(&t);
    }
}

/* As seen on thefuzz: modules that the tree has not, in the middle of the file, and the name without its underline. */
static void test_rewrite__settles_new_imports(void **state)
{
    static const rewriting calls[] = {
        {"pkg/a.py", "f",
            "from pkg._config import logger, seen\nfrom pkg.b import g\nimport json\n\ndef f(a):\n"
            "    logger.warning(\"no\")\n    return json.dumps(g(a))\n",
            "f should warn", TOOL_OK,
            "Left out: \"from pkg._config import logger, seen\", of a module that the tree has not. "
            "Wrote _logger for logger, which nothing here defines.",
            "import os\nfrom pkg.b import g\nimport json\n\n_logger = os.log\n\n\ndef f(a):\n"
            "    _logger.warning(\"no\")\n    return json.dumps(g(a))\n"},
        {"pkg/a.py", "f", "from ._choices import (\n    one,\n    two,\n)\ndef f(a):\n    return [a]\n",
            "f gives a list", TOOL_OK, "Left out: \"from ._choices import (\"",
            "_logger = os.log\n\n\ndef f(a):\n    return [a]\n"},
        {"pkg/a.py", "f",
            "from .b import g\nfrom numpy.linalg import norm\n\ndef f(a):\n    return norm(g(a))\n",
            "f gives a norm", TOOL_OK, "rewrote f",
            "import os\nfrom .b import g\nfrom numpy.linalg import norm\n"},
        {"a.js", "f",
            "const x = require('./lib/gone');\nconst g = require('./lib/b');\nfunction f(a) {\n  return g(a);\n}\n",
            "f should call g", TOOL_OK, "Left out: \"const x = require('./lib/gone');\"",
            "const fs = require('fs');\nconst g = require('./lib/b');\n\nfunction f(a) {\n  return g(a);\n}\n"},
        {"a.c", "f",
            "#include \"gone.h\"\n#include <math.h>\n#include \"b.h\"\nint f(int a)\n{\n    return abs(a);\n}\n",
            "f is never less than 0", TOOL_OK, "Left out: \"#include \"gone.h\"\"",
            "#include <stdlib.h>\n#include <math.h>\n#include \"b.h\"\n\nint f(int a)\n{\n    return abs(a);"},
        {"a.go", "F", "import \"fmt\"\n\nfunc F(a int) string {\n\treturn fmt.Sprint(a)\n}\n",
            "F gives a string", TOOL_OK, "rewrote F",
            "import (\n\t\"os\"\n\t\"fmt\"\n)\n\nfunc F(a int) string {\n"},
    };
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        tree t;
        tree_make(&t, false);
        tree_put(&t, "pkg/__init__.py", "");
        tree_put(&t, "pkg/b.py", "def g(a):\n    return a\n");
        tree_put(&t, "pkg/a.py", "import os\n\n_logger = os.log\n\n\ndef f(a):\n    return a\n");
        tree_put(&t, "lib/b.js", "module.exports = function g(a) {\n  return a;\n};\n");
        tree_put(&t, "a.js", "const fs = require('fs');\n\nfunction f(a) {\n  return fs.statSync(a);\n}\n");
        tree_put(&t, "b.h", "int g(int a);\n");
        tree_put(&t, "a.c", "#include <stdlib.h>\n\nint f(int a)\n{\n    return a;\n}\n");
        tree_put(&t, "a.go",
            "package a\n\nimport (\n\t\"os\"\n)\n\nfunc F(a int) string {\n\treturn os.Args[a]\n}\n");
        tree_open(&t);
        check(&t, &calls[i]);
        tree_remove(&t);
    }
}

/* What a small model leaves out of the lines that it keeps: comments, a docstring, blank lines. */
static void test_rewrite__keeps_comments(void **state)
{
#define PY                                                                                                           \
    "def f(a, b):\n    \"\"\"Adds.\n\n    Twice.\n    \"\"\"\n    # first a\n    a = g(a)  # once\n\n    # then b\n" \
    "    # (a list)\n    for x in b:\n        # each\n        a += x\n    return a\n"
    static const rewriting calls[] = {
        {"a.py", "f", "def f(a, b):\n    a = g(a)\n    for x in b:\n        a += 2 * x\n    return a\n",
            "f should count each twice", TOOL_OK, "Comments between lines that stay were put back.",
            "def f(a, b):\n    \"\"\"Adds.\n\n    Twice.\n    \"\"\"\n    # first a\n    a = g(a)  # once\n\n    # then b\n"
            "    # (a list)\n    for x in b:\n        # each\n        a += 2 * x\n    return a\n"},
        /* a line between, and an other indentation */
        {"a.py", "f",
            "def f(a, b):\n    if b is None:\n        return a\n    a = g(a)\n    if b:\n        for x in b:\n"
            "            a += x\n    return a\n",
            "f should take None", TOOL_OK, "put back",
            "def f(a, b):\n    \"\"\"Adds.\n\n    Twice.\n    \"\"\"\n    if b is None:\n        return a\n    # first a\n    a = g(a)  # once\n    if b:\n"
            "        # then b\n        # (a list)\n        for x in b:\n            # each\n            a += x\n    return a\n"},
        /* a docstring that was cut short, at an other code; one that says something new stays */
        {"a.py", "f",
            "def f(a, b):\n    \"\"\"Adds.\n    \"\"\"\n    a = g(g(a))\n    for x in b:\n        a += x\n    return a\n",
            "f calls g twice", TOOL_OK, "put back",
            "def f(a, b):\n    \"\"\"Adds.\n\n    Twice.\n    \"\"\"\n    # first a\n    a = g(g(a))\n"},
        {"a.py", "f",
            "def f(a, b):\n    \"\"\"Adds, all.\n    \"\"\"\n    a = g(g(a))\n    for x in b:\n        a += x\n    return a\n",
            "f calls g twice", TOOL_OK, "rewrote f",
            "def f(a, b):\n    \"\"\"Adds, all.\n    \"\"\"\n    a = g(g(a))\n"},
        /* its own comments stay, and where the request speaks of them nothing comes back */
        {"a.py", "f",
            "def f(a, b):\n    # at first\n    a = g(a)\n    for x in b:\n        a += x\n    return a + 1\n",
            "f gives one more", TOOL_OK, "rewrote f",
            "def f(a, b):\n    \"\"\"Adds.\n\n    Twice.\n    \"\"\"\n    # at first\n    a = g(a)  # once\n\n    # then b\n"},
        {"a.py", "f", "def f(a, b):\n    a = g(a)\n    for x in b:\n        a += 2 * x\n    return a\n",
            "drop the comments of f, and count twice", TOOL_OK, "rewrote f",
            "def f(a, b):\n    a = g(a)\n    for x in b:\n"},
        {"a.c", "f", "int f(int a) {\n  a++;\n  return a + 1;\n}\n", "f gives one more", TOOL_OK, "put back",
            "int f(int a) {\r\n  /* first,\r\n   * one */\r\n  a++; // up\r\n\r\n  return a + 1;\r\n}\r\n"},
    };
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        tree t;
        tree_make(&t, false);
        tree_put(&t, "a.py", PY "\n\ndef g(a):\n    return a\n");
        tree_put(&t, "a.c",
            "int f(int a) {\r\n  /* first,\r\n   * one */\r\n  a++; // up\r\n\r\n  return a;\r\n}\r\n");
        tree_open(&t);
        check(&t, &calls[i]);
        tree_remove(&t);
    }
#undef PY
}

/* As seen on parson, which is compiled as C90. */
static void test_rewrite__comments_as_its_file(void **state)
{
    static const rewriting calls[] = {
        {"a.c", "f", "int f(int a)\n{\n    // one more\n    return a + 1; // of \"//\"\n}\n",
            "f gives one more", TOOL_OK, "rewrote f",
            "    /* one more */\n    return a + 1; /* of \"//\" */\n"},
        {"a.c", "f",
            "int f(int a)\n{\n    puts(\"// \\\"\"); /* // */\n    return '\"' + a; // no */ end\n}\n",
            "f says it", TOOL_OK, "rewrote f",
            "    puts(\"// \\\"\"); /* // */\n    return '\"' + a; // no */ end\n"},
        {"b.c", "f", "int f(int a)\n{\n    // one more\n    return a + 1;\n}\n", "f gives one more", TOOL_OK,
            "rewrote f", "    // one more\n"},
    };
    tree t;
    tree_make(&t, false);
    tree_put(&t, "a.c", "/* A file. */\nint f(int a)\n{\n    return a;\n}\n");
    tree_put(&t, "b.c", "// A file.\nint f(int a)\n{\n    return a;\n}\n");
    tree_open(&t);
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) check(&t, &calls[i]);
    tree_remove(&t);
}

/* As seen on negotiator: it parses, and throws. */
static void test_rewrite__lets_what_is_assigned(void **state)
{
    static const rewriting calls[] = {
        {"a.js", "f",
            "function f(a) {\n  const q = a.q;\n  const s = 1;\n  if (q < 0) q = 0;\n  return q === s;\n}\n",
            "clamp q in f", TOOL_OK, "q is given another value: let instead of const.",
            "  let q = a.q;\n  const s = 1;\n  if (q < 0) q = 0;\n"},
        {"a.js", "f", "function f(a) {\n  const n = 0, q = () => n;\n  a.n = 1;\n  return n == q({n});\n}\n",
            "f gives true", TOOL_OK, "rewrote f", "  const n = 0, q = () => n;\n"},
        {"a.ts", "f", "function f(a) {\n  const n = 0;\n  for (const x of a) n++;\n  return n;\n}\n",
            "f counts", TOOL_OK, "let instead of const", "  let n = 0;\n  for (const x of a) n++;\n"},
    };
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        tree t;
        tree_make(&t, false);
        tree_put(&t, "a.js", "function f(a) {\n  return a;\n}\n");
        tree_put(&t, "a.ts", "function f(a) {\n  return a;\n}\n");
        tree_open(&t);
        check(&t, &calls[i]);
        tree_remove(&t);
    }
}

/* "module.exports = function quote(xs)": the file has quote, and a second one beside it would be used by nobody. */
static void test_rewrite__finds_what_a_module_hands_out(void **state)
{
    static const char text[] =
        "'use strict';\n\nmodule.exports = function quote(xs) {\n  return xs.join(' ');\n};\n";
    static const char *const blocks[] = {"function quote(xs) {\n  return xs.map(String).join(' ');\n}\n",
        "module.exports = function quote(xs) {\n  return xs.map(String).join(' ');\n};\n"};
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) {
        tree t;
        tree_make(&t, true);
        tree_put(&t, "quote.js", text);
        tree_open(&t);
        const rewriting call = {"quote.js", "quote", blocks[i], "quote should give each as a text", TOOL_OK,
            "rewrote",
            "'use strict';\n\nmodule.exports = function quote(xs) {\n  return xs.map(String).join(' ');\n};\n"};
        check(&t, &call);
        char *now = tree_get(&t, "quote.js");
        assert_string_equal(now, call.has);
        free(now);
        tree_remove(&t);
    }
}

/* "from", "to": these lines are new, all others stay byte for byte. */
static void test_rewrite__takes_lines_of_a_definition(void **state)
{
    static const char text[] =
        "def g():\n    pass\n\n\ndef f(x):\n    a = 1\n\n    if x:\n        a = 2\n    b  =  a\n    return b\n";
    static const struct {
        const char *lines, *block;
        tool_status status;
        const char *says, *has;
    } calls[] = {
        {"\"from\": 8, \"to\": 9", "    if x > 3:\n        a = 2\n", TOOL_OK,
            "rewrote f in a.py, now lines 5-11",
            "def f(x):\n    a = 1\n\n    if x > 3:\n        a = 2\n    b  =  a\n    return b\n"},
        /* at another depth, and with lines that stand around it */
        {"\"from\": 8, \"to\": 9", "if x > 3:\n    a = 2\n", TOOL_OK, "rewrote f",
            "    a = 1\n\n    if x > 3:\n        a = 2\n    b  =  a\n    return b\n"},
        {"\"from\": 8, \"to\": 9", "    a = 1\n\n    if x > 3:\n        a = 2\n    b  =  a\n    return b\n",
            TOOL_OK, "rewrote f", "    a = 1\n\n    if x > 3:\n        a = 2\n    b  =  a\n    return b\n"},
        {"\"from\": 8, \"to\": 9",
            "def f(x):\n    a = 1\n\n    if x > 3:\n        a = 2\n    b  =  a\n    return b\n", TOOL_OK,
            "rewrote f", "    a = 1\n\n    if x > 3:\n        a = 2\n    b  =  a\n    return b\n"},
        /* a part of them */
        {"\"from\": 6, \"to\": 11", "    if x > 3:\n        a = 2\n    return b\n", TOOL_FAILED,
            "The new text uses b", text},
        {"\"from\": 6, \"to\": 11", "    if x:\n        a = 3\n", TOOL_OK, "rewrote f",
            "    a = 1\n\n    if x:\n        a = 3\n"},
        {"\"from\": 6, \"to\": 11", "    a = 2 if x > 3 else 1\n    b  =  a\n", TOOL_OK, "rewrote f",
            "def f(x):\n    a = 2 if x > 3 else 1\n    b  =  a\n    return b\n"},
        {"\"from\": 8, \"to\": 9", "    if x:\n        a = 2\n", TOOL_FAILED, "is the same as the old", text},
        {"\"from\": 8, \"to\": 9", "    if x > 3\n        a = 2\n", TOOL_FAILED, "Nothing was changed", text},
        {"\"from\": 1, \"to\": 2", "    pass\n", TOOL_FAILED, "Lines 1-2 are not in f, which has 5-11", text},
        {"\"from\": 9, \"to\": 12", "    pass\n", TOOL_FAILED, "are not in f", text},
    };
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        tree t;
        char arguments[100];
        tree_make(&t, true);
        tree_put(&t, "a.py", text);
        tree_open(&t);
        assert_int_equal(tool_workspace_refresh(t.w, NULL, NULL, NULL), 0);
        tool_workspace_mark_shown(t.w, "a.py", tree_version(&t, "a.py"));
        snprintf(arguments, sizeof arguments, "{\"path\": \"a.py\", \"name\": \"f\", %s}", calls[i].lines);
        t.request = "f should give 2 only for large x";
        tool_result r = tree_call(&t, "rewrite", arguments, calls[i].block);
        char *now = tree_get(&t, "a.py");
        if (r.status != calls[i].status || !strstr(now, calls[i].has))
            print_message("%s%s\n", r.text.data, now);
        assert_int_equal(r.status, calls[i].status);
        assert_contains(r.text.data, calls[i].says);
        assert_contains(now, calls[i].has);
        free(now);
        tool_result_free(&r);
        tree_remove(&t);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_rewrite__keeps_the_head),
        cmocka_unit_test(test_rewrite__keeps_old_parameters_in_their_places),
        cmocka_unit_test(test_rewrite__imports_as_elsewhere),
        cmocka_unit_test(test_rewrite__settles_new_imports), cmocka_unit_test(test_rewrite__keeps_comments),
        cmocka_unit_test(test_rewrite__takes_lines_of_a_definition),
        cmocka_unit_test(test_rewrite__finds_what_a_module_hands_out),
        cmocka_unit_test(test_rewrite__comments_as_its_file),
        cmocka_unit_test(test_rewrite__lets_what_is_assigned),
        cmocka_unit_test(test_rewrite__takes_back_names_that_nothing_binds),
        cmocka_unit_test(test_rewrite__takes_back_locals_of_another_function),
        cmocka_unit_test(test_rewrite__gives_a_test_its_fixtures),
        cmocka_unit_test(test_rewrite__gives_a_struct_the_fields_that_a_method_sets),
        cmocka_unit_test(test_rewrite__takes_comments_alone), cmocka_unit_test(test_rewrite__refuses_a_stub)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
