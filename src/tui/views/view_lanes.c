/*
 * The kept share of every lane (a layer's key-value head) over the sequence: lanes downwards, places
 * to the right, in five shades. Where lanes agree the columns are even; a lane that keeps something of its
 * own stands out.
 */
#include <stdio.h>

#include "base/mem.h"
#include "tui/views/view.h"

/* Active rows of one lane among tokens [from, to). */
static uint32_t count_lane(const tui_rows *r, uint32_t lane, uint32_t from, uint32_t to)
{
    uint32_t n = 0;
    for (uint32_t i = from; i < to; i++) n += tui_row_in_lane(r, i, lane);
    return n;
}

static const char *shade(const tui_glyphs *g, double share)
{
    static const char *const fine[] = {" ", "\xe2\x96\x91", "\xe2\x96\x92", "\xe2\x96\x93", "\xe2\x96\x88"};
    static const char *const plain[] = {" ", ".", "-", "=", "#"};
    int step = share <= 0 ? 0 : share >= 0.995 ? 4 : share < 1.0 / 3 ? 1 : share < 2.0 / 3 ? 2 : 3;
    return g->braille && g->bar_full[0] != '#' ? fine[step] : plain[step];
}

static void draw_lanes(tui_ui *u, tui_area a)
{
    const tui_rows *r = tui_ui_rows(u);
    enum { GUTTER = 8, NUMBER = 5 };
    int width = a.width - GUTTER - NUMBER, height = a.height - 2;
    if (u->state.is_elsewhere) {
        tui_put(a, 0, 0, TUI_FAINT, "lanes and scores are not visible on this engine");
        return;
    }
    if (r->n == 0 || width < 8 || height < 1) {
        tui_put(a, 0, 0, TUI_FAINT, r->n ? "too narrow for this view" : "nothing was read yet");
        return;
    }
    uint32_t n = (uint32_t)r->n, bin = (n + (uint32_t)width - 1) / (uint32_t)width;
    uint32_t group = (r->n_lanes + (uint32_t)height - 1) / (uint32_t)height;
    const int head =
        tui_printf(a, 0, 0, TUI_FAINT, "%u lanes, %u a line; %u places a cell", r->n_lanes, group, bin);
    if (u->state.n_windowed)
        tui_printf(
            a, head, 0, TUI_FAINT, "; %u more read the newest %u", u->state.n_windowed, u->state.window);
    int y = 1;
    for (uint32_t lane = 0; lane < r->n_lanes; lane += group, y++) {
        uint32_t end = lane + group < r->n_lanes ? lane + group : r->n_lanes;
        uint64_t kept = 0;
        char label[24];
        snprintf(label, sizeof label, group > 1 ? "%u-%u" : "%u", lane, end - 1);
        tui_put(a, 0, y, TUI_FAINT, label);
        for (uint32_t x = 0; x * bin < n; x++) {
            uint32_t from = x * bin, to = from + bin < n ? from + bin : n, here = 0;
            for (uint32_t l = lane; l < end; l++) here += count_lane(r, l, from, to);
            kept += here;
            tui_style style = TUI_PLAIN;
            if (u->focus == TUI_FOCUS_INSPECTOR && u->at >= from && u->at < to) style.attr |= TUI_REVERSE;
            tui_put(a, GUTTER + (int)x, y, style,
                shade(u->glyphs, (double)here / ((to - from) * (double)(end - lane))));
        }
        tui_printf(a, a.width - NUMBER + 1, y, TUI_FAINT, "%3.0f%%",
            100 * (double)kept / ((double)n * (end - lane)));
    }
}

const tui_view tui_view_lanes = {.name = "lanes",
    .about = "kept share by lane and place",
    .draw = draw_lanes,
    .unit = tui_strip_unit,
    .move = tui_strip_move,
    .enter = TUI_VIEW_why,
    .reads = "A line is one lane, or a few: a lane is what one head of one layer "
             "remembers. Left to right is the session: the darker a cell, the more "
             "of it they still see. The number is the share of the whole session."};
