/*
 * Packing with AVX-512: from 16 rows of the file to one super-block of a P16 tile (formats.def), the bytes
 * that pack.c makes in plain C. Rows are transposed by 32-bit words, so that lane r of a vector is row r;
 * from then on everything is masks and shifts of whole vectors, and loading a model waits for memory.
 */
#include <string.h>

#include "model/cpu/cpu.h"
#include "model/cpu/vec_avx512.h"

INLINE __m512i bytes(int value)
{
    return _mm512_set1_epi8((char)value);
}

/* (v >> down) & mask, by bytes; a mask that takes no bits of the neighbour. */
INLINE __m512i field(__m512i v, unsigned down, int mask)
{
    return _mm512_and_si512(_mm512_srli_epi32(v, down), bytes(mask));
}

/* Words [0, n) behind `at` bytes of each row: v[i] lane r = word i of row r. n is at most 16. */
INLINE void load_words(const uint8_t *const *rows, size_t at, int n, __m512i *v)
{
    __m512i t[16];
    for (int r = 0; r < 16; r++) t[r] = _mm512_maskz_loadu_epi32((__mmask16)((1u << n) - 1), rows[r] + at);
    vec_transpose_16(t);
    for (int i = 0; i < n; i++) v[i] = t[i];
}

/*
 * The same for 4 words: rows r, 4 + r, 8 + r, 12 + r lie in one vector, which leaves four small
 * transpositions.
 */
INLINE void load_4_words(const uint8_t *const *rows, size_t at, __m512i *v)
{
    __m512i t[4], lo[2], hi[2];
    for (int r = 0; r < 4; r++) {
        t[r] = _mm512_castsi128_si512(_mm_loadu_si128((const __m128i *)(const void *)(rows[r] + at)));
        t[r] =
            _mm512_inserti32x4(t[r], _mm_loadu_si128((const __m128i *)(const void *)(rows[4 + r] + at)), 1);
        t[r] =
            _mm512_inserti32x4(t[r], _mm_loadu_si128((const __m128i *)(const void *)(rows[8 + r] + at)), 2);
        t[r] =
            _mm512_inserti32x4(t[r], _mm_loadu_si128((const __m128i *)(const void *)(rows[12 + r] + at)), 3);
    }
    for (int i = 0; i < 2; i++) {
        lo[i] = _mm512_unpacklo_epi32(t[2 * i], t[2 * i + 1]);
        hi[i] = _mm512_unpackhi_epi32(t[2 * i], t[2 * i + 1]);
    }
    v[0] = _mm512_unpacklo_epi64(lo[0], lo[1]);
    v[1] = _mm512_unpackhi_epi64(lo[0], lo[1]);
    v[2] = _mm512_unpacklo_epi64(hi[0], hi[1]);
    v[3] = _mm512_unpackhi_epi64(hi[0], hi[1]);
}

/* One 16-bit or 32-bit number a row. */
INLINE void put_halves(const uint8_t *const *rows, size_t at, uint8_t *out)
{
    for (int r = 0; r < 16; r++) memcpy(out + 2 * r, rows[r] + at, 2);
}

INLINE __m512i load_word(const uint8_t *const *rows, size_t at)
{
    uint32_t words[16];
    for (int r = 0; r < 16; r++) memcpy(&words[r], rows[r] + at, 4);
    return _mm512_loadu_si512(words);
}

/* Byte j of lane r -> byte 16 j + r. */
INLINE void put_byte_rows(__m512i v, uint8_t *out)
{
    const __m512i within =
        _mm512_broadcast_i32x4(_mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15));
    const __m512i across = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    _mm512_storeu_si512(out, _mm512_permutexvar_epi32(across, _mm512_shuffle_epi8(v, within)));
}

/* The eight k-groups of a block, one quant a byte, to its bit planes. */
INLINE void put_block(int bits, const __m512i *w, uint8_t *out)
{
    if (bits == 2) {
        for (int half = 0; half < 2; half++, w += 4) {
            __m512i low = _mm512_or_si512(w[0], _mm512_slli_epi32(w[1], 2));
            __m512i high = _mm512_or_si512(_mm512_slli_epi32(w[2], 4), _mm512_slli_epi32(w[3], 6));
            _mm512_storeu_si512(out + 64 * half, _mm512_or_si512(low, high));
        }
        return;
    }
    if (bits == 8) {
        for (int g = 0; g < 8; g++) _mm512_storeu_si512(out + 64 * g, w[g]);
        return;
    }
    const unsigned down = bits == 6 ? 2 : 0;
    for (int g = 0; g < 4; g++) {
        __m512i high = _mm512_slli_epi32(field(w[4 + g], down, 0x0F), 4);
        _mm512_storeu_si512(out + 64 * g, _mm512_or_si512(field(w[g], down, 0x0F), high));
    }
    if (bits == 5) {
        __m512i fifth = _mm512_setzero_si512();
        for (unsigned g = 0; g < 8; g++)
            fifth = _mm512_or_si512(fifth, _mm512_slli_epi32(field(w[g], 4, 0x01), g));
        _mm512_storeu_si512(out + 256, fifth);
    }
    if (bits == 6)
        for (int j = 0; j < 2; j++) {
            __m512i lower = field(w[2 * j], 0, 0x03);
            lower = _mm512_or_si512(lower, _mm512_slli_epi32(field(w[2 * j + 4], 0, 0x03), 2));
            lower = _mm512_or_si512(lower, _mm512_slli_epi32(field(w[2 * j + 1], 0, 0x03), 4));
            lower = _mm512_or_si512(lower, _mm512_slli_epi32(field(w[2 * j + 5], 0, 0x03), 6));
            _mm512_storeu_si512(out + 256 + 64 * j, lower);
        }
}

/* Q4_0, Q4_1, Q5_0, Q5_1: d, perhaps m, perhaps 32 fifth bits, 16 bytes of nibbles. */
INLINE void pack_32(int bits, bool has_min, const uint8_t *const *rows, uint8_t *out)
{
    const int n_blocks = has_min ? 1 : 2;
    const size_t qs = (has_min ? 4u : 2u) + (bits == 5 ? 4u : 0u), n_bytes = qs + 16;
    for (int b = 0; b < n_blocks; b++) {
        const size_t at = n_bytes * (size_t)b;
        __m512i v[4], w[8];
        put_halves(rows, at, out + 32 * b);
        if (has_min) put_halves(rows, at + 2, out + 32);
        load_4_words(rows, at + qs, v);
        for (int g = 0; g < 4; g++) {
            w[g] = field(v[g], 0, 0x0F);
            w[4 + g] = field(v[g], 4, 0x0F);
        }
        if (bits == 5) {
            const __m512i four = _mm512_set1_epi32(0x0F), spread = _mm512_set1_epi32(0x00204081);
            __m512i fifth = load_word(rows, at + qs - 4);
            for (unsigned g = 0; g < 8; g++) { /* four bits to the lowest bits of four bytes */
                __m512i nibble = _mm512_and_si512(_mm512_srli_epi32(fifth, 4 * g), four);
                __m512i ones = _mm512_and_si512(_mm512_mullo_epi32(nibble, spread), bytes(1));
                w[g] = _mm512_or_si512(w[g], _mm512_slli_epi32(ones, 4));
            }
        }
        put_block(bits, w, out + 64 + 64 * bits * b);
    }
}

static void pack_q4_0(const uint8_t *const *rows, uint8_t *out)
{
    pack_32(4, false, rows, out);
}

static void pack_q4_1(const uint8_t *const *rows, uint8_t *out)
{
    pack_32(4, true, rows, out);
}

static void pack_q5_0(const uint8_t *const *rows, uint8_t *out)
{
    pack_32(5, false, rows, out);
}

static void pack_q5_1(const uint8_t *const *rows, uint8_t *out)
{
    pack_32(5, true, rows, out);
}

static void pack_q8_0(const uint8_t *const *rows, uint8_t *out)
{
    for (int b = 0; b < 2; b++) {
        __m512i w[8];
        put_halves(rows, 34 * (size_t)b, out + 32 * b);
        load_4_words(rows, 34 * (size_t)b + 2, w);
        load_4_words(rows, 34 * (size_t)b + 18, w + 4);
        for (int g = 0; g < 8; g++) w[g] = _mm512_xor_si512(w[g], bytes(0x80));
        put_block(8, w, out + 64 + 512 * b);
    }
}

/*
 * Q4_K, Q5_K: d, dmin, 12 bytes of 6-bit scales and minima, perhaps 32 bytes of fifth bits, 128 bytes of
 * nibbles.
 */
INLINE void pack_super_min(int bits, const uint8_t *const *rows, uint8_t *out)
{
    __m512i h[4], fifth[8], v[16], w[8];
    load_4_words(rows, 0, h);
    _mm256_storeu_si256((__m256i *)(void *)out, _mm512_cvtepi32_epi16(h[0]));
    _mm256_storeu_si256((__m256i *)(void *)(out + 32), _mm512_cvtepi32_epi16(_mm512_srli_epi32(h[0], 16)));
    put_byte_rows(field(h[1], 0, 0x3F), out + 64);
    put_byte_rows(_mm512_or_si512(field(h[3], 0, 0x0F), field(h[1], 2, 0x30)), out + 128);
    put_byte_rows(field(h[2], 0, 0x3F), out + 192);
    put_byte_rows(_mm512_or_si512(field(h[3], 4, 0x0F), field(h[2], 2, 0x30)), out + 256);
    out += 320;
    if (bits == 5) load_words(rows, 16, 8, fifth);
    for (unsigned half = 0; half < 2; half++) {
        load_words(rows, (bits == 5 ? 48 : 16) + 64 * half, 16, v);
        for (unsigned b = 0; b < 4; b++, out += 64 * bits) {
            for (int g = 0; g < 8; g++) {
                w[g] = field(v[8 * (b / 2) + g], 4 * (b % 2), 0x0F);
                if (bits == 5)
                    w[g] = _mm512_or_si512(w[g], _mm512_slli_epi32(field(fifth[g], 4 * half + b, 0x01), 4));
            }
            put_block(bits, w, out);
        }
    }
}

static void pack_q4_k(const uint8_t *const *rows, uint8_t *out)
{
    pack_super_min(4, rows, out);
}

static void pack_q5_k(const uint8_t *const *rows, uint8_t *out)
{
    pack_super_min(5, rows, out);
}

/* 128 bytes of lower nibbles, 64 of upper pairs of bits, 16 scales, d. */
static void pack_q6_k(const uint8_t *const *rows, uint8_t *out)
{
    __m512i sc[4], low[16], high[16], w[8];
    put_halves(rows, 208, out);
    _mm512_storeu_ps(out, _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(const void *)out)));
    load_4_words(rows, 192, sc);
    for (int i = 0; i < 4; i++) put_byte_rows(sc[i], out + 64 + 64 * i);
    out += 320;
    load_words(rows, 128, 16, high);
    for (unsigned half = 0; half < 2; half++) {
        load_words(rows, 64 * half, 16, low);
        for (unsigned b = 0; b < 4; b++, out += 384) {
            for (unsigned g = 0; g < 8; g++)
                w[g] = _mm512_or_si512(field(low[8 * (b % 2) + g], 4 * (b / 2), 0x0F),
                    _mm512_slli_epi32(field(high[8 * half + g], 2 * b, 0x03), 4));
            put_block(6, w, out);
        }
    }
}

/* 16 bytes of scales and minima, 64 of pairs of bits, d, dmin. */
static void pack_q2_k(const uint8_t *const *rows, uint8_t *out)
{
    __m512i both[4], v[16], w[8];
    put_halves(rows, 80, out);
    put_halves(rows, 82, out + 32);
    load_4_words(rows, 0, both);
    for (int i = 0; i < 4; i++) put_byte_rows(both[i], out + 64 + 64 * i);
    out += 320;
    load_words(rows, 16, 16, v);
    for (unsigned b = 0; b < 8; b++, out += 128) {
        for (unsigned g = 0; g < 8; g++) w[g] = field(v[8 * (b / 4) + g], 2 * (b % 4), 0x03);
        put_block(2, w, out);
    }
}

void cpu_pack_avx512(cpu_kernels *k)
{
    k->pack[CPU_Q4_0] = pack_q4_0;
    k->pack[CPU_Q4_1] = pack_q4_1;
    k->pack[CPU_Q5_0] = pack_q5_0;
    k->pack[CPU_Q5_1] = pack_q5_1;
    k->pack[CPU_Q8_0] = pack_q8_0;
    k->pack[CPU_Q4_K] = pack_q4_k;
    k->pack[CPU_Q5_K] = pack_q5_k;
    k->pack[CPU_Q6_K] = pack_q6_k;
    k->pack[CPU_Q2_K] = pack_q2_k;
}
