/*
 * The emulator behind the two headers in include/: a runtime of malloc and memcpy over fibers (fibers.cc). One OS thread.
 */
#include "fibers.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <vector>

void emu_fetch_ahead(const void *from, uint32_t n_bytes)
{
    const volatile unsigned char *bytes = (const unsigned char *)from;
    if (((uintptr_t)from | n_bytes) % 16 || n_bytes == 0)
        emu_die("a fetch that is not aligned to 16 bytes", 0, n_bytes);
    (void)bytes[0];
    (void)bytes[n_bytes - 1];
}

/* ---- streams, graphs, launches ---- */

typedef std::vector<std::function<void()>> call_list;

struct emu_stream {
    call_list *capture;
};
struct emu_graph {
    call_list calls;
};
struct emu_graph_exec {
    call_list calls;
};
struct emu_event {
    struct timespec when;
};

static cudaError_t lost = cudaSuccess; /* sticky, as on a device */
static int launches_left = -1;
static emu_counts counts;

static void run_grid(dim3 grid, dim3 block, size_t shared_bytes, std::function<void()> kernel)
{
    const uint64_t n = (uint64_t)grid.x * grid.y * grid.z;
    if (launches_left >= 0 && launches_left-- == 0) lost = cudaErrorLaunchFailure;
    if (lost != cudaSuccess) return;
    counts.launches++;
    emu_grid_dim = grid;
    emu_block_dim = block;
    const uint64_t start = emu_random() % n;
    for (uint64_t k = 0; k < n; k++) {
        const uint64_t i = (start + k) % n;
        emu_run_block(&kernel,
            dim3((unsigned)(i % grid.x), (unsigned)(i / grid.x % grid.y), (unsigned)(i / grid.x / grid.y)),
            shared_bytes);
    }
}

void emu_launch(dim3 grid, dim3 block, size_t shared_bytes, cudaStream_t stream, std::function<void()> kernel)
{
    const unsigned n_threads = block.x * block.y * block.z;
    if (!grid.x || !grid.y || !grid.z || !n_threads || n_threads > EMU_THREADS_MAX || shared_bytes > 227 << 10 ||
        grid.y > 65535 || grid.z > 65535) {
        fprintf(stderr, "cuda_emu: a launch of %u x %u x %u blocks of %u threads with %zu bytes\n", grid.x,
            grid.y, grid.z, n_threads, shared_bytes);
        abort();
    }
    auto call = [=] { run_grid(grid, block, shared_bytes, kernel); };
    if (stream && stream->capture)
        stream->capture->push_back(call);
    else
        call();
}

cudaError_t cudaMemcpyAsync(
    void *to, const void *from, size_t n_bytes, cudaMemcpyKind kind, cudaStream_t stream)
{
    auto call = [=] {
        if (lost == cudaSuccess && n_bytes) memmove(to, from, n_bytes);
        if (kind == cudaMemcpyHostToDevice) counts.bytes_to_device += n_bytes;
    };
    if (stream && stream->capture)
        stream->capture->push_back(call);
    else
        call();
    return lost;
}

cudaError_t cudaMemsetAsync(void *to, int byte, size_t n_bytes, cudaStream_t)
{
    if (lost == cudaSuccess) memset(to, byte, n_bytes);
    return lost;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *ret, unsigned)
{
    *ret = new emu_stream{nullptr};
    return lost;
}

cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
    delete stream;
    return lost;
}

cudaError_t cudaStreamSynchronize(cudaStream_t)
{
    return lost;
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode)
{
    stream->capture = new call_list;
    return lost;
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *ret)
{
    *ret = new emu_graph{*stream->capture};
    delete stream->capture;
    stream->capture = nullptr;
    counts.captures++;
    return lost;
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t *ret, cudaGraph_t graph, unsigned long long)
{
    *ret = new emu_graph_exec{graph->calls};
    return lost;
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph)
{
    delete graph;
    return lost;
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t graph, cudaStream_t)
{
    counts.graph_launches++;
    for (auto &call : graph->calls) call();
    return lost;
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t graph)
{
    delete graph;
    return lost;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *ret, unsigned)
{
    *ret = new emu_event();
    return lost;
}

cudaError_t cudaEventCreate(cudaEvent_t *ret)
{
    return cudaEventCreateWithFlags(ret, 0);
}

cudaError_t cudaEventDestroy(cudaEvent_t event)
{
    delete event;
    return lost;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t)
{
    clock_gettime(CLOCK_MONOTONIC, &event->when);
    return lost;
}

cudaError_t cudaEventSynchronize(cudaEvent_t)
{
    return lost;
}

cudaError_t cudaEventElapsedTime(float *ret_ms, cudaEvent_t from, cudaEvent_t to)
{
    *ret_ms = (float)((double)(to->when.tv_sec - from->when.tv_sec) * 1e3 +
                      (double)(to->when.tv_nsec - from->when.tv_nsec) / 1e6);
    return lost;
}

/* ---- memory and the machine ---- */

enum { HEAD = 64 }; /* in front of an allocation: its size */
/* Bytes of an allocation that are no zeros, since nobody may count on them. Buffers for transfers have 64 MiB, of which a test uses little. */
static const size_t filled = (size_t)4 << 20;

static cudaError_t devices_answer = cudaSuccess;
static int n_devices = 1, compute_major = 9, compute_minor = 0;
static size_t memory_bytes = (size_t)1 << 30;

cudaError_t cudaMalloc(void **ret, size_t n_bytes)
{
    if (lost != cudaSuccess) return lost;
    if (n_bytes > memory_bytes - counts.allocated) return cudaErrorMemoryAllocation;
    unsigned char *p = (unsigned char *)aligned_alloc(64, (HEAD + n_bytes + 63) / 64 * 64);
    if (!p) return cudaErrorMemoryAllocation;
    memcpy(p, &n_bytes, sizeof n_bytes);
    memset(p + HEAD, 0xFF, n_bytes < filled ? n_bytes : filled);
    counts.allocated += n_bytes;
    *ret = p + HEAD;
    return cudaSuccess;
}

cudaError_t cudaFree(void *p)
{
    if (!p) return lost;
    size_t n_bytes;
    memcpy(&n_bytes, (unsigned char *)p - HEAD, sizeof n_bytes);
    counts.allocated -= n_bytes;
    free((unsigned char *)p - HEAD);
    return lost;
}

cudaError_t cudaMallocHost(void **ret, size_t n_bytes)
{
    *ret = aligned_alloc(64, (n_bytes + 63) / 64 * 64);
    return *ret ? lost : cudaErrorMemoryAllocation;
}

cudaError_t cudaFreeHost(void *p)
{
    free(p);
    return lost;
}

struct pinned_piece {
    char *host;
    size_t n_bytes;
};
static std::vector<pinned_piece> pinned;
static int pins_left = -1;

cudaError_t cudaHostRegister(void *p, size_t n_bytes, unsigned)
{
    if (lost != cudaSuccess) return lost;
    for (const pinned_piece &piece : pinned)
        if ((char *)p < piece.host + piece.n_bytes && piece.host < (char *)p + n_bytes)
            return cudaErrorHostMemoryAlreadyRegistered;
    if (pins_left == 0) return cudaErrorMemoryAllocation;
    if (pins_left > 0) pins_left--;
    pinned.push_back({(char *)p, n_bytes});
    counts.pinned = pinned.size();
    return cudaSuccess;
}

cudaError_t cudaHostUnregister(void *p)
{
    for (size_t i = 0; i < pinned.size(); i++)
        if (pinned[i].host == p) {
            pinned.erase(pinned.begin() + (long)i);
            counts.pinned = pinned.size();
            return lost;
        }
    return cudaErrorHostMemoryNotRegistered;
}

cudaError_t cudaHostGetDevicePointer(void **ret, void *p, unsigned)
{
    for (const pinned_piece &piece : pinned)
        if (piece.host == p) {
            *ret = p;
            return lost;
        }
    return cudaErrorInvalidValue;
}

void emu_set_pins(int n)
{
    pins_left = n;
}

cudaError_t cudaMemGetInfo(size_t *ret_free, size_t *ret_total)
{
    *ret_free = memory_bytes - counts.allocated;
    *ret_total = memory_bytes;
    return lost;
}

cudaError_t cudaDriverGetVersion(int *ret)
{
    *ret = devices_answer == cudaErrorInsufficientDriver ? 11020 : 13000;
    return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int *ret)
{
    *ret = 13000;
    return cudaSuccess;
}

cudaError_t cudaGetDeviceCount(int *ret)
{
    *ret = n_devices;
    return devices_answer;
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp *ret, int)
{
    *ret = cudaDeviceProp();
    snprintf(ret->name, sizeof ret->name, "emulated device");
    ret->totalGlobalMem = memory_bytes;
    ret->sharedMemPerBlockOptin = 227 << 10;
    ret->major = compute_major;
    ret->minor = compute_minor;
    ret->multiProcessorCount = 4;
    ret->l2CacheSize = 1 << 20;
    return lost;
}

cudaError_t cudaSetDevice(int)
{
    return lost;
}

cudaError_t cudaDeviceGetAttribute(int *ret, enum cudaDeviceAttr, int)
{
    *ret = 1000000;
    return lost;
}

cudaError_t cudaGetLastError(void)
{
    return lost;
}

const char *cudaGetErrorString(cudaError_t e)
{
    switch (e) {
    case cudaSuccess: return "no error";
    case cudaErrorMemoryAllocation: return "out of memory";
    case cudaErrorInsufficientDriver: return "CUDA driver version is insufficient for CUDA runtime version";
    case cudaErrorNoDevice: return "no CUDA-capable device is detected";
    case cudaErrorNoKernelImageForDevice: return "no kernel image is available for execution on the device";
    case cudaErrorLaunchFailure: return "unspecified launch failure";
    default: return "invalid argument";
    }
}

void emu_set_devices(cudaError_t answer, int n)
{
    devices_answer = answer;
    n_devices = n;
}

void emu_set_compute(int major, int minor)
{
    compute_major = major;
    compute_minor = minor;
}

void emu_set_memory(size_t n_bytes)
{
    memory_bytes = n_bytes;
}

void emu_fail_in(int n_launches)
{
    launches_left = n_launches;
    if (n_launches < 0) lost = cudaSuccess;
}

emu_counts emu_get_counts(void)
{
    return counts;
}
