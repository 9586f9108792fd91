/*
 * New text from blocks: whole definitions (with grammars and by words alone), OLD/NEW parts, line ranges. Tables of the file, the
 * call, what must come out.
 */
#include "tree.h"
#include "tools/edit/replace.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct rewriting {
    const char *about, *path, *text, *name, *block;
    const char *result; /* NULL: refused */
    const char *says;   /* in the note or the refusal; NULL: anything */
    bool needs_grammar;
} rewriting;

#define GCD_TAIL "\n\"\"\"\nInput: two numbers\n\"\"\"\n"

static const rewriting rewritings[] = {
    {"python function, docstring behind it stays", "gcd.py",
        "def gcd(a, b):\n    return gcd(a % b, b)\n" GCD_TAIL, "gcd",
        "def gcd(a, b):\n    return gcd(b, a % b)\n", "def gcd(a, b):\n    return gcd(b, a % b)\n" GCD_TAIL},
    {"the block echoes the docstring behind it", "gcd.py",
        "def gcd(a, b):\n    return gcd(a % b, b)\n" GCD_TAIL, "gcd",
        "def gcd(a, b):\n    return gcd(b, a % b)\n" GCD_TAIL,
        "def gcd(a, b):\n    return gcd(b, a % b)\n" GCD_TAIL},
    {"imports that stand there already and a call at the end", "a.py",
        "import sys\n\ndef f(x):\n    return x\n", "f",
        "import sys\nimport os\n\ndef f(x):\n    return x + 1\n\nprint(f(2))\n",
        "import sys\n\nimport os\n\ndef f(x):\n    return x + 1\n", "Left out: code behind"},
    {"a whole file of Go around it", "a.go", "package shop\n\nfunc Twice(x int) int {\n\treturn x + x\n}\n",
        "Twice", "package main\n\nfunc Twice(x int) int {\n\treturn 2 * x\n}\n",
        "package shop\n\nfunc Twice(x int) int {\n\treturn 2 * x\n}\n"},
    {"method by Class.method, block at column 0", "a.py",
        "class A:\n"
        "    def f(self):\n"
        "        return 1\n\n"
        "    def g(self):\n"
        "        return 2\n\n"
        "class B:\n"
        "    def f(self):\n"
        "        return 3\n",
        "B.f", "def f(self):\n    if self:\n        return 4\n",
        "class A:\n"
        "    def f(self):\n"
        "        return 1\n\n"
        "    def g(self):\n"
        "        return 2\n\n"
        "class B:\n"
        "    def f(self):\n"
        "        if self:\n"
        "            return 4\n"},
    {"method with its class around it", "a.py",
        "class A:\n    def f(self):\n        return 1\n\n    def g(self):\n        return 2\n", "A.f",
        "class A:\n    def f(self):\n        return 9\n",
        "class A:\n    def f(self):\n        return 9\n\n    def g(self):\n        return 2\n",
        "Only f was taken"},
    {"ambiguous method", "a.py",
        "class A:\n    def f(self):\n        return 1\n\nclass B:\n    def f(self):\n        return 3\n", "f",
        "def f(self):\n    return 4\n", NULL, "several definitions"},
    {"decorator kept when the block has none", "a.py",
        "@cache\n@other(1)\ndef f(x):\n    return x\n\nY = 1\n", "f", "def f(x):\n    return x * 2\n",
        "@cache\n@other(1)\ndef f(x):\n    return x * 2\n\nY = 1\n", NULL, true},
    {"decorator replaced when the block has one", "a.py", "@cache\ndef f(x):\n    return x\n", "f",
        "@lru\ndef f(x):\n    return x * 2\n", "@lru\ndef f(x):\n    return x * 2\n", NULL, true},
    {"nested function", "a.py", "def outer():\n    def inner(x):\n        return x\n    return inner\n",
        "inner", "def inner(x):\n    return x + 1\n",
        "def outer():\n    def inner(x):\n        return x + 1\n    return inner\n"},
    {"tabs stay tabs", "a.py", "class A:\n\tdef f(self):\n\t\treturn 1\n", "A.f",
        "def f(self):\n    if 1:\n        return 2\n",
        "class A:\n\tdef f(self):\n\t\tif 1:\n\t\t\treturn 2\n"},
    {"CR LF stays CR LF, open end stays open", "a.py", "x = 1\r\ndef f():\r\n    return 1", "f",
        "def f():\n    y = 2\n    return y\n", "x = 1\r\ndef f():\r\n    y = 2\r\n    return y"},
    {"a new helper behind it stays", "a.py", "def f():\n    return 1\n\n\ndef g():\n    return 2\n", "f",
        "def f():\n    return h()\n\ndef h():\n    return 3\n",
        "def f():\n    return h()\n\n\ndef h():\n    return 3\n\n\ndef g():\n    return 2\n"},
    {"other functions of the file are left out", "a.py",
        "def f():\n    return 1\n\n\ndef g():\n    return 2\n", "f",
        "def f():\n    return 7\n\ndef g():\n    return 8\n",
        "def f():\n    return 7\n\n\ndef g():\n    return 2\n", "Left out: g"},
    {"same text", "a.py", "def f():\n    return 1\n", "f", "def f():  \r\n    return 1\r\n", NULL,
        "same as the old"},
    {"unknown name", "a.py", "def f():\n    return 1\n", "h", "def h():\n    return 1\n", NULL,
        "no definition \"h\". It has f (function, lines 1-2)"},
    {"block defines something else", "a.py", "def f(a):\n    return 1\n", "f", "def g(a):\n    return 2\n",
        NULL, "defines g, not f"},
    {"block is a body only", "a.py", "def f(a):\n    return 1\n", "f", "return 2\n", NULL,
        "beginning with\ndef f(a):"},
    {"block does not parse", "a.py", "def f(a):\n    return 1\n", "f", "def f(a):\n    return (1\n", NULL,
        "does not parse", true},
    {"a file that never parsed may be changed", "a.py", "x = (\n\ndef f(a):\n    return 1\n", "f",
        "def f(a):\n    return 2\n", "x = (\n\ndef f(a):\n    return 2\n"},
    {"empty block", "a.py", "def f(a):\n    return 1\n", "f", "\n\n", NULL, "empty"},
    {"c function, comment above stays", "a.c",
        "/* Adds. */\nstatic int add(int a, int b)\n{\n\treturn a - b;\n}\n\nint x;\n", "add",
        "static int add(int a, int b)\n{\n    return a + b;\n}\n",
        "/* Adds. */\nstatic int add(int a, int b)\n{\n\treturn a + b;\n}\n\nint x;\n"},
    {"c block repeats the comment", "a.c", "/* Adds. */\nint add(int a, int b)\n{\n    return a - b;\n}\n",
        "add", "/* Adds. */\nint add(int a, int b)\n{\n    return a + b;\n}\n",
        "/* Adds. */\nint add(int a, int b)\n{\n    return a + b;\n}\n"},
    {"c definition, not its prototype", "a.c",
        "int add(int a, int b);\n\nint add(int a, int b)\n{\n    return a - b;\n}\n", "add",
        "int add(int a, int b)\n{\n    return a + b;\n}\n",
        "int add(int a, int b);\n\nint add(int a, int b)\n{\n    return a + b;\n}\n"},
    {"c struct keeps its semicolon", "a.c", "struct p {\n    int x;\n};\nint y;\n", "p",
        "struct p {\n    int x, z;\n}\n", "struct p {\n    int x, z;\n};\nint y;\n", NULL, true},
    {"js method alone", "a.js", "class A {\n  f(x) {\n    return x;\n  }\n  g() {\n    return 1;\n  }\n}\n",
        "A.f", "f(x) {\n  return x + 1;\n}\n",
        "class A {\n  f(x) {\n    return x + 1;\n  }\n  g() {\n    return 1;\n  }\n}\n", NULL, true},
    {"js function", "a.js", "function f(x) {\n  return x;\n}\nmodule.exports = f;\n", "f",
        "function f(x) {\n  return x + 1;\n}\n\nconsole.log(f(1));\n",
        "function f(x) {\n  return x + 1;\n}\nmodule.exports = f;\n", "Left out"},
    {"exported js function", "a.js", "export function f(x) {\n  return x;\n}\n", "f",
        "export function f(x) {\n  return x + 1;\n}\n", "export function f(x) {\n  return x + 1;\n}\n"},
    {"pub only in the file", "a.rs", "pub fn f(x: i32) -> i32 {\n    x\n}\n", "f",
        "fn f(x: i32) -> i32 {\n    x + 1\n}\n", "pub fn f(x: i32) -> i32 {\n    x + 1\n}\n", NULL, true},
    {"export only in the file", "a.js", "export function f(x) {\n  return x;\n}\n", "f",
        "function f(x) {\n  return x + 1;\n}\n", "export function f(x) {\n  return x + 1;\n}\n", NULL, true},
    {"object member, comma in both", "a.js", "const o = {\n  f: (x) => x,\n  g: 1,\n};\n", "f",
        "f: (x) => x + 1,\n", "const o = {\n  f: (x) => x + 1,\n  g: 1,\n};\n", NULL, true},
    {"template text at the left edge stays there", "a.js", "class A {\n  f() {\n    return `a\nb`;\n  }\n}\n",
        "A.f", "  f() {\n    return `c\nb`;\n  }\n", "class A {\n  f() {\n    return `c\nb`;\n  }\n}\n", NULL,
        true},
    {"spaces in a raw string of a file with tabs", "a.go",
        "package a\n\nfunc f() string {\n\treturn `\n    x\n`\n}\n", "f",
        "func f() string {\n\treturn `\n    y\n`\n}\n",
        "package a\n\nfunc f() string {\n\treturn `\n    y\n`\n}\n", NULL, true},
    {"only the first line lost its indentation", "a.py", "class A:\n    def f(self):\n        return 1\n",
        "A.f", "def f(self):\n        return 2\n", "class A:\n    def f(self):\n        return 2\n"},
    {"a head of several lines lost its indentation and the body has its own", "a.py",
        "class A:\n    def f(\n        self, a: int\n    ) -> int:\n        \"\"\"One.\"\"\"\n        return 1\n",
        "A.f", "def f(\n    self, a: int\n) -> int:\n        \"\"\"One.\"\"\"\n        return 2\n",
        "class A:\n    def f(\n        self, a: int\n    ) -> int:\n        \"\"\"One.\"\"\"\n        return 2\n",
        NULL, true},
    {"a head of several lines and its body lost their indentation", "a.py",
        "class A:\n    def f(\n        self, a: int\n    ) -> int:\n        return 1\n", "A.f",
        "def f(\n    self, a: int\n) -> int:\n    return 2\n",
        "class A:\n    def f(\n        self, a: int\n    ) -> int:\n        return 2\n", NULL, true},
    {"typedef and struct of one name, block with typedef", "a.c", "typedef struct p {\n    int x;\n} p;\n",
        "p", "typedef struct p {\n    int x, y;\n} p;\n", "typedef struct p {\n    int x, y;\n} p;\n", NULL,
        true},
    {"typedef and struct of one name, block without", "a.c", "typedef struct p {\n    int x;\n} p;\n", "p",
        "struct p {\n    int x, y;\n};\n", "typedef struct p {\n    int x, y;\n} p;\n", NULL, true},
    {"one of two by its line", "a.py",
        "class A:\n    def f(self):\n        return 1\n\nclass B:\n    def f(self):\n        return 3\n",
        "f:6", "def f(self):\n    return 4\n",
        "class A:\n    def f(self):\n        return 1\n\nclass B:\n    def f(self):\n        return 4\n"},
    {"rust method alone", "a.rs", "impl A {\n    fn f(&self) -> i32 {\n        1\n    }\n}\n", "f",
        "fn f(&self) -> i32 {\n    2\n}\n", "impl A {\n    fn f(&self) -> i32 {\n        2\n    }\n}\n", NULL,
        true},
    {"java method alone", "A.java",
        "class A {\n    @Override\n    public int f() {\n        return 1;\n    }\n}\n", "A.f",
        "public int f() {\n    return 2;\n}\n",
        "class A {\n    @Override\n    public int f() {\n        return 2;\n    }\n}\n", NULL, true},
};

static void check(code_grammars *g, const rewriting *r)
{
    base_buf text = {0}, why = {0};
    tool_replaced got = {0};
    base_buf_puts(&text, r->text);
    bool done = tool__replace_definition(g, r->path, &text, r->name, base_str_of(r->block), &got, &why);
    if (done != (r->result != NULL))
        fail_msg("%s (%s): %s: %s", r->about, g ? "grammar" : "words", done ? "went through" : "was refused",
            done ? got.text.data : why.data);
    if (done && strcmp(got.text.data, r->result))
        fail_msg("%s (%s): got\n%s", r->about, g ? "grammar" : "words", got.text.data);
    const char *said = done ? got.note.data : why.data;
    if (r->says && (g || !done) && (!said || !strstr(said, r->says)))
        fail_msg("%s: says %s", r->about, said ? said : "(nothing)");
    base_buf_free(&text);
    tool__replaced_free(&got);
    base_buf_free(&why);
}

static void test_replace__by_words_alone(void **state)
{
    for (size_t i = 0; i < sizeof rewritings / sizeof *rewritings; i++)
        if (!rewritings[i].needs_grammar) check(NULL, &rewritings[i]);
}

static void test_replace__with_grammars(void **state)
{
    code_grammars *g = code_grammars_open();
    code_file *f = code_parse(g, "a.py", "def f():\n    pass\n", 18);
    bool has_grammar = f->language != NULL;
    code_file_free(f);
    for (size_t i = 0; has_grammar && i < sizeof rewritings / sizeof *rewritings; i++)
        check(g, &rewritings[i]);
    code_grammars_close(g);
    if (!has_grammar) {
        print_message("no grammars here\n");
        skip();
    }
}

static const struct {
    const char *about, *text, *block, *result, *says;
} editings[] = {
    {"exact", "a\nb\nc\n", "<<<<<<< OLD\nb\n=======\nB\nB2\n>>>>>>> NEW\n", "a\nB\nB2\nc\n", NULL},
    {"aider's words", "a\nb\nc\n", "<<<<<<< SEARCH\nb\n=======\nB\n>>>>>>> REPLACE\n", "a\nB\nc\n", NULL},
    {"plain words", "a\nb\nc\n", "OLD:\nb\nNEW:\nB\n", "a\nB\nc\n", NULL},
    {"end missing", "a\nb\n", "<<<<<<< OLD\nb\n=======\nB", "a\nB\n", NULL},
    {"two parts", "a\nb\nc\n",
        "<<<<<<< OLD\na\n=======\nA\n>>>>>>> NEW\n<<<<<<< OLD\nc\n=======\n>>>>>>> NEW\n", "A\nb\n", NULL},
    {"spaces at line ends", "a  \nb\n", "<<<<<<< OLD\na\nb  \n=======\nx\n>>>>>>> NEW\n", "x\n", "line ends"},
    {"indentation", "if 1:\n    if 2:\n        f()\n",
        "<<<<<<< OLD\nif 2:\n    f()\n=======\nif 3:\n    f()\n    g()\n>>>>>>> NEW\n",
        "if 1:\n    if 3:\n        f()\n        g()\n", "indentation"},
    {"CR LF", "a\r\nb\r\n", "<<<<<<< OLD\nb\n=======\nc\nd\n>>>>>>> NEW\n", "a\r\nc\r\nd\r\n", NULL},
    {"no final newline", "a\nb", "<<<<<<< OLD\nb\n=======\nc\n>>>>>>> NEW\n", "a\nc", NULL},
    {"twice", "a\nb\na\n", "<<<<<<< OLD\na\n=======\nc\n>>>>>>> NEW\n", NULL, "lines 1, 3"},
    {"nowhere, with the nearest", "int main()\n{\n    return foo(1);\n}\n",
        "<<<<<<< OLD\n    return foo(2);\n=======\nx\n>>>>>>> NEW\n", NULL, "3:     return foo(1);"},
    {"no old lines", "a\n", "<<<<<<< OLD\n=======\nx\n>>>>>>> NEW\n", NULL, "no old lines"},
    {"no parts", "a\n", "just text\n", NULL, "<<<<<<< OLD"},
    {"same", "a\n", "<<<<<<< OLD\na\n=======\na\n>>>>>>> NEW\n", NULL, "the same"},
};

static void test_replace__old_and_new_parts(void **state)
{
    for (size_t i = 0; i < sizeof editings / sizeof *editings; i++) {
        base_buf text = {0}, got = {0}, note = {0}, why = {0};
        base_buf_puts(&text, editings[i].text);
        bool done = tool__replace_blocks("f", &text, base_str_of(editings[i].block), &got, &note, &why);
        if (done != (editings[i].result != NULL))
            fail_msg("%s: %s", editings[i].about, done ? got.data : why.data);
        if (done && strcmp(got.data, editings[i].result))
            fail_msg("%s: got\n%s", editings[i].about, got.data);
        if (editings[i].says) assert_contains(done ? note.data : why.data, editings[i].says);
        base_buf_free(&text);
        base_buf_free(&got);
        base_buf_free(&note);
        base_buf_free(&why);
    }
}

static void test_replace__line_ranges(void **state)
{
    static const struct {
        const char *text;
        size_t from, to;
        const char *block, *result;
    } ranges[] = {
        {"a\nb\nc\n", 2, 2, "B\n", "a\nB\nc\n"},
        {"a\nb\nc\n", 2, 3, "B", "a\nB\n"},
        {"a\nb\nc", 3, 3, "C\n", "a\nb\nC"},
        {"a\r\nb\r\n", 1, 1, "A\n", "A\r\nb\r\n"},
        {"a\nb\n", 1, 1, "", "b\n"},
        {"a\n", 2, 2, "x\n", NULL},
        {"a\n", 0, 1, "x\n", NULL},
        {"", 1, 1, "x\n", NULL},
        {"a\n", 1, 1, "a\n", NULL},
    };
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++) {
        base_buf text = {0}, got = {0}, why = {0};
        base_buf_puts(&text, ranges[i].text);
        bool done = tool__replace_lines(
            "f", &text, ranges[i].from, ranges[i].to, base_str_of(ranges[i].block), &got, &why);
        assert_int_equal(done, ranges[i].result != NULL);
        if (done) assert_string_equal(got.data, ranges[i].result);
        base_buf_free(&text);
        base_buf_free(&got);
        base_buf_free(&why);
    }
}

int main(void)
{
    git_libgit2_init();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_replace__by_words_alone),
        cmocka_unit_test(test_replace__with_grammars),
        cmocka_unit_test(test_replace__old_and_new_parts),
        cmocka_unit_test(test_replace__line_ranges),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
