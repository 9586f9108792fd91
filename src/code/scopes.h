/*
 * Which local a name means, by the rules of its language: C and C++, Python, JavaScript and TypeScript, Go,
 * Java, Rust. Other languages have no locals here (code_scopes_know).
 */
#ifndef KVIST_CODE_SCOPES_H
#define KVIST_CODE_SCOPES_H

#include "code/tree.h"

#ifdef KVIST_HAVE_TREE_SITTER

/* A place that declares a name. */
typedef struct code_site {
    uint32_t node, scope; /* scope: the node in which it is known; UINT32_MAX: the whole file */
    uint32_t visible;     /* byte from which it is */
    bool is_parameter;
} code_site;

typedef struct code_scopes {
    const code_tree *t;
    code_site *sites;
    uint32_t n;
    uint32_t *globals; /* Python: `global x`, `nonlocal x`: their nodes */
    uint32_t n_globals;
} code_scopes;

bool code_scopes_know(const char *language); /* does it have locals here? */
/* Every place of the tree that declares `name`. */
void code_scopes_find(const code_tree *t, const char *name, size_t n, code_scopes *ret);
void code_scopes_free(code_scopes *s);
/*
 * The site that the name at node i means: of a function, or of a class body (Python; then site->scope is the
 * class); NULL: no local.
 */
const code_site *code_scopes_lookup(const code_scopes *s, uint32_t i);
/* The site of the whole file that declares it first; NULL: none. */
const code_site *code_scopes_global(const code_scopes *s);
/* Is node i of this type, or of one of these (NULL-terminated)? */
/* type: the grammar's name of it, as "identifier". */
bool code_node_is(const code_tree *t, uint32_t i, const char *type);
bool code_node_is_one(const code_tree *t, uint32_t i, const char *const *types);

#endif
#endif
