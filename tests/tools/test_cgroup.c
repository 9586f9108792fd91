/*
 * Control groups around commands: what is read and written, in a folder that stands in for the kernel's; and where this user may make
 * groups of version 2 (with whatever controllers), that processes join, end and are cleared away there.
 */
#include "tree.h"

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

#include "base/fs.h"
#include "tools/confine/cgroup.h"
#include "tools/confine/meter.h"

#define APPS  "fs/user.slice/user-7.slice/user@7.service/app.slice"
#define SCOPE "/user.slice/user-7.slice/user@7.service/app.slice/term.scope"

static bool has(tree *t, const char *path)
{
    return !access(tree_path(t, path), F_OK);
}

static void expect_text(tree *t, const char *path, const char *text)
{
    char *now = tree_get(t, path);
    assert_string_equal(now, text);
    free(now);
}

static unsigned long number_space(void)
{
    struct stat st;
    assert_int_equal(stat("/proc/self/ns/pid", &st), 0);
    return st.st_ino;
}

/* A terminal of a desktop session, with a shell and kvist in its group. */
static void make_desktop(tree *t, const char *divided)
{
    char procs[64];
    tree_make(t, false);
    snprintf(procs, sizeof procs, "1\n%d\n", getpid());
    tree_put(t, APPS "/cgroup.controllers", "cpu memory pids\n");
    tree_put(t, APPS "/cgroup.subtree_control", divided);
    tree_put(t, APPS "/cgroup.procs", "");
    tree_put(t, APPS "/term.scope/cgroup.controllers", "cpu memory pids\n");
    tree_put(t, APPS "/term.scope/cgroup.subtree_control", "");
    tree_put(t, APPS "/term.scope/cgroup.procs", procs);
}

static tool_cgroup_place find(tree *t, const char *own)
{
    tool_cgroup_place place;
    tool__cgroup_find(tree_path(t, "fs"), own, &place);
    if (place.folder) assert_int_equal(place.why.code, 0);
    if (!place.folder) assert_true(place.why.msg[0]);
    return place;
}

static void test_cgroup__a_place_beside_the_terminals_group(void **state)
{
    tree t;
    make_desktop(&t, "cpu memory pids\n");
    tool_cgroup_place place = find(&t, SCOPE);
    base_buf said = {0};
    assert_string_equal(place.folder, tree_path(&t, APPS));
    assert_false(place.is_own);
    assert_true(place.has_cpu);
    tool__cgroup_describe(&place, &said);
    assert_non_null(strstr(said.data, "app.slice"));
    assert_non_null(strstr(said.data, "processors"));
    base_buf_free(&said);
    tool__cgroup_place_free(&place);
    tree_put(&t, APPS "/cgroup.subtree_control", "memory pids\n");
    place = find(&t, SCOPE);
    assert_false(place.has_cpu);
    tool__cgroup_place_free(&place);
    tree_remove(&t);
}

static void test_cgroup__no_place(void **state)
{
    static const char *const divided[] = {"", "cpu memory\n", "cpu memory2 pids\n", "pidsmemory\n"};
    tree t;
    for (size_t i = 0; i < sizeof divided / sizeof *divided; i++) {
        make_desktop(&t, divided[i]);
        assert_null(find(&t, SCOPE).folder);
        tree_remove(&t);
    }
    make_desktop(&t, "memory pids\n");
    assert_null(find(&t, NULL).folder);         /* version 1 only */
    assert_null(find(&t, "").folder);           /* no path */
    assert_null(find(&t, "/elsewhere").folder); /* another namespace's path */
    assert_null(find(&t, "/").folder);
    unlink(tree_path(&t, APPS "/term.scope/cgroup.controllers"));
    assert_null(find(&t, SCOPE).folder);
    tree_remove(&t);
}

/* As somebody whom the folders do not belong to; root may write everywhere. */
static void test_cgroup__a_session_of_roots_is_no_place(void **state)
{
    tree t;
    int status;
    make_desktop(&t, "memory pids\n");
    chmod(tree_path(&t, APPS), 0555);
    chmod(t.base, 0755);
    pid_t child = fork();
    if (!child) {
        if (!geteuid() && (setresgid(65534, 65534, 65534) || setresuid(65534, 65534, 65534))) _exit(3);
        tool_cgroup_place place;
        tool__cgroup_find(tree_path(&t, "fs"), SCOPE, &place);
        _exit(place.folder != NULL || !strstr(place.why.msg, "systemd-run"));
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    chmod(tree_path(&t, APPS), 0755);
    tree_remove(&t);
}

static void test_cgroup__a_group_of_ones_own(void **state)
{
    tree t;
    char procs[80];
    make_desktop(&t, "");
    snprintf(procs, sizeof procs, "%d\n", getpid());
    tree_put(&t, APPS "/term.scope/cgroup.procs", procs);
    tool_cgroup_place place = find(&t, SCOPE);
    assert_string_equal(place.folder, tree_path(&t, APPS "/term.scope"));
    assert_true(place.is_own);
    /* It cannot be divided here, since no kernel fills the new folder: told, and left as it was. */
    tool_cgroup g;
    base_err err = {0};
    assert_int_not_equal(tool__cgroup_begin(&place, &(tool_cgroup_limits){0}, &g, &err), 0);
    assert_non_null(strstr(err.msg, "cgroup.procs"));
    assert_null(g.folder);
    assert_true(place.is_own);
    for (int i = 0; i < 9; i++) {
        snprintf(procs, sizeof procs, "kvist-%lu-%d-%d", number_space(), getpid(), i);
        char path[200];
        snprintf(path, sizeof path, APPS "/term.scope/%s", procs);
        assert_false(has(&t, path));
    }
    tool__cgroup_place_free(&place);
    tree_remove(&t);
}

/*
 * systemd stops a scope that is not delegated when the kernel ends a command in it for its memory, and kvist with it. So kvist, alone
 * in one, makes groups beside it.
 */
static void test_cgroup__a_place_beside_comes_before_ones_own(void **state)
{
    tree t;
    char procs[32];
    make_desktop(&t, "memory pids\n");
    snprintf(procs, sizeof procs, "%d\n", getpid());
    tree_put(&t, APPS "/term.scope/cgroup.procs", procs);
    tool_cgroup_place place = find(&t, SCOPE);
    assert_string_equal(place.folder, tree_path(&t, APPS));
    assert_false(place.is_own);
    tool__cgroup_place_free(&place);
    tree_remove(&t);
}

static void test_cgroup__limits_are_written(void **state)
{
    tree t;
    base_err err = {0};
    const tool_cgroup_limits limits = {(uint64_t)5 << 30, 77};
    tree_make(&t, false);
    tree_put(&t, "g/memory.max", "");
    assert_int_not_equal(tool__cgroup_limit(tree_path(&t, "g"), &limits, &err), 0);
    assert_non_null(strstr(err.msg, "pids.max"));
    tree_put(&t, "g/pids.max", "");
    assert_int_equal(
        tool__cgroup_limit(tree_path(&t, "g"), &limits, NULL), 0); /* the others may be missing */
    expect_text(&t, "g/memory.max", "5368709120");
    expect_text(&t, "g/pids.max", "77");
    tree_put(&t, "g/memory.swap.max", "");
    tree_put(&t, "g/memory.oom.group", "");
    tree_put(&t, "g/cpu.weight", "");
    assert_int_equal(tool__cgroup_limit(tree_path(&t, "g"), &limits, NULL), 0);
    expect_text(&t, "g/memory.swap.max", "0");
    expect_text(&t, "g/memory.oom.group", "1");
    expect_text(&t, "g/cpu.weight", "50");
    /* A write that the kernel refuses. */
    unlink(tree_path(&t, "g/pids.max"));
    assert_int_equal(symlink("/dev/full", tree_path(&t, "g/pids.max")), 0);
    assert_int_not_equal(tool__cgroup_limit(tree_path(&t, "g"), &limits, &err), 0);
    tree_remove(&t);
}

static void test_cgroup__what_the_kernel_did(void **state)
{
    tree t;
    tree_make(&t, false);
    tree_put(&t, "g/memory.events", "low 0\nmax 12\noom 3\noom_kill 0\noom_kill_more 4\n");
    tree_put(&t, "g/pids.events", "max 0\n");
    tool_cgroup g = {.folder = (char *)tree_path(&t, "g"), .procs = -1};
    assert_int_equal(tool__cgroup_judge(&g), TOOL_CGROUP_WITHIN);
    tree_put(&t, "g/pids.events", "max 5\n");
    g.folder = (char *)tree_path(&t, "g");
    assert_int_equal(tool__cgroup_judge(&g), TOOL_CGROUP_PROCESSES);
    tree_put(&t, "g/memory.events", "oom_kill 1\n");
    g.folder = (char *)tree_path(&t, "g");
    assert_int_equal(tool__cgroup_judge(&g), TOOL_CGROUP_MEMORY);
    assert_int_equal(tool__cgroup_judge(&(tool_cgroup){.procs = -1}), TOOL_CGROUP_WITHIN);
    tree_remove(&t);
}

static pid_t ended_process(void)
{
    pid_t pid = fork();
    if (!pid) _exit(0);
    waitpid(pid, NULL, 0);
    return pid;
}

static void test_cgroup__what_killed_runs_left_goes(void **state)
{
    tree t;
    char gone[120], held[120], mine[120], elsewhere[120];
    make_desktop(&t, "memory pids\n");
    const pid_t dead = ended_process();
    snprintf(gone, sizeof gone, APPS "/kvist-%lu-%d-1", number_space(), dead);
    snprintf(held, sizeof held, APPS "/kvist-%lu-%d-2", number_space(), dead);
    snprintf(mine, sizeof mine, APPS "/kvist-%lu-%d-999999", number_space(), getpid());
    /* A container's kvist: whether it lives cannot be asked for from here. */
    snprintf(elsewhere, sizeof elsewhere, APPS "/kvist-%lu-%d-1", number_space() + 1, dead);
    const char *const made[] = {
        gone, held, mine, elsewhere, APPS "/kvist-notes-1", APPS "/kvist-1-1x", APPS "/kvist-1-1-1x"};
    for (size_t i = 0; i < sizeof made / sizeof *made; i++)
        assert_int_equal(mkdir(tree_path(&t, made[i]), 0755), 0);
    char inside[140];
    snprintf(inside, sizeof inside, "%s/in", held);
    tree_put(&t, inside, "somebody lives there\n");
    tool_cgroup_place place = find(&t, SCOPE);
    tool_cgroup g;
    base_err err = {0};
    assert_int_not_equal(tool__cgroup_begin(&place, &(tool_cgroup_limits){1 << 20, 1}, &g, &err), 0);
    assert_non_null(strstr(err.msg, "memory.max")); /* no kernel filled the folder */
    assert_false(has(&t, gone));
    for (size_t i = 1; i < sizeof made / sizeof *made; i++) assert_true(has(&t, made[i]));
    tool__cgroup_place_free(&place);
    tree_remove(&t);
}

static void test_cgroup__a_group_that_somebody_lives_in_stays(void **state)
{
    tree t;
    tree_make(&t, false);
    tree_put(&t, "g/in", "x");
    tool_cgroup g = {.folder = strdup(tree_path(&t, "g")), .procs = -1};
    assert_false(tool__cgroup_end(&g, 0));
    assert_null(g.folder);
    unlink(tree_path(&t, "g/in"));
    g.folder = strdup(tree_path(&t, "g"));
    assert_true(tool__cgroup_end(&g, 0));
    assert_true(tool__cgroup_end(&g, 0)); /* none */
    tree_remove(&t);
}

/* ---- on the kernel's own ---- */

/* A new group of version 2 to work in: where kvist makes them, or root anywhere; NULL: this user may make none. */
static char *real_folder(void)
{
    const char *const parents[] = {tool__cgroup_here()->folder, "/sys/fs/cgroup", "/sys/fs/cgroup/unified"};
    for (size_t i = 0; i < 3; i++) {
        char path[400];
        if (!parents[i]) continue;
        snprintf(path, sizeof path, "%s/cgroup.controllers", parents[i]);
        if (access(path, R_OK)) continue;
        snprintf(path, sizeof path, "%s/kvist-test-%d", parents[i], getpid());
        if (!mkdir(path, 0755)) return strdup(path);
    }
    return NULL;
}

static bool holds(const char *folder, pid_t pid)
{
    char path[500], line[32];
    snprintf(path, sizeof path, "%s/cgroup.procs", folder);
    FILE *f = fopen(path, "r");
    bool found = false;
    while (f && !found && fgets(line, sizeof line, f)) found = atoi(line) == pid;
    if (f) fclose(f);
    return found;
}

static pid_t live_in(tool_cgroup *g)
{
    int ready[2];
    char c;
    assert_int_equal(pipe(ready), 0);
    pid_t pid = fork();
    if (!pid) {
        if (write(g->procs, "0", 1) != 1 || write(ready[1], "x", 1) != 1) _exit(1);
        for (;;) pause();
    }
    assert_int_equal(read(ready[0], &c, 1), 1);
    close(ready[0]);
    close(ready[1]);
    return pid;
}

static void test_cgroup__a_real_group_is_joined_and_cleared(void **state)
{
    char *folder = real_folder();
    int status;
    if (!folder) skip();
    tool_cgroup_place place = {.folder = folder};
    tool_cgroup g;
    base_err err = {0};
    if (tool__cgroup_begin(&place, &(tool_cgroup_limits){0}, &g, &err)) fail_msg("%s", err.msg);
    const pid_t pid = live_in(&g);
    assert_true(holds(g.folder, pid));
    /* What a killed run left, with somebody in it: ended now, gone at the latest with the next begin. */
    char left[500];
    snprintf(left, sizeof left, "%s/kvist-%lu-%d-1", folder, number_space(), ended_process());
    assert_int_equal(mkdir(left, 0755), 0);
    snprintf(left + strlen(left), 20, "/cgroup.procs");
    FILE *f = fopen(left, "w");
    pid_t orphan = fork();
    if (!orphan)
        for (;;) pause();
    assert_true(f && fprintf(f, "%d", orphan) > 0 && !fclose(f));
    *strrchr(left, '/') = '\0';
    tool_cgroup next;
    assert_int_equal(tool__cgroup_begin(&place, &(tool_cgroup_limits){0}, &next, NULL), 0);
    assert_int_equal(waitpid(orphan, &status, 0), orphan);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    assert_true(tool__cgroup_end(&next, 60000));
    assert_int_equal(tool__cgroup_begin(&place, &(tool_cgroup_limits){0}, &next, NULL), 0);
    assert_int_not_equal(access(left, F_OK), 0);
    assert_true(tool__cgroup_end(&next, 60000));
    /* The end of a group is the end of who is in it. */
    assert_true(tool__cgroup_end(&g, 60000));
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    assert_int_equal(rmdir(folder), 0);
    free(folder);
}

/* Where its controllers are missing the kernel refuses to divide a group: kvist is where it was then. */
static void test_cgroup__a_real_group_that_cannot_be_divided(void **state)
{
    char *folder = real_folder();
    int status;
    if (!folder) skip();
    pid_t child = fork();
    if (!child) {
        char path[500];
        tool_cgroup_place place = {.folder = folder, .is_own = true};
        tool_cgroup g;
        base_err err = {0};
        snprintf(path, sizeof path, "%s/cgroup.procs", folder);
        FILE *f = fopen(path, "w");
        if (!f || fprintf(f, "%d", getpid()) < 0 || fclose(f)) _exit(2);
        const int rc = tool__cgroup_begin(&place, &(tool_cgroup_limits){0}, &g, &err);
        if (!rc) { /* a machine that has them */
            tool__cgroup_end(&g, 60000);
            _exit(9);
        }
        _exit(!strstr(err.msg, "subtree_control") || !holds(folder, getpid()) || g.folder);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    if (WEXITSTATUS(status) != 9) assert_int_equal(status, 0);
    if (rmdir(folder)) { /* divided: kvist's own group is left in it */
        char line[900];
        snprintf(line, sizeof line, "rmdir %s/kvist-* %s", folder, folder);
        assert_int_equal(system(line), 0);
    }
    free(folder);
}

/* A confined command is in it, and nothing of it is left. */
static void test_cgroup__a_command_runs_in_its_group(void **state)
{
    tree t;
    char *folder = real_folder();
    if (!folder) skip();
    tool_cgroup_place *here = tool__cgroup_here(), before = *here;
    *here = (tool_cgroup_place){.folder = folder};
    const tool_meter_limits limits = {.output = 1 << 20};
    tree_make(&t, false);
    tree_open(&t);
    t.limits.shell_limits = &limits;
    tool_result r =
        tree_call(&t, "shell", "{\"command\":\"grep ^0:: /proc/self/cgroup; sleep 1000 & echo done\"}", NULL);
    *here = before;
    assert_non_null(strstr(r.text.data, "/kvist-"));
    assert_non_null(strstr(r.text.data, "done"));
    tool_result_free(&r);
    tree_remove(&t);
    assert_int_equal(rmdir(folder), 0); /* it holds no group any more */
    free(folder);
}

/* What a process of a group does, and the verdict about it. */
static tool_cgroup_verdict judge_after(const tool_cgroup_limits *limits, void (*act)(void))
{
    tool_cgroup g;
    base_err err = {0};
    if (tool__cgroup_begin(tool__cgroup_here(), limits, &g, &err)) fail_msg("%s", err.msg);
    pid_t child = fork();
    if (!child) {
        if (write(g.procs, "0", 1) != 1) _exit(1);
        act();
        _exit(0);
    }
    assert_int_equal(waitpid(child, &(int){0}, 0), child);
    const tool_cgroup_verdict verdict = tool__cgroup_judge(&g);
    assert_true(tool__cgroup_end(&g, 60000));
    return verdict;
}

enum { MIB = 1 << 20 };

static void take_memory(void)
{
    volatile char *bytes = malloc((size_t)100 * MIB);
    for (size_t i = 0; bytes && i < (size_t)100 * MIB; i += 4096) bytes[i] = 1;
}

static void start_many(void)
{
    for (int i = 0; i < 30; i++) {
        if (fork()) continue;
        for (;;) pause();
    }
}

static void rest(void)
{
}

/* Where this user's groups have the controllers: a desktop session, a delegated scope, scripts/vm-check. */
static void test_cgroup__the_kernel_holds_memory_and_processes(void **state)
{
    const tool_cgroup_limits limits = {32 * MIB, 10};
    if (!tool__cgroup_here()->folder) skip();
    assert_int_equal(judge_after(&limits, rest), TOOL_CGROUP_WITHIN);
    assert_int_equal(judge_after(&limits, take_memory), TOOL_CGROUP_MEMORY);
    assert_int_equal(judge_after(&limits, start_many), TOOL_CGROUP_PROCESSES);
    assert_int_equal(judge_after(&(tool_cgroup_limits){0}, take_memory), TOOL_CGROUP_WITHIN);
}

/* A file in memory belongs to no process, so only the kernel counts it; what was left running is ended with the group. */
static void test_cgroup__a_command_cannot_hide_memory_in_files(void **state)
{
    tree t;
    const tool_meter_limits limits = {.memory = 48 * MIB, .processes = 40, .output = MIB};
    if (!tool__cgroup_here()->folder) skip();
    tree_make(&t, false);
    tree_open(&t);
    t.limits.shell_limits = &limits;
    if (t.w->sandbox.has_mounts) {
        tool_result r = tree_call(
            &t, "shell", "{\"command\":\"head -c 200M /dev/zero > ~/big; sleep 1000 & echo reached\"}", NULL);
        assert_non_null(strstr(r.text.data, "ended: it used more than 0.0 GiB of memory"));
        assert_null(strstr(r.text.data, "\nreached\n"));
        tool_result_free(&r);
    }
    tool_result r = tree_call(&t, "shell", "{\"command\":\"sleep 1000 & echo reached\"}", NULL);
    assert_non_null(strstr(r.text.data, "reached"));
    tool_result_free(&r);
    tree_remove(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cgroup__a_place_beside_the_terminals_group),
        cmocka_unit_test(test_cgroup__no_place),
        cmocka_unit_test(test_cgroup__a_session_of_roots_is_no_place),
        cmocka_unit_test(test_cgroup__a_group_of_ones_own),
        cmocka_unit_test(test_cgroup__a_place_beside_comes_before_ones_own),
        cmocka_unit_test(test_cgroup__limits_are_written),
        cmocka_unit_test(test_cgroup__what_the_kernel_did),
        cmocka_unit_test(test_cgroup__what_killed_runs_left_goes),
        cmocka_unit_test(test_cgroup__a_group_that_somebody_lives_in_stays),
        cmocka_unit_test(test_cgroup__a_real_group_is_joined_and_cleared),
        cmocka_unit_test(test_cgroup__a_real_group_that_cannot_be_divided),
        cmocka_unit_test(test_cgroup__a_command_runs_in_its_group),
        cmocka_unit_test(test_cgroup__the_kernel_holds_memory_and_processes),
        cmocka_unit_test(test_cgroup__a_command_cannot_hide_memory_in_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
