/*
 * Attention's kernels with AVX-512. Keys are transposed 16 rows at a time, so that a score is a plain sum over dimensions with
 * the rows in the lanes; values are read as they lie, with outputs of six queries in registers.
 */
#include <math.h>

#include "model/cpu/cpu.h"
#include "model/cpu/vec_avx512.h"

enum { SCORE_QUERIES = 8, VALUE_QUERIES = 6, VALUES_AHEAD = 16 };

INLINE __m512 f16_lanes(const uint16_t *p)
{
    return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(const void *)p));
}

static void f16_row(const float *x, uint32_t n, uint16_t *out)
{
    for (uint32_t i = 0; i < n; i += 16) {
        __m512 v = _mm512_loadu_ps(x + i);
        /* Operand order: a NaN stays. */
        v = _mm512_max_ps(_mm512_set1_ps(-65504.0f), _mm512_min_ps(_mm512_set1_ps(65504.0f), v));
        __m256i h = _mm512_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
        _mm256_storeu_si256((__m256i *)(void *)(out + i), h);
    }
}

/* Finite halves in the upper 16 bits of each lane to F32: exponent and mantissa move into place, 2^112 mends the bias. */
INLINE __m512 f32_of_upper_halves(__m512i x)
{
    __m512i bits = _mm512_and_si512(_mm512_srai_epi32(x, 3), _mm512_set1_epi32((int)0x8FFFE000u));
    return _mm512_mul_ps(_mm512_castsi512_ps(bits), _mm512_set1_ps(0x1p112f));
}

/* Dimensions [i, i + 32), or 16 of them, in pairs: a lane holds two neighbours of one row. */
INLINE void keys_part(const uint16_t *const *rows, uint32_t n_rows, uint32_t i, int n, float *out)
{
    __m512i v[16];
    for (uint32_t r = 0; r < 16; r++)
        v[r] = _mm512_maskz_loadu_epi32(
            r < n_rows ? (n == 32 ? 0xFFFF : 0x00FF) : 0, rows[r < n_rows ? r : 0] + i);
    vec_transpose_16(v);
    for (int k = 0; k < n / 2; k++) {
        _mm512_storeu_ps(out + 32 * k, f32_of_upper_halves(_mm512_slli_epi32(v[k], 16)));
        _mm512_storeu_ps(out + 32 * k + 16, f32_of_upper_halves(v[k]));
    }
}

static void keys(const uint16_t *const *rows, uint32_t n_rows, uint32_t head_dim, float *out)
{
    uint32_t i = 0;
    for (; i + 32 <= head_dim; i += 32) keys_part(rows, n_rows, i, 32, out + (size_t)i * CPU_LANES);
    if (i < head_dim) keys_part(rows, n_rows, i, 16, out + (size_t)i * CPU_LANES);
}

/* Asks for one cache line after another of 16 rows. */
typedef struct fetcher {
    const uint16_t *const *rows; /* NULL: none */
    uint32_t row, i;
} fetcher;

INLINE void fetch_next(fetcher *f, uint32_t head_dim)
{
    if (!f->rows || f->row == CPU_LANES) return;
    _mm_prefetch((const char *)(f->rows[f->row] + f->i), _MM_HINT_T0);
    f->i += 32;
    if (f->i < head_dim) return;
    f->i = 0;
    f->row++;
}

INLINE void scores_part(int n_q, const float *k, const float *q, size_t q_stride, uint32_t head_dim,
    float scale, fetcher *f, float *s, size_t s_stride)
{
    __m512 even[SCORE_QUERIES], odd[SCORE_QUERIES];
    for (int m = 0; m < n_q; m++) even[m] = odd[m] = _mm512_setzero_ps();
    for (uint32_t i = 0; i < head_dim; i += 2, k += 2 * CPU_LANES) {
        __m512 k0 = _mm512_loadu_ps(k), k1 = _mm512_loadu_ps(k + CPU_LANES);
        fetch_next(f, head_dim);
        for (int m = 0; m < n_q; m++) {
            even[m] = _mm512_fmadd_ps(_mm512_set1_ps(q[m * q_stride + i]), k0, even[m]);
            odd[m] = _mm512_fmadd_ps(_mm512_set1_ps(q[m * q_stride + i + 1]), k1, odd[m]);
        }
    }
    for (int m = 0; m < n_q; m++)
        _mm512_storeu_ps(
            s + m * s_stride, _mm512_mul_ps(_mm512_add_ps(even[m], odd[m]), _mm512_set1_ps(scale)));
}

#define SCORES_CASE(N)                                                                                       \
    case N: scores_part(N, k, q, q_stride, head_dim, scale, &f, s, s_stride); break;

static void scores(const float *k, const float *q, uint32_t n_q, size_t q_stride, uint32_t head_dim,
    float scale, const uint16_t *const *ahead, float *s, size_t s_stride)
{
    fetcher f = {.rows = ahead};
    for (; n_q >= SCORE_QUERIES;
         n_q -= SCORE_QUERIES, q += SCORE_QUERIES * q_stride, s += SCORE_QUERIES * s_stride)
        scores_part(SCORE_QUERIES, k, q, q_stride, head_dim, scale, &f, s, s_stride);
    switch (n_q) {
        SCORES_CASE(1)
        SCORES_CASE(2)
        SCORES_CASE(3)
        SCORES_CASE(4)
        SCORES_CASE(5)
        SCORES_CASE(6)
        SCORES_CASE(7)
    }
}

/* The lanes of [at, at + 16) that lie in [lo, hi). */
INLINE __mmask16 lanes_in(uint32_t at, uint32_t lo, uint32_t hi)
{
    uint32_t below = lo <= at ? 0 : lo - at >= 16 ? 0xFFFF : (1u << (lo - at)) - 1;
    uint32_t upto = hi <= at ? 0 : hi - at >= 16 ? 0xFFFF : (1u << (hi - at)) - 1;
    return (__mmask16)(upto & ~below);
}

static void softmax(float *s, uint32_t lo, uint32_t hi, uint32_t n, float *ret_max, float *ret_sum)
{
    __m512 max = _mm512_set1_ps(-INFINITY), sum = _mm512_setzero_ps();
    for (uint32_t i = 0; i < n; i += 16)
        max = _mm512_mask_max_ps(max, lanes_in(i, lo, hi), _mm512_loadu_ps(s + i), max);
    float largest = _mm512_reduce_max_ps(max);
    max = _mm512_set1_ps(largest);
    for (uint32_t i = 0; i < n; i += 16) {
        __m512 p = vec_exp(_mm512_sub_ps(_mm512_loadu_ps(s + i), max));
        p = _mm512_maskz_mov_ps(lanes_in(i, lo, hi), p);
        _mm512_storeu_ps(s + i, p);
        sum = _mm512_add_ps(sum, p);
    }
    *ret_max = largest;
    *ret_sum = vec_sum(sum);
}

/* 16 * n_v dimensions of the outputs of n_q queries. */
INLINE void values_part(int n_q, int n_v, const uint16_t *const *rows, uint32_t n_rows, uint32_t at,
    const float *p, size_t p_stride, uint32_t head_dim, float *out)
{
    __m512 o[VALUE_QUERIES][4];
    for (int m = 0; m < n_q; m++)
        for (int i = 0; i < n_v; i++) o[m][i] = _mm512_setzero_ps();
    for (uint32_t r = 0; r < n_rows; r++) {
        __m512 v[4];
        if (at == 0 && r + VALUES_AHEAD < n_rows)
            for (uint32_t i = 0; i < head_dim; i += 32)
                _mm_prefetch((const char *)(rows[r + VALUES_AHEAD] + i), _MM_HINT_T0);
        for (int i = 0; i < n_v; i++) v[i] = f16_lanes(rows[r] + at + 16 * i);
        for (int m = 0; m < n_q; m++) {
            __m512 weight = _mm512_set1_ps(p[m * p_stride + r]);
            for (int i = 0; i < n_v; i++) o[m][i] = _mm512_fmadd_ps(weight, v[i], o[m][i]);
        }
    }
    for (int m = 0; m < n_q; m++)
        for (int i = 0; i < n_v; i++) _mm512_storeu_ps(out + (size_t)m * head_dim + at + 16 * i, o[m][i]);
}

INLINE void values_queries(int n_q, const uint16_t *const *rows, uint32_t n_rows, const float *p,
    size_t p_stride, uint32_t head_dim, float *out)
{
    uint32_t at = 0;
    for (; at + 64 <= head_dim; at += 64) values_part(n_q, 4, rows, n_rows, at, p, p_stride, head_dim, out);
    for (; at < head_dim; at += 16) values_part(n_q, 1, rows, n_rows, at, p, p_stride, head_dim, out);
}

#define VALUES_CASE(N)                                                                                       \
    case N: values_queries(N, rows, n_rows, p, p_stride, head_dim, out); break;

static void values(const uint16_t *const *rows, uint32_t n_rows, const float *p, size_t p_stride,
    uint32_t n_q, uint32_t head_dim, float *out)
{
    for (; n_q >= VALUE_QUERIES; n_q -= VALUE_QUERIES) {
        values_queries(VALUE_QUERIES, rows, n_rows, p, p_stride, head_dim, out);
        p += VALUE_QUERIES * p_stride;
        out += (size_t)VALUE_QUERIES * head_dim;
    }
    switch (n_q) {
        VALUES_CASE(1)
        VALUES_CASE(2)
        VALUES_CASE(3)
        VALUES_CASE(4)
        VALUES_CASE(5)
    }
}

static void merge(float *m, float *l, float *o, float m2, float l2, const float *o2, uint32_t head_dim)
{
    float max = *m > m2 ? *m : m2;
    if (max == -INFINITY) return;
    __m512 ab = vec_exp(_mm512_setr_ps(*m - max, m2 - max, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0));
    float factors[16];
    _mm512_storeu_ps(factors, ab);
    *m = max;
    *l = _mm_cvtss_f32(_mm_fmadd_ss(_mm_set_ss(*l), _mm_set_ss(factors[0]), _mm_set_ss(l2 * factors[1])));
    __m512 a = _mm512_set1_ps(factors[0]), b = _mm512_set1_ps(factors[1]);
    for (uint32_t i = 0; i < head_dim; i += 16)
        _mm512_storeu_ps(
            o + i, _mm512_fmadd_ps(_mm512_loadu_ps(o + i), a, _mm512_mul_ps(_mm512_loadu_ps(o2 + i), b)));
}

static void mass(const float *p, uint32_t n, float tile_max, float max, float sum, bool pool_max, float *acc)
{
    __m512 factor = _mm512_div_ps(vec_exp(_mm512_set1_ps(tile_max - max)), _mm512_set1_ps(sum));
    for (uint32_t i = 0; i < n; i += 16) {
        __m512 share = _mm512_mul_ps(_mm512_loadu_ps(p + i), factor), old = _mm512_loadu_ps(acc + i);
        _mm512_storeu_ps(acc + i, pool_max ? _mm512_max_ps(share, old) : _mm512_add_ps(old, share));
    }
}

void cpu_attention_avx512(cpu_kernels *k)
{
    k->f16_row = f16_row;
    k->keys = keys;
    k->scores = scores;
    k->softmax = softmax;
    k->values = values;
    k->merge = merge;
    k->mass = mass;
}
