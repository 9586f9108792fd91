/* Keys as queries; see keys.h. */
#include "kv/core/keys.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/ops/rows8.h"

float kv__float_of_half(uint16_t half)
{
    const int exponent = half >> 10 & 31;
    const float sign = half & 0x8000 ? -1.0f : 1.0f, fraction = (float)(half & 1023);
    if (exponent == 0) return sign * ldexpf(fraction, -24);
    if (exponent == 31) return fraction != 0 ? NAN : sign * INFINITY;
    return sign * ldexpf(1024 + fraction, exponent - 25);
}

float *kv__keys_as_queries(
    const kv_compute *compute, const model_rows_view *rows, const uint32_t *tokens, uint32_t n)
{
    const model_rows_shape *shape = &compute->shape;
    const uint32_t group = compute->n_head / shape->n_head_kv, d = shape->head_dim;
    float *queries = malloc((size_t)shape->n_layer * compute->n_head * n * d * sizeof *queries),
          *to = queries;
    uint16_t *unpacked = queries ? malloc(d * sizeof *unpacked) : NULL;
    if (!unpacked) {
        free(queries);
        return NULL;
    }
    for (uint32_t lane = 0; queries && lane < model_rows_lanes(shape); lane++)
        for (uint32_t g = 0; g < group; g++)
            for (uint32_t t = 0; t < n; t++) {
                const uint32_t b = tokens[t] / MODEL_ROWS_BLOCK, slot = tokens[t] % MODEL_ROWS_BLOCK;
                const uint16_t *key = unpacked;
                if (!rows->blocks[b] && !(rows->packed && rows->packed[b]) &&
                    !model_rows_filed(rows, tokens[t]))
                    memset(unpacked, 0, d * sizeof *unpacked);
                else if (rows->packed && rows->packed[b])
                    model_rows8_keys(&rows->shape, rows->packed[b], lane, slot, 1, NULL, unpacked);
                else
                    key = model_rows_key(rows, lane, tokens[t]);
                for (uint32_t i = 0; i < d; i++) *to++ = kv__float_of_half(key[i]);
            }
    free(unpacked);
    return queries;
}
