/*
 * Runs a shell command as shell.h says. Output beyond what is kept falls out of the middle: the first MB and
 * the last, however much is printed.
 */
#include "tools/confine/shell.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "tools/confine/meter.h"
#include "tools/confine/supervise.h"

#define HEAD_BYTES ((size_t)2 << 20)
#define TAIL_BYTES ((size_t)1 << 20)
#define POLL_MS    20
#define METER_MS   50

/* ---- what it prints ---- */

typedef struct capture {
    base_buf head;
    char *ring;
    size_t ring_at, ring_n;
    uint64_t total;
} capture;

static void keep(capture *c, const char *bytes, size_t n)
{
    c->total += n;
    size_t first = HEAD_BYTES - c->head.len < n ? HEAD_BYTES - c->head.len : n;
    if (first) base_buf_add(&c->head, bytes, first);
    bytes += first;
    n -= first;
    if (n && !c->ring) c->ring = base_xmalloc(TAIL_BYTES);
    while (n) {
        size_t part = TAIL_BYTES - c->ring_at < n ? TAIL_BYTES - c->ring_at : n;
        memcpy(c->ring + c->ring_at, bytes, part);
        c->ring_at = (c->ring_at + part) % TAIL_BYTES;
        c->ring_n = c->ring_n + part < TAIL_BYTES ? c->ring_n + part : TAIL_BYTES;
        bytes += part;
        n -= part;
    }
}

static void finish_capture(capture *c, tool_child *ret)
{
    ret->total_bytes = c->total;
    ret->dropped_bytes = c->total - c->head.len - c->ring_n;
    ret->output = c->head;
    if (ret->dropped_bytes)
        base_buf_printf(&ret->output, "\n[%llu bytes not kept]\n", (unsigned long long)ret->dropped_bytes);
    if (c->ring_n) {
        size_t start = (c->ring_at + TAIL_BYTES - c->ring_n) % TAIL_BYTES;
        size_t part = TAIL_BYTES - start < c->ring_n ? TAIL_BYTES - start : c->ring_n;
        base_buf_add(&ret->output, c->ring + start, part);
        base_buf_add(&ret->output, c->ring, c->ring_n - part);
    }
    free(c->ring);
}

/*
 * Reads what is there; false at the end of the stream. At most 1 MB at a time, so that a flood does not
 * starve the clock.
 */
static bool drain(int fd, capture *c, const tool_limits *limits)
{
    char bytes[65536];
    for (int rounds = 0; rounds < 16; rounds++) {
        ssize_t n = read(fd, bytes, sizeof bytes);
        if (n == 0) return false;
        if (n < 0) return errno == EAGAIN || errno == EINTR;
        if (limits && limits->output && c->total < HEAD_BYTES)
            limits->output(limits->output_user, bytes, (size_t)n);
        keep(c, bytes, (size_t)n);
    }
    return true;
}

static bool has_printed_too_much(const tool_meter *meter, const capture *c, tool_child *ret)
{
    if (c->total <= meter->limits.output) return false;
    snprintf(ret->limit, sizeof ret->limit, "ended: it printed more than %llu MiB, the limit of a command",
        (unsigned long long)(meter->limits.output >> 20));
    return true;
}

static void watch(tool_supervised *child, tool_meter *meter, const tool_limits *limits, uint64_t ms,
    capture *c, tool_child *ret)
{
    uint64_t start = base_clock_ns(), end = start + ms * 1000000;
    uint64_t next_look = start;
    bool is_open = true;
    ret->end = TOOL_CHILD_EXITED;
    for (;;) {
        if (tool__cancelled(limits)) {
            ret->end = TOOL_CHILD_CANCELLED;
            break;
        }
        if (base_clock_ns() >= end) {
            ret->end = TOOL_CHILD_TIMEOUT;
            break;
        }
        bool looks = base_clock_ns() >= next_look;
        if (looks) next_look = base_clock_ns() + METER_MS * UINT64_C(1000000);
        if (has_printed_too_much(meter, c, ret) ||
            (looks && !tool__meter_is_within(meter, child->pid, ret->limit, sizeof ret->limit))) {
            ret->end = TOOL_CHILD_LIMITED;
            break;
        }
        struct pollfd fds[2] = {
            {.fd = is_open ? child->output : -1, .events = POLLIN}, {.fd = child->pidfd, .events = POLLIN}};
        poll(fds, 2, POLL_MS);
        if (is_open && fds[0].revents) is_open = drain(child->output, c, limits);
        if (!tool__supervise_has_ended(child)) continue;
        /*
         * What it printed last is in the pipe already; more than a pipe holds comes from others and may never
         * end.
         */
        if (is_open) drain(child->output, c, limits);
        break;
    }
    int status = 0;
    ret->is_stuck = !tool__supervise_end(child, &status, &ret->left_others);
    /* The kernel may have ended it between two looks. */
    if (ret->end == TOOL_CHILD_EXITED && !tool__meter_was_within(meter, ret->limit, sizeof ret->limit))
        ret->end = TOOL_CHILD_LIMITED;
    if (ret->end == TOOL_CHILD_EXITED && WIFSIGNALED(status)) ret->end = TOOL_CHILD_SIGNALLED;
    ret->code = WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status);
    ret->ms = (base_clock_ns() - start) / 1000000;
}

int tool__child_run(tool_sandbox_plan *plan, const char *command, const tool_limits *limits, uint64_t ms,
    tool_child *ret, base_err *err)
{
    tool_supervised child;
    tool_child c = {0};
    capture kept = {0};
    tool_meter meter;
    tool__meter_start(&meter, limits ? limits->shell_limits : NULL);
    int code =
        tool__supervise(plan, command, &(tool_supervise_options){.group = meter.group.procs}, &child, err);
    if (!code) {
        fcntl(child.output, F_SETFL, O_NONBLOCK);
        watch(&child, &meter, limits, ms, &kept, &c);
    }
    tool__meter_end(&meter);
    if (code) return code;
    finish_capture(&kept, &c);
    *ret = c;
    return BASE_OK;
}

void tool__child_free(tool_child *c)
{
    base_buf_free(&c->output);
}
