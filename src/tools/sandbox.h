/*
 * What a shell child may do: look everywhere, write to the tree and to a private tmp, reach no network.
 *
 * Two walls, each alone enough for the file system: Landlock (no privilege needed), or a mount namespace with everything
 * read-only but the tree (as root). Behind them seccomp (no sockets but pairs and AF_UNIX listeners, no ptrace, mount,
 * io_uring, keys, namespaces), no_new_privs, dropped capabilities, rlimits. What the kernel has is asked by calling it.
 *
 * The parent builds everything that needs memory (tool_sandbox_prepare); the child makes system calls only
 * (tool_sandbox_enter), because it is the fork of a program with threads.
 */
#ifndef KVIST_TOOLS_SANDBOX_H
#define KVIST_TOOLS_SANDBOX_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"

typedef struct tool_sandbox {
    int landlock_abi; /* 0: none */
    bool has_mounts;  /* a mount namespace can be made */
    bool needs_user;  /* ... inside a user namespace */
    bool has_pids;    /* and a PID namespace with a /proc of its own */
    bool has_seccomp;
    bool is_confining; /* file system and network are both walled */
} tool_sandbox;

/* Asks the kernel once (a short-lived child tries the mount namespace). */
void tool_sandbox_probe(tool_sandbox *ret);
void tool_sandbox_describe_one(const tool_sandbox *s, base_buf *out);

/* Built by the parent, used by one child. */
typedef struct tool_sandbox_plan {
    bool use_landlock, use_mounts, needs_user, use_pids, use_seccomp, root_is_writable;
    int ruleset;  /* Landlock's descriptor; -1 */
    void *filter; /* seccomp's program, array of struct sock_filter */
    size_t filter_bytes;
    char *root, *tmp, *shm; /* shm: a folder in tmp that stands at /dev/shm where there are mounts */
    char **
        read_only; /* existing paths below root that stay read-only where there are mounts, NULL-terminated */
    unsigned long long keep_capabilities;
    char uid_map[64], gid_map[64];
} tool_sandbox_plan;

int tool_sandbox_prepare(const tool_sandbox *s, const char *root, bool root_is_writable, const char *tmp,
    const char *const *read_only, tool_sandbox_plan *ret, base_err *err);
/* What the supervisor is cloned with (CLONE_NEWPID, CLONE_NEWUSER), and its first step there. */
unsigned long tool_sandbox_namespaces(const tool_sandbox_plan *p);
const char *tool_sandbox_enter_user(const tool_sandbox_plan *p);
/* In the shell's process: NULL, or the step that failed (errno is set). Only system calls. */
const char *tool_sandbox_enter(const tool_sandbox_plan *p);
void tool_sandbox_plan_free(tool_sandbox_plan *p);

#endif
