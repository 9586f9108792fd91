/* Looking through what git fills itself (contract: git_links.h). */
#include "tools/guard/git_links.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/mem.h"
#include "tools/guard/below.h"

typedef struct search {
    const tool_root *root;
    void (*fn)(
        void *user, const char *path, const struct stat *st); /* of a link, of a file with several names */
    void *user;
} search;

static void look_into(const search *s, const tool_walked *folder)
{
    int fd = tool__path_open_folder(s->root, folder->path);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    if (!dir && fd >= 0) close(fd);
    for (const struct dirent *e; dir && (e = readdir(dir));) {
        struct stat st;
        if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, "..")) continue;
        if (!tool__git_walk_is_odd(dirfd(dir), e, folder->part)) continue;
        if (fstatat(dirfd(dir), e->d_name, &st, AT_SYMLINK_NOFOLLOW)) continue;
        char *path = *folder->path ? base_fs_join(folder->path, e->d_name) : base_xstrdup(e->d_name);
        s->fn(s->user, path, &st);
        free(path);
    }
    if (dir) closedir(dir);
}

/* The walk has read all folders and knows which are worth it. */
static void look_through(const search *s, const tool_git_walk *walk)
{
    for (size_t i = 0; i < walk->n_folders; i++)
        if (walk->folders[i].has_odd) look_into(s, &walk->folders[i]);
}

typedef struct keeping {
    const tool_root *root;
    tool_kept_list *list;
} keeping;

static void keep(void *user, const char *path, const struct stat *st)
{
    keeping *k = user;
    if (S_ISLNK(st->st_mode)) tool__kept_add(k->root, path, NULL, NULL, k->list);
}

void tool__git_links_keep(const tool_root *root, const tool_git_walk *walk, tool_kept_list *ret)
{
    keeping k = {root, ret};
    search s = {.root = root, .fn = keep, .user = &k};
    look_through(&s, walk);
    tool__kept_sort(ret);
}

/* HEAD by a link is an old form of git's own: it names a branch and leads to no other place. */
static bool is_ref(const tool_root *root, const char *path)
{
    char target[TOOL_MAX_PATH];
    const char *name;
    size_t made;
    int folder = tool__path_open_parent(root, path, false, &name, &made);
    ssize_t n = folder < 0 ? -1 : readlinkat(folder, name, target, sizeof target - 1);
    if (folder >= 0) close(folder);
    if (n < 0) return false;
    target[n] = '\0';
    return !strcmp(name, "HEAD") && !strncmp(target, "refs/heads/", 11) && !strstr(target, "..");
}

static bool is_kept_file(const tool_git_check *c, const struct stat *st)
{
    for (size_t i = 0; i < c->g->kept.n; i++) {
        const struct stat *kept = &c->g->kept.items[i].st;
        if (S_ISREG(kept->st_mode) && kept->st_ino == st->st_ino && kept->st_dev == st->st_dev) return true;
    }
    return false;
}

typedef struct found {
    char **all;
    size_t n, cap;
    tool_git_check *c;
} found;

static void note(void *user, const char *path, const struct stat *st)
{
    found *f = user;
    const tool_kept *before = tool__kept_find(&f->c->g->links, path);
    const bool is_bad =
        S_ISLNK(st->st_mode)
            ? !(before && tool__kept_compare(&f->c->w->root, before, NULL) == TOOL_KEPT_SAME) &&
                  !is_ref(&f->c->w->root, path)
            : is_kept_file(f->c, st) && !tool__kept_find(&f->c->g->kept, path);
    if (!is_bad) return;
    base_grow(&f->all, &f->cap, f->n + 1, sizeof *f->all);
    f->all[f->n++] = base_xstrdup(path);
}

/* Folders of what was a repository before the command and is none behind it: another command may make it one again. */
static void look_through_former(const search *s, const tool_git_walk *before, const tool_git_walk *now)
{
    for (size_t i = 0; i < before->n_repos; i++) {
        const char *repo = before->repos[i].path;
        if (before->repos[i].kind != TOOL_REPO_BARE || tool__git_walk_find(now, repo)) continue;
        for (size_t k = 0; k < before->n_folders; k++) {
            const char *path = before->folders[k].path;
            if (!*repo || !strcmp(path, repo) || tool__lies_in(path, repo)) look_into(s, &before->folders[k]);
        }
    }
}

void tool__git_links_check(tool_git_check *c)
{
    found f = {.c = c};
    const search s = {.root = &c->w->root, .fn = note, .user = &f};
    look_through(&s, &c->now);
    look_through_former(&s, &c->g->walk, &c->now);
    for (size_t i = 0; i < f.n; i++) {
        tool__git_set_aside(c, f.all[i], "made",
            ", a link where git writes, which would have led it to another file: it was moved aside.");
        free(f.all[i]);
    }
    free(f.all);
}
