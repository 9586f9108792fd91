/*
 * kvist, the default: after protection (evict/select.c; soft, by program structure, is off) a lane's budget goes by
 * the sum of two ranks. One is the rank of a row's mass under the current request (snapkv), the other under
 * the session's memory of all requests (IntentKV, section 3.2). Ranks, because the masses of two signals
 * have no common scale.
 */
#include "kv/core/work.h"
#include "kv/policy/policy.h"

/* score -= weight * rank of mass, 0 the best. */
static void subtract_ranks(
    kv_pass *pass, const float *mass, uint32_t n, float weight, uint32_t *order, float *score)
{
    kv_rank(pass->ranker, mass, NULL, n, order);
    for (uint32_t rank = 0; rank < n; rank++) score[order[rank]] -= weight * (float)rank;
}

static int score(kv_pass *pass, base_err *err)
{
    const uint32_t n_lanes = pass->lists->n_lanes;
    int rc = kv_pass_asked(pass, err);
    if (rc || !pass->memory || pass->parameters->memory <= 0) return rc;
    uint32_t n_most = 0;
    for (uint32_t lane = 0; lane < n_lanes; lane++)
        if (pass->lists->view[lane].n_rows > n_most) n_most = pass->lists->view[lane].n_rows;
    kv_work memory = {NULL};
    float **mass = kv_work_masses(&memory, pass->lists->view, n_lanes, 0, n_lanes),
          *sum = kv_work_take(&memory, n_most, sizeof *sum);
    uint32_t *order = kv_work_take(&memory, n_most, sizeof *order);
    if (memory.failed || kv_ranker_reserve(pass->ranker, n_most)) rc = kv_fail_to_score(err, n_most);
    if (!rc) rc = kv_pass_mass(pass, pass->memory, NULL, 1, mass, err);
    for (uint32_t lane = 0; lane < n_lanes && !rc; lane++) {
        const model_lane_list *list = &pass->lists->view[lane];
        for (uint32_t i = 0; i < list->n_rows; i++) sum[i] = 0;
        subtract_ranks(pass, pass->score[lane], list->n_rows, 1, order, sum);
        subtract_ranks(pass, mass[lane], list->n_rows, (float)pass->parameters->memory, order, sum);
        uint32_t ordinal = 0;
        for (uint32_t run = 0; run < list->n_runs; run++)
            for (uint32_t i = 0; i < list->runs[run].n; i++, ordinal++) {
                float *total = &pass->recall[list->runs[run].index + i];
                *total = (*total == *total ? *total : 0) + mass[lane][ordinal];
                pass->score[lane][ordinal] = sum[ordinal];
            }
    }
    kv_work_free(&memory);
    return rc;
}

const kv_policy kv_policy_kvist = {
    .info = {"kvist",
        "hard, then request and session memory by rank, with soft=.75 "
        "in code behind them program structure; repairs at every pause",
        "low sinks window hard soft w kernel memory queries order grow pick focus outshone quote lanes heads signal again "
        "message visit rest open open_asked",
        "design: docs/kv.md; w, kernel as snapkv; memory: IntentKV; soft, low: ours; heads, lines, signal "
        "and visit: measured, docs/results.md"},
    .score = score,
    .defaults = {KV_USUAL_DEFAULTS, .sinks = 4, .hard = 1, .memory = 1, .signal = KV_SIGNAL_REPLAY,
        .again = 256, .focus = .5, .outshone = .0625, .quote = 4, .message = .5, .visit = .2, .rest = 1,
        .open = 16384, .open_asked = 4096},
    .repair = -1,
};
