/*
 * An end for what libgit2 compares. Ten objects that name each other ten times each are ten billion files when they are walked, and
 * a repository comes from anybody: a comparison stops at so many entries, and when it is cancelled.
 */
#ifndef KVIST_TOOLS_TREE_GIT_BOUND_H
#define KVIST_TOOLS_TREE_GIT_BOUND_H

#include <git2.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

typedef struct tool_git_bound {
    const atomic_bool *cancel; /* NULL: it is not */
    size_t n_looked, n_differ;
    bool is_over; /* the comparison failed since it had no end */
} tool_git_bound;

/* For one comparison, which fails where a callback of the bound ends it. The bound must live as long. */
void tool__git_bound(tool_git_bound *b, git_diff_options *options);

#endif
