/*
 * Which blocks of tokens an engine elsewhere holds, and where, by the events that it publishes (vLLM
 * --kv-events-config, SGLang --kv-events-config: the same messages). A block is told with its tokens and the block in
 * front of it, so whose it is follows from the tokens alone; a block of which nothing was told is not known, since it
 * may have been there before anybody listened. Behind such blocks one with the same tokens is taken for the same. One
 * thread.
 */
#ifndef KVIST_REMOTE_BLOCKS_H
#define KVIST_REMOTE_BLOCKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

/* The nearest place counts, of a block that is in several. */
typedef enum remote_block_place {
    REMOTE_BLOCK_GPU,
    REMOTE_BLOCK_HOST,
    REMOTE_BLOCK_DISK,
    REMOTE_BLOCK_GONE, /* it was there */
    REMOTE_BLOCK_UNKNOWN,
    REMOTE_N_BLOCK_PLACES
} remote_block_place;

extern const char *const remote_block_words[REMOTE_N_BLOCK_PLACES];

typedef struct remote_blocks remote_blocks;

remote_blocks *remote_blocks_new(void);
void remote_blocks_free(remote_blocks *b); /* NULL is fine */

/*
 * One message: its number and its MessagePack. A number that does not follow the one before means that messages were
 * lost or the engine was started again: what was known is forgotten. Events of other kinds are passed over.
 */
int remote_blocks_read(remote_blocks *b, uint64_t number, const uint8_t *bytes, size_t n, base_err *err);

/*
 * Of a sequence: tokens in each place. What does not fill a block is in none, so not known. Of the first n_found the
 * engine itself says that it found them: where no event told of such a block, it is on the GPU.
 */
typedef struct remote_block_counts {
    uint32_t n[REMOTE_N_BLOCK_PLACES];
    uint32_t found;    /* from the first token on without a gap */
    bool ends_in_gone; /* ... and the block behind these is gone */
    bool is_told;      /* of each block that it fills some event told, or the engine said that it found it */
} remote_block_counts;

/* ret_places (may be NULL): [n] each token's remote_block_place. */
void remote_blocks_count(const remote_blocks *b, const int32_t *ids, uint32_t n, uint32_t n_found,
    remote_block_counts *ret, uint8_t *ret_places);
bool remote_blocks_has_any(const remote_blocks *b); /* was any message read? */

#endif
