/*
 * The tensor cores' instructions, each with its plain meaning for the emulator: products of small matrices of
 * bytes, whose sums are integers and so exact (matmul_tiles.cu), and of halves, whose sums are F32 in an
 * order of their own (attention_wide.cu).
 *
 * A warp holds a matrix together. Lane i has, with g = i / 4 and t = i % 4:
 *
 *     a   16 rows x 32 k   words of 4 k: row g and row g + 8 at k 4t, then both at k 16 + 4t
 *     b   32 k x 8 columns words of 4 k: column g at k 4t, at k 16 + 4t
 *     c   16 rows x 8      row g at columns 2t and 2t + 1, row g + 8 at both
 *
 * Halves are the same with 16 k and words of 2: row g and row g + 8 at k 2t, then both at k 8 + 2t; column g
 * at k 2t, at k 8 + 2t.
 */
#ifndef KVIST_CUDA_TENSOR_CUH
#define KVIST_CUDA_TENSOR_CUH

#include "cuda/gpu.cuh"

#ifndef __CUDACC__
/* The rows that a warp's lanes name, for each of them to read. */
static inline const emu_words *emu_share_row(int line, const void *row)
{
    const uintptr_t mine = (uintptr_t)row;
    const uint32_t given[2] = {(uint32_t)mine, (uint32_t)(mine >> 32)};
    return emu_warp_share(line, given, 2);
}

static inline const uint8_t *emu_row(const emu_words *all, unsigned lane)
{
    return (const uint8_t *)((uintptr_t)all[lane][1] << 32 | all[lane][0]);
}
#endif

/*
 * Four matrices of 8 rows of 16 bytes from shared memory: lane i names row i % 8 of matrix i / 8, and gets of
 * each the word t of row g. That is a's order when matrices 0 and 1 are rows 0..7 and 8..15 at k 0..15, and 2
 * and 3 the same at k 16..31.
 */
static __device__ __forceinline__ void gpu_load_matrices(uint32_t ret[4], const uint8_t *row)
{
#ifdef __CUDACC__
    const uint32_t from = (uint32_t)__cvta_generic_to_shared(row);
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(ret[0]), "=r"(ret[1]), "=r"(ret[2]), "=r"(ret[3])
                 : "r"(from)
                 : "memory");
#else
    const emu_words *all = emu_share_row(__LINE__, row);
    for (unsigned i = 0; i < 4; i++)
        memcpy(&ret[i], emu_row(all, 8 * i + emu_lane() / 4) + 4 * (emu_lane() % 4), 4);
#endif
}

/*
 * Four matrices of 8 x 8 halves, turned: lane i names row i % 8 of matrix i / 8, and gets of each rows 2t and
 * 2t + 1 at column g. That is b's order when matrices 0 and 1 are k 0..7 and 8..15 of 8 columns, and 2 and 3
 * of the next 8.
 */
static __device__ __forceinline__ void gpu_load_turned(uint32_t ret[4], const uint16_t *row)
{
#ifdef __CUDACC__
    const uint32_t from = (uint32_t)__cvta_generic_to_shared(row);
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(ret[0]), "=r"(ret[1]), "=r"(ret[2]), "=r"(ret[3])
                 : "r"(from)
                 : "memory");
#else
    const emu_words *all = emu_share_row(__LINE__, row);
    for (unsigned i = 0; i < 4; i++) {
        uint16_t both[2];
        for (unsigned k = 0; k < 2; k++)
            memcpy(&both[k], emu_row(all, 8 * i + 2 * (emu_lane() % 4) + k) + 2 * (emu_lane() / 4), 2);
        ret[i] = both[0] | (uint32_t)both[1] << 16;
    }
#endif
}

/* Two floats as halves, to the nearest, the first in the lower one. */
static __device__ __forceinline__ uint32_t gpu_pack_halves(float first, float second)
{
#ifdef __CUDACC__
    uint32_t ret;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(ret) : "f"(second), "f"(first));
    return ret;
#else
    return gpu_f32_to_f16(first) | (uint32_t)gpu_f32_to_f16(second) << 16;
#endif
}

/* sum += a * b over 16 k, of halves. */
static __device__ __forceinline__ void gpu_multiply_halves(
    float sum[4], const uint32_t a[4], const uint32_t b[2])
{
#ifdef __CUDACC__
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, "
        "%1, %2, %3};"
        : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#else
    const uint32_t given[6] = {a[0], a[1], a[2], a[3], b[0], b[1]};
    const emu_words *all = emu_warp_share(__LINE__, given, 6);
    for (int i = 0; i < 4; i++) {
        const unsigned row = emu_lane() / 4, column = 2 * (emu_lane() % 4) + (unsigned)i % 2;
        for (unsigned k = 0; k < 16; k++) {
            const uint32_t x = all[4 * row + k % 8 / 2][2 * (k / 8) + (unsigned)i / 2],
                           y = all[4 * column + k % 8 / 2][4 + k / 8];
            sum[i] +=
                gpu_f16_to_f32((uint16_t)(x >> k % 2 * 16)) * gpu_f16_to_f32((uint16_t)(y >> k % 2 * 16));
        }
    }
#endif
}

#ifndef __CUDACC__
/* ret = c + sum of the products of n_words words of k, those from `first` on of each matrix. */
static inline void emu_multiply(
    int line, int ret[4], const uint32_t *a, const uint32_t *b, const int *c, int n_halves)
{
    uint32_t given[6];
    for (int i = 0; i < 2 * n_halves; i++) given[i] = a[i];
    for (int i = 0; i < n_halves; i++) given[4 + i] = b[i];
    const emu_words *all = emu_warp_share(line, given, 6);
    for (int i = 0; i < 4; i++) {
        const unsigned row = emu_lane() / 4, column = 2 * (emu_lane() % 4) + (unsigned)i % 2;
        ret[i] = c[i];
        for (int half = 0; half < n_halves; half++)
            for (unsigned t = 0; t < 4; t++)
                ret[i] = __dp4a(
                    (int)all[4 * row + t][2 * half + i / 2], (int)all[4 * column + t][4 + half], ret[i]);
    }
}
#endif

/* ret = c + a * b over 32 k. */
static __device__ __forceinline__ void gpu_multiply_32(
    int ret[4], const uint32_t a[4], const uint32_t b[2], const int c[4])
{
#ifdef __CUDACC__
    asm("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%10, "
        "%11, %12, "
        "%13};"
        : "=r"(ret[0]), "=r"(ret[1]), "=r"(ret[2]), "=r"(ret[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "r"(c[0]), "r"(c[1]), "r"(c[2]),
        "r"(c[3]));
#else
    emu_multiply(__LINE__, ret, a, b, c, 2);
#endif
}

/* ret = c + a * b over 16 k: the first or last two words of a, one of b. */
static __device__ __forceinline__ void gpu_multiply_16(
    int ret[4], const uint32_t a[2], uint32_t b, const int c[4])
{
#ifdef __CUDACC__
    asm("mma.sync.aligned.m16n8k16.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%7, %8, %9, %10};"
        : "=r"(ret[0]), "=r"(ret[1]), "=r"(ret[2]), "=r"(ret[3])
        : "r"(a[0]), "r"(a[1]), "r"(b), "r"(c[0]), "r"(c[1]), "r"(c[2]), "r"(c[3]));
#else
    emu_multiply(__LINE__, ret, a, &b, c, 1);
#endif
}

#endif
