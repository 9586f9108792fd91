/*
 * A chat over a made vocabulary: a file of 256 bytes and some special tokens, with a family's template.
 */
#ifndef KVIST_TESTS_TEMPLATE_KIT_H
#define KVIST_TESTS_TEMPLATE_KIT_H

#include "model/file/gguf.h"
#include "model/text/template.h"

typedef struct chat {
    base_buf bytes;
    gguf_file *gguf;
    model_tokenizer *tokenizer;
    model_template *template;
} chat;

/* A file with `specials` behind the bytes; what cannot be opened fails the test. */
chat chat_open(const char *architecture, const char *name, const char *jinja, const char *const *specials);
/* The file alone. */
base_buf chat_build(
    const char *architecture, const char *name, const char *jinja, const char *const *specials);
void chat_close(chat *c);

/* Scaffold and content as a session appends them; parse: special texts in `text` become their tokens where they are. */
void chat_put(const chat *c, model_role role, const char *text, bool parse, bool ends, model_ids *ids);
/* The pieces of ids from `from` on are `want`, and `want_controls` of them control tokens (-1: as many as there are). */
void chat_expect(const chat *c, const model_ids *ids, size_t from, const char *want, int want_controls);
/* The same of a conversation with a message of every role. */
void chat_converse(const chat *c, const char *want, int want_controls);

#endif
