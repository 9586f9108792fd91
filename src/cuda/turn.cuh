/*
 * A head's pairs turned by their angles, and a head's keys or values to their row: what rope.cu's kernels do
 * for all heads, and matmul.cu for a head that it has just made.
 */
#ifndef KVIST_CUDA_TURN_CUH
#define KVIST_CUDA_TURN_CUH

#include "cuda/gpu.cuh"

/* (a, b) -> (a cos - b sin, a sin + b cos) of pair i < n_rot / 2. */
static __device__ __forceinline__ void turn_pair(const k_rope *a, uint32_t token, uint32_t head, uint32_t i)
{
    const uint32_t half = a->n_rot / 2;
    const float cosine = a->table[(size_t)token * a->n_rot + i],
                sine = a->table[(size_t)token * a->n_rot + half + i];
    float *p = a->x.data + token * a->x.stride + (size_t)head * a->head_dim + (a->is_neox ? i : 2 * i);
    float *other = p + (a->is_neox ? half : 1);
    const float x = __ldcg(p), y = __ldcg(other);
    *p = x * cosine - y * sine;
    *other = x * sine + y * cosine;
}

/* Element i of a head's key or value: to the pool, where attention reads it, and to what goes to the host. */
static __device__ __forceinline__ void write_element(
    const k_rows_write *a, const gpu_mat *from, bool is_value, uint32_t token, uint32_t head, uint32_t i)
{
    const size_t d = a->head_dim;
    const uint16_t half = gpu_f32_to_f16(__ldcg(from->data + token * from->stride + head * d + i));
    a->pool[(a->places[(size_t)head * a->n + token] * 2 + (is_value ? 1 : 0)) * d + i] = half;
    a->copy[(((size_t)head * 2 + (is_value ? 1 : 0)) * a->n + token) * d + i] = half;
}

#endif
