/*
 * The wall of system calls: what a confined command may not ask the kernel for, as one seccomp program.
 *
 * The program sees numbers and plain arguments, never what a pointer points to. So a call whose harm hides
 * behind a pointer (sendmsg to a name) is closed where its descriptor is made.
 */
#ifndef KVIST_TOOLS_CONFINE_SANDBOX_FILTER_H
#define KVIST_TOOLS_CONFINE_SANDBOX_FILTER_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

/* What no other wall of this machine does. */
typedef struct tool_filter_needs {
    bool denies_truncate; /* truncate(2) by name: Landlock before ABI 3 does not see it */
    /* no read-only mounts: Landlock does not see extended attributes, access lists among them */
    bool denies_attributes;
    bool guards_others; /* no PID namespace: calls that change other processes take effect on oneself only */
    bool opens_network; /* the person opened it for this program: sockets of the Internet, connect */
    bool guards_ipc;    /* no IPC namespace: shared memory, semaphores and queues are the machine's */
} tool_filter_needs;

/* *ret: an array of struct sock_filter, *ret_bytes long; free() it. */
int tool__filter_make(const tool_filter_needs *needs, void **ret, size_t *ret_bytes, base_err *err);

#endif
