/*
 * Line breaking. A logical line is collected as glyphs with widths, then cut greedily: at the last blank that
 * fits, else anywhere, so that no word, however long, is lost.
 */
#include "tui/terminal/styled_text.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

struct tui_glyph {
    uint32_t at;
    uint8_t n, width;
    bool blank;
    tui_style style;
};

enum { TAB_COLUMNS = 4, MAX_GLYPH = 200 /* bytes */ };

void tui_text_clear(tui_text *t)
{
    base_buf_clear(&t->bytes);
    t->n_runs = t->n_lines = 0;
}

void tui_text_free(tui_text *t)
{
    base_buf_free(&t->bytes);
    free(t->runs);
    free(t->lines);
    *t = (tui_text){0};
}

void tui_text_draw(const tui_text *t, size_t line, tui_area a, int x, int y)
{
    if (line >= t->n_lines) return;
    const tui_line *l = t->lines + line;
    for (uint32_t i = 0; i < l->n; i++) {
        const tui_text_run *r = t->runs + l->first + i;
        x += tui_put_n(a, x, y, r->style, t->bytes.data + r->at, r->n);
    }
}

static void add_run(tui_text *t, tui_style style, uint32_t at, uint32_t n)
{
    tui_line *l = t->lines + t->n_lines - 1;
    if (l->n > 0) {
        tui_text_run *last = t->runs + t->n_runs - 1;
        if (last->at + last->n == at && last->style.role == style.role && last->style.attr == style.attr) {
            last->n += n;
            return;
        }
    }
    base_grow(&t->runs, &t->cap_runs, t->n_runs + 1, sizeof *t->runs);
    t->runs[t->n_runs++] = (tui_text_run){.at = at, .n = n, .style = style};
    l->n++;
}

static const char *prefix_of(const tui_flow *f, bool goes_on)
{
    if (goes_on && f->wrap) return f->wrap;
    return f->started ? f->rest : f->first;
}

static void open_line(tui_flow *f, bool goes_on)
{
    tui_text *t = f->text;
    base_grow(&t->lines, &t->cap_lines, t->n_lines + 1, sizeof *t->lines);
    t->lines[t->n_lines++] = (tui_line){.first = (uint32_t)t->n_runs};
    const char *prefix = prefix_of(f, goes_on);
    f->started = true;
    if (prefix && *prefix) {
        uint32_t at = (uint32_t)t->bytes.len;
        base_buf_puts(&t->bytes, prefix);
        add_run(t, f->prefix_style, at, (uint32_t)strlen(prefix));
    }
}

static void emit(tui_flow *f, size_t from, size_t to)
{
    open_line(f, from > 0);
    if (!f->code)
        while (to > from && f->glyphs[to - 1].blank) to--;
    for (size_t i = from; i < to; i++) add_run(f->text, f->glyphs[i].style, f->glyphs[i].at, f->glyphs[i].n);
}

void tui_flow_line(tui_flow *f)
{
    size_t from = 0;
    do {
        const char *prefix = prefix_of(f, from > 0);
        int room = f->width - (prefix ? tui_columns(prefix, strlen(prefix)) : 0);
        if (room < 2) room = 2;
        size_t to = from, after_blank = 0;
        int taken = 0;
        while (to < f->n_glyphs && taken + f->glyphs[to].width <= room) {
            taken += f->glyphs[to].width;
            to++;
            if (f->glyphs[to - 1].blank) after_blank = to;
        }
        if (to < f->n_glyphs && !f->code) {
            if (f->glyphs[to].blank) after_blank = to + 1; /* the word ends exactly at the edge */
            if (after_blank > from) {
                emit(f, from, after_blank);
                from = after_blank;
                while (from < f->n_glyphs && f->glyphs[from].blank) from++;
                continue;
            }
        }
        emit(f, from, to);
        from = to;
    } while (from < f->n_glyphs);
    f->n_glyphs = 0;
}

static void add_glyph(tui_flow *f, tui_style style, const char *s, size_t n, int width, bool is_blank)
{
    base_grow(&f->glyphs, &f->cap_glyphs, f->n_glyphs + 1, sizeof *f->glyphs);
    f->glyphs[f->n_glyphs++] = (tui_glyph){.at = (uint32_t)f->text->bytes.len,
        .n = (uint8_t)n,
        .width = (uint8_t)width,
        .blank = is_blank,
        .style = style};
    base_buf_add(&f->text->bytes, s, n);
}

void tui_flow_add(tui_flow *f, tui_style style, const char *s, size_t n)
{
    while (n > 0) {
        int width;
        size_t used = tui_next_glyph(s, n, &width);
        if (*s == '\n') {
            tui_flow_line(f);
            used = 1;
        } else if (*s == '\t') {
            for (int i = 0; i < TAB_COLUMNS; i++) add_glyph(f, style, " ", 1, 1, true);
            used = 1;
        } else if (used > MAX_GLYPH) { /* a flood of marks: it must not be drawn, and not vanish either */
            add_glyph(f, style, "\xef\xbf\xbd", 3, 1, false);
        } else if (width > 0) {
            add_glyph(f, style, s, used, width, *s == ' ');
        }
        s += used;
        n -= used;
    }
}

void tui_flow_show(tui_flow *f, tui_style style, const char *s, size_t n, base_show_form form)
{
    base_buf shown = {0};
    base_show(&shown, s, n, form);
    tui_flow_add(f, style, shown.data ? shown.data : "", shown.len);
    base_buf_free(&shown);
}

/* Calls see for each cell: its column, its bytes, and what ends it: '\t', '\n', or 0 at the text's end. */
static void each_cell(tui_flow *f, const char *s, size_t n,
    void (*see)(tui_flow *f, int *widest, size_t column, const char *s, size_t n, char end, tui_style style),
    int *widest, tui_style style)
{
    for (size_t at = 0, column = 0; at < n;) {
        size_t k = at;
        while (k < n && s[k] != '\t' && s[k] != '\n') k++;
        const char end = k < n ? s[k] : 0;
        see(f, widest, column, s + at, k - at, end, style);
        column = end == '\t' ? column + 1 : 0;
        at = k + 1;
    }
}

enum { TABLE_COLUMNS = 8, TABLE_GAP = 2 };

static void measure_cell(
    tui_flow *f, int *widest, size_t column, const char *s, size_t n, char end, tui_style style)
{
    const int width = tui_columns(s, n);
    if (end == '\t' && column < TABLE_COLUMNS && width <= f->width / 2 && width > widest[column])
        widest[column] = width;
}

static void put_cell(
    tui_flow *f, int *widest, size_t column, const char *s, size_t n, char end, tui_style style)
{
    const int width = tui_columns(s, n);
    int blanks = TABLE_GAP;
    if (column < TABLE_COLUMNS && width < widest[column]) blanks += widest[column] - width;
    tui_flow_add(f, style, s, n);
    if (end == '\n') tui_flow_line(f);
    for (; end == '\t' && blanks > 0; blanks--) add_glyph(f, style, " ", 1, 1, true);
}

void tui_flow_table(tui_flow *f, tui_style style, const char *s, size_t n)
{
    int widest[TABLE_COLUMNS] = {0};
    each_cell(f, s, n, measure_cell, widest, style);
    each_cell(f, s, n, put_cell, widest, style);
}

void tui_flow_puts(tui_flow *f, tui_style style, const char *s)
{
    if (s) tui_flow_add(f, style, s, strlen(s));
}

void tui_flow_end(tui_flow *f)
{
    if (f->n_glyphs > 0) tui_flow_line(f);
    free(f->glyphs);
    f->glyphs = NULL;
    f->cap_glyphs = 0;
}
