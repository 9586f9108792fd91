/*
 * Text to token ids and back, exactly as llama.cpp does it (tests/model/test_tokenizer.c compares).
 *
 * Content and scaffolding are different things: content is encoded with parse_special false, so that
 * "<|im_end|>" inside a file is text and never a control token. Immutable after load; any thread may use it.
 */
#ifndef KVIST_MODEL_TOKENIZER_H
#define KVIST_MODEL_TOKENIZER_H

#include <stdbool.h>

#include "base/err.h"
#include "model/text/ids.h"

struct gguf_file;
struct token_trie; /* token_trie.h */
typedef struct model_tokenizer model_tokenizer;

int model_tokenizer_load(model_tokenizer **ret, const struct gguf_file *gguf, base_err *err);
void model_tokenizer_free(model_tokenizer *t);

/*
 * Appends the ids of text. No BOS is added. parse_special: special texts become their control tokens
 * (user-defined tokens always do).
 */
void model_tokenizer_encode(
    const model_tokenizer *t, const char *text, size_t n, bool parse_special, model_ids *out);

/*
 * The token's bytes (may end inside a code point); control tokens give their name. NULL for an id outside the
 * vocabulary.
 */
const char *model_tokenizer_piece(const model_tokenizer *t, int32_t id, size_t *ret_n);

bool model_tokenizer_is_control(const model_tokenizer *t, int32_t id);
bool model_tokenizer_is_end(
    const model_tokenizer *t, int32_t id); /* ends an answer: eos, eot, <|im_end|>, ... */
int32_t model_tokenizer_find(
    const model_tokenizer *t, const char *piece);      /* exact piece (a control token's name); -1 */
int32_t model_tokenizer_bos(const model_tokenizer *t); /* -1 when the model wants none */
uint32_t model_tokenizer_size(const model_tokenizer *t);

/*
 * All pieces but control tokens, ends and empty ones, as a trie of bytes. Made at the first call (some 40 ms for
 * 150,000 pieces), from any thread; the tokenizer's own. NULL when memory is gone.
 */
const struct token_trie *model_tokenizer_trie(const model_tokenizer *t);

#endif
