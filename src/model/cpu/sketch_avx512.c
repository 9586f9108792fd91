/*
 * Sketches' kernels with AVX-512 VNNI. A group's 16 rows lie in the lanes of a vector, four dimensions each,
 * so that a product's sums need no shuffling.
 */
#include <math.h>

#include "model/cpu/cpu.h"
#include "model/cpu/vec_avx512.h"

enum { QUERIES = 6 };

/* n_q queries side by side: what one waits for, another computes meanwhile. */
INLINE void queries_some(int n_q, const float *q, const float *middle, const float *step, uint32_t head_dim,
    float scale, cpu_sketch_query *ret)
{
    __m512 sums[QUERIES], most[QUERIES], inverse[QUERIES];
    __m512i sum[QUERIES];
    float largest[QUERIES];
    for (int m = 0; m < n_q; m++) sums[m] = most[m] = _mm512_setzero_ps();
    for (uint32_t i = 0; i < head_dim; i += 16) {
        const __m512 c = _mm512_loadu_ps(middle + i), w = _mm512_loadu_ps(step + i);
        for (int m = 0; m < n_q; m++) {
            const __m512 v = _mm512_loadu_ps(q + (size_t)m * head_dim + i);
            sums[m] = _mm512_fmadd_ps(v, c, sums[m]);
            most[m] = _mm512_max_ps(_mm512_abs_ps(_mm512_mul_ps(v, w)), most[m]);
        }
    }
    for (int m = 0; m < n_q; m++) {
        largest[m] = _mm512_reduce_max_ps(most[m]);
        inverse[m] = _mm512_set1_ps(largest[m] > 0 ? 127.0f / largest[m] : 0);
        sum[m] = _mm512_setzero_si512();
    }
    for (uint32_t i = 0; i < head_dim; i += 16) {
        const __m512 w = _mm512_loadu_ps(step + i);
        for (int m = 0; m < n_q; m++) {
            const __m512 x = _mm512_mul_ps(_mm512_loadu_ps(q + (size_t)m * head_dim + i), w);
            const __m512i code = _mm512_cvtps_epi32(_mm512_mul_ps(x, inverse[m]));
            sum[m] = _mm512_add_epi32(sum[m], code);
            _mm_storeu_si128((__m128i *)(void *)(ret[m].codes + i), _mm512_cvtepi32_epi8(code));
        }
    }
    for (int m = 0; m < n_q; m++) {
        const float part = largest[m] / 127.0f;
        ret[m].by = part * scale;
        ret[m].base = fmaf(part * (float)_mm512_reduce_add_epi32(sum[m]), -7.5f, vec_sum(sums[m])) * scale;
    }
}

static void sketch_queries(const float *q, uint32_t n_q, const float *middle, const float *step,
    uint32_t head_dim, float scale, cpu_sketch_query *ret)
{
    enum { SOME = 3 };
    for (; n_q >= SOME; n_q -= SOME, q += (size_t)SOME * head_dim, ret += SOME)
        queries_some(SOME, q, middle, step, head_dim, scale, ret);
    for (; n_q; n_q--, q += head_dim, ret++) queries_some(1, q, middle, step, head_dim, scale, ret);
}

enum {
    TURNED = 3,
    WIDTH = 128,
    PARTS = WIDTH / 16
}; /* queries whose numbers stay in registers; each has so many */

/* n_q queries of 128 numbers, turned as attention_avx512.c turns them and sketched as above. */
INLINE void turned_some(int n_q, const float *q, const float *table, const float *middle, const float *step,
    float scale, cpu_sketch_query *ret)
{
    __m512 v[TURNED][PARTS];
    for (int i = 0; i < PARTS / 2; i++) {
        const __m512 cosines = _mm512_loadu_ps(table + 16 * i),
                     sines = _mm512_loadu_ps(table + WIDTH / 2 + 16 * i);
        for (int m = 0; m < n_q; m++) {
            const float *from = q + m * WIDTH + 16 * i;
            const __m512 a = _mm512_loadu_ps(from), b = _mm512_loadu_ps(from + WIDTH / 2);
            v[m][i] = _mm512_add_ps(_mm512_mul_ps(a, cosines), _mm512_mul_ps(b, sines));
            v[m][PARTS / 2 + i] = _mm512_sub_ps(_mm512_mul_ps(b, cosines), _mm512_mul_ps(a, sines));
        }
    }
    __m512 sums[TURNED], most[TURNED];
    for (int m = 0; m < n_q; m++) sums[m] = most[m] = _mm512_setzero_ps();
    for (int i = 0; i < PARTS; i++) {
        const __m512 c = _mm512_loadu_ps(middle + 16 * i), w = _mm512_loadu_ps(step + 16 * i);
        for (int m = 0; m < n_q; m++) {
            sums[m] = _mm512_fmadd_ps(v[m][i], c, sums[m]);
            v[m][i] = _mm512_mul_ps(v[m][i], w);
            most[m] = _mm512_max_ps(_mm512_abs_ps(v[m][i]), most[m]);
        }
    }
    for (int m = 0; m < n_q; m++) {
        const float largest = _mm512_reduce_max_ps(most[m]), part = largest / 127.0f;
        const __m512 inverse = _mm512_set1_ps(largest > 0 ? 127.0f / largest : 0);
        __m512i sum = _mm512_setzero_si512();
        for (int i = 0; i < PARTS; i++) {
            const __m512i code = _mm512_cvtps_epi32(_mm512_mul_ps(v[m][i], inverse));
            sum = _mm512_add_epi32(sum, code);
            _mm_storeu_si128((__m128i *)(void *)(ret[m].codes + 16 * i), _mm512_cvtepi32_epi8(code));
        }
        ret[m].by = part * scale;
        ret[m].base = fmaf(part * (float)_mm512_reduce_add_epi32(sum), -7.5f, vec_sum(sums[m])) * scale;
    }
}

static bool sketch_turned(const float *q, uint32_t n_q, const float *table, uint32_t n_rot,
    ops_rope_pairing pairing, const float *middle, const float *step, uint32_t head_dim, float scale,
    cpu_sketch_query *ret)
{
    if (pairing != OPS_ROPE_NEOX || n_rot != WIDTH || head_dim != WIDTH) return false;
    for (; n_q >= TURNED; n_q -= TURNED, q += TURNED * WIDTH, ret += TURNED)
        turned_some(TURNED, q, table, middle, step, scale, ret);
    for (; n_q; n_q--, q += WIDTH, ret++) turned_some(1, q, table, middle, step, scale, ret);
    return true;
}

INLINE __m512i four_codes(const cpu_sketch_query *q, uint32_t i)
{
    int32_t four;
    __builtin_memcpy(&four, q->codes + i, sizeof four);
    return _mm512_set1_epi32(four);
}

INLINE void scores_some(int n_q, const uint8_t *codes, const uint8_t *ahead, uint32_t head_dim,
    __mmask16 rows, const cpu_sketch_query *q, float *s, size_t s_stride)
{
    const __m512i low = _mm512_set1_epi8(15);
    __m512i sums[QUERIES];
    for (int m = 0; m < n_q; m++) sums[m] = _mm512_setzero_si512();
    for (uint32_t i = 0; i < head_dim; i += 8, codes += MODEL_SKETCH_PIECE) {
        if (ahead) _mm_prefetch((const char *)(ahead + (size_t)i / 8 * MODEL_SKETCH_PIECE), _MM_HINT_T0);
        const __m512i both = _mm512_loadu_si512(codes);
        const __m512i first = _mm512_and_si512(both, low),
                      then = _mm512_and_si512(_mm512_srli_epi16(both, 4), low);
        for (int m = 0; m < n_q; m++) sums[m] = _mm512_dpbusd_epi32(sums[m], first, four_codes(q + m, i));
        for (int m = 0; m < n_q; m++) sums[m] = _mm512_dpbusd_epi32(sums[m], then, four_codes(q + m, i + 4));
    }
    for (int m = 0; m < n_q; m++) {
        const __m512 score =
            _mm512_fmadd_ps(_mm512_cvtepi32_ps(sums[m]), _mm512_set1_ps(q[m].by), _mm512_set1_ps(q[m].base));
        _mm512_storeu_ps(s + m * s_stride, _mm512_mask_blend_ps(rows, _mm512_set1_ps(-INFINITY), score));
    }
}

#define SCORES_CASE(N)                                                                                       \
    case N: scores_some(N, codes, ahead, head_dim, (__mmask16)rows, q, s, s_stride); return;

static void sketch_scores(const uint8_t *codes, const uint8_t *ahead, uint32_t head_dim, uint32_t rows,
    const cpu_sketch_query *q, uint32_t n_q, float *s, size_t s_stride)
{
    for (; n_q >= QUERIES; n_q -= QUERIES, q += QUERIES, s += QUERIES * s_stride, ahead = NULL)
        scores_some(QUERIES, codes, ahead, head_dim, (__mmask16)rows, q, s, s_stride);
    switch (n_q) {
        SCORES_CASE(1)
        SCORES_CASE(2)
        SCORES_CASE(3)
        SCORES_CASE(4)
        SCORES_CASE(5)
    }
}

void cpu_sketch_avx512(cpu_kernels *k)
{
    k->sketch_queries = sketch_queries;
    k->sketch_turned = sketch_turned;
    k->sketch_scores = sketch_scores;
}
