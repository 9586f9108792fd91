/*
 * What a change must be asked for in every mode, since git, kvist or another program would obey it unasked (obeyed.c).
 *
 * Thread: any; reads the file system.
 */
#ifndef KVIST_TOOLS_GUARD_OBEYED_H
#define KVIST_TOOLS_GUARD_OBEYED_H

#include "tools/file/safe_path.h"

/*
 * Who would obey what stands there, for a sentence ("direnv"); NULL: nobody. One of the orders (orders.h) in any folder, by any spelling
 * or link; a folder that git would take for a repository, a file that git's configuration names, kvist's own configuration. `path` is
 * clean; it need not exist.
 */
const char *tool__path_obeyed_by(const tool_root *root, const char *path);

#endif
