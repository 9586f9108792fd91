/*
 * Several files' new texts, written all or none.
 *
 * Before the first file is renamed into place, the undo journal holds every text and a file in the data folder
 * (pending/ROOT) names them all; it goes when the last one is written. A process that is killed between leaves
 * it, and the next one that opens this tree puts back what was written (tool_workspace_recover): a file that
 * holds neither text was changed by somebody else since, and stays. A lock says whether the writer still lives.
 *
 * What was prepared while another kvist was in the middle of its files rests on a tree that never was, and may leave
 * out a file that the other one had written already. So whoever holds the lock prepares once more and compares.
 */
#include "tools/guard/obeyed.h"
#include "tools/tree/foreign.h"
#include "tools/tree/leftover.h"
#include "tools/tree/pending.h"
#include "tools/refactor/changes.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/hash.h"
#include "base/mem.h"
#include "tools/edit/undo.h"
#include "tools/result/result.h"

#define PENDING_MAX ((size_t)64 << 20)

void tool__changes_free(void *changes)
{
    tool_changes *c = changes;
    if (!c) return;
    for (size_t i = 0; i < c->n; i++) tool__change_free(c->all[i]);
    free(c->all);
    free(c->say);
    free(c->notice);
    free(c);
}

void tool__changes_add(tool_changes *c, const char *path, const tool_file *file, base_buf *new_text)
{
    tool_change *one = base_xcalloc(1, sizeof *one);
    one->path = base_xstrdup(path);
    one->creates = !file;
    const char *mark = file && file->has_mark ? TOOL_MARK : "";
    if (file) {
        memcpy(one->before, file->version, sizeof one->before);
        base_buf_puts(&one->old_text, mark);
        base_buf_add(&one->old_text, file->text.data ? file->text.data : "", file->text.len);
    }
    if (*mark && new_text->len) {
        base_buf_puts(&one->new_text, mark);
        base_buf_add(&one->new_text, new_text->data, new_text->len);
        base_buf_free(new_text);
    } else {
        one->new_text = *new_text;
    }
    *new_text = (base_buf){0};
    if (!one->new_text.data) base_buf_puts(&one->new_text, "");
    base_grow(&c->all, &c->cap, c->n + 1, sizeof *c->all);
    c->all[c->n++] = one;
}

/* ---- before anything is shown ---- */

static bool parses(tool_workspace *w, const tool_change *c, tool_result *r)
{
    code_file *before =
        code_parse(w->grammars, c->path, c->old_text.data ? c->old_text.data : "", c->old_text.len);
    code_file *after = code_parse(w->grammars, c->path, c->new_text.data, c->new_text.len);
    const bool was_read = c->creates || before->language;
    const bool holds =
        !after->language || !was_read || after->n_errors <= (c->creates ? 0 : before->n_errors);
    if (!holds) {
        tool__path_show(&r->text, c->path);
        tool__say(r, TOOL_REFUSED, " would not parse (%s) near line %u after this. Nothing was changed.\n",
            after->language, after->error_line);
    }
    code_file_free(before);
    code_file_free(after);
    return holds;
}

bool tool__changes_hold(tool_workspace *w, const tool_changes *c, tool_result *r)
{
    for (size_t i = 0; i < c->n; i++) {
        const tool_change *one = c->all[i];
        tool_file now = {0};
        if (!one->creates && !tool__file_read(&w->root, one->path, TOOL_MAX_FILE, &now, NULL) &&
            now.st.st_nlink > 1) {
            tool__path_show(&r->text, one->path);
            tool__say(r, TOOL_REFUSED,
                " has %lu hard links: writing it would change a "
                "file that may lie elsewhere. Nothing was changed.\n",
                (unsigned long)now.st.st_nlink);
        } else if (tool__is_unmerged(one->path, &one->old_text, r)) {
            parses(w, one, r);
        }
        tool__file_free(&now);
        if (r->status != TOOL_OK) return false;
    }
    return true;
}

static const base_buf *text_before(const tool_change *c)
{
    return c->creates ? NULL : &c->old_text;
}

static const base_buf *text_after(const tool_change *c)
{
    return c->removes ? NULL : &c->new_text;
}

static bool is_merging(const tool_workspace *w)
{
    return w->repo && git_repository_state(w->repo) != GIT_REPOSITORY_STATE_NONE;
}

void tool__changes_preview(tool_workspace *w, tool_changes *c, const char *headline, tool_preview *ret)
{
    base_buf diff = {0}, head = {0};
    size_t all_added = 0, all_removed = 0;
    const char *obeyed_by = NULL;
    bool is_foreign = false;
    for (size_t i = 0; i < c->n; i++) {
        const tool_change *one = c->all[i];
        size_t added = 0, removed = 0;
        tool__diff(&diff, one->path, text_before(one), text_after(one), &added, &removed);
        all_added += added;
        all_removed += removed;
        if (!obeyed_by) obeyed_by = tool__path_obeyed_by(&w->root, one->path);
        is_foreign |= text_before(one) && tool__is_foreign(one->path, text_before(one));
    }
    base_buf_printf(&head, "%s (%zu file%s, +%zu -%zu)%s", headline, c->n, c->n == 1 ? "" : "s", all_added,
        all_removed, is_merging(w) ? " (in the middle of a merge or rebase)" : "");
    *ret = (tool_preview){.headline = base_buf_take(&head),
        .detail = base_buf_take(&diff),
        .obeyed_by = obeyed_by,
        .is_foreign = is_foreign,
        .plan = c,
        .free_plan = tool__changes_free};
}

/* ---- the file that names what is under way ---- */

/* "": no file. */
static const char *version_of(const base_buf *text, char version[65])
{
    version[0] = '\0';
    if (text) base_sha256_hex(text->data ? text->data : "", text->len, version);
    return version;
}

/* One line a file, as the undo journal writes it; the first line says where the objects are. */
static int pending_write(
    const tool_pending *p, const tool_workspace *w, const tool_changes *c, const mode_t *modes, base_err *err)
{
    base_buf text = {0};
    base_buf_printf(&text, "objects %s\n", tool__undo_objects(w->undo));
    for (size_t i = 0; i < c->n; i++) {
        char after[65];
        const tool_change *one = c->all[i];
        base_buf_printf(&text, "w 1 0 %s %s %o 0 ", one->creates ? "-" : one->before,
            one->removes ? "-" : version_of(&one->new_text, after), (unsigned)modes[i]);
        tool__path_show(&text, one->path);
        base_buf_putc(&text, '\n');
    }
    const int code = base_fs_write(p->path, text.data, text.len, 0600, err);
    base_buf_free(&text);
    return code;
}

static void pending_done(const tool_pending *p)
{
    unlink(p->path);
}

/* ---- putting back ---- */

/*
 * The file holds `after` ("": it is gone) and shall hold `text` again (NULL: be gone). *ret_foreign: it holds
 * something else, and stays. `mode` is that of a file that is made again.
 */
static int put_back(tool_workspace *w, const char *path, const base_buf *text, const char *before,
    const char *after, mode_t mode, bool *ret_foreign, base_err *err)
{
    tool_file now = {0};
    base_err seen = {0};
    int code = tool__file_read(&w->root, path, TOOL_MAX_FILE, &now, &seen);
    *ret_foreign = false;
    if (code == BASE_E_NOT_FOUND && !after[0] && text) {
        code = tool__change_write(w, path, text, mode, NULL, err);
    } else if (code == BASE_E_NOT_FOUND) {
        *ret_foreign = before[0] != '\0';
        code = BASE_OK;
    } else if (!code && !strcmp(now.version, after)) {
        code = tool__change_write(w, path, text, now.st.st_mode & 07777, after, err);
    } else if (!code) {
        *ret_foreign = strcmp(now.version, before) != 0;
    } else {
        *ret_foreign = true;
        code = BASE_OK;
    }
    tool__file_free(&now);
    return code;
}

static int read_object(const char *folder, const char *hash, base_buf *out, base_err *err)
{
    base_buf path = {0};
    char got[65];
    base_buf_printf(&path, "%s/%s", folder, hash);
    int code = base_fs_read(path.data, TOOL_MAX_FILE, out, err);
    if (!code && strcmp(version_of(out, got), hash) != 0)
        code = base_fail(err, BASE_E_FORMAT, "the kept text %.12s is damaged", hash);
    base_buf_free(&path);
    return code;
}

/* What a killed writer named is put back; the lock is held. Sentences about it go to `notes`. */
static void recover(tool_workspace *w, const tool_pending *p, base_buf *notes)
{
    base_err err = {0};
    base_buf text = {0};
    tool_undo_journal journal = {0};
    static const char head[] = "objects ";
    const char *line = NULL;
    size_t n_back = 0, n_stay = 0;
    int code = base_fs_read(p->path, PENDING_MAX, &text, &err);
    if (code) goto out;
    line = memchr(text.data ? text.data : "", '\n', text.len);
    if (!line || strncmp(text.data, head, sizeof head - 1) != 0) goto done;
    char *folder = base_xstrndup(text.data + sizeof head - 1, (size_t)(line - text.data) - (sizeof head - 1));
    tool__undo_parse(line + 1, text.len - (size_t)(line + 1 - text.data), &journal);
    for (size_t i = 0; i < journal.n && !code; i++) {
        const tool_undo_record *r = &journal.items[i];
        base_buf before = {0};
        bool is_foreign = false;
        char *clean = NULL;
        if (tool__path_clean(&w->root, r->path, &clean, NULL) || strcmp(clean, r->path) != 0) {
            free(clean);
            continue;
        }
        free(clean);
        if (r->before[0]) code = read_object(folder, r->before, &before, &err);
        if (!code)
            code = put_back(
                w, r->path, r->before[0] ? &before : NULL, r->before, r->after, r->mode, &is_foreign, &err);
        n_back += !code && !is_foreign;
        n_stay += is_foreign;
        base_buf_free(&before);
    }
    free(folder);
    if (code) {
        base_buf_printf(notes,
            "A change of several files was cut off by a kill and could not be put back: %s.\n", err.msg);
        goto out; /* the next start tries again */
    }
    if (!n_back && !n_stay)
        base_buf_puts(notes,
            "A change of several files was cut off by a kill, and the list of them names none "
            "that could be put back.\n");
    else
        base_buf_printf(notes,
            "A change of %zu files was cut off by a kill: they are as they were before it.\n",
            n_back + n_stay);
    if (n_stay)
        base_buf_printf(notes, "%zu of them were changed by somebody since and stay as they are.\n", n_stay);
done:
    pending_done(p);
out:
    tool__undo_journal_free(&journal);
    base_buf_free(&text);
}

void tool_workspace_recover(tool_workspace *w)
{
    tool_pending p;
    base_err err = {0};
    char *home = base_fs_home(BASE_HOME_DATA, "pending");
    const bool may_be = home && base_fs_exists(home);
    if (may_be) tool__leftover_remove_all(w);
    free(home);
    if (!may_be) return;
    if (!tool__pending_begin(w, &p, &err)) recover(w, &p, &w->notes); /* else its writer lives */
    tool__pending_end(&p);
}

/* ---- writing ---- */

static mode_t mode_of_new(void)
{
    const mode_t mask = umask(0);
    umask(mask);
    return 0666 & ~mask;
}

static bool is_same(const tool_change *a, const tool_change *b)
{
    return !strcmp(a->path, b->path) && !strcmp(a->before, b->before) && a->creates == b->creates &&
           a->removes == b->removes && a->new_text.len == b->new_text.len &&
           (!a->new_text.len || !memcmp(a->new_text.data, b->new_text.data, a->new_text.len));
}

/* Does what prepared the changes come to the same in the tree as it is now? */
static int check_again(
    tool_workspace *w, const tool_changes *c, const tool_call *call, const tool_limits *limits, base_err *err)
{
    tool_preview again = {0};
    tool_result said = {0};
    int code = tool__workspace_read_again(w, limits->cancel, err);
    if (!code) code = c->prepare(w, call, limits, &again, &said, err);
    const tool_changes *now = again.plan;
    bool holds = !code && now && now->n == c->n;
    for (size_t i = 0; holds && i < c->n; i++) holds = is_same(c->all[i], now->all[i]);
    if (!code && !holds)
        code = base_fail(err, BASE_E_STATE, "other files of this tree changed since this was prepared");
    tool_preview_free(&again);
    tool_result_free(&said);
    return code;
}

/* Every file must still be what it was prepared against. */
static int check_all(tool_workspace *w, const tool_changes *c, mode_t *modes, base_err *err)
{
    int code = BASE_OK;
    for (size_t i = 0; i < c->n && !code; i++) {
        const tool_change *one = c->all[i];
        tool_file now = {0};
        base_err seen = {0};
        const int found = tool__file_read(&w->root, one->path, TOOL_MAX_FILE, &now, &seen);
        modes[i] = !one->creates ? now.st.st_mode & 07777 : one->mode ? one->mode : mode_of_new();
        if (one->creates ? found != BASE_E_NOT_FOUND : found || strcmp(now.version, one->before) != 0)
            code = base_fail(err, BASE_E_STATE, "%.300s %s", one->path,
                one->creates ? "exists by now" : "changed since this was prepared");
        tool__file_free(&now);
    }
    return code;
}

static int write_all(tool_workspace *w, const tool_changes *c, const tool_limits *limits, const mode_t *modes,
    size_t *ret_n, base_err *err)
{
    for (*ret_n = 0; *ret_n < c->n; ++*ret_n) {
        const tool_change *one = c->all[*ret_n];
        if (tool__cancelled(limits)) return base_fail(err, BASE_E_CANCELLED, "cancelled");
        const int code = tool__change_write(
            w, one->path, text_after(one), modes[*ret_n], one->creates ? NULL : one->before, err);
        if (code) return code;
        tool__step("file");
    }
    return BASE_OK;
}

/* Back to the old texts, the last one first. false: a file could not be written; it is named. */
static bool take_back(tool_workspace *w, const tool_changes *c, const mode_t *modes, size_t n, base_err *err)
{
    bool is_good = true;
    while (n-- > 0) {
        const tool_change *one = c->all[n];
        char after[65];
        bool is_foreign;
        base_err why = {0};
        if (put_back(w, one->path, text_before(one), one->creates ? "" : one->before,
                version_of(text_after(one), after), modes[n], &is_foreign, &why) &&
            is_good) {
            is_good = false;
            *err = why;
        }
    }
    return is_good;
}

static void say_done(tool_workspace *w, const tool_changes *c, tool_result *ret)
{
    base_buf diff = {0}, summary = {0};
    size_t all_added = 0, all_removed = 0;
    ret->changed = base_xcalloc(c->n + 1, sizeof *ret->changed);
    for (size_t i = 0; i < c->n; i++) {
        const tool_change *one = c->all[i];
        char version[65];
        size_t added = 0, removed = 0;
        tool__workspace_wrote(w, one->path, one->removes ? NULL : one->new_text.data, one->new_text.len,
            version_of(text_after(one), version));
        tool__diff(&diff, one->path, text_before(one), text_after(one), &added, &removed);
        all_added += added;
        all_removed += removed;
        ret->changed[i] = base_xstrdup(one->path);
    }
    base_buf_printf(&summary, "+%zu -%zu in %zu file%s", all_added, all_removed, c->n, c->n == 1 ? "" : "s");
    base_buf_puts(&ret->text, c->say ? c->say : "done\n");
    ret->status = TOOL_OK;
    ret->total_bytes = ret->text.len;
    ret->summary = base_buf_take(&summary);
    ret->diff = base_buf_take(&diff);
    if (c->notice) ret->notice = base_xstrdup(c->notice);
}

int tool__changes_run(tool_workspace *w, const tool_call *call, const tool_limits *limits,
    tool_preview *prepared, tool_result *ret, base_err *err)
{
    tool_changes *c = prepared->plan;
    mode_t *modes = base_xcalloc(c->n, sizeof *modes);
    size_t n_written = 0;
    base_err why = {0};
    tool_pending p = {.fd = -1};
    ret->exit_code = -1;
    int code = check_all(w, c, modes, &why);
    if (!code) code = tool__pending_begin(w, &p, &why);
    if (!code && base_fs_exists(p.path)) { /* another one was killed since this one began */
        recover(w, &p, &w->news);
        if (base_fs_exists(p.path))
            code = base_fail(&why, BASE_E_STATE, "a change that was cut off could not be put back");
    }
    if (!code && c->prepare) code = check_again(w, c, call, limits, &why);
    for (size_t i = 0; i < c->n && !code; i++)
        code = tool__undo_record(w, c->all[i]->path, text_before(c->all[i]), text_after(c->all[i]), modes[i],
            c->all[i]->creates ? tool__change_missing_folder(w, c->all[i]->path) : 0, &why);
    if (!code) code = pending_write(&p, w, c, modes, &why);
    tool__step("pending");
    if (!code) code = write_all(w, c, limits, modes, &n_written, &why);
    if (code) {
        base_err back = {0};
        if (take_back(w, c, modes, n_written, &back)) {
            if (p.fd >= 0) pending_done(&p);
            tool__say(ret, code == BASE_E_CANCELLED ? TOOL_CANCELLED : TOOL_REFUSED,
                "%s. Nothing was changed: all %zu files are as they were.\n", why.msg, c->n);
        } else {
            tool__say(ret, TOOL_FAILED,
                "%s, and then %s: some of the files may hold the new text until kvist is started again.\n",
                why.msg, back.msg);
        }
    } else {
        pending_done(&p);
        tool__step("done");
        say_done(w, c, ret);
    }
    tool__pending_end(&p);
    free(modes);
    (void)err;
    return BASE_OK;
}
