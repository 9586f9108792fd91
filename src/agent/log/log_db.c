/*
 * Opening and closing the session log's database (contract: log_db.h): its tables by migrations, checked to be these and
 * nothing else.
 */
#include "agent/log/log_db.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/mem.h"

enum { BUSY_MS = 4000 };

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

/* --- errors --------------------------------------------------------------------------------------------- */

/* Even reading needs some bytes (the index of the WAL), and SQLite calls their lack an I/O error. */
static bool is_disk_full(const char *folder)
{
    struct statvfs fs;
    return !statvfs(folder, &fs) && (uint64_t)fs.f_bavail * fs.f_frsize < 1 << 16;
}

int agent_log__fail(agent_log *l, const char *what, base_err *err)
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
            "the session log %s is damaged (%s): move it away and kvist begins "
            "a new one; \"sqlite3 FILE .recover\" may save what is in it",
            l->path, detail);
    case SQLITE_FULL:
        return base_fail(err, BASE_E_IO,
            "the disk is full: the session log %s could not be used; free some space", l->path);
    case SQLITE_READONLY: return base_fail(err, BASE_E_IO, "the session log %s cannot be written", l->path);
    default: return base_fail(err, BASE_E_IO, "the session log %s: %s: %s", l->path, what, detail);
    }
}

sqlite3_stmt *agent_log__prepare(agent_log *l, const char *sql, const char *types, ...)
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

int agent_log__run(agent_log *l, sqlite3_stmt *s, const char *what, base_err *err)
{
    int rc = s ? sqlite3_step(s) : SQLITE_ERROR;
    bool good = rc == SQLITE_DONE || rc == SQLITE_ROW;
    int result = good ? 0 : agent_log__fail(l, what, err);
    sqlite3_finalize(s);
    return result;
}

int agent_log__exec(agent_log *l, const char *sql, base_err *err)
{
    return sqlite3_exec(l->db, sql, NULL, NULL, NULL) == SQLITE_OK
               ? 0
               : agent_log__fail(l, "a statement failed", err);
}

const char *agent_log__column(sqlite3_stmt *s, int i)
{
    const char *text = (const char *)sqlite3_column_text(s, i);
    return text ? text : "";
}

/* --- opening -------------------------------------------------------------------------------------------- */

static int64_t user_version(agent_log *l)
{
    sqlite3_stmt *s = agent_log__prepare(l, "PRAGMA user_version", "");
    int64_t version = s && sqlite3_step(s) == SQLITE_ROW ? sqlite3_column_int64(s, 0) : -1;
    sqlite3_finalize(s);
    return version;
}

static int migrate(agent_log *l, base_err *err)
{
    int64_t version = user_version(l);
    if (version < 0) return agent_log__fail(l, "its version cannot be read", err);
    if (version > SCHEMA)
        return base_fail(err, BASE_E_UNSUPPORTED,
            "the session log %s was written by a newer kvist (schema %lld, "
            "this one knows %d): use that kvist, or move the file away",
            l->path, (long long)version, SCHEMA);
    if (version == SCHEMA) return 0;
    if (l->read_only)
        return base_fail(err, BASE_E_STATE,
            "the session log %s has an older schema: open it once with \"kvist log list\"", l->path);
    int rc = agent_log__exec(l, "BEGIN IMMEDIATE", err);
    if (rc) return rc;
    version = user_version(l); /* another process may have been faster */
    for (int64_t v = version; v < SCHEMA && !rc; v++) rc = agent_log__exec(l, migrations[v], err);
    char set[64];
    snprintf(set, sizeof set, "PRAGMA user_version = %d", SCHEMA);
    if (!rc) rc = agent_log__exec(l, set, err);
    if (!rc) rc = agent_log__exec(l, "COMMIT", err);
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
        base_buf_printf(out, "%s %s %s: %s\n", agent_log__column(s, 0), agent_log__column(s, 1),
            agent_log__column(s, 2), agent_log__column(s, 3));
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
        result = agent_log__fail(l, "its tables cannot be read", err);
    if (!result && strcmp(wanted.data ? wanted.data : "", have.data ? have.data : "") != 0)
        result = base_fail(err, BASE_E_FORMAT,
            "the session log %s has other tables, views or triggers than kvist makes: "
            "somebody changed it, and it is not used. Move it away and kvist begins a new one",
            l->path);
    base_buf_free(&wanted);
    base_buf_free(&have);
    return result;
}

/*
 * Does a journal end with the name of another file, as for a change of several databases at once? kvist makes none such, and behind
 * playing one back SQLite removes what it names.
 */
static bool names_another_file(const char *journal)
{
    static const unsigned char mark[8] = {0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7};
    unsigned char end[sizeof mark];
    int fd = open(journal, O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0) return false;
    const bool is_so = lseek(fd, -(off_t)sizeof mark, SEEK_END) > 0 &&
                       read(fd, end, sizeof end) == (ssize_t)sizeof end && !memcmp(end, mark, sizeof mark);
    close(fd);
    return is_so;
}

/* What SQLite reads beside a database, before anything can be asked of it: files, and nobody else's. */
static int check_beside(const agent_log *l, base_err *err)
{
    static const char *const endings[] = {"-journal", "-wal", "-shm"};
    int rc = 0;
    for (size_t i = 0; i < sizeof endings / sizeof *endings && !rc; i++) {
        base_buf path = {0};
        struct stat st;
        base_buf_printf(&path, "%s%s", l->path, endings[i]);
        if (!lstat(path.data, &st)) {
            rc = S_ISREG(st.st_mode)
                     ? base_fs_check_owner(path.data, err)
                     : base_fail(err, BASE_E_STATE,
                           "%.300s is no file, which SQLite would wait for: it is not used. Remove it",
                           path.data);
            if (!rc && !i && names_another_file(path.data))
                rc = base_fail(err, BASE_E_FORMAT,
                    "%.300s names another file, which SQLite would remove: kvist did not write it, "
                    "and the session log is not used. Move both away and kvist begins a new one",
                    path.data);
        }
        base_buf_free(&path);
    }
    return rc;
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
    if (!rc) rc = check_beside(l, err);
    int flags = read_only ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE;
    if (!rc && sqlite3_open_v2(l->path, &l->db, flags | SQLITE_OPEN_NOMUTEX, NULL) != SQLITE_OK)
        rc = agent_log__fail(l, "it cannot be opened", err);
    if (!rc) {
        sqlite3_busy_timeout(l->db, BUSY_MS);
        sqlite3_db_config(l->db, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, NULL);
        sqlite3_db_config(l->db, SQLITE_DBCONFIG_ENABLE_VIEW, 0, NULL);
        sqlite3_db_config(l->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
        rc = agent_log__exec(
            l, "PRAGMA foreign_keys = ON; PRAGMA secure_delete = ON; PRAGMA synchronous = FULL", err);
    }
    if (!rc && !read_only) rc = agent_log__exec(l, "PRAGMA journal_mode = WAL", err);
    if (!rc) rc = migrate(l, err);
    if (!rc) rc = check_schema(l, err);
    if (rc) {
        agent_log_close(l);
        return rc;
    }
    *ret = l;
    return 0;
}

void agent_log__clear_pending(agent_log *l)
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
    agent_log__clear_pending(l);
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
