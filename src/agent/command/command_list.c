/*
 * What each slash command is called, takes and does: for help, completion, and the names that a skill cannot
 * have. Apart from commands.c, so that skills can ask without knowing what the commands do.
 */
#include "agent/agent.h"

static const agent_command commands[] = {
#define COMMAND(name, function, who, instead, arguments, about) {name, arguments, about},
#include "agent/command/commands.def"
#undef COMMAND
};

const agent_command *agent_commands(uint32_t *ret_n)
{
    *ret_n = sizeof commands / sizeof *commands;
    return commands;
}
