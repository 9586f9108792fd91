/*
 * Renames: which places change in each language, what stays and is told, what is refused.
 */
#include "refactor.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>

static void test_rename__python_follows_imports_and_scopes(void **state)
{
    tree t;
    tree_make(&t, true);
    tree_put(&t, "shop/__init__.py", "from .total import add_up\n__all__ = ['add_up']\n");
    tree_put(&t, "shop/total.py",
        "def add_up(prices):\n    \"\"\"add_up adds.\"\"\"\n    return sum(prices)\n\n\n"
        "def twice(prices):\n"
        "    def inner(add_up):\n"
        "        return add_up(prices)\n"
        "    return add_up(prices) + inner(len)\n\n\n"
        "class Cart:\n    def add_up(self):\n        return add_up([1])\n");
    tree_put(&t, "main.py",
        "import shop\nfrom shop import add_up as plus\nimport shop.total as st\n\n"
        "print(shop.add_up([1]), plus([2]), st.add_up([3]))\nprint(shop.total.Cart().add_up())\n");
    tree_put(&t, "other.py", "def add_up(x):\n    return x\n\n\nprint(add_up(1))\n");
    tree_open(&t);
    renames(&t, "shop/total.py:add_up", "total_of", NULL);
    expect(&t, "shop/__init__.py", "from .total import total_of\n__all__ = ['total_of']\n");
    expect(&t, "shop/total.py",
        "def total_of(prices):\n    \"\"\"total_of adds.\"\"\"\n    return sum(prices)\n\n\n"
        "def twice(prices):\n"
        "    def inner(add_up):\n"
        "        return add_up(prices)\n"
        "    return total_of(prices) + inner(len)\n\n\n"
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

static void test_rename__python_members_and_parameters(void **state)
{
    tree t;
    tree_make(&t, true);
    tree_put(&t, "a.py",
        "class Base:\n"
        "    def __init__(self, size):\n"
        "        self.size = size\n\n"
        "    def paint(self):\n"
        "        pass\n\n\n"
        "class Box(Base):\n    def paint(self):\n        super().paint()\n\n\n"
        "class Wall:\n    def paint(self):\n        pass\n\n\n"
        "def show(box: Box, wall: Wall):\n    box.paint()\n    wall.paint()\n    Base(size=3).paint()\n");
    tree_open(&t);
    refuses(&t, "{\"operation\":\"rename\",\"name\":\"paint\",\"to\":\"draw\"}", TOOL_FAILED,
        "is defined 3 times");
    renames(&t, "Box.paint", "draw", NULL);
    renames(&t, "__init__.size", "width", NULL);
    expect(&t, "a.py",
        "class Base:\n"
        "    def __init__(self, width):\n"
        "        self.size = width\n\n"
        "    def draw(self):\n"
        "        pass\n\n\n"
        "class Box(Base):\n    def draw(self):\n        super().draw()\n\n\n"
        "class Wall:\n    def paint(self):\n        pass\n\n\n"
        "def show(box: Box, wall: Wall):\n    box.draw()\n    wall.paint()\n    Base(width=3).draw()\n");
    tree_remove(&t);
}

static void test_rename__c_keeps_fields_tags_labels_and_locals(void **state)
{
    tree t;
    tree_make(&t, true);
    tree_put(&t, "ring.h",
        "struct ring { int put; };\n"
        "int put(struct ring *r);\n"
        "#define PUT(r) put(r)\n"
        "#define FIELD(r) (r)->put\n");
    tree_put(&t, "ring.c",
        "#include \"ring.h\"\r\n"
        "\r\n"
        "int put(struct ring *r)\r\n"
        "{\r\n"
        "\tgoto put;\r\n"
        "put:\r\n"
        "\treturn r->put;\r\n"
        "}\r\n");
    tree_put(&t, "use.c",
        "#include \"ring.h\"\n"
        "int f(int put)\n"
        "{\n"
        "    return put;\n"
        "}\n"
        "int g(struct ring *r)\n"
        "{\n"
        "    return put(r) + f(1);\n"
        "}\n");
    tree_put(
        &t, "own.c", "static int put(void)\n{\n    return 1;\n}\nint h(void)\n{\n    return put();\n}\n");
    tree_open(&t);
    renames(&t, "ring.c:put", "ring_put", NULL);
    expect(&t, "ring.h",
        "struct ring { int put; };\n"
        "int ring_put(struct ring *r);\n"
        "#define PUT(r) ring_put(r)\n"
        "#define FIELD(r) (r)->put\n");
    expect(&t, "ring.c",
        "#include \"ring.h\"\r\n"
        "\r\n"
        "int ring_put(struct ring *r)\r\n"
        "{\r\n"
        "\tgoto put;\r\n"
        "put:\r\n"
        "\treturn r->put;\r\n"
        "}\r\n");
    expect(&t, "use.c",
        "#include \"ring.h\"\n"
        "int f(int put)\n"
        "{\n"
        "    return put;\n"
        "}\n"
        "int g(struct ring *r)\n"
        "{\n"
        "    return ring_put(r) + f(1);\n"
        "}\n");
    expect(&t, "own.c", "static int put(void)\n{\n    return 1;\n}\nint h(void)\n{\n    return put();\n}\n");
    renames(&t, "ring.put", "first", NULL);
    expect(&t, "ring.h",
        "struct ring { int first; };\n"
        "int ring_put(struct ring *r);\n"
        "#define PUT(r) ring_put(r)\n"
        "#define FIELD(r) (r)->first\n");
    renames(&t, "f.put", "n", NULL);
    char *use = tree_get(&t, "use.c");
    assert_contains(use, "int f(int n)\n{\n    return n;\n}");
    free(use);
    tree_remove(&t);
}

static void test_rename__alternatives_are_renamed_together(void **state)
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

static void test_rename__what_embeds_a_type_in_go_follows_it(void **state)
{
    tree t;
    tree_make(&t, true);
    tree_put(&t, "go.mod", "module m\n");
    tree_put(&t, "a.go", "package m\n\ntype conf struct{ a int }\n\ntype plain struct{ conf int }\n");
    tree_put(&t, "b.go",
        "package m\n\ntype R struct {\n\tconf\n\tn int\n}\n\ntype P struct {\n\t*conf\n}\n\n"
        "func f(r *R, p plain) int {\n"
        "\tq := R{conf: conf{a: 1}}\n"
        "\treturn r.conf.a + q.conf.a + p.conf\n"
        "}\n");
    tree_open(&t);
    refuses(&t, "{\"operation\":\"rename\",\"name\":\"R.conf\",\"to\":\"setup\"}", TOOL_FAILED,
        "R embeds conf: that field has the type's name");
    renames(&t, "a.go:3", "setup", NULL);
    expect(&t, "a.go", "package m\n\ntype setup struct{ a int }\n\ntype plain struct{ conf int }\n");
    expect(&t, "b.go",
        "package m\n\ntype R struct {\n\tsetup\n\tn int\n}\n\ntype P struct {\n\t*setup\n}\n\n"
        "func f(r *R, p plain) int {\n"
        "\tq := R{setup: setup{a: 1}}\n"
        "\treturn r.setup.a + q.setup.a + p.conf\n"
        "}\n");
    tree_remove(&t);
}

static void test_rename__go_java_and_javascript(void **state)
{
    tree t;
    tree_make(&t, true);
    tree_put(&t, "go.mod", "module example.com/shop\n");
    tree_put(&t, "cart/cart.go",
        "package cart\n\n"
        "func Total(n int) int { return n }\n\n"
        "func twice(n int) int {\n"
        "\tTotal := Total(n)\n"
        "\treturn Total\n"
        "}\n");
    tree_put(&t, "main.go",
        "package main\n\nimport \"example.com/shop/cart\"\n\nfunc main() {\n\tprintln(cart.Total(1))\n}\n");
    tree_put(&t, "a/Cart.java",
        "package a;\n\n"
        "public class Cart {\n"
        "    private int total;\n\n"
        "    public int total() {\n"
        "        int n = total;\n"
        "        return n + this.total;\n"
        "    }\n"
        "}\n");
    tree_put(&t, "b/Use.java",
        "package b;\n\n"
        "import a.Cart;\n\n"
        "class Use {\n"
        "    int f(Cart cart) {\n"
        "        return cart.total();\n"
        "    }\n"
        "}\n");
    tree_put(&t, "lib.js",
        "function total(n) {\n"
        "  return n;\n"
        "}\n"
        "const twice = (total) => total * 2;\n"
        "module.exports = { total, twice };\n");
    tree_put(&t, "use.js",
        "const { total } = require('./lib');\n"
        "const lib = require('./lib');\n"
        "console.log(total(1), lib.total(2), { total });\n");
    tree_open(&t);
    renames(&t, "cart/cart.go:Total", "Sum", NULL);
    expect(&t, "cart/cart.go",
        "package cart\n\n"
        "func Sum(n int) int { return n }\n\n"
        "func twice(n int) int {\n"
        "\tTotal := Sum(n)\n"
        "\treturn Total\n"
        "}\n");
    expect(&t, "main.go",
        "package main\n\nimport \"example.com/shop/cart\"\n\nfunc main() {\n\tprintln(cart.Sum(1))\n}\n");
    renames(&t, "a/Cart.java:6", "sum", NULL);
    expect(&t, "a/Cart.java",
        "package a;\n\n"
        "public class Cart {\n"
        "    private int total;\n\n"
        "    public int sum() {\n"
        "        int n = total;\n"
        "        return n + this.total;\n"
        "    }\n"
        "}\n");
    expect(&t, "b/Use.java",
        "package b;\n\n"
        "import a.Cart;\n\n"
        "class Use {\n"
        "    int f(Cart cart) {\n"
        "        return cart.sum();\n"
        "    }\n"
        "}\n");
    renames(&t, "lib.js:total", "sum", NULL);
    expect(&t, "lib.js",
        "function sum(n) {\n"
        "  return n;\n"
        "}\n"
        "const twice = (total) => total * 2;\n"
        "module.exports = { sum, twice };\n");
    expect(&t, "use.js",
        "const { sum } = require('./lib');\n"
        "const lib = require('./lib');\n"
        "console.log(sum(1), lib.sum(2), { total: sum });\n");
    tree_remove(&t);
}

static void test_rename__java_tells_types_of_one_name_apart(void **state)
{
    tree t;
    tree_make(&t, true);
    tree_put(&t, "p/A.java",
        "package p;\n\nclass A {\n    private static final Get<String> NAME = o -> help();\n    int left;\n\n"
        "    static String help() {\n        return \"\";\n    }\n\n"
        "    static class Builder {\n"
        "        int rest;\n\n"
        "        Builder size(int size) {\n"
        "            return this;\n"
        "        }\n\n"
        "        int all() {\n"
        "            return left + NAME.get(1);\n"
        "        }\n"
        "    }\n"
        "}\n");
    tree_put(&t, "p/B.java",
        "package p;\n\n"
        "class B {\n"
        "    static class Builder {\n"
        "        Builder size(int n) {\n"
        "            return this;\n"
        "        }\n"
        "    }\n\n"
        "    void f() {\n"
        "        new Builder().size(1);\n"
        "        A.Builder b = null;\n"
        "    }\n"
        "}\n");
    tree_put(&t, "p/Top.java", "package p;\n\ninterface Top {\n    void draw(int n);\n}\n");
    tree_put(&t, "p/Middle.java", "package p;\n\nabstract class Middle implements Top {\n}\n");
    tree_put(&t, "p/Low.java",
        "package p;\n\n"
        "class Low extends Middle {\n"
        "    public void draw(int n) {\n"
        "    }\n\n"
        "    void g() {\n"
        "        Top top = null;\n"
        "        top.draw(1);\n"
        "        Top other = new Top() {\n"
        "            public void draw(int n) {\n"
        "            }\n"
        "        };\n"
        "    }\n"
        "}\n");
    tree_open(&t);
    assert_int_equal(tool_workspace_refresh(t.w, NULL, NULL, NULL), 0);
    renames(&t, "p/A.java:14", "width", NULL);
    renames(&t, "p/A.java:4", "TITLE", NULL);
    renames(&t, "p/A.java:5", "remaining", NULL);
    expect(&t, "p/A.java",
        "package p;\n\n"
        "class A {\n"
        "    private static final Get<String> TITLE = o -> help();\n"
        "    int remaining;\n\n"
        "    static String help() {\n"
        "        return \"\";\n"
        "    }\n\n"
        "    static class Builder {\n"
        "        int rest;\n\n"
        "        Builder width(int size) {\n"
        "            return this;\n"
        "        }\n\n"
        "        int all() {\n"
        "            return remaining + TITLE.get(1);\n"
        "        }\n"
        "    }\n"
        "}\n");
    expect(&t, "p/B.java",
        "package p;\n\n"
        "class B {\n"
        "    static class Builder {\n"
        "        Builder size(int n) {\n"
        "            return this;\n"
        "        }\n"
        "    }\n\n"
        "    void f() {\n"
        "        new Builder().size(1);\n"
        "        A.Builder b = null;\n"
        "    }\n"
        "}\n");
    renames(&t, "p/Top.java:4", "paint", NULL);
    expect(&t, "p/Low.java",
        "package p;\n\n"
        "class Low extends Middle {\n"
        "    public void paint(int n) {\n"
        "    }\n\n"
        "    void g() {\n"
        "        Top top = null;\n"
        "        top.paint(1);\n"
        "        Top other = new Top() {\n"
        "            public void paint(int n) {\n"
        "            }\n"
        "        };\n"
        "    }\n"
        "}\n");
    renames(&t, "p/Low.java:11", "sketch", NULL);
    expect(&t, "p/Top.java", "package p;\n\ninterface Top {\n    void sketch(int n);\n}\n");
    tree_remove(&t);
}

static void test_rename__javascript_passages_and_members(void **state)
{
    tree t;
    tree_make(&t, true);
    tree_put(&t, "list.ts", "export default class List {\n  size = 0;\n}\n");
    tree_put(&t, "use.ts",
        "import List from './list.js';\n"
        "const {size} = new List();\n"
        "function f(l: Partial<List>) {\n"
        "  return l.size;\n"
        "}\n");
    tree_put(&t, "lib.js",
        "/**\n * @param {Object} given what was given\n */\nfunction sum(given) {\n  return given;\n}\n"
        "exports.sum = sum;\n");
    tree_put(&t, "nested.js",
        "function make() {\n"
        "  return { tap(x) { return x; } };\n"
        "}\n"
        "function other() {\n"
        "  return { tap(x) { return 1; } };\n"
        "}\n"
        "use(other().tap(1));\n");
    tree_put(&t, "main.js",
        "const add = require('./lib').sum;\n"
        "run({ check: function (x) { return x; } });\n"
        "run({ check: function (x) { return 1; } });\n");
    tree_open(&t);
    assert_int_equal(tool_workspace_refresh(t.w, NULL, NULL, NULL), 0);
    renames(&t, "list.ts:List", "Row", NULL);
    expect(&t, "list.ts", "export default class Row {\n  size = 0;\n}\n");
    renames(&t, "list.ts:2", "length", "Not sure and left: use.ts:2");
    expect(&t, "use.ts",
        "import Row from './list.js';\n"
        "const {size} = new Row();\n"
        "function f(l: Partial<Row>) {\n"
        "  return l.length;\n"
        "}\n");
    renames(&t, "lib.js:sum", "total", NULL);
    renames(&t, "lib.js:total.given", "value", NULL);
    expect(&t, "lib.js",
        "/**\n * @param {Object} value what was given\n */\nfunction total(value) {\n  return value;\n}\n"
        "exports.total = total;\n");
    renames(&t, "nested.js:2", "press", "Not sure and left: nested.js:5");
    expect(&t, "nested.js",
        "function make() {\n"
        "  return { press(x) { return x; } };\n"
        "}\n"
        "function other() {\n"
        "  return { tap(x) { return 1; } };\n"
        "}\n"
        "use(other().tap(1));\n");
    renames(&t, "main.js:2", "test", "Not sure and left: main.js:3");
    expect(&t, "main.js",
        "const add = require('./lib').total;\n"
        "run({ test: function (x) { return x; } });\n"
        "run({ check: function (x) { return 1; } });\n");
    tree_remove(&t);
}

static void test_rename__go_packages_and_unnamed_types(void **state)
{
    tree t;
    tree_make(&t, true);
    tree_put(&t, "go.mod", "module example.com/go-human\n");
    tree_put(&t, "human.go",
        "// The package human writes.\npackage human\n\nfunc Comma(n int) int { return n }\n");
    tree_put(&t, "human_test.go",
        "package human_test\n\n"
        "import (\n"
        "\t\"testing\"\n\n"
        "\t\"example.com/go-human\"\n"
        ")\n\n"
        "func TestComma(t *testing.T) {\n"
        "\tfor _, c := range []struct{ n, want int }{{1, 1}} {\n"
        "\t\tif human.Comma(c.n) != c.want {\n"
        "\t\t\tt.Fail()\n"
        "\t\t}\n"
        "\t}\n"
        "\tfor _, c := range []struct{ want int }{{1}} {\n"
        "\t\tprintln(c.want)\n"
        "\t}\n"
        "}\n");
    tree_open(&t);
    assert_int_equal(tool_workspace_refresh(t.w, NULL, NULL, NULL), 0);
    renames(&t, "Comma", "Commas", NULL);
    char *now = tree_get(&t, "human_test.go");
    assert_contains(now, "human.Commas(c.n)");
    free(now);
    tree_remove(&t);
}

static void test_rename__a_type_in_a_function_is_its_own(void **state)
{
    tree t;
    tree_make(&t, true);
    tree_put(&t, "go.mod", "module example.com/doc\n");
    tree_put(&t, "doc_test.go",
        "package doc\n\n"
        "func TestA() {\n"
        "\ttype doc struct {\n"
        "\t\tSize int\n"
        "\t}\n"
        "\tx := doc{Size: 1}\n"
        "\tprintln(x.Size)\n"
        "}\n\n"
        "func TestB() {\n\ttype doc struct{ Size int }\n\ty := doc{Size: 2}\n\tprintln(y.Size)\n}\n");
    tree_put(&t, "time.go",
        "package doc\n\ntype Date struct{}\n\nfunc (d Date) Text() string { return \"\" }\n\n"
        "type Stamp struct{ Date }\n\nfunc (s Stamp) Text() string { return s.Date.Text() }\n");
    tree_open(&t);
    assert_int_equal(tool_workspace_refresh(t.w, NULL, NULL, NULL), 0);
    renames(&t, "doc_test.go:5", "Width", NULL);
    expect(&t, "doc_test.go",
        "package doc\n\n"
        "func TestA() {\n"
        "\ttype doc struct {\n"
        "\t\tWidth int\n"
        "\t}\n"
        "\tx := doc{Width: 1}\n"
        "\tprintln(x.Width)\n"
        "}\n\n"
        "func TestB() {\n\ttype doc struct{ Size int }\n\ty := doc{Size: 2}\n\tprintln(y.Size)\n}\n");
    /* What embeds a type and has a method of that name does not override it. */
    renames(&t, "Stamp.Text", "String", NULL);
    char *now = tree_get(&t, "time.go");
    assert_contains(now, "func (d Date) Text()");
    assert_contains(now, "func (s Stamp) String()");
    free(now);
    tree_remove(&t);
}

static void test_rename__a_macro_of_a_file_is_not_the_header_s(void **state)
{
    tree t;
    tree_make(&t, true);
    tree_put(&t, "run.h", "#ifndef RUN\n#define RUN(f) f()\n#endif\n");
    tree_put(&t, "own.c",
        "#define RUN(f) f(1)\n#include \"run.h\"\nint g(int);\nint own(void) { return RUN(g); }\n");
    tree_put(&t, "all.c", "#include \"run.h\"\nint h(void);\nint all(void) { return RUN(h); }\n");
    tree_open(&t);
    renames(&t, "own.c:RUN", "RUN_ONE", NULL);
    expect(&t, "all.c", "#include \"run.h\"\nint h(void);\nint all(void) { return RUN(h); }\n");
    expect(&t, "run.h", "#ifndef RUN\n#define RUN(f) f()\n#endif\n");
    expect(&t, "own.c",
        "#define RUN_ONE(f) f(1)\n#include \"run.h\"\nint g(int);\nint own(void) { return RUN_ONE(g); }\n");
    tree_remove(&t);
}

static void test_rename__arguments_of_a_constructor_are_no_fields(void **state)
{
    tree t;
    tree_make(&t, true);
    tree_put(&t, "a.py",
        "class Env:\n"
        "    def __init__(self, prefix):\n"
        "        self.prefix_of_all = prefix\n"
        "        self.sep = 1\n\n\n"
        "class Loose:\n    sep: int\n\n\nEnv(sep=2)\nLoose(sep=3)\n");
    tree_open(&t);
    renames(&t, "Env.sep", "mark", NULL);
    char *now = tree_get(&t, "a.py");
    assert_contains(now, "self.mark = 1");
    assert_contains(now, "Env(sep=2)");
    free(now);
    renames(&t, "Loose.sep", "gap", NULL);
    now = tree_get(&t, "a.py");
    assert_contains(now, "Loose(gap=3)");
    free(now);
    tree_remove(&t);
}

static void test_rename__refuses_what_cannot_be(void **state)
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

/* A text that is looked up as a path follows where the path in front of the name means the definition. */
static void test_rename__paths_in_strings_and_settings_follow(void **state)
{
    tree t;
    tree_make(&t, true);
    tree_put(&t, "pkg/__init__.py", "from .net import fetch\n");
    tree_put(&t, "pkg/net.py",
        "def fetch(url):\n    return url\n\n\nclass Client:\n    def get(self):\n        return fetch(1)\n");
    tree_put(&t, "pkg/other.py", "def fetch(x):\n    return x\n");
    tree_put(&t, "test_net.py",
        "from unittest import mock\n\n"
        "mock.patch(\"pkg.net.fetch\")\n"
        "mock.patch('pkg.fetch')\n"
        "mock.patch('pkg.other.fetch')\n"
        "mock.patch('pkg.net.Client.get')\n"
        "mock.patch('pkg.other.Client.get')\n"
        "print('fetch', 'to fetch.', 'a..fetch')\n");
    tree_put(
        &t, "pyproject.toml", "[project.scripts]\nfetch = \"pkg.net:fetch\"\nother = \"pkg.other:fetch\"\n");
    tree_open(&t);
    char *said = refactor_with(
        &t, "{\"operation\":\"rename\",\"name\":\"fetch\",\"to\":\"load\",\"path\":\"pkg/net.py\"}", TOOL_OK);
    assert_contains(said, "Documents that still write it, left: pyproject.toml:3");
    free(said);
    expect(
        &t, "pyproject.toml", "[project.scripts]\nfetch = \"pkg.net:load\"\nother = \"pkg.other:fetch\"\n");
    free(refactor_with(&t, "{\"operation\":\"rename\",\"name\":\"Client.get\",\"to\":\"take\"}", TOOL_OK));
    expect(&t, "test_net.py",
        "from unittest import mock\n\n"
        "mock.patch(\"pkg.net.load\")\n"
        "mock.patch('pkg.load')\n"
        "mock.patch('pkg.other.fetch')\n"
        "mock.patch('pkg.net.Client.take')\n"
        "mock.patch('pkg.other.Client.get')\n"
        "print('fetch', 'to fetch.', 'a..fetch')\n");
    tree_remove(&t);
}

/* A string that gives an attribute its name means what the object in front has; a type's own text says the type's name. */
static void test_rename__names_of_attributes_and_a_type_s_own_text_follow(void **state)
{
    tree t;
    tree_make(&t, true);
    tree_put(&t, "pkg/__init__.py", "");
    tree_put(&t, "pkg/zone.py",
        "BASE_OFFSET = 1\n\n\nclass FixedZone:\n    def name_of(self):\n        return 'FixedZone'\n\n"
        "    def __repr__(self):\n        return \"<FixedZone %r>\" % self.name_of()\n");
    tree_put(&t, "pkg/other.py", "BASE_OFFSET = 2\n");
    tree_put(&t, "test_zone.py",
        "from pkg import other, zone\nfrom pkg.zone import FixedZone\n\n\ndef test(patch):\n"
        "    patch.setattr(zone, \"BASE_OFFSET\", 3)\n    setattr(other, 'BASE_OFFSET', 3)\n"
        "    getattr(zone, 'BASE_OFFSET_2', 'BASE_OFFSET')\n    patch.object(\n        FixedZone, 'name_of')\n"
        "    patch.object(zone, 'name_of')\n");
    tree_open(&t);
    renames(&t, "pkg/zone.py:BASE_OFFSET", "FIRST_OFFSET", NULL);
    renames(&t, "FixedZone.name_of", "label_of", NULL);
    renames(&t, "FixedZone", "StillZone", "1 place in comments and strings left");
    expect(&t, "pkg/zone.py",
        "FIRST_OFFSET = 1\n\n\nclass StillZone:\n    def label_of(self):\n        return 'FixedZone'\n\n"
        "    def __repr__(self):\n        return \"<StillZone %r>\" % self.label_of()\n");
    expect(&t, "test_zone.py",
        "from pkg import other, zone\nfrom pkg.zone import StillZone\n\n\ndef test(patch):\n"
        "    patch.setattr(zone, \"FIRST_OFFSET\", 3)\n    setattr(other, 'BASE_OFFSET', 3)\n"
        "    getattr(zone, 'BASE_OFFSET_2', 'BASE_OFFSET')\n    patch.object(\n        StillZone, 'label_of')\n"
        "    patch.object(zone, 'name_of')\n");
    tree_remove(&t);
}

static void test_rename__tells_which_documents_write_the_old_name(void **state)
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

/* this.range of Java and TypeScript has the type that the field is declared with. */

static void test_rename__reads_the_types_of_fields(void **state)
{
    tree t;
    tree_make(&t, true);
    tree_put(
        &t, "Range.java", "class Range {\n    boolean holds(int v) {\n        return v > 0;\n    }\n}\n");
    tree_put(&t, "Need.java",
        "class Need {\n    final Range range;\n    final Need next;\n\n    boolean holds(int v) {\n"
        "        return this.range.holds(v) && this.next.holds(v);\n    }\n}\n");
    tree_open(&t);
    renames(&t, "Range.holds", "contains", NULL);
    expect(&t, "Need.java",
        "class Need {\n    final Range range;\n    final Need next;\n\n    boolean holds(int v) {\n"
        "        return this.range.contains(v) && this.next.holds(v);\n    }\n}\n");
    tree_remove(&t);
}

/* What its own comment calls it goes with it; documents where the call says so, but for what tells of older versions. */

static void test_rename__changes_its_own_comment_and_documents_on_request(void **state)
{
    static const char
        go[] = "package a\n\n"
               "// Replace sets it. Replace is atomic.\n"
               "func Replace() {}\n\n"
               "// Replace is used.\n"
               "func g() { Replace() }\n",
        rst[] = "Use\n---\n\n.. autofunction:: fetch\n\nTo fetch is to call ``fetch(x)``.\n\n    fetch()\n",
        news[] = "1.0: fetch() is new\n";
    tree t;
    tree_make(&t, true);
    tree_put(&t, "a.go", go);
    tree_put(
        &t, "b.py", "def fetch(x):\n    \"\"\"Fetch it.\n\n    >>> fetch(1)\n    We fetch.\n    \"\"\"\n");
    tree_put(&t, "docs/index.rst", rst);
    tree_put(&t, "CHANGELOG.md", news);
    tree_open(&t);
    renames(&t, "Replace", "Swap", "2 places in comments and strings left.");
    expect(&t, "a.go",
        "package a\n\n"
        "// Swap sets it. Replace is atomic.\n"
        "func Swap() {}\n\n"
        "// Replace is used.\n"
        "func g() { Swap() }\n");
    free(refactor_with(
        &t, "{\"operation\":\"rename\",\"name\":\"fetch\",\"to\":\"load\",\"text\":true}", TOOL_OK));
    expect(&t, "docs/index.rst",
        "Use\n---\n\n.. autofunction:: load\n\nTo fetch is to call ``load(x)``.\n\n    load()\n");
    expect(&t, "CHANGELOG.md", news);
    tree_remove(&t);
}

/* A macro that is defined again behind an #undef; fields of two unnamed structs of one type, told apart by the way to them. */
static void test_rename__c_tells_macros_and_unnamed_structs_apart(void **state)
{
    tree t;
    tree_make(&t, true);
    tree_put(&t, "a.c",
        "#define S(x) ((x) + 1)\nint f(void) { return S(1); }\n#undef S\n"
        "#define S(x) ((x) + 2)\nint g(void) { return S(1); }\n#undef S\n");
    tree_put(&t, "made.h", "typedef struct made_s *made;\nmade make(void);\n");
    tree_put(&t, "made.c",
        "#include \"made.h\"\nstruct made_s {\n    int level;\n};\n"
        "int g(made m) { return m->level; }\n");
    tree_put(&t, "b.c",
        "struct node {\n    union {\n        struct {\n            int top;\n        } seq;\n"
        "        struct {\n            int top;\n        } map;\n    } data;\n};\n"
        "int f(struct node *n, int i) { return n->data.seq.top + (n[i].data.map).top; }\n");
    tree_open(&t);
    assert_int_equal(tool_workspace_refresh(t.w, NULL, NULL, NULL), 0);
    renames(&t, "made_s.level", "depth", NULL);
    expect(&t, "made.c",
        "#include \"made.h\"\nstruct made_s {\n    int depth;\n};\n"
        "int g(made m) { return m->depth; }\n");
    renames(&t, "a.c:4", "T", NULL);
    expect(&t, "a.c",
        "#define S(x) ((x) + 1)\nint f(void) { return S(1); }\n#undef S\n"
        "#define T(x) ((x) + 2)\nint g(void) { return T(1); }\n#undef T\n");
    tree_put(&t, "own.c", "#define V(x) (x)\nstatic int w(void) { return V(1); }\n");
    renames(&t, "a.c:4", "V", NULL);
    renames(&t, "a.c:4", "T", NULL);
    refuses(&t, "{\"operation\":\"rename\",\"name\":\"a.c:4\",\"to\":\"S\"}", TOOL_REFUSED, "taken");
    renames(&t, "b.c:7", "last", NULL);
    expect(&t, "b.c",
        "struct node {\n    union {\n        struct {\n            int top;\n        } seq;\n"
        "        struct {\n            int last;\n        } map;\n    } data;\n};\n"
        "int f(struct node *n, int i) { return n->data.seq.top + (n[i].data.map).last; }\n");
    tree_remove(&t);
}

/* A class in a class is its member, whatever else has the name; package.module.name is followed through its import. */
static void test_rename__python_classes_in_classes_and_dotted_names(void **state)
{
    tree t;
    tree_make(&t, true);
    tree_put(&t, "a.py",
        "class One:\n    class Meta:\n        n = 1\n\n    def f(self):\n        return self.Meta.n\n\n\n"
        "class Two:\n    class Meta:\n        n = 2\n\n    def f(self):\n        return self.Meta.n\n\n\nMeta = 3\n");
    tree_put(&t, "shop/__init__.py", "");
    tree_put(&t, "shop/errors.py", "class Gone(Exception):\n    pass\n");
    tree_put(&t, "use.py",
        "import shop\nimport shop.errors as e\n\nx = [shop.errors.Gone, e.Gone, shop.other.Gone]\n");
    tree_put(&t, "either.py",
        "try:\n    from new import Group\nexcept ImportError:\n    class Group(Exception):\n        pass\n\n\n"
        "raise Group()\n");
    tree_open(&t);
    renames(&t, "One.Meta", "Options", NULL);
    expect(&t, "a.py",
        "class One:\n    class Options:\n        n = 1\n\n    def f(self):\n        return self.Options.n\n\n\n"
        "class Two:\n    class Meta:\n        n = 2\n\n    def f(self):\n        return self.Meta.n\n\n\nMeta = 3\n");
    renames(&t, "Gone", "Missing", NULL);
    expect(&t, "use.py",
        "import shop\nimport shop.errors as e\n\nx = [shop.errors.Missing, e.Missing, shop.other.Gone]\n");
    renames(
        &t, "either.py:Group", "Bundle", "Not sure and left: either.py:2 (its file may import it instead)");
    tree_remove(&t);
}

/* Go: a parameter of its type's name, a field and a method of it, names of a package that is imported with a dot. */
static void test_rename__go_parameters_dots_and_members_of_the_types_name(void **state)
{
    tree t;
    tree_make(&t, true);
    tree_put(&t, "go.mod", "module m.org/p\n");
    tree_put(&t, "a.go",
        "package p\n\ntype item struct {\n\titem int\n}\n\nvar _ = item{}\n\nfunc f(item item) int { return item.item }\n\n"
        "type Level int\n\nfunc (l Level) Level() int { return 1 }\n");
    tree_put(&t, "a_test.go", "package p_test\n\nimport . \"m.org/p\"\n\nvar x Level\n");
    tree_open(&t);
    refuses(&t, "{\"operation\":\"rename\",\"name\":\"_\",\"to\":\"x\"}", TOOL_FAILED, "no definition");
    renames(&t, "a.go:3", "piece", NULL);
    renames(&t, "a.go:11", "Rank", NULL);
    expect(&t, "a.go",
        "package p\n\ntype piece struct {\n\titem int\n}\n\nvar _ = piece{}\n\nfunc f(item piece) int { return item.item }\n\n"
        "type Rank int\n\nfunc (l Rank) Level() int { return 1 }\n");
    expect(&t, "a_test.go", "package p_test\n\nimport . \"m.org/p\"\n\nvar x Rank\n");
    tree_remove(&t);
}

/* JavaScript: this[name] is no field, a comment's {Type} is the type, a property of an unknown object may be another. */
static void test_rename__javascript_comments_and_unknown_objects(void **state)
{
    tree t;
    tree_make(&t, true);
    tree_put(&t, "a.js",
        "const kCode = Symbol('kCode');\n\nclass Event {\n  /** @param {Event} other is an Event. */\n  constructor(other) {\n"
        "    this[kCode] = other.wasClean;\n  }\n\n  get wasClean() {\n    return this[kCode];\n  }\n}\n");
    tree_open(&t);
    renames(&t, "kCode", "kNumber", NULL);
    renames(&t, "Event", "Notice", NULL);
    renames(&t, "Notice.wasClean", "isClean", "the object's type is not known");
    expect(&t, "a.js",
        "const kNumber = Symbol('kCode');\n\nclass Notice {\n  /** @param {Notice} other is an Event. */\n  constructor(other) {\n"
        "    this[kNumber] = other.wasClean;\n  }\n\n  get isClean() {\n    return this[kNumber];\n  }\n}\n");
    tree_remove(&t);
}

/* Rust: a macro's arguments are words alone, of which one behind a dot is a member; impl<T> Trait for T has the trait's methods. */
static void test_rename__rust_members_in_macros_and_general_impls(void **state)
{
    tree t;
    tree_make(&t, true);
    tree_put(&t, "src/lib.rs",
        "pub trait Snake {\n    fn to_snake(&self) -> String;\n}\n\n"
        "impl<T: ToString> Snake for T {\n    fn to_snake(&self) -> String {\n        self.to_string()\n    }\n}\n\n"
        "#[test]\nfn test() {\n    let to_snake = 1;\n    assert_eq!(\"a\".to_snake(), format!(\"{}\", to_snake));\n}\n");
    tree_open(&t);
    renames(&t, "Snake.to_snake", "to_low", NULL);
    expect(&t, "src/lib.rs",
        "pub trait Snake {\n    fn to_low(&self) -> String;\n}\n\n"
        "impl<T: ToString> Snake for T {\n    fn to_low(&self) -> String {\n        self.to_string()\n    }\n}\n\n"
        "#[test]\nfn test() {\n    let to_snake = 1;\n    assert_eq!(\"a\".to_low(), format!(\"{}\", to_snake));\n}\n");
    tree_remove(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rename__python_follows_imports_and_scopes),
        cmocka_unit_test(test_rename__python_members_and_parameters),
        cmocka_unit_test(test_rename__c_keeps_fields_tags_labels_and_locals),
        cmocka_unit_test(test_rename__alternatives_are_renamed_together),
        cmocka_unit_test(test_rename__what_embeds_a_type_in_go_follows_it),
        cmocka_unit_test(test_rename__go_java_and_javascript),
        cmocka_unit_test(test_rename__java_tells_types_of_one_name_apart),
        cmocka_unit_test(test_rename__javascript_passages_and_members),
        cmocka_unit_test(test_rename__go_packages_and_unnamed_types),
        cmocka_unit_test(test_rename__reads_the_types_of_fields),
        cmocka_unit_test(test_rename__a_type_in_a_function_is_its_own),
        cmocka_unit_test(test_rename__a_macro_of_a_file_is_not_the_header_s),
        cmocka_unit_test(test_rename__arguments_of_a_constructor_are_no_fields),
        cmocka_unit_test(test_rename__refuses_what_cannot_be),
        cmocka_unit_test(test_rename__paths_in_strings_and_settings_follow),
        cmocka_unit_test(test_rename__names_of_attributes_and_a_type_s_own_text_follow),
        cmocka_unit_test(test_rename__tells_which_documents_write_the_old_name),
        cmocka_unit_test(test_rename__changes_its_own_comment_and_documents_on_request),
        cmocka_unit_test(test_rename__c_tells_macros_and_unnamed_structs_apart),
        cmocka_unit_test(test_rename__python_classes_in_classes_and_dotted_names),
        cmocka_unit_test(test_rename__go_parameters_dots_and_members_of_the_types_name),
        cmocka_unit_test(test_rename__javascript_comments_and_unknown_objects),
        cmocka_unit_test(test_rename__rust_members_in_macros_and_general_impls),
    };
    return refactor_run(tests, sizeof tests / sizeof *tests, "rename");
}
