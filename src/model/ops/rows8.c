/* Rows in 8 bits; see rows8.h. */
#include "model/ops/rows8.h"

#include <math.h>
#include <string.h>

#include "model/file/quant.h"

enum { SLOTS = MODEL_ROWS_BLOCK, MOST_DIM = 1024 };

/* Where the parts of a lane lie. */
typedef struct lane8 {
    float *key_low, *key_step, *value_low, *value_step;
    uint8_t *keys, *values;
} lane8;

static size_t lane_bytes(uint32_t d)
{
    return 2 * ((size_t)d + SLOTS) * sizeof(float) + 2 * (size_t)SLOTS * d;
}

static lane8 lane_at(const model_rows_shape *shape, const uint8_t *packed, uint32_t lane)
{
    const uint32_t d = shape->head_dim;
    uint8_t *at = (uint8_t *)(uintptr_t)packed + lane * lane_bytes(d);
    float *numbers = (float *)(void *)at; /* lanes are multiples of four bytes */
    uint8_t *bytes = at + 2 * ((size_t)d + SLOTS) * sizeof(float);
    return (lane8){numbers, numbers + d, numbers + 2 * (size_t)d, numbers + 2 * (size_t)d + SLOTS, bytes,
        bytes + (size_t)SLOTS * d};
}

size_t model_rows8_bytes(const model_rows_shape *shape)
{
    return model_rows_lanes(shape) * lane_bytes(shape->head_dim);
}

/* n numbers. Adds to the sums what rounding changes and, about the mean or about 0, what there is. */
static bool pack_series(const float *x, uint32_t n, bool about_mean, float *low, float *step, uint8_t *q,
    double *changed, double *all)
{
    float least = x[0], most = x[0];
    double mean = 0;
    for (uint32_t i = 0; i < n; i++) {
        const float v = x[i];
        if (!isfinite(v)) return false;
        least = v < least ? v : least;
        most = v > most ? v : most;
        mean += v;
    }
    mean = about_mean ? mean / n : 0;
    *low = least;
    *step = (most - least) / 255.0f;
    for (uint32_t i = 0; i < n; i++) {
        const float v = x[i];
        const float place = *step > 0 ? (v - least) / *step + 0.5f : 0;
        const uint8_t byte = place >= 255 ? 255 : (uint8_t)place;
        const double off = v - (double)(least + *step * (float)byte);
        q[i] = byte;
        *changed += off * off;
        *all += (v - mean) * (v - mean);
    }
    return true;
}

bool model_rows8_pack(
    const model_rows_shape *shape, const uint16_t *block, uint8_t *ret, model_rows8_error *sum)
{
    const uint32_t d = shape->head_dim;
    model_rows8_error e = {0};
    float rows[SLOTS];
    if (d > MOST_DIM) return false;
    for (uint32_t lane = 0; lane < model_rows_lanes(shape); lane++) {
        const uint16_t *keys = block + (size_t)lane * 2 * SLOTS * d, *values = keys + (size_t)SLOTS * d;
        const lane8 to = lane_at(shape, ret, lane);
        uint8_t bytes[SLOTS];
        for (uint32_t c = 0; c < d; c++) {
            for (uint32_t s = 0; s < SLOTS; s++) rows[s] = quant_f16_to_f32(keys[(size_t)s * d + c]);
            if (!pack_series(rows, SLOTS, true, &to.key_low[c], &to.key_step[c], bytes, &e.key, &e.key_all))
                return false;
            for (uint32_t s = 0; s < SLOTS; s++) to.keys[(size_t)s * d + c] = bytes[s];
        }
        for (uint32_t s = 0; s < SLOTS; s++) {
            float row[MOST_DIM] = {0};
            for (uint32_t c = 0; c < d; c++) row[c] = quant_f16_to_f32(values[(size_t)s * d + c]);
            if (!pack_series(row, d, false, &to.value_low[s], &to.value_step[s], to.values + (size_t)s * d,
                    &e.value, &e.value_all))
                return false;
        }
    }
    sum->key += e.key;
    sum->key_all += e.key_all;
    sum->value += e.value;
    sum->value_all += e.value_all;
    return true;
}

static void to_f16(const float *x, uint32_t n, model_f16_row_fn *f16_row, uint16_t *out)
{
    if (f16_row)
        f16_row(x, n, out);
    else
        for (uint32_t i = 0; i < n; i++) out[i] = quant_f32_to_f16(x[i]);
}

void model_rows8_keys(const model_rows_shape *shape, const uint8_t *packed, uint32_t lane, uint32_t slot,
    uint32_t n, model_f16_row_fn *f16_row, uint16_t *ret)
{
    const uint32_t d = shape->head_dim;
    const lane8 from = lane_at(shape, packed, lane);
    float row[MOST_DIM];
    for (uint32_t s = slot; s < slot + n; s++, ret += d) {
        const uint8_t *q = from.keys + (size_t)s * d;
        for (uint32_t c = 0; c < d; c++) row[c] = from.key_low[c] + from.key_step[c] * (float)q[c];
        to_f16(row, d, f16_row, ret);
    }
}

void model_rows8_values(const model_rows_shape *shape, const uint8_t *packed, uint32_t lane, uint32_t slot,
    uint32_t n, model_f16_row_fn *f16_row, uint16_t *ret)
{
    const uint32_t d = shape->head_dim;
    const lane8 from = lane_at(shape, packed, lane);
    float row[MOST_DIM];
    for (uint32_t s = slot; s < slot + n; s++, ret += d) {
        const uint8_t *q = from.values + (size_t)s * d;
        for (uint32_t c = 0; c < d; c++) row[c] = from.value_low[s] + from.value_step[s] * (float)q[c];
        to_f16(row, d, f16_row, ret);
    }
}

void model_rows8_unpack(const model_rows_shape *shape, const uint8_t *packed, uint16_t *block)
{
    const size_t half = (size_t)SLOTS * shape->head_dim;
    for (uint32_t lane = 0; lane < model_rows_lanes(shape); lane++, block += 2 * half) {
        model_rows8_keys(shape, packed, lane, 0, SLOTS, NULL, block);
        model_rows8_values(shape, packed, lane, 0, SLOTS, NULL, block + half);
    }
}
