/*
 * Attention and scoring over lists of rows. A work unit is a lane, a block of tokens (with all G query heads
 * of the lane, so that a row is read once) and a range of tiles of 256 ordinals; for every tile there is one
 * state (maximum, denominator, output), and states are merged in ascending order of tiles, whoever computed
 * them.
 *
 * Small batches spread the tiles over the threads and merge afterwards; large ones spread the tokens. Same
 * arithmetic.
 */
#include <math.h>
#include <string.h>

#include "model/cpu/cpu.h"
#include "model/ops/check.h"
#include "model/ops/lane_list.h"
#include "model/ops/rows8.h"

enum {
    KEEP_FLOATS = 2 << 20, /* numerators of a lane that scoring keeps */
    AHEAD_QUERIES = 16,    /* with more, multiplying takes longer than reading */
    AHEAD = 32,            /* rows, within one pass */
    TILE = MODEL_ROWS_TILE,
    QUERIES = 96,     /* query rows of a unit, unless one token has more */
    SPLIT_TOKENS = 8, /* batches up to this spread tiles */
    FEW_TILES = 24,   /* fewer are merged by one thread */
};
#define NO_GROUP UINT32_MAX /* whose row is not turned: behind all of them */

/* Walks a list tile by tile; going back starts again. */
typedef struct cursor {
    const model_lane_list *list;
    uint32_t run, ordinal; /* the run that holds `ordinal`, its first */
} cursor;

/* Where the rows of one tile lie. */
typedef struct tile_rows {
    uint32_t unit; /* which the tile was found for */
    bool asked;    /* for its keys */
    const uint16_t *keys[TILE], *values[TILE];
    uint32_t n;
    /* of each row's token (MODEL_ROWS_GROUP), where the view folds any; NO_GROUP: a copy */
    uint32_t groups[TILE];
    uint16_t *unpacked; /* scoring: [TILE][head_dim] for keys that are in 8 bits */
    model_f16_row_fn *f16_row;
} tile_rows;

/* n keys of one run, from its k-th row on. */
static const uint16_t *find_keys(const model_rows_view *v, uint32_t lane, const model_run *run, uint32_t k,
    uint32_t n, const tile_rows *ret)
{
    const uint32_t slot = run->slot + k;
    const uint8_t *packed = v->packed ? v->packed[slot / MODEL_ROWS_BLOCK] : NULL;
    if (!packed) return model_rows_key(v, lane, slot);
    uint16_t *keys = ret->unpacked + (size_t)ret->n * v->shape.head_dim;
    model_rows8_keys(&v->shape, packed, lane, slot % MODEL_ROWS_BLOCK, n, ret->f16_row, keys);
    return keys;
}

static void find_tile(cursor *c, const model_rows_view *v, uint32_t lane, uint32_t tile, tile_rows *ret)
{
    const model_lane_list *list = &v->lanes[lane];
    uint32_t first = tile * TILE;
    if (c->list != list || c->ordinal > first) *c = (cursor){.list = list};
    while (c->run < list->n_runs && c->ordinal + list->runs[c->run].n <= first)
        c->ordinal += list->runs[c->run++].n;
    ret->n = 0;
    uint32_t ordinal = c->ordinal;
    for (uint32_t i = c->run; i < list->n_runs && ret->n < TILE; ordinal += list->runs[i++].n) {
        const model_run *run = &list->runs[i];
        uint32_t from = ordinal < first ? first - ordinal : 0;
        const uint32_t n = run->n - from < TILE - ret->n ? run->n - from : TILE - ret->n;
        const bool is_packed = v->packed && v->packed[run->slot / MODEL_ROWS_BLOCK];
        const size_t to_value = is_packed ? 0 : model_rows_to_value(v, run->slot),
                     pitch = is_packed ? v->shape.head_dim : model_rows_pitch(v, run->slot);
        const uint16_t *key = find_keys(v, lane, run, from, n, ret);
        const bool is_turned = v->turned_from && run->slot >= v->turned_from;
        for (uint32_t k = 0; k < n && v->n_gaps; k++)
            ret->groups[ret->n + k] = is_turned ? NO_GROUP : (run->index + from + k) / MODEL_ROWS_GROUP;
        for (uint32_t k = 0; k < n; k++, ret->n++) {
            ret->keys[ret->n] = key + k * pitch;
            ret->values[ret->n] = ret->keys[ret->n] + to_value;
        }
    }
}

/* Token index of an ordinal. */
static uint32_t index_of(const model_lane_list *list, uint32_t ordinal)
{
    for (uint32_t i = 0; i < list->n_runs; ordinal -= list->runs[i++].n)
        if (ordinal < list->runs[i].n) return list->runs[i].index + ordinal;
    return UINT32_MAX;
}

static uint32_t round_up(uint32_t n, uint32_t to)
{
    return (n + to - 1) / to * to;
}

/* ---- attention ---- */

/* Per query row: maximum, denominator, output. */
typedef struct state {
    float *m, *l, *o;
} state;

static size_t state_floats(size_t n_q, size_t head_dim)
{
    return n_q * (2 + head_dim);
}

static state state_at(float *p, size_t n_q)
{
    return (state){p, p + n_q, p + 2 * n_q};
}

typedef struct attention_job {
    cpu_ops *cpu;
    const ops_attention_args *args;
    uint32_t group;    /* query heads a lane */
    uint32_t tokens;   /* a unit's */
    uint32_t n_blocks; /* of tokens */
    uint32_t n_tiles;  /* of the longest list of this layer; 0: units are not split by tiles */
    float *states;     /* split: [kv head][tile] of state_floats(n * group) */
    _Atomic uint32_t next;
    _Atomic int cancelled;
} attention_job;

/* A thread's working space. */
typedef struct space {
    tile_rows tiles[2], *rows, *ahead; /* the tile at hand, and the one behind it where a unit knows that */
    float *q, *s;
    uint16_t *turned; /* [TILE][head_dim] keys of rows that are folded */
    float *kept;      /* scoring: KEEP_FLOATS, then the tiles' maxima */
    state tile, sum;
    cursor cursor;
} space;

static size_t space_floats(size_t n_q, size_t head_dim)
{
    return n_q * (head_dim + TILE) + 2 * state_floats(n_q, head_dim) + TILE * head_dim / 2 + 64;
}

static void space_carve(space *w, float *p, size_t n_q, size_t head_dim)
{
    w->s = p;
    w->q = w->s + n_q * TILE;
    w->tile = state_at(w->q + n_q * head_dim, n_q);
    w->sum = state_at(w->tile.m + state_floats(n_q, head_dim), n_q);
    w->turned = (uint16_t *)(void *)(w->sum.m + state_floats(n_q, head_dim));
    w->kept = w->sum.m + state_floats(n_q, head_dim) + TILE * head_dim / 2;
    w->cursor = (cursor){0};
    w->rows = &w->tiles[0];
    w->ahead = &w->tiles[1];
    for (int i = 0; i < 2; i++) {
        w->tiles[i].unit = UINT32_MAX;
        w->tiles[i].asked = false;
        w->tiles[i].n = 0;
        w->tiles[i].unpacked = NULL;
    }
}

/*
 * Scores of a tile's rows under the n_q queries in w->q, [n_q][TILE] into s. turns: NULL where none is folded; a row that
 * is has a turned key, so that a batch of any size multiplies the same numbers.
 */
static void score_tile(const cpu_kernels *k, const ops_turns *turns, const space *w, uint32_t n_q,
    uint32_t head_dim, float scale, cpu_ahead ahead, float *s)
{
    const tile_rows *rows = w->rows;
    const uint16_t *keys[TILE];
    for (uint32_t i = 0; i < rows->n; i++) {
        keys[i] = rows->keys[i];
        if (!turns || !cpu_gap_of(turns, rows->groups[i])) continue;
        cpu_turn_key(k, turns, rows->groups[i], keys[i], head_dim, w->turned + (size_t)i * head_dim);
        keys[i] = w->turned + (size_t)i * head_dim;
    }
    k->scores(keys, rows->n, w->q, n_q, head_dim, head_dim, scale, ahead, s, TILE);
}

/* The ordinals that batch token t sees in a list. */
static void visible(
    const ops_attention_args *a, const model_lane_list *list, uint32_t t, uint32_t *lo, uint32_t *hi)
{
    uint32_t own = list->n_rows - a->n + t;
    *hi = own + 1;
    *lo = 0;
    if (!a->window) return;
    uint32_t index = index_of(list, own);
    if (index >= a->window) *lo = model_lane_ordinal(list, index - a->window + 1);
}

/*
 * The rows of a tile that a pass prefetches itself: all from the AHEAD-th on. The pass before it has
 * prefetched the first ones.
 */
static cpu_ahead own_rows(const uint16_t *const *rows, uint32_t n)
{
    return (cpu_ahead){rows + AHEAD, n > AHEAD ? n - AHEAD : 0};
}

/*
 * One tile's state for tokens [t0, t1) of a lane; their queries are in w->q, its rows in w->rows. A few
 * queries wait for memory: the tile's values are on their way while its keys are multiplied, and the keys in
 * w->ahead while its values are.
 */
static void attend_tile(
    const attention_job *j, space *w, uint32_t lane, uint32_t t0, uint32_t t1, uint32_t tile, state out)
{
    const ops_attention_args *a = j->args;
    const cpu_kernels *k = &j->cpu->kernels;
    const model_lane_list *list = &a->rows->lanes[lane];
    uint32_t head_dim = a->rows->shape.head_dim, n_q = (t1 - t0) * j->group, base = tile * TILE;
    const tile_rows *rows = w->rows;
    cpu_ahead first = {0}, then = {0};
    if (n_q <= AHEAD_QUERIES) {
        first = rows->asked ? (cpu_ahead){rows->values, rows->n} : own_rows(rows->keys, rows->n);
        then = w->ahead->n ? (cpu_ahead){w->ahead->keys, w->ahead->n} : own_rows(rows->values, rows->n);
        w->ahead->asked = true;
    }
    score_tile(k, cpu_turns_of(a->turns, a->layer), w, n_q, head_dim, a->scale, first, w->s);
    for (uint32_t t = t0; t < t1; t++) {
        uint32_t lo, hi;
        visible(a, list, t, &lo, &hi);
        lo = lo > base ? lo - base : 0;
        hi = hi > base ? hi - base : 0;
        if (hi > rows->n) hi = rows->n;
        for (uint32_t g = 0; g < j->group; g++) {
            uint32_t m = (t - t0) * j->group + g;
            k->softmax(w->s + (size_t)m * TILE, lo, hi, round_up(rows->n, CPU_LANES), &out.m[m], &out.l[m]);
        }
    }
    k->values(rows->values, rows->n, w->s, TILE, n_q, head_dim, then, out.o);
}

static void load_queries(const attention_job *j, space *w, uint32_t kv_head, uint32_t t0, uint32_t t1)
{
    uint32_t width = j->group * j->args->rows->shape.head_dim;
    for (uint32_t t = t0; t < t1; t++)
        memcpy(w->q + (size_t)(t - t0) * width, cpu_row(j->args->q, t) + (size_t)kv_head * width,
            width * sizeof(float));
}

static void state_clear(state s, uint32_t n_q, uint32_t head_dim)
{
    for (uint32_t m = 0; m < n_q; m++) s.m[m] = -INFINITY;
    memset(s.l, 0, n_q * sizeof *s.l);
    memset(s.o, 0, (size_t)n_q * head_dim * sizeof *s.o);
}

/* Of a lane's heads for n tokens: the sinks, where there are some, are merged before any tile. */
static void state_start(const attention_job *j, state s, uint32_t kv_head, uint32_t n)
{
    const ops_attention_args *a = j->args;
    state_clear(s, n * j->group, a->rows->shape.head_dim);
    for (uint32_t m = 0; a->sinks && m < n * j->group; m++) {
        s.m[m] = cpu_floats(a->sinks)[kv_head * j->group + m % j->group];
        s.l[m] = 1;
    }
}

static void state_merge(
    const cpu_kernels *k, state s, uint32_t m, state from, uint32_t from_m, uint32_t head_dim)
{
    k->merge(&s.m[m], &s.l[m], s.o + (size_t)m * head_dim, from.m[from_m], from.l[from_m],
        from.o + (size_t)from_m * head_dim, head_dim);
}

static void put_sums(const ops_attention_args *a, uint32_t t, uint32_t head, float max, float sum)
{
    if (!a->sums.buffer) return;
    float *to = cpu_row(a->sums, t) + 2 * (size_t)head;
    to[0] = max;
    to[1] = sum;
}

static void put_output(const attention_job *j, state s, uint32_t kv_head, uint32_t t0, uint32_t t1)
{
    uint32_t head_dim = j->args->rows->shape.head_dim;
    for (uint32_t t = t0; t < t1; t++)
        for (uint32_t g = 0; g < j->group; g++) {
            uint32_t m = (t - t0) * j->group + g;
            const float *o = s.o + (size_t)m * head_dim;
            float *out = cpu_row(j->args->out, t) + (size_t)(kv_head * j->group + g) * head_dim;
            for (uint32_t i = 0; i < head_dim; i++) out[i] = o[i] / s.l[m];
            put_sums(j->args, t, kv_head * j->group + g, s.m[m], s.l[m]);
        }
}

/* A block of tokens over all its tiles. */
static void run_block(const attention_job *j, space *w, uint32_t unit)
{
    const ops_attention_args *a = j->args;
    const model_rows_shape *shape = &a->rows->shape;
    /* Late blocks see most rows: they go first, so that no thread ends long after the others. */
    uint32_t kv_head = unit % shape->n_head_kv, block = j->n_blocks - 1 - unit / shape->n_head_kv;
    uint32_t lane = a->layer * shape->n_head_kv + kv_head;
    uint32_t t0 = block * j->tokens, t1 = a->n - t0 < j->tokens ? a->n : t0 + j->tokens,
             n_q = (t1 - t0) * j->group;
    uint32_t lo, hi, unused;
    visible(a, &a->rows->lanes[lane], t0, &lo, &unused);
    visible(a, &a->rows->lanes[lane], t1 - 1, &unused, &hi);
    load_queries(j, w, kv_head, t0, t1);
    state_start(j, w->sum, kv_head, t1 - t0);
    for (uint32_t tile = lo / TILE; tile * TILE < hi; tile++) {
        if (cpu_is_cancelled(j->cpu)) return;
        find_tile(&w->cursor, a->rows, lane, tile, w->rows);
        attend_tile(j, w, lane, t0, t1, tile, w->tile);
        for (uint32_t m = 0; m < n_q; m++)
            state_merge(&j->cpu->kernels, w->sum, m, w->tile, m, shape->head_dim);
    }
    put_output(j, w->sum, kv_head, t0, t1);
}

static float *split_state(const attention_job *j, uint32_t kv_head, uint32_t tile)
{
    size_t n_q = (size_t)j->args->n * j->group;
    return j->states +
           ((size_t)kv_head * j->n_tiles + tile) * state_floats(n_q, j->args->rows->shape.head_dim);
}

/* The first tile that any token of the batch reads: those before hold nothing of its window. */
static uint32_t first_tile(const ops_attention_args *a, uint32_t lane)
{
    uint32_t lo, unused;
    visible(a, &a->rows->lanes[lane], 0, &lo, &unused);
    return lo / TILE;
}

/* The rows of a unit's tile; none where its list ends before, or the window begins behind. */
static void find_unit(const attention_job *j, space *w, uint32_t unit, tile_rows *ret)
{
    const ops_attention_args *a = j->args;
    const uint32_t n_head_kv = a->rows->shape.n_head_kv, tile = unit % j->n_tiles;
    if (ret->unit == unit) return;
    ret->unit = unit;
    ret->asked = false;
    ret->n = 0;
    if (unit >= n_head_kv * j->n_tiles) return;
    const uint32_t lane = a->layer * n_head_kv + unit / j->n_tiles;
    if (tile * TILE >= a->rows->lanes[lane].n_rows || tile < first_tile(a, lane)) return;
    find_tile(&w->cursor, a->rows, lane, tile, ret);
}

/* All tokens over one tile; `next` is the unit that this thread does then, if it knows. */
static void run_split(const attention_job *j, space *w, uint32_t unit, uint32_t next)
{
    const ops_attention_args *a = j->args;
    const uint32_t kv_head = unit / j->n_tiles, tile = unit % j->n_tiles,
                   lane = a->layer * a->rows->shape.n_head_kv + kv_head;
    tile_rows *found = w->ahead;
    w->ahead = w->rows;
    w->rows = found;
    find_unit(j, w, unit, w->rows);
    find_unit(j, w, next, w->ahead);
    if (w->rows->n == 0) return;
    load_queries(j, w, kv_head, 0, a->n);
    attend_tile(j, w, lane, 0, a->n, tile, state_at(split_state(j, kv_head, tile), (size_t)a->n * j->group));
}

/* After all tiles: the query rows of the batch, each merged by one thread. */
static void merge_split(void *arg, int thread, int n_threads)
{
    (void)thread;
    (void)n_threads;
    attention_job *j = arg;
    const ops_attention_args *a = j->args;
    uint32_t head_dim = a->rows->shape.head_dim, n_head_kv = a->rows->shape.n_head_kv, n_q = a->n * j->group;
    for (uint32_t i; (i = atomic_fetch_add(&j->next, 1)) < n_head_kv * n_q;) {
        uint32_t kv_head = i / n_q, m = i % n_q, t = m / j->group, g = m % j->group;
        uint32_t lane = a->layer * n_head_kv + kv_head;
        const model_lane_list *list = &a->rows->lanes[lane];
        float max = -INFINITY, sum = 0, o[CPU_HEAD_DIM_MAX] = {0};
        state s = {&max, &sum, o};
        if (a->sinks) max = cpu_floats(a->sinks)[kv_head * j->group + g], sum = 1;
        for (uint32_t tile = first_tile(a, lane); tile * TILE < list->n_rows; tile++)
            state_merge(&j->cpu->kernels, s, 0, state_at(split_state(j, kv_head, tile), n_q), m, head_dim);
        float *out = cpu_row(a->out, t) + (size_t)(kv_head * j->group + g) * head_dim;
        for (uint32_t k = 0; k < head_dim; k++) out[k] = o[k] / sum;
        put_sums(a, t, kv_head * j->group + g, max, sum);
    }
}

static uint32_t claim(attention_job *j)
{
    return atomic_fetch_add(&j->next, 1);
}

static void attention_run(void *arg, int thread, int n_threads)
{
    attention_job *j = arg;
    const model_rows_shape *shape = &j->args->rows->shape;
    uint32_t n_units = shape->n_head_kv * (j->n_tiles ? j->n_tiles : j->n_blocks);
    space w;
    space_carve(&w, j->cpu->scratch[thread].data, (size_t)j->tokens * j->group, shape->head_dim);
    uint32_t next;
    for (uint32_t unit = claim(j); !j->cancelled && unit < n_units; unit = next) {
        /* Not towards the end: a thread would claim work that an idle one could do. */
        const bool early = j->n_tiles && j->next + 2u * (uint32_t)n_threads < n_units;
        if (cpu_is_cancelled(j->cpu)) j->cancelled = 1;
        next = early ? claim(j) : n_units;
        if (j->n_tiles)
            run_split(j, &w, unit, next);
        else
            run_block(j, &w, unit);
        if (!early) next = claim(j);
    }
}

int cpu_check_heads(const model_rows_shape *s, uint32_t n_head, base_err *err)
{
    if (s->head_dim % CPU_LANES || s->head_dim == 0 || s->head_dim > CPU_HEAD_DIM_MAX)
        return base_fail(err, BASE_E_UNSUPPORTED,
            "heads of %u dimensions: a multiple of %d up to %d is supported", s->head_dim, CPU_LANES,
            CPU_HEAD_DIM_MAX);
    if (s->n_head_kv == 0 || n_head == 0 || n_head % s->n_head_kv)
        return base_fail(
            err, BASE_E_UNSUPPORTED, "%u query heads do not share %u key heads evenly", n_head, s->n_head_kv);
    return 0;
}

int cpu_op_attention(model_ops *ops, const ops_attention_args *a, base_err *err)
{
    cpu_ops *cpu = (cpu_ops *)ops;
    const model_rows_shape *shape = &a->rows->shape;
    int rc = cpu_check_heads(shape, a->n_head, err);
    if (rc < 0 || a->n == 0) return rc;
    attention_job j = {.cpu = cpu, .args = a, .group = a->n_head / shape->n_head_kv};
    uint32_t most = 0;
    for (uint32_t h = 0; h < shape->n_head_kv; h++) {
        uint32_t n_rows = a->rows->lanes[a->layer * shape->n_head_kv + h].n_rows;
        if (n_rows < a->n)
            return base_fail(
                err, BASE_E_LIMIT, "a lane's list of %u rows cannot hold a batch of %u", n_rows, a->n);
        most = n_rows > most ? n_rows : most;
    }
    if ((rc = ops_check_sinks(ops, a, err))) return rc;
    size_t shared = 0;
    if (a->n <= SPLIT_TOKENS) {
        j.tokens = a->n;
        j.n_tiles = (most + TILE - 1) / TILE;
        shared = shape->n_head_kv * j.n_tiles * state_floats((size_t)a->n * j.group, shape->head_dim) *
                 sizeof(float);
    } else {
        j.tokens = QUERIES / j.group ? QUERIES / j.group : 1;
        /* Fewer tokens a unit rather than idle threads. */
        while (j.tokens > 2 && shape->n_head_kv * a->n < 2 * (uint32_t)cpu->n_threads * j.tokens)
            j.tokens /= 2;
        j.n_blocks = (a->n + j.tokens - 1) / j.tokens;
    }
    rc = cpu_scratch_reserve(
        cpu, space_floats((size_t)j.tokens * j.group, shape->head_dim) * sizeof(float), shared, err);
    if (rc < 0) return rc;
    j.states = cpu->shared.data;
    base_pool_share(cpu->pool, attention_run, &j);
    if (j.n_tiles && !j.cancelled) {
        j.next = 0;
        if (j.n_tiles < FEW_TILES) /* done before another thread is awake */
            merge_split(&j, 0, 1);
        else
            base_pool_share(cpu->pool, merge_split, &j);
    }
    return j.cancelled || cpu_is_cancelled(cpu) ? cpu_cancelled(err) : 0;
}

/* ---- score_rows ---- */

typedef struct score_job {
    cpu_ops *cpu;
    const ops_score_rows_args *args;
    uint32_t group;
    size_t unpacked_at; /* floats into a thread's scratch */
    _Atomic uint32_t next;
    _Atomic int cancelled;
} score_job;

static bool head_counts(const score_job *j, uint32_t layer, uint32_t head)
{
    return !j->args->heads || j->args->heads[(size_t)layer * j->args->n_head + head];
}

/* Queries of the lane's heads that count, one head's after another's; returns the number of heads. */
static uint32_t load_score_queries(const score_job *j, uint32_t lane, float *q)
{
    const ops_score_rows_args *a = j->args;
    const model_rows_shape *shape = &a->rows->shape;
    uint32_t layer = lane / shape->n_head_kv, first = lane % shape->n_head_kv * j->group, n = 0;
    size_t size = (size_t)a->n_queries * shape->head_dim;
    for (uint32_t h = first; h < first + j->group; h++) {
        if (!head_counts(j, layer, h)) continue;
        memcpy(q + size * n++, a->queries + ((size_t)layer * a->n_head + h) * size, size * sizeof *q);
    }
    return n;
}

/*
 * What rows that are not listed have in the denominators: the first that is merged, in the order of
 * load_score_queries.
 */
static void load_rest(const score_job *j, uint32_t lane, state sum)
{
    const ops_score_rows_args *a = j->args;
    const model_rows_shape *shape = &a->rows->shape;
    uint32_t layer = lane / shape->n_head_kv, first = lane % shape->n_head_kv * j->group, m = 0;
    for (uint32_t h = first; a->rest && h < first + j->group; h++) {
        if (!head_counts(j, layer, h)) continue;
        for (uint32_t t = 0; t < a->n_queries; t++, m++) {
            const float rest = a->rest[((size_t)layer * a->n_head + h) * a->n_queries + t];
            if (rest == -INFINITY) continue;
            sum.m[m] = rest;
            sum.l[m] = 1;
        }
    }
}

/*
 * Numerators of one tile's softmax over ordinals from lo on, for n_q query rows, in s; its maxima and
 * denominators in w->tile.
 */
static void score_lane_tile(
    const score_job *j, space *w, uint32_t lane, uint32_t tile, uint32_t lo, uint32_t n_q, float *s)
{
    const ops_score_rows_args *a = j->args;
    const cpu_kernels *k = &j->cpu->kernels;
    uint32_t head_dim = a->rows->shape.head_dim;
    const tile_rows *rows = w->rows;
    find_tile(&w->cursor, a->rows, lane, tile, w->rows);
    const cpu_ahead ahead = n_q <= AHEAD_QUERIES ? own_rows(rows->keys, rows->n) : (cpu_ahead){0};
    const ops_turns *turns = cpu_turns_of(a->turns, lane / a->rows->shape.n_head_kv);
    score_tile(k, turns, w, n_q, head_dim, a->scale, ahead, s);
    lo = lo > tile * TILE ? lo - tile * TILE : 0;
    for (uint32_t m = 0; m < n_q; m++)
        k->softmax(
            s + (size_t)m * TILE, lo, rows->n, round_up(rows->n, CPU_LANES), &w->tile.m[m], &w->tile.l[m]);
}

/*
 * Maxima and denominators over all rows first, then the mass. In between a tile's numerators are kept when
 * the whole lane's fit into the scratch, else computed again: the same bits.
 */
static void score_lane(const score_job *j, space *w, uint32_t lane)
{
    const ops_score_rows_args *a = j->args;
    const cpu_kernels *k = &j->cpu->kernels;
    float *mass = a->mass[lane];
    if (!mass) return;
    uint32_t n_rows = a->rows->lanes[lane].n_rows, n_tiles = (n_rows + TILE - 1) / TILE;
    uint32_t n_heads = load_score_queries(j, lane, w->q), n_q = n_heads * a->n_queries;
    size_t size = (size_t)n_q * TILE;
    bool keep = n_tiles * size <= KEEP_FLOATS;
    float *maxima = w->kept + KEEP_FLOATS; /* [tile][query row] */
    memset(mass, 0, n_rows * sizeof *mass);
    uint32_t lo =
        a->from ? model_lane_ordinal(&a->rows->lanes[lane], a->from[lane / a->rows->shape.n_head_kv]) : 0;
    if (n_heads == 0 || lo >= n_rows) return;

    state_clear(w->sum, n_q, 0);
    load_rest(j, lane, w->sum);
    for (uint32_t tile = lo / TILE; tile < n_tiles; tile++) {
        if (cpu_is_cancelled(j->cpu)) return;
        score_lane_tile(j, w, lane, tile, lo, n_q, keep ? w->kept + tile * size : w->s);
        memcpy(maxima + (size_t)tile * n_q, w->tile.m, n_q * sizeof *maxima);
        for (uint32_t m = 0; m < n_q; m++) state_merge(k, w->sum, m, w->tile, m, 0);
    }

    float share = 1.0f / (float)n_heads / (a->pool_max ? 1.0f : (float)a->n_queries);
    for (uint32_t tile = lo / TILE; tile < n_tiles; tile++) {
        if (cpu_is_cancelled(j->cpu)) return;
        uint32_t n = n_rows - tile * TILE < TILE ? n_rows - tile * TILE : TILE;
        const float *s = keep ? w->kept + tile * size : w->s;
        if (!keep) score_lane_tile(j, w, lane, tile, lo, n_q, w->s);
        for (uint32_t h = 0; h < n_heads; h++) {
            float pooled[TILE] = {0};
            for (uint32_t m = h * a->n_queries; m < (h + 1) * a->n_queries; m++)
                k->mass(s + (size_t)m * TILE, round_up(n, CPU_LANES), maxima[(size_t)tile * n_q + m],
                    w->sum.m[m], w->sum.l[m], a->pool_max, pooled);
            for (uint32_t i = 0; i < n; i++) mass[tile * TILE + i] += pooled[i] * share;
        }
    }
}

static void score_run(void *arg, int thread, int n_threads)
{
    (void)n_threads;
    score_job *j = arg;
    const model_rows_shape *shape = &j->args->rows->shape;
    uint32_t n_lanes = model_rows_lanes(shape);
    space w;
    space_carve(&w, j->cpu->scratch[thread].data, (size_t)j->group * j->args->n_queries, shape->head_dim);
    w.rows->unpacked = (uint16_t *)((float *)j->cpu->scratch[thread].data + j->unpacked_at);
    w.rows->f16_row = j->cpu->kernels.f16_row;
    for (uint32_t lane; !j->cancelled && (lane = atomic_fetch_add(&j->next, 1)) < n_lanes;) {
        if (cpu_is_cancelled(j->cpu)) j->cancelled = 1;
        score_lane(j, &w, lane);
    }
}

int cpu_op_score_rows(model_ops *ops, const ops_score_rows_args *a, base_err *err)
{
    cpu_ops *cpu = (cpu_ops *)ops;
    int rc = cpu_check_heads(&a->rows->shape, a->n_head, err);
    if (!rc) rc = ops_check_score_rows(a, err);
    if (rc < 0) return rc;
    score_job j = {.cpu = cpu, .args = a, .group = a->n_head / a->rows->shape.n_head_kv};
    size_t n_q = (size_t)j.group * a->n_queries, most = 0;
    for (uint32_t lane = 0; lane < model_rows_lanes(&a->rows->shape); lane++)
        most = a->rows->lanes[lane].n_rows > most ? a->rows->lanes[lane].n_rows : most;
    size_t n_floats = space_floats(n_q, a->rows->shape.head_dim) + KEEP_FLOATS + (most / TILE + 1) * n_q;
    j.unpacked_at = n_floats;
    if (a->rows->packed) n_floats += TILE * a->rows->shape.head_dim / 2;
    rc = cpu_scratch_reserve(cpu, n_floats * sizeof(float), 0, err);
    if (rc < 0) return rc;
    base_pool_share(cpu->pool, score_run, &j);
    return j.cancelled || cpu_is_cancelled(cpu) ? cpu_cancelled(err) : 0;
}
