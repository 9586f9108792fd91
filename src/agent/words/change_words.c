/* Does a request in plain words ask for a change of the tree, or for words? By its first words, mostly. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <strings.h>

#include "agent/words/request_words.h"

const char *agent__first_word(const char *s)
{
    static const char *const polite[] = {
        "please ", "can you ", "could you ", "would you ", "i want you to ", "i would like you to "};
    s += strspn(s, " \t\n");
    for (size_t i = 0; i < sizeof polite / sizeof *polite; i++)
        if (!strncasecmp(s, polite[i], strlen(polite[i]))) return agent__first_word(s + strlen(polite[i]));
    return s;
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (c >= '0' && c <= '9');
}

/* Is a word here what a sentence, or a further part of one, asks to be done: "Rename x", "..., and drop y"? */
static bool begins_order(const char *text, const char *word)
{
    const char *p = word;
    while (p > text && strchr(" \t\n", p[-1])) p--;
    if (p == text || strchr(".,:;!", p[-1])) return true;
    static const char *const before[] = {"and", "then", "please", "pls", "plz"};
    for (size_t i = 0; i < sizeof before / sizeof *before; i++) {
        size_t n = strlen(before[i]);
        if ((size_t)(p - text) >= n && !strncasecmp(p - n, before[i], n) &&
            ((size_t)(p - text) == n || !is_letter(p[-1 - (ptrdiff_t)n])))
            return true;
    }
    return false;
}

/* "When is it freed" asks, "When it is empty, return 0" does not; "Count the lines", but "Count them: a field n". */
static bool is_question_after_all(const char *from)
{
    static const char *const helpers[] = {"is ", "are ", "do ", "does ", "did ", "was ", "were ", "will ",
        "can ", "has ", "have ", "should ", "would "};
    static const char *const things[] = {
        "a field", "a counter", "a new ", "a member", "a method", "a function", "a parameter", "a variable"};
    bool is_question = false;
    if (!strncasecmp(from, "when ", 5))
        for (size_t i = 0; i < sizeof helpers / sizeof *helpers; i++)
            is_question |= !strncasecmp(from + 5, helpers[i], strlen(helpers[i]));
    if (!strncasecmp(from, "count ", 6)) {
        is_question = true;
        for (size_t i = 0; i < sizeof things / sizeof *things; i++)
            is_question &= !strcasestr(from, things[i]);
    }
    return is_question;
}

/* Verbs that order something of code and are hardly said to an assistant otherwise: "warn when", "ignore empty lines". */
static const char *const orders[] = {"accept", "align", "append", "avoid", "cache", "catch", "clamp", "close",
    "bump", "compute", "convert", "correct", "deny", "detect", "disable", "disallow", "discard", "don",
    "emit", "enable", "enforce", "ensure", "escape", "exclude", "expose", "fail", "flush", "forbid", "guard",
    "handle", "hide", "honor", "honour", "ignore", "improve", "include", "keep", "limit", "never", "omit",
    "parse", "permit", "pass", "prefer", "prefix", "preserve", "prevent", "prohibit", "prepare", "propagate",
    "protect", "quote", "raise", "recognise", "recognize", "release", "respect", "restore", "round", "set",
    "skip", "sort", "strip", "swap", "throw", "tolerate", "treat", "trim", "truncate", "unescape", "use",
    "validate", "warn", "wrap", NULL};
/* Said of a program as of an answer: an order where the request says in which case. */
static const char *const shows[] = {"show", "print", "list", "log", "report", "count", "check", "name", NULL};
static const char *const cases[] = {"when", "if", "unless", "instead", "before", "after", "error message",
    "warning", "in the output", "in the help", NULL};

/* These ask for words, whatever stands in front: "don't change anything, explain it". */
static const char *const telling[] = {
    "explain", "describe", "tell", "summarize", "summarise", "anything", NULL};

/* "Warn when the file is empty", "capitalize it": the request begins with what the code shall do. */
static bool begins_with_order(const char *from)
{
    enum { LEAST_WORDS = 3 };
    agent_word w, next = {0};
    uint32_t n = 0;
    while (n < LEAST_WORDS && agent__next_word(from, next.to, &next)) n++;
    if (n < LEAST_WORDS || !agent__next_word(from, 0, &w) || agent__has_any_word(from, telling)) return false;
    const bool is_verb = w.to > strlen("normal") &&
                         (!strncasecmp(from + w.to - 3, "ize", 3) || !strncasecmp(from + w.to - 3, "ise", 3));
    return is_verb || agent__is_any_word(from, w, orders) ||
           (agent__is_any_word(from, w, shows) && agent__has_any_word(from, cases));
}

/* "In encode, skip what is empty", "encode: fail on an empty key": an order behind what it is about. */
static bool has_order_behind(const char *from)
{
    agent_word w = {0};
    while (agent__next_word(from, w.to, &w)) {
        const char *p = from + w.from;
        while (p > from && p[-1] == ' ') p--;
        if (p > from && p < from + w.from && strchr(",.:;!", p[-1]) && agent__is_any_word(from, w, orders))
            return true;
    }
    return false;
}

bool agent__orders_behaviour(const char *request)
{
    /* These may want another signature, or another text. */
    static const char *const others[] = {
        "accept", "append", "expose", "include", "permit", "set", "swap", "use", NULL};
    agent_word m, w;
    if (!agent__next_mention(request, 0, &m) || m.to == m.from) return false;
    size_t at = m.to;
    while (request[at] && strchr("`()", request[at])) at++;
    return request[at] == ':' && request[at + 1] == ' ' && agent__next_word(request, at, &w) &&
           agent__is_any_word(request, w, orders) && !agent__is_any_word(request, w, others);
}

/*
 * "encode hangs as soon as a letter isn't ASCII": a fault is told, of what is there, and no word orders anything else. "The one that
 * panics" describes a definition.
 */
bool agent__complains(const char *request)
{
    static const char *const faults[] = {"hangs", "crashes", "panics", "segfaults", "overflows", "leaks",
        "raises", "throws", "aborts", "fails", "dies with", "blows up", "ends in a", "ends in an",
        "never ends", "never returns", "loops forever", "although", "even though", "doesn't work",
        "does not work", NULL};
    static const char *const describing[] = {"that", "which", "who", "what", "whose", "and", "or", NULL};
    static const char *const others[] = {"delete", "deleted", "remove", "removed", "drop", "dropped",
        "rename", "renamed", "name", "named", "call", "called", "move", "moved", "parameter", "parameters",
        "argument", "arguments", "take", "takes", "accept", "accepts", "extract", "split", "put", "test",
        "tests", "add", "rid", "go", "goes", "become", "becomes", "miss", "need", "needs", "needed", "inline",
        NULL};
    static const char *const links[] = {"although", "even though", NULL};
    static const char *const reasons[] = {"because", "since", NULL}; /* of what is ordered otherwise */
    if (agent__has_any_word(request, others) || agent__has_any_word(request, reasons)) return false;
    for (const char *const *f = faults; *f; f++) {
        const size_t to = agent__find_phrase(request, 0, *f);
        agent_word before;
        const bool is_link = agent__is_any_word(*f, (agent_word){0, strlen(*f)}, links);
        if (to && agent__word_before(request, to - strlen(*f), &before) &&
            (is_link || !agent__is_any_word(request, before, describing)))
            return true;
    }
    return false;
}

/* "I'd like encode to skip it", "have encode skip it", "could encode please skip it?": asked for as one asks a person. */
static bool is_wanted(const char *from)
{
    static const char *const wanting[] = {"i'd like ", "i would like ", "i want ", "we want ", "we'd like ",
        "we would like ", "it would be nice ", "it would be good ", "i need ", "we need "};
    static const char *const asking[] = {"could ", "can ", "would "};
    static const char *const please[] = {"please", "pls", "plz", NULL};
    static const char *const not_you[] = {"have you ", "have we ", "have i ", "have they "};
    for (size_t i = 0; i < sizeof wanting / sizeof *wanting; i++)
        if (!strncasecmp(from, wanting[i], strlen(wanting[i])))
            return !strcasestr(from, " to know") && !strcasestr(from, " to understand") &&
                   !strcasestr(from, " to see");
    for (size_t i = 0; i < sizeof asking / sizeof *asking; i++)
        if (!strncasecmp(from, asking[i], strlen(asking[i])))
            return agent__has_any_word(from, please) && !agent__has_any_word(from, telling);
    for (size_t i = 0; i < sizeof not_you / sizeof *not_you; i++)
        if (!strncasecmp(from, not_you[i], strlen(not_you[i]))) return false;
    return !strncasecmp(from, "have ", 5) || !strncasecmp(from, "teach ", 6);
}

/* "Ring needs a way to be emptied: clear()". */
static bool lacks_something(const char *from)
{
    static const char *const lacking[] = {" needs a ", " needs an ", " lacks a ", " lacks an "};
    bool is_so = false;
    for (size_t i = 0; i < sizeof lacking / sizeof *lacking; i++)
        is_so |= strcasestr(from, lacking[i]) != NULL;
    return is_so;
}

/* "What a cache prints as should end with ...", "What Parser holds is a list. It should ...": a clause, and no question begins so. */
static bool begins_with_clause(const char *from)
{
    static const char *const subjects[] = {"a", "an", "the", "it", "its", "this", "that", "they", NULL};
    static const char *const ordering[] = {"should", "must", NULL};
    agent_word what, subject;
    return agent__next_word(from, 0, &what) && what.to - what.from == 4 &&
           !strncasecmp(from + what.from, "what", 4) && agent__next_word(from, what.to, &subject) &&
           (agent__is_any_word(from, subject, subjects) ||
               (agent__looks_like_name(from, subject) && !strchr(from, '?') &&
                   agent__has_any_word(from, ordering)));
}

/* "where('a').fragment(1) fails", "is_url() gives True": it begins with code, and no question does. */
static bool begins_with_code(const char *from)
{
    agent_word w;
    return agent__next_word(from, 0, &w) &&
           (agent__is_mark(from[0]) || agent__looks_like_name(from, w) || from[w.to] == '(' ||
               (from[w.to] == '.' && agent__is_in_word(from, w.to + 1)));
}

/* "Parsing an empty text crashes", "f('x') ends in a KeyError": what is wrong is told so that it gets mended. */
static bool reports_fault(const char *from)
{
    static const char *const faults[] = {"crashes", "crash", "crashed", "segfaults", "segfault", "hangs",
        "leaks", "overflows", "ends in a", "ends in an", "ends with a", "ends with an", "fails with",
        "fails on", "fails for", "fails when", "fails if", "breaks on", "breaks when", "breaks if",
        "blows up", "dies with", "throws a", "throws an", "never returns", "never ends", "loops forever",
        "infinite loop", "out of bounds", "off by one", "doesn't work", "does not work", "is wrong",
        "goes wrong", "wrongly", "incorrectly", "loses the", "swallows the", "aren't detected",
        "isn't detected", "ignores the", NULL};
    static const char *const looking[] = {"why", "fyi", "how", NULL};
    const bool has_fault = agent__has_any_word(from, faults) || agent__complains(from);
    return !strchr(from, '?') && has_fault && !agent__has_any_word(from, telling) &&
           !agent__has_any_word(from, looking);
}

/* Where the request's last sentence begins. */
static size_t find_last_sentence(const char *request, size_t n)
{
    size_t at = n ? n - 1 : 0;
    while (at > 0 && !(strchr(" \t\n", request[at]) && strchr(".!?\n", request[at - 1]))) at--;
    return at;
}

static bool orders_change(const char *request);

/* "f has no doc for an empty list. What does it give then?": said first, asked then, and nothing is ordered. */
static bool ends_with_question(const char *request, size_t n)
{
    static const char *const asking[] = {
        "why", "how", "where", "who", "what", "which", "does", "did", "do", "is", "are", NULL};
    static const char *const proposing[] = {"why not", "why don", "how about", "what about", "what if",
        "is it possible", "is there a", "is there any"};
    const size_t last = find_last_sentence(request, n);
    agent_word first;
    if (!last || request[n - 1] != '?' || !agent__next_word(request, last, &first)) return false;
    for (size_t i = 0; i < sizeof proposing / sizeof *proposing; i++)
        if (!strncasecmp(request + first.from, proposing[i], strlen(proposing[i]))) return false;
    char said[256];
    const size_t n_said = last < sizeof said ? last : sizeof said - 1;
    memcpy(said, request, n_said);
    said[n_said] = '\0';
    return agent__is_any_word(request, first, asking) && last < sizeof said && !orders_change(said);
}

/* "..., just tell me, change nothing": said at the end of a clause, so "change nothing else" is another thing. */
static bool wants_words_alone(const char *request)
{
    static const char *const alone[] = {"change nothing", "don't change anything", "do not change anything",
        "dont change anything", "don't touch anything", "no changes please", "just tell me", "only tell me",
        "just asking", "just curious", "just a question", "only a question"};
    for (size_t i = 0; i < sizeof alone / sizeof *alone; i++) {
        const char *at = strcasestr(request, alone[i]);
        const char *behind = at ? at + strlen(alone[i]) : NULL;
        if (at && (at == request || !is_letter(at[-1])) && (!*behind || strchr(".,;:!?)\n", *behind)))
            return true;
    }
    return false;
}

/* "Can I delete a key meanwhile?" asks; "can I have it renamed?" does not. */
static bool asks_for_leave(const char *request, size_t n)
{
    static const char *const begins[] = {"can i ", "may i ", "could i ", "should i ", "am i "};
    static const char *const having[] = {"have", "get", NULL};
    const char *from = request + strspn(request, " \t\n");
    agent_word next;
    if (!n || request[n - 1] != '?') return false;
    for (size_t i = 0; i < sizeof begins / sizeof *begins; i++)
        if (!strncasecmp(from, begins[i], strlen(begins[i])))
            return agent__next_word(from, strlen(begins[i]), &next) &&
                   !agent__is_any_word(from, next, having);
    return false;
}

/* "Which function does it? One sentence", "is f pure? thanks": a question mark, and behind it no order and no more than a remark. */
static bool has_mark(const char *request, size_t n)
{
    enum { REMARK = 60 };
    const char *mark = memrchr(request, '?', n);
    return mark && (size_t)(request + n - mark) <= REMARK && !orders_change(mark + 1);
}

bool agent__asks_question(const char *request)
{
    static const char *const asking[] = {"why", "how", "where", "who", "whom", "whose", "does", "did",
        "explain", "describe", "show", "tell", "review", "summarise", "summarize", "compare", NULL};
    static const char *const with_mark[] = {"what", "which", "when", "do", "is", "are", "was", "were", "has",
        "have", "from", "find", "in", "on", NULL};
    static const char *const proposing[] = {"why not", "why don't", "how about"};
    agent_word first;
    size_t n = strlen(request);
    const size_t from = strspn(request, " \t\n");
    while (n > from && strchr(" \t\n", request[n - 1])) n--;
    for (size_t i = 0; i < sizeof proposing / sizeof *proposing; i++)
        if (!strncasecmp(request + from, proposing[i], strlen(proposing[i]))) return false;
    if (wants_words_alone(request) || asks_for_leave(request, n)) return true;
    return agent__next_word(request, 0, &first) && !begins_with_code(request + first.from) &&
           (agent__is_any_word(request, first, asking) || ends_with_question(request, n) ||
               (has_mark(request, n) && agent__is_any_word(request, first, with_mark)));
}

static bool orders_change(const char *request)
{
    static const char *const questions[] = {"which ", "where", "what", "how ", "why", "who", "does ", "do ",
        "is ", "are ", "explain", "show ", "describe", "list ", "find ", "summari", "review", "tell ", "run ",
        "compare ", "name ", "look "};
    static const char *const changes[] = {"add", "renam", "mov", "delet", "remov", "drop", "chang", "mak",
        "let", "give", "refus", "support", "fix", "implement", "replac", "turn", "write", "creat", "introduc",
        "export", "cover", "provid", "allow", "reject", "insert", "extend", "return", "rewrite", "call it",
        "call them", "name them", "flip", "swap", "exchang", "reorder", "inline"};
    const char *from = agent__first_word(request), *end = from + strlen(from);
    bool is_polite = from > request + strspn(request, " \t\n");
    while (end > from && strchr(" \t\n", end[-1])) end--;
    if (wants_words_alone(request)) return false;
    if (is_wanted(from)) return true;
    if (!is_polite && end > from && end[-1] == '?') return false;
    if (begins_with_order(from)) return true;
    for (size_t i = 0; i < sizeof questions / sizeof *questions; i++)
        if (!strncasecmp(from, questions[i], strlen(questions[i])) && !begins_with_clause(from) &&
            !begins_with_code(from))
            return false;
    if (is_question_after_all(from)) return false;
    if (!strncasecmp(from, "count ", 6)) return true;
    if (lacks_something(from)) return true;
    if (agent__has_word(from, "should") || agent__has_word(from, "must") || has_order_behind(from))
        return true;
    for (const char *p = from; *p; p++) {
        if ((p != from && is_letter(p[-1])) || !begins_order(from, p)) continue;
        for (size_t i = 0; i < sizeof changes / sizeof *changes; i++)
            if (!strncasecmp(p, changes[i], strlen(changes[i]))) return true;
    }
    return false;
}

bool agent_asks_for_change(const char *request)
{
    return orders_change(request) || (!agent__asks_question(request) && reports_fault(request));
}
