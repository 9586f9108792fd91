/* Means of pages; see rest.h. A page's means are a function of its rows alone, so keeping them changes no bits. */
#include "kv/read/rest.h"

#include <stdlib.h>
#include <string.h>

#include "model/file/quant.h"

struct kv_rest {
    uint32_t n_lanes, n_pages, head_dim;
    uint64_t *known; /* [n_lanes][n_pages] rows whose means are there; 0: none */
    float *values;   /* [n_lanes][n_pages][head_dim] */
    uint16_t *keys;
    float *sums; /* [head_dim] working space */
};

kv_rest *kv_rest_new(const model_rows_shape *shape, uint32_t n_tokens)
{
    kv_rest *r = malloc(sizeof *r);
    if (!r) return NULL;
    *r = (kv_rest){.n_lanes = model_rows_lanes(shape),
        .n_pages = n_tokens / KV_REST_PAGE + 1,
        .head_dim = shape->head_dim};
    const size_t n = (size_t)r->n_lanes * r->n_pages;
    r->known = calloc(n, sizeof *r->known);
    r->values = malloc(n * r->head_dim * sizeof *r->values);
    r->keys = malloc(n * r->head_dim * sizeof *r->keys);
    r->sums = malloc(r->head_dim * sizeof *r->sums);
    if (r->known && r->values && r->keys && r->sums) return r;
    kv_rest_free(r);
    return NULL;
}

void kv_rest_free(kv_rest *r)
{
    if (!r) return;
    free(r->known);
    free(r->values);
    free(r->keys);
    free(r->sums);
    free(r);
}

void kv_rest_forget(kv_rest *r, uint32_t from)
{
    for (uint32_t lane = 0; lane < r->n_lanes; lane++)
        for (uint32_t page = from / KV_REST_PAGE; page < r->n_pages; page++)
            r->known[(size_t)lane * r->n_pages + page] = 0;
}

static void make_means(kv_rest *r, const model_rows_view *view, uint32_t lane, uint32_t page, uint64_t rows)
{
    const uint32_t d = r->head_dim;
    const size_t at = ((size_t)lane * r->n_pages + page) * d;
    const float share = 1.0f / (float)__builtin_popcountll(rows);
    float *values = r->values + at, *keys = r->sums;
    memset(values, 0, d * sizeof *values);
    memset(keys, 0, d * sizeof *keys);
    for (uint64_t left = rows; left; left &= left - 1) {
        const uint32_t token = page * KV_REST_PAGE + (uint32_t)__builtin_ctzll(left);
        const uint16_t *key = model_rows_key(view, lane, token), *value = model_rows_value(view, lane, token);
        for (uint32_t i = 0; i < d; i++) keys[i] += quant_f16_finite_to_f32(key[i]) * share;
        for (uint32_t i = 0; i < d; i++) values[i] += quant_f16_finite_to_f32(value[i]) * share;
    }
    for (uint32_t i = 0; i < d; i++) r->keys[at + i] = quant_f32_to_f16(keys[i]);
}

kv_rest_means kv_rest_find(
    kv_rest *r, const model_rows_view *view, uint32_t lane, const uint64_t *rows, uint32_t n_pages)
{
    const size_t first = (size_t)lane * r->n_pages;
    uint64_t *known = r->known + first;
    for (uint32_t page = 0; page < n_pages; page++) {
        if (rows[page] && known[page] != rows[page]) make_means(r, view, lane, page, rows[page]);
        known[page] = rows[page];
    }
    return (kv_rest_means){r->values + first * r->head_dim, r->keys + first * r->head_dim};
}
