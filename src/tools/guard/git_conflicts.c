/* Reading the list (contract: git_conflicts.h): HASH[.NUMBER] TAB PATH NUL, again and again. */
#include "tools/guard/git_conflicts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/mem.h"
#include "base/path.h"
#include "tools/guard/below.h"

static const size_t most_bytes = (size_t)16 << 20;

static bool leaves(const char *path)
{
    for (const char *p = path;; p++) {
        const size_t n = strcspn(p, "/");
        if (!n || (n == 2 && !strncmp(p, "..", 2))) return true;
        p += n;
        if (!*p) return false;
    }
}

bool tool__git_conflicts_refused(const char *bytes, size_t n, tool_leads_fn *leads, void *user)
{
    bool is_bad = false;
    for (size_t at = 0; at < n && !is_bad;) {
        const char *end = memchr(bytes + at, '\0', n - at), *tab;
        const size_t whole = end ? (size_t)(end - bytes) - at : n - at;
        tab = memchr(bytes + at, '\t', whole);
        if (tab) { /* else git says that the list is broken, and reads nothing */
            char *path = base_xstrndup(tab + 1, whole - (size_t)(tab + 1 - (bytes + at)));
            is_bad = leaves(path) || leads(user, path);
            free(path);
        }
        at += whole + 1;
    }
    return is_bad;
}

/* In one working tree: there, and no plain file of it. */
static bool leads_in(const tool_root *root, const char *folder, const char *path)
{
    char *inner = *folder ? base_fs_join(folder, path) : base_xstrdup(path);
    const char *name;
    size_t made;
    struct stat st;
    bool is_plain = fstatat(root->fd, inner, &st, 0) && (errno == ENOENT || errno == ENOTDIR);
    if (!is_plain) {
        const int outer = tool__path_open_parent(root, inner, false, &name, &made);
        is_plain = outer >= 0 && !fstatat(outer, name, &st, AT_SYMLINK_NOFOLLOW) && S_ISREG(st.st_mode);
        if (outer >= 0) close(outer);
    }
    free(inner);
    return !is_plain;
}

/* A list lies in a repository, and whose working tree that is only its configuration says: any of them will do. */
static bool leads_anywhere(void *user, const char *path)
{
    const tool_git_check *c = user;
    bool does = false;
    for (size_t i = 0; i < c->now.n_repos && !does; i++) {
        const tool_repo *r = &c->now.repos[i];
        if (r->kind == TOOL_REPO_BARE) continue;
        char *folder = base_xstrndup(r->path, base_path_folder_length(r->path));
        does = leads_in(&c->w->root, folder, path);
        free(folder);
    }
    return does;
}

void tool__git_conflicts_check(tool_git_check *c)
{
    for (size_t i = 0; i < c->now.n_repos; i++) {
        struct stat st;
        char *path = base_fs_join(c->now.repos[i].path, "MERGE_RR");
        tool_file list = {0};
        if (c->now.repos[i].kind != TOOL_REPO_POINTER && tool__look(&c->w->root, path, &st) &&
            (tool__file_read(&c->w->root, path, most_bytes, &list, NULL) ||
                tool__git_conflicts_refused(list.text.data, list.text.len, leads_anywhere, c)))
            tool__git_set_aside(c, path, "wrote",
                ", git's list of conflicts, and it names a file that is none of the tree, which git would "
                "copy into .git: it was moved aside.");
        tool__file_free(&list);
        free(path);
    }
}
