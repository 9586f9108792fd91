/* See cmd/log_history.h. */
#include "cmd/log_history.h"

#include <stdio.h>
#include <string.h>

#include "agent/log/logged.h"

enum { TOKENS_MOST = 1 << 24 };

static void on_append(learn_history *h, const agent_event *e)
{
    const char *text = e->append.text ? e->append.text : "";
    const size_t n_text = strlen(text);
    const kv_origin origin = agent_logged_origin(e->append.origin);
    size_t at = 0;
    if (e->append.from != (int64_t)h->n || e->append.n < 1 || e->append.n > TOKENS_MOST) return;
    for (int64_t i = 0; i < e->append.n; i++) {
        const int64_t length = (size_t)i < e->append.lens.n ? e->append.lens.rows[i].n : 0;
        size_t n = length > 0 ? (size_t)length : 0;
        if (n > n_text - at) n = n_text - at;
        learn_history_add(h, origin, (uint32_t)e->append.turn, i == 0,
            (size_t)i < e->append.ids.n ? (int32_t)e->append.ids.rows[i].id : -1, text + at, n);
        at += n;
    }
    learn_history_end_part(h);
}

static bool read_event(void *user, uint32_t turn, const agent_event *e)
{
    log_history *l = user;
    learn_history *h = &l->history;
    if (e->type == AGENT_EVENT_session && e->session.model_hash && !l->model_hash[0])
        snprintf(l->model_hash, sizeof l->model_hash, "%s", e->session.model_hash);
    if (e->type == AGENT_EVENT_append) on_append(h, e);
    if (e->type == AGENT_EVENT_token && e->token.index == (int64_t)h->n)
        learn_history_add(h, agent_logged_origin(e->token.origin), turn, false, (int32_t)e->token.id,
            e->token.text ? e->token.text : "", e->token.text ? strlen(e->token.text) : 0);
    if (e->type == AGENT_EVENT_rewind && e->rewind.n >= 0) learn_history_cut(h, (size_t)e->rewind.n);
    if (e->type == AGENT_EVENT_tool_call)
        learn_history_add_call(h, e->tool_call.arguments ? e->tool_call.arguments : "{}");
    return true;
}

int log_history_read(agent_log *log, const char *id, log_history *ret, base_err *err)
{
    *ret = (log_history){.model_hash = ""};
    return agent_log_read(log, id, AGENT_LOG_PASS_BY, read_event, ret, err);
}

void log_history_free(log_history *h)
{
    learn_history_free(&h->history);
}
