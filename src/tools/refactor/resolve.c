/*
 * Which of the places that write the target's name mean it. What the syntax and the imports prove is SURE; what
 * could be it and is not proven is UNSURE and says why; all else is another thing of that name.
 */
#include "tools/refactor/resolve_work.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/path.h"
#include "tools/result/result.h"

/* Has another file a definition of this name beside the types and functions of files? */
static bool has_rival(const refactor *x)
{
    const refactor_target *t = &x->target;
    for (size_t f = 0; f < x->n_files; f++) {
        if (&x->files[f] == t->in || x->files[f].language->family != t->in->language->family) continue;
        const code_file *file = x->files[f].uses->file;
        for (uint32_t i = 0; i < file->n_definitions; i++) {
            const code_definition *d = &file->definitions[i];
            if (strcmp(d->name, t->name) != 0 || refactor__is_declaration(&x->files[f], d)) continue;
            if (!strcmp(d->what, "method") || !strcmp(d->what, "field")) continue;
            if (refactor__is_type(d->what) != t->is_type || (t->is_type && !d->body_to)) continue;
            if (refactor__is_static(&x->files[f], d)) continue;
            if (refactor__are_alternatives(&x->files[f], t->in, t->is_type)) continue;
            return true;
        }
    }
    return false;
}

/* "a.b.Name", of which the last name ends at byte `to` and begins at `from`; heap. */
static char *qualified_name(const refactor_file *f, uint32_t to, uint32_t from)
{
    const char *text = f->file.text.data;
    while (from && (text[from - 1] == '.' || code_is_name_byte(text[from - 1]))) from--;
    return base_xstrndup(text + from, to - from);
}

/* ---- a bare name of what stands at the top of a file ---- */

static refactor_decision top_in_c(refactor *x, const refactor_file *f, const code_use *u)
{
    const refactor_target *t = &x->target;
    const bool is_own = f == t->in;
    if (t->is_type) {
        if (t->is_tag_only && !u->is_tag && f->language->has_tags) return other;
        if (u->is_call) return other;
    } else if (u->is_tag) {
        return other;
    } else if (u->is_type && strcmp(t->what, "macro") != 0) {
        return unsure("the grammar takes it for a type");
    }
    if (is_own || refactor__are_alternatives(f, t->in, t->is_type)) return sure;
    if (f->thing[t->is_type] != SIZE_MAX && t->in->thing[t->is_type] != SIZE_MAX) return other;
    if (refactor__defines_top(f, t->name) && u->definition == UINT32_MAX) {
        /* A prototype is no definition of its own. */
        for (uint32_t i = 0; i < f->uses->file->n_definitions; i++) {
            const code_definition *d = &f->uses->file->definitions[i];
            if (strcmp(d->name, t->name) != 0 || refactor__is_declaration(f, d) ||
                !strcmp(d->what, "field") || !strcmp(d->what, "method"))
                continue;
            if (refactor__is_type(d->what) == t->is_type && (!t->is_type || d->body_to)) return other;
        }
    }
    if (t->is_static && refactor__includes(f, t->in->path)) return sure; /* tests of static functions do */
    if (t->is_static) return unsure("the definition is static in another file");
    if (t->is_rival) return unsure("several files define it");
    return sure;
}

/* What a name means that an import brings. */
static refactor_decision brought(refactor *x, const refactor_file *f, const code_import *m)
{
    /* import Name from './name', where that file says export default Name */
    if (x->target.is_default && !m->is_export && !strcmp(m->name, "default") &&
        !strcmp(m->local, x->target.name)) {
        const char *path = refactor__module_path(x, f, m->module);
        return path && !strcmp(path, x->target.in->path) ? sure : other;
    }
    if (strcmp(m->name, x->target.name) != 0) return other;
    return refactor__comes_from(x, refactor__module_path(x, f, m->module), m->name, 0) ? sure : other;
}

static refactor_decision top_in_python(refactor *x, const refactor_file *f, const code_use *u)
{
    const refactor_target *t = &x->target;
    if (u->import != UINT32_MAX) return brought(x, f, &f->uses->imports[u->import]);
    if (f == t->in) return sure;
    if (refactor__defines_top(f, t->name)) return other;
    const code_import *m = refactor__import_of(f, t->name);
    if (m) return brought(x, f, m);
    for (uint32_t i = 0; i < f->uses->n_imports; i++) {
        const code_import *star = &f->uses->imports[i];
        if (strcmp(star->name, "*") != 0) continue;
        const char *path = refactor__module_path(x, f, star->module);
        if (!path) return unsure("a module from outside is imported with *");
        if (refactor__comes_from(x, path, t->name, 0)) return sure;
    }
    return other;
}

static refactor_decision top_in_js(refactor *x, const refactor_file *f, const code_use *u)
{
    const refactor_target *t = &x->target;
    if (u->import != UINT32_MAX) return brought(x, f, &f->uses->imports[u->import]);
    if (f == t->in || refactor__are_alternatives(f, t->in, t->is_type)) return sure;
    const code_import *m = refactor__import_of(f, t->name);
    if (m) return brought(x, f, m);
    if (refactor__defines_top(f, t->name) || f->uses->n_imports || t->in->uses->n_imports) return other;
    return unsure("no import says where it comes from");
}

static refactor_decision top_in_java(refactor *x, const refactor_file *f, const code_use *u)
{
    const refactor_target *t = &x->target;
    if (u->is_call && t->is_type) return other;
    if (u->import != UINT32_MAX) { /* import static a.b.Name.x */
        char *whole = qualified_name(f, u->from + (uint32_t)strlen(t->name), u->from);
        const bool is_it = refactor__java_import_is(t, whole);
        free(whole);
        return is_it ? sure : other;
    }
    const code_import *m = refactor__import_of(f, t->name);
    if (f == t->in) /* what is imported under its name is hidden in the type that holds it */
        return !m || !*t->parent || refactor__java_import_is(t, m->module) ||
                       refactor__stands_in_type(f, t->parent, u->from)
                   ? sure
                   : other;
    if (m) return refactor__java_import_is(t, m->module) ? sure : other;
    if (refactor__defines_top(f, t->name)) return other;
    if (refactor__is_same_package(f, t->in) && !*t->parent) return sure;
    return x->target.is_rival ? unsure("several packages have a type of this name") : sure;
}

static refactor_decision top_in_go(refactor *x, const refactor_file *f, const code_use *u)
{
    const refactor_target *t = &x->target;
    if (base_path_same_folder(f->path, t->in->path) &&
        refactor__is_external_test(f) == refactor__is_external_test(t->in))
        return sure;
    return refactor__is_dotted(x, f) && !refactor__defines_top(f, t->name) ? sure : other;
}

static refactor_decision top_elsewhere(const refactor *x, const refactor_file *f, const code_use *u)
{
    if (f == x->target.in) return sure;
    if (x->target.is_rival) return unsure("several files define it");
    if (code_uses_know_locals(f->uses->file->language) || u->is_call || u->is_type || u->import != UINT32_MAX)
        return sure;
    return unsure("locals of this language are not told apart");
}

static refactor_decision decide_bare(refactor *x, const refactor_file *f, const code_use *u)
{
    static refactor_decision (*const top_in[REFACTOR_N_FAMILIES])(
        refactor * x, const refactor_file *f, const code_use *u) = {[REFACTOR_C] = top_in_c,
        [REFACTOR_PYTHON] = top_in_python,
        [REFACTOR_JS] = top_in_js,
        [REFACTOR_JAVA] = top_in_java,
        [REFACTOR_GO] = top_in_go};
    const refactor_family family = f->language->family;
    return top_in[family] ? top_in[family](x, f, u) : top_elsewhere(x, f, u);
}

/* ---- Go: a struct that embeds a type has a field of the type's name ---- */

/* Does the struct `holder` embed the target? holder "": does any. */
static bool embeds(const refactor *x, const char *holder)
{
    for (size_t f = 0; f < x->n_files; f++) {
        if (x->files[f].language->family != REFACTOR_GO) continue;
        for (uint32_t i = 0; i < x->files[f].uses->n_bases; i++) {
            const code_base *b = &x->files[f].uses->bases[i];
            if (!strcmp(b->base, x->target.name) && (!*holder || !strcmp(b->name, holder))) return true;
        }
    }
    return false;
}

/* value.Type and Holder{Type: value}: that field, where the value is known to be of a struct that embeds the type. */
static refactor_decision decide_embedded(const refactor *x, const char *holder)
{
    if (*holder && embeds(x, holder)) return sure;
    if (*holder && !refactor__is_type_of_tree(x, holder)) return other;
    return embeds(x, "") ? unsure("it may be the field of a struct that embeds it") : other;
}

/* Does a name that a file imports stand for something of the target's file? */
static bool comes_from_holder(const refactor *x, const refactor_file *f, const char *local)
{
    const code_import *m = refactor__import_of(f, local);
    const char *path = m ? refactor__module_path(x, f, m->module) : NULL;
    return path && !strcmp(path, x->target.in->path);
}

/* Python: does package.module, as an import of the file gives it, hold the target under its name? */
static bool holds_target(refactor *x, const refactor_file *f, const char *whole)
{
    const code_import *m = NULL;
    size_t n = strlen(whole);
    while (n) { /* the longest beginning that an import names */
        char *head = base_xstrndup(whole, n);
        m = refactor__import_of(f, head);
        free(head);
        if (m) break;
        while (n && whole[--n] != '.') {
        }
    }
    if (!m) return false;
    base_buf module = {0};
    base_buf_puts(&module, m->module);
    if (*m->name) /* from package import module */
        base_buf_printf(
            &module, "%s%s", module.len && module.data[module.len - 1] == '.' ? "" : ".", m->name);
    base_buf_puts(&module, whole + n); /* of "import package" what stands behind it */
    const bool is_it = refactor__comes_from(x, refactor__module_path(x, f, module.data), x->target.name, 0);
    base_buf_free(&module);
    return is_it;
}

/* package.module.name */
static refactor_decision decide_dotted(refactor *x, const refactor_file *f, const code_use *u)
{
    char *whole = qualified_name(f, u->from ? u->from - 1 : 0, u->from ? u->from - 1 : 0);
    const bool is_it = holds_target(x, f, whole);
    free(whole);
    return is_it ? sure : other;
}

/* setattr(module, "name", ...), patch.object(Type, "name"): is the string the target's name? */
static bool is_attribute(refactor *x, const refactor_file *f, const code_use *u)
{
    const refactor_target *t = &x->target;
    char *object = t->binding == UINT32_MAX && f->language->family == REFACTOR_PYTHON
                       ? refactor__attribute_object(&f->file.text, u->from, strlen(t->name))
                       : NULL;
    const bool is_it =
        object && (t->is_member ? !strcmp(code_last_name(object), t->parent) : holds_target(x, f, object));
    free(object);
    return is_it;
}

/* `this` of a function that stands beside the target ("Holder.prototype.f = function"), and not of one in it. */
static bool is_this_of(const refactor_file *f, const code_use *u, const char *holder)
{
    static const char own[] = "this.";
    const size_t n = sizeof own - 1;
    const code_file *file = f->uses->file;
    const uint32_t at = code_definition_at(file, u->from);
    if (at == UINT32_MAX || u->from < n || memcmp(f->file.text.data + u->from - n, own, n) != 0) return false;
    const code_definition *d = &file->definitions[at];
    return !strcmp(d->parent, holder) && d->body_to && d->body_from < u->from &&
           !code_has_identifier(f->file.text.data + d->body_from, u->from - d->body_from, "function");
}

/* module.name, Outer.Name, path::name */
static refactor_decision decide_qualified(refactor *x, const refactor_file *f, const code_use *u)
{
    const refactor_target *t = &x->target;
    const refactor_language *language = f->language;
    if (u->is_exported && f == t->in) return sure; /* exports.name = name */
    if (language->family == REFACTOR_RUST && u->from && f->file.text.data[u->from - 1] == '.')
        return other;                         /* a field or method */
    if (u->object_kind == CODE_OBJECT_MODULE) /* require('./m').name */
        return refactor__comes_from(x, refactor__module_path(x, f, u->object), t->name, 0) ? sure : other;
    if (language->has_free_objects && *t->parent && !t->is_type && u->object_kind != CODE_OBJECT_LITERAL) {
        /* holder.name = function: known by the name of what holds it, in its own file */
        if (f == t->in && (!strcmp(u->before, t->parent) || is_this_of(f, u, t->parent))) return sure;
        return refactor__import_of(f, u->before) && !comes_from_holder(x, f, u->before)
                   ? other
                   : unsure("the object is not known");
    }
    if (language->family == REFACTOR_JAVA && u->import != UINT32_MAX) return top_in_java(x, f, u);
    if (language->family == REFACTOR_JAVA && t->is_type && u->role == CODE_USE_MEMBER) { /* a.b.Name */
        char *whole = qualified_name(f, u->from + strlen(t->name), u->from);
        const bool has_package = *whole >= 'a' && *whole <= 'z',
                   is_it = has_package && refactor__java_import_is(t, whole);
        free(whole);
        if (has_package) return is_it ? sure : other;
    }
    if (u->object_kind == CODE_OBJECT_UNKNOWN && language->family == REFACTOR_PYTHON)
        return decide_dotted(x, f, u);
    if (u->object_kind != CODE_OBJECT_NAMED) {
        if (language->has_paths) return top_elsewhere(x, f, u);
        if (language->family == REFACTOR_GO && t->is_type && !u->is_call)
            return decide_embedded(x, u->object_kind == CODE_OBJECT_TYPED ? u->object : "");
        return language->family == REFACTOR_JAVA && t->is_type && u->is_type ? top_in_java(x, f, u) : other;
    }
    if (language->has_paths) {
        if (t->is_type || !refactor__is_type_of_tree(x, u->object)) return top_elsewhere(x, f, u);
        return other;
    }
    if (language->family == REFACTOR_JAVA) {
        return t->is_type && !strcmp(u->object, t->parent) ? sure : other;
    }
    if (language->family == REFACTOR_PYTHON) return decide_dotted(x, f, u);
    const code_import *m = refactor__import_of(f, u->object);
    if (language->family == REFACTOR_GO) return refactor__is_package(x, f, u->object) ? sure : other;
    if (!m) return other;
    if (!*m->name)
        return refactor__comes_from(x, refactor__module_path(x, f, m->module), t->name, 0) ? sure : other;
    return other;
}

/* ---- definitions and locals ---- */

static refactor_decision decide_definition(
    refactor *x, const refactor_file *f, const code_use *u, bool *ret_is_known)
{
    const refactor_target *t = &x->target;
    const code_definition *d = &f->uses->file->definitions[u->definition];
    const bool is_member =
        !strcmp(d->what, "method") || !strcmp(d->what, "field") || refactor__is_nested(f->uses->file, d);
    *ret_is_known = true;
    if (t->is_type && !strcmp(d->parent, t->name) && refactor__is_constructor(f->uses->file, d))
        return f == t->in || !t->is_rival ? sure : other;
    if (t->is_member) {
        const bool is_constant = !strcmp(d->what, "constant") && *d->parent;
        if (!is_member && !is_constant) return other;
        if (t->is_function != refactor__is_function(f, d) && !f->language->is_untyped) return other;
        if (u->is_unnamed) /* of new Type() { ... } */
            return refactor__is_kin(x, u->holder) ? refactor__by_home(x, f, u->from, u->holder) : other;
        if (t->is_nameless || !*d->parent ||
            (f->language->has_free_objects && !refactor__is_type_of_tree(x, d->parent)))
            return unsure("it is of something without a name");
        if (!refactor__is_kin(x, d->parent))
            return f->language->is_structural ? unsure("types of TypeScript go by their members") : other;
        if (strcmp(u->within, t->within) != 0) return other; /* of another unnamed struct in the type */
        return refactor__by_home(x, f, u->from, d->parent);
    }
    if (is_member && t->is_type && u->is_type &&
        f->language->family == REFACTOR_GO) /* a struct that embeds it */
        return u->role == CODE_USE_MEMBER ? decide_qualified(x, f, u) : decide_bare(x, f, u);
    if (is_member) return other;
    if (refactor__is_type(d->what) != t->is_type && !f->language->is_untyped) return other;
    if (f == t->in && strcmp(d->parent, t->parent) != 0 && !t->is_type) return other;
    if (f == t->in) /* Name.prototype.f, where several tests have a Name of their own */
        return *t->parent && f->language->has_free_objects ? refactor__by_home(x, f, u->from, t->parent)
                                                           : sure;
    if (!*t->parent && !*d->parent && refactor__are_alternatives(f, t->in, t->is_type)) return sure;
    *ret_is_known = !f->language->declares_apart;
    /* What is declared here may be defined there, and what is defined here declared there. */
    const bool is_pair =
        refactor__is_declaration(f, d) || (t->definition && refactor__is_declaration(t->in, t->definition));
    return is_pair && f->language->family != REFACTOR_JS ? decide_bare(x, f, u) : other;
}

/* Is this the @param of the target in the comment in front of its function? */
static bool is_documented(const refactor_target *t, const code_use *u)
{
    static const char mark[] = "@param";
    const char *text = t->in->file.text.data;
    const size_t n = strlen(t->name);
    uint32_t line = u->from, function = UINT32_MAX;
    for (uint32_t i = 0; i < t->in->uses->file->n_definitions; i++) {
        const code_definition *d = &t->in->uses->file->definitions[i];
        if (d->from <= t->name_from && t->name_from < d->to) function = d->from;
    }
    if (function == UINT32_MAX || u->from + n > function) return false;
    while (line && text[line - 1] != '\n') line--;
    if (!memmem(text + line, u->from - line, mark, sizeof mark - 1)) return false;
    /* "{Type} name - what it is": only the first word behind the type is the name */
    const char *from = memmem(text + line, u->from - line, mark, sizeof mark - 1);
    from += sizeof mark - 1;
    from += strspn(from, " \t");
    if (*from == '{') {
        const char *end = memchr(from, '}', (size_t)(text + u->from - from));
        if (!end) return false;
        from = end + 1;
    }
    from += strspn(from, " \t[");
    if (from != text + u->from) return false;
    const char *end = memmem(text + u->from, function - u->from, "*/", 2);
    if (!end) return false;
    for (end += 2; end < text + function; end++)
        if (strchr(";{}", *end)) return false;
    return true;
}

static refactor_decision decide_local(refactor *x, const refactor_file *f, const code_use *u)
{
    const refactor_target *t = &x->target;
    if (u->role == CODE_USE_NAME && f == t->in) {
        if (u->binding == t->binding) return sure;
        /* An #if that cuts a statement in two ends the function for the grammar. */
        const bool is_adrift = (u->binding == UINT32_MAX || u->binding == u->from) &&
                               u->inside == UINT32_MAX && u->from > t->name_from;
        return is_adrift && f->uses->file->n_errors ? unsure("the file does not parse around it") : other;
    }
    if (u->role == CODE_USE_COMMENT && f == t->in && t->is_parameter && is_documented(t, u)) return sure;
    if (!x->leaves_text && refactor__is_parameter_documented(x, f, u)) return sure;
    if (u->role != CODE_USE_KEY || !t->is_parameter || f->language->family != REFACTOR_PYTHON) return other;
    const code_file *file = t->in->uses->file;
    const code_definition *function = NULL;
    for (uint32_t i = 0; i < file->n_definitions; i++) {
        const code_definition *d = &file->definitions[i];
        if (d->from <= t->name_from && t->name_from < d->to && strstr("function method", d->what))
            function = d;
    }
    if (!function) return other;
    const bool is_made = !strcmp(function->name, "__init__") && !strcmp(u->callee, function->parent);
    if (!is_made && strcmp(u->callee, function->name) != 0) return other;
    code_place *places;
    const uint32_t n = code_index_define(x->w->index, is_made ? function->parent : function->name, &places);
    code_places_free(places, n);
    return n == 1 ? sure : unsure("several functions of this name are called so");
}

/* JavaScript: does a comment say there what type something has: @param {Name}, @extends Name? */
static bool is_jsdoc_type(const refactor_file *f, const code_use *u)
{
    static const char *const tags[] = {"@extends ", "@augments ", "@implements "};
    const char *text = f->file.text.data;
    uint32_t line = u->from;
    if (f->language->family != REFACTOR_JS || f->language->is_structural) return false;
    while (line && text[line - 1] != '\n') line--;
    const size_t n = u->from - line;
    for (size_t i = 0; i < sizeof tags / sizeof *tags; i++) {
        const size_t k = strlen(tags[i]);
        if (n >= k && !memcmp(text + u->from - k, tags[i], k)) return true;
    }
    const char *open = n ? memrchr(text + line, '{', n) : NULL;
    return open && text[u->from - 1] != '.' && memchr(text + line, '@', (size_t)(open - text - line)) &&
           !memchr(open, '}', (size_t)(text + u->from - open));
}

/* Of a local that an import in a function declares ("def f(): from m import g") that import; NULL: another local. */
static const code_import *import_of_local(const refactor_file *f, const code_use *u)
{
    for (uint32_t i = 0; i < f->uses->n_uses; i++) {
        const code_use *v = &f->uses->uses[i];
        if (v->from == u->binding && v->import != UINT32_MAX) return &f->uses->imports[v->import];
    }
    return NULL;
}

static refactor_decision decide_any(refactor *x, const refactor_file *f, const code_use *u)
{
    const refactor_target *t = &x->target;
    if (u->role == CODE_USE_LABEL) return other;
    if (u->role == CODE_USE_UNREAD) return unsure("the file does not parse there");
    if (u->role == CODE_USE_STRING || u->role == CODE_USE_COMMENT) {
        if (u->is_exported && t->binding == UINT32_MAX && !t->is_member) { /* __all__ */
            const code_import *m = refactor__import_of(f, t->name);
            if (f == t->in ||
                (m && refactor__comes_from(x, refactor__module_path(x, f, m->module), m->name, 0)))
                return sure;
        }
        if (u->role == CODE_USE_COMMENT && t->binding == UINT32_MAX && !t->is_member && is_jsdoc_type(f, u))
            return top_in_js(x, f, u);
        if (u->role == CODE_USE_STRING && refactor__is_looked_up(x, &f->file.text, u->from)) return sure;
        if (u->role == CODE_USE_STRING && is_attribute(x, f, u)) return sure;
        const bool is_near = t->binding == UINT32_MAX || refactor__is_in_function_of(x, f, u);
        if (t->binding != UINT32_MAX && decide_local(x, f, u).verdict == REFACTOR_SURE) return sure;
        return (x->takes_text && is_near) || refactor__is_in_own_words(x, f, u) ? sure : other;
    }
    if (t->binding != UINT32_MAX) return decide_local(x, f, u);
    if (u->definition != UINT32_MAX && u->binding == UINT32_MAX) {
        bool is_known;
        const refactor_decision d = decide_definition(x, f, u, &is_known);
        if (is_known || d.verdict != REFACTOR_OTHER) return d;
        if (!refactor__is_declaration(f, &f->uses->file->definitions[u->definition])) return other;
    }
    if (t->is_member) return refactor__decide_member(x, f, u);
    const code_import *own = u->binding != UINT32_MAX ? import_of_local(f, u) : NULL;
    if (own && f->language->renames_imports) return brought(x, f, own);
    if (u->binding != UINT32_MAX) return other;
    if (u->role == CODE_USE_MACRO) return u->is_access ? other : top_in_c(x, f, u);
    if (u->role == CODE_USE_KEY) {
        if (u->is_exported && f == t->in) return sure;
        if (f->language->family == REFACTOR_GO && t->is_type && *u->callee)
            return decide_embedded(x, u->callee);
        return f->language->family == REFACTOR_GO && !*u->callee && !t->is_function
                   ? unsure("a key of a map or of a struct")
                   : other;
    }
    const char *behind = f->file.text.data + u->from + strlen(t->name);
    if (f->language->family == REFACTOR_RUST && t->is_function && !strncmp(behind, "::", 2) &&
        behind[2] != '<')
        return other; /* a module of that name */
    if (u->role == CODE_USE_MEMBER) return decide_qualified(x, f, u);
    return decide_bare(x, f, u);
}

/* ---- C: fields of unnamed structs, and macros that are defined again ---- */

/* Has a type of this name (NULL: any; other: any but that) such a field in the unnamed struct that is its member `within`? */
static bool has_field_within(const refactor *x, const char *within, const char *parent, bool other_parent)
{
    for (size_t f = 0; f < x->n_files; f++)
        for (uint32_t i = 0; i < x->files[f].uses->n_uses; i++) {
            const code_use *u = &x->files[f].uses->uses[i];
            if (u->definition == UINT32_MAX || strcmp(u->within, within) != 0) continue;
            const code_definition *d = &x->files[f].uses->file->definitions[u->definition];
            if (!strcmp(d->parent, parent) != other_parent) return true;
        }
    return false;
}

/* a.b.name, where b may be the member of which an unnamed struct is the type. */
static refactor_decision by_path(const refactor *x, const code_use *u, refactor_decision d)
{
    const refactor_target *t = &x->target;
    if (!*u->through || (!*t->within && d.verdict == REFACTOR_OTHER)) return d;
    if (*t->within && !strcmp(u->through, t->within)) {
        if (has_field_within(x, t->within, t->parent, true))
            return d.verdict == REFACTOR_SURE ? unsure("several types have an unnamed struct of this name")
                                              : d;
        return d.verdict == REFACTOR_UNSURE ? sure : d;
    }
    if (has_field_within(x, u->through, t->parent, false)) return other;
    const bool is_elsewhere = *t->within || has_field_within(x, u->through, t->parent, true);
    return is_elsewhere && d.verdict == REFACTOR_SURE ? unsure("it may be of another unnamed struct") : d;
}

/* The bytes in which a macro's name means it: its file defines another of the name behind an #undef. */
static void find_macro_room(refactor_target *t)
{
    static const char word[] = "undef";
    const base_buf *text = &t->in->file.text;
    uint32_t from = 0, to = UINT32_MAX;
    bool is_again = false;
    for (uint32_t i = 0; i < t->in->uses->n_uses; i++) {
        const code_use *u = &t->in->uses->uses[i];
        uint32_t line = u->from;
        while (line && text->data[line - 1] != '\n') line--;
        const char *p = text->data + line;
        p += strspn(p, " \t");
        if (*p == '#') p += 1 + strspn(p + 1, " \t");
        if (strncmp(p, word, sizeof word - 1) != 0) continue;
        if (u->from < t->name_from)
            from = u->from + 1;
        else if (to == UINT32_MAX)
            to = u->from + 1;
    }
    for (uint32_t i = 0; i < t->in->uses->file->n_definitions; i++) {
        const code_definition *d = &t->in->uses->file->definitions[i];
        is_again |= !strcmp(d->name, t->name) && (d->name_from < from || d->name_from >= to);
    }
    if (!is_again) return;
    t->room_from = from;
    t->room_to = to;
}

/* JavaScript: "f = function f() {", "f: function f() {": the name inside of it is the same function's. */
static bool is_name_inside(const refactor_target *t, const refactor_file *f, const code_use *u)
{
    static const char *const words[] = {"async", "function"};
    if (f != t->in || f->language->family != REFACTOR_JS || u->binding == UINT32_MAX) return false;
    const char *text = f->file.text.data, *p = text + t->name_from + strlen(t->name);
    p += strspn(p, " \t");
    if (!strchr("=:", *p++)) return false;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        p += strspn(p, " \t\r\n*");
        if (!strncmp(p, words[i], strlen(words[i]))) p += strlen(words[i]);
    }
    const size_t n = strspn(p, " \t*");
    return n > 0 && u->binding == (uint32_t)(p + n - text);
}

static refactor_decision decide(refactor *x, const refactor_file *f, const code_use *u)
{
    const refactor_target *t = &x->target;
    if (f == t->in && (u->from == t->name_from || is_name_inside(t, f, u))) return sure;
    refactor_decision d = decide_any(x, f, u);
    if (t->is_member && f->language->family == REFACTOR_C && u->role == CODE_USE_MEMBER &&
        u->definition == UINT32_MAX)
        d = by_path(x, u, d);
    const bool is_outside = t->room_to && (f == t->in ? u->from < t->room_from || u->from >= t->room_to
                                                      : t->room_to != UINT32_MAX);
    if (is_outside && d.verdict != REFACTOR_OTHER) {
        if (!f->language->is_untyped) return other;
        d = unsure("its type stands in a function");
    }
    if (d.verdict == REFACTOR_SURE && t->is_adrift) return unsure("the file does not parse around it");
    const bool is_import = f == t->in && u->import != UINT32_MAX && !t->is_member;
    if (t->is_imported_too && (d.verdict == REFACTOR_SURE || is_import))
        return unsure("its file may import it instead");
    if (d.verdict == REFACTOR_SURE && t->has_twin)
        return unsure("its type holds an unnamed one with a field of this name");
    return d;
}

/* JavaScript: export default Name, export default class Name, function Name. */
static bool is_default_export(const refactor_target *t)
{
    static const char word[] = "export default ";
    static const char *const kinds[] = {"async ", "abstract ", "class ", "function ", "function* "};
    const char *text = t->in->file.text.data;
    const size_t n = strlen(t->name);
    if (!text || t->in->language->family != REFACTOR_JS || t->is_member || t->binding != UINT32_MAX)
        return false;
    while ((text = strstr(text, word)) != NULL) {
        text += sizeof word - 1;
        const char *given = text;
        for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
            if (!strncmp(text, kinds[i], strlen(kinds[i]))) text += strlen(kinds[i]);
        /* "export default make()" gives what a call returns, "export default function make()" the function. */
        const char *const others = text == given ? "_$.(" : "_$";
        if (!strncmp(text, t->name, n) && (!text[n] || !strchr(others, text[n])) &&
            !((text[n] | 32) >= 'a' && (text[n] | 32) <= 'z') && !(text[n] >= '0' && text[n] <= '9'))
            return true;
    }
    return false;
}

/* What the tree says of the target as a whole, before each place is looked at. */
static void look_at_target(refactor *x)
{
    refactor_target *t = &x->target;
    const code_file *file = t->in->uses->file;
    uint32_t n = 0;
    t->is_default = is_default_export(t);
    if (!strcmp(t->what, "macro")) find_macro_room(t);
    t->is_imported_too = t->in->language->family == REFACTOR_PYTHON && t->binding == UINT32_MAX &&
                         refactor__import_of(t->in, t->is_member ? t->parent : t->name) != NULL;
    for (uint32_t i = 0; i < file->n_definitions && file->n_errors && !strcmp(t->what, "variable"); i++)
        t->is_adrift |= !strcmp(file->definitions[i].name, t->name) &&
                        !strcmp(file->definitions[i].what, "variable") &&
                        file->definitions[i].name_from != t->name_from;
    if (t->is_member) {
        const bool is_c = t->in->language->family == REFACTOR_C;
        refactor__find_room(x, &t->room_from, &t->room_to);
        t->is_parent_shared = !is_c && refactor__is_type_shared(x, t->parent);
        /* Of a literal in a function, f.name would be the function's. */
        const bool is_free = t->in->language->has_free_objects || !strcmp(t->what, "field");
        t->is_nameless = !is_c && (!*t->parent || (is_free && refactor__is_only(x, t->parent, false)));
        for (uint32_t i = 0; i < file->n_definitions && !is_c; i++) {
            const code_definition *d = &file->definitions[i];
            if (t->room_to && (d->name_from < t->room_from || d->name_from >= t->room_to)) continue;
            n += !strcmp(d->name, t->name) && !strcmp(d->parent, t->parent) && !strcmp(d->what, "field");
        }
        t->has_twin = n > 1 && t->in->language->family != REFACTOR_PYTHON;
    }
    t->is_rival = t->binding == UINT32_MAX && !t->is_member && has_rival(x);
}

/* The field by which a struct of Go embeds a type has that type's name, whatever becomes of it. */
static bool is_embedding(const refactor_target *t)
{
    if (strcmp(t->what, "field") != 0 || t->in->language->family != REFACTOR_GO) return false;
    for (uint32_t k = 0; k < t->in->uses->n_uses; k++) {
        const code_use *u = &t->in->uses->uses[k];
        if (u->from == t->name_from && u->is_type) return true;
    }
    return false;
}

/* Is the target's literal what its module gives as a whole: module.exports = { ... }? */
static bool stands_in_exports(const refactor_target *t)
{
    static const char word[] = "module.exports";
    const char *s = t->in->file.text.data;
    uint32_t at = t->name_from;
    for (int depth = 0; at > 0 && depth <= 0; at--) depth += (s[at - 1] == '{') - (s[at - 1] == '}');
    while (at > 0 && strchr(" \t\r\n", s[at - 1])) at--;
    if (at == 0 || s[--at] != '=') return false;
    while (at > 0 && strchr(" \t", s[at - 1])) at--;
    return at >= sizeof word - 1 && !memcmp(s + at - (sizeof word - 1), word, sizeof word - 1);
}

/* Is the name a local's there, and not the one that the file imports? */
static bool is_hidden(const refactor_file *f, const code_use *u)
{
    bool is_imported = u->binding == UINT32_MAX;
    for (uint32_t i = 0; i < f->uses->n_uses && !is_imported; i++) {
        const code_use *other_use = &f->uses->uses[i];
        is_imported = other_use->import != UINT32_MAX &&
                      (other_use->binding == u->binding || other_use->from == u->binding);
    }
    return !is_imported;
}

/*
 * JavaScript: what a module gives in a literal, module.exports = { f() {} }, other files take as a.f, or by its name. sure where the
 * literal is what their import gives, unsure where it may be.
 */
static refactor_decision decide_given(refactor *x, const refactor_file *f, const code_use *u)
{
    const refactor_target *t = &x->target;
    const bool is_member = u->role == CODE_USE_MEMBER,
               is_name = u->role == CODE_USE_NAME || u->role == CODE_USE_KEY;
    if (!t->is_member || !t->is_nameless || *t->parent || t->in->language->family != REFACTOR_JS ||
        f == t->in)
        return other;
    const code_import *m = u->import != UINT32_MAX ? &f->uses->imports[u->import]
                           : is_member             ? refactor__import_of(f, u->object)
                                                   : refactor__import_of(f, t->name);
    if (!is_member && !(is_name && m)) return other;
    if (!is_member && u->import == UINT32_MAX && is_hidden(f, u)) return other;
    const char *path = m && (is_member ? !*m->name : !strcmp(m->name, t->name))
                           ? refactor__module_path(x, f, m->module)
                           : NULL;
    if (m && path && strcmp(path, t->in->path) != 0) return other;
    return path && stands_in_exports(t) ? sure : unsure("it may be what that module gives");
}

bool refactor__resolve(refactor *x)
{
    refactor_target *t = &x->target;
    if (is_embedding(t)) {
        tool__say(x->result, TOOL_FAILED,
            "%.100s embeds %.100s: that field has the type's name. Nothing was changed. Rename the type.",
            t->parent, t->name);
        return false;
    }
    look_at_target(x);
    for (size_t i = 0; i < x->n_files; i++) {
        const refactor_file *f = &x->files[i];
        if (f->language->family != t->in->language->family) continue;
        if (tool__cancelled(x->limits)) {
            tool__say(x->result, TOOL_CANCELLED, "Cancelled. Nothing was changed.\n");
            return false;
        }
        for (uint32_t k = 0; k < f->uses->n_uses; k++) {
            const code_use *u = &f->uses->uses[k];
            refactor_decision d = decide(x, f, u);
            if (d.verdict == REFACTOR_OTHER) d = decide_given(x, f, u);
            const bool is_text = u->role == CODE_USE_STRING || u->role == CODE_USE_COMMENT;
            if (is_text && d.verdict == REFACTOR_OTHER) x->n_text++;
            if (d.verdict == REFACTOR_SURE && f->is_foreign && f != t->in && !x->takes_unsure)
                d = unsure("the file is generated or vendored");
            if (d.verdict == REFACTOR_OTHER) continue;
            base_grow(&x->places, &x->cap_places, x->n_places + 1, sizeof *x->places);
            x->places[x->n_places++] =
                (refactor_place){i, u, x->takes_unsure ? REFACTOR_SURE : d.verdict, d.why};
        }
    }
    return true;
}

const refactor_place *refactor__find_again(const refactor *x)
{
    for (size_t i = 0; i < x->n_places; i++) {
        const refactor_place *p = &x->places[i];
        const refactor_file *f = &x->files[p->file];
        if (p->verdict != REFACTOR_SURE || p->use->definition == UINT32_MAX || p->use->binding != UINT32_MAX)
            continue;
        const code_definition *d = &f->uses->file->definitions[p->use->definition];
        if (d != x->target.definition && d->body_to && !d->is_declaration) return p;
    }
    return NULL;
}
