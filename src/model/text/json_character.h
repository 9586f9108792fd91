/*
 * Inside a JSON string: how the next byte is read. One byte of state that both grammars keep. UTF_x: x continuation
 * bytes to come; UTF_E0 and so on bound the first one (Unicode, table 3-7). Escaped surrogates are refused.
 */
#ifndef KVIST_MODEL_JSON_CHARACTER_H
#define KVIST_MODEL_JSON_CHARACTER_H

#include <stdbool.h>
#include <stdint.h>

typedef enum json_character {
    PLAIN,
    ESCAPE,
    HEX_4,
    HEX_3,
    HEX_3_OF_D, /* \uD..: only below \uD800 */
    HEX_2,
    HEX_1,
    UTF_1,
    UTF_2,
    UTF_3,
    UTF_E0,
    UTF_ED,
    UTF_F0,
    UTF_F4,
} json_character;

/* The first byte of a character, which is not the quote: what follows it. False: none begins like that. */
bool json_character_begin(uint8_t byte, uint8_t *character);
/* A byte of one that has begun (*character is not PLAIN); PLAIN behind its last. */
bool json_character_step(uint8_t byte, uint8_t *character);
/* Bytes that are missing to its end, at least. */
uint32_t json_character_missing(uint8_t character);

#endif
