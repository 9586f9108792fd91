/*
 * Import lines that a block brought along in front of its definition. A small model invents modules of the tree that it works on,
 * and its lines stand in the middle of the file.
 */
#ifndef KVIST_TOOLS_EDIT_NEW_IMPORTS_H
#define KVIST_TOOLS_EDIT_NEW_IMPORTS_H

#include "tools/tree/workspace.h"

/*
 * Of the imports at column 0 that `old_text` has not, those of a module of the tree that is not there go (Python, JavaScript,
 * TypeScript, C), and the others stand behind the file's own. What went is said in `note`.
 */
void tool__settle_imports(
    tool_workspace *w, const char *path, const base_buf *old_text, base_buf *text, base_buf *note);

#endif
