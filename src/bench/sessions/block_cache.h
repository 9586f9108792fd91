/*
 * Which prompts a server's prefix cache knows, as vLLM keeps it: whole blocks of tokens, each known by its own tokens
 * and all before it; the least recently used one goes first, of one prompt the last. Tokens only: whose rows they are,
 * bench_serve.c knows.
 */
#ifndef KVIST_BENCH_BLOCK_CACHE_H
#define KVIST_BENCH_BLOCK_CACHE_H

#include <stdint.h>

enum { BLOCK_TOKENS = 16 };

typedef struct block_cache {
    struct block {
        uint64_t key, used;
    } * blocks;
    uint32_t n, most; /* most: how many there is room for; 0: for all */
    uint64_t clock;
} block_cache;

/* How many of a prompt's first tokens are known; its last one is always computed. */
uint32_t block_cache_find(block_cache *c, const int32_t *ids, uint32_t n);
void block_cache_keep(block_cache *c, const int32_t *ids, uint32_t n);
/* Forgets the prompt's blocks behind its first `from` tokens. */
void block_cache_drop(block_cache *c, const int32_t *ids, uint32_t from, uint32_t n);
void block_cache_free(block_cache *c);

#endif
