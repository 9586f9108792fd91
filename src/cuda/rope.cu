/*
 * RoPE in place, and the batch's keys and values to their rows.
 *
 *     rope        (a, b) -> (a cos - b sin, a sin + b cos)   a thread a pair
 *     rows_write  F32 -> F16 at their places                  a block of threads for a token and a lane
 *
 * The angles' cosines come from the host, as the C library gives them there. A written row goes to the pool, where attention
 * reads it, and into `copy`, one piece of memory that goes to the host at the batch's end. Bound by launches.
 */
#include "cuda/gpu.cuh"

static __global__ void rope_heads(const k_rope a)
{
    const uint32_t half = a.n_rot / 2, pair = blockIdx.x * blockDim.x + threadIdx.x, token = blockIdx.y;
    if (pair >= a.n_heads * half) return;
    const uint32_t head = pair / half, i = pair % half;
    const float cosine = a.table[(size_t)token * a.n_rot + i],
                sine = a.table[(size_t)token * a.n_rot + half + i];
    float *p = a.x.data + token * a.x.stride + (size_t)head * a.head_dim + (a.is_neox ? i : 2 * i);
    float *other = p + (a.is_neox ? half : 1);
    const float x = *p, y = *other;
    *p = x * cosine - y * sine;
    *other = x * sine + y * cosine;
}

static __global__ void write_rows(const k_rows_write a)
{
    const uint32_t token = blockIdx.x, head = blockIdx.y, d = a.head_dim;
    uint16_t *row = a.pool + a.places[(size_t)head * a.n + token] * 2 * d;
    uint16_t *copy = a.copy + ((size_t)head * 2 * a.n + token) * d;
    for (uint32_t i = threadIdx.x; i < d; i += blockDim.x) {
        const uint16_t key = gpu_f32_to_f16(a.k.data[token * a.k.stride + (size_t)head * d + i]);
        const uint16_t value = gpu_f32_to_f16(a.v.data[token * a.v.stride + (size_t)head * d + i]);
        row[i] = key;
        row[d + i] = value;
        copy[i] = key;
        copy[(size_t)a.n * d + i] = value;
    }
}

extern "C" cudaError_t cuda_launch_rope(cudaStream_t stream, const void *params)
{
    const k_rope *a = (const k_rope *)params;
    const uint32_t n_pairs = a->n_heads * (a->n_rot / 2);
    GPU_LAUNCH(rope_heads, dim3((n_pairs + 127) / 128, a->n), dim3(128), 0, stream, *a);
    return cudaGetLastError();
}

extern "C" cudaError_t cuda_launch_rows_write(cudaStream_t stream, const void *params)
{
    const k_rows_write *a = (const k_rows_write *)params;
    GPU_LAUNCH(write_rows, dim3(a->n, a->n_lanes), dim3(128), 0, stream, *a);
    return cudaGetLastError();
}
