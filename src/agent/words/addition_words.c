/* The new function that a request asks for (contract: operation_words.h). */
#include "agent/words/operation_words.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "agent/words/request_words.h"
#include "base/mem.h"
#include "code/code.h"

/* Nouns for a function; "context manager" is two words. */
static const char *const kinds[] = {"function", "func", "fn", "method", "helper", "classmethod",
    "staticmethod", "property", "getter", "setter", "accessor", "predicate", "generator", "iterator",
    "decorator", "coroutine", "shortcut", "manager", NULL};
static const char *const members[] = {"method", "classmethod", "property", "getter", "setter", NULL};
static const char *const adding[] = {"add", "write", "create", "implement", "introduce", "define", "provide",
    "offer", "give", "get", "gets", "have", "needs", "lacks", NULL};

/* Is the word a noun for a function? "Context manager" is one of two words: *w is both then. */
static bool read_kind(const char *s, agent_word *w)
{
    static const char *const managers[] = {"manager", NULL};
    static const char *const contexts[] = {"context", NULL};
    agent_word before;
    if (!agent__is_any_word(s, *w, kinds)) return false;
    if (!agent__is_any_word(s, *w, managers)) return true;
    if (!agent__word_before(s, w->from, &before) || !agent__is_any_word(s, before, contexts)) return false;
    w->from = before.from;
    return true;
}

/* "We need a way to count them: a function count()": nothing but an article stands between the colon and the word at `at`. */
static bool is_wanted_in_front(const char *s, size_t at)
{
    static const char *const wanting[] = {
        "need", "needs", "want", "wants", "lack", "lacks", "miss", "add", NULL};
    static const char *const articles[] = {"a", "an", "the", "new", NULL};
    agent_word w;
    while (agent__word_before(s, at, &w) && agent__is_any_word(s, w, articles)) at = w.from;
    while (at > 0 && strchr(" `", s[at - 1])) at--;
    if (!at || s[at - 1] != ':') return false;
    size_t from = at - 1;
    while (from > 0 && !strchr(".;!?\n:", s[from - 1])) from--;
    char *front = base_xstrndup(s + from, at - 1 - from);
    const bool is_so = agent__has_any_word(front, wanting);
    free(front);
    return is_so;
}

/* "Add a static helper function": an adding verb near in front of the word, in its sentence. */
static bool is_added(const char *s, agent_word kind)
{
    enum { NEAR = 6 };
    static const char *const others[] = {
        "test", "tests", "parameter", "argument", "call", "calls", "to", "in", "of", "that", NULL};
    agent_word w;
    for (size_t at = kind.from, n = 0; n < NEAR && agent__word_before(s, at, &w); at = w.from, n++) {
        if (agent__is_any_word(s, w, adding)) return true;
        if (agent__is_any_word(s, w, others)) return false;
    }
    return is_wanted_in_front(s, kind.from);
}

/* "a method clear to Queue", but "a method to clear it": the sentence goes on behind the word as behind a name. */
static bool goes_on(const char *s, agent_word w)
{
    static const char *const links[] = {"to", "in", "into", "on", "for", "that", "which", "returning", "with",
        "and", "taking", "beside", "next", "so", "as", NULL};
    static const char *const no_names[] = {"of", "is", "call", "calls", "from", "by", "who", "body", "it",
        "parameter", "argument", "also", "only", "here", "there", NULL};
    agent_word next;
    if (w.to - w.from < 2 || agent__is_any_word(s, w, links) || agent__is_any_word(s, w, no_names))
        return false;
    return !s[w.to] || strchr(".,;", s[w.to]) ||
           (agent__next_word(s, w.to, &next) && agent__is_any_word(s, next, links));
}

/* The name at or behind byte `at` ("called is_odd", "`Stack.pop()`", "is_odd(n)"); false: no name stands there. */
static bool read_name(const char *s, size_t at, agent_word *ret)
{
    static const char *const naming[] = {"called", "named", NULL};
    agent_word w;
    bool is_said = false;
    while (agent__next_word(s, at, &w) && strspn(s + at, " `\"'") == w.from - at &&
           agent__is_any_word(s, w, naming)) {
        is_said = true;
        at = w.to;
    }
    if (!agent__next_word(s, at, &w) || strspn(s + at, " `\"'") != w.from - at) return false;
    const bool is_marked = w.from > 0 && agent__is_mark(s[w.from - 1]);
    size_t dots = strspn(s + w.to, ".:");
    while (dots > 0 && agent__is_in_word(s, w.to + dots)) { /* Stack.pop, Stack::pop */
        for (w.to += dots; agent__is_in_word(s, w.to); w.to++)
            ;
        is_said = true;
        dots = strspn(s + w.to, ".:");
    }
    *ret = w;
    return is_said || is_marked || s[w.to] == '(' || agent__looks_like_name(s, w) || goes_on(s, w);
}

/*
 * "Add a Keys method to Tree", but "add a static method to Tree", "add a sorting function": a plain word between an article
 * and the kind is the name where it says nothing of how the function is, and the sentence goes on behind the kind.
 */
static bool is_plain_name(const char *s, agent_word w, agent_word kind)
{
    static const char *const articles[] = {"a", "an", "the", NULL};
    static const char *const links[] = {"to", "in", "into", "on", "that", "which", NULL};
    static const char *const qualities[] = {"new", "other", "another", "second", "third", "further", "extra",
        "single", "simple", "small", "short", "separate", "public", "private", "protected", "internal",
        "external", "static", "class", "instance", "member", "free", "inline", "virtual", "abstract", "async",
        "generic", "pure", "global", "local", "module", "package", "helper", "utility", "convenience",
        "wrapper", "factory", "getter", "setter", "accessor", "callback", "constructor", "constant", "test",
        "similar", "same", "missing", "optional", "default", "common", "shared", "python", "rust", "java",
        "javascript", "typescript", "go", "c", NULL};
    static const char *const endings[] = {"ing", "ed", "tion", "sion", "ison", "able", "ible", NULL};
    agent_word before, next;
    if (!agent__word_before(s, w.from, &before) || !agent__is_any_word(s, before, articles) ||
        !agent__next_word(s, kind.to, &next) || !agent__is_any_word(s, next, links) ||
        agent__is_any_word(s, w, qualities) || w.to - w.from < 2)
        return false;
    bool is_described = false;
    for (const char *const *e = endings; *e; e++)
        is_described |= w.to - w.from > strlen(*e) && !strncasecmp(s + w.to - strlen(*e), *e, strlen(*e));
    return !is_described;
}

/* "Add a GetFloat method": the name in front of the kind. */
static bool read_name_before(const char *s, agent_word kind, agent_word *ret)
{
    agent_word w;
    if (!agent__word_before(s, kind.from, &w)) return false;
    size_t between = w.to;
    if (s[between] == '(' && s[between + 1] == ')') between += 2;
    *ret = w;
    return strspn(s + between, " `\"'") == kind.from - between &&
           (agent__looks_like_name(s, w) || between > w.to || (w.from > 0 && agent__is_mark(s[w.from - 1])) ||
               is_plain_name(s, w, kind));
}

/* "(a, b)" from byte `at` on; behind it. 0: no bracket stands there, or it is not closed on its line. */
static size_t behind_bracket(const char *s, size_t at)
{
    int depth = 0;
    if (s[at] != '(') return 0;
    do {
        depth += (s[at] == '(') - (s[at] == ')');
        at++;
    } while (s[at] && s[at] != '\n' && depth > 0);
    return depth ? 0 : at;
}

/* "Add direct access: bucket_item(map, i) returns ...": what is to be added is described in front of the name's colon. */
static bool is_added_behind_colon(const char *s, agent_word w, size_t behind)
{
    static const char *const verbs[] = {"add", "implement", "create", "introduce", NULL};
    static const char *const giving[] = {"returns", "gives", "tells", "says", "is", NULL};
    size_t at = w.from;
    agent_word next;
    while (at > 0 && strchr(" `", s[at - 1])) at--;
    if (!behind || !at || s[at - 1] != ':' || !agent__next_word(s, behind, &next) ||
        !agent__is_any_word(s, next, giving))
        return false;
    size_t from = at - 1;
    while (from > 0 && !strchr(".;!?\n:", s[from - 1])) from--;
    char *front = base_xstrndup(s + from, at - 1 - from);
    const bool is_so = agent__next_word(front, 0, &next) && agent__is_any_word(front, next, verbs);
    free(front);
    return is_so;
}

/* "Tells", "computes": what a new function is said to do. */
static bool is_third_person(const char *s, agent_word w)
{
    return w.to - w.from > 2 && s[w.to - 1] == 's';
}

/* A name in capitals alone is a constant's. */
static bool has_small_letter(const char *s, agent_word w)
{
    for (size_t i = w.from; i < w.to; i++)
        if (s[i] >= 'a' && s[i] <= 'z') return true;
    return false;
}

/* "It would be handy to have Router.count()". */
static bool is_wished_for(const char *s)
{
    static const char *const liking[] = {
        "handy", "nice", "useful", "helpful", "good", "great", "convenient", "like", "want", NULL};
    return agent__has_any_word(s, liking);
}

/* Does a file of code follow ("to argparse.c")? */
static bool is_into_file(const char *s, size_t at)
{
    static const char *const into[] = {"to", "in", "into", NULL};
    agent_word w, m;
    if (!agent__next_word(s, at, &w) || !agent__is_any_word(s, w, into) || !agent__next_mention(s, w.to, &m))
        return false;
    char *said = agent__copy_word(s, m);
    const char *language = strchr(said, '.') ? code_language(said, "", 0) : NULL;
    const bool is_code = language && !code_language_is_document(language);
    free(said);
    return is_code;
}

/*
 * "Add clear(self): ...", "add and export is_valid, which returns ...", "add count_all to a.c", "provide a recipe last_of(x)": a name
 * right behind the verb, no kind said.
 */
static bool is_added_alone(const char *s, agent_word w)
{
    static const char *const verbs[] = {
        "add", "implement", "write", "create", "introduce", "define", "provide", "offer", NULL};
    static const char *const having[] = {"have", NULL};
    static const char *const fillers[] = {
        "and", "export", "a", "an", "the", "new", "missing", "public", "exported", "static", NULL};
    static const char *const relative[] = {"which", "that", "it", NULL};
    agent_word before = w, next, verb;
    bool is_behind = false, has_noun = false;
    while (!is_behind && agent__word_before(s, before.from, &before)) {
        is_behind = agent__is_any_word(s, before, verbs) ||
                    (agent__is_any_word(s, before, having) && s[w.to] == '(' && is_wished_for(s));
        if (is_behind || agent__is_any_word(s, before, fillers)) continue;
        if (has_noun || s[w.to] != '(' || !agent__looks_like_name(s, w)) return false;
        has_noun = true;
    }
    if (!is_behind) return false;
    if (s[w.to] == '(') return true;
    if (!agent__looks_like_name(s, w)) return false;
    return (is_into_file(s, w.to) && has_small_letter(s, w)) ||
           (agent__next_word(s, w.to, &next) && agent__is_any_word(s, next, relative) &&
               agent__next_word(s, next.to, &verb) && is_third_person(s, verb));
}

/* "Add JsonArray.first()": the word with the members behind it, where a bracket follows them. */
static agent_word with_members(const char *s, agent_word w)
{
    agent_word whole = w, next;
    size_t dots = strspn(s + whole.to, ".:");
    while (dots > 0 && agent__is_in_word(s, whole.to + dots) && agent__next_word(s, whole.to, &next)) {
        whole.to = next.to;
        dots = strspn(s + whole.to, ".:");
    }
    return s[whole.to] == '(' ? whole : w;
}

static bool is_plain(const char *s)
{
    static const char *const decorated[] = {"static", "staticmethod", "classmethod", "class method",
        "property", "async", "asynchronous", "coroutine", "decorator", "abstract", "overload", "cached",
        "context manager", "fixture", NULL};
    return !agent__has_any_word(s, decorated);
}

/* What Python writes above a function that the request describes so; NULL: nothing is known. */
static const char *decorator_of(const char *s)
{
    static const struct {
        const char *said, *decorator;
    } decorators[] = {
        {"static method", "staticmethod"},
        {"staticmethod", "staticmethod"},
        {"class method", "classmethod"},
        {"classmethod", "classmethod"},
        {"property", "property"},
        {"context manager", "contextmanager"},
    };
    static const char *const others[] = {"cached", "async", "asynchronous", "abstract", "setter", NULL};
    if (agent__has_any_word(s, others)) return NULL;
    for (size_t i = 0; i < sizeof decorators / sizeof *decorators; i++)
        if (agent__has_word(s, decorators[i].said)) return decorators[i].decorator;
    return NULL;
}

/* "function double total(const Cart *c)": behind the kind words of a type, then a name with its bracket. */
static bool read_declared(const char *s, size_t at, agent_word *ret_name, size_t *ret_from)
{
    enum { MOST = 3 };
    static const char *const no_types[] = {"that", "which", "to", "for", "in", "into", "on", "of", "like",
        "calling", "returning", "with", "and", "using", "named", "called", "as", "so", "is", "it", NULL};
    agent_word w;
    *ret_from = at + strspn(s + at, " `");
    for (int n = 0; n <= MOST && agent__next_word(s, at, &w) && strspn(s + at, " *&`") == w.from - at; n++) {
        *ret_name = w;
        if (s[w.to] == '(') return n > 0;
        if (agent__is_any_word(s, w, no_types)) return false;
        at = w.to;
    }
    return false;
}

/* Bytes of the type that the text begins with: "Option<usize>", "(f64, bool)"; what ends its sentence or its part is none of it. */
static size_t type_length(const char *s)
{
    size_t n = 0;
    for (int depth = 0; s[n] && s[n] != '\n' && (depth > 0 || !strchr(" ,;`", s[n])); n++)
        depth += (strchr("<([", s[n]) != NULL) - (strchr(">)]", s[n]) != NULL);
    while (n && strchr(".:", s[n - 1])) n--;
    return n;
}

static void take_name(const char *s, agent_word w, agent_addition_words *ret)
{
    size_t last = w.to;
    while (last > w.from && agent__is_in_word(s, last - 1)) last--;
    ret->name = base_xstrndup(s + last, w.to - last);
    size_t end = last;
    while (end > w.from && strchr(".:", s[end - 1])) end--;
    size_t from = end;
    while (from > w.from && agent__is_in_word(s, from - 1)) from--;
    if (end > from) ret->holder = base_xstrndup(s + from, end - from);
    const size_t to = behind_bracket(s, w.to);
    if (to > w.to + 2) ret->parameters = base_xstrndup(s + w.to + 1, to - w.to - 2);
    const char *arrow = to ? s + to + strspn(s + to, " ") : ""; /* "-> bool" */
    const size_t n = strncmp(arrow, "-> ", 3) ? 0 : 3 + type_length(arrow + 3);
    if (n > 3) ret->returns = base_xstrndup(arrow, n);
}

bool agent_read_addition_words(const char *request, agent_addition_words *ret)
{
    agent_word kind, name;
    *ret = (agent_addition_words){0};
    for (size_t at = 0; agent__next_word(request, at, &kind) && !ret->name; at = kind.to) {
        if (!read_kind(request, &kind) || !is_added(request, kind)) continue;
        size_t from = 0;
        const bool is_declared = read_declared(request, kind.to, &name, &from);
        if (is_declared || read_name(request, kind.to, &name) || read_name_before(request, kind, &name))
            take_name(request, name, ret);
        const size_t to = is_declared ? behind_bracket(request, name.to) : 0;
        if (to) ret->declared = base_xstrndup(request + from, to - from);
        ret->is_method = ret->name && agent__is_any_word(request, kind, members);
    }
    for (size_t at = 0; !ret->name && agent__next_word(request, at, &name); at = name.to) {
        name = with_members(request, name);
        if (is_added_alone(request, name) ||
            is_added_behind_colon(request, name, behind_bracket(request, name.to))) {
            take_name(request, name, ret);
            ret->is_bare = !strncmp(request + name.to, "()", 2);
        }
    }
    ret->is_plain = is_plain(request);
    ret->decorator = ret->name && !ret->is_plain ? decorator_of(request) : NULL;
    return ret->name != NULL;
}

/* The place where the request writes that name: with its bracket, where there is one such. */
static bool find_name(const char *s, const char *name, agent_word *ret)
{
    agent_word w = {0};
    bool is_found = false;
    while (agent__next_word(s, w.to, &w) && !(is_found && s[ret->to] == '(')) {
        if (w.to - w.from != strlen(name) || memcmp(s + w.from, name, strlen(name)) != 0) continue;
        if (!is_found || s[w.to] == '(') *ret = w;
        is_found = true;
    }
    return is_found;
}

/* "the option lowercaseKeys", "a field n_calls", "by calling os_fspath": in front of it, or behind, stands what no new function is. */
static bool is_other_thing(const char *s, agent_word w)
{
    static const char *const things[] = {"option", "flag", "parameter", "argument", "keyword", "field",
        "member", "attribute", "variable", "constant", "key", "column", "setting", "macro", "class", "struct",
        "enum", "type", "interface", "trait", "error", "exception", "event", "module", "package", "file",
        "header", "test", "alias", "command", "target", "rename", NULL};
    static const char *const taking[] = {
        "use", "uses", "using", "with", "via", "by", "of", "like", "calls", "calling", "from", NULL};
    static const char *const naming[] = {"called", "named", NULL};
    static const char *const being[] = {"be", "is", NULL}, *const extending[] = {"extend", "extends", NULL};
    static const char *const articles[] = {"a", "an", "the", "new", NULL};
    agent_word before, behind;
    bool has_front = agent__word_before(s, w.from, &before), is_named = false;
    while (has_front && (agent__is_any_word(s, before, naming) || agent__is_any_word(s, before, articles))) {
        is_named |= agent__is_any_word(s, before, naming);
        has_front = agent__word_before(s, before.from, &before);
    }
    if (has_front && agent__is_any_word(s, before, being)) return is_named; /* "it should be called f" */
    if (agent__has_any_word(s, extending)) has_front = false;               /* "extend it by f(x)" */
    return (has_front && (agent__is_any_word(s, before, things) || agent__is_any_word(s, before, taking))) ||
           (s[w.to] == ' ' && agent__next_word(s, w.to, &behind) && agent__is_any_word(s, behind, things));
}

bool agent_read_new_name(const char *request, const char *name, agent_addition_words *ret)
{
    static const char *const coming[] = {"add", "implement", "write", "create", "introduce", "define",
        "provide", "offer", "lack", "lacks", "missing", "extend", "expose", "there should be",
        "should be possible", "able to", "does not exist", "doesn't exist", NULL};
    static const char *const needing[] = {"need", "needs", "want", NULL};
    static const char *const denied[] = {"don't need", "doesn't need", "do not need", "does not need",
        "no need", "don't want", "do not want", "no longer needs", NULL};
    agent_word w;
    *ret = (agent_addition_words){0};
    const bool is_needed = agent__has_any_word(request, needing) && !agent__has_any_word(request, denied);
    if ((!is_needed && !agent__has_any_word(request, coming)) || !find_name(request, name, &w) ||
        is_other_thing(request, w))
        return false;
    const bool is_written_small = *name >= 'a' && *name <= 'z';
    if (!is_written_small && request[w.to] != '(') return false;
    take_name(request, with_members(request, w), ret);
    ret->is_plain = is_plain(request);
    ret->decorator = ret->is_plain ? NULL : decorator_of(request);
    return true;
}

void agent_addition_words_free(agent_addition_words *w)
{
    free(w->name);
    free(w->parameters);
    free(w->returns);
    free(w->declared);
    free(w->holder);
    *w = (agent_addition_words){0};
}

bool agent_is_addition_place(const char *request, size_t from)
{
    static const char *const in_front[] = {
        "to", "in", "into", "on", "of", "for", "class", "struct", "give", "type", NULL};
    static const char *const fillers[] = {"the", "class", "struct", "type", "interface", "trait", NULL};
    agent_word w;
    for (size_t at = from; agent__word_before(request, at, &w); at = w.from) {
        if (agent__is_any_word(request, w, in_front)) return true;
        if (!agent__is_any_word(request, w, fillers)) return false;
    }
    return false;
}
