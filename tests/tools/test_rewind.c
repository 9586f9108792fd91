/*
 * The files of rewound turns: several turns' texts of a file taken back to the first, created files removed,
 * missing ones made again, what somebody else changed left; all or none, and undone as one.
 */
#include "tree.h"
#include "tools/edit/change.h"
#include "base/mem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define TEXT(n)   "def f():\n    return " n "\n"
#define REWRITE_F "{\"path\":\"a.py\",\"name\":\"f\"}"

static void expect(tree *t, const char *path, const char *text)
{
    char *now = tree_get(t, path);
    if (!text && now) fail_msg("%s is there: %s", path, now);
    if (text && (!now || strcmp(now, text) != 0)) fail_msg("%s is %s", path, now ? now : "(missing)");
    free(now);
}

static void call(tree *t, const char *tool, const char *arguments, const char *payload)
{
    tool_result r = tree_call(t, tool, arguments, payload);
    if (r.status != TOOL_OK) fail_msg("%s: %s", tool, r.text.data);
    tool_result_free(&r);
}

/* Turn 1: a.py 1 to 2; turn 2: 2 to 3, and d/new.txt. */
static void two_turns(tree *t)
{
    tree_make(t, false);
    tree_put(t, "a.py", TEXT("1"));
    chmod(tree_path(t, "a.py"), 0755);
    tree_open(t);
    tool_workspace_turn(t->w, 1);
    call(t, "read", "{\"path\":\"a.py\"}", NULL);
    call(t, "rewrite", REWRITE_F, TEXT("2"));
    tool_workspace_turn(t->w, 2);
    call(t, "rewrite", REWRITE_F, TEXT("3"));
    call(t, "write", "{\"path\":\"d/new.txt\"}", "new\n");
}

/* Takes the files back to before `turn`; what stays is in *left. false: no file would change. */
static bool rewind_to(tree *t, uint32_t turn, const char *expected, base_buf *left)
{
    tool_preview p;
    tool_result r = {0};
    base_err err = {0};
    base_buf_clear(left);
    if (tool_rewind_prepare(t->w, turn, &p, left, &err)) fail_msg("%s", err.msg);
    const bool is_some = p.plan != NULL;
    if (is_some && tool_rewind_apply(t->w, turn, &p, &r, &err)) fail_msg("%s", err.msg);
    if (is_some && expected) assert_string_equal(r.summary, expected);
    assert_int_equal(tool_rewind_done(t->w, turn, is_some, NULL), 0);
    tool_result_free(&r);
    tool_preview_free(&p);
    return is_some;
}

static void test_rewind__several_turns_are_one_change(void **state)
{
    tree t;
    tool_preview p;
    base_buf left = {0};
    char *say = NULL;
    two_turns(&t);
    tree_open(&t); /* another process */
    tool_workspace_turn(t.w, 2);
    assert_int_equal(tool_rewind_prepare(t.w, 1, &p, &left, NULL), 0);
    assert_string_equal(p.headline, "rewind to before turn 1: take its files back too? (2 files, +1 -2)");
    assert_contains(p.detail, "-    return 3\n+    return 1\n");
    assert_contains(p.detail, "--- a/d/new.txt\n+++ /dev/null");
    tool_preview_free(&p);
    expect(&t, "a.py", TEXT("3")); /* nothing before the yes */
    assert_true(rewind_to(&t, 1, "files: 1 restored, 1 removed (a.py, d/new.txt)", &left));
    assert_int_equal(left.len, 0);
    expect(&t, "a.py", TEXT("1"));
    assert_false(tree_has(&t, "d"));
    tree_open(&t);
    assert_int_equal(tool_undo_apply(t.w, &say, NULL), 0);
    assert_string_equal(say, "undid what the rewind did to files: 2 restored (a.py, d/new.txt)");
    free(say);
    expect(&t, "a.py", TEXT("3"));
    expect(&t, "d/new.txt", "new\n");
    base_buf_free(&left);
    tree_remove(&t);
}

static void test_rewind__a_missing_file_is_made_again(void **state)
{
    tree t;
    base_buf left = {0};
    struct stat st;
    two_turns(&t);
    unlink(tree_path(&t, "a.py"));
    assert_true(rewind_to(&t, 1, "files: 1 restored, 1 removed (a.py, d/new.txt)", &left));
    expect(&t, "a.py", TEXT("1"));
    assert_int_equal(stat(tree_path(&t, "a.py"), &st), 0);
    assert_int_equal(st.st_mode & 0777, 0755);
    assert_false(rewind_to(&t, 1, NULL, &left)); /* nothing of turns that are gone is taken back twice */
    base_buf_free(&left);
    tree_remove(&t);
}

static void test_rewind__what_somebody_else_changed_stays(void **state)
{
    tree t;
    base_buf left = {0};
    two_turns(&t);
    tree_put(&t, "a.py", "mine\n");
    assert_true(rewind_to(&t, 1, "files: 1 removed (d/new.txt)", &left));
    assert_string_equal(
        left.data, "a.py stays as it is: it was changed after kvist wrote it (by hand or by a command)");
    expect(&t, "a.py", "mine\n");
    tree_remove(&t);
    /* The same where kvist wrote over it once more: the person's text was between. */
    two_turns(&t);
    tree_put(&t, "a.py", TEXT("1") "x = 1\n");
    tool_workspace_turn(t.w, 3);
    call(&t, "read", "{\"path\":\"a.py\"}", NULL);
    call(&t, "rewrite", REWRITE_F, TEXT("4"));
    assert_true(rewind_to(&t, 1, "files: 1 removed (d/new.txt)", &left));
    assert_contains(left.data, "a.py stays as it is");
    expect(&t, "a.py", TEXT("4") "x = 1\n");
    base_buf_free(&left);
    tree_remove(&t);
}

static void test_rewind__numbers_of_turns_come_again(void **state)
{
    tree t;
    base_buf left = {0};
    two_turns(&t);
    assert_int_equal(tool_rewind_done(t.w, 2, false, NULL), 0); /* the conversation alone */
    tool_workspace_turn(t.w, 2);
    call(&t, "rewrite", REWRITE_F, TEXT("4"));
    tree_open(&t);
    assert_true(rewind_to(&t, 2, "files: 1 restored (a.py)", &left));
    expect(&t, "a.py", TEXT("3")); /* what the new turn 2 found */
    expect(&t, "d/new.txt", "new\n");
    assert_true(rewind_to(&t, 1, "files: 1 restored (a.py)", &left));
    expect(&t, "a.py", TEXT("1"));
    assert_int_equal(left.len, 0);
    base_buf_free(&left);
    tree_remove(&t);
}

static const char *fatal_step;

static void die_at(const char *step)
{
    if (!strcmp(step, fatal_step)) _exit(42);
}

/* A kill between leaves the files as they were, once the tree is opened again. */
static void test_rewind__a_kill_leaves_all_or_none(void **state)
{
    static const char *const steps[] = {"pending", "temporary", "written", "rename", "file"};
    char home[300];
    const char *old_home = getenv("KVIST_HOME");
    char *kept = old_home ? base_xstrdup(old_home) : NULL;
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        tree t;
        two_turns(&t);
        snprintf(home, sizeof home, "%s/home", t.base);
        setenv("KVIST_HOME", home, 1);
        fflush(NULL);
        pid_t child = fork();
        if (!child) {
            base_buf left = {0};
            fatal_step = steps[i];
            tool__step_hook = die_at;
            rewind_to(&t, 1, NULL, &left);
            _exit(0);
        }
        int status;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 42);
        tree_open(&t);
        tool_workspace_recover(t.w);
        expect(&t, "a.py", TEXT("3"));
        expect(&t, "d/new.txt", "new\n");
        tree_remove(&t);
    }
    if (kept)
        setenv("KVIST_HOME", kept, 1);
    else
        unsetenv("KVIST_HOME");
    free(kept);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rewind__several_turns_are_one_change),
        cmocka_unit_test(test_rewind__a_missing_file_is_made_again),
        cmocka_unit_test(test_rewind__what_somebody_else_changed_stays),
        cmocka_unit_test(test_rewind__numbers_of_turns_come_again),
        cmocka_unit_test(test_rewind__a_kill_leaves_all_or_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
