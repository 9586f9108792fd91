/*
 * What git runs and obeys in the tree's own repository as it was when the session began, also where the repository lies elsewhere
 * (a worktree's).
 *
 * Engine thread.
 */
#ifndef KVIST_TOOLS_GUARD_GIT_SINCE_H
#define KVIST_TOOLS_GUARD_GIT_SINCE_H

#include "tools/tree/workspace.h"

typedef struct tool_git_since tool_git_since;
void tool__git_since_take(tool_workspace *w); /* into w->git_since */
/* What of it is not as it was then, a line each: "changed .git/config", "made ...", "removed ...". */
void tool__git_since_list(const tool_workspace *w, base_buf *out);
void tool__git_since_free(tool_git_since *s); /* NULL is fine */

#endif
