/*
 * "Add a method pop to class Stack": a small model answers that with advice. The request says what the new function is
 * called and mostly where it stands, so the program begins the call, and where the language says how a function
 * begins, the function too; the model writes the rest.
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "agent/call/prompt.h"
#include "agent/operation/operation.h"
#include "agent/retrieve/retrieve.h"
#include "agent/words/operation_words.h"
#include "agent/words/request_words.h"
#include "base/mem.h"

/* The tree's only type of that name that has members; NULL: none, or several. */
static char *holder_path(const agent *a, const char *name)
{
    static const char *const types[] = {"class", "interface", "struct", "enum", "trait", "object"};
    code_place *places = NULL;
    const uint32_t n = code_index_define(tool_workspace_index(a->workspace), name, &places);
    const code_place *only = NULL;
    uint32_t n_types = 0;
    for (uint32_t i = 0; i < n; i++) {
        bool is_type = false;
        for (size_t k = 0; k < sizeof types / sizeof *types; k++)
            is_type |= !strcmp(places[i].what, types[k]);
        if (!is_type || places[i].is_declaration || code_path_is_test(places[i].path)) continue;
        only = &places[i];
        n_types++;
    }
    const char *language = n_types == 1 ? code_language(only->path, "", 0) : NULL;
    const bool has_members =
        language && strcmp(language, "c") != 0; /* there functions stand outside of types */
    char *ret = has_members ? base_xstrdup(only->path) : NULL;
    code_places_free(places, n);
    return ret;
}

/* "Queue needs a method reset", "Queue should get a method reset": does that stand behind the word "Queue"? */
static bool is_owner(const char *request, agent_word word)
{
    static const char *const modal[] = {"should", "must", "could", "to", NULL};
    static const char *const needing[] = {"needs", "lacks", "gets", "need", "get", "have", NULL};
    agent_word next;
    if (!agent__next_word(request, word.to, &next)) return false;
    if (agent__is_any_word(request, next, modal) && !agent__next_word(request, next.to, &next)) return false;
    return agent__is_any_word(request, next, needing);
}

/* The type that the request puts it into, and its file. */
static char *find_holder(const agent *a, const char *request, agent_addition_words *w)
{
    agent_word word;
    if (w->holder) return holder_path(a, w->holder);
    char *path = NULL;
    for (size_t at = 0; !path && agent__next_word(request, at, &word); at = word.to) {
        const bool is_path =
            strchr("./-", request[word.to]) && request[word.to] && agent__is_in_word(request, word.to + 1);
        const bool is_place = is_owner(request, word) || agent_is_addition_place(request, word.from);
        if (word.to - word.from < 2 || is_path || !is_place) continue;
        char *name = agent__copy_word(request, word);
        if (strcmp(name, w->name) != 0) path = holder_path(a, name);
        if (path)
            w->holder = name;
        else
            free(name);
    }
    return path;
}

/* "x.c" for "x.h", where the tree has it: what has a body does not belong into a header. The caller frees the path that it gets. */
static char *source_of(const agent *a, char *path)
{
    static const char *const endings[] = {"c", "cpp", "cc", "cxx"};
    const char *dot = path ? strrchr(path, '.') : NULL;
    if (!dot || (strcmp(dot, ".h") != 0 && strcmp(dot, ".hpp") != 0 && strcmp(dot, ".hh") != 0)) return path;
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        base_buf source = {0};
        base_buf_printf(&source, "%.*s%s", (int)(dot + 1 - path), path, endings[i]);
        char *known = code_index_path(tool_workspace_index(a->workspace), source.data);
        base_buf_free(&source);
        if (!known) continue;
        free(path);
        return known;
    }
    return path;
}

/* "a test in tests/test_a.py": the file is the test's, not that of what is tested. */
static bool is_for_test(const char *request, size_t at)
{
    static const char *const words[] = {"test", "tests", NULL};
    enum { NEAR = 2 };
    agent_word w;
    for (size_t n = 0; n < NEAR && agent__word_before(request, at, &w); at = w.from, n++)
        if (agent__is_any_word(request, w, words)) return true;
    return false;
}

/* A file of the tree that the request names, of a language that has functions. */
static char *find_file(const agent *a, const char *request)
{
    char *path = NULL;
    agent_word m;
    for (size_t at = 0; !path && agent__next_mention(request, at, &m); at = m.to > at ? m.to : at + 1) {
        char *said = base_xstrndup(request + m.from, m.to - m.from);
        if (strchr(said, '.') && code_language(said, "", 0) && !is_for_test(request, m.from))
            path = code_index_path(tool_workspace_index(a->workspace), said);
        free(said);
    }
    return path;
}

/* --- how its text begins -------------------------------------------------------------------------------- */

static bool is_function(const code_definition *d)
{
    return (!strcmp(d->what, "function") || !strcmp(d->what, "method")) && d->body_to > d->body_from;
}

static bool is_neighbour(const code_definition *d, const char *type)
{
    return is_function(d) && (type ? !strcmp(d->parent, type) : !*d->parent);
}

/* The line of a definition's name, up to the name. */
static base_str head_of(const base_buf *text, const code_definition *d)
{
    size_t from = d->name_from;
    while (from && text->data[from - 1] != '\n') from--;
    while (from < d->name_from && isspace((unsigned char)text->data[from])) from++;
    return (base_str){text->data + from, d->name_from - from};
}

/* What most neighbours write in front of their names, where that says no type of what they give; empty: none is known. */
static void put_usual_head(const code_file *f, const base_buf *text, const char *type, base_buf *out)
{
    base_str best = {0};
    uint32_t most = 0;
    for (uint32_t i = 0; i < f->n_definitions; i++) {
        if (!is_neighbour(&f->definitions[i], type)) continue;
        const base_str head = head_of(text, &f->definitions[i]);
        uint32_t n = 0;
        for (uint32_t k = 0; k < f->n_definitions; k++) {
            const base_str other = head_of(text, &f->definitions[k]);
            n += is_neighbour(&f->definitions[k], type) && other.len == head.len &&
                 !memcmp(other.ptr, head.ptr, head.len);
        }
        if (n < most) continue;
        most = n;
        best = head;
    }
    if (best.ptr) base_buf_add(out, best.ptr, best.len);
}

/*
 * As its neighbours begin, up to the name: behind a bracket that stands there already a model writes "( )", or invents a
 * parameter.
 */
static void put_like_neighbours(
    const agent *a, const agent_addition_words *w, const char *path, const char *language, base_buf *out)
{
    enum { MAX_FILE = 1 << 20 };
    base_buf text = {0}, head = {0};
    if (tool_workspace_read(a->workspace, path, MAX_FILE, &text, NULL) || !text.len) {
        base_buf_free(&text);
        return;
    }
    code_file *f = code_parse(tool_workspace_grammars(a->workspace), path, text.data, text.len);
    const char *type = w->holder;
    const bool is_script = !strcmp(language, "javascript") || !strcmp(language, "typescript");
    put_usual_head(f, &text, type, &head);
    const char *usual = head.len ? head.data : "";
    if (!strcmp(language, "go") && type && strncmp(usual, "func (", 6) != 0)
        base_buf_printf(out, "func (%c *%s) %s", tolower((unsigned char)*type), type, w->name);
    else if (!strcmp(language, "go"))
        base_buf_printf(out, "%s%s", type ? usual : "func ", w->name);
    else if (!strcmp(language, "rust"))
        base_buf_printf(out, "%s%s", strncmp(usual, "pub fn", 6) ? "fn " : "pub fn ", w->name);
    else if (is_script && type && !*usual)
        base_buf_puts(out, w->name);
    else if (is_script && !type && (!*usual || strstr(usual, "function ")))
        base_buf_printf(
            out, "%s%s", strncmp(usual, "export function", 15) ? "function " : "export function ", w->name);
    code_file_free(f);
    base_buf_free(&text);
    base_buf_free(&head);
}

/* How a function begins, up to where the model goes on; nothing where the language begins with what it returns. */
static void put_beginning(
    const agent *a, const agent_addition_words *w, const char *path, const char *language, base_buf *out)
{
    const bool has_self = w->holder != NULL;
    if (!w->is_plain) return;
    if (strcmp(language, "python") != 0) {
        put_like_neighbours(a, w, path, language, out);
        return;
    }
    base_buf_printf(out, "def %s(%s", w->name, has_self ? "self" : "");
    if (!w->parameters) return;
    const bool says_self = !strncmp(w->parameters, "self", 4);
    base_buf_printf(out, "%s%s)", has_self && !says_self ? ", " : "",
        w->parameters + (has_self && says_self ? strlen("self") : 0));
}

bool agent__open_addition(agent *a, const char *request, agent_opening *opening)
{
    agent_asked *x = &a->asked;
    agent_addition_words w = {0};
    if (!x->change || x->test || x->has_begun_addition || x->n_changed || x->refused || a->fix.wanted ||
        a->info.strong || a->settings.mode == AGENT_MODE_PLAN || !agent_read_addition_words(request, &w))
        return false;
    char *path = find_holder(a, request, &w);
    if (!path && !w.holder) path = find_file(a, request);
    if (!path && !w.holder) path = agent__home_of_addition(a, request);
    path = source_of(a, path);
    base_buf name = {0}, body = {0};
    base_buf_printf(&name, "%s%s%s", w.holder ? w.holder : "", w.holder ? "." : "", w.name);
    const bool is_open = path && !code_index_is_defined(tool_workspace_index(a->workspace), name.data);
    if (is_open) {
        const char *language = code_language(path, "", 0);
        const agent_definition new = {
            .path = path, .name = name.data, .language = (char *)(language ? language : "")};
        x->has_begun_addition = true;
        agent_opening_free(opening);
        agent__put_call(a, &new, &opening->call);
        put_beginning(a, &w, path, new.language, &body);
        if (body.len) agent_prompt_put_payload(a->info.tools, body.data, body.len, &opening->call);
    }
    base_buf_free(&name);
    base_buf_free(&body);
    free(path);
    agent_addition_words_free(&w);
    return is_open;
}
