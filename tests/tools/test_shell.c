/*
 * Commands in the box. Each attack first runs without the box and must succeed there, else its failure inside would prove
 * nothing. Every wall is also tried alone where this machine has it: Landlock without mounts, mounts without Landlock.
 */
#include "tools/confine/shell.h"
#include "tree.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <grp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fs.h"
#include "tools/result/result.h"

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

/* The walls of this machine; none of them for the control run. */
static void for_each_wall(tree *t, void (*attack)(tree *t, bool is_confined))
{
    const tool_sandbox real = t->w->sandbox;
    t->w->sandbox = (tool_sandbox){0};
    attack(t, false);
    if (real.landlock_abi) {
        t->w->sandbox = real;
        t->w->sandbox.has_mounts = t->w->sandbox.has_pids = false;
        attack(t, true);
    }
    if (real.has_mounts) {
        t->w->sandbox = real;
        t->w->sandbox.landlock_abi = 0;
        attack(t, true);
    }
    if (real.is_confining) {
        t->w->sandbox = real;
        attack(t, true);
    }
}

static void skip_unless_confining(tree *t)
{
    if (t->w->sandbox.is_confining) return;
    tree_remove(t);
    print_message("this machine cannot confine commands\n");
    skip();
}

static void write_outside(tree *t, bool is_confined)
{
    unlink(tree_path(t, "../escaped"));
    tool_result r = run(t, "echo x > ../escaped");
    assert_int_equal(
        tree_has(t, "../escaped"), !is_confined); /* a tree in /tmp has a neighbourhood of its own */
    tool_result_free(&r);
    r = run(t, "echo inside > made && cat made && echo t > "
               "\"$TMPDIR/t\" && cat \"$TMPDIR/t\" && echo n > /dev/null");
    if (r.status != TOOL_OK) fail_msg("%s", r.text.data);
    assert_contains(r.text.data, "inside\nt\n");
    tool_result_free(&r);
}

/* tmpfile() and many tests know no TMPDIR. */
static void write_tmp(tree *t)
{
    static const char path[] = "/tmp/kvist-own-tmp";
    unlink(path);
    tool_result r = run(t, "echo own > /tmp/kvist-own-tmp && cat /tmp/kvist-own-tmp");
    if (r.status != TOOL_OK) fail_msg("%s", r.text.data);
    assert_contains(r.text.data, "own\n");
    assert_int_equal(access(path, F_OK), -1);
    tool_result_free(&r);
    r = run(t, "cat /tmp/kvist-own-tmp");
    assert_int_equal(r.status, TOOL_FAILED);
    tool_result_free(&r);
}

static void change_outside(tree *t, bool is_confined)
{
    tree_put(t, "../kept", "kept\n");
    tool_result r = run(t, "rm ../kept; mv ../kept ../moved; ln ../kept hard; truncate -s 0 ../kept; : ");
    tool_result_free(&r);
    char *now = tree_get(t, "../kept");
    if (is_confined)
        assert_string_equal(now ? now : "(gone)", "kept\n");
    else
        assert_true(!now || strcmp(now, "kept\n") != 0);
    free(now);
    unlink(tree_path(t, "hard"));
}

static const char connect_program[] = "import socket,sys\n"
                                      "s = socket.socket(socket.AF_INET, socket.SOCK_STREAM)\n"
                                      "s.bind(('127.0.0.1', 0))\n"
                                      "print('reached')\n";

static void open_socket(tree *t, bool is_confined)
{
    tree_put(t, "net.py", connect_program);
    tool_result r = run(t, "python3 net.py");
    if (is_confined)
        assert_lacks(r.text.data, "reached");
    else
        assert_contains(r.text.data, "reached");
    tool_result_free(&r);
}

static void write_git_config(tree *t, bool is_confined)
{
    char *before = tree_get(t, ".git/config");
    tool_result r = run(t, "printf '[core]\\n\\tfsmonitor = /tmp/evil\\n' >> "
                           ".git/config; printf '#!/bin/sh\\n' > .git/hooks/pre-commit");
    char *after = tree_get(t, ".git/config");
    assert_string_equal(after, before);
    assert_false(tree_has(t, ".git/hooks/pre-commit"));
    /* Where nothing kept the command from writing, it is told. */
    if (!is_confined) assert_contains(r.text.data, "The command changed .git/config");
    free(before);
    free(after);
    tool_result_free(&r);
}

static void test_shell__cannot_write_outside_of_the_tree(void **state)
{
    tree t;
    tree_make(&t, true);
    tree_open(&t);
    skip_unless_confining(&t);
    for_each_wall(&t, write_outside);
    for_each_wall(&t, change_outside);
    if (t.w->sandbox.has_mounts) write_tmp(&t);
    tree_remove(&t);
}

static void test_shell__has_no_network(void **state)
{
    tree t;
    tree_make(&t, true);
    tree_open(&t);
    skip_unless_confining(&t);
    for_each_wall(&t, open_socket);
    tree_remove(&t);
}

static void test_shell__git_configuration_and_hooks_are_put_back(void **state)
{
    tree t;
    tree_make(&t, true);
    tree_put(&t, ".git/hooks/.keep", "");
    tree_open(&t);
    for_each_wall(&t, write_git_config);
    tree_remove(&t);
}

static void test_shell__canary_of_fsmonitor_does_not_fire(void **state)
{
    tree t;
    tree_make(&t, true);
    tree_put(&t, "f", "x\n");
    tree_commit(&t, "first");
    char config[600];
    snprintf(config, sizeof config,
        "[core]\n\trepositoryformatversion = 0\n\tfsmonitor = \"touch %s/canary; false\"\n", t.dir);
    tree_put(&t, ".git/config", config);
    tree_put(&t, ".gitattributes", "* filter=evil\n");
    /* The control: plain git does run it. */
    char command[600];
    snprintf(command, sizeof command, "git -C %s status >/dev/null 2>&1", t.dir);
    if (system("git --version >/dev/null 2>&1")) {
        tree_remove(&t);
        print_message("no git program here\n");
        skip();
    }
    int ignored = system(command);
    (void)ignored;
    assert_true(tree_has(&t, "canary"));
    unlink(tree_path(&t, "canary"));
    tree_open(&t);
    assert_int_equal(tool_workspace_refresh(t.w, NULL, NULL, NULL), 0);
    base_buf branch = {0};
    tool_workspace_branch(t.w, &branch);
    base_buf_free(&branch);
    tool_result r = tree_call(&t, "git", "{\"op\":\"status\"}", NULL);
    tool_result_free(&r);
    assert_false(tree_has(&t, "canary"));
    r = run(&t, "git status --short"); /* in the box, by the neutral configuration */
    assert_false(tree_has(&t, "canary"));
    tool_result_free(&r);
    tree_remove(&t);
}

static void test_shell__reports_exit_codes_and_signals(void **state)
{
    tree t;
    tree_make(&t, false);
    tree_open(&t);
    tool_result r = run(&t, "echo out; echo err >&2; exit 3");
    assert_int_equal(r.status, TOOL_FAILED);
    assert_int_equal(r.exit_code, 3);
    assert_contains(r.text.data, "exit code 3");
    assert_contains(r.text.data, "out\nerr\n");
    tool_result_free(&r);
    r = run(&t, "kill -SEGV $$");
    assert_contains(r.text.data, "signal 11");
    tool_result_free(&r);
    r = run(&t, "true");
    assert_int_equal(r.status, TOOL_OK);
    assert_int_equal(r.exit_code, 0);
    assert_contains(r.text.data, "no output");
    tool_result_free(&r);
    r = run(&t, "cat; echo \"$SECRET_TOKEN.\"; ls -1 /proc/self/fd | wc -l");
    assert_int_equal(r.status, TOOL_OK);
    assert_contains(r.text.data, ".\n4\n"); /* 0, 1, 2 and the one ls reads */
    tool_result_free(&r);
    tree_remove(&t);
}

/* Does any process have this word in its command line? Those just killed need a moment to be gone. */
static bool lives(const char *word)
{
    char command[200];
    /* The brackets keep the searching shell itself from being found. */
    snprintf(command, sizeof command, "grep -qas -- '[8]%s' /proc/[0-9]*/cmdline", word + 1);
    for (unsigned tries = 1200 * tree_patience(); tries > 0; tries--) {
        if (system(command)) return false;
        usleep(50 * 1000);
    }
    return true;
}

/*
 * A process that cannot be reaped, as one that the kernel holds in a system call: whoever traces it and never
 * waits keeps it after SIGKILL. *ret: who traces; 0: it may not here.
 */
static pid_t trace_the_next_child(int *ret_report)
{
    int report[2];
    assert_int_equal(pipe(report), 0);
    const pid_t tested = getpid(), tracer = fork();
    if (tracer) {
        close(report[1]);
        *ret_report = report[0];
        return tracer;
    }
    char path[80];
    snprintf(path, sizeof path, "/proc/%d/task/%d/children", tested, tested);
    for (pid_t child = 0; getppid() == tested; usleep(1000), child = 0) {
        FILE *f = fopen(path, "r");
        int pid;
        while (f && fscanf(f, "%d", &pid) == 1)
            if (pid != getpid()) child = pid;
        if (f) fclose(f);
        if (!child) continue;
        if (ptrace(PTRACE_SEIZE, child, 0, 0)) {
            if (errno == ESRCH) continue; /* it has ended meanwhile: the next one then */
            child = 0;
        }
        if (write(report[1], &child, sizeof child) < 0) _exit(1);
        for (;;) pause();
    }
    _exit(0);
}

static void test_shell__what_cannot_be_killed_holds_nobody(void **state)
{
    tree t;
    int report = -1;
    pid_t held = 0;
    tree_make(&t, false);
    tree_open(&t);
    const pid_t tracer = trace_the_next_child(&report);
    tool_result r = {0};
    struct pollfd told = {.fd = report, .events = POLLIN};
    for (t.limits.shell_ms = 1000; !poll(&told, 1, 0); t.limits.shell_ms *= 2) {
        tool_result_free(&r); /* on a busy machine the limit came before the tracer */
        r = run(&t, "sleep 6000");
    }
    assert_int_equal(read(report, &held, sizeof held), sizeof held);
    if (held) {
        assert_int_equal(r.status, TOOL_TIMEOUT);
        assert_non_null(r.notice);
        assert_contains(r.notice, "was killed and has not ended within 10 s");
        assert_int_equal(
            waitpid(held, NULL, WNOHANG), 0); /* the control: to wait for it is to wait for ever */
    } else {
        print_message("skipped: tracing is not allowed here\n");
    }
    tool_result_free(&r);
    kill(tracer, SIGKILL);
    assert_int_equal(waitpid(tracer, NULL, 0), tracer);
    if (held) assert_int_equal(waitpid(held, NULL, 0), held);
    close(report);
    t.limits.shell_ms = 0;
    r = run(&t, "echo on");
    assert_int_equal(r.status, TOOL_OK);
    assert_null(r.notice);
    tool_result_free(&r);
    tree_remove(&t);
}

static void test_shell__a_time_limit_ends_the_whole_group(void **state)
{
    tree t;
    char word[40], command[300];
    tree_make(&t, false);
    tree_open(&t);
    snprintf(word, sizeof word, "86391.%d", getpid());
    snprintf(
        command, sizeof command, "echo begun; (setsid sleep %s &) ; sleep %s & sleep %s", word, word, word);
    tool_result r = {0};
    for (t.limits.shell_ms = 300; !r.text.len || !strstr(r.text.data, "begun"); t.limits.shell_ms *= 4) {
        tool_result_free(&r); /* on a slow machine the limit came before the first word */
        r = run(&t, command);
        assert_int_equal(r.status, TOOL_TIMEOUT);
    }
    assert_contains(r.text.data, "time limit");
    if (t.w->sandbox.has_seccomp) assert_false(lives(word));
    tool_result_free(&r);
    t.limits.shell_ms = 0;
    snprintf(command, sizeof command, "sleep %s & echo done", word); /* what it leaves behind ends with it */
    r = run(&t, command);
    assert_int_equal(r.status, TOOL_OK);
    assert_contains(r.text.data, "background were ended");
    assert_false(lives(word));
    tool_result_free(&r);
    r = run(&t, "yes & sleep 0.1; echo done"); /* one that never stops printing does not keep it */
    assert_int_equal(r.status, TOOL_OK);
    assert_contains(r.text.data, "background were ended");
    tool_result_free(&r);
    tree_remove(&t);
}

/* kill -9 while a command runs: what it started in the background, in a session of its own or as a daemon, ends with us. */
static void kill_us(tree *t, const char *word)
{
    char command[400];
    snprintf(command, sizeof command,
        "(setsid sleep %s &) ; sleep %s & (trap '' TERM HUP; sleep %s) & touch begun; sleep %s", word, word,
        word, word);
    unlink(tree_path(t, "begun"));
    pid_t victim = fork();
    if (!victim) {
        tool_result r = run(t, command);
        _exit(r.status == TOOL_OK); /* it was to be killed in there */
    }
    int status = 0;
    while (!tree_has(t, "begun") && !waitpid(victim, &status, WNOHANG)) usleep(10 * 1000);
    assert_true(tree_has(t, "begun"));
    assert_int_equal(kill(victim, SIGKILL), 0);
    assert_int_equal(waitpid(victim, &status, 0), victim);
    assert_true(WIFSIGNALED(status));
    assert_false(lives(word));
}

static void test_shell__nothing_outlives_a_kill_of_kvist(void **state)
{
    tree t;
    char word[40];
    tree_make(&t, false);
    tree_open(&t);
    snprintf(word, sizeof word, "86393.%d", getpid());
    if (t.w->sandbox.has_pids) kill_us(&t, word);
    t.w->sandbox.has_pids = false;
    if (t.w->sandbox.has_seccomp) kill_us(&t, word);
    tree_remove(&t);
}

static atomic_bool cancel;

static void *cancel_soon(void *arg)
{
    usleep(100 * 1000);
    atomic_store(&cancel, true);
    return NULL;
}

static void test_shell__cancel_ends_it(void **state)
{
    tree t;
    pthread_t thread;
    tree_make(&t, false);
    tree_open(&t);
    atomic_store(&cancel, false);
    t.limits.cancel = &cancel;
    assert_int_equal(pthread_create(&thread, NULL, cancel_soon, NULL), 0);
    tool_result r = run(&t, "trap '' TERM INT; echo begun; while :; do sleep 86392; done");
    pthread_join(thread, NULL);
    assert_int_equal(r.status, TOOL_CANCELLED);
    assert_true(r.ms < 60000);
    assert_contains(r.text.data, "cancelled by the person");
    tool_result_free(&r);
    tree_remove(&t);
}

static void test_shell__a_flood_keeps_head_and_tail(void **state)
{
    tree t;
    tree_make(&t, false);
    tree_open(&t);
    t.limits.result_bytes = 4000;
    tool_result r = run(&t, "echo first; head -c 200000000 /dev/zero | tr '\\0' 'x'; echo; echo last");
    assert_int_equal(r.status, TOOL_OK);
    assert_true(r.total_bytes > 200000000);
    assert_true(r.text.len <= 4000);
    assert_contains(r.text.data, "first\n");
    assert_contains(r.text.data, "last\n");
    assert_contains(r.text.data, "bytes left out; the whole is read {\"path\": \"result:1\"");
    tool_result_free(&r);
    r = tree_call(&t, "read", "{\"path\":\"result:1\",\"count\":3}", NULL);
    assert_int_equal(r.status, TOOL_OK);
    assert_contains(r.text.data, "first\n");
    assert_true(r.text.len <= 4000);
    tool_result_free(&r);
    r = tree_call(&t, "read", "{\"path\":\"result:9\"}", NULL);
    assert_int_equal(r.status, TOOL_FAILED);
    tool_result_free(&r);
    tree_remove(&t);
}

static void test_shell__cannot_signal_us(void **state)
{
    tree t;
    tree_make(&t, false);
    tree_open(&t);
    if (t.w->sandbox.landlock_abi < 6 && !t.w->sandbox.has_pids) {
        tree_remove(&t);
        print_message("here neither Landlock scopes signals nor a PID namespace hides processes\n");
        skip();
    }
    char command[100];
    snprintf(command, sizeof command, "kill -0 %d && echo reached", getpid());
    tool_sandbox real = t.w->sandbox;
    t.w->sandbox = (tool_sandbox){0};
    tool_result r = run(&t, command);
    assert_contains(r.text.data, "reached");
    tool_result_free(&r);
    t.w->sandbox = real;
    r = run(&t, command);
    assert_lacks(r.text.data, "reached");
    tool_result_free(&r);
    tree_remove(&t);
}

static void test_shell__a_plan_that_fails_runs_nothing(void **state)
{
    tree t;
    tree_make(&t, false);
    tree_open(&t);
    tool_sandbox_plan plan = {.ruleset = -1, .use_landlock = true, .root = t.dir, .tmp = t.dir};
    tool_child c = {0};
    base_err err = {0};
    assert_int_not_equal(tool__child_run(&plan, "touch ran", NULL, 1000, &c, &err), 0);
    assert_contains(err.msg, "could not be confined (Landlock)");
    assert_false(tree_has(&t, "ran"));
    tree_remove(&t);
}

/* As an ordinary user: Landlock needs no privilege, and the mount namespace comes by a user namespace where that is allowed. */
static void test_shell__confines_without_privilege(void **state)
{
    tree t;
    if (geteuid()) skip(); /* every other test here ran so already */
    tree_make(&t, true);
    chmod(t.base, 0777);
    assert_int_equal(chown(t.dir, 65534, 65534), 0);
    fflush(NULL);
    pid_t child = fork();
    if (!child) {
        char command[300];
        if (setgroups(0, NULL) || setresgid(65534, 65534, 65534) || setresuid(65534, 65534, 65534)) _exit(2);
        base_err err = {0};
        tool_workspace_options options = {.dir = t.dir, .store = t.store};
        if (tool_workspace_open(&t.w, &options, &err)) _exit(3);
        if (!t.w->sandbox.is_confining) _exit(0);
        snprintf(
            command, sizeof command, "{\"command\":\"echo in > in; echo out > %s/out; cat in\"}", t.base);
        tool_result r = tree_call(&t, "shell", command, NULL);
        bool good =
            r.text.data && strstr(r.text.data, "in\n") && tree_has(&t, "in") && !tree_has(&t, "../out");
        tool_result_free(&r);
        tool_workspace_close(t.w);
        _exit(good ? 0 : 4);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    tree_remove(&t);
}

int main(void)
{
    setenv("SECRET_TOKEN", "abc", 1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shell__cannot_write_outside_of_the_tree),
        cmocka_unit_test(test_shell__has_no_network),
        cmocka_unit_test(test_shell__git_configuration_and_hooks_are_put_back),
        cmocka_unit_test(test_shell__canary_of_fsmonitor_does_not_fire),
        cmocka_unit_test(test_shell__reports_exit_codes_and_signals),
        cmocka_unit_test(test_shell__what_cannot_be_killed_holds_nobody),
        cmocka_unit_test(test_shell__a_time_limit_ends_the_whole_group),
        cmocka_unit_test(test_shell__nothing_outlives_a_kill_of_kvist),
        cmocka_unit_test(test_shell__cancel_ends_it),
        cmocka_unit_test(test_shell__a_flood_keeps_head_and_tail),
        cmocka_unit_test(test_shell__cannot_signal_us),
        cmocka_unit_test(test_shell__confines_without_privilege),
        cmocka_unit_test(test_shell__a_plan_that_fails_runs_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
