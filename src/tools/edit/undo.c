/*
 * Undo that survives a kill: before a file is written, what it held and what it will hold are objects in the
 * session's folder (undo/objects/<sha256>) and a line of undo/journal names them, all on disk. Nothing of git
 * is touched.
 *
 * What one turn wrote is one group. Undoing compares each file with what the journal knows of it: the text
 * before (nothing to do), a text that we wrote (restored), anything else (somebody changed it since: refused,
 * and the difference is shown). So a kill between journal and rename, or in the middle of an undo, needs no
 * repair; undoing again finishes it.
 *
 * A journal line: "w GROUP TURN BEFORE|- AFTER|- MODE MADE PATH" "u GROUP" (undone), or
 * "r TURN GROUP": the conversation was rewound to before TURN, and GROUP (0: none) took the files of those turns
 * back. A torn last line is cut off when opened.
 */
#include "tools/guard/obeyed.h"
#include "tools/edit/undo.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/hash.h"
#include "base/mem.h"
#include "tools/tree/pending.h"
#include "tools/tree/workspace.h"
#include "tools/edit/change.h"

#define UNDO_MAX_BYTES   ((uint64_t)256 << 20) /* objects kept; the oldest turns go first */
#define UNDO_MAX_JOURNAL ((size_t)64 << 20)

struct tool_undo {
    char *objects, *journal;
    tool_undo_journal records;
    uint32_t group;   /* the current one, once is_open */
    bool is_open;     /* this turn has written already */
    uint64_t n_bytes; /* of the objects */
};

/* ---- the journal ---- */

static bool is_hash(const char *s, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!((s[i] >= '0' && s[i] <= '9') || (s[i] >= 'a' && s[i] <= 'f'))) return false;
    return n == 64;
}

static bool take_word(const char **at, const char *end, const char **ret, size_t *ret_n)
{
    const char *space = memchr(*at, ' ', (size_t)(end - *at));
    if (!space) return false;
    *ret = *at;
    *ret_n = (size_t)(space - *at);
    *at = space + 1;
    return *ret_n > 0;
}

static bool take_number(const char **at, const char *end, unsigned base, uint32_t *ret)
{
    const char *word;
    size_t n;
    uint64_t x = 0;
    if (!take_word(at, end, &word, &n) || n > 11) return false;
    for (size_t i = 0; i < n; i++) {
        if (word[i] < '0' || (unsigned)(word[i] - '0') >= base) return false;
        x = x * base + (unsigned)(word[i] - '0');
    }
    *ret = (uint32_t)x;
    return x <= UINT32_MAX;
}

static bool take_hash(const char **at, const char *end, char hash[65])
{
    const char *word;
    size_t n;
    if (!take_word(at, end, &word, &n)) return false;
    hash[0] = '\0';
    if (n == 1 && *word == '-') return true;
    if (!is_hash(word, n)) return false;
    memcpy(hash, word, 64);
    hash[64] = '\0';
    return true;
}

static void mark_rewound(tool_undo_journal *j, uint32_t turn, uint32_t group)
{
    for (size_t i = 0; i < j->n; i++) {
        tool_undo_record *r = &j->items[i];
        if (r->group == group)
            r->is_rewind = true;
        else if (r->turn >= turn)
            r->is_past = true;
    }
}

static void mark_undone(tool_undo_journal *j, uint32_t group)
{
    for (size_t i = 0; i < j->n; i++)
        if (j->items[i].group == group) j->items[i].is_undone = true;
}

static bool parse_line(const char *line, size_t n, tool_undo_record *r)
{
    const char *at = line + 2, *end = line + n;
    *r = (tool_undo_record){0};
    if (n < 4 || line[0] != 'w' || line[1] != ' ' || memchr(line, 0, n)) return false;
    if (!take_number(&at, end, 10, &r->group) || !take_number(&at, end, 10, &r->turn) ||
        !take_hash(&at, end, r->before) || !take_hash(&at, end, r->after) ||
        !take_number(&at, end, 8, &r->mode) || !take_number(&at, end, 10, &r->made) || at == end)
        return false;
    base_buf raw = {0}, path = {0};
    base_buf_add(&raw, at, (size_t)(end - at));
    if (!tool__path_unquote(raw.data, raw.len, &path)) {
        base_buf_clear(&path);
        base_buf_puts(&path, raw.data);
    }
    /* Only what tool__path_clean would have made can be meant. */
    tool_root anywhere = {.path = (char *)"/nowhere"};
    char *clean = NULL;
    bool good = path.len && !tool__path_clean(&anywhere, path.data, &clean, NULL) &&
                !strcmp(clean, path.data) && r->made <= path.len;
    free(clean);
    base_buf_free(&raw);
    if (good)
        r->path = base_buf_take(&path);
    else
        base_buf_free(&path);
    return good;
}

size_t tool__undo_parse(const char *text, size_t n, tool_undo_journal *ret)
{
    size_t whole = 0;
    for (size_t at = 0; at < n;) {
        const char *end = memchr(text + at, '\n', n - at);
        if (!end) break;
        size_t line = (size_t)(end - text) - at;
        tool_undo_record r;
        uint32_t turn, group;
        if (parse_line(text + at, line, &r)) {
            base_grow(&ret->items, &ret->cap, ret->n + 1, sizeof *ret->items);
            ret->items[ret->n++] = r;
        } else if (line > 2 && (text[at] == 'u' || text[at] == 'r') && text[at + 1] == ' ') {
            char numbers[32];
            size_t digits = line - 2 < sizeof numbers - 2 ? line - 2 : sizeof numbers - 2;
            memcpy(numbers, text + at + 2, digits);
            numbers[digits] = ' ';
            const char *p = numbers, *past = numbers + digits + 1;
            if (text[at] == 'u' && take_number(&p, past, 10, &group)) mark_undone(ret, group);
            if (text[at] == 'r' && take_number(&p, past, 10, &turn) && take_number(&p, past, 10, &group))
                mark_rewound(ret, turn, group);
        }
        at += line + 1;
        whole = at;
    }
    return whole;
}

void tool__undo_journal_free(tool_undo_journal *j)
{
    for (size_t i = 0; i < j->n; i++) free(j->items[i].path);
    free(j->items);
    *j = (tool_undo_journal){0};
}

static int append_journal(tool_undo *u, const base_buf *line, base_err *err)
{
    bool is_new = !base_fs_exists(u->journal);
    int fd = open(u->journal, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
    int code = BASE_OK;
    if (fd < 0) return base_fail_sys(err, "%s", u->journal);
    ssize_t done = write(fd, line->data, line->len);
    if (done != (ssize_t)line->len) {
        if (done >= 0) errno = ENOSPC;
        code = base_fail_sys(err, "%s", u->journal);
        /* Half a line must not become the start of the next one. */
        off_t end = lseek(fd, 0, SEEK_END);
        if (done > 0 && ftruncate(fd, end - done)) code = base_fail_sys(err, "%s", u->journal);
    } else if (fsync(fd)) {
        code = base_fail_sys(err, "%s", u->journal);
    }
    close(fd);
    if (!code && is_new) {
        char *folder = base_xstrndup(u->journal, (size_t)(strrchr(u->journal, '/') - u->journal));
        fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (fd >= 0) {
            fsync(fd);
            close(fd);
        }
        free(folder);
    }
    return code;
}

/* ---- objects ---- */

static char *object_path(const tool_undo *u, const char *hash)
{
    base_buf path = {0};
    base_buf_printf(&path, "%s/%s", u->objects, hash);
    return base_buf_take(&path);
}

static int keep_object(tool_undo *u, const base_buf *text, char hash[65], base_err *err)
{
    base_sha256_hex(text->data ? text->data : "", text->len, hash);
    char *path = object_path(u, hash);
    int code = BASE_OK;
    if (!base_fs_exists(path)) {
        code = base_fs_write(path, text->data ? text->data : "", text->len, 0600, err);
        if (!code) u->n_bytes += text->len;
    }
    free(path);
    return code;
}

int tool__undo_text(const tool_undo *u, const char *hash, base_buf *out, base_err *err)
{
    char *path = object_path(u, hash), got[65];
    int code = base_fs_read(path, TOOL_MAX_FILE, out, err);
    if (!code) {
        base_sha256_hex(out->data ? out->data : "", out->len, got);
        if (strcmp(got, hash)) code = base_fail(err, BASE_E_FORMAT, "the undo object %.12s is damaged", hash);
    } else if (code == BASE_E_NOT_FOUND) {
        base_fail(err, code,
            "the text from before is no longer kept (the store holds %u MB, oldest turns go first)",
            (unsigned)(UNDO_MAX_BYTES >> 20));
    }
    free(path);
    return code;
}

static void drop_object(tool_undo *u, const char *hash, uint32_t group)
{
    if (!*hash) return;
    for (size_t i = 0; i < u->records.n; i++) {
        const tool_undo_record *r = &u->records.items[i];
        if (r->group > group && (!strcmp(r->before, hash) || !strcmp(r->after, hash))) return;
    }
    char *path = object_path(u, hash);
    struct stat st;
    if (!stat(path, &st) && !unlink(path))
        u->n_bytes -= (uint64_t)st.st_size < u->n_bytes ? (uint64_t)st.st_size : u->n_bytes;
    free(path);
}

static void prune(tool_undo *u)
{
    for (size_t i = 0; i < u->records.n && u->n_bytes > UNDO_MAX_BYTES; i++) {
        const tool_undo_record *r = &u->records.items[i];
        if (u->is_open && r->group == u->group) return;
        drop_object(u, r->before, r->group);
        drop_object(u, r->after, r->group);
    }
}

/* ---- opening and recording ---- */

int tool__undo_open(tool_workspace *w, base_err *err)
{
    if (w->undo) return BASE_OK;
    tool_undo *u = base_xcalloc(1, sizeof *u);
    char *folder = NULL;
    base_buf text = {0};
    int code = tool__workspace_store(w, "undo", &folder, err);
    if (code) goto out;
    base_buf path = {0};
    base_buf_printf(&path, "%s/objects", folder);
    u->objects = base_buf_take(&path);
    base_buf_printf(&path, "%s/journal", folder);
    u->journal = base_buf_take(&path);
    code = base_fs_mkdirs(u->objects, err);
    if (!code) {
        code = base_fs_read(u->journal, UNDO_MAX_JOURNAL, &text, err);
        if (code == BASE_E_NOT_FOUND) code = BASE_OK;
    }
    if (code) goto out;
    size_t whole = tool__undo_parse(text.data, text.len, &u->records);
    if (whole < text.len && truncate(u->journal, (off_t)whole)) code = base_fail_sys(err, "%s", u->journal);
    for (size_t i = 0; i < u->records.n; i++) {
        tool_undo_record *r = &u->records.items[i];
        struct stat st;
        char *object = object_path(u, r->after);
        if (r->after[0] && !stat(object, &st)) u->n_bytes += (uint64_t)st.st_size;
        free(object);
        if (r->group > u->group) u->group = r->group;
    }
out:
    free(folder);
    base_buf_free(&text);
    if (code)
        tool__undo_close(u);
    else
        w->undo = u;
    return code;
}

void tool__undo_close(tool_undo *u)
{
    if (!u) return;
    tool__undo_journal_free(&u->records);
    free(u->objects);
    free(u->journal);
    free(u);
}

const tool_undo_journal *tool__undo_records(const tool_undo *u)
{
    return &u->records;
}

int tool__undo_rewound(tool_undo *u, uint32_t turn, bool took_files, base_err *err)
{
    base_buf line = {0};
    const uint32_t group = took_files ? u->group : 0;
    base_buf_printf(&line, "r %u %u\n", turn, group);
    const int code = append_journal(u, &line, err);
    base_buf_free(&line);
    mark_rewound(&u->records, turn, group);
    u->is_open = false;
    return code;
}

int tool_undo_leave(tool_workspace *w, base_err *err)
{
    const int code = tool__undo_open(w, err);
    for (size_t i = 0; !code && i < w->undo->records.n; i++) w->undo->records.items[i].is_undone = true;
    return code;
}

const char *tool__undo_objects(const tool_undo *u)
{
    return u->objects;
}

void tool_workspace_turn(tool_workspace *w, uint32_t turn)
{
    w->turn = turn;
    if (w->undo) w->undo->is_open = false; /* the next record begins a new group */
}

int tool__undo_record(tool_workspace *w, const char *path, const base_buf *before, const base_buf *after,
    mode_t mode, size_t made, base_err *err)
{
    int code = tool__undo_open(w, err);
    if (code) return code;
    tool_undo *u = w->undo;
    tool_undo_record r = {.turn = w->turn, .mode = (uint32_t)mode & 07777, .made = (uint32_t)made};
    if (before) code = keep_object(u, before, r.before, err);
    if (!code && after) code = keep_object(u, after, r.after, err);
    tool__step("objects");
    if (code) return code;
    r.group = u->is_open ? u->group : u->group + 1;
    r.path = base_xstrdup(path);
    base_buf line = {0};
    base_buf_printf(&line, "w %u %u %s %s %o %u ", r.group, r.turn, before ? r.before : "-",
        after ? r.after : "-", r.mode, r.made);
    tool__path_show(&line, path);
    base_buf_putc(&line, '\n');
    code = append_journal(u, &line, err);
    base_buf_free(&line);
    if (code) {
        free(r.path);
        return code;
    }
    tool__step("journal");
    u->group = r.group;
    u->is_open = true;
    base_grow(&u->records.items, &u->records.cap, u->records.n + 1, sizeof *u->records.items);
    u->records.items[u->records.n++] = r;
    prune(u);
    return BASE_OK;
}

/* ---- undoing ---- */

/* One path of a group: what it held before the group's first write, and every text we know of it. */
typedef struct undo_step {
    const tool_undo_record *first, *last;
    tool_file now;
    bool exists, is_done, is_foreign;
} undo_step;

static bool is_known(const tool_undo *u, uint32_t group, const char *path, const char *version)
{
    for (size_t i = 0; i < u->records.n; i++) {
        const tool_undo_record *r = &u->records.items[i];
        if (r->group == group && !strcmp(r->path, path) &&
            (!strcmp(r->before, version) || !strcmp(r->after, version)))
            return true;
    }
    return false;
}

static size_t collect(tool_workspace *w, uint32_t group, undo_step **ret)
{
    tool_undo *u = w->undo;
    undo_step *steps = NULL;
    size_t n = 0, cap = 0;
    for (size_t i = 0; i < u->records.n; i++) {
        const tool_undo_record *r = &u->records.items[i];
        size_t k = 0;
        if (r->group != group) continue;
        while (k < n && strcmp(steps[k].first->path, r->path)) k++;
        if (k == n) {
            base_grow(&steps, &cap, n + 1, sizeof *steps);
            steps[n++] = (undo_step){.first = r};
        }
        steps[k].last = r;
    }
    for (size_t k = 0; k < n; k++) {
        undo_step *s = &steps[k];
        base_err seen = {0};
        int code = tool__file_read(&w->root, s->first->path, TOOL_MAX_FILE, &s->now, &seen);
        s->exists = code != BASE_E_NOT_FOUND;
        const char *version = code ? "" : s->now.version;
        s->is_done = code && s->exists ? false : !strcmp(version, s->first->before);
        /* A file that is gone by now can be restored without losing anything. */
        s->is_foreign = !s->is_done && s->exists && (code || !is_known(u, group, s->first->path, version));
    }
    *ret = steps;
    return n;
}

static void free_steps(undo_step *steps, size_t n)
{
    for (size_t k = 0; k < n; k++) tool__file_free(&steps[k].now);
    free(steps);
}

/* The newest group that still has an effect. */
static int newest(tool_workspace *w, undo_step **ret, size_t *ret_n, uint32_t *ret_group, base_err *err)
{
    int code = tool__undo_open(w, err);
    if (code) return code;
    const tool_undo *u = w->undo;
    for (size_t i = u->records.n, seen = UINT32_MAX; i-- > 0;) {
        const tool_undo_record *r = &u->records.items[i];
        if (r->is_undone || r->group == seen) continue;
        seen = r->group;
        undo_step *steps;
        size_t n = collect(w, r->group, &steps), open = 0;
        for (size_t k = 0; k < n; k++) open += !steps[k].is_done;
        if (open) {
            *ret = steps;
            *ret_n = n;
            *ret_group = r->group;
            return BASE_OK;
        }
        free_steps(steps, n);
    }
    return base_fail(err, BASE_E_NOT_FOUND,
        "nothing to undo: this session has written no file that is still as it wrote it");
}

static int foreign_error(const undo_step *s, base_err *err)
{
    base_buf shown = {0};
    tool__path_show(&shown, s->first->path);
    base_fail(err, BASE_E_STATE,
        "%.200s was changed after kvist wrote it (by hand or by "
        "a command); undoing would lose that. Nothing was undone",
        shown.data);
    base_buf_free(&shown);
    return BASE_E_STATE;
}

int tool_undo_preview(tool_workspace *w, base_buf *diff, base_err *err)
{
    undo_step *steps;
    size_t n;
    uint32_t group;
    int code = newest(w, &steps, &n, &group, err);
    if (code) return code;
    const undo_step *foreign = NULL;
    for (size_t k = 0; k < n && !foreign; k++)
        if (steps[k].is_foreign) foreign = &steps[k];
    for (size_t k = 0; k < n && !code; k++) {
        undo_step *s = &steps[k];
        base_buf other = {0};
        if (s->is_done || (foreign && s != foreign)) continue;
        /* Refused: the difference somebody else made. Else: what undoing would do. */
        const char *hash = foreign ? s->last->after : s->first->before;
        if (*hash) code = tool__undo_text(w->undo, hash, &other, err);
        const base_buf *now = s->exists ? &s->now.text : NULL, *known = *hash ? &other : NULL;
        if (!code) tool__diff(diff, s->first->path, foreign ? known : now, foreign ? now : known, NULL, NULL);
        base_buf_free(&other);
    }
    if (foreign && !code) code = foreign_error(foreign, err);
    free_steps(steps, n);
    return code;
}

int tool__undo_each(tool_workspace *w, tool_undo_text_fn *fn, void *user, base_err *err)
{
    undo_step *steps;
    size_t n;
    uint32_t group;
    int code = newest(w, &steps, &n, &group, err);
    if (code) return code;
    for (size_t k = 0; k < n && !code; k++) {
        const tool_undo_record *first = steps[k].first;
        base_buf text = {0};
        if (first->before[0]) code = tool__undo_text(w->undo, first->before, &text, err);
        if (!code) code = fn(user, first->path, first->before[0] ? &text : NULL, err);
        base_buf_free(&text);
    }
    free_steps(steps, n);
    return code;
}

bool tool_undo_is_before(tool_workspace *w, const char *path, const char *text, size_t n)
{
    const tool_undo *u = w->undo;
    char version[65];
    base_sha256_hex(text, n, version);
    for (size_t i = 0; u && u->is_open && i < u->records.n; i++) {
        const tool_undo_record *r = &u->records.items[i];
        if (r->group == u->group && !strcmp(r->path, path)) return !strcmp(r->before, version);
    }
    return false;
}

const char *tool_undo_obeyed_by(tool_workspace *w)
{
    undo_step *steps;
    size_t n;
    uint32_t group;
    const char *who = NULL;
    if (newest(w, &steps, &n, &group, NULL)) return NULL;
    for (size_t k = 0; k < n && !who; k++)
        if (!steps[k].is_done) who = tool__path_obeyed_by(&w->root, steps[k].first->path);
    free_steps(steps, n);
    return who;
}

void tool__undo_remove_folders(tool_workspace *w, const char *path, size_t made)
{
    if (!made) return;
    char *folder = base_xstrdup(path);
    for (char *slash; (slash = strrchr(folder, '/'));) {
        *slash = '\0';
        if (strlen(folder) < made) break;
        const char *name;
        size_t nothing;
        int parent = tool__path_open_parent(&w->root, folder, false, &name, &nothing);
        int failed = parent < 0 || unlinkat(parent, name, AT_REMOVEDIR);
        if (parent >= 0) close(parent);
        if (failed) break; /* somebody else's files are in it */
    }
    free(folder);
}

/* The lock is held: no other kvist is between its files. */
static int apply(tool_workspace *w, char **ret_summary, base_err *err)
{
    undo_step *steps;
    size_t n, n_restored = 0, n_removed = 0;
    uint32_t group;
    int code = newest(w, &steps, &n, &group, err);
    if (code) return code;
    base_buf names = {0};
    base_buf *texts = base_xcalloc(n, sizeof *texts);
    const tool_undo_record of = *steps[0].first; /* what is undone */
    /* All checks before the first write. */
    for (size_t k = 0; k < n && !code; k++) {
        if (steps[k].is_foreign) code = foreign_error(&steps[k], err);
        if (!code && !steps[k].is_done && steps[k].first->before[0])
            code = tool__undo_text(w->undo, steps[k].first->before, &texts[k], err);
    }
    for (size_t k = 0; k < n && !code; k++) {
        const undo_step *s = &steps[k];
        if (s->is_done) continue;
        bool restores = s->first->before[0] != '\0';
        code = tool__change_write(w, s->first->path, restores ? &texts[k] : NULL, s->first->mode,
            s->exists ? s->now.version : NULL, err);
        if (code) break;
        tool__step("undo");
        if (!restores) tool__undo_remove_folders(w, s->first->path, s->first->made);
        tool__workspace_wrote(w, s->first->path, restores ? texts[k].data ? texts[k].data : "" : NULL,
            texts[k].len, s->first->before);
        n_restored += restores;
        n_removed += !restores;
        base_buf_puts(&names, names.len ? ", " : "");
        tool__path_show(&names, s->first->path);
    }
    if (!code) {
        base_buf line = {0};
        base_buf_printf(&line, "u %u\n", group);
        code = append_journal(w->undo, &line, err);
        base_buf_free(&line);
        mark_undone(&w->undo->records, group);
        w->undo->is_open = false;
    }
    if (!code && ret_summary) {
        base_buf say = {0};
        if (of.is_rewind)
            base_buf_puts(&say, "undid what the rewind did to files:");
        else
            base_buf_printf(&say, "undid turn %u:", of.turn);
        if (n_restored) base_buf_printf(&say, " %zu restored", n_restored);
        if (n_removed) base_buf_printf(&say, "%s %zu removed", n_restored ? "," : "", n_removed);
        base_buf_printf(&say, " (%s)", names.len ? names.data : "");
        *ret_summary = base_buf_take(&say);
    }
    for (size_t k = 0; k < n; k++) base_buf_free(&texts[k]);
    free(texts);
    base_buf_free(&names);
    free_steps(steps, n);
    return code;
}

int tool_undo_apply(tool_workspace *w, char **ret_summary, base_err *err)
{
    tool_pending p;
    base_err locked = {0};
    int code = tool__pending_begin(w, &p, &locked);
    if (code == BASE_E_STATE)
        base_fail(err, code, "%s. Nothing was undone", locked.msg);
    else
        code = apply(w, ret_summary, err); /* without a data folder nobody writes several files */
    tool__pending_end(&p);
    return code;
}
