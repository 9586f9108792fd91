/*
 * How full the cache is, every position of the sequence as one strip, what stands under the cursor,
 * and the ledger of the turn with the reason for what was evicted.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/numbers.h"
#include "tui/views/view.h"

/* At most `rows` lines; returns those used. */
static int put_bins(tui_ui *u, tui_area a, const tui_rows *r, int rows)
{
    uint32_t n = (uint32_t)r->n, cells = (uint32_t)(a.width * rows);
    u->strip_columns = a.width;
    u->strip_bin = n > cells ? (n + cells - 1) / cells : 1;
    bool focused = u->focus == TUI_FOCUS_INSPECTOR;
    for (uint32_t bin = 0; bin * u->strip_bin < n; bin++) {
        uint32_t from = bin * u->strip_bin, to = from + u->strip_bin;
        tui_count c = tui_rows_count(r, from, to);
        tui_look look = tui_count_look(&c);
        tui_style style = tui_look_style(look);
        if (from < u->state.folded_to) style.attr |= TUI_UNDERLINE;
        if (focused && u->at >= from && u->at < to) style.attr |= TUI_REVERSE;
        tui_put(
            a, (int)(bin % (uint32_t)a.width), (int)(bin / (uint32_t)a.width), style, u->glyphs->look[look]);
    }
    return (int)((n + u->strip_bin - 1) / u->strip_bin + (uint32_t)a.width - 1) / a.width;
}

/* Under two strips: where their sides have other rows. */
static void put_marks(tui_ui *u, tui_area a, const tui_rows *r, const tui_rows *other)
{
    const uint32_t n = (uint32_t)r->n, bin = u->strip_bin;
    for (uint32_t from = 0, i = 0; from < n; from += bin, i++) {
        const tui_count x = tui_rows_count(r, from, from + bin), y = tui_rows_count(other, from, from + bin);
        if (x.active < y.active || x.active > y.active)
            tui_put(
                a, (int)(i % (uint32_t)a.width), (int)(i / (uint32_t)a.width), TUI_STYLE(TUI_WARN, 0), "^");
    }
}

static void put_settings(const tui_ui *u, tui_area a, int y, const char *side, const char *settings)
{
    const int x = tui_put(a, 0, y, TUI_FAINT, side);
    tui_put_short(
        a, x, y, a.width - x, TUI_FAINT, u->glyphs->ellipsis, settings ? settings : "other settings");
}

/* What was recorded, what the other settings make of it, and where the two differ. */
static int put_two_strips(tui_ui *u, tui_area a, const tui_rows *r, int rows)
{
    tui_beside *b = u->beside;
    tui_rows_update(&b->rows, b->state.journal, b->state.n_lanes, UINT32_MAX);
    int y = 0;
    put_settings(u, a, y++, "as recorded: ", u->state.what_if_original);
    y += put_bins(u, tui_area_within(a, 0, y, a.width, rows), &b->rows, rows);
    put_settings(u, a, y++, "^ differs, with ", u->state.what_if_changed);
    const int used = put_bins(u, tui_area_within(a, 0, y, a.width, rows), r, rows);
    y += used;
    put_marks(u, tui_area_within(a, 0, y, a.width, used), r, &b->rows);
    return y + used;
}

/* What most tokens of a cell are. */
static tui_told most_of(const uint8_t *told, uint32_t n)
{
    uint32_t count[TUI_N_TOLD] = {0};
    int best = 0;
    for (uint32_t i = 0; i < n; i++) count[told[i]]++;
    for (int k = 0; k < TUI_N_TOLD; k++)
        if (count[k] > count[best]) best = k;
    return (tui_told)best;
}

/* A legend's entry at x; returns the x behind it, or x where it does not fit. */
static int put_entry(tui_area a, int x, int y, tui_style style, const char *glyph, const char *name)
{
    const int width = (int)strlen(name) + 2; /* the glyph, a blank, the name */
    if (x + width > a.width) return x;
    x += tui_put(a, x, y, style, glyph);
    return x + 1 + tui_put(a, x + 1, y, TUI_FAINT, name) + 1;
}

/* Of an engine elsewhere: what the newest request found there, or where it keeps all that; below it the legend. */
static int put_told(tui_ui *u, tui_area a, const tui_rows *r, int rows)
{
    const uint32_t n = (uint32_t)r->n, bin = u->strip_bin;
    uint8_t *told = base_xcalloc(n + 1, 1);
    const tui_told kind = tui_told_newest(&u->state.told, tui_ui_turn(u), told, n);
    bool seen[TUI_N_TOLD] = {false};
    int y = 0;
    tui_put_short(a, 0, y++, a.width, TUI_FAINT, u->glyphs->ellipsis,
        kind == TUI_TOLD_NONE    ? "what the engine's cache holds is not told"
        : kind == TUI_TOLD_FOUND ? "the newest request, in the engine's cache"
                                 : "where the engine keeps them now");
    for (uint32_t from = 0, i = 0; from < n && kind != TUI_TOLD_NONE; from += bin, i++) {
        const tui_told what = most_of(told + from, n - from < bin ? n - from : bin);
        const int row = (int)(i / (uint32_t)a.width);
        seen[what] = true;
        if (row < rows)
            tui_put(a, (int)(i % (uint32_t)a.width), y + row, tui_told_style(what), u->glyphs->told[what]);
    }
    free(told);
    if (kind == TUI_TOLD_NONE) return y;
    y += (int)((n + bin - 1) / bin + (uint32_t)a.width - 1) / a.width;
    int x = 0;
    for (int k = 0; k < TUI_N_TOLD; k++)
        if (seen[k]) x = put_entry(a, x, y, tui_told_style(k), u->glyphs->told[k], tui_told_word(k));
    return y + 1;
}

static void put_legend(tui_ui *u, tui_area a, int y)
{
    const struct {
        tui_look look;
        const char *name;
    } legend[] = {{TUI_LOOK_PROTECTED, "protected"}, {TUI_LOOK_KEPT, "kept"}, {TUI_LOOK_PARTLY, "partly"},
        {TUI_LOOK_HOST, tui_state_evicted(&u->state)}, {TUI_LOOK_PROMOTED, "promoted"},
        {TUI_LOOK_BARRED, "barred"}};
    const tui_rows *r = tui_ui_rows(u);
    int x = 0;
    if (tui_rows_count(r, 0, (uint32_t)r->n).deferred) {
        x += tui_put(a, x, y, tui_look_style(TUI_LOOK_DEFERRED), u->glyphs->look[TUI_LOOK_DEFERRED]);
        x += 1 + tui_put(a, x + 1, y, TUI_FAINT, "deferred") + 1;
    }
    if (u->state.folded_to) x += tui_put(a, x, y, TUI_STYLE(TUI_TEXT, TUI_UNDERLINE), "folded") + 1;
    for (size_t i = 0; i < sizeof legend / sizeof *legend; i++)
        x = put_entry(
            a, x, y, tui_look_style(legend[i].look), u->glyphs->look[legend[i].look], legend[i].name);
}

/* What stands under the cursor: where it is from, its state, and its text. */
static void put_cursor(tui_ui *u, tui_area a, const tui_rows *r)
{
    uint32_t from, to;
    if (a.height < 1 || !tui_strip_unit(u, &from, &to)) return;
    const tui_row *row = r->row + from;
    const tui_source *source = r->sources + row->source;
    tui_count c = tui_rows_count(r, from, to);
    char line[200];
    int at = snprintf(line, sizeof line, to - from > 1 ? "%u-%u " : "%u ", from, to - 1);
    at += snprintf(line + at, sizeof line - (size_t)at, "%s t%u", source->origin, row->born);
    if (*source->label) snprintf(line + at, sizeof line - (size_t)at, " %.120s", source->label);
    tui_put_short(a, 0, 0, a.width, TUI_STRONG, u->glyphs->ellipsis, line);
    const char *word = tui_rows_word(r, row);
    at = snprintf(line, sizeof line, u->state.is_elsewhere ? "%.0f%% sent" : "%.0f%% kept", c.share * 100);
    uint32_t fewest, most;
    tui_rows_lanes(r, from, to, &fewest, &most);
    char lanes[64];
    tui_lanes_in_words(fewest, most, r->n_lanes, lanes);
    if (fewest != most) at += snprintf(line + at, sizeof line - (size_t)at, ", %s", lanes);
    if (*word) at += snprintf(line + at, sizeof line - (size_t)at, ", %.40s", word);
    if (*word && row->changed) snprintf(line + at, sizeof line - (size_t)at, " in t%u", row->changed);
    if (a.height > 1) tui_put_short(a, 0, 1, a.width, TUI_FAINT, u->glyphs->ellipsis, line);
    base_buf raw = {0};
    tui_rows_text(r, from, to + 64, &raw);
    tui_text t = {0};
    tui_flow f = {.text = &t, .width = a.width, .code = true};
    tui_flow_add(&f, TUI_PLAIN, raw.data ? raw.data : "", raw.len < 2000 ? raw.len : 2000);
    tui_flow_end(&f);
    for (int y = 2; y < a.height; y++) tui_text_draw(&t, (size_t)(y - 2), a, 0, y);
    tui_text_free(&t);
    base_buf_free(&raw);
}

/* "rows 3,072 / 4,096  [#######...] 75%   12,560 / 32,768 of ctx" */
static int put_fill(tui_ui *u, tui_area a, int y, uint32_t active, double deferred, const tui_rows *r)
{
    const tui_state *s = &u->state;
    char x1[32], x2[32], line[160];
    const tui_ledger *ledger = tui_state_ledger(s, tui_ui_turn(u));
    uint32_t budget = ledger && ledger->budget > 0 ? (uint32_t)ledger->budget : s->budget;
    uint32_t limit = budget ? budget : s->n_ctx;
    double share = limit ? (double)active / limit : 0;
    tui_style style = share > 1.0 ? TUI_STYLE(TUI_ERR, 0) : share >= 0.8 ? TUI_STYLE(TUI_WARN, 0) : TUI_PLAIN;
    int x = tui_printf(a, 0, y, TUI_STRONG, "%s %s", tui_state_unit(s), base_thousands(active, x1));
    x += tui_printf(a, x, y, TUI_PLAIN, " / %s", budget ? base_thousands(budget, x1) : "no limit");
    snprintf(line, sizeof line, " %.0f%%", share * 100);
    int bar = a.width - x - (int)strlen(line) - 2;
    if (bar > 24) bar = 24;
    if (bar >= 4) {
        int full = (int)(share * bar + 0.5);
        x += 1;
        for (int i = 0; i < bar; i++)
            tui_put(a, x + i, y, i < full ? style : TUI_FAINT,
                i < full ? u->glyphs->bar_full : u->glyphs->bar_empty);
        x += bar;
    }
    tui_put(a, x, y, style, line);
    y++;
    x = tui_printf(a, 0, y, TUI_FAINT, s->n_ctx ? "tokens %s/%s" : "tokens %s",
        base_thousands((int64_t)r->n, x1), base_thousands(s->n_ctx, x2));
    if (s->row_bytes > 0) {
        tui_size((int64_t)active * s->row_bytes, x1);
        const int64_t host = (int64_t)r->n - active - (int64_t)(deferred + 0.5);
        tui_size(host > 0 ? host * s->row_bytes : 0, x2);
        int n = snprintf(line, sizeof line, "   %s active, %s host", x1, x2);
        if (x + n > a.width) snprintf(line, sizeof line, "  %s, %s host", x1, x2);
        tui_put_short(a, x, y, a.width - x, TUI_FAINT, u->glyphs->ellipsis, line);
    }
    return y + 1;
}

static int put_counts(tui_ui *u, tui_area a, int y, const tui_count *c, uint32_t active)
{
    char n[32];
    int x = 0;
    uint32_t protected_ = (uint32_t)(c->protected_rows + 0.5), promoted = (uint32_t)(c->promoted_rows + 0.5);
    x += tui_put(a, x, y, tui_look_style(TUI_LOOK_PROTECTED), "protected ");
    x += tui_printf(a, x, y, TUI_PLAIN, "%s  ", base_thousands(protected_, n));
    x += tui_put(a, x, y, TUI_FAINT, "kept ");
    x += tui_printf(
        a, x, y, TUI_PLAIN, "%s  ", base_thousands(active > protected_ ? active - protected_ : 0, n));
    x += tui_printf(a, x, y, tui_look_style(TUI_LOOK_HOST), "%s ", tui_state_evicted(&u->state));
    const int64_t deferred = (int64_t)(c->deferred_rows + 0.5), host = (int64_t)c->n - active - deferred;
    x += tui_printf(a, x, y, TUI_PLAIN, "%s  ", base_thousands(host > 0 ? host : 0, n));
    if (c->promoted)
        x += tui_printf(a, x, y, tui_look_style(TUI_LOOK_PROMOTED), "+%s  ", base_thousands(promoted, n));
    if (c->deferred)
        x += tui_printf(a, x, y, tui_look_style(TUI_LOOK_DEFERRED), "~%s  ", base_thousands(c->deferred, n));
    if (c->barred)
        tui_printf(a, x, y, tui_look_style(TUI_LOOK_BARRED), "barred %s", base_thousands(c->barred, n));
    return y + 1;
}

static void draw_strip(tui_ui *u, tui_area a)
{
    const tui_rows *r = tui_ui_rows(u);
    tui_count all = tui_rows_count(r, 0, (uint32_t)r->n);
    uint32_t active = (uint32_t)(all.active + 0.5);
    int y = put_fill(u, a, 0, active, all.deferred_rows, r);
    y = put_counts(u, a, y, &all, active);
    if (a.height < 8) return;
    y++;
    int rows = (a.height - y) / 3; /* a third of the height at most */
    if (rows < 1) rows = 1;
    if (rows > 8) rows = 8;
    if (a.width < 1) return;
    if ((u->beside || u->state.is_elsewhere) && rows > 1) rows = (rows + 1) / 2;
    y += u->beside ? put_two_strips(u, tui_area_within(a, 0, y, a.width, 3 * rows + 2), r, rows)
                   : put_bins(u, tui_area_within(a, 0, y, a.width, rows), r, rows);
    put_legend(u, a, y++);
    if (u->state.is_elsewhere && r->n) y += put_told(u, tui_area_within(a, 0, y, a.width, rows + 2), r, rows);
    y++;
    int left = a.height - y, ledger = left >= 12 ? 8 : left >= 8 ? 4 : 0;
    int text = left - ledger - (ledger ? 1 : 0);
    if (text > 8) text = 8;
    if (r->n > 0) {
        put_cursor(u, tui_area_within(a, 0, y, a.width, text), r);
        y += text + 1;
    }
    if (ledger) tui_ledger_lines(u, a, y, tui_ui_turn(u));
}

static void explain_strip(tui_ui *u, base_buf *out)
{
    char n[32];
    base_buf_printf(out,
        "The strip is the whole session from left to right, line by line: a cell stands for %s token%s.\n\n",
        base_thousands(u->strip_bin, n), u->strip_bin == 1 ? "" : "s");
    uint32_t from = 0, to = 0;
    tui_strip_unit(u, &from, &to);
    tui_explain_tokens(u, from, to, out);
}

const tui_view tui_view_strip = {.name = "cache",
    .about = "every position as one strip",
    .draw = draw_strip,
    .unit = tui_strip_unit,
    .move = tui_strip_move,
    .enter = TUI_VIEW_blame,
    .explain = explain_strip};
