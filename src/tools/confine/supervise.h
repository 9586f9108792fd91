/*
 * A process between kvist and a command, so that nothing of the command outlives either.
 *
 *     kvist --clone--> supervisor --clone--> shell --> whatever it starts
 *
 * The supervisor holds one end of a socket. When the shell ends it sends the status and takes the rest with
 * it; when kvist dies, by SIGKILL too, the socket ends and so does everything. Where the machine allows it
 * the supervisor is the first process of a PID namespace: its end is the end of all others, whatever they do,
 * and the kernel sees to that. Elsewhere it kills the group, which the sandbox's seccomp filter lets nobody
 * leave (without seccomp a command can leave it by setsid).
 *
 * Called on the engine thread by shell.c, which listens to the output and keeps the time.
 */
#ifndef KVIST_TOOLS_CONFINE_SUPERVISE_H
#define KVIST_TOOLS_CONFINE_SUPERVISE_H

#include <sys/types.h>

#include "tools/confine/sandbox.h"

typedef struct tool_supervised {
    pid_t pid;  /* the supervisor */
    int pidfd;  /* -1: a kernel without them */
    int output; /* what the command prints on both streams; with `input`, on the first */
    int input;  /* what it reads, and its second stream: only where they were asked for, else -1 */
    int errors;
    int link;
} tool_supervised;

typedef struct tool_supervise_options {
    bool talks;             /* it is written to and listened to, each stream by itself */
    int group;              /* cgroup.procs of the control group that it is to be in (cgroup.h); -1: none */
    const char *const *env; /* NAME=VALUE beside what a command knows, NULL-terminated; may be NULL */
} tool_supervise_options;

/*
 * Starts `command` by bash or sh as the plan says; closed, not open: when a step of the plan fails, nothing
 * runs. options NULL: it reads nothing, and both its streams are `output`.
 */
int tool__supervise(tool_sandbox_plan *plan, const char *command, const tool_supervise_options *options,
    tool_supervised *ret, base_err *err);
bool tool__supervise_has_ended(const tool_supervised *c);
/*
 * Ends whatever is left of it and closes everything. *status as waitpid gives the shell's; *left_others: it
 * left processes behind, which were ended. Both stay as they are where the supervisor had no time to say (a
 * time limit, a cancel).
 *
 * false: something of it was killed and had not ended after TOOL_END_PATIENCE_MS. The kernel keeps such a
 * process in a system call (a disk or a network folder that does not answer); it may still write.
 */
enum { TOOL_END_PATIENCE_MS = 10000 };
bool tool__supervise_end(tool_supervised *c, int *status, bool *left_others);

#endif
