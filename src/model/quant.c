/*
 * See quant.h. One unpack function a family of layouts; everything else is read from the table of formats.
 */
#include "model/quant.h"

#include <string.h>

/* clang-format off */
static const struct { gguf_tensor_type type; quant_format format; } formats[] = {
    {GGUF_TENSOR_F32,  {QUANT_FLOAT,       1,   4, 32,   0}},
    {GGUF_TENSOR_F16,  {QUANT_FLOAT,       1,   2, 16,   0}},
    {GGUF_TENSOR_BF16, {QUANT_FLOAT,       1,   2, 16,   0}},
    {GGUF_TENSOR_Q4_0, {QUANT_OFFSET,     32,  18,  4,   8}},
    {GGUF_TENSOR_Q4_1, {QUANT_MIN,        32,  20,  4,   0}},
    {GGUF_TENSOR_Q5_0, {QUANT_OFFSET,     32,  22,  5,  16}},
    {GGUF_TENSOR_Q5_1, {QUANT_MIN,        32,  24,  5,   0}},
    {GGUF_TENSOR_Q8_0, {QUANT_OFFSET,     32,  34,  8, 128}},
    {GGUF_TENSOR_Q4_K, {QUANT_SUPER_MIN, 256, 144,  4,   0}},
    {GGUF_TENSOR_Q5_K, {QUANT_SUPER_MIN, 256, 176,  5,   0}},
    {GGUF_TENSOR_Q6_K, {QUANT_SUPER_16,  256, 210,  6,  32}},
};
/* clang-format on */

const quant_format *quant_format_of(gguf_tensor_type type)
{
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
        if (formats[i].type == type) return &formats[i].format;
    return NULL;
}

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
    ret->d = read_u16(p);
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

static void unpack_q8_0(const uint8_t *p, quant_block *ret)
{
    ret->d = read_u16(p);
    for (int i = 0; i < 32; i++) ret->q[i] = p[2 + i] ^ 0x80;
}

/* Q4_K and Q5_K: eight sub-blocks with 6-bit scales and minima. */
static void unpack_super_min(const quant_format *f, const uint8_t *p, quant_block *ret)
{
    ret->d = read_u16(p);
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

static void unpack_q6_k(const uint8_t *p, quant_block *ret)
{
    memcpy(ret->sc, p + 192, 16);
    ret->d = read_u16(p + 208);
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

void quant_unpack(gguf_tensor_type type, const uint8_t *block, quant_block *ret)
{
    const quant_format *f = quant_format_of(type);
    if (f->kind == QUANT_SUPER_MIN)
        unpack_super_min(f, block, ret);
    else if (f->kind == QUANT_SUPER_16)
        unpack_q6_k(block, ret);
    else if (f->bits == 8)
        unpack_q8_0(block, ret);
    else
        unpack_32(f, block, ret);
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
    float d = quant_f16_to_f32(b->d), m = quant_f16_to_f32(b->m);
    for (uint32_t i = 0; i < f->n; i++) {
        int q = b->q[i] - f->offset;
        switch (f->kind) {
        case QUANT_OFFSET: dst[i] = d * (float)q; break;
        case QUANT_MIN: dst[i] = d * (float)q + m; break;
        case QUANT_SUPER_MIN: dst[i] = d * b->sc[i / 32] * (float)q - m * b->mn[i / 32]; break;
        case QUANT_SUPER_16: dst[i] = d * (float)(int8_t)b->sc[i / 16] * (float)q; break;
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
    const quant_format *f = quant_format_of(type);
    for (size_t i = 0; i < n; i += f->n, src += f->n_bytes) {
        if (f->kind == QUANT_FLOAT) {
            if (!float_is_finite(type, src)) return false;
            continue;
        }
        const uint8_t *d = f->kind == QUANT_SUPER_16 ? src + 208 : src;
        if (!f16_is_finite(read_u16(d))) return false;
        bool has_min = f->kind == QUANT_MIN || f->kind == QUANT_SUPER_MIN;
        if (has_min && !f16_is_finite(read_u16(src + 2))) return false;
    }
    return true;
}
