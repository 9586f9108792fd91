/* Places in a lane's list of rows (rows.h). */
#ifndef KVIST_MODEL_LANE_LIST_H
#define KVIST_MODEL_LANE_LIST_H

#include "model/ops/rows.h"

/* The first ordinal whose token index is at least `index`; n_rows where there is none. */
static inline uint32_t model_lane_ordinal(const model_lane_list *list, uint32_t index)
{
    uint32_t ordinal = 0;
    for (uint32_t i = 0; i < list->n_runs; i++) {
        const model_run *run = &list->runs[i];
        if (run->index + run->n > index) return ordinal + (run->index >= index ? 0 : index - run->index);
        ordinal += run->n;
    }
    return ordinal;
}

#endif
