/*
 * Active rows over the session's life: a line of braille dots (or columns where there is no braille),
 * the budget's line, and marks where rows were evicted and promoted.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/numbers.h"
#include "base/utf8.h"
#include "tui/views/view.h"

/* Bit of the dot at column x (0..1), row y (0..3) of a braille character. */
static const uint8_t braille_bit[4][2] = {{0x01, 0x08}, {0x02, 0x10}, {0x04, 0x20}, {0x40, 0x80}};

typedef struct plot {
    tui_area area;
    int columns, rows; /* dots */
    uint8_t *dots;     /* [area.height][area.width] */
} plot;

static void set_dot(plot *p, int x, int y)
{
    if (x < 0 || y < 0 || x >= p->columns || y >= p->rows) return;
    p->dots[(y / 4) * p->area.width + x / 2] |= braille_bit[y % 4][x % 2];
}

static void paint(const plot *p, bool braille, tui_style style)
{
    for (int y = 0; y < p->area.height; y++)
        for (int x = 0; x < p->area.width; x++) {
            uint8_t d = p->dots[y * p->area.width + x];
            if (!d) continue;
            char s[5] = {0};
            if (braille)
                base_utf8_encode(0x2800u + d, s);
            else
                s[0] = '*';
            tui_put(p->area, x, y, style, s);
        }
}

static void draw_history(tui_ui *u, tui_area a)
{
    const tui_rows *r = tui_ui_rows(u);
    char n[32];
    if (r->n_samples == 0 || a.height < 6 || a.width < 16) {
        tui_put(a, 0, 0, TUI_FAINT, "nothing has happened yet");
        return;
    }
    uint32_t budget = u->state.budget, top = budget;
    for (size_t i = 0; i < r->n_samples; i++)
        if (r->samples[i].active > top) top = r->samples[i].active;
    if (top < 1) top = 1;
    top += top / 16;
    int x0 = tui_printf(a, 0, 0, TUI_FAINT, "%s, 0 to %s",
        u->state.is_elsewhere ? "tokens of a request" : "rows a lane", base_thousands(top, n));
    if (budget) tui_printf(a, x0, 0, TUI_STYLE(TUI_WARN, 0), "; budget %s", base_thousands(budget, n));
    plot p = {.area = tui_area_within(a, 0, 1, a.width, a.height - 4)};
    p.columns = p.area.width * 2;
    p.rows = p.area.height * 4;
    p.dots = base_xcalloc((size_t)(p.area.width * p.area.height) + 1, 1);
    int limit = budget ? p.rows - 1 - (int)((uint64_t)budget * (uint64_t)(p.rows - 1) / top) : -1;
    if (limit >= 0) {
        tui_rule(p.area, 0, limit / 4, p.area.width, TUI_STYLE(TUI_WARN, TUI_DIM), u->glyphs->horizontal);
    }
    int before = -1, marks_y = a.height - 2;
    uint32_t turn = 0;
    size_t told = 0;
    for (int x = 0; x < p.columns; x++) {
        /* The newest sample at or before this column. */
        size_t i = r->n_samples == 1 ? 0 : (size_t)x * (r->n_samples - 1) / (size_t)(p.columns - 1);
        int y = p.rows - 1 - (int)((uint64_t)r->samples[i].active * (uint64_t)(p.rows - 1) / top);
        set_dot(&p, x, y);
        for (int k = before; before >= 0 && k != y; k += k < y ? 1 : -1) set_dot(&p, x, k);
        before = y;
        size_t next = r->n_samples == 1 ? 1 : (size_t)(x + 1) * (r->n_samples - 1) / (size_t)(p.columns - 1);
        for (size_t k = i; k < (next > i ? next : i + 1) && k < r->n_samples; k++) {
            if (k < told) continue; /* few samples: one takes several columns */
            told = k + 1;
            tui_look mark = r->samples[k].change == TUI_EVICTED_ROW    ? TUI_LOOK_HOST
                            : r->samples[k].change == TUI_PROMOTED_ROW ? TUI_LOOK_PROMOTED
                                                                       : TUI_LOOK_NONE;
            if (mark != TUI_LOOK_NONE)
                tui_put(a, x / 2, marks_y, tui_look_style(mark), mark == TUI_LOOK_HOST ? "E" : "+");
            if (r->samples[k].turn != turn && x / 2 + 4 < a.width) {
                turn = r->samples[k].turn;
                tui_printf(a, x / 2, marks_y + 1, TUI_FAINT, "t%u", turn);
            }
        }
    }
    paint(&p, u->glyphs->braille, TUI_STYLE(TUI_OK, 0));
    free(p.dots);
}

const tui_view tui_view_history = {.name = "history",
    .about = "how much is in view, over time",
    .draw = draw_history,
    .unit = tui_strip_unit,
    .move = tui_strip_move,
    .enter = TUI_VIEW_strip,
    .reads = "The curve is how many rows the model sees (on an engine elsewhere: tokens of a request), from "
             "the session's first step to the newest; the straight line is the budget. Below it E marks a "
             "step that set some aside, + one that brought some back, and t3 where turn 3 begins."};
