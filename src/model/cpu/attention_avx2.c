/*
 * Attention's kernels with AVX2: as attention_avx512.c, with 16 partial sums in two vectors. Three queries'
 * scores with two rows, or 16 dimensions of six queries' outputs, lie in registers.
 */
#include <math.h>
#include <string.h>

#include "model/cpu/cpu.h"
#include "model/cpu/vec_avx2.h"

enum { SCORE_QUERIES = 3, VALUE_QUERIES = 6 };

/* 8 numbers as F16; beyond its range its end, and a NaN stays. */
INLINE void put_f16(__m256 v, uint16_t *out)
{
    v = _mm256_max_ps(_mm256_set1_ps(-65504.0f), _mm256_min_ps(_mm256_set1_ps(65504.0f), v));
    _mm_storeu_si128((void *)out, _mm256_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}

static void f16_row(const float *x, uint32_t n, uint16_t *out)
{
    for (uint32_t i = 0; i < n; i += 8) {
        put_f16(_mm256_loadu_ps(x + i), out + i);
    }
}

/* Neighbours are a pair: four of them in a vector. */
static void turn_neighbours(
    const uint16_t *key, const float *table, uint32_t n_rot, uint32_t head_dim, uint16_t *out)
{
    const __m256i twice = _mm256_setr_epi32(0, 0, 1, 1, 2, 2, 3, 3);
    for (uint32_t i = 0; i < n_rot; i += 8) {
        const float *cosines = table + i / 2, *sines = cosines + n_rot / 2;
        const __m256 own = load_f16(key + i), other = _mm256_permute_ps(own, 0xB1),
                     c = _mm256_permutevar8x32_ps(_mm256_castps128_ps256(_mm_loadu_ps(cosines)), twice),
                     s = _mm256_permutevar8x32_ps(_mm256_castps128_ps256(_mm_loadu_ps(sines)), twice);
        put_f16(_mm256_addsub_ps(_mm256_mul_ps(own, c), _mm256_mul_ps(other, s)), out + i);
    }
    for (uint32_t i = n_rot; i < head_dim; i++) out[i] = key[i];
}

static void turn_key(const uint16_t *key, const float *table, uint32_t n_rot, ops_rope_pairing pairing,
    uint32_t head_dim, uint16_t *out)
{
    const uint32_t half = n_rot / 2;
    if (pairing == OPS_ROPE_NORM && n_rot % 8 == 0) {
        turn_neighbours(key, table, n_rot, head_dim, out);
        return;
    }
    if (pairing != OPS_ROPE_NEOX || half % 8) {
        cpu_turn_key_ref(key, table, n_rot, pairing, head_dim, out);
        return;
    }
    for (uint32_t i = 0; i < half; i += 8) {
        const __m256 cosines = _mm256_loadu_ps(table + i), sines = _mm256_loadu_ps(table + half + i),
                     a = load_f16(key + i), b = load_f16(key + half + i);
        put_f16(_mm256_sub_ps(_mm256_mul_ps(a, cosines), _mm256_mul_ps(b, sines)), out + i);
        put_f16(_mm256_add_ps(_mm256_mul_ps(b, cosines), _mm256_mul_ps(a, sines)), out + half + i);
    }
    for (uint32_t i = n_rot; i < head_dim; i++) out[i] = key[i];
}

/* The angles stay in registers while all queries are turned. */
static void turn_queries(const float *restrict q, uint32_t n_q, const float *table, uint32_t n_rot,
    ops_rope_pairing pairing, uint32_t head_dim, float *restrict out)
{
    const uint32_t half = n_rot / 2;
    if (pairing != OPS_ROPE_NEOX || half % 8) {
        cpu_turn_queries_ref(q, n_q, table, n_rot, pairing, head_dim, out);
        return;
    }
    for (uint32_t i = 0; i < half; i += 8) {
        const __m256 cosines = _mm256_loadu_ps(table + i), sines = _mm256_loadu_ps(table + half + i);
        for (uint32_t m = 0; m < n_q; m++) {
            const float *from = q + (size_t)m * head_dim + i;
            float *to = out + (size_t)m * head_dim + i;
            const __m256 a = _mm256_loadu_ps(from), b = _mm256_loadu_ps(from + half);
            _mm256_storeu_ps(to, _mm256_add_ps(_mm256_mul_ps(a, cosines), _mm256_mul_ps(b, sines)));
            _mm256_storeu_ps(to + half, _mm256_sub_ps(_mm256_mul_ps(b, cosines), _mm256_mul_ps(a, sines)));
        }
    }
    for (uint32_t m = 0; m < n_q && n_rot < head_dim; m++)
        memcpy(out + (size_t)m * head_dim + n_rot, q + (size_t)m * head_dim + n_rot,
            (head_dim - n_rot) * sizeof *out);
}

/* One query with one row: 16 partial sums, added by halves (cpu.h). */
INLINE __m128 halves_of(__m256 low, __m256 high)
{
    __m256 eight = _mm256_add_ps(low, high);
    return _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
}

/* n_q queries with two rows; room for two scores a query. */
INLINE void scores_rows(int n_q, const uint16_t *row0, const uint16_t *row1, const float *q, size_t q_stride,
    uint32_t head_dim, float scale, float *s, size_t s_stride)
{
    __m256 sums[SCORE_QUERIES][2][2];
    for (int m = 0; m < n_q; m++)
        for (int h = 0; h < 2; h++) sums[m][0][h] = sums[m][1][h] = _mm256_setzero_ps();
    for (uint32_t i = 0; i < head_dim; i += 16)
        for (int h = 0; h < 2; h++) {
            __m256 k0 = load_f16(row0 + i + 8 * h), k1 = load_f16(row1 + i + 8 * h);
            for (int m = 0; m < n_q; m++) {
                __m256 part = _mm256_loadu_ps(q + m * q_stride + i + 8 * h);
                sums[m][0][h] = _mm256_fmadd_ps(part, k0, sums[m][0][h]);
                sums[m][1][h] = _mm256_fmadd_ps(part, k1, sums[m][1][h]);
            }
        }
    for (int m = 0; m < n_q; m++) {
        __m128 a = halves_of(sums[m][0][0], sums[m][0][1]), b = halves_of(sums[m][1][0], sums[m][1][1]);
        __m128 two = _mm_add_ps(_mm_movelh_ps(a, b), _mm_movehl_ps(b, a)); /* i and i + 2 of a, then of b */
        two = _mm_add_ps(two, _mm_movehdup_ps(two));
        two = _mm_mul_ps(_mm_shuffle_ps(two, two, 0x08), _mm_set1_ps(scale));
        _mm_storel_pi((__m64 *)(void *)(s + m * s_stride), two);
    }
}

static void fetch_row(const uint16_t *row, uint32_t head_dim)
{
    for (uint32_t i = 0; i < head_dim; i += 32) _mm_prefetch((const char *)(row + i), _MM_HINT_T1);
}

static void scores(const uint16_t *const *rows, uint32_t n_rows, const float *q, uint32_t n_q,
    size_t q_stride, uint32_t head_dim, float scale, cpu_ahead ahead, float *s, size_t s_stride)
{
    for (uint32_t r = 0; r < n_rows; r += 2) {
        const uint16_t *row0 = rows[r], *row1 = rows[r + 1 < n_rows ? r + 1 : r];
        for (uint32_t i = r; i < r + 2 && i < ahead.n; i++) fetch_row(ahead.rows[i], head_dim);
        for (uint32_t m = 0; m < n_q; m += SCORE_QUERIES) {
            const float *query = q + m * q_stride;
            float *to = s + m * s_stride + r;
            if (n_q - m == 1)
                scores_rows(1, row0, row1, query, q_stride, head_dim, scale, to, s_stride);
            else if (n_q - m == 2)
                scores_rows(2, row0, row1, query, q_stride, head_dim, scale, to, s_stride);
            else
                scores_rows(SCORE_QUERIES, row0, row1, query, q_stride, head_dim, scale, to, s_stride);
        }
    }
}

/* All bits of the lanes of [at, at + 8) that lie in [lo, hi). */
INLINE __m256 lanes_in(uint32_t at, uint32_t lo, uint32_t hi)
{
    __m256i i = _mm256_add_epi32(_mm256_set1_epi32((int)at), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
    __m256i below = _mm256_cmpgt_epi32(_mm256_set1_epi32((int)lo), i);
    return _mm256_castsi256_ps(_mm256_andnot_si256(below, _mm256_cmpgt_epi32(_mm256_set1_epi32((int)hi), i)));
}

static void softmax(float *s, uint32_t lo, uint32_t hi, uint32_t n, float *ret_max, float *ret_sum)
{
    __m256 max = _mm256_set1_ps(-INFINITY), sums[2] = {_mm256_setzero_ps(), _mm256_setzero_ps()};
    for (uint32_t i = 0; i < n; i += 8) /* a NaN loses, as does a lane outside */
        max = _mm256_blendv_ps(max, _mm256_max_ps(_mm256_loadu_ps(s + i), max), lanes_in(i, lo, hi));
    float largest = vec_max(max);
    max = _mm256_set1_ps(largest);
    for (uint32_t i = 0; i < n; i += 8) {
        __m256 p = _mm256_and_ps(lanes_in(i, lo, hi), vec_exp(_mm256_sub_ps(_mm256_loadu_ps(s + i), max)));
        _mm256_storeu_ps(s + i, p);
        sums[i / 8 % 2] = _mm256_add_ps(sums[i / 8 % 2], p);
    }
    *ret_max = largest;
    *ret_sum = vec_sum(sums[0], sums[1]);
}

/* 8 * n_v dimensions of the outputs of n_q queries. */
INLINE void values_part(int n_q, int n_v, const uint16_t *const *rows, uint32_t n_rows, uint32_t at,
    const float *p, size_t p_stride, uint32_t head_dim, cpu_ahead ahead, float *out)
{
    __m256 o[VALUE_QUERIES][2];
    for (int m = 0; m < n_q; m++)
        for (int i = 0; i < n_v; i++) o[m][i] = _mm256_setzero_ps();
    for (uint32_t r = 0; r < n_rows; r++) {
        __m256 v[2];
        if (at % 32 == 0 && r < ahead.n) _mm_prefetch((const char *)(ahead.rows[r] + at), _MM_HINT_T1);
        for (int i = 0; i < n_v; i++) v[i] = load_f16(rows[r] + at + 8 * i);
        for (int m = 0; m < n_q; m++) {
            __m256 weight = _mm256_broadcast_ss(p + m * p_stride + r);
            for (int i = 0; i < n_v; i++) o[m][i] = _mm256_fmadd_ps(weight, v[i], o[m][i]);
        }
    }
    for (int m = 0; m < n_q; m++)
        for (int i = 0; i < n_v; i++) _mm256_storeu_ps(out + (size_t)m * head_dim + at + 8 * i, o[m][i]);
}

INLINE void values_queries(int n_q, const uint16_t *const *rows, uint32_t n_rows, const float *p,
    size_t p_stride, uint32_t head_dim, cpu_ahead ahead, float *out)
{
    for (uint32_t at = 0; at < head_dim; at += 16)
        values_part(n_q, 2, rows, n_rows, at, p, p_stride, head_dim, ahead, out);
}

#define VALUES_CASE(N)                                                                                       \
    case N: values_queries(N, rows, n_rows, p, p_stride, head_dim, ahead, out); break;

static void values(const uint16_t *const *rows, uint32_t n_rows, const float *p, size_t p_stride,
    uint32_t n_q, uint32_t head_dim, cpu_ahead ahead, float *out)
{
    for (; n_q >= VALUE_QUERIES; n_q -= VALUE_QUERIES) {
        values_queries(VALUE_QUERIES, rows, n_rows, p, p_stride, head_dim, ahead, out);
        ahead.n = 0;
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
    float factors[8];
    _mm256_storeu_ps(factors, vec_exp(_mm256_setr_ps(*m - max, m2 - max, 0, 0, 0, 0, 0, 0)));
    *m = max;
    *l = _mm_cvtss_f32(_mm_fmadd_ss(_mm_set_ss(*l), _mm_set_ss(factors[0]), _mm_set_ss(l2 * factors[1])));
    __m256 a = _mm256_set1_ps(factors[0]), b = _mm256_set1_ps(factors[1]);
    for (uint32_t i = 0; i < head_dim; i += 8)
        _mm256_storeu_ps(
            o + i, _mm256_fmadd_ps(_mm256_loadu_ps(o + i), a, _mm256_mul_ps(_mm256_loadu_ps(o2 + i), b)));
}

static void mass(const float *p, uint32_t n, float tile_max, float max, float sum, bool pool_max, float *acc)
{
    __m256 factor = _mm256_div_ps(vec_exp(_mm256_set1_ps(tile_max - max)), _mm256_set1_ps(sum));
    for (uint32_t i = 0; i < n; i += 8) {
        __m256 share = _mm256_mul_ps(_mm256_loadu_ps(p + i), factor), old = _mm256_loadu_ps(acc + i);
        _mm256_storeu_ps(acc + i, pool_max ? _mm256_max_ps(share, old) : _mm256_add_ps(old, share));
    }
}

static void masses(
    const float *p, size_t stride, uint32_t n_q, uint32_t n, const cpu_share *of, float *acc, float *largest)
{
    memset(acc, 0, n * sizeof *acc);
    for (uint32_t m = 0; m < n_q; m++)
        mass(p + m * stride, n, of[m].part_max, of[m].max, of[m].sum, false, acc);
    for (uint32_t i = 0; i < n; i += 16) {
        const __m256 eight = _mm256_max_ps(_mm256_loadu_ps(acc + i), _mm256_loadu_ps(acc + i + 8));
        __m128 four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
        four = _mm_max_ps(four, _mm_movehl_ps(four, four));
        largest[i / 16] = _mm_cvtss_f32(_mm_max_ss(four, _mm_movehdup_ps(four)));
    }
}

void cpu_attention_avx2(cpu_kernels *k)
{
    k->f16_row = f16_row;
    k->turn_key = turn_key;
    k->turn_queries = turn_queries;
    k->scores = scores;
    k->softmax = softmax;
    k->values = values;
    k->merge = merge;
    k->mass = mass;
    k->masses = masses;
}
