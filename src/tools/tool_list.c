/*
 * list {path?}: the files of the tree. A small tree is shown whole; of a large one the folder's own entries,
 * folders with the number of files below them. Names come from the listing (git's view), never from readdir.
 */
#include "tools/result/result.h"
#include "tools/tree/listing.h"
#include "tools/file/safe_path.h"
#include "tools/tree/workspace.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

#define SHOW_WHOLE 80 /* files of a subtree that are listed one by one */

static void show_folder(base_buf *out, const tool_listing *l, size_t from, size_t to, size_t prefix)
{
    /* Files of one folder stand together because the listing is sorted. */
    for (size_t i = from; i < to;) {
        const char *rest = l->files[i].path + prefix, *slash = strchr(rest, '/');
        if (!slash) {
            tool__path_show(out, l->files[i].path);
            base_buf_putc(out, '\n');
            i++;
            continue;
        }
        size_t folder = (size_t)(slash - l->files[i].path) + 1, n = 0;
        while (i + n < to && !strncmp(l->files[i + n].path, l->files[i].path, folder)) n++;
        char *name = base_xstrndup(l->files[i].path, folder);
        tool__path_show(out, name);
        base_buf_printf(out, " (%zu file%s)\n", n, n == 1 ? "" : "s");
        free(name);
        i += n;
    }
}

static int run(tool_workspace *w, const tool_call *call, const tool_limits *limits, tool_preview *prepared,
    tool_result *ret, base_err *err)
{
    const char *given = tool__string(call, "path");
    char *path = NULL;
    base_err why = {0};
    ret->exit_code = -1;
    int code = tool__workspace_list(w, limits ? limits->cancel : NULL, err);
    if (code) return code;
    if (tool__path_clean(&w->root, given ? given : ".", &path, &why)) {
        tool__say_path_error(w, ret, "list", given ? given : ".", &why);
        return BASE_OK;
    }
    const tool_listing *l = &w->listing;
    size_t from = 0, to = l->n, prefix = 0;
    if (*path) {
        base_buf below = {0};
        base_buf_printf(&below, "%s/", path);
        prefix = below.len;
        from = tool__listing_find(l, below.data, NULL);
        for (to = from; to < l->n && !strncmp(l->files[to].path, below.data, prefix);) to++;
        base_buf_free(&below);
    }
    bool is_file;
    tool__listing_find(l, path, &is_file);
    if (is_file) {
        base_buf_puts(&ret->text, "This is a file. Next: read {\"path\": ");
        tool__quote(&ret->text, path);
        tool__say(ret, TOOL_FAILED, "}\n");
    } else if (from == to && *path) {
        base_fail(&why, BASE_E_NOT_FOUND, "the tree has no folder %.300s", path);
        tool__say_path_error(w, ret, "list", path, &why);
    } else if (from == to) {
        tool__say(ret, TOOL_OK, "The tree holds no files.\n");
    } else if (to - from <= SHOW_WHOLE) {
        for (size_t i = from; i < to; i++) {
            tool__path_show(&ret->text, l->files[i].path);
            base_buf_putc(&ret->text, '\n');
        }
    } else {
        show_folder(&ret->text, l, from, to, prefix);
        base_buf_printf(&ret->text,
            "%zu files in all. Next: list {\"path\": ...} for one folder, or search {\"query\": ...}\n",
            to - from);
    }
    tool__cap(w, ret, limits, 6);
    free(path);
    return BASE_OK;
}

static const tool_argument arguments[] = {
    {"path", TOOL_ARGUMENT_STRING, false, "folder; the whole tree without it", NULL, TOOL_FOR_ALL},
    {0},
};

const tool_entry tool__list = {
    .name = "list",
    .power = TOOL_READS,
    .about = "List the files of the tree or of one folder.",
    .arguments = arguments,
    .run = run,
};
