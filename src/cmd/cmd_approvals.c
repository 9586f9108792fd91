/*
 * kvist approvals: what was allowed for good, tree by tree; taken back, and for scripts a command allowed that no
 * person can be asked about there.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/approve/approvals.h"
#include "base/json.h"
#include "cmd/cmd.h"
#include "cmd/grants.h"

static const char usage[] =
    "usage: kvist approvals [list]          what was allowed for good: commands, paths to read, servers\n"
    "       kvist approvals allow COMMAND   exactly this command "
    "may run in the tree without asking, while the files\n"
    "                                       that it runs "
    "there (a script, make's Makefile) are what they are now\n"
    "       kvist approvals remove N        take the N-th of the list back\n"
    "       kvist approvals remove all      take all of the list back\n\n"
    "With --dir the list is that tree's; without it every "
    "tree's, and allow means the current folder's. The files\n"
    "can be edited by hand: approvals beside your configuration, "
    "allow-read and endpoints in the data folder.\n";

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

static int list(const approvals_options *o, const agent_approvals *all)
{
    base_buf out = {0};
    for (size_t i = 0; i < all->n; i++) put_row(&out, &all->rows[i], i + 1, o->json);
    if (out.len) fwrite(out.data, 1, out.len, stdout);
    if (!out.len && !o->json) fputs("kvist: nothing is allowed for good\n", stderr);
    base_buf_free(&out);
    return BASE_OK;
}

static int remove_some(const agent_approvals *all, const char *which, base_err *err)
{
    char *end;
    const bool is_all = !strcmp(which, "all");
    const unsigned long number = strtoul(which, &end, 10);
    if (!is_all && (*end || end == which || *which == '-' || number < 1 || number > all->n))
        return base_fail(err, BASE_E_USAGE,
            "remove takes all or a number of the list, 1 to %zu, not \"%.40s\"", all->n, which);
    int rc = BASE_OK;
    for (size_t i = 0; i < all->n && !rc; i++)
        if (is_all || i + 1 == number) rc = agent_approvals_remove(&all->rows[i], err);
    return rc;
}

int cmd_approvals(int argc, char **argv)
{
    approvals_options o = {0};
    const option_row own[] = {
        {"--dir", OPTION_TEXT, &o.dir, "DIR", "the tree; without it every tree is listed"},
        {"--json", OPTION_FLAG, &o.json, NULL, "an object a line"}, {0}};
    const char **rest = calloc((size_t)argc + 1, sizeof *rest);
    uint32_t n = 0;
    int status;
    if (!rest) return CMD_FAILED;
    if (!cmd_begin(
            argc, argv, NULL, own, &(cmd_words){.usage = usage, .rest = rest, .n_rest = &n}, &status)) {
        free(rest);
        return status;
    }
    base_err err = {0};
    const char *verb = n ? rest[0] : "list";
    const bool allows = !strcmp(verb, "allow"), removes = !strcmp(verb, "remove");
    char *tree = o.dir || allows ? grants_tree(o.dir ? o.dir : ".") : NULL;
    agent_approvals all = {0};
    int code = BASE_OK;
    code = options_check_word("kvist approvals knows", "list|allow|remove", verb, &err);
    if (!code &&
        (n > (allows || removes ? 2u : 1u) || ((allows || removes) && n < 2) || (allows && !*rest[1])))
        code = base_fail(&err, BASE_E_USAGE, "%s takes %s", verb,
            allows    ? "one command, in quotes where it has blanks"
            : removes ? "a number of the list, or all"
                      : "no words");
    if (!code) code = agent_approvals_read(tree, &all, &err);
    char *what = !code && allows ? agent_allowance(tree, rest[1], false) : NULL;
    if (what)
        code = agent_approvals_add(AGENT_APPROVAL_COMMAND, tree, what, &err);
    else if (!code)
        code = removes ? remove_some(&all, rest[1], &err) : list(&o, &all);
    agent_approvals_free(&all);
    free(what);
    free(tree);
    free(rest);
    return code ? cmd_complain(&err) : CMD_OK;
}
