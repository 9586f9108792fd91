/*
 * What git runs or obeys, before and after a command (git_guard.c).
 */
#ifndef KVIST_TOOLS_GIT_GUARD_H
#define KVIST_TOOLS_GIT_GUARD_H

#include "tools/kept.h"

typedef struct tool_git_guard {
    tool_kept_list kept;
} tool_git_guard;

void tool__git_guard_take(tool_workspace *w, tool_git_guard *ret);
/*
 * Compares. What a command planted or changed is moved aside (aside.c), what was there before is put back
 * where its bytes are held; *told gets a sentence for each. Nothing is overwritten or removed.
 */
void tool__git_guard_check(tool_workspace *w, const tool_git_guard *g, base_buf *told);
void tool__git_guard_free(tool_git_guard *g);

#endif
