/*
 * Lines in, lines out. A request is a line; a question of a tool is answered by the next line (y, a, n
 * REASON, e COMMAND). The end of the input lets the running turn end, then quits; an unanswered question
 * becomes no.
 */
#include "tui/linear.h"

#include <errno.h>
#include <langinfo.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tui/linear_text.h"

static volatile sig_atomic_t interrupted;

static void on_interrupt(int signal_number)
{
    interrupted++;
}

static void flush_out(base_buf *out)
{
    fwrite(out->data ? out->data : "", 1, out->len, stdout);
    fflush(stdout);
    base_buf_clear(out);
}

enum { MAX_INPUT = 16 << 20 }; /* read ahead of the work */

typedef struct linear {
    agent_worker *worker;
    bool loading, busy, asked, input_ended, failed;
    tui_linear_text text;
    base_buf input;     /* bytes read that are not a whole line yet, and lines typed ahead */
    size_t typed_ahead; /* bytes of it that a person typed before the question came: no answer to it */
    base_buf out;
} linear;

static void answer_question(linear *l, const char *text)
{
    static const struct {
        char key;
        agent_answer answer;
    } answers[] = {
        {'y', AGENT_YES}, {'a', AGENT_ALWAYS}, {'A', AGENT_ALWAYS_HERE}, {'n', AGENT_NO}, {'e', AGENT_EDIT}};
    for (size_t i = 0; i < sizeof answers / sizeof *answers; i++) {
        if (text[0] != answers[i].key || (text[1] && text[1] != ' ')) continue;
        const char *rest = text[1] ? text + 2 : "";
        bool is_command = answers[i].answer != AGENT_YES && answers[i].answer != AGENT_NO;
        if (is_command && !l->text.asks_to_run) break;
        if (answers[i].answer == AGENT_EDIT && !*rest) break; /* nothing to run instead */
        l->asked = false;
        agent_worker_decide(l->worker, answers[i].answer, *rest ? rest : NULL);
        return;
    }
    tui_linear_answers(&l->text, &l->out);
}

/* Uses up whole lines as far as they can be used now. False: time to quit. */
static bool use_input(linear *l)
{
    while (l->asked || (!l->busy && !l->loading)) {
        const size_t from = l->asked ? l->typed_ahead : 0, left = l->input.len - from;
        char *begin = l->input.data + from, *end = left ? memchr(begin, '\n', left) : NULL;
        if (!end && !(l->input_ended && left)) break;
        size_t n = end ? (size_t)(end - begin) : left;
        char *text = strndup(begin, n);
        size_t used = end ? n + 1 : n;
        memmove(begin, begin + used, left - used);
        l->input.len -= used;
        bool quit = !strcmp(text, "/quit") || !strcmp(text, "/exit");
        if (!l->asked && !strcmp(text, "/tour")) {
            tui_linear_line(
                &l->text, "note: ", "the tour is six screens: it needs the shell without --linear", &l->out);
        } else if (quit || !*text) {
        } else if (l->asked) {
            answer_question(l, text);
        } else {
            l->busy = true;
            agent_worker_submit(l->worker, text);
        }
        free(text);
        if (quit) return false;
    }
    if (l->input_ended && l->asked && l->input.len <= l->typed_ahead) {
        l->asked = false;
        agent_worker_decide(l->worker, AGENT_NO, "nobody is there to ask");
    }
    return !(l->input_ended && !l->busy && !l->loading && !l->input.len);
}

/*
 * At a terminal nobody can answer a question before it is there: lines that wait stay requests. In a pipe a
 * script wrote its answers in front of the questions.
 */
static void read_typed_ahead(linear *l)
{
    struct pollfd typed = {.fd = STDIN_FILENO, .events = POLLIN};
    while (l->input.len <= MAX_INPUT && poll(&typed, 1, 0) == 1 && typed.revents & POLLIN) {
        char bytes[4096];
        ssize_t n = read(STDIN_FILENO, bytes, sizeof bytes);
        if (n <= 0) break;
        base_buf_add(&l->input, bytes, (size_t)n);
    }
    size_t whole = l->input.len;
    while (whole > 0 && l->input.data[whole - 1] != '\n') whole--;
    l->typed_ahead = whole;
}

static void take_messages(linear *l)
{
    for (agent_worker_message *m; (m = agent_worker_take(l->worker)); agent_worker_message_free(m)) {
        switch (m->type) {
        case AGENT_WORKER_NAMED:
        case AGENT_WORKER_DOING:
        case AGENT_WORKER_LOADING: break;
        case AGENT_WORKER_READY: l->loading = false; break;
        case AGENT_WORKER_IDLE: l->busy = false; break;
        case AGENT_WORKER_FAILED:
            l->failed = true;
            l->loading = false;
            tui_linear_line(&l->text, "error: ", m->text, &l->out);
            break;
        case AGENT_WORKER_EVENT:
            tui_linear_event(m->event, &l->text, &l->out);
            if (m->event->type == AGENT_EVENT_approval_request) {
                if (isatty(STDIN_FILENO)) read_typed_ahead(l);
                l->asked = true;
            }
            if (m->event->type == AGENT_EVENT_approval || m->event->type == AGENT_EVENT_turn_end)
                l->asked = false;
            break;
        }
    }
}

int tui_linear_run(agent_worker *w, const tui_options *options, base_err *err)
{
    linear l = {.worker = w, .loading = true};
    l.text.is_ascii = strcmp(nl_langinfo(CODESET), "UTF-8") != 0;
    struct sigaction act = {.sa_handler = on_interrupt}, old;
    sigaction(SIGINT, &act, &old);
    base_buf_puts(&l.out, "kvist, linear mode: one line is one request, nothing is painted over, /quit or "
                          "the end of input ends it\n");
    if (options->first_line) tui_linear_line(&l.text, "loading: ", options->first_line, &l.out);
    for (;;) {
        flush_out(&l.out);
        struct pollfd fds[2] = {{.fd = agent_worker_fd(w), .events = POLLIN},
            {.fd = l.input_ended || l.input.len > MAX_INPUT ? -1 : STDIN_FILENO, .events = POLLIN}};
        if (poll(fds, 2, -1) < 0 && errno != EINTR) break;
        if (interrupted) {
            interrupted = 0;
            if (!l.busy) break;
            agent_worker_interrupt(w);
        }
        take_messages(&l);
        if (l.failed) break;
        if (fds[1].revents) {
            char bytes[4096];
            ssize_t n = read(STDIN_FILENO, bytes, sizeof bytes);
            if (n > 0) base_buf_add(&l.input, bytes, (size_t)n);
            if (n == 0 || (n < 0 && errno != EINTR && errno != EAGAIN)) l.input_ended = true;
        }
        if (!use_input(&l)) break;
    }
    flush_out(&l.out);
    sigaction(SIGINT, &old, NULL);
    base_buf_free(&l.input);
    base_buf_free(&l.out);
    agent_stream_free(&l.text.stream);
    return l.failed ? base_fail(err, BASE_E_STATE, "the session could not be opened") : 0;
}
