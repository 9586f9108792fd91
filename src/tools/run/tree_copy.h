/*
 * A tree's files, copied into another folder and brought up to date there: what changed in the tree since is copied
 * again, what left it goes, what commands made beside it (objects, build folders) stays. Tracked files and those that
 * git does not ignore, links as links, the files of submodules with them.
 *
 * Who may write the copy may have put links or folders in the way: nothing is followed, what stands in the way goes.
 *
 * Thread: the one that uses the workspace.
 */
#ifndef KVIST_TOOLS_RUN_TREE_COPY_H
#define KVIST_TOOLS_RUN_TREE_COPY_H

#include "tools/tree/workspace.h"

/* What a file was when it was looked at; all zero: it was not there. */
typedef struct tool_copy_stamp {
    int64_t mtime_ns, ctime_ns, size;
    uint64_t ino;
    uint32_t mode;
} tool_copy_stamp;

typedef struct tool_copied {
    char *path;
    tool_copy_stamp from, to; /* in the tree and in the copy, when it was copied */
} tool_copied;

typedef struct tool_tree_copy {
    tool_root root;       /* where it lies; an existing folder */
    uint32_t most_files;  /* 0: as many as are listed */
    uint64_t most_bytes;  /* copied at a time; 0: no bound */
    tool_listing listing; /* of the tree, when it was last copied */
    tool_folders folders;
    tool_copied *files; /* ascending by path */
    size_t n, cap;
} tool_tree_copy;

/*
 * BASE_E_LIMIT: the tree has more. What was copied by then stays and is known. The first time files keep their times; later
 * they get that of the copying, so that a build tool sees each change, also one back to an older file.
 */
int tool__copy_update(tool_tree_copy *c, tool_workspace *w, const atomic_bool *cancel, base_err *err);
/* Writes one file of the copy alone; the next update undoes it. */
int tool__copy_put(tool_tree_copy *c, const char *path, const char *text, size_t n, base_err *err);
/* One file of the copy, where it is there, gets the time of now. */
void tool__copy_touch(tool_tree_copy *c, const char *path);
void tool__copy_free(tool_tree_copy *c); /* what is known of it; the folder stays */

#endif
