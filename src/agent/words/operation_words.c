/* What a request says of an operation's arguments (contract: operation_words.h). */
#include "agent/words/operation_words.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "agent/words/request_words.h"
#include "base/buf.h"
#include "base/mem.h"

/* The end of the sentence, or of the part of one in front of a semicolon, that holds byte `at`. */
static size_t part_end(const char *s, size_t at)
{
    while (s[at] && !(strchr(".;!?", s[at]) && (!s[at + 1] || isspace((unsigned char)s[at + 1]))) &&
           s[at] != '\n')
        at++;
    return at;
}

/* A value as code writes it: in quotes, in backticks (without them), else up to white space or the sentence's mark. */
static char *read_value(const char *s, size_t at)
{
    static const char *const articles[] = {
        "a", "an", "the", "of", "is", "to", "being", "value", "them", "it", "its", NULL};
    agent_word w;
    for (;;) {
        at += strspn(s + at, " \t:=(");
        if (!agent__is_in_word(s, at)) break;
        if (!agent__next_word(s, at, &w) || !agent__is_any_word(s, w, articles)) break;
        at = w.to;
    }
    size_t end = agent__read_marked(s, at, &w);
    if (end) return agent__copy_word(s, s[at] == '`' ? w : (agent_word){at, end});
    if (agent__is_mark(s[at])) return NULL;
    end = at;
    int depth = 0;
    while (s[end] && (depth || !isspace((unsigned char)s[end]))) {
        if (s[end] == '(') depth++;
        if (s[end] == ')' && --depth < 0) break;
        if (!depth && strchr(",;", s[end])) break;
        if (!depth && strchr(".!?", s[end]) && (!s[end + 1] || isspace((unsigned char)s[end + 1]))) break;
        end++;
    }
    return end > at ? base_xstrndup(s + at, end - at) : NULL;
}

/* --- a parameter ---------------------------------------------------------------------------------------- */

static const char *const parameter_words[] = {"parameter", "argument", "param", NULL};
static const char *const adding[] = {"add", "adds", "give", "take", "takes", "accept", "accepts", "gets",
    "gains", "gain", "introduce", "have", "receive", NULL};
static const char *const removing[] = {"remove", "drop", "delete", "rid", "lose", "loses", NULL};
static const char *const types[] = {"int", "integer", "uint", "bool", "boolean", "string", "str", "float",
    "double", "number", "char", "byte", "void", "const", "long", "short", "unsigned", "size_t", "usize",
    "isize", "list", "dict", "func", NULL};
/* What stands where a name would, and is none. */
static const char *const no_names[] = {"a", "an", "the", "to", "for", "of", "with", "which", "that", "in",
    "and", "from", "so", "called", "named", "instead", "new", "optional", "extra", "further", "additional",
    "unused", "keyword", "positional", "boolean", "is", "as", "on", "its", "by", "default", "last", "first",
    "second", "third", "fourth", "fifth", "sixth", "no", "this", "one", "it", "at", "where", "whose",
    "saying", "telling", "function", "method", "any", "anymore", "more", "too", "again", NULL};
static const char *const ordinals[] = {"first", "second", "third", "fourth", "fifth", "sixth"};

/* What is in backticks behind byte `at`, with nothing but blanks between; the caller frees; NULL. */
static char *in_backticks(const char *s, size_t at, size_t *ret_to)
{
    agent_word code;
    at += strspn(s + at, " ");
    const size_t to = s[at] == '`' ? agent__read_marked(s, at, &code) : 0;
    if (!to) return NULL;
    *ret_to = to;
    return agent__copy_word(s, code);
}

bool agent__is_type(const char *s, agent_word w)
{
    static const char *const sizes[] = {"8", "16", "32", "64", "128", NULL};
    static const char *const sized[] = {"u", "i", "f", "int", "uint", "float", NULL};
    if (agent__is_any_word(s, w, types)) return true;
    for (size_t k = 0; sized[k]; k++) {
        const size_t n = strlen(sized[k]);
        if (w.to - w.from > n && !strncmp(s + w.from, sized[k], n) &&
            agent__is_any_word(s, (agent_word){w.from + n, w.to}, sizes))
            return true;
    }
    return false;
}

/* "int", "size_t", "Duration": can a word be a type's name? */
static bool is_type_word(const char *s, agent_word w)
{
    const bool is_marked = w.to - w.from > 2 && !strncmp(s + w.to - 2, "_t", 2);
    return agent__is_type(s, w) || is_marked || isupper((unsigned char)s[w.from]);
}

/* The word at or behind byte `at`, with nothing but blanks and stars between, that may be a parameter's name. */
static bool read_bare(const char *s, size_t at, agent_word *ret)
{
    static const char *const links[] = {
        "behind", "before", "after", "everywhere", "when", "if", "or", "but", "between", NULL};
    return agent__next_word(s, at, ret) && ret->from > at && strspn(s + at, " *") == ret->from - at &&
           !isdigit((unsigned char)s[ret->from]) && !agent__is_any_word(s, *ret, no_names) &&
           !agent__is_any_word(s, *ret, links);
}

/*
 * "int quiet", "unsigned mode", "const struct node *next": the type's words and the name behind them; "timeout Duration",
 * "limit: int": the type behind the name. false: the word stands alone.
 */
static bool read_typed(const char *s, agent_word first, agent_parameter_words *w)
{
    static const char *const in_front[] = {
        "const", "unsigned", "signed", "long", "short", "struct", "enum", "union", "final", NULL};
    agent_word last = first, name = first;
    bool is_type = is_type_word(s, first);
    for (; agent__is_any_word(s, last, in_front) && read_bare(s, last.to, &name); last = name) is_type = true;
    if (last.from != first.from && (!is_type_word(s, last) || !read_bare(s, last.to, &name)))
        name = last; /* "unsigned mode": the last word is no type, or nothing follows */
    else if (is_type && !read_bare(s, last.to, &name))
        return false;
    if (is_type && name.from != first.from) {
        size_t end = name.from;
        while (s[end - 1] == ' ') end--;
        w->type = agent__copy_word(s, (agent_word){first.from, end});
        w->name = agent__copy_word(s, name);
        w->to = name.to;
        return true;
    }
    const size_t mark = s[first.to] == '?' && s[first.to + 1] == ':'; /* "limit?: number" */
    const size_t behind = first.to + mark + (s[first.to + mark] == ':');
    if (is_type || !read_bare(s, behind, &name)) return false;
    const bool is_qualified = s[name.to] == '.' && agent__is_in_word(s, name.to + 1);
    if (!is_qualified && !is_type_word(s, name)) return false;
    w->name = agent__copy_word(s, first);
    w->is_optional = mark;
    w->to = name.to;
    while (s[w->to] == '.' && agent__is_in_word(s, w->to + 1)) /* time.Duration */
        for (w->to++; agent__is_in_word(s, w->to); w->to++)
            ;
    w->type = agent__copy_word(s, (agent_word){name.from, w->to});
    return true;
}

static void read_name(const char *s, agent_word parameter, agent_parameter_words *w)
{
    agent_word next, before;
    size_t at = parameter.to;
    const size_t end = part_end(s, at);
    if (agent__next_word(s, at, &next) &&
        (agent__is_any_word(s, next, (const char *const[]){"called", "named", NULL})))
        at = next.to;
    w->to = at;
    char *code = in_backticks(s, at, &w->to);
    if (code && strpbrk(code, " :=")) {
        w->declared = code;
    } else if (code) {
        w->name = code;
    } else if (agent__next_word(s, at, &next) && next.from < end &&
               strspn(s + at, " '\"") == next.from - at && !agent__is_any_word(s, next, no_names) &&
               !isdigit((unsigned char)s[next.from])) {
        if (read_typed(s, next, w)) return;
        w->name = agent__copy_word(s, next);
        w->to = next.to;
    } else if (agent__word_before(s, parameter.from, &before) && !agent__is_any_word(s, before, no_names) &&
               !agent__is_type(s, before) && !agent__is_any_word(s, before, adding) &&
               !agent__is_any_word(s, before, removing)) {
        w->name = agent__copy_word(s, before); /* "the mode parameter" */
    }
}

static void read_type(const char *s, agent_word parameter, agent_parameter_words *w)
{
    agent_word before;
    size_t at = agent__find_phrase(s, w->to, "of type");
    if (w->type) return; /* it stood in front of the name */
    if (at) {
        size_t end = at, skip;
        w->type = in_backticks(s, at, &skip);
        at += strspn(s + at, " ");
        while (s[end] && !strchr(",;)", s[end]) && strncmp(s + end, " with ", 6) &&
               strncmp(s + end, " and ", 5) && strncmp(s + end, " to ", 4) &&
               !(s[end] == '.' && (!s[end + 1] || s[end + 1] == ' ')))
            end++;
        if (!w->type && end > at) w->type = base_xstrndup(s + at, end - at);
    } else if (s[w->to] == ' ' && s[w->to + 1] == '(' && strchr(s + w->to, ')')) {
        const size_t n = strcspn(s + w->to + 2, ",)");
        agent_word inner = {w->to + 2, w->to + 2 + n};
        if (agent__is_type(s, inner)) w->type = agent__copy_word(s, inner);
    } else if (agent__word_before(s, parameter.from, &before) && agent__is_type(s, before)) {
        w->type = agent__copy_word(s, before);
    }
    if (w->type && !strcasecmp(w->type, "integer")) memcpy(w->type, "int", 4);
}

/* "u16" in "a pivot: u16 after s", "Option<&str>" in "(id: Option<&str>)": a type as code writes it, from byte `at` on. */
static size_t type_end(const char *s, size_t at)
{
    int depth = 0;
    for (; s[at]; at++) {
        if (strchr("<[(", s[at])) depth++;
        if (strchr(">])", s[at]) && --depth < 0) break;
        if (!depth && strchr(" ,;=`", s[at])) break;
        if (!depth && s[at] == '.' && !agent__is_in_word(s, at + 1)) break;
    }
    return at;
}

static bool begins_sentence(const char *s, size_t at)
{
    while (at && isspace((unsigned char)s[at - 1])) at--;
    return !at || strchr(".:;!?", s[at - 1]);
}

/* The words right in front of a name, with blanks and stars between, that are a type: "unsigned nk", "FILE *out". */
static char *type_in_front(const char *s, agent_word name)
{
    agent_word type;
    if (!agent__word_before(s, name.from, &type) || type.to >= name.from ||
        strspn(s + type.to, " *") != name.from - type.to)
        return NULL;
    const bool is_large = isupper((unsigned char)s[type.from]) && begins_sentence(s, type.from); /* "Let x" */
    if (!memchr(s + type.to, '*', name.from - type.to) && (is_large || !is_type_word(s, type))) return NULL;
    size_t end = name.from;
    while (s[end - 1] == ' ') end--;
    return agent__copy_word(s, (agent_word){type.from, end});
}

/*
 * What a later sentence says of the parameter's type, where it is named again: "`limit: int = 3`" (as it is declared),
 * "limit: int", "int limit", "limit int".
 */
static void read_type_behind(const char *s, agent_parameter_words *w)
{
    const size_t n = strlen(w->name);
    agent_word name, type, code;
    for (size_t at = w->to; !w->type && !w->declared && agent__next_word(s, at, &name); at = name.to) {
        if (name.to - name.from != n || strncmp(s + name.from, w->name, n) != 0) continue;
        const bool is_code = name.from && s[name.from - 1] == '`' && s[name.to] != '`' &&
                             agent__read_marked(s, name.from - 1, &code);
        if (is_code)
            w->declared = agent__copy_word(s, code);
        else if (s[name.to] == ':' && s[name.to + 1] == ' ' && type_end(s, name.to + 2) > name.to + 2)
            w->type = base_xstrndup(s + name.to + 2, type_end(s, name.to + 2) - name.to - 2);
        else if (!(w->type = type_in_front(s, name)) && s[name.to] == ' ' &&
                 agent__next_word(s, name.to, &type) && type.from == name.to + 1 &&
                 agent__is_any_word(s, type, types))
            w->type = agent__copy_word(s, type);
        w->to = name.to;
    }
}

/* "0 by default", "\"T\" by default": the value in front of byte `to`. NULL: none stands there. */
static char *read_value_before(const char *s, size_t to)
{
    while (to > 0 && strchr(" ,(", s[to - 1])) to--;
    size_t from = to;
    if (to > 1 && agent__is_mark(s[to - 1])) {
        for (from = to - 1; from > 0 && s[from - 1] != s[to - 1];) from--;
        if (!from) return NULL;
        if (s[--from] == '`') return base_xstrndup(s + from + 1, to - from - 2);
    } else {
        while (from > 0 && !strchr(" ,(\n", s[from - 1])) from--;
    }
    static const char *const literals[] = {"true", "false", "none", "null", "nil", "undefined", NULL};
    const agent_word w = {from, to};
    const bool is_value =
        to > from && (!isalpha((unsigned char)s[from]) || agent__is_any_word(s, w, literals));
    return is_value ? agent__copy_word(s, w) : NULL; /* "not set by default" */
}

char *agent_read_default_words(const char *s)
{
    const size_t by = agent__find_phrase(s, 0, "by default");
    if (by) return read_value_before(s, by - strlen("by default"));
    static const char *const phrases[] = {"default value of", "default value", "defaults to", "defaulting to",
        "defaulted to", "default to", "default of", "default", NULL};
    char *value = NULL;
    for (const char *const *p = phrases; *p && !value; p++) {
        const size_t at = agent__find_phrase(s, 0, *p);
        if (at) value = read_value(s, at);
    }
    return value;
}

/* "Callers pass 0", "let each call give 0"; "pass 0 where it is called". */
static void read_callers(const char *s, agent_parameter_words *w)
{
    enum { NEAR = 4 };
    static const char *const verbs[] = {"pass", "passes", "passing", "hand", "hands", "give", "gives", NULL};
    static const char *const who[] = {
        "callers", "caller", "calls", "called", "call", "everywhere", "everyone", "everybody", NULL};
    static const char *const whole[] = {"for", "in", "at", "all", "the", "every", "each", "existing",
        "present", "current", "other", "its", "from", NULL};
    agent_word v, other;
    for (size_t at = 0; agent__next_word(s, at, &v) && !w->callers; at = v.to) {
        if (!agent__is_any_word(s, v, verbs)) continue;
        const size_t end = part_end(s, v.to);
        bool is_theirs = false;
        for (size_t k = v.from, n = 0; n < NEAR && agent__word_before(s, k, &other); k = other.from, n++)
            is_theirs |= agent__is_any_word(s, other, who);
        if (!agent__is_any_word(
                s, v, verbs + 5)) /* "give f a parameter, everywhere" says nothing of what callers give */
            for (size_t k = v.to; agent__next_word(s, k, &other) && other.from < end; k = other.to)
                is_theirs |= agent__is_any_word(s, other, who);
        if (is_theirs) w->callers = read_value(s, v.to);
    }
    for (size_t at = 0; !w->callers && agent__next_word(s, at, &v);
         at = v.to) { /* "true for all existing callers" */
        static const char *const callers[] = {"callers", "calls", "caller", "call", NULL};
        if (!agent__is_any_word(s, v, callers)) continue;
        size_t from = v.from;
        bool is_for = false;
        while (agent__word_before(s, from, &other) && agent__is_any_word(s, other, whole)) {
            is_for |= other.to - other.from == 3 && !strncasecmp(s + other.from, "for", 3);
            from = other.from;
        }
        if (is_for) w->callers = read_value_before(s, from);
    }
}

static void read_place(const char *s, agent_word parameter, agent_parameter_words *w)
{
    agent_word before;
    for (size_t at = parameter.from, n = 0; n < 3 && agent__word_before(s, at, &before);
         at = before.from, n++)
        for (size_t i = 0; i < sizeof ordinals / sizeof *ordinals; i++)
            if (strlen(ordinals[i]) == before.to - before.from &&
                !strncasecmp(s + before.from, ordinals[i], before.to - before.from))
                w->at = (int)i + 1;
}

/* The word is "need" of "doesn't need its mode argument any more", "no longer needs". */
static bool is_unneeded(const char *s, agent_word w)
{
    static const char *const needs[] = {"need", "needs", "use", "uses", NULL};
    static const char *const denials[] = {"t", "not", "longer", "never", NULL};
    agent_word before;
    return agent__is_any_word(s, w, needs) && agent__word_before(s, w.from, &before) &&
           agent__is_any_word(s, before, denials);
}

/*
 * Does the sentence up to the word say that one comes or goes: "add an optional parameter", "drop the unused argument", and
 * not "add a method that takes a parameter", "add a check of the argument"?
 */
static agent_parameter_change change_of(const char *s, agent_word parameter)
{
    enum { NEAR = 6 };
    static const char *const breaks[] = {"that", "which", "if", "when", "whether", "for", "check", NULL};
    static const char *const others[] = {
        "function", "method", "class", "test", "option", "command", "test", NULL};
    static const char *const indefinite[] = {"a", "an", "new", "another", "further", "extra", "optional",
        "additional", "first", "second", "third", "fourth", "fifth", "sixth", NULL};
    agent_parameter_change change = AGENT_PARAMETER_STAYS;
    bool is_new = false;
    agent_word w;
    size_t n = 0;
    for (size_t at = parameter.from; agent__word_before(s, at, &w) && !change && n < NEAR + 4;
         at = w.from, n++) {
        if (agent__is_any_word(s, w, breaks)) break;
        if (n < 3) is_new |= agent__is_any_word(s, w, indefinite);
        if ((agent__is_any_word(s, w, removing) || is_unneeded(s, w)) && n < NEAR)
            change = AGENT_PARAMETER_GOES;
        else if (agent__is_any_word(s, w, adding) && is_new)
            change = AGENT_PARAMETER_COMES;
        if (!change && agent__is_any_word(s, w, others) && n < 3) break;
    }
    /* "Add a function f that ... " in front of it: its parameters come with it. */
    for (size_t at = change == AGENT_PARAMETER_COMES ? w.from : 0; agent__word_before(s, at, &w); at = w.from)
        if (agent__is_any_word(s, w, (const char *const[]){"add", "write", "create", "implement", NULL}))
            change = AGENT_PARAMETER_STAYS;
    return change;
}

/* "f gets a bool named strict": a parameter, though nothing calls it that. */
static bool find_named_type(const char *s, agent_word *ret)
{
    static const char *const naming[] = {"called", "named", NULL};
    agent_word w, next;
    for (size_t at = 0; agent__next_word(s, at, &w); at = w.to)
        if (agent__is_any_word(s, w, types) && agent__next_word(s, w.to, &next) &&
            agent__is_any_word(s, next, naming) && change_of(s, w) == AGENT_PARAMETER_COMES) {
            *ret = w;
            return true;
        }
    return false;
}

/* "f gets an int order behind text; callers pass 3": a type with a name, and what is said of it is said of a parameter. */
static bool find_typed(const char *s, agent_word *ret)
{
    static const char *const nouns[] = {"field", "member", "variable", "constant", "function", "method",
        "column", "property", "value", "values", "type", "array", "list", "key", "option", "result", NULL};
    static const char *const english[] = {
        "string", "const", "long", "short", "list", "byte", "char", "number", "void", NULL};
    static const char *const said[] = {"callers", "caller", "default", "defaults", "defaulting", NULL};
    static const char *const places[] = {"behind", "after", "before", NULL};
    agent_word w, next, place;
    for (size_t at = 0; agent__next_word(s, at, &w); at = w.to) {
        if (!agent__is_type(s, w) || change_of(s, w) != AGENT_PARAMETER_COMES) continue;
        while (read_bare(s, w.to, &next) && agent__is_type(s, next)) w.to = next.to; /* "unsigned int" */
        if (agent__is_any_word(s, w, english) || !read_bare(s, w.to, &next) ||
            agent__is_any_word(s, next, nouns))
            continue;
        if (!agent__has_any_word(s, said) &&
            !(agent__next_word(s, next.to, &place) && agent__is_any_word(s, place, places)))
            continue;
        *ret = w;
        return true;
    }
    return false;
}

/* Does a bracket that is open stand in front of byte `at`: "f(x=3"? */
static bool is_in_brackets(const char *s, size_t at)
{
    int depth = 0;
    while (at && s[at - 1] != '\n' && depth <= 0) depth += (s[at - 1] == '(') - (s[at - 1] == ')'), at--;
    return depth > 0;
}

/* Do the words in front of byte `at` give something to a function: "add", "f takes an optional", "give f a"? */
static bool is_given_to(const char *s, size_t at)
{
    enum { NEAR = 5 };
    static const char *const verbs[] = {"add", "adds", "take", "takes", "accept", "accepts", "gets", "gain",
        "gains", "introduce", "need", "needs", "want", "wants", NULL};
    static const char *const fillers[] = {
        "a", "an", "the", "also", "optional", "new", "extra", "another", "keyword", "additional", NULL};
    static const char *const give[] = {"give", NULL};
    agent_word w;
    size_t n_names = 0;
    for (int i = 0; i < NEAR && agent__word_before(s, at, &w); i++, at = w.from) {
        if (agent__is_any_word(s, w, verbs)) return !n_names;
        if (agent__is_any_word(s, w, give)) return n_names == 1;
        if (!agent__is_any_word(s, w, fillers)) n_names++;
    }
    return false;
}

/* "f should take encoding='utf-8'": as Python and JavaScript declare one, where nothing calls it a parameter. */
static bool read_assigned(const char *s, agent_parameter_words *ret)
{
    static const char *const calls[] = {
        "call", "calls", "called", "calling", "invocation", "invocations", "pass", "passes", NULL};
    agent_word w;
    for (size_t at = 0; agent__next_word(s, at, &w); at = w.to) {
        if (s[w.to] != '=' || !s[w.to + 1] || strchr("= ", s[w.to + 1]) ||
            !(isalpha((unsigned char)s[w.from]) || s[w.from] == '_'))
            continue;
        if ((w.from && strchr("-.", s[w.from - 1])) || is_in_brackets(s, w.from) || !is_given_to(s, w.from) ||
            agent__has_any_word(s, calls))
            continue;
        char *value = read_value(s, w.to + 1);
        if (value) value[strcspn(value, "`")] = '\0';
        if (value && *value) {
            base_buf declared = {0};
            base_buf_printf(&declared, "%.*s=%s", (int)(w.to - w.from), s + w.from, value);
            ret->to = w.to + 1 + strlen(value);
            ret->from = w.from;
            ret->declared = base_buf_take(&declared);
            ret->name = agent__copy_word(s, w);
            ret->change = AGENT_PARAMETER_COMES;
            ret->is_assigned = true;
        }
        free(value);
        return ret->is_assigned;
    }
    return false;
}

/* "step: number = 1", "mode='r'": the default right behind what declares one. */
static char *read_assigned_value(const char *s, size_t at)
{
    at += strspn(s + at, " ");
    if (s[at] != '=' || s[at + 1] == '=' || s[at + 1] == '>') return NULL;
    char *value = read_value(s, at + 1);
    if (value) value[strcspn(value, "`")] = '\0';
    return value;
}

bool agent_read_parameter_words(const char *request, agent_parameter_words *ret)
{
    agent_word w, parameter = {0};
    *ret = (agent_parameter_words){0};
    for (size_t at = 0; agent__next_word(request, at, &w) && !parameter.to; at = w.to) {
        if (!agent__is_any_word(request, w, parameter_words)) continue;
        ret->change = change_of(request, w);
        if (ret->change) parameter = w;
    }
    const bool is_typed =
        !parameter.to && (find_named_type(request, &parameter) || find_typed(request, &parameter));
    if (is_typed) ret->change = AGENT_PARAMETER_COMES;
    if (!parameter.to) return read_assigned(request, ret);
    read_name(request, parameter, ret);
    if (is_typed) ret->type = agent__copy_word(request, parameter);
    read_place(request, parameter, ret);
    if (ret->change == AGENT_PARAMETER_COMES) {
        read_type(request, parameter, ret);
        if (ret->name && !ret->type && !ret->declared) read_type_behind(request, ret);
        ret->value = read_assigned_value(request, ret->to);
        if (!ret->value) ret->value = agent_read_default_words(request);
        read_callers(request, ret);
        const char *c = ret->callers;
        /* "take the limit as a third parameter; pass maxDistance": it is called what it gets. */
        if (!ret->name && !ret->declared && c && (isalpha((unsigned char)*c) || *c == '_') &&
            c[strspn(c, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789")] == '\0')
            ret->name = base_xstrdup(c);
    }
    return true;
}

void agent_parameter_words_free(agent_parameter_words *w)
{
    free(w->declared);
    free(w->name);
    free(w->type);
    free(w->value);
    free(w->callers);
    *w = (agent_parameter_words){0};
}

/* --- what stands instead -------------------------------------------------------------------------------- */

bool agent_read_instead_words(const char *request, agent_instead_words *ret)
{
    static const char *const phrases[] = {"replace its calls with", "replace its calls by",
        "replace the calls with", "replace the calls by", "replace calls with", "replace calls by",
        "replaced by", "replace it with", "replace it by", "in favour of", "in favor of", "switch to",
        "become", "use", "uses", "using", "call", "calls", "put", "write", NULL};
    static const char *const whose[] = {"caller", "callers", "calls", "uses", "call sites", "instead",
        "in favour of", "in favor of", "replaced by", "replace it with", "replace it by",
        "where it was called", "where it is called", "where it's called", "where it was used",
        "where it is used", "where it's used", "in its place", NULL};
    static const char *const no_function[] = {"it", "them", "with", "by", "the", "a", "an", "that", "this",
        "instead", "of", "its", "only", "to", "is", "sites", NULL};
    bool is_said = false;
    *ret = (agent_instead_words){0};
    for (const char *const *p = whose; *p; p++) is_said |= agent__find_phrase(request, 0, *p) != 0;
    for (const char *const *p = phrases; *p && is_said && !ret->name; p++) {
        agent_word w;
        for (size_t at = 0; !ret->name && (at = agent__find_phrase(request, at, *p));) {
            const size_t begin = at + strspn(request + at, " `");
            /* ".value", "->value": of what the call gives */
            const size_t dot = !strncmp(request + begin, "->", 2) ? 2 : request[begin] == '.';
            if (!agent__next_word(request, begin + dot, &w) || w.from != begin + dot ||
                agent__is_any_word(request, w, no_function))
                continue;
            w.from = begin;
            while (request[w.to] == '.' && agent__is_in_word(request, w.to + 1))
                for (w.to++; agent__is_in_word(request, w.to); w.to++)
                    ;
            ret->name = agent__copy_word(request, w);
            size_t end = w.to;
            int depth = 0;
            do {
                depth += (request[end] == '(') - (request[end] == ')');
                end += depth > 0 || request[end] == ')';
            } while (depth > 0 && request[end]);
            if (end > w.to + 2 && !depth) ret->call = base_xstrndup(request + w.from, end - w.from);
            end += strspn(request + end, " `");
            if (!strncasecmp(request + end, "with ", 5)) ret->with = read_value(request, end + 5);
        }
    }
    if (ret->call && (strstr(ret->call, "...") ||
                         strstr(ret->call, "\xe2\x80\xa6"))) { /* "g(...)": what it gets is not said */
        free(ret->call);
        ret->call = NULL;
    }
    return ret->name != NULL;
}

void agent_instead_words_free(agent_instead_words *w)
{
    free(w->call);
    free(w->name);
    free(w->with);
    *w = (agent_instead_words){0};
}
