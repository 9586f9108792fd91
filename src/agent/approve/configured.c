/*
 * The commands that a configuration names for its tree: `test` and `lint`. A tree's file is somebody else's text,
 * so a command in it counts once a person approved exactly this text for this tree (asking.c); a typed one
 * (--test) is the person's word. Whoever runs one gets it from here.
 */
#include <stdlib.h>
#include <string.h>

#include "agent/approve/approve.h"
#include "agent/session/tell.h"

static const char *const words[] = {[AGENT_CONFIGURED_TEST] = "test", [AGENT_CONFIGURED_LINT] = "lint"};

const char *agent__configured_word(agent_configured which)
{
    return words[which];
}

static bool is_allowed(const agent *a, const char *command, bool in_copy)
{
    char *text = agent__allowance(a, command, in_copy);
    const bool is_yes = agent__is_always_allowed(a, text);
    free(text);
    return is_yes;
}

static bool is_approved(const agent *a, const agent_configured_command *c)
{
    return c->is_typed || is_allowed(a, c->command, false);
}

/* It was typed, or a yes of this turn covers it. */
static bool is_yes_of_turn(const agent *a, const char *command)
{
    for (int i = 0; i < AGENT_N_CONFIGURED; i++) {
        const agent_configured_command *c = &a->settings.configured[i];
        if (c->command && !strcmp(c->command, command) &&
            (c->is_typed || (a->made.configured_yes[i] && a->made.configured_yes[i] == a->turn + 1)))
            return true;
    }
    return false;
}

bool agent__is_allowed_command(const agent *a, const char *command, bool in_copy)
{
    return is_yes_of_turn(a, command) || is_allowed(a, command, false) ||
           (in_copy && is_allowed(a, command, true));
}

/* y: for this turn; a: for the session; A: until it changes. */
static bool ask(agent *a, agent_configured which)
{
    const agent_configured_command *c = &a->settings.configured[which];
    base_buf headline = {0};
    char *why = agent__why_again(a, c->command);
    base_buf_printf(&headline, "$ %s (the %s of %s%s%s)", c->command, words[which], c->source,
        why ? "; asked again: " : "", why ? why : "");
    free(why);
    agent_event request = {.type = AGENT_EVENT_approval_request,
        .approval_request = {.turn = a->turn,
            .name = words[which],
            .headline = headline.data,
            .detail = c->command,
            .power = "runs"}};
    const agent_decision d = agent__ask_person(a, &request);
    if (d.answer == AGENT_ALWAYS || d.answer == AGENT_ALWAYS_HERE) {
        char *text = agent__allowance(a, c->command, false);
        agent__allow_always(a, text, d.answer == AGENT_ALWAYS_HERE);
        free(text);
    }
    if (d.answer == AGENT_EDIT) agent__notice(a, "not run: change it in %s", c->source);
    const bool is_yes = d.answer != AGENT_NO && d.answer != AGENT_EDIT;
    a->made.configured_yes[which] = is_yes ? a->turn + 1 : 0;
    a->made.configured_no[which] = is_yes ? 0 : a->turn + 1;
    base_buf_free(&headline);
    free(d.text);
    return is_yes;
}

const char *agent__configured(agent *a, agent_configured which)
{
    const agent_configured_command *c = &a->settings.configured[which];
    if (!c->command || a->settings.mode == AGENT_MODE_PLAN) return NULL;
    if (is_approved(a, c) || is_yes_of_turn(a, c->command)) return c->command;
    if (a->made.configured_no[which] == a->turn + 1) return NULL;
    if (a->host.approve) return ask(a, which) ? c->command : NULL;
    a->made.configured_no[which] = a->turn + 1;
    agent__notice(a,
        "the %s of %s does not count, since nobody approved it for this tree: `kvist approvals allow "
        "COMMAND` does, with exactly its text",
        words[which], c->source);
    return NULL;
}

void agent__describe_configured(const agent *a, base_buf *out)
{
    for (int i = 0; i < AGENT_N_CONFIGURED; i++) {
        const agent_configured_command *c = &a->settings.configured[i];
        if (!c->command) continue;
        base_buf_printf(out, "\n%s\t%s\t%s: %s", words[i], c->command, c->source,
            c->is_typed         ? "typed, so it counts"
            : is_approved(a, c) ? "approved for this tree"
                                : "asked before it first counts");
    }
}
