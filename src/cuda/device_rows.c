/*
 * Which rows of the cache are on the device: blocks, the pool and its places, and rows on their way back to
 * the host.
 *
 * Host memory is the truth: the device has a pool of places for every lane, and a row that some list names is
 * brought there once. A row is known by its block's stamp (model/ops/rows.h) and its place in the block, so
 * nothing has to be told when blocks are copied, shared or freed: a stamp that nobody names any more is only
 * memory, and is swept when places run out and memory is short. Evicting a row moves nothing. Who brings
 * rows, and the lists of what is live: lists.c.
 */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "cuda/device_rows.h"

enum { FIRST_SLOTS = 1024 };

int cuda_check_heads(const model_rows_shape *s, uint32_t n_head, base_err *err)
{
    if (s->head_dim % 16 || s->head_dim == 0 || s->head_dim > GPU_HEAD_DIM_MAX)
        return base_fail(err, BASE_E_UNSUPPORTED,
            "attention over heads of %u; multiples of 16 up to %d are possible", s->head_dim,
            GPU_HEAD_DIM_MAX);
    if (s->n_head_kv == 0 || n_head == 0 || n_head % s->n_head_kv)
        return base_fail(err, BASE_E_UNSUPPORTED, "%u query heads over %u KV heads", n_head, s->n_head_kv);
    return 0;
}

int cuda_rows_new(cuda_backend *c, base_err *err)
{
    c->rows = calloc(1, sizeof *c->rows);
    return c->rows ? 0 : base_fail(err, BASE_E_NOMEM, "no memory for the lists of the cache");
}

static void free_blocks(cuda_rows *r)
{
    for (size_t i = 0; i < r->n_blocks; i++) {
        free(r->blocks[i]->slots);
        free(r->blocks[i]);
    }
    r->n_blocks = r->n_table = 0;
}

static void free_shape(cuda_backend *c)
{
    cuda_rows *r = c->rows;
    free_blocks(r);
    for (uint32_t lane = 0; lane < r->n_lanes; lane++) {
        free(r->lanes[lane].runs);
        free(r->lanes[lane].free);
    }
    free(r->lanes);
    cuda_free(c, r->pool, r->pool_bytes);
    cuda_free(c, r->slots, r->list_bytes);
    cuda_free(c, r->index, r->list_bytes);
    cuda_free(c, r->n_rows, r->n_lanes * sizeof *r->n_rows);
    r->lanes = NULL;
    r->pool = NULL;
    r->slots = r->index = r->n_rows = NULL;
    r->n_lanes = 0;
    r->n_slots = r->cap = r->pool_bytes = r->list_bytes = 0;
}

void cuda_rows_free(cuda_backend *c)
{
    cuda_rows *r = c->rows;
    if (!r) return;
    free_shape(c);
    free(r->blocks);
    free(r->table);
    free(r->stamps);
    free(r->sources);
    free(r);
    c->rows = NULL;
}

/* ---- blocks ---- */

static row_block *find_block(const cuda_rows *r, uint64_t stamp)
{
    for (size_t i = r->n_blocks; i-- > 0;)
        if (r->blocks[i]->stamp == stamp) return r->blocks[i];
    return NULL;
}

static row_block *new_block(cuda_rows *r, uint64_t stamp)
{
    const size_t n = (size_t)r->n_lanes * MODEL_ROWS_BLOCK;
    row_block *b = malloc(sizeof *b);
    uint32_t *slots = malloc(n * sizeof *slots);
    if (!b || !slots) {
        free(b);
        free(slots);
        return NULL;
    }
    memset(slots, 0xFF, n * sizeof *slots);
    *b = (row_block){stamp, slots};
    base_grow(&r->blocks, &r->cap_blocks, r->n_blocks + 1, sizeof *r->blocks);
    r->blocks[r->n_blocks++] = b;
    return b;
}

void cuda_rows_forget_lists(cuda_rows *r)
{
    for (uint32_t lane = 0; lane < r->n_lanes; lane++) {
        r->lanes[lane].n_runs = 0;
        r->lanes[lane].n_rows = 0;
    }
}

static int open_shape(cuda_backend *c, const model_rows_shape *s, base_err *err)
{
    cuda_rows *r = c->rows;
    if (r->n_lanes && memcmp(&r->shape, s, sizeof *s) == 0) return 0;
    if (s->n_head_kv > CUDA_LANES_MAX)
        return base_fail(
            err, BASE_E_UNSUPPORTED, "%u KV heads; up to %d are possible", s->n_head_kv, CUDA_LANES_MAX);
    int rc = cuda_check_heads(s, s->n_head_kv, err);
    if (!rc) rc = cuda_finish(c, err);
    if (rc) return rc;
    free_shape(c);
    r->shape = *s;
    const uint32_t n_lanes = model_rows_lanes(s);
    r->lanes = calloc(n_lanes, sizeof *r->lanes);
    if (!r->lanes) return base_fail(err, BASE_E_NOMEM, "no memory for %u lanes", n_lanes);
    rc = cuda_alloc(c, (void **)&r->n_rows, n_lanes * sizeof *r->n_rows, "lists of the cache", err);
    if (!rc) r->n_lanes = n_lanes;
    return rc;
}

/*
 * The stamps of `view` that are not known yet, or other than they were, get their blocks; lists made from
 * others are void.
 */
static int meet_stamps(cuda_backend *c, const uint64_t *stamps, uint32_t n, base_err *err)
{
    cuda_rows *r = c->rows;
    size_t same = 0;
    while (same < n && same < r->n_table && r->stamps[same] == stamps[same]) same++;
    if (same < r->n_table && same < n) cuda_rows_forget_lists(r);
    base_grow(&r->table, &r->cap_table, n + 1, sizeof *r->table);
    base_grow(&r->stamps, &r->cap_stamps, n + 1, sizeof *r->stamps);
    for (size_t i = same; i < n; i++) {
        row_block *b = find_block(r, stamps[i]);
        if (!b) b = new_block(r, stamps[i]);
        if (!b) return base_fail(err, BASE_E_NOMEM, "no memory for the places of %d rows", MODEL_ROWS_BLOCK);
        r->table[i] = b;
        r->stamps[i] = stamps[i];
    }
    if (n > r->n_table || same < n) r->n_table = n;
    return 0;
}

int cuda_rows_meet(cuda_backend *c, const model_rows_view *view, base_err *err)
{
    cuda_rows *r = c->rows;
    int rc = open_shape(c, &view->shape, err);
    if (rc) return rc;
    if (view->stamps) return meet_stamps(c, view->stamps, view->n_blocks, err);
    uint64_t *stamps = malloc((view->n_blocks + 1) * sizeof *stamps);
    if (!stamps) return base_fail(err, BASE_E_NOMEM, "no memory for %u blocks", view->n_blocks);
    for (uint32_t b = 0; b < view->n_blocks; b++) stamps[b] = UINT64_MAX - r->made_up++;
    rc = meet_stamps(c, stamps, view->n_blocks, err);
    free(stamps);
    return rc;
}

int cuda_rows_done(cuda_backend *c, const model_rows_view *view, base_err *err)
{
    cuda_rows *r = c->rows;
    if (view->stamps) return 0;
    int rc = cuda_finish(c, err);
    free_blocks(r);
    cuda_rows_forget_lists(r);
    for (uint32_t lane = 0; lane < r->n_lanes; lane++) {
        lane_state *l = &r->lanes[lane];
        for (l->n_free = 0; l->n_free < r->n_slots; l->n_free++) l->free[l->n_free] = l->n_free;
    }
    return rc;
}

const uint32_t *cuda_rows_places(const cuda_backend *c, uint32_t lane, uint32_t slot)
{
    return cuda_rows_place_of(c->rows, lane, slot);
}

size_t cuda_rows_n_slots(const cuda_backend *c)
{
    return c->rows->n_slots;
}

const uint16_t *cuda_rows_pool(const cuda_backend *c, uint32_t lane)
{
    const cuda_rows *r = c->rows;
    return r->pool ? r->pool + lane * r->n_slots * 2 * r->shape.head_dim : NULL;
}

/* ---- places ---- */

/* Gives back the places of all rows that no list on the device names. The stream is through. */
static int sweep(cuda_backend *c, base_err *err)
{
    cuda_rows *r = c->rows;
    uint8_t *named = malloc(r->n_slots + 1);
    size_t n_kept = 0;
    if (!named) return base_fail(err, BASE_E_NOMEM, "no memory to look through %zu rows", r->n_slots);
    for (uint32_t lane = 0; lane < r->n_lanes; lane++) {
        lane_state *l = &r->lanes[lane];
        memset(named, 0, r->n_slots);
        for (size_t i = 0; i < l->n_runs; i++)
            for (uint32_t k = 0; k < l->runs[i].n; k++) {
                const uint32_t slot = *cuda_rows_place_of(r, lane, l->runs[i].slot + k);
                if (slot != CUDA_NO_SLOT) named[slot] = 1;
            }
        for (size_t b = 0; b < r->n_blocks; b++) {
            uint32_t *slots = r->blocks[b]->slots + (size_t)lane * MODEL_ROWS_BLOCK;
            for (uint32_t k = 0; k < MODEL_ROWS_BLOCK; k++) {
                if (slots[k] == CUDA_NO_SLOT || named[slots[k]]) continue;
                l->free[l->n_free++] = slots[k];
                slots[k] = CUDA_NO_SLOT;
            }
        }
    }
    free(named);
    /* Forgets blocks that have no row on the device any more, unless the current view has them. */
    for (size_t b = 0; b < r->n_blocks; b++) {
        row_block *block = r->blocks[b];
        bool keep = false;
        for (size_t i = 0; i < r->n_table && !keep; i++) keep = r->table[i] == block;
        for (size_t i = 0; i < (size_t)r->n_lanes * MODEL_ROWS_BLOCK && !keep; i++)
            keep = block->slots[i] != CUDA_NO_SLOT;
        if (keep) {
            r->blocks[n_kept++] = block;
            continue;
        }
        free(block->slots);
        free(block);
    }
    r->n_blocks = n_kept;
    return 0;
}

/* Another pool with n_slots places a lane, with the rows of the old one. The stream is through. */
static int grow_pool(cuda_backend *c, size_t n_slots, base_err *err)
{
    cuda_rows *r = c->rows;
    const size_t row = cuda_rows_row_bytes(r), n_bytes = n_slots * row * r->n_lanes;
    uint16_t *pool = NULL;
    int rc = cuda_alloc(c, (void **)&pool, n_bytes, "rows of the cache", err);
    if (rc) return rc;
    for (uint32_t lane = 0; lane < r->n_lanes && !rc; lane++) {
        lane_state *l = &r->lanes[lane];
        uint32_t *more = realloc(l->free, n_slots * sizeof *more);
        if (!more) {
            cuda_free(c, pool, n_bytes);
            return base_fail(err, BASE_E_NOMEM, "no memory for %zu places", n_slots);
        }
        l->free = more;
        if (r->n_slots)
            rc = cuda_check(c,
                cudaMemcpyAsync((uint8_t *)pool + lane * n_slots * row,
                    (const uint8_t *)r->pool + lane * r->n_slots * row, r->n_slots * row,
                    cudaMemcpyDeviceToDevice, c->stream),
                err);
    }
    if (!rc) rc = cuda_check(c, cudaStreamSynchronize(c->stream), err);
    if (rc) return rc;
    for (uint32_t lane = 0; lane < r->n_lanes; lane++)
        for (size_t s = n_slots; s-- > r->n_slots;)
            r->lanes[lane].free[r->lanes[lane].n_free++] = (uint32_t)s;
    cuda_free(c, r->pool, r->pool_bytes);
    r->pool = pool;
    r->n_slots = n_slots;
    r->pool_bytes = n_bytes;
    return 0;
}

static bool has_places(const cuda_rows *r, const uint32_t *missing, uint32_t first, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (r->lanes[first + i].n_free < missing[i]) return false;
    return true;
}

/* The list's rows from ordinal `from` on that the pool does not hold. */
uint32_t cuda_rows_count_missing(
    const cuda_rows *r, const model_lane_list *list, uint32_t lane, uint32_t from)
{
    uint32_t n = 0, ordinal = list->n_rows;
    for (uint32_t i = list->n_runs; i-- > 0 && ordinal > from;) {
        const uint32_t *places = cuda_rows_place_of(r, lane, list->runs[i].slot);
        for (uint32_t k = list->runs[i].n; k-- > 0 && ordinal > from; ordinal--)
            n += places[k] == CUDA_NO_SLOT;
    }
    return n;
}

/*
 * A pool twice as large, while that takes less than half of the memory that is left: then what was evicted
 * stays, scoring reads its keys here, and promoting it moves nothing.
 */
static int keep_all(cuda_backend *c, base_err *err)
{
    const cuda_rows *r = c->rows;
    if (r->n_slots == 0 || 2 * r->pool_bytes > (c->limit_bytes - c->used_bytes) / 2) return 0;
    const int rc = grow_pool(c, 2 * r->n_slots, err);
    return rc == BASE_E_NOMEM ? 0 : rc;
}

/*
 * Places for the layer's rows from ordinals `from` on that the pool does not hold: while there is plenty of
 * memory the pool grows; then rows that no list names give theirs back, and then it grows by a quarter of the
 * lists more than they need, or the next tokens would sweep again.
 */
int cuda_rows_make_room(
    cuda_backend *c, const model_rows_view *view, uint32_t first, const uint32_t *from, base_err *err)
{
    cuda_rows *r = c->rows;
    const uint32_t n = view->shape.n_head_kv;
    uint32_t most = 0, most_missing = 0, missing[CUDA_LANES_MAX];
    int rc = 0;
    for (uint32_t i = 0; i < n; i++)
        missing[i] = cuda_rows_count_missing(r, &view->lanes[first + i], first + i, from[i]);
    if (has_places(r, missing, first, n)) return 0;
    if ((rc = cuda_finish(c, err)) || (rc = keep_all(c, err)) || has_places(r, missing, first, n)) return rc;
    if ((rc = sweep(c, err))) return rc;
    for (uint32_t i = 0; i < n; i++) {
        missing[i] = cuda_rows_count_missing(r, &view->lanes[first + i], first + i, 0);
        if (missing[i] > most_missing) most_missing = missing[i];
        if (view->lanes[first + i].n_rows > most) most = view->lanes[first + i].n_rows;
    }
    size_t n_slots = r->n_slots ? r->n_slots : FIRST_SLOTS;
    while (n_slots < (size_t)most + most / 4 + most_missing / 4) n_slots *= 2;
    if (n_slots > r->n_slots) rc = grow_pool(c, n_slots, err);
    return rc == BASE_E_NOMEM && has_places(r, missing, first, n) ? 0 : rc;
}

/* A place for a row that the pool does not hold; cuda_rows_make_room has seen to it that there is one. */
int cuda_rows_take_place(cuda_rows *r, uint32_t lane, uint32_t *ret, base_err *err)
{
    lane_state *l = &r->lanes[lane];
    if (l->n_free == 0)
        return base_fail(err, BASE_E_NOMEM, "lane %u has more rows than places on the GPU", lane);
    *ret = l->free[--l->n_free];
    return 0;
}

/* ---- back to host memory ---- */

/*
 * Where the last n rows of a lane belong in host memory, and from where of the back arena they will come:
 * keys, then values.
 */
static void expect_lane(
    cuda_backend *c, const model_rows_view *view, uint32_t lane, uint32_t n, const uint16_t *host)
{
    const model_lane_list *list = &view->lanes[lane];
    const size_t d = view->shape.head_dim;
    uint32_t end = n; /* rows of the runs still to come are [0, end) */
    for (uint32_t i = list->n_runs; i > 0 && end > 0; i--) {
        const model_run *run = &list->runs[i - 1];
        const uint32_t now = run->n < end ? run->n : end, slot = run->slot + run->n - now;
        end -= now;
        cuda_expect(c, model_rows_key(view, lane, slot), host + end * d, now * d * sizeof(uint16_t));
        cuda_expect(c, model_rows_value(view, lane, slot), host + (n + end) * d, now * d * sizeof(uint16_t));
    }
}

static int place_lane(
    cuda_backend *c, const model_rows_view *view, uint32_t lane, uint32_t n, uint64_t *places, base_err *err)
{
    cuda_rows *r = c->rows;
    const model_lane_list *list = &view->lanes[lane];
    int rc = 0;
    for (uint32_t i = list->n_runs; i > 0 && n > 0; i--) {
        const model_run *run = &list->runs[i - 1];
        for (uint32_t k = run->n; k-- > 0 && n > 0 && !rc;) {
            uint32_t *place = cuda_rows_place_of(r, lane, run->slot + k), taken = *place;
            if (taken == CUDA_NO_SLOT) rc = cuda_rows_take_place(r, lane, &taken, err);
            *place = taken;
            places[--n] = lane * (uint64_t)r->n_slots + taken;
        }
    }
    return rc;
}

int cuda_rows_place(cuda_backend *c, const model_rows_view *view, uint32_t layer, uint32_t n,
    k_rows_write *ret, base_err *err)
{
    cuda_rows *r = c->rows;
    const model_rows_shape *s = &view->shape;
    const uint32_t first = layer * s->n_head_kv;
    const size_t lane_halves = 2 * (size_t)n * s->head_dim;
    uint32_t from[CUDA_LANES_MAX];
    uint16_t *host = NULL;
    uint64_t *places = NULL;
    int rc = cuda_rows_meet(c, view, err);
    if (rc) return rc;
    for (uint32_t i = 0; i < s->n_head_kv; i++) from[i] = view->lanes[first + i].n_rows - n;
    rc = cuda_rows_make_room(c, view, first, from, err);
    const size_t places_bytes = (size_t)s->n_head_kv * n * sizeof *places,
                 back_bytes = s->n_head_kv * lane_halves * sizeof *host;
    if (!rc) rc = cuda_reserve(c, places_bytes, 0, back_bytes, err);
    if (rc) return rc;
    cuda_take(&c->arguments, places_bytes, &places, &ret->places);
    cuda_take(&c->back, back_bytes, &host, &ret->copy);
    for (uint32_t i = 0; i < s->n_head_kv && !rc; i++) {
        rc = place_lane(c, view, first + i, n, places + (size_t)i * n, err);
        expect_lane(c, view, first + i, n, host + i * lane_halves);
    }
    ret->pool = r->pool;
    ret->n = n;
    ret->n_lanes = s->n_head_kv;
    ret->head_dim = s->head_dim;
    return rc;
}
