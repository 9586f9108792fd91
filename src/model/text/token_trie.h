/*
 * A vocabulary as a trie of bytes, laid out flat in depth-first order: who walks it with an automaton skips a
 * whole subtree with one addition when a byte is refused (as llguidance does,
 * github.com/guidance-ai/llguidance).
 */
#ifndef KVIST_MODEL_TOKEN_TRIE_H
#define KVIST_MODEL_TOKEN_TRIE_H

#include <stdint.h>

#include "base/buf.h"

typedef struct token_trie_node {
    int32_t id;       /* the token that ends here, -1: none; more of them by token_trie.same */
    uint32_t n_nodes; /* of the subtree, with this one */
    uint32_t depth;   /* bytes from the root, 1 and more */
    uint8_t byte;
} token_trie_node;

typedef struct token_trie {
    token_trie_node *nodes; /* no root: the walk starts before nodes[0] */
    uint32_t n_nodes, max_depth;
    int32_t *same; /* [n] the next id with the same bytes, -1: none */
} token_trie;

/*
 * piece[n]: the bytes of each id, which need not outlive the call; an empty one has no node. NULL when memory is
 * gone. Freed by the caller.
 */
token_trie *token_trie_new(const base_str *piece, uint32_t n);
void token_trie_free(token_trie *trie);

#endif
