/*
 * What git runs and obeys in the tree's repository, as it was when the session began: somebody who lets git run (/commit)
 * is told first what of it changed meanwhile, whoever changed it, and nothing runs where it changed again behind the yes. The guard undoes what commands plant; this
 * sees also what the person, another program or an approved edit wrote.
 */
#include "tools/guard/git_since.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "tools/guard/git_guarded.h"

struct tool_git_since {
    tool_root elsewhere; /* the repository of a worktree or a submodule; fd -1: it lies in the tree */
    tool_kept_list here, there;
};

tool_git_since *tool__git_since_take(const tool_workspace *w)
{
    tool_git_since *s = base_xcalloc(1, sizeof *s);
    s->elsewhere.fd = -1;
    if (!w->repo) return s;
    tool__git_guarded_keep(&w->root, w->root.is_bare ? "" : ".git", &s->here);
    s->elsewhere.path = tool__git_outside(w);
    if (!s->elsewhere.path) return s;
    s->elsewhere.has_openat2 = w->root.has_openat2;
    s->elsewhere.fd = open(s->elsewhere.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (s->elsewhere.fd >= 0) tool__git_guarded_keep(&s->elsewhere, "", &s->there);
    return s;
}

static void put(base_buf *out, const char *what, const char *folder, const char *path)
{
    base_buf whole = {0};
    base_buf_printf(&whole, "%s%s%s", folder, *folder ? "/" : "", path);
    base_buf_printf(out, "%s ", what);
    tool__path_show(out, whole.data);
    base_buf_putc(out, '\n');
    base_buf_free(&whole);
}

static bool is_file(const tool_kept *item)
{
    return item->failed || (item->st.st_mode && !S_ISDIR(item->st.st_mode));
}

static void list(
    const tool_root *root, const char *repo, const char *shown, const tool_kept_list *before, base_buf *out)
{
    for (size_t i = 0; i < before->n; i++) {
        const tool_kept *item = &before->items[i];
        if (!is_file(item)) continue;
        const tool_kept_change change = tool__kept_compare(root, item, NULL);
        if (change == TOOL_KEPT_SAME) continue;
        put(out, change == TOOL_KEPT_GONE ? "removed" : "changed", shown, item->path);
    }
    tool_kept_list now = {0};
    tool__git_guarded_keep(root, repo, &now);
    for (size_t i = 0; i < now.n; i++) {
        const tool_kept *item = &now.items[i], *old = tool__kept_find(before, item->path);
        if (is_file(item) && !(old && is_file(old))) put(out, "made", shown, item->path);
    }
    if (now.is_cut || before->is_cut) base_buf_puts(out, "(there are more than are looked at)\n");
    tool__kept_free(&now);
}

void tool__git_since_list(const tool_workspace *w, const tool_git_since *s, base_buf *out)
{
    if (!s || !w->repo) return;
    list(&w->root, w->root.is_bare ? "" : ".git", "", &s->here, out);
    if (s->elsewhere.fd >= 0) list(&s->elsewhere, "", s->elsewhere.path, &s->there, out);
}

void tool__git_since_free(tool_git_since *s)
{
    if (!s) return;
    tool__kept_free(&s->here);
    tool__kept_free(&s->there);
    if (s->elsewhere.fd >= 0) close(s->elsewhere.fd);
    free(s->elsewhere.path);
    free(s);
}
