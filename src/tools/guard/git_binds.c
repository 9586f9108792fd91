/* Choosing what is mounted (contract: git_binds.h). */
#include "tools/guard/git_binds.h"

#include <stdlib.h>
#include <string.h>

#include "base/fs.h"
#include "base/mem.h"
#include "tools/guard/below.h"
#include "tools/guard/git_guard.h"
#include "tools/guard/own_files.h"

enum { MOST_FINE_BINDS = 64, MOST_BINDS = 2000 };

typedef struct bind_list {
    const tool_root *root;
    char **paths; /* NULL-terminated */
    size_t n, cap;
} bind_list;

static void add_bind(bind_list *list, const char *path)
{
    base_grow(&list->paths, &list->cap, list->n + 2, sizeof *list->paths);
    list->paths[list->n++] = base_fs_join(list->root->path[1] ? list->root->path : "/", path);
    list->paths[list->n] = NULL;
}

/* A name of a repository, where it is there: but for a rebase that is the session's own (`own`, may be NULL). */
static void add_inner(bind_list *list, const char *repo, const char *name, const tool_git_states *own)
{
    struct stat st;
    char *path = base_fs_join(repo, name);
    if (tool__look(list->root, path, &st) && !S_ISLNK(st.st_mode) &&
        !(own && tool__git_states_have(own, &st)))
        add_bind(list, path);
    free(path);
}

/* The folders above what kvist obeys stay where they are: another one in the place of such a folder would bring other files there. */
static void fix_way(void *user, const char *path, bool is_hooks)
{
    bind_list *own = user;
    struct stat st;
    for (const char *end = strchr(path, '/'); end; end = strchr(end + 1, '/')) {
        char *folder = base_xstrndup(path, (size_t)(end - path)),
             *whole = base_fs_join(own->root->path, folder);
        bool is_new = tool__look(own->root, folder, &st) && S_ISDIR(st.st_mode);
        for (size_t i = 0; i < own->n && is_new; i++) is_new = strcmp(own->paths[i], whole);
        if (is_new) add_bind(own, folder);
        free(folder);
        free(whole);
    }
}

static char **take_paths(bind_list *list)
{
    return list->paths ? list->paths : base_xcalloc(1, sizeof *list->paths);
}

void tool__git_binds_make(const tool_workspace *w, tool_git_binds *ret)
{
    const tool_git_guard *g = w->git_guard;
    bind_list own = {.root = &w->root}, fixed = {.root = &w->root};
    size_t n_fine = 0;
    struct stat st;
    tool__own_files(&w->root, fix_way, &own);
    for (size_t i = 0; i < g->walk.n_repos && own.n + fixed.n < MOST_BINDS; i++) {
        const tool_repo *r = &g->walk.repos[i];
        bool is_folder = r->kind != TOOL_REPO_POINTER;
        if (!tool__look(&w->root, r->path, &st) || S_ISLNK(st.st_mode)) continue;
        if (!is_folder || n_fine >= MOST_FINE_BINDS) { /* many: their repositories are read-only as a whole */
            add_bind(&fixed, r->path);
            continue;
        }
        n_fine++;
        add_bind(&own, r->path);
        for (const char *const *name = tool__git_guarded_names; *name; name++)
            add_inner(&fixed, r->path, *name, NULL);
        for (const char *const *name = tool__git_state_names; *name; name++)
            add_inner(&fixed, r->path, *name, &g->own_states);
    }
    /* Included files and programs of the tree. A folder of hooks there is compared only: `npm install` writes it again as it was. */
    for (size_t i = 0; i < g->places.n && own.n + fixed.n < MOST_BINDS; i++)
        if (!g->places.all[i].is_hooks && tool__look(&w->root, g->places.all[i].path, &st) &&
            S_ISREG(st.st_mode))
            add_bind(&fixed, g->places.all[i].path);
    *ret = (tool_git_binds){take_paths(&own), take_paths(&fixed)};
}

void tool__git_binds_free(tool_git_binds *b)
{
    for (char **p = b->own; p && *p; p++) free(*p);
    for (char **p = b->read_only; p && *p; p++) free(*p);
    free(b->own);
    free(b->read_only);
    *b = (tool_git_binds){0};
}
