/*
 * What an engine's cache holds, as far as who asks it alone can know: the tokens of the slot that answered last,
 * and former prompts that llama-server keeps in memory (--cache-ram) and takes back when one is nearer to a
 * request than its slot. The rules are those of llama.cpp's tools/server (get_available_slot, server_prompt_cache),
 * for one slot, and for engines of blocks that everything is there that was asked before; a second client, or a full memory, makes a prediction wrong and nothing else.
 */
#ifndef KVIST_REMOTE_HELD_H
#define KVIST_REMOTE_HELD_H

#include <stdbool.h>

#include "model/text/tokenizer.h"

enum { REMOTE_HELD_PROMPTS = 32 };

typedef struct remote_held {
    bool keeps_prompts; /* former prompts are kept in memory */
    bool keeps_blocks;  /* every block stays until room is short, whoever asked last (vLLM, SGLang) */
    uint32_t block;     /* tokens are kept or dropped in blocks of this many */
    model_ids slot;
    model_ids prompts[REMOTE_HELD_PROMPTS]; /* the oldest first */
    uint32_t n_prompts;
} remote_held;

/*
 * How many of these tokens a request with them finds computed: whole blocks, and never the last token. reuse: behind a
 * cut, stretches of at least this many tokens are moved to their new place instead of computed (llama-server's
 * n_cache_reuse: what is held is walked once, each stretch of it that continues the request is taken); 0: none are.
 */
uint32_t remote_held_find(const remote_held *h, const int32_t *ids, uint32_t n, uint32_t reuse);
/* The same, and changes what is held as the request does. */
uint32_t remote_held_ask(remote_held *h, const int32_t *ids, uint32_t n, uint32_t reuse);
/* Behind the answer: what was asked, and the answer's tokens but the last, which the engine has not read. */
void remote_held_set(
    remote_held *h, const int32_t *asked, uint32_t n_asked, const int32_t *answer, uint32_t n_answer);
/* The engine was started again. */
void remote_held_forget(remote_held *h);
void remote_held_free(remote_held *h);

#endif
