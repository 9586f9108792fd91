/*
 * From the file's rows to P16 tiles (formats.def). One pass over the bytes on all threads; a scale that is
 * not finite refuses the tensor here, so that no product ever meets one. A level may bring its own function
 * for whole super-blocks, which makes the same bytes (pack_avx512.c); what is left over is packed here.
 *
 * Floats become 16-bit quants with one scale per 32 (WIDE): 2^-16 of the largest of 32, the same integer
 * kernels, and no second kind of activation.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "model/cpu/cpu.h"
#include "model/file/quant.h"

enum { GROUPS = CPU_BLOCK / 4 };

typedef struct pack_job {
    const gguf_tensor *tensor;
    const quant_format *source;
    ops_weight *w;
    cpu_pack_fn *fn; /* takes whole super-blocks of whole tiles; NULL: none does */
    size_t row_bytes;
    _Atomic uint32_t next_tile;
    _Atomic uint32_t bad_row; /* first that was seen; UINT32_MAX: none */
} pack_job;

/* One super-block of 16 rows, taken apart. */
typedef struct pack_super {
    uint32_t words[CPU_SUPER_MAX][GROUPS][CPU_LANES]; /* k-groups: the 4 quants of a row */
    uint32_t lower[CPU_SUPER_MAX][GROUPS][CPU_LANES]; /* WIDE: lower bytes */
    uint16_t d[2][CPU_LANES], m[CPU_LANES];
    float single_d[CPU_LANES]; /* F, K16, K32 */
    uint8_t sc[CPU_SUPER_MAX][2][CPU_LANES], mn[CPU_SUPER_MAX][CPU_LANES];
} pack_super;

static bool format_of(gguf_tensor_type type, cpu_format *ret)
{
    /* clang-format off */
    static const struct { gguf_tensor_type type; cpu_format format; } table[] = {
        {GGUF_TENSOR_Q4_0, CPU_Q4_0}, {GGUF_TENSOR_Q4_1, CPU_Q4_1}, {GGUF_TENSOR_Q5_0, CPU_Q5_0}, {GGUF_TENSOR_Q5_1, CPU_Q5_1},
        {GGUF_TENSOR_Q8_0, CPU_Q8_0}, {GGUF_TENSOR_Q4_K, CPU_Q4_K}, {GGUF_TENSOR_Q5_K, CPU_Q5_K}, {GGUF_TENSOR_Q6_K, CPU_Q6_K},
        {GGUF_TENSOR_Q3_K, CPU_Q3_K}, {GGUF_TENSOR_IQ4_NL, CPU_IQ4_NL}, {GGUF_TENSOR_IQ4_XS, CPU_IQ4_XS},
        {GGUF_TENSOR_MXFP4, CPU_MXFP4}, {GGUF_TENSOR_Q2_K, CPU_Q2_K},
        {GGUF_TENSOR_IQ3_S, CPU_IQ3_S}, {GGUF_TENSOR_IQ3_XXS, CPU_IQ3_XXS}, {GGUF_TENSOR_IQ2_S, CPU_IQ2_S},
        {GGUF_TENSOR_IQ2_XS, CPU_IQ2_S}, {GGUF_TENSOR_IQ2_XXS, CPU_IQ2_XXS}, {GGUF_TENSOR_IQ1_M, CPU_IQ1_M},
        {GGUF_TENSOR_IQ1_S, CPU_IQ1_S},
        {GGUF_TENSOR_F32, CPU_WIDE},  {GGUF_TENSOR_F16, CPU_WIDE},  {GGUF_TENSOR_BF16, CPU_WIDE},
    };
    /* clang-format on */
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        if (table[i].type != type) continue;
        *ret = table[i].format;
        return true;
    }
    return false;
}

static void take_wide(const pack_job *job, const uint8_t *src, uint32_t row, pack_super *s)
{
    float x[CPU_BLOCK], largest = 0;
    quant_to_f32(job->tensor->type, src, CPU_BLOCK, x);
    for (int i = 0; i < CPU_BLOCK; i++) largest = fmaxf(largest, fabsf(x[i]));
    const float levels = 127 * 256 + 127;
    float d = largest / levels, inverse = d >= 0x1p-126f ? levels / largest : 0;
    s->single_d[row] = inverse > 0 ? d : 0;
    for (int i = 0; i < CPU_BLOCK; i++) {
        int v = (int)lrintf(x[i] * inverse), upper = (v + 128) >> 8;
        int shift = 8 * (i % 4);
        s->words[0][i / 4][row] |= (uint32_t)(upper + 128) << shift;
        s->lower[0][i / 4][row] |= (uint32_t)(v - 256 * upper + 128) << shift;
    }
}

/* The blocks of one row that make super-block `super`, into lane `row`. */
static void take_row(const pack_job *job, const uint8_t *src, uint32_t super, uint32_t row, pack_super *s)
{
    const cpu_format_info *f = &cpu_formats[job->w->format];
    const quant_format *q = job->source;
    if (q->kind == QUANT_FLOAT) {
        take_wide(job, src + (size_t)super * CPU_BLOCK * q->n_bytes, row, s);
        return;
    }
    uint32_t first = super * f->blocks, n_blocks = job->w->n_in / CPU_BLOCK;
    quant_block b = {0};
    for (uint32_t i = 0; i < f->blocks && first + i < n_blocks; i++) {
        uint32_t per_block = q->n / CPU_BLOCK; /* our blocks in one of the file's */
        if (i % per_block == 0)
            quant_unpack(job->tensor->type, src + (size_t)((first + i) / per_block) * q->n_bytes, &b);
        for (uint32_t g = 0; g < GROUPS; g++)
            memcpy(&s->words[i][g][row], b.q + (i % per_block) * CPU_BLOCK + 4 * g, 4);
        s->d[i % 2][row] = b.d;
        s->m[row] = b.m;
        s->mn[i][row] = b.mn[i];
        if (q->kind == QUANT_SUPER_16 || q->kind == QUANT_SUPER_MIN_16) {
            const bool has_min = q->kind == QUANT_SUPER_MIN_16;
            for (uint32_t half = 0; half < 2; half++)
                s->sc[i][half][row] = (uint8_t)(b.sc[2 * i + half] | (has_min ? b.mn[2 * i + half] << 4 : 0));
        } else {
            s->sc[i][0][row] = b.sc[i % per_block];
        }
    }
    if (f->scales != CPU_SCALES_D) s->d[0][row] = b.d;
    s->single_d[row] = ldexpf(quant_f16_to_f32(b.d), -q->down);
}

static void put_head(const cpu_format_info *f, const pack_super *s, uint8_t *out)
{
    const size_t halves = CPU_LANES * sizeof(uint16_t);
    memset(out, 0, f->head_bytes);
    switch (f->scales) {
    case CPU_SCALES_D: memcpy(out, s->d, 2 * halves); break;
    case CPU_SCALES_F: memcpy(out, s->single_d, sizeof s->single_d); break;
    case CPU_SCALES_E:
        for (uint32_t i = 0; i < f->blocks; i++) memcpy(out + CPU_LANES * i, s->sc[i][0], CPU_LANES);
        break;
    case CPU_SCALES_DM:
        memcpy(out, s->d[0], halves);
        memcpy(out + halves, s->m, halves);
        break;
    case CPU_SCALES_KM:
        memcpy(out, s->d[0], halves);
        memcpy(out + halves, s->m, halves);
        for (uint32_t i = 0; i < f->blocks; i++) {
            memcpy(out + 64 + CPU_LANES * i, s->sc[i][0], CPU_LANES);
            memcpy(out + 64 + CPU_LANES * (f->blocks + i), s->mn[i], CPU_LANES);
        }
        break;
    case CPU_SCALES_K16:
        memcpy(out, s->single_d, sizeof s->single_d);
        memcpy(out + 64, s->sc, 2 * CPU_LANES * f->blocks);
        break;
    case CPU_SCALES_K32:
        memcpy(out, s->single_d, sizeof s->single_d);
        for (uint32_t i = 0; i < f->blocks; i++) memcpy(out + 64 + CPU_LANES * i, s->sc[i][0], CPU_LANES);
        break;
    case CPU_SCALES_KM16:
        memcpy(out, s->d[0], halves);
        memcpy(out + halves, s->m, halves);
        memcpy(out + 64, s->sc, 2 * CPU_LANES * f->blocks);
        break;
    }
}

/* The k-groups of one block to its bit planes. */
static void put_block(
    int bits, const uint32_t (*w)[CPU_LANES], const uint32_t (*lower)[CPU_LANES], uint8_t *out)
{
    if (bits >= 8) {
        memcpy(out, w, 512);
        if (bits == 16) memcpy(out + 512, lower, 512);
        return;
    }
    uint32_t plane[6][CPU_LANES] = {0};
    if (bits <= 3) {
        for (int g = 0; g < GROUPS; g++)
            for (int r = 0; r < CPU_LANES; r++) {
                plane[g / 4][r] |= (w[g][r] & 0x03030303u) << 2 * (g % 4);
                plane[2][r] |= (w[g][r] >> 2 & 0x01010101u) << g;
            }
        memcpy(out, plane, 64 * (size_t)bits);
        return;
    }
    int down = bits == 6 ? 2 : 0;
    for (int g = 0; g < 4; g++)
        for (int r = 0; r < CPU_LANES; r++)
            plane[g][r] = (w[g][r] >> down & 0x0F0F0F0Fu) | (w[4 + g][r] >> down & 0x0F0F0F0Fu) << 4;
    for (int r = 0; r < CPU_LANES; r++) {
        if (bits == 5)
            for (int g = 0; g < GROUPS; g++) plane[4][r] |= (w[g][r] >> 4 & 0x01010101u) << g;
        if (bits == 6)
            for (int j = 0; j < 2; j++)
                for (int i = 0; i < 4; i++)
                    plane[4 + j][r] |= (w[2 * j + i / 2 + 4 * (i % 2)][r] & 0x03030303u) << 2 * i;
    }
    memcpy(out, plane, 64 * (size_t)bits);
}

static void pack_tile(pack_job *job, uint32_t tile)
{
    ops_weight *w = job->w;
    const cpu_format_info *f = &cpu_formats[w->format];
    uint8_t *out = w->data + tile * w->tile_bytes;
    uint32_t first = tile * CPU_LANES, n_rows = w->n_out - first < CPU_LANES ? w->n_out - first : CPU_LANES;
    const uint8_t *src = job->tensor->data + first * job->row_bytes;
    for (uint32_t r = 0; r < n_rows; r++)
        if (!quant_is_finite(job->tensor->type, src + r * job->row_bytes, w->n_in)) job->bad_row = first + r;
    uint32_t n_whole = job->fn && n_rows == CPU_LANES ? w->n_in / (CPU_BLOCK * f->blocks) : 0;
    const uint8_t *rows[CPU_LANES];
    for (uint32_t r = 0; r < n_rows; r++) rows[r] = src + r * job->row_bytes;
    for (uint32_t i = 0; i < n_whole; i++, out += f->head_bytes + f->blocks * f->block_bytes) {
        job->fn(rows, out);
        for (uint32_t r = 0; r < CPU_LANES; r++)
            rows[r] += (size_t)CPU_BLOCK * f->blocks / job->source->n * job->source->n_bytes;
    }
    for (uint32_t i = n_whole; i < w->n_super; i++) {
        pack_super s;
        memset(&s, 0, sizeof s);
        for (uint32_t r = 0; r < n_rows; r++) take_row(job, src + r * job->row_bytes, i, r, &s);
        put_head(f, &s, out);
        out += f->head_bytes;
        for (uint32_t b = 0; b < f->blocks; b++, out += f->block_bytes)
            put_block(f->bits, s.words[b], s.lower[b], out);
    }
}

static void pack_run(void *arg, int thread, int n_threads)
{
    (void)thread;
    (void)n_threads;
    pack_job *job = arg;
    for (;;) {
        uint32_t tile = atomic_fetch_add(&job->next_tile, 1);
        if (tile >= job->w->n_tiles) return;
        pack_tile(job, tile);
    }
}

uint64_t cpu_packed_bytes(const gguf_tensor *t)
{
    cpu_format format;
    const quant_format *source = quant_format_of(t->type);
    if (!source || !format_of(t->type, &format)) return t->n_bytes;
    const cpu_format_info *f = &cpu_formats[format];
    const uint64_t super_bytes = f->head_bytes + (uint64_t)f->blocks * f->block_bytes;
    return t->n_bytes / source->n_bytes * source->n / CPU_BLOCK * super_bytes / (CPU_LANES * f->blocks);
}

int cpu_pack(model_ops *ops, ops_weight **ret, const gguf_tensor *t, base_err *err)
{
    cpu_ops *cpu = (cpu_ops *)ops;
    cpu_format format;
    int n_name = (int)t->name.len;
    if (!format_of(t->type, &format))
        return base_fail(err, BASE_E_UNSUPPORTED, "tensor %.*s: format %d is not supported", n_name,
            t->name.ptr, (int)t->type);
    size_t rows = 0;
    if (t->ne[0] == 0 || t->ne[0] % CPU_BLOCK || t->ne[0] > 1u << 20 ||
        !base_mul(t->ne[1], t->ne[2], &rows) || rows == 0 || rows > 1u << 24 || t->ne[3] != 1)
        return base_fail(err, BASE_E_UNSUPPORTED,
            "tensor %.*s: %llu x %llu x %llu cannot be packed (rows must be a multiple of 32)", n_name,
            t->name.ptr, (unsigned long long)t->ne[0], (unsigned long long)t->ne[1],
            (unsigned long long)t->ne[2]);

    const cpu_format_info *f = &cpu_formats[format];
    const quant_format *source = quant_format_of(t->type);
    uint32_t n_in = (uint32_t)t->ne[0], n_out = (uint32_t)rows, per_super = CPU_BLOCK * f->blocks;
    ops_weight shape = {.format = format, .n_in = n_in, .n_out = n_out};
    shape.n_tiles = (n_out + CPU_LANES - 1) / CPU_LANES;
    shape.n_super = (n_in + per_super - 1) / per_super;
    shape.tile_bytes = shape.n_super * (f->head_bytes + (size_t)f->blocks * f->block_bytes);
    ops_weight *w = malloc(sizeof *w);
    if (w) *w = shape;
    if (!w || !base_mul(shape.tile_bytes, shape.n_tiles, &w->n_bytes) ||
        !(w->data = cpu_arena_take(cpu, w->n_bytes))) {
        free(w);
        return base_fail(err, BASE_E_NOMEM, "tensor %.*s: no memory for %u rows of %u packed weights", n_name,
            t->name.ptr, n_out, n_in);
    }
    pack_job job = {
        .tensor = t, .source = source, .w = w, .fn = cpu->kernels.pack[format], .bad_row = UINT32_MAX};
    job.row_bytes = (size_t)n_in / source->n * source->n_bytes;
    base_pool_share(cpu->pool, pack_run, &job);
    if (job.bad_row != UINT32_MAX) {
        uint32_t row = job.bad_row;
        cpu_weight_free(ops, w);
        return base_fail(err, BASE_E_FORMAT,
            "tensor %.*s: row %u holds a number that is not finite: the file is damaged", n_name, t->name.ptr,
            row);
    }
    *ret = w;
    return 0;
}

void cpu_weight_free(model_ops *ops, ops_weight *w)
{
    (void)ops;
    free(w); /* its bytes belong to the arena */
}

size_t cpu_weight_bytes(const ops_weight *w)
{
    return w->n_bytes;
}

uint32_t cpu_weight_outputs(const ops_weight *w)
{
    return w->n_out;
}
