#include "tui/terminal/palette.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* clang-format off */
static const short colours_256[TUI_N_BACKGROUNDS][TUI_N_ROLES] = {
    /*                           text user tool  ok warn  err protected evicted promoted */
    [TUI_BACKGROUND_UNKNOWN] = {   -1,  63,  29,  28, 130, 131,       98,    243,     163},
    [TUI_BACKGROUND_DARK]    = {   -1,  75,  37,  71, 172, 203,      110,    247,     176},
    [TUI_BACKGROUND_LIGHT]   = {   -1,  25,  23,  22,  94, 124,       61,    241,      90},
};
/* Eight colours are the terminal's own idea: on white its green, yellow and cyan are hardly seen. */
enum { RED = 1, GREEN = 2, YELLOW = 3, BLUE = 4, MAGENTA = 5, CYAN = 6 };
static const short colours_8[TUI_N_BACKGROUNDS][TUI_N_ROLES] = {
    [TUI_BACKGROUND_UNKNOWN] = {   -1, BLUE, CYAN, GREEN, YELLOW, RED, BLUE, -1, MAGENTA},
    [TUI_BACKGROUND_DARK]    = {   -1, CYAN, CYAN, GREEN, YELLOW, RED, CYAN, -1, MAGENTA},
    [TUI_BACKGROUND_LIGHT]   = {   -1, BLUE, BLUE,    -1,    RED, RED, BLUE, -1, MAGENTA},
};
/* clang-format on */

tui_background tui_background_of(const char *colorfgbg)
{
    const char *last = colorfgbg ? strrchr(colorfgbg, ';') : NULL;
    char *end;
    if (!last || !last[1]) return TUI_BACKGROUND_UNKNOWN;
    const long colour = strtol(last + 1, &end, 10);
    if (*end || end == last + 1 || colour < 0 || colour > 15) return TUI_BACKGROUND_UNKNOWN;
    return colour == 7 || colour > 8 ? TUI_BACKGROUND_LIGHT : TUI_BACKGROUND_DARK;
}

/* One part, of 1; below 0: it is none. *at moves behind it. */
static double part_of(const char *text, size_t n, size_t *at)
{
    static const char digits[] = "0123456789abcdef";
    unsigned value = 0, most = 0;
    for (; *at < n && most < 0xFFFF; (*at)++) {
        const char *digit = text[*at] ? strchr(digits, tolower((unsigned char)text[*at])) : NULL;
        if (!digit) break;
        value = value * 16 + (unsigned)(digit - digits);
        most = most * 16 + 15;
    }
    return most ? (double)value / most : -1;
}

tui_background tui_background_of_answer(const char *text, size_t n)
{
    static const double weight[] = {.2126, .7152, .0722};
    const size_t head = n > 5 && !memcmp(text, "rgba:", 5) ? 5 : n > 4 && !memcmp(text, "rgb:", 4) ? 4 : 0;
    double luminance = 0;
    size_t at = head;
    if (!head) return TUI_BACKGROUND_UNKNOWN;
    for (int k = 0; k < 3; k++) {
        const double part = part_of(text, n, &at);
        if (part < 0 || (k < 2 && (at >= n || text[at++] != '/'))) return TUI_BACKGROUND_UNKNOWN;
        luminance += weight[k] * (part <= .03928 ? part / 12.92 : pow((part + .055) / 1.055, 2.4));
    }
    if (at < n && text[at] != '/') return TUI_BACKGROUND_UNKNOWN;
    return luminance > .179 ? TUI_BACKGROUND_LIGHT : TUI_BACKGROUND_DARK;
}

short tui_palette_256(tui_background background, tui_role role)
{
    return colours_256[background][role];
}

short tui_palette_8(tui_background background, tui_role role)
{
    return colours_8[background][role];
}
