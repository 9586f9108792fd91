/*
 * A file cut into what retrieval returns: definitions with the comment above them, sections of documents, and
 * passages for the rest. Chunks do not overlap and ascend. Used by the index.
 */
#ifndef KVIST_CODE_CHUNK_H
#define KVIST_CODE_CHUNK_H

#include "code/code.h"

enum {
    CHUNK_TEST = 1u << 0,         /* in a test, example or benchmark */
    CHUNK_DECLARATIONS = 1u << 1, /* prototypes */
    CHUNK_DOCUMENT = 1u << 2,
    CHUNK_DATA = 1u << 3,     /* json, yaml, build files */
    CHUNK_HISTORY = 1u << 4,  /* change logs */
    CHUNK_PASSAGE = 1u << 5,  /* no definition of its own */
    CHUNK_CONTINUED = 1u << 6 /* a later piece of a long definition */
};

typedef struct code_chunk {
    uint32_t from, to; /* the comment above included */
    uint32_t head_to;  /* comment and signature end here; from: no head */
    uint32_t line, line_end;
    uint32_t definition; /* UINT32_MAX: a passage */
    uint32_t flags;
} code_chunk;

/* Cuts; *ret is freed with free(). Returns the number. */
uint32_t code_chunk_file(const code_file *f, const char *path, const char *text, size_t n, code_chunk **ret);

/* Lock files, minified and generated ones: nobody asks about them. */
bool code_chunk_skips(const char *path, const char *text, size_t n);

#endif
