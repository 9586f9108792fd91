/*
 * Every language table against a file of its own: tests/code/anchors/NAME and NAME.expected, which lists definitions and anchors
 * (line, kind, core, full where it differs). After a deliberate change KVIST_WRITE_EXPECTED=1 writes the lists anew, to be
 * read before they are committed.
 */
#include "support.h"

#include <stdlib.h>

#include "base/buf.h"
#include "base/fs.h"
#include "base/json.h"

static const char *folder;

static void put_text(base_buf *out, const char *text, uint32_t from, uint32_t to)
{
    base_json_put_str(out, text + from, to - from);
}

static void list_file(const code_file *f, const char *text, base_buf *out)
{
    for (uint32_t i = 0; i < f->n_definitions; i++) {
        const code_definition *d = &f->definitions[i];
        base_buf_printf(out, "%u %s %s%s%s%s\n", d->line, d->what, d->parent, d->parent[0] != '\0' ? "." : "",
            d->name, d->is_declaration ? " (declared)" : "");
    }
    uint32_t line = 1, at = 0;
    for (uint32_t i = 0; i < f->n_anchors; i++) {
        const code_anchor *a = &f->anchors[i];
        for (; at < a->core_from; at++) line += text[at] == '\n';
        base_buf_printf(out, "%u %s ", line, code_kind_word(a->kind));
        put_text(out, text, a->core_from, a->core_to);
        if (a->core_from != a->full_from || a->core_to != a->full_to) {
            base_buf_puts(out, " full ");
            put_text(out, text, a->full_from, a->full_to);
        }
        if (a->definition != UINT32_MAX) base_buf_printf(out, " in %s", f->definitions[a->definition].name);
        base_buf_putc(out, '\n');
    }
}

static void check_sample(const char *language, const char *name)
{
    code_grammars *g = grammars_or_skip(language);
    char path[512];
    base_buf text = {0}, expected = {0}, found = {0};
    snprintf(path, sizeof path, "%s/%s", folder, name);
    assert_int_equal(base_fs_read(path, 1 << 20, &text, NULL), 0);
    code_file *f = code_parse(g, name, text.data, text.len);
    assert_non_null(f->language);
    assert_string_equal(f->language, language);
    assert_int_equal(f->n_errors, 0);
    list_file(f, text.data, &found);
    snprintf(path, sizeof path, "%s/%s.expected", folder, name);
    if (getenv("KVIST_WRITE_EXPECTED") != NULL)
        assert_int_equal(base_fs_write(path, found.data, found.len, 0644, NULL), 0);
    assert_int_equal(base_fs_read(path, 1 << 20, &expected, NULL), 0);
    assert_string_equal(found.data, expected.data);
    code_file_free(f);
    base_buf_free(&text);
    base_buf_free(&expected);
    base_buf_free(&found);
    code_grammars_close(g);
}

#define SAMPLE(language, name)                                                                               \
    static void test_anchors__##language(void **state)                                                       \
    {                                                                                                        \
        check_sample(#language, name);                                                                       \
    }
SAMPLE(c, "sample.c")
SAMPLE(cpp, "sample.cc")
SAMPLE(python, "sample.py")
SAMPLE(javascript, "sample.js")
SAMPLE(typescript, "sample.ts")
SAMPLE(tsx, "sample.tsx")
SAMPLE(go, "sample.go")
SAMPLE(rust, "sample.rs")
SAMPLE(java, "Sample.java")
SAMPLE(c_sharp, "sample.cs")
SAMPLE(ruby, "sample.rb")
SAMPLE(php, "sample.php")
SAMPLE(bash, "sample.sh")

int main(int argc, char **argv)
{
    folder = argc > 1 ? argv[1] : "tests/code/anchors";
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_anchors__c),
        cmocka_unit_test(test_anchors__cpp),
        cmocka_unit_test(test_anchors__python),
        cmocka_unit_test(test_anchors__javascript),
        cmocka_unit_test(test_anchors__typescript),
        cmocka_unit_test(test_anchors__tsx),
        cmocka_unit_test(test_anchors__go),
        cmocka_unit_test(test_anchors__rust),
        cmocka_unit_test(test_anchors__java),
        cmocka_unit_test(test_anchors__c_sharp),
        cmocka_unit_test(test_anchors__ruby),
        cmocka_unit_test(test_anchors__php),
        cmocka_unit_test(test_anchors__bash),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
