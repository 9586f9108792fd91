/* random: a control, rows by a seeded hash, for each lane. */
#include "base/hash.h"
#include "kv/policy/policy.h"

static int score(kv_pass *pass, base_err *err)
{
    for (uint32_t lane = 0; lane < pass->lists->n_lanes; lane++) {
        const model_lane_list *list = &pass->lists->view[lane];
        uint32_t ordinal = 0;
        for (uint32_t r = 0; r < list->n_runs; r++)
            for (uint32_t i = 0; i < list->runs[r].n; i++) {
                const uint32_t key[] = {lane, list->runs[r].index + i};
                const uint64_t hash = base_hash64(key, sizeof key, 1);
                pass->score[lane][ordinal++] = (float)(hash >> 40);
            }
    }
    return 0;
}

const kv_policy kv_policy_random = {
    .info = {"random", "a control: rows by a seeded hash, per lane", "low sinks window hard", "-"},
    .score = score,
    .defaults = {KV_USUAL_DEFAULTS, .sinks = 4},
};
