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

static void explain_mask(tui_ui *u, base_buf *out)
{
    size_t n = 0;
    for (size_t i = 0; i < u->state.n_masks; i++) n += u->state.masks[i].turn == tui_ui_turn(u);
    if (n)
        base_buf_printf(out, "In turn %u that happened %zu time%s.", tui_ui_turn(u), n, n == 1 ? "" : "s");
    else
        base_buf_printf(out, "In turn %u that never happened.", tui_ui_turn(u));
}

const tui_view tui_view_mask = {.name = "mask",
    .about = "where the grammar changed the choice",
    .draw = draw_mask,
    .unit = tui_strip_unit,
    .move = tui_strip_move,
    .enter = TUI_VIEW_strip,
    .reads =
        "A tool call has to be written in one exact form, so a grammar holds the model to it. A line is a "
        "place where the model wanted another token than the form allows: its number in the session, what it "
        "wanted, and what was taken.",
    .explain = explain_mask};
