/*
 * A child process: started, listened to, ended (shell.c).
 */
#ifndef KVIST_TOOLS_CONFINE_SHELL_H
#define KVIST_TOOLS_CONFINE_SHELL_H

#include "tools/confine/sandbox.h"
#include "tools/tool.h"

typedef enum tool_child_end {
    TOOL_CHILD_EXITED,
    TOOL_CHILD_SIGNALLED,
    TOOL_CHILD_TIMEOUT,
    TOOL_CHILD_CANCELLED,
    TOOL_CHILD_LIMITED
} tool_child_end;

typedef struct tool_child {
    tool_child_end end;
    int code;               /* exit code, or the signal */
    base_buf output;        /* both streams as they came; head and tail when it was more than is kept */
    uint64_t total_bytes;   /* printed */
    uint64_t dropped_bytes; /* not in output; the gap is stated in it */
    bool left_others;       /* it left processes in the background; they were ended */
    bool is_stuck;          /* something of it was killed and has not ended (supervise.h) */
    uint64_t ms;
    char limit[120]; /* LIMITED: a sentence that says what it used too much of */
} tool_child;

/*
 * Runs `command` by bash or sh in the plan's root until it ends, takes longer than ms, or is cancelled.
 *
 * 1. The child leads a session of its own, reads /dev/null, writes one pipe, inherits no other descriptor and
 *    only the listed environment; tmp is its TMPDIR.
 * 2. It enters the plan; when any step of that fails, nothing is run and an error says which (closed, not
 *    open).
 * 3. When it ends, whatever it left is killed; on time-out, cancel or a limit (meter.h) everything is, at
 *    once; when kvist dies, too (supervise.h).
 *
 * A command that fails is no error of ours. Blocks; polls *cancel every 20 ms at most.
 */
int tool__child_run(tool_sandbox_plan *plan, const char *command, const tool_limits *limits, uint64_t ms,
    tool_child *ret, base_err *err);
void tool__child_free(tool_child *c);

#endif
