/*
 * Two logs into one sequence of events (contract: what_if_log.h). A plan of the changed side stands behind the event
 * of the session that it was made behind, and behind that one's spans, as a session tells its own.
 */
#include "tui/what_if_log.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"

typedef struct merging {
    char *session;       /* that was computed again */
    tui_record side;     /* plans and comparisons, in order */
    uint64_t *at;        /* [side.n] behind which event of the session; a turn's: behind any */
    size_t cap_at, next; /* next: of side's, not taken yet */
    uint64_t newest_at;
    int64_t last_turn; /* that was computed again; the session may have gone on since */
    int64_t free_from; /* turn from which the changed side has events of its own; 0: none */
    bool is_free;      /* it is reached */
    bool is_apart;     /* the changed side reads other tokens: its rows are none of the session's */
    tui_record *recorded, *changed;
    size_t **behind, cap_behind;
    bool is_over;
    int rc;
    base_err err;
} merging;

static void put(merging *m, tui_record *to, const agent_event *e)
{
    base_buf json = {0};
    agent_event_write(e, &json);
    if (!m->rc) m->rc = tui_record_add(to, json.data, json.len, e->blob, e->blob_n, &m->err);
    base_buf_free(&json);
}

static bool read_side(
    void *user, uint64_t seq, uint32_t turn, const char *json, size_t n, const void *blob, size_t blob_n)
{
    merging *m = user;
    m->rc = tui_record_add(&m->side, json, n, blob, blob_n, &m->err);
    if (m->rc) return false;
    const agent_event *e = &m->side.events[m->side.n - 1];
    if (e->type == AGENT_EVENT_what_if) {
        put(m, m->changed, e);
        m->session = base_xstrdup(e->what_if.parent);
        m->free_from = e->what_if.from;
        m->is_apart = e->what_if.apart;
    }
    if (e->type == AGENT_EVENT_what_if_turn && e->what_if_turn.turn > m->last_turn)
        m->last_turn = e->what_if_turn.turn;
    if (e->type == AGENT_EVENT_what_if_answer && e->what_if_answer.turn > m->last_turn)
        m->last_turn = e->what_if_answer.turn;
    if (e->type == AGENT_EVENT_what_if_at) m->newest_at = (uint64_t)e->what_if_at.seq;
    base_grow(&m->at, &m->cap_at, m->side.n, sizeof *m->at);
    m->at[m->side.n - 1] = m->newest_at;
    return !m->rc;
}

/* Plans that the changed side made before the event `seq` of the session came. */
static void put_plans(merging *m, uint64_t seq)
{
    for (; m->next < m->side.n && m->side.events[m->next].type != AGENT_EVENT_ledger; m->next++) {
        const agent_event *e = &m->side.events[m->next];
        if (e->type == AGENT_EVENT_plan && m->at[m->next] >= seq) return;
        if (e->type == AGENT_EVENT_plan) put(m, m->changed, e);
    }
}

/* A turn's ledger and what comes with it; false: it was not computed. */
static bool put_turn(merging *m)
{
    put_plans(m, UINT64_MAX);
    if (m->next == m->side.n) return false;
    put(m, m->changed, &m->side.events[m->next++]);
    while (m->next < m->side.n && m->side.events[m->next].type == AGENT_EVENT_what_if_turn)
        put(m, m->changed, &m->side.events[m->next++]);
    return true;
}

/* A turn that the changed side answered by itself, as it did; false: it did not come so far. */
static bool put_free_turn(merging *m)
{
    bool is_over = false;
    const size_t before = m->next;
    for (; m->next < m->side.n && !is_over; m->next++) {
        const agent_event *e = &m->side.events[m->next];
        is_over = e->type == AGENT_EVENT_turn_end;
        if (e->type != AGENT_EVENT_what_if_end) put(m, m->changed, e);
    }
    return m->next > before;
}

/* The session as it was, with each turn's comparison behind it; false: that turn has none. */
static bool put_apart(merging *m, const agent_event *e)
{
    put(m, m->changed, e);
    if (e->type != AGENT_EVENT_ledger) return true;
    while (m->next < m->side.n && m->side.events[m->next].type != AGENT_EVENT_what_if_turn) m->next++;
    if (m->next == m->side.n) return false;
    put(m, m->changed, &m->side.events[m->next++]);
    return true;
}

static bool is_of_cache(agent_event_type type)
{
    return type == AGENT_EVENT_plan || type == AGENT_EVENT_visits || type == AGENT_EVENT_scores ||
           type == AGENT_EVENT_sections || type == AGENT_EVENT_snapshot;
}

/* Behind how many events of the changed side the session's newest one stands; false: that was the last one. */
static bool put_place(merging *m)
{
    base_grow(m->behind, &m->cap_behind, m->recorded->n, sizeof **m->behind);
    (*m->behind)[m->recorded->n - 1] = m->changed->n;
    return !m->rc && !m->is_over;
}

static bool read_session(
    void *user, uint64_t seq, uint32_t turn, const char *json, size_t n, const void *blob, size_t blob_n)
{
    merging *m = user;
    m->rc = tui_record_add(m->recorded, json, n, blob, blob_n, &m->err);
    if (m->rc) return false;
    const agent_event *e = &m->recorded->events[m->recorded->n - 1];
    m->is_over = e->type == AGENT_EVENT_user && e->user.turn > m->last_turn;
    if (m->is_over) return !m->is_apart && put_place(m);
    if (m->is_apart) {
        m->is_over = !put_apart(m, e);
        return !m->rc && !m->is_over;
    }
    if (e->type == AGENT_EVENT_user && m->free_from && e->user.turn >= m->free_from) m->is_free = true;
    if (!m->is_free && e->type != AGENT_EVENT_span) put_plans(m, seq);
    if (e->type == AGENT_EVENT_turn_end && m->is_free)
        m->is_over = !put_free_turn(m);
    else if (m->is_free)
        ;
    else if (e->type == AGENT_EVENT_ledger)
        m->is_over = !put_turn(m);
    else if (!is_of_cache(e->type))
        put(m, m->changed, e);
    return put_place(m);
}

/* The sentence that sums up, or that there is none yet. */
static void put_end(merging *m)
{
    const agent_event *last = m->side.n ? &m->side.events[m->side.n - 1] : NULL;
    char text[128];
    if (last && last->type == AGENT_EVENT_what_if_end) {
        put(m, m->changed, last);
        return;
    }
    snprintf(text, sizeof text,
        "what if: it was interrupted behind turn %lld; the same command goes on from there",
        (long long)m->last_turn);
    put(m, m->changed, &(agent_event){.type = AGENT_EVENT_notice, .notice = {.text = text}});
}

int tui_what_if_load(agent_log *l, const char *what_if, tui_record *recorded, tui_record *changed,
    size_t **behind, base_err *err)
{
    merging m = {.recorded = recorded, .changed = changed, .behind = behind};
    int rc = agent_log_events(l, what_if, read_side, &m, err);
    if (!rc && !m.rc && m.session) rc = agent_log_events(l, m.session, read_session, &m, err);
    if (!rc && !m.rc) put_end(&m);
    if (!rc && m.rc) {
        rc = m.rc;
        if (err) *err = m.err;
    }
    if (!rc && !recorded->n)
        rc = base_fail(err, BASE_E_NOT_FOUND,
            "the session %s, which %s computed again, is not here "
            "any more: kvist log show %s prints what was found",
            m.session ? m.session : "", what_if, what_if);
    if (m.is_apart) { /* one strip */
        tui_record_free(recorded);
        *recorded = (tui_record){.n = 0};
    }
    tui_record_free(&m.side);
    free(m.at);
    free(m.session);
    return rc;
}
