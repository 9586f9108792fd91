/*
 * A block of 32 weights out of its planes (kernels.h): quants as signed words of 4, and the two numbers of
 * its scale. Both kinds of products read weights here.
 */
#ifndef KVIST_CUDA_WEIGHTS_CUH
#define KVIST_CUDA_WEIGHTS_CUH

#include "cuda/gpu.cuh"

/* The bytes of a block as they lie in memory. */
template <int bits> struct packed_quants {
    uint4 quants[bits == 16 ? 4 : bits == 8 ? 2 : 1];
    uint2 extra;
};

/* 8 words of 4 k, and 8 lower ones of 16-bit quants. */
template <int bits> struct quants {
    int word[bits == 16 ? 16 : 8];
};

static __host__ __device__ __forceinline__ constexpr int quant_pieces(int bits) /* of 16 bytes */
{
    return bits == 16 ? 4 : bits == 8 ? 2 : 1;
}

template <int bits>
static __device__ __forceinline__ packed_quants<bits> load_quants(const gpu_weight *w, size_t block)
{
    packed_quants<bits> p;
    const uint4 *from = (const uint4 *)(const void *)w->quants + block * quant_pieces(bits);
    GPU_UNROLL
    for (int i = 0; i < quant_pieces(bits); i++) p.quants[i] = from[i];
    if (bits == 5) p.extra.x = ((const uint32_t *)(const void *)w->extra)[block];
    if (bits == 6) p.extra = ((const uint2 *)(const void *)w->extra)[block];
    return p;
}

template <int bits> static __device__ __forceinline__ quants<bits> unpack_quants(const packed_quants<bits> *p)
{
    quants<bits> ret;
    if (bits >= 8) {
        GPU_UNROLL
        for (int i = 0; i < quant_pieces(bits); i++) {
            const uint4 v = p->quants[i];
            ret.word[4 * i] = (int)v.x;
            ret.word[4 * i + 1] = (int)v.y;
            ret.word[4 * i + 2] = (int)v.z;
            ret.word[4 * i + 3] = (int)v.w;
        }
        return ret;
    }
    const uint32_t nibbles[4] = {p->quants[0].x, p->quants[0].y, p->quants[0].z, p->quants[0].w};
    for (int g = 0; g < 4; g++) {
        ret.word[g] = (int)(nibbles[g] & 0x0F0F0F0Fu);
        ret.word[4 + g] = (int)(nibbles[g] >> 4 & 0x0F0F0F0Fu);
    }
    if (bits == 5)
        for (int g = 0; g < 8; g++) ret.word[g] |= (int)((p->extra.x >> g & 0x01010101u) << 4);
    if (bits == 6)
        for (int g = 0; g < 8; g++)
            ret.word[g] |= (int)(((g < 4 ? p->extra.x : p->extra.y) >> 2 * (g % 4) & 0x03030303u) << 4);
    return ret;
}

/* What the planes say about a block's scale, as bits: loading and computing may be far apart. */
typedef struct scale_bits {
    uint32_t fine, coarse;
} scale_bits;

static __device__ __forceinline__ uint32_t u16_at(const uint8_t *plane, size_t i)
{
    return ((const uint16_t *)(const void *)plane)[i];
}

static __device__ __forceinline__ uint32_t u32_at(const uint8_t *plane, size_t i)
{
    return ((const uint32_t *)(const void *)plane)[i];
}

static __device__ __forceinline__ scale_bits load_scale(const gpu_weight *w, size_t block)
{
    switch (w->scales) {
    case GPU_SCALES_D: return scale_bits{u16_at(w->fine, block), 0};
    case GPU_SCALES_DM:
    case GPU_SCALES_F: return scale_bits{u32_at(w->fine, block), 0};
    case GPU_SCALES_KM: return scale_bits{u16_at(w->fine, block), u32_at(w->coarse, block / 8)};
    default: return scale_bits{u16_at(w->fine, block), u16_at(w->coarse, block / 8)};
    }
}

static __device__ __forceinline__ float lower_half(uint32_t both)
{
    return gpu_f16_to_f32((uint16_t)both);
}

static __device__ __forceinline__ float upper_half(uint32_t both)
{
    return gpu_f16_to_f32((uint16_t)(both >> 16));
}

/* The block's two numbers of scale, as block_scales of kernels_ref.c makes them. */
static __device__ __forceinline__ void make_scale(int scales, scale_bits s, float *first, float *second)
{
    *second = 0;
    switch (scales) {
    case GPU_SCALES_D: *first = lower_half(s.fine); break;
    case GPU_SCALES_F: *first = __uint_as_float(s.fine); break;
    case GPU_SCALES_DM:
        *first = lower_half(s.fine);
        *second = upper_half(s.fine);
        break;
    case GPU_SCALES_KM:
        *first = lower_half(s.coarse) * (float)(s.fine & 0xFF);
        *second = -(upper_half(s.coarse) * (float)(s.fine >> 8));
        break;
    default:
        *first = lower_half(s.coarse) * (float)(int8_t)(uint8_t)s.fine;
        *second = lower_half(s.coarse) * (float)(int8_t)(uint8_t)(s.fine >> 8);
        break;
    }
}

#endif
