/* The items of a parameter list or of a call's arguments (contract: uses.h). */
#include <stdlib.h>
#include <string.h>

#include "code/scopes.h"
#include "code/trees.h"
#include "code/uses.h"

#ifdef KVIST_HAVE_TREE_SITTER

/*
 * Does the list that begins at byte `to` belong to the name that ends at byte `at`? "f = (a) =>", "f = function(a)" and "f = function g(a)"
 * give the name a function; behind any other sign of a statement the list is another's.
 */
static bool belongs(const char *text, uint32_t at, uint32_t to)
{
    static const char *const functions[] = {"async", "function"};
    uint32_t k = at;
    while (k < to && !strchr("{};=", text[k])) k++;
    if (k == to) return true;
    if (text[k++] != '=') return false;
    bool is_function = false;
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        while (k < to && strchr(" \t\r\n", text[k])) k++;
        const uint32_t n = (uint32_t)strlen(functions[i]);
        is_function = k + n <= to && !memcmp(text + k, functions[i], n);
        if (is_function) k += n;
    }
    while (is_function && k < to && (strchr(" *\t\r\n", text[k]) || code_is_name_byte(text[k]))) k++;
    while (k < to && strchr(" *\t\r\n", text[k])) k++;
    return k == to;
}

/*
 * Rust: a call in what a macro is given, "assert_eq!(f(a, b), 1)", of which the tree has brackets and single words. UINT32_MAX: none; what
 * has types in it, "::<A, B>", is not told apart.
 */
static uint32_t find_in_macro(const code_tree *t, const char *text, uint32_t at)
{
    static const char *const trees[] = {"token_tree", NULL};
    for (uint32_t i = 0; i < t->n; i++)
        if (t->nodes[i].from == at && code_node_is_one(t, i, trees))
            return memmem(text + at, t->nodes[i].to - at, "::<", 3) ? UINT32_MAX : i;
    return UINT32_MAX;
}

bool code_items(
    code_grammars *g, const char *path, const char *text, size_t n, uint32_t at, code_item_list *ret)
{
    *ret = (code_item_list){0};
    static const char *const lists[] = {"parameters", "parameter_list", "formal_parameters", "argument_list",
        "arguments", "closure_parameters", NULL};
    const code_grammar *grammar = n < UINT32_MAX ? code_grammar_get(g, code_language(path, text, n)) : NULL;
    const code_tree *t = grammar != NULL ? code_trees_take(code_grammars_trees(g), grammar, text, n) : NULL;
    if (t == NULL) return false;
    uint32_t found = find_in_macro(t, text, at);
    for (uint32_t i = 0; i < t->n && found == UINT32_MAX; i++)
        if (t->nodes[i].from >= at && code_node_is_one(t, i, lists)) found = i;
    bool is_near = found != UINT32_MAX && belongs(text, at, t->nodes[found].from);
    if (is_near && (text[t->nodes[found].from] != '(' || t->nodes[found].to < t->nodes[found].from + 2))
        is_near = false;
    if (is_near) {
        size_t cap = 0;
        uint32_t from = t->nodes[found].from + 1;
        const uint32_t end = t->nodes[found].to - 1;
        ret->from = from;
        ret->to = end;
        uint32_t c = found + 1;
        for (uint32_t k = from; k <= end; k++) {
            while (c < t->nodes[found].sub_end && t->nodes[c].to <= k) c = t->nodes[c].sub_end;
            const bool is_in = c < t->nodes[found].sub_end && t->nodes[c].from <= k;
            if (k < end && (is_in || text[k] != ',')) continue;
            code_item item = {from, k};
            while (item.from < item.to && strchr(" \t\r\n", text[item.from]) != NULL) item.from++;
            while (item.to > item.from && strchr(" \t\r\n", text[item.to - 1]) != NULL) item.to--;
            if (item.to > item.from) {
                base_grow(&ret->items, &cap, ret->n + 1, sizeof *ret->items);
                ret->items[ret->n++] = item;
            }
            from = k + 1;
        }
    }
    code_trees_give(code_grammars_trees(g));
    return is_near;
}

#else

bool code_items(
    code_grammars *g, const char *path, const char *text, size_t n, uint32_t at, code_item_list *ret)
{
    *ret = (code_item_list){0};
    return false;
}

#endif
