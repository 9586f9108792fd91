/* Questions by their form: the words that they begin with, and the kind of definition that they name. */
#include "agent/words/name_question.h"

#include <string.h>
#include <strings.h>

#include "agent/words/callers_question.h"
#include "agent/words/request_words.h"
#include "code/words.h"

/* Is it "what creates", "what makes": the word behind "what" a verb of something that the tree does? */
static bool asks_what_does(const char *request)
{
    static const char *const plain[] = {"is", "was", "does", "has", "this", "its", NULL};
    const char *what = strcasestr(request, "what ");
    if (!what || (what > request && what[-1] != ' ')) return false;
    const char *verb = what + strlen("what ");
    const size_t n = strcspn(verb, " ,.?!\n");
    for (const char *const *p = plain; *p; p++)
        if (strlen(*p) == n && !strncasecmp(*p, verb, n)) return false;
    return n > 2 && verb[n - 1] == 's';
}

/* "How does the parser ...", "how is a path ...": not how a person does something. */
static bool asks_how_it_does(const char *request)
{
    return strcasestr(request, "how does ") || strcasestr(request, "how is ") ||
           strcasestr(request, "how are ");
}

bool agent_asks_for_name(const char *request)
{
    return agent__has_word(request, "which") || agent__has_word(request, "where") ||
           asks_what_does(request) || asks_how_it_does(request);
}

/* "function", "class": a kind of definition, and one of it. "Which type of value" asks for no name. */
static bool is_one_kind(const char *s, agent_word w)
{
    char lower[CODE_WORD_BYTES];
    const size_t n = w.to - w.from;
    if (n < 2 || n >= sizeof lower) return false;
    for (size_t i = 0; i < n; i++) lower[i] = (char)(s[w.from + i] | 0x20);
    const char *kind = code_kind_asked(lower, n);
    const bool is_plural = lower[n - 1] == 's' && lower[n - 2] != 's';
    return kind && !is_plural && strcmp(kind, "type") != 0;
}

bool agent_asks_for_one_name(const char *request)
{
    static const char *const asks[] = {"what", "which", NULL}, *const of[] = {"of", NULL};
    agent_callers_question q;
    const bool asks_for_callers = agent_read_callers_question(request, &q); /* these may be many */
    agent_callers_question_free(&q);
    agent_word w, kind, behind;
    for (size_t at = 0; !asks_for_callers && agent__next_word(request, at, &w); at = w.to)
        if (agent__is_any_word(request, w, asks) && agent__next_word(request, w.to, &kind) &&
            is_one_kind(request, kind) &&
            !(agent__next_word(request, kind.to, &behind) && agent__is_any_word(request, behind, of)))
            return true;
    return false;
}
