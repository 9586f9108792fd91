/*
 * Recurrent layers' kernels with AVX2: as recurrent_avx512.c, with a step's columns in two halves, so that
 * the partial sums of one fit the registers.
 */
#include "model/cpu/cpu.h"
#include "model/cpu/vec_avx2.h"

enum { PARTS = 4, COLUMNS = OPS_DELTA_COLUMNS, HALF = COLUMNS / 2 };

static void conv_row(
    const float *const *rows, const float *const *taps, uint32_t n_taps, uint32_t n, float *out)
{
    const __m256 minus = _mm256_set1_ps(-0.0f), one = _mm256_set1_ps(1.0f);
    for (uint32_t i = 0; i < n; i += 8) {
        __m256 sum = _mm256_setzero_ps();
        for (uint32_t j = 0; j < n_taps; j++)
            sum = _mm256_fmadd_ps(_mm256_loadu_ps(taps[j] + i), _mm256_loadu_ps(rows[j] + i), sum);
        const __m256 e = vec_exp(_mm256_xor_ps(sum, minus));
        _mm256_storeu_ps(out + i, _mm256_div_ps(sum, _mm256_add_ps(one, e)));
    }
}

INLINE __m256 add_parts(const __m256 *p)
{
    return _mm256_add_ps(_mm256_add_ps(p[0], p[2]), _mm256_add_ps(p[1], p[3]));
}

static void delta_half(const cpu_delta *d, const float *v, const float *from, float *to, float *out)
{
    const __m256 decay = _mm256_set1_ps(d->decay), beta = _mm256_set1_ps(d->beta);
    __m256 a[PARTS], b[PARTS];
    for (int p = 0; p < PARTS; p++) a[p] = b[p] = _mm256_setzero_ps();
    for (uint32_t i = 0; i < d->n_keys; i += PARTS)
        for (uint32_t p = 0; p < PARTS; p++) {
            const float *s = from + (i + p) * COLUMNS;
            const __m256 k = _mm256_set1_ps(d->k[i + p]);
            a[p] = _mm256_fmadd_ps(_mm256_loadu_ps(s), k, a[p]);
            b[p] = _mm256_fmadd_ps(_mm256_loadu_ps(s + 8), k, b[p]);
        }
    const __m256 by_a = _mm256_mul_ps(beta, _mm256_fnmadd_ps(decay, add_parts(a), _mm256_loadu_ps(v)));
    const __m256 by_b = _mm256_mul_ps(beta, _mm256_fnmadd_ps(decay, add_parts(b), _mm256_loadu_ps(v + 8)));
    for (int p = 0; p < PARTS; p++) a[p] = b[p] = _mm256_setzero_ps();
    for (uint32_t i = 0; i < d->n_keys; i += PARTS)
        for (uint32_t p = 0; p < PARTS; p++) {
            const float *s = from + (i + p) * COLUMNS;
            const __m256 k = _mm256_set1_ps(d->k[i + p]), q = _mm256_set1_ps(d->q[i + p]);
            const __m256 x = _mm256_fmadd_ps(k, by_a, _mm256_mul_ps(decay, _mm256_loadu_ps(s)));
            const __m256 y = _mm256_fmadd_ps(k, by_b, _mm256_mul_ps(decay, _mm256_loadu_ps(s + 8)));
            _mm256_storeu_ps(to + (i + p) * COLUMNS, x);
            _mm256_storeu_ps(to + (i + p) * COLUMNS + 8, y);
            a[p] = _mm256_fmadd_ps(x, q, a[p]);
            b[p] = _mm256_fmadd_ps(y, q, b[p]);
        }
    _mm256_storeu_ps(out, add_parts(a));
    _mm256_storeu_ps(out + 8, add_parts(b));
}

static void delta_step(const cpu_delta *d, const float *from, float *to, float *out)
{
    delta_half(d, d->v, from, to, out);
    delta_half(d, d->v + HALF, from + HALF, to + HALF, out + HALF);
}

void cpu_recurrent_avx2(cpu_kernels *k)
{
    k->conv_row = conv_row;
    k->delta_step = delta_step;
}
