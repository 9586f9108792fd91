/*
 * What git runs or obeys, and kvist itself where its folders lie in the tree, before and after a command (git_guard.c).
 *
 *     take     looks at every repository below the root and at what its configuration names in the tree
 *     binds    what of it a mount namespace keeps in place and read-only, so that nothing changes while the command runs
 *     check    after the command: what it planted or changed is moved aside, what was there comes back
 *
 * Engine thread.
 */
#ifndef KVIST_TOOLS_GUARD_GIT_GUARD_H
#define KVIST_TOOLS_GUARD_GIT_GUARD_H

#include "tools/guard/git_walk.h"
#include "tools/guard/kept.h"
#include "tools/file/safe_path.h"

typedef struct tool_git_guard tool_git_guard;

/* Into w->git_guard, which remembers what has not changed since the last command. */
void tool__git_guard_take(tool_workspace *w);

/* Absolute paths, outer ones first. */
typedef struct tool_git_binds {
    char **own;       /* a mount of its own, so that it cannot be renamed; NULL-terminated */
    char **read_only; /* NULL-terminated */
} tool_git_binds;
void tool__git_guard_binds(const tool_workspace *w, tool_git_binds *ret);
void tool__git_binds_free(tool_git_binds *b);

/*
 * Compares. *told gets a sentence for each thing that was moved aside, put back, or could not be. Nothing is overwritten or
 * removed.
 */
void tool__git_guard_check(tool_workspace *w, base_buf *told);
void tool__git_guard_free(tool_git_guard *g);

/*
 * Of one repository what git runs and obeys there, with what its configuration names below the root; sorted. folder: the
 * repository's below the root ("": the root itself).
 */
void tool__git_guard_keep(const tool_root *root, const char *folder, tool_kept_list *ret);

/* ---- git_since.c ---- */

typedef struct tool_git_since tool_git_since;
/* Into w->git_since: the tree's own repository, also one that lies elsewhere (a worktree's). */
void tool__git_since_take(tool_workspace *w);
/* What of it is not as it was then, a line each: "changed .git/config", "made ...", "removed ...". */
void tool__git_since_list(const tool_workspace *w, base_buf *out);
void tool__git_since_free(tool_git_since *s);

/* ---- git_obeys.c ---- */

/* Gets a path below the root that git's configuration names, existing or not. */
typedef void tool_git_obeyed_fn(void *user, const char *path, bool is_hooks);
/*
 * What a configuration names below the root: included files, folders of hooks, files of attributes, programs. config: a
 * repository's file below the root; NULL: the person's and the machine's. Where that leads to a pipe or the like, only the included files are told.
 */
void tool__git_obeyed(const tool_root *root, const char *config, tool_git_obeyed_fn *fn, void *user);
/* path, as git reads it in a file that lies in folder: below the root, without "." and ".."; NULL: elsewhere. The caller frees. */
char *tool__git_path_below(const tool_root *root, const char *folder, const char *path);

/* ---- own_files.c ---- */

/* Paths below the root that kvist itself obeys, existing or not: where its configuration or its data lies in the tree. */
void tool__own_files(const tool_root *root, tool_git_obeyed_fn *fn, void *user);
bool tool__own_file_is(const tool_root *root, const char *path); /* one of them, or in one */

/* ---- git_index.c ---- */

/* Why git must not write the working tree from this index (a clause; path below the root), or NULL: it may, or there is none. */
const char *tool__git_index_refused(const tool_root *root, const char *path, bool is_sha256);
/* The same of such a file's bytes; any are safe. */
const char *tool__git_index_bytes_refused(const char *data, size_t n, bool is_sha256);

/* ---- git_rebase.c ---- */

/*
 * Why git must not go on with this list of steps (a sentence's end), or NULL: every line is a step that runs no program, or stood in
 * `before` (may be NULL) already.
 */
const char *tool__git_todo_refused(const base_buf *now, const base_buf *before);

#endif
