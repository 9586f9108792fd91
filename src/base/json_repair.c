/*
 * Reads JSON as small models write it and writes JSON as the standard wants it: raw newlines inside strings,
 * single quotes, bare keys, trailing commas, quotes inside strings, Python's True/False/None, missing ends.
 * One pass, bounded depth.
 */
#include <string.h>

#include "base/json.h"

enum { MAX_DEPTH = 24 };

typedef struct reader {
    const char *p, *end;
    base_buf *out;
    bool complete; /* nothing had to be closed at the end of the text */
} reader;

static void skip_space(reader *r)
{
    while (r->p < r->end && memchr(" \t\r\n", *r->p, 4)) r->p++;
}

/* A quote ends the string only where JSON goes on: before , } ] : or the end of the text. */
static bool quote_ends(const reader *r)
{
    const char *q = r->p + 1;
    while (q < r->end && memchr(" \t\r\n", *q, 4)) q++;
    return q == r->end || memchr(",}]:", *q, 4);
}

static void put_string(reader *r, const base_buf *text)
{
    base_json_put_str(r->out, text->data ? text->data : "", text->len);
}

static void read_escape(reader *r, base_buf *text)
{
    static const char from[] = "ntrbf\"\\/'", to[] = "\n\t\r\b\f\"\\/'";
    char c = *r->p++;
    const char *at = memchr(from, c, sizeof from - 1);
    if (at) {
        base_buf_putc(text, to[at - from]);
        return;
    }
    if (c == 'u' && r->end - r->p >= 4) { /* the standard reader knows surrogate pairs */
        char quoted[15] = "\"\\u";
        size_t n = 3;
        memcpy(quoted + n, r->p, 4);
        n += 4;
        bool pair = r->end - r->p >= 10 && r->p[4] == '\\' && r->p[5] == 'u';
        if (pair) {
            memcpy(quoted + n, r->p + 4, 6);
            n += 6;
        }
        quoted[n++] = '"';
        base_json_doc *doc = NULL;
        if (base_json_parse(quoted, n, &doc, NULL) == 0) {
            const base_json *s = base_json_root(doc);
            base_buf_add(text, s->string, s->string_len);
            base_json_free(doc);
            r->p += pair ? 10 : 4;
            return;
        }
    }
    base_buf_putc(text, '\\'); /* "\d" of a regular expression: the backslash was meant */
    base_buf_putc(text, c);
}

static void read_string(reader *r)
{
    char quote = *r->p++;
    base_buf text = {0};
    bool closed = false;
    while (r->p < r->end && !closed) {
        if (*r->p == '\\' && r->p + 1 < r->end) {
            r->p++;
            read_escape(r, &text);
        } else if (*r->p == quote && quote_ends(r)) {
            closed = true;
            r->p++;
        } else {
            base_buf_putc(&text, *r->p++);
        }
    }
    if (!closed) r->complete = false;
    put_string(r, &text);
    base_buf_free(&text);
}

static bool is_bare(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           memchr("_.+-/$", c, 6);
}

/* A number, a constant, or a word somebody forgot to quote. */
static bool read_bare(reader *r, bool as_key)
{
    static const char *const constants[][2] = {{"true", "true"}, {"false", "false"}, {"null", "null"},
        {"True", "true"}, {"False", "false"}, {"None", "null"}};
    const char *start = r->p;
    while (r->p < r->end && is_bare(*r->p)) r->p++;
    size_t n = (size_t)(r->p - start);
    if (!n) return false;
    if (r->p == r->end) r->complete = false;
    for (size_t i = 0; !as_key && i < sizeof constants / sizeof *constants; i++)
        if (strlen(constants[i][0]) == n && !memcmp(constants[i][0], start, n)) {
            base_buf_puts(r->out, constants[i][1]);
            return true;
        }
    base_json_doc *doc = NULL;
    if (!as_key && base_json_parse(start, n, &doc, NULL) == 0) { /* only a number is left */
        base_json_free(doc);
        base_buf_add(r->out, start, n);
        return true;
    }
    base_json_put_str(r->out, start, n);
    return true;
}

static bool read_value(reader *r, int depth);

static bool read_members(reader *r, char close, int depth)
{
    bool object = close == '}', first = true;
    base_buf_putc(r->out, *r->p++);
    for (;;) {
        skip_space(r);
        while (r->p < r->end && *r->p == ',') { /* trailing and doubled commas */
            r->p++;
            skip_space(r);
        }
        if (r->p == r->end || memchr("}]", *r->p, 2) || *r->p == '<' || *r->p == '`') {
            if (r->p < r->end && *r->p == close)
                r->p++;
            else
                r->complete = false;
            base_buf_putc(r->out, close);
            return true;
        }
        if (!first) base_buf_putc(r->out, ',');
        first = false;
        if (object) {
            if (*r->p == '"' || *r->p == '\'')
                read_string(r);
            else if (!read_bare(r, true))
                return false;
            skip_space(r);
            base_buf_putc(r->out, ':');
            if (r->p < r->end && (*r->p == ':' || *r->p == '=')) r->p++;
            skip_space(r);
            if (r->p == r->end) {
                r->complete = false;
                base_buf_puts(r->out, "null");
                continue;
            }
        }
        if (!read_value(r, depth + 1)) return false;
    }
}

static bool read_value(reader *r, int depth)
{
    skip_space(r);
    if (r->p == r->end || depth > MAX_DEPTH) return false;
    if (*r->p == '{') return read_members(r, '}', depth);
    if (*r->p == '[') return read_members(r, ']', depth);
    if (*r->p == '"' || *r->p == '\'') {
        read_string(r);
        return true;
    }
    return read_bare(r, false);
}

size_t base_json_repair(const char *text, size_t n, base_buf *out, bool *complete)
{
    reader r = {text, text + n, out, true};
    size_t before = out->len;
    if (!read_value(&r, 0)) {
        out->len = before;
        if (out->data) out->data[before] = 0;
        return 0;
    }
    *complete = r.complete;
    return (size_t)(r.p - text);
}

base_json_doc *base_json_parse_begun(const char *text, bool *complete)
{
    base_buf whole = {0};
    base_json_doc *doc = NULL;
    *complete = true;
    base_json_repair(text, strlen(text), &whole, complete);
    if (base_json_parse(whole.data ? whole.data : "", whole.len, &doc, NULL)) doc = NULL;
    base_buf_free(&whole);
    return doc;
}
