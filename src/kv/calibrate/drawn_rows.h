/*
 * Rows that nobody computed: a compute whose forward pass draws rows and queries, so that a measurement over 32K
 * rows costs no prefill. All else is the model's own, and with `computes` the forward pass too.
 */
#ifndef KVIST_KV_DRAWN_ROWS_H
#define KVIST_KV_DRAWN_ROWS_H

#include "kv/core/compute.h"

typedef struct kv_drawn_rows {
    kv_compute of_model;
    uint64_t state;
    bool computes; /* from now on nothing is drawn */
} kv_drawn_rows;

/* rows lives as long as the sessions over it. */
kv_compute kv_drawn_compute(kv_drawn_rows *rows, model *m);

#endif
