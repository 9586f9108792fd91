/*
 * A block of rows (rows.h) in 8 bits, a little over half its F16 bytes: keys with a lowest value and a step
 * per channel, since some of their channels are large and nearly constant (KIVI, 2024), values with them per
 * row.
 *
 *     block: [lane][ key low [head_dim] | key step [head_dim] | value low [256] | value step [256] | keys |
 *         values ]   F32, then bytes
 *
 * For evicted rows of a cache that is short of memory (kv/evict/tier.c): scoring reads the keys as they are
 * here, attention never does.
 */
#ifndef KVIST_MODEL_ROWS8_H
#define KVIST_MODEL_ROWS8_H

#include <stdbool.h>
#include <stdint.h>

#include "model/ops/rows.h"

/* Sums of squares: what rounding changed, and what there was (keys: about their channel's mean). */
typedef struct model_rows8_error {
    double key, key_all, value, value_all;
} model_rows8_error;

size_t model_rows8_bytes(const model_rows_shape *shape);
/*
 * block: all lanes, every slot in use. False, and nothing is added to sum, when a number in it is not finite.
 */
bool model_rows8_pack(
    const model_rows_shape *shape, const uint16_t *block, uint8_t *ret, model_rows8_error *sum);
/*
 * n rows of a lane from a slot of the block on, as F16. f16_row rounds n floats to nearest even (cpu.h);
 * NULL: in plain C, the same bits.
 */
typedef void model_f16_row_fn(const float *x, uint32_t n, uint16_t *out);
void model_rows8_keys(const model_rows_shape *shape, const uint8_t *packed, uint32_t lane, uint32_t slot,
    uint32_t n, model_f16_row_fn *f16_row, uint16_t *ret);
void model_rows8_values(const model_rows_shape *shape, const uint8_t *packed, uint32_t lane, uint32_t slot,
    uint32_t n, model_f16_row_fn *f16_row, uint16_t *ret);
/* The whole block. */
void model_rows8_unpack(const model_rows_shape *shape, const uint8_t *packed, uint16_t *block);

#endif
