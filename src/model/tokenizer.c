/*
 * Text to ids for the GPT-2 family of byte-level vocabularies (tokenizer.ggml.model "gpt2").
 *
 * A text goes through four stages: special texts are cut out (longest first), the rest falls into words (tokenizer_split.c),
 * a word seen before in this call is copied, a new one is merged (tokenizer_bpe.c). Pieces are kept as the bytes they stand
 * for, so nothing here knows GPT-2's printable alphabet but the loader. SentencePiece vocabularies (Gemma) are refused.
 *
 * As llama.cpp, no Unicode normalisation takes place, and invalid UTF-8 counts as U+FFFD.
 */
#include "model/tokenizer.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "model/gguf.h"
#include "model/token_trie.h"
#include "model/tokenizer_bpe.h"
#include "model/tokenizer_split.h"

/* tokenizer.ggml.token_type */
enum { TYPE_NORMAL = 1, TYPE_UNKNOWN = 2, TYPE_CONTROL = 3, TYPE_USER = 4, TYPE_UNUSED = 5, TYPE_BYTE = 6 };

enum {
    MAX_WORD = 1 << 24,  /* a longer word is cut: indices stay in 31 bits */
    MAX_SPECIALS = 8192, /* and with it how deep encode_specials goes */
};

typedef struct special {
    uint32_t id, n;
    const char *text;
    bool user; /* user-defined: recognised in any text */
} special;

struct model_tokenizer {
    uint32_t n_vocab;
    char *bytes;       /* all pieces, each followed by NUL */
    uint32_t *offsets; /* [n_vocab + 1] */
    uint8_t *types;    /* [n_vocab] */
    bool *ends;        /* [n_vocab] */
    uint32_t *words;   /* piece to id + 1, normal pieces only; open addressing */
    size_t n_words;
    special *specials; /* longest first */
    uint32_t n_specials;
    uint32_t byte_symbols[256]; /* the one-byte pieces; n_vocab + byte where the vocabulary has none */
    bpe_table merges;
    const split_kind *split;
    int32_t bos;
    struct trie_slot *trie;
};

/* Apart from the tokenizer, which is const once it is loaded. */
struct trie_slot {
    _Atomic(token_trie *) made;
};

/* ---- lists of ids ---- */

void model_ids_add(model_ids *list, int32_t id)
{
    if (list->n == list->cap) base_grow(&list->ids, &list->cap, list->n + 1, sizeof *list->ids);
    list->ids[list->n++] = id;
}

void model_ids_free(model_ids *list)
{
    free(list->ids);
    *list = (model_ids){0};
}

/* ---- pieces ---- */

static base_str piece_at(const model_tokenizer *t, uint32_t id)
{
    return (base_str){t->bytes + t->offsets[id], t->offsets[id + 1] - t->offsets[id] - 1};
}

static size_t word_slot(const model_tokenizer *t, const char *s, size_t n)
{
    size_t at = base_hash64(s, n, 0) & (t->n_words - 1);
    for (; t->words[at]; at = (at + 1) & (t->n_words - 1)) {
        base_str p = piece_at(t, t->words[at] - 1);
        if (p.len == n && memcmp(p.ptr, s, n) == 0) break;
    }
    return at;
}

/* The normal piece of these bytes, or -1. */
static int32_t find_word(const model_tokenizer *t, const char *s, size_t n)
{
    return (int32_t)t->words[word_slot(t, s, n)] - 1;
}

/* The byte that a code point of GPT-2's alphabet stands for, or -1. */
static int alphabet_byte(uint32_t cp)
{
    if ((cp >= 33 && cp <= 126) || (cp >= 161 && cp <= 172) || (cp >= 174 && cp <= 255)) return (int)cp;
    if (cp < 256 || cp >= 256 + 68) return -1;
    uint32_t k = cp - 256; /* the others in order: 0..32, 127..160, 173 */
    return k <= 32 ? (int)k : k <= 66 ? (int)(127 + k - 33) : 173;
}

/* Writes the bytes of a piece to `to` (room for text.len); false when it is not in the alphabet. */
static bool decode_alphabet(base_str text, char *to, size_t *n)
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

/* ---- load ---- */

static int load_pieces(model_tokenizer *t, const gguf_file *g, base_err *err)
{
    static const char key[] = "tokenizer.ggml.tokens";
    uint64_t n_vocab = 0, total = 0;
    base_str s = {0};
    gguf_get_array(g, key, NULL, &n_vocab);
    for (uint64_t i = 0; i < n_vocab; i++) gguf_array_str(g, key, i, &s), total += s.len + 1;
    if (n_vocab == 0) return base_fail(err, BASE_E_FORMAT, "the file has no vocabulary (%s)", key);
    if (total > INT32_MAX)
        return base_fail(err, BASE_E_LIMIT, "a vocabulary of %" PRIu64 " bytes is too large", total);
    t->n_vocab = (uint32_t)n_vocab;
    t->n_words = 16;
    while (t->n_words < n_vocab * 2) t->n_words *= 2;
    t->bytes = malloc(total);
    t->offsets = malloc((n_vocab + 1) * sizeof *t->offsets);
    t->types = malloc(n_vocab);
    t->ends = calloc(n_vocab, sizeof *t->ends);
    t->words = calloc(t->n_words, sizeof *t->words);
    if (!t->bytes || !t->offsets || !t->types || !t->ends || !t->words)
        return base_fail(err, BASE_E_NOMEM, "no memory for a vocabulary of %" PRIu64 " pieces", n_vocab);
    uint32_t at = 0;
    for (uint32_t i = 0; i < t->n_vocab; i++) {
        double type = TYPE_NORMAL;
        size_t n;
        gguf_array_str(g, key, i, &s);
        gguf_array_num(g, "tokenizer.ggml.token_type", i, &type);
        t->types[i] = type >= TYPE_NORMAL && type <= TYPE_BYTE ? (uint8_t)type : TYPE_NORMAL;
        t->offsets[i] = at;
        if (t->types[i] != TYPE_NORMAL || !decode_alphabet(s, t->bytes + at, &n))
            memcpy(t->bytes + at, s.ptr, n = s.len);
        at += (uint32_t)n;
        t->bytes[at++] = 0;
        t->offsets[i + 1] = at;
        if (t->types[i] != TYPE_NORMAL) continue;
        size_t slot = word_slot(t, t->bytes + t->offsets[i], n);
        if (!t->words[slot]) t->words[slot] = i + 1;
    }
    for (uint32_t b = 0; b < 256; b++) {
        char c = (char)b;
        int32_t id = find_word(t, &c, 1);
        t->byte_symbols[b] = id >= 0 ? (uint32_t)id : t->n_vocab + b;
    }
    return 0;
}

static int load_merges(model_tokenizer *t, const gguf_file *g, base_err *err)
{
    static const char key[] = "tokenizer.ggml.merges";
    uint64_t n = 0;
    if (!gguf_get_array(g, key, NULL, &n) || n >= UINT32_MAX)
        return base_fail(err, BASE_E_FORMAT, "the file has no %s", key);
    int r = bpe_table_new(&t->merges, n, err);
    if (r < 0) return r;
    base_buf pair = {0};
    for (uint64_t i = 0; i < n && r == 0; i++) {
        base_str s = {0};
        size_t n_left = 0, n_right = 0;
        gguf_array_str(g, key, i, &s);
        base_buf_clear(&pair);
        base_buf_reserve(&pair, s.len + 1);
        /* The space between the two; neither side has one, and a side may not be empty. */
        const char *space = s.len > 1 ? memchr(s.ptr + 1, ' ', s.len - 1) : NULL;
        bool fine = space &&
                    decode_alphabet((base_str){s.ptr, (size_t)(space - s.ptr)}, pair.data, &n_left) &&
                    decode_alphabet((base_str){space + 1, s.len - (size_t)(space + 1 - s.ptr)},
                        pair.data + n_left, &n_right);
        int32_t left = fine ? find_word(t, pair.data, n_left) : -1;
        int32_t right = fine ? find_word(t, pair.data + n_left, n_right) : -1;
        int32_t whole = fine ? find_word(t, pair.data, n_left + n_right) : -1;
        if (left < 0 || right < 0 || whole < 0)
            r = base_fail(
                err, BASE_E_FORMAT, "merge %" PRIu64 " names a piece that the vocabulary does not have", i);
        else
            bpe_table_add(&t->merges, (uint32_t)left, (uint32_t)right, (uint32_t)i, (uint32_t)whole);
    }
    base_buf_free(&pair);
    return r;
}

static int longest_first(const void *a, const void *b)
{
    const special *x = a, *y = b;
    if (x->n != y->n) return x->n > y->n ? -1 : 1;
    return x->id < y->id ? -1 : x->id > y->id;
}

static int load_specials(model_tokenizer *t, base_err *err)
{
    size_t cap = 0;
    for (uint32_t i = 0; i < t->n_vocab; i++) {
        base_str p = piece_at(t, i);
        uint8_t type = t->types[i];
        if (p.len == 0 || (type != TYPE_CONTROL && type != TYPE_UNKNOWN && type != TYPE_USER)) continue;
        if (t->n_specials == MAX_SPECIALS)
            return base_fail(
                err, BASE_E_LIMIT, "the vocabulary has more than %d special tokens", MAX_SPECIALS);
        base_grow(&t->specials, &cap, t->n_specials + 1, sizeof *t->specials);
        t->specials[t->n_specials++] = (special){i, (uint32_t)p.len, p.ptr, type == TYPE_USER};
    }
    if (t->n_specials) qsort(t->specials, t->n_specials, sizeof *t->specials, longest_first);
    return 0;
}

/* Names that converters forget to mark as control tokens; llama.cpp treats them so by name. */
static void load_ends(model_tokenizer *t, const gguf_file *g)
{
    static const char *const ids[] = {"tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id",
        "tokenizer.ggml.eom_token_id", "tokenizer.ggml.fim_pad_token_id", "tokenizer.ggml.fim_rep_token_id",
        "tokenizer.ggml.fim_sep_token_id"};
    static const char *const names[] = {"<|im_end|>", "<|endoftext|>", "<|eot_id|>", "<|eom_id|>",
        "<end_of_turn>", "<|end_of_text|>", "<|fim_pad|>", "<|fim_rep|>", "<|repo_name|>", "<|file_sep|>"};
    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++) {
        uint64_t id;
        if (gguf_get_u64(g, ids[i], &id) && id < t->n_vocab) t->ends[id] = true;
    }
    for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
        for (uint32_t i = 0; i < t->n_vocab; i++) {
            if (t->types[i] == TYPE_NORMAL || !base_str_equal(piece_at(t, i), names[k])) continue;
            t->ends[i] = true;
            t->types[i] = TYPE_CONTROL;
        }
    }
}

int model_tokenizer_load(model_tokenizer **ret, const struct gguf_file *g, base_err *err)
{
    base_str model = {0}, pre = {"gpt-2", 5};
    gguf_get_str(g, "tokenizer.ggml.model", &model);
    gguf_get_str(g, "tokenizer.ggml.pre", &pre);
    if (!base_str_equal(model, "gpt2")) {
        return base_fail(err, BASE_E_UNSUPPORTED,
            "the vocabulary is of the kind \"%.*s\"; kvist knows \"gpt2\" (byte-level BPE)",
            (int)(model.len < 40 ? model.len : 40), model.ptr ? model.ptr : "");
    }
    const split_kind *split = split_find(pre.ptr, pre.len);
    if (!split) {
        return base_fail(err, BASE_E_UNSUPPORTED,
            "the pre-tokenizer \"%.*s\" is not one of qwen2, llama-bpe, smollm, gpt-2",
            (int)(pre.len < 40 ? pre.len : 40), pre.ptr);
    }
    model_tokenizer *t = base_xcalloc(1, sizeof *t);
    t->split = split;
    t->trie = base_xcalloc(1, sizeof *t->trie);
    int r = load_pieces(t, g, err);
    if (r == 0) r = load_merges(t, g, err);
    if (r == 0) {
        load_ends(t, g);
        r = load_specials(t, err);
    }
    if (r < 0) {
        model_tokenizer_free(t);
        return r;
    }
    bool add_bos = split->adds_bos;
    uint64_t bos;
    gguf_get_bool(g, "tokenizer.ggml.add_bos_token", &add_bos);
    t->bos = add_bos && gguf_get_u64(g, "tokenizer.ggml.bos_token_id", &bos) && bos < t->n_vocab
                 ? (int32_t)bos
                 : -1;
    *ret = t;
    return 0;
}

void model_tokenizer_free(model_tokenizer *t)
{
    if (!t) return;
    free(t->bytes);
    free(t->offsets);
    free(t->types);
    free(t->ends);
    free(t->words);
    free(t->specials);
    bpe_table_free(&t->merges);
    token_trie_free(atomic_load(&t->trie->made));
    free(t->trie);
    free(t);
}

const token_trie *token_trie_of(const model_tokenizer *t)
{
    token_trie *made = atomic_load(&t->trie->made), *none = NULL;
    if (made) return made;
    made = token_trie_new(t);
    if (atomic_compare_exchange_strong(&t->trie->made, &none, made)) return made;
    token_trie_free(made); /* another thread was faster */
    return none;
}

/* ---- encode ---- */

/* A word of this text and the ids it became, so that the next one like it is copied. */
typedef struct seen {
    const char *word; /* NULL: free */
    size_t n, first;  /* its ids in out */
    size_t n_ids;
} seen;

typedef struct encoding {
    const model_tokenizer *t;
    model_ids *out;
    bpe_scratch scratch;
    seen *cache; /* direct mapped */
    size_t n_cache;
} encoding;

static void encode_word(encoding *e, const char *word, size_t n)
{
    const model_tokenizer *t = e->t;
    seen *c = &e->cache[base_hash64(word, n, 1) & (e->n_cache - 1)];
    if (c->word && c->n == n && memcmp(c->word, word, n) == 0) {
        for (size_t i = 0; i < c->n_ids; i++) model_ids_add(e->out, e->out->ids[c->first + i]);
        return;
    }
    *c = (seen){word, n, e->out->n, 0};
    int32_t whole = t->split->ignore_merges ? find_word(t, word, n) : -1;
    if (whole >= 0)
        model_ids_add(e->out, whole);
    else
        bpe_encode(&t->merges, &e->scratch, word, n, t->byte_symbols, t->n_vocab, e->out);
    c->n_ids = e->out->n - c->first;
}

static void encode_plain(encoding *e, const char *text, size_t n)
{
    split_walk walk = {.at = text, .end = text + n};
    for (const char *word = text; (n = e->t->split->next(&walk)) > 0; word = walk.at) {
        for (; n > MAX_WORD; word += MAX_WORD, n -= MAX_WORD) encode_word(e, word, MAX_WORD);
        encode_word(e, word, n);
    }
}

/*
 * Cuts out the special texts from `first` on, longest first over the whole fragment, as llama.cpp does: what stands left of a
 * match is only searched for the shorter ones. Depth is at most the number of specials that occur.
 */
static void encode_specials(encoding *e, const char *text, size_t n, bool parse_special, uint32_t first)
{
    for (uint32_t i = first; i < e->t->n_specials && n; i++) {
        const special *s = &e->t->specials[i];
        if (!s->user && !parse_special) continue;
        const char *hit = memmem(text, n, s->text, s->n);
        if (!hit) continue;
        for (; hit; hit = memmem(text, n, s->text, s->n)) {
            encode_specials(e, text, (size_t)(hit - text), parse_special, i + 1);
            model_ids_add(e->out, (int32_t)s->id);
            n -= (size_t)(hit - text) + s->n;
            text = hit + s->n;
        }
    }
    encode_plain(e, text, n);
}

void model_tokenizer_encode(
    const model_tokenizer *t, const char *text, size_t n, bool parse_special, model_ids *out)
{
    base_buf repaired = {0};
    if (n == 0) return;
    if (!base_utf8_valid(text, n)) {
        for (size_t i = 0; i < n;) {
            uint32_t cp;
            char bytes[4];
            i += base_utf8_decode(text + i, n - i, &cp);
            base_buf_add(&repaired, bytes, base_utf8_encode(cp, bytes));
        }
        text = repaired.data;
        n = repaired.len;
    }
    encoding e = {.t = t, .out = out, .n_cache = 64};
    while (e.n_cache < 65536 && e.n_cache < n / 8) e.n_cache *= 2;
    e.cache = base_xcalloc(e.n_cache, sizeof *e.cache);
    encode_specials(&e, text, n, parse_special, 0);
    free(e.cache);
    bpe_scratch_free(&e.scratch);
    base_buf_free(&repaired);
}

/* ---- look-ups ---- */

uint32_t model_tokenizer_size(const model_tokenizer *t)
{
    return t->n_vocab;
}

int32_t model_tokenizer_bos(const model_tokenizer *t)
{
    return t->bos;
}

const char *model_tokenizer_piece(const model_tokenizer *t, int32_t id, size_t *ret_n)
{
    if (id < 0 || (uint32_t)id >= t->n_vocab) return NULL;
    base_str p = piece_at(t, (uint32_t)id);
    *ret_n = p.len;
    return p.ptr;
}

bool model_tokenizer_is_control(const model_tokenizer *t, int32_t id)
{
    if (id < 0 || (uint32_t)id >= t->n_vocab) return false;
    return t->types[id] == TYPE_CONTROL || t->types[id] == TYPE_UNKNOWN || t->types[id] == TYPE_UNUSED;
}

bool model_tokenizer_is_end(const model_tokenizer *t, int32_t id)
{
    return id >= 0 && (uint32_t)id < t->n_vocab && t->ends[id];
}

int32_t model_tokenizer_find(const model_tokenizer *t, const char *piece)
{
    size_t n = strlen(piece);
    for (uint32_t i = 0; i < t->n_specials; i++)
        if (t->specials[i].n == n && memcmp(t->specials[i].text, piece, n) == 0)
            return (int32_t)t->specials[i].id;
    return find_word(t, piece, n);
}
