/*
 * One poll over the terminal, the worker and signals. Keys are painted at once; events at most 30 times a
 * second; when nothing happens nothing wakes up.
 */
#include "tui/loop.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fs.h"
#include "tui/dispatch.h"
#include "tui/frame.h"
#include "tui/terminal/painter.h"

enum { FRAME_MS = 33, MOVING_MS = 500, MAX_EDITED = 4 << 20 };

static int signal_fd = -1;
static volatile sig_atomic_t ending;

static void on_signal(int signal_number)
{
    int saved = errno;
    if (signal_number != SIGWINCH && signal_number != SIGCONT) ending = 1;
    uint64_t one = 1;
    /* The counter only wakes the loop; a lost write means that it is awake already. */
    if (write(signal_fd, &one, sizeof one) < 0) errno = saved;
    errno = saved;
}

static const int watched[] = {SIGWINCH, SIGTERM, SIGHUP, SIGINT};

int tui_loop_open(bool no_color, base_err *err)
{
    signal_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (signal_fd < 0) return base_fail_sys(err, "cannot make a descriptor for signals");
    ending = 0;
    struct sigaction act = {.sa_handler = on_signal};
    for (size_t i = 0; i < sizeof watched / sizeof *watched; i++) sigaction(watched[i], &act, NULL);
    int rc = tui_painter_open(no_color, err);
    if (rc) tui_loop_close();
    return rc;
}

void tui_loop_close(void)
{
    tui_painter_close();
    for (size_t i = 0; i < sizeof watched / sizeof *watched; i++) signal(watched[i], SIG_DFL);
    if (signal_fd >= 0) close(signal_fd);
    signal_fd = -1;
}

static int64_t now_ms(void)
{
    return (int64_t)(base_clock_ns() / 1000000);
}

/* All keys that are there; true when there was one. */
static bool take_keys(tui_loop *l, base_buf *paste)
{
    uint32_t key;
    bool any = false;
    while (!l->quit && tui_keys_read(&key, paste)) {
        any = true;
        l->ui->now_ms = now_ms();
        if (key == TUI_KEY_PASTE)
            tui_ui_paste(l->ui, paste->data ? paste->data : "", paste->len);
        else if (key != TUI_KEY_RESIZE)
            tui_ui_key(l->ui, key);
    }
    return any;
}

static void draw(tui_loop *l, tui_grid *g)
{
    int width, height;
    tui_painter_size(&width, &height);
    tui_grid_resize(g, width, height);
    l->ui->now_ms = now_ms();
    tui_ui_draw(l->ui, g);
    tui_painter_paint(g);
    l->ui->now_ms = now_ms();
    tui_ui_painted(l->ui);
}

/*
 * How long nothing has to be done: until the frame that shows what changed (drawn: when the last one was), until what
 * moves by itself has moved, or until the tick. -1: until something happens.
 */
static int64_t time_to_wait(const tui_loop *l, bool dirty, int64_t drawn, int64_t tick_at, int64_t now)
{
    int64_t wait = -1;
    if (dirty) {
        wait = FRAME_MS - (now_ms() - drawn);
        if (wait < 0) wait = 0;
    } else if (tui_ui_moving(l->ui)) {
        wait = MOVING_MS;
    }
    if (tick_at >= 0 && (wait < 0 || tick_at - now < wait)) wait = tick_at > now ? tick_at - now : 0;
    return wait;
}

void tui_loop_run(tui_loop *l)
{
    tui_grid grid = {0};
    base_buf paste = {0};
    bool dirty = true, at_once = true;
    int64_t drawn = 0, tick_at = -1;
    if (l->tick) tick_at = 0;
    while (!l->quit && !ending) {
        int64_t now = now_ms();
        if (tick_at >= 0 && now >= tick_at) {
            int next = l->tick(l->user);
            tick_at = next < 0 ? -1 : now + next;
            dirty = true;
        }
        if (dirty && (at_once || now - drawn >= FRAME_MS)) {
            draw(l, &grid);
            drawn = now_ms();
            dirty = at_once = false;
        }
        const int64_t wait = time_to_wait(l, dirty, drawn, tick_at, now);
        struct pollfd fds[3] = {{.fd = STDIN_FILENO, .events = POLLIN}, {.fd = signal_fd, .events = POLLIN},
            {.fd = l->fd, .events = POLLIN}};
        int n = poll(fds, 3, (int)wait);
        if (n < 0 && errno != EINTR) break;
        if (n == 0 && !dirty && tui_ui_moving(l->ui)) dirty = true; /* the time left goes down by itself */
        if (n <= 0) continue;
        if (fds[1].revents) {
            uint64_t count;
            if (read(signal_fd, &count, sizeof count) < 0) continue;
            tui_painter_resized();
            dirty = at_once = true;
        }
        if (fds[0].revents) {
            if (take_keys(l, &paste))
                dirty = at_once = true;
            else if (fds[0].revents & (POLLHUP | POLLERR | POLLNVAL))
                break;                               /* the terminal went away */
            if (l->tick && tick_at < 0) tick_at = 0; /* a key may have started it */
        }
        if (fds[2].revents) {
            l->ui->now_ms = now_ms();
            if (l->ready(l->user)) dirty = true;
        }
    }
    base_buf_free(&paste);
    tui_grid_free(&grid);
}

/* --- what needs the terminal ---------------------------------------------------------------------------- */

char *tui_loop_edit(void *user, const char *text)
{
    char path[] = "/tmp/kvist-edit-XXXXXX.md";
    int fd = mkostemps(path, 3, O_CLOEXEC);
    if (fd < 0) return NULL;
    size_t n = strlen(text);
    bool ok = write(fd, text, n) == (ssize_t)n;
    close(fd);
    char *changed = NULL;
    if (ok) {
        tui_painter_leave();
        pid_t child = fork();
        if (child == 0) {
            for (size_t i = 0; i < sizeof watched / sizeof *watched; i++) signal(watched[i], SIG_DFL);
            execl("/bin/sh", "sh", "-c", "exec ${VISUAL:-${EDITOR:-vi}} \"$1\"", "sh", path, (char *)NULL);
            _exit(127);
        }
        int status = 1;
        while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR) {
        }
        tui_painter_return();
        base_buf b = {0};
        if (child > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0 &&
            base_fs_read(path, MAX_EDITED, &b, NULL) == 0)
            changed = base_buf_take(&b);
        base_buf_free(&b);
    }
    unlink(path);
    return changed;
}

void tui_loop_copy(void *user, const char *text, size_t n)
{
    tui_painter_copy(text, n);
}

void tui_loop_repaint(void *user)
{
    tui_painter_repaint();
}

void tui_loop_suspend(void *user)
{
    tui_painter_leave();
    raise(SIGTSTP);
    tui_painter_return();
}

void tui_loop_farewell(const tui_state *s)
{
    const tui_item *answer = tui_state_last_answer(s);
    if (answer) printf("%s\n\n", answer->body.data);
    bool is_logged = s->turn > 0 || (s->parent && *s->parent); /* a session without a turn leaves nothing */
    if (s->session && is_logged) printf("session %s   kvist --resume %s\n", s->session, s->session);
    fflush(stdout);
}
