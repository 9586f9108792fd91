/*
 * What the session log holds, in one SQLite file. Two ideas: events are stored as the exact bytes that --json prints
 * (large ones packed with zstd); what is searched or listed (turns, titles, full text) is derived from them inside the
 * same transaction. Writers: the engine thread. Readers may open their own read-only agent_log on any thread.
 */
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "agent/log/log_db.h"
#include "base/clock.h"
#include "base/mem.h"

enum { PACK_FROM = 4096, PACK_BLOB_FROM = 256, MAX_EVENT = 64 << 20, MAX_BLOB = 256 << 20 };

/* --- events --------------------------------------------------------------------------------------------- */

int agent_log_add(agent_log *l, const char *session, const agent_event *e, base_err *err)
{
    if (l->read_only)
        return base_fail(err, BASE_E_STATE, "the session log %s is open for reading only", l->path);
    base_buf json = {0};
    agent_event_write(e, &json);
    int64_t turn = agent_event_turn(e);
    if (turn >= 0) l->turn = (uint32_t)turn;
    base_grow(&l->pending, &l->cap_pending, l->n_pending + 1, sizeof *l->pending);
    agent_log_pending p = {base_xstrdup(session), NULL, json.len, agent_event_copy(e), l->turn};
    p.json = base_buf_take(&json);
    l->pending[l->n_pending++] = p;
    return 0;
}

/*
 * zstd's frame of a blob when that is shorter, else NULL; a plan's blob begins otherwise, so a reader can
 * tell.
 */
static void *pack_blob(const void *blob, size_t n, size_t *ret_n)
{
    if (n < PACK_BLOB_FROM) return NULL;
    const size_t bound = ZSTD_compressBound(n);
    void *packed = malloc(bound);
    *ret_n = packed ? ZSTD_compress(packed, bound, blob, n, 3) : 0;
    if (packed && !ZSTD_isError(*ret_n) && *ret_n < n) return packed;
    free(packed);
    return NULL;
}

/* A stored blob's own bytes; *ret is NULL when it is as it was written. */
static int unpack_blob(
    const agent_log *l, const void *blob, size_t n, void **ret, size_t *ret_n, base_err *err)
{
    static const unsigned char frame[] = {0x28, 0xb5, 0x2f, 0xfd};
    *ret = NULL;
    if (n < sizeof frame || memcmp(blob, frame, sizeof frame)) return 0;
    const unsigned long long size = ZSTD_getFrameContentSize(blob, n);
    *ret = size && size <= MAX_BLOB ? malloc((size_t)size) : NULL;
    *ret_n = *ret ? ZSTD_decompress(*ret, (size_t)size, blob, n) : 0;
    if (*ret && !ZSTD_isError(*ret_n) && *ret_n == size) return 0;
    free(*ret);
    *ret = NULL;
    return base_fail(err, BASE_E_FORMAT, "the session log %s: a plan does not unpack", l->path);
}

static int write_event(agent_log *l, const agent_log_pending *p, base_err *err)
{
    if (p->n > MAX_EVENT)
        return base_fail(err, BASE_E_LIMIT,
            "an event of %zu MiB is larger than the session log takes (%d MiB)", p->n >> 20, MAX_EVENT >> 20);
    size_t blob_n = p->event->blob_n;
    void *blob = pack_blob(p->event->blob, blob_n, &blob_n);
    if (!blob) blob_n = p->event->blob_n;
    const void *bytes = p->json;
    size_t n = p->n;
    void *packed = NULL;
    if (n >= PACK_FROM) {
        size_t bound = ZSTD_compressBound(n);
        packed = malloc(bound);
        if (!packed) return base_fail(err, BASE_E_NOMEM, "no memory to pack an event of %zu bytes", p->n);
        n = ZSTD_compress(packed, bound, p->json, p->n, 3);
        if (ZSTD_isError(n) || n >= p->n) { /* did not shrink: as it is */
            free(packed);
            packed = NULL;
            n = p->n;
        } else {
            bytes = packed;
        }
    }
    sqlite3_stmt *s = agent_log__prepare(l,
        "INSERT INTO events(session, seq, turn, type, json, "
        "unpacked, blob) VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        "siisbib", p->session, (int64_t)p->event->seq, (int64_t)p->turn, agent_event_name(p->event->type),
        bytes, n, (int64_t)(packed ? p->n : 0), blob ? blob : p->event->blob, blob_n);
    free(packed);
    free(blob);
    return agent_log__run(l, s, "an event could not be written", err);
}

static int index_words(
    agent_log *l, const agent_log_pending *p, const char *kind, const char *body, base_err *err)
{
    if (!body || !*body) return 0;
    sqlite3_stmt *s =
        agent_log__prepare(l, "INSERT INTO words(body, kind, session, turn, seq) VALUES(?1, ?2, ?3, ?4, ?5)",
            "sssii", body, kind, p->session, (int64_t)p->turn, (int64_t)p->event->seq);
    return agent_log__run(l, s, "the text index could not be written", err);
}

/* What lists and searches need, derived from an event. */
static int derive(agent_log *l, const agent_log_pending *p, base_err *err)
{
    const agent_event *e = p->event;
    int rc = 0;
    switch (e->type) {
    case AGENT_EVENT_user:
        rc = agent_log__run(l,
            agent_log__prepare(l,
                "INSERT OR REPLACE INTO turns(session, turn, status, started_ms) VALUES(?1, ?2, 'open', ?3)",
                "sii", p->session, (int64_t)p->turn, e->user.time_ms),
            "the turn could not be entered", err);
        if (!rc)
            rc = agent_log__run(l,
                agent_log__prepare(l, "UPDATE sessions SET title = ?2 WHERE id = ?1 AND title IS NULL", "ss",
                    p->session, e->user.text),
                "the title could not be set", err);
        return rc ? rc : index_words(l, p, "user", e->user.text, err);
    case AGENT_EVENT_title:
        return agent_log__run(l,
            agent_log__prepare(
                l, "UPDATE sessions SET title = ?2 WHERE id = ?1", "ss", p->session, e->title.text),
            "the title could not be set", err);
    case AGENT_EVENT_answer: return index_words(l, p, "answer", e->answer.text, err);
    case AGENT_EVENT_tool_result: return index_words(l, p, "tool_result", e->tool_result.text, err);
    case AGENT_EVENT_turn_end:
        return agent_log__run(l,
            agent_log__prepare(l, "UPDATE turns SET status = ?3 WHERE session = ?1 AND turn = ?2", "sis",
                p->session, (int64_t)p->turn, e->turn_end.status ? e->turn_end.status : "closed"),
            "the turn could not be closed", err);
    default: return 0;
    }
}

int agent_log_commit(agent_log *l, base_err *err)
{
    if (!l->n_pending) return 0;
    int rc = agent_log__exec(l, "BEGIN IMMEDIATE", err);
    if (rc) return rc;
    for (size_t i = 0; i < l->n_pending && !rc; i++) {
        rc = write_event(l, &l->pending[i], err);
        if (!rc) rc = derive(l, &l->pending[i], err);
        if (!rc && (i + 1 == l->n_pending || strcmp(l->pending[i].session, l->pending[i + 1].session)))
            rc = agent_log__run(l,
                agent_log__prepare(l, "UPDATE sessions SET updated_ms = ?2 WHERE id = ?1", "si",
                    l->pending[i].session, base_clock_wall_ms()),
                "the session could not be touched", err);
    }
    if (!rc) rc = agent_log__exec(l, "COMMIT", err);
    if (rc)
        sqlite3_exec(l->db, "ROLLBACK", NULL, NULL, NULL);
    else
        agent_log__clear_pending(l);
    return rc;
}

int agent_log_get_tail(agent_log *l, const char *session, agent_log_tail *ret, base_err *err)
{
    sqlite3_stmt *s = agent_log__prepare(l,
        "SELECT (SELECT COALESCE(MAX(seq), 0) FROM events WHERE session = ?1), COALESCE(MAX(turn), 0),"
        " COALESCE((SELECT status FROM turns WHERE session = ?1 ORDER BY turn DESC LIMIT 1), '') FROM turns "
        "WHERE session = ?1",
        "s", session);
    if (!s || sqlite3_step(s) != SQLITE_ROW) {
        int rc = agent_log__fail(l, "the session cannot be read", err);
        sqlite3_finalize(s);
        return rc;
    }
    *ret = (agent_log_tail){(uint64_t)sqlite3_column_int64(s, 0), (uint32_t)sqlite3_column_int64(s, 1),
        !strcmp(agent_log__column(s, 2), "open")};
    sqlite3_finalize(s);
    return 0;
}

/* --- reading -------------------------------------------------------------------------------------------- */

int agent_log_events(agent_log *l, const char *session, agent_log_event_fn *fn, void *user, base_err *err)
{
    sqlite3_stmt *s = agent_log__prepare(l,
        "SELECT seq, turn, json, unpacked, blob FROM events WHERE session = ?1 ORDER BY seq", "s", session);
    if (!s) return agent_log__fail(l, "events cannot be read", err);
    int rc, result = 0;
    bool more = true;
    while (more && !result && (rc = sqlite3_step(s)) == SQLITE_ROW) {
        const char *json = sqlite3_column_blob(s, 2);
        size_t n = (size_t)sqlite3_column_bytes(s, 2);
        int64_t unpacked = sqlite3_column_int64(s, 3);
        char *text = NULL;
        if (unpacked < 0 || unpacked > MAX_EVENT) {
            result = base_fail(err, BASE_E_FORMAT, "the session log %s: an event claims %lld bytes", l->path,
                (long long)unpacked);
            break;
        }
        if (unpacked) {
            text = malloc((size_t)unpacked);
            size_t got = text ? ZSTD_decompress(text, (size_t)unpacked, json, n) : 0;
            if (ZSTD_isError(got) || got != (size_t)unpacked)
                result =
                    base_fail(err, BASE_E_FORMAT, "the session log %s: an event does not unpack", l->path);
            json = text;
            n = got;
        }
        const void *blob = sqlite3_column_blob(s, 4);
        size_t blob_n = (size_t)sqlite3_column_bytes(s, 4);
        void *own = NULL;
        if (!result && blob) result = unpack_blob(l, blob, blob_n, &own, &blob_n, err);
        if (!result)
            more = fn(user, (uint64_t)sqlite3_column_int64(s, 0), (uint32_t)sqlite3_column_int64(s, 1),
                json ? json : "", n, own ? own : blob, blob_n);
        free(own);
        free(text);
    }
    if (!result && more && rc != SQLITE_DONE) result = agent_log__fail(l, "events cannot be read", err);
    sqlite3_finalize(s);
    return result;
}

typedef struct event_reader {
    agent_log_unread unread;
    agent_log_read_fn *fn;
    void *user;
    int rc;
    base_err *err;
} event_reader;

static bool read_event(
    void *user, uint64_t seq, uint32_t turn, const char *json, size_t n, const void *blob, size_t blob_n)
{
    event_reader *r = user;
    agent_event e;
    agent_event_doc *doc = NULL;
    const bool fails = r->unread == AGENT_LOG_FAIL;
    const int rc = agent_event_read(json, n, &e, &doc, fails ? r->err : NULL);
    if (rc && fails) r->rc = rc;
    if (rc) return !fails;
    e.seq = seq;
    e.blob = blob;
    e.blob_n = blob_n;
    const bool more = r->fn(r->user, turn, &e);
    agent_event_doc_free(doc);
    return more;
}

int agent_log_read(agent_log *l, const char *session, agent_log_unread unread, agent_log_read_fn *fn,
    void *user, base_err *err)
{
    event_reader r = {.unread = unread, .fn = fn, .user = user, .err = err};
    const int rc = agent_log_events(l, session, read_event, &r, err);
    return rc ? rc : r.rc;
}

/* Each word becomes a quoted string: all must occur, and nothing a person types is FTS5 syntax. */
static char *match_expression(const char *words)
{
    base_buf out = {0};
    for (const char *p = words; *p;) {
        size_t n = strcspn(p, " \t\r\n");
        if (n) {
            base_buf_puts(&out, out.len ? " \"" : "\"");
            for (size_t i = 0; i < n; i++) {
                if (p[i] == '"') base_buf_putc(&out, '"');
                base_buf_putc(&out, p[i]);
            }
            base_buf_putc(&out, '"');
        }
        p += n;
        p += strspn(p, " \t\r\n");
    }
    return base_buf_take(&out);
}

int agent_log_search(agent_log *l, const char *session, const char *words, uint32_t limit,
    void (*match)(void *user, const agent_log_match *m), void *user, base_err *err)
{
    char *expression = match_expression(words);
    if (!*expression) {
        free(expression);
        return base_fail(err, BASE_E_USAGE, "give the words to search for");
    }
    sqlite3_stmt *s = agent_log__prepare(l,
        "SELECT session, kind, snippet(words, 0, '', '', '...', 24), turn, seq FROM words"
        " WHERE words MATCH ?1 AND (?2 IS NULL OR session = ?2) ORDER BY rank LIMIT ?3",
        "ssi", expression, session, (int64_t)(limit ? limit : 50));
    free(expression);
    if (!s) return agent_log__fail(l, "the text index cannot be read", err);
    int rc;
    while ((rc = sqlite3_step(s)) == SQLITE_ROW)
        match(user, &(agent_log_match){.session = agent_log__column(s, 0),
                        .kind = agent_log__column(s, 1),
                        .snippet = agent_log__column(s, 2),
                        .turn = (uint32_t)sqlite3_column_int64(s, 3),
                        .seq = (uint64_t)sqlite3_column_int64(s, 4)});
    int result = rc == SQLITE_DONE ? 0 : agent_log__fail(l, "the text index cannot be read", err);
    sqlite3_finalize(s);
    return result;
}
