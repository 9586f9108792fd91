/*
 * Which types are parents and children of one another. Types are known by their names; where the tree has several of
 * one name, imports and folders say which is meant.
 */
#include "tools/refactor/refactor.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/path.h"

enum { MAX_TYPES = 256 };

static const refactor_file *file_at(const refactor *x, size_t i)
{
    return i < x->n_files ? &x->files[i] : x->modules[i - x->n_files];
}

bool refactor__is_type_of_tree(const refactor *x, const char *name)
{
    code_place *places;
    bool found = false;
    const uint32_t n = code_index_define(x->w->index, name, &places);
    for (uint32_t i = 0; i < n && !found; i++) found = refactor__is_type(places[i].what);
    code_places_free(places, n);
    return found;
}

bool refactor__is_only(const refactor *x, const char *name, bool of_types)
{
    code_place *places;
    const uint32_t n = code_index_define(x->w->index, name, &places);
    bool is_it = n > 0;
    for (uint32_t i = 0; i < n && is_it; i++)
        is_it = refactor__is_type(places[i].what) == of_types || !strcmp(places[i].parent, name);
    code_places_free(places, n);
    return is_it;
}

/* Is `parent` reached from `child` by any number of steps to a base? */
static bool is_below(const refactor *x, const char *child, const char *parent)
{
    const char *seen[64];
    size_t n = 0;
    seen[n++] = child;
    for (size_t at = 0; at < n; at++) {
        if (!strcmp(seen[at], parent)) return true;
        for (size_t f = 0; f < x->n_files + x->n_modules; f++)
            for (uint32_t i = 0; i < file_at(x, f)->uses->n_bases && n < 64; i++) {
                const code_base *base = &file_at(x, f)->uses->bases[i];
                bool again = strcmp(base->name, seen[at]) != 0;
                for (size_t k = 0; k < n && !again; k++) again = !strcmp(seen[k], base->base);
                if (!again) seen[n++] = base->base;
            }
    }
    return false;
}

bool refactor__are_related(const refactor *x, const char *a, const char *b)
{
    return is_below(x, a, b) || is_below(x, b, a);
}

bool refactor__are_kin(const refactor *x, const char *member, const char *a, const char *b)
{
    const bool is_go = x->target.in && x->target.in->language->family == REFACTOR_GO;
    if (!is_go && refactor__are_related(x, a, b)) return true;
    if (is_go && (!strcmp(a, b) || !is_below(x, a, b))) return !strcmp(a, b);
    for (size_t f = 0; f < x->n_files; f++) {
        const code_file *file = x->files[f].uses->file;
        for (uint32_t i = 0; i < file->n_definitions; i++) {
            const code_definition *d = &file->definitions[i];
            if (strcmp(d->name, member) != 0 || !*d->parent) continue;
            if (is_go && !strcmp(d->parent, a)) return false; /* its own, no override of what it embeds */
            if (!is_go && strcmp(d->parent, b) != 0 && refactor__are_related(x, d->parent, b) &&
                refactor__are_related(x, d->parent, a))
                return true;
        }
    }
    return is_go;
}

/* ---- parents in files that do not write the name ---- */

typedef struct types {
    char *names[MAX_TYPES];
    size_t n;
} types;

static void want_type(types *t, const char *name)
{
    if (!*name || t->n == MAX_TYPES) return;
    for (size_t i = 0; i < t->n; i++)
        if (!strcmp(t->names[i], name)) return;
    t->names[t->n++] = base_xstrdup(name);
}

/* The file of a type is read, and its parents' are wanted. */
static void read_type(refactor *x, types *t, const char *name)
{
    code_place *places;
    const uint32_t n = code_index_define(x->w->index, name, &places);
    for (uint32_t i = 0; i < n; i++) {
        if (!refactor__is_type(places[i].what)) continue;
        const refactor_file *f = refactor__module(x, places[i].path);
        for (uint32_t k = 0; f && k < f->uses->n_bases; k++)
            if (!strcmp(f->uses->bases[k].name, name)) want_type(t, f->uses->bases[k].base);
    }
    code_places_free(places, n);
}

void refactor__read_parents(refactor *x)
{
    types t = {0};
    for (size_t f = 0; f < x->n_files; f++) {
        const code_uses *u = x->files[f].uses;
        if (!u->file->language) continue;
        for (uint32_t i = 0; i < u->n_uses; i++) {
            if (u->uses[i].definition != UINT32_MAX)
                want_type(&t, u->file->definitions[u->uses[i].definition].parent);
            if (u->uses[i].role != CODE_USE_MEMBER || u->uses[i].object_kind == CODE_OBJECT_MODULE) continue;
            want_type(&t, u->uses[i].object);
        }
    }
    for (size_t i = 0; i < t.n; i++) read_type(x, &t, t.names[i]);
    for (size_t i = 0; i < t.n; i++) free(t.names[i]);
}

/* ---- several types of one name ---- */

static bool defines_type(const refactor_file *f, const char *name)
{
    for (uint32_t i = 0; i < f->uses->file->n_definitions; i++) {
        const code_definition *d = &f->uses->file->definitions[i];
        if (!strcmp(d->name, name) && refactor__is_type(d->what)) return true;
    }
    return false;
}

bool refactor__is_type_shared(const refactor *x, const char *name)
{
    code_place *places;
    const uint32_t n = code_index_define(x->w->index, name, &places);
    const char *first = NULL;
    bool is_shared = false;
    for (uint32_t i = 0; i < n; i++) {
        if (!refactor__is_type(places[i].what) || places[i].is_declaration) continue;
        if (first) is_shared = is_shared || strcmp(first, places[i].path) != 0;
        first = places[i].path;
    }
    /* The index may be behind; the files that write the member's name are not. */
    for (size_t f = 0; f < x->n_files && !is_shared; f++) {
        if (!defines_type(&x->files[f], name)) continue;
        is_shared = first && strcmp(first, x->files[f].path) != 0;
        first = x->files[f].path;
    }
    code_places_free(places, n);
    return is_shared;
}

/* "a.b.Outer.Name": does its file end with Outer.java or Name.java of that package? */
static bool is_java_module(const char *module, const char *path)
{
    base_buf at = {0};
    bool is_it = false;
    for (const char *p = module; *p; p++) base_buf_putc(&at, *p == '.' ? '/' : *p);
    for (int up = 0; up < 2 && !is_it && at.len; up++) {
        const size_t n = at.len;
        base_buf_puts(&at, ".java");
        is_it = refactor__ends_with_path(path, at.data);
        at.len = n;
        at.data[n] = '\0';
        char *slash = strrchr(at.data, '/');
        if (!slash) break;
        at.len = (size_t)(slash - at.data);
        *slash = '\0';
    }
    base_buf_free(&at);
    return is_it;
}

/* ---- types that stand in a function ---- */

static bool is_room(const code_definition *d)
{
    return !strcmp(d->what, "function") || !strcmp(d->what, "method");
}

/* The innermost function around a definition; NULL: it stands at the top. */
static const code_definition *room_of(const refactor_file *f, const code_definition *d)
{
    const code_definition *room = NULL;
    for (uint32_t i = 0; i < f->uses->file->n_definitions; i++) {
        const code_definition *e = &f->uses->file->definitions[i];
        if (e != d && is_room(e) && e->from <= d->from && d->to <= e->to) room = e;
    }
    return room;
}

/* The definition of a type that its name means at a byte; NULL: none of this file. */
static const code_definition *type_seen(const refactor_file *f, const char *name, uint32_t at)
{
    const bool is_js =
        f->language->family == REFACTOR_JS; /* there a function may be one, and callbacks have no name */
    const code_definition *best = NULL, *best_room = NULL;
    for (uint32_t i = 0; i < f->uses->file->n_definitions; i++) {
        const code_definition *d = &f->uses->file->definitions[i];
        if (strcmp(d->name, name) != 0) continue;
        if (!refactor__is_type(d->what) && !(is_js && !strcmp(d->what, "function"))) continue;
        const code_definition *room = room_of(f, d);
        if (room && (at < room->from || at >= room->to)) continue;
        if (best && best_room != room && (!room || (best_room && room->from < best_room->from))) continue;
        if (best && best_room == room && (!is_js || d->from > at)) continue;
        best = d;
        best_room = room;
    }
    return best;
}

bool refactor__find_room(const refactor *x, uint32_t *ret_from, uint32_t *ret_to)
{
    const refactor_target *t = &x->target;
    const bool is_go = t->in->language->family == REFACTOR_GO;
    const code_file *file = t->in->uses->file;
    for (uint32_t i = 0; i < t->in->uses->n_bases && !is_go; i++) /* a parent's callers reach it */
        if (!strcmp(t->in->uses->bases[i].name, t->parent)) return false;
    const code_definition *type = type_seen(t->in, t->parent, t->name_from), *room = NULL;
    if (type) room = room_of(t->in, type);
    for (uint32_t i = 0; i < file->n_definitions && !type && is_go; i++) { /* var x struct { ... } */
        const code_definition *d = &file->definitions[i];
        if (is_room(d) && !strcmp(d->name, t->parent) && d->from <= t->name_from && t->name_from < d->to)
            room = d;
    }
    if (!room) return false;
    *ret_from = room->from;
    *ret_to = room->to;
    return true;
}

/* Does the target's type stand in no other one? */
static bool is_at_top(const refactor_target *t)
{
    const code_file *file = t->in->uses->file;
    for (uint32_t i = 0; i < file->n_definitions; i++) {
        const code_definition *d = &file->definitions[i];
        if (!strcmp(d->name, t->parent) && refactor__is_type(d->what)) return !*d->parent;
    }
    return false;
}

refactor_verdict refactor__means_parent(const refactor *x, const refactor_file *f, uint32_t at)
{
    const refactor_target *t = &x->target;
    const refactor_family family = f->language->family;
    const code_definition *seen = type_seen(f, t->parent, at);
    if (f == t->in) {
        const code_definition *own = type_seen(f, t->parent, t->name_from);
        if (!seen || !own || seen == own) return REFACTOR_SURE;
        if (family == REFACTOR_JS) return REFACTOR_UNSURE;
        return room_of(f, seen) == room_of(f, own) ? REFACTOR_SURE : REFACTOR_OTHER;
    }
    if (seen && room_of(f, seen)) return REFACTOR_OTHER;
    if (!t->is_parent_shared) return REFACTOR_SURE;
    if (family == REFACTOR_GO && base_path_same_folder(f->path, t->in->path)) return REFACTOR_SURE;
    if (defines_type(f, t->parent)) {
        /* class Name extends Other.Name */
        for (uint32_t i = 0; i < f->uses->n_bases; i++)
            if (!strcmp(f->uses->bases[i].name, t->parent) && !strcmp(f->uses->bases[i].base, t->parent))
                return REFACTOR_UNSURE;
        return REFACTOR_OTHER;
    }
    for (uint32_t i = 0; i < f->uses->n_imports && family == REFACTOR_JAVA; i++)
        if (!strcmp(f->uses->imports[i].local, t->parent))
            return is_java_module(f->uses->imports[i].module, t->in->path) ? REFACTOR_SURE : REFACTOR_OTHER;
    if (family != REFACTOR_JAVA) return REFACTOR_UNSURE;
    /* A type of the package; one that stands in another type is known to that type's children as well. */
    const bool is_top = is_at_top(t);
    if (is_top && refactor__is_same_package(f, t->in)) return REFACTOR_SURE;
    for (uint32_t i = 0; i < f->uses->n_imports; i++)
        if (!strcmp(f->uses->imports[i].name, "*")) return REFACTOR_UNSURE;
    return is_top ? REFACTOR_OTHER : REFACTOR_UNSURE;
}
