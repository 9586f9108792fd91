/* What the tests of the CUDA backend on the emulated device share: one model file, open on the CPU and on the device. */
#ifndef KVIST_TESTS_CUDA_EMU_DEVICE_KIT_H
#define KVIST_TESTS_CUDA_EMU_DEVICE_KIT_H

#include "model/forward/dense.h"
#include "model/forward/model.h"
#include "tiny_gguf.h"

enum {
    N_VOCAB = TINY_GGUF_VOCAB,
    N_TOKENS = 300, /* that a cache has room for */
    N_SESSION = 900,
    MACHINE_MEMORY = 1 << 30, /* of the device, where a test sets no other */
};

typedef struct pair {
    char *path;
    model *cpu, *cuda;
    int32_t ids[N_SESSION]; /* tokens to compute, the same in every pair */
} pair;

/* Each fails the test that it stands in. */
model *open_on(const char *path, const char *backend);
pair open_pair(const tiny_gguf *spec);
void close_pair(pair *p);
model_dense *dense(model *m); /* a cache of N_TOKENS; model_dense_free */
/* n more tokens; [N_VOCAB] logits of the last. */
void compute(model_dense *d, model *m, const int32_t *ids, uint32_t n, float *logits);

/* A test's setup: whatever another one left behind, it finds the machine as it was. */
int reset_machine(void **state);

#endif
