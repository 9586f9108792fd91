/*
 * What of a text carries its structure, for the cache (docs/kv.md, "Structure"): each anchor's core and its
 * full extent, with what they are (calls, predicates, ...), whether a def-use pair ends there, whether they
 * hold a symbol that a request names, and how many edges begin there. Everything here is in bytes; the agent
 * turns them into tokens when it appends the text. Pure functions, any thread.
 */
#ifndef KVIST_CODE_STRUCTURE_H
#define KVIST_CODE_STRUCTURE_H

#include "code/code.h"
#include "code/graph.h"

enum {
    CODE_MARK_CALL = 1,
    CODE_MARK_CONTROL = 2,
    CODE_MARK_RETURN = 4,
    CODE_MARK_ASSIGN = 8,
    CODE_MARK_DEFUSE = 16,
    CODE_MARK_SYMBOL = 32, /* holds a symbol that the request names */
    CODE_MARK_SIGNATURE = 64,
    /* the part of an anchor to keep first; its whole extent follows as another piece when it is larger */
    CODE_MARK_CORE = 128,
};

typedef struct code_piece {
    uint32_t from, to; /* bytes */
    code_kind kind;    /* of the anchor */
    uint16_t marks;    /* a core has its own kind's, a whole extent those of the anchors in it too */
    uint16_t n_flow, n_dependence; /* edges that begin here; on cores only */
} code_piece;

/*
 * Pieces that begin in bytes from..to of the text, ascending by anchor. g may be NULL (no edges, no DEFUSE);
 * request: words of a person, NULL for none. *ret: free(). Returns the number.
 */
uint32_t code_structure(const code_file *f, const code_graph *g, const char *text, size_t n, uint32_t from,
    uint32_t to, const char *request, code_piece **ret);

#endif
