/*
 * The file's matrices into the planes of kernels.h. Rows are taken apart by the pool into one of two pinned
 * pieces of memory while the other is on its way, so packing, reading and the link overlap.
 *
 * Numbers are those of model/cpu/pack.c: floats become 16-bit quants with one scale for 32, so that products
 * are integer products on both backends. A scale that is not finite refuses the tensor.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "cuda/backend.h"
#include "model/file/quant.h"

enum { PIECES = 2, PIECE_BYTES = 16 << 20, ALIGN = 256, BLOCKS_OF_COARSE = 8 };

/* clang-format off */
static const struct layout { gguf_tensor_type type; int bits, scales, offset; } layouts[] = {
    {GGUF_TENSOR_Q4_0,    4, GPU_SCALES_D,    8}, {GGUF_TENSOR_Q4_1, 4, GPU_SCALES_DM,   0},
    {GGUF_TENSOR_Q5_0,    5, GPU_SCALES_D,   16}, {GGUF_TENSOR_Q5_1, 5, GPU_SCALES_DM,   0},
    {GGUF_TENSOR_Q8_0,    8, GPU_SCALES_D,    0}, {GGUF_TENSOR_Q4_K, 4, GPU_SCALES_KM,   0},
    {GGUF_TENSOR_Q5_K,    5, GPU_SCALES_KM,   0}, {GGUF_TENSOR_Q6_K, 6, GPU_SCALES_K16, 32},
    {GGUF_TENSOR_Q3_K,    4, GPU_SCALES_K16,  4}, {GGUF_TENSOR_Q2_K, 4, GPU_SCALES_KM16, 0},
    {GGUF_TENSOR_MXFP4,   4, GPU_SCALES_E,    0}, {GGUF_TENSOR_IQ4_NL, 4, GPU_SCALES_D,  0},
    {GGUF_TENSOR_IQ4_XS,  4, GPU_SCALES_K16,  0}, {GGUF_TENSOR_IQ3_S, 4, GPU_SCALES_K32, 0},
    {GGUF_TENSOR_IQ3_XXS, 4, GPU_SCALES_K32,  0}, {GGUF_TENSOR_IQ2_S, 4, GPU_SCALES_K16, 0},
    {GGUF_TENSOR_IQ2_XS,  4, GPU_SCALES_K16,  0}, {GGUF_TENSOR_IQ2_XXS, 4, GPU_SCALES_K32, 0},
    {GGUF_TENSOR_IQ1_M,   4, GPU_SCALES_K16,  0}, {GGUF_TENSOR_IQ1_S, 4, GPU_SCALES_K32, 0},
    {GGUF_TENSOR_F32,    16, GPU_SCALES_F,    0}, {GGUF_TENSOR_F16, 16, GPU_SCALES_F,    0},
    {GGUF_TENSOR_BF16,   16, GPU_SCALES_F,    0},
};
/* clang-format on */

/* The four planes of a matrix: bytes of a row in each, and where they begin on the device. */
enum { QUANTS, EXTRA, FINE, COARSE, PLANES };
typedef struct planes {
    size_t row_bytes[PLANES], at[PLANES], n_bytes;
} planes;

typedef struct pack_job {
    const gguf_tensor *tensor;
    const struct layout *layout;
    const planes *planes;
    size_t file_row_bytes;
    uint32_t n_in, first, n; /* rows of this piece */
    uint8_t *to[PLANES];
    _Atomic uint32_t next;
    _Atomic uint32_t bad_row; /* UINT32_MAX: none */
} pack_job;

static planes planes_of(const struct layout *l, uint32_t n_in, uint32_t n_out)
{
    /* Bytes for a block, and for BLOCKS_OF_COARSE of them. */
    static const size_t fine[] = {[GPU_SCALES_D] = 2,
        [GPU_SCALES_DM] = 4,
        [GPU_SCALES_KM] = 2,
        [GPU_SCALES_K16] = 2,
        [GPU_SCALES_K32] = 1,
        [GPU_SCALES_KM16] = 2,
        [GPU_SCALES_E] = 1,
        [GPU_SCALES_F] = 4};
    static const size_t coarse[] = {[GPU_SCALES_KM] = 4,
        [GPU_SCALES_K16] = 4,
        [GPU_SCALES_K32] = 4,
        [GPU_SCALES_KM16] = 4,
        [GPU_SCALES_F] = 0};
    const size_t n_blocks = n_in / GPU_BLOCK;
    planes p = {0};
    p.row_bytes[QUANTS] = n_blocks * (l->bits == 16 ? 64u : l->bits == 8 ? 32u : 16u);
    p.row_bytes[EXTRA] = n_blocks * (l->bits == 5 ? 4u : l->bits == 6 ? 8u : 0u);
    p.row_bytes[FINE] = n_blocks * fine[l->scales];
    p.row_bytes[COARSE] = n_blocks / BLOCKS_OF_COARSE * coarse[l->scales];
    for (int i = 0; i < PLANES; i++) {
        p.at[i] = p.n_bytes;
        p.n_bytes += (p.row_bytes[i] * n_out + ALIGN - 1) / ALIGN * ALIGN;
    }
    return p;
}

/* 32 quants (unsigned, natural order) to their bytes of the planes. */
static void put_quants(int bits, const uint8_t *q, uint8_t *quants, uint8_t *extra)
{
    if (bits == 8) {
        for (int i = 0; i < 32; i++) quants[i] = q[i] ^ 0x80;
        return;
    }
    for (int i = 0; i < 16; i++) quants[i] = (uint8_t)((q[i] & 15) | (q[16 + i] & 15) << 4);
    for (int k = 0; k < 32 && bits == 5; k++) extra[k % 4] |= (uint8_t)((q[k] >> 4 & 1) << (k / 4));
    for (int k = 0; k < 32 && bits == 6; k++)
        extra[k / 16 * 4 + k % 4] |= (uint8_t)((q[k] >> 4 & 3) << 2 * (k / 4 % 4));
}

/* 32 floats as 16-bit quants: upper bytes, lower bytes, one scale. */
static void put_wide(gguf_tensor_type type, const uint8_t *src, uint8_t *quants, uint8_t *fine)
{
    const float levels = 127 * 256 + 127;
    float x[GPU_BLOCK], largest = 0;
    quant_to_f32(type, src, GPU_BLOCK, x);
    for (int i = 0; i < GPU_BLOCK; i++) largest = fmaxf(largest, fabsf(x[i]));
    float d = largest / levels;
    const float inverse = d >= 0x1p-126f ? levels / largest : 0;
    if (!(inverse > 0)) d = 0;
    memcpy(fine, &d, sizeof d);
    for (int i = 0; i < GPU_BLOCK; i++) {
        const int v = (int)lrintf(x[i] * inverse), upper = (v + 128) >> 8;
        quants[i] = (uint8_t)upper;
        quants[GPU_BLOCK + i] = (uint8_t)(v - 256 * upper);
    }
}

/* The scales of block `block` of a row, which is number `at` in its block of the file. */
static void put_scales(const struct layout *l, const quant_format *of, const quant_block *b, uint32_t block,
    uint32_t at, uint8_t *fine, uint8_t *coarse)
{
    const float d = ldexpf(quant_f16_to_f32(b->d), -of->down);
    uint8_t *f = fine, *c = coarse + block / BLOCKS_OF_COARSE * 4u;
    switch (l->scales) {
    case GPU_SCALES_D: memcpy(f + 2 * block, &b->d, 2); break;
    case GPU_SCALES_DM:
        memcpy(f + 4 * block, &b->d, 2);
        memcpy(f + 4 * block + 2, &b->m, 2);
        break;
    case GPU_SCALES_KM:
        f[2 * block] = b->sc[at];
        f[2 * block + 1] = b->mn[at];
        memcpy(c, &b->d, 2);
        memcpy(c + 2, &b->m, 2);
        break;
    case GPU_SCALES_K16:
        memcpy(f + 2 * block, b->sc + 2 * at, 2);
        memcpy(c, &d, 4);
        break;
    case GPU_SCALES_K32:
        f[block] = b->sc[2 * at];
        memcpy(c, &d, 4);
        break;
    case GPU_SCALES_KM16:
        for (int half = 0; half < 2; half++)
            f[2 * block + half] = (uint8_t)(b->sc[2 * at + half] | b->mn[2 * at + half] << 4);
        memcpy(c, &b->d, 2);
        memcpy(c + 2, &b->m, 2);
        break;
    case GPU_SCALES_E: f[block] = b->sc[0]; break;
    default: break;
    }
}

static void pack_row(const pack_job *j, const uint8_t *src, uint8_t *const *to)
{
    const quant_format *f = quant_format_of(j->tensor->type);
    const struct layout *l = j->layout;
    const uint32_t n_blocks = j->n_in / GPU_BLOCK, per_file_block = f->n >= GPU_BLOCK ? f->n / GPU_BLOCK : 1;
    quant_block b = {0};
    if (j->planes->row_bytes[EXTRA]) memset(to[EXTRA], 0, j->planes->row_bytes[EXTRA]);
    for (uint32_t i = 0; i < n_blocks; i++) {
        uint8_t *quants = to[QUANTS] + i * (l->bits == 16 ? 64u : l->bits == 8 ? 32u : 16u);
        if (f->kind == QUANT_FLOAT) {
            put_wide(j->tensor->type, src + (size_t)i * GPU_BLOCK * f->n_bytes, quants, to[FINE] + 4 * i);
            continue;
        }
        if (i % per_file_block == 0)
            quant_unpack(j->tensor->type, src + (size_t)(i / per_file_block) * f->n_bytes, &b);
        put_quants(
            l->bits, b.q + i % per_file_block * GPU_BLOCK, quants, to[EXTRA] + i * (l->bits == 6 ? 8u : 4u));
        put_scales(l, f, &b, i, i % per_file_block, to[FINE], to[COARSE]);
    }
}

static void pack_rows(void *arg, int thread, int n_threads)
{
    (void)thread;
    (void)n_threads;
    pack_job *j = arg;
    for (uint32_t i; (i = atomic_fetch_add(&j->next, 1)) < j->n;) {
        const uint8_t *src = j->tensor->data + (size_t)(j->first + i) * j->file_row_bytes;
        uint8_t *to[PLANES];
        for (int p = 0; p < PLANES; p++) to[p] = j->to[p] + i * j->planes->row_bytes[p];
        if (!quant_is_finite(j->tensor->type, src, j->n_in)) j->bad_row = j->first + i;
        pack_row(j, src, to);
    }
}

/* Packs rows [first, first + n) into a pinned piece and sends its planes. */
static int send_rows(cuda_backend *c, pack_job *j, uint8_t *piece, const ops_weight *w, base_err *err)
{
    int rc = 0;
    for (int p = 0; p < PLANES; p++) {
        j->to[p] = piece;
        piece += (j->planes->row_bytes[p] * j->n + 15) / 16 * 16;
    }
    j->next = 0;
    base_pool_share(c->pool, pack_rows, j);
    for (int p = 0; p < PLANES && !rc; p++) {
        const size_t row = j->planes->row_bytes[p];
        if (row == 0) continue;
        rc = cuda_check(c,
            cudaMemcpyAsync((uint8_t *)w->data + j->planes->at[p] + j->first * row, j->to[p], j->n * row,
                cudaMemcpyHostToDevice, c->stream),
            err);
    }
    return rc;
}

/* The pieces are the move arena's two halves: nothing of a batch is under way while weights are packed. */
static int send_matrix(cuda_backend *c, pack_job *j, const ops_weight *w, uint32_t n_out, base_err *err)
{
    cudaEvent_t done[PIECES] = {0};
    size_t row = 0;
    int rc = cuda_finish(c, err);
    for (int p = 0; p < PLANES; p++) row += j->planes->row_bytes[p];
    const uint32_t step = row + 64 < PIECE_BYTES ? (uint32_t)((PIECE_BYTES - 64) / row) : 1;
    for (int i = 0; i < PIECES && !rc; i++)
        rc = cuda_check(c, cudaEventCreateWithFlags(&done[i], cudaEventDisableTiming), err);
    for (uint32_t piece = 0; j->first < n_out && !rc; j->first += j->n, piece++) {
        const int side = (int)(piece % PIECES);
        j->n = n_out - j->first < step ? n_out - j->first : step;
        if (piece >= PIECES) rc = cuda_check(c, cudaEventSynchronize(done[side]), err);
        if (!rc) rc = send_rows(c, j, c->move.host + (size_t)side * (c->move.size / PIECES), w, err);
        if (!rc) rc = cuda_check(c, cudaEventRecord(done[side], c->stream), err);
    }
    if (!rc) rc = cuda_check(c, cudaStreamSynchronize(c->stream), err);
    for (int i = 0; i < PIECES; i++)
        if (done[i]) cudaEventDestroy(done[i]);
    return rc;
}

/* The copy in BF16 that cuBLAS takes, made there out of the planes. */
static int widen(cuda_backend *c, ops_weight *w, base_err *err)
{
    const size_t n = (size_t)w->w.n_in * w->w.n_out;
    int rc = cuda_alloc(c, &w->wide, n * sizeof(uint16_t), "weights in BF16", err);
    if (rc) return rc;
    w->wide_bytes = n * sizeof(uint16_t);
    return cuda_run_now(c, cuda_launch_widen, &(k_widen){w->w, w->wide, n / GPU_BLOCK}, err);
}

int cuda_pack(model_ops *ops, ops_weight **ret, const gguf_tensor *t, base_err *err)
{
    cuda_backend *c = cuda_of(ops);
    const struct layout *l = NULL;
    const quant_format *f = quant_format_of(t->type);
    const int n_name = (int)t->name.len;
    for (size_t i = 0; i < sizeof layouts / sizeof *layouts && !l; i++)
        if (layouts[i].type == t->type) l = &layouts[i];
    if (!l || !f)
        return base_fail(err, BASE_E_UNSUPPORTED,
            "tensor %.*s: the GPU does not compute the format %s; use --backend cpu", n_name, t->name.ptr,
            gguf_tensor_type_name(t->type));
    size_t rows = 0; /* of all matrices of a stack */
    if (t->ne[0] == 0 || t->ne[0] % GPU_BLOCK || t->ne[0] > 1u << 18 ||
        !base_mul(t->ne[1], t->ne[2], &rows) || rows == 0 || rows > 1u << 24)
        return base_fail(err, BASE_E_UNSUPPORTED,
            "tensor %.*s: %llu x %llu x %llu cannot be packed (rows must be a multiple of 32, up to %u)",
            n_name, t->name.ptr, (unsigned long long)t->ne[0], (unsigned long long)t->ne[1],
            (unsigned long long)t->ne[2], 1u << 18);

    const uint32_t n_in = (uint32_t)t->ne[0], n_out = (uint32_t)rows;
    const planes p = planes_of(l, n_in, n_out);
    ops_weight *w = calloc(1, sizeof *w);
    if (!w) return base_fail(err, BASE_E_NOMEM, "no memory for a matrix");
    w->n_bytes = p.n_bytes;
    int rc = cuda_alloc(c, &w->data, w->n_bytes, "weights", err);
    if (rc) {
        free(w);
        return rc;
    }
    const uint8_t *data = w->data;
    w->w = (gpu_weight){.quants = data + p.at[QUANTS],
        .extra = data + p.at[EXTRA],
        .fine = data + p.at[FINE],
        .coarse = data + p.at[COARSE],
        .n_in = n_in,
        .n_out = n_out,
        .bits = l->bits,
        .scales = l->scales,
        .offset = l->offset,
        .has_codes = f->codes != NULL};
    if (f->codes) memcpy(w->w.codes, f->codes, sizeof w->w.codes);
    pack_job j = {.tensor = t, .layout = l, .planes = &p, .n_in = n_in, .bad_row = UINT32_MAX};
    j.file_row_bytes = (size_t)n_in / f->n * f->n_bytes;
    rc = send_matrix(c, &j, w, n_out, err);
    if (!rc && j.bad_row != UINT32_MAX)
        rc = base_fail(err, BASE_E_FORMAT,
            "tensor %.*s: row %u holds a number that is not finite: the file is damaged", n_name, t->name.ptr,
            (unsigned)j.bad_row);
    if (!rc && c->cublas && n_out <= CUDA_BF16_OUTPUTS && t->ne[2] == 1) rc = widen(c, w, err);
    if (rc) {
        cuda_weight_free(ops, w);
        return rc;
    }
    *ret = w;
    return 0;
}

void cuda_weight_free(model_ops *ops, ops_weight *w)
{
    if (!w) return;
    cuda_backend *c = cuda_of(ops);
    cuda_finish(c, NULL); /* launches that wait may read it */
    if (w->on_host) c->host.ops->weight_free(c->host.ops, w->on_host);
    cuda_free(c, w->data, w->n_bytes);
    cuda_free(c, w->wide, w->wide_bytes);
    free(w);
}

size_t cuda_weight_bytes(const ops_weight *w)
{
    return w->n_bytes;
}

uint32_t cuda_weight_outputs(const ops_weight *w)
{
    return w->w.n_out;
}
