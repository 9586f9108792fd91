/*
 * The worker threads of pool.h. Every wait is the same: spin for some tens of microseconds, because the next piece of work
 * of a decode comes within a few, then sleep on a futex, so that an idle program costs nothing.
 *
 * One word counts runs (a worker waits for it to move), one counts barrier phases. A run ends with a barrier, so that the
 * caller returns only when all have, and so that fn and arg may be overwritten.
 */
#include "base/pool.h"

#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
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

struct base_pool {
    signal_word runs;
    signal_word phase;
    _Alignas(LINE) _Atomic int arrived;
    base_pool_fn *fn; /* NULL asks the workers to leave */
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
    /* The sleeper announces itself before it looks again, the waker moves the word before it looks for sleepers. */
    atomic_fetch_add(&w->sleepers, 1);
    while (atomic_load(&w->value) == seen) futex(&w->value, FUTEX_WAIT, seen);
    atomic_fetch_sub(&w->sleepers, 1);
}

static void word_move(signal_word *w)
{
    atomic_fetch_add(&w->value, 1);
    if (atomic_load(&w->sleepers) > 0) futex(&w->value, FUTEX_WAKE, INT_MAX);
}

void base_pool_barrier(base_pool *pool)
{
    if (pool->n_threads == 1) return;
    uint32_t seen = atomic_load_explicit(&pool->phase.value, memory_order_acquire);
    if (atomic_fetch_add(&pool->arrived, 1) + 1 == pool->n_threads) {
        atomic_store(&pool->arrived, 0);
        word_move(&pool->phase);
    } else {
        word_wait(&pool->phase, seen);
    }
}

static void *worker_main(void *arg)
{
    worker *w = arg;
    base_pool *pool = w->pool;
    for (uint32_t seen = 0;; seen++) {
        word_wait(&pool->runs, seen);
        if (!pool->fn) return NULL;
        pool->fn(pool->arg, w->index, pool->n_threads);
        base_pool_barrier(pool);
    }
}

static void stop_workers(base_pool *pool, int n_started)
{
    pool->fn = NULL;
    word_move(&pool->runs);
    for (int i = 1; i < n_started; i++) pthread_join(pool->workers[i].thread, NULL);
}

int base_pool_new(base_pool **ret, int n_threads, base_err *err)
{
    if (n_threads < 1 || n_threads > MAX_THREADS)
        return base_fail(
            err, BASE_E_LIMIT, "%d threads were asked for; 1 to %d are possible", n_threads, MAX_THREADS);
    base_pool *pool = aligned_alloc(LINE, (sizeof *pool + LINE - 1) / LINE * LINE);
    if (!pool) return base_fail(err, BASE_E_NOMEM, "no memory for the thread pool");
    *pool = (base_pool){.n_threads = n_threads};
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

void base_pool_run(base_pool *pool, base_pool_fn *fn, void *arg)
{
    if (pool->n_threads == 1) {
        fn(arg, 0, 1);
        return;
    }
    pool->fn = fn;
    pool->arg = arg;
    word_move(&pool->runs);
    fn(arg, 0, pool->n_threads);
    base_pool_barrier(pool);
}
