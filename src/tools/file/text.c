/*
 * Lines, indentation and line ends of a text, so that what a model writes fits the file it goes into: CR LF
 * stays CR LF, tabs stay tabs, a block moves to the column of what it replaces. Pure functions; offsets in
 * bytes, lines 1-based.
 */
#include "tools/file/text.h"

#include "base/mem.h"

#include <string.h>

bool tool__is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

bool tool__is_same_line(base_str a, base_str b)
{
    a = base_str_trim(a);
    b = base_str_trim(b);
    return a.len == b.len && (!a.len || !memcmp(a.ptr, b.ptr, a.len));
}

size_t tool__line_begin(const char *text, size_t at)
{
    while (at && text[at - 1] != '\n') at--;
    return at;
}

size_t tool__line_end(const char *text, size_t n, size_t at)
{
    const char *end = at < n ? memchr(text + at, '\n', n - at) : NULL;
    return end ? (size_t)(end - text) : n;
}

bool tool__is_blank(const char *text, size_t from, size_t to)
{
    while (from < to && tool__is_space(text[from])) from++;
    return from >= to;
}

tool_text_style tool__text_style(const char *text, size_t n)
{
    size_t lf = 0, crlf = 0;
    for (size_t i = 0; i < n; i++) {
        if (text[i] == '\n') {
            lf++;
            crlf += i && text[i - 1] == '\r';
        }
    }
    return (tool_text_style){.crlf = crlf * 2 > lf, .ends_open = n && text[n - 1] != '\n'};
}

bool tool__has_conflict(const char *text, size_t n)
{
    static const char *const marks[] = {"<<<<<<< ", "=======", ">>>>>>> "};
    const char *at = text, *end = n ? text + n : text;
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++) {
        const size_t len = strlen(marks[i]);
        while (at && at < end && (at = memmem(at, (size_t)(end - at), marks[i], len)) && at > text &&
               at[-1] != '\n')
            at++;
        if (!at || at >= end) return false;
        at += len;
    }
    return true;
}

void tool__split_lines(tool_line_list *ret, const char *text, size_t n)
{
    for (size_t at = 0; at < n;) {
        const size_t end = tool__line_end(text, n, at);
        size_t shown = end - at;
        if (shown && text[at + shown - 1] == '\r') shown--;
        base_grow(&ret->items, &ret->cap, ret->n + 1, sizeof *ret->items);
        ret->items[ret->n++] = (base_str){text + at, shown};
        at = end + 1;
    }
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

char tool__indent_char(const char *text, size_t n)
{
    size_t tabs = 0, spaces = 0;
    for (size_t i = 0; i + 1 < n; i++) {
        if (i && text[i - 1] != '\n') continue;
        tabs += text[i] == '\t';
        spaces += text[i] == ' ' && text[i + 1] == ' ';
    }
    return tabs > spaces ? '\t' : spaces ? ' ' : '\0';
}

void tool__indent_block(base_buf *out, const char *block, size_t n, const char *indent, size_t indent_n,
    tool_indentation how, size_t unit)
{
    size_t step = step_of(block, n), base = 0, base_n = 0, tab = how == TOOL_INDENT_SPACES ? unit : step;
    for (size_t at = 0; at < n;) {
        const char *line = block + at, *end = memchr(line, '\n', n - at);
        size_t len = end ? (size_t)(end - line) : n - at, columns, skip = leading(line, len, tab, &columns);
        if (at == 0) {
            base = columns;
            base_n = skip;
        }
        bool has_base = len >= base_n && !memcmp(line, block, base_n);
        if (is_blank(line, len)) {
            /* stays empty */
        } else if (columns < base && !has_base) {
            base_buf_add(
                out, line, len); /* left of the block: inside a string, where columns mean something else */
        } else {
            base_buf_add(out, indent, indent_n);
            size_t more = columns - base;
            if (how == TOOL_INDENT_KEEP && has_base) {
                skip = base_n;
                more = 0;
            }
            /* What is less than a step stays spaces: aligned continuation lines. */
            for (; how == TOOL_INDENT_TABS && more >= step; more -= step) base_buf_putc(out, '\t');
            for (; more; more--) base_buf_putc(out, ' ');
            base_buf_add(out, line + skip, len - skip);
        }
        if (end) base_buf_putc(out, '\n');
        at += len + 1;
    }
}

tool_indentation tool__indentation_for(
    const char *file, size_t n_file, const char *block, size_t n_block, size_t *ret_unit)
{
    char wanted = tool__indent_char(file, n_file), has = tool__indent_char(block, n_block);
    *ret_unit = step_of(file, n_file);
    if (!wanted || !has || wanted == has) return TOOL_INDENT_KEEP;
    return wanted == '\t' ? TOOL_INDENT_TABS : TOOL_INDENT_SPACES;
}

void tool__line_ends(base_buf *out, const char *text, size_t n, bool crlf)
{
    for (size_t i = 0; i < n; i++) {
        if (text[i] == '\r' && i + 1 < n && text[i + 1] == '\n') continue;
        if (text[i] == '\n' && crlf) base_buf_putc(out, '\r');
        base_buf_putc(out, text[i]);
    }
}
