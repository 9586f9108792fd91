/* A talking child (contract: served.h): three pipes that never block us, and a bounded memory of what it complains of. */
#include "tools/run/served.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "tools/run/box.h"
#include "tools/confine/meter.h"
#include "tools/confine/supervise.h"
#include "tools/guard/git_guard.h"
#include "tools/result/result.h"

enum { POLL_MS = 20, METER_MS = 50, MOST_ERRORS = 4096, A_READ = 65536 };

struct tool_served {
    tool_supervised child;
    tool_meter meter;
    uint64_t next_look_ns;
    base_buf errors; /* the end of what came on the second stream */
    base_buf complaint;
    tool_workspace *w;
    tool_den *tmp;
    bool holds_tmp; /* open while it runs: it has no mounts */
};

/* In the workspace's list as long as it lives: see tool__served_move. */
static void add_tmp(tool_served *s)
{
    tool_workspace *w = s->w;
    base_grow(&w->served, &w->cap_served, w->n_served + 1, sizeof *w->served);
    w->served[w->n_served++] = s->tmp;
}

static void drop_tmp(tool_served *s)
{
    size_t n = 0;
    for (size_t i = 0; i < s->w->n_served; i++)
        if (s->w->served[i] != s->tmp) s->w->served[n++] = s->w->served[i];
    s->w->n_served = n;
    if (s->holds_tmp) tool__den_close(s->tmp);
    tool__den_free(s->tmp);
}

void tool__served_move(tool_workspace *w)
{
    for (size_t i = 0; i < w->n_served; i++) tool__den_move(w->served[i]);
}

/* ---- its environment ---- */

/* Where programs and what they load are looked for. */
static const char *const searched[] = {"PATH", "PYTHONPATH", "NODE_PATH", "LD_LIBRARY_PATH"};
enum { N_SEARCHED = sizeof searched / sizeof *searched };

static bool is_in_tree(const tool_workspace *w, const char *folder)
{
    const size_t n = strlen(w->root.path);
    char *real = *folder == '/' ? realpath(folder, NULL) : NULL;
    const bool is_so =
        *folder != '/' || (real && !strncmp(real, w->root.path, n) && (!real[n] || real[n] == '/'));
    free(real);
    return is_so;
}

/* "NAME=" and those folders of the list that lie outside of the tree. */
static char *outside_of_tree(const tool_workspace *w, const char *name, const char *list)
{
    base_buf line = {0};
    base_buf_printf(&line, "%s=", name);
    const size_t begin = line.len;
    for (const char *at = list; *at;) {
        const size_t n = strcspn(at, ":");
        char *folder = base_xstrndup(at, n);
        if (!is_in_tree(w, folder)) base_buf_printf(&line, "%s%s", line.len > begin ? ":" : "", folder);
        free(folder);
        at += n + (at[n] == ':');
    }
    if (line.len == begin && !strcmp(name, "PATH")) /* an empty one is the folder one stands in */
        base_buf_puts(&line, "/usr/local/bin:/usr/bin:/bin");
    return base_buf_take(&line);
}

/*
 * A server has what a command has not, the network or a key, so nothing of the tree may take its place: neither a program or a module
 * of its name in a folder of the tree that is looked through, nor (Python) one in the folder where it starts.
 */
static char **make_environment(const tool_workspace *w, const char *const *given)
{
    size_t n = 0, n_given = 0;
    while (given && given[n_given]) n_given++;
    char **env = base_xcalloc(N_SEARCHED + n_given + 2, sizeof *env);
    env[n++] = base_xstrdup("PYTHONSAFEPATH=1");
    for (size_t i = 0; i < N_SEARCHED; i++)
        if (getenv(searched[i])) env[n++] = outside_of_tree(w, searched[i], getenv(searched[i]));
    for (size_t i = 0; i < n_given; i++) env[n++] = base_xstrdup(given[i]);
    return env;
}

static void free_environment(char **env)
{
    for (char **e = env; *e; e++) free(*e);
    free(env);
}

int tool_served_start(tool_workspace *w, const tool_served_options *options, tool_served **ret, base_err *err)
{
    tool_sandbox_plan plan = {.ruleset = -1};
    tool_den *tmp;
    tool__git_guard_take(w);
    int code = tool__den_make("tmp", &tmp, err);
    if (code) return code;
    code = tool__box_prepare(w,
        &(tool_box_wishes){.writes = options->writes,
            .has_network = options->has_network,
            .tmp = tmp,
            .readable = options->readable},
        &plan, err);
    if (code) {
        tool__den_free(tmp);
        return code;
    }
    base_buf command = {0};
    base_buf_puts(&command, "exec");
    for (const char *const *word = options->argv; *word; word++) {
        base_buf_putc(&command, ' ');
        tool__quote_shell(&command, *word);
    }
    tool_served *s = base_xcalloc(1, sizeof *s);
    s->w = w;
    s->tmp = tmp;
    add_tmp(s);
    tool__meter_start(&s->meter, NULL);
    char **env = make_environment(w, options->env);
    code = tool__supervise(&plan, command.data,
        &(tool_supervise_options){
            .talks = true, .env = (const char *const *)env, .group = s->meter.group.procs},
        &s->child, err);
    free_environment(env);
    base_buf_free(&command);
    if (!code && !plan.use_mounts) s->holds_tmp = !tool__den_open(tmp, NULL);
    tool_sandbox_plan_free(&plan);
    if (code) {
        tool__meter_end(&s->meter);
        drop_tmp(s);
        free(s);
        return code;
    }
    const int ends[] = {s->child.input, s->child.output, s->child.errors};
    for (size_t i = 0; i < 3; i++) fcntl(ends[i], F_SETFL, O_NONBLOCK);
    *ret = s;
    return BASE_OK;
}

void tool_served_stop(tool_served *s)
{
    if (!s) return;
    tool__supervise_end(&s->child, &(int){0}, &(bool){false});
    tool__meter_end(&s->meter);
    drop_tmp(s);
    base_buf_free(&s->errors);
    base_buf_free(&s->complaint);
    free(s);
}

static void close_end(int *fd)
{
    if (*fd >= 0) close(*fd);
    *fd = -1;
}

/* What it complains of must not fill the pipe, or it waits for us while we wait for it. */
static void drain_errors(tool_served *s)
{
    char bytes[4096];
    for (int rounds = 0; rounds < 16 && s->child.errors >= 0; rounds++) {
        const ssize_t n = read(s->child.errors, bytes, sizeof bytes);
        if (n == 0) close_end(&s->child.errors);
        if (n <= 0) return;
        base_buf_add(&s->errors, bytes, (size_t)n);
        if (s->errors.len > 2 * MOST_ERRORS) {
            memmove(s->errors.data, s->errors.data + s->errors.len - MOST_ERRORS, MOST_ERRORS);
            s->errors.len = MOST_ERRORS;
        }
    }
}

const char *tool_served_complaint(tool_served *s)
{
    drain_errors(s);
    const char *end = s->errors.data ? s->errors.data + s->errors.len : NULL, *from;
    while (end && end > s->errors.data && strchr(" \t\r\n", end[-1]) && end[-1]) end--;
    for (from = end; from && from > s->errors.data && from[-1] != '\n'; from--) {
    }
    base_buf_clear(&s->complaint);
    base_buf_puts(&s->complaint, "");
    if (from)
        base_utf8_sanitise(
            &s->complaint, from, (size_t)(end - from) < 200 ? (size_t)(end - from) : 200, false);
    return s->complaint.data;
}

/* Waits for one of its ends a moment; an error when there is nothing more to wait for. */
static int wait_for(
    tool_served *s, int fd, short what, uint64_t end_ns, const atomic_bool *cancel, base_err *err)
{
    char why[160];
    if (cancel && atomic_load(cancel)) return base_fail(err, BASE_E_CANCELLED, "cancelled");
    const uint64_t now = base_clock_ns();
    if (now >= s->next_look_ns) {
        s->next_look_ns = now + METER_MS * UINT64_C(1000000);
        if (!tool__meter_is_within(&s->meter, s->child.pid, why, sizeof why))
            return base_fail(err, BASE_E_LIMIT, "%s", why);
    }
    struct pollfd fds[2] = {{.fd = fd, .events = what}, {.fd = s->child.errors, .events = POLLIN}};
    poll(fds, 2, POLL_MS);
    if (fds[1].revents) drain_errors(s);
    if (!fds[0].revents && now >= end_ns) return base_fail(err, BASE_E_LIMIT, "it did not answer in time");
    return BASE_OK;
}

int tool_served_send(
    tool_served *s, const char *bytes, size_t n, uint64_t end_ns, const atomic_bool *cancel, base_err *err)
{
    struct sigaction ignore = {.sa_handler = SIG_IGN}, before;
    int code = BASE_OK;
    sigaction(SIGPIPE, &ignore, &before);
    while (n && !code) {
        const ssize_t done = s->child.input >= 0 ? write(s->child.input, bytes, n) : -1;
        if (done > 0) {
            bytes += done;
            n -= (size_t)done;
        } else if (s->child.input < 0 || (errno != EAGAIN && errno != EINTR)) {
            code = base_fail(err, BASE_E_STATE, "it has ended");
        } else {
            code = wait_for(s, s->child.input, POLLOUT, end_ns, cancel, err);
        }
    }
    sigaction(SIGPIPE, &before, NULL);
    return code;
}

int tool_served_receive(
    tool_served *s, base_buf *out, uint64_t end_ns, const atomic_bool *cancel, base_err *err)
{
    char bytes[A_READ];
    for (;;) {
        const ssize_t n = s->child.output >= 0 ? read(s->child.output, bytes, sizeof bytes) : 0;
        if (n > 0) {
            base_buf_add(out, bytes, (size_t)n);
            return BASE_OK;
        }
        if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
            close_end(&s->child.output);
            return base_fail(err, BASE_E_STATE, "it has ended");
        }
        const int code = wait_for(s, s->child.output, POLLIN, end_ns, cancel, err);
        if (code) return code;
    }
}
