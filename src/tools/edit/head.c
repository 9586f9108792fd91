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

/* ---- the order of parameters ---- */

enum { MOST_PARAMETERS = 64 };

/* The name of an item: its first word behind "*" and "...". Returns its length. */
static uint32_t find_item_name(const head *h, uint32_t i, const char **ret)
{
    uint32_t from = h->items[i].from, n = 0;
    const uint32_t to = h->items[i].to;
    while (from < to && strchr("*.&", h->text[from])) from++;
    while (from + n < to && code_is_name_byte(h->text[from + n])) n++;
    *ret = h->text + from;
    return n;
}

/* The item of `h` with the name of item i of `of`; h->n: none. */
static uint32_t find_item(const head *h, const head *of, uint32_t i)
{
    const char *name, *other;
    const uint32_t n = find_item_name(of, i, &name);
    uint32_t k = 0;
    while (k < h->n && (find_item_name(h, k, &other) != n || memcmp(name, other, n) != 0)) k++;
    return k;
}

static bool has_default(const head *h, uint32_t i)
{
    return memchr(h->text + h->items[i].from, '=', h->items[i].to - h->items[i].from) != NULL;
}

/* "**options", "...rest": nothing may stand behind it. */
static bool is_rest(const head *h, uint32_t i)
{
    const char *at = h->text + h->items[i].from;
    return !strncmp(at, "**", 2) || !strncmp(at, "...", 3);
}

/*
 * The items of `is` in the order in which calls find the old ones: ret[k] stands at place k. The first new one that moves is
 * *ret_moved. false: it is in order, or old ones were renamed, removed or ordered anew, which is the request's own matter.
 */
static bool order_items(const head *was, const head *is, uint32_t *ret, uint32_t *ret_moved)
{
    uint32_t last = 0, n = 0, n_old = 0;
    bool is_new[MOST_PARAMETERS] = {false};
    if (is->n > MOST_PARAMETERS || is->n <= was->n) return false;
    for (uint32_t k = 0; k < is->n; k++) {
        const uint32_t at = find_item(was, is, k);
        is_new[k] = at == was->n;
        if (!is_new[k] && at != n_old++) return false;
        if (!is_new[k] && !is_rest(is, k)) last = k;
    }
    *ret_moved = is->n;
    for (uint32_t k = 0; k < is->n; k++) {
        const bool moves = k < last && is_new[k] && has_default(is, k);
        if (moves && *ret_moved == is->n) *ret_moved = k;
        if (!moves) ret[n++] = k;
        for (uint32_t m = 0; k == last && m < last; m++)
            if (is_new[m] && has_default(is, m)) ret[n++] = m;
    }
    return n_old == was->n && *ret_moved < is->n;
}

static bool speaks_of_order(const char *request)
{
    static const char *const words[] = {
        "first", "front", "before", "beginning", "start of", "order", "leading", NULL};
    bool does = !request;
    for (size_t i = 0; words[i] && !does; i++) does = strcasestr(request, words[i]) != NULL;
    return does;
}

/* Does it call itself? Then its calls follow the order that it was written in. */
static bool calls_itself(const head *h, const base_buf *text, const char *name)
{
    const char *short_name = code_last_name(name);
    const char *at = text->data + h->to;
    const size_t n = strlen(short_name);
    while ((at = strstr(at, short_name)) != NULL) {
        if (at[n] == '(' && !code_is_name_byte(at[-1])) return true;
        at += n;
    }
    return false;
}

void tool__keep_order(code_grammars *g, const char *path, const base_buf *old_text, base_buf *new_text,
    const char *name, const char *request, base_buf *note)
{
    static const char *const languages[] = {"python", "javascript", "typescript", "tsx"};
    const char *language = code_language(path, old_text->data, old_text->len);
    bool is_read = false;
    head was = {0}, is = {0};
    uint32_t order[MOST_PARAMETERS], moved;
    for (size_t i = 0; language && i < sizeof languages / sizeof *languages; i++)
        is_read |= !strcmp(language, languages[i]);
    if (is_read && !speaks_of_order(request) && find_head(g, path, old_text, name, false, &was) &&
        find_head(g, path, new_text, name, false, &is) && order_items(&was, &is, order, &moved) &&
        !calls_itself(&is, new_text, name)) {
        base_buf out = {0};
        const char *moved_name;
        const uint32_t n_name = find_item_name(&is, moved, &moved_name);
        uint32_t at = 0;
        base_buf_printf(note, "%s%.*s stands behind the parameters that calls give by place.",
            note->len ? " " : "", (int)n_name, moved_name);
        for (uint32_t k = 0; k < is.n; k++) { /* white space and commas stay where they are */
            base_buf_add(&out, new_text->data + at, is.items[k].from - at);
            const code_item *item = &is.items[order[k]];
            base_buf_add(&out, new_text->data + item->from, item->to - item->from);
            at = is.items[k].to;
        }
        base_buf_add(&out, new_text->data + at, new_text->len - at);
        base_buf_free(new_text);
        *new_text = out;
    }
    free(was.items);
    free(is.items);
}
