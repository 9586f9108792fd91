/*
 * Requests without a screen (contract: headless.h). Two sinks for the same events: lines of JSON, or words
 * for a person.
 */
#include "agent/headless.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/input.h"
#include "agent/call/stream.h"
#include "base/numbers.h"
#include "base/show.h"
#include "base/utf8.h"

typedef struct sink {
    bool json, is_held; /* is_held: answers are JSON of a schema */
    bool is_draft;      /* of /commit: the message is printed, not what the model wrote on the way to it */
    agent_stream stream;
} sink;

static atomic_bool cancel, was_interrupted; /* the agent takes the first one back when it has stopped */

static void on_signal(int number)
{
    atomic_store(&cancel, true);
    atomic_store(&was_interrupted, true);
}

static void print_clean(FILE *to, const char *text, size_t n)
{
    base_buf clean = {0};
    base_utf8_sanitise(&clean, text, n, true);
    if (clean.len) fwrite(clean.data, 1, clean.len, to);
    base_buf_free(&clean);
}

/* Shows what the stream lets through, and frees it. */
static void print_answer(base_buf *text)
{
    if (text->len) print_clean(stdout, text->data, text->len);
    fflush(stdout);
    base_buf_free(text);
}

static void end_line(sink *s)
{
    if (s->stream.line_open) putchar('\n');
    fflush(stdout);
    s->stream.line_open = false;
}

static void print_request(const agent_event *e)
{
    base_buf text = {0}, clean = {0};
    agent_request_put(e, &text);
    base_utf8_sanitise(&clean, text.data, text.len, false);
    fprintf(stderr, "request: %s\n", clean.data);
    base_buf_free(&text);
    base_buf_free(&clean);
}

static void print_ledger(const agent_event *e)
{
    fprintf(stderr, "turn %lld: new %s reused %s generated %s evicted %s promoted %s, %s must stay",
        (long long)e->ledger.turn, BASE_THOUSANDS(e->ledger.new), BASE_THOUSANDS(e->ledger.reused),
        BASE_THOUSANDS(e->ledger.generated), BASE_THOUSANDS(e->ledger.evicted),
        BASE_THOUSANDS(e->ledger.promoted), BASE_THOUSANDS(e->ledger.protected));
    if (e->ledger.budget)
        fprintf(stderr, " | %s %s/%s", e->ledger.active_bytes > 0 ? "rows" : "sent",
            BASE_THOUSANDS(e->ledger.active),
            BASE_THOUSANDS(agent_limit_now(e->ledger.budget, e->ledger.until, e->ledger.host)));
    if (e->ledger.ctx)
        fprintf(stderr, " | %s/%s tokens", BASE_THOUSANDS(e->ledger.n), BASE_THOUSANDS(e->ledger.ctx));
    else /* a session without an end */
        fprintf(stderr, " | %s tokens", BASE_THOUSANDS(e->ledger.n));
    fprintf(stderr, " | prefill %.1f s, %.1f tokens/s", e->ledger.prefill_s, e->ledger.decode_tps);
    if (e->ledger.drafted)
        fprintf(
            stderr, ", lookup %s/%s", BASE_THOUSANDS(e->ledger.accepted), BASE_THOUSANDS(e->ledger.drafted));
    if (e->ledger.ceiling > 0)
        fprintf(stderr, " | structure %.2f (chance %.2f, at most %.2f)", e->ledger.structure,
            e->ledger.chance, e->ledger.ceiling);
    if (e->ledger.read > 0)
        fprintf(stderr, " | a step read %.0f%% of the rows, %s not, %.0f%% as before", 100 * e->ledger.read,
            BASE_THOUSANDS(e->ledger.unread), 100 * e->ledger.kept);
    if (e->ledger.deferred)
        fprintf(stderr, " | deferred %s, %.0f%% of the prefill not computed",
            BASE_THOUSANDS(e->ledger.deferred), 100 * e->ledger.spared);
    if (e->ledger.computed)
        fprintf(stderr, " | %s of those left below were computed", BASE_THOUSANDS(e->ledger.computed));
    if (e->ledger.why) fprintf(stderr, " | why: %s", e->ledger.why);
    fputc('\n', stderr);
}

static void tell(const char *prefix, const char *text)
{
    size_t n = text ? strlen(text) : 0;
    while (n && text[n - 1] == '\n') n--;
    fputs(prefix, stderr);
    if (n) print_clean(stderr, text, n);
    fputc('\n', stderr);
}

static void print_places(const agent_place_list *places)
{
    for (size_t i = 0; i < places->n; i++) tell("place: ", places->rows[i].text);
}

static void print_context(const agent_excerpt_list *items)
{
    for (size_t i = 0; i < items->n; i++) {
        const agent_excerpt_row *r = &items->rows[i];
        base_buf line = {0};
        base_buf_printf(
            &line, "context: %s:%lld-%lld %s", r->path, (long long)r->line, (long long)r->end, r->name);
        tell("", line.data);
        base_buf_free(&line);
    }
}

/* What is done, or would be and nobody can be asked: every byte of it. */
static void print_call(const char *headline)
{
    base_buf shown = {0};
    base_show(&shown, headline, headline ? strlen(headline) : 0, BASE_SHOW_UTF8);
    fprintf(stderr, "> %s\n", shown.data ? shown.data : "");
    base_buf_free(&shown);
}

static void print_json(const agent_event *e)
{
    base_buf line = {0};
    agent_event_write(e, &line);
    base_buf_putc(&line, '\n');
    fwrite(line.data, 1, line.len, stdout);
    fflush(stdout);
    base_buf_free(&line);
}

/* Not before it is known to fit; a thought is no answer. */
static void on_token(sink *s, const agent_event *e)
{
    base_buf text = {0};
    if (s->is_held || s->is_draft || e->token.channel) return;
    agent_stream_token(&s->stream, e->token.text, e->token.origin != NULL, &text);
    print_answer(&text);
}

static void on_answer(sink *s, const agent_event *e)
{
    base_buf text = {0};
    if (s->is_draft) return;
    if (s->is_held) {
        if (e->answer.value) puts(e->answer.value);
        fflush(stdout);
        return;
    }
    agent_stream_answer(&s->stream, e->answer.text, &text);
    print_answer(&text);
    end_line(s);
}

static void on_call(sink *s, const agent_event *e)
{
    end_line(s);
    agent_stream_forget(&s->stream);
    if (!s->is_draft) {
        print_call(e->tool_call.headline);
        return;
    }
    fputs(e->tool_call.payload, stdout);
    fflush(stdout);
}

static void on_result(const agent_event *e)
{
    if (e->tool_result.diff) tell("", e->tool_result.diff);
    if (e->tool_result.summary) tell("  ", e->tool_result.summary);
    if (strcmp(e->tool_result.status, "ok") && !e->tool_result.summary) tell("  ", e->tool_result.text);
}

/* A new message: what was held back of the last answer was no answer. */
static void on_append(sink *s, const agent_event *e)
{
    base_buf text = {0};
    agent_stream_forget(&s->stream);
    if (!s->is_held && agent_event_opening(e))
        agent_stream_token(&s->stream, agent_event_opening(e), false, &text);
    print_answer(&text);
}

static void on_event(void *user, const agent_event *e)
{
    sink *s = user;
    static const agent_event_type quiet[] = {
        AGENT_EVENT_token, AGENT_EVENT_answer, AGENT_EVENT_plan, AGENT_EVENT_mask, AGENT_EVENT_prefill};
    if (s->json) {
        print_json(e);
        return;
    }
    bool is_quiet = false;
    for (size_t i = 0; i < sizeof quiet / sizeof *quiet; i++) is_quiet = is_quiet || quiet[i] == e->type;
    if (!is_quiet) end_line(s); /* what goes to stderr begins a line there too */
    switch (e->type) {
    case AGENT_EVENT_token: on_token(s, e); break;
    case AGENT_EVENT_user: s->is_draft = !strncmp(e->user.text, "/commit", strlen("/commit")); break;
    case AGENT_EVENT_answer: on_answer(s, e); break;
    case AGENT_EVENT_tool_call: on_call(s, e); break;
    case AGENT_EVENT_tool_result: on_result(e); break;
    case AGENT_EVENT_context: print_context(&e->context.items); break;
    case AGENT_EVENT_places: print_places(&e->places.items); break;
    case AGENT_EVENT_append: on_append(s, e); break;
    case AGENT_EVENT_correction: tell("corrected: ", e->correction.what); break;
    case AGENT_EVENT_outcome: tell("", e->outcome.text); break;
    case AGENT_EVENT_notice: tell("note: ", e->notice.text); break;
    case AGENT_EVENT_error: tell("kvist: ", e->error.text); break;
    case AGENT_EVENT_request: print_request(e); break;
    case AGENT_EVENT_ledger: print_ledger(e); break;
    default: break;
    }
}

/* --- requests ------------------------------------------------------------------------------------------- */

static const char *const outcome_words[] = {[AGENT_OUTCOME_DONE] = "done",
    [AGENT_OUTCOME_FAILED] = "failed",
    [AGENT_OUTCOME_WRONG] = "wrong",
    [AGENT_OUTCOME_LIMIT] = "limit",
    [AGENT_OUTCOME_DENIED] = "denied",
    [AGENT_OUTCOME_INTERRUPTED] = "interrupted"};

static agent_outcome submit(agent *a, const char *text)
{
    base_err told = {0}; /* as an event already */
    const bool failed = agent_submit(a, text, &told) != 0, denied = agent_was_denied(a);
    if (denied)
        fprintf(stderr,
            "kvist: something needed an approval and nobody could be asked: --mode edits "
            "lets it write files, --mode all also run commands; what is obeyed unasked "
            "(AGENTS.md, .kvist/, .envrc, .vscode, workflows, git's hooks) is asked for in every mode\n");
    return atomic_load(&was_interrupted)                         ? AGENT_OUTCOME_INTERRUPTED
           : denied                                              ? AGENT_OUTCOME_DENIED
           : agent_reached_limit(a) || told.code == BASE_E_LIMIT ? AGENT_OUTCOME_LIMIT
           : told.code == BASE_E_USAGE                           ? AGENT_OUTCOME_WRONG
           : failed                                              ? AGENT_OUTCOME_FAILED
                                                                 : AGENT_OUTCOME_DONE;
}

/* A sentence about a line: beside the answers as it is beside the events. */
static void tell_line(sink *s, size_t number, const char *sentence)
{
    base_buf text = {0};
    base_buf_printf(&text, "line %zu of the input: %s", number, sentence);
    on_event(s, &(agent_event){.type = AGENT_EVENT_error, .error = {.text = text.data}});
    base_buf_free(&text);
}

static agent_outcome submit_line(agent *a, sink *s, size_t number, const base_buf *line, const base_err *why)
{
    agent_input in = {0};
    base_err err = why ? *why : (base_err){0};
    agent_outcome outcome = AGENT_OUTCOME_WRONG;
    if (!err.code) agent_input_parse(line->data, line->len, &in, &err);
    const agent_event begins = {.type = AGENT_EVENT_input, .input = {(int64_t)number, in.id}};
    if (s->json) on_event(s, &begins);
    if (err.code)
        tell_line(s, number, err.msg);
    else
        outcome = submit(a, in.text);
    const agent_event ends = {
        .type = AGENT_EVENT_input_end, .input_end = {(int64_t)number, in.id, outcome_words[outcome]}};
    if (s->json) on_event(s, &ends);
    agent_input_free(&in);
    return outcome;
}

/* Each line's answer is out before the next line is waited for, so a program may hold the other end. */
static agent_outcome submit_lines(
    agent *a, sink *s, agent_lines *lines, base_buf *line, base_err err, uint32_t most)
{
    agent_outcome worst = AGENT_OUTCOME_DONE;
    for (uint32_t n = 0;; n++) {
        if (most && n == most) {
            tell_line(s, lines->number, "it and what follows was not asked: --max-turns is reached");
            return worst > AGENT_OUTCOME_LIMIT ? worst : AGENT_OUTCOME_LIMIT;
        }
        if (n && !s->json && !s->is_held) putchar('\n'); /* answers apart */
        const agent_outcome outcome = submit_line(a, s, lines->number, line, &err);
        if (outcome > worst) worst = outcome;
        if (outcome == AGENT_OUTCOME_INTERRUPTED) return worst;
        err = (base_err){0};
        while (!agent_lines_take(lines, line, &err)) {
            if (atomic_load(&was_interrupted)) return AGENT_OUTCOME_INTERRUPTED;
            if (lines->has_ended) return worst; /* else it was another signal */
        }
    }
}

int agent_headless_run(
    const agent_session_options *options, const agent_run *run, agent_outcome *ret, base_err *err)
{
    sink s = {.json = run->json, .is_held = options->schema != NULL};
    agent_host host = {.user = &s, .event = on_event};
    agent_session *session = NULL;
    agent_lines lines = {.fd = STDIN_FILENO, .stop = &was_interrupted};
    base_buf line = {0};
    base_err wrong = {0}; /* with the first line; the session is open when that is told */
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART | SA_RESETHAND}, before;
    atomic_store(&cancel, false);
    atomic_store(&was_interrupted, false);
    int rc = run->text || agent_lines_take(&lines, &line, &wrong)
                 ? BASE_OK
                 : base_fail(err, BASE_E_USAGE, "there is no request on the standard input");
    sigaction(SIGINT, &action, &before); /* a second Ctrl+C ends the program */
    if (!rc) rc = agent_session_open(&session, options, &host, &cancel, err);
    if (!rc) {
        agent *a = agent_session_agent(session);
        *ret = run->text ? submit(a, run->text) : submit_lines(a, &s, &lines, &line, wrong, run->max_turns);
        if (!run->json) {
            end_line(&s);
            fprintf(stderr, "session %s\n", agent_session_id(a));
        }
    }
    agent_session_close(session);
    sigaction(SIGINT, &before, NULL);
    agent_stream_free(&s.stream);
    agent_lines_free(&lines);
    base_buf_free(&line);
    return rc;
}
