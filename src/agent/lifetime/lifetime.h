/* A session begins, goes on from its log, goes back to before a turn, and ends. */
#ifndef KVIST_AGENT_LIFETIME_H
#define KVIST_AGENT_LIFETIME_H

#include "agent/session/session_state.h"

/* --- begin.c --- */
/* Fixed prompt and AGENTS.md into an empty engine, `session` event. */
int agent__begin_session(agent *a, base_err *err);
int agent__offer_tools(agent *a, base_err *err); /* makes the grammar of the calls that can be made now */
void agent__save(agent *a);                      /* a snapshot of the engine's session; a failure is told */
void agent__end_session(agent *a);               /* its last event */
void agent__clear_session(agent *a);             /* what a session remembers of its sequence */
int agent__restart(agent *a, const char *parent, base_err *err); /* a new session in place of this one */

/* --- resume.c --- */
/* *ret_empty: nothing of a sequence is logged. */
int agent__catch_up(agent *a, const agent_options *options, bool *ret_empty, base_err *err);

/* --- rewind.c --- */
/* to before `turn` (1 to a->turn); asks about files */
int agent__rewind(agent *a, uint32_t turn, base_err *err);

#endif
