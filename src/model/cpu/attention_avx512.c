/*
 * Attention's kernels with AVX-512. Rows are read as they lie, 16 dimensions in a vector, and turned into F32
 * on the way; scores of six queries with four rows, or outputs of six queries, are in registers together, so
 * that the multipliers are what limits.
 */
#include <math.h>
#include <string.h>

#include "model/cpu/cpu.h"
#include "model/cpu/vec_avx512.h"

enum {
    SCORE_QUERIES = 6,
    SCORE_ROWS = 4,
    SCORE_BLOCK = 32, /* rows that all queries pass over before the next ones */
    VALUE_QUERIES = 6,
    VALUE_PARTS = 8 /* vectors of a row that are read at once at most */
};

INLINE __m512 f16_lanes(const uint16_t *p)
{
    return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(const void *)p));
}

/* 16 numbers as F16; beyond its range its end, and a NaN stays. */
INLINE void put_f16_lanes(__m512 v, uint16_t *out)
{
    v = _mm512_max_ps(_mm512_set1_ps(-65504.0f), _mm512_min_ps(_mm512_set1_ps(65504.0f), v));
    _mm256_storeu_si256(
        (__m256i *)(void *)out, _mm512_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}

static void f16_row(const float *x, uint32_t n, uint16_t *out)
{
    for (uint32_t i = 0; i < n; i += 16) {
        put_f16_lanes(_mm512_loadu_ps(x + i), out + i);
    }
}

/* Neighbours are a pair: eight of them in a vector. */
static void turn_neighbours(
    const uint16_t *key, const float *table, uint32_t n_rot, uint32_t head_dim, uint16_t *out)
{
    const __m512i twice = _mm512_setr_epi32(0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7);
    for (uint32_t i = 0; i < n_rot; i += 16) {
        const float *cosines = table + i / 2, *sines = cosines + n_rot / 2;
        const __m512 own = f16_lanes(key + i), other = _mm512_permute_ps(own, 0xB1),
                     c = _mm512_permutexvar_ps(twice, _mm512_castps256_ps512(_mm256_loadu_ps(cosines))),
                     s = _mm512_permutexvar_ps(twice, _mm512_castps256_ps512(_mm256_loadu_ps(sines))),
                     a = _mm512_mul_ps(own, c), b = _mm512_mul_ps(other, s);
        put_f16_lanes(_mm512_mask_sub_ps(_mm512_add_ps(a, b), 0x5555, a, b), out + i);
    }
    for (uint32_t i = n_rot; i < head_dim; i++) out[i] = key[i];
}

static void turn_key(const uint16_t *key, const float *table, uint32_t n_rot, ops_rope_pairing pairing,
    uint32_t head_dim, uint16_t *out)
{
    const uint32_t half = n_rot / 2;
    if (pairing == OPS_ROPE_NORM && n_rot % 16 == 0) {
        turn_neighbours(key, table, n_rot, head_dim, out);
        return;
    }
    if (pairing != OPS_ROPE_NEOX || half % 16) {
        cpu_turn_key_ref(key, table, n_rot, pairing, head_dim, out);
        return;
    }
    for (uint32_t i = 0; i < half; i += 16) {
        const __m512 cosines = _mm512_loadu_ps(table + i), sines = _mm512_loadu_ps(table + half + i),
                     a = f16_lanes(key + i), b = f16_lanes(key + half + i);
        put_f16_lanes(_mm512_sub_ps(_mm512_mul_ps(a, cosines), _mm512_mul_ps(b, sines)), out + i);
        put_f16_lanes(_mm512_add_ps(_mm512_mul_ps(b, cosines), _mm512_mul_ps(a, sines)), out + half + i);
    }
    for (uint32_t i = n_rot; i < head_dim; i++) out[i] = key[i];
}

/* The angles stay in registers while all queries are turned. */
static void turn_queries(const float *restrict q, uint32_t n_q, const float *table, uint32_t n_rot,
    ops_rope_pairing pairing, uint32_t head_dim, float *restrict out)
{
    const uint32_t half = n_rot / 2;
    if (pairing != OPS_ROPE_NEOX || half % 16) {
        cpu_turn_queries_ref(q, n_q, table, n_rot, pairing, head_dim, out);
        return;
    }
    for (uint32_t i = 0; i < half; i += 16) {
        const __m512 cosines = _mm512_loadu_ps(table + i), sines = _mm512_loadu_ps(table + half + i);
        for (uint32_t m = 0; m < n_q; m++) {
            const float *from = q + (size_t)m * head_dim + i;
            float *to = out + (size_t)m * head_dim + i;
            const __m512 a = _mm512_loadu_ps(from), b = _mm512_loadu_ps(from + half);
            _mm512_storeu_ps(to, _mm512_add_ps(_mm512_mul_ps(a, cosines), _mm512_mul_ps(b, sines)));
            _mm512_storeu_ps(to + half, _mm512_sub_ps(_mm512_mul_ps(b, cosines), _mm512_mul_ps(a, sines)));
        }
    }
    for (uint32_t m = 0; m < n_q && n_rot < head_dim; m++)
        memcpy(out + (size_t)m * head_dim + n_rot, q + (size_t)m * head_dim + n_rot,
            (head_dim - n_rot) * sizeof *out);
}

/* Halves of two vectors' lanes, added: lanes i and i + 8 of a, then of b. */
INLINE __m512 add_eighths(__m512 a, __m512 b)
{
    return _mm512_add_ps(_mm512_shuffle_f32x4(a, b, 0x44), _mm512_shuffle_f32x4(a, b, 0xEE));
}

/* Of groups of eight: i and i + 4. 128-bit lanes: a's first, a's second, b's first, b's second. */
INLINE __m512 add_fourths(__m512 a, __m512 b)
{
    return _mm512_add_ps(_mm512_shuffle_f32x4(a, b, 0x88), _mm512_shuffle_f32x4(a, b, 0xDD));
}

/* Within 128 bits: i and i + 2, then i and i + 1, of a, then of b. */
INLINE __m512 add_pairs(__m512 a, __m512 b)
{
    return _mm512_add_ps(_mm512_shuffle_ps(a, b, 0x44), _mm512_shuffle_ps(a, b, 0xEE));
}

INLINE __m512 add_neighbours(__m512 a, __m512 b)
{
    return _mm512_add_ps(_mm512_shuffle_ps(a, b, 0x88), _mm512_shuffle_ps(a, b, 0xDD));
}

/*
 * Sums by halves (cpu.h), v[query][row], of four rows. What is added in which order is the rule's; only where
 * the lanes lie between the steps is free. Of four queries: 128-bit lane q holds the scores of query q.
 */
INLINE __m512 sum_four_queries(__m512 (*v)[SCORE_ROWS])
{
    __m512 rows[SCORE_ROWS];
    for (int r = 0; r < SCORE_ROWS; r++) /* lane q: the four partial sums of query q */
        rows[r] = add_fourths(add_eighths(v[0][r], v[1][r]), add_eighths(v[2][r], v[3][r]));
    return add_neighbours(add_pairs(rows[0], rows[1]), add_pairs(rows[2], rows[3]));
}

/* Of two queries: 128-bit lane q of the result's lower half. */
INLINE __m256 sum_two_queries(__m512 (*v)[SCORE_ROWS])
{
    __m512 even = add_fourths(add_eighths(v[0][0], v[1][0]), add_eighths(v[0][2], v[1][2]));
    __m512 odd = add_fourths(add_eighths(v[0][1], v[1][1]), add_eighths(v[0][3], v[1][3]));
    __m512 both = add_pairs(even, odd);
    both = add_neighbours(
        both, both); /* lanes: query 0 rows 0 1, query 1 rows 0 1, query 0 rows 2 3, query 1 rows 2 3 */
    return _mm512_castps512_ps256(_mm512_castpd_ps(
        _mm512_permutexvar_pd(_mm512_setr_epi64(0, 4, 2, 6, 0, 0, 0, 0), _mm512_castps_pd(both))));
}

/* The four scores in 128-bit lane `lane`, which a compiler knows. */
INLINE void put_four(__m512 v, int lane, float *s)
{
    _mm_storeu_ps(s, lane == 0   ? _mm512_castps512_ps128(v)
                     : lane == 1 ? _mm512_extractf32x4_ps(v, 1)
                     : lane == 2 ? _mm512_extractf32x4_ps(v, 2)
                                 : _mm512_extractf32x4_ps(v, 3));
}

/* Queries [0, n_q) with four rows. */
INLINE void scores_rows(int n_q, const uint16_t *const *rows, const float *q, size_t q_stride,
    uint32_t head_dim, __m512 scale, const uint16_t *const *ahead, float *s, size_t s_stride)
{
    __m512 sums[SCORE_QUERIES][SCORE_ROWS];
    for (int m = 0; m < SCORE_QUERIES; m++)
        for (int r = 0; r < SCORE_ROWS; r++) sums[m][r] = _mm512_setzero_ps();
    for (uint32_t i = 0; i < head_dim; i += 16) {
        __m512 k[SCORE_ROWS];
        if (ahead && i % 32 == 0)
            for (int r = 0; r < SCORE_ROWS; r++) _mm_prefetch((const char *)(ahead[r] + i), _MM_HINT_T1);
        for (int r = 0; r < SCORE_ROWS; r++) k[r] = f16_lanes(rows[r] + i);
        for (int m = 0; m < n_q; m++) {
            __m512 part = _mm512_loadu_ps(q + m * q_stride + i);
            for (int r = 0; r < SCORE_ROWS; r++) sums[m][r] = _mm512_fmadd_ps(part, k[r], sums[m][r]);
        }
    }
    int done = 0;
    if (n_q >= 3) {
        __m512 four = _mm512_mul_ps(sum_four_queries(sums), scale);
        for (; done < n_q && done < 4; done++) put_four(four, done, s + done * s_stride);
    }
    if (done < n_q) {
        __m512 two = _mm512_mul_ps(_mm512_castps256_ps512(sum_two_queries(sums + done)), scale);
        put_four(two, 0, s + done * s_stride);
        if (done + 1 < n_q) put_four(two, 1, s + (done + 1) * s_stride);
    }
}

/* Four of the rows from r on; behind the end the last one again. */
INLINE const uint16_t *const *four_rows(
    const uint16_t *const *rows, uint32_t n_rows, uint32_t r, const uint16_t **room)
{
    if (r + SCORE_ROWS <= n_rows) return rows + r;
    for (uint32_t i = 0; i < SCORE_ROWS; i++) room[i] = rows[r + i < n_rows ? r + i : n_rows - 1];
    return room;
}

#define SCORES_CASE(N)                                                                                       \
    case N: scores_rows(N, rows, q, q_stride, head_dim, scale, ahead, s, s_stride); break;

/* The first six queries, or what there is of them. */
INLINE void scores_some(uint32_t n_q, const uint16_t *const *rows, const float *q, size_t q_stride,
    uint32_t head_dim, __m512 scale, const uint16_t *const *ahead, float *s, size_t s_stride)
{
    switch (n_q) {
        SCORES_CASE(1)
        SCORES_CASE(2)
        SCORES_CASE(3)
        SCORES_CASE(4)
        SCORES_CASE(5)
    default: scores_rows(SCORE_QUERIES, rows, q, q_stride, head_dim, scale, ahead, s, s_stride);
    }
}

static void scores(const uint16_t *const *rows, uint32_t n_rows, const float *q, uint32_t n_q,
    size_t q_stride, uint32_t head_dim, float scale, cpu_ahead ahead, float *s, size_t s_stride)
{
    const __m512 v_scale = _mm512_set1_ps(scale);
    for (uint32_t block = 0; block < n_rows; block += SCORE_BLOCK) {
        uint32_t end = n_rows - block < SCORE_BLOCK ? n_rows : block + SCORE_BLOCK;
        for (uint32_t m = 0; m < n_q; m += SCORE_QUERIES) {
            for (uint32_t r = block; r < end; r += SCORE_ROWS) {
                const uint16_t *room[SCORE_ROWS], *const *four = four_rows(rows, n_rows, r, room);
                const bool asks = m == 0 && r + SCORE_ROWS <= ahead.n;
                scores_some(n_q - m, four, q + m * q_stride, q_stride, head_dim, v_scale,
                    asks ? ahead.rows + r : NULL, s + m * s_stride + r, s_stride);
            }
        }
    }
}

/* The lanes of [at, at + 16) that lie in [lo, hi). */
INLINE __mmask16 lanes_in(uint32_t at, uint32_t lo, uint32_t hi)
{
    if (lo <= at && at + 16 <= hi) return 0xFFFF;
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
    const float *p, size_t p_stride, uint32_t head_dim, cpu_ahead ahead, float *out)
{
    __m512 o[VALUE_QUERIES][VALUE_PARTS];
    for (int m = 0; m < n_q; m++)
        for (int i = 0; i < n_v; i++) o[m][i] = _mm512_setzero_ps();
    for (uint32_t r = 0; r < n_rows; r++) {
        __m512 v[VALUE_PARTS];
        if (r < ahead.n)
            for (int i = 0; i < 16 * n_v; i += 32)
                _mm_prefetch((const char *)(ahead.rows[r] + at + i), _MM_HINT_T1);
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
    size_t p_stride, uint32_t head_dim, cpu_ahead ahead, float *out)
{
    uint32_t at = 0;
    for (; n_q <= 2 && at + 128 <= head_dim; at += 128) /* so that what no cache holds is read once */
        values_part(n_q, 8, rows, n_rows, at, p, p_stride, head_dim, ahead, out);
    for (; at + 64 <= head_dim; at += 64)
        values_part(n_q, 4, rows, n_rows, at, p, p_stride, head_dim, ahead, out);
    for (; at < head_dim; at += 16) values_part(n_q, 1, rows, n_rows, at, p, p_stride, head_dim, ahead, out);
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

static void masses(
    const float *p, size_t stride, uint32_t n_q, uint32_t n, const cpu_share *of, float *acc, float *largest)
{
    enum { MOST = 64 };
    float factors[MOST];
    for (uint32_t from = 0; from < n_q; from += MOST, p += MOST * stride, of += MOST) {
        const uint32_t n_some = n_q - from < MOST ? n_q - from : MOST;
        for (uint32_t m = 0; m < n_some; m++)
            factors[m] = _mm512_cvtss_f32(_mm512_div_ps(
                vec_exp(_mm512_set1_ps(of[m].part_max - of[m].max)), _mm512_set1_ps(of[m].sum)));
        for (uint32_t i = 0; i < n; i += 16) {
            __m512 sum = from ? _mm512_loadu_ps(acc + i) : _mm512_setzero_ps();
            for (uint32_t m = 0; m < n_some; m++)
                sum = _mm512_add_ps(
                    sum, _mm512_mul_ps(_mm512_loadu_ps(p + m * stride + i), _mm512_set1_ps(factors[m])));
            _mm512_storeu_ps(acc + i, sum);
            largest[i / 16] = _mm512_reduce_max_ps(sum);
        }
    }
}

static float weigh(const float *counts, uint32_t n, float *p)
{
    __m512 sums = _mm512_setzero_ps();
    float each[16], sum = 0;
    for (uint32_t i = 0; i < n; i += 16) {
        const __m512 one = _mm512_loadu_ps(p + i), all = _mm512_mul_ps(one, _mm512_loadu_ps(counts + i));
        _mm512_storeu_ps(p + i, all);
        sums = _mm512_add_ps(sums, _mm512_sub_ps(all, one));
    }
    _mm512_storeu_ps(each, sums);
    for (int r = 0; r < 16; r++) sum += each[r];
    return sum;
}

static uint32_t count_least(const uint32_t *some, uint32_t n, uint32_t least)
{
    const __m512i than = _mm512_set1_epi32((int)least), one = _mm512_set1_epi32(1);
    __m512i there = _mm512_setzero_si512();
    uint32_t i = 0, rest = 0;
    for (; i + 16 <= n; i += 16)
        there = _mm512_mask_add_epi32(
            there, _mm512_cmpge_epu32_mask(_mm512_loadu_si512(some + i), than), there, one);
    for (; i < n; i++) rest += some[i] >= least;
    return rest + (uint32_t)_mm512_reduce_add_epi32(there);
}

void cpu_attention_avx512(cpu_kernels *k)
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
    k->weigh = weigh;
    k->count_least = count_least;
}
