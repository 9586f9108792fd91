/*
 * The glyph tables. Colour is never the only cue: each state of a row has its own character in every table.
 */
#include "tui/terminal/style.h"

/* clang-format off */
/*
 * Two things vary on their own: whether lines and marks may be drawn, and whether a row's state is a shade or
 * a letter.
 */
#define DRAWN \
    .horizontal = "\xe2\x94\x80", .vertical = "\xe2\x94\x82", .tee_down = "\xe2\x94\xac", \
    .closed = "\xe2\x96\xb8", .open = "\xe2\x96\xbe", .separator = " \xe2\x94\x82 ", .ellipsis = "\xe2\x80\xa6", \
    .bullet = "\xe2\x80\xa2", .braille = true
#define TYPED \
    .horizontal = "-", .vertical = "|", .tee_down = "+", \
    .closed = ">", .open = "v", .separator = " | ", .ellipsis = "...", \
    .bullet = "*", .braille = false
#define SHADES \
    .look = {" ", "\xe2\x96\x88", "\xe2\x96\x93", "\xe2\x96\x91", "\xc2\xb7", "+", "x", "~"}, \
    .told = {"\xc2\xb7", "\xe2\x96\x91", "\xe2\x96\x88", "?", "\xe2\x96\x88", "\xe2\x96\x93", "\xe2\x96\x91", "x", "?"}, \
    .bar_full = "\xe2\x96\x88", .bar_empty = "\xe2\x96\x91"
#define LETTERS \
    .look = {" ", "P", "=", "-", ".", "+", "x", "~"}, \
    .told = {".", "=", "#", "?", "G", "H", "D", "x", "?"}, .bar_full = "#", .bar_empty = "."
/* clang-format on */

static const tui_glyphs glyphs_utf8 = {DRAWN, SHADES};
static const tui_glyphs glyphs_utf8_letters = {DRAWN, LETTERS};
static const tui_glyphs glyphs_ascii = {TYPED, LETTERS};

const tui_glyphs *tui_glyphs_for(bool utf8, bool letters)
{
    if (!utf8) return &glyphs_ascii;
    return letters ? &glyphs_utf8_letters : &glyphs_utf8;
}

tui_style tui_told_style(tui_told t)
{
    static const tui_style styles[TUI_N_TOLD] = {
        [TUI_TOLD_NONE] = {TUI_EVICTED, 0},
        [TUI_TOLD_FOUND] = {TUI_OK, 0},
        [TUI_TOLD_COMPUTED] = {TUI_WARN, 0},
        [TUI_TOLD_SENT] = {TUI_TEXT, TUI_DIM},
        [TUI_TOLD_GPU] = {TUI_OK, 0},
        [TUI_TOLD_HOST] = {TUI_PROTECTED, 0},
        [TUI_TOLD_DISK] = {TUI_PROMOTED, 0},
        [TUI_TOLD_GONE] = {TUI_ERR, 0},
        [TUI_TOLD_UNKNOWN] = {TUI_TEXT, TUI_DIM},
    };
    return styles[t];
}

tui_style tui_look_style(tui_look s)
{
    static const tui_style styles[TUI_N_LOOKS] = {
        [TUI_LOOK_PROTECTED] = {TUI_PROTECTED, 0},
        [TUI_LOOK_HOST] = {TUI_EVICTED, 0},
        [TUI_LOOK_PROMOTED] = {TUI_PROMOTED, TUI_BOLD},
        [TUI_LOOK_BARRED] = {TUI_ERR, 0},
        [TUI_LOOK_DEFERRED] = {TUI_EVICTED, TUI_DIM},
    };
    return styles[s];
}
