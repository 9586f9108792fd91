/*
 * The terminal: opened once, painted with grids. Only painter.c and keys.c know curses. UI thread only.
 */
#ifndef KVIST_TUI_PAINTER_H
#define KVIST_TUI_PAINTER_H

#include "base/err.h"
#include "tui/terminal/grid.h"

int tui_painter_open(bool no_color, base_err *err);
void tui_painter_close(void);   /* also safe when it is not open */
bool tui_painter_utf8(void);    /* the locale shows UTF-8 */
bool tui_painter_colours(void); /* there are colours, and they are wanted */
void tui_painter_size(int *width, int *height);
void tui_painter_resized(void);            /* the window changed: asks the terminal again */
void tui_painter_paint(const tui_grid *g); /* one update of the terminal */
void tui_painter_repaint(void);            /* the next paint draws everything */
void tui_painter_leave(void);              /* to the normal screen for a while (editor, suspend) */
void tui_painter_return(void);
/* A sequence that paints nothing: the bell, a notification. */
void tui_painter_send(const char *text, size_t n);
void tui_painter_copy(const char *text, size_t n); /* OSC 52: to the clipboard of the person's own machine */

#endif
