/*
 * The functions of commands.def that stand in files of their own, and what they share. A function is given what stands behind
 * the command's name, without blanks around it; what it says is an event.
 */
#ifndef KVIST_AGENT_COMMANDS_H
#define KVIST_AGENT_COMMANDS_H

#include "agent/session/session_state.h"

typedef int command_fn(agent *a, const char *arguments, base_err *err);

/* --- row_commands.c: what the model reads --- */
command_fn agent__run_pin, agent__run_unpin, agent__run_drop, agent__run_evict, agent__run_promote,
    agent__run_undo_evict, agent__run_budget, agent__run_context, agent__run_why;

/* --- tree_commands.c: what changes the tree --- */
command_fn agent__run_commit, agent__run_undo, agent__run_rename, agent__run_move, agent__run_delete,
    agent__run_private, agent__run_inline, agent__run_signature;

#endif
