/*
 * Between device_rows.c and lists.c: the cache as the device has it. Nobody else includes this.
 *
 * A view's slot leads through its block's stamp to a place in the pool; the same row has the same place
 * whatever view names it. A lane's list on the device is places in order, and lane_state remembers which runs
 * of the view it was made from.
 */
#ifndef KVIST_CUDA_ROWS_H
#define KVIST_CUDA_ROWS_H

#include "cuda/backend.h"

enum { CUDA_LANES_MAX = 64 /* a layer's */ };

typedef struct row_block {
    uint64_t stamp;
    uint32_t *slots; /* [lanes][MODEL_ROWS_BLOCK], CUDA_NO_SLOT */
} row_block;

typedef struct lane_state {
    model_run *runs; /* as the device's list has them */
    size_t n_runs, cap_runs;
    uint32_t n_rows, n_common; /* n_common: of them, those that the view at hand begins with */
    uint64_t patched;          /* the flush that its last patch belongs to */
    uint32_t *free;            /* [n_slots] places, a stack */
    uint32_t n_free;
} lane_state;

/* A row in host memory. */
typedef struct row_source {
    const uint16_t *key, *value;
} row_source;

struct cuda_rows {
    model_rows_shape shape;
    uint32_t n_lanes;
    uint16_t *pool;
    size_t n_slots, pool_bytes;
    uint32_t *slots, *index, *n_rows; /* device: [lane][cap], [lane][cap], [lane] */
    size_t cap, list_bytes;
    lane_state *lanes;
    row_block **blocks; /* all that have rows here */
    size_t n_blocks, cap_blocks;
    row_block **table; /* the view's: [n_table] */
    uint64_t *stamps;
    size_t n_table, cap_table, cap_stamps;
    uint64_t made_up;    /* stamps for views without */
    row_source *sources; /* of the rows that are being gathered */
    size_t cap_sources;
};

static inline size_t cuda_rows_row_bytes(const cuda_rows *r)
{
    return 2 * r->shape.head_dim * sizeof(uint16_t);
}

/* Where the place of the view's row is noted; after cuda_rows_meet. */
static inline uint32_t *cuda_rows_place_of(const cuda_rows *r, uint32_t lane, uint32_t slot)
{
    return &r->table[slot / MODEL_ROWS_BLOCK]
                ->slots[(size_t)lane * MODEL_ROWS_BLOCK + slot % MODEL_ROWS_BLOCK];
}

/* Forgets what the lists on the device hold: each is sent whole the next time. */
void cuda_rows_forget_lists(cuda_rows *r);
/* The list's rows from ordinal `from` on that the pool does not hold. */
uint32_t cuda_rows_count_missing(
    const cuda_rows *r, const model_lane_list *list, uint32_t lane, uint32_t from);
/*
 * Places for the layer's rows from ordinals `from` (one a lane) on that the pool does not hold: the pool
 * grows while there is plenty of memory, else rows that no list names give theirs back.
 */
int cuda_rows_make_room(
    cuda_backend *c, const model_rows_view *view, uint32_t first, const uint32_t *from, base_err *err);
/* A place for a row that the pool does not hold; cuda_rows_make_room has seen to it that there is one. */
int cuda_rows_take_place(cuda_rows *r, uint32_t lane, uint32_t *ret, base_err *err);

#endif
