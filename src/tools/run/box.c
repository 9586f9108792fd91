/* The workspace's part of a plan (contract: box.h). */
#include "tools/run/box.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/mem.h"
#include "tools/guard/git_binds.h"

/* The children's tmp, w->tmp, removed with the workspace. */
static int make_tmp(tool_workspace *w, base_err *err)
{
    return w->tmp ? BASE_OK : tool__den_make("tmp", &w->tmp, err);
}

static bool lies_below(const char *path, const char *root)
{
    size_t n = strlen(root);
    return !strcmp(root, "/") || (!strncmp(path, root, n) && path[n] == '/');
}

/* What a mount namespace keeps read-only inside the tree: what git runs or obeys, our own folders. Only existing paths. */
static char **protected_paths(const tool_workspace *w, char *const *of_git)
{
    size_t n = 0;
    struct stat st;
    while (of_git[n]) n++;
    char **paths = base_xcalloc(n + 4, sizeof *paths);
    for (size_t i = 0; i < n; i++) paths[i] = base_xstrdup(of_git[i]);
    for (int home = 0; home < 3; home++) {
        char *own = base_fs_home((base_home)home, NULL);
        if (own && lies_below(own, w->root.path) && !lstat(own, &st) && S_ISDIR(st.st_mode))
            paths[n++] = own;
        else
            free(own);
    }
    return paths;
}

/*
 * What commands see outside of the tree: its repository, where that lies elsewhere, and what the person
 * allowed.
 */
static char **readable_paths(const tool_workspace *w, const char *const *more)
{
    size_t n = 0, n_more = 0;
    while (w->allow_read[n]) n++;
    while (more && more[n_more]) n_more++;
    char **paths = base_xcalloc(n + n_more + 2, sizeof *paths);
    for (size_t i = 0; i < n; i++) paths[i] = base_xstrdup(w->allow_read[i]);
    for (size_t i = 0; i < n_more; i++) paths[n + i] = base_xstrdup(more[i]);
    paths[n + n_more] = tool__git_outside(w);
    return paths;
}

static void free_paths(char **paths)
{
    for (char **p = paths; *p; p++) free(*p);
    free(paths);
}

int tool__box_prepare(tool_workspace *w, const tool_box_wishes *wishes, tool_sandbox_plan *ret, base_err *err)
{
    tool_git_binds binds = {0};
    int code = wishes->tmp ? BASE_OK : make_tmp(w, err);
    if (code) return code;
    tool__git_binds_make(w, &binds);
    char **paths = protected_paths(w, binds.read_only), **readable = readable_paths(w, wishes->readable);
    const tool_sandbox_wishes all = {.root = w->root.path,
        .root_is_writable = wishes->writes && !w->root.is_bare,
        .shows_home = wishes->shows_home,
        .has_network = wishes->has_network,
        .session = wishes->tmp ? wishes->tmp : w->tmp,
        .readable = (const char *const *)readable,
        .read_only = (const char *const *)paths};
    code = tool_sandbox_prepare(&w->sandbox, &all, ret, err);
    free_paths(paths);
    free_paths(readable);
    if (!code) {
        ret->own = binds.own;
        binds.own = NULL;
    }
    tool__git_binds_free(&binds);
    return code;
}
