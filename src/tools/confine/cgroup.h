/*
 * A control group (version 2) around a command, where kvist may make one: the kernel then holds memory and processes to their limits at
 * once, where meter.h looks every 50 ms. Both are in force together, so a group that turns out to hold nothing leaves no hole.
 *
 * There are two places for such groups:
 *   - beside kvist's own group, when that is this user's: a terminal of a desktop session, whose groups lie below user@UID.service;
 *   - kvist's own group, when it was delegated and nobody else is in it (a service or container that may divide its group): kvist moves
 *     into a group in it first, since a group with processes of its own cannot be divided.
 * The first comes first: systemd stops a scope that is not delegated when the kernel ends a process in it for memory (OOMPolicy=stop),
 * groups in it counted, so that kvist would end with its command.
 * A login by ssh or on the console lies in a session of root's and has neither.
 *
 * Source: the kernel's Documentation/admin-guide/cgroup-v2.rst; delegation: systemd's CGROUP_DELEGATION.
 */
#ifndef KVIST_TOOLS_CONFINE_CGROUP_H
#define KVIST_TOOLS_CONFINE_CGROUP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

typedef struct tool_cgroup_place {
    char *folder; /* groups are made in it; NULL: nowhere */
    bool is_own;  /* it is kvist's own group and not divided yet */
    bool has_cpu;
    base_err why; /* where folder is NULL */
} tool_cgroup_place;

/*
 * Looks, and changes nothing. root: the folder that the file system of control groups is mounted at; own: kvist's group as
 * /proc/self/cgroup names it ("/user.slice/..."); NULL: it names none.
 */
void tool__cgroup_find(const char *root, const char *own, tool_cgroup_place *ret);
void tool__cgroup_place_free(tool_cgroup_place *place);
/* The same of this machine and process, looked for once. */
tool_cgroup_place *tool__cgroup_here(void);
void tool__cgroup_describe(const tool_cgroup_place *place, base_buf *out); /* lines for `kvist doctor` */

typedef struct tool_cgroup {
    char *folder; /* NULL: there is none */
    int procs;    /* who writes "0" there is in it; -1 */
} tool_cgroup;
typedef struct tool_cgroup_limits {
    uint64_t memory; /* bytes; 0: no limit */
    uint32_t processes;
} tool_cgroup_limits;

/*
 * Makes a group with these limits and removes what killed runs left behind in that place. An error says why there is no group; the
 * command can run without.
 */
int tool__cgroup_begin(
    tool_cgroup_place *place, const tool_cgroup_limits *limits, tool_cgroup *ret, base_err *err);
/* Writes the limits into a group's folder. */
int tool__cgroup_limit(const char *folder, const tool_cgroup_limits *limits, base_err *err);

/* What the kernel did so far: it ended something of it for its memory, or refused it another process. */
typedef enum tool_cgroup_verdict {
    TOOL_CGROUP_WITHIN,
    TOOL_CGROUP_MEMORY,
    TOOL_CGROUP_PROCESSES
} tool_cgroup_verdict;
tool_cgroup_verdict tool__cgroup_judge(const tool_cgroup *g);

/* Ends who is in it still and removes it; false: somebody was there for patience_ms. A later run removes it then. */
bool tool__cgroup_end(tool_cgroup *g, unsigned patience_ms);

#endif
