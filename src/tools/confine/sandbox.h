/*
 * What a shell child may do: see the tree, the system and toolchains (sandbox_view.h), write to the tree and
 * to a private tmp, reach no network.
 *
 * Two walls, each alone enough for the file system: Landlock (no privilege needed), or a mount namespace in
 * which nothing else is mounted (as root, or in a user namespace). Behind them seccomp (sandbox_filter.h),
 * no_new_privs, dropped capabilities, rlimits. What the kernel has is asked by calling it.
 *
 * The parent builds everything that needs memory (tool_sandbox_prepare); the child makes system calls only
 * (tool_sandbox_enter), because it is the fork of a program with threads.
 */
#ifndef KVIST_TOOLS_CONFINE_SANDBOX_H
#define KVIST_TOOLS_CONFINE_SANDBOX_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"
#include "tools/confine/den.h"
#include "tools/confine/sandbox_view.h"

typedef struct tool_sandbox {
    int landlock_abi; /* 0: none */
    bool has_mounts;  /* a mount namespace can be made */
    bool needs_user;  /* ... inside a user namespace */
    bool has_pids;    /* and a PID namespace with a /proc of its own */
    bool has_seccomp;
    bool is_confining; /* file system and network are both walled */
} tool_sandbox;

/* What the kernel allows (short-lived children try the namespaces, once for each user that this process is). Any thread. */
void tool_sandbox_probe(tool_sandbox *ret);
/* what is in force, lines for `kvist doctor` */
void tool_sandbox_describe_one(const tool_sandbox *s, base_buf *out);

/* What one command is to see and do. Lists end with NULL and may be NULL. */
typedef struct tool_sandbox_wishes {
    const char *root; /* the tree, without links in its path */
    const char *tree; /* that root is a copy of, which is read as well; NULL: root is it */
    bool root_is_writable;
    bool shows_home;   /* the person's, but for keys and credentials, in the place of an empty one */
    bool has_network;  /* the person opened it for this program */
    tool_den *session; /* what all commands of a session share */
    tool_den *copy;    /* where `root` lies in one; may be NULL */
    const char *const *readable; /* what is seen outside of the tree besides the system and toolchains */
    const char *const
        *read_only; /* existing paths below root that cannot be written where there are mounts */
} tool_sandbox_wishes;

/* Built by the parent, used by one child. */
typedef struct tool_sandbox_plan {
    bool use_landlock, use_mounts, needs_user, use_pids, use_seccomp;
    int landlock_abi;
    int ruleset;  /* Landlock's descriptor; -1 */
    void *filter; /* seccomp's program, array of struct sock_filter */
    size_t filter_bytes;
    char *root, *tmp, *shm; /* tmp: TMPDIR; shm: a folder that stands at /dev/shm where there are mounts */
    tool_views views;
    char *stage;   /* where the new root is put together */
    char **places; /* of each view below the stage, NULL-terminated */
    char **own;    /* folders below root that nobody renames: mounts of their own; may be NULL */
    char **read_only;
    tool_den *dens[2]; /* open as long as the child needs their names */
    bool has_entered;
    unsigned long long keep_capabilities;
    char uid_map[64], gid_map[64];
} tool_sandbox_plan;

/* Makes folders below wishes->session. ret: tool_sandbox_plan_free; on an error there is nothing to free. */
int tool_sandbox_prepare(
    const tool_sandbox *s, const tool_sandbox_wishes *wishes, tool_sandbox_plan *ret, base_err *err);
/* What the supervisor is cloned with (CLONE_NEWPID, CLONE_NEWUSER), and its first step there. */
unsigned long tool_sandbox_namespaces(const tool_sandbox_plan *p);
const char *tool_sandbox_enter_user(const tool_sandbox_plan *p);
/* In the shell's process: NULL, or the step that failed (errno is set). Only system calls. */
const char *tool_sandbox_enter(const tool_sandbox_plan *p);
/* The child is where it is to be: with mounts of its own it needs no names of ours any more. */
void tool_sandbox_has_entered(tool_sandbox_plan *p);
void tool_sandbox_plan_free(tool_sandbox_plan *p);

#endif
