/*
 * Evicted rows that a token reads (kv/read/visit.h): the choice against a plain one, and who is visited. That
 * batches, threads, drafts, forks and resumes do not show is test_reading.c's. KVIST_SEED repeats a failed
 * run.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "kit.h"
#include "kv/core/state.h"
#include "kv/policy/policy.h"
#include "kv/read/rest.h"
#include "kv/read/visit.h"
#include "model/file/quant.h"

enum { CTX = 2000, TOKENS = 1600, BUDGET = 1000, VISITORS = 200, BATCH = 300 };

typedef struct row {
    float mass;
    uint32_t token;
} row;

static int by_mass(const void *a, const void *b)
{
    const row *x = a, *y = b;
    if (x->mass != y->mass) return x->mass > y->mass ? -1 : 1;
    return x->token < y->token ? -1 : 1;
}

/* TOKENS of which many are evicted; some of them may not come. */
static kv_session *open_evicted(fake_model *m, const char *const *set)
{
    const kv_compute c = fake_compute(m, CTX);
    kv_session *s = NULL;
    base_err err = {0};
    int32_t ids[TOKENS];
    if (kv_session_new_over(&s, &c, &(kv_options){.budget = BUDGET, .repair = -1, .set = set}, NULL, &err))
        fail_msg("%s", err.msg);
    kit_make_ids(ids, TOKENS, FAKE_VOCAB, 4);
    kit_append(s, KV_ORIGIN_USER, 1, ids, 40, NULL);
    kit_append(s, KV_ORIGIN_TOOL, 1, ids + 40, TOKENS - 40, NULL);
    assert_int_equal(kv_session_manual(s, KV_MANUAL_DROP, 700, 760, NULL), 0);
    assert_int_equal(kv_session_mark_stale(s, 900, 930, NULL), 0);
    return s;
}

/* Bits of a list's tokens; slots are tokens. */
static void mark(const model_lane_list *list, uint64_t *bits)
{
    uint32_t n = 0;
    for (uint32_t r = 0; r < list->n_runs; r++) {
        const model_run *run = &list->runs[r];
        assert_int_equal(run->slot, run->index);
        assert_int_equal(run->slot / MODEL_ROWS_BLOCK, (run->slot + run->n - 1) / MODEL_ROWS_BLOCK);
        assert_true(!r || run[-1].index + run[-1].n <= run->index);
        kv_bits_set_range(bits, run->index, run->index + run->n);
        n += run->n;
    }
    assert_int_equal(n, list->n_rows);
}

/*
 * Of `mass` over what is weighed, the largest of rows that the list has not, beside the list up to the token.
 */
static void check_lane(const kv_session *s, const model_rows_view *rows, const model_weighing *w,
    const model_rows_view *chosen, uint32_t lane, uint32_t own)
{
    static uint64_t weighed[CTX / 64 + 1], listed[CTX / 64 + 1], taken[CTX / 64 + 1];
    static row order[CTX];
    uint32_t n = 0, o = 0;
    memset(weighed, 0, sizeof weighed);
    memset(listed, 0, sizeof listed);
    memset(taken, 0, sizeof taken);
    mark(&w->rows->lanes[lane], weighed);
    mark(&rows->lanes[lane], listed);
    mark(&chosen->lanes[lane], taken);
    for (uint32_t t = 0; t <= own; t++) {
        const bool barred = kv_bits_get(s->barred, t) || kv_bits_get(s->stale, t);
        assert_true(kv_bits_get(weighed, t) == !barred);
        if (barred) continue;
        if (!kv_bits_get(listed, t)) order[n++] = (row){w->mass[lane][o], t};
        o++;
    }
    assert_true(n > VISITORS);
    qsort(order, n, sizeof *order, by_mass);
    for (uint32_t i = 0; i < n; i++) assert_true(kv_bits_get(taken, order[i].token) == (i < VISITORS));
    for (uint32_t t = 0; t < CTX; t++)
        if (kv_bits_get(listed, t)) assert_true(kv_bits_get(taken, t) == (t <= own));
}

static void test_visit__the_largest_masses_are_chosen(void **state)
{
    (void)state;
    uint64_t seed = test_seed("visit", 3);
    fake_model m = {.lanes_differ = true};
    kv_session *s = open_evicted(&m, NULL);
    const model_rows_view rows = kv__view(s);
    const model_reader *reader = NULL;
    uint32_t n = 0;
    const int32_t *ids = kv_session_ids(s, &n);
    const uint32_t first = n - BATCH;
    for (uint32_t lane = 0; lane < FAKE_LANES; lane++)
        kv_session_manual(s, KV_MANUAL_PROMOTE, first, n, NULL); /* they stand for a batch's own rows */
    assert_int_equal(kv__reader_begin(s, &rows, KV_ORIGIN_TOOL, ids + first, first, BATCH, &reader, NULL), 0);
    assert_non_null(reader);
    assert_null(reader->sections);
    for (uint32_t layer = 0; layer < FAKE_LAYERS; layer++)
        for (uint32_t t = 0; t < BATCH; t += layer ? 1 : 37) {
            model_weighing w = {.rows = NULL};
            const model_rows_view *chosen = NULL;
            assert_int_equal(reader->weigh(reader->user, layer, t, &w, NULL), 0);
            for (uint32_t lane = 0; lane < FAKE_LANES; lane++) {
                assert_true(!w.mass[lane] == (lane / FAKE_HEADS_KV != layer));
                for (uint32_t i = 0; w.mass[lane] && i < w.rows->lanes[lane].n_rows; i++)
                    /* many equal ones, and zeros */
                    w.mass[lane][i] =
                        t % 3 ? (float)test_below(&seed, 1 << 20) * 1e-9f : (float)test_below(&seed, 30);
            }
            assert_int_equal(reader->choose(reader->user, layer, t, &chosen, NULL), 0);
            for (uint32_t lane = layer * FAKE_HEADS_KV; lane < (layer + 1) * FAKE_HEADS_KV; lane++)
                check_lane(s, &rows, &w, chosen, lane, first + t);
        }
    kv_session_free(s);
}

static void count_plan(void *user, const kv_plan *p)
{
    (void)p;
    ++*(uint32_t *)user;
}

/* What a token of that origin says, and how many rows visited it. */
static kv_visits say(const char *const *set, kv_origin origin, float *logits, uint32_t *counts)
{
    fake_model m = {.lanes_differ = true};
    kv_session *s = open_evicted(&m, set);
    kv_visits visits;
    kv_stats stats;
    const int32_t id = 17;
    uint32_t n_plans = 0;
    kv_session_take_visits(s, &visits, NULL);
    s->observer = (kv_observer){.user = &n_plans, .plan = count_plan};
    kit_append(s, origin, 2, &id, 1, logits);
    assert_int_equal(n_plans, 0);
    kv_session_take_visits(s, &visits, counts);
    kv_session_get_stats(s, &stats);
    assert_true(stats.active_max + (set ? 0 : VISITORS) <= BUDGET);
    kv_session_free(s);
    return visits;
}

static void test_visit__messages_and_calls_are_visited_answers_are_not(void **state)
{
    (void)state;
    static const char *const none[] = {"visit=0", NULL}, *const all[] = {"visited=all", NULL};
    static const struct {
        const char *const *set;
        kv_origin origin;
        bool visited;
    } cases[] = {{NULL, KV_ORIGIN_USER, true}, {NULL, KV_ORIGIN_TOOL, true}, {NULL, KV_ORIGIN_CALL, true},
        {NULL, KV_ORIGIN_ANSWER, false}, {all, KV_ORIGIN_ANSWER, true}, {none, KV_ORIGIN_TOOL, false},
        {none, KV_ORIGIN_CALL, false}};
    static uint32_t counts[CTX];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        float logits[FAKE_VOCAB];
        memset(counts, 0, sizeof counts);
        const kv_visits v = say(cases[i].set, cases[i].origin, logits, counts);
        assert_int_equal(v.tokens, cases[i].visited);
        assert_int_equal(v.rows, cases[i].visited ? VISITORS * FAKE_LANES : 0);
        uint64_t sum = 0;
        for (uint32_t t = 0; t < CTX; t++) sum += counts[t];
        assert_int_equal(sum, v.rows);
        for (uint32_t t = 700; t < 760; t++) assert_int_equal(counts[t], 0); /* dropped by a person */
        for (uint32_t t = 900; t < 930; t++) assert_int_equal(counts[t], 0); /* an older version */
    }
}

/* A row that is asked for is read though nobody brought it back. */
static void test_visit__what_a_token_asks_for_is_read(void **state)
{
    (void)state;
    fake_model m = {.lanes_differ = true};
    kv_session *s = open_evicted(&m, NULL);
    static uint32_t counts[CTX];
    kv_visits visits;
    uint32_t n = 0;
    const int32_t *ids = kv_session_ids(s, &n), asks = ids[500];
    assert_int_equal(kv_session_manual(s, KV_MANUAL_EVICT, 490, 510, NULL), 0);
    kv_session_take_visits(s, &visits, NULL);
    kit_append(s, KV_ORIGIN_CALL, 2, &asks, 1, NULL);
    kv_session_take_visits(s, &visits, counts);
    assert_int_equal(counts[500], FAKE_LANES); /* keys of a class are equal */
    kv_session_free(s);
}

/* --- what stands in for the rest ------------------------------------------------------------------------ */

enum { LANE = 2, N_BLOCKS = 4 };

/* Numbers from 1 up to 2, in all dimensions of the lane's first blocks. */
static void put_values(const model_rows_view *view, uint32_t salt)
{
    for (uint32_t t = 0; t < N_BLOCKS * KV_REST_BLOCK; t++)
        for (uint32_t i = 0; i < FAKE_DIM; i++)
            model_rows_value(view, LANE, t)[i] = (uint16_t)(0x3c00 + (t * 37 + i * 11 + salt) % 1024);
}

static void check_mean(kv_rest *r, const model_rows_view *view, const uint64_t *rows, const float *weight)
{
    float mean[FAKE_DIM];
    double total = 0;
    kv_rest_mean(r, view, LANE, rows, weight, N_BLOCKS, mean);
    for (uint32_t b = 0; b < N_BLOCKS; b++) total += (double)weight[b];
    for (uint32_t i = 0; i < FAKE_DIM; i++) {
        double want = 0;
        for (uint32_t b = 0; b < N_BLOCKS; b++) {
            double sum = 0;
            for (uint32_t k = 0; k < KV_REST_BLOCK; k++)
                if (rows[b] >> k & 1)
                    sum += (double)quant_f16_to_f32(model_rows_value(view, LANE, b * KV_REST_BLOCK + k)[i]);
            if (weight[b] > 0) want += (double)weight[b] / total * sum / __builtin_popcountll(rows[b]);
        }
        assert_true(fabs(want - (double)mean[i]) < 1e-5);
    }
}

static void test_rest__is_the_mean_by_mass_of_what_is_out(void **state)
{
    (void)state;
    uint64_t seed = test_seed("rest", 8);
    fake_model m = {.lanes_differ = true};
    kv_session *s = open_evicted(&m, NULL);
    const model_rows_view view = kv__view(s);
    kv_rest *r = kv_rest_new(&view.shape, CTX);
    assert_non_null(r);
    put_values(&view, 0);
    for (int round = 0; round < 40; round++) {
        uint64_t rows[N_BLOCKS];
        float weight[N_BLOCKS];
        for (uint32_t b = 0; b < N_BLOCKS; b++) {
            rows[b] = test_below(&seed, 3) ? test_random(&seed) | 1 : 1;
            weight[b] = test_below(&seed, 3) ? (float)test_below(&seed, 1000) * 1e-4f : 0;
        }
        weight[round % N_BLOCKS] = .5f;
        check_mean(r, &view, rows, weight);
        if (round % 10 != 9) continue;
        put_values(&view, (uint32_t)round); /* others lie there now */
        kv_rest_forget(r, 0);
        check_mean(r, &view, rows, weight);
    }
    const float nothing[N_BLOCKS] = {0};
    const uint64_t all[N_BLOCKS] = {~UINT64_C(0), 1, 1, 1};
    check_mean(r, &view, all, nothing);
    kv_rest_free(r);
    kv_session_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_visit__the_largest_masses_are_chosen),
        cmocka_unit_test(test_visit__messages_and_calls_are_visited_answers_are_not),
        cmocka_unit_test(test_visit__what_a_token_asks_for_is_read),
        cmocka_unit_test(test_rest__is_the_mean_by_mass_of_what_is_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
