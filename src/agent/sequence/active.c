/*
 * What of the sequence the model reads, and who changes that: a person by commands, the harness where text
 * went stale or an attempt failed. Row by row through plans of the engine's session; where an engine has
 * none, by spans that it leaves out; where it has neither, nothing changes and the words that the model is
 * told have to do (engine.h).
 */
#include "agent/sequence/sequence.h"

static int refuse(base_err *err)
{
    return base_fail(err, BASE_E_UNSUPPORTED,
        "this engine shows no rows, so they cannot be looked at or moved: the built-in engine can");
}

static bool has_spans(const agent *a)
{
    return a->engine->can & ENGINE_SPANS;
}

int agent__manual(agent *a, kv_manual what, uint32_t from, uint32_t to, base_err *err)
{
    if (a->engine->session) return kv_session_manual(a->engine->session, what, from, to, err);
    if (!has_spans(a) || what == KV_MANUAL_PIN || what == KV_MANUAL_UNPIN) return refuse(err);
    if (agent__is_priced(a) && what != KV_MANUAL_PROMOTE) return agent__put_aside(a, from, to, err);
    if (agent__is_priced(a)) { /* in its place everything behind it would be computed again */
        agent__want_back(a, from, to);
        return 0;
    }
    return a->engine->ops->set_active(a->engine, from, to, what == KV_MANUAL_PROMOTE, err);
}

int agent__bring_back(agent *a, uint32_t from, uint32_t to, base_err *err)
{
    return a->engine->session || has_spans(a) ? agent__manual(a, KV_MANUAL_PROMOTE, from, to, err) : 0;
}

int agent__put_stale(agent *a, uint32_t from, uint32_t to, base_err *err)
{
    if (a->engine->session) return kv_session_mark_stale(a->engine->session, from, to, err);
    if (agent__is_priced(a)) return 0; /* its segment says so, and the next cut takes it along */
    return has_spans(a) ? a->engine->ops->set_active(a->engine, from, to, false, err) : 0;
}

int agent__put_failed(agent *a, uint32_t from, uint32_t to, base_err *err)
{
    if (a->engine->session) return kv_session_mark_failed(a->engine->session, from, to, err);
    if (agent__is_priced(a)) {
        agent__leave_later(a, from, to, KV_REASON_FAILED);
        return 0;
    }
    return has_spans(a) ? a->engine->ops->set_active(a->engine, from, to, false, err) : 0;
}

int agent__put_thought(agent *a, uint32_t from, uint32_t to, base_err *err)
{
    if (a->engine->session) return kv_session_mark_thought(a->engine->session, from, to, err);
    if (agent__is_priced(a)) {
        agent__leave_later(a, from, to, KV_REASON_THOUGHT);
        return 0;
    }
    return has_spans(a) ? a->engine->ops->set_active(a->engine, from, to, false, err) : 0;
}

int agent__set_budget(agent *a, const kv_budget *wish, base_err *err)
{
    uint32_t tokens;
    kv_session *session;
    if (agent__is_priced(a)) {
        const int rc = kv_budget_tokens(wish, a->info.n_ctx, &tokens, err);
        if (!rc) a->engine->ops->set_budget(a->engine, tokens);
        return rc;
    }
    const kv_limit limit = kv_budget_rows(
        wish, a->info.model_n_ctx, a->info.row_bytes, model_memory_available(), a->info.measured);
    const int rc = agent__get_session(a, &session, err);
    return rc ? rc : kv_session_set_budget(session, limit, err);
}

void agent__active_lanes(const agent *a, uint32_t *ret)
{
    const engine *e = a->engine;
    if (e->session) {
        kv_session_active_lanes(e->session, ret);
        return;
    }
    const uint32_t n = agent__n_tokens(a);
    for (uint32_t i = 0; i < n; i++) ret[i] = !has_spans(a) || e->ops->is_active(e, i) ? a->info.n_lanes : 0;
}

int agent__get_session(const agent *a, kv_session **ret, base_err *err)
{
    *ret = a->engine->session;
    return *ret ? 0 : refuse(err);
}

void agent__set_turn(agent *a, uint32_t turn)
{
    if (a->engine->session) kv_session_set_turn(a->engine->session, turn);
}
