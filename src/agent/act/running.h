/*
 * One call under way, whoever makes it (the model, a person's line, the program's own tests): previewed, permitted by
 * the mode or the person, run, and told as events. What a call means for the session (repetitions, attempts, stale
 * text) is act.c's.
 */
#ifndef KVIST_AGENT_RUNNING_H
#define KVIST_AGENT_RUNNING_H

#include "agent/session/session_state.h"

typedef struct agent_running {
    agent *a;
    const tool_entry *tool;
    const char *name;
    base_json_doc *own_arguments; /* the person's edit of the command */
    char *own_payload;
    tool_call call;
    tool_preview preview;
    tool_result result;
    tool_limits limits;
    base_buf output; /* of a child, held back to whole UTF-8 */
    /* of a test that the program runs again: behind what ("the change"); NULL: any other call */
    const char *again;
    bool has_run;         /* it was permitted, and the tool was called */
    bool change_approved; /* with again: the change before it was approved by the person */
    bool said_yes;        /* the person approved exactly this call, or their edit of it */
} agent_running;

/* A call of the tool `name`; arguments and payload are borrowed until its end. agent__running_end in every case. */
agent_running agent__running_begin(agent *a, const char *name, const base_json *arguments, base_str payload);
/* A shell command as such a call. An error: it cannot be written as JSON; agent__running_end all the same. */
int agent__running_begin_command(agent *a, const char *command, agent_running *ret, base_err *err);
/* Arguments of its own, as JSON. */
int agent__running_set_arguments(agent_running *r, const char *json, base_err *err);
void agent__running_end(agent_running *r);

/* The result without a run: this status and this text. */
void agent__running_say(agent_running *r, tool_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* The command of a shell call; NULL: it is another tool's. */
const char *agent__running_command(const agent_running *r);

/* What it would do, for the question; a call that cannot work is settled by that. */
int agent__running_prepare(agent_running *r, base_err *err);
/* May it run? A no settles it. */
typedef int agent_permit_fn(agent_running *r, base_err *err);
int agent__running_permit(agent_running *r, base_err *err); /* by mode, lasting approvals, and the person */
/* A prepared call: told, permitted, run, and its result told. An error is one of the session, not of the tool. */
int agent__running_carry_out(agent_running *r, agent_permit_fn *permit, base_err *err);

/* --- refuse.c --- */
/* Does something speak against the change, before it is prepared? Then the result says what, and what to do instead. */
bool agent__is_refused(agent_running *r);

#endif
