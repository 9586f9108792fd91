/*
 * What a change must be asked for in every mode, since the next session, kvist itself or git would obey it (obeyed.c).
 *
 * Thread: any; reads the file system.
 */
#ifndef KVIST_TOOLS_GUARD_OBEYED_H
#define KVIST_TOOLS_GUARD_OBEYED_H

#include "tools/file/safe_path.h"

/*
 * Would the next session obey what stands there: AGENTS.md, .kvist/, .agents/, by any spelling or link; a folder that git would take
 * for a repository, a file that git's configuration names, kvist's own configuration? `path` is clean; it need not exist.
 */
bool tool__path_is_obeyed(const tool_root *root, const char *path);

#endif
