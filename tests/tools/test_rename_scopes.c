/*
 * Renames in Python and C: which names are the one that is meant, by scopes, imports, members and the preprocessor.
 */
#include "refactor.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>

static void test_rename_scopes__python_follows_imports_and_scopes(void **state)
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

static void test_rename_scopes__python_members_and_parameters(void **state)
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

static void test_rename_scopes__arguments_of_a_constructor_are_no_fields(void **state)
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

/* A class in a class is its member, whatever else has the name; package.module.name is followed through its import. */
static void test_rename_scopes__python_classes_in_classes_and_dotted_names(void **state)
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

static void test_rename_scopes__c_keeps_fields_tags_labels_and_locals(void **state)
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

static void test_rename_scopes__alternatives_are_renamed_together(void **state)
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

static void test_rename_scopes__a_macro_of_a_file_is_not_the_header_s(void **state)
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

/* A macro that is defined again behind an #undef; fields of two unnamed structs of one type, told apart by the way to them. */
static void test_rename_scopes__c_tells_macros_and_unnamed_structs_apart(void **state)
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

/* The parameter of a function is meant, where an interface declares a method of its name as well. */
static void test_rename_scopes__a_parameter_of_what_is_defined(void **state)
{
    static const operation_case cases[] = {
        {"{\"operation\":\"rename\",\"name\":\"trim.sep\",\"to\":\"glue\"}", NULL,
            {{"t.ts", "export interface Parser {\n  trim(s: string, sep?: string): string;\n}\n", NULL},
                {"u.ts", "export function trim (s: string, sep?: string): string {\n  return s + sep\n}\n",
                    "export function trim (s: string, glue?: string): string {\n  return s + glue\n}\n"}}},
    };
    DONE(cases);
}

/* `this` of a function on a prototype is what has the others of it; of a function inside of it, it is something else. */
static void test_rename_scopes__this_of_a_prototype_is_its_holder(void **state)
{
    tree t;
    tree_make(&t, true);
    tree_put(&t, "a.js",
        "function Send () {}\n\nSend.prototype.fresh = function fresh () {\n  return true\n}\n\n"
        "Send.prototype.go = function go (list) {\n  if (this.fresh()) return 1\n"
        "  list.forEach(function (x) { this.fresh() })\n}\n\n"
        "function Other () {}\n\nOther.prototype.go = function () {\n  return this.fresh()\n}\n");
    tree_open(&t);
    free(refactor_with(&t, "{\"operation\":\"rename\",\"name\":\"fresh\",\"to\":\"isFresh\"}", TOOL_OK));
    expect(&t, "a.js",
        "function Send () {}\n\nSend.prototype.isFresh = function isFresh () {\n  return true\n}\n\n"
        "Send.prototype.go = function go (list) {\n  if (this.isFresh()) return 1\n"
        "  list.forEach(function (x) { this.fresh() })\n}\n\n"
        "function Other () {}\n\nOther.prototype.go = function () {\n  return this.fresh()\n}\n");
    tree_remove(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rename_scopes__this_of_a_prototype_is_its_holder),
        cmocka_unit_test(test_rename_scopes__python_follows_imports_and_scopes),
        cmocka_unit_test(test_rename_scopes__python_members_and_parameters),
        cmocka_unit_test(test_rename_scopes__arguments_of_a_constructor_are_no_fields),
        cmocka_unit_test(test_rename_scopes__python_classes_in_classes_and_dotted_names),
        cmocka_unit_test(test_rename_scopes__c_keeps_fields_tags_labels_and_locals),
        cmocka_unit_test(test_rename_scopes__alternatives_are_renamed_together),
        cmocka_unit_test(test_rename_scopes__a_macro_of_a_file_is_not_the_header_s),
        cmocka_unit_test(test_rename_scopes__c_tells_macros_and_unnamed_structs_apart),
        cmocka_unit_test(test_rename_scopes__a_parameter_of_what_is_defined),
    };
    return refactor_run(tests, sizeof tests / sizeof *tests, "rename_scopes");
}
