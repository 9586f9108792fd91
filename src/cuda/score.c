/*
 * score_rows: who would be attended to, over lists that may name rows of the host tier.
 *
 * Layer by layer: rows that the pool holds are read there, the keys of the others are streamed (read by the
 * device where they are pinned, else gathered by the pool's threads) into memory that is used again for the
 * next layer. Nobody waits for a layer: the next one is collected while it is computed, and the mass of all
 * comes back together. Lists of a score are not the live lists, and are not remembered. The decisions are
 * made elsewhere, on the mass.
 */
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "cuda/backend.h"
#include "model/ops/check.h"
#include "model/ops/lane_list.h"
#include "model/ops/rows8.h"

enum { GATHER_KEYS = 64 /* that a thread claims */ };

/* Device memory of one call, sized by its largest layer. */
typedef struct space {
    void *data;
    size_t n_bytes;
    uint32_t *slots, *n_rows, *n_heads, *from;
    uint16_t *streamed;
    float *queries, *rest, *tiles;
} space;

/* Mass of a layer that will be in the back arena when the stream is through. */
typedef struct coming {
    uint32_t layer;
    const float *mass; /* [lane of the layer][max_rows]; the device's totals lie behind it */
} coming;

typedef struct score {
    cuda_backend *c;
    const ops_score_rows_args *a;
    uint32_t group, max_rows, max_tiles, max_streamed; /* of one layer */
    space s;
    coming *coming; /* [n_layer] */
    uint32_t n_coming;
} score;

/* The lane's mass is wanted, and somebody counts: else nothing of it is read. */
static bool is_wanted(const score *j, uint32_t lane)
{
    return j->a->mass[lane] && j->a->rows->lanes[lane].n_rows > 0;
}

/*
 * The pool's places of a run's rows, CUDA_NO_SLOT for those that it does not hold. NULL: it holds none. Of a
 * block in 8 bits the packed keys count, on both backends, whatever the pool still holds.
 */
static const uint32_t *places_of(const score *j, uint32_t lane, const model_run *run)
{
    const uint8_t *const *packed = (const uint8_t *const *)j->a->rows->packed;
    return packed && packed[run->slot / MODEL_ROWS_BLOCK] ? NULL : cuda_rows_places(j->c, lane, run->slot);
}

static uint32_t count_streamed(const score *j, uint32_t lane)
{
    const model_lane_list *list = &j->a->rows->lanes[lane];
    uint32_t n = 0;
    for (uint32_t i = 0; i < list->n_runs; i++) {
        const uint32_t *places = places_of(j, lane, &list->runs[i]);
        for (uint32_t k = 0; k < list->runs[i].n; k++) n += !places || places[k] == CUDA_NO_SLOT;
    }
    return n;
}

static void copy_key(const score *j, uint32_t lane, uint32_t slot, uint16_t *to)
{
    const model_rows_view *v = j->a->rows;
    const uint8_t *packed = v->packed ? v->packed[slot / MODEL_ROWS_BLOCK] : NULL;
    if (packed)
        model_rows8_keys(&v->shape, packed, lane, slot % MODEL_ROWS_BLOCK, 1, NULL, to);
    else
        memcpy(to, model_rows_key(v, lane, slot), v->shape.head_dim * sizeof *to);
}

static void measure(score *j)
{
    const model_rows_view *v = j->a->rows;
    for (uint32_t layer = 0; layer < v->shape.n_layer; layer++) {
        uint32_t n_streamed = 0;
        for (uint32_t h = 0; h < v->shape.n_head_kv; h++) {
            const uint32_t lane = layer * v->shape.n_head_kv + h;
            const model_lane_list *list = &v->lanes[lane];
            if (!is_wanted(j, lane)) continue;
            if (list->n_rows > j->max_rows) j->max_rows = list->n_rows;
            n_streamed += count_streamed(j, lane);
        }
        if (n_streamed > j->max_streamed) j->max_streamed = n_streamed;
    }
    j->max_tiles = (j->max_rows + GPU_TILE - 1) / GPU_TILE;
}

/* Parts of one allocation. */
static int make_space(score *j, base_err *err)
{
    enum { ALIGN = 256, PARTS = 8 };
    const model_rows_shape *s = &j->a->rows->shape;
    const size_t lanes = s->n_head_kv, n_q = (size_t)j->group * j->a->n_queries;
    const size_t sizes[PARTS] = {lanes * j->max_rows * 4, lanes * 4, lanes * 4, lanes * 4,
        (size_t)j->max_streamed * s->head_dim * 2, lanes * n_q * s->head_dim * 4,
        lanes * n_q * j->max_tiles * 8, lanes * n_q * 4};
    uint8_t *at[PARTS];
    for (int i = 0; i < PARTS; i++) j->s.n_bytes += (sizes[i] + ALIGN - 1) / ALIGN * ALIGN;
    int rc = cuda_alloc(j->c, &j->s.data, j->s.n_bytes, "rows that are scored", err);
    if (rc) return rc;
    uint8_t *p = j->s.data;
    for (int i = 0; i < PARTS; p += (sizes[i++] + ALIGN - 1) / ALIGN * ALIGN) at[i] = p;
    j->s.slots = (uint32_t *)(void *)at[0];
    j->s.n_rows = (uint32_t *)(void *)at[1];
    j->s.n_heads = (uint32_t *)(void *)at[2];
    j->s.from = (uint32_t *)(void *)at[3];
    j->s.streamed = (uint16_t *)(void *)at[4];
    j->s.queries = (float *)(void *)at[5];
    j->s.tiles = (float *)(void *)at[6];
    j->s.rest = (float *)(void *)at[7];
    return 0;
}

/*
 * Waits for everything; the mass of layers that were begun goes where it belongs, and the arenas are empty.
 */
static int deliver(score *j, base_err *err)
{
    const ops_score_rows_args *a = j->a;
    const uint32_t n = a->rows->shape.n_head_kv;
    int rc = cuda_finish(j->c, err);
    for (uint32_t i = 0; i < j->n_coming && !rc; i++)
        for (uint32_t h = 0; h < n; h++) {
            const uint32_t lane = j->coming[i].layer * n + h;
            if (!is_wanted(j, lane)) continue;
            memcpy(a->mass[lane], j->coming[i].mass + (size_t)h * j->max_rows,
                a->rows->lanes[lane].n_rows * sizeof(float));
        }
    j->n_coming = 0;
    return rc;
}

/* Room in the arenas, delivering what is in them when there is none. */
static int make_way(score *j, size_t move_bytes, size_t back_bytes, base_err *err)
{
    cuda_backend *c = j->c;
    int rc = 0;
    if (!cuda_has_room(&c->move, move_bytes) || !cuda_has_room(&c->back, back_bytes)) rc = deliver(j, err);
    return rc ? rc : cuda_reserve(c, 0, move_bytes, back_bytes, err);
}

/* Copies through pinned memory: `from` may be written over at once. */
static int put(score *j, void *to, const void *from, size_t n_bytes, base_err *err)
{
    cuda_backend *c = j->c;
    int rc = 0;
    for (size_t at = 0; at < n_bytes && !rc;) {
        void *host, *unused;
        const size_t left = n_bytes - at, now = left < c->move.size / 4 ? left : c->move.size / 4;
        rc = make_way(j, now, 0, err);
        if (rc) break;
        const bool all_sent = c->move.copied == c->move.used;
        cuda_take(&c->move, now, &host, &unused);
        if (all_sent) c->move.copied = c->move.used; /* goes where it belongs, not to the arena there too */
        memcpy(host, (const uint8_t *)from + at, now);
        rc = cuda_check(
            c, cudaMemcpyAsync((uint8_t *)to + at, host, now, cudaMemcpyHostToDevice, c->stream), err);
        at += now;
    }
    return rc;
}

/*
 * The heads of a lane that count, one head's queries behind another's, and what other rows have of theirs;
 * their number.
 */
static uint32_t collect_queries(const score *j, uint32_t layer, uint32_t kv_head, float *to, float *rest)
{
    const ops_score_rows_args *a = j->a;
    const size_t size = (size_t)a->n_queries * a->rows->shape.head_dim;
    uint32_t n = 0;
    for (uint32_t h = kv_head * j->group; h < (kv_head + 1) * j->group; h++) {
        const size_t head = (size_t)layer * a->n_head + h;
        if (a->heads && !a->heads[head]) continue;
        memcpy(to + size * n, a->queries + head * size, size * sizeof *to);
        for (uint32_t t = 0; t < a->n_queries; t++)
            rest[n * a->n_queries + t] = a->rest ? a->rest[head * a->n_queries + t] : -INFINITY;
        n++;
    }
    return n;
}

/* ---- keys that the device lacks ---- */

typedef struct key_source {
    uint32_t lane, slot;
} key_source;

/* A piece of them: where each lies, for the device; what it cannot read is copied beside them. */
typedef struct key_job {
    const score *score;
    const key_source *from;
    uint64_t *keys;
    uint16_t *staged;
    const uint16_t *device_staged;
    uint32_t n;
    _Atomic uint32_t next;
} key_job;

static void find_keys(void *arg, int thread, int n_threads)
{
    (void)thread;
    (void)n_threads;
    key_job *g = arg;
    const model_rows_view *v = g->score->a->rows;
    const size_t d = v->shape.head_dim;
    for (uint32_t first; (first = atomic_fetch_add(&g->next, GATHER_KEYS)) < g->n;)
        for (uint32_t i = first; i < g->n && i < first + GATHER_KEYS; i++) {
            const key_source *k = &g->from[i];
            const bool is_packed = v->packed && v->packed[k->slot / MODEL_ROWS_BLOCK];
            g->keys[i] = is_packed ? 0 : cuda_pinned_at(g->score->c, model_rows_key(v, k->lane, k->slot));
            if (g->keys[i]) continue;
            g->keys[i] = (uint64_t)(uintptr_t)(g->device_staged + i * d);
            copy_key(g->score, k->lane, k->slot, g->staged + i * d);
        }
}

/* In pieces, each on its way while the next is looked up. */
static int send_keys(score *j, const key_source *from, uint32_t n, base_err *err)
{
    cuda_backend *c = j->c;
    const uint32_t d = j->a->rows->shape.head_dim;
    const size_t row = d * sizeof(uint16_t) + sizeof(uint64_t);
    int rc = 0;
    for (uint32_t at = 0, now; at < n && !rc; at += now) {
        const uint32_t most = (uint32_t)(c->move.size / 8 / row);
        key_job g = {.score = j, .from = from + at};
        const uint64_t *device_keys;
        now = n - at < most ? n - at : most;
        g.n = now;
        if ((rc = make_way(j, now * row, 0, err))) break;
        cuda_take(&c->move, now * row, &g.staged, &g.device_staged);
        g.keys = (uint64_t *)(void *)(g.staged + (size_t)now * d);
        device_keys = (const uint64_t *)(const void *)(g.device_staged + (size_t)now * d);
        if (now < 4 * GATHER_KEYS)
            find_keys(&g, 0, 1);
        else
            base_pool_share(c->pool, find_keys, &g);
        const k_bring params = {
            .keys = device_keys, .pool = j->s.streamed + (size_t)at * d, .n = now, .head_dim = d};
        rc = cuda_run_now(c, cuda_launch_bring, &params, err);
    }
    return rc;
}

/* Places of a lane's rows; those that are not on the device are appended to `keys`. */
static uint32_t collect_rows(
    const score *j, uint32_t lane, uint32_t *slots, key_source *keys, uint32_t n_keys)
{
    const model_lane_list *list = &j->a->rows->lanes[lane];
    for (uint32_t i = 0; i < list->n_runs; i++) {
        const model_run *run = &list->runs[i];
        const uint32_t *places = places_of(j, lane, run);
        for (uint32_t k = 0; k < run->n; k++) {
            const bool is_here = places && places[k] != CUDA_NO_SLOT;
            *slots++ = is_here ? places[k] : GPU_STREAMED | n_keys;
            if (!is_here) keys[n_keys++] = (key_source){lane, run->slot + k};
        }
    }
    return n_keys;
}

/* ---- layers ---- */

/* Host memory of one layer. */
typedef struct layer_space {
    uint32_t *slots, *n_rows, *n_heads, *from;
    key_source *keys;
    float *queries, *rest;
} layer_space;

static int send_layer(score *j, layer_space *l, uint32_t layer, base_err *err)
{
    const model_rows_view *v = j->a->rows;
    const uint32_t n = v->shape.n_head_kv, first = layer * n;
    const size_t q_size = (size_t)j->group * j->a->n_queries * v->shape.head_dim;
    uint32_t n_keys = 0;
    int rc = 0;
    for (uint32_t h = 0; h < n; h++) {
        const uint32_t lane = first + h;
        l->n_rows[h] = is_wanted(j, lane) ? v->lanes[lane].n_rows : 0;
        l->n_heads[h] = collect_queries(
            j, layer, h, l->queries + h * q_size, l->rest + (size_t)h * j->group * j->a->n_queries);
        l->from[h] = j->a->from ? model_lane_ordinal(&v->lanes[lane], j->a->from[layer]) : 0;
        if (l->n_rows[h]) n_keys = collect_rows(j, lane, l->slots + (size_t)h * j->max_rows, l->keys, n_keys);
    }
    rc = put(j, j->s.slots, l->slots, (size_t)n * j->max_rows * 4, err);
    if (!rc) rc = put(j, j->s.n_rows, l->n_rows, n * sizeof *l->n_rows, err);
    if (!rc) rc = put(j, j->s.n_heads, l->n_heads, n * sizeof *l->n_heads, err);
    if (!rc) rc = put(j, j->s.from, l->from, n * sizeof *l->from, err);
    if (!rc) rc = send_keys(j, l->keys, n_keys, err);
    if (!rc) rc = put(j, j->s.rest, l->rest, (size_t)n * j->group * j->a->n_queries * sizeof *l->rest, err);
    if (!rc) rc = put(j, j->s.queries, l->queries, n * q_size * sizeof *l->queries, err);
    return rc;
}

static int score_layer(score *j, layer_space *l, uint32_t layer, base_err *err)
{
    const ops_score_rows_args *a = j->a;
    const model_rows_shape *s = &a->rows->shape;
    cuda_backend *c = j->c;
    const size_t n_mass = (size_t)s->n_head_kv * j->max_rows,
                 n_totals = (size_t)s->n_head_kv * j->group * a->n_queries * 2,
                 back_bytes = (n_mass + n_totals) * sizeof(float);
    k_score k = {.lists = {.pool = cuda_rows_pool(c, layer * s->n_head_kv),
                     .streamed = j->s.streamed,
                     .slots = j->s.slots,
                     .n_rows = j->s.n_rows,
                     .n_slots = cuda_rows_n_slots(c),
                     .cap = j->max_rows,
                     .streamed_step = s->head_dim,
                     .n_lanes = s->n_head_kv,
                     .head_dim = s->head_dim},
        .queries = j->s.queries,
        .n_heads = j->s.n_heads,
        .from = j->s.from,
        .rest = j->s.rest,
        .tiles = j->s.tiles,
        .group = j->group,
        .n_queries = a->n_queries,
        .max_rows = j->max_rows,
        .max_tiles = j->max_tiles,
        .pool_max = a->pool_max,
        .scale = a->scale};
    int rc = send_layer(j, l, layer, err);
    if (!rc) rc = make_way(j, 0, back_bytes, err);
    if (rc) return rc;
    coming *next = &j->coming[j->n_coming++];
    next->layer = layer;
    cuda_take(&c->back, back_bytes, &next->mass, &k.mass);
    k.totals = k.mass + n_mass;
    rc = cuda_check(c, cuda_launch_score_tiles(c->stream, &k), err);
    if (!rc) rc = cuda_check(c, cuda_launch_score_totals(c->stream, &k), err);
    if (!rc) rc = cuda_check(c, cuda_launch_score_mass(c->stream, &k), err);
    return rc;
}

static int score_layers(score *j, base_err *err)
{
    const model_rows_shape *s = &j->a->rows->shape;
    const size_t n = s->n_head_kv;
    layer_space l = {.slots = calloc(n * j->max_rows, 4),
        .n_rows = malloc(n * 4),
        .n_heads = malloc(n * 4),
        .from = malloc(n * 4),
        .keys = malloc(((size_t)j->max_streamed + 1) * sizeof *l.keys),
        .queries = calloc(n * j->group * j->a->n_queries * s->head_dim, 4),
        .rest = calloc(n * j->group * j->a->n_queries, 4)};
    int rc = 0;
    j->coming = malloc(s->n_layer * sizeof *j->coming);
    if (!j->coming || !l.slots || !l.n_rows || !l.n_heads || !l.from || !l.keys || !l.queries || !l.rest)
        rc = base_fail(err, BASE_E_NOMEM, "no memory to score %u rows", j->max_rows);
    for (uint32_t layer = 0; layer < s->n_layer && !rc; layer++) {
        rc = cuda_check_cancel(j->c, err);
        if (!rc) rc = score_layer(j, &l, layer, err);
    }
    const int done = deliver(j, rc ? NULL : err); /* in any case: the device still reads what is freed here */
    if (!rc) rc = done;
    free(j->coming);
    free(l.slots);
    free(l.n_rows);
    free(l.n_heads);
    free(l.from);
    free(l.keys);
    free(l.queries);
    free(l.rest);
    return rc;
}

int cuda_op_score_rows(model_ops *ops, const ops_score_rows_args *a, base_err *err)
{
    cuda_backend *c = cuda_of(ops);
    const model_rows_shape *s = &a->rows->shape;
    int rc = cuda_check_heads(s, a->n_head, err);
    if (!rc) rc = ops_check_score_rows(a, err);
    if (rc) return rc;
    score j = {.c = c, .a = a, .group = a->n_head / s->n_head_kv};
    rc = cuda_finish(c, err);
    if (!rc) rc = cuda_rows_meet(c, a->rows, err);
    if (rc) return rc;
    measure(&j);
    if (j.max_rows) {
        rc = make_space(&j, err);
        if (!rc) rc = score_layers(&j, err);
        if (j.s.data) cuda_free(c, j.s.data, j.s.n_bytes);
    }
    const int done = cuda_rows_done(c, a->rows, rc ? NULL : err);
    return rc ? rc : done;
}
