/* See bench/sessions/block_cache.h. */
#include "bench/sessions/block_cache.h"

#include <stdbool.h>
#include <stdlib.h>

#include "base/hash.h"
#include "base/mem.h"

static uint64_t key_of(const int32_t *ids, uint32_t block, uint64_t before)
{
    return base_hash64(ids + (size_t)block * BLOCK_TOKENS, BLOCK_TOKENS * sizeof *ids, before);
}

static struct block *find(const block_cache *c, uint64_t key)
{
    for (uint32_t i = 0; i < c->n; i++)
        if (c->blocks[i].key == key) return &c->blocks[i];
    return NULL;
}

uint32_t block_cache_find(block_cache *c, const int32_t *ids, uint32_t n)
{
    uint64_t key = 0;
    uint32_t block = 0;
    for (; n && (block + 1) * BLOCK_TOKENS <= n - 1; block++) {
        key = key_of(ids, block, key);
        if (!find(c, key)) break;
    }
    return block * BLOCK_TOKENS;
}

static struct block *make_room(block_cache *c)
{
    struct block *oldest = c->blocks;
    if (!c->most || c->n < c->most) {
        c->blocks = base_xrealloc(c->blocks, ((size_t)c->n + 1) * sizeof *c->blocks);
        return &c->blocks[c->n++];
    }
    for (uint32_t i = 1; i < c->n; i++)
        if (c->blocks[i].used < oldest->used) oldest = &c->blocks[i];
    return oldest;
}

void block_cache_keep(block_cache *c, const int32_t *ids, uint32_t n)
{
    const uint32_t n_blocks = n / BLOCK_TOKENS;
    uint64_t key = 0;
    c->clock += n_blocks + 1;
    for (uint32_t i = 0; i < n_blocks; i++) {
        key = key_of(ids, i, key);
        struct block *b = find(c, key);
        const bool is_full = c->most && c->n >= c->most;
        if (!b && is_full && i >= c->most) return; /* the prompt's own first blocks are worth more */
        if (!b) b = make_room(c);
        *b = (struct block){.key = key, .used = c->clock - i};
    }
}

void block_cache_drop(block_cache *c, const int32_t *ids, uint32_t from, uint32_t n)
{
    uint64_t key = 0;
    for (uint32_t i = 0; (i + 1) * BLOCK_TOKENS <= n; i++) {
        key = key_of(ids, i, key);
        struct block *b = find(c, key);
        if (b && (i + 1) * BLOCK_TOKENS > from) *b = c->blocks[--c->n];
    }
}

void block_cache_free(block_cache *c)
{
    free(c->blocks);
    *c = (block_cache){.n = 0};
}
