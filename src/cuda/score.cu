/*
 * Who would be attended to: mass[row] = mean over a lane's heads of pool over queries of softmax over all
 * rows.
 *
 *     tiles    a block of threads a (lane, tile): maximum and sum of every query row            [lane][query
 *         row][tile]
 *     totals   a thread a query row: the tiles merged in ascending order
 *     mass     a block of threads a (lane, tile), a thread a row: its share in every query's total, pooled in
 *         order
 *
 * Scores are computed twice rather than kept. The order of every sum is score_lane's of
 * model/cpu/attention.c, so the mass, and with it every plan, is the same bits on both backends. Bound by
 * fused steps: 2 * head_dim a query and row.
 */
#include "cuda/attention.cuh"

typedef struct score_room {
    float *q, *s, *m, *l;
    uint16_t *rows;
} score_room;

static __host__ __device__ size_t score_room_bytes(uint32_t head_dim)
{
    return (size_t)GPU_QUERIES * (head_dim + GPU_TILE + 2) * 4 +
           2 * (size_t)GPU_CHUNK_ROWS * (head_dim + ROW_PAD) * 2;
}

static __device__ score_room score_room_of(unsigned char *shared, uint32_t head_dim)
{
    score_room r;
    r.q = (float *)(void *)shared;
    r.s = r.q + GPU_QUERIES * head_dim;
    r.m = r.s + GPU_QUERIES * GPU_TILE;
    r.l = r.m + GPU_QUERIES;
    r.rows = (uint16_t *)(void *)(r.l + GPU_QUERIES);
    return r;
}

/* Scores of query rows [first_q, first_q + n) of this lane with the tile's n_rows rows, in r.s. */
static __device__ void score_queries(
    const k_score *a, const score_room *r, uint32_t first_q, uint32_t n, uint32_t first, uint32_t n_rows)
{
    const uint32_t d = a->lists.head_dim;
    const float *from = a->queries + ((size_t)blockIdx.x * a->group * a->n_queries + first_q) * d;
    for (uint32_t i = threadIdx.x; i < n * d; i += blockDim.x) r->q[i] = from[i];
    __syncthreads();
    score_tile(&a->lists, a->lists.first_lane + blockIdx.x, first, n_rows, r->q, n, a->scale, r->rows, r->s);
}

static __device__ float *tile_state(const k_score *a, uint32_t lane, uint32_t m, uint32_t tile)
{
    return a->tiles + (((size_t)lane * a->group * a->n_queries + m) * a->max_tiles + tile) * 2;
}

static __global__ __launch_bounds__(ATTEND_THREADS, 2) void score_tiles(const k_score a)
{
    GPU_SHARED(shared);
    gpu_begin();
    const uint32_t lane = blockIdx.x, first = blockIdx.y * GPU_TILE, n_all = a.n_heads[lane] * a.n_queries;
    const uint32_t list_rows = a.lists.n_rows[a.lists.first_lane + lane], from = a.from[lane],
                   warp = threadIdx.x / GPU_WARP;
    if (first >= list_rows || first + GPU_TILE <= from) return;
    const uint32_t n_rows = gpu_least(list_rows - first, GPU_TILE), lo = from > first ? from - first : 0;
    const score_room r = score_room_of(shared, a.lists.head_dim);
    for (uint32_t first_q = 0; first_q < n_all; first_q += GPU_QUERIES) {
        const uint32_t n = gpu_least(n_all - first_q, GPU_QUERIES);
        score_queries(&a, &r, first_q, n, first, n_rows);
        for (uint32_t m = warp; m < n; m += ATTEND_THREADS / GPU_WARP) {
            float *state = tile_state(&a, lane, first_q + m, blockIdx.y);
            softmax_row(r.s + m * GPU_TILE, lo, n_rows, &state[0], &state[1]);
        }
        __syncthreads();
    }
}

static __global__ void score_totals(const k_score a)
{
    gpu_begin();
    const uint32_t m = blockIdx.x * blockDim.x + threadIdx.x, lane = blockIdx.y;
    if (m >= a.n_heads[lane] * a.n_queries) return;
    const uint32_t n_rows = a.lists.n_rows[a.lists.first_lane + lane];
    float max = a.rest[(size_t)lane * a.group * a.n_queries + m], sum = max == gpu_minus_infinity() ? 0 : 1;
    for (uint32_t tile = a.from[lane] / GPU_TILE; tile * GPU_TILE < n_rows; tile++) {
        const float *state = tile_state(&a, lane, m, tile);
        float both, before, now;
        if (max == gpu_minus_infinity() && state[0] == gpu_minus_infinity()) continue;
        gpu_merge_factors(max, state[0], &both, &before, &now);
        max = both;
        sum = fmaf(sum, before, state[1] * now);
    }
    float *total = a.totals + ((size_t)lane * a.group * a.n_queries + m) * 2;
    total[0] = max;
    total[1] = sum;
}

static __global__ __launch_bounds__(ATTEND_THREADS, 2) void score_mass(const k_score a)
{
    GPU_SHARED(shared);
    gpu_begin();
    const uint32_t lane = blockIdx.x, first = blockIdx.y * GPU_TILE, n_heads = a.n_heads[lane],
                   n_all = n_heads * a.n_queries;
    const uint32_t list_rows = a.lists.n_rows[a.lists.first_lane + lane], from = a.from[lane];
    if (first >= list_rows) return;
    const uint32_t n_rows = gpu_least(list_rows - first, GPU_TILE), row = threadIdx.x;
    const uint32_t lo = from > first ? from - first : 0;
    const bool read = n_all > 0 && from < list_rows && first + GPU_TILE > from;
    const score_room r = score_room_of(shared, a.lists.head_dim);
    const float share = 1.0f / (float)n_heads / (a.pool_max ? 1.0f : (float)a.n_queries);
    float mass = 0, pooled = 0;
    for (uint32_t first_q = 0; read && first_q < n_all; first_q += GPU_QUERIES) {
        const uint32_t n = gpu_least(n_all - first_q, GPU_QUERIES);
        score_queries(&a, &r, first_q, n, first, n_rows);
        if (threadIdx.x < n) {
            const float *state = tile_state(&a, lane, first_q + threadIdx.x, blockIdx.y);
            const float *total =
                a.totals + ((size_t)lane * a.group * a.n_queries + first_q + threadIdx.x) * 2;
            r.m[threadIdx.x] = state[0];
            r.l[threadIdx.x] = gpu_exp(state[0] - total[0]) / total[1];
        }
        __syncthreads();
        for (uint32_t m = 0; m < n && row < n_rows; m++) {
            const float p = row >= lo ? gpu_exp(r.s[m * GPU_TILE + row] - r.m[m]) : 0, part = p * r.l[m];
            pooled = !a.pool_max ? pooled + part : part > pooled ? part : pooled;
            if ((first_q + m + 1) % a.n_queries) continue;
            mass += pooled * share; /* a head is through */
            pooled = 0;
        }
        __syncthreads();
    }
    if (row < n_rows) a.mass[(size_t)lane * a.max_rows + first + row] = mass;
}

/* A thread a section: q's positive numbers with the largest keys, its negative ones with the smallest. */
static __global__ void bound_sections(const k_bound a)
{
    GPU_SHARED(shared);
    gpu_begin();
    const uint32_t d = a.head_dim, head = blockIdx.x, token = blockIdx.z,
                   section = blockIdx.y * blockDim.x + threadIdx.x;
    float *above = (float *)(void *)shared, *below = above + (size_t)a.group * d;
    const float *q = a.q.data + token * a.q.stride + (size_t)head * a.group * d;
    for (uint32_t i = threadIdx.x; i < a.group * d; i += blockDim.x) {
        above[i] = q[i] > 0 ? q[i] : 0;
        below[i] = q[i] > 0 ? 0 : q[i];
    }
    __syncthreads();
    if (section >= a.n_sections) return;
    const uint16_t *profile = a.profiles + ((size_t)head * a.n_sections + section) * 2 * d;
    for (uint32_t g = 0; g < a.group; g++) {
        float largest, smallest;
        scores_of<1>(above + g * d, 0, profile, d, a.scale, &largest);
        scores_of<1>(below + g * d, 0, profile + d, d, a.scale, &smallest);
        a.bound[(((size_t)head * a.n + token) * a.group + g) * a.n_sections + section] = largest + smallest;
    }
}

static cudaError_t launch_tiles(cudaStream_t stream, const k_score *a, void (*kernel)(k_score))
{
    const size_t shared = score_room_bytes(a->lists.head_dim);
    const cudaError_t e = gpu_allow_shared(kernel, shared);
    if (e != cudaSuccess) return e;
    GPU_LAUNCH(kernel, dim3(a->lists.n_lanes, a->max_tiles), dim3(ATTEND_THREADS), shared, stream, *a);
    return cudaGetLastError();
}

extern "C" cudaError_t cuda_launch_score_tiles(cudaStream_t stream, const void *params)
{
    return launch_tiles(stream, (const k_score *)params, score_tiles);
}

extern "C" cudaError_t cuda_launch_score_totals(cudaStream_t stream, const void *params)
{
    const k_score *a = (const k_score *)params;
    GPU_LAUNCH(
        score_totals, dim3((a->group * a->n_queries + 63) / 64, a->lists.n_lanes), dim3(64), 0, stream, *a);
    return cudaGetLastError();
}

extern "C" cudaError_t cuda_launch_score_mass(cudaStream_t stream, const void *params)
{
    return launch_tiles(stream, (const k_score *)params, score_mass);
}

extern "C" cudaError_t cuda_launch_bound(cudaStream_t stream, const void *params)
{
    const k_bound *a = (const k_bound *)params;
    const size_t shared = 2 * (size_t)a->group * a->head_dim * sizeof(float);
    const cudaError_t e = gpu_allow_shared(bound_sections, shared);
    if (e != cudaSuccess) return e;
    GPU_LAUNCH(
        bound_sections, dim3(a->n_lanes, (a->n_sections + 127) / 128, a->n), dim3(128), shared, stream, *a);
    return cudaGetLastError();
}
