/*
 * Definitions that a file lacks: where they stand, what comes with them, and which call means one. Tables of the file, the call, what
 * must come out.
 */
#include "tree.h"
#include "tools/edit/add.h"
#include "tools/edit/import_lines.h"
#include "tools/edit/elide.h"
#include "tools/edit/imports.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct addition {
    const char *about, *path, *text, *name, *block, *request;
    const char *result; /* NULL: refused */
    const char *says;   /* in the refusal; NULL: anything */
} addition;

#define CURSOR                                                                                               \
    "class Cursor:\n    def UP(self, n=1):\n        return n\n    def DOWN(self, n=1):\n        return n\n"
#define OPTION                                                                                               \
    "export class Option {\n  isBoolean() {\n    return !this.required;\n  }\n\n  name() {\n    return "     \
    "1;\n  }\n}\n"

static const addition additions[] = {
    {"behind the last relative of a C file, not in a condition", "sds.c",
        "#include \"sds.h\"\n\n"
        "int sdscat(int a) {\n"
        "    return a;\n"
        "}\n\n"
        "int other(void) {\n"
        "    return 0;\n"
        "}\n\n"
        "#ifdef TEST\nint sdstest(void) {\n    return 1;\n}\n#endif\n",
        "sdsstart", "int sdsstart(int b) {\n    return b;\n}\n", NULL,
        "#include \"sds.h\"\n\n"
        "int sdscat(int a) {\n"
        "    return a;\n"
        "}\n\n"
        "int sdsstart(int b) {\n"
        "    return b;\n"
        "}\n\n"
        "int other(void) {\n"
        "    return 0;\n"
        "}\n\n"
        "#ifdef TEST\n"
        "int sdstest(void) {\n"
        "    return 1;\n"
        "}\n"
        "#endif\n"},
    {"beside the one that the request names", "a.py",
        "def get_key(a):\n"
        "    return a\n\n\n"
        "def set_key(a):\n"
        "    return a\n\n\n"
        "def has_value(a):\n"
        "    return a\n",
        "has_key", "def has_key(a):\n    return True\n", "Add has_key, beside get_key",
        "def get_key(a):\n"
        "    return a\n\n\n"
        "def has_key(a):\n"
        "    return True\n\n\n"
        "def set_key(a):\n"
        "    return a\n\n\n"
        "def has_value(a):\n    return a\n"},
    {"a method as tight as its neighbours", "a.py", CURSOR "\n\nX = 1\n", "Cursor.SAVE",
        "def SAVE(self):\n    return 's'\n", NULL,
        CURSOR "    def SAVE(self):\n        return 's'\n\n\nX = 1\n"},
    {"a method with its class around it", "a.py", CURSOR, "Cursor.SAVE",
        "class Cursor:\n    def SAVE(self):\n        return 's'\n", NULL,
        CURSOR "    def SAVE(self):\n        return 's'\n"},
    {"a method whose class the call does not name", "a.py",
        CURSOR "\n\nclass Fore:\n    def RED(self):\n        return 1\n", "SAVE",
        "def SAVE(self):\n    return 's'\n", "Add SAVE to Cursor",
        CURSOR
        "    def SAVE(self):\n        return 's'\n\n\nclass Fore:\n    def RED(self):\n        return 1\n"},
    {"a method that reads self and does not have it", "a.py",
        "class Title(str):\n    pass\n\n\nclass Parser:\n    def add_section(self, s):\n        self.all[s] = s\n",
        "remove_section", "def remove_section(title):\n    del self.all[title]\n", "Add remove_section",
        "class Title(str):\n    pass\n\n\nclass Parser:\n    def add_section(self, s):\n        self.all[s] = s\n\n"
        "    def remove_section(self, title):\n        del self.all[title]\n"},
    {"a method of JavaScript in the only class of the file, beside the one that is named", "i.js",
        "class Index {\n    getTile(z) {\n        return z;\n    }\n\n    split() {\n        return 1;\n    }\n}\n\n"
        "function toID(z, x) {\n    return z + x;\n}\n\nexport default function index(a) {\n    return new Index(a);\n}\n",
        "hasTile", "hasTile(z) {\n    return z > 1;\n}\n",
        "Could the index get a hasTile(z) next to getTile?",
        "class Index {\n    getTile(z) {\n        return z;\n    }\n\n    hasTile(z) {\n        return z > 1;\n    }\n\n"
        "    split() {\n        return 1;\n    }\n}\n\n"
        "function toID(z, x) {\n    return z + x;\n}\n\nexport default function index(a) {\n    return new Index(a);\n}\n"},
    {"a function whose inner one has self", "a.py", "class A:\n    def f(self):\n        return 1\n", "make",
        "def make():\n    def g(self):\n        return self.x\n    return g\n", NULL,
        "class A:\n    def f(self):\n        return 1\n\n\n"
        "def make():\n    def g(self):\n        return self.x\n    return g\n"},
    {"a method of JavaScript, which alone is no text of its language", "o.js", OPTION, "Option.takesValue",
        "takesValue() {\n  return this.required || this.optional;\n}\n", NULL,
        "export class Option {\n"
        "  isBoolean() {\n"
        "    return !this.required;\n"
        "  }\n\n"
        "  name() {\n"
        "    return 1;\n"
        "  }\n\n"
        "  takesValue() {\n    return this.required || this.optional;\n  }\n}\n"},
    {"tabs stay tabs, imports go to the imports", "a.go",
        "package a\n\nimport (\n\t\"fmt\"\n)\n\nfunc B() {\n\tfmt.Println()\n}\n", "BigC",
        "import (\n    \"fmt\"\n    \"math\"\n)\n\nfunc BigC() float64 {\n    return math.Pi\n}\n", NULL,
        "package a\n\n"
        "import (\n"
        "\t\"fmt\"\n"
        "\t\"math\"\n"
        ")\n\n"
        "func B() {\n"
        "\tfmt.Println()\n"
        "}\n\n"
        "func BigC() float64 {\n"
        "\treturn math.Pi\n}\n"},
    {"a method of Go behind its type's others, whatever its name is like", "a.go",
        "package a\n\ntype Queue struct{}\n\nfunc (q *Queue) Pop() {\n}\n\nfunc ResetAll() {\n}\n",
        "Queue.Reset", "func (q *Queue) Reset() {\n}\n", "Add a method Reset to Queue, as ResetAll",
        "package a\n\ntype Queue struct{}\n\nfunc (q *Queue) Pop() {\n}\n\nfunc (q *Queue) Reset() {\n}\n\n"
        "func ResetAll() {\n}\n"},
    {"a type's first method of Go behind the type", "a.go",
        "package a\n\ntype Queue struct{}\n\nfunc (s *Stack) Pop() {\n}\n", "Queue.Pop",
        "func (q *Queue) Pop() {\n}\n", NULL,
        "package a\n\ntype Queue struct{}\n\nfunc (q *Queue) Pop() {\n}\n\nfunc (s *Stack) Pop() {\n}\n"},
    {"a method of Rust not among those of a trait", "a.rs",
        "struct G;\n\nimpl G {\n    fn one(&self) {}\n}\n\nimpl Drop for G {\n    fn drop(&mut self) {}\n}\n",
        "G.dropped", "fn dropped(&self) {}\n", NULL,
        "struct G;\n\nimpl G {\n    fn one(&self) {}\n\n    fn dropped(&self) {}\n}\n\nimpl Drop for G {\n"
        "    fn drop(&mut self) {}\n}\n"},
    {"an import of Python goes to the others", "a.py", "import os\n\n\ndef f():\n    return os\n", "g",
        "import os\nimport sys\n\ndef g():\n    return sys\n", NULL,
        "import os\nimport sys\n\n\ndef f():\n    return os\n\n\ndef g():\n    return sys\n"},
    {"CR LF stays", "a.py", "def f():\r\n    return 1\r\n", "g", "def g():\n    return 2\n", NULL,
        "def f():\r\n    return 1\r\n\r\n\r\ndef g():\r\n    return 2\r\n"},
    {"a file without a last line end", "a.py", "def f():\n    return 1", "g", "def g():\n    return 2\n",
        NULL, "def f():\n    return 1\n\n\ndef g():\n    return 2\n"},
    {"an empty file", "a.py", "", "g", "def g():\n    return 2\n", NULL, "def g():\n    return 2\n"},
    {"a value beside values", "a.py", "class S:\n    DIM = 2\n    RESET = 0\n\n\nx = S()\n", "S.UNDERLINE",
        "class S:\n    UNDERLINE = 4\n", "Add UNDERLINE",
        "class S:\n    DIM = 2\n    RESET = 0\n    UNDERLINE = 4\n\n\nx = S()\n"},
    {"what does not parse is refused", "a.py", "def f():\n    return 1\n", "g", "def g(:\n    return ((2\n",
        NULL, NULL, "Nothing was changed"},
    {"a block that defines nothing", "a.py", "def f():\n    return 1\n", "g", "print(1)\n", NULL, NULL,
        "defines nothing"},
};

static void test_places(void **state)
{
    code_grammars *g = code_grammars_open();
    for (size_t i = 0; i < sizeof additions / sizeof *additions; i++) {
        const addition *a = &additions[i];
        print_message("%s\n", a->about);
        base_buf text = {0}, why = {0};
        tool_addition ret = {0};
        base_buf_puts(&text, a->text);
        bool good = tool__add_definition(
            g, a->path, &text, a->name, (base_str){a->block, strlen(a->block)}, a->request, &ret, &why);
        if (!a->result) {
            assert_false(good);
            if (a->says) assert_contains(why.data, a->says);
        } else {
            if (!good) print_message("%s\n", why.data);
            assert_true(good);
            assert_string_equal(ret.text.data, a->result);
        }
        base_buf_free(&text);
        base_buf_free(&why);
        tool__addition_free(&ret);
    }
    code_grammars_close(g);
}

static const char *const ansi = "CSI = '['\n\n\n"
                                "class Fore:\n"
                                "    def RED(self):\n"
                                "        return 1\n\n"
                                "    def BLUE(self):\n"
                                "        return 2\n";

static void test_calls(void **state)
{
    static const struct {
        const char *about, *arguments, *block, *path, *has;
    } calls[] = {
        {"a method that is not there", "{\"path\": \"lib/ansi.py\", \"name\": \"Fore.GREEN\"}",
            "def GREEN(self):\n    return 3\n", "lib/ansi.py",
            "        return 2\n\n    def GREEN(self):\n        return 3\n"},
        {"the file is another one", "{\"path\": \"lib/other.py\", \"name\": \"Fore.GREEN\"}",
            "def GREEN(self):\n    return 3\n", "lib/ansi.py", "    def GREEN(self):\n"},
        {"folders that are not there", "{\"path\": \"src/x/ansi.py\", \"name\": \"Fore.GREEN\"}",
            "def GREEN(self):\n    return 3\n", "lib/ansi.py", "    def GREEN(self):\n"},
        {"a class written again with one new method keeps the others",
            "{\"path\": \"lib/ansi.py\", \"name\": \"Fore\"}",
            "class Fore:\n    def GREEN(self):\n        return 3\n", "lib/ansi.py",
            "        return 2\n\n    def GREEN(self):\n        return 3\n"},
        {"the neighbour is named and stays", "{\"path\": \"lib/other.py\", \"name\": \"first\"}",
            "def second():\n    return 2\n", "lib/other.py",
            "def first():\n    return 1\n\n\ndef second():\n    return 2\n"},
        {"a new file", "{\"path\": \"lib/fresh.py\", \"name\": \"second\"}", "def second():\n    return 2\n",
            "lib/fresh.py", "def second():\n    return 2\n"},
        {"a class without its other method deletes nothing",
            "{\"path\": \"lib/ansi.py\", \"name\": \"Fore\"}",
            "class Fore:\n    def BLUE(self):\n        return 4\n", "lib/ansi.py",
            "        return 1\n\n    def BLUE(self):\n        return 4\n"},
        {"a member under its type's name", "{\"path\": \"lib/ansi.py\", \"name\": \"Fore\"}",
            "def BLUE(self):\n    return 4\n", "lib/ansi.py",
            "        return 1\n\n    def BLUE(self):\n        return 4\n"},
        {"what is left out stays", "{\"path\": \"lib/other.py\", \"name\": \"first\"}",
            "def first():\n    print()\n    # rest of the code\n", "lib/other.py",
            "def first():\n    print()\n    return 1\n"},
        {"and its import comes with it", "{\"path\": \"lib/other.py\", \"name\": \"first\"}",
            "def first():\n    return math.pi\n", "lib/other.py",
            "import math\n\ndef first():\n    return math.pi\n"},
    };
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        print_message("%s\n", calls[i].about);
        tree t;
        tree_make(&t, false);
        tree_put(&t, "lib/ansi.py", ansi);
        tree_put(&t, "lib/other.py", "def first():\n    return 1\n");
        tree_open(&t);
        assert_int_equal(tool_workspace_refresh(t.w, NULL, NULL, NULL), 0);
        tool_workspace_mark_shown(t.w, "lib/ansi.py", tree_version(&t, "lib/ansi.py"));
        tool_workspace_mark_shown(t.w, "lib/other.py", tree_version(&t, "lib/other.py"));
        tool_result r = tree_call(&t, "rewrite", calls[i].arguments, calls[i].block);
        if (r.status != TOOL_OK) print_message("%s\n", r.text.data);
        assert_int_equal(r.status, TOOL_OK);
        char *text = tree_get(&t, calls[i].path);
        assert_contains(text, calls[i].has);
        if (strstr(calls[i].path, "ansi"))
            assert_contains(text, "    def RED(self):\n        return 1\n\n    def BLUE");
        free(text);
        tool_result_free(&r);
        tree_remove(&t);
    }
}

/* Go's folder and C's header are one scope: what stands there already is rewritten where it stands, never written twice. */
static void test_twins(void **state)
{
    static const struct {
        const char *about, *arguments, *block, *request;
        tool_status status;
        const char *says, *path, *has;
    } calls[] = {
        {"a wrapper unchanged, and what it calls", "{\"path\": \"wrap.go\", \"name\": \"ToBool\"}",
            "func ToBool(i any) bool {\n"
            "\tv, _ := ToBoolE(i)\n"
            "\treturn v\n"
            "}\n\n"
            "func ToBoolE(i any) (bool, error) {\n"
            "\treturn i == \"yes\", nil\n"
            "}\n",
            "ToBool should accept yes", TOOL_OK, "ToBoolE stands in basic.go", "basic.go",
            "func ToBoolE(i any) (bool, error) {\n\treturn i == \"yes\", nil\n}\n"},
        {"only what it calls", "{\"path\": \"wrap.go\", \"name\": \"ToBool\"}",
            "func ToBoolE(i any) (bool, error) {\n\treturn i == \"yes\", nil\n}\n", NULL, TOOL_OK,
            "ToBoolE stands in basic.go", "basic.go", "return i == \"yes\", nil\n"},
        {"added where the package has it", "{\"path\": \"wrap.go\", \"name\": \"ToBoolE\"}",
            "func ToBoolE(i any) (bool, error) {\n\treturn i == \"yes\", nil\n}\n", "Add yes to ToBoolE",
            TOOL_OK, "ToBoolE stands in basic.go", "basic.go", "return i == \"yes\", nil\n"},
        {"both changed", "{\"path\": \"wrap.go\", \"name\": \"ToBool\"}",
            "func ToBool(i any) bool {\n"
            "\tv, _ := ToBoolE(i)\n"
            "\treturn !v\n"
            "}\n\n"
            "func ToBoolE(i any) (bool, error) {\n"
            "\treturn true, nil\n"
            "}\n",
            NULL, TOOL_FAILED, "defines ToBoolE, which stands in basic.go:3 already", "wrap.go",
            "return v\n"},
        {"another package of the folder", "{\"path\": \"x_test.go\", \"name\": \"ToBoolE\"}",
            "func ToBoolE() {\n}\n", "Add ToBoolE to the tests", TOOL_OK, "added ToBoolE", "x_test.go",
            "func ToBoolE"},
        {"another system's file", "{\"path\": \"a_windows.go\", \"name\": \"ToBoolE\"}",
            "func ToBoolE() {\n}\n", "Add ToBoolE for Windows", TOOL_OK, "added ToBoolE", "a_windows.go",
            "func ToBoolE"},
        {"a function that C's header declares", "{\"path\": \"b.c\", \"name\": \"shared\"}",
            "int shared(void)\n{\n    return 2;\n}\n", "Add a case to shared", TOOL_OK,
            "shared stands in a.c", "a.c", "return 2;"},
        {"a static one of another file", "{\"path\": \"b.c\", \"name\": \"own\"}",
            "static int own(void)\n{\n    return 2;\n}\n", "Add own to b.c", TOOL_OK, "added own", "b.c",
            "own(void)"},
    };
    static const char *const files[][2] = {
        {"basic.go", "package cast\n\nfunc ToBoolE(i any) (bool, error) {\n\treturn i != nil, nil\n}\n"},
        {"wrap.go", "package cast\n\nfunc ToBool(i any) bool {\n\tv, _ := ToBoolE(i)\n\treturn v\n}\n"},
        {"x_test.go", "package cast_test\n\nfunc TestX() {\n}\n"},
        {"a_windows.go", "package cast\n\nfunc open() {\n}\n"},
        {"a.h", "int shared(void);\n"},
        {"a.c", "int shared(void)\n{\n    return 1;\n}\n\nstatic int own(void)\n{\n    return 1;\n}\n"},
        {"b.c", "int other(void)\n{\n    return 0;\n}\n"},
    };
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        print_message("%s\n", calls[i].about);
        tree t;
        tree_make(&t, false);
        for (size_t k = 0; k < sizeof files / sizeof *files; k++) tree_put(&t, files[k][0], files[k][1]);
        tree_open(&t);
        assert_int_equal(tool_workspace_refresh(t.w, NULL, NULL, NULL), 0);
        for (size_t k = 0; k < sizeof files / sizeof *files; k++)
            tool_workspace_mark_shown(t.w, files[k][0], tree_version(&t, files[k][0]));
        t.request = calls[i].request;
        tool_result r = tree_call(&t, "rewrite", calls[i].arguments, calls[i].block);
        if (r.status != calls[i].status) print_message("%s\n", r.text.data);
        assert_int_equal(r.status, calls[i].status);
        assert_contains(r.text.data, calls[i].says);
        char *text = tree_get(&t, calls[i].path);
        assert_contains(text, calls[i].has);
        free(text);
        tool_result_free(&r);
        tree_remove(&t);
    }
}

static void test_prototype(void **state)
{
    tree t;
    tree_make(&t, false);
    tree_put(&t, "sds.h", "int sdscat(int a);\nint sdsend(void);\n");
    tree_put(&t, "sds.c", "int sdscat(int a) {\n    return a;\n}\n\nint sdsend(void) {\n    return 0;\n}\n");
    tree_open(&t);
    assert_int_equal(tool_workspace_refresh(t.w, NULL, NULL, NULL), 0);
    tool_result r = tree_call(&t, "rewrite", "{\"path\": \"sds.h\", \"name\": \"sdscatch\"}",
        "int sdscatch(int a,\n             int b) {\n    return a + b;\n}\n");
    assert_int_equal(r.status, TOOL_OK);
    char *header = tree_get(&t, "sds.h"), *source = tree_get(&t, "sds.c");
    assert_string_equal(header, "int sdscat(int a);\nint sdscatch(int a, int b);\nint sdsend(void);\n");
    assert_contains(source, "int sdscatch(int a,\n             int b) {\n    return a + b;\n}\n\nint sdsend");
    assert_contains(r.diff, "+++ b/sds.h");
    free(header);
    free(source);
    tool_result_free(&r);
    char *summary = NULL;
    assert_int_equal(tool_undo_apply(t.w, &summary, NULL), 0); /* one undo for both */
    free(summary);
    header = tree_get(&t, "sds.h"), source = tree_get(&t, "sds.c");
    assert_lacks(header, "sdscatch");
    assert_lacks(source, "sdscatch");
    free(header);
    free(source);
    tree_remove(&t);
}

/* Beside a function of the file's own it is told behind the nearest that is told; what a comment names is not imported. */
static void test_told_beside_a_static_one(void **state)
{
    tree t;
    tree_make(&t, false);
    tree_put(&t, "list.h", "int list_add(int a);\n");
    tree_put(&t, "list.c",
        "int list_add(int a)\n{\n    return a;\n}\n\nstatic int list_put_one(int a)\n{\n    return a;\n}\n");
    tree_put(&t, "mod.py", "def clean(s):\n    return s\n\n\ndef other(s):\n    return s\n");
    tree_put(&t, "test_mod.py", "import mod\n\n\ndef test_one():\n    assert mod.other(1)\n");
    tree_open(&t);
    assert_int_equal(tool_workspace_refresh(t.w, NULL, NULL, NULL), 0);
    tool_result r = tree_call(&t, "rewrite", "{\"path\": \"list.c\", \"name\": \"list_put_two\"}",
        "char* list_put_two(int a)\n{\n    return 0;\n}\n");
    assert_int_equal(r.status, TOOL_OK);
    char *header = tree_get(&t, "list.h");
    assert_string_equal(header, "int list_add(int a);\nchar* list_put_two(int a);\n");
    free(header);
    tool_result_free(&r);
    r = tree_call(&t, "rewrite", "{\"path\": \"test_mod.py\", \"name\": \"test_two\"}",
        "def test_two():\n    # clean\n    assert mod.clean(1)\n");
    assert_int_equal(r.status, TOOL_OK);
    char *tests = tree_get(&t, "test_mod.py");
    assert_contains(tests, "mod.clean(1)");
    assert_lacks(tests, "from mod import");
    free(tests);
    tool_result_free(&r);
    tree_remove(&t);
}

/* Of a function that has its body elsewhere a header gets the prototype, and the source keeps the body. */
static void test_a_prototype_for_the_header(void **state)
{
    static const char source[] =
        "int sdscat(int a) {\n    return a;\n}\n\nint sdsend(void) {\n    return 0;\n}\n";
    tree t;
    tree_make(&t, false);
    tree_put(&t, "sds.h", "int sdscat(int a);\n");
    tree_put(&t, "sds.c", source);
    tree_open(&t);
    assert_int_equal(tool_workspace_refresh(t.w, NULL, NULL, NULL), 0);
    t.request = "sdsend isn't in sds.h. Declare it there.";
    tool_result r =
        tree_call(&t, "rewrite", "{\"path\": \"sds.h\", \"name\": \"sdsend\"}", "int sdsend(void);\n");
    if (r.status != TOOL_OK) print_message("%s\n", r.text.data);
    assert_int_equal(r.status, TOOL_OK);
    tool_result_free(&r);
    tool_workspace_mark_shown(t.w, "sds.c", tree_version(&t, "sds.c"));
    r = tree_call(&t, "rewrite", "{\"path\": \"sds.c\", \"name\": \"sdsend\"}", "int sdsend(void);\n");
    assert_int_equal(r.status, TOOL_FAILED);
    assert_contains(r.text.data, "its body would be gone");
    tool_result_free(&r);
    char *header = tree_get(&t, "sds.h"), *kept = tree_get(&t, "sds.c");
    assert_contains(header, "int sdscat(int a);\n");
    assert_contains(header, "int sdsend(void);\n");
    assert_string_equal(kept, source);
    free(header);
    free(kept);
    tree_remove(&t);
}

/* A method of C++ stands behind its kin, and its class says it in the words that it has for that. */
static void test_declared_in_its_class(void **state)
{
    static const char *const blocks[] = {
        "float Reader::GetFloat(const string& name, int n) const\n{\n    return n;\n}\n",
        "float GetFloat(const string& name, int n) const\n{\n    return n;\n}\n"};
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) {
        tree t;
        tree_make(&t, false);
        tree_put(&t, "Reader.h",
            "class Reader\n{\npublic:\n    API double GetReal(const std::string& name, int n = 1) const;\n\n"
            "    bool Has() const;\n};\n");
        tree_put(&t, "Reader.cpp",
            "#include \"Reader.h\"\n\n"
            "double Reader::GetReal(const string& name, int n) const\n"
            "{\n"
            "    return n;\n"
            "}\n\n"
            "bool Reader::Has() const\n"
            "{\n"
            "    return true;\n"
            "}\n");
        tree_open(&t);
        assert_int_equal(tool_workspace_refresh(t.w, NULL, NULL, NULL), 0);
        t.request = "Add a method GetFloat, like GetReal";
        tool_result r =
            tree_call(&t, "rewrite", "{\"path\": \"Reader.cpp\", \"name\": \"Reader.GetFloat\"}", blocks[i]);
        if (r.status != TOOL_OK) print_message("%s\n", r.text.data);
        assert_int_equal(r.status, TOOL_OK);
        char *header = tree_get(&t, "Reader.h"), *source = tree_get(&t, "Reader.cpp");
        assert_contains(header, "int n = 1) const;\n"
                                "    API float GetFloat(const std::string& name, int n = 1) const;\n\n"
                                "    bool Has");
        assert_contains(source, "}\n\n"
                                "float Reader::GetFloat(const string& name, int n) const\n"
                                "{\n"
                                "    return n;\n"
                                "}\n\n"
                                "bool Reader::Has");
        free(header);
        free(source);
        tool_result_free(&r);
        tree_remove(&t);
    }
}

/* Asked for in the header, it is no function of its file alone, whatever its neighbour is. */
static void check_declared(const char *request)
{
    tree t;
    tree_make(&t, false);
    tree_put(&t, "opt.h", "API int opt_parse(int n);\nvoid opt_usage(void);\n");
    tree_put(&t, "opt.c",
        "static int opt_check(int n)\n"
        "{\n"
        "    return n;\n"
        "}\n\n"
        "int opt_parse(int n)\n"
        "{\n"
        "    return opt_check(n);\n"
        "}\n"
        "\nvoid opt_usage(void)\n{\n}\n");
    tree_open(&t);
    assert_int_equal(tool_workspace_refresh(t.w, NULL, NULL, NULL), 0);
    t.request = request;
    tool_result r = tree_call(&t, "rewrite", "{\"path\": \"opt.c\", \"name\": \"opt_check_all\"}",
        "static int\nopt_check_all(int n)\n{\n    return n;\n}\n");
    assert_int_equal(r.status, TOOL_OK);
    char *header = tree_get(&t, "opt.h"), *source = tree_get(&t, "opt.c");
    assert_string_equal(
        header, "API int opt_parse(int n);\nAPI int opt_check_all(int n);\nvoid opt_usage(void);\n");
    assert_contains(source, "}\n\nint\nopt_check_all(int n)\n{");
    free(header);
    free(source);
    tool_result_free(&r);
    tree_remove(&t);
}

static void test_declared_where_it_is_asked_for(void **state)
{
    check_declared("Add a function opt_check_all and declare it in opt.h");
    check_declared("add int opt_check_all(int n) to the API, n as it is");
    check_declared("Add int opt_check_all(int n) to the public functions: n as it is");
}

/* C: behind functions, and behind what it calls where nothing in front declares that. */
static void test_behind_what_it_needs(void **state)
{
    static const char source[] =
        "struct map {\n    int n;\n};\n\nint map_count(struct map *m)\n{\n    return m->n;\n}\n\n"
        "static int slot_at(struct map *m)\n"
        "{\n"
        "    return m->n;\n"
        "}\n\n"
        "int map_end(void)\n"
        "{\n"
        "    return 0;\n"
        "}\n";
    static const struct {
        const char *block, *has;
    } cases[] = {
        {"int map_counts(struct map *m)\n{\n    return slot_at(m);\n}\n", "    return m->n;\n"
                                                                          "}\n\n"
                                                                          "int map_counts(struct map *m)\n"
                                                                          "{\n"
                                                                          "    return slot_at(m);\n"
                                                                          "}\n\n"
                                                                          "int map_end"},
        {"int map_counts(struct map *m)\n{\n    return map_end();\n}\n", "    return m->n;\n"
                                                                         "}\n\n"
                                                                         "int map_counts(struct map *m)\n"
                                                                         "{\n"
                                                                         "    return map_end();\n"
                                                                         "}\n\n"
                                                                         "static int slot_at"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tree t;
        tree_make(&t, false);
        tree_put(&t, "map.c", source);
        tree_open(&t);
        assert_int_equal(tool_workspace_refresh(t.w, NULL, NULL, NULL), 0);
        tool_result r =
            tree_call(&t, "rewrite", "{\"path\": \"map.c\", \"name\": \"map_counts\"}", cases[i].block);
        assert_int_equal(r.status, TOOL_OK);
        char *text = tree_get(&t, "map.c");
        assert_contains(text, cases[i].has);
        free(text);
        tool_result_free(&r);
        tree_remove(&t);
    }
}

/* A semicolon more at the end of a line says nothing in a script, and is taken for no change. */
static void test_a_semicolon_is_no_change(void **state)
{
    static const struct {
        const char *path, *old_text, *new_text;
        bool is_change;
    } cases[] = {
        {"a.js", "function f(x) {\n  return x\n}\n", "function f(x) {\n  return x;\n}\n", false},
        {"a.js", "function f(x) {\n  return x\n}\n", "function f(x) {\n  return x + 1;\n}\n", true},
        {"a.js", "function f(x) {\n  for (; x;) g()\n}\n", "function f(x) {\n  for (;;) g()\n}\n", true},
        {"a.c", "int f(int x)\n{\n    return x;\n}\n", "int f(int x)\n{\n    return x;;\n}\n", true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tree t;
        tree_make(&t, false);
        tree_put(&t, cases[i].path, cases[i].old_text);
        tree_open(&t);
        tool_workspace_mark_shown(t.w, cases[i].path, tree_version(&t, cases[i].path));
        base_buf call = {0};
        base_buf_printf(&call, "{\"path\": \"%s\", \"name\": \"f\"}", cases[i].path);
        tool_result r = tree_call(&t, "rewrite", call.data, cases[i].new_text);
        if ((r.status == TOOL_OK) != cases[i].is_change) fail_msg("%zu: %s", i, r.text.data);
        tool_result_free(&r);
        base_buf_free(&call);
        tree_remove(&t);
    }
}

/* Named with the header, where its source has it: no second one. */
static void test_no_second_one_in_the_source(void **state)
{
    tree t;
    tree_make(&t, false);
    tree_put(&t, "ini.h", "int ini_parse(void);\n");
    tree_put(&t, "ini.c", "#define MAX_NAME 50\n\nint ini_parse(void)\n{\n    return MAX_NAME;\n}\n");
    tree_open(&t);
    assert_int_equal(tool_workspace_refresh(t.w, NULL, NULL, NULL), 0);
    tool_workspace_mark_shown(t.w, "ini.c", tree_version(&t, "ini.c"));
    tool_result r =
        tree_call(&t, "rewrite", "{\"path\": \"ini.h\", \"name\": \"MAX_NAME\"}", "#define MAX_NAME 50\n");
    assert_int_equal(r.status, TOOL_FAILED);
    assert_contains(r.text.data, "the same as the old");
    tool_result_free(&r);
    r = tree_call(&t, "rewrite", "{\"path\": \"ini.h\", \"name\": \"MAX_NAME\"}", "#define MAX_NAME 64\n");
    assert_int_equal(r.status, TOOL_OK);
    char *source = tree_get(&t, "ini.c");
    assert_string_equal(source, "#define MAX_NAME 64\n\nint ini_parse(void)\n{\n    return MAX_NAME;\n}\n");
    free(source);
    tool_result_free(&r);
    tree_remove(&t);
}

static void test_import(void **state)
{
    static const struct {
        const char *text, *result;
    } cases[] = {
        {"from ..ansi import Back, Fore\nx = 1\n", "from ..ansi import Back, Fore, set_title\nx = 1\n"},
        {"import os\nfrom ansi import Back\r\n", "import os\nfrom ansi import Back, set_title\r\n"},
        {"from ..myansi import Back\n", NULL},
        {"from ansi import (\n    Back)\n", "from ansi import (\n    Back,\n    set_title)\n"},
        {"from ansi import (\n    Back,\n    Fore,\n)\n",
            "from ansi import (\n    Back,\n    Fore,\n    set_title,\n)\n"},
        {"from ansi import (\r\n  Back,\r\n)\r\n", "from ansi import (\r\n  Back,\r\n  set_title,\r\n)\r\n"},
        {"from ansi import (Back, Fore)\n", "from ansi import (Back, Fore, set_title)\n"},
        {"from ansi import (\n    Back,\n    set_title,\n)\n", NULL},
        {"from ansi import (\n    Back,  # b)\n", NULL},
        {"from ansi import (\n    Back,\n", NULL},
        {"from ansi import *\n", NULL},
        {"from ansi import Back, set_title\n", NULL},
        {"", NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        base_buf text = {0};
        base_buf_puts(&text, cases[i].text);
        assert_int_equal(tool__import_name(&text, "ansi", "set_title"), cases[i].result != NULL);
        assert_string_equal(text.data ? text.data : "", cases[i].result ? cases[i].result : cases[i].text);
        base_buf_free(&text);
    }
}

/* Names that the file takes of nothing yet: behind its imports, where it has some. */
static void test_imports_of_a_crate_and_of_a_module(void **state)
{
    static const struct {
        const char *text, *rust, *python; /* NULL: as it was */
    } cases[] = {
        {"extern crate strsim;\n\nuse std::fmt;\nuse strsim::{a,\n    b};\n\nfn f() {}\n",
            "extern crate strsim;\n\nuse std::fmt;\nuse strsim::{a,\n    b};\nuse strsim::dice;\n\nfn f() {}\n",
            NULL},
        {"use strsim::*;\n", NULL, NULL},
        {"use std::fmt;\nuse super::a;\n", NULL, NULL},
        {"import os\n\n\ndef f():\n    pass\n", NULL,
            "import os\nfrom pkg.mod import dice\n\n\ndef f():\n    pass\n"},
        {"", NULL, NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        base_buf rust = {0}, python = {0};
        base_buf_puts(&rust, cases[i].text);
        base_buf_puts(&python, cases[i].text);
        assert_int_equal(tool__import_of_crate(&rust, "dice"), cases[i].rust != NULL);
        assert_string_equal(rust.data ? rust.data : "", cases[i].rust ? cases[i].rust : cases[i].text);
        assert_int_equal(tool__import_from(&python, "pkg.mod", "dice"), cases[i].python != NULL);
        assert_string_equal(
            python.data ? python.data : "", cases[i].python ? cases[i].python : cases[i].text);
        base_buf_free(&rust);
        base_buf_free(&python);
    }
    static const char *const modules[][2] = {
        {"src/pkg/mod.py", "pkg.mod"}, {"pkg/__init__.py", "pkg"}, {"a.py", "a"}, {"", ""}};
    for (size_t i = 0; i < sizeof modules / sizeof *modules; i++) {
        char *module = tool__dotted_module(modules[i][0]);
        assert_string_equal(module, modules[i][1]);
        free(module);
    }
}

/* The comment that stands for the rest, and the rest. */
static void test_elision(void **state)
{
    static const struct {
        const char *old, *block, *result;
    } cases[] = {
        {"int f(int n)\n{\n    int a = 1;\n\n#ifdef X\n    a++;\n#endif\n    return a;\n}\n",
            "int f(int n)\n"
            "{\n"
            "    int a = 1;\n"
            "    if (n <= 0) {\n"
            "        return -1;\n"
            "    }\n"
            "    // rest of the code\n"
            "}\n",
            "int f(int n)\n"
            "{\n"
            "    int a = 1;\n"
            "    if (n <= 0) {\n"
            "        return -1;\n"
            "    }\n\n"
            "#ifdef X\n"
            "    a++;\n"
            "#endif\n"
            "    return a;\n"
            "}\n"},
        /* A line in another version is no second line. */
        {"def f(a):\n    if a == 1:\n        return 2\n    return 3\n",
            "def f(a):\n    if a == 1 or a == -1:\n    # ... existing code ...\n",
            "def f(a):\n    if a == 1 or a == -1:\n        return 2\n    return 3\n"},
        /* At the column that the block has. */
        {"    def f(self):\n        a()\n        b()\n",
            "def f(self):\n    z()\n    # the rest remains the same\n",
            "def f(self):\n    z()\n    a()\n    b()\n"},
        /* In the middle: up to the line that follows. */
        {"f() {\n  one();\n  two();\n  three();\n}\n",
            "f() {\n  // existing code\n  three();\n  four();\n}\n",
            "f() {\n  one();\n  two();\n  three();\n  four();\n}\n"},
        {"f() {\n  one();\n}\n", "f() {\n  // unchanged\n  nine();\n}\n", NULL}, /* where is that? */
        {"f() {\n  one();\n}\n", "f() {\n  // one at a time\n  one();\n}\n", NULL},
        {"", "", NULL},
        {"f", "// rest of the code", "f\n"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        base_buf out = {0};
        const bool is_filled = tool__fill_elision(
            cases[i].old, strlen(cases[i].old), cases[i].block, strlen(cases[i].block), &out);
        assert_int_equal(is_filled, cases[i].result != NULL);
        if (is_filled) assert_string_equal(out.data, cases[i].result);
        base_buf_free(&out);
    }
}

static void test_standard_imports(void **state)
{
    static const struct {
        const char *language, *text, *block, *result; /* result NULL: nothing is imported */
    } cases[] = {
        {"go", "package a\n\nimport (\n\t\"math\"\n\t\"strings\"\n)\n", "func F() { fmt.Println(1) }",
            "package a\n\nimport (\n\t\"fmt\"\n\t\"math\"\n\t\"strings\"\n)\n"},
        {"go", "package a\n", "func F(n *big.Int) {}", "package a\n\nimport \"math/big\"\n"},
        {"go", "package a\n\nimport \"fmt\"\n", "func F() { fmt.Println(1) }", NULL},
        {"go", "package a\n", "func F(sort string) { // fmt.Print\n}", NULL},
        {"python", "\"\"\"Doc.\"\"\"\nimport os\n", "def f():\n    return re.sub('', '', os.sep)\n",
            "\"\"\"Doc.\"\"\"\nimport re\nimport os\n"},
        {"python", "\"\"\"Doc.\"\"\"\nx = 1\n", "def f() -> Optional[int]:\n    return None\n",
            "\"\"\"Doc.\"\"\"\nfrom typing import Optional\n\nx = 1\n"},
        {"python", "x = 1\n", "def f(time):\n    return a.time.b, time\n", NULL},
        {"python", "x = 1\n", "def f():\n    io = make()\n    return io.read()\n", NULL},
        {"c", "#include <stdio.h>\n#include \"a.h\"\n", "int f(char *s) { return strlen(s); }",
            "#include <stdio.h>\n#include <string.h>\n#include \"a.h\"\n"},
        {"c", "#include <string.h>\n", "int f(char *s) { return strlen(s); }", NULL},
        {"rust", "use std::fmt;\n", "fn f() -> HashMap<i8, i8> { HashMap::new() }",
            "use std::collections::HashMap;\nuse std::fmt;\n"},
        {"javascript", "import a from 'a';\n", "function f() { return fs.readFileSync('a'); }",
            "import fs from 'node:fs';\nimport a from 'a';\n"},
        {"javascript", "const a = require('a');\n", "function f() { return fs.readFileSync('a'); }",
            "const fs = require('fs');\nconst a = require('a');\n"},
        {"cobol", "x\n", "fmt.Print", NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        base_buf old_text = {0}, text = {0}, say = {0};
        base_buf_puts(&old_text, cases[i].text);
        base_buf_puts(&text, cases[i].text);
        tool__import_standard(cases[i].language, base_str_of(cases[i].block), &old_text, &text, &say);
        assert_string_equal(text.data, cases[i].result ? cases[i].result : cases[i].text);
        assert_int_equal(say.len > 0, cases[i].result != NULL);
        base_buf_free(&old_text);
        base_buf_free(&text);
        base_buf_free(&say);
    }
}

/* Comments and columns are no change of what a program does, unless the request is about them. */
static void test_words_alone(void **state)
{
    static const struct {
        const char *request;
        tool_status status;
    } cases[] = {{"first should return 2", TOOL_FAILED}, {"Add a comment to first", TOOL_OK}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tree t;
        tree_make(&t, false);
        tree_put(&t, "a.c", "int first(void)\n{\n    return 1;\n}\n");
        tree_open(&t);
        assert_int_equal(tool_workspace_refresh(t.w, NULL, NULL, NULL), 0);
        tool_workspace_mark_shown(t.w, "a.c", tree_version(&t, "a.c"));
        t.request = cases[i].request;
        tool_result r = tree_call(&t, "rewrite", "{\"path\": \"a.c\", \"name\": \"first\"}",
            "int first(void)\n{\n        return 1; /* one */\n}\n");
        assert_int_equal(r.status, cases[i].status);
        tool_result_free(&r);
        tree_remove(&t);
    }
}

/* Of several definitions of a name the one whose parameters the block has is rewritten. */
static void test_overloads(void **state)
{
    tree t;
    tree_make(&t, false);
    tree_put(&t, "A.java",
        "class A {\n"
        "    int f(int a) {\n"
        "        return 1;\n"
        "    }\n\n"
        "    int f(int a,  int b) {\n"
        "        return 2;\n"
        "    }\n"
        "}\n");
    tree_open(&t);
    assert_int_equal(tool_workspace_refresh(t.w, NULL, NULL, NULL), 0);
    tool_workspace_mark_shown(t.w, "A.java", tree_version(&t, "A.java"));
    tool_result r = tree_call(
        &t, "rewrite", "{\"path\": \"A.java\", \"name\": \"A.f\"}", "int f() {\n    return 3;\n}\n");
    assert_contains(r.text.data, "names several definitions");
    tool_result_free(&r);
    r = tree_call(&t, "rewrite", "{\"path\": \"A.java\", \"name\": \"A.f\"}",
        "int f(int a, int b) {\n    return 3;\n}\n");
    assert_int_equal(r.status, TOOL_OK);
    tool_result_free(&r);
    char *now = tree_get(&t, "A.java");
    assert_contains(now, "return 1;");
    assert_contains(now, "return 3;");
    free(now);
    tree_remove(&t);
}

/* A function and a method of one name: the block's first parameters say which of them it is for. */
static void test_a_function_beside_its_method(void **state)
{
    static const struct {
        const char *block, *change, *same;
    } cases[] = {
        {"def cancel(self, job: Job) -> bool:\n    self.jobs.remove(job)\n    return True\n",
            "    def cancel(self, job: Job) -> bool:\n        self.jobs.remove(job)\n        return True\n",
            "def cancel(job: Job) -> None:\n    default.cancel(job)\n"},
        {"def cancel(job: Job, quiet=False) -> None:\n    default.cancel(job)\n",
            "def cancel(job: Job, quiet=False) -> None:\n",
            "    def cancel(self, job: \"Job\") -> None:\n        self.jobs.remove(job)\n"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tree t;
        tree_make(&t, false);
        tree_put(&t, "a.py",
            "class Scheduler:\n    def cancel(self, job: \"Job\") -> None:\n        self.jobs.remove(job)\n\n\n"
            "def cancel(job: Job) -> None:\n    default.cancel(job)\n");
        tree_open(&t);
        assert_int_equal(tool_workspace_refresh(t.w, NULL, NULL, NULL), 0);
        tool_workspace_mark_shown(t.w, "a.py", tree_version(&t, "a.py"));
        tool_result r =
            tree_call(&t, "rewrite", "{\"path\": \"a.py\", \"name\": \"cancel\"}", cases[i].block);
        if (r.status != TOOL_OK) fail_msg("%zu: %s", i, r.text.data);
        tool_result_free(&r);
        char *now = tree_get(&t, "a.py");
        assert_contains(now, cases[i].change);
        assert_contains(now, cases[i].same);
        free(now);
        tree_remove(&t);
    }
}

/* Where two of one name may stand side by side, a block with other parameters may be a third. */
static void test_no_overload_is_guessed(void **state)
{
    tree t;
    tree_make(&t, false);
    tree_put(&t, "A.java",
        "class A {\n    int f(int a) {\n        return 1;\n    }\n\n    int f(String a) {\n        return 2;\n    }\n"
        "}\n");
    tree_open(&t);
    assert_int_equal(tool_workspace_refresh(t.w, NULL, NULL, NULL), 0);
    tool_workspace_mark_shown(t.w, "A.java", tree_version(&t, "A.java"));
    tool_result r = tree_call(&t, "rewrite", "{\"path\": \"A.java\", \"name\": \"A.f\"}",
        "int f(int a, long b) {\n    return 3;\n}\n");
    assert_contains(r.text.data, "names several definitions");
    tool_result_free(&r);
    tree_remove(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_places), cmocka_unit_test(test_calls),
        cmocka_unit_test(test_twins), cmocka_unit_test(test_prototype),
        cmocka_unit_test(test_told_beside_a_static_one), cmocka_unit_test(test_a_prototype_for_the_header),
        cmocka_unit_test(test_declared_in_its_class), cmocka_unit_test(test_behind_what_it_needs),
        cmocka_unit_test(test_declared_where_it_is_asked_for),
        cmocka_unit_test(test_a_semicolon_is_no_change), cmocka_unit_test(test_no_second_one_in_the_source),
        cmocka_unit_test(test_import), cmocka_unit_test(test_imports_of_a_crate_and_of_a_module),
        cmocka_unit_test(test_elision), cmocka_unit_test(test_standard_imports),
        cmocka_unit_test(test_words_alone), cmocka_unit_test(test_overloads),
        cmocka_unit_test(test_a_function_beside_its_method), cmocka_unit_test(test_no_overload_is_guessed)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
