/*
 * The grammar of model/text/grammar.h as text for engines that take one: GBNF (llama.cpp, grammars/README.md),
 * which is the EBNF of xgrammar, and so of vLLM and SGLang, as well. It holds from a trigger on, to the answer's
 * end: one call of a known tool with its arguments in schema order, then free text, which may be the call's
 * payload. Where an engine knows no triggers, the free text in front of the call is a rule too.
 */
#ifndef KVIST_REMOTE_GBNF_H
#define KVIST_REMOTE_GBNF_H

#include "base/buf.h"
#include "base/schema.h"
#include "model/text/grammar.h"

/*
 * Appends the rule `called` and those that it needs. paths: as model_grammar_new; more than fit into 16 KiB are any string, and so
 * are more than 64 choices. Names must be without what JSON escapes.
 */
void remote_gbnf_put(model_tool_style style, const model_grammar_tool *tools, uint32_t n_tools,
    const char *const *paths, base_buf *out);
/* What one answer is held to. */
typedef struct remote_gbnf_answer {
    model_tool_style style;
    const base_buf *rules; /* remote_gbnf_put's */
    bool is_lazy;          /* the engine wakes the grammar at a trigger (below): free text is no part of it */
    /* JSON of it, but for bounds of numbers, which base_schema_check holds; NULL: free text, then perhaps a call */
    const base_schema *schema;
    bool calls;       /* beside JSON of the schema: a call */
    const char *root; /* remote_gbnf_put_rest's: the answer goes on inside of a call; NULL: it begins */
} remote_gbnf_answer;

/* The whole grammar, with its root. */
void remote_gbnf_put_answer(const remote_gbnf_answer *a, base_buf *out);
/* Patterns (ECMAScript; the first group is where the grammar begins) at which a call begins; NULL-terminated. */
const char *const *remote_gbnf_triggers(model_tool_style style);

/* What stands behind a call's object or function, as GBNF. */
const char *remote_gbnf_ending(model_tool_style style);
/* Text as it stands, as a literal of GBNF. */
void remote_gbnf_put_literal(base_buf *out, const char *text);
bool remote_gbnf_is_plain(const char *text); /* JSON writes it as it is: else it cannot be listed */

#endif
