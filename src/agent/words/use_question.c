/* Questions about use (contract: use_question.h). */
#include "agent/words/use_question.h"

#include <string.h>
#include <strings.h>

/* A "yes" to these says that nothing uses it. */
static const char *const may_go[] = {"can i delete", "can i remove", "can i drop", "can i get rid of",
    "can i safely", "can we delete", "can we remove", "can we drop", "can we get rid of", "can we safely",
    "could i delete", "could i remove", "could i drop", "could we delete", "could we remove", "could we drop",
    "may i delete", "may i remove", "may i drop", "safe to delete", "safe to remove", "safe to drop",
    "ok to delete", "ok to remove", "okay to delete", "okay to remove", "be deleted", "be removed",
    "be dropped", "can it go", "dead code", "unused", "dead", "obsolete", "not used", NULL};
/* A "yes" to these says that something does. */
static const char *const is_used[] = {"still used", "still needed", "still called", "still referenced",
    "still in use", "in use", "used anywhere", "used at all", "used by anything", "used by anyone",
    "used somewhere", "called anywhere", "called at all", "called by anything", "called by anyone",
    "needed anywhere", "needed at all", "referenced anywhere", "ever used", "ever called", "anything use",
    "anything call", "anyone use", "anyone call", "anybody use", "anybody call", "anything depend",
    "anyone depend", "anything need", "anything break", "really needed", "actually used", "actually called",
    NULL};
/* No yes or no. */
static const char *const what_depends[] = {"what breaks", "what would break", "what will break",
    "what happens if i remove", "what happens if i delete", "what happens if i drop",
    "what happens if we remove", "what happens if we delete", "what depends on", "who depends on",
    "what relies on", "what is affected", "what would be affected", "what needs", "what references",
    "who uses", "what uses", "who needs", NULL};

static bool is_question(const char *request)
{
    static const char *const asking[] = {"is", "are", "does", "do", "can", "what", "who", NULL};
    agent_word first;
    return strchr(request, '?') != NULL || agent__asks_question(request) ||
           (agent__next_word(request, 0, &first) && agent__is_any_word(request, first, asking));
}

bool agent_asks_for_uses(const char *request)
{
    return is_question(request) && !agent_asks_for_change(request) &&
           (agent__has_any_word(request, may_go) || agent__has_any_word(request, is_used) ||
               agent__has_any_word(request, what_depends));
}

/* Words of such questions that are hardly what is asked about, unless they are written as names are. */
static const char *const plain[] = {"delete", "deleted", "remove", "removed", "drop", "dropped", "safe",
    "safely", "dead", "code", "unused", "obsolete", "used", "needed", "called", "referenced", "still",
    "anywhere", "anything", "anyone", "anybody", "somewhere", "break", "breaks", "happens", "depends",
    "depend", "relies", "affected", "ever", "really", "actually", "references", "needs", "need", "call",
    "calls", "method", "class", "constant", "variable", "helper", "type", "struct", "macro", "module",
    "field", "okay", "change", "changed", "rid", "without", "breaking", "project", "repo", "repository",
    "tree", "codebase", "would", "may", "did", "does", "something", "else", "if", NULL};

bool agent_next_asked_use(const char *request, size_t *at, agent_word *ret)
{
    while (agent__next_word(request, *at, ret)) {
        *at = ret->to;
        while ((request[*at] == '.' && agent__is_in_word(request, *at + 1)) || /* Cls.method */
               (request[*at] == ':' && request[*at + 1] == ':' && agent__is_in_word(request, *at + 2))) {
            agent_word next;
            if (!agent__next_word(request, *at, &next)) break;
            *at = ret->to = next.to;
        }
        const bool is_name = agent__looks_like_name(request, *ret) || request[ret->to] == '(' ||
                             (ret->from && agent__is_mark(request[ret->from - 1]));
        if (is_name || (ret->to - ret->from > 1 && !agent__is_any_word(request, *ret, plain) &&
                           (ret->to - ret->from < 3 ||
                               agent__is_content_word(request + ret->from, ret->to - ret->from))))
            return true;
    }
    return false;
}

static bool begins(const char *text, const char *word)
{
    text += strspn(text, " \t\n*_\"'");
    return !strncasecmp(text, word, strlen(word)) && !agent__is_in_word(text, strlen(word));
}

agent_said_use agent_read_said_use(const char *request, const char *answer)
{
    static const char *const unused[] = {"not used", "isn't used", "is unused", "never used", "never called",
        "not called", "isn't called", "not referenced", "no longer used", "no longer needed", "not needed",
        "nothing calls", "nothing uses", "nothing breaks", "nothing would break", "nothing depends",
        "no callers", "no uses", "no references", "no function calls", "used nowhere", "called nowhere",
        "safe to delete", "safe to remove", "safely delete", "safely remove", "safely be deleted",
        "safely be removed", "can be deleted", "can be removed", "can delete", "can remove", "is dead code",
        "not used anywhere", "called by no", "used by no", NULL};
    static const char *const used[] = {"cannot be deleted", "cannot be removed", "cannot delete",
        "cannot remove", "can't delete", "can't remove", "can not delete", "not safe", "not dead code",
        "isn't dead", "not unused", "still used", "is used", "is called by", "is called in", "still called",
        "still needed", NULL};
    const bool is_yes = begins(answer, "yes"), is_no = begins(answer, "no");
    const bool is_may = agent__has_any_word(request, may_go),
               is_use = !is_may && agent__has_any_word(request, is_used);
    if ((is_may && is_yes) || (is_use && is_no)) return AGENT_SAYS_UNUSED;
    if ((is_may && is_no) || (is_use && is_yes)) return AGENT_SAYS_USED;
    const bool says_used = agent__has_any_word(answer, used),
               says_unused = agent__has_any_word(answer, unused);
    return says_used == says_unused ? AGENT_SAYS_NOTHING : says_used ? AGENT_SAYS_USED : AGENT_SAYS_UNUSED;
}
