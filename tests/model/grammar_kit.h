/* What tests of the tool calls' grammar share: a table of tools, and vocabularies that are made up. */
#ifndef KVIST_TESTS_GRAMMAR_KIT_H
#define KVIST_TESTS_GRAMMAR_KIT_H

#include "base/buf.h"
#include "model/file/gguf.h"
#include "model/text/grammar.h"
#include "model/text/tokenizer.h"
#include "tiny_gguf.h"

enum { GRAMMAR_N_TOOLS = 5 };
extern const model_grammar_tool grammar_tools[GRAMMAR_N_TOOLS];
extern const char *const grammar_paths[]; /* of the tree; NULL-terminated */

typedef struct vocabulary {
    base_buf bytes;
    gguf_file *gguf;
    model_tokenizer *tokenizer;
} vocabulary;

/* Of a file's bytes, which it takes over; unload. What does not load fails the test. */
vocabulary load_bytes(base_buf bytes);
vocabulary load_tiny(void);
/* Pieces given as they are, ids from 0; the last is a control token. NULL-terminated. */
vocabulary load_pieces(const char *const *pieces);
void unload(vocabulary *v);

/* For the tools above; model_grammar_free. */
model_grammar *make(const vocabulary *v, model_tool_style style);

#endif
