/*
 * The cache over real forward passes: little random models, and SmolLM2 where it is installed. The same
 * properties as test_session.c, where the arithmetic is real: equal bits are equal bits.
 */
#include <math.h>
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
#include "kv/calibrate/calibrate.h"
#include "kv/repair/heads.h"
#include "kv/rows/bits.h"

static kv_session *open_session(model *m, const kv_options *o, const kv_observer *observer)
{
    kv_session *s = NULL;
    base_err err = {0};
    if (kv_session_new(&s, m, o, observer, &err)) fail_msg("%s", err.msg);
    return s;
}

/* A turn with evictions, a repair and a tail; a hash of plans, live lists and logits. */
static uint64_t run_turns(model *m, const char *policy, uint32_t budget)
{
    const uint32_t n_vocab = model_get_info(m)->n_vocab;
    uint64_t hash = 0;
    const kv_observer observer = {.user = &hash, .plan = kit_fold_plan};
    kv_session *s =
        open_session(m, &(kv_options){.budget = budget, .policy = policy, .repair = -1}, &observer);
    float *logits = malloc(n_vocab * sizeof *logits);
    int32_t ids[1500];
    kit_make_ids(ids, 1500, n_vocab, 5);
    kit_append(s, KV_ORIGIN_SYSTEM, 0, ids, 30, NULL);
    kit_append(s, KV_ORIGIN_USER, 1, ids + 30, 20, NULL);
    kit_append(s, KV_ORIGIN_TOOL, 1, ids + 50, 1000, NULL);
    kit_append(s, KV_ORIGIN_USER, 2, ids + 1050, 50, NULL);
    base_err err = {0};
    if (kv_session_repair(s, &(kv_ask){1050, 1100}, NULL, &err)) fail_msg("%s", err.msg);
    kit_append(s, KV_ORIGIN_TOOL, 2, ids + 1100, 400, logits);
    hash = base_hash64(logits, n_vocab * sizeof *logits, hash);
    kv_stats stats;
    kv_session_get_stats(s, &stats);
    if (budget) assert_true(stats.active_max <= budget);
    free(logits);
    kv_session_free(s);
    return hash;
}

static void test_model__plans_and_bits_do_not_depend_on_threads_or_runs(void **state)
{
    static const char *const policies[] = {"kvist", "snapkv", "streaming-llm"};
    const tiny_gguf specs[] = {TINY_GGUF_QWEN2, TINY_GGUF_LLAMA, TINY_GGUF_GEMMA3};
    for (size_t k = 0; k < 3; k++) {
        model *one = kit_open_tiny(&specs[k], 1), *three = kit_open_tiny(&specs[k], 3);
        for (size_t p = 0; p < 3; p++)
            assert_true(run_turns(one, policies[p], 700) == run_turns(three, policies[p], 700));
        const uint64_t first = run_turns(three, "kvist", 700);
        model_close(one);
        model_close(three);
        model *seven = kit_open_tiny(&specs[k], 7); /* opened anew, elsewhere in memory */
        for (int again = 0; again < 2; again++) assert_true(run_turns(seven, "kvist", 700) == first);
        model_close(seven);
    }
}

/*
 * Compares two sessions over the same ids: b evicts all and brings it back, and has a budget that never
 * binds.
 */
static void check_exactness(model *m, uint32_t n)
{
    static const char *const alone[] = {"visit=0", NULL}; /* who is out would be read all the same */
    const uint32_t n_vocab = model_get_info(m)->n_vocab;
    float *want = malloc(n_vocab * sizeof *want), *got = malloc(n_vocab * sizeof *got),
          *holed = malloc(n_vocab * sizeof *holed);
    int32_t *ids = malloc(n * sizeof *ids);
    kit_make_ids(ids, n, n_vocab, 7);
    kv_session *a = open_session(m, &(kv_options){.policy = "full"}, NULL),
               *b = open_session(m, &(kv_options){.budget = n + 600, .repair = -1, .set = alone}, NULL),
               *c = NULL;
    const uint32_t half = n / 2;
    kit_append(a, KV_ORIGIN_TOOL, 1, ids, half, NULL);
    kit_append(b, KV_ORIGIN_TOOL, 1, ids, half, NULL);
    assert_int_equal(kv_session_manual(b, KV_MANUAL_EVICT, 0, half, NULL), 0);
    assert_int_equal(kv_session_fork(b, &c, NULL, NULL), 0);
    assert_int_equal(kv_session_undo_plan(b, NULL), 0);
    kit_append(a, KV_ORIGIN_USER, 2, ids + half, n - half, want);
    kit_append(b, KV_ORIGIN_USER, 2, ids + half, 3, NULL); /* other batches, the same bits */
    kit_append(b, KV_ORIGIN_USER, 2, ids + half + 3, n - half - 3, got);
    kit_append(c, KV_ORIGIN_USER, 2, ids + half, n - half, holed);
    assert_memory_equal(want, got, n_vocab * sizeof *want);
    assert_memory_not_equal(want, holed, n_vocab * sizeof *want);
    for (uint32_t i = 0; i < n_vocab; i++) assert_true(holed[i] == holed[i]);
    assert_int_equal(kv_session_truncate(a, n - 1, NULL), 0);
    kit_append(a, KV_ORIGIN_USER, 2, ids + n - 1, 1, got);
    assert_memory_equal(want, got, n_vocab * sizeof *want);
    /* Computed again into a row that nobody sees. */
    assert_int_equal(kv_session_truncate(b, half + 5, NULL), 0);
    assert_int_equal(kv_session_truncate(a, half + 4, NULL), 0);
    kit_append(a, KV_ORIGIN_USER, 2, ids + half + 4, 1, want);
    assert_int_equal(kv_session_logits(b, got, NULL, NULL), 0);
    assert_memory_equal(want, got, n_vocab * sizeof *want);
    kv_session_free(a);
    kv_session_free(b);
    kv_session_free(c);
    free(want);
    free(got);
    free(holed);
    free(ids);
}

static void test_model__exact_on_little_models(void **state)
{
    const tiny_gguf specs[] = {TINY_GGUF_QWEN2, TINY_GGUF_LLAMA, TINY_GGUF_GEMMA3};
    for (size_t k = 0; k < 3; k++) {
        model *m = kit_open_tiny(&specs[k], 0);
        check_exactness(m, 1200);
        model_close(m);
    }
}

static void check_resume(tiny_gguf spec)
{
    model *m = kit_open_tiny(&spec, 0);
    const uint32_t n_vocab = model_get_info(m)->n_vocab;
    char folder[] = "/tmp/kvist-test-XXXXXX", path[64];
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/rows", folder);
    const kv_options o = {.budget = 700, .repair = -1, .row_file = path};
    int32_t ids[1200];
    float want[TINY_GGUF_VOCAB], got[TINY_GGUF_VOCAB];
    kit_make_ids(ids, 1200, n_vocab, 9);
    kv_session *a = open_session(m, &o, NULL), *f = NULL, *r = NULL;
    kit_append(a, KV_ORIGIN_USER, 1, ids, 40, NULL);
    kit_append(a, KV_ORIGIN_TOOL, 1, ids + 40, 960, want);
    base_err err = {0};
    if (kv_session_save(a, &err)) fail_msg("%s", err.msg);
    assert_int_equal(kv_session_fork(a, &f, NULL, NULL), 0);
    kv_session_free(a);
    if (kv_session_resume(&r, m, &o, NULL, &err)) fail_msg("%s", err.msg);
    assert_int_equal(kv_session_logits(r, got, NULL, NULL), 0);
    assert_memory_equal(want, got, sizeof want);
    kit_append(f, KV_ORIGIN_TOOL, 2, ids + 1000, 200, want);
    kit_append(r, KV_ORIGIN_TOOL, 2, ids + 1000, 200, got);
    assert_memory_equal(want, got, sizeof want);
    kv_session_free(f);
    kv_session_free(r);
    /* Another model of the same shape is another model. */
    tiny_gguf other = spec;
    other.seed++;
    model *stranger = kit_open_tiny(&other, 0);
    assert_int_equal(kv_session_resume(&r, stranger, &o, NULL, &err), BASE_E_FORMAT);
    model_close(stranger);
    model_close(m);
    assert_int_equal(base_fs_remove(folder, NULL), 0);
}

static void test_model__a_saved_session_goes_on_with_the_same_bits(void **state)
{
    check_resume(TINY_GGUF_QWEN2);
    check_resume(TINY_GGUF_GEMMA3);
}

static void test_model__calibration_writes_heads_that_a_session_reads(void **state)
{
    const tiny_gguf spec = TINY_GGUF_QWEN2;
    model *m = kit_open_tiny(&spec, 0);
    char folder[] = "/tmp/kvist-test-XXXXXX", path[64];
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/rows/heads", folder);
    base_err err = {0};
    const atomic_bool cancel = true;
    assert_int_equal(kv_heads_calibrate(m, 3, path, NULL, NULL, &cancel, &err), BASE_E_CANCELLED);
    assert_false(base_fs_exists(path));
    if (kv_heads_calibrate(m, 3, path, NULL, NULL, NULL, &err)) fail_msg("%s", err.msg);
    base_buf file = {0};
    assert_int_equal(base_fs_read(path, 1 << 16, &file, NULL), 0);
    assert_non_null(strstr(file.data, model_get_info(m)->hash));
    uint32_t n_lines = 0;
    for (const char *at = file.data; (at = strchr(at, '\n')); at++) n_lines++;
    assert_int_equal(n_lines, 5); /* whose they are, the three best, and all in their order */
    base_buf_free(&file);
    /* Scored with three of eight heads a repair still plans the same for any batch shape and thread count. */
    int32_t ids[900];
    kit_make_ids(ids, 900, model_get_info(m)->n_vocab, 3);
    uint64_t hashes[2][2] = {{0}};
    for (int k = 0; k < 4; k++) {
        const kv_observer observer = {.user = &hashes[k / 2][k % 2], .plan = kit_fold_plan};
        kv_session *s = open_session(
            m, &(kv_options){.budget = 700, .repair = 40, .heads_file = k / 2 ? path : NULL}, &observer);
        kit_append(s, KV_ORIGIN_TOOL, 1, ids, 850, NULL);
        kit_append(s, KV_ORIGIN_USER, 2, ids + 850, 50, NULL);
        assert_int_equal(kv_session_repair(s, &(kv_ask){850, 900}, NULL, NULL), 0);
        kv_session_free(s);
    }
    assert_true(hashes[0][0] == hashes[0][1] && hashes[1][0] == hashes[1][1]);
    assert_true(hashes[0][0] != hashes[1][0]); /* other heads, other rows */
    model_close(m);
    assert_int_equal(base_fs_remove(folder, NULL), 0);
}

/* Heads that read a window alone are none that a repair listens to, however many are asked for. */
static void test_model__calibration_leaves_out_layers_with_a_window(void **state)
{
    const tiny_gguf spec = TINY_GGUF_GEMMA3;
    model *m = kit_open_tiny(&spec, 0);
    const model_info *info = model_get_info(m);
    char folder[] = "/tmp/kvist-test-XXXXXX", path[64];
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/heads", folder);
    base_err err = {0};
    uint8_t *flags = NULL;
    uint16_t *order = NULL;
    base_buf file = {0};
    uint32_t n_kept = 0, n_whole = 0;
    if (kv_heads_calibrate(m, info->n_layer * info->n_head, path, NULL, NULL, NULL, &err))
        fail_msg("%s", err.msg);
    assert_int_equal(base_fs_read(path, 1 << 16, &file, NULL), 0);
    assert_true(kv_heads_parse(file.data, file.len, info->hash, info->n_layer, info->n_head, &flags, &order));
    for (uint32_t layer = 0; layer < info->n_layer; layer++)
        for (uint32_t head = 0; head < info->n_head; head++) {
            n_whole += !model_window(m, layer);
            n_kept += flags[layer * info->n_head + head];
            assert_int_equal(flags[layer * info->n_head + head], !model_window(m, layer));
        }
    assert_true(n_whole > 0 && n_kept == n_whole && n_whole < info->n_layer * info->n_head);
    for (uint32_t i = 0; i < n_whole; i++) assert_false(model_window(m, order[i] / info->n_head));
    free(flags);
    free(order);
    base_buf_free(&file);
    model_close(m);
    assert_int_equal(base_fs_remove(folder, NULL), 0);
}

/* A budget bounds the layers that read everything; those with a window have all of their rows, evict what it may. */
static void test_model__a_budget_leaves_layers_with_a_window_alone(void **state)
{
    const tiny_gguf spec = TINY_GGUF_GEMMA3;
    model *m = kit_open_tiny(&spec, 0);
    const model_rows_shape shape = model_get_rows_shape(m);
    int32_t ids[1300];
    uint64_t bits[1300 / 64 + 1] = {0};
    kv_stats stats;
    kit_make_ids(ids, 1300, model_get_info(m)->n_vocab, 9);
    kv_session *s = open_session(m, &(kv_options){.budget = 700, .repair = 40}, NULL);
    kit_append(s, KV_ORIGIN_TOOL, 1, ids, 1250, NULL);
    kit_append(s, KV_ORIGIN_USER, 2, ids + 1250, 50, NULL);
    assert_int_equal(kv_session_repair(s, &(kv_ask){1250, 1300}, NULL, NULL), 0);
    kv_session_get_stats(s, &stats);
    uint32_t n_whole = 0;
    for (uint32_t lane = 0; lane < model_rows_lanes(&shape); lane++) {
        kv_session_lane_bits(s, lane, bits);
        const uint32_t n = kv_bits_count_range(bits, 0, 1300);
        assert_int_equal(kv_session_window(s, lane), model_window(m, lane / shape.n_head_kv));
        assert_true(kv_session_window(s, lane) ? n == 1300 : n <= 700);
        n_whole += !kv_session_window(s, lane);
    }
    assert_true(n_whole > 0 && n_whole < model_rows_lanes(&shape));
    assert_int_equal(stats.n_lanes, n_whole);
    assert_true(stats.active <= 700 && stats.active + stats.host == 1300);
    kv_session_free(s);
    model_close(m);
}

/*
 * Logits of which only some were computed are for the one who asked: whoever asks the session gets all of
 * them.
 */
/* --- pruned prefill ------------------------------------------------------------------------------------- */

/* Little models with enough layers above a cut for what lies there meanwhile. */
static model *open_deep(uint32_t which, int n_threads)
{
    tiny_gguf specs[] = {TINY_GGUF_QWEN2, TINY_GGUF_LLAMA, TINY_GGUF_GEMMA3};
    if (specs[which].n_layer < 6) specs[which].n_layer = 6;
    return kit_open_tiny(&specs[which], n_threads);
}

/*
 * Excerpts in front of a request, a result behind it, a later request with its repair; how many tokens stayed
 * below.
 */
static kv_session *run_pruned(
    model *m, const char *policy, const char *const *set, uint64_t *hash, float *logits, uint32_t *ret_left)
{
    const kv_observer observer = {.user = hash, .plan = kit_fold_plan};
    kv_session *s =
        open_session(m, &(kv_options){.policy = policy, .repair = 30, .set = set}, hash ? &observer : NULL);
    int32_t ids[1500];
    kv_stats stats;
    kit_make_ids(ids, 1500, model_get_info(m)->n_vocab, 6);
    kit_append(s, KV_ORIGIN_SYSTEM, 0, ids, 30, NULL);
    kit_append(s, KV_ORIGIN_CONTEXT, 1, ids + 30, 700, NULL);
    kit_append(s, KV_ORIGIN_USER, 1, ids + 730, 40, NULL);
    kit_append(s, KV_ORIGIN_TOOL, 1, ids + 770, 300, NULL);
    kv_session_get_stats(s, &stats);
    if (ret_left) *ret_left = stats.deferred_tokens;
    kit_append(s, KV_ORIGIN_USER, 2, ids + 1070, 50, NULL);
    base_err err = {0};
    if (kv_session_repair(s, &(kv_ask){1070, 1120}, NULL, &err)) fail_msg("%s", err.msg);
    kit_append(s, KV_ORIGIN_SCAFFOLD, 2, ids + 1120, 5, logits);
    return s;
}

static void test_model__pruned_prefill_does_not_depend_on_threads(void **state)
{
    static const char *const ours[] = {"prune=heads", "pivot=2", "bulk=200", NULL}, *const paper[] = {
                                                                                        "pivot=2", "bulk=200",
                                                                                        NULL};
    for (uint32_t k = 0; k < 3; k++)
        for (int form = 0; form < 2; form++) {
            float a[TINY_GGUF_VOCAB], b[TINY_GGUF_VOCAB];
            uint64_t x = 0, y = 0;
            uint32_t left = 0;
            model *one = open_deep(k, 1), *three = open_deep(k, 3);
            kv_session *s = run_pruned(one, form ? "structkv" : "kvist", form ? paper : ours, &x, a, &left);
            kv_session *t = run_pruned(three, form ? "structkv" : "kvist", form ? paper : ours, &y, b, NULL);
            assert_true(left > 600);
            assert_true(x == y);
            assert_memory_equal(a, b, sizeof a);
            kv_session_free(s);
            kv_session_free(t);
            model_close(one);
            model_close(three);
        }
}

static void test_model__a_cut_that_keeps_all_gives_the_bits_of_full(void **state)
{
    static const char *const all[] = {"prune=centrality", "pivot=2", "bulk=200", "keep=1", NULL};
    for (uint32_t k = 0; k < 3; k++) {
        float a[TINY_GGUF_VOCAB], b[TINY_GGUF_VOCAB];
        uint32_t left = 1;
        model *m = open_deep(k, 2);
        kv_session *s = run_pruned(m, "kvist", all, NULL, a, &left),
                   *full = run_pruned(m, "full", NULL, NULL, b, NULL);
        assert_int_equal(left, 0);
        assert_memory_equal(a, b, sizeof a);
        kv_session_free(s);
        kv_session_free(full);
        model_close(m);
    }
}

/* Rows that are brought back one by one, in threes, or all at once: the same logits. */
static void test_model__deferred_rows_do_not_depend_on_how_many_are_computed_together(void **state)
{
    static const char *const ours[] = {"prune=heads", "pivot=2", "bulk=200", NULL};
    for (uint32_t k = 0; k < 3; k++) {
        static const uint32_t steps[] = {1, 3, 40};
        float first[TINY_GGUF_VOCAB], logits[TINY_GGUF_VOCAB];
        model *m = open_deep(k, 1);
        kv_session *s = run_pruned(m, "kvist", ours, NULL, logits, NULL);
        int32_t ids[3] = {5, 6, 7};
        for (size_t i = 0; i < 3; i++) {
            kv_session *f = NULL;
            assert_int_equal(kv_session_fork(s, &f, NULL, NULL), 0);
            for (uint32_t t = 100; t < 220; t += steps[i])
                assert_int_equal(kv_session_manual(f, KV_MANUAL_PROMOTE, t, t + steps[i], NULL), 0);
            kit_append(f, KV_ORIGIN_SCAFFOLD, 2, ids, 3, i ? logits : first);
            if (i) assert_memory_equal(logits, first, sizeof first);
            kv_session_free(f);
        }
        kv_session_free(s);
        model_close(m);
    }
}

static void test_model__a_cut_without_room_for_states_is_none(void **state)
{
    static const char *const ours[] = {"prune=heads", "pivot=.5", "bulk=200", NULL};
    const tiny_gguf spec = TINY_GGUF_QWEN2; /* two layers: half a state fits into one */
    float a[TINY_GGUF_VOCAB];
    uint32_t left = 1;
    model *m = kit_open_tiny(&spec, 1);
    kv_session *s = run_pruned(m, "kvist", ours, NULL, a, &left);
    assert_int_equal(left, 0);
    kv_session_free(s);
    model_close(m);
}

static void test_model__keeps_no_part_of_logits(void **state)
{
    model *m = kit_open_tiny(&TINY_GGUF_QWEN2, 2);
    enum { N_VOCAB = TINY_GGUF_VOCAB };
    const uint64_t only[(N_VOCAB + 63) / 64] = {1ull << 7};
    int32_t ids[40];
    float all[N_VOCAB], some[N_VOCAB], asked[N_VOCAB];
    kit_make_ids(ids, 40, N_VOCAB, 9);
    for (int drafted = 0; drafted < 2; drafted++) {
        kv_session *s = open_session(m, &(kv_options){0}, NULL);
        kv_segment g = {.origin = KV_ORIGIN_ANSWER, .turn = 1};
        kit_append(s, KV_ORIGIN_USER, 1, ids, 38, NULL);
        kit_append(s, KV_ORIGIN_ANSWER, 1, ids + 38, 2, all);
        assert_int_equal(kv_session_truncate(s, 38, NULL), 0);
        g.only = only;
        if (drafted) {
            assert_int_equal(kv_session_draft(s, &g, ids + 38, 2, 1, some, NULL, NULL), 0);
            for (int i = 0; i < 2; i++) assert_int_equal(kv_session_accept(s, &g, NULL, NULL, NULL), 0);
        } else {
            assert_int_equal(kv_session_append(s, &g, ids + 38, 2, some, NULL, NULL), 0);
        }
        assert_memory_equal(&some[7], &all[7], sizeof(float));
        assert_true(isinf(some[6]) && isinf(some[N_VOCAB - 1]));
        assert_int_equal(kv_session_logits(s, asked, NULL, NULL), 0);
        assert_memory_equal(asked, all, sizeof all);
        kv_session_free(s);
    }
    model_close(m);
}

static void test_model__exact_on_smollm2(void **state)
{
    char *path = tiny_gguf_small_model();
    if (!base_fs_exists(path)) {
        print_message("%s is not there; kvist model get fetches it\n", path);
        free(path);
        skip();
    }
    model *m = NULL;
    base_err err = {0};
    if (model_open(&m, path, &(model_options){.backend = "cpu"}, &err)) fail_msg("%s", err.msg);
    free(path);
    check_exactness(m, 300);
    assert_true(run_turns(m, "kvist", 700) == run_turns(m, "kvist", 700));
    model_close(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_model__exact_on_little_models),
        cmocka_unit_test(test_model__plans_and_bits_do_not_depend_on_threads_or_runs),
        cmocka_unit_test(test_model__a_saved_session_goes_on_with_the_same_bits),
        cmocka_unit_test(test_model__calibration_writes_heads_that_a_session_reads),
        cmocka_unit_test(test_model__calibration_leaves_out_layers_with_a_window),
        cmocka_unit_test(test_model__a_budget_leaves_layers_with_a_window_alone),
        cmocka_unit_test(test_model__pruned_prefill_does_not_depend_on_threads),
        cmocka_unit_test(test_model__a_cut_that_keeps_all_gives_the_bits_of_full),
        cmocka_unit_test(test_model__deferred_rows_do_not_depend_on_how_many_are_computed_together),
        cmocka_unit_test(test_model__a_cut_without_room_for_states_is_none),
        cmocka_unit_test(test_model__keeps_no_part_of_logits),
        cmocka_unit_test(test_model__exact_on_smollm2),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
