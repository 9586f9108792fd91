/*
 * BF16 for cuBLAS (cublas.c): a matrix out of its planes, once; columns of activations out of their 8 bits,
 * for each product. Bound by memory.
 */
#include "cuda/weights.cuh"

enum { WIDEN_THREADS = 256 };

/* To the nearest, ties to even; NaN stays. */
static __device__ __forceinline__ uint16_t to_bf16(float f)
{
    const uint32_t bits = __float_as_uint(f);
    if ((bits & 0x7FFFFFFFu) > 0x7F800000u) return (uint16_t)(bits >> 16 | 0x40u);
    return (uint16_t)((bits + 0x7FFFu + (bits >> 16 & 1u)) >> 16);
}

static __device__ __forceinline__ int byte_of(const int *words, int i, bool is_signed)
{
    const int byte = words[i / 4] >> 8 * (i % 4) & 0xFF;
    return is_signed ? (int)(int8_t)(uint8_t)byte : byte;
}

/* A thread for 32 weights. */
template <int bits> static __global__ void widen_weights(const k_widen a)
{
    gpu_begin();
    const size_t block = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (block >= a.n_blocks) return;
    const packed_quants<bits> packed = load_quants<bits>(&a.w, block);
    const quants<bits> q = unpack_quants<bits>(&a.w, &packed);
    const bool halves = a.w.scales == GPU_SCALES_K16 || a.w.scales == GPU_SCALES_KM16;
    const block_scale s = make_scale(a.w.scales, load_scale(&a.w, block));
    GPU_UNROLL
    for (int i = 0; i < GPU_BLOCK; i++) {
        const int half = i / (GPU_BLOCK / 2);
        int v = byte_of(q.word, i, bits >= 8 || a.w.has_codes);
        if (bits == 16) v = 256 * v + byte_of(q.word, GPU_BLOCK + i, true);
        if (bits < 8) v -= a.w.offset;
        const float scale = halves && half ? s.second : s.first;
        a.out[block * GPU_BLOCK + i] = to_bf16(scale * (float)v + (halves ? -s.least[half] : s.second));
    }
}

static __global__ void widen_columns(const k_widen_columns a)
{
    gpu_begin();
    const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y;
    if (i >= a.width) return;
    const size_t at = (size_t)row * a.width + i;
    float q = (float)a.x.q[at];
    if (a.x.is_fine[row]) q += (float)a.x.q2[at] / 256;
    a.out[at] = to_bf16(a.x.d[at / GPU_BLOCK] * q);
}

extern "C" cudaError_t cuda_launch_widen(cudaStream_t stream, const void *params)
{
    const k_widen *a = (const k_widen *)params;
    const dim3 grid((uint32_t)((a->n_blocks + WIDEN_THREADS - 1) / WIDEN_THREADS)), block(WIDEN_THREADS);
    switch (a->w.bits) {
    case 4: GPU_LAUNCH(widen_weights<4>, grid, block, 0, stream, *a); break;
    case 5: GPU_LAUNCH(widen_weights<5>, grid, block, 0, stream, *a); break;
    case 6: GPU_LAUNCH(widen_weights<6>, grid, block, 0, stream, *a); break;
    case 8: GPU_LAUNCH(widen_weights<8>, grid, block, 0, stream, *a); break;
    default: GPU_LAUNCH(widen_weights<16>, grid, block, 0, stream, *a); break;
    }
    return cudaGetLastError();
}

extern "C" cudaError_t cuda_launch_widen_columns(cudaStream_t stream, const void *params)
{
    const k_widen_columns *a = (const k_widen_columns *)params;
    const dim3 grid((a->width + WIDEN_THREADS - 1) / WIDEN_THREADS, a->n);
    GPU_LAUNCH(widen_columns, grid, dim3(WIDEN_THREADS), 0, stream, *a);
    return cudaGetLastError();
}
