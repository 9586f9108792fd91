/*
 * Asking the person, and what they said yes to for longer than once: an exact command for the session, or for good
 * in this tree (approvals.h).
 */
#include <stdlib.h>
#include <string.h>

#include "agent/approve/approvals.h"
#include "agent/approve/approve.h"
#include "agent/session/tell.h"
#include "base/mem.h"
#include "tools/guard/runs.h"

agent_decision agent__ask_person(agent *a, const agent_event *request)
{
    static const char *const words[] = {[AGENT_YES] = "yes",
        [AGENT_ALWAYS] = "always",
        [AGENT_ALWAYS_HERE] = "always here",
        [AGENT_NO] = "no",
        [AGENT_EDIT] = "edit"};
    agent__emit(a, (agent_event *)request);
    agent__commit(a);
    const agent_decision d = a->host.approve(a->host.user, request);
    agent__emit(a, &(agent_event){.type = AGENT_EVENT_approval,
                       .approval = {.turn = a->turn, .decision = words[d.answer], .reason = d.text}});
    agent__commit(a);
    return d;
}

bool agent__is_always_allowed(const agent *a, const char *allowance)
{
    for (size_t i = 0; i < a->made.n_allowed; i++)
        if (!strcmp(a->made.allowed[i], allowance)) return true;
    return agent_approvals_has(AGENT_APPROVAL_COMMAND, tool_workspace_root(a->workspace), allowance, NULL);
}

char *agent__allowance(const agent *a, const char *command, bool in_copy)
{
    return agent_allowance(tool_workspace_root(a->workspace), command, in_copy);
}

static bool was_allowed(const agent *a, const char *command)
{
    agent_approvals all = {0};
    bool found = false;
    for (size_t i = 0; i < a->made.n_allowed && !found; i++)
        found = agent_allowance_is_of(a->made.allowed[i], command);
    if (!found) agent_approvals_read(tool_workspace_root(a->workspace), &all, NULL);
    for (size_t i = 0; i < all.n && !found; i++)
        found =
            all.rows[i].kind == AGENT_APPROVAL_COMMAND && agent_allowance_is_of(all.rows[i].what, command);
    agent_approvals_free(&all);
    return found;
}

char *agent__why_again(const agent *a, const char *command)
{
    if (!was_allowed(a, command)) return NULL;
    base_buf why = {0};
    char *sum = tool_runs_sum(tool_workspace_root(a->workspace), command);
    const char *names = sum ? strchr(sum, '(') : NULL;
    base_buf_printf(&why, "what it runs of the tree changed since you allowed it%s%s", names ? " " : "",
        names ? names : "");
    free(sum);
    return base_buf_take(&why);
}

void agent__allow_always(agent *a, const char *allowance, bool is_lasting)
{
    base_err err = {0};
    /* What is kept is gone as soon as it is taken back: the session remembers it only where it could not be. */
    if (is_lasting &&
        !agent_approvals_add(AGENT_APPROVAL_COMMAND, tool_workspace_root(a->workspace), allowance, &err))
        return;
    if (is_lasting) agent__notice(a, "allowed for this session; it could not be kept: %s", err.msg);
    base_grow(&a->made.allowed, &a->made.cap_allowed, a->made.n_allowed + 1, sizeof *a->made.allowed);
    a->made.allowed[a->made.n_allowed++] = base_xstrdup(allowance);
}

int agent__deny_unasked(agent *a, const char *sentence, base_err *err)
{
    agent__emit(a, &(agent_event){.type = AGENT_EVENT_approval,
                       .approval = {.turn = a->turn, .decision = "denied", .reason = "nobody to ask"}});
    a->denied = true;
    return base_fail(err, BASE_E_STATE, "%s", sentence);
}
