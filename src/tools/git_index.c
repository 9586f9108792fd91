/*
 * git looks at the names of an index when it adds one, not when it reads the file: `git checkout -- .` writes whatever an index names,
 * into .git/hooks and beside the working tree too, and runs the hook at once.
 */
#include "tools/git_guard.h"

#include <fcntl.h>
#include <git2.h>
#include <string.h>
#include <strings.h>

#include "base/mem.h"

static const int64_t most_bytes = (int64_t)1 << 30;

static bool leaves_the_tree(const char *path)
{
    for (const char *p = path;;) {
        size_t n = strcspn(p, "/");
        if (!n || (n == 1 && *p == '.') || (n == 2 && !strncmp(p, "..", 2)) ||
            (n == 4 && !strncasecmp(p, ".git", 4)))
            return true;
        if (!p[n]) return false;
        p += n + 1;
        if (!*p) return false; /* a folder of a sparse index ends in a slash */
    }
}

const char *tool__git_index_refused(const tool_root *root, const char *path)
{
    struct stat st;
    git_index *index = NULL;
    const char *why = NULL;
    if (fstatat(root->fd, path, &st, AT_SYMLINK_NOFOLLOW)) return NULL;
    if (!S_ISREG(st.st_mode) || st.st_size > most_bytes) return "it is no index of a usual kind and size";
    base_buf whole = {0};
    base_buf_printf(&whole, "%s/%s", root->path, path);
    if (st.st_size && git_index_open(&index, whole.data)) why = "it cannot be read";
    for (size_t i = 0, n = index ? git_index_entrycount(index) : 0; i < n && !why; i++)
        if (leaves_the_tree(git_index_get_byindex(index, i)->path))
            why = "git would write into .git or outside of the tree";
    git_index_free(index);
    base_buf_free(&whole);
    return why;
}
