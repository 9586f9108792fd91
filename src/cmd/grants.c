#include "cmd/grants.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/show.h"
#include "tools/tool.h"

bool grants_can_ask(void)
{
    return isatty(STDIN_FILENO) && isatty(STDERR_FILENO);
}

void grants_show(base_buf *out, const char *text)
{
    base_show(out, text, strlen(text), BASE_SHOW_UTF8);
}

char *grants_tree(const char *dir)
{
    tool_workspace *w = NULL;
    if (tool_workspace_open(&w, &(tool_workspace_options){.dir = dir}, NULL)) return base_xstrdup(dir);
    char *root = base_xstrdup(tool_workspace_root(w));
    tool_workspace_close(w);
    return root;
}

static bool is_answered_yes(const char *question)
{
    char answer[16] = "";
    fputs(question, stderr);
    fflush(stderr);
    return fgets(answer, sizeof answer, stdin) && (!strcmp(answer, "y\n") || !strcmp(answer, "yes\n"));
}

int grants_ask(
    agent_approval_kind kind, const char *tree, const char *what, const char *question, base_err *err)
{
    base_err why = {0};
    if (agent_approvals_has(kind, tree, what, &why)) return BASE_OK;
    if (why.code) {
        if (err) *err = why;
        return why.code;
    }
    return is_answered_yes(question) ? agent_approvals_add(kind, tree, what, err)
                                     : base_fail(err, BASE_E_DENIED, "not allowed; nothing was started");
}
