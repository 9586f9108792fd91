/* Keeps the layout of a head (contract: head.h). */
#include "tools/edit/head.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "code/uses.h"
#include "tools/edit/definition.h"

typedef struct head {
    const char *text;
    uint32_t from, to; /* what is kept: between the brackets; Python: to the colon behind them */
    code_item *items;
    uint32_t n;
} head;

/* The colon that ends a head of Python; UINT32_MAX: none. */
static uint32_t find_colon(const base_buf *text, uint32_t at)
{
    int depth = 0;
    for (; at < text->len; at++) {
        const char c = text->data[at];
        if (c == '\'' || c == '"' || c == '#')
            return UINT32_MAX; /* an annotation in quotes: it stays as it is written */
        depth += (c == '(' || c == '[') - (c == ')' || c == ']');
        if (c == ':' && !depth) return at;
    }
    return UINT32_MAX;
}

static bool find_head(
    code_grammars *g, const char *path, const base_buf *text, const char *name, bool is_python, head *ret)
{
    base_buf why = {0};
    code_item_list list = {0};
    uint32_t at;
    bool found = false;
    *ret = (head){.text = text->data};
    code_file *c = tool__parse_for(g, path, text->data, text->len, name);
    if (tool__find_definition(c, path, text, name, &at, &why)) {
        const code_definition *d = &c->definitions[at];
        found = code_items(g, path, text->data, text->len, d->name_from + (uint32_t)strlen(d->name), &list) &&
                list.to <= d->to;
        ret->items = list.items;
        ret->n = list.n;
        ret->from = list.from;
        ret->to = found && is_python ? find_colon(text, list.to + 1) : list.to;
        found = found && ret->to != UINT32_MAX && ret->to <= d->to;
    }
    code_file_free(c);
    base_buf_free(&why);
    return found;
}

/* An item without white space outside of quotes; Python: without its annotation, which stands in front of a default. */
static void put_plain(const head *h, uint32_t i, bool is_python, base_buf *out)
{
    bool is_annotation = false, is_default = false;
    char quote = 0;
    int depth = 0;
    for (uint32_t k = h->items[i].from; k < h->items[i].to; k++) {
        const char c = h->text[k];
        if (quote ? c == quote : c == '\'' || c == '"') quote = quote ? 0 : c;
        depth += (c && strchr("([{", c)) - (c && strchr(")]}", c));
        is_default |= !depth && c == '=';
        is_annotation = is_python && !is_default && (is_annotation || (!depth && c == ':'));
        if (!is_annotation && (quote || !strchr(" \t\r\n", c))) base_buf_putc(out, c);
    }
    base_buf_putc(out, ',');
}

static bool is_same(const head *a, const head *b, bool is_python)
{
    base_buf x = {0}, y = {0};
    for (uint32_t i = 0; i < a->n; i++) put_plain(a, i, is_python, &x);
    for (uint32_t i = 0; i < b->n; i++) put_plain(b, i, is_python, &y);
    const bool is = x.len == y.len && (!x.len || !memcmp(x.data, y.data, x.len));
    base_buf_free(&x);
    base_buf_free(&y);
    return is;
}

/* As words of their own: a TypeError is no type of a parameter. */
static bool speaks_of_types(const char *request)
{
    static const char *const words[] = {"type", "types", "typed", "typing", "annotate", "annotation",
        "annotations", "hint", "hints", "signature", "parameter", "parameters", "argument", "arguments",
        "format", "reformat"};
    size_t pos = 0, from, to;
    bool does = !request || strstr(request, "->");
    while (!does && code_next_identifier(request, strlen(request), &pos, &from, &to))
        for (size_t i = 0; i < sizeof words / sizeof *words && !does; i++)
            does = strlen(words[i]) == to - from && !strncasecmp(request + from, words[i], to - from);
    return does;
}

void tool__keep_head(code_grammars *g, const char *path, const base_buf *old_text, base_buf *new_text,
    const char *name, const char *request)
{
    const char *language = code_language(path, old_text->data, old_text->len);
    const bool is_python = language && !strcmp(language, "python");
    head was = {0}, is = {0};
    if (language && !speaks_of_types(request) && find_head(g, path, old_text, name, is_python, &was) &&
        find_head(g, path, new_text, name, is_python, &is) && is_same(&was, &is, is_python)) {
        base_buf out = {0};
        base_buf_add(&out, new_text->data, is.from);
        base_buf_add(&out, was.text + was.from, was.to - was.from);
        base_buf_add(&out, new_text->data + is.to, new_text->len - is.to);
        base_buf_free(new_text);
        *new_text = out;
    }
    free(was.items);
    free(is.items);
}
