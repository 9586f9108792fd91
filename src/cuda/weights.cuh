/*
 * A block of 32 weights out of its planes (kernels.h): quants as signed words of 4, looked up where they are
 * codes, and the numbers of its scale. All kinds of products read weights here.
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

/*
 * What the eight nibbles of a word stand for: the codes of its low ones and of its high ones. A permutation
 * looks up three bits of four nibbles in half of the table; the fourth says in which half.
 */
static __device__ __forceinline__ void look_up(
    const uint32_t codes[4], uint32_t nibbles, uint32_t *low, uint32_t *high)
{
    const uint32_t half = 0x32103210u | (nibbles & 0x88888888u) >> 1, places = nibbles & 0x77777777u;
    uint32_t found[2];
    GPU_UNROLL
    for (int i = 0; i < 2; i++)
        found[i] = __byte_perm(__byte_perm(codes[0], codes[1], places >> 16 * i),
            __byte_perm(codes[2], codes[3], places >> 16 * i), half >> 16 * i);
    *low = __byte_perm(found[0], found[1], 0x6420);
    *high = __byte_perm(found[0], found[1], 0x7531);
}

template <int bits>
static __device__ __forceinline__ quants<bits> unpack_quants(const gpu_weight *w, const packed_quants<bits> *p)
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
    if (bits == 4 && w->has_codes) {
        GPU_UNROLL
        for (int g = 0; g < 4; g++) {
            uint32_t low, high;
            look_up(w->codes, nibbles[g], &low, &high);
            ret.word[g] = (int)low;
            ret.word[4 + g] = (int)high;
        }
        return ret;
    }
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
    case GPU_SCALES_E: return scale_bits{w->fine[block], 0};
    case GPU_SCALES_DM:
    case GPU_SCALES_F: return scale_bits{u32_at(w->fine, block), 0};
    case GPU_SCALES_K32: return scale_bits{w->fine[block], u32_at(w->coarse, block / 8)};
    default: return scale_bits{u16_at(w->fine, block), u32_at(w->coarse, block / 8)};
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

/* MXFP4's: quant_scale_of_power of model/file/quant.h. */
static __device__ __forceinline__ float scale_of_power(uint32_t power)
{
    return __uint_as_float(power < 2 ? 0x00200000u << power : (power - 1) << 23);
}

static __device__ __forceinline__ float signed_byte(uint32_t bits)
{
    return (float)(int8_t)(uint8_t)bits;
}

/* A block's numbers of scale, as block_scales of kernels_ref.c makes them. least: KM16's minimum of each half. */
typedef struct block_scale {
    float first, second, least[2];
} block_scale;

static __device__ __forceinline__ block_scale make_scale(int scales, scale_bits s)
{
    block_scale ret = {0, 0, {0, 0}};
    switch (scales) {
    case GPU_SCALES_D: ret.first = lower_half(s.fine); break;
    case GPU_SCALES_E: ret.first = scale_of_power(s.fine); break;
    case GPU_SCALES_F: ret.first = __uint_as_float(s.fine); break;
    case GPU_SCALES_DM:
        ret.first = lower_half(s.fine);
        ret.second = upper_half(s.fine);
        break;
    case GPU_SCALES_KM:
        ret.first = lower_half(s.coarse) * (float)(s.fine & 0xFF);
        ret.second = -(upper_half(s.coarse) * (float)(s.fine >> 8));
        break;
    case GPU_SCALES_KM16:
        ret.first = lower_half(s.coarse) * (float)(s.fine & 15);
        ret.second = lower_half(s.coarse) * (float)(s.fine >> 8 & 15);
        ret.least[0] = upper_half(s.coarse) * (float)(s.fine >> 4 & 15);
        ret.least[1] = upper_half(s.coarse) * (float)(s.fine >> 12);
        break;
    case GPU_SCALES_K32: ret.first = __uint_as_float(s.coarse) * signed_byte(s.fine); break;
    default:
        ret.first = __uint_as_float(s.coarse) * signed_byte(s.fine);
        ret.second = __uint_as_float(s.coarse) * signed_byte(s.fine >> 8);
        break;
    }
    return ret;
}

#endif
