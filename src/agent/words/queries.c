/*
 * Which words of any text ask for evicted rows (contract: token_map.h). Logs that are executed again have to find the same
 * ones, so what a word is here stays as it was when they were written.
 */
#include <stdlib.h>
#include <string.h>

#include "agent/words/token_map.h"
#include "agent/words/request_words.h"
#include "base/mem.h"

static bool is_word_byte(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           (unsigned char)c >= 0x80;
}

/* Identifiers outrank words, longer outranks shorter. */
static uint32_t word_rank(const char *word, size_t n)
{
    bool under = memchr(word, '_', n) != NULL, mixed = false, digit = false;
    for (size_t i = 1; i < n; i++) {
        mixed = mixed || (word[i] >= 'A' && word[i] <= 'Z' && word[i - 1] >= 'a' && word[i - 1] <= 'z');
        digit = digit || (word[i] >= '0' && word[i] <= '9');
    }
    if (!under && !mixed && digit && word[0] >= '0' && word[0] <= '9') return 0; /* a number */
    return (under || mixed ? 100u : 0u) + (uint32_t)(n < 40 ? n : 40);
}

typedef struct query_word {
    uint32_t end, rank, order;
    uint64_t hash;
} query_word;

static int by_rank(const void *a, const void *b)
{
    const query_word *x = a, *y = b;
    if (x->rank != y->rank) return x->rank < y->rank ? 1 : -1;
    return x->order < y->order ? -1 : 1;
}

static int by_place(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

/* Ends (bytes) of at most AGENT_MAX_QUERIES words that say most, ascending. */
uint32_t agent__pick_queries(const char *text, size_t n, uint32_t ends[AGENT_MAX_QUERIES])
{
    query_word *words = NULL;
    size_t n_words = 0, cap = 0;
    for (size_t i = 0; i < n;) {
        size_t from = i;
        while (i < n && is_word_byte(text[i])) i++;
        if (i == from) {
            i++;
            continue;
        }
        uint32_t rank = agent__is_content_word(text + from, i - from) ? word_rank(text + from, i - from) : 0;
        if (!rank || i > UINT32_MAX) continue;
        uint64_t hash = 1469598103934665603u;
        for (size_t k = from; k < i; k++) hash = (hash ^ (unsigned char)text[k]) * 1099511628211u;
        bool seen = false;
        for (size_t k = 0; k < n_words && !seen; k++) seen = words[k].hash == hash;
        if (seen || n_words >= 4096) continue;
        base_grow(&words, &cap, n_words + 1, sizeof *words);
        words[n_words] = (query_word){(uint32_t)i, rank, (uint32_t)n_words, hash};
        n_words++;
    }
    if (n_words) qsort(words, n_words, sizeof *words, by_rank);
    uint32_t count = n_words < AGENT_MAX_QUERIES ? (uint32_t)n_words : AGENT_MAX_QUERIES;
    for (uint32_t i = 0; i < count; i++) ends[i] = words[i].end;
    if (count) qsort(ends, count, sizeof *ends, by_place);
    free(words);
    return count;
}
