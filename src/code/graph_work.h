/* What graph.c (control flow) asks of graph_data.c (edges, names): one function of a file being read. */
#ifndef KVIST_CODE_GRAPH_WORK_H
#define KVIST_CODE_GRAPH_WORK_H

#include "code/tree.h"

#ifdef KVIST_HAVE_TREE_SITTER

/* A name at a statement. A compound assignment uses first and then defines. */
typedef struct code_use {
    uint32_t statement, name, at; /* at: byte */
    bool defines;
} code_use;

typedef struct code_names {
    uint64_t *hashes; /* by name number of this function */
    uint32_t *table;  /* 1 + number; 0: free */
    uint32_t n, n_table;
    size_t cap;
} code_names;

typedef struct code_work {
    const code_tree *t;
    code_graph *x;
    size_t cap_statements, cap_edges, cap_uses;
    code_use *uses; /* of the function being read, ascending by statement */
    uint32_t n_uses;
    code_names names;
} code_work;

/* Statements inside it have nodes of their own. */
static inline bool code_flow_is_compound(code_flow flow)
{
    const unsigned kind = flow & FLOW_KINDS;
    return kind == FLOW_SEQUENCE || kind == FLOW_IF || (kind >= FLOW_LOOP && kind <= FLOW_FALL) ||
           kind == FLOW_TRY || kind == FLOW_WITH;
}

/* Adds an edge between two statements; name: of a data edge, the byte at which the name is used. */
void code_work_edge(code_work *w, uint32_t from, uint32_t to, code_edge_kind kind, uint32_t name);
/*
 * The names in the statement's bytes at or below node i: uses and definitions. parameters: those there are
 * definitions.
 */
void code_work_collect(code_work *w, uint32_t statement, uint32_t i, bool parameters);
/* Def-use edges of a finished function; forgets its names. */
void code_work_reach(code_work *w, code_function *f);

#endif
#endif
