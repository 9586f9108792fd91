/* Means of pages; see rest.h. A page's means are a function of its rows alone, so keeping them changes no bits. */
#include "kv/read/rest.h"

#include <stdlib.h>
#include <string.h>

#include "model/file/quant.h"

struct kv_rest {
    uint32_t n_lanes, n_pages, head_dim;
    uint64_t *known;         /* [n_lanes][n_pages] rows whose means are there; 0: none */
    uint16_t *values, *keys; /* [n_lanes][n_pages][head_dim] F16 */
    /* The keys as folded pages are read; NULL: nothing was folded so far. */
    uint16_t *turned;
    uint32_t *gaps; /* [n_pages] that they were turned by; STALE: some are not there */
    float *sums;    /* [n_lanes + 1][head_dim] working space */
};

static const uint32_t STALE = UINT32_MAX;

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
    r->gaps = malloc(r->n_pages * sizeof *r->gaps);
    r->sums = malloc(((size_t)r->n_lanes + 1) * r->head_dim * sizeof *r->sums);
    if (r->known && r->values && r->keys && r->gaps && r->sums) {
        for (uint32_t page = 0; page < r->n_pages; page++) r->gaps[page] = STALE;
        return r;
    }
    kv_rest_free(r);
    return NULL;
}

void kv_rest_free(kv_rest *r)
{
    if (!r) return;
    free(r->known);
    free(r->values);
    free(r->keys);
    free(r->turned);
    free(r->gaps);
    free(r->sums);
    free(r);
}

static bool make_turned(kv_rest *r)
{
    if (!r->turned) r->turned = malloc((size_t)r->n_lanes * r->n_pages * r->head_dim * sizeof *r->turned);
    return r->turned != NULL;
}

void kv_rest_copy(kv_rest *r, const kv_rest *from, uint32_t n_pages)
{
    const size_t page = r->head_dim * sizeof *r->keys;
    if (n_pages > from->n_pages) n_pages = from->n_pages;
    const bool turned = from->turned && make_turned(r);
    for (uint32_t lane = 0; lane < r->n_lanes; lane++) {
        const size_t at = (size_t)lane * r->n_pages, there = (size_t)lane * from->n_pages;
        memcpy(r->known + at, from->known + there, n_pages * sizeof *r->known);
        memcpy(r->values + at * r->head_dim, from->values + there * r->head_dim, n_pages * page);
        memcpy(r->keys + at * r->head_dim, from->keys + there * r->head_dim, n_pages * page);
        if (turned) memcpy(r->turned + at * r->head_dim, from->turned + there * r->head_dim, n_pages * page);
    }
    if (turned) memcpy(r->gaps, from->gaps, n_pages * sizeof *r->gaps);
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
    float *values = r->sums, *keys = r->sums + d;
    memset(values, 0, d * sizeof *values);
    memset(keys, 0, d * sizeof *keys);
    for (uint64_t left = rows; left; left &= left - 1) {
        const uint32_t token = page * KV_REST_PAGE + (uint32_t)__builtin_ctzll(left);
        const uint16_t *key = model_rows_key(view, lane, token), *value = model_rows_value(view, lane, token);
        for (uint32_t i = 0; i < d; i++) keys[i] += quant_f16_finite_to_f32(key[i]) * share;
        for (uint32_t i = 0; i < d; i++) values[i] += quant_f16_finite_to_f32(value[i]) * share;
    }
    for (uint32_t i = 0; i < d; i++) {
        r->values[at + i] = quant_f32_to_f16(values[i]);
        r->keys[at + i] = quant_f32_to_f16(keys[i]);
    }
}

/* A page's mean as the digest of its block has it. */
static bool take_mean(kv_rest *r, const kv_table *of, uint32_t lane, uint32_t page, uint64_t rows)
{
    const uint32_t d = r->head_dim, b = page / KV_DIGEST_PAGES;
    const size_t at = ((size_t)lane * r->n_pages + page) * d;
    const kv_filed *f = of && b < of->n ? of->blocks[b]->filed : NULL;
    const uint16_t *both = f ? kv_filed_mean(f, page % KV_DIGEST_PAGES, lane, rows) : NULL;
    if (!both) return false;
    memcpy(r->keys + at, both, d * sizeof *r->keys);
    memcpy(r->values + at, both + d, d * sizeof *r->values);
    return true;
}

int kv_rest_find(kv_rest *r, const kv_table *of, const model_rows_view *view, uint32_t lane,
    const uint64_t *rows, uint32_t n_pages, const uint16_t **ret, base_err *err)
{
    const size_t first = (size_t)lane * r->n_pages;
    uint64_t *known = r->known + first;
    for (uint32_t page = 0; page < n_pages; page++) {
        if (rows[page] && known[page] != rows[page]) {
            r->gaps[page] = STALE;
            const bool is_there = take_mean(r, of, lane, page, rows[page]);
            for (uint64_t left = rows[page]; of && !is_there && left; left &= left - 1) {
                const uint32_t t = page * KV_REST_PAGE + (uint32_t)__builtin_ctzll(left);
                const int rc = kv_table_check(of, lane, t, t + 1, err);
                if (rc) return rc;
            }
            if (!is_there) make_means(r, view, lane, page, rows[page]);
        }
        known[page] = rows[page];
    }
    *ret = r->values + first * r->head_dim;
    return 0;
}

uint64_t kv_rest_get(
    const kv_rest *r, uint32_t lane, uint32_t page, const uint16_t **ret_key, const uint16_t **ret_value)
{
    const size_t at = (size_t)lane * r->n_pages + page;
    if (page >= r->n_pages) return 0;
    *ret_key = r->keys + at * r->head_dim;
    *ret_value = r->values + at * r->head_dim;
    return r->known[at];
}

/* A page's mean keys of all lanes. */
static void turn_page(kv_rest *r, const kv_compute *compute, uint32_t page, uint32_t gap)
{
    const uint32_t d = r->head_dim;
    memset(r->sums, 0, (size_t)r->n_lanes * d * sizeof *r->sums);
    for (uint32_t lane = 0; lane < r->n_lanes; lane++) {
        const size_t at = (size_t)lane * r->n_pages + page;
        for (uint32_t i = 0; r->known[at] && i < d; i++)
            r->sums[lane * d + i] = quant_f16_finite_to_f32(r->keys[at * d + i]);
    }
    compute->turn_keys(compute->user, r->sums, 1, &(int64_t){gap});
    for (uint32_t lane = 0; lane < r->n_lanes; lane++)
        for (uint32_t i = 0; i < d; i++)
            r->turned[((size_t)lane * r->n_pages + page) * d + i] = quant_f32_to_f16(r->sums[lane * d + i]);
    r->gaps[page] = gap;
}

bool kv_rest_fold(kv_rest *r, const kv_compute *compute, const kv_fold *fold, uint32_t n_pages)
{
    if (!fold->n && !r->turned) return true;
    if (!make_turned(r)) return false;
    for (uint32_t page = 0; page < n_pages; page++) {
        const uint32_t gap = page < fold->n ? fold->gaps[page] : 0;
        if (r->gaps[page] != gap) turn_page(r, compute, page, gap);
    }
    return true;
}

const uint16_t *kv_rest_keys(const kv_rest *r, uint32_t lane)
{
    return (r->turned ? r->turned : r->keys) + (size_t)lane * r->n_pages * r->head_dim;
}
