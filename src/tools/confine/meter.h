/*
 * What a command and all it started use, added up from /proc while it runs, and how much that may be. No RLIMIT_AS: address space
 * is no memory, and Go, the JVM, node and sanitizers reserve hundreds of gigabytes of it.
 *
 * Linux only. Pages that several processes share count once where the sum comes near the limit (PSS), else wholly for each.
 */
#ifndef KVIST_TOOLS_CONFINE_METER_H
#define KVIST_TOOLS_CONFINE_METER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "tools/confine/cgroup.h"

typedef struct tool_meter_limits {
    uint64_t memory;    /* bytes; 0: no limit */
    uint32_t processes; /* threads count, too; 0: no limit */
    uint64_t output;    /* bytes printed; more than a few MB is dropped anyway (shell.c) */
} tool_meter_limits;

/* Half of the memory of this machine, or of the control group that kvist is in. */
tool_meter_limits tool__meter_defaults(void);
void tool__meter_describe(const tool_meter_limits *l, base_buf *out); /* a line for `kvist doctor` */

typedef struct tool_meter {
    tool_meter_limits limits;
    uint64_t shared_before; /* shared memory of the whole machine, bytes */
    tool_cgroup group;      /* where there is one, the kernel holds memory and processes, too */
} tool_meter;

/* Before the command starts, which joins `group`. NULL: the defaults. */
void tool__meter_start(tool_meter *m, const tool_meter_limits *limits);

/*
 * A look at `supervisor`'s descendants: false when they use more than allowed, and a sentence in *ret_why (cap bytes). Memory that
 * nobody has mapped (a memfd, a file in a tmpfs) belongs to no process: when the machine runs short, what of it is new since the
 * start counts too. Costs about 20 us a process.
 */
bool tool__meter_is_within(const tool_meter *m, pid_t supervisor, char *ret_why, size_t cap);
/* Whether the kernel ended it for its memory, or refused it a process: cheap, and true of a command that has ended. */
bool tool__meter_was_within(const tool_meter *m, char *ret_why, size_t cap);
void tool__meter_end(tool_meter *m); /* behind the command's end */

#endif
