/*
 * After a command: what it planted or changed of what git, kvist or others obey (git_guard.h).
 *
 * Engine thread.
 */
#ifndef KVIST_TOOLS_GUARD_GIT_CHECK_H
#define KVIST_TOOLS_GUARD_GIT_CHECK_H

#include "tools/tree/workspace.h"

/*
 * Compares with w->git_guard. *told gets a sentence for each thing that was moved aside, put back, or could not be. Nothing is
 * overwritten or removed.
 */
void tool__git_guard_check(tool_workspace *w, base_buf *told);

#endif
