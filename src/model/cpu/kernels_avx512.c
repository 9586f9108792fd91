/*
 * The AVX-512 level: fills the table, and holds the kernels over rows of activations. Products are in matmul_avx512.c,
 * attention in attention_avx512.c.
 */
#include <math.h>

#include "model/cpu/cpu.h"
#include "model/cpu/vec_avx512.h"

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

static void gate_row(const float *gate, const float *up, ops_gate kind, uint32_t n, float *out)
{
    const __m512 minus = _mm512_castsi512_ps(_mm512_set1_epi32(INT32_MIN)), one = _mm512_set1_ps(1.0f);
    for (uint32_t i = 0; i < n; i += 16) {
        __m512 x = _mm512_loadu_ps(gate + i), u = x;
        if (kind == OPS_GATE_GELU_TANH) {
            __m512 cubic = _mm512_mul_ps(_mm512_mul_ps(_mm512_set1_ps(GELU_B), x), x);
            u = _mm512_mul_ps(_mm512_set1_ps(2 * GELU_A), _mm512_fmadd_ps(cubic, x, x));
        }
        __m512 e = vec_exp(_mm512_xor_ps(u, minus));
        _mm512_storeu_ps(
            out + i, _mm512_mul_ps(_mm512_div_ps(x, _mm512_add_ps(one, e)), _mm512_loadu_ps(up + i)));
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

void cpu_kernels_avx512(cpu_kernels *k)
{
    k->isa = "avx512-vnni";
    k->norm_row = norm_row;
    k->gate_row = gate_row;
    k->quant_row = quant_row;
    k->quant_fine_row = quant_fine_row;
    cpu_matmul_avx512(k);
    cpu_attention_avx512(k);
}
