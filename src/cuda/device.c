/*
 * Which device there is, its memory within --gpu-mem, and a sentence for everything that can go wrong with
 * it.
 *
 * The runtime is linked in and opens the driver by itself: on a machine without one it says so, and this
 * binary runs there all the same.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cuda/backend.h"

enum { RESERVE_BYTES = 256 << 20 /* of the free memory, for the runtime and the screen */ };

/*
 * Which device, or why none is used: BASE_E_NOT_FOUND without one, BASE_E_DEVICE with one that cannot be
 * used, and a sentence.
 */
static int find_device(struct cudaDeviceProp *ret, base_err *err)
{
    int n = 0, driver = 0, runtime = 0;
    const cudaError_t e = cudaGetDeviceCount(&n);
    if (e == cudaErrorInsufficientDriver) {
        cudaDriverGetVersion(&driver);
        cudaRuntimeGetVersion(&runtime);
        if (driver == 0) return base_fail(err, BASE_E_NOT_FOUND, "no NVIDIA driver is installed");
        return base_fail(err, BASE_E_DEVICE,
            "the NVIDIA driver is too old: it knows CUDA %d.%d and this build needs %d.%d; update the driver",
            driver / 1000, driver % 1000 / 10, runtime / 1000, runtime % 1000 / 10);
    }
    if (e == cudaErrorNoDevice || (e == cudaSuccess && n == 0))
        return base_fail(err, BASE_E_NOT_FOUND, "the NVIDIA driver sees no GPU");
    if (e != cudaSuccess)
        return base_fail(err, BASE_E_DEVICE, "the GPU cannot be used: %s", cudaGetErrorString(e));
    if (cudaGetDeviceProperties(ret, 0) != cudaSuccess)
        return base_fail(err, BASE_E_DEVICE, "the GPU does not say what it is: %s",
            cudaGetErrorString(cudaGetLastError()));
    if (10 * ret->major + ret->minor < CUDA_COMPUTE_LEAST)
        return base_fail(err, BASE_E_DEVICE,
            "%s has compute capability %d.%d and kvist needs %d.%d (Ampere) or later", ret->name, ret->major,
            ret->minor, CUDA_COMPUTE_LEAST / 10, CUDA_COMPUTE_LEAST % 10);
    return 0;
}

int cuda_ops_describe(char *text, size_t n, base_err *err)
{
    struct cudaDeviceProp p;
    size_t free_bytes = 0, total = 0;
    int driver = 0;
    int rc = find_device(&p, err);
    if (rc) return rc;
    cudaDriverGetVersion(&driver);
    if (cudaSetDevice(0) != cudaSuccess || cudaMemGetInfo(&free_bytes, &total) != cudaSuccess)
        return base_fail(
            err, BASE_E_DEVICE, "%s does not answer: %s", p.name, cudaGetErrorString(cudaGetLastError()));
    snprintf(text, n, "%s, compute %d.%d, %d multiprocessors, %.1f GiB (%.1f free), driver for CUDA %d.%d",
        p.name, p.major, p.minor, p.multiProcessorCount, (double)total / 0x1p30, (double)free_bytes / 0x1p30,
        driver / 1000, driver % 1000 / 10);
    return 0;
}

int cuda_check(cuda_backend *c, cudaError_t e, base_err *err)
{
    if (e != cudaSuccess && !c->failed.code)
        base_fail(&c->failed, BASE_E_DEVICE, "%s stopped answering (%s)", c->name, cudaGetErrorString(e));
    if (c->failed.code && err) *err = c->failed;
    return c->failed.code;
}

int cuda_alloc(cuda_backend *c, void **ret, size_t n_bytes, const char *what, base_err *err)
{
    if (c->failed.code) return cuda_check(c, cudaSuccess, err);
    cudaError_t e = cudaErrorMemoryAllocation;
    if (n_bytes <= c->limit_bytes - c->used_bytes) e = cudaMalloc(ret, n_bytes ? n_bytes : 1);
    if (e == cudaErrorMemoryAllocation) {
        (void)cudaGetLastError();
        return base_fail(err, BASE_E_NOMEM,
            "the %s need %.2f GB of the GPU's memory, and %.2f of %.2f GB are left; raise --gpu-mem, leave a "
            "mixture's experts (--cpu-moe) or some layers (--gpu-layers) in the machine's, take a smaller "
            "model, context or --kv-budget, or compute on the CPU (--backend cpu)",
            what, (double)n_bytes / 1e9, (double)(c->limit_bytes - c->used_bytes) / 1e9,
            (double)c->limit_bytes / 1e9);
    }
    if (e != cudaSuccess) return cuda_check(c, e, err);
    c->used_bytes += n_bytes;
    return 0;
}

void cuda_free(cuda_backend *c, void *p, size_t n_bytes)
{
    if (!p) return;
    cudaFree(p);
    c->used_bytes -= n_bytes;
}

int cuda_arena_new(cuda_backend *c, cuda_arena *a, size_t n_bytes, base_err *err)
{
    int rc = cuda_alloc(c, (void **)&a->device, n_bytes, "buffers for transfers", err);
    if (rc) return rc;
    a->size = n_bytes;
    if (cudaMallocHost((void **)&a->host, n_bytes) != cudaSuccess)
        return base_fail(err, BASE_E_NOMEM, "no memory for %zu bytes of pinned buffers", n_bytes);
    return 0;
}

void cuda_arena_free(cuda_backend *c, cuda_arena *a)
{
    cuda_free(c, a->device, a->size);
    if (a->host) cudaFreeHost(a->host);
    *a = (cuda_arena){0};
}

/* What may be used: --gpu-mem, or what is free less a reserve. */
static int find_limit(cuda_backend *c, uint64_t wanted, base_err *err)
{
    size_t free_bytes = 0, total = 0;
    int rc = cuda_check(c, cudaMemGetInfo(&free_bytes, &total), err);
    if (rc) return rc;
    const size_t most = free_bytes > 2 * (size_t)RESERVE_BYTES ? free_bytes - RESERVE_BYTES : free_bytes / 2;
    if (wanted > free_bytes)
        return base_fail(err, BASE_E_NOMEM, "--gpu-mem asks for %.2f GB and %.2f GB of %s are free",
            (double)wanted / 1e9, (double)free_bytes / 1e9, c->name);
    c->limit_bytes = wanted ? (size_t)wanted : most;
    return 0;
}

int cuda_device_open(cuda_backend *c, uint64_t memory_bytes, base_err *err)
{
    struct cudaDeviceProp p;
    int rc = find_device(&p, err);
    if (rc) return rc;
    snprintf(c->name, sizeof c->name, "%s", p.name);
    c->n_processors = c->n_fill = p.multiProcessorCount;
    if (cudaSetDevice(0) != cudaSuccess ||
        cudaStreamCreateWithFlags(&c->stream, cudaStreamNonBlocking) != cudaSuccess)
        return base_fail(
            err, BASE_E_DEVICE, "%s cannot be opened: %s", p.name, cudaGetErrorString(cudaGetLastError()));
    return find_limit(c, memory_bytes, err);
}
