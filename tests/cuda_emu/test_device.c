/* Every way of having no device, from the start or all of a sudden, is a sentence, and costs no token. */
#include "device_kit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <cuda_runtime_api.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"

static void expect_refusal_of(const tiny_gguf *spec, const char *backend, int code, const char *words)
{
    char *path = tiny_gguf_temp(spec);
    base_err err = {0};
    model *m = NULL;
    assert_int_equal(model_open(&m, path, &(model_options){.n_threads = 1, .backend = backend}, &err), code);
    if (!strstr(err.msg, words)) fail_msg("\"%s\" does not say \"%s\"", err.msg, words);
    unlink(path);
    free(path);
}

static void expect_refusal(const char *backend, int code, const char *words)
{
    expect_refusal_of(&TINY_GGUF_QWEN2, backend, code, words);
}

static char heard[600];

static void hear(void *user, const char *sentence)
{
    snprintf(heard, sizeof heard, "%s", sentence);
}

/* auto computes on the CPU, and says why unless there is simply no device. */
static void expect_cpu_for(const tiny_gguf *spec, const char *words)
{
    char *path = tiny_gguf_temp(spec);
    base_err err = {0};
    model *m = NULL;
    heard[0] = 0;
    if (model_open(&m, path, &(model_options){.n_threads = 1, .notice = hear}, &err)) fail_msg("%s", err.msg);
    assert_string_equal(model_get_info(m)->backend, "cpu");
    if (words && !strstr(heard, words)) fail_msg("\"%s\" does not say \"%s\"", heard, words);
    if (!words) assert_string_equal(heard, "");
    model_close(m);
    unlink(path);
    free(path);
}

static void expect_cpu(const char *words)
{
    expect_cpu_for(&TINY_GGUF_QWEN2, words);
}

static void test_device__leaves_models_to_the_cpu(void **state)
{
    expect_refusal_of(&TINY_GGUF_GEMMA4, "cuda", BASE_E_UNSUPPORTED, "use --backend cpu");
    expect_cpu_for(&TINY_GGUF_GEMMA4, "two sizes");
    assert_int_equal(emu_get_counts().allocated, 0);
}

static void test_device__without_a_device_says_so(void **state)
{
    emu_set_devices(cudaErrorNoDevice, 0);
    expect_refusal("cuda", BASE_E_NOT_FOUND, "sees no GPU");
    expect_cpu(NULL);
    emu_set_devices(cudaErrorInsufficientDriver, 0);
    expect_refusal("cuda", BASE_E_DEVICE, "too old: it knows CUDA 11.2 and this build needs 13.0");
    expect_cpu("too old");
    emu_set_devices(cudaSuccess, 1);
    emu_set_compute(7, 5);
    expect_refusal("cuda", BASE_E_DEVICE, "compute capability 7.5 and kvist needs 8.0");
    emu_set_compute(9, 0);
}

static void test_device__bf16_without_cublas_says_so(void **state)
{
    char *library = base_xstrdup(getenv("KVIST_CUBLAS"));
    setenv("KVIST_CUBLAS", "/nowhere/libcublas.so", 1);
    expect_refusal("cuda:bf16", BASE_E_DEVICE, "/nowhere/libcublas.so is not found");
    setenv("KVIST_CUBLAS", library, 1);
    emu_set_memory((size_t)230 << 20);
    expect_refusal("cuda:bf16", BASE_E_NOMEM, "GB are left");
    assert_int_equal(emu_get_counts().allocated, 0);
    expect_refusal("cuda:bf17", BASE_E_USAGE, "cuda:bf16");
    free(library);
}

static void test_device__too_little_memory_is_refused_with_numbers(void **state)
{
    emu_set_memory((size_t)400 << 20);
    const tiny_gguf spec = TINY_GGUF_QWEN2;
    char *path = tiny_gguf_temp(&spec);
    base_err err = {0};
    model *m = NULL;
    const model_options options = {.n_threads = 1, .backend = "cuda", .gpu_bytes = (uint64_t)1 << 30};
    assert_int_equal(model_open(&m, path, &options, &err), BASE_E_NOMEM);
    assert_non_null(strstr(err.msg, "--gpu-mem asks for 1.07 GB and 0.42 GB"));
    const model_options little = {.n_threads = 1, .backend = "cuda", .gpu_bytes = (uint64_t)195 << 20};
    assert_int_equal(model_open(&m, path, &little, &err), BASE_E_NOMEM);
    if (!strstr(err.msg, "GB are left")) fail_msg("%s", err.msg);
    emu_set_memory(MACHINE_MEMORY);
    assert_int_equal(emu_get_counts().allocated, 0);
    unlink(path);
    free(path);
}

/* Lost at any launch: the batch is computed all the same, with the bits that were due, and so is what follows. */
static void test_device__a_lost_device_costs_no_token(void **state)
{
    const tiny_gguf spec = TINY_GGUF_QWEN2;
    static const int launches[] = {0, 3, 17, 40};
    for (size_t i = 0; i < sizeof launches / sizeof *launches; i++) {
        pair p = open_pair(&spec);
        model_dense *a = dense(p.cpu), *b = dense(p.cuda);
        float want[N_VOCAB], got[N_VOCAB];
        compute(a, p.cpu, p.ids, 60, want);
        compute(b, p.cuda, p.ids, 60, got);
        emu_fail_in(launches[i]);
        for (int t = 60; t < 64; t++) {
            compute(a, p.cpu, p.ids + t, 1, want);
            compute(b, p.cuda, p.ids + t, 1, got);
            assert_memory_equal(want, got, sizeof want);
        }
        assert_string_equal(model_get_info(p.cuda)->backend, "cpu");
        assert_non_null(strstr(model_get_info(p.cuda)->notice, "stopped answering"));
        model_dense_free(a);
        model_dense_free(b);
        close_pair(&p);
        emu_fail_in(-1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_device__leaves_models_to_the_cpu, reset_machine),
        cmocka_unit_test_setup(test_device__without_a_device_says_so, reset_machine),
        cmocka_unit_test_setup(test_device__bf16_without_cublas_says_so, reset_machine),
        cmocka_unit_test_setup(test_device__too_little_memory_is_refused_with_numbers, reset_machine),
        cmocka_unit_test_setup(test_device__a_lost_device_costs_no_token, reset_machine),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
