/*
 * Is a listing still true? Listing a tree of 100,000 files asks git about every one of them; but a file
 * comes, goes or is renamed only with the time of its folder. So the folders' times are kept, and those of
 * what else decides (the index, the lists of what is ignored). A folder that changed just before the listing
 * was made may have changed once more within the clock's grain: such a listing is made again.
 *
 * Contents are not told by this: workspace.c looks at each file that it holds. Engine thread.
 */
#include "tools/tree/listing.h"
#include "tools/file/safe_path.h"
#include "tools/tree/workspace.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/path.h"

#define GRAIN_NS ((int64_t)2000000000) /* the coarsest file systems' */

static int64_t ns_of(struct timespec t)
{
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* What is there now; a missing one is remembered as that. */
static void look(int root, tool_folder *f)
{
    struct stat st;
    bool is_there = !fstatat(root, f->path, &st, AT_SYMLINK_NOFOLLOW);
    f->ino = is_there ? (uint64_t)st.st_ino : 0;
    f->mtime_ns = is_there ? ns_of(st.st_mtim) : 0;
    f->ctime_ns = is_there ? ns_of(st.st_ctim) : 0;
}

static void add(tool_folders *f, const char *path, size_t n)
{
    base_grow(&f->all, &f->cap, f->n + 1, sizeof *f->all);
    f->all[f->n++] = (tool_folder){.path = base_xstrndup(n ? path : ".", n ? n : 1)};
}

static int by_path(const void *a, const void *b)
{
    return strcmp(((const tool_folder *)a)->path, ((const tool_folder *)b)->path);
}

/* The folders of the listed files and those above them, sorted, each once. */
static void add_listed(tool_folders *f, const tool_listing *l)
{
    const char *last = "";
    size_t last_n = 0;
    add(f, "", 0);
    for (size_t i = 0; i < l->n; i++) {
        const char *path = l->files[i].path, *slash = strrchr(path, '/');
        size_t n = slash ? (size_t)(slash - path) : 0;
        if (n == last_n && !memcmp(path, last, n)) continue;
        last = path;
        last_n = n;
        for (; n; n = slash ? (size_t)(slash - path) : 0) {
            add(f, path, n);
            slash = memrchr(path, '/', n);
        }
    }
    qsort(f->all, f->n, sizeof *f->all, by_path);
    size_t kept = 1;
    for (size_t i = 1; i < f->n; i++) {
        if (!strcmp(f->all[i].path, f->all[kept - 1].path))
            free(f->all[i].path);
        else
            f->all[kept++] = f->all[i];
    }
    f->n = kept;
}

/* A folder without a listed file: may one come to be listed in it? */
static bool may_hold_files(const tool_root *root, git_repository *repo, tool_folders *f, const char *path)
{
    base_buf name = {0};
    struct stat st;
    int ignored = 0;
    base_buf_printf(&name, "%s/.git", path);
    bool is_other = !fstatat(root->fd, name.data, &st, AT_SYMLINK_NOFOLLOW); /* a repository of its own */
    if (is_other) add(f, name.data, name.len);                               /* until it ceases to be one */
    base_buf_clear(&name);
    base_buf_printf(&name, "%s/", path);
    if (repo && !is_other && git_ignore_path_is_ignored(&ignored, repo, name.data)) ignored = 0;
    base_buf_free(&name);
    return !is_other && !ignored;
}

static size_t depth_of(const char *path)
{
    size_t depth = 1;
    for (; *path; path++) depth += *path == '/';
    return depth;
}

/* Adds the folders right below `path` that hold no listed file but may hold one later. The first n_listed are sorted. */
static void add_empty(
    tool_folders *f, const tool_root *root, git_repository *repo, const char *path, size_t n_listed)
{
    int fd = openat(root->fd, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *dir = fd >= 0 && depth_of(path) < TOOL_MAX_DEPTH ? fdopendir(fd) : NULL;
    if (!dir) {
        if (fd >= 0) close(fd);
        return;
    }
    base_buf below = {0};
    for (struct dirent *e; (e = readdir(dir));) {
        struct stat st;
        if (e->d_type != DT_DIR && e->d_type != DT_UNKNOWN) continue;
        if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, "..") || tool__listing_skips(e->d_name, repo))
            continue;
        if (e->d_type == DT_UNKNOWN &&
            (fstatat(fd, e->d_name, &st, AT_SYMLINK_NOFOLLOW) || !S_ISDIR(st.st_mode)))
            continue;
        base_buf_clear(&below);
        if (strcmp(path, ".")) base_buf_printf(&below, "%s/", path);
        base_buf_puts(&below, e->d_name);
        tool_folder key = {.path = below.data};
        if (!bsearch(&key, f->all, n_listed, sizeof key, by_path) &&
            may_hold_files(root, repo, f, below.data))
            add(f, below.data, below.len);
    }
    base_buf_free(&below);
    closedir(dir);
}

/* What else decides which files git lists. Its folder's path ends in a slash. */
static void add_rules(tool_folders *f, git_repository *repo, const tool_listing *l)
{
    git_config *config = NULL;
    git_buf excludes = GIT_BUF_INIT;
    base_buf path = {0};
    base_buf_printf(&path, "%sindex", git_repository_path(repo));
    add(f, path.data, path.len);
    base_buf_clear(&path);
    base_buf_printf(&path, "%sinfo/exclude", git_repository_commondir(repo));
    add(f, path.data, path.len);
    base_buf_free(&path);
    if (!git_repository_config_snapshot(&config, repo) &&
        !git_config_get_path(&excludes, config, "core.excludesfile"))
        add(f, excludes.ptr, strlen(excludes.ptr));
    git_buf_dispose(&excludes);
    git_config_free(config);
    for (size_t i = 0; i < l->n; i++) {
        if (!strcmp(base_path_name(l->files[i].path), ".gitignore"))
            add(f, l->files[i].path, strlen(l->files[i].path));
    }
}

void tool__folders_take(
    const tool_root *root, git_repository *repo, const tool_listing *l, int64_t since_ns, tool_folders *ret)
{
    tool__folders_free(ret);
    if (root->is_bare || l->is_cut) return; /* never the same */
    tool_folders f = {0};
    add_listed(&f, l);
    size_t n_listed = f.n;
    for (size_t i = 0; i < f.n; i++) { /* grows */
        char *path = base_xstrdup(f.all[i].path);
        add_empty(&f, root, repo, path, n_listed);
        free(path);
    }
    if (repo) add_rules(&f, repo, l);
    f.is_settled = true;
    for (size_t i = 0; i < f.n; i++) {
        look(root->fd, &f.all[i]);
        int64_t last = f.all[i].mtime_ns > f.all[i].ctime_ns ? f.all[i].mtime_ns : f.all[i].ctime_ns;
        if (last > since_ns - GRAIN_NS) f.is_settled = false;
    }
    *ret = f;
}

bool tool__folders_are_same(const tool_root *root, const tool_folders *f)
{
    bool same = f->is_settled;
    for (size_t i = 0; same && i < f->n; i++) {
        tool_folder now = {.path = f->all[i].path};
        look(root->fd, &now);
        same = now.ino == f->all[i].ino && now.mtime_ns == f->all[i].mtime_ns &&
               now.ctime_ns == f->all[i].ctime_ns;
    }
    return same;
}

void tool__folders_free(tool_folders *f)
{
    for (size_t i = 0; i < f->n; i++) free(f->all[i].path);
    free(f->all);
    *f = (tool_folders){0};
}
