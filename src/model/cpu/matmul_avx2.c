/*
 * Products with AVX2. Without VNNI a dot product of bytes goes through 16 bits: vpmaddubsw multiplies
 * unsigned weights with signed activations and adds pairs, and as many of these sums are added in 16 bits as
 * cannot overflow (|activation| <= 127):
 *
 *     quants up to 15   8 k-groups   15 * 127 * 2 * 8 = 30480
 *               31      4            31 * 127 * 2 * 4 = 31496
 *               63      2            63 * 127 * 2 * 2 = 32004
 *              127      1            (7 bits: codes of IQ2)
 *              255      1            as |w| times the activation with w's sign, 128 * 127 * 2 = 32512
 *
 * Then vpmaddwd with ones makes the lanes of 32 bits. Integer sums are exact, so the order is free; floats
 * follow plain C.
 *
 * Every function is a template over constants (layout, largest quant, kind of scales, number of columns),
 * inlined into instances. Registers hold four columns of 16 rows; more columns read the tile, which is in the
 * cache then, again.
 */
#include "model/cpu/cpu.h"
#include "model/cpu/vec_avx2.h"
#include "model/file/quant.h"

/* Checked memory accesses by the thousand take a compiler minutes: under ASan the loops stay loops. */
#if defined(__SANITIZE_ADDRESS__)
#define UNROLL _Pragma("GCC unroll 1")
#else
#define UNROLL _Pragma("GCC unroll 8")
#endif

enum {
    AHEAD = 4096, /* bytes that a decode's prefetch runs ahead of its loads */
    COLUMNS = 4,
};

INLINE __m256i bytes(int value)
{
    return _mm256_set1_epi8((char)value);
}

INLINE __m256 u8_lanes(const uint8_t *p)
{
    return _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_loadl_epi64((const void *)p)));
}

INLINE __m256 i8_lanes(const uint8_t *p)
{
    return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64((const void *)p)));
}

/* quant_scale_of_power of 8 rows. */
INLINE __m256 power_lanes(const uint8_t *p)
{
    __m256i power = _mm256_cvtepu8_epi32(_mm_loadl_epi64((const void *)p));
    __m256i small = _mm256_cmpgt_epi32(_mm256_set1_epi32(2), power);
    __m256i bits = _mm256_slli_epi32(_mm256_sub_epi32(power, _mm256_set1_epi32(1)), 23);
    __m256i tiny = _mm256_sllv_epi32(_mm256_set1_epi32(0x00200000), power);
    return _mm256_castsi256_ps(_mm256_blendv_epi8(bits, tiny, small));
}

/* Are the two halves of a block scaled apart? */
INLINE bool has_halves(cpu_scales kind)
{
    return kind == CPU_SCALES_K16 || kind == CPU_SCALES_KM16;
}

/* Scales of rows 8h..8h+7 of block b: a panel's vectors, scales[i][h]; the last two of KM16 only. */
INLINE void load_scales(
    cpu_scales kind, const uint8_t *head, uint32_t b, uint32_t blocks, int h, __m256 (*scales)[2])
{
    __m256 *first = &scales[0][h], *second = &scales[1][h];
    *second = scales[2][h] = scales[3][h] = _mm256_setzero_ps();
    if (kind == CPU_SCALES_D) {
        *first = load_f16(head + 32 * b + 16 * h);
    } else if (kind == CPU_SCALES_E) {
        *first = power_lanes(head + 16 * b + 8 * h);
    } else if (kind == CPU_SCALES_F) {
        *first = _mm256_loadu_ps((const float *)(const void *)head + 8 * h);
    } else if (kind == CPU_SCALES_DM) {
        *first = load_f16(head + 16 * h);
        *second = load_f16(head + 32 + 16 * h);
    } else if (kind == CPU_SCALES_KM) {
        const uint8_t *sc = head + 64 + 16 * b + 8 * h;
        *first = _mm256_mul_ps(load_f16(head + 16 * h), u8_lanes(sc));
        __m256 m = _mm256_mul_ps(load_f16(head + 32 + 16 * h), u8_lanes(sc + 16 * blocks));
        *second = _mm256_xor_ps(m, _mm256_set1_ps(-0.0f));
    } else if (kind == CPU_SCALES_KM16) {
        for (int half = 0; half < 2; half++) {
            const uint8_t *at = head + 64 + 32 * b + 16 * half + 8 * h;
            __m256i both = _mm256_cvtepu8_epi32(_mm_loadl_epi64((const void *)at));
            __m256i sc = _mm256_and_si256(both, _mm256_set1_epi32(15)), mn = _mm256_srli_epi32(both, 4);
            scales[half][h] = _mm256_mul_ps(load_f16(head + 16 * h), _mm256_cvtepi32_ps(sc));
            scales[2 + half][h] = _mm256_mul_ps(load_f16(head + 32 + 16 * h), _mm256_cvtepi32_ps(mn));
        }
    } else {
        const __m256 d = _mm256_loadu_ps((const float *)(const void *)head + 8 * h);
        const uint8_t *sc = head + 64 + (kind == CPU_SCALES_K32 ? 16 : 32) * b + 8 * h;
        *first = _mm256_mul_ps(d, i8_lanes(sc));
        if (kind == CPU_SCALES_K16) *second = _mm256_mul_ps(d, i8_lanes(sc + 16));
    }
}

/* What quants stand for, + 2^shift: a table for load_quants. */
typedef struct code_book {
    bool is_there;
    __m256i values;
} code_book;

INLINE code_book load_codes(const int8_t *codes, int shift)
{
    if (!codes) return (code_book){.values = _mm256_setzero_si256()};
    __m256i values = _mm256_broadcastsi128_si256(_mm_loadu_si128((const void *)codes));
    return (code_book){true, _mm256_add_epi8(values, bytes(1 << shift))};
}

/*
 * Quants of k-group g (plane 1: the lower bytes of WIDE), rows 8h..8h+7, looked up where they have codes.
 * Layouts: formats.def.
 */
INLINE __m256i load_quants(int layout, code_book codes, const uint8_t *block, int plane, int g, int h)
{
    if (layout >= 8) return load_256(block + 512 * plane + 64 * g + 32 * h);
    const int i = g % 4;
    const bool upper = g >= 4;
    if (layout <= 3) {
        __m256i q = _mm256_srli_epi16(load_256(block + 64 * upper + 32 * h), 2 * i);
        q = _mm256_and_si256(q, bytes(0x03));
        if (layout == 2) return q;
        __m256i third = load_256(block + 128 + 32 * h);
        third = g < 2 ? _mm256_slli_epi16(third, 2 - g) : _mm256_srli_epi16(third, g - 2);
        q = _mm256_or_si256(q, _mm256_and_si256(third, bytes(0x04)));
        return codes.is_there ? _mm256_shuffle_epi8(codes.values, q) : q;
    }
    __m256i w = load_256(block + 64 * i + 32 * h);
    if (layout == 6) {
        __m256i rest = load_256(block + 256 + 64 * (i / 2) + 32 * h);
        const int down = 4 * (i % 2) + 2 * upper;
        if (down) rest = _mm256_srli_epi16(rest, down);
        w = upper ? _mm256_srli_epi16(w, 2) : _mm256_slli_epi16(w, 2);
        return _mm256_or_si256(_mm256_and_si256(w, bytes(0x3C)), _mm256_and_si256(rest, bytes(0x03)));
    }
    if (upper) w = _mm256_srli_epi16(w, 4);
    w = _mm256_and_si256(w, bytes(0x0F));
    if (codes.is_there) return _mm256_shuffle_epi8(codes.values, w);
    if (layout == 5) {
        __m256i fifth = load_256(block + 256 + 32 * h);
        fifth = upper ? _mm256_srli_epi16(fifth, i) : _mm256_slli_epi16(fifth, 4 - i);
        w = _mm256_or_si256(w, _mm256_and_si256(fifth, bytes(0x10)));
    }
    return w;
}

/* Sums of pairs, in 16 bits. bits: of the largest quant; with 8, the quants stand for w - 128. */
INLINE __m256i multiply_pairs(int bits, __m256i w, __m256i x)
{
    if (bits < 8) return _mm256_maddubs_epi16(w, x);
    w = _mm256_xor_si256(w, bytes(0x80));
    return _mm256_maddubs_epi16(_mm256_abs_epi8(w), _mm256_sign_epi8(x, w));
}

INLINE __m256i broadcast_four(const int8_t *four)
{
    int32_t x;
    __builtin_memcpy(&x, four, sizeof x);
    return _mm256_set1_epi32(x);
}

/* Where a column's integer sums begin: at -offset * sum of the activations. Signed bytes need no offset. */
INLINE __m256i start(int bits, cpu_scales kind, int shift, const int32_t *nsum, uint32_t c, int part)
{
    if (kind == CPU_SCALES_DM || kind == CPU_SCALES_KM || kind == CPU_SCALES_KM16 || bits == 8)
        return _mm256_setzero_si256();
    int32_t sum = kind == CPU_SCALES_K16 ? nsum[part * c] : nsum[0] + nsum[c];
    return _mm256_set1_epi32(sum * (1 << shift));
}

/*
 * acc += d * (value of the block) for one column. dot0, dot1: sums of the halves (K16, KM16), or of the two byte
 * planes (F). nsum: the column's of the first half; of the second it lies c further.
 */
INLINE __m256 add_block(cpu_scales kind, __m256 acc, __m256i dot0, __m256i dot1, __m256 (*scales)[2], int h,
    float d, float sum, const int32_t *nsum, uint32_t c)
{
    __m256 value, first = scales[0][h], second = scales[1][h];
    if (has_halves(kind))
        value =
            _mm256_fmadd_ps(_mm256_cvtepi32_ps(dot1), second, _mm256_mul_ps(_mm256_cvtepi32_ps(dot0), first));
    else if (kind == CPU_SCALES_F)
        value = _mm256_mul_ps(_mm256_cvtepi32_ps(_mm256_add_epi32(_mm256_slli_epi32(dot0, 8), dot1)), first);
    else if (kind == CPU_SCALES_D || kind == CPU_SCALES_E || kind == CPU_SCALES_K32)
        value = _mm256_mul_ps(_mm256_cvtepi32_ps(dot0), first);
    else
        value = _mm256_fmadd_ps(_mm256_cvtepi32_ps(dot0), first, _mm256_mul_ps(second, _mm256_set1_ps(sum)));
    if (kind == CPU_SCALES_KM16) {
        value = _mm256_fmadd_ps(_mm256_set1_ps((float)nsum[0]), scales[2][h], value);
        value = _mm256_fmadd_ps(_mm256_set1_ps((float)nsum[c]), scales[3][h], value);
    }
    return _mm256_fmadd_ps(_mm256_set1_ps(d), value, acc);
}

/* The columns of one block: where they begin; a k-group has c of them. */
typedef struct place {
    const int8_t *q;
    const float *d, *sum;
    const int32_t *nsum;
} place;

INLINE place place_of(const cpu_columns *x, uint32_t first)
{
    return (place){x->q + 4 * first, x->d + first, x->sum + first, x->nsum + first};
}

INLINE void place_next(place *x, uint32_t c)
{
    x->q += CPU_BLOCK * c;
    x->d += c;
    x->sum += c;
    x->nsum += 2 * c;
}

/* acc[i] += one block times column i, for n columns. */
INLINE void multiply_block(int layout, int bits, cpu_scales kind, int shift, code_book codes, int n,
    uint32_t c, const uint8_t *block, __m256 (*scales)[2], place x, __m256 (*acc)[2])
{
    const int n_parts = has_halves(kind) || kind == CPU_SCALES_F ? 2 : 1;
    const int n_groups = has_halves(kind) ? 4 : 8;
    const int at_once = bits == 4 ? n_groups : bits == 5 ? 4 : bits == 6 ? 2 : 1;
    __m256i dot[2][COLUMNS][2];
    for (int part = 0; part < n_parts; part++) {
        const int plane = kind == CPU_SCALES_F ? part : 0, g0 = has_halves(kind) ? 4 * part : 0;
        for (int i = 0; i < n; i++)
            for (int h = 0; h < 2; h++) dot[part][i][h] = start(bits, kind, shift, x.nsum + i, c, part);
        UNROLL
        for (int g = g0; g < g0 + n_groups; g += at_once) {
            __m256i pairs[COLUMNS][2];
            for (int i = 0; i < n; i++) pairs[i][0] = pairs[i][1] = _mm256_setzero_si256();
            UNROLL
            for (int k = g; k < g + at_once; k++) {
                const __m256i w0 = load_quants(layout, codes, block, plane, k, 0),
                              w1 = load_quants(layout, codes, block, plane, k, 1);
                for (int i = 0; i < n; i++) {
                    __m256i four = broadcast_four(x.q + 4 * ((size_t)k * c + (size_t)i));
                    pairs[i][0] = _mm256_add_epi16(pairs[i][0], multiply_pairs(bits, w0, four));
                    pairs[i][1] = _mm256_add_epi16(pairs[i][1], multiply_pairs(bits, w1, four));
                }
            }
            for (int i = 0; i < n; i++)
                for (int h = 0; h < 2; h++)
                    dot[part][i][h] = _mm256_add_epi32(
                        dot[part][i][h], _mm256_madd_epi16(pairs[i][h], _mm256_set1_epi16(1)));
        }
    }
    for (int i = 0; i < n; i++)
        for (int h = 0; h < 2; h++)
            acc[i][h] = add_block(kind, acc[i][h], dot[0][i][h], dot[n_parts - 1][i][h], scales, h, x.d[i],
                x.sum[i], x.nsum + i, c);
}

INLINE void store_columns(int n, __m256 (*acc)[2], float *out)
{
    for (int i = 0; i < n; i++)
        for (int h = 0; h < 2; h++) _mm256_storeu_ps(out + CPU_LANES * i + 8 * h, acc[i][h]);
}

/* ---- straight from the packed bytes ---- */

/* Columns [at, at + n) of c. */
INLINE void tile_columns(int layout, cpu_scales kind, uint32_t blocks, uint32_t head_bytes, int shift,
    const int8_t *table, int n, uint32_t at, uint32_t c, const uint8_t *tile, uint32_t n_super,
    const cpu_columns *columns, float *out)
{
    const int bits = layout == 16 ? 8 : table ? shift + 1 : layout < 4 ? 4 : layout;
    const code_book codes = load_codes(table, shift);
    place x = place_of(columns, at);
    __m256 acc[COLUMNS][2];
    for (int i = 0; i < n; i++) acc[i][0] = acc[i][1] = _mm256_setzero_ps();
    for (uint32_t s = 0; s < n_super; s++) {
        const uint8_t *head = tile;
        for (uint32_t line = 0; line < head_bytes; line += 64)
            _mm_prefetch((const char *)head + AHEAD + line, _MM_HINT_T0);
        tile += head_bytes;
        for (uint32_t b = 0; b < blocks; b++, tile += 64 * layout, place_next(&x, c)) {
            __m256 scales[4][2];
            for (int line = 0; line < layout; line++)
                _mm_prefetch((const char *)tile + AHEAD + 64 * line, _MM_HINT_T0);
            for (int h = 0; h < 2; h++) load_scales(kind, head, b, blocks, h, scales);
            multiply_block(layout, bits, kind, shift, codes, n, c, tile, scales, x, acc);
        }
    }
    store_columns(n, acc, out + (size_t)CPU_LANES * at);
}

/* All c columns, four at a time. A single one's stride is a constant: a decode. */
INLINE void tile_all(int layout, cpu_scales kind, uint32_t blocks, uint32_t head_bytes, int shift,
    const int8_t *table, const uint8_t *tile, uint32_t n_super, const cpu_columns *x, uint32_t c, float *out)
{
    if (c == 1) {
        tile_columns(layout, kind, blocks, head_bytes, shift, table, 1, 0, 1, tile, n_super, x, out);
        return;
    }
    for (uint32_t at = 0; at < c; at += COLUMNS) switch (c - at) {
        case 1:
            tile_columns(layout, kind, blocks, head_bytes, shift, table, 1, at, c, tile, n_super, x, out);
            break;
        case 2:
            tile_columns(layout, kind, blocks, head_bytes, shift, table, 2, at, c, tile, n_super, x, out);
            break;
        case 3:
            tile_columns(layout, kind, blocks, head_bytes, shift, table, 3, at, c, tile, n_super, x, out);
            break;
        default:
            tile_columns(layout, kind, blocks, head_bytes, shift, table, 4, at, c, tile, n_super, x, out);
        }
}

/* ---- panels ---- */

INLINE void panel_columns(int bits, cpu_scales kind, int shift, int n, uint32_t at, uint32_t c,
    const uint8_t *panel, uint32_t n_blocks, const cpu_columns *columns, float *out)
{
    const int layout = kind == CPU_SCALES_F ? 16 : 8;
    place x = place_of(columns, at);
    __m256 acc[COLUMNS][2];
    for (int i = 0; i < n; i++) acc[i][0] = acc[i][1] = _mm256_setzero_ps();
    for (uint32_t b = 0; b < n_blocks; b++, panel += cpu_panel_block_bytes(kind), place_next(&x, c)) {
        const float *from = (const float *)(const void *)panel;
        __m256 scales[4][2] = {{_mm256_loadu_ps(from), _mm256_loadu_ps(from + 8)},
            {_mm256_loadu_ps(from + 16), _mm256_loadu_ps(from + 24)}};
        for (int i = 2; kind == CPU_SCALES_KM16 && i < 4; i++)
            for (int h = 0; h < 2; h++) scales[i][h] = _mm256_loadu_ps(from + 16 * i + 8 * h);
        multiply_block(layout, bits, kind, shift, load_codes(NULL, 0), n, c,
            panel + cpu_panel_scales_bytes(kind), scales, x, acc);
    }
    store_columns(n, acc, out + (size_t)CPU_LANES * at);
}

INLINE void expand_tile(int layout, cpu_scales kind, uint32_t blocks, uint32_t head_bytes, int shift,
    const int8_t *table, const uint8_t *tile, uint32_t n_super, uint8_t *panel)
{
    const code_book codes = load_codes(table, shift);
    const int n_planes = layout == 16 ? 2 : 1; /* quants of 8 bits or fewer become one byte */
    for (uint32_t s = 0; s < n_super; s++) {
        const uint8_t *head = tile;
        tile += head_bytes;
        for (uint32_t b = 0; b < blocks; b++, tile += 64 * layout) {
            float *to = (float *)(void *)panel;
            __m256 scales[4][2];
            for (int h = 0; h < 2; h++) {
                load_scales(kind, head, b, blocks, h, scales);
                for (size_t i = 0; i < cpu_panel_scales_bytes(kind) / 64; i++)
                    _mm256_storeu_ps(to + 16 * i + 8 * h, scales[i][h]);
            }
            panel += cpu_panel_scales_bytes(kind);
            for (int plane = 0; plane < n_planes; plane++, panel += 512)
                for (int g = 0; g < 8; g++)
                    for (int h = 0; h < 2; h++)
                        _mm256_storeu_si256(
                            (void *)(panel + 64 * g + 32 * h), load_quants(layout, codes, tile, plane, g, h));
        }
    }
}

INLINE void panel_all(int bits, cpu_scales kind, int shift, const uint8_t *panel, uint32_t n_blocks,
    const cpu_columns *x, uint32_t c, float *out)
{
    for (uint32_t at = 0; at < c; at += COLUMNS) switch (c - at) {
        case 1: panel_columns(bits, kind, shift, 1, at, c, panel, n_blocks, x, out); break;
        case 2: panel_columns(bits, kind, shift, 2, at, c, panel, n_blocks, x, out); break;
        case 3: panel_columns(bits, kind, shift, 3, at, c, panel, n_blocks, x, out); break;
        default: panel_columns(bits, kind, shift, 4, at, c, panel, n_blocks, x, out);
        }
}

/* ---- instances ---- */

#define CPU_FORMAT(name, layout, scales, blocks, head, shift, codes)                                         \
    static void expand_##name(const uint8_t *tile, uint32_t n_super, uint8_t *panel)                         \
    {                                                                                                        \
        expand_tile(layout, CPU_SCALES_##scales, blocks, head, shift, codes, tile, n_super, panel);          \
    }                                                                                                        \
    static void tile_##name(                                                                                 \
        const uint8_t *tile, uint32_t n_super, const cpu_columns *x, uint32_t c, float *out)                 \
    {                                                                                                        \
        tile_all(layout, CPU_SCALES_##scales, blocks, head, shift, codes, tile, n_super, x, c, out);         \
    }
#include "model/cpu/formats.def"
#undef CPU_FORMAT

/* The offset of a quant says how many bits it has (Q3_K counts as four); where there is none, five at most. */
#define PANEL(kind, other, ...)                                                                              \
    static void panel_##kind(                                                                                \
        const uint8_t *panel, uint32_t n_blocks, int shift, const cpu_columns *x, uint32_t c, float *out)    \
    {                                                                                                        \
        switch (shift) {                                                                                     \
            __VA_ARGS__                                                                                      \
        default: panel_all(other, CPU_SCALES_##kind, shift, panel, n_blocks, x, c, out);                     \
        }                                                                                                    \
    }
#define PANEL_CASE(kind, offset, bits)                                                                       \
    case offset: panel_all(bits, CPU_SCALES_##kind, offset, panel, n_blocks, x, c, out); break;
PANEL(D, 8, PANEL_CASE(D, 3, 4) PANEL_CASE(D, 4, 5) PANEL_CASE(D, 5, 6) PANEL_CASE(D, 6, 7))
PANEL(DM, 5)
PANEL(K16, 8, PANEL_CASE(K16, 2, 4) PANEL_CASE(K16, 4, 5) PANEL_CASE(K16, 5, 6) PANEL_CASE(K16, 6, 7))
PANEL(KM16, 4)
PANEL(F, 8)

void cpu_matmul_avx2(cpu_kernels *k)
{
#define CPU_FORMAT(name, layout, scales, blocks, head, shift, codes)                                         \
    k->tile[CPU_##name] = tile_##name;                                                                       \
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
