#include "git_kit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fs.h"
#include "base/mem.h"

bool git_is_root;
bool git_is_second;
static const char *only; /* attacks with this in their name; NULL: all */

bool git_left_out(const char *name)
{
    return only && !strstr(name, only);
}

tool_result git_run(tree *t, const char *command)
{
    base_buf arguments = {0};
    base_buf_puts(&arguments, "{\"command\":");
    tool__quote(&arguments, command);
    base_buf_puts(&arguments, "}");
    tool_result r = tree_call(t, "shell", arguments.data, NULL);
    base_buf_free(&arguments);
    return r;
}

int git_outside(tree *t, const char *command)
{
    base_buf line = {0};
    base_buf_printf(&line, "cd '%s' && { %s\n} >/dev/null 2>&1", t->dir, command);
    int status = system(line.data);
    base_buf_free(&line);
    return status;
}

bool git_defend(tree *t, int which)
{
    const tool_sandbox real = t->w->sandbox;
    switch (which) {
    case 0: t->w->sandbox = (tool_sandbox){0}; return true; /* the comparison alone */
    case 1: t->w->sandbox.has_mounts = t->w->sandbox.has_pids = false; return real.landlock_abi > 0;
    default: return real.has_mounts;
    }
}

static bool fired(tree *t)
{
    return tree_has(t, "../canary");
}

static char *former[4]; /* values of an attack's variables */

static void set_variable(const char *name, const char *value)
{
    if (value)
        setenv(name, value, 1);
    else
        unsetenv(name);
}

static void end(tree *t, const git_attack *a)
{
    for (size_t i = 0; i < 8 && a->variables[i]; i += 2) {
        set_variable(a->variables[i], former[i / 2]);
        free(former[i / 2]);
    }
    git_outside(t,
        "chmod -R u+rwx .; git config --global --unset core.hooksPath"); /* the home folder is all tests' */
    tree_remove(t);
}

/* As behind `. .venv/bin/activate`. */
static const char *path_with_environment(const tree *t)
{
    static char *usual;
    static char all[8192];
    if (!usual) usual = base_xstrdup(getenv("PATH"));
    snprintf(all, sizeof all, "%s/.venv/bin:%s", t->dir, usual);
    return all;
}

void git_begin(tree *t, const git_attack *a)
{
    char canary[300];
    tree_make(t, false);
    snprintf(canary, sizeof canary, "%s/canary", t->base);
    setenv("CANARY", canary, 1);
    setenv("PATH", path_with_environment(t), 1);
    git_outside(t, a->setup);
    for (size_t i = 0; i + 1 < 8 && a->variables[i]; i += 2) {
        const char *value = a->variables[i + 1], *now = getenv(a->variables[i]);
        former[i / 2] = base_xstrdup(now);
        set_variable(a->variables[i], *value == '@' ? tree_path(t, value + 1) : value);
    }
    assert_false(fired(t));
}

/* What git_attack_tests was given. */
static struct {
    const char *name;
    const git_attack *attacks;
    size_t n;
} list;

/* How it is without kvist: else a failure below would prove nothing. */
static void test_git__every_attack_works_without_a_defence(void **state)
{
    const git_attack *attacks = list.attacks;
    for (size_t i = 0; i < list.n && !git_is_root; i++) {
        tree t;
        if (git_left_out(attacks[i].name)) continue;
        git_begin(&t, &attacks[i]);
        git_outside(&t, attacks[i].command);
        if (fired(&t)) fail_msg("%s: fires too early", attacks[i].name);
        git_outside(&t, attacks[i].later);
        if (!fired(&t)) fail_msg("%s: does not work", attacks[i].name);
        end(&t, &attacks[i]);
    }
}

static void try_attack(const git_attack *a, int which)
{
    tree t;
    git_begin(&t, a);
    tree_open(&t);
    if (git_defend(&t, which) && !(a->needs_walls && !which)) {
        tool_result r = git_run(&t, a->command);
        /* Where nothing kept the command from it, the person is told. */
        if (which < 2 && !r.notice && !a->is_silent)
            fail_msg("%s, defence %d: nothing was told", a->name, which);
        if (r.notice) assert_contains(r.text.data, r.notice);
        for (const char *line = r.notice; line && *line;
             line += strcspn(line, "\n") + (line[strcspn(line, "\n")] != 0))
            assert_true(strcspn(line, "\n") < 700);
        git_outside(&t, a->later);
        if (fired(&t))
            fail_msg("%s, defence %d: it runs; told: %s", a->name, which, r.notice ? r.notice : "nothing");
        if (git_outside(&t, a->holds ? a->holds : "git log -1"))
            fail_msg(
                "%s, defence %d: git is broken; told: %s", a->name, which, r.notice ? r.notice : "nothing");
        tool_result_free(&r);
        git_outside(&t, "[ ! -d .git/rebase-merge ] || git rebase --abort");
        r = git_run(&t, "true"); /* and it is done with */
        if (r.notice) fail_msg("%s, defence %d: told again: %s", a->name, which, r.notice);
        tool_result_free(&r);
    }
    end(&t, a);
}

static void test_git__no_attack_works(void **state)
{
    const git_attack *attacks = list.attacks;
    /* The comparison is the same for root, who needs no user namespace for his mounts: that is what differs. */
    for (size_t i = 0; i < list.n; i++)
        for (int which = git_is_root ? 2 : 0; which < GIT_N_DEFENCES; which++)
            if (!git_left_out(attacks[i].name)) try_attack(&attacks[i], which);
}

/* With a home of its own, in a process of its own. */
static int run_as(int (*group)(void), bool ordinary)
{
    fflush(NULL);
    pid_t child = fork();
    if (!child) {
        char home[] = "/tmp/kvist-home-XXXXXX";
        if (ordinary &&
            (setgroups(0, NULL) || setresgid(65534, 65534, 65534) || setresuid(65534, 65534, 65534)))
            _exit(2);
        if (!mkdtemp(home)) _exit(3);
        setenv("HOME", home, 1);
        setenv("GIT_CONFIG_NOSYSTEM", "1", 1);
        unsetenv("XDG_CONFIG_HOME");
        unsetenv("XDG_DATA_HOME");
        unsetenv("KVIST_HOME");
        git_is_root = !geteuid();
        git_is_second = ordinary;
        char config[64];
        snprintf(config, sizeof config, "%s/.gitconfig", home);
        static const char quick[] = "[core]\n"
                                    "\tfsync = none\n"
                                    "[init]\n"
                                    "\ttemplateDir =\n"
                                    "\tdefaultBranch = main\n"
                                    "[maintenance]\n"
                                    "\tauto = false\n";
        FILE *f = fopen(config, "w");
        if (!f || fputs(quick, f) < 0 || fclose(f)) _exit(4);
        if (system("mkdir ~/first && cd ~/first && { " MAKE_FIRST "}")) _exit(5);
        int failed = group();
        base_fs_remove(home, NULL);
        _exit(failed != 0);
    }
    int status = 0;
    return waitpid(child, &status, 0) != child || status;
}

int git_tests(int argc, char **argv, int (*group)(void))
{
    if (argc > 1) only = argv[1];
    int failed = run_as(group, false);
    return (geteuid() ? 0 : run_as(group, true)) || failed;
}

static int attack_tests(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_git__every_attack_works_without_a_defence),
        cmocka_unit_test(test_git__no_attack_works),
    };
    return cmocka_run_group_tests_name(list.name, tests, NULL, NULL);
}

int git_attack_tests(int argc, char **argv, const char *name, const git_attack *attacks, size_t n)
{
    list.name = name;
    list.attacks = attacks;
    list.n = n;
    return git_tests(argc, argv, attack_tests);
}
