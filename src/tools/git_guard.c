/*
 * What of .git a command must not change: configuration, hooks and attributes are programs that git runs
 * later, outside of any sandbox. They are looked at before the command and compared after. (Where a mount
 * namespace is at hand they are read-only already.) HEAD, refs, the index and objects are the command's to
 * change: `git commit` is a legitimate command.
 */
#include "tools/git_guard.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

enum { MOST_TOLD = 20 };

/* Below a repository's folder. */
static const char *const guarded[] = {"config", "config.worktree", "commondir", "gitdir", "hooks",
    "info/attributes", "objects/info/alternates"};

/* git never runs a hook of this name. */
static bool is_sample(const char *path)
{
    size_t n = strlen(path);
    return n > 7 && !strcmp(path + n - 7, ".sample");
}

static void take(const tool_root *root, const tool_kept_list *earlier, tool_kept_list *ret)
{
    struct stat st;
    *ret = (tool_kept_list){0};
    if (fstatat(root->fd, ".git", &st, AT_SYMLINK_NOFOLLOW)) return;
    if (!S_ISDIR(st.st_mode)) /* a file or link that says where the repository is */
        tool__kept_add(root, ".git", NULL, earlier, ret);
    for (size_t i = 0; S_ISDIR(st.st_mode) && i < sizeof guarded / sizeof *guarded; i++) {
        base_buf path = {0};
        base_buf_printf(&path, ".git/%s", guarded[i]);
        tool__kept_add(root, path.data, is_sample, earlier, ret);
        base_buf_free(&path);
    }
    tool__kept_sort(ret);
}

void tool__git_guard_take(tool_workspace *w, tool_git_guard *ret)
{
    take(&w->root, NULL, &ret->kept);
}

typedef struct teller {
    base_buf *out;
    size_t n;
} teller;

static void tell(teller *t, const char *path, const char *what, const char *where, const char *behind)
{
    if (++t->n > MOST_TOLD) return;
    base_buf_puts(t->out, "The command ");
    base_buf_puts(t->out, what);
    base_buf_putc(t->out, ' ');
    tool__path_show(t->out, path);
    base_buf_puts(t->out, ", which git would run or obey later");
    base_buf_puts(t->out, behind);
    if (where) {
        base_buf_puts(t->out, " What it left there lies in ");
        tool__path_show(t->out, where);
        base_buf_putc(t->out, '.');
    }
    base_buf_putc(t->out, '\n');
}

/* One path that is not as it was: what is there now goes aside, what was there comes back. */
static void mend(tool_workspace *w, const tool_kept *item, tool_kept_change change, teller *t)
{
    static const char *const words[] = {
        [TOOL_KEPT_CHANGED] = "changed", [TOOL_KEPT_GONE] = "removed", [TOOL_KEPT_NEW] = "made"};
    base_buf where = {0}, why = {0};
    base_err err = {0};
    bool is_moved = change != TOOL_KEPT_GONE && !tool__aside_move(w, item->path, &where, NULL);
    if (change != TOOL_KEPT_GONE && !is_moved)
        tell(t, item->path, words[change], NULL,
            ", and it could not be moved aside. Look at it before using git here.");
    else if (change == TOOL_KEPT_NEW)
        tell(t, item->path, words[change], where.data, ": it was moved aside.");
    else if (!tool__kept_put_back(&w->root, item, NULL, &err))
        tell(t, item->path, words[change], where.data, ": it was put back.");
    else {
        base_buf_puts(&why, ", and it could not be put back (");
        if (err.code == BASE_E_NOT_FOUND)
            base_buf_puts(&why, "its former content was too large to be held, or unreadable");
        else
            base_buf_puts(&why, err.msg);
        base_buf_puts(&why, "). Look at it before using git here.");
        tell(t, item->path, words[change], where.data, why.data);
    }
    base_buf_free(&where);
    base_buf_free(&why);
}

static bool lies_in(const char *path, const char *folder)
{
    size_t n = strlen(folder);
    return !strncmp(path, folder, n) && path[n] == '/';
}

void tool__git_guard_check(tool_workspace *w, const tool_git_guard *g, base_buf *told)
{
    teller t = {.out = told};
    tool_kept_list now;
    for (size_t i = 0; i < g->kept.n; i++) {
        const tool_kept *item = &g->kept.items[i];
        tool_kept_change change = tool__kept_compare(&w->root, item, NULL);
        if (change != TOOL_KEPT_SAME) mend(w, item, change, &t);
    }
    take(&w->root, &g->kept, &now);
    const char *moved = NULL;
    for (size_t i = 0; i < now.n; i++) {
        const tool_kept *item = &now.items[i];
        if (!item->st.st_mode || tool__kept_find(&g->kept, item->path)) continue;
        if (moved && lies_in(item->path, moved)) continue; /* it went with its folder */
        moved = item->path;
        mend(w, item, TOOL_KEPT_NEW, &t);
    }
    if (t.n > MOST_TOLD) base_buf_printf(told, "... and %zu more of that kind.\n", t.n - MOST_TOLD);
    if (g->kept.is_cut || now.is_cut)
        base_buf_puts(told, "git has more hooks here than are looked at: not all of them were compared.\n");
    tool__kept_free(&now);
}

void tool__git_guard_free(tool_git_guard *g)
{
    tool__kept_free(&g->kept);
}
