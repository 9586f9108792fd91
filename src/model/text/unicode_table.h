/*
 * Properties of code points that pre-tokenizers ask for: letter (L*), upper case (Lu, Lt), lower case (Ll),
 * mark (M*), number (N*), white space (White_Space). A code point is of one of seven kinds; a two-level table
 * of nibbles, made by scripts/make-unicode-table, says which.
 */
#ifndef KVIST_MODEL_UNICODE_TABLE_H
#define KVIST_MODEL_UNICODE_TABLE_H

#include <stdint.h>

enum {
    UNICODE_LETTER = 1,
    UNICODE_NUMBER = 2,
    UNICODE_SPACE = 4,
    UNICODE_MARK = 8,
    UNICODE_UPPER = 16,
    UNICODE_LOWER = 32
};

extern const uint32_t unicode_n_index; /* blocks of 128 code points; later ones are as the last */
extern const uint16_t unicode_index[];
extern const uint8_t unicode_blocks[][64];

static inline unsigned unicode_flags(uint32_t cp)
{
    static const uint8_t flags[16] = {0, UNICODE_LETTER, UNICODE_NUMBER, UNICODE_LETTER | UNICODE_UPPER,
        UNICODE_SPACE, UNICODE_LETTER | UNICODE_LOWER, UNICODE_MARK};
    uint32_t at = cp >> 7;
    if (at >= unicode_n_index) at = unicode_n_index - 1;
    return flags[(unicode_blocks[unicode_index[at]][(cp & 127) >> 1] >> ((cp & 1) * 4)) & 15u];
}

#endif
