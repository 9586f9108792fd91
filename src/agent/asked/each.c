/*
 * "The errors of Add and Replace should quote the key": a small model changes the first and says that it is done. So a list
 * of functions in a request for other behaviour is what has to change, all of it.
 */
#include <stdlib.h>
#include <string.h>

#include "agent/asked/asked.h"
#include "agent/words/request_words.h"
#include "base/mem.h"

/* Is the word a function or method of the tree, outside of its tests? */
static bool is_function(const agent *a, const char *request, agent_word w)
{
    char *name = agent__copy_word(request, w);
    code_place *places = NULL;
    const uint32_t n = code_index_define(tool_workspace_index(a->workspace), name, &places);
    bool is_so = false;
    for (uint32_t i = 0; i < n; i++)
        is_so |= !places[i].is_declaration && !code_path_is_test(places[i].path) &&
                 (!strcmp(places[i].what, "function") || !strcmp(places[i].what, "method"));
    code_places_free(places, n);
    free(name);
    return is_so;
}

/* Written as a name: `add`, add(), addAll, or "Add" in the middle of a sentence. */
static bool is_name(const char *request, agent_word w)
{
    agent_word before;
    const bool is_capital = request[w.from] >= 'A' && request[w.from] <= 'Z';
    return agent__looks_like_name(request, w) || request[w.to] == '(' ||
           (w.from > 0 && agent__is_mark(request[w.from - 1])) ||
           (is_capital && agent__word_before(request, w.from, &before));
}

/* "A, B", "A and B", "`a()`, and `b()`": nothing but these between two of a list. */
static bool are_joined(const char *request, agent_word a, agent_word b)
{
    static const char *const links[] = {"and", "or", NULL};
    static const char marks[] = "`\"'() ,";
    agent_word w = {0, a.to};
    bool has_link = false;
    while (agent__next_word(request, w.to, &w) && w.from < b.from) {
        if (!agent__is_any_word(request, w, links)) return false;
        has_link = true;
    }
    for (size_t i = a.to; i < b.from; i++) {
        const bool is_word = agent__is_in_word(request, i);
        if (!is_word && !strchr(marks, request[i])) return false;
        has_link |= request[i] == ',';
    }
    return has_link;
}

/* "format*", "get*Priority", "*_ratio": a name with a star, as the request writes it. The caller frees; NULL: there is none. */
static char *find_pattern(const char *request)
{
    enum { LEAST = 3 }; /* letters beside the star: less is a sign of arithmetic */
    for (const char *star = strchr(request, '*'); star; star = strchr(star + 1, '*')) {
        size_t from = (size_t)(star - request), to = from + 1;
        while (from && agent__is_in_word(request, from - 1)) from--;
        while (agent__is_in_word(request, to)) to++;
        if (to - from > LEAST && star[1] != '*' && (from == 0 || request[from - 1] != '*'))
            return base_xstrndup(request + from, to - from);
    }
    return NULL;
}

static bool fits(const char *pattern, const char *name)
{
    const size_t n_head = strcspn(pattern, "*"), n_tail = strlen(pattern) - n_head - 1, n = strlen(name);
    return n > n_head + n_tail && !strncmp(name, pattern, n_head) &&
           !strcmp(name + n - n_tail, pattern + n_head + 1);
}

/* All functions outside of tests whose names fit; not where they are more than a turn can follow. */
static void wish_pattern(agent *a, const char *pattern)
{
    enum { MOST_NAMES = 20000 };
    code_index *index = tool_workspace_index(a->workspace);
    char **names = code_index_symbols(index, MOST_NAMES), *found[AGENT_MAX_WISHES];
    uint32_t n = 0;
    for (size_t i = 0; names && names[i]; i++) {
        if (!fits(pattern, names[i]) || !is_function(a, names[i], (agent_word){0, strlen(names[i])}))
            continue;
        if (n < AGENT_MAX_WISHES) found[n] = names[i];
        n++;
    }
    for (uint32_t i = 0; n > 1 && n <= AGENT_MAX_WISHES && i < n; i++) agent__wish_changed(a, NULL, found[i]);
    code_index_paths_free(names);
}

/* "f should ...", "let f ...", "make `f` ...": is something ordered of the function itself? */
static bool is_subject(const char *request, agent_word w)
{
    static const char *const orders[] = {"should", "must", NULL}, *const letting[] = {
                                                                      "let", "make", "have", NULL};
    agent_word beside;
    return (agent__next_word(request, w.to, &beside) && agent__is_any_word(request, beside, orders)) ||
           (agent__word_before(request, w.from, &beside) && agent__is_any_word(request, beside, letting));
}

/* "f should give None, and g should warn": each has an order of its own. */
static void wish_subjects(agent *a, const char *request)
{
    agent_word found[AGENT_MAX_WISHES], w = {0};
    uint32_t n = 0;
    while (n < AGENT_MAX_WISHES && agent__next_word(request, w.to, &w)) {
        bool is_new = is_subject(request, w) && is_function(a, request, w);
        for (uint32_t i = 0; i < n; i++)
            is_new = is_new && (found[i].to - found[i].from != w.to - w.from ||
                                   memcmp(request + found[i].from, request + w.from, w.to - w.from) != 0);
        if (is_new) found[n++] = w;
    }
    for (uint32_t i = 0; n > 1 && i < n; i++) {
        char *name = agent__copy_word(request, found[i]);
        agent__wish_changed(a, NULL, name);
        free(name);
    }
}

void agent__wish_each(agent *a, const char *request)
{
    static const char *const orders[] = {"should", "must", NULL};
    static const char *const ordering[] = {"should", "must", "both", "let", "make", "docstring", "docstrings",
        "comment", "comments", "document", NULL};
    agent_operation_words wording;
    agent_addition_words addition;
    const bool is_wording = agent__read_wording(a, request, &wording),
               is_addition = agent_read_addition_words(request, &addition);
    agent_operation_words_free(&wording);
    agent_addition_words_free(&addition);
    if (!a->asked.change || a->fix.wanted || a->asked.test || a->asked.n_wishes || is_addition ||
        is_wording || !agent__has_any_word(request, ordering))
        return;
    char *pattern = find_pattern(request);
    if (pattern) wish_pattern(a, pattern);
    free(pattern);
    if (!a->asked.n_wishes) wish_subjects(a, request);
    if (a->asked.n_wishes) return;
    agent_word list[AGENT_MAX_WISHES], w = {0};
    uint32_t n = 0;
    bool has_name = false;
    while (agent__next_word(request, w.to, &w)) {
        const bool is_one = is_function(a, request, w);
        if (is_one && n && n < AGENT_MAX_WISHES && are_joined(request, list[n - 1], w)) {
            list[n++] = w;
        } else if (n > 1 && (is_one || w.from > list[n - 1].to + 5)) {
            break;
        } else if (is_one) {
            list[0] = w;
            n = 1;
            has_name = false;
        }
        if (is_one) has_name |= is_name(request, w);
        if (n > 1 && agent__is_any_word(request, w, orders)) has_name = true;
    }
    for (uint32_t i = 0; i < n && n > 1 && has_name; i++) {
        char *name = agent__copy_word(request, list[i]);
        agent__wish_changed(a, NULL, name);
        free(name);
    }
}
