/*
 * The database of the session log, for the files of this folder: what an open log holds, its statements, and what an
 * error of SQLite says to a person.
 */
#ifndef KVIST_AGENT_LOG_DB_H
#define KVIST_AGENT_LOG_DB_H

#include <sqlite3.h>

#include "agent/log/log.h"

typedef struct agent_log_pending {
    char *session, *json;
    size_t n;
    agent_event *event;
    uint32_t turn;
} agent_log_pending;

struct agent_log {
    sqlite3 *db;
    char *path, *folder; /* of the database */
    bool read_only;
    agent_log_pending *pending;
    size_t n_pending, cap_pending;
    struct held_lock {
        char *session;
        int fd;
    } * locks;
    size_t n_locks, cap_locks;
    uint32_t turn; /* of the event added last: events without a turn of their own belong to it */
};

/* The sentence for the database's last error. */
int agent_log__fail(agent_log *l, const char *what, base_err *err);
/*
 * One statement with its parameters: 's' const char * (NULL is NULL), 'i' int64_t, 'b' const void * and
 * size_t.
 */
sqlite3_stmt *agent_log__prepare(agent_log *l, const char *sql, const char *types, ...);
/* Runs a prepared statement that gives no rows; frees it. */
int agent_log__run(agent_log *l, sqlite3_stmt *s, const char *what, base_err *err);
int agent_log__exec(agent_log *l, const char *sql, base_err *err); /* statements without parameters */
const char *agent_log__column(sqlite3_stmt *s, int i);             /* a row's text; NULL is "" */
void agent_log__clear_pending(agent_log *l);

#endif
