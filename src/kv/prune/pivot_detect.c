/*
 * Measuring the layers for the pivot, in a prefill that was not cut (StructKV, equations 4 to 6): one query
 * and one head of every lane at a time, since an entropy needs each distribution by itself. That costs the
 * attention of those few queries, once per model.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "kv/core/state.h"
#include "kv/core/work.h"
#include "kv/plan/apply.h"
#include "kv/policy/policy.h"
#include "kv/prune/pivot.h"
#include "kv/prune/prune.h"
#include "kv/session.h"

static const double TOP = .1; /* the share of rows whose mass is the sparsity */

/* Adds one distribution's entropy, top mass and variance to its layer. */
static void add_one(
    kv_session *s, kv_pivot *p, uint32_t layer, const float *mass, uint32_t n, uint32_t *order)
{
    const uint32_t n_top = (uint32_t)ceil(TOP * n);
    double entropy = 0, top = 0, squares = 0, sum = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (mass[i] > 0) entropy -= mass[i] * log(mass[i]);
        sum += mass[i];
        squares += (double)mass[i] * mass[i];
    }
    kv_rank(&s->ranker, mass, NULL, n, order);
    for (uint32_t i = 0; i < n_top; i++) top += mass[order[i]];
    p->entropy[layer] += entropy;
    p->sparsity[layer] += top;
    p->variance[layer] += squares / n - sum / n * (sum / n);
}

static int measure(
    kv_session *s, kv_pivot *p, const kv_signal *asker, const atomic_bool *cancel, base_err *err)
{
    const uint32_t n_layer = s->compute.shape.n_layer, per_layer = s->compute.shape.n_head_kv,
                   group = s->compute.n_head / per_layer, n_heads = n_layer * s->compute.n_head;
    uint32_t most = 0;
    for (uint32_t lane = 0; lane < s->n_lanes; lane++)
        if (s->lists.view[lane].n_rows > most) most = s->lists.view[lane].n_rows;
    kv_work memory = {NULL};
    float **mass = kv_work_masses(&memory, s->lists.view, s->n_lanes, 0, s->n_lanes);
    uint32_t *order = kv_work_take(&memory, most, sizeof *order);
    uint8_t *heads = kv_work_take(&memory, n_heads, 1);
    int rc = !memory.failed && !kv_ranker_reserve(&s->ranker, most) ? 0 : kv_fail_to_score(err, s->n);
    const model_rows_view view = kv__view(s);
    for (uint32_t q = 0; q < asker->n && !rc; q++) {
        kv_signal one;
        rc = kv_signal_pick(asker, &q, 1, &one, err);
        if (rc) break;
        for (uint32_t g = 0; g < group && !rc; g++) {
            for (uint32_t h = 0; h < n_heads; h++) heads[h] = h % group == g;
            const model_score score = {.queries = one.queries,
                .n_queries = 1,
                .rows = &view,
                .pool = MODEL_POOL_MEAN,
                .heads = heads,
                .end = s->n,
                .mass = mass,
                .cancel = cancel};
            rc = kv__score(s, &score, err);
            for (uint32_t lane = 0; lane < s->n_lanes && !rc; lane++)
                add_one(s, p, lane / per_layer, mass[lane], s->lists.view[lane].n_rows, order);
        }
        kv_signal_fini(&one);
    }
    for (uint32_t layer = 0; layer < n_layer && !rc; layer++) {
        const double n = (double)asker->n * s->compute.n_head;
        p->entropy[layer] /= n;
        p->sparsity[layer] /= n;
        p->variance[layer] /= n;
    }
    kv_work_free(&memory);
    return rc;
}

int kv__detect_pivot(kv_session *s, const atomic_bool *cancel, base_err *err)
{
    const uint32_t most = (uint32_t)s->parameters.asked;
    uint32_t places[KV_RECENT_QUERIES], n = s->request.n < most ? s->request.n : most;
    kv_signal asker;
    if (!n) return base_fail(err, BASE_E_STATE, "nobody asked anything yet");
    if (s->compute.shape.n_layer > KV_PIVOT_LAYERS || kv__deferred_tokens(s))
        return base_fail(err, BASE_E_STATE, "a pivot is found where every row of every layer was computed");
    for (uint32_t i = 0; i < n; i++) places[i] = s->request.n - n + i;
    int rc = kv_signal_pick(&s->request, places, n, &asker, err);
    if (rc) return rc;
    kv_pivot *p = base_xcalloc(1, sizeof *p);
    memcpy(p->hash, s->compute.hash, sizeof p->hash);
    p->n_layer = s->compute.shape.n_layer;
    p->n_rows = s->n;
    p->n_queries = n;
    rc = measure(s, p, &asker, cancel, err);
    kv_signal_fini(&asker);
    if (rc) {
        free(p);
        return rc;
    }
    free(s->pivot);
    s->pivot = p;
    return s->pivot_path ? kv_pivot_save(p, s->pivot_path, err) : 0;
}

int kv__detect_when_due(kv_session *s, const kv_segment *g, const atomic_bool *cancel, base_err *err)
{
    if (!s->automatic || s->pivot || s->parameters.prune <= 0 || s->parameters.pivot > 0 || !s->request.n ||
        s->n < s->parameters.bulk || (g->origin != KV_ORIGIN_USER && g->origin != KV_ORIGIN_TOOL) ||
        s->compute.shape.n_layer > KV_PIVOT_LAYERS || kv__deferred_tokens(s))
        return 0;
    return kv__detect_pivot(s, cancel, err);
}

const kv_pivot *kv_session_pivot(const kv_session *s)
{
    return s->pivot;
}
