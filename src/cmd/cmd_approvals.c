/*
 * kvist approvals: what was allowed for good, tree by tree; taken back, and for scripts a command allowed that no
 * person can be asked about there.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/approve/approvals.h"
#include "base/json.h"
#include "base/mem.h"
#include "cmd/cmd.h"
#include "cmd/grants.h"

static const char usage[] =
    "usage: kvist approvals [list]          what was allowed for good: commands, paths to read, servers\n"
    "       kvist approvals allow COMMAND   exactly this command may run in the tree without asking, while the files\n"
    "                                       that it runs there (a script, make's Makefile) are what they are now\n"
    "       kvist approvals remove N        take the N-th of the list back\n"
    "       kvist approvals remove all      take all of the list back\n\n"
    "With --dir the list is that tree's; without it every tree's, and allow means the current folder's. The files\n"
    "can be edited by hand: approvals beside your configuration, allow-read and endpoints in the data folder.\n";

typedef struct approvals_options {
    const char *dir;
    bool json;
} approvals_options;

static void put_row(base_buf *out, const agent_approval *row, size_t number, bool json)
{
    if (!json) {
        base_buf_printf(out, "%zu  %-8s  ", number, agent_approval_word(row->kind));
        grants_show(out, row->tree);
        base_buf_puts(out, "  ");
        grants_show(out, row->what);
    } else {
        base_buf_printf(
            out, "{\"number\":%zu,\"kind\":\"%s\",\"tree\":", number, agent_approval_word(row->kind));
        base_json_put_str(out, row->tree, strlen(row->tree));
        base_buf_puts(out, ",\"what\":");
        base_json_put_str(out, row->what, strlen(row->what));
        base_buf_putc(out, '}');
    }
    base_buf_putc(out, '\n');
}

/* Of the tree of --dir, or of all. */
static int read_rows(const approvals_options *o, agent_approvals *ret, base_err *err)
{
    char *tree = o->dir ? grants_tree(o->dir) : NULL;
    const int rc = agent_approvals_read(tree, ret, err);
    free(tree);
    return rc;
}

static int list(void *user, const char *word, base_err *err)
{
    const approvals_options *o = user;
    agent_approvals all;
    base_buf out = {0};
    const int rc = read_rows(o, &all, err);
    if (rc) return rc;
    for (size_t i = 0; i < all.n; i++) put_row(&out, &all.rows[i], i + 1, o->json);
    if (out.len) fwrite(out.data, 1, out.len, stdout);
    if (!out.len && !o->json) fputs("kvist: nothing is allowed for good\n", stderr);
    base_buf_free(&out);
    agent_approvals_free(&all);
    return 0;
}

static int allow(void *user, const char *command, base_err *err)
{
    const approvals_options *o = user;
    if (!*command)
        return base_fail(err, BASE_E_USAGE, "kvist approvals allow takes a command that is not empty");
    char *tree = grants_tree(o->dir ? o->dir : "."), *what = agent_allowance(tree, command, false);
    const int rc = agent_approvals_add(AGENT_APPROVAL_COMMAND, tree, what, err);
    free(what);
    free(tree);
    return rc;
}

static int remove_rows(const agent_approvals *all, const char *which, base_err *err)
{
    char *end;
    const bool is_all = !strcmp(which, "all");
    const unsigned long number = strtoul(which, &end, 10);
    if (!is_all && (*end || end == which || *which == '-' || number < 1 || number > all->n))
        return base_fail(err, BASE_E_USAGE,
            "remove takes all or a number of the list, 1 to %zu, not \"%.40s\"", all->n, which);
    int rc = 0;
    for (size_t i = 0; i < all->n && !rc; i++)
        if (is_all || i + 1 == number) rc = agent_approvals_remove(&all->rows[i], err);
    return rc;
}

static int take_back(void *user, const char *which, base_err *err)
{
    agent_approvals all;
    int rc = read_rows(user, &all, err);
    if (rc) return rc;
    rc = remove_rows(&all, which, err);
    agent_approvals_free(&all);
    return rc;
}

static const cmd_verb verbs[] = {
    {"list", NULL, list, .is_default = true},
    {"allow", "one command, in quotes where it has blanks", allow},
    {"remove", "a number of the list, or all", take_back},
    {NULL},
};

int cmd_approvals(int argc, char **argv)
{
    approvals_options o = {0};
    const option_row own[] = {
        {"--dir", OPTION_TEXT, &o.dir, "DIR", "the tree; without it every tree is listed"},
        {"--json", OPTION_FLAG, &o.json, NULL, "an object a line"}, {0}};
    const char **rest = base_xcalloc((size_t)argc + 1, sizeof *rest);
    uint32_t n = 0;
    base_err err = {0};
    int status, r = 0;
    const cmd_words words = {.usage = usage, .rest = rest, .n_rest = &n};
    if (cmd_begin(argc, argv, NULL, own, &words, &status))
        r = cmd_run_verb("kvist approvals", verbs, rest, n, &o, &err);
    free(rest);
    return r ? cmd_complain(&err) : status;
}
