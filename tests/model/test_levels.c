/*
 * Whole models at every instruction-set level of this machine, the better ones masked: the same bits of
 * logits, and rows that one level computed continued by another. Little random models always; SmolLM2 (Q4_1,
 * Q8_0, Q5_0 ...) where it is at hand.
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
#include "model/forward/dense.h"
#include "model/forward/model.h"
#include "model/ops/ops.h"
#include "tiny_gguf.h"

static model *open_level(const char *path, const char *level)
{
    char backend[32];
    base_err err = {0};
    model *m = NULL;
    snprintf(backend, sizeof backend, "cpu:%s", level);
    if (model_open(&m, path, &(model_options){.n_threads = 2, .backend = backend}, &err))
        fail_msg("%s", err.msg);
    return m;
}

static void compute(model_dense *rows, model *m, const int32_t *ids, uint32_t n, float *logits)
{
    base_err err = {0};
    if (model_dense_compute(rows, m, ids, n, n, logits, NULL, &err)) fail_msg("%s", err.msg);
}

/*
 * n tokens as one batch, then one token; at every level the logits of the first level. Then the first half of
 * the tokens by each level, the rest on its rows by the next.
 */
static void check_levels(const char *path, uint32_t n)
{
    float *want = NULL, *got = NULL, *tail = NULL;
    int32_t ids[64];
    uint32_t n_vocab = 0, half = n / 2;
    unsigned mask;
    model *before = NULL;
    const char *name, *name_before = NULL;
    assert_in_range(n, 4, 64);
    for (size_t level = 0; (name = cpu_ops_level(level, &mask)); level++) {
        model *m = open_level(path, name);
        model_rows_shape shape = model_get_rows_shape(m);
        model_dense *rows = NULL;
        if (level == 0) {
            n_vocab = model_get_info(m)->n_vocab;
            want = base_xcalloc((size_t)n * n_vocab, sizeof *want);
            got = base_xcalloc((size_t)n * n_vocab, sizeof *got);
            tail = base_xcalloc((size_t)n * n_vocab, sizeof *tail);
            for (uint32_t i = 0; i < n; i++) ids[i] = (int32_t)(i * 2654435761u % (n_vocab - 40));
        }
        float *logits = level == 0 ? want : got;
        assert_int_equal(model_dense_new(&rows, &shape, n, NULL), 0);
        compute(rows, m, ids, n - 1, logits);
        compute(rows, m, ids + n - 1, 1, logits + (size_t)(n - 1) * n_vocab);
        model_dense_free(rows);
        if (level && memcmp(want, got, (size_t)n * n_vocab * sizeof *want) != 0)
            fail_msg("%s and %s give other logits", model_get_info(before)->isa, model_get_info(m)->isa);
        if (level) {
            assert_int_equal(model_dense_new(&rows, &shape, n, NULL), 0);
            compute(rows, before, ids, half, tail);
            compute(rows, m, ids + half, n - half, tail + (size_t)half * n_vocab);
            model_dense_free(rows);
            if (memcmp(want, tail, (size_t)n * n_vocab * sizeof *want) != 0)
                fail_msg("%s does not continue the rows of %s", name, name_before);
            assert_int_equal(model_get_info(before)->kernel_version, model_get_info(m)->kernel_version);
        }
        if (before) model_close(before);
        before = m;
        name_before = name;
    }
    model_close(before);
    free(want);
    free(got);
    free(tail);
}

static void test_levels__give_a_little_models_bits(void **state)
{
    const tiny_gguf specs[] = {TINY_GGUF_QWEN2, TINY_GGUF_LLAMA, TINY_GGUF_GPT_OSS, TINY_GGUF_GEMMA4};
    for (size_t i = 0; i < sizeof specs / sizeof *specs; i++) {
        char *path = tiny_gguf_temp(&specs[i]);
        assert_non_null(path);
        check_levels(path, 50);
        unlink(path);
        free(path);
    }
}

static void test_levels__give_smollm2s_bits(void **state)
{
    char *path = tiny_gguf_small_model();
    bool there = base_fs_exists(path);
    if (there)
        check_levels(path, 11); /* more columns than a group: panels, too */
    else
        fprintf(stderr, "needs %s\n", path);
    free(path);
    if (!there) skip();
}

static void test_levels__an_unknown_one_is_refused_with_those_there(void **state)
{
    const tiny_gguf spec = TINY_GGUF_QWEN2;
    char *path = tiny_gguf_temp(&spec);
    base_err err = {0};
    model *m = NULL;
    assert_non_null(path);
    assert_int_equal(
        model_open(&m, path, &(model_options){.n_threads = 1, .backend = "cpu:mmx"}, &err), BASE_E_USAGE);
    assert_non_null(strstr(err.msg, "mmx"));
    assert_non_null(strstr(err.msg, "plain"));
    unlink(path);
    free(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_levels__give_a_little_models_bits),
        cmocka_unit_test(test_levels__give_smollm2s_bits),
        cmocka_unit_test(test_levels__an_unknown_one_is_refused_with_those_there),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
