/* What scoring functions share. */
#include "kv/policy/policy.h"

#include <stdlib.h>

#include "kv/core/work.h"

uint32_t kv_pass_target(const kv_parameters *p, uint32_t budget, uint32_t n_hard)
{
    const uint32_t target = (uint32_t)(budget * p->low);
    /* However many rows are hard, half of what they leave of the budget is for the others. */
    const uint32_t least = n_hard < budget ? n_hard + (budget - n_hard) / 2 : budget;
    return target > least ? target : least;
}

int kv_pass_mass(kv_pass *pass, const float *queries, const uint32_t *tokens, uint32_t n_queries,
    float *const *mass, base_err *err)
{
    const model_score score = {
        .queries = queries,
        .n_queries = n_queries,
        .tokens = tokens,
        .rows = pass->rows,
        .pool = MODEL_POOL_MEAN,
        .end = pass->lists->n_tokens,
        .mass = mass,
        .cancel = pass->cancel,
    };
    return pass->compute->score(pass->compute->user, &score, err);
}

int kv_pass_newest(kv_pass *pass, base_err *err)
{
    for (uint32_t lane = 0; lane < pass->lists->n_lanes; lane++) {
        const model_lane_list *list = &pass->lists->view[lane];
        uint32_t ordinal = 0;
        for (uint32_t r = 0; r < list->n_runs; r++)
            for (uint32_t i = 0; i < list->runs[r].n; i++)
                pass->score[lane][ordinal++] = (float)(list->runs[r].index + i);
    }
    return 0;
}

int kv_pass_heaviest(kv_pass *pass, base_err *err)
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
                /* The newest rows by age, before all others by what they were given. */
                pass->score[lane][o] = is_recent ? most + 1 + (float)o : heavy ? heavy[t] : 0;
                float *sum = &pass->attention[t];
                if (heavy) *sum = (*sum == *sum ? *sum : 0) + heavy[t];
            }
    }
    (void)err;
    return 0;
}

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

int kv_pass_asked(kv_pass *pass, base_err *err)
{
    if (!pass->request->n) return kv_pass_newest(pass, err); /* nobody asked anything yet */
    const uint32_t n_lanes = pass->lists->n_lanes, half = (uint32_t)pass->parameters->kernel / 2;
    int rc =
        kv_pass_mass(pass, pass->request->queries, pass->request->tokens, pass->request->n, pass->score, err);
    for (uint32_t lane = 0; lane < n_lanes && !rc; lane++) {
        const model_lane_list *list = &pass->lists->view[lane];
        float *mass = malloc((list->n_rows + 1) * sizeof *mass);
        if (!mass) return kv_fail_to_score(err, list->n_rows);
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
    return rc;
}
