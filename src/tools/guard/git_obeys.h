/*
 * What a configuration of git names below the root: included files, folders of hooks, files of attributes, programs,
 * those among them that PATH finds in the tree.
 *
 * Thread: any; reads the file system.
 */
#ifndef KVIST_TOOLS_GUARD_GIT_OBEYS_H
#define KVIST_TOOLS_GUARD_GIT_OBEYS_H

#include "tools/file/safe_path.h"

/* Gets a path below the root that a configuration names, existing or not. */
typedef void tool_git_obeyed_fn(void *user, const char *path, bool is_hooks);
/*
 * config: a repository's file, absolute or below the root; NULL: the person's and the machine's. Where that leads to a pipe or the like,
 * only the included files are told. tops: working trees (absolute, NULL-terminated, NULL: none) that it holds for too, since a relative
 * folder of hooks is another one in each.
 */
void tool__git_obeyed(
    const tool_root *root, const char *config, const char *const *tops, tool_git_obeyed_fn *fn, void *user);
/*
 * The same for the configuration that the ".git" file or link in a folder below the root ("": the root) leads to: of a worktree, wherever
 * its repository lies, and of a repository outside of the tree.
 */
void tool__git_obeyed_by_pointer(
    const tool_root *root, const char *folder, tool_git_obeyed_fn *fn, void *user);
/* path, as git reads it in a file that lies in folder: below the root, without "." and ".."; NULL: elsewhere. The caller frees. */
char *tool__git_path_below(const tool_root *root, const char *folder, const char *path);

#endif
