/*
 * The blocks of a GGUF file: taking one apart into 8-bit quants and scales, and whole rows into F32.
 *
 * Layouts: ggml-org/ggml src/ggml-common.h. Pure functions over bytes whose size the caller has checked
 * against gguf_tensor_block. Packing for a backend, embedding rows and the tests' references stand on these.
 */
#ifndef KVIST_MODEL_QUANT_H
#define KVIST_MODEL_QUANT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "model/file/gguf.h"

/* How a block's values come from its quants. */
typedef enum quant_kind {
    QUANT_FLOAT,        /* F32, F16, BF16: no block */
    QUANT_OFFSET,       /* d * (q - offset) */
    QUANT_MIN,          /* d * q + m */
    QUANT_SUPER_MIN,    /* per 32: d * sc * q - m * mn */
    QUANT_SUPER_16,     /* per 16: d * (int8)sc * (q - offset) */
    QUANT_SUPER_MIN_16, /* per 16: d * sc * q - m * mn */
    QUANT_FP4,          /* quant_scale_of_power(sc) * q */
} quant_kind;

typedef struct quant_format {
    quant_kind kind;
    uint32_t n, n_bytes; /* elements and bytes of a block */
    int bits;            /* of a quant, as unpacked */
    int offset;
    uint32_t d_at;       /* where the block keeps its F16 scale (FP4: a power); a minimum lies behind it */
    const int8_t *codes; /* a quant q stands for codes[q]; NULL: for itself */
    int down;            /* the outer scale counts 2^-down times */
    bool is_spread;      /* F16 in the upper four bits of each of four 16-bit words at d_at */
} quant_format;

typedef struct quant_block {
    uint8_t q[256];
    uint16_t d, m; /* F16 */
    uint8_t sc[16], mn[16];
} quant_block;

/*
 * What quants of these formats stand for. FP4 (MXFP4): a sign, two bits of exponent, one of fraction, twice. IQ4: the
 * sixteen values of IQ4_NL and IQ4_XS. Of the others two or three bits of magnitude, then a sign: quant_iq.c.
 */
extern const int8_t quant_codes_fp4[16], quant_codes_iq4[16], quant_codes_iq3_s[16], quant_codes_iq3_xxs[16],
    quant_codes_iq2[16], quant_codes_iq1[16];

/* NULL for a type that is not in the table. */
const quant_format *quant_format_of(gguf_tensor_type type);

/* The table's types, one after another; false behind the last. */
bool quant_type_at(size_t i, gguf_tensor_type *ret);

/*
 * Takes one block of a quantised type apart. Signed quants become unsigned by the format's offset: Q8_0's q + 128.
 */
void quant_unpack(gguf_tensor_type type, const uint8_t *block, quant_block *ret);

/* n elements (whole blocks) to F32. */
void quant_to_f32(gguf_tensor_type type, const uint8_t *src, size_t n, float *dst);

/* Are all scales (or, for floats, all elements) of n elements finite? */
bool quant_is_finite(gguf_tensor_type type, const uint8_t *src, size_t n);

float quant_f16_to_f32(uint16_t h);
uint16_t quant_f32_to_f16(
    float f); /* round to nearest even; beyond the range: its largest finite number; NaN stays */

static inline float quant_float_of_bits(uint32_t bits)
{
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

/* MXFP4's scale: 2^(power - 127) / 2, since quant_codes_fp4 is doubled. The two smallest are subnormal. */
static inline float quant_scale_of_power(uint8_t power)
{
    return quant_float_of_bits(power < 2 ? 0x00200000u << power : (uint32_t)(power - 1) << 23);
}

static inline uint32_t quant_bits_of_float(float f)
{
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    return bits;
}

/* Exact for finite numbers, and without a branch, so that a compiler makes vectors of it. */
static inline float quant_f16_finite_to_f32(uint16_t h)
{
    const float magnitude =
        quant_float_of_bits((uint32_t)(h & 0x7fff) << 13) * 0x1p112f; /* the exponents' difference */
    return quant_float_of_bits(quant_bits_of_float(magnitude) | (uint32_t)(h & 0x8000) << 16);
}

#endif
