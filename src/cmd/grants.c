#include "cmd/grants.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fs.h"
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

/* In base_show's form neither holds a tab or a newline. */
static void put_grant(base_buf *out, const char *tree, const char *what)
{
    grants_show(out, tree);
    base_buf_putc(out, '\t');
    grants_show(out, what);
    base_buf_putc(out, '\n');
}

static bool is_granted(const base_buf *grants, const base_buf *grant)
{
    for (const char *at = grants->data; at && (at = strstr(at, grant->data)); at++)
        if (at == grants->data || at[-1] == '\n') return true;
    return false;
}

static int remember(const char *path, base_buf *grants, const base_buf *grant, base_err *err)
{
    char *folder = base_fs_home(BASE_HOME_DATA, NULL);
    base_buf_add(grants, grant->data, grant->len);
    int rc = base_fs_mkdirs(folder, err);
    if (!rc) rc = base_fs_write(path, grants->data, grants->len, 0600, err);
    free(folder);
    return rc;
}

static bool is_answered_yes(const char *question)
{
    char answer[16] = "";
    fputs(question, stderr);
    fflush(stderr);
    return fgets(answer, sizeof answer, stdin) && (!strcmp(answer, "y\n") || !strcmp(answer, "yes\n"));
}

int grants_ask(const char *file, const char *tree, const char *what, const char *question, base_err *err)
{
    char *path = base_fs_home(BASE_HOME_DATA, file);
    base_buf grants = {0}, grant = {0};
    int rc = base_fs_exists(path) ? base_fs_read(path, 1 << 20, &grants, err) : BASE_OK;
    put_grant(&grant, tree, what);
    if (!rc && !is_granted(&grants, &grant))
        rc = is_answered_yes(question) ? remember(path, &grants, &grant, err)
                                       : base_fail(err, BASE_E_DENIED, "not allowed; nothing was started");
    base_buf_free(&grants);
    base_buf_free(&grant);
    free(path);
    return rc;
}
