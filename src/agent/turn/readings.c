/* What a request may mean: the operations that its names allow (contract: readings.h). */
#include "agent/turn/readings.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "agent/asked/asked.h"
#include "agent/operation/operation.h"
#include "agent/retrieve/retrieve.h"
#include "agent/words/request_words.h"
#include "base/mem.h"
#include "code/code.h"
#include "code/rank.h"

enum { MAX_NAMES = 6, MAX_FRESH = 3, MAX_FILES = 3, MAX_DESCRIBED = 8, MAX_PARAMETERS = 8 };

/* How each is called in the examples, and said where the program takes it; NULL: the request stands as it is. */
static const struct form {
    const char *call, *sentence;
} forms[AGENT_N_READINGS] = {
    [AGENT_READ_RENAME] = {"rename(%s, %s)", "Rename %s to %s."},
    [AGENT_READ_RENAME_BOTH] = {"rename(%s, %s); rename(%s, %s)", "Rename %s to %s and %s to %s."},
    [AGENT_READ_RENAME_PARAMETER] = {"rename_parameter(%s, %s, %s)", "Rename %s.%s to %s."},
    [AGENT_READ_RENAME_PARAMETERS] = {"rename_parameter(%s, %s, %s); rename_parameter(%s, %s, %s)",
        "Rename %s.%s to %s and %s.%s to %s."},
    [AGENT_READ_MOVE] = {"move(%s, %s)", "Move %s to %s."},
    [AGENT_READ_MOVE_BOTH] = {"move(%s, %s); move(%s, %s)", "Move %s to %s and %s to %s."},
    [AGENT_READ_DELETE] = {"delete(%s)", "Delete %s."},
    [AGENT_READ_DELETE_BOTH] = {"delete(%s); delete(%s)", "Delete %s and %s."},
    [AGENT_READ_DROP] = {"drop_parameter(%s, %s)", "From %s, remove the parameter %s."},
    [AGENT_READ_INSERT] = {"add_parameter(%s, %s)", "Give %s a parameter %s: "},
    [AGENT_READ_REORDER] = {"reorder_parameters(%s, %s, %s)", "Let %s take %s before %s."},
    [AGENT_READ_ADD] = {"add(%s)", NULL},
    [AGENT_READ_CHANGE] = {"change(%s)", NULL},
    [AGENT_READ_TEST] = {"test(%s)", NULL},
    [AGENT_READ_ANSWER] = {"answer()", NULL},
};

bool agent__is_operation_reading(agent_reading_kind kind)
{
    return forms[kind].sentence != NULL;
}

void agent__readings_free(agent_readings *r)
{
    for (uint32_t i = 0; i < r->n; i++) {
        free(r->all[i].call);
        free(r->all[i].meaning);
    }
    r->n = 0;
}

/* --- what is named ---------------------------------------------------------------------------------------- */

/* A name and where it stands; is_place: nowhere but "in X"; rank: how many fit its description better; -1: it is named. */
typedef struct name {
    char *text;
    bool is_place;
    int rank;
} name;

/* What the request names: definitions of the tree, those that it describes, names that the tree does not write, files of code. */
typedef struct names {
    name known[MAX_NAMES + MAX_DESCRIBED], fresh[MAX_FRESH], files[MAX_FILES];
    size_t n_known, n_fresh, n_files;
} names;

static void free_all(name *all, size_t n)
{
    for (size_t i = 0; i < n; i++) free(all[i].text);
}

static void names_free(names *n)
{
    free_all(n->known, n->n_known);
    free_all(n->fresh, n->n_fresh);
    free_all(n->files, n->n_files);
}

/* Takes the name, once. */
static void keep(name *all, size_t *n, size_t most, name one)
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

/* "I'd like total, count instead of t, c": in front of that, or of one more of its list. */
static bool is_in_place_of(const char *s, agent_word w)
{
    static const char instead[] = "instead of ";
    const char *at = s + w.to + strspn(s + w.to, "`\"'");
    const size_t n_comma = !strncmp(at, ", ", 2) ? 2 : !strncasecmp(at, " and ", 5) ? 5 : 0;
    if (n_comma) at += n_comma + strcspn(at + n_comma, " ");
    return *at == ' ' && !strncasecmp(at + 1, instead, strlen(instead));
}

/* A plain word that stands where a new name does: "call it total", "... -> total", "(x, total)". */
static bool is_given(const char *s, agent_word w)
{
    static const char *const givers[] = {"to", "into", "called", "named", "it", "them", "as", "say", "become",
        "becomes", "name", "than", "parameter", "argument", NULL};
    agent_word before;
    if (w.from > 2 && (!strncmp(s + w.from - 3, "-> ", 3) || !strncmp(s + w.from - 3, "=> ", 3))) return true;
    const bool ends = !s[w.to] || strchr(".,;:!?\n)=", s[w.to]) || !strncasecmp(s + w.to, " please", 7) ||
                      !strncmp(s + w.to, " =", 2);
    static const char *const no_names[] = {"away", "there", "here", "again", "now", "this", "that", "them",
        "it", "everything", "something", "nothing", "first", "last", "left", "better", NULL};
    if (w.to - w.from < 3 || agent__is_any_word(s, w, no_names)) return false;
    return is_in_place_of(s, w) ||
           (agent__word_before(s, w.from, &before) && agent__is_any_word(s, before, givers) && ends);
}

/* "Ordinal(x int, locale string)": a word between the brackets of a call, and no type. */
static bool is_in_brackets(const char *s, agent_word w)
{
    static const char *const types[] = {"int", "string", "bool", "boolean", "float", "double", "char",
        "const", "void", "long", "short", "unsigned", "size_t", "usize", "str", "list", "dict", "byte",
        "self", "this", "true", "false", "none", "null", "nil", NULL};
    if (w.to - w.from < 3 || agent__is_any_word(s, w, types)) return false;
    if (w.from && s[w.from - 1] == '*') return true; /* "(FILE *stream)" */
    for (size_t at = w.from; at > 1 && !strchr(")\n", s[at]); at--)
        if (s[at - 1] == '(') return at > 1 && agent__is_in_word(s, at - 2);
    return false;
}

static bool is_behind_place(const char *s, size_t from)
{
    static const char *const places[] = {"in", "inside", "within", "from", "of", NULL};
    static const char *const fillers[] = {
        "the", "a", "our", "class", "struct", "function", "method", "type", NULL};
    agent_word w;
    while (from && agent__is_mark(s[from - 1])) from--;
    while (agent__word_before(s, from, &w) && agent__is_any_word(s, w, fillers)) from = w.from;
    return agent__word_before(s, from, &w) && agent__is_any_word(s, w, places);
}

/* The word with what qualifies it, as far as the tree has such a definition: "Range.contains". */
static char *read_name(const code_index *index, const char *s, agent_word *w)
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

static void find_named(const agent *a, const char *s, names *ret)
{
    static const char *const values[] = {
        "this", "self", "true", "false", "none", "null", "nil", "undefined", NULL};
    code_index *index = tool_workspace_index(a->workspace);
    agent_word m, w;
    for (size_t at = 0; agent__next_mention(s, at, &m); at = m.to > at ? m.to : at + 1) {
        if (m.from == m.to) continue;
        char *mention = agent__copy_word(s, m);
        const char *language = strchr(mention, '.') ? code_language(mention, "", 0) : NULL;
        if (language && !code_language_is_document(language)) {
            keep(ret->files, &ret->n_files, MAX_FILES, (name){mention, is_behind_place(s, m.from), -1});
            continue;
        }
        const bool is_path = language || (strchr(mention, '.') && strpbrk(mention, "0123456789/"));
        free(mention);
        if (is_path) continue; /* a document, a version */
        for (size_t k = m.from; k < m.to && agent__next_word(s, k, &w) && w.from < m.to; k = w.to) {
            char *text = read_name(index, s, &w);
            const bool is_long = w.to - w.from > 1,
                       is_number = isdigit((unsigned char)*text) || agent__is_any_word(s, w, values);
            const bool is_content = is_long && agent__is_content_word(text, strlen(text));
            const name one = {text, is_behind_place(s, w.from), -1};
            if (code_index_is_defined(index, text) && is_long && (is_coded(s, w) || is_content))
                keep(ret->known, &ret->n_known, MAX_NAMES, one);
            else if (!is_number && (is_coded(s, w) || is_in_brackets(s, w) || (is_content && is_given(s, w))))
                keep(ret->fresh, &ret->n_fresh, MAX_FRESH, one);
            else
                free(text);
        }
    }
}

/* "The function that folds constants", "what guesses the command": something is described. */
static bool describes(const char *s)
{
    enum { NEAR = 4 };
    static const char *const kinds[] = {"function", "method", "helper", "class", "struct", "type", "macro",
        "constant", "variable", "enum", "trait", "interface", "field", "one", "thing", "marker", "setter",
        "getter", "constructor", "wrapper", "routine", "code", "regexp", "table", NULL};
    static const char *const telling[] = {
        "that", "which", "with", "for", "in", "to", "between", "whose", "of", NULL};
    static const char *const what[] = {"what", "whatever", NULL};
    agent_word w = {0}, next;
    if (agent__next_word(s, 0, &w) && agent__is_any_word(s, w, what)) return true;
    for (w = (agent_word){0}; agent__next_word(s, w.to, &w);) {
        if (!agent__is_any_word(s, w, kinds)) continue;
        next = w;
        for (int i = 0; i < NEAR && agent__next_word(s, next.to, &next); i++)
            if (agent__is_any_word(s, next, telling)) return true;
    }
    return false;
}

/* The definitions that fit the request's words best, in the files that it names, where it names none itself. */
static void find_described(const agent *a, const char *s, names *n)
{
    enum { DEPTH = 40 };
    code_index *index = tool_workspace_index(a->workspace);
    code_ranked *ranked = NULL;
    code_hits hits = {0};
    if (!describes(s)) return;
    agent_named named;
    char *file = NULL;
    for (size_t i = 0; i < n->n_files && !file; i++) file = code_index_path(index, n->files[i].text);
    agent__find_named(a, s, &named);
    const uint32_t n_ranked = code_index_rank(index, NULL, s, DEPTH, &ranked);
    code_index_search(index, s, DEPTH, &hits);
    int n_found = 0;
    for (uint32_t i = 0; i < named.n || i < n_ranked || i < hits.n; i++) {
        const struct {
            const char *path, *name;
        } found[] = {{NULL, i < named.n ? named.items[i].name : ""},
            {i < n_ranked ? ranked[i].path : "", i < n_ranked ? ranked[i].name : ""},
            {i < hits.n ? hits.hits[i].path : "", i < hits.n ? hits.hits[i].name : ""}};
        for (size_t k = 0; k < sizeof found / sizeof *found && n_found < MAX_DESCRIBED; k++) {
            const char *path = found[k].path, *called = found[k].name;
            const bool is_there = file && *called && agent__stands_in(a, called, file);
            if (!*called || (file && !is_there) || (path && code_path_is_test(path)) ||
                !code_index_is_defined(index, called))
                continue;
            const size_t n_before = n->n_known;
            keep(n->known, &n->n_known, MAX_NAMES + MAX_DESCRIBED,
                (name){base_xstrdup(called), false, n_found});
            n_found += n->n_known > n_before;
        }
    }
    agent_named_free(&named);
    code_hits_free(&hits);
    code_ranked_free(ranked, n_ranked);
    free(file);
}

/* --- what its words say ----------------------------------------------------------------------------------- */

/* Of the sentence as a whole; a reading gets those that count for its kind. */
typedef struct words {
    bool condition, going, naming, carrying, taking, parameter, making, part, behaviour;
} words;

static words read_words(const char *s)
{
    static const char *const going[] = {"delete", "deleted", "deleting", "remove", "removed", "removing",
        "removal", "drop", "dropped", "gone", "go", "goes", "rid", "need", "needs", "needed", "require",
        "required", "superfluous", "obsolete", "miss", "misses", "unused", "uses", "used", "dead", "exist",
        "disappear", "lose", "away", "out", "useless", "without", "left", "kill", "purge", "redundant",
        "deprecated", "calls", "longer", "more", "stop", "strip", "never", "nobody", "throw", "scrap",
        "vanish", "leave", "leaves", "eliminate", "retire", "unnecessary", "pointless", "always", "trash",
        "ditch", "axe", "nuke", "cut", NULL};
    static const char *const naming[] = {"name", "names", "named", "naming", "rename", "renamed", "renaming",
        "call", "called", "misnamed", "misnomer", "typo", "misspelled", "misspelt", "spelling", "spelled",
        "prefix", "suffix", "become", "becomes", "instead", "rather", "better", "say", "says", "read",
        "reads", "clearer", "consistency", "consistent", "correct", "deserves", "confusing", "generic",
        "make", NULL};
    static const char *const carrying[] = {"move", "moved", "moving", "live", "lives", "belong", "belongs",
        "relocate", "put", "place", "into", "home", "better", "over", "business", "out", "with", "own",
        "extract", "bring", "pull", "split", "shift", "transfer", "go", "goes", "wants", "new", NULL};
    static const char *const taking[] = {"take", "takes", "accept", "accepts", "parameter", "argument",
        "param", "arg", "get", "gets", "want", "wants", "need", "needs", "pass", "passes", "default",
        "defaults", "optional", "missing", "extend", "given", "give", "callers", "caller", "calls", NULL};
    static const char *const conditions[] = {"when", "whenever", "if", "unless", "once", "while", NULL};
    static const char *const parameters[] = {"parameter", "parameters", "argument", "arguments", "param",
        "params", "arg", "args", "signature", NULL};
    static const char *const making[] = {"add", "write", "create", "implement", "lack", "lacks", "introduce",
        "new", "missing", "define", NULL};
    static const char *const parts[] = {"check", "checks", "line", "lines", "comment", "comments", "entry",
        "newline", "case", "cases", "branch", "message", "error", "value", "values", "result", "header",
        "heading", "import", "imports", "docstring", "key", "warning", "whitespace", "text", "output",
        "option", "flag", "limit", NULL};
    static const char *const behaviour[] = {"return", "returns", "raise", "raises", "throw", "throws",
        "write", "writes", "print", "prints", "skip", "skips", "ignore", "ignores", "refuse", "refuses",
        "export", "exports", "handle", "handles", "support", "supports", "allow", "allows", "report",
        "reports", NULL};
    return (words){.condition = agent__has_any_word(s, conditions),
        .going = agent__has_any_word(s, going),
        .naming = agent__has_any_word(s, naming) || strstr(s, "->") || strstr(s, "=>"),
        .carrying = agent__has_any_word(s, carrying),
        .taking = agent__has_any_word(s, taking) || strstr(s, "->") || strstr(s, "=>"),
        .parameter = agent__has_any_word(s, parameters),
        .making = agent__has_any_word(s, making),
        .part = agent__has_any_word(s, parts) || strchr(s, '"'),
        .behaviour = agent__has_any_word(s, behaviour)};
}

/* --- what may be meant ------------------------------------------------------------------------------------ */

/* One request on its way to its readings. */
typedef struct finding {
    const agent *a;
    const char *request;
    names n;
    words w;
    agent_readings *r;
} finding;

/* The names are those of the form's call, in order. */
static agent_reading *may_mean(finding *f, agent_reading_kind kind, ...)
{
    const char *const texts[] = {forms[kind].call, forms[kind].sentence};
    char *made[2] = {NULL, NULL};
    agent_readings *r = f->r;
    if (r->n == AGENT_MAX_READINGS) return NULL;
    for (int i = 0; i < 2; i++) {
        if (!texts[i]) continue;
        base_buf text = {0};
        va_list args;
        va_start(args, kind);
        for (const char *p = texts[i]; *p; p++)
            if (!strncmp(p, "%s", 2)) {
                base_buf_puts(&text, va_arg(args, const char *));
                p++;
            } else {
                base_buf_putc(&text, *p);
            }
        va_end(args);
        if (i && kind == AGENT_READ_INSERT)
            base_buf_puts(&text, f->request); /* its default, what callers pass */
        made[i] = base_buf_take(&text);
    }
    r->has_operation |= made[1] != NULL;
    r->all[r->n] = (agent_reading){.kind = kind, .call = made[0], .meaning = made[1]};
    return &r->all[r->n++];
}

/* How many of the names stand nowhere in the call? */
static uint8_t count_left(const name *all, size_t n, const char *call)
{
    uint8_t n_left = 0;
    for (size_t i = 0; i < n; i++)
        n_left += all[i].rank < 0 && !all[i].is_place && !strstr(call, all[i].text);
    return n_left;
}

static void sign(const finding *f, agent_reading *one, const name *about, bool is_unnamed)
{
    static const struct {
        bool goes, is_parameter, names, carries, takes;
    } facts[AGENT_N_READINGS] = {
        [AGENT_READ_RENAME] = {.names = true},
        [AGENT_READ_RENAME_BOTH] = {.names = true},
        [AGENT_READ_RENAME_PARAMETER] = {.names = true, .is_parameter = true},
        [AGENT_READ_RENAME_PARAMETERS] = {.names = true, .is_parameter = true},
        [AGENT_READ_MOVE] = {.carries = true},
        [AGENT_READ_MOVE_BOTH] = {.carries = true},
        [AGENT_READ_DELETE] = {.goes = true},
        [AGENT_READ_DELETE_BOTH] = {.goes = true},
        [AGENT_READ_DROP] = {.goes = true, .is_parameter = true},
        [AGENT_READ_INSERT] = {.takes = true, .is_parameter = true},
        [AGENT_READ_REORDER] = {.is_parameter = true},
    };
    if (!one || !one->meaning) return;
    const words *w = &f->w;
    const agent_reading_kind k = one->kind;
    uint8_t *s = one->signs;
    s[AGENT_SIGN_FRESH_LEFT] = count_left(f->n.fresh, f->n.n_fresh, one->call);
    s[AGENT_SIGN_KNOWN_LEFT] = count_left(f->n.known, f->n.n_known, one->call);
    s[AGENT_SIGN_FILE_LEFT] = count_left(f->n.files, f->n.n_files, one->call);
    s[AGENT_SIGN_DESCRIBED] = about->rank >= 0;
    s[AGENT_SIGN_PLACE] = about->is_place && !facts[k].is_parameter;
    s[AGENT_SIGN_UNNAMED] = is_unnamed;
    s[AGENT_SIGN_NO_GOING] = facts[k].goes && !w->going;
    s[AGENT_SIGN_NO_NAMING] = facts[k].names && !w->naming;
    s[AGENT_SIGN_NO_CARRYING] = facts[k].carries && !w->carrying;
    s[AGENT_SIGN_NO_TAKING] = facts[k].takes && !w->taking;
    s[AGENT_SIGN_PARAMETER] = !facts[k].is_parameter && w->parameter;
    s[AGENT_SIGN_MAKING] = w->making;
    s[AGENT_SIGN_BEHAVIOUR] = w->behaviour;
    s[AGENT_SIGN_PART] = facts[k].goes && w->part;
}

/* "Give f and g the pre_ prefix": both get names that begin so. */
static void add_prefix_readings(finding *f)
{
    static const char *const cues[] = {"prefix", "prefixed", "prefixes", "begin", "start", NULL};
    const names *n = &f->n;
    const char *prefix = NULL;
    if (!agent__has_any_word(f->request, cues)) return;
    for (size_t k = 0; k < n->n_fresh && !prefix; k++)
        if (base_ends_with(n->fresh[k].text, "_")) prefix = n->fresh[k].text;
    base_buf made[MAX_NAMES] = {0};
    for (size_t i = 0; i < n->n_known && i < MAX_NAMES && prefix; i++) {
        if (n->known[i].rank >= 0) continue;
        base_buf_printf(&made[i], "%s%s", prefix, code_last_name(n->known[i].text));
        sign(f, may_mean(f, AGENT_READ_RENAME, n->known[i].text, made[i].data), &n->known[i], false);
        for (size_t k = 0; k < i; k++)
            if (made[k].len)
                sign(f,
                    may_mean(f, AGENT_READ_RENAME_BOTH, n->known[k].text, made[k].data, n->known[i].text,
                        made[i].data),
                    &n->known[i], false);
    }
    for (size_t i = 0; i < MAX_NAMES; i++) base_buf_free(&made[i]);
}

static bool is_parameter(const agent_function *g, const char *word)
{
    for (size_t i = 0; i < g->n; i++)
        if (!strcmp(g->parameters[i], word)) return true;
    return false;
}

/* "The local x in f": a variable of the function's. */
static void add_local_readings(finding *f, const name *of, const agent_function *g)
{
    static const char *const cues[] = {"local", "locals", "variable", "variables", "var", "counter", NULL};
    const char *s = f->request;
    agent_word w = {0};
    if (!agent__has_any_word(s, cues)) return;
    while (agent__next_word(s, w.to, &w)) {
        char *word = agent__copy_word(s, w);
        const bool may = agent__is_content_word(word, strlen(word)) && !is_parameter(g, word) &&
                         !agent__is_any_word(s, w, cues) && strcmp(word, of->text) != 0 &&
                         !code_index_is_defined(tool_workspace_index(f->a->workspace), word) &&
                         agent__stands_inside(f->a, of->text, word);
        for (size_t k = 0; k < f->n.n_fresh && may; k++)
            sign(f, may_mean(f, AGENT_READ_RENAME_PARAMETER, of->text, word, f->n.fresh[k].text), of, false);
        free(word);
    }
}

/* Of the parameters of a function that the request names. */
static void add_parameter_readings(finding *f, const name *of)
{
    agent_function g = {0};
    const char *s = f->request;
    const char *named[MAX_PARAMETERS];
    size_t n_named = 0, at[MAX_PARAMETERS];
    if (!agent__look_up_function(f->a, of->text, &g)) return;
    for (size_t i = 0; i < g.n; i++) {
        const char *p = g.parameters[i];
        const bool is_named = agent__has_word(s, p) && strcmp(p, of->text) != 0;
        const bool may_drop = is_named || (f->w.going && g.n <= MAX_PARAMETERS);
        if (may_drop && (is_named || !f->n.n_fresh))
            sign(f, may_mean(f, AGENT_READ_DROP, of->text, p), of, !is_named);
        for (size_t k = 0; k < f->n.n_fresh && is_named; k++)
            if (!is_parameter(&g, f->n.fresh[k].text))
                sign(f, may_mean(f, AGENT_READ_RENAME_PARAMETER, of->text, p, f->n.fresh[k].text), of, false);
        if (is_named && n_named < MAX_PARAMETERS) {
            at[n_named] = agent__find_phrase(s, 0, p);
            named[n_named++] = p;
        }
    }
    add_local_readings(f, of, &g);
    for (size_t i = 0; i < n_named; i++)
        for (size_t k = 0; k < n_named; k++) {
            if (i != k) sign(f, may_mean(f, AGENT_READ_REORDER, of->text, named[i], named[k]), of, false);
            if (f->n.n_fresh == 2 && at[i] < at[k])
                sign(f,
                    may_mean(f, AGENT_READ_RENAME_PARAMETERS, of->text, named[i], f->n.fresh[0].text,
                        of->text, named[k], f->n.fresh[1].text),
                    of, false);
        }
    if (g.n == 2 && !n_named && f->w.parameter)
        sign(f, may_mean(f, AGENT_READ_REORDER, of->text, g.parameters[1], g.parameters[0]), of, true);
    for (size_t k = 0; k < f->n.n_fresh; k++)
        if (!is_parameter(&g, f->n.fresh[k].text))
            sign(f, may_mean(f, AGENT_READ_INSERT, of->text, f->n.fresh[k].text), of, false);
    agent__function_free(&g);
}

/* Two definitions at once. */
static void add_pairs(finding *f)
{
    const names *n = &f->n;
    for (size_t i = 0; i < n->n_known; i++)
        for (size_t k = i + 1; k < n->n_known; k++) {
            const name *x = &n->known[i], *y = &n->known[k];
            if (x->rank >= 0 || y->rank >= 0) continue;
            if (n->n_fresh == 2)
                sign(f,
                    may_mean(f, AGENT_READ_RENAME_BOTH, x->text, n->fresh[0].text, y->text, n->fresh[1].text),
                    x, false);
            if (f->w.going && !f->w.condition)
                sign(f, may_mean(f, AGENT_READ_DELETE_BOTH, x->text, y->text), y->is_place ? y : x, false);
            for (size_t j = 0; j < n->n_files; j++)
                if (!agent__stands_in(f->a, x->text, n->files[j].text) &&
                    !agent__stands_in(f->a, y->text, n->files[j].text))
                    sign(f,
                        may_mean(
                            f, AGENT_READ_MOVE_BOTH, x->text, n->files[j].text, y->text, n->files[j].text),
                        x, false);
        }
}

void agent__find_readings(const agent *a, const char *request, agent_readings *ret)
{
    finding f = {.a = a, .request = request, .w = read_words(request), .r = ret};
    code_index *index = tool_workspace_index(a->workspace);
    *ret = (agent_readings){.n = 0};
    find_named(a, request, &f.n);
    find_described(a, request, &f.n);
    const names *n = &f.n;
    const bool may_delete = !f.w.condition; /* "f can't be needed when g is": not always */
    may_mean(&f, AGENT_READ_ANSWER);
    for (size_t i = 0; i < n->n_fresh; i++) may_mean(&f, AGENT_READ_ADD, n->fresh[i].text);
    for (size_t i = 0; i < n->n_known; i++) {
        const name *x = &n->known[i];
        if (x->rank <= 0) may_mean(&f, AGENT_READ_CHANGE, x->text);
        if (x->rank <= 0) may_mean(&f, AGENT_READ_TEST, x->text);
        for (size_t k = 0; k < n->n_fresh; k++)
            if (!code_index_mentions(index, n->fresh[k].text))
                sign(&f, may_mean(&f, AGENT_READ_RENAME, x->text, n->fresh[k].text), x, false);
        for (size_t k = 0; k < n->n_files; k++)
            if (!agent__stands_in(a, x->text, n->files[k].text))
                sign(&f, may_mean(&f, AGENT_READ_MOVE, x->text, n->files[k].text), x, false);
        if (may_delete && (f.w.going || x->rank < 0))
            sign(&f, may_mean(&f, AGENT_READ_DELETE, x->text), x, false);
        if (x->rank < 0) add_parameter_readings(&f, x);
    }
    add_pairs(&f);
    add_prefix_readings(&f);
    names_free(&f.n);
}
