/*
 * A lazy byte grammar for tool calls: nothing is constrained until a trigger stands at the start of a line;
 * from there on the bytes must be one call of a known tool with its arguments in schema order, and bytes
 * already emitted are checked too.
 *
 * Fenced blocks behind a call are its payload and free, whatever they hold; so is JSON in any fenced block.
 *
 * Byte level, so token borders do not matter. Depth and lengths are bounded. If a mask would allow no token,
 * the caller drops it and logs that; the lenient parser (agent/call/call.h) then reads what came.
 */
#ifndef KVIST_MODEL_GRAMMAR_H
#define KVIST_MODEL_GRAMMAR_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "model/text/template.h"

typedef struct model_grammar model_grammar;

/* One tool: arguments in the order in which they must be written. */
typedef enum model_argument_type {
    MODEL_ARGUMENT_STRING,
    MODEL_ARGUMENT_INTEGER,
    MODEL_ARGUMENT_BOOLEAN,
    MODEL_ARGUMENT_CHOICE,
    MODEL_ARGUMENT_PATH
} model_argument_type;
typedef struct model_grammar_argument {
    const char *name;
    model_argument_type type;
    bool required;
    const char *const *choices; /* CHOICE: NULL-terminated */
} model_grammar_argument;
typedef struct model_grammar_tool {
    const char *name;
    const model_grammar_argument *arguments;
    uint32_t n_arguments;
} model_grammar_tool;

/*
 * paths: what a PATH argument may be (NULL-terminated; NULL or empty: any string). Tools and paths are
 * copied; the tokenizer must live as long. Names that JSON would have to escape, or equal names, are
 * BASE_E_USAGE.
 */
int model_grammar_new(model_grammar **ret, const model_tokenizer *t, model_tool_style style,
    const model_grammar_tool *tools, uint32_t n_tools, const char *const *paths, base_err *err);
void model_grammar_free(model_grammar *g);
void model_grammar_reset(model_grammar *g); /* a new answer begins: at the start of a line */

/*
 * Would this token keep the text inside the grammar? True always while dormant and the token triggers nothing
 * bad.
 */
bool model_grammar_accepts(const model_grammar *g, int32_t id);
/*
 * Bits of all allowed ids ([n_vocab+63]/64), valid until the next call. NULL inside a line of free text, and
 * when no id at all would do. It walks the vocabulary (milliseconds): ask only when accepts said no.
 */
const uint64_t *model_grammar_mask(model_grammar *g);
/*
 * The mask behind `ids` (n tokens that the grammar accepts from here on; none: here), where a call is being
 * written and not inside a string: few ids are allowed there, and their mask costs microseconds. Elsewhere,
 * and when no id would do: NULL.
 */
const uint64_t *model_grammar_few(model_grammar *g, const int32_t *ids, uint32_t n);
/*
 * Tokens that must come whatever the model says, at most max into ret: where a call leaves exactly one byte,
 * and then one again (the rest of a name, a key or a path), the spelling of those bytes without its last
 * token, which might go on into what is free.
 */
uint32_t model_grammar_forced(const model_grammar *g, int32_t *ret, uint32_t max);
void model_grammar_advance(
    model_grammar *g, int32_t id); /* a token was taken; an unacceptable one makes it dormant */
bool model_grammar_is_active(const model_grammar *g);
/* The same as accepts, of an answer that has to be a call from its first byte on: no free text in front of it. */
bool model_grammar_begins_call(const model_grammar *g, int32_t id);

#endif
