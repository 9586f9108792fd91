/* A request's words, read for the verb that asks who calls something and for what stands beside it. */
#include "agent/callers_question.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "agent/parts.h"
#include "base/mem.h"

static const char *const says_called[] = {
    "called", "caller", "callers", "calls", "invoked", "invokes", "used", "users", "uses", NULL};
static const char *const says_call[] = {"call", "calling", "invoke", "use", NULL};
static const char *const turns_round[] = {"do", "does", "did", NULL}; /* "What does it call?" */
static const char *const between[] = {"of", "the", "function", "method", NULL};
static const char *const it_in_front[] = {
    "it", "its", "their", "they", NULL}; /* "where is it called", "its callers" */
static const char *const it_behind[] = {"it", "that", "them", "this", NULL};

/* Bytes [from, to) of the request; a @ in front of a name does not belong to it, a full stop behind it neither. */
typedef struct word {
    size_t from, to;
} word;

static bool is_name_byte(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           (c && strchr("_./-+", c));
}

/* Where to look for the word behind this one, which may be empty ("..."). */
static size_t behind_word(word w)
{
    return w.to + (w.to == w.from);
}

/* The next word at or behind `at`. false: no more. */
static bool next_word(const char *s, size_t at, word *ret)
{
    while (s[at] && !is_name_byte(s[at])) at++;
    size_t to = at;
    while (is_name_byte(s[to])) to++;
    *ret = (word){at, to};
    while (ret->to > at && strchr(".-/+", s[ret->to - 1])) ret->to--;
    return to > at;
}

static bool is_any(const char *s, word w, const char *const *words)
{
    for (; *words; words++)
        if (strlen(*words) == w.to - w.from && !strncasecmp(s + w.from, *words, w.to - w.from)) return true;
    return false;
}

static bool looks_like_name(const char *s, word w)
{
    bool found = false;
    for (size_t i = w.from; i < w.to; i++)
        found = found || s[i] == '_' ||
                (i > w.from && s[i] >= 'A' && s[i] <= 'Z' && s[i - 1] >= 'a' && s[i - 1] <= 'z');
    return found && w.to - w.from >= 3;
}

/*
 * Bytes of the request that say what is meant by the "it" at s[at]: up to the last full stop, question mark, semicolon,
 * comma or "and" in front of it. 0: nothing there asks for anything.
 */
static size_t described_to(const char *s, size_t at)
{
    size_t begin = 0;
    word w;
    for (size_t i = 0; i < at; i++)
        if (strchr(".?!;,", s[i]) && (s[i + 1] == ' ' || s[i + 1] == '\n')) begin = i + 1;
    for (size_t i = begin; next_word(s, i, &w) && w.from < at; i = behind_word(w))
        if (is_any(s, w, (const char *const[]){"and", NULL})) begin = w.to;
    bool says_something = false;
    for (size_t i = 0; next_word(s, i, &w) && w.from < begin; i = behind_word(w))
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
    word before = {0}, w, behind;
    bool near = false; /* the verb, or words like "of the" behind it, stand in front */
    for (size_t at = 0; next_word(s, at, &w); before = w, at = behind_word(w)) {
        if (!next_word(s, w.to, &behind)) behind = (word){w.to, w.to};
        const bool by = is_any(s, before, (const char *const[]){"by", NULL});
        const bool beside = near || is_any(s, behind, says_called);
        const bool is_verb = is_any(s, w, says_called) || is_any(s, w, says_call);
        const bool is_it = (near && is_any(s, w, it_behind)) ||
                           (is_any(s, behind, says_called) && is_any(s, w, it_in_front));
        if (is_it && !by && !ret->of_it) {
            ret->of_it = true;
            ret->described = described_to(s, w.from);
        } else if (w.to - w.from >= 3 && !is_verb && !is_it && !by && (beside || looks_like_name(s, w)) &&
                   ret->n < AGENT_CALLERS_NAMES)
            ret->names[ret->n++] = base_xstrndup(s + w.from, w.to - w.from);
        near = is_verb || (near && is_any(s, w, between));
    }
    return ret->n || ret->of_it;
}

void agent_callers_question_free(agent_callers_question *q)
{
    for (uint32_t i = 0; i < q->n; i++) free(q->names[i]);
    *q = (agent_callers_question){0};
}
