/*
 * What attention and scoring share: rows of a live list in shared memory, and scores of query rows with them.
 *
 * Rows are gathered in chunks of 64 by cp.async, 16 bytes a thread, two chunks in flight. A thread has one
 * row and every fourth query, all of its queries at once: sixteen partial sums of the products, added by
 * halves, as scores_ref of kernels_ref.c.
 */
#ifndef KVIST_CUDA_ATTENTION_CUH
#define KVIST_CUDA_ATTENTION_CUH

#include "cuda/gpu.cuh"

enum {
    ATTEND_THREADS = 256,
    ATTEND_LANES = ATTEND_THREADS / GPU_CHUNK_ROWS, /* threads that share a row */
    ROW_PAD = 8, /* halves between rows, so that 16-byte reads of neighbours lie in different banks */
};

static __device__ __forceinline__ uint32_t row_stride(uint32_t head_dim)
{
    return head_dim + ROW_PAD;
}

/* The first ordinal whose token index is at least `index`. */
static __device__ uint32_t ordinal_of(const uint32_t *indices, uint32_t n, uint32_t index)
{
    uint32_t from = 0;
    while (n > 0) {
        const uint32_t half = n / 2;
        if (indices[from + half] < index) {
            from += half + 1;
            n -= half + 1;
        } else {
            n = half;
        }
    }
    return from;
}

/* The ordinals that a token of the batch sees in a lane: [lo, hi). */
static __device__ void attention_visible(
    const k_attention *a, uint32_t lane, uint32_t token, uint32_t *lo, uint32_t *hi)
{
    const uint32_t *indices = a->lists.index + lane * a->lists.cap;
    const uint32_t n_rows = a->lists.n_rows[lane], own = n_rows - a->n + token;
    *hi = own + 1;
    *lo = 0;
    if (!a->window) return;
    const uint32_t index = indices[own];
    if (index >= a->window) *lo = ordinal_of(indices, n_rows, index - a->window + 1);
}

/* What a head's maximum and sum begin with: its sink, where it has one, is merged before any tile. */
static __device__ void start_sums(const k_attention *a, uint32_t head, float *max, float *sum)
{
    *max = a->sinks ? a->sinks[head] : gpu_minus_infinity();
    *sum = a->sinks ? 1 : 0;
}

static __device__ void put_sums(const k_attention *a, uint32_t token, uint32_t head, float max, float sum)
{
    if (!a->sums.data) return;
    float *to = a->sums.data + token * a->sums.stride + 2 * (size_t)head;
    to[0] = max;
    to[1] = sum;
}

/*
 * Keys (or values) of ordinals [first, first + n) on their way into `to`; one group of copies, also when n is
 * 0.
 */
static __device__ void fetch_rows(
    const gpu_lists *l, uint32_t lane, uint32_t first, uint32_t n, bool values, uint16_t *to)
{
    const uint32_t per_row = l->head_dim / 8, d = l->head_dim;
    for (uint32_t i = threadIdx.x; i < n * per_row; i += blockDim.x) {
        const uint32_t row = i / per_row, part = i % per_row;
        const uint16_t *from = gpu_row(l, lane, first + row) + (values ? d : 0) + 8 * part;
        gpu_copy<16>(to + row * row_stride(d) + 8 * part, from);
    }
    gpu_copy_commit();
}

/* Added by halves; numbered by constants, or they would not stay in registers. */
static __device__ __forceinline__ float sum_of_16(const float s[16])
{
    float eight[8], four[4];
    GPU_UNROLL
    for (int i = 0; i < 8; i++) eight[i] = s[i] + s[i + 8];
    GPU_UNROLL
    for (int i = 0; i < 4; i++) four[i] = eight[i] + eight[i + 4];
    return (four[0] + four[2]) + (four[1] + four[3]);
}

/*
 * ret[i] = q[i] . key * scale for n query rows in shared memory, `step` floats apart and the same for a whole
 * warp: a number of the key is converted once for all of them.
 */
template <int n>
static __device__ __forceinline__ void scores_of(
    const float *q, uint32_t step, const uint16_t *key, uint32_t head_dim, float scale, float ret[n])
{
    float sums[n][16];
    GPU_UNROLL
    for (int i = 0; i < 16 * n; i++) sums[i / 16][i % 16] = 0;
    for (uint32_t at = 0; at < head_dim; at += 16) {
        GPU_UNROLL
        for (int eight = 0; eight < 16; eight += 8) {
            const uint4 halves = *(const uint4 *)(const void *)(key + at + eight);
            const uint32_t words[4] = {halves.x, halves.y, halves.z, halves.w};
            float k[8];
            GPU_UNROLL
            for (int i = 0; i < 8; i++) k[i] = gpu_f16_to_f32((uint16_t)(words[i / 2] >> i % 2 * 16));
            GPU_UNROLL
            for (int i = 0; i < 2 * n; i++) {
                const uint4 v = *(const uint4 *)(const void *)(q + i / 2 * step + at + eight + i % 2 * 4);
                float *s = sums[i / 2] + eight + i % 2 * 4;
                const float *by = k + i % 2 * 4;
                s[0] = fmaf(__uint_as_float(v.x), by[0], s[0]);
                s[1] = fmaf(__uint_as_float(v.y), by[1], s[1]);
                s[2] = fmaf(__uint_as_float(v.z), by[2], s[2]);
                s[3] = fmaf(__uint_as_float(v.w), by[3], s[3]);
            }
        }
    }
    GPU_UNROLL
    for (int i = 0; i < n; i++) ret[i] = sum_of_16(sums[i]) * scale;
}

/* A thread's queries, of which there are n, with its row; one every ATTEND_LANES rows of s. */
template <int n>
static __device__ __forceinline__ void score_row(
    const float *q, const uint16_t *key, uint32_t head_dim, float scale, float *s)
{
    float scores[n];
    scores_of<n>(q, ATTEND_LANES * head_dim, key, head_dim, scale, scores);
    GPU_UNROLL
    for (int i = 0; i < n; i++) s[i * ATTEND_LANES * GPU_TILE] = scores[i];
}

/*
 * Scores of n_q query rows with a tile's n rows: s[m][GPU_TILE]. `rows`: room for two chunks. Ends with a
 * barrier.
 */
static __device__ void score_tile(const gpu_lists *l, uint32_t lane, uint32_t first, uint32_t n,
    const float *q, uint32_t n_q, float scale, uint16_t *rows, float *s)
{
    const uint32_t d = l->head_dim, room = GPU_CHUNK_ROWS * row_stride(d);
    const uint32_t mine = threadIdx.x % GPU_CHUNK_ROWS, which = threadIdx.x / GPU_CHUNK_ROWS;
    const uint32_t n_chunks = (n + GPU_CHUNK_ROWS - 1) / GPU_CHUNK_ROWS;
    fetch_rows(l, lane, first, gpu_least(n, GPU_CHUNK_ROWS), false, rows);
    for (uint32_t c = 0; c < n_chunks; c++) {
        const uint32_t from = c * GPU_CHUNK_ROWS, next = from + GPU_CHUNK_ROWS;
        const uint32_t n_next = next >= n ? 0 : gpu_least(n - next, GPU_CHUNK_ROWS);
        fetch_rows(l, lane, first + next, n_next, false, rows + (c + 1) % 2 * room);
        gpu_copy_wait<1>();
        __syncthreads();
        if (from + mine < n && which < n_q) {
            const uint16_t *key = rows + c % 2 * room + mine * row_stride(d);
            const float *from_q = q + which * d;
            float *to = s + which * GPU_TILE + from + mine;
            switch ((n_q - which + ATTEND_LANES - 1) / ATTEND_LANES) {
            case 1: score_row<1>(from_q, key, d, scale, to); break;
            case 2: score_row<2>(from_q, key, d, scale, to); break;
            case 3: score_row<3>(from_q, key, d, scale, to); break;
            default: score_row<4>(from_q, key, d, scale, to); break;
            }
        }
        __syncthreads();
    }
    gpu_copy_wait<0>();
    __syncthreads();
}

/*
 * By a warp: s[lo, hi) of one query row becomes exp(s - max), the rest of the tile 0; sums of ordinals i % 16
 * by lanes, added by halves: softmax_ref of kernels_ref.c. Lane 0 writes max and sum.
 */
static __device__ void softmax_row(float *s, uint32_t lo, uint32_t hi, float *max_at, float *sum_at)
{
    const uint32_t lane = threadIdx.x % GPU_WARP;
    float max = gpu_minus_infinity(), sum = 0;
    for (uint32_t i = lo + lane; i < hi; i += GPU_WARP) max = s[i] > max ? s[i] : max;
    max = gpu_warp_max(max);
    for (uint32_t i = lane; i < GPU_TILE; i += GPU_WARP) s[i] = i >= lo && i < hi ? gpu_exp(s[i] - max) : 0;
    __syncwarp();
    if (lane < 16)
        for (uint32_t i = lane; i < GPU_TILE; i += 16) sum += s[i];
    sum = gpu_add_by_halves(sum);
    if (lane == 0) {
        *max_at = max;
        *sum_at = sum;
    }
}

#endif
