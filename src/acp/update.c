/* A function an event (contract: update.h). */
#include "acp/update.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "acp/diff.h"
#include "acp/rpc.h"
#include "base/fs.h"
#include "base/mem.h"
#include "base/show.h"
#include "base/utf8.h"

enum { MOST_SHOWN = 16 << 20 }; /* bytes of a file whose change is shown as two texts */

void acp_send_update(const acp_teller *t, const char *kind, const char *fields)
{
    base_buf params = {0};
    base_buf_putc(&params, '{');
    base_json_put_member_str(&params, "sessionId", t->session);
    base_json_put_member(&params, "update", "{");
    base_json_put_member_str(&params, "sessionUpdate", kind);
    if (*fields) base_buf_printf(&params, ",%s", fields);
    base_buf_puts(&params, "}}");
    acp_send_call("session/update", params.data, 0);
    base_buf_free(&params);
}

/* ---- text ---- */

static void put_text_block(base_buf *out, const char *text)
{
    base_buf_puts(out, "{\"type\":\"text\"");
    base_json_put_member_str(out, "text", text);
    base_buf_putc(out, '}');
}

static void tell_chunk(const acp_teller *t, const char *kind, const char *text)
{
    base_buf fields = {0};
    if (!text || !*text) return;
    base_buf_puts(&fields, "\"content\":");
    put_text_block(&fields, text);
    acp_send_update(t, kind, fields.data);
    base_buf_free(&fields);
}

static void tell_streamed(const acp_teller *t, base_buf *text)
{
    if (text->len) tell_chunk(t, "agent_message_chunk", text->data);
    base_buf_free(text);
}

static void tell_line(acp_teller *t, const char *kind, const char *prefix, const char *text)
{
    base_buf line = {0};
    base_buf_printf(&line, "%s%s%s\n", t->stream.line_open ? "\n" : "", prefix, text ? text : "");
    t->stream.line_open = false;
    tell_chunk(t, kind, line.data);
    base_buf_free(&line);
}

static void tell_places(acp_teller *t, const agent_place_list *places)
{
    base_buf text = {0};
    for (size_t i = 0; i < places->n; i++)
        base_buf_printf(&text, "\n- %s", places->rows[i].text ? places->rows[i].text : "");
    if (text.len) tell_line(t, "agent_message_chunk", "\nPlaces, checked:", text.data);
    base_buf_free(&text);
}

/* ---- places of files ---- */

static char *absolute(const acp_teller *t, const char *path)
{
    base_buf out = {0};
    base_buf_printf(&out, "%s%s%s", path[0] == '/' ? "" : t->root, path[0] == '/' ? "" : "/", path);
    return out.data;
}

static void put_location(const acp_teller *t, base_buf *out, const char *path, int64_t line)
{
    char *whole = absolute(t, path);
    base_buf_puts(out, out->data[out->len - 1] == '[' ? "{" : ",{");
    base_json_put_member_str(out, "path", whole);
    if (line > 0) base_buf_printf(out, ",\"line\":%lld", (long long)line);
    base_buf_putc(out, '}');
    free(whole);
}

/* ---- what a call changes ---- */

typedef struct content {
    const acp_teller *teller;
    base_buf *out;
    bool is_done, is_whole; /* the files have the new text already; every part could be told as two texts */
} content;

static void put_file(void *user, const char *path, const char *diff, size_t n, bool is_new, bool is_gone)
{
    content *c = user;
    base_buf text = {0}, other = {0};
    char *whole = absolute(c->teller, path);
    const bool has_text = c->is_done ? !is_gone : !is_new;
    bool fits = !has_text || !base_fs_read(whole, MOST_SHOWN, &text, NULL);
    fits = fits && acp_diff_apply(diff, n, text.data ? text.data : "", text.len, !c->is_done, &other);
    if (fits) {
        const base_buf *before = c->is_done ? &other : &text, *after = c->is_done ? &text : &other;
        base_buf_puts(c->out, c->out->data[c->out->len - 1] == '[' ? "{" : ",{");
        base_json_put_member_str(c->out, "type", "diff");
        base_json_put_member_str(c->out, "path", whole);
        if (!is_new) base_json_put_member_str(c->out, "oldText", before->data ? before->data : "");
        base_json_put_member_str(c->out, "newText", after->data ? after->data : "");
        base_buf_putc(c->out, '}');
    }
    c->is_whole = c->is_whole && fits;
    free(whole);
    base_buf_free(&text);
    base_buf_free(&other);
}

static void put_content_text(base_buf *out, const char *text)
{
    base_buf_puts(out, out->data[out->len - 1] == '[' ? "{" : ",{");
    base_buf_puts(out, "\"type\":\"content\",\"content\":");
    put_text_block(out, text);
    base_buf_putc(out, '}');
}

void acp_put_code(base_buf *out, const char *kind, const char *text)
{
    size_t most = 2, run = 0;
    for (const char *p = text; *p; p++) {
        run = *p == '`' ? run + 1 : 0;
        if (run > most) most = run;
    }
    const size_t n = strlen(text);
    for (size_t i = 0; i <= most; i++) base_buf_putc(out, '`');
    base_buf_printf(out, "%s\n%s%s", kind, text, n && text[n - 1] == '\n' ? "" : "\n");
    for (size_t i = 0; i <= most; i++) base_buf_putc(out, '`');
}

/*
 * An editor reads what it is sent as Markdown, where a comment of HTML is not shown, a backslash vanishes, and a picture
 * is fetched.
 */
static void put_code(base_buf *out, const char *kind, const char *text)
{
    base_buf block = {0};
    acp_put_code(&block, kind, text);
    put_content_text(out, block.data);
    base_buf_free(&block);
}

/* Is there anything that leaves no mark of its own where the text is shown? */
static bool hides_something(const char *text)
{
    for (size_t i = 0, n = strlen(text); i < n;) {
        uint32_t c;
        i += base_utf8_decode(text + i, n - i, &c);
        if (c != '\n' && c != '\t' && base_is_hidden(c)) return true;
    }
    return false;
}

/* A diff once more, with a mark for each thing that is not seen: an editor shows its text as it does. */
static void put_shown(base_buf *out, const char *diff)
{
    base_buf lines = {0};
    for (const char *line = diff; *line;) {
        const size_t n = strcspn(line, "\n");
        base_show(&lines, line, n, BASE_SHOW_UTF8);
        base_buf_putc(&lines, '\n');
        line += n + (line[n] == '\n');
    }
    put_code(out, "diff", lines.data ? lines.data : "");
    base_buf_free(&lines);
}

/* A diff as the texts it lies between; as it is where that cannot be. */
static void put_diff(const acp_teller *t, base_buf *out, const char *diff, bool is_done)
{
    content c = {t, out, is_done, true};
    const size_t before = out->len;
    acp_diff_each(diff, put_file, &c);
    if (c.is_whole && out->len > before)
        return; /* text without a file in it is no diff: a commit's message */
    put_code(out, "diff", diff);
}

/* ---- tool calls ---- */

/* The protocol's kinds for our tools; any other is "other". */
static const struct {
    const char *tool, *kind;
} kinds[] = {{"list", "search"}, {"search", "search"}, {"recall", "search"}, {"read", "read"},
    {"git", "read"}, {"write", "edit"}, {"rewrite", "edit"}, {"edit", "edit"}, {"refactor", "edit"},
    {"shell", "execute"}};

static const char *kind_of(const char *tool)
{
    for (size_t i = 0; tool && i < sizeof kinds / sizeof *kinds; i++)
        if (!strcmp(tool, kinds[i].tool)) return kinds[i].kind;
    return "other";
}

static void tell_call(acp_teller *t, const agent_event *e)
{
    snprintf(t->call, sizeof t->call, "call-%lu", ++t->n_calls);
    t->in_call = true;
    base_buf named = {0}, line = {0};
    const char *title = e->tool_call.headline ? e->tool_call.headline
                        : e->tool_call.name   ? e->tool_call.name
                                              : "";
    base_show(&named, title, strlen(title), BASE_SHOW_UTF8);
    base_json_put_member_str(&line, "toolCallId", t->call);
    base_json_put_member_str(&line, "title", named.data ? named.data : "");
    base_json_put_member_str(&line, "kind", kind_of(e->tool_call.name));
    base_json_put_member_str(&line, "status", "pending");
    if (e->tool_call.arguments) base_json_put_member(&line, "rawInput", e->tool_call.arguments);
    base_json_doc *doc = NULL;
    const char *arguments = e->tool_call.arguments ? e->tool_call.arguments : "";
    if (!base_json_parse(arguments, strlen(arguments), &doc, NULL)) {
        const base_json *root = base_json_root(doc);
        const char *path = base_json_str(root, "path", NULL);
        base_json_put_member(&line, "locations", "[");
        if (path && *path) put_location(t, &line, path, base_json_int(root, "from", 0));
        base_buf_putc(&line, ']');
        base_json_free(doc);
    }
    acp_send_update(t, "tool_call", line.data);
    base_buf_free(&line);
    base_buf_free(&named);
}

/* What was asked about and is not a call of the model's (a person's own command): a call of its own. */
static void begin_call(acp_teller *t, const char *name, const char *headline)
{
    if (t->in_call) return;
    const agent_event e = {
        .type = AGENT_EVENT_tool_call, .tool_call = {.name = name, .headline = headline, .arguments = NULL}};
    tell_call(t, &e);
}

/* The end of what has no result: files went back. */
static void end_call(acp_teller *t)
{
    base_buf fields = {0};
    if (!t->in_call) return;
    base_json_put_member_str(&fields, "toolCallId", t->call);
    base_json_put_member_str(&fields, "status", "completed");
    acp_send_update(t, "tool_call_update", fields.data);
    base_buf_free(&fields);
    t->in_call = false;
}

static void tell_result(acp_teller *t, const agent_event *e)
{
    base_buf fields = {0};
    begin_call(t, e->tool_result.name, e->tool_result.summary);
    base_json_put_member_str(&fields, "toolCallId", t->call);
    base_json_put_member_str(&fields, "status",
        e->tool_result.status && !strcmp(e->tool_result.status, "ok") ? "completed" : "failed");
    base_json_put_member(&fields, "content", "[");
    if (e->tool_result.diff) put_diff(t, &fields, e->tool_result.diff, true);
    if (e->tool_result.text && *e->tool_result.text) put_code(&fields, "", e->tool_result.text);
    base_buf_putc(&fields, ']');
    if (e->tool_result.changed.n || e->tool_result.segments.n) {
        base_json_put_member(&fields, "locations", "[");
        for (size_t i = 0; i < e->tool_result.changed.n; i++)
            put_location(t, &fields, e->tool_result.changed.rows[i].path, 0);
        for (size_t i = 0; i < e->tool_result.segments.n; i++)
            put_location(
                t, &fields, e->tool_result.segments.rows[i].path, e->tool_result.segments.rows[i].line);
        base_buf_putc(&fields, ']');
    }
    acp_send_update(t, "tool_call_update", fields.data);
    base_buf_free(&fields);
    t->in_call = false;
}

/* What was put in front of a request, as a search that the program made. */
static void tell_context(acp_teller *t, const agent_excerpt_list *items)
{
    base_buf fields = {0};
    if (!items->n) return;
    base_buf_printf(&fields, "\"toolCallId\":\"call-%lu\",\"title\":\"%zu excerpts put in front\"",
        ++t->n_calls, items->n);
    base_json_put_member_str(&fields, "kind", "search");
    base_json_put_member_str(&fields, "status", "completed");
    base_json_put_member(&fields, "locations", "[");
    for (size_t i = 0; i < items->n; i++)
        if (items->rows[i].path) put_location(t, &fields, items->rows[i].path, items->rows[i].line);
    base_buf_putc(&fields, ']');
    acp_send_update(t, "tool_call", fields.data);
    base_buf_free(&fields);
}

void acp_put_permission(acp_teller *t, const agent_event *request, base_buf *out)
{
    const char *detail = request->approval_request.detail, *power = request->approval_request.power;
    const bool writes = power && !strcmp(power, "writes");
    begin_call(t, request->approval_request.name, request->approval_request.headline);
    base_buf_putc(out, '{');
    base_json_put_member_str(out, "sessionId", t->session);
    base_json_put_member(out, "toolCall", "{");
    base_json_put_member_str(out, "toolCallId", t->call);
    base_buf shown = {0};
    const char *headline = request->approval_request.headline ? request->approval_request.headline : "";
    base_show(&shown, headline, strlen(headline), BASE_SHOW_UTF8);
    base_json_put_member_str(out, "title", shown.data ? shown.data : "");
    base_json_put_member(out, "content", "[");
    base_buf_clear(&shown);
    if (detail && writes) {
        put_diff(t, out, detail, false);
        if (hides_something(detail)) put_shown(out, detail);
    }
    if (detail && !writes) {
        base_show(&shown, detail, strlen(detail), BASE_SHOW_TABS);
        put_code(out, "", shown.data ? shown.data : "");
    }
    base_buf_free(&shown);
    base_buf_puts(out, "]}");
    if (request->approval_request.name && !strcmp(request->approval_request.name, "rewind")) {
        base_json_put_member(out, "options",
            "[{\"optionId\":\"yes\",\"name\":\"Take the files back too\",\"kind\":\"allow_once\"},"
            "{\"optionId\":\"no\",\"name\":\"Rewind the conversation alone\",\"kind\":\"reject_once\"}]}");
        return;
    }
    base_json_put_member(out, "options",
        "[{\"optionId\":\"yes\",\"name\":\"Allow\",\"kind\":\"allow_once\"},"
        "{\"optionId\":\"always\",\"name\":\"Allow this exact thing for the "
        "session\",\"kind\":\"allow_always\"},");
    if (!writes)
        base_buf_puts(out, "{\"optionId\":\"always-here\",\"name\":\"Allow this exact thing in this tree for "
                           "good\",\"kind\":\"allow_always\"},");
    base_buf_puts(out, "{\"optionId\":\"no\",\"name\":\"Deny\",\"kind\":\"reject_once\"}]}");
}

/* ---- the cache ---- */

static void tell_ledger(const acp_teller *t, const agent_event *e)
{
    base_buf fields = {0};
    /* A session without an end has no size; what fills up there is what the model may read. */
    const int64_t used = e->ledger.ctx ? e->ledger.n : e->ledger.active;
    const int64_t limit = agent_limit_now(e->ledger.budget, e->ledger.until, e->ledger.host),
                  size = e->ledger.ctx ? e->ledger.ctx : limit;
    base_buf_printf(&fields,
        "\"used\":%lld,\"size\":%lld,\"_meta\":{\"kvist\":{\"active\":%lld,\"budget\":%lld,\"evicted\":%lld,"
        "\"promoted\":%lld,\"new\":%lld,\"reused\":%lld}}",
        (long long)used, (long long)size, (long long)e->ledger.active, (long long)limit,
        (long long)e->ledger.evicted, (long long)e->ledger.promoted, (long long)e->ledger.new,
        (long long)e->ledger.reused);
    acp_send_update(t, "usage_update", fields.data);
    base_buf_free(&fields);
}

static void tell_plan(const acp_teller *t, const agent_event *e)
{
    base_buf fields = {0};
    if (!t->knows_compaction || (!e->plan.evicted && !e->plan.promoted)) return;
    base_buf_printf(&fields, "\"compactionId\":\"plan-%llu\",\"status\":\"completed\",\"_meta\":{\"kvist\":{",
        (unsigned long long)e->seq);
    base_json_put_member_str(&fields, "cause", e->plan.cause);
    base_buf_printf(&fields, ",\"evicted\":%lld,\"promoted\":%lld}}", (long long)e->plan.evicted,
        (long long)e->plan.promoted);
    acp_send_update(t, "compaction_update", fields.data);
    base_buf_free(&fields);
}

/* ---- the table ---- */

void acp_tell(acp_teller *t, const agent_event *e)
{
    base_buf text = {0};
    switch (e->type) {
    case AGENT_EVENT_user:
        t->was_interrupted = false;
        if (t->is_replay) tell_chunk(t, "user_message_chunk", e->user.text);
        break;
    case AGENT_EVENT_token:
        if (e->token.channel) {
            if (e->token.text && *e->token.text) tell_chunk(t, "agent_thought_chunk", e->token.text);
            break;
        }
        agent_stream_token(&t->stream, e->token.text, e->token.origin != NULL, &text);
        tell_streamed(t, &text);
        break;
    case AGENT_EVENT_answer:
        agent_stream_answer(&t->stream, e->answer.text, &text);
        tell_streamed(t, &text);
        break;
    case AGENT_EVENT_append: agent_stream_forget(&t->stream); break;
    case AGENT_EVENT_tool_call:
        agent_stream_forget(&t->stream);
        t->in_call = false;
        tell_call(t, e);
        break;
    case AGENT_EVENT_tool_result: tell_result(t, e); break;
    case AGENT_EVENT_context: tell_context(t, &e->context.items); break;
    case AGENT_EVENT_places: tell_places(t, &e->places.items); break;
    case AGENT_EVENT_notice: tell_line(t, "agent_thought_chunk", "", e->notice.text); break;
    case AGENT_EVENT_undo: end_call(t); break;
    case AGENT_EVENT_rewind:
        end_call(t);
        if (e->rewind.summary) tell_line(t, "agent_thought_chunk", "rewound; ", e->rewind.summary);
        break;
    case AGENT_EVENT_error: tell_line(t, "agent_message_chunk", "kvist: ", e->error.text); break;
    case AGENT_EVENT_ledger: tell_ledger(t, e); break;
    case AGENT_EVENT_plan: tell_plan(t, e); break;
    case AGENT_EVENT_turn_end:
        t->was_interrupted = e->turn_end.status && !strcmp(e->turn_end.status, "interrupted");
        break;
    default: break;
    }
}

void acp_teller_free(acp_teller *t)
{
    agent_stream_free(&t->stream);
    free(t->session);
    free(t->root);
    t->session = t->root = NULL;
}
