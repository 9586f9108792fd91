/*
 * Prose that writes the target's name: README, docs, and its own comment. A name that is also a word ("parse") counts
 * only where it is written as code is: parse(, `parse`, x.parse, in a block of code.
 */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/mem.h"
#include "base/path.h"
#include "tools/file/text.h"
#include "tools/refactor/refactor.h"

enum { MAX_LISTED = 5 };

/* ---- is the word the name? ---- */

bool refactor__is_only_a_name(const char *name)
{
    if (*name == '_') return true;
    for (const char *c = name + (*name != 0); *c; c++)
        if (*c < 'a' || *c > 'z') return true;
    return false;
}

static bool begins_with(const char *s, size_t n, const char *word)
{
    return n >= strlen(word) && !memcmp(s, word, strlen(word));
}

/* Between lines of ``` or ~~~, or indented by four as Markdown and reStructuredText show code. */
static bool is_in_block(const char *text, size_t line)
{
    bool is_fenced = false;
    size_t indent = line;
    while (text[indent] == ' ') indent++;
    if (indent - line >= 4 || text[line] == '\t') return true;
    for (size_t at = 0; at < line;) {
        const size_t end = at + strcspn(text + at, "\n"), first = at + strspn(text + at, " \t");
        if (begins_with(text + first, end - at, "```") || begins_with(text + first, end - at, "~~~"))
            is_fenced = !is_fenced;
        at = end + 1;
    }
    return is_fenced;
}

bool refactor__is_marked(const base_buf *text, size_t at, size_t n)
{
    const char *s = text->data;
    const size_t line = tool__line_begin(s, at);
    size_t n_ticks = 0, first = line;
    if (at + n < text->len && strchr("(`", s[at + n])) return true;
    if (at > 0 && s[at - 1] == '`') return true;
    if (at > 1 && strchr(".:>#", s[at - 1]) && (code_is_name_byte(s[at - 2]) || strchr(":-{", s[at - 2])))
        return true;
    for (size_t i = line; i < at; i++) n_ticks += s[i] == '`';
    while (first < at && (s[first] == ' ' || s[first] == '\t')) first++;
    const bool is_directive =
        begins_with(s + first, at - first, ".. ") && memmem(s + first, at - first, "::", 2);
    return n_ticks % 2 == 1 || is_directive || begins_with(s + first, at - first, ">>> ");
}

/* Both names, so that a rename back finds the same places. */
static bool is_telling(const refactor *x)
{
    return refactor__is_only_a_name(x->name) && (!x->to || refactor__is_only_a_name(x->to));
}

/* "<Client %s>" in Client.__repr__: what the type's own method says of it. */
static bool is_in_own_text(const refactor *x, const refactor_file *f, const code_use *u)
{
    static const char *const methods[] = {
        "__repr__", "__str__", "toString", "inspect", "String", "GoString", "fmt"};
    if (u->role != CODE_USE_STRING || u->inside == UINT32_MAX || !x->target.is_type || !is_telling(x))
        return false;
    const code_definition *d = &f->uses->file->definitions[u->inside];
    bool is_such = false;
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++) is_such |= !strcmp(d->name, methods[i]);
    return is_such && !strcmp(d->parent, x->target.name);
}

bool refactor__find_docstring(
    const refactor_file *f, const code_definition *d, size_t *ret_from, size_t *ret_to)
{
    const base_buf *text = &f->file.text;
    if (f->language->family != REFACTOR_PYTHON || !d->body_to) return false;
    size_t at = d->body_from; /* a string is the first thing of the body */
    while (at < d->body_to && strchr(" \t\r\n:rRuU", text->data[at])) at++;
    const char *quote = text->data + at;
    const bool is_doc =
        begins_with(quote, d->body_to - at, "\"\"\"") || begins_with(quote, d->body_to - at, "'''");
    const char *end = is_doc ? memmem(quote + 3, d->body_to - at - 3, quote, 3) : NULL;
    if (!end) return false;
    *ret_from = at + 3;
    *ret_to = (size_t)(end - text->data);
    return true;
}

bool refactor__is_in_document_of(const refactor_file *f, const code_definition *d, const code_use *u)
{
    size_t string_from, string_to;
    uint32_t from, to;
    refactor__definition_extent(&f->file.text, d->from, d->to, &from, &to);
    if (u->role == CODE_USE_COMMENT && u->from >= from && u->from < d->name_from) return true;
    return u->role == CODE_USE_STRING && refactor__find_docstring(f, d, &string_from, &string_to) &&
           u->from >= string_from && u->from < string_to;
}

bool refactor__is_in_own_words(const refactor *x, const refactor_file *f, const code_use *u)
{
    const code_definition *d = x->target.definition;
    const base_buf *text = &f->file.text;
    uint32_t from, to;
    if (!x->to || !d || f != x->target.in || x->target.binding != UINT32_MAX) return false;
    if (is_in_own_text(x, f, u)) return true;
    if (!refactor__is_in_document_of(f, d, u)) return false;
    refactor__definition_extent(text, d->from, d->to, &from, &to);
    /* "// Replace sets ...": Go's comments begin with the name. */
    size_t word = u->from;
    while (word > from && strchr(" /\t", text->data[word - 1])) word--;
    const bool is_first = word == from && f->language->family == REFACTOR_GO;
    return is_first || is_telling(x) || refactor__is_marked(text, u->from, strlen(x->name));
}

/* ---- files of prose ---- */

size_t refactor__find_word(const base_buf *text, const char *word, size_t from_byte)
{
    const size_t n = strlen(word);
    const char *at = text->data + from_byte, *end = text->data + text->len;
    while (at && at < end && (at = memmem(at, (size_t)(end - at), word, n)) != NULL) {
        size_t pos = (size_t)(at - text->data), from, to;
        while (pos && ((unsigned char)text->data[pos - 1] >= 0x80 || strchr("_$", text->data[pos - 1]) ||
                          (text->data[pos - 1] >= '0' && text->data[pos - 1] <= '9') ||
                          ((text->data[pos - 1] | 32) >= 'a' && (text->data[pos - 1] | 32) <= 'z')))
            pos--;
        size_t find = pos;
        if (code_next_identifier(text->data, text->len, &find, &from, &to) && to - from == n &&
            !memcmp(text->data + from, word, n))
            return from;
        at++;
    }
    return SIZE_MAX;
}

/* What tells of versions that had the old name. */
static bool is_history(const char *path)
{
    static const char *const names[] = {"changelog", "changes", "history", "news", "releases"};
    const char *name = base_path_name(path);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const size_t n = strlen(names[i]);
        if (!strncasecmp(name, names[i], n) && (!name[n] || name[n] == '.')) return true;
    }
    return false;
}

/* The file goes with the operation where a place of it was found: true, and it is x's. */
static bool keep(refactor *x, refactor_document d, const char *path, const tool_file *file)
{
    if (!d.n_places) return false;
    d.path = base_xstrdup(path);
    d.file = *file;
    base_grow(&x->documents, &x->cap_documents, x->n_documents + 1, sizeof *x->documents);
    x->documents[x->n_documents++] = d;
    return true;
}

bool refactor__note_document(refactor *x, const char *path, tool_file *file)
{
    const bool is_any = refactor__is_only_a_name(x->name);
    const size_t n = strlen(x->name);
    refactor_document d = {.is_history = is_history(path)};
    size_t cap = 0;
    for (size_t at = 0; (at = refactor__find_word(&file->text, x->name, at)) != SIZE_MAX; at += n) {
        if (!is_any && !refactor__is_marked(&file->text, at, n) &&
            !is_in_block(file->text.data, tool__line_begin(file->text.data, at)))
            continue;
        base_grow(&d.places, &cap, d.n_places + 1, sizeof *d.places);
        d.places[d.n_places++] = (uint32_t)at;
    }
    return keep(x, d, path, file);
}

bool refactor__note_configuration(refactor *x, const char *path, tool_file *file)
{
    static const char *const endings[] = {".toml", ".cfg", ".ini", ".yaml", ".yml"};
    const char *ending = base_path_ending(path);
    refactor_document d = {.is_configuration = true};
    size_t cap = 0;
    bool is_one = false;
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) is_one |= !strcmp(ending, endings[i]);
    for (size_t at = 0; is_one && (at = refactor__find_word(&file->text, x->name, at)) != SIZE_MAX;
         at += strlen(x->name)) {
        if (!at || !strchr(".:", file->text.data[at - 1])) continue;
        base_grow(&d.places, &cap, d.n_places + 1, sizeof *d.places);
        d.places[d.n_places++] = (uint32_t)at;
    }
    return keep(x, d, path, file);
}

void refactor__documents_free(refactor *x)
{
    for (size_t i = 0; i < x->n_documents; i++) {
        free(x->documents[i].path);
        free(x->documents[i].places);
        tool__file_free(&x->documents[i].file);
    }
    free(x->documents);
}

void refactor__say_documents(const refactor *x, base_buf *out)
{
    size_t n = 0;
    for (size_t i = 0; i < x->n_documents; i++) {
        const refactor_document *d = &x->documents[i];
        size_t last = 0;
        for (size_t k = 0; k < d->n_places; k++) {
            const size_t line = tool__line_of(d->file.text.data, d->places[k]);
            if (line == last) continue;
            last = line;
            if (n++ >= MAX_LISTED) continue;
            base_buf_puts(out, n == 1 ? "Documents that still write it, left: " : ", ");
            tool__path_show(out, d->path);
            base_buf_printf(out, ":%zu", line);
        }
    }
    if (n > MAX_LISTED)
        base_buf_printf(out, " and %zu more line%s", n - MAX_LISTED, n == MAX_LISTED + 1 ? "" : "s");
    if (n) base_buf_puts(out, ".\n");
}
