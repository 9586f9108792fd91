/*
 * Which definition of a file a model means by a name: "name", "Class.method", "name:120" (the one at that line).
 */
#ifndef KVIST_TOOLS_EDIT_DEFINITION_H
#define KVIST_TOOLS_EDIT_DEFINITION_H

#include "base/buf.h"
#include "code/index.h"

/* code_parse, but by words when a syntax error hides the name from the grammar. */
code_file *tool__parse_for(code_grammars *g, const char *path, const char *text, size_t n, const char *name);
/* Finds the definition that a name means; *ret: which of f->definitions. false: *why says what else there is, and the next call. */
bool tool__find_definition(const code_file *f, const char *path, const base_buf *text, const char *name,
    uint32_t *ret, base_buf *why);
/* A definition as a whole, not a part of one (a variable, a field). */
bool tool__is_rewritable(const code_definition *d);

#endif
