/*
 * Operations that a request says whole, with nothing left for the model to write: "inline f", "make b of f keyword-only", "move the
 * error types from decoder.go to errors.go".
 */
#include <ctype.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "agent/asked/asked.h"
#include "agent/operation/operation.h"
#include "base/mem.h"
#include "code/code.h"

enum { MAX_FILE = 1 << 20, MAX_GROUP = 40 };

/* ---- inline ---- */

/* The function of the tree at the word, with its type; the caller frees; NULL: it is none. */
static char *function_at(const agent *a, const char *request, agent_word w)
{
    agent_function f = {0};
    const bool is_written = agent__looks_like_name(request, w) || request[w.to] == '(' ||
                            (w.from && agent__is_mark(request[w.from - 1]));
    if (!is_written && !agent__is_content_word(request + w.from, w.to - w.from))
        return NULL; /* "has one caller" */
    if (!agent__is_defined_word(a, request, w)) return NULL;
    char *name = agent__with_its_type(a, request, agent__copy_word(request, w));
    const bool is_one = agent__look_up_function(a, name, &f);
    agent__function_free(&f);
    if (is_one) return name;
    free(name);
    return NULL;
}

/* "Get rid of f and compare directly where it's used": the function behind the verb; the caller frees; NULL: it is said otherwise. */
static char *find_undone(const agent *a, const char *request)
{
    static const char *const phrases[] = {"directly where it", "directly where it's", "directly at its calls",
        "directly in its callers", "directly in its caller"};
    static const char *const verbs[] = {"get rid of", "delete", "remove", "drop"};
    size_t said = 0, verb = 0;
    char *name = NULL;
    agent_instead_words instead; /* "use .value directly where it was called" says itself what stands there */
    const bool has_text = agent_read_instead_words(request, &instead);
    agent_instead_words_free(&instead);
    if (has_text) return NULL;
    for (size_t i = 0; i < sizeof phrases / sizeof *phrases && !said; i++)
        said = agent__find_phrase(request, 0, phrases[i]);
    for (size_t i = 0; i < sizeof verbs / sizeof *verbs && said && !verb; i++)
        verb = agent__find_phrase(request, 0, verbs[i]);
    agent_word w = {0, verb};
    for (int n = 0; verb && verb < said && !name && n < 4 && agent__next_word(request, w.to, &w); n++)
        name = function_at(a, request, w);
    return name;
}

/*
 * "inline f", "fold f into its caller"; "f has one caller. Delete it and do that there.", "get rid of f and do it directly where it's
 * used".
 */
static bool open_inline(const agent *a, const char *request, base_buf *json)
{
    static const char *const verbs[] = {"inline", "inlined", "fold", NULL};
    static const char *const callers[] = {"caller", "callers", "call", "calls", "site", "sites", NULL};
    static const char *const alone[] = {"one caller", "only caller", "single caller", "only one caller",
        "called once", "called in one place", "used once", "used in one place", NULL};
    static const char *const going[] = {"delete", "remove", "drop", NULL};
    agent_word w = {0}, next;
    char *name = NULL;
    bool is_verb = false;
    while (!is_verb && agent__next_word(request, w.to, &w)) is_verb = agent__is_any_word(request, w, verbs);
    const bool is_fold = is_verb && !strncasecmp(request + w.from, "fold", 4);
    next = w;
    for (int n = 0; is_verb && !name && n < 4 && agent__next_word(request, next.to, &next); n++)
        name = function_at(a, request, next);
    if (is_fold && !agent__has_any_word(request, callers)) {
        free(name);
        return false;
    }
    size_t said = 0;
    for (const char *const *p = alone; !name && !said && *p; p++) said = agent__find_phrase(request, 0, *p);
    const bool goes =
        said && agent__has_any_word(request + said, going) && agent__has_word(request + said, "there");
    for (w = (agent_word){0}; goes && !name && agent__next_word(request, w.to, &w) && w.to <= said;)
        name = function_at(a, request, w);
    if (!name) name = find_undone(a, request);
    if (!name) return false;
    agent__begin_refactor(json, "inline", name);
    free(name);
    return true;
}

/* Behind the bracket that closes the one at `at`, brackets in strings counted too; NULL: none does. */
static const char *behind_bracket(const char *at)
{
    int depth = 0;
    for (; *at; at++) {
        depth += (*at == '(') - (*at == ')');
        if (!depth) return at + 1;
    }
    return NULL;
}

/* Behind "a.b->" of "a.b->c". */
static const char *behind_qualifier(const char *at)
{
    const char *last = at;
    for (; code_is_name_byte(*at) || strchr(".:", *at) || !strncmp(at, "->", 2); at++) {
        if (!*at) break;
        if (!code_is_name_byte(*at)) last = at + 1;
        if (*at == '-') last = ++at + 1;
    }
    return last;
}

/* Is all that the function does to return a call of the other, or of what has the other's name in an object? */
static bool only_calls(const agent *a, const agent_function *f, const char *other)
{
    base_buf text = {0};
    bool is = false;
    if (tool_workspace_read(a->workspace, f->path, MAX_FILE, &text, NULL) || !text.len) return false;
    code_file *file = code_parse(tool_workspace_grammars(a->workspace), f->path, text.data, text.len);
    for (uint32_t i = 0; i < file->n_definitions && !is; i++) {
        static const char between[] = " \t\r\n{:";
        const code_definition *d = &file->definitions[i];
        const size_t n = strlen(other);
        if (strcmp(d->name, code_last_name(f->name)) != 0 || d->body_to <= d->body_from) continue;
        char *body = code_blank_comments(file->language, text.data + d->body_from, d->body_to - d->body_from);
        const char *at = body + strspn(body, between);
        at += strncmp(at, "return", 6) ? strlen(at) : 6 + strspn(at + 6, between);
        at = behind_qualifier(at);
        const char *end = !strncmp(at, other, n) && at[n] == '(' ? behind_bracket(at + n) : NULL;
        is = end && end[strspn(end, " \t\r\n;}")] == '\0';
        free(body);
    }
    code_file_free(file);
    base_buf_free(&text);
    return is;
}

/* "Delete f, call g instead", where f only returns a call of g: that call stands where f was called. */
static bool open_delegation(const agent *a, const char *request, base_buf *json)
{
    static const char *const going[] = {"delete", "remove", "drop", NULL};
    agent_instead_words instead;
    agent_word w = {0};
    char *name = NULL;
    bool is_verb = false;
    if (!agent_read_instead_words(request, &instead)) return false;
    while (!is_verb && agent__next_word(request, w.to, &w)) is_verb = agent__is_any_word(request, w, going);
    for (int n = 0; is_verb && !name && n < 4 && agent__next_word(request, w.to, &w); n++)
        name = function_at(a, request, w);
    agent_function f = {0};
    const bool is_one = name && !instead.call && !instead.with && strcmp(name, instead.name) != 0 &&
                        agent__look_up_function(a, name, &f) &&
                        only_calls(a, &f, code_last_name(instead.name));
    if (is_one) agent__begin_refactor(json, "inline", name);
    agent__function_free(&f);
    agent_instead_words_free(&instead);
    free(name);
    return is_one;
}

/* ---- a function and what only calls it by the same name ---- */

uint32_t agent__list_with_delegate(
    const agent *a, const char *name, const char *to, agent_listed *ret, uint32_t most)
{
    const char *last = code_last_name(name);
    code_place *places = NULL;
    agent_listed found[2] = {{0}};
    uint32_t n_found = 0;
    bool is_delegated = false, is_good = true;
    const uint32_t n = code_index_define(tool_workspace_index(a->workspace), last, &places);
    for (uint32_t i = 0; i < n && is_good; i++) {
        if (places[i].is_declaration || code_path_is_test(places[i].path)) continue;
        is_good = n_found < 2 && n_found < most;
        if (!is_good) break;
        base_buf whole = {0};
        base_buf_printf(&whole, *places[i].parent ? "%s.%s" : "%s%s", places[i].parent, last);
        found[n_found++] = (agent_listed){.operation = "rename",
            .name = base_buf_take(&whole),
            .to = base_xstrdup(to),
            .path = base_xstrdup(places[i].path)};
        is_delegated |=
            only_calls(a, &(agent_function){.name = found[n_found - 1].name, .path = places[i].path}, last);
    }
    is_good = is_good && n_found == 2 && is_delegated && strcmp(found[0].name, found[1].name) != 0;
    for (uint32_t i = 0; i < n_found; i++)
        if (is_good)
            ret[i] = found[i];
        else
            agent__listed_free(&found[i]);
    code_places_free(places, n);
    return is_good ? n_found : 0;
}

/* ---- a group that moves ---- */

/* A word of the group's description in singular: "errors" and "error". */
static size_t singular(const char *s, agent_word w)
{
    const size_t n = w.to - w.from;
    return n > 3 && s[w.to - 1] == 's' && s[w.to - 2] != 's' ? n - 1 : n;
}

/* Which definitions a plural means; NULL: it is no word for them. */
static const char *const *kinds_of(const char *s, agent_word w)
{
    static const char *const types[] = {
        "class", "struct", "type", "interface", "enum", "typedef", "trait", NULL};
    static const char *const functions[] = {"function", NULL};
    static const char *const values[] = {"constant", "variable", NULL};
    static const char *const macros[] = {"macro", NULL};
    static const struct {
        const char *const words[5], *const *kinds;
    } rows[] = {{{"types", "classes", "structs", "interfaces", NULL}, types},
        {{"exceptions", "errors", "enums", "traits", NULL}, types},
        {{"functions", "helpers", "routines", NULL}, functions},
        {{"constants", "variables", "globals", NULL}, values}, {{"macros", NULL}, macros}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (agent__is_any_word(s, w, rows[i].words)) return rows[i].kinds;
    return NULL;
}

/* "the error types": is a definition of that name and kind one of them? */
typedef struct group {
    char *pattern;            /* "parse_*"; NULL */
    const char *const *kinds; /* NULL: all */
    const char *words[4];     /* each a part of its name */
    size_t lengths[4], n_words;
    bool is_deprecated; /* its text says so */
} group;

static bool says_deprecated(const base_buf *text, const code_definition *d)
{
    static const char word[] = "deprecat";
    size_t from = d->from;
    const size_t to = d->to < text->len ? d->to : text->len, n = sizeof word - 1;
    for (size_t line = from; line > 1; from = line) { /* with the comment above it */
        size_t above = line - 1;
        while (above && text->data[above - 1] != '\n') above--;
        const size_t first = above + strspn(text->data + above, " \t");
        if (!strchr("#/*@", text->data[first])) break;
        line = above;
    }
    bool is = false;
    for (size_t i = from; i + n <= to && !is; i++) is = !strncasecmp(text->data + i, word, n);
    return is;
}

/* Is the word, in singular, one of the parts of the name? */
static bool has_part(const char *name, const char *word, size_t n)
{
    base_buf parts = {0};
    code_split_identifier(name, strlen(name), &parts);
    bool has = false;
    for (char *at = parts.data, *save = NULL, *part; (part = strtok_r(at, " ", &save)); at = NULL) {
        const size_t k = strlen(part);
        has |= !strncasecmp(part, word, n) && (k == n || (k == n + 1 && part[n] == 's'));
    }
    base_buf_free(&parts);
    return has;
}

static bool is_of_group(const group *g, const base_buf *text, const code_definition *d)
{
    static const char *const none[] = {"field", "method", NULL};
    bool is_one = !*d->parent && !d->is_declaration &&
                  !agent__is_any_word(d->what, (agent_word){0, strlen(d->what)}, none);
    if (g->kinds) is_one &= agent__is_any_word(d->what, (agent_word){0, strlen(d->what)}, g->kinds);
    if (g->pattern) is_one &= fnmatch(g->pattern, d->name, 0) == 0;
    for (size_t i = 0; i < g->n_words && is_one; i++) is_one = has_part(d->name, g->words[i], g->lengths[i]);
    return is_one && (!g->is_deprecated || says_deprecated(text, d));
}

/* What is said between the verb and the file; false: it is no group, but names, or says more than the program understands. */
static bool read_group(const agent *a, const char *request, size_t from, size_t to, group *ret)
{
    static const char *const fillers[] = {"the", "all", "of", "every", "each", "our", "definitions", "ones",
        "out", "and", "their", "methods", "new", "file", "a", NULL};
    static const char *const named[] = {"errors", "exceptions", NULL}, *const deprecated[] = {
                                                                           "deprecated", NULL};
    const char *star = memchr(request + from, '*', to - from);
    if (star) {
        size_t begin = (size_t)(star - request), end = begin;
        while (begin > from && (agent__is_in_word(request, begin - 1) || request[begin - 1] == '*')) begin--;
        while (end < to && (agent__is_in_word(request, end) || request[end] == '*')) end++;
        ret->pattern = base_xstrndup(request + begin, end - begin);
    }
    agent_word w = {from, from};
    while (agent__next_word(request, w.to, &w) && w.to <= to) {
        const bool is_in_pattern = (w.from && request[w.from - 1] == '*') || request[w.to] == '*';
        if (is_in_pattern || agent__is_any_word(request, w, fillers)) continue;
        if (agent__is_any_word(request, w, deprecated)) {
            ret->is_deprecated = true;
            continue;
        }
        const char *const *kinds = kinds_of(request, w);
        if (kinds) ret->kinds = kinds;
        const bool is_named = agent__is_any_word(request, w, named);
        if (kinds && !is_named) continue;
        if (!is_named && (agent__looks_like_name(request, w) || ret->n_words == 4)) return false;
        ret->words[ret->n_words] = request + w.from;
        ret->lengths[ret->n_words++] = singular(request, w);
    }
    return ret->pattern || ret->kinds;
}

/* The files between which something moves; both heap, and *ret_behind the byte where the first of them is said. */
static bool read_files(
    const agent *a, const char *request, size_t at, char **ret_from, char **ret_to, size_t *ret_behind)
{
    static const char *const sources[] = {"from", "of", "in", "out", NULL};
    agent_word m, before;
    *ret_behind = 0;
    for (; agent__next_mention(request, at, &m); at = m.to > at ? m.to : at + 1) {
        if (m.from == m.to || !memchr(request + m.from, '.', m.to - m.from)) continue;
        char *path = agent__copy_word(request, m);
        const char *language = code_language(path, "", 0);
        const bool is_code = language && !code_language_is_document(language);
        const bool is_source = is_code && !*ret_from && agent__word_before(request, m.from, &before) &&
                               agent__is_any_word(request, before, sources);
        if (is_source) *ret_from = code_index_path(tool_workspace_index(a->workspace), path);
        if (is_code && !*ret_behind) *ret_behind = is_source ? before.from : m.from;
        if (is_code && !is_source && !*ret_to)
            *ret_to = path;
        else
            free(path);
    }
    return *ret_from && *ret_to;
}

/* "Move the error types from decoder.go to errors.go", "move all the parse_* functions of util.py to parse.py" */
static bool open_group(const agent *a, const char *request, base_buf *json)
{
    static const char *const leads[] = {"to", "into", "from", NULL};
    char *from = NULL, *to = NULL;
    size_t verb = agent__find_phrase(request, 0, "move"), behind = 0, n_found = 0;
    if (!verb) verb = agent__find_phrase(request, 0, "put");
    group g = {0};
    base_buf text = {0}, with = {0};
    bool is_good = verb && read_files(a, request, verb, &from, &to, &behind) && strcmp(from, to) != 0;
    agent_word w = {verb, verb};
    while (is_good && agent__next_word(request, w.to, &w) && w.to < behind) /* "to a file of their own" */
        if (agent__is_any_word(request, w, leads)) behind = w.from;
    is_good = is_good && read_group(a, request, verb, behind, &g) &&
              !tool_workspace_read(a->workspace, from, MAX_FILE, &text, NULL) && text.len;
    code_file *f =
        is_good ? code_parse(tool_workspace_grammars(a->workspace), from, text.data, text.len) : NULL;
    for (uint32_t i = 0; f && i < f->n_definitions && n_found < MAX_GROUP; i++) {
        if (!is_of_group(&g, &text, &f->definitions[i])) continue;
        if (!n_found++)
            agent__begin_refactor(json, "move", f->definitions[i].name);
        else
            base_buf_printf(&with, "%s%s", with.len ? ", " : "", f->definitions[i].name);
    }
    if (n_found) agent__put_member(json, "to", to);
    if (n_found) agent__put_member(json, "path", from);
    if (with.len) agent__put_member(json, "with", with.data);
    if (n_found) agent__put_keep_words(request, json);
    code_file_free(f);
    free(g.pattern);
    free(from);
    free(to);
    base_buf_free(&text);
    base_buf_free(&with);
    return n_found > 0;
}

/* The first file of code that the request names behind byte `at`; *ret_behind: the byte where it is said. NULL: none. */
static char *read_source(const agent *a, const char *request, size_t at, size_t *ret_behind)
{
    agent_word m;
    char *path = NULL;
    for (; !path && agent__next_mention(request, at, &m); at = m.to > at ? m.to : at + 1) {
        if (m.from == m.to || !memchr(request + m.from, '.', m.to - m.from)) continue;
        char *said = agent__copy_word(request, m);
        const char *language = code_language(said, "", 0);
        if (language && !code_language_is_document(language))
            path = code_index_path(tool_workspace_index(a->workspace), said);
        *ret_behind = m.from;
        free(said);
    }
    return path;
}

uint32_t agent__list_group(const agent *a, const char *request, agent_listed *ret, uint32_t most)
{
    static const char *const verbs[] = {"delete", "remove", "drop", "get rid of"};
    static const char *const leads[] = {"from", "in", "of", NULL};
    size_t verb = 0, behind = 0;
    uint32_t n = agent__list_files(a, request, ret, most);
    if (n) return n;
    for (size_t i = 0; i < sizeof verbs / sizeof *verbs && !verb; i++)
        verb = agent__find_phrase(request, 0, verbs[i]);
    char *path = verb ? read_source(a, request, verb, &behind) : NULL;
    group g = {0};
    base_buf text = {0};
    agent_word before;
    bool is_good = path && agent__word_before(request, behind, &before) && before.from > verb &&
                   agent__is_any_word(request, before, leads) &&
                   read_group(a, request, verb, before.from, &g) &&
                   (g.pattern || g.n_words || g.is_deprecated) &&
                   !tool_workspace_read(a->workspace, path, MAX_FILE, &text, NULL) && text.len;
    code_file *f =
        is_good ? code_parse(tool_workspace_grammars(a->workspace), path, text.data, text.len) : NULL;
    for (uint32_t i = 0; f && i < f->n_definitions && n < most; i++)
        if (is_of_group(&g, &text, &f->definitions[i]))
            ret[n++] = (agent_listed){.operation = "delete",
                .name = base_xstrdup(f->definitions[i].name),
                .path = base_xstrdup(path)};
    code_file_free(f);
    free(g.pattern);
    free(path);
    base_buf_free(&text);
    return n;
}

bool agent__open_whole(const agent *a, const char *request, base_buf *json)
{
    size_t n = strlen(request);
    while (n && isspace((unsigned char)request[n - 1])) n--;
    if (n && request[n - 1] == '?' && agent__first_word(request) == request + strspn(request, " \t\n"))
        return false;
    return agent__open_keyword_only(a, request, json) || open_inline(a, request, json) ||
           open_delegation(a, request, json) || open_group(a, request, json);
}

bool agent__open_moved_together(agent *a, const char *request, base_buf *json)
{
    agent_asked *x = &a->asked;
    base_buf with = {0};
    code_place *places = NULL;
    const uint32_t n = x->n_listed > 1
                           ? code_index_define(tool_workspace_index(a->workspace), x->listed[0].name, &places)
                           : 0;
    bool is_one = n == 1;
    for (uint32_t i = 0; i < x->n_listed && is_one; i++) {
        const agent_listed *l = &x->listed[i];
        is_one = !strcmp(l->operation, "move") && l->to && x->listed[0].to &&
                 !strcmp(l->to, x->listed[0].to) && agent__stands_in(a, l->name, places[0].path);
        if (i) base_buf_printf(&with, "%s%s", with.len ? ", " : "", l->name);
    }
    if (is_one) {
        agent__begin_refactor(json, "move", x->listed[0].name);
        agent__put_member(json, "to", x->listed[0].to);
        agent__put_member(json, "path", places[0].path);
        agent__put_member(json, "with", with.data);
        agent__put_keep_words(request, json);
        for (uint32_t i = 1; i < x->n_listed; i++) agent__listed_free(&x->listed[i]);
        x->n_listed = x->n_begun = 1;
    }
    code_places_free(places, n);
    base_buf_free(&with);
    return is_one;
}
