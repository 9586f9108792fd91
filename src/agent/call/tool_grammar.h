/* The table of tools as the grammar of calls takes it: for a session's agent, and for whoever executes a log again. */
#ifndef KVIST_AGENT_CALL_TOOL_GRAMMAR_H
#define KVIST_AGENT_CALL_TOOL_GRAMMAR_H

#include <stdbool.h>
#include <stdint.h>

#include "model/text/grammar.h"
#include "tools/tool.h"

enum { AGENT_GRAMMAR_TOOLS = 16, AGENT_GRAMMAR_ARGUMENTS = 64 };

/* Lists of names end with NULL. Strings and lists are the caller's, and have to outlive the grammar's making. */
typedef struct agent_grammar_options {
    model_tool_style style;
    bool (*offers)(const void *user, const tool_entry *t); /* NULL: every tool */
    const void *user;
    const char *const *symbols; /* what an existing definition may be called; NULL or empty: anything */
    const char *const
        *outside; /* tools of MCP servers; empty: there are none; NULL: not known, any name will do */
} agent_grammar_options;

typedef struct agent_tool_grammar {
    model_grammar_tool tools[AGENT_GRAMMAR_TOOLS];
    model_grammar_argument arguments[AGENT_GRAMMAR_ARGUMENTS];
    uint32_t n, n_arguments;
} agent_tool_grammar;

/* Fills ret; its tools point into its arguments, so it is not to be moved. */
void agent_tool_grammar_make(agent_tool_grammar *ret, const agent_grammar_options *o);

#endif
