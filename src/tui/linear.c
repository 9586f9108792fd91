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

#include "base/show.h"
#include "base/utf8.h"

static void add_clean(base_buf *out, const char *s)
{
    if (s) base_utf8_sanitise(out, s, strlen(s), true);
}

static void label(base_buf *out, tui_linear_text *t, const char *name)
{
    if (t->stream.line_open) base_buf_putc(out, '\n');
    t->stream.line_open = t->is_labelled = false;
    base_buf_puts(out, name);
}

/* What the stream lets through; text is freed. */
static void put_answer(tui_linear_text *t, base_buf *text, base_buf *out)
{
    if (text->len && !t->is_labelled) base_buf_puts(out, "answer: ");
    t->is_labelled = t->is_labelled || text->len;
    if (text->len) base_utf8_sanitise(out, text->data, text->len, true);
    base_buf_free(text);
}

static void line(base_buf *out, tui_linear_text *t, const char *name, const char *text)
{
    label(out, t, name);
    add_clean(out, text);
    base_buf_putc(out, '\n');
}

/* What a person is asked about: every byte of it visible; a line of it is a line here, and begins so. */
static void put_question(base_buf *out, const tui_linear_text *t, const char *s, bool is_code)
{
    const base_show_form form = t->is_ascii ? BASE_SHOW_ASCII : is_code ? BASE_SHOW_TABS : BASE_SHOW_UTF8;
    for (const char *p = s; p && *p;) {
        size_t n = strcspn(p, "\n");
        const bool ends = p[n] == '\n';
        base_show(out, p, n + (ends && !is_code), form); /* in a command the line's end is a mark too */
        if (ends) base_buf_puts(out, is_code ? "\n" : p[n + 1] ? "\n  " : "");
        p += n + ends;
    }
}

static void put_places(const agent_place_list *places, tui_linear_text *t, base_buf *out)
{
    for (size_t i = 0; i < places->n; i++)
        line(out, t, "place: ", places->rows[i].text ? places->rows[i].text : places->rows[i].path);
}

static void put_answers(const tui_linear_text *t, base_buf *out)
{
    base_buf_puts(
        out, t->asks_to_run
                 ? "y once, a this exact one in this session, A in this tree for good, n REASON, e COMMAND: "
             : t->asks_to_rewind ? "y files too, n conversation alone, Ctrl+C neither: "
                                 : "y once, n REASON: ");
}

void tui_linear_event(const agent_event *e, tui_linear_text *t, base_buf *out)
{
    base_buf text = {0};
    switch (e->type) {
    case AGENT_EVENT_session:
        t->is_elsewhere = e->session.row_bytes <= 0;
        label(out, t, "session: ");
        add_clean(out, e->session.id);
        base_buf_puts(out, ", model ");
        add_clean(out, e->session.model);
        base_buf_puts(out, ", mode ");
        add_clean(out, e->session.mode);
        base_buf_putc(out, '\n');
        break;
    case AGENT_EVENT_token:
        if (e->token.channel) break; /* a thought is no answer */
        agent_stream_token(&t->stream, e->token.text, e->token.origin != NULL, &text);
        put_answer(t, &text, out);
        break;
    case AGENT_EVENT_answer:
        agent_stream_answer(&t->stream, e->answer.text, &text);
        put_answer(t, &text, out);
        label(out, t, "");
        break;
    case AGENT_EVENT_append:
        agent_stream_forget(&t->stream);
        if (agent_event_opening(e)) agent_stream_token(&t->stream, agent_event_opening(e), false, &text);
        put_answer(t, &text, out);
        break;
    case AGENT_EVENT_tool_call:
        agent_stream_forget(&t->stream);
        label(out, t, "tool: ");
        put_question(out, t, e->tool_call.headline ? e->tool_call.headline : e->tool_call.name, false);
        base_buf_putc(out, '\n');
        break;
    case AGENT_EVENT_approval_request:
        t->asks_to_run = e->approval_request.power && !strcmp(e->approval_request.power, "runs");
        t->asks_to_rewind = e->approval_request.name && !strcmp(e->approval_request.name, "rewind");
        label(out, t, "question: ");
        put_question(out, t, e->approval_request.headline, false);
        base_buf_putc(out, '\n');
        put_question(out, t, e->approval_request.detail, !t->asks_to_run);
        if (e->approval_request.detail) base_buf_putc(out, '\n');
        base_buf_puts(out, "allow? ");
        put_answers(t, out);
        break;
    case AGENT_EVENT_approval: line(out, t, "decided: ", e->approval.decision); break;
    case AGENT_EVENT_tool_result:
        label(out, t, "result: ");
        add_clean(out, e->tool_result.status);
        base_buf_puts(out, e->tool_result.summary ? ", " : "");
        add_clean(out, e->tool_result.summary);
        base_buf_putc(out, '\n');
        if (e->tool_result.name && !strcmp(e->tool_result.name, "shell") && e->tool_result.text) {
            add_clean(out, e->tool_result.text); /* nothing can be unfolded here */
            if (*e->tool_result.text && e->tool_result.text[strlen(e->tool_result.text) - 1] != '\n')
                base_buf_putc(out, '\n');
        }
        if (e->tool_result.diff) {
            put_question(out, t, e->tool_result.diff, true);
            base_buf_putc(out, '\n');
        }
        break;
    case AGENT_EVENT_plan:
        if (e->plan.evicted <= 0 && e->plan.promoted <= 0 && e->plan.deferred <= 0 && e->plan.again <= 0)
            break;
        label(out, t, "cache: ");
        base_buf_printf(out, "%lld %s evicted, %lld promoted, %s", (long long)e->plan.evicted,
            t->is_elsewhere ? "tokens" : "rows", (long long)e->plan.promoted,
            e->plan.cause ? e->plan.cause : "");
        if (e->plan.deferred > 0)
            base_buf_printf(out, ", %lld tokens left below the pivot", (long long)e->plan.deferred);
        if (e->plan.again > 0)
            base_buf_printf(out, ", %lld tokens of the %s computed again", (long long)e->plan.again,
                e->plan.cause && !strcmp(e->plan.cause, "answer") ? "answer" : "message");
        base_buf_putc(out, '\n');
        break;
    case AGENT_EVENT_visits:
        label(out, t, "cache: ");
        base_buf_printf(
            out, "%lld tokens read %.0f evicted rows each\n", (long long)e->visits.tokens, e->visits.rows);
        break;
    case AGENT_EVENT_request:
        label(out, t, "request: ");
        agent_request_put(e, out);
        base_buf_putc(out, '\n');
        break;
    case AGENT_EVENT_ledger:
        label(out, t, "ledger: ");
        base_buf_printf(out,
            "turn %lld, new %lld, reused %lld, evicted %lld, promoted %lld, active %lld of %lld, %.1f tokens "
            "a second\n",
            (long long)e->ledger.turn, (long long)e->ledger.new, (long long)e->ledger.reused,
            (long long)e->ledger.evicted, (long long)e->ledger.promoted, (long long)e->ledger.active,
            (long long)agent_limit_now(e->ledger.budget, e->ledger.until, e->ledger.host),
            e->ledger.decode_tps);
        break;
    case AGENT_EVENT_places: put_places(&e->places.items, t, out); break;
    case AGENT_EVENT_rewind:
        label(out, t, "rewound: ");
        base_buf_printf(
            out, "to before turn %lld%s", (long long)e->rewind.turn, e->rewind.summary ? "; " : "");
        add_clean(out, e->rewind.summary);
        base_buf_putc(out, '\n');
        break;
    case AGENT_EVENT_undo: line(out, t, "undo: ", e->undo.summary); break;
    case AGENT_EVENT_correction: line(out, t, "corrected: ", e->correction.what); break;
    case AGENT_EVENT_outcome: line(out, t, "outcome: ", e->outcome.text); break;
    case AGENT_EVENT_notice: line(out, t, "note: ", e->notice.text); break;
    case AGENT_EVENT_error: line(out, t, "error: ", e->error.text); break;
    default: break;
    }
}

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
    put_answers(&l->text, &l->out);
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
            line(&l->out, &l->text, "note: ", "the tour is six screens: it needs the shell without --linear");
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
            line(&l->out, &l->text, "error: ", m->text);
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
    if (options->first_line) line(&l.out, &l.text, "loading: ", options->first_line);
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
