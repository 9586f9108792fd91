/*
 * Repositories after a command: those that were there and moved, and new ones that git would obey.
 *
 * Engine thread.
 */
#ifndef KVIST_TOOLS_GUARD_GIT_REPOS_H
#define KVIST_TOOLS_GUARD_GIT_REPOS_H

#include "tools/guard/git_mend.h"

/* Fills c->moved; a .git that was only renamed in its place has its name again. */
void tool__git_repos_find_moved(tool_git_check *c);
/* Where a path of before lies now; NULL: gone with its repository. The caller frees. */
char *tool__git_repos_path_now(const tool_git_check *c, const char *path);
/* Moves new ones aside, but for what `git worktree add` makes of one that was there. */
void tool__git_repos_check(tool_git_check *c);
/* The walk's repository that is this very one, under whatever path; NULL: none. */
const tool_repo *tool__git_repos_same(const tool_git_walk *walk, const tool_repo *r);

#endif
