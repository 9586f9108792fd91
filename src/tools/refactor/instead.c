/*
 * What stands in place of a call: a text in which the names of the called definition's parameters stand for what the
 * call gives for them, and self for its object.
 */
#include "tools/refactor/refactor.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

/* "name=" at the head of an argument; where its value begins, or NULL. */
static const char *behind_keyword(base_str item, size_t *ret_name)
{
    size_t n = 0;
    while (n < item.len && (isalnum((unsigned char)item.ptr[n]) || item.ptr[n] == '_')) n++;
    *ret_name = n;
    while (n < item.len && item.ptr[n] == ' ') n++;
    if (!*ret_name || n + 1 >= item.len || item.ptr[n] != '=' || item.ptr[n + 1] == '=') return NULL;
    n++;
    while (n < item.len && item.ptr[n] == ' ') n++;
    return item.ptr + n;
}

base_str refactor__given_for(const refactor_instead *r, const base_str *items, size_t n, size_t k)
{
    bool has_keyword = false;
    for (size_t i = 0; i < n; i++) {
        size_t n_name = 0;
        const char *value = r->has_keywords ? behind_keyword(items[i], &n_name) : NULL;
        has_keyword |= value != NULL;
        if (value && n_name == strlen(r->names[k]) && !memcmp(items[i].ptr, r->names[k], n_name))
            return (base_str){value, (size_t)(items[i].ptr + items[i].len - value)};
        if (!has_keyword && i == k) return items[i];
    }
    return (base_str){r->defaults[k], r->defaults[k] ? strlen(r->defaults[k]) : 0};
}

bool refactor__is_one_piece(const char *s, size_t n)
{
    int depth = 0;
    char quote = 0;
    for (size_t i = 0; i < n; i++) {
        if (quote) {
            if (s[i] == '\\')
                i++;
            else if (s[i] == quote)
                quote = 0;
        } else if (strchr("\"'`", s[i])) {
            quote = s[i];
        } else if (strchr("([{", s[i])) {
            depth++;
        } else if (strchr(")]}", s[i])) {
            depth--;
        } else if (!depth && s[i] == '-' && i + 1 < n && s[i + 1] == '>') {
            i++; /* a->b */
        } else if (!depth && !isalnum((unsigned char)s[i]) && !strchr("_.$:", s[i]) &&
                   (unsigned char)s[i] < 0x80) {
            return false;
        }
    }
    return true;
}

/* Between parentheses or commas no operator of the text stands beside it. */
static bool stands_free(const char *to, size_t from, size_t end)
{
    while (from > 0 && to[from - 1] == ' ') from--;
    while (to[end] == ' ') end++;
    return (from == 0 || strchr("(,[", to[from - 1])) && (!to[end] || strchr("),]", to[end]));
}

bool refactor__put_instead(
    const refactor_instead *r, const base_str *items, size_t n, base_str object, base_buf *ret)
{
    const char *to = r->to;
    char quote = 0;
    for (size_t i = 0; to[i];) {
        const bool begins = !quote && (isalpha((unsigned char)to[i]) || to[i] == '_') &&
                            (i == 0 || (!isalnum((unsigned char)to[i - 1]) && !strchr("_.", to[i - 1])));
        if (!begins) {
            if (quote && to[i] == '\\' && to[i + 1])
                base_buf_putc(ret, to[i++]);
            else if (quote && to[i] == quote)
                quote = 0;
            else if (!quote && strchr("\"'`", to[i]))
                quote = to[i];
            base_buf_putc(ret, to[i++]);
            continue;
        }
        size_t end = i, k = 0;
        while (isalnum((unsigned char)to[end]) || to[end] == '_') end++;
        while (k < r->n && (strlen(r->names[k]) != end - i || memcmp(r->names[k], to + i, end - i) != 0)) k++;
        /* f(name=name): the first is a keyword of the new call. */
        const bool is_keyword = r->has_keywords && to[end] == '=' && to[end + 1] != '=';
        if (k < r->n && !is_keyword) {
            const base_str given = refactor__given_for(r, items, n, k);
            if (!given.ptr) return false;
            /* C: (&a)->b is a.b */
            if (given.len > 1 && *given.ptr == '&' && !strncmp(to + end, "->", 2) &&
                refactor__is_one_piece(given.ptr + 1, given.len - 1)) {
                base_buf_printf(ret, "%.*s.", (int)given.len - 1, given.ptr + 1);
                i = end + 2;
                continue;
            }
            const bool is_bare = refactor__is_one_piece(given.ptr, given.len) || stands_free(to, i, end);
            base_buf_printf(
                ret, "%s%.*s%s", is_bare ? "" : "(", (int)given.len, given.ptr, is_bare ? "" : ")");
        } else if (object.len && end - i == 4 && (!memcmp(to + i, "self", 4) || !memcmp(to + i, "this", 4))) {
            base_buf_add(ret, object.ptr, object.len);
        } else {
            base_buf_add(ret, to + i, end - i);
        }
        i = end;
    }
    return true;
}

void refactor__read_instead(const refactor *x, const char *to, refactor_instead *ret)
{
    const refactor_file *f = x->target.in;
    const base_buf *text = &f->file.text;
    const refactor_language *language = f->language;
    *ret = (refactor_instead){.to = to, .has_keywords = language->has_keywords};
    for (size_t i = 0; i < x->n_places; i++) {
        const refactor_place *p = &x->places[i];
        refactor_list l;
        if (&x->files[p->file] != f || p->use->from != x->target.name_from || !refactor__read_list(x, p, &l))
            continue;
        const size_t first = refactor__hidden_parameters(text, &l);
        ret->n = refactor__parameter_names(language, text, &l, ret->names);
        for (size_t k = 0; k < ret->n && first + k < l.n && language->has_defaults; k++) {
            const code_item item = l.items[first + k];
            size_t n;
            const char *value = refactor__default_of(text->data + item.from, item.to - item.from, &n);
            char *copy = value ? base_xstrndup(value, n) : NULL;
            if (copy && refactor__is_literal(copy))
                ret->defaults[k] = copy;
            else
                free(copy);
        }
        free(l.items);
        return;
    }
}

void refactor__instead_free(refactor_instead *r)
{
    for (size_t i = 0; i < r->n; i++) free(r->defaults[i]);
    *r = (refactor_instead){0};
}
