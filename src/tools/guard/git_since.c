/*
 * What git runs and obeys in the tree's repository, as it was when the session began: somebody who lets git run (/commit)
 * is told first what of it changed meanwhile, whoever changed it, and nothing runs where it changed again behind the yes. The guard undoes what commands plant; this
 * sees also what the person, another program or an approved edit wrote. A hook runs outside of the box, and so does what of the
 * tree it runs in turn: scripts that it names, and that these name.
 */
#include "tools/guard/git_since.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/mem.h"
#include "tools/guard/git_guarded.h"
#include "tools/guard/orders.h"
#include "tools/guard/runs.h"

struct tool_git_since {
    tool_root elsewhere; /* the repository of a worktree or a submodule; fd -1: it lies in the tree */
    tool_kept_list here, there;
};

/* ---- what it is now ---- */

enum { MOST_SCRIPTS = 256, MOST_TEXT = 256 << 10 };

typedef struct finder {
    const tool_root *root;
    tool_kept_list *list;
    size_t n; /* scripts so far */
} finder;

static void add_script(void *user, const char *path)
{
    finder *f = user;
    for (size_t i = 0; i < f->list->n; i++)
        if (!strcmp(f->list->items[i].path, path)) return;
    if (f->n++ < MOST_SCRIPTS) tool__kept_add(f->root, path, NULL, NULL, f->list);
}

static void add_scripts_of(finder *f, const tool_kept *item)
{
    if (!item->is_held || !S_ISREG(item->st.st_mode) || !item->bytes.len || item->bytes.len > MOST_TEXT)
        return;
    const base_buf text = item->bytes; /* the list grows */
    tool__runs(f->root->path, text.data, text.len, add_script, f);
}

/* Hooks of the person's for all repositories lie outside of the tree, where no command writes; what they run of it may be written. */
static void add_scripts_of_hooks_elsewhere(finder *f, git_repository *repo)
{
    git_config *config = NULL;
    git_buf folder = GIT_BUF_INIT;
    const bool is_named = !git_repository_config_snapshot(&config, repo) &&
                          !git_config_get_path(&folder, config, "core.hookspath");
    DIR *dir = is_named && *folder.ptr == '/' ? opendir(folder.ptr) : NULL;
    for (const struct dirent *e; dir && (e = readdir(dir));) {
        char *path = base_fs_join(folder.ptr, e->d_name);
        base_buf text = {0};
        if (*e->d_name != '.' && !base_fs_read(path, MOST_TEXT, &text, NULL) && text.len)
            tool__runs(f->root->path, text.data, text.len, add_script, f);
        base_buf_free(&text);
        free(path);
    }
    if (dir) closedir(dir);
    git_buf_dispose(&folder);
    git_config_free(config);
}

/* here: what lies in the tree; there: in the repository of a worktree or a submodule. */
static void take(
    const tool_workspace *w, const tool_root *elsewhere, tool_kept_list *here, tool_kept_list *there)
{
    finder f = {.root = &w->root, .list = here};
    tool__git_guarded_keep(&w->root, w->root.is_bare ? "" : ".git", here);
    if (elsewhere->fd >= 0) tool__git_guarded_keep(elsewhere, "", there);
    if (w->root.is_bare) return;
    tool__orders_keep_of_hooks(&w->root, here);
    add_scripts_of_hooks_elsewhere(&f, w->repo);
    for (size_t i = 0; i < there->n; i++) add_scripts_of(&f, &there->items[i]);
    for (size_t i = 0; i < here->n; i++) add_scripts_of(&f, &here->items[i]);
    tool__kept_sort(here);
}

tool_git_since *tool__git_since_take(const tool_workspace *w)
{
    tool_git_since *s = base_xcalloc(1, sizeof *s);
    s->elsewhere.fd = -1;
    if (!w->repo) return s;
    s->elsewhere.path = tool__git_outside(w);
    s->elsewhere.has_openat2 = w->root.has_openat2;
    if (s->elsewhere.path) s->elsewhere.fd = open(s->elsewhere.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    take(w, &s->elsewhere, &s->here, &s->there);
    return s;
}

/* ---- what of it is another one now ---- */

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

static void list(const tool_root *root, const char *shown, const tool_kept_list *before,
    const tool_kept_list *now, base_buf *out)
{
    for (size_t i = 0; i < before->n; i++) {
        const tool_kept *item = &before->items[i];
        if (!is_file(item)) continue;
        const tool_kept_change change = tool__kept_compare(root, item, NULL);
        if (change == TOOL_KEPT_SAME) continue;
        put(out, change == TOOL_KEPT_GONE ? "removed" : "changed", shown, item->path);
    }
    for (size_t i = 0; i < now->n; i++) {
        const tool_kept *item = &now->items[i], *old = tool__kept_find(before, item->path);
        if (is_file(item) && !(old && is_file(old))) put(out, "made", shown, item->path);
    }
    if (now->is_cut || before->is_cut) base_buf_puts(out, "(there are more than are looked at)\n");
}

void tool__git_since_list(const tool_workspace *w, const tool_git_since *s, base_buf *out)
{
    if (!s || !w->repo) return;
    tool_kept_list here = {0}, there = {0};
    take(w, &s->elsewhere, &here, &there);
    list(&w->root, "", &s->here, &here, out);
    if (s->elsewhere.fd >= 0) list(&s->elsewhere, s->elsewhere.path, &s->there, &there, out);
    tool__kept_free(&here);
    tool__kept_free(&there);
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
