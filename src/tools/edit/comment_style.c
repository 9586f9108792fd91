/* Comments of a block as its file writes them (contract: keep_comments.h). */
#include <string.h>

#include "code/code.h"
#include "tools/edit/keep_comments.h"
#include "tools/edit/newcomer.h"
#include "tools/file/text.h"

typedef enum place { IN_CODE, IN_STRING, IN_CHARACTER, IN_BLOCK, IN_LINE } place;

/* The place behind the byte at `at`; *ret_n: how many bytes that was. */
static place step(place p, const char *s, size_t n, size_t at, size_t *ret_n)
{
    const char c = s[at], next = at + 1 < n ? s[at + 1] : '\0';
    *ret_n = 1;
    if (p == IN_LINE) return c == '\n' ? IN_CODE : p;
    if (p == IN_BLOCK && c == '*' && next == '/') return *ret_n = 2, IN_CODE;
    if ((p == IN_STRING || p == IN_CHARACTER) && c == '\\') return *ret_n = next ? 2 : 1, p;
    if (p == IN_STRING) return c == '"' || c == '\n' ? IN_CODE : p;
    if (p == IN_CHARACTER) return c == '\'' || c == '\n' ? IN_CODE : p;
    if (p != IN_CODE) return p;
    if (c == '/' && next == '/') return *ret_n = 2, IN_LINE;
    if (c == '/' && next == '*') return *ret_n = 2, IN_BLOCK;
    return c == '"' ? IN_STRING : c == '\'' ? IN_CHARACTER : p;
}

static bool has_any(const base_buf *text, place wanted)
{
    place p = IN_CODE;
    bool has = false;
    for (size_t at = 0, n; at < text->len && !has; at += n) {
        p = step(p, text->data, text->len, at, &n);
        has = p == wanted;
    }
    return has;
}

/* "// x" as a block comment. */
static void put_block(const base_buf *text, size_t from, size_t to, base_buf *out)
{
    while (to > from && strchr(" \t\r", text->data[to - 1])) to--;
    base_buf_puts(out, "/*");
    base_buf_add(out, text->data + from, to - from);
    base_buf_puts(out, " */");
}

bool tool__comment_as_file(const char *path, const base_buf *old_text, base_buf *text)
{
    place p = IN_CODE;
    base_buf out = {0};
    if (!tool__is_language(code_language(path, "", 0), "c") || !has_any(old_text, IN_BLOCK) ||
        has_any(old_text, IN_LINE) || !has_any(text, IN_LINE))
        return false;
    for (size_t at = 0, n; at < text->len; at += n) {
        const size_t end = tool__line_end(text->data, text->len, at);
        const bool was_code = p == IN_CODE;
        p = step(p, text->data, text->len, at, &n);
        const bool is_begun = was_code && p == IN_LINE && !memmem(text->data + at, end - at, "*/", 2);
        if (!is_begun) {
            base_buf_add(&out, text->data + at, n);
            continue;
        }
        put_block(text, at + 2, end, &out);
        if (end > at && text->data[end - 1] == '\r') base_buf_putc(&out, '\r');
        n = end - at;
        p = IN_CODE;
    }
    base_buf_free(text);
    *text = out;
    return true;
}
