/* A turn's sums: what was computed, evicted and promoted, and why. */
#ifndef KVIST_AGENT_LEDGER_H
#define KVIST_AGENT_LEDGER_H

#include "agent/session/session_state.h"

void agent__count_plan(agent *a, const kv_plan *p); /* into the turn's sums; before the plan is applied */
void agent__ledger(agent *a);
/* what the engine has counted so far is no turn's: a log was executed again */
void agent__forget_counts(agent *a);
void agent__restore_sums(agent *a, const agent_event *ledger); /* as they were when this was logged */
void agent__rewind_sums(agent *a);                             /* those of a->turn, again the last one */

#endif
