/*
 * Attention of many tokens on the tensor cores, for cuda:bf16: products of halves with sums in F32, so not
 * the CPU's bits; a query row's are the same in every batch. Heads of 64 and 128.
 *
 * A block of threads takes 64 query rows of a lane (query row = token * group + head of the lane), 16 a warp,
 * through the rows that they see, 64 at a time: keys and values are gathered by cp.async one chunk ahead;
 * scores, sums and output stay in registers (FlashAttention-2, Dao 2023). Numerators are powers of two: the
 * scale of queries has log2(e) in it.
 */
#include "cuda/attention.cuh"
#include "cuda/tensor.cuh"

enum { WIDE_WARPS = 4, WIDE_QUERIES = 16 * WIDE_WARPS, WIDE_THREADS = GPU_WARP * WIDE_WARPS };

/* Rows 0 and 1 of a thread: query rows g and g + 8 of its warp. */
typedef struct query_row {
    const float *q;
    float *out;
    uint32_t token, head;
    uint32_t lo, hi; /* ordinals that it sees */
    float max, sum;  /* sum: this thread's share */
} query_row;

static __device__ query_row row_of(const k_attention *a, uint32_t m)
{
    const uint32_t group = a->n_head / a->lists.n_lanes, token = m / group, d = a->lists.head_dim;
    const size_t at = (size_t)(blockIdx.x * group + m % group) * d;
    query_row r = {0, 0, token, blockIdx.x * group + m % group, 0, 0, gpu_minus_infinity(), 0};
    if (m >= a->n * group) return r;
    r.q = a->q.data + token * a->q.stride + at;
    r.out = a->out.data + token * a->out.stride + at;
    attention_visible(a, a->lists.first_lane + blockIdx.x, token, &r.lo, &r.hi);
    return r;
}

/*
 * Keys and values of ordinals [first, first + n), two groups of copies; of values that are not there, zeros.
 */
static __device__ void fetch_chunk(
    const gpu_lists *l, uint32_t lane, uint32_t first, uint32_t n, uint16_t *keys, uint16_t *values)
{
    const uint32_t stride = row_stride(l->head_dim);
    fetch_rows(l, lane, first, n, false, keys);
    fetch_rows(l, lane, first, n, true, values);
    for (uint32_t i = n * stride + threadIdx.x; n && i < GPU_CHUNK_ROWS * stride; i += blockDim.x)
        values[i] = 0;
}

/* Scores of a warp's 16 query rows with the chunk's rows: s[i] of rows 8 i and up. */
template <int d>
static __device__ __forceinline__ void score_chunk(
    const uint32_t q[d / 16][4], const uint16_t *keys, float s[GPU_CHUNK_ROWS / 8][4])
{
    const uint32_t g = threadIdx.x % GPU_WARP / 4, t = threadIdx.x % 4;
    GPU_UNROLL
    for (int i = 0; i < GPU_CHUNK_ROWS / 8; i++) {
        const uint32_t *key = (const uint32_t *)(const void *)(keys + (8 * i + g) * row_stride(d)) + t;
        s[i][0] = s[i][1] = s[i][2] = s[i][3] = 0;
        GPU_UNROLL
        for (int k = 0; k < d / 16; k++) {
            const uint32_t b[2] = {key[8 * k], key[8 * k + 4]};
            gpu_multiply_halves(s[i], q[k], b);
        }
    }
}

/*
 * What a query row does not see is out; scores become numerators over a maximum that may grow. Returns what
 * is before is worth.
 */
static __device__ __forceinline__ float soften(
    query_row *r, int which, uint32_t first, float s[GPU_CHUNK_ROWS / 8][4])
{
    const uint32_t t = threadIdx.x % 4;
    float most = r->max;
    GPU_UNROLL
    for (int i = 0; i < GPU_CHUNK_ROWS / 8; i++) GPU_UNROLL
    for (int k = 0; k < 2; k++) {
        const uint32_t ordinal = first + 8 * (uint32_t)i + 2 * t + (uint32_t)k;
        float *x = &s[i][2 * which + k];
        if (ordinal < r->lo || ordinal >= r->hi) *x = gpu_minus_infinity();
        most = *x > most ? *x : most;
    }
    for (int other = 1; other < 4; other *= 2) {
        const float theirs = __shfl_xor_sync(GPU_ALL, most, other);
        most = theirs > most ? theirs : most;
    }
    const float base = most == gpu_minus_infinity() ? 0 : most, before = exp2f(r->max - base);
    r->max = most;
    r->sum *= before;
    GPU_UNROLL
    for (int i = 0; i < GPU_CHUNK_ROWS / 8; i++) GPU_UNROLL
    for (int k = 0; k < 2; k++) {
        float *x = &s[i][2 * which + k];
        *x = exp2f(*x - base);
        r->sum += *x;
    }
    return before;
}

/* out += numerators * values; out[i] of dimensions 8 i and up. */
template <int d>
static __device__ __forceinline__ void add_chunk(
    const float s[GPU_CHUNK_ROWS / 8][4], const uint16_t *values, float out[d / 8][4])
{
    const uint32_t lane = threadIdx.x % GPU_WARP;
    GPU_UNROLL
    for (int j = 0; j < GPU_CHUNK_ROWS / 16; j++) {
        const float *x = s[2 * j], *y = s[2 * j + 1];
        const uint32_t a[4] = {gpu_pack_halves(x[0], x[1]), gpu_pack_halves(x[2], x[3]),
            gpu_pack_halves(y[0], y[1]), gpu_pack_halves(y[2], y[3])};
        const uint16_t *row = values + (16 * j + lane % 16) * row_stride(d) + lane / 16 * 8;
        GPU_UNROLL
        for (int i = 0; i < d / 8; i += 2) {
            uint32_t b[4];
            gpu_load_turned(b, row + 8 * i);
            gpu_multiply_halves(out[i], a, b);
            gpu_multiply_halves(out[i + 1], a, b + 2);
        }
    }
}

/* grid: lanes of the layer, query rows / WIDE_QUERIES */
template <int d> static __global__ __launch_bounds__(WIDE_THREADS) void attend_wide(const k_attention a)
{
    GPU_SHARED(shared);
    gpu_begin();
    uint16_t *rows = (uint16_t *)(void *)shared;
    const uint32_t g = threadIdx.x % GPU_WARP / 4, t = threadIdx.x % 4, room = GPU_CHUNK_ROWS * row_stride(d);
    const uint32_t lane = a.lists.first_lane + blockIdx.x, group = a.n_head / a.lists.n_lanes;
    const uint32_t first_q = blockIdx.y * WIDE_QUERIES, mine = first_q + threadIdx.x / GPU_WARP * 16 + g;
    const uint32_t last_q = gpu_least(first_q + WIDE_QUERIES, a.n * group) - 1;
    query_row r[2] = {row_of(&a, mine), row_of(&a, mine + 8)};
    const float scale = a.scale * 1.4426950408889634f;
    uint32_t q[d / 16][4];
    float out[d / 8][4];
    GPU_UNROLL
    for (int k = 0; k < 4 * (d / 16); k++) {
        const float *from = r[k % 2].q ? r[k % 2].q + k / 4 * 16 + k % 4 / 2 * 8 + 2 * t : NULL;
        q[k / 4][k % 4] = from ? gpu_pack_halves(from[0] * scale, from[1] * scale) : 0;
    }
    GPU_UNROLL
    for (int i = 0; i < 4 * (d / 8); i++) out[i / 4][i % 4] = 0;

    /* Later query rows see later ordinals: the first row's beginning, the last row's end. */
    uint32_t begin, end, unused;
    attention_visible(&a, lane, first_q / group, &begin, &unused);
    attention_visible(&a, lane, last_q / group, &unused, &end);
    begin = begin / GPU_CHUNK_ROWS * GPU_CHUNK_ROWS;
    fetch_chunk(&a.lists, lane, begin, gpu_least(end - begin, GPU_CHUNK_ROWS), rows, rows + 2 * room);
    for (uint32_t first = begin, side = 0; first < end; first += GPU_CHUNK_ROWS, side ^= 1) {
        const uint32_t next = first + GPU_CHUNK_ROWS;
        const uint32_t n_next = next >= end ? 0 : gpu_least(end - next, GPU_CHUNK_ROWS);
        uint16_t *keys = rows + side * room, *values = rows + (2 + side) * room;
        fetch_chunk(&a.lists, lane, next, n_next, rows + (side ^ 1) * room, rows + (2 + (side ^ 1)) * room);
        gpu_copy_wait<2>();
        __syncthreads();
        float s[GPU_CHUNK_ROWS / 8][4];
        score_chunk<d>(q, keys, s);
        const float before[2] = {soften(&r[0], 0, first, s), soften(&r[1], 1, first, s)};
        GPU_UNROLL
        for (int i = 0; i < 4 * (d / 8); i++) out[i / 4][i % 4] *= before[i % 4 / 2];
        add_chunk<d>(s, values, out);
        __syncthreads();
    }
    gpu_copy_wait<0>();
    GPU_UNROLL
    for (int k = 0; k < 2; k++) {
        float sum = r[k].sum;
        for (int other = 1; other < 4; other *= 2) sum += __shfl_xor_sync(GPU_ALL, sum, other);
        if (!r[k].out) continue;
        if (t == 0) put_sums(&a, r[k].token, r[k].head, r[k].max * 0.6931471805599453f, sum); /* of powers of 2 */
        GPU_UNROLL
        for (int i = 0; i < 2 * (d / 8); i++)
            r[k].out[i / 2 * 8 + 2 * t + i % 2] = out[i / 2][2 * k + i % 2] / sum;
    }
}

template <int d> static cudaError_t launch_wide(cudaStream_t stream, const k_attention *a)
{
    const uint32_t n_q = a->n * (a->n_head / a->lists.n_lanes);
    const size_t shared = 4 * (size_t)GPU_CHUNK_ROWS * row_stride(d) * sizeof(uint16_t);
    const cudaError_t e = gpu_allow_shared(attend_wide<d>, shared);
    if (e != cudaSuccess) return e;
    const dim3 grid(a->lists.n_lanes, (n_q + WIDE_QUERIES - 1) / WIDE_QUERIES);
    GPU_LAUNCH(attend_wide<d>, grid, dim3(WIDE_THREADS), shared, stream, *a);
    return cudaGetLastError();
}

extern "C" cudaError_t cuda_launch_attention_wide(cudaStream_t stream, const void *params)
{
    const k_attention *a = (const k_attention *)params;
    return a->lists.head_dim == 64 ? launch_wide<64>(stream, a) : launch_wide<128>(stream, a);
}
