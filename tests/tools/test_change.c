/*
 * Writing: what is refused, what a person approves, what stands on disk afterwards; and undo, also after the process ends at
 * each step of a write or of an undo.
 */
#include "tree.h"
#include "tools/edit/change.h"
#include "tools/tree/leftover.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define OLD_TEXT  "def f():\n    return 1\n"
#define NEW_TEXT  "def f():\n    return 2\n"
#define REWRITE_F "{\"path\":\"a.py\",\"name\":\"f\"}"

static void expect(tree *t, const char *path, const char *text)
{
    char *now = tree_get(t, path);
    if (!text && now) fail_msg("%s is there: %s", path, now);
    if (text && (!now || strcmp(now, text))) fail_msg("%s is %s", path, now ? now : "(missing)");
    free(now);
}

static void read_it(tree *t, const char *arguments)
{
    tool_result r = tree_call(t, "read", arguments, NULL);
    assert_int_equal(r.status, TOOL_OK);
    tool_result_free(&r);
}

static void test_change__write_makes_files_and_never_overwrites(void **state)
{
    tree t;
    tree_make(&t, true);
    tree_put(&t, "a.py", OLD_TEXT);
    tree_open(&t);
    tool_preview p = {0};
    tool_result r = tree_prepare(&t, "write", "{\"path\":\"new/deep/b.py\"}", "x = 1", &p);
    assert_int_equal(r.status, TOOL_OK);
    assert_contains(p.headline, "write new/deep/b.py (+1 -0)");
    assert_string_equal(p.detail, "--- /dev/null\n+++ b/new/deep/b.py\n@@ -0,0 +1 @@\n+x = 1\n");
    tool_preview_free(&p);
    tool_result_free(&r);
    assert_false(tree_has(&t, "new")); /* nothing before approval */
    r = tree_call(&t, "write", "{\"path\":\"new/deep/b.py\"}", "x = 1");
    assert_int_equal(r.status, TOOL_OK);
    assert_string_equal(r.changed[0], "new/deep/b.py");
    assert_null(r.changed[1]);
    expect(&t, "new/deep/b.py", "x = 1\n");
    tool_result_free(&r);
    r = tree_call(&t, "write", "{\"path\":\"a.py\"}", "gone\n");
    assert_int_equal(r.status, TOOL_REFUSED);
    assert_contains(r.text.data, "Next: rewrite {\"path\": \"a.py\", \"name\": \"f\"}");
    expect(&t, "a.py", OLD_TEXT);
    tool_result_free(&r);
    r = tree_call(&t, "write", "{\"path\":\"top/d.py\"}", "x = 1\n"); /* a folder like any other */
    assert_string_equal(r.changed[0], "top/d.py");
    tool_result_free(&r);
    t.request = "Write e.py (root folder) and f.py (top folder)";
    r = tree_call(&t, "write", "{\"path\":\"root/e.py\"}", "x = 1\n");
    assert_string_equal(r.changed[0], "e.py");
    tool_result_free(&r);
    r = tree_call(&t, "write", "{\"path\":\"top/f.py\"}", "x = 1\n"); /* there is one */
    assert_string_equal(r.changed[0], "top/f.py");
    tool_result_free(&r);
    t.request = NULL;
    r = tree_call(&t, "write", "{\"path\":\".git/config\"}", "x\n");
    assert_int_equal(r.status, TOOL_REFUSED);
    tool_result_free(&r);
    r = tree_call(&t, "write", "{\"path\":\"c.py\"}", NULL);
    assert_int_equal(r.status, TOOL_FAILED);
    tool_result_free(&r);
    r = tree_call(&t, "list", "{}", NULL);
    assert_contains(r.text.data, "new/deep/b.py\n");
    tool_result_free(&r);
    tree_remove(&t);
}

static void test_change__what_was_not_shown_is_refused_with_its_text(void **state)
{
    tree t;
    tree_make(&t, true);
    tree_put(&t, "a.py", "x = 0\n\n" OLD_TEXT);
    tree_open(&t);
    tool_result r = tree_call(&t, "rewrite", REWRITE_F, NEW_TEXT);
    assert_int_equal(r.status, TOOL_REFUSED);
    assert_contains(r.text.data, "was not read yet");
    assert_contains(r.text.data, OLD_TEXT);
    assert_int_equal(r.n_sources, 1);
    assert_int_equal(r.sources[0].line, 3);
    assert_int_equal(r.sources[0].file_from, 7);
    assert_memory_equal(r.text.data + r.sources[0].from, OLD_TEXT, r.sources[0].to - r.sources[0].from);
    tool_result_free(&r);
    r = tree_call(&t, "rewrite", REWRITE_F, NEW_TEXT); /* the refusal has shown it */
    assert_int_equal(r.status, TOOL_OK);
    assert_contains(r.text.data, "now lines 3-4");
    assert_string_equal(r.summary, "+1 -1 a.py");
    assert_contains(r.diff, "-    return 1\n+    return 2\n");
    expect(&t, "a.py", "x = 0\n\n" NEW_TEXT);
    tool_result_free(&r);
    tree_put(&t, "a.py", "x = 1\n\n" NEW_TEXT); /* a person's change */
    r = tree_call(&t, "rewrite", REWRITE_F, OLD_TEXT);
    assert_int_equal(r.status, TOOL_REFUSED);
    assert_contains(r.text.data, "changed since it was shown");
    expect(&t, "a.py", "x = 1\n\n" NEW_TEXT);
    tool_result_free(&r);
    tree_remove(&t);
}

static void test_change__a_file_changed_during_approval_is_refused(void **state)
{
    tree t;
    tree_make(&t, true);
    tree_put(&t, "a.py", OLD_TEXT);
    tree_open(&t);
    read_it(&t, "{\"path\":\"a.py\"}");
    tool_preview p = {0};
    base_err err = {0};
    tool_result r = tree_prepare(&t, "rewrite", REWRITE_F, NEW_TEXT, &p);
    assert_int_equal(r.status, TOOL_OK);
    tool_result_free(&r);
    tree_put(&t, "a.py", OLD_TEXT "# mine\n");
    tool_call call = {.name = "rewrite"};
    assert_int_equal(tool_find("rewrite")->run(t.w, &call, &t.limits, &p, &r, &err), 0);
    assert_int_equal(r.status, TOOL_REFUSED);
    assert_contains(r.text.data, "changed since this was prepared");
    expect(&t, "a.py", OLD_TEXT "# mine\n");
    assert_int_equal(tool_undo_preview(t.w, &(base_buf){0}, &err), BASE_E_NOT_FOUND);
    tool_result_free(&r);
    tool_preview_free(&p);
    tree_remove(&t);
}

static void test_change__mode_line_ends_and_binary(void **state)
{
    tree t;
    tree_make(&t, true);
    tree_put(&t, "a.py", "x = 1\r\ndef f():\r\n    return 1");
    assert_int_equal(chmod(tree_path(&t, "a.py"), 0751), 0);
    tree_put_bytes(&t, "b.py", "def f():\n\0", 10);
    tree_open(&t);
    read_it(&t, "{\"path\":\"a.py\"}");
    tool_result r = tree_call(&t, "rewrite", REWRITE_F, NEW_TEXT);
    assert_int_equal(r.status, TOOL_OK);
    tool_result_free(&r);
    expect(&t, "a.py", "x = 1\r\ndef f():\r\n    return 2");
    struct stat st;
    assert_int_equal(stat(tree_path(&t, "a.py"), &st), 0);
    assert_int_equal(st.st_mode & 07777, 0751);
    r = tree_call(&t, "rewrite", "{\"path\":\"b.py\",\"name\":\"f\"}", NEW_TEXT);
    assert_int_equal(r.status, TOOL_REFUSED);
    assert_contains(r.text.data, "binary");
    tool_result_free(&r);
    r = tree_call(&t, "read", "{\"path\":\"b.py\"}", NULL);
    assert_contains(r.text.data, "is binary");
    tool_result_free(&r);
    tree_remove(&t);
}

static void test_change__edit_replaces_parts_and_lines(void **state)
{
    tree t;
    tree_make(&t, true);
    tree_put(&t, "a.txt", "one\ntwo\nthree\n");
    tree_open(&t);
    tool_result r =
        tree_call(&t, "edit", "{\"path\":\"a.txt\"}", "<<<<<<< OLD\ntwo\n=======\n2\n>>>>>>> NEW\n");
    assert_int_equal(r.status, TOOL_REFUSED);
    assert_contains(r.text.data, "one\ntwo\nthree\n");
    tool_result_free(&r);
    r = tree_call(&t, "edit", "{\"path\":\"a.txt\"}", "<<<<<<< OLD\ntwo\n=======\n2\n>>>>>>> NEW\n");
    assert_int_equal(r.status, TOOL_OK);
    tool_result_free(&r);
    r = tree_call(&t, "edit", "{\"path\":\"a.txt\",\"from\":1,\"to\":1}", "1\n");
    assert_int_equal(r.status, TOOL_OK);
    tool_result_free(&r);
    expect(&t, "a.txt", "1\n2\nthree\n");
    tree_remove(&t);
}

/* ---- undo ---- */

static int undo(tree *t, char **summary)
{
    base_err err = {0};
    int code = tool_undo_apply(t->w, summary, &err);
    if (code && code != BASE_E_NOT_FOUND && code != BASE_E_STATE) fail_msg("%s", err.msg);
    return code;
}

static void test_undo__turns_in_reverse(void **state)
{
    tree t;
    char *say = NULL;
    tree_make(&t, true);
    tree_put(&t, "a.py", OLD_TEXT);
    tree_open(&t);
    tool_workspace_turn(t.w, 1);
    read_it(&t, "{\"path\":\"a.py\"}");
    tool_result r = tree_call(&t, "rewrite", REWRITE_F, NEW_TEXT);
    tool_result_free(&r);
    r = tree_call(&t, "rewrite", REWRITE_F, "def f():\n    return 3\n");
    tool_result_free(&r);
    tool_workspace_turn(t.w, 2);
    r = tree_call(&t, "write", "{\"path\":\"d/e/new.txt\"}", "new\n");
    tool_result_free(&r);
    base_buf diff = {0};
    assert_int_equal(tool_undo_preview(t.w, &diff, NULL), 0);
    assert_contains(diff.data, "--- a/d/e/new.txt\n+++ /dev/null");
    base_buf_free(&diff);
    tree_open(&t); /* another process */
    assert_int_equal(undo(&t, &say), 0);
    assert_string_equal(say, "undid turn 2: 1 removed (d/e/new.txt)");
    free(say);
    assert_false(tree_has(&t, "d"));
    expect(&t, "a.py", "def f():\n    return 3\n");
    assert_int_equal(undo(&t, &say), 0);
    assert_string_equal(say, "undid turn 1: 1 restored (a.py)");
    free(say);
    expect(&t, "a.py", OLD_TEXT);
    assert_int_equal(undo(&t, NULL), BASE_E_NOT_FOUND);
    tree_remove(&t);
}

static void test_undo__somebody_elses_change_is_kept_and_shown(void **state)
{
    tree t;
    base_err err = {0};
    base_buf diff = {0};
    tree_make(&t, true);
    tree_put(&t, "a.py", OLD_TEXT);
    tree_open(&t);
    read_it(&t, "{\"path\":\"a.py\"}");
    tool_result r = tree_call(&t, "rewrite", REWRITE_F, NEW_TEXT);
    tool_result_free(&r);
    tree_put(&t, "a.py", NEW_TEXT "# mine\n");
    assert_int_equal(tool_undo_preview(t.w, &diff, &err), BASE_E_STATE);
    assert_contains(err.msg, "a.py was changed after kvist wrote it");
    assert_contains(diff.data, "+# mine\n");
    assert_int_equal(undo(&t, NULL), BASE_E_STATE);
    expect(&t, "a.py", NEW_TEXT "# mine\n");
    tree_put(&t, "a.py", NEW_TEXT);
    assert_int_equal(undo(&t, NULL), 0);
    expect(&t, "a.py", OLD_TEXT);
    base_buf_free(&diff);
    tree_remove(&t);
}

static const char *fatal_step;
static int fatal_count;
static void die_at(const char *step)
{
    if (!strcmp(step, fatal_step) && --fatal_count == 0) _exit(42);
}

/* Runs fn in a child that ends at the step; false: the step was never reached. */
static bool die_during(tree *t, const char *step, void (*fn)(tree *t))
{
    fflush(NULL);
    pid_t child = fork();
    if (!child) {
        fatal_step = step;
        fatal_count = 1;
        tool__step_hook = die_at;
        fn(t);
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status) == 42;
}

static void change_both(tree *t)
{
    tree_open(t);
    tool_workspace_turn(t->w, 1);
    tool_result r = tree_call(t, "read", "{\"path\":\"a.py\"}", NULL);
    tool_result_free(&r);
    r = tree_call(t, "rewrite", REWRITE_F, NEW_TEXT);
    tool_result_free(&r);
    r = tree_call(t, "write", "{\"path\":\"d/new.txt\"}", "new\n");
    tool_result_free(&r);
}

static void undo_both(tree *t)
{
    tree_open(t);
    tool_undo_apply(t->w, NULL, NULL);
}

static void expect_no_leftovers(tree *t)
{
    static const char *const folders[] = {"", "d"};
    for (int i = 0; i < 2; i++) {
        DIR *dir = opendir(tree_path(t, folders[i]));
        if (!dir) continue;
        for (struct dirent *e; (e = readdir(dir));)
            if (tool__leftover_is_name(e->d_name)) fail_msg("%s was left", e->d_name);
        closedir(dir);
    }
}

static void test_undo__survives_a_kill_at_every_step(void **state)
{
    static const char *const steps[] = {"objects", "journal", "temporary", "written", "linked", "rename"};
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        tree t;
        tree_make(&t, false);
        tree_put(&t, "a.py", OLD_TEXT);
        assert_true(die_during(&t, steps[i], change_both));
        char *now = tree_get(&t, "a.py"); /* the old or the new text, nothing between */
        assert_true(!strcmp(now, OLD_TEXT) || !strcmp(now, NEW_TEXT));
        free(now);
        tree_open(&t);
        tool_workspace_recover(t.w);
        expect_no_leftovers(&t);
        undo(&t, NULL);
        expect(&t, "a.py", OLD_TEXT);
        expect_no_leftovers(&t);
        assert_int_equal(undo(&t, NULL), BASE_E_NOT_FOUND);
        tree_remove(&t);
    }
    static const char *const undo_steps[] = {"temporary", "written", "linked", "rename", "undo"};
    for (size_t i = 0; i < sizeof undo_steps / sizeof *undo_steps; i++) {
        tree t;
        tree_make(&t, false);
        tree_put(&t, "a.py", OLD_TEXT);
        change_both(&t);
        expect(&t, "d/new.txt", "new\n");
        assert_true(die_during(&t, undo_steps[i], undo_both));
        tree_open(&t);
        tool_workspace_recover(t.w);
        expect_no_leftovers(&t);
        undo(&t, NULL);
        expect(&t, "a.py", OLD_TEXT);
        expect(&t, "d/new.txt", NULL);
        expect_no_leftovers(&t);
        assert_int_equal(undo(&t, NULL), BASE_E_NOT_FOUND);
        tree_remove(&t);
    }
}

static void test_undo__a_torn_journal_line_is_dropped(void **state)
{
    tree t;
    tree_make(&t, false);
    tree_put(&t, "a.py", OLD_TEXT);
    change_both(&t);
    char *journal = tree_get(&t, "../store/undo/journal");
    size_t n = strlen(journal);
    base_buf torn = {0};
    base_buf_add(&torn, journal, n);
    base_buf_puts(&torn, "w 1 1 0123");
    tree_put_bytes(&t, "../store/undo/journal", torn.data, torn.len);
    tree_open(&t);
    assert_int_equal(undo(&t, NULL), 0);
    expect(&t, "a.py", OLD_TEXT);
    char *now = tree_get(&t, "../store/undo/journal");
    assert_int_equal(strncmp(now, journal, n), 0);
    assert_string_equal(now + n, "u 1\n");
    free(now);
    free(journal);
    base_buf_free(&torn);
    tree_remove(&t);
}

static void test_change__a_read_only_folder_is_a_sentence(void **state)
{
    tree t;
    tree_make(&t, false);
    tree_put(&t, "a.py", OLD_TEXT);
    tree_open(&t);
    read_it(&t, "{\"path\":\"a.py\"}");
    /* A store that cannot be written: no undo record, so no write. */
    tree_put(&t, "../store", "a file, not a folder");
    tool_result r = tree_call(&t, "rewrite", REWRITE_F, NEW_TEXT);
    assert_int_equal(r.status, TOOL_FAILED);
    assert_contains(r.text.data, "Nothing was written");
    expect(&t, "a.py", OLD_TEXT);
    tool_result_free(&r);
    tree_remove(&t);
}

/* A full disk, as a limit on the size of files: the write fails half way. */
static void test_change__a_full_disk_leaves_the_old_file(void **state)
{
    tree t;
    base_buf large = {0};
    tree_make(&t, false);
    tree_put(&t, "a.py", OLD_TEXT);
    base_buf_puts(&large, "def f():\n");
    for (int i = 0; i < 2000; i++) base_buf_puts(&large, "    x = 1\n");
    fflush(NULL);
    pid_t child = fork();
    if (!child) {
        tree_open(&t);
        tool_result r = tree_call(&t, "read", "{\"path\":\"a.py\"}", NULL);
        tool_result_free(&r);
        signal(SIGXFSZ, SIG_IGN);
        setrlimit(RLIMIT_FSIZE, &(struct rlimit){8192, 8192});
        r = tree_call(&t, "rewrite", REWRITE_F, large.data);
        bool said = r.status == TOOL_FAILED && strstr(r.text.data, "Nothing was written");
        tool_result_free(&r);
        _exit(said ? 0 : 1);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    expect(&t, "a.py", OLD_TEXT);
    expect_no_leftovers(&t);
    tree_open(&t);
    assert_int_equal(undo(&t, NULL), BASE_E_NOT_FOUND);
    base_buf_free(&large);
    tree_remove(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_change__write_makes_files_and_never_overwrites),
        cmocka_unit_test(test_change__what_was_not_shown_is_refused_with_its_text),
        cmocka_unit_test(test_change__a_file_changed_during_approval_is_refused),
        cmocka_unit_test(test_change__mode_line_ends_and_binary),
        cmocka_unit_test(test_change__edit_replaces_parts_and_lines),
        cmocka_unit_test(test_change__a_read_only_folder_is_a_sentence),
        cmocka_unit_test(test_change__a_full_disk_leaves_the_old_file),
        cmocka_unit_test(test_undo__turns_in_reverse),
        cmocka_unit_test(test_undo__somebody_elses_change_is_kept_and_shown),
        cmocka_unit_test(test_undo__survives_a_kill_at_every_step),
        cmocka_unit_test(test_undo__a_torn_journal_line_is_dropped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
