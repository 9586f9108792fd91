/* Folders and small files of the kernel's (contract: cgroup.h). */
#include "tools/confine/cgroup.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fs.h"
#include "base/mem.h"

enum { MOST_BYTES = 1 << 20 };

/* Those that are needed, and one that only makes way for others when the machine is busy. */
static const char *const needed[] = {"memory", "pids"};
#define CPU_WEIGHT "50" /* of 100 */

/* ---- small files ---- */

static bool read_text(const char *folder, const char *name, base_buf *ret)
{
    char *path = base_fs_join(folder, name);
    base_buf_clear(ret);
    base_buf_puts(ret, "");
    const bool done = !base_fs_read(path, MOST_BYTES, ret, NULL);
    free(path);
    return done;
}

static int write_text(const char *folder, const char *name, const char *text, base_err *err)
{
    char *path = base_fs_join(folder, name);
    const int fd = open(path, O_WRONLY | O_CLOEXEC);
    const ssize_t n = fd < 0 ? -1 : write(fd, text, strlen(text));
    const int rc = n < 0 ? base_fail_sys(err, "%s: %s", path, text) : BASE_OK;
    if (fd >= 0) close(fd);
    free(path);
    return rc;
}

static bool may_write(const char *folder, const char *name)
{
    char *path = base_fs_join(folder, name);
    const bool may = !access(path, W_OK);
    free(path);
    return may;
}

static bool lists(const char *folder, const char *name, const char *word)
{
    base_buf text = {0};
    bool found = false;
    const size_t n = strlen(word);
    read_text(folder, name, &text);
    for (const char *at = text.data; at && *at && !found;) {
        at += strspn(at, " \n");
        const size_t length = strcspn(at, " \n");
        found = length == n && !memcmp(at, word, n);
        at += length;
    }
    base_buf_free(&text);
    return found;
}

static bool lists_needed(const char *folder, const char *name)
{
    bool all = true;
    for (size_t i = 0; i < sizeof needed / sizeof *needed; i++) all = all && lists(folder, name, needed[i]);
    return all;
}

/* The number behind "NAME " in a file of such lines; 0: it is not there. */
static unsigned long long count_of(const char *folder, const char *file, const char *name)
{
    base_buf text = {0};
    const size_t n = strlen(name);
    unsigned long long count = 0;
    read_text(folder, file, &text);
    for (const char *line = text.data; line && *line;) {
        if (!strncmp(line, name, n) && line[n] == ' ') count = strtoull(line + n, NULL, 10);
        line += strcspn(line, "\n");
        line += *line == '\n';
    }
    base_buf_free(&text);
    return count;
}

/* ---- a place ---- */

/* Nobody but this process is in it. */
static bool is_alone(const char *folder)
{
    base_buf text = {0};
    read_text(folder, "cgroup.procs", &text);
    char *end;
    const long pid = strtol(text.data, &end, 10);
    const bool alone = pid == getpid() && strspn(end, "\n") == strlen(end);
    base_buf_free(&text);
    return alone;
}

static bool can_divide(const char *folder)
{
    return !access(folder, W_OK | X_OK) && may_write(folder, "cgroup.procs") &&
           may_write(folder, "cgroup.subtree_control") && lists_needed(folder, "cgroup.controllers");
}

/* It is divided among groups already, with the controllers that are needed, and this user may add one. */
static bool is_divided(const char *folder)
{
    return !access(folder, W_OK | X_OK) && may_write(folder, "cgroup.procs") &&
           lists_needed(folder, "cgroup.subtree_control");
}

void tool__cgroup_find(const char *root, const char *own, tool_cgroup_place *ret)
{
    *ret = (tool_cgroup_place){0};
    base_buf path = {0};
    base_buf_printf(&path, "%s%s", root, own && *own && own[1] ? own : "");
    char *folder = base_buf_take(&path);
    struct stat st;
    char *controllers = base_fs_join(folder, "cgroup.controllers");
    const bool is_there = own && *own == '/' && !stat(controllers, &st);
    free(controllers);
    char *parent = base_xstrdup(folder);
    if (is_there && own[1]) *strrchr(parent, '/') = '\0'; /* of `own`, which begins with one */
    if (!is_there) {
        base_fail(&ret->why, BASE_E_UNSUPPORTED, "no control groups of version 2");
    } else if (own[1] && is_divided(parent)) {
        ret->folder = base_xstrdup(parent);
        ret->has_cpu = lists(parent, "cgroup.subtree_control", "cpu");
    } else if (can_divide(folder) && is_alone(folder)) {
        ret->is_own = true;
        ret->folder = base_xstrdup(folder);
        ret->has_cpu = lists(folder, "cgroup.controllers", "cpu");
    }
    if (!ret->folder && !ret->why.code)
        base_fail(&ret->why, BASE_E_UNSUPPORTED, "%s",
            !lists_needed(folder, "cgroup.controllers")
                ? "those of this machine do not hold memory and processes"
                : "none that this user may divide: start kvist in a terminal of a desktop session, or by "
                  "`systemd-run --user --scope -p Delegate=yes kvist`");
    free(parent);
    free(folder);
}

void tool__cgroup_place_free(tool_cgroup_place *place)
{
    free(place->folder);
    *place = (tool_cgroup_place){0};
}

static tool_cgroup_place here;

static void find_here(void)
{
    base_buf text = {0};
    base_fs_read("/proc/self/cgroup", MOST_BYTES, &text, NULL);
    char *own = text.data && strncmp(text.data, "0::", 3) ? strstr(text.data, "\n0::") : text.data;
    if (own) own += *own == '\n' ? 4 : 3;
    if (own) own[strcspn(own, "\n")] = '\0';
    tool__cgroup_find("/sys/fs/cgroup", own, &here);
    base_buf_free(&text);
}

tool_cgroup_place *tool__cgroup_here(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, find_here);
    return &here;
}

void tool__cgroup_describe(const tool_cgroup_place *place, base_buf *out)
{
    if (place->folder)
        base_buf_printf(out, "control groups: a command's own in %s, for memory%s processes%s\n",
            place->folder, place->has_cpu ? "," : " and",
            place->has_cpu ? " and its share of the processors" : "");
    else
        base_buf_printf(
            out, "control groups: %s; what a command uses is added up every 50 ms instead\n", place->why.msg);
}

/* ---- what killed runs left behind ---- */

static void kill_all(const char *folder)
{
    if (count_of(folder, "cgroup.events", "populated")) write_text(folder, "cgroup.kill", "1", NULL);
}

/* The PID namespace that this process's number counts in: containers may share a folder of groups. */
static unsigned long number_space(void)
{
    struct stat st;
    return stat("/proc/self/ns/pid", &st) ? 0 : (unsigned long)st.st_ino;
}

/* Groups of processes that are no more. Who is in one still is ended; it goes at the next time. */
static void sweep(const char *folder)
{
    const unsigned long here_space = number_space();
    DIR *dir = opendir(folder);
    for (const struct dirent *e; dir && (e = readdir(dir));) {
        unsigned long space;
        int pid, n, end = 0;
        if (sscanf(e->d_name, "kvist-%lu-%d-%d%n", &space, &pid, &n, &end) != 3 || e->d_name[end]) continue;
        if (space != here_space || pid <= 0) continue;
        if (!kill(pid, 0) || errno != ESRCH) continue;
        char *left = base_fs_join(folder, e->d_name);
        kill_all(left);
        rmdir(left);
        free(left);
    }
    if (dir) closedir(dir);
}

/* ---- a group ---- */

static int write_number(const char *folder, const char *name, unsigned long long number, base_err *err)
{
    char text[32];
    snprintf(text, sizeof text, "%llu", number);
    return write_text(folder, name, text, err);
}

int tool__cgroup_limit(const char *folder, const tool_cgroup_limits *limits, base_err *err)
{
    int rc = BASE_OK;
    if (limits->memory) rc = write_number(folder, "memory.max", limits->memory, err);
    if (!rc && limits->processes) rc = write_number(folder, "pids.max", limits->processes, err);
    if (rc) return rc;
    /* What is there of these: no swap beside the memory, all or nothing of it dies, and others come first. */
    write_text(folder, "memory.swap.max", "0", NULL);
    write_text(folder, "memory.oom.group", "1", NULL);
    write_text(folder, "cpu.weight", CPU_WEIGHT, NULL);
    return BASE_OK;
}

static char *new_folder(const char *parent, base_err *err)
{
    static _Atomic int n_made;
    base_buf name = {0};
    base_buf_printf(&name, "%s/kvist-%lu-%d-%d", parent, number_space(), getpid(), ++n_made);
    char *folder = base_buf_take(&name);
    if (!mkdir(folder, 0755)) return folder;
    base_fail_sys(err, "%s", folder);
    free(folder);
    return NULL;
}

/* kvist goes into a group in its own one, which is divided then. */
static int divide(tool_cgroup_place *place, base_err *err)
{
    char pid[16];
    char *inner = new_folder(place->folder, err);
    snprintf(pid, sizeof pid, "%d", getpid());
    int rc = inner ? write_text(inner, "cgroup.procs", pid, err) : BASE_E_IO;
    if (!rc) rc = write_text(place->folder, "cgroup.subtree_control", "+memory +pids", err);
    if (!rc && write_text(place->folder, "cgroup.subtree_control", "+cpu", NULL)) place->has_cpu = false;
    if (rc && inner) { /* back to where it was */
        write_text(place->folder, "cgroup.procs", pid, NULL);
        rmdir(inner);
    }
    free(inner);
    place->is_own = rc != 0;
    return rc;
}

int tool__cgroup_begin(
    tool_cgroup_place *place, const tool_cgroup_limits *limits, tool_cgroup *ret, base_err *err)
{
    *ret = (tool_cgroup){.procs = -1};
    if (!place->folder) return base_fail(err, place->why.code, "%s", place->why.msg);
    int rc = place->is_own ? divide(place, err) : BASE_OK;
    if (rc) return rc;
    sweep(place->folder);
    ret->folder = new_folder(place->folder, err);
    if (!ret->folder) return BASE_E_IO;
    rc = tool__cgroup_limit(ret->folder, limits, err);
    char *procs = base_fs_join(ret->folder, "cgroup.procs");
    if (!rc && (ret->procs = open(procs, O_WRONLY | O_CLOEXEC)) < 0) rc = base_fail_sys(err, "%s", procs);
    free(procs);
    if (rc) tool__cgroup_end(ret, 0);
    return rc;
}

tool_cgroup_verdict tool__cgroup_judge(const tool_cgroup *g)
{
    if (g->folder && count_of(g->folder, "memory.events", "oom_kill")) return TOOL_CGROUP_MEMORY;
    if (g->folder && count_of(g->folder, "pids.events", "max")) return TOOL_CGROUP_PROCESSES;
    return TOOL_CGROUP_WITHIN;
}

bool tool__cgroup_end(tool_cgroup *g, unsigned patience_ms)
{
    bool is_gone = true;
    if (g->procs >= 0) close(g->procs);
    if (g->folder) {
        const uint64_t end_ns = base_clock_ns() + patience_ms * UINT64_C(1000000);
        kill_all(g->folder);
        /* A process counts until it is reaped, and the kernel lets go of a group a moment later. */
        while (!(is_gone = !rmdir(g->folder) || errno == ENOENT) && base_clock_ns() < end_ns)
            nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    free(g->folder);
    *g = (tool_cgroup){.procs = -1};
    return is_gone;
}
