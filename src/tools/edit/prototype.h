/*
 * A new function of C or C++ is told to others by its header: a prototype behind that of its neighbour, a declaration in
 * its class, in the words that the neighbour's has there. Pure functions of texts.
 */
#ifndef KVIST_TOOLS_EDIT_PROTOTYPE_H
#define KVIST_TOOLS_EDIT_PROTOTYPE_H

#include "base/buf.h"
#include "code/code.h"

/* Does the request speak of a header, or of declaring? (NULL: no) */
bool tool__asks_for_prototype(const char *request);

/* A definition's text up to its body, on one line; nothing: it has no body. */
void tool__put_signature(const char *text, const code_definition *d, base_buf *out);

/* The block's function of that name loses its "static", and gets "holder::" in front of its name. */
void tool__drop_static(code_grammars *g, const char *path, base_buf *block, const char *name);
void tool__qualify(code_grammars *g, const char *path, base_buf *block, const char *name, const char *holder);

/*
 * Puts the prototype of a new function behind its neighbour's, where the header declares that; false: it does
 * not, or declares the new one already. like (may be NULL): the neighbour's signature where it is defined: what the
 * header says otherwise ("API int", "std::string") it says so of the new one too.
 */
bool tool__add_prototype(code_grammars *g, const char *path, const base_buf *header, const char *neighbour,
    const char *like, const char *name, const char *signature, base_buf *ret);

/*
 * A definition's signature has become another: the header's only prototype of that name follows, keeping what it says
 * otherwise. false: it has none or several, or says the new one already.
 */
bool tool__follow_prototype(code_grammars *g, const char *path, const base_buf *header, const char *name,
    const char *old_signature, const char *signature, base_buf *ret);

#endif
