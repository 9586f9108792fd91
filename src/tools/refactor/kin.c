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

bool refactor__are_related(const refactor *x, const char *a, const char *b)
{
    /* Reached from a by any number of steps between parent and child in one direction. */
    const char *seen[64];
    for (int direction = 0; direction < 2; direction++) {
        size_t n = 0;
        seen[n++] = direction ? b : a;
        const char *goal = direction ? a : b;
        for (size_t at = 0; at < n; at++) {
            if (!strcmp(seen[at], goal)) return true;
            for (size_t f = 0; f < x->n_files + x->n_modules; f++)
                for (uint32_t i = 0; i < file_at(x, f)->uses->n_bases && n < 64; i++) {
                    const code_base *base = &file_at(x, f)->uses->bases[i];
                    bool again = strcmp(base->name, seen[at]) != 0;
                    for (size_t k = 0; k < n && !again; k++) again = !strcmp(seen[k], base->base);
                    if (!again) seen[n++] = base->base;
                }
        }
    }
    return false;
}

bool refactor__are_kin(const refactor *x, const char *member, const char *a, const char *b)
{
    if (refactor__are_related(x, a, b)) return true;
    for (size_t f = 0; f < x->n_files; f++) {
        const code_file *file = x->files[f].uses->file;
        for (uint32_t i = 0; i < file->n_definitions; i++) {
            const code_definition *d = &file->definitions[i];
            if (!strcmp(d->name, member) && *d->parent && strcmp(d->parent, b) != 0 &&
                refactor__are_related(x, d->parent, b) && refactor__are_related(x, d->parent, a))
                return true;
        }
    }
    return false;
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
        if (!strcmp(u->file->language ? u->file->language : "c", "c")) continue;
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

refactor_verdict refactor__means_parent(const refactor *x, const refactor_file *f)
{
    const refactor_target *t = &x->target;
    const char *language = f->uses->file->language;
    if (!t->is_parent_shared || f == t->in) return REFACTOR_SURE;
    if (!strcmp(language, "go") && base_path_same_folder(f->path, t->in->path)) return REFACTOR_SURE;
    if (defines_type(f, t->parent)) {
        /* class Name extends Other.Name */
        for (uint32_t i = 0; i < f->uses->n_bases; i++)
            if (!strcmp(f->uses->bases[i].name, t->parent) && !strcmp(f->uses->bases[i].base, t->parent))
                return REFACTOR_UNSURE;
        return REFACTOR_OTHER;
    }
    for (uint32_t i = 0; i < f->uses->n_imports && !strcmp(language, "java"); i++)
        if (!strcmp(f->uses->imports[i].local, t->parent))
            return is_java_module(f->uses->imports[i].module, t->in->path) ? REFACTOR_SURE : REFACTOR_OTHER;
    return REFACTOR_UNSURE;
}
