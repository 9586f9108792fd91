/*
 * A definition that is too long to be written again: which of its lines a request speaks of. Only these are written, the rest
 * stays byte for byte. Pure; any thread.
 */
#ifndef KVIST_AGENT_WORDS_BLOCK_H
#define KVIST_AGENT_WORDS_BLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Lines of the text, from 1, both ends included. */
typedef struct agent_block {
    uint32_t from, to;
} agent_block;

/*
 * The blocks of a definition, statements that stand together in at most some two dozen lines: those whose words fit the request
 * best come first. body: the byte where its body begins. Returns how many, up to `most`; 0: none has a word of the request.
 */
uint32_t agent__find_blocks(
    const char *text, size_t n, size_t body, const char *request, agent_block *ret, uint32_t most);

/* Is a text of n bytes more than a small model writes again without a slip? */
bool agent__is_long(const char *text, size_t n);

#endif
