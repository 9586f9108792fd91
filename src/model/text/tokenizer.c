/*
 * Text to ids, for byte-level vocabularies ("gpt2": Qwen, Llama 3, SmolLM2), SentencePiece ones ("llama":
 * Gemma, Llama 2), and what lies between ("gemma4": SentencePiece's letters, merged by rank).
 *
 * A text goes through three stages: special texts are cut out (tokenizer_special.c), the rest falls into
 * words (tokenizer_split.c, or wherever no piece reaches across: tokenizer_spm.c), a word seen before in this
 * call is copied, a new one is merged (tokenizer_bpe.c). Pieces are kept as the bytes they stand for
 * (tokenizer_pieces.c).
 *
 * As llama.cpp, no Unicode normalisation takes place, and invalid UTF-8 counts as U+FFFD.
 */
#include "model/text/tokenizer.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "model/file/gguf.h"
#include "model/text/token_trie.h"
#include "model/text/tokenizer_bpe.h"
#include "model/text/tokenizer_pieces.h"
#include "model/text/tokenizer_special.h"
#include "model/text/tokenizer_split.h"
#include "model/text/tokenizer_spm.h"

enum { MAX_WORD = 1 << 24 /* a longer word is cut: indices stay in 31 bits */ };

struct model_tokenizer {
    piece_table pieces;
    special_table specials;
    bool *ends;                 /* [pieces.n] */
    const split_kind *split;    /* vocabularies with merges; NULL: a SentencePiece one */
    piece_alphabet alphabet;    /* of pieces and merges */
    uint32_t byte_symbols[256]; /* the one-byte pieces; pieces.n + byte where the vocabulary has none */
    bpe_table merges;
    spm_table spm;
    int32_t bos;
    struct trie_slot *trie;
};

/* Apart from the tokenizer, which is const once it is loaded. */
struct trie_slot {
    _Atomic(token_trie *) made;
};

/* Merges begin with letters, not with bytes. */
static bool has_letters(const model_tokenizer *t)
{
    return t->split && t->alphabet == PIECE_ALPHABET_SENTENCEPIECE;
}

/* ---- load ---- */

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
        bool fine =
            space &&
            piece_decode((base_str){s.ptr, (size_t)(space - s.ptr)}, t->alphabet, pair.data, &n_left) &&
            piece_decode((base_str){space + 1, s.len - (size_t)(space + 1 - s.ptr)}, t->alphabet,
                pair.data + n_left, &n_right);
        int32_t left = fine ? piece_find(&t->pieces, pair.data, n_left) : -1;
        int32_t right = fine ? piece_find(&t->pieces, pair.data + n_left, n_right) : -1;
        int32_t whole = fine ? piece_find(&t->pieces, pair.data, n_left + n_right) : -1;
        if (left < 0 || right < 0 || whole < 0)
            r = base_fail(
                err, BASE_E_FORMAT, "merge %" PRIu64 " names a piece that the vocabulary does not have", i);
        else
            bpe_table_add(&t->merges, (uint32_t)left, (uint32_t)right, (uint32_t)i, (uint32_t)whole);
    }
    base_buf_free(&pair);
    return r;
}

/* The token of this name, where it is no text; -1. */
static int32_t find_mark(const model_tokenizer *t, const char *name)
{
    for (uint32_t i = 0; i < t->pieces.n; i++)
        if (t->pieces.types[i] != PIECE_NORMAL && base_str_equal(piece_at(&t->pieces, i), name))
            return (int32_t)i;
    return -1;
}

/*
 * Harmony's marks (gpt-oss) are control tokens, whatever the converter made of them; and where an answer ends with
 * <|return|> or <|call|>, <|end|> ends one of its messages only.
 */
static void load_channels(model_tokenizer *t)
{
    static const char *const names[] = {
        "<|start|>", "<|channel|>", "<|constrain|>", "<|message|>", "<|end|>"};
    if (find_mark(t, "<|return|>") < 0 || find_mark(t, "<|call|>") < 0) return;
    for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
        const int32_t id = find_mark(t, names[k]);
        if (id < 0) continue;
        t->pieces.types[id] = PIECE_CONTROL;
        t->ends[id] = false;
    }
}

/*
 * What the families' templates (template.c) begin and end messages with. As user-defined tokens, which some converters
 * made of them, they would be read out of any text: a file could end the message that it stands in.
 */
static void load_marks(model_tokenizer *t)
{
    static const char *const names[] = {"<|im_start|>", "<|start_of_role|>", "<|end_of_role|>",
        "<|start_header_id|>", "<|end_header_id|>", "<start_of_turn>", "[SYSTEM_PROMPT]", "[/SYSTEM_PROMPT]",
        "[INST]", "[/INST]", "[TOOL_RESULTS]", "[/TOOL_RESULTS]", "[AVAILABLE_TOOLS]", "[/AVAILABLE_TOOLS]",
        "[TOOL_CALLS]", "[ARGS]", "[CALL_ID]", "[TOOL_CONTENT]", "<s>", "</s>", "<|turn>", "<turn|>",
        "<|tool_call|>", "<|channel>", "<channel|>", "<|think|>", "<|tool>", "<tool|>", "<|tool_call>",
        "<tool_call|>", "<tool_response|>", "<|\"|>", "<seed:bos>", "<seed:eos>"};
    for (size_t k = 0; k < sizeof names / sizeof *names; k++)
        for (uint32_t i = 0; i < t->pieces.n; i++)
            if (t->pieces.types[i] == PIECE_USER && base_str_equal(piece_at(&t->pieces, i), names[k]))
                t->pieces.types[i] = PIECE_CONTROL;
}

/* What a call stands between that is text: as control tokens nobody would see it. */
static void load_tags(model_tokenizer *t)
{
    static const char *const names[] = {"<seed:tool_call>", "</seed:tool_call>"};
    for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
        const int32_t id = find_mark(t, names[k]);
        if (id >= 0 && !t->ends[id]) t->pieces.types[id] = PIECE_USER;
    }
}

/* Names that converters forget to mark as control tokens; llama.cpp treats them so by name. */
static void load_ends(model_tokenizer *t, const gguf_file *g)
{
    static const char *const ids[] = {"tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id",
        "tokenizer.ggml.eom_token_id", "tokenizer.ggml.fim_pad_token_id", "tokenizer.ggml.fim_rep_token_id",
        "tokenizer.ggml.fim_sep_token_id"};
    static const char *const names[] = {"<|im_end|>", "<|endoftext|>", "<|eot_id|>", "<|eom_id|>",
        "<end_of_turn>", "<turn|>", "<|tool_response>", "<|end_of_text|>", "<|return|>", "<|call|>",
        "<|fim_pad|>", "<|fim_rep|>", "<|repo_name|>", "<|file_sep|>"};
    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++) {
        uint64_t id;
        if (gguf_get_u64(g, ids[i], &id) && id < t->pieces.n) t->ends[id] = true;
    }
    for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
        for (uint32_t i = 0; i < t->pieces.n; i++) {
            if (t->pieces.types[i] == PIECE_NORMAL || !base_str_equal(piece_at(&t->pieces, i), names[k]))
                continue;
            t->ends[i] = true;
            t->pieces.types[i] = PIECE_CONTROL;
        }
    }
    load_channels(t);
    load_marks(t);
    load_tags(t);
}

static int load_byte_level(model_tokenizer *t, const gguf_file *g, base_err *err)
{
    base_str pre = {"gpt-2", 5};
    gguf_get_str(g, "tokenizer.ggml.pre", &pre);
    t->split = split_find(pre.ptr, pre.len);
    if (!t->split)
        return base_fail(err, BASE_E_UNSUPPORTED,
            "the pre-tokenizer \"%.*s\" is not one of qwen2, qwen35, "
            "llama-bpe, dbrx, smaug-bpe, seed-coder, smollm, refact, gpt-2, tekken, gpt-4o",
            (int)(pre.len < 40 ? pre.len : 40), pre.ptr);
    int r = piece_table_load(&t->pieces, g, PIECE_ALPHABET_GPT2, err);
    if (r < 0) return r;
    for (uint32_t b = 0; b < 256; b++) {
        uint32_t id = t->pieces.byte_ids[b];
        t->byte_symbols[b] = id < t->pieces.n ? id : t->pieces.n + b;
    }
    return load_merges(t, g, err);
}

static int load_letters(model_tokenizer *t, const gguf_file *g, base_err *err)
{
    static const char pre[] = "gemma4";
    t->split = split_find(pre, sizeof pre - 1);
    t->alphabet = PIECE_ALPHABET_SENTENCEPIECE;
    int r = piece_table_load(&t->pieces, g, t->alphabet, err);
    return r < 0 ? r : load_merges(t, g, err);
}

static int load_sentencepiece(model_tokenizer *t, const gguf_file *g, base_err *err)
{
    int r = piece_table_load(&t->pieces, g, PIECE_ALPHABET_SENTENCEPIECE, err);
    return r < 0 ? r : spm_table_load(&t->spm, &t->pieces, g, err);
}

static int load(model_tokenizer *t, const gguf_file *g, base_err *err)
{
    base_str model = {0};
    int r;
    gguf_get_str(g, "tokenizer.ggml.model", &model);
    if (base_str_equal(model, "gpt2"))
        r = load_byte_level(t, g, err);
    else if (base_str_equal(model, "llama"))
        r = load_sentencepiece(t, g, err);
    else if (base_str_equal(model, "gemma4"))
        r = load_letters(t, g, err);
    else
        r = base_fail(err, BASE_E_UNSUPPORTED,
            "the vocabulary is of the kind \"%.*s\"; kvist knows \"gpt2\" (byte-level BPE), \"llama\" "
            "(SentencePiece) and \"gemma4\"",
            (int)(model.len < 40 ? model.len : 40), model.ptr ? model.ptr : "");
    if (r < 0) return r;
    t->ends = base_xcalloc(t->pieces.n, sizeof *t->ends);
    load_ends(t, g);
    bool add_bos = t->split ? t->split->adds_bos : true;
    uint64_t bos;
    if (!has_letters(t)) gguf_get_bool(g, "tokenizer.ggml.add_bos_token", &add_bos); /* older files say no */
    if (add_bos && gguf_get_u64(g, "tokenizer.ggml.bos_token_id", &bos) && bos < t->pieces.n)
        t->bos = (int32_t)bos;
    return special_table_load(&t->specials, &t->pieces, err);
}

int model_tokenizer_load(model_tokenizer **ret, const struct gguf_file *g, base_err *err)
{
    model_tokenizer *t = base_xcalloc(1, sizeof *t);
    t->bos = -1;
    t->trie = base_xcalloc(1, sizeof *t->trie);
    int r = load(t, g, err);
    if (r < 0)
        model_tokenizer_free(t);
    else
        *ret = t;
    return r;
}

void model_tokenizer_free(model_tokenizer *t)
{
    if (!t) return;
    piece_table_free(&t->pieces);
    special_table_free(&t->specials);
    bpe_table_free(&t->merges);
    spm_table_free(&t->spm);
    free(t->ends);
    token_trie_free(atomic_load(&t->trie->made));
    free(t->trie);
    free(t);
}

static token_trie *make_trie(const model_tokenizer *t)
{
    base_str *piece = calloc(t->pieces.n, sizeof *piece);
    for (uint32_t i = 0; piece && i < t->pieces.n; i++) {
        const int32_t id = (int32_t)i;
        if (!model_tokenizer_is_control(t, id) && !model_tokenizer_is_end(t, id))
            piece[i].ptr = model_tokenizer_piece(t, id, &piece[i].len);
    }
    token_trie *trie = piece ? token_trie_new(piece, t->pieces.n) : NULL;
    free(piece);
    return trie;
}

const token_trie *model_tokenizer_trie(const model_tokenizer *t)
{
    token_trie *made = atomic_load(&t->trie->made), *none = NULL;
    if (made) return made;
    made = make_trie(t);
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
    bool after_special;  /* nothing or a special token stands before what comes next */
    uint32_t *occurring; /* places of the specials that the text holds */
    uint32_t n_occurring;
} encoding;

static int32_t letter_of(const void *user, const char *letter, size_t n)
{
    return piece_find(user, letter, n);
}

static void encode_word(encoding *e, const char *word, size_t n)
{
    const model_tokenizer *t = e->t;
    seen *c = &e->cache[base_hash64(word, n, 1) & (e->n_cache - 1)];
    if (c->word && c->n == n && memcmp(c->word, word, n) == 0) {
        for (size_t i = 0; i < c->n_ids; i++) model_ids_add(e->out, e->out->ids[c->first + i]);
        return;
    }
    *c = (seen){word, n, e->out->n, 0};
    /* As llama.cpp: a run of line ends that is a piece of Gemma 4's is not merged. */
    const bool is_whole = t->split && (t->split->ignore_merges || (has_letters(t) && *word == '\n'));
    int32_t whole = is_whole ? piece_find(&t->pieces, word, n) : -1;
    if (whole >= 0)
        model_ids_add(e->out, whole);
    else if (t->split && has_letters(t))
        bpe_encode_letters(
            &t->merges, &e->scratch, word, n, letter_of, &t->pieces, t->pieces.byte_ids, t->pieces.n, e->out);
    else if (t->split)
        bpe_encode(&t->merges, &e->scratch, word, n, t->byte_symbols, t->pieces.n, e->out);
    else
        spm_encode(&t->spm, &e->scratch, word, n, e->out);
    c->n_ids = e->out->n - c->first;
}

/* The next word of a text that is not empty. */
static size_t next_word(const model_tokenizer *t, split_walk *walk)
{
    if (t->split) return t->split->next(walk);
    size_t n = walk->at < walk->end ? spm_next(&t->spm, walk->at, (size_t)(walk->end - walk->at)) : 0;
    walk->at += n;
    return n;
}

static void encode_words(encoding *e, const char *text, size_t n)
{
    split_walk walk = {.at = text, .end = text + n};
    for (const char *word = text; (n = next_word(e->t, &walk)) > 0; word = walk.at) {
        while (n > MAX_WORD) {
            size_t whole = base_utf8_whole(word, MAX_WORD);
            encode_word(e, word, whole);
            word += whole;
            n -= whole;
        }
        encode_word(e, word, n);
    }
}

/*
 * A text without specials. SentencePiece writes a space as U+2581, so that both are a space to it; then, and
 * where a space goes in front, the words are those of a copy, which the cache must not outlive.
 */
static void encode_plain(encoding *e, const char *text, size_t n)
{
    static const char mark[] = "\xe2\x96\x81";
    size_t mark_n = sizeof mark - 1;
    if (n == 0) return;
    bool space_first = !e->t->split && e->t->spm.space_first && e->after_special;
    e->after_special = false;
    const bool keeps_marks = e->t->split && !has_letters(e->t);
    if (keeps_marks || (!space_first && !memmem(text, n, mark, mark_n))) {
        encode_words(e, text, n);
        return;
    }
    base_buf copy = {0};
    if (space_first) base_buf_putc(&copy, ' ');
    for (const char *hit; (hit = memmem(text, n, mark, mark_n)); n -= mark_n, text = hit + mark_n) {
        base_buf_add(&copy, text, (size_t)(hit - text));
        base_buf_putc(&copy, ' ');
        n -= (size_t)(hit - text);
    }
    base_buf_add(&copy, text, n);
    memset(e->cache, 0, e->n_cache * sizeof *e->cache);
    encode_words(e, copy.data, copy.len);
    memset(e->cache, 0, e->n_cache * sizeof *e->cache);
    base_buf_free(&copy);
}

/*
 * Cuts out the special texts from the `first` occurring one on, longest first over the whole fragment, as
 * llama.cpp does: what stands left of a match is only searched for the shorter ones. Depth is at most the
 * number of specials that occur.
 */
static void encode_specials(encoding *e, const char *text, size_t n, uint32_t first)
{
    for (uint32_t i = first; i < e->n_occurring && n; i++) {
        const special *s = &e->t->specials.list[e->occurring[i]];
        for (const char *hit; (hit = memmem(text, n, s->text, s->n)); text = hit + s->n) {
            encode_specials(e, text, (size_t)(hit - text), i + 1);
            model_ids_add(e->out, (int32_t)s->id);
            e->after_special = true;
            n -= (size_t)(hit - text) + s->n;
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
    encoding e = {.t = t, .out = out, .n_cache = 64, .after_special = true};
    while (e.n_cache < 65536 && e.n_cache < n / 8) e.n_cache *= 2;
    e.cache = base_xcalloc(e.n_cache, sizeof *e.cache);
    e.occurring = base_xcalloc((size_t)t->specials.n + 1, sizeof *e.occurring);
    e.n_occurring = special_occurring(&t->specials, text, n, parse_special, e.occurring);
    encode_specials(&e, text, n, 0);
    free(e.cache);
    free(e.occurring);
    bpe_scratch_free(&e.scratch);
    base_buf_free(&repaired);
}

/* ---- look-ups ---- */

uint32_t model_tokenizer_size(const model_tokenizer *t)
{
    return t->pieces.n;
}

int32_t model_tokenizer_bos(const model_tokenizer *t)
{
    return t->bos;
}

const char *model_tokenizer_piece(const model_tokenizer *t, int32_t id, size_t *ret_n)
{
    if (id < 0 || (uint32_t)id >= t->pieces.n) return NULL;
    base_str p = piece_at(&t->pieces, (uint32_t)id);
    *ret_n = p.len;
    return p.ptr;
}

bool model_tokenizer_is_control(const model_tokenizer *t, int32_t id)
{
    if (id < 0 || (uint32_t)id >= t->pieces.n) return false;
    uint8_t type = t->pieces.types[id];
    return type == PIECE_CONTROL || type == PIECE_UNKNOWN || type == PIECE_UNUSED;
}

bool model_tokenizer_is_end(const model_tokenizer *t, int32_t id)
{
    return id >= 0 && (uint32_t)id < t->pieces.n && t->ends[id];
}

int32_t model_tokenizer_find(const model_tokenizer *t, const char *piece)
{
    size_t n = strlen(piece);
    const special *s = special_find(&t->specials, piece, n);
    if (s) return (int32_t)s->id;
    return piece_find(&t->pieces, piece, n);
}
