/* Output of commands is traced back to the bytes of the tree's files; every source is exactly those bytes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tree.h"
#include "tools/result/result.h"

static const char program[] = "int one(void)\n{\n    return 1;\n}\n\nint two(void)\n{\n    return 2;\n}\n";

/* Traces `output` and lists the sources as "path:line[text]|..."; each must be bytes of the file. */
static void check(const char *command, const char *output, const char *expected)
{
    tree t;
    tree_make(&t, false);
    tree_put(&t, "src/a.c", program);
    tree_put(&t, "b.txt", "alpha beta\ngamma delta\nepsilon zeta\neta theta\n");
    tree_open(&t);
    tool_result r = {0};
    base_buf_puts(&r.text, output);
    tool__trace_output(t.w, &r, command, 0);
    base_buf all = {0};
    for (uint32_t i = 0; i < r.n_sources; i++) {
        const tool_source *s = &r.sources[i];
        char *file = tree_get(&t, s->path);
        assert_non_null(file);
        assert_true(s->from < s->to && s->to <= r.text.len && (i == 0 || r.sources[i - 1].to <= s->from));
        assert_memory_equal(file + s->file_from, r.text.data + s->from, s->to - s->from);
        uint32_t line = 1;
        for (uint32_t k = 0; k < s->file_from; k++) line += file[k] == '\n';
        assert_int_equal(s->line, line);
        base_buf_printf(&all, "%s%s:%u[%.*s]", i ? "|" : "", s->path, s->line, (int)(s->to - s->from),
            r.text.data + s->from);
        free(file);
    }
    assert_string_equal(all.data ? all.data : "", expected);
    base_buf_free(&all);
    tool_result_free(&r);
    tree_remove(&t);
}

static void test_trace__lines_that_stand_in_a_named_file(void **state)
{
    check("cat b.txt", "exit code 0\nalpha beta\ngamma delta\nepsilon zeta\neta theta\n",
        "b.txt:1[alpha beta\ngamma delta\nepsilon zeta\neta theta\n]");
    check("sed -n 2,4p b.txt", "gamma delta\nepsilon zeta\neta theta\n",
        "b.txt:2[gamma delta\nepsilon zeta\neta theta\n]");
    check("tail -3 ./b.txt; echo", "gamma delta\nepsilon zeta\nother\neta theta\n",
        "");                                                           /* two lines could be chance */
    check("cat c.txt", "alpha beta\ngamma delta\nepsilon zeta\n", ""); /* no file is named */
}

static void test_trace__cited_lines(void **state)
{
    check("grep -rn return .",
        "./src/a.c:3:    return 1;\nsrc/a.c:8:    return 2;\nsrc/a.c:9:    return 2;\n",
        "src/a.c:3[    return 1;]|src/a.c:8[    return 2;]");
    check("rg -C1 1", "src/a.c-2-{\nsrc/a.c:3:    return 1;\n", "src/a.c:2[{]|src/a.c:3[    return 1;]");
    check("grep -n return src/a.c", "3:    return 1;\n8:    return 2;\n",
        "src/a.c:3[    return 1;]|src/a.c:8[    return 2;]");
}

static void test_trace__numbered_lines(void **state)
{
    check("cat -n src/a.c | head -4", "     1\tint one(void)\n     2\t{\n     3\t    return 1;\n     4\t}\n",
        "src/a.c:1[int one(void)]|src/a.c:2[{]|src/a.c:3[    return 1;]|src/a.c:4[}]");
}

static void test_trace__diffs_show_the_new_text(void **state)
{
    check("git diff",
        "diff --git a/src/a.c b/src/a.c\nindex 1..2 100644\n--- a/src/a.c\n+++ b/src/a.c\n@@ -1,4 +1,4 @@\n"
        " int one(void)\n {\n-    return 0;\n+    return 1;\n }\n",
        "src/a.c:1[int one(void)]|src/a.c:2[{]|src/a.c:3[    return 1;]|src/a.c:4[}]");
    check("git diff", "--- a/gone.c\n+++ b/gone.c\n@@ -1 +1 @@\n-a\n+b\n", "");
}

static void test_trace__foreign_bytes_are_no_lines(void **state)
{
    check("cat src/a.c", "\x00\x01:::1:2:3\n--- \n+++ \n@@ -1 +1 @@\n@@ -", "");
    check("cat /etc/passwd ../x", "/etc/passwd:1:root\n../x:1:a\n", "");
    check("", "", "");
}

static void test_trace__the_shell_tool_uses_it(void **state)
{
    tree t;
    tree_make(&t, false);
    tree_put(&t, "src/a.c", program);
    tree_open(&t);
    tool_result r = tree_call(&t, "shell", "{\"command\":\"cat src/a.c\"}", NULL);
    if (r.status == TOOL_OK) { /* a machine that cannot confine refuses */
        assert_int_equal(r.n_sources, 1);
        assert_string_equal(r.sources[0].path, "src/a.c");
        assert_int_equal(r.sources[0].to - r.sources[0].from, sizeof program - 1);
    }
    tool_result_free(&r);
    tree_remove(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_trace__lines_that_stand_in_a_named_file),
        cmocka_unit_test(test_trace__cited_lines),
        cmocka_unit_test(test_trace__numbered_lines),
        cmocka_unit_test(test_trace__diffs_show_the_new_text),
        cmocka_unit_test(test_trace__foreign_bytes_are_no_lines),
        cmocka_unit_test(test_trace__the_shell_tool_uses_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
