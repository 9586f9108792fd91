/*
 * Working trees that a command made of a repository which was there (`git worktree add`): they may stay, and what git runs in them (a
 * relative folder of hooks, a filter's program) has to be what it runs in the first one.
 *
 * Engine thread.
 */
#ifndef KVIST_TOOLS_GUARD_GIT_WORKTREES_H
#define KVIST_TOOLS_GUARD_GIT_WORKTREES_H

#include "tools/guard/git_mend.h"

/* Moves aside what is not. Behind tool__git_repos_check, which leaves none but such working trees. */
void tool__git_worktrees_check(tool_git_check *c);

#endif
