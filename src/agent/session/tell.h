/*
 * The stream of events: whatever happens in a session is told here. Numbered, handed to the host and kept for the
 * log. Every other room of the agent stands above this one.
 */
#ifndef KVIST_AGENT_TELL_H
#define KVIST_AGENT_TELL_H

#include "agent/session/session_state.h"

void agent__emit(agent *a, agent_event *e); /* numbers it, hands it to the host, buffers it in the log */
void agent__commit(agent *a);               /* the log's commit; a failure is told once */
void agent__notice(agent *a, const char *format, ...) __attribute__((format(printf, 2, 3)));
void agent__error(agent *a, const base_err *err);
/*
 * Now, or while `holding` is set when agent__release_held is called: behind the event of the tokens that it
 * speaks of.
 */
void agent__emit_behind(agent *a, agent_event *e);
void agent__release_held(agent *a); /* emits what was held back, in its order */
/*
 * A wait for n tokens begins: progress counts over all of them. 0: it is over, what follows counts piece by
 * piece.
 */
void agent__expect(agent *a, uint32_t n_tokens);
void agent__progress(agent *a, uint32_t done, uint32_t total); /* of what the engine computes now */

#endif
