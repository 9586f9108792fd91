/*
 * Renames in Go, Java, JavaScript, TypeScript and Rust: which member or type is meant, by declared types and packages.
 */
#include "refactor.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>

static void test_rename_typed__what_embeds_a_type_in_go_follows_it(void **state)
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

static void test_rename_typed__go_java_and_javascript(void **state)
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

static void test_rename_typed__java_tells_types_of_one_name_apart(void **state)
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

/* A module's default goes by one name in the modules that call it so; another name of theirs is their own. */
static void test_rename_typed__a_default_of_javascript(void **state)
{
    tree t;
    tree_make(&t, true);
    tree_put(&t, "feature.js", "export default function create(id) {\n  return id;\n}\n");
    tree_put(&t, "clip.js", "import create from './feature.js';\nuse(create(1));\n");
    tree_put(&t, "wrap.js", "import make from './feature.js';\nuse(make(1));\n");
    tree_put(&t, "other.js", "import create from './made.js';\nuse(create(1));\n");
    tree_put(&t, "made.js", "const create = () => 1;\nexport default create()");
    tree_put(&t, "last.js", "const last = 1;\nexport default last");
    tree_put(&t, "end.js", "import last from './last.js';\nuse(last);\n");
    tree_open(&t);
    assert_int_equal(tool_workspace_refresh(t.w, NULL, NULL, NULL), 0);
    renames(&t, "feature.js:create", "feature", NULL);
    expect(&t, "feature.js", "export default function feature(id) {\n  return id;\n}\n");
    expect(&t, "clip.js", "import feature from './feature.js';\nuse(feature(1));\n");
    expect(&t, "wrap.js", "import make from './feature.js';\nuse(make(1));\n");
    expect(&t, "other.js", "import create from './made.js';\nuse(create(1));\n");
    renames(&t, "made.js:create", "creator", NULL);
    expect(&t, "made.js", "const creator = () => 1;\nexport default creator()");
    expect(&t, "other.js", "import create from './made.js';\nuse(create(1));\n");
    renames(&t, "last.js:last", "end", NULL);
    expect(&t, "end.js", "import end from './last.js';\nuse(end);\n");
    tree_remove(&t);
}

static void test_rename_typed__javascript_passages_and_members(void **state)
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

static void test_rename_typed__go_packages_and_unnamed_types(void **state)
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

static void test_rename_typed__a_type_in_a_function_is_its_own(void **state)
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

static void test_rename_typed__reads_the_types_of_fields(void **state)
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

/* Go: a parameter of its type's name, a field and a method of it, names of a package that is imported with a dot. */
static void test_rename_typed__go_parameters_dots_and_members_of_the_types_name(void **state)
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
static void test_rename_typed__javascript_comments_and_unknown_objects(void **state)
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
static void test_rename_typed__rust_members_in_macros_and_general_impls(void **state)
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

/* "f = function f() {": the name inside is the same function's, and a call of itself too. */
static void test_rename_typed__a_function_has_its_name_inside_too(void **state)
{
    tree t;
    tree_make(&t, true);
    tree_put(&t, "a.js",
        "var walk = function walk(v) { return v ? walk(v - 1) : 0; };\n"
        "var other = function walk(v) { return walk(v); };\n"
        "module.exports = { walk: walk, other: other };\n");
    tree_open(&t);
    renames(&t, "walk", "stroll", NULL);
    expect(&t, "a.js",
        "var stroll = function stroll(v) { return v ? stroll(v - 1) : 0; };\n"
        "var other = function walk(v) { return walk(v); };\n"
        "module.exports = { stroll: stroll, other: other };\n");
    tree_remove(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rename_typed__a_function_has_its_name_inside_too),
        cmocka_unit_test(test_rename_typed__what_embeds_a_type_in_go_follows_it),
        cmocka_unit_test(test_rename_typed__go_java_and_javascript),
        cmocka_unit_test(test_rename_typed__java_tells_types_of_one_name_apart),
        cmocka_unit_test(test_rename_typed__a_default_of_javascript),
        cmocka_unit_test(test_rename_typed__javascript_passages_and_members),
        cmocka_unit_test(test_rename_typed__go_packages_and_unnamed_types),
        cmocka_unit_test(test_rename_typed__a_type_in_a_function_is_its_own),
        cmocka_unit_test(test_rename_typed__reads_the_types_of_fields),
        cmocka_unit_test(test_rename_typed__go_parameters_dots_and_members_of_the_types_name),
        cmocka_unit_test(test_rename_typed__javascript_comments_and_unknown_objects),
        cmocka_unit_test(test_rename_typed__rust_members_in_macros_and_general_impls),
    };
    return refactor_run(tests, sizeof tests / sizeof *tests, "rename_typed");
}
