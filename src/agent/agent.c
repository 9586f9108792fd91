/*
 * One session, from outside: opening, closing, a line from the person, idle time. The engine's observer turns
 * prefill progress and plans into events.
 */
#include "agent/act/act.h"
#include "agent/command/command.h"
#include "agent/engine/ability.h"
#include "agent/lifetime/lifetime.h"
#include "agent/log/log.h"
#include "agent/log/logged.h"
#include "agent/session/ledger.h"
#include "agent/session/tell.h"
#include "agent/turn/turn.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/numbers.h"

enum { DEFAULT_CONTEXT = 1500, DEFAULT_STEPS = 24, DEFAULT_TOKENS = 1024 };

/* --- the engine's observer ------------------------------------------------------------------------------ */

static void on_prefill(void *user, uint32_t done, uint32_t total)
{
    agent__progress(user, done, total);
}

static void on_wait(void *user, const char *sentence)
{
    agent__notice(user, "%s", sentence);
}

static void emit_behind(void *user, agent_event *e)
{
    agent__emit_behind(user, e);
}

static void on_plan(void *user, const kv_plan *p)
{
    agent *a = user;
    if (a->telling.replaying) return;
    agent__count_plan(a, p);
    agent_logged_tell_plan(p, a->turn, emit_behind, a);
    if (p->cause == KV_CAUSE_FOLD)
        agent__notice(a,
            "the session goes on behind the model's context: the first %s of %s tokens are read from nearer "
            "now, as if what was evicted among them had never been",
            BASE_THOUSANDS(kv_plan_folded_to(p)), BASE_THOUSANDS(p->n_tokens));
    if (p->lost)
        agent__notice(a,
            "the rows of %s tokens were given up: the host tier is full (--kv-set disk=MiB is its limit)",
            BASE_THOUSANDS(kv_plan_lost(p)));
}

int agent_open(agent **ret, engine *e, tool_workspace *w, const agent_options *options,
    const agent_host *host, atomic_bool *cancel, base_err *err)
{
    agent *a = base_xcalloc(1, sizeof *a);
    a->engine = e;
    a->workspace = w;
    a->log = options->log;
    a->recall = options->recall;
    a->servers = options->servers;
    a->host = host ? *host : (agent_host){0};
    a->cancel = cancel;
    a->telling.id = base_xstrdup(options->id ? options->id : "ephemeral");
    a->settings.context_tokens = options->context_tokens ? options->context_tokens : DEFAULT_CONTEXT;
    a->settings.max_steps = options->max_steps ? options->max_steps : DEFAULT_STEPS;
    a->settings.max_tokens = options->max_tokens ? options->max_tokens : DEFAULT_TOKENS;
    a->settings.max_thought = options->max_thought ? options->max_thought : (a->settings.max_tokens + 1) / 2;
    a->settings.tries = options->tries;
    a->settings.stop = options->stop;
    a->settings.schema = options->schema;
    a->settings.schema_text = options->schema_text;
    a->settings.told = options->settings;
    memcpy(a->settings.configured, options->configured, sizeof a->settings.configured);
    a->transcript.open_role = -1;
    a->settings.mode = AGENT_MODE_ASK;
    if (a->recall) a->recall->agent = a;
    e->ops->info(e, &a->info);
    agent_ability_read(options->ability, &a->info.strong);
    e->observer = (kv_observer){.user = a, .prefill = on_prefill, .plan = on_plan};
    e->waits = on_wait;
    if (e->ops->alike) code_index_set_alike(tool_workspace_index(w), e->ops->alike(e));
    bool is_empty = true;
    int rc = agent_set_mode(a, options->mode, err);
    if (!rc) tool_workspace_recover(w);
    if (!rc) rc = tool_workspace_refresh(w, NULL, cancel, err);
    if (!rc) rc = agent__offer_tools(a, err);
    if (!rc && a->log && !options->resume)
        rc = agent_log_create(a->log, a->telling.id, NULL, tool_workspace_root(w), a->info.model, err);
    if (!rc && a->log && options->resume) rc = agent_log_lock(a->log, a->telling.id, err);
    if (!rc && options->resume && a->log) rc = agent__catch_up(a, options, &is_empty, err);
    if (!rc && is_empty) rc = agent__begin_session(a, err);
    base_buf notes = {0};
    if (!rc) tool_workspace_notes(w, &notes);
    if (!rc && options->notes) base_buf_puts(&notes, options->notes);
    for (char *line = notes.data, *rest; line && *line; line = rest) {
        rest = strchr(line, '\n');
        if (rest) *rest++ = 0;
        if (*line) agent__notice(a, "%s", line);
    }
    base_buf_free(&notes);
    if (rc) {
        if (a->log && !options->resume)
            agent_log_delete(a->log, a->telling.id, NULL); /* nothing was asked in it */
        a->ended = true;
        agent_close(a);
        return rc;
    }
    agent__commit(a);
    *ret = a;
    return 0;
}

/* What is not as it was asked for, from the start or since a moment ago: said once. */
static void tell_backend(agent *a)
{
    engine_info now;
    a->engine->ops->info(a->engine, &now);
    if (!now.notice || now.notice == a->telling.engine_notice) return;
    agent__notice(a, "%s", now.notice);
    a->telling.engine_notice = now.notice;
}

void agent_make_ready(agent *a)
{
    if (a->engine->ops->make_ready) a->engine->ops->make_ready(a->engine);
}

void agent_idle(agent *a, agent_idle_fn *tell, void *user)
{
    agent_make_ready(a);
    if (a->engine->ops->learn) a->engine->ops->learn(a->engine, tell, user);
    if (tell) tell(user, NULL);
}

void agent_end(agent *a)
{
    if (!a->ended) agent__end_session(a);
    a->ended = true;
    a->host = (agent_host){0};
    a->servers = NULL; /* they may end before the workspace that they work in */
}

void agent_close(agent *a)
{
    if (!a) return;
    agent_end(a);
    if (a->recall) a->recall->agent = NULL;
    agent__clear_session(a);
    for (size_t i = 0; i < a->telling.n_held; i++) agent_event_free(a->telling.held[i]);
    for (size_t i = 0; i < a->made.n_allowed; i++) free(a->made.allowed[i]);
    if (a->engine) a->engine->ops->close(a->engine);
    tool_workspace_close(a->workspace);
    free(a->telling.held);
    free(a->made.allowed);
    free(a->thoughts.all);
    free(a->transcript.segments);
    free(a->made.calls);
    free(a->transcript.turn_starts);
    free(a->ledger.turns);
    free(a->aside.loose);
    free(a->aside.wanted);
    base_buf_free(&a->aside.list);
    base_buf_free(&a->notes.shell);
    base_buf_free(&a->notes.map);
    base_buf_free(&a->notes.skill);
    free(a->telling.id);
    free(a->telling.parent);
    free(a);
}

const char *agent_session_id(const agent *a)
{
    return a->telling.id;
}

void agent_get_stats(const agent *a, kv_stats *ret)
{
    a->engine->ops->stats(a->engine, ret);
}

bool agent_reached_limit(const agent *a)
{
    return a->at_limit;
}

bool agent_was_denied(const agent *a)
{
    return a->denied;
}

int agent_submit(agent *a, const char *text, base_err *err)
{
    while (*text == ' ' || *text == '\n' || *text == '\t') text++;
    if (!*text) return 0;
    agent_settle(a);
    tell_backend(a);
    a->denied = a->at_limit = false; /* they are of this line */
    int rc = *text == '/'   ? agent__command(a, text, err)
             : *text == '!' ? agent__shell_line(a, text + 1, true, err)
                            : agent__turn(a, text, err);
    tell_backend(a);
    agent__commit(a);
    return rc;
}
