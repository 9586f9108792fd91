/*
 * What parsing files gave, kept between starts: definitions and calls by content (sha256 of the bytes) and by
 * what read them (a tag over grammar and tables), so that a second start parses nothing and a changed file,
 * table or grammar is never served old results. One file a tree, written whole. A damaged or cut store is
 * read as far as it is good; the rest is parsed anew.
 *
 * Thread: open and find from any thread once it is open; it does not change.
 */
#ifndef KVIST_CODE_STORE_H
#define KVIST_CODE_STORE_H

#include "base/buf.h"
#include "code/internal.h"

/* A call: the name is text[from..from+n), made inside that definition (UINT32_MAX: outside of all). */
typedef struct code_call {
    uint32_t definition, from, n;
} code_call;

typedef struct code_parsed {
    code_file *file; /* without anchors */
    code_call *calls;
    uint32_t n_calls;
} code_parsed;

/*
 * broken.c: replaces what a broken text gave by the earlier reading, moved by the edit, when too much was
 * lost; true: it did.
 */
bool code_keep_through_break(const code_parsed *old, const char *old_text, size_t n_old, const char *text,
    size_t n, code_parsed *fresh);

typedef struct code_store code_store;

/* A missing file gives an empty store. word: set to a sentence when a part could not be used. */
code_store *code_store_open(const char *path, base_buf *word);
void code_store_close(code_store *s);             /* what it gave stays valid */
uint32_t code_store_entries(const code_store *s); /* files that it holds */

/*
 * What parsing gave for a text: key is its SHA-256, tag what read it (code_reader_tag). false: not there. `language`: as
 * code_file.language, borrowed. n: bytes of the text, for bounds. The caller frees ret->file and ret->calls.
 */
bool code_store_find(const code_store *s, const uint8_t key[32], uint64_t tag, const char *language, size_t n,
    code_parsed *ret);

/* Builds a store's bytes: begin, put every file, then write with base_fs_write. */
void code_store_begin(base_buf *out);
void code_store_put(base_buf *out, const uint8_t key[32], uint64_t tag, const code_parsed *p);

#endif
