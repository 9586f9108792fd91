/* Whether a listing is still true, told by times alone: whatever would change it must be seen, contents and ignored files not. */
#include "tree.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* Ten seconds from now: nothing that the test made is too young to be trusted. */
static int64_t later(void)
{
    return ((int64_t)time(NULL) + 10) * 1000000000;
}

static void make_some(tree *t, bool is_git)
{
    tree_make(t, is_git);
    tree_put(t, "a.c", "int a;\n");
    tree_put(t, "sub/b.c", "int b;\n");
    tree_put(t, "sub/deep/c.c", "int c;\n");
    mkdir(tree_path(t, "empty"), 0700);
    mkdir(tree_path(t, "empty/below"), 0700);
    tree_put(t, "sub/.gitignore", "out/\n");
    tree_put(t, "sub/out/made", "1\n");
    tree_open(t);
}

static void take(tree *t, tool_folders *f)
{
    tool_listing l = {0};
    assert_int_equal(tool__listing_make(&t->w->root, t->w->repo, NULL, &l, NULL), 0);
    tool__folders_take(&t->w->root, t->w->repo, &l, later(), f);
    tool__listing_free(&l);
    assert_true(tool__folders_are_same(&t->w->root, f));
}

/* Seen by the folders, and taken anew. */
static void assert_seen(tree *t, tool_folders *f)
{
    assert_false(tool__folders_are_same(&t->w->root, f));
    take(t, f);
}

static void test_folders__what_changes_a_listing_is_seen(void **state)
{
    for (int is_git = 0; is_git < 2; is_git++) {
        tree t;
        tool_folders f = {0};
        make_some(&t, is_git);
        take(&t, &f);
        tree_put(&t, "sub/deep/new.c", "int n;\n");
        assert_seen(&t, &f);
        tree_put(&t, "empty/below/first.c", "int f;\n"); /* a folder in which nothing was */
        assert_seen(&t, &f);
        assert_int_equal(unlink(tree_path(&t, "a.c")), 0);
        assert_seen(&t, &f);
        char from[400];
        snprintf(from, sizeof from, "%s", tree_path(&t, "sub/b.c"));
        assert_int_equal(rename(from, tree_path(&t, "sub/d.c")), 0);
        assert_seen(&t, &f);
        mkdir(tree_path(&t, "sub/deep/er"), 0700);
        assert_seen(&t, &f);
        if (is_git) {
            tree_put(&t, "sub/.gitignore", "out/\n*.tmp\n");
            assert_seen(&t, &f);
            tree_commit(&t, "index"); /* what is tracked is listed even when it is ignored */
            assert_seen(&t, &f);
        }
        tool__folders_free(&f);
        tree_remove(&t);
    }
}

static void test_folders__contents_and_ignored_files_are_not(void **state)
{
    tree t;
    tool_folders f = {0};
    make_some(&t, true);
    take(&t, &f);
    FILE *file = fopen(tree_path(&t, "sub/b.c"), "a");
    assert_non_null(file);
    fputs("int more;\n", file);
    fclose(file);
    tree_put(&t, "sub/out/made2", "2\n");
    assert_true(tool__folders_are_same(&t.w->root, &f));
    tool__folders_free(&f);
    tree_remove(&t);
}

/* Within the clock's grain a folder may change twice at one time. */
static void test_folders__a_young_folder_is_not_trusted(void **state)
{
    tree t;
    tool_folders f = {0};
    tool_listing l = {0};
    make_some(&t, true);
    assert_int_equal(tool__listing_make(&t.w->root, t.w->repo, NULL, &l, NULL), 0);
    tool__folders_take(&t.w->root, t.w->repo, &l, (int64_t)time(NULL) * 1000000000, &f);
    assert_false(tool__folders_are_same(&t.w->root, &f));
    tool__listing_free(&l);
    tool__folders_free(&f);
    tree_remove(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_folders__what_changes_a_listing_is_seen),
        cmocka_unit_test(test_folders__contents_and_ignored_files_are_not),
        cmocka_unit_test(test_folders__a_young_folder_is_not_trusted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
