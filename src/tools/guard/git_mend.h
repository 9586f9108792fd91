/*
 * One comparison after a command, and what is done with each thing that it finds: the person is told, what a command planted goes
 * aside, what was there comes back. Nothing is overwritten or removed.
 *
 * Engine thread.
 */
#ifndef KVIST_TOOLS_GUARD_GIT_MEND_H
#define KVIST_TOOLS_GUARD_GIT_MEND_H

#include "tools/guard/git_guard.h"

enum { TOOL_GIT_MOST_TOLD = 20 };

/* A repository that does not lie where it lay. */
typedef struct tool_git_moved {
    const char *from;
    char *to; /* NULL: gone */
} tool_git_moved;

typedef struct tool_git_check {
    tool_workspace *w;
    const tool_git_guard *g; /* before the command */
    tool_git_walk now;
    tool_git_moved *moved;
    size_t n_moved, cap_moved;
    base_buf *out; /* a sentence a thing */
    size_t n_told; /* TOOL_GIT_MOST_TOLD of them are in `out` */
    bool is_cut;   /* there is more than was looked at */
} tool_git_check;

/* "The command WHAT PATH BEHIND", and where (may be NULL) what it left lies by now. */
void tool__git_tell(
    tool_git_check *c, const char *path, const char *what, const char *where, const char *behind);
/* Moves what is at `path` aside and tells of it; true: it is gone from there. */
bool tool__git_set_aside(tool_git_check *c, const char *path, const char *what, const char *behind);
/* One path that is not as it was: what is there now goes aside, what was there comes back. */
void tool__git_mend(tool_git_check *c, const tool_kept *item, const char *path, tool_kept_change change);
/* Folders of repositories, and of what is kept, get the modes back that they had. */
void tool__git_restore_modes(tool_git_check *c);

#endif
