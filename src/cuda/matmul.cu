/*
 * Products: y[t][o] = sum over blocks of d_x * value(block) (+ bias) (+ add), for up to four matrices in one
 * launch.
 *
 * A block of threads has 8 rows of one matrix and up to 8 columns. Its warps take a row each: lane i reads 32
 * weights (16 bytes of a 4-bit format, coalesced) and turns them into one number a column by integer
 * products, which goes to shared memory. Then a thread a (row, column) adds the row's numbers in ascending
 * order with fused steps, as the CPU does: so a product has the same bits for every batch and on both
 * backends. The serial end costs 4 cycles a block of 32 k, while other blocks of threads load.
 *
 * Bound by the bytes of the weights: each of a multiprocessor's 24 warps has a load of 512 bytes and more
 * under way while it multiplies the one before. What follows a product (activations of its results, heads
 * that turn) its last blocks of threads may do: k_then. Batches above 8 go through the weights again for
 * every 8 columns, and are bound by dp4a; larger ones go to matmul_tiles.cu.
 *
 * A mixture's products are the same with cohorts in the place of every 8 columns: a block of threads asks which
 * expert its columns go to, and which row of x each of them is.
 */
#include "cuda/activations.cuh"
#include "cuda/turn.cuh"
#include "cuda/weights.cuh"

enum {
    ROWS = GPU_ROWS,
    SUMS = 768, /* numbers of a row that wait in shared memory, over all columns */
    AHEAD_BYTES = 4096
};

/*
 * The block's value with one column's 32 numbers: multiply_block of kernels_ref.c, without the column's
 * scale.
 */
template <int bits>
static __device__ __forceinline__ float multiply(
    const gpu_weight *w, const quants<bits> *q, const block_scale *s, const int8_t *x, const int32_t *sums)
{
    const uint4 low = *(const uint4 *)(const void *)x, high = *(const uint4 *)(const void *)(x + 16);
    const int words[8] = {
        (int)low.x, (int)low.y, (int)low.z, (int)low.w, (int)high.x, (int)high.y, (int)high.z, (int)high.w};
    const int sum0 = sums[0], sum1 = sums[1];
    int dot0 = 0, dot1 = 0;
    for (int g = 0; g < 4; g++) {
        dot0 = __dp4a(q->word[g], words[g], dot0);
        dot1 = __dp4a(q->word[4 + g], words[4 + g], dot1);
    }
    if (bits == 16) {
        int upper = dot0 + dot1, lower = 0;
        for (int g = 0; g < 8; g++) lower = __dp4a(q->word[bits == 16 ? 8 + g : g], words[g], lower);
        return (float)(upper * 256 + lower) * s->first;
    }
    switch (w->scales) {
    case GPU_SCALES_D:
    case GPU_SCALES_E:
    case GPU_SCALES_K32: return (float)(dot0 + dot1 - w->offset * (sum0 + sum1)) * s->first;
    case GPU_SCALES_K16:
    case GPU_SCALES_KM16: {
        const float value = fmaf(
            (float)(dot1 - w->offset * sum1), s->second, (float)(dot0 - w->offset * sum0) * s->first);
        if (w->scales == GPU_SCALES_K16) return value;
        return fmaf((float)-sum1, s->least[1], fmaf((float)-sum0, s->least[0], value));
    }
    default: return fmaf((float)(dot0 + dot1), s->first, s->second * (float)(sum0 + sum1));
    }
}

/* What a block of threads multiplies: rows of a matrix from `row` on, of which there are n_rows, and columns. */
typedef struct piece {
    const k_matmul *a;
    const gpu_weight *w;
    uint32_t row, n_rows, first_column, n_columns;
} piece;

/* The row of x that one of a piece's columns is. */
template <bool mixed> static __device__ __forceinline__ size_t row_of(const piece *p, uint32_t column)
{
    const uint32_t at = p->first_column + column;
    return mixed && p->a->row_of ? p->a->row_of[at] : at;
}

/*
 * Values of the row's blocks [from, to) with all columns, each column's one place in `values` a block. q, sums:
 * of all rows of x.
 */
template <int bits, bool mixed>
static __device__ void multiply_row(const piece *p, uint32_t row, uint32_t from, uint32_t to, const int8_t *q,
    const int32_t *sums, float *values, uint32_t stride)
{
    const gpu_weight *w = p->w;
    const uint32_t n_blocks = w->n_in / GPU_BLOCK, first = from + threadIdx.x % GPU_WARP;
    const size_t row_block = (size_t)row * n_blocks;
    if (first >= to) return;
    packed_quants<bits> next = load_quants<bits>(w, row_block + first);
    scale_bits next_scale = load_scale(w, row_block + first);
    for (uint32_t b = first; b < to; b += GPU_WARP) {
        const quants<bits> weights = unpack_quants<bits>(w, &next);
        const block_scale scale = make_scale(w->scales, next_scale);
        if (b + GPU_WARP < to) { /* on its way while this one is multiplied */
            next = load_quants<bits>(w, row_block + b + GPU_WARP);
            next_scale = load_scale(w, row_block + b + GPU_WARP);
        }
        for (uint32_t c = 0; c < p->n_columns; c++) {
            const size_t at = row_of<mixed>(p, c) * n_blocks + b;
            values[c * stride + b - from] =
                multiply<bits>(w, &weights, &scale, q + at * GPU_BLOCK, sums + 2 * at);
        }
    }
}

template <bool mixed>
static __device__ void multiply_row_of(const piece *p, uint32_t row, uint32_t from, uint32_t to,
    const int8_t *q, const int32_t *sums, float *values, uint32_t stride)
{
    switch (p->w->bits) {
    case 4: multiply_row<4, mixed>(p, row, from, to, q, sums, values, stride); break;
    case 5: multiply_row<5, mixed>(p, row, from, to, q, sums, values, stride); break;
    case 6: multiply_row<6, mixed>(p, row, from, to, q, sums, values, stride); break;
    case 8: multiply_row<8, mixed>(p, row, from, to, q, sums, values, stride); break;
    default: multiply_row<16, mixed>(p, row, from, to, q, sums, values, stride); break;
    }
}

/*
 * Sums of the piece's rows and columns over all of k; thread (row, column) holds its own in *ret. unit: 1, or
 * 1/256.
 */
template <bool mixed>
static __device__ void multiply_piece(const piece *p, bool second, float *values, float *ret)
{
    const gpu_columns *x = &p->a->x;
    const uint32_t n_blocks = p->w->n_in / GPU_BLOCK, warp = threadIdx.x / GPU_WARP;
    const uint32_t chunk = SUMS / p->n_columns, stride = chunk + 1; /* + 1: rows begin in different banks */
    const uint32_t row = threadIdx.x % ROWS, column = threadIdx.x / ROWS;
    const bool mine = column < p->n_columns && row < p->n_rows;
    const int8_t *q = second ? x->q2 : x->q;
    const int32_t *sums = second ? x->sum2 : x->sum;
    const float *d = x->d + (mine ? row_of<mixed>(p, column) * n_blocks : 0);
    const float unit = second ? 1.0f / 256 : 1.0f;
    float sum = 0;
    for (uint32_t from = 0; from < n_blocks; from += chunk) {
        const uint32_t to = gpu_least(from + chunk, n_blocks);
        if (warp < p->n_rows)
            multiply_row_of<mixed>(p, p->row + warp, from, to, q, sums,
                values + (size_t)warp * p->n_columns * stride, stride);
        __syncthreads();
        if (mine) {
            const float *v = values + ((size_t)row * p->n_columns + column) * stride;
            GPU_UNROLL_8
            for (uint32_t b = 0; b < to - from; b++) sum = fmaf(d[from + b] * unit, v[b], sum);
        }
        __syncthreads();
    }
    *ret = sum;
}

/* ---- what the last block of threads does ---- */

/*
 * Whether this block of threads is the last of n to come here: then it sees what all of them wrote (by
 * __ldcg).
 */
static __device__ bool is_last(uint32_t *arrived, uint32_t n, uint32_t *shared)
{
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) {
        const bool last = atomicAdd(arrived, 1) == n - 1;
        if (last) *arrived = 0;
        *shared = last;
    }
    __syncthreads();
    __threadfence();
    return *shared != 0;
}

/* RMSNorm and quantisation of whole rows; the grid's last block of threads for these columns. */
static __device__ void quant_columns(const k_quant *a, uint32_t first_column, uint32_t n_columns, float *room)
{
    const uint32_t n_blocks = a->width / GPU_BLOCK, warp = threadIdx.x / GPU_WARP,
                   lane = threadIdx.x % GPU_WARP;
    for (uint32_t row = first_column; row < first_column + n_columns; row++) {
        const float *x = a->x.data + row * a->x.stride;
        const float scale = inverse_size(x, a->width, a->eps, room);
        uint32_t n = 0;
        for (uint32_t block = warp; block < n_blocks; block += ROWS, n++) {
            const uint32_t i = block * GPU_BLOCK + lane;
            quant_block(&a->out, row, block, n_blocks, __ldcg(x + i) * scale * a->weight[i]);
        }
        if (n) end_row(&a->out, row, n, n_blocks);
    }
}

/* A block of 32 of every column through the gate, a warp a column. */
static __device__ void gate_columns(
    const k_quant *a, uint32_t block, uint32_t first_column, uint32_t n_columns)
{
    const uint32_t row = first_column + threadIdx.x / GPU_WARP, n_blocks = a->width / GPU_BLOCK,
                   i = block * GPU_BLOCK + threadIdx.x % GPU_WARP;
    if (row >= first_column + n_columns) return;
    const float gate = __ldcg(a->x.data + row * a->x.stride + i),
                up = __ldcg(a->up.data + row * a->up.stride + i);
    const float v = gated(gate, up, a->make);
    quant_block(&a->out, row, block, n_blocks, a->shares ? v * a->shares[row] : v);
    end_row(&a->out, row, 1, n_blocks);
}

/* A head of q (part 0), k (1) or v (2). */
static __device__ void turn_head(
    const k_then *a, uint32_t part, uint32_t head, uint32_t first_column, uint32_t n_columns)
{
    const k_rope *rope = part == 0 ? &a->q : &a->k;
    const uint32_t half = rope->n_rot / 2, d = a->rows.head_dim;
    for (uint32_t i = threadIdx.x; part < 2 && i < n_columns * half; i += blockDim.x)
        turn_pair(rope, first_column + i / half, head, i % half);
    if (part == 0) return;
    __syncthreads();
    for (uint32_t i = threadIdx.x; i < n_columns * d; i += blockDim.x)
        write_element(
            &a->rows, part == 1 ? &a->rows.k : &a->rows.v, part == 2, first_column + i / d, head, i % d);
}

static __device__ void end_product(
    const k_matmul *a, uint32_t part, uint32_t first_row, uint32_t n_columns, uint32_t *shared)
{
    const k_then *t = &a->then;
    const uint32_t first_column = blockIdx.y * GPU_COLUMNS, d = t->rows.head_dim;
    uint32_t group = first_row / GPU_BLOCK, n_groups = t->quant.width / GPU_BLOCK, n = 2 * GPU_BLOCK / ROWS;
    if (t->what == GPU_THEN_QUANT) {
        group = 0;
        n_groups = 1;
        n = gridDim.x;
    }
    if (t->what == GPU_THEN_TURN) {
        n_groups = t->q.n_heads + 2 * t->k.n_heads;
        group = first_row / d + (part > 0 ? t->q.n_heads : 0) + (part > 1 ? t->k.n_heads : 0);
        n = d / ROWS;
    }
    if (!is_last(t->arrived + blockIdx.y * n_groups + group, n, shared)) return;
    switch (t->what) {
    case GPU_THEN_QUANT: quant_columns(&t->quant, first_column, n_columns, (float *)(void *)shared); break;
    case GPU_THEN_GATE: gate_columns(&t->quant, group, first_column, n_columns); break;
    default: turn_head(t, part, first_row / d, first_column, n_columns); break;
    }
}

/* The beginning of a row's weights, which is on its way while the launch before ends. A warp's first lane. */
static __device__ void fetch_row_ahead(const gpu_weight *w, uint32_t row)
{
    const uint32_t n_bytes = w->n_in / GPU_BLOCK * quant_pieces(w->bits) * (uint32_t)sizeof(uint4);
    if (row < w->n_out && threadIdx.x % GPU_WARP == 0)
        gpu_fetch_ahead(w->quants + (size_t)row * n_bytes, gpu_least(n_bytes, AHEAD_BYTES));
}

/* grid: rows of all parts; columns, 8 together, or cohorts */
template <bool mixed>
static __global__ __launch_bounds__(ROWS *GPU_WARP, 3) void multiply_parts(const k_matmul a)
{
    GPU_SHARED(shared);
    float *values = (float *)(void *)shared;
    uint32_t part = 0;
    while (part + 1 < a.n_parts && blockIdx.x >= a.parts[part + 1].first) part++;
    const k_matmul::k_part *of = &a.parts[part];
    const uint32_t first_row = (blockIdx.x - of->first) * ROWS;
    piece p = {&a, &of->w, first_row, gpu_least(of->w.n_out - first_row, ROWS), blockIdx.y * GPU_COLUMNS, 0};
    if (!mixed) fetch_row_ahead(&of->w, first_row + threadIdx.x / GPU_WARP);
    gpu_begin();
    if (mixed) {
        if (blockIdx.y >= *a.n_cohorts) return;
        const gpu_cohort c = a.cohorts[blockIdx.y];
        p.row += c.expert * of->w.n_out;
        p.first_column = c.first;
        p.n_columns = c.n;
    } else {
        p.n_columns = gpu_least(a.n - p.first_column, GPU_COLUMNS);
    }
    const uint32_t row = threadIdx.x % ROWS, column = threadIdx.x / ROWS;
    const bool mine = column < p.n_columns && row < p.n_rows;
    if (a.only && !(a.only[first_row / 64] >> first_row / 16 * 16 % 64 & 0xFFFF)) return;

    bool any_fine = false;
    for (uint32_t c = 0; c < p.n_columns; c++) any_fine = any_fine || a.x.is_fine[row_of<mixed>(&p, c)];
    float sum, rest;
    multiply_piece<mixed>(&p, false, values, &sum);
    if (any_fine) {
        multiply_piece<mixed>(&p, true, values, &rest);
        if (mine && a.x.is_fine[row_of<mixed>(&p, column)]) sum += rest;
    }

    if (mine) {
        const size_t t = p.first_column + column;
        const uint32_t out = first_row + row;
        if (of->bias) sum += of->bias[p.row + row];
        if (of->add.data) sum += of->add.data[t * of->add.stride + out];
        of->y.data[t * of->y.stride + out] = sum;
    }
    if (!mixed && a.then.what != GPU_THEN_NOTHING)
        end_product(&a, part, first_row, p.n_columns, (uint32_t *)(void *)shared);
}

static cudaError_t launch_parts(
    cudaStream_t stream, const void *params, uint32_t n_groups, void (*kernel)(k_matmul))
{
    k_matmul a = *(const k_matmul *)params;
    uint32_t n = 0;
    for (uint32_t p = 0; p < a.n_parts; p++) {
        a.parts[p].first = n;
        n += (a.parts[p].w.n_out + ROWS - 1) / ROWS;
    }
    const size_t shared = (size_t)ROWS * (SUMS + GPU_COLUMNS) * sizeof(float);
    GPU_LAUNCH(kernel, dim3(n, n_groups), dim3(ROWS * GPU_WARP), shared, stream, a);
    return cudaGetLastError();
}

extern "C" cudaError_t cuda_launch_matmul(cudaStream_t stream, const void *params)
{
    const uint32_t n = ((const k_matmul *)params)->n;
    return launch_parts(stream, params, (n + GPU_COLUMNS - 1) / GPU_COLUMNS, multiply_parts<false>);
}

extern "C" cudaError_t cuda_launch_cohorts(cudaStream_t stream, const void *params)
{
    return launch_parts(stream, params, ((const k_matmul *)params)->n_most, multiply_parts<true>);
}
