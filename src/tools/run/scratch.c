/* Copying a tree aside and running a command in the copy (contract: scratch.h). */
#include "tools/run/scratch.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/mem.h"
#include "tools/edit/undo.h"
#include "tools/result/result.h"
#include "tools/file/safe_path.h"
#include "tools/tree/workspace.h"
#include "tools/run/box.h"
#include "tools/confine/shell.h"

enum { MOST_FILES = 20000 };
static const uint64_t most_bytes = (uint64_t)256 << 20;

struct tool_scratch {
    char *folder, *original; /* original: the tree, to which links lead */
    char
        *tmp; /* the session's, as for any command of it: what a compiler keeps there serves the next trial */
    tool_root root; /* it lies in folder */
    tool_sandbox sandbox;
};

void tool_scratch_free(tool_scratch *s)
{
    if (!s) return;
    if (s->root.fd >= 0) close(s->root.fd);
    if (s->folder) base_fs_remove(s->folder, NULL);
    free(s->folder);
    free(s->root.path);
    free(s->tmp);
    free(s->original);
    free(s);
}

/* A new or emptied file below the root, without following a link (what git ignores is one): -1 with errno. */
static int open_new(const tool_scratch *s, const char *path, mode_t mode)
{
    const char *name;
    size_t made;
    int folder = tool__path_open_parent(&s->root, path, true, &name, &made);
    if (folder < 0) return -1;
    int fd = openat(folder, name, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, mode);
    close(folder);
    return fd;
}

static int write_all(int to, const char *bytes, size_t n)
{
    for (size_t done = 0; done < n;) {
        ssize_t now = write(to, bytes + done, n - done);
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
        ssize_t n = read(from, bytes, sizeof bytes);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return n < 0 ? -1 : 0;
        if (write_all(to, bytes, (size_t)n)) return -1;
    }
}

/*
 * One file with its mode and times (a build tool compares them); what is no regular file, or gone by now, is
 * left out.
 */
static int copy_file(
    const tool_scratch *s, const tool_root *root, const char *path, uint64_t *n_bytes, base_err *err)
{
    struct stat st;
    int from = tool__path_open(root, path, O_RDONLY | O_NONBLOCK);
    if (from < 0) return 0;
    int rc = 0, to = -1;
    if (fstat(from, &st) == 0 && S_ISREG(st.st_mode)) {
        *n_bytes += (uint64_t)st.st_size;
        if (*n_bytes > most_bytes)
            rc = base_fail(err, BASE_E_LIMIT, "the tree has more than %llu MiB to copy aside",
                (unsigned long long)most_bytes >> 20);
        if (!rc) to = open_new(s, path, st.st_mode & 0777);
        if (!rc && (to < 0 || copy_bytes(from, to)))
            rc = base_fail_sys(err, "cannot copy %.300s aside", path);
        if (!rc) futimens(to, (struct timespec[]){st.st_atim, st.st_mtim});
    }
    if (to >= 0) close(to);
    close(from);
    return rc;
}

/*
 * What git ignores at the top (installed packages, build folders) is there by a link; a confined command
 * cannot write it.
 */
static void link_ignored(const tool_scratch *s, const tool_root *root)
{
    int fd = tool__path_open(root, "", O_RDONLY | O_DIRECTORY);
    DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
    if (!dir && fd >= 0) close(fd);
    for (const struct dirent *e = dir ? readdir(dir) : NULL; e; e = readdir(dir)) {
        struct stat st;
        if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, "..") || !strcmp(e->d_name, ".git")) continue;
        if (fstatat(s->root.fd, e->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0) continue;
        char *target = base_fs_join(root->path, e->d_name);
        if (symlinkat(target, s->root.fd, e->d_name)) {
        } /* the command will say what it misses */
        free(target);
    }
    if (dir) closedir(dir);
}

int tool_scratch_make(tool_workspace *w, tool_scratch **ret, const atomic_bool *cancel, base_err *err)
{
    char name[] = "/tmp/kvist-try-XXXXXX";
    if (!w->sandbox.is_confining)
        return base_fail(err, BASE_E_UNSUPPORTED, "commands cannot be confined here (kvist doctor says why)");
    int rc = tool__workspace_list(w, cancel, err);
    if (!rc) rc = tool__box_tmp(w, err);
    if (rc) return rc;
    if (w->listing.n > MOST_FILES || w->listing.is_cut)
        return base_fail(err, BASE_E_LIMIT, "the tree has more than %d files to copy aside", (int)MOST_FILES);
    if (!mkdtemp(name)) return base_fail_sys(err, "%s", name);
    tool_scratch *s = base_xcalloc(1, sizeof *s);
    *s = (tool_scratch){.folder = base_xstrdup(name),
        .tmp = base_xstrdup(w->tmp),
        .original = base_xstrdup(w->root.path),
        .root = {.fd = -1, .path = base_fs_join(name, "tree"), .has_openat2 = w->root.has_openat2},
        .sandbox = w->sandbox};
    uint64_t n_bytes = 0;
    rc = base_fs_mkdirs(s->root.path, err);
    if (!rc && (s->root.fd = open(s->root.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0)
        rc = base_fail_sys(err, "%s", s->root.path);
    for (size_t i = 0; !rc && i < w->listing.n; i++) {
        if (cancel && atomic_load_explicit(cancel, memory_order_relaxed))
            rc = base_fail(err, BASE_E_CANCELLED, "cancelled");
        if (!rc) rc = copy_file(s, &w->root, w->listing.files[i].path, &n_bytes, err);
    }
    if (rc) {
        tool_scratch_free(s);
        return rc;
    }
    link_ignored(s, &w->root);
    *ret = s;
    return 0;
}

int tool_scratch_put(tool_scratch *s, const char *path, const char *text, size_t n, base_err *err)
{
    int to = open_new(s, path, 0666);
    int rc = to < 0 || write_all(to, text, n) ? base_fail_sys(err, "cannot write %.300s aside", path) : 0;
    if (to >= 0) close(to);
    return rc;
}

static int put_text(void *user, const char *path, const base_buf *before, base_err *err)
{
    const bool is_empty = !before || !before->len;
    return tool_scratch_put(user, path, is_empty ? "" : before->data, is_empty ? 0 : before->len, err);
}

int tool_scratch_put_before(tool_scratch *s, tool_workspace *w, base_err *err)
{
    return tool__undo_each(w, put_text, s, err);
}

static void keep_end(const base_buf *output, const tool_limits *limits, base_buf *ret)
{
    size_t most = tool__result_cap(limits), from = output->len > most ? output->len - most : 0;
    if (from) base_buf_printf(ret, "[%zu bytes left out]\n", from);
    if (output->len) base_buf_add(ret, output->data + from, output->len - from);
}

int tool_scratch_run(
    const tool_scratch *s, const char *command, const tool_limits *limits, tool_result *ret, base_err *err)
{
    static const tool_status status_of[] = {TOOL_OK, TOOL_FAILED, TOOL_TIMEOUT, TOOL_CANCELLED, TOOL_FAILED};
    tool_sandbox_plan plan = {.ruleset = -1};
    tool_child c = {0};
    const char *const readable[] = {s->original, NULL};
    const tool_sandbox_wishes wishes = {
        .root = s->root.path, .root_is_writable = true, .session = s->tmp, .readable = readable};
    ret->exit_code = -1;
    int rc = tool_sandbox_prepare(&s->sandbox, &wishes, &plan, err);
    if (!rc) rc = tool__child_run(&plan, command, limits, limits->shell_ms, &c, err);
    if (!rc) {
        ret->status = status_of[c.end];
        if (c.end == TOOL_CHILD_EXITED) ret->exit_code = c.code;
        if (c.end == TOOL_CHILD_EXITED && c.code) ret->status = TOOL_FAILED;
        ret->ms = c.ms;
        ret->total_bytes = c.total_bytes;
        if (c.end == TOOL_CHILD_LIMITED) base_buf_printf(&ret->text, "%s\n", c.limit);
        keep_end(&c.output, limits, &ret->text);
    }
    tool__child_free(&c);
    tool_sandbox_plan_free(&plan);
    return rc;
}
