/*
 * The files of rewound turns: what the undo journal knows of every turn from one on, taken back as one change of
 * several files (changes.c), so all or none, and one group of the journal that /undo takes back again.
 *
 * A file's records since that turn are a chain of texts; what it shall hold is what the first of them found. Where
 * the file, or one of the records, holds a text that no record of the chain has, somebody else changed the file
 * meanwhile: it stays, and is named.
 */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "tools/edit/undo.h"
#include "tools/refactor/changes.h"
#include "tools/result/result.h"

typedef struct chain {
    size_t first; /* its first record */
    bool is_broken;
} chain;

/* Has one of the records from `from` to before `to` this text of the file? "": no file, in which nothing can be lost. */
static bool is_known(const tool_undo_journal *j, size_t from, size_t to, const char *version)
{
    const char *path = j->items[from].path;
    for (size_t i = from; i < to; i++) {
        const tool_undo_record *r = &j->items[i];
        if (!strcmp(r->path, path) && (!strcmp(r->before, version) || !strcmp(r->after, version)))
            return true;
    }
    return !version[0];
}

static size_t find_chains(const tool_undo_journal *j, uint32_t turn, chain **ret)
{
    chain *chains = NULL;
    size_t n = 0, cap = 0;
    for (size_t i = 0; i < j->n; i++) {
        const tool_undo_record *r = &j->items[i];
        size_t k = 0;
        if (r->is_undone) continue;
        while (k < n && strcmp(j->items[chains[k].first].path, r->path) != 0) k++;
        if (k < n) {
            if (!is_known(j, chains[k].first, i, r->before)) chains[k].is_broken = true;
        } else if (r->turn >= turn && !r->is_past) {
            base_grow(&chains, &cap, n + 1, sizeof *chains);
            chains[n++] = (chain){.first = i};
        }
    }
    *ret = chains;
    return n;
}

static void say_left(base_buf *left, const char *path, const char *why)
{
    base_buf_puts(left, left->len ? "\n" : "");
    tool__path_show(left, path);
    base_buf_printf(left, " stays as it is: %s", why);
}

/* Adds what takes one file back, or says why it stays. */
static void add_file(tool_workspace *w, const chain *k, tool_changes *c, base_buf *left)
{
    const tool_undo_journal *j = tool__undo_records(w->undo);
    const tool_undo_record *r = &j->items[k->first];
    tool_file now = {0};
    base_err why = {0};
    base_buf text = {0};
    const int code = tool__file_read(&w->root, r->path, TOOL_MAX_FILE, &now, &why);
    const bool exists = code != BASE_E_NOT_FOUND;
    if (exists && code) {
        say_left(left, r->path, why.msg);
    } else if (!strcmp(exists ? now.version : "", r->before)) {
        /* nothing to do */
    } else if (k->is_broken || !is_known(j, k->first, j->n, exists ? now.version : "")) {
        say_left(left, r->path, "it was changed after kvist wrote it (by hand or by a command)");
    } else if (r->before[0] && tool__undo_text(w->undo, r->before, &text, &why)) {
        say_left(left, r->path, why.msg);
    } else {
        tool__changes_add(c, r->path, exists ? &now : NULL, &text);
        tool_change *one = c->all[c->n - 1];
        one->removes = !r->before[0];
        one->mode = r->mode;
        one->made = r->made;
    }
    base_buf_free(&text);
    tool__file_free(&now);
}

int tool_rewind_prepare(tool_workspace *w, uint32_t turn, tool_preview *ret, base_buf *left, base_err *err)
{
    *ret = (tool_preview){0};
    const int code = tool__undo_open(w, err);
    if (code) return code;
    chain *chains;
    const size_t n = find_chains(tool__undo_records(w->undo), turn, &chains);
    tool_changes *c = base_xcalloc(1, sizeof *c);
    for (size_t i = 0; i < n; i++) add_file(w, &chains[i], c, left);
    free(chains);
    base_buf headline = {0};
    base_buf_printf(&headline, "rewind to before turn %u: take its files back too?", turn);
    if (c->n)
        tool__changes_preview(w, c, headline.data, ret);
    else
        tool__changes_free(c);
    base_buf_free(&headline);
    return BASE_OK;
}

static void say_done(const tool_changes *c, tool_result *ret)
{
    size_t n_removed = 0;
    base_buf names = {0}, say = {0};
    for (size_t i = 0; i < c->n; i++) {
        n_removed += c->all[i]->removes;
        base_buf_puts(&names, i ? ", " : "");
        tool__path_show(&names, c->all[i]->path);
    }
    base_buf_puts(&say, "files:");
    if (c->n > n_removed) base_buf_printf(&say, " %zu restored", c->n - n_removed);
    if (n_removed) base_buf_printf(&say, "%s %zu removed", c->n > n_removed ? "," : "", n_removed);
    base_buf_printf(&say, " (%s)", names.data);
    base_buf_free(&names);
    free(ret->summary);
    ret->summary = base_buf_take(&say);
}

int tool_rewind_apply(
    tool_workspace *w, uint32_t turn, tool_preview *prepared, tool_result *ret, base_err *err)
{
    const uint32_t now = w->turn;
    const tool_changes *c = prepared->plan;
    const tool_limits limits = {0};
    tool_workspace_turn(w, turn - 1); /* a group of its own, of the turn that is the last one then */
    int code = tool__changes_run(w, NULL, &limits, prepared, ret, err);
    if (!code && ret->status != TOOL_OK)
        code =
            base_fail(err, BASE_E_STATE, "%.300s", ret->text.data ? ret->text.data : "no file was written");
    if (code) {
        tool_workspace_turn(w, now);
        return code;
    }
    for (size_t i = c->n; i-- > 0;)
        if (c->all[i]->removes) tool__undo_remove_folders(w, c->all[i]->path, c->all[i]->made);
    say_done(c, ret);
    return BASE_OK;
}

int tool_rewind_done(tool_workspace *w, uint32_t turn, bool took_files, base_err *err)
{
    int code = tool__undo_open(w, err);
    const tool_undo_journal *j = code ? NULL : tool__undo_records(w->undo);
    bool is_needed = false;
    for (size_t i = 0; j && i < j->n; i++)
        is_needed = is_needed || (j->items[i].turn >= turn && !j->items[i].is_past);
    if (!code && (is_needed || took_files)) code = tool__undo_rewound(w->undo, turn, took_files, err);
    return code;
}
