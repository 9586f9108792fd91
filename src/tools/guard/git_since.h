/*
 * What git runs and obeys in the tree's own repository as it was at a moment (the session's begin, a question), also where the repository lies elsewhere
 * (a worktree's).
 *
 * Engine thread.
 */
#ifndef KVIST_TOOLS_GUARD_GIT_SINCE_H
#define KVIST_TOOLS_GUARD_GIT_SINCE_H

#include "tools/tree/workspace.h"

typedef struct tool_git_since tool_git_since;
/* As it is now; the caller frees. */
tool_git_since *tool__git_since_take(const tool_workspace *w);
/* What of it is not as it was then, a line each: "changed .git/config", "made ...", "removed ...". */
void tool__git_since_list(const tool_workspace *w, const tool_git_since *s, base_buf *out);
void tool__git_since_free(tool_git_since *s); /* NULL is fine */

#endif
