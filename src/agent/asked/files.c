/* "Delete .travis.yml", "a.py isn't needed any more, remove it": files of the tree that are to go (contract: asked.h). */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "agent/asked/asked.h"
#include "agent/words/request_words.h"
#include "base/mem.h"

/* The file of the tree that the mention is; the caller frees; NULL: none. */
static char *path_of(const agent *a, const char *request, agent_word mention)
{
    char *said = agent__copy_word(request, mention);
    char *path = strpbrk(said, "./") ? code_index_path(tool_workspace_index(a->workspace), said) : NULL;
    free(said);
    return path;
}

/* Behind the last file: does the order end there, or go on with why or with another one? Not "a.py's head", "a.py if ...". */
static bool ends_order(const char *behind)
{
    static const char *const goes_on[] = {"and", "as", "since", "because", "please", "now", "too", "entirely",
        "completely", "altogether", "again", "we", "it", "file", "files", NULL};
    static const char *const from[] = {"from", NULL}, *const the[] = {"the", "this", "our", NULL};
    static const char *const trees[] = {"tree", "repo", "repository", "project", NULL};
    agent_word w;
    behind += strspn(behind, " ");
    if (!*behind || strchr(".,!?;:\n-", *behind)) return true;
    if (!agent__next_word(behind, 0, &w) || w.from) return false;
    if (!agent__is_any_word(behind, w, from)) return agent__is_any_word(behind, w, goes_on);
    while (agent__next_word(behind, w.to, &w) && agent__is_any_word(behind, w, the))
        ;
    return agent__is_any_word(behind, w, trees);
}

/* The mention at or behind byte `at`, with nothing in front of it but words that introduce a file. */
static bool next_file(const char *s, size_t at, agent_word *ret)
{
    static const char *const fillers[] = {
        "the", "our", "old", "whole", "unused", "obsolete", "stale", "file", "files", "both", NULL};
    while (agent__next_mention(s, at, ret) && ret->to > ret->from && agent__is_any_word(s, *ret, fillers))
        at = ret->to;
    return ret->to > ret->from && strspn(s + at, " `\"'") == ret->from - at;
}

/* "A.py is a leftover. Delete it": the file that the request begins with, where what is said of it is that nothing needs it. */
static bool is_useless(const char *request, size_t verb, agent_word *ret)
{
    static const char *const useless[] = {"needed", "needs", "need", "unused", "used", "uses", "leftover",
        "left", "obsolete", "longer", "dead", "stale", "superfluous", "anymore", "empty", NULL};
    if (!next_file(request, 0, ret) || ret->to >= verb) return false;
    char *said = base_xstrndup(request + ret->to, verb - ret->to);
    const bool is = agent__has_any_word(said, useless);
    free(said);
    return is;
}

static uint32_t list_behind(
    const agent *a, const char *request, size_t verb, agent_listed *ret, uint32_t most)
{
    static const char *const pronouns[] = {"it", NULL};
    size_t at = verb;
    uint32_t n = 0;
    agent_word m = {0};
    bool is_it = agent__next_word(request, at, &m) && agent__is_any_word(request, m, pronouns);
    if (is_it) at = m.to;
    if (is_it && (!ends_order(request + at) || !is_useless(request, verb, &m))) return 0;
    while (n < most && (is_it || next_file(request, at, &m))) {
        char *path = path_of(a, request, m);
        if (!path) break;
        ret[n++] = (agent_listed){.operation = "delete", .name = path};
        if (!is_it) at = m.to + strspn(request + m.to, "`\"'");
        is_it = false;
        const char *behind = request + at + strspn(request + at, " ");
        const size_t comma = *behind == ',' ? 1 + strspn(behind + 1, " ") : 0;
        const size_t and = !strncasecmp(behind + comma, "and ", 4) ? 4 : 0;
        if (!comma && !and) break;
        agent_word next;
        const size_t from = (size_t)(behind - request) + comma + and;
        if (!next_file(request, from, &next)) break;
        char *more = path_of(a, request, next);
        const bool is_file = more != NULL;
        free(more);
        if (!is_file) break;
        at = from;
    }
    if (n && !ends_order(request + at))
        while (n) agent__listed_free(&ret[--n]);
    return n;
}

uint32_t agent__list_files(const agent *a, const char *request, agent_listed *ret, uint32_t most)
{
    static const char *const verbs[] = {"delete", "remove", "drop", "get rid of"};
    uint32_t n = 0;
    for (size_t i = 0; i < sizeof verbs / sizeof *verbs && !n; i++) {
        const size_t verb = agent__find_phrase(request, 0, verbs[i]);
        if (verb) n = list_behind(a, request, verb, ret, most);
    }
    return n;
}

bool agent__deletes_files(const agent *a, const char *request)
{
    agent_listed all[AGENT_MAX_WISHES];
    const uint32_t n = agent__list_files(a, request, all, AGENT_MAX_WISHES);
    for (uint32_t i = 0; i < n; i++) agent__listed_free(&all[i]);
    return n > 0;
}
