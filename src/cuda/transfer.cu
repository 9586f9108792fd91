/*
 * What comes from the host in one piece and belongs in many places: pieces of live lists, rows of the cache,
 * embeddings.
 *
 *     patch   words to where each belongs      blocks of threads share the patches
 *     bring   rows to their slots               a warp a row
 *     copy    rows of floats
 *
 * A plan is one launch; a copy for each piece of 256 bytes would cost microseconds each. Rows are read where
 * the host has them, 256 bytes and more at a time, past the caches: they are read once. Bound by the link.
 */
#include "cuda/gpu.cuh"

static __global__ void apply_patches(const k_patch a)
{
    gpu_begin();
    for (uint32_t p = blockIdx.x; p < a.n; p += gridDim.x) {
        const uint32_t *from = (const uint32_t *)(uintptr_t)a.patches[p].from;
        uint32_t *to = (uint32_t *)(uintptr_t)a.patches[p].to;
        for (uint32_t i = threadIdx.x; i < a.patches[p].n_words; i += blockDim.x) to[i] = from[i];
    }
}

static __global__ void bring_rows(const k_bring a)
{
    gpu_begin();
    const uint32_t row = blockIdx.x * (blockDim.x / GPU_WARP) + threadIdx.x / GPU_WARP;
    if (row >= a.n) return;
    const uint32_t per_part = a.head_dim / 8, n = a.places ? 2 * per_part : per_part; /* 16 bytes at a time */
    const uint4 *key = (const uint4 *)(uintptr_t)a.keys[row];
    uint4 *to = (uint4 *)(void *)a.pool + (a.places ? a.places[row] : row) * n;
    for (uint32_t i = threadIdx.x % GPU_WARP; i < n; i += GPU_WARP)
        to[i] = __ldcv(i < per_part ? key + i : key + a.to_value / 8 + (i - per_part));
}

static __global__ void copy_rows(const k_copy a)
{
    gpu_begin();
    const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y;
    if (i < a.width) a.to[row * a.to_stride + i] = a.from[row * a.from_stride + i];
}

extern "C" cudaError_t cuda_launch_patch(cudaStream_t stream, const void *params)
{
    GPU_LAUNCH(apply_patches, dim3(64), dim3(128), 0, stream, *(const k_patch *)params);
    return cudaGetLastError();
}

extern "C" cudaError_t cuda_launch_bring(cudaStream_t stream, const void *params)
{
    const k_bring *a = (const k_bring *)params;
    GPU_LAUNCH(bring_rows, dim3((a->n + 7) / 8), dim3(8 * GPU_WARP), 0, stream, *a);
    return cudaGetLastError();
}

extern "C" cudaError_t cuda_launch_copy(cudaStream_t stream, const void *params)
{
    const k_copy *a = (const k_copy *)params;
    GPU_LAUNCH(copy_rows, dim3((a->width + 255) / 256, a->n), dim3(256), 0, stream, *a);
    return cudaGetLastError();
}
