/*
 * Functions and calls in the form that Gemma 4 was taught (the grammar that holds a model to it is
 * model/text/grammar_marks.c's; reading is channels.c's):
 *
 *     <|tool>declaration:NAME{description:<|"|>..<|"|>,parameters:{properties:{KEY:{..}},..}}<tool|>
 *     <|tool_call>call:NAME{KEY:<|"|>text<|"|>,KEY:3}<tool_call|>
 *
 * What is written in < and > is a control token, here a name between two bytes of AGENT_PROMPT_MARK, or the name alone
 * where the text is only shown. Pure; any thread.
 */
#ifndef KVIST_AGENT_CALL_CALL_GEMMA_H
#define KVIST_AGENT_CALL_CALL_GEMMA_H

#include "base/buf.h"
#include "tools/tool.h"

/* A function with those of its arguments that a model is told of, keys in the order of the alphabet. */
void agent_call_gemma_declare(
    const tool_entry *t, const tool_argument *const *arguments, size_t n, base_buf *out);

/*
 * Writes `json` ({"name": .., "arguments": {..}}, or the beginning of one that ends inside a string: then its last value
 * stays open) as such a call. payload: the argument that follows, left open; NULL: none.
 */
void agent_call_gemma_put(const char *json, const char *payload, bool has_marks, base_buf *out);

/* A piece of the text between { and } of a call, outside of text or inside, as JSON; `word` is what began outside. */
void agent_call_gemma_read(const char *piece, size_t n, bool in_text, base_buf *word, base_buf *json);
/* What was begun outside is over: a value, unless nothing was. */
void agent_call_gemma_end_word(base_buf *word, base_buf *json);

#endif
