/*
 * Memory for one piece of work, given back together: take what is needed, ask once whether all of it was
 * there, free it all. Any thread that owns the work.
 */
#ifndef KVIST_KV_WORK_H
#define KVIST_KV_WORK_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "model/ops/rows.h"

typedef struct kv_work {
    struct kv_work_item *last;
    bool failed; /* something was not there: its pointer is NULL */
} kv_work;

void *kv_work_take(kv_work *w, size_t n, size_t size); /* one item at least, whatever it holds */
void *kv_work_zero(kv_work *w, size_t n, size_t size);
/* [n_lanes]: for each lane of [first, last) a number a row of its list; NULL for the others. */
float **kv_work_masses(
    kv_work *w, const model_lane_list *lists, uint32_t n_lanes, uint32_t first, uint32_t last);
void kv_work_free(kv_work *w); /* empty, and usable again */
int kv_fail_to_score(
    base_err *err, uint32_t n_rows); /* BASE_E_NOMEM, with the sentence of all that scores rows */

#endif
