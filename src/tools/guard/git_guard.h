/*
 * What git runs or obeys, and kvist itself where its folders lie in the tree, before and after a command.
 *
 *     git_guard.h   looks at every repository below the root and at what its configuration names in the tree
 *     git_binds.h   what of it a mount namespace keeps in place and read-only, so that nothing changes while the command runs
 *     git_check.h   after the command: what it planted or changed is moved aside, what was there comes back
 *
 * Engine thread.
 */
#ifndef KVIST_TOOLS_GUARD_GIT_GUARD_H
#define KVIST_TOOLS_GUARD_GIT_GUARD_H

#include "tools/guard/git_guarded.h"
#include "tools/guard/git_rebase.h"

/* All of it as it was before a command. */
typedef struct tool_git_guard {
    tool_git_walk walk;
    tool_kept_list kept;        /* what git runs or obeys */
    tool_kept_list steps;       /* lists of steps and strategies (git_rebase.h) */
    tool_kept_list links;       /* where git writes (git_links.h) */
    tool_kept_list orders;      /* what kvist or another agent obeys in its next session (orders.h) */
    tool_git_places places;     /* what of `kept` lies outside of the repositories */
    tool_git_states states;     /* rebases that had begun before the command */
    tool_git_states own_states; /* rebases that a command of this session began: it may go on with them */
    int64_t taken_ns;           /* a file with an older ctime is as it was */
} tool_git_guard;

/* Into w->git_guard, which remembers what has not changed since the last command. */
void tool__git_guard_take(tool_workspace *w);
void tool__git_guard_free(tool_git_guard *g); /* NULL is fine */

#endif
