/*
 * A made-up session of any length, event for event as the agent emits one: requests, excerpts, calls,
 * results, answers, plans for 56 lanes with their packed flips, scores, ledgers. Deterministic; for benches
 * that need a long session and no model.
 */
#ifndef KVIST_BENCH_SESSION_H
#define KVIST_BENCH_SESSION_H

#include "agent/log/event.h"

enum { BENCH_LANES = 56, BENCH_BUDGET = 4096 };

/*
 * Calls emit for each event of `turns` turns, in order; an event lives as long as the call. About 1,200
 * tokens a turn.
 */
void bench_session_make(uint32_t turns, const char *id, const char *root, agent_event_fn *emit, void *user);

#endif
