/*
 * The conflicts that git remembers how to solve (MERGE_RR). `git commit` copies every file that the list names into .git/rr-cache, where
 * the next command reads it: a key of the person's as well as a file of the tree. A folder of that name is all that switches it on.
 */
#ifndef KVIST_TOOLS_GUARD_GIT_CONFLICTS_H
#define KVIST_TOOLS_GUARD_GIT_CONFLICTS_H

#include "tools/guard/git_mend.h"

typedef bool tool_leads_fn(void *user, const char *path);

/* Does the list (any bytes) name what git must not read? leads: is this path of a working tree another file than one of the tree? */
bool tool__git_conflicts_refused(const char *bytes, size_t n, tool_leads_fn *leads, void *user);
/* Moves aside the lists that do: also one that was there before, since a file that it names may have become a link. */
void tool__git_conflicts_check(tool_git_check *c);

#endif
