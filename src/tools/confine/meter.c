/* Walking a process's descendants in /proc (contract: meter.h). */
#include "tools/confine/meter.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/mem.h"

enum { MOST_PROCESSES = 4096, MOST_OUTPUT_MB = 1024 };

/* A small file of /proc, ended with a zero byte; its length, or -1. */
static ssize_t read_small(const char *path, char *ret, size_t cap)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, ret, cap - 1);
    if (fd >= 0) close(fd);
    if (n >= 0) ret[n] = '\0';
    return n;
}

/* All of a list of /proc, which gives at most a page at a time. */
static void read_list(const char *path, base_buf *ret)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = 1;
    base_buf_clear(ret);
    while (fd >= 0 && n > 0) {
        base_buf_reserve(ret, 4096);
        n = read(fd, ret->data + ret->len, 4095);
        if (n > 0) ret->len += (size_t)n;
    }
    if (fd >= 0) close(fd);
    if (ret->data) ret->data[ret->len] = '\0';
}

/* ---- the limits ---- */

static uint64_t field_kb(const char *text, const char *name)
{
    const char *at = strstr(text, name);
    return at ? strtoull(at + strlen(name), NULL, 10) << 10 : 0;
}

/* The smallest memory.max of the group that kvist is in and of those above it; 0: none. */
static uint64_t group_limit(void)
{
    char text[4096], path[4400], number[64];
    uint64_t least = 0;
    if (read_small("/proc/self/cgroup", text, sizeof text) < 0) return 0;
    char *own = strncmp(text, "0::", 3) ? strstr(text, "\n0::") : text;
    if (!own) return 0;
    own += own == text ? 3 : 4;
    own[strcspn(own, "\n")] = '\0';
    while (*own) {
        snprintf(path, sizeof path, "/sys/fs/cgroup%s/memory.max", own);
        uint64_t most =
            read_small(path, number, sizeof number) > 0 ? strtoull(number, NULL, 10) : 0; /* "max": 0 */
        if (most && (!least || most < least)) least = most;
        char *slash = strrchr(own, '/');
        if (!slash) break;
        *slash = '\0';
    }
    return least;
}

tool_meter_limits tool__meter_defaults(void)
{
    char text[4096];
    uint64_t all = read_small("/proc/meminfo", text, sizeof text) > 0 ? field_kb(text, "MemTotal:") : 0;
    uint64_t group = group_limit();
    if (group && (!all || group < all)) all = group;
    return (tool_meter_limits){
        .memory = all / 2, .processes = MOST_PROCESSES, .output = (uint64_t)MOST_OUTPUT_MB << 20};
}

void tool__meter_describe(const tool_meter_limits *l, base_buf *out)
{
    base_buf_printf(out,
        "limits of a command: %.1f GiB of memory (what all its processes hold, looked at while it runs), %u "
        "processes and threads, %llu MiB of output, files of 4 GiB\n",
        (double)l->memory / (1 << 30), l->processes, (unsigned long long)(l->output >> 20));
    tool__cgroup_describe(tool__cgroup_here(), out);
}

static void say_memory(const tool_meter_limits *l, char *ret, size_t cap)
{
    snprintf(ret, cap, "ended: it used more than %.1f GiB of memory, the limit of a command on this machine",
        (double)l->memory / (1 << 30));
}

static void say_processes(const tool_meter_limits *l, char *ret, size_t cap)
{
    snprintf(
        ret, cap, "ended: it had more than %u processes and threads, the limit of a command", l->processes);
}

/* ---- the group ---- */

typedef struct group {
    pid_t *pids;
    size_t n, cap;
    uint32_t n_tasks;
    uint64_t bytes;
    bool uses_shares; /* a page that several hold counts once (PSS, not RSS) */
} group;

static void add_process(group *g, pid_t pid)
{
    base_grow(&g->pids, &g->cap, g->n + 1, sizeof *g->pids);
    g->pids[g->n++] = pid;
}

/*
 * What it holds: its share of each page where that is wanted and the kernel says it, else all that is in memory.
 * 0 when it has ended.
 */
static uint64_t memory_of(pid_t pid, bool wants_share)
{
    char path[64], text[4096];
    unsigned long pages = 0;
    snprintf(path, sizeof path, "/proc/%d/smaps_rollup", pid);
    if (wants_share && read_small(path, text, sizeof text) > 0 && strstr(text, "\nPss:"))
        return field_kb(text, "\nPss:");
    snprintf(path, sizeof path, "/proc/%d/statm", pid);
    if (read_small(path, text, sizeof text) <= 0 || sscanf(text, "%*u %lu", &pages) != 1) return 0;
    return (uint64_t)pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* The children of each thread: the kernel lists them by who made them. */
static void add_children(group *g, pid_t pid)
{
    char path[300];
    base_buf text = {0};
    snprintf(path, sizeof path, "/proc/%d/task", pid);
    DIR *tasks = opendir(path);
    for (const struct dirent *e = tasks ? readdir(tasks) : NULL; e; e = readdir(tasks)) {
        if (*e->d_name == '.') continue;
        g->n_tasks++;
        snprintf(path, sizeof path, "/proc/%d/task/%s/children", pid, e->d_name);
        read_list(path, &text);
        char *at = text.data, *end;
        for (long child; at && (child = strtol(at, &end, 10)) > 0; at = end) add_process(g, (pid_t)child);
    }
    if (tasks) closedir(tasks);
    base_buf_free(&text);
}

/* A kernel without such lists: the session, which the sandbox lets nobody leave. */
static void add_session(group *g, pid_t session)
{
    char path[64], text[1024];
    DIR *all = opendir("/proc");
    for (const struct dirent *e = all ? readdir(all) : NULL; e; e = readdir(all)) {
        int pid = atoi(e->d_name), of = 0;
        if (pid <= 0 || pid == session) continue;
        snprintf(path, sizeof path, "/proc/%d/stat", pid);
        const char *at = read_small(path, text, sizeof text) > 0 ? strrchr(text, ')') : NULL;
        if (at && sscanf(at + 1, " %*c %*d %*d %d", &of) == 1 && of == session) add_process(g, pid);
    }
    if (all) closedir(all);
}

static void measure(group *g, pid_t supervisor, uint32_t most_tasks)
{
    g->n = 0;
    g->n_tasks = 0;
    g->bytes = 0;
    if (base_fs_exists("/proc/thread-self/children"))
        add_children(g, supervisor);
    else
        add_session(g, supervisor);
    g->n_tasks = 0; /* the supervisor's own */
    for (size_t i = 0; i < g->n && (!most_tasks || g->n_tasks <= most_tasks); i++) {
        g->bytes += memory_of(g->pids[i], g->uses_shares);
        add_children(g, g->pids[i]);
    }
}

/* What is new of the machine's shared memory, when little memory is left; else 0. */
static uint64_t unmapped_shared(const tool_meter *m)
{
    char text[4096];
    if (read_small("/proc/meminfo", text, sizeof text) <= 0) return 0;
    uint64_t now = field_kb(text, "\nShmem:");
    bool is_short = field_kb(text, "MemAvailable:") < field_kb(text, "MemTotal:") / 10;
    return is_short && now > m->shared_before ? now - m->shared_before : 0;
}

void tool__meter_start(tool_meter *m, const tool_meter_limits *limits)
{
    char text[4096];
    *m = (tool_meter){.limits = limits ? *limits : tool__meter_defaults()};
    if (read_small("/proc/meminfo", text, sizeof text) > 0) m->shared_before = field_kb(text, "\nShmem:");
    const tool_cgroup_limits of_group = {m->limits.memory, m->limits.processes};
    tool__cgroup_begin(tool__cgroup_here(), &of_group, &m->group, NULL);
}

void tool__meter_end(tool_meter *m)
{
    enum { PATIENCE_MS = 1000 };
    tool__cgroup_end(&m->group, PATIENCE_MS);
}

bool tool__meter_was_within(const tool_meter *m, char *ret_why, size_t cap)
{
    const tool_cgroup_verdict verdict = tool__cgroup_judge(&m->group);
    if (verdict == TOOL_CGROUP_MEMORY) say_memory(&m->limits, ret_why, cap);
    if (verdict == TOOL_CGROUP_PROCESSES) say_processes(&m->limits, ret_why, cap);
    return verdict == TOOL_CGROUP_WITHIN;
}

bool tool__meter_is_within(const tool_meter *m, pid_t supervisor, char *ret_why, size_t cap)
{
    const tool_meter_limits *l = &m->limits;
    group g = {0};
    bool good = true;
    if (!tool__meter_was_within(m, ret_why, cap)) return false;
    uint64_t unmapped = unmapped_shared(m);
    measure(&g, supervisor, l->processes);
    /*
     * Shares are slow to read, so only when all together is too much. They are read twice: processes are
     * looked at one after another, and one that ends in between leaves its share to those behind it.
     */
    g.uses_shares = true;
    for (int i = 0; i < 2 && l->memory && g.bytes + unmapped > l->memory; i++)
        measure(&g, supervisor, l->processes);
    if (l->processes && g.n_tasks > l->processes) {
        say_processes(l, ret_why, cap);
        good = false;
    } else if (l->memory && g.bytes + unmapped > l->memory) {
        say_memory(l, ret_why, cap);
        good = false;
    }
    free(g.pids);
    return good;
}
