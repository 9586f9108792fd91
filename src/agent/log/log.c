/*
 * The session log in one SQLite file. Three ideas: events are stored as the exact bytes that --json prints
 * (large ones packed with zstd); what is searched or listed (turns, titles, full text) is derived from them
 * inside the same transaction; and a session belongs to the process that holds flock on the file "lock" in
 * its folder.
 *
 * A turn whose process died is still `open` in the table; whoever looks without finding the lock held reads
 * it as interrupted. Writers: the engine thread. Readers may open their own read-only agent_log on any
 * thread.
 */
#include "agent/log/log.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/statvfs.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <zstd.h>

#include "base/clock.h"
#include "base/fs.h"
#include "base/mem.h"

enum { PACK_FROM = 4096, PACK_BLOB_FROM = 256, BUSY_MS = 4000, MAX_EVENT = 64 << 20, MAX_BLOB = 256 << 20 };

/*
 * migrations[i] brings a database from user_version i to i + 1. Never edit one that was released; add
 * another.
 */
static const char *const migrations[] = {
    "CREATE TABLE sessions("
    " id TEXT PRIMARY KEY, parent TEXT REFERENCES sessions(id) ON DELETE SET NULL,"
    " root TEXT NOT NULL, model TEXT NOT NULL, title TEXT, started_ms INTEGER NOT NULL, updated_ms INTEGER "
    "NOT NULL);"
    "CREATE INDEX sessions_by_root ON sessions(root, updated_ms);"
    "CREATE TABLE turns("
    " session TEXT NOT NULL REFERENCES sessions(id) ON DELETE CASCADE, turn INTEGER NOT NULL,"
    " status TEXT NOT NULL, started_ms INTEGER NOT NULL, PRIMARY KEY(session, turn)) WITHOUT ROWID;"
    "CREATE TABLE events("
    " session TEXT NOT NULL REFERENCES sessions(id) ON DELETE CASCADE, seq INTEGER NOT NULL, turn INTEGER "
    "NOT NULL,"
    " type TEXT NOT NULL, json BLOB NOT NULL, unpacked INTEGER NOT NULL, blob BLOB, PRIMARY KEY(session, "
    "seq));"
    "CREATE VIRTUAL TABLE words USING fts5("
    " body, kind UNINDEXED, session UNINDEXED, turn UNINDEXED, seq UNINDEXED, tokenize = \"unicode61 "
    "tokenchars '_'\");",
};
enum { SCHEMA = sizeof migrations / sizeof *migrations };

/* Of a row of sessions: its log begins as no session's does. */
#define IS_WHAT_IF "EXISTS(SELECT 1 FROM events WHERE session = sessions.id AND seq = 1 AND type = 'what_if')"

typedef struct pending {
    char *session, *json;
    size_t n;
    agent_event *event;
    uint32_t turn;
} pending;

struct agent_log {
    sqlite3 *db;
    char *path, *folder; /* of the database */
    bool read_only;
    pending *pending;
    size_t n_pending, cap_pending;
    struct held_lock {
        char *session;
        int fd;
    } * locks;
    size_t n_locks, cap_locks;
    uint32_t turn; /* of the event added last: events without a turn of their own belong to it */
};

/* --- errors --------------------------------------------------------------------------------------------- */

/* Even reading needs some bytes (the index of the WAL), and SQLite calls their lack an I/O error. */
static bool is_disk_full(const char *folder)
{
    struct statvfs fs;
    return !statvfs(folder, &fs) && (uint64_t)fs.f_bavail * fs.f_frsize < 1 << 16;
}

static int log_fail(agent_log *l, const char *what, base_err *err)
{
    int code = l->db ? sqlite3_errcode(l->db) & 0xff : SQLITE_CANTOPEN;
    if ((code == SQLITE_IOERR || code == SQLITE_CANTOPEN) && is_disk_full(l->folder)) code = SQLITE_FULL;
    const char *detail = l->db ? sqlite3_errmsg(l->db) : "it cannot be opened";
    switch (code) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return base_fail(err, BASE_E_STATE,
            "the session log %s is locked by another process: try again, or end the kvist that writes it",
            l->path);
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
        return base_fail(err, BASE_E_FORMAT,
            "the session log %s is damaged (%s): move it away and kvist begins a new one; \"sqlite3 FILE "
            ".recover\" may save "
            "what is in it",
            l->path, detail);
    case SQLITE_FULL:
        return base_fail(err, BASE_E_IO,
            "the disk is full: the session log %s could not be used; free some space", l->path);
    case SQLITE_READONLY: return base_fail(err, BASE_E_IO, "the session log %s cannot be written", l->path);
    default: return base_fail(err, BASE_E_IO, "the session log %s: %s: %s", l->path, what, detail);
    }
}

/*
 * One statement with its parameters: 's' const char * (NULL is NULL), 'i' int64_t, 'b' const void * and
 * size_t.
 */
static sqlite3_stmt *prepare(agent_log *l, const char *sql, const char *types, ...)
{
    sqlite3_stmt *s = NULL;
    if (sqlite3_prepare_v2(l->db, sql, -1, &s, NULL) != SQLITE_OK) return NULL;
    va_list args;
    va_start(args, types);
    for (int i = 1; types[i - 1]; i++) {
        if (types[i - 1] == 's') {
            sqlite3_bind_text(s, i, va_arg(args, const char *), -1, SQLITE_TRANSIENT);
        } else if (types[i - 1] == 'i') {
            sqlite3_bind_int64(s, i, va_arg(args, int64_t));
        } else {
            const void *bytes = va_arg(args, const void *);
            size_t n = va_arg(args, size_t);
            if (bytes)
                sqlite3_bind_blob64(s, i, bytes, n, SQLITE_TRANSIENT);
            else
                sqlite3_bind_null(s, i);
        }
    }
    va_end(args);
    return s;
}

/* Runs a prepared statement that gives no rows; frees it. */
static int run(agent_log *l, sqlite3_stmt *s, const char *what, base_err *err)
{
    int rc = s ? sqlite3_step(s) : SQLITE_ERROR;
    bool good = rc == SQLITE_DONE || rc == SQLITE_ROW;
    int result = good ? 0 : log_fail(l, what, err);
    sqlite3_finalize(s);
    return result;
}

static int exec(agent_log *l, const char *sql, base_err *err)
{
    return sqlite3_exec(l->db, sql, NULL, NULL, NULL) == SQLITE_OK ? 0
                                                                   : log_fail(l, "a statement failed", err);
}

static const char *column(sqlite3_stmt *s, int i)
{
    const char *text = (const char *)sqlite3_column_text(s, i);
    return text ? text : "";
}

/* --- opening -------------------------------------------------------------------------------------------- */

static int64_t user_version(agent_log *l)
{
    sqlite3_stmt *s = prepare(l, "PRAGMA user_version", "");
    int64_t version = s && sqlite3_step(s) == SQLITE_ROW ? sqlite3_column_int64(s, 0) : -1;
    sqlite3_finalize(s);
    return version;
}

static int migrate(agent_log *l, base_err *err)
{
    int64_t version = user_version(l);
    if (version < 0) return log_fail(l, "its version cannot be read", err);
    if (version > SCHEMA)
        return base_fail(err, BASE_E_UNSUPPORTED,
            "the session log %s was written by a newer kvist (schema %lld, this one knows %d): use that "
            "kvist, or move the "
            "file away",
            l->path, (long long)version, SCHEMA);
    if (version == SCHEMA) return 0;
    if (l->read_only)
        return base_fail(err, BASE_E_STATE,
            "the session log %s has an older schema: open it once with \"kvist log list\"", l->path);
    int rc = exec(l, "BEGIN IMMEDIATE", err);
    if (rc) return rc;
    version = user_version(l); /* another process may have been faster */
    for (int64_t v = version; v < SCHEMA && !rc; v++) rc = exec(l, migrations[v], err);
    char set[64];
    snprintf(set, sizeof set, "PRAGMA user_version = %d", SCHEMA);
    if (!rc) rc = exec(l, set, err);
    if (!rc) rc = exec(l, "COMMIT", err);
    if (rc) sqlite3_exec(l->db, "ROLLBACK", NULL, NULL, NULL);
    return rc;
}

/* What a database says of itself: kind, name and words of each table, index, trigger and view, a line each. */
static int put_schema(sqlite3 *db, base_buf *out)
{
    sqlite3_stmt *s = NULL;
    int rc = sqlite3_prepare_v2(db,
        "SELECT type, name, tbl_name, COALESCE(sql, '') FROM sqlite_master ORDER BY type, name", -1, &s,
        NULL);
    while (rc == SQLITE_OK && sqlite3_step(s) == SQLITE_ROW)
        base_buf_printf(out, "%s %s %s: %s\n", column(s, 0), column(s, 1), column(s, 2), column(s, 3));
    sqlite3_finalize(s);
    return rc;
}

/*
 * The log has the tables that migrations make, and nothing else: a trigger would do more than what is asked at each
 * statement, and a view in place of a table could be without end.
 */
static int check_schema(agent_log *l, base_err *err)
{
    sqlite3 *fresh = NULL;
    base_buf wanted = {0}, have = {0};
    int rc = sqlite3_open_v2(":memory:", &fresh, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL);
    for (size_t i = 0; i < SCHEMA && rc == SQLITE_OK; i++)
        rc = sqlite3_exec(fresh, migrations[i], NULL, NULL, NULL);
    if (rc == SQLITE_OK) rc = put_schema(fresh, &wanted);
    sqlite3_close(fresh);
    int result = rc == SQLITE_OK ? 0 : base_fail(err, BASE_E_IO, "SQLite makes no tables in memory (%d)", rc);
    if (!result && put_schema(l->db, &have) != SQLITE_OK)
        result = log_fail(l, "its tables cannot be read", err);
    if (!result && strcmp(wanted.data ? wanted.data : "", have.data ? have.data : "") != 0)
        result = base_fail(err, BASE_E_FORMAT,
            "the session log %s has other tables, views or triggers than kvist makes: somebody changed it, "
            "and it is "
            "not used. Move it away and kvist begins a new one",
            l->path);
    base_buf_free(&wanted);
    base_buf_free(&have);
    return result;
}

int agent_log_open(agent_log **ret, const char *path, bool read_only, base_err *err)
{
    agent_log *l = base_xcalloc(1, sizeof *l);
    l->read_only = read_only;
    l->path = path ? base_xstrdup(path) : base_fs_home(BASE_HOME_DATA, "log.db");
    const char *slash = strrchr(l->path, '/');
    l->folder =
        slash ? base_xstrndup(l->path, slash == l->path ? 1 : (size_t)(slash - l->path)) : base_xstrdup(".");
    int rc = 0, fd = -1;
    if (!read_only) {
        rc = base_fs_mkdirs(l->folder, err);
        if (rc)
            base_err_prefix(err,
                "the session log has no place (--ephemeral goes without one, KVIST_HOME=FOLDER "
                "puts all of kvist's files elsewhere)");
        if (!rc) rc = base_fs_check_owner(l->folder, err);
        if (!rc) rc = base_fs_check_owner(l->path, err);
        /*
         * Made here, so that it never exists with other rights; SQLite gives the -wal and -shm files those of
         * the database.
         */
        if (!rc && (fd = open(l->path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600)) < 0)
            rc = base_fail_sys(
                err, "the session log cannot be written (--ephemeral goes without one): %s", l->path);
        if (fd >= 0) {
            (void)!fchmod(fd, 0600);
            close(fd);
        }
    } else if (!base_fs_exists(l->path)) {
        rc = base_fail(err, BASE_E_NOT_FOUND, "there are no sessions yet: %s does not exist", l->path);
    } else {
        rc = base_fs_check_owner(l->path, err);
    }
    int flags = read_only ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE;
    if (!rc && sqlite3_open_v2(l->path, &l->db, flags | SQLITE_OPEN_NOMUTEX, NULL) != SQLITE_OK)
        rc = log_fail(l, "it cannot be opened", err);
    if (!rc) {
        sqlite3_busy_timeout(l->db, BUSY_MS);
        sqlite3_db_config(l->db, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, NULL);
        sqlite3_db_config(l->db, SQLITE_DBCONFIG_ENABLE_VIEW, 0, NULL);
        sqlite3_db_config(l->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
        rc = exec(l, "PRAGMA foreign_keys = ON; PRAGMA secure_delete = ON; PRAGMA synchronous = FULL", err);
    }
    if (!rc && !read_only) rc = exec(l, "PRAGMA journal_mode = WAL", err);
    if (!rc) rc = migrate(l, err);
    if (!rc) rc = check_schema(l, err);
    if (rc) {
        agent_log_close(l);
        return rc;
    }
    *ret = l;
    return 0;
}

static void clear_pending(agent_log *l)
{
    for (size_t i = 0; i < l->n_pending; i++) {
        free(l->pending[i].session);
        free(l->pending[i].json);
        agent_event_free(l->pending[i].event);
    }
    l->n_pending = 0;
}

void agent_log_close(agent_log *l)
{
    if (!l) return;
    clear_pending(l);
    for (size_t i = 0; i < l->n_locks; i++) {
        close(l->locks[i].fd);
        free(l->locks[i].session);
    }
    sqlite3_close(l->db);
    free(l->pending);
    free(l->locks);
    free(l->path);
    free(l->folder);
    free(l);
}

/* --- sessions ------------------------------------------------------------------------------------------- */

void agent_log_new_id(char ret[32])
{
    uint32_t random = 0;
    if (getrandom(&random, sizeof random, 0) != sizeof random) random = (uint32_t)base_clock_ns();
    time_t now = time(NULL);
    struct tm utc;
    gmtime_r(&now, &utc);
    char day[20];
    strftime(day, sizeof day, "%Y%m%d-%H%M", &utc);
    snprintf(ret, 32, "%s-%06x", day, random & 0xffffff);
}

char *agent_log_session_dir(const agent_log *l, const char *id)
{
    base_buf path = {0};
    base_buf_printf(&path, "%s/sessions/%s", l->folder, id);
    return base_buf_take(&path);
}

/* Opens and locks; fd -1 without an error text when somebody else has it. */
static int take_lock(const agent_log *l, const char *id, bool make, int *ret_fd, base_err *err)
{
    *ret_fd = -1;
    char *dir = agent_log_session_dir(l, id);
    base_buf path = {0};
    base_buf_printf(&path, "%s/lock", dir);
    int rc = make ? base_fs_mkdirs(dir, err) : 0;
    int fd = rc ? -1 : open(path.data, O_RDWR | (make ? O_CREAT : 0) | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (!rc && fd < 0) rc = base_fail_sys(err, "the session's lock %s", path.data);
    if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) != 0) {
        close(fd);
        rc = base_fail(err, BASE_E_STATE,
            "another kvist has session %s open: end it, or look at it with \"kvist replay %s\"", id, id);
    } else if (fd >= 0) {
        *ret_fd = fd;
    }
    free(dir);
    base_buf_free(&path);
    return rc;
}

static struct held_lock *own_lock(const agent_log *l, const char *id)
{
    for (size_t i = 0; i < l->n_locks; i++)
        if (!strcmp(l->locks[i].session, id)) return &l->locks[i];
    return NULL;
}

int agent_log_lock(agent_log *l, const char *id, base_err *err)
{
    if (own_lock(l, id)) return 0;
    int fd, rc = take_lock(l, id, true, &fd, err);
    if (rc) return rc;
    base_grow(&l->locks, &l->cap_locks, l->n_locks + 1, sizeof *l->locks);
    l->locks[l->n_locks++] = (struct held_lock){base_xstrdup(id), fd};
    /* Nobody else runs it, so a turn that is still open was cut short. */
    sqlite3_stmt *s =
        prepare(l, "UPDATE turns SET status = 'interrupted' WHERE session = ?1 AND status = 'open'", "s", id);
    return run(l, s, "a turn could not be marked", err);
}

/* Is some process at work on it? */
bool agent_log_is_locked(const agent_log *l, const char *id)
{
    if (own_lock(l, id)) return true;
    int fd, rc = take_lock(l, id, false, &fd, NULL);
    if (fd >= 0) close(fd);
    return rc == BASE_E_STATE;
}

int agent_log_create(
    agent_log *l, const char *id, const char *parent, const char *root, const char *model, base_err *err)
{
    int64_t now = base_clock_wall_ms();
    sqlite3_stmt *s = prepare(l,
        "INSERT INTO sessions(id, parent, root, model, started_ms, updated_ms) VALUES(?1, ?2, ?3, ?4, ?5, "
        "?5)",
        "ssssi", id, parent, root, model, now);
    int rc = run(l, s, "the session could not be entered", err);
    return rc ? rc : agent_log_lock(l, id, err);
}

int agent_log_find(agent_log *l, const char *prefix, const char *root, char **ret_id, base_err *err)
{
    sqlite3_stmt *s = *prefix
                          ? prepare(l,
                                "SELECT id FROM sessions WHERE substr(id, 1, length(?1)) = ?1 ORDER BY "
                                "id = ?1 DESC LIMIT 2",
                                "s", prefix)
                          : prepare(l,
                                "SELECT id FROM sessions WHERE (?1 IS NULL OR root = ?1) AND NOT " IS_WHAT_IF
                                " ORDER BY updated_ms DESC, id DESC LIMIT 1",
                                "s", root);
    if (!s) return log_fail(l, "sessions cannot be read", err);
    int rc = sqlite3_step(s);
    char *id = rc == SQLITE_ROW ? base_xstrdup(column(s, 0)) : NULL;
    bool more = id && *prefix && strcmp(id, prefix) && sqlite3_step(s) == SQLITE_ROW;
    if (rc != SQLITE_ROW && rc != SQLITE_DONE)
        rc = log_fail(l, "sessions cannot be read", err);
    else if (!id && !*prefix)
        rc = base_fail(
            err, BASE_E_NOT_FOUND, "no session of this tree to resume: \"kvist log list\" shows all");
    else if (!id)
        rc = base_fail(
            err, BASE_E_NOT_FOUND, "no session begins with \"%s\": \"kvist log list\" shows all", prefix);
    else if (more)
        rc = base_fail(err, BASE_E_USAGE, "several sessions begin with \"%s\": give more of the id", prefix);
    else
        rc = 0;
    sqlite3_finalize(s);
    if (rc)
        free(id);
    else
        *ret_id = id;
    return rc;
}

bool agent_log_is_what_if(agent_log *l, const char *id)
{
    sqlite3_stmt *s = prepare(l, "SELECT 1 FROM sessions WHERE id = ?1 AND " IS_WHAT_IF, "s", id);
    const bool is_so = s && sqlite3_step(s) == SQLITE_ROW;
    sqlite3_finalize(s);
    return is_so;
}

/* Whole files of a session's folder: regular ones, not the lock. */
static int copy_folder(const char *from, const char *to, base_err *err)
{
    DIR *d = opendir(from);
    int rc = base_fs_mkdirs(to, err);
    for (const struct dirent *e; !rc && d && (e = readdir(d));) {
        struct stat st;
        base_buf in = {0}, out = {0};
        base_buf_printf(&in, "%s/%s", from, e->d_name);
        base_buf_printf(&out, "%s/%s", to, e->d_name);
        const bool is_ours = strcmp(e->d_name, ".") && strcmp(e->d_name, "..") && strcmp(e->d_name, "lock") &&
                             !lstat(in.data, &st);
        if (is_ours && S_ISDIR(st.st_mode))
            rc = copy_folder(in.data, out.data, err);
        else if (is_ours && S_ISREG(st.st_mode))
            rc = base_fs_copy(in.data, out.data, 0600, err);
        base_buf_free(&in);
        base_buf_free(&out);
    }
    if (d) closedir(d);
    return rc;
}

static int copy_rows(agent_log *l, const char *id, const char *as, base_err *err)
{
    static const char *const copies[] = {
        "INSERT INTO sessions(id, parent, root, model, title, started_ms, updated_ms)"
        " SELECT ?2, id, root, model, title, ?3, ?3 FROM sessions WHERE id = ?1",
        "INSERT INTO turns(session, turn, status, started_ms)"
        " SELECT ?2, turn, status, started_ms FROM turns WHERE session = ?1",
        "INSERT INTO events(session, seq, turn, type, json, unpacked, blob)"
        " SELECT ?2, seq, turn, type, json, unpacked, blob FROM events WHERE session = ?1",
        "INSERT INTO words(body, kind, session, turn, seq)"
        " SELECT body, kind, ?2, turn, seq FROM words WHERE session = ?1",
    };
    int rc = exec(l, "BEGIN IMMEDIATE", err);
    if (rc) return rc;
    for (size_t i = 0; i < sizeof copies / sizeof *copies && !rc; i++)
        rc = run(l, prepare(l, copies[i], i ? "ss" : "ssi", id, as, base_clock_wall_ms()),
            "the session could not be copied", err);
    if (!rc) rc = exec(l, "COMMIT", err);
    if (rc) sqlite3_exec(l->db, "ROLLBACK", NULL, NULL, NULL);
    return rc;
}

int agent_log_fork(agent_log *l, const char *id, const char *as, base_err *err)
{
    agent_log_tail tail;
    char *from = agent_log_session_dir(l, id), *to = agent_log_session_dir(l, as);
    int rc = agent_log_commit(l, err);
    if (!rc && !own_lock(l, id) && agent_log_is_locked(l, id))
        rc = base_fail(
            err, BASE_E_STATE, "another kvist has session %s open: /fork there makes a second one", id);
    if (!rc) rc = copy_folder(from, to, err);
    if (!rc) rc = copy_rows(l, id, as, err);
    if (!rc) rc = agent_log_get_tail(l, as, &tail, err);
    if (!rc)
        rc = agent_log_add(l, as,
            &(agent_event){.type = AGENT_EVENT_fork, .seq = tail.seq + 1, .fork = {tail.turn, as, id}}, err);
    if (!rc) rc = agent_log_commit(l, err);
    if (rc) base_fs_remove(to, NULL);
    free(from);
    free(to);
    return rc;
}

int agent_log_delete(agent_log *l, const char *id, base_err *err)
{
    if (!own_lock(l, id) && agent_log_is_locked(l, id))
        return base_fail(err, BASE_E_STATE, "another kvist has session %s open: end it first", id);
    int rc = exec(l, "BEGIN IMMEDIATE", err);
    if (rc) return rc;
    rc = run(l, prepare(l, "DELETE FROM words WHERE session = ?1", "s", id),
        "the text index could not be cleared", err);
    if (!rc)
        rc = run(l, prepare(l, "DELETE FROM sessions WHERE id = ?1", "s", id),
            "the session could not be deleted", err);
    int n = sqlite3_changes(l->db);
    if (!rc) rc = exec(l, "COMMIT", err);
    if (rc) {
        sqlite3_exec(l->db, "ROLLBACK", NULL, NULL, NULL);
        return rc;
    }
    if (!n) return base_fail(err, BASE_E_NOT_FOUND, "there is no session %s", id);
    /*
     * FTS5 keeps deleted words in old segments until they are merged; the WAL keeps old pages until it is
     * emptied.
     */
    rc = exec(l, "INSERT INTO words(words) VALUES('optimize')", err);
    sqlite3_exec(l->db, "PRAGMA wal_checkpoint(TRUNCATE)", NULL, NULL, NULL);
    char *dir = agent_log_session_dir(l, id);
    int removed = base_fs_remove(dir, rc ? NULL : err);
    free(dir);
    return rc ? rc : removed;
}

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
    pending p = {base_xstrdup(session), NULL, json.len, agent_event_copy(e), l->turn};
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

static int write_event(agent_log *l, const pending *p, base_err *err)
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
    sqlite3_stmt *s = prepare(l,
        "INSERT INTO events(session, seq, turn, type, json, unpacked, blob) VALUES(?1, ?2, ?3, ?4, ?5, ?6, "
        "?7)",
        "siisbib", p->session, (int64_t)p->event->seq, (int64_t)p->turn, agent_event_name(p->event->type),
        bytes, n, (int64_t)(packed ? p->n : 0), blob ? blob : p->event->blob, blob_n);
    free(packed);
    free(blob);
    return run(l, s, "an event could not be written", err);
}

static int index_words(agent_log *l, const pending *p, const char *kind, const char *body, base_err *err)
{
    if (!body || !*body) return 0;
    sqlite3_stmt *s =
        prepare(l, "INSERT INTO words(body, kind, session, turn, seq) VALUES(?1, ?2, ?3, ?4, ?5)", "sssii",
            body, kind, p->session, (int64_t)p->turn, (int64_t)p->event->seq);
    return run(l, s, "the text index could not be written", err);
}

/* What lists and searches need, derived from an event. */
static int derive(agent_log *l, const pending *p, base_err *err)
{
    const agent_event *e = p->event;
    int rc = 0;
    switch (e->type) {
    case AGENT_EVENT_user:
        rc = run(l,
            prepare(l,
                "INSERT OR REPLACE INTO turns(session, turn, status, started_ms) VALUES(?1, ?2, 'open', ?3)",
                "sii", p->session, (int64_t)p->turn, e->user.time_ms),
            "the turn could not be entered", err);
        if (!rc)
            rc = run(l,
                prepare(l, "UPDATE sessions SET title = ?2 WHERE id = ?1 AND title IS NULL", "ss", p->session,
                    e->user.text),
                "the title could not be set", err);
        return rc ? rc : index_words(l, p, "user", e->user.text, err);
    case AGENT_EVENT_title:
        return run(l,
            prepare(l, "UPDATE sessions SET title = ?2 WHERE id = ?1", "ss", p->session, e->title.text),
            "the title could not be set", err);
    case AGENT_EVENT_answer: return index_words(l, p, "answer", e->answer.text, err);
    case AGENT_EVENT_tool_result: return index_words(l, p, "tool_result", e->tool_result.text, err);
    case AGENT_EVENT_turn_end:
        return run(l,
            prepare(l, "UPDATE turns SET status = ?3 WHERE session = ?1 AND turn = ?2", "sis", p->session,
                (int64_t)p->turn, e->turn_end.status ? e->turn_end.status : "closed"),
            "the turn could not be closed", err);
    default: return 0;
    }
}

int agent_log_commit(agent_log *l, base_err *err)
{
    if (!l->n_pending) return 0;
    int rc = exec(l, "BEGIN IMMEDIATE", err);
    if (rc) return rc;
    for (size_t i = 0; i < l->n_pending && !rc; i++) {
        rc = write_event(l, &l->pending[i], err);
        if (!rc) rc = derive(l, &l->pending[i], err);
        if (!rc && (i + 1 == l->n_pending || strcmp(l->pending[i].session, l->pending[i + 1].session)))
            rc = run(l,
                prepare(l, "UPDATE sessions SET updated_ms = ?2 WHERE id = ?1", "si", l->pending[i].session,
                    base_clock_wall_ms()),
                "the session could not be touched", err);
    }
    if (!rc) rc = exec(l, "COMMIT", err);
    if (rc)
        sqlite3_exec(l->db, "ROLLBACK", NULL, NULL, NULL);
    else
        clear_pending(l);
    return rc;
}

int agent_log_get_tail(agent_log *l, const char *session, agent_log_tail *ret, base_err *err)
{
    sqlite3_stmt *s = prepare(l,
        "SELECT (SELECT COALESCE(MAX(seq), 0) FROM events WHERE session = ?1), COALESCE(MAX(turn), 0),"
        " COALESCE((SELECT status FROM turns WHERE session = ?1 ORDER BY turn DESC LIMIT 1), '') FROM turns "
        "WHERE session = ?1",
        "s", session);
    if (!s || sqlite3_step(s) != SQLITE_ROW) {
        int rc = log_fail(l, "the session cannot be read", err);
        sqlite3_finalize(s);
        return rc;
    }
    *ret = (agent_log_tail){(uint64_t)sqlite3_column_int64(s, 0), (uint32_t)sqlite3_column_int64(s, 1),
        !strcmp(column(s, 2), "open")};
    sqlite3_finalize(s);
    return 0;
}

/* --- reading -------------------------------------------------------------------------------------------- */

int agent_log_list(agent_log *l, const char *root, void (*row)(void *user, const agent_log_row *r),
    void *user, base_err *err)
{
    sqlite3_stmt *s = prepare(l,
        "SELECT id, COALESCE(parent, ''), root, model, COALESCE(title, ''), started_ms, updated_ms,"
        " (SELECT COUNT(*) FROM turns WHERE session = id), (SELECT COUNT(*) FROM events WHERE session = id),"
        " COALESCE((SELECT status FROM turns WHERE session = id ORDER BY turn DESC LIMIT 1), 'closed'),"
        " " IS_WHAT_IF " FROM sessions WHERE ?1 IS NULL OR root = ?1 ORDER BY updated_ms DESC, id DESC",
        "s", root);
    if (!s) return log_fail(l, "sessions cannot be read", err);
    int rc;
    while ((rc = sqlite3_step(s)) == SQLITE_ROW) {
        agent_log_row r = {.id = column(s, 0),
            .parent = column(s, 1),
            .root = column(s, 2),
            .model = column(s, 3),
            .title = column(s, 4),
            .started_ms = sqlite3_column_int64(s, 5),
            .updated_ms = sqlite3_column_int64(s, 6),
            .turns = (uint32_t)sqlite3_column_int64(s, 7),
            .events = (uint32_t)sqlite3_column_int64(s, 8),
            .status = column(s, 9),
            .is_what_if = sqlite3_column_int(s, 10)};
        if (!strcmp(r.status, "open") && !agent_log_is_locked(l, r.id)) r.status = "interrupted";
        row(user, &r);
    }
    int result = rc == SQLITE_DONE ? 0 : log_fail(l, "sessions cannot be read", err);
    sqlite3_finalize(s);
    return result;
}

int agent_log_events(agent_log *l, const char *session, agent_log_event_fn *fn, void *user, base_err *err)
{
    sqlite3_stmt *s = prepare(l,
        "SELECT seq, turn, json, unpacked, blob FROM events WHERE session = ?1 ORDER BY seq", "s", session);
    if (!s) return log_fail(l, "events cannot be read", err);
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
    if (!result && more && rc != SQLITE_DONE) result = log_fail(l, "events cannot be read", err);
    sqlite3_finalize(s);
    return result;
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
    sqlite3_stmt *s = prepare(l,
        "SELECT session, kind, snippet(words, 0, '', '', '...', 24), turn, seq FROM words"
        " WHERE words MATCH ?1 AND (?2 IS NULL OR session = ?2) ORDER BY rank LIMIT ?3",
        "ssi", expression, session, (int64_t)(limit ? limit : 50));
    free(expression);
    if (!s) return log_fail(l, "the text index cannot be read", err);
    int rc;
    while ((rc = sqlite3_step(s)) == SQLITE_ROW)
        match(user, &(agent_log_match){.session = column(s, 0),
                        .kind = column(s, 1),
                        .snippet = column(s, 2),
                        .turn = (uint32_t)sqlite3_column_int64(s, 3),
                        .seq = (uint64_t)sqlite3_column_int64(s, 4)});
    int result = rc == SQLITE_DONE ? 0 : log_fail(l, "the text index cannot be read", err);
    sqlite3_finalize(s);
    return result;
}
