/*
 * An end for what libgit2 compares and reads. Ten objects that name each other ten times each are ten billion files when they are
 * walked, and 3 MB of a pack are a commit of 3 GiB when it is unpacked; a repository comes from anybody. A comparison stops at so many
 * entries, no object is read that is larger than so many bytes (or is made from one that is), and all of it stops when it is cancelled.
 */
#ifndef KVIST_TOOLS_TREE_GIT_BOUND_H
#define KVIST_TOOLS_TREE_GIT_BOUND_H

#include <git2.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

/* Of one object, while a bound holds. */
#define TOOL_GIT_MOST_BYTES ((size_t)128 << 20)

typedef struct tool_git_bound {
    const atomic_bool *cancel; /* NULL: it is not */
    size_t n_looked, n_differ;
    size_t n_bytes; /* of large objects so far, each time that they were unpacked */
    bool is_over;   /* the comparison failed since it had no end */
    bool is_large;  /* something was not read: it is too large, or all together is */
} tool_git_bound;

/* libgit2's start, by whoever is first. From then on it holds nothing in one piece that has more than 1 GiB (an index, a diff). */
void tool__git_start(void);

/* For one comparison, which fails where a callback of the bound ends it. The bound must live as long. */
void tool__git_bound(tool_git_bound *b, git_diff_options *options);

/*
 * From here to _end this thread's libgit2 unpacks nothing above TOOL_GIT_MOST_BYTES and not too much in all; is_large says
 * afterwards whether something was refused. Where objects are large it is cancelled in the middle of a walk too, for which libgit2 has
 * no way of its own. Returns what was bound before, for _end.
 */
tool_git_bound *tool__git_bound_begin(tool_git_bound *b);
void tool__git_bound_end(tool_git_bound *before);

#endif
