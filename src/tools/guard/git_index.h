/*
 * May git write the working tree from an index? It believes whatever names the file holds. The format: gitformat-index(5).
 *
 * Thread: any; reads the file system.
 */
#ifndef KVIST_TOOLS_GUARD_GIT_INDEX_H
#define KVIST_TOOLS_GUARD_GIT_INDEX_H

#include "tools/file/safe_path.h"

/* Why it must not (a clause; path below the root), or NULL: it may, or there is none. is_sha256: of the repository's objects. */
const char *tool__git_index_refused(const tool_root *root, const char *path, bool is_sha256);
/* The same of such a file's bytes; any are safe. */
const char *tool__git_index_bytes_refused(const char *data, size_t n, bool is_sha256);

#endif
