/*
 * The code property graph of a file: a statement-level control flow graph per function, reaching definitions
 * and def-use pairs, control dependence, and the names that calls ask for. Plain data beside the code_file of
 * the same text: statements and edges in flat arrays, no pointers into the tree. `kvist code` shows it; the
 * cache's policies read it as features of a chunk or an anchor (docs/kv.md, "Structure": counts, edges and
 * degrees).
 *
 * Statement level: a node is a statement, or the predicate of a compound one ("if (x)"), so that edge counts
 * are about a fifth of an expression-level graph's. Edges never leave a function; calls do, by name.
 *
 * Pure functions; any thread. Sources: fringe construction as in Joern's CfgCreator, def-use by bitset
 * reaching definitions.
 */
#ifndef KVIST_CODE_GRAPH_H
#define KVIST_CODE_GRAPH_H

#include "code/code.h"

typedef enum code_edge_kind {
    CODE_EDGE_FLOW,    /* control may go from -> to */
    CODE_EDGE_DATA,    /* a name defined at from is used at to */
    CODE_EDGE_CONTROL, /* the predicate from decides about to */
    CODE_N_EDGE_KINDS
} code_edge_kind;

typedef enum code_statement_kind {
    CODE_STATEMENT_ENTRY, /* the signature: parameters are defined here */
    CODE_STATEMENT_PLAIN,
    CODE_STATEMENT_PREDICATE, /* of if, while, for, switch, case, catch, with */
    CODE_STATEMENT_JUMP,      /* return, throw, break, continue, goto */
    CODE_STATEMENT_EXIT       /* no bytes of its own: from == to, the end of the body */
} code_statement_kind;

typedef struct code_statement {
    uint32_t from, to;                                      /* bytes: without the bodies it holds */
    uint32_t function;                                      /* index into functions */
    uint8_t kind;                                           /* code_statement_kind */
    uint16_t in[CODE_N_EDGE_KINDS], out[CODE_N_EDGE_KINDS]; /* degrees, by code_edge_kind; saturating */
} code_statement;

typedef struct code_edge {
    uint32_t from, to; /* statements */
    uint8_t kind;      /* code_edge_kind */
    uint32_t name;     /* DATA: byte where the name is used, for its text; else 0 */
} code_edge;

typedef struct code_function {
    uint32_t definition; /* of the code_file; UINT32_MAX: the file's own top-level code */
    uint32_t from, to;   /* bytes, its signature included */
    uint32_t first, n;   /* statements: ENTRY, EXIT, then the body's */
    uint32_t edges[CODE_N_EDGE_KINDS];
    bool is_cut; /* too large for reaching definitions: no DATA edges */
} code_function;

typedef struct code_graph {
    code_function *functions; /* ascending by from */
    uint32_t n_functions;
    code_statement *statements; /* by function; inside one in the order of its flow */
    uint32_t n_statements;
    code_edge *edges; /* ascending by kind, from, to */
    uint32_t n_edges;
} code_graph;

/*
 * code_parse, and the graph from the same tree. *ret_graph is never NULL; it is empty where the file was read
 * lexically (no grammar, too large, minified). Free both.
 */
code_file *code_parse_graph(
    code_grammars *g, const char *path, const char *text, size_t n, code_graph **ret_graph);
void code_graph_free(code_graph *x);

/*
 * Features of each anchor of the file, in the order of f->anchors ([f->n_anchors], free with free()). Degrees
 * are those of the innermost statement that holds the anchor's core; a lexical file has zeros.
 */
typedef struct code_feature {
    code_kind kind;
    uint32_t statement; /* UINT32_MAX: none */
    uint16_t data_in, data_out, flow_out, control_out;
    /*
     * Calls: how many definitions of this file have the called name. Signatures: how many calls of this file
     * name it.
     */
    uint16_t call_degree;
} code_feature;
code_feature *code_graph_features(const code_file *f, const code_graph *x, const char *text);

/* The name that a call anchor asks for: the last identifier of its core. false: none. */
bool code_call_name(const code_anchor *a, const char *text, uint32_t *from, uint32_t *to);

#endif
