/*
 * The tokens of a vocabulary that are nothing but text inside a JSON string: whole characters, none of them a quote, a
 * backslash or a control character. Inside a string that is free all of them are allowed, so a mask has them at once,
 * and only the others are walked byte by byte (as the slices of llguidance do, github.com/guidance-ai/llguidance;
 * XGrammar, arXiv:2411.15100, 3.1, calls them context-independent).
 */
#ifndef KVIST_MODEL_TOKEN_PLAIN_H
#define KVIST_MODEL_TOKEN_PLAIN_H

#include "model/text/token_trie.h"
#include "model/text/tokenizer.h"

typedef struct token_plain {
    int32_t *ids; /* [n] the shortest first */
    uint32_t n;
    uint32_t longest;   /* characters of the longest */
    uint32_t *n_up_to;  /* [longest + 1] how many have at most so many characters */
    uint64_t *bits;     /* of all, by id */
    token_trie *others; /* those that are in the tokenizer's trie and not plain */
    uint32_t n_words;   /* of bits */
} token_plain;

/* Freed by the caller; NULL when memory is gone. Some 50 ms for 150,000 tokens. */
token_plain *token_plain_new(const model_tokenizer *t);
void token_plain_free(token_plain *p);

/* Sets in `bits` the tokens of at most n_characters; false: there is none. */
bool token_plain_allow(const token_plain *p, uint32_t n_characters, uint64_t *bits);

#endif
