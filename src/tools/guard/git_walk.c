/*
 * The walk reads each folder once and remembers its ctime, which nobody can set: the next walk looks at folders only (lstat) and
 * reads those that changed. Measured in docs/confinement.md.
 */
#include "tools/guard/git_walk.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "tools/file/git_rules.h"
#include "tools/guard/below.h"
#include "base/path.h"

/* STEPS: parts of paths that are looked up; looking at a folder costs as many as its path has. About a second. */
enum {
    MOST_FOLDERS = 1 << 18,
    MOST_STEPS = 1 << 22,
    MOST_PATH = 4096
}; /* no program can stand in a folder with a longer path */

/* HAS_OTHER_CASE: its .git is written with other letters (where these make no difference, git obeys it all the same). */
enum {
    HAS_GIT = 1,
    HAS_HEAD = 2,
    HAS_OBJECTS = 4,
    HAS_REFS = 8,
    HAS_COMMONDIR = 16,
    HAS_OTHER_CASE = 32,
    HAS_ODD = 64,
    HAS_RULES = 128
};
static const struct {
    const char *name;
    uint8_t bit;
} names_of_git[] = {
    {"HEAD", HAS_HEAD}, {"objects", HAS_OBJECTS}, {"refs", HAS_REFS}, {"commondir", HAS_COMMONDIR}};

typedef struct walker {
    const tool_root *root;
    const tool_git_walk *earlier;
    size_t root_n; /* bytes of the root's path */
    int64_t now_ns;
    size_t depth, steps;
    size_t *by_path; /* indices of earlier->folders, ascending by path */
    base_buf path;
    tool_git_walk *out;
} walker;

/* What git takes for a repository by what lies in it (is_git_directory in its setup). */
static bool looks_bare(uint8_t has)
{
    return (has & HAS_HEAD) && ((has & HAS_COMMONDIR) || ((has & HAS_OBJECTS) && (has & HAS_REFS)));
}

static void add_repo(walker *k, const char *path, tool_repo_kind kind, const struct stat *st)
{
    tool_git_walk *out = k->out;
    base_grow(&out->repos, &out->cap_repos, out->n_repos + 1, sizeof *out->repos);
    out->repos[out->n_repos++] = (tool_repo){base_xstrdup(path), kind, st->st_dev, st->st_ino, st->st_mode};
}

/* The names of folders in one folder, and which names of git's it holds. */
typedef struct listed {
    base_buf folders; /* names, each with its NUL */
    base_buf git;     /* the .git in it, in whatever letter case */
    uint8_t has;
} listed;

bool tool__git_walk_is_odd(int folder, const struct dirent *e, tool_repo_part part)
{
    struct stat st;
    const bool counts_names = part == TOOL_PART_REPO;
    if (part == TOOL_PART_NONE || part == TOOL_PART_HOOKS || e->d_type == DT_DIR) return false;
    if (e->d_type == DT_LNK) return true;
    if (e->d_type == DT_REG && !counts_names) return false;
    if (fstatat(folder, e->d_name, &st, AT_SYMLINK_NOFOLLOW)) return false;
    return S_ISLNK(st.st_mode) || (counts_names && S_ISREG(st.st_mode) && st.st_nlink > 1);
}

static void note_entry(int fd, const struct dirent *e, tool_repo_part part, listed *ret)
{
    struct stat st;
    bool is_folder = e->d_type == DT_DIR;
    if (tool__git_walk_is_odd(fd, e, part)) ret->has |= HAS_ODD;
    if (!strcasecmp(e->d_name, ".git")) {
        if (!ret->git.len || !strcmp(e->d_name, ".git")) {
            base_buf_clear(&ret->git);
            base_buf_puts(&ret->git, e->d_name);
        }
        ret->has |= HAS_GIT;
        return;
    }
    if (e->d_type == DT_UNKNOWN)
        is_folder = !fstatat(fd, e->d_name, &st, AT_SYMLINK_NOFOLLOW) && S_ISDIR(st.st_mode);
    for (size_t i = 0; i < sizeof names_of_git / sizeof *names_of_git; i++)
        if (!strcmp(e->d_name, names_of_git[i].name)) ret->has |= names_of_git[i].bit;
    if (tool__git_rules_is_name(e->d_name)) ret->has |= HAS_RULES;
    if (is_folder) base_buf_add(&ret->folders, e->d_name, strlen(e->d_name) + 1);
}

/* Somebody else's closed folder, or one that went meanwhile; anything else (no descriptor left, a bad disk) may hide one. */
static bool is_nothing_to_read(int failed)
{
    return failed == EACCES || failed == ENOENT || failed == ENOTDIR || failed == ELOOP;
}

static void read_folder(walker *k, tool_repo_part part, listed *ret)
{
    base_buf_clear(&ret->folders);
    base_buf_clear(&ret->git);
    ret->has = 0;
    int fd = tool__path_open_folder(k->root, k->path.len ? k->path.data : "");
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    if (!dir) {
        if (!is_nothing_to_read(errno)) k->out->is_cut = true;
        if (fd >= 0) close(fd);
        return;
    }
    errno = 0;
    for (const struct dirent *e; (e = readdir(dir)); errno = 0)
        if (strcmp(e->d_name, ".") && strcmp(e->d_name, "..")) note_entry(fd, e, part, ret);
    if (errno) k->out->is_cut = true;
    closedir(dir);
    if (ret->git.len && strcmp(ret->git.data, ".git")) ret->has |= HAS_OTHER_CASE;
}

static int compare_paths(const void *a, const void *b, void *user)
{
    const tool_walked *folders = user;
    return strcmp(folders[*(const size_t *)a].path, folders[*(const size_t *)b].path);
}

static const tool_walked *find_earlier(const walker *k, const char *path)
{
    size_t from = 0, to = k->by_path ? k->earlier->n_folders : 0;
    while (from < to) {
        size_t middle = from + (to - from) / 2;
        const tool_walked *f = &k->earlier->folders[k->by_path[middle]];
        int order = strcmp(f->path, path);
        if (!order) return f;
        if (order < 0)
            from = middle + 1;
        else
            to = middle;
    }
    return NULL;
}

/* The folders that lie directly in an earlier one. */
static void list_earlier(const walker *k, const tool_walked *f, listed *ret)
{
    const tool_walked *end = f + 1 + f->n_below;
    for (const tool_walked *inner = f + 1; inner < end; inner += 1 + inner->n_below) {
        const char *name = base_path_name(inner->path);
        if (!strcasecmp(name, ".git"))
            base_buf_puts(&ret->git, name);
        else
            base_buf_add(&ret->folders, name, strlen(name) + 1);
    }
    ret->has = f->has;
    /* A .git that is no folder stands in no list of folders. */
    if ((f->has & HAS_GIT) && !ret->git.len) base_buf_puts(&ret->git, ".git");
}

static void walk(walker *k, tool_repo_part part, bool is_repo);

/* Goes into `name` in the folder that k->path names. */
static void enter(walker *k, const char *name, tool_repo_part part, bool is_repo)
{
    size_t n = k->path.len;
    if (k->root_n + n + strlen(name) + 2 >= MOST_PATH) return;
    if (n) base_buf_putc(&k->path, '/');
    base_buf_puts(&k->path, name);
    k->depth++;
    walk(k, part, is_repo);
    k->depth--;
    k->path.len = n;
    if (k->path.data) k->path.data[n] = '\0';
}

/* A .git: a folder is a repository, anything else points to one. */
static void meet_git(walker *k, const char *name)
{
    struct stat st;
    size_t n = k->path.len;
    if (k->root_n + n + strlen(name) + 2 >= MOST_PATH) return;
    if (n) base_buf_putc(&k->path, '/');
    base_buf_puts(&k->path, name);
    bool is_there = !fstatat(k->root->fd, k->path.data, &st, AT_SYMLINK_NOFOLLOW);
    if (is_there) add_repo(k, k->path.data, S_ISDIR(st.st_mode) ? TOOL_REPO_FOLDER : TOOL_REPO_POINTER, &st);
    k->path.len = n;
    k->path.data[n] = '\0';
    if (is_there && S_ISDIR(st.st_mode)) enter(k, name, TOOL_PART_REPO, true);
}

/* Of a repository's folder. */
static tool_repo_part part_of(const char *name)
{
    static const struct {
        const char *name;
        tool_repo_part part;
    } parts[] = {{"refs", TOOL_PART_REFS}, {"objects", TOOL_PART_OBJECTS}, {"hooks", TOOL_PART_HOOKS}};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (!strcmp(name, parts[i].name)) return parts[i].part;
    return TOOL_PART_REPO;
}

/* is_repo: the folder is a repository that is known by its name. */
static void walk(walker *k, tool_repo_part part, bool is_repo)
{
    tool_git_walk *out = k->out;
    const char *path = k->path.len ? k->path.data : "";
    struct stat st;
    listed in = {0};
    k->steps += k->depth;
    if (out->n_folders >= MOST_FOLDERS || k->steps >= MOST_STEPS) {
        out->is_cut = true;
        return;
    }
    if (fstatat(k->root->fd, *path ? path : ".", &st, AT_SYMLINK_NOFOLLOW) || !S_ISDIR(st.st_mode)) return;
    const tool_walked *old = find_earlier(k, path);
    /* An earlier walk that was cut has not all that a folder held, and none has the name of a .git that is no folder. */
    bool is_same = old && !k->earlier->is_cut && !(old->has & HAS_OTHER_CASE) && old->is_settled &&
                   old->dev == st.st_dev && old->ino == st.st_ino && old->ctime_ns == tool__ns_of(st.st_ctim);
    if (is_same && (old->part == part || looks_bare(old->has)))
        list_earlier(k, old, &in);
    else
        read_folder(k, part, &in);
    if (!is_repo && looks_bare(in.has)) {
        add_repo(k, path, TOOL_REPO_BARE, &st);
        is_repo = true;
        part = TOOL_PART_REPO;
        if (!is_same || old->part != part) read_folder(k, part, &in);
    }
    size_t at = out->n_folders;
    base_grow(&out->folders, &out->cap_folders, at + 1, sizeof *out->folders);
    out->folders[out->n_folders++] = (tool_walked){.path = base_xstrdup(path),
        .dev = st.st_dev,
        .ino = st.st_ino,
        .ctime_ns = tool__ns_of(st.st_ctim),
        .has = in.has,
        .part = part,
        .has_rules = (in.has & HAS_RULES) != 0,
        .has_odd = (in.has & HAS_ODD) != 0,
        .is_settled = k->now_ns - tool__ns_of(st.st_ctim) > tool__coarse_ns};
    if (in.has & HAS_GIT) meet_git(k, in.git.data);
    for (const char *name = in.folders.data; name && name < in.folders.data + in.folders.len;
         name += strlen(name) + 1)
        enter(k, name, is_repo ? part_of(name) : part, false);
    out->folders[at].n_below = (uint32_t)(out->n_folders - at - 1);
    base_buf_free(&in.folders);
    base_buf_free(&in.git);
}

void tool__git_walk(const tool_root *root, const tool_git_walk *earlier, tool_git_walk *ret)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    *ret = (tool_git_walk){0};
    walker k = {.root = root,
        .earlier = earlier,
        .root_n = strlen(root->path),
        .now_ns = tool__ns_of(now),
        .out = ret};
    if (earlier && earlier->n_folders) {
        k.by_path = base_xcalloc(earlier->n_folders, sizeof *k.by_path);
        for (size_t i = 0; i < earlier->n_folders; i++) k.by_path[i] = i;
        qsort_r(k.by_path, earlier->n_folders, sizeof *k.by_path, compare_paths, earlier->folders);
    }
    walk(&k, TOOL_PART_NONE, false);
    free(k.by_path);
    base_buf_free(&k.path);
}

const tool_repo *tool__git_walk_find(const tool_git_walk *w, const char *path)
{
    for (size_t i = 0; i < w->n_repos; i++)
        if (!strcmp(w->repos[i].path, path)) return &w->repos[i];
    return NULL;
}

const char *tool__git_walk_folder(const tool_git_walk *w, dev_t dev, ino_t ino)
{
    for (size_t i = 0; i < w->n_folders; i++)
        if (w->folders[i].ino == ino && w->folders[i].dev == dev) return w->folders[i].path;
    return NULL;
}

bool tool__git_walk_had(const tool_git_walk *w, const char *path)
{
    for (size_t i = 0; i < w->n_folders; i++)
        if (!strcmp(w->folders[i].path, path)) return true;
    return false;
}

void tool__git_walk_free(tool_git_walk *w)
{
    for (size_t i = 0; i < w->n_repos; i++) free(w->repos[i].path);
    for (size_t i = 0; i < w->n_folders; i++) free(w->folders[i].path);
    free(w->repos);
    free(w->folders);
    *w = (tool_git_walk){0};
}
