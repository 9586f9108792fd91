/*
 * Rows of activations: RMSNorm, the gate, and quantisation to 8 bits with a scale for every 32.
 *
 *     norm   out = x / sqrt(mean(x^2) + eps) * weight         a block of threads for each group of a row
 *     quant  d = max |x| / 127, q = round(x / d) of 32         a warp for each 32, a block of threads for a slice of a row
 *
 * A row that holds elements some thousand times larger than the rest gets a second column of 8 bits (row_needs_fine in
 * model/cpu/activations.c); whether it does is known when its last slice is through, and that slice's threads decide it.
 * Bound by latency: a decoded token is one row.
 */
#include "cuda/gpu.cuh"

enum { NORM_THREADS = 256, QUANT_WARPS = 8, SLICE_BLOCKS = 64 };

/* Sum of squares of a row, element i in partial sum i % 16; every thread gets 1 / sqrt(mean + eps). */
static __device__ float inverse_size(const float *x, uint32_t width, float eps, float *shared)
{
    if (threadIdx.x < GPU_WARP) {
        float squares = 0;
        if (threadIdx.x < 16)
            for (uint32_t i = threadIdx.x; i < width; i += 16) squares = fmaf(x[i], x[i], squares);
        squares = gpu_add_by_halves(squares);
        if (threadIdx.x == 0) *shared = 1.0f / sqrtf(squares / (float)width + eps);
    }
    __syncthreads();
    return *shared;
}

static __global__ void norm_groups(const k_norm a)
{
    GPU_SHARED(shared);
    const uint32_t row = blockIdx.x, group = blockIdx.y;
    const float *x = a.x.data + row * a.x.stride + (size_t)group * a.width;
    float *out = a.out.data + row * a.out.stride + (size_t)group * a.width;
    const float scale = inverse_size(x, a.width, a.eps, (float *)shared);
    for (uint32_t i = threadIdx.x; i < a.width; i += blockDim.x) out[i] = x[i] * scale * a.weight[i];
}

static __device__ float gated(float x, float up, int make)
{
    float u = x;
    if (make == GPU_MAKE_GELU) u = 2 * 0.79788456080286535588f * fmaf(0.044715f * x * x, x, x);
    return x / (1.0f + gpu_exp(-u)) * up;
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
 * largest > bound * mean of the others, the sum taken in order as the CPU takes it: only where a sum in another order is too
 * near to tell, since the order costs a microsecond. Volatile: other multiprocessors wrote it, and a cache of ours may not know.
 */
static __device__ bool needs_fine(const volatile float *d, uint32_t n_blocks)
{
    const uint32_t lane = threadIdx.x;
    float largest = 0, sum = 0, bound = 2.0f * sqrtf((float)n_blocks);
    if (bound < 16.0f) bound = 16.0f;
    for (uint32_t i = lane; i < n_blocks; i += GPU_WARP) {
        const float v = d[i];
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
    for (uint32_t i = 0; i < n_blocks; i++) sum += d[i];
    return largest > bound * ((sum - largest) / n_others);
}

static __global__ void quant_rows(const k_quant a)
{
    GPU_SHARED(shared);
    const uint32_t row = blockIdx.y, n_blocks = a.width / GPU_BLOCK, warp = threadIdx.x / GPU_WARP;
    const uint32_t lane = threadIdx.x % GPU_WARP, from = a.rows ? a.rows[row] : row;
    const uint32_t first = blockIdx.x * SLICE_BLOCKS;
    const uint32_t last = gpu_least(first + SLICE_BLOCKS, n_blocks);
    const float *x = a.x.data + from * a.x.stride;
    float scale = 0;
    if (a.make == GPU_MAKE_NORM) scale = inverse_size(x, a.width, a.eps, (float *)shared);

    for (uint32_t block = first + warp; block < last; block += QUANT_WARPS) {
        const uint32_t i = block * GPU_BLOCK + lane;
        float v = x[i];
        if (a.make == GPU_MAKE_NORM) v = v * scale * a.weight[i];
        if (a.make >= GPU_MAKE_SILU) v = gated(v, a.up.data[row * a.up.stride + i], a.make);
        quant_block(&a.out, row, block, n_blocks, v);
    }

    /* The slice that comes last sees all scales of the row. */
    uint32_t *is_last = (uint32_t *)shared + 1;
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) *is_last = atomicAdd(&a.out.done[row], 1) == gridDim.x - 1;
    __syncthreads();
    if (!*is_last || warp > 0) return;
    __threadfence();
    const bool fine = needs_fine(a.out.d + (size_t)row * n_blocks, n_blocks);
    if (lane == 0) {
        a.out.is_fine[row] = fine;
        a.out.done[row] = 0;
    }
}

static __global__ void add_rows(const k_add a)
{
    const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y;
    if (i >= a.width) return;
    const float x = a.a.data[row * a.a.stride + i] * a.scale_a;
    a.out.data[row * a.out.stride + i] = x + (a.b.data ? a.b.data[row * a.b.stride + i] * a.scale_b : 0);
}

extern "C" cudaError_t cuda_launch_norm(cudaStream_t stream, const void *params)
{
    const k_norm *a = (const k_norm *)params;
    GPU_LAUNCH(norm_groups, dim3(a->n, a->n_groups), dim3(NORM_THREADS), 16, stream, *a);
    return cudaGetLastError();
}

extern "C" cudaError_t cuda_launch_quant(cudaStream_t stream, const void *params)
{
    const k_quant *a = (const k_quant *)params;
    const uint32_t n_slices = (a->width / GPU_BLOCK + SLICE_BLOCKS - 1) / SLICE_BLOCKS;
    GPU_LAUNCH(quant_rows, dim3(n_slices, a->n), dim3(QUANT_WARPS * GPU_WARP), 16, stream, *a);
    return cudaGetLastError();
}

extern "C" cudaError_t cuda_launch_add(cudaStream_t stream, const void *params)
{
    const k_add *a = (const k_add *)params;
    GPU_LAUNCH(add_rows, dim3((a->width + 255) / 256, a->n), dim3(256), 0, stream, *a);
    return cudaGetLastError();
}
