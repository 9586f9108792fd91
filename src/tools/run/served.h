/*
 * A program that runs beside the session and is talked to on its streams, confined like a command (box.h): it ends
 * with kvist, and a message that waits for nobody is read when it is next talked to.
 */
#ifndef KVIST_TOOLS_RUN_SERVED_H
#define KVIST_TOOLS_RUN_SERVED_H

#include <stdatomic.h>

#include "tools/tool.h"

typedef struct tool_served tool_served;

typedef struct tool_served_options {
    const char *const *argv;     /* NULL-terminated */
    const char *const *env;      /* NAME=VALUE beside what a command knows, NULL-terminated; may be NULL */
    const char *const *readable; /* absolute paths outside of the tree, NULL-terminated; may be NULL */
    bool writes, has_network;
} tool_served_options;

/* Looks at what git obeys first (git_guard.h). *ret: tool_served_stop. */
int tool_served_start(
    tool_workspace *w, const tool_served_options *options, tool_served **ret, base_err *err);
void tool_served_stop(tool_served *s); /* ends it, and all that it started, before the workspace is closed */
/*
 * Behind a command: a program that runs on can read where its tmp lies and tell the command, which may have left a link to it. Where
 * there are mounts it lies elsewhere from now on.
 */
void tool__served_move(tool_workspace *w);

/*
 * Both wait until base_clock_ns() is end_ns at most and poll *cancel (may be NULL). BASE_E_LIMIT: the time is over,
 * or it uses more than a command may; BASE_E_CANCELLED; BASE_E_STATE: it has ended.
 */
int tool_served_send(
    tool_served *s, const char *bytes, size_t n, uint64_t end_ns, const atomic_bool *cancel, base_err *err);
/* Appends what has come, at least a byte. */
int tool_served_receive(
    tool_served *s, base_buf *out, uint64_t end_ns, const atomic_bool *cancel, base_err *err);
/* The newest line that it wrote to its second stream, harmless; "" when there is none. Valid until the next call. */
const char *tool_served_complaint(tool_served *s);

#endif
