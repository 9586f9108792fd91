/* See rows.h. */
#include "model/ops/rows.h"

#include <stdatomic.h>

uint64_t model_rows_new_stamp(void)
{
    static _Atomic uint64_t last;
    return atomic_fetch_add(&last, 1) + 1;
}
