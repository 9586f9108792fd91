/*
 * Recurrent layers (ops.h, conv and delta): the convolution over the last tokens, and the state of the gated delta
 * net.
 *
 *     convolve   a block of threads a token and a head of channels: sum of taps, SiLU, for keys and queries a
 *                length; the results lie apart, since neighbouring tokens read the channels as they came
 *     factors    a thread a token and a head: decay and beta, in F64 as on the CPU
 *     delta      a block of threads 32 columns of a head's state, which stay in shared memory for the whole batch,
 *                token by token: a warp has every fourth key, a lane a column
 *
 * Tokens of a sequence depend on each other in `delta`; it is bound by the latency of two passes over 4 KiB of
 * shared memory and two barriers a token.
 */
#include "cuda/activations.cuh"

enum { CONV_THREADS = 128, FACTOR_THREADS = 128, DELTA_COLUMNS = GPU_DELTA_COLUMNS, KEY_GROUPS = 4 };

/* ---- convolution ---- */

/* The channel as it came at a token of the batch, or before it (-1: the newest there). */
static __device__ float raw_channel(const k_conv *a, int token, uint32_t channel)
{
    if (token >= 0) return a->x.data[(size_t)token * a->x.stride + channel];
    const int row = (int)a->n_taps - 1 + token;
    return a->before ? a->before[(size_t)row * a->n_channels + channel] : 0;
}

/* grid: tokens, heads. What the next batch looks back at, each row is written by the block that has it. */
static __global__ void convolve(const k_conv a)
{
    GPU_SHARED(shared);
    gpu_begin();
    const uint32_t d = a.head_dim, head = blockIdx.y, first = head * d, kept = a.n_taps - 1;
    const int token = (int)blockIdx.x, oldest = (int)a.n - (int)kept; /* oldest: of those that are kept */
    float *out = a.out.data + blockIdx.x * a.out.stride + first;
    for (uint32_t i = threadIdx.x; i < d; i += blockDim.x) {
        float sum = 0;
        for (uint32_t k = 0; k < a.n_taps; k++)
            sum = fmaf(a.taps[(size_t)k * a.n_channels + first + i],
                raw_channel(&a, token + (int)k - (int)kept, first + i), sum);
        out[i] = sum / (1.0f + gpu_exp(-sum));
        if (token >= oldest)
            a.after[(size_t)(token - oldest) * a.n_channels + first + i] = raw_channel(&a, token, first + i);
        for (int at = oldest; at < 0 && token == 0; at++)
            a.after[(size_t)(at - oldest) * a.n_channels + first + i] = raw_channel(&a, at, first + i);
    }
    if (head >= a.n_unit) return;
    /* x / sqrt(x . x + eps): an RMSNorm whose weight is 1 / sqrt(d), and whose eps is a d-th. */
    const float length = head < a.n_query ? 1.0f / (float)d : 1.0f / sqrtf((float)d);
    __threadfence(); /* inverse_size reads past the nearest cache */
    __syncthreads();
    const float scale = inverse_size(out, d, a.eps / (float)d, (float *)(void *)shared);
    for (uint32_t i = threadIdx.x; i < d; i += blockDim.x) out[i] = out[i] * scale * length;
}

/* ---- the state ---- */

static __global__ void make_factors(const k_delta a)
{
    gpu_begin();
    const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x, token = i / a.n_value_heads,
                   head = i % a.n_value_heads;
    if (token >= a.n) return;
    const double x = (double)a.alpha.data[token * a.alpha.stride + head] + a.dt[head],
                 softplus = x > 20 ? x : log1p(exp(x));
    a.factors[2 * (size_t)i] = (float)exp(a.a[head] * softplus);
    a.factors[2 * (size_t)i + 1] =
        (float)(1 / (1 + exp(-(double)a.beta.data[token * a.beta.stride + head])));
}

/* Shared memory, in floats. */
typedef struct delta_room {
    float *state;       /* [head_dim keys][DELTA_COLUMNS] */
    float *k, *q;       /* [2][head_dim] this token's and the next one's */
    float *kept, *read; /* [KEY_GROUPS][DELTA_COLUMNS] */
} delta_room;

static __host__ __device__ size_t delta_room_bytes(uint32_t d)
{
    return ((size_t)d * DELTA_COLUMNS + 4 * (size_t)d + 2 * KEY_GROUPS * DELTA_COLUMNS) * sizeof(float);
}

static __device__ delta_room delta_room_of(unsigned char *shared, uint32_t d)
{
    delta_room r;
    r.state = (float *)(void *)shared;
    r.k = r.state + d * DELTA_COLUMNS;
    r.q = r.k + 2 * d;
    r.kept = r.q + 2 * d;
    r.read = r.kept + KEY_GROUPS * DELTA_COLUMNS;
    return r;
}

/* Keys and queries of a token to their half of the room. */
static __device__ void fetch_keys(const k_delta *a, const delta_room *r, uint32_t token, uint32_t key_head)
{
    const uint32_t d = a->head_dim, side = token % 2 * d;
    for (uint32_t i = threadIdx.x; i < d && token < a->n; i += blockDim.x) {
        r->k[side + i] = a->k.data[token * a->k.stride + (size_t)key_head * d + i];
        r->q[side + i] = a->q.data[token * a->q.stride + (size_t)key_head * d + i];
    }
}

static __device__ float sum_of_groups(const float *sums, uint32_t column)
{
    return (sums[column] + sums[2 * DELTA_COLUMNS + column]) + (sums[DELTA_COLUMNS + column] + sums[3 * DELTA_COLUMNS + column]);
}

/* delta_step_ref of kernels_ref.c. grid: parts of DELTA_COLUMNS of a head, heads */
static __global__ void walk_columns(const k_delta a)
{
    GPU_SHARED(shared);
    gpu_begin();
    const uint32_t d = a.head_dim, head = blockIdx.y, column = threadIdx.x % DELTA_COLUMNS,
                   group = threadIdx.x / DELTA_COLUMNS;
    const uint32_t key_head =
        a.neighbours ? head / (a.n_value_heads / a.n_key_heads) : head % a.n_key_heads;
    const size_t at = ((size_t)head * (d / DELTA_COLUMNS) + blockIdx.x) * d * DELTA_COLUMNS,
                 value = (size_t)head * d + blockIdx.x * DELTA_COLUMNS + column;
    const delta_room r = delta_room_of(shared, d);
    for (uint32_t i = group; i < d; i += KEY_GROUPS)
        r.state[i * DELTA_COLUMNS + column] = a.before ? a.before[at + i * DELTA_COLUMNS + column] : 0;
    fetch_keys(&a, &r, 0, key_head);
    __syncthreads();
    for (uint32_t t = 0; t < a.n; t++) {
        const float *k = r.k + t % 2 * d, *q = r.q + t % 2 * d;
        const float decay = a.factors[2 * ((size_t)t * a.n_value_heads + head)],
                    beta = a.factors[2 * ((size_t)t * a.n_value_heads + head) + 1];
        float kept = 0, read = 0;
        for (uint32_t i = group; i < d; i += KEY_GROUPS)
            kept = fmaf(r.state[i * DELTA_COLUMNS + column], k[i], kept);
        r.kept[group * DELTA_COLUMNS + column] = kept;
        fetch_keys(&a, &r, t + 1, key_head);
        __syncthreads();
        const float by = beta * fmaf(-decay, sum_of_groups(r.kept, column), a.v.data[t * a.v.stride + value]);
        for (uint32_t i = group; i < d; i += KEY_GROUPS) {
            const float s = fmaf(k[i], by, decay * r.state[i * DELTA_COLUMNS + column]);
            r.state[i * DELTA_COLUMNS + column] = s;
            read = fmaf(s, q[i], read);
        }
        r.read[group * DELTA_COLUMNS + column] = read;
        __syncthreads();
        if (group == 0) a.out.data[t * a.out.stride + value] = sum_of_groups(r.read, column);
    }
    for (uint32_t i = group; i < d; i += KEY_GROUPS)
        a.after[at + i * DELTA_COLUMNS + column] = r.state[i * DELTA_COLUMNS + column];
}

extern "C" cudaError_t cuda_launch_conv(cudaStream_t stream, const void *params)
{
    const k_conv *a = (const k_conv *)params;
    GPU_LAUNCH(
        convolve, dim3(a->n, a->n_channels / a->head_dim), dim3(CONV_THREADS), ROW_ROOM_BYTES, stream, *a);
    return cudaGetLastError();
}

extern "C" cudaError_t cuda_launch_delta_factors(cudaStream_t stream, const void *params)
{
    const k_delta *a = (const k_delta *)params;
    const uint32_t n = a->n * a->n_value_heads;
    GPU_LAUNCH(make_factors, dim3((n + FACTOR_THREADS - 1) / FACTOR_THREADS), dim3(FACTOR_THREADS), 0, stream, *a);
    return cudaGetLastError();
}

extern "C" cudaError_t cuda_launch_delta(cudaStream_t stream, const void *params)
{
    const k_delta *a = (const k_delta *)params;
    GPU_LAUNCH(walk_columns, dim3(a->head_dim / DELTA_COLUMNS, a->n_value_heads), dim3(KEY_GROUPS * DELTA_COLUMNS),
        delta_room_bytes(a->head_dim), stream, *a);
    return cudaGetLastError();
}
