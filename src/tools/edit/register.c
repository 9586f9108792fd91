/* Lines that run a test (contract: register.h). */
#include "tools/edit/register.h"

#include <string.h>

#include "code/code.h"
#include "tools/file/text.h"

/* Is the line a row of a table: `{"/list/test_add", test_add, NULL},`? */
static bool is_row(const char *text, size_t from, size_t to)
{
    while (from < to && strchr(" \t", text[from])) from++;
    return from < to && text[from] == '{';
}

/*
 * Where `name` stands by itself in text[from, to), with a bracket in front, or as any value of a row; 0: nowhere. may_be_called:
 * "run(test_f())" counts; of a test that is said without its "test_" it does not, since "assert(f())" tests f.
 */
static size_t find_argument(const char *text, size_t from, size_t to, const char *name, bool may_be_called)
{
    const size_t n = strlen(name);
    const char *in_front = is_row(text, from, to) ? "(&{," : "(&{";
    for (size_t at = from + 1; at + n < to; at++) {
        size_t before = at;
        while (before > from && text[before - 1] == ' ') before--;
        if (!memcmp(text + at, name, n) && before > from && strchr(in_front, text[before - 1]) &&
            !code_is_name_byte(text[at + n]) && (may_be_called || text[at + n] != '('))
            return at;
    }
    return 0;
}

/* The same for a call of it, "    test_find();": the line's first word. */
static size_t find_call(const char *text, size_t from, size_t to, const char *name)
{
    const size_t n = strlen(name);
    size_t at = from;
    while (at < to && (text[at] == ' ' || text[at] == '\t')) at++;
    return at > from && at + n + 1 < to && !memcmp(text + at, name, n) && text[at + n] == '(' ? at : 0;
}

/* Is it an indented line that does nothing but run a test? */
static bool runs(const char *text, size_t from, size_t to)
{
    while (to > from && tool__is_space(text[to - 1])) to--;
    return to > from && (text[from] == ' ' || text[from] == '\t') && strchr(";,)", text[to - 1]) &&
           (memchr(text + from, '(', to - from) != NULL || is_row(text, from, to));
}

/* text[from, to) with the new name for the other, wherever it is one by itself: a row has it in its title too. */
static void put_renamed(
    const char *text, size_t from, size_t to, const char *name, const char *instead, base_buf *out)
{
    const size_t n = strlen(name);
    for (size_t at = from; at < to;) {
        const bool is_it = to - at >= n && !memcmp(text + at, name, n) &&
                           (at == from || !code_is_name_byte(text[at - 1])) &&
                           (at + n == to || !code_is_name_byte(text[at + n]));
        if (is_it)
            base_buf_puts(out, instead);
        else
            base_buf_putc(out, text[at]);
        at += is_it ? n : 1;
    }
}

bool tool__register_test(base_buf *text, const char *neighbour, const char *name)
{
    static const char prefix[] = "test_";
    const size_t skip = sizeof prefix - 1;
    size_t found = 0, end = 0;
    const char *old = NULL, *instead = NULL;
    if (strncmp(neighbour, prefix, skip) != 0 || strncmp(name, prefix, skip) != 0) return false;
    for (size_t at = 0; at < text->len;) {
        const size_t to = tool__line_end(text->data, text->len, at);
        for (size_t k = 0; k <= skip && runs(text->data, at, to); k += skip) {
            size_t place = find_argument(text->data, at, to, neighbour + k, !k);
            if (!place && !k) place = find_call(text->data, at, to, neighbour);
            if (find_argument(text->data, at, to, name + k, !k) || find_call(text->data, at, to, name))
                return false;
            if (!place) continue;
            found = place;
            end = to;
            old = neighbour + k;
            instead = name + k;
            break;
        }
        at = to + 1;
    }
    if (!instead) return false;
    const size_t line = tool__line_begin(text->data, found);
    base_buf out = {0};
    base_buf_add(&out, text->data, end);
    base_buf_putc(&out, '\n');
    if (old == neighbour) {
        put_renamed(text->data, line, end, old, instead, &out);
    } else {
        const size_t behind = found + strlen(old);
        base_buf_add(&out, text->data + line, found - line);
        base_buf_puts(&out, instead);
        base_buf_add(&out, text->data + behind, end - behind);
    }
    base_buf_add(&out, text->data + end, text->len - end);
    base_buf_free(text);
    *text = out;
    return true;
}

/* The end of "void test_find(void);" in text[from, to), which stands at the line's beginning; 0: it is no declaration of it. */
static size_t declaration_end(const char *text, size_t from, size_t to, const char *name)
{
    const size_t n = strlen(name);
    if (from == to || tool__is_space(text[from])) return 0;
    for (size_t at = from + 1; at + n < to; at++) {
        if (memcmp(text + at, name, n) != 0 || code_is_name_byte(text[at - 1]) || text[at + n] != '(')
            continue;
        const char *close = memchr(text + at + n, ')', to - at - n);
        const size_t list = close ? (size_t)(close - text) - at - n - 1 : 0;
        const bool is_empty = close && (!list || (list == 4 && !memcmp(close - 4, "void", 4)));
        return is_empty && (size_t)(close - text) + 1 < to && close[1] == ';' ? (size_t)(close - text) + 2
                                                                              : 0;
    }
    return 0;
}

bool tool__declare_test(base_buf *text, const char *neighbour, const char *name)
{
    size_t line = 0, end = 0, line_end = 0;
    for (size_t at = 0; at < text->len; at = tool__line_end(text->data, text->len, at) + 1) {
        const size_t to = tool__line_end(text->data, text->len, at),
                     own = declaration_end(text->data, at, to, neighbour);
        if (declaration_end(text->data, at, to, name)) return false;
        if (!own) continue;
        line = at;
        end = own;
        line_end = to;
    }
    if (!end) return false;
    base_buf out = {0};
    base_buf_add(&out, text->data, line_end);
    base_buf_putc(&out, '\n');
    put_renamed(text->data, line, end, neighbour, name, &out);
    base_buf_add(&out, text->data + line_end, text->len - line_end);
    base_buf_free(text);
    *text = out;
    return true;
}
