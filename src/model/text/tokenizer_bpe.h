/*
 * Merging the symbols of one word, lowest rank first, and the table of merges of byte-level vocabularies.
 * Part of tokenizer.c; tokenizer_spm.c merges by scores with the same loop.
 */
#ifndef KVIST_MODEL_TOKENIZER_BPE_H
#define KVIST_MODEL_TOKENIZER_BPE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "model/text/ids.h"

/* A symbol lies at the place of its first byte; places between two symbols are not looked at. */
typedef struct bpe_symbol {
    uint32_t id;
    int32_t before, after; /* places; -1: none */
} bpe_symbol;

/* Working memory of one call of encode. Zero-initialise. */
typedef struct bpe_scratch {
    bpe_symbol *symbols;
    struct bpe_pair *heap;
    size_t symbols_cap, heap_cap, n_heap;
} bpe_scratch;

void bpe_scratch_free(bpe_scratch *s);

/*
 * What two neighbours, whose n bytes of the word start at `at`, become, and how early; false: they stay
 * apart.
 */
typedef struct bpe_result {
    uint32_t rank, id;
} bpe_result;
typedef bool bpe_find_fn(
    const void *user, uint32_t left, uint32_t right, const char *at, size_t n, bpe_result *ret);

/*
 * Merges the symbols of a word of n bytes (0 < n < 2^31), which the caller has put into s->symbols linked
 * from place 0 on, until no pair is found; of equal ranks the leftmost first. The result is the same list,
 * shorter.
 */
void bpe_merge_all(bpe_scratch *s, const char *word, size_t n, bpe_find_fn *find, const void *user);

/* The merges of a byte-level vocabulary. */
typedef struct bpe_merge {
    uint32_t left, right, rank, result; /* result UINT32_MAX: a free slot */
} bpe_merge;

typedef struct bpe_table {
    bpe_merge *slots;
    size_t n_slots; /* a power of two */
} bpe_table;

int bpe_table_new(bpe_table *t, uint64_t n_merges, base_err *err);
void bpe_table_free(bpe_table *t);
/* The first of equal pairs counts. */
void bpe_table_add(bpe_table *t, uint32_t left, uint32_t right, uint32_t rank, uint32_t result);

/*
 * Appends the ids of a word (n < 2^31 bytes). Symbols from n_vocab on are bytes that the vocabulary lacks:
 * they never merge and are left out, as in llama.cpp.
 */
void bpe_encode(const bpe_table *t, bpe_scratch *s, const char *word, size_t n,
    const uint32_t byte_symbols[256], uint32_t n_vocab, model_ids *out);

/*
 * The same of a vocabulary whose merges begin with letters (Gemma 4): letter is the piece of the n bytes of one, -1 where
 * there is none; then its bytes stand for it, which merge with nothing.
 */
typedef int32_t bpe_letter_fn(const void *user, const char *letter, size_t n);
void bpe_encode_letters(const bpe_table *t, bpe_scratch *s, const char *word, size_t n, bpe_letter_fn *letter,
    const void *user, const uint32_t byte_ids[256], uint32_t n_vocab, model_ids *out);

#endif
