/*
 * The emulator itself: threads of a block meet at barriers, warps exchange, shared memory is sized to the byte, and what a device
 * would hang on or get wrong ends the program with a sentence. A plain executable; its exit status is the verdict.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cuda/tensor.cuh"

static int n_failed;

static void expect(bool ok, const char *what)
{
    if (ok) return;
    printf("FAILED: %s\n", what);
    n_failed++;
}

typedef struct params {
    int *out;
    int kind;
} params;

/* Each thread leaves its number for its neighbour on the other side of a barrier. */
static __global__ void rotate(const params a)
{
    GPU_SHARED(shared);
    gpu_begin();
    int *numbers = (int *)(void *)shared;
    numbers[threadIdx.x] = (int)(blockIdx.x * 1000 + threadIdx.x);
    __syncthreads();
    a.out[blockIdx.x * blockDim.x + threadIdx.x] = numbers[(threadIdx.x + 1) % blockDim.x];
}

static __global__ void warps(const params a)
{
    gpu_begin();
    const int lane = (int)(threadIdx.x % 32);
    int sum = lane;
    for (int other = 16; other > 0; other /= 2) sum += __shfl_xor_sync(GPU_ALL, sum, other);
    const unsigned odd = __ballot_sync(GPU_ALL, lane % 2);
    const int below = __shfl_down_sync(GPU_ALL, lane, 30);
    a.out[threadIdx.x] = sum == 496 && odd == 0xAAAAAAAAu && below == (lane < 2 ? lane + 30 : lane) &&
                         __shfl_sync(GPU_ALL, lane, 5) == 5;
}

/* 16 rows and 8 columns of 32 bytes: their products, on top of what is in `out`, over 32 k, the first 16 and the last. */
typedef struct matrices {
    int8_t rows[16][32], columns[8][32];
    int *out; /* [3][16][8] */
} matrices;

static __global__ void multiply(const matrices a)
{
    GPU_SHARED(shared);
    gpu_begin();
    const uint32_t lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
    for (uint32_t i = lane; i < 24 * 32; i += 32)
        shared[i] = (uint8_t)(i < 512 ? a.rows[i / 32][i % 32] : a.columns[i / 32 - 16][i % 32]);
    __syncthreads();
    uint32_t w[4], x[4];
    gpu_load_matrices(w, shared + lane % 16 * 32 + lane / 16 * 16);
    gpu_load_matrices(
        x, shared + 512 + lane % 8 * 32 + lane / 8 % 2 * 16); /* the last two are the first two again */
    for (int which = 0; which < 3; which++) {
        int c[4], d[4];
        int *out = a.out + which * 128;
        for (uint32_t e = 0; e < 4; e++) c[e] = out[(g + e / 2 * 8) * 8 + 2 * t + e % 2];
        if (which == 0) gpu_multiply_32(d, w, x, c);
        if (which == 1) gpu_multiply_16(d, w, x[0], c);
        if (which == 2) gpu_multiply_16(d, w + 2, x[1], c);
        for (uint32_t e = 0; e < 4; e++) out[(g + e / 2 * 8) * 8 + 2 * t + e % 2] = d[e];
    }
}

static bool matrices_multiply(void)
{
    static const int first[3] = {0, 0, 16}, last[3] = {32, 16, 32};
    static int out[3 * 128];
    matrices a;
    a.out = out;
    for (int i = 0; i < 512; i++) a.rows[i / 32][i % 32] = (int8_t)(i * 37 % 256 - 128);
    for (int i = 0; i < 256; i++) a.columns[i / 32][i % 32] = (int8_t)(i * 101 % 256 - 128);
    for (int i = 0; i < 384; i++) out[i] = 1000 * i;
    GPU_LAUNCH(multiply, dim3(1), dim3(32), 24 * 32, nullptr, a);
    bool right = true;
    for (int i = 0; i < 384; i++) {
        int sum = 1000 * i;
        for (int k = first[i / 128]; k < last[i / 128]; k++)
            sum += a.rows[i % 128 / 8][k] * a.columns[i % 8][k];
        right = right && out[i] == sum;
    }
    return right;
}

static __global__ void wrong(const params a)
{
    GPU_SHARED(shared);
    if (a.kind != 3) gpu_begin();
    switch (a.kind) {
    case 0: /* half of the block leaves */
        if (threadIdx.x >= 32) return;
        __syncthreads();
        break;
    case 1: /* two barriers, one for each half */
        if (threadIdx.x < 32)
            __syncthreads();
        else
            __syncthreads();
        break;
    case 2: /* a shuffle without one lane */
        if (threadIdx.x != 7) a.out[0] = __shfl_sync(GPU_ALL, 1, 0);
        break;
    default: shared[0] = 1; break; /* 3: begins nowhere */
    }
}

/* What the child says before it ends by abort. */
static bool dies_saying(int kind, const char *words)
{
    int ends[2];
    char text[300] = "";
    if (pipe(ends)) return false;
    const pid_t child = fork();
    if (child == 0) {
        dup2(ends[1], STDERR_FILENO);
        int out[64];
        const params a = {out, kind};
        GPU_LAUNCH(wrong, dim3(1), dim3(64), 16, nullptr, a);
        _exit(0);
    }
    close(ends[1]);
    size_t n = 0;
    for (ssize_t now; n + 1 < sizeof text && (now = read(ends[0], text + n, sizeof text - 1 - n)) > 0;)
        n += (size_t)now;
    close(ends[0]);
    int status = 0;
    waitpid(child, &status, 0);
    const bool died = WIFSIGNALED(status) || WEXITSTATUS(status) != 0;
    if (died && strstr(text, words)) return true;
    printf("kind %d: status %d, \"%s\"\n", kind, status, text);
    return false;
}

int main()
{
    int out[2 * 96];
    const params a = {out, 0};
    GPU_LAUNCH(rotate, dim3(2), dim3(96), 96 * sizeof(int), nullptr, a);
    bool right = true;
    for (int i = 0; i < 192; i++) right = right && out[i] == i / 96 * 1000 + (i % 96 + 1) % 96;
    expect(right, "a block's threads exchange over a barrier");
    GPU_LAUNCH(warps, dim3(1), dim3(64), 0, nullptr, a);
    right = true;
    for (int i = 0; i < 64; i++) right = right && out[i];
    expect(right, "shuffles and votes");
    expect(matrices_multiply(), "products of small matrices by a warp");
    expect(__dp4a(0x7F80FF01, 0x02FF0180, 5) == 127 * 2 + 128 - 1 - 128 + 5, "dp4a is signed");
    expect(dies_saying(0, "without reaching the block's barrier"),
        "a barrier that half of a block never reaches");
    expect(dies_saying(1, "different barriers"), "two barriers at once");
    expect(dies_saying(2, "ended while its warp waits"), "a shuffle that a lane never reaches");
    expect(dies_saying(3, "without gpu_begin"), "a thread that never waits for the launch before");
    for (int h = 0; h < 65536; h++) {
        const uint16_t half = (uint16_t)h;
        if ((half & 0x7C00) != 0x7C00 && gpu_f32_to_f16(gpu_f16_to_f32(half)) != half) {
            expect(false, "a half survives");
            break;
        }
    }
    printf("%d failed\n", n_failed);
    return n_failed != 0;
}
