/*
 * The vocabulary of a model that is somewhere else, as far as it was seen: text to ids by the engine's own
 * tokenizer, and the bytes of ids. Each text and each id is asked for once.
 *
 * Content and scaffolding differ as in model/text/tokenizer.h: special texts inside of content stay text,
 * also with engines whose tokenizer always reads them as control tokens.
 */
#ifndef KVIST_REMOTE_VOCAB_H
#define KVIST_REMOTE_VOCAB_H

#include "remote/http.h"
#include "remote/wire.h"

typedef struct remote_vocab remote_vocab;

/* Knows nothing yet and asks nobody. http and wire must live as long; model: as the engine wants it called, copied. */
remote_vocab *remote_vocab_new(remote_http *http, const remote_wire *wire, const char *model);
void remote_vocab_free(remote_vocab *v);

/* Appends the ids of text; no BOS. special: special texts become their control tokens. */
int remote_vocab_encode(
    remote_vocab *v, const char *text, size_t n, bool special, model_ids *out, base_err *err);
/* About how many ids it has; asks nobody. */
uint32_t remote_vocab_guess(const remote_vocab *v, size_t n_bytes);
/* What ids stand for, control tokens by their names. */
int remote_vocab_decode(remote_vocab *v, const int32_t *ids, uint32_t n, base_buf *out, base_err *err);

/* Asks for what is not known of these ids, in one request. */
int remote_vocab_learn(remote_vocab *v, const int32_t *ids, uint32_t n, base_err *err);
/*
 * The bytes of ids that together are this text, where the tokenizer tells each alone and no more
 * (remote_wire.tells_no_pieces): alone a part of a letter is U+FFFD, and some lose the blank in front of them. What
 * fits is believed; the text between two ids that fit is that of the ids between them. is_all: so is what stands
 * behind the last that fits; else what *ret (may be NULL) counts belongs together, more is to come.
 */
typedef struct remote_vocab_fit {
    size_t n, n_bytes; /* the first ids, and the first bytes of the text, which are these ids' */
} remote_vocab_fit;
int remote_vocab_learn_text(remote_vocab *v, const int32_t *ids, size_t n, base_str text, bool is_all,
    remote_vocab_fit *ret, base_err *err);
/* Its bytes as a stream showed them. */
void remote_vocab_set(remote_vocab *v, int32_t id, const char *bytes, size_t n);
bool remote_vocab_knows(const remote_vocab *v, int32_t id); /* are its bytes known? asks nobody */
/* NULL: not known. The bytes live as long as v. */
const char *remote_vocab_piece(const remote_vocab *v, int32_t id, size_t *ret_n);

/* From here on this id is a control token, and its text in content is kept from becoming it. */
void remote_vocab_set_control(remote_vocab *v, int32_t id);
bool remote_vocab_is_control(const remote_vocab *v, int32_t id); /* as far as was found out; asks nobody */
/* Finds out whether it is one: alone, as content, its text has other ids. */
int remote_vocab_judge(remote_vocab *v, int32_t id, base_err *err);

#endif
