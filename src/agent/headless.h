/*
 * One request without a screen: the answer streams to stdout, tool calls and the ledger go to stderr; with
 * json every event is a line on stdout. Runs on the calling thread; Ctrl+C interrupts the turn and keeps what
 * was answered.
 */
#ifndef KVIST_AGENT_HEADLESS_H
#define KVIST_AGENT_HEADLESS_H

#include "agent/start.h"

/* How a request ended, the worst thing that can be said of it last. */
typedef enum agent_outcome {
    AGENT_OUTCOME_DONE,
    AGENT_OUTCOME_FAILED,
    AGENT_OUTCOME_LIMIT,      /* the context or --max-steps ended the turn */
    AGENT_OUTCOME_DENIED,     /* nobody could be asked (a sentence on stderr names the flag) */
    AGENT_OUTCOME_INTERRUPTED /* Ctrl+C */
} agent_outcome;

/* Opens the session, submits the text, closes. A negative return: nothing was run. */
int agent_headless_run(
    const agent_session_options *options, const char *text, bool json, agent_outcome *ret, base_err *err);

#endif
