/*
 * A session as Markdown, for a person who shares or keeps it: requests, answers, calls with what they changed,
 * and how the cache was changed on the way.
 */
#include <stdlib.h>
#include <string.h>

#include "agent/log/log.h"
#include "base/buf.h"
#include "base/utf8.h"

/* A fence that is longer than any run of backquotes in the text. */
static void put_fenced(base_buf *out, const char *language, const char *text)
{
    size_t longest = 2, run = 0;
    for (const char *c = text; *c; c++) {
        run = *c == '`' ? run + 1 : 0;
        if (run > longest) longest = run;
    }
    base_buf fence = {0};
    for (size_t i = 0; i <= longest; i++) base_buf_putc(&fence, '`');
    const size_t n = strlen(text);
    base_buf_printf(out, "%s%s\n%s%s%s\n\n", fence.data, language, text, n && text[n - 1] == '\n' ? "" : "\n",
        fence.data);
    base_buf_free(&fence);
}

static void put_line(base_buf *out, const char *prefix, const char *text)
{
    const size_t n = text ? strcspn(text, "\n") : 0;
    base_buf_printf(out, "%s%.*s\n\n", prefix, (int)n, text ? text : "");
}

static void put_event(base_buf *out, const agent_event *e)
{
    switch (e->type) {
    case AGENT_EVENT_session:
        base_buf_printf(out, "# kvist session %s\n\nModel: %s. Tree: %s.\n\n",
            e->session.id ? e->session.id : "", e->session.model ? e->session.model : "",
            e->session.root ? e->session.root : "");
        break;
    case AGENT_EVENT_user:
        base_buf_printf(out, "## Request\n\n%s\n\n", e->user.text ? e->user.text : "");
        break;
    case AGENT_EVENT_answer: base_buf_printf(out, "%s\n\n", e->answer.text ? e->answer.text : ""); break;
    case AGENT_EVENT_tool_call:
        put_line(out, "**Call:** ", e->tool_call.headline ? e->tool_call.headline : e->tool_call.name);
        break;
    case AGENT_EVENT_tool_result:
        if (e->tool_result.diff)
            put_fenced(out, "diff", e->tool_result.diff);
        else if (e->tool_result.text && *e->tool_result.text)
            put_fenced(out, "", e->tool_result.text);
        break;
    case AGENT_EVENT_approval: put_line(out, "**Approval:** ", e->approval.decision); break;
    case AGENT_EVENT_places:
        for (size_t i = 0; i < e->places.items.n; i++)
            base_buf_printf(out, "- %s\n", e->places.items.rows[i].text ? e->places.items.rows[i].text : "");
        base_buf_putc(out, '\n');
        break;
    case AGENT_EVENT_plan:
        if (e->plan.evicted || e->plan.promoted)
            base_buf_printf(out, "*Cache: %lld rows evicted, %lld promoted (%s).*\n\n",
                (long long)e->plan.evicted, (long long)e->plan.promoted, e->plan.cause ? e->plan.cause : "");
        break;
    case AGENT_EVENT_rewind:
        base_buf_printf(out, "*Rewound to before turn %lld%s%s.*\n\n", (long long)e->rewind.turn,
            e->rewind.summary ? "; " : "", e->rewind.summary ? e->rewind.summary : "");
        break;
    case AGENT_EVENT_error: put_line(out, "**Error:** ", e->error.text); break;
    default: break;
    }
}

static bool add_event(void *user, uint32_t turn, const agent_event *e)
{
    base_buf text = {0};
    put_event(&text, e);
    if (text.len) base_utf8_sanitise(user, text.data, text.len, true);
    base_buf_free(&text);
    return true;
}

int agent_log_markdown(agent_log *log, const char *id, base_buf *out, base_err *err)
{
    return agent_log_read(log, id, AGENT_LOG_PASS_BY, add_event, out, err);
}
