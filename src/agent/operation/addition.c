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
#include "base/path.h"
#include "code/rank.h"

/* Says what is defined elsewhere, and defines nothing: "x.pyi", "x.d.ts". */
static bool is_stub(const char *path)
{
    return base_ends_with(path, ".pyi") || base_ends_with(path, ".d.ts");
}

/* JavaScript: a function whose prototype the file gives methods, "Accepts.prototype.types = function types(...)". */
static bool is_constructor(const agent *a, const code_place *p, const char *name)
{
    enum { MAX_FILE = 1 << 20 };
    base_buf text = {0};
    const char *language = code_language(p->path, "", 0);
    if (strcmp(p->what, "function") != 0 || *p->parent || !language || strcmp(language, "javascript") != 0 ||
        tool_workspace_read(a->workspace, p->path, MAX_FILE, &text, NULL) || !text.len) {
        base_buf_free(&text);
        return false;
    }
    base_buf prototype = {0};
    base_buf_printf(&prototype, "\n%s.prototype.", name);
    const bool is_so = memmem(text.data, text.len, prototype.data, prototype.len) != NULL;
    base_buf_free(&prototype);
    base_buf_free(&text);
    return is_so;
}

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
        is_type |= is_constructor(a, &places[i], name);
        if (!is_type || places[i].is_declaration || code_path_is_test(places[i].path) ||
            is_stub(places[i].path))
            continue;
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

/* "to LRU Cache", where both are types: the last one is meant, and takes the place of *name and *path. */
static void take_last_of_compound(
    const agent *a, const char *request, agent_word word, const char *new_name, char **name, char **path)
{
    agent_word next;
    while (request[word.to] == ' ' && agent__next_word(request, word.to, &next) && next.from == word.to + 1) {
        char *last = agent__copy_word(request, next), *last_path = NULL;
        if (strcmp(last, new_name) != 0) last_path = holder_path(a, last);
        if (!last_path) {
            free(last);
            return;
        }
        free(*name);
        free(*path);
        *name = last;
        *path = last_path;
        word = next;
    }
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
        if (path) take_last_of_compound(a, request, word, w->name, &name, &path);
        if (path)
            w->holder = name;
        else
            free(name);
    }
    return path;
}

static bool is_header(const char *path)
{
    return base_ends_with(path, ".h") || base_ends_with(path, ".hpp") || base_ends_with(path, ".hh");
}

/* "x.c" for "x.h", where the tree has it: what has a body does not belong into a header. The caller frees the path that it gets. */
static char *source_of(const agent *a, char *path)
{
    static const char *const endings[] = {"c", "cpp", "cc", "cxx"};
    const char *dot = path ? strrchr(path, '.') : NULL;
    if (!path || !is_header(path)) return path;
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

/* "a test in tests/test_a.py", "test it in a_test.go": the file is the test's, not that of what is tested. */
static bool is_for_test(const char *request, size_t at)
{
    static const char *const words[] = {"test", "tests", NULL};
    enum { NEAR = 3 };
    agent_word w;
    for (size_t n = 0; n < NEAR && agent__word_before(request, at, &w); at = w.from, n++)
        if (agent__is_any_word(request, w, words)) return true;
    return false;
}

/* "shop.text", "w3lib.html": the file of a module of Python that is named with dots, whatever the last name looks like. NULL: none is. */
static char *find_module(const agent *a, const char *said)
{
    base_buf path = {0};
    for (const char *p = said; *p; p++) base_buf_putc(&path, *p == '.' ? '/' : *p);
    base_buf_puts(&path, ".py");
    char *found =
        strchr(said, '.') && !strchr(said, '/') && said[strcspn(said, ".")] && said[strlen(said) - 1] != '.'
            ? code_index_path(tool_workspace_index(a->workspace), path.data)
            : NULL;
    base_buf_free(&path);
    return found;
}

/* A file of the tree that the request names, of a language that has functions. */
static char *find_file(const agent *a, const char *request)
{
    char *path = NULL;
    agent_word m;
    for (size_t at = 0; !path && agent__next_mention(request, at, &m); at = m.to > at ? m.to : at + 1) {
        char *said = base_xstrndup(request + m.from, m.to - m.from);
        const char *language = strchr(said, '.') ? code_language(said, "", 0) : NULL;
        const bool is_code = language && !code_language_is_document(language);
        if (is_code && !is_for_test(request, m.from))
            path = code_index_path(tool_workspace_index(a->workspace), said);
        if (!path && strchr(said, '.') && !is_for_test(request, m.from)) path = find_module(a, said);
        free(said);
    }
    return path;
}

/* "in a new file src/a/lists.py": a file of code that the request names and the tree has not. */
static char *find_new_file(const agent *a, const char *request)
{
    static const char *const in_front[] = {"in", "into", "to", "file", "module", NULL};
    agent_word m, before;
    char *path = NULL;
    for (size_t at = 0; !path && agent__next_mention(request, at, &m); at = m.to > at ? m.to : at + 1) {
        char *said = base_xstrndup(request + m.from, m.to - m.from);
        const char *dot = strrchr(said, '.'),
                   *language = dot && dot > said ? code_language(said, "", 0) : NULL;
        const bool is_place = language && !code_language_is_document(language) &&
                              !is_for_test(request, m.from) && agent__word_before(request, m.from, &before) &&
                              agent__is_any_word(request, before, in_front);
        char *known = is_place ? code_index_path(tool_workspace_index(a->workspace), said) : NULL;
        if (is_place && !known && !code_path_is_test(said)) {
            path = said;
            said = NULL;
        }
        free(known);
        free(said);
    }
    return path;
}

/* "Ask a prefix whether ...: add is_binary": the one type of the tree that the request speaks of by a plain word, and its file. */
static char *find_described_holder(const agent *a, const char *request, agent_addition_words *w)
{
    char *path = NULL;
    uint32_t n_types = 0;
    agent_word word;
    for (size_t at = 0; agent__next_word(request, at, &word); at = word.to) {
        char *name = agent__copy_word(request, word);
        const size_t n = strlen(name);
        *name = (char)toupper((unsigned char)*name);
        char *found = n > 2 && strcmp(name, w->name) != 0 ? holder_path(a, name) : NULL;
        if (!found && n > 3 && name[n - 1] == 's') { /* "the class of signals" */
            name[n - 1] = 0;
            found = holder_path(a, name);
        }
        const bool is_same = found && w->holder && !strcmp(w->holder, name);
        if (found && !is_same && !n_types++) {
            path = found;
            w->holder = name;
            continue;
        }
        free(found);
        free(name);
    }
    if (n_types == 1) return path;
    free(path);
    free(w->holder);
    w->holder = NULL;
    return NULL;
}

bool agent__is_source(const char *path)
{
    static const char *const folders[] = {"example", "examples", "bench", "benches", "benchmark",
        "benchmarks", "doc", "docs", "scripts", "tools", "fuzz", "node_modules", NULL};
    static const char *const files[] = {"setup.py", "conf.py", "build.rs", "doc.go", "_version.py", NULL};
    static const char *const endings[] = {".h", ".hpp", ".d.ts", ".config.js", ".sh", NULL};
    const char *language = code_language(path, "", 0);
    if (!language || code_language_is_document(language) || code_path_is_test(path)) return false;
    for (const char *p = path, *slash; (slash = strchr(p, '/')); p = slash + 1)
        for (const char *const *f = folders; *f; f++)
            if (strlen(*f) == (size_t)(slash - p) && !strncmp(p, *f, (size_t)(slash - p))) return false;
    for (const char *const *f = files; *f; f++)
        if (!strcmp(base_path_name(path), *f)) return false;
    for (const char *const *e = endings; *e; e++)
        if (base_ends_with(path, *e)) return false;
    return true;
}

bool agent__is_code_place(const code_place *p)
{
    return !p->is_declaration && !code_path_is_test(p->path) && strcmp(p->what, "variable") != 0 &&
           strcmp(p->what, "field") != 0;
}

/* Is it a function that others stand beside, and what does it belong to? `ret_holder` "": to its file. The caller frees both. */
static bool take_relative(const code_place *p, char **ret_path, char **ret_holder)
{
    const bool is_one = !p->is_declaration && agent__is_source(p->path) && !is_stub(p->path) &&
                        (!strcmp(p->what, "function") || !strcmp(p->what, "method"));
    if (!is_one) return false;
    *ret_path = base_xstrdup(p->path);
    *ret_holder = base_xstrdup(p->parent);
    return true;
}

/* "... that splits like Split", "as ToKebab does", "beside get_key": the first function that the request writes by its name. */
static bool find_named_relative(
    const agent *a, const char *request, const char *name, char **ret_path, char **ret_holder)
{
    agent_named named;
    bool found = false;
    agent__find_named(a, request, &named);
    for (uint32_t i = 0; i < named.n && !found && named.items[i].score >= AGENT_NAMED_SURE; i++) {
        code_place *places = NULL;
        const uint32_t n =
            code_index_define(tool_workspace_index(a->workspace), named.items[i].name, &places);
        for (uint32_t k = 0; k < n && !found && strcmp(named.items[i].name, name) != 0; k++)
            found = take_relative(&places[k], ret_path, ret_holder);
        code_places_free(places, n);
    }
    agent_named_free(&named);
    return found;
}

/* The function that the request's words fit best (code/rank.h). */
static bool find_ranked_relative(const agent *a, const char *request, char **ret_path, char **ret_holder)
{
    enum { DEPTH = 8 };
    code_ranked *ranked = NULL;
    const uint32_t n = code_index_rank(tool_workspace_index(a->workspace), NULL, request, DEPTH, &ranked);
    bool found = false;
    for (uint32_t i = 0; i < n && !found; i++) {
        code_place *places = NULL;
        const uint32_t n_places =
            code_index_define(tool_workspace_index(a->workspace), ranked[i].name, &places);
        for (uint32_t k = 0; k < n_places && !found; k++)
            found = !strcmp(places[k].path, ranked[i].path) && places[k].from == ranked[i].from &&
                    take_relative(&places[k], ret_path, ret_holder);
        code_places_free(places, n_places);
    }
    code_ranked_free(ranked, n);
    return found;
}

/* Nothing is said of the place: beside its relative, and a method into the type of that one. */
static char *find_place_beside(const agent *a, const char *request, agent_addition_words *w)
{
    char *path = NULL, *holder = NULL;
    if (!find_named_relative(a, request, w->name, &path, &holder) &&
        !find_ranked_relative(a, request, &path, &holder))
        return NULL;
    if (w->is_method && *holder) {
        w->holder = holder;
        return path;
    }
    free(holder);
    if (!w->is_method) return path;
    free(path); /* no type to belong to */
    return NULL;
}

/* Has the tree such a function already? Another type's method is another thing. */
static bool is_there(const agent *a, const agent_addition_words *w, const char *path)
{
    code_place *places = NULL;
    const uint32_t n = code_index_define(tool_workspace_index(a->workspace), w->name, &places);
    bool is = false;
    for (uint32_t i = 0; i < n && !is; i++)
        is = w->holder ? !strcmp(places[i].parent, w->holder)
                       : !*places[i].parent && (!strcmp(places[i].path, path) || !is_stub(places[i].path));
    code_places_free(places, n);
    return is;
}

/* "to Stack", "in stack.c", where the tree has neither: the request says a place, and it is not there. */
static bool says_unknown_place(const char *request, const char *name)
{
    agent_word m;
    for (size_t at = 0; agent__next_mention(request, at, &m); at = m.to > at ? m.to : at + 1) {
        char *said = agent__copy_word(request, m);
        const bool is_file = strchr(said, '.') && code_language(said, "", 0) &&
                             !is_for_test(request, m.from) &&
                             !code_language_is_document(code_language(said, "", 0)),
                   is_type = isupper((unsigned char)*said) && strpbrk(said, "abcdefghijklmnopqrstuvwxyz") &&
                             strcmp(said, name) != 0,
                   is_so = (is_file || is_type) && agent_is_addition_place(request, m.from) &&
                           !(strchr(said, '.') && !is_file);
        free(said);
        if (is_so) return true;
    }
    return false;
}

/* The only file of code that the tree has beside its tests. */
static char *only_source(const agent *a)
{
    char **paths = code_index_paths(tool_workspace_index(a->workspace)), *only = NULL;
    uint32_t n = 0;
    for (size_t i = 0; paths && paths[i]; i++) {
        if (!agent__is_source(paths[i])) continue;
        if (!n++) only = base_xstrdup(paths[i]);
    }
    code_index_paths_free(paths);
    if (n == 1) return only;
    free(only);
    return NULL;
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
 * Go, Rust: are the parameters that the request writes all that stands between the brackets, with types and receiver? "a, b int" has
 * its type at the end.
 */
static bool is_whole_list(const agent_addition_words *w, const char *language)
{
    const bool is_rust = !strcmp(language, "rust");
    if ((!is_rust && strcmp(language, "go") != 0) || !w->parameters) return false;
    if (is_rust) return strpbrk(w->parameters, " :") && (!w->holder || strstr(w->parameters, "self"));
    const char *comma = strrchr(w->parameters, ','), *last = comma ? comma + 1 : w->parameters;
    return strchr(last + strspn(last, " "), ' ') != NULL;
}

/* Go: the type that a function of the file gives to a parameter of that name, "int" of "(a, window int)"; empty: none does. */
static base_str go_type(const code_file *f, const base_buf *text, const char *name, size_t n)
{
    for (uint32_t i = 0; i < f->n_definitions; i++) {
        const code_definition *d = &f->definitions[i];
        if (!is_function(d) || d->body_from > text->len) continue;
        size_t at = d->name_from, from, to;
        while (code_next_identifier(text->data, d->body_from, &at, &from, &to)) {
            if (to - from != n || memcmp(text->data + from, name, n) != 0) continue;
            while (text->data[to] == ',' && code_next_identifier(text->data, d->body_from, &at, &from, &to)) {
            }
            const size_t begin = to + strspn(text->data + to, " ");
            const size_t type = begin > to ? strcspn(text->data + begin, ",)\n") : 0;
            if (type && begin + type < d->body_from && !strchr(" (", text->data[begin]))
                return (base_str){text->data + begin, type};
        }
    }
    return (base_str){0};
}

/* "(input Float64Data, window int" of "input, window", as the file's other functions say them; nothing where one is not known. */
static void put_go_list(const code_file *f, const base_buf *text, const char *list, base_buf *out)
{
    const size_t n_before = out->len;
    for (const char *p = list; *p; p += *p == ',') {
        p += strspn(p, " ");
        const size_t n = strcspn(p, ", ");
        const base_str type = n && (!p[n] || p[n] == ',') ? go_type(f, text, p, n) : (base_str){0};
        if (!type.len) {
            out->len = n_before;
            if (out->data) out->data[n_before] = '\0';
            return;
        }
        base_buf_printf(
            out, "%s%.*s %.*s", out->len > n_before ? ", " : "(", (int)n, p, (int)type.len, type.ptr);
        p += n;
    }
    if (out->len > n_before) base_buf_putc(out, ')');
}

/* Most neighbours are public, and the request does not say what this one is. */
static bool is_public_java(const char *usual, const char *declared)
{
    static const char *const said[] = {"public", "private", "protected", NULL};
    return !strncmp(usual, "public ", 7) &&
           !agent__is_any_word(declared, (agent_word){0, strcspn(declared, " ")}, said);
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
    const bool is_script = !strcmp(language, "javascript") || !strcmp(language, "typescript"),
               is_public = agent__has_word(a->request, "public");
    put_usual_head(f, &text, type, &head);
    const char *usual = head.len ? head.data : "";
    if (!strcmp(language, "go") && type && strncmp(usual, "func (", 6) != 0)
        base_buf_printf(out, "func (%c *%s) %s", tolower((unsigned char)*type), type, w->name);
    else if (!strcmp(language, "go"))
        base_buf_printf(out, "%s%s", type ? usual : "func ", w->name);
    else if (!strcmp(language, "rust"))
        base_buf_printf(out, "%s%s", is_public || !strncmp(usual, "pub fn", 6) ? "pub fn " : "fn ", w->name);
    else if (is_script && type && strstr(usual, ".prototype."))
        base_buf_printf(out, "%s.prototype.%s = function %s", type, w->name, w->name);
    else if (is_script && type && !*usual)
        base_buf_puts(out, w->name);
    else if (is_script && !type && (!*usual || strstr(usual, "function ")))
        base_buf_printf(
            out, "%s%s", strncmp(usual, "export function", 15) ? "function " : "export function ", w->name);
    else if (w->declared)
        base_buf_printf(out, "%s%s", is_public_java(usual, w->declared) ? "public " : "", w->declared);
    const bool may_close = out->len && !w->declared && is_whole_list(w, language);
    if (may_close) base_buf_printf(out, "(%s)", w->parameters);
    if (may_close && w->returns) base_buf_printf(out, " %s", w->returns);
    if (!may_close && !strcmp(language, "go") && w->parameters) put_go_list(f, &text, w->parameters, out);
    code_file_free(f);
    base_buf_free(&text);
    base_buf_free(&head);
}

/* As its file writes it: "@contextlib.contextmanager". */
static void put_decorator(const agent *a, const char *decorator, const char *path, base_buf *out)
{
    enum { MAX_FILE = 1 << 20 };
    base_buf text = {0}, used = {0};
    base_buf_printf(&used, ".%s\n", decorator);
    const bool has_text = !tool_workspace_read(a->workspace, path, MAX_FILE, &text, NULL) && text.len;
    const char *at = has_text ? memmem(text.data, text.len, used.data, used.len) : NULL, *from = at;
    while (from && from > text.data && agent__is_in_word(from - 1, 0)) from--;
    const bool is_member = at && from > text.data && from[-1] == '@';
    base_buf_printf(out, "@%.*s%s\n", is_member ? (int)(at + 1 - from) : 0, is_member ? from : "", decorator);
    base_buf_free(&text);
    base_buf_free(&used);
}

/* How a function begins, up to where the model goes on; nothing where the language begins with what it returns. */
static void put_beginning(
    const agent *a, const agent_addition_words *w, const char *path, const char *language, base_buf *out)
{
    const bool is_python = !strcmp(language, "python");
    if (!w->is_plain && !(is_python && w->decorator)) return;
    if (!is_python) {
        put_like_neighbours(a, w, path, language, out);
        return;
    }
    const char *first = !w->holder || (w->decorator && !strcmp(w->decorator, "staticmethod")) ? ""
                        : w->decorator && !strcmp(w->decorator, "classmethod")                ? "cls"
                                                                                              : "self";
    if (w->decorator) put_decorator(a, w->decorator, path, out);
    base_buf_printf(out, "def %s(%s", w->name, first);
    if (!w->parameters) return;
    const bool says_first = *first && !strncmp(w->parameters, first, strlen(first));
    base_buf_printf(
        out, "%s%s)", *first && !says_first ? ", " : "", w->parameters + (says_first ? strlen(first) : 0));
    if (w->returns) base_buf_printf(out, " %s", w->returns);
}

/* How many names the request writes that the tree has not; *ret: the last of them. */
static uint32_t count_new_names(const agent_asked *x, const char **ret)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < x->n_wishes; i++) {
        if (x->wishes[i].kind != AGENT_WISH_STANDS) continue;
        *ret = x->wishes[i].name;
        n++;
    }
    return n;
}

/* By its words; else the only new name that the request writes, however it says that this is to come. */
static bool read_words(const agent *a, const char *request, agent_addition_words *ret)
{
    const agent_asked *x = &a->asked;
    const char *name = NULL;
    const uint32_t n = count_new_names(x, &name);
    if (agent_read_addition_words(request, ret)) {
        char *file = find_file(a, request);
        ret->is_bare &=
            n > 1 || file; /* it is no one of a list, and no file is said that the model would take */
        free(file);
        return true;
    }
    agent_addition_words_free(ret);
    return n == 1 && !x->is_operation && agent_read_new_name(request, name, ret);
}

char *agent__read_addition(const agent *a, const char *request, agent_addition_words *ret)
{
    const agent_asked *x = &a->asked;
    agent_addition_words w = {0};
    *ret = w;
    if (!x->change || x->test || x->n_changed || x->refused || a->fix.wanted || a->info.strong ||
        a->settings.mode == AGENT_MODE_PLAN || !read_words(a, request, &w))
        return NULL;
    char *path = find_holder(a, request, &w);
    if (w.is_bare && !path) path = find_described_holder(a, request, &w);
    if (!w.is_bare) { /* a bare name goes into a type at most: a file may get several of a list */
        if (!path && !w.holder && w.is_method) path = find_described_holder(a, request, &w);
        if (!path && !w.holder) path = find_file(a, request);
        if (!path && !w.holder) path = find_new_file(a, request);
        if (!path && !w.holder) path = agent__home_of_addition(a, request);
        if (!path && !w.holder) path = find_described_holder(a, request, &w);
        const bool may_guess = !path && !w.holder && !says_unknown_place(request, w.name);
        if (may_guess) path = only_source(a);
        if (may_guess && !path) path = find_place_beside(a, request, &w);
    }
    path = source_of(a, path);
    char *beside = NULL, *of = NULL; /* "next to f, with its prototype in x.h": where f stands */
    if (path && is_header(path) && !w.holder && find_named_relative(a, request, w.name, &beside, &of) &&
        !is_header(beside)) {
        free(path);
        path = beside;
        beside = NULL;
    }
    free(beside);
    free(of);
    if (path && is_there(a, &w, path)) {
        free(path);
        path = NULL;
    }
    *ret = w;
    return path;
}

bool agent__open_addition(agent *a, const char *request, agent_opening *opening)
{
    agent_asked *x = &a->asked;
    agent_addition_words w = {0};
    char *path = x->has_begun_addition ? NULL : agent__read_addition(a, request, &w);
    if (path) {
        base_buf name = {0}, body = {0};
        base_buf_printf(&name, "%s%s%s", w.holder ? w.holder : "", w.holder ? "." : "", w.name);
        const char *language = code_language(path, "", 0);
        const agent_definition new = {
            .path = path, .name = name.data, .language = (char *)(language ? language : "")};
        x->has_begun_addition = true;
        agent_opening_free(opening);
        agent__put_call(a, &new, &opening->call);
        put_beginning(a, &w, path, new.language, &body);
        if (body.len) agent_prompt_put_payload(a->info.tools, body.data, body.len, &opening->call);
        base_buf_free(&name);
        base_buf_free(&body);
    }
    const bool is_open = path != NULL;
    free(path);
    agent_addition_words_free(&w);
    return is_open;
}
