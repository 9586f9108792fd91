/* Is a new test wanted, though the request does not begin with "add a test"? (contract: request_words.h) */
#include <ctype.h>
#include <string.h>

#include "agent/words/request_words.h"

static const char *const tests[] = {"test", "tests", "unit test", "unit tests", "tested", NULL};

/* Said of code that has no test: to say so is to ask for one. */
static const char *const lacking[] = {"should be tested", "must be tested", "should be covered by",
    "there is no test", "there is no unit test", "there's no test", "there's no unit test",
    "there are no tests", "there are no unit tests", "there isn't a test", "we have no test",
    "we need a test", "we need a unit test", "we need tests", "we need a regression test", "needs a test",
    "needs a unit test", "needs tests", "could use a test", "lacks a test", "lacks tests",
    "is missing a test", "a test is missing", "a test that is missing", "test is missing", "missing test for",
    "missing tests for", "no test covers", "no test checks", "no test for", "no tests for",
    "no unit test for", "nothing tests", "nobody tests", "never tested", "has no test", "has no tests",
    "have no tests", "has no unit test", "isn't tested", "is not tested", "aren't tested", "are not tested",
    "need a test", "need tests", "need a unit test", "need more tests", "needs more tests", "need some tests",
    "needs some tests", "lack tests", "lack a test", "could use tests", "could use some tests",
    "could use more tests", "has no unit tests", "have no unit tests", "doesn't have a test",
    "doesn't have tests", "doesn't have any tests", "don't have tests", "does not have a test",
    "do not have tests", "has no test yet", "is untested", "are untested", "isn't covered by",
    "is not covered by", NULL};
/* The same where a test is spoken of, or "one" is ordered. */
static const char *const unchecked[] = {"nothing checks", "nothing covers", "nothing exercises",
    "nothing verifies", "nobody checks", "tests say nothing", "tests never", "no test says", "no test",
    "no tests", "none that", "nowhere tested", "not tested", "never used in a test", "in no test",
    "not used in any test", "by no test", NULL};
static const char *const ordered[] = {"write one", "write some", "add one", "please add one", "write a test",
    "add a test", "write such a test", "add such a test", "add that", NULL};
/* What changes the code besides, or asks. */
static const char *const others[] = {
    "fix", "implement", "refactor", "repair", "rename", "remove", "delete", "why", NULL};

static bool begins_with(const char *request, const char *const *phrases)
{
    const char *from = agent__first_word(request);
    for (; *phrases; phrases++)
        if (agent__find_phrase(from, 0, *phrases) == strlen(*phrases)) return true;
    return false;
}

bool agent_says_test_is_wanted(const char *request)
{
    static const char *const cover[] = {"cover", NULL};
    static const char *const heads[] = {"test for", "tests for", "test that", "unit test for",
        "unit tests for", "unit test that", "regression test for", "regression test that", "a test for",
        "a unit test for", "new test for", "one more test for", NULL};
    static const char *const polite[] = {"could you add", "could you put", "can you add", "would you add",
        "could you write", "can you write", "would you write", "please add", "please write", NULL};
    const char *end = request + strlen(request);
    while (end > request && strchr(" \t\n", end[-1])) end--;
    const bool asks = end > request && end[-1] == '?' && agent__first_word(request) == request;
    const bool is_polite = agent__has_any_word(request, polite) && agent__has_any_word(request, lacking);
    if ((asks && !is_polite) || agent__has_any_word(request, others)) return false;
    return (begins_with(request, cover) && agent__has_any_word(request, tests)) ||
           begins_with(request, heads) || agent__has_any_word(request, lacking) ||
           (agent__has_any_word(request, unchecked) && agent__has_any_word(request, ordered));
}

/* "Fix the test" alone may mean the code that it judges: the request has to say besides that the code is right. */
bool agent__says_test_is_wrong(const char *request)
{
    static const char *const mending[] = {
        "fix", "adapt", "update", "correct", "repair", "adjust", "mend", "change", NULL};
    static const char *const fillers[] = {"the", "that", "this", "its", "our", "failing", "old", NULL};
    static const char *const mended[] = {
        "test", "tests", "expectation", "expectations", "assertion", "assertions", NULL};
    static const char *const right[] = {"is right", "is correct", "is intended", "is intentional",
        "is wanted", "is fine", "was intended", "was intentional", "on purpose", "deliberate", "deliberately",
        "outdated", "stale", "still expects", "expects the old", "reworded", "code is right", NULL};
    bool is_verb = false, is_mended = false;
    for (agent_word w = {0}; agent__next_word(request, w.to, &w) && !is_mended;) {
        is_mended = is_verb && agent__is_any_word(request, w, mended);
        is_verb =
            agent__is_any_word(request, w, mending) || (is_verb && agent__is_any_word(request, w, fillers));
    }
    return is_mended && agent__has_any_word(request, right);
}

/* --- an old spelling and a new one ------------------------------------------------------------------------ */

/* What stands at byte `at`, in marks or up to a blank. false: nothing does, or a plain word. */
static bool read_literal(const char *s, size_t at, agent_word *ret)
{
    bool is_plain = true;
    at += strspn(s + at, " ");
    if (agent__read_marked(s, at, ret)) return ret->to > ret->from;
    *ret = (agent_word){at, at + strcspn(s + at, " \n")};
    while (ret->to > ret->from && strchr(".,;!?)", s[ret->to - 1])) ret->to--;
    for (size_t i = ret->from; i < ret->to; i++) is_plain &= isalpha((unsigned char)s[i]) || s[i] == '-';
    return ret->to > ret->from && (!is_plain || agent__looks_like_name(s, *ret));
}

/* The same in front of byte `to`. */
static bool read_literal_before(const char *s, size_t to, agent_word *ret)
{
    while (to && strchr(" ,", s[to - 1])) to--;
    if (to < 2) return false;
    size_t from = to - 1;
    const bool is_marked = agent__is_mark(s[from]);
    do from--;
    while (from && !(is_marked ? s[from] == s[to - 1] : strchr(" \n(", s[from - 1]) != NULL));
    return read_literal(s, from, ret) && ret->to + is_marked == to;
}

bool agent__read_spellings(const char *request, agent_word *ret_old, agent_word *ret_new)
{
    static const struct {
        const char *link;
        bool is_old_first;
    } links[] = {{"instead of", false}, {"rather than", false}, {"in place of", false}, {"not", false},
        {"became", true}, {"becomes", true}, {"is now", true}, {"to", true}};
    for (size_t i = 0; i < sizeof links / sizeof *links; i++)
        for (size_t to = 0; (to = agent__find_phrase(request, to, links[i].link)) != 0;) {
            agent_word before, behind;
            if (!read_literal_before(request, to - strlen(links[i].link), &before) ||
                !read_literal(request, to, &behind))
                continue;
            *ret_old = links[i].is_old_first ? before : behind;
            *ret_new = links[i].is_old_first ? behind : before;
            return true;
        }
    return false;
}
