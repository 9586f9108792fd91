/*
 * The sequence by where it came from, as ncdu lists folders: rows kept of how many, a bar, age, the
 * last change and why.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/numbers.h"
#include "tui/views/view.h"

typedef enum span_sort { BY_PLACE, BY_ROWS, BY_HOST, BY_AGE, N_SORTS } span_sort;
/* Here, and on an engine elsewhere. */
static const char *const sort_names[N_SORTS][2] = {
    {"place", "place"}, {"rows kept", "tokens sent"}, {"rows in host", "tokens put aside"}, {"age", "age"}};

typedef struct span_row {
    uint32_t source;
    double key; /* descending */
} span_row;

static int compare(const void *a, const void *b)
{
    const span_row *x = a, *y = b;
    if (x->key != y->key) return x->key < y->key ? 1 : -1;
    return x->source < y->source ? -1 : x->source > y->source;
}

/* Role markers are no place that anybody looks for. */
static bool is_listed(const tui_source *s)
{
    return strcmp(s->origin, "scaffold") != 0;
}

/* The spans in the order shown; the caller frees. */
static span_row *sorted(const tui_ui *u, const tui_rows *r, size_t *ret_n)
{
    span_row *order = base_xcalloc(r->n_sources + 1, sizeof *order);
    size_t n = 0;
    for (uint32_t i = 0; i < r->n_sources; i++) {
        const tui_source *s = r->sources + i;
        if (!is_listed(s)) continue;
        span_row *row = order + n++;
        row->source = i;
        if (u->sort % N_SORTS == BY_PLACE) continue;
        tui_count c = tui_rows_count(r, s->from, s->to);
        row->key = u->sort % N_SORTS == BY_ROWS   ? c.active
                   : u->sort % N_SORTS == BY_HOST ? c.n - c.active
                                                  : s->turn;
    }
    qsort(order, n, sizeof *order, compare);
    *ret_n = n;
    return order;
}

/* The listed span at the cursor, or the one before it. */
static uint32_t source_at(const tui_ui *u, const tui_rows *r)
{
    uint32_t at = r->row[u->at < r->n ? u->at : r->n - 1].source, here = at;
    while (here > 0 && !is_listed(r->sources + here)) here--;
    while (here + 1 < r->n_sources && !is_listed(r->sources + here)) here++;
    return here;
}

/*
 * What the requests of the turn sent of a span, what of that was found and what computed; told: where its blocks are,
 * NULL: not told, or there is no room for it.
 */
static void put_told(tui_ui *u, tui_area a, int x, int y, const tui_source *s, const uint8_t *told)
{
    const tui_told_sum sum = tui_told_count(&u->state.told, tui_ui_turn(u), s->from, s->to);
    const bool is_told = sum.found || sum.computed || !sum.sent;
    char n[3][32];
    base_thousands(sum.sent, n[0]);
    base_thousands(sum.found, n[1]);
    base_thousands(sum.computed, n[2]);
    if (is_told)
        tui_printf(a, x, y, TUI_PLAIN, "%7s %7s %7s", n[0], n[1], n[2]);
    else
        tui_printf(a, x, y, TUI_PLAIN, "%7s %7s %7s", n[0], "?", "?");
    x += 24;
    uint32_t count[TUI_N_TOLD] = {0};
    for (uint32_t i = s->from; told && i < s->to; i++) count[told[i]]++;
    for (int k = TUI_TOLD_NONE + 1; k < TUI_N_TOLD; k++)
        if (count[k])
            x += tui_printf(
                a, x, y, tui_told_style(k), "%s %s  ", tui_told_word(k), base_thousands(count[k], n[0]));
}

static bool is_narrow(const tui_ui *u, tui_area a)
{
    return (u->columns & 1) || a.width < 60;
}

/* Columns behind the name; where there are few, the glyph in front says what is in view. */
static int told_width(const tui_ui *u, tui_area a)
{
    return is_narrow(u, a) ? 24 : 52;
}

static void draw_row(
    tui_ui *u, tui_area a, int y, const tui_rows *r, const tui_source *s, const uint8_t *told)
{
    tui_count c = tui_rows_count(r, s->from, s->to);
    tui_look look = tui_count_look(&c);
    char x1[32], x2[32], line[200];
    bool slim = a.width < 44, narrow = is_narrow(u, a);
    int name = a.width - (slim ? 12 : u->state.is_elsewhere ? told_width(u, a) : narrow ? 26 : 44);
    if (name < 6) name = 6;
    tui_put(a, 0, y, tui_look_style(look), u->glyphs->look[look]);
    if (*s->label)
        snprintf(line, sizeof line, s->line ? "%s:%u" : "%s", s->label, s->line);
    else
        snprintf(line, sizeof line, "%s", s->origin);
    tui_put_short(a, 2, y, name - 3, TUI_PLAIN, u->glyphs->ellipsis, line);
    int x = name;
    if (u->state.is_elsewhere && narrow && !slim) {
        put_told(u, a, x, y, s, NULL);
        return;
    }
    snprintf(
        line, sizeof line, "%s/%s", base_thousands((int64_t)(c.active + 0.5), x1), base_thousands(c.n, x2));
    x += tui_printf(a, x, y, TUI_PLAIN, "%12s ", line);
    if (slim) return;
    if (u->state.is_elsewhere) {
        put_told(u, a, x, y, s, told);
        return;
    }
    for (int i = 0; i < 8; i++)
        tui_put(a, x + i, y, TUI_FAINT,
            i < (int)(c.share * 8 + 0.5) ? u->glyphs->bar_full : u->glyphs->bar_empty);
    x += 9;
    snprintf(line, sizeof line, "t%u", s->turn);
    x += tui_printf(a, x, y, TUI_FAINT, "%-4s", line);
    if (narrow) return;
    /* The newest change of the span says what happened to it last. */
    const tui_row *newest = r->row + s->from;
    for (uint32_t i = s->from; i < s->to && i < r->n; i++)
        if (r->row[i].changed > newest->changed) newest = r->row + i;
    const char *word = tui_rows_word(r, newest);
    if (newest->changed)
        tui_printf(a, x, y, TUI_FAINT, " %s t%u", word, newest->changed);
    else
        tui_printf(a, x, y, TUI_FAINT, " %s", word);
}

/* Elsewhere a line is more numbers than words. */
static void draw_heads(tui_ui *u, tui_area a, size_t n, const char *by)
{
    int x = a.width - told_width(u, a);
    char line[80];
    snprintf(line, sizeof line, "%zu spans by %s, = sorts", n, by);
    tui_put_short(a, 0, 0, x - 1, TUI_FAINT, u->glyphs->ellipsis, line);
    if (!is_narrow(u, a)) x += tui_printf(a, x, 0, TUI_FAINT, "%12s ", "of all");
    tui_printf(a, x, 0, TUI_FAINT, "%7s %7s %7s", "sent", "found", "comp.");
}

static void draw_spans(tui_ui *u, tui_area a)
{
    const tui_rows *r = tui_ui_rows(u);
    int shown = a.height - 1;
    u->page = shown > 1 ? shown - 1 : 1;
    if (r->n == 0 || shown < 1) return;
    size_t n, at = 0, room = (size_t)shown;
    span_row *order = sorted(u, r, &n);
    uint8_t *told = u->state.is_elsewhere ? base_xcalloc(r->n + 1, 1) : NULL;
    if (told && tui_told_newest(&u->state.told, tui_ui_turn(u), told, (uint32_t)r->n) != TUI_TOLD_GPU) {
        free(told);
        told = NULL;
    }
    const char *by = sort_names[u->sort % N_SORTS][u->state.is_elsewhere];
    if (u->state.is_elsewhere && a.width >= 44)
        draw_heads(u, a, n, by);
    else
        tui_printf(a, 0, 0, TUI_FAINT, "%zu spans by %s   = sorts, Enter shows the text", n, by);
    uint32_t here = source_at(u, r);
    for (size_t i = 0; i < n; i++)
        if (order[i].source == here) at = i;
    size_t first = at > room / 2 ? at - room / 2 : 0;
    if (n <= room)
        first = 0;
    else if (first > n - room)
        first = n - room;
    for (int y = 0; y < shown && first + (size_t)y < n; y++) {
        draw_row(u, a, y + 1, r, r->sources + order[first + (size_t)y].source, told);
        if (first + (size_t)y == at)
            tui_restyle(a, y + 1, a.width, u->focus == TUI_FOCUS_INSPECTOR ? TUI_REVERSE : TUI_BOLD);
    }
    free(told);
    free(order);
}

static bool spans_unit(tui_ui *u, uint32_t *from, uint32_t *to)
{
    const tui_rows *r = tui_ui_rows(u);
    if (r->n == 0) return false;
    const tui_source *s = r->sources + source_at(u, r);
    *from = s->from;
    *to = s->to;
    return true;
}

static void spans_move(tui_ui *u, int64_t units)
{
    const tui_rows *r = tui_ui_rows(u);
    if (r->n == 0) return;
    size_t n;
    span_row *order = sorted(u, r, &n);
    uint32_t here = source_at(u, r);
    int64_t at = 0, last = (int64_t)n - 1;
    for (int64_t i = 0; i <= last; i++)
        if (order[i].source == here) at = i;
    at = units <= INT32_MIN ? 0 : units >= INT32_MAX ? last : at + units;
    if (at > last) at = last;
    if (at < 0) at = 0;
    if (n > 0) u->at = r->sources[order[at].source].from;
    free(order);
}

const tui_view tui_view_spans = {.name = "spans",
    .about = "the session by where it came from",
    .draw = draw_spans,
    .unit = spans_unit,
    .move = spans_move,
    .enter = TUI_VIEW_blame,
    .reads = "A line is one piece of the session. Behind its name: how many of its tokens the model sees, of "
             "how many; the same as a bar; the turn it came with; the newest decision. On an engine "
             "elsewhere: how many of its tokens are in what is sent; then of all requests of the turn "
             "together what they sent of it, what of that the engine found in its cache and what it computed "
             "(?: not told); and where it keeps them, if it says so."};
