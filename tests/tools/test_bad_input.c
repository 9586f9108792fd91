/*
 * What nobody hopes to be asked, in every language that operations know: a call is refused with a sentence and no byte is changed, or it is
 * done, and then the files parse as well as before and are as in a tree of plain files, in that tree's own bytes (line ends, byte order
 * mark, indentation, no last newline).
 */
#include "refactor.h"

#include "code/index.h"

#include "tools/file/safe_path.h"
#include "tools/tree/write.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_FILES = 6 };

typedef struct file {
    const char *path, *text;
} file;

/* A small tree of one language; files[0] defines twice, area_of and perimeter, files[1] uses area_of and defines volume. */
typedef struct speech {
    const char *language;
    file files[MAX_FILES];
    const char *fresh;   /* a new function "fresh" for files[0] */
    const char *changed; /* area_of with another body */
    const char *test;    /* the name of a new test, for the last file */
    const char *new_test;
    const char *parameter; /* one to add, as it is declared */
} speech;

static const speech speeches[] = {
    {"c",
        {{"area.c",
             "#include \"area.h\"\n#include <stdlib.h>\n\nstatic int twice(int n)\n{\n    return n * 2;\n}\n\nint area_of(int side, int unit)\n{\n"
             "    return side * side * unit;\n}\n\nint perimeter(int side)\n{\n    return twice(area_of(side, 1));\n}\n"},
            {"use.c",
                "#include \"area.h\"\n\nint volume(int side)\n{\n    return area_of(side, 1) * side;\n}\n"},
            {"area.h",
                "#ifndef AREA_H\n#define AREA_H\nint area_of(int side, int unit);\nint perimeter(int side);\nint volume(int side);\n#endif\n"},
            {"test_area.c",
                "#include <assert.h>\n#include \"area.h\"\n\nstatic void test_volume(void)\n{\n    assert(volume(1) == 2);\n}\n\nint main(void)\n{\n"
                "    test_volume();\n    return 0;\n}\n"}},
        "int fresh(int side)\n{\n    if (side < 0)\n        return 0;\n    return side + 1;\n}\n",
        "int area_of(int side, int unit)\n{\n    if (side < 0)\n        return 0;\n    return side * side * unit;\n}\n",
        "test_area", "static void test_area(void)\n{\n    assert(area_of(2, 1) == 4);\n}\n", "int limit"},
    {"cpp",
        {{"area.cpp",
             "#include \"area.hpp\"\n#include <vector>\n\nstatic int twice(int n) {\n    return n * 2;\n}\n\nint area_of(int side, int unit) {\n"
             "    return side * side * unit;\n}\n\nint perimeter(int side) {\n    return twice(area_of(side, 1));\n}\n"},
            {"use.cpp",
                "#include \"area.hpp\"\n\nint volume(int side) {\n    return area_of(side, 1) * side;\n}\n"},
            {"area.hpp",
                "#pragma once\nint area_of(int side, int unit);\nint perimeter(int side);\nint volume(int side);\n"},
            {"test_area.cpp",
                "#include <cassert>\n#include \"area.hpp\"\n\nstatic void test_volume() {\n    assert(volume(1) == 2);\n}\n\nint main() {\n"
                "    test_volume();\n    return 0;\n}\n"}},
        "int fresh(int side) {\n    if (side < 0)\n        return 0;\n    return side + 1;\n}\n",
        "int area_of(int side, int unit) {\n    if (side < 0)\n        return 0;\n    return side * side * unit;\n}\n",
        "test_area", "static void test_area() {\n    assert(area_of(2, 1) == 4);\n}\n", "int limit"},
    {"python",
        {{"area.py",
             "import os\n\n\ndef twice(n):\n    return n * 2\n\n\ndef area_of(side, unit):\n    return side * side * unit\n\n\ndef perimeter(side):\n"
             "    return twice(area_of(side, 1))\n"},
            {"use.py",
                "from area import area_of\n\n\ndef volume(side):\n    return area_of(side, 1) * side\n"},
            {"test_area.py",
                "from area import area_of\nfrom use import volume\n\n\ndef test_volume():\n    assert volume(1) == 2\n"}},
        "def fresh(side):\n    if side < 0:\n        return 0\n    return side + 1\n",
        "def area_of(side, unit):\n    if side < 0:\n        return 0\n    return side * side * unit\n",
        "test_area", "def test_area():\n    assert area_of(2, 1) == 4\n", "limit"},
    {"go",
        {{"area.go",
             "package shape\n\nimport \"fmt\"\n\nfunc twice(n int) int {\n\treturn n * 2\n}\n\nfunc area_of(side int, unit int) int {\n"
             "\treturn side * side * unit\n}\n\nfunc perimeter(side int) int {\n\tfmt.Println(side)\n\treturn twice(area_of(side, 1))\n}\n"},
            {"use.go", "package shape\n\nfunc volume(side int) int {\n\treturn area_of(side, 1) * side\n}\n"},
            {"go.mod", "module example.org/shape\n"},
            {"area_test.go",
                "package shape\n\nimport \"testing\"\n\nfunc TestVolume(t *testing.T) {\n\tif volume(1) != 2 {\n\t\tt.Fatal(1)\n\t}\n}\n"}},
        "func fresh(side int) int {\n\tif side < 0 {\n\t\treturn 0\n\t}\n\treturn side + 1\n}\n",
        "func area_of(side int, unit int) int {\n\tif side < 0 {\n\t\treturn 0\n\t}\n\treturn side * side * unit\n}\n",
        "TestArea", "func TestArea(t *testing.T) {\n\tif area_of(2, 1) != 4 {\n\t\tt.Fatal(1)\n\t}\n}\n",
        "limit int"},
    {"javascript",
        {{"area.js",
             "const fs = require('fs');\n\nfunction twice(n) {\n  return n * 2;\n}\n\nfunction area_of(side, unit) {\n  return side * side * unit;\n}\n\n"
             "function perimeter(side) {\n  return twice(area_of(side, 1));\n}\n\nmodule.exports = { area_of, perimeter };\n"},
            {"use.js",
                "const { area_of } = require('./area');\n\nfunction volume(side) {\n  return area_of(side, 1) * side;\n}\n\nmodule.exports = { volume };\n"},
            {"package.json", "{\"name\": \"shape\"}\n"},
            {"test.js",
                "const assert = require('assert');\nconst { area_of } = require('./area');\nconst { volume } = require('./use');\n\n"
                "function testVolume() {\n  assert(volume(1) === 2);\n}\n\ntestVolume();\n"}},
        "function fresh(side) {\n  if (side < 0) {\n    return 0;\n  }\n  return side + 1;\n}\n",
        "function area_of(side, unit) {\n  if (side < 0) {\n    return 0;\n  }\n  return side * side * unit;\n}\n",
        "testArea", "function testArea() {\n  assert(area_of(2, 1) === 4);\n}\n", "limit"},
    {"typescript",
        {{"area.ts",
             "import * as fs from 'fs';\n\nfunction twice(n: number): number {\n  return n * 2;\n}\n\n"
             "export function area_of(side: number, unit: number): number {\n  return side * side * unit;\n}\n\n"
             "export function perimeter(side: number): number {\n  return twice(area_of(side, 1));\n}\n"},
            {"use.ts",
                "import { area_of } from './area';\n\nexport function volume(side: number): number {\n  return area_of(side, 1) * side;\n}\n"},
            {"test.ts",
                "import { area_of } from './area';\nimport { volume } from './use';\n\nfunction testVolume(): boolean {\n  return volume(1) === 2;\n}\n\n"
                "testVolume();\n"}},
        "export function fresh(side: number): number {\n  if (side < 0) {\n    return 0;\n  }\n  return side + 1;\n}\n",
        "export function area_of(side: number, unit: number): number {\n  if (side < 0) {\n    return 0;\n  }\n  return side * side * unit;\n}\n",
        "testArea", "function testArea(): boolean {\n  return area_of(2, 1) === 4;\n}\n", "limit: number"},
    {"rust",
        {{"src/area.rs",
             "use std::fmt;\n\nfn twice(n: i32) -> i32 {\n    n * 2\n}\n\npub fn area_of(side: i32, unit: i32) -> i32 {\n    side * side * unit\n}\n\n"
             "pub fn perimeter(side: i32) -> i32 {\n    twice(area_of(side, 1))\n}\n"},
            {"src/lib.rs",
                "pub mod area;\nuse crate::area::area_of;\n\npub fn volume(side: i32) -> i32 {\n    area_of(side, 1) * side\n}\n"},
            {"Cargo.toml", "[package]\nname = \"shape\"\nversion = \"0.1.0\"\n"},
            {"tests/area.rs",
                "use shape::area::area_of;\nuse shape::volume;\n\n#[test]\nfn test_volume() {\n    assert_eq!(volume(1), 2);\n}\n"}},
        "pub fn fresh(side: i32) -> i32 {\n    if side < 0 {\n        return 0;\n    }\n    side + 1\n}\n",
        "pub fn area_of(side: i32, unit: i32) -> i32 {\n    if side < 0 {\n        return 0;\n    }\n    side * side * unit\n}\n",
        "test_area", "#[test]\nfn test_area() {\n    assert_eq!(area_of(2, 1), 4);\n}\n", "limit: i32"},
    {"java",
        {{"src/main/java/shape/Area.java",
             "package shape;\n\nimport java.util.List;\n\npublic class Area {\n    static int twice(int n) {\n        return n * 2;\n    }\n\n"
             "    public static int area_of(int side, int unit) {\n        return side * side * unit;\n    }\n\n"
             "    public static int perimeter(int side) {\n        return twice(area_of(side, 1));\n    }\n}\n"},
            {"src/main/java/shape/Use.java",
                "package shape;\n\npublic class Use {\n    public static int volume(int side) {\n        return Area.area_of(side, 1) * side;\n    }\n}\n"},
            {"src/test/java/shape/AreaTest.java",
                "package shape;\n\nimport org.junit.Test;\nimport static org.junit.Assert.assertEquals;\n\npublic class AreaTest {\n    @Test\n"
                "    public void volume() {\n        assertEquals(2, Use.volume(1));\n    }\n}\n"}},
        "public static int fresh(int side) {\n    if (side < 0) {\n        return 0;\n    }\n    return side + 1;\n}\n",
        "public static int area_of(int side, int unit) {\n    if (side < 0) {\n        return 0;\n    }\n    return side * side * unit;\n}\n",
        "area", "@Test\npublic void area() {\n    assertEquals(4, Area.area_of(2, 1));\n}\n", "int limit"},
};

/* ---- the bytes of a tree ---- */

typedef enum shape { PLAIN, CRLF, MARKED, N_SHAPES } shape;
static const char *const shape_words[] = {"plain", "CRLF", "byte order mark, tabs, no last newline"};

/* The plain text in the shape's bytes; heap. unit: the blanks of one step of its indentation. */
static char *shaped(const char *text, shape s, size_t unit)
{
    base_buf out = {0};
    bool at_begin = true;
    if (s == MARKED && *text) base_buf_puts(&out, TOOL_MARK);
    for (const char *p = text; *p; p++) {
        if (s == MARKED && at_begin && !strncmp(p, "    ", unit)) {
            base_buf_putc(&out, '\t');
            p += unit - 1;
            continue;
        }
        if (*p == '\n' && s == CRLF) base_buf_putc(&out, '\r');
        at_begin = *p == '\n';
        base_buf_putc(&out, *p);
    }
    if (s == MARKED && out.len && out.data[out.len - 1] == '\n') out.data[--out.len] = '\0';
    if (!out.data) base_buf_puts(&out, "");
    return base_buf_take(&out);
}

/* ---- calls ---- */

typedef struct call {
    const char *about, *tool;
    const char *
        arguments; /* with $0 and $1 for the first two paths, $T for the tests', $E for the ending, $P for the parameter, $N for the test */
    char payload;  /* 'f'resh, 'c'hanged, 't'est, 'l'ine; 0: none */
} call;

static const call calls[] = {
    {"rename", "refactor", "{\"operation\":\"rename\",\"name\":\"area_of\",\"to\":\"surface\"}", 0},
    {"rename a parameter", "refactor",
        "{\"operation\":\"rename\",\"name\":\"area_of.side\",\"to\":\"edge\",\"path\":\"$0\"}", 0},
    {"move to a file", "refactor", "{\"operation\":\"move\",\"name\":\"area_of\",\"to\":\"$1\"}", 0},
    {"move to a new file", "refactor", "{\"operation\":\"move\",\"name\":\"area_of\",\"to\":\"new$E\"}", 0},
    {"move to a new file and keep", "refactor",
        "{\"operation\":\"move\",\"name\":\"area_of\",\"to\":\"new$E\",\"keep\":true}", 0},
    {"delete a caller", "refactor", "{\"operation\":\"delete\",\"name\":\"perimeter\"}", 0},
    {"delete with its tests", "refactor", "{\"operation\":\"delete\",\"name\":\"volume\"}", 0},
    {"delete with a text", "refactor", "{\"operation\":\"delete\",\"name\":\"area_of\",\"to\":\"side + 1\"}",
        0},
    {"add a parameter", "refactor",
        "{\"operation\":\"signature\",\"name\":\"area_of\",\"parameter\":\"$P\",\"value\":\"10\"}", 0},
    {"add a first parameter", "refactor",
        "{\"operation\":\"signature\",\"name\":\"area_of\",\"parameter\":\"$P\",\"value\":\"10\",\"at\":1}",
        0},
    {"change an order", "refactor",
        "{\"operation\":\"signature\",\"name\":\"area_of\",\"parameter\":\"2,1\"}", 0},
    {"drop a parameter", "refactor",
        "{\"operation\":\"signature\",\"name\":\"area_of\",\"parameter\":\"unit\"}", 0},
    {"private", "refactor", "{\"operation\":\"private\",\"name\":\"perimeter\"}", 0},
    {"inline", "refactor", "{\"operation\":\"inline\",\"name\":\"twice\"}", 0},
    {"inline over files", "refactor", "{\"operation\":\"inline\",\"name\":\"area_of\"}", 0},
    {"add", "rewrite", "{\"path\":\"$0\",\"name\":\"fresh\"}", 'f'},
    {"change", "rewrite", "{\"path\":\"$0\",\"name\":\"area_of\"}", 'c'},
    {"new test", "rewrite", "{\"path\":\"$T\",\"name\":\"$N\"}", 't'},
    {"edit a line", "edit", "{\"path\":\"$0\",\"from\":1,\"to\":1}", 'l'},
};

static const file *tests_of(const speech *p)
{
    const file *f = p->files;
    while (f + 1 < p->files + MAX_FILES && f[1].path) f++;
    return f;
}

/* A call's arguments for a language; heap. */
static char *arguments_of(const speech *p, const char *form)
{
    base_buf out = {0};
    for (const char *at = form; *at; at++) {
        if (*at != '$') {
            base_buf_putc(&out, *at);
            continue;
        }
        const char c = *++at;
        base_buf_puts(&out, c == '0'   ? p->files[0].path
                            : c == '1' ? p->files[1].path
                            : c == 'T' ? tests_of(p)->path
                            : c == 'E' ? strrchr(p->files[0].path, '.')
                            : c == 'P' ? p->parameter
                                       : p->test);
    }
    return base_buf_take(&out);
}

/* A text's first line, with a comment behind it; static. */
static const char *first_line(const speech *p)
{
    static char line[200];
    const char *text = p->files[0].text;
    snprintf(line, sizeof line, "%.*s %s first\n", (int)strcspn(text, "\n"), text,
        strcmp(p->language, "python") ? "//" : "#");
    return line;
}

static const char *payload_of(const speech *p, char which)
{
    return which == 'f'   ? p->fresh
           : which == 'c' ? p->changed
           : which == 't' ? p->new_test
           : which == 'l' ? first_line(p)
                          : NULL;
}

/* The call; once more where it was refused for a text that had to be shown first. */
static tool_result do_call(tree *t, const char *tool, const char *arguments, const char *payload)
{
    tool_result r = tree_call(t, tool, arguments, payload);
    if (r.status == TOOL_REFUSED && strstr(r.text.data, "was not read yet")) {
        tool_result_free(&r);
        r = tree_call(t, tool, arguments, payload);
    }
    return r;
}

static uint32_t count_errors(tree *t, const char *path, const char *text)
{
    code_file *f = code_parse(t->w->grammars, path, text, strlen(text));
    const uint32_t n = f->language ? f->n_errors : 0;
    code_file_free(f);
    return n;
}

/* Every file of the tree but git's, as "PATH\n"; heap. */
static char *list_files(tree *t)
{
    char command[400];
    base_buf out = {0};
    snprintf(command, sizeof command,
        "cd '%s' && find . -type f -not -path './.git/*' | cut -c3- | LC_ALL=C sort", t->dir);
    FILE *f = popen(command, "r");
    assert_non_null(f);
    for (int c; (c = getc(f)) != EOF;) base_buf_putc(&out, (char)c);
    pclose(f);
    if (!out.data) base_buf_puts(&out, "");
    return base_buf_take(&out);
}

/* All files with their texts, "PATH\nTEXT\1" each; heap. */
static char *whole_tree(tree *t)
{
    char *list = list_files(t), *rest = list;
    base_buf out = {0};
    for (char *path; (path = strsep(&rest, "\n")) && *path;) {
        char *text = tree_get(t, path);
        base_buf_printf(&out, "%s\n%s\1", path, text);
        free(text);
    }
    free(list);
    if (!out.data) base_buf_puts(&out, "");
    return base_buf_take(&out);
}

static size_t unit_of(const speech *p)
{
    return !strcmp(p->language, "javascript") || !strcmp(p->language, "typescript") ? 2 : 4;
}

static void put_files(tree *t, const speech *p, shape s)
{
    for (const file *f = p->files; f < p->files + MAX_FILES && f->path; f++) {
        char *text = shaped(f->text, s, unit_of(p));
        tree_put(t, f->path, text);
        free(text);
    }
}

/* ---- what has to hold ---- */

static int n_done, n_refused;

/* A refusal has a sentence and changed nothing; what was done parses. `before`: whole_tree. */
static void check(tree *t, const char *about, const char *language, const tool_result *r, const char *before)
{
    char *after = whole_tree(t);
    if (r->status != TOOL_OK) {
        n_refused++;
        if (strlen(r->text.data) < 20) fail_msg("%s, %s: no sentence: %s", language, about, r->text.data);
        if (strcmp(before, after) != 0)
            fail_msg("%s, %s: refused, and yet\n%s\nbecame\n%s", language, about, before, after);
    } else {
        n_done++;
        for (size_t i = 0; r->changed && r->changed[i]; i++) {
            char *text = tree_get(t, r->changed[i]);
            if (text && count_errors(t, r->changed[i], text))
                fail_msg("%s, %s: %s does not parse:\n%s", language, about, r->changed[i], text);
            free(text);
        }
    }
    free(after);
}

static void fail_differs(
    const speech *p, const call *c, shape s, const char *path, const char *now, const char *wanted)
{
    base_buf a = {0}, b = {0};
    base_json_put_str(&a, now, strlen(now));
    base_json_put_str(&b, wanted, strlen(wanted));
    print_message(
        "%s, %s, %s: %s is\n%s\nand not\n%s\n", p->language, c->about, shape_words[s], path, a.data, b.data);
    base_buf_free(&a);
    base_buf_free(&b);
}

/* The text without the newlines at its end, where one may be missing or be added. */
static bool is_same_but_end(const char *a, const char *b)
{
    size_t n = strlen(a), m = strlen(b);
    while (n && strchr("\r\n", a[n - 1])) n--;
    while (m && strchr("\r\n", b[m - 1])) m--;
    return n == m && !memcmp(a, b, n);
}

/* Each file is the plain tree's file in the shape's bytes; how many are not. */
static int compare_with_plain(tree *t, const speech *p, const call *c, shape s, const char *plain)
{
    char *copy = strdup(plain), *rest = copy;
    int n_bad = 0;
    for (char *one; (one = strsep(&rest, "\1")) && *one;) {
        char *text = strchr(one, '\n');
        *text++ = '\0';
        const file *known = p->files;
        while (known < p->files + MAX_FILES && known->path && strcmp(known->path, one) != 0) known++;
        const bool is_new = known == p->files + MAX_FILES || !known->path; /* it begins without a mark */
        char *wanted = shaped(text, s, unit_of(p)), *now = tree_get(t, one);
        if (is_new && !strncmp(wanted, TOOL_MARK, 3)) memmove(wanted, wanted + 3, strlen(wanted) - 2);
        if (!now || (s == MARKED ? !is_same_but_end(now, wanted) : strcmp(now, wanted) != 0)) {
            fail_differs(p, c, s, one, now ? now : "(missing)", wanted);
            n_bad++;
        }
        free(wanted);
        free(now);
    }
    free(copy);
    return n_bad;
}

static void test_bad_input__a_tree_keeps_its_bytes(void **state)
{
    int n_bad = 0;
    for (const speech *p = speeches; p < speeches + sizeof speeches / sizeof *speeches; p++)
        for (const call *c = calls; c < calls + sizeof calls / sizeof *calls; c++) {
            char *plain = NULL, *arguments = arguments_of(p, c->arguments);
            tool_status status = TOOL_OK;
            for (shape s = PLAIN; s < N_SHAPES; s++) {
                tree t;
                tree_make(&t, false);
                put_files(&t, p, s);
                tree_open(&t);
                char *before = whole_tree(&t);
                tool_result r = do_call(&t, c->tool, arguments, payload_of(p, c->payload));
                check(&t, c->about, p->language, &r, before);
                if (getenv("KVIST_SHOW_BAD_INPUT") && s == PLAIN)
                    print_message("%s, %s: %s: %.200s\n", p->language, c->about, tool_status_word(r.status),
                        r.text.data);
                if (s == PLAIN) {
                    plain = whole_tree(&t);
                    status = r.status;
                } else if (r.status != status) {
                    print_message("%s, %s, %s: %s and not %s: %s\n", p->language, c->about, shape_words[s],
                        tool_status_word(r.status), tool_status_word(status), r.text.data);
                    n_bad++;
                } else if (r.status == TOOL_OK) {
                    n_bad += compare_with_plain(&t, p, c, s, plain);
                }
                tool_result_free(&r);
                free(before);
                tree_remove(&t);
            }
            free(plain);
            free(arguments);
        }
    print_message("%d done, %d refused\n", n_done, n_refused);
    assert_int_equal(n_bad, 0);
}

/* ---- trees in a bad state ---- */

typedef enum hazard { BROKEN, CONFLICT, GENERATED, THRICE, ESC, N_HAZARDS } hazard;
static const char *const hazard_words[] = {"a tree that did not parse", "marks of a merge",
    "a generated file", "three definitions", "Esc between files"};

/* The definition of area_of, whole; heap. *ret_behind: the text behind it. */
static char *area_of(const speech *p, const char **ret_behind)
{
    const char *text = p->files[0].text, *at = strstr(text, "area_of"), *end;
    while (at > text && at[-1] != '\n') at--;
    end = strstr(at, !strcmp(p->language, "python") ? "\n\n\n"
                     : !strcmp(p->language, "java") ? "\n    }\n"
                                                    : "\n}\n");
    end += strlen(!strcmp(p->language, "python") ? "\n"
                  : !strcmp(p->language, "java") ? "\n    }\n"
                                                 : "\n}\n");
    *ret_behind = end;
    return strndup(at, (size_t)(end - at));
}

/* files[0] as the hazard has it; heap. */
static char *endangered(const speech *p, hazard h)
{
    const char *text = p->files[0].text, *comment = strcmp(p->language, "python") ? "//" : "#", *behind;
    base_buf out = {0};
    if (h == GENERATED) base_buf_printf(&out, "%s Code generated by shapes. DO NOT EDIT.\n", comment);
    if (h == CONFLICT) base_buf_puts(&out, "<<<<<<< ours\n");
    if (h == THRICE) {
        char *one = area_of(p, &behind);
        base_buf_printf(&out, "%.*s%s\n%s%s", (int)(behind - text), text, one, one, behind);
        free(one);
    } else {
        base_buf_puts(&out, text);
    }
    if (h == CONFLICT) base_buf_puts(&out, "=======\n>>>>>>> theirs\n");
    if (h == BROKEN) base_buf_puts(&out, "\n) = [ {{ unfinished(\n");
    return base_buf_take(&out);
}

static atomic_bool cancelled;
static void cancel_at(const char *step)
{
    (void)step;
    atomic_store(&cancelled, true);
}

/* Has each file none of a name or three, whose first lines are equal? */
static bool is_whole(tree *t, const char *name)
{
    char *list = list_files(t), *rest = list;
    bool is_good = true;
    for (char *path; (path = strsep(&rest, "\n")) && *path;) {
        char *text = tree_get(t, path), *head = NULL;
        code_file *f = code_parse(t->w->grammars, path, text, strlen(text));
        size_t n = 0;
        for (uint32_t i = 0; i < f->n_definitions; i++) {
            const code_definition *d = &f->definitions[i];
            if (strcmp(d->name, name) != 0 || d->is_declaration) continue;
            if (n++ && strncmp(head, text + d->from, strcspn(head, "\n") + 1) != 0) is_good = false;
            head = text + d->from;
        }
        is_good = is_good && (n == 0 || n == 3);
        code_file_free(f);
        free(text);
    }
    free(list);
    return is_good;
}

/* What a call must not do in such a tree; how many of them it did. */
static int run_hazard(const speech *p, const call *c, hazard h)
{
    tree t;
    int n_bad = 0;
    char *arguments = arguments_of(p, c->arguments), *text = endangered(p, h);
    tree_make(&t, h == CONFLICT);
    put_files(&t, p, PLAIN);
    tree_put(&t, p->files[0].path, text);
    tree_open(&t);
    char *before = whole_tree(&t);
    const uint32_t n_errors = count_errors(&t, p->files[0].path, text);
    tool_preview preview = {0};
    tool_result r = tree_prepare(&t, c->tool, arguments, payload_of(p, c->payload), &preview);
    const bool is_asked = r.status != TOOL_OK || preview.is_foreign;
    tool_preview_free(&preview);
    tool_result_free(&r);
    if (h == ESC) {
        t.limits.cancel = &cancelled;
        atomic_store(&cancelled, false);
        tool__step_hook = cancel_at;
    }
    r = do_call(&t, c->tool, arguments, payload_of(p, c->payload));
    tool__step_hook = NULL;
    t.limits.cancel = NULL;
    char *after = whole_tree(&t), *now = tree_get(&t, p->files[0].path);
    const bool is_same = !strcmp(before, after);
    const char *wrong = NULL;
    if (r.status != TOOL_OK && !is_same) wrong = "refused, and yet changed";
    if (r.status != TOOL_OK && strlen(r.text.data) < 20) wrong = "no sentence";
    if (r.status == TOOL_OK && now && count_errors(&t, p->files[0].path, now) > n_errors)
        wrong = "parses worse";
    if (h == CONFLICT && strcmp(c->tool, "edit") != 0 && now && strcmp(now, text) != 0)
        wrong = "writes over marks of a merge";
    if (h == GENERATED && !is_same && !is_asked && now && strcmp(now, text) != 0)
        wrong = "is not asked about";
    if (h == THRICE && r.status == TOOL_OK && !strcmp(c->about, "inline over files"))
        wrong = "takes one of three";
    if (h == THRICE && (!is_whole(&t, "area_of") || !is_whole(&t, "surface"))) wrong = "does a part";
    if (wrong) {
        print_message("%s, %s, %s: %s: %s\n%s\n", p->language, c->about, hazard_words[h], wrong, r.text.data,
            now ? now : "");
        n_bad++;
    }
    if (getenv("KVIST_SHOW_BAD_INPUT"))
        print_message("%s, %s, %s: %s: %.200s\n", p->language, c->about, hazard_words[h],
            tool_status_word(r.status), r.text.data);
    tool_result_free(&r);
    free(before);
    free(after);
    free(now);
    free(text);
    free(arguments);
    tree_remove(&t);
    return n_bad;
}

static void test_bad_input__a_tree_in_a_bad_state(void **state)
{
    int n_bad = 0;
    for (const speech *p = speeches; p < speeches + sizeof speeches / sizeof *speeches; p++)
        for (const call *c = calls; c < calls + sizeof calls / sizeof *calls; c++)
            for (hazard h = BROKEN; h < N_HAZARDS; h++) n_bad += run_hazard(p, c, h);
    assert_int_equal(n_bad, 0);
}

/* ---- names ---- */

typedef struct name_case {
    const char *languages; /* between blanks; "" all */
    const char *to;
    bool is_refused;
} name_case;

static const name_case names[] = {
    /* no name anywhere, or of another language */
    {"", "", true},
    {"", "1st", true},
    {"", "a-b", true},
    {"", "a.b", true},
    {"", "a b", true},
    {"", "empty?", true},
    {"", "a\\nb", true},
    {"", "a\\u200bb", true}, /* nobody sees that letter */
    {"", "a\\u202eb", true},
    {" c cpp python go rust ", "$x", true},
    {" javascript typescript java ", "$x", false},
    {" c cpp ", "größe", true},
    {" python go java javascript typescript rust ", "größe", false},
    {"", "if", true},
    {" c cpp python javascript typescript java rust go ", "return", true},
    {" c ", "true", true},
    {" c ", "nullptr", true},
    {" cpp ", "class", true},
    {" c ", "class", false},
    {" python ", "lambda", true},
    {" python ", "match", false}, /* a keyword in its place alone */
    {" go ", "func", true},
    {" go ", "_", true},
    {" go ", "init", true},
    {" javascript typescript ", "await", true},
    {" javascript typescript ", "arguments", true},
    {" rust ", "_", true},
    {" rust ", "crate", true},
    {" java ", "yield", true},
    {" java ", "synchronized", true},
    /* taken: in the same file, in one that says the old name, in one that does not, by an import, by the language where it is used */
    {"", "twice", true},
    {"", "perimeter", true},
    {" c cpp python go javascript typescript rust ", "volume", true},
    {" c cpp go ", "elsewhere", true},
    {" python javascript typescript rust java ", "elsewhere", false},
    {" python ", "os", true},
    {" go ", "fmt", true},
    {" javascript typescript ", "fs", true},
    {" go ", "len", true},
    {" go ", "strings", true},
    {"", "surface", false},
};

/* A further file of the language, which says nothing of area_of. */
static void put_elsewhere(tree *t, const speech *p)
{
    static const file others[] = {
        {"c", "int elsewhere(int n)\n{\n    return n;\n}\n"},
        {"cpp", "int elsewhere(int n) {\n    return n;\n}\n"},
        {"python", "def elsewhere(n):\n    return n\n"},
        {"go",
            "package shape\n\nimport \"strings\"\n\nfunc elsewhere(n string) int {\n\treturn len(strings.TrimSpace(n))\n}\n"},
        {"javascript", "function elsewhere(n) {\n  return n;\n}\n"},
        {"typescript", "function elsewhere(n: number): number {\n  return n;\n}\n"},
        {"rust", "fn elsewhere(n: i32) -> i32 {\n    n\n}\n"},
        {"java",
            "package shape;\n\nclass Other {\n    static int elsewhere(int n) {\n        return n;\n    }\n}\n"},
    };
    char path[100];
    const char *slash = strrchr(p->files[0].path, '/'), *dot = strrchr(p->files[0].path, '.');
    snprintf(path, sizeof path, "%.*sOther%s", slash ? (int)(slash + 1 - p->files[0].path) : 0,
        p->files[0].path, dot);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (!strcmp(others[i].path, p->language)) tree_put(t, path, others[i].text);
}

static void test_bad_input__names(void **state)
{
    for (const speech *p = speeches; p < speeches + sizeof speeches / sizeof *speeches; p++) {
        tree t;
        tree_make(&t, false);
        put_files(&t, p, PLAIN);
        put_elsewhere(&t, p);
        tree_open(&t);
        assert_int_equal(tool_workspace_refresh(t.w, NULL, NULL, NULL), 0);
        char *before = whole_tree(&t);
        for (const name_case *c = names; c < names + sizeof names / sizeof *names; c++) {
            char language[40], arguments[200];
            snprintf(language, sizeof language, " %s ", p->language);
            if (*c->languages && !strstr(c->languages, language)) continue;
            snprintf(arguments, sizeof arguments,
                "{\"operation\":\"rename\",\"name\":\"area_of\",\"to\":\"%s\"}", c->to);
            tool_preview preview = {0};
            tool_result r = tree_prepare(&t, "refactor", arguments, NULL, &preview);
            if ((r.status != TOOL_OK) != c->is_refused)
                print_message("%s: rename to %s: %s: %s\n", p->language, c->to, tool_status_word(r.status),
                    r.text.data ? r.text.data : "");
            if (c->is_refused) assert_contains(r.text.data, "Nothing was changed");
            tool_preview_free(&preview);
            tool_result_free(&r);
        }
        char *after = whole_tree(&t);
        assert_string_equal(before, after);
        free(before);
        free(after);
        tree_remove(&t);
    }
}

/* Names of types, and of what is added. */
static void test_bad_input__names_of_types_and_additions(void **state)
{
    static const struct {
        const char *path, *text, *other, *other_text, *tool, *arguments, *payload, *says;
    } cases[] = {
        {"a/Use.java", "package a;\n\nclass Use {\n}\n", "a/Tool.java", "package a;\n\nclass Tool {\n}\n",
            "refactor", "{\"operation\":\"rename\",\"name\":\"Use\",\"to\":\"Tool\"}", NULL, "is taken"},
        {"a/Use.java", "package a;\n\nclass Use {\n}\n", "b/Tool.java", "package b;\n\nclass Tool {\n}\n",
            "refactor", "{\"operation\":\"rename\",\"name\":\"Use\",\"to\":\"Tool\"}", NULL, NULL},
        {"a/Use.java", "package a;\n\nclass Use {\n}\n", NULL, NULL, "refactor",
            "{\"operation\":\"rename\",\"name\":\"Use\",\"to\":\"record\"}", NULL, "has a type of that name"},
        {"a.ts", "export interface Shape {\n  side: number;\n}\n", NULL, NULL, "refactor",
            "{\"operation\":\"rename\",\"name\":\"Shape\",\"to\":\"string\"}", NULL,
            "has a type of that name"},
        {"a.ts", "export function shape(): number {\n  return 1;\n}\n", NULL, NULL, "refactor",
            "{\"operation\":\"rename\",\"name\":\"shape\",\"to\":\"string\"}", NULL, NULL},
        /* the caller uses the language's own, which the import would hide */
        {"a.py", "def total(n):\n    return n\n", "b.py",
            "from a import total\n\n\ndef f(n):\n    return total(len(n))\n", "refactor",
            "{\"operation\":\"rename\",\"name\":\"total\",\"to\":\"len\"}", NULL, "is taken"},
        {"a.py", "def total(n):\n    return n\n", "b.py",
            "import a\n\n\ndef f(n):\n    return a.total(len(n))\n", "refactor",
            "{\"operation\":\"rename\",\"name\":\"total\",\"to\":\"len\"}", NULL, NULL},
        {"a.py", "def f(side):\n    edge = 1\n    return side + edge\n", NULL, NULL, "refactor",
            "{\"operation\":\"rename\",\"name\":\"f.side\",\"to\":\"edge\"}", NULL, "is taken"},
        {"a.py", "def f(side):\n    return side\n", NULL, NULL, "refactor",
            "{\"operation\":\"signature\",\"name\":\"f\",\"parameter\":\"class=1\"}", NULL,
            "Nothing was changed"},
        {"a.py", "def f(side):\n    return side\n", NULL, NULL, "refactor",
            "{\"operation\":\"signature\",\"name\":\"f\",\"parameter\":\"side\",\"value\":\"1\"}", NULL,
            "has a parameter side already"},
        {"a.py", "def f(side):\n    edge = 1\n    return side + edge\n", NULL, NULL, "refactor",
            "{\"operation\":\"signature\",\"name\":\"f\",\"parameter\":\"edge\",\"value\":\"1\"}", NULL,
            "Nothing was changed"},
        {"a.c", "int f(int side)\n{\n    int edge = 1;\n    return side + edge;\n}\n", NULL, NULL, "refactor",
            "{\"operation\":\"signature\",\"name\":\"f\",\"parameter\":\"int edge\",\"value\":\"1\"}", NULL,
            "Nothing was changed"},
        {"a.go", "package a\n\nfunc f(side int) int {\n\tedge := 1\n\treturn side + edge\n}\n", NULL, NULL,
            "refactor",
            "{\"operation\":\"signature\",\"name\":\"f\",\"parameter\":\"edge int\",\"value\":\"1\"}", NULL,
            "Nothing was changed"},
        {"a.js", "function f(side) {\n  const edge = 1;\n  return side + edge;\n}\n", NULL, NULL, "refactor",
            "{\"operation\":\"signature\",\"name\":\"f\",\"parameter\":\"edge\",\"value\":\"1\"}", NULL,
            "Nothing was changed"},
        {"a.go", "package a\n\nfunc F() int {\n\treturn 1\n}\n\nfunc f() int {\n\treturn 2\n}\n", NULL, NULL,
            "refactor", "{\"operation\":\"private\",\"name\":\"F\"}", NULL, "is taken"},
        {"a.py", "def f():\n    return 1\n\n\ndef _f():\n    return 2\n", NULL, NULL, "refactor",
            "{\"operation\":\"private\",\"name\":\"f\"}", NULL, "is taken"},
        {"a.py", "def f():\n    return 1\n", NULL, NULL, "rewrite", "{\"path\":\"a.py\",\"name\":\"class\"}",
            "def class():\n    return 1\n", "othing was changed"},
        {"a.c", "int f(void)\n{\n    return 1;\n}\n", NULL, NULL, "rewrite",
            "{\"path\":\"a.c\",\"name\":\"while\"}", "int while(void)\n{\n    return 1;\n}\n", "othing was "},
        {"a.go", "package a\n\nfunc f() int {\n\treturn 1\n}\n", "b.go",
            "package a\n\nfunc g() int {\n\treturn 2\n}\n", "rewrite", "{\"path\":\"a.go\",\"name\":\"g\"}",
            "func g() int {\n\treturn 3\n}\n", NULL /* that one is rewritten, and it is said */},
        {"a.zz", "fn total(n) = n\n", NULL, NULL, "refactor",
            "{\"operation\":\"rename\",\"name\":\"total\",\"to\":\"sum\"}", NULL, "othing was changed"},
        {"a.zz", "fn total(n) = n\n", NULL, NULL, "rewrite", "{\"path\":\"a.zz\",\"name\":\"total\"}",
            "fn total(n) = n + 1\n", NULL},
    };
    int n_bad = 0;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tree t;
        tree_make(&t, false);
        tree_put(&t, cases[i].path, cases[i].text);
        if (cases[i].other) tree_put(&t, cases[i].other, cases[i].other_text);
        tree_open(&t);
        assert_int_equal(tool_workspace_refresh(t.w, NULL, NULL, NULL), 0);
        char *before = whole_tree(&t);
        tool_result r = do_call(&t, cases[i].tool, cases[i].arguments, cases[i].payload);
        char *after = whole_tree(&t);
        const bool is_refused = r.status != TOOL_OK && !strcmp(before, after);
        if (cases[i].says ? !is_refused || !strstr(r.text.data, cases[i].says) : r.status != TOOL_OK) {
            print_message("%s: %s: %s: %s\n", cases[i].path, cases[i].arguments, tool_status_word(r.status),
                r.text.data);
            n_bad++;
        }
        free(before);
        free(after);
        tool_result_free(&r);
        tree_remove(&t);
    }
    assert_int_equal(n_bad, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bad_input__names),
        cmocka_unit_test(test_bad_input__names_of_types_and_additions),
        cmocka_unit_test(test_bad_input__a_tree_keeps_its_bytes),
        cmocka_unit_test(test_bad_input__a_tree_in_a_bad_state),
    };
    return refactor_run(tests, sizeof tests / sizeof *tests, "bad input");
}
