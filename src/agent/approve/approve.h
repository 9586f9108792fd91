/* What a person is asked, and what they allowed: once, for the session, or for good in this tree. */
#ifndef KVIST_AGENT_APPROVE_H
#define KVIST_AGENT_APPROVE_H

#include "agent/session/session_state.h"

/* --- asking.c --- */
/* The host has to have somebody to ask. Free the decision's text. */
agent_decision agent__ask_person(agent *a, const agent_event *request);
/*
 * What needs a yes in a run where nobody is at hand: there a line may be anybody's (a script hands an issue on). Tells that it was
 * denied; BASE_E_STATE with the sentence.
 */
int agent__deny_unasked(agent *a, const char *sentence, base_err *err);
/* For the session, or for good in this tree; the text is what a yes is kept as (agent_allowance for a command). */
bool agent__is_always_allowed(const agent *a, const char *allowance);
void agent__allow_always(agent *a, const char *allowance, bool is_lasting);
/* agent_allowance in this session's tree. The caller frees. */
char *agent__allowance(const agent *a, const char *command, bool in_copy);
/* Why a command that was allowed for longer than once asks again: "run.sh is not what it was ...". NULL: it was not. The caller frees. */
char *agent__why_again(const agent *a, const char *command);

/* --- configured.c --- */
/*
 * The command that the configuration names for this, where it counts: a tree's command has to be approved, and
 * that is asked here (y: this turn, a: the session, A: until it changes). NULL: none is named, it was not
 * approved (said once a turn), or nothing runs in this mode. What it returns runs without a further question.
 */
const char *agent__configured(agent *a, agent_configured which);
const char *agent__configured_word(agent_configured which); /* "test" */
/* By any yes for longer than once, or by the configuration; a yes for the tree covers a copy. */
bool agent__is_allowed_command(const agent *a, const char *command, bool in_copy);
/* a line each, with what is still to be asked */
void agent__describe_configured(const agent *a, base_buf *out);

#endif
