/*
 * Everything at once in one session over real forward passes: pruned prefill, structure's soft share,
 * eviction, repair and a part of the rows read at each step. Each has its own tests; here are the promises of
 * docs/kv.md for all of them together, over little models.
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
#include "base/hash.h"
#include "kit.h"
#include "kv/core/state.h"
#include "kv/plan/apply.h"

enum { CTX = 4000, BUDGET = 760, LINE = 20, WORDS = CTX / 64 + 1, ANSWER = 40, N_VOCAB = TINY_GGUF_VOCAB };

static const char *const together[] = {"soft=.75", "prune=heads", "pivot=2", "bulk=200", "keep=.2",
    "decode=sentence", "usage=.2", "least_read=20", "window=16", NULL};
/* The same with each mechanism told to leave nothing out. */
static const char *const all[] = {"soft=.75", "prune=heads", "pivot=2", "bulk=200", "keep=1",
    "decode=sentence", "usage=1", "least_read=0", "window=16", NULL};

static model *open_deep(uint32_t which, int n_threads)
{
    tiny_gguf specs[] = {TINY_GGUF_QWEN2, TINY_GGUF_LLAMA, TINY_GGUF_GEMMA3, TINY_GGUF_GEMMA4};
    if (specs[which].n_layer < 6) specs[which].n_layer = 6;
    return kit_open_tiny(&specs[which], n_threads);
}

/* What a log holds of a session: how each segment was computed, and the plans. */
typedef struct record {
    base_buf plans[64];
    uint32_t n_tokens[64], n;
    uint32_t of[KV_CAUSE_FOLD + 1]; /* plans by cause */
} record;

static void on_plan(void *user, const kv_plan *p)
{
    record *r = user;
    assert_true(r->n < 64);
    r->n_tokens[r->n] = p->n_tokens;
    r->of[p->cause]++;
    kv_plan_pack(p, &r->plans[r->n++]);
}

static void record_free(record *r)
{
    for (uint32_t i = 0; i < r->n; i++) base_buf_free(&r->plans[i]);
}

/* One session and what it has said. */
typedef struct world {
    model *model;
    kv_session *s;
    record log;
    bool drafts;          /* answers are computed ahead, right and wrong, as prompt lookup does */
    const char *row_file; /* saved and opened again between the turns; NULL: never */
    const char *const *set;
    int32_t answer[2][ANSWER]; /* greedy */
    float logits[N_VOCAB];
} world;

static kv_options options_of(const world *w, uint32_t budget)
{
    return (kv_options){.budget = budget,
        .policy = "kvist",
        .repair = 60,
        .set = w->set,
        .n_ctx = CTX,
        .row_file = w->row_file};
}

static void open_world(world *w, uint32_t budget)
{
    const kv_options o = options_of(w, budget);
    const kv_observer observer = {.user = &w->log, .plan = on_plan};
    base_err err = {0};
    if (kv_session_new(&w->s, w->model, &o, &observer, &err)) fail_msg("%s", err.msg);
}

static void close_world(world *w)
{
    record_free(&w->log);
    kv_session_free(w->s);
}

/* Properties 1 and 4, and what deferred means: no such row is in a list, and none is hard. */
static void check(const kv_session *s, bool after_pass)
{
    static uint8_t hard[CTX];
    uint64_t active = 0, deferred = 0, host = 0, lost = 0;
    kv_stats stats;
    if (s->pending == KV_NO_ROW) kv__protect(s, hard);
    for (uint32_t lane = 0; lane < s->n_lanes; lane++)
        for (uint32_t t = 0; t < s->n; t++) {
            const bool is_active = kv_bits_get(s->lists.lane[lane]->bits, t),
                       is_deferred = kv__is_deferred(s, lane, t);
            assert_false(is_active && is_deferred);
            if (s->pending == KV_NO_ROW && hard[t]) assert_true(is_active);
            if (kv__window(s, lane)) continue; /* counted nowhere */
            active += is_active;
            deferred += is_deferred;
            lost += !is_active && !is_deferred && kv_bits_get(s->lost, t);
            host += !is_active && !is_deferred && !kv_bits_get(s->lost, t);
        }
    assert_true(active + deferred + host + lost == (uint64_t)s->n * s->n_whole);
    kv_session_get_stats(s, &stats);
    assert_int_equal(stats.active, (active + s->n_whole / 2) / s->n_whole);
    assert_true(kv__deferred_rows(s) == deferred);
    if (after_pass && stats.budget) assert_true(stats.active_max <= stats.budget);
}

/* Code-like text: lines, and in each third one a statement with its essential part. */
static void append_bulk(world *w, kv_origin origin, uint32_t turn, const int32_t *ids, uint32_t n)
{
    uint32_t lines[CTX / LINE], n_lines = 0, n_spans = 0;
    kv_span spans[CTX / LINE];
    for (uint32_t i = 0; i < n; i += LINE) {
        if (n_lines % 3 == 0 && i + LINE <= n) {
            spans[n_spans++] = (kv_span){
                .from = i + 2, .to = i + 6, .reason = KV_REASON_CALL, .marks = KV_MARK_CALL | KV_MARK_CORE};
            spans[n_spans++] =
                (kv_span){.from = i + 2, .to = i + LINE, .reason = KV_REASON_CALL, .marks = KV_MARK_CALL};
        }
        lines[n_lines++] = i;
    }
    const kv_segment g = {.origin = origin,
        .turn = turn,
        .lines = lines,
        .n_lines = n_lines,
        .spans = spans,
        .n_spans = n_spans};
    base_err err = {0};
    if (kv_session_append(w->s, &g, ids, n, NULL, NULL, &err)) fail_msg("%s", err.msg);
    check(w->s, w->s->pending == KV_NO_ROW);
}

/* A message, what it brings back, the template's tail. */
static void ask(world *w, uint32_t turn, const int32_t *ids, uint32_t n)
{
    const uint32_t queries[] = {4, 5, 6};
    const kv_segment g = {.origin = KV_ORIGIN_USER, .turn = turn, .queries = queries, .n_queries = 3};
    base_err err = {0};
    kv_session_set_turn(w->s, turn);
    if (kv_session_append(w->s, &g, ids, n, NULL, NULL, &err)) fail_msg("%s", err.msg);
    check(w->s, false);
    const uint32_t from = w->s->n - n, tokens[] = {from + 4, from + 5, from + 6};
    if (kv_session_repair(w->s, &(kv_ask){from, w->s->n, tokens, 3}, NULL, &err)) fail_msg("%s", err.msg);
    check(w->s, false);
    kit_append(w->s, KV_ORIGIN_SCAFFOLD, turn, ids, 4, w->logits);
}

static int32_t best_of(const float *logits)
{
    int32_t best = 0;
    for (int32_t v = 1; v < N_VOCAB; v++)
        if (logits[v] > logits[best]) best = v;
    return best;
}

/* The most probable tokens; whether or not some of them were computed ahead must not show. */
static void answer(world *w, uint32_t turn)
{
    const kv_segment g = {.origin = KV_ORIGIN_ANSWER, .turn = turn};
    static float ahead[8][N_VOCAB];
    base_err err = {0};
    uint32_t used = 0;
    for (uint32_t i = 0; i < ANSWER; i++) {
        const int32_t id = best_of(w->logits), *next;
        w->answer[turn - 1][i] = id;
        if (!w->drafts) {
            kit_append(w->s, KV_ORIGIN_ANSWER, turn, &id, 1, w->logits);
            continue;
        }
        if (!kv_session_drafted(w->s, &next) || next[0] != id) {
            int32_t guess[8];
            for (int k = 0; k < 8; k++) guess[k] = k ? (id + k * (k > 3)) % N_VOCAB : id;
            if (kv_session_draft(w->s, &g, guess, 8, 0, ahead[0], NULL, &err)) fail_msg("%s", err.msg);
            used = 0;
        }
        memcpy(w->logits, ahead[used++], sizeof w->logits);
        if (kv_session_accept(w->s, &g, NULL, NULL, &err)) fail_msg("%s", err.msg);
    }
    check(w->s, true);
}

/* Another session from its file goes on as this one would. */
static void save_and_open(world *w, uint32_t budget)
{
    const kv_options o = options_of(w, budget);
    const kv_observer observer = {.user = &w->log, .plan = on_plan};
    const uint64_t schedule = kv_session_schedule_hash(w->s);
    base_err err = {0};
    if (!w->row_file) return;
    if (kv_session_save(w->s, &err)) fail_msg("%s", err.msg);
    kv_session_free(w->s);
    w->s = NULL;
    if (kv_session_resume(&w->s, w->model, &o, &observer, &err)) fail_msg("%s", err.msg);
    assert_true(kv_session_schedule_hash(w->s) == schedule);
    check(w->s, false);
}

/* Two turns: excerpts, a request, an answer; a result, another request, an answer. */
static void run(world *w, uint32_t budget)
{
    int32_t ids[2200];
    kit_make_ids(ids, 2200, N_VOCAB, 11);
    open_world(w, budget);
    kit_append(w->s, KV_ORIGIN_SYSTEM, 0, ids, 40, NULL);
    append_bulk(w, KV_ORIGIN_CONTEXT, 1, ids + 40, 800);
    ask(w, 1, ids + 840, 40);
    answer(w, 1);
    save_and_open(w, budget);
    append_bulk(w, KV_ORIGIN_TOOL, 1, ids + 880, 500);
    append_bulk(w, KV_ORIGIN_TOOL, 1, ids + 1380, 700);
    ask(w, 2, ids + 2080, 40);
    answer(w, 2);
    save_and_open(w, budget);
    kit_append(w->s, KV_ORIGIN_SCAFFOLD, 2, ids, 3, w->logits);
}

static void assert_same(const world *a, const world *b)
{
    assert_int_equal(a->log.n, b->log.n);
    for (uint32_t i = 0; i < a->log.n; i++) {
        assert_int_equal(a->log.plans[i].len, b->log.plans[i].len);
        assert_memory_equal(a->log.plans[i].data, b->log.plans[i].data, a->log.plans[i].len);
    }
    assert_memory_equal(a->answer, b->answer, sizeof a->answer);
    assert_memory_equal(a->logits, b->logits, sizeof a->logits);
    assert_true(kv_session_schedule_hash(a->s) == kv_session_schedule_hash(b->s));
}

/* --- the tests ------------------------------------------------------------------------------------------ */

static void test_together__each_of_them_does_something(void **state)
{
    for (uint32_t k = 0; k < 4; k++) {
        world w = {.model = open_deep(k, 2), .set = together};
        run(&w, BUDGET);
        kv_stats stats;
        kv_session_get_stats(w.s, &stats);
        assert_true(w.log.of[KV_CAUSE_PRUNE] >= 3);
        assert_true(w.log.of[KV_CAUSE_EVICT] + w.log.of[KV_CAUSE_PRESSURE] > 0);
        assert_true(w.log.of[KV_CAUSE_REPAIR] > 0);
        assert_true(stats.deferred_tokens > 0 && stats.host > 0);
        assert_true(stats.computed_above > 0); /* rows left below a cut that a repair wanted */
        assert_true(stats.reads.steps == 2 * ANSWER && stats.reads.read < stats.reads.live);
        uint32_t n_soft = 0;
        for (uint32_t t = 0; t < w.s->n; t++)
            n_soft +=
                w.s->tokens[t].last_action == KV_PROTECT && w.s->tokens[t].last_reason == KV_REASON_CALL;
        assert_true(n_soft > 0);
        close_world(&w);
        model_close(w.model);
    }
}

static void test_together__the_same_for_any_threads_drafts_and_resumes(void **state)
{
    char folder[] = "/tmp/kvist-test-XXXXXX", path[64];
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/rows", folder);
    for (uint32_t k = 0; k < 4; k++) {
        world one = {.model = open_deep(k, 1), .set = together},
              three = {.model = open_deep(k, 3), .set = together},
              ahead = {.model = one.model, .set = together, .drafts = true},
              saved = {.model = one.model, .set = together, .row_file = path};
        run(&one, BUDGET);
        run(&three, BUDGET);
        run(&ahead, BUDGET);
        run(&saved, BUDGET);
        assert_same(&one, &three);
        assert_same(&one, &ahead);
        assert_same(&one, &saved);
        close_world(&ahead);
        close_world(&saved);
        close_world(&one);
        close_world(&three);
        model_close(one.model);
        model_close(three.model);
    }
    base_fs_remove(folder, NULL);
}

/* Property 7: what the log says, computed again without a policy's choice, is the same state. */
static void test_together__the_log_alone_gives_the_state_again(void **state)
{
    for (uint32_t k = 0; k < 4; k++) {
        world w = {.model = open_deep(k, 2), .set = together};
        run(&w, BUDGET);
        const kv_options o = options_of(&w, BUDGET);
        kv_session *again = NULL;
        float logits[N_VOCAB], next[N_VOCAB];
        base_err err = {0};
        uint32_t at = 0;
        if (kv_session_new(&again, w.model, &o, NULL, &err)) fail_msg("%s", err.msg);
        kv_session_set_automatic(again, false);
        for (size_t i = 0; i < w.s->n_segments; i++) {
            const kv_stored_segment *part = &w.s->segments[i];
            /*
             * A plan may fall between two tokens of a part: an answer's eviction, a bulk longer than a pass.
             */
            for (uint32_t from = part->from; from < part->to;) {
                const uint32_t due =
                    at < w.log.n && w.log.n_tokens[at] > from && w.log.n_tokens[at] < part->to
                        ? w.log.n_tokens[at]
                        : part->to;
                const kv_segment g = {.origin = part->origin,
                    .turn = part->turn,
                    .lanes = kv_session_lanes(w.s, from),
                    .spans = from == part->from && due == part->to ? part->spans : NULL,
                    .n_spans = from == part->from && due == part->to ? part->n_spans : 0};
                if (kv_session_append(again, &g, w.s->ids + from, due - from, NULL, NULL, &err))
                    fail_msg("%s", err.msg);
                from = due;
                for (; at < w.log.n && w.log.n_tokens[at] == from; at++) {
                    kv_plan *p = NULL;
                    assert_int_equal(kv_plan_unpack(w.log.plans[at].data, w.log.plans[at].len, &p, NULL), 0);
                    p->epoch = again->epoch;
                    if (kv_session_apply(again, p, &err)) fail_msg("%s", err.msg);
                    kv_plan_free(p);
                }
            }
        }
        assert_int_equal(at, w.log.n);
        const int32_t tail[] = {5, 6, 7};
        for (uint32_t lane = 0; lane < w.s->n_lanes; lane++)
            assert_memory_equal(w.s->lists.lane[lane]->bits, again->lists.lane[lane]->bits,
                kv_bits_words(w.s->n) * sizeof(uint64_t));
        assert_memory_equal(w.s->cut, again->cut, w.s->n * sizeof *w.s->cut);
        kit_append(w.s, KV_ORIGIN_SCAFFOLD, 3, tail, 3, logits);
        kit_append(again, KV_ORIGIN_SCAFFOLD, 3, tail, 3, next);
        assert_memory_equal(logits, next, sizeof logits);
        kv_session_free(again);
        close_world(&w);
        model_close(w.model);
    }
}

/* Property 3, for all of them: told to leave nothing out, they are the full cache. */
static void test_together__leaving_nothing_out_is_full(void **state)
{
    static const char *const none[] = {"prune=off", "decode=all", NULL};
    for (uint32_t k = 0; k < 4; k++) {
        model *m = open_deep(k, 2);
        world w = {.model = m, .set = all}, full = {.model = m, .set = none};
        run(&w, 0);
        run(&full, 0);
        assert_memory_equal(w.answer, full.answer, sizeof w.answer);
        assert_memory_equal(w.logits, full.logits, sizeof w.logits);
        close_world(&w);
        close_world(&full);
        model_close(m);
    }
}

/*
 * Everything back by hand, the newest plan first: every row is there again, and a fork's parent knows nothing
 * of it.
 */
static void test_together__undoing_every_plan_brings_every_row_back(void **state)
{
    for (uint32_t k = 0; k < 4; k++) {
        world w = {.model = open_deep(k, 2), .set = together};
        run(&w, BUDGET);
        const uint32_t deferred = kv__deferred_tokens(w.s);
        const uint64_t rows = kv__deferred_rows(w.s);
        kv_session *f = NULL;
        base_err err = {0};
        if (kv_session_fork(w.s, &f, NULL, &err)) fail_msg("%s", err.msg);
        assert_int_equal(kv_session_set_budget(f, (kv_limit){0}, &err), 0);
        int r;
        while ((r = kv_session_undo_plan(f, &err)) == 0) check(f, false);
        assert_int_equal(r, BASE_E_NOT_FOUND);
        assert_int_equal(kv__deferred_tokens(f), 0);
        for (uint32_t lane = 0; lane < f->n_lanes; lane++) assert_int_equal(f->lists.view[lane].n_rows, f->n);
        assert_int_equal(kv__deferred_tokens(w.s), deferred);
        assert_true(kv__deferred_rows(w.s) == rows);
        check(w.s, false);
        kv_session_free(f);
        close_world(&w);
        model_close(w.model);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_together__each_of_them_does_something),
        cmocka_unit_test(test_together__the_same_for_any_threads_drafts_and_resumes),
        cmocka_unit_test(test_together__the_log_alone_gives_the_state_again),
        cmocka_unit_test(test_together__leaving_nothing_out_is_full),
        cmocka_unit_test(test_together__undoing_every_plan_brings_every_row_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
