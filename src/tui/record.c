/*
 * Events in memory, and walking a ui along them.
 */
#include "tui/record.h"

#include <stdlib.h>

#include "base/mem.h"

/* Small bytes of a log may be packed large events: a session that was not changed is far below. */
static const size_t most_bytes = (size_t)2 << 30;

int tui_record_add(tui_record *r, const char *json, size_t n, const void *blob, size_t blob_n, base_err *err)
{
    agent_event e;
    agent_event_doc *doc;
    int rc = agent_event_read(json, n, &e, &doc, err);
    if (rc) return rc;
    r->bytes += agent_event_doc_bytes(doc) + sizeof e + blob_n;
    if (r->bytes > most_bytes) {
        agent_event_doc_free(doc);
        return base_fail(err, BASE_E_LIMIT,
            "the session's events take more than %zu MiB of memory: "
            "it cannot be shown step by step; kvist log show prints it",
            most_bytes >> 20);
    }
    base_grow(&r->events, &r->cap, r->n + 1, sizeof *r->events);
    base_grow(&r->docs, &r->cap_docs, r->n + 1, sizeof *r->docs);
    e.blob = blob && blob_n ? base_xstrndup(blob, blob_n) : NULL;
    e.blob_n = e.blob ? blob_n : 0;
    r->events[r->n] = e;
    r->docs[r->n++] = doc;
    if (e.type == AGENT_EVENT_user && e.user.turn > 0 && e.user.turn <= UINT32_MAX)
        r->turns = (uint32_t)e.user.turn;
    return 0;
}

void tui_record_free(tui_record *r)
{
    for (size_t i = 0; i < r->n; i++) {
        free((void *)(uintptr_t)r->events[i].blob);
        agent_event_doc_free(r->docs[i]);
    }
    free(r->docs);
    free(r->events);
    *r = (tui_record){0};
}

size_t tui_record_end(const tui_record *r, uint32_t turn)
{
    if (turn == 0) return r->n;
    for (size_t i = 0; i < r->n; i++)
        if (r->events[i].type == AGENT_EVENT_user && r->events[i].user.turn > (int64_t)turn) return i;
    return r->n;
}

uint32_t tui_record_next_difference(const tui_record *r, size_t shown, bool *ret_is_what_if)
{
    *ret_is_what_if = false;
    for (size_t k = 0; k < r->n; k++) {
        const agent_event *e = &r->events[(shown + k) % r->n];
        if (e->type != AGENT_EVENT_what_if_turn) continue;
        *ret_is_what_if = true;
        if (e->what_if_turn.differ > 0) return (uint32_t)e->what_if_turn.turn;
    }
    return 0;
}

void tui_record_show(const tui_record *r, tui_ui *u, size_t *shown, size_t n)
{
    if (n < *shown) {
        tui_rows_free(&u->live);
        tui_rows_free(&u->past);
        tui_state_free(&u->state);
        tui_state_init(&u->state);
        u->chat_lines = u->chat_scroll = 0;
        *shown = 0;
    }
    while (*shown < n) tui_ui_event(u, r->events + (*shown)++);
}
