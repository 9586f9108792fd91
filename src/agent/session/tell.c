/*
 * The stream of events. Whatever happens is told here: numbered, handed to the host and buffered in the log,
 * which is committed where docs/architecture.md says ("A request, step by step"). All of src/agent tells by it.
 */
#include <stdlib.h>

#include "agent/log/log.h"
#include "agent/session/tell.h"
#include "base/mem.h"

void agent__emit(agent *a, agent_event *e)
{
    e->seq = ++a->telling.seq;
    if (a->log) {
        base_err err = {0};
        if (agent_log_add(a->log, a->telling.id, e, &err) && !a->telling.log_failed)
            a->telling.log_failed = true;
    }
    if (a->host.event) a->host.event(a->host.user, e);
}

void agent__commit(agent *a)
{
    base_err err = {0};
    if (!a->log || !agent_log_commit(a->log, &err)) {
        a->telling.log_failed = false;
        return;
    }
    if (a->telling.log_failed) return; /* told already; the events wait for the next commit */
    a->telling.log_failed = true;
    agent__notice(a, "%s; what happens is kept in memory until it can be written", err.msg);
}

void agent__notice(agent *a, const char *format, ...)
{
    base_buf text = {0};
    va_list args;
    va_start(args, format);
    base_buf_vprintf(&text, format, args);
    va_end(args);
    agent__emit(
        a, &(agent_event){.type = AGENT_EVENT_notice, .notice = {.turn = a->turn, .text = text.data}});
    base_buf_free(&text);
}

void agent__error(agent *a, const base_err *err)
{
    agent__emit(a, &(agent_event){.type = AGENT_EVENT_error, .error = {.turn = a->turn, .text = err->msg}});
}

void agent__emit_behind(agent *a, agent_event *e)
{
    if (!a->telling.holding) {
        agent__emit(a, e);
        return;
    }
    base_grow(&a->telling.held, &a->telling.cap_held, a->telling.n_held + 1, sizeof *a->telling.held);
    a->telling.held[a->telling.n_held++] = agent_event_copy(e);
}

void agent__release_held(agent *a)
{
    a->telling.holding = false;
    for (size_t i = 0; i < a->telling.n_held; i++) {
        agent__emit(a, a->telling.held[i]);
        agent_event_free(a->telling.held[i]);
    }
    a->telling.n_held = 0;
}

void agent__progress(agent *a, uint32_t done, uint32_t total)
{
    uint32_t before = a->ledger.sums.waited;
    if (before + total < a->ledger.sums.expected) total = a->ledger.sums.expected - before;
    agent__emit(a, &(agent_event){.type = AGENT_EVENT_prefill,
                       .prefill = {.turn = a->turn,
                           .done = before + done,
                           .total = before + total,
                           .server = done ? NULL : a->info.server}});
}

void agent__expect(agent *a, uint32_t n_tokens)
{
    if (a->info.server) return; /* its requests tell, and what is appended waits for the next of them */
    bool is_incomplete = a->ledger.sums.waited < a->ledger.sums.expected;
    uint32_t last = a->ledger.sums.expected;
    a->ledger.sums.expected = n_tokens;
    a->ledger.sums.waited = 0;
    if (n_tokens)
        agent__progress(a, 0, n_tokens);
    else if (is_incomplete)
        agent__progress(a, last, last); /* the wait is over all the same */
}
