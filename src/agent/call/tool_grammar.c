/* Tools -> grammar (contract: tool_grammar.h). */
#include "agent/call/tool_grammar.h"

#include <string.h>

#include "agent/call/call_xml.h"

static void add_argument(agent_tool_grammar *g, const char *name, model_argument_type type, bool required,
    const char *const *choices)
{
    if (g->n_arguments == AGENT_GRAMMAR_ARGUMENTS) return;
    g->arguments[g->n_arguments++] = (model_grammar_argument){name, type, required, choices};
    g->tools[g->n].n_arguments++;
}

static void add_tool(agent_tool_grammar *g, const tool_entry *t, const agent_grammar_options *o)
{
    static const model_argument_type types[] = {
        [TOOL_ARGUMENT_STRING] = MODEL_ARGUMENT_STRING,
        [TOOL_ARGUMENT_INTEGER] = MODEL_ARGUMENT_INTEGER,
        [TOOL_ARGUMENT_BOOLEAN] = MODEL_ARGUMENT_BOOLEAN,
        [TOOL_ARGUMENT_CHOICE] = MODEL_ARGUMENT_CHOICE,
        [TOOL_ARGUMENT_PATH] = MODEL_ARGUMENT_PATH,
        [TOOL_ARGUMENT_SYMBOL] = MODEL_ARGUMENT_CHOICE, /* of the names that the index knows */
    };
    const char *const *names = !strcmp(t->name, "mcp") ? o->outside : NULL;
    const char *const *symbols = o->symbols && *o->symbols ? o->symbols : NULL;
    g->tools[g->n] = (model_grammar_tool){t->name, g->arguments + g->n_arguments, 0};
    for (const tool_argument *a = t->arguments; a && a->name; a++) {
        const bool is_symbol = a->type == TOOL_ARGUMENT_SYMBOL;
        const char *const *choices = names ? names : is_symbol ? symbols : a->choices;
        add_argument(g, a->name,
            names                   ? MODEL_ARGUMENT_CHOICE
            : is_symbol && !choices ? MODEL_ARGUMENT_STRING
                                    : types[a->type],
            a->required, choices);
    }
    /* In XML a fenced block behind the call will do, too; a call between marks ends its message. */
    const bool is_marked = model_tools_are_marked(o->style);
    if ((is_marked || model_tools_are_xml(o->style)) && t->takes_payload)
        add_argument(g, agent_call_xml_payload, MODEL_ARGUMENT_STRING, is_marked, NULL);
    g->n++;
}

void agent_tool_grammar_make(agent_tool_grammar *ret, const agent_grammar_options *o)
{
    uint32_t n_table;
    const tool_entry *const *table = tool_table(&n_table);
    *ret = (agent_tool_grammar){.n = 0};
    for (uint32_t i = 0; i < n_table && ret->n < AGENT_GRAMMAR_TOOLS; i++) {
        if (o->offers && !o->offers(o->user, table[i])) continue;
        if (!strcmp(table[i]->name, "mcp") && o->outside && !*o->outside) continue;
        add_tool(ret, table[i], o);
    }
}
