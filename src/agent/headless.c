/*
 * One request without a screen (contract: headless.h). Two sinks for the same events: lines of JSON, or words for a person. Of
 * the streamed text nothing is printed that may turn out to be a tool call: a line that could begin one is held back.
 */
#include "agent/headless.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"

typedef struct sink {
    bool json;
    base_buf held;  /* streamed text that is not printed yet */
    bool in_call;   /* what streams is a call: it is told by its event */
    bool printed;   /* something of this answer is on stdout */
    bool line_open; /* stdout stands inside a line */
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

static void print_answer(sink *s, const char *text, size_t n)
{
    if (!n) return;
    print_clean(stdout, text, n);
    fflush(stdout);
    s->printed = true;
    s->line_open = text[n - 1] != '\n';
}

static void end_line(sink *s)
{
    if (s->line_open) putchar('\n');
    fflush(stdout);
    s->line_open = false;
}

/* Could this line be (or become) the beginning of a call or of its payload? */
static bool may_begin_call(const char *line, size_t n)
{
    static const char *const marks[] = {"<tools>", "<tool_call>", "{", "```"};
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++) {
        size_t len = strlen(marks[i]);
        if (!memcmp(line, marks[i], n < len ? n : len)) return true;
    }
    return false;
}

static void on_token(sink *s, const char *text)
{
    base_buf_puts(&s->held, text ? text : "");
    while (s->held.len && !s->in_call) {
        char *newline = memchr(s->held.data, '\n', s->held.len);
        size_t n = newline ? (size_t)(newline - s->held.data) + 1 : s->held.len;
        if (!s->line_open && may_begin_call(s->held.data, n)) {
            s->in_call = newline || n > 7;
            if (s->held.data[0] == '`' && newline) s->in_call = true;
            return;
        }
        print_answer(s, s->held.data, n);
        memmove(s->held.data, s->held.data + n, s->held.len - n);
        s->held.len -= n;
    }
}

static void forget_held(sink *s)
{
    base_buf_clear(&s->held);
    s->in_call = false;
}

static void print_ledger(const agent_event *e)
{
    fprintf(stderr,
        "turn %lld: new %lld reused %lld generated %lld evicted %lld promoted %lld protected %lld",
        (long long)e->ledger.turn, (long long)e->ledger.new, (long long)e->ledger.reused,
        (long long)e->ledger.generated, (long long)e->ledger.evicted, (long long)e->ledger.promoted,
        (long long)e->ledger.protected);
    if (e->ledger.budget)
        fprintf(stderr, " | rows %lld/%lld", (long long)e->ledger.active, (long long)e->ledger.budget);
    fprintf(stderr, " | %lld/%lld tokens | prefill %.1f s, %.1f tokens/s", (long long)e->ledger.n,
        (long long)e->ledger.ctx, e->ledger.prefill_s, e->ledger.decode_tps);
    if (e->ledger.why) fprintf(stderr, " | why: %s", e->ledger.why);
    fputc('\n', stderr);
}

static void print_item_texts(const char *json, const char *prefix)
{
    base_json_doc *doc = NULL;
    if (!json || base_json_parse(json, strlen(json), &doc, NULL)) return;
    for (const base_json *v = base_json_root(doc)->first; v; v = v->next) {
        const char *text = base_json_str(v, "text", "");
        fputs(prefix, stderr);
        print_clean(stderr, text, strlen(text));
        fputc('\n', stderr);
    }
    base_json_free(doc);
}

static void print_context(const char *json)
{
    base_json_doc *doc = NULL;
    if (!json || base_json_parse(json, strlen(json), &doc, NULL)) return;
    for (const base_json *v = base_json_root(doc)->first; v; v = v->next) {
        base_buf line = {0};
        base_buf_printf(&line, "context: %s:%lld-%lld %s", base_json_str(v, "path", ""),
            (long long)base_json_int(v, "line", 0), (long long)base_json_int(v, "end", 0),
            base_json_str(v, "name", ""));
        print_clean(stderr, line.data, line.len);
        fputc('\n', stderr);
        base_buf_free(&line);
    }
    base_json_free(doc);
}

static void tell(const char *prefix, const char *text)
{
    fputs(prefix, stderr);
    if (text) print_clean(stderr, text, strlen(text));
    fputc('\n', stderr);
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
    bool is_quiet = false;
    for (size_t i = 0; i < sizeof quiet / sizeof *quiet; i++) is_quiet = is_quiet || quiet[i] == e->type;
    if (!is_quiet) end_line(s); /* what goes to stderr begins a line there too */
    switch (e->type) {
    case AGENT_EVENT_token: on_token(s, e->token.text); break;
    case AGENT_EVENT_answer:
        if (!s->printed || s->held.len) {
            if (!s->printed) {
                print_answer(s, e->answer.text, strlen(e->answer.text));
            } else {
                print_answer(s, s->held.data, s->held.len);
            }
        }
        end_line(s);
        forget_held(s);
        s->printed = false;
        break;
    case AGENT_EVENT_tool_call:
        end_line(s);
        forget_held(s);
        s->printed = false;
        tell("> ", e->tool_call.headline);
        break;
    case AGENT_EVENT_tool_result:
        if (e->tool_result.diff) tell("", e->tool_result.diff);
        if (e->tool_result.summary) tell("  ", e->tool_result.summary);
        if (strcmp(e->tool_result.status, "ok") && !e->tool_result.summary) tell("  ", e->tool_result.text);
        break;
    case AGENT_EVENT_context: print_context(e->context.items); break;
    case AGENT_EVENT_places: print_item_texts(e->places.items, "place: "); break;
    case AGENT_EVENT_append: /* a new message: what was held back of the last answer was no answer */
        forget_held(s);
        s->printed = false;
        break;
    case AGENT_EVENT_notice: tell("note: ", e->notice.text); break;
    case AGENT_EVENT_error: tell("kvist: ", e->error.text); break;
    case AGENT_EVENT_ledger: print_ledger(e); break;
    default: break;
    }
}

int agent_headless_run(
    const agent_session_options *options, const char *text, bool json, int *ret_status, base_err *err)
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
                            "lets it write files, "
                            "--mode all also run commands\n");
        *ret_status = failed || denied || atomic_load(&was_interrupted);
        if (!json) {
            end_line(&s);
            fprintf(stderr, "session %s\n", agent_session_id(a));
        }
    }
    agent_session_close(session);
    sigaction(SIGINT, &before, NULL);
    base_buf_free(&s.held);
    return rc;
}
