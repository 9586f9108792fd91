/*
 * knorm: rows whose keys are short stay (Devoto et al., "A simple and effective L2 norm-based strategy",
 * 2024): a short key goes with high attention in many models. Looks at no query, so it costs nothing and
 * knows nothing of the request.
 */
#include "kv/core/keys.h"
#include "kv/policy/policy.h"

static int score(kv_pass *pass, base_err *err)
{
    const uint32_t d = pass->compute->shape.head_dim;
    for (uint32_t lane = 0; lane < pass->lists->n_lanes; lane++) {
        const model_lane_list *list = &pass->lists->view[lane];
        for (uint32_t r = 0, o = 0; r < list->n_runs; r++)
            for (uint32_t i = 0; i < list->runs[r].n; i++, o++) {
                const uint16_t *key = model_rows_key(pass->rows, lane, list->runs[r].slot + i);
                float norm2 = 0;
                for (uint32_t k = 0; k < d; k++) {
                    const float x = kv__float_of_half(key[k]);
                    norm2 += x * x;
                }
                pass->score[lane][o] = -norm2;
            }
    }
    (void)err;
    return 0;
}

const kv_policy kv_policy_knorm = {
    .info = {"knorm", "rows with short keys (Devoto et al., 2024)", "low sinks window hard",
        "no parameters: Devoto et al. 2024; sinks and window: ours"},
    .score = score,
    .defaults = {KV_USUAL_DEFAULTS, .sinks = 4},
};
