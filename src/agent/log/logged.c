/* Words of events to numbers of the cache, and back (contract: logged.h). */
#include "agent/log/logged.h"

#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"

kv_origin agent_logged_origin(const char *word)
{
    for (int o = 0; o < KV_N_ORIGINS; o++)
        if (word && !strcmp(kv_origin_word((kv_origin)o), word)) return (kv_origin)o;
    return KV_ORIGIN_CONTEXT;
}

static uint8_t reason_of(const char *word)
{
    for (int r = 0; r < KV_N_REASONS; r++)
        if (word && !strcmp(kv_reason_word((kv_reason)r), word)) return (uint8_t)r;
    return KV_REASON_WINDOW;
}

static kv_action action_of(const char *word)
{
    for (int k = 0; k < KV_N_ACTIONS; k++)
        if (word && !strcmp(kv_action_word((kv_action)k), word)) return (kv_action)k;
    return KV_KEEP;
}

void agent_logged_free(agent_logged_run *r)
{
    free(r->ids);
    free(r->spans);
    free(r->queries);
}

void agent_logged_add_id(agent_logged_run *r, int32_t id)
{
    base_grow(&r->ids, &r->cap, r->n + 1, sizeof *r->ids);
    r->ids[r->n++] = id;
}

/* What the engine was told with the tokens; older logs do not say. */
static void take_segment(agent_logged_run *r, const char *json)
{
    base_json_doc *doc = NULL;
    if (!json || base_json_parse(json, strlen(json), &doc, NULL)) return;
    const base_json *root = base_json_root(doc), *queries = base_json_get(root, "queries");
    for (const base_json *q = queries ? queries->first : NULL; q; q = q->next) {
        if (q->integer < 0 || q->integer > UINT32_MAX) continue;
        base_grow(&r->queries, &r->cap_queries, r->n_queries + 1, sizeof *r->queries);
        r->queries[r->n_queries++] = (uint32_t)q->integer;
    }
    r->bulk = (uint32_t)base_json_int(root, "bulk", 0);
    r->of = (uint32_t)base_json_int(root, "of", 0);
    r->whole = base_json_bool(root, "whole", false);
    base_json_free(doc);
}

void agent_logged_take_append(agent_logged_run *r, const agent_event *e)
{
    r->lanes = e->append.lanes > 0 ? (uint32_t)e->append.lanes : 0;
    for (size_t i = 0; i < e->append.ids.n; i++) agent_logged_add_id(r, (int32_t)e->append.ids.rows[i].id);
    take_segment(r, e->append.segment);
}

void agent_logged_take_span(agent_logged_run *r, const agent_event *e)
{
    if (e->span.from < r->from || e->span.to > r->from + r->n || e->span.from >= e->span.to) return;
    base_grow(&r->spans, &r->cap_spans, r->n_spans + 1, sizeof *r->spans);
    r->spans[r->n_spans++] = (kv_span){(uint32_t)e->span.from - r->from, (uint32_t)e->span.to - r->from,
        reason_of(e->span.reason), (float)e->span.weight, (uint16_t)e->span.marks, (uint16_t)e->span.flow,
        (uint16_t)e->span.dependence};
}

void agent_logged_read_runs(kv_plan *p, const agent_run_list *runs)
{
    for (size_t i = 0; i < runs->n; i++) {
        const agent_run_row *r = &runs->rows[i];
        if (r->from < 0 || r->from >= r->to || r->to > p->n_tokens || r->lanes < 0) continue;
        kv_plan_add_run(p, (uint32_t)r->from, (uint32_t)r->to, action_of(r->action),
            (kv_reason)reason_of(r->reason), (uint32_t)r->lanes);
    }
}

void agent_logged_tell_plan(
    const kv_plan *p, uint32_t turn, void (*emit)(void *user, agent_event *e), void *user)
{
    base_buf blob = {0};
    agent_run_row *runs = base_xcalloc(p->n_runs + 1, sizeof *runs);
    for (uint32_t i = 0; i < p->n_runs; i++)
        runs[i] =
            (agent_run_row){p->runs[i].from, p->runs[i].to, kv_action_word((kv_action)p->runs[i].action),
                kv_reason_word((kv_reason)p->runs[i].reason), p->runs[i].lanes};
    kv_plan_pack(p, &blob);
    emit(user, &(agent_event){.type = AGENT_EVENT_plan,
                   .blob = blob.data,
                   .blob_n = blob.len,
                   .plan = {.turn = turn,
                       .cause = kv_cause_word(p->cause),
                       .runs = {runs, p->n_runs},
                       .evicted = p->evicted,
                       .promoted = p->promoted,
                       .n = p->n_tokens,
                       .score_ms = p->score_ms,
                       .plan_ms = p->plan_ms,
                       .deferred = kv_plan_deferred(p),
                       .again = p->replay_from ? p->n_tokens - p->replay_from : 0,
                       .folded = kv_plan_folded_to(p)}});
    free(runs);
    base_buf_free(&blob);
}
