/*
 * The tools that a model may call, in the order in which the prompt tells of them: the list in meson.build,
 * from which the build makes tools.def. A tool's row stands at the end of its file.
 */
#include <string.h>

#include "tools/tool.h"

#define TOOL(name) extern const tool_entry tool__##name;
#include "tools/tools.def"
#undef TOOL

static const tool_entry *const table[] = {
#define TOOL(name) &tool__##name,
#include "tools/tools.def"
#undef TOOL
};

const tool_entry *const *tool_table(uint32_t *ret_n)
{
    *ret_n = sizeof table / sizeof *table;
    return table;
}

const tool_entry *tool_find(const char *name)
{
    for (size_t i = 0; name && i < sizeof table / sizeof *table; i++)
        if (!strcmp(table[i]->name, name)) return table[i];
    return NULL;
}
