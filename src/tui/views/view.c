/*
 * The inspector's views in the order of their digits: the list in meson.build, from which the build makes
 * the rows below. A view's row stands at the end of its file.
 */

#include "tui/views/view.h"

const tui_view *const tui_views[TUI_N_VIEWS] = {
#define VIEW(name) &tui_view_##name,
#include "tui/views.def"
#undef VIEW
};

bool tui_view_unit(tui_ui *u, uint32_t *from, uint32_t *to)
{
    *from = *to = 0;
    return tui_views[u->view == TUI_VIEW_why ? u->view_before : u->view]->unit(u, from, to);
}
