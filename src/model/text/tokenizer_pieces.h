/*
 * The pieces of a vocabulary as the bytes they stand for, and the way back from bytes to a piece. Part of
 * tokenizer.c.
 *
 * Files write pieces in an alphabet: GPT-2's printable one, where every byte is a character, or
 * SentencePiece's, where U+2581 is a space and <0x0A> a byte. Both end here; nothing else knows them.
 * Immutable after load.
 */
#ifndef KVIST_MODEL_TOKENIZER_PIECES_H
#define KVIST_MODEL_TOKENIZER_PIECES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "model/file/gguf.h"

/* tokenizer.ggml.token_type */
enum {
    PIECE_NORMAL = 1,
    PIECE_UNKNOWN = 2,
    PIECE_CONTROL = 3,
    PIECE_USER = 4,
    PIECE_UNUSED = 5,
    PIECE_BYTE = 6
};

typedef enum piece_alphabet { PIECE_ALPHABET_GPT2, PIECE_ALPHABET_SENTENCEPIECE } piece_alphabet;

typedef struct piece_table {
    uint32_t n, longest; /* longest: bytes of the longest normal piece */
    char *bytes;         /* all pieces, each followed by NUL */
    uint32_t *offsets;   /* [n + 1] */
    uint8_t *types;      /* [n] */
    uint32_t *words;     /* piece to id + 1, normal pieces only; open addressing */
    size_t n_words;
    /* the piece that is this byte and nothing else; n where the vocabulary has none */
    uint32_t byte_ids[256];
} piece_table;

int piece_table_load(piece_table *t, const gguf_file *g, piece_alphabet alphabet, base_err *err);
void piece_table_free(piece_table *t);

/* The normal piece of these bytes, or -1. */
int32_t piece_find(const piece_table *t, const char *s, size_t n);

/*
 * Writes the bytes of a normal piece to `to` (room for text.len); false when a character is not in the
 * alphabet.
 */
bool piece_decode(base_str text, piece_alphabet alphabet, char *to, size_t *n);

static inline base_str piece_at(const piece_table *t, uint32_t id)
{
    return (base_str){t->bytes + t->offsets[id], t->offsets[id + 1] - t->offsets[id] - 1};
}

#endif
