/*
 * Lines, indentation and line ends of a text, so that what a model writes fits the file it goes into: CR LF stays CR LF, tabs
 * stay tabs, a block moves to the column of what it replaces. Pure functions; offsets in bytes, lines 1-based.
 */
#include "tools/internal.h"

#include <string.h>

tool_text_style tool__text_style(const char *text, size_t n)
{
    size_t lf = 0, crlf = 0, tabs = 0, spaces = 0;
    for (size_t i = 0; i < n; i++) {
        if (text[i] == '\n') {
            lf++;
            crlf += i && text[i - 1] == '\r';
        }
        if (i == 0 || text[i - 1] == '\n') {
            tabs += text[i] == '\t';
            spaces += text[i] == ' ' && i + 1 < n && text[i + 1] == ' ';
        }
    }
    return (tool_text_style){
        .crlf = crlf * 2 > lf, .ends_open = n && text[n - 1] != '\n', .tabs = tabs > spaces};
}

size_t tool__count_lines(const char *text, size_t n)
{
    size_t lines = 0;
    for (size_t i = 0; i < n; i++) lines += text[i] == '\n';
    return lines + (n && text[n - 1] != '\n');
}

size_t tool__line_start(const char *text, size_t n, size_t line)
{
    size_t at = 0;
    for (; line > 1; line--) {
        const char *end = at < n ? memchr(text + at, '\n', n - at) : NULL;
        if (!end) return n;
        at = (size_t)(end - text) + 1;
    }
    return at;
}

size_t tool__line_of(const char *text, size_t byte)
{
    size_t line = 1;
    for (size_t i = 0; i < byte; i++) line += text[i] == '\n';
    return line;
}

static bool is_blank(const char *line, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (line[i] != ' ' && line[i] != '\t' && line[i] != '\r') return false;
    return true;
}

void tool__normalise_block(base_buf *out, const char *text, size_t n)
{
    size_t start = out->len, pending = 0;
    for (size_t at = 0; at < n;) {
        const char *end = memchr(text + at, '\n', n - at);
        size_t line = (end ? (size_t)(end - text) : n) - at, next = at + line + (end != NULL);
        while (line && text[at + line - 1] == '\r') line--;
        if (is_blank(text + at, line)) {
            pending++; /* written only when something follows */
        } else {
            for (; pending && out->len > start; pending--) base_buf_putc(out, '\n');
            pending = 0;
            base_buf_add(out, text + at, line);
            base_buf_putc(out, '\n');
        }
        at = next;
    }
}

/* Columns and bytes of a line's leading white space; a tab counts as `tab` columns. */
static size_t leading(const char *line, size_t n, size_t tab, size_t *ret_columns)
{
    size_t i = 0, columns = 0;
    for (; i < n && (line[i] == ' ' || line[i] == '\t'); i++) columns += line[i] == '\t' ? tab : 1;
    *ret_columns = columns;
    return i;
}

/* The block's indentation step in columns: the smallest step to the right; 4 when it has none. */
static size_t step_of(const char *block, size_t n)
{
    size_t best = 0, before = 0;
    for (size_t at = 0; at < n;) {
        const char *end = memchr(block + at, '\n', n - at);
        size_t line = (end ? (size_t)(end - block) : n) - at, columns;
        leading(block + at, line, 4, &columns);
        if (!is_blank(block + at, line)) {
            if (columns > before && (!best || columns - before < best)) best = columns - before;
            before = columns;
        }
        at += line + 1;
    }
    return best ? best : 4;
}

void tool__rebase(base_buf *out, const char *block, size_t n, const char *indent, size_t indent_n, bool tabs)
{
    size_t step = step_of(block, n), base = 0;
    bool first = true, has_tabs = false;
    for (size_t i = 0; i < n; i++)
        has_tabs |= block[i] == '\t' && (i == 0 || block[i - 1] == '\n' || block[i - 1] == '\t');
    for (size_t at = 0; at < n;) {
        const char *end = memchr(block + at, '\n', n - at);
        size_t line = (end ? (size_t)(end - block) : n) - at, columns;
        size_t skip = leading(block + at, line, has_tabs ? step : 1, &columns);
        if (first) base = columns;
        first = false;
        if (!is_blank(block + at, line)) {
            base_buf_add(out, indent, indent_n);
            size_t more = columns > base ? columns - base : 0;
            /* Tabs only where the file has them; what is less than a step stays spaces (aligned continuation lines). */
            for (; tabs && more >= step; more -= step) base_buf_putc(out, '\t');
            for (; more; more--) base_buf_putc(out, ' ');
            base_buf_add(out, block + at + skip, line - skip);
        }
        if (end) base_buf_putc(out, '\n');
        at += line + 1;
    }
}

void tool__line_ends(base_buf *out, const char *text, size_t n, bool crlf)
{
    for (size_t i = 0; i < n; i++) {
        if (crlf && text[i] == '\n' && (i == 0 || text[i - 1] != '\r')) base_buf_putc(out, '\r');
        base_buf_putc(out, text[i]);
    }
}
