/* What the tree contradicts in an answer is put right; what it leaves open is left alone. */
#include "support.h"

#include "base/buf.h"
#include "code/corrections.h"

static const char text_c[] = "/* frees what text_split made */\n"
                             "void text_free_split(char **parts)\n{\n    free(parts);\n}\n\n"
                             "char **text_split(const char *line)\n{\n    return text_grow(0, line);\n}\n\n"
                             "char **text_grow(char **parts, const char *line)\n{\n    return parts;\n}\n\n"
                             "static int by_length(const void *a, const void *b)\n{\n    return 0;\n}\n\n"
                             "void text_sort(char **parts)\n{\n    qsort(parts, 2, 8, by_length);\n}\n";
static const char main_c[] =
    "int main(void)\n{\n    char **parts = text_split(\"a b\");\n    text_sort(parts);\n"
    "    return 0;\n}\n";
static const char visit_py[] = "def tallyeverything(n):\n    return n\n\n\n"
                               "def visit_rule(node):\n    return node\n\n\ndef visit(node):\n"
                               "    return globals()['visit_' + node.name](node)\n\n\ndef other(node):\n"
                               "    return visit(node)\n";

static const char readme[] =
    "# Text\n\n## text_grow, text_sort\n\nGrow and sort.\n\n## text_split\n\nSplits.\n";

static code_index *tree(code_grammars *g)
{
    code_index *x = code_index_new(g);
    code_index_update(x, "src/text.c", text_c, sizeof text_c - 1);
    code_index_update(x, "src/main.c", main_c, sizeof main_c - 1);
    code_index_update(x, "README.md", readme, sizeof readme - 1);
    code_index_update(x, "visit.py", visit_py, sizeof visit_py - 1);
    return x;
}

typedef struct correction {
    const char *answer, *expected, *what; /* expected NULL: nothing is put right */
} correction;

static void check_all(const correction *cases, size_t n, bool is_whole)
{
    code_grammars *g = grammars_or_skip("c");
    code_index *x = tree(g);
    for (size_t i = 0; i < n; i++) {
        base_buf out = {0}, what = {0};
        code_correct_answer(x, cases[i].answer, strlen(cases[i].answer), NULL, 0, is_whole, &out, &what);
        const char *expected = cases[i].expected != NULL ? cases[i].expected : "";
        if (strcmp(out.data != NULL ? out.data : "", expected) != 0)
            fail_msg("%s\ngives %s\nnot   %s", cases[i].answer, out.data != NULL ? out.data : "(nothing)",
                expected);
        if (cases[i].what != NULL) assert_string_equal(what.data, cases[i].what);
        base_buf_free(&out);
        base_buf_free(&what);
    }
    code_index_free(x);
    code_grammars_close(g);
}

static void test_corrections__callers_that_cannot_be_any(void **state)
{
    static const correction cases[] = {
        {"`text_free_split` is called by `text_split`.",
            "`text_free_split` is called by no function of this tree [corrected from `text_split`].",
            "text_free_split is called by no function of this tree, not by `text_split`"},
        {"`text_grow` is called by `main` and `text_sort()` in src/text.c.",
            "`text_grow` is called by `text_split` (src/text.c:9) [corrected from `main` and `text_sort()` in "
            "src/text.c].",
            NULL},
        {"The function text_split is only called from `text_grow` when it is full.",
            "The function text_split is only called from `main` (src/main.c:3) [corrected from `text_grow`] when it "
            "is full.",
            NULL},
        {"`text_free_split` frees what `text_split` made. It is called by the test function `test_free` in "
         "tests/test_text.c.",
            "`text_free_split` frees what `text_split` made. It is called by no function of this tree [corrected "
            "from the test function `test_free` in tests/test_text.c].",
            NULL},
    };
    check_all(cases, sizeof cases / sizeof *cases, true);
}

static void test_corrections__callers_that_may_be_some(void **state)
{
    static const correction cases[] = {
        {"`text_split` is called by `main`.", NULL, NULL},
        {"`text_split` is called by `text_split`.", NULL, NULL},
        {"`text_split` is not called by `text_grow`.", NULL, NULL},
        {"`text_split`, unlike others, is called by `text_grow`.", NULL, NULL}, /* who is? */
        {"`by_length` is called by `main`.", NULL, NULL},                       /* its address is taken */
        {"`visit_rule` is called by `visit`.", NULL, NULL},                     /* puts the name together */
        {"`text_grow` is called by `free`.", NULL, NULL}, /* not of this tree, but in it */
        {"`nothing_here` is called by `main`.", NULL, NULL},
        {"`text_free_split` is called by users of the library.", NULL, NULL},
        {"`text_free_split` is called by hand. `main` is the program.", NULL, NULL},
        {"It is called by `main`.", NULL, NULL},
        {"Here `text_split` begins. It is called by `text_grow`.", NULL,
            NULL}, /* "it" may be something else */
        {"`text_sort` is called by `main` and `text_grow` is called by `text_split`.", NULL, NULL},
        {"```\ntext_free_split is called by text_split\n```", NULL, NULL},
        {"`main` calls `text_free_split`.", NULL, NULL}, /* not read */
        {"called by", NULL, NULL},
        {"`text_split` is called by `", NULL, NULL},
    };
    check_all(cases, sizeof cases / sizeof *cases, true);
}

static void test_corrections__a_slip_in_a_name(void **state)
{
    static const correction cases[] = {
        {"`text_fre_split` in src/text.c; text_fre_split(parts).",
            "`text_free_split` [corrected from text_fre_split] in src/text.c; text_free_split(parts).",
            "text_free_split, not text_fre_split: the tree has no such name"},
        {"text_freesplit and `text_rfee_split`",
            "text_free_split [corrected from text_freesplit] and `text_free_split` [corrected from "
            "text_rfee_split]",
            NULL},
        {"`text_freed_splits`", NULL, NULL},  /* two letters */
        {"`mian()` and `texts`", NULL, NULL}, /* too short, no shape */
        {"`by_lengths` and `by_length`", "`by_length` [corrected from by_lengths] and `by_length`", NULL},
        {"```\ntext_fre_split(parts);\n```", NULL, NULL},
        {"`tallyevrything` in visit.py", "`tallyeverything` [corrected from tallyevrything] in visit.py",
            NULL},
        {"`tallyeverythings`, tallyevrything", NULL, NULL}, /* another ending; no backticks */
    };
    check_all(cases, sizeof cases / sizeof *cases, true);
}

static void test_corrections__what_a_part_of_the_tree_cannot_say(void **state)
{
    static const correction cases[] = {
        {"`text_free_split` is called by `text_split`.", NULL, NULL},
        {"`text_fre_split`", NULL, NULL},
        {"Write a test of `text_sort` in test_text.c.", NULL, NULL},
        {"`text_sort` is in src/main.c.", "`text_sort` is in src/text.c:22 [corrected from src/main.c].",
            NULL},
    };
    check_all(cases, sizeof cases / sizeof *cases, false);
}

/* Which of them stands where, the answer's order alone does not say. */
static void test_corrections__places_of_a_list_of_names(void **state)
{
    static const correction cases[] = {
        {"`main` and `text_sort` in src/main.c and src/text.c, respectively.", NULL, NULL},
        {"`main`, `text_sort` in src/main.c.", NULL, NULL},
        {"`main` frees, and `text_sort` in src/main.c sorts.",
            "`main` frees, and `text_sort` in src/text.c:22 [corrected from src/main.c] sorts.", NULL},
    };
    check_all(cases, sizeof cases / sizeof *cases, true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_corrections__callers_that_cannot_be_any),
        cmocka_unit_test(test_corrections__callers_that_may_be_some),
        cmocka_unit_test(test_corrections__a_slip_in_a_name),
        cmocka_unit_test(test_corrections__what_a_part_of_the_tree_cannot_say),
        cmocka_unit_test(test_corrections__places_of_a_list_of_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
