/*
 * What if: a logged session computed again, twice. The original side has the settings of the record and is checked
 * against it; the changed side has others. Both read the text that was recorded (arm.h), so that a difference comes
 * from the settings alone: what each side evicts, and how far apart what they expect at every token of the answers is.
 * From a turn on the changed side may answer by itself instead: then the two are compared up to the first token that it
 * says otherwise, and what it wrote is set beside what was recorded.
 *
 * A side with another vocabulary reads the same text as tokens of its own: then what each side expects of the answers' text
 * is compared, by byte, and not what they expect at a token. Of a session that was computed elsewhere there is one side.
 *
 * Results are events (agent/log/event.h: what_if, plan, ledger, what_if_turn, what_if_end). They are kept, turn by turn,
 * as a session of their own whose parent is the session looked at: listed with it, deleted by its id, gone on with
 * where it was interrupted. The session itself is only read.
 *
 * It stands above agent/, whose log and events it reads and writes, and below commands and screen, which show it.
 * Thread: one; *cancel may be set by any.
 */
#ifndef KVIST_WHATIF_H
#define KVIST_WHATIF_H

#include "whatif/free.h"

typedef struct whatif_side {
    whatif_engine engine;
    kv_options kv; /* row_file is ours */
    bool keeps_budget;
    const char *name; /* the settings in words: "kvist, 4,096 rows" */
    /* The same steps in this side's own ids (translate.h); NULL: it reads the ids of the log. */
    const whatif_schedule *own;
    bool is_absent; /* the original of a session that was computed elsewhere: there is only its text */
} whatif_side;

typedef struct whatif_options {
    whatif_side original, changed;
    const char *settings; /* a JSON object of what is changed: the same question is not computed twice */
    const char *phrase;   /* how the summary begins: "with 2,560 rows instead of 4,096" */
    const char *missing;  /* what the log or the machine cannot give, sentences; NULL: nothing is missing */
    /* From this turn on the changed side answers by itself (free.h); 0: it reads what was recorded. */
    uint32_t free_from;
    whatif_read_fn *read; /* for that; may be NULL */
    void *read_user;
    const atomic_bool *cancel;
    void *user;
    void (*event)(void *user, const agent_event *e); /* results, those of an earlier run too */
    void (*progress)(void *user, uint32_t turn, uint32_t done, uint32_t total); /* tokens; may be NULL */
} whatif_options;

/*
 * BASE_E_CANCELLED: the turns that were finished are kept, and the next call goes on behind them. BASE_E_STATE:
 * another process computes this. was_known (may be NULL): all of it was kept from before, nothing was computed.
 */
int whatif_run(
    agent_log *l, const whatif_schedule *s, const whatif_options *o, bool *was_known, base_err *err);

#endif
