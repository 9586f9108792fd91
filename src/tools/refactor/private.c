/*
 * private: a definition is seen as little as its language allows: static in C without its prototypes, private in Java, without pub
 * in Rust and export in JavaScript, in Python and Go by its name. What uses it from outside is listed and refused.
 */
#include "tools/refactor/refactor.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "tools/file/text.h"
#include "tools/result/result.h"

enum { MAX_LISTED = 12 };

static bool refuse(const refactor *x, const char *why)
{
    tool__say(x->result, TOOL_REFUSED, "%s %s. Nothing was changed.\n", x->name, why);
    return false;
}

/* ---- who uses it from outside ---- */

/* What stands in a file of the same folder, and no external test, is of the package in Go. */
static bool is_same_folder(const char *a, const char *b)
{
    const char *x = strrchr(a, '/'), *y = strrchr(b, '/');
    const size_t n = x ? (size_t)(x - a) : 0;
    return n == (y ? (size_t)(y - b) : 0) && !memcmp(a, b, n);
}

/* Is the place one of the name itself: a prototype in C, an export or what hands it on? */
static bool is_own(const refactor *x, const refactor_place *p)
{
    const refactor_file *f = &x->files[p->file];
    return (x->target.in->language->declares_apart && p->use->definition != UINT32_MAX &&
               p->use->binding == UINT32_MAX) ||
           (f == x->target.in && !p->use->is_exported);
}

static bool is_inside(const refactor *x, const refactor_place *p)
{
    const refactor_file *f = &x->files[p->file];
    if (x->target.in->language->family == REFACTOR_GO)
        return is_same_folder(f->path, x->target.in->path) && !refactor__is_external_test(f);
    return is_own(x, p) || (f == x->target.in && p->use->is_exported);
}

/* false: *x->result lists what is outside, or not sure. */
static bool is_used_inside_alone(refactor *x)
{
    base_buf list = {0};
    size_t n = 0;
    for (size_t i = 0; i < x->n_places; i++) {
        const refactor_place *p = &x->places[i];
        if (is_inside(x, p) && (p->verdict == REFACTOR_SURE || &x->files[p->file] == x->target.in)) continue;
        if (n++ >= MAX_LISTED) continue;
        base_buf_puts(&list, n == 1 ? "" : ", ");
        tool__path_show(&list, x->files[p->file].path);
        base_buf_printf(&list, ":%u", p->use->line);
    }
    if (n)
        tool__say(x->result, TOOL_REFUSED,
            "%s is used from outside in %zu place%s: %s%s. Nothing was changed.\n", x->name, n,
            n == 1 ? "" : "s", list.data, n > MAX_LISTED ? ", ..." : "");
    base_buf_free(&list);
    return !n;
}

/* ---- by its name ---- */

/* Python: "_name". Go: "parseURL" of ParseURL, "urlOf" of URLOf. false: it is private already, or has a name of the language. */
static bool private_name(refactor_family family, const char *name, base_buf *ret)
{
    const size_t n = strlen(name);
    if (family == REFACTOR_PYTHON) {
        if (*name == '_') return false;
        base_buf_printf(ret, "_%s", name);
        return true;
    }
    if (!isupper((unsigned char)*name)) return false;
    size_t lower = 1; /* how many capitals become small: all but the one that begins the next word */
    while (lower < n && isupper((unsigned char)name[lower])) lower++;
    if (lower > 1 && lower < n && islower((unsigned char)name[lower])) lower--;
    for (size_t i = 0; i < n; i++)
        base_buf_putc(ret, i < lower ? (char)tolower((unsigned char)name[i]) : name[i]);
    return true;
}

static bool rename_it(refactor *x, const refactor_request *q, tool_changes *ret, base_buf *headline)
{
    const refactor_family family = x->target.in->language->family;
    base_buf to = {0};
    bool is_good = private_name(family, x->name, &to) || refuse(x, "is private already");
    if (is_good && family == REFACTOR_GO) is_good = refactor__resolve(x) && is_used_inside_alone(x);
    if (is_good) {
        refactor_request renaming = *q;
        x->n_places = 0; /* a renaming finds them with the new name in view */
        x->to = renaming.to = to.data;
        is_good = refactor__rename(x, &renaming, ret, headline);
        x->to = NULL; /* it does not outlive this call */
    }
    base_buf_free(&to);
    return is_good;
}

/* ---- by a word in front of it ---- */

/* The word among bytes [from, to) of the text, by itself; SIZE_MAX: not there. */
static size_t find_word(const char *text, size_t from, size_t to, const char *word)
{
    const size_t n = strlen(word);
    for (size_t i = from; i + n <= to; i++)
        if (!memcmp(text + i, word, n) && (i == from || !code_is_name_byte(text[i - 1])) &&
            !code_is_name_byte(text[i + n]))
            return i;
    return SIZE_MAX;
}

/* Takes the word with the blanks behind it, and what stands in brackets right behind it ("pub(crate)"). false: it is not there. */
static bool drop_word(
    const base_buf *text, size_t from, size_t to, const char *word, const char *next, refactor_edits *e)
{
    const size_t at = find_word(text->data, from, to, word);
    if (at == SIZE_MAX) return false;
    size_t end = at + strlen(word);
    if (text->data[end] == '(') {
        const char *close = memchr(text->data + end, ')', to - end);
        if (close) end = (size_t)(close - text->data) + 1;
    }
    while (!*next && end < to && strchr(" \t", text->data[end])) end++;
    refactor__edit(e, (uint32_t)at, (uint32_t)end, next);
    return true;
}

/* Where the declaration begins behind its annotations and the lines of its attributes. */
static size_t declaration_from(const base_buf *text, size_t from, size_t to)
{
    for (size_t line = from; line < to;) {
        size_t word = line;
        while (word < to && isspace((unsigned char)text->data[word])) word++;
        if (word >= to || !strchr("@#[", text->data[word])) return word;
        while (line < to && text->data[line] != '\n') line++;
        line++;
    }
    return from;
}

static bool hide_in_c(const refactor *x, refactor_edits *edits)
{
    if (x->target.is_static) return refuse(x, "is static already");
    for (size_t i = 0; i < x->n_places; i++) {
        const refactor_place *p = &x->places[i];
        const refactor_file *f = &x->files[p->file];
        if (p->verdict != REFACTOR_SURE || p->use->definition == UINT32_MAX || p->use->binding != UINT32_MAX)
            continue;
        const code_definition *d = &f->uses->file->definitions[p->use->definition];
        if (f == x->target.in) {
            refactor__edit(&edits[p->file], d->from, d->from, "static ");
            continue;
        }
        uint32_t from, to;
        refactor__definition_extent(&f->file.text, d->from, d->to, &from, &to);
        refactor__edit(&edits[p->file], from, to, "");
    }
    return true;
}

static bool hide_by_word(const refactor *x, refactor_edits *edits)
{
    const refactor_target *t = &x->target;
    const refactor_family family = t->in->language->family;
    const base_buf *text = &t->in->file.text;
    const size_t to = t->name_from;
    size_t from = declaration_from(text, t->definition->from, to);
    if (family == REFACTOR_RUST)
        return drop_word(text, from, to, "pub", "", edits) || refuse(x, "is private already");
    if (family == REFACTOR_JS) {
        while (from > 0 && text->data[from - 1] != '\n')
            from--; /* the grammar's function begins behind "export" */
        for (size_t i = 0; i < x->n_places; i++)
            if (x->places[i].use->is_exported)
                return refuse(x, "is in a list of what its module exports: take it out there");
        return drop_word(text, from, to, "export", "", edits) || refuse(x, "is not exported");
    }
    if (find_word(text->data, from, to, "private") != SIZE_MAX) return refuse(x, "is private already");
    if (find_word(text->data, t->definition->from, to, "Override") != SIZE_MAX)
        return refuse(x, "overrides another method, which is seen");
    if (!drop_word(text, from, to, "public", "private", edits) &&
        !drop_word(text, from, to, "protected", "private", edits))
        refactor__edit(edits, (uint32_t)from, (uint32_t)from, "private ");
    return true;
}

bool refactor__private(refactor *x, const refactor_request *q, tool_changes *ret, base_buf *headline)
{
    const refactor_target *t = &x->target;
    const refactor_hiding hiding = t->in->language->hiding;
    if (!t->definition) return refuse(x, "is a local, which nobody else sees");
    if (hiding == REFACTOR_HIDES_BY_NAME) return rename_it(x, q, ret, headline);
    const bool is_c = hiding == REFACTOR_HIDES_BY_STATIC;
    if ((is_c && (t->is_type || t->is_member || !strcmp(t->what, "macro"))) ||
        hiding == REFACTOR_HIDES_NOTHING)
        return refuse(x, "cannot be made private in this language");
    if (!refactor__resolve(x) || !is_used_inside_alone(x)) return false;
    refactor_edits *edits = base_xcalloc(x->n_files + 1, sizeof *edits);
    const size_t own = (size_t)(t->in - x->files);
    const bool is_good = is_c ? hide_in_c(x, edits) : hide_by_word(x, &edits[own]);
    refactor__edits_take_all(x, edits, is_good ? ret : NULL);
    if (!is_good) return false;
    base_buf say = {0};
    base_buf_printf(&say, "made %s %s private to %s: %zu file%s changed.\n", t->what, x->name, t->in->path,
        ret->n, ret->n == 1 ? "" : "s");
    base_buf_printf(headline, "make %s private", x->name);
    ret->say = base_buf_take(&say);
    return true;
}
