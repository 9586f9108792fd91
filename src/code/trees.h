/*
 * The flat trees that were made last, for questions that come one after the other about the same text (items.c): a file of 4,500
 * lines takes 30 ms to parse. Any thread; one at a time holds them.
 */
#ifndef KVIST_CODE_TREES_H
#define KVIST_CODE_TREES_H

#include "code/tree.h"

#ifdef KVIST_HAVE_TREE_SITTER

typedef struct code_trees code_trees;

code_trees *code_trees_new(void);
void code_trees_free(code_trees *t); /* NULL is fine */

/* The text's tree, held until code_trees_give. NULL, and nothing is held: as code_tree_make. */
const code_tree *code_trees_take(code_trees *t, const code_grammar *g, const char *text, size_t n);
void code_trees_give(code_trees *t);
code_trees *code_grammars_trees(code_grammars *g); /* g's */

#endif

#endif
