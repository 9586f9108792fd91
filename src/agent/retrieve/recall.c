/*
 * The recall tool: searches this session's log, and brings back the rows of what it finds.
 */
#include "agent/log/log.h"
#include "agent/sequence/sequence.h"
#include "agent/session/tell.h"

/*
 * A text is logged with the request or result that brought it, and shortly afterwards with the `append` event
 * that made it a segment. Between the two come plans and notices about what it made stale. Eight was chosen by
 * hand, not measured.
 */
enum { MOST_BETWEEN = 8, MOST_MATCHES = 8 };

typedef struct recalling {
    agent *a;
    base_buf *out;
    uint32_t n;
} recalling;

static void on_match(void *user, const agent_log_match *m)
{
    recalling *r = user;
    base_buf_printf(r->out, "turn %u, %s: %s\n", m->turn, m->kind, m->snippet);
    r->n++;
    /* The segment that this came from may have been evicted: it comes back with the answer. */
    for (size_t i = 0; i < r->a->transcript.n_segments; i++) {
        const agent_segment *p = &r->a->transcript.segments[i];
        if (p->turn != m->turn || p->stale || p->seq < m->seq || p->seq > m->seq + MOST_BETWEEN) continue;
        base_err err = {0};
        if (agent__bring_back(r->a, p->from, p->to, &err))
            agent__notice(r->a, "could not be brought back: %s", err.msg);
        break;
    }
}

int agent_recall_run(void *recall, const char *query, base_buf *out, base_err *err)
{
    agent *a = ((agent_recall *)recall)->agent;
    if (!a) return base_fail(err, BASE_E_STATE, "there is no session to search");
    recalling r = {.a = a, .out = out};
    if (!a->log)
        return base_fail(err, BASE_E_UNSUPPORTED, "this session is not logged, so it cannot be searched");
    agent__commit(a);
    int rc = agent_log_search(a->log, a->telling.id, query, MOST_MATCHES, on_match, &r, err);
    if (!rc && !r.n) base_buf_printf(out, "Nothing in this session has the words \"%s\".\n", query);
    return rc;
}
