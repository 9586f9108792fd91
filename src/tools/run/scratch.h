/*
 * A copy of the tree in which something is tried out: tracked and dirty files, without what git ignores (that
 * is linked, and stays read-only for a confined command). Nothing that is tried there touches the person's
 * tree.
 *
 * tool_scratch_make and _put belong to the engine thread, tool_scratch_run to any one thread: it uses nothing
 * of the workspace.
 */
#ifndef KVIST_TOOLS_RUN_SCRATCH_H
#define KVIST_TOOLS_RUN_SCRATCH_H

#include "tools/tool.h"

typedef struct tool_scratch tool_scratch;

/* BASE_E_LIMIT above 20,000 files or 256 MiB, BASE_E_UNSUPPORTED where commands cannot be confined. */
int tool_scratch_make(tool_workspace *w, tool_scratch **ret, const atomic_bool *cancel, base_err *err);
void tool_scratch_free(tool_scratch *s); /* removes the copy; NULL is fine */

/* Replaces or makes one file; its folders exist or are made. `path` as in tool_preview_text. */
int tool_scratch_put(tool_scratch *s, const char *path, const char *text, size_t n, base_err *err);

/* Files that this session's newest turn wrote are there as they were before it; those it made are empty. */
int tool_scratch_put_before(tool_scratch *s, tool_workspace *w, base_err *err);

/*
 * Runs a command there, confined to it. ret: status, exit_code, ms, and the end of what it printed in text.
 */
int tool_scratch_run(
    const tool_scratch *s, const char *command, const tool_limits *limits, tool_result *ret, base_err *err);

#endif
