/*
 * The sessions of the log: names, folders and locks, finding, listing, copying and deleting them. A session belongs to
 * the process that holds flock on the file "lock" in its folder. A turn whose process died is still `open` in the table;
 * whoever looks without finding the lock held reads it as interrupted.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "agent/log/log_db.h"
#include "base/clock.h"
#include "base/fs.h"
#include "base/mem.h"

/* Of a row of sessions: its log begins as no session's does. */
#define IS_WHAT_IF "EXISTS(SELECT 1 FROM events WHERE session = sessions.id AND seq = 1 AND type = 'what_if')"
/* A what-if has no turns of its own: it is over where it was summed up. */
#define WHAT_IF_STATUS                                                                                       \
    "CASE WHEN EXISTS(SELECT 1 FROM events WHERE session = sessions.id AND type = 'what_if_end') THEN 'closed' ELSE 'open' END"

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
    sqlite3_stmt *s = agent_log__prepare(
        l, "UPDATE turns SET status = 'interrupted' WHERE session = ?1 AND status = 'open'", "s", id);
    return agent_log__run(l, s, "a turn could not be marked", err);
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
    sqlite3_stmt *s = agent_log__prepare(l,
        "INSERT INTO sessions(id, parent, root, model, "
        "started_ms, updated_ms) VALUES(?1, ?2, ?3, ?4, ?5, ?5)",
        "ssssi", id, parent, root, model, now);
    int rc = agent_log__run(l, s, "the session could not be entered", err);
    return rc ? rc : agent_log_lock(l, id, err);
}

int agent_log_find(agent_log *l, const char *prefix, const char *root, char **ret_id, base_err *err)
{
    sqlite3_stmt *s = *prefix
                          ? agent_log__prepare(l,
                                "SELECT id FROM sessions WHERE substr(id, 1, "
                                "length(?1)) = ?1 ORDER BY id = ?1 DESC LIMIT 2",
                                "s", prefix)
                          : agent_log__prepare(l,
                                "SELECT id FROM sessions WHERE (?1 IS NULL OR root = ?1) AND NOT " IS_WHAT_IF
                                " ORDER BY updated_ms DESC, id DESC LIMIT 1",
                                "s", root);
    if (!s) return agent_log__fail(l, "sessions cannot be read", err);
    int rc = sqlite3_step(s);
    char *id = rc == SQLITE_ROW ? base_xstrdup(agent_log__column(s, 0)) : NULL;
    bool more = id && *prefix && strcmp(id, prefix) && sqlite3_step(s) == SQLITE_ROW;
    if (rc != SQLITE_ROW && rc != SQLITE_DONE)
        rc = agent_log__fail(l, "sessions cannot be read", err);
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
    sqlite3_stmt *s = agent_log__prepare(l, "SELECT 1 FROM sessions WHERE id = ?1 AND " IS_WHAT_IF, "s", id);
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
    int rc = agent_log__exec(l, "BEGIN IMMEDIATE", err);
    if (rc) return rc;
    for (size_t i = 0; i < sizeof copies / sizeof *copies && !rc; i++)
        rc = agent_log__run(l,
            agent_log__prepare(l, copies[i], i ? "ss" : "ssi", id, as, base_clock_wall_ms()),
            "the session could not be copied", err);
    if (!rc) rc = agent_log__exec(l, "COMMIT", err);
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
    int rc = agent_log__exec(l, "BEGIN IMMEDIATE", err);
    if (rc) return rc;
    rc = agent_log__run(l, agent_log__prepare(l, "DELETE FROM words WHERE session = ?1", "s", id),
        "the text index could not be cleared", err);
    if (!rc)
        rc = agent_log__run(l, agent_log__prepare(l, "DELETE FROM sessions WHERE id = ?1", "s", id),
            "the session could not be deleted", err);
    int n = sqlite3_changes(l->db);
    if (!rc) rc = agent_log__exec(l, "COMMIT", err);
    if (rc) {
        sqlite3_exec(l->db, "ROLLBACK", NULL, NULL, NULL);
        return rc;
    }
    if (!n) return base_fail(err, BASE_E_NOT_FOUND, "there is no session %s", id);
    /*
     * FTS5 keeps deleted words in old segments until they are merged; the WAL keeps old pages until it is
     * emptied.
     */
    rc = agent_log__exec(l, "INSERT INTO words(words) VALUES('optimize')", err);
    sqlite3_exec(l->db, "PRAGMA wal_checkpoint(TRUNCATE)", NULL, NULL, NULL);
    char *dir = agent_log_session_dir(l, id);
    int removed = base_fs_remove(dir, rc ? NULL : err);
    free(dir);
    return rc ? rc : removed;
}

int agent_log_list(agent_log *l, const char *root, void (*row)(void *user, const agent_log_row *r),
    void *user, base_err *err)
{
    sqlite3_stmt *s = agent_log__prepare(l,
        "SELECT id, COALESCE(parent, ''), root, model, COALESCE(title, ''), started_ms, updated_ms,"
        " (SELECT COUNT(*) FROM turns WHERE session = id), (SELECT COUNT(*) FROM events WHERE session = id),"
        " CASE WHEN " IS_WHAT_IF " THEN " WHAT_IF_STATUS
        " ELSE COALESCE((SELECT status FROM turns WHERE session = id ORDER BY turn DESC LIMIT 1), 'closed') END,"
        " " IS_WHAT_IF " FROM sessions WHERE ?1 IS NULL OR root = ?1 ORDER BY updated_ms DESC, id DESC",
        "s", root);
    if (!s) return agent_log__fail(l, "sessions cannot be read", err);
    int rc;
    while ((rc = sqlite3_step(s)) == SQLITE_ROW) {
        agent_log_row r = {.id = agent_log__column(s, 0),
            .parent = agent_log__column(s, 1),
            .root = agent_log__column(s, 2),
            .model = agent_log__column(s, 3),
            .title = agent_log__column(s, 4),
            .started_ms = sqlite3_column_int64(s, 5),
            .updated_ms = sqlite3_column_int64(s, 6),
            .turns = (uint32_t)sqlite3_column_int64(s, 7),
            .events = (uint32_t)sqlite3_column_int64(s, 8),
            .status = agent_log__column(s, 9),
            .is_what_if = sqlite3_column_int(s, 10)};
        if (!strcmp(r.status, "open") && !agent_log_is_locked(l, r.id)) r.status = "interrupted";
        row(user, &r);
    }
    int result = rc == SQLITE_DONE ? 0 : agent_log__fail(l, "sessions cannot be read", err);
    sqlite3_finalize(s);
    return result;
}
