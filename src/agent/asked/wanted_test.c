/*
 * What a request wants of tests: a new one and nothing else; a new one behind the change that it is to test; that the
 * tests which are there change too.
 */
#include <stdlib.h>
#include <string.h>

#include "agent/asked/asked.h"
#include "agent/words/request_words.h"
#include "base/mem.h"
#include "code/code.h"

static const char *const verbs[] = {"add", "write", "create", NULL};
static const char *const tests[] = {"test", "tests", NULL};

/* A definition outside of tests has the name. */
static bool is_of_code(const agent *a, const char *name)
{
    code_place *places = NULL;
    bool is_so = false;
    const uint32_t n = code_index_define(tool_workspace_index(a->workspace), name, &places);
    for (uint32_t i = 0; i < n; i++) is_so |= !code_path_is_test(places[i].path);
    code_places_free(places, n);
    return is_so;
}

/* "Test f with an empty list", "test Pool.close when it is closed": no "test the build", and no "test f" that may mean a run. */
static bool orders_test_of_name(const agent *a, const char *request)
{
    static const char *const verb[] = {"test", NULL};
    static const char *const fillers[] = {"the", "function", "method", "class", "that", "how", NULL};
    static const char *const how[] = {"with", "on", "for", "of", "when", "where", "if", "given", "against",
        "raises", "returns", "gives", "throws", "fails", NULL};
    const char *from = agent__first_word(request);
    agent_word w, name;
    if (!agent__next_word(from, 0, &w) || !agent__is_any_word(from, w, verb) || strchr(request, '?'))
        return false;
    bool goes_on = agent__next_mention(from, w.to, &name);
    while (goes_on && agent__is_any_word(from, name, fillers))
        goes_on = agent__next_mention(from, name.to, &name);
    if (!goes_on || !agent__next_word(from, name.to, &w) || !agent__is_any_word(from, w, how)) return false;
    char *copy = agent__copy_word(from, name);
    const bool is_so = is_of_code(a, copy);
    free(copy);
    return is_so;
}

bool agent__wants_new_test(const agent *a, const char *request)
{
    return agent_says_test_is_wanted(request) || orders_test_of_name(a, request);
}

/* "Add a test that ...", "Write two more unit tests for ...": no code is to change for it. */
static bool begins_with_test(const char *request)
{
    enum { NEAR = 6 };
    static const char *const breaks[] = {
        "that", "for", "which", "and", "to", "in", "function", "method", NULL};
    static const char *const others[] = {"fix", "implement", "change", "refactor", "make", "repair", NULL};
    const char *from = agent__first_word(request);
    agent_word w;
    if (!agent__next_word(from, 0, &w) || !agent__is_any_word(from, w, verbs)) return false;
    for (int n = 0; n < NEAR && agent__next_word(from, w.to, &w); n++) {
        if (agent__is_any_word(from, w, breaks)) return false;
        if (agent__is_any_word(from, w, tests)) return !agent__has_any_word(from, others);
    }
    return false;
}

/* "Let f refuse an empty key, and add a test for it": f stands in front of the word "test". */
static bool is_told_first(const char *request, const char *name)
{
    agent_word w;
    for (size_t at = 0; agent__next_word(request, at, &w); at = w.to) {
        if (agent__is_any_word(request, w, tests)) return false;
        if (w.to - w.from == strlen(name) && !strncmp(request + w.from, name, w.to - w.from)) return true;
    }
    return false;
}

/* "Refuse an empty key with a clear error, and add a test": what stands in front of that is a change by itself. */
static bool asks_for_change_first(const char *request)
{
    static const char *const fillers[] = {"a", "an", "the", "new", "unit", "regression", "some", "more",
        "one", "two", "also", "matching", "corresponding", "simple", "small", NULL};
    agent_word w, next;
    for (size_t at = 0; agent__next_word(request, at, &w); at = w.to) {
        if (!agent__is_any_word(request, w, verbs)) continue;
        bool goes_on = agent__next_word(request, w.to, &next);
        while (goes_on && agent__is_any_word(request, next, fillers))
            goes_on = agent__next_word(request, next.to, &next);
        if (!goes_on || !agent__is_any_word(request, next, tests)) continue;
        char *before = base_xstrndup(request, w.from);
        const bool is_change = agent_asks_for_change(before);
        free(before);
        return is_change;
    }
    return false;
}

/* "Remove X with its tests": what tests it goes with it (tools/refactor/tests.c), and none is to be written. */
static bool is_deletion(const agent_asked *x, const char *request)
{
    static const char *const going[] = {"delete", "remove", "drop", "rid", NULL};
    bool goes = false;
    for (uint32_t i = 0; i < x->n_wishes; i++) goes |= x->wishes[i].kind == AGENT_WISH_GOES;
    return goes && agent__has_any_word(request, going);
}

static bool is_there(const code_index *index, const agent_addition_words *w)
{
    base_buf name = {0};
    base_buf_printf(&name, "%s%s%s", w->holder ? w->holder : "", w->holder ? "." : "", w->name);
    const bool is = code_index_is_defined(index, name.data);
    base_buf_free(&name);
    return is;
}

/* `of`: what it is to test; NULL: what the turn changes. */
static void put_test_off(agent_asked *x, const char *of)
{
    x->test = false;
    x->test_waits = true;
    x->test_of = of ? base_xstrdup(of) : NULL;
}

void agent__want_test(agent *a, const char *request, const agent_addition_words *addition, const char *first)
{
    static const char *const present[] = {"its", "expectation", "expectations", NULL};
    agent_asked *x = &a->asked;
    const bool is_cover = agent__wants_new_test(a, request);
    if (!x->change || a->fix.wanted || (!is_cover && !agent__has_any_word(request, tests))) return;
    if (agent__says_test_is_wrong(request)) {
        x->test_alone = true; /* no code is to change for it */
        return;
    }
    x->test = is_cover || agent__has_any_word(request, verbs);
    x->test_alone = x->test && !addition && (is_cover || begins_with_test(request));
    if (x->test && addition && !is_there(tool_workspace_index(a->workspace), addition)) {
        put_test_off(x, addition->name);
    } else if (x->test && !addition && !x->test_alone && first && is_told_first(request, first)) {
        agent__wish_changed(a, NULL, first);
        put_test_off(x, first);
    } else if (x->test && !addition && !x->test_alone &&
               (asks_for_change_first(request) || agent__orders_code_first(request))) {
        put_test_off(x, NULL);
    }
    x->tests_too = !x->test && !x->test_waits && !is_deletion(x, request) &&
                   agent__has_any_word(request, present) && agent__has_word(request, "and");
}

/* A file of code that is no test's was changed. */
static bool has_changed_code(const agent *a)
{
    bool has = false;
    for (size_t i = 0; i < a->asked.n_changed; i++) {
        const char *path = a->asked.changed[i], *language = code_language(path, "", 0);
        has |= language && !code_language_is_document(language) && !code_path_is_test(path);
    }
    return has;
}

bool agent__is_test_due(const agent *a)
{
    const agent_asked *x = &a->asked;
    if (!x->test_waits) return false;
    if (!x->test_of) return has_changed_code(a);
    if (!code_index_is_defined(tool_workspace_index(a->workspace), x->test_of)) return false;
    for (uint32_t i = 0; i < x->n_wishes; i++)
        if (!strcmp(x->wishes[i].name, x->test_of) && !agent__is_met(a, &x->wishes[i])) return false;
    return true;
}

bool agent__lacks_code(const agent *a)
{
    return a->asked.n_changed && !a->asked.test_alone && !a->asked.n_operations && !has_changed_code(a) &&
           agent__orders_code_first(a->request);
}

bool agent__lacks_test(const agent *a)
{
    bool has_one = !a->asked.test && !a->asked.test_waits && !a->asked.tests_too;
    const char *place = a->asked.new_test.path; /* in Rust a file that is no test's */
    for (size_t i = 0; i < a->asked.n_changed; i++)
        has_one |= code_path_is_test(a->asked.changed[i]) || (place && !strcmp(place, a->asked.changed[i]));
    return !has_one;
}
