/*
 * From options to a session that can take requests: log, session id and folder, engine, workspace, agent; and
 * the way back. One place for the order in which they open, so that the shell, -p and tests open alike.
 */
#ifndef KVIST_AGENT_START_H
#define KVIST_AGENT_START_H

#include "agent/agent.h"
#include "agent/engine/engine_remote.h"
#include "agent/log/log.h"

typedef struct agent_session_options {
    const char *dir;               /* the tree */
    const char *const *allow_read; /* what commands may read outside of it, NULL-terminated; NULL: nothing */
    const char *const *ignore; /* what of the tree is not listed (tool_workspace_options); NULL: nothing */
    const char *settings;      /* as agent_options */
    const char *notes;         /* as agent_options */
    agent_configured_command configured[AGENT_N_CONFIGURED]; /* as agent_options */
    const char *model_path;                                  /* unless fake_script or endpoint */
    const remote_endpoint_options *endpoint;                 /* an engine across HTTP; NULL: a local one */
    const char *fake_script; /* file of a scripted engine (tests); NULL: the real one */
    engine_open_fn *open;    /* which scripted engine; NULL: engine_fake_open */
    const char *resume;      /* a session's id or prefix, "" the latest of this tree; NULL: a new session */
    /* a second session with all that this one has (id or prefix), in place of resume; NULL: none */
    const char *fork;
    bool ephemeral; /* no log, nothing on disk */
    bool show_log;  /* resume: the host gets every logged event first, while the engine is still closed, and
                      rebuilds its screen from them (not -p) */
    agent_mode mode;
    model_options model; /* progress is set from below */
    kv_options kv;       /* budget is asked of `budget` once the model is known; row_file is ours */
    model_sampling sampling;
    bool lookup; /* as engine_options */
    int (*budget)(const void *user, uint32_t n_ctx, uint32_t row_bytes, kv_limit measured, kv_limit *ret,
        base_err *err);
    const void *budget_user;
    bool keep_budget; /* resume: the budget that the session had counts, not this one */
    uint32_t context_tokens, max_steps, max_tokens, max_thought, tries; /* as agent_options */
    const char *ability;                                                /* the same */
    const char *const *stop;                                            /* as agent_options */
    const base_schema *schema;                                          /* as agent_options */
    const char *schema_text;                                            /* as agent_options */
    void (*progress)(void *user, double share, const char *what); /* while the model loads; may be NULL */
    void *progress_user;
} agent_session_options;

typedef struct agent_session agent_session;

/* On failure nothing stays open. The options' strings must outlive the session. */
int agent_session_open(agent_session **ret, const agent_session_options *options, const agent_host *host,
    atomic_bool *cancel, base_err *err);
void agent_session_close(agent_session *s); /* NULL is fine */

/*
 * The session that `resume` means, when another process has it open: it can be looked at only. The caller
 * frees; NULL: not so.
 */
char *agent_session_in_use(const agent_session_options *options);
agent *agent_session_agent(agent_session *s);

#endif
