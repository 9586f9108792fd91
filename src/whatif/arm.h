/*
 * One side of a comparison: a session of the cache that does a schedule's steps under its own settings, and what
 * came of them. Answers are not written again but read as they were recorded (teacher forcing): before each of their
 * tokens stands what this side would have said there.
 */
#ifndef KVIST_WHATIF_ARM_H
#define KVIST_WHATIF_ARM_H

#include "agent/log/moved.h"
#include "model/text/grammar.h"
#include "whatif/schedule.h"

/* In place of a role: no message ends or begins; the session begins. */
enum { WHATIF_NO_MESSAGE = -1, WHATIF_START = -2 };

/* Who computes, and whose ids the log has. */
typedef struct whatif_engine {
    void *user;
    /* A session; `resume`: from kv->row_file's snapshot, which has to serve. */
    int (*open)(void *user, const kv_options *kv, bool resume, const kv_observer *observer, kv_session **ret,
        base_err *err);
    const char *(*piece)(
        const void *user, int32_t id, size_t *ret_n); /* bytes; NULL: no id of this vocabulary */
    uint32_t n_vocab;
    /* What a side that answers by itself needs; NULL where none does. */
    bool (*is_end)(const void *user, int32_t id);
    void (*encode)(
        const void *user, const char *text, size_t n, model_ids *out); /* special texts stay text */
    /* What the template writes where a message ends and one begins (roles). */
    void (*scaffold)(const void *user, int end, int begin, model_ids *out);
    model_grammar *grammar; /* of calls; NULL: none */
} whatif_engine;

/* The engine of a model, which must outlive it. */
whatif_engine whatif_model_engine(model *m);
/*
 * The grammar that its calls are held to, of all tools. Which files and definitions a tree has is not logged: any path and
 * name will do. NULL: there is none. model_grammar_free.
 */
model_grammar *whatif_model_grammar(model *m);

/* What a turn cost and did; counted since the turn before ended. */
typedef struct whatif_sums {
    agent_moved moved;
    uint64_t visiting, visited;   /* tokens that could visit; row-lanes that they visited */
    uint64_t ns;                  /* spent in the cache and the engine */
    double nll;                   /* -log p of the answers' tokens, nats */
    uint32_t n_before, n_written; /* tokens: of the session when the turn began; of answers */
    uint32_t n_plans, n_other;    /* plans made; of them those that the record has otherwise, or not at all */
    base_buf notes;               /* orders that could not be followed, a sentence each */
} whatif_sums;

typedef struct whatif_arm {
    const whatif_engine *engine;
    const whatif_schedule *record; /* plans are compared with its; NULL: they are not */
    bool keeps_budget;             /* the session's own changes of the budget are not followed */
    const atomic_bool *cancel;
    /* Plans as events, behind the event of the log that `seq` names; may be NULL. */
    void (*tell)(void *user, uint64_t seq, agent_event *e);
    /* Of `total` tokens that are computed at once, `done` are; may be NULL. */
    void (*computed)(void *user, const struct whatif_arm *a, uint32_t done, uint32_t total);
    void *user;

    kv_session *session;
    float *next; /* [n_vocab] logits behind the newest token */
    bool has_next;
    const whatif_step *step;
    uint32_t part, turn;
    size_t plan_at; /* of the record's, the next */
    whatif_sums sums;
} whatif_arm;

/* The fields above `session` are the caller's. */
int whatif_arm_open(whatif_arm *a, const kv_options *kv, bool resume, base_err *err);
void whatif_arm_close(whatif_arm *a);
/* A resumed side stands behind `part` turns. */
void whatif_arm_skip(whatif_arm *a, uint32_t part);

/* Does a step that is no answer. */
int whatif_arm_do(whatif_arm *a, const whatif_step *step, base_err *err);

enum { WHATIF_FORCED = KV_DRAFT_MAX };
/*
 * Reads tokens [at, at + n) of an answer's step, n at most WHATIF_FORCED. logits ([n][n_vocab]) receives what this
 * side expected at each of them.
 */
int whatif_arm_force(
    whatif_arm *a, const whatif_step *step, uint32_t at, uint32_t n, float *logits, base_err *err);

/* What this side expects behind its newest token, [n_vocab]; valid until it computes again. */
int whatif_arm_expect(whatif_arm *a, const float **ret, base_err *err);
/* Writes one token of its own; nothing is expected behind the last one of an answer. */
int whatif_arm_write(whatif_arm *a, kv_origin origin, int32_t id, bool is_last, base_err *err);

/* The turn is over: counts its visits, and compares how many plans the record has of it. */
void whatif_arm_end_turn(whatif_arm *a);
void whatif_arm_forget_sums(whatif_arm *a);

#endif
