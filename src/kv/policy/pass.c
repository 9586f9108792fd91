/* What scoring functions share. */
#include "kv/policy/policy.h"

uint32_t kv_pass_target(const kv_parameters *p, uint32_t budget, uint32_t n_hard)
{
    const uint32_t target = (uint32_t)(budget * p->low);
    /* Many hard rows must not leave the rest with nothing: half of what they leave of the whole budget at least. */
    const uint32_t least = n_hard < budget ? n_hard + (budget - n_hard) / 2 : budget;
    return target > least ? target : least;
}

int kv_pass_mass(kv_pass *pass, const float *queries, uint32_t n_queries, float *const *mass, base_err *err)
{
    const model_score score = {
        .queries = queries,
        .n_queries = n_queries,
        .rows = pass->rows,
        .pool = MODEL_POOL_MEAN,
        .end = pass->lists->n_tokens,
        .mass = mass,
        .cancel = pass->cancel,
    };
    return pass->compute->score(pass->compute->user, &score, err);
}
