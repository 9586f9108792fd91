/*
 * The head of a definition that is rewritten stays as it is laid out where the new one has the same parameters: a small model
 * joins its lines and drops what the language can do without, and the diff is longer than the change. And what calls give by
 * place stays in its place.
 */
#ifndef KVIST_TOOLS_EDIT_HEAD_H
#define KVIST_TOOLS_EDIT_HEAD_H

#include "tools/tree/workspace.h"

/*
 * Puts the old parameter list into new_text where it says the same. Python: up to the colon, and annotations do not count,
 * unless the request speaks of types. name: the definition that was rewritten. request: NULL: not known.
 */
void tool__keep_head(code_grammars *g, const char *path, const base_buf *old_text, base_buf *new_text,
    const char *name, const char *request);

/*
 * A new parameter with a default that was put in front of old ones goes behind them: calls give values by place, and would mean
 * another parameter. Python, JavaScript, TypeScript; not where the request speaks of the order ("first", "in front of"). The
 * sentence about it goes to `note`.
 */
void tool__keep_order(code_grammars *g, const char *path, const base_buf *old_text, base_buf *new_text,
    const char *name, const char *request, base_buf *note);

#endif
