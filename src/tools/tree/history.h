/*
 * The last commits of the tree's branch, as words of earlier changes (code/history.h).
 */
#ifndef KVIST_TOOLS_TREE_HISTORY_H
#define KVIST_TOOLS_TREE_HISTORY_H

#include <git2.h>
#include <stdatomic.h>

#include "code/history.h"

/*
 * Of HEAD and the commits before it, the newest first, up to 600 that are no merges and touch up to 40 files; as many as are read within a
 * second. Where a shallow clone ends the history does. The caller frees; NULL: there are none, or it was cancelled.
 */
code_history *tool__history_read(git_repository *repo, const atomic_bool *cancel);

#endif
