/* Of which type the member at a place is: by what stands in front of it, by the type around it, by how rare its name is. */
#include "tools/refactor/resolve_work.h"

bool refactor__is_kin(const refactor *x, const char *type)
{
    return refactor__are_kin(x, x->target.name, type, x->target.parent);
}

/* Has the tree another member of this name, of a type that has nothing to do with the target's? */
static bool has_rival_member(const refactor *x)
{
    const refactor_target *t = &x->target;
    for (size_t f = 0; f < x->n_files; f++) {
        if (x->files[f].language->family != t->in->language->family) continue;
        const code_file *file = x->files[f].uses->file;
        for (uint32_t i = 0; i < file->n_definitions; i++) {
            const code_definition *d = &file->definitions[i];
            if (strcmp(d->name, t->name) != 0 || (&x->files[f] == t->in && d->name_from == t->name_from))
                continue;
            if (strcmp(d->what, "method") != 0 && strcmp(d->what, "field") != 0 &&
                !refactor__is_nested(file, d))
                continue;
            if (!*d->parent || t->is_nameless || !refactor__is_kin(x, d->parent)) return true;
            if (!strcmp(d->parent, t->parent) &&
                refactor__means_parent(x, &x->files[f], d->name_from) != REFACTOR_SURE)
                return true;
        }
    }
    return false;
}

/* Does the tree have a parent of the target's type that has a member of this name too? */
static bool overrides(const refactor *x)
{
    const refactor_target *t = &x->target;
    for (size_t f = 0; f < x->n_files; f++) {
        const code_file *file = x->files[f].uses->file;
        for (uint32_t i = 0; i < file->n_definitions; i++) {
            const code_definition *d = &file->definitions[i];
            if (!strcmp(d->name, t->name) && *d->parent && strcmp(d->parent, t->parent) != 0 &&
                refactor__is_member(file, d) && refactor__are_related(x, d->parent, t->parent))
                return true;
        }
    }
    return false;
}

refactor_decision refactor__by_home(const refactor *x, const refactor_file *f, uint32_t at, const char *type)
{
    if (strcmp(type, x->target.parent) != 0) return sure;
    const refactor_verdict v = refactor__means_parent(x, f, at);
    if (v == REFACTOR_UNSURE) return unsure("several types have the name of its type");
    if (v == REFACTOR_OTHER && overrides(x)) return unsure("it may override the same member");
    return v == REFACTOR_SURE ? sure : other;
}

static refactor_decision by_rarity(refactor *x, const code_use *u)
{
    if (x->target.in->language->has_free_objects && !u->is_call) /* any literal may have it */
        return unsure("the object's type is not known");
    if (has_rival_member(x)) return unsure("other types have a member of this name");
    if (x->target.in->language->family != REFACTOR_C && refactor__is_common(x->target.name))
        return unsure("the object's type is not known and the name is common");
    return sure;
}

/* Is the type what the target's module gives as a whole: module.exports = Type, export default (class) Type? */
static bool is_whole_module(const refactor_target *t, const char *type)
{
    static const char *const marks[] = {"module.exports = ", "export default class ", "export default "};
    const char *text = t->in->file.text.data;
    const size_t n = strlen(type);
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++)
        for (const char *at = text; (at = strstr(at, marks[i])) != NULL;) {
            at += strlen(marks[i]);
            if (!strncmp(at, type, n) && strspn(at + n, " \t\r\n;{")) return true;
        }
    return false;
}

/* The name that a type has where it stands, of the name that a file calls it by: import {A as B}, const B = require('./a'). */
static const char *name_at_home(const refactor *x, const refactor_file *f, const char *type)
{
    const code_import *m = refactor__import_of(f, type);
    if (!m || !f->language->renames_imports) return type;
    if (*m->name && strcmp(m->name, "default") != 0 && strcmp(m->name, "*") != 0) return m->name;
    const char *path = refactor__module_path(x, f, m->module);
    return path && !strcmp(path, x->target.in->path) && is_whole_module(&x->target, x->target.parent)
               ? x->target.parent
               : type;
}

static refactor_decision by_type(refactor *x, const refactor_file *f, const code_use *u, const char *type)
{
    const refactor_target *t = &x->target;
    if (!*type) return by_rarity(x, u);
    const code_import *m = refactor__import_of(f, type);
    type = name_at_home(x, f, type);
    if (refactor__is_kin(x, type)) return refactor__by_home(x, f, u->from, type);
    if (refactor__is_type_of_tree(x, type)) {
        if (t->in->language->family == REFACTOR_GO) return unsure("an interface may stand for it");
        if (f->language->is_structural) return unsure("types of TypeScript go by their members");
        return other;
    }
    if (strlen(type) <= 2) return by_rarity(x, u); /* T: a type's parameter */
    if (f->language->is_structural && !refactor__is_of_language(type))
        return unsure("the type stands outside of the tree");
    if (m && f->language->family == REFACTOR_JS && *m->module == '.')
        return unsure("its type is imported from a file of this tree");
    return other;
}

bool refactor__stands_in_type(const refactor_file *f, const char *type, uint32_t at)
{
    for (uint32_t i = 0; i < f->uses->file->n_definitions; i++) {
        const code_definition *d = &f->uses->file->definitions[i];
        if (!strcmp(d->name, type) && refactor__is_type(d->what) && d->from <= at && at < d->to) return true;
    }
    return false;
}

/* Does a type that is kin to the target's enclose the byte? */
static bool is_around(const refactor *x, const refactor_file *f, uint32_t at)
{
    for (uint32_t i = 0; i < f->uses->file->n_definitions; i++) {
        const code_definition *d = &f->uses->file->definitions[i];
        if (refactor__is_type(d->what) && d->from <= at && at < d->to && refactor__is_kin(x, d->name))
            return true;
    }
    return false;
}

/* Has the type a member of the target's name and kind of its own? */
static bool has_own_member(const refactor *x, const refactor_file *f, const char *type)
{
    for (uint32_t i = 0; i < f->uses->file->n_definitions; i++) {
        const code_definition *d = &f->uses->file->definitions[i];
        if (!strcmp(d->name, x->target.name) && !strcmp(d->parent, type) &&
            refactor__is_function(f, d) == x->target.is_function && strcmp(d->parent, d->name) != 0)
            return true;
    }
    return false;
}

/* Python: does the target's type say itself what it is made of? */
static bool has_constructor(const refactor_target *t)
{
    for (uint32_t i = 0; i < t->in->uses->file->n_definitions; i++) {
        const code_definition *d = &t->in->uses->file->definitions[i];
        if (!strcmp(d->name, "__init__") && !strcmp(d->parent, t->parent)) return true;
    }
    return false;
}

static bool is_kind(const refactor_target *t, const code_use *u)
{
    return u->is_call == t->is_function;
}

/* A key of a literal, or an argument's name in Type(name=1). */
static refactor_decision decide_key(refactor *x, const refactor_file *f, const code_use *u)
{
    const refactor_target *t = &x->target;
    const refactor_family family = f->language->family;
    if (t->is_function && family != REFACTOR_JS) return other;
    if (family == REFACTOR_JAVA) return other;
    if (family == REFACTOR_PYTHON) /* of a dataclass; else they are the parameters of __init__ */
        return !strcmp(u->callee, t->parent) && !has_constructor(t) ? sure : other;
    if (f->language->has_free_objects) return unsure("the object's type is not known");
    return by_type(x, f, u, u->callee);
}

/* import static a.B.name */
static bool is_static_import(const refactor_target *t, const refactor_file *f, const code_import *m)
{
    const size_t n = strlen(m->module), k = strlen(t->name) + strlen(t->parent) + 1;
    return f->language->family == REFACTOR_JAVA && n > k &&
           !strncmp(m->module + n - k, t->parent, strlen(t->parent));
}

/* import static a.B.* */
static bool imports_all(const refactor_target *t, const refactor_file *f)
{
    for (uint32_t i = 0; i < f->uses->n_imports; i++) {
        const code_import *m = &f->uses->imports[i];
        const size_t n = strlen(m->module), k = strlen(t->parent);
        if (!strcmp(m->local, "*") && n > k && m->module[n - k - 1] == '.' &&
            !strcmp(m->module + n - k, t->parent))
            return true;
    }
    return false;
}

/* A bare name, which some languages take for a member of the type around it. */
static refactor_decision decide_bare_member(refactor *x, const refactor_file *f, const code_use *u)
{
    const refactor_target *t = &x->target;
    if (u->is_shorthand && u->import == UINT32_MAX && !u->is_exported && f->language->has_free_objects)
        return unsure("the object's type is not known"); /* {name}: a member and a variable */
    if (u->binding != UINT32_MAX || u->is_type) return other;
    if (u->import != UINT32_MAX) return is_static_import(t, f, &f->uses->imports[u->import]) ? sure : other;
    if (!f->language->has_bare_members) return other;
    if (!strcmp(t->what, "constant")) return has_rival_member(x) ? unsure("several enums have it") : sure;
    if (!is_kind(t, u)) return other;
    if (*u->holder && refactor__is_kin(x, u->holder)) return refactor__by_home(x, f, u->from, u->holder);
    if (f == t->in && refactor__stands_in_type(f, t->parent, u->from)) /* of a class around this one */
        return has_own_member(x, f, u->holder) ? other : sure;
    if (f != t->in && is_around(x, f, u->from)) return unsure("a class around it may have it from a parent");
    if (imports_all(t, f)) return sure;
    return refactor__import_of(f, t->name) ? by_rarity(x, u) : other;
}

/* What a call gives: New_type().name, make_type().name. */
static refactor_decision decide_of_call(refactor *x, const refactor_file *f, const code_use *u)
{
    const refactor_target *t = &x->target;
    if (refactor__is_kin(x, u->object) &&
        !(refactor__is_type_of_tree(x, u->object) && !refactor__is_only(x, u->object, true)))
        return refactor__by_home(x, f, u->from, u->object);
    if ((!strncmp(u->object, "New", 3) || !strncmp(u->object, "new", 3)) &&
        !strcmp(u->object + 3 + (u->object[3] == '_'), t->parent))
        return t->is_parent_shared ? unsure("several types have the name of its type") : sure;
    return refactor__is_only(x, u->object, true) ? other : by_rarity(x, u);
}

/* Something with a name of its own: Type.name, module.name, value.name. */
static refactor_decision decide_of_name(refactor *x, const refactor_file *f, const code_use *u)
{
    if (refactor__is_kin(x, u->object)) return refactor__by_home(x, f, u->from, u->object);
    const code_import *m = refactor__import_of(f, u->object);
    if (m && *m->name && !strcmp(m->name, x->target.parent)) return sure;
    if (m && (!*m->name || (*m->name >= 'A' && *m->name <= 'Z'))) return other;
    if (refactor__is_type_of_tree(x, u->object)) return other;
    if (f->language->family == REFACTOR_RUST && *u->object >= 'A' && *u->object <= 'Z' && u->object[1])
        return other; /* Ordering::Less: of a type that is none of the tree's */
    return by_rarity(x, u);
}

static refactor_decision decide_of_self(refactor *x, const refactor_file *f, const code_use *u)
{
    if (!*u->object) return unsure("this stands outside of a type");
    if (refactor__is_kin(x, u->object)) return refactor__by_home(x, f, u->from, u->object);
    if (f->language->is_structural) return unsure("types of TypeScript go by their members");
    return f->language->family == REFACTOR_PYTHON && !has_rival_member(x)
               ? unsure("its class is none of this one's")
               : other;
}

refactor_decision refactor__decide_member(refactor *x, const refactor_file *f, const code_use *u)
{
    const refactor_target *t = &x->target;
    if (u->role == CODE_USE_KEY) return decide_key(x, f, u);
    if (u->role == CODE_USE_MACRO) return u->is_access ? by_rarity(x, u) : other;
    if (u->role == CODE_USE_NAME) return decide_bare_member(x, f, u);
    if (f->language->family == REFACTOR_JAVA && u->import == UINT32_MAX && !is_kind(t, u) &&
        strcmp(t->what, "constant") != 0)
        return other;
    switch (u->object_kind) {
    case CODE_OBJECT_SELF: return decide_of_self(x, f, u);
    case CODE_OBJECT_TYPED: return by_type(x, f, u, u->object);
    case CODE_OBJECT_CALLED: return decide_of_call(x, f, u);
    case CODE_OBJECT_NAMED: return decide_of_name(x, f, u);
    case CODE_OBJECT_MODULE:
    case CODE_OBJECT_LITERAL: return other;
    default: return by_rarity(x, u);
    }
}
