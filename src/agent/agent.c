/*
 * One session: opening, closing, and the stream of events. Whatever happens is emitted here: numbered, handed to the host and
 * buffered in the log, which commits where design/architecture.md says. The engine's observer turns prefill progress and plans
 * into events.
 */
#include "agent/agent.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/internal.h"
#include "base/clock.h"
#include "base/mem.h"

enum { DEFAULT_CONTEXT = 1500, DEFAULT_STEPS = 24, DEFAULT_TOKENS = 1024, SCHEMA = 1 };

static const char *const mode_words[] = {"plan", "ask", "edits", "all"};

const char *agent_mode_word(agent_mode m)
{
    return mode_words[m];
}

bool agent_mode_parse(const char *word, agent_mode *ret)
{
    for (int m = 0; m < 4; m++)
        if (!strcmp(word, mode_words[m])) {
            *ret = (agent_mode)m;
            return true;
        }
    return false;
}

/* --- events ------------------------------------------------------------------------------------------------------------- */

void agent__emit(agent *a, agent_event *e)
{
    e->seq = ++a->seq;
    if (a->log) {
        base_err err = {0};
        if (agent_log_add(a->log, a->id, e, &err) && !a->log_failed) a->log_failed = true;
    }
    if (a->host.event) a->host.event(a->host.user, e);
}

void agent__commit(agent *a)
{
    base_err err = {0};
    if (!a->log || !agent_log_commit(a->log, &err)) {
        a->log_failed = false;
        return;
    }
    if (a->log_failed) return; /* told already; the events wait for the next commit */
    a->log_failed = true;
    agent__notice(a, "%s; what happens is kept in memory until it can be written", err.msg);
}

void agent__notice(agent *a, const char *format, ...)
{
    base_buf text = {0};
    va_list args;
    va_start(args, format);
    base_buf_vprintf(&text, format, args);
    va_end(args);
    agent__emit(
        a, &(agent_event){.type = AGENT_EVENT_notice, .notice = {.turn = a->turn, .text = text.data}});
    base_buf_free(&text);
}

void agent__error(agent *a, const base_err *err)
{
    agent__emit(a, &(agent_event){.type = AGENT_EVENT_error, .error = {.turn = a->turn, .text = err->msg}});
}

bool agent__cancelled(const agent *a)
{
    return a->cancel && atomic_load(a->cancel);
}

/* --- the engine's observer ---------------------------------------------------------------------------------------------- */

static void on_prefill(void *user, uint32_t done, uint32_t total)
{
    agent *a = user;
    uint32_t before = a->sums.waited;
    if (before + total < a->sums.expected) total = a->sums.expected - before;
    agent__emit(a, &(agent_event){.type = AGENT_EVENT_prefill,
                       .prefill = {.turn = a->turn, .done = before + done, .total = before + total}});
}

void agent__expect(agent *a, uint32_t n_tokens)
{
    bool cut_short = a->sums.waited < a->sums.expected;
    uint32_t last = a->sums.expected;
    a->sums.expected = n_tokens;
    a->sums.waited = 0;
    if (n_tokens)
        on_prefill(a, 0, n_tokens);
    else if (cut_short)
        on_prefill(a, last, last); /* the wait is over all the same */
}

static void on_plan(void *user, const kv_plan *p)
{
    agent *a = user;
    if (a->replaying) return;
    base_buf runs = {0}, blob = {0};
    base_buf_putc(&runs, '[');
    for (uint32_t i = 0; i < p->n_runs; i++)
        base_buf_printf(&runs, "%s[%u,%u,\"%s\",\"%s\",%u]", i ? "," : "", p->runs[i].from, p->runs[i].to,
            kv_action_word((kv_action)p->runs[i].action), kv_reason_word((kv_reason)p->runs[i].reason),
            p->runs[i].lanes);
    base_buf_putc(&runs, ']');
    kv_plan_pack(p, &blob);
    agent__count_plan(a, p);
    agent_event e = {.type = AGENT_EVENT_plan,
        .blob = blob.data,
        .blob_n = blob.len,
        .plan = {.turn = a->turn,
            .cause = kv_cause_word(p->cause),
            .runs = runs.data,
            .evicted = p->evicted,
            .promoted = p->promoted,
            .n = p->n_tokens,
            .score_ms = p->score_ms,
            .plan_ms = p->plan_ms,
            .deferred = kv_plan_deferred(p),
            .again = p->replay_from ? p->n_tokens - p->replay_from : 0}};
    if (a->holding) { /* it speaks of tokens whose append event comes first */
        base_grow(&a->held, &a->cap_held, a->n_held + 1, sizeof *a->held);
        a->held[a->n_held++] = agent_event_copy(&e);
    } else {
        agent__emit(a, &e);
    }
    base_buf_free(&runs);
    base_buf_free(&blob);
    if (p->dead)
        agent__notice(a,
            "the rows of %u tokens were given up: the host tier is full (--kv-set disk=MiB is its limit)",
            kv_plan_dead(p));
}

/* --- saving ------------------------------------------------------------------------------------------------------------- */

/* Commit first: then the log is never behind the snapshot, and catching up has what it needs (resume.c). */
void agent__save(agent *a)
{
    agent__commit(a);
    base_err err = {0};
    kv_stats s;
    if (a->log && a->engine->ops->save(a->engine, &err)) {
        agent__notice(
            a, "the session's rows could not be saved (%s): resuming will compute them again", err.msg);
    } else if (a->log) {
        a->engine->ops->stats(a->engine, &s);
        agent__emit(a, &(agent_event){.type = AGENT_EVENT_snapshot,
                           .snapshot = {.turn = a->turn, .n = s.n_tokens, .bytes = (int64_t)s.file_bytes}});
    }
    agent__commit(a);
}

/* --- opening ------------------------------------------------------------------------------------------------------------ */

int agent__offer_tools(agent *a, base_err *err)
{
    static const model_argument_type types[] = {
        [TOOL_ARGUMENT_STRING] = MODEL_ARGUMENT_STRING,
        [TOOL_ARGUMENT_INTEGER] = MODEL_ARGUMENT_INTEGER,
        [TOOL_ARGUMENT_BOOLEAN] = MODEL_ARGUMENT_BOOLEAN,
        [TOOL_ARGUMENT_CHOICE] = MODEL_ARGUMENT_CHOICE,
        [TOOL_ARGUMENT_PATH] = MODEL_ARGUMENT_PATH,
    };
    enum { MAX_TOOLS = 16, MAX_ARGUMENTS = 64 };
    model_grammar_tool tools[MAX_TOOLS];
    model_grammar_argument arguments[MAX_ARGUMENTS];
    uint32_t n_table, n = 0, n_arguments = 0;
    const tool_entry *table = tool_table(&n_table);
    for (uint32_t i = 0; i < n_table && n < MAX_TOOLS; i++) {
        if (!agent_prompt_offers(&table[i], a->info.strong)) continue;
        tools[n] = (model_grammar_tool){table[i].name, arguments + n_arguments, 0};
        for (const tool_argument *g = table[i].arguments; g && g->name && n_arguments < MAX_ARGUMENTS; g++) {
            arguments[n_arguments++] =
                (model_grammar_argument){g->name, types[g->type], g->required, g->choices};
            tools[n].n_arguments++;
        }
        n++;
    }
    const char **files = NULL;
    size_t n_files = 0;
    if (tool_workspace_files(a->workspace, &files, &n_files, NULL)) n_files = 0;
    const char **paths = base_xcalloc(n_files + 1, sizeof *paths);
    if (n_files) memcpy(paths, files, n_files * sizeof *paths);
    int rc = a->engine->ops->set_tools(a->engine, tools, n, n_files ? paths : NULL, err);
    free(files);
    free(paths);
    return rc;
}

static void emit_session(agent *a)
{
    base_buf branch = {0}, settings = {0};
    tool_workspace_branch(a->workspace, &branch);
    kv_stats s;
    a->engine->ops->stats(a->engine, &s);
    base_buf_puts(&settings, "{\"backend\":");
    base_json_put_str(&settings, a->info.backend, strlen(a->info.backend));
    base_buf_puts(&settings, ",\"quantisation\":");
    base_json_put_str(&settings, a->info.quantisation, strlen(a->info.quantisation));
    base_buf_printf(&settings, ",\"context_tokens\":%u,\"max_tokens\":%u}", a->context_tokens, a->max_tokens);
    agent__emit(a, &(agent_event){.type = AGENT_EVENT_session,
                       .session = {.schema = SCHEMA,
                           .id = a->id,
                           .parent = a->parent,
                           .model = a->info.model,
                           .model_hash = a->info.model_hash,
                           .policy = a->info.policy,
                           .budget = s.budget,
                           .n_ctx = a->info.n_ctx,
                           .n_lanes = a->info.n_lanes,
                           .row_bytes = a->info.row_bytes,
                           .mode = agent_mode_word(a->mode),
                           .root = tool_workspace_root(a->workspace),
                           .branch = branch.data ? branch.data : "",
                           .time_ms = base_clock_wall_ms(),
                           .version = KVIST_VERSION,
                           .settings = settings.data}});
    base_buf_free(&branch);
    base_buf_free(&settings);
}

int agent__begin_session(agent *a, base_err *err)
{
    emit_session(a);
    agent_prompt prompt;
    agent_prompt_build(a->info.tools, a->info.strong, &prompt);
    a->open_role = -1;
    a->engine->ops->set_turn(a->engine, a->turn);
    int rc = 0;
    for (uint32_t i = 0; i < prompt.n && !rc; i++) {
        rc = agent__open_message(a, (int)prompt.parts[i].role, err);
        agent_text t = {.origin = KV_ORIGIN_SYSTEM,
            .text = prompt.parts[i].text,
            .n = strlen(prompt.parts[i].text),
            .label = "prompt"};
        if (!rc) rc = agent__append(a, &t, NULL, err);
    }
    agent_prompt_free(&prompt);
    if (!rc) rc = agent__open_message(a, -1, err);
    kv_stats s;
    a->engine->ops->stats(a->engine, &s);
    a->n_prompt = s.n_tokens;
    if (!rc &&
        s.reused <
            s.n_tokens) { /* a shared prefix is a convenience: a failure costs only the next session's time */
        base_err why = {0};
        if (a->engine->ops->save_prefix(a->engine, s.n_tokens, &why))
            agent__notice(a, "the fixed prompt could not be kept for the next session: %s", why.msg);
    }
    if (!rc) rc = agent__append_instructions(a, err);
    agent__commit(a);
    return rc;
}

static void clear_session(agent *a)
{
    for (size_t i = 0; i < a->n_pieces; i++) {
        free(a->pieces[i].label);
        free(a->pieces[i].path);
    }
    a->n_pieces = a->n_calls = a->n_turn_sums = 0;
    a->sums = (agent_sums){0};
    a->turn = 0;
    a->open_role = -1;
    a->attempt = (agent_attempt){0};
    agent__doubts_free(a);
    free(a->test_command);
    free(a->approved_test);
    a->test_command = a->approved_test = NULL;
    base_buf_clear(&a->shell_notes);
    base_buf_clear(&a->map_notes);
}

int agent_open(agent **ret, engine *e, tool_workspace *w, const agent_options *options,
    const agent_host *host, atomic_bool *cancel, base_err *err)
{
    agent *a = base_xcalloc(1, sizeof *a);
    a->engine = e;
    a->workspace = w;
    a->log = options->log;
    a->recall = options->recall;
    a->host = host ? *host : (agent_host){0};
    a->cancel = cancel;
    a->id = base_xstrdup(options->id ? options->id : "ephemeral");
    a->context_tokens = options->context_tokens ? options->context_tokens : DEFAULT_CONTEXT;
    a->max_steps = options->max_steps ? options->max_steps : DEFAULT_STEPS;
    a->max_tokens = options->max_tokens ? options->max_tokens : DEFAULT_TOKENS;
    a->tries = options->tries;
    a->stop = options->stop;
    a->open_role = -1;
    a->mode = AGENT_MODE_ASK;
    if (a->recall) a->recall->agent = a;
    e->ops->info(e, &a->info);
    e->ops->observe(e, &(kv_observer){.user = a, .prefill = on_prefill, .plan = on_plan});
    int rc = agent_set_mode(a, options->mode, err);
    if (!rc) rc = tool_workspace_refresh(w, NULL, cancel, err);
    if (!rc) rc = agent__offer_tools(a, err);
    if (!rc && a->log && !options->resume)
        rc = agent_log_create(a->log, a->id, NULL, tool_workspace_root(w), a->info.model, err);
    if (!rc && a->log && options->resume) rc = agent_log_lock(a->log, a->id, err);
    if (!rc && options->resume && a->log)
        rc = agent__catch_up(a, options, err);
    else if (!rc)
        rc = agent__begin_session(a, err);
    base_buf notes = {0};
    if (!rc) tool_workspace_notes(w, &notes);
    for (char *line = notes.data, *rest; line && *line; line = rest) {
        rest = strchr(line, '\n');
        if (rest) *rest++ = 0;
        if (*line) agent__notice(a, "%s", line);
    }
    base_buf_free(&notes);
    if (rc) {
        if (a->log && !options->resume) agent_log_delete(a->log, a->id, NULL); /* nothing was asked in it */
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
    if (!now.notice || now.notice == a->told) return;
    agent__notice(a, "%s", now.notice);
    a->told = now.notice;
}

void agent_settle(agent *a)
{
    if (a->unsaved) agent__save(a);
    a->unsaved = false;
}

/* The snapshot is written once more: these rows are others than those it has. */
static void read_again(agent *a)
{
    const engine_ops *ops = a->engine->ops;
    base_err err = {0};
    if (!ops->read_again || a->ended || !ops->unread(a->engine)) return;
    const int rc = ops->read_again(a->engine, &err);
    agent__tell_visits(a); /* else they would count as the next message's */
    if (!rc)
        agent__save(a);
    else if (rc != BASE_E_CANCELLED)
        agent__notice(a, "the answer could not be computed again: %s", err.msg);
}

void agent_idle(agent *a)
{
    read_again(a);
    if (a->engine->ops->learn) a->engine->ops->learn(a->engine);
}

static void end_session(agent *a, const char *status)
{
    agent_settle(a);
    agent__emit(a, &(agent_event){.type = AGENT_EVENT_end,
                       .end = {.session = a->id, .turns = a->turn, .status = status}});
    agent__commit(a);
    /* Nothing was asked: nothing to resume, nothing to list. */
    agent_log_tail tail = {0};
    if (a->log && !agent_log_get_tail(a->log, a->id, &tail, NULL) && tail.turn == 0)
        agent_log_delete(a->log, a->id, NULL);
}

int agent__restart(agent *a, const char *parent, base_err *err)
{
    char id[32];
    agent_log_new_id(id);
    end_session(a, "closed");
    base_buf rows = {0};
    if (a->log) {
        char *dir = agent_log_session_dir(a->log, id);
        base_buf_printf(&rows, "%s/rows", dir);
        free(dir);
    }
    free(a->id);
    free(a->parent);
    a->id = base_xstrdup(id);
    a->parent = base_xstrdup(parent);
    clear_session(a);
    int rc = a->log
                 ? agent_log_create(a->log, id, parent, tool_workspace_root(a->workspace), a->info.model, err)
                 : 0;
    if (!rc) rc = a->engine->ops->restart(a->engine, rows.data, err);
    a->seq = 0;
    if (!rc) rc = agent__begin_session(a, err);
    base_buf_free(&rows);
    return rc;
}

void agent_end(agent *a)
{
    if (!a->ended) end_session(a, "closed");
    a->ended = true;
    a->host = (agent_host){0};
}

void agent_close(agent *a)
{
    if (!a) return;
    agent_end(a);
    if (a->recall) a->recall->agent = NULL;
    clear_session(a);
    for (size_t i = 0; i < a->n_held; i++) agent_event_free(a->held[i]);
    for (size_t i = 0; i < a->n_allowed; i++) free(a->allowed[i]);
    if (a->engine) a->engine->ops->close(a->engine);
    tool_workspace_close(a->workspace);
    free(a->held);
    free(a->allowed);
    free(a->pieces);
    free(a->calls);
    free(a->turn_starts);
    free(a->turn_sums);
    base_buf_free(&a->shell_notes);
    base_buf_free(&a->map_notes);
    free(a->id);
    free(a->parent);
    free(a);
}

const char *agent_session_id(const agent *a)
{
    return a->id;
}

agent_mode agent_get_mode(const agent *a)
{
    return a->mode;
}

bool agent_was_denied(const agent *a)
{
    return a->denied;
}

int agent_set_mode(agent *a, agent_mode mode, base_err *err)
{
    if (mode == AGENT_MODE_ALL) {
        base_buf lines = {0};
        bool confined = tool_sandbox_describe(&lines);
        base_buf_free(&lines);
        if (!confined)
            return base_fail(err, BASE_E_UNSUPPORTED,
                "mode all needs a sandbox that confines commands, and this machine gives none (kvist doctor "
                "says why): use edits or ask");
    }
    a->mode = mode;
    return 0;
}

int agent_submit(agent *a, const char *text, base_err *err)
{
    while (*text == ' ' || *text == '\n' || *text == '\t') text++;
    if (!*text) return 0;
    agent_settle(a);
    tell_backend(a);
    int rc = *text == '/'   ? agent__command(a, text, err)
             : *text == '!' ? agent__shell_line(a, text + 1, err)
                            : agent__turn(a, text, err);
    tell_backend(a);
    agent__commit(a);
    return rc;
}
