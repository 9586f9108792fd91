/* What a request names and describes (contract: readings_parts.h). */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "agent/asked/asked.h"
#include "agent/operation/operation.h"
#include "agent/turn/readings_parts.h"
#include "agent/words/operation_words.h"
#include "agent/words/request_words.h"
#include "base/mem.h"
#include "base/path.h"
#include "code/code.h"
#include "code/describe.h"

enum { MOST_IN_FILE = 6, DEPTH = 40 };

static void free_all(read_name *all, size_t n)
{
    for (size_t i = 0; i < n; i++) free(all[i].text);
}

void agent__names_free(read_names *n)
{
    free_all(n->known, n->n_known);
    free_all(n->fresh, n->n_fresh);
    free_all(n->files, n->n_files);
}

/* Takes the name, once. */
static void keep(read_name *all, size_t *n, size_t most, read_name one)
{
    for (size_t i = 0; i < *n; i++) {
        if (strcmp(all[i].text, one.text) != 0) continue;
        all[i].is_place &= one.is_place;
        free(one.text);
        return;
    }
    if (*n >= most)
        free(one.text);
    else
        all[(*n)++] = one;
}

/* Written as nobody writes a word of a sentence. */
static bool is_coded(const char *s, agent_word w)
{
    size_t n_capitals = 0, n_digits = 0;
    for (size_t i = w.from; i < w.to; i++) {
        n_capitals += isupper((unsigned char)s[i]) != 0;
        n_digits += isdigit((unsigned char)s[i]) != 0;
    }
    const bool is_marked = w.from && agent__is_mark(s[w.from - 1]) && s[w.from - 1] == s[w.to];
    return agent__looks_like_name(s, w) || is_marked || s[w.from] == '_' || s[w.to] == '(' ||
           n_capitals > 1 || (n_digits && n_digits < w.to - w.from && isalpha((unsigned char)s[w.from]));
}

/* "From now on Nk is the key": two letters with a capital, and no sentence begins there. */
static bool is_short_name(const char *s, agent_word w)
{
    agent_word before;
    return w.to - w.from == 2 && isupper((unsigned char)s[w.from]) && agent__word_before(s, w.from, &before);
}

/* "I'd like total, count instead of t, c", "I prefer n over count": in front of that, or of one more of its list. */
static bool is_in_place_of(const char *s, agent_word w)
{
    static const char instead[] = "instead of ", over[] = "over ";
    static const char *const preferring[] = {"prefer", "prefers", "rather", "favour", "favor", NULL};
    const char *at = s + w.to + strspn(s + w.to, "`\"'");
    const size_t n_comma = !strncmp(at, ", ", 2) ? 2 : !strncasecmp(at, " and ", 5) ? 5 : 0;
    if (n_comma) at += n_comma + strcspn(at + n_comma, " ");
    return *at == ' ' &&
           (!strncasecmp(at + 1, instead, strlen(instead)) ||
               (!strncasecmp(at + 1, over, strlen(over)) && agent__has_any_word(s, preferring)));
}

/* What says something, or two letters that are no word: "fd", "nk". */
static bool may_be_short(const char *s, agent_word w)
{
    static const char *const small[] = {"an", "as", "at", "be", "by", "do", "he", "if", "in", "is", "it",
        "me", "my", "no", "of", "on", "or", "so", "to", "up", "us", "we", NULL};
    const size_t n = w.to - w.from;
    return n > 2 ? agent__is_content_word(s + w.from, n) : n == 2 && !agent__is_any_word(s, w, small);
}

/* "a pivot: u16", "skip int", "an int fd", "boolean strict": a type beside it, as in a list of parameters. */
static bool is_typed(const char *s, agent_word w)
{
    static const char *const english[] = {
        "string", "const", "long", "short", "list", "byte", "char", "number", "integer", "void", NULL};
    static const char *const articles[] = {"a", "an", "the", "no", NULL};
    agent_word type;
    const size_t at = w.to + (s[w.to] == ':');
    if (agent__is_type(s, w) || !may_be_short(s, w)) return false;
    if (agent__word_before(s, w.from, &type) && type.to + 1 == w.from && agent__is_type(s, type))
        return !agent__is_any_word(s, type, english); /* "string constants" */
    if (!agent__next_word(s, at, &type) || type.from != at + 1 || !agent__is_type(s, type)) return false;
    const bool is_noun = s[w.to] == ' ' && agent__is_any_word(s, type, english); /* "an empty string" */
    return !is_noun || !agent__word_before(s, w.from, &type) || !agent__is_any_word(s, type, articles);
}

/* "writer reads nicer", "Strikethrough is.", "nonce is the better term": said of a name. */
static bool is_praised(const char *s, agent_word w)
{
    static const char *const praising[] = {"reads", "would", "says", "fits", "suits", "tells", NULL};
    static const char *const is[] = {"is", NULL}, *const articles[] = {"the", "a", "much", "far", NULL};
    static const char *const good[] = {"better", "clearer", "nicer", "shorter", "simpler", "usual", "proper",
        "right", "correct", "common", "fine", "plainer", NULL};
    static const char *const others[] = {
        "even", "never", "also", "always", "nobody", "everybody", "everyone", NULL};
    agent_word behind, next;
    if (agent__is_any_word(s, w, others)) return false;
    if (!agent__next_word(s, w.to, &behind) || behind.from != w.to + 1) return false;
    if (agent__is_any_word(s, behind, praising)) return true;
    if (!agent__is_any_word(s, behind, is)) return false;
    if (s[behind.to] && strchr(".,!", s[behind.to])) return true;
    next = behind;
    while (agent__next_word(s, next.to, &next) && agent__is_any_word(s, next, articles))
        ;
    return agent__is_any_word(s, next, good);
}

/* "... for Monday. month!": a sentence of one word. */
static bool is_sentence(const char *s, agent_word w)
{
    return w.from > 2 && s[w.from - 1] == ' ' && strchr(".?!;", s[w.from - 2]) &&
           (!s[w.to] || strchr(".?!", s[w.to]));
}

/* "Let first and last be lo and hi": these two. */
static bool is_one_of_two(const char *s, agent_word w)
{
    static const char *const being[] = {"be", "become", "to", "say", "into", "called", NULL}, *const and[] = {
                                                                                                  "and",
                                                                                                  NULL};
    agent_word before, verb, behind;
    if (!agent__word_before(s, w.from, &before)) return false;
    if (agent__is_any_word(s, before, being) && agent__next_word(s, w.to, &behind))
        return agent__is_any_word(s, behind, and) && agent__next_word(s, behind.to, &verb) &&
               (!s[verb.to] || strchr(",.?!", s[verb.to]));
    return agent__is_any_word(s, before, and) && agent__word_before(s, before.from, &before) &&
           agent__word_before(s, before.from, &verb) && agent__is_any_word(s, verb, being) &&
           (!s[w.to] || strchr(",.?!", s[w.to]));
}

/* Nothing of a sentence stands behind it. */
static bool ends_request(const char *s, agent_word w)
{
    return !s[w.to + strspn(s + w.to, ".?!)`\"' \n")];
}

/* "Call it total", not "what it knows". */
static bool is_named_so(const char *s, agent_word pronoun)
{
    static const char *const pronouns[] = {"it", "them", NULL};
    static const char *const naming[] = {"call", "calling", "name", "rename", "make", NULL};
    agent_word verb;
    return !agent__is_any_word(s, pronoun, pronouns) ||
           (agent__word_before(s, pronoun.from, &verb) && agent__is_any_word(s, verb, naming));
}

/* A plain word that stands where a new name does: "call it total", "... -> total", "(x, total)". */
static bool is_given(const char *s, agent_word w)
{
    static const char *const givers[] = {"to", "into", "called", "named", "it", "them", "as", "say", "become",
        "becomes", "name", "than", "parameter", "argument", "string", "read", NULL};
    static const char *const followers[] = {"please", "that", "which", "and", "as", "in", "there", "here",
        "for", "everywhere", "throughout", "instead", NULL};
    static const char *const no_names[] = {"away", "there", "here", "again", "now", "this", "that", "them",
        "it", "everything", "something", "nothing", "first", "last", "left", "better", "too", "also",
        "please", "instead", NULL};
    agent_word before = {0}, behind = {0};
    if (w.from > 2 && (!strncmp(s + w.from - 3, "-> ", 3) || !strncmp(s + w.from - 3, "=> ", 3))) return true;
    if (is_in_place_of(s, w) || is_typed(s, w)) return true;
    if (w.to - w.from < 2 || agent__is_any_word(s, w, no_names)) return false;
    const bool has_before = agent__word_before(s, w.from, &before),
               has_behind = agent__next_word(s, w.to, &behind);
    const bool ends = !s[w.to] || strchr(".,;:!?\n)=/", s[w.to]) || !strncmp(s + w.to, " =", 2) ||
                      (has_behind && agent__is_any_word(s, behind, followers));
    const bool is_put =
        w.from && s[w.from - 1] == '/' && s[w.to] == '/' && w.from > 3; /* "s/spans/places/" */
    return is_put || is_one_of_two(s, w) ||
           (ends && has_before && agent__is_any_word(s, before, givers) && is_named_so(s, before));
}

/* A plain word that may be one where no other word is: "so: total", "(total)", "total reads nicer", or the last of all. */
static bool may_be_given(const char *s, agent_word w)
{
    static const char *const naming[] = {"name", "named", "call", "called", "rename", NULL};
    const bool is_listed =
        w.from > 1 && !strncmp(s + w.from - 2, ": ", 2) && (!s[w.to] || strchr(".,;=", s[w.to]));
    const bool is_aside = w.from && s[w.from - 1] == '(' && s[w.to] == ')';
    return w.to - w.from > 2 && (is_listed || is_aside || is_praised(s, w) || is_sentence(s, w) ||
                                    (ends_request(s, w) && agent__has_any_word(s, naming)));
}

/* "Ordinal(x int, locale string)": a word between the brackets of a call, and no type. */
static bool is_in_brackets(const char *s, agent_word w)
{
    static const char *const values[] = {"self", "this", "true", "false", "none", "null", "nil", NULL};
    if (w.to - w.from < 2 || agent__is_type(s, w) || agent__is_any_word(s, w, values)) return false;
    if (w.from && s[w.from - 1] == '(' && s[w.to] == ':') return true; /* "an id too (id: str)" */
    if (w.from && s[w.from - 1] == '*') return true;                   /* "(FILE *stream)" */
    for (size_t at = w.from; at > 1 && !strchr(")\n", s[at]); at--)
        if (s[at - 1] == '(') return at > 1 && agent__is_in_word(s, at - 2);
    return false;
}

/* "p should just be width": a plain word that the code has. */
static bool is_to_be(const code_index *index, const char *s, agent_word w, const char *text)
{
    static const char *const being[] = {"be", "just", "simply", NULL};
    agent_word before;
    return agent__word_before(s, w.from, &before) && agent__is_any_word(s, before, being) &&
           code_index_mentions(index, text);
}

static bool is_behind_place(const char *s, size_t from)
{
    static const char *const places[] = {"in", "inside", "within", "from", "of", "by", "like", "beside",
        "near", "alongside", "around", "above", "below", NULL};
    static const char *const fillers[] = {
        "the", "a", "our", "class", "struct", "function", "method", "type", NULL};
    agent_word w;
    while (from && agent__is_mark(s[from - 1])) from--;
    while (agent__word_before(s, from, &w) && agent__is_any_word(s, w, fillers)) from = w.from;
    return agent__word_before(s, from, &w) && agent__is_any_word(s, w, places);
}

/* "X has its own f": where something stands, and not where it goes. */
static bool holds_something(const char *s, size_t to)
{
    static const char *const holding[] = {"has", "holds", "contains", "defines", "keeps", NULL},
                             *const ordered[] = {"to", NULL};
    agent_word verb, next;
    to += strspn(s + to, "`\"'");
    return agent__next_word(s, to, &verb) && verb.from == to + 1 && agent__is_any_word(s, verb, holding) &&
           !(agent__next_word(s, verb.to, &next) && agent__is_any_word(s, next, ordered));
}

/* "To X", "into a new file X": where something goes. */
static bool is_goal(const char *s, size_t from)
{
    static const char *const goals[] = {"to", "into", "in", "under", "inside", "towards", NULL};
    static const char *const fillers[] = {
        "the", "a", "an", "new", "own", "its", "file", "module", "their", "called", "named", NULL};
    agent_word w;
    while (from && (agent__is_mark(s[from - 1]) || s[from - 1] == '(')) from--;
    while (agent__word_before(s, from, &w) && agent__is_any_word(s, w, fillers)) from = w.from;
    return agent__word_before(s, from, &w) && agent__is_any_word(s, w, goals);
}

/* The word with what qualifies it, as far as the tree has such a definition: "Range.contains". */
static char *read_qualified(const code_index *index, const char *s, agent_word *w)
{
    agent_word whole = *w;
    for (size_t dots; (dots = strspn(s + whole.to, ".#:")) && agent__is_in_word(s, whole.to + dots);)
        for (whole.to += dots; agent__is_in_word(s, whole.to); whole.to++)
            ;
    char *text = agent__copy_word(s, whole);
    if (whole.to != w->to && !code_index_is_defined(index, text)) { /* "tree.c:walk" */
        free(text);
        whole = *w;
        text = agent__copy_word(s, whole);
    }
    *w = whole;
    return text;
}

/* "package.json": a file that holds no definitions. */
static bool is_other_file(const code_index *index, const char *mention)
{
    char *path = code_index_path(index, mention);
    const bool is_there = path && !code_language(path, "", 0);
    free(path);
    return is_there;
}

static bool is_any_of(const char *word, const char *const *words)
{
    while (*words && strcmp(word, *words) != 0) words++;
    return *words != NULL;
}

/* The only one of that name outside of tests ("__init__.py"); NULL: none, or several; the caller frees. */
static char *find_module_file(const code_index *index, const char *word)
{
    char **paths = code_index_paths(index), *found = NULL;
    const size_t n = strlen(word);
    bool is_one = true;
    for (size_t i = 0; paths[i]; i++) {
        const char *name = base_path_name(paths[i]);
        if (strncmp(name, word, n) != 0 || strcmp(name + n, ".py") != 0 || code_path_is_test(paths[i]))
            continue;
        is_one &= !found;
        if (!found) found = base_xstrdup(paths[i]);
    }
    code_index_paths_free(paths);
    if (is_one) return found;
    free(found);
    return NULL;
}

/* Is the one of these names a member of the other? */
static bool is_member(const code_index *index, const char *owner, const char *name)
{
    const char *own = code_last_name(owner), *last = code_last_name(name);
    code_place *places = NULL;
    const uint32_t n = code_index_define(index, last, &places);
    bool is_so = false;
    for (uint32_t i = 0; i < n && !is_so; i++) is_so = !strcmp(places[i].parent, own);
    code_places_free(places, n);
    return is_so;
}

/* Several classes have a method of that name, and none of them is named: "drop the alias from __init__". */
static bool is_nobodys(const code_index *index, const char *s, agent_word method)
{
    char *text = agent__copy_word(s, method);
    bool is_so = !code_index_is_sole(index, text, NULL) && !agent__has_word(s, "method") &&
                 !agent__has_word(s, "class");
    for (agent_word w = {0}; is_so && agent__next_word(s, w.to, &w);) {
        char *owner = agent__copy_word(s, w);
        is_so = !is_member(index, owner, text);
        free(owner);
    }
    free(text);
    return is_so;
}

/* "The package's __init__" is a file, and no method. */
static bool keep_module(const code_index *index, const char *s, agent_word w, read_names *ret)
{
    static const char *const init[] = {"__init__", NULL};
    const bool is_module =
        agent__is_module_word(s, w) || (agent__is_any_word(s, w, init) && is_nobodys(index, s, w));
    char *word = is_module ? agent__copy_word(s, w) : NULL,
         *path = word ? find_module_file(index, word) : NULL;
    free(word);
    if (path)
        keep(ret->files, &ret->n_files, READ_MOST_FILES,
            (read_name){path, .is_place = is_behind_place(s, w.from), .is_goal = is_goal(s, w.from),
                .rank = -1, .share = 1});
    return is_module;
}

/* "The function that folds constants", "what guesses the command": something is described. */
static bool describes(const char *s)
{
    enum { NEAR = 4 };
    static const char *const kinds[] = {"function", "method", "helper", "class", "struct", "type", "macro",
        "constant", "variable", "enum", "trait", "interface", "field", "one", "thing", "marker", "setter",
        "getter", "constructor", "destructor", "wrapper", "printer", "routine", "code", "regexp", "regex",
        "table", "property", "predicate", "callback", "error", "exception", "member", "attribute", "alias",
        "check", "decorator", "formatter", "mutex", "lock", "test", "benchmark", "static", "pattern",
        "subclass", "option", "functions", "methods", "constants", NULL};
    static const char *const telling[] = {
        "that", "which", "with", "for", "in", "to", "between", "whose", "of", "next", NULL};
    static const char *const relatives[] = {"that", "which", "whose", "who", NULL}, *const articles[] = {
                                                                                        "the", "that", "our",
                                                                                        "a", NULL};
    static const char *const what[] = {"what", "whatever", NULL};
    agent_word w = {0}, next;
    static const char *const those[] = {"that", "this", "these", NULL};
    for (w = (agent_word){0}; agent__next_word(s, w.to, &w);) {
        agent_word before;
        const bool has_before = agent__word_before(s, w.from, &before);
        if (agent__is_any_word(s, w, what)) return true;
        if (has_before && agent__is_any_word(s, before, articles) && agent__next_word(s, w.to, &next) &&
            agent__is_any_word(s, next, relatives))
            return true; /* "the formatter that" */
        if (!agent__is_any_word(s, w, kinds)) continue;
        if (has_before && agent__is_any_word(s, before, those)) return true;
        next = w;
        for (int i = 0; i < NEAR && agent__next_word(s, next.to, &next); i++)
            if (agent__is_any_word(s, next, telling)) return true;
    }
    return false;
}

/* "What guesses the type of a value": of what is only described there, "the type" and "a value" are words and no names. */
static bool is_of_sentence(const char *s, agent_word w)
{
    static const char *const articles[] = {
        "the", "a", "an", "its", "their", "some", "any", "each", "every", NULL};
    static const char *const kinds[] = {"function", "functions", "method", "methods", "class", "classes",
        "struct", "structs", "type", "types", "helper", "helpers", "field", "fields", "parameter",
        "parameters", "argument", "arguments", "variable", "variables", "constant", "constants", "macro",
        "macros", "property", "enum", "interface", "trait", "table", "test", "tests", "flag", "member", NULL};
    agent_word before, behind;
    if (!agent__word_before(s, w.from, &before) || before.to + 1 != w.from ||
        !agent__is_any_word(s, before, articles))
        return false;
    return !(agent__next_word(s, w.to, &behind) && agent__is_any_word(s, behind, kinds));
}

/* "What converts UTF-8 to UCS is ...": a short word of the sentence in capitals, in the middle of it. */
static bool is_acronym(const char *s, agent_word w)
{
    enum { MOST = 5 };
    static const char capitals[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ";
    agent_word next;
    const bool is_marked = w.from && agent__is_mark(s[w.from - 1]);
    return w.to - w.from <= MOST && strspn(s + w.from, capitals) >= w.to - w.from && !is_marked &&
           strchr(" -", s[w.to]) && agent__next_word(s, w.to, &next);
}

static void find_named(const agent *a, const char *s, read_names *ret)
{
    static const char *const data[] = {"json", "toml", "yaml", "xml", "html", "css", NULL};
    static const char *const documents[] = {"readme", "changelog", "changes", "news", "license", NULL};
    static const char *const values[] = {
        "this", "self", "true", "false", "none", "null", "nil", "undefined", NULL};
    code_index *index = tool_workspace_index(a->workspace);
    agent_word m, w;
    const bool is_description = describes(s);
    for (size_t at = 0; agent__next_mention(s, at, &m); at = m.to > at ? m.to : at + 1) {
        if (m.from == m.to) continue;
        char *mention = agent__copy_word(s, m);
        const char *language = strchr(mention, '.') ? code_language(mention, "", 0) : NULL;
        if (language && !code_language_is_document(language) && !is_any_of(language, data)) {
            keep(ret->files, &ret->n_files, READ_MOST_FILES,
                (read_name){mention, .is_place = is_behind_place(s, m.from) || holds_something(s, m.to),
                    .is_goal = is_goal(s, m.from), .rank = -1, .share = 1});
            continue;
        }
        ret->has_document |= language || agent__is_any_word(s, m, documents) ||
                             (strchr(mention, '.') && is_other_file(index, mention));
        const bool is_path = language || (strchr(mention, '.') && strpbrk(mention, "0123456789/"));
        free(mention);
        if (is_path) continue; /* a document, a version */
        for (size_t k = m.from; k < m.to && agent__next_word(s, k, &w) && w.from < m.to; k = w.to) {
            if (keep_module(index, s, w, ret)) continue;
            char *text = read_qualified(index, s, &w);
            const bool is_long = w.to - w.from > 1,
                       is_number = isdigit((unsigned char)*text) || agent__is_any_word(s, w, values);
            const bool is_content = is_long && agent__is_content_word(text, strlen(text));
            const bool is_new =
                !agent__is_type(s, w) &&
                ((is_coded(s, w) && !(is_description && is_acronym(s, w))) || is_in_brackets(s, w) ||
                    ((is_content || is_in_place_of(s, w) || is_typed(s, w)) && is_given(s, w)));
            const bool is_weak = !is_new && is_content && (may_be_given(s, w) || is_to_be(index, s, w, text));
            const read_name one = {text, .is_place = is_behind_place(s, w.from), .is_weak = is_weak,
                .is_coded = is_coded(s, w), .is_called = s[w.to] == '(' && s[w.to + 1] != ')',
                .is_typed = is_typed(s, w), .rank = -1, .share = 1};
            const bool is_word = is_description && !is_coded(s, w) && is_of_sentence(s, w);
            const bool is_known = is_long && !is_word &&
                                  (is_coded(s, w) || is_content || is_short_name(s, w)) &&
                                  code_index_is_defined(index, text);
            if (is_known && is_weak) /* "p should just be width", and there is a width already */
                keep(ret->fresh, &ret->n_fresh, READ_MOST_FRESH,
                    (read_name){base_xstrdup(text), .is_weak = true, .rank = -1});
            if (is_known)
                keep(ret->known, &ret->n_known, READ_MOST_NAMES, one);
            else if (!is_number && (is_new || is_weak))
                keep(ret->fresh, &ret->n_fresh, READ_MOST_FRESH, one);
            else
                free(text);
        }
    }
}

/* The request without the words that say what is to be done, and without the names of what is not there yet. */
static char *copy_description(const char *s)
{
    static const char *const orders[] = {"rename", "renamed", "renaming", "name", "named", "call", "called",
        "known", "become", "becomes", "move", "moved", "relocate", "put", "live", "belong", "belongs",
        "delete", "deleted", "remove", "removed", "drop", "dropped", "kill", "gone", "go", "goes", "away",
        "out", "rid", "offer", "need", "needs", "needed", "want", "wants", "deserve", "deserves", "readable",
        "better", "weird", "odd", "should", "ought", "must", "please", "could", "would", "file", "new", "now",
        "parameter", "parameters", "argument", "arguments", "take", "takes", "callers", "pass", "last",
        "second", "first", "longer", "more", NULL};
    char *copy = base_xstrdup(s);
    for (agent_word w = {0}; agent__next_word(s, w.to, &w);)
        if (agent__is_any_word(s, w, orders)) memset(copy + w.from, ' ', w.to - w.from);
    return copy;
}

/* By itself, or by its last part. */
static bool is_named_there(const read_names *n, const char *text)
{
    bool is_so = false;
    for (size_t i = 0; i < n->n_known; i++)
        is_so |= n->known[i].rank < 0 && !strcmp(code_last_name(n->known[i].text), code_last_name(text));
    return is_so;
}

/* The definitions that fit the request's words best, in the files that it names, where it describes one. */
static void find_described(const agent *a, const char *s, read_names *n)
{
    code_index *index = tool_workspace_index(a->workspace);
    code_described *found = NULL;
    bool is_named = false; /* and not only where something stands */
    for (size_t i = 0; i < n->n_known; i++) is_named |= n->known[i].is_coded || !n->known[i].is_place;
    if (is_named && !describes(s)) return;
    char *description = copy_description(s), *file = NULL;
    for (size_t i = 0; i < n->n_files && !file; i++) file = code_index_path(index, n->files[i].text);
    const uint32_t n_found = code_index_describe(index, description, s, DEPTH, &found);
    int n_kept = 0;
    for (int pass = 0; pass < 2; pass++) /* those of the file first; the others may be on their way into it */
        for (uint32_t i = 0; i < n_found && n_kept < (pass ? READ_MOST_DESCRIBED : MOST_IN_FILE); i++) {
            if (is_named_there(n, found[i].name) ||
                (file && agent__stands_in(a, found[i].name, file) != !pass))
                continue;
            const size_t n_before = n->n_known;
            keep(n->known, &n->n_known, READ_MOST_NAMES + READ_MOST_DESCRIBED,
                (read_name){base_xstrdup(found[i].name), .rank = n_kept, .share = found[i].share});
            n_kept += n->n_known > n_before;
        }
    code_described_free(found, n_found);
    free(description);
    free(file);
}

/* What a function that is named writes already is hardly new: of "Equals takes a c2, other reads nicer" c2. */
static void find_old(const agent *a, read_names *n)
{
    for (size_t i = 0; i < n->n_fresh; i++)
        for (size_t k = 0; k < n->n_known && !n->fresh[i].is_weak; k++)
            n->fresh[i].is_weak =
                n->known[k].rank < 0 && agent__stands_inside(a, n->known[k].text, n->fresh[i].text);
}

static void drop_weak(read_names *n)
{
    size_t n_kept = 0, n_strong = 0;
    for (size_t i = 0; i < n->n_fresh; i++) n_strong += !n->fresh[i].is_weak;
    for (size_t i = 0; i < n->n_fresh; i++)
        if (n_strong && n->fresh[i].is_weak)
            free(n->fresh[i].text);
        else
            n->fresh[n_kept++] = n->fresh[i];
    n->n_fresh = n_kept;
}

/* "The field n of Options": Options owns n. */
static void find_owners(const agent *a, read_names *n)
{
    const code_index *index = tool_workspace_index(a->workspace);
    for (size_t i = 0; i < n->n_known; i++)
        for (size_t k = 0; k < n->n_known && n->known[i].rank < 0; k++) {
            if (i == k || !is_member(index, n->known[i].text, n->known[k].text)) continue;
            n->known[k].is_inside |= n->known[k].rank >= 0;
            n->known[i].is_owner |= n->known[k].rank < 0;
        }
}

void agent__find_names(const agent *a, const char *request, read_names *ret)
{
    *ret = (read_names){.request = request};
    find_named(a, request, ret);
    find_old(a, ret);
    drop_weak(ret);
    find_described(a, request, ret);
    find_owners(a, ret);
}
