/*
 * Rows in 8 bits (tier=8bit): how far they are from what they were, that scoring reads them as a promotion
 * does, and that a session says what rounding changed. Over little random models; the exact tiers are
 * test_limits.c's.
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
#include "kit.h"
#include "kv/core/state.h"
#include "model/file/quant.h"

static const model_rows_shape shape = {.n_layer = 2, .n_head_kv = 1, .head_dim = 32};

/* Keys whose channel c lies around 8 c, as a bias makes them; values around 0. */
static uint16_t *make_block(void)
{
    uint16_t *block = malloc(model_rows_block_bytes(&shape)), *at = block;
    uint64_t seed = 9;
    assert_non_null(block);
    for (uint32_t lane = 0; lane < model_rows_lanes(&shape); lane++)
        for (int values = 0; values < 2; values++)
            for (uint32_t s = 0; s < MODEL_ROWS_BLOCK; s++)
                for (uint32_t c = 0; c < shape.head_dim; c++)
                    *at++ = quant_f32_to_f16(
                        (float)test_below(&seed, 2001) / 1000 - 1 + (values ? 0 : 8 * (float)c));
    return block;
}

static void test_tier8__rounds_by_half_a_step_of_each_channel_and_row(void **state)
{
    (void)state;
    uint16_t *block = make_block(), *again = malloc(model_rows_block_bytes(&shape));
    uint8_t *packed = malloc(model_rows8_bytes(&shape));
    model_rows8_error error = {0};
    assert_true(model_rows8_pack(&shape, block, packed, &error));
    assert_true(model_rows8_bytes(&shape) * 100 < model_rows_block_bytes(&shape) * 65); /* larger heads: 53 */
    model_rows8_unpack(&shape, packed, again);
    for (size_t i = 0; i < model_rows_block_bytes(&shape) / 2; i++) {
        /* A step is 2 / 255; F16 has its own: up to 1 / 8 at 248. */
        const double x = quant_f16_to_f32(block[i]), off = fabs(x - quant_f16_to_f32(again[i]));
        if (!(off <= 1.01 / 255 + fabs(x) / 1024)) fail_msg("%g became %g", x, quant_f16_to_f32(again[i]));
    }
    const double key = sqrt(error.key / error.key_all), value = sqrt(error.value / error.value_all);
    if (!(key > .001 && key < .006 && value > .001 && value < .006))
        fail_msg("errors of %g and %g where half a step is .002 of a deviation", key, value);
    /* Row by row it is the same, and what is not finite is refused. */
    uint16_t row[32];
    model_rows8_keys(&shape, packed, 1, 77, 1, NULL, row);
    assert_memory_equal(row, again + (2 * MODEL_ROWS_BLOCK + 77) * 32, sizeof row);
    model_rows8_values(&shape, packed, 0, 200, 1, NULL, row);
    assert_memory_equal(row, again + (MODEL_ROWS_BLOCK + 200) * 32, sizeof row);
    const model_rows8_error before = error;
    block[12345] = 0x7c00;
    assert_false(model_rows8_pack(&shape, block, packed, &error));
    assert_memory_equal(&error, &before, sizeof error);
    free(block);
    free(again);
    free(packed);
}

enum { N = 2300, QUESTION = 40 };

static void append(
    kv_session *s, kv_origin origin, uint32_t turn, uint32_t n, uint64_t seed, uint32_t n_vocab)
{
    int32_t ids[N];
    kit_make_ids(ids, n, n_vocab, seed);
    kit_append(s, origin, turn, ids, n, NULL);
}

/* A session whose evicted rows beyond `host` MiB are in 8 bits, or (NULL) as they were. */
static kv_session *run(model *m, const char *host, const char *path)
{
    const char *set[] = {"tier=8bit", host, NULL};
    const kv_options o = {
        .budget = 700, .policy = "streaming-llm", .repair = 60, .set = host ? set : NULL, .row_file = path};
    const uint32_t n_vocab = model_get_info(m)->n_vocab;
    kv_session *s = NULL;
    base_err err = {0};
    if (kv_session_new(&s, m, &o, NULL, &err)) fail_msg("%s", err.msg);
    append(s, KV_ORIGIN_TOOL, 1, N, 3, n_vocab);
    append(s, KV_ORIGIN_USER, 2, QUESTION, 4, n_vocab);
    return s;
}

static uint32_t rows_in_common(const kv_session *a, const kv_session *b)
{
    uint32_t n = 0;
    for (uint32_t w = 0; w < kv_bits_words(a->n); w++)
        n += (uint32_t)__builtin_popcountll(a->lists.lane[0]->bits[w] & b->lists.lane[0]->bits[w]);
    return n;
}

static void test_tier8__a_session_reads_what_it_packed(void **state)
{
    (void)state;
    const tiny_gguf spec = TINY_GGUF_QWEN2;
    model *m = kit_open_tiny(&spec, 2);
    kv_session *exact = run(m, NULL, NULL), *small = run(m, "host=1", NULL);
    kv_stats stats;
    kv_session_get_stats(exact, &stats);
    assert_int_equal(stats.in_8_bits, 0);
    kv_session_get_stats(small, &stats);
    assert_true(stats.in_8_bits >= 4 * MODEL_ROWS_BLOCK);
    assert_int_equal(stats.lost, 0); /* it sufficed */
    assert_true(stats.key_error > 0 && stats.key_error < .02);
    assert_true(stats.value_error > 0 && stats.value_error < .02);
    /*
     * The same packed rows as F16 in a fork: equal masses, so equal plans; and nearly the rows that exact
     * masses choose.
     */
    kv_session *fork = NULL;
    assert_int_equal(kv_session_fork(small, &fork, NULL, NULL), 0);
    assert_int_equal(kv_table_unpack(&fork->table, 0, fork->n, NULL), 0);
    kv_session_get_stats(fork, &stats);
    assert_int_equal(stats.in_8_bits, 0);
    assert_int_equal(kv_session_repair(exact, &(kv_ask){N, N + QUESTION}, NULL, NULL), 0);
    assert_int_equal(kv_session_repair(small, &(kv_ask){N, N + QUESTION}, NULL, NULL), 0);
    assert_int_equal(kv_session_repair(fork, &(kv_ask){N, N + QUESTION}, NULL, NULL), 0);
    assert_true(small->lists.view[0].n_rows > 100);
    assert_memory_equal(
        small->lists.lane[0]->bits, fork->lists.lane[0]->bits, kv_bits_words(small->n) * sizeof(uint64_t));
    const uint32_t common = rows_in_common(exact, small), all = exact->lists.view[0].n_rows;
    if (common * 100 < all * 97) fail_msg("%u of %u rows are those of exact scores", common, all);
    float *a = malloc(model_get_info(m)->n_vocab * sizeof *a),
          *b = malloc(model_get_info(m)->n_vocab * sizeof *b);
    assert_int_equal(kv_session_logits(small, a, NULL, NULL), 0);
    assert_int_equal(kv_session_logits(fork, b, NULL, NULL), 0);
    assert_memory_equal(a, b, model_get_info(m)->n_vocab * sizeof *a);
    free(a);
    free(b);
    kv_session_free(exact);
    kv_session_free(small);
    kv_session_free(fork);
    model_close(m);
}

static void test_tier8__a_resumed_session_has_the_rows_that_it_read(void **state)
{
    (void)state;
    const tiny_gguf spec = TINY_GGUF_QWEN2;
    model *m = kit_open_tiny(&spec, 1);
    char folder[] = "/tmp/kvist-tier8-XXXXXX", path[64];
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/rows", folder);
    kv_session *s = run(m, "host=1", path);
    const size_t n_bytes = kv_row_bytes(&s->table.shape);
    uint16_t *want = malloc(n_bytes), *got = malloc(n_bytes);
    uint32_t n_exact = 0;
    kv_stats stats;
    kv_session_get_stats(s, &stats);
    assert_true(stats.in_8_bits > 0);
    assert_int_equal(kv_session_save(s, NULL), 0);
    /* Writing over a packed block's slots, as after a rewind, keeps the rows before them. */
    kv_session *cut = NULL;
    assert_int_equal(kv_session_fork(s, &cut, NULL, NULL), 0);
    assert_int_equal(kv_session_truncate(cut, 300, NULL), 0);
    append(cut, KV_ORIGIN_USER, 3, 20, 5, model_get_info(m)->n_vocab);
    kv_table_get_row(&s->table, 280, want);
    kv_table_get_row(&cut->table, 280, got);
    assert_memory_equal(want, got, n_bytes);
    const char *set[] = {"tier=8bit", NULL};
    const kv_options o = {.budget = 700, .policy = "streaming-llm", .set = set, .row_file = path};
    kv_session *again = NULL;
    base_err err = {0};
    kv_session *held = s;
    uint16_t *rows = malloc(n_bytes * held->n);
    for (uint32_t t = 0; t < held->n; t++) kv_table_get_row(&held->table, t, rows + t * n_bytes / 2);
    const uint32_t n = held->n;
    kv_session_free(held);
    if (kv_session_resume(&again, m, &o, NULL, &err)) fail_msg("%s", err.msg);
    assert_int_equal(again->n, n);
    for (uint32_t t = 0; t < n; t++) {
        kv_table_get_row(&again->table, t, got);
        n_exact += !memcmp(rows + t * n_bytes / 2, got, n_bytes);
    }
    assert_int_equal(n_exact, n);
    kv_session_free(again);
    kv_session_free(cut);
    free(rows);
    free(want);
    free(got);
    model_close(m);
    assert_int_equal(base_fs_remove(folder, NULL), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tier8__rounds_by_half_a_step_of_each_channel_and_row),
        cmocka_unit_test(test_tier8__a_session_reads_what_it_packed),
        cmocka_unit_test(test_tier8__a_resumed_session_has_the_rows_that_it_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
