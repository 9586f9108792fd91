/*
 * The grammar of what is left of a call that has begun already: written by the harness ("rename a to b"), or by the model
 * before its answer broke off. The rules are those of remote_gbnf_put; only the root is another, which goes on in the
 * middle of the call. Here the names that a definition may have are listed, which are too many for every request.
 */
#ifndef KVIST_REMOTE_GBNF_REST_H
#define KVIST_REMOTE_GBNF_REST_H

#include "base/buf.h"
#include "model/text/grammar.h"

/* Copies of the tools that remote_gbnf_put was given, in its order; lists of choices are sorted. */
typedef struct remote_gbnf_tools {
    model_grammar_tool *tools;
    uint32_t n;
} remote_gbnf_tools;

void remote_gbnf_tools_keep(remote_gbnf_tools *k, const model_grammar_tool *tools, uint32_t n);
void remote_gbnf_tools_free(remote_gbnf_tools *k);

/*
 * Appends the root of an answer that goes on behind said[0, n), in which its first call has begun. false, and nothing is
 * appended: that is over, of no known tool, or it stopped where this does not go on (inside of a key or of an escape).
 */
bool remote_gbnf_put_rest(
    const remote_gbnf_tools *k, model_tool_style style, const char *said, size_t n, base_buf *out);

#endif
