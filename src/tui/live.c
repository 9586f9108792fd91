/*
 * The live shell: worker messages into the ui, the ui's wishes to the worker.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tui/linear.h"
#include "tui/loop.h"
#include "tui/terminal/painter.h"
#include "tui/input/tree_paths.h"
#include "tui/tui.h"

enum { MESSAGES_A_TICK = 2048 };

typedef struct shell {
    agent_worker *worker;
    const tui_options *options;
    tui_ui ui;
    tui_loop loop;
    int64_t sent_ms;  /* when the line was sent that the worker has */
    base_err failure; /* why the session could not be opened */
} shell;

static void do_submit(void *user, const char *text)
{
    shell *s = user;
    s->sent_ms = s->ui.now_ms;
    agent_worker_submit(s->worker, text);
}

static void do_decide(void *user, agent_answer answer, const char *text)
{
    agent_worker_decide(((shell *)user)->worker, answer, text);
}

static void do_set_mode(void *user, agent_mode mode)
{
    agent_worker_set_mode(((shell *)user)->worker, mode);
}

static void do_interrupt(void *user)
{
    agent_worker_interrupt(((shell *)user)->worker);
}

static void do_quit(void *user)
{
    ((shell *)user)->loop.quit = true;
}

static char **do_paths(void *user)
{
    const shell *s = user;
    if (s->options->paths) return s->options->paths(s->options->paths_user);
    /*
     * The session's root, which may lie above the folder kvist was started in, is what the agent's paths
     * count from.
     */
    char **paths = tui_paths_below(s->ui.state.root ? s->ui.state.root : s->options->root);
    return tui_paths_join(paths, agent_worker_symbols(s->worker));
}

static char **do_skills(void *user)
{
    return agent_worker_skills(((shell *)user)->worker);
}

/* Somebody who waited for long may look elsewhere by now. */
static void notify(const shell *s, const char *what)
{
    base_buf text = {0};
    if (s->options->notify == TUI_NOTIFY_OFF || s->ui.now_ms - s->sent_ms < s->options->long_turn_ms) return;
    if (s->options->notify == TUI_NOTIFY_OSC777)
        base_buf_printf(&text, "\033]777;notify;kvist;%s\033\\", what);
    tui_painter_send(text.len ? text.data : "\a", text.len ? text.len : 1);
    base_buf_free(&text);
}

static bool take_messages(void *user)
{
    shell *s = user;
    bool any = false;
    agent_worker_message *m;
    for (int i = 0; i < MESSAGES_A_TICK && (m = agent_worker_take(s->worker)); i++) {
        any = true;
        switch (m->type) {
        case AGENT_WORKER_LOADING: tui_ui_loading(&s->ui, m->share, m->text); break;
        case AGENT_WORKER_NAMED: break;
        case AGENT_WORKER_DOING: tui_ui_doing(&s->ui, m->text); break;
        case AGENT_WORKER_READY: tui_ui_ready(&s->ui); break;
        case AGENT_WORKER_EVENT:
            if (m->event->type == AGENT_EVENT_approval_request) notify(s, "a tool waits for your yes");
            tui_ui_event(&s->ui, m->event);
            break;
        case AGENT_WORKER_IDLE:
            notify(s, "the turn has ended");
            tui_ui_idle(&s->ui);
            break;
        case AGENT_WORKER_FAILED:
            base_fail(&s->failure, BASE_E_STATE, "%s", m->text ? m->text : "the session could not be opened");
            tui_ui_failed(&s->ui, s->failure.msg);
            break;
        }
        agent_worker_message_free(m);
    }
    return any;
}

int tui_run(agent_worker *w, const tui_options *options, base_err *err)
{
    const char *term = getenv("TERM");
    if (options->linear || !isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO) || !term || !*term ||
        !strcmp(term, "dumb"))
        return tui_linear_run(w, options, err);
    shell s = {.worker = w, .options = options};
    int rc = tui_loop_open(options->no_color, err);
    if (rc) return rc;
    tui_host host = {.user = &s,
        .submit = do_submit,
        .decide = do_decide,
        .set_mode = do_set_mode,
        .interrupt = do_interrupt,
        .quit = do_quit,
        .edit = tui_loop_edit,
        .copy = tui_loop_copy,
        .repaint = tui_loop_repaint,
        .suspend = tui_loop_suspend,
        .skills = do_skills,
        .paths = options->paths || options->root ? do_paths : NULL};
    tui_ui_init(&s.ui, &host, tui_painter_utf8(), !tui_painter_colours());
    tui_lines_open(&s.ui.lines, options->history);
    base_buf first = {0};
    base_buf_printf(&first, "loading %s", options->first_line ? options->first_line : "");
    tui_ui_loading(&s.ui, 0, first.data);
    base_buf_free(&first);
    s.loop = (tui_loop){.ui = &s.ui, .fd = agent_worker_fd(w), .ready = take_messages, .user = &s};
    tui_loop_run(&s.loop);
    agent_worker_interrupt(w);
    tui_loop_close();
    tui_loop_farewell(&s.ui.state);
    tui_ui_free(&s.ui);
    if (s.failure.code && err) *err = s.failure;
    return s.failure.code;
}
