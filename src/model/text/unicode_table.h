/*
 * Three properties of code points that pre-tokenizers ask for: letter (L*), number (N*), white space
 * (White_Space). A two-level table of nibbles, made by scripts/make-unicode-table.
 */
#ifndef KVIST_MODEL_UNICODE_TABLE_H
#define KVIST_MODEL_UNICODE_TABLE_H

#include <stdint.h>

enum { UNICODE_LETTER = 1, UNICODE_NUMBER = 2, UNICODE_SPACE = 4 };

extern const uint32_t unicode_n_index; /* blocks of 128 code points; later ones are as the last */
extern const uint16_t unicode_index[];
extern const uint8_t unicode_blocks[][64];

static inline unsigned unicode_flags(uint32_t cp)
{
    uint32_t at = cp >> 7;
    if (at >= unicode_n_index) at = unicode_n_index - 1;
    return (unicode_blocks[unicode_index[at]][(cp & 127) >> 1] >> ((cp & 1) * 4)) & 15u;
}

#endif
