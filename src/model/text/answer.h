/*
 * What holds an answer to a schema, token by token: from its first byte on it is JSON that fits, or, where calls are
 * allowed, one call as grammar.h has them. The first bytes decide which.
 *
 * It ends within a given number of tokens: a token is refused behind which the nearest end would be too far, counted
 * as one token a byte, which any vocabulary with all bytes can write. Near the limit that leaves the shortest way.
 */
#ifndef KVIST_MODEL_ANSWER_H
#define KVIST_MODEL_ANSWER_H

#include "base/schema.h"
#include "model/text/grammar.h"

typedef struct model_answer model_answer;

/* Schema and tokenizer must live as long. Errors as schema_grammar_new. */
int model_answer_new(model_answer **ret, const model_tokenizer *t, const base_schema *schema, base_err *err);
void model_answer_free(model_answer *a);
/* Is there a value that fits, and can it be held? Without a model, before anything is run. */
int model_answer_can(const base_schema *schema, base_err *err);

/*
 * An answer begins. calls: reset, it may be one of these (used up to the answer's end); NULL: no calls. n_tokens: that
 * it may have, its end counted. BASE_E_LIMIT: the shortest value may take more.
 */
int model_answer_begin(model_answer *a, model_grammar *calls, uint32_t n_tokens, base_err *err);
/* From here on the nearest end. */
void model_answer_close(model_answer *a);

/*
 * Is it a call, and no JSON of the schema? Then nothing below is to be asked but advance: the grammar of calls says
 * what may follow.
 */
bool model_answer_is_call(const model_answer *a);
/* Would this token keep it inside, an end token too? */
bool model_answer_accepts(model_answer *a, int32_t id);
/* Bits of all that would, valid until the next call of any of these; NULL: none. It walks the vocabulary. */
const uint64_t *model_answer_mask(model_answer *a);
/* The mask behind n tokens that were accepted, where few ids are; else NULL (model_grammar_few). */
const uint64_t *model_answer_few(model_answer *a, const int32_t *ids, uint32_t n);
/* As model_grammar_forced. */
uint32_t model_answer_forced(model_answer *a, int32_t *ret, uint32_t max);
/* A token was taken: one that is accepted, or any in a call. */
void model_answer_advance(model_answer *a, int32_t id);

bool model_answer_was_cut(
    const model_answer *a); /* a token was refused since the end would have been too far */

#endif
