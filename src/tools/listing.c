/*
 * The files of a tree: git's view (the index and what is untracked and not ignored), or a bounded walk where
 * there is no git.
 *
 * A listing is a sorted array of names and nothing more; links, submodules and nested repositories are left
 * out, and every later access goes through safe_path.c again. Near names answer a path that does not exist.
 */
#include "tools/internal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/mem.h"

/* What a walk without .gitignore leaves out: other programs' products, never a person's text. */
static const char *const walk_skips[] = {".git", ".hg", ".svn", "node_modules", "__pycache__", ".venv",
    ".cache", ".mypy_cache", ".pytest_cache", ".tox"};
#define WALK_DEPTH 40

static bool add(tool_listing *l, const char *path, size_t n)
{
    if (l->n >= TOOL_MAX_FILES) {
        l->is_cut = true;
        return false;
    }
    if (!n || n > TOOL_MAX_PATH || path[n - 1] == '/') return true; /* "sub/": a nested repository */
    const char *slash = memrchr(path, '/', n);
    const char *name = slash ? slash + 1 : path;
    char copy[64];
    size_t name_n = (size_t)(path + n - name);
    if (name_n < sizeof copy) {
        memcpy(copy, name, name_n);
        copy[name_n] = '\0';
        if (tool__is_temporary_name(copy)) return true;
    }
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

static int list_git(git_repository *repo, const atomic_bool *cancel, tool_listing *l, base_err *err)
{
    git_index *index = NULL;
    git_status_list *status = NULL;
    int code = BASE_OK;
    if (git_repository_index(&index, repo) == 0) {
        git_index_read(index, 0);
        size_t n = git_index_entrycount(index);
        for (size_t i = 0; i < n; i++) {
            const git_index_entry *e = git_index_get_byindex(index, i);
            /* Links and submodules have modes 0120000 and 0160000. */
            if (e && (e->mode & S_IFMT) == S_IFREG && !add(l, e->path, strlen(e->path))) break;
        }
    }
    git_index_free(index);
    if (cancel && atomic_load_explicit(cancel, memory_order_relaxed))
        return base_fail(err, BASE_E_CANCELLED, "cancelled");
    git_status_options options = GIT_STATUS_OPTIONS_INIT;
    options.show = GIT_STATUS_SHOW_WORKDIR_ONLY;
    options.flags = GIT_STATUS_OPT_INCLUDE_UNTRACKED | GIT_STATUS_OPT_RECURSE_UNTRACKED_DIRS |
                    GIT_STATUS_OPT_EXCLUDE_SUBMODULES | GIT_STATUS_OPT_NO_REFRESH;
    if (git_status_list_new(&status, repo, &options) == 0) {
        size_t n = git_status_list_entrycount(status);
        for (size_t i = 0; i < n; i++) {
            const git_status_entry *e = git_status_byindex(status, i);
            if (!(e->status & GIT_STATUS_WT_NEW) || !e->index_to_workdir) continue;
            const git_diff_file *f = &e->index_to_workdir->new_file;
            if (f->mode && (f->mode & S_IFMT) != S_IFREG) continue;
            if (!add(l, f->path, strlen(f->path))) break;
        }
    } else {
        const git_error *e = git_error_last();
        code = base_fail(err, BASE_E_IO, "git cannot list this tree: %s", e ? e->message : "unknown reason");
    }
    git_status_list_free(status);
    return code;
}

bool tool__listing_skips(const char *name, git_repository *repo)
{
    if (repo) return !strcasecmp(name, ".git");
    for (size_t i = 0; i < sizeof walk_skips / sizeof *walk_skips; i++)
        if (!strcasecmp(name, walk_skips[i])) return true;
    return false;
}

/* Takes fd. Folders of other file systems and repositories inside are not entered. */
static void walk(tool_listing *l, int fd, base_buf *path, dev_t device, int depth, const atomic_bool *cancel)
{
    DIR *dir = fdopendir(fd);
    if (!dir) {
        close(fd);
        return;
    }
    size_t start = path->len;
    for (struct dirent *e; !l->is_cut && (e = readdir(dir));) {
        if (cancel && atomic_load_explicit(cancel, memory_order_relaxed)) break;
        if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, "..")) continue;
        struct stat st;
        if (fstatat(dirfd(dir), e->d_name, &st, AT_SYMLINK_NOFOLLOW)) continue;
        path->len = start;
        if (start) base_buf_putc(path, '/');
        base_buf_puts(path, e->d_name);
        if (S_ISREG(st.st_mode)) {
            if (!add(l, path->data, path->len)) break;
        } else if (S_ISDIR(st.st_mode) && st.st_dev == device && depth < WALK_DEPTH &&
                   !tool__listing_skips(e->d_name, NULL)) {
            int next = openat(dirfd(dir), e->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
            if (next >= 0 && !faccessat(next, ".git", F_OK, AT_SYMLINK_NOFOLLOW))
                close(next);
            else if (next >= 0)
                walk(l, next, path, device, depth + 1, cancel);
        }
    }
    path->len = start;
    closedir(dir);
}

int tool__listing_make(
    const tool_root *root, git_repository *repo, const atomic_bool *cancel, tool_listing *ret, base_err *err)
{
    tool_listing l = {0};
    int code = BASE_OK;
    if (root->is_bare) {
        /* nothing: its files are git's own */
    } else if (repo) {
        code = list_git(repo, cancel, &l, err);
    } else {
        struct stat st;
        base_buf path = {0};
        int fd = tool__path_open(root, "", O_RDONLY | O_DIRECTORY, 0);
        if (fd < 0 || fstat(fd, &st)) {
            code = base_fail_sys(err, "%s", root->path);
            if (fd >= 0) close(fd);
        } else {
            walk(&l, fd, &path, st.st_dev, 0, cancel);
        }
        base_buf_free(&path);
    }
    if (!code && cancel && atomic_load_explicit(cancel, memory_order_relaxed))
        code = base_fail(err, BASE_E_CANCELLED, "cancelled");
    if (code) {
        tool__listing_free(&l);
        return code;
    }
    sort_unique(&l);
    *ret = l;
    return BASE_OK;
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

/* Edits (insert, delete, replace) between two short names, letter case free; more than `most` is most + 1. */
static unsigned distance(const char *a, const char *b, unsigned most)
{
    size_t na = strlen(a), nb = strlen(b);
    if (na > 64 || nb > 64 || na > nb + most || nb > na + most) return most + 1;
    unsigned row[65];
    for (size_t j = 0; j <= nb; j++) row[j] = (unsigned)j;
    for (size_t i = 1; i <= na; i++) {
        unsigned diagonal = row[0], least = row[0] = (unsigned)i;
        for (size_t j = 1; j <= nb; j++) {
            unsigned same = strncasecmp(a + i - 1, b + j - 1, 1) != 0, best = diagonal + same;
            if (row[j] + 1 < best) best = row[j] + 1;
            if (row[j - 1] + 1 < best) best = row[j - 1] + 1;
            diagonal = row[j];
            row[j] = best;
            if (best < least) least = best;
        }
        if (least > most) return most + 1;
    }
    return row[nb];
}

static const char *last_part(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

size_t tool__listing_near(const tool_listing *l, const char *path, const char **ret, size_t cap)
{
    /*
     * The same name in another folder costs 0, the same stem 1, then edits of the name; a wrong folder costs
     * a little more.
     */
    const char *name = last_part(path);
    size_t stem = strcspn(name, "."), n = 0;
    if (!*name || !cap) return 0;
    unsigned cost[8];
    if (cap > 8) cap = 8;
    unsigned most = (unsigned)strlen(name) / 3 + 1;
    for (size_t i = 0; i < l->n; i++) {
        const char *other = last_part(l->files[i].path);
        unsigned c = !strcasecmp(name, other) ? 0
                     : stem > 1 && strcspn(other, ".") == stem && !strncasecmp(name, other, stem)
                         ? 1
                         : distance(name, other, most) + 1;
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
