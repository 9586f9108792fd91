/* See tokenizer_spm.h. */
#include "model/text/tokenizer_spm.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/utf8.h"

/* An order of floats as an order of integers, turned round: the highest score is the lowest rank. */
static uint32_t rank_of(float score)
{
    uint32_t bits;
    score += 0.0f; /* -0 is 0 */
    memcpy(&bits, &score, sizeof bits);
    return ~(bits >> 31 ? ~bits : bits | 0x80000000u);
}

int spm_table_load(spm_table *t, const piece_table *pieces, const gguf_file *g, base_err *err)
{
    static const char key[] = "tokenizer.ggml.scores";
    uint64_t n = 0;
    t->pieces = pieces;
    t->space_first = true;
    gguf_get_bool(g, "tokenizer.ggml.add_space_prefix", &t->space_first);
    if (!gguf_get_array(g, key, NULL, &n) || n < pieces->n)
        return base_fail(err, BASE_E_FORMAT, "the file has no %s for its vocabulary", key);
    t->ranks = base_xcalloc(pieces->n, sizeof *t->ranks);
    t->inside = base_xcalloc(65536 / 8, 1);
    for (uint32_t i = 0; i < pieces->n; i++) {
        double score = NAN;
        if (!gguf_array_num(g, key, i, &score) || isnan(score))
            return base_fail(err, BASE_E_FORMAT, "the score of piece %u is not a number", i);
        t->ranks[i] = rank_of((float)score);
        base_str p = piece_at(pieces, i);
        for (size_t k = 0; pieces->types[i] == PIECE_NORMAL && k + 1 < p.len; k++) {
            unsigned bit = (unsigned)(unsigned char)p.ptr[k] << 8 | (unsigned char)p.ptr[k + 1];
            t->inside[bit / 8] |= (uint8_t)(1u << bit % 8);
        }
    }
    return 0;
}

void spm_table_free(spm_table *t)
{
    free(t->ranks);
    free(t->inside);
}

static bool is_continuation(char c)
{
    return ((unsigned char)c & 0xC0) == 0x80;
}

size_t spm_next(const spm_table *t, const char *text, size_t n)
{
    for (size_t at = 1; at < n; at++) {
        unsigned bit = (unsigned)(unsigned char)text[at - 1] << 8 | (unsigned char)text[at];
        if (!(t->inside[bit / 8] >> bit % 8 & 1) && !is_continuation(text[at])) return at;
    }
    return n;
}

static bool find_piece(
    const void *user, uint32_t left, uint32_t right, const char *at, size_t n, bpe_result *ret)
{
    const spm_table *t = user;
    (void)left;
    (void)right;
    int32_t id = n <= t->pieces->longest ? piece_find(t->pieces, at, n) : -1;
    if (id < 0) return false;
    *ret = (bpe_result){t->ranks[id], (uint32_t)id};
    return true;
}

void spm_encode(const spm_table *t, bpe_scratch *s, const char *word, size_t n, model_ids *out)
{
    const piece_table *pieces = t->pieces;
    int32_t before = -1;
    base_grow(&s->symbols, &s->symbols_cap, n, sizeof *s->symbols);
    for (size_t i = 0, n_char; i < n; i += n_char) {
        uint32_t cp;
        n_char = base_utf8_decode(word + i, n - i, &cp);
        int32_t id = piece_find(pieces, word + i, n_char);
        s->symbols[i] = (bpe_symbol){.id = id < 0 ? pieces->n : (uint32_t)id,
            .before = before,
            .after = i + n_char < n ? (int32_t)(i + n_char) : -1};
        before = (int32_t)i;
    }
    bpe_merge_all(s, word, n, find_piece, t);
    for (int32_t i = 0; i >= 0; i = s->symbols[i].after) {
        size_t end = s->symbols[i].after < 0 ? n : (size_t)s->symbols[i].after;
        if (s->symbols[i].id < pieces->n) {
            model_ids_add(out, (int32_t)s->symbols[i].id);
            continue;
        }
        for (size_t k = (size_t)i; k < end; k++) {
            uint32_t id = pieces->byte_ids[(unsigned char)word[k]];
            if (id < pieces->n) model_ids_add(out, (int32_t)id);
        }
    }
}
