/*
 * The files of a tree: git's view (the index and what is untracked and not ignored), or a bounded walk where
 * there is no git.
 *
 * A listing is a sorted array of names and nothing more; links, submodules and nested repositories are left
 * out, and every later access goes through safe_path.c again. Near names answer a path that does not exist.
 */
#include "tools/tree/listing.h"
#include "tools/file/safe_path.h"
#include "tools/tree/workspace.h"
#include "tools/tree/leftover.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/edits.h"
#include "base/mem.h"
#include "base/path.h"

/* What a walk without .gitignore leaves out: other programs' products, never a person's text. */
static const char *const walk_skips[] = {".git", ".hg", ".svn", "node_modules", "__pycache__", ".venv",
    ".cache", ".mypy_cache", ".pytest_cache", ".tox"};

/* The files of the index stand first, sorted, while others are added. */
static bool is_tracked(const tool_listing *l, const char *path, size_t n)
{
    const tool_listing tracked = {.files = l->files, .n = l->n_tracked};
    bool found = false;
    char *copy = l->n_tracked ? base_xstrndup(path, n) : NULL;
    if (copy) tool__listing_find(&tracked, copy, &found);
    free(copy);
    return found;
}

static bool add(tool_listing *l, const char *path, size_t n)
{
    if (l->n >= TOOL_MAX_FILES) {
        l->is_cut |= !is_tracked(l, path, n);
        return !l->is_cut;
    }
    if (!n || n > TOOL_MAX_PATH || path[n - 1] == '/') return true; /* "sub/": a nested repository */
    const char *slash = memrchr(path, '/', n);
    const char *name = slash ? slash + 1 : path;
    char copy[64];
    size_t name_n = (size_t)(path + n - name);
    if (name_n < sizeof copy) {
        memcpy(copy, name, name_n);
        copy[name_n] = '\0';
        if (tool__leftover_is_name(copy)) return true;
    }
    if (is_tracked(l, path, n)) return true;
    base_grow(&l->files, &l->cap, l->n + 1, sizeof *l->files);
    l->files[l->n++] = (tool_listed){.path = base_xstrndup(path, n), .size = -1};
    return true;
}

static int by_path(const void *a, const void *b)
{
    return strcmp(((const tool_listed *)a)->path, ((const tool_listed *)b)->path);
}

static void sort_unique(tool_listing *l)
{
    if (!l->n) return;
    qsort(l->files, l->n, sizeof *l->files, by_path);
    size_t kept = 1;
    for (size_t i = 1; i < l->n; i++) {
        if (!strcmp(l->files[i].path, l->files[kept - 1].path))
            free(l->files[i].path);
        else
            l->files[kept++] = l->files[i];
    }
    l->n = kept;
}

static bool is_cancelled(const atomic_bool *cancel)
{
    return cancel && atomic_load_explicit(cancel, memory_order_relaxed);
}

/* What a listing is made of. */
typedef struct source {
    const tool_root *root;
    git_repository *repo; /* NULL: a walk */
    const atomic_bool *cancel;
    bool is_whole; /* links too, and what nested repositories hold */
    tool_listing *l;
} source;

static void list_nested(const source *s, const char *path);

static bool is_listed_mode(const source *s, uint32_t mode)
{
    return (mode & S_IFMT) == S_IFREG || (s->is_whole && (mode & S_IFMT) == S_IFLNK);
}

/* A file that git would call new. 1: git need not keep it for us. */
static int on_untracked(const git_diff *diff, const git_diff_delta *delta, const char *pathspec, void *user)
{
    const source *s = user;
    const git_diff_file *f = &delta->new_file;
    if (is_cancelled(s->cancel)) return -1;
    if (delta->status != GIT_DELTA_UNTRACKED) return 1;
    if (s->is_whole && base_ends_with(f->path, "/"))
        list_nested(s, f->path);
    else if (!f->mode || is_listed_mode(s, f->mode))
        add(s->l, f->path, strlen(f->path));
    return 1;
}

/*
 * What git does not ignore. Asked as the difference to a tree without files: the difference to the index would hash every tracked
 * file whose times are not those of the index, all of it (28 s for 1 GiB), each time.
 */
static int list_untracked(const source *s)
{
    git_diff *diff = NULL;
    git_diff_options options = GIT_DIFF_OPTIONS_INIT;
    options.flags = GIT_DIFF_INCLUDE_UNTRACKED | GIT_DIFF_RECURSE_UNTRACKED_DIRS | GIT_DIFF_IGNORE_SUBMODULES;
    options.notify_cb = on_untracked;
    options.payload = (void *)s;
    int failed = git_diff_tree_to_workdir(&diff, s->repo, NULL, &options);
    git_diff_free(diff);
    return failed;
}

static void list_index(const source *s)
{
    git_index *index = NULL;
    if (git_repository_index(&index, s->repo) == 0) {
        git_index_read(index, 0);
        size_t n = git_index_entrycount(index);
        for (size_t i = 0; i < n; i++) {
            const git_index_entry *e = git_index_get_byindex(index, i);
            /* Links and submodules have modes 0120000 and 0160000. */
            if (e && s->is_whole && (e->mode & S_IFMT) == 0160000) list_nested(s, e->path);
            if (e && is_listed_mode(s, e->mode) && !add(s->l, e->path, strlen(e->path))) break;
        }
    }
    git_index_free(index);
}

bool tool__listing_skips(const char *name, git_repository *repo)
{
    if (repo) return !strcasecmp(name, ".git");
    for (size_t i = 0; i < sizeof walk_skips / sizeof *walk_skips; i++)
        if (!strcasecmp(name, walk_skips[i])) return true;
    return false;
}

typedef struct walking {
    tool_listing *l;
    git_repository *repo; /* for what it ignores; NULL: nothing is */
    const atomic_bool *cancel;
    bool is_whole;
    dev_t device;
    base_buf path;
} walking;

static bool is_ignored(const walking *w, bool is_folder)
{
    int ignored = 0;
    if (!w->repo) return false;
    base_buf name = {0};
    base_buf_printf(&name, "%s%s", w->path.data, is_folder ? "/" : "");
    if (git_ignore_path_is_ignored(&ignored, w->repo, name.data)) ignored = 0;
    base_buf_free(&name);
    return ignored;
}

/* Takes fd. Folders of other file systems and repositories inside are not entered. */
static void walk(walking *w, int fd, int depth)
{
    DIR *dir = fdopendir(fd);
    if (!dir) {
        close(fd);
        return;
    }
    size_t start = w->path.len;
    for (struct dirent *e; !w->l->is_cut && !is_cancelled(w->cancel) && (e = readdir(dir));) {
        if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, "..")) continue;
        struct stat st;
        if (fstatat(dirfd(dir), e->d_name, &st, AT_SYMLINK_NOFOLLOW)) continue;
        w->path.len = start;
        if (start) base_buf_putc(&w->path, '/');
        base_buf_puts(&w->path, e->d_name);
        if (S_ISREG(st.st_mode) || (w->is_whole && S_ISLNK(st.st_mode))) {
            if (!is_ignored(w, false) && !add(w->l, w->path.data, w->path.len)) break;
        } else if (S_ISDIR(st.st_mode) && st.st_dev == w->device &&
                   !tool__listing_skips(e->d_name, w->repo) && !is_ignored(w, true)) {
            if (depth == TOOL_MAX_DEPTH) {
                w->l->is_shallow = true;
                continue;
            }
            int next = openat(dirfd(dir), e->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
            if (next >= 0 && !w->is_whole && !faccessat(next, ".git", F_OK, AT_SYMLINK_NOFOLLOW))
                close(next);
            else if (next >= 0)
                walk(w, next, depth + 1);
        }
    }
    w->path.len = start;
    closedir(dir);
}

static int list_folders(const source *s, base_err *err)
{
    walking w = {.l = s->l, .repo = s->repo, .cancel = s->cancel, .is_whole = s->is_whole};
    struct stat st;
    int fd = tool__path_open(s->root, "", O_RDONLY | O_DIRECTORY);
    if (fd < 0 || fstat(fd, &st)) {
        int code = base_fail_sys(err, "%s", s->root->path);
        if (fd >= 0) close(fd);
        return code;
    }
    w.device = st.st_dev;
    base_buf_puts(&w.path, "");
    walk(&w, fd, 1);
    base_buf_free(&w.path);
    return BASE_OK;
}

/* A repository inside of the tree: its files as a walk sees them, since its own rules are not asked. */
static void list_nested(const source *s, const char *path)
{
    walking w = {.l = s->l, .cancel = s->cancel, .is_whole = true};
    struct stat st;
    size_t n = strlen(path);
    while (n && path[n - 1] == '/') n--;
    base_buf_add(&w.path, path, n);
    int fd = n ? tool__path_open(s->root, w.path.data, O_RDONLY | O_DIRECTORY) : -1;
    if (fd >= 0 && !fstat(fd, &st)) {
        w.device = st.st_dev;
        walk(&w, fd, 1);
    } else if (fd >= 0) {
        close(fd);
    }
    base_buf_free(&w.path);
}

static int make(const source *s, tool_listing *ret, base_err *err)
{
    tool_listing *l = s->l;
    int code = BASE_OK;
    if (s->root->is_bare) {
        /* nothing: its files are git's own */
    } else if (s->repo) {
        list_index(s);
        sort_unique(l);
        l->n_tracked = l->n;
        /* libgit2 lists nothing at all of a tree with folders a hundred deep, so it is walked then. */
        if (!is_cancelled(s->cancel) && list_untracked(s) && !is_cancelled(s->cancel))
            code = list_folders(s, err);
    } else {
        code = list_folders(s, err);
    }
    if (!code && is_cancelled(s->cancel)) code = base_fail(err, BASE_E_CANCELLED, "cancelled");
    if (code) {
        tool__listing_free(l);
        return code;
    }
    sort_unique(l);
    *ret = *l;
    return BASE_OK;
}

int tool__listing_make(
    const tool_root *root, git_repository *repo, const atomic_bool *cancel, tool_listing *ret, base_err *err)
{
    tool_listing l = {0};
    return make(&(source){.root = root, .repo = repo, .cancel = cancel, .l = &l}, ret, err);
}

int tool__listing_make_whole(
    const tool_root *root, git_repository *repo, const atomic_bool *cancel, tool_listing *ret, base_err *err)
{
    tool_listing l = {0};
    return make(&(source){.root = root, .repo = repo, .cancel = cancel, .is_whole = true, .l = &l}, ret, err);
}

void tool__listing_leave_out(tool_listing *l, git_pathspec *which)
{
    size_t kept = 0;
    for (size_t i = 0; i < l->n; i++) {
        if (git_pathspec_matches_path(which, GIT_PATHSPEC_DEFAULT, l->files[i].path) > 0) {
            free(l->files[i].path);
            continue;
        }
        l->files[kept++] = l->files[i];
    }
    l->n = kept;
}

void tool__listing_free(tool_listing *l)
{
    for (size_t i = 0; i < l->n; i++) free(l->files[i].path);
    free(l->files);
    *l = (tool_listing){0};
}

size_t tool__listing_find(const tool_listing *l, const char *path, bool *ret_found)
{
    size_t low = 0, high = l->n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (strcmp(l->files[middle].path, path) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    if (ret_found) *ret_found = low < l->n && !strcmp(l->files[low].path, path);
    return low;
}

/* ---- near names ---- */

size_t tool__listing_near(const tool_listing *l, const char *path, const char **ret, size_t cap)
{
    /*
     * The same name in another folder costs 0, the same stem 1, then edits of the name; a wrong folder costs
     * a little more.
     */
    const char *name = base_path_name(path);
    size_t stem = strcspn(name, "."), n = 0;
    if (!*name || !cap) return 0;
    unsigned cost[8];
    if (cap > 8) cap = 8;
    unsigned most = (unsigned)strlen(name) / 3 + 1;
    for (size_t i = 0; i < l->n; i++) {
        const char *other = base_path_name(l->files[i].path);
        unsigned c = !strcasecmp(name, other) ? 0
                     : stem > 1 && strcspn(other, ".") == stem && !strncasecmp(name, other, stem)
                         ? 1
                         : base_edits(name, other, most) + 1;
        if (c > most + 1) continue;
        c = c * 4 + (l->files[i].path != other &&
                        strncmp(path, l->files[i].path, (size_t)(other - l->files[i].path)) != 0);
        size_t at = n < cap ? n : cap;
        while (at && cost[at - 1] > c) at--;
        if (at >= cap) continue;
        size_t last = n < cap ? n : cap - 1;
        for (size_t k = last; k > at; k--) {
            cost[k] = cost[k - 1];
            ret[k] = ret[k - 1];
        }
        cost[at] = c;
        ret[at] = l->files[i].path;
        if (n < cap) n++;
    }
    return n;
}
