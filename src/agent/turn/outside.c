/*
 * Tools of other programs (src/mcp) in a session: started before a request, told of in front of it, and never in the
 * fixed prompt, so that one which appears in mid-session leaves all that was computed as it is.
 */
#include <stdlib.h>
#include <string.h>

#include "agent/lifetime/lifetime.h"
#include "agent/sequence/sequence.h"
#include "agent/session/tell.h"
#include "agent/turn/turn.h"
#include "mcp/mcp.h"

static void tell_person(agent *a, base_buf *notes)
{
    char *rest = notes->data;
    for (char *line; (line = strsep(&rest, "\n"));)
        if (*line) agent__notice(a, "%s", line);
    base_buf_free(notes);
}

int agent__append_outside(agent *a, base_err *err)
{
    if (!mcp_has_servers(a->servers)) return 0;
    base_buf notes = {0}, lines = {0}, text = {0};
    mcp_refresh(a->servers, a->workspace, a->cancel, &notes);
    tell_person(a, &notes);
    if (atomic_load(a->cancel)) return base_fail(err, BASE_E_CANCELLED, "interrupted");
    mcp_tell(a->servers, &lines);
    int rc = 0;
    if (lines.len) {
        base_buf_printf(&text,
            "Tools of other programs, called by %s and a JSON object in a fenced block:\n%s\n",
            "{\"name\": \"mcp\", \"arguments\": {\"tool\": \"SERVER.TOOL\"}}", lines.data);
        agent_text t = {.origin = KV_ORIGIN_CONTEXT, .text = text.data, .n = text.len, .label = "tools"};
        rc = agent__offer_tools(a, err); /* the grammar knows their names */
        if (!rc) rc = agent__append(a, &t, NULL, err);
    }
    base_buf_free(&lines);
    base_buf_free(&text);
    return rc;
}

int agent__describe_outside(agent *a, const char *name, base_err *err)
{
    if (!a->servers) {
        agent__notice(a, "no MCP server is configured: mcp.json in kvist's configuration folder names them");
        return 0;
    }
    base_buf out = {0};
    const int rc = *name ? mcp_restart(a->servers, name, err) : 0;
    if (*name && !rc) base_buf_printf(&out, "%s starts again with the next request", name);
    if (!*name) mcp_describe(a->servers, &out);
    if (out.len) agent__notice(a, "%s", out.data);
    base_buf_free(&out);
    return rc;
}
