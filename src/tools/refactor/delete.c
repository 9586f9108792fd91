/*
 * delete: a definition with its comment, its prototypes, and what imports and exports it. What calls it is listed
 * and refused, unless the request says what stands in place of a call; what only tests it goes with it (tests.c).
 */
#include "tools/refactor/refactor.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "tools/file/text.h"
#include "tools/result/result.h"

enum { MAX_LISTED = 12 };

/* Is this place the definition itself, in a function or not, or another line of it (a prototype, an overload)? */
static bool is_definition(const refactor *x, const refactor_place *p)
{
    if (&x->files[p->file] == x->target.in && p->use->from == x->target.name_from) return true;
    return p->use->definition != UINT32_MAX && p->use->binding == UINT32_MAX && p->use->import == UINT32_MAX;
}

/* Inside the definition that goes: recursion. */
static bool is_inside(const refactor *x, const refactor_place *p)
{
    const code_definition *d = x->target.definition;
    return &x->files[p->file] == x->target.in && p->use->from >= d->from && p->use->from < d->to;
}

bool refactor__call_extent(
    const refactor *x, const refactor_place *p, uint32_t *from, uint32_t *to, refactor_list *ret)
{
    const base_buf *text = &x->files[p->file].file.text;
    if (!p->use->is_call || p->use->role == CODE_USE_MACRO || !refactor__read_list(x, p, ret)) return false;
    *to = ret->to + 1; /* the parenthesis */
    *from = p->use->from;
    if (p->use->role != CODE_USE_MEMBER) return true;
    /* a.b->name(...): back over the object, as far as it is plain names. */
    while (*from > 0 && (strchr(".:>", text->data[*from - 1]) || text->data[*from - 1] == '_' ||
                            text->data[*from - 1] == '-' ||
                            (text->data[*from - 1] >= '0' && text->data[*from - 1] <= '9') ||
                            ((text->data[*from - 1] | 32) >= 'a' && (text->data[*from - 1] | 32) <= 'z')))
        --*from;
    if (*from == 0 || !strchr(")]", text->data[*from - 1])) return true;
    free(ret->items);
    return false;
}

static bool put_call(const refactor *x, const refactor_place *p, const refactor_instead *instead,
    uint32_t from, const refactor_list *call, base_buf *out);

/* Bytes [from, to) with every call in them as it is to be; false: the request does not say enough for one. */
static bool put_replaced(const refactor *x, size_t file, const refactor_instead *instead, uint32_t from,
    uint32_t to, base_buf *out)
{
    const base_buf *text = &x->files[file].file.text;
    bool is_good = true;
    for (size_t i = 0; i < x->n_places && is_good; i++) {
        const refactor_place *p = &x->places[i];
        uint32_t call_from, call_to;
        refactor_list call;
        if (p->file != file || p->use->from < from || p->use->from >= to) continue;
        if (!refactor__call_extent(x, p, &call_from, &call_to, &call)) return false;
        if (call_from < from) call_from = from;
        base_buf_add(out, text->data + from, call_from - from);
        is_good = put_call(x, p, instead, call_from, &call, out);
        free(call.items);
        from = call_to;
    }
    if (to > from) base_buf_add(out, text->data + from, to - from);
    return is_good;
}

static bool put_call(const refactor *x, const refactor_place *p, const refactor_instead *instead,
    uint32_t from, const refactor_list *call, base_buf *out)
{
    const base_buf *text = &x->files[p->file].file.text;
    base_buf *items = base_xcalloc(call->n + 1, sizeof *items);
    base_str *strings = base_xcalloc(call->n + 1, sizeof *strings);
    bool is_good = true;
    for (uint32_t i = 0; i < call->n && is_good; i++) {
        is_good = put_replaced(x, p->file, instead, call->items[i].from, call->items[i].to, &items[i]);
        strings[i] = (base_str){items[i].data ? items[i].data : "", items[i].len};
    }
    uint32_t object_to = p->use->from;
    while (object_to > from && strchr(".:>-", text->data[object_to - 1])) object_to--;
    const base_str object = {text->data + from, object_to - from};
    is_good = is_good && refactor__put_instead(instead, strings, call->n, object, out);
    for (uint32_t i = 0; i < call->n; i++) base_buf_free(&items[i]);
    free(items);
    free(strings);
    return is_good;
}

/* Does the call stand where an expression may, whatever operators it has: "= f(x);", "(f(x), y)", "return f(x)"? */
static bool stands_apart(const base_buf *text, uint32_t from, uint32_t to)
{
    static const char *const words[] = {"return", "yield", "in"};
    const char *s = text->data;
    while (from > 0 && strchr(" \t", s[from - 1])) from--;
    while (to < text->len && strchr(" \t\r", s[to])) to++;
    const char next = to < text->len ? s[to] : '\n';
    if (!strchr("),];}\n", next)) return false;
    if (from == 0 || strchr("(,[{:\n", s[from - 1])) return true;
    if (s[from - 1] == '=') return from < 2 || !strchr("=!<>", s[from - 2]);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        const size_t n = strlen(words[i]);
        if (from > n && !memcmp(s + from - n, words[i], n) && !code_is_name_byte(s[from - n - 1]))
            return true;
    }
    return false;
}

/* Lines with the indentation of the statement at byte `at`. */
static void put_indented(const base_buf *text, uint32_t at, const char *lines, base_buf *out)
{
    const size_t line = tool__line_begin(text->data, at), n = strspn(text->data + line, " \t");
    const bool has_cr = memchr(text->data, '\r', text->len) != NULL;
    for (const char *p = lines; *p;) {
        const size_t end = strcspn(p, "\n");
        if (end) base_buf_add(out, text->data + line, n);
        base_buf_add(out, p, end);
        base_buf_puts(out, has_cr ? "\r\n" : "\n");
        p += end + (p[end] == '\n');
    }
}

/* The statements of an inlined body, with what this call gives, in front of the statement at byte `at`. */
static bool put_lead(const refactor *x, const refactor_place *p, const refactor_instead *instead,
    uint32_t from, const refactor_list *call, uint32_t at, base_buf *out)
{
    refactor_instead lead = *instead;
    base_buf s = {0};
    lead.to = instead->lead;
    const bool is_good = put_call(x, p, &lead, from, call, &s);
    if (is_good) put_indented(&x->files[p->file].file.text, at, s.data ? s.data : "", out);
    base_buf_free(&s);
    return is_good;
}

/* The call as it is to be, up to *ret_to; false: the request does not say enough for this one. */
static bool replace_call(const refactor *x, const refactor_place *p, const refactor_instead *instead,
    refactor_edits *edits, uint32_t *ret_to)
{
    const base_buf *text = &x->files[p->file].file.text;
    uint32_t from, to;
    refactor_list call;
    base_buf s = {0}, lead = {0};
    if (!refactor__call_extent(x, p, &from, &to, &call)) return false;
    const uint32_t line = (uint32_t)tool__line_begin(text->data, from), call_from = from;
    const bool is_nothing = !*instead->to || !strcmp(instead->to, "nothing");
    bool is_good =
        is_nothing ? refactor__statement_extent(text, &from, &to) : put_call(x, p, instead, from, &call, &s);
    if (is_good && instead->lead) is_good = put_lead(x, p, instead, call_from, &call, line, &lead);
    if (is_good && s.len && !refactor__is_one_piece(s.data, s.len) && !stands_apart(text, from, to)) {
        base_buf bracketed = {0};
        base_buf_printf(&bracketed, "(%s)", s.data);
        base_buf_free(&s);
        s = bracketed;
    }
    if (is_good && lead.len && from > line) refactor__edit(edits, line, line, lead.data);
    if (is_good) refactor__edit(edits, from, to, from == line && lead.len ? lead.data : s.data ? s.data : "");
    if (is_good) *ret_to = to;
    base_buf_free(&s);
    base_buf_free(&lead);
    free(call.items);
    return is_good;
}

/* The function at the head of what stands instead, where the deleted one's file defines it; the caller frees; NULL. */
static char *follower(const refactor *x, const char *to)
{
    size_t pos = 0, from, end;
    const code_file *f = x->target.in->uses->file;
    if (!to || !code_next_identifier(to, strlen(to), &pos, &from, &end) || from != 0 || to[end] != '(')
        return NULL;
    for (uint32_t i = 0; i < f->n_definitions; i++) {
        const code_definition *d = &f->definitions[i];
        if (strlen(d->name) == end && !memcmp(d->name, to, end) && !(d->parent && *d->parent))
            return base_xstrndup(to, end);
    }
    return NULL;
}

static bool defines(const code_file *f, const char *name)
{
    for (uint32_t i = 0; i < f->n_definitions; i++)
        if (!strcmp(f->definitions[i].name, name) && !(f->definitions[i].parent && *f->definitions[i].parent))
            return true;
    return false;
}

/*
 * "old = new" and "#define old new" where the same file defines new: what is called old can be called new everywhere. The caller
 * frees; NULL: it is no such alias.
 */
static char *alias_of(const refactor *x)
{
    const refactor_target *t = &x->target;
    const char *text = t->in->file.text.data;
    size_t at = t->name_from + strlen(x->name), pos = 0, from, to;
    const size_t end = t->definition->to;
    if (t->is_function || t->is_member) return NULL;
    const bool is_macro = t->definition->from + 1 < end && text[t->definition->from] == '#';
    at += strspn(text + at, " \t");
    if (!is_macro && (text[at] != '=' || text[at + 1] == '=')) return NULL;
    if (!is_macro) at++;
    at += strspn(text + at, " \t");
    if (at >= end || !code_next_identifier(text + at, end - at, &pos, &from, &to) || from != 0) return NULL;
    for (size_t i = at + to; i < end; i++)
        if (!strchr("; \t\r\n", text[i])) return NULL;
    char *name = base_xstrndup(text + at, to);
    if (defines(t->in->uses->file, name) && strcmp(name, x->name) != 0) return name;
    free(name);
    return NULL;
}

/* "Delete OLD, use NEW": a value that the same file defines takes every place, called or not. The caller frees; NULL: it is none. */
static char *value_of(const refactor *x, const char *to)
{
    const refactor_target *t = &x->target;
    size_t pos = 0, from, end;
    const bool is_name = code_next_identifier(to, strlen(to), &pos, &from, &end) && from == 0 && !to[end];
    const char *text = t->in->file.text.data + t->name_from + strlen(x->name);
    const bool is_value = is_name && !t->is_function && !t->is_member && !t->is_type && *text != '(';
    return is_value && strcmp(to, x->name) != 0 && defines(t->in->uses->file, to) ? base_xstrdup(to) : NULL;
}

static bool brings(const refactor_file *f, const char *name)
{
    for (uint32_t i = 0; i < f->uses->n_imports; i++)
        if (!strcmp(f->uses->imports[i].local, name)) return true;
    return false;
}

/* `from m import f`: what stands in its calls' place now comes from there. false: there is none, or it is there. */
static bool replace_import(
    const refactor *x, const refactor_place *p, const char *next, refactor_edits *edits)
{
    const refactor_file *f = &x->files[p->file];
    if (!next || p->use->import == UINT32_MAX || brings(f, next)) return false;
    const code_import *import = &f->uses->imports[p->use->import];
    if (import->is_export || strcmp(import->name, x->name) != 0) return false;
    refactor__edit(edits, import->from, import->to, next);
    return true;
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

/* "name: name" of a list that is exported, at its key or at its value: bytes [*from, *to). */
static bool is_exported_pair(const refactor *x, const refactor_place *p, uint32_t *from, uint32_t *to)
{
    const base_buf *text = &x->files[p->file].file.text;
    const size_t n = strlen(x->name);
    if (x->files[p->file].language->family != REFACTOR_JS) return false;
    for (size_t i = 0; i < x->n_places; i++) {
        const refactor_place *key = &x->places[i];
        const uint32_t at = key->use->from;
        if (key->file != p->file || key->use->role != CODE_USE_KEY || !key->use->is_exported) continue;
        const char *value = text->data + at + n;
        value += strspn(value, " ");
        if (*value++ != ':') continue;
        value += strspn(value, " ");
        if (strncmp(value, x->name, n) != 0 || !strchr(",} \r\n", value[n])) continue;
        *from = at;
        *to = (uint32_t)(value + n - text->data);
        if (p->use->from == at || p->use->from + n == *to) return true;
    }
    return false;
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
    const char *s = f->file.text.data;
    uint32_t item_from = d->from, item_to = d->to;
    if (x->target.is_nameless && f->language->family == REFACTOR_JS && d == x->target.definition &&
        refactor__item_extent(&f->file.text, &item_from, &item_to)) { /* of a literal: with its comma */
        refactor__edit(edits, item_from, item_to, "");
        return;
    }
    const bool stands_apart =
        from > 1 && s[from - 1] == '\n' && s[from - 2] == '\n'; /* a line between blank ones */
    if (d->body_to || stands_apart) refactor__widen_blank(&f->file.text, &from, &to);
    refactor__edit(edits, from, to, "");
}

static bool is_in_edits(const refactor_edits *e, size_t at)
{
    for (size_t i = 0; i < e->n; i++)
        if (at >= e->all[i].from && at < e->all[i].to) return true;
    return false;
}

/* Go: an import that only what goes used does not compile any more. */
static void drop_imports(const refactor_file *f, refactor_edits *edits)
{
    const base_buf *text = &f->file.text;
    if (f->language->family != REFACTOR_GO || !edits->n) return;
    for (uint32_t i = 0; i < f->uses->n_imports; i++) {
        const code_import *im = &f->uses->imports[i];
        bool stays = false, goes = false;
        size_t pos = 0, a, b;
        while (!stays && code_next_identifier(text->data, text->len, &pos, &a, &b)) {
            if (b - a != strlen(im->local) || memcmp(text->data + a, im->local, b - a) != 0) continue;
            if (b >= text->len || text->data[b] != '.' || (a >= im->from && a < im->to)) continue;
            stays = !is_in_edits(edits, a);
            goes |= !stays;
        }
        if (stays || !goes) continue;
        const size_t begin = tool__line_begin(text->data, im->from),
                     end = tool__line_end(text->data, text->len, im->to);
        refactor__edit(edits, (uint32_t)begin, (uint32_t)(end < text->len ? end + 1 : end), "");
    }
}

/* ---- all ---- */

typedef struct deletion {
    refactor *x;
    const char *to;        /* what is to stand in place of its calls; NULL: nothing was said */
    char *alias;           /* what else has its meaning and takes every place; NULL: nothing */
    char *next;            /* what imports name instead; NULL: they go */
    refactor_edits *edits; /* of each file */
    refactor_instead instead;
    refactor_cuts cuts; /* of tests */
    base_buf left;      /* uses that nothing can stand for, as they are listed */
    base_buf of_tests;  /* what was cut of tests, in words */
    size_t n_left, n_calls, n_replaced;
    bool is_inlined; /* its body stands where it was called */
    size_t done_in;  /* the call that was replaced last: its file, and where it ends */
    uint32_t done_to;
} deletion;

static void deletion_begin(deletion *d, refactor *x, const char *to)
{
    *d = (deletion){.x = x, .to = to, .done_in = SIZE_MAX};
    d->edits = base_xcalloc(x->n_files + 1, sizeof *d->edits);
    d->alias = to ? value_of(x, to) : alias_of(x);
    d->next = d->alias ? base_xstrdup(d->alias) : follower(x, to);
    if (to) refactor__read_instead(x, to, &d->instead);
    if (!d->alias && (!to || !*to || !strcmp(to, "nothing"))) refactor__cut_tests(x, &d->cuts);
}

static void deletion_free(deletion *d)
{
    for (size_t i = 0; i < d->x->n_files; i++) refactor__edits_free(&d->edits[i]);
    free(d->edits);
    refactor__instead_free(&d->instead);
    free(d->alias);
    free(d->next);
    free(d->cuts.all);
    base_buf_free(&d->left);
    base_buf_free(&d->of_tests);
}

/* What becomes of a place that the tests' cuts leave. */
static void delete_place(deletion *d, const refactor_place *p)
{
    refactor *x = d->x;
    refactor_edits *edits = &d->edits[p->file];
    const bool is_listed = p->use->import != UINT32_MAX || p->use->is_exported;
    uint32_t from, to;
    if (p->verdict == REFACTOR_UNSURE) {
        list_use(x, p, d->n_left++, &d->left);
    } else if (is_definition(x, p)) {
        remove_definition(x, p, edits);
    } else if (is_exported_pair(x, p, &from, &to) && !d->alias) {
        const bool is_key = p->use->from == from;
        if (is_key && refactor__item_extent(&x->files[p->file].file.text, &from, &to))
            refactor__edit(edits, from, to, "");
        else if (is_key)
            list_use(x, p, d->n_left++, &d->left);
    } else if (is_inside(x, p) ||
               (is_listed && (replace_import(x, p, d->next, edits) || remove_import(x, p, edits)))) {
        return;
    } else if (p->file == d->done_in && p->use->from < d->done_to) { /* in a call that was replaced */
        d->n_calls++;
    } else if (d->alias && p->use->role < CODE_USE_STRING && !p->use->is_shorthand) {
        refactor__edit(edits, p->use->from, p->use->from + (uint32_t)strlen(x->name), d->alias);
        d->n_replaced++;
    } else if (d->to && replace_call(x, p, &d->instead, edits, &d->done_to)) {
        d->done_in = p->file;
        d->n_calls++;
    } else {
        list_use(x, p, d->n_left++, &d->left);
    }
}

static void put_files(deletion *d, tool_changes *ret)
{
    for (size_t i = 0; i < d->x->n_files; i++) {
        const refactor_file *f = &d->x->files[i];
        base_buf text = {0};
        if (!d->edits[i].n) continue;
        const bool is_gone = refactor__is_file_cut(&d->cuts, i);
        if (!is_gone) drop_imports(f, &d->edits[i]);
        if (!is_gone) refactor__edits_apply(&d->edits[i], &f->file.text, &text);
        tool__changes_add(ret, f->path, &f->file, &text);
        ret->all[ret->n - 1]->removes = is_gone;
    }
}

static void say_left(const deletion *d)
{
    const refactor *x = d->x;
    tool__say(x->result, TOOL_REFUSED, "%s is used in %zu place%s: %s%s. Nothing was changed. ", x->name,
        d->n_left, d->n_left == 1 ? "" : "s", d->left.data, d->n_left > MAX_LISTED ? ", ..." : "");
    base_buf_puts(&x->result->text,
        d->is_inlined ? "Its body cannot stand there: change these first.\n"
        : d->to       ? "These are no calls that \"to\" could stand for: change them first.\n"
                : "Next: change these first; or the same call with \"to\", what stands in place of each call "
                  "(\"nothing\" removes calls that stand alone).\n");
}

static void say_deleted(const deletion *d, tool_changes *ret, base_buf *headline)
{
    const refactor_target *t = &d->x->target;
    base_buf say = {0};
    base_buf_printf(
        &say, "%s %s %s from %s", d->is_inlined ? "inlined" : "deleted", t->what, d->x->name, t->in->path);
    base_buf_printf(headline, "%s %s %s", d->is_inlined ? "inline" : "delete", t->what, d->x->name);
    if (d->n_calls && d->is_inlined) {
        base_buf_printf(&say, " into its %zu call%s", d->n_calls, d->n_calls == 1 ? "" : "s");
        base_buf_printf(headline, " into its %zu call%s", d->n_calls, d->n_calls == 1 ? "" : "s");
    } else if (d->n_calls) {
        base_buf_printf(&say, " and its %zu call%s", d->n_calls, d->n_calls == 1 ? "" : "s");
        base_buf_printf(headline, " and its %zu call%s", d->n_calls, d->n_calls == 1 ? "" : "s");
    }
    if (d->n_replaced) {
        const char *s = d->n_replaced == 1 ? "" : "s";
        base_buf_printf(&say, ", and %zu place%s say %s now", d->n_replaced, s, d->alias);
        base_buf_printf(headline, ", %s in %zu place%s", d->alias, d->n_replaced, s);
    }
    if (d->of_tests.len) {
        base_buf_puts(&say, d->of_tests.data);
        base_buf_puts(headline, " and its uses in tests");
    }
    base_buf_printf(&say, ": %zu file%s changed.\n", ret->n, ret->n == 1 ? "" : "s");
    const size_t at = say.len;
    refactor__say_documents(d->x, &say);
    if (say.len > at) ret->notice = base_xstrdup(say.data + at);
    ret->say = base_buf_take(&say);
}

/* Every place, and what is said of it. */
static bool delete_places(deletion *d, tool_changes *ret, base_buf *headline)
{
    refactor *x = d->x;
    for (size_t i = 0; i < x->n_places; i++) {
        const refactor_place *p = &x->places[i];
        if (!refactor__is_cut(&d->cuts, p->file, p->use->from)) delete_place(d, p);
    }
    refactor__apply_cuts(x, &d->cuts, d->edits, &d->of_tests);
    const bool is_good = !d->n_left;
    if (is_good) {
        put_files(d, ret);
        say_deleted(d, ret, headline);
    } else {
        say_left(d);
    }
    deletion_free(d);
    return is_good;
}

bool refactor__delete(refactor *x, const refactor_request *q, tool_changes *ret, base_buf *headline)
{
    deletion d;
    if (!x->target.definition) {
        tool__say(x->result, TOOL_REFUSED,
            "%s is a local: delete works on definitions. Nothing was changed.\n", x->name);
        return false;
    }
    if (!refactor__resolve(x)) return false;
    deletion_begin(&d, x, q->to);
    return delete_places(&d, ret, headline);
}

bool refactor__delete_inlined(
    refactor *x, const char *lead, const char *value, tool_changes *ret, base_buf *headline)
{
    deletion d = {.x = x, .to = value ? value : "nothing", .done_in = SIZE_MAX, .is_inlined = true};
    d.edits = base_xcalloc(x->n_files + 1, sizeof *d.edits);
    refactor__read_instead(x, d.to, &d.instead);
    d.instead.lead = lead;
    return delete_places(&d, ret, headline);
}
