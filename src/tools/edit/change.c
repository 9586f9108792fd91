/*
 * One file's new text, from preparation to disk. What a person approved is what is written: the plan holds
 * both texts, and the file must still have the version it was prepared against. The undo record is on disk
 * before the rename, the new text before it is visible; a reader sees the old or the new file, never half of
 * one.
 */
#include "tools/guard/obeyed.h"
#include "tools/file/text.h"
#include "tools/tree/foreign.h"
#include "tools/edit/change.h"
#include "tools/result/result.h"
#include "tools/file/safe_path.h"
#include "tools/tree/workspace.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/mem.h"
#include "tools/edit/undo.h"

void tool__change_free(void *change)
{
    tool_change *c = change;
    if (!c) return;
    tool__change_free(c->also);
    free(c->path);
    base_buf_free(&c->old_text);
    base_buf_free(&c->new_text);
    free(c->say);
    free(c);
}

void tool__change_preview(const tool_root *root, tool_change *change, const char *headline, tool_preview *ret)
{
    base_buf diff = {0};
    size_t added, removed;
    const char *obeyed_by = NULL;
    size_t all_added = 0, all_removed = 0;
    bool is_foreign = false;
    for (const tool_change *c = change; c; c = c->also) {
        tool__diff(&diff, c->path, c->creates ? NULL : &c->old_text, &c->new_text, &added, &removed);
        all_added += added;
        all_removed += removed;
        if (!obeyed_by) obeyed_by = tool__path_obeyed_by(root, c->path);
        is_foreign |= !c->creates && tool__is_foreign(c->path, &c->old_text);
    }
    base_buf head = {0};
    base_buf_printf(&head, "%s (+%zu -%zu)", headline, all_added, all_removed);
    *ret = (tool_preview){.headline = base_buf_take(&head),
        .detail = base_buf_take(&diff),
        .obeyed_by = obeyed_by,
        .is_foreign = is_foreign,
        .plan = change,
        .free_plan = tool__change_free};
}

bool tool_preview_text(const tool_preview *p, const char **ret_path, base_str *ret_text)
{
    if (!p->plan || p->free_plan != tool__change_free) return false;
    const tool_change *c = p->plan;
    *ret_path = c->path;
    *ret_text = (base_str){c->new_text.data ? c->new_text.data : "", c->new_text.len};
    return true;
}

bool tool__open_for_change(
    tool_workspace *w, const char *path, const char *tool, tool_file *f, tool_result *r)
{
    base_err why = {0};
    int code = tool__file_read(&w->root, path, TOOL_MAX_FILE, f, &why);
    if (code) {
        tool__say_path_error(w, r, tool, path, &why);
        return false;
    }
    base_buf shown = {0};
    tool__path_show(&shown, path);
    bool is_good = false;
    if (tool__is_binary(f->text.data, f->text.len))
        tool__say(r, TOOL_REFUSED, "%s is binary and is not changed.\n", shown.data);
    else if (f->st.st_nlink > 1)
        tool__say(r, TOOL_REFUSED,
            "%s has %lu hard links: writing it would change a file that may lie elsewhere.\n", shown.data,
            (unsigned long)f->st.st_nlink);
    else
        is_good = true;
    base_buf_free(&shown);
    return is_good;
}

bool tool__is_unmerged(const char *path, const base_buf *text, tool_result *r)
{
    if (!tool__has_conflict(text->data, text->len)) return true;
    tool__path_show(&r->text, path);
    tool__say(
        r, TOOL_REFUSED, " has conflict marks of a merge. Nothing was changed. Next: resolve them first.\n");
    return false;
}

tool_change *tool__change_new(const char *path, tool_file *f, base_buf *new_text, base_buf *say)
{
    tool_change *c = base_xcalloc(1, sizeof *c);
    c->path = base_xstrdup(path);
    memcpy(c->before, f->version, sizeof c->before);
    if (f->has_mark) {
        base_buf_puts(&c->old_text, TOOL_MARK);
        base_buf_puts(&c->new_text, TOOL_MARK);
    }
    base_buf_add(&c->old_text, f->text.data ? f->text.data : "", f->text.len);
    base_buf_add(&c->new_text, new_text->data ? new_text->data : "", new_text->len);
    base_buf_free(&f->text);
    base_buf_free(new_text);
    c->say = base_buf_take(say);
    return c;
}

bool tool__change_is_shown(tool_workspace *w, const char *path, const tool_file *f, size_t from, size_t to,
    const char *next_call, tool_result *r)
{
    const char *shown = tool__workspace_shown(w, path);
    if (shown && !strcmp(shown, f->version)) return true;
    base_buf name = {0};
    tool__path_show(&name, path);
    tool__say(r, TOOL_REFUSED, "%s %s. Nothing was changed. This is the current text:\n", name.data,
        shown ? "changed since it was shown to you" : "was not read yet");
    const size_t at = r->text.len;
    base_buf_add(&r->text, f->text.data + from, to - from);
    tool__add_source(r, at, r->text.len, path, f->version, from, tool__line_of(f->text.data, from));
    if (r->text.data[r->text.len - 1] != '\n') base_buf_putc(&r->text, '\n');
    base_buf_printf(&r->text, "Next: %s\n", next_call);
    base_buf_free(&name);
    tool_workspace_mark_shown(w, path, f->version);
    return false;
}

size_t tool__change_missing_folder(const tool_workspace *w, const char *path)
{
    for (const char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/')) {
        char *folder = base_xstrndup(path, (size_t)(slash - path));
        int fd = tool__path_open(&w->root, folder, O_PATH | O_DIRECTORY);
        bool missing = fd < 0 && errno == ENOENT;
        if (fd >= 0) close(fd);
        free(folder);
        if (missing) return (size_t)(slash - path);
    }
    return 0;
}

/* One file of a change, recorded for undo and written. */
static int write_change(tool_workspace *w, const tool_change *c, base_err *why)
{
    struct stat st = {0};
    char version[65];
    const char *before = c->creates ? NULL : c->before;
    int code = tool__change_check(w, c->path, before, &st, why);
    mode_t mode = 0644;
    if (c->creates) {
        mode_t mask = umask(0);
        umask(mask);
        mode = 0666 & ~mask;
    } else if (!code) {
        mode = st.st_mode & 07777;
    }
    if (!code)
        code = tool__undo_record(w, c->path, c->creates ? NULL : &c->old_text, &c->new_text, mode,
            c->creates ? tool__change_missing_folder(w, c->path) : 0, why);
    if (!code) code = tool__change_write(w, c->path, &c->new_text, mode, before, why);
    if (code) return code;
    base_sha256_hex(c->new_text.data ? c->new_text.data : "", c->new_text.len, version);
    tool__workspace_wrote(w, c->path, c->new_text.data ? c->new_text.data : "", c->new_text.len, version);
    return BASE_OK;
}

int tool__change_run(tool_workspace *w, const tool_call *call, const tool_limits *limits,
    tool_preview *prepared, tool_result *ret, base_err *err)
{
    tool_change *c = prepared->plan;
    struct stat st = {0};
    base_err why = {0};
    /* Nothing is written where the second file is not what it was. */
    int code = c->also ? tool__change_check(w, c->also->path, c->also->before, &st, &why) : BASE_OK;
    if (!code) code = write_change(w, c, &why);
    if (code) {
        tool__say(ret, code == BASE_E_STATE || code == BASE_E_UNSUPPORTED ? TOOL_REFUSED : TOOL_FAILED,
            "%s. Nothing was written.\n", why.msg);
        if (code == BASE_E_STATE) {
            base_buf_puts(&ret->text, "Next: read {\"path\": ");
            tool__quote(&ret->text, c->path);
            base_buf_puts(&ret->text, "}\n");
        }
        ret->exit_code = -1;
        return BASE_OK;
    }
    ret->status = TOOL_OK;
    ret->exit_code = -1;
    base_buf_puts(&ret->text, c->say ? c->say : "done\n");
    ret->changed = base_xcalloc(3, sizeof *ret->changed);
    ret->changed[0] = base_xstrdup(c->path);
    base_buf diff = {0}, summary = {0};
    size_t added, removed;
    tool__diff(&diff, c->path, c->creates ? NULL : &c->old_text, &c->new_text, &added, &removed);
    base_buf_printf(&summary, "+%zu -%zu ", added, removed);
    tool__path_show(&summary, c->path);
    if (c->also && write_change(w, c->also, &why)) {
        base_buf_printf(&ret->text, "Its second file was not written: %s.\n", why.msg);
    } else if (c->also) {
        ret->changed[1] = base_xstrdup(c->also->path);
        tool__diff(&diff, c->also->path, &c->also->old_text, &c->also->new_text, &added, &removed);
        base_buf_printf(&summary, ", +%zu -%zu ", added, removed);
        tool__path_show(&summary, c->also->path);
    }
    ret->total_bytes = ret->text.len;
    ret->summary = base_buf_take(&summary);
    ret->diff = base_buf_take(&diff);
    return BASE_OK;
}
