/*
 * Lists of parameters and of arguments, as each language writes them. Pure but for refactor_parameters, which reads
 * a file of the tree.
 */
#include "tools/refactor/refactor.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "code/code.h"

bool refactor__read_list(const refactor *x, const refactor_place *p, refactor_list *ret)
{
    const refactor_file *f = &x->files[p->file];
    return code_items(x->w->grammars, f->path, f->file.text.data, f->file.text.len,
        p->use->from + (uint32_t)strlen(x->name), ret);
}

bool refactor__item_says(const base_buf *text, code_item item, const char *word)
{
    const size_t n = strlen(word);
    return item.to - item.from == n && !memcmp(text->data + item.from, word, n);
}

void refactor__parameter_name(
    const refactor_language *language, const char *s, size_t n, char ret[REFACTOR_NAME_BYTES])
{
    static const char *const marks[] = {"mut", "ref", "final", "readonly"};
    size_t pos = 0, a, b, from = 0, to = 0, end = 0;
    const bool is_last = language->has_type_first, is_c = language->family == REFACTOR_C;
    /* Up to its default, in C up to its size in brackets. */
    while (end < n && s[end] != '=' && !(is_c && s[end] == '[')) end++;
    while (code_next_identifier(s, end, &pos, &a, &b)) {
        bool is_mark = false;
        for (size_t i = 0; i < sizeof marks / sizeof *marks; i++)
            is_mark |= strlen(marks[i]) == b - a && !memcmp(s + a, marks[i], b - a);
        if (is_mark) continue;
        from = a;
        to = b;
        if (!is_last) break;
    }
    if (to - from > REFACTOR_NAME_BYTES - 1) to = from + REFACTOR_NAME_BYTES - 1;
    memcpy(ret, s + from, to - from);
    ret[to - from] = '\0';
}

const char *refactor__default_of(const char *item, size_t n, size_t *ret_n)
{
    const char *at = memchr(item, '=', n);
    if (!at) return NULL;
    at++;
    while (at < item + n && *at == ' ') at++;
    *ret_n = (size_t)(item + n - at);
    return at;
}

size_t refactor__hidden_parameters(const base_buf *text, const refactor_list *l)
{
    if (!l->n) return 0;
    static const char *const selves[] = {"self", "cls", "&self", "&mut self", "mut self", "this"};
    for (size_t i = 0; i < sizeof selves / sizeof *selves; i++)
        if (refactor__item_says(text, l->items[0], selves[i])) return 1;
    return 0;
}

size_t refactor__expand_go(const char *text, const refactor_list *l, base_buf *ret)
{
    size_t n = 0;
    for (size_t i = 0; i < l->n; i++) {
        const char *at = text + l->items[i].from, *end = text + l->items[i].to, *last = at;
        while (last < end && code_is_name_byte(*last)) last++;
        const char *type = last;
        while (type < end && *type == ',') {
            type++;
            while (type < end && *type == ' ') type++;
            while (type < end && code_is_name_byte(*type)) type++;
        }
        const bool is_group = type < end && *type == ' '; /* names and commas, then a type */
        while (is_group && at < type && n < REFACTOR_MAX_ITEMS) {
            const char *to = at;
            while (code_is_name_byte(*to)) to++;
            base_buf_printf(&ret[n++], "%.*s%.*s", (int)(to - at), at, (int)(end - type), type);
            at = to + strspn(to, ", ");
        }
        if (!is_group && n < REFACTOR_MAX_ITEMS) base_buf_add(&ret[n++], at, (size_t)(end - at));
    }
    return n;
}

size_t refactor__parameter_names(const refactor_language *language, const base_buf *text,
    const refactor_list *l, char names[][REFACTOR_NAME_BYTES])
{
    const size_t first = refactor__hidden_parameters(text, l);
    size_t n = 0;
    if (l->n == 1 && refactor__item_says(text, l->items[0], "void")) return 0;
    if (language->family == REFACTOR_GO) {
        base_buf items[REFACTOR_MAX_ITEMS] = {{0}};
        n = refactor__expand_go(text->data, l, items);
        for (size_t i = 0; i < n; i++) {
            refactor__parameter_name(language, items[i].data, items[i].len, names[i]);
            base_buf_free(&items[i]);
        }
        return n;
    }
    for (size_t i = first; i < l->n && n < REFACTOR_MAX_ITEMS; i++) {
        const code_item item = l->items[i];
        refactor__parameter_name(language, text->data + item.from, item.to - item.from, names[n++]);
    }
    return n;
}

size_t refactor_parameters(tool_workspace *w, const char *path, const char *name, uint32_t from, uint32_t to,
    char names[][REFACTOR_NAME_BYTES])
{
    enum { MAX_FILE = 4 << 20 };
    code_grammars *g = tool_workspace_grammars(w);
    base_buf text = {0};
    refactor_list l = {0};
    size_t n = SIZE_MAX, pos = 0, a, b;
    if (tool_workspace_read(w, path, MAX_FILE, &text, NULL) || to > text.len || from >= to) {
        base_buf_free(&text);
        return n;
    }
    while (n == SIZE_MAX && code_next_identifier(text.data + from, to - from, &pos, &a, &b)) {
        if (b - a != strlen(name) || memcmp(text.data + from + a, name, b - a) != 0) continue;
        if (!code_items(g, path, text.data, text.len, from + (uint32_t)b, &l)) break;
        code_file *f = code_parse(g, path, text.data + from, to - from);
        n = f->language ? refactor__parameter_names(refactor__language(f->language), &text, &l, names)
                        : SIZE_MAX;
        code_file_free(f);
        free(l.items);
    }
    base_buf_free(&text);
    return n;
}

/* ---- a literal, and the type that it has ---- */

typedef enum literal {
    LITERAL_NONE,
    LITERAL_INTEGER,
    LITERAL_FLOAT,
    LITERAL_TRUTH,
    LITERAL_STRING,
    LITERAL_NOTHING
} literal;

static literal kind_of(const char *s)
{
    static const char *const truths[] = {"true", "false", "True", "False"};
    static const char *const nothings[] = {"None", "null", "nil", "NULL", "nullptr", "undefined"};
    const size_t n = strlen(s);
    for (size_t i = 0; i < sizeof truths / sizeof *truths; i++)
        if (!strcmp(s, truths[i])) return LITERAL_TRUTH;
    for (size_t i = 0; i < sizeof nothings / sizeof *nothings; i++)
        if (!strcmp(s, nothings[i])) return LITERAL_NOTHING;
    if (n > 1 && strchr("\"'`", *s) && s[n - 1] == *s && !memchr(s + 1, *s, n - 2)) return LITERAL_STRING;
    char *end;
    const char *digits = s + (*s == '-' || *s == '+');
    if (!isdigit((unsigned char)*digits)) return LITERAL_NONE;
    strtoll(s, &end, 0);
    if (!*end) return LITERAL_INTEGER;
    strtod(s, &end);
    return *end ? LITERAL_NONE : LITERAL_FLOAT;
}

bool refactor__is_literal(const char *s)
{
    return kind_of(s) != LITERAL_NONE;
}

bool refactor__declare(const refactor_language *language, const char *name, const char *value, base_buf *ret)
{
    const literal kind = value ? kind_of(value) : LITERAL_NONE;
    const char *type = "";
    if (*language->types) { /* a parameter says its type */
        if (kind < LITERAL_INTEGER || kind > LITERAL_STRING) return false;
        type = language->types[kind - LITERAL_INTEGER];
    }
    base_buf_printf(
        ret, "%s%s", language->has_type_first ? type : name, language->has_type_first ? name : type);
    return true;
}

/* Does one of these parameters say its type where it need not: "word: str"? */
static bool has_hint(const char *text, const refactor_list *l)
{
    for (size_t i = 0; i < l->n; i++) {
        const char *item = text + l->items[i].from;
        if (memchr(item, ':', strcspn(item, "=,)"))) return true;
    }
    return false;
}

void refactor__put_like(const refactor_language *language, const base_buf *text, const refactor_list *l,
    const char *name, base_buf *declared)
{
    size_t n;
    const char *value = refactor__default_of(declared->data, declared->len, &n);
    const char *behind = declared->data + strlen(name);
    if (!value || strncmp(declared->data, name, strlen(name)) != 0 || behind[strspn(behind, " ")] != '=')
        return;
    const literal kind = kind_of(value);
    const bool is_typed =
        *language->hints && kind >= LITERAL_INTEGER && kind <= LITERAL_STRING && has_hint(text->data, l);
    base_buf out = {0};
    base_buf_puts(&out, name);
    if (is_typed) base_buf_puts(&out, language->hints[kind - LITERAL_INTEGER]);
    base_buf_printf(&out, is_typed || language->family == REFACTOR_JS ? " = %s" : "=%s", value);
    base_buf_free(declared);
    *declared = out;
}
