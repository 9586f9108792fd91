/*
 * IQ1, IQ2 and IQ3: blocks whose quants are rows of a grid (quant_grids.h). For quant.c only.
 */
#ifndef KVIST_MODEL_QUANT_IQ_H
#define KVIST_MODEL_QUANT_IQ_H

#include "model/file/quant.h"

/* As unpack_fn of quant.c; the outer scale is read there. */
void quant__unpack_iq1_s(const quant_format *f, const uint8_t *p, quant_block *ret);
void quant__unpack_iq1_m(const quant_format *f, const uint8_t *p, quant_block *ret);
void quant__unpack_iq2_xxs(const quant_format *f, const uint8_t *p, quant_block *ret);
void quant__unpack_iq2_xs(const quant_format *f, const uint8_t *p, quant_block *ret);
void quant__unpack_iq2_s(const quant_format *f, const uint8_t *p, quant_block *ret);
void quant__unpack_iq3_xxs(const quant_format *f, const uint8_t *p, quant_block *ret);
void quant__unpack_iq3_s(const quant_format *f, const uint8_t *p, quant_block *ret);

#endif
