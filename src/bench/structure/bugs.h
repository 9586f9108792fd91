/*
 * Samples for `kvist-bench structure`: some functions in one prompt and a question about each of several, so
 * that the prompt's rows are computed once for all its questions. One-line mistakes planted in functions of a
 * pool, programs that came with one, and (bench/structure/calling_lines.c) lines that call what another function
 * defines, or consecutive pieces of files. Same pools and seed, same samples in the same order.
 */
#ifndef KVIST_BENCH_BUGS_H
#define KVIST_BENCH_BUGS_H

#include "bench/structure/source_pool.h"

typedef struct bench_question {
    uint32_t target; /* the chunk that it is about */
    char *before;    /* of a completion: the text in front of the line; else NULL */
    /* the line as it stands there, trimmed; of a completion: the line to write, with its indent */
    char *line;
    /* of a mistake: bytes that the right line begins with too, and no other line of the sample */
    size_t n_same;
} bench_question;

typedef struct bench_sample {
    char id[64];
    bench_function chunks[BENCH_CHUNKS]; /* in the order of the prompt; texts are the sample's own */
    uint32_t n_chunks;
    bench_question questions[BENCH_CHUNKS];
    uint32_t n_questions;
} bench_sample;
void bench_sample_free(bench_sample *s);
/* For those who make samples. */
bool bench_sample_has(const bench_sample *s, const char *name);
void bench_sample_add(bench_sample *s, const bench_function *f);

/* May a function of this name be in a sample with the others? (The names' first tokens tell them apart.) */
typedef struct bench_accept {
    bool (*fn)(void *user, const bench_sample *s, const char *name);
    void *user;
} bench_accept;

/*
 * n_chunks functions with a mistake each: operator, constant or connective. false: the pool has no such
 * functions. Nothing is asked yet.
 */
bool bench_sample_mutate(
    bench_sample *ret, bench_pool *p, uint64_t seed, uint32_t n_chunks, const bench_accept *accept);

/*
 * Pieces of files of p that none of the sample's functions is from, n_bytes in all, and all chunks in an order that
 * the seed says.
 */
void bench_sample_surround(bench_sample *s, const bench_pool *p, uint64_t seed, size_t n_bytes);
/* A question for each mistake that is told by how its line begins: no other line of the sample begins so. */
void bench_sample_ask(bench_sample *s);

/*
 * n_chunks (at the end: fewer, at least two) of the programs of p (bench/structure/programs.h) that no sample had yet.
 * false: all had their sample.
 */
bool bench_sample_programs(
    bench_sample *ret, bench_pool *p, uint64_t seed, uint32_t n_chunks, const bench_accept *accept);

/* Functions of the pool and, for each, a line of another function that calls it. */
bool bench_sample_complete(bench_sample *ret, bench_pool *p, uint64_t seed, uint32_t n_chunks);
/* Consecutive chunks of about 512 tokens of whole files, until they have n_bytes; one question. */
bool bench_sample_read(bench_sample *ret, bench_pool *p, uint64_t seed, size_t n_bytes);

/* Does byte `at` of a line stand in code, and not in a comment or string? */
bool bench_is_code(const char *line, const char *at);

#endif
