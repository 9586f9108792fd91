/*
 * Places that have no name of their own in a sentence: "repr() of an empty Patch" is Patch.__repr__, "the command line tool" is the
 * file where the program begins.
 */
#include <stdlib.h>
#include <string.h>

#include "agent/asked/asked.h"
#include "agent/words/request_words.h"
#include "base/mem.h"
#include "base/path.h"

/* What Python calls by a function of the language, which is what a sentence names. */
static const char *const calls_special[] = {"repr", "str", "len", "hash", "bool", "iter", "next", "int",
    "float", "bytes", "abs", "reversed", "format", NULL};

/* What is done to a value, and what Python calls for that. */
static const struct doing {
    const char *word, *special;
} doings[] = {{"comparing", "eq"}, {"equality", "eq"}, {"comparison", "eq"}, {"hashing", "hash"},
    {"hashable", "hash"}, {"iterating", "iter"}, {"iterable", "iter"}, {"iteration", "iter"},
    {"indexing", "getitem"}, {"slicing", "getitem"}, {"calling", "call"}, {"printing", "str"}};

/* "repr(x)", "the repr of", "through str": said of what code gives, and no word of a sentence. */
static bool is_special(const char *s, agent_word w)
{
    static const char *const articles[] = {"the", "its", "through", "by", "with", NULL};
    static const char *const of[] = {"of", "for", NULL};
    agent_word before, next;
    if (!agent__is_any_word(s, w, calls_special)) return false;
    if (s[w.to] == '(') return true;
    const bool is_led = agent__word_before(s, w.from, &before) && agent__is_any_word(s, before, articles);
    const bool is_marked = w.from && agent__is_mark(s[w.from - 1]);
    return (is_led || is_marked) && agent__next_word(s, w.to, &next) && agent__is_any_word(s, next, of);
}

/* T.__repr__, of the first T of the request that has one. */
static const code_place *find_of_type(
    const agent *a, const char *request, const char *special, code_place **ret_places, uint32_t *ret_n)
{
    size_t pos = 0, from, to;
    *ret_places = NULL;
    *ret_n = 0;
    while (code_next_identifier(request, strlen(request), &pos, &from, &to)) {
        base_buf name = {0};
        base_buf_printf(&name, "%.*s.__%s__", (int)(to - from), request + from, special);
        const uint32_t n = code_index_define(tool_workspace_index(a->workspace), name.data, ret_places);
        const code_place *p = n == 1 ? &(*ret_places)[0] : NULL;
        const bool is_its = p && strlen(p->parent) == to - from &&
                            !memcmp(p->parent, request + from, to - from) && !code_path_is_test(p->path);
        base_buf_free(&name);
        *ret_n = n;
        if (is_its) return p;
        code_places_free(*ret_places, n);
        *ret_places = NULL;
    }
    *ret_n = 0;
    return NULL;
}

bool agent__find_special(agent *a, const char *request)
{
    bool is_found = false;
    for (agent_word w = {0}; !is_found && agent__next_word(request, w.to, &w);) {
        code_place *places;
        uint32_t n;
        char *said = is_special(request, w) ? agent__copy_word(request, w) : NULL;
        for (size_t i = 0; i < sizeof doings / sizeof *doings && !said; i++) {
            const char *const only[] = {doings[i].word, NULL};
            if (agent__is_any_word(request, w, only)) said = base_xstrdup(doings[i].special);
        }
        if (!said) continue;
        const code_place *p = find_of_type(a, request, said, &places, &n);
        base_buf name = {0};
        base_buf_printf(&name, "__%s__", said);
        if (p) agent__set_meant(a, p, name.data);
        is_found = p != NULL;
        base_buf_free(&name);
        code_places_free(places, n);
        free(said);
    }
    return is_found;
}

static bool speaks_of_program(const char *request)
{
    static const char *const phrases[] = {"command line", "command-line", "commandline", "the cli",
        "the program", "the executable", "the script", "the tool", NULL};
    return agent__has_any_word(request, phrases);
}

/* A program's name is its folder's or its file's: "cmd/globtest/main.go". */
static bool is_named(const char *request, const char *path)
{
    char *copy = base_xstrdup(path), *rest = copy;
    bool is = false;
    for (char *part; (part = strsep(&rest, "/")) != NULL;) {
        part[strcspn(part, ".")] = '\0';
        is |= agent__names_word(request, part);
    }
    free(copy);
    return is;
}

/* The places where a program begins, outside of tests. */
static bool begins_program(const code_place *p)
{
    static const char *const scripts[] = {"setup", "conftest", "build", NULL};
    const char *file = base_path_name(p->path);
    return !p->is_declaration && !strcmp(p->what, "function") && !code_path_is_test(p->path) &&
           !agent__is_any_word(file, (agent_word){0, strcspn(file, ".")}, scripts);
}

char *agent__find_program(const agent *a, const char *request)
{
    code_place *places = NULL;
    const code_place *only = NULL, *named = NULL;
    uint32_t n_only = 0, n_named = 0;
    if (!speaks_of_program(request)) return NULL;
    const uint32_t n = code_index_define(tool_workspace_index(a->workspace), "main", &places);
    for (uint32_t i = 0; i < n; i++) {
        const code_place *p = &places[i];
        if (!begins_program(p)) continue;
        only = p;
        n_only++;
        if (!is_named(request, p->path)) continue;
        named = p;
        n_named++;
    }
    const code_place *meant = n_only == 1 ? only : n_named == 1 ? named : NULL;
    char *path = meant ? base_xstrdup(meant->path) : NULL;
    code_places_free(places, n);
    return path;
}

char *agent__read_option(const char *request)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789-";
    for (const char *p = request; (p = strstr(p, "--")) != NULL; p += 2) {
        const size_t n = strspn(p, letters);
        const bool begins = p == request || strchr(" \t\n`'\"(", p[-1]);
        if (begins && n > 3 && p[2] != '-') return base_xstrndup(p, n);
    }
    return NULL;
}

/* The first function of the file that writes the text; NULL: none does. */
static const code_definition *find_user(const code_file *f, const base_buf *text, const char *written)
{
    for (uint32_t i = 0; i < f->n_definitions; i++) {
        const code_definition *d = &f->definitions[i];
        if (!strcmp(d->what, "function") && d->body_to > d->body_from && d->to <= text->len &&
            memmem(text->data + d->from, d->to - d->from, written, strlen(written)))
            return d;
    }
    return NULL;
}

bool agent__find_option(agent *a, const char *request)
{
    enum { MAX_FILE = 1 << 20 };
    char *option = agent__read_option(request), *path = option ? agent__find_program(a, request) : NULL;
    const char *const signs[] = {option, "add_argument(", "getopt", "argv["};
    base_buf text = {0};
    bool is_found = false;
    if (path && !tool_workspace_read(a->workspace, path, MAX_FILE, &text, NULL) && text.len) {
        code_file *f = code_parse(tool_workspace_grammars(a->workspace), path, text.data, text.len);
        const code_definition *d = NULL;
        for (size_t i = 0; i < sizeof signs / sizeof *signs && !d; i++) d = find_user(f, &text, signs[i]);
        code_place *places = NULL;
        const uint32_t n = d ? code_index_define(tool_workspace_index(a->workspace), d->name, &places) : 0;
        for (uint32_t i = 0; i < n && !is_found; i++) {
            is_found = !strcmp(places[i].path, path) && places[i].from == d->from;
            if (is_found) agent__set_meant(a, &places[i], d->name);
        }
        code_places_free(places, n);
        code_file_free(f);
    }
    base_buf_free(&text);
    free(option);
    free(path);
    return is_found;
}
