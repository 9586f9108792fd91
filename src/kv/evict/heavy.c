/*
 * What the tokens so far attended to, added up by row, for h2o (sum), scissorhands (how often a row got more
 * than the average) and tova (the last token's alone). The forward pass does not give each row's share of
 * attention, so each new token's queries are scored once more over exactly the rows that it could read. That
 * costs about as much as attention's own scores again, and only policies that ask for it pay. A rewind keeps
 * what the truncated tokens added.
 */
#include <stdlib.h>
#include <string.h>

#include "kv/core/state.h"
#include "kv/evict/evict.h"
#include "kv/policy/policy.h"

/* One token's query vectors out of a chunk's. */
static void pick_query(const kv_session *s, const float *queries, uint32_t n, uint32_t t, float *one)
{
    const size_t d = s->compute.shape.head_dim;
    for (size_t lh = 0; lh < (size_t)s->compute.shape.n_layer * s->compute.n_head; lh++)
        memcpy(one + lh * d, queries + (lh * n + t) * d, d * sizeof *one);
}

/* Adds one lane's masses by token. */
static void add_lane(kv_session *s, uint32_t lane, const model_lane_list *list, const float *mass)
{
    float *heavy = s->heavy + (size_t)lane * s->cap;
    const float average = 1.0f / (float)list->n_rows;
    if (s->policy->heavy == KV_HEAVY_LAST) memset(heavy, 0, s->cap * sizeof *heavy);
    for (uint32_t r = 0, o = 0; r < list->n_runs; r++)
        for (uint32_t i = 0; i < list->runs[r].n; i++, o++)
            heavy[list->runs[r].index + i] +=
                s->policy->heavy == KV_HEAVY_COUNT ? mass[o] > average : mass[o];
}

static int add_token(
    kv_session *s, uint32_t token, const float *query, float **mass, const atomic_bool *cancel, base_err *err)
{
    model_run *runs = NULL;
    model_lane_list *lanes = kv__lists_before(s, token, token, 1, &runs);
    if (!lanes) return base_fail(err, BASE_E_NOMEM, "no memory to add up attention");
    const model_rows_view view = kv__view_of(s, lanes);
    const model_score score = {.queries = query,
        .n_queries = 1,
        .tokens = &token,
        .rows = &view,
        .pool = MODEL_POOL_MEAN,
        .end = token + 1,
        .mass = mass,
        .cancel = cancel};
    int rc = kv__score(s, &score, err);
    for (uint32_t lane = 0; lane < s->n_lanes && !rc; lane++)
        if (mass[lane]) add_lane(s, lane, &lanes[lane], mass[lane]);
    free(lanes);
    free(runs);
    return rc;
}

int kv__heavy_add(
    kv_session *s, uint32_t from, uint32_t n, const float *queries, const atomic_bool *cancel, base_err *err)
{
    const size_t width = (size_t)from + n + 1;
    if (!s->heavy) s->heavy = calloc((size_t)s->n_lanes * s->cap + 1, sizeof *s->heavy);
    float **mass = calloc(s->n_lanes, sizeof *mass), *rows = malloc(width * s->n_lanes * sizeof *rows),
          *query = malloc((kv__memory_floats(s) + 1) * sizeof *query);
    int rc =
        s->heavy && mass && rows && query ? 0 : base_fail(err, BASE_E_NOMEM, "no memory to add up attention");
    for (uint32_t lane = 0; lane < s->n_lanes && !rc; lane++) {
        if (!kv__window(s, lane)) mass[lane] = rows + lane * width;
        /* The places of rows that come may hold what tokens truncated since were given. */
        memset(s->heavy + (size_t)lane * s->cap + from, 0, n * sizeof *s->heavy);
    }
    for (uint32_t t = s->policy->heavy == KV_HEAVY_LAST ? n - 1 : 0; t < n && !rc; t++) {
        pick_query(s, queries, n, t, query);
        rc = add_token(s, from + t, query, mass, cancel, err);
    }
    free(mass);
    free(rows);
    free(query);
    return rc;
}
