/*
 * The worker threads of pool.h. Every wait is the same: spin for some tens of microseconds, because the next
 * piece of work of a decode comes within a few, then sleep on a futex, so that an idle program costs nothing.
 *
 * A run has a gate: its number, whether it is closed, and how many workers are inside. fn and arg belong to
 * the run of that number, and are overwritten only when nobody is inside and the gate is closed; a late
 * worker that finds another number or a closed gate goes back to waiting.
 */
#include "base/pool.h"

#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { MAX_THREADS = 64, SPINS = 3000, LINE = 64 };

/* A counter that threads wait on, alone on its cache line. */
typedef struct signal_word {
    _Alignas(LINE) _Atomic uint32_t value;
    _Atomic uint32_t sleepers;
} signal_word;

typedef struct worker {
    base_pool *pool;
    pthread_t thread;
    int index;
} worker;

/* The gate: number of the run in the upper half, then GATE_CLOSED, then the count of workers inside. */
#define GATE_CLOSED 0x80000000u

struct base_pool {
    signal_word runs; /* workers wait for it to move */
    signal_word ends; /* moves when a worker leaves: the caller waits */
    _Alignas(LINE) _Atomic uint64_t gate;
    _Atomic int finished; /* workers that did this run */
    base_pool_fn *fn;     /* NULL asks the workers to leave */
    void *arg;
    int n_threads;
    worker workers[MAX_THREADS];
};

static void relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

static void futex(_Atomic uint32_t *word, int op, uint32_t value)
{
    syscall(SYS_futex, word, op | FUTEX_PRIVATE_FLAG, value, NULL, NULL, 0);
}

/* Returns once the word is no longer `seen`. */
static void word_wait(signal_word *w, uint32_t seen)
{
    for (int i = 0; i < SPINS; i++) {
        if (atomic_load_explicit(&w->value, memory_order_acquire) != seen) return;
        relax();
    }
    /*
     * The sleeper announces itself before it looks again, the waker moves the word before it looks for
     * sleepers.
     */
    atomic_fetch_add(&w->sleepers, 1);
    while (atomic_load(&w->value) == seen) futex(&w->value, FUTEX_WAIT, seen);
    atomic_fetch_sub(&w->sleepers, 1);
}

static void word_move(signal_word *w)
{
    atomic_fetch_add(&w->value, 1);
    if (atomic_load(&w->sleepers) > 0) futex(&w->value, FUTEX_WAKE, INT_MAX);
}

/* Inside, fn and arg stay what they are. False: that run is over. */
static bool gate_enter(base_pool *pool, uint32_t number)
{
    uint64_t gate = atomic_load(&pool->gate);
    do {
        if (gate >> 32 != number || gate & GATE_CLOSED) return false;
    } while (!atomic_compare_exchange_weak(&pool->gate, &gate, gate + 1));
    return true;
}

static void *worker_main(void *arg)
{
    worker *w = arg;
    base_pool *pool = w->pool;
    for (uint32_t seen = 0;;) {
        word_wait(&pool->runs, seen);
        seen = atomic_load(&pool->runs.value);
        if (!gate_enter(pool, seen)) continue;
        bool leave = !pool->fn;
        if (!leave) pool->fn(pool->arg, w->index, pool->n_threads);
        atomic_fetch_add(&pool->finished, 1);
        atomic_fetch_sub(&pool->gate, 1);
        if (leave) return NULL;
        word_move(&pool->ends);
    }
}

static void open_run(base_pool *pool, base_pool_fn *fn, void *arg)
{
    pool->fn = fn;
    pool->arg = arg;
    atomic_store(&pool->finished, 0);
    atomic_store(&pool->gate, (uint64_t)(uint32_t)(atomic_load(&pool->runs.value) + 1) << 32);
    word_move(&pool->runs);
}

/* Closes the gate once `wanted` workers have done the run, and returns when nobody is inside. */
static void close_run(base_pool *pool, int wanted)
{
    for (;;) {
        uint32_t seen = atomic_load(&pool->ends.value);
        if (atomic_load(&pool->finished) >= wanted) break;
        word_wait(&pool->ends, seen);
    }
    atomic_fetch_or(&pool->gate, GATE_CLOSED);
    for (;;) {
        uint32_t seen = atomic_load(&pool->ends.value);
        if ((atomic_load(&pool->gate) & (GATE_CLOSED - 1)) == 0) return;
        word_wait(&pool->ends, seen);
    }
}

static void stop_workers(base_pool *pool, int n_started)
{
    open_run(pool, NULL, NULL);
    for (int i = 1; i < n_started; i++) pthread_join(pool->workers[i].thread, NULL);
}

int base_pool_new(base_pool **ret, int n_threads, base_err *err)
{
    if (n_threads < 1 || n_threads > MAX_THREADS)
        return base_fail(
            err, BASE_E_LIMIT, "%d threads were asked for; 1 to %d are possible", n_threads, MAX_THREADS);
    base_pool *pool = aligned_alloc(LINE, (sizeof *pool + LINE - 1) / LINE * LINE);
    if (!pool) return base_fail(err, BASE_E_NOMEM, "no memory for the thread pool");
    *pool = (base_pool){.n_threads = n_threads, .gate = GATE_CLOSED};
    for (int i = 1; i < n_threads; i++) {
        pool->workers[i] = (worker){.pool = pool, .index = i};
        int failed = pthread_create(&pool->workers[i].thread, NULL, worker_main, &pool->workers[i]);
        if (failed) {
            stop_workers(pool, i);
            free(pool);
            return base_fail(
                err, BASE_E_IO, "the system refused thread %d of %d (error %d)", i + 1, n_threads, failed);
        }
    }
    *ret = pool;
    return 0;
}

void base_pool_free(base_pool *pool)
{
    if (!pool) return;
    stop_workers(pool, pool->n_threads);
    free(pool);
}

int base_pool_threads(const base_pool *pool)
{
    return pool->n_threads;
}

static void run(base_pool *pool, base_pool_fn *fn, void *arg, int wanted)
{
    if (pool->n_threads > 1) open_run(pool, fn, arg);
    fn(arg, 0, pool->n_threads);
    if (pool->n_threads > 1) close_run(pool, wanted);
}

void base_pool_run(base_pool *pool, base_pool_fn *fn, void *arg)
{
    run(pool, fn, arg, pool->n_threads - 1);
}

void base_pool_share(base_pool *pool, base_pool_fn *fn, void *arg)
{
    run(pool, fn, arg, 0);
}
