#include "tools/guard/kept.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "tools/guard/below.h"

enum { MOST_ITEMS = 1 << 16, MOST_DEPTH = 32 };
static const size_t most_file = (size_t)16 << 20, most_held = (size_t)64 << 20;

static bool is_same_stat(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_mode == b->st_mode &&
           a->st_uid == b->st_uid && a->st_gid == b->st_gid && a->st_size == b->st_size &&
           tool__ns_of(a->st_mtim) == tool__ns_of(b->st_mtim) &&
           tool__ns_of(a->st_ctim) == tool__ns_of(b->st_ctim);
}

/*
 * lstat below the root, no link on the way: 0 or errno; ENOENT and ENOTDIR both mean that nothing is there.
 */
static int look(const tool_root *root, const char *path, struct stat *ret)
{
    const char *name;
    size_t made;
    memset(ret, 0, sizeof *ret);
    /* Most of what is looked at is not there, and no link on the way could make that something to worry about. */
    if (fstatat(root->fd, path, ret, AT_SYMLINK_NOFOLLOW) && (errno == ENOENT || errno == ENOTDIR))
        return ENOENT;
    int folder = tool__path_open_parent(root, path, false, &name, &made);
    int failed = folder < 0 || fstatat(folder, name, ret, AT_SYMLINK_NOFOLLOW) ? errno : 0;
    if (folder >= 0) close(folder);
    if (failed) memset(ret, 0, sizeof *ret);
    return failed == ENOTDIR ? ENOENT : failed;
}

/* The whole of a file or a link's target; false: it could not be read, or is longer than `most`. */
static bool read_bytes(
    const tool_root *root, const char *path, const struct stat *st, size_t most, base_buf *ret)
{
    const char *name;
    size_t made;
    if (!S_ISREG(st->st_mode) && !S_ISLNK(st->st_mode)) return false;
    if (S_ISREG(st->st_mode) && (uint64_t)st->st_size > most) return false;
    if (S_ISREG(st->st_mode)) {
        tool_file f = {0};
        if (tool__file_read(root, path, most, &f, NULL)) return false;
        base_buf_free(ret);
        *ret = f.text;
        return true;
    }
    int folder = tool__path_open_parent(root, path, false, &name, &made);
    char target[4097];
    ssize_t n = folder < 0 ? -1 : readlinkat(folder, name, target, sizeof target);
    if (folder >= 0) close(folder);
    if (n < 0 || n == (ssize_t)sizeof target) return false;
    base_buf_clear(ret);
    base_buf_add(ret, target, (size_t)n);
    return true;
}

/* ---- taking ---- */

/* Who may do what with it besides what the mode says; what cannot be opened keeps its mode alone. */
static void read_access(const tool_root *root, tool_kept *item)
{
    if (!S_ISREG(item->st.st_mode) && !S_ISDIR(item->st.st_mode)) return;
    int fd = tool__path_open(root, item->path, O_RDONLY | O_NONBLOCK);
    if (fd < 0) return;
    tool__access_list_read(fd, &item->access);
    close(fd);
}

static void copy_access(const tool_kept *from, tool_kept *item)
{
    base_buf_add(&item->access.list, from->access.list.data, from->access.list.len);
    base_buf_add(&item->access.defaults, from->access.defaults.data, from->access.defaults.len);
}

static void hold(const tool_root *root, const tool_kept_list *earlier, tool_kept_list *list, tool_kept *item)
{
    const tool_kept *old = earlier ? tool__kept_find(earlier, item->path) : NULL;
    size_t most = most_held - list->held_bytes < most_file ? most_held - list->held_bytes : most_file;
    const bool is_as_before = old && old->is_settled && is_same_stat(&old->st, &item->st);
    if (is_as_before)
        copy_access(old, item);
    else
        read_access(root, item);
    if (is_as_before && old->is_held && old->bytes.len <= most) {
        base_buf_add(&item->bytes, old->bytes.data ? old->bytes.data : "", old->bytes.len);
        item->is_held = true;
    } else {
        item->is_held = read_bytes(root, item->path, &item->st, most, &item->bytes);
    }
    if (item->is_held) list->held_bytes += item->bytes.len;
}

static void add(const tool_root *root, const char *path, tool_kept_skips_fn *skips,
    const tool_kept_list *earlier, tool_kept_list *list, int depth);

static void add_inner(const tool_root *root, const char *folder, const char *name, tool_kept_skips_fn *skips,
    const tool_kept_list *earlier, tool_kept_list *list, int depth)
{
    base_buf inner = {0};
    base_buf_printf(&inner, "%s/%s", folder, name);
    if (!skips || !skips(inner.data)) add(root, inner.data, skips, earlier, list, depth + 1);
    base_buf_free(&inner);
}

/* A folder that has not changed since holds the names that it held. */
static void add_as_before(const tool_root *root, const tool_kept *old, tool_kept_skips_fn *skips,
    const tool_kept_list *earlier, tool_kept_list *list, int depth)
{
    size_t n = strlen(old->path);
    for (const tool_kept *k = old + 1; k < earlier->items + earlier->n; k++) {
        int order = strncmp(k->path, old->path, n);
        if (order) break;
        if (k->path[n] == '/' && !strchr(k->path + n + 1, '/') && k->st.st_mode)
            add_inner(root, old->path, k->path + n + 1, skips, earlier, list, depth);
    }
}

static void add(const tool_root *root, const char *path, tool_kept_skips_fn *skips,
    const tool_kept_list *earlier, tool_kept_list *list, int depth)
{
    if (list->n >= MOST_ITEMS || depth > MOST_DEPTH) {
        list->is_cut = true;
        return;
    }
    tool_kept item = {.path = base_xstrdup(path)};
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    item.failed = look(root, path, &item.st);
    if (item.failed == ENOENT) item.failed = 0;
    item.is_settled = tool__ns_of(now) - tool__ns_of(item.st.st_ctim) > tool__coarse_ns;
    hold(root, earlier, list, &item);
    base_grow(&list->items, &list->cap, list->n + 1, sizeof *list->items);
    list->items[list->n++] = item;
    if (!S_ISDIR(item.st.st_mode)) return;
    const tool_kept *old = earlier ? tool__kept_find(earlier, path) : NULL;
    if (old && old->is_settled && !old->failed && is_same_stat(&old->st, &item.st)) {
        add_as_before(root, old, skips, earlier, list, depth);
        return;
    }
    size_t at = list->n - 1;
    int fd = tool__path_open_folder(root, path);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    if (!dir) {
        list->items[at].failed = errno;
        if (fd >= 0) close(fd);
        return;
    }
    errno = 0;
    for (const struct dirent *e; (e = readdir(dir)) && list->n < MOST_ITEMS; errno = 0)
        if (strcmp(e->d_name, ".") && strcmp(e->d_name, ".."))
            add_inner(root, path, e->d_name, skips, earlier, list, depth);
    if (errno) list->items[at].failed = errno;
    closedir(dir);
}

void tool__kept_add(const tool_root *root, const char *path, tool_kept_skips_fn *skips,
    const tool_kept_list *earlier, tool_kept_list *list)
{
    add(root, path, skips, earlier, list, 0);
}

static int by_path(const void *a, const void *b)
{
    return strcmp(((const tool_kept *)a)->path, ((const tool_kept *)b)->path);
}

static void free_one(tool_kept *item)
{
    free(item->path);
    base_buf_free(&item->bytes);
    tool__access_list_free(&item->access);
}

void tool__kept_sort(tool_kept_list *list)
{
    size_t n = 0;
    if (list->n) qsort(list->items, list->n, sizeof *list->items, by_path);
    for (size_t i = 0; i < list->n; i++) { /* two ways may lead to one file */
        if (n && !strcmp(list->items[n - 1].path, list->items[i].path))
            free_one(&list->items[i]);
        else
            list->items[n++] = list->items[i];
    }
    list->n = n;
}

const tool_kept *tool__kept_find(const tool_kept_list *list, const char *path)
{
    tool_kept wanted = {.path = (char *)path};
    return list->n ? bsearch(&wanted, list->items, list->n, sizeof *list->items, by_path) : NULL;
}

void tool__kept_free(tool_kept_list *list)
{
    for (size_t i = 0; i < list->n; i++) free_one(&list->items[i]);
    free(list->items);
    *list = (tool_kept_list){0};
}

/* ---- comparing ---- */

tool_kept_change tool__kept_compare(const tool_root *root, const tool_kept *item, const char *path)
{
    struct stat now;
    if (!path) path = item->path;
    int failed = look(root, path, &now);
    bool was_there = item->st.st_mode != 0;
    if (failed == ENOENT) return was_there ? TOOL_KEPT_GONE : TOOL_KEPT_SAME;
    if (failed) return item->failed == failed ? TOOL_KEPT_SAME : TOOL_KEPT_CHANGED;
    if (item->failed && !was_there) return TOOL_KEPT_CHANGED; /* could not be looked at, now it can */
    if (!was_there) return TOOL_KEPT_NEW;
    if (S_ISDIR(now.st_mode) && S_ISDIR(item->st.st_mode))
        return TOOL_KEPT_SAME; /* what it holds is compared */
    bool is_same = is_same_stat(&now, &item->st);
    if (is_same && (item->is_settled || !item->is_held)) return TOOL_KEPT_SAME;
    if (!item->is_held || now.st_mode != item->st.st_mode) return TOOL_KEPT_CHANGED;
    base_buf bytes = {0};
    bool equal = read_bytes(root, path, &now, most_file, &bytes) && bytes.len == item->bytes.len &&
                 (!bytes.len || !memcmp(bytes.data, item->bytes.data, bytes.len));
    base_buf_free(&bytes);
    return equal ? TOOL_KEPT_SAME : TOOL_KEPT_CHANGED;
}

bool tool__kept_has_same_names(const tool_root *root, const tool_kept *item, const char *path)
{
    struct stat now;
    return item->is_settled && !look(root, path, &now) && is_same_stat(&now, &item->st);
}

/* ---- putting back ---- */

static int write_whole(int fd, const char *bytes, size_t n)
{
    for (size_t done = 0; done < n;) {
        ssize_t now = write(fd, bytes + done, n - done);
        if (now < 0 && errno != EINTR) return -1;
        if (now > 0) done += (size_t)now;
    }
    return 0;
}

enum { TEMPORARY_BYTES = 64 };

/* A new file under a name that nobody can have taken before: a command may know the pid and every inode. */
static int open_temporary(int folder, char ret_name[TEMPORARY_BYTES])
{
    enum { MOST_TRIES = 8 };
    int fd = -1;
    for (int i = 0; i < MOST_TRIES && fd < 0; i++) {
        uint64_t r[2];
        if (getrandom(r, sizeof r, 0) != (ssize_t)sizeof r) return -1;
        snprintf(ret_name, TEMPORARY_BYTES, ".kvist-restore-%016llx%016llx", (unsigned long long)r[0],
            (unsigned long long)r[1]);
        fd = openat(folder, ret_name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (fd < 0 && errno != EEXIST) return -1;
    }
    return fd;
}

static int make_file(int folder, const char *name, const tool_kept *item)
{
    char temporary[TEMPORARY_BYTES];
    struct timespec times[2] = {item->st.st_atim, item->st.st_mtim};
    int fd = open_temporary(folder, temporary);
    if (fd < 0) return -1;
    int failed = write_whole(fd, item->bytes.data, item->bytes.len);
    /*
     * Root puts back a file of its owner; for anybody else it is his own. The mode goes last: chown clears
     * bits of it.
     */
    if (!failed && fchown(fd, item->st.st_uid, item->st.st_gid) && !geteuid()) failed = -1;
    if (!failed) failed = tool__access_list_give(fd, &item->access);
    if (!failed) failed = fchmod(fd, item->st.st_mode & 07777) || futimens(fd, times) || fsync(fd) ? -1 : 0;
    if (!failed && renameat2(folder, temporary, folder, name, RENAME_NOREPLACE)) {
        /* A file system that does not know the flag: link refuses an existing name as well. */
        failed = errno != EINVAL || linkat(folder, temporary, folder, name, 0) ? -1 : 0;
        int saved = errno;
        unlinkat(folder, temporary, 0); /* ours, made above */
        errno = saved;
    } else if (failed) {
        int saved = errno;
        unlinkat(folder, temporary, 0);
        errno = saved;
    }
    close(fd);
    return failed;
}

static int make_folder(int folder, const char *name, const tool_kept *item)
{
    if (mkdirat(folder, name, 0700)) return -1;
    int fd = openat(folder, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0) return -1;
    int failed = !geteuid() ? fchown(fd, item->st.st_uid, item->st.st_gid) : 0;
    if (!failed) failed = tool__access_list_give(fd, &item->access);
    if (!failed) failed = fchmod(fd, item->st.st_mode & 07777);
    close(fd);
    return failed;
}

int tool__kept_put_back(const tool_root *root, const tool_kept *item, const char *path, base_err *err)
{
    const char *name;
    size_t made;
    mode_t mode = item->st.st_mode;
    if (!path) path = item->path;
    if (!S_ISDIR(mode) && !item->is_held) return base_fail(err, BASE_E_NOT_FOUND, "its bytes are not held");
    int folder = tool__path_open_parent(root, path, false, &name, &made);
    if (folder < 0) return base_fail_sys(err, "%s", path);
    int failed = S_ISDIR(mode)   ? make_folder(folder, name, item)
                 : S_ISLNK(mode) ? symlinkat(item->bytes.data ? item->bytes.data : "", folder, name)
                                 : make_file(folder, name, item);
    if (!failed && S_ISLNK(mode) && !geteuid())
        failed = fchownat(folder, name, item->st.st_uid, item->st.st_gid, AT_SYMLINK_NOFOLLOW);
    int code = failed ? base_fail_sys(err, "%s", path) : BASE_OK;
    if (!failed) fsync(folder);
    close(folder);
    return code;
}
