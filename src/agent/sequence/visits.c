/*
 * What visited: evicted rows that the tokens of a message, a result or a call read for themselves
 * (kv/read/visit.h). No plan says it, so an event does: how many, and of which segments of the session most.
 */
#include <stdlib.h>

#include "agent/sequence/sequence.h"
#include "agent/session/tell.h"
#include "base/mem.h"

enum { TOLD = 3 };

typedef struct visited {
    const agent_segment *segment;
    uint64_t rows;
} visited;

/* The segments with most visiting rows, the first of equal ones; returns how many. */
static uint32_t find_most(const agent *a, const uint32_t *counts, uint32_t n, visited most[TOLD])
{
    uint32_t n_most = 0;
    for (size_t i = 0; i < a->transcript.n_segments; i++) {
        visited v = {.segment = &a->transcript.segments[i]};
        for (uint32_t t = v.segment->from; t < v.segment->to && t < n; t++) v.rows += counts[t];
        if (!v.rows) continue;
        uint32_t at = n_most < TOLD ? n_most++ : TOLD;
        for (; at > 0 && most[at - 1].rows < v.rows; at--)
            if (at < TOLD) most[at] = most[at - 1];
        if (at < TOLD) most[at] = v;
    }
    return n_most;
}

/* The caller frees. */
static char *name_of(const agent_segment *p)
{
    base_buf name = {0};
    if (p->path && p->line)
        base_buf_printf(&name, "%s %u-%u", p->path, p->line, p->line_end);
    else
        base_buf_puts(&name, p->path ? p->path : p->label ? p->label : kv_origin_word(p->origin));
    return base_buf_take(&name);
}

void agent__tell_visits(agent *a)
{
    if (!a->engine->session) return;
    const uint32_t n = agent__n_tokens(a);
    uint32_t *counts = base_xcalloc((size_t)n + 1, sizeof *counts);
    kv_visits visits;
    kv_stats stats;
    kv_session_take_visits(a->engine->session, &visits, counts);
    a->engine->ops->stats(a->engine, &stats);
    if (visits.tokens && visits.rows) {
        visited most[TOLD];
        const uint32_t n_most = find_most(a, counts, n, most);
        agent_visitor_row items[TOLD];
        char *names[TOLD];
        for (uint32_t i = 0; i < n_most; i++) {
            const agent_segment *p = most[i].segment;
            names[i] = name_of(p);
            items[i] =
                (agent_visitor_row){p->from, p->to, names[i], (double)most[i].rows / (double)visits.rows};
        }
        agent__emit(a, &(agent_event){.type = AGENT_EVENT_visits,
                           .visits = {.turn = a->turn,
                               .tokens = (int64_t)visits.tokens,
                               .rows = (double)visits.rows / (double)visits.tokens / stats.n_lanes,
                               .items = {items, n_most}}});
        for (uint32_t i = 0; i < n_most; i++) free(names[i]);
    }
    free(counts);
}
