#include "model/text/json_character.h"

#include <string.h>

static bool is_hex(uint8_t b)
{
    return (b >= '0' && b <= '9') || (b >= 'a' && b <= 'f') || (b >= 'A' && b <= 'F');
}

bool json_character_begin(uint8_t byte, uint8_t *character)
{
    if (byte < 0x20) return false;
    *character = PLAIN;
    if (byte == '\\')
        *character = ESCAPE;
    else if (byte >= 0xC2 && byte <= 0xDF)
        *character = UTF_1;
    else if (byte >= 0xE0 && byte <= 0xEF)
        *character = byte == 0xE0 ? UTF_E0 : byte == 0xED ? UTF_ED : UTF_2;
    else if (byte >= 0xF0 && byte <= 0xF4)
        *character = byte == 0xF0 ? UTF_F0 : byte == 0xF4 ? UTF_F4 : UTF_3;
    else if (byte >= 0x80)
        return false;
    return true;
}

bool json_character_step(uint8_t b, uint8_t *character)
{
    /* clang-format off */
    static const struct { uint8_t low, high, then; } follows[] = {
        [UTF_1]  = {0x80, 0xBF, PLAIN}, [UTF_2]  = {0x80, 0xBF, UTF_1}, [UTF_3]  = {0x80, 0xBF, UTF_2},
        [UTF_E0] = {0xA0, 0xBF, UTF_1}, [UTF_ED] = {0x80, 0x9F, UTF_1},
        [UTF_F0] = {0x90, 0xBF, UTF_2}, [UTF_F4] = {0x80, 0x8F, UTF_2},
    };
    static const uint8_t hex_then[] = {[HEX_4] = HEX_3, [HEX_3] = HEX_2, [HEX_3_OF_D] = HEX_2, [HEX_2] = HEX_1, [HEX_1] = PLAIN};
    /* clang-format on */
    const uint8_t c = *character;
    if (c >= UTF_1) {
        if (b < follows[c].low || b > follows[c].high) return false;
        *character = follows[c].then;
        return true;
    }
    if (c == ESCAPE) {
        if (!b || !strchr("\"\\/bfnrtu", b)) return false;
        *character = b == 'u' ? HEX_4 : PLAIN;
        return true;
    }
    if (!is_hex(b) || (c == HEX_3_OF_D && !(b >= '0' && b <= '7'))) return false;
    *character = c == HEX_4 && (b | 0x20) == 'd' ? HEX_3_OF_D : hex_then[c];
    return true;
}

uint32_t json_character_missing(uint8_t character)
{
    static const uint8_t missing[] = {[PLAIN] = 0,
        [ESCAPE] = 1,
        [HEX_4] = 4,
        [HEX_3] = 3,
        [HEX_3_OF_D] = 3,
        [HEX_2] = 2,
        [HEX_1] = 1,
        [UTF_1] = 1,
        [UTF_2] = 2,
        [UTF_3] = 3,
        [UTF_E0] = 2,
        [UTF_ED] = 2,
        [UTF_F0] = 3,
        [UTF_F4] = 3};
    return missing[character];
}
