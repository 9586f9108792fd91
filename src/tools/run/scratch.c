/* Copying a tree aside and running a command in the copy (contract: scratch.h). */
#include "tools/run/scratch.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/mem.h"
#include "tools/edit/undo.h"
#include "tools/result/result.h"
#include "tools/file/safe_path.h"
#include "tools/tree/workspace.h"
#include "tools/run/box.h"
#include "tools/run/tree_copy.h"
#include "tools/confine/shell.h"

enum { MOST_FILES = 20000 };
static const uint64_t most_bytes = (uint64_t)256 << 20;

struct tool_scratch {
    tool_den *den; /* holds the copy alone: who writes there cannot put another folder in its place */
    bool is_kept;
    tool_tree_copy copy;
    char *tree;        /* that it is a copy of, to which links lead */
    char **readable;   /* what the person allowed; NULL-terminated */
    tool_den *tmp;     /* the workspace's: what a compiler keeps there serves the next trial */
    tool_tried *tried; /* NULL: it is kept */
    tool_sandbox sandbox;
};

static void remove_scratch(tool_scratch *s)
{
    if (!s) return;
    tool__copy_free(&s->copy);
    tool__den_free(s->den);
    for (char **path = s->readable; path && *path; path++) free(*path);
    free(s->readable);
    free(s->tree);
    free(s);
}

void tool_scratch_free(tool_scratch *s)
{
    if (s && !s->is_kept) remove_scratch(s);
}

/* What runners write at each run: read-only, it is a warning to pytest, and to a project that allows none an error. */
static bool is_cache(const char *name)
{
    static const char *const names[] = {".pytest_cache", ".mypy_cache", ".ruff_cache", "__pycache__"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!strcmp(name, names[i])) return true;
    return false;
}

/*
 * What git ignores at the top (installed packages, build folders) is there by a link; a confined command
 * cannot write it.
 */
static void link_ignored(const tool_scratch *s, const tool_root *root)
{
    const int to = s->copy.root.fd;
    int fd = tool__path_open(root, "", O_RDONLY | O_DIRECTORY);
    DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
    if (!dir && fd >= 0) close(fd);
    for (const struct dirent *e = dir ? readdir(dir) : NULL; e; e = readdir(dir)) {
        struct stat st;
        if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, "..") || !strcmp(e->d_name, ".git")) continue;
        if (is_cache(e->d_name)) continue;
        if (fstatat(to, e->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0) continue;
        char *target = base_fs_join(root->path, e->d_name);
        if (symlinkat(target, to, e->d_name)) {
        } /* the command will say what it misses */
        free(target);
    }
    if (dir) closedir(dir);
}

static char **readable_paths(const tool_workspace *w)
{
    size_t n = 0;
    while (w->allow_read[n]) n++;
    char **paths = base_xcalloc(n + 1, sizeof *paths);
    for (size_t i = 0; i < n; i++) paths[i] = base_xstrdup(w->allow_read[i]);
    return paths;
}

/* An empty one. */
static int make_empty(tool_workspace *w, bool is_kept, tool_scratch **ret, base_err *err)
{
    tool_den *den = NULL, **tmp = is_kept ? &w->tmp_kept : &w->tmp_tries;
    int rc = *tmp ? BASE_OK : tool__den_make("tmp", tmp, err);
    if (!rc) rc = tool__den_make(is_kept ? "copy" : "try", &den, err);
    if (rc) return rc;
    tool_scratch *s = base_xcalloc(1, sizeof *s);
    *s = (tool_scratch){.den = den,
        .is_kept = is_kept,
        .copy = {.root = {.fd = -1,
                     .path = base_fs_join(tool__den_path(den), "tree"),
                     .has_openat2 = w->root.has_openat2},
            .most_files = is_kept ? 0 : MOST_FILES,
            .most_bytes = is_kept ? 0 : most_bytes},
        .tree = base_xstrdup(w->root.path),
        .readable = readable_paths(w),
        .tmp = *tmp,
        .tried = is_kept ? NULL : &w->tried,
        .sandbox = w->sandbox};
    rc = tool__den_open(den, err);
    const bool is_open = !rc;
    if (!rc) rc = base_fs_mkdirs(s->copy.root.path, err);
    if (!rc && (s->copy.root.fd = open(s->copy.root.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0)
        rc = base_fail_sys(err, "%s", s->copy.root.path);
    if (is_open) tool__den_close(den);
    if (rc)
        remove_scratch(s);
    else
        *ret = s;
    return rc;
}

const char *tool__scratch_kept_path(tool_workspace *w, base_err *err)
{
    if (!w->kept && make_empty(w, true, &w->kept, err)) return NULL;
    return w->kept->copy.root.path;
}

void tool__scratch_drop_kept(tool_workspace *w)
{
    remove_scratch(w->kept);
    w->kept = NULL;
}

int tool_scratch_make(
    tool_workspace *w, bool is_kept, tool_scratch **ret, const atomic_bool *cancel, base_err *err)
{
    tool_scratch *s = w->kept;
    if (!w->sandbox.is_confining && !is_kept)
        return base_fail(err, BASE_E_UNSUPPORTED, "commands cannot be confined here (kvist doctor says why)");
    int rc = !is_kept || !s ? make_empty(w, is_kept, &s, err) : 0;
    if (rc) return rc;
    if (is_kept) w->kept = s;
    rc = tool__copy_update(&s->copy, w, cancel, err);
    if (rc) {
        tool_scratch_free(s);
        return rc;
    }
    if (!is_kept) link_ignored(s, &w->root);
    /* What an earlier trial wrote there is built already, and later than this file was written. */
    for (size_t i = 0; !is_kept && i < w->tried.n; i++) tool__copy_touch(&s->copy, w->tried.paths[i]);
    *ret = s;
    return 0;
}

int tool_scratch_put(tool_scratch *s, const char *path, const char *text, size_t n, base_err *err)
{
    tool_tried *t = s->tried;
    bool is_known = !t;
    for (size_t i = 0; !is_known && i < t->n; i++) is_known = !strcmp(t->paths[i], path);
    if (!is_known) {
        base_grow(&t->paths, &t->cap, t->n + 1, sizeof *t->paths);
        t->paths[t->n++] = base_xstrdup(path);
    }
    return tool__copy_put(&s->copy, path, text, n, err);
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

int tool__scratch_prepare(const tool_scratch *s, tool_sandbox_plan *ret, base_err *err)
{
    const tool_sandbox_wishes wishes = {.root = s->copy.root.path,
        .tree = s->tree,
        .root_is_writable = true,
        .session = s->tmp,
        .copy = s->den,
        .readable = (const char *const *)s->readable};
    return tool_sandbox_prepare(&s->sandbox, &wishes, ret, err);
}

int tool_scratch_run(
    const tool_scratch *s, const char *command, const tool_limits *limits, tool_result *ret, base_err *err)
{
    static const tool_status status_of[] = {TOOL_OK, TOOL_FAILED, TOOL_TIMEOUT, TOOL_CANCELLED, TOOL_FAILED};
    tool_sandbox_plan plan = {.ruleset = -1};
    tool_child c = {0};
    ret->exit_code = -1;
    int rc = tool__scratch_prepare(s, &plan, err);
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
