/*
 * Would a level above the sketches find the rows that weigh most? Rows are put into clusters of like keys, each
 * with the mean of its keys (and the variance of each dimension); a query opens those whose rows it seems to
 * weigh most, and the best rows in what is open are compared with the best of all. Clusters are made within
 * chunks of rows, as a session would make them whenever so many have left.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "kv/core/keys.h"
#include "kv/core/state.h"
#include "kv/core/work.h"
#include "kv/lab/lab.h"

enum { BEST = 256, ROUNDS = 6, SINKS = 64, AT_ONCE = 256, MOST_GROUP = 64 };

/* A lane: its keys as they are read now, and what the asking queries give each row. */
typedef struct asked_lane {
    const float *keys; /* [n][d] */
    const float *near; /* [n][d] the same as they are compared with each other */
    uint32_t n, first, to, d, group, n_ask;
    const float *q;          /* [group][n_ask][d] */
    const double *max, *sum; /* [group][n_ask] of the softmax over all rows */
    const double *mass;      /* [n_ask][n] */
} asked_lane;

typedef struct ranked {
    double weight;
    uint32_t at;
} ranked;

typedef struct clusters {
    uint32_t n, *of, *counts; /* of: [n rows] the row's cluster */
    float *mean, *variance;   /* [n][d] */
} clusters;

static float dot(const float *a, const float *b, uint32_t d)
{
    float sums[16] = {0}, sum = 0;
    for (uint32_t i = 0; i < d; i += 16)
        for (uint32_t k = 0; k < 16; k++) sums[k] += a[i + k] * b[i + k];
    for (uint32_t k = 0; k < 16; k++) sum += sums[k];
    return sum;
}

static void take_means(const asked_lane *l, const float *keys, clusters *c, uint32_t from, uint32_t to,
    uint32_t first, uint32_t k)
{
    const uint32_t d = l->d;
    memset(c->mean + (size_t)first * d, 0, (size_t)k * d * sizeof *c->mean);
    memset(c->counts + first, 0, k * sizeof *c->counts);
    for (uint32_t r = from; r < to; r++) {
        float *mean = c->mean + (size_t)c->of[r] * d;
        for (uint32_t i = 0; i < d; i++) mean[i] += keys[(size_t)r * d + i];
        c->counts[c->of[r]]++;
    }
    for (uint32_t j = first; j < first + k; j++)
        for (uint32_t i = 0; i < d && c->counts[j]; i++) c->mean[(size_t)j * d + i] /= (float)c->counts[j];
}

/* Rows [from, to) into k clusters from `first` on: Lloyd's rounds from rows that lie evenly apart. */
static void make_chunk(
    const asked_lane *l, clusters *c, uint32_t from, uint32_t to, uint32_t first, uint32_t k)
{
    const uint32_t d = l->d;
    float *half = base_xmalloc(k * sizeof *half);
    for (uint32_t j = 0; j < k; j++)
        memcpy(c->mean + (size_t)(first + j) * d,
            l->near + (size_t)(from + (uint64_t)j * (to - from) / k) * d, d * sizeof *c->mean);
    for (int round = 0; round < ROUNDS; round++) {
        for (uint32_t j = 0; j < k; j++) {
            const float *mean = c->mean + (size_t)(first + j) * d;
            half[j] = dot(mean, mean, d) / 2;
        }
        for (uint32_t r = from; r < to; r++) {
            float best = -INFINITY;
            for (uint32_t j = 0; j < k; j++) {
                const float near =
                    dot(l->near + (size_t)r * d, c->mean + (size_t)(first + j) * d, d) - half[j];
                if (near <= best) continue;
                best = near;
                c->of[r] = first + j;
            }
        }
        take_means(l, l->near, c, from, to, first, k);
    }
    free(half);
}

static int ascending(const void *a, const void *b)
{
    const ranked *x = a, *y = b;
    return x->weight != y->weight ? (x->weight < y->weight ? -1 : 1) : (x->at > y->at) - (x->at < y->at);
}

/*
 * The n rows of `rows` into clusters of `size` each, numbered from `first`: halved again and again along the
 * direction in which they differ most (a few steps of the power method over their covariance).
 */
static void halve(const asked_lane *l, clusters *c, ranked *rows, uint32_t n, uint32_t size, uint32_t first)
{
    enum { STEPS = 4, DIM_MOST = 512 };
    const uint32_t d = l->d;
    float mean[DIM_MOST] = {0}, axis[DIM_MOST], next[DIM_MOST];
    if (n <= size) {
        for (uint32_t i = 0; i < n; i++) c->of[rows[i].at] = first;
        return;
    }
    for (uint32_t r = 0; r < n; r++)
        for (uint32_t i = 0; i < d; i++) mean[i] += l->near[(size_t)rows[r].at * d + i] / (float)n;
    for (uint32_t i = 0; i < d; i++) axis[i] = l->near[(size_t)rows[0].at * d + i] - mean[i];
    for (int step = 0; step <= STEPS; step++) {
        const float middle = dot(mean, axis, d);
        memset(next, 0, sizeof next);
        for (uint32_t r = 0; r < n; r++) {
            const float *key = l->near + (size_t)rows[r].at * d, along = dot(key, axis, d) - middle;
            rows[r].weight = (double)along;
            for (uint32_t i = 0; i < d; i++) next[i] += along * (key[i] - mean[i]);
        }
        const float length = sqrtf(dot(next, next, d));
        for (uint32_t i = 0; i < d && step < STEPS; i++) axis[i] = length > 0 ? next[i] / length : 0;
    }
    qsort(rows, n, sizeof *rows, ascending);
    const uint32_t half = (n / size + 1) / 2 * size;
    halve(l, c, rows, half, size, first);
    halve(l, c, rows + half, n - half, size, first + half / size);
}

static void make_halves(
    const asked_lane *l, clusters *c, uint32_t from, uint32_t to, uint32_t first, uint32_t k, uint32_t size)
{
    ranked *rows = base_xmalloc((to - from) * sizeof *rows);
    for (uint32_t r = from; r < to; r++) rows[r - from] = (ranked){0, r};
    halve(l, c, rows, to - from, size, first);
    take_means(l, l->near, c, from, to, first, k);
    free(rows);
}

static void make_clusters(const asked_lane *l, const kv_cluster_way *way, clusters *c)
{
    const uint32_t n = l->to - l->first, d = l->d;
    c->n = 0;
    for (uint32_t from = l->first; from < l->to; from += way->chunk) {
        const uint32_t to = l->to - from < way->chunk ? l->to : from + way->chunk,
                       k = (to - from + way->rows - 1) / way->rows;
        if (way->kind == KV_CLUSTER_HALVES) {
            make_halves(l, c, from, to, c->n, k, way->rows);
        } else if (way->kind == KV_CLUSTER_PAGES) {
            for (uint32_t r = from; r < to; r++) c->of[r] = c->n + (r - from) / way->rows;
        } else {
            make_chunk(l, c, from, to, c->n, k);
        }
        c->n += k;
    }
    take_means(l, l->keys, c, l->first, l->to, 0, c->n);
    memset(c->variance, 0, (size_t)c->n * d * sizeof *c->variance);
    for (uint32_t r = l->first; r < l->first + n; r++)
        for (uint32_t i = 0; i < d; i++) {
            const float by = l->keys[(size_t)r * d + i] - c->mean[(size_t)c->of[r] * d + i];
            c->variance[(size_t)c->of[r] * d + i] += by * by / (float)c->counts[c->of[r]];
        }
}

/* What a row of the cluster weighs: by its mean key; with the spread, the mean of e^x were x normal. */
static double weigh(const asked_lane *l, const clusters *c, uint32_t j, uint32_t ask, bool spread)
{
    const double scale = 1 / sqrt((double)l->d);
    double weight = 0;
    for (uint32_t g = 0; g < l->group; g++) {
        const float *q = l->q + ((size_t)g * l->n_ask + ask) * l->d;
        const size_t at = (size_t)g * l->n_ask + ask;
        double score = scale * (double)dot(q, c->mean + (size_t)j * l->d, l->d);
        for (uint32_t i = 0; i < l->d && spread; i++)
            score += scale * scale / 2 * (double)(q[i] * q[i] * c->variance[(size_t)j * l->d + i]);
        weight += exp(fmin(score - l->max[at], 50)) / l->sum[at];
    }
    return weight;
}

static int heavier(const void *a, const void *b)
{
    const ranked *x = a, *y = b;
    return x->weight != y->weight ? (x->weight < y->weight ? 1 : -1) : (x->at > y->at) - (x->at < y->at);
}

static double best_of(ranked *rows, uint32_t n)
{
    double sum = 0;
    qsort(rows, n, sizeof *rows, heavier);
    for (uint32_t i = 0; i < n && i < BEST; i++) sum += rows[i].weight;
    return sum;
}

/* ret[n_shares]: added up over those who ask. */
static void judge(const asked_lane *l, const clusters *c, bool spread, const double *shares,
    uint32_t n_shares, ranked *order, ranked *rows, double *ret)
{
    const uint32_t n = l->to - l->first;
    bool *open = base_xcalloc(c->n, sizeof *open);
    for (uint32_t ask = l->n_ask / 2; ask < l->n_ask; ask++) {
        const double *mass = l->mass + (size_t)ask * l->n;
        for (uint32_t r = 0; r < n; r++) rows[r] = (ranked){mass[l->first + r], r};
        const double best = best_of(rows, n);
        for (uint32_t j = 0; j < c->n; j++) order[j] = (ranked){weigh(l, c, j, ask, spread), j};
        qsort(order, c->n, sizeof *order, heavier);
        for (uint32_t k = 0; k < n_shares; k++) {
            uint32_t left = (uint32_t)(shares[k] * n), n_rows = 0;
            memset(open, 0, c->n * sizeof *open);
            for (uint32_t j = 0; j < c->n; j++) {
                const uint32_t count = c->counts[order[j].at];
                if (count > left) break;
                left -= count;
                open[order[j].at] = true;
            }
            for (uint32_t r = l->first; r < l->to; r++)
                if (open[c->of[r]]) rows[n_rows++] = (ranked){mass[r], r};
            ret[k] += (best > 0 ? best_of(rows, n_rows) / best : 1) / (l->n_ask - l->n_ask / 2);
        }
    }
    free(open);
}

/*
 * Keys as they are compared: each dimension by what queries give it, root mean square over the first half of
 * those who ask and over the two dimensions that a position turns into each other. ret: [n][d].
 */
static void stretch(const asked_lane *l, float *ret)
{
    enum { DIM_MOST = 512 };
    const uint32_t d = l->d, half = d / 2;
    double by[DIM_MOST] = {0};
    for (uint32_t g = 0; g < l->group; g++)
        for (uint32_t ask = 0; ask < l->n_ask / 2; ask++)
            for (uint32_t i = 0; i < d; i++) {
                const double q = (double)l->q[((size_t)g * l->n_ask + ask) * d + i];
                by[i % half] += q * q;
            }
    for (uint32_t r = 0; r < l->n; r++)
        for (uint32_t i = 0; i < d; i++)
            ret[(size_t)r * d + i] = l->keys[(size_t)r * d + i] * (float)sqrt(by[i % half]);
}

/* Softmax over all rows, and by row the mean share of the lane's heads. */
static void weigh_rows(const asked_lane *l, double *max, double *sum, double *mass)
{
    const double scale = 1 / sqrt((double)l->d);
    double *p = base_xmalloc(l->n * sizeof *p);
    memset(mass, 0, (size_t)l->n_ask * l->n * sizeof *mass);
    for (uint32_t at = 0; at < l->group * l->n_ask; at++) {
        max[at] = -INFINITY;
        sum[at] = 0;
        for (uint32_t r = 0; r < l->n; r++) {
            p[r] = scale * (double)dot(l->q + (size_t)at * l->d, l->keys + (size_t)r * l->d, l->d);
            max[at] = fmax(max[at], p[r]);
        }
        for (uint32_t r = 0; r < l->n; r++) sum[at] += p[r] = exp(p[r] - max[at]);
        for (uint32_t r = 0; r < l->n; r++)
            mass[(size_t)(at % l->n_ask) * l->n + r] += p[r] / sum[at] / l->group;
    }
    free(p);
}

/* Keys of tokens [0, n) in every step-th lane as they are read now, folded: [lane / step][n][d]. */
static float *read_keys(const kv_session *s, uint32_t n, uint32_t step, base_err *err)
{
    const model_rows_view view = kv__view(s);
    const uint32_t d = s->compute.shape.head_dim, group = s->compute.n_head / s->compute.shape.n_head_kv;
    float *ret = malloc(((size_t)s->n_lanes / step + 1) * n * d * sizeof *ret);
    for (uint32_t from = 0; from < n && ret; from += AT_ONCE) {
        const uint32_t k = n - from < AT_ONCE ? n - from : AT_ONCE;
        uint32_t tokens[AT_ONCE];
        int64_t by[AT_ONCE];
        for (uint32_t i = 0; i < k; i++) {
            tokens[i] = from + i;
            by[i] = model_rows_gap(&view, from + i);
        }
        float *keys = kv__keys_as_queries(&s->compute, &view, tokens, k);
        if (!keys) {
            free(ret);
            ret = NULL;
            break;
        }
        if (s->compute.turn) s->compute.turn(s->compute.user, keys, k, by);
        for (uint32_t lane = 0; lane < s->n_lanes; lane += step)
            memcpy(ret + ((size_t)(lane / step) * n + from) * d, keys + (size_t)lane * group * k * d,
                (size_t)k * d * sizeof *ret);
        free(keys);
    }
    if (!ret) base_fail(err, BASE_E_NOMEM, "no memory for the keys of %u tokens", n);
    return ret;
}

int kv_session_clusters(kv_session *s, const kv_signal *asks, const kv_cluster_trial *t, base_err *err)
{
    const kv_cluster_way *ways = t->ways;
    const uint32_t n_ways = t->n_ways, n_shares = t->n_shares, step = t->step;
    const uint32_t d = s->compute.shape.head_dim, group = s->compute.n_head / s->compute.shape.n_head_kv,
                   n = asks->n ? asks->tokens[0] : 0;
    if (n < SINKS + KV_FOLD_NEAR + BEST || d % 16 || group > MOST_GROUP)
        return base_fail(err, BASE_E_USAGE, "too few tokens in front of those that ask: %u", n);
    float *keys = read_keys(s, n, step, err);
    if (!keys) return BASE_E_NOMEM;
    const size_t most = n; /* clusters */
    kv_work memory = {NULL};
    double *max = kv_work_take(&memory, (size_t)group * asks->n, sizeof *max),
           *sum = kv_work_take(&memory, (size_t)group * asks->n, sizeof *sum),
           *mass = kv_work_take(&memory, (size_t)asks->n * n, sizeof *mass);
    clusters c = {.of = kv_work_take(&memory, n, sizeof *c.of),
        .counts = kv_work_take(&memory, most, sizeof *c.counts),
        .mean = kv_work_take(&memory, most / 4 * d, sizeof *c.mean),
        .variance = kv_work_take(&memory, most / 4 * d, sizeof *c.variance)};
    ranked *order = kv_work_take(&memory, most, sizeof *order),
           *rows = kv_work_take(&memory, n, sizeof *rows);
    double *share = kv_work_take(&memory, n_shares, sizeof *share);
    float *stretched = kv_work_take(&memory, (size_t)n * d, sizeof *stretched);
    int rc = memory.failed ? base_fail(err, BASE_E_NOMEM, "no memory for clusters of %u rows", n) : 0;
    uint32_t n_lanes = 0;
    for (uint32_t i = 0; i < n_ways * n_shares; i++) {
        t->mean[i] = 0;
        t->worst[i] = 1;
    }
    for (uint32_t at = 0; at < s->n_lanes && !rc; at += step, n_lanes++) {
        asked_lane l = {.keys = keys + (size_t)(at / step) * n * d,
            .n = n,
            .first = SINKS,
            .to = n - KV_FOLD_NEAR,
            .d = d,
            .group = group,
            .n_ask = asks->n,
            .q = asks->queries + (size_t)at * group * asks->n * d,
            .max = max,
            .sum = sum,
            .mass = mass};
        weigh_rows(&l, max, sum, mass);
        stretch(&l, stretched);
        for (uint32_t w = 0; w < n_ways; w++) {
            l.near = ways[w].stretched ? stretched : l.keys;
            if (!w || ways[w].stretched != ways[w - 1].stretched || ways[w].rows != ways[w - 1].rows ||
                ways[w].chunk != ways[w - 1].chunk || ways[w].kind != ways[w - 1].kind)
                make_clusters(&l, &ways[w], &c);
            memset(share, 0, n_shares * sizeof *share);
            judge(&l, &c, ways[w].spread, t->shares, n_shares, order, rows, share);
            for (uint32_t k = 0; k < n_shares; k++) {
                t->mean[w * n_shares + k] += share[k];
                t->worst[w * n_shares + k] = fmin(t->worst[w * n_shares + k], share[k]);
            }
        }
    }
    for (uint32_t i = 0; i < n_ways * n_shares && n_lanes; i++) t->mean[i] /= n_lanes;
    kv_work_free(&memory);
    free(keys);
    return rc;
}
