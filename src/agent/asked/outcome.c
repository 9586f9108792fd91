/*
 * What a request asks to be changed, and what came of it. A small model says "Renamed it" with nothing written;
 * the tree knows better. So the last line of a turn that was asked for a change is the program's: which files
 * were changed, which of the names asked for stand in the tree now, which that should be gone still do.
 */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "agent/asked/asked.h"
#include "agent/judge/judge.h"
#include "agent/session/tell.h"
#include "agent/words/request_words.h"
#include "agent/words/values.h"
#include "base/hash.h"
#include "base/mem.h"
#include "code/places.h"
#include "code/code.h"

/* --- what is asked -------------------------------------------------------------------------------------- */

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
    static const char *const before[] = {"and", "then", "please"};
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
    "compute", "convert", "correct", "deny", "detect", "disable", "disallow", "discard", "don", "emit",
    "enable", "enforce", "ensure", "escape", "exclude", "expose", "fail", "flush", "forbid", "guard",
    "handle", "hide", "honor", "honour", "ignore", "improve", "include", "keep", "limit", "never", "omit",
    "parse", "permit", "pass", "prefer", "prefix", "preserve", "prevent", "prohibit", "propagate", "protect",
    "quote", "raise", "recognise", "recognize", "respect", "restore", "round", "set", "skip", "sort", "strip",
    "swap", "throw", "tolerate", "treat", "trim", "truncate", "unescape", "use", "validate", "warn", "wrap",
    NULL};
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

/* "What a cache prints as should end with ...": a clause is what has to change, and no question begins so. */
static bool begins_with_clause(const char *from)
{
    static const char *const subjects[] = {"a", "an", "the", "it", "its", "this", "that", "they", NULL};
    agent_word what, subject;
    return agent__next_word(from, 0, &what) && what.to - what.from == 4 &&
           !strncasecmp(from + what.from, "what", 4) && agent__next_word(from, what.to, &subject) &&
           agent__is_any_word(from, subject, subjects);
}

bool agent_asks_for_change(const char *request)
{
    static const char *const questions[] = {"which ", "where", "what", "how ", "why", "who", "does ", "do ",
        "is ", "are ", "explain", "show ", "describe", "list ", "find ", "summari", "review", "tell ", "run ",
        "compare ", "name ", "look "};
    static const char *const changes[] = {"add", "renam", "mov", "delet", "remov", "drop", "chang", "mak",
        "let", "give", "refus", "support", "fix", "implement", "replac", "turn", "write", "creat", "introduc",
        "export", "allow", "reject", "insert", "extend", "return", "rewrite", "call it"};
    const char *from = agent__first_word(request), *end = from + strlen(from);
    bool is_polite = from > request + strspn(request, " \t\n");
    while (end > from && strchr(" \t\n", end[-1])) end--;
    if (!is_polite && end > from && end[-1] == '?') return false;
    if (begins_with_order(from)) return true;
    for (size_t i = 0; i < sizeof questions / sizeof *questions; i++)
        if (!strncasecmp(from, questions[i], strlen(questions[i])) && !begins_with_clause(from)) return false;
    if (is_question_after_all(from)) return false;
    if (!strncasecmp(from, "count ", 6)) return true;
    if (agent__has_word(from, "should") || agent__has_word(from, "must")) return true;
    for (const char *p = from; *p; p++) {
        if ((p != from && is_letter(p[-1])) || !begins_order(from, p)) continue;
        for (size_t i = 0; i < sizeof changes / sizeof *changes; i++)
            if (!strncasecmp(p, changes[i], strlen(changes[i]))) return true;
    }
    return false;
}

static bool is_code_like(const char *text, size_t from, size_t to)
{
    bool has_mark = text[to] == '(' || (from && text[from - 1] == '`');
    for (size_t i = from; i < to; i++) {
        has_mark |= text[i] == '_';
        has_mark |= i > from && text[i] >= 'A' && text[i] <= 'Z' && text[i - 1] >= 'a' && text[i - 1] <= 'z';
    }
    return has_mark && to - from > 2;
}

/* The word stands right behind "rename", "remove the function", ... */
static bool is_object_of(const char *text, size_t from, const char *const *stems, size_t n)
{
    static const char *const between[] = {"the ", "unused ", "function ", "method ", "class ", "helper ",
        "macro ", "type ", "struct ", "constant ", "variable ", "trait ", "alias ", "aliases ",
        "context manager "};
    size_t at = from;
    while (at >= 2 && !strncmp(text + at - 2, "::", 2)) /* the qualifiers in front of it */
        for (at -= 2; at && is_letter(text[at - 1]); at--) {
        }
    if (at && text[at - 1] == '`') at--;
    for (bool moved = true; moved;) {
        moved = false;
        for (size_t i = 0; i < sizeof between / sizeof *between; i++) {
            size_t m = strlen(between[i]);
            if (at < m || strncasecmp(text + at - m, between[i], m)) continue;
            at -= m;
            moved = true;
        }
    }
    while (at && text[at - 1] == ' ') at--;
    size_t word = at;
    while (word && is_letter(text[word - 1])) word--;
    for (size_t i = 0; i < n && word < at; i++)
        if (!strncasecmp(text + word, stems[i], strlen(stems[i]))) return true;
    return false;
}

/* The texts that the tree's definitions of that name have now; path: those of this file, NULL: all. */
static uint64_t text_of(const agent *a, const char *path, const char *name)
{
    code_place *places = NULL;
    uint32_t n = code_index_define(tool_workspace_index(a->workspace), name, &places);
    uint64_t hash = n;
    for (uint32_t i = 0; i < n; i++) {
        base_buf text = {0};
        if (path && strcmp(places[i].path, path) != 0) continue;
        if (!tool_workspace_read(a->workspace, places[i].path, 4 << 20, &text, NULL) &&
            places[i].to <= text.len && places[i].from < places[i].to)
            hash = base_hash64(text.data + places[i].from, places[i].to - places[i].from, hash);
        base_buf_free(&text);
    }
    code_places_free(places, n);
    return hash;
}

static void add_wish(agent_asked *x, char *name, agent_wish_kind kind, uint64_t before)
{
    for (uint32_t i = 0; i < x->n_wishes; i++)
        if (!strcmp(x->wishes[i].name, name)) {
            free(name);
            return;
        }
    if (x->n_wishes == AGENT_MAX_WISHES) {
        free(name);
        return;
    }
    x->wishes[x->n_wishes++] = (agent_wish){.name = name, .kind = kind, .before = before};
}

void agent__wish_changed(agent *a, const char *path, const char *name)
{
    agent_asked *x = &a->asked;
    bool is_known = x->n_wishes == AGENT_MAX_WISHES;
    for (uint32_t i = 0; i < x->n_wishes && !is_known; i++)
        is_known = !x->wishes[i].path == !path && (!path || !strcmp(x->wishes[i].path, path)) &&
                   !strcmp(x->wishes[i].name, name);
    if (is_known) return;
    x->wishes[x->n_wishes++] = (agent_wish){.name = base_xstrdup(name),
        .path = path ? base_xstrdup(path) : NULL,
        .kind = AGENT_WISH_CHANGES,
        .before = text_of(a, path, name)};
}

/* "Refuse it with a ValueError" names an error that the language has; "add a ParseError" one that is to come. */
static bool is_known_error(const char *request, size_t from, const char *name)
{
    static const char *const coming[] = {
        "add", "create", "define", "introduce", "new", "class", "write", NULL};
    static const char *const fillers[] = {
        "a", "an", "the", "exception", "error", "type", "called", "named", "own", "special", NULL};
    agent_word w;
    if (!base_ends_with(name, "Error") && !base_ends_with(name, "Exception")) return false;
    for (size_t at = from; agent__word_before(request, at, &w); at = w.from) {
        if (agent__is_any_word(request, w, coming)) return false;
        if (!agent__is_any_word(request, w, fillers)) break;
    }
    return true;
}

void agent__ask(agent *a, const char *request)
{
    static const char *const going[] = {"renam", "delet", "remov", "drop"};
    static const char *const changing[] = {"in", "chang", "updat", "adapt", "extend", "let"};
    code_index *index = tool_workspace_index(a->workspace);
    agent_asked *x = &a->asked;
    agent__asked_free(a);
    agent_operation_words words;
    const bool is_wording = agent__read_wording(a, request, &words);
    agent_addition_words addition;
    const bool is_addition = agent_read_addition_words(request, &addition); /* "Queue needs a method reset" */
    x->change = a->settings.mode != AGENT_MODE_PLAN &&
                (a->fix.wanted || is_wording || agent_asks_for_change(request) ||
                    (is_addition && !strchr(request, '?')));
    if (x->change && is_wording && strcmp(words.operation, "move") != 0)
        add_wish(x, base_xstrdup(words.name), AGENT_WISH_GOES, 0);
    if (x->change && is_wording && !strcmp(words.operation, "rename"))
        add_wish(x, base_xstrdup(words.to), AGENT_WISH_STANDS, 0);
    agent_operation_words_free(&words);
    size_t pos = 0, from, to, n = strlen(request);
    char *first = NULL; /* what is to change, where a test is asked for behind it */
    while (x->change && code_next_identifier(request, n, &pos, &from, &to)) {
        bool is_path = (from && strchr("/.-", request[from - 1])) || request[to] == '/' ||
                       (request[to] == '.' && is_letter(request[to + 1]));
        const bool is_qualifier = !strncmp(request + to, "::", 2); /* "Guard::into": it is about into */
        if ((is_path && request[to] != '(') || is_qualifier) continue;
        const bool is_text = from && strchr("\"'", request[from - 1]) && request[to] == request[from - 1];
        if (is_text && !is_addition) continue; /* "it gives 'foo_bar'" */
        char *name = base_xstrndup(request + from, to - from);
        const char *literal = agent_value_literal(name); /* "NaN": nothing that is to come */
        if (literal && !*literal) {
            free(name);
            continue;
        }
        if (code_index_is_defined(index, name)) {
            if (!first && is_code_like(request, from, to)) first = base_xstrdup(name);
            if (is_object_of(request, from, going, sizeof going / sizeof *going))
                add_wish(x, agent__with_its_type(a, request, name), AGENT_WISH_GOES, 0);
            else if (is_object_of(request, from, changing, sizeof changing / sizeof *changing) &&
                     is_code_like(request, from, to))
                add_wish(x, name, AGENT_WISH_CHANGES, text_of(a, NULL, name));
            else
                free(name);
        } else if (is_code_like(request, from, to) && !code_index_mentions(index, name) &&
                   !is_known_error(request, from, name)) {
            add_wish(x, name, AGENT_WISH_STANDS, 0);
        } else {
            free(name);
        }
    }
    agent__want_test(a, request, is_addition ? &addition : NULL, first);
    free(first);
    agent_addition_words_free(&addition);
}

void agent__refusal_free(agent_refusal *x)
{
    free(x->operation);
    free(x->name);
    free(x->to);
    free(x->why);
    *x = (agent_refusal){0};
}

void agent__put_operation(const agent_refusal *x, base_buf *out)
{
    const bool has_to = x->to && (!strcmp(x->operation, "rename") || !strcmp(x->operation, "move"));
    base_buf_printf(out, "%s of %s%s%s", x->operation, x->name, has_to ? " to " : "", has_to ? x->to : "");
}

void agent__put_refusal(const agent_refusal *x, base_buf *out)
{
    base_buf_puts(out, "The ");
    agent__put_operation(x, out);
    base_buf_printf(out, " was refused: %s", x->why);
}

void agent__forget_meant(agent *a)
{
    agent_asked *x = &a->asked;
    for (uint32_t i = 0; i < x->n_meant; i++) {
        free(x->meant[i].path);
        free(x->meant[i].name);
    }
    x->n_meant = 0;
}

void agent__asked_free(agent *a)
{
    agent_asked *x = &a->asked;
    for (uint32_t i = 0; i < x->n_wishes; i++) {
        free(x->wishes[i].name);
        free(x->wishes[i].path);
    }
    for (size_t i = 0; i < x->n_changed; i++) free(x->changed[i]);
    free(x->changed);
    agent__refusal_free(&x->refusal);
    free(x->said);
    free(x->went);
    base_buf_free(&x->done);
    for (uint32_t i = 0; i < x->n_listed; i++) free(x->listed[i]);
    agent__forget_meant(a);
    free(x->test_of);
    agent_new_test *t = &x->new_test;
    free(t->path);
    free(t->name);
    free(t->example);
    free(t->holder);
    free(t->subject);
    free(t->assertion);
    free(t->begins);
    free(t->rows);
    free(t->head);
    *x = (agent_asked){0};
}

/* --- what came of it ------------------------------------------------------------------------------------ */

void agent__changed(agent *a, const char *path)
{
    agent_asked *x = &a->asked;
    if (agent__is_changed(a, path)) return;
    x->changed = base_xrealloc(x->changed, (x->n_changed + 1) * sizeof *x->changed);
    x->changed[x->n_changed++] = base_xstrdup(path);
}

void agent__taken_back(agent *a, const char *path)
{
    agent_asked *x = &a->asked;
    for (size_t i = 0; i < x->n_changed; i++) {
        if (strcmp(x->changed[i], path) != 0) continue;
        free(x->changed[i]);
        x->changed[i] = x->changed[--x->n_changed];
    }
}

bool agent__is_met(const agent *a, const agent_wish *w)
{
    code_index *index = tool_workspace_index(a->workspace);
    if (w->kind == AGENT_WISH_FILE) return agent__is_changed(a, w->name);
    if (w->kind == AGENT_WISH_CHANGES) return text_of(a, w->path, w->name) != w->before;
    if (w->kind != AGENT_WISH_GOES) return code_index_mentions(index, w->name);
    const char *last = code_last_name(w->name);
    const size_t n_type = last > w->name ? (size_t)(last - w->name) - 1 : 0;
    code_place *places = NULL;
    const uint32_t n = code_index_define(index, w->name, &places);
    bool is_there = n && !n_type; /* of "Range.contains" another type's contains may be found */
    for (uint32_t i = 0; i < n; i++)
        is_there |= strlen(places[i].parent) == n_type && !memcmp(places[i].parent, w->name, n_type);
    code_places_free(places, n);
    return !is_there;
}

/* Names of that kind whose wish is not met: "a, b"; the number of them. */
static uint32_t list_wishes(const agent *a, agent_wish_kind kind, base_buf *out)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < a->asked.n_wishes; i++) {
        const agent_wish *w = &a->asked.wishes[i];
        if (w->kind == kind && !agent__is_met(a, w))
            base_buf_printf(
                out, "%s%s%s%s", n++ ? ", " : "", w->name, w->path ? " in " : "", w->path ? w->path : "");
    }
    return n;
}

bool agent__is_missing(const agent *a, base_buf *out)
{
    base_buf missing = {0}, left = {0}, same = {0}, files = {0};
    if (list_wishes(a, AGENT_WISH_STANDS, &missing))
        base_buf_printf(out, "%s is not in the tree yet. ", missing.data);
    if (list_wishes(a, AGENT_WISH_GOES, &left)) base_buf_printf(out, "%s is still in the tree. ", left.data);
    if (list_wishes(a, AGENT_WISH_CHANGES, &same))
        base_buf_printf(out, "%s is as it was: it was to be changed too. ", same.data);
    if (a->asked.n_changed && list_wishes(a, AGENT_WISH_FILE, &files))
        base_buf_printf(out, "The file %s is as it was: it was to be changed too. ", files.data);
    if (a->asked.n_changed && agent__lacks_test(a))
        base_buf_puts(out, a->asked.tests_too ? "Its test is as it was. " : "No test was added yet. ");
    base_buf_free(&missing);
    base_buf_free(&left);
    base_buf_free(&same);
    base_buf_free(&files);
    return out->len > 0;
}

void agent__name_went(agent *a, const char *name)
{
    agent_asked *x = &a->asked;
    uint32_t n = 0;
    free(x->went);
    x->went = base_xstrdup(name);
    for (uint32_t i = 0; i < x->n_wishes; i++) {
        agent_wish *w = &x->wishes[i];
        if (w->kind != AGENT_WISH_GOES || strcmp(code_last_name(w->name), code_last_name(name)) != 0) {
            x->wishes[n++] = *w;
            continue;
        }
        free(w->name);
        free(w->path);
    }
    x->n_wishes = n;
}

void agent__aim_at(agent *a, const char *path, const char *name)
{
    char *path_copy = base_xstrdup(path), *name_copy = base_xstrdup(name);
    free(a->fix.path);
    free(a->fix.name);
    free(a->fix.field);
    a->fix.field = NULL;
    a->fix.path = path_copy;
    a->fix.name = name_copy;
    a->fix.open_call = true;
}

/* The test that calls what was written last. */
static void aim_at_test(agent *a)
{
    code_caller *callers = NULL;
    const char *name = a->fix.name ? code_last_name(a->fix.name) : NULL;
    uint32_t n = name ? code_index_callers(tool_workspace_index(a->workspace), name, 32, &callers) : 0;
    for (uint32_t i = 0; i < n && i < 32 && !a->fix.open_call; i++)
        if (code_path_is_test(callers[i].path) && *callers[i].name)
            agent__aim_at(a, callers[i].path, callers[i].name);
    code_callers_free(callers, n < 32 ? n : 32);
}

/* Of several places of a name one in a file that this turn changed, where there is one; no test's. */
static const code_place *place_near(const agent_asked *x, const code_place *places, uint32_t n)
{
    const code_place *near = NULL, *first = NULL;
    for (uint32_t i = 0; i < n; i++) {
        if (places[i].is_declaration || code_path_is_test(places[i].path)) continue;
        if (!first) first = &places[i];
        for (size_t k = 0; k < x->n_changed && !near; k++)
            if (!strcmp(x->changed[k], places[i].path)) near = &places[i];
    }
    return near ? near : first ? first : places;
}

/* What the file that was to change too has to hold: the new name that the request asks for, else what was written last. */
static void aim_at_file(agent *a, const char *path)
{
    const char *language = code_language(path, "", 0), *name = a->fix.name;
    for (uint32_t i = 0; i < a->asked.n_wishes; i++)
        if (a->asked.wishes[i].kind == AGENT_WISH_STANDS) name = a->asked.wishes[i].name;
    if (name && language && !code_language_is_document(language) && a->asked.n_changed)
        agent__aim_at(a, path, name);
}

bool agent__aim_at_missing(agent *a)
{
    const agent_asked *x = &a->asked;
    code_index *index = tool_workspace_index(a->workspace);
    if (a->info.strong) return false;
    for (uint32_t i = 0; i < a->asked.n_wishes && !a->fix.open_call; i++) {
        const agent_wish *w = &a->asked.wishes[i];
        code_place *places = NULL;
        if (w->kind == AGENT_WISH_GOES || agent__is_met(a, w)) continue;
        if (w->kind == AGENT_WISH_FILE) aim_at_file(a, w->name);
        if (w->kind == AGENT_WISH_FILE) continue;
        uint32_t n = w->kind == AGENT_WISH_CHANGES ? code_index_define(index, w->name, &places) : 0;
        if (n)
            agent__aim_at(a, w->path ? w->path : place_near(x, places, n)->path, w->name);
        else if (w->kind == AGENT_WISH_STANDS && a->asked.n_changed)
            agent__aim_at(a, a->asked.changed[0], w->name);
        code_places_free(places, n);
    }
    if (!a->fix.open_call && a->asked.tests_too && agent__lacks_test(a)) aim_at_test(a);
    return a->fix.open_call;
}

/* The place of the one definition outside of tests that has this name; of several the one whose file the text names. */
static const code_place *place_meant(const code_place *places, uint32_t n, const char *text)
{
    const code_place *only = NULL, *said = NULL;
    uint32_t n_only = 0, n_said = 0;
    for (uint32_t i = 0; i < n; i++) {
        const code_place *p = &places[i];
        if (p->is_declaration || code_path_is_test(p->path) ||
            (strcmp(p->what, "function") != 0 && strcmp(p->what, "method") != 0))
            continue;
        only = p;
        n_only++;
        if (!strstr(text, p->path)) continue;
        said = p;
        n_said++;
    }
    return n_only == 1 ? only : n_said == 1 ? said : NULL;
}

bool agent__asks_for_behaviour(const agent *a)
{
    static const char *const others[] = {
        "add", "write", "create", "new", "rename", "call it", "move", "delete", "remove", "drop", NULL};
    for (uint32_t i = 0; i < a->asked.n_wishes; i++)
        if (a->asked.wishes[i].kind < AGENT_WISH_CHANGES) return false;
    return !a->asked.test && !agent__has_any_word(a->request, others);
}

bool agent__aim_at_said(agent *a, const char *text)
{
    enum { MAX_SAID = 8 };
    code_index *index = tool_workspace_index(a->workspace);
    code_checked *checked = NULL;
    char *path = NULL, *name = NULL;
    uint32_t n_meant = 0;
    if (a->info.strong || a->asked.n_changed || !agent__asks_for_behaviour(a)) return false;
    const uint32_t n = code_places_check(index, text, strlen(text), MAX_SAID, &checked);
    for (uint32_t i = 0; i < n; i++) {
        code_place *places = NULL;
        if (checked[i].state != CODE_PLACE_DEFINED) continue;
        const uint32_t n_places = code_index_define(index, checked[i].name, &places);
        const code_place *p = place_meant(places, n_places, text);
        if (p && !n_meant++) {
            base_buf whole = {0};
            const bool is_bare = *p->parent && !strpbrk(checked[i].name, ".:");
            base_buf_printf(&whole, "%s%s%s", is_bare ? p->parent : "", is_bare ? "." : "", checked[i].name);
            path = base_xstrdup(p->path);
            name = base_buf_take(&whole);
        }
        code_places_free(places, n_places);
    }
    code_places_checked_free(checked, n);
    if (n_meant == 1) agent__aim_at(a, path, name);
    free(path);
    free(name);
    return n_meant == 1;
}

/* What the test that ran said: the values of the request, then `says` of the tests that stood there before. */
static void tell_judge(const agent *a, const char *says, base_buf *out)
{
    const bool by_values = a->test.has_values && a->test.of;
    const char *command = a->test.has_values ? a->test.plain : a->test.command;
    if (by_values && a->test.hold < a->test.of)
        base_buf_printf(out, " Of the values that your request gives %u of %u hold%s%s.", a->test.hold,
            a->test.of, a->test.miss ? ": " : "", a->test.miss ? a->test.miss : "");
    else if (by_values)
        base_buf_printf(out, " Checked by values of your request: %u of %u.", a->test.hold, a->test.of);
    else if (a->test.has_values && a->fix.failing)
        base_buf_puts(out, " The values of your request could not be tried on it.");
    if (by_values && a->test.drops_plain) base_buf_puts(out, " The tree's own tests could not judge it.");
    if (command && !(a->test.has_values && a->fix.failing && !(by_values && a->test.hold == a->test.of)))
        base_buf_printf(out, " %s: %s.", says, command);
}

static void tell_refusal(const agent_asked *x, base_buf *out)
{
    if (!x->refusal.why || x->is_told) return;
    base_buf_putc(out, ' ');
    agent__put_refusal(&x->refusal, out);
}

/* Does a test call it? */
static bool is_tested(const agent *a, const char *name)
{
    enum { MOST = 64 };
    code_caller *callers = NULL;
    const uint32_t n =
        code_index_callers(tool_workspace_index(a->workspace), code_last_name(name), MOST, &callers);
    bool is_so = false;
    for (uint32_t i = 0; i < n && i < MOST; i++) is_so |= code_path_is_test(callers[i].path);
    code_callers_free(callers, n < MOST ? n : MOST);
    return is_so;
}

/* Tests that pass say nothing of what is new and what none of them calls. */
static void tell_untested(const agent *a, base_buf *out)
{
    base_buf names = {0};
    for (uint32_t i = 0; i < a->asked.n_wishes; i++) {
        const agent_wish *w = &a->asked.wishes[i];
        if (w->kind == AGENT_WISH_STANDS &&
            code_index_is_defined(tool_workspace_index(a->workspace), w->name) && !is_tested(a, w->name))
            base_buf_printf(&names, "%s%s", names.len ? ", " : "", w->name);
    }
    if (names.len && !a->test.has_values) base_buf_printf(out, " None of them calls %s.", names.data);
    base_buf_free(&names);
}

/* What has the name of what was renamed or deleted, and is another thing. */
static void tell_other(const agent *a, base_buf *out)
{
    const char *name = a->asked.went ? code_last_name(a->asked.went) : "";
    code_place *places = NULL;
    const uint32_t n = *name ? code_index_define(tool_workspace_index(a->workspace), name, &places) : 0;
    for (uint32_t i = 0, said = 0; i < n && !said; i++) {
        if (places[i].is_declaration) continue;
        base_buf_printf(out, " Another %s stays: %s:%u.", name, places[i].path, places[i].line);
        said = 1;
    }
    code_places_free(places, n);
}

void agent__tell_outcome(agent *a)
{
    const agent_asked *x = &a->asked;
    if (!x->change) return;
    base_buf text = {0}, missing = {0}, left = {0}, same = {0}, files = {0};
    const char *state = "changed";
    if (!x->n_changed) {
        state = "nothing";
        base_buf_puts(&text, a->denied || x->refused ? "Nothing was changed: the change was not approved."
                             : x->is_told            ? "Nothing was changed in the tree."
                                          : "Nothing was changed in the tree, whatever the answer says.");
        tell_refusal(x, &text);
    } else {
        base_buf_puts(&text, "Changed: ");
        for (size_t i = 0; i < x->n_changed; i++)
            base_buf_printf(&text, "%s%s", i ? ", " : "", x->changed[i]);
        base_buf_putc(&text, '.');
        if (list_wishes(a, AGENT_WISH_STANDS, &missing))
            base_buf_printf(&text, " Asked for and not in the tree: %s.", missing.data);
        if (list_wishes(a, AGENT_WISH_GOES, &left))
            base_buf_printf(&text, " Still in the tree: %s.", left.data);
        list_wishes(a, AGENT_WISH_CHANGES, &same);
        list_wishes(a, AGENT_WISH_FILE, &files);
        if (same.len || files.len)
            base_buf_printf(&text, " As it was: %s%s%s.", same.len ? same.data : "",
                same.len && files.len ? ", " : "", files.len ? files.data : "");
        if (agent__lacks_test(a))
            base_buf_puts(&text, a->asked.tests_too ? " No test was changed." : " No test was added.");
        tell_refusal(x, &text);
        tell_other(a, &text);
        bool is_partial =
            missing.len || left.len || same.len || files.len || agent__lacks_test(a) || x->refusal.why;
        if (a->test.command && a->fix.failing) {
            tell_judge(a, a->test.words ? a->test.words->fails : "Its test fails", &text);
            state = "failing";
        } else if (a->test.command && a->fix.passed) {
            /* Tests that stood there before say that nothing broke, not that what was asked for is right. */
            const bool is_proof =
                !a->test.is_found && !a->asked.new_test.is_blind && !a->asked.new_test.n_put_right;
            tell_judge(a,
                a->test.words      ? a->test.words->passes
                : a->test.is_found ? "The tests of it pass"
                                   : "Its test passes",
                &text);
            if (a->test.is_found && !a->test.words) tell_untested(a, &text);
            if (a->asked.new_test.n_put_right)
                base_buf_puts(&text, " It expects what the code gives now: see whether that is right.");
            if (a->asked.new_test.is_blind) base_buf_puts(&text, " The new test does not notice a fault.");
            if (!is_partial && is_proof) state = "done";
        } else {
            base_buf_puts(&text, " No test has judged it.");
        }
        const size_t plain = text.len;
        agent__put_unfounded(a, &text);
        is_partial |= text.len > plain;
        if (is_partial && strcmp(state, "failing") != 0) state = "partial";
    }
    agent__emit(a, &(agent_event){.type = AGENT_EVENT_outcome,
                       .outcome = {.turn = a->turn, .state = state, .text = text.data}});
    base_buf_free(&text);
    base_buf_free(&missing);
    base_buf_free(&left);
    base_buf_free(&same);
    base_buf_free(&files);
}
