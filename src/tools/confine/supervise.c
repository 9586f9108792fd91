/*
 * Starts a command behind a supervisor of its own (supervise.h): fork, confine, exec, and a loop that waits
 * for three things: the shell's end, orphans to reap, and our death. Everything between clone and exec is
 * system calls only, because it is the fork of a program with threads; so nothing here allocates after
 * tool__supervise began.
 */
#include "tools/confine/supervise.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"

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

static char **make_environment(const char *tmp, const char *home, const char *const *more)
{
    size_t n_more = 0;
    while (more && more[n_more]) n_more++;
    size_t n_passed = sizeof passed_variables / sizeof *passed_variables,
           n_set = sizeof set_variables / sizeof *set_variables;
    char **env = base_xcalloc(n_passed + n_set + n_more + 4, sizeof *env);
    size_t n = 0;
    base_buf line = {0};
    for (size_t i = 0; i < n_passed; i++) {
        const char *value = getenv(passed_variables[i]);
        if (home && !strcmp(passed_variables[i], "HOME")) value = home;
        if (!value) continue;
        base_buf_printf(&line, "%s=%s", passed_variables[i], value);
        env[n++] = base_buf_take(&line);
    }
    for (size_t i = 0; i < n_set; i++) env[n++] = base_xstrdup(set_variables[i]);
    base_buf_printf(&line, "TMPDIR=%s", tmp);
    env[n++] = base_buf_take(&line);
    base_buf_printf(&line, "XDG_CACHE_HOME=%s/cache", tmp);
    env[n++] = base_buf_take(&line);
    for (size_t i = 0; i < n_more; i++) env[n++] = base_xstrdup(more[i]);
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

/*
 * RLIMIT_NPROC counts all processes of the user, this one's browser too; in a user namespace only what is in there. So the tighter
 * number is for that, and meter.c counts everywhere.
 */
static void lower_limits(bool counts_alone)
{
    enum { MOST_PROCESSES_ALONE = 4096 };
    for (size_t i = 0; i < sizeof limits_of_children / sizeof *limits_of_children; i++) {
        struct rlimit now;
        if (getrlimit(limits_of_children[i].what, &now)) continue;
        rlim_t most = limits_of_children[i].most;
        if (counts_alone && limits_of_children[i].what == RLIMIT_NPROC) most = MOST_PROCESSES_ALONE;
        if (now.rlim_max == RLIM_INFINITY || now.rlim_max > most) now.rlim_max = most;
        if (now.rlim_cur == RLIM_INFINITY || now.rlim_cur > now.rlim_max) now.rlim_cur = now.rlim_max;
        setrlimit(limits_of_children[i].what, &now);
    }
}

/* When memory is gone the kernel ends a command first, not kvist or what else the person runs. */
static void offer_to_the_killer(void)
{
    int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
    if (fd < 0) return;
    ssize_t n = write(fd, "1000", 4);
    (void)n;
    close(fd);
}

/* What a child says when it cannot begin: the step's name behind errno, through a pipe that exec closes. */
struct failure {
    int sys;
    char step[60];
};

/* What the supervisor says when the shell has ended. */
struct verdict {
    int status;
    bool left_others;
};

/* All that the two processes need, prepared before the first clone. */
typedef struct start {
    const tool_sandbox_plan *plan;
    const char *shell;
    char *const *argv;
    char **env;
    int nothing, output[2], report[2],
        link[2];             /* [0] reads, or is ours; [1] writes, or is the supervisor's */
    int input[2], errors[2]; /* -1: it reads nothing, and has one stream */
    int group;               /* -1: none */
} start;

static void fail_child(int report, const char *step)
{
    struct failure f = {.sys = errno};
    strncpy(f.step, step, sizeof f.step - 1);
    ssize_t n = write(report, &f, sizeof f);
    (void)n;
    _exit(127);
}

/* fork() without the C library's handlers, which may wait for a lock that another thread of ours held. */
static pid_t clone_process(unsigned long namespaces)
{
    return (pid_t)syscall(SYS_clone, namespaces | SIGCHLD, 0, 0, 0, 0);
}

static void close_from(unsigned first, bool at_exec)
{
    enum { CLOSE_AT_EXEC = 1 << 2, MOST = 4096 };
    if (!syscall(SYS_close_range, first, ~0u, at_exec ? CLOSE_AT_EXEC : 0)) return;
    for (int fd = (int)first; fd < MOST; fd++) {
        int flags = at_exec ? fcntl(fd, F_GETFD) : -1;
        if (flags >= 0) fcntl(fd, F_SETFD, flags | FD_CLOEXEC);
        if (!at_exec) close(fd);
    }
}

static void be_shell(const start *s)
{
    int report = s->report[1];
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    for (int signal_number = 1; signal_number < 32; signal_number++) signal(signal_number, SIG_DFL);
    const bool talks = s->input[0] >= 0;
    if (dup2(talks ? s->input[0] : s->nothing, 0) < 0 || dup2(s->output[1], 1) < 0 ||
        dup2(talks ? s->errors[1] : s->output[1], 2) < 0)
        fail_child(report, "its streams");
    close_from(3, true); /* `report` and Landlock's ruleset are needed until then */
    umask(022);
    lower_limits(s->plan->use_pids && s->plan->needs_user);
    offer_to_the_killer();
    const char *step = tool_sandbox_enter(s->plan);
    if (step) fail_child(report, step);
    prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0); /* behind the last change of credentials, which clears it */
    execve(s->shell, s->argv, s->env);
    fail_child(report, s->shell);
}

/* Reaps what has ended; whether the shell is among it. */
static bool reap(pid_t shell, struct verdict *ret)
{
    bool ended = false;
    int status;
    pid_t pid;
    while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
        if (pid != shell) continue;
        ended = true;
        ret->status = status;
    }
    ret->left_others = pid == 0;
    return ended;
}

/* Before anything is started. Where it fails the limits are held by looking (meter.h), as where there is no such group. */
static void join_group(int procs)
{
    ssize_t n = procs < 0 ? 0 : write(procs, "0", 1);
    (void)n;
}

/*
 * The supervisor: leads the session and group that is killed as one, and adopts the orphans. Never returns.
 */
static void be_supervisor(const start *s)
{
    enum { LINK, CHILDREN };
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, NULL); /* first: the shell may end before anybody listens */
    signal(SIGCHLD, SIG_DFL);             /* an ignored one would take the status away */
    setsid();
    join_group(s->group);
    prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    const char *step = tool_sandbox_enter_user(s->plan);
    if (step) fail_child(s->report[1], step);
    int children = signalfd(-1, &all, SFD_CLOEXEC | SFD_NONBLOCK);
    pid_t shell = children < 0 ? -1 : clone_process(0);
    if (shell < 0) fail_child(s->report[1], "starting the shell");
    if (!shell) be_shell(s);
    /* Nothing of kvist's stays open here, so that its death shows at the link's end. */
    if (dup2(s->link[1], LINK) < 0 || dup2(children, CHILDREN) < 0) _exit(127);
    close_from(2, false);
    struct pollfd fds[] = {{.fd = LINK, .events = POLLIN}, {.fd = CHILDREN, .events = POLLIN}};
    for (;;) {
        struct signalfd_siginfo info;
        struct verdict v = {0};
        if (poll(fds, 2, -1) < 0 && errno != EINTR) break;
        while (read(CHILDREN, &info, sizeof info) > 0) {
        }
        bool ended = reap(shell, &v);
        ssize_t n = ended ? send(LINK, &v, sizeof v, MSG_NOSIGNAL) : 0;
        if (ended || n < 0 || fds[LINK].revents) break;
    }
    /* the group and this process; as the first of a PID namespace it goes on, and its end ends all */
    kill(0, SIGKILL);
    _exit(0);
}

/* ---- kvist's side ---- */

static void close_pair(int pair[2])
{
    for (int i = 0; i < 2; i++)
        if (pair[i] >= 0) close(pair[i]);
}

static void give(int *end, int *ret)
{
    *ret = *end;
    *end = -1;
}

int tool__supervise(tool_sandbox_plan *plan, const char *command, const tool_supervise_options *options,
    tool_supervised *ret, base_err *err)
{
    const bool talks = options && options->talks;
    const char *shell = access("/bin/bash", X_OK) == 0 ? "/bin/bash" : "/bin/sh";
    char *argv[] = {(char *)(strrchr(shell, '/') + 1), (char *)"-c", (char *)command, NULL};
    start s = {.plan = plan,
        .shell = shell,
        .argv = argv,
        .env = make_environment(plan->tmp, plan->views.home, options ? options->env : NULL),
        .nothing = open("/dev/null", O_RDONLY | O_CLOEXEC),
        .output = {-1, -1},
        .report = {-1, -1},
        .link = {-1, -1},
        .input = {-1, -1},
        .errors = {-1, -1},
        .group = options ? options->group : -1};
    *ret = (tool_supervised){.pid = -1, .pidfd = -1, .output = -1, .input = -1, .errors = -1, .link = -1};
    int code = BASE_OK;
    if (s.nothing < 0 || pipe2(s.output, O_CLOEXEC) || pipe2(s.report, O_CLOEXEC) ||
        (talks && (pipe2(s.input, O_CLOEXEC) || pipe2(s.errors, O_CLOEXEC))) ||
        socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, s.link))
        code = base_fail_sys(err, "a pipe for the command");
    if (!code && (ret->pid = clone_process(tool_sandbox_namespaces(plan))) < 0)
        code = base_fail_sys(err, "starting the command");
    if (!code && ret->pid == 0) be_supervisor(&s);
    if (!code)
        prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); /* what outlives the supervisor: reaped at the end */
    struct failure f = {0};
    ssize_t n = 0;
    if (!code) {
        ret->pidfd = (int)syscall(SYS_pidfd_open, ret->pid, 0);
        if (ret->pidfd >= 0) fcntl(ret->pidfd, F_SETFD, FD_CLOEXEC);
        close(s.report[1]);
        s.report[1] = -1;
        while ((n = read(s.report[0], &f, sizeof f)) < 0 && errno == EINTR) {
        }
    }
    if (n == (ssize_t)sizeof f) {
        f.step[sizeof f.step - 1] = '\0';
        tool__supervise_end(ret, &(int){0}, &(bool){false});
        errno = f.sys;
        code =
            base_fail_sys(err, "the command was not started, because it could not be confined (%s)", f.step);
    }
    tool_sandbox_has_entered(plan);
    if (!code) {
        give(&s.output[0], &ret->output);
        give(&s.link[0], &ret->link);
        give(&s.input[1], &ret->input);
        give(&s.errors[0], &ret->errors);
    }
    close_pair(s.output);
    close_pair(s.input);
    close_pair(s.errors);
    close_pair(s.report);
    close_pair(s.link);
    if (s.nothing >= 0) close(s.nothing);
    free_environment(s.env);
    return code;
}

bool tool__supervise_has_ended(const tool_supervised *c)
{
    siginfo_t info = {0};
    return !waitid(P_PID, (id_t)c->pid, &info, WEXITED | WNOHANG | WNOWAIT) && info.si_pid == c->pid;
}

/*
 * Reaps `who` (as waitpid takes it) until none is left, or until end_ns. Whoever was killed is gone within
 * microseconds, so the pauses begin short.
 */
static bool reap_until(pid_t who, int *status, uint64_t end_ns)
{
    for (long pause_ns = 50000;; pause_ns = pause_ns < 10000000 ? 2 * pause_ns : pause_ns) {
        pid_t pid;
        do pid = waitpid(who, status, WNOHANG);
        while (pid > 0 ? who < 0 : pid < 0 && errno == EINTR);
        if (pid) return true; /* the one, or nobody is left */
        if (base_clock_ns() >= end_ns) return false;
        nanosleep(&(struct timespec){.tv_nsec = pause_ns}, NULL);
    }
}

bool tool__supervise_end(tool_supervised *c, int *status, bool *left_others)
{
    /*
     * The group while its leader is still there (a zombie keeps the number from being used again), then the
     * leader.
     */
    pid_t group = c->pid;
    kill(-c->pid, SIGKILL);
    if (c->pidfd >= 0)
        syscall(SYS_pidfd_send_signal, c->pidfd, SIGKILL, NULL, 0);
    else
        kill(c->pid, SIGKILL);
    const uint64_t end_ns = base_clock_ns() + TOOL_END_PATIENCE_MS * UINT64_C(1000000);
    bool is_gone = reap_until(c->pid, status, end_ns);
    kill(-c->pid,
        SIGKILL); /* what was forked since the first kill; the number is taken while any of it lives */
    /*
     * A killed process still ends the system call that it is in. Without a PID namespace the supervisor's children are ours now, and
     * the last is waited for: what looks at the tree next finds nobody at work in it.
     */
    is_gone = reap_until(-group, NULL, end_ns) && is_gone;
    prctl(PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0);
    struct verdict v;
    if (c->link >= 0 && recv(c->link, &v, sizeof v, MSG_DONTWAIT) == (ssize_t)sizeof v) {
        *status = v.status;
        *left_others = v.left_others;
    }
    const int ends[] = {c->pidfd, c->output, c->input, c->errors, c->link};
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        if (ends[i] >= 0) close(ends[i]);
    *c = (tool_supervised){.pid = -1, .pidfd = -1, .output = -1, .input = -1, .errors = -1, .link = -1};
    return is_gone;
}
