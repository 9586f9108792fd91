/* Making sketches; see sketch.h. */
#include "model/ops/sketch.h"

#include "model/file/quant.h"

enum { EIGHT = 8 };

size_t model_sketch_bytes(uint32_t n_lanes, uint32_t head_dim)
{
    return (n_lanes * model_sketch_lane_bytes(head_dim) + 63) / 64 * 64;
}

/* Eight dimensions of a lane's 256 keys, `stride` apart. */
static void make_eight(const uint16_t *keys, uint32_t stride, float *middle, float *step, uint8_t *codes)
{
    float x[MODEL_ROWS_BLOCK][EIGHT], low[EIGHT], high[EIGHT], inverse[EIGHT];
    for (uint32_t i = 0; i < EIGHT; i++) low[i] = high[i] = quant_f16_finite_to_f32(keys[i]);
    for (uint32_t r = 0; r < MODEL_ROWS_BLOCK; r++)
        for (uint32_t i = 0; i < EIGHT; i++) {
            const float v = x[r][i] = quant_f16_finite_to_f32(keys[(size_t)r * stride + i]);
            low[i] = v < low[i] ? v : low[i];
            high[i] = v > high[i] ? v : high[i];
        }
    for (uint32_t i = 0; i < EIGHT; i++) {
        step[i] = (high[i] - low[i]) / 15.0f;
        middle[i] = (high[i] + low[i]) / 2.0f;
        inverse[i] = step[i] > 0 ? 1.0f / step[i] : 0;
    }
    for (uint32_t r = 0; r < MODEL_ROWS_BLOCK; r++) {
        uint8_t code[EIGHT];
        for (uint32_t i = 0; i < EIGHT; i++) {
            const int place = (int)((x[r][i] - low[i]) * inverse[i] + 0.5f); /* from 0 to 15 */
            code[i] = (uint8_t)(place > 15 ? 15 : place);
        }
        uint8_t *to = codes + (size_t)(r / MODEL_SKETCH_ROWS) * (stride / EIGHT) * MODEL_SKETCH_PIECE +
                      (size_t)(r % MODEL_SKETCH_ROWS) * 4;
        for (uint32_t i = 0; i < 4; i++) to[i] = (uint8_t)(code[i] | code[4 + i] << 4);
    }
}

void model_sketch_make(uint32_t d, const uint32_t *lanes, uint32_t n, const uint16_t *block, uint8_t *ret)
{
    for (uint32_t part = 0; part < n; part++) {
        const uint32_t lane = lanes ? lanes[part] : part;
        const uint16_t *keys = block + (size_t)lane * 2 * MODEL_ROWS_BLOCK * d;
        float *numbers = (float *)(void *)(ret + part * model_sketch_lane_bytes(d));
        uint8_t *codes = (uint8_t *)(numbers + 2 * (size_t)d);
        for (uint32_t i = 0; i < d; i += EIGHT)
            make_eight(
                keys + i, d, numbers + i, numbers + d + i, codes + (size_t)i / EIGHT * MODEL_SKETCH_PIECE);
    }
}
