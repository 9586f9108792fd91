#include "device_kit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <cuda_runtime_api.h>
#include <stdlib.h>
#include <unistd.h>

model *open_on(const char *path, const char *backend)
{
    base_err err = {0};
    model *m = NULL;
    if (model_open(&m, path, &(model_options){.n_threads = 2, .backend = backend}, &err))
        fail_msg("%s", err.msg);
    assert_string_equal(model_get_info(m)->backend, backend);
    return m;
}

pair open_pair(const tiny_gguf *spec)
{
    pair p = {.path = tiny_gguf_temp(spec)};
    uint64_t state = 11;
    assert_non_null(p.path);
    p.cpu = open_on(p.path, "cpu");
    p.cuda = open_on(p.path, "cuda");
    for (int i = 0; i < N_SESSION; i++) p.ids[i] = (int32_t)((tiny_random(&state) + 1) / 2 * 250);
    return p;
}

void close_pair(pair *p)
{
    model_close(p->cpu);
    if (p->cuda) model_close(p->cuda);
    unlink(p->path);
    free(p->path);
}

model_dense *dense(model *m)
{
    model_dense *d = NULL;
    model_rows_shape shape = model_get_rows_shape(m);
    assert_int_equal(model_dense_new(&d, &shape, N_TOKENS, NULL), 0);
    return d;
}

void compute(model_dense *d, model *m, const int32_t *ids, uint32_t n, float *logits)
{
    base_err err = {0};
    if (model_dense_compute(d, m, ids, n, 1, logits, NULL, &err)) fail_msg("%s", err.msg);
}

int reset_machine(void **state)
{
    emu_set_memory(MACHINE_MEMORY);
    emu_set_devices(cudaSuccess, 1);
    emu_set_compute(9, 0);
    emu_set_pins(-1);
    emu_fail_in(-1);
    return 0;
}
