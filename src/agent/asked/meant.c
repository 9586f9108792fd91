/*
 * "Warn when the file is empty" names no definition and wants one to behave otherwise. Which functions that may be the
 * index says (code/rank.h): they are what the model sees, and the call that rewrites one is begun for it.
 */
#include <stdlib.h>
#include <string.h>

#include "agent/asked/asked.h"
#include "agent/retrieve/retrieve.h"
#include "agent/words/block.h"
#include "agent/words/request_words.h"
#include "base/mem.h"
#include "code/rank.h"

/*
 * What the second has of the best one's score: up to SURE_SHARE the best one is right in six of ten commits, behind
 * UNKNOWN_SHARE in two of ten (docs/diary.md), and the model chooses as for any request.
 */
static const double SURE_SHARE = .55, UNKNOWN_SHARE = .9;

static bool is_type(const agent *a, const char *name)
{
    static const char *const functions[] = {"function", "method", "macro"};
    code_place *places = NULL;
    const uint32_t n = code_index_define(tool_workspace_index(a->workspace), name, &places);
    bool is = n > 0;
    for (size_t k = 0; k < sizeof functions / sizeof *functions && n; k++)
        is &= strcmp(places[0].what, functions[k]) != 0;
    code_places_free(places, n);
    return is;
}

/* "print KILO_VERSION": a macro without parameters is used, and does nothing of its own. */
static bool is_constant(const char *request, const char *name)
{
    const size_t n = strlen(name);
    bool is_called = false;
    for (const char *p = request; (p = strstr(p, name)) != NULL; p += n) is_called |= p[n] == '(';
    return !is_called && strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") == n;
}

/* How many functions are written as names, the last of them in *ret_one (heap). What type it is about the ranking reads. */
static uint32_t count_functions(const agent *a, const char *request, char **ret_one)
{
    enum { WRITTEN = 80 }; /* not merely described by its words; or a plain word where a name is expected */
    agent_named named;
    uint32_t n = 0;
    *ret_one = NULL;
    agent__find_named(a, request, &named);
    for (uint32_t i = 0; i < named.n; i++) {
        const bool is_written = named.items[i].score >= WRITTEN || named.items[i].score == AGENT_NAMED_SURE;
        if (!is_written || is_type(a, named.items[i].name) || is_constant(request, named.items[i].name))
            continue;
        free(*ret_one);
        *ret_one = base_xstrdup(named.items[i].name);
        n++;
    }
    agent_named_free(&named);
    return n;
}

/* Something else than the code that is there is to change, or something new is to stand beside it. */
static bool asks_for_other_thing(const char *request)
{
    static const char *const verbs[] = {"add", "create", "write", "implement", "introduce", NULL};
    static const char *const fillers[] = {"a", "an", "new", "the", "another", "second", NULL};
    static const char *const kinds[] = {"function", "method", "class", "struct", "type", "helper", "module",
        "file", "enum", "trait", "interface", "subclass", "exception", "macro", "constant", NULL};
    static const char *const making[] = {
        "create", "write", "implement", "introduce", "define", "provide", NULL};
    agent_word w = {0};
    bool is_verb = false;
    if (agent__speaks_of_document(request) ||
        (agent__next_word(request, 0, &w) && agent__is_any_word(request, w, making)))
        return true; /* "Implement peek on Ring" */
    w = (agent_word){0};
    while (agent__next_word(request, w.to, &w)) {
        if (is_verb && agent__is_any_word(request, w, kinds)) return true;
        is_verb =
            agent__is_any_word(request, w, verbs) || (is_verb && agent__is_any_word(request, w, fillers));
    }
    return false;
}

static bool wants_behaviour(const agent *a, const char *request)
{
    const agent_asked *x = &a->asked;
    agent_addition_words addition;
    agent_parameter_words parameter;
    if (!x->change || x->test || x->is_operation || x->n_wishes || a->fix.wanted || a->info.strong ||
        asks_for_other_thing(request))
        return false;
    const bool adds = agent_read_addition_words(request, &addition);
    agent_addition_words_free(&addition);
    const bool is_signature = agent_read_parameter_words(request, &parameter);
    agent_parameter_words_free(&parameter);
    return !adds && !is_signature;
}

/*
 * The one function that the request names, where that is too long to be written again: a model that begins the call by itself begins
 * to write all of it, and is cut off.
 */
static void find_long(agent *a, const char *name)
{
    enum { MAX_FILE = 1 << 20 };
    code_place *places = NULL, *only = NULL;
    base_buf text = {0};
    uint32_t n_found = 0;
    const uint32_t n = code_index_define(tool_workspace_index(a->workspace), name, &places);
    for (uint32_t i = 0; i < n; i++) {
        if (places[i].is_declaration || code_path_is_test(places[i].path)) continue;
        only = &places[i];
        n_found++;
    }
    if (n_found == 1 && !tool_workspace_read(a->workspace, only->path, MAX_FILE, &text, NULL) &&
        text.len >= only->to && agent__is_long(text.data + only->from, only->to - only->from))
        agent__set_meant(a, only, name);
    base_buf_free(&text);
    code_places_free(places, n);
}

/* The file that the request names, of a language that has functions; false: it names another one, or one that is not there. */
static bool read_file(const agent *a, const char *request, char **ret)
{
    agent_word m;
    bool is_so = true;
    *ret = NULL;
    for (size_t at = 0; is_so && agent__next_mention(request, at, &m); at = m.to > at ? m.to : at + 1) {
        char *said = agent__copy_word(request, m);
        const char *dot = strrchr(said, '.'),
                   *language = dot && dot > said ? code_language(said, "", 0) : NULL;
        if (language) {
            free(*ret);
            *ret = code_index_path(tool_workspace_index(a->workspace), said);
            is_so = *ret && !code_language_is_document(language) && !code_path_is_test(*ret);
        }
        free(said);
    }
    return is_so;
}

/* Its file has several of that name: no call can say which of them is to be rewritten. */
static bool is_one_of_many(const agent *a, const code_ranked *r)
{
    code_place *places = NULL;
    const uint32_t n = code_index_define(tool_workspace_index(a->workspace), r->name, &places);
    uint32_t n_here = 0;
    for (uint32_t i = 0; i < n; i++) n_here += !places[i].is_declaration && !strcmp(places[i].path, r->path);
    code_places_free(places, n);
    return n_here != 1;
}

/*
 * Which of those that may be meant comes first: the best, but of functions that a small model cannot write again the best of
 * the shorter ones, where one is nearly as good. What is long has many of a request's words.
 */
static uint32_t first_of(const code_ranked *ranked, const bool *may, uint32_t n)
{
    enum { MOST_LINES = 55 };
    static const double NEARLY = .85;
    uint32_t first = 0;
    while (first < n && !may[first]) first++;
    for (uint32_t i = first; i < n && ranked[i].score >= NEARLY * ranked[first].score; i++)
        if (may[i] && ranked[i].line_end - ranked[i].line < MOST_LINES) return i;
    return first;
}

/* What a program does as a whole its first function does, where none of its functions fits clearly better. */
static void mean_main(agent *a, const char *file)
{
    agent_asked *x = &a->asked;
    code_place *places = NULL;
    const uint32_t n = code_index_define(tool_workspace_index(a->workspace), "main", &places);
    for (uint32_t i = 0; i < n && !x->n_meant; i++)
        if (!places[i].is_declaration && !strcmp(places[i].path, file))
            x->meant[x->n_meant++] = (agent_meant){.path = base_xstrdup(file),
                .name = base_xstrdup("main"),
                .from = places[i].from,
                .to = places[i].to};
    code_places_free(places, n);
}

/* By the ranking, of that file alone; NULL: of all. */
static void find_ranked(agent *a, const char *request, const char *file)
{
    enum { DEPTH = 64 };
    agent_asked *x = &a->asked;
    code_ranked *ranked = NULL;
    const uint32_t n = code_index_rank(tool_workspace_index(a->workspace),
        tool_workspace_history(a->workspace, a->cancel), request, DEPTH, &ranked);
    bool may[DEPTH] = {false};
    for (uint32_t i = 0; i < n; i++)
        may[i] = (!file || !strcmp(file, ranked[i].path)) && !agent__why_stays(a, ranked[i].path) &&
                 !is_one_of_many(a, &ranked[i]);
    double best = 0, second = 0;
    for (uint32_t i = first_of(ranked, may, n); i < n && x->n_meant < AGENT_MAX_MEANT; i++) {
        if (!may[i]) continue;
        if (!x->n_meant) best = ranked[i].score;
        if (x->n_meant == 1) second = ranked[i].score;
        x->meant[x->n_meant++] = (agent_meant){.path = base_xstrdup(ranked[i].path),
            .name = base_xstrdup(ranked[i].name),
            .from = ranked[i].from,
            .to = ranked[i].to};
    }
    x->is_meant_sure = second <= SURE_SHARE * best;
    const bool is_twice = x->n_meant > 1 && !x->is_meant_sure &&
                          !strcmp(code_last_name(x->meant[0].name), code_last_name(x->meant[1].name));
    if (is_twice || second > UNKNOWN_SHARE * best) agent__forget_meant(a);
    code_ranked_free(ranked, n);
}

static void find_in(agent *a, const char *request)
{
    char *file = NULL, *named;
    if (!wants_behaviour(a, request) || agent__find_special(a, request) || agent__find_option(a, request))
        return;
    const uint32_t n_named = count_functions(a, request, &named);
    if (n_named == 1) find_long(a, named);
    free(named);
    if (n_named || !read_file(a, request, &file)) {
        free(file);
        return;
    }
    char *program = file ? NULL : agent__find_program(a, request);
    find_ranked(a, request, program ? program : file);
    if (program && !a->asked.n_meant) mean_main(a, program);
    free(file);
    free(program);
}

void agent__find_meant(agent *a, const char *request)
{
    char *code = agent__about_code(request);
    find_in(a, code);
    free(code);
}

bool agent__aim_at_next_meant(agent *a)
{
    agent_asked *x = &a->asked;
    const bool is_tried_once = x->is_meant_sure && !a->fix.asked_again;
    if (x->n_changed || (x->n_aimed && is_tried_once) || x->n_aimed >= x->n_meant) return false;
    const agent_meant *m = &x->meant[x->n_aimed++];
    agent__aim_at(a, m->path, m->name);
    a->fix.copied = true; /* it would be */
    return true;
}
