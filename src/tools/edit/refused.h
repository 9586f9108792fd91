/*
 * What is refused of a definition that a model wrote, whether it replaces one or is new: a second one of its name, a stub.
 * Each returns false with the refusal in `result`, and the call that was meant.
 */
#ifndef KVIST_TOOLS_EDIT_REFUSED_H
#define KVIST_TOOLS_EDIT_REFUSED_H

#include "tools/tree/workspace.h"

/* A definition that new_text has and old_text had not is the only one of its name in the package. */
bool tool__is_only_one(tool_workspace *w, const char *path, const base_buf *old_text,
    const base_buf *new_text, tool_result *result);

/* `name` is no stub in new_text, unless it was one in old_text (may be empty) or the request (NULL: none is known) asks for one. */
bool tool__is_written_out(tool_workspace *w, const char *request, const char *path, const base_buf *old_text,
    const base_buf *new_text, const char *name, tool_result *result);

#endif
