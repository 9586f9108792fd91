/*
 * The cell grid that every view paints. A cell holds one character with its combining marks; a wide character
 * owns two cells, the second of width 0. Painting clips to an area, so a view never checks the screen's size;
 * text that still holds a control character is shown as U+FFFD. Tests and --text read the grid as plain text;
 * the painter copies it to the terminal.
 */
#ifndef KVIST_TUI_GRID_H
#define KVIST_TUI_GRID_H

#include <stddef.h>

#include "base/buf.h"
#include "tui/terminal/style.h"

typedef struct tui_cell {
    char bytes[12];
    uint8_t n_bytes; /* 0: blank */
    uint8_t width;   /* 1, 2; 0: right half of a wide character */
    tui_style style;
} tui_cell;

typedef struct tui_grid {
    int width, height;
    int cursor_x, cursor_y; /* -1: hidden */
    tui_cell *cells;        /* [height][width] */
} tui_grid;

void tui_grid_resize(tui_grid *g, int width, int height); /* also clears */
void tui_grid_clear(tui_grid *g);
void tui_grid_free(tui_grid *g);
/* Rows without trailing blanks, each ended by a newline. */
void tui_grid_text(const tui_grid *g, base_buf *out);

/* A rectangle of a grid; coordinates inside it start at 0, 0. */
typedef struct tui_area {
    tui_grid *grid;
    int x, y, width, height;
} tui_area;

tui_area tui_grid_area(tui_grid *g);
tui_area tui_area_within(tui_area a, int x, int y, int width, int height); /* clipped to a */

/* Paints at x, y until the area's right edge; returns the columns taken. */
int tui_put(tui_area a, int x, int y, tui_style style, const char *s);
int tui_put_n(tui_area a, int x, int y, tui_style style, const char *s, size_t n);
int tui_printf(tui_area a, int x, int y, tui_style style, const char *format, ...)
    __attribute__((format(printf, 5, 6)));
/* As tui_put, but a text that does not fit into `width` columns ends in the ellipsis. */
int tui_put_short(tui_area a, int x, int y, int width, tui_style style, const char *ellipsis, const char *s);
void tui_rule(tui_area a, int x, int y, int width, tui_style style, const char *glyph);
void tui_blank(tui_area a);                                   /* fills with blanks */
void tui_restyle(tui_area a, int y, int width, uint8_t attr); /* adds attributes to a line's first cells */

/* One character with its combining marks at s (n >= 1): bytes taken, *width its columns. */
size_t tui_next_glyph(const char *s, size_t n, int *width);
int tui_columns(const char *s, size_t n);

#endif
