/*
 * Where a repository reads from. A tree that came in an archive can name any repository of the person's as its own (a .git file or
 * link, commondir, a linked folder of objects, alternates), and by git's tools the model would read that project's files.
 */
#ifndef KVIST_TOOLS_TREE_GIT_PLACES_H
#define KVIST_TOOLS_TREE_GIT_PLACES_H

/*
 * The first file or folder that the repository reads objects, refs or an index from and that lies in none of the folders `in` (absolute,
 * their links resolved, up to a NULL); NULL: all do. own, common: its folders, the same one where it is no worktree. The caller frees.
 */
char *tool__git_find_outside(const char *own, const char *common, const char *const *in);

#endif
