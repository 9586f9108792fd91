/*
 * A tree of dotfiles, or a home folder, may hold what kvist itself obeys: its configuration, the servers that it starts, what was
 * allowed for good, the grammars that it loads as code (contract: own_files.h).
 */
#include "tools/guard/own_files.h"

#include <stdlib.h>
#include <string.h>

#include "base/fs.h"
#include "base/mem.h"

/* NULL: the whole folder. The rest of the data is looked at by those who read it. */
static const struct {
    base_home home;
    const char *name;
} own_files[] = {{BASE_HOME_CONFIG, NULL}, {BASE_HOME_DATA, "allow-read"}, {BASE_HOME_DATA, "endpoints"},
    {BASE_HOME_DATA, "grammars"}};

/* Without links, also where the end of it is not there yet; the caller frees. */
static char *real_path(const char *path)
{
    char *real = realpath(path, NULL), *slash = strrchr(path, '/');
    if (real || !slash || slash == path) return real ? real : base_xstrdup(path);
    char *folder = base_xstrndup(path, (size_t)(slash - path)), *outer = real_path(folder);
    base_buf whole = {0};
    base_buf_printf(&whole, "%s%s", strcmp(outer, "/") ? outer : "", slash);
    free(folder);
    free(outer);
    return base_buf_take(&whole);
}

void tool__own_files(const tool_root *root, tool_git_obeyed_fn *fn, void *user)
{
    for (size_t i = 0; i < sizeof own_files / sizeof *own_files; i++) {
        char *spelled = base_fs_home(own_files[i].home, own_files[i].name), *real = real_path(spelled);
        const char *const both[] = {spelled, real};
        for (size_t k = 0; k < 2; k++) {
            char *inner = tool__git_path_below(root, "", both[k]);
            if (inner && *inner && (!k || strcmp(spelled, real))) fn(user, inner, false);
            free(inner);
        }
        free(spelled);
        free(real);
    }
}

typedef struct own_search {
    const char *path;
    bool found;
} own_search;

static void compare(void *user, const char *own, bool is_hooks)
{
    own_search *s = user;
    const size_t n = strlen(own);
    s->found |= !strncmp(s->path, own, n) && (!s->path[n] || s->path[n] == '/');
}

bool tool__own_file_is(const tool_root *root, const char *path)
{
    own_search s = {.path = path};
    tool__own_files(root, compare, &s);
    return s.found;
}
