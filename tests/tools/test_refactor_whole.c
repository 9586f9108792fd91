/*
 * A change of several files is one diff and one undo, and happens as a whole or not at all: also when the process is
 * killed between two of them, or Esc is pressed.
 */
#include "refactor.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tools/edit/change.h"

static void test_refactor_whole__one_diff_one_undo(void **state)
{
    tree t;
    tree_make(&t, true);
    tree_put(&t, "a.py", "def f(x):\n    return x\n");
    tree_put(&t, "b.py", "from a import f\nf(1)\n");
    tree_open(&t);
    tool_preview p = {0};
    tool_result r =
        tree_prepare(&t, "refactor", "{\"operation\":\"rename\",\"name\":\"f\",\"to\":\"h\"}", NULL, &p);
    assert_int_equal(r.status, TOOL_OK);
    assert_contains(p.headline, "rename f to h, 3 places (2 files, +3 -3)");
    assert_contains(p.detail, "--- a/a.py");
    assert_contains(p.detail, "--- a/b.py");
    tool_result_free(&r);
    tool_preview_free(&p);
    expect(&t, "b.py", "from a import f\nf(1)\n");
    tool_workspace_turn(t.w, 7);
    renames(&t, "f", "h", "renamed function f to h: 3 places in 2 files");
    char *summary = NULL;
    base_err err = {0};
    assert_int_equal(tool_undo_apply(t.w, &summary, &err), 0);
    assert_contains(summary, "2 restored");
    free(summary);
    expect(&t, "a.py", "def f(x):\n    return x\n");
    expect(&t, "b.py", "from a import f\nf(1)\n");
    /* A file that changed between the question and the yes: nothing is written. */
    tool_call call = {.name = "refactor"};
    base_json_doc *doc;
    const char *json = "{\"operation\":\"rename\",\"name\":\"f\",\"to\":\"h\"}";
    assert_int_equal(base_json_parse(json, strlen(json), &doc, NULL), 0);
    call.arguments = base_json_root(doc);
    const tool_entry *e = tool_find("refactor");
    r = (tool_result){0};
    assert_int_equal(e->prepare(t.w, &call, &t.limits, &p, &r, &err), 0);
    tree_put(&t, "b.py", "from a import f\nf(2)\n");
    assert_int_equal(e->run(t.w, &call, &t.limits, &p, &r, &err), 0);
    assert_int_equal(r.status, TOOL_REFUSED);
    assert_contains(r.text.data, "all 2 files are as they were");
    expect(&t, "a.py", "def f(x):\n    return x\n");
    tool_result_free(&r);
    tool_preview_free(&p);
    base_json_free(doc);
    tree_remove(&t);
}

static const char *stop_at;
static int stop_in;
static atomic_bool cancelled;

static void kill_at(const char *step)
{
    if (!strcmp(step, stop_at) && --stop_in == 0) kill(getpid(), SIGKILL);
}

static void cancel_at(const char *step)
{
    if (!strcmp(step, "file")) atomic_store(&cancelled, true);
}

static void put_five(tree *t)
{
    char path[20], text[100];
    tree_make(t, true);
    tree_put(t, "a.py", "def f(x):\n    return x\n");
    for (int i = 0; i < 4; i++) {
        snprintf(path, sizeof path, "m%d.py", i);
        snprintf(text, sizeof text, "from a import f\nf(%d)\n", i);
        tree_put(t, path, text);
    }
}

static int count_new(tree *t)
{
    static const char *const paths[] = {"a.py", "m0.py", "m1.py", "m2.py", "m3.py"};
    int n = 0;
    for (size_t i = 0; i < 5; i++) {
        char *now = tree_get(t, paths[i]);
        assert_non_null(now);
        const bool is_new = strstr(now, "renamed") != NULL;
        assert_true(is_new || strstr(now, " f") != NULL);
        n += is_new;
        free(now);
    }
    return n;
}

static void test_refactor_whole__a_kill_leaves_all_old_or_all_new(void **state)
{
    static const char *const steps[] = {
        "objects", "journal", "pending", "temporary", "written", "rename", "file", "done"};
    for (size_t s = 0; s < sizeof steps / sizeof *steps; s++)
        for (int at = 1; at <= 5; at++) {
            tree t;
            put_five(&t);
            const pid_t child = fork();
            assert_true(child >= 0);
            if (child == 0) {
                tree_open(&t);
                stop_at = steps[s];
                stop_in = at;
                tool__step_hook = kill_at;
                tool_result r = tree_call(
                    &t, "refactor", "{\"operation\":\"rename\",\"name\":\"f\",\"to\":\"renamed\"}", NULL);
                _exit(r.status == TOOL_OK ? 0 : 1);
            }
            int status;
            assert_int_equal(waitpid(child, &status, 0), child);
            const bool was_killed = WIFSIGNALED(status);
            assert_true(was_killed || (WIFEXITED(status) && WEXITSTATUS(status) == 0));
            tree_open(&t);
            tool_workspace_recover(t.w);
            const int n = count_new(&t);
            if (n != 0 && n != 5) fail_msg("killed at %s %d: %d of 5 files are new", steps[s], at, n);
            if (!was_killed) assert_int_equal(n, 5);
            base_buf notes = {0};
            tool_workspace_notes(t.w, &notes);
            if (was_killed && !strcmp(steps[s], "file") && at < 5)
                assert_contains(notes.data, "cut off by a kill");
            base_buf_free(&notes);
            /* A second start has nothing left to do, and the tree can be worked on. */
            tree_open(&t);
            tool_workspace_recover(t.w);
            assert_int_equal(count_new(&t), n);
            tree_remove(&t);
        }
}

static void test_refactor_whole__what_somebody_changed_after_a_kill_stays(void **state)
{
    tree t;
    put_five(&t);
    const pid_t child = fork();
    if (child == 0) {
        tree_open(&t);
        stop_at = "file";
        stop_in = 3;
        tool__step_hook = kill_at;
        tree_call(&t, "refactor", "{\"operation\":\"rename\",\"name\":\"f\",\"to\":\"renamed\"}", NULL);
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status));
    tree_put(&t, "a.py", "mine = 1\n");
    tree_open(&t);
    tool_workspace_recover(t.w);
    expect(&t, "a.py", "mine = 1\n");
    expect(&t, "m0.py", "from a import f\nf(0)\n");
    tree_remove(&t);
}

static void pause_at(const char *step)
{
    if (!strcmp(step, stop_at) && --stop_in == 0) raise(SIGSTOP);
}

/* A kvist of its own renames f, and `hook` is called at each step; it is stopped or dead when this returns. */
static pid_t rename_beside(tree *t, void (*hook)(const char *step), int files)
{
    int status;
    const pid_t child = fork();
    if (child == 0) {
        t->w = NULL; /* its threads are not here */
        tree_open(t);
        stop_at = "file";
        stop_in = files;
        tool__step_hook = hook;
        tree_call(t, "refactor", "{\"operation\":\"rename\",\"name\":\"f\",\"to\":\"renamed\"}", NULL);
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, WUNTRACED), child);
    assert_true(WIFSTOPPED(status) || WIFSIGNALED(status));
    return child;
}

/* Prepared when two of five files have the new name, it would take back these two alone. */
static void test_refactor_whole__what_is_prepared_between_anothers_files_is_not_done(void **state)
{
    tree t;
    int status;
    put_five(&t);
    const pid_t child = rename_beside(&t, pause_at, 2);
    tree_open(&t);
    base_err err = {0};
    base_json_doc *doc;
    const char *json = "{\"operation\":\"rename\",\"name\":\"renamed\",\"to\":\"g\"}";
    assert_int_equal(base_json_parse(json, strlen(json), &doc, NULL), 0);
    const tool_call call = {.name = "refactor", .arguments = base_json_root(doc)};
    const tool_entry *e = tool_find("refactor");
    tool_preview p = {0};
    tool_result r = {0};
    assert_int_equal(e->prepare(t.w, &call, &t.limits, &p, &r, &err), 0);
    assert_non_null(p.plan);
    assert_contains(p.headline, "(2 files,");
    kill(child, SIGCONT);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(count_new(&t), 5);
    assert_int_equal(e->run(t.w, &call, &t.limits, &p, &r, &err), 0);
    assert_int_equal(r.status, TOOL_REFUSED);
    assert_contains(r.text.data, "other files of this tree changed since this was prepared");
    assert_int_equal(count_new(&t), 5);
    tool_result_free(&r);
    tool_preview_free(&p);
    base_json_free(doc);
    renames(&t, "renamed", "g", NULL); /* and again, since it has looked */
    expect(&t, "m3.py", "from a import g\ng(3)\n");
    tree_remove(&t);
}

/* An undo waits for nobody, and takes nothing back between another one's files. */
static void test_refactor_whole__an_undo_keeps_out_of_anothers_files(void **state)
{
    tree t;
    int status;
    base_err err = {0};
    put_five(&t);
    tree_open(&t);
    renames(&t, "f", "g", NULL);
    renames(&t, "g", "f", NULL); /* so that the other one finds f, and the undo its own text */
    const pid_t child = rename_beside(&t, pause_at, 2);
    assert_int_equal(tool_undo_apply(t.w, NULL, &err), BASE_E_STATE);
    assert_contains(err.msg, "another kvist is writing files of this tree. Nothing was undone");
    kill(child, SIGCONT);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(count_new(&t), 5);
    tree_remove(&t);
}

/* Whoever writes next puts back what a killed one left, and does not write over what names it. */
static void test_refactor_whole__a_kill_beside_an_open_one_is_put_back(void **state)
{
    tree t;
    int status;
    put_five(&t);
    waitpid(rename_beside(&t, kill_at, 3), &status, 0);
    tree_open(&t);
    assert_int_equal(count_new(&t), 3);
    refuses(&t, "{\"operation\":\"rename\",\"name\":\"renamed\",\"to\":\"g\"}", TOOL_REFUSED,
        "changed since this was prepared");
    assert_int_equal(count_new(&t), 0);
    base_buf news = {0};
    tool_workspace_take_news(t.w, &news);
    assert_contains(news.data, "was cut off by a kill: they are as they were before it");
    base_buf_free(&news);
    renames(&t, "f", "g", NULL);
    expect(&t, "m3.py", "from a import g\ng(3)\n");
    tree_remove(&t);
}

static void test_refactor_whole__esc_between_two_files_takes_all_back(void **state)
{
    tree t;
    put_five(&t);
    tree_open(&t);
    t.limits.cancel = &cancelled;
    atomic_store(&cancelled, false);
    tool__step_hook = cancel_at;
    tool_result r =
        tree_call(&t, "refactor", "{\"operation\":\"rename\",\"name\":\"f\",\"to\":\"renamed\"}", NULL);
    tool__step_hook = NULL;
    assert_int_equal(r.status, TOOL_CANCELLED);
    assert_contains(r.text.data, "all 5 files are as they were");
    assert_int_equal(count_new(&t), 0);
    tool_result_free(&r);
    tree_remove(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_refactor_whole__one_diff_one_undo),
        cmocka_unit_test(test_refactor_whole__a_kill_leaves_all_old_or_all_new),
        cmocka_unit_test(test_refactor_whole__what_somebody_changed_after_a_kill_stays),
        cmocka_unit_test(test_refactor_whole__what_is_prepared_between_anothers_files_is_not_done),
        cmocka_unit_test(test_refactor_whole__an_undo_keeps_out_of_anothers_files),
        cmocka_unit_test(test_refactor_whole__a_kill_beside_an_open_one_is_put_back),
        cmocka_unit_test(test_refactor_whole__esc_between_two_files_takes_all_back),
    };
    return refactor_run(tests, sizeof tests / sizeof *tests, "refactor whole");
}
