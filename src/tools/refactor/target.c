/*
 * Which definition a name means: the files that write it are read, their definitions of that name are
 * collected, and what remains after what the request says (parent, file, line) is one, or the person is asked.
 */
#include "tools/refactor/refactor.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "tools/file/text.h"
#include "tools/result/result.h"
#include "base/path.h"

enum { MAX_LISTED = 12 };

/* "FILE:LINE (what Parent.name)" */
static void show(base_buf *out, const char *path, const code_definition *d)
{
    tool__path_show(out, path);
    base_buf_printf(out, ":%u (%s %s%s%s)", d->line, d->what, d->parent, *d->parent ? "." : "", d->name);
}

/* ---- candidates ---- */

typedef struct candidate {
    size_t file;
    const code_use *use;
    const code_definition *d; /* NULL: a local's declaration */
} candidate;

static const code_definition *definition_of(const refactor_file *f, const code_use *u)
{
    return u->definition == UINT32_MAX ? NULL : &f->uses->file->definitions[u->definition];
}

static const char *function_name(const refactor_file *f, const code_use *u)
{
    const code_file *file = f->uses->file;
    return u->inside == UINT32_MAX ? "" : file->definitions[u->inside].name;
}

static bool is_member_of_type(const refactor_file *f, const code_definition *d)
{
    return refactor__is_member(f->uses->file, d);
}

/*
 * Do two definitions stand for one thing: an #if and its #else, overloads, a setter, typedef struct x {} x, files for
 * several systems?
 */
static bool is_one_thing(const refactor *x, const candidate *a, const candidate *b)
{
    if (!a->d || !b->d) return a->d == b->d && a->use->binding == b->use->binding && a->file == b->file;
    if (a->use->binding != b->use->binding) return false;
    /* JavaScript: exports.f = (a) => ... is not the function f that stands beside it */
    if (x->files[a->file].language->family == REFACTOR_JS &&
        (a->use->role == CODE_USE_MEMBER) != (b->use->role == CODE_USE_MEMBER))
        return false;
    const bool types = refactor__is_type(a->d->what) && refactor__is_type(b->d->what);
    if (x->files[a->file].language->family == REFACTOR_C && types &&
        x->files[a->file].language->family == x->files[b->file].language->family) {
        const bool a_only = !a->d->body_to,
                   b_only = !b->d->body_to; /* typedef struct x x; struct x {} elsewhere */
        if (a->file == b->file || a_only || b_only) return true;
    }
    if (refactor__is_type(a->d->what) != refactor__is_type(b->d->what)) return false;
    const refactor_file *f = &x->files[a->file], *g = &x->files[b->file];
    const bool is_member = is_member_of_type(f, a->d);
    if (is_member != is_member_of_type(g, b->d)) return false;
    if (strcmp(a->use->within, b->use->within) != 0) return false;
    if (is_member && f != g)
        return f->language->family == REFACTOR_GO && !strcmp(a->d->parent, b->d->parent) &&
               base_path_same_folder(f->path, g->path);
    return !strcmp(a->d->parent, b->d->parent) && refactor__are_alternatives(f, g, types);
}

static const char *last_of(const char *s)
{
    const char *last = s;
    for (const char *p = s; *p; p++)
        if (strchr(".:#/>", *p) && p[1]) last = p + 1;
    return last;
}

typedef struct wanted {
    char *path, *parent;
    unsigned long line;
} wanted;

static bool fits(const refactor *x, const candidate *c, const wanted *want)
{
    const refactor_file *f = &x->files[c->file];
    if (want->path && strcmp(f->path, want->path) != 0) return false;
    if (want->line) return c->use->line == want->line || (c->d && c->d->line == want->line);
    if (want->parent) {
        const char *parent = c->use->binding != UINT32_MAX || !c->d ? function_name(f, c->use) : c->d->parent;
        if (c->d && c->use->binding != UINT32_MAX && *c->d->parent) parent = c->d->parent;
        return !strcmp(last_of(parent), want->parent);
    }
    return c->d != NULL;
}

/* A method and its overrides have to keep one name. */
static bool is_override(const refactor *x, const candidate *a, const candidate *b)
{
    const refactor_file *f = &x->files[a->file], *g = &x->files[b->file];
    return a->d && b->d && is_member_of_type(f, a->d) && is_member_of_type(g, b->d) &&
           a->d->what[0] == b->d->what[0] && f->language->family == g->language->family &&
           refactor__are_kin(x, x->name, a->d->parent, b->d->parent);
}

/* A parameter of what only declares the function: a prototype, a method of an interface. */
static bool is_of_declaration(const refactor *x, const candidate *c)
{
    const code_file *f = x->files[c->file].uses->file;
    return !c->d && c->use->is_parameter && c->use->inside != UINT32_MAX &&
           !f->definitions[c->use->inside].body_to;
}

static size_t collect(const refactor *x, const wanted *want, candidate **ret)
{
    candidate *all = NULL;
    size_t n = 0, cap = 0, n_real = 0;
    for (size_t f = 0; f < x->n_files; f++)
        for (uint32_t i = 0; i < x->files[f].uses->n_uses; i++) {
            const code_use *u = &x->files[f].uses->uses[i];
            candidate c = {f, u, definition_of(&x->files[f], u)};
            const bool is_local = !c.d && u->binding == u->from;
            if ((!c.d && !is_local) || (c.d && refactor__is_constructor(x->files[f].uses->file, c.d)) ||
                u->import != UINT32_MAX)
                continue;
            if (c.d && !strcmp(c.d->what, "section")) continue;
            if (!strcmp(x->name, "_") && x->files[f].language->family == REFACTOR_GO)
                continue; /* names nothing */
            if (!fits(x, &c, want)) continue;
            base_grow(&all, &cap, n + 1, sizeof *all);
            all[n++] = c;
            n_real += c.d ? !refactor__is_declaration(&x->files[f], c.d) : !is_of_declaration(x, &c);
        }
    size_t kept = 0;
    for (size_t i = 0; i < n; i++) {
        bool again = n_real && !want->line &&
                     (all[i].d ? refactor__is_declaration(&x->files[all[i].file], all[i].d)
                               : is_of_declaration(x, &all[i]));
        for (size_t k = 0; k < kept && !again; k++) again = is_one_thing(x, &all[k], &all[i]);
        if (!again) all[kept++] = all[i];
    }
    /* The parameter of a function of its own name does not stand for the line. */
    if (kept > 1 && want->line) {
        size_t n_defined = 0, defined = 0;
        for (size_t i = 0; i < kept; i++)
            if (all[i].d) {
                n_defined++;
                defined = i;
            }
        if (n_defined == 1) {
            all[0] = all[defined];
            kept = 1;
        }
    }
    bool is_family = kept > 1;
    for (size_t i = 1; i < kept && is_family; i++) is_family = is_override(x, &all[0], &all[i]);
    if (is_family) kept = 1;
    /* A plain name is first of all what stands at the top of a file: a member is "Type.name". */
    size_t n_top = 0, top = 0;
    for (size_t i = 0; i < kept; i++)
        if (all[i].d && !is_member_of_type(&x->files[all[i].file], all[i].d) &&
            all[i].use->binding == UINT32_MAX) {
            n_top++;
            top = i;
        }
    if (kept > 1 && n_top == 1 && !want->parent && !want->line) {
        all[0] = all[top];
        kept = 1;
    }
    /* Only prototypes: they stand for one function. */
    if (!n_real && kept > 1 && !want->line && all[0].d && !*all[0].d->parent) kept = 1;
    *ret = all;
    return kept;
}

/* ---- what the request says ---- */

static bool is_number(const char *s)
{
    return *s && strspn(s, "0123456789") == strlen(s);
}

/* The name of the definition that begins on a line of a file. */
static char *name_at(refactor *x, const char *path, unsigned long line)
{
    tool_file file = {0};
    char *name = NULL;
    if (tool__file_read(&x->w->root, path, TOOL_MAX_INDEXED, &file, NULL)) return NULL;
    code_file *f = code_parse(x->w->grammars, path, file.text.data ? file.text.data : "", file.text.len);
    for (uint32_t i = 0; i < f->n_definitions && !name; i++) {
        const code_definition *d = &f->definitions[i];
        if (d->line == line || tool__line_of(file.text.data, d->name_from) == line)
            name = base_xstrdup(d->name);
    }
    code_file_free(f);
    tool__file_free(&file);
    return name;
}

/* Reads "FILE:LINE", "FILE:name", "name:LINE", "Cls.name"; sets x->name. false: said why. */
static bool read_request(refactor *x, const char *given, const char *path, wanted *want)
{
    base_err why = {0};
    char *text = base_xstrdup(given);
    size_t n = strlen(text);
    while (n && strchr(" ()*&;,`'\"", text[n - 1])) text[--n] = '\0';
    char *colon = strrchr(text, ':');
    if (colon && colon > text && colon[-1] == ':') colon = NULL;
    char *head = colon ? base_xstrndup(text, (size_t)(colon - text)) : NULL;
    const bool is_file = head && (strchr(head, '/') || code_language(head, "", 0));
    bool is_good = true;
    if (path && tool__path_clean(&x->w->root, path, &want->path, &why)) {
        tool__say_path_error(x->w, x->result, "refactor", path, &why);
        is_good = false;
    }
    if (is_good && is_file) {
        free(want->path);
        want->path = NULL;
        if (tool__path_clean(&x->w->root, head, &want->path, &why)) {
            tool__say_path_error(x->w, x->result, "refactor", head, &why);
            is_good = false;
        }
        memmove(text, colon + 1, strlen(colon + 1) + 1);
        if (is_good && is_number(text)) {
            want->line = strtoul(text, NULL, 10);
            char *name = name_at(x, want->path, want->line);
            if (name) {
                x->name = name;
            } else {
                tool__say(x->result, TOOL_FAILED,
                    "No definition begins at %s:%lu. Next: refactor with a name.\n", want->path, want->line);
                is_good = false;
            }
        }
    } else if (is_good && colon && is_number(colon + 1)) {
        want->line = strtoul(colon + 1, NULL, 10);
        *colon = '\0';
    }
    if (is_good && !x->name) {
        const char *last = last_of(text);
        x->name = base_xstrdup(last);
        size_t end = (size_t)(last - text);
        while (end && strchr(".:#/>-", text[end - 1])) end--;
        text[end] = '\0';
        if (*text) want->parent = base_xstrdup(last_of(text));
    }
    if (is_good && !*x->name) {
        tool__say(x->result, TOOL_FAILED, "refactor needs the name of a definition. Nothing was changed.\n");
        is_good = false;
    }
    free(head);
    free(text);
    return is_good;
}

/* ---- what is said when there is none, or more than one ---- */

static void say_none(refactor *x, const char *given)
{
    code_hits hits = {0};
    code_index_search(x->w->index, given, 4, &hits);
    tool__say(x->result, TOOL_FAILED, "The tree has no definition \"%.100s\". Nothing was changed.", given);
    for (uint32_t i = 0, n = 0; i < hits.n; i++)
        if (*hits.hits[i].name)
            base_buf_printf(&x->result->text, "%s %s (%s:%u)",
                n++ ? "," : " Near by words:", hits.hits[i].name, hits.hits[i].path, hits.hits[i].line);
    if (x->n_unread)
        base_buf_printf(&x->result->text, " %zu files were not read, as %s: no grammar, or too large.",
            x->n_unread, x->unread);
    base_buf_puts(&x->result->text, "\n");
    code_hits_free(&hits);
}

/* more: what else is to be said of them. */
static void say_many(refactor *x, const candidate *all, size_t n, const char *more)
{
    base_buf_printf(&x->result->text, "\"%.100s\" is defined %zu times: ", x->name, n);
    for (size_t i = 0; i < n && i < MAX_LISTED; i++) {
        base_buf_puts(&x->result->text, i ? ", " : "");
        if (all[i].d) {
            show(&x->result->text, x->files[all[i].file].path, all[i].d);
        } else {
            tool__path_show(&x->result->text, x->files[all[i].file].path);
            base_buf_printf(&x->result->text, ":%u (local of %s)", all[i].use->line,
                function_name(&x->files[all[i].file], all[i].use));
        }
    }
    if (n > MAX_LISTED) base_buf_printf(&x->result->text, " and %zu more", n - MAX_LISTED);
    tool__say(x->result, TOOL_FAILED, "%s. Nothing was changed. Next: the same call with ", more);
    if (all[0].d && *all[0].d->parent)
        base_buf_printf(&x->result->text, "\"name\": \"%s.%s\"", all[0].d->parent, x->name);
    else if (all[0].file == all[1].file)
        base_buf_printf(
            &x->result->text, "\"name\": \"%s:%u\"", x->files[all[0].file].path, all[0].use->line);
    else
        base_buf_printf(&x->result->text, "\"path\": \"%s\"", x->files[all[0].file].path);
    base_buf_puts(&x->result->text, " for the first; or ask the person which is meant.\n");
}

/* ---- the target ---- */

static void set_target(refactor *x, const candidate *c)
{
    const refactor_file *f = &x->files[c->file];
    refactor_target *t = &x->target;
    *t = (refactor_target){.in = f,
        .name = x->name,
        .parent = c->d ? c->d->parent : "",
        .what = c->d                   ? c->d->what
                : c->use->is_parameter ? "parameter"
                                       : "variable",
        .definition = c->d,
        .name_from = c->use->from,
        .line = c->use->line,
        .binding = c->use->binding,
        .owner = c->use->binding != UINT32_MAX ? function_name(f, c->use) : "",
        .is_parameter = c->use->is_parameter};
    t->within = c->use->within;
    if (!c->d) return;
    if (c->use->is_unnamed) t->parent = c->use->holder; /* the index calls the method around it its parent */
    t->is_type = refactor__is_type(c->d->what);
    t->is_function = refactor__is_function(f, c->d);
    t->is_member = t->binding == UINT32_MAX && is_member_of_type(f, c->d);
    t->is_static = refactor__is_static(f, c->d) &&
                   !(strlen(f->path) > 2 && !strcmp(f->path + strlen(f->path) - 2, ".h"));
    /* struct x without a typedef of that name */
    t->is_tag_only = f->language->has_tags &&
                     (!strcmp(t->what, "struct") || !strcmp(t->what, "union") || !strcmp(t->what, "enum"));
    for (size_t i = 0; i < x->n_files && t->is_tag_only; i++)
        for (uint32_t k = 0; k < x->files[i].uses->file->n_definitions; k++) {
            const code_definition *d = &x->files[i].uses->file->definitions[k];
            if (!strcmp(d->name, x->name) && !strcmp(d->what, "typedef")) t->is_tag_only = false;
        }
}

/* ---- twins: definitions of several files that read the same ---- */

/* Python: one that stands at the top of its file. */
static bool is_top(const refactor *x, const candidate *c)
{
    return x->files[c->file].language->family == REFACTOR_PYTHON && c->d && !*c->d->parent &&
           c->use->binding == UINT32_MAX;
}

static base_str text_of(const refactor *x, const candidate *c)
{
    const char *s = x->files[c->file].file.text.data;
    uint32_t from = c->d->from, to = c->d->to;
    while (from < to && tool__is_space(s[from])) from++;
    while (from < to && tool__is_space(s[to - 1])) to--;
    return (base_str){s + from, to - from};
}

/* Keeps those at the top in front; how many of them there are, or 0 where not all of them read the same. */
static size_t find_twins(const refactor *x, candidate *all, size_t n, const char **ret_more)
{
    size_t n_top = 0;
    bool is_same = true;
    for (size_t i = 0; i < n; i++) {
        if (!is_top(x, &all[i])) continue;
        const candidate c = all[i];
        all[i] = all[n_top];
        all[n_top++] = c;
    }
    for (size_t i = 1; i < n_top && is_same; i++) {
        const base_str a = text_of(x, &all[0]), b = text_of(x, &all[i]);
        is_same = a.len == b.len && !memcmp(a.ptr, b.ptr, a.len);
    }
    *ret_more = n_top > 1 && !is_same ? ", and they differ" : "";
    return n_top > 1 && is_same ? n_top : 0;
}

static void set_twins(refactor *x, const candidate *all, size_t n)
{
    x->twins = base_xcalloc(n, sizeof *x->twins);
    for (size_t i = 1; i < n; i++) x->twins[x->n_twins++] = base_xstrdup(x->files[all[i].file].path);
}

/* C: what is declared here and defined once elsewhere is that definition. */
static void prefer_definition(const refactor *x, candidate *c)
{
    const refactor_file *in = &x->files[c->file];
    candidate real = {0};
    size_t n = 0;
    if (!c->d || !in->language->declares_apart || *c->d->parent || !refactor__is_declaration(in, c->d))
        return;
    for (size_t f = 0; f < x->n_files; f++)
        for (uint32_t i = 0; i < x->files[f].uses->n_uses; i++) {
            const code_use *u = &x->files[f].uses->uses[i];
            const code_definition *d = definition_of(&x->files[f], u);
            if (!d || *d->parent || u->binding != UINT32_MAX || !x->files[f].language->declares_apart)
                continue;
            if (refactor__is_declaration(&x->files[f], d) || refactor__is_static(&x->files[f], d)) continue;
            if (strcmp(d->what, c->d->what) != 0) continue;
            real = (candidate){f, u, d};
            n++;
        }
    if (n == 1) *c = real;
}

bool refactor__find_target(refactor *x, const char *given, const char *path)
{
    wanted want = {0};
    candidate *all = NULL;
    bool is_good = read_request(x, given, path, &want) && refactor__read_files(x);
    if (is_good) {
        refactor__find_alternatives(x);
        refactor__read_parents(x);
        size_t n = collect(x, &want, &all);
        /* A file may be given where a thing is asked for that only others define (its callers, say). */
        if (!n && want.path && !want.line && path) {
            free(want.path);
            want.path = NULL;
            free(all);
            n = collect(x, &want, &all);
        }
        const char *more = "";
        const bool is_any = x->takes_twins && n > 1 && !want.path && !want.line && !want.parent;
        const size_t n_twins = is_any ? find_twins(x, all, n, &more) : 0;
        if (n_twins) {
            set_twins(x, all, n_twins);
            n = 1;
        }
        if (n == 1) {
            prefer_definition(x, &all[0]);
            set_target(x, &all[0]);
        } else if (n) {
            say_many(x, all, n, more);
        } else {
            say_none(x, given);
        }
        is_good = n == 1;
    }
    free(all);
    free(want.path);
    free(want.parent);
    return is_good;
}
