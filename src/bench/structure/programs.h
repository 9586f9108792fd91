/*
 * Programs that came with a mistake of one line and with the right one, as pools: QuixBugs (40 of Python), DebugBench
 * (Tian et al. 2024: answers to exercises in C++, Java and Python into which a mistake was put, 18 kinds of them).
 */
#ifndef KVIST_BENCH_PROGRAMS_H
#define KVIST_BENCH_PROGRAMS_H

#include "bench/structure/source_pool.h"

/* folder: a copy of jkoppel/QuixBugs. */
int bench_quixbugs_load(bench_pool *ret, const char *folder, base_err *err);
/*
 * folder: `benchmark` of thunlp/DebugBench. Those of one mistake in one line, inside of a function, as long as a function
 * that bench_pool_load takes; in an order that says nothing of their kinds.
 */
int bench_debugbench_load(bench_pool *ret, code_grammars *g, const char *folder, base_err *err);

#endif
