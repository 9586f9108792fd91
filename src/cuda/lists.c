/*
 * The live lists on the device, and the rows that they name and the pool lacks.
 *
 * A lane's list on the device is its rows' places in order; it is compared with the view run by run, and only
 * what differs is sent: for a decoded token one word a lane. Promoting a row that is still in the pool moves
 * nothing; else the device reads the rows of a plan where they are pinned (pins.c), all in one launch; those
 * that are not are gathered by the pool's threads first.
 *
 * A plan's rows and lists go over in the pause that applied it (cuda_bring), on the stream that computes: it
 * has nothing else to do then, and nobody here waits for it. Which rows the pool holds: device_rows.c.
 */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "cuda/device_rows.h"

enum {
    FIRST_ROWS = 4096,
    UPLOAD_ROWS = 16384,
    GATHER_ROWS = 64 /* that a thread claims */
};

/*
 * Ordinals of the lane's list that the device has as the view wants them. Runs are the same rows since stamps
 * are; the last common one may be longer or shorter now.
 */
static uint32_t common_rows(const lane_state *l, const model_lane_list *list)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < list->n_runs && i < l->n_runs; i++) {
        const model_run *a = &l->runs[i], *b = &list->runs[i];
        if (a->slot != b->slot || a->index != b->index) return n;
        n += a->n < b->n ? a->n : b->n;
        if (a->n != b->n) return n;
    }
    return n;
}

/* Longer lists on the device, which are empty then. */
static int grow_lists(cuda_backend *c, uint32_t n_rows, base_err *err)
{
    cuda_rows *r = c->rows;
    size_t cap = r->cap ? r->cap : FIRST_ROWS;
    while (cap < n_rows) cap *= 2;
    int rc = cuda_finish(c, err);
    if (rc) return rc;
    cuda_free(c, r->slots, r->list_bytes);
    cuda_free(c, r->index, r->list_bytes);
    r->slots = r->index = NULL;
    r->cap = 0;
    cuda_rows_forget_lists(r);
    r->list_bytes = cap * r->n_lanes * sizeof(uint32_t);
    rc = cuda_alloc(c, (void **)&r->slots, r->list_bytes, "lists of the cache", err);
    if (!rc) rc = cuda_alloc(c, (void **)&r->index, r->list_bytes, "lists of the cache", err);
    if (!rc) r->cap = cap;
    return rc;
}

/* ---- rows to the device ---- */

/*
 * Rows on their way to the device: the addresses of their keys, and their places. Those that are not pinned
 * are gathered by the pool's threads when the piece is full, into blocks like the cache's: so all values lie
 * as far behind their keys.
 */
typedef struct upload {
    uint64_t *keys, *places; /* [cap], in the move arena */
    const uint64_t *device_keys, *device_places;
    uint16_t *staged; /* in front of them */
    const uint16_t *device_staged;
    uint32_t n, n_staged, cap, left; /* left: rows to come, this piece's and later ones' */
    bool stages;                     /* not every block of the view is pinned: there is room to stage rows */
} upload;

typedef struct gather_job {
    const row_source *from;
    uint16_t *to;
    uint32_t n, head_dim;
    _Atomic uint32_t next;
} gather_job;

/* Where row i lies in blocks of keys and values, in halves. */
static size_t staged_at(uint32_t i, uint32_t head_dim)
{
    return ((size_t)i / MODEL_ROWS_BLOCK * 2 * MODEL_ROWS_BLOCK + i % MODEL_ROWS_BLOCK) * head_dim;
}

static void gather_rows(void *arg, int thread, int n_threads)
{
    (void)thread;
    (void)n_threads;
    gather_job *j = arg;
    const size_t d = j->head_dim;
    for (uint32_t first; (first = atomic_fetch_add(&j->next, GATHER_ROWS)) < j->n;)
        for (uint32_t i = first; i < j->n && i < first + GATHER_ROWS; i++) {
            uint16_t *key = j->to + staged_at(i, j->head_dim);
            memcpy(key, j->from[i].key, d * sizeof *key);
            memcpy(key + MODEL_ROWS_BLOCK * d, j->from[i].value, d * sizeof *key);
        }
}

static bool is_pinned(const cuda_backend *c, const model_rows_view *view)
{
    for (uint32_t b = 0; b < view->n_blocks; b++)
        if (!cuda_pinned_at(c, view->blocks[b])) return false;
    return true;
}

static int begin_upload(cuda_backend *c, upload *u, base_err *err)
{
    cuda_rows *r = c->rows;
    const uint32_t cap = u->left < UPLOAD_ROWS ? u->left : UPLOAD_ROWS,
                   n_blocks = (cap + MODEL_ROWS_BLOCK - 1) / MODEL_ROWS_BLOCK;
    const size_t keys_bytes = cap * sizeof *u->keys,
                 staged_bytes = u->stages ? n_blocks * MODEL_ROWS_BLOCK * cuda_rows_row_bytes(r) : 0;
    int rc = cuda_reserve(c, 0, staged_bytes + 2 * keys_bytes, 0, err);
    if (rc) return rc;
    base_grow(&r->sources, &r->cap_sources, cap, sizeof *r->sources);
    cuda_take(&c->move, staged_bytes + 2 * keys_bytes, &u->staged, &u->device_staged);
    u->keys = (uint64_t *)(void *)((uint8_t *)u->staged + staged_bytes);
    u->places = u->keys + cap;
    u->device_keys = (const uint64_t *)(const void *)((const uint8_t *)u->device_staged + staged_bytes);
    u->device_places = u->device_keys + cap;
    u->n = u->n_staged = 0;
    u->cap = cap;
    return 0;
}

static int end_upload(cuda_backend *c, upload *u, base_err *err)
{
    cuda_rows *r = c->rows;
    const uint32_t d = r->shape.head_dim;
    const k_bring params = {u->device_keys, u->device_places, r->pool, (size_t)MODEL_ROWS_BLOCK * d, u->n, d};
    gather_job j = {.from = r->sources, .to = u->staged, .n = u->n_staged, .head_dim = d};
    u->n = u->n_staged = u->cap = 0;
    if (params.n == 0) return 0;
    if (j.n < 4 * GATHER_ROWS)
        gather_rows(&j, 0, 1);
    else
        base_pool_share(c->pool, gather_rows, &j);
    return cuda_run_now(c, cuda_launch_bring, &params, err);
}

static int upload_row(cuda_backend *c, upload *u, const model_rows_view *view, uint32_t lane, uint32_t slot,
    uint32_t place, base_err *err)
{
    cuda_rows *r = c->rows;
    int rc = 0;
    if (u->n == u->cap) {
        rc = end_upload(c, u, err);
        if (!rc) rc = begin_upload(c, u, err);
        if (rc) return rc;
    }
    const uint16_t *key = model_rows_key(view, lane, slot);
    uint64_t at = cuda_pinned_at(c, key);
    if (!at) {
        at = (uint64_t)(uintptr_t)(u->device_staged + staged_at(u->n_staged, r->shape.head_dim));
        r->sources[u->n_staged++] = (row_source){key, model_rows_value(view, lane, slot)};
    }
    u->keys[u->n] = at;
    u->places[u->n++] = lane * (uint64_t)r->n_slots + place;
    u->left--;
    return 0;
}

/* The row's place in the pool; a row that is not there is brought from host memory. */
static int find_row(cuda_backend *c, upload *u, const model_rows_view *view, uint32_t lane, uint32_t slot,
    uint32_t *ret, base_err *err)
{
    cuda_rows *r = c->rows;
    uint32_t *place = cuda_rows_place_of(r, lane, slot);
    *ret = *place;
    if (*ret != CUDA_NO_SLOT) return 0;
    int rc = cuda_rows_take_place(r, lane, ret, err);
    if (!rc) rc = upload_row(c, u, view, lane, slot, *ret, err);
    if (!rc) *place = *ret;
    return rc;
}

/* ---- lists ---- */

static void keep_runs(lane_state *l, const model_lane_list *list)
{
    base_grow(&l->runs, &l->cap_runs, list->n_runs, sizeof *l->runs);
    if (list->n_runs) memcpy(l->runs, list->runs, list->n_runs * sizeof *l->runs);
    l->n_runs = list->n_runs;
    l->n_rows = list->n_rows;
}

/* Places and indices of ordinals [from, n_rows), in the move arena, and their patches. */
static int send_list(
    cuda_backend *c, upload *u, const model_rows_view *view, uint32_t lane, uint32_t from, base_err *err)
{
    cuda_rows *r = c->rows;
    const model_lane_list *list = &view->lanes[lane];
    const uint32_t n = list->n_rows - from;
    uint32_t *host = NULL, *words = n ? malloc(2 * (size_t)n * sizeof *words) : NULL, *device = NULL,
             ordinal = list->n_rows, i;
    int rc = 0;
    if (!n) return 0;
    if (!words) return base_fail(err, BASE_E_NOMEM, "no memory for a list of %u rows", n);
    for (i = list->n_runs; i-- > 0 && ordinal > from && !rc;) {
        const model_run *run = &list->runs[i];
        for (uint32_t k = run->n; k-- > 0 && ordinal > from && !rc;) {
            ordinal--;
            rc = find_row(c, u, view, lane, run->slot + k, &words[ordinal - from], err);
            words[n + ordinal - from] = run->index + k;
        }
    }
    if (!rc && !cuda_has_room(&c->move, 2 * (size_t)n * sizeof *words)) rc = end_upload(c, u, err);
    if (!rc) rc = cuda_reserve(c, 0, 2 * (size_t)n * sizeof *words, 0, err);
    if (!rc) {
        cuda_take(&c->move, 2 * (size_t)n * sizeof *words, &host, &device);
        memcpy(host, words, 2 * (size_t)n * sizeof *words);
        rc = cuda_patch(c, r->slots + lane * r->cap + from, device, n, err);
    }
    if (!rc) rc = cuda_patch(c, r->index + lane * r->cap + from, device + n, n, err);
    free(words);
    return rc;
}

static int send_lengths(cuda_backend *c, const model_rows_view *view, uint32_t first, base_err *err)
{
    const uint32_t n = view->shape.n_head_kv;
    uint32_t *host, *device;
    int rc = cuda_reserve(c, 0, n * sizeof *host, 0, err);
    if (rc) return rc;
    cuda_take(&c->move, n * sizeof *host, &host, &device);
    for (uint32_t i = 0; i < n; i++) host[i] = view->lanes[first + i].n_rows;
    return cuda_patch(c, c->rows->n_rows + first, device, n, err);
}

/*
 * Room for the lists of n layers and for the rows that they lack; of each lane, how much of its list stands
 * already.
 */
static int make_room(
    cuda_backend *c, const model_rows_view *view, uint32_t layer, uint32_t n_layers, base_err *err)
{
    const uint32_t n = view->shape.n_head_kv, first = layer * n, end = first + n_layers * n;
    cuda_rows *r = c->rows;
    uint32_t from[CUDA_LANES_MAX], most = 0;
    int rc = cuda_rows_meet(c, view, err);
    for (uint32_t lane = first; lane < end && !rc; lane++)
        if (view->lanes[lane].n_rows > most) most = view->lanes[lane].n_rows;
    if (!rc && most > r->cap) rc = grow_lists(c, most, err);
    for (uint32_t lane = first; lane < end && !rc; lane++)
        r->lanes[lane].n_common = common_rows(&r->lanes[lane], &view->lanes[lane]);
    /*
     * Two rounds: making room for a later layer may sweep rows that an earlier one counted on. In the second
     * round there is nothing left to sweep.
     */
    for (uint32_t i = 0; i < (n_layers > 1 ? 2 * n_layers : 1) && !rc; i++) {
        const uint32_t lane = first + i % n_layers * n;
        for (uint32_t k = 0; k < n; k++) from[k] = r->lanes[lane + k].n_common;
        rc = cuda_rows_make_room(c, view, lane, from, err);
    }
    return rc;
}

/* Makes the layer's lists equal the view's. Rows that they lack are in `u`, and under way when it ends. */
static int match_lists(cuda_backend *c, const model_rows_view *view, uint32_t first, upload *u, base_err *err)
{
    cuda_rows *r = c->rows;
    bool all_stand = true, patched = false;
    int rc = 0;
    for (uint32_t i = 0; i < view->shape.n_head_kv; i++) {
        const lane_state *l = &r->lanes[first + i];
        const model_lane_list *list = &view->lanes[first + i];
        all_stand = all_stand && l->n_common == list->n_rows && l->n_rows == list->n_rows;
        patched = patched || l->patched == c->queue.serial;
    }
    if (all_stand) return 0;
    /* What waits reads the list as it was patched before. */
    if (patched && (rc = cuda_flush(c, err))) return rc;
    for (uint32_t i = 0; i < view->shape.n_head_kv && !rc; i++) {
        lane_state *l = &r->lanes[first + i];
        l->n_runs = l->n_rows = 0; /* in between it is nobody's */
        rc = send_list(c, u, view, first + i, l->n_common, err);
        if (!rc) keep_runs(l, &view->lanes[first + i]);
        l->patched = c->queue.serial;
    }
    if (!rc && !cuda_has_room(&c->move, view->shape.n_head_kv * sizeof(uint32_t))) rc = end_upload(c, u, err);
    return rc ? rc : send_lengths(c, view, first, err);
}

/* Lists and rows of n layers; the rows in one launch. */
static int send_layers(
    cuda_backend *c, const model_rows_view *view, uint32_t layer, uint32_t n_layers, base_err *err)
{
    const uint32_t n = view->shape.n_head_kv;
    upload u = {.n = 0};
    int rc = make_room(c, view, layer, n_layers, err);
    for (uint32_t i = layer * n; i < (layer + n_layers) * n && !rc; i++)
        u.left += cuda_rows_count_missing(c->rows, &view->lanes[i], i, c->rows->lanes[i].n_common);
    u.stages = u.left && !is_pinned(c, view);
    for (uint32_t l = layer; l < layer + n_layers && !rc; l++) rc = match_lists(c, view, l * n, &u, err);
    /* In any case: rows have their places by now. */
    const int ended = end_upload(c, &u, rc ? NULL : err);
    return rc ? rc : ended;
}

int cuda_lists_prepare(
    cuda_backend *c, const model_rows_view *view, uint32_t layer, gpu_lists *ret, base_err *err)
{
    const int rc = send_layers(c, view, layer, 1, err);
    const cuda_rows *r = c->rows;
    if (rc) return rc;
    *ret = (gpu_lists){.pool = r->pool,
        .slots = r->slots,
        .index = r->index,
        .n_rows = r->n_rows,
        .n_slots = r->n_slots,
        .cap = r->cap,
        .first_lane = layer * view->shape.n_head_kv,
        .n_lanes = view->shape.n_head_kv,
        .head_dim = view->shape.head_dim};
    return 0;
}

int cuda_bring(model_ops *ops, const model_rows_view *view, base_err *err)
{
    cuda_backend *c = cuda_of(ops);
    if (!view->stamps) return 0; /* nothing of it would be remembered */
    const int rc = send_layers(c, view, 0, view->shape.n_layer, err);
    return rc ? rc : cuda_flush(c, err);
}
