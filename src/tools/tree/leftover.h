/*
 * What a kill leaves of a write: the file beside the one that it was to replace. While one is written a note in the data
 * folder (pending/TREE.NAME, locked) names it, so the next start in that tree finds it without looking through the tree.
 */
#ifndef KVIST_TOOLS_TREE_LEFTOVER_H
#define KVIST_TOOLS_TREE_LEFTOVER_H

#include "tools/tree/workspace.h"

typedef struct tool_leftover {
    char name[40]; /* of the temporary file, in the folder of the one that is written */
    char *note;
    int fd; /* of the note; -1: it could not be made, and the write goes on without */
} tool_leftover;

void tool__leftover_begin(const tool_workspace *w, const char *path, tool_leftover *ret);
void tool__leftover_end(tool_leftover *l); /* the temporary file is gone */
/* Removes what writes that were killed left in this tree. */
void tool__leftover_remove_all(const tool_workspace *w);
bool tool__leftover_is_name(const char *name);

#endif
