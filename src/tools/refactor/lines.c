/*
 * Whole pieces of a file's text that an operation takes out: a definition with its comment, one item of a list,
 * a statement.
 */
#include "tools/refactor/refactor.h"

#include <string.h>

#include "tools/file/text.h"

static bool is_comment_line(const char *text, size_t from, size_t to)
{
    static const char *const marks[] = {"//", "/*", "*", "#", "--", "@"};
    while (from < to && (text[from] == ' ' || text[from] == '\t')) from++;
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++) {
        const size_t n = strlen(marks[i]);
        if (to - from < n || memcmp(text + from, marks[i], n) != 0) continue;
        static const char *const code[] = {
            "#include", "#define", "#if", "#endif", "#else", "#pragma", "#undef", "#!"};
        for (size_t k = 0; k < sizeof code / sizeof *code; k++)
            if (to - from >= strlen(code[k]) && !memcmp(text + from, code[k], strlen(code[k]))) return false;
        return true;
    }
    return false;
}

/* The line where a comment opens whose last line is [line, end); SIZE_MAX: that line ends none, or code stands beside it. */
static size_t comment_opens(const char *text, size_t line, size_t end)
{
    enum { MOST = 60 };
    while (end > line && tool__is_space(text[end - 1])) end--;
    if (end - line < 2 || memcmp(text + end - 2, "*/", 2) != 0) return SIZE_MAX;
    for (int i = 0; i < MOST; i++) {
        const char *open = memmem(text + line, end - line, "/*", 2);
        if (open) return tool__is_blank(text, line, (size_t)(open - text)) ? line : SIZE_MAX;
        if (line == 0) return SIZE_MAX;
        end = line - 1;
        line = tool__line_begin(text, end);
        if (memmem(text + line, end - line, "*/", 2)) return SIZE_MAX;
    }
    return SIZE_MAX;
}

static bool is_line_comment(const char *text, size_t from, size_t to)
{
    return from < to && (text[from] == '#' || (to - from > 1 && !memcmp(text + from, "//", 2)));
}

void refactor__definition_extent(
    const base_buf *text, uint32_t from, uint32_t to, uint32_t *ret_from, uint32_t *ret_to)
{
    const char *s = text->data;
    size_t a = tool__line_begin(s, from), b = to;
    if (!tool__is_blank(s, a, from)) a = from; /* something stands in front of it on its line */
    while (b < text->len && (s[b] == ';' || s[b] == ' ' || s[b] == '\t' || s[b] == '\r')) b++;
    const bool is_whole = a != from || from == tool__line_begin(s, from);
    const size_t end = tool__line_end(s, text->len, (uint32_t)b);
    if (is_whole && b > to && is_line_comment(s, b, end)) b = end; /* "x = y  # an alias": it goes with it */
    if (b < text->len && s[b] == '\n')
        b++;
    else if (b < text->len)
        b = to;
    /* The comment right above it. */
    while (is_whole && a > 0) {
        const size_t line = tool__line_begin(s, a - 1);
        const size_t open = is_comment_line(s, line, a - 1) ? line : comment_opens(s, line, a - 1);
        if (open == SIZE_MAX) break;
        a = open;
    }
    *ret_from = (uint32_t)a;
    *ret_to = (uint32_t)b;
}

/* The blank lines that would be left twice. */
void refactor__widen_blank(const base_buf *text, uint32_t *from, uint32_t *to)
{
    const char *s = text->data;
    while (*to < text->len) {
        const size_t end = tool__line_end(s, text->len, *to);
        if (!tool__is_blank(s, *to, end) || end == text->len) break;
        *to = (uint32_t)end + 1;
    }
    if (*to < text->len) return;
    while (*from > 0) { /* at the file's end those in front go */
        const size_t line = tool__line_begin(s, *from - 1);
        if (!tool__is_blank(s, line, *from - 1)) break;
        *from = (uint32_t)line;
    }
}

bool refactor__item_extent(const base_buf *text, uint32_t *from, uint32_t *to)
{
    const char *s = text->data;
    uint32_t a = *from, b = *to;
    while (b < text->len && strchr(" \t\r\n", s[b])) b++;
    if (b < text->len && s[b] == ',') {
        b++;
        while (b < text->len && (s[b] == ' ' || s[b] == '\t')) b++;
        const uint32_t line = (uint32_t)tool__line_begin(s, *from);
        const bool is_alone =
            line > 0 && b < text->len && strchr("\r\n", s[b]) && tool__is_blank(s, line, *from);
        if (is_alone) *from = line;
        *to = is_alone ? (uint32_t)tool__line_end(s, text->len, b) + 1 : b;
        return true;
    }
    while (a > 0 && strchr(" \t\r\n", s[a - 1])) a--;
    if (a == 0 || s[a - 1] != ',') return false; /* the only one */
    *from = a - 1;
    return true;
}

bool refactor__statement_extent(const base_buf *text, uint32_t *from, uint32_t *to)
{
    const char *s = text->data;
    const size_t a = tool__line_begin(s, *from);
    size_t b = *to;
    if (!tool__is_blank(s, a, *from)) return false;
    while (b < text->len && (s[b] == ';' || s[b] == ' ' || s[b] == '\t' || s[b] == '\r')) b++;
    if (b < text->len && s[b] != '\n') return false;
    *from = (uint32_t)a;
    *to = (uint32_t)(b < text->len ? b + 1 : b);
    return true;
}
