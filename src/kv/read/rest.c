/*
 * Means of values; see rest.h. A group's mean is a function of its rows alone, so keeping it changes no bits.
 */
#include "kv/read/rest.h"

#include <stdlib.h>
#include <string.h>

#include "model/file/quant.h"

struct kv_rest {
    uint32_t n_lanes, n_groups, head_dim;
    uint64_t *known; /* [n_lanes][n_groups] rows whose mean is there; 0: none */
    float *means;    /* [n_lanes][n_groups][head_dim] */
};

kv_rest *kv_rest_new(const model_rows_shape *shape, uint32_t n_tokens)
{
    kv_rest *r = malloc(sizeof *r);
    if (!r) return NULL;
    *r = (kv_rest){.n_lanes = model_rows_lanes(shape),
        .n_groups = n_tokens / KV_REST_GROUP + 1,
        .head_dim = shape->head_dim};
    const size_t n = (size_t)r->n_lanes * r->n_groups;
    r->known = calloc(n, sizeof *r->known);
    r->means = malloc(n * r->head_dim * sizeof *r->means);
    if (r->known && r->means) return r;
    kv_rest_free(r);
    return NULL;
}

void kv_rest_free(kv_rest *r)
{
    if (!r) return;
    free(r->known);
    free(r->means);
    free(r);
}

void kv_rest_forget(kv_rest *r, uint32_t from)
{
    for (uint32_t lane = 0; lane < r->n_lanes; lane++)
        for (uint32_t g = from / KV_REST_GROUP; g < r->n_groups; g++)
            r->known[(size_t)lane * r->n_groups + g] = 0;
}

static void make_mean(
    const kv_rest *r, const model_rows_view *view, uint32_t lane, uint32_t group, uint64_t rows, float *mean)
{
    const float share = 1.0f / (float)__builtin_popcountll(rows);
    memset(mean, 0, r->head_dim * sizeof *mean);
    for (uint64_t left = rows; left; left &= left - 1) {
        const uint32_t token = group * KV_REST_GROUP + (uint32_t)__builtin_ctzll(left);
        const uint16_t *value = model_rows_value(view, lane, token);
        for (uint32_t i = 0; i < r->head_dim; i++) mean[i] += quant_f16_finite_to_f32(value[i]) * share;
    }
}

const float *kv_rest_means(
    kv_rest *r, const model_rows_view *view, uint32_t lane, const uint64_t *rows, uint32_t n_groups)
{
    uint64_t *known = r->known + (size_t)lane * r->n_groups;
    float *means = r->means + (size_t)lane * r->n_groups * r->head_dim;
    for (uint32_t g = 0; g < n_groups; g++) {
        if (rows[g] && known[g] != rows[g])
            make_mean(r, view, lane, g, rows[g], means + (size_t)g * r->head_dim);
        known[g] = rows[g];
    }
    return means;
}
