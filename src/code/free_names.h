/*
 * Names that a piece of a text takes from around it: what has to come along, or be imported, where the piece goes elsewhere. By the
 * scopes of its language (scopes.h); a language without them has none.
 */
#ifndef KVIST_CODE_FREE_NAMES_H
#define KVIST_CODE_FREE_NAMES_H

#include "code/code.h"

typedef struct code_free_name {
    char *name;
    bool is_bound; /* the file's top binds it, outside of the piece */
    bool is_set;   /* the file gives it another value somewhere behind its declaration */
} code_free_name;

/*
 * What bytes [from, to) of the text use and do not declare, each name once, in order. Returns how many; free by
 * code_free_names_free.
 */
uint32_t code_free_names(code_grammars *g, const char *path, const char *text, size_t n, uint32_t from,
    uint32_t to, code_free_name **ret);
void code_free_names_free(code_free_name *all, uint32_t n);
/* Does the file's top bind the name: by a definition, a variable, an import? */
bool code_binds_top(code_grammars *g, const char *path, const char *text, size_t n, const char *name);

#endif
