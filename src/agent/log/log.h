/*
 * The session log: SQLite (WAL, foreign keys, user_version migrations, FTS5). It stores events exactly as
 * emitted; a turn is open, closed or interrupted. Committed at each of: user text, approval, before and after
 * a write, tool result, end of turn.
 */
#ifndef KVIST_AGENT_LOG_LOG_H
#define KVIST_AGENT_LOG_LOG_H

#include "agent/log/event.h"

typedef struct agent_log agent_log;

/*
 * path NULL: the data folder's log.db. A locked, corrupt or newer database gives a sentence that says what to
 * do.
 */
int agent_log_open(agent_log **ret, const char *path, bool read_only, base_err *err);
void agent_log_close(agent_log *l);

/* A fresh id: time and randomness, "20261121-0645-3f9a2c". */
void agent_log_new_id(char ret[32]);

/* Sessions. The lock of a session is held until close; BASE_E_STATE: another process has it. */
int agent_log_create(
    agent_log *l, const char *id, const char *parent, const char *root, const char *model, base_err *err);
int agent_log_lock(agent_log *l, const char *id, base_err *err);
bool agent_log_is_locked(const agent_log *l, const char *id); /* by this log or by another process */
/* "" = the latest of root that is no what-if */
int agent_log_find(agent_log *l, const char *prefix, const char *root, char **ret_id, base_err *err);
bool agent_log_is_what_if(agent_log *l, const char *id);
/*
 * A second session with all that `id` has up to now: its events, its files, a `fork` event behind them. Nothing is
 * buffered for it. BASE_E_STATE: another process has it open.
 */
int agent_log_fork(agent_log *l, const char *id, const char *as, base_err *err);
int agent_log_delete(agent_log *l, const char *id, base_err *err); /* text index, rows and undo objects too */

/* Buffers the event; commit writes what is buffered in one transaction. */
int agent_log_add(agent_log *l, const char *session, const agent_event *e, base_err *err);
/* after a failure the events stay buffered for the next try */
int agent_log_commit(agent_log *l, base_err *err);

/* Where a session stands: its last event's seq, its last turn and whether that turn was closed. */
typedef struct agent_log_tail {
    uint64_t seq;
    uint32_t turn;
    bool turn_open; /* begun and neither closed nor marked interrupted */
} agent_log_tail;
int agent_log_get_tail(agent_log *l, const char *session, agent_log_tail *ret, base_err *err);

typedef struct agent_log_row {
    const char *id, *parent, *root, *model, *title; /* title: as the person gave it, else the first request */
    int64_t started_ms, updated_ms;
    uint32_t turns, events;
    const char *status; /* "open", "closed", "interrupted" */
    bool is_what_if;    /* another session, computed again with other settings: nobody can go on with it */
} agent_log_row;
int agent_log_list(agent_log *l, const char *root, void (*row)(void *user, const agent_log_row *r),
    void *user, base_err *err);

/* Every event in order (json as stored; blob may be NULL). Return false from fn to stop. */
typedef bool agent_log_event_fn(
    void *user, uint64_t seq, uint32_t turn, const char *json, size_t n, const void *blob, size_t blob_n);
int agent_log_events(agent_log *l, const char *session, agent_log_event_fn *fn, void *user, base_err *err);
/*
 * The same, read; an event lives while fn runs. One that cannot be read (a newer kvist's, or damaged) is passed by, or ends the reading
 * with its error.
 */
typedef enum agent_log_unread { AGENT_LOG_PASS_BY, AGENT_LOG_FAIL } agent_log_unread;
typedef bool agent_log_read_fn(void *user, uint32_t turn, const agent_event *e);
int agent_log_read(agent_log *l, const char *session, agent_log_unread unread, agent_log_read_fn *fn,
    void *user, base_err *err);

/* The session as a page for a person (log_markdown.c), appended. */
int agent_log_markdown(agent_log *l, const char *session, base_buf *out, base_err *err);

/* A place where words stand; borrowed, while `match` runs. */
typedef struct agent_log_match {
    const char *session, *kind, *snippet;
    uint32_t turn;
    uint64_t seq;
} agent_log_match;
/* The best matches first, at most `limit` (0: 50), of one session or (NULL) of all. BASE_E_USAGE: no words. */
int agent_log_search(agent_log *l, const char *session, const char *words, uint32_t limit,
    void (*match)(void *user, const agent_log_match *m), void *user, base_err *err);

/* Folder of a session's own files (rows, undo objects, spilled results). The caller frees. */
char *agent_log_session_dir(const agent_log *l, const char *id);

#endif
