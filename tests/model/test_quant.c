/*
 * The file's block formats against encoders that are written here from their description (ggml-org/ggml
 * src/ggml-common.h): random quants and scales go into a block bit by bit, and must come out as the numbers
 * they stand for. Halves: all of them.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "model/file/quant.h"

enum { ROUNDS = 200 };

static uint32_t random_below(uint32_t n)
{
    static uint64_t state = 7;
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(state >> 33) % n;
}

/* Exact for every finite half: the definition. */
static double half_value(uint32_t h)
{
    double m = h & 1023, sign = h >> 15 ? -1 : 1;
    int e = (int)(h >> 10 & 31);
    return sign * (e ? ldexp(1024 + m, e - 25) : ldexp(m, -24));
}

static void test_quant__every_half_converts(void **state)
{
    (void)state;
    for (uint32_t h = 0; h < 65536; h++) {
        float f = quant_f16_to_f32((uint16_t)h);
        if ((h >> 10 & 31) == 31) {
            assert_true(h & 1023 ? isnan(f) : isinf(f) && (f < 0) == (h >> 15 == 1));
            continue;
        }
        assert_true((double)f == half_value(h));
        assert_int_equal(quant_f32_to_f16(f), h);
    }
}

static void test_quant__halves_round_to_nearest_even(void **state)
{
    (void)state;
    /* Between neighbours: just below and above the middle, and the middle, which goes to the even one. */
    for (uint32_t h = 0; h < 0x7BFF; h++) {
        double low = half_value(h), high = half_value(h + 1), middle = (low + high) / 2;
        assert_int_equal(quant_f32_to_f16((float)middle), h % 2 ? h + 1 : h);
        assert_int_equal(quant_f32_to_f16(nextafterf((float)middle, 0)), h);
        assert_int_equal(quant_f32_to_f16(nextafterf((float)middle, 1e6f)), h + 1);
    }
    assert_int_equal(quant_f32_to_f16(1e30f), 0x7BFF);
    assert_int_equal(quant_f32_to_f16(-INFINITY), 0xFBFF);
    assert_true(isnan(quant_f16_to_f32(quant_f32_to_f16(NAN))));
}

static uint16_t put_half(uint8_t *p)
{
    uint16_t h = (uint16_t)(0x2000 + random_below(0x1000) + 0x8000 * random_below(2));
    p[0] = (uint8_t)h;
    p[1] = (uint8_t)(h >> 8);
    return h;
}

static void put_bits(uint8_t *p, int shift, uint32_t value)
{
    *p |= (uint8_t)(value << shift);
}

static void expect_values(gguf_tensor_type type, const uint8_t *block, const double *wanted)
{
    float got[256];
    const quant_format *f = quant_format_of(type);
    quant_to_f32(type, block, f->n, got);
    for (uint32_t i = 0; i < f->n; i++)
        if (!(fabs(got[i] - wanted[i]) <= 1e-6 * (fabs(wanted[i]) + 1e-3)))
            fail_msg("%d: %g for %g at %u", type, got[i], wanted[i], i);
    assert_true(quant_is_finite(type, block, f->n));
}

/* Q4_0, Q4_1, Q5_0, Q5_1: [d][m][qh]: elements 0..15 low nibbles, 16..31 high. */
static void check_32(gguf_tensor_type type, int bits, int offset, int has_m)
{
    uint8_t block[24] = {0};
    double wanted[32], d = half_value(put_half(block)), m = has_m ? half_value(put_half(block + 2)) : 0;
    uint8_t *fifth = block + 2 + 2 * has_m, *nibbles = fifth + (bits == 5 ? 4 : 0);
    for (int i = 0; i < 32; i++) {
        uint32_t q = random_below(1u << bits);
        put_bits(&nibbles[i % 16], 4 * (i / 16), q & 15);
        if (bits == 5) put_bits(&fifth[i / 8], i % 8, q >> 4);
        wanted[i] = d * ((int)q - offset) + m;
    }
    expect_values(type, block, wanted);
}

static void check_q8_0(void)
{
    uint8_t block[34];
    double wanted[32], d = half_value(put_half(block));
    for (int i = 0; i < 32; i++) {
        int8_t q = (int8_t)((int)random_below(255) - 127);
        block[2 + i] = (uint8_t)q;
        wanted[i] = d * q;
    }
    expect_values(GGUF_TENSOR_Q8_0, block, wanted);
}

/* Q4_K, Q5_K: [d][dmin][12 bytes of 6-bit scales and minima][fifth bits][nibbles]. */
static void check_super_min(gguf_tensor_type type, int bits)
{
    uint8_t block[176] = {0}, *s = block + 4, *fifth = block + 16,
            *nibbles = bits == 5 ? block + 48 : block + 16;
    double wanted[256], d = half_value(put_half(block)), dmin = half_value(put_half(block + 2));
    for (int j = 0; j < 8; j++) {
        uint32_t scale = random_below(64), min = random_below(64);
        if (j < 4) {
            put_bits(&s[j], 0, scale);
            put_bits(&s[j + 4], 0, min);
        } else {
            put_bits(&s[j + 4], 0, scale & 15);
            put_bits(&s[j + 4], 4, min & 15);
            put_bits(&s[j - 4], 6, scale >> 4);
            put_bits(&s[j], 6, min >> 4);
        }
        for (int i = 0; i < 32; i++) {
            uint32_t q = random_below(1u << bits);
            put_bits(&nibbles[32 * (j / 2) + i], 4 * (j % 2), q & 15);
            if (bits == 5) put_bits(&fifth[i], j, q >> 4);
            wanted[32 * j + i] = d * scale * q - dmin * min;
        }
    }
    expect_values(type, block, wanted);
}

/* Q6_K: [128 bytes of lower nibbles][64 of upper two bits][16 int8 scales][d]. */
static void check_q6_k(void)
{
    uint8_t block[210] = {0};
    double wanted[256], d = half_value(put_half(block + 208));
    for (int i = 0; i < 256; i++) {
        int half = i / 128, quarter = i % 128 / 32, l = i % 32;
        uint32_t q = random_below(64);
        if (i % 16 == 0) block[192 + i / 16] = (uint8_t)random_below(256);
        put_bits(&block[64 * half + 32 * (quarter % 2) + l], 4 * (quarter / 2), q & 15);
        put_bits(&block[128 + 32 * half + l], 2 * quarter, q >> 4);
        wanted[i] = d * (int8_t)block[192 + i / 16] * ((int)q - 32);
    }
    expect_values(GGUF_TENSOR_Q6_K, block, wanted);
}

/*
 * Q3_K: [32 bytes of third bits: bit i of a byte is part i's][64 of lower two bits][12 of 6-bit scales +
 * 32][d].
 */
static void check_q3_k(void)
{
    uint8_t block[110] = {0};
    double wanted[256], d = half_value(put_half(block + 108));
    for (int j = 0; j < 16; j++) {
        uint32_t scale = random_below(64);
        put_bits(&block[96 + j % 8], 4 * (j / 8), scale & 15);
        put_bits(&block[96 + 8 + j % 4], 2 * (j / 4), scale >> 4);
        for (int i = 16 * j; i < 16 * j + 16; i++) {
            uint32_t q = random_below(8);
            put_bits(&block[i % 32], i / 32, q >> 2);
            put_bits(&block[32 + 32 * (i / 128) + i % 32], 2 * (i / 32 % 4), q & 3);
            wanted[i] = d * ((int)scale - 32) * ((int)q - 4);
        }
    }
    expect_values(GGUF_TENSOR_Q3_K, block, wanted);
}

/* Q2_K: [16 bytes: scale and, in the upper nibble, minimum][64 of 2-bit quants][d][dmin]. */
static void check_q2_k(void)
{
    uint8_t block[84] = {0};
    double wanted[256], d = half_value(put_half(block + 80)), dmin = half_value(put_half(block + 82));
    for (int j = 0; j < 16; j++) {
        uint32_t scale = random_below(16), min = random_below(16);
        put_bits(&block[j], 0, scale);
        put_bits(&block[j], 4, min);
        for (int i = 16 * j; i < 16 * j + 16; i++) {
            uint32_t q = random_below(4);
            put_bits(&block[16 + 32 * (i / 128) + i % 32], 2 * (i / 32 % 4), q);
            wanted[i] = d * scale * q - dmin * min;
        }
    }
    expect_values(GGUF_TENSOR_Q2_K, block, wanted);
}

static const int codes[16] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};

/* IQ4_NL: [d][nibbles: elements 0..15 low, 16..31 high], each the number of a value. */
static void check_iq4_nl(void)
{
    uint8_t block[18] = {0};
    double wanted[32], d = half_value(put_half(block));
    for (int i = 0; i < 32; i++) {
        uint32_t q = random_below(16);
        put_bits(&block[2 + i % 16], 4 * (i / 16), q);
        wanted[i] = d * codes[q];
    }
    expect_values(GGUF_TENSOR_IQ4_NL, block, wanted);
}

/* IQ4_XS: [d][16 bits: upper two of each scale + 32][4 bytes: lower four][eight times IQ4_NL's nibbles]. */
static void check_iq4_xs(void)
{
    uint8_t block[136] = {0};
    double wanted[256], d = half_value(put_half(block));
    for (int j = 0; j < 8; j++) {
        uint32_t scale = random_below(64);
        put_bits(&block[2 + j / 4], 2 * (j % 4), scale >> 4);
        put_bits(&block[4 + j / 2], 4 * (j % 2), scale & 15);
        for (int i = 0; i < 32; i++) {
            uint32_t q = random_below(16);
            put_bits(&block[8 + 16 * j + i % 16], 4 * (i / 16), q);
            wanted[32 * j + i] = d * ((int)scale - 32) * codes[q];
        }
    }
    expect_values(GGUF_TENSOR_IQ4_XS, block, wanted);
}

/*
 * MXFP4: a power of two, then nibbles: a sign, two bits of exponent (bias 1) and one of fraction. To the bit,
 * for every power, the subnormal ones too.
 */
static void check_mxfp4(int power)
{
    uint8_t block[17] = {(uint8_t)power};
    float got[32];
    double wanted[32];
    for (int i = 0; i < 32; i++) {
        uint32_t q = random_below(16), exponent = q >> 1 & 3, fraction = q & 1;
        double x = exponent ? ldexp(2 + fraction, (int)exponent - 2) : fraction * 0.5;
        put_bits(&block[1 + i % 16], 4 * (i / 16), q);
        wanted[i] = ldexp(q & 8 ? -x : x, power - 127);
    }
    quant_to_f32(GGUF_TENSOR_MXFP4, block, 32, got);
    for (int i = 0; i < 32; i++) assert_true((double)got[i] == wanted[i]);
    assert_true(quant_is_finite(GGUF_TENSOR_MXFP4, block, 32));
}

static void test_quant__mxfp4_is_exact(void **state)
{
    uint8_t block[17] = {253};
    (void)state;
    for (int power = 0; power <= 252; power++) check_mxfp4(power);
    assert_false(quant_is_finite(GGUF_TENSOR_MXFP4, block, 32)); /* 6 times it is beyond F32 */
}

static void test_quant__blocks_come_out_as_they_went_in(void **state)
{
    (void)state;
    for (int i = 0; i < ROUNDS; i++) {
        check_32(GGUF_TENSOR_Q4_0, 4, 8, 0);
        check_32(GGUF_TENSOR_Q4_1, 4, 0, 1);
        check_32(GGUF_TENSOR_Q5_0, 5, 16, 0);
        check_32(GGUF_TENSOR_Q5_1, 5, 0, 1);
        check_q8_0();
        check_super_min(GGUF_TENSOR_Q4_K, 4);
        check_super_min(GGUF_TENSOR_Q5_K, 5);
        check_q6_k();
        check_q3_k();
        check_q2_k();
        check_iq4_nl();
        check_iq4_xs();
    }
}

/*
 * Numbers of the Python package gguf (quant_hashes.py, which made the table): the same random blocks must become the
 * same floats, bit for bit.
 */
static const struct {
    gguf_tensor_type type;
    uint64_t hash;
} hashes[] = {
    {GGUF_TENSOR_Q4_0, 0x32fc92d6abff8b25u},
    {GGUF_TENSOR_Q4_1, 0xdf864b870cbf6f66u},
    {GGUF_TENSOR_Q5_0, 0xcb9105f5c2130f25u},
    {GGUF_TENSOR_Q5_1, 0x8bd85a45fe32e615u},
    {GGUF_TENSOR_Q8_0, 0x0907f401cbca1165u},
    {GGUF_TENSOR_Q4_K, 0xcf513a65cfaee157u},
    {GGUF_TENSOR_Q5_K, 0xb2ad220bdc663362u},
    {GGUF_TENSOR_Q6_K, 0xd27fd0d0df211acbu},
    {GGUF_TENSOR_Q2_K, 0x0b43e682ebd7fe86u},
    {GGUF_TENSOR_Q3_K, 0x9ced378315204825u},
    {GGUF_TENSOR_IQ4_NL, 0xa83976d30fb008a5u},
    {GGUF_TENSOR_IQ4_XS, 0xe46492e9b23ee94du},
    {GGUF_TENSOR_IQ3_S, 0x64caab6e12acf1b5u},
    {GGUF_TENSOR_IQ3_XXS, 0x0adabdb7d82136f5u},
    {GGUF_TENSOR_IQ2_S, 0x3a6abed7483362adu},
    {GGUF_TENSOR_IQ2_XS, 0xdbd2b59a184d41a5u},
    {GGUF_TENSOR_IQ2_XXS, 0xdd81d901113749c5u},
    {GGUF_TENSOR_IQ1_S, 0x3a0c11bb890be2a5u},
    {GGUF_TENSOR_IQ1_M, 0x0d0a237374e352a5u},
    {GGUF_TENSOR_MXFP4, 0x0063a04b52d4a325u},
};

static uint8_t next_byte(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (uint8_t)(*state >> 33);
}

/* A scale that is not finite becomes one that is. */
static void mend_scale(uint8_t *upper)
{
    if ((*upper & 0x7C) == 0x7C) *upper &= 0xBF;
}

static uint64_t hash_of(gguf_tensor_type type)
{
    enum { BLOCKS = 256 };
    const quant_format *f = quant_format_of(type);
    uint64_t state = 7, hash = 14695981039346656037u;
    for (int i = 0; i < BLOCKS; i++) {
        uint8_t block[256];
        float got[256];
        for (uint32_t k = 0; k < f->n_bytes; k++) block[k] = next_byte(&state);
        if (f->kind == QUANT_FP4)
            block[0] &= 127;
        else if (f->is_spread)
            block[f->d_at + 7] &= 0xBF;
        else
            mend_scale(&block[f->d_at + 1]);
        if (f->kind == QUANT_MIN || f->kind == QUANT_SUPER_MIN || f->kind == QUANT_SUPER_MIN_16)
            mend_scale(&block[f->d_at + 3]);
        assert_true(quant_is_finite(type, block, f->n));
        quant_to_f32(type, block, f->n, got);
        for (uint32_t k = 0; k < f->n; k++) hash = (hash ^ quant_bits_of_float(got[k])) * 1099511628211u;
    }
    return hash;
}

static void test_quant__floats_are_those_of_gguf_py(void **state)
{
    (void)state;
    gguf_tensor_type type;
    for (size_t i = 0; quant_type_at(i, &type); i++) {
        if (quant_format_of(type)->kind == QUANT_FLOAT) continue;
        size_t k = 0;
        while (k < sizeof hashes / sizeof *hashes && hashes[k].type != type) k++;
        if (k == sizeof hashes / sizeof *hashes) fail_msg("%s has no hash", gguf_tensor_type_name(type));
        if (hash_of(type) != hashes[k].hash) fail_msg("%s differs", gguf_tensor_type_name(type));
    }
}

static void test_quant__floats(void **state)
{
    (void)state;
    float x[4] = {1.5f, -0.0f, 3e38f, -1e-30f}, got[4];
    uint16_t bf16[4], f16[2] = {0x3C00, 0xC000};
    for (int i = 0; i < 4; i++) memcpy(&bf16[i], (const uint8_t *)&x[i] + 2, 2);
    quant_to_f32(GGUF_TENSOR_F32, (const uint8_t *)x, 4, got);
    assert_memory_equal(got, x, sizeof x);
    quant_to_f32(GGUF_TENSOR_BF16, (const uint8_t *)bf16, 4, got);
    for (int i = 0; i < 4; i++) assert_true(fabsf(got[i] - x[i]) <= fabsf(x[i]) / 128);
    quant_to_f32(GGUF_TENSOR_F16, (const uint8_t *)f16, 2, got);
    assert_true(got[0] == 1.0f && got[1] == -2.0f);
}

/* Where each format keeps a scale; one that is infinite or NaN must be seen, in any block. */
static void test_quant__damaged_scales_are_seen(void **state)
{
    (void)state;
    static const struct {
        gguf_tensor_type type;
        int at;
    } scales[] = {{GGUF_TENSOR_F16, 0}, {GGUF_TENSOR_Q4_0, 0}, {GGUF_TENSOR_Q4_1, 0}, {GGUF_TENSOR_Q4_1, 2},
        {GGUF_TENSOR_Q5_0, 0}, {GGUF_TENSOR_Q5_1, 2}, {GGUF_TENSOR_Q8_0, 0}, {GGUF_TENSOR_Q4_K, 0},
        {GGUF_TENSOR_Q4_K, 2}, {GGUF_TENSOR_Q5_K, 2}, {GGUF_TENSOR_Q6_K, 208}, {GGUF_TENSOR_Q3_K, 108},
        {GGUF_TENSOR_Q2_K, 80}, {GGUF_TENSOR_Q2_K, 82}, {GGUF_TENSOR_IQ4_NL, 0}, {GGUF_TENSOR_IQ4_XS, 0},
        {GGUF_TENSOR_IQ3_S, 0}, {GGUF_TENSOR_IQ2_XXS, 0}, {GGUF_TENSOR_IQ1_S, 0}};
    for (size_t i = 0; i < sizeof scales / sizeof *scales; i++) {
        const quant_format *f = quant_format_of(scales[i].type);
        uint8_t blocks[3 * 210] = {0};
        assert_true(quant_is_finite(scales[i].type, blocks, 3 * f->n));
        uint8_t *scale = blocks + 2 * f->n_bytes + scales[i].at;
        scale[1] = 0x7C;
        assert_false(quant_is_finite(scales[i].type, blocks, 3 * f->n));
        scale[0] = 1;
        assert_false(quant_is_finite(scales[i].type, blocks, 3 * f->n));
    }
    uint8_t block[56] = {0}; /* IQ1_M: four bits in each of four places */
    block[55] = 0x70;
    assert_true(quant_is_finite(GGUF_TENSOR_IQ1_M, block, 256));
    block[53] = 0xC0;
    assert_false(quant_is_finite(GGUF_TENSOR_IQ1_M, block, 256));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_quant__every_half_converts),
        cmocka_unit_test(test_quant__halves_round_to_nearest_even),
        cmocka_unit_test(test_quant__blocks_come_out_as_they_went_in),
        cmocka_unit_test(test_quant__mxfp4_is_exact),
        cmocka_unit_test(test_quant__floats_are_those_of_gguf_py),
        cmocka_unit_test(test_quant__floats),
        cmocka_unit_test(test_quant__damaged_scales_are_seen),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
