/* What the newest commits were about, as src/tools/tree/history.c hands it to the index. */
#include "tree.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>

#include "tools/tree/history.h"

/* How a file's changes were told, by the words of the request; zeros: not at all. */
static code_told told_of(tree *t, const char *path, const char *request)
{
    const code_history *h = tool_workspace_history(t->w, NULL);
    assert_non_null(h);
    code_told *all = code_history_recall(h, request), ret = {0};
    const uint32_t at = code_history_path(h, path);
    if (all && at != UINT32_MAX) ret = all[at];
    free(all);
    return ret;
}

static void test_history__files_are_told_by_their_commits(void **state)
{
    tree t;
    tree_make(&t, true);
    tree_put(&t, "parse.c", "1\n");
    tree_put(&t, "print.c", "1\n");
    tree_put(&t, "README", "1\n");
    tree_commit(&t, "Begin with a parser of durations");
    tree_put(&t, "print.c", "2\n");
    tree_put(&t, "README", "2\n");
    tree_commit(&t, "Print short lines without commas\n\nAlso durations, which the subject does not say.");
    tree_put(&t, "parse.c", "2\n");
    tree_commit(&t, "Refuse negative durations");
    tree_open(&t);
    assert_int_equal(
        code_history_n(tool_workspace_history(t.w, NULL)), 2); /* the first has nothing before it */
    const code_told parse = told_of(&t, "parse.c", "A duration must not be negative"),
                    print = told_of(&t, "print.c", "A duration must not be negative"),
                    lines = told_of(&t, "print.c", "Lines without commas are wrong");
    assert_true(parse.best > .3 && parse.sum > .3);
    assert_true(print.best == 0 && print.sum == 0);
    assert_true(lines.best > .3 && lines.sum < lines.best); /* it touched two files */
    assert_true(told_of(&t, "parse.c", "colours").best == 0);
    /* A new commit is read, and an old one is not read again. */
    const code_history *before = tool_workspace_history(t.w, NULL);
    assert_ptr_equal(tool_workspace_history(t.w, NULL), before);
    tree_put(&t, "parse.c", "3\n");
    tree_commit(&t, "Accept colours");
    assert_true(told_of(&t, "parse.c", "colours").best > .5);
    tree_remove(&t);
}

static void test_history__what_touches_much_says_nothing(void **state)
{
    enum { MANY = 41 };
    tree t;
    tree_make(&t, true);
    tree_put(&t, "a.c", "1\n");
    tree_commit(&t, "Begin");
    for (int i = 0; i < MANY; i++) {
        char name[32];
        snprintf(name, sizeof name, "file%d.c", i);
        tree_put(&t, name, "1\n");
    }
    tree_commit(&t, "Format everything");
    tree_put(&t, "a.c", "2\n");
    tree_commit(&t, "Format numbers");
    tree_open(&t);
    assert_int_equal(code_history_n(tool_workspace_history(t.w, NULL)), 1);
    assert_int_equal(code_history_path(tool_workspace_history(t.w, NULL), "file3.c"), UINT32_MAX);
    tree_remove(&t);
}

/* No repository, no commit, no time: no history. */
static void test_history__there_may_be_none(void **state)
{
    atomic_bool cancel = true;
    for (int is_git = 0; is_git < 2; is_git++) {
        tree t;
        tree_make(&t, is_git);
        tree_put(&t, "a.c", "1\n");
        tree_open(&t);
        assert_null(tool_workspace_history(t.w, NULL));
        if (is_git) {
            tree_commit(&t, "Begin");
            tree_put(&t, "a.c", "2\n");
            tree_commit(&t, "Go on");
            assert_null(tool_workspace_history(t.w, &cancel));
            assert_non_null(tool_workspace_history(
                t.w, NULL)); /* what was cancelled is read when it is asked for again */
        }
        tree_remove(&t);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_history__files_are_told_by_their_commits),
        cmocka_unit_test(test_history__what_touches_much_says_nothing),
        cmocka_unit_test(test_history__there_may_be_none),
    };
    return cmocka_run_group_tests_name("tools history", tests, NULL, NULL);
}
