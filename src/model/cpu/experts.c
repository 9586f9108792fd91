/*
 * A mixture of experts: the router (route), and the feed-forward of every token's experts (experts).
 *
 * A token and one of its experts are a pair. Pairs are sorted by expert, and those of one expert are columns
 * of the same products, so that its weights are read once however many tokens want them. A column's bits do
 * not depend on its neighbours, and a token's pairs are summed in the order of the router's choice: who else
 * is in the batch never shows.
 *
 * Pairs, gate and up, activation, down, sum: each step is spread over the threads and done before the next
 * begins. Of a single token's steps only the two products are worth waking others.
 */
#include <math.h>
#include <string.h>

#include "model/cpu/cpu.h"
#include "model/ops/check.h"

enum { MIN_PARALLEL = 32 * 1024 }; /* elements; fewer are done sooner than other threads wake */

/* fn over n_items on all threads, or here when there are few elements. */
static bool spread(cpu_ops *cpu, cpu_items_fn *fn, const void *arg, uint32_t n_items, size_t n_elements)
{
    uint32_t chunk = n_items / (8 * (uint32_t)cpu->n_threads);
    if (n_elements >= MIN_PARALLEL) return cpu_run_items(cpu, fn, arg, n_items, chunk ? chunk : 1);
    fn(arg, 0, n_items, 0);
    return !cpu_is_cancelled(cpu);
}

/* ---- the router ---- */

enum { ROUTER_ROWS = 4 };

typedef struct route_job {
    cpu_ops *cpu;
    const ops_route_args *args;
    uint32_t padded; /* experts, to whole vectors */
    float *scores;   /* [n][padded] */
} route_job;

/* Items: ROUTER_ROWS rows of the router, times every token. */
static void score_experts(const void *arg, uint32_t first, uint32_t last, int thread)
{
    const route_job *j = arg;
    const ops_route_args *a = j->args;
    (void)thread;
    for (uint32_t i = first; i < last; i++) {
        uint32_t e = i * ROUTER_ROWS,
                 n_rows = a->n_experts - e < ROUTER_ROWS ? a->n_experts - e : ROUTER_ROWS;
        for (uint32_t t = 0; t < a->n; t++)
            j->cpu->kernels.dot_rows(cpu_floats(a->router) + (size_t)e * a->width, a->width, n_rows,
                cpu_row(a->x, t), a->width, j->scores + (size_t)t * j->padded + e);
    }
}

/* Of equals the first. */
static uint32_t find_largest(const float *p, uint32_t n)
{
    uint32_t best = 0;
    for (uint32_t e = 1; e < n; e++)
        if (p[e] > p[best]) best = e;
    return best;
}

static void choose_experts(const void *arg, uint32_t first, uint32_t last, int thread)
{
    const route_job *j = arg;
    const ops_route_args *a = j->args;
    (void)thread;
    for (uint32_t t = first; t < last; t++) {
        float *p = j->scores + (size_t)t * j->padded, largest, all, sum = 0;
        uint32_t *chosen = (uint32_t *)a->chosen->data + (size_t)t * a->n_used;
        float *weights = (float *)a->weights->data + (size_t)t * a->n_used;
        for (uint32_t e = 0; a->bias && e < a->n_experts; e++) p[e] += cpu_floats(a->bias)[e];
        j->cpu->kernels.softmax(p, 0, a->n_experts, j->padded, &largest, &all);
        for (uint32_t e = 0; e < a->n_experts; e++)
            if (!(p[e] >= 0)) p[e] = 0; /* not a number: where all are, so are the weights */
        for (uint32_t i = 0; i < a->n_used; i++) {
            chosen[i] = find_largest(p, a->n_experts);
            weights[i] = p[chosen[i]];
            sum += weights[i];
            p[chosen[i]] = -1; /* taken */
        }
        for (uint32_t i = 0; i < a->n_used; i++) weights[i] /= sum;
        for (uint32_t i = 0; a->scales && i < a->n_used; i++) weights[i] *= cpu_floats(a->scales)[chosen[i]];
    }
}

/* How much the expert of all tokens counts; in F64 behind the product, as libraries' exp differ. */
static void share_all(const ops_route_args *a, const cpu_kernels *k)
{
    for (uint32_t t = 0; t < a->n && a->shared; t++) {
        float score;
        k->dot_rows(cpu_floats(a->shared), a->width, 1, cpu_row(a->x, t), a->width, &score);
        ((float *)a->shares->data)[t] = (float)(1 / (1 + exp(-(double)score)));
    }
}

int cpu_op_route(model_ops *ops, const ops_route_args *a, base_err *err)
{
    cpu_ops *cpu = (cpu_ops *)ops;
    int rc = ops_check_route(ops, a, err);
    if (rc || a->n == 0) return rc;
    route_job j = {.cpu = cpu, .args = a, .padded = (a->n_experts + CPU_LANES - 1) / CPU_LANES * CPU_LANES};
    rc = cpu_scratch_reserve(cpu, 0, (size_t)a->n * j.padded * sizeof(float), err);
    if (rc) return rc;
    j.scores = cpu->shared.data;
    const size_t n_products = (size_t)a->n * a->n_experts;
    if (!spread(
            cpu, score_experts, &j, (a->n_experts + ROUTER_ROWS - 1) / ROUTER_ROWS, n_products * a->width))
        return cpu_cancelled(err);
    if (!spread(cpu, choose_experts, &j, a->n, n_products * (a->n_used + 1))) return cpu_cancelled(err);
    share_all(a, &cpu->kernels);
    return 0;
}

/* ---- the experts ---- */

/* The pairs of one expert: places [first, first + n) in the order of experts. */
typedef struct cohort {
    uint32_t expert, first, n;
} cohort;

/*
 * What a product reads, cohort by cohort: the columns of its pairs, then second columns of those that are
 * `fine` (cpu.h, ops_activations), in groups of their own.
 */
typedef struct columns {
    const int8_t *row_q, *row_q2; /* quantised rows, one after another */
    const float *row_d;
    const uint8_t *row_fine;
    const uint32_t *row_of; /* [pairs]; NULL: row i is of pair i */
    uint32_t width, n_blocks;
    uint32_t *fine;     /* places in their cohort */
    uint32_t *fine_end; /* [cohorts]: where each one's part of `fine` ends */
    cpu_columns to;
} columns;

typedef struct experts_job {
    cpu_ops *cpu;
    const ops_experts_args *args;
    uint32_t n, n_pairs, n_cohorts, n_ff, n_out, n_ff_blocks;
    cohort *cohorts;
    uint32_t *place_of; /* [n][n_used]: where the order of experts has a pair */
    uint32_t *token_of; /* [pairs] */
    columns in, hidden; /* what gate and up read, and what down does */
    int8_t *hidden_q;   /* [2][pairs][n_ff] */
    float *hidden_d;    /* [pairs][blocks of n_ff] */
    uint8_t *hidden_fine;
    float *gate_up; /* [pairs][2 n_ff] */
    float *down;    /* [pairs][n_out] */
} experts_job;

static uint32_t row_of(const columns *c, uint32_t pair)
{
    return c->row_of ? c->row_of[pair] : pair;
}

static uint32_t fine_begin(const columns *c, uint32_t i)
{
    return i ? c->fine_end[i - 1] : 0;
}

static uint32_t columns_of(const experts_job *j, const columns *c, uint32_t i)
{
    return j->cohorts[i].n + c->fine_end[i] - fine_begin(c, i);
}

/* Where a cohort's groups begin. */
static cpu_columns groups_of(const experts_job *j, const columns *c, uint32_t i)
{
    return cpu_columns_from(c->to, c->n_blocks, j->cohorts[i].first + fine_begin(c, i));
}

static uint32_t n_columns_most(const experts_job *j, const columns *c)
{
    uint32_t most = 0;
    for (uint32_t i = 0; i < j->n_cohorts; i++)
        if (columns_of(j, c, i) > most) most = columns_of(j, c, i);
    return most;
}

/* Counting sort: a cohort's pairs stay in the order of their tokens. */
static int sort_pairs(experts_job *j, uint32_t *n_of, base_err *err)
{
    const ops_experts_args *a = j->args;
    const uint32_t *chosen = a->chosen->data;
    uint32_t at = 0;
    memset(n_of, 0, a->n_experts * sizeof *n_of);
    for (uint32_t p = 0; p < j->n_pairs; p++) {
        if (chosen[p] >= a->n_experts)
            return base_fail(err, BASE_E_LIMIT, "expert %u of %u was chosen", chosen[p], a->n_experts);
        n_of[chosen[p]]++;
    }
    for (uint32_t e = 0; e < a->n_experts; e++) {
        if (n_of[e]) j->cohorts[j->n_cohorts++] = (cohort){.expert = e, .first = at, .n = n_of[e]};
        uint32_t n = n_of[e];
        n_of[e] = at; /* from here on: its next free place */
        at += n;
    }
    for (uint32_t p = 0; p < j->n_pairs; p++) {
        j->place_of[p] = n_of[chosen[p]]++;
        j->token_of[j->place_of[p]] = p / a->n_used;
    }
    return 0;
}

static void list_fine(const experts_job *j, columns *c)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < j->n_cohorts; i++) {
        for (uint32_t k = 0; k < j->cohorts[i].n; k++)
            if (c->row_fine[row_of(c, j->cohorts[i].first + k)]) c->fine[n++] = k;
        c->fine_end[i] = n;
    }
}

static void interleave_cohort(const experts_job *j, const columns *c, uint32_t i)
{
    const uint32_t n = j->cohorts[i].n, n_columns = columns_of(j, c, i), n_blocks = c->width / CPU_BLOCK;
    const cpu_columns to = groups_of(j, c, i);
    for (uint32_t first = 0; first < n_columns; first += CPU_GROUP) {
        uint32_t wide = n_columns - first < CPU_GROUP ? n_columns - first : CPU_GROUP;
        const int8_t *q[CPU_GROUP];
        const float *d[CPU_GROUP];
        float unit[CPU_GROUP];
        for (uint32_t k = 0; k < wide; k++) {
            bool second = first + k >= n;
            uint32_t place = second ? c->fine[fine_begin(c, i) + first + k - n] : first + k;
            size_t row = row_of(c, j->cohorts[i].first + place);
            q[k] = (second ? c->row_q2 : c->row_q) + row * c->width;
            d[k] = c->row_d + row * c->n_blocks;
            unit[k] = second ? 1.0f / 256 : 1.0f;
        }
        cpu_interleave(&j->cpu->kernels, q, d, unit, wide, n_blocks, c->n_blocks,
            cpu_columns_from(to, c->n_blocks, first));
    }
}

static void interleave_in(const void *arg, uint32_t first, uint32_t last, int thread)
{
    const experts_job *j = arg;
    (void)thread;
    for (uint32_t i = first; i < last; i++) interleave_cohort(j, &j->in, i);
}

static void interleave_hidden(const void *arg, uint32_t first, uint32_t last, int thread)
{
    const experts_job *j = arg;
    (void)thread;
    for (uint32_t i = first; i < last; i++) interleave_cohort(j, &j->hidden, i);
}

/* One tile of a cohort's expert times its columns, to y [pairs][stride]. bias: of all experts, or NULL. */
static void multiply_cohort(const experts_job *j, const columns *c, const ops_weight *w,
    const ops_buffer *bias, uint32_t i, uint32_t tile, uint32_t stride, float *y, int thread)
{
    const cohort *h = &j->cohorts[i];
    const uint32_t per_expert = w->n_tiles / j->args->n_experts, begin = fine_begin(c, i);
    uint8_t *panel = j->cpu->scratch[thread].data;
    float *out = (float *)(void *)(panel + cpu_panel_bytes(c->n_blocks));
    cpu_multiply_tile(&j->cpu->kernels, w, h->expert * per_expert + tile, groups_of(j, c, i), c->n_blocks,
        columns_of(j, c, i), panel, out);
    for (uint32_t k = begin; k < c->fine_end[i]; k++) {
        float *to = out + (size_t)c->fine[k] * CPU_LANES;
        const float *second = out + (size_t)(h->n + k - begin) * CPU_LANES;
        for (int r = 0; r < CPU_LANES; r++) to[r] += second[r];
    }
    const float *more = bias ? cpu_floats(bias) + ((size_t)h->expert * per_expert + tile) * CPU_LANES : NULL;
    for (size_t k = 0; more && k < (size_t)h->n * CPU_LANES; k++) out[k] += more[k % CPU_LANES];
    y += (size_t)h->first * stride + (size_t)tile * CPU_LANES;
    for (uint32_t k = 0; k < h->n; k++, y += stride)
        memcpy(y, out + (size_t)k * CPU_LANES, CPU_LANES * sizeof *y);
}

/* Items: tiles of gate, then of up, cohort by cohort. */
static void multiply_gate_up(const void *arg, uint32_t first, uint32_t last, int thread)
{
    const experts_job *j = arg;
    const uint32_t n_tiles = j->n_ff / CPU_LANES;
    for (uint32_t at = first; at < last; at++) {
        uint32_t tile = at % (2 * n_tiles);
        bool up = tile >= n_tiles;
        const ops_experts_args *a = j->args;
        multiply_cohort(j, &j->in, up ? a->up : a->gate, up ? a->up_bias : a->gate_bias, at / (2 * n_tiles),
            up ? tile - n_tiles : tile, 2 * j->n_ff, j->gate_up + (up ? j->n_ff : 0), thread);
    }
}

static void multiply_down(const void *arg, uint32_t first, uint32_t last, int thread)
{
    const experts_job *j = arg;
    const uint32_t n_tiles = j->n_out / CPU_LANES;
    for (uint32_t at = first; at < last; at++)
        multiply_cohort(j, &j->hidden, j->args->down, j->args->down_bias, at / n_tiles, at % n_tiles,
            j->n_out, j->down, thread);
}

static void activate(const void *arg, uint32_t first, uint32_t last, int thread)
{
    const experts_job *j = arg;
    const cpu_kernels *k = &j->cpu->kernels;
    const size_t n_ff = j->n_ff;
    float *scratch = j->cpu->scratch[thread].data;
    for (size_t p = first; p < last; p++) {
        const float *gate = j->gate_up + p * 2 * n_ff;
        int8_t *q = j->hidden_q + p * n_ff;
        float *d = j->hidden_d + p * j->n_ff_blocks;
        k->gate_row(gate, gate + n_ff, j->args->kind, j->n_ff, scratch);
        k->quant_row(scratch, j->n_ff, q, d);
        j->hidden_fine[p] = cpu_row_needs_fine(d, j->n_ff / CPU_BLOCK);
        if (j->hidden_fine[p]) k->quant_fine_row(scratch, j->n_ff, q, d, q + j->n_pairs * n_ff);
    }
}

static void add_up(const void *arg, uint32_t first, uint32_t last, int thread)
{
    const experts_job *j = arg;
    const ops_experts_args *a = j->args;
    float *sum = j->cpu->scratch[thread].data;
    for (uint32_t t = first; t < last; t++) {
        const float *weights = cpu_floats(a->weights) + (size_t)t * a->n_used;
        for (uint32_t i = 0; i < a->n_used; i++) {
            const float *one = j->down + (size_t)j->place_of[t * a->n_used + i] * j->n_out;
            for (uint32_t k = 0; k < j->n_out; k++)
                sum[k] = i ? sum[k] + weights[i] * one[k] : weights[i] * one[k];
        }
        const float *more = a->add.buffer ? cpu_row(a->add, t) : NULL;
        float *y = cpu_row(a->y, t);
        for (uint32_t k = 0; k < j->n_out; k++) y[k] = more ? sum[k] + more[k] : sum[k];
    }
}

/* Pieces of the shared memory, one after another; with base NULL only their sum is wanted. */
typedef struct pieces {
    uint8_t *base;
    size_t at;
} pieces;

static void *take(pieces *p, size_t n_bytes)
{
    void *piece = p->base ? p->base + p->at : NULL;
    p->at += (n_bytes + 63) / 64 * 64;
    return piece;
}

static void take_columns(pieces *p, columns *c, uint32_t n_cohorts, size_t n_columns)
{
    const size_t n = n_columns * c->n_blocks;
    c->fine = take(p, n_columns * sizeof *c->fine);
    c->fine_end = take(p, n_cohorts * sizeof *c->fine_end);
    c->to.q = take(p, n * CPU_BLOCK);
    c->to.d = take(p, n * sizeof *c->to.d);
    c->to.sum = take(p, n * sizeof *c->to.sum);
    c->to.nsum = take(p, 2 * n * sizeof *c->to.nsum);
}

/*
 * Room for everything between the steps. What down makes lies where its product's inputs no longer are: over
 * the first columns and gate and up. ret_counts: [n_experts], for the sort.
 */
static size_t lay_out(experts_job *j, uint8_t *base, uint32_t **ret_counts)
{
    const ops_experts_args *a = j->args;
    const uint32_t most = j->n_pairs < a->n_experts ? j->n_pairs : a->n_experts;
    const size_t n = j->n_pairs;
    pieces p = {base, 0};
    *ret_counts = take(&p, a->n_experts * sizeof **ret_counts);
    j->cohorts = take(&p, most * sizeof *j->cohorts);
    j->place_of = take(&p, n * sizeof *j->place_of);
    j->token_of = take(&p, n * sizeof *j->token_of);
    j->hidden_q = take(&p, 2 * n * j->n_ff);
    j->hidden_d = take(&p, n * j->n_ff_blocks * sizeof *j->hidden_d);
    j->hidden_fine = take(&p, n);
    take_columns(&p, &j->hidden, most, 2 * n);
    pieces over = p;
    take_columns(&p, &j->in, most, n + (size_t)a->x->n_fine * a->n_used);
    j->gate_up = take(&p, n * 2 * j->n_ff * sizeof *j->gate_up);
    j->down = take(&over, n * j->n_out * sizeof *j->down);
    return p.at > over.at ? p.at : over.at;
}

/* The three products and what lies between them; the pairs are sorted. */
static bool run_steps(experts_job *j)
{
    cpu_ops *cpu = j->cpu;
    const ops_experts_args *a = j->args;
    const size_t n = j->n_pairs;
    const uint32_t n_gate_up = j->n_cohorts * 2 * (j->n_ff / CPU_LANES),
                   n_down = j->n_cohorts * (j->n_out / CPU_LANES);
    if (!spread(cpu, interleave_in, j, j->n_cohorts, n * j->in.width)) return false;
    uint32_t chunk = cpu_chunk_of(cpu, n_gate_up, a->gate->tile_bytes, n_columns_most(j, &j->in));
    if (!cpu_run_items(cpu, multiply_gate_up, j, n_gate_up, chunk)) return false;
    if (!spread(cpu, activate, j, j->n_pairs, n * j->n_ff)) return false;
    list_fine(j, &j->hidden);
    if (!spread(cpu, interleave_hidden, j, j->n_cohorts, n * j->n_ff)) return false;
    chunk = cpu_chunk_of(cpu, n_down, a->down->tile_bytes, n_columns_most(j, &j->hidden));
    if (!cpu_run_items(cpu, multiply_down, j, n_down, chunk)) return false;
    return spread(cpu, add_up, j, j->n, n * j->n_out);
}

int cpu_op_experts(model_ops *ops, const ops_experts_args *a, base_err *err)
{
    cpu_ops *cpu = (cpu_ops *)ops;
    const ops_activations *x = a->x;
    const ops_shape shapes[] = {
        {a->gate->n_in, a->gate->n_out}, {a->up->n_in, a->up->n_out}, {a->down->n_in, a->down->n_out}};
    int rc = ops_check_experts(ops, a, x->n, x->width, shapes, err);
    if (rc || x->n == 0) return rc;
    experts_job j = {.cpu = cpu, .args = a, .n = x->n, .n_pairs = x->n * a->n_used};
    j.n_ff = a->gate->n_out / a->n_experts;
    j.n_out = a->down->n_out / a->n_experts;
    j.n_ff_blocks = cpu_padded_blocks(j.n_ff);
    j.in = (columns){.row_q = x->row_q, .row_q2 = x->row_q2, .row_d = x->row_d, .row_fine = x->row_fine};
    j.in.width = x->width;
    j.in.n_blocks = x->n_blocks;
    j.hidden = (columns){.width = j.n_ff, .n_blocks = j.n_ff_blocks};
    uint32_t *counts;
    const size_t n_blocks = j.n_ff_blocks > x->n_blocks ? j.n_ff_blocks : x->n_blocks;
    /*
     * A panel and the products of all columns (no token goes to an expert twice); or a row of the hidden
     * numbers; or a token's sum.
     */
    size_t per_thread = cpu_panel_bytes((uint32_t)n_blocks) + 2 * (size_t)x->n * CPU_LANES * sizeof(float);
    if (per_thread < j.n_ff * sizeof(float)) per_thread = j.n_ff * sizeof(float);
    if (per_thread < j.n_out * sizeof(float)) per_thread = j.n_out * sizeof(float);
    if ((rc = cpu_scratch_reserve(cpu, per_thread, lay_out(&j, NULL, &counts), err))) return rc;
    lay_out(&j, cpu->shared.data, &counts);
    j.in.row_of = j.token_of;
    j.hidden.row_q = j.hidden_q;
    j.hidden.row_q2 = j.hidden_q + (size_t)j.n_pairs * j.n_ff;
    j.hidden.row_d = j.hidden_d;
    j.hidden.row_fine = j.hidden_fine;
    if ((rc = sort_pairs(&j, counts, err))) return rc;
    list_fine(&j, &j.in);
    return run_steps(&j) ? 0 : cpu_cancelled(err);
}
