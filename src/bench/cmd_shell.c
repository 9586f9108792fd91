/*
 * kvist bench log, kvist bench screen: what a long session costs the shell, without a model (bench/session.h makes the events).
 *
 * log writes a session as the agent does, commit for commit, and times opening it again and reducing it to a screen. screen runs the
 * shell's own loop and painter on a pseudo-terminal while tokens arrive, and says how much of a core that took; only the queue
 * between the engine's thread and the screen's is left out. scripts/bench-shell measures the whole program.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/log.h"
#include "base/clock.h"
#include "base/fs.h"
#include "base/mem.h"
#include "bench/session.h"
#include "cmd/cmd.h"
#include "cmd/options.h"
#include "tui/loop.h"
#include "tui/painter.h"
#include "tui/record.h"
#include "tui/tui.h"

enum { TURNS = 100, SCREEN_TURNS = 25, WIDTH = 140, HEIGHT = 42, TOKENS_A_SECOND = 40 };

static double ms_since(uint64_t start_ns)
{
    return (double)(base_clock_ns() - start_ns) / 1e6;
}

/* --- log ---------------------------------------------------------------------------------------------------------------- */

typedef struct type_sum {
    uint32_t n;
    uint64_t json_bytes, blob_bytes;
} type_sum;

typedef struct log_bench {
    agent_log *log;
    char id[32];
    uint32_t listed, turns, n_events;
    double commit_max_ms;
    bool first_only;
    type_sum sums[AGENT_N_EVENTS];
    tui_record record;
    int rc;
    base_err err;
} log_bench;

/* Where the agent commits (design/architecture.md). */
static bool is_commit_point(agent_event_type t)
{
    return t == AGENT_EVENT_user || t == AGENT_EVENT_tool_result || t == AGENT_EVENT_ledger ||
           t == AGENT_EVENT_snapshot || t == AGENT_EVENT_turn_end;
}

static void write_event(void *user, const agent_event *e)
{
    log_bench *b = user;
    if (b->rc) return;
    b->rc = agent_log_add(b->log, b->id, e, &b->err);
    uint64_t start = base_clock_ns();
    if (!b->rc && is_commit_point(e->type)) b->rc = agent_log_commit(b->log, &b->err);
    double ms = ms_since(start);
    if (ms > b->commit_max_ms) b->commit_max_ms = ms;
}

static int write_session(log_bench *b, const char *path, uint32_t turns, const char *root)
{
    agent_log_new_id(b->id);
    b->rc = agent_log_open(&b->log, path, false, &b->err);
    if (!b->rc) b->rc = agent_log_create(b->log, b->id, NULL, root, "a made-up session", &b->err);
    bench_session_make(turns, b->id, root, write_event, b);
    agent_log_close(b->log);
    b->log = NULL;
    return b->rc;
}

static void count_session(void *user, const agent_log_row *r)
{
    log_bench *b = user;
    b->listed++;
    b->turns = r->turns;
}

static bool read_event(
    void *user, uint64_t seq, uint32_t turn, const char *json, size_t n, const void *blob, size_t blob_n)
{
    log_bench *b = user;
    if (b->first_only) return false;
    b->rc = tui_record_add(&b->record, json, n, blob, blob_n, &b->err);
    if (b->rc) return false;
    type_sum *sum = &b->sums[b->record.events[b->record.n - 1].type];
    sum->n++;
    sum->json_bytes += n;
    sum->blob_bytes += blob_n;
    return true;
}

/* What a shell that resumes does before the first screen: the list, the session, where it stands and its first event. */
static int open_session(log_bench *b, const char *path)
{
    char *id = NULL;
    agent_log_tail tail;
    b->first_only = true;
    b->rc = agent_log_open(&b->log, path, true, &b->err);
    if (!b->rc) b->rc = agent_log_list(b->log, NULL, count_session, b, &b->err);
    if (!b->rc) b->rc = agent_log_find(b->log, "", NULL, &id, &b->err);
    if (!b->rc) b->rc = agent_log_get_tail(b->log, id, &tail, &b->err);
    if (!b->rc) b->rc = agent_log_events(b->log, id, read_event, b, &b->err);
    b->first_only = false;
    free(id);
    return b->rc;
}

static void print_log(const log_bench *b, double bytes, double write_ms, double open_ms, double read_ms,
    double apply_ms, double screen_ms, bool json)
{
    printf(json ? "{\"bench\":\"log\",\"turns\":%u,\"events\":%zu,\"bytes\":%.0f,\"write_ms\":%.1f,\"commit_"
                  "max_ms\":%.1f,"
                  "\"open_ms\":%.2f,\"read_ms\":%.1f,\"apply_ms\":%.1f,\"screen_ms\":%.1f,\"types\":{"
                : "%u turns, %zu events\ndatabase    %10.0f bytes (goal: less than 20,000,000)\nwriting     "
                  "%10.1f ms, "
                  "longest commit %.1f ms\nopening     %10.2f ms: open, list, find, tail, first event (goal: "
                  "less than "
                  "100)\nreading     %10.1f ms: every event unpacked and parsed\nreducing    %10.1f ms: "
                  "every event into "
                  "the screen's state\nreplay      %10.1f ms: log to one painted screen\n\n",
        b->turns, b->record.n, bytes, write_ms, b->commit_max_ms, open_ms, read_ms, apply_ms, screen_ms);
    const char *comma = "";
    for (int t = 0; t < AGENT_N_EVENTS; t++) {
        const type_sum *s = &b->sums[t];
        if (!s->n) continue;
        if (json)
            printf("%s\"%s\":[%u,%llu,%llu]", comma, agent_event_name((agent_event_type)t), s->n,
                (unsigned long long)s->json_bytes, (unsigned long long)s->blob_bytes);
        else
            printf("%-12s %7u events %10llu bytes before packing %10llu bytes of plans\n",
                agent_event_name((agent_event_type)t), s->n, (unsigned long long)s->json_bytes,
                (unsigned long long)s->blob_bytes);
        comma = ",";
    }
    if (json) puts("}}");
}

static int bench_log(uint32_t turns, bool json, base_err *err)
{
    log_bench b = {0};
    char dir[] = "/tmp/kvist-bench-XXXXXX";
    if (!mkdtemp(dir)) return base_fail_sys(err, "cannot make a temporary folder");
    base_buf path = {0}, screen = {0};
    base_buf_printf(&path, "%s/log.db", dir);
    uint64_t start = base_clock_ns();
    int rc = write_session(&b, path.data, turns, dir);
    double write_ms = ms_since(start), open_ms = 0, read_ms = 0, apply_ms = 0, screen_ms = 0;
    struct stat st = {0};
    if (!rc && stat(path.data, &st)) rc = base_fail_sys(&b.err, "%s", path.data);
    start = base_clock_ns();
    if (!rc) rc = open_session(&b, path.data);
    open_ms = ms_since(start);
    start = base_clock_ns();
    if (!rc) rc = agent_log_events(b.log, b.id, read_event, &b, &b.err);
    if (!rc) rc = b.rc;
    read_ms = ms_since(start);
    if (!rc) {
        tui_state state;
        tui_state_init(&state);
        start = base_clock_ns();
        for (size_t i = 0; i < b.record.n; i++) tui_state_apply(&state, &b.record.events[i], 0);
        apply_ms = ms_since(start);
        tui_state_free(&state);
        start = base_clock_ns();
        rc = tui_replay_text(b.log, b.id, 0, WIDTH, HEIGHT, &screen, &b.err);
        screen_ms = ms_since(start);
    }
    if (!rc && b.listed != 1)
        rc = base_fail(&b.err, BASE_E_STATE, "the log lists %u sessions where one was written", b.listed);
    if (!rc) print_log(&b, (double)st.st_size, write_ms, open_ms, read_ms, apply_ms, screen_ms, json);
    if (rc && err) *err = b.err;
    agent_log_close(b.log);
    tui_record_free(&b.record);
    base_buf_free(&path);
    base_buf_free(&screen);
    base_fs_remove(dir, NULL);
    return rc;
}

/* --- screen ------------------------------------------------------------------------------------------------------------- */

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

static int bench_screen(uint32_t seconds, bool json, base_err *err)
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
                  "than 0.02), "
                  "%llu bytes to the terminal\n",
        r.wall_s, r.tokens, r.session_tokens, r.cpu_s, r.cpu_s / r.wall_s, (unsigned long long)sent);
    return 0;
}

/* --- commands ----------------------------------------------------------------------------------------------------------- */

static int run(int argc, char **argv, const char *usage, const char *number, int64_t value, int64_t most,
    int (*bench)(uint32_t n, bool json, base_err *err))
{
    bool json = false, help = false;
    const option_row own[] = {{number, OPTION_INTEGER, &value}, {"--json", OPTION_FLAG, &json},
        {"--help", OPTION_FLAG, &help}, {0}};
    base_err err = {0};
    int rc = options_parse(argc, argv, NULL, own, NULL, NULL, &err);
    if (!rc && help) {
        fputs(usage, stdout);
        return CMD_OK;
    }
    if (!rc && (value < 1 || value > most))
        rc = base_fail(&err, BASE_E_USAGE, "%s is 1 to %lld", number, (long long)most);
    if (!rc) rc = bench((uint32_t)value, json, &err);
    return rc ? cmd_complain(&err) : CMD_OK;
}

int cmd_bench_log(int argc, char **argv)
{
    return run(argc, argv,
        "usage: kvist bench log [--turns 100] [--json]\n\n"
        "Writes a made-up session into a temporary database: its size, and the times to open it and to "
        "replay "
        "it.\n",
        "--turns", TURNS, 1000, bench_log);
}

int cmd_bench_screen(int argc, char **argv)
{
    return run(argc, argv,
        "usage: kvist bench screen [--seconds 10] [--json]\n\n"
        "Streams 40 tokens a second through the shell's loop on a pseudo-terminal of 140x42: the share of a "
        "core "
        "that it takes.\n",
        "--seconds", 10, 600, bench_screen);
}
