/*
 * recall {query}: what was said or shown earlier and is no longer in view. The agent answers; this only
 * carries the call.
 */
#include "tools/result/result.h"
#include "tools/tree/workspace.h"

static int run(tool_workspace *w, const tool_call *call, const tool_limits *limits, tool_preview *prepared,
    tool_result *ret, base_err *err)
{
    const char *query = tool__string(call, "query");
    ret->exit_code = -1;
    if (!query) {
        tool__say(ret, TOOL_FAILED, "recall needs words to look for. Next: recall {\"query\": \"...\"}\n");
        return BASE_OK;
    }
    if (!w->recall) {
        tool__say(ret, TOOL_FAILED, "Nothing is kept of earlier turns here. Next: search {\"query\": ");
        tool__quote(&ret->text, query);
        base_buf_puts(&ret->text, "}\n");
        return BASE_OK;
    }
    int code = w->recall(w->recall_user, query, &ret->text, err);
    if (code == BASE_E_NOT_FOUND) {
        base_buf_puts(
            &ret->text, "Nothing earlier in this session has these words. Next: search {\"query\": ");
        tool__quote(&ret->text, query);
        tool__say(ret, TOOL_FAILED, "}\n");
        code = BASE_OK;
    }
    if (!code) tool__cap(w, ret, limits, 6);
    return code;
}

static const tool_argument arguments[] = {
    {"query", TOOL_ARGUMENT_STRING, true, "words", NULL, TOOL_FOR_ALL},
    {0},
};

const tool_entry tool__recall = {
    .name = "recall",
    .power = TOOL_READS,
    .about = "Find something said or shown earlier in this session.",
    .arguments = arguments,
    .run = run,
};
