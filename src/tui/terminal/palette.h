/*
 * The colour of each role, by the terminal's background. Text has a contrast of 4.5:1 or more (WCAG 2, 1.4.3) on black, #1e1e1e
 * and Solarized's dark, or on white, #fafafa and Solarized's light. Where the background is not known, colours between: 4.4:1
 * or more on both black and white.
 */
#ifndef KVIST_TUI_PALETTE_H
#define KVIST_TUI_PALETTE_H

#include <stddef.h>

#include "tui/terminal/style.h"

typedef enum tui_background {
    TUI_BACKGROUND_UNKNOWN,
    TUI_BACKGROUND_DARK,
    TUI_BACKGROUND_LIGHT,
    TUI_N_BACKGROUNDS
} tui_background;

/* What COLORFGBG says ("15;0", "0;default;15": the last is the background); NULL and anything else: unknown. */
tui_background tui_background_of(const char *colorfgbg);
/*
 * What a terminal answers to "which is your background?" (OSC 11), behind the "]11;": "rgb:1e1e/1e1e/1e1e", one to four
 * hexadecimal digits a part, "rgba:" too. Dark is what white letters have the better contrast on (WCAG 2). Anything
 * else: unknown.
 */
tui_background tui_background_of_answer(const char *text, size_t n);
/* Of the 256 colours, or of the 8; -1: the terminal's own foreground. */
short tui_palette_256(tui_background background, tui_role role);
short tui_palette_8(tui_background background, tui_role role);

#endif
