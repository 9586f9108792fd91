/*
 * Bytes of a text to its tokens, and which of its words ask: what is found in a text when it is appended, and found
 * again when a log is executed. Pure; any thread.
 */
#ifndef KVIST_AGENT_WORDS_TOKEN_MAP_H
#define KVIST_AGENT_WORDS_TOKEN_MAP_H

#include <stddef.h>
#include <stdint.h>

typedef struct agent_token_map {
    uint32_t *end; /* [n] byte behind each token; heap */
    uint32_t n;
} agent_token_map;

/* The token that holds this byte (the last one for bytes behind the end). */
uint32_t agent__token_at(const agent_token_map *m, uint32_t byte);
/* Tokens where a line starts, ascending; the caller frees. */
uint32_t *agent__line_starts(const agent_token_map *m, const char *text, size_t n, uint32_t *ret_n);

enum { AGENT_MAX_QUERIES = 8 };
/* Ends (bytes) of at most AGENT_MAX_QUERIES words that say most, ascending; returns how many. */
uint32_t agent__pick_queries(const char *text, size_t n, uint32_t ends[AGENT_MAX_QUERIES]);

#endif
