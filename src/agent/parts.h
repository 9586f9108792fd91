/*
 * What those of the agent's files share that stand in no room yet.
 */
#ifndef KVIST_AGENT_PARTS_H
#define KVIST_AGENT_PARTS_H

#include "agent/agent.h"
#include "agent/call/call.h"
#include "agent/call/channels.h"
#include "agent/act/guard.h"
#include "agent/log/log.h"
#include "agent/log/moved.h"
#include "agent/words/operation_words.h"
#include "agent/call/prompt.h"
#include "agent/words/token_map.h"
#include "agent/words/request_words.h"
#include "kv/core/budget.h"
#include "mcp/mcp.h"
#include "agent/session/session_state.h"
#include "agent/session/tell.h"
#include "agent/session/segments.h"
#include "agent/session/ledger.h"
#include "agent/approve/approve.h"
#include "agent/sequence/sequence.h"
#include "agent/retrieve/retrieve.h"
#include "agent/judge/judge.h"
#include "agent/asked/asked.h"
#include "agent/repair/attempt.h"
#include "agent/operation/operation.h"
#include "agent/lifetime/lifetime.h"
#include "agent/act/act.h"
#include "agent/turn/turn.h"

/* /NAME where no command of ours has that name. BASE_E_NOT_FOUND, and nothing is told: there is none. */
int agent__use_skill(agent *a, const char *name, size_t n, const char *arguments, base_err *err);
void agent__list_skills(agent *a, base_buf *out); /* for /help: "/name\tabout" a line */
int agent__git_commit(agent *a, base_err *err);   /* /commit */
/* A model's answer as a message: without fences and labels around it, lines without blanks at their ends. */
void agent_commit_clean(const char *answer, base_buf *ret);
int agent__command(agent *a, const char *line, base_err *err);

#endif
