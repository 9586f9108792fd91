/*
 * A workspace is opened and closed here, above all that it is made of: the tree and its index, git, the sandbox, what
 * guards git, the undo journal.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/mem.h"
#include "tools/edit/undo.h"
#include "tools/guard/git_guard.h"
#include "tools/guard/git_since.h"
#include "tools/run/scratch.h"
#include "tools/tree/workspace.h"

#include <linux/openat2.h>

static bool probe_openat2(int fd)
{
    struct open_how how = {.flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_BENEATH};
    int got = (int)syscall(SYS_openat2, fd, ".", &how, sizeof how);
    if (got < 0) return false;
    close(got);
    return true;
}

/* A box around everything is none. */
static void note_wide_tree(tool_workspace *w)
{
    char *home = getenv("HOME") ? realpath(getenv("HOME"), NULL) : NULL;
    if (!w->root.path[1]) {
        w->sandbox.is_confining = false;
        base_buf_puts(&w->notes, "The tree is the whole file system: commands can write everywhere.\n");
    } else if (home && !strcmp(home, w->root.path)) {
        base_buf_puts(&w->notes,
            "The tree is your home folder: commands can change every file in it, start-up files too, but for "
            "keys and credentials that go by a known name.\n");
    }
    free(home);
}

static char **copy_paths(const char *const *paths)
{
    size_t n = 0;
    while (paths && paths[n]) n++;
    char **copy = base_xcalloc(n + 1, sizeof *copy);
    for (size_t i = 0; i < n; i++) copy[i] = base_xstrdup(paths[i]);
    return copy;
}

int tool_workspace_open(tool_workspace **ret, const tool_workspace_options *options, base_err *err)
{
    tool_workspace *w = base_xcalloc(1, sizeof *w);
    w->root.fd = -1;
    w->recall = options->recall;
    w->recall_user = options->recall_user;
    w->outside = options->outside;
    w->outside_user = options->outside_user;
    w->allow_read = copy_paths(options->allow_read);
    size_t n_ignored = 0;
    while (options->ignore && options->ignore[n_ignored]) n_ignored++;
    int code = tool__git_open(w, options->dir && *options->dir ? options->dir : ".", err);
    const git_strarray patterns = {(char **)(uintptr_t)options->ignore, n_ignored};
    if (!code && n_ignored && git_pathspec_new(&w->ignored, &patterns))
        code = base_fail(err, BASE_E_USAGE, "the patterns of what is ignored cannot be read: %s",
            git_error_last()->message);
    if (!code) {
        w->root.fd = open(w->root.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (w->root.fd < 0) code = base_fail_sys(err, "%s", w->root.path);
    }
    if (!code) {
        w->root.has_openat2 = probe_openat2(w->root.fd);
        if (!w->root.has_openat2)
            base_buf_puts(&w->notes,
                "This kernel lacks openat2: paths are opened a folder at a time instead, links refused.\n");
        if (options->store) w->store = base_xstrdup(options->store);
        w->store_is_temporary = !options->store;
        tool_sandbox_probe(&w->sandbox);
        note_wide_tree(w);
        w->grammars = code_grammars_open();
        w->index = code_index_new(w->grammars);
        w->indexer = tool__indexer_open(&w->root, w->index, options->store != NULL);
        w->git_since = tool__git_since_take(w);
    }
    if (code) {
        tool_workspace_close(w);
        return code;
    }
    *ret = w;
    return BASE_OK;
}

void tool_workspace_close(tool_workspace *w)
{
    if (!w) return;
    tool__undo_close(w->undo);
    if (w->store_is_temporary && w->store) base_fs_remove(w->store, NULL);
    tool__scratch_drop_kept(w);
    tool__den_free(w->tmp);
    tool__den_free(w->tmp_kept);
    tool__den_free(w->tmp_tries);
    for (size_t i = 0; i < w->tried.n; i++) free(w->tried.paths[i]);
    free(w->tried.paths);
    free(w->served);
    tool__git_guard_free(w->git_guard);
    tool__git_since_free(w->git_since);
    for (char **path = w->allow_read; *path; path++) free(*path);
    free(w->allow_read);
    free(w->aside);
    tool__indexer_close(w->indexer);
    code_history_free(w->history);
    if (w->index) code_index_free(w->index);
    if (w->grammars) code_grammars_close(w->grammars);
    tool__listing_free(&w->listing);
    tool__folders_free(&w->folders);
    for (size_t i = 0; i < w->n_marks; i++) free(w->marks[i].path);
    free(w->marks);
    if (w->root.fd >= 0) close(w->root.fd);
    git_pathspec_free(w->ignored);
    tool__git_close(w);
    base_buf_free(&w->notes);
    base_buf_free(&w->news);
    free(w->root.path);
    free(w->store);
    free(w);
}

bool tool_sandbox_describe(base_buf *out)
{
    tool_sandbox s;
    tool_sandbox_probe(&s);
    tool_sandbox_describe_one(&s, out);
    return s.is_confining;
}
