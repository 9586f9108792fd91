/*
 * Byte pair encoding of one word, and the table of merges it follows. Part of tokenizer.c.
 */
#ifndef KVIST_MODEL_TOKENIZER_BPE_H
#define KVIST_MODEL_TOKENIZER_BPE_H

#include <stdint.h>

#include "model/tokenizer.h"

/* What two neighbouring symbols become, and how early. */
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

/* Working memory of one call of encode. Zero-initialise. */
typedef struct bpe_scratch {
    struct bpe_symbol *symbols;
    struct bpe_pair *heap;
    size_t symbols_cap, heap_cap, n_heap;
} bpe_scratch;

void bpe_scratch_free(bpe_scratch *s);

/*
 * Merges the n symbols (n < 2^31) in place of the array and appends what remains to out. Symbols from n_vocab on are bytes that the
 * vocabulary lacks: they never merge and are left out, as in llama.cpp.
 */
void bpe_encode(const bpe_table *t, bpe_scratch *s, const char *word, size_t n,
    const uint32_t byte_symbols[256], uint32_t n_vocab, model_ids *out);

#endif
