/*
 * snapkv: per lane, the mean mass of the request's last w queries over its rows, mean over the lane's G heads, max-pooled
 * over `kernel` neighbours (Li et al., "SnapKV", 2024, section 3; per KV head, with queries, unlike what seed 002 calls by
 * the name). The request's queries are those kept when it was computed: later tool output is judged by them, not by its
 * own tail.
 */
#include <stdlib.h>

#include "kv/policy/policy.h"

/* out[i] = max of in[i - half .. i + half], clipped at the ends. */
static void pool_max(const float *in, float *out, uint32_t n, uint32_t half)
{
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t from = i > half ? i - half : 0, to = n - i > half + 1 ? i + half + 1 : n;
        float best = in[from];
        for (uint32_t k = from + 1; k < to; k++) best = in[k] > best ? in[k] : best;
        out[i] = best;
    }
}

int kv_policy_snapkv_score(kv_pass *pass, base_err *err)
{
    if (!pass->request->n) return kv_policy_streaming_score(pass, err); /* nobody asked anything yet */
    const uint32_t n_lanes = pass->lists->n_lanes, half = (uint32_t)pass->parameters->kernel / 2;
    int r = kv_pass_mass(pass, pass->request->queries, pass->request->n, pass->score, err);
    for (uint32_t lane = 0; lane < n_lanes && !r; lane++) {
        const model_lane_list *list = &pass->lists->view[lane];
        float *mass = malloc((list->n_rows + 1) * sizeof *mass);
        if (!mass) return base_fail(err, BASE_E_NOMEM, "no memory to score %u rows", list->n_rows);
        uint32_t ordinal = 0;
        for (uint32_t run = 0; run < list->n_runs; run++)
            for (uint32_t i = 0; i < list->runs[run].n; i++, ordinal++) {
                float *sum = &pass->attention[list->runs[run].index + i];
                mass[ordinal] = pass->score[lane][ordinal];
                *sum = (*sum == *sum ? *sum : 0) + mass[ordinal];
            }
        pool_max(mass, pass->score[lane], list->n_rows, half);
        free(mass);
    }
    return r;
}
