/*
 * What would hold libgit2 up, which cannot be interrupted: named pipes and devices in a tree that came in an archive (whoever opens one
 * waits for ever), holes of gigabytes in the place of a text that it reads whole, rules that it would be matching for hours.
 */
#ifndef KVIST_TOOLS_TREE_GIT_OBSTACLES_H
#define KVIST_TOOLS_TREE_GIT_OBSTACLES_H

#include <stdbool.h>

#include "base/buf.h"

enum { TOOL_GIT_MOST_TEXT = 16 << 20 }; /* of a file that libgit2 reads whole */

/* Each gives an absolute path that the caller frees; NULL: there is none. */

/* For the tree at `at`, in all that libgit2 reads of it. */
char *tool__git_find_obstacle(const char *at, bool is_bare);
/* Among the files of a repository's folder. */
char *tool__git_find_pipe(const char *git_folder);
/* Among the rules of a working tree, and what they cost for all that lies in it. */
char *tool__git_find_in_tree(const char *top, const char *git_folder);

/* "PATH is a pipe or ..." */
void tool__git_obstacle_say(base_buf *out, const char *path);

#endif
