/* Of which type the object in front of a member is, as far as one file says. */
#include "code/uses_work.h"

#ifdef KVIST_HAVE_TREE_SITTER

enum { MAX_NEAR = 8 };

uint32_t code_type_name(const code_finder *f, uint32_t i)
{
    static const char *const last[] = {"attribute", "member_expression", "nested_type_identifier",
        "scoped_type_identifier", "scoped_identifier", "qualified_identifier", "qualified_type",
        "selector_expression", NULL};
    static const char *const wrappers[] = {
        "Optional", "Type", "Final", "ClassVar", "Partial", "Readonly", "Required", "NonNullable", NULL};
    for (int depth = 0; depth < 12 && i != UINT32_MAX; depth++) {
        if (code_tree_is_name(f->t, i)) return i;
        const char *type = code_tree_type(f->t, i);
        if (finder_is(f, i, "generic_type") || finder_is(f, i, "subscript")) { /* Optional[Foo] is Foo */
            const uint32_t head = finder_first(f, i);
            bool wraps = false;
            for (size_t k = 0; wrappers[k] != NULL; k++) wraps = wraps || finder_says(f, head, wrappers[k]);
            i = wraps ? code_tree_first(f->t, i, true) : head;
            continue;
        }
        if (strstr(type, "array") != NULL || strstr(type, "slice") != NULL || strstr(type, "map") != NULL ||
            strstr(type, "union") != NULL || strstr(type, "function") != NULL ||
            strstr(type, "declaration_list") != NULL || strcmp(type, "object_type") == 0) /* without a name */
            if (strcmp(type, "union_specifier") != 0) return UINT32_MAX;
        i = code_tree_first(f->t, i, code_node_is_one(f->t, i, last));
    }
    return UINT32_MAX;
}

static void infer_site(code_finder *f, const code_site *site, code_use *use);

void code_set_object(code_use *use, code_object kind, const char *object)
{
    use->object_kind = (uint8_t)kind;
    use->object = object;
}

/* this.name in Java and TypeScript: the type that the file's fields of that name are declared with, where they agree. */
static void infer_field(code_finder *f, uint32_t e, code_use *use)
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
        uint32_t holder = finder_up(f, i);
        if (finder_is(f, holder, "variable_declarator")) holder = finder_up(f, holder);
        if (!finder_is(f, holder, "field_declaration") && !finder_is(f, holder, "public_field_definition"))
            continue;
        const uint32_t declared = code_tree_child(t, holder, FIELD_TYPE),
                       found = declared != UINT32_MAX ? code_type_name(f, declared) : UINT32_MAX;
        const char *said = found != UINT32_MAX ? finder_text(f, found) : "";
        if (type && strcmp(type, said) != 0) return;
        type = said;
    }
    if (type && *type) code_set_object(use, CODE_OBJECT_TYPED, type);
}

void code_infer_object(code_finder *f, uint32_t e, code_use *use)
{
    static const char *const through[] = {"parenthesized_expression", "pointer_expression",
        "unary_expression", "await", "await_expression", "reference_expression", "expression_list",
        "non_null_expression", NULL};
    static const char *const selves[] = {"self", "this", "cls", "super", "Self", NULL};
    const code_tree *t = f->t;
    for (int depth = 0; depth < MAX_NEAR && code_node_is_one(t, e, through); depth++) e = finder_first(f, e);
    use->object_kind = CODE_OBJECT_UNKNOWN;
    if (e == UINT32_MAX) return;
    const char *type = code_tree_type(t, e);
    for (size_t k = 0; selves[k] != NULL; k++)
        if (strcmp(type, selves[k]) == 0 || finder_says(f, e, selves[k])) {
            code_set_object(use, CODE_OBJECT_SELF, use->holder);
            return;
        }
    if (code_tree_is_name(t, e)) {
        code_scopes scopes;
        code_scopes_find(t, t->text + t->nodes[e].from, t->nodes[e].to - t->nodes[e].from, &scopes);
        const code_site *site = code_scopes_lookup(&scopes, e);
        if (site == NULL) site = code_scopes_global(&scopes);
        code_set_object(use, CODE_OBJECT_NAMED, finder_text(f, e));
        if (site != NULL) infer_site(f, site, use);
        code_scopes_free(&scopes);
        return;
    }
    if (strcmp(type, "call") == 0 || strcmp(type, "call_expression") == 0) {
        const uint32_t function = code_tree_child(t, e, FIELD_FUNCTION);
        if (f->is_js && finder_says(f, function, "require")) {
            const uint32_t given = finder_first(f, code_tree_child(t, e, FIELD_ARGUMENTS));
            if (finder_is(f, given, "string"))
                code_set_object(use, CODE_OBJECT_MODULE, finder_unquoted(f, given));
        } else if (finder_is(f, function, "identifier") && finder_says(f, function, "super"))
            code_set_object(use, CODE_OBJECT_SELF, use->holder);
        else if (function != UINT32_MAX && code_type_name(f, function) != UINT32_MAX)
            code_set_object(use, CODE_OBJECT_CALLED, finder_text(f, code_type_name(f, function)));
        return;
    }
    if (strcmp(type, "field_access") == 0 || strcmp(type, "member_expression") == 0) {
        infer_field(f, e, use);
        return;
    }
    if (strcmp(type, "method_invocation") == 0) {
        const uint32_t name = code_tree_child(t, e, FIELD_NAME);
        if (name == finder_first(f, e)) code_set_object(use, CODE_OBJECT_CALLED, finder_text(f, name));
        return;
    }
    if (strcmp(type, "new_expression") == 0 || strcmp(type, "object_creation_expression") == 0 ||
        strcmp(type, "composite_literal") == 0 || strcmp(type, "struct_expression") == 0 ||
        strcmp(type, "cast_expression") == 0 || strcmp(type, "compound_literal_expression") == 0) {
        uint32_t made = code_tree_child(t, e, FIELD_TYPE);
        if (made == UINT32_MAX) made = finder_first(f, e);
        const uint32_t name = code_type_name(f, made);
        if (name != UINT32_MAX) code_set_object(use, CODE_OBJECT_TYPED, finder_text(f, name));
        return;
    }
    if (strstr(type, "string") != NULL || strstr(type, "literal") != NULL || strcmp(type, "list") == 0 ||
        strcmp(type, "dictionary") == 0 || strcmp(type, "array") == 0 || strcmp(type, "integer") == 0 ||
        strcmp(type, "number") == 0 || strcmp(type, "regex") == 0)
        code_set_object(use, CODE_OBJECT_LITERAL, "");
}

static void infer_site(code_finder *f, const code_site *site, code_use *use)
{
    static const char *const ends[] = {"parameters", "formal_parameters", "parameter_list", "block", "module",
        "import_statement", "import_from_statement", "import_specifier", "import_clause", "namespace_import",
        "translation_unit", "program", "source_file", NULL};
    static const char *const unsaid[] = {"auto", "var", "Any", "object", "any", "Object", "interface", NULL};
    const code_tree *t = f->t;
    uint32_t c = site->node;
    if (finder_is(f, finder_up(f, c), "class_definition") ||
        finder_is(f, finder_up(f, c), "class_declaration"))
        return; /* a type's name */
    for (int depth = 0; depth < MAX_NEAR; depth++) {
        const uint32_t p = finder_up(f, c);
        if (p == UINT32_MAX) return;
        if (code_node_is_one(t, p, ends)) {
            const bool is_imported = strstr(code_tree_type(t, p), "import") != NULL;
            if (!is_imported) code_set_object(use, CODE_OBJECT_UNKNOWN, "");
            return;
        }
        if (finder_is(f, p, "dotted_name") || finder_is(f, p, "aliased_import"))
            return; /* import x: a module by its name */
        uint32_t type = code_tree_child(t, p, FIELD_TYPE);
        /* Foo x = null: the type stands one node higher, and says more than the value. */
        if (type == UINT32_MAX &&
            (finder_is(f, p, "variable_declarator") || finder_is(f, p, "init_declarator")))
            type = code_tree_child(t, finder_up(f, p), FIELD_TYPE);
        if (type != UINT32_MAX && type != c) {
            const uint32_t name = code_type_name(f, type);
            bool is_said = name != UINT32_MAX;
            for (size_t k = 0; is_said && unsaid[k] != NULL; k++) is_said = !finder_says(f, name, unsaid[k]);
            if (is_said)
                code_set_object(use, CODE_OBJECT_TYPED, finder_text(f, name));
            else
                code_set_object(use, CODE_OBJECT_UNKNOWN, "");
            if (is_said || code_type_name(f, type) == UINT32_MAX) return;
        }
        uint32_t value = code_tree_child(t, p, FIELD_VALUE);
        if (value == UINT32_MAX) value = code_tree_child(t, p, FIELD_RIGHT);
        if (value != UINT32_MAX && value != c) {
            static const char *const loops[] = {
                "for_statement", "for_in_clause", "for_in_statement", "range_clause", "for_range_loop", NULL};
            const bool is_require = finder_is(f, value, "call_expression") &&
                                    finder_says(f, code_tree_child(t, value, FIELD_FUNCTION), "require");
            if (is_require) return;
            code_set_object(use, CODE_OBJECT_UNKNOWN, "");
            if (code_node_is_one(t, p, loops) || finder_is(f, c, "pattern_list") ||
                finder_is(f, c, "tuple_pattern"))
                return;
            if (finder_is(f, c, "expression_list") && finder_first(f, c) != site->node) return;
            /* The value's own variable would have to be followed as well: one step is enough. */
            if (!code_tree_is_name(t, value)) code_infer_object(f, value, use);
            return;
        }
        c = p;
    }
    code_set_object(use, CODE_OBJECT_UNKNOWN, "");
}

#endif
