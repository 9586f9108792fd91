/*
 * The two texts that a unified diff lies between, for clients that draw their own. Pure but for reading the
 * tree's files through `read`.
 */
#ifndef KVIST_ACP_DIFF_H
#define KVIST_ACP_DIFF_H

#include <stdbool.h>

#include "base/buf.h"

/* Calls fn for each file of a diff as the tools write it ("--- a/PATH" or /dev/null, "+++ b/PATH", hunks). */
typedef void acp_diff_fn(void *user, const char *path, const char *diff, size_t n, bool is_new, bool is_gone);
void acp_diff_each(const char *diff, acp_diff_fn *fn, void *user);

/*
 * The other text: forward from the old to the new, else back. False: the diff does not fit `text`, and
 * nothing can be said.
 */
bool acp_diff_apply(const char *diff, size_t n_diff, const char *text, size_t n, bool forward, base_buf *ret);

#endif
