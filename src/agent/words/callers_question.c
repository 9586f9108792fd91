/* A request's words, read for the verb that asks who calls something and for what stands beside it. */
#include "agent/words/callers_question.h"

#include <stdlib.h>
#include <string.h>

#include "agent/words/request_words.h"

static const char *const says_called[] = {
    "called", "caller", "callers", "calls", "invoked", "invokes", "used", "users", "uses", NULL};
static const char *const says_call[] = {"call", "calling", "invoke", "use", NULL};
static const char *const turns_round[] = {"do", "does", "did", NULL}; /* "What does it call?" */
static const char *const between[] = {"of", "the", "function", "method", NULL};
static const char *const it_in_front[] = {
    "it", "its", "their", "they", NULL}; /* "where is it called", "its callers" */
static const char *const it_behind[] = {"it", "that", "them", "this", NULL};

/*
 * Bytes of the request that say what is meant by the "it" at s[at]: up to the last full stop, question mark, semicolon,
 * comma or "and" in front of it. 0: nothing there asks for anything.
 */
static size_t described_to(const char *s, size_t at)
{
    size_t begin = 0;
    agent_word w;
    for (size_t i = 0; i < at; i++)
        if (strchr(".?!;,", s[i]) && (s[i + 1] == ' ' || s[i + 1] == '\n')) begin = i + 1;
    for (size_t i = begin; agent__next_mention(s, i, &w) && w.from < at; i = w.to)
        if (agent__is_any_word(s, w, (const char *const[]){"and", NULL})) begin = w.to;
    bool says_something = false;
    for (size_t i = 0; agent__next_mention(s, i, &w) && w.from < begin; i = w.to)
        says_something = says_something || agent__is_content_word(s + w.from, w.to - w.from);
    return says_something ? begin : 0;
}

bool agent_read_callers_question(const char *request, agent_callers_question *ret)
{
    *ret = (agent_callers_question){0};
    if (!agent__has_any_word(request, says_called) &&
        !(agent__has_any_word(request, says_call) && !agent__has_any_word(request, turns_round)))
        return false;
    const char *s = request;
    agent_word before = {0}, w, behind;
    bool near = false; /* the verb, or words like "of the" behind it, stand in front */
    for (size_t at = 0; agent__next_mention(s, at, &w); before = w, at = w.to) {
        if (!agent__next_mention(s, w.to, &behind)) behind = (agent_word){w.to, w.to};
        const bool by = agent__is_any_word(s, before, (const char *const[]){"by", NULL});
        const bool beside = near || agent__is_any_word(s, behind, says_called);
        const bool is_verb = agent__is_any_word(s, w, says_called) || agent__is_any_word(s, w, says_call);
        const bool is_it =
            (near && agent__is_any_word(s, w, it_behind)) ||
            (agent__is_any_word(s, behind, says_called) && agent__is_any_word(s, w, it_in_front));
        if (is_it && !by && !ret->of_it) {
            ret->of_it = true;
            ret->described = described_to(s, w.from);
        } else if (w.to - w.from >= 3 && !is_verb && !is_it && !by &&
                   (beside || agent__looks_like_name(s, w)) && ret->n < AGENT_CALLERS_NAMES)
            ret->names[ret->n++] = agent__copy_word(s, w);
        near = is_verb || (near && agent__is_any_word(s, w, between));
    }
    return ret->n || ret->of_it;
}

void agent_callers_question_free(agent_callers_question *q)
{
    for (uint32_t i = 0; i < q->n; i++) free(q->names[i]);
    *q = (agent_callers_question){0};
}
