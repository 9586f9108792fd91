/*
 * A session recorded over the fake model, whose logits are a hash of all that a token could read: whatever is read
 * otherwise shows in every number. And what a comparison of it told.
 */
#ifndef KVIST_TESTS_WHATIF_RECORD_H
#define KVIST_TESTS_WHATIF_RECORD_H

#include "kit.h"
#include "whatif/whatif.h"

enum { BUDGET = 800, TURNS = 4, SYSTEM = 64, CONTEXT = 300, REQUEST = 30, ANSWER = 24 };

extern char record_folder[64];
/* Some tokens are whole calls: answers end there, get a result, and are gone on with. */
extern bool record_has_calls;
/* Lines of former text are said again behind a request's repair. */
extern bool record_says_again;
extern uint32_t record_instructions; /* tokens of a second part of the fixed prompt; 0: there is none */

typedef struct recorder {
    agent_log *log;
    const char *id;
    kv_session *s;
    uint64_t seq;
    uint32_t turn, n_plans;
    agent_event *held[64];
    uint32_t n_held;
    uint64_t ids; /* of random numbers */
} recorder;

typedef struct seen {
    base_buf turns; /* a line each: every number but times */
    base_buf end, checks;
    uint32_t n_turns, n_differ, n_plans, n_said, n_tokens, n_generated;
    double kl;
    int64_t evicted[2];
    base_buf
        answers; /* of free turns, a line each: as recorded or not, where calls were answered from, why it stopped */
    int64_t n_own;             /* tokens of the free side's own events; -1: none came */
    uint32_t free_from, n_ctx; /* given; 0: as recorded */
    atomic_bool cancel;
    uint32_t cancel_behind;           /* a turn; 0: never */
    uint32_t first_done, done, total; /* progress: what was told first and last; tokens */
    bool went_back;
} seen;

int record_make_folder(void **state);
int record_drop_folder(void **state);
agent_log *record_open_log(void);
whatif_engine fake_engine(fake_model *m);
void record_event(recorder *r, agent_event *e);
void record_release(recorder *r);
uint32_t record_text(recorder *r, kv_origin origin, const char *label, uint32_t n, float *logits);
void record_begin_turn(recorder *r, const char *text);
void record_end_turn(recorder *r);
void record_ask(recorder *r);
recorder record_begin(agent_log *l, const char *id, fake_model *m);
void record_turns(recorder *r, fake_model *m);
void record_see(void *user, const agent_event *e); /* into a seen */
void seen_free(seen *s);
int record_try(agent_log *l, const char *id, uint32_t budget, seen *s, bool *was_known, base_err *err);
/* The same, and nothing but a cancellation may go wrong. */
int record_compare(agent_log *l, const char *id, uint32_t budget, seen *s, bool *was_known);

#endif
