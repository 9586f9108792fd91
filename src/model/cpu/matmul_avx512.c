/*
 * Products with AVX-512 VNNI. One vpdpbusd multiplies 16 rows x 4 consecutive k of unsigned weights with 4
 * signed activations that are broadcast from memory; there is no horizontal sum anywhere.
 *
 * Every function below is a template over constants (bits, kind of scales, number of columns C), inlined into
 * one instance a format and C. Nibbles in the upper half of a byte are not shifted down but masked, and their
 * sum (16 times too large, exactly) is shifted once a block: reading memory is what a decode should wait for.
 *
 * A thread's tiles are one stream, and each asks memory for what lies AHEAD bytes behind its loads: unpacking
 * takes so many instructions a line that a core which waits for one line has few others under way. Without it
 * a thread of Zen 5 reads Q6_K at 24 GB/s and Q4_K at 32, with it at 41 and 42, and times eight columns at 28
 * instead of 10. Zen 4's own prefetcher follows a single column better alone (97% of what plain reading gives,
 * 86% with ours): tile_followed_*.
 */
#include "model/cpu/cpu.h"
#include "model/cpu/vec_avx512.h"
#include "model/file/quant.h"

enum { AHEAD = 8192, LINE = 64 };

INLINE void prefetch(const uint8_t *p, uint32_t n_bytes)
{
    for (uint32_t i = 0; i < n_bytes; i += LINE) _mm_prefetch((const char *)p + i, _MM_HINT_T0);
}

INLINE __m512i load(const uint8_t *p)
{
    return _mm512_loadu_si512(p);
}

INLINE __m512i bytes(int value)
{
    return _mm512_set1_epi8((char)value);
}

/* (a & mask) | b */
INLINE __m512i and_or(__m512i a, __m512i mask, __m512i b)
{
    return _mm512_ternarylogic_epi32(a, mask, b, 0xEA);
}

INLINE __m512i dot(__m512i acc, __m512i w, const int8_t *four)
{
    int32_t x;
    __builtin_memcpy(&x, four, sizeof x);
    return _mm512_dpbusd_epi32(acc, w, _mm512_set1_epi32(x));
}

INLINE __m512 f16_lanes(const uint8_t *p)
{
    return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(const void *)p));
}

INLINE __m512 u8_lanes(const uint8_t *p)
{
    return _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)(const void *)p)));
}

INLINE __m512 i8_lanes(const uint8_t *p)
{
    return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i *)(const void *)p)));
}

/* quant_scale_of_power of 16 rows. */
INLINE __m512 power_lanes(const uint8_t *p)
{
    __m512i power = _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)(const void *)p));
    __mmask16 small = _mm512_cmplt_epu32_mask(power, _mm512_set1_epi32(2));
    __m512i bits = _mm512_slli_epi32(_mm512_sub_epi32(power, _mm512_set1_epi32(1)), 23);
    return _mm512_castsi512_ps(_mm512_mask_sllv_epi32(bits, small, _mm512_set1_epi32(0x00200000), power));
}

/* Are the two halves of a block scaled apart? */
INLINE bool has_halves(cpu_scales kind)
{
    return kind == CPU_SCALES_K16 || kind == CPU_SCALES_KM16;
}

/* The scale vectors of block b, as in a panel: first and second, and of KM16 the minima of both halves. */
INLINE void load_scales(cpu_scales kind, const uint8_t *head, uint32_t b, uint32_t blocks, __m512 *scales)
{
    __m512 *first = scales, *second = scales + 1;
    *second = scales[2] = scales[3] = _mm512_setzero_ps();
    if (kind == CPU_SCALES_D) {
        *first = f16_lanes(head + 32 * b);
    } else if (kind == CPU_SCALES_E) {
        *first = power_lanes(head + 16 * b);
    } else if (kind == CPU_SCALES_F) {
        *first = _mm512_loadu_ps(head);
    } else if (kind == CPU_SCALES_DM) {
        *first = f16_lanes(head);
        *second = f16_lanes(head + 32);
    } else if (kind == CPU_SCALES_KM) {
        __m512 m = _mm512_mul_ps(f16_lanes(head + 32), u8_lanes(head + 64 + 16 * (blocks + b)));
        *first = _mm512_mul_ps(f16_lanes(head), u8_lanes(head + 64 + 16 * b));
        *second = _mm512_castsi512_ps(_mm512_xor_si512(_mm512_castps_si512(m), _mm512_set1_epi32(INT32_MIN)));
    } else if (kind == CPU_SCALES_KM16) {
        for (int half = 0; half < 2; half++) {
            const uint8_t *at = head + 64 + 32 * b + 16 * half;
            __m512i both = _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)(const void *)at));
            __m512i sc = _mm512_and_si512(both, _mm512_set1_epi32(15)), mn = _mm512_srli_epi32(both, 4);
            scales[half] = _mm512_mul_ps(f16_lanes(head), _mm512_cvtepi32_ps(sc));
            scales[2 + half] = _mm512_mul_ps(f16_lanes(head + 32), _mm512_cvtepi32_ps(mn));
        }
    } else if (kind == CPU_SCALES_K32) {
        *first = _mm512_mul_ps(_mm512_loadu_ps(head), i8_lanes(head + 64 + 16 * b));
    } else {
        *first = _mm512_mul_ps(_mm512_loadu_ps(head), i8_lanes(head + 64 + 32 * b));
        *second = _mm512_mul_ps(_mm512_loadu_ps(head), i8_lanes(head + 64 + 32 * b + 16));
    }
}

/* What quants stand for, + 2^shift: a table for load_pair. */
typedef struct code_book {
    bool is_there;
    __m512i values;
} code_book;

INLINE code_book load_codes(const int8_t *codes, int shift)
{
    if (!codes) return (code_book){.values = _mm512_setzero_si512()};
    __m512i values = _mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i *)(const void *)codes));
    return (code_book){true, _mm512_add_epi8(values, bytes(1 << shift))};
}

/*
 * Quants of k-groups i and 4 + i (i < 4), looked up where they have codes. The second are as they lie: times
 * 16 (4 bits), 4 (6 bits) or 1.
 */
INLINE void load_pair(int bits, code_book codes, const uint8_t *block, int i, __m512i *low, __m512i *high)
{
    if (bits <= 3) {
        *low = _mm512_and_si512(_mm512_srli_epi32(load(block), (unsigned)(2 * i)), bytes(0x03));
        *high = _mm512_and_si512(_mm512_srli_epi32(load(block + 64), (unsigned)(2 * i)), bytes(0x03));
        if (bits == 2) return;
        __m512i third = load(block + 128);
        __m512i down =
            i < 2 ? _mm512_slli_epi32(third, (unsigned)(2 - i)) : _mm512_srli_epi32(third, (unsigned)(i - 2));
        *low = and_or(down, bytes(0x04), *low);
        *high = and_or(_mm512_srli_epi32(third, (unsigned)(2 + i)), bytes(0x04), *high);
        if (!codes.is_there) return;
        *low = _mm512_shuffle_epi8(codes.values, *low);
        *high = _mm512_shuffle_epi8(codes.values, *high);
        return;
    }
    __m512i w = load(block + 64 * i);
    if (codes.is_there) {
        *low = _mm512_shuffle_epi8(codes.values, _mm512_and_si512(w, bytes(0x0F)));
        *high = _mm512_shuffle_epi8(codes.values, _mm512_and_si512(_mm512_srli_epi32(w, 4), bytes(0x0F)));
    } else if (bits == 4) {
        *low = _mm512_and_si512(w, bytes(0x0F));
        *high = _mm512_and_si512(w, bytes(0xF0));
    } else if (bits == 5) {
        __m512i fifth = load(block + 256);
        *low = and_or(
            w, bytes(0x0F), _mm512_and_si512(_mm512_slli_epi32(fifth, (unsigned)(4 - i)), bytes(0x10)));
        *high = and_or(_mm512_srli_epi32(w, 4), bytes(0x0F),
            _mm512_and_si512(_mm512_srli_epi32(fifth, (unsigned)i), bytes(0x10)));
    } else if (bits == 6) {
        __m512i lower = load(block + 256 + 64 * (i / 2));
        if (i % 2) lower = _mm512_srli_epi32(lower, 4);
        *low = and_or(_mm512_slli_epi32(w, 2), bytes(0x3C), _mm512_and_si512(lower, bytes(0x03)));
        *high = and_or(w, bytes(0xF0), _mm512_and_si512(lower, bytes(0x0C)));
    } else {
        *low = w;
        *high = load(block + 64 * (4 + i));
    }
}

/* How far load_pair's second quants are shifted up. */
INLINE int high_shift(int bits, code_book codes)
{
    return codes.is_there ? 0 : bits == 4 ? 4 : bits == 6 ? 2 : 0;
}

/*
 * acc += d * (value of the block) for one column. dot0, dot1: sums of the halves (K16, KM16), or of the two byte
 * planes (F). nsum: the column's of the first half; of the second it lies c further.
 */
INLINE __m512 add_block(cpu_scales kind, __m512 acc, __m512i dot0, __m512i dot1, const __m512 *scales,
    float d, float sum, const int32_t *nsum, int c)
{
    __m512 value, first = scales[0], second = scales[1];
    if (has_halves(kind))
        value =
            _mm512_fmadd_ps(_mm512_cvtepi32_ps(dot1), second, _mm512_mul_ps(_mm512_cvtepi32_ps(dot0), first));
    else if (kind == CPU_SCALES_F)
        value = _mm512_mul_ps(_mm512_cvtepi32_ps(_mm512_add_epi32(_mm512_slli_epi32(dot0, 8), dot1)), first);
    else if (kind == CPU_SCALES_D || kind == CPU_SCALES_E || kind == CPU_SCALES_K32)
        value = _mm512_mul_ps(_mm512_cvtepi32_ps(dot0), first);
    else
        value = _mm512_fmadd_ps(_mm512_cvtepi32_ps(dot0), first, _mm512_mul_ps(second, _mm512_set1_ps(sum)));
    if (kind == CPU_SCALES_KM16) {
        value = _mm512_fmadd_ps(_mm512_set1_ps((float)nsum[0]), scales[2], value);
        value = _mm512_fmadd_ps(_mm512_set1_ps((float)nsum[c]), scales[3], value);
    }
    return _mm512_fmadd_ps(_mm512_set1_ps(d), value, acc);
}

/*
 * Where a column's integer sums begin: at -offset * sum of the activations. `up`: the sum counts 2^up times.
 */
INLINE __m512i start(cpu_scales kind, int shift, int up, const int32_t *nsum, int c, int half)
{
    if (kind == CPU_SCALES_DM || kind == CPU_SCALES_KM || kind == CPU_SCALES_KM16)
        return _mm512_setzero_si512();
    int32_t sum = kind == CPU_SCALES_K16 ? nsum[half * c] : nsum[0] + nsum[c];
    return _mm512_set1_epi32(sum * (1 << (shift + up)));
}

/* ---- straight from the packed bytes ---- */

INLINE void tile_block(int bits, cpu_scales kind, int shift, code_book codes, int c, const uint8_t *block,
    const __m512 *scales, const int8_t *q, const float *d, const float *sum, const int32_t *nsum, __m512 *acc)
{
    const int up = high_shift(bits, codes);
    __m512i low[CPU_GROUP], high[CPU_GROUP];
    for (int i = 0; i < c; i++) {
        low[i] = start(kind, shift, 0, nsum + i, c, 0);
        high[i] = has_halves(kind) ? start(kind, shift, up, nsum + i, c, 1) : _mm512_setzero_si512();
        if (bits == 16) high[i] = low[i];
    }
    if (bits == 16) {
        for (int g = 0; g < 8; g++) {
            __m512i upper = load(block + 64 * g), lower = load(block + 512 + 64 * g);
            for (int i = 0; i < c; i++) {
                low[i] = dot(low[i], upper, q + 4 * (g * c + i));
                high[i] = dot(high[i], lower, q + 4 * (g * c + i));
            }
        }
    } else {
        for (int g = 0; g < 4; g++) {
            __m512i w0, w1;
            load_pair(bits, codes, block, g, &w0, &w1);
            for (int i = 0; i < c; i++) {
                low[i] = dot(low[i], w0, q + 4 * (g * c + i));
                high[i] = dot(high[i], w1, q + 4 * ((4 + g) * c + i));
            }
        }
    }
    for (int i = 0; i < c; i++) {
        if (up) high[i] = _mm512_srai_epi32(high[i], (unsigned)up);
        if (!has_halves(kind) && bits != 16) low[i] = _mm512_add_epi32(low[i], high[i]);
        acc[i] = add_block(kind, acc[i], low[i], high[i], scales, d[i], sum[i], nsum + i, c);
    }
}

INLINE void tile_columns(int bits, cpu_scales kind, uint32_t blocks, uint32_t head_bytes, int shift,
    const int8_t *table, int ahead, int c, const uint8_t *tile, uint32_t n_super, const cpu_columns *x,
    float *out)
{
    const code_book codes = load_codes(table, shift);
    const int8_t *q = x->q;
    const float *d = x->d, *sum = x->sum;
    const int32_t *nsum = x->nsum;
    __m512 acc[CPU_GROUP];
    for (int i = 0; i < c; i++) acc[i] = _mm512_setzero_ps();
    for (uint32_t s = 0; s < n_super; s++) {
        const uint8_t *head = tile;
        if (ahead) prefetch(head + ahead, head_bytes);
        tile += head_bytes;
        for (uint32_t b = 0; b < blocks; b++) {
            __m512 scales[4];
            if (ahead) prefetch(tile + ahead, 64 * (uint32_t)bits);
            load_scales(kind, head, b, blocks, scales);
            tile_block(bits, kind, shift, codes, c, tile, scales, q, d, sum, nsum, acc);
            tile += 64 * bits;
            q += CPU_BLOCK * c;
            d += c;
            sum += c;
            nsum += 2 * c;
        }
    }
    for (int i = 0; i < c; i++) _mm512_storeu_ps(out + CPU_LANES * i, acc[i]);
}

/* ---- panels ---- */

INLINE void panel_columns(cpu_scales kind, int c, const uint8_t *panel, uint32_t n_blocks, int shift,
    const cpu_columns *x, float *out)
{
    const int8_t *q = x->q;
    const float *d = x->d, *sum = x->sum;
    const int32_t *nsum = x->nsum;
    __m512 acc[CPU_GROUP];
    for (int i = 0; i < c; i++) acc[i] = _mm512_setzero_ps();
    for (uint32_t b = 0; b < n_blocks; b++) {
        const uint8_t *w = panel + cpu_panel_scales_bytes(kind);
        __m512 scales[4] = {_mm512_loadu_ps(panel), _mm512_loadu_ps(panel + 64)};
        if (kind == CPU_SCALES_KM16) {
            scales[2] = _mm512_loadu_ps(panel + 128);
            scales[3] = _mm512_loadu_ps(panel + 192);
        }
        __m512i low[CPU_GROUP], high[CPU_GROUP];
        for (int i = 0; i < c; i++) low[i] = start(kind, shift, 0, nsum + i, c, 0);
        const int n_low = has_halves(kind) ? 4 : 8;
        for (int g = 0; g < n_low; g++) {
            __m512i v = load(w + 64 * g);
            for (int i = 0; i < c; i++) low[i] = dot(low[i], v, q + 4 * (g * c + i));
        }
        for (int i = 0; i < c; i++) high[i] = start(kind, shift, 0, nsum + i, c, 1);
        if (has_halves(kind))
            for (int g = 4; g < 8; g++) {
                __m512i v = load(w + 64 * g);
                for (int i = 0; i < c; i++) high[i] = dot(high[i], v, q + 4 * (g * c + i));
            }
        if (kind == CPU_SCALES_F)
            for (int g = 0; g < 8; g++) {
                __m512i v = load(w + 64 * (8 + g));
                for (int i = 0; i < c; i++) high[i] = dot(high[i], v, q + 4 * (g * c + i));
            }
        for (int i = 0; i < c; i++)
            acc[i] = add_block(kind, acc[i], low[i], high[i], scales, d[i], sum[i], nsum + i, c);
        panel += cpu_panel_block_bytes(kind);
        q += CPU_BLOCK * c;
        d += c;
        sum += c;
        nsum += 2 * c;
    }
    for (int i = 0; i < c; i++) _mm512_storeu_ps(out + CPU_LANES * i, acc[i]);
}

INLINE void expand_tile(int bits, cpu_scales kind, uint32_t blocks, uint32_t head_bytes, int shift,
    const int8_t *table, const uint8_t *tile, uint32_t n_super, uint8_t *panel)
{
    const code_book codes = load_codes(table, shift);
    for (uint32_t s = 0; s < n_super; s++) {
        const uint8_t *head = tile;
        tile += head_bytes;
        for (uint32_t b = 0; b < blocks; b++, tile += 64 * bits) {
            __m512 scales[4];
            load_scales(kind, head, b, blocks, scales);
            for (size_t i = 0; i < cpu_panel_scales_bytes(kind) / 64; i++)
                _mm512_storeu_ps(panel + 64 * i, scales[i]);
            panel += cpu_panel_scales_bytes(kind);
            if (bits == 16) {
                for (int g = 0; g < 16; g++) _mm512_storeu_si512(panel + 64 * g, load(tile + 64 * g));
                panel += 1024;
                continue;
            }
            for (int g = 0; g < 4; g++) {
                __m512i low, high;
                load_pair(bits, codes, tile, g, &low, &high);
                if (high_shift(bits, codes)) {
                    high = _mm512_srli_epi32(high, (unsigned)high_shift(bits, codes));
                    high = _mm512_and_si512(high, bytes(bits == 4 ? 0x0F : 0x3F));
                }
                _mm512_storeu_si512(panel + 64 * g, low);
                _mm512_storeu_si512(panel + 64 * (4 + g), high);
            }
            panel += 512;
        }
    }
}

/* ---- instances ---- */

#define CPU_FORMAT(name, bits, scales, blocks, head, shift, codes)                                           \
    static void expand_##name(const uint8_t *tile, uint32_t n_super, uint8_t *panel)                         \
    {                                                                                                        \
        expand_tile(bits, CPU_SCALES_##scales, blocks, head, shift, codes, tile, n_super, panel);            \
    }
#include "model/cpu/formats.def"
#undef CPU_FORMAT

#define TILE_CASE(C, bits, scales, blocks, head, shift, codes)                                               \
    case C:                                                                                                  \
        tile_columns(                                                                                        \
            bits, CPU_SCALES_##scales, blocks, head, shift, codes, AHEAD, C, tile, n_super, x, out);         \
        break;
#define CPU_FORMAT(name, bits, scales, blocks, head, shift, codes)                                           \
    static void tile_##name(                                                                                 \
        const uint8_t *tile, uint32_t n_super, const cpu_columns *x, uint32_t c, float *out)                 \
    {                                                                                                        \
        switch (c) {                                                                                         \
            TILE_CASE(1, bits, scales, blocks, head, shift, codes)                                           \
            TILE_CASE(2, bits, scales, blocks, head, shift, codes)                                           \
            TILE_CASE(3, bits, scales, blocks, head, shift, codes)                                           \
            TILE_CASE(4, bits, scales, blocks, head, shift, codes)                                           \
            TILE_CASE(5, bits, scales, blocks, head, shift, codes)                                           \
            TILE_CASE(6, bits, scales, blocks, head, shift, codes)                                           \
            TILE_CASE(7, bits, scales, blocks, head, shift, codes)                                           \
            TILE_CASE(8, bits, scales, blocks, head, shift, codes)                                           \
        }                                                                                                    \
    }                                                                                                        \
    static void tile_followed_##name(                                                                        \
        const uint8_t *tile, uint32_t n_super, const cpu_columns *x, uint32_t c, float *out)                 \
    {                                                                                                        \
        if (c > 1)                                                                                           \
            tile_##name(tile, n_super, x, c, out);                                                           \
        else                                                                                                 \
            tile_columns(                                                                                    \
                bits, CPU_SCALES_##scales, blocks, head, shift, codes, 0, 1, tile, n_super, x, out);         \
    }
#include "model/cpu/formats.def"
#undef CPU_FORMAT

#define PANEL_CASE(C, kind)                                                                                  \
    case C:                                                                                                  \
        panel_columns(CPU_SCALES_##kind, C, panel, n_blocks, shift, x, out);                                 \
        break;
#define PANEL(kind)                                                                                          \
    static void panel_##kind(                                                                                \
        const uint8_t *panel, uint32_t n_blocks, int shift, const cpu_columns *x, uint32_t c, float *out)    \
    {                                                                                                        \
        switch (c) {                                                                                         \
            PANEL_CASE(1, kind)                                                                              \
            PANEL_CASE(2, kind)                                                                              \
            PANEL_CASE(3, kind)                                                                              \
            PANEL_CASE(4, kind)                                                                              \
            PANEL_CASE(5, kind)                                                                              \
            PANEL_CASE(6, kind)                                                                              \
            PANEL_CASE(7, kind)                                                                              \
            PANEL_CASE(8, kind)                                                                              \
        }                                                                                                    \
    }
PANEL(D)
PANEL(DM)
PANEL(K16)
PANEL(KM16)
PANEL(F)

void cpu_matmul_avx512(cpu_kernels *k)
{
    const bool is_zen4 = __builtin_cpu_is("amdfam19h");
#define CPU_FORMAT(name, bits, scales, blocks, head, shift, codes)                                           \
    k->tile[CPU_##name] = is_zen4 ? tile_followed_##name : tile_##name;                                      \
    k->expand[CPU_##name] = expand_##name;
#include "model/cpu/formats.def"
#undef CPU_FORMAT
    k->panel[CPU_SCALES_D] = panel_D;
    k->panel[CPU_SCALES_DM] = panel_DM;
    k->panel[CPU_SCALES_KM] = panel_DM; /* an expanded block looks the same */
    k->panel[CPU_SCALES_K16] = panel_K16;
    k->panel[CPU_SCALES_KM16] = panel_KM16;
    k->panel[CPU_SCALES_K32] = panel_D; /* as these two's */
    k->panel[CPU_SCALES_E] = panel_D;
    k->panel[CPU_SCALES_F] = panel_F;
}
