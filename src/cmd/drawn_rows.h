/*
 * Rows that nobody computed: a compute whose forward pass draws rows and queries, so that a bench over 32K
 * rows costs no prefill. Scoring is the model's own, and so are rows' shape and identity.
 */
#ifndef KVIST_BENCH_ROWS_H
#define KVIST_BENCH_ROWS_H

#include "kv/core/compute.h"

typedef struct bench_rows {
    model *model;
    const model_info *info;
    uint64_t state;
} bench_rows;

/* rows lives as long as the sessions over it. */
kv_compute bench_rows_compute(bench_rows *rows, model *m);

#endif
