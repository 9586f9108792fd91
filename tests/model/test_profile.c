/*
 * A profile watches and changes nothing: same bits with and without one, every operation of a decode counted
 * once a layer, and products that read exactly the weights that a token reads.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/mem.h"
#include "little.h"
#include "model/forward/dense.h"
#include "model/forward/profile.h"

static void compute(little *l, float *logits)
{
    model_dense *d = little_dense(&l->shape, 8);
    assert_int_equal(model_dense_compute(d, l->m, l->ids, 7, 0, NULL, NULL, NULL), 0);
    assert_int_equal(model_dense_compute(d, l->m, l->ids + 7, 1, 1, logits, NULL, NULL), 0);
    model_dense_free(d);
}

static void test_profile__changes_no_bit_and_counts_what_is_read(void **state)
{
    (void)state;
    tiny_gguf spec = TINY_GGUF_QWEN2;
    little l = little_open(&spec);
    const model_info *info = model_get_info(l.m);
    float *plain = base_xcalloc(2 * (size_t)info->n_vocab, sizeof *plain), *watched = plain + info->n_vocab;
    model_profile *p;
    uint32_t n_rows, n_calls = 0;
    double bytes = 0, macs = 0;

    compute(&l, plain);
    assert_int_equal(model_profile_start(&p, l.m, NULL), 0);
    compute(&l, watched);
    assert_memory_equal(plain, watched, info->n_vocab * sizeof *plain);

    const model_profile_row *rows = model_profile_rows(p, &n_rows);
    for (uint32_t i = 0; i < n_rows; i++) {
        if (strcmp(rows[i].op, "attention") == 0) assert_int_equal(rows[i].n_calls, 2 * info->n_layer);
        if (strcmp(rows[i].op, "matmul") != 0) continue;
        n_calls += (uint32_t)rows[i].n_calls;
        bytes += rows[i].bytes;
        macs += rows[i].macs;
    }
    /*
     * Four products a layer and pass; the head once. F32 weights are read as two planes of bytes and a scale
     * per 32.
     */
    double head = (double)spec.n_embd * info->n_vocab;
    double layer = (double)spec.n_embd * (2 * spec.n_embd + 2 * spec.n_embd / 2 + 3 * spec.n_ff);
    assert_int_equal(n_calls, 2 * 4 * info->n_layer + 1);
    assert_true(macs == 8 * layer * info->n_layer + head);
    assert_true(
        bytes > 2 * (2 * layer * info->n_layer + head) && bytes < 2 * (double)info->weight_bytes_per_token);
    model_profile_stop(p);
    compute(&l, watched);
    assert_memory_equal(plain, watched, info->n_vocab * sizeof *plain);
    free(plain);
    little_close(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_profile__changes_no_bit_and_counts_what_is_read)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
