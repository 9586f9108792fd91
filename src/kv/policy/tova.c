/* tova (Oren et al., 2024): the newest token's mass, mean over all heads of a layer. */
#include "kv/policy/policy.h"

static int score(kv_pass *pass, base_err *err)
{
    const uint32_t per_layer = pass->compute->shape.n_head_kv;
    for (uint32_t lane = 0; lane < pass->lists->n_lanes; lane++) {
        const model_lane_list *list = &pass->lists->view[lane];
        const uint32_t first = lane / per_layer * per_layer;
        for (uint32_t r = 0, o = 0; r < list->n_runs; r++)
            for (uint32_t i = 0; i < list->runs[r].n; i++, o++) {
                const uint32_t t = list->runs[r].index + i;
                float sum = 0;
                for (uint32_t l = first; l < first + per_layer && pass->heavy; l++)
                    sum += pass->heavy[l * pass->heavy_stride + t];
                pass->score[lane][o] = sum / (float)per_layer;
            }
    }
    (void)err;
    return 0;
}

const kv_policy kv_policy_tova = {
    .info = {"tova", "mass of the newest token's query, mean over heads, a set a layer (Oren et al., 2024)",
        "low sinks window hard", "no parameters: Oren et al. 2024"},
    .score = score,
    .defaults = {KV_COMMON_DEFAULTS, KV_READING_DEFAULTS, KV_STRUCTURE_DEFAULTS, KV_PRUNE_DEFAULTS,
        .low = .875, .window = 1, .kernel = 7},
    .heavy = KV_HEAVY_LAST,
};
