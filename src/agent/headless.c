/*
 * One request without a screen (contract: headless.h). Two sinks for the same events: lines of JSON, or words
 * for a person.
 */
#include "agent/headless.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/stream.h"
#include "base/show.h"
#include "base/utf8.h"

typedef struct sink {
    bool json;
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
    fprintf(stderr,
        "turn %lld: new %lld reused %lld generated %lld evicted %lld promoted %lld protected %lld",
        (long long)e->ledger.turn, (long long)e->ledger.new, (long long)e->ledger.reused,
        (long long)e->ledger.generated, (long long)e->ledger.evicted, (long long)e->ledger.promoted,
        (long long)e->ledger.protected);
    if (e->ledger.budget)
        fprintf(stderr, " | rows %lld/%lld", (long long)e->ledger.active,
            (long long)agent_limit_now(e->ledger.budget, e->ledger.until, e->ledger.host));
    if (e->ledger.ctx)
        fprintf(stderr, " | %lld/%lld tokens", (long long)e->ledger.n, (long long)e->ledger.ctx);
    else /* a session without an end */
        fprintf(stderr, " | %lld tokens", (long long)e->ledger.n);
    fprintf(stderr, " | prefill %.1f s, %.1f tokens/s", e->ledger.prefill_s, e->ledger.decode_tps);
    if (e->ledger.drafted)
        fprintf(stderr, ", lookup %lld/%lld", (long long)e->ledger.accepted, (long long)e->ledger.drafted);
    if (e->ledger.ceiling > 0)
        fprintf(stderr, " | structure %.2f (chance %.2f, at most %.2f)", e->ledger.structure,
            e->ledger.chance, e->ledger.ceiling);
    if (e->ledger.read > 0)
        fprintf(stderr, " | a step read %.0f%% of the rows, %lld not, %.0f%% as before", 100 * e->ledger.read,
            (long long)e->ledger.unread, 100 * e->ledger.kept);
    if (e->ledger.deferred)
        fprintf(stderr, " | deferred %lld, %.0f%% of the prefill not computed", (long long)e->ledger.deferred,
            100 * e->ledger.spared);
    if (e->ledger.computed)
        fprintf(stderr, " | %lld of those left below were computed", (long long)e->ledger.computed);
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

static void on_event(void *user, const agent_event *e)
{
    sink *s = user;
    static const agent_event_type quiet[] = {
        AGENT_EVENT_token, AGENT_EVENT_answer, AGENT_EVENT_plan, AGENT_EVENT_mask, AGENT_EVENT_prefill};
    if (s->json) {
        base_buf line = {0};
        agent_event_write(e, &line);
        base_buf_putc(&line, '\n');
        fwrite(line.data, 1, line.len, stdout);
        fflush(stdout);
        base_buf_free(&line);
        return;
    }
    base_buf text = {0};
    bool is_quiet = false;
    for (size_t i = 0; i < sizeof quiet / sizeof *quiet; i++) is_quiet = is_quiet || quiet[i] == e->type;
    if (!is_quiet) end_line(s); /* what goes to stderr begins a line there too */
    switch (e->type) {
    case AGENT_EVENT_token:
        agent_stream_token(&s->stream, e->token.text, &text);
        print_answer(&text);
        break;
    case AGENT_EVENT_answer:
        agent_stream_answer(&s->stream, e->answer.text, &text);
        print_answer(&text);
        end_line(s);
        break;
    case AGENT_EVENT_tool_call:
        end_line(s);
        agent_stream_forget(&s->stream);
        print_call(e->tool_call.headline);
        break;
    case AGENT_EVENT_tool_result:
        if (e->tool_result.diff) tell("", e->tool_result.diff);
        if (e->tool_result.summary) tell("  ", e->tool_result.summary);
        if (strcmp(e->tool_result.status, "ok") && !e->tool_result.summary) tell("  ", e->tool_result.text);
        break;
    case AGENT_EVENT_context: print_context(&e->context.items); break;
    case AGENT_EVENT_places: print_places(&e->places.items); break;
    case AGENT_EVENT_append: /* a new message: what was held back of the last answer was no answer */
        agent_stream_forget(&s->stream);
        break;
    case AGENT_EVENT_correction: tell("corrected: ", e->correction.what); break;
    case AGENT_EVENT_outcome: tell("", e->outcome.text); break;
    case AGENT_EVENT_notice: tell("note: ", e->notice.text); break;
    case AGENT_EVENT_error: tell("kvist: ", e->error.text); break;
    case AGENT_EVENT_request: print_request(e); break;
    case AGENT_EVENT_ledger: print_ledger(e); break;
    default: break;
    }
}

int agent_headless_run(
    const agent_session_options *options, const char *text, bool json, agent_outcome *ret, base_err *err)
{
    sink s = {.json = json};
    agent_host host = {.user = &s, .event = on_event};
    agent_session *session = NULL;
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART | SA_RESETHAND}, before;
    atomic_store(&cancel, false);
    atomic_store(&was_interrupted, false);
    sigaction(SIGINT, &action, &before); /* a second Ctrl+C ends the program */
    int rc = agent_session_open(&session, options, &host, &cancel, err);
    if (!rc) {
        agent *a = agent_session_agent(session);
        base_err told = {0}; /* as an event already */
        bool failed = agent_submit(a, text, &told) != 0, denied = agent_was_denied(a);
        if (denied)
            fprintf(stderr, "kvist: something needed an approval and nobody could be asked: --mode edits "
                            "lets it write files, --mode all also run commands; what the next session obeys "
                            "(AGENTS.md, .kvist/, .agents/) is asked for in every mode\n");
        *ret = atomic_load(&was_interrupted)                         ? AGENT_OUTCOME_INTERRUPTED
               : denied                                              ? AGENT_OUTCOME_DENIED
               : agent_reached_limit(a) || told.code == BASE_E_LIMIT ? AGENT_OUTCOME_LIMIT
               : failed                                              ? AGENT_OUTCOME_FAILED
                                                                     : AGENT_OUTCOME_DONE;
        if (!json) {
            end_line(&s);
            fprintf(stderr, "session %s\n", agent_session_id(a));
        }
    }
    agent_session_close(session);
    sigaction(SIGINT, &before, NULL);
    agent_stream_free(&s.stream);
    return rc;
}
