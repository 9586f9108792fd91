/*
 * Unified diffs by libgit2's own patch code, so that what a person approves looks as git would show it.
 * Nothing of a repository takes part: no attributes, no drivers.
 */
#include "tools/edit/change.h"
#include "tools/file/safe_path.h"
#include "tools/tree/git_bound.h"
#include "tools/tree/workspace.h"

#include <string.h>

/*
 * A diff is a string in all that follows: a NUL is written as Java's class files write it, which is no UTF-8
 * and so is seen.
 */
static void put_whole(base_buf *out, const char *s, size_t n)
{
    while (n > 0) {
        const char *nul = memchr(s, 0, n);
        const size_t length = nul ? (size_t)(nul - s) : n;
        base_buf_add(out, s, length);
        if (!nul) return;
        base_buf_puts(out, "\xc0\x80");
        s += length + 1;
        n -= length + 1;
    }
}

void tool__diff(base_buf *out, const char *path, const base_buf *old_text, const base_buf *new_text,
    size_t *ret_added, size_t *ret_removed)
{
    if (ret_added) *ret_added = 0;
    if (ret_removed) *ret_removed = 0;
    if (old_text && new_text && old_text->len == new_text->len &&
        (!old_text->len || !memcmp(old_text->data, new_text->data, old_text->len)))
        return;
    tool__git_start(); /* a diff may come before any repository */
    git_patch *patch = NULL;
    git_buf text = {0};
    git_diff_options options = GIT_DIFF_OPTIONS_INIT;
    /* Never "Binary files differ": what a person approves is shown, whatever it is. */
    options.flags = GIT_DIFF_INDENT_HEURISTIC | GIT_DIFF_FORCE_TEXT;
    base_buf shown = {0};
    tool__path_show(&shown, path);
    const char *old_data = old_text ? old_text->data : NULL, *new_data = new_text ? new_text->data : NULL;
    if (git_patch_from_buffers(&patch, old_data ? old_data : "", old_text ? old_text->len : 0, NULL,
            new_data ? new_data : "", new_text ? new_text->len : 0, NULL, &options) == 0 &&
        git_patch_to_buf(&text, patch) == 0) {
        /* Our own header: libgit2's names no file here. */
        base_buf_printf(out, "--- %s%s\n", old_text ? "a/" : "", old_text ? shown.data : "/dev/null");
        base_buf_printf(out, "+++ %s%s\n", new_text ? "b/" : "", new_text ? shown.data : "/dev/null");
        const char *body = text.ptr ? memmem(text.ptr, text.size, "\n@@", 3) : NULL;
        if (body) put_whole(out, body + 1, text.size - (size_t)(body + 1 - text.ptr));
        size_t added = 0, removed = 0;
        git_patch_line_stats(NULL, &added, &removed, patch);
        if (ret_added) *ret_added = added;
        if (ret_removed) *ret_removed = removed;
    }
    git_buf_dispose(&text);
    git_patch_free(patch);
    base_buf_free(&shown);
}
