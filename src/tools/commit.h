/*
 * What a commit needs to know and to do: what is staged, how this repository's messages read, whether that is still
 * so, and the person's own `git commit` with a message (commit.c).
 *
 * Engine thread.
 */
#ifndef KVIST_TOOLS_COMMIT_H
#define KVIST_TOOLS_COMMIT_H

#include <stdatomic.h>

#include "tools/patches.h"

typedef struct tool_staged {
    tool_patches patches; /* from HEAD to the index */
    char *prepared; /* git's own message for a merge, a pick or a revert that is under way; NULL: none */
    base_buf style; /* the last messages: all subjects first, then what of the bodies has room */
    char id[65];    /* of what would be committed: tool_commit_id */
    /* what git runs and obeys as it was when tool_commit_list_changed told of it */
    struct tool_git_since *told;
} tool_staged;
void tool_staged_free(tool_staged *s);

/*
 * style_bytes: room for the last messages. BASE_E_STATE with a sentence that says what to do: no repository, no files
 * of its own (bare), nothing staged (which a merge need not have), files in conflict.
 */
int tool_commit_look(tool_workspace *w, size_t style_bytes, tool_staged *ret, base_err *err);

/* sha256 over HEAD's id, those that it is merged with, and every entry of the index as it is on disk now: equal when the same would be committed. */
int tool_commit_id(tool_workspace *w, char ret[65], base_err *err);

/*
 * Paths of hooks, configuration and attributes of git that are not what they were when the workspace was opened, a line
 * each ("made .git/hooks/pre-commit"); nothing when all is as it was. s remembers how they are now.
 */
void tool_commit_list_changed(tool_workspace *w, tool_staged *s, base_buf *out);
/* The same against what tool_commit_list_changed saw: what a yes to it does not hold for. */
void tool_commit_list_since_told(tool_workspace *w, const tool_staged *s, base_buf *out);

/*
 * Runs `git commit -F path` in the tree as the person would, outside of the sandbox, in their environment, less what
 * would make it another repository's commit or another index's (GIT_DIR, GIT_INDEX_FILE, ...): no terminal and nothing
 * on its standard input. out gets what it prints, its last 64 KiB; *ret_status its exit status, 128 and more for a
 * signal. BASE_E_CANCELLED: it was ended because *cancel was set. BASE_E_NOT_FOUND: no git is installed.
 */
int tool_commit_run(tool_workspace *w, const char *path, const atomic_bool *cancel, base_buf *out,
    int *ret_status, base_err *err);

#endif
