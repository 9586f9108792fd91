/* A new working tree against the one that its repository lies in (contract: git_worktrees.h). */
#include "tools/guard/git_worktrees.h"

#include <stdlib.h>
#include <string.h>

#include "base/fs.h"
#include "base/mem.h"
#include "base/path.h"
#include "tools/file/git_pointers.h"
#include "tools/guard/git_obeys.h"

static char *folder_of(const char *path)
{
    return base_xstrndup(path, base_path_folder_length(path));
}

/* Where the repository's first working tree begins, below the root; NULL: outside of it. */
static char *first_top(const tool_git_check *c, const char *top)
{
    const tool_root *root = &c->w->root;
    char *whole = base_fs_join(root->path, top), *to = tool__git_pointed_to(whole),
         *shared = to ? tool__git_shared_by(to) : NULL,
         *inner = shared ? tool__git_path_below(root, "", shared) : NULL,
         *ret = inner ? folder_of(inner) : NULL;
    free(whole);
    free(to);
    free(shared);
    free(inner);
    return ret;
}

static bool is_same(const tool_kept *now, const tool_kept *before)
{
    return before && now->is_held && before->is_held && now->st.st_mode == before->st.st_mode &&
           now->bytes.len == before->bytes.len &&
           (!now->bytes.len || !memcmp(now->bytes.data, before->bytes.data, now->bytes.len));
}

/* One place of the first working tree, in the new one. */
static void check_place(tool_git_check *c, const char *place, const char *inner, const char *top)
{
    tool_kept_list now = {0};
    char *path = base_fs_join(top, inner);
    tool__kept_add(&c->w->root, path, tool__git_guarded_skips, NULL, &now);
    for (size_t i = 0; i < now.n; i++) {
        const tool_kept *item = &now.items[i];
        if ((!item->st.st_mode && !item->failed) || (S_ISDIR(item->st.st_mode) && !item->failed)) continue;
        base_buf first = {0};
        base_buf_printf(&first, "%s%s", place, item->path + strlen(path));
        if (!is_same(item, tool__kept_find(&c->g->kept, first.data)))
            tool__git_set_aside(c, item->path, "made",
                ", which git would run or obey in this new working tree and which is another one where its "
                "repository lies: it was moved aside.");
        base_buf_free(&first);
    }
    c->is_cut |= now.is_cut;
    tool__kept_free(&now);
    free(path);
}

void tool__git_worktrees_check(tool_git_check *c)
{
    for (size_t i = 0; i < c->now.n_repos; i++) {
        const tool_repo *r = &c->now.repos[i];
        if (r->kind != TOOL_REPO_POINTER || tool__git_walk_find(&c->g->walk, r->path)) continue;
        char *top = folder_of(r->path), *first = first_top(c, top);
        const size_t n = first ? strlen(first) : 0;
        for (size_t k = 0; first && k < c->g->places.n; k++) {
            const tool_git_place *p = &c->g->places.all[k];
            if (!p->is_way && !strncmp(p->path, first, n) && (!n || p->path[n] == '/'))
                check_place(c, p->path, p->path + n + (n > 0), top);
        }
        free(top);
        free(first);
    }
}
