/*
 * The agent: one session's turns. It owns the engine, the workspace and the log, runs everything on the
 * calling thread (the engine thread) and tells what happens as events. Approvals are asked of the host and
 * block that thread.
 */
#ifndef KVIST_AGENT_AGENT_H
#define KVIST_AGENT_AGENT_H

#include <stdatomic.h>

#include "agent/engine/engine.h"
#include "agent/log/event.h"
#include "tools/tool.h"

typedef enum agent_mode { AGENT_MODE_PLAN, AGENT_MODE_ASK, AGENT_MODE_EDITS, AGENT_MODE_ALL } agent_mode;
const char *agent_mode_word(agent_mode m);
bool agent_mode_parse(const char *word, agent_mode *ret);

typedef enum agent_answer {
    AGENT_YES,
    AGENT_ALWAYS,      /* this exact command, this session */
    AGENT_ALWAYS_HERE, /* this exact command in this tree, for good (agent/approve/approvals.h) */
    AGENT_NO,
    AGENT_EDIT
} agent_answer;
typedef struct agent_decision {
    agent_answer answer;
    char *text; /* NO: the reason; EDIT: the command or new text instead; heap or NULL; the agent frees */
} agent_decision;

typedef struct agent_host {
    void *user;
    agent_event_fn *event;
    /* The session has its id and its tree, and what was said in it is told; its engine opens now. May be NULL. */
    void (*named)(void *user, const char *id);
    /*
     * Asked with the approval_request event already emitted. NULL: headless, everything that needs asking is
     * denied.
     */
    agent_decision (*approve)(void *user, const agent_event *request);
} agent_host;

enum { AGENT_MOST_TRIES = 32, AGENT_USUAL_TRIES = 6 };
#define AGENT_TRIES_BY_MODE UINT32_MAX /* as many as usual in the modes edits and all, none in the others */

/* The commands that a configuration may name for a tree. */
typedef enum agent_configured {
    AGENT_CONFIGURED_TEST,
    AGENT_CONFIGURED_LINT,
    AGENT_N_CONFIGURED
} agent_configured;
typedef struct agent_configured_command {
    const char *command; /* of the shell; NULL: none is named */
    const char *source;  /* where it is written, for a person: ".kvist/config:3" */
    bool is_typed;       /* on the command line: it needs no approval */
} agent_configured_command;

typedef struct agent_log agent_log; /* agent/log/log.h */
typedef struct mcp mcp;             /* mcp/mcp.h */

typedef struct agent agent;

/*
 * The recall tool's way to the agent: give agent_recall_run and a holder to tool_workspace_open, the same
 * holder here.
 */
typedef struct agent_recall {
    agent *agent;
} agent_recall;
int agent_recall_run(void *recall, const char *query, base_buf *out, base_err *err); /* a tool_recall_fn */

typedef struct agent_options {
    agent_mode mode;
    const char *id;       /* the session's id, chosen by the caller (its folder must be known first) */
    bool resume;          /* the log has it already: go on behind it */
    agent_log *log;       /* NULL: --ephemeral; must outlive the agent */
    agent_recall *recall; /* may be NULL */
    mcp *servers;         /* of the workspace's tool_outside; NULL: none; must outlive the agent */
    /* resume: under the budget that the log had last, whatever the engine was opened with */
    bool keep_budget;
    /* resume: why the engine's snapshot did not serve; NULL or code BASE_OK: it did */
    const base_err *why_not;
    uint32_t context_tokens; /* retrieval budget; 0: 1500; UINT32_MAX: no retrieval */
    uint32_t max_steps;      /* tool calls a turn; 0: 24 */
    uint32_t max_tokens;     /* per answer; 0: 1024 */
    uint32_t max_thought;    /* of it in thoughts, then they are ended; 0: half of max_tokens */
    const char *const *stop; /* strings that end an answer, NULL-terminated; live as long as the agent */
    const char *ability;     /* "small" or "strong": what the model is offered; NULL: as ability.h finds */
    /* every request's answer is JSON of it; NULL: words. Lives as long as the agent */
    const base_schema *schema;
    const char *schema_text; /* as it stands in its file */
    uint32_t tries;          /* candidates where a test can judge; 0 and 1: none; AGENT_TRIES_BY_MODE */
    const char *settings; /* what /settings shows: "name\tvalue\tsource" a line; lives as long as the agent */
    const char *notes;    /* sentences that are told at the start, a line each; NULL: none */
    agent_configured_command configured[AGENT_N_CONFIGURED]; /* strings live as long as the agent */
} agent_options;

/*
 * Takes the engine and the workspace over (closed by agent_close, also on failure). Computes the fixed prompt
 * unless it is there, or catches up with the log of a resumed session. agent/start.h does everything that
 * comes before.
 */
int agent_open(agent **ret, engine *e, tool_workspace *w, const agent_options *options,
    const agent_host *host, atomic_bool *cancel, base_err *err);
/* Emits `end` and commits; nothing is emitted afterwards (the host may go). agent_close does it otherwise. */
void agent_end(agent *a);
void agent_close(agent *a);
const char *agent_session_id(const agent *a);
void agent_get_stats(const agent *a, kv_stats *ret);
/* A ledger event that says where a session stands; the numbers of its turn are 0. */
agent_event agent_ledger_of(const kv_stats *s);
/* "all" is refused where the sandbox cannot confine */
int agent_set_mode(agent *a, agent_mode mode, base_err *err);
bool agent_reached_limit(const agent *a); /* the turn ended where --max-steps or the context did */
/* something that needed asking was denied because nobody could be asked */
bool agent_was_denied(const agent *a);

/*
 * One line from the person: a request, "/command ...", or "!shell line". Errors of the turn are events too.
 * The caller resets *cancel.
 */
int agent_submit(agent *a, const char *text, base_err *err);
/*
 * What a turn leaves for when nobody waits: the snapshot of its rows. The log is committed before, so a
 * process that dies first loses time, no turn. agent_submit and agent_end do it where the caller did not.
 */
void agent_settle(agent *a);
/*
 * For when nobody waits: what the next token reads is looked for, which behind an opened long session takes some tenths of a
 * second. Ends soon after *cancel is set.
 */
void agent_make_ready(agent *a);
/*
 * For when nobody waits for longer: that, and what has to be found out once per model. Ends soon after *cancel is set,
 * and may be called again.
 */
typedef void agent_idle_fn(void *user, const char *what);   /* what is done now; NULL: nothing any more */
void agent_idle(agent *a, agent_idle_fn *tell, void *user); /* tell may be NULL */

/* The slash commands, for help and completion. */
typedef struct agent_command {
    const char *name, *arguments, *about;
} agent_command;
const agent_command *agent_commands(uint32_t *ret_n);

#endif
