/* Collecting what git runs or obeys (contract: git_guarded.h). */
#include "tools/guard/git_guarded.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/mem.h"
#include "base/path.h"
#include "tools/guard/below.h"
#include "tools/guard/git_obeys.h"
#include "tools/guard/own_files.h"

enum { MOST_HOOK_FILES = 256, MOST_HOPS = 8 };

const char *const tool__git_guarded_names[] = {"config", "config.worktree", "commondir", "gitdir", "hooks",
    "info", "objects/info/alternates", "remotes", "branches", NULL};
/* In info: lists that make git run nothing; `git gc` and `git sparse-checkout` write them. */
static const char *const harmless_info[] = {"/info/refs", "/info/exclude", "/info/sparse-checkout"};

static const char *const hook_names[] = {"applypatch-msg", "commit-msg", "fsmonitor-watchman",
    "p4-changelist", "p4-post-changelist", "p4-pre-submit", "p4-prepare-changelist", "post-applypatch",
    "post-checkout", "post-commit", "post-index-change", "post-merge", "post-receive", "post-rewrite",
    "post-update", "pre-applypatch", "pre-auto-gc", "pre-commit", "pre-merge-commit", "pre-push",
    "pre-rebase", "pre-receive", "prepare-commit-msg", "proc-receive", "push-to-checkout",
    "reference-transaction", "sendemail-validate", "update"};

bool tool__git_guarded_skips(const char *path)
{
    if (base_ends_with(path, ".sample")) return true; /* git never runs a hook of this name */
    for (size_t i = 0; i < sizeof harmless_info / sizeof *harmless_info; i++)
        if (base_ends_with(path, harmless_info[i])) return true;
    return false;
}

static void add_place(tool_git_places *p, const char *path, bool is_hooks)
{
    for (size_t i = 0; i < p->n; i++)
        if (!strcmp(p->all[i].path, path)) {
            p->all[i].is_way = false;
            return;
        }
    base_grow(&p->all, &p->cap, p->n + 1, sizeof *p->all);
    p->all[p->n++] = (tool_git_place){base_xstrdup(path), is_hooks, false};
}

static void add_way(tool_git_places *p, const char *path)
{
    for (size_t i = 0; i < p->n; i++)
        if (!strcmp(p->all[i].path, path)) return;
    add_place(p, path, false);
    p->all[p->n - 1].is_way = true;
}

void tool__git_places_free(tool_git_places *p)
{
    for (size_t i = 0; i < p->n; i++) free(p->all[i].path);
    free(p->all);
    *p = (tool_git_places){0};
}

static void keep_repo(
    const tool_root *root, const char *path, const tool_kept_list *earlier, tool_kept_list *ret)
{
    for (const char *const *name = tool__git_guarded_names; *name; name++) {
        char *inner = base_fs_join(path, *name);
        tool__kept_add(root, inner, tool__git_guarded_skips, earlier, ret);
        free(inner);
    }
}

/* A folder of hooks in the tree: all of it, or, when it holds much else, what git would run. */
static void keep_place(
    const tool_root *root, const tool_git_place *p, const tool_kept_list *earlier, tool_kept_list *ret)
{
    if (!p->is_hooks) {
        tool__kept_add(root, p->path, tool__git_guarded_skips, earlier, ret);
        return;
    }
    tool_kept_list all = {0};
    tool__kept_add(root, p->path, tool__git_guarded_skips, earlier, &all);
    bool is_small = all.n <= MOST_HOOK_FILES && !all.is_cut;
    tool__kept_free(&all);
    if (is_small) tool__kept_add(root, p->path, tool__git_guarded_skips, earlier, ret);
    for (size_t i = 0; !is_small && i < sizeof hook_names / sizeof *hook_names; i++) {
        char *inner = base_fs_join(p->path, hook_names[i]);
        tool__kept_add(root, inner, NULL, earlier, ret);
        free(inner);
    }
}

/* What a link leads to in the tree is as good as the link. */
static void follow_links(const tool_root *root, const tool_kept_list *list, size_t from, tool_git_places *ret)
{
    for (size_t i = from; i < list->n; i++) {
        const tool_kept *item = &list->items[i];
        /* Where a .git leads is a repository of its own in the walk. */
        if (!S_ISLNK(item->st.st_mode) || !item->is_held || base_ends_with(item->path, ".git")) continue;
        char *whole = base_fs_join(root->path, item->path), *slash = strrchr(whole, '/');
        *slash = '\0';
        char *target = tool__git_path_below(root, whole, item->bytes.data ? item->bytes.data : "");
        struct stat st;
        if (target) add_place(ret, target, tool__look(root, target, &st) && S_ISDIR(st.st_mode));
        *slash = '/';
        char *end = realpath(whole, NULL), *inner = end ? tool__git_path_below(root, "", end) : NULL;
        if (inner && tool__look(root, inner, &st)) add_place(ret, inner, S_ISDIR(st.st_mode));
        free(target);
        free(whole);
        free(end);
        free(inner);
    }
}

/*
 * Links among the folders above a place: led elsewhere, each brings another file there. Kept are they, what they are links to,
 * and the place at the path without links.
 */
static void follow_way(const tool_root *root, const char *path, bool is_hooks, int hops, tool_git_places *ret)
{
    struct stat st;
    for (const char *end = strchr(path, '/'); end; end = strchr(end + 1, '/')) {
        char *link = base_xstrndup(path, (size_t)(end - path)), target[4097];
        ssize_t n = tool__look(root, link, &st) && S_ISLNK(st.st_mode)
                        ? readlinkat(root->fd, link, target, sizeof target - 1)
                        : -1;
        if (n >= 0) {
            target[n] = '\0';
            add_way(ret, link);
            char *folder = base_fs_join(root->path, link);
            *strrchr(folder, '/') = '\0';
            char *inner = tool__git_path_below(root, folder, target),
                 *behind = inner ? base_fs_join(inner, end + 1) : NULL;
            if (inner && tool__look(root, inner, &st) && S_ISLNK(st.st_mode)) add_way(ret, inner);
            if (behind) add_place(ret, behind, is_hooks);
            if (behind && hops) follow_way(root, behind, is_hooks, hops - 1, ret);
            free(folder);
            free(inner);
            free(behind);
        }
        free(link);
    }
}

static void on_obeyed(void *user, const char *path, bool is_hooks)
{
    if (is_hooks && base_ends_with(path, "/_")) { /* husky: the scripts lie beside the folder that is named */
        char *outer = base_xstrndup(path, strlen(path) - 2);
        add_place(user, outer, true);
        free(outer);
        return;
    }
    add_place(user, path, is_hooks);
}

static void on_own(void *user, const char *path, bool is_hooks)
{
    add_place(user, path, is_hooks);
}

/* In any letter case, as git reads its names. */
static bool names_nothing(const tool_kept *config)
{
    static const char *const words[] = {"path", "file", "fsmonitor", "command", "editor", "pager", "askpass",
        "proxy", "external", "helper", "program", "filter", "textconv", "driver", "clean", "smudge",
        "process", "cmd", "pack", "vcs", "alias", "template", "update", "hook", "prog", "tunnel", "browser",
        "smtpserver", "httpd", "ssl"};
    if (!config || !config->is_held) return !config || !config->st.st_mode;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (config->bytes.data && strcasestr(config->bytes.data, words[i])) return false;
    return true;
}

/* Where the working trees of the walk's repositories begin: absolute, NULL-terminated. */
static char **list_tops(const tool_root *root, const tool_git_walk *walk)
{
    char **tops = base_xcalloc(walk->n_repos + 1, sizeof *tops);
    for (size_t i = 0, n = 0; i < walk->n_repos; i++) {
        if (walk->repos[i].kind == TOOL_REPO_BARE) continue;
        char *folder = base_xstrndup(walk->repos[i].path, base_path_folder_length(walk->repos[i].path));
        tops[n++] = base_fs_join(root->path, folder);
        free(folder);
    }
    return tops;
}

static void add_obeyed(
    const tool_root *root, const tool_git_walk *walk, const tool_kept_list *kept, tool_git_places *ret)
{
    static const char *const files[] = {"config", "config.worktree"};
    for (size_t i = 0; i < walk->n_repos; i++) {
        const char *repo = walk->repos[i].path;
        if (walk->repos[i].kind == TOOL_REPO_POINTER) {
            char *folder = base_xstrndup(repo, base_path_folder_length(repo));
            tool__git_obeyed_by_pointer(root, folder, on_obeyed, ret);
            free(folder);
            continue;
        }
        for (size_t k = 0; k < sizeof files / sizeof *files; k++) {
            char *path = base_fs_join(repo, files[k]);
            if (!names_nothing(tool__kept_find(kept, path)))
                tool__git_obeyed(root, path, NULL, on_obeyed, ret);
            free(path);
        }
    }
    char **tops = list_tops(root, walk);
    tool__git_obeyed(root, NULL, (const char *const *)tops, on_obeyed, ret);
    for (char **top = tops; *top; top++) free(*top);
    free(tops);
}

/* The places, and what they lead to in turn. */
static void keep_places(
    const tool_root *root, const tool_kept_list *earlier, tool_kept_list *kept, tool_git_places *places)
{
    follow_links(root, kept, 0, places);
    for (size_t i = 0; i < places->n && i < MOST_HOPS * 100; i++) {
        const size_t from = kept->n;
        const tool_git_place p = places->all[i]; /* the list grows */
        keep_place(root, &p, earlier, kept);
        if (!p.is_way) follow_links(root, kept, from, places);
        follow_way(root, p.path, p.is_hooks, MOST_HOPS, places);
    }
    if (places->n > MOST_HOPS * 100) kept->is_cut = true;
    tool__kept_sort(kept);
}

void tool__git_guarded_take(const tool_root *root, const tool_git_walk *walk, const tool_kept_list *earlier,
    tool_kept_list *kept, tool_git_places *places)
{
    for (size_t i = 0; i < walk->n_repos; i++) {
        const tool_repo *r = &walk->repos[i];
        if (r->kind == TOOL_REPO_POINTER)
            tool__kept_add(root, r->path, NULL, earlier, kept);
        else
            keep_repo(root, r->path, earlier, kept);
    }
    if (!tool__git_walk_find(walk, ".git")) tool__kept_add(root, ".git", NULL, earlier, kept);
    tool__kept_sort(kept);
    add_obeyed(root, walk, kept, places);
    tool__own_files(root, on_own, places);
    keep_places(root, earlier, kept, places);
}

void tool__git_guarded_keep(const tool_root *root, const char *folder, tool_kept_list *ret)
{
    tool_git_places named = {0};
    char *config = base_fs_join(folder, "config");
    keep_repo(root, folder, NULL, ret);
    tool__git_obeyed(root, config, NULL, on_obeyed, &named);
    tool__git_obeyed_by_pointer(root, "", on_obeyed, &named);
    tool__git_obeyed(root, NULL, NULL, on_obeyed, &named);
    keep_places(root, NULL, ret, &named);
    tool__git_places_free(&named);
    free(config);
}
