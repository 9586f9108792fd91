/*
 * What the index holds; shared by index.c (files in, symbols out) and search.c (questions). Everything is
 * guarded by the mutex.
 */
#ifndef KVIST_CODE_INDEX_STATE_H
#define KVIST_CODE_INDEX_STATE_H

#include <pthread.h>

#include "base/mem.h"
#include "code/chunk.h"
#include "code/index.h"
#include "code/store.h"

/* Strings to numbers, 0, 1, ... in order of arrival; nothing is ever removed. */
typedef struct code_strings {
    char **strings;
    uint64_t *hashes;
    uint32_t *table; /* 1 + id; 0: free */
    uint32_t n, n_table;
    size_t cap, cap_hashes;
    char *block; /* arena: the current block begins with a pointer to the one before */
    size_t block_used, block_size;
} code_strings;

uint32_t code_strings_add(code_strings *s, const char *text, size_t n);        /* its number, new or not */
uint32_t code_strings_find(const code_strings *s, const char *text, size_t n); /* UINT32_MAX: not there */
void code_strings_free(code_strings *s);

/* How often a term stands in a chunk: in its name, its signature and comment, the rest. Saturated. */
typedef struct posting {
    uint32_t chunk;
    uint8_t name, head;
    uint16_t body;
} posting;

typedef struct term {
    posting *postings; /* ascending by chunk */
    uint32_t n;
    size_t cap;
    bool in_names; /* part of some definition's name */
} term;

/* An identifier as written: its terms, how many files hold it, where it is defined. */
typedef struct indexed_name {
    uint32_t first_term, n_terms; /* of index.name_terms */
    uint32_t n_files;
    uint32_t stamp; /* of the file that was the last to hold it, while that is inserted */
    uint32_t n_refs;
    size_t cap_refs;
    uint64_t *refs; /* file << 32 | definition */
} indexed_name;

typedef struct indexed_file {
    bool present;
    uint64_t hash;
    char *text; /* NULL: path only (binary, too large, over the index's limit) */
    size_t n;
    code_file *file;
    uint32_t first_chunk, n_chunks;
    uint32_t *names; /* distinct */
    uint32_t n_names;
    code_call *calls;
    uint32_t n_calls;
    uint8_t key[32]; /* sha256 of the text */
    bool has_key;    /* an edit leaves it to the next save */
    uint64_t tag;    /* of what read it */
} indexed_file;

/* Trees of the files that were edited last, or are about to be. */
enum { MAX_KEPT = 8 };
typedef struct kept_file {
    uint32_t file;
    code_kept *kept; /* NULL: free */
    uint64_t used;
} kept_file;

typedef struct indexed_chunk {
    code_chunk chunk;
    uint32_t file;
    uint32_t length; /* identifiers in it */
    bool dead;
} indexed_chunk;

struct code_index {
    code_grammars *grammars; /* borrowed */
    const base_alike *alike; /* borrowed; NULL: nobody knows */
    pthread_mutex_t lock;
    code_strings paths, identifiers, words;
    indexed_file *files; /* by path id */
    indexed_name *names; /* by identifier id */
    term *terms;         /* by word id */
    size_t cap_files, cap_names, cap_terms;
    uint32_t *name_terms;
    size_t n_name_terms, cap_name_terms;
    indexed_chunk *chunks;
    size_t cap_chunks;
    uint32_t n_chunks, n_dead, n_present;
    uint64_t total_length, text_bytes;
    struct tally {
        uint32_t name, head, body;
    } * tally; /* by word id, zero between files */
    size_t cap_tally;
    code_store *store; /* what was parsed by an earlier start; NULL: none */
    uint32_t n_parsed; /* files parsed here, not taken from the store */
    uint32_t stamp;
    kept_file kept[MAX_KEPT];
    uint64_t clock; /* of kept */
};

/*
 * The terms of an identifier: each part stemmed, and the whole in lower case when there is more than one
 * part.
 */
void code_index_terms(
    const char *s, size_t n, void (*add)(void *user, const char *word, size_t n_word), void *user);

#endif
