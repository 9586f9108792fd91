/*
 * Copies of listed rows that lie apart. What stays of a long text is scattered over its blocks, and reading a
 * row here and a row there takes nearly twice as long as reading as many that lie together. So an answer's
 * tokens read copies, one behind the other: the same numbers in the same order, hence the same bits. Of rows that are
 * folded the copies have the keys as they are read, so that no token turns them again.
 *
 * Copies lie in blocks of their own behind all places of the table; a list names them as it names other rows,
 * by slot and token index. Engine thread.
 */
#ifndef KVIST_KV_GATHER_H
#define KVIST_KV_GATHER_H

#include <stdbool.h>
#include <stdint.h>

#include "kv/core/compute.h"

typedef struct kv_gather kv_gather;

/* Copies lie in slots from first_block * MODEL_ROWS_BLOCK on. NULL: no memory. */
kv_gather *kv_gather_new(const kv_compute *compute, uint32_t first_block);
void kv_gather_free(kv_gather *g); /* NULL is fine */

/* Blocks that the scattered and folded rows of these lists below token `to` take, of the lanes in `which`. */
uint32_t kv_gather_blocks(const model_rows_view *rows, const bool *which, uint32_t to);
/* Room for as many blocks; false: no memory, and what was there stays. */
bool kv_gather_reserve(kv_gather *g, uint32_t n_blocks);
/*
 * The runs of a lane's list below token `to`, scattered and folded rows copied (there is room for them); the caller's.
 * *ret_n, *ret_rows: how many runs and rows. NULL: no memory.
 */
model_run *kv_gather_lane(kv_gather *g, const model_rows_view *rows, uint32_t lane, uint32_t to,
    uint32_t *ret_n, uint32_t *ret_rows);
size_t kv_gather_bytes(const kv_gather *g); /* that copies take; 0 of NULL */
/* `rows` with the copies: blocks and packed are the gather's own until its next call. False: no memory. */
bool kv_gather_show(kv_gather *g, model_rows_view *rows);

#endif
