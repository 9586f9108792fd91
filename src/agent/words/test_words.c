/* Is a new test wanted, though the request does not begin with "add a test"? (contract: request_words.h) */
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
    "is untested", "are untested", "isn't covered by", "is not covered by", NULL};
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
    const char *end = request + strlen(request);
    while (end > request && strchr(" \t\n", end[-1])) end--;
    const bool asks = end > request && end[-1] == '?' && agent__first_word(request) == request;
    if (asks || agent__has_any_word(request, others)) return false;
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
