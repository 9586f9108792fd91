/*
 * Texts that are one token wherever they stand: control tokens and the vocabulary's user-defined ones. Part
 * of tokenizer.c.
 */
#ifndef KVIST_MODEL_TOKENIZER_SPECIAL_H
#define KVIST_MODEL_TOKENIZER_SPECIAL_H

#include "model/text/tokenizer_pieces.h"

typedef struct special {
    uint32_t id, n;
    const char *text; /* in the piece table */
    bool user;        /* user-defined: recognised in any text */
} special;

typedef struct special_table {
    special *list; /* longest first, of equal lengths the lower id */
    uint32_t n, longest;
    uint32_t *slots; /* hash of a text -> place in the list + 1; open addressing */
    size_t n_slots;
    uint8_t *begins;  /* [65536 / 8] bits: the first two bytes of a special; all of those of a lone byte */
    uint8_t *lengths; /* [longest + 1] is there one of that length */
} special_table;

int special_table_load(special_table *t, const piece_table *pieces, base_err *err);
void special_table_free(special_table *t);

/* The special of this text, or NULL. */
const special *special_find(const special_table *t, const char *text, size_t n);

/*
 * Which specials occur in a text at all, in one pass over it, whatever their number (Gemma has thousands):
 * places in the list, ascending, to `ret` (room for t->n); returns how many. Only user-defined ones unless
 * `all`.
 */
uint32_t special_occurring(const special_table *t, const char *text, size_t n, bool all, uint32_t *ret);

#endif
