/*
 * One request without a screen: the answer streams to stdout, tool calls and the ledger go to stderr; with
 * json every event is a line on stdout. Runs on the calling thread; Ctrl+C interrupts the turn and keeps what
 * was answered.
 */
#ifndef KVIST_AGENT_HEADLESS_H
#define KVIST_AGENT_HEADLESS_H

#include "agent/start.h"

/*
 * Opens the session, submits the text, closes. *ret_status: 0, or 1 when the turn failed or something was
 * denied because nobody could be asked (a sentence on stderr names the flag). A negative return: nothing was
 * run.
 */
int agent_headless_run(
    const agent_session_options *options, const char *text, bool json, int *ret_status, base_err *err);

#endif
