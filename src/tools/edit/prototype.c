/* What a header says of a new function (contract: prototype.h). */
#include "tools/edit/prototype.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/mem.h"
#include "tools/file/text.h"

bool tool__asks_for_prototype(const char *request)
{
    static const char *const words[] = {"prototype", "header", "declare", "declaration"};
    for (size_t i = 0; request && i < sizeof words / sizeof *words; i++)
        if (strcasestr(request, words[i])) return true;
    static const char *const outside[] = {"API", "public function", "public interface", "exported function"};
    for (size_t i = 0; request && i < sizeof outside / sizeof *outside; i++) {
        const char *at = strcasestr(request, outside[i]); /* no part of "rapid" */
        if (at && !(at > request && code_is_name_byte(at[-1])) &&
            (i || !code_is_name_byte(at[strlen(outside[i])])))
            return true;
    }
    for (const char *h = request; h && (h = strstr(h, ".h")); h += 2)
        if (h > request && code_is_name_byte(h[-1]) && !code_is_name_byte(h[2])) return true;
    return false;
}

/* Words apart by one blank. */
static void put_plain(const char *text, size_t from, size_t to, base_buf *out)
{
    bool had_space = false;
    for (size_t i = from; i < to; i++) {
        const bool is_space = tool__is_space(text[i]);
        if (!is_space && had_space && out->len) base_buf_putc(out, ' ');
        if (!is_space) base_buf_putc(out, text[i]);
        had_space = is_space;
    }
}

void tool__put_signature(const char *text, const code_definition *d, base_buf *out)
{
    size_t to = d->from;
    if (d->body_to <= d->body_from) return;
    while (to < d->body_from && text[to] != '{') to++;
    put_plain(text, d->from, to, out);
}

static const code_definition *function_of(const code_file *f, const char *name)
{
    for (uint32_t i = 0; i < f->n_definitions; i++)
        if (!strcmp(f->definitions[i].name, name) && f->definitions[i].body_to > f->definitions[i].body_from)
            return &f->definitions[i];
    return NULL;
}

static void splice(base_buf *text, size_t at, size_t gone, const char *with)
{
    base_buf out = {0};
    base_buf_add(&out, text->data, at);
    base_buf_puts(&out, with);
    base_buf_add(&out, text->data + at + gone, text->len - at - gone);
    base_buf_free(text);
    *text = out;
}

void tool__drop_static(code_grammars *g, const char *path, base_buf *block, const char *name)
{
    code_file *f = code_parse(g, path, block->data, block->len);
    const code_definition *d = function_of(f, name);
    const size_t n = strlen("static");
    if (d && d->from + n < block->len && !memcmp(block->data + d->from, "static", n) &&
        tool__is_space(block->data[d->from + n]))
        splice(block, d->from, n + 1, "");
    code_file_free(f);
}

void tool__qualify(code_grammars *g, const char *path, base_buf *block, const char *name, const char *holder)
{
    code_file *f = code_parse(g, path, block->data, block->len);
    const code_definition *d = function_of(f, name);
    if (d && d->name_from <= block->len && (d->name_from == 0 || block->data[d->name_from - 1] != ':')) {
        base_buf front = {0};
        base_buf_printf(&front, "%s::", holder);
        splice(block, d->name_from, 0, front.data);
        base_buf_free(&front);
    }
    code_file_free(f);
}

/* ---- as the neighbour is declared ---- */

/* "API int", "f", "int a, char *b", "const" */
typedef struct parts {
    base_str head, list, tail;
} parts;

static base_str trim(base_str s)
{
    while (s.len && tool__is_space(*s.ptr)) s = (base_str){s.ptr + 1, s.len - 1};
    while (s.len && (tool__is_space(s.ptr[s.len - 1]) || s.ptr[s.len - 1] == ';')) s.len--;
    return s;
}

static bool is_same(base_str a, base_str b)
{
    return a.len == b.len && (!a.len || !memcmp(a.ptr, b.ptr, a.len));
}

static bool take_apart(const char *s, const char *name, parts *ret)
{
    const size_t n = strlen(s);
    size_t pos = 0, from, to;
    while (code_next_identifier(s, n, &pos, &from, &to)) {
        const size_t list = to + strspn(s + to, " ");
        if (to - from != strlen(name) || memcmp(s + from, name, to - from) != 0 || s[list] != '(') continue;
        size_t end = list;
        int depth = 0;
        do {
            depth += (s[end] == '(') - (s[end] == ')');
            end++;
        } while (s[end] && depth > 0);
        if (depth) return false;
        size_t head = from; /* without what says the type: "INIReader::" */
        while (head > 1 && s[head - 1] == ':' && s[head - 2] == ':')
            for (head -= 2; head > 0 && code_is_name_byte(s[head - 1]);) head--;
        *ret = (parts){
            trim((base_str){s, head}), {s + list + 1, end - list - 2}, trim((base_str){s + end, n - end})};
        return true;
    }
    return false;
}

/* The i-th item of a list; false: it has no such. */
static bool item_of(base_str list, size_t i, base_str *ret)
{
    size_t from = 0, n = 0;
    int depth = 0;
    for (size_t at = 0; at <= list.len; at++) {
        const char c = at < list.len ? list.ptr[at] : ',';
        depth += (strchr("(<[{", c) != NULL) - (strchr(")>]}", c) != NULL);
        if (c != ',' || (depth > 0 && at < list.len)) continue;
        *ret = trim((base_str){list.ptr + from, at - from});
        if (n++ == i) return ret->len > 0;
        from = at + 1;
    }
    return false;
}

/* The new list, in whose items the header says what it says of the neighbour's equal ones. */
static void put_list(const parts *fresh, const parts *like, const parts *said, base_buf *out)
{
    base_str item, same, shown;
    for (size_t i = 0; item_of(fresh->list, i, &item); i++) {
        shown = item;
        for (size_t k = 0; item_of(like->list, k, &same); k++)
            if (is_same(same, item) && item_of(said->list, k, &same)) shown = same;
        base_buf_printf(out, "%s%.*s", i ? ", " : "", (int)shown.len, shown.ptr);
    }
}

/* The declaration of `name`, without its semicolon. */
static void put_declaration(const char *signature, const char *name, const char *like, const char *declared,
    const char *neighbour, base_buf *out)
{
    parts fresh, old, said;
    if (!take_apart(signature, name, &fresh)) {
        base_buf_puts(out, signature);
        return;
    }
    const bool is_known = like && take_apart(like, neighbour, &old) && take_apart(declared, neighbour, &said);
    const bool is_longer = is_known && said.head.len > old.head.len &&
                           !memcmp(said.head.ptr + said.head.len - old.head.len, old.head.ptr, old.head.len);
    base_str head = fresh.head, tail = fresh.tail;
    if (is_known && is_same(fresh.head, old.head))
        head = said.head;
    else if (is_longer)
        base_buf_add(out, said.head.ptr, said.head.len - old.head.len);
    if (is_known && is_same(fresh.tail, old.tail)) tail = said.tail;
    base_buf_add(out, head.ptr, head.len);
    const char *at = strstr(signature, name);
    const bool is_mark = head.len && strchr("*&", head.ptr[head.len - 1]),
               is_spaced = at && at > signature && at[-1] == ' '; /* "char* name" */
    if (head.len && (!is_mark || is_spaced)) base_buf_putc(out, ' ');
    base_buf_printf(out, "%s(", name);
    if (is_known)
        put_list(&fresh, &old, &said, out);
    else
        base_buf_add(out, fresh.list.ptr, fresh.list.len);
    base_buf_putc(out, ')');
    if (tail.len) base_buf_printf(out, " %.*s", (int)tail.len, tail.ptr);
}

/* A word in front that only the preprocessor knows ("API int f(void);") is an error to a grammar: one more is none of ours. */
static uint32_t has_error(code_grammars *g, const char *path, const base_buf *declared)
{
    code_file *f = code_parse(g, path, declared->data ? declared->data : "", declared->len);
    const uint32_t n = f->n_errors;
    code_file_free(f);
    return n > 0;
}

static bool declares(
    code_grammars *g, const char *path, const base_buf *header, const char *name, uint32_t most_errors)
{
    code_file *f = code_parse(g, path, header->data, header->len);
    bool is_there = !f->language;
    for (uint32_t i = 0; i < f->n_definitions; i++)
        is_there |= f->definitions[i].is_declaration && !strcmp(f->definitions[i].name, name);
    is_there = is_there && f->n_errors <= most_errors;
    code_file_free(f);
    return is_there;
}

bool tool__add_prototype(code_grammars *g, const char *path, const base_buf *header, const char *neighbour,
    const char *like, const char *name, const char *signature, base_buf *ret)
{
    const char *text = header->data ? header->data : "";
    code_file *f = code_parse(g, path, text, header->len);
    const code_definition *beside = NULL;
    bool is_there = false;
    for (uint32_t i = 0; i < f->n_definitions; i++)
        if (f->definitions[i].is_declaration && !strcmp(f->definitions[i].name, neighbour))
            beside = &f->definitions[i];
    for (uint32_t i = 0; i < f->n_definitions && beside; i++) {
        const code_definition *d = &f->definitions[i];
        const char *parent = d->parent ? d->parent : "", *its = beside->parent ? beside->parent : "";
        is_there |= !strcmp(d->name, name) && !strcmp(parent, its);
    }
    bool is_good = beside && !is_there && beside->to <= header->len;
    if (is_good) {
        const tool_text_style style = tool__text_style(header->data, header->len);
        const size_t line = tool__line_begin(text, beside->from);
        size_t first = line, at = tool__line_end(text, header->len, beside->to ? beside->to - 1 : 0);
        while (first < beside->from && (text[first] == ' ' || text[first] == '\t')) first++;
        const size_t from = memchr(text + first, ';', beside->from - first) ? beside->from : first;
        base_buf declared = {0}, fresh = {0};
        put_plain(text, from, at, &declared);
        put_declaration(signature, name, like, declared.data ? declared.data : "", neighbour, &fresh);
        at = at < header->len ? at + 1 : at;
        base_buf_add(ret, text, at);
        if (at && text[at - 1] != '\n') base_buf_puts(ret, style.crlf ? "\r\n" : "\n");
        base_buf_add(ret, text + line, first - line);
        base_buf_printf(ret, "%s;%s", fresh.data, style.crlf ? "\r\n" : "\n");
        base_buf_add(ret, text + at, header->len - at);
        is_good = declares(g, path, ret, name, f->n_errors + has_error(g, path, &declared));
        base_buf_free(&declared);
        base_buf_free(&fresh);
    }
    code_file_free(f);
    return is_good;
}

bool tool__follow_prototype(code_grammars *g, const char *path, const base_buf *header, const char *name,
    const char *old_signature, const char *signature, base_buf *ret)
{
    const char *text = header->data ? header->data : "";
    code_file *f = code_parse(g, path, text, header->len);
    const code_definition *only = NULL;
    uint32_t n_found = 0;
    for (uint32_t i = 0; i < f->n_definitions; i++) {
        if (!f->definitions[i].is_declaration || strcmp(f->definitions[i].name, name) != 0) continue;
        only = &f->definitions[i];
        n_found++;
    }
    bool is_good = n_found == 1 && only->to <= header->len && !(only->parent && *only->parent);
    if (is_good) {
        const size_t line = tool__line_begin(text, only->from);
        size_t from = line, to = only->to;
        while (from < only->from && (text[from] == ' ' || text[from] == '\t')) from++;
        if (memchr(text + from, ';', only->from - from)) from = only->from;
        if (to > from && text[to - 1] == ';') to--;
        base_buf declared = {0}, fresh = {0};
        put_plain(text, from, to, &declared);
        put_declaration(signature, name, old_signature, declared.data ? declared.data : "", name, &fresh);
        is_good = declared.data && fresh.data && strcmp(declared.data, fresh.data) != 0;
        if (is_good) {
            base_buf_add(ret, text, header->len);
            splice(ret, from, to - from, fresh.data);
            is_good = declares(g, path, ret, name, f->n_errors + has_error(g, path, &declared));
        }
        base_buf_free(&declared);
        base_buf_free(&fresh);
    }
    code_file_free(f);
    return is_good;
}
