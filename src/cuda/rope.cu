/*
 * RoPE in place, and the batch's keys and values to their rows.
 *
 *     rope        (a, b) -> (a cos - b sin, a sin + b cos)   a thread a pair
 *     rows_write  F32 -> F16 at their places                  a block of threads for a token and a lane
 *
 * The angles' cosines come from the host, as the C library gives them there. A written row goes to the pool,
 * where attention reads it, and into `copy`, one piece of memory that goes to the host at the batch's end.
 * Bound by launches.
 */
#include "cuda/turn.cuh"

static __global__ void rope_heads(const k_rope a)
{
    gpu_begin();
    const uint32_t half = a.n_rot / 2, pair = blockIdx.x * blockDim.x + threadIdx.x;
    if (pair < a.n_heads * half) turn_pair(&a, blockIdx.y, pair / half, pair % half);
}

static __global__ void write_rows(const k_rows_write a)
{
    gpu_begin();
    for (uint32_t i = threadIdx.x; i < a.head_dim; i += blockDim.x) {
        write_element(&a, &a.k, false, blockIdx.x, blockIdx.y, i);
        write_element(&a, &a.v, true, blockIdx.x, blockIdx.y, i);
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
