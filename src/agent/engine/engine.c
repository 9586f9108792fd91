/* What engines over a session share (engine.h). */
#include "agent/engine/engine.h"

static void on_prefill(void *user, uint32_t done, uint32_t total)
{
    const engine *e = user;
    if (e->observer.prefill && total > 1) e->observer.prefill(e->observer.user, done, total);
}

static void on_plan(void *user, const kv_plan *plan)
{
    const engine *e = user;
    if (e->observer.plan) e->observer.plan(e->observer.user, plan);
}

kv_observer engine_observer(engine *e)
{
    return (kv_observer){.user = e, .prefill = on_prefill, .plan = on_plan};
}

void engine_session_stats(const engine *e, kv_stats *ret)
{
    kv_session_get_stats(e->session, ret);
}

const int32_t *engine_session_ids(const engine *e, uint32_t *ret_n)
{
    return kv_session_ids(e->session, ret_n);
}
