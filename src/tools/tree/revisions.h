/*
 * Names of commits that a person or the model wrote, and what to say of one that is none (revisions.c).
 */
#ifndef KVIST_TOOLS_TREE_REVISIONS_H
#define KVIST_TOOLS_TREE_REVISIONS_H

#include <git2.h>
#include <stdatomic.h>

#include "base/buf.h"

/* The commit that rev names: a tag, a branch, an id or git's other words. The caller frees; NULL: it names none. */
git_commit *tool__revision_find(git_repository *repo, const char *rev);

/* Appends a sentence, without a line's end, that rev names no commit, with tags and branches whose names are near it. */
void tool__revision_tell_none(git_repository *repo, const char *rev, base_buf *out);

/* How many commits HEAD has that rev has not, counted to `most`; 0 too where rev names none or it was cancelled. */
size_t tool__revision_count(git_repository *repo, const char *rev, size_t most, const atomic_bool *cancel);

#endif
