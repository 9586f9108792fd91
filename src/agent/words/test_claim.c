/*
 * What a new test is to show, in the request's own words: "Add a test to a.py that f gives None for an empty list" says "f gives
 * None for an empty list" (contract: request_words.h).
 */
#include <string.h>

#include "agent/words/request_words.h"

static const char *const tests[] = {"test", "tests", "tested", "check", "checks", "says", "one", NULL};

/* A full stop ends a sentence where no name goes on behind it. */
static bool ends_sentence(const char *request, size_t at)
{
    return !request[at] || request[at] == '\n' ||
           (strchr(".!?;", request[at]) && (!request[at + 1] || strchr(" \n", request[at + 1])));
}

static size_t sentence_end(const char *request, size_t at)
{
    while (!ends_sentence(request, at)) at++;
    return at;
}

/* From byte `from` to the end of its sentence. false: that is too little to say something. */
static bool take_rest(const char *request, size_t from, agent_word *ret)
{
    enum { LEAST = 8 };
    while (request[from] == ' ' || request[from] == ',') from++;
    *ret = (agent_word){from, sentence_end(request, from)};
    return ret->to >= ret->from + LEAST && memchr(request + from, ' ', ret->to - from);
}

/* "list_len to test.c" is a name alone. false: no words are left without the file. */
static bool cut_place(const char *request, agent_word *claim)
{
    static const char *const into[] = {"to", "in", "into", NULL};
    agent_word w = {claim->from, claim->from}, m;
    while (agent__next_word(request, w.to, &w) && w.to < claim->to)
        if (agent__is_any_word(request, w, into) && agent__next_mention(request, w.to, &m) &&
            memchr(request + m.from, '.', m.to - m.from))
            claim->to = w.from - 1;
    return claim->to > claim->from && memchr(request + claim->from, ' ', claim->to - claim->from);
}

/* "that checks", "that makes sure that": what the test does stands in front of what it shows. */
static size_t behind_verb(const char *request, size_t at)
{
    static const char *const verbs[] = {"checks", "verifies", "shows", "covers", "ensures", "asserts",
        "proves", "demonstrates", "confirms", "tests", NULL};
    static const char *const that[] = {"that", "whether", "how", NULL};
    agent_word w;
    size_t behind = at;
    if (!strncmp(request + at, " makes sure", 11))
        behind = at + 11;
    else if (agent__next_word(request, at, &w) && agent__is_any_word(request, w, verbs))
        behind = w.to;
    if (behind > at && agent__next_word(request, behind, &w) && agent__is_any_word(request, w, that))
        behind = w.to;
    return behind;
}

/* Only "to a.py", "in the tests of f" stands between the word that speaks of tests and byte `to`. */
static bool is_place(const char *request, size_t from, size_t to)
{
    static const char *const fillers[] = {
        "to", "in", "into", "the", "our", "of", "for", "file", "suite", "somewhere", NULL};
    enum { MOST = 2 /* names of what is tested, and of a file */ };
    int names = 0;
    agent_word m;
    for (size_t at = from; agent__next_mention(request, at, &m) && m.from<to; at = m.to> at ? m.to : at + 1)
        if (m.to > m.from && !agent__is_any_word(request, m, fillers)) names++;
    return names <= MOST;
}

/* "Test f with an empty list": what stands behind the verb. */
static bool take_behind_order(const char *request, agent_word *ret)
{
    static const char *const verb[] = {"test", NULL}, *const links[] = {"that", "for", "how", NULL};
    const char *from = agent__first_word(request);
    agent_word w, next;
    if (!agent__next_word(from, 0, &w) || !agent__is_any_word(from, w, verb)) return false;
    if (agent__next_word(from, w.to, &next) && agent__is_any_word(from, next, links)) w = next;
    return take_rest(request, (size_t)(from - request) + w.to, ret);
}

bool agent__find_test_claim(const char *request, agent_word *ret)
{
    static const char *const that[] = {"that", NULL}, *const about[] = {"about", NULL},
                             *const of[] = {"for", NULL};
    static const char *const orders[] = {
        "add", "write", "create", "need", "needs", "want", "lack", "lacks", "missing", "no", "unit", NULL};
    agent_word w = {0}, test = {0}, rest;
    bool found = false, is_ordered = false;
    for (size_t end = 0; agent__next_word(request, w.to, &w);) {
        if (w.from >= end) {
            test = (agent_word){0};
            is_ordered = false;
            end = sentence_end(request, w.from);
        }
        if (test.to && (agent__is_any_word(request, w, that) || agent__is_any_word(request, w, about)) &&
            is_place(request, test.to, w.from) && take_rest(request, behind_verb(request, w.to), &rest)) {
            *ret = rest;
            return true;
        }
        const bool is_colon = test.to && request[w.to] == ':' && request[w.to + 1] == ' ';
        is_ordered |= agent__is_any_word(request, w, orders);
        const bool is_of =
            test.to && is_ordered && w.from == test.to + 1 && agent__is_any_word(request, w, of);
        if (!found && (is_colon || is_of) && take_rest(request, w.to + is_colon, &rest) &&
            (is_colon || cut_place(request, &rest))) {
            *ret = rest;
            found = true;
        }
        if (agent__is_any_word(request, w, tests)) test = w;
    }
    return found || take_behind_order(request, ret);
}
