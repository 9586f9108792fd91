/*
 * score_rows: who would be attended to, over lists that may name rows of the host tier.
 *
 * Layer by layer: rows that the pool holds are read there, the keys of the others are streamed (packed, one transfer) into
 * memory that is used again for the next layer. Lists of a score are not the live lists, and are not remembered. The decisions
 * are made elsewhere, on the mass that comes back.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cuda/backend.h"
#include "model/rows8.h"

/* Device memory of one call, sized by its largest layer. */
typedef struct space {
    void *data;
    size_t n_bytes;
    uint32_t *slots, *n_rows, *n_heads, *from;
    uint16_t *streamed;
    float *queries, *rest, *tiles, *totals, *mass;
} space;

typedef struct score {
    cuda_backend *c;
    const ops_score_rows_args *a;
    uint32_t group, max_rows, max_tiles, max_streamed; /* of one layer */
    space s;
} score;

static uint32_t ordinal_of(const model_lane_list *list, uint32_t index)
{
    uint32_t ordinal = 0;
    for (uint32_t i = 0; i < list->n_runs; i++) {
        const model_run *run = &list->runs[i];
        if (run->index + run->n > index) return ordinal + (run->index >= index ? 0 : index - run->index);
        ordinal += run->n;
    }
    return ordinal;
}

/* The lane's mass is wanted, and somebody counts: else nothing of it is read. */
static bool is_wanted(const score *j, uint32_t lane)
{
    return j->a->mass[lane] && j->a->rows->lanes[lane].n_rows > 0;
}

/* The pool's place of a row. Of a block in 8 bits the packed keys count, on both backends, whatever the pool still holds. */
static uint32_t find(const score *j, uint32_t lane, uint32_t slot)
{
    const uint8_t *const *packed = (const uint8_t *const *)j->a->rows->packed;
    return packed && packed[slot / MODEL_ROWS_BLOCK] ? CUDA_NO_SLOT : cuda_rows_find(j->c, lane, slot);
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
            for (uint32_t i = 0; i < list->n_runs; i++)
                for (uint32_t k = 0; k < list->runs[i].n; k++)
                    n_streamed += find(j, lane, list->runs[i].slot + k) == CUDA_NO_SLOT;
        }
        if (n_streamed > j->max_streamed) j->max_streamed = n_streamed;
    }
    j->max_tiles = (j->max_rows + GPU_TILE - 1) / GPU_TILE;
}

/* Parts of one allocation. */
static int make_space(score *j, base_err *err)
{
    enum { ALIGN = 256, PARTS = 10 };
    const model_rows_shape *s = &j->a->rows->shape;
    const size_t lanes = s->n_head_kv, n_q = (size_t)j->group * j->a->n_queries;
    const size_t sizes[PARTS] = {lanes * j->max_rows * 4, lanes * 4, lanes * 4, lanes * 4,
        (size_t)j->max_streamed * s->head_dim * 2, lanes * n_q * s->head_dim * 4,
        lanes * n_q * j->max_tiles * 8, lanes * n_q * 8, lanes * j->max_rows * 4, lanes * n_q * 4};
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
    j->s.totals = (float *)(void *)at[7];
    j->s.mass = (float *)(void *)at[8];
    j->s.rest = (float *)(void *)at[9];
    return 0;
}

/* Copies through pinned memory: the stream has it before the next piece is written over it. */
static int put(cuda_backend *c, void *to, const void *from, size_t n_bytes, base_err *err)
{
    int rc = 0;
    for (size_t at = 0; at < n_bytes && !rc;) {
        void *host, *unused;
        const size_t left = n_bytes - at, now = left < c->move.size / 4 ? left : c->move.size / 4;
        rc = cuda_reserve(c, 0, now, 0, err);
        if (rc) break;
        cuda_take(&c->move, now, &host, &unused);
        memcpy(host, (const uint8_t *)from + at, now);
        rc = cuda_check(
            c, cudaMemcpyAsync((uint8_t *)to + at, host, now, cudaMemcpyHostToDevice, c->stream), err);
        at += now;
    }
    return rc;
}

/* The heads of a lane that count, one head's queries behind another's, and what other rows have of theirs; their number. */
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

/* Places of a lane's rows; keys that are not on the device are appended to `keys`. */
static uint32_t collect_rows(const score *j, uint32_t lane, uint32_t *slots, uint16_t *keys, uint32_t n_keys)
{
    const model_rows_view *v = j->a->rows;
    const model_lane_list *list = &v->lanes[lane];
    const uint32_t d = v->shape.head_dim;
    for (uint32_t i = 0; i < list->n_runs; i++)
        for (uint32_t k = 0; k < list->runs[i].n; k++) {
            const uint32_t slot = list->runs[i].slot + k, place = find(j, lane, slot);
            *slots++ = place != CUDA_NO_SLOT ? place : GPU_STREAMED | n_keys;
            if (place != CUDA_NO_SLOT) continue;
            copy_key(j, lane, slot, keys + (size_t)n_keys++ * d);
        }
    return n_keys;
}

/* Host memory of one layer. */
typedef struct layer_space {
    uint32_t *slots, *n_rows, *n_heads, *from;
    uint16_t *keys;
    float *queries, *rest, *mass;
} layer_space;

static int send_layer(score *j, layer_space *l, uint32_t layer, base_err *err)
{
    const model_rows_view *v = j->a->rows;
    const uint32_t d = v->shape.head_dim, n = v->shape.n_head_kv, first = layer * n;
    const size_t q_size = (size_t)j->group * j->a->n_queries * d;
    uint32_t n_keys = 0;
    int rc = 0;
    for (uint32_t h = 0; h < n; h++) {
        const uint32_t lane = first + h;
        l->n_rows[h] = is_wanted(j, lane) ? v->lanes[lane].n_rows : 0;
        l->n_heads[h] = collect_queries(
            j, layer, h, l->queries + h * q_size, l->rest + (size_t)h * j->group * j->a->n_queries);
        l->from[h] = j->a->from ? ordinal_of(&v->lanes[lane], j->a->from[layer]) : 0;
        if (l->n_rows[h]) n_keys = collect_rows(j, lane, l->slots + (size_t)h * j->max_rows, l->keys, n_keys);
    }
    cuda_backend *c = j->c;
    rc = put(c, j->s.slots, l->slots, (size_t)n * j->max_rows * 4, err);
    if (!rc) rc = put(c, j->s.n_rows, l->n_rows, n * sizeof *l->n_rows, err);
    if (!rc) rc = put(c, j->s.n_heads, l->n_heads, n * sizeof *l->n_heads, err);
    if (!rc) rc = put(c, j->s.from, l->from, n * sizeof *l->from, err);
    if (!rc) rc = put(c, j->s.streamed, l->keys, (size_t)n_keys * d * sizeof *l->keys, err);
    if (!rc) rc = put(c, j->s.rest, l->rest, (size_t)n * j->group * j->a->n_queries * sizeof *l->rest, err);
    if (!rc) rc = put(c, j->s.queries, l->queries, n * q_size * sizeof *l->queries, err);
    return rc;
}

static int score_layer(score *j, layer_space *l, uint32_t layer, base_err *err)
{
    const ops_score_rows_args *a = j->a;
    const model_rows_shape *s = &a->rows->shape;
    cuda_backend *c = j->c;
    const size_t mass_bytes = (size_t)s->n_head_kv * j->max_rows * sizeof(float);
    const k_score k = {.lists = {.pool = cuda_rows_pool(c, layer * s->n_head_kv),
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
        .totals = j->s.totals,
        .mass = j->s.mass,
        .group = j->group,
        .n_queries = a->n_queries,
        .max_rows = j->max_rows,
        .max_tiles = j->max_tiles,
        .pool_max = a->pool_max,
        .scale = a->scale};
    int rc = send_layer(j, l, layer, err);
    if (!rc) rc = cuda_check(c, cuda_launch_score_tiles(c->stream, &k), err);
    if (!rc) rc = cuda_check(c, cuda_launch_score_totals(c->stream, &k), err);
    if (!rc) rc = cuda_check(c, cuda_launch_score_mass(c->stream, &k), err);
    if (!rc)
        rc = cuda_check(
            c, cudaMemcpyAsync(l->mass, j->s.mass, mass_bytes, cudaMemcpyDeviceToHost, c->stream), err);
    if (!rc) rc = cuda_finish(c, err);
    for (uint32_t h = 0; h < s->n_head_kv && !rc; h++) {
        const uint32_t lane = layer * s->n_head_kv + h;
        if (is_wanted(j, lane))
            memcpy(a->mass[lane], l->mass + (size_t)h * j->max_rows,
                a->rows->lanes[lane].n_rows * sizeof(float));
    }
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
        .keys = malloc((size_t)j->max_streamed * s->head_dim * 2 + 1),
        .queries = calloc(n * j->group * j->a->n_queries * s->head_dim, 4),
        .rest = calloc(n * j->group * j->a->n_queries, 4),
        .mass = malloc(n * j->max_rows * 4)};
    int rc = 0;
    if (!l.slots || !l.n_rows || !l.n_heads || !l.from || !l.keys || !l.queries || !l.rest || !l.mass)
        rc = base_fail(err, BASE_E_NOMEM, "no memory to score %u rows", j->max_rows);
    for (uint32_t layer = 0; layer < s->n_layer && !rc; layer++) {
        rc = cuda_check_cancel(j->c, err);
        if (!rc) rc = score_layer(j, &l, layer, err);
    }
    free(l.slots);
    free(l.n_rows);
    free(l.n_heads);
    free(l.from);
    free(l.keys);
    free(l.queries);
    free(l.rest);
    free(l.mass);
    return rc;
}

int cuda_op_score_rows(model_ops *ops, const ops_score_rows_args *a, base_err *err)
{
    cuda_backend *c = cuda_of(ops);
    const model_rows_shape *s = &a->rows->shape;
    int rc = cuda_check_heads(s, a->n_head, err);
    if (rc) return rc;
    if (a->n_queries < 1 || a->n_queries > 64)
        return base_fail(
            err, BASE_E_LIMIT, "%u queries were given to score with; 1 to 64 are possible", a->n_queries);
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
