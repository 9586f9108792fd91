/*
 * Sketches' kernels with AVX2: as sketch_avx512.c, with a group's rows in two vectors. Pairs of products are
 * at most 2 * 15 * 127, so the 16-bit sums in between are exact.
 */
#include <math.h>

#include "model/cpu/cpu.h"
#include "model/cpu/vec_avx2.h"

enum { QUERIES = 3, HALVES = 2 };

INLINE void sketch_query(const float *q, const float *middle, const float *step, uint32_t head_dim,
    float scale, cpu_sketch_query *ret)
{
    const __m256 sign = _mm256_set1_ps(-0.0f);
    __m256 parts[HALVES] = {_mm256_setzero_ps(), _mm256_setzero_ps()}, most = _mm256_setzero_ps();
    for (uint32_t i = 0; i < head_dim; i += 8) {
        const __m256 v = _mm256_loadu_ps(q + i);
        parts[i / 8 % 2] = _mm256_fmadd_ps(v, _mm256_loadu_ps(middle + i), parts[i / 8 % 2]);
        most = _mm256_max_ps(_mm256_andnot_ps(sign, _mm256_mul_ps(v, _mm256_loadu_ps(step + i))), most);
    }
    const float largest = vec_max(most);
    const __m256 inverse = _mm256_set1_ps(largest > 0 ? 127.0f / largest : 0);
    int sum = 0;
    for (uint32_t i = 0; i < head_dim; i += 8) {
        int32_t codes[8];
        const __m256 v = _mm256_mul_ps(_mm256_loadu_ps(q + i), _mm256_loadu_ps(step + i));
        _mm256_storeu_si256((__m256i *)(void *)codes, _mm256_cvtps_epi32(_mm256_mul_ps(v, inverse)));
        for (int k = 0; k < 8; k++) {
            ret->codes[i + (uint32_t)k] = (int8_t)codes[k];
            sum += codes[k];
        }
    }
    const float part = largest / 127.0f;
    ret->by = part * scale;
    ret->base = fmaf(part * (float)sum, -7.5f, vec_sum(parts[0], parts[1])) * scale;
}

static void sketch_queries(const float *q, uint32_t n_q, const float *middle, const float *step,
    uint32_t head_dim, float scale, cpu_sketch_query *ret)
{
    for (uint32_t m = 0; m < n_q; m++)
        sketch_query(q + (size_t)m * head_dim, middle, step, head_dim, scale, &ret[m]);
}

INLINE __m256i four_codes(const cpu_sketch_query *q, uint32_t i)
{
    int32_t four;
    __builtin_memcpy(&four, q->codes + i, sizeof four);
    return _mm256_set1_epi32(four);
}

INLINE __m256i add_products(__m256i sum, __m256i rows, __m256i query)
{
    return _mm256_add_epi32(sum, _mm256_madd_epi16(_mm256_maddubs_epi16(rows, query), _mm256_set1_epi16(1)));
}

/* Eight rows' scores, -infinity for those without a bit. */
INLINE __m256 scores_of(__m256i sum, const cpu_sketch_query *q, uint32_t rows)
{
    const __m256i bit = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
    const __m256i asked = _mm256_cmpeq_epi32(_mm256_and_si256(_mm256_set1_epi32((int)rows), bit), bit);
    const __m256 score =
        _mm256_fmadd_ps(_mm256_cvtepi32_ps(sum), _mm256_set1_ps(q->by), _mm256_set1_ps(q->base));
    return _mm256_blendv_ps(_mm256_set1_ps(-INFINITY), score, _mm256_castsi256_ps(asked));
}

INLINE void scores_some(int n_q, const uint8_t *codes, const uint8_t *ahead, uint32_t head_dim, uint32_t rows,
    const cpu_sketch_query *q, float *s, size_t s_stride)
{
    const __m256i low = _mm256_set1_epi8(15);
    __m256i sums[QUERIES][HALVES];
    for (int m = 0; m < n_q; m++) sums[m][0] = sums[m][1] = _mm256_setzero_si256();
    for (uint32_t i = 0; i < head_dim; i += 8, codes += MODEL_SKETCH_PIECE) {
        if (ahead) _mm_prefetch((const char *)(ahead + (size_t)i / 8 * MODEL_SKETCH_PIECE), _MM_HINT_T0);
        for (int h = 0; h < HALVES; h++) {
            const __m256i both = _mm256_loadu_si256((const __m256i *)(const void *)(codes + 32 * h));
            const __m256i first = _mm256_and_si256(both, low),
                          then = _mm256_and_si256(_mm256_srli_epi16(both, 4), low);
            for (int m = 0; m < n_q; m++) {
                sums[m][h] = add_products(sums[m][h], first, four_codes(q + m, i));
                sums[m][h] = add_products(sums[m][h], then, four_codes(q + m, i + 4));
            }
        }
    }
    for (int m = 0; m < n_q; m++)
        for (int h = 0; h < HALVES; h++)
            _mm256_storeu_ps(s + m * s_stride + 8 * h, scores_of(sums[m][h], q + m, rows >> 8 * h));
}

static void sketch_scores(const uint8_t *codes, const uint8_t *ahead, uint32_t head_dim, uint32_t rows,
    const cpu_sketch_query *q, uint32_t n_q, float *s, size_t s_stride)
{
    for (; n_q >= QUERIES; n_q -= QUERIES, q += QUERIES, s += QUERIES * s_stride, ahead = NULL)
        scores_some(QUERIES, codes, ahead, head_dim, rows, q, s, s_stride);
    if (n_q == 2) scores_some(2, codes, ahead, head_dim, rows, q, s, s_stride);
    if (n_q == 1) scores_some(1, codes, ahead, head_dim, rows, q, s, s_stride);
}

void cpu_sketch_avx2(cpu_kernels *k)
{
    k->sketch_queries = sketch_queries;
    k->sketch_scores = sketch_scores;
}
