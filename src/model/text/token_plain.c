/* Sorting a vocabulary into plain text and the rest (contract: token_plain.h). */
#include "model/text/token_plain.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "model/text/json_character.h"

/* Characters of a piece; 0: it is not plain. */
static uint32_t plain_characters(base_str piece)
{
    uint8_t character = PLAIN;
    uint32_t n = 0;
    for (size_t i = 0; i < piece.len; i++) {
        const uint8_t byte = (uint8_t)piece.ptr[i];
        if (character != PLAIN) {
            if (!json_character_step(byte, &character)) return 0;
            continue;
        }
        if (byte == '"' || byte == '\\' || !json_character_begin(byte, &character)) return 0;
        n++;
    }
    return character == PLAIN ? n : 0;
}

/* Of each token that a trie of the whole vocabulary has: its length, and a place among those of that length. */
static void sort_plain(token_plain *p, const uint32_t *n_characters, uint32_t n_ids)
{
    for (uint32_t id = 0; id < n_ids; id++)
        if (n_characters[id]) p->n_up_to[n_characters[id]]++;
    for (uint32_t k = 1; k <= p->longest; k++) p->n_up_to[k] += p->n_up_to[k - 1];
    uint32_t *at = base_xcalloc((size_t)p->longest + 1, sizeof *at); /* where the next of a length goes */
    for (uint32_t k = 1; k <= p->longest; k++) at[k] = p->n_up_to[k - 1];
    p->n = p->n_up_to[p->longest];
    p->ids = base_xcalloc((size_t)p->n + 1, sizeof *p->ids);
    for (uint32_t id = 0; id < n_ids; id++) {
        if (!n_characters[id]) continue;
        p->ids[at[n_characters[id]]++] = (int32_t)id;
        p->bits[id / 64] |= (uint64_t)1 << (id % 64);
    }
    free(at);
}

token_plain *token_plain_new(const model_tokenizer *t)
{
    const uint32_t n = model_tokenizer_size(t);
    token_plain *p = base_xcalloc(1, sizeof *p);
    base_str *others = base_xcalloc((size_t)n + 1, sizeof *others);
    uint32_t *n_characters = base_xcalloc((size_t)n + 1, sizeof *n_characters);
    for (uint32_t id = 0; id < n; id++) {
        size_t len = 0;
        const char *piece = model_tokenizer_piece(t, (int32_t)id, &len);
        if (!piece || !len || model_tokenizer_is_control(t, (int32_t)id) ||
            model_tokenizer_is_end(t, (int32_t)id))
            continue;
        n_characters[id] = plain_characters((base_str){piece, len});
        if (!n_characters[id]) others[id] = (base_str){piece, len};
        if (n_characters[id] > p->longest) p->longest = n_characters[id];
    }
    p->n_words = (n + 63) / 64;
    p->bits = base_xcalloc((size_t)p->n_words + 1, sizeof *p->bits);
    p->n_up_to = base_xcalloc((size_t)p->longest + 1, sizeof *p->n_up_to);
    sort_plain(p, n_characters, n);
    p->others = token_trie_new(others, n);
    free(others);
    free(n_characters);
    if (p->others) return p;
    token_plain_free(p);
    return NULL;
}

void token_plain_free(token_plain *p)
{
    if (!p) return;
    token_trie_free(p->others);
    free(p->ids);
    free(p->n_up_to);
    free(p->bits);
    free(p);
}

bool token_plain_allow(const token_plain *p, uint32_t n_characters, uint64_t *bits)
{
    if (n_characters >= p->longest) {
        for (uint32_t i = 0; i < p->n_words; i++) bits[i] |= p->bits[i];
        return p->n > 0;
    }
    const uint32_t n = p->n_up_to[n_characters];
    for (uint32_t i = 0; i < n; i++) bits[p->ids[i] / 64] |= (uint64_t)1 << (p->ids[i] % 64);
    return n > 0;
}
