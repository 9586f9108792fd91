/*
 * What kvist itself obeys, where its configuration or its data lies in the tree: a tree of dotfiles, a home folder.
 *
 * Thread: any; reads the file system.
 */
#ifndef KVIST_TOOLS_GUARD_OWN_FILES_H
#define KVIST_TOOLS_GUARD_OWN_FILES_H

#include "tools/guard/git_obeys.h"

/* Their paths below the root, existing or not; is_hooks is false for all. */
void tool__own_files(const tool_root *root, tool_git_obeyed_fn *fn, void *user);
bool tool__own_file_is(const tool_root *root, const char *path); /* one of them, or in one */

#endif
