/*
 * Pre-tokenizers: how a text falls into words before byte pairs are merged. Each is a regular expression of
 * the model's makers, written by hand over the flag table, in one pass without backtracking.
 */
#ifndef KVIST_MODEL_TOKENIZER_SPLIT_H
#define KVIST_MODEL_TOKENIZER_SPLIT_H

#include <stddef.h>

/* A fragment of valid UTF-8 that is being walked. Zero-initialise all but `at` and `end`. */
typedef struct split_walk {
    const char *at, *end;
    const char *segment_end; /* smollm: up to where the inner expression sees */
} split_walk;

/* Returns the bytes of the next word, which starts at w->at, and moves behind it; 0 at the end. */
typedef size_t split_next_fn(split_walk *w);

typedef struct split_kind {
    const char *pre; /* tokenizer.ggml.pre */
    split_next_fn *next;
    int ignore_merges; /* a word that is a piece stays whole */
    int adds_bos;      /* when the file does not say */
} split_kind;

const split_kind *split_find(const char *pre, size_t n); /* NULL: unknown */

#endif
