/*
 * A mixture's pairs (kernels.h, gpu_pairs): sorted by expert in front of the products, so that those of one
 * expert are columns of the same product; and added up behind them, a token's in the order of the router's
 * choice.
 *
 *     sort   one block of threads: counts, where each expert's begin, then each expert's pairs in the order of
 *            tokens, a thread an expert
 *     sum    a thread an element of y
 *
 * The sort is bound by latency: two walks through all pairs in shared memory, some 10 us for 4,096 of them.
 */
#include "cuda/gpu.cuh"

enum { SORT_THREADS = 512, SUM_THREADS = 256 };

/* By a warp: the sum of v over this lane and those before it. */
static __device__ uint32_t sum_so_far(uint32_t v)
{
    const uint32_t lane = threadIdx.x % GPU_WARP;
    for (uint32_t by = 1; by < GPU_WARP; by *= 2) {
        const uint32_t before = (uint32_t)__shfl_sync(GPU_ALL, (int)v, (int)(lane - by) & 31);
        if (lane >= by) v += before;
    }
    return v;
}

/*
 * By a warp: of every expert's number of pairs (in `pairs`) where they begin, and where its cohorts do. Returns
 * how many cohorts there are.
 */
static __device__ uint32_t find_beginnings(
    uint32_t *pairs, uint32_t *cohorts, uint32_t n_experts, uint32_t columns)
{
    const uint32_t lane = threadIdx.x;
    uint32_t n_pairs = 0, n_cohorts = 0;
    for (uint32_t from = 0; from < n_experts; from += GPU_WARP) {
        const uint32_t e = from + lane, n = e < n_experts ? pairs[e] : 0, c = (n + columns - 1) / columns;
        const uint32_t pairs_end = n_pairs + sum_so_far(n), cohorts_end = n_cohorts + sum_so_far(c);
        if (e < n_experts) {
            pairs[e] = pairs_end - n;
            cohorts[e] = cohorts_end - c;
        }
        n_pairs = (uint32_t)__shfl_sync(GPU_ALL, (int)pairs_end, GPU_WARP - 1);
        n_cohorts = (uint32_t)__shfl_sync(GPU_ALL, (int)cohorts_end, GPU_WARP - 1);
    }
    return n_cohorts;
}

/* A pair whose expert does not exist has no place, and no product. */
static __global__ void sort_pairs(const k_sort a)
{
    GPU_SHARED(shared);
    gpu_begin();
    uint32_t *first = (uint32_t *)(void *)shared, *cohort = first + a.n_experts;
    uint16_t *expert_of = (uint16_t *)(void *)(cohort + a.n_experts);
    for (uint32_t p = threadIdx.x; p < a.n_pairs; p += blockDim.x) {
        expert_of[p] = (uint16_t)gpu_least(a.chosen[p], 0xFFFF);
        a.pairs.place_of[p] = GPU_NO_PLACE;
    }
    __syncthreads();
    for (uint32_t e = threadIdx.x; e < a.n_experts; e += blockDim.x) {
        uint32_t n = 0;
        GPU_UNROLL_8
        for (uint32_t p = 0; p < a.n_pairs; p++) n += expert_of[p] == e;
        first[e] = n;
    }
    __syncthreads();
    if (threadIdx.x < GPU_WARP) {
        const uint32_t n = find_beginnings(first, cohort, a.n_experts, a.columns);
        if (threadIdx.x == 0) *a.pairs.n_cohorts = n;
    }
    __syncthreads();
    for (uint32_t e = threadIdx.x; e < a.n_experts; e += blockDim.x) {
        uint32_t at = first[e];
        for (uint32_t p = 0; p < a.n_pairs; p++) {
            if (expert_of[p] != e) continue;
            a.pairs.place_of[p] = at;
            a.pairs.token_of[at++] = p / a.n_used;
        }
        gpu_cohort *to = a.pairs.cohorts + cohort[e];
        for (uint32_t from = first[e]; from < at; from += a.columns)
            *to++ = gpu_cohort{e, from, gpu_least(a.columns, at - from)};
    }
}

static __global__ void sum_pairs(const k_sum_pairs a)
{
    gpu_begin();
    const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x, token = blockIdx.y;
    if (i >= a.width) return;
    const uint32_t *place_of = a.place_of + (size_t)token * a.n_used;
    const float *weights = a.weights + (size_t)token * a.n_used;
    float sum = 0;
    for (uint32_t k = 0; k < a.n_used; k++) {
        float one = __uint_as_float(0x7FC00000u); /* no number */
        if (place_of[k] != GPU_NO_PLACE) one = a.products[(size_t)place_of[k] * a.width + i];
        sum = k ? sum + weights[k] * one : weights[k] * one;
    }
    if (a.add.data) sum += a.add.data[token * a.add.stride + i];
    a.y.data[token * a.y.stride + i] = sum;
}

extern "C" cudaError_t cuda_launch_sort_pairs(cudaStream_t stream, const void *params)
{
    const k_sort *a = (const k_sort *)params;
    const size_t shared = 2 * a->n_experts * sizeof(uint32_t) + a->n_pairs * sizeof(uint16_t);
    GPU_LAUNCH(sort_pairs, dim3(1), dim3(SORT_THREADS), shared, stream, *a);
    return cudaGetLastError();
}

extern "C" cudaError_t cuda_launch_sum_pairs(cudaStream_t stream, const void *params)
{
    const k_sum_pairs *a = (const k_sum_pairs *)params;
    GPU_LAUNCH(sum_pairs, dim3((a->width + SUM_THREADS - 1) / SUM_THREADS, a->n), dim3(SUM_THREADS), 0, stream, *a);
    return cudaGetLastError();
}
