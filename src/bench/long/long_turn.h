/*
 * One turn of a session of `kvist-bench long`: where its time went, by the events that the agent told, what it
 * cost, and whether its answer is right.
 */
#ifndef KVIST_BENCH_LONG_TURN_H
#define KVIST_BENCH_LONG_TURN_H

#include "agent/log/event.h"
#include "base/buf.h"
#include "base/json.h"

/* Where a turn's time goes. X(identifier, "word in a line of results") */
#define LONG_PARTS(X)                                                                                        \
    X(MESSAGE, "message") /* text of the person, of files and of tools, computed */                          \
    X(REPAIR, "repair")   /* from there to the opening of the answer */                                      \
    X(CALL, "call")       /* what the model writes of a tool call */                                         \
    X(PROSE, "prose")     /* what else it writes */                                                          \
    X(TOOL, "tool")       /* the tools themselves */                                                         \
    X(REST, "rest")       /* log, ledger, what none of these is */                                           \
    X(IDLE, "idle")       /* behind the turn, while nobody waits */
#define LONG_PART_ENUM(id, word) LONG_##id,
typedef enum long_part { LONG_PARTS(LONG_PART_ENUM) LONG_N_PARTS } long_part;
extern const char *const long_part_words[LONG_N_PARTS];

typedef struct long_turn {
    uint64_t at; /* ns: up to here the time has been given to a part */
    uint64_t ns[LONG_N_PARTS];
    bool is_asked; /* a message or result is complete, and the answer to it is not opened yet */
    uint32_t n_calls;
    int64_t added, generated, evicted, promoted; /* as its ledger says */
    base_buf answer;                             /* the last one */
    bool failed;
} long_turn;

void long_turn_begin(long_turn *t, uint64_t now);
void long_turn_event(long_turn *t, const agent_event *e, uint64_t now);
void long_turn_end(long_turn *t, uint64_t now); /* what is left is `rest` */
void long_turn_free(long_turn *t);

/*
 * Does the answer hold what a step of a set asks for: every string of `all`, one of `any`? They count where no
 * letter, digit or underscore stands next to them.
 */
bool long_is_right(const base_json *step, const char *answer);

#endif
