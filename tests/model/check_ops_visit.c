/*
 * Evicted rows that tokens choose for themselves (ops.h, visit): the choice against masses in F64 from
 * what the sketches say, the result against the definition in F64, and equal bits for every level, number of
 * threads and batch.
 */
#include "check_ops.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "model/file/quant.h"
#include "model/ops/sketch.h"

enum { LAYER = 1, N_KV = 2, WORD = 64, COLUMN = 16, MOST_COLUMNS = 16 };

typedef struct visited {
    float *out;
    uint32_t *chosen, *n_chosen;
    uint64_t *opened; /* [N_KV] bits of blocks */
} visited;

/* One case: rows, who is evicted, sketches and means of all blocks. */
typedef struct scene {
    cache x;
    uint32_t n_slots;
    uint64_t *bits[N_KV];
    uint8_t *made[64];
    const uint8_t *sketches[64];
    uint16_t *mean_of[N_KV];
    uint8_t *page_of[N_KV];
    uint16_t *chapter_of[N_KV];
    uint16_t some[N_KV][MOST_COLUMNS];
    float counts[N_KV][MOST_COLUMNS * COLUMN];
    const uint64_t *evicted[N_KV];
    const uint16_t *means[N_KV];
    uint32_t open; /* pages that a token looks into; 0: all */
    float *sinks;  /* [n_head] or NULL */
} scene;

static bool is_evicted(const scene *s, uint32_t h, uint32_t slot)
{
    return s->evicted[h] && s->evicted[h][slot / WORD] >> slot % WORD & 1;
}

/* A sketch of the mean keys of a lane's evicted rows, page by page. */
static uint8_t *sketch_pages(const scene *s, uint32_t h)
{
    const uint32_t d = s->x.view.shape.head_dim, n_pages = s->n_slots / WORD;
    uint16_t *keys = base_xcalloc((size_t)n_pages * d, sizeof *keys);
    const uint16_t *some[MODEL_ROWS_BLOCK] = {NULL};
    uint8_t *ret = base_xcalloc(1, model_sketch_lane_bytes(d));
    bool any = false;
    for (uint32_t w = 0; w < n_pages; w++) {
        for (uint32_t i = 0; i < d; i++) {
            float sum = 0;
            for (uint32_t r = 0; r < WORD; r++)
                if (is_evicted(s, h, w * WORD + r))
                    sum += quant_f16_to_f32(model_rows_key(&s->x.view, LAYER * N_KV + h, w * WORD + r)[i]);
            keys[(size_t)w * d + i] =
                quant_f32_to_f16(sum / fmaxf((float)__builtin_popcountll(s->bits[h][w]), 1));
        }
        if (s->bits[h][w]) some[w] = keys + (size_t)w * d;
        any |= some[w] != NULL;
    }
    if (any) model_sketch_make_some(d, some, ret);
    free(keys);
    return ret;
}

/* Of the slots that a lane does not list below its last n rows, two of three; every third block has no sketch. */
static void scene_new(scene *s, uint32_t n_head_rows, uint32_t n, uint32_t d, bool apart)
{
    memset(s, 0, sizeof *s);
    cache_new(&s->x, (model_rows_shape){2, N_KV, d}, n_head_rows, apart);
    s->n_slots = s->x.view.n_blocks * MODEL_ROWS_BLOCK;
    for (uint32_t b = 0; b < s->x.view.n_blocks; b++) {
        const size_t n_bytes =
            model_sketch_bytes(model_rows_lanes(&s->x.view.shape), s->x.view.shape.head_dim);
        s->made[b] = aligned_alloc(64, n_bytes);
        model_sketch_make(
            s->x.view.shape.head_dim, NULL, model_rows_lanes(&s->x.view.shape), s->x.blocks[b], s->made[b]);
        s->sketches[b] = b % 3 == 2 ? NULL : s->made[b];
    }
    for (uint32_t h = 0; h < N_KV; h++) {
        const model_lane_list *list = &s->x.lanes[LAYER * N_KV + h];
        uint32_t index, end = slot_of(list, list->n_rows - n, &index);
        s->bits[h] = base_xcalloc(s->n_slots / WORD, sizeof(uint64_t));
        for (uint32_t t = 0; t < end; t++)
            if (random_u32() % 3) s->bits[h][t / WORD] |= UINT64_C(1) << t % WORD;
        for (uint32_t r = 0; r < list->n_runs; r++)
            for (uint32_t i = 0; i < list->runs[r].n; i++)
                s->bits[h][(list->runs[r].slot + i) / WORD] &=
                    ~(UINT64_C(1) << (list->runs[r].slot + i) % WORD);
        s->evicted[h] = s->bits[h];
        s->means[h] = s->mean_of[h] = random_halves((size_t)s->n_slots / WORD * d);
        s->page_of[h] = sketch_pages(s, h);
        s->chapter_of[h] = random_halves((size_t)s->x.view.n_blocks * d);
        for (uint32_t w = 0; w < s->n_slots / WORD; w++) {
            s->counts[h][w] = (float)__builtin_popcountll(s->bits[h][w]);
            s->some[h][w / COLUMN] |= (uint16_t)((s->bits[h][w] != 0) << w % COLUMN);
        }
    }
}

static void scene_free(scene *s)
{
    for (uint32_t b = 0; b < s->x.view.n_blocks; b++) free(s->made[b]);
    for (uint32_t h = 0; h < N_KV; h++) {
        free(s->bits[h]);
        free(s->mean_of[h]);
        free(s->page_of[h]);
        free(s->chapter_of[h]);
    }
    free(s->sinks);
    cache_free(&s->x);
}

/* A lane's pages with evicted rows, where they are more than a token opens; 0: it opens all of them. */
static uint32_t count_closable(const scene *s, uint32_t h)
{
    uint32_t n = 0;
    for (uint32_t w = 0; w < s->n_slots / WORD; w++) n += s->evicted[h] && s->bits[h][w];
    return s->open && n > s->open ? n : 0;
}

/* Attention over the lists, then visits; *ret_sums: what attention left, [n][n_head][2]. */
static visited run_turned(check *c, model_ops *ops, const scene *s, uint32_t n, uint32_t n_head,
    uint32_t most, bool with_means, const ops_turns *turns, const float *q)
{
    const uint32_t d = s->x.view.shape.head_dim, width = n_head * d;
    base_err err;
    visited v = {.chosen = base_xcalloc((size_t)N_KV * n * most + 1, sizeof *v.chosen),
        .n_chosen = base_xcalloc((size_t)N_KV * n, sizeof *v.n_chosen),
        .opened = base_xcalloc(N_KV, sizeof *v.opened)};
    matrix mq = matrix_new(ops, n, width, q), out = matrix_new(ops, n, width, NULL),
           sums = matrix_new(ops, n, 2 * n_head, NULL);
    const float scale = 1 / sqrtf((float)d);
    model_pages pages[N_KV] = {{NULL}};
    for (uint32_t h = 0; h < N_KV; h++)
        if (count_closable(s, h))
            pages[h] =
                (model_pages){s->page_of[h], s->some[h], s->counts[h], with_means ? s->chapter_of[h] : NULL};
    const model_visit visit = {.rows = &s->x.view,
        .evicted = s->evicted,
        .sketches = s->sketches,
        .means = with_means ? s->means : NULL,
        .pages = pages,
        .open = s->open,
        .n_slots = s->n_slots,
        .most = most,
        .chosen = v.chosen,
        .n_chosen = v.n_chosen,
        .opened = v.opened,
        .n_opened = 1};
    ops_buffer *sinks = s->sinks ? buffer_of(ops, s->sinks, n_head * sizeof *s->sinks) : NULL;
    expect_ok(c, "attention",
        ops->attention(ops,
            &(ops_attention_args){.rows = &s->x.view,
                .layer = LAYER,
                .n = n,
                .n_head = n_head,
                .scale = scale,
                .q = mq.m,
                .out = out.m,
                .sums = sums.m,
                .sinks = sinks,
                .turns = turns},
            &err),
        &err);
    if (sinks) ops->buffer_free(ops, sinks);
    expect_ok(c, "visit",
        ops->visit(ops,
            &(ops_visit_args){.visit = &visit,
                .layer = LAYER,
                .n = n,
                .n_head = n_head,
                .scale = scale,
                .q = mq.m,
                .out = out.m,
                .sums = sums.m,
                .turns = turns},
            &err),
        &err);
    free(matrix_take(c, "visit", mq));
    free(matrix_take(c, "visit", sums));
    v.out = matrix_take(c, "visit", out);
    return v;
}

static visited run(check *c, model_ops *ops, const scene *s, uint32_t n, uint32_t n_head, uint32_t most,
    bool with_means, const float *q)
{
    return run_turned(c, ops, s, n, n_head, most, with_means, NULL, q);
}

static void free_visited(visited v)
{
    free(v.out);
    free(v.chosen);
    free(v.n_chosen);
    free(v.opened);
}

static double product(const float *q, const uint16_t *key, uint32_t d)
{
    double sum = 0;
    for (uint32_t i = 0; i < d; i++) sum += (double)q[i] * (double)quant_f16_to_f32(key[i]);
    return sum;
}

/* The product with a key of a sketch's part, the query rounded to 8 bits as that takes it. */
static double sketched(const uint8_t *sketch, uint32_t part, uint32_t row, const float *q, uint32_t d)
{
    const model_sketch k = model_sketch_of(sketch, d, part);
    float most = 0;
    double sum = 0;
    for (uint32_t i = 0; i < d; i++) most = fmaxf(most, fabsf(q[i] * k.step[i]));
    const float inverse = most > 0 ? 127.0f / most : 0;
    for (uint32_t i = 0; i < d; i++) {
        const double middle = (double)k.middle[i], code = (double)rintf(q[i] * k.step[i] * inverse),
                     other = k.step[i] > 0
                                 ? ((double)model_sketch_number(&k, d, row, i) - middle) / (double)k.step[i]
                                 : 0;
        sum += (double)q[i] * middle + code * other * (double)most / 127;
    }
    return sum;
}

/* What a row weighs by its sketch, or by its key where there is none; in a closed page by its mean key. */
static double weigh(const scene *s, uint32_t h, uint32_t slot, const float *q, const bool *open)
{
    const uint32_t d = s->x.view.shape.head_dim, lane = LAYER * N_KV + h;
    if (!open[slot / WORD]) return sketched(s->page_of[h], 0, slot / WORD, q, d);
    if (!s->sketches[slot / MODEL_ROWS_BLOCK]) return product(q, model_rows_key(&s->x.view, lane, slot), d);
    return sketched(s->made[slot / MODEL_ROWS_BLOCK], lane, slot % MODEL_ROWS_BLOCK, q, d);
}

/* Which pages a token opens: all, or the heaviest by their mean keys. q: of the lane's heads. listed: by head. */
static bool *open_pages(const scene *s, uint32_t h, const float *q, uint32_t group, const double *listed)
{
    const uint32_t d = s->x.view.shape.head_dim, n_pages = s->n_slots / WORD;
    const double scale = 1 / sqrt((double)d);
    bool *open = base_xcalloc(n_pages, sizeof *open);
    double *weight = base_xcalloc(n_pages, sizeof *weight), *mass = base_xcalloc(n_pages, sizeof *mass);
    const bool is_all = !count_closable(s, h);
    for (uint32_t g = 0; g < group && !is_all; g++) {
        double sum = listed[g];
        for (uint32_t w = 0; w < n_pages; w++) {
            const uint32_t n = (uint32_t)__builtin_popcountll(s->bits[h][w]);
            sum += weight[w] = n ? n * exp(sketched(s->page_of[h], 0, w, q + g * d, d) * scale) : 0;
        }
        for (uint32_t w = 0; w < n_pages; w++) mass[w] += weight[w] / sum / group;
    }
    for (uint32_t w = 0; w < n_pages; w++) open[w] = is_all;
    for (uint32_t k = 0; k < s->open && !is_all; k++) {
        uint32_t best = 0;
        for (uint32_t w = 1; w < n_pages; w++)
            if (mass[w] > mass[best]) best = w;
        open[best] = true;
        mass[best] = -1;
    }
    free(weight);
    free(mass);
    return open;
}

/* A lane of a token: the choice and the result. */
static void check_lane(check *c, const scene *s, const visited *v, uint32_t n, uint32_t n_head, uint32_t most,
    bool with_means, const float *q, uint32_t t, uint32_t h)
{
    const uint32_t d = s->x.view.shape.head_dim, group = n_head / N_KV, lane = LAYER * N_KV + h;
    const model_lane_list *list = &s->x.lanes[lane];
    const uint32_t n_listed = list->n_rows - n + t + 1, *chosen = v->chosen + ((size_t)h * n + t) * most,
                   n_chosen = v->n_chosen[h * n + t];
    const double scale = 1 / sqrt((double)d);
    double *listed = base_xcalloc((size_t)group * n_listed, sizeof *listed),
           *weight = base_xcalloc((size_t)group * s->n_slots, sizeof *weight),
           *mass = base_xcalloc(s->n_slots, sizeof *mass),
           *left = base_xcalloc(s->n_slots / WORD, sizeof *left), *sums = base_xcalloc(group, sizeof *sums);
    uint8_t *taken = base_xcalloc(s->n_slots, 1);
    uint32_t n_evicted = 0;
    for (uint32_t g = 0; g < group; g++) {
        const float *own = q + ((size_t)t * n_head + h * group + g) * d;
        double sum = s->sinks ? exp(s->sinks[h * group + g]) : 0;
        for (uint32_t o = 0; o < n_listed; o++) {
            uint32_t index, slot = slot_of(list, o, &index);
            sum += listed[g * n_listed + o] =
                exp(product(own, model_rows_key(&s->x.view, lane, slot), d) * scale);
        }
        sums[g] = sum;
    }
    bool *open = open_pages(s, h, q + ((size_t)t * n_head + h * group) * d, group, sums);
    for (uint32_t g = 0; g < group; g++) {
        const float *own = q + ((size_t)t * n_head + h * group + g) * d;
        double sum = sums[g];
        for (uint32_t slot = 0; slot < s->n_slots; slot++)
            if (is_evicted(s, h, slot))
                sum += weight[g * s->n_slots + slot] = exp(weigh(s, h, slot, own, open) * scale);
        for (uint32_t slot = 0; slot < s->n_slots; slot++)
            mass[slot] += weight[g * s->n_slots + slot] / sum / group;
    }
    for (uint32_t slot = 0; slot < s->n_slots; slot++)
        n_evicted += is_evicted(s, h, slot) && open[slot / WORD];
    for (uint32_t slot = 0; slot < s->n_slots && most; slot++) {
        const uint32_t b = slot / MODEL_ROWS_BLOCK;
        const bool is_told = v->opened[h] >> b & 1;
        if (is_told ? !s->sketches[b] : s->sketches[b] && is_evicted(s, h, slot) && open[slot / WORD])
            fail(c, "block %g: told as looked into %g, its sketch is there %g", "visit", b, is_told,
                s->sketches[b] != NULL);
    }
    if (n_chosen != (n_evicted < most ? n_evicted : most))
        fail(c, "%g rows visit, of %g, at most %zu", "visit", n_chosen, n_evicted, most);
    double least = INFINITY, largest = 0;
    for (uint32_t i = 0; i < n_chosen; i++) {
        if (!is_evicted(s, h, chosen[i]) || !open[chosen[i] / WORD] || (i && chosen[i] <= chosen[i - 1]))
            fail(c, "row %g is not evicted, or behind %g", "visit", chosen[i], i ? chosen[i - 1] : 0, i);
        taken[chosen[i]] = 1;
        least = fmin(least, mass[chosen[i]]);
    }
    for (uint32_t slot = 0; slot < s->n_slots; slot++)
        if (!taken[slot]) {
            if (open[slot / WORD]) largest = fmax(largest, mass[slot]);
            left[slot / WORD] += mass[slot];
        }
    if (n_chosen == most && most && !(largest <= least * 1.0001 + 1e-12))
        fail(c, "a row of %.9g was left, one of %.9g taken", "visit", largest, least, 0);
    for (uint32_t g = 0; g < group; g++) {
        const float *own = q + ((size_t)t * n_head + h * group + g) * d;
        double truth[512] = {0}, sum = s->sinks ? exp(s->sinks[h * group + g]) : 0, out_of = 0, all_left = 0;
        for (uint32_t o = 0; o < n_listed; o++) {
            uint32_t index, slot = slot_of(list, o, &index);
            sum += listed[g * n_listed + o];
            for (uint32_t i = 0; i < d; i++)
                truth[i] += listed[g * n_listed + o] *
                            (double)quant_f16_to_f32(model_rows_value(&s->x.view, lane, slot)[i]);
        }
        for (uint32_t i = 0; i < n_chosen; i++) {
            const double p = exp(product(own, model_rows_key(&s->x.view, lane, chosen[i]), d) * scale);
            sum += p;
            for (uint32_t k = 0; k < d; k++)
                truth[k] += p * (double)quant_f16_to_f32(model_rows_value(&s->x.view, lane, chosen[i])[k]);
        }
        for (uint32_t slot = 0; slot < s->n_slots && with_means; slot++)
            if (!taken[slot]) out_of += weight[g * s->n_slots + slot];
        for (uint32_t w = 0; w < s->n_slots / WORD; w++) all_left += left[w];
        for (uint32_t w = 0; w < s->n_slots / WORD && all_left > 0; w++) {
            const uint16_t *mean =
                open[w] ? s->mean_of[h] + (size_t)w * d : s->chapter_of[h] + (size_t)(w / MODEL_CHAPTER) * d;
            for (uint32_t k = 0; k < d; k++)
                truth[k] += out_of * left[w] / all_left * (double)quant_f16_to_f32(mean[k]);
        }
        for (uint32_t k = 0; k < d; k++) truth[k] /= sum + out_of;
        expect_near(c, "visit (F64)", v->out + ((size_t)t * n_head + h * group + g) * d, truth, d, 5e-3);
    }
    free(listed);
    free(weight);
    free(mass);
    free(left);
    free(sums);
    free(open);
    free(taken);
}

static void check_same(
    check *c, const visited *a, const visited *b, uint32_t n, uint32_t width, uint32_t most)
{
    expect_same(c, "visit", a->out, b->out, (size_t)n * width);
    for (uint32_t h = 0; h < N_KV; h++)
        if (a->opened[h] != b->opened[h]) fail(c, "lane %g: other blocks are told", "visit", h, 0, 0);
    for (uint32_t i = 0; i < N_KV * n; i++)
        if (a->n_chosen[i] != b->n_chosen[i] ||
            memcmp(a->chosen + (size_t)i * most, b->chosen + (size_t)i * most,
                a->n_chosen[i] * sizeof *a->chosen) != 0)
            fail(c, "others visit: %g and %g, place %zu", "visit", a->n_chosen[i], b->n_chosen[i], i);
}

enum { FOLDED = 3, FOLDED_MOST = 40 }; /* tokens, and rows that visit each */

static visited run_gaps(check *c, model_ops *ops, const scene *s, uint32_t n_head, const uint32_t *gaps,
    uint32_t n_gaps, const float *q)
{
    static const uint8_t layers[] = {0, 1};
    const uint32_t d = s->x.view.shape.head_dim;
    base_err err;
    float *zeros = base_xcalloc((size_t)n_gaps * d, sizeof *zeros);
    ops_turns turns = {.gaps = gaps,
        .table = buffer_of(ops, zeros, (size_t)n_gaps * d * sizeof *zeros),
        .layers = layers,
        .n = n_gaps,
        .n_rot = d,
        .pairing = OPS_ROPE_NEOX};
    ops_rope_table_args table = {.phases = gaps,
        .n = n_gaps,
        .n_rot = d,
        .base = 10000,
        .table = (ops_buffer *)(uintptr_t)turns.table};
    expect_ok(c, "rope_table", ops->rope_table(ops, &table, &err), &err);
    visited v = run_turned(c, ops, s, FOLDED, n_head, FOLDED_MOST, true, &turns, q);
    ops->buffer_free(ops, (ops_buffer *)(uintptr_t)turns.table);
    free(zeros);
    return v;
}

/* Where gaps differ within a block, sketches choose mostly whom keys choose. */
static void check_mixed_gaps(
    check *c, scene *s, uint32_t n_head, const uint32_t *gaps, uint32_t n_gaps, const float *q)
{
    const uint8_t *kept[COUNT(s->sketches)];
    uint32_t n_alike = 0, n = 0;
    visited by_sketch = run_gaps(c, c->b, s, n_head, gaps, n_gaps, q);
    memcpy(kept, s->sketches, sizeof kept);
    memset(s->sketches, 0, sizeof s->sketches);
    visited by_key = run_gaps(c, c->b, s, n_head, gaps, n_gaps, q);
    memcpy(s->sketches, kept, sizeof kept);
    for (uint32_t i = 0; i < N_KV * FOLDED; i++)
        for (uint32_t a = 0, b = 0; a < by_sketch.n_chosen[i] && b < by_key.n_chosen[i];) {
            const uint32_t x = by_sketch.chosen[i * FOLDED_MOST + a], y = by_key.chosen[i * FOLDED_MOST + b];
            n_alike += x == y;
            a += x <= y;
            b += y <= x;
        }
    for (uint32_t i = 0; i < N_KV * FOLDED; i++) n += by_key.n_chosen[i];
    if (n_alike < n / 4 * 3) fail(c, "%g of %g rows are chosen by keys too", "visit", n_alike, n, 0);
    free_visited(by_sketch);
    free_visited(by_key);
}

/* Folded rows: everything of one gap is what a query so much nearer reads, whoever is asked by sketch or key. */
static void case_visit_folded(check *c, uint32_t n_head, uint32_t d)
{
    enum { GAP = 1234 };
    const uint32_t width = n_head * d;
    scene s;
    scene_new(&s, 900, FOLDED, d, true);
    const uint32_t n_gaps = s.n_slots / MODEL_ROWS_GROUP;
    uint32_t *gaps = base_xcalloc(n_gaps, sizeof *gaps);
    float *q = random_floats((size_t)FOLDED * width),
          *nearer = base_xcalloc((size_t)FOLDED * width, sizeof *nearer);
    for (uint32_t i = 0; i < FOLDED * n_head; i++)
        for (uint32_t k = 0; k < d / 2; k++) {
            const double angle = GAP * pow(10000, -2.0 * k / d);
            const double x = (double)q[i * d + k], y = (double)q[i * d + k + d / 2];
            nearer[i * d + k] = (float)(x * cos(angle) + y * sin(angle));
            nearer[i * d + k + d / 2] = (float)(y * cos(angle) - x * sin(angle));
        }
    for (uint32_t i = 0; i < n_gaps; i++) gaps[i] = GAP;
    s.x.view.gaps = gaps;
    s.x.view.n_gaps = n_gaps;
    visited one = run_gaps(c, c->a, &s, n_head, gaps, n_gaps, q),
            plain = run(c, c->a, &s, FOLDED, n_head, FOLDED_MOST, true, nearer);
    double *truth = base_xcalloc((size_t)FOLDED * width, sizeof *truth);
    for (uint32_t i = 0; i < FOLDED * width; i++) truth[i] = (double)plain.out[i];
    expect_near(c, "visit (folded)", one.out, truth, FOLDED * width, 1e-3);
    free_visited(one);
    for (uint32_t i = 0; i < n_gaps; i++) gaps[i] = i % 5 < 2 ? 0 : 7000 - i / 3 * 100;
    check_mixed_gaps(c, &s, n_head, gaps, n_gaps, q);
    s.open = 5;
    visited a = run_gaps(c, c->a, &s, n_head, gaps, n_gaps, q),
            b = run_gaps(c, c->b, &s, n_head, gaps, n_gaps, q);
    check_same(c, &a, &b, FOLDED, width, FOLDED_MOST);
    free_visited(a);
    free_visited(b);
    free_visited(plain);
    free(truth);
    free(gaps);
    free(q);
    free(nearer);
    scene_free(&s);
}

static void cases_visit_folded(check *c)
{
    if (!c->a->turns || !c->b->turns) return;
    c->what = "folded, 6 heads of 64";
    case_visit_folded(c, 6, 64);
    c->what = "folded, 14 heads of 128"; /* three queries at once, and one that is left over */
    case_visit_folded(c, 14, 128);
}

void cases_visit(check *c)
{
    /* n, rows, query heads, head_dim, most, pages that are opened */
    static const uint32_t shapes[][6] = {{1, 700, 12, 128, 256}, {1, 1100, 14, 64, 200}, {3, 900, 6, 64, 17},
        {9, 600, 4, 48, 1}, {33, 1500, 8, 80, 64}, {2, 500, 2, 16, 0}, {5, 800, 18, 256, 31},
        {1, 40, 4, 32, 256}, {1, 1100, 12, 128, 200, 6}, {3, 1900, 6, 64, 17, 1}, {9, 2000, 4, 48, 60, 17},
        {1, 900, 14, 64, 256, 3}, {2, 700, 4, 512, 30}, {1, 900, 4, 512, 30, 2}};
    for (size_t i = 0; i < COUNT(shapes); i++) {
        const uint32_t n = shapes[i][0], n_head = shapes[i][2], d = shapes[i][3], most = shapes[i][4],
                       width = n_head * d;
        const bool with_means = i % 4 != 3;
        if (d > 256 && strncmp(c->b->backend, "cuda", 4) == 0) continue; /* it takes no such model */
        char what[100];
        snprintf(what, sizeof what, "n %u, %u rows, %u heads of %u, %u visit of %u pages", n, shapes[i][1],
            n_head, d, most, shapes[i][5]);
        c->what = what;
        scene s;
        scene_new(&s, shapes[i][1], n, d, i % 2 == 0);
        s.open = shapes[i][5];
        if (i == 4) s.evicted[1] = NULL;
        /* Heads with sinks, among them one that outweighs most rows. */
        if (i % 3 == 1) s.sinks = random_floats(n_head);
        for (uint32_t k = 0; s.sinks && k < n_head; k++) s.sinks[k] *= k % 2 ? 2 : 8;
        float *q = random_floats((size_t)n * width);
        for (size_t k = 0; k < (size_t)n * width; k++) q[k] *= 1.5f;
        visited a = run(c, c->a, &s, n, n_head, most, with_means, q),
                b = run(c, c->b, &s, n, n_head, most, with_means, q);
        check_same(c, &a, &b, n, width, most);
        for (uint32_t h = 0; h < N_KV; h++)
            check_lane(c, &s, &a, n, n_head, most, with_means, q, (uint32_t)(i * 7) % n, h);
        /* The last token by itself. */
        visited alone = run(c, c->b, &s, 1, n_head, most, with_means, q + (size_t)(n - 1) * width);
        expect_same(c, "visit (a token alone)", b.out + (size_t)(n - 1) * width, alone.out, width);
        free_visited(a);
        free_visited(b);
        free_visited(alone);
        free(q);
        scene_free(&s);
    }
    cases_visit_folded(c);
}
