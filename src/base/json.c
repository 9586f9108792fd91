#include "base/json.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/utf8.h"

enum { JSON_MAX_DEPTH = 128, JSON_PAGE = 16384, JSON_LEAST_PAGE = 512 };

/* Values and strings live in pages that are freed together. */
typedef struct page {
    struct page *next;
    size_t used, size;
    char bytes[];
} page;

struct base_json_doc {
    page *pages;
    size_t page_bytes; /* of the next page: the first one is as small as a small text needs */
    size_t bytes;      /* of all pages */
    base_json root;
};

typedef struct reader {
    const char *text;
    size_t n, at;
    size_t n_left; /* values that may still come */
    base_json_doc *doc;
    base_err *err;
} reader;

static void *doc_alloc(base_json_doc *doc, size_t n)
{
    n = (n + 7) & ~(size_t)7;
    page *p = doc->pages;
    if (!p || p->size - p->used < n) {
        size_t size = n > doc->page_bytes ? n : doc->page_bytes;
        p = base_xmalloc(sizeof *p + size);
        *p = (page){.next = doc->pages, .size = size};
        doc->pages = p;
        doc->bytes += sizeof *p + size;
        doc->page_bytes = JSON_PAGE;
    }
    void *at = p->bytes + p->used;
    p->used += n;
    return at;
}

static int fail(reader *r, const char *what)
{
    return base_fail(r->err, BASE_E_FORMAT, "JSON: %s at byte %zu", what, r->at);
}

static void skip_space(reader *r)
{
    while (r->at < r->n && strchr(" \t\r\n", r->text[r->at]) && r->text[r->at]) r->at++;
}

static bool next_is(reader *r, char c)
{
    if (r->at >= r->n || r->text[r->at] != c) return false;
    r->at++;
    return true;
}

static int hex4(reader *r, uint32_t *ret)
{
    *ret = 0;
    if (r->n - r->at < 4) return fail(r, "a \\u escape is cut off");
    for (int i = 0; i < 4; i++) {
        char c = r->text[r->at];
        int digit = c >= '0' && c <= '9'   ? c - '0'
                    : c >= 'a' && c <= 'f' ? c - 'a' + 10
                    : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                           : -1;
        if (digit < 0) return fail(r, "a \\u escape needs four hex digits");
        *ret = *ret << 4 | (uint32_t)digit;
        r->at++;
    }
    return 0;
}

static int read_escape(reader *r, char *out, size_t *len)
{
    if (r->at >= r->n) return fail(r, "a string is cut off");
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    char c = r->text[r->at++];
    const char *known = c ? strchr(from, c) : NULL;
    if (known) {
        out[(*len)++] = to[known - from];
        return 0;
    }
    if (c != 'u') return fail(r, "an unknown escape");
    uint32_t cp, low;
    int code = hex4(r, &cp);
    if (code) return code;
    if (cp >= 0xd800 && cp < 0xdc00 && r->n - r->at >= 6 && r->text[r->at] == '\\' &&
        r->text[r->at + 1] == 'u') {
        size_t held = r->at;
        r->at += 2;
        if ((code = hex4(r, &low))) return code;
        if (low >= 0xdc00 && low < 0xe000)
            cp = 0x10000 + ((cp - 0xd800) << 10) + (low - 0xdc00);
        else
            r->at = held; /* a lone surrogate becomes U+FFFD, what follows is read for itself */
    }
    *len += base_utf8_encode(cp, out + *len);
    return 0;
}

static int read_string(reader *r, const char **ret, size_t *ret_len)
{
    size_t end = r->at;
    while (end < r->n && r->text[end] != '"') end += r->text[end] == '\\' ? 2 : 1;
    if (end >= r->n) {
        r->at = r->n;
        return fail(r, "a string is cut off");
    }
    /* No escape makes more bytes than it takes (\u0000 is 6 for at most 3). */
    char *out = doc_alloc(r->doc, end - r->at + 1);
    size_t len = 0;
    while (r->text[r->at] != '"') {
        unsigned char c = (unsigned char)r->text[r->at];
        if (c < 0x20) return fail(r, "a raw control character in a string");
        r->at++;
        if (c != '\\') {
            out[len++] = (char)c;
            continue;
        }
        int code = read_escape(r, out, &len);
        if (code) return code;
    }
    r->at++;
    out[len] = '\0';
    *ret = out;
    *ret_len = len;
    return 0;
}

static int read_number(reader *r, base_json *v)
{
    size_t from = r->at;
    bool integer = true;
    next_is(r, '-');
    size_t digits = r->at;
    while (r->at < r->n && r->text[r->at] >= '0' && r->text[r->at] <= '9') r->at++;
    if (r->at == digits || (r->text[digits] == '0' && r->at - digits > 1))
        return fail(r, "a malformed number");
    if (next_is(r, '.')) {
        size_t start = r->at;
        integer = false;
        while (r->at < r->n && r->text[r->at] >= '0' && r->text[r->at] <= '9') r->at++;
        if (r->at == start) return fail(r, "a malformed number");
    }
    if (next_is(r, 'e') || next_is(r, 'E')) {
        integer = false;
        if (!next_is(r, '+')) next_is(r, '-');
        size_t start = r->at;
        while (r->at < r->n && r->text[r->at] >= '0' && r->text[r->at] <= '9') r->at++;
        if (r->at == start) return fail(r, "a malformed number");
    }
    if (r->at - from > 400) return fail(r, "a number of more than 400 digits");
    char copy[401];
    memcpy(copy, r->text + from, r->at - from);
    copy[r->at - from] = '\0';
    v->type = BASE_JSON_NUMBER;
    v->number = strtod(copy, NULL);
    if (integer) {
        errno = 0;
        v->integer = strtoll(copy, NULL, 10);
        v->is_integer = errno == 0;
    }
    return 0;
}

static int read_word(reader *r, base_json *v)
{
    static const struct {
        const char *word;
        base_json_type type;
        bool boolean;
    } words[] = {
        {"null", BASE_JSON_NULL, false}, {"true", BASE_JSON_BOOL, true}, {"false", BASE_JSON_BOOL, false}};
    for (size_t i = 0; i < 3; i++) {
        size_t len = strlen(words[i].word);
        if (r->n - r->at < len || memcmp(r->text + r->at, words[i].word, len)) continue;
        r->at += len;
        v->type = words[i].type;
        v->boolean = words[i].boolean;
        return 0;
    }
    return fail(r, "something that is no value");
}

static int read_value(reader *r, base_json *v, int depth);

static int read_children(reader *r, base_json *v, bool object, int depth)
{
    char close = object ? '}' : ']';
    base_json **tail = &v->first;
    int code;
    v->type = object ? BASE_JSON_OBJECT : BASE_JSON_ARRAY;
    skip_space(r);
    if (next_is(r, close)) return 0;
    for (;;) {
        if (!r->n_left--) return fail(r, "more values than are read of such a text");
        base_json *child = doc_alloc(r->doc, sizeof *child);
        *child = (base_json){0};
        skip_space(r);
        if (object) {
            size_t len;
            if (!next_is(r, '"')) return fail(r, "a member needs a quoted name");
            if ((code = read_string(r, &child->key, &len))) return code;
            skip_space(r);
            if (!next_is(r, ':')) return fail(r, "a colon is missing");
        }
        if ((code = read_value(r, child, depth + 1))) return code;
        *tail = child;
        tail = &child->next;
        v->n++;
        skip_space(r);
        if (next_is(r, close)) return 0;
        if (!next_is(r, ',')) return fail(r, "a comma or the end of the list is missing");
    }
}

static int read_value(reader *r, base_json *v, int depth)
{
    if (depth > JSON_MAX_DEPTH) return fail(r, "nested too deeply");
    skip_space(r);
    if (r->at >= r->n) return fail(r, "the text ends where a value should stand");
    v->from = r->at;
    char c = r->text[r->at];
    int code;
    if (c == '{' || c == '[') {
        r->at++;
        code = read_children(r, v, c == '{', depth);
    } else if (c == '"') {
        r->at++;
        v->type = BASE_JSON_STRING;
        code = read_string(r, &v->string, &v->string_len);
    } else if (c == '-' || (c >= '0' && c <= '9')) {
        code = read_number(r, v);
    } else {
        code = read_word(r, v);
    }
    v->to = r->at;
    return code;
}

static int parse_prefix(
    const char *text, size_t n, size_t most, size_t *ret_used, base_json_doc **ret, base_err *err)
{
    base_json_doc *doc = base_xcalloc(1, sizeof *doc);
    doc->page_bytes = n < JSON_LEAST_PAGE / 4 ? JSON_LEAST_PAGE : n < JSON_PAGE / 4 ? 4 * n : JSON_PAGE;
    reader r = {.text = text, .n = n, .n_left = most, .doc = doc, .err = err};
    int code = read_value(&r, &doc->root, 0);
    if (code) {
        base_json_free(doc);
        return code;
    }
    *ret_used = r.at;
    *ret = doc;
    return BASE_OK;
}

int base_json_parse_prefix(const char *text, size_t n, size_t *ret_used, base_json_doc **ret, base_err *err)
{
    return parse_prefix(text, n, BASE_JSON_MAX_VALUES, ret_used, ret, err);
}

int base_json_parse(const char *text, size_t n, base_json_doc **ret, base_err *err)
{
    return base_json_parse_most(text, n, BASE_JSON_MAX_VALUES, ret, err);
}

int base_json_parse_most(const char *text, size_t n, size_t most, base_json_doc **ret, base_err *err)
{
    base_json_doc *doc;
    reader rest = {.text = text, .n = n, .err = err};
    int code = parse_prefix(text, n, most, &rest.at, &doc, err);
    if (code) return code;
    skip_space(&rest);
    if (rest.at < n) {
        base_json_free(doc);
        return fail(&rest, "something behind the value");
    }
    *ret = doc;
    return BASE_OK;
}

const base_json *base_json_root(const base_json_doc *doc)
{
    return &doc->root;
}

size_t base_json_bytes(const base_json_doc *doc)
{
    return sizeof *doc + doc->bytes;
}

void base_json_free(base_json_doc *doc)
{
    if (!doc) return;
    for (page *p = doc->pages, *next; p; p = next) {
        next = p->next;
        free(p);
    }
    free(doc);
}

const base_json *base_json_get(const base_json *object, const char *key)
{
    if (!object || object->type != BASE_JSON_OBJECT) return NULL;
    for (const base_json *child = object->first; child; child = child->next)
        if (!strcmp(child->key, key)) return child;
    return NULL;
}

const base_json *base_json_at(const base_json *array, size_t i)
{
    if (!array || (array->type != BASE_JSON_ARRAY && array->type != BASE_JSON_OBJECT)) return NULL;
    const base_json *child = array->first;
    while (child && i--) child = child->next;
    return child;
}

const char *base_json_str(const base_json *object, const char *key, const char *otherwise)
{
    const base_json *v = base_json_get(object, key);
    return v && v->type == BASE_JSON_STRING ? v->string : otherwise;
}

int64_t base_json_int(const base_json *object, const char *key, int64_t otherwise)
{
    const base_json *v = base_json_get(object, key);
    return v && v->type == BASE_JSON_NUMBER && v->is_integer ? v->integer : otherwise;
}

double base_json_num(const base_json *object, const char *key, double otherwise)
{
    const base_json *v = base_json_get(object, key);
    return v && v->type == BASE_JSON_NUMBER ? v->number : otherwise;
}

bool base_json_bool(const base_json *object, const char *key, bool otherwise)
{
    const base_json *v = base_json_get(object, key);
    return v && v->type == BASE_JSON_BOOL ? v->boolean : otherwise;
}

/*
 * Inside a string: as it is (RFC 8259, section 7, allows that), or as an escape where a reader's terminal
 * would obey or hide it.
 */
static void put_letter(base_buf *out, uint32_t cp, const char *s, size_t n)
{
    if (cp == 0xfffd && n == 1)
        base_buf_add(out, "\xef\xbf\xbd", 3);
    else if (!base_utf8_is_harmful(cp))
        base_buf_add(out, s, n);
    else if (cp < 0x10000)
        base_buf_printf(out, "\\u%04x", (unsigned)cp);
    else
        base_buf_printf(out, "\\u%04x\\u%04x", (unsigned)(0xd800 + ((cp - 0x10000) >> 10)),
            (unsigned)(0xdc00 + (cp & 0x3ff)));
}

void base_json_put_str(base_buf *out, const char *s, size_t n)
{
    base_buf_putc(out, '"');
    for (size_t i = 0; i < n;) {
        uint32_t cp;
        size_t used = base_utf8_decode(s + i, n - i, &cp);
        static const char from[] = "\"\\\b\f\n\r\t", to[] = "\"\\bfnrt";
        const char *known = cp && cp < 0x80 ? strchr(from, (char)cp) : NULL;
        if (known) {
            base_buf_putc(out, '\\');
            base_buf_putc(out, to[known - from]);
        } else {
            put_letter(out, cp, s + i, used);
        }
        i += used;
    }
    base_buf_putc(out, '"');
}

void base_json_put_text(base_buf *out, const char *json)
{
    for (size_t i = 0, n = strlen(json), used; i < n; i += used) {
        uint32_t cp;
        used = base_utf8_decode(json + i, n - i, &cp);
        if (cp == '\n' || cp == '\r' || cp == '\t')
            base_buf_putc(out, ' ');
        else
            put_letter(out, cp, json + i, used);
    }
}

void base_json_put_num(base_buf *out, double x)
{
    char text[40];
    if (!isfinite(x)) {
        base_buf_puts(out, "null"); /* JSON has no NaN and no infinity */
        return;
    }
    if (x == floor(x) && fabs(x) < 1e15) {
        base_buf_printf(out, "%lld", (long long)x);
        return;
    }
    for (int digits = 6; digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, x);
        if (strtod(text, NULL) == x) break;
    }
    base_buf_puts(out, text);
}

void base_json_put(base_buf *out, const base_json *v)
{
    switch (v->type) {
    case BASE_JSON_NULL: base_buf_puts(out, "null"); break;
    case BASE_JSON_BOOL: base_buf_puts(out, v->boolean ? "true" : "false"); break;
    case BASE_JSON_STRING: base_json_put_str(out, v->string, v->string_len); break;
    case BASE_JSON_NUMBER:
        if (v->is_integer)
            base_buf_printf(out, "%lld", (long long)v->integer);
        else
            base_json_put_num(out, v->number);
        break;
    case BASE_JSON_ARRAY:
    case BASE_JSON_OBJECT:
        base_buf_putc(out, v->type == BASE_JSON_ARRAY ? '[' : '{');
        for (const base_json *child = v->first; child; child = child->next) {
            if (child != v->first) base_buf_putc(out, ',');
            if (v->type == BASE_JSON_OBJECT) {
                base_json_put_str(out, child->key, strlen(child->key));
                base_buf_putc(out, ':');
            }
            base_json_put(out, child);
        }
        base_buf_putc(out, v->type == BASE_JSON_ARRAY ? ']' : '}');
        break;
    }
}

static void put_key(base_buf *out, const char *key)
{
    const char last = out->len ? out->data[out->len - 1] : '{';
    base_buf_printf(out, "%s\"%s\":", last == '{' || last == '[' ? "" : ",", key);
}

void base_json_put_member_str(base_buf *out, const char *key, const char *value)
{
    if (!value) return;
    put_key(out, key);
    base_json_put_str(out, value, strlen(value));
}

void base_json_put_member(base_buf *out, const char *key, const char *json)
{
    put_key(out, key);
    base_buf_puts(out, json);
}
