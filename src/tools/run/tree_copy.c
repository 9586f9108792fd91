/* A tree's files in another folder, kept up to date (contract: tree_copy.h). */
#include "tools/run/tree_copy.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/fs.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/mem.h"
#include "base/path.h"

/* --- folders -------------------------------------------------------------------------------------------- */

/* The folder that was opened last: a listing is sorted, so the next file mostly lies there too. */
typedef struct folder {
    const tool_root *root;
    char *path; /* NULL: none */
    int fd;
} folder;

static void leave(folder *f)
{
    if (f->path && f->fd >= 0) close(f->fd);
    free(f->path);
    f->path = NULL;
}

/* A folder of the copy, made where it is missing; what is no folder and stands in its place goes. -1 with errno. */
static int make_folder(const tool_root *root, const char *path)
{
    int fd = tool__path_open(root, path, O_RDONLY | O_DIRECTORY);
    if (fd >= 0 || !*path || (errno != ENOENT && errno != ENOTDIR && errno != ELOOP)) return fd;
    const char *name = base_path_name(path);
    char *above = base_xstrndup(path, base_path_folder_length(path));
    const int parent = make_folder(root, above);
    free(above);
    if (parent < 0) return -1;
    struct stat st;
    const bool is_taken = !fstatat(parent, name, &st, AT_SYMLINK_NOFOLLOW) && !S_ISDIR(st.st_mode);
    if ((!is_taken || !base_fs_remove_at(parent, name, NULL)) &&
        (!mkdirat(parent, name, 0777) || errno == EEXIST))
        fd = tool__path_open(root, path, O_RDONLY | O_DIRECTORY);
    const int saved = errno;
    close(parent);
    errno = saved;
    return fd;
}

/* The folder that holds `path`: a descriptor that f owns, or -1 with errno. */
static int enter(folder *f, const char *path, bool makes, const char **ret_name)
{
    const size_t n = base_path_folder_length(path);
    *ret_name = base_path_name(path);
    if (f->path && f->fd >= 0 && strlen(f->path) == n && !memcmp(f->path, path, n)) return f->fd;
    leave(f);
    f->path = base_xstrndup(path, n);
    f->fd = makes ? make_folder(f->root, f->path) : tool__path_open(f->root, f->path, O_RDONLY | O_DIRECTORY);
    /* What cannot be listed can be passed through: its files are there. */
    if (f->fd < 0 && errno == EACCES) f->fd = tool__path_open(f->root, f->path, O_PATH | O_DIRECTORY);
    return f->fd;
}

/* --- one file ------------------------------------------------------------------------------------------- */

static tool_copy_stamp stamp_of(int parent, const char *name)
{
    struct stat st;
    if (parent < 0 || fstatat(parent, name, &st, AT_SYMLINK_NOFOLLOW)) return (tool_copy_stamp){0};
    return (tool_copy_stamp){.mtime_ns = (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec,
        .ctime_ns = (int64_t)st.st_ctim.tv_sec * 1000000000 + st.st_ctim.tv_nsec,
        .size = st.st_size,
        .ino = st.st_ino,
        .mode = st.st_mode};
}

static bool is_same(const tool_copy_stamp *a, const tool_copy_stamp *b)
{
    return a->mtime_ns == b->mtime_ns && a->ctime_ns == b->ctime_ns && a->size == b->size &&
           a->ino == b->ino && a->mode == b->mode;
}

static int write_all(int to, const char *bytes, size_t n)
{
    for (size_t done = 0; done < n;) {
        const ssize_t now = write(to, bytes + done, n - done);
        if (now < 0 && errno != EINTR) return -1;
        if (now > 0) done += (size_t)now;
    }
    return 0;
}

static int copy_bytes(int from, int to)
{
    if (ioctl(to, FICLONE, from) == 0) return 0; /* shares the blocks where the file system can */
    char bytes[1 << 16];
    for (;;) {
        const ssize_t n = read(from, bytes, sizeof bytes);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return n < 0 ? -1 : 0;
        if (write_all(to, bytes, (size_t)n)) return -1;
    }
}

/*
 * Both times of a file by the exact clock. The kernel stamps what it writes some milliseconds coarse, and what a trial
 * built just now would be as new as a file that was changed behind it.
 */
static const struct timespec *exact_now(struct timespec now[2])
{
    clock_gettime(CLOCK_REALTIME, &now[0]);
    now[1] = now[0];
    return now;
}

/* A file that is new in the folder: what had its name is gone, so nothing is written through a link of any kind. */
static int open_new(int parent, const char *name, mode_t mode)
{
    if (base_fs_remove_at(parent, name, NULL)) return -1;
    return openat(parent, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
}

/* 0 also where it cannot be read, which leaves it out as an archiver would; -1 with errno: it cannot be written. */
static int copy_regular(int from_parent, int to_parent, const char *name, bool keeps_times)
{
    struct stat st;
    int rc = 0;
    const int from = openat(from_parent, name, O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
    if (from >= 0 && !fstat(from, &st) && S_ISREG(st.st_mode)) {
        const int to = open_new(to_parent, name, st.st_mode & 0777);
        rc = to < 0 || copy_bytes(from, to) ? -1 : 0;
        struct timespec kept[2] = {st.st_atim, st.st_mtim}, now[2];
        if (!rc) futimens(to, keeps_times ? kept : exact_now(now));
        const int saved = errno;
        if (to >= 0) close(to);
        errno = saved;
    }
    if (from >= 0) close(from);
    return rc;
}

static int copy_link(int from_parent, int to_parent, const char *name)
{
    char target[PATH_MAX];
    const ssize_t n = readlinkat(from_parent, name, target, sizeof target - 1);
    if (n < 0) return 0;
    target[n] = '\0';
    return base_fs_remove_at(to_parent, name, NULL) || symlinkat(target, to_parent, name) ? -1 : 0;
}

typedef struct copying {
    tool_tree_copy *copy;
    folder from, to;
    bool is_first;
    uint64_t n_bytes;
} copying;

static void remove_file(copying *j, const char *path)
{
    const char *name;
    const int to = enter(&j->to, path, false, &name);
    if (to >= 0) base_fs_remove_at(to, name, NULL);
}

/* The copy of one file becomes what the tree has; nothing is written where neither has changed. */
static int copy_file(copying *j, tool_copied *file, base_err *err)
{
    const char *name;
    const int from = enter(&j->from, file->path, false, &name);
    const tool_copy_stamp now = stamp_of(from, name);
    const bool is_link = S_ISLNK(now.mode), is_file = S_ISREG(now.mode);
    if (!is_file && !is_link) { /* gone, though git still lists it: nothing is made for it */
        remove_file(j, file->path);
        file->from = file->to = (tool_copy_stamp){0};
        return 0;
    }
    const int to = enter(&j->to, file->path, true, &name);
    const tool_copy_stamp was = stamp_of(to, name);
    if (to >= 0 && file->to.ino && is_same(&now, &file->from) && is_same(&was, &file->to)) return 0;
    if (is_file) j->n_bytes += (uint64_t)now.size;
    if (j->copy->most_bytes && j->n_bytes > j->copy->most_bytes)
        return base_fail(err, BASE_E_LIMIT, "the tree has more than %llu MiB to copy aside",
            (unsigned long long)j->copy->most_bytes >> 20);
    int failed = to < 0;
    if (!failed && !is_file && !is_link)
        failed = base_fs_remove_at(to, name, NULL); /* gone since it was listed */
    if (!failed && is_link) failed = copy_link(from, to, name);
    if (!failed && is_file) failed = copy_regular(from, to, name, j->is_first);
    if (failed) return base_fail_sys(err, "cannot copy %.300s aside", file->path);
    file->from = now;
    file->to = stamp_of(to, name);
    return 0;
}

/* --- all of them ---------------------------------------------------------------------------------------- */

static int list(tool_tree_copy *c, tool_workspace *w, const atomic_bool *cancel, base_err *err)
{
    const uint32_t most = c->most_files ? c->most_files : TOOL_MAX_FILES;
    if (!c->listing.n || !tool__folders_are_same(&w->root, &c->folders)) {
        tool_listing fresh = {0};
        struct timespec now;
        clock_gettime(CLOCK_REALTIME, &now);
        const int rc = tool__listing_make_whole(&w->root, w->repo, cancel, &fresh, err);
        if (rc) return rc;
        tool__listing_free(&c->listing);
        c->listing = fresh;
        tool__folders_take(
            &w->root, w->repo, &c->listing, (int64_t)now.tv_sec * 1000000000 + now.tv_nsec, &c->folders);
    }
    if (c->listing.n > most || c->listing.is_cut)
        return base_fail(err, BASE_E_LIMIT, "the tree has more than %u files to copy aside", most);
    return 0;
}

int tool__copy_update(tool_tree_copy *c, tool_workspace *w, const atomic_bool *cancel, base_err *err)
{
    int rc = list(c, w, cancel, err);
    if (rc) return rc;
    copying j = {.copy = c, .from = {.root = &w->root}, .to = {.root = &c->root}, .is_first = !c->n};
    const tool_listing *l = &c->listing;
    tool_copied *old = c->files;
    const size_t n_old = c->n;
    size_t at = 0;
    c->files = NULL;
    c->n = c->cap = 0;
    for (size_t i = 0; !rc && i < l->n; i++) {
        if (cancel && atomic_load_explicit(cancel, memory_order_relaxed)) {
            rc = base_fail(err, BASE_E_CANCELLED, "cancelled");
            break;
        }
        for (; at < n_old && strcmp(old[at].path, l->files[i].path) < 0; at++) {
            remove_file(&j, old[at].path);
            free(old[at].path);
        }
        const bool is_known = at < n_old && !strcmp(old[at].path, l->files[i].path);
        base_grow(&c->files, &c->cap, c->n + 1, sizeof *c->files);
        c->files[c->n] = is_known ? old[at++] : (tool_copied){.path = base_xstrdup(l->files[i].path)};
        rc = copy_file(&j, &c->files[c->n++], err);
    }
    for (; at < n_old; at++) {
        if (rc) { /* it was not come to: still known */
            base_grow(&c->files, &c->cap, c->n + 1, sizeof *c->files);
            c->files[c->n++] = old[at];
        } else {
            remove_file(&j, old[at].path);
            free(old[at].path);
        }
    }
    free(old);
    leave(&j.from);
    leave(&j.to);
    return rc;
}

/* The one of that path, added if it must be. */
static tool_copied *note(tool_tree_copy *c, const char *path)
{
    size_t low = 0, high = c->n;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (strcmp(c->files[middle].path, path) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == c->n || strcmp(c->files[low].path, path) != 0) {
        base_grow(&c->files, &c->cap, c->n + 1, sizeof *c->files);
        memmove(&c->files[low + 1], &c->files[low], (c->n - low) * sizeof *c->files);
        c->files[low] = (tool_copied){.path = base_xstrdup(path)};
        c->n++;
    }
    return &c->files[low];
}

int tool__copy_put(tool_tree_copy *c, const char *path, const char *text, size_t n, base_err *err)
{
    const char *name;
    folder f = {.root = &c->root};
    note(c, path)->to = (tool_copy_stamp){0};
    const int parent = enter(&f, path, true, &name);
    const tool_copy_stamp was = stamp_of(parent, name);
    const int to = parent < 0 ? -1 : open_new(parent, name, S_ISREG(was.mode) ? was.mode & 0777 : 0666);
    const int rc =
        to < 0 || write_all(to, text, n) ? base_fail_sys(err, "cannot write %.300s aside", path) : 0;
    struct timespec now[2];
    if (!rc) futimens(to, exact_now(now));
    if (to >= 0) close(to);
    leave(&f);
    return rc;
}

void tool__copy_touch(tool_tree_copy *c, const char *path)
{
    const char *name;
    folder f = {.root = &c->root};
    const int parent = enter(&f, path, false, &name);
    struct timespec now[2];
    if (parent >= 0) utimensat(parent, name, exact_now(now), AT_SYMLINK_NOFOLLOW);
    leave(&f);
}

void tool__copy_free(tool_tree_copy *c)
{
    for (size_t i = 0; i < c->n; i++) free(c->files[i].path);
    free(c->files);
    tool__listing_free(&c->listing);
    tool__folders_free(&c->folders);
    if (c->root.fd >= 0) close(c->root.fd);
    free(c->root.path);
    *c = (tool_tree_copy){.root.fd = -1};
}
