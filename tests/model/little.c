/* See little.h. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>
#include <cmocka.h>

#include "little.h"
#include "model/file/gguf.h"

model *little_open_model(const char *path, int n_threads)
{
    model_options options = {.n_threads = n_threads, .backend = "cpu"};
    base_err err = {0};
    model *m = NULL;
    if (model_open(&m, path, &options, &err)) fail_msg("%s", err.msg);
    return m;
}

little little_open(const tiny_gguf *spec)
{
    little l = {.spec = spec, .path = tiny_gguf_temp(spec)};
    uint64_t state = 7;
    assert_non_null(l.path);
    l.m = little_open_model(l.path, 2);
    assert_int_equal(gguf_open(&l.file, l.path, NULL), 0);
    l.shape = model_get_rows_shape(l.m);
    for (uint32_t i = 0; i < N; i++) {
        l.ids[i] = (int32_t)((tiny_random(&state) + 1) / 2 * (V - 1));
        l.phases[i] = i;
    }
    return l;
}

void little_close(little *l)
{
    model_close(l->m);
    gguf_close(l->file);
    unlink(l->path);
    free(l->path);
}

model_dense *little_dense(const model_rows_shape *shape, uint32_t n)
{
    model_dense *d;
    assert_int_equal(model_dense_new(&d, shape, n, NULL), 0);
    return d;
}

double little_difference(const float *ours, const float *truth, size_t n)
{
    double d = 0, size = 0;
    for (size_t i = 0; i < n; i++) {
        d += (ours[i] - (double)truth[i]) * (ours[i] - (double)truth[i]);
        size += (double)truth[i] * truth[i];
    }
    return sqrt(d / size);
}

void little_compute(
    model *m, const model_rows_shape *shape, const int32_t *ids, uint32_t n, uint32_t step, float *logits)
{
    little_compute_by(m, shape, ids, n, &step, 1, logits);
}

void little_compute_by(model *m, const model_rows_shape *shape, const int32_t *ids, uint32_t n,
    const uint32_t *sizes, size_t n_sizes, float *logits)
{
    uint32_t n_vocab = model_get_info(m)->n_vocab;
    model_dense *d = little_dense(shape, n);
    base_err err = {0};
    for (uint32_t at = 0, i = 0, now; at < n; at += now, i++) {
        now = n - at < sizes[i % n_sizes] ? n - at : sizes[i % n_sizes];
        if (model_dense_compute(d, m, ids + at, now, now, logits + (size_t)at * n_vocab, NULL, &err))
            fail_msg("%s", err.msg);
    }
    model_dense_free(d);
}
