/*
 * Cells, clipping and plain text. Nothing here knows curses or what is painted.
 */
#include "tui/terminal/grid.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/utf8.h"

static const tui_cell blank = {.width = 1};

void tui_grid_resize(tui_grid *g, int width, int height)
{
    if (width < 1) width = 1;
    if (height < 1) height = 1;
    if (width != g->width || height != g->height || !g->cells) {
        g->cells = base_xrealloc(g->cells, (size_t)width * (size_t)height * sizeof *g->cells);
        g->width = width;
        g->height = height;
    }
    tui_grid_clear(g);
}

void tui_grid_clear(tui_grid *g)
{
    const size_t n = (size_t)g->width * (size_t)g->height;
    g->cells[0] = blank;
    for (size_t done = 1, more; done < n; done += more) { /* twice as many each time */
        more = n - done < done ? n - done : done;
        memcpy(g->cells + done, g->cells, more * sizeof *g->cells);
    }
    g->cursor_x = g->cursor_y = -1;
}

void tui_grid_free(tui_grid *g)
{
    free(g->cells);
    *g = (tui_grid){0};
}

void tui_grid_text(const tui_grid *g, base_buf *out)
{
    for (int y = 0; y < g->height; y++) {
        const tui_cell *row = g->cells + (size_t)y * (size_t)g->width;
        int last = g->width;
        while (last > 0 && row[last - 1].width == 1 &&
               (row[last - 1].n_bytes == 0 || row[last - 1].bytes[0] == ' '))
            last--;
        for (int x = 0; x < last; x++) {
            if (row[x].width == 0) continue;
            if (row[x].n_bytes == 0)
                base_buf_putc(out, ' ');
            else
                base_buf_add(out, row[x].bytes, row[x].n_bytes);
        }
        base_buf_putc(out, '\n');
    }
}

tui_area tui_grid_area(tui_grid *g)
{
    return (tui_area){.grid = g, .width = g->width, .height = g->height};
}

tui_area tui_area_within(tui_area a, int x, int y, int width, int height)
{
    if (x < 0) x = 0;
    if (y < 0) y = 0;
    if (x > a.width) x = a.width;
    if (y > a.height) y = a.height;
    if (width > a.width - x) width = a.width - x;
    if (height > a.height - y) height = a.height - y;
    return (tui_area){.grid = a.grid,
        .x = a.x + x,
        .y = a.y + y,
        .width = width < 0 ? 0 : width,
        .height = height < 0 ? 0 : height};
}

static bool is_plain(char c)
{
    return c >= 0x20 && c < 0x7f;
}

size_t tui_next_glyph(const char *s, size_t n, int *width)
{
    if (is_plain(*s) && (n == 1 || (unsigned char)s[1] < 0x80)) { /* nearly all text */
        *width = 1;
        return 1;
    }
    uint32_t cp;
    size_t used = base_utf8_decode(s, n, &cp);
    *width = base_utf8_width(cp);
    while (used < n && (unsigned char)s[used] >= 0x80) {
        size_t more = base_utf8_decode(s + used, n - used, &cp);
        if (base_utf8_width(cp) != 0) break;
        used += more;
    }
    return used;
}

int tui_columns(const char *s, size_t n)
{
    int columns = 0, width;
    while (n > 0) {
        size_t used = tui_next_glyph(s, n, &width);
        columns += width;
        s += used;
        n -= used;
    }
    return columns;
}

static tui_cell *cell_at(tui_area a, int x, int y)
{
    if (x < 0 || y < 0 || x >= a.width || y >= a.height) return NULL;
    return a.grid->cells + (size_t)(a.y + y) * (size_t)a.grid->width + (size_t)(a.x + x);
}

/* A wide character that is overwritten in one half loses the other. */
static void detach(tui_area a, int x, int y)
{
    tui_cell *row = a.grid->cells + (size_t)(a.y + y) * (size_t)a.grid->width;
    int at = a.x + x;
    if (row[at].width == 0 && at > 0) row[at - 1] = blank;
    if (row[at].width == 2 && at + 1 < a.grid->width) row[at + 1] = blank;
}

int tui_put_n(tui_area a, int x, int y, tui_style style, const char *s, size_t n)
{
    int from = x, width;
    while (n > 0 && x < a.width) {
        size_t used = tui_next_glyph(s, n, &width);
        const char *bytes = s;
        size_t n_bytes = used;
        s += used;
        n -= used;
        if ((unsigned char)bytes[0] < 0x20 || bytes[0] == 0x7f) {
            bytes = "\xef\xbf\xbd";
            n_bytes = 3;
            width = 1;
        }
        if (width == 0) continue; /* a mark with nothing to stand on */
        if (x + width > a.width) break;
        tui_cell *c = cell_at(a, x, y);
        if (c) {
            detach(a, x, y);
            if (width == 2) detach(a, x + 1, y);
            if (n_bytes > sizeof c->bytes) n_bytes = base_utf8_whole(bytes, sizeof c->bytes);
            memcpy(c->bytes, bytes, n_bytes);
            c->n_bytes = (uint8_t)n_bytes;
            c->width = (uint8_t)width;
            c->style = style;
            if (width == 2) c[1] = (tui_cell){.width = 0, .style = style};
        }
        x += width;
    }
    return x - from;
}

int tui_put(tui_area a, int x, int y, tui_style style, const char *s)
{
    return s ? tui_put_n(a, x, y, style, s, strlen(s)) : 0;
}

int tui_printf(tui_area a, int x, int y, tui_style style, const char *format, ...)
{
    base_buf b = {0};
    va_list args;
    va_start(args, format);
    base_buf_vprintf(&b, format, args);
    va_end(args);
    int columns = tui_put_n(a, x, y, style, b.data ? b.data : "", b.len);
    base_buf_free(&b);
    return columns;
}

int tui_put_short(tui_area a, int x, int y, int width, tui_style style, const char *ellipsis, const char *s)
{
    if (!s || width <= 0) return 0;
    size_t n = strlen(s);
    if (tui_columns(s, n) <= width) return tui_put_n(a, x, y, style, s, n);
    int room = width - tui_columns(ellipsis, strlen(ellipsis)), taken = 0, w;
    size_t at = 0;
    while (at < n) {
        size_t used = tui_next_glyph(s + at, n - at, &w);
        if (taken + w > room) break;
        taken += w;
        at += used;
    }
    int columns = tui_put_n(a, x, y, style, s, at);
    return columns + tui_put(a, x + columns, y, style, ellipsis);
}

void tui_rule(tui_area a, int x, int y, int width, tui_style style, const char *glyph)
{
    if (width < 1 || tui_put(a, x, y, style, glyph) != 1) return;
    const tui_cell *first = cell_at(a, x, y);
    for (int i = 1; first && i < width; i++) { /* not read again for each column */
        tui_cell *c = cell_at(a, x + i, y);
        if (!c) return;
        detach(a, x + i, y);
        *c = *first;
    }
}

void tui_blank(tui_area a)
{
    for (int y = 0; y < a.height; y++)
        for (int x = 0; x < a.width; x++) {
            detach(a, x, y);
            *cell_at(a, x, y) = blank;
        }
}

void tui_restyle(tui_area a, int y, int width, uint8_t attr)
{
    for (int i = 0; i < width; i++) {
        tui_cell *c = cell_at(a, i, y);
        if (c) c->style.attr |= attr;
    }
}
