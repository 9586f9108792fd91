/*
 * A sketch: a block's keys in 4 bits, a quarter of their bytes and in the form that products of bytes take.
 * Good enough to tell which rows a query weighs most, not to attend to them. Each dimension has its own scale
 * over the block's 256 keys, so the sketch is a function of the block alone:
 *
 *     key[i] is about middle[i] + step[i] * (code - 7.5),  code 0..15,  step = (largest - smallest) / 15
 *
 * Of the mass of the best 64 of 1,280 rows by exact keys, those that a sketch finds hold .997 on the small model
 * (worst lane .974; tests/model/test_sketch.c).
 *
 * By lane, of those that anybody reads evicted rows of: F32 middle [head_dim], F32 step [head_dim], then codes. Codes lie by 16 rows and eight dimensions
 * in 64 bytes: byte 4 r + i holds dimension i of row r in its low half and dimension 4 + i in its high half,
 * i < 4.
 */
#ifndef KVIST_MODEL_SKETCH_H
#define KVIST_MODEL_SKETCH_H

#include "model/ops/rows.h"

enum {
    MODEL_SKETCH_ROWS = 16,  /* of one group of codes */
    MODEL_SKETCH_PIECE = 64, /* bytes of a group's eight dimensions */
};

/* One lane's part. */
typedef struct model_sketch {
    const float *middle, *step;
    const uint8_t *codes; /* [16 groups][head_dim / 8][MODEL_SKETCH_PIECE] */
} model_sketch;

size_t model_sketch_bytes(uint32_t n_lanes, uint32_t head_dim); /* of one block; a multiple of 64 */

static inline size_t model_sketch_lane_bytes(uint32_t head_dim)
{
    return 2 * (size_t)head_dim * sizeof(float) + (size_t)MODEL_ROWS_BLOCK * head_dim / 2;
}

/* part: the lane's place among those in it. */
static inline model_sketch model_sketch_of(const uint8_t *sketch, uint32_t head_dim, uint32_t part)
{
    const uint8_t *at = sketch + part * model_sketch_lane_bytes(head_dim);
    const float *numbers = (const float *)(const void *)at;
    return (model_sketch){numbers, numbers + head_dim, at + 2 * (size_t)head_dim * sizeof(float)};
}

/* Number i of key `row` (0..255), as a sketch has it. */
static inline float model_sketch_number(const model_sketch *of, uint32_t head_dim, uint32_t row, uint32_t i)
{
    const uint8_t both =
        of->codes[((size_t)row / MODEL_SKETCH_ROWS * (head_dim / 8) + i / 8) * MODEL_SKETCH_PIECE +
                  row % MODEL_SKETCH_ROWS * 4 + i % 4];
    return of->middle[i] + of->step[i] * ((float)(i % 8 < 4 ? both & 15 : both >> 4) - 7.5f);
}

/*
 * Of the keys of these lanes of a block, their parts in the order given; lanes NULL: the first n of them. head_dim is a
 * multiple of 16. Of slots that hold no key the sketch is meaningless, and so are its scales.
 */
void model_sketch_make(
    uint32_t head_dim, const uint32_t *lanes, uint32_t n, const uint16_t *block, uint8_t *ret);
/* One lane's part, of keys that lie anywhere: [256], NULL where there is none, which leaves scales alone. At least one is there. */
void model_sketch_make_some(uint32_t head_dim, const uint16_t *const *keys, uint8_t *ret);

#endif
