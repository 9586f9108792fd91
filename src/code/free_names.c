/* Names that a piece of a text takes from around it (contract: free_names.h). */
#include "code/free_names.h"

#include <stdlib.h>
#include <string.h>

#include "code/index_state.h"
#include "code/scopes.h"

void code_free_names_free(code_free_name *all, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) free(all[i].name);
    free(all);
}

#ifdef KVIST_HAVE_TREE_SITTER

/* Is the node a name that means something by itself, no member, no label and no declared type's? */
static bool is_bare(const code_tree *t, uint32_t i)
{
    static const char *const names[] = {
        "identifier", "type_identifier", "shorthand_property_identifier", NULL};
    static const char *const members[] = {"member_expression", "nested_type_identifier", "nested_identifier",
        "attribute", "field_expression", "scoped_identifier", "scoped_type_identifier", NULL};
    static const char *const others[] = {"type_parameter", "meta_property", NULL};
    const uint32_t p = t->nodes[i].parent;
    if (!code_node_is_one(t, i, names) || p == UINT32_MAX || code_node_is_one(t, p, others)) return false;
    return !code_node_is_one(t, p, members) || code_tree_first(t, p, false) == i;
}

static bool says(const code_tree *t, uint32_t i, const char *name, uint32_t n)
{
    const code_node *node = &t->nodes[i];
    return node->to - node->from == n && memcmp(t->text + node->from, name, n) == 0;
}

/* A parameter of types, as T of "f<T>(a: T)", that stands in the piece. */
static bool is_type_parameter(const code_tree *t, uint32_t i, uint32_t from, uint32_t to)
{
    const char *name = t->text + t->nodes[i].from;
    const uint32_t n = t->nodes[i].to - t->nodes[i].from;
    for (uint32_t k = 0; k < t->n; k++)
        if (t->nodes[k].from >= from && t->nodes[k].to <= to && says(t, k, name, n) &&
            code_node_is(t, t->nodes[k].parent, "type_parameter") &&
            code_tree_first(t, t->nodes[k].parent, false) == k)
            return true;
    return false;
}

/* Does the node stand where it gets a value, which is no declaration? */
static bool is_set_here(const code_tree *t, uint32_t i)
{
    static const char *const assigns[] = {
        "assignment_expression", "augmented_assignment_expression", "update_expression", NULL};
    const uint32_t p = t->nodes[i].parent;
    return p != UINT32_MAX && code_node_is_one(t, p, assigns) && code_tree_first(t, p, false) == i;
}

static void look_around(const code_tree *t, uint32_t from, uint32_t to, code_free_name *free_name)
{
    const uint32_t n = (uint32_t)strlen(free_name->name);
    code_scopes scopes = {0};
    code_scopes_find(t, free_name->name, n, &scopes);
    for (uint32_t k = 0; k < scopes.n; k++) {
        const uint32_t at = t->nodes[scopes.sites[k].node].from;
        free_name->is_bound |= scopes.sites[k].scope == UINT32_MAX && (at < from || at >= to);
    }
    for (uint32_t k = 0; k < t->n && !free_name->is_set; k++)
        free_name->is_set = says(t, k, free_name->name, n) && is_bare(t, k) && is_set_here(t, k) &&
                            code_scopes_lookup(&scopes, k) == NULL;
    code_scopes_free(&scopes);
}

static bool is_free(const code_tree *t, uint32_t i, uint32_t from, uint32_t to)
{
    code_scopes scopes = {0};
    code_scopes_find(t, t->text + t->nodes[i].from, t->nodes[i].to - t->nodes[i].from, &scopes);
    bool is = code_scopes_lookup(&scopes, i) == NULL;
    for (uint32_t k = 0; k < scopes.n && is; k++) { /* the piece's own name */
        const uint32_t at = t->nodes[scopes.sites[k].node].from;
        is = !(scopes.sites[k].scope == UINT32_MAX && at >= from && at < to);
    }
    code_scopes_free(&scopes);
    return is;
}

static bool make_tree(code_grammars *g, const char *path, const char *text, size_t n, code_tree *ret)
{
    const char *language = n <= 4u << 20 ? code_language(path, text, n) : NULL;
    const code_grammar *grammar =
        language && code_scopes_know(language) ? code_grammar_get(g, language) : NULL;
    return grammar && code_tree_make(grammar, text, n, NULL, ret);
}

uint32_t code_free_names(code_grammars *g, const char *path, const char *text, size_t n, uint32_t from,
    uint32_t to, code_free_name **ret)
{
    code_tree t;
    code_strings seen = {0};
    size_t cap = 0;
    uint32_t found = 0;
    *ret = NULL;
    if (!make_tree(g, path, text, n, &t)) return 0;
    for (uint32_t i = 0; i < t.n; i++) {
        const code_node *node = &t.nodes[i];
        const uint32_t length = node->to - node->from;
        if (node->from < from || node->to > to || !is_bare(&t, i)) continue;
        if (code_strings_find(&seen, text + node->from, length) != UINT32_MAX) continue;
        if (!is_free(&t, i, from, to) || is_type_parameter(&t, i, from, to))
            continue; /* another place may use it otherwise */
        code_strings_add(&seen, text + node->from, length);
        base_grow(ret, &cap, found + 1, sizeof **ret);
        (*ret)[found] = (code_free_name){.name = base_xstrndup(text + node->from, length)};
        look_around(&t, from, to, &(*ret)[found++]);
    }
    code_strings_free(&seen);
    code_tree_free(&t);
    return found;
}

bool code_binds_top(code_grammars *g, const char *path, const char *text, size_t n, const char *name)
{
    code_tree t;
    code_scopes scopes = {0};
    if (!make_tree(g, path, text, n, &t)) return false;
    code_scopes_find(&t, name, strlen(name), &scopes);
    const bool is = code_scopes_global(&scopes) != NULL;
    code_scopes_free(&scopes);
    code_tree_free(&t);
    return is;
}

#else

uint32_t code_free_names(code_grammars *g, const char *path, const char *text, size_t n, uint32_t from,
    uint32_t to, code_free_name **ret)
{
    *ret = NULL;
    return 0;
}

bool code_binds_top(code_grammars *g, const char *path, const char *text, size_t n, const char *name)
{
    return false;
}

#endif
