/* Looking through what git fills itself (contract: git_links.h). */
#include "tools/guard/git_links.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/mem.h"

enum { MOST_ENTRIES = 1 << 18, MOST_DEPTH = 64 };

typedef struct search {
    const tool_root *root;
    void (*fn)(
        void *user, const char *path, const struct stat *st); /* of a link, of a file with several names */
    void *user;
    size_t left;
} search;

/* What is compared for itself, and repositories that the walk has as such. */
static bool is_elsewhere(const char *name)
{
    static const char *const names[] = {"hooks", "modules", "worktrees"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!strcmp(name, names[i])) return true;
    return false;
}

/* What git writes there it puts in its place whole: no other name of a file gets it. Of objects only the folders count. */
typedef enum repo_part { IN_REPO, IN_REFS, IN_OBJECTS } repo_part;

static repo_part part_of(repo_part outer, int depth, const char *name)
{
    if (depth) return outer;
    return !strcmp(name, "objects") ? IN_OBJECTS : !strcmp(name, "refs") ? IN_REFS : IN_REPO;
}

static void look_through(search *s, const char *folder, int depth, repo_part part)
{
    int fd = tool__path_open_folder(s->root, folder);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    if (!dir && fd >= 0) close(fd);
    for (const struct dirent *e; dir && s->left && (e = readdir(dir));) {
        struct stat st;
        if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, "..")) continue;
        s->left--;
        if (part != IN_REPO && e->d_type == DT_REG) continue;
        if (fstatat(dirfd(dir), e->d_name, &st, AT_SYMLINK_NOFOLLOW)) continue;
        const bool is_odd =
            S_ISLNK(st.st_mode) || (S_ISREG(st.st_mode) && st.st_nlink > 1 && part == IN_REPO);
        const bool goes_on = S_ISDIR(st.st_mode) && part != IN_OBJECTS && depth < MOST_DEPTH &&
                             !(depth == 0 && is_elsewhere(e->d_name));
        if (!is_odd && !goes_on) continue;
        char *path = base_fs_join(folder, e->d_name);
        if (is_odd)
            s->fn(s->user, path, &st);
        else
            look_through(s, path, depth + 1, part_of(part, depth, e->d_name));
        free(path);
    }
    if (dir) closedir(dir);
}

static bool look_through_all(search *s, const tool_git_walk *walk)
{
    s->left = MOST_ENTRIES;
    for (size_t i = 0; i < walk->n_repos; i++)
        if (walk->repos[i].kind != TOOL_REPO_POINTER) look_through(s, walk->repos[i].path, 0, IN_REPO);
    return s->left > 0;
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
    if (!look_through_all(&s, walk)) ret->is_cut = true;
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

void tool__git_links_check(tool_git_check *c)
{
    /* Where they were, and where the command made new ones (worktrees). What was moved aside meanwhile is not there. */
    const tool_git_walk *const walks[] = {&c->g->walk, &c->now};
    for (size_t k = 0; k < sizeof walks / sizeof *walks; k++) {
        found f = {.c = c};
        search s = {.root = &c->w->root, .fn = note, .user = &f};
        if (!look_through_all(&s, walks[k])) c->is_cut = true;
        for (size_t i = 0; i < f.n; i++) {
            tool__git_set_aside(c, f.all[i], "made",
                ", a link where git writes, which would have led it to another file: it was moved aside.");
            free(f.all[i]);
        }
        free(f.all);
    }
}
