/*
 * The places of one name in one file (contract: uses.h): each leaf of the tree that is an identifier of that
 * name, by what its parent is; and each whole word of that name in comments, strings and macros.
 */
#include "code/uses.h"

#include <stdlib.h>
#include <string.h>

#include "code/scopes.h"

void code_uses_free(code_uses *u)
{
    if (u == NULL) return;
    code_file_free(u->file);
    for (size_t i = 0; i < u->n_strings; i++) free(u->strings[i]);
    free(u->strings);
    free(u->uses);
    free(u->imports);
    free(u->bases);
    free(u);
}

#ifdef KVIST_HAVE_TREE_SITTER

enum { MAX_NEAR = 8 };

typedef struct finder {
    const code_tree *t;
    code_uses *u;
    const char *name;
    size_t n_name;
    code_scopes scopes;
    size_t cap_uses, cap_imports, cap_bases;
    bool is_python, is_java, is_go, is_c, is_js;
} finder;

static const char *keep(finder *f, const char *s, size_t n)
{
    base_grow(&f->u->strings, &f->u->cap_strings, f->u->n_strings + 1, sizeof *f->u->strings);
    return f->u->strings[f->u->n_strings++] = base_xstrndup(s, n);
}

static const char *keep_node(finder *f, uint32_t i)
{
    if (i == UINT32_MAX) return "";
    return keep(f, f->t->text + f->t->nodes[i].from, f->t->nodes[i].to - f->t->nodes[i].from);
}

static uint32_t up(const finder *f, uint32_t i)
{
    return i != UINT32_MAX ? f->t->nodes[i].parent : UINT32_MAX;
}

static bool is(const finder *f, uint32_t i, const char *type)
{
    return code_node_is(f->t, i, type);
}

static uint32_t first_of(const finder *f, uint32_t i)
{
    return i != UINT32_MAX ? code_tree_first(f->t, i, false) : UINT32_MAX;
}

static bool says(const finder *f, uint32_t i, const char *word)
{
    const size_t n = strlen(word);
    return i != UINT32_MAX && f->t->nodes[i].to - f->t->nodes[i].from == n &&
           memcmp(f->t->text + f->t->nodes[i].from, word, n) == 0;
}

/* ---- types ---- */

/* The name of a type's node: of pkg.List<Foo> List. */
static uint32_t type_name(const finder *f, uint32_t i)
{
    static const char *const last[] = {"attribute", "member_expression", "nested_type_identifier",
        "scoped_type_identifier", "scoped_identifier", "qualified_identifier", "qualified_type",
        "selector_expression", NULL};
    static const char *const wrappers[] = {
        "Optional", "Type", "Final", "ClassVar", "Partial", "Readonly", "Required", "NonNullable", NULL};
    for (int depth = 0; depth < 12 && i != UINT32_MAX; depth++) {
        if (code_tree_is_name(f->t, i)) return i;
        const char *type = code_tree_type(f->t, i);
        if (is(f, i, "generic_type") || is(f, i, "subscript")) { /* Optional[Foo] is Foo */
            const uint32_t head = first_of(f, i);
            bool wraps = false;
            for (size_t k = 0; wrappers[k] != NULL; k++) wraps = wraps || says(f, head, wrappers[k]);
            i = wraps ? code_tree_first(f->t, i, true) : head;
            continue;
        }
        if (strstr(type, "array") != NULL || strstr(type, "slice") != NULL || strstr(type, "map") != NULL ||
            strstr(type, "union") != NULL || strstr(type, "function") != NULL)
            if (strcmp(type, "union_specifier") != 0) return UINT32_MAX;
        i = code_tree_first(f->t, i, code_node_is_one(f->t, i, last));
    }
    return UINT32_MAX;
}

static bool is_type_definition(const char *what)
{
    static const char *const types[] = {"class", "struct", "union", "enum", "interface", "type", "typedef"};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (strcmp(what, types[i]) == 0) return true;
    return false;
}

static void add_base(finder *f, const char *name, const char *base)
{
    if (*name == '\0' || *base == '\0') return;
    base_grow(&f->u->bases, &f->cap_bases, f->u->n_bases + 1, sizeof *f->u->bases);
    f->u->bases[f->u->n_bases++] = (code_base){name, base};
}

static bool says_same(const finder *f, uint32_t a, uint32_t b)
{
    if (a == UINT32_MAX || b == UINT32_MAX) return a == b;
    const code_node *x = &f->t->nodes[a], *y = &f->t->nodes[b];
    return x->to - x->from == y->to - y->from &&
           memcmp(f->t->text + x->from, f->t->text + y->from, x->to - x->from) == 0;
}

/* What the head of a type names: parents, interfaces; in Go what a struct embeds. */
static void find_bases(finder *f, uint32_t i)
{
    static const char *const heads[] = {"argument_list", "superclass", "super_interfaces",
        "extends_interfaces", "class_heritage", "extends_clause", "implements_clause", "extends_type_clause",
        "base_class_clause", NULL};
    static const char *const types[] = {"class_definition", "class_declaration", "interface_declaration",
        "abstract_class_declaration", "class_specifier", "struct_specifier", "enum_declaration",
        "record_declaration", "class", NULL};
    static const char *const scoped[] = {"scoped_type_identifier", "member_expression", "attribute",
        "nested_type_identifier", "qualified_identifier", NULL};
    const code_tree *t = f->t;
    if (code_node_is_one(t, i, types)) {
        const uint32_t name = code_tree_child(t, i, FIELD_NAME), body = code_tree_child(t, i, FIELD_BODY);
        if (name == UINT32_MAX) return;
        const uint32_t end = body != UINT32_MAX ? body : t->nodes[i].sub_end;
        for (uint32_t c = i + 1; c < end && c - i < 400; c++) {
            if (!code_node_is_one(t, c, heads)) continue;
            for (uint32_t k = c + 1; k < t->nodes[c].sub_end; k++) {
                if (is(f, k, "type_arguments") || is(f, k, "keyword_argument")) {
                    k = t->nodes[k].sub_end - 1;
                    continue;
                }
                if (code_node_is_one(t, k, scoped)) { /* Outer.Inner, module.Type: the last */
                    add_base(f, keep_node(f, name), keep_node(f, type_name(f, k)));
                    k = t->nodes[k].sub_end - 1;
                    continue;
                }
                if (code_tree_is_name(t, k) && !says_same(f, name, k))
                    add_base(f, keep_node(f, name), keep_node(f, k));
            }
        }
    } else if (is(f, i, "impl_item")) { /* impl Trait for Type */
        const uint32_t type = code_tree_child(t, i, FIELD_TYPE), first = first_of(f, i);
        if (type != UINT32_MAX && first != type && !says_same(f, type_name(f, type), type_name(f, first)))
            add_base(f, keep_node(f, type_name(f, type)), keep_node(f, type_name(f, first)));
    } else if (is(f, i, "type_definition")) { /* typedef struct a {...} b */
        const uint32_t type = code_tree_child(t, i, FIELD_TYPE);
        const uint32_t tag = type != UINT32_MAX ? code_tree_child(t, type, FIELD_NAME) : UINT32_MAX;
        for (uint32_t c = i + 1; tag != UINT32_MAX && c < t->nodes[i].sub_end; c = t->nodes[c].sub_end)
            if (t->nodes[c].field == FIELD_DECLARATOR)
                if (!says_same(f, code_tree_name(t, c), tag))
                    add_base(f, keep_node(f, code_tree_name(t, c)), keep_node(f, tag));
    } else if (f->is_go && is(f, i, "field_declaration") &&
               code_tree_child(t, i, FIELD_NAME) == UINT32_MAX) { /* embedded */
        uint32_t spec = i;
        while (spec != UINT32_MAX && !is(f, spec, "type_spec")) spec = up(f, spec);
        if (spec != UINT32_MAX)
            add_base(f, keep_node(f, code_tree_child(t, spec, FIELD_NAME)),
                keep_node(f, type_name(f, code_tree_child(t, i, FIELD_TYPE))));
    }
}

/* The innermost type around a byte: a class, or the type of a method's receiver. */
static const char *holder_of(const finder *f, uint32_t byte)
{
    const code_file *file = f->u->file;
    const char *holder = "";
    for (uint32_t d = 0; d < file->n_definitions && file->definitions[d].from <= byte; d++) {
        const code_definition *x = &file->definitions[d];
        if (byte >= x->to) continue;
        if (is_type_definition(x->what))
            holder = x->name;
        else if (strcmp(x->what, "method") == 0 && *x->parent != '\0')
            holder = x->parent;
    }
    return holder;
}

/* ---- imports ---- */

static void add_import(
    finder *f, uint32_t node, const char *module, const char *name, const char *local, bool is_export)
{
    base_grow(&f->u->imports, &f->cap_imports, f->u->n_imports + 1, sizeof *f->u->imports);
    f->u->imports[f->u->n_imports++] =
        (code_import){module, name, local, f->t->nodes[node].from, f->t->nodes[node].to, is_export};
}

static const char *unquoted(finder *f, uint32_t i)
{
    if (i == UINT32_MAX) return "";
    uint32_t from = f->t->nodes[i].from, to = f->t->nodes[i].to;
    while (from < to && strchr("\"'`", f->t->text[from]) != NULL) from++;
    while (to > from && strchr("\"'`", f->t->text[to - 1]) != NULL) to--;
    return keep(f, f->t->text + from, to - from);
}

static void python_import(finder *f, uint32_t i)
{
    const code_tree *t = f->t;
    const bool is_from = is(f, i, "import_from_statement");
    const uint32_t first = first_of(f, i);
    const char *module = is_from && first != UINT32_MAX ? keep_node(f, first) : "";
    for (uint32_t c = is_from && first != UINT32_MAX ? t->nodes[first].sub_end : i + 1;
         c < t->nodes[i].sub_end; c = t->nodes[c].sub_end) {
        const bool is_alias = is(f, c, "aliased_import");
        const uint32_t name = is_alias ? first_of(f, c) : c;
        const char *text = keep_node(f, name);
        const char *local = is_alias ? keep_node(f, code_tree_child(t, c, FIELD_ALIAS)) : text;
        if (is(f, c, "wildcard_import"))
            add_import(f, c, module, "*", "*", false);
        else if (is_from)
            add_import(f, c, module, text, local, false);
        else
            add_import(f, c, text, "", local, false); /* import a.b is used as a.b */
    }
}

static void js_import(finder *f, uint32_t i)
{
    const code_tree *t = f->t;
    uint32_t source = UINT32_MAX;
    for (uint32_t c = i + 1; c < t->nodes[i].sub_end; c = t->nodes[c].sub_end)
        if (is(f, c, "string")) source = c;
    const bool is_export = is(f, i, "export_statement");
    if (source == UINT32_MAX) return;
    const char *module = unquoted(f, source);
    uint32_t n = 0;
    for (uint32_t c = i + 1; c < t->nodes[i].sub_end; c++) {
        if (is(f, c, "import_specifier") || is(f, c, "export_specifier")) {
            const uint32_t alias = code_tree_child(t, c, FIELD_ALIAS),
                           name = code_tree_child(t, c, FIELD_NAME);
            add_import(f, c, module, keep_node(f, name), keep_node(f, alias != UINT32_MAX ? alias : name),
                is_export);
            n++;
        } else if (is(f, c, "namespace_import")) {
            add_import(f, c, module, "", keep_node(f, first_of(f, c)), is_export);
            n++;
        } else if (code_tree_is_name(t, c) && is(f, up(f, c), "import_clause")) {
            add_import(f, c, module, "default", keep_node(f, c), is_export);
            n++;
        }
    }
    if (is_export && n == 0) add_import(f, i, module, "*", "*", true);
}

/* const x = require('./m'), const {a, b: c} = require('./m') */
static void js_require(finder *f, uint32_t i)
{
    const code_tree *t = f->t;
    const uint32_t name = code_tree_child(t, i, FIELD_NAME), value = code_tree_child(t, i, FIELD_VALUE);
    if (name == UINT32_MAX || value == UINT32_MAX || !is(f, value, "call_expression")) return;
    const uint32_t function = code_tree_child(t, value, FIELD_FUNCTION);
    const uint32_t arguments = code_tree_child(t, value, FIELD_ARGUMENTS);
    if (!says(f, function, "require") || arguments == UINT32_MAX || !is(f, first_of(f, arguments), "string"))
        return;
    const char *module = unquoted(f, first_of(f, arguments));
    if (code_tree_is_name(t, name)) {
        add_import(f, name, module, "", keep_node(f, name), false);
        return;
    }
    for (uint32_t c = name + 1; c < t->nodes[name].sub_end; c = t->nodes[c].sub_end) {
        if (is(f, c, "shorthand_property_identifier_pattern")) {
            add_import(f, c, module, keep_node(f, c), keep_node(f, c), false);
        } else if (is(f, c, "pair_pattern")) {
            const uint32_t key = code_tree_child(t, c, FIELD_KEY), local = code_tree_child(t, c, FIELD_VALUE);
            add_import(f, c, module, keep_node(f, key), keep_node(f, local), false);
        }
    }
}

static const char *last_part(const char *s, char mark)
{
    const char *at = strrchr(s, mark);
    return at != NULL ? at + 1 : s;
}

static void find_import(finder *f, uint32_t i)
{
    const code_tree *t = f->t;
    if (f->is_python && (is(f, i, "import_statement") || is(f, i, "import_from_statement"))) {
        python_import(f, i);
    } else if (f->is_js && (is(f, i, "import_statement") || is(f, i, "export_statement"))) {
        js_import(f, i);
    } else if (f->is_js && is(f, i, "variable_declarator")) {
        js_require(f, i);
    } else if (f->is_go && is(f, i, "import_spec")) {
        const uint32_t name = code_tree_child(t, i, FIELD_NAME);
        const uint32_t path = code_tree_first(t, i, true);
        const char *module = unquoted(f, path);
        add_import(f, i, module, "", name != UINT32_MAX ? keep_node(f, name) : last_part(module, '/'), false);
    } else if (f->is_java && is(f, i, "import_declaration")) {
        const uint32_t path = first_of(f, i);
        const char *module = keep_node(f, path);
        const char *last = last_part(module, '.');
        const bool is_all =
            memchr(t->text + t->nodes[i].from, '*', t->nodes[i].to - t->nodes[i].from) != NULL;
        add_import(f, i, module, is_all ? "*" : last, is_all ? "*" : last, false);
    }
}

/* ---- what stands in front of a member ---- */

static void infer_site(finder *f, const code_site *site, code_use *use);

static void set_object(code_use *use, code_object kind, const char *object)
{
    use->object_kind = (uint8_t)kind;
    use->object = object;
}

/* this.name in Java and TypeScript: the type that the file's fields of that name are declared with, where they agree. */
static void infer_field(finder *f, uint32_t e, code_use *use)
{
    const code_tree *t = f->t;
    const code_node *whole = &t->nodes[e];
    static const char word[] = "this.";
    const size_t n = sizeof word - 1;
    if (whole->to - whole->from <= n || memcmp(t->text + whole->from, word, n) != 0) return;
    const char *name = t->text + whole->from + n, *type = NULL;
    const size_t length = whole->to - whole->from - n;
    for (uint32_t i = 0; i < t->n; i++) {
        const code_node *node = &t->nodes[i];
        if (node->to - node->from != length || memcmp(t->text + node->from, name, length) != 0) continue;
        uint32_t holder = up(f, i);
        if (is(f, holder, "variable_declarator")) holder = up(f, holder);
        if (!is(f, holder, "field_declaration") && !is(f, holder, "public_field_definition")) continue;
        const uint32_t declared = code_tree_child(t, holder, FIELD_TYPE),
                       found = declared != UINT32_MAX ? type_name(f, declared) : UINT32_MAX;
        const char *said = found != UINT32_MAX ? keep_node(f, found) : "";
        if (type && strcmp(type, said) != 0) return;
        type = said;
    }
    if (type && *type) set_object(use, CODE_OBJECT_TYPED, type);
}

/* What type an expression has, as far as its own text and its variable's declaration say. */
static void infer(finder *f, uint32_t e, code_use *use)
{
    static const char *const through[] = {"parenthesized_expression", "pointer_expression",
        "unary_expression", "await", "await_expression", "reference_expression", "expression_list",
        "non_null_expression", NULL};
    static const char *const selves[] = {"self", "this", "cls", "super", "Self", NULL};
    const code_tree *t = f->t;
    for (int depth = 0; depth < MAX_NEAR && code_node_is_one(t, e, through); depth++) e = first_of(f, e);
    use->object_kind = CODE_OBJECT_UNKNOWN;
    if (e == UINT32_MAX) return;
    const char *type = code_tree_type(t, e);
    for (size_t k = 0; selves[k] != NULL; k++)
        if (strcmp(type, selves[k]) == 0 || says(f, e, selves[k])) {
            set_object(use, CODE_OBJECT_SELF, use->holder);
            return;
        }
    if (code_tree_is_name(t, e)) {
        code_scopes scopes;
        code_scopes_find(t, t->text + t->nodes[e].from, t->nodes[e].to - t->nodes[e].from, &scopes);
        const code_site *site = code_scopes_lookup(&scopes, e);
        if (site == NULL) site = code_scopes_global(&scopes);
        set_object(use, CODE_OBJECT_NAMED, keep_node(f, e));
        if (site != NULL) infer_site(f, site, use);
        code_scopes_free(&scopes);
        return;
    }
    if (strcmp(type, "call") == 0 || strcmp(type, "call_expression") == 0) {
        const uint32_t function = code_tree_child(t, e, FIELD_FUNCTION);
        if (f->is_js && says(f, function, "require")) {
            const uint32_t given = first_of(f, code_tree_child(t, e, FIELD_ARGUMENTS));
            if (is(f, given, "string")) set_object(use, CODE_OBJECT_MODULE, unquoted(f, given));
        } else if (is(f, function, "identifier") && says(f, function, "super"))
            set_object(use, CODE_OBJECT_SELF, use->holder);
        else if (function != UINT32_MAX && type_name(f, function) != UINT32_MAX)
            set_object(use, CODE_OBJECT_CALLED, keep_node(f, type_name(f, function)));
        return;
    }
    if (strcmp(type, "field_access") == 0 || strcmp(type, "member_expression") == 0) {
        infer_field(f, e, use);
        return;
    }
    if (strcmp(type, "method_invocation") == 0) {
        const uint32_t name = code_tree_child(t, e, FIELD_NAME);
        if (name == first_of(f, e)) set_object(use, CODE_OBJECT_CALLED, keep_node(f, name));
        return;
    }
    if (strcmp(type, "new_expression") == 0 || strcmp(type, "object_creation_expression") == 0 ||
        strcmp(type, "composite_literal") == 0 || strcmp(type, "struct_expression") == 0 ||
        strcmp(type, "cast_expression") == 0 || strcmp(type, "compound_literal_expression") == 0) {
        uint32_t made = code_tree_child(t, e, FIELD_TYPE);
        if (made == UINT32_MAX) made = first_of(f, e);
        const uint32_t name = type_name(f, made);
        if (name != UINT32_MAX) set_object(use, CODE_OBJECT_TYPED, keep_node(f, name));
        return;
    }
    if (strstr(type, "string") != NULL || strstr(type, "literal") != NULL || strcmp(type, "list") == 0 ||
        strcmp(type, "dictionary") == 0 || strcmp(type, "array") == 0 || strcmp(type, "integer") == 0 ||
        strcmp(type, "number") == 0 || strcmp(type, "regex") == 0)
        set_object(use, CODE_OBJECT_LITERAL, "");
}

static void infer_site(finder *f, const code_site *site, code_use *use)
{
    static const char *const ends[] = {"parameters", "formal_parameters", "parameter_list", "block", "module",
        "import_statement", "import_from_statement", "import_specifier", "import_clause", "namespace_import",
        "translation_unit", "program", "source_file", NULL};
    static const char *const unsaid[] = {"auto", "var", "Any", "object", "any", "Object", "interface", NULL};
    const code_tree *t = f->t;
    uint32_t c = site->node;
    if (is(f, up(f, c), "class_definition") || is(f, up(f, c), "class_declaration"))
        return; /* a type's name */
    for (int depth = 0; depth < MAX_NEAR; depth++) {
        const uint32_t p = up(f, c);
        if (p == UINT32_MAX) return;
        if (code_node_is_one(t, p, ends)) {
            const bool is_imported = strstr(code_tree_type(t, p), "import") != NULL;
            if (!is_imported) set_object(use, CODE_OBJECT_UNKNOWN, "");
            return;
        }
        if (is(f, p, "dotted_name") || is(f, p, "aliased_import"))
            return; /* import x: a module by its name */
        uint32_t type = code_tree_child(t, p, FIELD_TYPE);
        /* Foo x = null: the type stands one node higher, and says more than the value. */
        if (type == UINT32_MAX && (is(f, p, "variable_declarator") || is(f, p, "init_declarator")))
            type = code_tree_child(t, up(f, p), FIELD_TYPE);
        if (type != UINT32_MAX && type != c) {
            const uint32_t name = type_name(f, type);
            bool is_said = name != UINT32_MAX;
            for (size_t k = 0; is_said && unsaid[k] != NULL; k++) is_said = !says(f, name, unsaid[k]);
            if (is_said)
                set_object(use, CODE_OBJECT_TYPED, keep_node(f, name));
            else
                set_object(use, CODE_OBJECT_UNKNOWN, "");
            if (is_said || type_name(f, type) == UINT32_MAX) return;
        }
        uint32_t value = code_tree_child(t, p, FIELD_VALUE);
        if (value == UINT32_MAX) value = code_tree_child(t, p, FIELD_RIGHT);
        if (value != UINT32_MAX && value != c) {
            static const char *const loops[] = {
                "for_statement", "for_in_clause", "for_in_statement", "range_clause", "for_range_loop", NULL};
            const bool is_require = is(f, value, "call_expression") &&
                                    says(f, code_tree_child(t, value, FIELD_FUNCTION), "require");
            if (is_require) return;
            set_object(use, CODE_OBJECT_UNKNOWN, "");
            if (code_node_is_one(t, p, loops) || is(f, c, "pattern_list") || is(f, c, "tuple_pattern"))
                return;
            if (is(f, c, "expression_list") && first_of(f, c) != site->node) return;
            /* The value's own variable would have to be followed as well: one step is enough. */
            if (!code_tree_is_name(t, value)) infer(f, value, use);
            return;
        }
        c = p;
    }
    set_object(use, CODE_OBJECT_UNKNOWN, "");
}

/* ---- roles ---- */

static bool is_member_of(const finder *f, uint32_t i, uint32_t p)
{
    static const char *const members[] = {"attribute", "member_expression", "field_expression",
        "selector_expression", "field_access", "scoped_identifier", "scoped_type_identifier",
        "qualified_identifier", "qualified_type", "nested_type_identifier", "nested_identifier",
        "method_reference", "navigation_expression", "member_access_expression", "member_call_expression",
        "scoped_call_expression", NULL};
    if (is(f, p, "method_invocation")) return f->t->nodes[i].field == FIELD_NAME && first_of(f, p) != i;
    return code_node_is_one(f->t, p, members) && first_of(f, p) != i;
}

/* Java keeps fields and methods in different drawers. */
static bool is_called(const finder *f, uint32_t i, uint32_t p)
{
    const code_tree *t = f->t;
    if (is(f, p, "method_invocation")) return t->nodes[i].field == FIELD_NAME;
    if (is(f, p, "method_reference")) return true;
    const uint32_t callee = is_member_of(f, i, p) ? p : i, call = up(f, callee);
    return call != UINT32_MAX && code_tree_child(t, call, FIELD_FUNCTION) == callee;
}

static uint8_t role_of(const finder *f, uint32_t i)
{
    static const char *const labels[] = {"statement_identifier", "label_name", "label", NULL};
    static const char *const keys[] = {"field_designator", "field_initializer", "pair", "pair_pattern",
        "keyword_argument", "element_value_pair", "field_pattern", NULL};
    const uint32_t p = up(f, i);
    const uint8_t field = f->t->nodes[i].field;
    for (uint32_t a = p; a != UINT32_MAX; a = up(f, a))
        if (f->t->nodes[a].symbol == UINT16_MAX) return CODE_USE_UNREAD;
    if (code_node_is_one(f->t, i, labels) || is(f, p, "lifetime")) return CODE_USE_LABEL;
    if (is(f, i, "shorthand_property_identifier") || is(f, i, "shorthand_property_identifier_pattern") ||
        is(f, p, "shorthand_field_initializer"))
        return CODE_USE_NAME;
    if (code_node_is_one(f->t, p, keys)) {
        const bool is_key =
            field == FIELD_KEY || field == FIELD_NAME || field == FIELD_FIELD || first_of(f, p) == i;
        if (is_key) return CODE_USE_KEY;
    }
    if (is(f, p, "literal_element") && is(f, up(f, p), "keyed_element") && first_of(f, up(f, p)) == p)
        return CODE_USE_KEY;
    if (is(f, i, "shorthand_field_identifier")) return CODE_USE_NAME;
    if (is_member_of(f, i, p)) return CODE_USE_MEMBER;
    if (is(f, i, "field_identifier") || is(f, i, "property_identifier") ||
        is(f, i, "private_property_identifier"))
        return CODE_USE_MEMBER;
    return CODE_USE_NAME;
}

/* The function or type whose argument or field a key names. */
static const char *callee_of(finder *f, uint32_t i)
{
    static const char *const holders[] = {"call", "call_expression", "composite_literal", "struct_expression",
        "new_expression", "init_declarator", "compound_literal_expression", NULL};
    uint32_t p = up(f, i);
    if (is(f, p, "literal_element")) p = up(f, p); /* Go: the key is an element of its own keyed_element */
    for (int depth = 0; depth < MAX_NEAR && p != UINT32_MAX; depth++, p = up(f, p)) {
        if (depth > 0 && is(f, p, "keyed_element")) return ""; /* of a literal inside a literal */
        if (!code_node_is_one(f->t, p, holders) && !is(f, p, "keyed_element")) continue;
        uint32_t head = code_tree_child(f->t, p, FIELD_FUNCTION);
        if (is(f, p, "init_declarator")) head = code_tree_child(f->t, up(f, p), FIELD_TYPE);
        if (head == UINT32_MAX) head = code_tree_child(f->t, p, FIELD_TYPE);
        if (head == UINT32_MAX) head = code_tree_child(f->t, p, FIELD_NAME);
        if (head == UINT32_MAX && !is(f, p, "keyed_element")) head = first_of(f, p);
        if (is(f, p, "keyed_element")) continue;
        return keep_node(f, type_name(f, head));
    }
    return "";
}

/* What leaves the module under this name: export {x}, module.exports = {x}, exports.x. */
static bool is_export(const finder *f, uint32_t i)
{
    uint32_t p = up(f, i);
    if (is(f, p, "export_specifier")) return true;
    if (is(f, p, "member_expression")) { /* exports.x, module.exports.x */
        const uint32_t object = first_of(f, p);
        return object != i && (says(f, object, "exports") || says(f, object, "module.exports"));
    }
    if (is(f, p, "pair") && f->t->nodes[i].field == FIELD_KEY) p = up(f, p);
    if (!is(f, p, "object") || !is(f, up(f, p), "assignment_expression")) return false;
    const uint32_t left = code_tree_child(f->t, up(f, p), FIELD_LEFT);
    return says(f, left, "module.exports") || says(f, left, "exports");
}

static code_use *add_use(finder *f, uint32_t from, uint8_t role)
{
    base_grow(&f->u->uses, &f->cap_uses, f->u->n_uses + 1, sizeof *f->u->uses);
    code_use *use = &f->u->uses[f->u->n_uses++];
    *use = (code_use){.from = from,
        .role = role,
        .binding = UINT32_MAX,
        .definition = UINT32_MAX,
        .inside = code_definition_at(f->u->file, from),
        .import = UINT32_MAX,
        .object = "",
        .before = "",
        .holder = holder_of(f, from),
        .callee = ""};
    return use;
}

static void bind(finder *f, uint32_t i, code_use *use)
{
    const code_site *site = code_scopes_lookup(&f->scopes, i);
    if (site == NULL) return;
    if (f->is_python && is(f, site->scope, "class_definition")) { /* what a class body binds is a member */
        use->role = CODE_USE_MEMBER;
        set_object(use, CODE_OBJECT_SELF, keep_node(f, code_tree_child(f->t, site->scope, FIELD_NAME)));
        return;
    }
    use->binding = f->t->nodes[site->node].from;
    use->is_parameter = site->is_parameter && site->node == i;
}

/* new Type() { here }: the class has no name, its members are those of Type. */
static void find_unnamed(finder *f, uint32_t i, code_use *use)
{
    uint32_t body = up(f, i);
    while (body != UINT32_MAX && !is(f, body, "class_body")) body = up(f, body);
    if (body == UINT32_MAX || !is(f, up(f, body), "object_creation_expression")) return;
    use->is_unnamed = true;
    use->holder = keep_node(f, type_name(f, code_tree_child(f->t, up(f, body), FIELD_TYPE)));
}

static void find_use(finder *f, uint32_t i)
{
    const code_tree *t = f->t;
    uint32_t from = t->nodes[i].from;
    from += from < t->nodes[i].to && t->text[from] == '#'; /* private in JavaScript */
    if (t->nodes[i].to - from != f->n_name || memcmp(t->text + from, f->name, f->n_name) != 0) return;
    code_use *use = add_use(f, from, role_of(f, i));
    const code_file *file = f->u->file;
    const uint32_t p = up(f, i);
    for (uint32_t d = 0; d < file->n_definitions; d++)
        if (file->definitions[d].name_from == from) use->definition = d;
    use->is_call = is_called(f, i, p);
    use->is_type = is(f, i, "type_identifier");
    use->is_tag = t->nodes[i].field == FIELD_NAME &&
                  (is(f, p, "struct_specifier") || is(f, p, "union_specifier") || is(f, p, "enum_specifier"));
    use->is_shorthand = is(f, i, "shorthand_property_identifier") ||
                        is(f, i, "shorthand_property_identifier_pattern") ||
                        is(f, p, "shorthand_field_initializer") || is(f, i, "shorthand_field_identifier");
    use->is_exported = f->is_js && is_export(f, i);
    for (uint32_t k = 0; k < f->u->n_imports; k++)
        if (f->u->imports[k].from <= from && from < f->u->imports[k].to) use->import = k;
    if (f->is_java) find_unnamed(f, i, use);
    /* Java: a method and a variable of one name are two things. */
    const bool is_method = f->is_java && t->nodes[i].field == FIELD_NAME &&
                           (is(f, p, "method_invocation") || is(f, p, "method_declaration"));
    if (use->role == CODE_USE_NAME && !is_method)
        bind(f, i, use);
    else if (use->role == CODE_USE_KEY)
        use->callee = callee_of(f, i);
    else if (use->role == CODE_USE_MEMBER && use->definition == UINT32_MAX && is_member_of(f, i, p)) {
        infer(f, first_of(f, p), use);
        if (code_tree_is_name(t, first_of(f, p))) use->before = keep_node(f, first_of(f, p));
    }
    /* What a module imports under its own name and what it exports is no local of a function. */
    if (use->definition != UINT32_MAX && use->binding != UINT32_MAX &&
        strcmp(file->definitions[use->definition].what, "field") == 0)
        use->binding = UINT32_MAX;
}

/* Whole words of the name between two bytes. */
static void find_words(finder *f, uint32_t from, uint32_t to, uint8_t role)
{
    const char *text = f->t->text;
    size_t pos = from, a, b;
    while (code_next_identifier(text, to, &pos, &a, &b)) {
        if (b - a != f->n_name || memcmp(text + a, f->name, f->n_name) != 0) continue;
        code_use *use = add_use(f, (uint32_t)a, role);
        use->is_access =
            a > from && (text[a - 1] == '.' || (a > from + 1 && memcmp(text + a - 2, "->", 2) == 0));
        for (size_t k = b; k < to && use->role == CODE_USE_MACRO; k++)
            if (text[k] != ' ') {
                use->is_call = text[k] == '(';
                break;
            }
    }
}

/* A macro's own parameter is no use of anything outside. */
static bool is_macro_parameter(const finder *f, uint32_t i)
{
    const uint32_t parameters = code_tree_child(f->t, up(f, i), FIELD_PARAMETERS);
    if (parameters == UINT32_MAX) return false;
    for (uint32_t c = parameters + 1; c < f->t->nodes[parameters].sub_end; c++)
        if (f->t->nodes[c].to - f->t->nodes[c].from == f->n_name &&
            memcmp(f->t->text + f->t->nodes[c].from, f->name, f->n_name) == 0)
            return true;
    return false;
}

/* Text without names: comments, strings, the bodies of macros. */
static void find_text(finder *f, uint32_t i)
{
    const code_tree *t = f->t;
    const char *type = code_tree_type(t, i);
    const bool is_comment = (code_tree_row(t, i)->flags & NODE_COMMENT) != 0;
    const bool is_macro = strcmp(type, "preproc_arg") == 0;
    const bool is_string = strstr(type, "string") != NULL || strstr(type, "char_literal") != NULL ||
                           strstr(type, "heredoc") != NULL || strcmp(type, "system_lib_string") == 0;
    if (!is_comment && !is_macro && !is_string) return;
    if (is_macro && is_macro_parameter(f, i)) return;
    bool is_exported = false;
    uint32_t a = i;
    for (int depth = 0; f->is_python && is_string && depth < 4 && a != UINT32_MAX; depth++, a = up(f, a))
        is_exported =
            is_exported || (is(f, a, "assignment") && says(f, code_tree_child(t, a, FIELD_LEFT), "__all__"));
    const uint32_t n_before = f->u->n_uses;
    const uint8_t role = is_comment ? CODE_USE_COMMENT : is_macro ? CODE_USE_MACRO : CODE_USE_STRING;
    uint32_t from = t->nodes[i].from;
    for (uint32_t c = i + 1; c < t->nodes[i].sub_end; c = t->nodes[c].sub_end) {
        if (t->nodes[c].from > from) find_words(f, from, t->nodes[c].from, role);
        from = t->nodes[c].to;
    }
    if (t->nodes[i].to > from) find_words(f, from, t->nodes[i].to, role);
    for (uint32_t k = n_before; k < f->u->n_uses; k++) f->u->uses[k].is_exported = is_exported;
}

static int by_place(const void *a, const void *b)
{
    const code_use *x = a, *y = b;
    if (x->from != y->from) return x->from < y->from ? -1 : 1;
    return x->role < y->role ? -1 : x->role > y->role;
}

static void sort_uses(code_uses *u)
{
    uint32_t kept = 0;
    if (u->n_uses != 0) qsort(u->uses, u->n_uses, sizeof *u->uses, by_place);
    for (uint32_t i = 0; i < u->n_uses; i++)
        if (kept == 0 || u->uses[kept - 1].from != u->uses[i].from) u->uses[kept++] = u->uses[i];
    u->n_uses = kept;
}

/* Words that no node holds: what an error swallowed, or what the grammar has no name for. */
static void find_rest(finder *f, size_t n)
{
    const char *text = f->t->text;
    const uint32_t known = f->u->n_uses;
    size_t pos = 0, a, b;
    uint32_t k = 0;
    while (code_next_identifier(text, n, &pos, &a, &b)) {
        if (b - a != f->n_name || memcmp(text + a, f->name, f->n_name) != 0) continue;
        while (k < known && f->u->uses[k].from < a) k++;
        if (k == known || f->u->uses[k].from != a) add_use(f, (uint32_t)a, CODE_USE_UNREAD);
    }
    sort_uses(f->u);
}

static void count_lines(const char *text, code_uses *u)
{
    uint32_t line = 1, at = 0;
    for (uint32_t i = 0; i < u->n_uses; i++) {
        for (; at < u->uses[i].from; at++) line += text[at] == '\n';
        u->uses[i].line = line;
    }
}

code_uses *code_uses_find(code_grammars *g, const char *path, const char *text, size_t n, const char *name)
{
    const char *language = n < UINT32_MAX ? code_language(path, text, n) : NULL;
    const code_grammar *grammar = n <= 4u << 20 ? code_grammar_get(g, language) : NULL;
    code_tree tree;
    if (grammar == NULL || code_table_of(language) == NULL || !code_tree_make(grammar, text, n, NULL, &tree))
        return NULL;
    finder f = {.t = &tree,
        .u = base_xcalloc(1, sizeof *f.u),
        .name = name,
        .n_name = strlen(name),
        .is_python = strcmp(language, "python") == 0,
        .is_java = strcmp(language, "java") == 0,
        .is_go = strcmp(language, "go") == 0,
        .is_js = strcmp(language, "javascript") == 0 || strcmp(language, "typescript") == 0 ||
                 strcmp(language, "tsx") == 0};
    f.u->file = code_parse_tree(&tree);
    code_scopes_find(&tree, name, f.n_name, &f.scopes);
    for (uint32_t i = 0; i < tree.n; i++) {
        find_import(&f, i);
        find_bases(&f, i);
    }
    for (uint32_t i = 0; i < tree.n; i++) {
        if (code_tree_is_name(&tree, i))
            find_use(&f, i);
        else
            find_text(&f, i);
    }
    sort_uses(f.u);
    find_rest(&f, n);
    count_lines(text, f.u);
    code_scopes_free(&f.scopes);
    code_tree_free(&tree);
    return f.u;
}

bool code_uses_know_locals(const char *language)
{
    return code_scopes_know(language);
}

/* ---- parameters and arguments ---- */

bool code_items(code_grammars *g, const char *path, const char *text, size_t n, uint32_t at,
    uint32_t *ret_from, uint32_t *ret_to, code_item **ret, uint32_t *ret_n)
{
    static const char *const lists[] = {"parameters", "parameter_list", "formal_parameters", "argument_list",
        "arguments", "closure_parameters", NULL};
    const code_grammar *grammar = n < UINT32_MAX ? code_grammar_get(g, code_language(path, text, n)) : NULL;
    code_tree t;
    if (grammar == NULL || !code_tree_make(grammar, text, n, NULL, &t)) return false;
    uint32_t found = UINT32_MAX;
    for (uint32_t i = 0; i < t.n && found == UINT32_MAX; i++)
        if (t.nodes[i].from >= at && code_node_is_one(&t, i, lists)) found = i;
    bool is_near = found != UINT32_MAX;
    for (uint32_t k = at; is_near && k < t.nodes[found].from; k++)
        is_near = text[k] != '{' && text[k] != ';' && text[k] != '}' && text[k] != '=';
    if (is_near && (text[t.nodes[found].from] != '(' || t.nodes[found].to < t.nodes[found].from + 2))
        is_near = false;
    if (is_near) {
        code_item *items = NULL;
        size_t cap = 0;
        uint32_t n_items = 0, from = t.nodes[found].from + 1;
        const uint32_t end = t.nodes[found].to - 1;
        *ret_from = from;
        *ret_to = end;
        uint32_t c = found + 1;
        for (uint32_t k = from; k <= end; k++) {
            while (c < t.nodes[found].sub_end && t.nodes[c].to <= k) c = t.nodes[c].sub_end;
            const bool is_in = c < t.nodes[found].sub_end && t.nodes[c].from <= k;
            if (k < end && (is_in || text[k] != ',')) continue;
            code_item item = {from, k};
            while (item.from < item.to && strchr(" \t\r\n", text[item.from]) != NULL) item.from++;
            while (item.to > item.from && strchr(" \t\r\n", text[item.to - 1]) != NULL) item.to--;
            if (item.to > item.from) {
                base_grow(&items, &cap, n_items + 1, sizeof *items);
                items[n_items++] = item;
            }
            from = k + 1;
        }
        *ret = items;
        *ret_n = n_items;
    }
    code_tree_free(&t);
    return is_near;
}

#else

bool code_uses_know_locals(const char *language)
{
    return false;
}

code_uses *code_uses_find(code_grammars *g, const char *path, const char *text, size_t n, const char *name)
{
    return NULL;
}

bool code_items(code_grammars *g, const char *path, const char *text, size_t n, uint32_t at,
    uint32_t *ret_from, uint32_t *ret_to, code_item **ret, uint32_t *ret_n)
{
    return false;
}

#endif
