/*
 * A syntax tree as one flat array in pre-order: the children of i are c = i + 1; while c < nodes[i].sub_end;
 * c = nodes[c].sub_end. Named nodes only. Everything that reads structure (anchors and definitions in
 * parse.c, graphs in graph.c) reads this; the tree itself is freed at once (it costs 22 times the source) or
 * handed back for the next, incremental parse. No recursion: a file nested 20,000 deep costs memory, not
 * stack.
 */
#ifndef KVIST_CODE_TREE_H
#define KVIST_CODE_TREE_H

#include "code/internal.h"

#ifdef KVIST_HAVE_TREE_SITTER

typedef struct code_node {
    uint32_t from, to, sub_end, parent, prev; /* prev: the sibling before it; UINT32_MAX: none */
    uint16_t symbol;
    uint8_t field;    /* enum code_field */
    uint8_t is_wrong; /* an error is in it */
} code_node;

typedef struct code_tree {
    const code_grammar *g;
    const char *text;
    uint32_t n_bytes;
    code_node *nodes;
    uint32_t n;
    uint32_t n_errors, error_line; /* ERROR and MISSING nodes, the first one's line (1-based) */
} code_tree;

/* What a parse leaves for the next one, an edit later. */
typedef struct code_earlier {
    TSTree *tree;              /* told of the edit (ts_tree_edit); NULL: none */
    code_node *nodes;          /* its flat form; NULL: none */
    uint32_t n;                /* nodes */
    uint32_t from, old_to, to; /* the edit: bytes [from, old_to) became [from, to) */
} code_earlier;

/*
 * false: the time was up, or memory is gone. earlier (may be NULL): of an older text; its tree is replaced by
 * the new one, and its nodes are taken over where the edit is not.
 */
bool code_tree_make(const code_grammar *g, const char *text, size_t n, code_earlier *earlier, code_tree *ret);
void code_tree_free(code_tree *t);
/* Frees it, but for its nodes, which the next parse takes over; to may be NULL. */
void code_tree_leave(code_tree *t, code_earlier *to);
void code_earlier_free(code_earlier *e);

/* What the table says of node i's type; kind -1 and no flags when it says nothing. */
const code_node_row *code_tree_row(const code_tree *t, uint32_t i);
code_flow code_tree_flow(const code_tree *t, uint32_t i);   /* how control passes through it */
const char *code_tree_type(const code_tree *t, uint32_t i); /* the grammar's name of its type */
bool code_tree_is_name(const code_tree *t, uint32_t i);     /* a leaf that is an identifier of some sort */

/* Nodes below i; UINT32_MAX: none. */
uint32_t code_tree_child(const code_tree *t, uint32_t i, uint8_t field);
uint32_t code_tree_first(
    const code_tree *t, uint32_t i, bool last);          /* first or last child that is no comment */
uint32_t code_tree_name(const code_tree *t, uint32_t i); /* first identifier at or below i */
uint32_t code_tree_body(const code_tree *t, uint32_t i); /* the body child, by field or by kind */
uint32_t code_tree_block(
    const code_tree *t, uint32_t i); /* byte where the first body inside i begins, else its end */
/*
 * The byte where the head of a compound node ends: its body, its first case, a case's first statement; else
 * its end.
 */
uint32_t code_tree_head(const code_tree *t, uint32_t i);
/* The first child behind a case's value, pattern, label; UINT32_MAX: none. */
uint32_t code_tree_case_body(const code_tree *t, uint32_t i);
/* The body of a loop, also where the grammar has no field for it. */
uint32_t code_tree_loop_body(const code_tree *t, uint32_t i);

/* Bytes. */
uint32_t code_tree_line_end(const code_tree *t, uint32_t from, uint32_t to);
uint32_t code_tree_trim(
    const code_tree *t, uint32_t from, uint32_t to); /* to, without white space before it */

#endif
#endif
