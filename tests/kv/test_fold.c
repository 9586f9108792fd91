/*
 * Sessions that go on behind the model's context (core/fold.h): what they read stays within it, and forks,
 * resumes, logs, undo and truncation carry the table.
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
#include "kit.h"
#include "kv/core/state.h"

enum { CTX = 6000, BUDGET = 1200, MOST_PLANS = 600 };

/* Every plan that a session made, to carry them out again. */
typedef struct record {
    kv_session *s;
    kv_plan *plans[MOST_PLANS];
    uint32_t n, n_folds;
} record;

static void keep(void *user, const kv_plan *p)
{
    record *r = user;
    base_buf blob = {0};
    r->n_folds += p->cause == KV_CAUSE_FOLD;
    assert_true(r->n < MOST_PLANS);
    kv_plan_pack(p, &blob);
    assert_int_equal(kv_plan_unpack(blob.data, blob.len, &r->plans[r->n++], NULL), 0);
    base_buf_free(&blob);
}

static void forget(record *r)
{
    for (uint32_t i = 0; i < r->n; i++) kv_plan_free(r->plans[i]);
    *r = (record){.n = 0};
}

static kv_session *open_session(fake_model *m, const char *policy, const char *row_file, record *r)
{
    const kv_compute c = fake_compute(m, CTX);
    const kv_observer observer = {.user = r, .plan = keep};
    const kv_options o = {.budget = BUDGET, .policy = policy, .repair = -1, .row_file = row_file};
    kv_session *s = NULL;
    base_err err = {0};
    if (kv_session_new_over(&s, &c, &o, r ? &observer : NULL, &err)) fail_msg("%s", err.msg);
    return s;
}

/* A turn: a request, a result, an answer token by token. */
static void live(kv_session *s, uint32_t turn, uint32_t n_result, uint32_t n_answer)
{
    int32_t ids[2000];
    kit_make_ids(ids, 2000, FAKE_VOCAB, 77 + turn);
    kv_session_set_turn(s, turn);
    kit_append(s, KV_ORIGIN_USER, turn, ids, 30, NULL);
    kit_append(s, KV_ORIGIN_TOOL, turn, ids + 30, n_result, NULL);
    for (uint32_t i = 0; i < n_answer; i++) kit_append(s, KV_ORIGIN_ANSWER, turn, ids + 40 + i, 1, NULL);
}

static void logits_of(kv_session *s, float *logits)
{
    base_err err = {0};
    if (kv_session_logits(s, logits, NULL, &err)) fail_msg("%s", err.msg);
}

/*
 * What is read lies within the context, in order, and the newest tokens are as they are. Once it is folded an eighth of
 * the context is holes at most, beside those of the newest tokens and of what came since the last batch.
 */
static void check_fold(const kv_session *s)
{
    int64_t before = -1;
    kv_stats stats;
    kv_session_get_stats(s, &stats);
    if (s->fold.n) assert_in_range(kv__extent(s), 1, stats.active + KV_FOLD_NEAR + CTX / 8 + 2 * KV_BATCH);
    assert_true(kv__extent(s) <= CTX - 2 * KV_BATCH);
    assert_true(kv_fold_is_valid(&s->fold, s->n));
    assert_true(!s->fold.n || s->fold.n * MODEL_ROWS_GROUP + KV_FOLD_NEAR <= s->n + KV_BATCH);
    /* Blocks end in order, and none ends ahead of the newest token. */
    for (uint32_t last = KV_FOLD_BLOCK - 1; last < s->n; last += KV_FOLD_BLOCK) {
        const uint32_t g = last / MODEL_ROWS_GROUP;
        const int64_t end = (int64_t)last + (g < s->fold.n ? s->fold.gaps[g] : 0);
        assert_true(end >= before && end < s->n);
        before = end;
    }
}

static void test_fold__a_session_goes_on_behind_the_context(void **state)
{
    static const char *const policies[] = {"kvist", "snapkv", "h2o", "intentkv"};
    for (size_t p = 0; p < sizeof policies / sizeof *policies; p++) {
        fake_model m = {.lanes_differ = true};
        record r = {.n = 0};
        kv_session *s = open_session(&m, policies[p], NULL, &r);
        kv_stats stats;
        for (uint32_t turn = 1; s->n < (p ? 2 : test_length(2, 4)) * CTX; turn++) {
            live(s, turn, 400 + turn % 7 * 90, 25);
            check_fold(s);
        }
        kv_session_get_stats(s, &stats);
        assert_true(
            stats.endless && stats.folded_to == s->fold.n * MODEL_ROWS_GROUP && stats.folded_to > CTX / 2);
        assert_true(r.n_folds >= 3 && r.n_folds < s->n / 1000);
        for (uint32_t t = 0; t < s->n; t++) assert_int_equal(s->phases[t], t); /* keys are where they were */
        kv_session_free(s);
        forget(&r);
    }
}

/*
 * Folded blocks leave memory with their active rows, where a person has bounded it and where nobody has; a disk that takes
 * no more leaves them in memory. No bit shows which it was.
 */
static void test_fold__folded_rows_lie_on_disk_beyond_the_limit(void **state)
{
    static const char *const bounded[] = {"host=1", NULL};
    enum { NOWHERE, BY_PERSON, BY_ITSELF, SESSIONS };
    char folder[] = "/tmp/kvist-test-XXXXXX", paths[SESSIONS][64] = {"/nowhere/rows"};
    float logits[SESSIONS][FAKE_VOCAB];
    uint64_t schedule[SESSIONS];
    (void)state;
    assert_non_null(mkdtemp(folder));
    for (int i = NOWHERE; i < SESSIONS; i++) {
        fake_model m = {.lanes_differ = true};
        const kv_compute c = fake_compute(&m, CTX);
        kv_session *s;
        if (i != NOWHERE) snprintf(paths[i], sizeof paths[i], "%s/rows%d", folder, i);
        const kv_options o = {
            .budget = BUDGET, .repair = -1, .set = i == BY_PERSON ? bounded : NULL, .row_file = paths[i]};
        assert_int_equal(kv_session_new_over(&s, &c, &o, NULL, NULL), 0);
        assert_true(s->folded_most >= 1 << 26 && s->folded_most <= 1 << 30);
        s->folded_most = 1 << 20;
        for (uint32_t turn = 1; turn <= 18; turn++) live(s, turn, 500 + turn % 3 * 100, 12);
        assert_true(s->fold.n && s->keeps_folded == (i == NOWHERE));
        uint32_t n_with_active = 0, n_in_memory = 0;
        for (uint32_t b = 0; b < s->table.n; b++) {
            const size_t from = (size_t)b * MODEL_ROWS_BLOCK, end = from + MODEL_ROWS_BLOCK,
                         to = end < s->n ? end : s->n;
            n_in_memory += !s->table.blocks[b]->on_disk;
            n_with_active +=
                s->table.blocks[b]->on_disk && kv_bits_next(s->lists.lane[0]->bits, from, to, true) < to;
        }
        assert_true(
            i == NOWHERE ? n_in_memory == s->table.n : n_with_active > 4 && n_in_memory < s->table.n / 2);
        logits_of(s, logits[i]);
        schedule[i] = kv_session_schedule_hash(s);
        kit_assert_same_logits(logits[i], logits[NOWHERE]);
        assert_true(schedule[i] == schedule[NOWHERE]);
        kv_session_free(s);
    }
    assert_int_equal(base_fs_remove(folder, NULL), 0);
}

/* Before the first fold a session without an end has the bits of one with an end. */
static void test_fold__nothing_changes_before_the_first_fold(void **state)
{
    fake_model m[2] = {{.lanes_differ = true}, {.lanes_differ = true}};
    record r[2] = {{.n = 0}, {.n = 0}};
    kv_session *s[2];
    float logits[2][FAKE_VOCAB];
    for (int i = 0; i < 2; i++) {
        kv_compute c = fake_compute(&m[i], CTX);
        if (i) c.turn = NULL; /* as a device that cannot fold */
        const kv_options o = {.budget = BUDGET, .repair = -1};
        const kv_observer observer = {.user = &r[i], .plan = keep};
        assert_int_equal(kv_session_new_over(&s[i], &c, &o, &observer, NULL), 0);
        for (uint32_t turn = 1; turn <= 4; turn++) live(s[i], turn, 600, 10); /* up to less than half of it */
        logits_of(s[i], logits[i]);
    }
    assert_true(kv__is_endless(s[0]) && !kv__is_endless(s[1]));
    assert_true(r[0].n > 1 && !r[0].n_folds && r[0].n == r[1].n);
    kit_assert_same_logits(logits[0], logits[1]);
    assert_true(kv_session_schedule_hash(s[0]) == kv_session_schedule_hash(s[1]));
    /* The one that ends says where, and what goes on. */
    int32_t ids[600] = {0};
    base_err err = {0};
    int rc = 0;
    while (!rc)
        rc = kv_session_append(
            s[1], &(kv_segment){.origin = KV_ORIGIN_TOOL, .turn = 7}, ids, 600, NULL, NULL, &err);
    assert_int_equal(rc, BASE_E_LIMIT);
    assert_non_null(strstr(err.msg, "auto"));
    for (int i = 0; i < 2; i++) {
        kv_session_free(s[i]);
        forget(&r[i]);
    }
}

/* In batches or token by token, with drafts or without: one table, the same bits. */
static void test_fold__plans_do_not_depend_on_batches(void **state)
{
    uint64_t schedule[2];
    float logits[2][FAKE_VOCAB];
    for (int way = 0; way < 2; way++) {
        fake_model m = {.lanes_differ = true};
        record r = {.n = 0};
        kv_session *s = open_session(&m, "kvist", NULL, &r);
        for (uint32_t turn = 1; turn <= 7; turn++) live(s, turn, 600, 5);
        int32_t ids[1500];
        kit_make_ids(ids, 1500, FAKE_VOCAB, 5);
        const kv_segment g = {.origin = KV_ORIGIN_ANSWER, .turn = 8};
        for (uint32_t at = 0; at < 1500;) {
            float drafted[KV_DRAFT_MAX * FAKE_VOCAB];
            base_err err = {0};
            if (way == 0) {
                kit_append(s, KV_ORIGIN_ANSWER, 8, ids + at++, 1, NULL);
                continue;
            }
            const uint32_t n = 1500 - at < 9 ? 1500 - at : 9;
            if (kv_session_draft(s, &g, ids + at, n, 0, drafted, NULL, &err)) fail_msg("%s", err.msg);
            while (kv_session_drafted(s, NULL)) { /* a plan ends a draft */
                if (kv_session_accept(s, &g, NULL, NULL, &err)) fail_msg("%s", err.msg);
                at++;
            }
        }
        assert_true(r.n_folds > 0);
        schedule[way] = kv_session_schedule_hash(s);
        logits_of(s, logits[way]);
        kv_session_free(s);
        forget(&r);
    }
    assert_true(schedule[0] == schedule[1]);
    kit_assert_same_logits(logits[0], logits[1]);
}

/* A fork, a resumed session and one that carries the logged plans out again go on as the session itself. */
static void test_fold__forks_resumes_and_logs_carry_the_table(void **state)
{
    char folder[] = "/tmp/kvist-fold-XXXXXX", path[64];
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/rows", folder);
    fake_model m = {.lanes_differ = true};
    record r = {.n = 0};
    float logits[4][FAKE_VOCAB];
    base_err err = {0};
    kv_session *s[4] = {open_session(&m, "snapkv", path, &r)};
    int32_t ids[9000];
    kit_make_ids(ids, 9000, FAKE_VOCAB, 11);
    const kv_segment g = {.origin = KV_ORIGIN_TOOL, .turn = 1};
    for (uint32_t at = 0; at < 9000; at += 450) kit_append(s[0], KV_ORIGIN_TOOL, 1, ids + at, 450, NULL);
    assert_true(r.n_folds >= 1 && s[0]->fold.n);
    assert_int_equal(kv_session_fork(s[0], &s[1], NULL, &err), 0);
    if (kv_session_save(s[0], &err)) fail_msg("%s", err.msg);
    const kv_compute c = fake_compute(&m, CTX);
    kv_options o = {.budget = BUDGET, .policy = "snapkv", .repair = -1, .row_file = path};
    s[3] = open_session(&m, "snapkv", NULL, NULL);
    kv_session_set_automatic(s[3], false);
    for (uint32_t at = 0, k = 0; at < 9000;) {
        uint32_t to = at + 450;
        if (at % 450) to = (at / 450 + 1) * 450;
        if (k < r.n && r.plans[k]->n_tokens < to) to = r.plans[k]->n_tokens;
        if (to > at) kit_append(s[3], KV_ORIGIN_TOOL, 1, ids + at, to - at, NULL);
        at = to;
        for (; k < r.n && r.plans[k]->n_tokens == at; k++) {
            r.plans[k]->epoch = s[3]->epoch;
            if (kv_session_apply(s[3], r.plans[k], &err)) fail_msg("%s", err.msg);
        }
    }
    kv_session_set_automatic(s[3], true);
    kv_fold table = {.n = 0};
    assert_int_equal(kv_fold_copy(&table, &s[0]->fold, &err), 0);
    const uint64_t schedule = s[0]->schedule;
    for (int i = 0; i < 4; i++) {
        if (i == 2 && kv_session_resume_over(&s[2], &c, &o, NULL, &err)) fail_msg("%s", err.msg);
        assert_int_equal(s[i]->fold.n, table.n);
        assert_memory_equal(s[i]->fold.gaps, table.gaps, table.n * sizeof *table.gaps);
        assert_true(s[i]->schedule == schedule);
        if (kv_session_append(s[i], &g, ids, 500, logits[i], NULL, &err)) fail_msg("%s", err.msg);
        if (i) kit_assert_same_logits(logits[i], logits[0]);
        kv_session_free(s[i]);
    }
    kv_fold_free(&table);
    /* Where a session could not go on it says so, and the files stay. */
    kv_session *refused = NULL;
    o.budget = 0;
    assert_true(kv_session_resume_over(&refused, &c, &o, NULL, &err) < 0);
    assert_non_null(strstr(err.msg, "auto"));
    kv_compute device = c;
    device.turn = NULL;
    o.budget = BUDGET;
    assert_true(kv_session_resume_over(&refused, &device, &o, NULL, &err) < 0);
    forget(&r);
    assert_int_equal(base_fs_remove(folder, NULL), 0);
}

static void test_fold__undo_restores_the_table_and_the_next_append_folds_again(void **state)
{
    fake_model m = {.lanes_differ = true};
    record r = {.n = 0};
    base_err err = {0};
    kv_session *s = open_session(&m, "snapkv", NULL, &r);
    int32_t ids[450];
    kit_make_ids(ids, 450, FAKE_VOCAB, 3);
    while (!r.n || r.plans[r.n - 1]->cause != KV_CAUSE_FOLD) kit_append(s, KV_ORIGIN_TOOL, 1, ids, 450, NULL);
    assert_int_equal(r.n_folds, 1);
    const uint32_t n = s->fold.n, first = s->fold.gaps[0];
    if (kv_session_undo_plan(s, &err)) fail_msg("%s", err.msg);
    assert_int_equal(s->fold.n, 0);
    kit_append(s, KV_ORIGIN_TOOL, 1, ids, 10, NULL);
    assert_int_equal(r.n_folds, 2);
    assert_int_equal(s->fold.n, n);
    assert_int_equal(s->fold.gaps[0], first);
    check_fold(s);
    kv_session_free(s);
    forget(&r);
}

/* Cut off inside of what is folded: the next token reads what is right before it as it lies. */
static void test_fold__truncation_leaves_nothing_ahead(void **state)
{
    fake_model m = {.lanes_differ = true};
    record r = {.n = 0};
    base_err err = {0};
    kv_session *s = open_session(&m, "snapkv", NULL, &r);
    int32_t ids[450];
    kit_make_ids(ids, 450, FAKE_VOCAB, 3);
    while (s->n < 2 * CTX) kit_append(s, KV_ORIGIN_TOOL, 1, ids, 450, NULL);
    const uint32_t folded = s->fold.n * MODEL_ROWS_GROUP;
    const uint32_t gap = s->fold.gaps[0];
    if (kv_session_truncate(s, folded + 500, &err)) fail_msg("%s", err.msg);
    assert_int_equal(s->fold.gaps[0], gap); /* nothing of the table spoke of them */
    for (uint32_t n = folded - 70; n > 1000; n -= 777) {
        if (kv_session_truncate(s, n, &err)) fail_msg("%s", err.msg);
        assert_true(s->fold.n < n / MODEL_ROWS_GROUP || !s->fold.n);
        assert_true(kv_fold_is_valid(&s->fold, s->n));
        assert_true(kv__extent(s) <= CTX);
        while (s->n_journal && !kv_session_undo_plan(s, NULL)) assert_true(kv_fold_is_valid(&s->fold, s->n));
        kit_append(s, KV_ORIGIN_TOOL, 1, ids, 50, NULL);
    }
    kv_session_free(s);
    forget(&r);
}

/* Budgets that fill half of the context or more, a given end and policies that know no fold end a session. */
static void test_fold__who_ends(void **state)
{
    static const struct {
        uint32_t budget, n_ctx;
        const char *policy, *set;
        bool endless;
    } cases[] = {{BUDGET, 0, "kvist", NULL, true}, {CTX / 2, 0, "kvist", NULL, true},
        {CTX / 2 + 1, 0, "kvist", NULL, false}, {0, 0, "kvist", NULL, false},
        {BUDGET, CTX, "kvist", NULL, false}, {BUDGET, 0, "full", NULL, false},
        {BUDGET, 0, "codecomp", "local=1", false}, {BUDGET, 0, "sentkv", NULL, false},
        {BUDGET, 0, "streaming-llm", NULL, true}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        fake_model m = {.fail_after = -1};
        const kv_compute c = fake_compute(&m, CTX);
        const char *set[] = {cases[i].set, NULL};
        const kv_options o = {.budget = cases[i].budget,
            .n_ctx = cases[i].n_ctx,
            .policy = cases[i].policy,
            .set = set,
            .repair = -1};
        kv_session *s = NULL;
        base_err err = {0};
        if (kv_session_new_over(&s, &c, &o, NULL, &err)) fail_msg("%s", err.msg);
        if (kv__is_endless(s) != cases[i].endless) fail_msg("case %zu", i);
        kv_session_free(s);
    }
    /* A session that went on keeps a budget. */
    fake_model m = {.fail_after = -1};
    kv_session *s = open_session(&m, "streaming-llm", NULL, NULL);
    int32_t ids[500] = {0};
    base_err err = {0};
    while (s->n < CTX + 100) kit_append(s, KV_ORIGIN_TOOL, 1, ids, 500, NULL);
    assert_int_equal(kv_session_set_budget(s, (kv_limit){0}, &err), BASE_E_LIMIT);
    assert_true(kv__is_endless(s) && s->budget == BUDGET);
    assert_int_equal(
        kv_session_set_policy(s, &(kv_options){.policy = "full", .repair = -1}, &err), BASE_E_LIMIT);
    assert_true(kv__is_endless(s) && s->budget == BUDGET);
    kit_append(s, KV_ORIGIN_TOOL, 1, ids, 500, NULL);
    kv_session_free(s);
}

/* At full length more than a million tokens: tables grow by themselves, and what is read stays within 6,000 phases. */
static void test_fold__tables_grow(void **state)
{
    const uint32_t many = test_length(150000, 1050000);
    fake_model m = {.fail_after = -1};
    kv_compute c = fake_compute(&m, CTX);
    c.device = (kv_device){.user = NULL}; /* it counts no more than so many blocks */
    const kv_options o = {
        .budget = 3000, .policy = "streaming-llm", .repair = -1, .set = (const char *[]){"low=.3", NULL}};
    kv_session *s = NULL;
    base_err err = {0};
    if (kv_session_new_over(&s, &c, &o, NULL, &err)) fail_msg("%s", err.msg);
    int32_t *ids = base_xcalloc(30000, sizeof *ids);
    kit_make_ids(ids, 30000, FAKE_VOCAB, 3);
    for (uint32_t turn = 1; s->n < many; turn++) {
        kit_append(s, KV_ORIGIN_USER, turn, ids + turn % 100, 40, NULL);
        kit_append(s, KV_ORIGIN_TOOL, turn, ids, 30000, NULL);
        if (kv__extent(s) > CTX - 2 * KV_BATCH) fail_msg("%u phases", kv__extent(s));
    }
    check_fold(s);
    kv_stats stats;
    kv_session_get_stats(s, &stats);
    assert_true(stats.n_tokens > many && stats.active <= 3000);
    float logits[FAKE_VOCAB];
    logits_of(s, logits);
    free(ids);
    kv_session_free(s);
}

/* What a request outshone is in the logged plan, and in the saved session, which goes on with the same bits. */
static void test_fold__what_is_outshone_is_saved(void **state)
{
    enum { TEXT = 6300, ASKS = 30 };
    char folder[] = "/tmp/kvist-fold-XXXXXX", path[64];
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/rows", folder);
    fake_model m = {.lanes_differ = true};
    record r = {.n = 0};
    float logits[2][FAKE_VOCAB];
    base_err err = {0};
    kv_session *s = open_session(&m, "kvist", path, &r);
    int32_t ids[TEXT + ASKS];
    kit_make_classes(ids, TEXT + ASKS, 50, 11);
    ids[405] = ids[TEXT + 7] = 55; /* like no other */
    for (uint32_t at = 0; at < TEXT; at += 450) kit_append(s, KV_ORIGIN_TOOL, 1, ids + at, 450, NULL);
    assert_true(s->fold.n > 0);
    const uint32_t asks = 7, query = TEXT + asks;
    kit_append_segment(s, (kv_segment){.origin = KV_ORIGIN_USER, .turn = 2, .queries = &asks, .n_queries = 1},
        ids + TEXT, ASKS);
    if (kv_session_repair(s, &(kv_ask){TEXT, TEXT + ASKS, &query, 1}, NULL, &err)) fail_msg("%s", err.msg);
    const size_t n_bytes = kv_bits_words(s->n) * sizeof *s->outshone;
    uint64_t *outshone = base_xmalloc(n_bytes);
    memcpy(outshone, s->outshone, n_bytes);
    assert_true(kv_bits_count(outshone, kv_bits_words(s->n)) > 0);
    assert_non_null(r.plans[r.n - 1]->outshone);
    assert_memory_equal(r.plans[r.n - 1]->outshone, outshone, n_bytes);
    for (int way = 0; way < 2; way++) {
        assert_memory_equal(s->outshone, outshone, n_bytes);
        if (!way && kv_session_save(s, &err)) fail_msg("%s", err.msg);
        kit_append(s, KV_ORIGIN_ANSWER, 2, ids, 5, logits[way]);
        kv_session_free(s);
        const kv_compute c = fake_compute(&m, CTX);
        const kv_options o = {.budget = BUDGET, .policy = "kvist", .repair = -1, .row_file = path};
        s = NULL;
        if (!way && kv_session_resume_over(&s, &c, &o, NULL, &err)) fail_msg("%s", err.msg);
    }
    assert_memory_equal(logits[0], logits[1], sizeof logits[0]);
    free(outshone);
    forget(&r);
    assert_int_equal(base_fs_remove(folder, NULL), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fold__a_session_goes_on_behind_the_context),
        cmocka_unit_test(test_fold__folded_rows_lie_on_disk_beyond_the_limit),
        cmocka_unit_test(test_fold__nothing_changes_before_the_first_fold),
        cmocka_unit_test(test_fold__plans_do_not_depend_on_batches),
        cmocka_unit_test(test_fold__forks_resumes_and_logs_carry_the_table),
        cmocka_unit_test(test_fold__what_is_outshone_is_saved),
        cmocka_unit_test(test_fold__undo_restores_the_table_and_the_next_append_folds_again),
        cmocka_unit_test(test_fold__truncation_leaves_nothing_ahead),
        cmocka_unit_test(test_fold__who_ends),
        cmocka_unit_test(test_fold__tables_grow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
