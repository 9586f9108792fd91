/*
 * What files and grammars must not do: crash, take for ever, or point outside of the text. Argument: the folder with the
 * grammar of a wrong ABI (wrong_abi.c, built as python.so).
 */
#include "support.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fs.h"
#include "code/graph.h"
#include "code/index.h"

static const char *grammar_folder;

/* Reads it all the ways there are; every offset stays inside. Returns the file. */
static code_file *read_bad(code_grammars *g, const char *path, const char *text, size_t n)
{
    code_graph *x;
    code_file *f = code_parse_graph(g, path, text, n, &x);
    for (uint32_t i = 0; i < f->n_definitions; i++) {
        const code_definition *d = &f->definitions[i];
        assert_true(d->from <= d->to && d->to <= n && d->name_from <= n && d->body_to <= n);
    }
    for (uint32_t i = 0; i < f->n_anchors; i++) {
        const code_anchor *a = &f->anchors[i];
        assert_true(a->core_from < a->core_to && a->core_to <= n && a->full_to <= n);
    }
    for (uint32_t i = 0; i < x->n_statements; i++) assert_true(x->statements[i].to <= n);
    code_graph_free(x);
    code_index *index = code_index_new(g);
    code_index_update(index, path, text, n);
    code_index_free(index);
    return f;
}

static void check_function(code_grammars *g, const char *path, const char *text, size_t n, const char *name)
{
    code_file *f = read_bad(g, path, text, n);
    uint32_t i;
    assert_int_equal(code_find_definition(f, name, &i, 1), 1);
    code_file_free(f);
}

static void test_bad_input__bytes_that_are_no_text(void **state)
{
    static const char invalid[] = "/* \xff\xfe\xc3 */\nint f(void)\n{\n    return g(\"\xe2\x28\xa1\");\n}\n";
    static const char bom[] = "\xef\xbb\xbfint f(void)\n{\n    return 1;\n}\n";
    static const char crlf[] = "int f(void)\r\n{\r\n    return 1;\r\n}\r\n";
    static const char cr[] = "int f(void)\r{\r    return 1;\r}\r";
    static const char nul[] = "int e(void) { return 0; }\n\0\0\nint f(void)\n{\n    return 1;\n}\n";
    code_grammars *g = grammars_or_skip("c");
    check_function(g, "a.c", invalid, sizeof invalid - 1, "f");
    check_function(g, "a.c", bom, sizeof bom - 1, "f");
    check_function(g, "a.c", crlf, sizeof crlf - 1, "f");
    check_function(g, "a.c", cr, sizeof cr - 1, "f");
    check_function(g, "a.c", nul, sizeof nul - 1, "f");
    code_file_free(read_bad(g, "a.py", "def f():\r    return 1\r", 23));
    code_file_free(read_bad(g, "a.c", "", 0));
    code_file_free(read_bad(g, "a.c", "\0", 1));
    code_grammars_close(g);
}

static void test_bad_input__one_line_of_two_megabytes(void **state)
{
    enum { N = 2 << 20 };
    code_grammars *g = grammars_or_skip("javascript");
    char *text = test_malloc(N);
    for (size_t i = 0; i + 16 < N; i += 16) memcpy(text + i, "f(a=b+1,function", 16);
    code_file *f = read_bad(g, "a.js", text, N - 16);
    assert_null(f->language);
    assert_string_equal(f->why_lexical, "it is larger than 1 MiB");
    code_file_free(f);
    f = code_parse(g, "a.js", text, 30000);
    assert_null(f->language);
    assert_non_null(strstr(f->why_lexical, "lines are too long"));
    code_file_free(f);
    f = code_parse(g, "a.nobody", "int f(void);", 12);
    assert_non_null(strstr(f->why_lexical, "not known"));
    code_file_free(f);
    f = code_parse(g, "a.js", "f()", 3);
    assert_string_equal(f->language, "javascript");
    assert_null(f->why_lexical);
    code_file_free(f);
    test_free(text);
    code_grammars_close(g);
}

static void test_bad_input__nesting(void **state)
{
    enum { DEPTH = 20000 };
    static const char *const files[] = {"a.c", "a.py", "a.js", "a.go", "a.rs", "a.rb", "a.php", "a.sh"};
    static const char *const open[] = {"(", "{", "[", "if (a) {"};
    code_grammars *g = grammars_or_skip("c");
    base_buf text = {0};
    for (size_t k = 0; k < 4; k++) {
        for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
            base_buf_clear(&text);
            base_buf_puts(&text, k == 0 && i == 0 ? "int f(void) { return " : "x = ");
            for (int d = 0; d < DEPTH; d++) {
                base_buf_puts(&text, open[k]);
                if (d % 100 == 99) base_buf_putc(&text, '\n');
            }
            code_file_free(read_bad(g, files[i], text.data, text.len));
        }
    }
    base_buf_free(&text);
    code_grammars_close(g);
}

static void test_bad_input__a_megabyte_of_punctuation(void **state)
{
    enum { N = 1 << 20 };
    static const char marks[] = "(){}[]<>;:,.!?=+-*/%&|^~'\"`#@$\\ \n";
    code_grammars *g = grammars_or_skip("c");
    char *text = test_malloc(N);
    uint64_t random = 88172645463325252u;
    for (size_t i = 0; i < N; i++) {
        random ^= random << 13, random ^= random >> 7, random ^= random << 17;
        text[i] = i % 100 == 99 ? '\n' : marks[random % (sizeof marks - 1)];
    }
    code_file *f = read_bad(g, "a.c", text, N - 16); /* its beginning shows that this is no C */
    assert_null(f->language);
    code_file_free(f);
    test_free(text);
    code_grammars_close(g);
}

static void test_bad_input__a_grammar_of_a_wrong_abi_is_not_used(void **state)
{
    if (grammar_folder == NULL) skip();
    char path[512], *languages = NULL;
    base_err err = {0};
    snprintf(path, sizeof path, "%s/python.so", grammar_folder);
    if (!base_fs_exists(path)) skip();
    assert_int_equal(code_grammar_inspect(path, &languages, &err), BASE_E_UNSUPPORTED);
    assert_non_null(strstr(err.msg, "ABI 99"));
    setenv("KVIST_GRAMMAR_PATH", grammar_folder, 1);
    code_grammars *g = code_grammars_open();
    code_file *f = code_parse(g, "a.py", "def f():\n    return 1\n", 22); /* by another grammar or by words */
    uint32_t i;
    assert_int_equal(code_find_definition(f, "f", &i, 1), 1);
    code_file_free(f);
    code_grammars_close(g);
    unsetenv("KVIST_GRAMMAR_PATH");
}

static void test_bad_input__a_broken_shared_object_is_told(void **state)
{
    char folder[] = "/tmp/kvist-grammar-XXXXXX", path[64], *languages = NULL;
    base_err err = {0};
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/python.so", folder);
    assert_int_equal(base_fs_write(path, "\177ELF broken", 11, 0644, NULL), 0);
    assert_int_equal(code_grammar_inspect(path, &languages, &err), BASE_E_FORMAT);
    assert_non_null(strstr(err.msg, "does not load"));
    setenv("KVIST_GRAMMAR_PATH", folder, 1);
    code_grammars *g = code_grammars_open();
    check_function(g, "a.py", "def f():\n    return 1\n", 22, "f");
    /* Where no other grammar is found it is named. */
    const code_grammar_info *info;
    const uint32_t n = code_grammars_list(g, &info);
    for (uint32_t i = 0; i < n; i++)
        if (strcmp(info[i].language, "python") == 0)
            assert_true(info[i].usable || (strcmp(info[i].path, path) == 0 && info[i].abi == 0));
    code_grammars_close(g);
    unsetenv("KVIST_GRAMMAR_PATH");
    base_fs_remove(folder, NULL);
}

/* The loader would map what the headers promise and die of SIGBUS. */
static void test_bad_input__a_shared_object_cut_short_is_not_loaded(void **state)
{
    code_grammars *g = code_grammars_open();
    const code_grammar_info *info;
    const char *whole = NULL;
    const uint32_t n = code_grammars_list(g, &info);
    for (uint32_t i = 0; i < n && whole == NULL; i++)
        if (info[i].usable) whole = info[i].path;
    if (whole == NULL) {
        code_grammars_close(g);
        print_message("no grammar here to cut: skipped (scripts/run fetches them)\n");
        skip();
    }
    char folder[] = "/tmp/kvist-grammar-XXXXXX", path[64], *languages = NULL;
    base_buf bytes = {0};
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/languages.so", folder);
    assert_int_equal(base_fs_read(whole, 256 << 20, &bytes, NULL), 0);
    code_grammars_close(g);
    setenv("KVIST_GRAMMAR_PATH", folder, 1);
    const size_t lengths[] = {0, 10, 100, 1000, 100000, bytes.len / 2};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        base_err err = {0};
        assert_int_equal(base_fs_write(path, bytes.data, lengths[i], 0644, NULL), 0);
        assert_int_equal(code_grammar_inspect(path, &languages, &err), BASE_E_FORMAT);
        assert_non_null(strstr(err.msg, "does not load"));
        g = code_grammars_open();
        check_function(g, "a.py", "def f():\n    return 1\n", 22, "f");
        code_grammars_close(g);
    }
    unsetenv("KVIST_GRAMMAR_PATH");
    base_fs_remove(folder, NULL);
    base_buf_free(&bytes);
}

static void test_bad_input__notebooks_and_locks_are_names_only(void **state)
{
    static const char notebook[] = "{\"cells\": [{\"source\": [\"def walrus():\\n\"]}]}\n";
    code_index *x = code_index_new(NULL);
    code_index_update(x, "a.ipynb", notebook, sizeof notebook - 1);
    assert_int_equal(code_index_files(x), 1);
    assert_int_equal(code_index_chunks(x), 0);
    code_index_free(x);
}

int main(int argc, char **argv)
{
    grammar_folder = argc > 1 ? argv[1] : NULL;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bad_input__bytes_that_are_no_text),
        cmocka_unit_test(test_bad_input__one_line_of_two_megabytes),
        cmocka_unit_test(test_bad_input__nesting),
        cmocka_unit_test(test_bad_input__a_megabyte_of_punctuation),
        cmocka_unit_test(test_bad_input__a_grammar_of_a_wrong_abi_is_not_used),
        cmocka_unit_test(test_bad_input__a_broken_shared_object_is_told),
        cmocka_unit_test(test_bad_input__a_shared_object_cut_short_is_not_loaded),
        cmocka_unit_test(test_bad_input__notebooks_and_locks_are_names_only),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
