/*
 * A frame: the whole screen as a grid of cells, from the shell's state.
 */
#ifndef KVIST_TUI_FRAME_H
#define KVIST_TUI_FRAME_H

#include "tui/ui.h"

/*
 * Paints everything into a grid that has the terminal's size already. What a later key needs to know of this
 * frame (lines of a page, how far the question was read) is noted in u.
 */
void tui_ui_draw(tui_ui *u, tui_grid *g);

#endif
