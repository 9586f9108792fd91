/*
 * Styled text broken into screen lines. A flow takes pieces of text with styles and ends lines at the width,
 * between words (prose) or anywhere (code); the result is kept by the caller, so that a message is broken
 * once per width, not once per frame.
 */
#ifndef KVIST_TUI_TEXT_H
#define KVIST_TUI_TEXT_H

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/show.h"
#include "tui/terminal/grid.h"

typedef struct tui_text_run {
    uint32_t at, n; /* bytes of the text's buffer */
    tui_style style;
} tui_text_run;

typedef struct tui_line {
    uint32_t first, n; /* runs */
} tui_line;

typedef struct tui_text {
    base_buf bytes;
    tui_text_run *runs;
    size_t n_runs, cap_runs;
    tui_line *lines;
    size_t n_lines, cap_lines;
} tui_text;

void tui_text_clear(tui_text *t);
void tui_text_free(tui_text *t);
void tui_text_draw(const tui_text *t, size_t line, tui_area a, int x, int y);

typedef struct tui_glyph tui_glyph;
typedef struct tui_flow {
    tui_text *text;
    int width;
    const char *first, *rest; /* prefix of the first line, and of all others; same columns */
    const char *wrap; /* prefix of a line that goes on with what did not fit the one above; NULL: rest */
    tui_style prefix_style;
    bool code; /* break anywhere, keep all blanks */
    /* private */
    tui_glyph *glyphs;
    size_t n_glyphs, cap_glyphs;
    bool started;
} tui_flow;

void tui_flow_add(tui_flow *f, tui_style style, const char *s, size_t n); /* '\n' ends a line */
/*
 * Lines whose cells end in tabs, as columns: each as wide as its widest cell, unless that takes more than half
 * of the width. Text without tabs is as it is.
 */
void tui_flow_table(tui_flow *f, tui_style style, const char *s, size_t n);
/* Foreign text that a person decides about, every byte of it visible (base_show); it ends no line. */
void tui_flow_show(tui_flow *f, tui_style style, const char *s, size_t n, base_show_form form);
void tui_flow_puts(tui_flow *f, tui_style style, const char *s);
void tui_flow_line(tui_flow *f); /* ends the line, also an empty one */
void tui_flow_end(tui_flow *f);  /* ends a line that holds something; frees what the flow holds */

#endif
