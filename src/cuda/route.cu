/*
 * A mixture's router (ops.h, route): scores of all experts in F32, then each token's best ones.
 *
 *     score    half a warp has one expert's row and up to 4 tokens: sixteen partial sums each, added by halves
 *     choose   a warp a token: softmax, then n_used times the largest that is left, of equals the lower index
 *
 * The row of an expert that all tokens go to stands behind the others' rows; its score becomes a share by a
 * sigmoid in F64, as on the CPU. Bound by latency for a decoded token (a megabyte of router at most), by fused
 * steps for many.
 */
#include "cuda/gpu.cuh"

enum { SCORE_WARPS = 4, SCORE_TOKENS = 4, SCORE_SUMS = 16 };

static __host__ __device__ uint32_t score_rows(const k_route *a)
{
    return a->n_experts + (a->shared ? 1 : 0);
}

/* grid: pairs of rows by warps, groups of tokens */
static __global__ void score_experts(const k_route a)
{
    gpu_begin();
    const uint32_t lane = threadIdx.x % GPU_WARP, n_rows = score_rows(&a);
    const uint32_t row = 2 * (blockIdx.x * SCORE_WARPS + threadIdx.x / GPU_WARP) + lane / SCORE_SUMS;
    const uint32_t first = blockIdx.y * SCORE_TOKENS, n = gpu_least(a.n - first, SCORE_TOKENS);
    const float *weights = row < a.n_experts ? a.router + (size_t)row * a.width : a.shared ? a.shared : a.router;
    float sums[SCORE_TOKENS] = {0};
    for (uint32_t i = lane % SCORE_SUMS; i < a.width; i += SCORE_SUMS) {
        const float w = weights[i];
        GPU_UNROLL
        for (uint32_t t = 0; t < SCORE_TOKENS; t++)
            sums[t] = fmaf(w, a.x.data[(first + gpu_least(t, n - 1)) * a.x.stride + i], sums[t]);
    }
    GPU_UNROLL
    for (uint32_t t = 0; t < SCORE_TOKENS; t++) {
        const float sum = gpu_add_by_halves(sums[t]);
        if (lane % SCORE_SUMS == 0 && t < n && row < n_rows) a.scores[(size_t)(first + t) * n_rows + row] = sum;
    }
}

/* By a warp: the largest of p[0, n) and where it is first. */
static __device__ float find_largest(const float *p, uint32_t n, uint32_t *ret_at)
{
    float best = -2; /* less than anything: p is at least 0, or -1 where it was taken */
    uint32_t at = 0;
    for (uint32_t e = threadIdx.x; e < n; e += GPU_WARP)
        if (p[e] > best) best = p[e], at = e;
    for (int other = 16; other > 0; other /= 2) {
        const float theirs = __shfl_xor_sync(GPU_ALL, best, other);
        const uint32_t there = (uint32_t)__shfl_xor_sync(GPU_ALL, (int)at, other);
        if (theirs > best || (theirs == best && there < at)) best = theirs, at = there;
    }
    *ret_at = at;
    return best;
}

/* grid: tokens. p: in shared memory, [n_experts]. What is no number counts as 0: where all are, so are the weights. */
static __global__ void choose_experts(const k_route a)
{
    GPU_SHARED(shared);
    gpu_begin();
    float *p = (float *)(void *)shared;
    const uint32_t token = blockIdx.x, lane = threadIdx.x;
    const float *scores = a.scores + (size_t)token * score_rows(&a);
    float largest = gpu_minus_infinity(), sum = 0;
    for (uint32_t e = lane; e < a.n_experts; e += GPU_WARP) {
        p[e] = scores[e];
        if (a.bias) p[e] += a.bias[e];
        largest = p[e] > largest ? p[e] : largest;
    }
    largest = gpu_warp_max(largest);
    for (uint32_t e = lane; e < a.n_experts; e += GPU_WARP) {
        const float share = gpu_exp(p[e] - largest);
        p[e] = share >= 0 ? share : 0;
    }
    __syncwarp();

    uint32_t *chosen = a.chosen + (size_t)token * a.n_used;
    float *weights = a.weights + (size_t)token * a.n_used;
    for (uint32_t i = 0; i < a.n_used; i++) {
        uint32_t expert;
        const float share = find_largest(p, a.n_experts, &expert);
        sum += share;
        if (lane == 0) {
            chosen[i] = expert;
            weights[i] = share;
            p[expert] = -1;
        }
        __syncwarp();
    }
    if (lane > 0) return;
    for (uint32_t i = 0; i < a.n_used; i++) {
        weights[i] /= sum;
        if (a.scales) weights[i] *= a.scales[chosen[i]];
    }
    if (a.shared) a.shares[token] = (float)(1 / (1 + exp(-(double)scores[a.n_experts])));
}

extern "C" cudaError_t cuda_launch_score_experts(cudaStream_t stream, const void *params)
{
    const k_route *a = (const k_route *)params;
    const dim3 grid((score_rows(a) + 2 * SCORE_WARPS - 1) / (2 * SCORE_WARPS),
        (a->n + SCORE_TOKENS - 1) / SCORE_TOKENS);
    GPU_LAUNCH(score_experts, grid, dim3(SCORE_WARPS * GPU_WARP), 0, stream, *a);
    return cudaGetLastError();
}

extern "C" cudaError_t cuda_launch_choose_experts(cudaStream_t stream, const void *params)
{
    const k_route *a = (const k_route *)params;
    GPU_LAUNCH(choose_experts, dim3(a->n), dim3(GPU_WARP), a->n_experts * sizeof(float), stream, *a);
    return cudaGetLastError();
}
