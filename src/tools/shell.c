/*
 * Runs a shell command as shell.h says. Output beyond what is kept falls out of the middle: the first MB and the last, however
 * much is printed.
 */
#include "tools/shell.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"

#define HEAD_BYTES ((size_t)2 << 20)
#define TAIL_BYTES ((size_t)1 << 20)
#define POLL_MS    20

/* What a child may know of our environment. */
static const char *const passed_variables[] = {"PATH", "HOME", "USER", "LOGNAME", "LANG", "LANGUAGE",
    "LC_ALL", "LC_CTYPE", "LC_MESSAGES", "TZ", "VIRTUAL_ENV", "PYTHONPATH", "NODE_PATH", "CARGO_HOME",
    "RUSTUP_HOME", "RUSTUP_TOOLCHAIN", "GOPATH", "GOROOT", "GOFLAGS", "JAVA_HOME", "MAVEN_OPTS", "CC", "CXX",
    "CFLAGS", "CXXFLAGS", "CPPFLAGS", "LDFLAGS", "PKG_CONFIG_PATH", "LD_LIBRARY_PATH", "LIBRARY_PATH",
    "CPATH", "CUDA_HOME", "CONDA_PREFIX"};
/* The GIT_CONFIG entries come before any file: a repository cannot make git run a program of its own. */
static const char *const set_variables[] = {"TERM=dumb", "NO_COLOR=1", "PAGER=cat", "GIT_PAGER=cat",
    "GIT_TERMINAL_PROMPT=0", "GIT_OPTIONAL_LOCKS=0", "PYTHONDONTWRITEBYTECODE=1", "GIT_CONFIG_COUNT=4",
    "GIT_CONFIG_KEY_0=core.fsmonitor", "GIT_CONFIG_VALUE_0=false", "GIT_CONFIG_KEY_1=core.hooksPath",
    "GIT_CONFIG_VALUE_1=/dev/null", "GIT_CONFIG_KEY_2=core.sshCommand", "GIT_CONFIG_VALUE_2=false",
    "GIT_CONFIG_KEY_3=credential.helper", "GIT_CONFIG_VALUE_3="};

static char **make_environment(const char *tmp)
{
    size_t n_passed = sizeof passed_variables / sizeof *passed_variables,
           n_set = sizeof set_variables / sizeof *set_variables;
    char **env = base_xcalloc(n_passed + n_set + 4, sizeof *env);
    size_t n = 0;
    base_buf line = {0};
    for (size_t i = 0; i < n_passed; i++) {
        const char *value = getenv(passed_variables[i]);
        if (!value) continue;
        base_buf_printf(&line, "%s=%s", passed_variables[i], value);
        env[n++] = base_buf_take(&line);
    }
    for (size_t i = 0; i < n_set; i++) env[n++] = base_xstrdup(set_variables[i]);
    base_buf_printf(&line, "TMPDIR=%s", tmp);
    env[n++] = base_buf_take(&line);
    base_buf_printf(&line, "XDG_CACHE_HOME=%s/cache", tmp);
    env[n++] = base_buf_take(&line);
    if (!getenv("PATH")) env[n++] = base_xstrdup("PATH=/usr/local/bin:/usr/bin:/bin");
    return env;
}

static void free_environment(char **env)
{
    for (char **e = env; *e; e++) free(*e);
    free(env);
}

static const struct {
    int what;
    rlim_t most;
} limits_of_children[] = {
    {RLIMIT_CORE, 0},
    {RLIMIT_NOFILE, 4096},
    {RLIMIT_FSIZE, (rlim_t)4 << 30},
    {RLIMIT_NPROC, 8192},
    {RLIMIT_MEMLOCK, (rlim_t)64 << 20},
};

static void lower_limits(void)
{
    for (size_t i = 0; i < sizeof limits_of_children / sizeof *limits_of_children; i++) {
        struct rlimit now;
        if (getrlimit(limits_of_children[i].what, &now)) continue;
        rlim_t most = limits_of_children[i].most;
        if (now.rlim_max == RLIM_INFINITY || now.rlim_max > most) now.rlim_max = most;
        if (now.rlim_cur == RLIM_INFINITY || now.rlim_cur > now.rlim_max) now.rlim_cur = now.rlim_max;
        setrlimit(limits_of_children[i].what, &now);
    }
}

/* What the child says when it cannot begin: the step's name behind errno, through a pipe that exec closes. */
struct failure {
    int sys;
    char step[60];
};

static void fail_child(int report, const char *step)
{
    struct failure f = {.sys = errno};
    strncpy(f.step, step, sizeof f.step - 1);
    ssize_t n = write(report, &f, sizeof f);
    (void)n;
    _exit(127);
}

/* Only system calls from here to exec: other threads of the parent may have held any lock. */
static void be_child(const tool_sandbox_plan *plan, const char *shell, char *const *argv, char *const *env,
    int nothing, int output, int report)
{
    setsid();
    prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    for (int s = 1; s < 32; s++) signal(s, SIG_DFL);
    if (dup2(nothing, 0) < 0 || dup2(output, 1) < 0 || dup2(output, 2) < 0) fail_child(report, "its streams");
    /* 3 and up close at exec; `report` and Landlock's ruleset are needed until then. */
    if (syscall(SYS_close_range, 3u, ~0u, 1u << 2)) {
        for (int fd = 3; fd < 4096; fd++) {
            int flags = fcntl(fd, F_GETFD);
            if (flags >= 0) fcntl(fd, F_SETFD, flags | FD_CLOEXEC);
        }
    }
    umask(022);
    lower_limits();
    const char *step = tool_sandbox_enter(plan);
    if (step) fail_child(report, step);
    execve(shell, argv, env);
    fail_child(report, shell);
}

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

/* Reads what is there; false at the end of the stream. At most 1 MB at a time, so that a flood does not starve the clock. */
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

static void kill_group(pid_t child, int pidfd)
{
    /* The group while the leader is still there (a zombie keeps the number from being used again), then the leader. */
    kill(-child, SIGKILL);
    if (pidfd >= 0)
        syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, NULL, 0);
    else
        kill(child, SIGKILL);
}

static bool has_ended(pid_t child)
{
    siginfo_t info = {0};
    return !waitid(P_PID, (id_t)child, &info, WEXITED | WNOHANG | WNOWAIT) && info.si_pid == child;
}

static void watch(
    pid_t child, int pidfd, int output, const tool_limits *limits, uint64_t ms, capture *c, tool_child *ret)
{
    uint64_t start = base_clock_ns(), end = start + ms * 1000000;
    bool is_open = true, ended = false;
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
        struct pollfd fds[2] = {
            {.fd = is_open ? output : -1, .events = POLLIN}, {.fd = pidfd, .events = POLLIN}};
        poll(fds, 2, POLL_MS);
        if (is_open && fds[0].revents) is_open = drain(output, c, limits);
        ended = has_ended(child);
        if (!ended) continue;
        /* What it printed last is in the pipe already; more than a pipe holds comes from others and may never end. */
        if (is_open) is_open = drain(output, c, limits);
        break;
    }
    ret->left_others = ended && is_open;
    kill_group(child, pidfd);
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    kill(-child,
        SIGKILL); /* what was forked between the first kill and now; its number is taken while any lives */
    if (ret->end == TOOL_CHILD_EXITED && WIFSIGNALED(status)) ret->end = TOOL_CHILD_SIGNALLED;
    ret->code = WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status);
    ret->ms = (base_clock_ns() - start) / 1000000;
}

int tool__child_run(const tool_sandbox_plan *plan, const char *command, const tool_limits *limits,
    uint64_t ms, tool_child *ret, base_err *err)
{
    const char *shell = access("/bin/bash", X_OK) == 0 ? "/bin/bash" : "/bin/sh";
    char *argv[] = {(char *)(strrchr(shell, '/') + 1), (char *)"-c", (char *)command, NULL};
    char **env = make_environment(plan->tmp);
    int out[2] = {-1, -1}, report[2] = {-1, -1}, nothing = open("/dev/null", O_RDONLY | O_CLOEXEC),
        pidfd = -1;
    int code = BASE_OK;
    tool_child c = {0};
    capture kept = {0};
    if (nothing < 0 || pipe2(out, O_CLOEXEC) || pipe2(report, O_CLOEXEC)) {
        code = base_fail_sys(err, "a pipe for the command");
        goto out;
    }
    pid_t child = fork();
    if (child < 0) {
        code = base_fail_sys(err, "starting the command");
        goto out;
    }
    if (!child) be_child(plan, shell, argv, env, nothing, out[1], report[1]);
    pidfd = (int)syscall(SYS_pidfd_open, child, 0);
    if (pidfd >= 0) fcntl(pidfd, F_SETFD, FD_CLOEXEC);
    close(out[1]);
    close(report[1]);
    out[1] = report[1] = -1;
    struct failure f = {0};
    ssize_t n;
    while ((n = read(report[0], &f, sizeof f)) < 0 && errno == EINTR) {
    }
    if (n == (ssize_t)sizeof f) {
        int status;
        while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
        }
        f.step[sizeof f.step - 1] = '\0';
        errno = f.sys;
        code =
            base_fail_sys(err, "the command was not started, because it could not be confined (%s)", f.step);
        goto out;
    }
    fcntl(out[0], F_SETFL, O_NONBLOCK);
    watch(child, pidfd, out[0], limits, ms, &kept, &c);
    finish_capture(&kept, &c);
    *ret = c;
out:
    for (int i = 0; i < 2; i++) {
        if (out[i] >= 0) close(out[i]);
        if (report[i] >= 0) close(report[i]);
    }
    if (nothing >= 0) close(nothing);
    if (pidfd >= 0) close(pidfd);
    free_environment(env);
    return code;
}

void tool__child_free(tool_child *c)
{
    base_buf_free(&c->output);
}
