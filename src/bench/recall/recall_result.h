/*
 * Results of niah and callsite as lines (bench/common/result_file.h), summed up with intervals. A line is
 * known by its text, split, K and condition.
 */
#ifndef KVIST_BENCH_RECALL_RESULT_H
#define KVIST_BENCH_RECALL_RESULT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/buf.h"
#include "base/err.h"

enum { BENCH_TARGETS = 16 };

typedef struct bench_result {
    char model[32], split[32], condition[48];
    uint32_t tokens, needles, base, text, k; /* base: B in percent of the document */
    uint32_t n_targets;
    bool found[BENCH_TARGETS];
    double before, after; /* share of the asked facts' rows that are active */
    double active, host;  /* rows per lane */
    double score_ms, plan_ms;
    /* of each asked fact's best row: how many evicted rows were asked for more */
    uint32_t n_ranks, ranks[BENCH_TARGETS];
} bench_result;

typedef struct bench_results {
    bench_result *items;
    size_t n, cap;
    FILE *out;        /* where new lines go too; NULL: nowhere */
    const char *name; /* of the bench, in each line */
} bench_results;

/*
 * Opens path for more; NULL: stdout. One that holds something already is refused, unless resume: then it is
 * read (a cut last line is left out).
 */
int bench_results_open(bench_results *r, const char *name, const char *path, bool resume, base_err *err);
/* Reads only. */
int bench_results_read(bench_results *r, const char *path, base_err *err);
void bench_results_close(bench_results *r);
/* The result of this key, with any K if so said; NULL: there is none. Valid until the next is added. */
const bench_result *bench_results_find(const bench_results *r, const bench_result *key, bool any_k);
/* Adds and writes one line at once. `answer` may be NULL. */
void bench_results_add(bench_results *r, const bench_result *one, const char *answer);

/* A table of conditions: targets found, interval, p against `matched` of the same K. */
void bench_results_print(const bench_results *r, FILE *out);

#endif
