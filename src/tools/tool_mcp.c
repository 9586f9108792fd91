/*
 * mcp {tool} and a fenced JSON object: a tool of another program, which the person configured (src/mcp). It counts as a
 * command: it runs code that nobody here wrote.
 */
#include <stdlib.h>

#include "base/mem.h"
#include "tools/guard/git_check.h"
#include "tools/guard/git_guard.h"
#include "tools/result/result.h"
#include "tools/run/served.h"
#include "tools/tree/workspace.h"

/* The fenced block; a model that knows no payload writes them as an argument. `held` keeps such bytes. */
static base_str arguments_of(const tool_call *call, base_buf *held)
{
    const base_json *inner = base_json_get(call->arguments, "arguments");
    if (call->payload.len || !inner || inner->type != BASE_JSON_OBJECT) return call->payload;
    base_json_put(held, inner);
    return (base_str){held->data, held->len};
}

static int prepare(tool_workspace *w, const tool_call *call, const tool_limits *limits, tool_preview *ret,
    tool_result *result, base_err *err)
{
    const char *name = tool__string(call, "tool");
    char *whole = NULL; /* with its server */
    base_buf say = {0}, held = {0};
    const base_str payload = arguments_of(call, &held);
    result->exit_code = -1;
    if (!w->outside) {
        tool__say(result, TOOL_FAILED, "No MCP server is configured here: use the other tools.\n");
    } else if (!name) {
        tool__say(result, TOOL_FAILED, "mcp needs \"tool\". Next: mcp {\"tool\": \"SERVER.TOOL\"}\n");
    } else if (!w->outside->check(w->outside_user, name, payload, &whole, &say)) {
        tool__say(result, TOOL_FAILED, "%s", say.data ? say.data : "");
    } else {
        base_buf head = {0}, detail = {0};
        base_buf_printf(&head, "mcp %s", whole);
        base_buf_puts(&detail, whole);
        if (payload.len) base_buf_putc(&detail, ' ');
        if (say.len)
            base_buf_add(&detail, say.data, say.len);
        else
            base_buf_add(&detail, payload.ptr ? payload.ptr : "", payload.len);
        while (detail.len && detail.data[detail.len - 1] == '\n') detail.data[--detail.len] = 0;
        *ret = (tool_preview){.headline = base_buf_take(&head),
            .detail = base_buf_take(&detail),
            .plan = whole,
            .free_plan = free};
    }
    base_buf_free(&say);
    base_buf_free(&held);
    return BASE_OK;
}

static int run(tool_workspace *w, const tool_call *call, const tool_limits *limits, tool_preview *prepared,
    tool_result *ret, base_err *err)
{
    const char *name = prepared->plan; /* what was asked about, whatever servers there are now */
    base_buf told = {0}, held = {0};
    base_err mine = {0};
    bool failed = false;
    ret->exit_code = -1;
    if (!w->outside || !name) return prepare(w, call, limits, &(tool_preview){0}, ret, err);
    tool__git_guard_take(w);
    const int code = w->outside->call(
        w->outside_user, w, name, arguments_of(call, &held), limits, &ret->text, &failed, &mine);
    tool__git_guard_check(w, &told);
    tool__served_move(w);
    if (told.len) ret->notice = base_xstrdup(told.data);
    if (code == BASE_E_CANCELLED) {
        tool__say(ret, TOOL_CANCELLED, "cancelled by the person\n");
    } else if (code) {
        tool__say(ret, code == BASE_E_LIMIT ? TOOL_TIMEOUT : TOOL_FAILED, "mcp %s: %s.\n", name, mine.msg);
    } else {
        ret->status = failed ? TOOL_FAILED : TOOL_OK;
        if (!ret->text.len)
            base_buf_puts(&ret->text, failed ? "It failed, without a word." : "It returned nothing.");
        if (ret->text.data[ret->text.len - 1] != '\n') base_buf_putc(&ret->text, '\n');
    }
    ret->total_bytes = ret->text.len;
    tool__cap(w, ret, limits, 6);
    base_buf_free(&told);
    base_buf_free(&held);
    return BASE_OK;
}

static const tool_argument arguments[] = {
    {"tool", TOOL_ARGUMENT_STRING, true, "SERVER.TOOL", NULL, TOOL_FOR_ALL},
    {0},
};

const tool_entry tool__mcp = {
    .name = "mcp",
    .power = TOOL_RUNS,
    .models = TOOL_ON_REQUEST,
    .about =
        "Call a tool of another program; its arguments are a JSON object in a fenced block behind the call.",
    .arguments = arguments,
    .takes_payload = true,
    .prepare = prepare,
    .run = run,
};
