/* A request's wording, read with the names of the session's tree (contract: asked.h). */
#include "agent/asked/asked.h"

static uint32_t count_definitions(const void *ctx, const char *name)
{
    const agent *a = ctx;
    code_place *places = NULL;
    const uint32_t n = code_index_define(tool_workspace_index(a->workspace), name, &places);
    uint32_t n_found = 0;
    for (uint32_t i = 0; i < n; i++) n_found += !places[i].is_declaration;
    code_places_free(places, n);
    return n_found;
}

static bool is_mentioned(const void *ctx, const char *name)
{
    return code_index_mentions(tool_workspace_index(((const agent *)ctx)->workspace), name);
}

bool agent__read_wording(const agent *a, const char *request, agent_operation_words *ret)
{
    const agent_names names = {a, count_definitions, is_mentioned};
    return agent_read_operation_words(request, &names, ret);
}
