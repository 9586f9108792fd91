/*
 * What every kernel stands on: the launch, shared memory, and the arithmetic that has to be the CPU's step by
 * step.
 *
 * The CUDA backend gives the CPU's bits (model/cpu/kernels_ref.c). Integer sums are exact in any order; every
 * float step is taken in the order written there: fused where it says fmaf (nvcc runs with --fmad=false),
 * sixteen partial sums added by halves, no fast division or square root. What is machine code of its own
 * (dp4a, cp.async) has a plain meaning for the emulator here.
 */
#ifndef KVIST_CUDA_GPU_CUH
#define KVIST_CUDA_GPU_CUH

#include <cuda_runtime.h>
#include <stdint.h>

#include "cuda/kernels.h"

#ifdef __CUDACC__
#define GPU_UNROLL       _Pragma("unroll")
#define GPU_ROLLED       _Pragma("unroll 1")
#define GPU_UNROLL_8     _Pragma("unroll 8")
#define GPU_SHARED(name) extern __shared__ __align__(16) unsigned char name[]
#define GPU_LAUNCH(kernel, grid, block, shared_bytes, stream, params)                                        \
    gpu_launch(kernel, grid, block, shared_bytes, stream, params)
#else
#define GPU_UNROLL
#define GPU_ROLLED
#define GPU_UNROLL_8
#define GPU_SHARED(name) unsigned char *name = (unsigned char *)emu_shared()
#endif

enum { GPU_WARP = 32, GPU_SHARED_PLAIN = 48 << 10 /* more must be asked for */ };
#define GPU_ALL 0xFFFFFFFFu

/* More than 48 KiB of shared memory has to be asked for, once a launch: it is a lookup. */
template <typename K> static inline cudaError_t gpu_allow_shared(K kernel, size_t n_bytes)
{
    if (n_bytes <= GPU_SHARED_PLAIN) return cudaSuccess;
    return cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)n_bytes);
}

/* ---- launches that follow one another ---- */

#ifdef __CUDACC__
/*
 * Whether this file's kernels wait in gpu_begin: those that the driver makes out of older code for a new
 * device do not.
 */
static inline bool gpu_waits(const void *kernel)
{
    static int answer = -1;
    struct cudaFuncAttributes a;
    if (answer < 0) answer = cudaFuncGetAttributes(&a, kernel) == cudaSuccess && a.ptxVersion >= 90;
    return answer > 0;
}

/*
 * From Hopper on a launch may come to the multiprocessors while the one before it ends; what it must not do
 * before that one is through stands behind gpu_begin. The caller asks for errors (cudaGetLastError).
 */
template <typename P>
static inline void gpu_launch(
    void (*kernel)(P), dim3 grid, dim3 block, size_t shared_bytes, cudaStream_t stream, P params)
{
    cudaLaunchAttribute early = {};
    early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    early.val.programmaticStreamSerializationAllowed = 1;
    cudaLaunchConfig_t config = {};
    config.gridDim = grid;
    config.blockDim = block;
    config.dynamicSmemBytes = shared_bytes;
    config.stream = stream;
    config.attrs = &early;
    config.numAttrs = gpu_waits((const void *)kernel);
    (void)cudaLaunchKernelEx(&config, kernel, params);
}
#endif

/*
 * Every thread of every kernel, before it touches memory that a launch writes: all launches before this one
 * are through, and the next one may come. In front of it only weights are fetched, which nobody writes.
 */
static __device__ __forceinline__ void gpu_begin(void)
{
#ifndef __CUDACC__
    emu_begin();
#elif __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

/*
 * Memory that will be read soon comes into the second cache. One thread; nothing waits. Multiples of 16
 * bytes, aligned so.
 */
static __device__ __forceinline__ void gpu_fetch_ahead(const void *from_global, uint32_t n_bytes)
{
#ifndef __CUDACC__
    emu_fetch_ahead(from_global, n_bytes);
#elif __CUDA_ARCH__ >= 900
    asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(from_global), "r"(n_bytes) : "memory");
#else
    (void)from_global;
    (void)n_bytes;
#endif
}

/* ---- asynchronous copies into shared memory ---- */

/* 4, 8 or 16 bytes, aligned to their size. */
template <int n_bytes>
static __device__ __forceinline__ void gpu_copy(void *to_shared, const void *from_global)
{
#ifdef __CUDACC__
    const uint32_t to = (uint32_t)__cvta_generic_to_shared(to_shared);
    if (n_bytes == 16)
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from_global) : "memory");
    else
        asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(to), "l"(from_global), "n"(n_bytes)
                     : "memory");
#else
    memcpy(to_shared, from_global, n_bytes);
#endif
}

/* The copies so far are one group. */
static __device__ __forceinline__ void gpu_copy_commit(void)
{
#ifdef __CUDACC__
    asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

/* All but the newest n groups have arrived (this thread's; a barrier makes it everybody's). */
template <int n> static __device__ __forceinline__ void gpu_copy_wait(void)
{
#ifdef __CUDACC__
    asm volatile("cp.async.wait_group %0;" ::"n"(n) : "memory");
#endif
}

/* ---- numbers ---- */

static __device__ __forceinline__ uint32_t gpu_least(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

static __device__ __forceinline__ float gpu_f16_to_f32(uint16_t h)
{
#ifdef __CUDACC__
    float f;
    asm("cvt.f32.f16 %0, %1;" : "=f"(f) : "h"(h));
    return f;
#else
    const uint32_t sign = (uint32_t)(h & 0x8000u) << 16, exponent = (h >> 10) & 31u, mantissa = h & 0x3FFu;
    if (exponent == 31) return __uint_as_float(sign | 0x7F800000u | mantissa << 13);
    if (exponent == 0) return (sign ? -1.0f : 1.0f) * (float)mantissa * 0x1p-24f;
    return __uint_as_float(sign | (exponent + 112) << 23 | mantissa << 13);
#endif
}

/*
 * To the nearest, ties to even; beyond the range its largest finite number; NaN stays: quant_f32_to_f16 of
 * model/file/quant.c.
 */
static __device__ __forceinline__ uint16_t gpu_f32_to_f16(float f)
{
    const uint32_t bits = __float_as_uint(f), magnitude = bits & 0x7FFFFFFFu, sign = bits >> 16 & 0x8000u;
    if (magnitude > 0x7F800000u) return (uint16_t)(sign | 0x7E00u);
    if (magnitude >= 0x477FE000u) return (uint16_t)(sign | 0x7BFFu);
    if (magnitude < 0x38800000u)
        return (uint16_t)(sign | (__float_as_uint(__uint_as_float(magnitude) + 0.5f) - 0x3F000000u));
    const uint32_t rounded = magnitude + 0xFFFu + (magnitude >> 13 & 1u);
    if (rounded >= 0x47800000u) return (uint16_t)(sign | 0x7BFFu);
    return (uint16_t)(sign | (rounded - 0x38000000u) >> 13);
}

/* exp_ref of kernels_ref.c; the constants are those of model/cpu/exp.h. */
static __device__ __forceinline__ float gpu_exp(float x)
{
    if (x < -87.0f) return 0;
    if (x > 88.0f) x = 88.0f;
    const float round = 12582912.0f, shifted = fmaf(x, 1.44269504088896341f, round), n = shifted - round;
    float r = fmaf(n, -0.693359375f, x);
    r = fmaf(n, 2.12194440e-4f, r);
    float p = 1.9875691500e-4f;
    p = fmaf(p, r, 1.3981999507e-3f);
    p = fmaf(p, r, 8.3334519073e-3f);
    p = fmaf(p, r, 4.1665795894e-2f);
    p = fmaf(p, r, 1.6666665459e-1f);
    p = fmaf(p, r, 5.0000001201e-1f);
    p = fmaf(p, r * r, r) + 1.0f;
    return p * __uint_as_float((__float_as_uint(shifted) << 23) + 0x3F800000u);
}

static __device__ __forceinline__ float gpu_minus_infinity(void)
{
    return __uint_as_float(0xFF800000u);
}

/*
 * Sixteen partial sums in lanes 0..15 of a warp; lane 0 gets their sum, added by halves. Lanes 16..31 bring
 * anything.
 */
static __device__ __forceinline__ float gpu_add_by_halves(float s)
{
    for (int half = 8; half > 0; half /= 2) s += __shfl_down_sync(GPU_ALL, s, half);
    return s;
}

static __device__ __forceinline__ float gpu_warp_max(float v)
{
    for (int other = 16; other > 0; other /= 2) {
        const float theirs = __shfl_xor_sync(GPU_ALL, v, other);
        v = theirs > v ? theirs : v;
    }
    return v;
}

/* One online softmax: (maximum, sum) of what was seen. merge_ref of kernels_ref.c, without its output. */
static __device__ __forceinline__ void gpu_merge_factors(float m, float m2, float *max, float *a, float *b)
{
    *max = m > m2 ? m : m2;
    *a = gpu_exp(m - *max);
    *b = gpu_exp(m2 - *max);
}

/* ---- rows ---- */

static __device__ __forceinline__ const uint16_t *gpu_row(const gpu_lists *l, uint32_t lane, uint32_t ordinal)
{
    const uint32_t slot = l->slots[lane * l->cap + ordinal];
    if (slot & GPU_STREAMED) return l->streamed + (size_t)(slot & ~GPU_STREAMED) * l->streamed_step;
    return l->pool + (lane * l->n_slots + slot) * 2 * l->head_dim;
}

#endif
