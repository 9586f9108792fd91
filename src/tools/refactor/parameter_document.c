/*
 * What the documents of a function, its docstring and the comment above it, say of a parameter that goes: its entry in a
 * list of parameters goes with it.
 */
#include "tools/refactor/refactor.h"

#include <string.h>

#include "tools/file/text.h"

/* One document, [from, to) of a text: a docstring without its quotes, or the comment lines above a definition. */
typedef struct document {
    const base_buf *text;
    size_t from, to;
    bool is_docstring;
    bool is_block; /* a comment that a mark of its own closes */
} document;

/* Behind the blanks and comment marks that the line begins with. */
static size_t first_of(const document *d, size_t line)
{
    const char *s = d->text->data;
    return line + (d->is_docstring ? strspn(s + line, " \t") : strspn(s + line, " \t*#/!"));
}

/* Begin of the next line, or the text's end. */
static size_t next_line(const document *d, size_t line)
{
    const size_t end = tool__line_end(d->text->data, d->text->len, line);
    return end < d->text->len ? end + 1 : end;
}

/* Does the line say nothing: blank, a mark alone, or what closes the document? */
static bool is_empty(const document *d, size_t line)
{
    const size_t first = first_of(d, line), end = tool__line_end(d->text->data, d->text->len, line);
    return tool__is_blank(d->text->data, first, end) || (d->is_docstring && first >= d->to);
}

static bool says(const document *d, size_t line, const char *const *words)
{
    const char *at = d->text->data + first_of(d, line);
    bool is_one = false;
    for (; *words && !is_one; words++) {
        const size_t n = strlen(*words);
        is_one = !strncmp(at, *words, n) && strchr("\r\n", at[n + strspn(at + n, " :")]);
    }
    return is_one;
}

/*
 * The heading above an entry ("Args:", or "Parameters" with a line of dashes); SIZE_MAX: the line stands in no list of parameters.
 */
static size_t heading_of(const document *d, size_t line)
{
    static const char *const headings[] = {"Args", "Arguments", "Parameters", "Params", "Keyword Args",
        "Keyword Arguments", "Other Parameters", NULL};
    const char *s = d->text->data;
    const size_t column = first_of(d, line) - line;
    while (line > d->from && line > 0) {
        line = tool__line_begin(s, line - 1);
        const size_t first = first_of(d, line), at = first - line;
        if (is_empty(d, line)) continue;
        if (at < column) return says(d, line, headings) ? line : SIZE_MAX;
        const bool is_rule = at == column && s[first] == '-' && s[first + strspn(s + first, "- \r")] == '\n';
        if (!is_rule || !line) continue;
        line = tool__line_begin(s, line - 1);
        return says(d, line, headings) ? line : SIZE_MAX;
    }
    return SIZE_MAX;
}

/* The line behind an entry, which its continuation lines belong to; or d->to's line end where the document ends on its last one. */
static size_t end_of(const document *d, size_t line)
{
    const char *s = d->text->data;
    const size_t first = first_of(d, line), column = first - line;
    const bool is_tag =
        strchr("@\\", s[first]) != NULL; /* what stands behind it is its text up to the next */
    for (;;) {
        const size_t end = next_line(d, line);
        const bool is_closed = d->is_block && memmem(s + line, end - line, "*/", 2);
        line = end;
        if (is_closed || line >= d->to || is_empty(d, line)) return line;
        const size_t at = first_of(d, line);
        if (strchr(":@\\", s[at]) || (at - line <= column && !is_tag)) return line;
    }
}

/* What closes the document on the lines [line, end): the byte of it; SIZE_MAX: nothing does. */
static size_t close_in(const document *d, size_t line, size_t end)
{
    if (d->is_docstring) return d->to < end ? d->to : SIZE_MAX;
    const char *at = d->is_block ? memmem(d->text->data + line, end - line, "*/", 2) : NULL;
    return at ? (size_t)(at - d->text->data) : SIZE_MAX;
}

/* Without the lines [line, end) a heading may be left with nothing under it, and a blank line at the document's end. */
static size_t widen_back(const document *d, size_t line, size_t end, bool is_closed)
{
    const char *s = d->text->data;
    const size_t heading = heading_of(d, line), column = first_of(d, line) - line;
    const bool is_last = is_closed || end >= d->to || is_empty(d, end);
    if (heading != SIZE_MAX && (is_last || first_of(d, end) - end < column)) {
        const size_t entries = next_line(d, heading);
        const bool is_ruled =
            entries != line && next_line(d, entries) == line && s[first_of(d, entries)] == '-';
        if (entries == line || is_ruled) line = heading;
    }
    while (is_last && line > d->from && line > 0) {
        const size_t before = tool__line_begin(s, line - 1);
        if (!is_empty(d, before) || memmem(s + before, line - before, "/*", 2)) break;
        line = before;
    }
    return line;
}

/* The entry that begins on this line goes; returns the byte behind it. */
static size_t cut_entry(const document *d, size_t line, refactor_edits *edits)
{
    const char *s = d->text->data;
    const size_t end = end_of(d, line), close = close_in(d, line, end);
    const bool opens = d->is_block && memmem(s + line, first_of(d, line) - line, "/*", 2);
    const size_t behind = close == SIZE_MAX && end < d->to ? close_in(d, end, next_line(d, end)) : SIZE_MAX;
    if (opens && close != SIZE_MAX) {
        refactor__edit(edits, (uint32_t)line, (uint32_t)end, "");
    } else if (opens && behind != SIZE_MAX && is_empty(d, end)) {
        refactor__edit(edits, (uint32_t)line, (uint32_t)next_line(d, end), "");
    } else if (opens) {
        refactor__edit(edits, (uint32_t)first_of(d, line), (uint32_t)first_of(d, end), "");
    } else if (close != SIZE_MAX && line) { /* what closes it goes to the end of the line in front */
        size_t from = widen_back(d, line, end, true);
        from -= from > 0;
        from -= from && s[from - 1] == '\r';
        refactor__edit(edits, (uint32_t)from, (uint32_t)close, d->is_docstring ? "" : " ");
    } else if (close == SIZE_MAX) {
        refactor__edit(edits, (uint32_t)widen_back(d, line, end, false), (uint32_t)end, "");
    }
    return end;
}

static void cut_entries(const document *d, const char *name, refactor_edits *edits)
{
    const char *s = d->text->data;
    size_t at = d->from;
    while (at < d->to && (at = refactor__find_word(d->text, name, at)) < d->to) {
        const size_t line = tool__line_begin(s, at), first = first_of(d, line);
        const bool is_entry = refactor__is_listed(d->text, at, strlen(name)) && line >= d->from &&
                              (strchr(":@\\", s[first]) || heading_of(d, line) != SIZE_MAX);
        at = is_entry ? cut_entry(d, line, edits) : at + strlen(name);
    }
}

void refactor__cut_documented(
    const refactor_file *f, const code_definition *definition, const char *name, refactor_edits *edits)
{
    const base_buf *text = &f->file.text;
    const size_t line = tool__line_begin(text->data, definition->from);
    uint32_t from, to;
    refactor__definition_extent(text, (uint32_t)line, definition->to, &from, &to);
    const bool is_block = memmem(text->data + from, line - from, "/*", 2) != NULL;
    if (from < line) cut_entries(&(document){text, from, line, false, is_block}, name, edits);
    document string = {text, 0, 0, true, false};
    if (refactor__find_docstring(f, definition, &string.from, &string.to)) cut_entries(&string, name, edits);
}
