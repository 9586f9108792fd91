#include "base/fs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"

static int read_file(const char *path, size_t max_bytes, bool may_wait, base_buf *out, base_err *err)
{
    struct stat st = {0};
    int fd = open(path, O_RDONLY | O_CLOEXEC | (may_wait ? 0 : O_NONBLOCK));
    if (fd < 0) {
        if (errno == ENOENT || errno == ENOTDIR)
            return base_fail(err, BASE_E_NOT_FOUND, "%s does not exist", path);
        return base_fail_sys(err, "%s", path);
    }
    const bool is_known = !fstat(fd, &st);
    if (!may_wait && is_known && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode)) {
        close(fd);
        return base_fail(err, BASE_E_IO, "%s is a pipe or a device, not a file", path);
    }
    size_t start = out->len;
    int code = BASE_OK;
    for (;;) {
        /* A file says its length, but those of /proc and /sys, a few lines each, say 0 or a page: a small read for
         * what is not said lets the free memory be asked for where little of it is left. One byte beyond the bound
         * tells a file at the bound from one over it. */
        const size_t had = out->len - start, room = max_bytes - had;
        size_t want = st.st_size > 0 && (size_t)st.st_size > had ? (size_t)st.st_size - had + 1 : 4096;
        if (want > room) want = room + 1;
        base_buf_reserve(out, want);
        ssize_t n = read(fd, out->data + out->len, want);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0 && errno == EISDIR)
            code = base_fail(err, BASE_E_IO, "%s is a folder, not a file", path);
        else if (n < 0)
            code = base_fail_sys(err, "%s", path);
        if (n <= 0) break;
        out->len += (size_t)n;
        if (out->len - start > max_bytes) {
            code = base_fail(err, BASE_E_LIMIT, "%s is larger than %zu bytes", path, max_bytes);
            break;
        }
    }
    close(fd);
    if (code) out->len = start;
    base_buf_reserve(out, 0);
    out->data[out->len] = '\0';
    return code;
}

int base_fs_read(const char *path, size_t max_bytes, base_buf *out, base_err *err)
{
    return read_file(path, max_bytes, false, out, err);
}

int base_fs_read_given(const char *path, size_t max_bytes, base_buf *out, base_err *err)
{
    return read_file(path, max_bytes, true, out, err);
}

static int write_all(int fd, const char *bytes, size_t n)
{
    while (n) {
        ssize_t done = write(fd, bytes, n);
        if (done < 0 && errno == EINTR) continue;
        if (done < 0) return -1;
        bytes += done;
        n -= (size_t)done;
    }
    return 0;
}

/* Puts what is whole in its place; a file system that does not know the flag has link, which replaces nothing either. */
static int put_in_place(const char *temporary, const char *path, bool is_new)
{
    if (!is_new) return rename(temporary, path);
    if (!renameat2(AT_FDCWD, temporary, AT_FDCWD, path, RENAME_NOREPLACE)) return 0;
    return errno == EINVAL && !link(temporary, path) ? unlink(temporary) : -1;
}

static int write_file(const char *path, const void *bytes, size_t n, mode_t mode, bool is_new, base_err *err)
{
    base_buf temporary = {0}, folder = {0};
    const char *slash = strrchr(path, '/');
    base_buf_add(&folder, path, slash ? (size_t)(slash - path) + (slash == path) : 0);
    if (!folder.len) base_buf_puts(&folder, ".");
    base_buf_printf(&temporary, "%s.XXXXXX", path);
    int code = BASE_OK, fd = mkostemp(temporary.data, O_CLOEXEC);
    if (fd < 0) {
        code = base_fail_sys(err, "%s", path);
        goto out;
    }
    if (fchmod(fd, mode) || write_all(fd, bytes, n) || fsync(fd)) code = base_fail_sys(err, "%s", path);
    if (close(fd) && !code) code = base_fail_sys(err, "%s", path);
    if (!code && put_in_place(temporary.data, path, is_new))
        code = errno == EEXIST ? base_fail(err, BASE_E_USAGE, "%s exists already: name another file", path)
                               : base_fail_sys(err, "%s", path);
    if (code) {
        unlink(temporary.data);
        goto out;
    }
    /* The rename itself is durable only once the folder is. */
    fd = open(folder.data, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0) {
        fsync(fd);
        close(fd);
    }
out:
    base_buf_free(&temporary);
    base_buf_free(&folder);
    return code;
}

int base_fs_write(const char *path, const void *bytes, size_t n, mode_t mode, base_err *err)
{
    return write_file(path, bytes, n, mode, false, err);
}

int base_fs_write_new(const char *path, const void *bytes, size_t n, mode_t mode, base_err *err)
{
    return write_file(path, bytes, n, mode, true, err);
}

int base_fs_copy(const char *from, const char *to, mode_t mode, base_err *err)
{
    int in = open(from, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK), rc = BASE_OK;
    if (in < 0) return base_fail_sys(err, "%s", from);
    int out = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode);
    if (out < 0) rc = base_fail_sys(err, "%s", to);
    ssize_t n = 1;
    while (!rc && n > 0) {
        n = copy_file_range(in, NULL, out, NULL, 1 << 30, 0);
        if (n < 0 && (errno == EXDEV || errno == EINVAL || errno == ENOSYS || errno == EOPNOTSUPP))
            n = sendfile(out, in, NULL, 1 << 30); /* both go on where they stand */
        if (n < 0 && errno == EINTR) n = 1;
        if (n < 0) rc = base_fail_sys(err, "%s could not be copied", from);
    }
    if (out >= 0 && close(out) && !rc) rc = base_fail_sys(err, "%s", to);
    close(in);
    if (rc && out >= 0) unlink(to);
    return rc;
}

int base_fs_mkdirs(const char *path, base_err *err)
{
    char *copy = base_xstrdup(path);
    int code = BASE_OK;
    for (char *p = copy + (*copy == '/');; p++) {
        if (*p && *p != '/') continue;
        char held = *p;
        *p = '\0';
        struct stat st;
        if (*copy && mkdir(copy, 0700) && errno != EEXIST)
            code = base_fail_sys(err, "%s", copy);
        else if (*copy && stat(copy, &st) == 0 && !S_ISDIR(st.st_mode))
            code = base_fail(err, BASE_E_IO, "%s is not a folder", copy);
        *p = held;
        if (!held || code) break;
    }
    free(copy);
    return code;
}

int base_fs_mkdirs_above(const char *file, base_err *err)
{
    const char *slash = strrchr(file, '/');
    if (!slash || slash == file) return BASE_OK;
    char *folder = base_xstrndup(file, (size_t)(slash - file));
    int code = base_fs_mkdirs(folder, err);
    free(folder);
    return code;
}

static int remove_at(int folder, const char *name)
{
    if (!unlinkat(folder, name, 0) || errno == ENOENT) return 0;
    if (errno != EISDIR && errno != EPERM) return -1;
    const int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
    int fd = openat(folder, name, flags);
    struct stat st;
    /*
     * A folder that its owner may not even look into (an overlay's work folder), or not write (Go's module
     * cache).
     */
    if (fd < 0 && errno == EACCES && !fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) &&
        S_ISDIR(st.st_mode) && !fchmodat(folder, name, 0700, 0))
        fd = openat(folder, name, flags);
    if (fd >= 0 && !fstat(fd, &st) && (st.st_mode & 0300) != 0300) fchmod(fd, st.st_mode | 0700);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    if (!dir) {
        if (fd >= 0) close(fd);
        return -1;
    }
    int failed = 0;
    for (struct dirent *e; (e = readdir(dir));)
        if (strcmp(e->d_name, ".") && strcmp(e->d_name, "..")) failed |= remove_at(dirfd(dir), e->d_name);
    closedir(dir);
    return failed || unlinkat(folder, name, AT_REMOVEDIR) ? -1 : 0;
}

int base_fs_remove_at(int folder, const char *name, base_err *err)
{
    return remove_at(folder, name) ? base_fail_sys(err, "%s", name) : BASE_OK;
}

int base_fs_remove(const char *path, base_err *err)
{
    return base_fs_remove_at(AT_FDCWD, path, err);
}

bool base_fs_exists(const char *path)
{
    return access(path, F_OK) == 0;
}

/* folder below KVIST_HOME, XDG variable, default below $HOME */
static const struct {
    const char *folder, *variable, *fallback;
} homes[] = {
    [BASE_HOME_CONFIG] = {"config", "XDG_CONFIG_HOME", ".config"},
    [BASE_HOME_DATA] = {"data", "XDG_DATA_HOME", ".local/share"},
    [BASE_HOME_STATE] = {"state", "XDG_STATE_HOME", ".local/state"},
};

#define NO_HOME "/nonexistent" /* Debian's home of users that have none */

/*
 * HOME is believed when it is absolute: anything else would put our files, and the code that we load, under
 * the current folder.
 */
static char *user_home(void)
{
    const char *home = getenv("HOME");
    if (home && *home == '/') return base_xstrdup(home);
    struct passwd entry, *found = NULL;
    char text[16384];
    if (getpwuid_r(geteuid(), &entry, text, sizeof text, &found) || !found || found->pw_dir[0] != '/')
        return base_xstrdup(NO_HOME);
    return base_xstrdup(found->pw_dir);
}

char *base_fs_home(base_home which, const char *name)
{
    base_buf path = {0};
    const char *own = getenv("KVIST_HOME"), *xdg = getenv(homes[which].variable);
    if (own && *own)
        base_buf_printf(&path, "%s/%s", own, homes[which].folder);
    else if (xdg && *xdg == '/') /* the XDG specification: relative paths are ignored */
        base_buf_printf(&path, "%s/kvist", xdg);
    else {
        char *home = user_home();
        base_buf_printf(&path, "%s/%s/kvist", home, homes[which].fallback);
        free(home);
    }
    if (name) base_buf_printf(&path, "/%s", name);
    return base_buf_take(&path);
}

/* ---- whose it is ---- */

/*
 * The group that a user gets by default where each has one of their own: it has our name or number, and no
 * other member.
 */
static bool is_private_group(gid_t gid)
{
    struct passwd user_entry, *user = NULL;
    struct group group_entry, *group = NULL;
    char user_text[16384], group_text[16384];
    if (getpwuid_r(geteuid(), &user_entry, user_text, sizeof user_text, &user) || !user ||
        user->pw_gid != gid || getgrgid_r(gid, &group_entry, group_text, sizeof group_text, &group) ||
        !group || strcmp(group->gr_name, user->pw_name))
        return false;
    for (char **member = group->gr_mem; *member; member++)
        if (strcmp(*member, user->pw_name)) return false;
    return true;
}

int base_fs_check_owner(const char *path, base_err *err)
{
    struct stat st;
    if (stat(path, &st))
        return errno == ENOENT || errno == ENOTDIR ? BASE_OK : base_fail_sys(err, "%s", path);
    if (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode))
        return base_fail(err, BASE_E_STATE, "%.300s is neither a file nor a folder: it is not used", path);
    if (st.st_uid != geteuid() && st.st_uid != 0) {
        struct passwd entry, *found = NULL;
        char text[16384];
        if (getpwuid_r(st.st_uid, &entry, text, sizeof text, &found)) found = NULL;
        return base_fail(err, BASE_E_STATE,
            "%.300s belongs to another user (%.40s, %u), who could put anything there: it is not used", path,
            found ? found->pw_name : "no name", (unsigned)st.st_uid);
    }
    bool by_group = (st.st_mode & S_IWGRP) && !is_private_group(st.st_gid);
    if (by_group || (st.st_mode & S_IWOTH))
        return base_fail(err, BASE_E_STATE,
            "%.300s can be written by other users, who could put anything there: it is not used. "
            "\"chmod go-w\" takes that right away; look at what is in it first",
            path);
    return BASE_OK;
}

/*
 * Who can write the folder above ours could put a link in its place, to another folder of this user. Where the sticky bit
 * stands (/tmp), others cannot replace ours, but be there first.
 */
static int check_way(const char *path, base_err *err)
{
    struct stat st;
    if (!lstat(path, &st) && S_ISLNK(st.st_mode) && st.st_uid != geteuid() && st.st_uid)
        return base_fail(err, BASE_E_STATE, "%.300s is a link that another user made: it is not used", path);
    char *above = base_xstrndup(path, (size_t)(strrchr(path, '/') - path));
    const bool is_asked = *above && !stat(above, &st) && !(st.st_mode & S_ISVTX);
    const int code = is_asked ? base_fs_check_owner(above, err) : BASE_OK;
    free(above);
    return code;
}

int base_fs_check_homes(base_err *err)
{
    int code = BASE_OK;
    for (size_t i = 0; i < sizeof homes / sizeof *homes && !code; i++) {
        char *path = base_fs_home((base_home)i, NULL);
        if (!strncmp(path, NO_HOME "/", sizeof NO_HOME))
            code = base_fail(err, BASE_E_STATE,
                "there is no home folder: HOME names none, and the password database has none of user %u. "
                "Set HOME or KVIST_HOME to a folder of yours",
                (unsigned)geteuid());
        else if (!(code = check_way(path, err)))
            code = base_fs_check_owner(path, err);
        free(path);
    }
    return code;
}

char *base_fs_join(const char *folder, const char *name)
{
    base_buf path = {0};
    base_buf_printf(&path, "%s%s%s", folder, *folder ? "/" : "", name);
    return base_buf_take(&path);
}
