/*
 * A session's beginning and end: the tools that the grammar knows, the fixed prompt, the snapshot, another
 * session in place of this one.
 */
#include <stdlib.h>
#include <string.h>

#include "agent/asked/asked.h"
#include "agent/call/prompt.h"
#include "agent/call/tool_grammar.h"
#include "agent/judge/judge.h"
#include "agent/lifetime/lifetime.h"
#include "agent/log/log.h"
#include "agent/repair/attempt.h"
#include "agent/retrieve/retrieve.h"
#include "agent/sequence/sequence.h"
#include "agent/session/tell.h"
#include "mcp/mcp.h"
#include "base/clock.h"
#include "base/mem.h"

enum { SCHEMA = 1 };

/* --- saving --------------------------------------------------------------------------------------------- */

/* Commit first: then the log is never behind the snapshot, and catching up has what it needs (resume.c). */
void agent__save(agent *a)
{
    agent__commit(a);
    base_err err = {0};
    kv_stats s;
    const bool keeps = a->log && a->engine->ops->save;
    if (keeps && a->engine->ops->save(a->engine, &err)) {
        agent__notice(
            a, "the session's rows could not be saved (%s): resuming will compute them again", err.msg);
    } else if (keeps) {
        a->engine->ops->stats(a->engine, &s);
        agent__emit(a, &(agent_event){.type = AGENT_EVENT_snapshot,
                           .snapshot = {.turn = a->turn, .n = s.n_tokens, .bytes = (int64_t)s.file_bytes}});
    }
    agent__commit(a);
}

/* --- beginning ------------------------------------------------------------------------------------------ */

static bool is_offered(const void *user, const tool_entry *t)
{
    const agent *a = user;
    return agent_prompt_offers(t, a->info.strong) || t->models == TOOL_ON_REQUEST;
}

int agent__offer_tools(agent *a, base_err *err)
{
    enum { MAX_SYMBOLS = 100000 };
    static const char *const none[] = {NULL};
    if (!(a->engine->can & ENGINE_GRAMMAR)) return 0;
    char **outside = a->servers ? mcp_names(a->servers) : NULL;
    char **symbols = code_index_names(tool_workspace_index(a->workspace), MAX_SYMBOLS);
    agent_tool_grammar grammar;
    agent_tool_grammar_make(&grammar, &(agent_grammar_options){.style = a->info.tools,
                                          .offers = is_offered,
                                          .user = a,
                                          .symbols = (const char *const *)symbols,
                                          .outside = outside ? (const char *const *)outside : none});
    const char **files = NULL;
    size_t n_files = 0;
    if (tool_workspace_files(a->workspace, &files, &n_files)) n_files = 0;
    const char **paths = base_xcalloc(n_files + 1, sizeof *paths);
    if (n_files) memcpy(paths, files, n_files * sizeof *paths);
    int rc = a->engine->ops->set_tools(a->engine, grammar.tools, grammar.n, n_files ? paths : NULL, err);
    free(files);
    free(paths);
    code_index_paths_free(symbols);
    code_index_paths_free(outside);
    a->offered = code_index_chunks(tool_workspace_index(a->workspace));
    return rc;
}

/* What whoever computes the session again has to know (src/whatif), beside what `session` has fields for. */
static void put_settings(const agent *a, base_buf *out)
{
    base_buf_puts(out, "{\"backend\":");
    base_json_put_str(out, a->info.backend, strlen(a->info.backend));
    base_buf_puts(out, ",\"quantisation\":");
    base_json_put_str(out, a->info.quantisation, strlen(a->info.quantisation));
    base_buf_printf(
        out, ",\"context_tokens\":%u,\"max_tokens\":%u", a->settings.context_tokens, a->settings.max_tokens);
    base_buf_printf(out, ",\"temperature\":%g", (double)a->info.sampling.temperature);
    if (a->info.isa) {
        base_buf_puts(out, ",\"isa\":");
        base_json_put_str(out, a->info.isa, strlen(a->info.isa));
    }
    if (a->engine->session) {
        base_buf_printf(out, ",\"repair\":%d,\"kv_set\":[", a->info.repair);
        for (size_t i = 0; a->info.set && a->info.set[i]; i++) {
            if (i) base_buf_putc(out, ',');
            base_json_put_str(out, a->info.set[i], strlen(a->info.set[i]));
        }
        base_buf_putc(out, ']');
    }
    base_buf_putc(out, '}');
}

static void emit_session(agent *a)
{
    base_buf branch = {0}, settings = {0};
    tool_workspace_branch(a->workspace, &branch);
    kv_stats s;
    a->engine->ops->stats(a->engine, &s);
    put_settings(a, &settings);
    agent__emit(a, &(agent_event){.type = AGENT_EVENT_session,
                       .session = {.schema = SCHEMA,
                           .id = a->telling.id,
                           .parent = a->telling.parent,
                           .model = a->info.model,
                           .model_hash = a->info.model_hash,
                           .policy = a->info.policy,
                           .budget = s.budget,
                           .until = s.until,
                           .n_ctx = s.endless ? 0 : a->info.n_ctx,
                           .n_lanes = a->info.n_all_lanes,
                           .windows = a->info.windows,
                           .window = a->info.window,
                           .row_bytes = a->info.row_bytes,
                           .mode = agent_mode_word(a->settings.mode),
                           .root = tool_workspace_root(a->workspace),
                           .branch = branch.data ? branch.data : "",
                           .time_ms = base_clock_wall_ms(),
                           .version = KVIST_VERSION,
                           .settings = settings.data}});
    base_buf_free(&branch);
    base_buf_free(&settings);
}

static int append_fixed(agent *a, model_role role, const agent_text *t, base_err *err)
{
    int rc = agent__open_message(a, (int)role, err);
    return rc ? rc : agent__append(a, t, NULL, err);
}

/* Tokens of a message, with what the template writes around it. */
static int count_message(const agent *a, model_role role, const agent_text *t, model_ids *ids, base_err *err)
{
    const engine_ops *ops = a->engine->ops;
    int rc = ops->scaffold(a->engine, ENGINE_BEGIN, role, ids, err);
    if (!rc && t->has_marks)
        rc = agent__encode_marked(a, t->text, t->n, ids, NULL, err);
    else if (!rc)
        rc = ops->encode(a->engine, t->text, t->n, ids, err);
    return rc ? rc : ops->scaffold(a->engine, ENGINE_END, role, ids, err);
}

typedef struct fixed {
    agent_prompt prompt;
    base_buf instructions;
} fixed;

static agent_text part_of(const agent *a, const fixed *f, uint32_t i)
{
    const char *text = f->prompt.parts[i].text;
    return (agent_text){.origin = KV_ORIGIN_SYSTEM,
        .text = text,
        .n = strlen(text),
        .label = "prompt",
        .has_marks = model_tools_are_marked(a->info.tools)};
}

static agent_text instructions_of(const fixed *f)
{
    return (agent_text){.origin = KV_ORIGIN_INSTRUCTIONS,
        .text = f->instructions.data,
        .n = f->instructions.len,
        .label = "AGENTS.md"};
}

/* The cache refuses the first part that does not fit. The budget that is named has room for all of them. */
static int refuse_budget(const agent *a, const fixed *f, int rc, base_err *err)
{
    kv_stats s;
    model_ids ids = {0};
    a->engine->ops->stats(a->engine, &s);
    if (rc != BASE_E_LIMIT || !a->engine->session || !s.budget) return rc;
    int counted = a->engine->ops->scaffold(a->engine, ENGINE_START, 0, &ids, NULL);
    for (uint32_t i = 0; i < f->prompt.n && !counted; i++) {
        const agent_text t = part_of(a, f, i);
        counted = count_message(a, f->prompt.parts[i].role, &t, &ids, NULL);
    }
    const agent_text t = instructions_of(f);
    if (t.n && !counted) counted = count_message(a, MODEL_ROLE_SYSTEM, &t, &ids, NULL);
    const uint32_t n = (uint32_t)ids.n;
    model_ids_free(&ids);
    if (!counted) (void)kv_session_check_fixed(n, s.budget, err);
    return rc;
}

int agent__begin_session(agent *a, base_err *err)
{
    emit_session(a);
    fixed f = {.instructions = {0}};
    agent_prompt_build(a->info.tools, a->info.strong, &f.prompt);
    agent__read_instructions(a, &f.instructions);
    a->transcript.open_role = -1;
    agent__set_turn(a, a->turn);
    int rc = 0;
    for (uint32_t i = 0; i < f.prompt.n && !rc; i++) {
        const agent_text t = part_of(a, &f, i);
        rc = append_fixed(a, f.prompt.parts[i].role, &t, err);
    }
    if (!rc) rc = agent__open_message(a, -1, err);
    kv_stats s;
    a->engine->ops->stats(a->engine, &s);
    if (!rc && a->engine->ops->save_prefix &&
        s.reused <
            s.n_tokens) { /* a shared prefix is a convenience: a failure costs only the next session's time */
        base_err why = {0};
        if (a->engine->ops->save_prefix(a->engine, s.n_tokens, &why))
            agent__notice(a,
                "what every session begins with could not be kept, "
                "so the next start takes some seconds more: %s",
                why.msg);
    }
    const agent_text t = instructions_of(&f);
    if (!rc && t.n) rc = append_fixed(a, MODEL_ROLE_SYSTEM, &t, err);
    if (!rc && t.n) rc = agent__open_message(a, -1, err);
    rc = refuse_budget(a, &f, rc, err);
    agent_prompt_free(&f.prompt);
    base_buf_free(&f.instructions);
    agent__commit(a);
    return rc;
}

/* --- ending --------------------------------------------------------------------------------------------- */

void agent_settle(agent *a)
{
    if (a->unsaved) agent__save(a);
    a->unsaved = false;
}

void agent__end_session(agent *a)
{
    agent_settle(a);
    agent__emit(a, &(agent_event){.type = AGENT_EVENT_end,
                       .end = {.session = a->telling.id, .turns = a->turn, .status = "closed"}});
    agent__commit(a);
    /* Nothing was asked: nothing to resume, nothing to list. */
    agent_log_tail tail = {0};
    if (a->log && !agent_log_get_tail(a->log, a->telling.id, &tail, NULL) && tail.turn == 0)
        agent_log_delete(a->log, a->telling.id, NULL);
}

int agent__restart(agent *a, const char *parent, base_err *err)
{
    char id[32];
    agent_log_new_id(id);
    agent__end_session(a);
    base_buf rows = {0};
    if (a->log) {
        char *dir = agent_log_session_dir(a->log, id);
        base_buf_printf(&rows, "%s/rows", dir);
        free(dir);
    }
    free(a->telling.id);
    free(a->telling.parent);
    a->telling.id = base_xstrdup(id);
    a->telling.parent = base_xstrdup(parent);
    agent__clear_session(a);
    int rc = a->log
                 ? agent_log_create(a->log, id, parent, tool_workspace_root(a->workspace), a->info.model, err)
                 : 0;
    if (!rc) rc = a->engine->ops->restart(a->engine, rows.data, err);
    a->telling.seq = 0;
    if (!rc) rc = agent__begin_session(a, err);
    base_buf_free(&rows);
    return rc;
}

void agent__clear_session(agent *a)
{
    for (size_t i = 0; i < a->transcript.n_segments; i++) {
        free(a->transcript.segments[i].label);
        free(a->transcript.segments[i].path);
    }
    a->transcript.n_segments = a->made.n_calls = a->ledger.n_turns = 0;
    a->ledger.sums = (agent_sums){0};
    a->turn = 0;
    a->thoughts.n = 0;
    a->transcript.open_role = -1;
    agent__truncate_aside(a, 0);
    agent__asked_free(a);
    agent__fix_free(a);
    agent__forget_values(a);
    free(a->test.command);
    free(a->test.approved);
    free(a->request);
    free(a->answered);
    agent__forget_which(a);
    a->test.command = a->test.approved = a->request = a->answered = NULL;
    base_buf_clear(&a->notes.shell);
    base_buf_clear(&a->notes.map);
    base_buf_clear(&a->notes.skill);
    mcp_forget_told(a->servers);
}
