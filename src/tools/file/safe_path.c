/*
 * Paths that come from a model, a person or a repository, made safe: below the root, through no symbolic
 * link, under no .git.
 *
 * Cleaning is lexical and happens once; opening lets the kernel check (openat2 with RESOLVE_BENEATH,
 * RESOLVE_NO_SYMLINKS and RESOLVE_NO_MAGICLINKS), so that swapping a folder for a link between check and use
 * gains nothing. Kernels before 5.6 get the same by opening one folder after the other with O_NOFOLLOW.
 */
#include "tools/file/safe_path.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "base/path.h"

/* ---- text of a path ---- */

static bool needs_quotes(const char *path)
{
    for (const char *p = path; *p; p++)
        if ((unsigned char)*p < 0x20 || *p == 0x7f || *p == '"' || *p == '\\') return true;
    if (!base_utf8_valid(path, strlen(path))) return true;
    /* What the sanitiser would change (C1, bidirectional controls) must not look like another name. */
    base_buf clean = {0};
    base_utf8_sanitise(&clean, path, strlen(path), true);
    bool same = clean.data && !strcmp(clean.data, path);
    base_buf_free(&clean);
    return !same && *path;
}

void tool__path_show(base_buf *out, const char *path)
{
    if (!needs_quotes(path)) {
        base_buf_puts(out, path);
        return;
    }
    base_buf_putc(out, '"');
    for (const unsigned char *p = (const unsigned char *)path; *p; p++) {
        if (*p == '"' || *p == '\\')
            base_buf_printf(out, "\\%c", *p);
        else if (*p == '\n')
            base_buf_puts(out, "\\n");
        else if (*p == '\t')
            base_buf_puts(out, "\\t");
        else if (*p < 0x20 || *p >= 0x7f)
            base_buf_printf(out, "\\%03o", *p);
        else
            base_buf_putc(out, (char)*p);
    }
    base_buf_putc(out, '"');
}

bool tool__path_unquote(const char *shown, size_t n, base_buf *out)
{
    if (n < 2 || shown[0] != '"' || shown[n - 1] != '"') return false;
    for (size_t i = 1; i < n - 1; i++) {
        if (shown[i] == '"') return false;
        if (shown[i] != '\\') {
            base_buf_putc(out, shown[i]);
            continue;
        }
        if (++i >= n - 1) return false;
        char c = shown[i];
        if (c == 'n' || c == 't' || c == '"' || c == '\\') {
            base_buf_putc(out, c == 'n' ? '\n' : c == 't' ? '\t' : c);
            continue;
        }
        unsigned value = 0, digits = 0;
        for (; digits < 3 && i < n - 1 && shown[i] >= '0' && shown[i] <= '7'; digits++, i++)
            value = value * 8 + (unsigned)(shown[i] - '0');
        if (digits != 3 || value == 0 || value > 255) return false;
        base_buf_putc(out, (char)value);
        i--;
    }
    return true;
}

/* ".git" in any letter case: some file systems below us do not tell them apart (CVE-2014-9390). */
static bool is_git_name(const char *name, size_t n)
{
    while (n && (name[n - 1] == '.' || name[n - 1] == ' ')) n--;
    return (n == 4 && !strncasecmp(name, ".git", 4)) || (n == 5 && !strncasecmp(name, "git~1", 5));
}

static int refuse(base_err *err, const char *given, const char *format)
{
    base_buf shown = {0};
    tool__path_show(&shown, given);
    if (shown.len > 200) shown.data[200] = '\0'; /* the sentence has a bound */
    int code = base_fail(err, BASE_E_USAGE, "%s %s", shown.data, format);
    base_buf_free(&shown);
    return code;
}

/* What a model writes around a path: blanks, a line's end, Markdown's marks. Quotes as git prints them are taken off. */
static void put_bare(const char *given, size_t n, base_buf *raw)
{
    while (n && (given[n - 1] == ' ' || given[n - 1] == '\n' || given[n - 1] == '`')) n--;
    while (n && (*given == ' ' || *given == '`')) given++, n--;
    if (!tool__path_unquote(given, n, raw)) {
        base_buf_clear(raw);
        base_buf_add(raw, given, n);
    }
    if (!raw->data) base_buf_puts(raw, "");
}

/* *ret: behind the root, where an absolute path lies in it. */
static int skip_root(const tool_root *root, const char *path, const char **ret, base_err *err)
{
    const size_t n = strlen(root->path);
    *ret = path;
    if (*path != '/') return BASE_OK;
    if (!strcmp(root->path, "/")) return BASE_OK;
    if (!strncmp(path, root->path, n) && (path[n] == '/' || path[n] == '\0')) {
        *ret = path + n;
        return BASE_OK;
    }
    base_buf why = {0};
    base_buf_printf(&why, "is outside of this tree; paths are relative to %.200s", root->path);
    int code = refuse(err, path, why.data);
    base_buf_free(&why);
    return code;
}

/* The parts of p with one slash between, without "." and "..". raw: the whole, for the sentence. */
static int put_parts(const char *p, const char *raw, base_buf *clean, base_err *err)
{
    for (;;) {
        p += strspn(p, "/");
        const size_t part = strcspn(p, "/");
        if (!part) return BASE_OK;
        if (part == 2 && p[0] == '.' && p[1] == '.') {
            if (!clean->len) return refuse(err, raw, "leads out of this tree");
            while (clean->len && clean->data[clean->len - 1] != '/') clean->len--;
            if (clean->len) clean->len--;
            clean->data[clean->len] = '\0';
        } else if (is_git_name(p, part)) {
            return refuse(err, raw, "lies under .git, which is git's own; the git tool reads it");
        } else if (!(part == 1 && *p == '.')) {
            if (clean->len) base_buf_putc(clean, '/');
            base_buf_add(clean, p, part);
        }
        p += part;
    }
}

int tool__path_clean(const tool_root *root, const char *given, char **ret, base_err *err)
{
    base_buf raw = {0}, clean = {0};
    const char *inside = NULL;
    const size_t n = strlen(given), most = 4 * TOOL_MAX_PATH + 2; /* quoted, with an escape for each byte */
    if (n > most) return base_fail(err, BASE_E_USAGE, "this path has %zu bytes, more than any file's", n);
    put_bare(given, n, &raw);
    int code = BASE_OK;
    if (raw.len > TOOL_MAX_PATH)
        code = base_fail(err, BASE_E_USAGE, "this path has %zu bytes, more than any file's", raw.len);
    else if (root->is_bare)
        code =
            base_fail(err, BASE_E_USAGE, "%s is a bare repository: it has no files to work on", root->path);
    if (!code) code = skip_root(root, raw.data, &inside, err);
    if (!code) code = put_parts(inside, raw.data, &clean, err);
    if (!code) *ret = base_buf_take(&clean);
    base_buf_free(&raw);
    base_buf_free(&clean);
    return code;
}

/* ---- opening ---- */

/*
 * Without openat2: each folder by itself, links refused at every step. `path` has no ".." (tool__path_clean).
 */
static int walk_open(int fd, const char *path, int flags)
{
    int at = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    while (at >= 0) {
        size_t part = strcspn(path, "/");
        char name[256];
        if (part >= sizeof name) {
            errno = ENAMETOOLONG;
            break;
        }
        memcpy(name, path, part);
        name[part] = '\0';
        bool last = path[part] == '\0';
        int how = last ? flags | O_NOFOLLOW : O_PATH | O_DIRECTORY | O_NOFOLLOW;
        int next = openat(at, part ? name : ".", how | O_CLOEXEC);
        /* O_PATH|O_NOFOLLOW opens the link itself; a caller must see a refusal there, as openat2 gives. */
        struct stat st;
        if (next >= 0 && last && (flags & O_PATH) && !fstat(next, &st) && S_ISLNK(st.st_mode)) {
            close(next);
            next = -1;
            errno = ELOOP;
        }
        int saved = errno;
        close(at);
        errno = saved;
        if (last || next < 0) return next;
        at = next;
        path += part + 1;
    }
    if (at >= 0) {
        int saved = errno;
        close(at);
        errno = saved;
    }
    return -1;
}

int tool__path_open(const tool_root *root, const char *path, int flags)
{
    if (!*path) path = ".";
    if (!root->has_openat2) return walk_open(root->fd, path, flags);
    struct open_how how = {
        .flags = (uint64_t)(flags | O_CLOEXEC),
        .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS,
    };
    for (int tries = 0;; tries++) {
        int fd = (int)syscall(SYS_openat2, root->fd, path, &how, sizeof how);
        /* EAGAIN: something was renamed during the walk; the kernel asks to try again (openat2(2)). */
        if (fd >= 0 || errno != EAGAIN || tries == 8) return fd;
    }
}

int tool__path_chmod(int fd, mode_t mode)
{
    char self[40];
    snprintf(self, sizeof self, "/proc/self/fd/%d", fd);
    return chmod(self, mode & 07777);
}

int tool__path_open_folder(const tool_root *root, const char *path)
{
    struct stat st;
    int fd = tool__path_open(root, path, O_RDONLY | O_DIRECTORY | O_NONBLOCK);
    if (fd >= 0 || errno != EACCES) return fd;
    int at = tool__path_open(root, path, O_PATH | O_DIRECTORY), saved = EACCES;
    if (at >= 0 && !fstat(at, &st) && st.st_uid == geteuid() && !tool__path_chmod(at, st.st_mode | 0500)) {
        fd = openat(at, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        saved = errno;
        tool__path_chmod(at, st.st_mode);
    }
    if (at >= 0) close(at);
    errno = saved;
    return fd;
}

int tool__path_open_parent(
    const tool_root *root, const char *path, bool make, const char **ret_name, size_t *ret_made)
{
    *ret_name = base_path_name(path);
    *ret_made = 0;
    char *folder = base_xstrndup(path, base_path_folder_length(path));
    int fd = tool__path_open(root, folder, O_RDONLY | O_DIRECTORY);
    /* What cannot be listed can be passed through: its files are there. */
    if (fd < 0 && errno == EACCES) fd = tool__path_open(root, folder, O_PATH | O_DIRECTORY);
    if (fd < 0 && errno == ENOENT && make) {
        size_t n = strlen(folder);
        for (size_t i = 1; i <= n; i++) {
            if (folder[i] != '/' && folder[i]) continue;
            char held = folder[i];
            folder[i] = '\0';
            const char *name;
            size_t nothing;
            int parent = tool__path_open_parent(root, folder, false, &name, &nothing);
            int failed = parent < 0 ? -1 : mkdirat(parent, name, 0777);
            if (!failed && !*ret_made) *ret_made = i;
            if (!failed) fsync(parent);
            int saved = errno;
            if (parent >= 0) close(parent);
            folder[i] = held;
            errno = saved;
            if (failed && saved != EEXIST) break;
        }
        fd = tool__path_open(root, folder, O_RDONLY | O_DIRECTORY);
    }
    int saved = errno;
    free(folder);
    errno = saved;
    return fd;
}

/* ---- reading ---- */

void tool__file_free(tool_file *f)
{
    base_buf_free(&f->text);
    memset(f, 0, sizeof *f);
}

void tool__file_part_mark(tool_file *f)
{
    const size_t n = sizeof TOOL_MARK - 1;
    if (f->has_mark || f->text.len < n || memcmp(f->text.data, TOOL_MARK, n) != 0) return;
    f->has_mark = true;
    f->text.len -= n;
    memmove(f->text.data, f->text.data + n, f->text.len + 1);
}

bool tool__is_binary(const char *text, size_t n)
{
    return n && memchr(text, 0, n) != NULL; /* to its end: what stands behind it would not be shown */
}

static int fail_shown(base_err *err, base_code code, const char *path, const char *what)
{
    base_buf shown = {0};
    tool__path_show(&shown, path);
    if (shown.len > 300) shown.data[300] = '\0';
    base_fail(err, code, "%s %s", shown.data, what);
    base_buf_free(&shown);
    return code;
}

static int fail_open(base_err *err, const char *path, int sys)
{
    if (sys == ENOENT || sys == ENOTDIR) return fail_shown(err, BASE_E_NOT_FOUND, path, "does not exist");
    if (sys == ELOOP || sys == EXDEV)
        return fail_shown(
            err, BASE_E_UNSUPPORTED, path, "is or lies behind a symbolic link, which is not followed");
    errno = sys;
    base_buf shown = {0};
    tool__path_show(&shown, path);
    int code = base_fail_sys(err, "%.300s", shown.data);
    base_buf_free(&shown);
    return code;
}

static const struct {
    mode_t kind;
    const char *sentence;
} refused_kinds[] = {
    {S_IFDIR, "is a folder"},
    {S_IFIFO, "is a named pipe, not a file"},
    {S_IFSOCK, "is a socket, not a file"},
    {S_IFBLK, "is a device, not a file"},
    {S_IFCHR, "is a device, not a file"},
    {S_IFLNK, "is a symbolic link, which is not followed"},
};

static int check_kind(base_err *err, const char *path, const struct stat *st)
{
    for (size_t i = 0; i < sizeof refused_kinds / sizeof *refused_kinds; i++)
        if ((st->st_mode & S_IFMT) == refused_kinds[i].kind)
            return fail_shown(err, BASE_E_UNSUPPORTED, path, refused_kinds[i].sentence);
    return BASE_OK;
}

int tool__file_read(const tool_root *root, const char *path, size_t max_bytes, tool_file *ret, base_err *err)
{
    tool_file f = {0};
    /* O_PATH first: opening a device or a pipe can already have effects. */
    int fd = tool__path_open(root, path, O_PATH);
    if (fd < 0) return fail_open(err, path, errno);
    int code = fstat(fd, &f.st) ? base_fail_sys(err, "%s", path) : check_kind(err, path, &f.st);
    close(fd);
    if (code) return code;
    fd = tool__path_open(root, path, O_RDONLY | O_NONBLOCK | O_NOCTTY);
    if (fd < 0) return fail_open(err, path, errno);
    code = fstat(fd, &f.st) ? base_fail_sys(err, "%s", path) : check_kind(err, path, &f.st);
    while (!code) {
        if ((uint64_t)f.st.st_size > max_bytes || f.text.len > max_bytes) {
            base_buf what = {0};
            base_buf_printf(&what, "has %lld bytes, more than the %zu that are read at once",
                (long long)f.st.st_size, max_bytes);
            code = fail_shown(err, BASE_E_LIMIT, path, what.data);
            base_buf_free(&what);
            break;
        }
        base_buf_reserve(&f.text, 65536);
        ssize_t n = read(fd, f.text.data + f.text.len, 65536);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) code = base_fail_sys(err, "%s", path);
        if (n <= 0) break;
        f.text.len += (size_t)n;
    }
    close(fd);
    if (code) {
        tool__file_free(&f);
        return code;
    }
    base_buf_reserve(&f.text, 0);
    f.text.data[f.text.len] = '\0';
    base_sha256_hex(f.text.data, f.text.len, f.version);
    *ret = f;
    return BASE_OK;
}
