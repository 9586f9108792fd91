/*
 * Of the git files that were there nothing is lost to the guard that compares them, and ordinary work goes on behind it.
 */
#include "git_kit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/buf.h"
#include "tools/guard/kept.h"

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
        git_outside(t, "mv .git/config shared-config && ln -s ../shared-config .git/config && "
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
    for (int which = 0; which < GIT_N_DEFENCES; which++) {
        tree t;
        struct stat before[N_ODD], after[N_ODD];
        make_odd_files(&t);
        if (git_defend(&t, which)) {
            stat_all(&t, before);
            for (int i = 0; i < 3; i++) {
                tool_result r = git_run(&t, "true");
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
    git_defend(&t, 0);
    tool_result r =
        git_run(&t, "cd .git/hooks; rm pre-commit; echo evil > pre-commit; echo evil > commit-msg; "
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
    assert_contains(r.text.data, "changed .git/hooks/larger, which git would run "
                                 "or obey later, and it could not be put back");
    assert_contains(r.text.data, "made .git/hooks/post-merge");
    assert_int_equal(count_aside(&t), 6); /* pre-commit, commit-msg, config, large, larger, post-merge */
    assert_int_equal(git_outside(&t, "grep -rq evil ../aside && grep -rq more ../aside"), 0);
    tool_result_free(&r);
    r = git_run(&t, "true");
    assert_string_equal(r.text.data, "exit code 0, no output\n");
    tool_result_free(&r);
    tree_remove(&t);
}

/* A file that cannot be read is not one that was not there. */
static void test_git__an_unreadable_configuration_is_left_alone(void **state)
{
    tree t;
    tree_make(&t, true);
    assert_int_equal(git_outside(&t, "chmod 000 .git/config"), 0);
    tree_open(&t);
    for (int which = 0; which < GIT_N_DEFENCES; which++) {
        if (!git_defend(&t, which)) continue;
        tool_result r = git_run(&t, "true");
        assert_string_equal(r.text.data, "exit code 0, no output\n");
        tool_result_free(&r);
        assert_int_equal(git_outside(&t, "test -f .git/config"), 0);
    }
    tree_remove(&t);
}

/*
 * Where a file has an access list its mode shows for the group what the list allows anybody in it: put back by its mode alone it
 * would be open to its owning group, to whom the list gives nothing. And the folder's default list would open it to a neighbour.
 */
static void test_git__what_comes_back_is_open_to_nobody_else(void **state)
{
    static const char name[] = "system.posix_acl_access", by_folder[] = "system.posix_acl_default";
    typedef struct {
        uint16_t tag, may;
        uint32_t id;
    } entry;
    const struct {
        uint32_t version;
        entry all[5];
    } narrow = {2,
        {{1, 6, UINT32_MAX}, {2, 6, 65533}, {4, 0, UINT32_MAX}, {16, 6, UINT32_MAX}, {32, 0, UINT32_MAX}}},
      wide = {2,
          {{1, 6, UINT32_MAX}, {2, 6, 65532}, {4, 6, UINT32_MAX}, {16, 6, UINT32_MAX}, {32, 0, UINT32_MAX}}};
    for (int has_list = 0; has_list < 2; has_list++) {
        tree t;
        struct stat st;
        char now[256];
        git_begin(&t,
            &(git_attack){
                .setup = FIRST
                "mkdir -p .git/hooks; echo mine > .git/hooks/pre-commit; chmod 660 .git/hooks/pre-commit"});
        const char *hook = ".git/hooks/pre-commit";
        if ((has_list && setxattr(tree_path(&t, hook), name, &narrow, sizeof narrow, 0)) ||
            setxattr(tree_path(&t, ".git/hooks"), by_folder, &wide, sizeof wide, 0)) {
            tree_remove(&t);
            skip();
        }
        tree_open(&t);
        git_defend(&t, 0);
        tool_result r =
            git_run(&t, "cd .git/hooks; rm pre-commit; echo evil > pre-commit; cp pre-commit copy");
        assert_contains(r.notice, "it was put back");
        assert_int_equal(git_outside(&t, "grep -qx mine .git/hooks/pre-commit"), 0);
        assert_int_equal(stat(tree_path(&t, hook), &st), 0);
        assert_int_equal(st.st_mode & 0777, 0660);
        const ssize_t n = getxattr(tree_path(&t, hook), name, now, sizeof now);
        assert_int_equal(n, has_list ? (ssize_t)sizeof narrow : -1);
        if (has_list) assert_memory_equal(now, &narrow, sizeof narrow);
        /* The control: a file that is made there is the neighbour's too. */
        tree_put(&t, ".git/hooks/new", "");
        assert_int_equal(getxattr(tree_path(&t, ".git/hooks/new"), name, now, sizeof now), sizeof wide);
        tool_result_free(&r);
        tree_remove(&t);
    }
}

/* A command without a PID namespace knows kvist's pid, and every inode by lstat. */
static void test_git__no_name_that_can_be_guessed_is_in_the_way(void **state)
{
    tree t;
    tool_kept_list list = {0};
    base_err err = {0};
    char guess[80];
    tree_make(&t, true);
    tree_put(&t, "kept.txt", "as it was\n");
    tree_open(&t);
    tool__kept_add(&t.w->root, "kept.txt", NULL, NULL, &list);
    assert_int_equal(list.n, 1);
    snprintf(
        guess, sizeof guess, ".kvist-restore-%d-%llx", getpid(), (unsigned long long)list.items[0].st.st_ino);
    tree_put(&t, guess, "in the way\n");
    assert_int_equal(unlink(tree_path(&t, "kept.txt")), 0);
    if (tool__kept_put_back(&t.w->root, &list.items[0], NULL, &err)) fail_msg("%s", err.msg);
    char *now = tree_get(&t, "kept.txt");
    assert_string_equal(now, "as it was\n");
    free(now);
    tool__kept_free(&list);
    tree_remove(&t);
}

/* ---- what ordinary work needs ---- */

/* npm's husky writes its scripts again, byte for byte. */
static void test_git__hooks_written_again_as_they_were_are_no_change(void **state)
{
    for (int which = 0; which < GIT_N_DEFENCES; which++) {
        tree t;
        git_begin(
            &t, &(git_attack){.setup = FIRST
                              "git config core.hooksPath .husky/_; mkdir -p .husky/_; echo sh > .husky/_/h"});
        tree_open(&t);
        if (git_defend(&t, which)) {
            tool_result r = git_run(&t, "rm .husky/_/h; mkdir -p .husky/_ && echo sh > .husky/_/h");
            assert_int_equal(r.status, TOOL_OK);
            if (r.notice) fail_msg("defence %d: %s", which, r.notice);
            tool_result_free(&r);
        }
        tree_remove(&t);
    }
}

/* Looking at a folder costs as many steps as its path has parts: 3,000 below 1,800 levels are more than are looked at. */
static void test_git__a_tree_that_is_too_deep_is_told_every_time(void **state)
{
    tree t;
    if ((git_left_out("deep")) || git_is_second) return; /* the walk is the same for every user */
    git_begin(&t, &(git_attack){.setup = FIRST});
    tree_open(&t);
    for (int i = 0; i < 3; i++) {
        if (i == 1)
            assert_int_equal(
                git_outside(&t, "for i in $(seq 1800); do mkdir d; cd -P d; done; mkdir $(seq 3000)"), 0);
        tool_result r = git_run(&t, "true");
        assert_int_equal(r.status, TOOL_OK);
        if (i == 0) assert_null(r.notice); /* the control */
        if (i > 0) {
            assert_non_null(r.notice);
            assert_contains(r.notice, "more folders");
        }
        tool_result_free(&r);
    }
    git_outside(&t, "rm -rf d");
    tree_remove(&t);
}

static void test_git__ordinary_work_goes_on(void **state)
{
    static const struct {
        const char *command, *later;
        bool
            may_be_refused; /* by git, where .git is a mount of its own: then the model is told whom to ask */
    } steps[] = {
        {"echo b > g; git add g; git commit -qm second", "git log --oneline | grep -q second", false},
        {"git checkout -q -b topic; echo c > f; git commit -qam topic; git "
         "checkout -q -; echo d > f; git commit -qam other; git checkout -q topic",
            "git log --oneline | grep -q topic", false},
        {"! git rebase -q -", "test -d .git/rebase-merge", false},
        {"echo merged > f; git add f; GIT_EDITOR=true git rebase --continue",
            "git log --oneline | grep -q other", false},
        {"git worktree add -q w -b side; cd w; echo x > h; git add h; git commit -qm h", "cd w && git status",
            false},
        {"git tag v1; echo z >> g; git stash -q; git stash pop -q", "git rev-parse v1", false},
        {"git update-index --split-index; echo s > s; git add s; git commit -qm split",
            "git ls-files --error-unmatch f s && git log -1 --format=%s | grep -qx split", false},
        {"git update-index --no-split-index --index-version "
         "4; echo s > st; git add st; git commit -qm packed",
            "git ls-files --error-unmatch f st && git log -1 --format=%s | grep -qx packed", false},
        {"git config a.b c", "! git config a.b", true},
    };
    for (int which = 0; which < GIT_N_DEFENCES; which++) {
        tree t;
        git_begin(&t, &(git_attack){.setup = FIRST});
        tree_open(&t);
        for (size_t i = 0; git_defend(&t, which) && i < sizeof steps / sizeof *steps; i++) {
            tool_result r = git_run(&t, steps[i].command);
            if (!steps[i].may_be_refused && r.notice) fail_msg("%s: %s", steps[i].command, r.notice);
            if (steps[i].may_be_refused && r.status != TOOL_OK)
                assert_contains(r.text.data, "ask the person");
            if (git_outside(&t, steps[i].later))
                fail_msg("%s, defence %d: %s", steps[i].command, which, r.text.data);
            tool_result_free(&r);
        }
        tree_remove(&t);
    }
}

static int all_tests(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_git__a_command_that_does_nothing_changes_nothing),
        cmocka_unit_test(test_git__what_a_command_changed_comes_back_and_its_version_is_kept),
        cmocka_unit_test(test_git__an_unreadable_configuration_is_left_alone),
        cmocka_unit_test(test_git__what_comes_back_is_open_to_nobody_else),
        cmocka_unit_test(test_git__no_name_that_can_be_guessed_is_in_the_way),
        cmocka_unit_test(test_git__hooks_written_again_as_they_were_are_no_change),
        cmocka_unit_test(test_git__a_tree_that_is_too_deep_is_told_every_time),
        cmocka_unit_test(test_git__ordinary_work_goes_on),
    };
    return cmocka_run_group_tests_name("git: kept", tests, NULL, NULL);
}

int main(int argc, char **argv)
{
    return git_tests(argc, argv, all_tests);
}
