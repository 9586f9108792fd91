/*
 * Which function does a request in plain words want to behave otherwise ("warn when the file is empty")? Functions and
 * methods outside of tests, ranked; what each score is made of was chosen on commits whose subjects are such requests
 * (scripts/bench-places). Any thread.
 */
#ifndef KVIST_CODE_RANK_H
#define KVIST_CODE_RANK_H

#include "code/history.h"
#include "code/index.h"

typedef struct code_ranked {
    char *path, *name; /* "Cls.method" */
    uint32_t line, line_end, from, to;
    double score; /* above 0; to be compared within one request only */
} code_ranked;

/* The k best, best first; returns how many. history: what was said of earlier changes; NULL: nothing is known. code_ranked_free. */
uint32_t code_index_rank(
    const code_index *x, const code_history *history, const char *request, uint32_t k, code_ranked **ret);
void code_ranked_free(code_ranked *ranked, uint32_t n);

#endif
