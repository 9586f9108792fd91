/* What a file takes from others: what it imports, and the parents of its types. */
#include "code/uses_work.h"

#ifdef KVIST_HAVE_TREE_SITTER

/* ---- imports ---- */

static void add_import(
    code_finder *f, uint32_t node, const char *module, const char *name, const char *local, bool is_export)
{
    base_grow(&f->u->imports, &f->cap_imports, f->u->n_imports + 1, sizeof *f->u->imports);
    f->u->imports[f->u->n_imports++] =
        (code_import){module, name, local, f->t->nodes[node].from, f->t->nodes[node].to, is_export};
}

static void python_import(code_finder *f, uint32_t i)
{
    const code_tree *t = f->t;
    const bool is_from = finder_is(f, i, "import_from_statement");
    const uint32_t first = finder_first(f, i);
    const char *module = is_from && first != UINT32_MAX ? finder_text(f, first) : "";
    for (uint32_t c = is_from && first != UINT32_MAX ? t->nodes[first].sub_end : i + 1;
         c < t->nodes[i].sub_end; c = t->nodes[c].sub_end) {
        const bool is_alias = finder_is(f, c, "aliased_import");
        const uint32_t name = is_alias ? finder_first(f, c) : c;
        const char *text = finder_text(f, name);
        const char *local = is_alias ? finder_text(f, code_tree_child(t, c, FIELD_ALIAS)) : text;
        if (finder_is(f, c, "wildcard_import"))
            add_import(f, c, module, "*", "*", false);
        else if (is_from)
            add_import(f, c, module, text, local, false);
        else
            add_import(f, c, text, "", local, false); /* import a.b is used as a.b */
    }
}

static void js_import(code_finder *f, uint32_t i)
{
    const code_tree *t = f->t;
    uint32_t source = UINT32_MAX;
    for (uint32_t c = i + 1; c < t->nodes[i].sub_end; c = t->nodes[c].sub_end)
        if (finder_is(f, c, "string")) source = c;
    const bool is_export = finder_is(f, i, "export_statement");
    if (source == UINT32_MAX) return;
    const char *module = finder_unquoted(f, source);
    uint32_t n = 0;
    for (uint32_t c = i + 1; c < t->nodes[i].sub_end; c++) {
        if (finder_is(f, c, "import_specifier") || finder_is(f, c, "export_specifier")) {
            const uint32_t alias = code_tree_child(t, c, FIELD_ALIAS),
                           name = code_tree_child(t, c, FIELD_NAME);
            add_import(f, c, module, finder_text(f, name), finder_text(f, alias != UINT32_MAX ? alias : name),
                is_export);
            n++;
        } else if (finder_is(f, c, "namespace_import")) {
            add_import(f, c, module, "", finder_text(f, finder_first(f, c)), is_export);
            n++;
        } else if (code_tree_is_name(t, c) && finder_is(f, finder_up(f, c), "import_clause")) {
            add_import(f, c, module, "default", finder_text(f, c), is_export);
            n++;
        }
    }
    if (is_export && n == 0) add_import(f, i, module, "*", "*", true);
}

/* const x = require('./m'), const {a, b: c} = require('./m') */
static void js_require(code_finder *f, uint32_t i)
{
    const code_tree *t = f->t;
    const uint32_t name = code_tree_child(t, i, FIELD_NAME), value = code_tree_child(t, i, FIELD_VALUE);
    if (name == UINT32_MAX || value == UINT32_MAX || !finder_is(f, value, "call_expression")) return;
    const uint32_t function = code_tree_child(t, value, FIELD_FUNCTION);
    const uint32_t arguments = code_tree_child(t, value, FIELD_ARGUMENTS);
    if (!finder_says(f, function, "require") || arguments == UINT32_MAX ||
        !finder_is(f, finder_first(f, arguments), "string"))
        return;
    const char *module = finder_unquoted(f, finder_first(f, arguments));
    if (code_tree_is_name(t, name)) {
        add_import(f, name, module, "", finder_text(f, name), false);
        return;
    }
    for (uint32_t c = name + 1; c < t->nodes[name].sub_end; c = t->nodes[c].sub_end) {
        if (finder_is(f, c, "shorthand_property_identifier_pattern")) {
            add_import(f, c, module, finder_text(f, c), finder_text(f, c), false);
        } else if (finder_is(f, c, "pair_pattern")) {
            const uint32_t key = code_tree_child(t, c, FIELD_KEY), local = code_tree_child(t, c, FIELD_VALUE);
            add_import(f, c, module, finder_text(f, key), finder_text(f, local), false);
        }
    }
}

static const char *last_part(const char *s, char mark)
{
    const char *at = strrchr(s, mark);
    return at != NULL ? at + 1 : s;
}

void code_find_import(code_finder *f, uint32_t i)
{
    const code_tree *t = f->t;
    if (f->is_python && (finder_is(f, i, "import_statement") || finder_is(f, i, "import_from_statement"))) {
        python_import(f, i);
    } else if (f->is_js && (finder_is(f, i, "import_statement") || finder_is(f, i, "export_statement"))) {
        js_import(f, i);
    } else if (f->is_js && finder_is(f, i, "variable_declarator")) {
        js_require(f, i);
    } else if (f->is_go && finder_is(f, i, "import_spec")) {
        const uint32_t name = code_tree_child(t, i, FIELD_NAME);
        const uint32_t path = code_tree_first(t, i, true);
        const char *module = finder_unquoted(f, path);
        add_import(
            f, i, module, "", name != UINT32_MAX ? finder_text(f, name) : last_part(module, '/'), false);
    } else if (f->is_java && finder_is(f, i, "import_declaration")) {
        const uint32_t path = finder_first(f, i);
        const char *module = finder_text(f, path);
        const char *last = last_part(module, '.');
        const bool is_all =
            memchr(t->text + t->nodes[i].from, '*', t->nodes[i].to - t->nodes[i].from) != NULL;
        add_import(f, i, module, is_all ? "*" : last, is_all ? "*" : last, false);
    }
}

/* ---- parents ---- */

static void add_base(code_finder *f, const char *name, const char *base)
{
    if (*name == '\0' || *base == '\0') return;
    base_grow(&f->u->bases, &f->cap_bases, f->u->n_bases + 1, sizeof *f->u->bases);
    f->u->bases[f->u->n_bases++] = (code_base){name, base};
}

static bool says_same(const code_finder *f, uint32_t a, uint32_t b)
{
    if (a == UINT32_MAX || b == UINT32_MAX) return a == b;
    const code_node *x = &f->t->nodes[a], *y = &f->t->nodes[b];
    return x->to - x->from == y->to - y->from &&
           memcmp(f->t->text + x->from, f->t->text + y->from, x->to - x->from) == 0;
}

void code_find_bases(code_finder *f, uint32_t i)
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
                if (finder_is(f, k, "type_arguments") || finder_is(f, k, "keyword_argument")) {
                    k = t->nodes[k].sub_end - 1;
                    continue;
                }
                if (code_node_is_one(t, k, scoped)) { /* Outer.Inner, module.Type: the last */
                    add_base(f, finder_text(f, name), finder_text(f, code_type_name(f, k)));
                    k = t->nodes[k].sub_end - 1;
                    continue;
                }
                if (code_tree_is_name(t, k) && !says_same(f, name, k))
                    add_base(f, finder_text(f, name), finder_text(f, k));
            }
        }
    } else if (finder_is(f, i, "impl_item")) { /* impl Trait for Type */
        const uint32_t type = code_tree_child(t, i, FIELD_TYPE);
        uint32_t first = finder_first(f, i);
        if (finder_is(f, first, "type_parameters")) first = t->nodes[first].sub_end;
        if (type != UINT32_MAX && first != type &&
            !says_same(f, code_type_name(f, type), code_type_name(f, first)))
            add_base(f, finder_text(f, code_type_name(f, type)), finder_text(f, code_type_name(f, first)));
    } else if (finder_is(f, i, "type_definition")) { /* typedef struct a {...} b */
        const uint32_t type = code_tree_child(t, i, FIELD_TYPE);
        const uint32_t tag = type != UINT32_MAX ? code_tree_child(t, type, FIELD_NAME) : UINT32_MAX;
        for (uint32_t c = i + 1; tag != UINT32_MAX && c < t->nodes[i].sub_end; c = t->nodes[c].sub_end)
            if (t->nodes[c].field == FIELD_DECLARATOR)
                if (!says_same(f, code_tree_name(t, c), tag))
                    add_base(f, finder_text(f, code_tree_name(t, c)), finder_text(f, tag));
    } else if (f->is_go && finder_is(f, i, "field_declaration") &&
               code_tree_child(t, i, FIELD_NAME) == UINT32_MAX) { /* embedded */
        uint32_t spec = i;
        while (spec != UINT32_MAX && !finder_is(f, spec, "type_spec")) spec = finder_up(f, spec);
        if (spec != UINT32_MAX)
            add_base(f, finder_text(f, code_tree_child(t, spec, FIELD_NAME)),
                finder_text(f, code_type_name(f, code_tree_child(t, i, FIELD_TYPE))));
    }
}

#endif
