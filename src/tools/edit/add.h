/*
 * A definition that a file lacks, put where it belongs: into the type that it is a member of, behind the
 * definition that is most like it, in the file's style, its imports with the others. Pure functions of texts.
 */
#ifndef KVIST_TOOLS_EDIT_ADD_H
#define KVIST_TOOLS_EDIT_ADD_H

#include "base/buf.h"
#include "code/code.h"

typedef struct tool_addition {
    base_buf text;           /* the whole file with it */
    uint32_t line, line_end; /* where it stands there, 1-based */
    base_buf note;           /* what of the block was left out, which imports came with it */
    char *behind;            /* the definition that it stands behind; NULL: none */
    /* it shares words of its name with that one, or the request names that; else it is merely the last */
    bool is_kin;
    char *signature; /* its text up to the body, on one line; NULL: it has no body (a variable, a type) */
} tool_addition;
void tool__addition_free(tool_addition *a);

/*
 * Adds what the block defines under `name` ("f", "Type.member") to the file. request (may be NULL): the
 * person's words, which may name the neighbour or the type. false with *why: the block does not define it, or
 * the file would not parse.
 */
bool tool__add_definition(code_grammars *g, const char *path, const base_buf *text, const char *name,
    base_str block, const char *request, tool_addition *ret, base_buf *why);

#endif
