/* Fields that a method of Go sets and its struct lacks (contract: fields.h). */
#include "tools/edit/fields.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/path.h"
#include "tools/edit/change.h"
#include "tools/edit/definition.h"
#include "tools/file/text.h"

/* "cache.tag = tag" behind the receiver's name and dot. */
typedef struct setting {
    base_str path, value;
} setting;

/* What the work is on: one file and, once a struct stands elsewhere, another. */
typedef struct giving {
    tool_workspace *w;
    const char *path;
    base_buf *text, *note;
    tool_file beside; /* beside_path NULL: none yet */
    char *beside_path;
    base_buf beside_text;
} giving;

static base_str trim(const char *from, const char *to)
{
    while (from < to && tool__is_space(*from)) from++;
    while (to > from && tool__is_space(to[-1])) to--;
    return (base_str){from, (size_t)(to - from)};
}

static size_t name_length(const char *s, const char *end)
{
    size_t n = 0;
    while (s + n < end && code_is_name_byte(s[n])) n++;
    return n && !isdigit((unsigned char)*s) ? n : 0;
}

static bool is_name(base_str s)
{
    return s.len && name_length(s.ptr, s.ptr + s.len) == s.len;
}

static bool is_word(base_str s, const char *word)
{
    return s.len == strlen(word) && !memcmp(s.ptr, word, s.len);
}

/* ---- what the method says ---- */

/* A line that only sets something of the receiver. */
static bool read_setting(const char *line, const char *end, const char *receiver, setting *ret)
{
    const base_str s = trim(line, end);
    const size_t n = strlen(receiver);
    const char *equals = memchr(s.ptr, '=', s.len), *stop = s.ptr + s.len;
    if (s.len <= n || memcmp(s.ptr, receiver, n) != 0 || s.ptr[n] != '.' || !equals || equals[1] == '=')
        return false;
    *ret = (setting){trim(s.ptr + n + 1, equals), trim(equals + 1, stop)};
    for (size_t i = 0; i < ret->path.len; i++)
        if (!code_is_name_byte(ret->path.ptr[i]) && ret->path.ptr[i] != '.') return false;
    return ret->path.len && ret->value.len;
}

/* The type of a parameter: "a, b int" and "names ...string" too. false: the list has none of that name. */
static bool type_of_parameter(const char *list, const char *end, base_str name, base_buf *ret)
{
    base_str type = {0};
    const char *to = end;
    int depth = 0;
    for (const char *p = end; p >= list;
         p--) { /* from the right: a type is said behind the last of its names */
        const char c = p > list ? p[-1] : ',';
        depth += (strchr(")]}", c) != NULL) - (strchr("([{", c) != NULL);
        if (c != ',' || depth > 0) continue;
        const base_str item = trim(p, to);
        const size_t n = name_length(item.ptr, item.ptr + item.len);
        if (n < item.len) type = trim(item.ptr + n, item.ptr + item.len);
        if (n == name.len && !memcmp(item.ptr, name.ptr, n) && type.len) {
            const bool is_many = type.len > 3 && !memcmp(type.ptr, "...", 3);
            base_buf_printf(ret, "%s%.*s", is_many ? "[]" : "", (int)(type.len - (is_many ? 3 : 0)),
                type.ptr + (is_many ? 3 : 0));
            return true;
        }
        to = p - 1;
    }
    return false;
}

static const char *closing(const char *open, const char *end)
{
    int depth = 0;
    for (const char *p = open; p < end; p++) {
        depth += (*p == '(') - (*p == ')');
        if (!depth) return p;
    }
    return NULL;
}

/* The type that the value has for sure. */
static bool type_of_value(const char *text, const code_definition *d, base_str value, base_buf *ret)
{
    const char *end = text + d->body_from,
               *list = memchr(text + d->name_from, '(', d->body_from - d->name_from);
    const char *stop = list ? closing(list, end) : NULL;
    if (is_word(value, "true") || is_word(value, "false")) base_buf_puts(ret, "bool");
    size_t digits = 0;
    while (digits < value.len && isdigit((unsigned char)value.ptr[digits])) digits++;
    if (digits && digits == value.len) base_buf_puts(ret, "int");
    if (value.len > 1 && *value.ptr == '"' &&
        memchr(value.ptr + 1, '"', value.len - 1) == value.ptr + value.len - 1)
        base_buf_puts(ret, "string");
    return ret->len || (stop && is_name(value) && type_of_parameter(list + 1, stop, value, ret));
}

/* "e" of "func (e *Encoder) Set(...)", which the caller frees; NULL: it has none. */
static char *receiver_of(const char *text, const code_definition *d)
{
    const char *end = text + d->name_from, *open = memchr(text + d->from, '(', d->name_from - d->from);
    if (!open) return NULL;
    const base_str s = trim(open + 1, end);
    const size_t n = name_length(s.ptr, s.ptr + s.len);
    return n && n < s.len && tool__is_space(s.ptr[n]) ? base_xstrndup(s.ptr, n) : NULL;
}

/* ---- structs ---- */

static const code_definition *struct_in(const code_file *f, const char *type)
{
    for (uint32_t i = 0; i < f->n_definitions; i++)
        if (!strcmp(f->definitions[i].what, "struct") && !strcmp(f->definitions[i].name, type))
            return &f->definitions[i];
    return NULL;
}

static const code_definition *field_in(const code_file *f, const char *type, const char *name)
{
    for (uint32_t i = 0; i < f->n_definitions; i++)
        if (!strcmp(f->definitions[i].what, "field") && !strcmp(f->definitions[i].parent, type) &&
            !strcmp(f->definitions[i].name, name))
            return &f->definitions[i];
    return NULL;
}

/* What stands behind the names of a field's line; nothing where a type is embedded. */
static base_str type_of_field(const char *text, const code_definition *field)
{
    const char *p = text + field->from, *end = text + field->to;
    for (;;) {
        p += name_length(p, end);
        const char *comma = p;
        while (comma < end && *comma == ' ') comma++;
        if (comma == end || *comma != ',') break;
        p = comma + 1;
        while (p < end && tool__is_space(*p)) p++;
    }
    const size_t n = strcspn(p, "`/\n");
    return p < end && *p == ' ' ? trim(p, p + n < end ? p + n : end) : (base_str){0};
}

static bool embeds(const char *text, const code_file *f, const char *type)
{
    bool does = false;
    for (uint32_t i = 0; i < f->n_definitions; i++)
        does |= !strcmp(f->definitions[i].what, "field") && !strcmp(f->definitions[i].parent, type) &&
                !type_of_field(text, &f->definitions[i]).len;
    return does;
}

/* The file that has the struct: the method's own, the one beside that is open already, or one of the folder. */
static base_buf *text_with(giving *g, const char *type, const char **ret_path)
{
    code_place *places = NULL;
    base_buf *found = NULL;
    const uint32_t n = code_index_define(g->w->index, type, &places);
    const size_t folder = (size_t)(base_path_name(g->path) - g->path);
    for (uint32_t i = 0; i < n && !found; i++) {
        const char *path = places[i].path;
        if (strcmp(places[i].what, "struct") != 0 || strncmp(path, g->path, folder) != 0 ||
            strchr(path + folder, '/'))
            continue;
        if (!strcmp(path, g->path)) {
            found = g->text;
        } else if (!g->beside_path && !code_path_is_test(path) &&
                   !tool__file_read(&g->w->root, path, TOOL_MAX_FILE, &g->beside, NULL)) {
            g->beside_path = base_xstrdup(path);
            base_buf_add(&g->beside_text, g->beside.text.data, g->beside.text.len);
            if (g->beside.st.st_nlink == 1) found = &g->beside_text;
        } else if (g->beside_path && !strcmp(path, g->beside_path)) {
            found = &g->beside_text;
        }
        if (found) *ret_path = found == g->text ? g->path : g->beside_path;
    }
    code_places_free(places, n);
    return found;
}

/* The struct's last lines "name type", as gofmt sets them in columns: where they begin and how wide the names are. */
static size_t last_column(const char *text, size_t from, size_t to, size_t *ret_width)
{
    size_t at = to;
    *ret_width = 0;
    while (at > from) {
        const size_t line = tool__line_begin(text, at - 1);
        const base_str s = trim(text + line, text + at);
        size_t n = s.len ? strcspn(s.ptr, " \t\n{}") : 0;
        while (n && n < s.len && s.ptr[n - 1] == ',') n += 1 + strcspn(s.ptr + n + 1, " \t\n");
        if (line < from || !n || n >= s.len || memchr(s.ptr, '`', s.len) || memmem(s.ptr, s.len, "//", 2) ||
            strchr("{}*/", s.ptr[s.len - 1]) || *s.ptr == '/' || *s.ptr == '*')
            break;
        if (n > *ret_width) *ret_width = n;
        at = line;
    }
    return at;
}

/* "name type" as the last line of the struct. false: it is written otherwise than in lines of its own. */
static bool put_field(base_buf *text, const code_definition *type, const char *name, const char *field_type)
{
    const char *s = text->data;
    const size_t close = tool__line_begin(s, type->to - 1), end = type->to - 1;
    const size_t open = tool__line_end(s, text->len, type->name_from) + 1;
    base_buf out = {0};
    size_t width;
    if (s[end] != '}' || !tool__is_blank(s, close, end) || open > close) return false;
    const bool crlf = tool__text_style(s, text->len).crlf;
    const char *newline = crlf ? "\r\n" : "\n";
    const size_t run = last_column(s, open, close, &width);
    if (strlen(name) > width) width = strlen(name);
    base_buf_add(&out, s, run);
    for (size_t line = run; line < close;) {
        const size_t stop = tool__line_end(s, text->len, line);
        const base_str l = trim(s + line, s + stop);
        size_t n = strcspn(l.ptr, " \t");
        while (n < l.len && l.ptr[n - 1] == ',') n += 1 + strcspn(l.ptr + n + 1, " \t");
        const base_str t = trim(l.ptr + n, l.ptr + l.len);
        base_buf_printf(&out, "\t%-*.*s %.*s%s", (int)width, (int)n, l.ptr, (int)t.len, t.ptr, newline);
        line = stop + 1;
    }
    if (run == close && close > open &&
        !tool__is_blank(s, tool__line_begin(s, close - 1), close)) /* its own column */
        base_buf_puts(&out, newline);
    base_buf_printf(&out, "\t%-*s %s%s", (int)width, name, field_type, newline);
    base_buf_add(&out, s + close, text->len - close);
    base_buf_free(text);
    *text = out;
    return true;
}

/* ---- together ---- */

/* Has the package a field or method of that type and name, in any of its files? */
static bool has_member(const giving *g, const char *type, const char *name)
{
    base_buf full = {0};
    code_place *places = NULL;
    base_buf_printf(&full, "%s.%s", type, name);
    const uint32_t n = code_index_define(g->w->index, full.data, &places);
    code_places_free(places, n);
    base_buf_free(&full);
    return n > 0;
}

/* From the method's type along "cache.tag": the struct that has to have the last name. NULL: it is not known. */
static char *holder_of(giving *g, const char *type, base_str path, base_str *ret_name)
{
    char *holder = base_xstrdup(type);
    for (const char *dot; holder && (dot = memchr(path.ptr, '.', path.len));) {
        char *name = base_xstrndup(path.ptr, (size_t)(dot - path.ptr)), *next = NULL;
        const char *at = NULL;
        const base_buf *text = text_with(g, holder, &at);
        code_file *f = text ? code_parse(g->w->grammars, at, text->data, text->len) : NULL;
        const code_definition *field = f ? field_in(f, holder, name) : NULL;
        base_str s = field ? type_of_field(text->data, field) : (base_str){0};
        if (s.len && *s.ptr == '*') s = (base_str){s.ptr + 1, s.len - 1};
        if (is_name(s)) next = base_xstrndup(s.ptr, s.len);
        code_file_free(f);
        free(name);
        free(holder);
        holder = next;
        path = (base_str){dot + 1, path.len - (size_t)(dot + 1 - path.ptr)};
    }
    *ret_name = path;
    return holder;
}

static void give(giving *g, const char *type, const char *name, const char *field_type)
{
    const char *at = NULL;
    base_buf *text = text_with(g, type, &at);
    code_file *f = text ? code_parse(g->w->grammars, at, text->data, text->len) : NULL;
    const code_definition *d = f ? struct_in(f, type) : NULL;
    if (d && !f->n_errors && !embeds(text->data, f, type) && !field_in(f, type, name) &&
        !has_member(g, type, name) && put_field(text, d, name, field_type)) {
        base_buf_printf(g->note, "%s had no field %s: it has now, %s, ", type, name, field_type);
        base_buf_printf(g->note, "in %s. ", at);
        if (!code_index_mentions(g->w->index, name)) base_buf_printf(g->note, "Nothing reads it yet. ");
    }
    code_file_free(f);
}

/* The next line of the method that sets a field; from: where to look, moved on. */
static bool next_setting(
    const char *code, const code_definition *d, const char *receiver, size_t *from, setting *ret)
{
    while (*from < d->body_to) {
        const size_t end = tool__line_end(code, d->body_to, *from), line = *from;
        *from = end + 1;
        if (read_setting(code + line, code + end, receiver, ret)) return true;
    }
    return false;
}

struct tool_change *tool__give_fields(
    tool_workspace *w, const char *path, base_buf *text, const char *name, base_buf *note)
{
    const char *language = code_language(path, text->data, text->len);
    giving g = {.w = w, .path = path, .text = text, .note = note};
    tool_change *also = NULL;
    base_buf why = {0}, say = {0};
    uint32_t at;
    if (!language || strcmp(language, "go") != 0 || code_path_is_test(path)) return NULL;
    code_file *f = tool__parse_for(w->grammars, path, text->data, text->len, name);
    if (tool__find_definition(f, path, text, name, &at, &why) && *f->definitions[at].parent &&
        f->definitions[at].body_to) {
        const code_definition *d = &f->definitions[at];
        char *was = base_xstrndup(text->data, text->len), *receiver = receiver_of(was, d),
             *code = code_blank_comments(language, was, text->len);
        size_t from = d->body_from;
        setting s;
        while (receiver && next_setting(code, d, receiver, &from, &s)) {
            base_buf type = {0};
            base_str last = {0};
            char *holder =
                type_of_value(was, d, s.value, &type) ? holder_of(&g, d->parent, s.path, &last) : NULL;
            char *field = holder && is_name(last) ? base_xstrndup(last.ptr, last.len) : NULL;
            if (field) give(&g, holder, field, type.data);
            free(field);
            free(holder);
            base_buf_free(&type);
        }
        free(code);
        free(receiver);
        free(was);
    }
    code_file_free(f);
    base_buf_free(&why);
    const bool is_changed = g.beside_path && (g.beside_text.len != g.beside.text.len);
    if (is_changed) {
        also = tool__change_new(g.beside_path, &g.beside, &g.beside_text, &say);
        g.beside_text = (base_buf){0};
    }
    if (g.beside_path) tool__file_free(&g.beside);
    free(g.beside_path);
    base_buf_free(&g.beside_text);
    return also;
}
