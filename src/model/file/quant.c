/*
 * See quant.h. One unpack function a family of layouts; everything else is read from the table of formats,
 * below them.
 */
#include "model/file/quant.h"

#include <math.h>
#include <string.h>

#include "model/file/quant_iq.h"

float quant_f16_to_f32(uint16_t h)
{
    uint32_t sign = (uint32_t)(h & 0x8000u) << 16, exponent = (h >> 10) & 31u, mantissa = h & 0x3FFu;
    if (exponent == 31) return quant_float_of_bits(sign | 0x7F800000u | mantissa << 13);
    if (exponent == 0) {
        float f = (float)mantissa * 0x1p-24f;
        return sign ? -f : f;
    }
    return quant_float_of_bits(sign | (exponent + 112) << 23 | mantissa << 13);
}

uint16_t quant_f32_to_f16(float f)
{
    uint32_t bits = quant_bits_of_float(f), magnitude = bits & 0x7FFFFFFFu;
    uint16_t sign = (uint16_t)(bits >> 16 & 0x8000u);
    if (magnitude > 0x7F800000u) return sign | 0x7E00u;
    if (magnitude >= 0x477FE000u) return sign | 0x7BFFu;
    if (magnitude < 0x38800000u) {
        /* A subnormal half counts in units of 2^-24: adding 0.5 = 2^23 units lets the hardware round. */
        float shifted = quant_float_of_bits(magnitude) + 0.5f;
        return sign | (uint16_t)(quant_bits_of_float(shifted) - 0x3F000000u);
    }
    uint32_t rounded = magnitude + 0xFFFu + (magnitude >> 13 & 1u);
    if (rounded >= 0x47800000u) return sign | 0x7BFFu;
    return sign | (uint16_t)((rounded - 0x38000000u) >> 13);
}

static uint16_t read_u16(const uint8_t *p)
{
    return (uint16_t)(p[0] | p[1] << 8);
}

/* 32 low nibbles, then the 5th bits if there are any. */
static void unpack_32(const quant_format *f, const uint8_t *p, quant_block *ret)
{
    p += 2;
    if (f->kind == QUANT_MIN) {
        ret->m = read_u16(p);
        p += 2;
    }
    uint32_t fifth = 0;
    if (f->bits == 5) {
        memcpy(&fifth, p, sizeof fifth);
        p += sizeof fifth;
    }
    for (int i = 0; i < 16; i++) {
        ret->q[i] = (uint8_t)((p[i] & 15) | (fifth >> i & 1) << 4);
        ret->q[16 + i] = (uint8_t)(p[i] >> 4 | (fifth >> (16 + i) & 1) << 4);
    }
}

static void unpack_q8_0(const quant_format *f, const uint8_t *p, quant_block *ret)
{
    (void)f;
    for (int i = 0; i < 32; i++) ret->q[i] = p[2 + i] ^ 0x80;
}

/* Q4_K and Q5_K: eight sub-blocks with 6-bit scales and minima. */
static void unpack_super_min(const quant_format *f, const uint8_t *p, quant_block *ret)
{
    ret->m = read_u16(p + 2);
    const uint8_t *s = p + 4, *fifth = p + 16, *qs = f->bits == 5 ? p + 48 : p + 16;
    for (int j = 0; j < 4; j++) {
        ret->sc[j] = s[j] & 63;
        ret->mn[j] = s[j + 4] & 63;
        ret->sc[j + 4] = (uint8_t)((s[j + 8] & 15) | (s[j] >> 6) << 4);
        ret->mn[j + 4] = (uint8_t)(s[j + 8] >> 4 | (s[j + 4] >> 6) << 4);
    }
    for (int g = 0; g < 4; g++) {
        uint8_t *low = ret->q + 64 * g, *high = low + 32;
        for (int i = 0; i < 32; i++) {
            low[i] = qs[32 * g + i] & 15;
            high[i] = qs[32 * g + i] >> 4;
        }
        if (f->bits != 5) continue;
        for (int i = 0; i < 32; i++) {
            low[i] |= (uint8_t)((fifth[i] >> (2 * g) & 1) << 4);
            high[i] |= (uint8_t)((fifth[i] >> (2 * g + 1) & 1) << 4);
        }
    }
}

static void unpack_q6_k(const quant_format *f, const uint8_t *p, quant_block *ret)
{
    memcpy(ret->sc, p + 192, 16);
    for (int half = 0; half < 2; half++) {
        const uint8_t *low = p + 64 * half, *high = p + 128 + 32 * half;
        uint8_t *q = ret->q + 128 * half;
        for (int l = 0; l < 32; l++) {
            q[l] = (uint8_t)((low[l] & 15) | (high[l] & 3) << 4);
            q[l + 32] = (uint8_t)((low[l + 32] & 15) | (high[l] >> 2 & 3) << 4);
            q[l + 64] = (uint8_t)(low[l] >> 4 | (high[l] >> 4 & 3) << 4);
            q[l + 96] = (uint8_t)(low[l + 32] >> 4 | (high[l] >> 6) << 4);
        }
    }
}

/*
 * Sixteen 6-bit scales in 12 bytes, less 32; the third bit of the quants lies apart, and is the offset's when
 * it is set.
 */
static void unpack_q3_k(const quant_format *f, const uint8_t *p, quant_block *ret)
{
    const uint8_t *third = p, *low = p + 32, *s = p + 96;
    for (int j = 0; j < 16; j++) {
        int lower = j < 8 ? s[j] & 15 : s[j - 8] >> 4, upper = s[8 + j % 4] >> (2 * (j / 4)) & 3;
        ret->sc[j] = (uint8_t)((lower | upper << 4) - 32);
    }
    for (int i = 0; i < 256; i++) {
        int part = i / 32, l = i % 32;
        ret->q[i] =
            (uint8_t)((low[32 * (part / 4) + l] >> (2 * (part % 4)) & 3) | (third[l] >> part & 1) << 2);
    }
}

/* A byte for each 16 quants, its scale below its minimum; then 2 bits a quant, four parts of 32 in each byte. */
static void unpack_q2_k(const quant_format *f, const uint8_t *p, quant_block *ret)
{
    ret->m = read_u16(p + f->d_at + 2);
    for (int j = 0; j < 16; j++) {
        ret->sc[j] = p[j] & 15;
        ret->mn[j] = p[j] >> 4;
    }
    for (int i = 0; i < 256; i++) ret->q[i] = p[16 + 32 * (i / 128) + i % 32] >> (2 * (i / 32 % 4)) & 3;
}

const int8_t quant_codes_iq4[16] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};

static void unpack_nibbles(const uint8_t *p, uint8_t *q)
{
    for (int i = 0; i < 16; i++) {
        q[i] = p[i] & 15;
        q[16 + i] = p[i] >> 4;
    }
}

static void unpack_iq4_nl(const quant_format *f, const uint8_t *p, quant_block *ret)
{
    (void)f;
    unpack_nibbles(p + 2, ret->q);
}

/* Eight 6-bit scales, less 32: two upper bits of each in 16 bits, then the nibbles. */
static void unpack_iq4_xs(const quant_format *f, const uint8_t *p, quant_block *ret)
{
    (void)f;
    uint32_t upper = read_u16(p + 2);
    for (int j = 0; j < 8; j++) {
        int scale = (p[4 + j / 2] >> (4 * (j % 2)) & 15) | (int)(upper >> (2 * j) & 3) << 4;
        ret->sc[2 * j] = ret->sc[2 * j + 1] = (uint8_t)(scale - 32);
        unpack_nibbles(p + 8 + 16 * j, ret->q + 32 * j);
    }
}

const int8_t quant_codes_fp4[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

/* One power of two, then 32 nibbles. */
static void unpack_mxfp4(const quant_format *f, const uint8_t *p, quant_block *ret)
{
    (void)f;
    ret->sc[0] = p[0];
    unpack_nibbles(p + 1, ret->q);
}

typedef void unpack_fn(const quant_format *f, const uint8_t *p, quant_block *ret);

/* clang-format off */
static const struct { gguf_tensor_type type; quant_format format; unpack_fn *unpack; } formats[] = {
    {GGUF_TENSOR_F32,    {QUANT_FLOAT,       1,   4, 32,   0,   0}, NULL},
    {GGUF_TENSOR_F16,    {QUANT_FLOAT,       1,   2, 16,   0,   0}, NULL},
    {GGUF_TENSOR_BF16,   {QUANT_FLOAT,       1,   2, 16,   0,   0}, NULL},
    {GGUF_TENSOR_Q4_0,   {QUANT_OFFSET,     32,  18,  4,   8,   0}, unpack_32},
    {GGUF_TENSOR_Q4_1,   {QUANT_MIN,        32,  20,  4,   0,   0}, unpack_32},
    {GGUF_TENSOR_Q5_0,   {QUANT_OFFSET,     32,  22,  5,  16,   0}, unpack_32},
    {GGUF_TENSOR_Q5_1,   {QUANT_MIN,        32,  24,  5,   0,   0}, unpack_32},
    {GGUF_TENSOR_Q8_0,   {QUANT_OFFSET,     32,  34,  8, 128,   0}, unpack_q8_0},
    {GGUF_TENSOR_Q4_K,   {QUANT_SUPER_MIN, 256, 144,  4,   0,   0}, unpack_super_min},
    {GGUF_TENSOR_Q5_K,   {QUANT_SUPER_MIN, 256, 176,  5,   0,   0}, unpack_super_min},
    {GGUF_TENSOR_Q2_K,   {QUANT_SUPER_MIN_16, 256, 84, 2,  0,  80}, unpack_q2_k},
    {GGUF_TENSOR_Q3_K,   {QUANT_SUPER_16,  256, 110,  3,   4, 108}, unpack_q3_k},
    {GGUF_TENSOR_Q6_K,   {QUANT_SUPER_16,  256, 210,  6,  32, 208}, unpack_q6_k},
    {GGUF_TENSOR_MXFP4,  {QUANT_FP4,        32,  17,  4,   0,   0, quant_codes_fp4}, unpack_mxfp4},
    {GGUF_TENSOR_IQ4_NL, {QUANT_OFFSET,     32,  18,  4,   0,   0, quant_codes_iq4}, unpack_iq4_nl},
    {GGUF_TENSOR_IQ4_XS, {QUANT_SUPER_16,  256, 136,  4,   0,   0, quant_codes_iq4}, unpack_iq4_xs},
    {GGUF_TENSOR_IQ3_S,  {QUANT_SUPER_16,  256, 110,  4,   0,   0, quant_codes_iq3_s}, quant__unpack_iq3_s},
    {GGUF_TENSOR_IQ3_XXS,{QUANT_SUPER_16,  256,  98,  4,   0,   0, quant_codes_iq3_xxs, 1}, quant__unpack_iq3_xxs},
    {GGUF_TENSOR_IQ2_S,  {QUANT_SUPER_16,  256,  82,  3,   0,   0, quant_codes_iq2, 3}, quant__unpack_iq2_s},
    {GGUF_TENSOR_IQ2_XS, {QUANT_SUPER_16,  256,  74,  3,   0,   0, quant_codes_iq2, 3}, quant__unpack_iq2_xs},
    {GGUF_TENSOR_IQ2_XXS,{QUANT_SUPER_16,  256,  66,  3,   0,   0, quant_codes_iq2, 3}, quant__unpack_iq2_xxs},
    {GGUF_TENSOR_IQ1_M,  {QUANT_SUPER_16,  256,  56,  3,   0,  48, quant_codes_iq1, 3, true}, quant__unpack_iq1_m},
    {GGUF_TENSOR_IQ1_S,  {QUANT_SUPER_16,  256,  50,  3,   0,   0, quant_codes_iq1, 3}, quant__unpack_iq1_s},
};
/* clang-format on */

enum { N_FORMATS = sizeof formats / sizeof *formats };

static size_t index_of(gguf_tensor_type type)
{
    size_t i = 0;
    while (i < N_FORMATS && formats[i].type != type) i++;
    return i;
}

const quant_format *quant_format_of(gguf_tensor_type type)
{
    size_t i = index_of(type);
    return i < N_FORMATS ? &formats[i].format : NULL;
}

bool quant_type_at(size_t i, gguf_tensor_type *ret)
{
    if (i >= N_FORMATS) return false;
    *ret = formats[i].type;
    return true;
}

/* The outer scale of a block, F16. */
static uint16_t outer_scale(const quant_format *f, const uint8_t *block)
{
    const uint8_t *p = block + f->d_at;
    if (!f->is_spread) return read_u16(p);
    return (uint16_t)(p[1] >> 4 | (p[3] >> 4) << 4 | (p[5] >> 4) << 8 | (p[7] >> 4) << 12);
}

void quant_unpack(gguf_tensor_type type, const uint8_t *block, quant_block *ret)
{
    size_t i = index_of(type);
    ret->d = outer_scale(&formats[i].format, block);
    formats[i].unpack(&formats[i].format, block, ret);
}

static void floats_to_f32(gguf_tensor_type type, const uint8_t *src, size_t n, float *dst)
{
    if (type == GGUF_TENSOR_F32) {
        memcpy(dst, src, n * sizeof *dst);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        uint16_t h = read_u16(src + 2 * i);
        dst[i] = type == GGUF_TENSOR_BF16 ? quant_float_of_bits((uint32_t)h << 16) : quant_f16_to_f32(h);
    }
}

static void block_to_f32(const quant_format *f, const quant_block *b, float *dst)
{
    float d = ldexpf(quant_f16_to_f32(b->d), -f->down), m = quant_f16_to_f32(b->m);
    for (uint32_t i = 0; i < f->n; i++) {
        int q = f->codes ? f->codes[b->q[i]] : b->q[i] - f->offset;
        switch (f->kind) {
        case QUANT_OFFSET: dst[i] = d * (float)q; break;
        case QUANT_MIN: dst[i] = d * (float)q + m; break;
        case QUANT_SUPER_MIN: dst[i] = d * b->sc[i / 32] * (float)q - m * b->mn[i / 32]; break;
        case QUANT_SUPER_16: dst[i] = d * (float)(int8_t)b->sc[i / 16] * (float)q; break;
        case QUANT_SUPER_MIN_16: dst[i] = d * b->sc[i / 16] * (float)q - m * b->mn[i / 16]; break;
        case QUANT_FP4: dst[i] = quant_scale_of_power(b->sc[0]) * (float)q; break;
        case QUANT_FLOAT: break;
        }
    }
}

void quant_to_f32(gguf_tensor_type type, const uint8_t *src, size_t n, float *dst)
{
    const quant_format *f = quant_format_of(type);
    if (f->kind == QUANT_FLOAT) {
        floats_to_f32(type, src, n, dst);
        return;
    }
    quant_block b = {0};
    for (size_t i = 0; i < n; i += f->n, src += f->n_bytes) {
        quant_unpack(type, src, &b);
        block_to_f32(f, &b, dst + i);
    }
}

static bool f16_is_finite(uint16_t h)
{
    return (h & 0x7C00u) != 0x7C00u;
}

static bool float_is_finite(gguf_tensor_type type, const uint8_t *p)
{
    if (type == GGUF_TENSOR_F16) return f16_is_finite(read_u16(p));
    if (type == GGUF_TENSOR_BF16) return (read_u16(p) & 0x7F80u) != 0x7F80u;
    uint32_t bits;
    memcpy(&bits, p, sizeof bits);
    return (bits & 0x7F800000u) != 0x7F800000u;
}

bool quant_is_finite(gguf_tensor_type type, const uint8_t *src, size_t n)
{
    enum { LARGEST_POWER = 252 }; /* times 12 it is just below F32's end */
    const quant_format *f = quant_format_of(type);
    for (size_t i = 0; i < n; i += f->n, src += f->n_bytes) {
        if (f->kind == QUANT_FLOAT || f->kind == QUANT_FP4) {
            if (f->kind == QUANT_FP4 ? src[f->d_at] > LARGEST_POWER : !float_is_finite(type, src))
                return false;
            continue;
        }
        if (!f16_is_finite(outer_scale(f, src))) return false;
        bool has_min = f->kind == QUANT_MIN || f->kind == QUANT_SUPER_MIN || f->kind == QUANT_SUPER_MIN_16;
        if (has_min && !f16_is_finite(read_u16(src + f->d_at + 2))) return false;
    }
    return true;
}
