/*
 * Reads the tree's files into the index of code on a thread of its own (indexer.c).
 */
#ifndef KVIST_TOOLS_TREE_INDEXER_H
#define KVIST_TOOLS_TREE_INDEXER_H

#include <stdatomic.h>

#include "code/index.h"
#include "tools/file/safe_path.h"

/* What is indexed: no file above MAX_INDEXED, and no more than these in all. */
#define TOOL_MAX_INDEXED    ((size_t)1 << 20)
#define TOOL_MAX_FILES_CODE 100000
#define TOOL_MAX_BYTES_CODE ((size_t)192 << 20)

typedef struct tool_indexer tool_indexer;

/*
 * is_kept: what parsing gave is kept in the data folder for the next start. Borrows both; starts no thread
 * yet.
 */
tool_indexer *tool__indexer_open(const tool_root *root, code_index *index, bool is_kept);
void tool__indexer_close(tool_indexer *x);
/*
 * These files (in this order) are to be read into the index, in the background; replaces what still waits.
 * budget: bytes.
 */
void tool__indexer_want(tool_indexer *x, const char *const *paths, size_t n, size_t budget);
/* Works the queue off on this thread until it is empty (true), the time is up or *cancel is set. */
bool tool__indexer_help(tool_indexer *x, uint64_t until_ns, const atomic_bool *cancel);
/* What was finished since the last time. st NULL: the file is gone. */
typedef void tool_indexer_done_fn(void *user, const char *path, const struct stat *st, bool is_indexed);
void tool__indexer_reap(tool_indexer *x, tool_indexer_done_fn *fn, void *user);
/* A file has this text now (NULL: none): at once, whatever waits. */
void tool__indexer_wrote(tool_indexer *x, const char *path, const char *text, size_t n);
/* Sentences about a damaged or unwritable store. */
void tool__indexer_say(tool_indexer *x, base_buf *out);

#endif
