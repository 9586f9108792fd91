/*
 * The text of the sequence with a gutter, as tig blames a file: P protected, k 62% kept, E t12
 * evicted in turn 12, + t14 promoted, x barred. Behind it, where there is room, why most of the line's
 * protected rows are: call, signature, request, ... It shows exactly which lines the model can still see.
 */
#include <stdio.h>
#include <string.h>

#include "tui/views/view.h"

enum { GUTTER = 8, REASON = 10, WIDE = 60, MAX_LINE_TOKENS = 512 };

static bool ends_line(const tui_rows *r, uint32_t i)
{
    if (i + 1 >= r->n || r->row[i].source != r->row[i + 1].source) return true;
    base_buf b = {0};
    tui_rows_text(r, i, i + 1, &b);
    bool ends = b.data && strchr(b.data, '\n');
    base_buf_free(&b);
    return ends;
}

static uint32_t line_from(const tui_rows *r, uint32_t at)
{
    for (uint32_t n = 0; at > 0 && n < MAX_LINE_TOKENS && !ends_line(r, at - 1); n++) at--;
    return at;
}

static uint32_t line_to(const tui_rows *r, uint32_t at)
{
    uint32_t n = 0;
    while (at < r->n && n++ < MAX_LINE_TOKENS && !ends_line(r, at)) at++;
    return at < r->n ? at + 1 : (uint32_t)r->n;
}

/* The reason that most protected rows of the line have; "" when none is protected. */
static const char *line_reason(const tui_rows *r, uint32_t from, uint32_t to)
{
    uint32_t count[256] = {0}, most = 0;
    const tui_row *best = NULL;
    for (uint32_t i = from; i < to; i++) {
        const tui_row *row = &r->row[i];
        if (!row->lanes || !tui_row_protected(r, row) || !*tui_rows_protected_by(r, row)) continue;
        if (++count[row->protected_by] > most) {
            most = count[row->protected_by];
            best = row;
        }
    }
    return best ? tui_rows_protected_by(r, best) : "";
}

/* A line's text, its tabs as blanks; what does not fit is told by an ellipsis. */
static void put_text(tui_ui *u, tui_area a, int x, int y, tui_style style, const base_buf *text)
{
    base_buf shown = {0};
    for (size_t i = 0; i < text->len; i++) {
        if (text->data[i] == '\t')
            base_buf_puts(&shown, "    ");
        else if (text->data[i] != '\n')
            base_buf_putc(&shown, text->data[i]);
    }
    const char *ellipsis = u->glyphs->ellipsis;
    const int columns = shown.data ? tui_columns(shown.data, shown.len) : 0;
    const int last = a.width - tui_columns(ellipsis, strlen(ellipsis));
    if (shown.data) tui_put_n(a, x, y, style, shown.data, shown.len);
    if (x + columns > a.width && last > x) tui_put(a, last, y, TUI_FAINT, ellipsis);
    base_buf_free(&shown);
}

static void draw_line(tui_ui *u, tui_area a, int y, const tui_rows *r, uint32_t from, uint32_t to)
{
    tui_count c = tui_rows_count(r, from, to);
    tui_look look = tui_count_look(&c);
    uint32_t turn = 0;
    for (uint32_t i = from; i < to; i++) {
        uint32_t when = look == TUI_LOOK_PROMOTED ? r->row[i].promoted : r->row[i].changed;
        if (when > turn) turn = when;
    }
    char gutter[32] = "";
    switch (look) {
    case TUI_LOOK_PROTECTED: snprintf(gutter, sizeof gutter, "P"); break;
    case TUI_LOOK_PROMOTED: snprintf(gutter, sizeof gutter, "+ t%u", turn); break;
    case TUI_LOOK_BARRED: snprintf(gutter, sizeof gutter, "x t%u", turn); break;
    case TUI_LOOK_HOST: snprintf(gutter, sizeof gutter, "E t%u", turn); break;
    case TUI_LOOK_DEFERRED: snprintf(gutter, sizeof gutter, "~ t%u", turn); break;
    default:
        if (c.share < 0.995) snprintf(gutter, sizeof gutter, "k %.0f%%", c.share * 100);
    }
    tui_style style = tui_look_style(look);
    tui_put(a, 0, y, style, gutter);
    const bool is_wide = a.width >= WIDE;
    if (is_wide) {
        char reason[32];
        snprintf(reason, sizeof reason, "%.9s", line_reason(r, from, to));
        tui_put(a, GUTTER, y, tui_look_style(TUI_LOOK_PROTECTED), reason);
    }
    base_buf text = {0};
    tui_rows_text(r, from, to, &text);
    tui_style body = look == TUI_LOOK_HOST || look == TUI_LOOK_BARRED ? TUI_FAINT : TUI_PLAIN;
    put_text(u, a, GUTTER + (is_wide ? REASON : 0), y, body, &text);
    base_buf_free(&text);
}

static void draw_blame(tui_ui *u, tui_area a)
{
    const tui_rows *r = tui_ui_rows(u);
    u->page = a.height > 1 ? a.height - 1 : 1;
    if (r->n == 0 || a.height < 2) return;
    uint32_t at = u->at < r->n ? u->at : (uint32_t)r->n - 1, from = line_from(r, at);
    const tui_source *s = r->sources + r->row[at].source;
    char head[200];
    snprintf(head, sizeof head, "%s t%u %.150s", s->origin, s->turn, s->label);
    tui_put_short(a, 0, 0, a.width, TUI_FAINT, u->glyphs->ellipsis, head);
    uint32_t here = from;
    for (int i = 0; i < (a.height - 1) / 2 && from > 0; i++) from = line_from(r, from - 1);
    for (int y = 1; y < a.height && from < r->n; y++) {
        uint32_t to = line_to(r, from);
        draw_line(u, a, y, r, from, to);
        if (from == here)
            tui_restyle(a, y, a.width, u->focus == TUI_FOCUS_INSPECTOR ? TUI_REVERSE : TUI_BOLD);
        from = to;
    }
}

static bool blame_unit(tui_ui *u, uint32_t *from, uint32_t *to)
{
    const tui_rows *r = tui_ui_rows(u);
    if (r->n == 0) return false;
    uint32_t at = u->at < r->n ? u->at : (uint32_t)r->n - 1;
    *from = line_from(r, at);
    *to = line_to(r, at);
    return true;
}

static void blame_move(tui_ui *u, int64_t units)
{
    const tui_rows *r = tui_ui_rows(u);
    if (r->n == 0) return;
    uint32_t at = u->at < r->n ? u->at : (uint32_t)r->n - 1;
    if (units <= INT32_MIN || units >= INT32_MAX) {
        u->at = units < 0 ? 0 : (uint32_t)r->n - 1;
        return;
    }
    at = line_from(r, at);
    for (; units < 0 && at > 0; units++) at = line_from(r, at - 1);
    for (; units > 0; units--) {
        uint32_t next = line_to(r, at);
        if (next >= r->n) break;
        at = next;
    }
    u->at = at;
}

const tui_view tui_view_blame = {.name = "blame",
    .about = "the text, and what of it the model sees",
    .draw = draw_blame,
    .unit = blame_unit,
    .move = blame_move,
    .enter = TUI_VIEW_why,
    .reads = "A line is a line of text as the model got it. The mark in front: P stays by a rule, k 62% is "
             "seen in part, E t12 was set aside in turn 12, + t14 came back in turn 14, x was set aside by "
             "you; no mark: all of it is seen."};
