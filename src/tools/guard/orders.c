/*
 * The list of orders (contract: orders.h): agents, editors, shells, debuggers, package managers, the machine that builds what is
 * pushed. Makefiles, tests and package.json run when they are run.
 */
#include "tools/guard/orders.h"

#include <string.h>

#include "tools/guard/below.h"

static const char *const orders[] = {/* kvist's: */ "AGENTS.md", ".kvist", ".agents",
    /* others': */ "CLAUDE.md", "GEMINI.md", ".claude", ".cursor", ".cursorrules", ".mcp.json",
    ".github/copilot-instructions.md", ".github/workflows", ".gitlab-ci.yml", ".envrc", ".vscode", ".idea",
    ".devcontainer", ".devcontainer.json", ".exrc", ".vimrc", ".nvimrc", ".nvim.lua", ".dir-locals.el",
    ".gdbinit", ".lldbinit", ".cargo/config", ".cargo/config.toml", ".npmrc", ".yarnrc", ".yarnrc.yml",
    ".mise.toml", "mise.toml", ".pre-commit-config.yaml", "lefthook.yml"};

void tool__orders_keep(const tool_root *root, const tool_kept_list *earlier, tool_kept_list *ret)
{
    for (size_t i = 0; i < sizeof orders / sizeof *orders; i++)
        tool__kept_add(root, orders[i], NULL, earlier, ret);
    tool__kept_sort(ret);
}

bool tool__order_is_for_kvist(const char *path)
{
    enum { N_OWN = 3 };
    for (size_t i = 0; i < N_OWN; i++)
        if (!strcmp(path, orders[i]) || tool__lies_in(path, orders[i])) return true;
    return false;
}
