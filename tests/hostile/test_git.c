/*
 * What a command could leave behind for the person's own git, which runs outside of the box. Every attack first runs without a
 * defence and must work there. The defences are tried one by one: the comparison alone, Landlock without mounts, everything; and all
 * of it once more as an ordinary user when this runs as root.
 */
#include "tree.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fs.h"

static tool_result run(tree *t, const char *command)
{
    base_buf arguments = {0};
    base_buf_puts(&arguments, "{\"command\":");
    tool__quote(&arguments, command);
    base_buf_puts(&arguments, "}");
    tool_result r = tree_call(t, "shell", arguments.data, NULL);
    base_buf_free(&arguments);
    return r;
}

/* As the person would, in the tree, outside of any box. */
static int outside(tree *t, const char *command)
{
    base_buf line = {0};
    base_buf_printf(&line, "cd '%s' && { %s\n} >/dev/null 2>&1", t->dir, command);
    int status = system(line.data);
    base_buf_free(&line);
    return status;
}

/* The defences of this machine, weakest first; false: there is no such one. */
static bool defend(tree *t, int which)
{
    const tool_sandbox real = t->w->sandbox;
    switch (which) {
    case 0: t->w->sandbox = (tool_sandbox){0}; return true; /* the comparison alone */
    case 1: t->w->sandbox.has_mounts = t->w->sandbox.has_pids = false; return real.landlock_abi > 0;
    default: return real.has_mounts;
    }
}
enum { N_DEFENCES = 3 };

/* ---- nothing that was there is lost ---- */

static void put_big(tree *t, const char *path, size_t n)
{
    char *bytes = malloc(n);
    assert_non_null(bytes);
    memset(bytes, '#', n);
    bytes[n - 1] = '\n';
    tree_put_bytes(t, path, bytes, n);
    free(bytes);
}

static const char *const odd_files[] = {".git/config", ".git/hooks", ".git/hooks/pre-commit",
    ".git/hooks/dangling", ".git/hooks/large", ".git/hooks/larger", ".git/hooks/empty", ".git/hooks/closed",
    ".git/hooks/pipe", ".git/info/attributes", ".git/hooks/commit-msg", "shared-config", "scripts/hook"};
enum { N_ODD = sizeof odd_files / sizeof *odd_files };

static void make_odd_files(tree *t)
{
    tree_make(t, true);
    tree_put(t, "scripts/hook", "#!/bin/sh\n");
    tree_put(t, "attributes", "*.c diff=c\n");
    assert_int_equal(
        outside(t, "mv .git/config shared-config && ln -s ../shared-config .git/config && "
                   "mkdir -p .git/hooks .git/info && cd .git/hooks && "
                   "ln -s ../../scripts/hook pre-commit && ln -s nowhere dangling && mkdir empty "
                   "&& mkfifo pipe && echo secret > closed && chmod 000 closed && "
                   "ln -s ../../attributes ../info/attributes"),
        0);
    put_big(t, ".git/hooks/large", (size_t)2 << 20);
    put_big(t, ".git/hooks/larger", (size_t)20 << 20);
    tree_put(t, ".git/hooks/commit-msg", "#!/bin/sh\nexit 0\n");
    chmod(tree_path(t, ".git/hooks/commit-msg"), 0755);
    tree_open(t);
}

static void stat_all(tree *t, struct stat *st)
{
    for (int i = 0; i < N_ODD; i++)
        if (lstat(tree_path(t, odd_files[i]), &st[i])) fail_msg("%s is gone", odd_files[i]);
}

static size_t count_aside(tree *t)
{
    size_t n = 0;
    DIR *dir = opendir(tree_path(t, "../aside"));
    for (const struct dirent *e; dir && (e = readdir(dir));) n += e->d_name[0] != '.';
    if (dir) closedir(dir);
    return n;
}

static void test_git__a_command_that_does_nothing_changes_nothing(void **state)
{
    for (int which = 0; which < N_DEFENCES; which++) {
        tree t;
        struct stat before[N_ODD], after[N_ODD];
        make_odd_files(&t);
        if (defend(&t, which)) {
            stat_all(&t, before);
            for (int i = 0; i < 3; i++) {
                tool_result r = run(&t, "true");
                assert_int_equal(r.status, TOOL_OK);
                assert_string_equal(r.text.data, "exit code 0, no output\n");
                tool_result_free(&r);
            }
            stat_all(&t, after);
            for (int i = 0; i < N_ODD; i++) {
                assert_int_equal(before[i].st_ino, after[i].st_ino);
                assert_int_equal(before[i].st_mode, after[i].st_mode);
                assert_int_equal(before[i].st_size, after[i].st_size);
                assert_int_equal(before[i].st_ctim.tv_nsec, after[i].st_ctim.tv_nsec);
            }
            assert_int_equal(count_aside(&t), 0);
        }
        tree_remove(&t);
    }
}

/* What is overwritten comes back where it could be held, and what the command left is kept in any case. */
static void test_git__what_a_command_changed_comes_back_and_its_version_is_kept(void **state)
{
    tree t;
    make_odd_files(&t);
    defend(&t, 0);
    tool_result r = run(&t, "cd .git/hooks; rm pre-commit; echo evil > pre-commit; echo evil > commit-msg; "
                            "rm -rf empty dangling; rm ../config; echo evil > ../config; echo evil > large; "
                            "echo evil > larger; echo more > post-merge; rm ../info/attributes");
    char target[200] = "";
    assert_true(readlink(tree_path(&t, ".git/hooks/pre-commit"), target, sizeof target) > 0);
    assert_string_equal(target, "../../scripts/hook");
    memset(target, 0, sizeof target);
    assert_true(readlink(tree_path(&t, ".git/config"), target, sizeof target) > 0);
    assert_string_equal(target, "../shared-config");
    assert_true(tree_has(&t, ".git/info/attributes"));
    assert_true(tree_has(&t, ".git/hooks/dangling"));
    assert_true(tree_has(&t, ".git/hooks/empty"));
    char *text = tree_get(&t, ".git/hooks/commit-msg");
    assert_string_equal(text, "#!/bin/sh\nexit 0\n");
    free(text);
    struct stat st;
    assert_int_equal(stat(tree_path(&t, ".git/hooks/commit-msg"), &st), 0);
    assert_int_equal(st.st_mode & 0777, 0755);
    assert_int_equal(stat(tree_path(&t, ".git/hooks/large"), &st), 0);
    assert_int_equal(st.st_size, 2 << 20);
    assert_false(tree_has(&t, ".git/hooks/post-merge"));
    assert_false(tree_has(&t, ".git/hooks/larger")); /* too large to be held: told, and not run */
    assert_contains(r.text.data, "changed .git/hooks/larger, which git would run or obey later, and it could "
                                 "not be put back");
    assert_contains(r.text.data, "made .git/hooks/post-merge");
    assert_int_equal(count_aside(&t), 6); /* pre-commit, commit-msg, config, large, larger, post-merge */
    assert_int_equal(outside(&t, "grep -rq evil ../aside && grep -rq more ../aside"), 0);
    tool_result_free(&r);
    r = run(&t, "true");
    assert_string_equal(r.text.data, "exit code 0, no output\n");
    tool_result_free(&r);
    tree_remove(&t);
}

/* A file that cannot be read is not one that was not there. */
static void test_git__an_unreadable_configuration_is_left_alone(void **state)
{
    tree t;
    tree_make(&t, true);
    assert_int_equal(outside(&t, "chmod 000 .git/config"), 0);
    tree_open(&t);
    for (int which = 0; which < N_DEFENCES; which++) {
        if (!defend(&t, which)) continue;
        tool_result r = run(&t, "true");
        assert_string_equal(r.text.data, "exit code 0, no output\n");
        tool_result_free(&r);
        assert_int_equal(outside(&t, "test -f .git/config"), 0);
    }
    tree_remove(&t);
}

static int as_ordinary_user(const struct CMUnitTest *tests, size_t n)
{
    fflush(NULL);
    pid_t child = fork();
    if (!child) {
        if (setgroups(0, NULL) || setresgid(65534, 65534, 65534) || setresuid(65534, 65534, 65534)) _exit(2);
        _exit(_cmocka_run_group_tests("hostile git, an ordinary user", tests, n, NULL, NULL));
    }
    int status = 0;
    return waitpid(child, &status, 0) != child || status;
}

int main(void)
{
    setenv("HOME", "/nonexistent", 1);
    setenv("GIT_CONFIG_NOSYSTEM", "1", 1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_git__a_command_that_does_nothing_changes_nothing),
        cmocka_unit_test(test_git__what_a_command_changed_comes_back_and_its_version_is_kept),
        cmocka_unit_test(test_git__an_unreadable_configuration_is_left_alone),
    };
    int failed = geteuid() ? 0 : as_ordinary_user(tests, sizeof tests / sizeof *tests);
    return cmocka_run_group_tests(tests, NULL, NULL) || failed;
}
