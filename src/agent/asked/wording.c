/* A request's wording, read with the names of the session's tree (contract: asked.h). */
#include "agent/asked/asked.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "agent/words/request_words.h"

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

bool agent__stands_in(const agent *a, const char *name, const char *file)
{
    code_index *index = tool_workspace_index(a->workspace);
    code_place *places = NULL;
    char *path = code_index_path(index, file);
    const uint32_t n = path ? code_index_define(index, name, &places) : 0;
    bool is_so = false;
    for (uint32_t i = 0; i < n; i++) is_so |= !strcmp(places[i].path, path);
    code_places_free(places, n);
    free(path);
    return is_so;
}

bool agent__read_wording(const agent *a, const char *request, agent_operation_words *ret)
{
    const agent_names names = {a, count_definitions, is_mentioned};
    *ret = (agent_operation_words){0};
    if (a->read_as) return false;
    if (agent_read_operation_words(request, &names, ret)) return true;
    bool is_one = agent_read_operation_gist(request, &names, ret);
    if (is_one) ret->name = agent__with_its_type(a, request, ret->name);
    if (is_one && !strcmp(ret->operation, "move")) is_one = !agent__stands_in(a, ret->name, ret->to);
    if (!is_one) agent_operation_words_free(ret);
    return is_one;
}

/* "Application.inspect" where the word says that type, with its capital or without; NULL: it has no such member. */
static char *member_of(code_index *index, const char *request, agent_word type, const char *name)
{
    const size_t n = type.to - type.from;
    char *ret = NULL;
    for (int k = 0; k < 2 && !ret && n; k++) {
        base_buf whole = {0};
        code_place *places = NULL;
        base_buf_printf(&whole, "%.*s.%s", (int)n, request + type.from, name);
        if (k) *whole.data = (char)toupper((unsigned char)*whole.data);
        const uint32_t n_so = code_index_define(index, whole.data, &places);
        if (n_so && strlen(places[0].parent) == n && !memcmp(places[0].parent, whole.data, n))
            ret = base_buf_take(&whole);
        code_places_free(places, n_so);
        base_buf_free(&whole);
    }
    return ret;
}

char *agent__with_its_type(const agent *a, const char *request, char *name)
{
    static const char *const kinds[] = {"method", "function", "member", "field", NULL};
    static const char *const links[] = {"of", "in", "from", "on", NULL};
    static const char *const fillers[] = {
        "the", "class", "struct", "type", "interface", "trait", "module", NULL};
    code_index *index = tool_workspace_index(a->workspace);
    code_place *places = NULL;
    const uint32_t n = strpbrk(name, ".:") ? 0 : code_index_define(index, name, &places);
    agent_word w = {0}, of = {0};
    char *ret = NULL;
    code_places_free(places, n);
    while (n > 1 && !ret && agent__next_word(request, w.to, &w)) {
        if (w.to - w.from != strlen(name) || memcmp(request + w.from, name, w.to - w.from) != 0) continue;
        agent_word around[2] = {{0}, {0}};
        for (size_t at = w.from; agent__word_before(request, at, &of); at = of.from)
            if (!agent__is_any_word(request, of, kinds)) break;
        around[0] = of;
        if (of.to - of.from == 1 && request[of.from] == 's' && of.from > 1 && request[of.from - 1] == '\'')
            agent__word_before(request, of.from - 1, &around[0]);
        of = w;
        while (agent__next_word(request, of.to, &of) && agent__is_any_word(request, of, kinds)) {
        }
        if (agent__is_any_word(request, of, links))
            while (agent__next_word(request, of.to, &of) && agent__is_any_word(request, of, fillers)) {
            }
        around[1] = of;
        for (int i = 0; i < 2 && !ret; i++) ret = member_of(index, request, around[i], name);
    }
    if (ret) free(name);
    return ret ? ret : name;
}
