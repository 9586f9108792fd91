/*
 * Opening and closing in the right order (contract: start.h): the log gives the session its id and folder,
 * the folder holds the engine's rows and the workspace's undo objects, the agent takes engine and workspace
 * over.
 */
#include "agent/session/tell.h"
#include "agent/start.h"
#include "mcp/mcp.h"

#include <stdlib.h>
#include <string.h>

#include "base/fs.h"
#include "base/mem.h"
#include "kv/rows/rowfile.h"

/* All sessions' rows together: some ten long sessions of a 1.5B model. */
static const uint64_t most_row_bytes = UINT64_C(8) << 30;

struct agent_session {
    agent *agent;
    agent_log *log;
    agent_recall recall;
    mcp *servers; /* of the person's configuration */
    char *id, *dir, *row_file;
};

/* The tree that `dir` belongs to, for "the latest session of this tree". */
static char *root_of(const char *dir)
{
    tool_workspace *w = NULL;
    if (tool_workspace_open(&w, &(tool_workspace_options){.dir = dir}, NULL)) return base_xstrdup(dir);
    char *root = base_xstrdup(tool_workspace_root(w));
    tool_workspace_close(w);
    return root;
}

static bool goes_on(const agent_session_options *o)
{
    return o->resume || o->fork;
}

/* Its answers were never given, and of the session it has the rows alone. */
static int refuse_what_if(agent_log *l, const char *id, base_err *err)
{
    if (!agent_log_is_what_if(l, id)) return 0;
    return base_fail(err, BASE_E_USAGE,
        "%s is a what-if, and no session to go on with: \"kvist replay %s\" shows it", id, id);
}

static int fork_session(agent_session *s, const agent_session_options *o, const char *id, base_err *err)
{
    char *root = root_of(o->dir), *parent = NULL;
    int rc = agent_log_find(s->log, o->fork, root, &parent, err);
    if (!rc) rc = refuse_what_if(s->log, parent, err);
    if (!rc) rc = agent_log_fork(s->log, parent, id, err);
    free(parent);
    free(root);
    return rc;
}

static int choose_id(agent_session *s, const agent_session_options *o, base_err *err)
{
    char id[32];
    if (o->fork && (!s->log || o->resume))
        return base_fail(err, BASE_E_USAGE,
            s->log ? "--fork and --resume: one of them" : "--fork needs the log: leave out --ephemeral");
    if (o->resume && !s->log)
        return base_fail(err, BASE_E_USAGE, "--resume needs the log: leave out --ephemeral");
    if (o->resume) {
        char *root = root_of(o->dir);
        int rc = agent_log_find(s->log, o->resume, root, &s->id, err);
        free(root);
        if (!rc) rc = refuse_what_if(s->log, s->id, err);
        if (!rc) rc = agent_log_lock(s->log, s->id, err);
        return rc;
    }
    agent_log_new_id(id);
    int rc = o->fork ? fork_session(s, o, id, err) : 0;
    if (!rc) s->id = base_xstrdup(id);
    if (!rc && o->fork) rc = agent_log_lock(s->log, id, err);
    return rc;
}

char *agent_session_in_use(const agent_session_options *o)
{
    agent_log *l = NULL;
    char *id = NULL;
    if (!o->resume || o->ephemeral || agent_log_open(&l, NULL, true, NULL)) return NULL;
    char *root = root_of(o->dir);
    bool in_use = !agent_log_find(l, o->resume, root, &id, NULL) && agent_log_is_locked(l, id);
    agent_log_close(l);
    free(root);
    if (in_use) return id;
    free(id);
    return NULL;
}

static int open_engine(agent_session *s, const agent_session_options *o, atomic_bool *cancel, engine **ret,
    base_err *why_not, base_err *err)
{
    /* The fixed prompt is no session's data: an ephemeral session shares it too. */
    char *cache = o->fake_script ? NULL : base_fs_home(BASE_HOME_DATA, "rows");
    engine_options options = {.model = o->model,
        .kv = o->kv,
        .sampling = o->sampling,
        .lookup = o->lookup,
        .max_answer = o->max_tokens,
        .cancel = cancel,
        .resume = goes_on(o),
        .prompt_cache = cache,
        .budget = o->budget,
        .budget_user = o->budget_user};
    options.model.progress = o->progress;
    options.model.user = o->progress_user;
    options.model.cancel = cancel;
    options.kv.row_file = s->row_file;
    int rc;
    if (o->fake_script) {
        base_buf script = {0};
        rc = base_fs_read_given(o->fake_script, 16u << 20, &script, err);
        if (!rc)
            rc = (o->open ? o->open : engine_fake_open)(
                ret, script.data, script.len, &options, NULL, why_not, err);
        base_buf_free(&script);
    } else if (o->endpoint) {
        rc = engine_remote_open(ret, o->endpoint, &options, why_not, err);
    } else {
        rc = engine_local_open(ret, o->model_path, &options, NULL, why_not, err);
        /* Whatever is wrong with the file or the machine: there is no engine. */
        if (rc && rc != BASE_E_USAGE && rc != BASE_E_CANCELLED && rc != BASE_E_LIMIT)
            rc = err->code = BASE_E_ENGINE;
    }
    free(cache);
    return rc;
}

/*
 * Rows serve only to resume without computing: the sessions that were unused longest lose theirs, never one
 * that is open.
 */
static void trim_rows(agent_session *s)
{
    char *slash = s->dir ? strrchr(s->dir, '/') : NULL;
    if (!slash) return;
    char *folder = base_xstrndup(s->dir, (size_t)(slash - s->dir));
    uint64_t before = 0, after = 0;
    base_err err = {0};
    kv_rowfile_trim(folder, UINT64_MAX, &before, NULL);
    int rc = kv_rowfile_trim(folder, most_row_bytes, &after, &err);
    if (after < before)
        agent__notice(s->agent,
            "removed %llu MiB of saved rows of the sessions unused longest (%llu GiB are kept): resuming one "
            "of them computes its rows again",
            (unsigned long long)(before - after) >> 20, (unsigned long long)most_row_bytes >> 30);
    if (rc) agent__notice(s->agent, "%s", err.msg);
    free(folder);
}

/* A file that cannot be read costs the tools it names, and nothing else. */
static void open_servers(agent_session *s, base_buf *notes)
{
    base_err err = {0};
    char *path = base_fs_home(BASE_HOME_CONFIG, "mcp.json");
    if (mcp_open(&s->servers, path, notes, &err))
        base_buf_printf(notes, "no MCP server is used: %s\n", err.msg);
    free(path);
}

static bool show_event(void *user, uint32_t turn, const agent_event *e)
{
    const agent_host *host = user;
    host->event(host->user, e);
    return true;
}

/* What was said is there to be read while the model loads. */
static int show_log(const agent_session *s, const agent_host *host, base_err *err)
{
    return agent_log_read(s->log, s->id, AGENT_LOG_FAIL, show_event, (void *)host, err);
}

/* Where its rows go. The folder comes with the log's row: there is none without a session in it. */
static void name_folder(agent_session *s)
{
    base_buf rows = {0};
    s->dir = agent_log_session_dir(s->log, s->id);
    base_buf_printf(&rows, "%s/rows", s->dir);
    s->row_file = base_buf_take(&rows);
}

static int open_tree(agent_session *s, const agent_session_options *o, tool_workspace **ret, base_err *err)
{
    const tool_workspace_options options = {.dir = o->dir,
        .store = s->dir,
        .allow_read = o->allow_read,
        .ignore = o->ignore,
        .recall = agent_recall_run,
        .recall_user = &s->recall,
        .outside = mcp_has_servers(s->servers) ? &mcp_outside : NULL,
        .outside_user = s->servers};
    return tool_workspace_open(ret, &options, err);
}

/* notes: for the session's first lines; why_not: why rows of its last time are not there. Both borrowed. */
static agent_options options_of(
    agent_session *s, const agent_session_options *o, const char *notes, const base_err *why_not)
{
    agent_options ret = {.mode = o->mode,
        .id = s->id,
        .resume = goes_on(o),
        .log = s->log,
        .recall = &s->recall,
        .servers = s->servers,
        .keep_budget = o->keep_budget,
        .why_not = why_not,
        .context_tokens = o->context_tokens,
        .max_steps = o->max_steps,
        .max_tokens = o->max_tokens,
        .max_thought = o->max_thought,
        .stop = o->stop,
        .schema = o->schema,
        .schema_text = o->schema_text,
        .settings = o->settings,
        .notes = notes,
        .ability = o->ability,
        .tries = o->tries};
    memcpy(ret.configured, o->configured, sizeof ret.configured);
    return ret;
}

int agent_session_open(agent_session **ret, const agent_session_options *o, const agent_host *host,
    atomic_bool *cancel, base_err *err)
{
    agent_session *s = base_xcalloc(1, sizeof *s);
    engine *e = NULL;
    tool_workspace *w = NULL;
    base_err why_not = {0};
    int rc = o->ephemeral ? 0 : agent_log_open(&s->log, NULL, false, err);
    if (!rc) rc = choose_id(s, o, err);
    if (!rc && s->log) name_folder(s);
    base_buf notes = {0};
    if (o->notes) base_buf_puts(&notes, o->notes);
    if (!rc) open_servers(s, &notes);
    /* The tree first: a wrong folder is told before a model loads for seconds. */
    if (!rc) rc = open_tree(s, o, &w, err);
    if (!rc && o->show_log && goes_on(o) && s->log && host && host->event) rc = show_log(s, host, err);
    if (!rc && host && host->named) host->named(host->user, s->id);
    if (!rc) rc = open_engine(s, o, cancel, &e, &why_not, err);
    if (rc) {
        tool_workspace_close(w);
        if (s->dir && o->fork) agent_log_delete(s->log, s->id, NULL); /* nothing was asked in it */
        if (s->dir && !goes_on(o)) base_fs_remove(s->dir, NULL);
    } else {
        if (o->progress) o->progress(o->progress_user, 0, "reading the fixed prompt");
        const agent_options options = options_of(s, o, notes.data, &why_not);
        rc = agent_open(&s->agent, e, w, &options, host, cancel, err);
    }
    base_buf_free(&notes);
    if (rc) {
        agent_session_close(s);
        return rc;
    }
    trim_rows(s);
    *ret = s;
    return 0;
}

void agent_session_close(agent_session *s)
{
    if (!s) return;
    if (s->agent) agent_end(s->agent);
    mcp_close(s->servers);
    agent_close(s->agent);
    agent_log_close(s->log);
    free(s->id);
    free(s->dir);
    free(s->row_file);
    free(s);
}

agent *agent_session_agent(agent_session *s)
{
    return s->agent;
}
