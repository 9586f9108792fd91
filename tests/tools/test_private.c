/* A definition that is made private, in six languages: what its text becomes, and who forbids it. */
#include "refactor.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>

typedef struct file {
    const char *path, *text, *after; /* after NULL: as it was */
} file;

static void test_private__it_is_seen_as_little_as_the_language_allows(void **state)
{
    static const struct {
        const char *name;
        file files[3];
    } cases[] = {
        {"twice",
            {{"t.c",
                 "#include \"t.h\"\n\nint twice(int n)\n{\n    return 2 * n;\n}\n\nint four(void)\n{\n    return twice(2);\n}\n",
                 "#include \"t.h\"\n\nstatic int twice(int n)\n{\n    return 2 * n;\n}\n\nint four(void)\n{\n    return twice(2);\n}\n"},
                {"t.h", "int four(void);\n/* Doubles. */\nint twice(int n);\n", "int four(void);\n"}}},
        {"Cart.total",
            {{"Cart.java",
                "class Cart {\n    /** All. */\n    @Deprecated\n    public int total() { return 1; }\n    int two() { return total() + total(); }\n}\n",
                "class Cart {\n    /** All. */\n    @Deprecated\n    private int total() { return 1; }\n    int two() { return total() + total(); }\n}\n"}}},
        {"Cart.bare", {{"Cart.java", "class Cart {\n    int bare() { return 1; }\n}\n",
                          "class Cart {\n    private int bare() { return 1; }\n}\n"}}},
        {"twice",
            {{"src/a.rs",
                "/// Doubles.\n#[inline]\npub(crate) fn twice(n: u32) -> u32 {\n    2 * n\n}\n\npub fn four() -> u32 {\n    twice(2)\n}\n",
                "/// Doubles.\n#[inline]\nfn twice(n: u32) -> u32 {\n    2 * n\n}\n\npub fn four() -> u32 {\n    twice(2)\n}\n"}}},
        {"twice", {{"a.js", "export function twice(n) {\n  return 2 * n\n}\n",
                      "function twice(n) {\n  return 2 * n\n}\n"}}},
        {"twice", {{"a.py", "def twice(n):\n    return 2 * n\n", "def _twice(n):\n    return 2 * n\n"},
                      {"b.py", "from a import twice\n\nprint(twice(2))\n",
                          "from a import _twice\n\nprint(_twice(2))\n"}}},
        {"ParseURL", {{"a.go", "package a\n\nfunc ParseURL() int { return 1 }\n",
                          "package a\n\nfunc parseURL() int { return 1 }\n"},
                         {"b.go", "package a\n\nvar x = ParseURL()\n", "package a\n\nvar x = parseURL()\n"}}},
        {"URLOf", {{"a.go", "package a\n\nfunc URLOf() int { return 1 }\n",
                      "package a\n\nfunc urlOf() int { return 1 }\n"}}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tree t;
        base_buf call = {0};
        tree_make(&t, true);
        for (const file *f = cases[i].files; f < cases[i].files + 3 && f->path; f++)
            tree_put(&t, f->path, f->text);
        tree_open(&t);
        base_buf_printf(&call, "{\"operation\":\"private\",\"name\":\"%s\"}", cases[i].name);
        free(refactor_with(&t, call.data, TOOL_OK));
        for (const file *f = cases[i].files; f < cases[i].files + 3 && f->path; f++)
            expect(&t, f->path, f->after);
        base_buf_free(&call);
        tree_remove(&t);
    }
}

static void test_private__what_uses_it_from_outside_forbids_it(void **state)
{
    static const struct {
        const char *name, *says;
        file files[2];
    } cases[] = {
        {"twice", "u.c:3",
            {{"t.c", "int twice(int n) { return 2 * n; }\n"},
                {"u.c", "int twice(int n);\n\nint x(void) { return twice(1); }\n"}}},
        {"twice", "is static already", {{"t.c", "static int twice(int n) { return 2 * n; }\n"}}},
        {"pair", "cannot be made private", {{"t.c", "struct pair { int a, b; };\n"}}},
        {"Cart.total", "Shop.java:1",
            {{"Cart.java", "class Cart {\n    public int total() { return 1; }\n}\n"},
                {"Shop.java", "class Shop { int x(Cart c) { return c.total(); } }\n"}}},
        {"Cart.total", "overrides",
            {{"Cart.java", "class Cart {\n    @Override\n    public int total() { return 1; }\n}\n"}}},
        {"twice", "src/lib.rs:2",
            {{"src/a.rs", "pub fn twice(n: u32) -> u32 {\n    2 * n\n}\n"},
                {"src/lib.rs", "mod a;\npub use a::twice;\n"}}},
        {"twice", "is private already", {{"src/a.rs", "fn twice(n: u32) -> u32 {\n    2 * n\n}\n"}}},
        {"twice", "b.js:1",
            {{"a.js", "export function twice(n) {\n  return 2 * n\n}\n"},
                {"b.js", "import {twice} from './a.js'\n\ntwice(1)\n"}}},
        {"twice", "its module exports",
            {{"a.js", "function twice(n) {\n  return 2 * n\n}\n\nmodule.exports = {twice}\n"}}},
        {"Twice", "x/b.go:5",
            {{"a.go", "package m\n\nfunc Twice() int { return 1 }\n"},
                {"x/b.go", "package x\n\nimport \"m\"\n\nvar x = m.Twice()\n"}}},
        {"twice", "is private already", {{"a.go", "package a\n\nfunc twice() int { return 1 }\n"}}},
        {"_twice", "is private already", {{"a.py", "def _twice(n):\n    return 2 * n\n"}}},
        {"twice", "\"_twice\" is taken",
            {{"a.py", "def twice(n):\n    return 2 * n\n\n\ndef _twice(n):\n    return n\n"}}},
        {"f.x", "is a local", {{"a.py", "def f():\n    x = 1\n    return x\n"}}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tree t;
        base_buf call = {0};
        tree_make(&t, true);
        tree_put(&t, "go.mod", "module m\n");
        for (const file *f = cases[i].files; f < cases[i].files + 2 && f->path; f++)
            tree_put(&t, f->path, f->text);
        tree_open(&t);
        base_buf_printf(&call, "{\"operation\":\"private\",\"name\":\"%s\"}", cases[i].name);
        refuses(&t, call.data, TOOL_REFUSED, cases[i].says);
        for (const file *f = cases[i].files; f < cases[i].files + 2 && f->path; f++)
            expect(&t, f->path, f->text);
        base_buf_free(&call);
        tree_remove(&t);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_private__it_is_seen_as_little_as_the_language_allows),
        cmocka_unit_test(test_private__what_uses_it_from_outside_forbids_it),
    };
    return refactor_run(tests, sizeof tests / sizeof *tests, "private");
}
