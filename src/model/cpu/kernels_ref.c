/*
 * The kernels in plain C: the meaning of every entry, the reference of tests/model/check_ops.c, and what runs
 * where no level fits. fmaf stands wherever a level has a fused instruction, so that the bits agree.
 */
#include <math.h>
#include <string.h>

#include "model/cpu/cpu.h"
#include "model/cpu/exp.h"
#include "model/file/quant.h"

static float exp_ref(float x)
{
    if (x < EXP_LOW) return 0;
    if (x > EXP_HIGH) x = EXP_HIGH;
    float shifted = fmaf(x, EXP_LOG2E, EXP_ROUND), n = shifted - EXP_ROUND;
    float r = fmaf(n, -EXP_LN2_HI, x);
    r = fmaf(n, -EXP_LN2_LO, r);
    float p = EXP_C5;
    p = fmaf(p, r, EXP_C4);
    p = fmaf(p, r, EXP_C3);
    p = fmaf(p, r, EXP_C2);
    p = fmaf(p, r, EXP_C1);
    p = fmaf(p, r, EXP_C0);
    p = fmaf(p, r * r, r) + 1.0f;
    return p * quant_float_of_bits((quant_bits_of_float(shifted) << 23) + 0x3F800000u);
}

static float add_by_halves(float *s)
{
    for (int half = 8; half > 0; half /= 2)
        for (int i = 0; i < half; i++) s[i] += s[i + half];
    return s[0];
}

/* ---- rows of activations ---- */

static void norm_row_ref(const float *x, const float *weight, uint32_t n, float eps, float *out)
{
    float squares[16] = {0};
    for (uint32_t i = 0; i < n; i++) squares[i % 16] = fmaf(x[i], x[i], squares[i % 16]);
    float scale = 1.0f / sqrtf(add_by_halves(squares) / (float)n + eps);
    for (uint32_t i = 0; i < n; i++) out[i] = x[i] * scale * weight[i];
}

static void dot_rows_ref(
    const float *rows, size_t stride, uint32_t n_rows, const float *x, uint32_t n, float *out)
{
    for (uint32_t r = 0; r < n_rows; r++, rows += stride) {
        float sums[16] = {0};
        for (uint32_t i = 0; i < n; i++) sums[i % 16] = fmaf(rows[i], x[i], sums[i % 16]);
        out[r] = add_by_halves(sums);
    }
}

static void gate_row_ref(const float *gate, const float *up, ops_gate kind, uint32_t n, float *out)
{
    for (uint32_t i = 0; i < n; i++) {
        float x = gate[i], u = x, y = up[i];
        if (kind == OPS_GATE_GELU_TANH) u = 2 * GELU_A * fmaf(GELU_B * x * x, x, x);
        if (kind == OPS_GATE_CLAMPED) { /* what is no number stays none */
            x = OPS_CLAMP < x ? OPS_CLAMP : x;
            y = OPS_CLAMP < y ? OPS_CLAMP : y;
            y = (-OPS_CLAMP > y ? -OPS_CLAMP : y) + 1.0f;
            u = OPS_CLAMP_STEEP * x;
        }
        out[i] = (kind == OPS_GATE_SIGMOID ? 1.0f : x) / (1.0f + exp_ref(-u)) * y;
    }
}

static void conv_row_ref(
    const float *const *rows, const float *const *taps, uint32_t n_taps, uint32_t n, float *out)
{
    for (uint32_t i = 0; i < n; i++) {
        float sum = 0;
        for (uint32_t j = 0; j < n_taps; j++) sum = fmaf(taps[j][i], rows[j][i], sum);
        out[i] = sum / (1.0f + exp_ref(-sum));
    }
}

static void delta_step_ref(const cpu_delta *d, const float *from, float *to, float *out)
{
    enum { COLUMNS = OPS_DELTA_COLUMNS };
    float kept[4][COLUMNS] = {{0}}, read[4][COLUMNS] = {{0}}, by[COLUMNS];
    for (uint32_t i = 0; i < d->n_keys; i++)
        for (uint32_t c = 0; c < COLUMNS; c++)
            kept[i % 4][c] = fmaf(from[i * COLUMNS + c], d->k[i], kept[i % 4][c]);
    for (uint32_t c = 0; c < COLUMNS; c++) {
        const float sum = (kept[0][c] + kept[2][c]) + (kept[1][c] + kept[3][c]);
        by[c] = d->beta * fmaf(-d->decay, sum, d->v[c]);
    }
    for (uint32_t i = 0; i < d->n_keys; i++)
        for (uint32_t c = 0; c < COLUMNS; c++) {
            const float s = fmaf(d->k[i], by[c], d->decay * from[i * COLUMNS + c]);
            to[i * COLUMNS + c] = s;
            read[i % 4][c] = fmaf(s, d->q[i], read[i % 4][c]);
        }
    for (uint32_t c = 0; c < COLUMNS; c++) out[c] = (read[0][c] + read[2][c]) + (read[1][c] + read[3][c]);
}

/*
 * A block that holds something not finite gets a scale that says so: its product is NaN, never a plausible
 * number.
 */
static void quant_row_ref(const float *x, uint32_t n, int8_t *q, float *d)
{
    for (uint32_t b = 0; b < n / CPU_BLOCK; b++, x += CPU_BLOCK, q += CPU_BLOCK) {
        float largest = 0;
        bool finite = true;
        for (int i = 0; i < CPU_BLOCK; i++) {
            float a = fabsf(x[i]);
            finite = finite && a <= 3.4028234e38f;
            largest = a > largest ? a : largest;
        }
        float inverse = finite && largest >= 1e-30f ? 127.0f / largest : 0;
        d[b] = !finite ? NAN : inverse > 0 ? largest / 127.0f : 0;
        for (int i = 0; i < CPU_BLOCK; i++) q[i] = (int8_t)(inverse > 0 ? lrintf(x[i] * inverse) : 0);
    }
}

static void quant_fine_row_ref(const float *x, uint32_t n, const int8_t *q, const float *d, int8_t *q2)
{
    for (uint32_t i = 0; i < n; i++) {
        float scale = d[i / CPU_BLOCK], inverse = scale > 0 ? 1.0f / scale : 0;
        float rest = fmaf(x[i], inverse, -(float)q[i]) * 256;
        rest = rest > 127 ? 127 : rest < -127 ? -127 : rest;
        q2[i] = (int8_t)(scale > 0 ? lrintf(rest) : 0);
    }
}

static int32_t sum_16(const int8_t *q)
{
    int32_t sum = 0;
    for (int i = 0; i < 16; i++) sum += q[i];
    return sum;
}

static void interleave_ref(const int8_t *const *q, const float *const *d, const float *unit, uint32_t c,
    uint32_t n_blocks, cpu_columns out)
{
    for (uint32_t b = 0; b < n_blocks; b++)
        for (uint32_t i = 0; i < c; i++) {
            const int8_t *from = q[i] + (size_t)b * CPU_BLOCK;
            size_t at = (size_t)b * c + i;
            int32_t first = sum_16(from), second = sum_16(from + 16);
            for (uint32_t g = 0; g < 8; g++)
                memcpy(out.q + 4 * (((size_t)b * 8 + g) * c + i), from + 4 * g, 4);
            out.d[at] = d[i][b] * unit[i];
            out.sum[at] = (float)(first + second);
            out.nsum[(size_t)b * 2 * c + i] = -first;
            out.nsum[(size_t)b * 2 * c + c + i] = -second;
        }
}

/* ---- weights ---- */

/* The quant of lane r, byte i of k-group g. */
static int quant_at(int bits, const uint8_t *block, int g, int r, int i)
{
    int lane = 4 * r + i;
    if (bits >= 8) return block[64 * g + lane];
    if (bits <= 3) {
        const int third = bits == 3 ? block[128 + lane] >> g & 1 : 0;
        return (block[64 * (g / 4) + lane] >> 2 * (g % 4) & 3) | third << 2;
    }
    int byte = block[64 * (g % 4) + lane], nibble = g < 4 ? byte & 15 : byte >> 4;
    if (bits == 4) return nibble;
    if (bits == 5) return nibble | (block[256 + lane] >> g & 1) << 4;
    int field = 2 * (2 * (g % 2) + g / 4);
    return nibble << 2 | (block[256 + 64 * (g % 4 / 2) + lane] >> field & 3);
}

static float read_f32(const uint8_t *p)
{
    float f;
    memcpy(&f, p, sizeof f);
    return f;
}

static float read_f16(const uint8_t *p)
{
    uint16_t h;
    memcpy(&h, p, sizeof h);
    return quant_f16_to_f32(h);
}

/* The vectors of scales of block b: two, of KM16 four. */
static void block_scales(
    const cpu_format_info *f, const uint8_t *head, uint32_t b, float (*scales)[CPU_LANES])
{
    float *first = scales[0], *second = scales[1];
    for (uint32_t r = 0; r < CPU_LANES; r++) {
        second[r] = 0;
        switch (f->scales) {
        case CPU_SCALES_D: first[r] = read_f16(head + 32 * b + 2 * r); break;
        case CPU_SCALES_F: first[r] = read_f32(head + 4 * r); break;
        case CPU_SCALES_E: first[r] = quant_scale_of_power(head[16 * b + r]); break;
        case CPU_SCALES_DM:
            first[r] = read_f16(head + 2 * r);
            second[r] = read_f16(head + 32 + 2 * r);
            break;
        case CPU_SCALES_KM:
            first[r] = read_f16(head + 2 * r) * head[64 + 16 * b + r];
            second[r] = -(read_f16(head + 32 + 2 * r) * head[64 + 16 * (f->blocks + b) + r]);
            break;
        case CPU_SCALES_K16:
            first[r] = read_f32(head + 4 * r) * (float)(int8_t)head[64 + 32 * b + r];
            second[r] = read_f32(head + 4 * r) * (float)(int8_t)head[64 + 32 * b + 16 + r];
            break;
        case CPU_SCALES_K32: first[r] = read_f32(head + 4 * r) * (float)(int8_t)head[64 + 16 * b + r]; break;
        case CPU_SCALES_KM16:
            for (int half = 0; half < 2; half++) {
                uint8_t both = head[64 + 32 * b + 16 * (uint32_t)half + r];
                scales[half][r] = read_f16(head + 2 * r) * (float)(both & 15);
                scales[2 + half][r] = read_f16(head + 32 + 2 * r) * (float)(both >> 4);
            }
            break;
        }
    }
}

static void expand_ref(const cpu_format_info *f, const uint8_t *tile, uint32_t n_super, uint8_t *panel)
{
    for (uint32_t s = 0; s < n_super; s++) {
        const uint8_t *head = tile, *block = tile + f->head_bytes;
        for (uint32_t b = 0; b < f->blocks; b++, block += f->block_bytes) {
            float scales[4][CPU_LANES];
            block_scales(f, head, b, scales);
            memcpy(panel, scales, cpu_panel_scales_bytes(f->scales));
            panel += cpu_panel_scales_bytes(f->scales);
            int n_groups = f->bits == 16 ? 16 : 8;
            for (int g = 0; g < n_groups; g++)
                for (int r = 0; r < CPU_LANES; r++)
                    for (int i = 0; i < 4; i++) {
                        int q = quant_at(f->bits, block, g, r, i);
                        *panel++ = (uint8_t)(f->codes ? f->codes[q] + (1 << f->shift) : q);
                    }
        }
        tile = block;
    }
}

#define CPU_FORMAT(name, bits, scales, blocks, head, shift, codes)                                           \
    static void expand_##name##_ref(const uint8_t *tile, uint32_t n_super, uint8_t *panel)                   \
    {                                                                                                        \
        expand_ref(&cpu_formats[CPU_##name], tile, n_super, panel);                                          \
    }
#include "model/cpu/formats.def"
#undef CPU_FORMAT

/*
 * k-groups [from, to) of a panel's block times one column, on top of what is in dot. x steps over c
 * interleaved columns.
 */
static void dot_groups(const uint8_t *w, const int8_t *x, uint32_t c, int from, int to, int32_t *dot)
{
    for (int g = from; g < to; g++) {
        const uint8_t *vector = w + 64 * g;
        const int8_t *four = x + (size_t)g * 4 * c;
        for (int r = 0; r < CPU_LANES; r++)
            dot[r] += vector[4 * r] * four[0] + vector[4 * r + 1] * four[1] + vector[4 * r + 2] * four[2] +
                      vector[4 * r + 3] * four[3];
    }
}

/* acc += d * (the block's value), for one column. */
static void multiply_block(cpu_scales kind, int shift, const uint8_t *block, const int8_t *x, uint32_t c,
    float d, float sum, int32_t nsum0, int32_t nsum1, float *acc)
{
    float scales[4][CPU_LANES];
    memcpy(scales, block, cpu_panel_scales_bytes(kind));
    const uint8_t *w = block + cpu_panel_scales_bytes(kind);
    const bool halves = kind == CPU_SCALES_K16 || kind == CPU_SCALES_KM16;
    const bool has_min = kind == CPU_SCALES_DM || kind == CPU_SCALES_KM || kind == CPU_SCALES_KM16;
    int32_t dot[2][CPU_LANES], start = has_min ? 0 : (nsum0 + nsum1) * (1 << shift);
    for (int r = 0; r < CPU_LANES; r++) {
        dot[0][r] = kind == CPU_SCALES_K16 ? nsum0 * (1 << shift) : start;
        dot[1][r] = kind == CPU_SCALES_K16 ? nsum1 * (1 << shift) : start;
    }
    if (halves) {
        dot_groups(w, x, c, 0, 4, dot[0]);
        dot_groups(w, x, c, 4, 8, dot[1]);
    } else {
        dot_groups(w, x, c, 0, 8, dot[0]);
    }
    if (kind == CPU_SCALES_F) dot_groups(w + 512, x, c, 0, 8, dot[1]);
    for (int r = 0; r < CPU_LANES; r++) {
        float value;
        if (halves)
            value = fmaf((float)dot[1][r], scales[1][r], (float)dot[0][r] * scales[0][r]);
        else if (kind == CPU_SCALES_F)
            value = (float)(dot[0][r] * 256 + dot[1][r]) * scales[0][r];
        else if (kind == CPU_SCALES_D)
            value = (float)dot[0][r] * scales[0][r];
        else
            value = fmaf((float)dot[0][r], scales[0][r], scales[1][r] * sum);
        if (kind == CPU_SCALES_KM16) {
            value = fmaf((float)nsum0, scales[2][r], value);
            value = fmaf((float)nsum1, scales[3][r], value);
        }
        acc[r] = fmaf(d, value, acc[r]);
    }
}

static void panel_ref(cpu_scales kind, const uint8_t *panel, uint32_t n_blocks, int shift,
    const cpu_columns *x, uint32_t c, float *out)
{
    size_t bytes = cpu_panel_block_bytes(kind);
    memset(out, 0, (size_t)c * CPU_LANES * sizeof *out);
    for (uint32_t b = 0; b < n_blocks; b++)
        for (uint32_t i = 0; i < c; i++) {
            size_t at = (size_t)b * c + i;
            const int8_t *q = x->q + ((size_t)b * CPU_BLOCK * c + 4 * i);
            const int32_t *nsum = x->nsum + (size_t)b * 2 * c + i;
            multiply_block(kind, shift, panel + b * bytes, q, c, x->d[at], x->sum[at], nsum[0], nsum[c],
                out + i * CPU_LANES);
        }
}

#define PANEL_REF(kind)                                                                                      \
    static void panel_##kind##_ref(                                                                          \
        const uint8_t *panel, uint32_t n_blocks, int shift, const cpu_columns *x, uint32_t c, float *out)    \
    {                                                                                                        \
        panel_ref(CPU_SCALES_##kind, panel, n_blocks, shift, x, c, out);                                     \
    }
PANEL_REF(D)
PANEL_REF(DM)
PANEL_REF(KM)
PANEL_REF(K16)
PANEL_REF(KM16)
PANEL_REF(F)

/* ---- attention ---- */

static void f16_row_ref(const float *x, uint32_t n, uint16_t *out)
{
    for (uint32_t i = 0; i < n; i++) out[i] = quant_f32_to_f16(x[i]);
}

void cpu_turn_key_ref(const uint16_t *key, const float *table, uint32_t n_rot, ops_rope_pairing pairing,
    uint32_t head_dim, uint16_t *out)
{
    const uint32_t half = n_rot / 2, step = pairing == OPS_ROPE_NEOX ? 1 : 2, other = step == 1 ? half : 1;
    for (uint32_t i = 0; i < half; i++) {
        const float a = quant_f16_to_f32(key[step * i]), b = quant_f16_to_f32(key[step * i + other]);
        out[step * i] = quant_f32_to_f16(a * table[i] - b * table[half + i]);
        out[step * i + other] = quant_f32_to_f16(b * table[i] + a * table[half + i]);
    }
    for (uint32_t i = n_rot; i < head_dim; i++) out[i] = key[i];
}

void cpu_turn_queries_ref(const float *restrict q, uint32_t n_q, const float *table, uint32_t n_rot,
    ops_rope_pairing pairing, uint32_t head_dim, float *restrict out)
{
    const uint32_t half = n_rot / 2, step = pairing == OPS_ROPE_NEOX ? 1 : 2, other = step == 1 ? half : 1;
    for (; n_q; n_q--, q += head_dim, out += head_dim) {
        for (uint32_t i = 0; i < half; i++) {
            const float a = q[step * i], b = q[step * i + other];
            out[step * i] = a * table[i] + b * table[half + i];
            out[step * i + other] = b * table[i] - a * table[half + i];
        }
        for (uint32_t i = n_rot; i < head_dim; i++) out[i] = q[i];
    }
}

static void scores_ref(const uint16_t *const *rows, uint32_t n_rows, const float *q, uint32_t n_q,
    size_t q_stride, uint32_t head_dim, float scale, cpu_ahead ahead, float *s, size_t s_stride)
{
    (void)ahead;
    for (uint32_t r = 0; r < n_rows; r++) {
        float key[CPU_HEAD_DIM_MAX];
        for (uint32_t i = 0; i < head_dim; i++) key[i] = quant_f16_to_f32(rows[r][i]);
        for (uint32_t m = 0; m < n_q; m++) {
            float sums[16] = {0};
            for (uint32_t i = 0; i < head_dim; i++)
                sums[i % 16] = fmaf(q[m * q_stride + i], key[i], sums[i % 16]);
            s[m * s_stride + r] = add_by_halves(sums) * scale;
        }
    }
}

static void softmax_ref(float *s, uint32_t lo, uint32_t hi, uint32_t n, float *ret_max, float *ret_sum)
{
    float max = -INFINITY, sums[16] = {0};
    for (uint32_t i = lo; i < hi; i++) max = s[i] > max ? s[i] : max;
    for (uint32_t i = 0; i < n; i++) {
        s[i] = i >= lo && i < hi ? exp_ref(s[i] - max) : 0;
        sums[i % 16] += s[i];
    }
    *ret_max = max;
    *ret_sum = add_by_halves(sums);
}

static void values_ref(const uint16_t *const *rows, uint32_t n_rows, const float *p, size_t p_stride,
    uint32_t n_q, uint32_t head_dim, cpu_ahead ahead, float *out)
{
    (void)ahead;
    memset(out, 0, (size_t)n_q * head_dim * sizeof *out);
    for (uint32_t r = 0; r < n_rows; r++)
        for (uint32_t i = 0; i < head_dim; i++) {
            float v = quant_f16_to_f32(rows[r][i]);
            for (uint32_t m = 0; m < n_q; m++)
                out[(size_t)m * head_dim + i] = fmaf(p[m * p_stride + r], v, out[(size_t)m * head_dim + i]);
        }
}

static void merge_ref(float *m, float *l, float *o, float m2, float l2, const float *o2, uint32_t head_dim)
{
    float max = *m > m2 ? *m : m2;
    if (max == -INFINITY) return; /* two empty states: -inf - -inf would be NaN */
    float a = exp_ref(*m - max), b = exp_ref(m2 - max);
    *m = max;
    *l = fmaf(*l, a, l2 * b);
    for (uint32_t i = 0; i < head_dim; i++) o[i] = fmaf(o[i], a, o2[i] * b);
}

static void mass_ref(
    const float *p, uint32_t n, float tile_max, float max, float sum, bool pool_max, float *acc)
{
    float factor = exp_ref(tile_max - max) / sum;
    for (uint32_t i = 0; i < n; i++) {
        float share = p[i] * factor;
        acc[i] = !pool_max ? acc[i] + share : share > acc[i] ? share : acc[i];
    }
}

static void masses_ref(
    const float *p, size_t stride, uint32_t n_q, uint32_t n, const cpu_share *of, float *acc, float *largest)
{
    memset(acc, 0, n * sizeof *acc);
    memset(largest, 0, n / 16 * sizeof *largest);
    for (uint32_t m = 0; m < n_q; m++)
        mass_ref(p + m * stride, n, of[m].part_max, of[m].max, of[m].sum, false, acc);
    for (uint32_t i = 0; i < n; i++) largest[i / 16] = acc[i] > largest[i / 16] ? acc[i] : largest[i / 16];
}

static void sketch_query_ref(const float *q, const float *middle, const float *step, uint32_t head_dim,
    float scale, cpu_sketch_query *ret)
{
    float sums[16] = {0}, most = 0;
    int sum = 0;
    for (uint32_t i = 0; i < head_dim; i++) {
        const float x = fabsf(q[i] * step[i]);
        sums[i % 16] = fmaf(q[i], middle[i], sums[i % 16]);
        most = x > most ? x : most;
    }
    const float inverse = most > 0 ? 127.0f / most : 0;
    for (uint32_t i = 0; i < head_dim; i++) {
        ret->codes[i] = (int8_t)lrintf(q[i] * step[i] * inverse);
        sum += ret->codes[i];
    }
    const float part = most / 127.0f;
    ret->by = part * scale;
    ret->base = fmaf(part * (float)sum, -7.5f, add_by_halves(sums)) * scale;
}

static float weigh_ref(const float *counts, uint32_t n, float *p)
{
    float sums[CPU_LANES] = {0}, sum = 0;
    for (uint32_t i = 0; i < n; i += CPU_LANES)
        for (uint32_t r = 0; r < CPU_LANES; r++) {
            const float one = p[i + r];
            p[i + r] = one * counts[i + r];
            sums[r] += p[i + r] - one;
        }
    for (uint32_t r = 0; r < CPU_LANES; r++) sum += sums[r];
    return sum;
}

static uint32_t count_least_ref(const uint32_t *some, uint32_t n, uint32_t least)
{
    uint32_t there = 0;
    for (uint32_t i = 0; i < n; i++) there += some[i] >= least;
    return there;
}

static void sketch_queries_ref(const float *q, uint32_t n_q, const float *middle, const float *step,
    uint32_t head_dim, float scale, cpu_sketch_query *ret)
{
    for (uint32_t m = 0; m < n_q; m++)
        sketch_query_ref(q + (size_t)m * head_dim, middle, step, head_dim, scale, &ret[m]);
}

static void sketch_scores_ref(const uint8_t *codes, const uint8_t *ahead, uint32_t head_dim, uint32_t rows,
    const cpu_sketch_query *q, uint32_t n_q, float *s, size_t s_stride)
{
    (void)ahead;
    for (uint32_t m = 0; m < n_q; m++)
        for (uint32_t r = 0; r < MODEL_SKETCH_ROWS; r++) {
            int sum = 0;
            for (uint32_t i = 0; i < head_dim; i++) {
                const uint8_t both = codes[i / 8 * MODEL_SKETCH_PIECE + 4 * r + i % 4];
                sum += q[m].codes[i] * (i % 8 < 4 ? both & 15 : both >> 4);
            }
            s[m * s_stride + r] = rows >> r & 1 ? fmaf((float)sum, q[m].by, q[m].base) : -INFINITY;
        }
}

void cpu_kernels_ref(cpu_kernels *k)
{
    *k = (cpu_kernels){
        .isa = "plain C",
        .norm_row = norm_row_ref,
        .dot_rows = dot_rows_ref,
        .gate_row = gate_row_ref,
        .conv_row = conv_row_ref,
        .delta_step = delta_step_ref,
        .quant_row = quant_row_ref,
        .quant_fine_row = quant_fine_row_ref,
        .interleave = interleave_ref,
#define CPU_FORMAT(name, bits, scales, blocks, head, shift, codes) .expand[CPU_##name] = expand_##name##_ref,
#include "model/cpu/formats.def"
#undef CPU_FORMAT
        .panel = {[CPU_SCALES_D] = panel_D_ref,
            [CPU_SCALES_DM] = panel_DM_ref,
            [CPU_SCALES_KM] = panel_KM_ref,
            [CPU_SCALES_K16] = panel_K16_ref,
            [CPU_SCALES_KM16] = panel_KM16_ref,
            [CPU_SCALES_K32] = panel_D_ref, /* an expanded block looks the same */
            [CPU_SCALES_E] = panel_D_ref,   /* as this one's */
            [CPU_SCALES_F] = panel_F_ref},
        .f16_row = f16_row_ref,
        .turn_key = cpu_turn_key_ref,
        .turn_queries = cpu_turn_queries_ref,
        .scores = scores_ref,
        .softmax = softmax_ref,
        .values = values_ref,
        .merge = merge_ref,
        .mass = mass_ref,
        .masses = masses_ref,
        .weigh = weigh_ref,
        .count_least = count_least_ref,
        .sketch_queries = sketch_queries_ref,
        .sketch_scores = sketch_scores_ref,
    };
}
