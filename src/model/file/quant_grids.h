/*
 * Tables of IQ1, IQ2 and IQ3 (quant_grids.c says what their numbers mean).
 */
#ifndef KVIST_MODEL_QUANT_GRIDS_H
#define KVIST_MODEL_QUANT_GRIDS_H

#include <stdint.h>

extern const uint16_t quant_grid_iq1[2048];
extern const uint16_t quant_grid_iq2_xxs[256];
extern const uint16_t quant_grid_iq2_xs[512];
extern const uint16_t quant_grid_iq2_s[1024];
extern const uint16_t quant_grid_iq3_xxs[256];
extern const uint16_t quant_grid_iq3_s[512];

#endif
