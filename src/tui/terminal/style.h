/*
 * How things look: eight semantic roles instead of colours, and the glyphs that say the same without colour.
 * The painter maps roles to whatever the terminal has; nothing else knows a colour.
 */
#ifndef KVIST_TUI_STYLE_H
#define KVIST_TUI_STYLE_H

#include <stdbool.h>
#include <stdint.h>

typedef enum tui_role {
    TUI_TEXT, /* the terminal's own foreground */
    TUI_USER,
    TUI_TOOL,
    TUI_OK,
    TUI_WARN,
    TUI_ERR,
    TUI_PROTECTED,
    TUI_EVICTED,
    TUI_PROMOTED,
    TUI_N_ROLES
} tui_role;

enum { TUI_BOLD = 1, TUI_DIM = 2, TUI_REVERSE = 4, TUI_UNDERLINE = 8 };

typedef struct tui_style {
    uint8_t role, attr;
} tui_style;

#define TUI_STYLE(r, a) ((tui_style){.role = (r), .attr = (a)})
#define TUI_PLAIN       TUI_STYLE(TUI_TEXT, 0)
#define TUI_FAINT       TUI_STYLE(TUI_TEXT, TUI_DIM)
#define TUI_STRONG      TUI_STYLE(TUI_TEXT, TUI_BOLD)

/* How a cell of the strip looks, by the rows of its tokens (tui_count_look). */
typedef enum tui_look {
    TUI_LOOK_NONE, /* beyond the end */
    TUI_LOOK_PROTECTED,
    TUI_LOOK_KEPT,
    TUI_LOOK_PARTLY,
    TUI_LOOK_HOST,
    TUI_LOOK_PROMOTED,
    TUI_LOOK_BARRED,
    TUI_LOOK_DEFERRED, /* not computed above the pivot */
    TUI_N_LOOKS
} tui_look;

/* What an engine across HTTP told of a token: of the newest request; or where its block is. */
typedef enum tui_told {
    TUI_TOLD_NONE, /* it was not sent */
    TUI_TOLD_FOUND,
    TUI_TOLD_COMPUTED,
    TUI_TOLD_SENT, /* found or computed: that is not told */
    TUI_TOLD_GPU,
    TUI_TOLD_HOST,
    TUI_TOLD_DISK,
    TUI_TOLD_GONE,
    TUI_TOLD_UNKNOWN,
    TUI_N_TOLD
} tui_told;

typedef struct tui_glyphs {
    const char *told[TUI_N_TOLD];
    const char *look[TUI_N_LOOKS];
    const char *horizontal, *vertical, *tee_down; /* rules */
    const char *closed, *open;                    /* a folded and an unfolded item */
    const char *bar_full, *bar_empty;
    const char *separator; /* between the footer's fields */
    const char *ellipsis, *bullet;
    bool braille; /* the history may draw with U+2800.. */
} tui_glyphs;

/*
 * utf8: what the locale can show. letters: NO_COLOR or a terminal without colours, where states need letters.
 */
const tui_glyphs *tui_glyphs_for(bool utf8, bool letters);

tui_style tui_look_style(tui_look s);
tui_style tui_told_style(tui_told t);

#endif
