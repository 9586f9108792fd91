/* What refuses a change before it is prepared: each says why, and what to do instead (contract: running.h). */
#include <stdlib.h>
#include <string.h>

#include "agent/act/running.h"
#include "agent/asked/asked.h"
#include "agent/call/prompt.h"
#include "agent/newtest/newtest.h"
#include "agent/operation/operation.h"
#include "agent/repair/attempt.h"
#include "agent/words/request_words.h"
#include "agent/words/use_question.h"
#include "base/mem.h"
#include "code/code.h"

static bool has_callers(const agent *a, const char *name)
{
    code_caller *callers = NULL;
    const uint32_t n =
        code_index_callers(tool_workspace_index(a->workspace), code_last_name(name), 1, &callers);
    code_callers_free(callers, n < 1 ? n : 1);
    return n > 0;
}

/*
 * Would this text do by hand what an operation refused? It changes one place, leaves all others as they were, and looks
 * done. A strong model sees to the other places itself.
 */
static bool is_by_hand(const agent_running *r)
{
    const agent_refusal *x = &r->a->asked.refusal;
    if (!x->why || r->a->info.strong) return false;
    if (!strcmp(r->name, "refactor")) { /* "rename error to error2": a name that nobody asked for */
        const char *to = base_json_str(r->call.arguments, "to", NULL),
                   *operation = base_json_str(r->call.arguments, "operation", "");
        return to && !strcmp(operation, "rename") && !strcmp(x->operation, "rename") &&
               !code_has_identifier(r->a->request, strlen(r->a->request), to);
    }
    const base_str text = r->call.payload;
    const char *name = base_json_str(r->call.arguments, "name", NULL);
    const char *path = base_json_str(r->call.arguments, "path", NULL);
    const bool is_itself = name && !strcmp(code_last_name(name), code_last_name(x->name));
    bool is_it = is_itself;
    if (!strcmp(x->operation, "rename"))
        is_it |= (text.ptr && code_has_identifier(text.ptr, text.len, x->to)) ||
                 (name && code_has_identifier(name, strlen(name), x->to));
    else if (!strcmp(x->operation, "move")) /* the one that stays would be a second one */
        is_it |= path && x->to && !strcmp(path, x->to) && text.ptr &&
                 code_has_identifier(text.ptr, text.len, code_last_name(x->name));
    else if (!strcmp(x->operation, "signature"))
        is_it = is_itself && has_callers(r->a, x->name);
    return is_it;
}

/* The request forbids it: "leave F alone". */
static bool refuse_forbidden(agent_running *r)
{
    const char *why = agent__forbids_change(r->a, base_json_str(r->call.arguments, "path", NULL));
    if (why) agent__running_say(r, TOOL_REFUSED, "Refused: %s.\n", why);
    return why != NULL;
}

static bool refuse_other_language(agent_running *r)
{
    char *why = agent__why_other_language(r->a, base_json_str(r->call.arguments, "path", NULL));
    if (!why) return false;
    agent__running_say(r, TOOL_REFUSED,
        "Refused: %s. Nothing was changed. Next: write the test in its subject's language.\n", why);
    free(why);
    return true;
}

/* "test_add_up", which only the prompt's example has. */
static bool refuse_example(agent_running *r)
{
    const agent *a = r->a;
    const char *name = base_json_str(r->call.arguments, "name", NULL);
    if (!name || !agent_prompt_defines(name) || agent__names_word(a->request, name) ||
        code_index_is_defined(tool_workspace_index(a->workspace), name))
        return false;
    const agent_new_test *t = &a->asked.new_test;
    const bool is_known = t->path && t->name;
    if (is_known) agent__aim_at(r->a, t->path, t->name);
    agent__running_say(r, TOOL_REFUSED,
        "Refused: %s is of an example, and nothing here is called so. Nothing was changed. Next: write %s%s%s.\n",
        name, is_known ? t->name : "what the request asks for", is_known ? " in " : "",
        is_known ? t->path : "");
    return true;
}

static bool refuse_no_test(agent_running *r)
{
    agent_new_test *t = &r->a->asked.new_test;
    char *why = agent__why_no_test(r->a, r->call.arguments, r->call.payload);
    if (!why) return false;
    t->is_refused = true;
    agent__aim_at(r->a, t->path, t->name);
    agent__running_say(r, TOOL_REFUSED,
        "Refused: %s. Nothing was changed. Next: write a test that calls %s.\n", why,
        code_last_name(t->subject));
    free(why);
    return true;
}

static bool refuse_not_used(agent_running *r)
{
    const char *path = base_json_str(r->call.arguments, "path", NULL),
               *name = base_json_str(r->call.arguments, "name", NULL);
    char *why = agent__why_not_used(r->a, r->call.arguments, r->call.payload);
    if (!why) return false;
    if (path && name) agent__aim_at(r->a, path, name);
    agent__running_say(r, TOOL_REFUSED,
        "Refused: %s. Nothing was changed. Next: rewrite the definition in which it belongs.\n", why);
    free(why);
    return true;
}

static bool refuse_other_parameters(agent_running *r)
{
    const char *path = base_json_str(r->call.arguments, "path", NULL),
               *name = base_json_str(r->call.arguments, "name", NULL);
    char *why = agent__why_other_parameters(r->a, r->call.arguments, r->call.payload);
    if (!why) return false;
    if (path && name) agent__aim_at(r->a, path, name);
    agent__running_say(r, TOOL_REFUSED,
        "Refused: %s. Nothing was changed. Next: write it with the parameters of the request.\n", why);
    free(why);
    return true;
}

static bool refuse_by_hand(agent_running *r)
{
    const agent_refusal *x = &r->a->asked.refusal;
    base_buf what = {0};
    if (!is_by_hand(r)) return false;
    agent__put_operation(x, &what);
    agent__running_say(r, TOOL_REFUSED,
        "Refused: the %s was refused, and a text that does it in one place leaves the others. Nothing "
        "was changed. Next: tell the person why: %s\n",
        what.data, x->why);
    base_buf_free(&what);
    return true;
}

/* "Rename tmp to scratch" renames no helper, however near its name is. */
static bool refuse_other_rename(agent_running *r)
{
    const char *operation = base_json_str(r->call.arguments, "operation", ""),
               *name = base_json_str(r->call.arguments, "name", NULL);
    if (strcmp(r->name, "refactor") != 0 || strcmp(operation, "rename") != 0 || !name) return false;
    if (code_has_identifier(r->a->request, strlen(r->a->request), code_last_name(name))) return false;
    char *other = agent__renames_undefined(r->a, r->a->request);
    if (!other) return false;
    agent__running_say(r, TOOL_REFUSED,
        "Refused: the request renames %s, not %s. Nothing was changed. Next: rewrite the definitions that say "
        "%s.\n",
        other, name, other);
    free(other);
    return true;
}

/* "Can I delete f?" asks who uses it: a small model answers with a text of f, as seen on thefuzz. */
static bool refuse_in_question(agent_running *r)
{
    const agent *a = r->a;
    if (a->info.strong || a->asked.change || !a->request || !agent_asks_for_uses(a->request)) return false;
    agent__running_say(r, TOOL_REFUSED,
        "Refused: the request is a question, and a question changes nothing. Next: answer it in words, by the uses that stand "
        "in front of it.\n");
    return true;
}

bool agent__is_refused(agent_running *r)
{
    static bool (*const refusals[])(agent_running *) = {refuse_in_question, refuse_forbidden, refuse_example,
        refuse_other_language, refuse_no_test, refuse_not_used, refuse_other_parameters, refuse_by_hand,
        refuse_other_rename};
    if (!r->tool || r->tool->power != TOOL_WRITES) return false;
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++)
        if (refusals[i](r)) return true;
    return false;
}
