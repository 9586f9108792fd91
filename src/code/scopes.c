/*
 * Places that declare a name and the scopes they declare it in (contract: scopes.h). From the name upwards: a
 * few kinds of patterns and declarators may lie between a name and the node that declares it, and from there
 * the next node that is a scope. All of it is by node names, which grammars of a language share.
 */
#include "code/scopes.h"

#ifdef KVIST_HAVE_TREE_SITTER

#include <stdlib.h>
#include <string.h>

enum { MAX_UP = 24 };

bool code_node_is(const code_tree *t, uint32_t i, const char *type)
{
    return i != UINT32_MAX && strcmp(code_tree_type(t, i), type) == 0;
}

bool code_node_is_one(const code_tree *t, uint32_t i, const char *const *types)
{
    if (i == UINT32_MAX) return false;
    const char *type = code_tree_type(t, i);
    for (; *types != NULL; types++)
        if (strcmp(*types, type) == 0) return true;
    return false;
}

static uint32_t up(const code_tree *t, uint32_t i)
{
    return i != UINT32_MAX ? t->nodes[i].parent : UINT32_MAX;
}

static uint8_t field_of(const code_tree *t, uint32_t i)
{
    return t->nodes[i].field;
}

/* The nearest node at or above i of these types; UINT32_MAX: none. */
static uint32_t nearest(const code_tree *t, uint32_t i, const char *const *types)
{
    while (i != UINT32_MAX && !code_node_is_one(t, i, types)) i = up(t, i);
    return i;
}

typedef bool declares_fn(const code_tree *t, uint32_t i, code_site *ret);

/* ---- C and C++ ---- */

static const char *const c_declarators[] = {"pointer_declarator", "array_declarator", "function_declarator",
    "parenthesized_declarator", "init_declarator", "reference_declarator", "attributed_declarator",
    "structured_binding_declarator", NULL};
static const char *const c_scopes[] = {"compound_statement", "for_statement", "if_statement",
    "while_statement", "switch_statement", "for_range_loop", "catch_clause", "lambda_expression",
    "function_definition", NULL};
static const char *const c_outside[] = {
    "translation_unit", "field_declaration_list", "declaration_list", "linkage_specification", NULL};
static const char *const c_parameters[] = {
    "parameter_declaration", "optional_parameter_declaration", "variadic_parameter_declaration", NULL};

static bool has_word(const code_tree *t, uint32_t from, uint32_t to, const char *word)
{
    const char *hit = memmem(t->text + from, to - from, word, strlen(word));
    return hit != NULL;
}

static bool c_declares(const code_tree *t, uint32_t i, code_site *ret)
{
    uint32_t c = i, p = up(t, i);
    bool is_function = false, is_pointer = false;
    for (int n = 0; n < MAX_UP && code_node_is_one(t, p, c_declarators); n++) {
        const bool is_loose = code_node_is(t, p, "parenthesized_declarator") ||
                              code_node_is(t, p, "reference_declarator") ||
                              code_node_is(t, p, "attributed_declarator") ||
                              code_node_is(t, p, "structured_binding_declarator");
        if (!is_loose && field_of(t, c) != FIELD_DECLARATOR) return false;
        if (code_node_is(t, p, "function_declarator")) {
            if (code_node_is(t, c, "parenthesized_declarator")) is_pointer = true;
            is_function = true;
        }
        c = p;
        p = up(t, p);
    }
    if (p == UINT32_MAX) return false;
    ret->visible = t->nodes[i].to;
    if (code_node_is_one(t, p, c_parameters)) {
        if (field_of(t, c) != FIELD_DECLARATOR) return false;
        ret->visible = 0;
        ret->is_parameter = true;
        uint32_t holder = up(t, up(t, p)); /* parameter_list > function_declarator */
        ret->scope = holder;
        while (code_node_is_one(t, holder, c_declarators)) holder = up(t, holder);
        if (code_node_is(t, holder, "function_definition") || code_node_is(t, holder, "lambda_expression"))
            ret->scope = holder;
        return ret->scope != UINT32_MAX;
    }
    if (code_node_is(t, p, "for_range_loop")) {
        ret->scope = p;
        return field_of(t, c) == FIELD_DECLARATOR;
    }
    if (!code_node_is(t, p, "declaration") && !code_node_is(t, p, "type_definition")) return false;
    if (field_of(t, c) != FIELD_DECLARATOR || (is_function && !is_pointer)) return false;
    if (has_word(t, t->nodes[p].from, t->nodes[c].from, "extern")) return false;
    const uint32_t scope = nearest(t, up(t, p), c_scopes), outside = nearest(t, up(t, p), c_outside);
    ret->scope = scope != UINT32_MAX && (outside == UINT32_MAX || scope > outside) ? scope : UINT32_MAX;
    return true;
}

/* ---- Python ---- */

static const char *const py_patterns[] = {"list_splat_pattern", "dictionary_splat_pattern", "pattern_list",
    "tuple_pattern", "list_pattern", "as_pattern_target", "tuple", "list", "list_splat", "dictionary_splat",
    NULL};

/* The function or class whose body holds node i; UINT32_MAX: the module. */
static uint32_t py_scope(const code_tree *t, uint32_t i)
{
    for (uint32_t p = up(t, i); p != UINT32_MAX; i = p, p = up(t, p))
        if ((code_node_is(t, p, "function_definition") || code_node_is(t, p, "class_definition") ||
                code_node_is(t, p, "lambda")) &&
            field_of(t, i) == FIELD_BODY)
            return p;
    return UINT32_MAX;
}

static bool py_declares(const code_tree *t, uint32_t i, code_site *ret)
{
    uint32_t c = i, p = up(t, i);
    ret->visible = 0;
    for (int n = 0; n < MAX_UP && p != UINT32_MAX; n++, c = p, p = up(t, p)) {
        if (code_node_is_one(t, p, py_patterns)) continue;
        const char *type = code_tree_type(t, p);
        const uint8_t field = field_of(t, c);
        if (strcmp(type, "default_parameter") == 0 || strcmp(type, "typed_default_parameter") == 0) {
            if (field != FIELD_NAME) return false;
            continue;
        }
        if (strcmp(type, "typed_parameter") == 0) {
            if (field == FIELD_TYPE) return false;
            continue;
        }
        if (strcmp(type, "parameters") == 0 || strcmp(type, "lambda_parameters") == 0) {
            ret->scope = up(t, p);
            ret->is_parameter = true;
            return true;
        }
        if (strcmp(type, "assignment") == 0 || strcmp(type, "augmented_assignment") == 0 ||
            strcmp(type, "for_statement") == 0) {
            ret->scope = py_scope(t, p);
            return field == FIELD_LEFT;
        }
        if (strcmp(type, "for_in_clause") == 0) {
            ret->scope = up(t, p);
            return field == FIELD_LEFT;
        }
        if (strcmp(type, "named_expression") == 0 || strcmp(type, "function_definition") == 0 ||
            strcmp(type, "class_definition") == 0) {
            ret->scope = py_scope(t, p);
            return field == FIELD_NAME;
        }
        if (strcmp(type, "as_pattern") == 0 || strcmp(type, "aliased_import") == 0) {
            ret->scope = py_scope(t, p);
            return field == FIELD_ALIAS;
        }
        if (strcmp(type, "dotted_name") == 0) {
            const uint32_t holder = up(t, p);
            const bool is_first = c == code_tree_first(t, p, false);
            ret->scope = py_scope(t, p);
            if (code_node_is(t, holder, "import_statement")) return is_first;
            if (code_node_is(t, holder, "import_from_statement"))
                return field_of(t, p) == FIELD_NAME && is_first;
            return code_node_is(t, holder, "case_pattern") && t->nodes[p].sub_end == i + 1;
        }
        return false;
    }
    return false;
}

/* ---- JavaScript and TypeScript ---- */

static const char *const js_patterns[] = {
    "object_pattern", "array_pattern", "rest_pattern", "required_parameter", "optional_parameter", NULL};
static const char *const js_functions[] = {"function_declaration", "function_expression", "function",
    "arrow_function", "method_definition", "generator_function", "generator_function_declaration",
    "function_signature", "method_signature", "function_type", "call_signature", NULL};
static const char *const js_blocks[] = {"statement_block", "for_statement", "for_in_statement", "switch_body",
    "catch_clause", "class_static_block", "function_declaration", "function_expression", "function",
    "arrow_function", "method_definition", "generator_function", "generator_function_declaration", NULL};
static const char *const js_hoisted[] = {"function_declaration", "generator_function_declaration",
    "class_declaration", "abstract_class_declaration", "enum_declaration", "interface_declaration",
    "type_alias_declaration", "function_signature", NULL};

static bool js_declares(const code_tree *t, uint32_t i, code_site *ret)
{
    uint32_t c = i, p = up(t, i);
    ret->visible = 0;
    for (int n = 0; n < MAX_UP && p != UINT32_MAX; n++, c = p, p = up(t, p)) {
        const char *type = code_tree_type(t, p);
        const uint8_t field = field_of(t, c);
        if (code_node_is_one(t, p, js_patterns)) {
            if (field == FIELD_TYPE || field == FIELD_VALUE) return false;
            continue;
        }
        if (strcmp(type, "pair_pattern") == 0) {
            if (field != FIELD_VALUE) return false;
            continue;
        }
        if (strcmp(type, "assignment_pattern") == 0 || strcmp(type, "object_assignment_pattern") == 0) {
            if (field != FIELD_LEFT) return false;
            continue;
        }
        if (strcmp(type, "formal_parameters") == 0) {
            ret->scope = up(t, p);
            ret->is_parameter = true;
            return true;
        }
        if (strcmp(type, "variable_declarator") == 0) {
            if (field != FIELD_NAME) return false;
            ret->scope = nearest(
                t, up(t, p), code_node_is(t, up(t, p), "variable_declaration") ? js_functions : js_blocks);
            return true;
        }
        if (strcmp(type, "arrow_function") == 0 || strcmp(type, "catch_clause") == 0) {
            ret->scope = p;
            ret->is_parameter = true;
            return field == FIELD_PARAMETER;
        }
        if (strcmp(type, "for_in_statement") == 0) {
            ret->scope = p;
            const uint32_t from = t->nodes[p].from, to = t->nodes[c].from;
            return field == FIELD_LEFT && (has_word(t, from, to, "let ") || has_word(t, from, to, "const ") ||
                                              has_word(t, from, to, "var "));
        }
        if (code_node_is_one(t, p, js_hoisted)) {
            ret->scope = nearest(t, up(t, p), js_blocks);
            return field == FIELD_NAME;
        }
        if (strcmp(type, "function_expression") == 0 || strcmp(type, "function") == 0 ||
            strcmp(type, "class") == 0) {
            ret->scope = p;
            return field == FIELD_NAME;
        }
        if (strcmp(type, "import_clause") == 0 || strcmp(type, "namespace_import") == 0) {
            ret->scope = UINT32_MAX;
            return true;
        }
        if (strcmp(type, "import_specifier") == 0) {
            ret->scope = UINT32_MAX;
            return field == FIELD_ALIAS || code_tree_child(t, p, FIELD_ALIAS) == UINT32_MAX;
        }
        return false;
    }
    return false;
}

/* ---- Go ---- */

static const char *const go_functions[] = {"function_declaration", "method_declaration", "func_literal",
    "function_type", "method_spec", "method_elem", NULL};
static const char *const go_blocks[] = {"block", "if_statement", "for_statement",
    "expression_switch_statement", "type_switch_statement", "select_statement", "expression_case",
    "type_case", "default_case", "communication_case", "function_declaration", "method_declaration",
    "func_literal", NULL};

static bool go_declares(const code_tree *t, uint32_t i, code_site *ret)
{
    uint32_t c = i, p = up(t, i);
    if (code_node_is(t, p, "expression_list")) {
        c = p;
        p = up(t, p);
    }
    if (p == UINT32_MAX) return false;
    const char *type = code_tree_type(t, p);
    const uint8_t field = field_of(t, c);
    if (strcmp(type, "parameter_declaration") == 0 || strcmp(type, "variadic_parameter_declaration") == 0) {
        ret->scope = nearest(t, p, go_functions);
        ret->is_parameter = true;
        if (field != FIELD_NAME || ret->scope == UINT32_MAX) return false;
        const uint32_t body = code_tree_child(t, ret->scope, FIELD_BODY); /* func f(item item) */
        ret->visible = body != UINT32_MAX ? t->nodes[body].from : t->nodes[ret->scope].to;
        return true;
    }
    ret->visible = t->nodes[p].to;
    ret->scope = nearest(t, up(t, p), go_blocks);
    if (strcmp(type, "short_var_declaration") == 0) return field == FIELD_LEFT;
    if (strcmp(type, "range_clause") == 0 || strcmp(type, "receive_statement") == 0) {
        const uint32_t right = code_tree_child(t, p, FIELD_RIGHT);
        return field == FIELD_LEFT && right != UINT32_MAX &&
               has_word(t, t->nodes[c].to, t->nodes[right].from, ":=");
    }
    if (strcmp(type, "type_switch_statement") == 0) {
        ret->scope = p;
        ret->visible = 0;
        return field == FIELD_ALIAS;
    }
    if (strcmp(type, "var_spec") == 0 || strcmp(type, "const_spec") == 0 || strcmp(type, "type_spec") == 0 ||
        strcmp(type, "type_alias") == 0) {
        if (ret->scope == UINT32_MAX) ret->visible = 0;
        return field == FIELD_NAME;
    }
    if (strcmp(type, "function_declaration") == 0) {
        ret->scope = UINT32_MAX;
        ret->visible = 0;
        return field == FIELD_NAME;
    }
    return false;
}

/* ---- Java ---- */

static const char *const java_scopes[] = {"block", "method_declaration", "constructor_declaration",
    "compact_constructor_declaration", "lambda_expression", "for_statement", "enhanced_for_statement",
    "catch_clause", "try_with_resources_statement", "switch_block_statement_group", "switch_rule",
    "constructor_body", "static_initializer", NULL};

static bool java_declares(const code_tree *t, uint32_t i, code_site *ret)
{
    const uint32_t p = up(t, i), holder = up(t, p);
    if (p == UINT32_MAX) return false;
    const char *type = code_tree_type(t, p);
    const uint8_t field = field_of(t, i);
    ret->visible = 0;
    ret->scope = nearest(t, up(t, p), java_scopes);
    if (strcmp(type, "formal_parameter") == 0 || strcmp(type, "catch_formal_parameter") == 0 ||
        strcmp(type, "resource") == 0) {
        ret->is_parameter = strcmp(type, "formal_parameter") == 0;
        if (code_node_is(t, up(t, holder), "record_declaration")) return false;
        return field == FIELD_NAME && ret->scope != UINT32_MAX;
    }
    if (strcmp(type, "variable_declarator") == 0) {
        if (field != FIELD_NAME || code_node_is(t, holder, "field_declaration") ||
            code_node_is(t, holder, "constant_declaration"))
            return false;
        if (code_node_is(t, holder, "spread_parameter")) ret->is_parameter = true;
        if (!ret->is_parameter) ret->visible = t->nodes[i].from;
        return ret->scope != UINT32_MAX;
    }
    if (strcmp(type, "enhanced_for_statement") == 0) {
        ret->scope = p;
        return field == FIELD_NAME;
    }
    if (strcmp(type, "inferred_parameters") == 0) {
        ret->scope = holder;
        return true;
    }
    if (strcmp(type, "lambda_expression") == 0) {
        ret->scope = p;
        return field == FIELD_PARAMETERS;
    }
    if (strcmp(type, "instanceof_expression") == 0 || strcmp(type, "type_pattern") == 0 ||
        strcmp(type, "record_pattern_component") == 0)
        return field == FIELD_NAME ||
               (strcmp(type, "instanceof_expression") != 0 && i == code_tree_first(t, p, true));
    return false;
}

/* ---- Rust ---- */

static const char *const rust_patterns[] = {"tuple_pattern", "ref_pattern", "mut_pattern",
    "reference_pattern", "tuple_struct_pattern", "struct_pattern", "field_pattern", "slice_pattern",
    "captured_pattern", "or_pattern", NULL};
static const char *const rust_scopes[] = {"block", "function_item", "closure_expression", "for_expression",
    "match_arm", "if_expression", "while_expression", "if_let_expression", "while_let_expression",
    "function_signature_item", NULL};

static bool rust_declares(const code_tree *t, uint32_t i, code_site *ret)
{
    uint32_t c = i, p = up(t, i);
    const char first = t->text[t->nodes[i].from];
    if (first >= 'A' && first <= 'Z') return false; /* in a pattern a constant or a variant */
    ret->visible = 0;
    for (int n = 0; n < MAX_UP && p != UINT32_MAX; n++, c = p, p = up(t, p)) {
        const char *type = code_tree_type(t, p);
        const uint8_t field = field_of(t, c);
        if (code_node_is_one(t, p, rust_patterns)) {
            if (field == FIELD_TYPE) return false;
            if (strcmp(type, "field_pattern") == 0 && field == FIELD_NAME &&
                code_tree_child(t, p, FIELD_PATTERN) != UINT32_MAX)
                return false;
            continue;
        }
        ret->scope = nearest(t, up(t, p), rust_scopes);
        if (strcmp(type, "let_declaration") == 0) {
            ret->visible = t->nodes[p].to;
            return field == FIELD_PATTERN;
        }
        if (strcmp(type, "parameter") == 0) {
            ret->is_parameter = true;
            return field == FIELD_PATTERN;
        }
        if (strcmp(type, "closure_parameters") == 0) {
            ret->scope = up(t, p);
            return true;
        }
        if (strcmp(type, "match_pattern") == 0) return field != FIELD_CONDITION;
        if (strcmp(type, "for_expression") == 0) {
            ret->scope = p;
            ret->visible = t->nodes[c].to;
            return field == FIELD_PATTERN;
        }
        if (strcmp(type, "let_condition") == 0 || strcmp(type, "if_let_expression") == 0 ||
            strcmp(type, "while_let_expression") == 0)
            return field == FIELD_PATTERN;
        return false;
    }
    return false;
}

/* ---- all ---- */

static const struct {
    const char *language;
    declares_fn *declares;
    bool shadows_in_place; /* a second declaration in one scope is another variable */
} languages[] = {
    {"c", c_declares, false},
    {"cpp", c_declares, false},
    {"python", py_declares, false},
    {"javascript", js_declares, false},
    {"typescript", js_declares, false},
    {"tsx", js_declares, false},
    {"go", go_declares, false},
    {"java", java_declares, false},
    {"rust", rust_declares, true},
};

static size_t language_of(const char *language)
{
    size_t l = 0;
    while (l < sizeof languages / sizeof *languages && strcmp(languages[l].language, language) != 0) l++;
    return l;
}

bool code_scopes_know(const char *language)
{
    return language != NULL && language_of(language) < sizeof languages / sizeof *languages;
}

void code_scopes_find(const code_tree *t, const char *name, size_t n, code_scopes *ret)
{
    size_t cap = 0, cap_globals = 0;
    const size_t l = language_of(t->g->name);
    *ret = (code_scopes){.t = t};
    if (l == sizeof languages / sizeof *languages) return;
    for (uint32_t i = 0; i < t->n; i++) {
        const code_node *a = &t->nodes[i];
        if (a->to - a->from != n || !code_tree_is_name(t, i) || memcmp(t->text + a->from, name, n) != 0)
            continue;
        code_site site = {.node = i, .scope = UINT32_MAX};
        if (languages[l].declares(t, i, &site)) {
            site.node = i;
            base_grow(&ret->sites, &cap, ret->n + 1, sizeof *ret->sites);
            ret->sites[ret->n++] = site;
        } else if (code_node_is(t, up(t, i), "global_statement") ||
                   code_node_is(t, up(t, i), "nonlocal_statement")) {
            base_grow(&ret->globals, &cap_globals, ret->n_globals + 1, sizeof *ret->globals);
            ret->globals[ret->n_globals++] = up(t, i);
        }
    }
}

void code_scopes_free(code_scopes *s)
{
    free(s->sites);
    free(s->globals);
    *s = (code_scopes){0};
}

/* Does the function say `global x` (1), `nonlocal x` (2) or neither? */
static int said_of(const code_scopes *s, uint32_t function)
{
    for (uint32_t k = 0; k < s->n_globals; k++)
        if (py_scope(s->t, s->globals[k]) == function)
            return code_node_is(s->t, s->globals[k], "global_statement") ? 1 : 2;
    return 0;
}

static const code_site *site_in(const code_scopes *s, uint32_t scope, uint32_t use, bool is_last)
{
    const code_site *found = NULL;
    const uint32_t at = s->t->nodes[use].from;
    for (uint32_t k = 0; k < s->n; k++) {
        const code_site *x = &s->sites[k];
        if (x->scope != scope) continue;
        if (x->node == use) return is_last ? x : found != NULL ? found : x;
        if (x->visible <= at && (found == NULL || is_last)) found = x;
    }
    return found;
}

const code_site *code_scopes_lookup(const code_scopes *s, uint32_t i)
{
    const code_tree *t = s->t;
    if (s->n == 0) return NULL;
    const size_t l = language_of(t->g->name);
    const bool is_python = strcmp(t->g->name, "python") == 0;
    bool is_crossed = false; /* a function of Python: class bodies around it are not seen from inside */
    uint32_t c = i;
    /* Where it declares, its own scope may lie above nodes that are scopes of others. */
    for (uint32_t k = 0; k < s->n; k++)
        if (s->sites[k].node == i && s->sites[k].scope != UINT32_MAX) {
            if (is_python && said_of(s, s->sites[k].scope) == 1) return NULL;
            if (is_python && said_of(s, s->sites[k].scope) == 2) break;
            return site_in(s, s->sites[k].scope, i, languages[l].shadows_in_place);
        } else if (s->sites[k].node == i) {
            return NULL;
        }
    for (uint32_t p = t->nodes[i].parent; p != UINT32_MAX; c = p, p = t->nodes[p].parent) {
        if (is_python) {
            const bool is_class = code_node_is(t, p, "class_definition");
            const bool is_function = code_node_is(t, p, "function_definition");
            /* Defaults, decorators, annotations and bases are read outside. */
            if ((is_class || is_function) && t->nodes[c].field != FIELD_BODY) continue;
            if (is_class && is_crossed) continue;
            if (is_function) {
                const int said = said_of(s, p);
                is_crossed = true;
                if (said == 1) return NULL;
                if (said == 2) continue;
            }
        }
        const code_site *found = site_in(s, p, i, languages[l].shadows_in_place);
        if (found != NULL) return found;
    }
    return NULL;
}

const code_site *code_scopes_global(const code_scopes *s)
{
    for (uint32_t k = 0; k < s->n; k++)
        if (s->sites[k].scope == UINT32_MAX) return &s->sites[k];
    return NULL;
}

#endif
