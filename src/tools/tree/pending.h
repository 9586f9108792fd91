/*
 * Who writes several files of a tree, one kvist at a time, and where the list of what is under way lies (pending.c).
 */
#ifndef KVIST_TOOLS_TREE_PENDING_H
#define KVIST_TOOLS_TREE_PENDING_H

#include "tools/tree/workspace.h"

typedef struct tool_pending {
    char *
        path; /* pending/ROOT of the data folder: the list of files, while they are written; it outlives a kill */
    char *lock; /* pending/ROOT.lock */
    int fd;     /* of the lock, held; -1: not */
} tool_pending;

/*
 * Takes the lock of this tree and does not wait for it. BASE_E_STATE: somebody else holds it; BASE_E_NOT_FOUND: there is no
 * data folder. tool__pending_end either way.
 */
int tool__pending_begin(const tool_workspace *w, tool_pending *p, base_err *err);
void tool__pending_end(tool_pending *p);

#endif
