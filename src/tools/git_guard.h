/*
 * .git's control files before and after a command (git_guard.c).
 */
#ifndef KVIST_TOOLS_GIT_GUARD_H
#define KVIST_TOOLS_GIT_GUARD_H

#include "tools/internal.h"

typedef struct tool_guarded {
    char *path;
    bool existed;
    tool_file file;
} tool_guarded;

typedef struct tool_git_guard {
    tool_guarded *items;
    size_t n, cap;
    bool is_folder;
} tool_git_guard;

void tool__git_guard_take(const tool_root *root, tool_git_guard *ret);
/* Puts back what changed; *told gets a sentence for each. */
void tool__git_guard_check(const tool_root *root, const tool_git_guard *g, base_buf *told);
void tool__git_guard_free(tool_git_guard *g);

#endif
