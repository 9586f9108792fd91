/*
 * SentencePiece vocabularies with scores (tokenizer.ggml.model "llama": Gemma, Llama 2). Part of tokenizer.c.
 *
 * Two neighbours merge when the vocabulary has their bytes together, the piece with the best score first;
 * what is left over and no piece becomes bytes. There is no table of merges and there are no words: a text is
 * cut only where no piece has such a pair of bytes inside, which changes nothing and lets a word be
 * remembered.
 */
#ifndef KVIST_MODEL_TOKENIZER_SPM_H
#define KVIST_MODEL_TOKENIZER_SPM_H

#include "model/text/tokenizer_bpe.h"
#include "model/text/tokenizer_pieces.h"

typedef struct spm_table {
    const piece_table *pieces;
    uint32_t *ranks;  /* [n] by score, the best is the lowest */
    uint8_t *inside;  /* [65536 / 8] bits: two bytes that follow one another inside a normal piece */
    bool space_first; /* a text behind nothing or behind a special token gets a space in front */
} spm_table;

/* `pieces` must outlive it. */
int spm_table_load(spm_table *t, const piece_table *pieces, const gguf_file *g, base_err *err);
void spm_table_free(spm_table *t);

/* The bytes of the first word of a text (n > 0). */
size_t spm_next(const spm_table *t, const char *text, size_t n);

/* Appends the ids of a word of valid UTF-8 (0 < n < 2^31). */
void spm_encode(const spm_table *t, bpe_scratch *s, const char *word, size_t n, model_ids *out);

#endif
