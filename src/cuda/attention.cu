/*
 * Attention over live lists: out[t][h] = softmax(q[t][h] . K * scale) V over the rows that token t sees.
 *
 * A block of threads takes one lane (KV head) and up to 16 query rows (query row = token * group + head of
 * the lane) through tiles of 256 ordinals, counted from 0. For every tile there is one state (maximum, sum,
 * output); states are merged in ascending order, which makes a row's result the same bits for every batch and
 * split, and the CPU's.
 *
 *     few tokens     the tiles are split over blocks of threads, states go to memory, `merge` adds them up
 *     many tokens    a block of threads walks all tiles and merges in shared memory
 *
 * The grid is sized without the length of the lists, which is read here: a graph holds while the context
 * grows. Bound by the bytes of the rows for few tokens, by fused steps for many.
 */
#include "cuda/activations.cuh"
#include "cuda/attention.cuh"

enum {
    MERGE_TILES = 256, /* states whose factors wait in shared memory */
    /* query rows of which a thread holds two elements: GPU_QUERIES / the fewest groups of threads (2) */
    OUT_MAX =
        8
};

/* Shared memory, in floats. */
typedef struct room {
    float *q, *s, *o;       /* [GPU_QUERIES][head_dim], [GPU_QUERIES][GPU_TILE], [GPU_QUERIES][head_dim] */
    float *m, *l, *m2, *l2; /* [GPU_QUERIES]: so far, and the tile's */
    uint32_t *lo, *hi;      /* [GPU_QUERIES]: ordinals that a query row sees */
    uint16_t *rows;         /* two chunks */
} room;

static __host__ __device__ size_t room_bytes(uint32_t head_dim)
{
    return (size_t)GPU_QUERIES * (2 * head_dim + GPU_TILE + 6) * 4 +
           2 * (size_t)GPU_CHUNK_ROWS * (head_dim + ROW_PAD) * 2;
}

static __device__ room room_of(unsigned char *shared, uint32_t head_dim)
{
    room r;
    r.q = (float *)(void *)shared;
    r.s = r.q + GPU_QUERIES * head_dim;
    r.o = r.s + GPU_QUERIES * GPU_TILE;
    r.m = r.o + GPU_QUERIES * head_dim;
    r.l = r.m + GPU_QUERIES;
    r.m2 = r.l + GPU_QUERIES;
    r.l2 = r.m2 + GPU_QUERIES;
    r.lo = (uint32_t *)(void *)(r.l2 + GPU_QUERIES);
    r.hi = r.lo + GPU_QUERIES;
    r.rows = (uint16_t *)(void *)(r.hi + GPU_QUERIES);
    return r;
}

/*
 * o[m][dims of this thread] of one tile, in registers: rows ascending, fused; then into the sum so far (o_sum
 * in shared memory), or to `state`.
 */
static __device__ void add_values(const k_attention *a, const room *r, uint32_t lane, uint32_t first,
    uint32_t n, uint32_t n_q, float *states, size_t state_step)
{
    const gpu_lists *l = &a->lists;
    const uint32_t d = l->head_dim, pairs = d / 2, n_groups = ATTEND_THREADS / pairs,
                   chunk_room = GPU_CHUNK_ROWS * row_stride(d);
    const uint32_t pair = threadIdx.x % pairs, which = threadIdx.x / pairs;
    float out[OUT_MAX][2];
    for (int i = 0; i < OUT_MAX; i++) out[i][0] = out[i][1] = 0;

    fetch_rows(l, lane, first, gpu_least(n, GPU_CHUNK_ROWS), true, r->rows);
    for (uint32_t from = 0, c = 0; from < n; from += GPU_CHUNK_ROWS, c++) {
        const uint32_t next = from + GPU_CHUNK_ROWS, n_here = gpu_least(n - from, GPU_CHUNK_ROWS);
        const uint32_t n_next = next >= n ? 0 : gpu_least(n - next, GPU_CHUNK_ROWS);
        fetch_rows(l, lane, first + next, n_next, true, r->rows + (c + 1) % 2 * chunk_room);
        gpu_copy_wait<1>();
        __syncthreads();
        /* Four rows at a time, those behind the last left out. */
        const uint16_t *values = r->rows + c % 2 * chunk_room + 2 * pair;
        for (uint32_t row = 0; row < n_here && which < n_groups; row += 4) {
            float v[4][2];
            GPU_UNROLL
            for (uint32_t k = 0; k < 4; k++) {
                const uint32_t both = *(
                    const uint32_t *)(const void *)(values + gpu_least(row + k, n_here - 1) * row_stride(d));
                v[k][0] = gpu_f16_to_f32((uint16_t)both);
                v[k][1] = gpu_f16_to_f32((uint16_t)(both >> 16));
            }
            GPU_UNROLL
            for (uint32_t i = 0; i < OUT_MAX; i++) {
                const uint32_t m = which + i * n_groups;
                if (m >= n_q) break;
                const uint4 p = *(const uint4 *)(const void *)(r->s + m * GPU_TILE + from + row);
                const float weights[4] = {
                    __uint_as_float(p.x), __uint_as_float(p.y), __uint_as_float(p.z), __uint_as_float(p.w)};
                GPU_UNROLL
                for (uint32_t k = 0; k < 4; k++) {
                    if (row + k >= n_here) break;
                    out[i][0] = fmaf(weights[k], v[k][0], out[i][0]);
                    out[i][1] = fmaf(weights[k], v[k][1], out[i][1]);
                }
            }
        }
        __syncthreads();
    }
    gpu_copy_wait<0>();
    if (which >= n_groups) return;
    GPU_UNROLL
    for (uint32_t i = 0; i < OUT_MAX; i++) {
        const uint32_t m = which + i * n_groups;
        if (m >= n_q) break;
        for (uint32_t k = 0; k < 2; k++) {
            const uint32_t dim = 2 * pair + k;
            if (states) {
                states[m * state_step + 2 + dim] = out[i][k];
                continue;
            }
            float max, before, now;
            if (r->m[m] == gpu_minus_infinity() && r->m2[m] == gpu_minus_infinity()) continue;
            gpu_merge_factors(r->m[m], r->m2[m], &max, &before, &now);
            r->o[m * d + dim] = fmaf(r->o[m * d + dim], before, out[i][k] * now);
        }
    }
}

/*
 * One tile: scores, softmax, values. In split form the state goes to memory, else it is merged into the sum
 * so far.
 */
static __device__ void attend_tile(const k_attention *a, const room *r, uint32_t lane, uint32_t tile,
    uint32_t n_q, float *states, size_t state_step)
{
    const uint32_t first = tile * GPU_TILE, n_rows = a->lists.n_rows[lane], warp = threadIdx.x / GPU_WARP;
    const uint32_t n = gpu_least(n_rows - first, GPU_TILE);
    score_tile(&a->lists, lane, first, n, r->q, n_q, a->scale, r->rows, r->s);
    for (uint32_t m = warp; m < n_q; m += ATTEND_THREADS / GPU_WARP) {
        const uint32_t lo = r->lo[m] > first ? r->lo[m] - first : 0;
        uint32_t hi = r->hi[m] > first ? r->hi[m] - first : 0;
        if (hi > n) hi = n;
        softmax_row(r->s + m * GPU_TILE, lo, hi, &r->m2[m], &r->l2[m]);
    }
    __syncthreads();
    add_values(a, r, lane, first, n, n_q, states, state_step);
    __syncthreads();
    if (threadIdx.x < n_q) {
        const uint32_t m = threadIdx.x;
        if (states) {
            states[m * state_step] = r->m2[m];
            states[m * state_step + 1] = r->l2[m];
        } else if (!(r->m[m] == gpu_minus_infinity() && r->m2[m] == gpu_minus_infinity())) {
            float max, before, now;
            gpu_merge_factors(r->m[m], r->m2[m], &max, &before, &now);
            r->m[m] = max;
            r->l[m] = fmaf(r->l[m], before, r->l2[m] * now);
        }
    }
    __syncthreads();
}

/* grid: lanes of the layer, query rows / GPU_QUERIES, splits */
static __global__ __launch_bounds__(ATTEND_THREADS, 2) void attend(const k_attention a)
{
    GPU_SHARED(shared);
    gpu_begin();
    const uint32_t d = a.lists.head_dim, group = a.n_head / a.lists.n_lanes, n_all = a.n * group;
    const uint32_t lane = a.lists.first_lane + blockIdx.x, first_q = blockIdx.y * GPU_QUERIES;
    const uint32_t n_q = gpu_least(n_all - first_q, GPU_QUERIES);
    const room r = room_of(shared, d);

    for (uint32_t i = threadIdx.x; i < n_q * d; i += blockDim.x) {
        const uint32_t m = first_q + i / d, token = m / group, head = blockIdx.x * group + m % group;
        r.q[i] = a.q.data[token * a.q.stride + (size_t)head * d + i % d];
        r.o[i] = 0;
    }
    if (threadIdx.x < n_q) {
        attention_visible(&a, lane, (first_q + threadIdx.x) / group, &r.lo[threadIdx.x], &r.hi[threadIdx.x]);
        start_sums(&a, blockIdx.x * group + (first_q + threadIdx.x) % group, &r.m[threadIdx.x], &r.l[threadIdx.x]);
    }
    __syncthreads();

    /* Later query rows see later ordinals: the first row's beginning, the last row's end. */
    const uint32_t first_tile = r.lo[0] / GPU_TILE, n_tiles = (r.hi[n_q - 1] + GPU_TILE - 1) / GPU_TILE;
    const size_t state = 2 + d, state_step = state * a.max_tiles;
    for (uint32_t tile = first_tile + blockIdx.z; tile < n_tiles; tile += a.n_splits) {
        float *states =
            a.states ? a.states + ((size_t)blockIdx.x * n_all + first_q) * state_step + tile * state : NULL;
        attend_tile(&a, &r, lane, tile, n_q, states, state_step);
    }
    if (a.states) return;
    if (threadIdx.x < n_q) {
        const uint32_t m = first_q + threadIdx.x;
        put_sums(&a, m / group, blockIdx.x * group + m % group, r.m[threadIdx.x], r.l[threadIdx.x]);
    }
    for (uint32_t i = threadIdx.x; i < n_q * d; i += blockDim.x) {
        const uint32_t m = first_q + i / d, token = m / group, head = blockIdx.x * group + m % group;
        a.out.data[token * a.out.stride + (size_t)head * d + i % d] = r.o[i] / r.l[i / d];
    }
}

/*
 * By a warp: what each of n states of a query row is worth when it is added to the ones before it
 * (gpu_merge_factors), with the maximum so far; a state that changes nothing has `before` below 0. Maxima are
 * found by a scan: which of them is taken first makes no bits.
 */
static __device__ float merge_factors(
    const float *states, size_t step, uint32_t n, float max, float *before, float *now, float *sums)
{
    const uint32_t lane = threadIdx.x % GPU_WARP;
    for (uint32_t from = 0; from < n; from += GPU_WARP) {
        const bool is_there = from + lane < n;
        const float *s = states + (from + (is_there ? lane : 0)) * step;
        const float own = is_there ? s[0] : gpu_minus_infinity();
        float so_far = own;
        for (int by = 1; by < GPU_WARP; by *= 2) {
            const float left = __shfl_sync(GPU_ALL, so_far, (int)lane - by);
            if ((int)lane >= by) so_far = left > so_far ? left : so_far;
        }
        so_far = max > so_far ? max : so_far;
        const float left = __shfl_sync(GPU_ALL, so_far, (int)lane - 1);
        const float last = lane ? left : max;
        if (is_there) {
            const bool is_empty = last == gpu_minus_infinity() && own == gpu_minus_infinity();
            before[from + lane] = is_empty ? -1 : gpu_exp(last - so_far);
            now[from + lane] = gpu_exp(own - so_far);
            sums[from + lane] = s[1];
        }
        max = __shfl_sync(GPU_ALL, so_far, GPU_WARP - 1);
    }
    return max;
}

/*
 * A query row's states in ascending order of tiles, and where that is asked for the result as activations.
 * grid: lanes of the layer, query rows; a thread an element.
 */
static __global__ void merge_states(const k_attention a)
{
    GPU_SHARED(shared);
    gpu_begin();
    float *before = (float *)(void *)shared, *now = before + MERGE_TILES, *sums = now + MERGE_TILES;
    const uint32_t d = a.lists.head_dim, group = a.n_head / a.lists.n_lanes, m = blockIdx.y,
                   token = m / group;
    const uint32_t lane = a.lists.first_lane + blockIdx.x, head = blockIdx.x * group + m % group,
                   dim = threadIdx.x;
    uint32_t lo, hi;
    /*
     * The tiles that this query row's block of threads went through: its neighbours' too, whose empty states
     * change nothing.
     */
    attention_visible(&a, lane, token, &lo, &hi);
    const uint32_t first = lo / GPU_TILE, last = (hi + GPU_TILE - 1) / GPU_TILE;
    const size_t state = 2 + d;
    const float *at = a.states + ((size_t)blockIdx.x * a.n * group + m) * state * a.max_tiles;
    float max, sum, o = 0;
    start_sums(&a, head, &max, &sum);
    for (uint32_t from = first; from < last; from += MERGE_TILES) {
        const uint32_t n = gpu_least(last - from, MERGE_TILES);
        if (threadIdx.x < GPU_WARP) max = merge_factors(at + from * state, state, n, max, before, now, sums);
        __syncthreads();
        for (uint32_t i = 0; i < n && dim < d; i++) {
            if (before[i] < 0) continue;
            sum = fmaf(sum, before[i], sums[i] * now[i]);
            o = fmaf(o, before[i], at[(from + i) * state + 2 + dim] * now[i]);
        }
        __syncthreads();
    }
    if (dim == 0) put_sums(&a, token, head, max, sum);
    if (dim >= d) return;
    const float x = o / sum;
    a.out.data[token * a.out.stride + (size_t)head * d + dim] = x;
    if (!a.quantised.q) return;
    const uint32_t n_blocks = a.n_head * d / GPU_BLOCK;
    quant_block(&a.quantised, token, (head * d + dim) / GPU_BLOCK, n_blocks, x);
    end_row(&a.quantised, token, 1, n_blocks);
}

extern "C" cudaError_t cuda_launch_attention(cudaStream_t stream, const void *params)
{
    const k_attention *a = (const k_attention *)params;
    const uint32_t n_q = a->n * (a->n_head / a->lists.n_lanes);
    const size_t shared = room_bytes(a->lists.head_dim);
    const cudaError_t e = gpu_allow_shared(attend, shared);
    if (e != cudaSuccess) return e;
    const dim3 grid(a->lists.n_lanes, (n_q + GPU_QUERIES - 1) / GPU_QUERIES, a->states ? a->n_splits : 1);
    GPU_LAUNCH(attend, grid, dim3(ATTEND_THREADS), shared, stream, *a);
    return cudaGetLastError();
}

extern "C" cudaError_t cuda_launch_merge(cudaStream_t stream, const void *params)
{
    const k_attention *a = (const k_attention *)params;
    const uint32_t n_q = a->n * (a->n_head / a->lists.n_lanes),
                   n_threads = (a->lists.head_dim + 31) / 32 * 32;
    GPU_LAUNCH(merge_states, dim3(a->lists.n_lanes, n_q), dim3(n_threads), 3 * MERGE_TILES * sizeof(float),
        stream, *a);
    return cudaGetLastError();
}
