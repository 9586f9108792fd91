/*
 * "Add a docstring to f": a small model writes the comment and loses half of the code. So of such a text the comments are
 * taken, and the code stays as it is.
 */
#ifndef KVIST_TOOLS_EDIT_COMMENTS_H
#define KVIST_TOOLS_EDIT_COMMENTS_H

#include "base/buf.h"
#include "code/index.h"

/* Does the request ask for comments or docstrings to be added and for nothing else? NULL: no. */
bool tool__asks_for_comments_alone(const char *request);
/*
 * The file's text with what the block has as comments and docstrings in its definition `name`, each in front of the line of code that
 * it stands in front of in the block. false with *why: it brings none, or what comes is no program.
 */
bool tool__take_comments(code_grammars *g, const char *path, const base_buf *text, const char *name,
    base_str block, base_buf *ret_text, base_buf *why);

#endif
