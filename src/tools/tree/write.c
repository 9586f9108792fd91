/*
 * One file's new text onto the disk: a reader sees the old file or the new one, never half of one, and a file that
 * somebody else changed meanwhile is left alone.
 */
#include "tools/tree/write.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tools/file/access_list.h"
#include "tools/tree/leftover.h"

void (*tool__step_hook)(const char *step);

void tool__step(const char *step)
{
    if (tool__step_hook) tool__step_hook(step);
}

static int write_all(int fd, const base_buf *text)
{
    size_t done = 0;
    while (done < text->len) {
        ssize_t n = write(fd, text->data + done, text->len - done);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return -1;
        done += (size_t)n;
    }
    return 0;
}

int tool__change_check(
    tool_workspace *w, const char *path, const char *before, struct stat *st, base_err *err)
{
    tool_file now = {0};
    base_buf shown = {0};
    int code = tool__file_read(&w->root, path, TOOL_MAX_FILE, &now, err);
    tool__path_show(&shown, path);
    if (!before && code == BASE_E_NOT_FOUND) {
        code = BASE_OK;
    } else if (!before && (!code || code == BASE_E_LIMIT)) {
        code = base_fail(err, BASE_E_STATE, "%.300s exists by now", shown.data);
    } else if (!code && strcmp(now.version, before)) {
        code = base_fail(err, BASE_E_STATE, "%.300s changed since this was prepared", shown.data);
    } else if (!code && now.st.st_nlink > 1) {
        code = base_fail(err, BASE_E_UNSUPPORTED,
            "%.300s has %lu hard links: writing it would change a file that may lie elsewhere", shown.data,
            (unsigned long)now.st.st_nlink);
    }
    *st = now.st;
    tool__file_free(&now);
    base_buf_free(&shown);
    return code;
}

/*
 * A file without a name where the file system has them (O_TMPFILE): a kill while it is written leaves nothing
 * behind. Else one under the temporary name.
 */
static int open_new(int folder, const char *temporary, bool *ret_named)
{
    int fd = openat(folder, ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
    *ret_named = fd < 0;
    return fd >= 0 ? fd
                   : openat(folder, temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
}

/* The file that replaces another is open to the same people. */
static int keep_access_list(int folder, const char *name, int fd)
{
    tool_access_list lists = {0};
    int old = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (old < 0) return -1;
    const int failed = tool__access_list_read(old, &lists) || tool__access_list_give(fd, &lists) ? -1 : 0;
    close(old);
    tool__access_list_free(&lists);
    return failed;
}

/* Gives the written file its name, over what is there or only where nothing is. */
static int publish(int folder, int fd, bool is_named, const char *temporary, const char *name, bool replaces)
{
    if (!is_named) {
        char self[40];
        snprintf(self, sizeof self, "/proc/self/fd/%d", fd);
        int failed = linkat(AT_FDCWD, self, folder, replaces ? temporary : name, AT_SYMLINK_FOLLOW);
        if (failed || !replaces) return failed;
    }
    tool__step("linked");
    if (replaces) return renameat(folder, temporary, folder, name);
    int failed = (int)syscall(SYS_renameat2, folder, temporary, folder, name, RENAME_NOREPLACE);
    if (failed && (errno == EINVAL || errno == ENOSYS)) /* a file system without NOREPLACE */
        failed = linkat(folder, temporary, folder, name, 0) || unlinkat(folder, temporary, 0);
    return failed;
}

int tool__change_write(
    tool_workspace *w, const char *path, const base_buf *text, mode_t mode, const char *before, base_err *err)
{
    struct stat st = {0};
    tool_leftover temporary = {.fd = -1};
    const char *name;
    size_t made;
    bool is_named = false;
    int fd = -1, code = tool__change_check(w, path, before, &st, err);
    if (code) return code;
    int folder = tool__path_open_parent(&w->root, path, true, &name, &made);
    if (folder < 0) return base_fail_sys(err, "the folder of %s", path);
    if (!text) {
        if (unlinkat(folder, name, 0)) code = base_fail_sys(err, "%s", path);
        goto out;
    }
    tool__leftover_begin(w, path, &temporary);
    fd = open_new(folder, temporary.name, &is_named);
    if (fd < 0) {
        code = base_fail_sys(err, "%s", path);
        goto out;
    }
    tool__step("temporary");
    if (write_all(fd, text)) code = base_fail_sys(err, "%s", path);
    /* As root, the owner stays who it was; else the person is the owner anyway. */
    if (!code && before && (st.st_uid != geteuid() || st.st_gid != getegid()) &&
        fchown(fd, st.st_uid, st.st_gid) && errno != EPERM)
        code = base_fail_sys(err, "%s", path);
    if (!code && before && keep_access_list(folder, name, fd))
        code = base_fail_sys(err, "who may read %s", path);
    if (!code && (fchmod(fd, mode & 07777) || fsync(fd))) code = base_fail_sys(err, "%s", path);
    tool__step("written");
    /* The version is checked again right before the rename, since the approval may have taken a minute. */
    if (!code) code = tool__change_check(w, path, before, &st, err);
    if (!code && publish(folder, fd, is_named, temporary.name, name, before != NULL))
        code = base_fail_sys(err, "%s", path);
    if (code) unlinkat(folder, temporary.name, 0);
out:
    if (fd >= 0) close(fd);
    if (!code) {
        tool__step("rename");
        fsync(folder);
    }
    close(folder);
    tool__leftover_end(&temporary);
    return code;
}
