/*
 * "Add clear() to the cache and call it in put": a small model adds what is new and says that it is done. A function of which
 * the request says that it uses the new one has to change as well.
 */
#include <stdlib.h>
#include <string.h>

#include "agent/asked/asked.h"
#include "agent/words/request_words.h"
#include "base/mem.h"

static const char *const uses[] = {"call", "use", "apply", "invoke", NULL};
static const char *const users_do[] = {
    "call", "calls", "use", "uses", "apply", "applies", "invoke", "invokes", NULL};

/* The one function of that name outside of tests, or the one of a type that the request names; *ret_name: the caller frees. */
static char *find_user(const agent *a, const char *request, agent_word w, char **ret_name)
{
    char *name = agent__copy_word(request, w), *path = NULL;
    code_place *places = NULL;
    const uint32_t n = code_index_define(tool_workspace_index(a->workspace), name, &places);
    uint32_t n_all = 0, n_typed = 0, all = 0, typed = 0;
    for (uint32_t i = 0; i < n; i++) {
        const code_place *p = &places[i];
        if (p->is_declaration || code_path_is_test(p->path) ||
            (strcmp(p->what, "function") != 0 && strcmp(p->what, "method") != 0))
            continue;
        const bool is_typed = *p->parent && agent__names_word(request, code_last_name(p->parent));
        if (!n_all++) all = i;
        if (is_typed && !n_typed++) typed = i;
    }
    const code_place *meant = n_typed == 1 ? &places[typed] : n_all == 1 ? &places[all] : NULL;
    base_buf whole = {0};
    if (meant) base_buf_printf(&whole, "%s%s%s", meant->parent, *meant->parent ? "." : "", name);
    if (meant) path = base_xstrdup(meant->path);
    *ret_name = meant ? base_buf_take(&whole) : NULL;
    code_places_free(places, n);
    free(name);
    return path;
}

static bool wish_user(agent *a, const char *request, agent_word w)
{
    char *name = NULL, *path = find_user(a, request, w, &name);
    if (path) agent__wish_changed(a, path, name);
    const bool is_one = path != NULL;
    free(path);
    free(name);
    return is_one;
}

/* Is it the new function: "it", "this", its name? */
static bool is_new(const char *request, agent_word w, const char *name)
{
    static const char *const it[] = {"it", "this", "that", "them", NULL};
    return agent__is_any_word(request, w, it) ||
           (w.to - w.from == strlen(name) && !memcmp(request + w.from, name, w.to - w.from));
}

/* Behind "call" at `at`: "it in put", "the new function from put and get". */
static void wish_places(agent *a, const char *request, size_t at, const char *name)
{
    static const char *const links[] = {"in", "from", "inside", "within", "by", NULL};
    static const char *const the_new[] = {"the", "new", "function", "method", "helper", "one", NULL};
    static const char *const fillers[] = {
        "the", "both", "function", "functions", "method", "methods", "and", NULL};
    agent_word w = {0, at};
    bool is_it = false;
    while (agent__next_word(request, w.to, &w)) {
        is_it |= is_new(request, w, name) || agent__is_any_word(request, w, the_new);
        if (!is_new(request, w, name) && !agent__is_any_word(request, w, the_new)) break;
    }
    if (!is_it || !agent__is_any_word(request, w, links)) return;
    while (agent__next_word(request, w.to, &w))
        if (!agent__is_any_word(request, w, fillers) && !wish_user(a, request, w)) break;
}

void agent__wish_users(agent *a, const char *request)
{
    agent_addition_words addition;
    agent_word w = {0}, before = {0}, behind;
    if (!a->asked.change || a->asked.is_operation || a->fix.wanted) return;
    const bool is_addition = agent_read_addition_words(request, &addition);
    while (is_addition && agent__next_word(request, w.to, &w)) {
        if (agent__is_any_word(request, w, uses)) wish_places(a, request, w.to, addition.name);
        /* "let put call it", "so that put uses it" */
        if (before.to && agent__is_any_word(request, w, users_do) &&
            agent__next_word(request, w.to, &behind) && is_new(request, behind, addition.name))
            wish_user(a, request, before);
        before = w;
    }
    agent_addition_words_free(&addition);
}
