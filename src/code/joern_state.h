/* Between joern.c (reading an export) and joern_snap.c (laying it over a file). */
#ifndef KVIST_CODE_JOERN_STATE_H
#define KVIST_CODE_JOERN_STATE_H

#include "code/joern.h"

typedef enum joern_label { JOERN_OTHER, JOERN_METHOD, JOERN_METHOD_RETURN } joern_label;
typedef enum joern_edge_kind {
    JOERN_FLOW,
    JOERN_DATA,
    JOERN_CONTROL,
    JOERN_CALL,
    JOERN_PARENT,
    JOERN_N_EDGES
} joern_edge_kind;
#define JOERN_NONE UINT32_MAX

typedef struct joern_node {
    int64_t id;
    uint32_t line, column; /* line from 1; 0: no place. column as the export has it; JOERN_NONE: none */
    uint32_t parent;       /* in the syntax tree, a node; JOERN_NONE */
    uint32_t method;       /* the METHOD that it belongs to; JOERN_NONE */
    char *name, *path;     /* of a METHOD: full name, file; else NULL */
    int8_t kind;           /* code_kind of its place; -1: none that we have anchors for */
    uint8_t label;
} joern_node;

typedef struct joern_edge {
    uint32_t from, to; /* nodes */
    uint8_t kind;
} joern_edge;

struct code_joern {
    joern_node *nodes; /* ascending by id */
    size_t n_nodes, cap_nodes;
    joern_edge *edges; /* of all kinds but JOERN_PARENT */
    size_t n_edges, cap_edges;
    uint32_t first_column; /* 1; 0: of jssrc2cpg */
};

#endif
