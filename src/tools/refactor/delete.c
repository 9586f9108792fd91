/*
 * delete: a definition with its comment, its prototypes, and what imports and exports it. What calls it is listed
 * and refused, unless the request says what stands in place of a call.
 */
#include "tools/refactor/refactor.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "tools/result/result.h"

enum { MAX_LISTED = 12 };

/* Is this place the definition itself, or another line of it (a prototype, an overload)? */
static bool is_definition(const refactor *x, const refactor_place *p)
{
    return p->use->definition != UINT32_MAX && p->use->binding == UINT32_MAX && p->use->import == UINT32_MAX;
}

/* Inside the definition that goes: recursion. */
static bool is_inside(const refactor *x, const refactor_place *p)
{
    const code_definition *d = x->target.definition;
    return &x->files[p->file] == x->target.in && p->use->from >= d->from && p->use->from < d->to;
}

/* A whole call, from its object to its closing parenthesis; false: the name is used in another way. */
static bool call_extent(const refactor *x, const refactor_place *p, uint32_t *from, uint32_t *to)
{
    const refactor_file *f = &x->files[p->file];
    const base_buf *text = &f->file.text;
    code_item *items = NULL;
    uint32_t n, open;
    const uint32_t end = p->use->from + (uint32_t)strlen(x->name);
    if (!p->use->is_call || p->use->role == CODE_USE_MACRO ||
        !code_items(x->w->grammars, f->path, text->data, text->len, end, &open, to, &items, &n))
        return false;
    free(items);
    ++*to; /* the parenthesis */
    *from = p->use->from;
    if (p->use->role != CODE_USE_MEMBER) return true;
    /* a.b->name(...): back over the object, as far as it is plain names. */
    while (*from > 0 && (strchr(".:>", text->data[*from - 1]) || text->data[*from - 1] == '_' ||
                            text->data[*from - 1] == '-' ||
                            (text->data[*from - 1] >= '0' && text->data[*from - 1] <= '9') ||
                            ((text->data[*from - 1] | 32) >= 'a' && (text->data[*from - 1] | 32) <= 'z')))
        --*from;
    return *from == 0 || !strchr(")]", text->data[*from - 1]);
}

/* One item of an import or of what is exported; the whole statement where it is the only one. */
static bool remove_import(const refactor *x, const refactor_place *p, refactor_edits *edits)
{
    const refactor_file *f = &x->files[p->file];
    const base_buf *text = &f->file.text;
    uint32_t from = p->use->from, to = from + (uint32_t)strlen(x->name);
    if (p->use->import != UINT32_MAX) {
        from = f->uses->imports[p->use->import].from;
        to = f->uses->imports[p->use->import].to;
    } else if (p->use->role == CODE_USE_STRING) {
        from--;
        to++;
    }
    if (refactor__item_extent(text, &from, &to)) {
        refactor__edit(edits, from, to, "");
        return true;
    }
    if (p->use->import == UINT32_MAX) {
        if (p->use->role != CODE_USE_STRING && !p->use->is_shorthand) return false;
        refactor__edit(edits, from, to, "");
        return true;
    }
    /* from m import (name) and const {name} = require(m): from the line's begin to the end of its last line. */
    while (from > 0 && text->data[from - 1] != '\n') from--;
    while (to < text->len && text->data[to] != '\n') to++;
    refactor__edit(edits, from, to < text->len ? to + 1 : to, "");
    return true;
}

static void list_use(const refactor *x, const refactor_place *p, size_t n, base_buf *out)
{
    const refactor_file *f = &x->files[p->file];
    if (n >= MAX_LISTED) return;
    base_buf_puts(out, n ? ", " : "");
    tool__path_show(out, f->path);
    base_buf_printf(out, ":%u", p->use->line);
    if (p->use->inside != UINT32_MAX)
        base_buf_printf(out, " (in %s)", f->uses->file->definitions[p->use->inside].name);
}

static void remove_definition(const refactor *x, const refactor_place *p, refactor_edits *edits)
{
    const refactor_file *f = &x->files[p->file];
    const code_definition *d = &f->uses->file->definitions[p->use->definition];
    uint32_t from, to;
    refactor__definition_extent(&f->file.text, d->from, d->to, &from, &to);
    if (d->body_to) refactor__widen_blank(&f->file.text, &from, &to);
    refactor__edit(edits, from, to, "");
}

bool refactor__delete(refactor *x, const refactor_request *q, tool_changes *ret, base_buf *headline)
{
    const refactor_target *t = &x->target;
    if (!t->definition) {
        tool__say(x->result, TOOL_REFUSED,
            "%s is a local: delete works on definitions. Nothing was changed.\n", x->name);
        return false;
    }
    if (!refactor__resolve(x)) return false;
    refactor_edits *edits = base_xcalloc(x->n_files + 1, sizeof *edits);
    base_buf left = {0};
    size_t n_left = 0, n_calls = 0, n_unsure = 0;
    for (size_t i = 0; i < x->n_places; i++) {
        const refactor_place *p = &x->places[i];
        const base_buf *text = &x->files[p->file].file.text;
        uint32_t from, to;
        if (p->verdict == REFACTOR_UNSURE) {
            n_unsure++;
            list_use(x, p, n_left++, &left);
            continue;
        }
        if (is_definition(x, p)) {
            remove_definition(x, p, &edits[p->file]);
            continue;
        }
        if (is_inside(x, p)) continue;
        const bool is_listed = p->use->import != UINT32_MAX || p->use->is_exported;
        if (is_listed && remove_import(x, p, &edits[p->file])) continue;
        if (q->to && call_extent(x, p, &from, &to)) {
            n_calls++;
            if (!*q->to || !strcmp(q->to, "nothing")) {
                if (refactor__statement_extent(text, &from, &to)) {
                    refactor__edit(&edits[p->file], from, to, "");
                    continue;
                }
            } else {
                refactor__edit(&edits[p->file], from, to, q->to);
                continue;
            }
        }
        list_use(x, p, n_left++, &left);
    }
    for (size_t i = 0; i < x->n_files && !n_left; i++) {
        base_buf text = {0};
        if (!edits[i].n) continue;
        refactor__edits_apply(&edits[i], &x->files[i].file.text, &text);
        tool__changes_add(ret, x->files[i].path, &x->files[i].file, &text);
    }
    for (size_t i = 0; i < x->n_files; i++) refactor__edits_free(&edits[i]);
    free(edits);
    if (n_left) {
        tool__say(x->result, TOOL_REFUSED, "%s is used in %zu place%s: %s%s. Nothing was changed. ", x->name,
            n_left, n_left == 1 ? "" : "s", left.data, n_left > MAX_LISTED ? ", ..." : "");
        base_buf_puts(&x->result->text,
            q->to
                ? "These are no calls that \"to\" could stand for: change them first.\n"
                : "Next: change these first; or the same call with \"to\", what stands in place of each call "
                  "(\"nothing\" removes calls that stand alone).\n");
        base_buf_free(&left);
        return false;
    }
    base_buf say = {0};
    base_buf_printf(&say, "deleted %s %s from %s", t->what, x->name, t->in->path);
    base_buf_printf(headline, "delete %s %s", t->what, x->name);
    if (n_calls) {
        base_buf_printf(&say, " and its %zu call%s", n_calls, n_calls == 1 ? "" : "s");
        base_buf_printf(headline, " and its %zu call%s", n_calls, n_calls == 1 ? "" : "s");
    }
    base_buf_printf(&say, ": %zu file%s changed.\n", ret->n, ret->n == 1 ? "" : "s");
    ret->say = base_buf_take(&say);
    base_buf_free(&left);
    return true;
}
