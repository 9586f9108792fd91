/* Eight vectors of eight 32-bit lanes, turned: for both levels, since AVX-512 transposes quantized bytes by 256 bits too. */
#ifndef KVIST_MODEL_CPU_VEC_TRANSPOSE_H
#define KVIST_MODEL_CPU_VEC_TRANSPOSE_H

#include <immintrin.h>

/* v[i] lane j <-> v[j] lane i, of 32-bit lanes. */
static inline __attribute__((always_inline)) void vec_transpose_8(__m256i *v)
{
    __m256i t[8];
    for (int i = 0; i < 8; i += 2) {
        t[i] = _mm256_unpacklo_epi32(v[i], v[i + 1]);
        t[i + 1] = _mm256_unpackhi_epi32(v[i], v[i + 1]);
    }
    for (int i = 0; i < 8; i += 4) {
        v[i] = _mm256_unpacklo_epi64(t[i], t[i + 2]);
        v[i + 1] = _mm256_unpackhi_epi64(t[i], t[i + 2]);
        v[i + 2] = _mm256_unpacklo_epi64(t[i + 1], t[i + 3]);
        v[i + 3] = _mm256_unpackhi_epi64(t[i + 1], t[i + 3]);
    }
    for (int i = 0; i < 4; i++) {
        t[i] = _mm256_permute2x128_si256(v[i], v[i + 4], 0x20);
        t[i + 4] = _mm256_permute2x128_si256(v[i], v[i + 4], 0x31);
    }
    for (int i = 0; i < 8; i++) v[i] = t[i];
}

#endif
