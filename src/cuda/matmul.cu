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

/*
 * Values of the row's blocks [from, to) with n_columns columns, each column's one place in `values` a block.
 */
template <int bits>
static __device__ void multiply_row(const gpu_weight *w, uint32_t row, uint32_t from, uint32_t to,
    const int8_t *q, const int32_t *sums, uint32_t n_columns, float *values, uint32_t stride)
{
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
        for (uint32_t c = 0; c < n_columns; c++) {
            const size_t at = (size_t)c * n_blocks + b;
            values[c * stride + b - from] =
                multiply<bits>(w, &weights, &scale, q + at * GPU_BLOCK, sums + 2 * at);
        }
    }
}

static __device__ void multiply_row_of(const gpu_weight *w, uint32_t row, uint32_t from, uint32_t to,
    const int8_t *q, const int32_t *sums, uint32_t n_columns, float *values, uint32_t stride)
{
    switch (w->bits) {
    case 4: multiply_row<4>(w, row, from, to, q, sums, n_columns, values, stride); break;
    case 5: multiply_row<5>(w, row, from, to, q, sums, n_columns, values, stride); break;
    case 6: multiply_row<6>(w, row, from, to, q, sums, n_columns, values, stride); break;
    case 8: multiply_row<8>(w, row, from, to, q, sums, n_columns, values, stride); break;
    default: multiply_row<16>(w, row, from, to, q, sums, n_columns, values, stride); break;
    }
}

/*
 * Sums of this block's rows and columns over all of k; thread (row, column) holds its own in *ret. unit: 1,
 * or 1/256.
 */
static __device__ void multiply_columns(const k_matmul *a, const gpu_weight *w, uint32_t first_row,
    uint32_t first_column, uint32_t n_columns, bool second, float *values, float *ret)
{
    const uint32_t n_blocks = w->n_in / GPU_BLOCK, warp = threadIdx.x / GPU_WARP;
    const uint32_t chunk = SUMS / n_columns, stride = chunk + 1; /* + 1: rows begin in different banks */
    const uint32_t row = threadIdx.x % ROWS, column = threadIdx.x / ROWS;
    const size_t at = (size_t)first_column * n_blocks;
    const int8_t *q = (second ? a->x.q2 : a->x.q) + at * GPU_BLOCK;
    const int32_t *sums = (second ? a->x.sum2 : a->x.sum) + 2 * at;
    const float *d = a->x.d + at, unit = second ? 1.0f / 256 : 1.0f;
    float sum = 0;
    for (uint32_t from = 0; from < n_blocks; from += chunk) {
        const uint32_t to = gpu_least(from + chunk, n_blocks);
        if (first_row + warp < w->n_out)
            multiply_row_of(w, first_row + warp, from, to, q, sums, n_columns,
                values + (size_t)warp * n_columns * stride, stride);
        __syncthreads();
        if (column < n_columns && first_row + row < w->n_out) {
            const float *v = values + ((size_t)row * n_columns + column) * stride;
            const float *scale = d + (size_t)column * n_blocks + from;
            GPU_UNROLL_8
            for (uint32_t b = 0; b < to - from; b++) sum = fmaf(scale[b] * unit, v[b], sum);
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
    quant_block(&a->out, row, block, n_blocks, gated(gate, up, a->make));
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

static __global__ __launch_bounds__(ROWS *GPU_WARP, 3) void multiply_parts(const k_matmul a)
{
    GPU_SHARED(shared);
    float *values = (float *)(void *)shared;
    uint32_t p = 0;
    while (p + 1 < a.n_parts && blockIdx.x >= a.parts[p + 1].first) p++;
    const gpu_weight *w = &a.parts[p].w;
    const uint32_t first_row = (blockIdx.x - a.parts[p].first) * ROWS,
                   first_column = blockIdx.y * GPU_COLUMNS;
    fetch_row_ahead(w, first_row + threadIdx.x / GPU_WARP);
    gpu_begin();
    const uint32_t n_columns = gpu_least(a.n - first_column, GPU_COLUMNS);
    const uint32_t row = first_row + threadIdx.x % ROWS, column = threadIdx.x / ROWS;
    const bool mine = column < n_columns && row < w->n_out;
    if (a.only && !(a.only[first_row / 64] >> first_row / 16 * 16 % 64 & 0xFFFF)) return;

    bool any_fine = false;
    for (uint32_t c = 0; c < n_columns; c++) any_fine = any_fine || a.x.is_fine[first_column + c];
    float sum, rest;
    multiply_columns(&a, w, first_row, first_column, n_columns, false, values, &sum);
    if (any_fine) {
        multiply_columns(&a, w, first_row, first_column, n_columns, true, values, &rest);
        if (mine && a.x.is_fine[first_column + column]) sum += rest;
    }

    if (mine) {
        const size_t t = first_column + column;
        if (a.parts[p].bias) sum += a.parts[p].bias[row];
        if (a.parts[p].add.data) sum += a.parts[p].add.data[t * a.parts[p].add.stride + row];
        a.parts[p].y.data[t * a.parts[p].y.stride + row] = sum;
    }
    if (a.then.what != GPU_THEN_NOTHING) end_product(&a, p, first_row, n_columns, (uint32_t *)(void *)shared);
}

extern "C" cudaError_t cuda_launch_matmul(cudaStream_t stream, const void *params)
{
    k_matmul a = *(const k_matmul *)params;
    uint32_t n = 0;
    for (uint32_t p = 0; p < a.n_parts; p++) {
        a.parts[p].first = n;
        n += (a.parts[p].w.n_out + ROWS - 1) / ROWS;
    }
    const size_t shared = (size_t)ROWS * (SUMS + GPU_COLUMNS) * sizeof(float);
    GPU_LAUNCH(multiply_parts, dim3(n, (a.n + GPU_COLUMNS - 1) / GPU_COLUMNS), dim3(ROWS * GPU_WARP), shared,
        stream, a);
    return cudaGetLastError();
}
