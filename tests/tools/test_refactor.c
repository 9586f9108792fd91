/*
 * Operations on definitions: which places a rename changes in each language, what it refuses, that several files
 * change together or not at all, also when the process is killed between two of them.
 */
#include "tree.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tools/edit/change.h"

static void expect(tree *t, const char *path, const char *text)
{
    char *now = tree_get(t, path);
    if (!now || strcmp(now, text) != 0)
        fail_msg("%s is:\n%s\nand not:\n%s", path, now ? now : "(missing)", text);
    free(now);
}

static char *refactor_with(tree *t, const char *arguments, tool_status status)
{
    tool_result r = tree_call(t, "refactor", arguments, NULL);
    if (r.status != status) fail_msg("%s: %s: %s", arguments, tool_status_word(r.status), r.text.data);
    char *text = strdup(r.text.data ? r.text.data : "");
    tool_result_free(&r);
    return text;
}

static void renames(tree *t, const char *name, const char *to, const char *part)
{
    char arguments[300];
    snprintf(
        arguments, sizeof arguments, "{\"operation\":\"rename\",\"name\":\"%s\",\"to\":\"%s\"}", name, to);
    char *text = refactor_with(t, arguments, TOOL_OK);
    if (part) assert_contains(text, part);
    free(text);
}

static void refuses(tree *t, const char *arguments, tool_status status, const char *part)
{
    char *text = refactor_with(t, arguments, status);
    assert_contains(text, part);
    free(text);
}

static void test_refactor__python_follows_imports_and_scopes(void **state)
{
    tree t;
    tree_make(&t, true);
    tree_put(&t, "shop/__init__.py", "from .total import add_up\n__all__ = ['add_up']\n");
    tree_put(&t, "shop/total.py",
        "def add_up(prices):\n    \"\"\"add_up adds.\"\"\"\n    return sum(prices)\n\n\n"
        "def twice(prices):\n    def inner(add_up):\n        return add_up(prices)\n    return "
        "add_up(prices) + inner(len)\n\n\n"
        "class Cart:\n    def add_up(self):\n        return add_up([1])\n");
    tree_put(&t, "main.py",
        "import shop\nfrom shop import add_up as plus\nimport shop.total as st\n\n"
        "print(shop.add_up([1]), plus([2]), st.add_up([3]))\nprint(shop.total.Cart().add_up())\n");
    tree_put(&t, "other.py", "def add_up(x):\n    return x\n\n\nprint(add_up(1))\n");
    tree_open(&t);
    renames(&t, "shop/total.py:add_up", "total_of", NULL);
    expect(&t, "shop/__init__.py", "from .total import total_of\n__all__ = ['total_of']\n");
    expect(&t, "shop/total.py",
        "def total_of(prices):\n    \"\"\"add_up adds.\"\"\"\n    return sum(prices)\n\n\n"
        "def twice(prices):\n    def inner(add_up):\n        return add_up(prices)\n    return "
        "total_of(prices) + inner(len)\n\n\n"
        "class Cart:\n    def add_up(self):\n        return total_of([1])\n");
    expect(&t, "main.py",
        "import shop\nfrom shop import total_of as plus\nimport shop.total as st\n\n"
        "print(shop.total_of([1]), plus([2]), st.total_of([3]))\nprint(shop.total.Cart().add_up())\n");
    expect(&t, "other.py", "def add_up(x):\n    return x\n\n\nprint(add_up(1))\n");
    /* And back: the same bytes. */
    renames(&t, "total_of", "add_up", NULL);
    expect(&t, "main.py",
        "import shop\nfrom shop import add_up as plus\nimport shop.total as st\n\n"
        "print(shop.add_up([1]), plus([2]), st.add_up([3]))\nprint(shop.total.Cart().add_up())\n");
    expect(&t, "shop/__init__.py", "from .total import add_up\n__all__ = ['add_up']\n");
    tree_remove(&t);
}

static void test_refactor__python_members_and_parameters(void **state)
{
    tree t;
    tree_make(&t, true);
    tree_put(&t, "a.py",
        "class Base:\n    def __init__(self, size):\n        self.size = size\n\n    def paint(self):\n      "
        "  pass\n\n\n"
        "class Box(Base):\n    def paint(self):\n        super().paint()\n\n\n"
        "class Wall:\n    def paint(self):\n        pass\n\n\n"
        "def show(box: Box, wall: Wall):\n    box.paint()\n    wall.paint()\n    Base(size=3).paint()\n");
    tree_open(&t);
    refuses(&t, "{\"operation\":\"rename\",\"name\":\"paint\",\"to\":\"draw\"}", TOOL_FAILED,
        "is defined 3 times");
    renames(&t, "Box.paint", "draw", NULL);
    renames(&t, "__init__.size", "width", NULL);
    expect(&t, "a.py",
        "class Base:\n    def __init__(self, width):\n        self.size = width\n\n    def draw(self):\n     "
        "   pass\n\n\n"
        "class Box(Base):\n    def draw(self):\n        super().draw()\n\n\n"
        "class Wall:\n    def paint(self):\n        pass\n\n\n"
        "def show(box: Box, wall: Wall):\n    box.draw()\n    wall.paint()\n    Base(width=3).draw()\n");
    tree_remove(&t);
}

static void test_refactor__c_keeps_fields_tags_labels_and_locals(void **state)
{
    tree t;
    tree_make(&t, true);
    tree_put(&t, "ring.h",
        "struct ring { int put; };\nint put(struct ring *r);\n#define PUT(r) put(r)\n#define FIELD(r) "
        "(r)->put\n");
    tree_put(&t, "ring.c",
        "#include \"ring.h\"\r\n\r\nint put(struct ring *r)\r\n{\r\n\tgoto put;\r\nput:\r\n\treturn "
        "r->put;\r\n}\r\n");
    tree_put(&t, "use.c",
        "#include \"ring.h\"\nint f(int put)\n{\n    return put;\n}\nint g(struct ring *r)\n{\n    return "
        "put(r) + f(1);\n}\n");
    tree_put(
        &t, "own.c", "static int put(void)\n{\n    return 1;\n}\nint h(void)\n{\n    return put();\n}\n");
    tree_open(&t);
    renames(&t, "ring.c:put", "ring_put", NULL);
    expect(&t, "ring.h",
        "struct ring { int put; };\nint ring_put(struct ring *r);\n#define PUT(r) ring_put(r)\n#define "
        "FIELD(r) (r)->put\n");
    expect(&t, "ring.c",
        "#include \"ring.h\"\r\n\r\nint ring_put(struct ring *r)\r\n{\r\n\tgoto put;\r\nput:\r\n\treturn "
        "r->put;\r\n}\r\n");
    expect(&t, "use.c",
        "#include \"ring.h\"\nint f(int put)\n{\n    return put;\n}\nint g(struct ring *r)\n{\n    return "
        "ring_put(r) + f(1);\n}\n");
    expect(&t, "own.c", "static int put(void)\n{\n    return 1;\n}\nint h(void)\n{\n    return put();\n}\n");
    renames(&t, "ring.put", "first", NULL);
    expect(&t, "ring.h",
        "struct ring { int first; };\nint ring_put(struct ring *r);\n#define PUT(r) ring_put(r)\n#define "
        "FIELD(r) (r)->first\n");
    renames(&t, "f.put", "n", NULL);
    char *use = tree_get(&t, "use.c");
    assert_contains(use, "int f(int n)\n{\n    return n;\n}");
    free(use);
    tree_remove(&t);
}

static void test_refactor__alternatives_are_renamed_together(void **state)
{
    tree t;
    tree_make(&t, true);
    tree_put(&t, "mem/alloc.h",
        "#ifndef WIN\nstatic inline void *get(int n) { return 0; }\n#else\nvoid *get(int n);\n#endif\n");
    tree_put(&t, "mem/all.h", "#include \"alloc.h\"\n");
    tree_put(&t, "mem/alloc.c", "#include \"alloc.h\"\n#ifdef WIN\nvoid *get(int n) { return 0; }\n#endif\n");
    tree_put(&t, "use.c", "#include \"mem/all.h\"\nvoid *g(void) { return get(1); }\n");
    tree_put(&t, "tool.c", "static int get(void) { return 1; }\nint main(void) { return get(); }\n");
    tree_put(&t, "one.c", "static int usage(void) { return 1; }\nint one(void) { return usage(); }\n");
    tree_put(&t, "two.c", "static int usage(void) { return 2; }\nint two(void) { return usage(); }\n");
    tree_put(&t, "go.mod", "module m\n");
    tree_put(&t, "p/a_linux.go", "package p\n\nfunc Open() int { return 1 }\n");
    tree_put(&t, "p/a_windows.go", "package p\n\nfunc Open() int { return 2 }\n");
    tree_put(&t, "p/gen.go", "//go:build ignore\n\npackage main\n\nfunc Open() {}\n");
    tree_put(&t, "p/use.go", "package p\n\nvar N = Open()\n");
    tree_put(&t, "S.java", "interface S {\n    int area();\n}\n");
    tree_put(&t, "A.java", "class A implements S {\n    public int area() { return 1; }\n}\n");
    tree_put(&t, "B.java", "class B implements S {\n    public int area() { return 2; }\n}\n");
    tree_open(&t);
    renames(&t, "mem/alloc.h:get", "take", "4 places in 3 files");
    expect(&t, "mem/alloc.h",
        "#ifndef WIN\nstatic inline void *take(int n) { return 0; }\n#else\nvoid *take(int n);\n#endif\n");
    expect(&t, "mem/alloc.c", "#include \"alloc.h\"\n#ifdef WIN\nvoid *take(int n) { return 0; }\n#endif\n");
    expect(&t, "use.c", "#include \"mem/all.h\"\nvoid *g(void) { return take(1); }\n");
    expect(&t, "tool.c", "static int get(void) { return 1; }\nint main(void) { return get(); }\n");
    refuses(&t, "{\"operation\":\"rename\",\"name\":\"usage\",\"to\":\"help\"}", TOOL_FAILED,
        "is defined 2 times: one.c:1");
    renames(&t, "two.c:usage", "help", "2 places in 1 file");
    expect(&t, "one.c", "static int usage(void) { return 1; }\nint one(void) { return usage(); }\n");
    renames(&t, "p/a_linux.go:Open", "Begin", "3 places in 3 files");
    expect(&t, "p/a_windows.go", "package p\n\nfunc Begin() int { return 2 }\n");
    expect(&t, "p/gen.go", "//go:build ignore\n\npackage main\n\nfunc Open() {}\n");
    renames(&t, "area", "size", "3 places in 3 files");
    expect(&t, "B.java", "class B implements S {\n    public int size() { return 2; }\n}\n");
    tree_remove(&t);
}

/* A struct that embeds a type has a field of the type's name, which follows it and cannot be renamed alone. */
static void test_refactor__what_embeds_a_type_in_go_follows_it(void **state)
{
    tree t;
    tree_make(&t, true);
    tree_put(&t, "go.mod", "module m\n");
    tree_put(&t, "a.go", "package m\n\ntype conf struct{ a int }\n\ntype plain struct{ conf int }\n");
    tree_put(&t, "b.go",
        "package m\n\ntype R struct {\n\tconf\n\tn int\n}\n\ntype P struct {\n\t*conf\n}\n\n"
        "func f(r *R, p plain) int {\n\tq := R{conf: conf{a: 1}}\n\treturn r.conf.a + q.conf.a + "
        "p.conf\n}\n");
    tree_open(&t);
    refuses(&t, "{\"operation\":\"rename\",\"name\":\"R.conf\",\"to\":\"setup\"}", TOOL_FAILED,
        "R embeds conf: that field has the type's name");
    renames(&t, "a.go:3", "setup", NULL);
    expect(&t, "a.go", "package m\n\ntype setup struct{ a int }\n\ntype plain struct{ conf int }\n");
    expect(&t, "b.go",
        "package m\n\ntype R struct {\n\tsetup\n\tn int\n}\n\ntype P struct {\n\t*setup\n}\n\n"
        "func f(r *R, p plain) int {\n\tq := R{setup: setup{a: 1}}\n\treturn r.setup.a + q.setup.a + "
        "p.conf\n}\n");
    tree_remove(&t);
}

static void test_refactor__go_java_and_javascript(void **state)
{
    tree t;
    tree_make(&t, true);
    tree_put(&t, "go.mod", "module example.com/shop\n");
    tree_put(&t, "cart/cart.go",
        "package cart\n\nfunc Total(n int) int { return n }\n\nfunc twice(n int) int {\n\tTotal := "
        "Total(n)\n\treturn Total\n}\n");
    tree_put(&t, "main.go",
        "package main\n\nimport \"example.com/shop/cart\"\n\nfunc main() {\n\tprintln(cart.Total(1))\n}\n");
    tree_put(&t, "a/Cart.java",
        "package a;\n\npublic class Cart {\n    private int total;\n\n    public int total() {\n        int "
        "n = total;\n        return n + this.total;\n    }\n}\n");
    tree_put(&t, "b/Use.java",
        "package b;\n\nimport a.Cart;\n\nclass Use {\n    int f(Cart cart) {\n        return cart.total();\n "
        "   }\n}\n");
    tree_put(&t, "lib.js",
        "function total(n) {\n  return n;\n}\nconst twice = (total) => total * 2;\nmodule.exports = { total, "
        "twice };\n");
    tree_put(&t, "use.js",
        "const { total } = require('./lib');\nconst lib = require('./lib');\nconsole.log(total(1), "
        "lib.total(2), { total });\n");
    tree_open(&t);
    renames(&t, "cart/cart.go:Total", "Sum", NULL);
    expect(&t, "cart/cart.go",
        "package cart\n\nfunc Sum(n int) int { return n }\n\nfunc twice(n int) int {\n\tTotal := "
        "Sum(n)\n\treturn Total\n}\n");
    expect(&t, "main.go",
        "package main\n\nimport \"example.com/shop/cart\"\n\nfunc main() {\n\tprintln(cart.Sum(1))\n}\n");
    renames(&t, "a/Cart.java:6", "sum", NULL);
    expect(&t, "a/Cart.java",
        "package a;\n\npublic class Cart {\n    private int total;\n\n    public int sum() {\n        int n "
        "= total;\n        return n + this.total;\n    }\n}\n");
    expect(&t, "b/Use.java",
        "package b;\n\nimport a.Cart;\n\nclass Use {\n    int f(Cart cart) {\n        return cart.sum();\n   "
        " }\n}\n");
    renames(&t, "lib.js:total", "sum", NULL);
    expect(&t, "lib.js",
        "function sum(n) {\n  return n;\n}\nconst twice = (total) => total * 2;\nmodule.exports = { sum, "
        "twice };\n");
    expect(&t, "use.js",
        "const { sum } = require('./lib');\nconst lib = require('./lib');\nconsole.log(sum(1), lib.sum(2), { "
        "total: sum });\n");
    tree_remove(&t);
}

static void test_refactor__java_tells_types_of_one_name_apart(void **state)
{
    tree t;
    tree_make(&t, true);
    tree_put(&t, "p/A.java",
        "package p;\n\nclass A {\n    private static final Get<String> NAME = o -> help();\n    int left;\n\n"
        "    static String help() {\n        return \"\";\n    }\n\n"
        "    static class Builder {\n        int rest;\n\n        Builder size(int size) {\n            "
        "return "
        "this;\n        }\n\n        int all() {\n            return left + NAME.get(1);\n        }\n    "
        "}\n}\n");
    tree_put(&t, "p/B.java",
        "package p;\n\nclass B {\n    static class Builder {\n        Builder size(int n) {\n            "
        "return "
        "this;\n        }\n    }\n\n    void f() {\n        new Builder().size(1);\n        A.Builder b = "
        "null;\n "
        "   }\n}\n");
    tree_put(&t, "p/Top.java", "package p;\n\ninterface Top {\n    void draw(int n);\n}\n");
    tree_put(&t, "p/Middle.java", "package p;\n\nabstract class Middle implements Top {\n}\n");
    tree_put(&t, "p/Low.java",
        "package p;\n\nclass Low extends Middle {\n    public void draw(int n) {\n    }\n\n    void g() {\n  "
        "   "
        "   Top top = null;\n        top.draw(1);\n        Top other = new Top() {\n            public void "
        "draw(int n) {\n            }\n        };\n    }\n}\n");
    tree_open(&t);
    assert_int_equal(tool_workspace_refresh(t.w, NULL, NULL, NULL), 0);
    renames(&t, "p/A.java:14", "width", NULL);
    renames(&t, "p/A.java:4", "TITLE", NULL);
    renames(&t, "p/A.java:5", "remaining", NULL);
    expect(&t, "p/A.java",
        "package p;\n\nclass A {\n    private static final Get<String> TITLE = o -> help();\n    int "
        "remaining;\n\n    static String help() {\n        return \"\";\n    }\n\n"
        "    static class Builder {\n        int rest;\n\n        Builder width(int size) {\n            "
        "return "
        "this;\n        }\n\n        int all() {\n            return remaining + TITLE.get(1);\n        }\n  "
        "  "
        "}\n}\n");
    expect(&t, "p/B.java",
        "package p;\n\nclass B {\n    static class Builder {\n        Builder size(int n) {\n            "
        "return "
        "this;\n        }\n    }\n\n    void f() {\n        new Builder().size(1);\n        A.Builder b = "
        "null;\n "
        "   }\n}\n");
    renames(&t, "p/Top.java:4", "paint", NULL);
    expect(&t, "p/Low.java",
        "package p;\n\nclass Low extends Middle {\n    public void paint(int n) {\n    }\n\n    void g() {\n "
        "   "
        "    Top top = null;\n        top.paint(1);\n        Top other = new Top() {\n            public "
        "void "
        "paint(int n) {\n            }\n        };\n    }\n}\n");
    renames(&t, "p/Low.java:11", "sketch", NULL);
    expect(&t, "p/Top.java", "package p;\n\ninterface Top {\n    void sketch(int n);\n}\n");
    tree_remove(&t);
}

static void test_refactor__javascript_passages_and_members(void **state)
{
    tree t;
    tree_make(&t, true);
    tree_put(&t, "list.ts", "export default class List {\n  size = 0;\n}\n");
    tree_put(&t, "use.ts",
        "import List from './list.js';\nconst {size} = new List();\nfunction f(l: Partial<List>) {\n  return "
        "l.size;\n}\n");
    tree_put(&t, "lib.js",
        "/**\n * @param {Object} given what was given\n */\nfunction sum(given) {\n  return given;\n}\n"
        "exports.sum = sum;\n");
    tree_put(&t, "nested.js",
        "function make() {\n  return { tap(x) { return x; } };\n}\nfunction other() {\n  return { tap(x) { "
        "return "
        "1; } };\n}\nuse(other().tap(1));\n");
    tree_put(&t, "main.js",
        "const add = require('./lib').sum;\nrun({ check: function (x) { return x; } });\nrun({ check: "
        "function "
        "(x) { return 1; } });\n");
    tree_open(&t);
    assert_int_equal(tool_workspace_refresh(t.w, NULL, NULL, NULL), 0);
    renames(&t, "list.ts:List", "Row", NULL);
    expect(&t, "list.ts", "export default class Row {\n  size = 0;\n}\n");
    renames(&t, "list.ts:2", "length", "Not sure and left: use.ts:2");
    expect(&t, "use.ts",
        "import Row from './list.js';\nconst {size} = new Row();\nfunction f(l: Partial<Row>) {\n  return "
        "l.length;\n}\n");
    renames(&t, "lib.js:sum", "total", NULL);
    renames(&t, "lib.js:total.given", "value", NULL);
    expect(&t, "lib.js",
        "/**\n * @param {Object} value what was given\n */\nfunction total(value) {\n  return value;\n}\n"
        "exports.total = total;\n");
    renames(&t, "nested.js:2", "press", "Not sure and left: nested.js:5");
    expect(&t, "nested.js",
        "function make() {\n  return { press(x) { return x; } };\n}\nfunction other() {\n  return { tap(x) { "
        "return 1; } };\n}\nuse(other().tap(1));\n");
    renames(&t, "main.js:2", "test", "Not sure and left: main.js:3");
    expect(&t, "main.js",
        "const add = require('./lib').total;\nrun({ test: function (x) { return x; } });\nrun({ check: "
        "function "
        "(x) { return 1; } });\n");
    tree_remove(&t);
}

static void test_refactor__go_packages_and_unnamed_types(void **state)
{
    tree t;
    tree_make(&t, true);
    tree_put(&t, "go.mod", "module example.com/go-human\n");
    tree_put(&t, "human.go",
        "// The package human writes.\npackage human\n\nfunc Comma(n int) int { return n }\n");
    tree_put(&t, "human_test.go",
        "package human_test\n\nimport (\n\t\"testing\"\n\n\t\"example.com/go-human\"\n)\n\nfunc TestComma(t "
        "*testing.T) {\n\tfor _, c := range []struct{ n, want int }{{1, 1}} {\n\t\tif human.Comma(c.n) != "
        "c.want "
        "{\n\t\t\tt.Fail()\n\t\t}\n\t}\n\tfor _, c := range []struct{ want int }{{1}} "
        "{\n\t\tprintln(c.want)\n\t}\n}\n");
    tree_open(&t);
    assert_int_equal(tool_workspace_refresh(t.w, NULL, NULL, NULL), 0);
    renames(&t, "Comma", "Commas", NULL);
    char *now = tree_get(&t, "human_test.go");
    assert_contains(now, "human.Commas(c.n)");
    free(now);
    tree_remove(&t);
}

static void test_refactor__refuses_what_cannot_be(void **state)
{
    tree t;
    tree_make(&t, true);
    tree_put(&t, "a.py", "def f(x):\n    return x\n\n\ndef g(y):\n    return f(y)\n");
    tree_put(&t, "broken.py", "def f2(:\n    return f2(\n");
    tree_put(&t, "vendor/b.py", "def vendored():\n    pass\n");
    tree_put(&t, "notes.zzz", "f f f\n");
    tree_open(&t);
    refuses(&t, "{\"operation\":\"rename\",\"name\":\"f\",\"to\":\"g\"}", TOOL_REFUSED, "is taken");
    refuses(&t, "{\"operation\":\"rename\",\"name\":\"f\",\"to\":\"class\"}", TOOL_REFUSED, "keyword");
    refuses(&t, "{\"operation\":\"rename\",\"name\":\"f\",\"to\":\"a-b\"}", TOOL_REFUSED, "letters, digits");
    refuses(&t, "{\"operation\":\"rename\",\"name\":\"f\",\"to\":\"$a\"}", TOOL_REFUSED, "no part of a name");
    refuses(&t, "{\"operation\":\"rename\",\"name\":\"f\",\"to\":\"f\"}", TOOL_REFUSED, "already");
    refuses(&t, "{\"operation\":\"rename\",\"name\":\"f\"}", TOOL_FAILED, "needs \"to\"");
    refuses(&t, "{\"operation\":\"rename\",\"name\":\"nothing\",\"to\":\"g\"}", TOOL_FAILED, "no definition");
    refuses(&t, "{\"operation\":\"rename\",\"name\":\"vendored\",\"to\":\"v\"}", TOOL_REFUSED,
        "generated or vendored");
    refuses(&t, "{\"operation\":\"explode\",\"name\":\"f\"}", TOOL_FAILED, "needs \"operation\"");
    refuses(&t, "{\"operation\":\"rename\",\"name\":\"a.py:2\",\"to\":\"v\"}", TOOL_FAILED,
        "No definition begins");
    expect(&t, "a.py", "def f(x):\n    return x\n\n\ndef g(y):\n    return f(y)\n");
    tree_put(&t, "c.py",
        "<<<<<<< ours\ndef mine():\n    pass\n=======\ndef mine():\n    return 1\n>>>>>>> theirs\n");
    tree_open(&t);
    refuses(&t, "{\"operation\":\"rename\",\"name\":\"mine\",\"to\":\"yours\",\"unsure\":true}", TOOL_REFUSED,
        "conflict marks");
    tree_remove(&t);
}

/* What people read still writes the old name: told, a word of a sentence aside. */
static void test_refactor__tells_which_documents_write_the_old_name(void **state)
{
    tree t;
    tree_make(&t, true);
    tree_put(
        &t, "a.c", "int addOne(int x)\n{\n    return x + 1;\n}\n\nint parse(void)\n{\n    return 0;\n}\n");
    tree_put(&t, "README.md",
        "# addOne\n\nCall `addOne(2)` or addOne, not addOnes.\nTo parse is parse().\nWe parse.\n");
    tree_put(&t, "docs/more.txt", "addOne\naddOne\naddOne\naddOne\n");
    tree_open(&t);
    renames(&t, "addOne", "increment",
        "Documents that still write it, left: README.md:1, README.md:3, docs/more.txt:1, docs/more.txt:2, "
        "docs/more.txt:3 and 1 more line.\n");
    renames(&t, "parse", "read", "Documents that still write it, left: README.md:4.\n");
    char *now = tree_get(&t, "README.md");
    assert_contains(now, "addOne, not addOnes");
    free(now);
    tree_remove(&t);
}

static void test_refactor__one_diff_one_undo(void **state)
{
    tree t;
    tree_make(&t, true);
    tree_put(&t, "a.py", "def f(x):\n    return x\n");
    tree_put(&t, "b.py", "from a import f\nf(1)\n");
    tree_open(&t);
    tool_preview p = {0};
    tool_result r =
        tree_prepare(&t, "refactor", "{\"operation\":\"rename\",\"name\":\"f\",\"to\":\"h\"}", NULL, &p);
    assert_int_equal(r.status, TOOL_OK);
    assert_contains(p.headline, "rename f to h, 3 places (2 files, +3 -3)");
    assert_contains(p.detail, "--- a/a.py");
    assert_contains(p.detail, "--- a/b.py");
    tool_result_free(&r);
    tool_preview_free(&p);
    expect(&t, "b.py", "from a import f\nf(1)\n");
    tool_workspace_turn(t.w, 7);
    renames(&t, "f", "h", "renamed function f to h: 3 places in 2 files");
    char *summary = NULL;
    base_err err = {0};
    assert_int_equal(tool_undo_apply(t.w, &summary, &err), 0);
    assert_contains(summary, "2 restored");
    free(summary);
    expect(&t, "a.py", "def f(x):\n    return x\n");
    expect(&t, "b.py", "from a import f\nf(1)\n");
    /* A file that changed between the question and the yes: nothing is written. */
    tool_call call = {.name = "refactor"};
    base_json_doc *doc;
    const char *json = "{\"operation\":\"rename\",\"name\":\"f\",\"to\":\"h\"}";
    assert_int_equal(base_json_parse(json, strlen(json), &doc, NULL), 0);
    call.arguments = base_json_root(doc);
    const tool_entry *e = tool_find("refactor");
    r = (tool_result){0};
    assert_int_equal(e->prepare(t.w, &call, &t.limits, &p, &r, &err), 0);
    tree_put(&t, "b.py", "from a import f\nf(2)\n");
    assert_int_equal(e->run(t.w, &call, &t.limits, &p, &r, &err), 0);
    assert_int_equal(r.status, TOOL_REFUSED);
    assert_contains(r.text.data, "all 2 files are as they were");
    expect(&t, "a.py", "def f(x):\n    return x\n");
    tool_result_free(&r);
    tool_preview_free(&p);
    base_json_free(doc);
    tree_remove(&t);
}

static void test_refactor__delete_lists_callers_or_replaces_them(void **state)
{
    tree t;
    tree_make(&t, true);
    tree_put(&t, "a.py",
        "import os\n\n\n# Says it.\ndef note(x):\n    return note(x)\n\n\ndef keep(y):\n    note(y)\n    "
        "return y\n");
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
        "#include \"l.h\"\n\nint log_it(int x)\n{\n    return x;\n}\n\nint stay(void)\n{\n    log_it(1);\n   "
        " return 0;\n}\n");
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
        "def test_keep():\n    assert m.keep(1) == 1\n    # don't\n    assert m.keep(\n        m.pack(2)) == "
        "2\n\n"
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
        "export function one(x: number) {\n  return x;\n}\n\nexport function two(x: number) {\n  "
        "return x;\n}\n");
    tree_put(&t, "a.test.ts",
        "import { one, two } from './a';\n\ndescribe('two', () => {\n  it('is \"it\"', () => {\n"
        "    expect(two(1)).toBe(1);\n  });\n\n  it('throws', () => {\n    expect(() => {\n      two(0);\n"
        "    }).not.toThrow();\n  });\n});\n\ndescribe('one', () => {\n  it('is', () => {\n"
        "    expect(one(1)).toBe(1);\n\n    // both\n    expect(two(2))\n      .toBe(2);\n  });\n});\n");
    tree_put(&t, "two.test.ts",
        "import { test } from 'vitest';\nimport { two } from './a';\n\ntest('two', () => {\n  const a = "
        "two(1);\n\n"
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

/* What a call gives stands where the text that replaces it has the parameter's name; imports follow. */
static void test_refactor__delete_writes_what_callers_use_instead(void **state)
{
    tree t;
    tree_make(&t, true);
    tree_put(&t, "m.py",
        "def most(n, base, limit):\n    return n\n\n\ndef more(n, base=10):\n    return most(n, base, "
        "-1)\n\n\n"
        "class Box:\n    def put(self, a):\n        self.store(a, 0)\n\n    def store(self, a, at):\n        "
        "return more(more(1, 2), base=a + 1)\n");
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
        "#include \"s.h\"\nint add(int a, int b)\n{\n    return a;\n}\nint one(void)\n{\n    return add(1, "
        "add(2, 3));\n}\n");
    tree_put(&t, "k.py",
        "class K:\n    def put(self, a, b=2):\n        return a\n\n\ndef use(k: K):\n    k.put(1)\n    "
        "k.put(1, b=3)\n    k.put(*k)\n");
    tree_open(&t);
    free(refactor_with(&t,
        "{\"operation\":\"signature\",\"name\":\"add\",\"parameter\":\"int flags\",\"value\":\"0\",\"at\":2}",
        TOOL_OK));
    expect(&t, "s.h", "int add(int a, int flags, int b);\n");
    expect(&t, "s.c",
        "#include \"s.h\"\nint add(int a, int flags, int b)\n{\n    return a;\n}\nint one(void)\n{\n    "
        "return add(1, 0, add(2, 0, 3));\n}\n");
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
        "class K:\n    def put(self, a, b=2, c=None):\n        return a\n\n\ndef use(k: K):\n    k.put(1, "
        "c=9)\n    k.put(1, b=3, c=9)\n    k.put(*k)\n");
    tree_remove(&t);
}

/* A default of a literal is what the body has when its parameter goes; who gave another value is told. */
static void test_refactor__signature_puts_the_default_into_the_body(void **state)
{
    tree t;
    tree_make(&t, true);
    tree_put(&t, "a.py",
        "def clear(mode=2, fill=' '):\n    return 'x' + str(mode) + fill\n\n\ndef up(n=1):\n    n += 1\n    "
        "return n\n\n\n"
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
        "def clear(fill=' '):\n    return 'x' + str(2) + fill\n\n\ndef up(n=1):\n    n += 1\n    return "
        "n\n\n\n"
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
        "int f(const char *name, int flags)\n{\n    return 1;\n}\n\nint g(void)\n{\n    return f(\"x\", "
        "0);\n}\n");
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
        "package m\n\nfunc logn(n, b float64) float64 {\n\treturn n / b\n}\n\nfunc use() float64 {\n\treturn "
        "logn(1, "
        "2)\n}\n\nfunc three(a, b int, s string) {\n\tthree(1, 2, s)\n}\n");
    tree_open(&t);
    free(refactor_with(&t, "{\"operation\":\"signature\",\"name\":\"logn\",\"parameter\":\"2,1\"}", TOOL_OK));
    free(refactor_with(
        &t, "{\"operation\":\"signature\",\"name\":\"three\",\"parameter\":\"3,1,2\"}", TOOL_OK));
    expect(&t, "l.go",
        "package m\n\nfunc logn(b float64, n float64) float64 {\n\treturn n / b\n}\n\nfunc use() float64 "
        "{\n\treturn "
        "logn(2, 1)\n}\n\nfunc three(s string, a int, b int) {\n\tthree(s, 1, 2)\n}\n");
    tree_remove(&t);
}

static void test_refactor__move_takes_exports_along(void **state)
{
    tree t;
    tree_make(&t, true);
    tree_put(&t, "shop/__init__.py", "from .total import add_up, twice\n\n__all__ = ['add_up', 'twice']\n");
    tree_put(&t, "shop/total.py",
        "__all__ = ['add_up', 'twice']\n\n\ndef add_up(prices):\n    return sum(prices)\n\n\ndef "
        "twice(x):\n    return 2 * x\n");
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
        "__all__ = [\n    \"zero\",\n    \"one\",\n    \"add_up\",\n]\n\n\ndef zero():\n    return "
        "0\n\n\ndef one():\n    "
        "return 1\n\n\ndef add_up(prices):\n    return sum(prices)\n");
    expect(&t, "shop/__init__.py",
        "from .sums import add_up\nfrom .total import twice\n\n__all__ = ['add_up', 'twice']\n");
    expect(&t, "total/__init__.py", "from shop.sums import add_up\n");
    expect(&t, "main.py", "from shop import add_up\n\nprint(add_up([1]))\n");
    expect(&t, "far.py", "from total import add_up\n\nprint(add_up([1]))\n");
    tree_put(&t, "shop/all.py", "from .total import *\n\nprint(twice(1))\n");
    tree_open(&t);
    refuses(&t, "{\"operation\":\"move\",\"name\":\"twice\",\"to\":\"shop/sums.py\"}", TOOL_REFUSED,
        "shop/all.py takes twice with an import of *");
    tree_remove(&t);
}

/* A file is named as a person does: by the end of its path, and a new one without its folder. */
static void test_refactor__move_finds_the_file_that_is_meant(void **state)
{
    tree t;
    tree_make(&t, false);
    tree_put(&t, "src/shop/__init__.py", "");
    tree_put(&t, "src/shop/total.py",
        "import os\nfrom .sums import none\n\n\ndef add_up(a):\n    return a + none()\n\n\ndef twice(a):\n   "
        " return 2 "
        "* a\n");
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
        "import math\nimport os\n\n\n# Adds.\ndef add_up(prices):\n    return math.fsum(prices)\n\n\ndef "
        "twice(prices):\n    return 2 * add_up(prices)\n");
    tree_put(&t, "main.py", "from shop.total import add_up, twice\n\nprint(add_up([1]), twice([2]))\n");
    tree_put(&t, "late.py",
        "\"\"\"Says when.\"\"\"\n\nfrom __future__ import annotations\n\n\ndef late(x):\n    return "
        "x\n\n\ndef soon():\n    return late(1)\n");
    tree_put(&t, "go.mod", "module example.com/x\n");
    tree_put(&t, "f.go",
        "package x\n\nimport (\n\t\"fmt\"\n\t\"strings\"\n)\n\nfunc Up(s string) string {\n\treturn "
        "strings.ToUpper(s)\n}\n\nfunc Say() {\n\tfmt.Println(Up(\"a\"))\n}\n");
    tree_put(&t, "m.c",
        "#include <stdio.h>\n\nstatic int own(void)\n{\n    return 1;\n}\n\nint free_one(int x)\n{\n    "
        "return x;\n}\n\nint bound(void)\n{\n    return own() + free_one(1);\n}\n");
    tree_put(&t, "n.c", "#include <stdlib.h>\n\nint n;\n");
    tree_open(&t);
    free(refactor_with(&t, "{\"operation\":\"move\",\"name\":\"add_up\",\"to\":\"shop/sums.py\"}", TOOL_OK));
    expect(
        &t, "shop/sums.py", "import math\n\n\n# Adds.\ndef add_up(prices):\n    return math.fsum(prices)\n");
    expect(&t, "shop/total.py",
        "import math\nimport os\nfrom .sums import add_up\n\n\ndef twice(prices):\n    return 2 * "
        "add_up(prices)\n");
    expect(&t, "main.py",
        "from shop.sums import add_up\nfrom shop.total import twice\n\nprint(add_up([1]), twice([2]))\n");
    free(refactor_with(&t, "{\"operation\":\"move\",\"name\":\"late\",\"to\":\"later.py\"}", TOOL_OK));
    expect(&t, "late.py",
        "\"\"\"Says when.\"\"\"\n\nfrom __future__ import annotations\nfrom later import late\n\n\ndef "
        "soon():\n    return late(1)\n");
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
        "#include <stdio.h>\nint free_one(int x);\n\nstatic int own(void)\n{\n    return 1;\n}\n\nint "
        "bound(void)\n{\n    return own() + free_one(1);\n}\n");
    tree_remove(&t);
}

/* ---- a kill, and Esc ---- */

static const char *stop_at;
static int stop_in;
static atomic_bool cancelled;

static void kill_at(const char *step)
{
    if (!strcmp(step, stop_at) && --stop_in == 0) kill(getpid(), SIGKILL);
}

static void cancel_at(const char *step)
{
    if (!strcmp(step, "file")) atomic_store(&cancelled, true);
}

static void put_five(tree *t)
{
    char path[20], text[100];
    tree_make(t, true);
    tree_put(t, "a.py", "def f(x):\n    return x\n");
    for (int i = 0; i < 4; i++) {
        snprintf(path, sizeof path, "m%d.py", i);
        snprintf(text, sizeof text, "from a import f\nf(%d)\n", i);
        tree_put(t, path, text);
    }
}

static int count_new(tree *t)
{
    static const char *const paths[] = {"a.py", "m0.py", "m1.py", "m2.py", "m3.py"};
    int n = 0;
    for (size_t i = 0; i < 5; i++) {
        char *now = tree_get(t, paths[i]);
        assert_non_null(now);
        const bool is_new = strstr(now, "renamed") != NULL;
        assert_true(is_new || strstr(now, " f") != NULL);
        n += is_new;
        free(now);
    }
    return n;
}

static void test_refactor__a_kill_leaves_all_old_or_all_new(void **state)
{
    static const char *const steps[] = {
        "objects", "journal", "pending", "temporary", "written", "rename", "file", "done"};
    for (size_t s = 0; s < sizeof steps / sizeof *steps; s++)
        for (int at = 1; at <= 5; at++) {
            tree t;
            put_five(&t);
            const pid_t child = fork();
            assert_true(child >= 0);
            if (child == 0) {
                tree_open(&t);
                stop_at = steps[s];
                stop_in = at;
                tool__step_hook = kill_at;
                tool_result r = tree_call(
                    &t, "refactor", "{\"operation\":\"rename\",\"name\":\"f\",\"to\":\"renamed\"}", NULL);
                _exit(r.status == TOOL_OK ? 0 : 1);
            }
            int status;
            assert_int_equal(waitpid(child, &status, 0), child);
            const bool was_killed = WIFSIGNALED(status);
            assert_true(was_killed || (WIFEXITED(status) && WEXITSTATUS(status) == 0));
            tree_open(&t);
            tool_workspace_recover(t.w);
            const int n = count_new(&t);
            if (n != 0 && n != 5) fail_msg("killed at %s %d: %d of 5 files are new", steps[s], at, n);
            if (!was_killed) assert_int_equal(n, 5);
            base_buf notes = {0};
            tool_workspace_notes(t.w, &notes);
            if (was_killed && !strcmp(steps[s], "file") && at < 5)
                assert_contains(notes.data, "cut off by a kill");
            base_buf_free(&notes);
            /* A second start has nothing left to do, and the tree can be worked on. */
            tree_open(&t);
            tool_workspace_recover(t.w);
            assert_int_equal(count_new(&t), n);
            tree_remove(&t);
        }
}

static void test_refactor__what_somebody_changed_after_a_kill_stays(void **state)
{
    tree t;
    put_five(&t);
    const pid_t child = fork();
    if (child == 0) {
        tree_open(&t);
        stop_at = "file";
        stop_in = 3;
        tool__step_hook = kill_at;
        tree_call(&t, "refactor", "{\"operation\":\"rename\",\"name\":\"f\",\"to\":\"renamed\"}", NULL);
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status));
    tree_put(&t, "a.py", "mine = 1\n");
    tree_open(&t);
    tool_workspace_recover(t.w);
    expect(&t, "a.py", "mine = 1\n");
    expect(&t, "m0.py", "from a import f\nf(0)\n");
    tree_remove(&t);
}

static void test_refactor__esc_between_two_files_takes_all_back(void **state)
{
    tree t;
    put_five(&t);
    tree_open(&t);
    t.limits.cancel = &cancelled;
    atomic_store(&cancelled, false);
    tool__step_hook = cancel_at;
    tool_result r =
        tree_call(&t, "refactor", "{\"operation\":\"rename\",\"name\":\"f\",\"to\":\"renamed\"}", NULL);
    tool__step_hook = NULL;
    assert_int_equal(r.status, TOOL_CANCELLED);
    assert_contains(r.text.data, "all 5 files are as they were");
    assert_int_equal(count_new(&t), 0);
    tool_result_free(&r);
    tree_remove(&t);
}

int main(void)
{
    /* Pending changes are named in the data folder: one of the tests' own. */
    char data[] = "/tmp/kvist-refactor-XXXXXX";
    const char *home = getenv("XDG_DATA_HOME");
    char grammars[600];
    snprintf(grammars, sizeof grammars, "%s%s/kvist/grammars",
        home             ? home
        : getenv("HOME") ? getenv("HOME")
                         : "",
        home ? "" : "/.local/share");
    if (!getenv("KVIST_GRAMMAR_PATH")) setenv("KVIST_GRAMMAR_PATH", grammars, 1);
    if (!mkdtemp(data)) return 1;
    setenv("XDG_DATA_HOME", data, 1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_refactor__python_follows_imports_and_scopes),
        cmocka_unit_test(test_refactor__python_members_and_parameters),
        cmocka_unit_test(test_refactor__c_keeps_fields_tags_labels_and_locals),
        cmocka_unit_test(test_refactor__alternatives_are_renamed_together),
        cmocka_unit_test(test_refactor__go_java_and_javascript),
        cmocka_unit_test(test_refactor__what_embeds_a_type_in_go_follows_it),
        cmocka_unit_test(test_refactor__java_tells_types_of_one_name_apart),
        cmocka_unit_test(test_refactor__javascript_passages_and_members),
        cmocka_unit_test(test_refactor__go_packages_and_unnamed_types),
        cmocka_unit_test(test_refactor__refuses_what_cannot_be),
        cmocka_unit_test(test_refactor__tells_which_documents_write_the_old_name),
        cmocka_unit_test(test_refactor__one_diff_one_undo),
        cmocka_unit_test(test_refactor__delete_lists_callers_or_replaces_them),
        cmocka_unit_test(test_refactor__delete_takes_its_tests),
        cmocka_unit_test(test_refactor__delete_writes_what_callers_use_instead),
        cmocka_unit_test(test_refactor__signature_changes_every_call),
        cmocka_unit_test(test_refactor__signature_parts_go_s_groups),
        cmocka_unit_test(test_refactor__signature_puts_the_default_into_the_body),
        cmocka_unit_test(test_refactor__signature_declares_as_the_language_does),
        cmocka_unit_test(test_refactor__move_finds_the_file_that_is_meant),
        cmocka_unit_test(test_refactor__move_takes_what_is_needed),
        cmocka_unit_test(test_refactor__move_takes_exports_along),
        cmocka_unit_test(test_refactor__a_kill_leaves_all_old_or_all_new),
        cmocka_unit_test(test_refactor__what_somebody_changed_after_a_kill_stays),
        cmocka_unit_test(test_refactor__esc_between_two_files_takes_all_back),
    };
    const int failed = cmocka_run_group_tests_name("refactor", tests, NULL, NULL);
    char remove[80];
    snprintf(remove, sizeof remove, "rm -rf %s", data);
    return system(remove) ? 1 : failed;
}
