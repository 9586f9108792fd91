/*
 * Links where git writes: a message of a commit, a log of refs, the index and most else in a repository's folder are written through
 * a link that stands in their place, wherever it leads, by the person's git and with text that a command may have chosen. So no command
 * leaves one behind; and no second name there of a file that git runs or obeys.
 *
 * Engine thread.
 */
#ifndef KVIST_TOOLS_GUARD_GIT_LINKS_H
#define KVIST_TOOLS_GUARD_GIT_LINKS_H

#include "tools/guard/git_mend.h"
#include "tools/guard/git_walk.h"

/* Those of all repositories; sorted. */
void tool__git_links_keep(const tool_root *root, const tool_git_walk *walk, tool_kept_list *ret);
/* Moves aside what is new since c->g was taken. */
void tool__git_links_check(tool_git_check *c);

#endif
