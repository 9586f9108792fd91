/* See tokenizer_pieces.h. */
#include "model/text/tokenizer_pieces.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/utf8.h"

static const char space_mark[] = "\xe2\x96\x81"; /* U+2581 */

static size_t word_slot(const piece_table *t, const char *s, size_t n)
{
    size_t at = base_hash_keyed(s, n) & (t->n_words - 1);
    for (; t->words[at]; at = (at + 1) & (t->n_words - 1)) {
        base_str p = piece_at(t, t->words[at] - 1);
        if (p.len == n && memcmp(p.ptr, s, n) == 0) break;
    }
    return at;
}

int32_t piece_find(const piece_table *t, const char *s, size_t n)
{
    return (int32_t)t->words[word_slot(t, s, n)] - 1;
}

/* ---- alphabets ---- */

/* The byte that a code point of GPT-2's alphabet stands for, or -1. */
static int alphabet_byte(uint32_t cp)
{
    if ((cp >= 33 && cp <= 126) || (cp >= 161 && cp <= 172) || (cp >= 174 && cp <= 255)) return (int)cp;
    if (cp < 256 || cp >= 256 + 68) return -1;
    uint32_t k = cp - 256; /* the others in order: 0..32, 127..160, 173 */
    return k <= 32 ? (int)k : k <= 66 ? (int)(127 + k - 33) : 173;
}

static bool decode_gpt2(base_str text, char *to, size_t *n)
{
    *n = 0;
    for (size_t i = 0; i < text.len;) {
        uint32_t cp;
        i += base_utf8_decode(text.ptr + i, text.len - i, &cp);
        int byte = alphabet_byte(cp);
        if (byte < 0) return false;
        to[(*n)++] = (char)byte;
    }
    return true;
}

static size_t decode_sentencepiece(base_str text, char *to)
{
    size_t n = 0, mark = sizeof space_mark - 1;
    for (size_t i = 0; i < text.len;) {
        bool space = text.len - i >= mark && memcmp(text.ptr + i, space_mark, mark) == 0;
        to[n++] = space ? ' ' : text.ptr[i];
        i += space ? mark : 1;
    }
    return n;
}

bool piece_decode(base_str text, piece_alphabet alphabet, char *to, size_t *n)
{
    if (alphabet == PIECE_ALPHABET_GPT2) return decode_gpt2(text, to, n);
    *n = decode_sentencepiece(text, to);
    return true;
}

static int hex_digit(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* The byte of "<0x0A>", or -1. */
static int byte_of(base_str text)
{
    if (text.len != 6 || memcmp(text.ptr, "<0x", 3) != 0 || text.ptr[5] != '>') return -1;
    int high = hex_digit(text.ptr[3]), low = hex_digit(text.ptr[4]);
    return high < 0 || low < 0 ? -1 : high * 16 + low;
}

/* Bytes of a piece to `to` (room for text.len). Only normal pieces and bytes are written in an alphabet. */
static size_t decode(base_str text, uint8_t type, piece_alphabet alphabet, char *to)
{
    size_t n;
    if (alphabet == PIECE_ALPHABET_GPT2) {
        if (type == PIECE_NORMAL && decode_gpt2(text, to, &n)) return n;
    } else if (type == PIECE_NORMAL) {
        return decode_sentencepiece(text, to);
    } else if (type == PIECE_BYTE && byte_of(text) >= 0) {
        to[0] = (char)byte_of(text);
        return 1;
    }
    if (text.len) memcpy(to, text.ptr, text.len);
    return text.len;
}

/* ---- load ---- */

static const char key[] = "tokenizer.ggml.tokens";

static int make_room(piece_table *t, const gguf_file *g, base_err *err)
{
    uint64_t n = 0, total = 0;
    base_str s = {0};
    gguf_get_array(g, key, NULL, &n);
    for (uint64_t i = 0; i < n; i++) gguf_array_str(g, key, i, &s), total += s.len + 1;
    if (n == 0) return base_fail(err, BASE_E_FORMAT, "the file has no vocabulary (%s)", key);
    if (total > INT32_MAX)
        return base_fail(err, BASE_E_LIMIT, "a vocabulary of %" PRIu64 " bytes is too large", total);
    t->n = (uint32_t)n;
    t->n_words = 16;
    while (t->n_words < n * 2) t->n_words *= 2;
    t->bytes = malloc(total);
    t->offsets = malloc((n + 1) * sizeof *t->offsets);
    t->types = malloc(n);
    t->words = calloc(t->n_words, sizeof *t->words);
    if (!t->bytes || !t->offsets || !t->types || !t->words)
        return base_fail(err, BASE_E_NOMEM, "no memory for a vocabulary of %" PRIu64 " pieces", n);
    return 0;
}

static void add_piece(piece_table *t, const gguf_file *g, uint32_t i, piece_alphabet alphabet)
{
    double type = PIECE_NORMAL;
    base_str s = {0};
    uint32_t at = t->offsets[i];
    gguf_array_str(g, key, i, &s);
    gguf_array_num(g, "tokenizer.ggml.token_type", i, &type);
    t->types[i] = type >= PIECE_NORMAL && type <= PIECE_BYTE ? (uint8_t)type : PIECE_NORMAL;
    uint32_t n = (uint32_t)decode(s, t->types[i], alphabet, t->bytes + at);
    t->bytes[at + n] = 0;
    t->offsets[i + 1] = at + n + 1;
    if (t->types[i] == PIECE_BYTE && n == 1 && alphabet == PIECE_ALPHABET_SENTENCEPIECE)
        t->byte_ids[(unsigned char)t->bytes[at]] = i;
    if (t->types[i] != PIECE_NORMAL) return;
    if (n > t->longest) t->longest = n;
    size_t slot = word_slot(t, t->bytes + at, n);
    if (!t->words[slot]) t->words[slot] = i + 1;
}

int piece_table_load(piece_table *t, const gguf_file *g, piece_alphabet alphabet, base_err *err)
{
    int rc = make_room(t, g, err);
    if (rc) return rc;
    t->offsets[0] = 0;
    for (uint32_t b = 0; b < 256; b++) t->byte_ids[b] = t->n;
    for (uint32_t i = 0; i < t->n; i++) add_piece(t, g, i, alphabet);
    for (uint32_t b = 0; b < 256; b++) {
        char c = (char)b;
        int32_t id = piece_find(t, &c, 1);
        if (t->byte_ids[b] == t->n && id >= 0) t->byte_ids[b] = (uint32_t)id;
    }
    return 0;
}

void piece_table_free(piece_table *t)
{
    free(t->bytes);
    free(t->offsets);
    free(t->types);
    free(t->words);
}
