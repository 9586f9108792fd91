/*
 * A block's threads as fibers: turns, barriers, warps. Built without a sanitizer's checks, which were a third of a test's time and look
 * for faults of kernels and of the backend, not of the emulator; ASan is told of every switch (EMU_ASAN).
 *
 * Fibers switch by a few lines of assembly on x86-64 (swapcontext makes two system calls a switch, and a block has hundreds of
 * threads) and by ucontext elsewhere.
 */
#include "fibers.h"

#include <stdio.h>
#include <stdlib.h>
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

enum { STACK_BYTES = 64 << 10, WARP = 32 };

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

static fiber fibers[EMU_THREADS_MAX];
static warp warps[EMU_THREADS_MAX / WARP];
static int n_fibers, current;
static const std::function<void()> *kernel_now;
static unsigned char *shared_now;
static fiber scheduler;
#ifdef EMU_ASAN
static const void *scheduler_stack;
static size_t scheduler_stack_bytes;
static const fiber *begun_by;
#endif
static uint32_t order_state = 1;

uint32_t emu_random(void)
{
    order_state = order_state * 1664525u + 1013904223u;
    return order_state >> 8;
}

void emu_die(const char *what, int line, unsigned other)
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
    if (!fibers[current].begun) emu_die("a thread ended without gpu_begin", 0, 0);
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
    fiber *const f = &fibers[current];
    f->n_given = n;
    if (n == 1)
        f->given[0] = words[0]; /* a sanitizer looks at every memcpy */
    else
        memcpy(f->given, words, (size_t)n * sizeof *words);
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
                emu_die(fibers[i].state == FIBER_DONE
                            ? "a thread ended while its warp waits for it"
                            : "a thread waits at a block's barrier while its warp waits for it",
                    line, (unsigned)fibers[i].line);
            }
    }
    warps[w].ballot = 0;
    for (int i = first; i < last; i++) {
        if (fibers[i].line != line) {
            current = i;
            emu_die("lanes of a warp meet at different lines", line, (unsigned)fibers[i].line);
        }
        memcpy(warps[w].given[i - first], fibers[i].given, sizeof(emu_words));
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
            emu_die("a thread ended without reaching the block's barrier", 0, (unsigned)line);
        if (fibers[i].line != line)
            emu_die("threads of a block meet at different barriers", fibers[i].line, (unsigned)line);
        fibers[i].state = FIBER_READY;
    }
}

static void run_ready(void)
{
    turn.step = emu_random() & 1 ? -1 : 1;
    turn.next = (int)(emu_random() % (unsigned)n_fibers);
    if (turn.step < 0) turn.next = n_fibers - 1 - turn.next;
    turn.n_left = n_fibers;
    fiber *const first = take_turn();
    if (first != &scheduler) switch_fiber(&scheduler, first, false);
}

void emu_run_block(const std::function<void()> *kernel, dim3 block_place, size_t shared_bytes)
{
    kernel_now = kernel;
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
