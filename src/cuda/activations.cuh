/*
 * Rows of activations, as kernels make them that stand alone (activations.cu) and those that end with them
 * (matmul.cu, attention.cu): RMSNorm, the gate, quantisation to 8 bits, whether a row needs a second column.
 *
 * What is read may have been written by other multiprocessors in the same launch: __ldcg reads what they
 * wrote, past the caches that would not know.
 */
#ifndef KVIST_CUDA_ACTIVATIONS_CUH
#define KVIST_CUDA_ACTIVATIONS_CUH

#include "cuda/gpu.cuh"

enum { ROW_ROOM = 2048, ROW_ROOM_BYTES = (ROW_ROOM + 1) * 4 };

/*
 * By a block of threads: 1 / sqrt(mean of squares + eps) of a row, element i in partial sum i % 16. `room` is
 * shared memory of ROW_ROOM_BYTES: the row comes there in pieces, since sixteen threads that waited for
 * memory one element after another would take ten times as long. Begins and ends with a barrier.
 */
static __device__ float inverse_size(const float *x, uint32_t width, float eps, float *room)
{
    float squares = 0;
    for (uint32_t from = 0; from < width; from += ROW_ROOM) {
        const uint32_t n = gpu_least(width - from, ROW_ROOM);
        __syncthreads();
        for (uint32_t i = threadIdx.x; i < n; i += blockDim.x) room[i] = __ldcg(x + from + i);
        __syncthreads();
        if (threadIdx.x < 16) {
            GPU_UNROLL_8
            for (uint32_t i = threadIdx.x; i < n; i += 16) squares = fmaf(room[i], room[i], squares);
        }
    }
    if (threadIdx.x < GPU_WARP) {
        squares = gpu_add_by_halves(squares);
        if (threadIdx.x == 0) room[ROW_ROOM] = 1.0f / sqrtf(squares / (float)width + eps);
    }
    __syncthreads();
    return room[ROW_ROOM];
}

/* gate_row_ref of kernels_ref.c; the numbers are OPS_CLAMP and OPS_CLAMP_STEEP of ops.h. */
static __device__ float gated(float x, float up, int make)
{
    float u = x;
    if (make == GPU_MAKE_GELU) u = 2 * 0.79788456080286535588f * fmaf(0.044715f * x * x, x, x);
    if (make == GPU_MAKE_CLAMPED) { /* what is no number stays none */
        x = 7.0f < x ? 7.0f : x;
        up = 7.0f < up ? 7.0f : up;
        up = (-7.0f > up ? -7.0f : up) + 1.0f;
        u = 1.702f * x;
    }
    return (make == GPU_MAKE_SIGMOID ? 1.0f : x) / (1.0f + gpu_exp(-u)) * up;
}

static __device__ int sum_of_half(int q)
{
    for (int other = 8; other > 0; other /= 2) q += __shfl_xor_sync(GPU_ALL, q, other);
    return q;
}

/* One block of 32 by a warp, an element a lane: quant_row_ref and quant_fine_row_ref. */
static __device__ void quant_block(
    const gpu_columns *out, uint32_t row, uint32_t block, uint32_t n_blocks, float x)
{
    const uint32_t lane = threadIdx.x % GPU_WARP;
    const size_t at = (size_t)row * n_blocks + block;
    const float size = fabsf(x);
    const bool finite = !__any_sync(GPU_ALL, !(size <= 3.4028234e38f));
    const float largest = gpu_warp_max(finite ? size : 0.0f);
    const float inverse = finite && largest >= 1e-30f ? 127.0f / largest : 0;
    const float d = !finite ? __uint_as_float(0x7FC00000u) : inverse > 0 ? largest / 127.0f : 0;
    const int q = inverse > 0 ? __float2int_rn(x * inverse) : 0;

    const float inverse_d = d > 0 ? 1.0f / d : 0;
    float rest = fmaf(x, inverse_d, -(float)q) * 256;
    rest = rest > 127 ? 127 : rest < -127 ? -127 : rest;
    const int q2 = d > 0 ? __float2int_rn(rest) : 0;

    out->q[at * GPU_BLOCK + lane] = (int8_t)q;
    out->q2[at * GPU_BLOCK + lane] = (int8_t)q2;
    const int sum = sum_of_half(q), sum2 = sum_of_half(q2);
    if (lane % 16 == 0) {
        out->sum[2 * at + lane / 16] = sum;
        out->sum2[2 * at + lane / 16] = sum2;
    }
    if (lane == 0) out->d[at] = d;
}

/*
 * By a warp: largest > bound * mean of the others, the sum taken in order as the CPU takes it: only where a
 * sum in another order is too near to tell, since the order costs a microsecond.
 */
static __device__ bool needs_fine(const float *d, uint32_t n_blocks)
{
    const uint32_t lane = threadIdx.x % GPU_WARP;
    float largest = 0, sum = 0, bound = 2.0f * sqrtf((float)n_blocks);
    if (bound < 16.0f) bound = 16.0f;
    for (uint32_t i = lane; i < n_blocks; i += GPU_WARP) {
        const float v = __ldcg(d + i);
        largest = v > largest ? v : largest;
        sum += v;
    }
    largest = gpu_warp_max(largest);
    for (int other = 16; other > 0; other /= 2) sum += __shfl_xor_sync(GPU_ALL, sum, other);
    const float n_others = (float)(n_blocks > 1 ? n_blocks - 1 : 1);
    const float near = bound * ((sum - largest) / n_others);
    const float slack = bound * sum / n_others * 1e-3f; /* far more than any order of summation makes */
    if (largest > near + slack) return true;
    if (largest < near - slack) return false;
    sum = 0;
    for (uint32_t i = 0; i < n_blocks; i++) sum += __ldcg(d + i);
    return largest > bound * ((sum - largest) / n_others);
}

/*
 * By a warp that has made `n` of the n_blocks blocks of a row: the one that comes last sees the scales of
 * all, and says whether the row needs a second column.
 */
static __device__ void end_row(const gpu_columns *out, uint32_t row, uint32_t n, uint32_t n_blocks)
{
    uint32_t before = 0;
    __syncwarp();
    __threadfence();
    if (threadIdx.x % GPU_WARP == 0) before = atomicAdd(&out->done[row], n);
    before = (uint32_t)__shfl_sync(GPU_ALL, (int)before, 0);
    if (before + n != n_blocks) return;
    __threadfence();
    const bool fine = needs_fine(out->d + (size_t)row * n_blocks, n_blocks);
    if (threadIdx.x % GPU_WARP) return;
    out->is_fine[row] = fine;
    out->done[row] = 0;
}

#endif
