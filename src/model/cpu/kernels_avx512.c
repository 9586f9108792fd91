/*
 * The AVX-512 level: fills the table, and holds the kernels over rows of activations. Products are in
 * matmul_avx512.c, attention in attention_avx512.c, packing in pack_avx512.c.
 */
#include <math.h>
#include <string.h>

#include "model/cpu/cpu.h"
#include "model/cpu/vec_avx512.h"
#include "model/cpu/vec_transpose.h"

static void norm_row(const float *x, const float *weight, uint32_t n, float eps, float *out)
{
    __m512 squares = _mm512_setzero_ps();
    for (uint32_t i = 0; i < n; i += 16) {
        __m512 v = _mm512_loadu_ps(x + i);
        squares = _mm512_fmadd_ps(v, v, squares);
    }
    __m512 scale = _mm512_set1_ps(1.0f / sqrtf(vec_sum(squares) / (float)n + eps));
    for (uint32_t i = 0; i < n; i += 16)
        _mm512_storeu_ps(out + i,
            _mm512_mul_ps(_mm512_mul_ps(_mm512_loadu_ps(x + i), scale), _mm512_loadu_ps(weight + i)));
}

/* Four rows at once: their sums do not wait for one another. */
static void dot_rows(
    const float *rows, size_t stride, uint32_t n_rows, const float *x, uint32_t n, float *out)
{
    const float *r0 = rows, *r1 = n_rows > 1 ? r0 + stride : r0, *r2 = n_rows > 2 ? r1 + stride : r1,
                *r3 = n_rows > 3 ? r2 + stride : r2;
    __m512 a = _mm512_setzero_ps(), b = a, c = a, d = a;
    for (uint32_t i = 0; i < n; i += 16) {
        __m512 v = _mm512_loadu_ps(x + i);
        a = _mm512_fmadd_ps(_mm512_loadu_ps(r0 + i), v, a);
        b = _mm512_fmadd_ps(_mm512_loadu_ps(r1 + i), v, b);
        c = _mm512_fmadd_ps(_mm512_loadu_ps(r2 + i), v, c);
        d = _mm512_fmadd_ps(_mm512_loadu_ps(r3 + i), v, d);
    }
    const float sums[] = {vec_sum(a), vec_sum(b), vec_sum(c), vec_sum(d)};
    memcpy(out, sums, n_rows * sizeof *out);
}

static void gate_row(const float *gate, const float *up, ops_gate kind, uint32_t n, float *out)
{
    const __m512 minus = _mm512_castsi512_ps(_mm512_set1_epi32(INT32_MIN)), one = _mm512_set1_ps(1.0f),
                 clamp = _mm512_set1_ps(OPS_CLAMP), least = _mm512_set1_ps(-OPS_CLAMP);
    for (uint32_t i = 0; i < n; i += 16) {
        __m512 x = _mm512_loadu_ps(gate + i), u = x, y = _mm512_loadu_ps(up + i);
        if (kind == OPS_GATE_GELU_TANH) {
            __m512 cubic = _mm512_mul_ps(_mm512_mul_ps(_mm512_set1_ps(GELU_B), x), x);
            u = _mm512_mul_ps(_mm512_set1_ps(2 * GELU_A), _mm512_fmadd_ps(cubic, x, x));
        }
        if (kind == OPS_GATE_CLAMPED) {
            x = _mm512_min_ps(clamp, x);
            y = _mm512_add_ps(_mm512_max_ps(least, _mm512_min_ps(clamp, y)), one);
            u = _mm512_mul_ps(_mm512_set1_ps(OPS_CLAMP_STEEP), x);
        }
        __m512 e = vec_exp(_mm512_xor_ps(u, minus)), top = kind == OPS_GATE_SIGMOID ? one : x;
        _mm512_storeu_ps(out + i, _mm512_mul_ps(_mm512_div_ps(top, _mm512_add_ps(one, e)), y));
    }
}

static void quant_row(const float *x, uint32_t n, int8_t *q, float *d)
{
    const __m512 huge = _mm512_set1_ps(3.4028234e38f);
    for (uint32_t b = 0; b < n / CPU_BLOCK; b++, x += CPU_BLOCK, q += CPU_BLOCK) {
        __m512 v0 = _mm512_loadu_ps(x), v1 = _mm512_loadu_ps(x + 16), a0 = _mm512_abs_ps(v0),
               a1 = _mm512_abs_ps(v1);
        __mmask16 ok = _mm512_cmp_ps_mask(a0, huge, _CMP_LE_OQ) & _mm512_cmp_ps_mask(a1, huge, _CMP_LE_OQ);
        float largest = _mm512_reduce_max_ps(_mm512_max_ps(a0, a1));
        bool finite = ok == 0xFFFF, some = finite && largest >= 1e-30f;
        d[b] = !finite ? NAN : some ? largest / 127.0f : 0;
        __m512 inverse = _mm512_set1_ps(some ? 127.0f / largest : 0);
        __mmask16 mask = some ? 0xFFFF : 0;
        __m512i i0 = _mm512_maskz_cvtps_epi32(mask, _mm512_mul_ps(v0, inverse));
        __m512i i1 = _mm512_maskz_cvtps_epi32(mask, _mm512_mul_ps(v1, inverse));
        _mm_storeu_si128((__m128i *)(void *)q, _mm512_cvtsepi32_epi8(i0));
        _mm_storeu_si128((__m128i *)(void *)(q + 16), _mm512_cvtsepi32_epi8(i1));
    }
}

static void quant_fine_row(const float *x, uint32_t n, const int8_t *q, const float *d, int8_t *q2)
{
    for (uint32_t i = 0; i < n; i += 16) {
        float scale = d[i / CPU_BLOCK];
        __mmask16 mask = scale > 0 ? 0xFFFF : 0;
        __m512 inverse = _mm512_set1_ps(mask ? 1.0f / scale : 0);
        __m512 coarse =
            _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i *)(const void *)(q + i))));
        __m512 rest =
            _mm512_mul_ps(_mm512_fmsub_ps(_mm512_loadu_ps(x + i), inverse, coarse), _mm512_set1_ps(256));
        rest = _mm512_max_ps(_mm512_min_ps(rest, _mm512_set1_ps(127)), _mm512_set1_ps(-127));
        _mm_storeu_si128(
            (__m128i *)(void *)(q2 + i), _mm512_cvtsepi32_epi8(_mm512_maskz_cvtps_epi32(mask, rest)));
    }
}

/* One column: its bytes stay in order. */
static void put_single(const int8_t *q, const float *d, float unit, uint32_t n_blocks, cpu_columns out)
{
    const __m256i ones = _mm256_set1_epi8(1);
    memcpy(out.q, q, (size_t)n_blocks * CPU_BLOCK);
    for (uint32_t b = 0; b < n_blocks; b++) {
        __m256i fours = _mm256_dpbusd_epi32(_mm256_setzero_si256(), ones,
            _mm256_loadu_si256((const __m256i *)(const void *)(q + CPU_BLOCK * b)));
        __m256i pairs = _mm256_add_epi32(fours, _mm256_shuffle_epi32(fours, 0x4E));
        pairs = _mm256_add_epi32(pairs, _mm256_shuffle_epi32(pairs, 0xB1));
        int32_t first = _mm256_extract_epi32(pairs, 0), second = _mm256_extract_epi32(pairs, 4);
        out.d[b] = d[b] * unit;
        out.sum[b] = (float)(first + second);
        out.nsum[2 * b] = -first;
        out.nsum[2 * b + 1] = -second;
    }
}

static void interleave(const int8_t *const *q, const float *const *d, const float *unit, uint32_t c,
    uint32_t n_blocks, cpu_columns out)
{
    const __m256i ones = _mm256_set1_epi8(1), zero = _mm256_setzero_si256();
    const __mmask8 mask = (__mmask8)((1u << c) - 1);
    if (c == 1) {
        put_single(q[0], d[0], unit[0], n_blocks, out);
        return;
    }
    for (uint32_t b = 0; b < n_blocks; b++) {
        __m256i v[8], first = zero, second = zero;
        for (uint32_t i = 0; i < 8; i++)
            v[i] = i < c ? _mm256_loadu_si256((const __m256i *)(const void *)(q[i] + CPU_BLOCK * b)) : zero;
        vec_transpose_8(v);
        for (uint32_t g = 0; g < 8; g++) _mm256_mask_storeu_epi32(out.q + 4 * (8 * b + g) * c, mask, v[g]);
        for (int g = 0; g < 4; g++) {
            first = _mm256_dpbusd_epi32(first, ones, v[g]);
            second = _mm256_dpbusd_epi32(second, ones, v[4 + g]);
        }
        for (uint32_t i = 0; i < c; i++) out.d[b * c + i] = d[i][b] * unit[i];
        _mm256_mask_storeu_ps(out.sum + b * c, mask, _mm256_cvtepi32_ps(_mm256_add_epi32(first, second)));
        _mm256_mask_storeu_epi32(out.nsum + 2 * b * c, mask, _mm256_sub_epi32(zero, first));
        _mm256_mask_storeu_epi32(out.nsum + 2 * b * c + c, mask, _mm256_sub_epi32(zero, second));
    }
}

/*
 * Independent chains, as many as hide the latency. Each has its own name: a compiler keeps an array in memory
 * here. The empty asm reads and writes them all, so that no round is left out.
 */
#define PEAK(type, zero, step)                                                                               \
    type a = zero, b = zero, c = zero, d = zero, e = zero, f = zero, g = zero, h = zero;                     \
    while (n--) {                                                                                            \
        step(a) step(b) step(c) step(d) step(e) step(f) step(g) step(h) __asm__ volatile(                    \
            ""                                                                                               \
            : "+v"(a), "+v"(b), "+v"(c), "+v"(d), "+v"(e), "+v"(f), "+v"(g), "+v"(h));                       \
    }
#define PEAK_BYTES(v)  v = _mm512_dpbusd_epi32(v, w, x);
#define PEAK_FLOATS(v) v = _mm512_fmadd_ps(w, x, v);

static void peak_bytes(uint64_t n)
{
    __m512i w = _mm512_set1_epi8(1), x = _mm512_set1_epi8(2);
    PEAK(__m512i, _mm512_setzero_si512(), PEAK_BYTES)
}

static void peak_floats(uint64_t n)
{
    __m512 w = _mm512_set1_ps(0.5f), x = _mm512_set1_ps(0.25f);
    PEAK(__m512, _mm512_setzero_ps(), PEAK_FLOATS)
}

void cpu_kernels_avx512(cpu_kernels *k)
{
    k->isa = "avx512-vnni";
    k->peak[OPS_PEAK_BYTES] = peak_bytes;
    k->peak[OPS_PEAK_FLOATS] = peak_floats;
    k->peak_macs[OPS_PEAK_BYTES] = 64;
    k->peak_macs[OPS_PEAK_FLOATS] = 16;
    k->norm_row = norm_row;
    k->dot_rows = dot_rows;
    k->gate_row = gate_row;
    k->quant_row = quant_row;
    k->quant_fine_row = quant_fine_row;
    k->interleave = interleave;
    cpu_pack_avx512(k);
    cpu_matmul_avx512(k);
    cpu_attention_avx512(k);
    cpu_sketch_avx512(k);
    cpu_recurrent_avx512(k);
}
