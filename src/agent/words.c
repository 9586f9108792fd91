/*
 * Which words of a text say what it asks for. Pure; any thread.
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "agent/parts.h"
#include "base/mem.h"

static bool is_word_byte(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           (unsigned char)c >= 0x80;
}

/* Words that say nothing about which rows matter. */
static const char *const stop_words[] = {"about", "after", "again", "all", "also", "and", "any", "are",
    "assert", "because", "been", "before", "but", "can", "could", "defined", "does", "each", "else", "error",
    "fails", "file", "files", "find", "fix", "for", "from", "function", "get", "give", "has", "have", "here",
    "how", "into", "its", "just", "line", "lines", "make", "many", "more", "must", "name", "not", "now",
    "off", "one", "only", "other", "our", "out", "please", "request", "return", "run", "same", "should",
    "show", "some", "tell", "test", "tests", "than", "that", "the", "their", "them", "then", "there", "these",
    "they", "this", "use", "used", "uses", "using", "was", "were", "what", "when", "where", "which", "while",
    "who", "why", "will", "with", "work", "works", "would", "you", "your"};

static int compare_word(const void *key, const void *row)
{
    return strcmp(key, *(const char *const *)row);
}

/* Of an identifier, no part is a word of its own: `add_one` speaks of no adding. */
static bool is_in_word(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

bool agent__has_word(const char *text, const char *word)
{
    const size_t n = strlen(word);
    for (const char *at = text; (at = strcasestr(at, word)); at += n)
        if ((at == text || !is_in_word(at[-1])) && !is_in_word(at[n])) return true;
    return false;
}

bool agent__has_any_word(const char *text, const char *const *words)
{
    for (; *words; words++)
        if (agent__has_word(text, *words)) return true;
    return false;
}

bool agent__names_word(const char *words, const char *name)
{
    size_t n = strlen(name);
    for (const char *p = words; n >= 3 && (p = strstr(p, name)); p++)
        if ((p == words || !is_word_byte(p[-1])) && !is_word_byte(p[n])) return true;
    return false;
}

bool agent__is_content_word(const char *word, size_t n)
{
    char lower[24];
    if (n < 3) return false;
    if (n >= sizeof lower) return true;
    for (size_t i = 0; i < n; i++)
        lower[i] = (char)(word[i] >= 'A' && word[i] <= 'Z' ? word[i] + 32 : word[i]);
    lower[n] = 0;
    return !bsearch(
        lower, stop_words, sizeof stop_words / sizeof *stop_words, sizeof *stop_words, compare_word);
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
