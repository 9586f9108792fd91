/*
 * How a file of the tree is written, for the tools and for undo (write.c).
 */
#ifndef KVIST_TOOLS_TREE_WRITE_H
#define KVIST_TOOLS_TREE_WRITE_H

#include "tools/tree/workspace.h"

/*
 * Writes `text` (NULL: removes the file) where the file still has the version `before` (NULL: must not exist), with
 * this mode, durable when it returns. BASE_E_STATE: it was changed meanwhile; then, and on any other failure, it is as it
 * was.
 */
int tool__change_write(tool_workspace *w, const char *path, const base_buf *text, mode_t mode,
    const char *before, base_err *err);
/* Is the file still what it was (NULL: not there)? *st: what it is. BASE_E_STATE, or BASE_E_UNSUPPORTED for several links. */
int tool__change_check(
    tool_workspace *w, const char *path, const char *before, struct stat *st, base_err *err);
/* Tests end the process at a named step ("journal", "temporary", "linked", "rename", ...); NULL in the program. */
extern void (*tool__step_hook)(const char *step);
void tool__step(const char *step);

#endif
