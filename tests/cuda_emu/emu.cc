/*
 * The emulator behind the two headers in include/: fibers, barriers, warps, and a runtime of malloc and memcpy. One OS thread.
 *
 * Fibers switch by a few lines of assembly on x86-64 (swapcontext makes two system calls a switch, and a block has hundreds of
 * threads) and by ucontext elsewhere. ASan is told of every switch.
 */
#include "cuda_runtime.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <ucontext.h>

#include <algorithm>
#include <vector>

#if defined(__SANITIZE_ADDRESS__)
#define EMU_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define EMU_ASAN 1
#endif
#endif
#ifdef EMU_ASAN
#include <sanitizer/common_interface_defs.h>
#endif

/* ---- fibers ---- */

enum { STACK_BYTES = 64 << 10, THREADS_MAX = 1024, WARP = 32 };

enum fiber_state { FIBER_READY, FIBER_AT_BARRIER, FIBER_AT_WARP, FIBER_DONE };

struct fiber {
    void *sp;
    ucontext_t context;
    char *stack;
    void *asan;
    fiber_state state;
    int line; /* where it waits */
    emu_place place;
    emu_words given; /* to the warp: the first n_given */
    int n_given;
    bool vote, begun;
};

struct warp {
    emu_words given[WARP];
    unsigned ballot;
};

emu_place emu_here;
dim3 emu_grid_dim, emu_block_dim;

static fiber fibers[THREADS_MAX];
static warp warps[THREADS_MAX / WARP];
static int n_fibers, current;
static std::function<void()> *kernel_now;
static unsigned char *shared_now;
static fiber scheduler;
#ifdef EMU_ASAN
static const void *scheduler_stack;
static size_t scheduler_stack_bytes;
static const fiber *begun_by;
#endif
static uint32_t order_state = 1;

static uint32_t next_random(void)
{
    order_state = order_state * 1664525u + 1013904223u;
    return order_state >> 8;
}

static void die(const char *what, int line, unsigned other)
{
    const emu_place *p = &fibers[current].place;
    fprintf(stderr, "cuda_emu: %s (line %d and %u; block %u %u %u, thread %u)\n", what, line, other,
        p->block.x, p->block.y, p->block.z, p->thread.x);
    abort();
}

#if defined(__x86_64__)
extern "C" void emu_switch(void **save_sp, void *to_sp);
asm(".text\n.globl emu_switch\n.type emu_switch,@function\nemu_switch:\n"
    "push %rbp\npush %rbx\npush %r12\npush %r13\npush %r14\npush %r15\n"
    "mov %rsp,(%rdi)\nmov %rsi,%rsp\n"
    "pop %r15\npop %r14\npop %r13\npop %r12\npop %rbx\npop %rbp\nret\n"
    ".size emu_switch,.-emu_switch\n.section .note.GNU-stack,\"\",@progbits\n.text\n");

static void fiber_jump(fiber *from, fiber *to)
{
    emu_switch(&from->sp, to->sp);
}

static void fiber_prepare(fiber *f, void (*entry)(void))
{
    void **sp = (void **)(void *)(f->stack + STACK_BYTES);
    *--sp = nullptr; /* so that the entry finds its stack as after a call */
    *--sp = (void *)entry;
    for (int i = 0; i < 6; i++) *--sp = nullptr;
    f->sp = sp;
}
#else
static void fiber_jump(fiber *from, fiber *to)
{
    swapcontext(&from->context, &to->context);
}

static void fiber_prepare(fiber *f, void (*entry)(void))
{
    getcontext(&f->context);
    f->context.uc_stack.ss_sp = f->stack;
    f->context.uc_stack.ss_size = STACK_BYTES;
    f->context.uc_link = nullptr;
    makecontext(&f->context, entry, 0);
}
#endif

/* A round in which each fiber has a turn, in an order of its own. */
static struct {
    int next, step, n_left;
} turn;

/* Who runs next: the round's next fiber that is ready, behind the last one the scheduler. */
static fiber *take_turn(void)
{
    while (turn.n_left > 0) {
        const int i = turn.next;
        turn.n_left--;
        turn.next += turn.step;
        if (turn.next == n_fibers) turn.next = 0;
        if (turn.next < 0) turn.next = n_fibers - 1;
        if (fibers[i].state != FIBER_READY) continue;
        current = i;
        emu_here = fibers[i].place;
        return &fibers[i];
    }
    return &scheduler;
}

/* Goes on there; comes back when somebody switches to `from`, never if it ends. */
static void switch_fiber(fiber *from, fiber *to, bool ends)
{
#ifdef EMU_ASAN
    const bool is_fiber = to != &scheduler;
    begun_by = from;
    __sanitizer_start_switch_fiber(ends ? nullptr : &from->asan, is_fiber ? to->stack : scheduler_stack,
        is_fiber ? (size_t)STACK_BYTES : scheduler_stack_bytes);
#else
    (void)ends;
#endif
    fiber_jump(from, to);
#ifdef EMU_ASAN
    __sanitizer_finish_switch_fiber(from->asan, nullptr, nullptr);
#endif
}

static void fiber_main(void)
{
#ifdef EMU_ASAN
    const void *stack;
    size_t n_bytes;
    __sanitizer_finish_switch_fiber(nullptr, &stack, &n_bytes);
    if (begun_by == &scheduler) {
        scheduler_stack = stack;
        scheduler_stack_bytes = n_bytes;
    }
#endif
    (*kernel_now)();
    if (!fibers[current].begun) die("a thread ended without gpu_begin", 0, 0);
    fibers[current].state = FIBER_DONE;
    fiber *const done = &fibers[current];
    switch_fiber(done, take_turn(), true);
}

static void wait_as(fiber_state state, int line)
{
    fiber *const f = &fibers[current];
    f->state = state;
    f->line = line;
    switch_fiber(f, take_turn(), false);
}

/* ---- what a kernel calls ---- */

void emu_barrier(int line)
{
    wait_as(FIBER_AT_BARRIER, line);
}

unsigned emu_lane(void)
{
    return (unsigned)current % WARP;
}

const emu_words *emu_warp_share(int line, const uint32_t *words, int n)
{
    memcpy(fibers[current].given, words, (size_t)n * sizeof *words);
    fibers[current].n_given = n;
    wait_as(FIBER_AT_WARP, line);
    return warps[current / WARP].given;
}

uint32_t emu_warp_exchange(int line, uint32_t value, unsigned from_lane)
{
    return emu_warp_share(line, &value, 1)[from_lane][0];
}

unsigned emu_warp_ballot(int line, bool vote)
{
    fibers[current].vote = vote;
    wait_as(FIBER_AT_WARP, line);
    return warps[current / WARP].ballot;
}

void *emu_shared(void)
{
    return shared_now;
}

void emu_begin(void)
{
    fibers[current].begun = true;
}

void emu_fetch_ahead(const void *from, uint32_t n_bytes)
{
    const volatile unsigned char *bytes = (const unsigned char *)from;
    if (((uintptr_t)from | n_bytes) % 16 || n_bytes == 0)
        die("a fetch that is not aligned to 16 bytes", 0, n_bytes);
    (void)bytes[0];
    (void)bytes[n_bytes - 1];
}

/* ---- a block ---- */

/* All lanes of a warp are at one place: hand round what they gave. */
static bool release_warp(int w)
{
    const int first = w * WARP, last = first + WARP < n_fibers ? first + WARP : n_fibers;
    int line = 0, n_waiting = 0;
    for (int i = first; i < last; i++)
        if (fibers[i].state == FIBER_AT_WARP) {
            line = fibers[i].line;
            n_waiting++;
        }
    if (!n_waiting) return false;
    if (n_waiting < last - first) {
        for (int i = first; i < last; i++)
            if (fibers[i].state != FIBER_AT_WARP) {
                current = i;
                die(fibers[i].state == FIBER_DONE
                        ? "a thread ended while its warp waits for it"
                        : "a thread waits at a block's barrier while its warp waits for it",
                    line, (unsigned)fibers[i].line);
            }
    }
    warps[w].ballot = 0;
    for (int i = first; i < last; i++) {
        if (fibers[i].line != line) {
            current = i;
            die("lanes of a warp meet at different lines", line, (unsigned)fibers[i].line);
        }
        memcpy(warps[w].given[i - first], fibers[i].given, (size_t)fibers[i].n_given * sizeof(uint32_t));
        fibers[i].n_given = 0;
        if (fibers[i].vote) warps[w].ballot |= 1u << (i - first);
        fibers[i].vote = false;
        fibers[i].state = FIBER_READY;
    }
    return true;
}

static void release_block(void)
{
    const int line = fibers[0].line;
    for (int i = 0; i < n_fibers; i++) {
        current = i;
        if (fibers[i].state == FIBER_DONE)
            die("a thread ended without reaching the block's barrier", 0, (unsigned)line);
        if (fibers[i].line != line)
            die("threads of a block meet at different barriers", fibers[i].line, (unsigned)line);
        fibers[i].state = FIBER_READY;
    }
}

static void run_ready(void)
{
    turn.step = next_random() & 1 ? -1 : 1;
    turn.next = (int)(next_random() % (unsigned)n_fibers);
    if (turn.step < 0) turn.next = n_fibers - 1 - turn.next;
    turn.n_left = n_fibers;
    fiber *const first = take_turn();
    if (first != &scheduler) switch_fiber(&scheduler, first, false);
}

static void run_block(dim3 block_place, size_t shared_bytes)
{
    /* NaN, as float and as half. Kept from block to block: fresh memory for each was a sixth of a test's time. */
    static std::vector<unsigned char> shared;
    if (shared.size() == shared_bytes)
        std::fill(shared.begin(), shared.end(), (unsigned char)0xFF);
    else
        shared = std::vector<unsigned char>(shared_bytes, 0xFF);
    shared_now = shared.data();
    n_fibers = (int)(emu_block_dim.x * emu_block_dim.y * emu_block_dim.z);
    for (int i = 0; i < n_fibers; i++) {
        fiber *f = &fibers[i];
        if (!f->stack) f->stack = (char *)malloc(STACK_BYTES);
        f->place.thread = dim3((unsigned)i % emu_block_dim.x, (unsigned)i / emu_block_dim.x, 0);
        f->place.block = block_place;
        f->state = FIBER_READY;
        f->vote = f->begun = false;
        fiber_prepare(f, fiber_main);
    }
    for (;;) {
        run_ready();
        bool any_warp = false, any_barrier = false;
        for (int w = 0; w * WARP < n_fibers; w++) any_warp = release_warp(w) || any_warp;
        if (any_warp) continue;
        for (int i = 0; i < n_fibers; i++) any_barrier = any_barrier || fibers[i].state == FIBER_AT_BARRIER;
        if (!any_barrier) return;
        release_block();
    }
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
    kernel_now = &kernel;
    const uint64_t start = next_random() % n;
    for (uint64_t k = 0; k < n; k++) {
        const uint64_t i = (start + k) % n;
        run_block(
            dim3((unsigned)(i % grid.x), (unsigned)(i / grid.x % grid.y), (unsigned)(i / grid.x / grid.y)),
            shared_bytes);
    }
}

void emu_launch(dim3 grid, dim3 block, size_t shared_bytes, cudaStream_t stream, std::function<void()> kernel)
{
    const unsigned n_threads = block.x * block.y * block.z;
    if (!grid.x || !grid.y || !grid.z || !n_threads || n_threads > THREADS_MAX || shared_bytes > 227 << 10 ||
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
    memset(p + HEAD, 0xFF, n_bytes); /* nobody may count on zeros */
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
