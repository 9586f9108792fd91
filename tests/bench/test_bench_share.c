/* What experiments compute once for many conditions must not show: prefills shared between cuts, answers read along a guess. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "bench/common/write_answer.h"
#include "bench/common/share.h"
#include "tiny_gguf.h"

enum { N_TEXT = 1100, N_ASKED = 40, N_NEW = 30, N_VOCAB = TINY_GGUF_VOCAB };

static model *open_model(int n_threads)
{
    tiny_gguf spec = TINY_GGUF_QWEN2;
    spec.n_layer = 6;
    char *path = tiny_gguf_temp(&spec);
    assert_non_null(path);
    model *m = NULL;
    base_err err = {0};
    if (model_open(&m, path, &(model_options){.n_threads = n_threads, .backend = "cpu"}, &err))
        fail_msg("%s", err.msg);
    unlink(path);
    free(path);
    return m;
}

static void make_ids(int32_t *ids, uint32_t n, uint64_t seed)
{
    for (uint32_t i = 0; i < n; i++) ids[i] = (int32_t)((tiny_random(&seed) + 1) / 2 * 255);
}

static const char *const sets[][6] = {{NULL}, {"prune=heads", "pivot=2", "bulk=200"},
    {"prune=centrality", "pivot=4", "bulk=200", "keep=.3", "stored=.2"},
    {"prune=layer", "pivot=2", "bulk=200"}, {"prune=last", "pivot=3", "bulk=200"},
    {"prune=heads", "pivot=4", "bulk=200", "keep=1"}};
static const uint32_t cuts[] = {0, 2, 4, 2, 3, 4};
enum { N_SETS = sizeof sets / sizeof *sets, KEEPS_ALL = N_SETS - 1 };

/* The text, a question and the logits behind it; next: behind an eviction of some rows and another token. */
static kv_session *run(
    const kv_compute *c, bench_share *share, size_t set, const int32_t *ids, float *logits, float *next)
{
    kv_session *s = NULL;
    base_err err = {0};
    const kv_options o = {.policy = "kvist", .repair = 20, .set = sets[set]};
    const uint32_t queries[] = {5, 6};
    if (kv_session_new_over(&s, c, &o, NULL, &err)) fail_msg("%s", err.msg);
    assert_int_equal(kv_session_next_cut(s), cuts[set]);
    const kv_segment text = {.origin = KV_ORIGIN_CONTEXT, .turn = 1},
                     asked = {.origin = KV_ORIGIN_USER, .turn = 1, .queries = queries, .n_queries = 2},
                     tail = {.origin = KV_ORIGIN_SCAFFOLD, .turn = 1};
    if (share) bench_share_keep(share, true);
    if (kv_session_append(s, &text, ids, N_TEXT, NULL, NULL, &err)) fail_msg("%s", err.msg);
    if (share) bench_share_keep(share, false);
    if (kv_session_append(s, &asked, ids + N_TEXT, N_ASKED, NULL, NULL, &err)) fail_msg("%s", err.msg);
    if (kv_session_append(s, &tail, ids, 3, logits, NULL, &err)) fail_msg("%s", err.msg);
    kv_session *f = NULL;
    assert_int_equal(kv_session_fork(s, &f, NULL, &err), 0);
    assert_int_equal(kv_session_manual(f, KV_MANUAL_EVICT, 100, 300, &err), 0);
    if (kv_session_append(f, &tail, ids, 2, next, NULL, &err)) fail_msg("%s", err.msg);
    kv_session_free(f);
    return s;
}

static void test_bench_share__shared_prefills_have_the_bits_of_own_ones(void **state)
{
    int32_t ids[N_TEXT + N_ASKED], other[N_TEXT + N_ASKED];
    make_ids(ids, N_TEXT + N_ASKED, 3);
    make_ids(other, N_TEXT + N_ASKED, 4);
    model *m = open_model(2);
    bench_share *share = bench_share_new(m, cuts, N_SETS);
    const kv_compute own = kv_compute_model(m), shared = bench_share_compute(share);
    for (int order = 0; order < 3; order++) { /* the deepest first, last, and another text */
        const int32_t *text = order == 2 ? other : ids;
        bench_share_forget(share);
        for (size_t i = 0; i < N_SETS; i++) {
            const size_t set = order == 1 ? (i + 1) % N_SETS : i;
            float a[N_VOCAB], b[N_VOCAB], c[N_VOCAB], d[N_VOCAB];
            const uint64_t before = kv_rows_read();
            kv_session *x = run(&own, NULL, set, text, a, c);
            const uint64_t between = kv_rows_read();
            kv_session *y = run(&shared, share, set, text, b, d);
            /* What goes above the cut whole was computed by the session without a cut, if that went before. */
            if (order != 1 && set == KEEPS_ALL)
                assert_true(kv_rows_read() - between < (between - before) / 2);
            assert_memory_equal(a, b, sizeof a);
            assert_memory_equal(c, d, sizeof c);
            assert_true(kv_session_schedule_hash(x) == kv_session_schedule_hash(y));
            kv_session_free(x);
            kv_session_free(y);
        }
    }
    bench_share_free(share);
    model_close(m);
}

static int count_look(void *user, kv_session *s, base_err *err)
{
    kv_stats stats;
    (void)err;
    kv_session_get_stats(s, &stats);
    uint32_t *looked = user;
    looked[0]++;
    looked[1] = looked[1] * 31 + stats.n_tokens;
    return 0;
}

/* Right guesses, wrong ones from the first token or a later one on, shorter and longer ones. */
static void test_bench_share__a_guess_does_not_show_in_the_answer(void **state)
{
    static const char *const tenth[] = {"usage=.1", "least_read=0", NULL};
    model *m = open_model(2);
    int32_t ids[N_TEXT];
    base_err err = {0};
    float logits[N_VOCAB], first[N_VOCAB];
    kv_session *s = NULL;
    make_ids(ids, N_TEXT, 9);
    const kv_segment text = {.origin = KV_ORIGIN_USER, .turn = 1};
    if (kv_session_new(&s, m, &(kv_options){.policy = "sentkv", .set = tenth}, NULL, &err))
        fail_msg("%s", err.msg);
    if (kv_session_append(s, &text, ids, N_TEXT, first, NULL, &err)) fail_msg("%s", err.msg);
    model_ids plain = {0};
    uint32_t plain_looked[2] = {0};
    kv_stats plain_stats = {0};
    for (int kind = -1; kind < 8; kind++) {
        model_ids got = {0}, guess = {0};
        uint32_t looked[2] = {0};
        kv_session *f = NULL;
        for (size_t i = 0; kind >= 0 && i < plain.n + (kind == 7 ? 5 : 0); i++)
            model_ids_add(&guess, i < plain.n ? plain.ids[i] : 7);
        if (kind >= 0 && kind < 4) guess.ids[kind * 5] = (guess.ids[kind * 5] + 1) % N_VOCAB;
        if (kind == 5) guess.n = 9;
        if (kind == 6) guess.n = 0;
        const bool looks = kind != 4;
        const bench_asking a = {.model = m,
            .turn = 1,
            .n_new = N_NEW,
            .guess = kind < 0 ? NULL : &guess,
            .look = looks ? count_look : NULL,
            .user = looked};
        assert_int_equal(kv_session_fork(s, &f, NULL, &err), 0);
        memcpy(logits, first, sizeof logits);
        if (bench_answer(f, &a, logits, &got, &err)) fail_msg("%s", err.msg);
        if (kind < 0) {
            plain = got;
            memcpy(plain_looked, looked, sizeof looked);
            kv_session_get_stats(f, &plain_stats);
            assert_true(plain.n > 16 && plain_looked[0] >= 2); /* what a random model says has no end soon */
        } else {
            assert_int_equal(got.n, plain.n);
            assert_memory_equal(got.ids, plain.ids, plain.n * sizeof *plain.ids);
            if (looks) {
                kv_stats stats;
                assert_memory_equal(looked, plain_looked, sizeof looked);
                kv_session_get_stats(f, &stats);
                assert_true(stats.reads.steps == plain_stats.reads.steps);
                assert_true(stats.reads.read == plain_stats.reads.read);
                assert_true(stats.reads.kept == plain_stats.reads.kept);
            }
            model_ids_free(&got);
        }
        model_ids_free(&guess);
        kv_session_free(f);
    }
    model_ids_free(&plain);
    kv_session_free(s);
    model_close(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bench_share__shared_prefills_have_the_bits_of_own_ones),
        cmocka_unit_test(test_bench_share__a_guess_does_not_show_in_the_answer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
