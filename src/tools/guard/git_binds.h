/*
 * What of w->git_guard a mount namespace keeps as it is while a command runs.
 *
 * Engine thread.
 */
#ifndef KVIST_TOOLS_GUARD_GIT_BINDS_H
#define KVIST_TOOLS_GUARD_GIT_BINDS_H

#include "tools/tree/workspace.h"

/* Absolute paths, outer ones first. */
typedef struct tool_git_binds {
    char **own;       /* a mount of its own, so that it cannot be renamed; NULL-terminated */
    char **read_only; /* NULL-terminated */
} tool_git_binds;
/* Behind tool__git_guard_take. */
void tool__git_binds_make(const tool_workspace *w, tool_git_binds *ret);
void tool__git_binds_free(tool_git_binds *b);

#endif
