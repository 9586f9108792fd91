/*
 * Which comments a rename takes along unasked. IDEs offer it and have it switched on (IntelliJ's "Search in comments and strings");
 * language servers take at most the definition's own comment. Here a comment follows where nothing else can be meant: all code
 * of the tree that writes the name means the definition, and the word is no word of a sentence. Strings stay, since programs
 * read them.
 */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "tools/file/text.h"
#include "tools/refactor/refactor.h"

/* ---- a parameter ---- */

/* The innermost function around a parameter's or variable's own place; NULL: none. */
static const code_definition *function_of(const refactor_target *t)
{
    const code_file *file = t->in->uses->file;
    const code_definition *function = NULL;
    for (uint32_t i = 0; i < file->n_definitions; i++) {
        const code_definition *d = &file->definitions[i];
        if (d->from <= t->name_from && t->name_from < d->to && d->body_to) function = d;
    }
    return function;
}

bool refactor__is_listed(const base_buf *text, size_t at, size_t n)
{
    static const char *const tags[] = {"@param", "\\param"};
    const char *s = text->data;
    size_t first = tool__line_begin(s, at), behind = at + n;
    first += strspn(s + first, " \t*#/!");
    if (s[first] == ':') return at > first + 1 && s[at - 1] == ' ' && behind < text->len && s[behind] == ':';
    for (size_t i = 0; i < sizeof tags / sizeof *tags; i++) {
        const size_t n_tag = strlen(tags[i]);
        if (at < first + n_tag || memcmp(s + first, tags[i], n_tag) != 0) continue;
        size_t word = first + n_tag;
        const bool is_direction = s[word] == '[';
        word += strspn(s + word, " \t");
        const char *close = s[word] == '{' || is_direction ? strpbrk(s + word, "]}\n") : NULL;
        if (close && *close != '\n') word = (size_t)(close - s) + 1;
        word += strspn(s + word, " \t");
        return word + (s[word] == '[') == at; /* "[name=1]": JSDoc's optional ones */
    }
    behind += strspn(s + behind, " ");
    return first == at && behind < text->len && strchr(":(", s[behind]);
}

bool refactor__is_in_function_of(const refactor *x, const refactor_file *f, const code_use *u)
{
    const code_definition *d = function_of(&x->target);
    uint32_t from, to;
    if (!d || f != x->target.in) return false;
    refactor__definition_extent(&f->file.text, d->from, d->to, &from, &to);
    return u->from >= from && u->from < d->to;
}

bool refactor__is_parameter_documented(const refactor *x, const refactor_file *f, const code_use *u)
{
    const code_definition *d = x->target.is_parameter && f == x->target.in ? function_of(&x->target) : NULL;
    const size_t n = strlen(x->name);
    if (!x->to || !d || !refactor__is_in_document_of(f, d, u)) return false;
    return refactor__is_only_a_name(x->name) || refactor__is_marked(&f->file.text, u->from, n) ||
           refactor__is_listed(&f->file.text, u->from, n);
}

/* ---- everything else ---- */

/* A comment, or in Python a docstring. */
static bool is_comment(const refactor_file *f, const code_use *u)
{
    if (u->role != CODE_USE_STRING) return u->role == CODE_USE_COMMENT;
    const code_file *file = f->uses->file;
    bool is_doc = false;
    for (uint32_t i = 0; i < file->n_definitions && !is_doc && f->language->family == REFACTOR_PYTHON; i++)
        is_doc = refactor__is_in_document_of(f, &file->definitions[i], u);
    return is_doc;
}

static size_t count_sure(const refactor *x, size_t file)
{
    size_t n = 0;
    for (size_t i = 0; i < x->n_places; i++)
        n += x->places[i].file == file && x->places[i].verdict == REFACTOR_SURE &&
             x->places[i].use->role < CODE_USE_STRING;
    return n;
}

bool refactor__has_one_meaning(const refactor *x)
{
    if (x->target.binding != UINT32_MAX) return false;
    for (size_t i = 0; i < x->n_files; i++) {
        const code_uses *u = x->files[i].uses;
        size_t n_code = 0;
        for (uint32_t k = 0; k < u->n_uses; k++)
            n_code += u->uses[k].role < CODE_USE_STRING || u->uses[k].role == CODE_USE_UNREAD;
        if (n_code != count_sure(x, i)) return false;
    }
    return true;
}

static bool has_place(const refactor *x, size_t file, const code_use *u)
{
    bool has = false;
    for (size_t i = 0; i < x->n_places && !has; i++) has = x->places[i].file == file && x->places[i].use == u;
    return has;
}

static int compare_places(const void *a, const void *b)
{
    const refactor_place *x = a, *y = b;
    if (x->file != y->file) return x->file < y->file ? -1 : 1;
    return x->use->from < y->use->from ? -1 : x->use->from > y->use->from;
}

size_t refactor__take_comments(refactor *x)
{
    const bool is_telling = refactor__is_only_a_name(x->name);
    const size_t n_before = x->n_places, n = strlen(x->name);
    for (size_t i = 0; i < x->n_files; i++) {
        const refactor_file *f = &x->files[i];
        if (f->language->family != x->target.in->language->family || (f->is_foreign && f != x->target.in))
            continue;
        for (uint32_t k = 0; k < f->uses->n_uses; k++) {
            const code_use *u = &f->uses->uses[k];
            /* a plain word only where it is written as code is, beside the definition: read() elsewhere may be the library's */
            const bool may =
                is_telling || (f == x->target.in && refactor__is_marked(&f->file.text, u->from, n));
            if (!may || !is_comment(f, u) || has_place(x, i, u)) continue;
            base_grow(&x->places, &x->cap_places, x->n_places + 1, sizeof *x->places);
            x->places[x->n_places++] = (refactor_place){i, u, REFACTOR_SURE, NULL};
        }
    }
    qsort(x->places, x->n_places, sizeof *x->places, compare_places);
    return x->n_places - n_before;
}
