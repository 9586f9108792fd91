/*
 * The places of one name in one file (contract: uses.h): each leaf of the tree that is an identifier of that
 * name, by what its parent is; and each whole word of that name in comments, strings and macros.
 */
#include "code/uses_work.h"

#include <stdlib.h>

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

static bool is_type_definition(const char *what)
{
    static const char *const types[] = {"class", "struct", "union", "enum", "interface", "type", "typedef"};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (strcmp(what, types[i]) == 0) return true;
    return false;
}

/* JavaScript: is this the member of a literal whose value is an arrow function? There `this` is what it is around it. */
static bool is_arrow(const code_finder *f, const code_definition *d)
{
    static const char async[] = "async ", word[] = "function";
    const char *text = f->t->text + d->name_from + strlen(d->name), *end = f->t->text + d->to;
    while (text < end && *text == ' ') text++;
    if (text >= end || (*text != ':' && *text != '=')) return false; /* name() { ... } */
    text += 1 + strspn(text + 1, " \t\r\n");
    if (strncmp(text, async, sizeof async - 1) == 0) text += sizeof async - 1;
    return text < end && strncmp(text, word, sizeof word - 1) != 0;
}

/* The innermost type around a byte: a class, or the type of a method's receiver. */
static const char *holder_of(const code_finder *f, uint32_t byte)
{
    const code_file *file = f->u->file;
    const char *holder = "";
    for (uint32_t d = 0; d < file->n_definitions && file->definitions[d].from <= byte; d++) {
        const code_definition *x = &file->definitions[d];
        if (byte >= x->to) continue;
        if (is_type_definition(x->what))
            holder = x->name;
        else if (strcmp(x->what, "method") == 0 && *x->parent != '\0' && !(f->is_js && is_arrow(f, x)))
            holder = x->parent;
    }
    return holder;
}

/* ---- roles ---- */

static bool is_member_of(const code_finder *f, uint32_t i, uint32_t p)
{
    static const char *const members[] = {"attribute", "member_expression", "field_expression",
        "selector_expression", "field_access", "scoped_identifier", "scoped_type_identifier",
        "qualified_identifier", "qualified_type", "nested_type_identifier", "nested_identifier",
        "method_reference", "navigation_expression", "member_access_expression", "member_call_expression",
        "scoped_call_expression", NULL};
    if (finder_is(f, p, "method_invocation"))
        return f->t->nodes[i].field == FIELD_NAME && finder_first(f, p) != i;
    return code_node_is_one(f->t, p, members) && finder_first(f, p) != i;
}

/* Rust: x.name in what a macro is given, of which the tree has single words. */
static bool is_member_in_tokens(const code_finder *f, uint32_t i)
{
    const uint32_t from = f->t->nodes[i].from;
    return finder_is(f, finder_up(f, i), "token_tree") && from && f->t->text[from - 1] == '.';
}

/* Java keeps fields and methods in different drawers. */
static bool is_called(const code_finder *f, uint32_t i, uint32_t p)
{
    const code_tree *t = f->t;
    if (finder_is(f, p, "method_invocation")) return t->nodes[i].field == FIELD_NAME;
    if (finder_is(f, p, "method_reference")) return true;
    if (finder_is(f, p, "token_tree")) return f->t->text[t->nodes[i].to] == '(';
    const uint32_t callee = is_member_of(f, i, p) ? p : i, call = finder_up(f, callee);
    return call != UINT32_MAX && code_tree_child(t, call, FIELD_FUNCTION) == callee;
}

static uint8_t role_of(const code_finder *f, uint32_t i)
{
    static const char *const labels[] = {"statement_identifier", "label_name", "label", NULL};
    static const char *const keys[] = {"field_designator", "field_initializer", "pair", "pair_pattern",
        "keyword_argument", "element_value_pair", "field_pattern", NULL};
    const uint32_t p = finder_up(f, i);
    const uint8_t field = f->t->nodes[i].field;
    /* An error around a whole definition says nothing of what stands in it. */
    for (uint32_t a = p; a != UINT32_MAX && code_tree_row(f->t, a)->what == NULL; a = finder_up(f, a))
        if (f->t->nodes[a].symbol == UINT16_MAX) return CODE_USE_UNREAD;
    if (code_node_is_one(f->t, i, labels) || finder_is(f, p, "lifetime")) return CODE_USE_LABEL;
    if (finder_is(f, i, "shorthand_property_identifier") ||
        finder_is(f, i, "shorthand_property_identifier_pattern") ||
        finder_is(f, p, "shorthand_field_initializer"))
        return CODE_USE_NAME;
    if (code_node_is_one(f->t, p, keys)) {
        const bool is_key =
            field == FIELD_KEY || field == FIELD_NAME || field == FIELD_FIELD || finder_first(f, p) == i;
        if (is_key) return CODE_USE_KEY;
    }
    if (finder_is(f, p, "literal_element") && finder_is(f, finder_up(f, p), "keyed_element") &&
        finder_first(f, finder_up(f, p)) == p)
        return CODE_USE_KEY;
    if (finder_is(f, i, "shorthand_field_identifier")) return CODE_USE_NAME;
    if (is_member_of(f, i, p) || is_member_in_tokens(f, i)) return CODE_USE_MEMBER;
    if (finder_is(f, i, "field_identifier") || finder_is(f, i, "property_identifier") ||
        finder_is(f, i, "private_property_identifier"))
        return CODE_USE_MEMBER;
    return CODE_USE_NAME;
}

/* The function or type whose argument or field a key names. */
static const char *callee_of(code_finder *f, uint32_t i)
{
    static const char *const holders[] = {"call", "call_expression", "composite_literal", "struct_expression",
        "new_expression", "init_declarator", "compound_literal_expression", NULL};
    uint32_t p = finder_up(f, i);
    if (finder_is(f, p, "literal_element"))
        p = finder_up(f, p); /* Go: the key is an element of its own keyed_element */
    for (int depth = 0; depth < MAX_NEAR && p != UINT32_MAX; depth++, p = finder_up(f, p)) {
        if (depth > 0 && finder_is(f, p, "keyed_element")) return ""; /* of a literal inside a literal */
        if (!code_node_is_one(f->t, p, holders) && !finder_is(f, p, "keyed_element")) continue;
        uint32_t head = code_tree_child(f->t, p, FIELD_FUNCTION);
        if (finder_is(f, p, "init_declarator")) head = code_tree_child(f->t, finder_up(f, p), FIELD_TYPE);
        if (head == UINT32_MAX) head = code_tree_child(f->t, p, FIELD_TYPE);
        if (head == UINT32_MAX) head = code_tree_child(f->t, p, FIELD_NAME);
        if (head == UINT32_MAX && !finder_is(f, p, "keyed_element")) head = finder_first(f, p);
        if (finder_is(f, p, "keyed_element")) continue;
        return finder_text(f, code_type_name(f, head));
    }
    return "";
}

/* What leaves the module under this name: export {x}, module.exports = {x}, exports.x. */
static bool is_export(const code_finder *f, uint32_t i)
{
    uint32_t p = finder_up(f, i);
    if (finder_is(f, p, "export_specifier")) return true;
    if (finder_is(f, p, "member_expression")) { /* exports.x, module.exports.x */
        const uint32_t object = finder_first(f, p);
        return object != i && (finder_says(f, object, "exports") || finder_says(f, object, "module.exports"));
    }
    if (finder_is(f, p, "pair") && f->t->nodes[i].field == FIELD_KEY) p = finder_up(f, p);
    if (!finder_is(f, p, "object") || !finder_is(f, finder_up(f, p), "assignment_expression")) return false;
    const uint32_t left = code_tree_child(f->t, finder_up(f, p), FIELD_LEFT);
    return finder_says(f, left, "module.exports") || finder_says(f, left, "exports");
}

static code_use *add_use(code_finder *f, uint32_t from, uint8_t role)
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
        .through = "",
        .within = "",
        .holder = holder_of(f, from),
        .callee = ""};
    return use;
}

static void bind(code_finder *f, uint32_t i, code_use *use)
{
    const code_site *site = code_scopes_lookup(&f->scopes, i);
    if (site == NULL) return;
    if (f->is_python &&
        finder_is(f, site->scope, "class_definition")) { /* what a class body binds is a member */
        use->role = CODE_USE_MEMBER;
        code_set_object(
            use, CODE_OBJECT_SELF, finder_text(f, code_tree_child(f->t, site->scope, FIELD_NAME)));
        return;
    }
    use->binding = f->t->nodes[site->node].from;
    use->is_parameter = site->is_parameter && site->node == i;
}

/* new Type() { here }: the class has no name, its members are those of Type. */
static void find_unnamed(code_finder *f, uint32_t i, code_use *use)
{
    uint32_t body = finder_up(f, i);
    while (body != UINT32_MAX && !finder_is(f, body, "class_body")) body = finder_up(f, body);
    if (body == UINT32_MAX || !finder_is(f, finder_up(f, body), "object_creation_expression")) return;
    use->is_unnamed = true;
    use->holder = finder_text(f, code_type_name(f, code_tree_child(f->t, finder_up(f, body), FIELD_TYPE)));
}

/* C: what is declared with the unnamed struct or union that holds the field at node i. */
static const char *within_of(code_finder *f, uint32_t i)
{
    uint32_t type = finder_up(f, i);
    for (; type != UINT32_MAX; type = finder_up(f, type)) {
        if (!finder_is(f, type, "struct_specifier") && !finder_is(f, type, "union_specifier")) continue;
        if (code_tree_child(f->t, type, FIELD_NAME) != UINT32_MAX) return "";
        const uint32_t holder = finder_up(f, type),
                       declarator = holder != UINT32_MAX ? code_tree_child(f->t, holder, FIELD_DECLARATOR)
                                                         : UINT32_MAX;
        if (finder_is(f, holder, "type_definition")) return "";
        if (declarator != UINT32_MAX) return finder_text(f, code_tree_name(f->t, declarator));
        /* without a member of its own its fields are those of the type around it */
    }
    return "";
}

/* C: of a.b, a->b[i], (a.b) the member b. */
static const char *through_of(code_finder *f, uint32_t object)
{
    static const char *const around[] = {
        "parenthesized_expression", "subscript_expression", "pointer_expression", NULL};
    for (int depth = 0; depth < MAX_NEAR && code_node_is_one(f->t, object, around); depth++)
        object = finder_first(f, object);
    if (!finder_is(f, object, "field_expression")) return "";
    return finder_text(f, code_tree_child(f->t, object, FIELD_FIELD));
}

static void find_use(code_finder *f, uint32_t i)
{
    const code_tree *t = f->t;
    uint32_t from = t->nodes[i].from;
    from += from < t->nodes[i].to && t->text[from] == '#'; /* private in JavaScript */
    if (t->nodes[i].to - from != f->n_name || memcmp(t->text + from, f->name, f->n_name) != 0) return;
    code_use *use = add_use(f, from, role_of(f, i));
    const code_file *file = f->u->file;
    const uint32_t p = finder_up(f, i);
    for (uint32_t d = 0; d < file->n_definitions; d++)
        if (file->definitions[d].name_from == from) use->definition = d;
    use->is_call = is_called(f, i, p);
    use->is_type = finder_is(f, i, "type_identifier");
    use->is_tag = t->nodes[i].field == FIELD_NAME &&
                  (finder_is(f, p, "struct_specifier") || finder_is(f, p, "union_specifier") ||
                      finder_is(f, p, "enum_specifier"));
    use->is_shorthand = finder_is(f, i, "shorthand_property_identifier") ||
                        finder_is(f, i, "shorthand_property_identifier_pattern") ||
                        finder_is(f, p, "shorthand_field_initializer") ||
                        finder_is(f, i, "shorthand_field_identifier");
    use->is_exported = f->is_js && is_export(f, i);
    for (uint32_t k = 0; k < f->u->n_imports; k++)
        if (f->u->imports[k].from <= from && from < f->u->imports[k].to) use->import = k;
    if (f->is_java) find_unnamed(f, i, use);
    /* Java: a method and a variable of one name are two things. */
    const bool is_method = f->is_java && t->nodes[i].field == FIELD_NAME &&
                           (finder_is(f, p, "method_invocation") || finder_is(f, p, "method_declaration"));
    if (use->role == CODE_USE_NAME && !is_method)
        bind(f, i, use);
    else if (use->role == CODE_USE_KEY)
        use->callee = callee_of(f, i);
    else if (use->role == CODE_USE_MEMBER && use->definition == UINT32_MAX && is_member_of(f, i, p)) {
        code_infer_object(f, finder_first(f, p), use);
        if (code_tree_is_name(t, finder_first(f, p))) use->before = finder_text(f, finder_first(f, p));
        if (f->is_c) use->through = through_of(f, finder_first(f, p));
    } else if (f->is_c && use->role == CODE_USE_MEMBER && use->definition != UINT32_MAX) {
        use->within = within_of(f, i);
    }
    /* What a module imports under its own name and what it exports is no local of a function. */
    if (use->definition != UINT32_MAX && use->binding != UINT32_MAX &&
        strcmp(file->definitions[use->definition].what, "field") == 0 &&
        !use->is_type) /* Go: an embedded one */
        use->binding = UINT32_MAX;
}

/* Whole words of the name between two bytes. */
static void find_words(code_finder *f, uint32_t from, uint32_t to, uint8_t role)
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
static bool is_macro_parameter(const code_finder *f, uint32_t i)
{
    const uint32_t parameters = code_tree_child(f->t, finder_up(f, i), FIELD_PARAMETERS);
    if (parameters == UINT32_MAX) return false;
    for (uint32_t c = parameters + 1; c < f->t->nodes[parameters].sub_end; c++)
        if (f->t->nodes[c].to - f->t->nodes[c].from == f->n_name &&
            memcmp(f->t->text + f->t->nodes[c].from, f->name, f->n_name) == 0)
            return true;
    return false;
}

/* Text without names: comments, strings, the bodies of macros. */
static void find_text(code_finder *f, uint32_t i)
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
    for (int depth = 0; f->is_python && is_string && depth < 4 && a != UINT32_MAX;
         depth++, a = finder_up(f, a))
        is_exported = is_exported || (finder_is(f, a, "assignment") &&
                                         finder_says(f, code_tree_child(t, a, FIELD_LEFT), "__all__"));
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
static void find_rest(code_finder *f, size_t n)
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
    code_finder f = {.t = &tree,
        .u = base_xcalloc(1, sizeof *f.u),
        .name = name,
        .n_name = strlen(name),
        .is_c = strcmp(language, "c") == 0 || strcmp(language, "cpp") == 0,
        .is_python = strcmp(language, "python") == 0,
        .is_java = strcmp(language, "java") == 0,
        .is_go = strcmp(language, "go") == 0,
        .is_js = strcmp(language, "javascript") == 0 || strcmp(language, "typescript") == 0 ||
                 strcmp(language, "tsx") == 0};
    f.u->file = code_parse_tree(&tree);
    code_scopes_find(&tree, name, f.n_name, &f.scopes);
    for (uint32_t i = 0; i < tree.n; i++) {
        code_find_import(&f, i);
        code_find_bases(&f, i);
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

#else

bool code_uses_know_locals(const char *language)
{
    return false;
}

code_uses *code_uses_find(code_grammars *g, const char *path, const char *text, size_t n, const char *name)
{
    return NULL;
}

#endif
