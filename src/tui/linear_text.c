/*
 * What each event says in append-only mode (contract: linear.h): a row of the table a function.
 */
#include "tui/linear_text.h"

#include <string.h>

#include "base/show.h"
#include "base/utf8.h"

static void add_clean(base_buf *out, const char *s)
{
    if (s) base_utf8_sanitise(out, s, strlen(s), true);
}

static void label(tui_linear_text *t, const char *name, base_buf *out)
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

void tui_linear_line(tui_linear_text *t, const char *name, const char *text, base_buf *out)
{
    label(t, name, out);
    add_clean(out, text);
    base_buf_putc(out, '\n');
}

/* What a person is asked about: every byte of it visible; a line of it is a line here, and begins so. */
static void put_question(const tui_linear_text *t, const char *s, bool is_code, base_buf *out)
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

void tui_linear_answers(const tui_linear_text *t, base_buf *out)
{
    base_buf_puts(
        out, t->asks_to_run
                 ? "y once, a this exact one in this session, A in this tree for good, n REASON, e COMMAND: "
             : t->asks_to_rewind ? "y files too, n conversation alone, Ctrl+C neither: "
                                 : "y once, n REASON: ");
}

/* ---- events, in the order of the table ---- */

static void on_session(const agent_event *e, tui_linear_text *t, base_buf *out)
{
    t->is_elsewhere = e->session.row_bytes <= 0;
    label(t, "session: ", out);
    add_clean(out, e->session.id);
    base_buf_puts(out, ", model ");
    add_clean(out, e->session.model);
    base_buf_puts(out, ", mode ");
    add_clean(out, e->session.mode);
    base_buf_putc(out, '\n');
}

static void on_token(const agent_event *e, tui_linear_text *t, base_buf *out)
{
    if (e->token.channel) return; /* a thought is no answer */
    base_buf text = {0};
    agent_stream_token(&t->stream, e->token.text, e->token.origin != NULL, &text);
    put_answer(t, &text, out);
}

static void on_answer(const agent_event *e, tui_linear_text *t, base_buf *out)
{
    base_buf text = {0};
    agent_stream_answer(&t->stream, e->answer.text, &text);
    put_answer(t, &text, out);
    label(t, "", out);
}

/* A new message: what was held back of the last answer was no answer. */
static void on_append(const agent_event *e, tui_linear_text *t, base_buf *out)
{
    base_buf text = {0};
    agent_stream_forget(&t->stream);
    if (agent_event_opening(e)) agent_stream_token(&t->stream, agent_event_opening(e), false, &text);
    put_answer(t, &text, out);
}

static void on_tool_call(const agent_event *e, tui_linear_text *t, base_buf *out)
{
    agent_stream_forget(&t->stream);
    label(t, "tool: ", out);
    put_question(t, e->tool_call.headline ? e->tool_call.headline : e->tool_call.name, false, out);
    base_buf_putc(out, '\n');
}

static void on_approval_request(const agent_event *e, tui_linear_text *t, base_buf *out)
{
    t->asks_to_run = e->approval_request.power && !strcmp(e->approval_request.power, "runs");
    t->asks_to_rewind = e->approval_request.name && !strcmp(e->approval_request.name, "rewind");
    label(t, "question: ", out);
    put_question(t, e->approval_request.headline, false, out);
    base_buf_putc(out, '\n');
    put_question(t, e->approval_request.detail, !t->asks_to_run, out);
    if (e->approval_request.detail) base_buf_putc(out, '\n');
    base_buf_puts(out, "allow? ");
    tui_linear_answers(t, out);
}

static void on_approval(const agent_event *e, tui_linear_text *t, base_buf *out)
{
    tui_linear_line(t, "decided: ", e->approval.decision, out);
}

static void on_tool_result(const agent_event *e, tui_linear_text *t, base_buf *out)
{
    label(t, "result: ", out);
    add_clean(out, e->tool_result.status);
    base_buf_puts(out, e->tool_result.summary ? ", " : "");
    add_clean(out, e->tool_result.summary);
    base_buf_putc(out, '\n');
    const char *text = e->tool_result.text;
    const bool is_command = e->tool_result.name && !strcmp(e->tool_result.name, "shell");
    const bool is_unsaid = !e->tool_result.summary && e->tool_result.status &&
                           strcmp(e->tool_result.status, "ok") != 0; /* why it was not done */
    if (text && (is_command || is_unsaid)) {
        add_clean(out, text); /* nothing can be unfolded here */
        if (*text && text[strlen(text) - 1] != '\n') base_buf_putc(out, '\n');
    }
    if (e->tool_result.diff) {
        put_question(t, e->tool_result.diff, true, out);
        base_buf_putc(out, '\n');
    }
}

static void on_plan(const agent_event *e, tui_linear_text *t, base_buf *out)
{
    if (e->plan.evicted <= 0 && e->plan.promoted <= 0 && e->plan.deferred <= 0 && e->plan.again <= 0) return;
    const char *cause = e->plan.cause ? e->plan.cause : "";
    label(t, "cache: ", out);
    base_buf_printf(out, "%lld %s evicted, %lld promoted, %s", (long long)e->plan.evicted,
        t->is_elsewhere ? "tokens" : "rows", (long long)e->plan.promoted, cause);
    if (e->plan.deferred > 0)
        base_buf_printf(out, ", %lld tokens left below the pivot", (long long)e->plan.deferred);
    if (e->plan.again > 0)
        base_buf_printf(out, ", %lld tokens of the %s computed again", (long long)e->plan.again,
            !strcmp(cause, "answer") ? "answer" : "message");
    base_buf_putc(out, '\n');
}

static void on_visits(const agent_event *e, tui_linear_text *t, base_buf *out)
{
    label(t, "cache: ", out);
    base_buf_printf(
        out, "%lld tokens read %.0f evicted rows each\n", (long long)e->visits.tokens, e->visits.rows);
}

static void on_request(const agent_event *e, tui_linear_text *t, base_buf *out)
{
    label(t, "request: ", out);
    agent_request_put(e, out);
    base_buf_putc(out, '\n');
}

static void on_ledger(const agent_event *e, tui_linear_text *t, base_buf *out)
{
    label(t, "ledger: ", out);
    base_buf_printf(out,
        "turn %lld, new %lld, reused %lld, evicted %lld, promoted "
        "%lld, active %lld of %lld, %.1f tokens a second\n",
        (long long)e->ledger.turn, (long long)e->ledger.new, (long long)e->ledger.reused,
        (long long)e->ledger.evicted, (long long)e->ledger.promoted, (long long)e->ledger.active,
        (long long)agent_limit_now(e->ledger.budget, e->ledger.until, e->ledger.host), e->ledger.decode_tps);
}

static void on_places(const agent_event *e, tui_linear_text *t, base_buf *out)
{
    const agent_place_list *places = &e->places.items;
    for (size_t i = 0; i < places->n; i++)
        tui_linear_line(
            t, "place: ", places->rows[i].text ? places->rows[i].text : places->rows[i].path, out);
}

static void on_rewind(const agent_event *e, tui_linear_text *t, base_buf *out)
{
    label(t, "rewound: ", out);
    base_buf_printf(out, "to before turn %lld%s", (long long)e->rewind.turn, e->rewind.summary ? "; " : "");
    add_clean(out, e->rewind.summary);
    base_buf_putc(out, '\n');
}

static void on_undo(const agent_event *e, tui_linear_text *t, base_buf *out)
{
    tui_linear_line(t, "undo: ", e->undo.summary, out);
}

static void on_correction(const agent_event *e, tui_linear_text *t, base_buf *out)
{
    tui_linear_line(t, "corrected: ", e->correction.what, out);
}

static void on_outcome(const agent_event *e, tui_linear_text *t, base_buf *out)
{
    tui_linear_line(t, "outcome: ", e->outcome.text, out);
}

static void on_notice(const agent_event *e, tui_linear_text *t, base_buf *out)
{
    tui_linear_line(t, "note: ", e->notice.text, out);
}

static void on_error(const agent_event *e, tui_linear_text *t, base_buf *out)
{
    tui_linear_line(t, "error: ", e->error.text, out);
}

/* What has no row says nothing here. */
static void (*const says[AGENT_N_EVENTS])(const agent_event *e, tui_linear_text *t, base_buf *out) = {
    [AGENT_EVENT_session] = on_session,
    [AGENT_EVENT_token] = on_token,
    [AGENT_EVENT_answer] = on_answer,
    [AGENT_EVENT_append] = on_append,
    [AGENT_EVENT_tool_call] = on_tool_call,
    [AGENT_EVENT_approval_request] = on_approval_request,
    [AGENT_EVENT_approval] = on_approval,
    [AGENT_EVENT_tool_result] = on_tool_result,
    [AGENT_EVENT_plan] = on_plan,
    [AGENT_EVENT_visits] = on_visits,
    [AGENT_EVENT_request] = on_request,
    [AGENT_EVENT_ledger] = on_ledger,
    [AGENT_EVENT_places] = on_places,
    [AGENT_EVENT_rewind] = on_rewind,
    [AGENT_EVENT_undo] = on_undo,
    [AGENT_EVENT_correction] = on_correction,
    [AGENT_EVENT_outcome] = on_outcome,
    [AGENT_EVENT_notice] = on_notice,
    [AGENT_EVENT_error] = on_error,
};

void tui_linear_event(const agent_event *e, tui_linear_text *t, base_buf *out)
{
    if (says[e->type]) says[e->type](e, t, out);
}
