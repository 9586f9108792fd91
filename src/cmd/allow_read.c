/* Resolves, asks, remembers (contract: allow_read.h). */
#include "cmd/allow_read.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fs.h"
#include "base/mem.h"
#include "base/show.h"
#include "tools/tool.h"

/* "TREE<tab>PATH" in base_show's form, in which neither holds a tab or a newline. */
static void put_grant(base_buf *out, const char *tree, const char *path)
{
    base_show(out, tree, strlen(tree), BASE_SHOW_UTF8);
    base_buf_putc(out, '\t');
    base_show(out, path, strlen(path), BASE_SHOW_UTF8);
    base_buf_putc(out, '\n');
}

static bool is_granted(const base_buf *grants, const base_buf *grant)
{
    for (const char *at = grants->data; at && (at = strstr(at, grant->data)); at++)
        if (at == grants->data || at[-1] == '\n') return true;
    return false;
}

static int remember(const char *file, base_buf *grants, const base_buf *grant, base_err *err)
{
    char *folder = base_fs_home(BASE_HOME_DATA, NULL);
    base_buf_add(grants, grant->data, grant->len);
    int code = base_fs_mkdirs(folder, err);
    if (!code) code = base_fs_write(file, grants->data, grants->len, 0600, err);
    free(folder);
    return code;
}

static int ask(const char *tree, const char *path, base_err *err)
{
    base_buf question = {0};
    char answer[16] = "";
    base_buf_puts(&question, "Commands of the model in ");
    base_show(&question, tree, strlen(tree), BASE_SHOW_UTF8);
    base_buf_puts(&question, " will be able to read\n  ");
    base_show(&question, path, strlen(path), BASE_SHOW_UTF8);
    base_buf_puts(&question, "\nand all that is in it. Allow that, now and later? [y/N] ");
    fputs(question.data, stderr);
    fflush(stderr);
    base_buf_free(&question);
    bool is_yes = fgets(answer, sizeof answer, stdin) && (!strcmp(answer, "y\n") || !strcmp(answer, "yes\n"));
    return is_yes ? BASE_OK
                  : base_fail(err, BASE_E_DENIED, "--allow-read %s: not allowed; nothing was started", path);
}

static char *tree_of(const char *dir)
{
    tool_workspace *w = NULL;
    if (tool_workspace_open(&w, &(tool_workspace_options){.dir = dir}, NULL)) return base_xstrdup(dir);
    char *root = base_xstrdup(tool_workspace_root(w));
    tool_workspace_close(w);
    return root;
}

/* The real path, or an error that says what to name instead. */
static int resolve(const char *given, char **ret, base_err *err)
{
    const char *home = getenv("HOME");
    char *real = realpath(given, NULL);
    if (!real) return base_fail_sys(err, "--allow-read %s", given);
    char *real_home = home ? realpath(home, NULL) : NULL;
    int code = BASE_OK;
    if (!real[1] || (real_home && !strcmp(real, real_home)))
        code = base_fail(err, BASE_E_USAGE,
            "--allow-read %s: that is %s; name the folders in it that commands need", given,
            real[1] ? "your home folder" : "the whole file system");
    free(real_home);
    if (code)
        free(real);
    else
        *ret = real;
    return code;
}

int allow_read_resolve(const char *dir, const char *const *given, size_t n, char ***ret, base_err *err)
{
    char **paths = base_xcalloc(n + 1, sizeof *paths), *tree = n ? tree_of(dir) : NULL;
    char *file = base_fs_home(BASE_HOME_DATA, "allow-read");
    bool can_ask = isatty(STDIN_FILENO) && isatty(STDERR_FILENO);
    base_buf grants = {0};
    int code = BASE_OK;
    if (n && base_fs_exists(file)) code = base_fs_read(file, 1 << 20, &grants, err);
    for (size_t i = 0; i < n && !code; i++) {
        base_buf grant = {0};
        code = resolve(given[i], &paths[i], err);
        if (!code) put_grant(&grant, tree, paths[i]);
        if (!code && can_ask && !is_granted(&grants, &grant)) {
            code = ask(tree, paths[i], err);
            if (!code) code = remember(file, &grants, &grant, err);
        }
        base_buf_free(&grant);
    }
    base_buf_free(&grants);
    free(file);
    free(tree);
    if (code) {
        for (size_t i = 0; i < n; i++) free(paths[i]);
        free(paths);
    } else {
        *ret = paths;
    }
    return code;
}
