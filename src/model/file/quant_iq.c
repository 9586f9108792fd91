/*
 * A block of IQ1, IQ2 or IQ3 has numbers of grid rows (the magnitudes of 8 or 4 weights), and signs apart. What comes
 * out are quants of their own: a place among the magnitudes, and one bit above it for the sign. quant_codes_iq* say
 * what such a quant means. All scales are odd: 2 s + 1 of what the block has.
 */
#include "model/file/quant_iq.h"

#include <string.h>

#include "model/file/quant_grids.h"

/* Without a sign, then with it. In IQ1 the "sign" is an eighth that is taken away instead of added, all times 8. */
const int8_t quant_codes_iq1[16] = {-7, 1, 9, 0, -9, -1, 7, 0, -7, 1, 9, 0, -9, -1, 7, 0};
const int8_t quant_codes_iq2[16] = {8, 25, 43, 0, -8, -25, -43, 0, 8, 25, 43, 0, -8, -25, -43, 0};
/* Half of what they are in the file's description: the scale counts twice. */
const int8_t quant_codes_iq3_xxs[16] = {2, 6, 10, 14, 18, 22, 26, 31, -2, -6, -10, -14, -18, -22, -26, -31};
const int8_t quant_codes_iq3_s[16] = {1, 3, 5, 7, 9, 11, 13, 15, -1, -3, -5, -7, -9, -11, -13, -15};

static uint32_t read_u16(const uint8_t *p)
{
    return (uint32_t)(p[0] | p[1] << 8);
}

static uint32_t read_u32(const uint8_t *p)
{
    return read_u16(p) | read_u16(p + 2) << 16;
}

static uint8_t odd(uint32_t s)
{
    return (uint8_t)(2 * s + 1);
}

/* The nibble of number i. */
static uint32_t nibble(const uint8_t *p, int i)
{
    return p[i / 2] >> (4 * (i % 2)) & 15;
}

/* Eight bits to the lowest bits of eight bytes. */
static uint64_t spread_bits(uint32_t bits)
{
    const uint64_t ones = 0x0101010101010101u;
    uint64_t one_each = (bits & 0xFF) * ones & 0x8040201008040201u;
    return (one_each + 0x7F * ones) >> 7 & ones;
}

/* Eight digits of two bits to eight bytes. */
static uint64_t spread_pairs(uint64_t row)
{
    row = (row | row << 24) & 0x000000FF000000FFu;
    row = (row | row << 12) & 0x000F000F000F000Fu;
    return (row | row << 6) & 0x0303030303030303u;
}

/* Four digits of four bits to four bytes. */
static uint64_t spread_nibbles(uint64_t row)
{
    row = (row | row << 8) & 0x00FF00FFu;
    return (row | row << 4) & 0x0F0F0F0Fu;
}

static void put_eight(uint64_t q, uint8_t *to)
{
    for (int i = 0; i < 8; i++) to[i] = (uint8_t)(q >> 8 * i);
}

/* A row of IQ1 or IQ2. */
static void put_row(uint16_t row, uint32_t signs, uint8_t *to)
{
    put_eight(spread_pairs(row) | spread_bits(signs) << 2, to);
}

/* Two rows of IQ3. */
static void put_rows(uint16_t first, uint16_t second, uint32_t signs, uint8_t *to)
{
    put_eight(spread_nibbles(first) | spread_nibbles(second) << 32 | spread_bits(signs) << 3, to);
}

/* Seven signs of eight: there is an even number of them, which gives the eighth. */
static uint32_t all_signs(uint32_t seven)
{
    seven &= 127;
    return seven | (uint32_t)__builtin_parity(seven) << 7;
}

/* 32 lower bytes of rows; for each 32 weights four times 3 upper bits, 3 of the scale, and the eighth's sign. */
void quant__unpack_iq1_s(const quant_format *f, const uint8_t *p, quant_block *ret)
{
    (void)f;
    for (int j = 0; j < 8; j++) {
        const uint32_t upper = read_u16(p + 34 + 2 * j);
        ret->sc[2 * j] = ret->sc[2 * j + 1] = odd(upper >> 12 & 7);
        for (int i = 0; i < 4; i++)
            put_row(quant_grid_iq1[p[2 + 4 * j + i] | (upper >> 3 * i & 7) << 8], upper >> 15 ? 0xFF : 0,
                ret->q + 32 * j + 8 * i);
    }
}

/*
 * 32 lower bytes of rows; a nibble for each: 3 upper bits and the eighth's sign; four times 16 bits, four 3-bit
 * scales of 16 weights each in the lower twelve, a quarter of the outer scale in the rest.
 */
void quant__unpack_iq1_m(const quant_format *f, const uint8_t *p, quant_block *ret)
{
    (void)f;
    for (int j = 0; j < 16; j++) ret->sc[j] = odd(read_u16(p + 48 + 2 * (j / 4)) >> 3 * (j % 4) & 7);
    for (int i = 0; i < 32; i++) {
        const uint32_t upper = nibble(p + 32, i);
        put_row(quant_grid_iq1[p[i] | (upper & 7) << 8], upper >> 3 ? 0xFF : 0, ret->q + 8 * i);
    }
}

/* For each 32 weights four rows, then 32 bits: four times seven signs, four of the scale. */
void quant__unpack_iq2_xxs(const quant_format *f, const uint8_t *p, quant_block *ret)
{
    (void)f;
    p += 2;
    for (int j = 0; j < 8; j++, p += 8) {
        const uint32_t rest = read_u32(p + 4);
        ret->sc[2 * j] = ret->sc[2 * j + 1] = odd(rest >> 28);
        for (int i = 0; i < 4; i++)
            put_row(quant_grid_iq2_xxs[p[i]], all_signs(rest >> 7 * i), ret->q + 32 * j + 8 * i);
    }
}

/* 32 times 16 bits: nine of a row, seven signs; then a nibble for each 16 weights. */
void quant__unpack_iq2_xs(const quant_format *f, const uint8_t *p, quant_block *ret)
{
    (void)f;
    for (int j = 0; j < 16; j++) ret->sc[j] = odd(nibble(p + 66, j));
    for (int i = 0; i < 32; i++) {
        const uint32_t both = read_u16(p + 2 + 2 * i);
        put_row(quant_grid_iq2_xs[both & 511], all_signs(both >> 9), ret->q + 8 * i);
    }
}

/* 32 lower bytes of rows, 32 times eight signs, 32 times two upper bits, a nibble for each 16 weights. */
void quant__unpack_iq2_s(const quant_format *f, const uint8_t *p, quant_block *ret)
{
    (void)f;
    for (int j = 0; j < 16; j++) ret->sc[j] = odd(nibble(p + 74, j));
    for (int i = 0; i < 32; i++) {
        const uint32_t upper = p[66 + i / 4] >> (2 * (i % 4)) & 3;
        put_row(quant_grid_iq2_s[p[2 + i] | upper << 8], p[34 + i], ret->q + 8 * i);
    }
}

/* 64 rows, then 32 bits for each 32 weights, as IQ2_XXS. */
void quant__unpack_iq3_xxs(const quant_format *f, const uint8_t *p, quant_block *ret)
{
    (void)f;
    const uint8_t *rows = p + 2;
    for (int j = 0; j < 8; j++) {
        const uint32_t rest = read_u32(p + 66 + 4 * j);
        ret->sc[2 * j] = ret->sc[2 * j + 1] = odd(rest >> 28);
        for (int i = 0; i < 4; i++, rows += 2)
            put_rows(quant_grid_iq3_xxs[rows[0]], quant_grid_iq3_xxs[rows[1]], all_signs(rest >> 7 * i),
                ret->q + 32 * j + 8 * i);
    }
}

/* 64 lower bytes of rows, 64 ninth bits, 32 times eight signs, a nibble for each 32 weights. */
void quant__unpack_iq3_s(const quant_format *f, const uint8_t *p, quant_block *ret)
{
    (void)f;
    const uint8_t *rows = p + 2;
    for (int j = 0; j < 8; j++) ret->sc[2 * j] = ret->sc[2 * j + 1] = odd(nibble(p + 106, j));
    for (int i = 0; i < 32; i++, rows += 2) {
        const uint32_t ninth = p[66 + i / 4] >> (2 * (i % 4));
        put_rows(quant_grid_iq3_s[rows[0] | (ninth & 1) << 8], quant_grid_iq3_s[rows[1] | (ninth & 2) << 7],
            p[74 + i], ret->q + 8 * i);
    }
}
