/*
 * Requests without a screen: answers stream to stdout, tool calls and the ledger go to stderr; with json every
 * event is a line on stdout. Where the session has a schema, stdout gets the JSON of each answer on a line of its own, and
 * nothing of one that does not fit. Runs on the calling thread; Ctrl+C interrupts the turn and keeps what was answered.
 */
#ifndef KVIST_AGENT_HEADLESS_H
#define KVIST_AGENT_HEADLESS_H

#include "agent/start.h"

/* How a request ended, the worst thing that can be said of it last. */
typedef enum agent_outcome {
    AGENT_OUTCOME_DONE,
    AGENT_OUTCOME_FAILED,
    AGENT_OUTCOME_WRONG,      /* a line of the input was no request */
    AGENT_OUTCOME_LIMIT,      /* the context or --max-steps ended the turn, or --max-turns the run */
    AGENT_OUTCOME_DENIED,     /* nobody could be asked (a sentence on stderr names the flag) */
    AGENT_OUTCOME_INTERRUPTED /* Ctrl+C */
} agent_outcome;

typedef struct agent_run {
    const char *text;   /* the one request; NULL: those of standard input, an object a line (agent/input.h) */
    uint32_t max_turns; /* of them at most; 0: all */
    bool json;
} agent_run;

/*
 * Opens the session, submits one after the other, closes. *ret: the worst outcome of all. An error: nothing was
 * run.
 */
int agent_headless_run(
    const agent_session_options *options, const agent_run *run, agent_outcome *ret, base_err *err);

#endif
