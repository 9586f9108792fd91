/*
 * What a block uses and its file does not import yet: of the language's standard library (imports.h), and of the tree. A small
 * model writes the definition that it was asked for and forgets the line at the file's top.
 */
#ifndef KVIST_TOOLS_EDIT_IMPORT_USED_H
#define KVIST_TOOLS_EDIT_IMPORT_USED_H

#include "tools/tree/workspace.h"

/*
 * Names that the block uses, that the file (old_text) never wrote and that one module of the tree defines: imported into `text` where
 * the file takes others from that module or its package, and into a file of tests in any case. Each with a sentence in `say`.
 */
void tool__import_used(tool_workspace *w, const char *path, base_str block, const base_buf *old_text,
    base_buf *text, base_buf *say);
/*
 * Python: a name that nothing in `text` binds is imported as the tree's other files import it, where all of those that do take
 * it of one module ("from enum import Enum"). With a sentence in `say`; false: no file does, or they differ.
 */
bool tool__import_as_elsewhere(
    tool_workspace *w, const char *path, const char *name, base_buf *text, base_buf *say);

#endif
