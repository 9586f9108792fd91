/*
 * Rows that nobody computed: a compute whose forward pass draws rows and queries, so that a measurement over 32K
 * rows costs no prefill. Scoring is the model's own, and so are rows' shape and identity.
 */
#ifndef KVIST_KV_DRAWN_ROWS_H
#define KVIST_KV_DRAWN_ROWS_H

#include "kv/core/compute.h"

typedef struct kv_drawn_rows {
    model *model;
    const model_info *info;
    uint64_t state;
} kv_drawn_rows;

/* rows lives as long as the sessions over it. */
kv_compute kv_drawn_compute(kv_drawn_rows *rows, model *m);

#endif
