/*
 * "test_f fails since the message was reworded. The new wording is right, fix the test": what has to change is the test.
 */
#include <stdlib.h>
#include <string.h>

#include "agent/asked/asked.h"
#include "agent/session/session_state.h"
#include "agent/words/request_words.h"
#include "base/mem.h"
#include "code/code.h"

/* The only place of the name, if that is a test; the caller frees its path. */
static char *find_test(const agent *a, const char *name, agent_meant *ret)
{
    code_place *places = NULL;
    const uint32_t n = code_index_define(tool_workspace_index(a->workspace), name, &places);
    char *path = NULL;
    if (n == 1 && !places[0].is_declaration && code_path_is_test(places[0].path)) {
        path = base_xstrdup(places[0].path);
        ret->from = places[0].from;
        ret->to = places[0].to;
    }
    code_places_free(places, n);
    return path;
}

void agent__find_mended_test(agent *a, const char *request)
{
    agent_asked *x = &a->asked;
    const size_t n = strlen(request);
    agent_meant found = {0};
    uint32_t n_found = 0;
    if (!x->change || a->fix.wanted || a->info.strong || !agent__says_test_is_wrong(request)) return;
    for (size_t pos = 0, from, to; code_next_identifier(request, n, &pos, &from, &to);) {
        char *name = base_xstrndup(request + from, to - from);
        agent_meant one = {0};
        char *path = found.name && !strcmp(found.name, name) ? NULL : find_test(a, name, &one);
        if (path && !n_found++)
            found = (agent_meant){.path = path, .name = name, .from = one.from, .to = one.to};
        else
            free(path);
        if (found.name != name) free(name);
    }
    if (n_found != 1) {
        free(found.path);
        free(found.name);
        return;
    }
    agent__forget_meant(a);
    x->meant[x->n_meant++] = found;
    x->is_meant_sure = true;
}
