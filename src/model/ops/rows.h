/*
 * What attention may read: per lane a live list over blocks of rows that somebody else (kv/) owns.
 *
 * A row is the K and V vectors of one token in one lane (layer * n_head_kv + kv_head), F16. Rows live in
 * blocks of MODEL_ROWS_BLOCK slots; inside a block every lane has its own contiguous run of keys, then of
 * values:
 *
 *     block: [lane][ K: slot 0..255 of head_dim | V: slot 0..255 of head_dim ]   (F16)
 *
 * A block that lies in a row file (kv/rows/filed.h) has its rows one after the other instead, [slot][lane][K | V].
 *
 * slot = block * MODEL_ROWS_BLOCK + place in the block. A live list is a sequence of runs, ascending by token
 * index; runs of one list never overlap. Ordinal o is the o-th row of the list; attention walks tiles of
 * MODEL_ROWS_TILE ordinals counted from 0 and merges them in ascending order. That, and one order of
 * summation per product, makes a result the same bits for every batch shape and thread count.
 */
#ifndef KVIST_MODEL_ROWS_H
#define KVIST_MODEL_ROWS_H

#include <stddef.h>
#include <stdint.h>

enum { MODEL_ROWS_BLOCK = 256, MODEL_ROWS_TILE = 256, MODEL_ROWS_GROUP = 64 };

/* `n` rows in consecutive slots with consecutive token indices. A run never crosses a block. */
typedef struct model_run {
    uint32_t slot;  /* the first row's */
    uint32_t index; /* the first row's place in the session's token sequence */
    uint32_t n;
} model_run;

typedef struct model_lane_list {
    const model_run *runs;
    uint32_t n_runs;
    uint32_t n_rows; /* sum over runs */
} model_lane_list;

typedef struct model_rows_shape {
    uint32_t n_layer, n_head_kv,
        head_dim; /* keys and values have the same size in the supported architectures */
} model_rows_shape;

static inline uint32_t model_rows_lanes(const model_rows_shape *s)
{
    return s->n_layer * s->n_head_kv;
}

/* Bytes of one block, all lanes. */
static inline size_t model_rows_block_bytes(const model_rows_shape *s)
{
    return (size_t)model_rows_lanes(s) * MODEL_ROWS_BLOCK * s->head_dim * 2u * sizeof(uint16_t);
}

typedef struct model_rows_view {
    model_rows_shape shape;
    uint16_t *const *blocks; /* [n_blocks] */
    uint32_t n_blocks;
    const model_lane_list *lanes; /* [model_rows_lanes]; lists that agree may share their runs */
    /*
     * [n_blocks] blocks that are in 8 bits (rows8.h), NULL for those that are not; NULL: none is. Only
     * scoring reads such rows; attention's lists have none.
     */
    uint8_t *const *packed;
    /*
     * [n_blocks] blocks whose rows lie one after the other, in read-only memory; NULL for those that do not; NULL: none
     * does. Written are only rows of the others.
     */
    uint16_t *const *filed;
    /*
     * [n_blocks] a number for what a block holds, that no other block and no other contents of this one ever
     * had or will have (model_rows_new_stamp); rows that the model writes do not change it. By it a backend
     * knows rows that it has copied. NULL: any row may have changed since the last call.
     */
    const uint64_t *stamps;
    /*
     * [n_gaps] the fold (docs/kv.md, A session without an end): rows of token index i are read as if their
     * phase were larger by gaps[i / MODEL_ROWS_GROUP], in layers without a window. 0, and behind n_gaps: as
     * they are.
     */
    const uint32_t *gaps;
    uint32_t n_gaps;
    uint32_t turned_from; /* keys in slots from here on are turned already (model_turn_rows); 0: none is */
} model_rows_view;

uint64_t model_rows_new_stamp(void);

/* The gap of a token's row. */
static inline uint32_t model_rows_gap(const model_rows_view *v, uint32_t index)
{
    return index / MODEL_ROWS_GROUP < v->n_gaps ? v->gaps[index / MODEL_ROWS_GROUP] : 0;
}

/* Pages (64 slots) whose values one mean stands for where they stay closed: a block's. */
enum { MODEL_CHAPTER = 4 };

/*
 * What stands for a lane's evicted rows where tokens open some of their pages only.
 */
typedef struct model_pages {
    /*
     * [pages / 256] sketches (sketch.h) of the mean keys of the pages' evicted rows, turned as those are read (ops.h,
     * ops_turns); NULL: the lane has no more pages than are opened, and no more is told of them
     */
    const uint8_t *sketches;
    const uint16_t *some; /* [pages / 16] bits of the pages that have evicted rows */
    const float *counts;  /* [pages, up to a multiple of 16] evicted rows of each */
    /* [pages / MODEL_CHAPTER][head_dim] F16, of the evicted rows' values; read where model_visit has means */
    const uint16_t *chapters;
} model_pages;

/*
 * Evicted rows that the tokens of a batch read beside the live lists, each token its own (ops.h, visit), in
 * one layer. Slots and token indices are equal here. All arrays are the caller's.
 */
typedef struct model_visit {
    const model_rows_view *rows;    /* the lists that every token reads, the batch's rows last */
    const uint64_t *const *evicted; /* [n_head_kv] bits of the rows to choose from; NULL: none in that lane */
    const uint8_t *const *sketches; /* [block] sketch.h; NULL: rows of that block are weighed by their keys */
    uint32_t n_unsketched;          /* lanes in front of the layer's that have no part in a sketch */
    const uint16_t *const *means;   /* [n_head_kv] -> [slot / 64][head_dim] F16, of the evicted rows' values;
                                          NULL: nothing stands in for those that nobody chose */
    const model_pages *pages;       /* [n_head_kv] */
    uint32_t open;                  /* pages of 64 slots that a token looks into; 0: all */
    uint32_t n_slots;               /* evicted rows lie below */
    uint32_t most;                  /* rows that visit a token in a lane, at most MODEL_ROWS_TILE */
    uint32_t *chosen;               /* [n_head_kv][n][most] filled in: who visits, ascending */
    uint32_t *n_chosen;             /* [n_head_kv][n] */
    /* [n_head_kv][n_opened] words, bits added to what is there: blocks into whose sketch a token looked; NULL: nobody asks */
    uint64_t *opened;
    uint32_t n_opened;
} model_visit;

static inline uint16_t *model_rows_filed(const model_rows_view *v, uint32_t slot)
{
    return v->filed ? v->filed[slot / MODEL_ROWS_BLOCK] : NULL;
}

/* From a slot's key to the next one's of its lane and block, and from a key to its value, in elements. */
static inline size_t model_rows_pitch(const model_rows_view *v, uint32_t slot)
{
    return model_rows_filed(v, slot) ? (size_t)model_rows_lanes(&v->shape) * 2u * v->shape.head_dim
                                     : v->shape.head_dim;
}

static inline size_t model_rows_to_value(const model_rows_view *v, uint32_t slot)
{
    return model_rows_filed(v, slot) ? v->shape.head_dim : (size_t)MODEL_ROWS_BLOCK * v->shape.head_dim;
}

static inline uint16_t *model_rows_key(const model_rows_view *v, uint32_t lane, uint32_t slot)
{
    uint16_t *filed = model_rows_filed(v, slot);
    if (filed)
        return filed + slot % MODEL_ROWS_BLOCK * model_rows_pitch(v, slot) +
               (size_t)lane * 2u * v->shape.head_dim;
    return v->blocks[slot / MODEL_ROWS_BLOCK] +
           ((size_t)lane * 2u * MODEL_ROWS_BLOCK + slot % MODEL_ROWS_BLOCK) * v->shape.head_dim;
}

static inline uint16_t *model_rows_value(const model_rows_view *v, uint32_t lane, uint32_t slot)
{
    return model_rows_key(v, lane, slot) + model_rows_to_value(v, slot);
}

#endif
