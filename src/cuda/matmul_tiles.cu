/*
 * Products of many columns on the tensor cores: y[t][o] = sum over blocks of d_x * value(block) (+ bias) (+
 * add), the same numbers in the same order as matmul.cu and the CPU, so the same bits.
 *
 * A block of 4 warps makes 64 rows x 32 or 128 columns; a warp 32 x half of the columns. Two blocks of 32 k
 * at a time lie in shared memory, while the next two are on their way by cp.async: activations go straight to
 * their place; weights and the columns' numbers go to a place of the thread that asked for them, which turns
 * them into bytes, scales and starts (`place_step`). For a block of 32 k an instruction of the tensor core
 * gives integer sums of 16 x 8 elements; then each element takes its float steps:
 *
 *     sums are exact, and start at 1.5 * 2^23 (less the offset's part): their bits are those of a float, so
 *         that taking the start off
 *     again converts them. With a first scale of at most 21 bits even that is part of a fused step: fma(start
 *         + dot, first,
 *     -start * first) rounds once, dot * first, as the CPU does.
 *
 * Bound by those float steps: 2 to 4 an element and block (docs/cuda.md counts them), four times what the
 * tensor core needs.
 */
#include "cuda/tensor.cuh"
#include "cuda/weights.cuh"

enum {
    TILE_THREADS = 128,
    WARP_ROWS = 32,
    TILE_STEP = 2,                     /* blocks of 32 k that lie in shared memory together */
    ROW_BYTES = TILE_STEP * GPU_BLOCK, /* of one row or column there */
    MATRIX_ROWS = 8,                   /* of the tensor core's smallest matrices, and their columns */
    START_BITS = 0x4B400000,           /* 1.5 * 2^23 */
};
#define START 12582912.0f

/*
 * What is done with a block's integer sums: the words of gpu_scales, less DM, whose numbers are KM's, and K32,
 * whose number is D's. E's may be so large that the start's undoing would overflow.
 */
typedef enum tail { TAIL_D, TAIL_E, TAIL_M, TAIL_K16, TAIL_KM16, TAIL_F } tail;

/* One of two sets of rows and columns in shared memory. */
typedef struct tile {
    uint8_t *rows,
        *lower; /* [GPU_TILE_ROWS][ROW_BYTES] in pieces of 16 bytes, see piece_at; lower: of 16-bit quants */
    uint8_t *columns;    /* [columns][ROW_BYTES] the same */
    block_scale *scales; /* [TILE_STEP][GPU_TILE_ROWS] */
    /*
     * [TILE_STEP][columns][2]: bits of d; where sums start, or the sum of the activations as float; of KM16 minus
     * that of the first half
     */
    uint32_t *numbers;
    uint32_t *starts; /* [TILE_STEP][columns]: the same of the second half, where halves have scales of their own */
} tile;

/* Where a thread finds again what it asked for; nobody else looks. */
typedef struct asked {
    uint4 *quants;    /* [pieces][TILE_THREADS] */
    uint2 *extra;     /* [TILE_THREADS] */
    float *d;         /* [columns * TILE_STEP] */
    uint2 *sums;      /* the same */
    scale_bits scale; /* in registers */
} asked;

typedef struct job {
    const k_matmul *a;
    const gpu_weight *w;
    uint32_t first_row, first_column, n_columns, n_blocks;
    /* Of a mixture, else 0 and NULL: where the expert's outputs begin among all; k_matmul's. */
    uint32_t expert_row;
    const uint32_t *row_of;
    bool is_wide; /* some part has 16 bits */
    bool second;  /* the second column of 8 bits */
} job;

/* ---- shared memory ---- */

static __host__ __device__ uint32_t tile_bytes(uint32_t n_columns, bool is_wide)
{
    return GPU_TILE_ROWS * ROW_BYTES * (is_wide ? 2 : 1) + n_columns * ROW_BYTES +
           TILE_STEP * GPU_TILE_ROWS * (uint32_t)sizeof(block_scale) + TILE_STEP * n_columns * 12;
}

static __host__ __device__ uint32_t tiles_bytes(uint32_t n_columns, bool is_wide)
{
    return 2 * tile_bytes(n_columns, is_wide) + TILE_THREADS * (16 * quant_pieces(is_wide ? 16 : 8) + 8) +
           TILE_STEP * n_columns * 12;
}

static __device__ tile tile_of(uint8_t *shared, uint32_t n_columns, bool is_wide)
{
    tile s;
    s.rows = shared;
    s.lower = s.rows + (is_wide ? GPU_TILE_ROWS * ROW_BYTES : 0);
    s.columns = s.lower + GPU_TILE_ROWS * ROW_BYTES;
    s.scales = (block_scale *)(void *)(s.columns + n_columns * ROW_BYTES);
    s.numbers = (uint32_t *)(void *)(s.scales + TILE_STEP * GPU_TILE_ROWS);
    s.starts = s.numbers + TILE_STEP * n_columns * 2;
    return s;
}

static __device__ asked asked_of(uint8_t *shared, uint32_t n_columns, bool is_wide)
{
    asked p;
    p.quants = (uint4 *)(void *)shared;
    p.extra = (uint2 *)(void *)(p.quants + TILE_THREADS * quant_pieces(is_wide ? 16 : 8));
    p.sums = p.extra + TILE_THREADS;
    p.d = (float *)(void *)(p.sums + TILE_STEP * n_columns);
    p.scale = scale_bits{0, 0};
    return p;
}

/* A row's piece of 16 bytes; 8 rows' pieces of the same k lie in different banks. */
static __device__ __forceinline__ uint32_t piece_at(uint32_t row, uint32_t piece)
{
    return row * ROW_BYTES + (piece ^ (row / 2 % 4)) * 16;
}

/* The row of x that a column of the tile is; behind the last the last. */
static __device__ __forceinline__ size_t row_of(const job *j, uint32_t column)
{
    const uint32_t at = j->first_column + gpu_least(column, j->n_columns - 1);
    return j->row_of ? j->row_of[at] : at;
}

/* ---- from memory ---- */

template <int bits>
static __device__ __forceinline__ void ask_quants(const gpu_weight *w, size_t block, const asked *p)
{
    const uint8_t *from = w->quants + block * quant_pieces(bits) * 16;
    GPU_UNROLL
    for (int i = 0; i < quant_pieces(bits); i++)
        gpu_copy<16>(p->quants + i * TILE_THREADS + threadIdx.x, from + 16 * i);
    if (bits == 5) gpu_copy<4>(p->extra + threadIdx.x, w->extra + block * 4);
    if (bits == 6) gpu_copy<8>(p->extra + threadIdx.x, w->extra + block * 8);
}

/*
 * The blocks from `from` on: activations to their place, the rest to the thread's. Columns and rows behind
 * the last are the last.
 */
template <int n_columns>
static __device__ __forceinline__ void ask_step(const job *j, uint32_t from, const tile *to, asked *p)
{
    const uint32_t n_here = gpu_least(j->n_blocks - from, TILE_STEP);
    const gpu_columns *x = &j->a->x;
    const int8_t *q = j->second ? x->q2 : x->q;
    const int32_t *sums = j->second ? x->sum2 : x->sum;
    GPU_UNROLL
    for (uint32_t i = threadIdx.x; i < n_columns * TILE_STEP * 2; i += TILE_THREADS) {
        const uint32_t column = i / (2 * TILE_STEP), piece = i % (2 * TILE_STEP);
        const size_t at = row_of(j, column) * j->n_blocks + from;
        if (piece / 2 < n_here)
            gpu_copy<16>(to->columns + piece_at(column, piece), q + at * GPU_BLOCK + 16 * piece);
    }
    GPU_UNROLL
    for (uint32_t i = threadIdx.x; i < n_columns * TILE_STEP; i += TILE_THREADS) {
        const uint32_t column = i / TILE_STEP, b = i % TILE_STEP;
        const size_t at = row_of(j, column) * j->n_blocks + from + b;
        if (b >= n_here) continue;
        gpu_copy<4>(p->d + i, x->d + at);
        gpu_copy<8>(p->sums + i, sums + 2 * at);
    }
    const uint32_t row = gpu_least(j->first_row + threadIdx.x / TILE_STEP, j->w->n_out - 1),
                   b = threadIdx.x % TILE_STEP;
    if (b < n_here) {
        const size_t block = (size_t)(j->expert_row + row) * j->n_blocks + from + b;
        switch (j->w->bits) {
        case 4: ask_quants<4>(j->w, block, p); break;
        case 5: ask_quants<5>(j->w, block, p); break;
        case 6: ask_quants<6>(j->w, block, p); break;
        case 8: ask_quants<8>(j->w, block, p); break;
        default: ask_quants<16>(j->w, block, p); break;
        }
        p->scale = load_scale(j->w, block);
    }
    gpu_copy_commit();
}

/* ---- to shared memory ---- */

template <int bits>
static __device__ __forceinline__ void place_quants(
    const gpu_weight *w, const asked *p, const tile *to, uint32_t row, uint32_t b)
{
    packed_quants<bits> packed;
    GPU_UNROLL
    for (int i = 0; i < quant_pieces(bits); i++) packed.quants[i] = p->quants[i * TILE_THREADS + threadIdx.x];
    if (bits == 5 || bits == 6) packed.extra = p->extra[threadIdx.x];
    const quants<bits> q = unpack_quants<bits>(w, &packed);
    GPU_UNROLL
    for (int i = 0; i < (bits == 16 ? 4 : 2); i++) {
        uint4 *at = (uint4 *)(void *)((i < 2 ? to->rows : to->lower) + piece_at(row, 2 * b + i % 2));
        *at = uint4{(uint32_t)q.word[4 * i], (uint32_t)q.word[4 * i + 1], (uint32_t)q.word[4 * i + 2],
            (uint32_t)q.word[4 * i + 3]};
    }
}

/* What this thread asked for, which has arrived, as the warps want it. */
template <int kind, int n_columns>
static __device__ __forceinline__ void place_step(const job *j, uint32_t from, const asked *p, const tile *to)
{
    const uint32_t n_here = gpu_least(j->n_blocks - from, TILE_STEP);
    const int offset = j->w->offset;
    const float unit = j->second ? 1.0f / 256 : 1.0f;
    GPU_UNROLL
    for (uint32_t i = threadIdx.x; i < n_columns * TILE_STEP; i += TILE_THREADS) {
        const uint32_t at = i % TILE_STEP * n_columns + i / TILE_STEP;
        if (i % TILE_STEP >= n_here) continue;
        const int sum0 = (int)p->sums[i].x, sum1 = (int)p->sums[i].y;
        to->numbers[2 * at] = __float_as_uint(p->d[i] * unit);
        if (kind == TAIL_D || kind == TAIL_E)
            to->numbers[2 * at + 1] = (uint32_t)(START_BITS - offset * (sum0 + sum1));
        if (kind == TAIL_M) to->numbers[2 * at + 1] = __float_as_uint((float)(sum0 + sum1));
        if (kind == TAIL_K16) {
            to->numbers[2 * at + 1] = (uint32_t)(START_BITS - offset * sum0);
            to->starts[at] = (uint32_t)(START_BITS - offset * sum1);
        }
        if (kind == TAIL_KM16) {
            to->numbers[2 * at + 1] = __float_as_uint((float)-sum0);
            to->starts[at] = __float_as_uint((float)-sum1);
        }
    }
    const uint32_t row = threadIdx.x / TILE_STEP, b = threadIdx.x % TILE_STEP;
    if (b >= n_here) return;
    switch (j->w->bits) {
    case 4: place_quants<4>(j->w, p, to, row, b); break;
    case 5: place_quants<5>(j->w, p, to, row, b); break;
    case 6: place_quants<6>(j->w, p, to, row, b); break;
    case 8: place_quants<8>(j->w, p, to, row, b); break;
    default: place_quants<16>(j->w, p, to, row, b); break;
    }
    to->scales[b * GPU_TILE_ROWS + row] = make_scale(j->w->scales, p->scale);
}

/* ---- products ---- */

/*
 * A thread's elements: [2 matrices of 16 rows][matrices of 8 columns][row g or g + 8][column 2t or 2t + 1].
 */
template <int n_matrices> struct sums {
    float s[2][n_matrices][4];
};

/* The numbers of scale of the four rows of which a thread has elements. */
typedef struct row_scales {
    float first[4], second[4], undo[4]; /* undo: what takes the start off again */
    float least[2][4];                  /* of KM16 */
} row_scales;

/*
 * One matrix of 16 rows with one of 8 columns over 32 k: sums, then the float steps. n: d and start of both
 * columns.
 */
template <int kind>
static __device__ __forceinline__ void multiply_block(const uint32_t w[4], const uint32_t lower[4],
    const uint32_t x[2], uint4 n, uint2 starts, const row_scales *r, uint32_t first_row, float sum[4])
{
    const float d[2] = {__uint_as_float(n.x), __uint_as_float(n.z)};
    int start[4], dot[4], dot1[4];
    GPU_UNROLL
    for (int e = 0; e < 4; e++)
        start[e] = kind == TAIL_F                          ? 0
                   : kind == TAIL_M || kind == TAIL_KM16 ? START_BITS
                                                         : (int)(e % 2 ? n.w : n.y);
    if (kind == TAIL_K16 || kind == TAIL_KM16) {
        gpu_multiply_16(dot, w, x[0], start);
        GPU_UNROLL
        for (int e = 0; e < 4 && kind == TAIL_K16; e++) start[e] = (int)(e % 2 ? starts.y : starts.x);
        gpu_multiply_16(dot1, w + 2, x[1], start);
    } else {
        gpu_multiply_32(dot, w, x, start);
    }
    if (kind == TAIL_F) {
        GPU_UNROLL
        for (int e = 0; e < 4; e++) start[e] = dot[e] * 256;
        gpu_multiply_32(dot, lower, x, start);
    }
    GPU_UNROLL
    for (int e = 0; e < 4; e++) {
        const uint32_t i = first_row + e / 2;
        const float m = __int_as_float(dot[e]);
        float value;
        if (kind == TAIL_D) value = fmaf(m, r->first[i], r->undo[i]);
        if (kind == TAIL_M)
            value = fmaf(m - START, r->first[i], r->second[i] * __uint_as_float(e % 2 ? n.w : n.y));
        if (kind == TAIL_E) value = (m - START) * r->first[i];
        if (kind == TAIL_K16 || kind == TAIL_KM16)
            value = fmaf(__int_as_float(dot1[e]) - START, r->second[i], fmaf(m, r->first[i], r->undo[i]));
        if (kind == TAIL_KM16) {
            value = fmaf(__uint_as_float(e % 2 ? n.w : n.y), r->least[0][i], value);
            value = fmaf(__uint_as_float(e % 2 ? starts.y : starts.x), r->least[1][i], value);
        }
        if (kind == TAIL_F) value = (float)dot[e] * r->first[i];
        sum[e] = fmaf(d[e % 2], value, sum[e]);
    }
}

/* A warp's rows and columns over the blocks that lie in shared memory. */
template <int kind, int n_matrices>
static __device__ __forceinline__ void multiply_step(const tile *from, uint32_t n_here, sums<n_matrices> *sum)
{
    const uint32_t n_columns = 2 * MATRIX_ROWS * n_matrices, warp = threadIdx.x / GPU_WARP,
                   lane = threadIdx.x % GPU_WARP;
    const uint32_t row = warp % 2 * WARP_ROWS, column = warp / 2 * (n_columns / 2);
    GPU_ROLLED
    for (uint32_t b = 0; b < n_here; b++) {
        uint32_t w[2][4], lower[2][4];
        row_scales r;
        GPU_UNROLL
        for (uint32_t m = 0; m < 2; m++) {
            const uint32_t at = piece_at(row + 16 * m + lane % 16, 2 * b + lane / 16);
            gpu_load_matrices(w[m], from->rows + at);
            if (kind == TAIL_F) gpu_load_matrices(lower[m], from->lower + at);
        }
        GPU_UNROLL
        for (uint32_t i = 0; i < 4; i++) {
            const block_scale *scale = from->scales + b * GPU_TILE_ROWS + row + 8 * i + lane / 4;
            r.first[i] = scale->first;
            r.second[i] = scale->second;
            r.undo[i] = -START * scale->first;
            r.least[0][i] = kind == TAIL_KM16 ? scale->least[0] : 0;
            r.least[1][i] = kind == TAIL_KM16 ? scale->least[1] : 0;
        }
        GPU_UNROLL
        for (uint32_t c = 0; c < (uint32_t)n_matrices; c += 2) {
            uint32_t x[4];
            gpu_load_matrices(
                x, from->columns + piece_at(column + 8 * c + lane / 16 * 8 + lane % 8, 2 * b + lane / 8 % 2));
            GPU_UNROLL
            for (uint32_t k = 0; k < 2; k++) {
                const uint32_t at = b * n_columns + column + 8 * (c + k) + 2 * (lane % 4);
                const uint4 n = *(const uint4 *)(const void *)(from->numbers + 2 * at);
                uint2 starts = {0, 0};
                if (kind == TAIL_K16 || kind == TAIL_KM16)
                    starts = *(const uint2 *)(const void *)(from->starts + at);
                GPU_UNROLL
                for (uint32_t m = 0; m < 2; m++)
                    multiply_block<kind>(w[m], lower[m], x + 2 * k, n, starts, &r, 2 * m, sum->s[m][c + k]);
            }
        }
    }
}

/* All of k: while a step is on its way, the one before it is multiplied. */
template <int kind, int n_matrices>
static __device__ __forceinline__ void multiply_all(const job *j, uint8_t *shared, sums<n_matrices> *sum)
{
    enum { COLUMNS = 2 * MATRIX_ROWS * n_matrices };
    const uint32_t side_bytes = tile_bytes(COLUMNS, j->is_wide);
    asked p = asked_of(shared + 2 * side_bytes, COLUMNS, j->is_wide);
    GPU_ROLLED
    for (uint32_t next = 0, side = 0;; next += TILE_STEP, side ^= 1) {
        const tile to = tile_of(shared + side * side_bytes, COLUMNS, j->is_wide);
        if (next < j->n_blocks) ask_step<COLUMNS>(j, next, &to, &p);
        if (next > 0) {
            const tile from = tile_of(shared + (side ^ 1) * side_bytes, COLUMNS, j->is_wide);
            const uint32_t first = next - TILE_STEP;
            multiply_step<kind, n_matrices>(&from, gpu_least(j->n_blocks - first, TILE_STEP), sum);
        }
        if (next >= j->n_blocks) break;
        gpu_copy_wait<0>();
        place_step<kind, COLUMNS>(j, next, &p, &to);
        __syncthreads();
    }
    __syncthreads();
}

/*
 * The thread's elements to their places, with bias and residual; `rest`: of rows that have a second column.
 */
template <int n_matrices>
static __device__ __forceinline__ void write_sums(
    const job *j, const k_matmul::k_part *part, const sums<n_matrices> *sum)
{
    const uint32_t warp = threadIdx.x / GPU_WARP, lane = threadIdx.x % GPU_WARP;
    const uint32_t first_row = j->first_row + warp % 2 * WARP_ROWS + lane / 4;
    const uint32_t first_column = warp / 2 * (MATRIX_ROWS * n_matrices) + 2 * (lane % 4);
    GPU_UNROLL
    for (uint32_t m = 0; m < 2; m++) GPU_UNROLL
    for (uint32_t e = 0; e < 4; e += 2) {
        const uint32_t row = first_row + 16 * m + 4 * e;
        if (row >= j->w->n_out) continue;
        if (j->a->only && !(j->a->only[row / 64] >> row / 16 * 16 % 64 & 0xFFFF)) continue;
        const float bias = part->bias ? part->bias[j->expert_row + row] : 0;
        GPU_UNROLL
        for (uint32_t c = 0; c < (uint32_t)n_matrices; c++) GPU_UNROLL
        for (uint32_t k = 0; k < 2; k++) {
            const uint32_t column = first_column + 8 * c + k;
            if (column >= j->n_columns) continue;
            const size_t t = j->first_column + column;
            float y = sum->s[m][c][e + k];
            if (part->bias) y += bias;
            if (part->add.data) y += part->add.data[t * part->add.stride + row];
            part->y.data[t * part->y.stride + row] = y;
        }
    }
}

template <int kind, int n_matrices>
static __device__ __forceinline__ void multiply_tile(job *j, const k_matmul::k_part *part, uint8_t *shared)
{
    enum { COLUMNS = 2 * MATRIX_ROWS * n_matrices };
    const uint32_t lane = threadIdx.x % GPU_WARP;
    bool any_fine = false;
    for (uint32_t c = lane; c < j->n_columns; c += GPU_WARP)
        any_fine = any_fine || j->a->x.is_fine[row_of(j, c)];
    any_fine = __any_sync(GPU_ALL, any_fine);

    sums<n_matrices> sum;
    volatile float first[2 * n_matrices * 4]; /* in memory: no registers for what is rare */
    for (int pass = 0; pass <= (int)any_fine; pass++) {
        GPU_UNROLL
        for (uint32_t i = 0; i < 2 * n_matrices * 4; i++) {
            float *s = &sum.s[i / (4 * n_matrices)][i / 4 % n_matrices][i % 4];
            if (pass) first[i] = *s;
            *s = 0;
        }
        j->second = pass > 0;
        multiply_all<kind, n_matrices>(j, shared, &sum);
    }
    if (any_fine) {
        const uint32_t first_column = threadIdx.x / GPU_WARP / 2 * (COLUMNS / 2) + 2 * (lane % 4);
        GPU_UNROLL
        for (uint32_t i = 0; i < 2 * n_matrices * 4; i++) {
            float *s = &sum.s[i / (4 * n_matrices)][i / 4 % n_matrices][i % 4];
            const uint32_t column = first_column + 8 * (i / 4 % n_matrices) + i % 2;
            *s = j->a->x.is_fine[row_of(j, column)] ? first[i] + *s : first[i];
        }
    }
    write_sums<n_matrices>(j, part, &sum);
}

/* grid: columns (or cohorts), so that those who read the same weights run together; rows of all parts */
template <int n_matrices, bool mixed>
static __global__ __launch_bounds__(TILE_THREADS, 3) void multiply_tiles(const k_matmul a)
{
    GPU_SHARED(shared);
    gpu_begin();
    enum { COLUMNS = 2 * MATRIX_ROWS * n_matrices };
    uint32_t p = 0;
    while (p + 1 < a.n_parts && blockIdx.y >= a.parts[p + 1].first) p++;
    const k_matmul::k_part *part = &a.parts[p];
    job j;
    j.a = &a;
    j.w = &part->w;
    j.first_row = (blockIdx.y - part->first) * GPU_TILE_ROWS;
    j.first_column = blockIdx.x * COLUMNS;
    j.n_columns = gpu_least(a.n - j.first_column, COLUMNS);
    j.n_blocks = part->w.n_in / GPU_BLOCK;
    j.expert_row = 0;
    j.row_of = mixed ? a.row_of : NULL;
    if (mixed) {
        if (blockIdx.x >= *a.n_cohorts) return;
        const gpu_cohort c = a.cohorts[blockIdx.x];
        j.expert_row = c.expert * part->w.n_out;
        j.first_column = c.first;
        j.n_columns = c.n;
    }
    j.is_wide = j.second = false;
    for (uint32_t i = 0; i < a.n_parts; i++) j.is_wide = j.is_wide || a.parts[i].w.bits == 16;
    if (a.only && a.only[j.first_row / 64] == 0) return;
    switch (part->w.scales) {
    case GPU_SCALES_D:
    case GPU_SCALES_K32: multiply_tile<TAIL_D, n_matrices>(&j, part, shared); break;
    case GPU_SCALES_E: multiply_tile<TAIL_E, n_matrices>(&j, part, shared); break;
    case GPU_SCALES_KM16: multiply_tile<TAIL_KM16, n_matrices>(&j, part, shared); break;
    case GPU_SCALES_K16: multiply_tile<TAIL_K16, n_matrices>(&j, part, shared); break;
    case GPU_SCALES_F: multiply_tile<TAIL_F, n_matrices>(&j, part, shared); break;
    default: multiply_tile<TAIL_M, n_matrices>(&j, part, shared); break;
    }
}

static cudaError_t launch_products(
    cudaStream_t stream, const void *params, uint32_t n_columns, void (*kernel)(k_matmul))
{
    k_matmul a = *(const k_matmul *)params;
    uint32_t n = 0;
    bool is_wide = false;
    for (uint32_t p = 0; p < a.n_parts; p++) {
        a.parts[p].first = n;
        n += (a.parts[p].w.n_out + GPU_TILE_ROWS - 1) / GPU_TILE_ROWS;
        is_wide = is_wide || a.parts[p].w.bits == 16;
    }
    const size_t shared = tiles_bytes(n_columns, is_wide);
    const cudaError_t e = gpu_allow_shared(kernel, shared);
    if (e != cudaSuccess) return e;
    const uint32_t n_groups = a.cohorts ? a.n_most : (a.n + n_columns - 1) / n_columns;
    GPU_LAUNCH(kernel, dim3(n_groups, n), dim3(TILE_THREADS), shared, stream, a);
    return cudaGetLastError();
}

extern "C" cudaError_t cuda_launch_matmul_narrow(cudaStream_t stream, const void *params)
{
    return launch_products(stream, params, GPU_NARROW, multiply_tiles<GPU_NARROW / 16, false>);
}

extern "C" cudaError_t cuda_launch_matmul_wide(cudaStream_t stream, const void *params)
{
    return launch_products(stream, params, GPU_WIDE, multiply_tiles<GPU_WIDE / 16, false>);
}

extern "C" cudaError_t cuda_launch_cohorts_narrow(cudaStream_t stream, const void *params)
{
    return launch_products(stream, params, GPU_NARROW, multiply_tiles<GPU_NARROW / 16, true>);
}
