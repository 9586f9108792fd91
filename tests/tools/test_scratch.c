/* The copies of a tree that things are tried in: what they hold, what is kept there, and what is never followed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fs.h"
#include "tools/run/scratch.h"
#include "tree.h"

typedef struct stage {
    tree t;
    const char *copy; /* the kept copy's folder, which has its name while somebody runs something in it: */
    tool_sandbox_plan running;
} stage;

static void begin(stage *s, bool is_git)
{
    *s = (stage){0};
    tree_make(&s->t, is_git);
    tree_put(&s->t, "a.c", "int a;\n");
    tree_put(&s->t, "lib/b.c", "int b;\n");
    tree_put(&s->t, ".gitignore", "build/\n*.o\n");
    tree_put(&s->t, "build/mine", "the person's\n");
    tree_open(&s->t);
    s->copy = tool__scratch_kept_path(s->t.w, NULL);
    assert_non_null(s->copy);
    assert_int_not_equal(access(s->copy, F_OK), 0);
    assert_int_equal(tool__scratch_prepare(s->t.w->kept, &s->running, NULL), 0);
}

static void end(stage *s)
{
    tool_sandbox_plan_free(&s->running);
    tree_remove(&s->t);
}

static const char *in_copy(const stage *s, const char *path)
{
    static char whole[2][600];
    static int turn;
    turn = !turn;
    snprintf(whole[turn], sizeof whole[turn], "%s/%s", s->copy, path);
    return whole[turn];
}

static tool_scratch *update(stage *s)
{
    tool_scratch *kept = NULL;
    base_err err = {0};
    if (tool_scratch_make(s->t.w, true, &kept, NULL, &err)) fail_msg("%s", err.msg);
    assert_string_equal(tool__scratch_kept_path(s->t.w, NULL), s->copy);
    return kept;
}

static void write_text(const char *path, const char *text)
{
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

/* text NULL: nothing is there, not even a link. */
static void assert_copy(const stage *s, const char *path, const char *text)
{
    base_buf found = {0};
    struct stat st;
    if (!text) {
        if (!lstat(in_copy(s, path), &st))
            fail_msg("%s is there, %s", in_copy(s, path), s->t.w->repo ? "git" : "no git");
        return;
    }
    base_err err = {0};
    if (base_fs_read(in_copy(s, path), 1 << 16, &found, &err)) fail_msg("%s: %s", path, err.msg);
    assert_string_equal(found.data ? found.data : "", text);
    base_buf_free(&found);
}

static struct stat look(const stage *s, const char *path)
{
    struct stat st;
    assert_int_equal(lstat(in_copy(s, path), &st), 0);
    return st;
}

static void test_scratch__the_kept_copy_follows_the_tree(void **state)
{
    for (int is_git = 0; is_git < 2; is_git++) {
        stage s;
        begin(&s, is_git);
        if (is_git) tree_commit(&s.t, "all");
        update(&s);
        assert_copy(&s, "a.c", "int a;\n");
        assert_copy(&s, "lib/b.c", "int b;\n");
        write_text(in_copy(&s, "lib/b.o"), "made\n");
        /* Deleted, moved, changed, new. */
        unlink(tree_path(&s.t, "a.c"));
        unlink(tree_path(&s.t, "lib/b.c"));
        tree_put(&s.t, "lib/moved.c", "int b;\n");
        tree_put(&s.t, "new/c.c", "int c;\n");
        update(&s);
        assert_copy(&s, "a.c", NULL);
        assert_copy(&s, "lib/b.c", NULL);
        assert_copy(&s, "lib/moved.c", "int b;\n");
        assert_copy(&s, "new/c.c", "int c;\n");
        assert_copy(&s, "lib/b.o", "made\n"); /* products stay */
        /* A file becomes a folder, and a folder a file. */
        unlink(tree_path(&s.t, "lib/moved.c"));
        rmdir(tree_path(&s.t, "lib"));
        tree_put(&s.t, "lib", "a file\n");
        unlink(tree_path(&s.t, "new/c.c"));
        rmdir(tree_path(&s.t, "new"));
        tree_put(&s.t, "new", "1\n");
        update(&s);
        assert_copy(&s, "lib", "a file\n");
        assert_copy(&s, "new", "1\n");
        unlink(tree_path(&s.t, "new"));
        tree_put(&s.t, "new/d.c", "int d;\n");
        update(&s);
        assert_copy(&s, "new/d.c", "int d;\n");
        end(&s);
        assert_int_not_equal(access(s.copy, F_OK), 0); /* it went with the workspace */
    }
}

static void test_scratch__the_person_s_build_folder_is_left_alone(void **state)
{
    stage s;
    tool_result result = {.exit_code = -1};
    base_err err = {0};
    begin(&s, true);
    tool_scratch *kept = update(&s);
    assert_copy(&s, "build", NULL); /* neither copied nor linked: what is made lies in the copy */
    const tool_limits limits = {.result_bytes = 2000, .shell_ms = 20000 * tree_patience()};
    char command[900];
    snprintf(command, sizeof command,
        "mkdir build && echo ours >build/mine; echo x >%s/build/mine || echo refused", s.t.dir);
    if (tool_scratch_run(kept, command, &limits, &result, &err)) fail_msg("%s", err.msg);
    if (s.t.w->sandbox.is_confining) assert_contains(result.text.data, "refused");
    assert_copy(&s, "build/mine", "ours\n");
    char *mine = tree_get(&s.t, "build/mine");
    if (s.t.w->sandbox.is_confining) assert_string_equal(mine, "the person's\n");
    free(mine);
    update(&s);
    assert_copy(&s, "build/mine", "ours\n"); /* and stays for the next */
    tool_result_free(&result);
    end(&s);
}

/* Only what changed is written, so that a build tool builds only that; and what goes back to an older file looks new. */
static void test_scratch__only_what_changed_is_copied_again(void **state)
{
    stage s;
    begin(&s, true);
    const struct timespec old[2] = {{1000000000, 5}, {1000000000, 5}};
    assert_int_equal(utimensat(AT_FDCWD, tree_path(&s.t, "a.c"), old, 0), 0);
    tool_scratch *kept = update(&s);
    const struct stat a = look(&s, "a.c"), b = look(&s, "lib/b.c");
    assert_int_equal(a.st_mtim.tv_sec, 1000000000);
    assert_int_equal(a.st_mtim.tv_nsec, 5);
    update(&s);
    assert_int_equal(look(&s, "a.c").st_ino, a.st_ino);
    tree_put(&s.t, "lib/b.c", "int b2;\n");
    update(&s);
    assert_copy(&s, "lib/b.c", "int b2;\n");
    assert_int_equal(look(&s, "a.c").st_ctim.tv_nsec, a.st_ctim.tv_nsec);
    assert_true(look(&s, "lib/b.c").st_mtim.tv_sec >= b.st_mtim.tv_sec);
    /* A trial's text is gone at the next update, and make would build again though the tree's file is old. */
    assert_int_equal(tool_scratch_put(kept, "a.c", "int tried;\n", 11, NULL), 0);
    assert_int_equal(tool_scratch_put(kept, "only/tried.c", "int t;\n", 7, NULL), 0);
    assert_copy(&s, "only/tried.c", "int t;\n");
    const struct stat tried = look(&s, "a.c");
    update(&s);
    assert_copy(&s, "a.c", "int a;\n");
    assert_copy(&s, "only/tried.c", NULL);
    assert_true(look(&s, "a.c").st_mtim.tv_sec >= tried.st_mtim.tv_sec);
    /* What a command changed there is as in the tree again, whatever time it gave the file. */
    const struct stat now = look(&s, "a.c");
    write_text(in_copy(&s, "a.c"), "int z;\n");
    const struct timespec forged[2] = {now.st_mtim, now.st_mtim};
    assert_int_equal(utimensat(AT_FDCWD, in_copy(&s, "a.c"), forged, 0), 0);
    update(&s);
    assert_copy(&s, "a.c", "int a;\n");
    end(&s);
}

/* Commands write the copy: what they put there leads nowhere. */
/* A copy of its own has what git ignores by a link, which a command may not write; what runners write there, it makes itself. */
static void test_scratch__caches_are_no_links(void **state)
{
    stage s;
    tool_scratch *copy = NULL;
    tool_result result = {.exit_code = -1};
    tool_limits limits = {.result_bytes = 400, .shell_ms = 20000 * tree_patience()};
    begin(&s, true);
    tree_put(&s.t, ".gitignore", "build/\n.pytest_cache/\n");
    tree_put(&s.t, ".pytest_cache/README.md", "the person's\n");
    if (tool_scratch_make(s.t.w, false, &copy, NULL, NULL)) { /* no walls on this machine */
        end(&s);
        skip();
    }
    assert_int_equal(
        tool_scratch_run(copy,
            "test -L build && test ! -e .pytest_cache && mkdir .pytest_cache && echo a > .pytest_cache/v",
            &limits, &result, NULL),
        0);
    assert_int_equal(result.status, TOOL_OK);
    tool_result_free(&result);
    tool_scratch_free(copy);
    end(&s);
}

static void test_scratch__links_in_the_copy_are_not_followed(void **state)
{
    stage s;
    begin(&s, true);
    tool_scratch *kept = update(&s);
    tree_put(&s.t, "../outside/b.c", "outside\n");
    tree_put(&s.t, "../victim", "outside\n");
    char outside[600], victim[600];
    snprintf(outside, sizeof outside, "%s", tree_path(&s.t, "../outside"));
    snprintf(victim, sizeof victim, "%s", tree_path(&s.t, "../victim"));
    unlink(in_copy(&s, "lib/b.c"));
    rmdir(in_copy(&s, "lib"));
    assert_int_equal(symlink(outside, in_copy(&s, "lib")), 0);
    unlink(in_copy(&s, "a.c"));
    assert_int_equal(link(victim, in_copy(&s, "a.c")), 0);
    update(&s);
    assert_copy(&s, "lib/b.c", "int b;\n");
    assert_copy(&s, "a.c", "int a;\n");
    assert_true(S_ISDIR(look(&s, "lib").st_mode));
    unlink(in_copy(&s, "a.c"));
    assert_int_equal(symlink(victim, in_copy(&s, "a.c")), 0);
    assert_int_equal(tool_scratch_put(kept, "a.c", "put\n", 4, NULL), 0);
    assert_copy(&s, "a.c", "put\n");
    /* Removing through one. */
    base_fs_remove(in_copy(&s, "lib"), NULL);
    assert_int_equal(symlink(outside, in_copy(&s, "lib")), 0);
    unlink(tree_path(&s.t, "lib/b.c"));
    update(&s);
    char *kept_text = tree_get(&s.t, "../outside/b.c"), *victim_text = tree_get(&s.t, "../victim");
    assert_string_equal(kept_text, "outside\n");
    assert_string_equal(victim_text, "outside\n");
    free(kept_text);
    free(victim_text);
    end(&s);
}

/* As cargo does: what was built stands in TMPDIR, and is built again only where the file is newer. */
#define BUILD                                                                                                \
    "{ test -e $TMPDIR/built && test ! a.c -nt $TMPDIR/built; } || cp a.c $TMPDIR/built; cat $TMPDIR/built"

static void assert_builds(stage *s, bool is_kept, const char *put, const char *wanted)
{
    tool_scratch *copy = NULL;
    tool_result result = {.exit_code = -1};
    const tool_limits limits = {.result_bytes = 400, .shell_ms = 20000 * tree_patience()};
    base_err err = {0};
    if (tool_scratch_make(s->t.w, is_kept, &copy, NULL, &err)) fail_msg("%s", err.msg);
    if (put) assert_int_equal(tool_scratch_put(copy, "a.c", put, strlen(put), NULL), 0);
    if (tool_scratch_run(copy, BUILD, &limits, &result, &err)) fail_msg("%s", err.msg);
    assert_string_equal(result.text.data, wanted);
    tool_result_free(&result);
    tool_scratch_free(copy);
}

/* A file keeps its time in a copy, and so may be older than what another copy's trial left of it with the compiler. */
static void test_scratch__no_trial_is_judged_by_what_another_built(void **state)
{
    stage s;
    begin(&s, true);
    const struct timespec old[2] = {{1000000000, 5}, {1000000000, 5}};
    assert_int_equal(utimensat(AT_FDCWD, tree_path(&s.t, "a.c"), old, 0), 0);
    for (int is_kept = !s.t.w->sandbox.is_confining; is_kept < 2; is_kept++) {
        assert_builds(&s, is_kept, "int tried;\n", "int tried;\n");
        assert_builds(&s, is_kept, NULL, "int a;\n");
        tool_result r = tree_call(&s.t, "shell", "{\"command\": \"" BUILD "\"}", NULL);
        assert_contains(r.text.data, "int a;\n");
        tool_result_free(&r);
    }
    end(&s);
}

/* What a build may read beside listed files: links, modes, and repositories inside. */
static void test_scratch__links_modes_and_nested_repositories_come_along(void **state)
{
    stage s;
    begin(&s, true);
    assert_int_equal(symlink("lib/b.c", tree_path(&s.t, "link.c")), 0);
    tree_put(&s.t, "run.sh", "exit 0\n");
    assert_int_equal(chmod(tree_path(&s.t, "run.sh"), 0755), 0);
    tree_commit(&s.t, "all");
    assert_int_equal(symlink("nowhere", tree_path(&s.t, "untracked_link")), 0);
    tree_put(&s.t, "sub/.git/HEAD", "ref: refs/heads/main\n");
    tree_put(&s.t, "sub/.git/config", "[core]\n\trepositoryformatversion = 0\n");
    assert_int_equal(mkdir(tree_path(&s.t, "sub/.git/objects"), 0755), 0);
    assert_int_equal(mkdir(tree_path(&s.t, "sub/.git/refs"), 0755), 0);
    tree_put(&s.t, "sub/c.c", "int c;\n");
    for (int is_kept = 0; is_kept < 2; is_kept++) {
        tool_scratch *copy = NULL;
        base_err err = {0};
        if (!is_kept && !s.t.w->sandbox.is_confining) continue;
        if (tool_scratch_make(s.t.w, is_kept, &copy, NULL, &err)) fail_msg("%s", err.msg);
        tool_result result = {.exit_code = -1};
        const tool_limits limits = {.result_bytes = 2000, .shell_ms = 20000 * tree_patience()};
        if (tool_scratch_run(copy,
                "readlink link.c && readlink untracked_link && ./run.sh && cat "
                "sub/c.c && test ! -e sub/.git && test -e build/mine; echo $?",
                &limits, &result, &err))
            fail_msg("%s", err.msg);
        const char *end = is_kept ? "1\n" : "0\n"; /* what git ignores is linked into a copy of its own */
        char wanted[200];
        snprintf(wanted, sizeof wanted, "lib/b.c\nnowhere\nint c;\n%s", end);
        assert_string_equal(result.text.data, is_kept ? wanted : result.text.data);
        assert_contains(result.text.data, "lib/b.c\nnowhere\n");
        tool_result_free(&result);
        tool_scratch_free(copy);
    }
    end(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_scratch__the_kept_copy_follows_the_tree),
        cmocka_unit_test(test_scratch__the_person_s_build_folder_is_left_alone),
        cmocka_unit_test(test_scratch__only_what_changed_is_copied_again),
        cmocka_unit_test(test_scratch__caches_are_no_links),
        cmocka_unit_test(test_scratch__no_trial_is_judged_by_what_another_built),
        cmocka_unit_test(test_scratch__links_in_the_copy_are_not_followed),
        cmocka_unit_test(test_scratch__links_modes_and_nested_repositories_come_along),
    };
    return cmocka_run_group_tests_name("tools/run/scratch", tests, NULL, NULL);
}
