/*
 * The engine's worker threads. base_pool_run calls fn(arg, i, n) once on each of the n threads (the caller is
 * thread 0) and returns when all have; who computes what is the callee's static partition, so results never
 * depend on scheduling. Between runs the workers spin briefly, then sleep: idle costs no CPU. One run at a
 * time.
 */
#ifndef KVIST_BASE_POOL_H
#define KVIST_BASE_POOL_H

#include "base/err.h"

typedef struct base_pool base_pool;
typedef void base_pool_fn(void *arg, int thread, int n_threads);

int base_pool_new(base_pool **ret, int n_threads, base_err *err); /* 1..64 */
void base_pool_free(base_pool *pool);
int base_pool_threads(const base_pool *pool);
void base_pool_run(base_pool *pool, base_pool_fn *fn, void *arg);

/*
 * The same for work that threads claim piece by piece from an atomic counter, so that one thread alone could
 * do all of it: a worker that has not begun when the caller's fn returns is left out and not waited for. On a
 * busy machine that is the difference between the work's time and a scheduler's. Which threads fn
 * is called on varies.
 */
void base_pool_share(base_pool *pool, base_pool_fn *fn, void *arg);

#endif
