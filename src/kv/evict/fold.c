/*
 * Folding (core/fold.h): old rows move up to where their evicted neighbours were. Each block of KV_FOLD_BLOCK tokens
 * becomes as wide as the rows of it that are active, mean over the lanes that read everything, rounded as a sum from the
 * newest block on; it ends where the next one begins, so its rows keep their order and their distances among each
 * other, and none lies ahead of a token that comes. The newest KV_FOLD_NEAR tokens and what begins their block stay.
 *
 * This is due from half of the model's context on, whenever an eighth of it is holes again: read over tens of thousands
 * of places that are nearly empty, a fact behind them is misread although its row is there (docs/results.md, "Does a
 * session go on behind the context?").
 *
 * This happens between batches and between tokens, so whatever is computed together sees one table.
 */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "kv/core/state.h"
#include "kv/evict/evict.h"
#include "kv/plan/apply.h"
#include "kv/plan/plan.h"

enum {
    GROUPS = KV_FOLD_BLOCK / MODEL_ROWS_GROUP,
    HOLES = 8, /* that part of the context may be holes, beside those of the newest tokens */
};

/* Active rows of each block below `to`, all lanes that read everything together. */
static void count_active(const kv_session *s, uint32_t to, uint64_t *active)
{
    for (uint32_t lane = 0; lane < s->n_lanes; lane++) {
        const model_lane_list *list = &s->lists.view[lane];
        if (kv__window(s, lane)) continue;
        /* A run never crosses a block. */
        for (uint32_t r = 0; r < list->n_runs && list->runs[r].index < to; r++)
            active[list->runs[r].index / KV_FOLD_BLOCK] += list->runs[r].n;
    }
}

/* The change of every group's gap, so that blocks below `near` are as wide as their active rows. */
static void find_changes(const kv_session *s, uint32_t near, const uint64_t *active, int32_t *changes)
{
    const uint32_t n_lanes = s->n_whole;
    uint64_t sum = 0;
    uint32_t gap = 0, before = 0;
    /* Tokens were truncated since it was folded. */
    for (uint32_t g = near * GROUPS; g < s->fold.n; g++) changes[g] = -(int32_t)s->fold.gaps[g];
    for (uint32_t b = near; b-- > 0;) {
        for (uint32_t g = b * GROUPS; g < (b + 1) * GROUPS; g++)
            changes[g] = (int32_t)((int64_t)gap - (g < s->fold.n ? s->fold.gaps[g] : 0));
        sum += active[b];
        const uint32_t width = (uint32_t)((sum + n_lanes / 2) / n_lanes);
        gap += KV_FOLD_BLOCK - (width - before);
        before = width;
    }
}

/* Rows that a lane reads, mean over the lanes that read everything. */
static uint32_t mean_active(const kv_session *s)
{
    uint64_t sum = 0;
    for (uint32_t lane = 0; lane < s->n_lanes; lane++)
        if (!kv__window(s, lane)) sum += s->lists.view[lane].n_rows;
    return (uint32_t)(sum / s->n_whole);
}

static bool is_due(const kv_session *s)
{
    if (!kv__is_endless(s)) return false;
    const uint32_t extent = kv__extent(s), n_ctx = s->compute.n_ctx;
    const bool has_begun = s->fold.n || extent > n_ctx / 2, ends = extent + 3 * KV_BATCH > n_ctx;
    return ends || (has_begun && extent > mean_active(s) + KV_FOLD_NEAR + n_ctx / HOLES);
}

int kv__fold(kv_session *s, const atomic_bool *cancel, base_err *err)
{
    if (!is_due(s) || s->n < KV_FOLD_NEAR) return 0;
    const uint32_t near = (s->n - KV_FOLD_NEAR) / KV_FOLD_BLOCK,
                   n = near * GROUPS > s->fold.n ? near * GROUPS : s->fold.n;
    uint64_t *active = calloc((size_t)near + 1, sizeof *active);
    kv_plan *p = kv_plan_new(s->epoch, KV_CAUSE_FOLD, s->n, s->n_lanes);
    int rc = active && p ? 0 : base_fail(err, BASE_E_NOMEM, "no memory to fold %u rows", s->n);
    if (!rc) {
        count_active(s, near * KV_FOLD_BLOCK, active);
        p->fold = base_xcalloc((size_t)n + 1, sizeof *p->fold);
        p->n_fold = n;
        find_changes(s, near, active, p->fold);
        /* Hardly anything to gain: the next token would ask again. */
        const bool helps = n && p->fold[0] >= KV_FOLD_BLOCK;
        if (helps) rc = kv__apply(s, p, true, cancel, err);
    }
    free(active);
    kv_plan_free(p);
    return rc;
}
