/*
 * h2o and scissorhands: what a row was given so far orders, and a share of the kept is for the newest rows whatever they were
 * given (H2O, Zhang et al. 2023: half and half, which is also the grace of a new token). The sums are causal
 * and begin with the session (heavy.c). tova: the newest token's own mass, mean over all heads, one set a layer's lanes share.
 */
#include "kv/policy/policy.h"

int kv_policy_heavy_score(kv_pass *pass, base_err *err)
{
    for (uint32_t lane = 0; lane < pass->lists->n_lanes; lane++) {
        const model_lane_list *list = &pass->lists->view[lane];
        const uint32_t target = kv_pass_target(pass->parameters, pass->budget, 0);
        const uint32_t recent = (uint32_t)(target * pass->parameters->recent);
        const float *heavy = pass->heavy ? pass->heavy + lane * pass->heavy_stride : NULL;
        float most = 0;
        for (uint32_t r = 0; heavy && r < list->n_runs; r++)
            for (uint32_t i = 0; i < list->runs[r].n; i++)
                if (heavy[list->runs[r].index + i] > most) most = heavy[list->runs[r].index + i];
        for (uint32_t r = 0, o = 0; r < list->n_runs; r++)
            for (uint32_t i = 0; i < list->runs[r].n; i++, o++) {
                const uint32_t t = list->runs[r].index + i;
                const bool is_recent = list->n_rows - o <= recent;
                /* Two orders, one behind the other: the newest by age, before all others by what they were given. */
                pass->score[lane][o] = is_recent ? most + 1 + (float)o : heavy ? heavy[t] : 0;
                float *sum = &pass->attention[t];
                if (heavy) *sum = (*sum == *sum ? *sum : 0) + heavy[t];
            }
    }
    (void)err;
    return 0;
}

int kv_policy_last_score(kv_pass *pass, base_err *err)
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
