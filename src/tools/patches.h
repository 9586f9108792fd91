/*
 * A comparison that git makes, as a patch for each file (patches.c): what is staged, and what differs in the working tree
 * from a commit.
 *
 * Engine thread.
 */
#ifndef KVIST_TOOLS_PATCHES_H
#define KVIST_TOOLS_PATCHES_H

#include <git2.h>
#include <stdatomic.h>

#include "tools/tool.h"

typedef struct tool_patch {
    char *path;
    char how;    /* as git's own letters: A, M, D, R, ..., ? of a file that git does not follow yet */
    size_t from; /* where it begins in the text; it ends where the next one begins */
    size_t n_added, n_removed; /* lines, of what is in the text */
} tool_patch;

typedef struct tool_patches {
    base_buf text;     /* about 1 MiB at most: is_cut says that there is more */
    tool_patch *items; /* all, also of what is cut */
    uint32_t n, n_begun;
    bool is_cut;
} tool_patches;
void tool_patches_free(tool_patches *p);

/* Takes all of a comparison that is made already. */
void tool_patches_take(git_diff *diff, tool_patches *ret);

/*
 * What the working tree, files that git does not follow among it, has that the commit `rev` has not; NULL: HEAD, or all
 * of it where there is no commit. What git ignores is left out. BASE_E_NOT_FOUND: rev names no commit, with those near
 * it; BASE_E_STATE: no repository with files; BASE_E_LIMIT: more than is compared.
 */
int tool_patches_since(
    tool_workspace *w, const char *rev, const atomic_bool *cancel, tool_patches *ret, base_err *err);

/* How many commits HEAD has that rev has not, at most TOOL_MOST_COUNTED. 0: none, or rev names none. */
enum { TOOL_MOST_COUNTED = 20000 };
size_t tool_commits_since(tool_workspace *w, const char *rev, const atomic_bool *cancel);

/* The tag that stands nearest behind HEAD, as `git describe` finds it. The caller frees; NULL: none. */
char *tool_last_tag(tool_workspace *w);

#endif
