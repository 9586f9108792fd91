/*
 * Recurrent layers' kernels with AVX-512: a step's 32 columns are two vectors, and four partial sums of each
 * do not wait for one another.
 */
#include "model/cpu/cpu.h"
#include "model/cpu/vec_avx512.h"

enum { PARTS = 4, COLUMNS = OPS_DELTA_COLUMNS };

static void conv_row(
    const float *const *rows, const float *const *taps, uint32_t n_taps, uint32_t n, float *out)
{
    const __m512 minus = _mm512_castsi512_ps(_mm512_set1_epi32(INT32_MIN)), one = _mm512_set1_ps(1.0f);
    for (uint32_t i = 0; i < n; i += 16) {
        __m512 sum = _mm512_setzero_ps();
        for (uint32_t j = 0; j < n_taps; j++)
            sum = _mm512_fmadd_ps(_mm512_loadu_ps(taps[j] + i), _mm512_loadu_ps(rows[j] + i), sum);
        const __m512 e = vec_exp(_mm512_xor_ps(sum, minus));
        _mm512_storeu_ps(out + i, _mm512_div_ps(sum, _mm512_add_ps(one, e)));
    }
}

INLINE __m512 add_parts(const __m512 *p)
{
    return _mm512_add_ps(_mm512_add_ps(p[0], p[2]), _mm512_add_ps(p[1], p[3]));
}

static void delta_step(const cpu_delta *d, const float *from, float *to, float *out)
{
    const __m512 decay = _mm512_set1_ps(d->decay), beta = _mm512_set1_ps(d->beta);
    __m512 a[PARTS], b[PARTS];
    for (int p = 0; p < PARTS; p++) a[p] = b[p] = _mm512_setzero_ps();
    for (uint32_t i = 0; i < d->n_keys; i += PARTS)
        for (uint32_t p = 0; p < PARTS; p++) {
            const float *s = from + (i + p) * COLUMNS;
            const __m512 k = _mm512_set1_ps(d->k[i + p]);
            a[p] = _mm512_fmadd_ps(_mm512_loadu_ps(s), k, a[p]);
            b[p] = _mm512_fmadd_ps(_mm512_loadu_ps(s + 16), k, b[p]);
        }
    const __m512 by_a = _mm512_mul_ps(beta, _mm512_fnmadd_ps(decay, add_parts(a), _mm512_loadu_ps(d->v)));
    const __m512 by_b =
        _mm512_mul_ps(beta, _mm512_fnmadd_ps(decay, add_parts(b), _mm512_loadu_ps(d->v + 16)));
    for (int p = 0; p < PARTS; p++) a[p] = b[p] = _mm512_setzero_ps();
    for (uint32_t i = 0; i < d->n_keys; i += PARTS)
        for (uint32_t p = 0; p < PARTS; p++) {
            const float *s = from + (i + p) * COLUMNS;
            const __m512 k = _mm512_set1_ps(d->k[i + p]), q = _mm512_set1_ps(d->q[i + p]);
            const __m512 x = _mm512_fmadd_ps(k, by_a, _mm512_mul_ps(decay, _mm512_loadu_ps(s)));
            const __m512 y = _mm512_fmadd_ps(k, by_b, _mm512_mul_ps(decay, _mm512_loadu_ps(s + 16)));
            _mm512_storeu_ps(to + (i + p) * COLUMNS, x);
            _mm512_storeu_ps(to + (i + p) * COLUMNS + 16, y);
            a[p] = _mm512_fmadd_ps(x, q, a[p]);
            b[p] = _mm512_fmadd_ps(y, q, b[p]);
        }
    _mm512_storeu_ps(out, add_parts(a));
    _mm512_storeu_ps(out + 16, add_parts(b));
}

void cpu_recurrent_avx512(cpu_kernels *k)
{
    k->conv_row = conv_row;
    k->delta_step = delta_step;
}
