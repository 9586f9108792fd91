/*
 * A little model, open, with its file for the oracle, and the few lines that every test of the forward pass
 * begins with. Failures are cmocka's: include its headers first.
 */
#ifndef KVIST_TESTS_LITTLE_H
#define KVIST_TESTS_LITTLE_H

#include "model/forward/dense.h"
#include "model/file/gguf.h"
#include "model/forward/model.h"
#include "tiny_gguf.h"

enum { V = TINY_GGUF_VOCAB, N = 600 /* more than two tiles of attention and one micro-batch */ };

typedef struct little {
    const tiny_gguf *spec;
    char *path;
    model *m;
    gguf_file *file;
    model_rows_shape shape;
    int32_t ids[N];
    uint32_t phases[N];
} little;

little little_open(const tiny_gguf *spec);
void little_close(little *l);
model *little_open_model(const char *path, int n_threads);
model_dense *little_dense(const model_rows_shape *shape, uint32_t n);

/* Logits of all n tokens, computed in batches of `step`. */
void little_compute(
    model *m, const model_rows_shape *shape, const int32_t *ids, uint32_t n, uint32_t step, float *logits);

/* The same in batches of these sizes, by turns. */
void little_compute_by(model *m, const model_rows_shape *shape, const int32_t *ids, uint32_t n,
    const uint32_t *sizes, size_t n_sizes, float *logits);

/* Size of the difference as a share of the size. NaN is not small. */
double little_difference(const float *ours, const float *truth, size_t n);

/*
 * Products use 8-bit activations: a few percent of the numbers' size, while any mistake is as large as they
 * are.
 */
static const double little_tolerance = 0.04;

#define assert_near(ours, truth, n)                                                                          \
    do {                                                                                                     \
        double d_ = little_difference(ours, truth, n);                                                       \
        if (!(d_ <= little_tolerance)) fail_msg("%s is %.4f away from %s", #ours, d_, #truth);               \
    } while (0)

#define assert_far(ours, truth, n)                                                                           \
    do {                                                                                                     \
        double d_ = little_difference(ours, truth, n);                                                       \
        if (!(d_ > 2 * little_tolerance)) fail_msg("%s is only %.4f away from %s", #ours, d_, #truth);       \
    } while (0)

#endif
