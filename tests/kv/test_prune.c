/*
 * Pruned prefill (docs/kv.md, "Pruned prefill") over a model without weights: what is computed, what is
 * deferred, what brings it back, and that nothing else can tell the difference. The generated sequences of
 * test_property.c run under it too.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fs.h"
#include "base/mem.h"
#include "fake_compute.h"
#include "kv/core/state.h"
#include "kv/plan/plan.h"
#include "kv/prune/pivot.h"
#include "kv/session.h"

enum { CTX = 3000, BULK = 800, ASKED = 40, LINE = 16 };

static kv_session *open_session(
    fake_model *m, const char *policy, const char *const *set, const char *row_file)
{
    const kv_compute c = fake_compute(m, CTX);
    const kv_options o = {.policy = policy, .repair = 40, .set = set, .row_file = row_file};
    kv_session *s = NULL;
    base_err err = {0};
    if (kv_session_new_over(&s, &c, &o, NULL, &err)) fail_msg("%s", err.msg);
    return s;
}

/*
 * Ids of one line are of one class, and each line of another: what a query of that class asks for is a whole
 * line.
 */
static void make_ids(int32_t *ids, uint32_t n, uint64_t seed)
{
    const uint32_t first = (uint32_t)seed;
    for (uint32_t i = 0; i < n; i++)
        ids[i] = (int32_t)((i / LINE + first) % FAKE_CLASSES + FAKE_CLASSES * test_below(&seed, 16));
}

static void append(kv_session *s, kv_origin origin, uint32_t turn, const int32_t *ids, uint32_t n,
    const uint32_t *queries, uint32_t n_queries, float *logits)
{
    uint32_t lines[CTX / LINE], n_lines = 0;
    for (uint32_t i = 0; i < n; i += LINE) lines[n_lines++] = i;
    const kv_segment g = {.origin = origin,
        .turn = turn,
        .lines = origin == KV_ORIGIN_CONTEXT || origin == KV_ORIGIN_TOOL ? lines : NULL,
        .n_lines = origin == KV_ORIGIN_CONTEXT || origin == KV_ORIGIN_TOOL ? n_lines : 0,
        .queries = queries,
        .n_queries = n_queries};
    base_err err = {0};
    const uint32_t before = s->n;
    if (kv_session_append(s, &g, ids, n, logits, NULL, &err)) fail_msg("%s", err.msg);
    assert_int_equal(s->n, before + n);
}

/* 16 fixed tokens, a bulk, and a question that names a class of it at places 4 and 5. */
static void append_turn(kv_session *s, uint32_t class)
{
    int32_t ids[BULK];
    const uint32_t queries[] = {4, 5};
    make_ids(ids, 16, 3);
    append(s, KV_ORIGIN_SYSTEM, 0, ids, 16, NULL, 0, NULL);
    make_ids(ids, BULK, 0);
    append(s, KV_ORIGIN_CONTEXT, 1, ids, BULK, NULL, 0, NULL);
    make_ids(ids, ASKED, 7);
    ids[4] = ids[5] = (int32_t) class;
    append(s, KV_ORIGIN_USER, 1, ids, ASKED, queries, 2, NULL);
}

static uint32_t deferred(const kv_session *s)
{
    kv_stats stats;
    kv_session_get_stats(s, &stats);
    return stats.deferred_tokens;
}

static void next_logits(kv_session *s, float *logits)
{
    const int32_t tail[] = {900, 901, 902};
    append(s, KV_ORIGIN_SCAFFOLD, 1, tail, 3, NULL, 0, logits);
}

static void assert_same_rows(const kv_session *a, const kv_session *b)
{
    uint16_t x[FAKE_LANES * FAKE_DIM * 2], y[FAKE_LANES * FAKE_DIM * 2];
    assert_int_equal(a->n, b->n);
    for (uint32_t t = 0; t < a->n; t++) {
        kv_table_get_row(&a->table, t, x);
        kv_table_get_row(&b->table, t, y);
        assert_memory_equal(x, y, sizeof x);
    }
}

static const char *const ours[] = {"prune=heads", "bulk=100", "keep=.1", "pivot=1", NULL};

static void test_prune__a_cut_that_keeps_all_gives_the_bits_of_full(void **state)
{
    static const char *const all[] = {"prune=centrality", "bulk=100", "keep=1", "pivot=1", NULL};
    float a[FAKE_VOCAB], b[FAKE_VOCAB];
    fake_model m = {0}, n = {0};
    kv_session *cut = open_session(&m, "kvist", all, NULL), *full = open_session(&n, "full", NULL, NULL);
    append_turn(cut, 11);
    append_turn(full, 11);
    assert_int_equal(deferred(cut), 0);
    assert_same_rows(cut, full);
    assert_int_equal(m.n_layers, n.n_layers);
    /* Signals are whole too: what an eviction or a repair goes by. */
    assert_int_equal(cut->request.n, full->request.n);
    assert_memory_equal(
        cut->request.queries, full->request.queries, kv__memory_floats(cut) * cut->request.n * sizeof(float));
    assert_memory_equal(
        cut->memory->sum, full->memory->sum, kv__memory_floats(cut) * sizeof *cut->memory->sum);
    next_logits(cut, a);
    next_logits(full, b);
    assert_memory_equal(a, b, sizeof a);
    kv_session_free(cut);
    kv_session_free(full);
}

static void test_prune__only_the_chosen_rows_go_up(void **state)
{
    fake_model m = {0};
    kv_session *s = open_session(&m, "kvist", ours, NULL);
    append_turn(s, 11);
    const uint32_t left = deferred(s), n = s->n;
    assert_true(left >= BULK * 9 / 10 && left < BULK);
    assert_int_equal(m.n_layers, 2 * (uint64_t)n - left);
    /* Class 11 stands in line 11 of the bulk, whole; nothing that is no bulk is left below. */
    for (uint32_t t = 0; t < n; t++) {
        const bool asked = t >= 16 + 11 * LINE && t < 16 + 12 * LINE, bulk = t >= 16 && t < 16 + BULK;
        if (asked || !bulk) assert_int_equal(kv_session_cut(s, t), 0);
        for (uint32_t lane = 0; lane < FAKE_LANES; lane++)
            assert_int_equal(
                kv_bits_get(s->lists.lane[lane]->bits, t), lane < FAKE_HEADS_KV || !kv_session_cut(s, t));
    }
    kv_stats stats;
    kv_session_get_stats(s, &stats);
    assert_int_equal(stats.active + stats.host + stats.deferred + stats.lost, n);
    kv_session_free(s);
}

static void test_prune__short_text_and_the_fixed_prompt_are_computed_in_full(void **state)
{
    static const char *const big[] = {"prune=heads", "bulk=801", "pivot=1", NULL};
    fake_model m = {0};
    kv_session *s = open_session(&m, "kvist", big, NULL);
    append_turn(s, 11);
    assert_int_equal(deferred(s), 0);
    assert_int_equal(m.n_layers, 2 * (uint64_t)s->n);
    kv_session_free(s);
}

static void test_prune__excerpts_together_are_a_bulk(void **state)
{
    int32_t ids[BULK];
    fake_model m = {0};
    kv_session *s = open_session(&m, "kvist", ours, NULL);
    make_ids(ids, BULK, 0);
    const kv_segment first = {.origin = KV_ORIGIN_CONTEXT, .turn = 1, .bulk = 120},
                     note = {.origin = KV_ORIGIN_CONTEXT, .turn = 1};
    assert_int_equal(kv_session_append(s, &first, ids, 60, NULL, NULL, NULL), 0);
    assert_int_equal(kv_session_append(s, &first, ids + 60, 60, NULL, NULL, NULL), 0);
    assert_int_equal(kv_session_append(s, &note, ids + 120, 20, NULL, NULL, NULL), 0);
    assert_int_equal(deferred(s), 140); /* nobody asked yet */
    append(s, KV_ORIGIN_USER, 1, ids, ASKED, NULL, 0, NULL);
    assert_true(deferred(s) > 80 && deferred(s) <= 120);
    for (uint32_t t = 120; t < s->n; t++)
        assert_int_equal(kv_session_cut(s, t), 0); /* a short note is no bulk */
    kv_session_free(s);
}

/* prune=excerpts: only what is put in front of a request to be read, and only by heads that are known. */
static void test_prune__excerpts_alone_are_cut_when_they_are_only_read(void **state)
{
    static const char *const excerpts[] = {"prune=excerpts", "bulk=100", "pivot=1", NULL};
    static const struct {
        bool is_calibrated, is_cut;
        kv_segment bulk;
    } cases[] = {
        {true, true, {.origin = KV_ORIGIN_CONTEXT, .turn = 1}},
        {false, false, {.origin = KV_ORIGIN_CONTEXT, .turn = 1}},
        {true, false, {.origin = KV_ORIGIN_CONTEXT, .turn = 1, .whole = true}},
        {true, false, {.origin = KV_ORIGIN_TOOL, .turn = 1}},
    };
    int32_t ids[BULK];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        fake_model m = {0};
        kv_session *s = open_session(&m, "kvist", excerpts, NULL);
        if (cases[i].is_calibrated) {
            s->best_heads = base_xcalloc(FAKE_LAYERS * FAKE_HEADS, sizeof *s->best_heads);
            for (uint16_t h = 0; h < FAKE_LAYERS * FAKE_HEADS; h++) s->best_heads[h] = h;
        }
        make_ids(ids, BULK, 0);
        assert_int_equal(kv_session_append(s, &cases[i].bulk, ids, BULK, NULL, NULL, NULL), 0);
        append(s, KV_ORIGIN_USER, 1, ids, ASKED, NULL, 0, NULL);
        assert_int_equal(deferred(s) > 0, cases[i].is_cut);
        kv_session_free(s);
    }
}

static void test_prune__a_result_behind_the_request_is_judged_by_it(void **state)
{
    int32_t ids[BULK];
    const uint32_t queries[] = {4};
    fake_model m = {0};
    kv_session *s = open_session(&m, "kvist", ours, NULL);
    make_ids(ids, ASKED, 7);
    ids[4] = 23;
    append(s, KV_ORIGIN_USER, 1, ids, ASKED, queries, 1, NULL);
    make_ids(ids, BULK, 0);
    append(s, KV_ORIGIN_TOOL, 1, ids, BULK, NULL, 0, NULL);
    assert_true(deferred(s) > BULK * 8 / 10);
    assert_int_equal(s->pending, KV_NO_ROW);
    for (uint32_t t = 23 * LINE; t < 24 * LINE; t++) assert_int_equal(kv_session_cut(s, ASKED + t), 0);
    kv_session_free(s);
}

static void test_prune__undo_computes_what_was_left(void **state)
{
    fake_model m = {0};
    kv_session *s = open_session(&m, "kvist", ours, NULL);
    append_turn(s, 11);
    assert_true(deferred(s) > 0);
    assert_int_equal(kv_session_undo_plan(s, NULL), 0);
    assert_int_equal(deferred(s), 0);
    assert_int_equal(m.n_layers, 2 * (uint64_t)s->n);
    for (uint32_t lane = 0; lane < s->n_lanes; lane++) assert_int_equal(s->lists.view[lane].n_rows, s->n);
    kv_session_free(s);
}

static void test_prune__a_repair_computes_the_lines_that_are_asked_for(void **state)
{
    int32_t ids[ASKED];
    const uint32_t queries[] = {4, 5};
    fake_model m = {0};
    kv_session *s = open_session(&m, "kvist", ours, NULL);
    append_turn(s, 11);
    const uint32_t before = deferred(s), from = s->n;
    const uint64_t layers = m.n_layers;
    assert_true(kv_session_cut(s, 16 + 30 * LINE) > 0);
    make_ids(ids, ASKED, 9);
    ids[4] = ids[5] = 30;
    append(s, KV_ORIGIN_USER, 2, ids, ASKED, queries, 2, NULL);
    const uint32_t tokens[] = {from + 4, from + 5};
    assert_int_equal(kv_session_repair(s, &(kv_ask){from, s->n, tokens, 2}, NULL, NULL), 0);
    for (uint32_t t = 16 + 30 * LINE; t < 16 + 31 * LINE; t++) {
        assert_int_equal(kv_session_cut(s, t), 0);
        for (uint32_t lane = 0; lane < s->n_lanes; lane++)
            assert_true(kv_bits_get(s->lists.lane[lane]->bits, t));
    }
    assert_true(deferred(s) < before);
    /* The message, the rows, and the message again over them. */
    assert_int_equal(m.n_layers - layers, 2 * ASKED + (before - deferred(s)) + 2 * ASKED);
    kv_session_free(s);
}

/*
 * What a message has judged, its own repair does not judge again; and a later one computes no more than it
 * may.
 */
static void test_prune__a_repair_computes_no_more_than_it_may(void **state)
{
    static const char *const few[] = {"prune=heads", "bulk=100", "keep=.1", "pivot=1", "computed=20", NULL};
    int32_t ids[ASKED];
    const uint32_t queries[] = {4, 5};
    fake_model m = {0};
    kv_session *s = open_session(&m, "kvist", few, NULL);
    append_turn(s, 11);
    const uint32_t before = deferred(s), from = s->n, asked[] = {from - ASKED + 4, from - ASKED + 5};
    const uint64_t layers = m.n_layers;
    assert_int_equal(kv_session_repair(s, &(kv_ask){from - ASKED, from, asked, 2}, NULL, NULL), 0);
    assert_int_equal(deferred(s), before);
    assert_true(m.n_layers == layers);
    make_ids(ids, ASKED, 9);
    ids[4] = 30;
    ids[5] = 31;
    append(s, KV_ORIGIN_USER, 2, ids, ASKED, queries, 2, NULL);
    const uint32_t tokens[] = {from + 4, from + 5};
    assert_int_equal(kv_session_repair(s, &(kv_ask){from, s->n, tokens, 2}, NULL, NULL), 0);
    assert_int_equal(before - deferred(s), LINE); /* one of the two lines, whole */
    kv_session_free(s);
}

/*
 * A row is the same whether it was computed at once or brought back right behind, over the same rows below
 * it.
 */
static void test_prune__a_row_that_is_computed_later_is_the_same(void **state)
{
    static const char *const none[] = {"prune=heads", "bulk=100", "keep=.01", "pivot=1", "window=1", NULL};
    fake_model m = {0};
    kv_session *s = open_session(&m, "kvist", none, NULL), *f = NULL;
    append_turn(s, 11);
    const uint32_t t = 16 + BULK - LINE;
    assert_true(kv_session_cut(s, t) > 0);
    assert_int_equal(kv_session_fork(s, &f, NULL, NULL), 0);
    uint16_t one[FAKE_LANES * FAKE_DIM * 2], other[FAKE_LANES * FAKE_DIM * 2];
    assert_int_equal(kv_session_manual(s, KV_MANUAL_PROMOTE, t, t + LINE, NULL), 0);
    for (uint32_t i = 0; i < LINE; i++)
        assert_int_equal(kv_session_manual(f, KV_MANUAL_PROMOTE, t + i, t + i + 1, NULL), 0);
    for (uint32_t i = 0; i < LINE; i++) {
        kv_table_get_row(&s->table, t + i, one);
        kv_table_get_row(&f->table, t + i, other);
        assert_memory_equal(one, other, sizeof one);
    }
    kv_session_free(f);
    kv_session_free(s);
}

static void test_prune__a_fork_that_computes_rows_leaves_its_parent_alone(void **state)
{
    float a[FAKE_VOCAB], b[FAKE_VOCAB];
    fake_model m = {0};
    kv_session *s = open_session(&m, "kvist", ours, NULL), *f = NULL, *again = NULL;
    append_turn(s, 11);
    const uint32_t before = deferred(s);
    assert_int_equal(kv_session_fork(s, &f, NULL, NULL), 0);
    assert_int_equal(kv_session_undo_plan(f, NULL), 0);
    assert_int_equal(deferred(f), 0);
    assert_int_equal(deferred(s), before);
    assert_int_equal(kv_session_fork(s, &again, NULL, NULL), 0);
    assert_int_equal(kv_session_undo_plan(again, NULL), 0);
    assert_same_rows(f, again);
    next_logits(f, a);
    next_logits(again, b);
    assert_memory_equal(a, b, sizeof a);
    kv_session_free(f);
    kv_session_free(again);
    kv_session_free(s);
}

static void test_prune__a_computation_that_is_cut_short_changes_nothing(void **state)
{
    fake_model m = {0};
    kv_session *s = open_session(&m, "kvist", ours, NULL), *f = NULL;
    append_turn(s, 11);
    /* Rows in front of chosen ones and behind them: several passes, of which the second or third fails. */
    for (int fails = 0; fails < 3; fails++) {
        const uint64_t epoch = s->epoch, schedule = s->schedule;
        const uint32_t before = deferred(s);
        m.fail_after = fails;
        const int r = kv_session_undo_plan(s, NULL);
        m.fail_after = -1;
        if (!r) break;
        assert_int_equal(r, BASE_E_CANCELLED);
        assert_int_equal(deferred(s), before);
        assert_true(s->epoch == epoch && s->schedule == schedule);
    }
    assert_int_equal(kv_session_fork(s, &f, NULL, NULL), 0);
    if (deferred(s)) assert_int_equal(kv_session_undo_plan(s, NULL), 0);
    fake_model n = {0};
    kv_session *fresh = open_session(&n, "kvist", ours, NULL);
    append_turn(fresh, 11);
    assert_int_equal(kv_session_undo_plan(fresh, NULL), 0);
    assert_same_rows(s, fresh);
    kv_session_free(f);
    kv_session_free(s);
    kv_session_free(fresh);
}

static void test_prune__a_choice_that_is_cut_short_is_made_by_the_next_question(void **state)
{
    int32_t ids[BULK];
    fake_model m = {0};
    kv_session *s = open_session(&m, "kvist", ours, NULL);
    make_ids(ids, BULK, 0);
    append(s, KV_ORIGIN_CONTEXT, 1, ids, BULK, NULL, 0, NULL);
    m.fail_after = 1; /* the question's own lower layers, then what goes up */
    const kv_segment g = {.origin = KV_ORIGIN_USER, .turn = 1};
    assert_int_equal(kv_session_append(s, &g, ids, ASKED, NULL, NULL, NULL), BASE_E_CANCELLED);
    assert_int_equal(s->n, BULK + ASKED);
    assert_int_equal(deferred(s), BULK + ASKED);
    append(s, KV_ORIGIN_USER, 2, ids, ASKED, NULL, 0, NULL);
    assert_true(deferred(s) < BULK && deferred(s) > BULK / 2);
    for (uint32_t t = BULK; t < s->n; t++) assert_int_equal(kv_session_cut(s, t), 0);
    kv_session_free(s);
}

static void test_prune__logits_are_asked_for_only_of_what_is_computed(void **state)
{
    int32_t ids[BULK];
    float logits[FAKE_VOCAB];
    fake_model m = {0};
    kv_session *s = open_session(&m, "kvist", ours, NULL);
    make_ids(ids, BULK, 0);
    append(s, KV_ORIGIN_CONTEXT, 1, ids, BULK, NULL, 0, NULL);
    assert_int_equal(deferred(s), BULK);
    next_logits(s, logits); /* nobody asked: what is there is chosen by its own end */
    assert_int_equal(s->pending, KV_NO_ROW);
    for (uint32_t t = BULK; t < s->n; t++) assert_int_equal(kv_session_cut(s, t), 0);
    kv_session_free(s);
}

static void test_prune__a_saved_session_keeps_its_states(void **state)
{
    char folder[] = "/tmp/kvist-prune-XXXXXX";
    assert_non_null(mkdtemp(folder));
    char path[64];
    snprintf(path, sizeof path, "%s/rows", folder);
    float a[FAKE_VOCAB], b[FAKE_VOCAB];
    fake_model m = {0};
    kv_session *s = open_session(&m, "kvist", ours, path), *f = NULL, *back = NULL;
    append_turn(s, 11);
    const uint32_t before = deferred(s);
    assert_int_equal(kv_session_save(s, NULL), 0);
    assert_int_equal(kv_session_fork(s, &f, NULL, NULL), 0);
    kv_session_free(s);
    const kv_compute c = fake_compute(&m, CTX);
    const kv_options o = {.policy = "kvist", .repair = 40, .set = ours, .row_file = path};
    base_err err = {0};
    if (kv_session_resume_over(&back, &c, &o, NULL, &err)) fail_msg("%s", err.msg);
    assert_int_equal(deferred(back), before);
    assert_int_equal(kv_session_undo_plan(back, NULL), 0);
    assert_int_equal(kv_session_undo_plan(f, NULL), 0);
    assert_same_rows(back, f);
    /* Computed rows are other bytes than those on disk: they are written again, and found again. */
    assert_int_equal(kv_session_save(back, NULL), 0);
    assert_int_equal(kv_session_compact(back, NULL), 0);
    kv_session_free(back);
    if (kv_session_resume_over(&back, &c, &o, NULL, &err)) fail_msg("%s", err.msg);
    assert_int_equal(deferred(back), 0);
    assert_same_rows(back, f);
    next_logits(back, a);
    next_logits(f, b);
    assert_memory_equal(a, b, sizeof a);
    kv_session_free(back);
    kv_session_free(f);
    base_fs_remove(folder, NULL);
}

/* What the log holds: how each segment was computed, and the plans. */
typedef struct record {
    base_buf plans[8];
    uint32_t n_tokens[8], n;
} record;

static void on_plan(void *user, const kv_plan *p)
{
    record *r = user;
    assert_true(r->n < 8);
    r->n_tokens[r->n] = p->n_tokens;
    kv_plan_pack(p, &r->plans[r->n++]);
}

static void apply_due(kv_session *s, const record *r, uint32_t *at)
{
    for (; *at < r->n && r->n_tokens[*at] == s->n; ++*at) {
        kv_plan *p = NULL;
        assert_int_equal(kv_plan_unpack(r->plans[*at].data, r->plans[*at].len, &p, NULL), 0);
        p->epoch = s->epoch;
        assert_int_equal(kv_session_apply(s, p, NULL), 0);
        kv_plan_free(p);
    }
}

static void test_prune__a_logged_schedule_gives_the_state_again(void **state)
{
    static const char *const paper[] = {"pivot=1", "bulk=100", NULL};
    float a[FAKE_VOCAB], b[FAKE_VOCAB];
    fake_model m = {0};
    record r = {.n = 0};
    const kv_compute c = fake_compute(&m, CTX);
    const kv_options o = {.policy = "structkv", .set = paper};
    const kv_observer observer = {.user = &r, .plan = on_plan};
    kv_session *s = NULL, *again = NULL;
    assert_int_equal(kv_session_new_over(&s, &c, &o, &observer, NULL), 0);
    append_turn(s, 11);
    assert_int_equal(r.n, 2); /* what goes up, and what each layer stores */
    const kv_options plain = {.policy = "full"};
    assert_int_equal(kv_session_new_over(&again, &c, &plain, NULL, NULL), 0);
    kv_session_set_automatic(again, false);
    uint32_t at = 0;
    for (size_t i = 0; i < s->n_segments; i++) {
        const kv_stored_segment *part = &s->segments[i];
        const kv_segment g = {
            .origin = part->origin, .turn = part->turn, .lanes = kv_session_lanes(s, part->from)};
        assert_int_equal(
            kv_session_append(again, &g, s->ids + part->from, part->to - part->from, NULL, NULL, NULL), 0);
        apply_due(again, &r, &at);
    }
    assert_int_equal(at, 2);
    assert_int_equal(deferred(again), deferred(s));
    assert_same_rows(s, again);
    assert_true(kv_session_schedule_hash(s) == kv_session_schedule_hash(again));
    next_logits(s, a);
    next_logits(again, b);
    assert_memory_equal(a, b, sizeof a);
    for (uint32_t i = 0; i < r.n; i++) base_buf_free(&r.plans[i]);
    kv_session_free(s);
    kv_session_free(again);
}

static void test_prune__each_layer_stores_its_own_share(void **state)
{
    static const char *const paper[] = {"pivot=1", "bulk=100", "keep=.2", "stored=.1", NULL};
    fake_model m = {0};
    kv_session *s = open_session(&m, "structkv", paper, NULL);
    append_turn(s, 11);
    for (uint32_t lane = 0; lane < s->n_lanes; lane++) {
        uint32_t n = 0;
        for (uint32_t t = 16; t < 16 + BULK; t++) n += kv_bits_get(s->lists.lane[lane]->bits, t);
        assert_in_range(n, BULK / 10 - 1, BULK / 10 + 9); /* and hard rows */
    }
    kv_session_free(s);
    m = (fake_model){0};
    static const char *const last[] = {"pivot=1", "bulk=100", NULL};
    s = open_session(&m, "gemfilter-like", last, NULL);
    append_turn(s, 11);
    for (uint32_t t = 16; t < 16 + BULK; t++)
        assert_int_equal(kv_bits_get(s->lists.lane[0]->bits, t), !kv_session_cut(s, t));
    kv_session_free(s);
}

/*
 * Bulk of one line, of one token repeated, pivots at the edges, a request longer than everything that is
 * hard.
 */
static void test_prune__odd_texts_and_cuts_are_fine(void **state)
{
    static const char *const sets[][6] = {{"prune=heads", "pivot=1", "bulk=10"},
        {"prune=centrality", "pivot=1", "bulk=10", "stored=.05"}, {"prune=layer", "pivot=.01", "bulk=10"},
        {"prune=last", "pivot=1", "bulk=10", "keep=.01"}, {"prune=heads", "pivot=2", "bulk=10"},
        {"prune=heads", "pivot=1000", "bulk=10"}, {"prune=centrality", "pivot=0", "bulk=10"}};
    for (size_t k = 0; k < sizeof sets / sizeof *sets; k++)
        for (int shape = 0; shape < 3; shape++) {
            int32_t ids[1200];
            float logits[FAKE_VOCAB];
            fake_model m = {0};
            kv_session *s = open_session(&m, "kvist", sets[k], NULL);
            for (uint32_t i = 0; i < 1200; i++) ids[i] = shape == 1 ? 5 : (int32_t)(i % FAKE_VOCAB);
            const kv_segment line = {.origin = KV_ORIGIN_CONTEXT, .turn = 1};
            assert_int_equal(kv_session_append(s, &line, ids, 700, NULL, NULL, NULL), 0);
            append(s, KV_ORIGIN_USER, 1, ids, shape == 2 ? 1200 : 1, NULL, 0, NULL);
            next_logits(s, logits);
            if (k >= 4 && k < 6) assert_int_equal(deferred(s), 0); /* no layer above such a cut */
            assert_int_equal(kv_session_cannot_cut(s), k >= 4 && k < 6);
            if (k < 4) assert_true(deferred(s) > 0);
            kv_session_free(s);
        }
}

/*
 * A minified file: the whole bulk is one line, and less goes up than the line around what is asked for. The
 * row itself is among it.
 */
static void test_prune__a_budget_below_the_statement_takes_the_row_that_is_asked_for(void **state)
{
    static const char *const little[] = {
        "prune=heads", "bulk=100", "keep=.01", "pivot=1", "window=1", "sinks=0", NULL};
    const uint32_t first = 0, queries[] = {4};
    for (uint32_t at = 0; at < BULK; at += 133) {
        int32_t ids[BULK];
        fake_model m = {0};
        kv_session *s = open_session(&m, "kvist", little, NULL);
        for (uint32_t i = 0; i < BULK; i++) ids[i] = 5;
        ids[at] = 23;
        const kv_segment line = {.origin = KV_ORIGIN_CONTEXT, .turn = 1, .lines = &first, .n_lines = 1};
        assert_int_equal(kv_session_append(s, &line, ids, BULK, NULL, NULL, NULL), 0);
        for (uint32_t i = 0; i < ASKED; i++) ids[i] = i == 4 ? 23 : 7;
        append(s, KV_ORIGIN_USER, 1, ids, ASKED, queries, 1, NULL);
        assert_int_equal(kv_session_cut(s, at), 0);
        assert_int_equal(deferred(s), BULK - BULK / 100);
        kv_session_free(s);
    }
}

static void test_prune__a_bulk_of_32k_is_fine(void **state)
{
    enum { MANY = 32768 };
    fake_model m = {0};
    const kv_compute c = fake_compute(&m, MANY + 200);
    const kv_options o = {.policy = "kvist", .repair = 40, .set = ours};
    kv_session *s = NULL;
    base_err err = {0};
    int32_t *ids = malloc(MANY * sizeof *ids);
    uint32_t *lines = malloc(MANY / LINE * sizeof *lines);
    const uint32_t queries[] = {4, 5};
    assert_non_null(ids);
    assert_non_null(lines);
    if (kv_session_new_over(&s, &c, &o, NULL, &err)) fail_msg("%s", err.msg);
    for (uint32_t i = 0; i < MANY; i++) ids[i] = i / LINE == 1500 ? 23 : 5;
    for (uint32_t i = 0; i < MANY / LINE; i++) lines[i] = i * LINE;
    const kv_segment bulk = {.origin = KV_ORIGIN_CONTEXT, .turn = 1, .lines = lines, .n_lines = MANY / LINE};
    if (kv_session_append(s, &bulk, ids, MANY, NULL, NULL, &err)) fail_msg("%s", err.msg);
    int32_t asked[ASKED];
    for (uint32_t i = 0; i < ASKED; i++) asked[i] = i == 4 || i == 5 ? 23 : 7;
    append(s, KV_ORIGIN_USER, 1, asked, ASKED, queries, 2, NULL);
    for (uint32_t t = 1500 * LINE; t < 1501 * LINE; t++) assert_int_equal(kv_session_cut(s, t), 0);
    assert_true(deferred(s) > MANY * 8 / 10);
    /* More than the session holds is refused, and nothing has changed. */
    const uint32_t before = s->n;
    assert_int_equal(kv_session_append(s, &bulk, ids, MANY, NULL, NULL, &err), BASE_E_LIMIT);
    assert_int_equal(s->n, before);
    free(ids);
    free(lines);
    kv_session_free(s);
}

/* --- the pivot ------------------------------------------------------------------------------------------ */

static kv_pivot made_pivot(uint32_t n_layer, uint32_t jump)
{
    kv_pivot p = {.n_layer = n_layer, .n_rows = 1000, .n_queries = 8};
    memset(p.hash, 'f', 64);
    for (uint32_t l = 0; l < n_layer; l++) {
        p.entropy[l] = l < jump ? 6 : 3;
        p.sparsity[l] = l < jump ? .4 : .9;
        p.variance[l] = l < jump ? 1e-5 : 1e-4;
    }
    return p;
}

static void test_prune__the_cut_lies_behind_the_sharpest_change(void **state)
{
    double t[KV_PIVOT_LAYERS];
    uint32_t alone = 0;
    kv_pivot p = made_pivot(28, 11);
    kv_pivot_curve(&p, t);
    assert_true(!(t[11] < 1 - 1e-12) && !(t[11] > 1 + 1e-12) && t[10] == 0 && t[0] == 0);
    assert_int_equal(kv_pivot_cut(&p, .25, &alone), 12);
    assert_int_equal(alone, 12);
    p = made_pivot(28, 2); /* a floor binds */
    assert_int_equal(kv_pivot_cut(&p, .25, &alone), 7);
    assert_int_equal(alone, 3);
    assert_int_equal(kv_pivot_cut(&p, 0, NULL), 3);
    p = made_pivot(28, 26); /* and .75 */
    assert_int_equal(kv_pivot_cut(&p, .25, NULL), 21);
    p = made_pivot(2, 1);
    assert_int_equal(kv_pivot_cut(&p, .25, NULL), 1);
    assert_int_equal(kv_pivot_cut(&p, .75, NULL), 1); /* a layer is left above */
    p = made_pivot(1, 1);
    assert_int_equal(kv_pivot_cut(&p, .25, NULL), 0);
}

static void test_prune__a_pivot_is_detected_once_and_kept(void **state)
{
    char folder[] = "/tmp/kvist-pivot-XXXXXX", path[64];
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/a/b.pivot", folder);
    static const char *const set[] = {"bulk=100", NULL};
    fake_model m = {0};
    const kv_compute c = fake_compute(&m, CTX);
    const kv_options o = {.policy = "structkv", .set = set, .pivot_file = path};
    kv_session *s = NULL;
    assert_int_equal(kv_session_new_over(&s, &c, &o, NULL, NULL), 0);
    append_turn(s, 11);
    assert_int_equal(deferred(s), 0); /* the first bulk of a model is computed in full */
    assert_non_null(kv_session_pivot(s));
    kv_session_free(s);
    kv_pivot *p = kv_pivot_load(path, c.hash, FAKE_LAYERS);
    assert_non_null(p);
    for (uint32_t l = 0; l < FAKE_LAYERS; l++)
        assert_true(
            p->entropy[l] > 0 && p->sparsity[l] > 0 && p->sparsity[l] <= 1.00001 && p->variance[l] >= 0);
    free(p);
    assert_null(kv_pivot_load(path, "another", FAKE_LAYERS));
    assert_null(kv_pivot_load(path, c.hash, FAKE_LAYERS + 1));
    assert_int_equal(kv_session_new_over(&s, &c, &o, NULL, NULL), 0);
    append_turn(s, 11);
    assert_true(deferred(s) > 0);
    kv_session_free(s);
    base_fs_remove(folder, NULL);
}

static void test_prune__damaged_pivot_files_are_none(void **state)
{
    static const char *const texts[] = {"", "kvist pivot 1", "kvist pivot 1 abc 0 1 1\n",
        "kvist pivot 1 abc 99999 1 1\n", "kvist pivot 1 abc 2 1 1\n1 2 3\n",
        "kvist pivot 1 abc 1 1 1\nnan 1 1\n", "kvist pivot 2 abc 1 1 1\n1 1 1\n",
        "kvist pivot 1 abc 1 1 1\n1 inf 1\n", "kvist pivot 1 abc 2 1 1\n1 1 1e308\n1 1 -1e308\n"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        assert_null(kv_pivot_parse(texts[i], strlen(texts[i])));
    static const char fine[] = "kvist pivot 1 abc 1 1 1\n1 2 3\n";
    kv_pivot *p = kv_pivot_parse(fine, sizeof fine - 1);
    assert_non_null(p);
    free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_prune__a_cut_that_keeps_all_gives_the_bits_of_full),
        cmocka_unit_test(test_prune__only_the_chosen_rows_go_up),
        cmocka_unit_test(test_prune__short_text_and_the_fixed_prompt_are_computed_in_full),
        cmocka_unit_test(test_prune__excerpts_together_are_a_bulk),
        cmocka_unit_test(test_prune__excerpts_alone_are_cut_when_they_are_only_read),
        cmocka_unit_test(test_prune__a_result_behind_the_request_is_judged_by_it),
        cmocka_unit_test(test_prune__undo_computes_what_was_left),
        cmocka_unit_test(test_prune__a_repair_computes_the_lines_that_are_asked_for),
        cmocka_unit_test(test_prune__a_repair_computes_no_more_than_it_may),
        cmocka_unit_test(test_prune__a_row_that_is_computed_later_is_the_same),
        cmocka_unit_test(test_prune__a_fork_that_computes_rows_leaves_its_parent_alone),
        cmocka_unit_test(test_prune__a_computation_that_is_cut_short_changes_nothing),
        cmocka_unit_test(test_prune__a_choice_that_is_cut_short_is_made_by_the_next_question),
        cmocka_unit_test(test_prune__logits_are_asked_for_only_of_what_is_computed),
        cmocka_unit_test(test_prune__a_saved_session_keeps_its_states),
        cmocka_unit_test(test_prune__a_logged_schedule_gives_the_state_again),
        cmocka_unit_test(test_prune__each_layer_stores_its_own_share),
        cmocka_unit_test(test_prune__odd_texts_and_cuts_are_fine),
        cmocka_unit_test(test_prune__a_budget_below_the_statement_takes_the_row_that_is_asked_for),
        cmocka_unit_test(test_prune__a_bulk_of_32k_is_fine),
        cmocka_unit_test(test_prune__the_cut_lies_behind_the_sharpest_change),
        cmocka_unit_test(test_prune__a_pivot_is_detected_once_and_kept),
        cmocka_unit_test(test_prune__damaged_pivot_files_are_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
