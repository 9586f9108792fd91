/* A list of allocations; see work.h. */
#include "kv/core/work.h"

#include <stdint.h>
#include <stdlib.h>

#include "base/mem.h"

typedef struct kv_work_item {
    struct kv_work_item *before;
    max_align_t items[];
} kv_work_item;

static void *keep(kv_work *w, kv_work_item *item)
{
    if (!item) {
        w->failed = true;
        return NULL;
    }
    item->before = w->last;
    w->last = item;
    return item->items;
}

/* Bytes of an item; SIZE_MAX, which nobody has, when they are too many to count. */
static size_t bytes_of(size_t n, size_t size)
{
    size_t n_bytes;
    return base_mul(n ? n : 1, size, &n_bytes) && n_bytes < SIZE_MAX / 2 ? sizeof(kv_work_item) + n_bytes
                                                                         : SIZE_MAX;
}

void *kv_work_take(kv_work *w, size_t n, size_t size)
{
    return keep(w, malloc(bytes_of(n, size)));
}

void *kv_work_zero(kv_work *w, size_t n, size_t size)
{
    return keep(w, calloc(1, bytes_of(n, size)));
}

float **kv_work_masses(
    kv_work *w, const model_lane_list *lists, uint32_t n_lanes, uint32_t first, uint32_t last)
{
    size_t n = 0;
    for (uint32_t lane = first; lane < last; lane++) n += lists[lane].n_rows;
    float **mass = kv_work_zero(w, n_lanes, sizeof *mass), *rows = kv_work_take(w, n, sizeof *rows);
    for (uint32_t lane = first; lane < last && mass && rows; rows += lists[lane++].n_rows) mass[lane] = rows;
    return mass;
}

void kv_work_free(kv_work *w)
{
    while (w->last) {
        kv_work_item *item = w->last;
        w->last = item->before;
        free(item);
    }
    w->failed = false;
}

int kv_fail_to_score(base_err *err, uint32_t n_rows)
{
    return base_fail(err, BASE_E_NOMEM, "no memory to score %u rows", n_rows);
}
