/*
 * What the AVX2 kernels share: 16 lanes as two vectors of 8 (lanes 0..7, 8..15), e^x (the steps of exp.h),
 * and the sum by halves of cpu.h. Include only from files that are compiled for AVX2, FMA and F16C.
 */
#ifndef KVIST_MODEL_CPU_VEC_AVX2_H
#define KVIST_MODEL_CPU_VEC_AVX2_H

#include <immintrin.h>
#include <stdint.h>

#include "model/cpu/exp.h"

#define INLINE static inline __attribute__((always_inline))

INLINE __m256i load_256(const void *p)
{
    return _mm256_loadu_si256(p);
}

INLINE __m256 load_f16(const void *p)
{
    return _mm256_cvtph_ps(_mm_loadu_si128(p));
}

INLINE __m256 vec_exp(__m256 x)
{
    __m256 kept = _mm256_cmp_ps(x, _mm256_set1_ps(EXP_LOW), _CMP_NLT_UQ);
    x = _mm256_min_ps(_mm256_set1_ps(EXP_HIGH), x); /* in this order a NaN stays */
    __m256 shifted = _mm256_fmadd_ps(x, _mm256_set1_ps(EXP_LOG2E), _mm256_set1_ps(EXP_ROUND));
    __m256 n = _mm256_sub_ps(shifted, _mm256_set1_ps(EXP_ROUND));
    __m256 r = _mm256_fmadd_ps(n, _mm256_set1_ps(-EXP_LN2_HI), x);
    r = _mm256_fmadd_ps(n, _mm256_set1_ps(-EXP_LN2_LO), r);
    __m256 p = _mm256_set1_ps(EXP_C5);
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(EXP_C4));
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(EXP_C3));
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(EXP_C2));
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(EXP_C1));
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(EXP_C0));
    p = _mm256_add_ps(_mm256_fmadd_ps(p, _mm256_mul_ps(r, r), r), _mm256_set1_ps(1.0f));
    __m256i scale =
        _mm256_add_epi32(_mm256_slli_epi32(_mm256_castps_si256(shifted), 23), _mm256_set1_epi32(0x3F800000));
    return _mm256_and_ps(kept, _mm256_mul_ps(p, _mm256_castsi256_ps(scale)));
}

/* Of 16 lanes: (i, i + 8), (i, i + 4), (i, i + 2), (i, i + 1) */
INLINE float vec_sum(__m256 low, __m256 high)
{
    __m256 a = _mm256_add_ps(low, high);
    __m128 b = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    b = _mm_add_ps(b, _mm_movehl_ps(b, b));
    return _mm_cvtss_f32(_mm_add_ss(b, _mm_movehdup_ps(b)));
}

INLINE float vec_max(__m256 a)
{
    __m128 b = _mm_max_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    b = _mm_max_ps(b, _mm_movehl_ps(b, b));
    return _mm_cvtss_f32(_mm_max_ss(b, _mm_movehdup_ps(b)));
}

#endif
