/*
 * Where the grammar took another token than the model wanted, in the turn that is shown.
 */
#include "tui/views/view.h"

static void draw_mask(tui_ui *u, tui_area a)
{
    const tui_state *s = &u->state;
    uint32_t turn = tui_ui_turn(u);
    int y = 1;
    tui_printf(a, 0, 0, TUI_FAINT, "where the grammar changed the choice in turn %u", turn);
    for (size_t i = 0; i < s->n_masks && y < a.height; i++) {
        const tui_mask *m = s->masks + i;
        if (m->turn != turn) continue;
        tui_printf(a, 0, y++, TUI_PLAIN, "%6u  wanted \"%s\"  took \"%s\"", m->index,
            m->wanted ? m->wanted : "", m->took ? m->took : "");
    }
    if (y == 1) tui_put(a, 0, 1, TUI_FAINT, "nowhere");
}

const tui_view tui_view_mask = {.name = "mask",
    .about = "where the grammar changed the choice",
    .draw = draw_mask,
    .unit = tui_strip_unit,
    .move = tui_strip_move,
    .enter = &tui_view_strip,
    .explain = tui_explain_mask};
