/* Calls: previewed, permitted and run (running.h), and what their results mean for the session. */
#ifndef KVIST_AGENT_ACT_H
#define KVIST_AGENT_ACT_H

#include "agent/call/call.h"
#include "agent/session/session_state.h"

/* --- act.c --- */
int agent__operate(agent *a, const char *json, base_err *err); /* the refactor tool, for a command */
/*
 * The calls of the model's answer (whose tokens are [from, to)), one after the other, each with its result; behind one that
 * a person said no to none is made. A test that judges runs behind the last that writes. *ret_stop: the turn ends here.
 */
int agent__act(
    agent *a, const agent_call *calls, uint32_t n, uint32_t from, uint32_t to, bool *ret_stop, base_err *err);
int agent__run_test_first(agent *a, base_err *err);    /* and appends what it printed */
int agent__known(const void *agent, const char *name); /* agent_call_known_fn */
/* "!command"; is_typed: by the person, whose home it then sees */
int agent__shell_line(agent *a, const char *command, bool is_typed, base_err *err);

/* --- guard.c --- */
agent_made_call *agent__find_made(agent *a, uint64_t key); /* NULL: not made since the tree last changed */

#endif
