/*
 * Which rows of the cache are on the device, and the live lists there.
 *
 * Host memory is the truth: the device has a pool of places for every lane, and a row that some list names is brought there once.
 * A row is known by its block's stamp (model/rows.h) and its place in the block, so nothing has to be told when blocks are copied,
 * shared or freed: a stamp that nobody names any more is only memory, and is swept when places run out. Evicting a row moves nothing.
 * Promoting one that is still there moves nothing; else the rows of a plan go over in one transfer and are unpacked there.
 *
 * A lane's list on the device is its rows' places in order; it is compared with the view run by run, and only what differs is sent:
 * for a decoded token one word a lane.
 */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "cuda/backend.h"

enum {
    BLOCK = MODEL_ROWS_BLOCK,
    FIRST_SLOTS = 1024,
    FIRST_ROWS = 4096,
    UPLOAD_ROWS = 16384,
    GATHER_ROWS = 64, /* that a thread claims */
    LANES_MAX = 64    /* a layer's */
};

typedef struct row_block {
    uint64_t stamp;
    uint32_t *slots; /* [lanes][BLOCK], CUDA_NO_SLOT */
} row_block;

typedef struct lane_state {
    model_run *runs; /* as the device's list has them */
    size_t n_runs, cap_runs;
    uint32_t n_rows;
    uint64_t patched; /* the flush that its last patch belongs to */
    uint32_t *free;   /* [n_slots] places, a stack */
    uint32_t n_free;
} lane_state;

/* Rows that were written on the device, on their way to host memory. */
typedef struct bringing {
    uint16_t *to;
    const uint16_t *from; /* host side of the back arena */
    size_t n_bytes;
} bringing;

/* A row in host memory. */
typedef struct row_source {
    const uint16_t *key, *value;
} row_source;

struct cuda_rows {
    model_rows_shape shape;
    uint32_t n_lanes;
    uint16_t *pool;
    size_t n_slots, pool_bytes;
    uint32_t *slots, *index, *n_rows; /* device: [lane][cap], [lane][cap], [lane] */
    size_t cap, list_bytes;
    lane_state *lanes;
    row_block **blocks; /* all that have rows here */
    size_t n_blocks, cap_blocks;
    row_block **table; /* the view's: [n_table] */
    uint64_t *stamps;
    size_t n_table, cap_table, cap_stamps;
    uint64_t made_up; /* stamps for views without */
    bringing *bringing;
    size_t n_bringing, cap_bringing;
    row_source *sources; /* of the rows that are being gathered */
    size_t cap_sources;
};

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
    free(r->bringing);
    free(r->sources);
    free(r);
    c->rows = NULL;
}

static size_t lane_row_bytes(const cuda_rows *r)
{
    return 2 * r->shape.head_dim * sizeof(uint16_t);
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
    const size_t n = (size_t)r->n_lanes * BLOCK;
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

static void forget_lists(cuda_rows *r)
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
    if (s->n_head_kv > LANES_MAX)
        return base_fail(
            err, BASE_E_UNSUPPORTED, "%u KV heads; up to %d are possible", s->n_head_kv, LANES_MAX);
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

/* The stamps of `view` that are not known yet, or other than they were, get their blocks; lists made from others are void. */
static int meet_stamps(cuda_backend *c, const uint64_t *stamps, uint32_t n, base_err *err)
{
    cuda_rows *r = c->rows;
    size_t same = 0;
    while (same < n && same < r->n_table && r->stamps[same] == stamps[same]) same++;
    if (same < r->n_table && same < n) forget_lists(r);
    base_grow(&r->table, &r->cap_table, n + 1, sizeof *r->table);
    base_grow(&r->stamps, &r->cap_stamps, n + 1, sizeof *r->stamps);
    for (size_t i = same; i < n; i++) {
        row_block *b = find_block(r, stamps[i]);
        if (!b) b = new_block(r, stamps[i]);
        if (!b) return base_fail(err, BASE_E_NOMEM, "no memory for the places of %d rows", BLOCK);
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
    forget_lists(r);
    for (uint32_t lane = 0; lane < r->n_lanes; lane++) {
        lane_state *l = &r->lanes[lane];
        for (l->n_free = 0; l->n_free < r->n_slots; l->n_free++) l->free[l->n_free] = l->n_free;
    }
    return rc;
}

static uint32_t *place_of(const cuda_rows *r, uint32_t lane, uint32_t slot)
{
    return &r->table[slot / BLOCK]->slots[(size_t)lane * BLOCK + slot % BLOCK];
}

uint32_t cuda_rows_find(const cuda_backend *c, uint32_t lane, uint32_t slot)
{
    return *place_of(c->rows, lane, slot);
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
                const uint32_t slot = *place_of(r, lane, l->runs[i].slot + k);
                if (slot != CUDA_NO_SLOT) named[slot] = 1;
            }
        for (size_t b = 0; b < r->n_blocks; b++) {
            uint32_t *slots = r->blocks[b]->slots + (size_t)lane * BLOCK;
            for (uint32_t k = 0; k < BLOCK; k++) {
                if (slots[k] == CUDA_NO_SLOT || named[slots[k]]) continue;
                l->free[l->n_free++] = slots[k];
                slots[k] = CUDA_NO_SLOT;
            }
        }
    }
    free(named);
    /* Blocks of which nothing is left, unless the view at hand has them. */
    for (size_t b = 0; b < r->n_blocks; b++) {
        row_block *block = r->blocks[b];
        bool keep = false;
        for (size_t i = 0; i < r->n_table && !keep; i++) keep = r->table[i] == block;
        for (size_t i = 0; i < (size_t)r->n_lanes * BLOCK && !keep; i++)
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
    const size_t row = lane_row_bytes(r), n_bytes = n_slots * row * r->n_lanes;
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
static uint32_t count_missing(const cuda_rows *r, const model_lane_list *list, uint32_t lane, uint32_t from)
{
    uint32_t n = 0, ordinal = list->n_rows;
    for (uint32_t i = list->n_runs; i-- > 0 && ordinal > from;) {
        const model_run *run = &list->runs[i];
        for (uint32_t k = run->n; k-- > 0 && ordinal > from; ordinal--)
            n += *place_of(r, lane, run->slot + k) == CUDA_NO_SLOT;
    }
    return n;
}

/*
 * Ordinals of the lane's list that the device has as the view wants them. Runs are the same rows since stamps are; the last common
 * one may be longer or shorter now.
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
    forget_lists(r);
    r->list_bytes = cap * r->n_lanes * sizeof(uint32_t);
    rc = cuda_alloc(c, (void **)&r->slots, r->list_bytes, "lists of the cache", err);
    if (!rc) rc = cuda_alloc(c, (void **)&r->index, r->list_bytes, "lists of the cache", err);
    if (!rc) r->cap = cap;
    return rc;
}

/*
 * Places for the layer's rows from ordinals `from` on that the pool does not hold: rows that no list names give theirs back, and
 * then the pool grows, by a quarter of the lists more than they need, or the next tokens would sweep again.
 */
static int make_room(
    cuda_backend *c, const model_rows_view *view, uint32_t first, const uint32_t *from, base_err *err)
{
    cuda_rows *r = c->rows;
    const uint32_t n = view->shape.n_head_kv;
    uint32_t most = 0, most_missing = 0, missing[LANES_MAX];
    int rc = 0;
    for (uint32_t i = 0; i < n; i++)
        missing[i] = count_missing(r, &view->lanes[first + i], first + i, from[i]);
    if (has_places(r, missing, first, n)) return 0;
    if ((rc = cuda_finish(c, err)) || (rc = sweep(c, err))) return rc;
    for (uint32_t i = 0; i < n; i++) {
        missing[i] = count_missing(r, &view->lanes[first + i], first + i, 0);
        if (missing[i] > most_missing) most_missing = missing[i];
        if (view->lanes[first + i].n_rows > most) most = view->lanes[first + i].n_rows;
    }
    size_t n_slots = r->n_slots ? r->n_slots : FIRST_SLOTS;
    while (n_slots < (size_t)most + most / 4 + most_missing / 4) n_slots *= 2;
    if (n_slots > r->n_slots) rc = grow_pool(c, n_slots, err);
    return rc == BASE_E_NOMEM && has_places(r, missing, first, n) ? 0 : rc;
}

/* ---- lists ---- */

/* Rows on their way to the device: where they are here, and their places there; gathered by the pool when the piece is full. */
typedef struct upload {
    uint16_t *rows; /* host side of the move arena: [n][2 * head_dim] */
    uint64_t *places;
    const uint16_t *device_rows;
    const uint64_t *device_places;
    uint32_t n, cap, left; /* left: rows to come, this piece's and later ones' */
} upload;

typedef struct gather_job {
    const row_source *from;
    uint16_t *to;
    uint32_t n, head_dim;
    _Atomic uint32_t next;
} gather_job;

static void gather_rows(void *arg, int thread, int n_threads)
{
    (void)thread;
    (void)n_threads;
    gather_job *j = arg;
    const size_t d = j->head_dim;
    for (uint32_t first; (first = atomic_fetch_add(&j->next, GATHER_ROWS)) < j->n;)
        for (uint32_t i = first; i < j->n && i < first + GATHER_ROWS; i++) {
            memcpy(j->to + 2 * i * d, j->from[i].key, d * sizeof *j->to);
            memcpy(j->to + (2 * i + 1) * d, j->from[i].value, d * sizeof *j->to);
        }
}

static int begin_upload(cuda_backend *c, upload *u, base_err *err)
{
    cuda_rows *r = c->rows;
    const size_t row = lane_row_bytes(r);
    const uint32_t cap = u->left < UPLOAD_ROWS ? u->left : UPLOAD_ROWS;
    int rc = cuda_reserve(c, 0, cap * (row + sizeof *u->places), 0, err);
    if (rc) return rc;
    base_grow(&r->sources, &r->cap_sources, cap, sizeof *r->sources);
    cuda_take(&c->move, cap * (row + sizeof *u->places), &u->rows, &u->device_rows);
    u->places = (uint64_t *)(void *)((uint8_t *)u->rows + cap * row);
    u->device_places = (const uint64_t *)(const void *)((const uint8_t *)u->device_rows + cap * row);
    u->n = 0;
    u->cap = cap;
    return 0;
}

static int end_upload(cuda_backend *c, upload *u, base_err *err)
{
    cuda_rows *r = c->rows;
    const k_unpack params = {u->device_rows, u->device_places, r->pool, u->n, r->shape.head_dim};
    gather_job j = {.from = r->sources, .to = u->rows, .n = u->n, .head_dim = r->shape.head_dim};
    u->n = u->cap = 0;
    if (j.n == 0) return 0;
    if (j.n < 4 * GATHER_ROWS)
        gather_rows(&j, 0, 1);
    else
        base_pool_share(c->pool, gather_rows, &j);
    return cuda_run_now(c, cuda_launch_unpack, &params, err);
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
    r->sources[u->n] = (row_source){model_rows_key(view, lane, slot), model_rows_value(view, lane, slot)};
    u->places[u->n++] = lane * (uint64_t)r->n_slots + place;
    u->left--;
    return 0;
}

/* A place for a row that the pool does not hold; make_room has seen to it that there is one. */
static int take_place(cuda_rows *r, uint32_t lane, uint32_t *ret, base_err *err)
{
    lane_state *l = &r->lanes[lane];
    if (l->n_free == 0)
        return base_fail(err, BASE_E_NOMEM, "lane %u has more rows than places on the GPU", lane);
    *ret = l->free[--l->n_free];
    return 0;
}

/* The row's place in the pool; a row that is not there is brought from host memory. */
static int find_row(cuda_backend *c, upload *u, const model_rows_view *view, uint32_t lane, uint32_t slot,
    uint32_t *ret, base_err *err)
{
    cuda_rows *r = c->rows;
    uint32_t *place = place_of(r, lane, slot);
    *ret = *place;
    if (*ret != CUDA_NO_SLOT) return 0;
    int rc = take_place(r, lane, ret, err);
    if (!rc) rc = upload_row(c, u, view, lane, slot, *ret, err);
    if (!rc) *place = *ret;
    return rc;
}

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

/* Makes the layer's lists equal the view's; from: ordinals of each that do. */
static int match_lists(
    cuda_backend *c, const model_rows_view *view, uint32_t first, const uint32_t *from, base_err *err)
{
    cuda_rows *r = c->rows;
    bool all_stand = true, patched = false;
    upload u = {0};
    int rc = 0;
    for (uint32_t i = 0; i < view->shape.n_head_kv; i++) {
        const lane_state *l = &r->lanes[first + i];
        const model_lane_list *list = &view->lanes[first + i];
        all_stand = all_stand && from[i] == list->n_rows && l->n_rows == list->n_rows;
        patched = patched || l->patched == c->queue.serial;
        u.left += count_missing(r, list, first + i, from[i]);
    }
    if (all_stand) return 0;
    /* What waits reads the list as it was patched before. */
    if (patched && (rc = cuda_flush(c, err))) return rc;
    for (uint32_t i = 0; i < view->shape.n_head_kv && !rc; i++) {
        lane_state *l = &r->lanes[first + i];
        l->n_runs = l->n_rows = 0; /* in between it is nobody's */
        rc = send_list(c, &u, view, first + i, from[i], err);
        if (!rc) keep_runs(l, &view->lanes[first + i]);
        l->patched = c->queue.serial;
    }
    if (!rc) rc = end_upload(c, &u, err);
    return rc ? rc : send_lengths(c, view, first, err);
}

int cuda_rows_prepare(
    cuda_backend *c, const model_rows_view *view, uint32_t layer, gpu_lists *ret, base_err *err)
{
    cuda_rows *r = c->rows;
    const uint32_t first = layer * view->shape.n_head_kv;
    uint32_t from[LANES_MAX], most = 0;
    int rc = cuda_rows_meet(c, view, err);
    for (uint32_t i = 0; i < view->shape.n_head_kv && !rc; i++) {
        from[i] = common_rows(&r->lanes[first + i], &view->lanes[first + i]);
        if (view->lanes[first + i].n_rows > most) most = view->lanes[first + i].n_rows;
    }
    if (!rc && most > r->cap) {
        memset(from, 0, sizeof from);
        rc = grow_lists(c, most, err);
    }
    if (!rc) rc = make_room(c, view, first, from, err);
    if (!rc) rc = match_lists(c, view, first, from, err);
    if (rc) return rc;
    *ret = (gpu_lists){.pool = r->pool,
        .slots = r->slots,
        .index = r->index,
        .n_rows = r->n_rows,
        .n_slots = r->n_slots,
        .cap = r->cap,
        .first_lane = first,
        .n_lanes = view->shape.n_head_kv,
        .head_dim = view->shape.head_dim};
    return 0;
}

/* ---- back to host memory ---- */

/* Where the last n rows of a lane belong in host memory, and from where of the back arena they will come: keys, then values. */
static void expect_lane(
    cuda_rows *r, const model_rows_view *view, uint32_t lane, uint32_t n, const uint16_t *host)
{
    const model_lane_list *list = &view->lanes[lane];
    const size_t d = view->shape.head_dim;
    uint32_t end = n; /* rows of the runs still to come are [0, end) */
    for (uint32_t i = list->n_runs; i > 0 && end > 0; i--) {
        const model_run *run = &list->runs[i - 1];
        const uint32_t now = run->n < end ? run->n : end, slot = run->slot + run->n - now;
        end -= now;
        base_grow(&r->bringing, &r->cap_bringing, r->n_bringing + 2, sizeof *r->bringing);
        r->bringing[r->n_bringing++] =
            (bringing){model_rows_key(view, lane, slot), host + end * d, now * d * sizeof(uint16_t)};
        r->bringing[r->n_bringing++] =
            (bringing){model_rows_value(view, lane, slot), host + (n + end) * d, now * d * sizeof(uint16_t)};
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
            uint32_t *place = place_of(r, lane, run->slot + k), taken = *place;
            if (taken == CUDA_NO_SLOT) rc = take_place(r, lane, &taken, err);
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
    uint32_t from[LANES_MAX];
    uint16_t *host = NULL;
    uint64_t *places = NULL;
    int rc = cuda_rows_meet(c, view, err);
    if (rc) return rc;
    for (uint32_t i = 0; i < s->n_head_kv; i++) from[i] = view->lanes[first + i].n_rows - n;
    rc = make_room(c, view, first, from, err);
    const size_t places_bytes = (size_t)s->n_head_kv * n * sizeof *places,
                 back_bytes = s->n_head_kv * lane_halves * sizeof *host;
    if (!rc) rc = cuda_reserve(c, places_bytes, 0, back_bytes, err);
    if (rc) return rc;
    cuda_take(&c->arguments, places_bytes, &places, &ret->places);
    cuda_take(&c->back, back_bytes, &host, &ret->copy);
    for (uint32_t i = 0; i < s->n_head_kv && !rc; i++) {
        rc = place_lane(c, view, first + i, n, places + (size_t)i * n, err);
        expect_lane(r, view, first + i, n, host + i * lane_halves);
    }
    ret->pool = r->pool;
    ret->n = n;
    ret->n_lanes = s->n_head_kv;
    ret->head_dim = s->head_dim;
    return rc;
}

void cuda_rows_deliver(cuda_backend *c, bool arrived)
{
    cuda_rows *r = c->rows;
    for (size_t i = 0; r && arrived && i < r->n_bringing; i++)
        memcpy(r->bringing[i].to, r->bringing[i].from, r->bringing[i].n_bytes);
    if (r) r->n_bringing = 0;
}
