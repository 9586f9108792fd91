/*
 * The AVX2 level (with FMA and F16C, without VNNI): fills the table, and holds the kernels over rows of
 * activations. Products are in matmul_avx2.c, attention in attention_avx2.c. Layouts, order of sums and so
 * the bits are those of plain C.
 */
#include <math.h>
#include <string.h>

#include "model/cpu/cpu.h"
#include "model/cpu/vec_avx2.h"
#include "model/cpu/vec_transpose.h"

static void norm_row(const float *x, const float *weight, uint32_t n, float eps, float *out)
{
    __m256 low = _mm256_setzero_ps(), high = low;
    for (uint32_t i = 0; i < n; i += 16) {
        __m256 a = _mm256_loadu_ps(x + i), b = _mm256_loadu_ps(x + i + 8);
        low = _mm256_fmadd_ps(a, a, low);
        high = _mm256_fmadd_ps(b, b, high);
    }
    __m256 scale = _mm256_set1_ps(1.0f / sqrtf(vec_sum(low, high) / (float)n + eps));
    for (uint32_t i = 0; i < n; i += 8)
        _mm256_storeu_ps(out + i,
            _mm256_mul_ps(_mm256_mul_ps(_mm256_loadu_ps(x + i), scale), _mm256_loadu_ps(weight + i)));
}

/* Four rows at once: their sums do not wait for one another. */
static void dot_rows(
    const float *rows, size_t stride, uint32_t n_rows, const float *x, uint32_t n, float *out)
{
    const float *row[4] = {rows};
    __m256 low[4], high[4];
    for (uint32_t r = 0; r < 4; r++) {
        if (r) row[r] = r < n_rows ? row[r - 1] + stride : row[r - 1];
        low[r] = high[r] = _mm256_setzero_ps();
    }
    for (uint32_t i = 0; i < n; i += 16) {
        __m256 v = _mm256_loadu_ps(x + i), w = _mm256_loadu_ps(x + i + 8);
        for (int r = 0; r < 4; r++) {
            low[r] = _mm256_fmadd_ps(_mm256_loadu_ps(row[r] + i), v, low[r]);
            high[r] = _mm256_fmadd_ps(_mm256_loadu_ps(row[r] + i + 8), w, high[r]);
        }
    }
    for (uint32_t r = 0; r < n_rows; r++) out[r] = vec_sum(low[r], high[r]);
}

static void gate_row(const float *gate, const float *up, ops_gate kind, uint32_t n, float *out)
{
    const __m256 minus = _mm256_set1_ps(-0.0f), one = _mm256_set1_ps(1.0f), clamp = _mm256_set1_ps(OPS_CLAMP),
                 least = _mm256_set1_ps(-OPS_CLAMP);
    for (uint32_t i = 0; i < n; i += 8) {
        __m256 x = _mm256_loadu_ps(gate + i), u = x, y = _mm256_loadu_ps(up + i);
        if (kind == OPS_GATE_GELU_TANH) {
            __m256 cubic = _mm256_mul_ps(_mm256_mul_ps(_mm256_set1_ps(GELU_B), x), x);
            u = _mm256_mul_ps(_mm256_set1_ps(2 * GELU_A), _mm256_fmadd_ps(cubic, x, x));
        }
        if (kind == OPS_GATE_CLAMPED) {
            x = _mm256_min_ps(clamp, x);
            y = _mm256_add_ps(_mm256_max_ps(least, _mm256_min_ps(clamp, y)), one);
            u = _mm256_mul_ps(_mm256_set1_ps(OPS_CLAMP_STEEP), x);
        }
        __m256 e = vec_exp(_mm256_xor_ps(u, minus)), top = kind == OPS_GATE_SIGMOID ? one : x;
        _mm256_storeu_ps(out + i, _mm256_mul_ps(_mm256_div_ps(top, _mm256_add_ps(one, e)), y));
    }
}

/* Four vectors of numbers within a byte's range, as 32 bytes in order. */
INLINE __m256i bytes_of(__m256i a, __m256i b, __m256i c, __m256i d)
{
    __m256i mixed = _mm256_packs_epi16(_mm256_packs_epi32(a, b), _mm256_packs_epi32(c, d));
    return _mm256_permutevar8x32_epi32(mixed, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
}

static void quant_row(const float *x, uint32_t n, int8_t *q, float *d)
{
    const __m256 huge = _mm256_set1_ps(3.4028234e38f), sign = _mm256_set1_ps(-0.0f);
    for (uint32_t b = 0; b < n / CPU_BLOCK; b++, x += CPU_BLOCK, q += CPU_BLOCK) {
        __m256 v[4], most = _mm256_setzero_ps(), ok = _mm256_cmp_ps(most, most, _CMP_EQ_OQ);
        for (int i = 0; i < 4; i++) {
            v[i] = _mm256_loadu_ps(x + 8 * i);
            __m256 size = _mm256_andnot_ps(sign, v[i]);
            ok = _mm256_and_ps(ok, _mm256_cmp_ps(size, huge, _CMP_LE_OQ));
            most = _mm256_max_ps(most, size);
        }
        float largest = vec_max(most);
        bool finite = _mm256_movemask_ps(ok) == 0xFF, some = finite && largest >= 1e-30f;
        d[b] = !finite ? NAN : some ? largest / 127.0f : 0;
        if (!some) {
            memset(q, 0, CPU_BLOCK);
            continue;
        }
        const __m256 inverse = _mm256_set1_ps(127.0f / largest);
        __m256i w[4];
        for (int i = 0; i < 4; i++) w[i] = _mm256_cvtps_epi32(_mm256_mul_ps(v[i], inverse));
        _mm256_storeu_si256((void *)q, bytes_of(w[0], w[1], w[2], w[3]));
    }
}

static void quant_fine_row(const float *x, uint32_t n, const int8_t *q, const float *d, int8_t *q2)
{
    for (uint32_t b = 0; b < n / CPU_BLOCK; b++, x += CPU_BLOCK, q += CPU_BLOCK, q2 += CPU_BLOCK) {
        if (!(d[b] > 0)) {
            memset(q2, 0, CPU_BLOCK);
            continue;
        }
        const __m256 inverse = _mm256_set1_ps(1.0f / d[b]);
        __m256i w[4];
        for (int i = 0; i < 4; i++) {
            __m256 coarse =
                _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64((const void *)(q + 8 * i))));
            __m256 rest = _mm256_mul_ps(
                _mm256_fmsub_ps(_mm256_loadu_ps(x + 8 * i), inverse, coarse), _mm256_set1_ps(256));
            rest = _mm256_max_ps(_mm256_min_ps(rest, _mm256_set1_ps(127)), _mm256_set1_ps(-127));
            w[i] = _mm256_cvtps_epi32(rest);
        }
        _mm256_storeu_si256((void *)q2, bytes_of(w[0], w[1], w[2], w[3]));
    }
}

/* Of each four neighbouring numbers: a lane. */
INLINE __m256i sum_fours(__m256i q)
{
    return _mm256_madd_epi16(_mm256_maddubs_epi16(_mm256_set1_epi8(1), q), _mm256_set1_epi16(1));
}

/* One column: its bytes stay in order. */
static void put_single(const int8_t *q, const float *d, float unit, uint32_t n_blocks, cpu_columns out)
{
    memcpy(out.q, q, (size_t)n_blocks * CPU_BLOCK);
    for (uint32_t b = 0; b < n_blocks; b++) {
        __m256i fours = sum_fours(load_256(q + (size_t)CPU_BLOCK * b));
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
    const __m256i zero = _mm256_setzero_si256();
    const __m256i mask =
        _mm256_cmpgt_epi32(_mm256_set1_epi32((int)c), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
    if (c == 1) {
        put_single(q[0], d[0], unit[0], n_blocks, out);
        return;
    }
    for (size_t b = 0; b < n_blocks; b++) {
        __m256i v[8], first = zero, second = zero;
        for (uint32_t i = 0; i < 8; i++) v[i] = i < c ? load_256(q[i] + CPU_BLOCK * b) : zero;
        vec_transpose_8(v);
        for (uint32_t g = 0; g < 8; g++)
            _mm256_maskstore_epi32((void *)(out.q + 4 * (8 * b + g) * c), mask, v[g]);
        for (int g = 0; g < 4; g++) {
            first = _mm256_add_epi32(first, sum_fours(v[g]));
            second = _mm256_add_epi32(second, sum_fours(v[4 + g]));
        }
        for (uint32_t i = 0; i < c; i++) out.d[b * c + i] = d[i][b] * unit[i];
        _mm256_maskstore_ps(out.sum + b * c, mask, _mm256_cvtepi32_ps(_mm256_add_epi32(first, second)));
        _mm256_maskstore_epi32(out.nsum + 2 * b * c, mask, _mm256_sub_epi32(zero, first));
        _mm256_maskstore_epi32(out.nsum + 2 * b * c + c, mask, _mm256_sub_epi32(zero, second));
    }
}

void cpu_kernels_avx2(cpu_kernels *k)
{
    k->isa = "avx2";
    k->norm_row = norm_row;
    k->dot_rows = dot_rows;
    k->gate_row = gate_row;
    k->quant_row = quant_row;
    k->quant_fine_row = quant_fine_row;
    k->interleave = interleave;
    cpu_matmul_avx2(k);
    cpu_attention_avx2(k);
    cpu_sketch_avx2(k);
    cpu_recurrent_avx2(k);
}
