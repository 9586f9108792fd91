/*
 * Evicted rows that tokens choose for themselves (ops.h, visit). A work unit is a lane and some tokens: all
 * their scores first, so that a sketch is read once for them, then token by token the softmax, the choice and
 * attention over what is chosen. What a unit keeps fits into a core's cache. Where there are fewer units than
 * threads, scores are spread by rows before.
 *
 * Rows are walked in columns: groups of 16 slots of which at least one is evicted.
 */
#include <math.h>
#include <string.h>

#include "model/cpu/cpu.h"

enum {
    GROUP = MODEL_SKETCH_ROWS,
    BLOCK_GROUPS = MODEL_ROWS_BLOCK / GROUP,
    WORD = 64, /* slots of a mean */
    MOST = MODEL_ROWS_TILE,
    MOST_STRIDE = MOST + GROUP, /* a kernel writes some scores more than it has rows */
    SCORE_FLOATS = 160 << 10,   /* of a unit, more than a token's only if they fit */
    TOKENS_MOST = 8,
    PIECE = 32, /* columns that a thread scores at once where scores are spread */
    SOON = 4,   /* columns that are asked from memory ahead of the one at hand */
};

/* A lane's columns: which 16 slots, and the evicted ones among them. */
typedef struct columns {
    uint32_t *at;   /* slot / 16 */
    uint16_t *rows; /* bits */
    uint32_t n;
} columns;

typedef struct visit_job {
    cpu_ops *cpu;
    const ops_visit_args *args;
    uint32_t group; /* query heads a lane */
    uint32_t tokens, n_units;
    uint32_t room; /* tokens whose queries and scores a thread has room for */
    uint32_t most_columns;
    columns lanes[CPU_VISIT_LANES];
    float *scores; /* [kv head][n * group][16 * most_columns], already there; NULL: a unit makes its own */
    _Atomic uint32_t next;
    _Atomic int cancelled;
} visit_job;

/* A thread's working space. */
typedef struct space {
    float *scores, *mass; /* [tokens * group][16 * columns], [16 * columns] */
    cpu_sketch_query *queries;
    uint32_t *bits, *places; /* [16 * columns] masses that may be among the heaviest, and where they stand */
    float *left_out;         /* [columns] by means' blocks, and by columns the largest mass */
    float *q, *turned, *s, *o, *others;
} space;

static size_t space_floats(const visit_job *j)
{
    const size_t n_q = (size_t)j->room * j->group, d = j->args->visit->rows->shape.head_dim,
                 width = (size_t)GROUP * j->most_columns;
    return n_q * width + 3 * width + j->most_columns +
           n_q * (2 * d + sizeof(cpu_sketch_query) / sizeof(float)) + j->group * (MOST_STRIDE + d) + d + 64;
}

static space space_of(const visit_job *j, float *at)
{
    const size_t n_q = (size_t)j->room * j->group, d = j->args->visit->rows->shape.head_dim,
                 width = (size_t)GROUP * j->most_columns;
    space w;
    w.scores = at;
    w.mass = w.scores + n_q * width;
    w.bits = (uint32_t *)(void *)(w.mass + width);
    w.places = w.bits + width;
    w.left_out = w.mass + 3 * width;
    w.q = w.left_out + j->most_columns;
    w.turned = w.q + n_q * d;
    w.s = w.turned + n_q * d;
    w.o = w.s + (size_t)j->group * MOST_STRIDE;
    w.others = w.o + j->group * d;
    w.queries = (cpu_sketch_query *)(void *)(w.others + d);
    return w;
}

/* --- scores --------------------------------------------------------------------------------------------- */

static const float *query_of(const visit_job *j, uint32_t kv_head, uint32_t token)
{
    return cpu_row(j->args->q, token) + (size_t)kv_head * j->group * j->args->visit->rows->shape.head_dim;
}

static void load_queries(const visit_job *j, uint32_t kv_head, uint32_t t0, uint32_t t1, float *q)
{
    const size_t width = (size_t)j->group * j->args->visit->rows->shape.head_dim;
    for (uint32_t t = t0; t < t1; t++, q += width) memcpy(q, query_of(j, kv_head, t), width * sizeof *q);
}

/* By keys, of a column; rows that are not evicted stand in for none. */
static void score_keys(const visit_job *j, uint32_t lane, uint32_t at, uint32_t rows, const float *q,
    uint32_t n_q, float *s, size_t stride)
{
    const model_rows_view *v = j->args->visit->rows;
    const uint32_t d = v->shape.head_dim, first = (uint32_t)__builtin_ctz(rows);
    const uint16_t *keys[GROUP];
    float scores[GROUP];
    for (uint32_t r = 0; r < GROUP; r++)
        keys[r] = model_rows_key(v, lane, at * GROUP + (rows >> r & 1 ? r : first));
    for (uint32_t m = 0; m < n_q; m++) {
        j->cpu->kernels.scores(
            keys, GROUP, q + (size_t)m * d, 1, d, d, j->args->scale, (cpu_ahead){0}, scores, GROUP);
        for (uint32_t r = 0; r < GROUP; r++) s[m * stride + r] = rows >> r & 1 ? scores[r] : -INFINITY;
    }
}

/* Queries as rows of a group of tokens are read: turned, where those are folded. */
static const float *turn(
    const ops_turns *turns, uint32_t group, const float *q, uint32_t n_q, uint32_t d, float *turned)
{
    if (!turns || !cpu_gap_of(turns, group)) return q;
    for (uint32_t m = 0; m < n_q; m++)
        cpu_turn_head(turns, group, q + (size_t)m * d, d, turned + (size_t)m * d);
    return turned;
}

/* A column's codes; NULL where its rows are weighed by their keys, and behind the end. */
static const uint8_t *codes_of(const visit_job *j, uint32_t kv_head, uint32_t i)
{
    const columns *c = &j->lanes[kv_head];
    const model_visit *visit = j->args->visit;
    const uint32_t d = visit->rows->shape.head_dim,
                   lane = j->args->layer * visit->rows->shape.n_head_kv + kv_head;
    const uint8_t *sketch = i < c->n ? visit->sketches[c->at[i] / BLOCK_GROUPS] : NULL;
    if (!sketch) return NULL;
    return model_sketch_of(sketch, d, lane).codes +
           (size_t)(c->at[i] % BLOCK_GROUPS) * (d / 8) * MODEL_SKETCH_PIECE;
}

/* Of the n_q queries in w->q with columns [from, to) of a lane. */
static void score_columns(const visit_job *j, uint32_t kv_head, const space *w, uint32_t n_q, uint32_t from,
    uint32_t to, float *s, size_t stride)
{
    const cpu_kernels *k = &j->cpu->kernels;
    const model_visit *visit = j->args->visit;
    const ops_turns *turns = cpu_turns_of(j->args->turns, j->args->layer);
    const columns *c = &j->lanes[kv_head];
    const uint32_t d = visit->rows->shape.head_dim,
                   lane = j->args->layer * visit->rows->shape.n_head_kv + kv_head;
    const float *q = w->q;
    for (uint32_t i = from, block = UINT32_MAX, gap = 0; i < to; i++) {
        const uint32_t group = c->at[i] * GROUP / MODEL_ROWS_GROUP, own_block = c->at[i] / BLOCK_GROUPS,
                       own_gap = turns ? cpu_gap_of(turns, group) : 0;
        const uint8_t *sketch = visit->sketches[own_block];
        if (own_gap != gap) q = turn(turns, group, w->q, n_q, d, w->turned);
        if (!sketch) {
            score_keys(j, lane, c->at[i], c->rows[i], q, n_q, s + (size_t)i * GROUP, stride);
            gap = own_gap;
            continue;
        }
        const model_sketch of = model_sketch_of(sketch, d, lane);
        if (own_block != block || own_gap != gap)
            k->sketch_queries(q, n_q, of.middle, of.step, d, j->args->scale, w->queries);
        block = own_block;
        gap = own_gap;
        k->sketch_scores(codes_of(j, kv_head, i), codes_of(j, kv_head, i + SOON), d, c->rows[i], w->queries,
            n_q, s + (size_t)i * GROUP, stride);
    }
}

/* --- the choice ----------------------------------------------------------------------------------------- */

/* Numbers that are not negative ascend with their bits. */
static uint32_t bits_of(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

/*
 * The bits of the last mass that is taken when the n largest of `some` (more than n) are, and into *room how
 * many of those equal to it are: digit by digit, by counting.
 */
static uint32_t find_cut(const uint32_t *some, uint32_t n_some, uint32_t n, uint32_t *room)
{
    enum { DIGITS = 3, DIGIT = 11, VALUES = 1 << DIGIT };
    uint32_t cut = 0;
    for (uint32_t shift = DIGITS * DIGIT; shift;) {
        const uint32_t above = shift;
        uint32_t steps[VALUES] = {0}, b = VALUES - 1;
        shift -= DIGIT;
        for (uint32_t i = 0; i < n_some; i++)
            if ((uint64_t)some[i] >> above == cut) steps[some[i] >> shift & (VALUES - 1)]++;
        for (; b && steps[b] < n; b--) n -= steps[b];
        cut = cut << DIGIT | b;
    }
    *room = n;
    return cut;
}

/*
 * A mass that is not above that of the last row taken: each column's heaviest row has at least as much, in
 * as many columns as rows are taken.
 */
static uint32_t find_least(const columns *c, uint32_t most, const float *largest, uint32_t *bits)
{
    uint32_t room;
    for (uint32_t i = 0; i < c->n; i++) bits[i] = bits_of(largest[i]);
    return c->n > most ? find_cut(bits, c->n, most, &room) : 0;
}

/*
 * Places of the `most` heaviest of a lane's evicted rows, ascending; their mass becomes 0. w->left_out: each
 * column's largest mass. Returns how many.
 */
static uint32_t choose(const columns *c, const space *w, uint32_t most, uint32_t *places)
{
    uint32_t n_some = 0, room = most, cut = 0, n = 0;
    if (!most) return 0;
    const uint32_t least = find_least(c, most, w->left_out, w->bits);
    for (uint32_t i = 0; i < c->n; i++) {
        if (bits_of(w->left_out[i]) < least) continue;
        for (uint32_t r = 0; r < GROUP; r++) {
            const uint32_t bits = bits_of(w->mass[i * GROUP + r]);
            w->bits[n_some] = bits;
            w->places[n_some] = i * GROUP + r;
            n_some += bits >= least && c->rows[i] >> r & 1;
        }
    }
    if (n_some > most) cut = find_cut(w->bits, n_some, most, &room);
    for (uint32_t i = 0; i < n_some && n < most; i++) {
        if (w->bits[i] < cut || (w->bits[i] == cut && !room)) continue;
        room -= w->bits[i] == cut;
        places[n++] = w->places[i];
    }
    for (uint32_t i = 0; i < n; i++) w->mass[places[i]] = 0;
    return n;
}

/* --- a token -------------------------------------------------------------------------------------------- */

/* The mean of what nobody chose: by blocks of 64 slots, weighted by the mass that they have left. */
static void mean_of_others(
    const cpu_kernels *k, const columns *c, const space *w, const float *means, uint32_t d, float *ret)
{
    uint32_t n = 0, *words = w->places;
    float total = 0;
    for (uint32_t i = 0; i < c->n; n++) {
        const uint32_t word = words[n] = c->at[i] / (WORD / GROUP);
        float sums[GROUP] = {0}, sum = 0;
        for (; i < c->n && c->at[i] / (WORD / GROUP) == word; i++)
            for (uint32_t r = 0; r < GROUP; r++) sums[r] += w->mass[i * GROUP + r];
        for (uint32_t r = 0; r < GROUP; r++) sum += sums[r];
        w->left_out[n] = sum;
        total += sum;
    }
    for (uint32_t i = 0; i < n && total > 0; i++) w->left_out[i] /= total;
    k->mix_rows(means, words, w->left_out, total > 0 ? n : 0, d, ret);
}

/* Rows that are attended to soon. */
static void ask_for(const model_rows_view *v, uint32_t lane, const uint32_t *slots, uint32_t n)
{
    enum { LINE = 64 / sizeof(uint16_t) };
    const uint32_t d = v->shape.head_dim;
    for (uint32_t i = 0; i < n; i++) {
        const uint16_t *key = model_rows_key(v, lane, slots[i]);
        for (uint32_t k = 0; k < d; k += LINE) __builtin_prefetch(key + k, 0, 2);
    }
}

/* Attention of a lane's heads over `n` rows, into w->o; maxima and sums into m and l. */
static void attend_chosen(const visit_job *j, space *w, uint32_t lane, const uint32_t *slots, uint32_t n,
    const float *q, float *m, float *l)
{
    const cpu_kernels *k = &j->cpu->kernels;
    const model_rows_view *v = j->args->visit->rows;
    const ops_turns *turns = cpu_turns_of(j->args->turns, j->args->layer);
    const uint32_t d = v->shape.head_dim;
    const uint16_t *keys[MOST], *values[MOST];
    for (uint32_t i = 0; i < n; i++) {
        keys[i] = model_rows_key(v, lane, slots[i]);
        values[i] = keys[i] + (size_t)MODEL_ROWS_BLOCK * d;
    }
    for (uint32_t from = 0, to; from < n; from = to) { /* a stretch of one gap */
        const uint32_t group = slots[from] / MODEL_ROWS_GROUP;
        for (to = turns ? from + 1 : n; to < n; to++)
            if (cpu_gap_of(turns, slots[to] / MODEL_ROWS_GROUP) != cpu_gap_of(turns, group)) break;
        k->scores(keys + from, to - from, turn(turns, group, q, j->group, d, w->turned), j->group, d, d,
            j->args->scale, (cpu_ahead){values + from, to - from}, w->s + from, MOST_STRIDE);
    }
    for (uint32_t g = 0; g < j->group; g++)
        k->softmax(w->s + (size_t)g * MOST_STRIDE, 0, n, (n + GROUP - 1) / GROUP * GROUP, &m[g], &l[g]);
    k->values(values, n, w->s, MOST_STRIDE, j->group, d, (cpu_ahead){0}, w->o);
}

/* Its scores are there, [group][stride]; they become numerators. */
static void visit_token(const visit_job *j, space *w, uint32_t kv_head, uint32_t t, float *s, size_t stride)
{
    const cpu_kernels *k = &j->cpu->kernels;
    const ops_visit_args *a = j->args;
    const model_visit *visit = a->visit;
    const columns *c = &j->lanes[kv_head];
    const uint32_t d = visit->rows->shape.head_dim, group = j->group, width = c->n * GROUP,
                   lane = a->layer * visit->rows->shape.n_head_kv + kv_head;
    const size_t place = (size_t)kv_head * a->n + t;
    uint32_t *chosen = visit->chosen + place * visit->most;
    float max[CPU_VISIT_GROUP], out_of[CPU_VISIT_GROUP], m[CPU_VISIT_GROUP], l[CPU_VISIT_GROUP];
    const float *live = cpu_row(a->sums, t) + 2 * (size_t)kv_head * group;
    float taken[CPU_VISIT_GROUP] = {0};
    cpu_share shares[CPU_VISIT_GROUP] = {{0}};
    for (uint32_t g = 0; g < group; g++) {
        shares[g] = (cpu_share){.max = live[2 * g], .sum = live[2 * g + 1]};
        k->softmax(s + g * stride, 0, width, width, &max[g], &out_of[g]);
        k->merge(&shares[g].max, &shares[g].sum, NULL, max[g], out_of[g], NULL, 0);
        shares[g].part_max = max[g];
    }
    k->masses(s, stride, group, width, shares, w->mass, w->left_out);
    const uint32_t n = choose(c, w, visit->most, chosen);
    visit->n_chosen[place] = n;
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t g = 0; g < group; g++) taken[g] += s[g * stride + chosen[i]];
    for (uint32_t g = 0; g < group; g++) out_of[g] = out_of[g] > taken[g] ? out_of[g] - taken[g] : 0;
    for (uint32_t i = 0; i < n; i++) chosen[i] = c->at[chosen[i] / GROUP] * GROUP + chosen[i] % GROUP;
    ask_for(visit->rows, lane, chosen, n);
    const float *means = visit->means ? visit->means[kv_head] : NULL;
    if (means) mean_of_others(k, c, w, means, d, w->others);
    attend_chosen(j, w, lane, chosen, n, query_of(j, kv_head, t), m, l);
    for (uint32_t g = 0; g < group; g++) {
        float *out = cpu_row(a->out, t) + ((size_t)kv_head * group + g) * d, all_max = live[2 * g],
              all_sum = live[2 * g + 1], *o = w->o + g * d;
        for (uint32_t i = 0; i < d; i++) out[i] *= all_sum;
        k->merge(&all_max, &all_sum, out, m[g], l[g], o, d);
        for (uint32_t i = 0; means && i < d; i++) o[i] = w->others[i] * out_of[g];
        if (means) k->merge(&all_max, &all_sum, out, max[g], out_of[g], o, d);
        for (uint32_t i = 0; i < d; i++) out[i] /= all_sum;
    }
}

/* --- the run -------------------------------------------------------------------------------------------- */

static uint32_t claim(visit_job *j)
{
    if (cpu_is_cancelled(j->cpu)) j->cancelled = 1;
    return j->cancelled ? UINT32_MAX : atomic_fetch_add(&j->next, 1);
}

/* Scores of all tokens with some columns. */
static void score_run(void *arg, int thread, int n_threads)
{
    (void)n_threads;
    visit_job *j = arg;
    const uint32_t n_kv = j->args->visit->rows->shape.n_head_kv, n = j->args->n,
                   pieces = (j->most_columns + PIECE - 1) / PIECE;
    const size_t stride = (size_t)GROUP * j->most_columns;
    space w = space_of(j, j->cpu->scratch[thread].data);
    for (uint32_t unit; (unit = claim(j)) < n_kv * pieces;) {
        const uint32_t kv_head = unit / pieces, from = unit % pieces * PIECE, n_columns = j->lanes[kv_head].n,
                       to = n_columns < from + PIECE ? n_columns : from + PIECE;
        if (from >= n_columns) continue;
        load_queries(j, kv_head, 0, n, w.q);
        score_columns(
            j, kv_head, &w, n * j->group, from, to, j->scores + kv_head * n * j->group * stride, stride);
    }
}

static void visit_run(void *arg, int thread, int n_threads)
{
    (void)n_threads;
    visit_job *j = arg;
    const uint32_t n_kv = j->args->visit->rows->shape.n_head_kv, n = j->args->n;
    const size_t stride = (size_t)GROUP * j->most_columns;
    space w = space_of(j, j->cpu->scratch[thread].data);
    for (uint32_t unit; (unit = claim(j)) < j->n_units;) {
        const uint32_t kv_head = unit % n_kv, t0 = unit / n_kv * j->tokens,
                       t1 = n - t0 < j->tokens ? n : t0 + j->tokens;
        if (!j->lanes[kv_head].n) continue;
        float *s = w.scores;
        if (j->scores) {
            s = j->scores + (kv_head * n + t0) * j->group * stride;
        } else {
            load_queries(j, kv_head, t0, t1, w.q);
            score_columns(j, kv_head, &w, (t1 - t0) * j->group, 0, j->lanes[kv_head].n, s, stride);
        }
        for (uint32_t t = t0; t < t1 && !cpu_is_cancelled(j->cpu); t++)
            visit_token(j, &w, kv_head, t, s + (t - t0) * j->group * stride, stride);
    }
}

/* The columns of a lane's evicted rows; room for all groups of 16 slots. */
static columns find_columns(const uint64_t *evicted, uint32_t n_slots, uint32_t *at, uint16_t *rows)
{
    columns c = {at, rows, 0};
    for (uint32_t w = 0; evicted && w * WORD < n_slots; w++)
        for (uint32_t k = 0; evicted[w] && k < WORD / GROUP; k++) {
            const uint16_t bits = (uint16_t)(evicted[w] >> k * GROUP);
            if (!bits) continue;
            c.at[c.n] = w * (WORD / GROUP) + k;
            c.rows[c.n++] = bits;
        }
    return c;
}

int cpu_op_visit(model_ops *ops, const ops_visit_args *a, base_err *err)
{
    cpu_ops *cpu = (cpu_ops *)ops;
    const model_visit *visit = a->visit;
    const model_rows_shape *shape = &visit->rows->shape;
    int rc = cpu_check_heads(shape, a->n_head, err);
    if (rc < 0 || a->n == 0) return rc;
    visit_job j = {.cpu = cpu, .args = a, .group = a->n_head / shape->n_head_kv};
    if (visit->most > MOST || shape->n_head_kv > CPU_VISIT_LANES || j.group > CPU_VISIT_GROUP)
        return base_fail(err, BASE_E_UNSUPPORTED,
            "%u rows that visit a token, %u lanes a layer, %u heads a lane; up to %d, %d, %d are supported",
            visit->most, shape->n_head_kv, j.group, MOST, CPU_VISIT_LANES, CPU_VISIT_GROUP);
    const size_t n_groups = (visit->n_slots + WORD - 1) / WORD * (WORD / GROUP), n_kv = shape->n_head_kv,
                 columns_bytes = (n_kv * n_groups * (sizeof(uint32_t) + sizeof(uint16_t)) + 63) / 64 * 64;
    const bool is_spread = a->n * n_kv < (size_t)cpu->n_threads;
    const size_t shared =
        columns_bytes + (is_spread ? a->n * a->n_head * n_groups * GROUP * sizeof(float) : 0);
    rc = cpu_scratch_reserve(cpu, 0, shared, err);
    if (rc < 0) return rc;
    uint32_t *at = cpu->shared.data;
    uint16_t *rows = (uint16_t *)(at + n_kv * n_groups);
    for (uint32_t h = 0; h < n_kv; h++) {
        j.lanes[h] = find_columns(visit->evicted[h], visit->n_slots, at + h * n_groups, rows + h * n_groups);
        j.most_columns = j.lanes[h].n > j.most_columns ? j.lanes[h].n : j.most_columns;
        if (!j.lanes[h].n) memset(visit->n_chosen + (size_t)h * a->n, 0, a->n * sizeof *visit->n_chosen);
    }
    if (!j.most_columns) return 0;
    const size_t fit = SCORE_FLOATS / ((size_t)j.group * GROUP * j.most_columns);
    j.tokens = is_spread || fit < 1 ? 1 : fit > TOKENS_MOST ? TOKENS_MOST : (uint32_t)fit;
    j.room = is_spread ? a->n : j.tokens;
    j.n_units = shape->n_head_kv * ((a->n + j.tokens - 1) / j.tokens);
    rc = cpu_scratch_reserve(cpu, space_floats(&j) * sizeof(float), shared, err);
    if (rc < 0) return rc;
    if (is_spread) j.scores = (float *)(void *)((uint8_t *)cpu->shared.data + columns_bytes);
    if (j.scores) {
        base_pool_share(cpu->pool, score_run, &j);
        j.next = 0;
    }
    base_pool_share(cpu->pool, visit_run, &j);
    return j.cancelled || cpu_is_cancelled(cpu) ? cpu_cancelled(err) : 0;
}
