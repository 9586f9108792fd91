/*
 * What a logged session did, as steps that can be done again: texts and answers in order, the places where evicted
 * rows were asked for, a person's orders to the cache, rewinds. Files and tools have no part in it: what was read
 * and printed stands in the log.
 */
#ifndef KVIST_WHATIF_SCHEDULE_H
#define KVIST_WHATIF_SCHEDULE_H

#include "agent/log/log.h"
#include "agent/log/logged.h"
#include "kv/session.h"

typedef enum whatif_kind {
    WHATIF_TURN,   /* a turn begins */
    WHATIF_TEXT,   /* `text` is appended */
    WHATIF_ANSWER, /* `text` was written by the model, token by token */
    WHATIF_REPAIR, /* tokens [from, to) ask for evicted rows */
    WHATIF_ORDER, /* tokens [from, to): what `cause` and `action` say, by a person or since their text changed */
    WHATIF_UNDO,   /* the last plan is taken back */
    WHATIF_BUDGET, /* `limit` holds from here on */
    WHATIF_REWIND, /* tokens from `from` on are given up */
    WHATIF_END     /* the turn is over */
} whatif_kind;

typedef struct whatif_step {
    whatif_kind kind;
    uint32_t turn;
    uint64_t seq;   /* of the last event of the log that the step comes from */
    uint32_t world; /* how often the tree had changed, or may have */
    agent_logged_run text;
    char *json;          /* the event as it was logged, of a turn's beginning, a text and a rewind */
    char *label;         /* of a text; NULL: none */
    base_buf said;       /* of an answer: its text as it was told, without what ends it */
    uint32_t *said_ends; /* [text.n] bytes of it that were told with each token */
    uint64_t *seqs;      /* [text.n] of an answer's tokens */
    size_t cap_seqs, cap_said_ends;
    uint32_t from, to;
    kv_cause cause;
    kv_action action;
    kv_limit limit;
} whatif_step;

/* A plan as it was logged, to be compared with what is decided now. */
typedef struct whatif_plan {
    uint32_t part; /* turns that had come to an end before */
    kv_plan *plan;
} whatif_plan;

/* A file's content as something of the session showed it. */
typedef struct whatif_version {
    char *path;
    char version[65]; /* sha256 */
    uint32_t world;
} whatif_version;

typedef struct whatif_schedule {
    char *id, *root, *model, *model_hash, *backend, *isa, *policy;
    kv_limit limit;      /* at the start */
    int repair;          /* as kv_options */
    const char **set;    /* as kv_options; heap */
    bool says_settings;  /* false: the log is older than these two: they are taken to be the defaults */
    uint32_t n_ctx;      /* as kv_options */
    uint32_t max_tokens; /* of an answer; 0: the log does not say */
    double temperature;  /* of the sampling; -1: the log does not say */
    uint32_t n_turns;    /* that came to an end */
    uint32_t n_tokens;   /* of all steps */
    uint32_t n_rewinds;
    bool is_elsewhere;     /* computed across HTTP: there are no rows */
    bool is_cut;           /* the last turn has no end: it is left out */
    bool was_visited_late; /* by a version that computed answers again behind themselves */
    whatif_step *steps;
    size_t n_steps, cap_steps;
    whatif_plan *plans;
    size_t n_plans, cap_plans;
    whatif_version *versions;
    size_t n_versions, cap_versions;
} whatif_schedule;

/*
 * Reads a session's log. BASE_E_STATE: it is a what-if itself, or has no turn that came to an end. Free with
 * whatif_schedule_free.
 */
int whatif_schedule_read(whatif_schedule **ret, agent_log *l, const char *id, base_err *err);
/* The same of events from anywhere: `tell` hands them to fn in order, as agent_log_events does. */
typedef int whatif_tell_fn(void *user, agent_log_event_fn *fn, void *fn_user, base_err *err);
int whatif_schedule_make(
    whatif_schedule **ret, const char *id, whatif_tell_fn *tell, void *user, base_err *err);
void whatif_schedule_free(whatif_schedule *s); /* NULL is fine */

#endif
