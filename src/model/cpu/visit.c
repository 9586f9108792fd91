/*
 * Evicted rows that tokens choose for themselves (ops.h, visit). A work unit is a lane and some tokens: all
 * their scores first, so that a sketch is read once for them, then token by token the softmax, the choice and
 * attention over what is chosen. What a unit keeps fits into a core's cache. Where there are fewer units than
 * threads, scores are spread by rows before.
 *
 * Rows are walked in columns: groups of 16 slots of which at least one is evicted. Where a lane has more pages of 64
 * slots than a token opens, each token weighs the pages first, by sketches of the mean keys of their evicted rows, and
 * then the columns of those that it opens; a page that stays closed counts as so many rows of its mean key. What a token
 * costs does not grow with the session but for that.
 */
#include <math.h>
#include <string.h>

#include "model/cpu/cpu.h"

enum {
    GROUP = MODEL_SKETCH_ROWS,
    BLOCK_GROUPS = MODEL_ROWS_BLOCK / GROUP,
    BLOCK_TURNS = MODEL_ROWS_BLOCK / MODEL_ROWS_GROUP,
    WORD = 64, /* slots of a mean */
    MOST = MODEL_ROWS_TILE,
    MOST_STRIDE = MOST + GROUP, /* a kernel writes some scores more than it has rows */
    SCORE_FLOATS = 160 << 10,   /* of a unit, more than a token's only if they fit */
    TOKENS_MOST = 8,
    PIECE = 32,      /* columns that a thread scores at once where scores are spread */
    SOON = 4,        /* columns that are asked from memory ahead of the one at hand */
    MEANS_SOON = 16, /* the same for pages' mean values */
};

/* Columns that are weighed row by row: which 16 slots, and the evicted ones among them. */
typedef struct columns {
    uint32_t *at;   /* slot / 16 */
    uint16_t *rows; /* bits */
    uint32_t n;
    /* A token's own, where it chooses among pages. */
    float *weights; /* [group][all pages] scores of mean keys, then numerators: 0 of those that it opens */
    /* [group][2] of those that stay closed: what their numerators' score is less by, their sum. */
    float *closed;
} columns;

typedef struct visit_job {
    cpu_ops *cpu;
    const ops_visit_args *args;
    uint32_t group;           /* query heads a lane */
    uint32_t tokens, n_units; /* tokens of a unit: of all scores, or of the pages' alone */
    uint32_t room, scored;    /* tokens whose queries, and whose scores, a thread has room for */
    uint32_t most_columns;    /* that a token weighs */
    columns lanes[CPU_VISIT_LANES];
    uint32_t most_pages; /* of a lane; 0: no token chooses among pages */
    columns *own;  /* tokens choose pages: by kv head and token where `scores` are there, else by thread */
    float *scores; /* [kv head][n * group][16 * most_columns], already there; NULL: a unit makes its own */
    _Atomic uint32_t next;
    _Atomic int cancelled;
} visit_job;

/* A thread's working space. */
typedef struct space {
    float *scores, *mass; /* [scored * group][16 * columns], [16 * columns] */
    cpu_sketch_query *queries;
    uint32_t *bits, *places; /* [16 * columns] masses that may be among the heaviest, and where they stand */
    float *left_out;         /* [columns, chapters] by means, and by columns the largest mass */
    float *q, *turned, *s, *o, *others;
    uint16_t *keys; /* [MOST][head_dim] of chosen rows that are folded */
} space;

/* Floats between two heads' scores of pages: a kernel writes some more than there are. */
static size_t page_stride(const visit_job *j)
{
    return (j->most_pages + GROUP - 1) / GROUP * GROUP + GROUP;
}

/* Masses of a token's rows, or of its lane's pages. */
static size_t mass_floats(const visit_job *j)
{
    const size_t width = (size_t)GROUP * j->most_columns;
    return width > page_stride(j) ? width : page_stride(j);
}

/* Of the means that come in: of opened pages, or of all and what masses tells of them by columns. */
static size_t left_out_floats(const visit_job *j)
{
    return j->most_columns + j->most_pages + page_stride(j) / GROUP;
}

static size_t space_floats(const visit_job *j)
{
    const size_t n_q = (size_t)j->room * j->group, d = j->args->visit->rows->shape.head_dim,
                 width = (size_t)GROUP * j->most_columns;
    return (size_t)j->scored * j->group * width + 3 * mass_floats(j) + left_out_floats(j) +
           n_q * (2 * d + sizeof(cpu_sketch_query) / sizeof(float)) + j->group * (MOST_STRIDE + d) + d +
           MOST * d / 2 + 64;
}

static space space_of(const visit_job *j, float *at)
{
    const size_t n_q = (size_t)j->room * j->group, d = j->args->visit->rows->shape.head_dim,
                 n_masses = mass_floats(j);
    space w;
    w.scores = at;
    w.mass = w.scores + (size_t)j->scored * j->group * GROUP * j->most_columns;
    w.bits = (uint32_t *)(void *)(w.mass + n_masses);
    w.places = w.bits + n_masses;
    w.left_out = w.mass + 3 * n_masses;
    w.q = w.left_out + left_out_floats(j);
    w.turned = w.q + n_q * d;
    w.s = w.turned + n_q * d;
    w.o = w.s + (size_t)j->group * MOST_STRIDE;
    w.others = w.o + j->group * d;
    w.keys = (uint16_t *)(void *)(w.others + d);
    w.queries = (cpu_sketch_query *)(void *)(w.others + d + MOST * d / 2);
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
static const float *turn(const cpu_kernels *k, const ops_turns *turns, uint32_t group, const float *q,
    uint32_t n_q, uint32_t d, float *turned)
{
    if (!turns || !cpu_gap_of(turns, group)) return q;
    k->turn_queries(q, n_q, cpu_floats(turns->table) + (size_t)group * turns->n_rot, turns->n_rot,
        turns->pairing, d, turned);
    return turned;
}

/* A column's codes; NULL where its rows are weighed by their keys, and behind the end. */
static const uint8_t *codes_of(const visit_job *j, uint32_t kv_head, const columns *c, uint32_t i)
{
    const model_visit *visit = j->args->visit;
    const uint32_t d = visit->rows->shape.head_dim,
                   lane = j->args->layer * visit->rows->shape.n_head_kv + kv_head;
    const uint8_t *sketch = i < c->n ? visit->sketches[c->at[i] / BLOCK_GROUPS] : NULL;
    if (!sketch) return NULL;
    return model_sketch_of(sketch, d, lane - visit->n_unsketched).codes +
           (size_t)(c->at[i] % BLOCK_GROUPS) * (d / 8) * MODEL_SKETCH_PIECE;
}

/* The n_q queries in w->q as a block's sketch takes them, into w->queries; its rows are of that group's gap. */
static void sketch_queries(
    const visit_job *j, const model_sketch *of, uint32_t group, const space *w, uint32_t n_q)
{
    const cpu_kernels *k = &j->cpu->kernels;
    const ops_turns *turns = cpu_turns_of(j->args->turns, j->args->layer);
    const uint32_t d = j->args->visit->rows->shape.head_dim;
    if (turns && cpu_gap_of(turns, group) && k->sketch_turned &&
        k->sketch_turned(w->q, n_q, cpu_floats(turns->table) + (size_t)group * turns->n_rot, turns->n_rot,
            turns->pairing, of->middle, of->step, d, j->args->scale, w->queries))
        return;
    const float *q = turn(k, turns, group, w->q, n_q, d, w->turned);
    k->sketch_queries(q, n_q, of->middle, of->step, d, j->args->scale, w->queries);
}

/* A block's sketch is looked into, by whichever thread. */
static void tell_opened(const model_visit *visit, uint32_t kv_head, uint32_t block)
{
    if (!visit->opened) return;
    uint64_t *word = visit->opened + (size_t)kv_head * visit->n_opened + block / 64;
    const uint64_t bit = UINT64_C(1) << block % 64;
    if (!(__atomic_load_n(word, __ATOMIC_RELAXED) & bit)) __atomic_fetch_or(word, bit, __ATOMIC_RELAXED);
}

/* The first group of tokens of that one's block with the same gap: its angles are theirs, and more likely in a cache. */
static uint32_t first_alike(const ops_turns *turns, uint32_t group)
{
    uint32_t first = group / BLOCK_TURNS * BLOCK_TURNS;
    while (cpu_gap_of(turns, first) != cpu_gap_of(turns, group)) first++;
    return first;
}

/* Asks memory for the middles and steps of the next block behind column i, and for its angles. */
static void ask_for_scales(
    const visit_job *j, const ops_turns *turns, uint32_t part, const columns *c, uint32_t i)
{
    enum { LINE = 64 / sizeof(float) };
    const uint32_t block = c->at[i] / BLOCK_GROUPS, d = j->args->visit->rows->shape.head_dim;
    while (i < c->n && c->at[i] / BLOCK_GROUPS == block) i++;
    const uint8_t *sketch = i < c->n ? j->args->visit->sketches[c->at[i] / BLOCK_GROUPS] : NULL;
    if (!sketch) return;
    const float *scales = model_sketch_of(sketch, d, part).middle;
    for (uint32_t k = 0; k < 2 * d; k += LINE) __builtin_prefetch(scales + k, 0, 3);
    const uint32_t group = c->at[i] * GROUP / MODEL_ROWS_GROUP;
    if (!turns || !cpu_gap_of(turns, group)) return;
    const float *angles = cpu_floats(turns->table) + (size_t)first_alike(turns, group) * turns->n_rot;
    for (uint32_t k = 0; k < turns->n_rot; k += LINE) __builtin_prefetch(angles + k, 0, 3);
}

/* Of the n_q queries in w->q with columns [from, to). */
static void score_columns(const visit_job *j, uint32_t kv_head, const columns *c, const space *w,
    uint32_t n_q, uint32_t from, uint32_t to, float *s, size_t stride)
{
    const cpu_kernels *k = &j->cpu->kernels;
    const model_visit *visit = j->args->visit;
    const ops_turns *turns = cpu_turns_of(j->args->turns, j->args->layer);
    const uint32_t d = visit->rows->shape.head_dim,
                   lane = j->args->layer * visit->rows->shape.n_head_kv + kv_head;
    const float *q = w->q;
    for (uint32_t i = from, block = UINT32_MAX, gap = 0; i < to; i++) {
        const uint32_t group = c->at[i] * GROUP / MODEL_ROWS_GROUP, own_block = c->at[i] / BLOCK_GROUPS,
                       own_gap = turns ? cpu_gap_of(turns, group) : 0;
        const uint8_t *sketch = visit->sketches[own_block];
        const bool is_other = own_block != block || own_gap != gap;
        block = own_block;
        gap = own_gap;
        if (!sketch) {
            if (is_other) q = turn(k, turns, group, w->q, n_q, d, w->turned);
            score_keys(j, lane, c->at[i], c->rows[i], q, n_q, s + (size_t)i * GROUP, stride);
            continue;
        }
        const model_sketch of = model_sketch_of(sketch, d, lane - visit->n_unsketched);
        if (is_other) {
            tell_opened(visit, kv_head, own_block);
            ask_for_scales(j, turns, lane - visit->n_unsketched, c, i);
            sketch_queries(j, &of, turns ? first_alike(turns, group) : group, w, n_q);
        }
        k->sketch_scores(codes_of(j, kv_head, c, i), codes_of(j, kv_head, c, i + SOON), d, c->rows[i],
            w->queries, n_q, s + (size_t)i * GROUP, stride);
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
 * Bits of a mass such that the n largest of `some` (more than n) are those above it and *room of those equal to it: bit by
 * bit from the highest on, by counting.
 */
static uint32_t find_cut(
    const cpu_kernels *k, const uint32_t *some, uint32_t n_some, uint32_t n, uint32_t *room)
{
    uint32_t cut = 0;
    *room = n;
    for (uint32_t bit = UINT32_C(1) << 30; bit; bit >>= 1) {
        const uint32_t there = k->count_least(some, n_some, cut | bit);
        if (there >= n) cut |= bit;
        if (there == n) return cut;
    }
    *room = n - k->count_least(some, n_some, cut + 1);
    return cut;
}

/*
 * A mass that is not above that of the last row taken: each column's heaviest row has at least as much, in
 * as many columns as rows are taken.
 */
static uint32_t find_least(
    const cpu_kernels *k, uint32_t n, uint32_t most, const float *largest, uint32_t *bits)
{
    uint32_t room;
    for (uint32_t i = 0; i < n; i++) bits[i] = bits_of(largest[i]);
    return n > most ? find_cut(k, bits, n, most, &room) : 0;
}

/*
 * Places of the `most` heaviest of a lane's evicted rows, or of its pages, ascending; their mass becomes 0. rows: which of
 * each of n columns' 16 there are. w->left_out: each column's largest mass. Returns how many.
 */
static uint32_t choose(const cpu_kernels *k, const uint16_t *rows, uint32_t n_columns, const space *w,
    uint32_t most, uint32_t *places)
{
    uint32_t n_some = 0, room = most, cut = 0, n = 0;
    if (!most) return 0;
    const uint32_t least = find_least(k, n_columns, most, w->left_out, w->bits);
    for (uint32_t i = 0; i < n_columns; i++) {
        if (bits_of(w->left_out[i]) < least) continue;
        for (uint32_t r = 0; r < GROUP; r++) {
            const uint32_t bits = bits_of(w->mass[i * GROUP + r]);
            w->bits[n_some] = bits;
            w->places[n_some] = i * GROUP + r;
            n_some += bits >= least && rows[i] >> r & 1;
        }
    }
    if (n_some > most) cut = find_cut(k, w->bits, n_some, most, &room);
    for (uint32_t i = 0; i < n_some && n < most; i++) {
        if (w->bits[i] < cut || (w->bits[i] == cut && !room)) continue;
        room -= w->bits[i] == cut;
        places[n++] = w->places[i];
    }
    for (uint32_t i = 0; i < n; i++) w->mass[places[i]] = 0;
    return n;
}

/* --- pages ---------------------------------------------------------------------------------------------- */

static bool chooses_pages(const visit_job *j, uint32_t kv_head)
{
    return j->most_pages && j->args->visit->pages[kv_head].sketches;
}

static uint64_t rows_of_page(const model_visit *visit, uint32_t kv_head, uint32_t page)
{
    return visit->evicted[kv_head][page] &
           (visit->n_slots - page * WORD < WORD ? (UINT64_C(1) << (visit->n_slots - page * WORD)) - 1
                                                : UINT64_MAX);
}

/* Scores of a lane's pages by their mean keys, for the n_q queries q: a sketch is read once for all of them. */
static void score_pages(
    const visit_job *j, uint32_t kv_head, const space *w, const float *q, uint32_t n_q, float *s)
{
    const cpu_kernels *k = &j->cpu->kernels;
    const model_pages *p = &j->args->visit->pages[kv_head];
    const uint32_t d = j->args->visit->rows->shape.head_dim;
    for (uint32_t i = 0; i * GROUP < j->most_pages; i++) {
        const model_sketch of = model_sketch_of(p->sketches, d, i / BLOCK_GROUPS);
        const uint8_t *codes = of.codes + (size_t)(i % BLOCK_GROUPS) * (d / 8) * MODEL_SKETCH_PIECE;
        if (i % BLOCK_GROUPS == 0)
            k->sketch_queries(q, n_q, of.middle, of.step, d, j->args->scale, w->queries);
        k->sketch_scores(codes, NULL, d, p->some[i], w->queries, n_q, s + (size_t)i * GROUP, page_stride(j));
    }
}

/* What a lane's listed rows and a part of others (largest, sum) make of each head's softmax. */
static void find_shares(
    const visit_job *j, uint32_t kv_head, uint32_t t, const float *max, const float *sum, cpu_share *shares)
{
    const float *live = cpu_row(j->args->sums, t) + 2 * (size_t)kv_head * j->group;
    for (uint32_t g = 0; g < j->group; g++) {
        shares[g] = (cpu_share){.max = live[2 * g], .sum = live[2 * g + 1]};
        j->cpu->kernels.merge(&shares[g].max, &shares[g].sum, NULL, max[g], sum[g], NULL, 0);
        shares[g].part_max = max[g];
    }
}

/*
 * Places of the pages that a token opens, into w->places, ascending: the heaviest. own->weights: its pages' scores, which
 * become numerators; own->closed: of all of them.
 */
static uint32_t choose_pages(
    const visit_job *j, const space *w, uint32_t kv_head, uint32_t t, const columns *own)
{
    const cpu_kernels *k = &j->cpu->kernels;
    const model_pages *p = &j->args->visit->pages[kv_head];
    const size_t stride = page_stride(j);
    const uint32_t width = (j->most_pages + GROUP - 1) / GROUP * GROUP;
    float max[CPU_VISIT_GROUP], sum[CPU_VISIT_GROUP];
    cpu_share shares[CPU_VISIT_GROUP] = {{0}};
    for (uint32_t g = 0; g < j->group; g++) {
        k->softmax(own->weights + g * stride, 0, j->most_pages, width, &max[g], &sum[g]);
        sum[g] += k->weigh(p->counts, width, own->weights + g * stride);
        own->closed[2 * g] = max[g];
        own->closed[2 * g + 1] = sum[g];
    }
    find_shares(j, kv_head, t, max, sum, shares);
    k->masses(own->weights, stride, j->group, width, shares, w->mass, w->left_out);
    return choose(k, p->some, width / GROUP, w, j->args->visit->open, w->places);
}

/* A page's columns. */
static void add_columns(columns *c, uint64_t evicted, uint32_t page)
{
    for (uint32_t k = 0; k < WORD / GROUP; k++) {
        const uint16_t bits = (uint16_t)(evicted >> k * GROUP);
        if (!bits) continue;
        c->at[c->n] = page * (WORD / GROUP) + k;
        c->rows[c->n++] = bits;
    }
}

/* Those of all of a lane's evicted rows. */
static void add_all(const model_visit *visit, uint32_t kv_head, columns *c)
{
    for (uint32_t i = 0; visit->evicted[kv_head] && i * WORD < visit->n_slots; i++)
        add_columns(c, rows_of_page(visit, kv_head, i), i);
}

/* The columns that a token weighs, into `own`. own->weights: its pages' scores, where it chooses among them. */
static void open_pages(const visit_job *j, const space *w, uint32_t kv_head, uint32_t t, columns *own)
{
    const model_visit *visit = j->args->visit;
    const size_t stride = page_stride(j);
    own->n = 0;
    if (!chooses_pages(j, kv_head)) {
        add_all(visit, kv_head, own);
        return;
    }
    const uint32_t n = choose_pages(j, w, kv_head, t, own);
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t page = w->places[i];
        add_columns(own, rows_of_page(visit, kv_head, page), page);
        for (uint32_t g = 0; g < j->group; g++) { /* it counts by its rows from now on */
            float *weight = own->weights + g * stride + page, *sum = own->closed + 2 * g + 1;
            *sum = *sum > *weight ? *sum - *weight : 0;
            *weight = 0;
        }
    }
}

/* --- a token -------------------------------------------------------------------------------------------- */

/* Means of values that come in for what nobody chose, and how much of it each stands for. */
typedef struct others {
    const uint16_t **rows;
    float *weights;
    uint32_t n;
} others;

static void add_mean(others *o, const uint16_t *row, float weight)
{
    o->rows[o->n] = row;
    o->weights[o->n++] = weight;
}

/* Of the pages whose rows were weighed. w->mass: what is left of each row. */
static void add_opened(const columns *c, const space *w, const uint16_t *means, uint32_t d, others *o)
{
    for (uint32_t i = 0; i < c->n;) {
        const uint32_t word = c->at[i] / (WORD / GROUP);
        float sums[GROUP] = {0}, sum = 0;
        for (; i < c->n && c->at[i] / (WORD / GROUP) == word; i++)
            for (uint32_t r = 0; r < GROUP; r++) sums[r] += w->mass[i * GROUP + r];
        for (uint32_t r = 0; r < GROUP; r++) sum += sums[r];
        add_mean(o, means + (size_t)word * d, sum);
    }
}

/* Of the pages that stayed closed, by chapters. */
static void add_closed(const visit_job *j, const columns *c, const space *w, const uint16_t *chapters,
    const cpu_share *shares, others *o)
{
    const uint32_t d = j->args->visit->rows->shape.head_dim;
    cpu_share closed[CPU_VISIT_GROUP];
    for (uint32_t g = 0; g < j->group; g++)
        closed[g] = (cpu_share){c->closed[2 * g], shares[g].max, shares[g].sum};
    j->cpu->kernels.masses(c->weights, page_stride(j), j->group, (j->most_pages + GROUP - 1) / GROUP * GROUP,
        closed, w->mass, o->weights + j->most_pages);
    for (uint32_t i = 0; i < j->most_pages; i += MODEL_CHAPTER) { /* behind the last page masses are 0 */
        const float *mass = w->mass + i, sum = (mass[0] + mass[1]) + (mass[2] + mass[3]);
        if (sum > 0) add_mean(o, chapters + (size_t)(i / MODEL_CHAPTER) * d, sum);
    }
}

/* The mean of what nobody chose: by pages, weighted by the mass that they have left. */
static void mean_of_others(const visit_job *j, uint32_t kv_head, const columns *c, const space *w,
    const cpu_share *shares, float *ret)
{
    const model_visit *visit = j->args->visit;
    const uint32_t d = visit->rows->shape.head_dim;
    others o = {.rows = (const uint16_t **)(void *)w->bits, /* and over places: neither is used any more */
        .weights = w->left_out};
    float total = 0;
    add_opened(c, w, visit->means[kv_head], d, &o);
    if (chooses_pages(j, kv_head)) add_closed(j, c, w, visit->pages[kv_head].chapters, shares, &o);
    for (uint32_t i = 0; i < o.n; i++) total += o.weights[i];
    for (uint32_t i = 0; i < o.n; i++) o.weights[i] = total > 0 ? o.weights[i] / total : 0;
    const cpu_ahead ahead = {o.rows + MEANS_SOON, o.n > MEANS_SOON ? o.n - MEANS_SOON : 0};
    j->cpu->kernels.values(o.rows, o.n, o.weights, o.n, 1, d, ahead, ret);
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
        values[i] = keys[i] + model_rows_to_value(v, slots[i]);
    }
    for (uint32_t i = 0; i < n && turns; i++) {
        const uint32_t group = slots[i] / MODEL_ROWS_GROUP;
        if (!cpu_gap_of(turns, group)) continue;
        cpu_turn_key(k, turns, group, keys[i], d, w->keys + (size_t)i * d);
        keys[i] = w->keys + (size_t)i * d;
    }
    k->scores(keys, n, q, j->group, d, d, j->args->scale, (cpu_ahead){values, n}, w->s, MOST_STRIDE);
    for (uint32_t g = 0; g < j->group; g++)
        k->softmax(w->s + (size_t)g * MOST_STRIDE, 0, n, (n + GROUP - 1) / GROUP * GROUP, &m[g], &l[g]);
    k->values(values, n, w->s, MOST_STRIDE, j->group, d, (cpu_ahead){0}, w->o);
}

/* Its scores with the columns are there, [group][stride]; they become numerators. */
static void visit_token(
    const visit_job *j, space *w, uint32_t kv_head, const columns *c, uint32_t t, float *s, size_t stride)
{
    const cpu_kernels *k = &j->cpu->kernels;
    const ops_visit_args *a = j->args;
    const model_visit *visit = a->visit;
    const uint32_t d = visit->rows->shape.head_dim, group = j->group, width = c->n * GROUP,
                   lane = a->layer * visit->rows->shape.n_head_kv + kv_head;
    const bool some_closed = chooses_pages(j, kv_head);
    const size_t place = (size_t)kv_head * a->n + t;
    uint32_t *chosen = visit->chosen + place * visit->most;
    float max[CPU_VISIT_GROUP] = {0}, out_of[CPU_VISIT_GROUP] = {0}, m[CPU_VISIT_GROUP], l[CPU_VISIT_GROUP];
    const float *live = cpu_row(a->sums, t) + 2 * (size_t)kv_head * group;
    float taken[CPU_VISIT_GROUP] = {0};
    cpu_share shares[CPU_VISIT_GROUP] = {{0}};
    for (uint32_t g = 0; g < group; g++) k->softmax(s + g * stride, 0, width, width, &max[g], &out_of[g]);
    find_shares(j, kv_head, t, max, out_of, shares);
    for (uint32_t g = 0; g < group && some_closed; g++)
        k->merge(&shares[g].max, &shares[g].sum, NULL, c->closed[2 * g], c->closed[2 * g + 1], NULL, 0);
    k->masses(s, stride, group, width, shares, w->mass, w->left_out);
    const uint32_t n = choose(k, c->rows, c->n, w, visit->most, chosen);
    visit->n_chosen[place] = n;
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t g = 0; g < group; g++) taken[g] += s[g * stride + chosen[i]];
    for (uint32_t g = 0; g < group; g++) out_of[g] = out_of[g] > taken[g] ? out_of[g] - taken[g] : 0;
    for (uint32_t i = 0; i < n; i++) chosen[i] = c->at[chosen[i] / GROUP] * GROUP + chosen[i] % GROUP;
    ask_for(visit->rows, lane, chosen, n);
    const bool means = visit->means != NULL;
    if (means) mean_of_others(j, kv_head, c, w, shares, w->others);
    attend_chosen(j, w, lane, chosen, n, query_of(j, kv_head, t), m, l);
    for (uint32_t g = 0; g < group; g++) {
        float *out = cpu_row(a->out, t) + ((size_t)kv_head * group + g) * d, all_max = live[2 * g],
              all_sum = live[2 * g + 1], *o = w->o + g * d;
        for (uint32_t i = 0; i < d; i++) out[i] *= all_sum;
        k->merge(&all_max, &all_sum, out, m[g], l[g], o, d);
        if (some_closed) k->merge(&max[g], &out_of[g], NULL, c->closed[2 * g], c->closed[2 * g + 1], NULL, 0);
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

/* Tokens [from, to) of a kv head that weigh the same columns: all, or one where each chooses its own. */
typedef struct share_of {
    uint32_t kv_head, from, to;
    const columns *columns;
} share_of;

static share_of share_at(const visit_job *j, uint32_t i)
{
    const uint32_t n = j->args->n;
    if (!j->most_pages) return (share_of){i, 0, n, &j->lanes[i]};
    return (share_of){i / n, i % n, i % n + 1, &j->own[i]};
}

/* Where scores are spread: what each token opens. */
static void open_run(void *arg, int thread, int n_threads)
{
    (void)n_threads;
    visit_job *j = arg;
    const uint32_t n = j->args->n, n_units = j->args->visit->rows->shape.n_head_kv * n;
    space w = space_of(j, j->cpu->scratch[thread].data);
    for (uint32_t i; (i = claim(j)) < n_units;) {
        const uint32_t kv_head = i / n, t = i % n;
        if (chooses_pages(j, kv_head))
            score_pages(j, kv_head, &w, query_of(j, kv_head, t), j->group, j->own[i].weights);
        open_pages(j, &w, kv_head, t, &j->own[i]);
    }
}

/* Scores of all tokens with some columns. */
static void score_run(void *arg, int thread, int n_threads)
{
    (void)n_threads;
    visit_job *j = arg;
    const uint32_t n_kv = j->args->visit->rows->shape.n_head_kv, n = j->args->n,
                   pieces = (j->most_columns + PIECE - 1) / PIECE, n_shares = j->most_pages ? n_kv * n : n_kv;
    const size_t stride = (size_t)GROUP * j->most_columns;
    space w = space_of(j, j->cpu->scratch[thread].data);
    for (uint32_t unit; (unit = claim(j)) < n_shares * pieces;) {
        const share_of of = share_at(j, unit / pieces);
        const uint32_t from = unit % pieces * PIECE, n_columns = of.columns->n,
                       to = n_columns < from + PIECE ? n_columns : from + PIECE;
        if (from >= n_columns) continue;
        load_queries(j, of.kv_head, of.from, of.to, w.q);
        score_columns(j, of.kv_head, of.columns, &w, (of.to - of.from) * j->group, from, to,
            j->scores + ((size_t)of.kv_head * n + of.from) * j->group * stride, stride);
    }
}

/* Tokens [t0, t1) of a kv head, each over columns of its own; their pages are weighed together. */
static void visit_by_pages(
    const visit_job *j, space *w, uint32_t kv_head, uint32_t t0, uint32_t t1, columns own)
{
    const size_t stride = (size_t)GROUP * j->most_columns, weights = j->group * page_stride(j);
    load_queries(j, kv_head, t0, t1, w->q);
    if (chooses_pages(j, kv_head)) score_pages(j, kv_head, w, w->q, (t1 - t0) * j->group, own.weights);
    for (uint32_t t = t0; t < t1 && !cpu_is_cancelled(j->cpu); t++, own.weights += weights) {
        open_pages(j, w, kv_head, t, &own);
        if (!own.n) continue;
        load_queries(j, kv_head, t, t + 1, w->q);
        score_columns(j, kv_head, &own, w, j->group, 0, own.n, w->scores, stride);
        visit_token(j, w, kv_head, &own, t, w->scores, stride);
    }
}

/* The same over columns that they share. */
static void visit_together(const visit_job *j, space *w, uint32_t kv_head, uint32_t t0, uint32_t t1)
{
    const columns *c = &j->lanes[kv_head];
    const size_t stride = (size_t)GROUP * j->most_columns;
    if (!c->n) return;
    load_queries(j, kv_head, t0, t1, w->q);
    score_columns(j, kv_head, c, w, (t1 - t0) * j->group, 0, c->n, w->scores, stride);
    for (uint32_t t = t0; t < t1 && !cpu_is_cancelled(j->cpu); t++)
        visit_token(j, w, kv_head, c, t, w->scores + (t - t0) * j->group * stride, stride);
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
                       t1 = n - t0 < j->tokens ? n : t0 + j->tokens, at = kv_head * n + t0;
        if (!j->scores && j->most_pages)
            visit_by_pages(j, &w, kv_head, t0, t1, j->own[thread]);
        else if (!j->scores)
            visit_together(j, &w, kv_head, t0, t1);
        else {
            const columns *c = j->most_pages ? &j->own[at] : &j->lanes[kv_head]; /* a unit is a token */
            if (c->n) visit_token(j, &w, kv_head, c, t0, j->scores + (size_t)at * j->group * stride, stride);
        }
    }
}

/* --- memory that the threads share ------------------------------------------------------------------------ */

/* The next n of some size, in lines of 64 bytes; base NULL: counted only. */
static void *take(uint8_t *base, size_t *used, size_t n, size_t size)
{
    void *at = base ? base + *used : NULL;
    *used += (n * size + 63) / 64 * 64;
    return at;
}

static uint32_t count_all_pages(const model_visit *visit)
{
    return (visit->n_slots + WORD - 1) / WORD;
}

/* Room for the lanes' rows and, with pages, for what n_own tokens open; n_scored: tokens whose scores are spread. */
static size_t share_memory(visit_job *j, uint8_t *base, uint32_t n_own, uint32_t n_scored)
{
    const model_visit *visit = j->args->visit;
    const uint32_t n_pages = count_all_pages(visit);
    size_t used = 0;
    for (uint32_t h = 0; h < visit->rows->shape.n_head_kv && !j->most_pages; h++) {
        j->lanes[h].at = take(base, &used, n_pages * (WORD / GROUP), sizeof *j->lanes[h].at);
        j->lanes[h].rows = take(base, &used, n_pages * (WORD / GROUP), sizeof *j->lanes[h].rows);
    }
    j->own = j->most_pages ? take(base, &used, n_own, sizeof *j->own) : NULL;
    for (uint32_t i = 0; j->most_pages && i < n_own; i++) {
        columns c = {.at = take(base, &used, j->most_columns, sizeof *c.at)};
        c.rows = take(base, &used, j->most_columns, sizeof *c.rows);
        c.closed = take(base, &used, 2 * (size_t)j->group, sizeof *c.closed);
        c.weights = take(base, &used, j->tokens * j->group * page_stride(j), sizeof *c.weights);
        if (base) j->own[i] = c;
    }
    j->scores =
        n_scored ? take(base, &used, (size_t)n_scored * j->group * GROUP * j->most_columns, sizeof *j->scores)
                 : NULL;
    return used;
}

static uint32_t count_pages(const model_visit *visit, uint32_t kv_head)
{
    uint32_t n = 0;
    for (uint32_t w = 0; visit->evicted[kv_head] && w * WORD < visit->n_slots; w++)
        n += rows_of_page(visit, kv_head, w) != 0;
    return n;
}

/* Tokens of a unit: as many as what it keeps of them fits a core's cache for. */
static void choose_unit(visit_job *j, bool is_spread)
{
    const size_t each = j->most_pages ? page_stride(j) : (size_t)GROUP * j->most_columns,
                 fit = SCORE_FLOATS / (j->group * each);
    const uint32_t n = j->args->n;
    j->tokens = is_spread || fit < 1 ? 1 : fit > TOKENS_MOST ? TOKENS_MOST : (uint32_t)fit;
    /* A unit a thread at least; is_spread: there are not as many tokens. */
    const uint32_t share = n * j->args->visit->rows->shape.n_head_kv / (uint32_t)j->cpu->n_threads;
    if (!is_spread && j->most_pages && j->tokens > share) j->tokens = share;
    if (j->tokens > n) j->tokens = n;
    j->room = is_spread ? n : j->tokens;
    j->scored = j->most_pages && !is_spread ? 1 : j->room;
    j->n_units = j->args->visit->rows->shape.n_head_kv * ((n + j->tokens - 1) / j->tokens);
}

/* The lanes' rows, and memory for the run. j->most_columns 0: nobody has any. */
static int find_rows(visit_job *j, bool is_spread, base_err *err)
{
    const model_visit *visit = j->args->visit;
    const uint32_t n_kv = visit->rows->shape.n_head_kv, n = j->args->n, n_tokens = is_spread ? n * n_kv : 0;
    uint32_t most = 0;
    for (uint32_t h = 0; h < n_kv; h++) {
        const bool is_chosen = visit->open && visit->pages[h].sketches;
        const uint32_t n_pages = is_chosen ? visit->open : count_pages(visit, h);
        most = n_pages > most ? n_pages : most;
        if (is_chosen) j->most_pages = count_all_pages(visit);
        if (!n_pages) memset(visit->n_chosen + (size_t)h * n, 0, n * sizeof *visit->n_chosen);
    }
    if (!most) return 0;
    j->most_columns = most * (WORD / GROUP);
    const uint32_t n_own = is_spread ? n_tokens : (uint32_t)j->cpu->n_threads;
    choose_unit(j, is_spread);
    const int rc = cpu_scratch_reserve(j->cpu, 0, share_memory(j, NULL, n_own, n_tokens), err);
    if (rc < 0) return rc;
    share_memory(j, j->cpu->shared.data, n_own, n_tokens);
    for (uint32_t h = 0; h < n_kv && !j->most_pages; h++) add_all(visit, h, &j->lanes[h]);
    return 0;
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
    const bool is_spread = a->n * shape->n_head_kv < (size_t)cpu->n_threads;
    rc = find_rows(&j, is_spread, err);
    if (rc || !j.most_columns) return rc;
    rc = cpu_scratch_reserve(cpu, space_floats(&j) * sizeof(float), 0, err);
    if (rc < 0) return rc;
    if (is_spread && j.most_pages) {
        base_pool_share(cpu->pool, open_run, &j);
        j.next = 0;
    }
    if (is_spread) {
        base_pool_share(cpu->pool, score_run, &j);
        j.next = 0;
    }
    base_pool_share(cpu->pool, visit_run, &j);
    return j.cancelled || cpu_is_cancelled(cpu) ? cpu_cancelled(err) : 0;
}
