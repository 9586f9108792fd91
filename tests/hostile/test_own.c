/*
 * What kvist itself obeys, in a tree of dotfiles that holds it: its configuration, approvals, servers, grammars.
 */
#include "git_kit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"

static const struct {
    const char *name, *home, *setup, *command;
} own_attacks[] = {
    {"a line more", "tree/dot", FIRST "mkdir -p dot/config && echo mine > dot/config/approvals",
        "echo evil >> dot/config/approvals"},
    {"another file", "tree/dot", FIRST "mkdir -p dot/config && echo mine > dot/config/approvals",
        "rm dot/config/approvals; echo evil > dot/config/approvals"},
    {"another folder", "tree/dot", FIRST "mkdir -p dot/config && echo mine > dot/config/approvals",
        "mv dot dot2; mkdir -p dot/config; echo evil > dot/config/approvals"},
    {"a link", "tree/dot", FIRST "mkdir -p dot/config more && echo mine > dot/config/approvals",
        "mv dot/config dot/old; echo evil > more/approvals; "
        "ln -s ../more dot/config; cat dot/config/approvals"},
    {"a server", "tree/dot", FIRST "mkdir -p dot/config && echo mine > dot/config/approvals",
        "echo evil > dot/config/mcp.json"},
    {"a command of the person's", "tree/dot",
        FIRST "mkdir -p dot/config/commands && echo mine > dot/config/approvals",
        "echo evil > dot/config/commands/fix.md"},
    {"code", "tree/dot", FIRST "mkdir -p dot/config dot/data && echo mine > dot/config/approvals",
        "mkdir -p dot/data/grammars && echo evil > dot/data/grammars/libtree-sitter-c.so"},
    {"what may be read", "tree/dot", FIRST "mkdir -p dot/config dot/data && echo mine > dot/config/approvals",
        "echo evil > dot/data/allow-read"},
    {"nothing there yet", "tree/dot", FIRST, "mkdir -p dot/config && echo evil > dot/config/approvals"},
    {"by a link from outside", "link",
        FIRST "mkdir -p dot/config && echo mine > dot/config/approvals && ln -s tree/dot ../link",
        "echo evil >> dot/config/approvals"},
};

/* Returns whether the person's kvist would find it. */
static bool try_own(size_t i, int which, bool is_control)
{
    tree t;
    bool is_there = false;
    git_begin(&t, &(git_attack){.setup = own_attacks[i].setup});
    base_buf home = {0};
    base_buf_printf(&home, "%s/%s", t.base, own_attacks[i].home);
    setenv("KVIST_HOME", home.data, 1);
    tree_open(&t);
    if (is_control) {
        git_outside(&t, own_attacks[i].command);
    } else if (git_defend(&t, which)) {
        tool_result r = git_run(&t, own_attacks[i].command);
        if (which < 2 && (!r.notice || !strstr(r.notice, "kvist itself obeys")))
            fail_msg("%s, defence %d: told: %s", own_attacks[i].name, which, r.notice ? r.notice : "nothing");
        tool_result_free(&r);
        if (strstr(own_attacks[i].setup, "mine") &&
            git_outside(&t, "grep -q mine $KVIST_HOME/config/approvals"))
            fail_msg("%s, defence %d: what was there is lost", own_attacks[i].name, which);
    }
    is_there = !git_outside(
        &t, "grep -rq evil $KVIST_HOME/config $KVIST_HOME/data/grammars $KVIST_HOME/data/allow-read");
    unsetenv("KVIST_HOME");
    base_buf_free(&home);
    tree_remove(&t);
    return is_there;
}

static void test_own__what_kvist_itself_obeys_stays_as_it_was(void **state)
{
    for (size_t i = 0; i < sizeof own_attacks / sizeof *own_attacks; i++) {
        if (git_left_out(own_attacks[i].name)) continue;
        if (!git_is_second && !try_own(i, 0, true)) fail_msg("%s: does not work", own_attacks[i].name);
        for (int which = git_is_root ? 2 : 0; which < GIT_N_DEFENCES; which++)
            if (try_own(i, which, false))
                fail_msg("%s, defence %d: it is obeyed", own_attacks[i].name, which);
    }
}

static int all_tests(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_own__what_kvist_itself_obeys_stays_as_it_was),
    };
    return cmocka_run_group_tests_name("own", tests, NULL, NULL);
}

int main(int argc, char **argv)
{
    return git_tests(argc, argv, all_tests);
}
