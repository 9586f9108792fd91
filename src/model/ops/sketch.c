/* Making sketches; see sketch.h. */
#include "model/ops/sketch.h"

#include <string.h>

#include "model/file/quant.h"

enum { EIGHT = 8 };

size_t model_sketch_bytes(uint32_t n_lanes, uint32_t head_dim)
{
    return (n_lanes * model_sketch_lane_bytes(head_dim) + 63) / 64 * 64;
}

/* Eight dimensions, from `at` on, of a lane's 256 keys of d numbers. */
static void make_eight(
    const uint16_t *const *keys, uint32_t at, uint32_t d, float *middle, float *step, uint8_t *codes)
{
    float x[MODEL_ROWS_BLOCK][EIGHT], low[EIGHT], high[EIGHT], inverse[EIGHT];
    for (uint32_t r = 0; r < MODEL_ROWS_BLOCK; r++) {
        uint16_t eight[EIGHT];
        memcpy(eight, keys[r] + at, sizeof eight);
        for (uint32_t i = 0; i < EIGHT; i++) x[r][i] = quant_f16_finite_to_f32(eight[i]);
    }
    for (uint32_t i = 0; i < EIGHT; i++) low[i] = high[i] = x[0][i];
    for (uint32_t r = 0; r < MODEL_ROWS_BLOCK; r++)
        for (uint32_t i = 0; i < EIGHT; i++) {
            low[i] = x[r][i] < low[i] ? x[r][i] : low[i];
            high[i] = x[r][i] > high[i] ? x[r][i] : high[i];
        }
    for (uint32_t i = 0; i < EIGHT; i++) {
        step[i] = (high[i] - low[i]) / 15.0f;
        middle[i] = (high[i] + low[i]) / 2.0f;
        inverse[i] = step[i] > 0 ? 1.0f / step[i] : 0;
    }
    for (uint32_t r = 0; r < MODEL_ROWS_BLOCK; r++) {
        uint32_t code[EIGHT];
        for (uint32_t i = 0; i < EIGHT; i++) { /* from 0 to 15 */
            const float place = (x[r][i] - low[i]) * inverse[i] + 0.5f;
            code[i] = (uint32_t)(int32_t)(place < 15.5f ? place : 15.5f);
        }
        uint8_t *to = codes + (size_t)(r / MODEL_SKETCH_ROWS) * (d / EIGHT) * MODEL_SKETCH_PIECE +
                      (size_t)(r % MODEL_SKETCH_ROWS) * 4;
        for (uint32_t i = 0; i < 4; i++) to[i] = (uint8_t)(code[i] | code[4 + i] << 4);
    }
}

static void make_lane(uint32_t d, const uint16_t *const *keys, uint8_t *ret)
{
    float *numbers = (float *)(void *)ret;
    uint8_t *codes = (uint8_t *)(numbers + 2 * (size_t)d);
    for (uint32_t i = 0; i < d; i += EIGHT)
        make_eight(keys, i, d, numbers + i, numbers + d + i, codes + (size_t)i / EIGHT * MODEL_SKETCH_PIECE);
}

void model_sketch_make(uint32_t d, const uint32_t *lanes, uint32_t n, const uint16_t *block, uint8_t *ret)
{
    const uint16_t *keys[MODEL_ROWS_BLOCK];
    for (uint32_t part = 0; part < n; part++) {
        const uint32_t lane = lanes ? lanes[part] : part;
        for (uint32_t r = 0; r < MODEL_ROWS_BLOCK; r++)
            keys[r] = block + ((size_t)lane * 2 * MODEL_ROWS_BLOCK + r) * d;
        make_lane(d, keys, ret + part * model_sketch_lane_bytes(d));
    }
}

void model_sketch_make_some(uint32_t d, const uint16_t *const *some, uint8_t *ret)
{
    const uint16_t *keys[MODEL_ROWS_BLOCK], *any = NULL;
    for (uint32_t r = 0; r < MODEL_ROWS_BLOCK && !any; r++) any = some[r];
    for (uint32_t r = 0; r < MODEL_ROWS_BLOCK; r++) keys[r] = some[r] ? some[r] : any; /* widens no scale */
    make_lane(d, keys, ret);
}
