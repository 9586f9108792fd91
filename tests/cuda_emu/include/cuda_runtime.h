/*
 * CUDA's device language for a C++ compiler: a block's threads are fibers of one OS thread, run one after another between
 * barriers, in an order that changes from phase to phase (a missing barrier shows as another result). Dynamic shared memory is
 * allocated to the byte for each block and filled with NaNs. A barrier that not all threads of a block reach, or that they reach
 * at different lines, ends the program with a sentence; so does a warp's shuffle or vote without all of its lanes.
 *
 * Only what src/cuda/ uses is here. Blocks run one after another in no fixed order: what needs two at once hangs on no machine.
 */
#ifndef KVIST_TESTS_CUDA_RUNTIME_H
#define KVIST_TESTS_CUDA_RUNTIME_H

#include <functional>
#include <math.h>
#include <string.h>

#include "cuda_runtime_api.h"

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __restrict__ __restrict

struct dim3 {
    unsigned x, y, z;
    dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_)
    {
    }
};
struct uint2 {
    unsigned x, y;
};
struct alignas(16) uint4 {
    unsigned x, y, z, w;
};

struct emu_place {
    dim3 thread, block;
};
extern emu_place emu_here; /* of the fiber that runs */
extern dim3 emu_grid_dim, emu_block_dim;
#define threadIdx (emu_here.thread)
#define blockIdx  (emu_here.block)
#define gridDim   (emu_grid_dim)
#define blockDim  (emu_block_dim)

void emu_barrier(int line);
uint32_t emu_warp_exchange(int line, uint32_t value, unsigned from_lane); /* all lanes give; each reads one */
unsigned emu_warp_ballot(int line, bool vote);
/* All lanes give up to EMU_WORDS words and read all that were given, until they meet again: what acts on a warp's registers. */
enum { EMU_WORDS = 6 };
typedef uint32_t emu_words[EMU_WORDS];
const emu_words *emu_warp_share(int line, const uint32_t *words, int n);
void *emu_shared(void);
void emu_begin(void);                                     /* a thread that ends without it ends the program */
void emu_fetch_ahead(const void *from, uint32_t n_bytes); /* reads its first and last byte */
void emu_launch(
    dim3 grid, dim3 block, size_t shared_bytes, cudaStream_t stream, std::function<void()> kernel);
unsigned emu_lane(void);

#define __syncthreads() emu_barrier(__LINE__)
#define __syncwarp()    ((void)emu_warp_ballot(__LINE__, false))
#define __threadfence() ((void)0)

static inline float emu_float_of(uint32_t bits)
{
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

static inline uint32_t emu_bits_of(float f)
{
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    return bits;
}

static inline float emu_shuffle(int line, float v, unsigned from)
{
    return emu_float_of(emu_warp_exchange(line, emu_bits_of(v), from));
}

static inline int emu_shuffle(int line, int v, unsigned from)
{
    return (int)emu_warp_exchange(line, (uint32_t)v, from);
}

/* A lane beyond the warp's end gives the caller's own value, as on the device. */
#define __shfl_sync(mask, v, from)      emu_shuffle(__LINE__, v, (unsigned)(from) % 32)
#define __shfl_xor_sync(mask, v, other) emu_shuffle(__LINE__, v, emu_lane() ^ (unsigned)(other))
#define __shfl_down_sync(mask, v, by)                                                                        \
    emu_shuffle(__LINE__, v, emu_lane() + (unsigned)(by) < 32 ? emu_lane() + (unsigned)(by) : emu_lane())
#define __ballot_sync(mask, vote) emu_warp_ballot(__LINE__, vote)
#define __any_sync(mask, vote)    (emu_warp_ballot(__LINE__, vote) != 0)

static inline int __dp4a(int a, int b, int c)
{
    for (int i = 0; i < 4; i++)
        c += (int)(int8_t)(uint8_t)((uint32_t)a >> 8 * i) * (int)(int8_t)(uint8_t)((uint32_t)b >> 8 * i);
    return c;
}

/* The bytes of (y, x) that the lower three bits of each of four nibbles name. */
static inline uint32_t __byte_perm(uint32_t x, uint32_t y, uint32_t selector)
{
    const uint64_t both = (uint64_t)y << 32 | x;
    uint32_t ret = 0;
    for (int i = 0; i < 4; i++) ret |= (uint32_t)(both >> 8 * (selector >> 4 * i & 7) & 0xFF) << 8 * i;
    return ret;
}

static inline int __float2int_rn(float x)
{
    return (int)lrintf(x);
}

static inline uint32_t __float_as_uint(float f)
{
    return emu_bits_of(f);
}

static inline float __int_as_float(int bits)
{
    return emu_float_of((uint32_t)bits);
}

static inline float __uint_as_float(uint32_t bits)
{
    return emu_float_of(bits);
}

static inline float __ldcg(const float *p)
{
    return *p;
}

static inline uint4 __ldcv(const uint4 *p)
{
    return *p;
}

static inline unsigned atomicAdd(unsigned *p, unsigned n)
{
    const unsigned before = *p;
    *p += n;
    return before;
}

#define GPU_LAUNCH(kernel, grid, block, shared_bytes, stream, params)                                        \
    do {                                                                                                     \
        auto params_of_launch = params;                                                                      \
        emu_launch(grid, block, shared_bytes, stream, [=] { kernel(params_of_launch); });                    \
    } while (0)

template <typename F> static inline cudaError_t cudaFuncSetAttribute(F, cudaFuncAttribute, int)
{
    return cudaSuccess;
}

#endif
