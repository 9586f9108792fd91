/*
 * A definition that a fenced block brings: its name, what it is, and the type that it is a member of.
 */
#ifndef KVIST_TOOLS_EDIT_NEWCOMER_H
#define KVIST_TOOLS_EDIT_NEWCOMER_H

#include "base/buf.h"
#include "code/code.h"

typedef struct tool_newcomer {
    char *name, *what; /* what: as code_definition.what */
    char *holder;      /* the type around it in the block, or in front of its name (C++); NULL: none */
    char *receiver;    /* Go: the type that it is a method of; NULL: none */
    bool is_member;    /* it can only stand in a type */
    bool is_outside;   /* C++: it says its type in front of its name */
} tool_newcomer;
void tool__newcomer_free(tool_newcomer *n);

/* The block's definition of that name ("f", "Type.member"), else its first whole one; false: it defines nothing. */
bool tool__find_newcomer(code_grammars *g, const char *path, base_str block, const char *language,
    const char *name, tool_newcomer *ret);

/*
 * The name of what the block defines: `name`'s last part where it does, else its first function, method or
 * type; NULL: nothing. The caller frees. *ret_is_member (may be NULL): it can only stand in a type.
 */
char *tool__block_name(
    code_grammars *g, const char *path, base_str block, const char *name, bool *ret_is_member);

/* "Type.member", "Type::member": the type's part, which the caller frees; NULL: the name has none. */
char *tool__name_holder(const char *name);

/* A class, a struct, an interface: what has members. */
bool tool__is_holder(const char *language, const code_definition *d);

/* language: as code_language gives it, NULL for a file that no grammar reads. */
bool tool__is_language(const char *language, const char *name);

#endif
