/*
 * Evicted rows that a token reads (kv/read/visit.h): which may come, and who is visited. The choice among them
 * is the model's operation (tests/model/check_ops_visit.c); that batches, threads, drafts, forks and resumes do
 * not show is test_reading.c's. KVIST_SEED repeats a failed run.
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
#include "model/ops/sketch.h"

enum { CTX = 2000, TOKENS = 1600, BUDGET = 1000, VISITORS = 200, BATCH = 300 };

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

/* Who may visit a lane: what is below `first`, not listed, and may be read. Blocks in full are sketched. */
static void check_lane(const kv_session *s, const model_visit *v, uint32_t lane, uint32_t first)
{
    const uint64_t *evicted = v->evicted[lane % FAKE_HEADS_KV];
    uint32_t n = 0;
    assert_int_equal(v->n_slots, first);
    for (uint32_t t = 0; t < first; t++) {
        const bool barred = kv_bits_get(s->barred, t) || kv_bits_get(s->stale, t);
        assert_true(kv_bits_get(evicted, t) == (!barred && !kv_bits_get(s->lists.lane[lane]->bits, t)));
        n += kv_bits_get(evicted, t);
    }
    assert_true(n > VISITORS);
    assert_int_equal(v->most, VISITORS);
    for (uint32_t b = 0; b * MODEL_ROWS_BLOCK < first; b++) {
        uint8_t *want = calloc(1, model_sketch_bytes(FAKE_LANES, FAKE_DIM));
        const size_t n_bytes = FAKE_LANES * model_sketch_lane_bytes(FAKE_DIM);
        const bool is_full = (b + 1) * MODEL_ROWS_BLOCK <= first;
        if (v->sketches[b]) {
            assert_true(is_full);
            model_sketch_make(FAKE_DIM, NULL, FAKE_LANES, v->rows->blocks[b], want);
            assert_memory_equal(v->sketches[b], want, n_bytes);
        }
        assert_true(v->sketches[b] || !is_full ||
                    kv_bits_count_range(evicted, b * MODEL_ROWS_BLOCK, (b + 1) * MODEL_ROWS_BLOCK) == 0);
        free(want);
    }
}

static void test_visit__what_is_evicted_may_come(void **state)
{
    (void)state;
    fake_model m = {.lanes_differ = true};
    kv_session *s = open_evicted(&m, NULL);
    const model_reader *reader = NULL;
    uint32_t n = 0;
    const int32_t *ids = kv_session_ids(s, &n);
    assert_int_equal(
        kv_session_manual(s, KV_MANUAL_EVICT, n - 20, n - 10, NULL), 0); /* of a block that goes on */
    assert_int_equal(kv_lists_append(&s->lists, BATCH, NULL), 0);        /* the batch's own rows */
    const model_rows_view rows = kv__view(s);
    assert_int_equal(kv__reader_begin(s, &rows, KV_ORIGIN_TOOL, ids, n, BATCH, &reader, NULL), 0);
    assert_non_null(reader);
    assert_null(reader->sections);
    for (uint32_t layer = 0; layer < FAKE_LAYERS; layer++) {
        model_visit v = {.rows = NULL};
        assert_int_equal(reader->visit(reader->user, layer, &v, NULL), 0);
        for (uint32_t lane = layer * FAKE_HEADS_KV; lane < (layer + 1) * FAKE_HEADS_KV; lane++) {
            assert_int_equal(v.rows->lanes[lane].n_rows, rows.lanes[lane].n_rows);
            check_lane(s, &v, lane, n);
        }
        assert_null(v.sketches[n / MODEL_ROWS_BLOCK]);
        assert_non_null(v.sketches[0]);
    }
    kv_lists_truncate(&s->lists, n);
    kv_session_free(s);
}

/* Lanes of a layer with a window have no part in a sketch, and nobody asks for one there. */
static void test_visit__sketches_leave_windows_out(void **state)
{
    (void)state;
    fake_model m = {.lanes_differ = true, .window = 100}; /* its first layer's */
    kv_session *s = open_evicted(&m, NULL);
    const model_reader *reader = NULL;
    uint32_t n = 0, whole[FAKE_HEADS_KV];
    const int32_t *ids = kv_session_ids(s, &n);
    assert_int_equal(kv_lists_append(&s->lists, BATCH, NULL), 0);
    const model_rows_view rows = kv__view(s);
    assert_int_equal(kv__reader_begin(s, &rows, KV_ORIGIN_TOOL, ids, n, BATCH, &reader, NULL), 0);
    assert_non_null(reader);
    for (uint32_t i = 0; i < FAKE_HEADS_KV; i++) whole[i] = FAKE_HEADS_KV + i;
    for (uint32_t layer = 0; layer < FAKE_LAYERS; layer++) {
        model_visit v = {.rows = NULL};
        uint32_t n_made = 0;
        assert_int_equal(reader->visit(reader->user, layer, &v, NULL), 0);
        assert_int_equal(v.n_unsketched, layer * FAKE_HEADS_KV);
        for (uint32_t b = 0; (b + 1) * MODEL_ROWS_BLOCK <= n; b++) {
            uint8_t *want = calloc(1, model_sketch_bytes(FAKE_HEADS_KV, FAKE_DIM));
            n_made += v.sketches[b] != NULL;
            model_sketch_make(FAKE_DIM, whole, FAKE_HEADS_KV, rows.blocks[b], want);
            if (v.sketches[b])
                assert_memory_equal(v.sketches[b], want, FAKE_HEADS_KV * model_sketch_lane_bytes(FAKE_DIM));
            free(want);
        }
        assert_true(layer ? n_made > 2 : n_made == 0);
    }
    kv_lists_truncate(&s->lists, n);
    kv_session_free(s);
}

/* As few as may visit: all of them are on the list, at their places. */
static void test_visit__few_are_listed(void **state)
{
    (void)state;
    fake_model m = {.lanes_differ = true};
    const kv_compute c = fake_compute(&m, CTX);
    kv_session *s = NULL;
    const model_reader *reader = NULL;
    int32_t ids[TOKENS];
    assert_int_equal(
        kv_session_new_over(&s, &c, &(kv_options){.budget = BUDGET, .repair = -1}, NULL, NULL), 0);
    kit_make_ids(ids, TOKENS, FAKE_VOCAB, 4);
    kit_append(s, KV_ORIGIN_USER, 1, ids, 700, NULL);
    assert_int_equal(kv_session_manual(s, KV_MANUAL_EVICT, 100, 100 + VISITORS, NULL), 0);
    kit_append(s, KV_ORIGIN_ANSWER, 1, ids, 3, NULL); /* the choice is known before the last tokens are */
    assert_int_equal(kv_lists_append(&s->lists, BATCH, NULL), 0);
    const model_rows_view rows = kv__view(s);
    assert_int_equal(kv__reader_begin(s, &rows, KV_ORIGIN_TOOL, ids, 703, BATCH, &reader, NULL), 0);
    model_visit v = {.rows = NULL};
    assert_int_equal(reader->visit(reader->user, 1, &v, NULL), 0);
    for (uint32_t lane = FAKE_HEADS_KV; lane < FAKE_LANES; lane++) {
        const model_lane_list *list = &v.rows->lanes[lane];
        uint32_t next = 0;
        assert_null(v.evicted[lane - FAKE_HEADS_KV]);
        for (uint32_t r = 0; r < list->n_runs; next += list->runs[r++].n) {
            assert_int_equal(list->runs[r].index, next);
            assert_int_equal(list->runs[r].slot, next);
            assert_int_equal(next / MODEL_ROWS_BLOCK, (next + list->runs[r].n - 1) / MODEL_ROWS_BLOCK);
        }
        assert_int_equal(next, 703 + BATCH);
        assert_int_equal(next, list->n_rows);
    }
    kv_lists_truncate(&s->lists, 703);
    kv_session_free(s);
}

/* Row by row the list that it stands for, those below token n with the same numbers; *ret: rows that are copies. */
static void check_read(
    const model_rows_view *read, const model_rows_view *rows, uint32_t lane, uint32_t n, uint32_t *ret)
{
    const model_lane_list *of = &read->lanes[lane], *list = &rows->lanes[lane];
    const size_t n_bytes = FAKE_DIM * sizeof(uint16_t);
    uint32_t r = 0, i = 0;
    assert_int_equal(of->n_rows, list->n_rows);
    for (uint32_t k = 0; k < of->n_runs; k++)
        for (uint32_t at = 0; at < of->runs[k].n; at++) {
            const uint32_t slot = of->runs[k].slot + at, own = list->runs[r].slot + i;
            assert_int_equal(of->runs[k].index + at, list->runs[r].index + i);
            if (own < n) {
                assert_memory_equal(
                    model_rows_key(read, lane, slot), model_rows_key(rows, lane, own), n_bytes);
                assert_memory_equal(
                    model_rows_value(read, lane, slot), model_rows_value(rows, lane, own), n_bytes);
            }
            *ret += slot != own;
            if (++i < list->runs[r].n) continue;
            r++;
            i = 0;
        }
    assert_int_equal(r, list->n_runs);
}

/* The batch behind token n, and how many of the rows that it reads are copies. */
static uint32_t count_copies(kv_session *s, uint32_t n, uint32_t n_batch)
{
    const model_reader *reader = NULL;
    const int32_t ids[BATCH] = {0};
    uint32_t copies = 0;
    assert_int_equal(kv_lists_append(&s->lists, n_batch, NULL), 0);
    const model_rows_view rows = kv__view(s);
    assert_int_equal(kv__reader_begin(s, &rows, KV_ORIGIN_ANSWER, ids, n, n_batch, &reader, NULL), 0);
    for (uint32_t layer = 0; layer < FAKE_LAYERS; layer++) {
        model_visit v = {.rows = NULL};
        assert_int_equal(reader->visit(reader->user, layer, &v, NULL), 0);
        for (uint32_t lane = layer * FAKE_HEADS_KV; lane < (layer + 1) * FAKE_HEADS_KV; lane++)
            check_read(v.rows, &rows, lane, n, &copies);
    }
    kv_lists_truncate(&s->lists, n);
    return copies;
}

/* What lies apart is read from copies once few tokens wait for it; not where memory is bounded. */
static void test_visit__scattered_rows_are_gathered(void **state)
{
    (void)state;
    static const char *const bounded[] = {"host=1000", NULL};
    for (int i = 0; i < 2; i++) {
        fake_model m = {.lanes_differ = true};
        kv_session *s = open_evicted(&m, i ? bounded : NULL);
        uint32_t n = 0;
        const int32_t *ids = kv_session_ids(s, &n);
        assert_int_equal(kv_session_manual(s, KV_MANUAL_EVICT, n - 20, n - 10, NULL), 0);
        assert_int_equal(count_copies(s, n, BATCH), 0);
        const uint32_t copies = count_copies(s, n, 1);
        assert_true(i ? copies == 0 : copies > FAKE_LANES * 100);
        assert_int_equal(count_copies(s, n, 3), copies);
        assert_int_equal(count_copies(s, n, BATCH), copies); /* what is there is read */
        kit_append(s, KV_ORIGIN_ANSWER, 2, ids, 5, NULL);
        n += 5;
        assert_int_equal(count_copies(s, n, 1), copies);
        assert_int_equal(
            kv_session_manual(s, KV_MANUAL_PROMOTE, 0, n, NULL), 0); /* other lists: copied anew */
        assert_true((count_copies(s, n, 1) > 0) == (i == 0));
        kv_session_free(s);
    }
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

static void test_visit__every_token_is_visited(void **state)
{
    (void)state;
    static const char *const none[] = {"visit=0", NULL}, *const sections[] = {"decode=sentence", NULL};
    static const struct {
        const char *const *set;
        kv_origin origin;
        bool visited;
    } cases[] = {{NULL, KV_ORIGIN_USER, true}, {NULL, KV_ORIGIN_TOOL, true}, {NULL, KV_ORIGIN_CALL, true},
        {NULL, KV_ORIGIN_ANSWER, true}, {sections, KV_ORIGIN_ANSWER, false}, {sections, KV_ORIGIN_TOOL, true},
        {none, KV_ORIGIN_TOOL, false}, {none, KV_ORIGIN_CALL, false}};
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

/* Behind many evicted rows a token looks into some pages only; where there are no more than those, into all. */
static void test_visit__some_pages_are_looked_into(void **state)
{
    (void)state;
    static const char *const two[] = {"open=128", NULL}, *const all[] = {"open=1000000", NULL},
                             *const none[] = {"open=0", NULL};
    static uint32_t counts[CTX];
    float some[FAKE_VOCAB], whole[FAKE_VOCAB], without[FAKE_VOCAB];
    assert_in_range(say(two, KV_ORIGIN_CALL, some, counts).rows, 1, 128 * FAKE_LANES);
    bool is_read[CTX / 64 + 1] = {0};
    uint32_t n_pages = 0;
    for (uint32_t t = 0; t < CTX; t++) is_read[t / 64] |= counts[t] > 0;
    for (uint32_t w = 0; w < CTX / 64 + 1; w++) n_pages += is_read[w];
    assert_in_range(n_pages, 1, 2 * FAKE_LANES);
    say(all, KV_ORIGIN_CALL, whole, counts);
    say(none, KV_ORIGIN_CALL, without, counts);
    assert_memory_equal(whole, without, sizeof whole);
    assert_memory_not_equal(some, whole, sizeof whole);
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

enum { ASKED = 405, ASKING = 20 };

/* A token evicted with its line, and a message that asks for it; lines are of ten tokens. The first token is `first`, no other is like it. */
static kv_session *open_asked_beside(fake_model *m, int32_t *ids, int32_t first)
{
    static const char *const set[] = {"focus=.5", NULL};
    const kv_compute c = fake_compute(m, CTX);
    uint32_t lines[TOKENS / 10];
    kv_session *s = NULL;
    base_err err = {0};
    if (kv_session_new_over(&s, &c, &(kv_options){.budget = BUDGET, .repair = -1, .set = set}, NULL, &err))
        fail_msg("%s", err.msg);
    for (uint32_t i = 0; i < TOKENS / 10; i++) lines[i] = i * 10;
    kit_make_classes(ids, TOKENS + ASKING, 50, 6);
    ids[0] = first;
    ids[ASKED] = ids[TOKENS + 7] = 55;
    kit_append_segment(s,
        (kv_segment){.origin = KV_ORIGIN_TOOL, .turn = 1, .lines = lines, .n_lines = TOKENS / 10}, ids,
        TOKENS);
    assert_int_equal(kv_session_manual(s, KV_MANUAL_EVICT, ASKED - 5, ASKED + 5, NULL), 0);
    const uint32_t asks = 7;
    kit_append_segment(s, (kv_segment){.origin = KV_ORIGIN_USER, .turn = 2, .queries = &asks, .n_queries = 1},
        ids + TOKENS, ASKING);
    kit_fold(s);
    return s;
}

static kv_session *open_asked(fake_model *m, int32_t *ids)
{
    return open_asked_beside(m, ids, 1);
}

static void ask(kv_session *s)
{
    const uint32_t query = TOKENS + 7;
    assert_int_equal(kv_session_repair(s, &(kv_ask){TOKENS, TOKENS + ASKING, &query, 1}, NULL, NULL), 0);
}

/* Says a token; how many rows of `outshone` visited it, and of all. */
static uint32_t count_outshone(kv_session *s, const uint64_t *outshone, kv_origin origin, int32_t id)
{
    static uint32_t counts[CTX];
    kv_visits visits;
    uint32_t sum = 0;
    kv_session_take_visits(s, &visits, NULL);
    kit_append(s, origin, 2, &id, 1, NULL);
    kv_session_take_visits(s, &visits, counts);
    assert_int_equal(visits.rows, VISITORS * FAKE_LANES);
    for (uint32_t t = 0; t < TOKENS; t++) sum += kv_bits_get(outshone, t) ? counts[t] : 0;
    return sum;
}

/* Pages that a token's visitors come from, over all lanes. */
static uint32_t count_pages(kv_session *s, kv_origin origin, int32_t id)
{
    static uint32_t counts[CTX];
    kv_visits visits;
    uint32_t n = 0;
    kv_session_take_visits(s, &visits, NULL);
    kit_append(s, origin, 2, &id, 1, NULL);
    kv_session_take_visits(s, &visits, counts);
    for (uint32_t w = 0; w < CTX; w += 64) {
        bool any = false;
        for (uint32_t t = w; t < w + 64 && t < CTX; t++) any |= counts[t] > 0;
        n += any;
    }
    return n;
}

/* Behind a clear repair fewer pages are looked into, but by calls. */
static void test_visit__a_clear_repair_opens_fewer_pages(void **state)
{
    (void)state;
    fake_model m = {.lanes_differ = true};
    int32_t ids[TOKENS + ASKING];
    kv_session *s = open_asked(&m, ids), *f = NULL;
    s->parameters.open = 8 * 64;
    s->parameters.open_asked = 64;
    assert_true(count_pages(s, KV_ORIGIN_ANSWER, ids[0]) > FAKE_LANES);
    assert_int_equal(kv_session_truncate(s, TOKENS + ASKING, NULL), 0);
    ask(s);
    assert_int_equal(kv_session_fork(s, &f, NULL, NULL), 0);
    f->parameters.open_asked = 0;
    assert_in_range(count_pages(s, KV_ORIGIN_ANSWER, ids[0]), 1, FAKE_LANES);
    assert_true(count_pages(f, KV_ORIGIN_ANSWER, ids[0]) > FAKE_LANES);
    assert_true(kv_session_schedule_hash(s) != kv_session_schedule_hash(f));
    assert_true(count_pages(s, KV_ORIGIN_CALL, ids[0]) > FAKE_LANES);
    kv_session_free(f);
    kv_session_free(s);
}

/* What a request's best line outshone visits calls alone; forks know it, and undoing the repair or a next one takes it back. */
static void test_visit__what_is_outshone_stays_away(void **state)
{
    (void)state;
    fake_model m = {.lanes_differ = true};
    int32_t ids[TOKENS + ASKING];
    uint64_t outshone[CTX / 64 + 1] = {0};
    kv_session *s = open_asked(&m, ids), *f = NULL;
    assert_int_equal(kv_bits_count(s->outshone, kv_bits_words(s->n)), 0);
    const uint64_t before = kv_session_schedule_hash(s);
    ask(s);
    assert_int_equal(kit_active_in(s, ASKED - 5, ASKED + 5), 10);
    memcpy(outshone, s->outshone, kv_bits_words(s->n) * sizeof *outshone);
    const size_t like = kv_bits_next(outshone, 0, TOKENS, true);
    kv_why why;
    kv_session_why(s, (uint32_t)like, &why);
    assert_true(why.outshone);
    kv_stats stats;
    kv_session_get_stats(s, &stats);
    assert_int_equal(stats.outshone, kv_bits_count(outshone, kv_bits_words(s->n)));
    assert_true(like < TOKENS && !kv_bits_get(outshone, ASKED));
    assert_int_equal(kv_session_fork(s, &f, NULL, NULL), 0);
    assert_int_equal(count_outshone(s, outshone, KV_ORIGIN_ANSWER, ids[like]), 0);
    assert_int_equal(count_outshone(f, outshone, KV_ORIGIN_ANSWER, ids[like]), 0);
    assert_true(kv_session_schedule_hash(s) == kv_session_schedule_hash(f));
    assert_true(count_outshone(s, outshone, KV_ORIGIN_CALL, ids[like]) > 0);
    assert_int_equal(count_outshone(s, outshone, KV_ORIGIN_ANSWER, ids[like]), 0);
    assert_int_equal(count_outshone(f, outshone, KV_ORIGIN_ANSWER, ids[like]), 0);
    assert_int_equal(count_outshone(f, outshone, KV_ORIGIN_ANSWER, ids[like]), 0);
    assert_true(kv_session_schedule_hash(s) != kv_session_schedule_hash(f));
    assert_int_equal(kv_session_undo_plan(f, NULL), 0);
    assert_int_equal(kv_bits_count(f->outshone, kv_bits_words(f->n)), 0);
    assert_true(count_outshone(f, outshone, KV_ORIGIN_ANSWER, ids[like]) > 0);
    kv_session_free(f);
    assert_int_equal(kv_session_truncate(s, TOKENS + ASKING, NULL), 0);
    s->parameters.focus = 0;
    ask(s);
    assert_int_equal(kv_bits_count(s->outshone, kv_bits_words(s->n)), 0);
    assert_true(kv_session_schedule_hash(s) != before);
    kv_session_free(s);
}

/* A share of the session, or with a share of 0 what there is room for. Means of pages do not change with it. */
static void test_visit__a_share_of_the_session_is_outshone(void **state)
{
    (void)state;
    fake_model m = {.lanes_differ = true};
    int32_t ids[TOKENS + ASKING];
    kv_session *s = open_asked(&m, ids);
    const uint16_t *key, *value;
    s->repair = 10; /* rows: the asked line */
    s->parameters.outshone = 0;
    ask(s);
    assert_int_equal(kv_bits_count(s->outshone, kv_bits_words(s->n)), 0);
    kv_session_free(s);
    s = open_asked(&m, ids);
    s->repair = 10;
    s->parameters.outshone = .0625;
    ask(s);
    assert_int_equal(kit_active_in(s, ASKED - 5, ASKED + 5), 10);
    const uint32_t n = kv_bits_count(s->outshone, kv_bits_words(s->n)),
                   like = (uint32_t)kv_bits_next(s->outshone, 0, TOKENS, true);
    assert_in_range(n, s->n / 16 - 9, s->n / 16 + 9);
    assert_int_equal(count_outshone(s, s->outshone, KV_ORIGIN_ANSWER, ids[like]), 0);
    for (uint32_t lane = 0; lane < FAKE_LANES; lane++)
        assert_true(kv__visit_mean(s, lane, like / 64, &key, &value) >> like % 64 & 1 ||
                    kv_bits_get(s->lists.lane[lane]->bits, like));
    kv_session_free(s);
}

/* One line answers clearly where it draws much more than the sinks do, which are looked at where nothing fits. */
static void test_visit__what_sinks_hold_up_to_outshines_nothing(void **state)
{
    (void)state;
    fake_model m = {.lanes_differ = true};
    int32_t ids[TOKENS + ASKING];
    kv_session *s = open_asked_beside(&m, ids, 55);
    ask(s);
    assert_int_equal(kit_active_in(s, ASKED - 5, ASKED + 5), 10);
    assert_int_equal(kv_bits_count(s->outshone, kv_bits_words(s->n)), 0);
    kv_session_free(s);
}

/* A result asks for many things, so it outshines none; nor does a request while nothing is folded. */
static void test_visit__a_result_outshines_nothing(void **state)
{
    (void)state;
    fake_model m = {.lanes_differ = true};
    int32_t ids[TOKENS + ASKING];
    kv_session *s = open_asked(&m, ids);
    const uint32_t query = TOKENS + ASKING + 7;
    ask(s);
    assert_true(kv_bits_count(s->outshone, kv_bits_words(s->n)) > 0);
    kit_append(s, KV_ORIGIN_TOOL, 2, ids + TOKENS, ASKING, NULL);
    assert_int_equal(kv_session_repair(s, &(kv_ask){TOKENS + ASKING, s->n, &query, 1}, NULL, NULL), 0);
    assert_int_equal(kv_bits_count(s->outshone, kv_bits_words(s->n)), 0);
    kv_session_free(s);
    s = open_asked(&m, ids);
    kv_fold_free(&s->fold);
    ask(s);
    assert_int_equal(kv_bits_count(s->outshone, kv_bits_words(s->n)), 0);
    kv_session_free(s);
}

/* --- what stands in for the rest ------------------------------------------------------------------------ */

enum { LANE = 2, N_GROUPS = 18 };

/* Numbers from 1 up to 2, in all dimensions of the lane's first groups. */
static void put_values(const model_rows_view *view, uint32_t salt)
{
    for (uint32_t t = 0; t < N_GROUPS * KV_REST_PAGE; t++)
        for (uint32_t i = 0; i < FAKE_DIM; i++)
            model_rows_value(view, LANE, t)[i] = (uint16_t)(0x3c00 + (t * 37 + i * 11 + salt) % 1024);
}

static int turn_by_adding(void *user, const model_rows_view *rows, uint32_t lane, uint32_t index,
    uint32_t step, uint32_t n, uint16_t *keys, base_err *err)
{
    (void)user;
    (void)err;
    assert_int_equal(lane, LANE);
    for (uint32_t k = 0; k < n * FAKE_DIM; k++) {
        const float by = (float)model_rows_gap(rows, index + k / FAKE_DIM * step);
        keys[k] = quant_f32_to_f16(quant_f16_to_f32(keys[k]) + by);
    }
    return 0;
}

static const kv_compute adding = {.turn_rows = turn_by_adding};

/* The lane's pages as they are sketched under `fold` (NULL: nothing is folded), whatever was there before. */
static const uint8_t *sketch(kv_rest *r, const model_rows_view *view, const kv_fold *fold)
{
    model_rows_view folded = *view;
    const uint8_t *ret;
    folded.gaps = fold ? fold->gaps : NULL;
    folded.n_gaps = fold ? fold->n : 0;
    kv_rest_fold(r, &folded, N_GROUPS);
    assert_int_equal(kv_rest_sketch(r, &adding, &folded, LANE, N_GROUPS, &ret, NULL), 0);
    return ret;
}

/* Mean values of chapters: of their rows, whatever page those are in; 0 where there is none. */
static void check_chapters(const kv_rest *r, const model_rows_view *view, const uint64_t *rows)
{
    enum { LENGTH = MODEL_CHAPTER * KV_REST_PAGE };
    const uint16_t *found = kv_rest_chapters(r, LANE);
    for (uint32_t from = 0; from < N_GROUPS * KV_REST_PAGE; from += LENGTH, found += FAKE_DIM)
        for (uint32_t i = 0; i < FAKE_DIM; i++) {
            double sum = 0, n = 0;
            for (uint32_t t = from; t < from + LENGTH && t < N_GROUPS * KV_REST_PAGE; t++) {
                if (!(rows[t / KV_REST_PAGE] >> t % KV_REST_PAGE & 1)) continue;
                sum += (double)quant_f16_to_f32(model_rows_value(view, LANE, t)[i]);
                n++;
            }
            assert_true(fabs(sum / fmax(n, 1) - (double)quant_f16_to_f32(found[i])) < 2e-3);
        }
}

/* Keys are told by how far they were turned; see turn_by_adding. A sketch is right to half of a step. */
static void check_means(kv_rest *r, const model_rows_view *view, const uint64_t *rows, const kv_fold *fold)
{
    const uint16_t *values = kv_rest_values(r, LANE);
    const uint64_t *const of[FAKE_LANES] = {[LANE] = rows};
    assert_int_equal(kv_rest_find(r, NULL, view, of, N_GROUPS, NULL), 0);
    const model_sketch turned = model_sketch_of(sketch(r, view, fold), FAKE_DIM, 0);
    for (uint32_t b = 0; b < N_GROUPS; b++)
        for (uint32_t i = 0; i < FAKE_DIM && rows[b]; i++) {
            double sum = 0, keys = 0;
            for (uint32_t k = 0; k < KV_REST_PAGE; k++)
                if (rows[b] >> k & 1) {
                    keys += (double)quant_f16_to_f32(model_rows_key(view, LANE, b * KV_REST_PAGE + k)[i]);
                    sum += (double)quant_f16_to_f32(model_rows_value(view, LANE, b * KV_REST_PAGE + k)[i]);
                }
            sum /= __builtin_popcountll(rows[b]);
            keys /= __builtin_popcountll(rows[b]);
            if (fold && b < fold->n) keys += fold->gaps[b];
            const double seen = (double)model_sketch_number(&turned, FAKE_DIM, b, i);
            assert_true(fabs(sum - (double)quant_f16_to_f32(values[b * FAKE_DIM + i])) < 1e-3);
            assert_true(fabs(keys - seen) < .501 * (double)turned.step[i] + 1e-3 * fmax(1, fabs(keys)));
        }
    check_chapters(r, view, rows);
}

static void test_rest__is_the_mean_of_what_is_out(void **state)
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
        uint64_t rows[N_GROUPS];
        for (uint32_t b = 0; b < N_GROUPS; b++)
            rows[b] = test_below(&seed, 3) ? test_random(&seed) | 1 : test_below(&seed, 2);
        check_means(r, &view, rows, NULL);
        if (round % 10 != 9) continue;
        put_values(&view, (uint32_t)round); /* others lie there now */
        kv_rest_forget(r, 0);
        check_means(r, &view, rows, NULL);
    }
    kv_rest_free(r);
    kv_session_free(s);
}

/* Whatever was turned before: other gaps, other rows, pages that are unfolded again. */
static void test_rest__keys_are_turned_as_they_are_read(void **state)
{
    (void)state;
    uint64_t seed = test_seed("rest", 9);
    fake_model m = {.lanes_differ = true};
    kv_session *s = open_evicted(&m, NULL);
    const model_rows_view view = kv__view(s);
    kv_rest *r = kv_rest_new(&view.shape, CTX);
    assert_non_null(r);
    put_values(&view, 0);
    uint64_t rows[N_GROUPS] = {1, 3, 7, 15};
    check_means(r, &view, rows, &(kv_fold){.n = 0});
    for (int round = 0; round < 40; round++) {
        uint32_t gaps[N_GROUPS];
        for (uint32_t b = 0; b < N_GROUPS; b++) {
            gaps[b] = test_below(&seed, 2) * test_below(&seed, 500);
            if (!test_below(&seed, 3)) rows[b] = test_random(&seed);
        }
        check_means(r, &view, rows, &(kv_fold){.gaps = gaps, .n = test_below(&seed, N_GROUPS + 1)});
    }
    kv_rest_free(r);
    kv_session_free(s);
}

/* A fork takes over what is known, whatever room it has: rows are not looked at again (here they would be others). */
static void test_rest__is_taken_over_as_it_is(void **state)
{
    (void)state;
    fake_model m = {.lanes_differ = true};
    kv_session *s = open_evicted(&m, NULL);
    const model_rows_view view = kv__view(s);
    const uint64_t rows[N_GROUPS] = {1, 3, 7, 15};
    uint32_t gaps[N_GROUPS] = {40, 40, 9, 0};
    const kv_fold fold = {.gaps = gaps, .n = N_GROUPS};
    const size_t n_bytes = N_GROUPS * FAKE_DIM * sizeof(uint16_t);
    kv_rest *r = kv_rest_new(&view.shape, CTX);
    assert_non_null(r);
    put_values(&view, 0);
    check_means(r, &view, rows, &fold);
    for (uint32_t room = N_GROUPS * KV_REST_PAGE; room <= 2 * CTX; room *= 2) {
        kv_rest *other = kv_rest_new(&view.shape, room);
        assert_non_null(other);
        kv_rest_copy(other, r, N_GROUPS);
        put_values(&view, room);
        const uint64_t *const of[FAKE_LANES] = {[LANE] = rows};
        assert_int_equal(kv_rest_find(other, NULL, &view, of, N_GROUPS, NULL), 0);
        assert_int_equal(kv_rest_find(r, NULL, &view, of, N_GROUPS, NULL), 0);
        assert_memory_equal(kv_rest_values(other, LANE), kv_rest_values(r, LANE), n_bytes);
        assert_memory_equal(
            sketch(other, &view, &fold), sketch(r, &view, &fold), model_sketch_lane_bytes(FAKE_DIM));
        kv_rest_free(other);
    }
    kv_rest_free(r);
    kv_session_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_visit__what_is_evicted_may_come),
        cmocka_unit_test(test_visit__sketches_leave_windows_out),
        cmocka_unit_test(test_visit__few_are_listed),
        cmocka_unit_test(test_visit__scattered_rows_are_gathered),
        cmocka_unit_test(test_visit__every_token_is_visited),
        cmocka_unit_test(test_visit__what_a_token_asks_for_is_read),
        cmocka_unit_test(test_visit__some_pages_are_looked_into),
        cmocka_unit_test(test_visit__what_is_outshone_stays_away),
        cmocka_unit_test(test_visit__a_share_of_the_session_is_outshone),
        cmocka_unit_test(test_visit__a_clear_repair_opens_fewer_pages),
        cmocka_unit_test(test_visit__what_sinks_hold_up_to_outshines_nothing),
        cmocka_unit_test(test_visit__a_result_outshines_nothing),
        cmocka_unit_test(test_rest__is_the_mean_of_what_is_out),
        cmocka_unit_test(test_rest__keys_are_turned_as_they_are_read),
        cmocka_unit_test(test_rest__is_taken_over_as_it_is),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
