/*
 * kvist-bench screen: the share of a core that the screen takes while an answer streams behind a long
 * session, without a model (bench/cost/made_session.h makes the events). The shell's own loop and painter run
 * on a pseudo-terminal while tokens arrive; only the queue between the engine's thread and the screen's is
 * left out. scripts/bench-shell measures the whole program.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "bench/bench.h"
#include "bench/cost/made_session.h"
#include "tui/loop.h"
#include "tui/terminal/painter.h"
#include "tui/tui.h"

enum { SCREEN_TURNS = 25, WIDTH = 140, HEIGHT = 42, TOKENS_A_SECOND = 40 };

typedef struct screen_bench {
    tui_loop loop;
    tui_ui ui;
    int timer;
    uint32_t n_tokens, wanted, index;
} screen_bench;

static void show_event(void *user, const agent_event *e)
{
    tui_ui_event(user, e);
}

/* As many tokens as the timer has ticked: each copied, applied and freed as a message of the worker is. */
static bool take_tokens(void *user)
{
    static const char *const words[] = {"The ", "reader ", "takes ", "`reply`", " from ", "the\n", "buffer",
        ", ", "then ", "returns ", "it.\n\n"};
    screen_bench *s = user;
    uint64_t ticks = 0;
    if (read(s->timer, &ticks, sizeof ticks) != sizeof ticks) return false;
    for (uint64_t i = 0; i < ticks && s->n_tokens < s->wanted; i++, s->n_tokens++) {
        agent_event e = {.type = AGENT_EVENT_token,
            .token = {.id = (int64_t)s->n_tokens,
                .index = s->index + s->n_tokens,
                .text = words[s->n_tokens % (sizeof words / sizeof *words)]}};
        agent_event *copy = agent_event_copy(&e);
        tui_ui_event(&s->ui, copy);
        agent_event_free(copy);
    }
    s->loop.quit = s->n_tokens >= s->wanted;
    return true;
}

typedef struct screen_result {
    double wall_s, cpu_s;
    uint32_t tokens, session_tokens;
    base_err err;
} screen_result;

/* In the child, whose terminal is the pseudo-terminal. */
static void stream(screen_result *ret, uint32_t seconds)
{
    screen_bench s = {.timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK),
        .wanted = seconds * TOKENS_A_SECOND};
    if (s.timer < 0) {
        base_fail_sys(&ret->err, "cannot make a timer");
        return;
    }
    if (tui_loop_open(false, &ret->err)) return;
    tui_ui_init(&s.ui, &(tui_host){0}, tui_painter_utf8(), !tui_painter_colours());
    bench_session_make(SCREEN_TURNS, "bench", "/", show_event, &s.ui);
    agent_event request = {
        .type = AGENT_EVENT_user, .user = {.turn = SCREEN_TURNS + 1, .text = "How does it read a reply?"}};
    tui_ui_event(&s.ui, &request);
    ret->session_tokens = s.index =
        (uint32_t)tui_ui_rows(&s.ui)->n; /* folded once, as a live session has it */
    s.loop = (tui_loop){.ui = &s.ui, .fd = s.timer, .ready = take_tokens, .user = &s};
    struct itimerspec every = {{0, 1000000000 / TOKENS_A_SECOND}, {0, 1000000000 / TOKENS_A_SECOND}};
    timerfd_settime(s.timer, 0, &every, NULL);
    uint64_t wall = base_clock_ns(), cpu = base_clock_cpu_ns();
    tui_loop_run(&s.loop);
    ret->cpu_s = (double)(base_clock_cpu_ns() - cpu) / 1e9;
    ret->wall_s = (double)(base_clock_ns() - wall) / 1e9;
    ret->tokens = s.n_tokens;
    tui_loop_close();
    tui_ui_free(&s.ui);
    close(s.timer);
}

static void child_main(const char *terminal, int out, uint32_t seconds)
{
    screen_result result = {0};
    int fd = open(terminal, O_RDWR | O_NOCTTY);
    struct winsize size = {.ws_row = HEIGHT, .ws_col = WIDTH};
    if (fd < 0 || ioctl(fd, TIOCSWINSZ, &size) || dup2(fd, STDIN_FILENO) < 0 || dup2(fd, STDOUT_FILENO) < 0) {
        base_fail_sys(&result.err, "cannot use the pseudo-terminal");
    } else {
        close(fd);
        setenv("TERM", "xterm-256color", 1);
        stream(&result, seconds);
    }
    _exit(write(out, &result, sizeof result) == sizeof result ? 0 : 1);
}

/* Takes what the screen prints until the child's pipe has its result. */
static uint64_t drain(int terminal, int result_fd)
{
    char bytes[65536];
    uint64_t total = 0;
    struct pollfd fds[2] = {{.fd = terminal, .events = POLLIN}, {.fd = result_fd, .events = POLLIN}};
    while (poll(fds, 2, -1) >= 0 || errno == EINTR) {
        ssize_t n = fds[0].revents & POLLIN ? read(terminal, bytes, sizeof bytes) : 0;
        if (n > 0) total += (uint64_t)n;
        if (fds[0].revents & (POLLHUP | POLLERR) && n <= 0) fds[0].fd = -1;
        if (fds[1].revents) break;
    }
    return total;
}

static int measure(uint32_t seconds, bool json, base_err *err)
{
    int terminal = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC), out[2];
    if (terminal < 0 || grantpt(terminal) || unlockpt(terminal) || pipe2(out, O_CLOEXEC))
        return base_fail_sys(err, "cannot make a pseudo-terminal");
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) child_main(ptsname(terminal), out[1], seconds);
    close(out[1]);
    screen_result r = {0};
    uint64_t sent = child > 0 ? drain(terminal, out[0]) : 0;
    int rc = 0;
    if (child < 0)
        rc = base_fail_sys(err, "cannot start the shell's process");
    else if (read(out[0], &r, sizeof r) != sizeof r)
        rc = base_fail(err, BASE_E_STATE, "the shell's process ended without a result");
    else if (r.err.code) {
        rc = r.err.code;
        if (err) *err = r.err;
    }
    while (child > 0 && waitpid(child, NULL, 0) < 0 && errno == EINTR) {
    }
    close(out[0]);
    close(terminal);
    if (rc) return rc;
    printf(json ? "{\"bench\":\"screen\",\"seconds\":%.2f,\"tokens\":%u,\"session_tokens\":%u,\"cpu_s\":%.4f,"
                  "\"cpu_share\":%.5f,"
                  "\"bytes\":%llu}\n"
                : "%.1f s, %u tokens behind a session of %u: %.3f s of a core, %.5f of the time (goal: less "
                  "than 0.02), %llu bytes to the terminal\n",
        r.wall_s, r.tokens, r.session_tokens, r.cpu_s, r.cpu_s / r.wall_s, (unsigned long long)sent);
    return 0;
}

int bench_screen(int argc, char **argv)
{
    return bench_count(argc, argv,
        "usage: kvist-bench screen [--seconds 10] [--json]\n\n"
        "Streams 40 tokens a second through the shell's loop on a "
        "pseudo-terminal of 140x42: the share of a core that it takes.\n",
        "--seconds", 10, 600, measure);
}
