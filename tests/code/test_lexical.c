/* Without any grammar (NULL): definitions, anchors and sections by the lexical reading; languages by name; words. */
#include <stdlib.h>
#include <string.h>

#include "support.h"

#include "base/buf.h"

static void test_lexical__c(void **state)
{
    static const char text[] = "#define LIMIT 3\n"
                               "struct point {\n"
                               "    int x;\n"
                               "};\n"
                               "typedef struct {\n"
                               "    int y;\n"
                               "} other;\n"
                               "int add(int a);\n"
                               "/* { in a comment */\n"
                               "static int\n"
                               "add(int a)\n"
                               "{\n"
                               "    const char *s = \"}\";\n"
                               "    if (a == 1) return add(2);\n"
                               "    s = 0;\n"
                               "}\n"
                               "struct point *use(void);\n";
    code_file *f = code_parse(NULL, "a.c", text, sizeof text - 1);
    assert_null(f->language);
    assert_string_equal(definition(f, "LIMIT")->what, "macro");
    assert_string_equal(definition(f, "point")->what, "struct");
    assert_string_equal(definition(f, "other")->what, "struct");
    uint32_t i;
    assert_int_equal(code_find_definition(f, "add", &i, 1), 1);
    assert_false(f->definitions[i].is_declaration);
    assert_memory_equal(text + f->definitions[i].to - 3, ";\n}", 3);
    char s[256];
    join_anchors(f, text, CODE_CALL, true, s, sizeof s);
    assert_non_null(strstr(s, "add("));
    join_anchors(f, text, CODE_CONTROL, true, s, sizeof s);
    assert_string_equal(s, "if (a == 1)");
    code_file_free(f);
}

static void test_lexical__python_blocks_end_with_their_indent(void **state)
{
    static const char text[] = "class A:\n"
                               "    def f(self):\n"
                               "        '''text\n"
                               "not code: def fake():\n"
                               "'''\n"
                               "        return g(1)\n\n"
                               "    def h(self):\n"
                               "        pass\n\n"
                               "def last(): return 2\n";
    code_file *f = code_parse(NULL, "a.py", text, sizeof text - 1);
    assert_int_equal(definition(f, "f")->line_end, 6);
    assert_string_equal(definition(f, "h")->parent, "A");
    assert_string_equal(definition(f, "h")->what, "method");
    assert_int_equal(definition(f, "A")->line_end, 9);
    for (uint32_t i = 0; i < f->n_definitions; i++) assert_string_not_equal(f->definitions[i].name, "fake");
    code_file_free(f);
}

static void test_lexical__a_definition_begins_with_its_decorators(void **state)
{
    static const char text[] =
        "x = a\n@one\n@mark.two(\n    'b',  # why\n    [1])\n\n# c\ndef f():\n    @three\n    class C:\n"
        "        pass\n\n@four\ny = 1\ndef g(): pass\n";
    code_file *f = code_parse(NULL, "a.py", text, sizeof text - 1);
    assert_memory_equal(text + definition(f, "f")->from, "@one", 4);
    assert_int_equal(definition(f, "f")->line, 2);
    assert_memory_equal(text + definition(f, "C")->from, "@three", 6);
    assert_string_equal(definition(f, "C")->parent, "f");
    assert_memory_equal(text + definition(f, "g")->from, "def g", 5);
    code_file_free(f);
    static const char java[] =
        "class A {\n    @Override\n    public int f() {\n        return 1;\n    }\n}\n";
    f = code_parse(NULL, "A.java", java, sizeof java - 1);
    assert_memory_equal(java + definition(f, "f")->from, "@Override", 9);
    code_file_free(f);
    static const char ruby[] = "class A\n  @count = 1\n  def f\n  end\nend\n";
    f = code_parse(NULL, "a.rb", ruby, sizeof ruby - 1);
    assert_memory_equal(ruby + definition(f, "f")->from, "def f", 5);
    code_file_free(f);
}

static void test_lexical__go_rust_javascript(void **state)
{
    static const char go[] =
        "type F func(int)\n\nfunc (c *Cmd) Run(a int) error {\n\tif a > 0 {\n\t}\n\treturn nil\n}\n";
    static const char rust[] = "pub(crate) fn new<'a>(x: &'a str) -> Self {\n    x\n}\npub struct Unit;\n";
    static const char js[] =
        "const go = async (x) => {\n  return x;\n};\nclass A {\n  run(a) {\n    if (a) { b(); }\n  }\n}\n";
    code_file *f = code_parse(NULL, "a.go", go, sizeof go - 1);
    assert_string_equal(definition(f, "Run")->parent, "Cmd");
    assert_int_equal(definition(f, "Run")->line_end, 7);
    assert_int_equal(definition(f, "F")->line_end, 1);
    code_file_free(f);
    f = code_parse(NULL, "a.rs", rust, sizeof rust - 1);
    assert_int_equal(definition(f, "new")->line_end, 3);
    definition(f, "Unit");
    code_file_free(f);
    f = code_parse(NULL, "a.js", js, sizeof js - 1);
    assert_int_equal(definition(f, "go")->line_end, 3);
    assert_string_equal(definition(f, "run")->parent, "A");
    code_file_free(f);
}

static void test_lexical__markdown_sections(void **state)
{
    static const char text[] =
        "Title\n=====\n\nIntro.\n\n## Use\n\n```sh\n# not a heading\n```\n\n### Deeper ##\nx\n\n## End\n";
    code_file *f = code_parse(NULL, "README.md", text, sizeof text - 1);
    assert_int_equal(f->n_definitions, 4);
    assert_string_equal(f->definitions[0].name, "Title");
    assert_string_equal(f->definitions[1].parent, "Title");
    assert_string_equal(f->definitions[2].name, "Deeper");
    assert_string_equal(f->definitions[2].parent, "Use");
    for (uint32_t i = 1; i < 4; i++) assert_int_equal(f->definitions[i].from, f->definitions[i - 1].to);
    assert_int_equal(f->definitions[3].to, sizeof text - 1);
    code_file_free(f);
}

static void test_lexical__unbalanced_and_unfinished(void **state)
{
    static const char *const texts[] = {"}}}} f() {", "int f( {", "/* never ends", "\"", "'", "def", "def f(",
        "#define", "struct", "const x = ", "f(\n", "class A {\n  b() {", "\xff\xfe(\x80)",
        "a\r\nb(c) {\r\n}\r\n", "typedef struct {", "#define A \\", "```", "==="};
    static const char *const paths[] = {"a.c", "a.py", "a.js", "a.md", "a.go", "a.rb", "a", "a.json"};
    for (size_t t = 0; t < sizeof texts / sizeof *texts; t++)
        for (size_t p = 0; p < sizeof paths / sizeof *paths; p++) {
            const size_t n = strlen(texts[t]);
            code_file *f = code_parse(NULL, paths[p], texts[t], n);
            for (uint32_t i = 0; i < f->n_definitions; i++) {
                const code_definition *d = &f->definitions[i];
                assert_true(d->from <= d->to && d->to <= n && d->body_from <= d->body_to && d->body_to <= n);
                assert_true(d->line >= 1 && d->line_end >= d->line);
            }
            for (uint32_t i = 0; i < f->n_anchors; i++)
                assert_true(f->anchors[i].core_to <= n && f->anchors[i].full_to <= n);
            code_file_free(f);
        }
}

static void test_language__by_name_and_first_line(void **state)
{
    assert_string_equal(code_language("src/a.tsx", NULL, 0), "tsx");
    assert_string_equal(code_language("a.h", "int f(void);\n", 13), "c");
    assert_string_equal(code_language("a.h", "  class A;\n", 11), "cpp");
    assert_string_equal(code_language("bin/tool", "#!/usr/bin/env python3\n", 23), "python");
    assert_null(code_language("bin/tool", "hello", 5));
    assert_null(code_language("a.unknown", "#!/bin/sh\n", 10));
    assert_string_equal(code_language("Makefile", NULL, 0), "make");
}

static void check_split(const char *name, const char *words)
{
    base_buf b = {0};
    code_split_identifier(name, strlen(name), &b);
    assert_string_equal(b.data != NULL ? b.data : "", words);
    base_buf_free(&b);
}

static void test_language__identifiers_split(void **state)
{
    check_split("redisvFormatCommand2", "redisv format command 2");
    check_split("__HTTPServer_name", "http server name");
    check_split("sdsfree", "sdsfree");
    check_split("string2ll", "string 2 ll");
    check_split("___", "");
    assert_true(code_is_keyword("return", 6));
    assert_false(code_is_keyword("returned", 8));
    assert_false(code_is_keyword("retur", 5));
}

/* "//" divides in Python and begins a comment in C; strings stay, docstrings are prose. */
static void test_lexical__comments_are_blanked_in_place(void **state)
{
    static const struct {
        const char *language, *text, *blanked;
    } cases[] = {
        {"python", "a // b # c\n\"\"\"d\"\"\"\ne = '#'\n", "a // b    \n       \ne = '#'\n"},
        {"c", "i--; // b\n/* c\nd */ s = \"//\";\n", "i--;     \n    \n     s = \"//\";\n"},
        {"c", "#if 1\n", "#if 1\n"},
        {"python", " #", "  "},
        {"bash", "echo $(($1 - 2)) # two", "echo $(($1 - 2))      "},
        {NULL, "", ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *got = code_blank_comments(cases[i].language, cases[i].text, strlen(cases[i].text));
        assert_string_equal(got, cases[i].blanked);
        free(got);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lexical__comments_are_blanked_in_place),
        cmocka_unit_test(test_lexical__c),
        cmocka_unit_test(test_lexical__python_blocks_end_with_their_indent),
        cmocka_unit_test(test_lexical__a_definition_begins_with_its_decorators),
        cmocka_unit_test(test_lexical__go_rust_javascript),
        cmocka_unit_test(test_lexical__markdown_sections),
        cmocka_unit_test(test_lexical__unbalanced_and_unfinished),
        cmocka_unit_test(test_language__by_name_and_first_line),
        cmocka_unit_test(test_language__identifiers_split),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
