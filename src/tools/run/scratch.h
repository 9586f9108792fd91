/*
 * A copy of the tree in which something is tried out: tracked and dirty files, links as links. Nothing that is tried there
 * touches the person's tree, which can be read and not written.
 *
 * Of its own: made for one trial; what git ignores at the top is linked, so that installed packages are found.
 * Kept: one for the session, brought up to date each time, without what git ignores; what a build makes there stays, so the
 * next one builds what changed.
 *
 * tool_scratch_make and _put belong to the engine thread, tool_scratch_run to any one thread: it uses nothing
 * of the workspace. One trial at a time in the kept one.
 */
#ifndef KVIST_TOOLS_RUN_SCRATCH_H
#define KVIST_TOOLS_RUN_SCRATCH_H

#include "tools/confine/sandbox.h"
#include "tools/tool.h"

typedef struct tool_scratch tool_scratch;

/*
 * BASE_E_LIMIT above 20,000 files or 256 MiB (kept: 200,000 files), BASE_E_UNSUPPORTED where commands cannot be confined
 * (kept: it is made all the same, and the question says that nothing confines).
 */
int tool_scratch_make(
    tool_workspace *w, bool is_kept, tool_scratch **ret, const atomic_bool *cancel, base_err *err);
void tool_scratch_free(tool_scratch *s); /* removes the copy, but the kept one; NULL is fine */

/* Replaces or makes one file; its folders exist or are made. `path` as in tool_preview_text. */
int tool_scratch_put(tool_scratch *s, const char *path, const char *text, size_t n, base_err *err);

/* Files that this session's newest turn wrote are there as they were before it; those it made are empty. */
int tool_scratch_put_before(tool_scratch *s, tool_workspace *w, base_err *err);

/*
 * Runs a command there, confined to it. ret: status, exit_code, ms, and the end of what it printed in text.
 */
int tool_scratch_run(
    const tool_scratch *s, const char *command, const tool_limits *limits, tool_result *ret, base_err *err);

/* Where the kept copy lies, or will: a folder that is there from now on. NULL with err. */
const char *tool__scratch_kept_path(tool_workspace *w, base_err *err);
void tool__scratch_drop_kept(tool_workspace *w); /* with the workspace */
/* What a command in the copy sees and may do. tool_sandbox_plan_free(ret). */
int tool__scratch_prepare(const tool_scratch *s, tool_sandbox_plan *ret, base_err *err);

#endif
