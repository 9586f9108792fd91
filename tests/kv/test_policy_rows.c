/*
 * Which rows each policy from a paper keeps. Every test writes queries and keys by hand, lets a session evict
 * (or prune) once, and compares what stayed with a few lines that follow the paper's formula, which the
 * comment above the test gives. Those lines share nothing with src/kv: softmax, ranks and choices are written
 * here again, in double precision.
 *
 * Notation: N tokens; a lane is one (layer, KV head) pair; D numbers a head; G query heads read a lane.
 *
 *     p(q, j over S) = exp(q . k_j / sqrt(D)) / sum over i in S of exp(q . k_i / sqrt(D))
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "fake_compute.h"
#include "kv/session.h"

enum {
    N = 240,
    G = FAKE_HEADS / FAKE_HEADS_KV,
    ALL_HEADS = FAKE_LAYERS * FAKE_HEADS, /* head h of all layers reads lane h / G */
};

/*
 * The model without weights, with queries and keys that a test writes. A token's id is its place: id t asks
 * query[.][t], offers key[.][t].
 */
typedef struct painted {
    fake_model fake;
    kv_compute inner;
    float query[ALL_HEADS][N][FAKE_DIM];
    float key[FAKE_LANES][N][FAKE_DIM]; /* whole numbers from 0 to 31, which F16 holds */
} painted;

static painted paint; /* too large for a stack */

static uint16_t half_of(float x)
{
    const uint32_t n = (uint32_t)x;
    uint32_t exponent = 0;
    while (n >> (exponent + 1)) exponent++;
    return n ? (uint16_t)((exponent + 15) << 10 | (n << (10 - exponent) & 0x3ff)) : 0;
}

static uint32_t slot_at(const model_lane_list *list, uint32_t ordinal)
{
    uint32_t r = 0;
    for (; ordinal >= list->runs[r].n; r++) ordinal -= list->runs[r].n;
    return list->runs[r].slot + ordinal;
}

static int forward(void *user, const model_batch *b, base_err *err)
{
    painted *p = user;
    const uint32_t first = b->layer_first, last = b->layer_last ? b->layer_last : FAKE_LAYERS;
    const int r = p->inner.forward(p->inner.user, b, err);
    for (uint32_t lane = first * FAKE_HEADS_KV; lane < last * FAKE_HEADS_KV && !r; lane++) {
        const model_lane_list *list = &b->rows->lanes[lane];
        for (uint32_t t = 0; t < b->n; t++) {
            uint16_t *key = model_rows_key(b->rows, lane, slot_at(list, list->n_rows - b->n + t));
            for (uint32_t d = 0; d < FAKE_DIM; d++) key[d] = half_of(p->key[lane][b->ids[t]][d]);
        }
    }
    for (uint32_t h = first * FAKE_HEADS; b->capture && h < last * FAKE_HEADS && !r; h++)
        for (uint32_t i = 0; i < b->capture->n; i++)
            memcpy(b->capture->queries + ((size_t)h * b->capture->n + i) * FAKE_DIM,
                p->query[h][b->ids[b->capture->tokens[i]]], sizeof p->query[h][0]);
    return r;
}

/* p(q, j over the rows for which `in` holds; NULL: all of the first n) into p[n]; 0 for the others. */
static void attend(const float *q, uint32_t lane, const bool *in, uint32_t n, double *p)
{
    double sum = 0;
    for (uint32_t j = 0; j < n; j++) {
        double dot = 0;
        for (uint32_t d = 0; d < FAKE_DIM; d++) dot += q[d] * paint.key[lane][j][d];
        sum += p[j] = in && !in[j] ? 0 : exp(dot / sqrt(FAKE_DIM));
    }
    for (uint32_t j = 0; j < n && sum > 0; j++) p[j] /= sum;
}

/* kv_compute's score: what model.h says of model_score, over the painted keys. */
static int score(void *user, const model_score *s, base_err *err)
{
    (void)user, (void)err;
    for (uint32_t lane = 0; lane < FAKE_LANES; lane++) {
        const model_lane_list *list = &s->rows->lanes[lane];
        bool in[N] = {false};
        double sum[N] = {0}, p[N];
        if (!s->mass[lane]) continue;
        assert_int_equal(s->pool, MODEL_POOL_MEAN);
        assert_null(s->heads);
        for (uint32_t r = 0; r < list->n_runs; r++)
            for (uint32_t i = 0; i < list->runs[r].n; i++) in[list->runs[r].index + i] = true;
        for (uint32_t h = lane * G; h < (lane + 1) * G; h++)
            for (uint32_t t = 0; t < s->n_queries; t++) {
                attend(s->queries + ((size_t)h * s->n_queries + t) * FAKE_DIM, lane, in, N, p);
                for (uint32_t j = 0; j < N; j++) sum[j] += p[j] / (G * s->n_queries);
            }
        for (uint32_t j = 0, o = 0; j < N; j++)
            if (in[j]) s->mass[lane][o++] = (float)sum[j];
    }
    return 0;
}

/*
 * Queries and keys that a seed draws: whole numbers from 0 to 3. A test then writes into them what must
 * decide.
 */
static void draw(uint64_t seed)
{
    paint.fake = (fake_model){0};
    for (uint32_t h = 0; h < ALL_HEADS; h++)
        for (uint32_t t = 0; t < N; t++)
            for (uint32_t d = 0; d < FAKE_DIM; d++) paint.query[h][t][d] = (float)test_below(&seed, 4);
    for (uint32_t lane = 0; lane < FAKE_LANES; lane++)
        for (uint32_t t = 0; t < N; t++)
            for (uint32_t d = 0; d < FAKE_DIM; d++) paint.key[lane][t][d] = (float)test_below(&seed, 4);
}

static void set_all(float *x, float value)
{
    for (uint32_t d = 0; d < FAKE_DIM; d++) x[d] = value;
}

static void set_key(uint32_t t, float value)
{
    for (uint32_t lane = 0; lane < FAKE_LANES; lane++) set_all(paint.key[lane][t], value);
}

/* Every head of token t asks along one dimension alone. */
static void set_query(uint32_t t, uint32_t dimension, float value)
{
    for (uint32_t h = 0; h < ALL_HEADS; h++) {
        set_all(paint.query[h][t], 0);
        paint.query[h][t][dimension] = value;
    }
}

/* Without a budget: nothing is evicted before evict() sets one. */
static kv_session *open_session(const char *policy, const char *const *set)
{
    paint.inner = fake_compute(&paint.fake, N);
    kv_compute c = paint.inner;
    c.user = &paint;
    c.forward = forward;
    c.score = score;
    const kv_options o = {.policy = policy, .set = set};
    kv_session *s = NULL;
    base_err err = {0};
    if (kv_session_new_over(&s, &c, &o, NULL, &err)) fail_msg("%s", err.msg);
    return s;
}

/* The next n tokens. */
static void append(kv_session *s, kv_origin origin, uint32_t turn, uint32_t n)
{
    const kv_segment g = {.origin = origin, .turn = turn};
    int32_t ids[N];
    base_err err = {0};
    uint32_t at;
    kv_session_ids(s, &at);
    for (uint32_t i = 0; i < n; i++) ids[i] = (int32_t)(at + i);
    if (kv_session_append(s, &g, ids, n, NULL, NULL, &err)) fail_msg("%s", err.msg);
}

/*
 * Adds the n highest of what is not kept yet; of equal ones the earlier. Only rows for which `in` holds
 * (NULL: all).
 */
static void keep_best(const double *value, const bool *in, uint32_t n, bool *keep)
{
    while (n--) {
        uint32_t best = N;
        for (uint32_t j = 0; j < N; j++)
            if (!keep[j] && (!in || in[j]) && (best == N || value[j] > value[best])) best = j;
        assert_int_not_equal(best, N);
        keep[best] = true;
    }
}

static void keep_newest(uint32_t n, bool *keep)
{
    for (uint32_t j = N - n; j < N; j++) keep[j] = true;
}

static void assert_lane(const kv_session *s, uint32_t lane, const bool *keep)
{
    uint64_t bits[(N + 63) / 64] = {0};
    kv_session_lane_bits(s, lane, bits);
    for (uint32_t j = 0; j < N; j++)
        if ((bits[j / 64] >> j % 64 & 1) != keep[j])
            fail_msg("lane %u: row %u %s, by the formula it %s", lane, j, keep[j] ? "left" : "stayed",
                keep[j] ? "stays" : "leaves");
}

/* One pass, down to the budget: the session, opened with these, has read everything so far. */
static void evict(kv_session *s, const char *policy, const char *const *set, uint32_t budget)
{
    const kv_options o = {.budget = budget, .policy = policy, .set = set, .bare = true};
    base_err err = {0};
    if (kv_session_set_policy(s, &o, &err)) fail_msg("%s", err.msg);
    if (kv_session_evict(s, &err)) fail_msg("%s", err.msg);
}

/*
 * Rows that each query reads with some mass, and one that a single query reads with nearly all of its mass.
 */
enum { SPIKE = 60, SPIKED_BY = 150 };
static const uint32_t persistent[] = {5, 11, 17, 33, 34, 35, 80, 81, 99, 120};
enum { N_PERSISTENT = sizeof persistent / sizeof *persistent };

static void paint_persistence(void)
{
    for (uint32_t t = 0; t < N; t++) {
        set_key(t, 0);
        for (uint32_t h = 0; h < ALL_HEADS; h++) set_all(paint.query[h][t], .125f);
        for (uint32_t lane = 0; lane < FAKE_LANES; lane++) paint.key[lane][t][lane] = (float)(t % 3);
    }
    for (uint32_t i = 0; i < N_PERSISTENT; i++) set_key(persistent[i], 6);
    set_key(SPIKE, 0);
    for (uint32_t lane = 0; lane < FAKE_LANES; lane++) paint.key[lane][SPIKE][15] = 31;
    for (uint32_t h = 0; h < ALL_HEADS; h++) set_all(paint.query[h][SPIKED_BY], 0);
    for (uint32_t t = 0; t < N; t++)
        for (uint32_t h = 0; h < ALL_HEADS; h++) paint.query[h][t][15] = t == SPIKED_BY ? 2 : 0;
}

/*
 * H2O (Zhang et al., "H2O: Heavy-Hitter Oracle", 2023): a row's score is the attention that it was given by
 * all tokens so far, each over the rows that it could read:  F_j = sum over t >= j of p(q_t, j over 0..t).
 * Half of the kept rows are those with the highest F, half are the newest.
 */
static void test_policy_rows__h2o_keeps_heavy_hitters_and_the_newest_half(void **state)
{
    static const char *const set[] = {"low=1", "window=1", NULL};
    for (uint64_t seed = 0; seed < 4; seed++) {
        draw(seed);
        if (!seed) paint_persistence();
        kv_session *s = open_session("h2o", set);
        append(s, KV_ORIGIN_TOOL, 1, N);
        evict(s, "h2o", set, 80);
        for (uint32_t lane = 0; lane < FAKE_LANES; lane++) {
            bool keep[N] = {false};
            double given[N] = {0}, p[N];
            for (uint32_t h = lane * G; h < (lane + 1) * G; h++)
                for (uint32_t t = 0; t < N; t++) {
                    attend(paint.query[h][t], lane, NULL, t + 1, p);
                    for (uint32_t j = 0; j <= t; j++) given[j] += p[j];
                }
            keep_newest(40, keep);
            keep_best(given, NULL, 40, keep);
            assert_lane(s, lane, keep);
            for (uint32_t i = 0; i < N_PERSISTENT && !seed; i++) assert_true(keep[persistent[i]]);
        }
        kv_session_free(s);
    }
}

/*
 * Scissorhands (Liu et al., "Scissorhands: Exploiting the Persistence of Importance Hypothesis", 2023): a row
 * is pivotal for a token that gives it more than the average,  p(q_t, j over 0..t) > 1 / (t + 1).  The rows
 * that were pivotal most often stay, and a window of the newest. How much one token gave counts for nothing.
 * (Masses are the mean of the heads that share a lane: they share its rows.)
 */
static void test_policy_rows__scissorhands_keeps_what_was_pivotal_most_often(void **state)
{
    enum { BUDGET = 20, RECENT = 10 };
    static const char *const set[] = {"low=1", "window=1", "recent=.5", NULL};
    kv_session *s;
    for (uint64_t seed = 4; seed-- > 0;) {
        draw(seed);
        if (!seed) paint_persistence();
        s = open_session("scissorhands", set);
        append(s, KV_ORIGIN_TOOL, 1, N);
        evict(s, "scissorhands", set, BUDGET);
        for (uint32_t lane = 0; lane < FAKE_LANES; lane++) {
            bool keep[N] = {false};
            double times[N] = {0}, p[N], mean[N];
            for (uint32_t t = 0; t < N; t++) {
                memset(mean, 0, sizeof mean);
                for (uint32_t h = lane * G; h < (lane + 1) * G; h++) {
                    attend(paint.query[h][t], lane, NULL, t + 1, p);
                    for (uint32_t j = 0; j <= t; j++) mean[j] += p[j] / G;
                }
                for (uint32_t j = 0; j <= t; j++) times[j] += mean[j] > 1. / (t + 1);
            }
            keep_newest(RECENT, keep);
            keep_best(times, NULL, BUDGET - RECENT, keep);
            assert_lane(s, lane, keep);
            for (uint32_t i = 0; i < N_PERSISTENT && !seed; i++) assert_true(keep[persistent[i]]);
            assert_true(seed || !keep[SPIKE]);
        }
        kv_session_free(s);
    }
    /*
     * The same masses by their sums: what one token gave the spike, nearly 1, is more than most rows got from
     * all.
     */
    s = open_session("h2o", set);
    append(s, KV_ORIGIN_TOOL, 1, N);
    evict(s, "h2o", set, 80);
    uint64_t bits[(N + 63) / 64] = {0};
    kv_session_lane_bits(s, 0, bits);
    assert_true(bits[SPIKE / 64] >> SPIKE % 64 & 1);
    kv_session_free(s);
}

/*
 * TOVA (Oren et al., "Transformers are Multi-State RNNs", 2024): the rows that the newest token attends to
 * most stay, by its attention averaged over the heads of the layer; one set for all heads of a layer.
 */
static void test_policy_rows__tova_keeps_what_the_newest_token_reads(void **state)
{
    static const char *const set[] = {"low=1", NULL};
    for (uint64_t seed = 0; seed < 4; seed++) {
        draw(10 + seed);
        kv_session *s = open_session("tova", set);
        append(s, KV_ORIGIN_TOOL, 1, N);
        evict(s, "tova", set, 70);
        for (uint32_t layer = 0; layer < FAKE_LAYERS; layer++) {
            bool keep[N] = {false};
            double mean[N] = {0}, p[N];
            for (uint32_t h = layer * FAKE_HEADS; h < (layer + 1) * FAKE_HEADS; h++) {
                attend(paint.query[h][N - 1], h / G, NULL, N, p);
                for (uint32_t j = 0; j < N; j++) mean[j] += p[j] / FAKE_HEADS;
            }
            keep_newest(1, keep);
            keep_best(mean, NULL, 69, keep);
            for (uint32_t i = 0; i < FAKE_HEADS_KV; i++) assert_lane(s, layer * FAKE_HEADS_KV + i, keep);
        }
        kv_session_free(s);
    }
}

/*
 * knorm (Devoto et al., "A Simple and Effective L2 Norm-Based Strategy for KV Cache Compression", 2024): the
 * rows whose keys have the smallest L2 norm stay, in each lane, whoever asks.
 */
static void test_policy_rows__knorm_keeps_short_keys(void **state)
{
    static const char *const set[] = {"low=1", "window=1", "sinks=0", NULL};
    draw(20);
    for (uint32_t lane = 0; lane < FAKE_LANES; lane++)
        for (uint32_t t = 0; t < N; t++) /* each norm once in a lane: no ties */
            for (uint32_t d = 0; d < FAKE_DIM; d++)
                paint.key[lane][t][d] = (float)((t * 7 + lane * 50) % N >> (d < 8 ? 3 : 4));
    for (uint32_t lane = 0; lane < FAKE_LANES; lane++)
        for (uint32_t t = 0; t < N; t++) paint.key[lane][t][0] = (float)((t * 7 + lane * 50) % N % 8);
    kv_session *s = open_session("knorm", set);
    append(s, KV_ORIGIN_TOOL, 1, N);
    evict(s, "knorm", set, 50);
    for (uint32_t lane = 0; lane < FAKE_LANES; lane++) {
        bool keep[N] = {false};
        double closeness[N];
        for (uint32_t t = 0; t < N; t++) {
            closeness[t] = 0;
            for (uint32_t d = 0; d < FAKE_DIM; d++) closeness[t] -= pow(paint.key[lane][t][d], 2);
        }
        keep_newest(1, keep);
        keep_best(closeness, NULL, 49, keep);
        assert_lane(s, lane, keep);
    }
    kv_session_free(s);
}

/*
 * Two requests of ten tokens that ask along other dimensions, forty tokens of fixed prompt in front, excerpts
 * between them.
 */
enum { SYSTEM = 40, FIRST = 10, SECOND = 10, SECOND_AT = N - SECOND };

static void append_two_requests(kv_session *s)
{
    append(s, KV_ORIGIN_SYSTEM, 0, SYSTEM);
    append(s, KV_ORIGIN_USER, 1, FIRST);
    append(s, KV_ORIGIN_CONTEXT, 1, SECOND_AT - SYSTEM - FIRST);
    append(s, KV_ORIGIN_USER, 2, SECOND);
}

/*
 * Enc of both requests has norm 1 in every head: the paper adds it as it is, kvist brings it to norm 1 first,
 * and here both agree.
 */
static void paint_requests(void)
{
    for (uint32_t t = SYSTEM; t < SYSTEM + FIRST; t++) set_query(t, 3, 1);
    for (uint32_t t = SECOND_AT; t < N; t++) set_query(t, 7, 1);
    for (uint32_t lane = 0; lane < FAKE_LANES; lane++)
        for (uint32_t t = 0; t < N; t++) {
            paint.key[lane][t][3] = (float)((t * 5 + lane) % 16);
            paint.key[lane][t][7] = (float)((t * 11 + 3 * lane) % 16);
        }
    /*
     * The fixed prompt would take nearly all of lane 0's attention, so that what counts as a candidate
     * decides.
     */
    for (uint32_t t = 0; t < SYSTEM; t++) paint.key[0][t][3] = paint.key[0][t][7] = 31;
}

/* M behind the second request, of one head: unit(exp(-.5) M1 + Enc2), M1 = unit(Enc1). */
static void remember_requests(float *m)
{
    const double a = exp(-.5), norm = sqrt(a * a + 1);
    set_all(m, 0);
    m[3] = (float)(a / norm);
    m[7] = (float)(1 / norm);
}

/*
 * IntentKV (Li, Lou, Li, 2026, equations 2 and 3, decay .5): a candidate's score is the attention that the
 * session's memory of requests M gives it, added over all layers and query heads, among the candidates alone:
 * rule_j = sum over l, h of p(M[l, h], j over the candidates).  The fixed prompt and the newest request are
 * no candidates and stay; one set for all lanes.
 */
static void test_policy_rows__intentkv_keeps_what_all_requests_ask_for(void **state)
{
    enum { BUDGET = 120 };
    static const char *const memory[] = {NULL}, *const query[] = {"mode=query", NULL};
    bool kept[2][N] = {{false}};
    draw(30);
    paint_requests();
    for (int only = 0; only < 2; only++) {
        kv_session *s = open_session("intentkv", only ? query : memory);
        append_two_requests(s);
        evict(s, "intentkv", only ? query : memory, BUDGET);
        bool candidate[N], *keep = kept[only];
        double rule[N] = {0}, p[N];
        float m[FAKE_DIM];
        for (uint32_t j = 0; j < N; j++) {
            candidate[j] = j >= SYSTEM && j < SECOND_AT;
            keep[j] = !candidate[j];
        }
        remember_requests(m);
        if (only) {
            set_all(m, 0);
            m[7] = 1;
        }
        for (uint32_t h = 0; h < ALL_HEADS; h++) {
            attend(m, h / G, candidate, N, p);
            for (uint32_t j = 0; j < N; j++) rule[j] += p[j];
        }
        keep_best(rule, candidate, BUDGET - SYSTEM - SECOND, keep);
        for (uint32_t lane = 0; lane < FAKE_LANES; lane++) assert_lane(s, lane, keep);
        kv_session_free(s);
    }
    assert_memory_not_equal(kept[0], kept[1], sizeof kept[0]); /* the first request had a say */
}

/*
 * rank[j]: how many rows come before j when ordered by value, the highest first; of equal ones the earlier
 * comes first.
 */
static void rank_rows(const double *value, double *rank)
{
    for (uint32_t j = 0; j < N; j++) {
        rank[j] = 0;
        for (uint32_t i = 0; i < N; i++) rank[j] += value[i] > value[j] || (value[i] == value[j] && i < j);
    }
}

/*
 * kvist (docs/kv.md, "Policies"): in each lane the rows with the smallest sum of two ranks stay. One rank is
 * by SnapKV's score (Li et al., 2024): the mean attention of the current request's queries, the maximum of 7
 * neighbours. The other is by the attention that the memory of all requests gives, IntentKV's M in the lane's
 * own heads. Here nothing is protected and nobody visits.
 */
static void test_policy_rows__kvist_adds_the_ranks_of_request_and_memory(void **state)
{
    enum { BUDGET = 90 };
    static const char *const with[] = {"low=1", "soft=0", "visit=0", "window=1", "sinks=0", "hard=0", NULL};
    static const char *const without[] = {
        "low=1", "soft=0", "visit=0", "window=1", "sinks=0", "hard=0", "memory=0", NULL};
    bool kept[2][FAKE_LANES][N] = {{{false}}};
    draw(40);
    paint_requests();
    for (int alone = 0; alone < 2; alone++) {
        kv_session *s = open_session("kvist", alone ? without : with);
        append_two_requests(s);
        evict(s, "kvist", alone ? without : with, BUDGET);
        for (uint32_t lane = 0; lane < FAKE_LANES; lane++) {
            double mass[N] = {0}, pooled[N], recalled[N] = {0}, by_request[N], by_memory[N], good[N], p[N];
            float m[FAKE_DIM];
            remember_requests(m);
            for (uint32_t h = lane * G; h < (lane + 1) * G; h++) {
                for (uint32_t t = SECOND_AT; t < N; t++) {
                    attend(paint.query[h][t], lane, NULL, N, p);
                    for (uint32_t j = 0; j < N; j++) mass[j] += p[j];
                }
                attend(m, lane, NULL, N, p);
                for (uint32_t j = 0; j < N; j++) recalled[j] += p[j];
            }
            for (uint32_t j = 0; j < N; j++) {
                pooled[j] = mass[j];
                for (uint32_t i = j < 3 ? 0 : j - 3; i <= j + 3 && i < N; i++)
                    pooled[j] = fmax(pooled[j], mass[i]);
            }
            rank_rows(pooled, by_request);
            rank_rows(recalled, by_memory);
            for (uint32_t j = 0; j < N; j++) good[j] = -by_request[j] - (alone ? 0 : by_memory[j]);
            keep_newest(1, kept[alone][lane]);
            keep_best(good, NULL, BUDGET - 1, kept[alone][lane]);
            assert_lane(s, lane, kept[alone][lane]);
        }
        kv_session_free(s);
    }
    assert_memory_not_equal(kept[0], kept[1], sizeof kept[0]); /* memory had a say */
}

/* A fixed prompt, excerpts that are pruned, a request. The cut lies between the two layers. */
enum { FRONT = 10, BULK = 200, ASKED_AT = FRONT + BULK };

static void append_bulk(kv_session *s)
{
    append(s, KV_ORIGIN_SYSTEM, 0, FRONT);
    append(s, KV_ORIGIN_CONTEXT, 1, BULK);
    append(s, KV_ORIGIN_USER, 1, N - ASKED_AT);
}

static void find_bulk(bool *bulk)
{
    for (uint32_t j = 0; j < N; j++) bulk[j] = j >= FRONT && j < ASKED_AT;
}

/*
 * What the last n tokens' queries give every row in one layer, added over its heads, mean over the tokens,
 * among rows `in`.
 */
static void layer_saliency(uint32_t layer, uint32_t n, const bool *in, double *sum)
{
    double p[N];
    memset(sum, 0, N * sizeof *sum);
    for (uint32_t h = layer * FAKE_HEADS; h < (layer + 1) * FAKE_HEADS; h++)
        for (uint32_t t = N - n; t < N; t++) {
            attend(paint.query[h][t], h / G, in, N, p);
            for (uint32_t j = 0; j < N; j++) sum[j] += p[j] / n;
        }
}

/*
 * FastKV (Jo et al., 2025, "token-selective propagation"; w = 8, 20% go up, 10% stay in each layer: as
 * StructKV section 4.1 runs it): the attention that the prompt's last 8 queries give at the cut layer, added
 * over heads and averaged over 7 neighbours, chooses a fifth of the rows; they alone are computed in the
 * layers above. Of what it computed, each layer keeps the tenth that the same queries read most there.
 */
static void test_policy_rows__fastkv_takes_a_fifth_up_and_keeps_a_tenth(void **state)
{
    static const char *const up_only[] = {"bulk=100", "stored=1", NULL}, *const usual[] = {"bulk=100", NULL};
    for (int stores = 0; stores < 2; stores++) {
        draw(50);
        kv_session *s = open_session("fastkv", stores ? usual : up_only);
        append_bulk(s);
        bool bulk[N], up[N], keep[N];
        double saliency[N], mean[N];
        find_bulk(bulk);
        layer_saliency(0, 8, NULL, saliency);
        for (uint32_t j = 0; j < N; j++) {
            uint32_t n = 0;
            mean[j] = 0;
            for (uint32_t i = j < 3 ? 0 : j - 3; i <= j + 3 && i < N; i++, n++) mean[j] += saliency[i];
            mean[j] /= n;
            up[j] = !bulk[j];
        }
        keep_best(mean, bulk, BULK / 5, up);
        for (uint32_t layer = 0; layer < FAKE_LAYERS; layer++) {
            bool computed[N];
            for (uint32_t j = 0; j < N; j++) {
                computed[j] = !layer || up[j];
                keep[j] = stores ? !bulk[j] : computed[j];
            }
            layer_saliency(layer, 8, computed, saliency);
            for (uint32_t j = 0; j < N; j++) computed[j] = computed[j] && bulk[j];
            if (stores) keep_best(saliency, computed, BULK / 10, keep);
            for (uint32_t i = 0; i < FAKE_HEADS_KV; i++) assert_lane(s, layer * FAKE_HEADS_KV + i, keep);
        }
        kv_session_free(s);
    }
}

/*
 * GemFilter (Shi et al., "Discovering the Gems in Early Layers", 2024): the rows that the prompt's last query
 * reads most in the filter layer, added over its heads; no other row stays in any layer. (GemFilter then
 * computes the chosen text again from its beginning; kvist leaves the rows where they are, and the policy is
 * called gemfilter-like for that reason.)
 */
static void test_policy_rows__gemfilter_keeps_what_the_last_query_reads_in_every_layer(void **state)
{
    static const char *const set[] = {"bulk=100", NULL};
    draw(60);
    kv_session *s = open_session("gemfilter-like", set);
    append_bulk(s);
    bool bulk[N], keep[N];
    double saliency[N];
    find_bulk(bulk);
    for (uint32_t j = 0; j < N; j++) keep[j] = !bulk[j];
    layer_saliency(0, 1, NULL, saliency);
    keep_best(saliency, bulk, BULK / 10, keep);
    for (uint32_t lane = 0; lane < FAKE_LANES; lane++) assert_lane(s, lane, keep);
    kv_session_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_policy_rows__h2o_keeps_heavy_hitters_and_the_newest_half),
        cmocka_unit_test(test_policy_rows__scissorhands_keeps_what_was_pivotal_most_often),
        cmocka_unit_test(test_policy_rows__tova_keeps_what_the_newest_token_reads),
        cmocka_unit_test(test_policy_rows__knorm_keeps_short_keys),
        cmocka_unit_test(test_policy_rows__intentkv_keeps_what_all_requests_ask_for),
        cmocka_unit_test(test_policy_rows__kvist_adds_the_ranks_of_request_and_memory),
        cmocka_unit_test(test_policy_rows__fastkv_takes_a_fifth_up_and_keeps_a_tenth),
        cmocka_unit_test(test_policy_rows__gemfilter_keeps_what_the_last_query_reads_in_every_layer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
