/*
 * What a description states of a definition and its code shows: "the recursive helper", "the private method of Parser", "what
 * nobody calls", "the one with an underscore in its name". The index's lock is held; any thread.
 */
#ifndef KVIST_CODE_TRAITS_H
#define KVIST_CODE_TRAITS_H

#include "code/index_state.h"

enum { CODE_MOST_TRAITS = 16 };

typedef struct code_traits {
    const code_index *x;
    bool said[CODE_MOST_TRAITS];
    const char *owner; /* the type that it is a member of, of the index; NULL: none is said */
    char *place;       /* a file's name without its ending, or a folder; NULL: none is said */
    bool *is_used;     /* [identifiers] called by code outside of tests; NULL: nobody asks */
} code_traits;

/* Of a request as a person wrote it. x stays valid as long as *ret; code_traits_free. */
void code_traits_read(const code_index *x, const char *request, code_traits *ret);
/* How many of the traits that are stated does it lack? */
uint32_t code_traits_lacks(const code_traits *t, uint32_t file, const code_definition *d);
void code_traits_free(code_traits *t);

#endif
