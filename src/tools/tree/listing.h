/*
 * The files of the tree by name (listing.c), and whether listing again would give the same (folders.c).
 */
#ifndef KVIST_TOOLS_TREE_LISTING_H
#define KVIST_TOOLS_TREE_LISTING_H

#include <git2.h>
#include <stdatomic.h>

#include "tools/file/safe_path.h"

#define TOOL_MAX_FILES 200000 /* listed */
#define TOOL_MAX_DEPTH 99     /* folders in folders, where a walk ends */

typedef struct tool_listed {
    char *path;
    int64_t mtime_ns, ctime_ns, size; /* what it was when indexed; size -1: never looked at */
    uint64_t ino;
    bool is_indexed;
} tool_listed;

typedef struct tool_listing {
    tool_listed *files;       /* ascending by path */
    size_t n, cap, n_tracked; /* n_tracked: of them, of git's index, while it is made */
    bool is_cut;              /* there are more than TOOL_MAX_FILES */
    bool is_shallow; /* there are folders deeper than TOOL_MAX_DEPTH, whose untracked files are left out */
} tool_listing;

/*
 * git's view (tracked and untracked, not ignored) when `repo` is given, else a walk. Regular files only by
 * their name's kind.
 */
int tool__listing_make(
    const tool_root *root, git_repository *repo, const atomic_bool *cancel, tool_listing *ret, base_err *err);
/* The same with links, and with the files of submodules and nested repositories: all that a build may read. */
int tool__listing_make_whole(
    const tool_root *root, git_repository *repo, const atomic_bool *cancel, tool_listing *ret, base_err *err);
/* Takes the files out that match, as `git ls-files -- WHICH` would name them. */
void tool__listing_leave_out(tool_listing *l, git_pathspec *which);
void tool__listing_free(tool_listing *l);
/* Index of the path, or of the first one above it with *ret_found false. */
size_t tool__listing_find(const tool_listing *l, const char *path, bool *ret_found);
/*
 * Up to `cap` listed paths that somebody who wrote `path` may have meant, best first. Pointers into the
 * listing.
 */
size_t tool__listing_near(const tool_listing *l, const char *path, const char **ret, size_t cap);

/* Would a walk without git leave out a file or folder of this name? With git only git's own folder. */
bool tool__listing_skips(const char *name, git_repository *repo);

/* A folder or a list of rules, as it was when a listing was made. */
typedef struct tool_folder {
    char *path;                 /* below the root, or absolute */
    int64_t mtime_ns, ctime_ns; /* all zero: it is not there */
    uint64_t ino;
} tool_folder;

typedef struct tool_folders {
    tool_folder *all;
    size_t n, cap;
    bool is_settled; /* none had changed within the clock's grain before the listing */
} tool_folders;

/*
 * What the listing rests on, just after it was made; since_ns: wall clock just before. Frees what *ret held.
 */
void tool__folders_take(
    const tool_root *root, git_repository *repo, const tool_listing *l, int64_t since_ns, tool_folders *ret);
/* Would listing again give the same names? */
bool tool__folders_are_same(const tool_root *root, const tool_folders *f);
void tool__folders_free(tool_folders *f);

#endif
