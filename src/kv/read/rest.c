/* Means of pages; see rest.h. A page's means are a function of its rows alone, so keeping them changes no bits. */
#include "kv/read/rest.h"

#include <stdlib.h>
#include <string.h>

#include "model/file/quant.h"
#include "model/ops/sketch.h"

enum {
    PART = MODEL_ROWS_BLOCK, /* pages of a sketch */
    PART_CHAPTERS = PART / MODEL_CHAPTER,
};

struct kv_rest {
    uint32_t n_lanes, n_pages, n_parts, head_dim;
    uint64_t *known;         /* [n_lanes][n_pages] rows whose means are there; 0: none */
    uint16_t *values, *keys; /* [n_lanes][n_pages][head_dim] F16 */
    /* Of the keys as folded pages are read, and of the values; NULL: nobody asked so far. */
    uint8_t *sketches;  /* [n_lanes][n_parts] */
    uint16_t *chapters; /* [n_lanes][n_parts][PART_CHAPTERS][head_dim] F16 */
    bool *is_sketched;  /* [n_lanes][n_parts] both are those of `known`, `keys`, `values` and `gaps` */
    uint32_t *gaps;     /* [n_pages] */
    uint16_t *turned;   /* [PART][head_dim] working space */
    float *sums;        /* [2][head_dim] the same */
};

kv_rest *kv_rest_new(const model_rows_shape *shape, uint32_t n_tokens)
{
    kv_rest *r = malloc(sizeof *r);
    if (!r) return NULL;
    const uint32_t n_pages = n_tokens / KV_REST_PAGE + 1;
    *r = (kv_rest){.n_lanes = model_rows_lanes(shape),
        .n_pages = n_pages,
        .n_parts = (n_pages + PART - 1) / PART,
        .head_dim = shape->head_dim};
    const size_t n = (size_t)r->n_lanes * r->n_pages;
    r->known = calloc(n, sizeof *r->known);
    r->values = malloc(n * r->head_dim * sizeof *r->values);
    r->keys = calloc(n * r->head_dim, sizeof *r->keys); /* of unknown pages some are turned, too */
    r->is_sketched = calloc((size_t)r->n_lanes * r->n_parts, sizeof *r->is_sketched);
    r->gaps = calloc(r->n_pages, sizeof *r->gaps);
    r->turned = malloc((size_t)PART * r->head_dim * sizeof *r->turned);
    r->sums = malloc(2 * (size_t)r->head_dim * sizeof *r->sums);
    if (r->known && r->values && r->keys && r->is_sketched && r->gaps && r->turned && r->sums) return r;
    kv_rest_free(r);
    return NULL;
}

void kv_rest_free(kv_rest *r)
{
    if (!r) return;
    free(r->known);
    free(r->values);
    free(r->keys);
    free(r->sketches);
    free(r->chapters);
    free(r->is_sketched);
    free(r->gaps);
    free(r->turned);
    free(r->sums);
    free(r);
}

static bool make_sketches(kv_rest *r)
{
    const size_t n = (size_t)r->n_lanes * r->n_parts;
    if (!r->sketches) r->sketches = malloc(n * model_sketch_lane_bytes(r->head_dim));
    if (!r->chapters) r->chapters = malloc(n * PART_CHAPTERS * r->head_dim * sizeof *r->chapters);
    return r->sketches && r->chapters;
}

static uint16_t *chapters_of(const kv_rest *r, uint32_t lane, uint32_t part)
{
    return r->chapters + ((size_t)lane * r->n_parts + part) * PART_CHAPTERS * r->head_dim;
}

static uint8_t *sketch_of(const kv_rest *r, uint32_t lane, uint32_t part)
{
    return r->sketches + ((size_t)lane * r->n_parts + part) * model_sketch_lane_bytes(r->head_dim);
}

void kv_rest_copy(kv_rest *r, const kv_rest *from, uint32_t n_pages)
{
    const size_t page = r->head_dim * sizeof *r->keys;
    if (n_pages > from->n_pages) n_pages = from->n_pages;
    const uint32_t n_parts = from->chapters && make_sketches(r) ? n_pages / PART : 0; /* whole ones */
    for (uint32_t lane = 0; lane < r->n_lanes; lane++) {
        const size_t at = (size_t)lane * r->n_pages, there = (size_t)lane * from->n_pages;
        memcpy(r->known + at, from->known + there, n_pages * sizeof *r->known);
        memcpy(r->values + at * r->head_dim, from->values + there * r->head_dim, n_pages * page);
        memcpy(r->keys + at * r->head_dim, from->keys + there * r->head_dim, n_pages * page);
        if (!n_parts) continue;
        memcpy(
            sketch_of(r, lane, 0), sketch_of(from, lane, 0), n_parts * model_sketch_lane_bytes(r->head_dim));
        memcpy(chapters_of(r, lane, 0), chapters_of(from, lane, 0), n_parts * PART_CHAPTERS * page);
        memcpy(r->is_sketched + (size_t)lane * r->n_parts, from->is_sketched + (size_t)lane * from->n_parts,
            n_parts * sizeof *r->is_sketched);
    }
    memcpy(r->gaps, from->gaps, n_pages * sizeof *r->gaps);
}

/* A lane's page has other rows now, or none. */
static void set_known(kv_rest *r, uint32_t lane, uint32_t page, uint64_t rows)
{
    uint64_t *known = &r->known[(size_t)lane * r->n_pages + page];
    if (*known != rows) r->is_sketched[(size_t)lane * r->n_parts + page / PART] = false;
    *known = rows;
}

void kv_rest_forget(kv_rest *r, uint32_t from)
{
    for (uint32_t lane = 0; lane < r->n_lanes; lane++)
        for (uint32_t page = from / KV_REST_PAGE; page < r->n_pages; page++) set_known(r, lane, page, 0);
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

/* A page's mean, out of its block's digest (`both`, NULL: it is not there) or of the rows themselves. */
static int find_mean(kv_rest *r, const kv_table *of, const model_rows_view *view, uint32_t lane,
    uint32_t page, uint64_t rows, const uint16_t *both, base_err *err)
{
    const uint32_t d = r->head_dim;
    const size_t at = ((size_t)lane * r->n_pages + page) * d;
    for (uint64_t left = rows; of && !both && left; left &= left - 1) {
        const uint32_t t = page * KV_REST_PAGE + (uint32_t)__builtin_ctzll(left);
        const int rc = kv_table_check(of, lane, t, t + 1, err);
        if (rc) return rc;
    }
    if (!both) {
        make_means(r, view, lane, page, rows);
        return 0;
    }
    memcpy(r->keys + at, both, d * sizeof *r->keys);
    memcpy(r->values + at, both + d, d * sizeof *r->values);
    return 0;
}

/* A lane's pages [from, to) of one block. */
static int find_block(kv_rest *r, const kv_table *of, const model_rows_view *view, uint32_t lane,
    const uint64_t *rows, uint32_t from, uint32_t to, base_err *err)
{
    const uint64_t *known = r->known + (size_t)lane * r->n_pages;
    const kv_filed *f =
        of && from / KV_DIGEST_PAGES < of->n ? of->blocks[from / KV_DIGEST_PAGES]->filed : NULL;
    const uint16_t *there[KV_DIGEST_PAGES] = {NULL};
    uint64_t wanted[KV_DIGEST_PAGES] = {0}, any = 0;
    for (uint32_t page = from; page < to; page++)
        if (rows[page] != known[page]) any |= wanted[page - from] = rows[page];
    if (f && any) kv_filed_means(f, lane, wanted, there);
    for (uint32_t page = from; page < to; page++) {
        const int rc =
            wanted[page - from] ? find_mean(r, of, view, lane, page, rows[page], there[page - from], err) : 0;
        if (rc) return rc;
        set_known(r, lane, page, rows[page]);
    }
    return 0;
}

int kv_rest_find(kv_rest *r, const kv_table *of, const model_rows_view *view, const uint64_t *const *rows,
    uint32_t n_pages, base_err *err)
{
    int rc = 0;
    for (uint32_t from = 0; from < n_pages; from += KV_DIGEST_PAGES) { /* as they lie in digests */
        const uint32_t to = n_pages - from < KV_DIGEST_PAGES ? n_pages : from + KV_DIGEST_PAGES;
        for (uint32_t lane = 0; lane < r->n_lanes && !rc; lane++)
            if (rows[lane]) rc = find_block(r, of, view, lane, rows[lane], from, to, err);
    }
    for (uint32_t lane = 0; lane < r->n_lanes; lane++)
        for (uint32_t page = n_pages; page < r->n_pages && rows[lane]; page++) set_known(r, lane, page, 0);
    return rc;
}

const uint16_t *kv_rest_values(const kv_rest *r, uint32_t lane)
{
    return r->values + (size_t)lane * r->n_pages * r->head_dim;
}

const uint16_t *kv_rest_chapters(const kv_rest *r, uint32_t lane)
{
    return chapters_of(r, lane, 0);
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

void kv_rest_fold(kv_rest *r, const model_rows_view *view, uint32_t n_pages)
{
    for (uint32_t page = 0; page < n_pages; page++) {
        const uint32_t gap = model_rows_gap(view, page * KV_REST_PAGE);
        if (r->gaps[page] == gap) continue;
        r->gaps[page] = gap;
        for (uint32_t lane = 0; lane < r->n_lanes; lane++)
            r->is_sketched[(size_t)lane * r->n_parts + page / PART] = false;
    }
}

/* Mean values of a part's chapters: of their pages' means, each as often as the page has rows; 0 where it has none. */
static void find_chapters(kv_rest *r, uint32_t lane, uint32_t part)
{
    const uint32_t d = r->head_dim, from = part * PART,
                   n = r->n_pages - from < PART ? r->n_pages - from : PART;
    const size_t at = (size_t)lane * r->n_pages + from;
    uint16_t *to = chapters_of(r, lane, part);
    for (uint32_t first = 0; first < n; first += MODEL_CHAPTER, to += d) {
        const uint32_t end = first + MODEL_CHAPTER < n ? first + MODEL_CHAPTER : n;
        float *sums = r->sums, n_rows = 0;
        memset(sums, 0, d * sizeof *sums);
        for (uint32_t page = first; page < end; page++) {
            const float rows = (float)__builtin_popcountll(r->known[at + page]);
            const uint16_t *mean = r->values + (at + page) * d;
            if (!r->known[at + page]) continue;
            n_rows += rows;
            for (uint32_t i = 0; i < d; i++) sums[i] += quant_f16_finite_to_f32(mean[i]) * rows;
        }
        const float share = n_rows > 0 ? 1 / n_rows : 0;
        for (uint32_t i = 0; i < d; i++) to[i] = quant_f32_to_f16(sums[i] * share);
    }
}

/* Of a part's pages with evicted rows; none: nothing is there, and nobody reads it. */
static int sketch_part(kv_rest *r, const kv_compute *compute, const model_rows_view *view, uint32_t lane,
    uint32_t part, base_err *err)
{
    const uint32_t d = r->head_dim, from = part * PART,
                   n = r->n_pages - from < PART ? r->n_pages - from : PART;
    const size_t at = (size_t)lane * r->n_pages + from;
    const uint16_t *some[PART] = {NULL};
    bool any = false, is_folded = false;
    memcpy(r->turned, r->keys + at * d, (size_t)n * d * sizeof *r->turned);
    for (uint32_t i = 0; i < n; i++) {
        if (!r->known[at + i]) continue;
        some[i] = r->turned + (size_t)i * d;
        any = true;
        is_folded |= r->gaps[from + i] != 0;
    }
    const int rc = any && is_folded ? compute->turn_rows(compute->user, view, lane, from * KV_REST_PAGE,
                                          KV_REST_PAGE, n, r->turned, err)
                                    : 0;
    if (any && !rc) model_sketch_make_some(d, some, sketch_of(r, lane, part));
    if (any && !rc) find_chapters(r, lane, part);
    return rc;
}

int kv_rest_sketch(kv_rest *r, const kv_compute *compute, const model_rows_view *view, uint32_t lane,
    uint32_t n_pages, const uint8_t **ret, base_err *err)
{
    int rc = make_sketches(r) ? 0 : base_fail(err, BASE_E_NOMEM, "no memory for the sketches of pages");
    for (uint32_t part = 0; part * PART < n_pages && !rc; part++) {
        bool *is_sketched = &r->is_sketched[(size_t)lane * r->n_parts + part];
        if (!*is_sketched) rc = sketch_part(r, compute, view, lane, part, err);
        *is_sketched = !rc;
    }
    *ret = rc ? NULL : sketch_of(r, lane, 0);
    return rc;
}
