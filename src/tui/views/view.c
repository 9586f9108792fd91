/*
 * The inspector's views in the order of their digits: the list in meson.build, from which the build makes
 * the rows below. A view's row stands at the end of its file.
 */
#include "tui/views/view.h"

const tui_view *const tui_views[] = {
#define VIEW(name) &tui_view_##name,
#include "tui/views.def"
#undef VIEW
    NULL,
};
