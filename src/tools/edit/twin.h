/*
 * A name that a package has already: Go's folder is one scope, and so are C's functions that a header declares. A
 * second definition there compiles nowhere (twin.c).
 */
#ifndef KVIST_TOOLS_EDIT_TWIN_H
#define KVIST_TOOLS_EDIT_TWIN_H

#include "tools/tree/workspace.h"

typedef struct tool_twin {
    char *name, *path; /* heap: what is defined, and the other file that defines it */
    uint32_t line;
} tool_twin;
void tool__twin_free(tool_twin *t);

/*
 * Has another file of the package of `path`, whose text is file_text, what `d` of `text` defines? `text` may be a block
 * for that file.
 */
bool tool__find_twin(tool_workspace *w, const char *path, const base_buf *file_text, const base_buf *text,
    const code_definition *d, tool_twin *ret);
/* The first definition that new_text has and old_text has not, and that another file of the package has. */
bool tool__find_new_twin(
    tool_workspace *w, const char *path, const base_buf *old_text, const base_buf *new_text, tool_twin *ret);

#endif
