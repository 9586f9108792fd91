/*
 * Between events and the cache: what the log says of a stretch of tokens as what kv/session.h takes, and a plan as
 * the event that the log keeps of it. For whoever executes a log again (resume.c, src/whatif).
 */
#ifndef KVIST_AGENT_LOG_LOGGED_H
#define KVIST_AGENT_LOG_LOGGED_H

#include "agent/log/event.h"
#include "kv/plan/plan.h"

/*
 * Logged tokens of one origin: a segment, or an answer's tokens. Offsets count from its beginning.
 */
typedef struct agent_logged_run {
    kv_origin origin;
    uint32_t turn, from, n, lanes; /* lanes: in which it was computed, 0: all */
    int32_t *ids;
    size_t cap;
    kv_span *spans;
    uint32_t *queries;
    size_t n_spans, cap_spans, n_queries, cap_queries;
    uint32_t bulk, of; /* as kv_segment, kv_logged */
    bool whole;
} agent_logged_run;

void agent_logged_free(agent_logged_run *r);
void agent_logged_add_id(agent_logged_run *r, int32_t id);
/* What an `append` event says, into an empty run. */
void agent_logged_take_append(agent_logged_run *r, const agent_event *e);
/* A `span` event behind its `append`; one of other tokens is left. */
void agent_logged_take_span(agent_logged_run *r, const agent_event *e);
kv_origin agent_logged_origin(const char *word); /* CONTEXT for a word that is none, or NULL */

/* What was done to which tokens and why, of a `plan` event: its blob has flips only. */
void agent_logged_read_runs(kv_plan *p, const agent_run_list *runs);

/* Hands `emit` the event of a plan; what it points to lives until that returns. */
void agent_logged_tell_plan(
    const kv_plan *p, uint32_t turn, void (*emit)(void *user, agent_event *e), void *user);

#endif
