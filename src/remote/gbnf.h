/*
 * The grammar of model/text/grammar.h as text for engines that take one: GBNF (llama.cpp, grammars/README.md).
 * It holds from a trigger on, to the answer's end: one call of a known tool with its arguments in schema
 * order, then free text, which may be the call's payload.
 */
#ifndef KVIST_REMOTE_GBNF_H
#define KVIST_REMOTE_GBNF_H

#include "base/buf.h"
#include "base/schema.h"
#include "model/text/grammar.h"

/*
 * Appends the rule `called` and those that it needs; a root is the caller's: "root ::= called". paths: as model_grammar_new; more than fit into 16 KiB are any string. Names must be
 * without what JSON escapes.
 */
void remote_gbnf_put(model_tool_style style, const model_grammar_tool *tools, uint32_t n_tools,
    const char *const *paths, base_buf *out);
/*
 * Appends the rule `answer`, JSON of a schema; it needs the rules above. Bounds of numbers are not in it: base_schema_check
 * holds them.
 */
void remote_gbnf_put_schema(const base_schema *schema, base_buf *out);
/* Patterns (ECMAScript; the first group is where the grammar begins) at which a call begins; NULL-terminated. */
const char *const *remote_gbnf_triggers(model_tool_style style);

#endif
