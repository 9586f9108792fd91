/*
 * The cursor in the units of the strip: a cell of it, which stands for u->strip_bin tokens.
 */
#include "tui/views/view.h"

bool tui_strip_unit(tui_ui *u, uint32_t *from, uint32_t *to)
{
    const tui_rows *r = tui_ui_rows(u);
    if (r->n == 0) return false;
    uint32_t bin = u->strip_bin ? u->strip_bin : 1;
    *from = u->at / bin * bin;
    if (*from >= r->n) *from = ((uint32_t)r->n - 1) / bin * bin;
    *to = *from + bin < r->n ? *from + bin : (uint32_t)r->n;
    return true;
}

void tui_strip_move(tui_ui *u, int64_t units)
{
    const tui_rows *r = tui_ui_rows(u);
    int64_t at = (int64_t)u->at + units * (int64_t)(u->strip_bin ? u->strip_bin : 1);
    if (units <= INT32_MIN || at < 0) at = 0;
    if (units >= INT32_MAX || at >= (int64_t)r->n) at = r->n ? (int64_t)r->n - 1 : 0;
    u->at = (uint32_t)at;
}
