/*
 * Rows of activations: RMSNorm, the gate, and quantisation to 8 bits with a scale for every 32.
 *
 *     norm   out = x / sqrt(mean(x^2) + eps) * weight         a block of threads for each group of a row
 *     quant  d = max |x| / 127, q = round(x / d) of 32         a warp for each 32, a block of threads for a
 *         slice of a row
 *
 * A row that holds elements some thousand times larger than the rest gets a second column of 8 bits
 * (row_needs_fine in model/cpu/activations.c); whether it does is known when its last block is through, and
 * the warp that made that one decides it. Bound by latency: a decoded token is one row.
 */
#include "cuda/activations.cuh"

enum { NORM_THREADS = 256, QUANT_WARPS = 8, SLICE_BLOCKS = 64 };

static __global__ void norm_groups(const k_norm a)
{
    GPU_SHARED(shared);
    gpu_begin();
    const uint32_t row = blockIdx.x, group = blockIdx.y;
    const float *x = a.x.data + row * a.x.stride + (size_t)group * a.width;
    float *out = a.out.data + row * a.out.stride + (size_t)group * a.width;
    const float scale = inverse_size(x, a.width, a.eps, (float *)(void *)shared);
    for (uint32_t i = threadIdx.x; i < a.width; i += blockDim.x) out[i] = x[i] * scale * a.weight[i];
}

static __global__ void quant_rows(const k_quant a)
{
    GPU_SHARED(shared);
    gpu_begin();
    const uint32_t row = blockIdx.y, n_blocks = a.width / GPU_BLOCK, warp = threadIdx.x / GPU_WARP;
    const uint32_t lane = threadIdx.x % GPU_WARP, from = a.rows ? a.rows[row] : row;
    const uint32_t first = blockIdx.x * SLICE_BLOCKS;
    const uint32_t last = gpu_least(first + SLICE_BLOCKS, n_blocks);
    const float *x = a.x.data + from * a.x.stride;
    float scale = 0;
    if (a.make == GPU_MAKE_NORM) scale = inverse_size(x, a.width, a.eps, (float *)(void *)shared);

    uint32_t n = 0;
    for (uint32_t block = first + warp; block < last; block += QUANT_WARPS, n++) {
        const uint32_t i = block * GPU_BLOCK + lane;
        float v = x[i];
        if (a.make == GPU_MAKE_NORM) v = v * scale * a.weight[i];
        if (a.make >= GPU_MAKE_SILU) v = gated(v, a.up.data[row * a.up.stride + i], a.make);
        if (a.shares) v *= a.shares[row];
        quant_block(&a.out, row, block, n_blocks, v);
    }
    if (n) end_row(&a.out, row, n, n_blocks);
}

static __global__ void add_rows(const k_add a)
{
    gpu_begin();
    const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y;
    if (i >= a.width) return;
    const float x = a.a.data[row * a.a.stride + i] * a.scale_a;
    a.out.data[row * a.out.stride + i] = x + (a.b.data ? a.b.data[row * a.b.stride + i] * a.scale_b : 0);
}

extern "C" cudaError_t cuda_launch_norm(cudaStream_t stream, const void *params)
{
    const k_norm *a = (const k_norm *)params;
    GPU_LAUNCH(norm_groups, dim3(a->n, a->n_groups), dim3(NORM_THREADS), ROW_ROOM_BYTES, stream, *a);
    return cudaGetLastError();
}

extern "C" cudaError_t cuda_launch_quant(cudaStream_t stream, const void *params)
{
    const k_quant *a = (const k_quant *)params;
    const uint32_t n_slices = (a->width / GPU_BLOCK + SLICE_BLOCKS - 1) / SLICE_BLOCKS;
    GPU_LAUNCH(quant_rows, dim3(n_slices, a->n), dim3(QUANT_WARPS * GPU_WARP), ROW_ROOM_BYTES, stream, *a);
    return cudaGetLastError();
}

extern "C" cudaError_t cuda_launch_add(cudaStream_t stream, const void *params)
{
    const k_add *a = (const k_add *)params;
    GPU_LAUNCH(add_rows, dim3((a->width + 255) / 256, a->n), dim3(256), 0, stream, *a);
    return cudaGetLastError();
}
