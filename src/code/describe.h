/*
 * Which definition does a description mean ("the macro that limits the recursion of the parser")? Definitions of every kind, ranked.
 * Any thread.
 */
#ifndef KVIST_CODE_DESCRIBE_H
#define KVIST_CODE_DESCRIBE_H

#include "code/index.h"

typedef struct code_described {
    char *path, *name; /* "Cls.method" */
    double share;      /* of the best one's score: 1 for the first */
} code_described;

/*
 * The k best, best first, each name once; returns how many. request: what the description was taken from, whole, for what it
 * states of the code ("that nobody calls"; traits.h). code_described_free.
 */
uint32_t code_index_describe(
    const code_index *x, const char *description, const char *request, uint32_t k, code_described **ret);
void code_described_free(code_described *all, uint32_t n);

#endif
