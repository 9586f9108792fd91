/*
 * Functions and files of real source text, for experiments that put some of them into a prompt. Same folder
 * and seed, same draw.
 */
#ifndef KVIST_BENCH_POOL_H
#define KVIST_BENCH_POOL_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "code/code.h"

enum { BENCH_CHUNKS = 32, BENCH_MOST_FILE = 1 << 20, BENCH_LEAST_FUNCTION = 160, BENCH_MOST_FUNCTION = 1300 };

typedef struct bench_function {
    char *path, *name, *text; /* path: for its language */
    /* a line of the text, trimmed, that is a mistake, and how it should read; NULL: none known */
    char *wrong, *right;
} bench_function;

typedef struct bench_pool {
    char *source;          /* the folder's name */
    bench_function *items; /* functions */
    size_t n, cap;
    bench_function *files; /* whole texts, of the same files */
    size_t n_files, cap_files;
    uint64_t cursor; /* bench_pool_next */
} bench_pool;

/*
 * Functions of 5 to 40 lines and 160 to 1,300 bytes in files below folder, no tests; in the order of paths.
 */
int bench_pool_load(bench_pool *ret, code_grammars *g, const char *folder, base_err *err);
void bench_pool_free(bench_pool *p);
/*
 * Functions one after the other in an order that the seed says: each once, then each once more in another
 * order, ... *ret_round (may be NULL) counts the orders.
 */
const bench_function *bench_pool_next(bench_pool *p, uint64_t seed, uint64_t *ret_round);

bench_function bench_function_copy(const bench_function *f);
void bench_function_free(bench_function *f);
/* A number that follows from all three. */
uint64_t bench_draw(uint64_t seed, uint64_t what, uint64_t i);

#endif
