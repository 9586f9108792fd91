/*
 * The agent: one session's turns. It owns the engine, the workspace and the log, runs everything on the calling thread (the
 * engine thread) and tells what happens as events. Approvals are asked of the host and block that thread.
 */
#ifndef KVIST_AGENT_AGENT_H
#define KVIST_AGENT_AGENT_H

#include <stdatomic.h>

#include "agent/engine.h"
#include "agent/event.h"
#include "tools/tool.h"

typedef enum agent_mode { AGENT_MODE_PLAN, AGENT_MODE_ASK, AGENT_MODE_EDITS, AGENT_MODE_ALL } agent_mode;
const char *agent_mode_word(agent_mode m);
bool agent_mode_parse(const char *word, agent_mode *ret);

typedef enum agent_answer {
    AGENT_YES,
    AGENT_ALWAYS,
    AGENT_NO,
    AGENT_EDIT
} agent_answer; /* ALWAYS: this exact command, this session */
typedef struct agent_decision {
    agent_answer answer;
    char *text; /* NO: the reason; EDIT: the command or new text instead; heap or NULL; the agent frees */
} agent_decision;

typedef struct agent_host {
    void *user;
    agent_event_fn *event;
    /* Asked with the approval_request event already emitted. NULL: headless, everything that needs asking is denied. */
    agent_decision (*approve)(void *user, const agent_event *request);
} agent_host;

typedef struct agent_log agent_log; /* agent/log.h */

typedef struct agent_options {
    agent_mode mode;
    const char *dir;
    const char
        *session;   /* resume this id (a prefix is enough), "" the latest of this tree; NULL: a new one */
    agent_log *log; /* NULL: --ephemeral */
    uint32_t context_tokens; /* retrieval budget; 0: 1500; UINT32_MAX: no retrieval */
    uint32_t max_steps;      /* tool calls a turn; 0: 24 */
    uint32_t max_tokens;     /* per answer; 0: 1024 */
} agent_options;

typedef struct agent agent;

/* Takes the engine and the workspace over (closed by agent_close, also on failure). */
int agent_open(agent **ret, engine *e, tool_workspace *w, const agent_options *options,
    const agent_host *host, atomic_bool *cancel, base_err *err);
void agent_close(agent *a);
const char *agent_session_id(const agent *a);
agent_mode agent_get_mode(const agent *a);
void agent_set_mode(agent *a, agent_mode mode);

/* One line from the person: a request, "/command ...", or "!shell line". Errors of the turn are events too. */
int agent_submit(agent *a, const char *text, base_err *err);

/* The slash commands, for help and completion. */
typedef struct agent_command {
    const char *name, *arguments, *about;
} agent_command;
const agent_command *agent_commands(uint32_t *ret_n);

#endif
