/*
 * Real functions for `kvist bench structure`: pools of them from folders of source text, one-line mistakes planted in them, the
 * mistakes of QuixBugs, and lines that call what another function of the pool defines. Same folder and seed, same sample.
 */
#ifndef KVIST_BENCH_BUGS_H
#define KVIST_BENCH_BUGS_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "code/code.h"

enum { BENCH_CHUNKS = 12 };

typedef struct bench_function {
    char *path, *name, *text; /* path: for its language */
} bench_function;

typedef struct bench_pool {
    char *source;          /* the folder's name */
    bench_function *items; /* functions */
    size_t n, cap;
    bench_function *files; /* whole texts, of the same files */
    size_t n_files, cap_files;
} bench_pool;

/* Functions of 5 to 40 lines and 160 to 1,300 bytes in files below folder, no tests; in the order of paths. */
int bench_pool_load(bench_pool *ret, code_grammars *g, const char *folder, base_err *err);
void bench_pool_free(bench_pool *p);

/* A sample: chunks in the order of the prompt; texts are its own. */
typedef struct bench_sample {
    char id[64];
    bench_function chunks[BENCH_CHUNKS];
    uint32_t n_chunks;
    uint32_t target; /* the chunk that it is about */
    char *
        wrong; /* the line as it stands there, trimmed; of a completion: the line to write, with its indent */
    char *right;   /* the line as it should read; of a completion: the text in front of the line */
    size_t n_same; /* bytes that both lines begin with; no other line does */
} bench_sample;
void bench_sample_free(bench_sample *s);

/* A mistake in one of n_chunks functions: operator, constant or connective. false: none can be planted with this number. */
bool bench_sample_mutate(
    bench_sample *ret, const bench_pool *p, uint64_t seed, uint32_t number, uint32_t n_chunks);
/* The number-th program of QuixBugs with a mistake in one line, beside corrected ones. false: beyond the last. */
bool bench_sample_quixbugs(
    bench_sample *ret, const char *folder, uint64_t seed, uint32_t number, uint32_t n_chunks);
/* A line that calls a function of the pool, which is among the chunks. */
bool bench_sample_complete(
    bench_sample *ret, const bench_pool *p, uint64_t seed, uint32_t number, uint32_t n_chunks);
/* Consecutive chunks of about 512 tokens of whole files, until they have n_bytes; the target is one of them. */
bool bench_sample_read(
    bench_sample *ret, const bench_pool *p, uint64_t seed, uint32_t number, size_t n_bytes);

#endif
