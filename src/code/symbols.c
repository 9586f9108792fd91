/*
 * Looking things up in the index by their exact name: where a symbol is defined, who calls it, whether a word
 * occurs, which path is meant. For checking what a model says, for @ completion and for the search tool. Any
 * thread.
 */
#include "code/index_state.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define LOCK(x)   pthread_mutex_lock(&((code_index *)(x))->lock)
#define UNLOCK(x) pthread_mutex_unlock(&((code_index *)(x))->lock)

typedef struct candidate {
    uint32_t file, definition;
    unsigned cost;
} candidate;

/* Definitions before declarations, code before tests, functions and types before variables and fields. */
static unsigned cost_of(const code_index *x, uint32_t file, uint32_t definition)
{
    static const char *const last[] = {"constant", "variable", "field", "section"};
    const code_definition *d = &x->files[file].file->definitions[definition];
    unsigned cost = d->is_declaration ? 10 : 0;
    for (size_t i = 0; i < sizeof last / sizeof *last; i++)
        if (strcmp(d->what, last[i]) == 0) cost += 20 + (unsigned)i;
    const indexed_file *f = &x->files[file];
    if (f->n_chunks != 0 && x->chunks[f->first_chunk].chunk.flags & CHUNK_TEST) cost += 1000;
    return cost;
}

static int by_cost(const void *a, const void *b)
{
    const candidate *p = a, *q = b;
    if (p->cost != q->cost) return p->cost < q->cost ? -1 : 1;
    if (p->file != q->file) return p->file < q->file ? -1 : 1;
    return p->definition < q->definition ? -1 : p->definition > q->definition;
}

static bool same_thing(const code_definition *a, const code_definition *b)
{
    return (a->from <= b->from && b->to <= a->to) || (b->from <= a->from && a->to <= b->to);
}

/* Do the path's folders and file name, without its ending, hold this module name? */
static bool is_in_module(const char *path, const char *module, size_t n)
{
    for (const char *p = path; *p != '\0';) {
        const size_t part = strcspn(p, "/.");
        if (part == n && memcmp(p, module, n) == 0) return true;
        p += part;
        p += *p != '\0';
    }
    return false;
}

/*
 * May `scope::name` mean this definition of another parent? What stands in front of "::" is a type, a module
 * or a namespace, never an object: `Vec::new` is not the tree's Config::new. A module has no definition where
 * a file is one (Rust), and without a grammar an impl gives its functions no parent.
 */
static bool fits_scope(
    const code_definition *d, bool is_lexical, const char *path, const char *scope, size_t n)
{
    static const char *const here[] = {"crate", "self", "super", "Self"};
    for (size_t i = 0; i < sizeof here / sizeof *here; i++)
        if (strlen(here[i]) == n && memcmp(here[i], scope, n) == 0) return true;
    if (d->parent[0] != '\0') return false;
    if (is_lexical) return true;
    const bool type = d->name[0] >= 'A' && d->name[0] <= 'Z'; /* may be exported again elsewhere */
    return type ? !(scope[0] >= 'A' && scope[0] <= 'Z') : is_in_module(path, scope, n);
}

/* The last part of "Cls::method(" is symbol[at, *end); at == *end: there is none. */
static size_t find_name(const char *symbol, size_t *end)
{
    size_t n = strlen(symbol);
    while (n > 0 && strchr(" ()*&;,", symbol[n - 1]) != NULL) n--;
    size_t at = n;
    while (at > 0 && strchr(".:#>/", symbol[at - 1]) == NULL) at--;
    *end = n;
    return at;
}

uint32_t code_index_define(const code_index *x, const char *symbol, code_place **ret)
{
    *ret = NULL;
    size_t n;
    const size_t at = find_name(symbol, &n);
    if (at == n) return 0;
    size_t parent_to = at;
    while (parent_to > 0 && strchr(".:#>/-)(*&", symbol[parent_to - 1]) != NULL) parent_to--;
    size_t parent_from = parent_to;
    while (parent_from > 0 && strchr(".:#>/(*&", symbol[parent_from - 1]) == NULL) parent_from--;
    const size_t n_parent = parent_to - parent_from;
    const bool scoped = n_parent != 0 && at - parent_to == 2 && memcmp(symbol + parent_to, "::", 2) == 0;

    LOCK(x);
    const uint32_t id = code_strings_find(&x->identifiers, symbol + at, n - at);
    const indexed_name *w = id != UINT32_MAX ? &x->names[id] : NULL;
    candidate *found = w != NULL && w->n_refs != 0 ? base_xcalloc(w->n_refs, sizeof *found) : NULL;
    uint32_t n_found = 0, n_right = 0;
    for (uint32_t i = 0; found != NULL && i < w->n_refs; i++) {
        const uint32_t file = (uint32_t)(w->refs[i] >> 32), definition = (uint32_t)w->refs[i];
        const code_definition *d = &x->files[file].file->definitions[definition];
        candidate c = {file, definition, cost_of(x, file, definition)};
        if (n_parent != 0) {
            if (strncmp(d->parent, symbol + parent_from, n_parent) == 0 && d->parent[n_parent] == '\0')
                n_right++;
            else if (scoped && !fits_scope(d, x->files[file].file->language == NULL, x->paths.strings[file],
                                   symbol + parent_from, n_parent))
                continue;
            else
                c.cost += 100000;
        }
        found[n_found++] = c;
    }
    if (found != NULL) qsort(found, n_found, sizeof *found, by_cost);
    /* "Cls.method" of an unknown Cls still finds method: a receiver is often an object's name. */
    if (n_right != 0) n_found = n_right;
    code_place *places = n_found != 0 ? base_xcalloc(n_found, sizeof *places) : NULL;
    uint32_t n_places = 0;
    for (uint32_t i = 0; i < n_found; i++) {
        const code_definition *d = &x->files[found[i].file].file->definitions[found[i].definition];
        bool again = false; /* typedef struct x {...} x */
        for (uint32_t j = 0; d->body_to != 0 && j < i && !again; j++)
            again = found[j].file == found[i].file &&
                    same_thing(d, &x->files[found[j].file].file->definitions[found[j].definition]);
        if (again) continue;
        places[n_places++] = (code_place){.path = base_xstrdup(x->paths.strings[found[i].file]),
            .line = d->line,
            .line_end = d->line_end,
            .from = d->from,
            .to = d->to,
            .what = base_xstrdup(d->what),
            .parent = base_xstrdup(d->parent),
            .is_declaration = d->is_declaration};
    }
    UNLOCK(x);
    free(found);
    *ret = places;
    return n_places;
}

bool code_index_is_sole(const code_index *x, const char *symbol, const char *what)
{
    code_place *places;
    const uint32_t n = code_index_define(x, symbol, &places);
    uint32_t n_real = 0;
    bool fits = true;
    for (uint32_t i = 0; i < n; i++) {
        if (places[i].is_declaration || strcmp(places[i].what, "section") == 0) continue;
        n_real++;
        fits = what == NULL || strcmp(places[i].what, what) == 0;
    }
    code_places_free(places, n);
    return n_real == 1 && fits;
}

bool code_index_is_defined(const code_index *x, const char *symbol)
{
    code_place *places;
    const uint32_t n = code_index_define(x, symbol, &places);
    code_places_free(places, n);
    return n != 0;
}

char **code_index_symbols(const code_index *x, uint32_t cap)
{
    static const char *const small[] = {"constant", "variable", "field", "section"};
    LOCK(x);
    char **symbols =
        base_xcalloc((size_t)(cap < x->identifiers.n ? cap : x->identifiers.n) + 1, sizeof *symbols);
    uint32_t n = 0;
    for (uint32_t i = 0; i < x->identifiers.n && n < cap; i++) {
        bool wanted = false;
        for (uint32_t r = 0; r < x->names[i].n_refs && !wanted; r++) {
            const uint64_t ref = x->names[i].refs[r];
            const char *what = x->files[ref >> 32].file->definitions[(uint32_t)ref].what;
            wanted = true;
            for (size_t k = 0; k < sizeof small / sizeof *small; k++)
                wanted = wanted && strcmp(what, small[k]) != 0;
        }
        if (wanted) symbols[n++] = base_xstrdup(x->identifiers.strings[i]);
    }
    UNLOCK(x);
    return symbols;
}

char **code_index_names(const code_index *x, uint32_t cap)
{
    char **names = NULL;
    size_t n = 0, cap_names = 0;
    LOCK(x);
    for (uint32_t i = 0; i < x->identifiers.n && n <= cap; i++)
        for (uint32_t r = 0; r < x->names[i].n_refs && n <= cap; r++) {
            const uint64_t ref = x->names[i].refs[r];
            const code_definition *d = &x->files[ref >> 32].file->definitions[(uint32_t)ref];
            if (strcmp(d->what, "section") == 0) continue;
            base_grow(&names, &cap_names, n + 3, sizeof *names);
            if (r == 0) names[n++] = base_xstrdup(d->name);
            if (d->parent[0] == '\0') continue;
            base_buf whole = {0};
            base_buf_printf(&whole, "%s.%s", d->parent, d->name);
            names[n++] = base_buf_take(&whole);
        }
    UNLOCK(x);
    base_grow(&names, &cap_names, n + 1, sizeof *names);
    names[n] = NULL;
    for (size_t i = 0; n > cap && i < n; i++) {
        free(names[i]);
        names[i] = NULL;
    }
    return names;
}

void code_places_free(code_place *places, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        free(places[i].path);
        free(places[i].what);
        free(places[i].parent);
    }
    free(places);
}

typedef struct caller_list {
    code_caller *callers;
    uint32_t n, most; /* n: all that were found, most: those that are kept */
    size_t cap;
} caller_list;

static void add_caller(caller_list *l, const char *path, const indexed_file *f, const code_call *call)
{
    if (l->n++ >= l->most) return;
    base_buf name = {0};
    if (call->definition != UINT32_MAX) {
        const code_definition *d = &f->file->definitions[call->definition];
        base_buf_printf(&name, "%s%s%s", d->parent, d->parent[0] != '\0' ? "." : "", d->name);
    }
    uint32_t line = 1;
    for (const char *at = f->text; (at = memchr(at, '\n', (size_t)(f->text + call->from - at))) != NULL; at++)
        line++;
    base_grow(&l->callers, &l->cap, l->n, sizeof *l->callers);
    l->callers[l->n - 1] = (code_caller){
        .path = base_xstrdup(path), .name = base_xstrdup(name.len != 0 ? name.data : ""), .line = line};
    base_buf_free(&name);
}

/* Of each definition the first call, and all that stand outside as one. */
static void add_callers(caller_list *l, const char *path, const indexed_file *f, const char *name, size_t n)
{
    uint8_t *seen = base_xcalloc((size_t)f->file->n_definitions + 1, 1);
    for (uint32_t i = 0; i < f->n_calls; i++) {
        const code_call *call = &f->calls[i];
        const uint32_t by = call->definition != UINT32_MAX ? call->definition : f->file->n_definitions;
        if (call->n != n || memcmp(f->text + call->from, name, n) != 0 || seen[by]) continue;
        seen[by] = 1;
        add_caller(l, path, f, call);
    }
    free(seen);
}

uint32_t code_index_callers(const code_index *x, const char *symbol, uint32_t most, code_caller **ret)
{
    size_t n;
    const size_t at = find_name(symbol, &n);
    caller_list list = {.most = most};
    LOCK(x);
    for (int tests = 0; tests < 2 && at < n; tests++)
        for (uint32_t i = 0; i < x->paths.n; i++)
            if (x->files[i].n_calls != 0 && code_path_is_test(x->paths.strings[i]) == (tests != 0))
                add_callers(&list, x->paths.strings[i], &x->files[i], symbol + at, n - at);
    UNLOCK(x);
    *ret = list.callers;
    return list.n;
}

void code_callers_free(code_caller *callers, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        free(callers[i].path);
        free(callers[i].name);
    }
    free(callers);
}

bool code_index_mentions(const code_index *x, const char *word)
{
    LOCK(x);
    const uint32_t id = code_strings_find(&x->identifiers, word, strlen(word));
    const bool found = id != UINT32_MAX && x->names[id].n_files != 0;
    UNLOCK(x);
    return found;
}

char *code_index_path(const code_index *x, const char *path)
{
    while (strncmp(path, "./", 2) == 0) path += 2;
    const size_t n = strlen(path);
    if (n == 0) return NULL;
    uint32_t found = UINT32_MAX;
    bool several = false;
    LOCK(x);
    const uint32_t exact = code_strings_find(&x->paths, path, n);
    if (exact != UINT32_MAX && x->files[exact].present) found = exact;
    const bool is_exact = found != UINT32_MAX;
    for (uint32_t i = 0; !is_exact && i < x->paths.n; i++) {
        const size_t len = strlen(x->paths.strings[i]);
        if (!x->files[i].present || len <= n || x->paths.strings[i][len - n - 1] != '/') continue;
        if (strcmp(x->paths.strings[i] + len - n, path) != 0) continue;
        if (found != UINT32_MAX) several = true;
        found = i;
    }
    char *full = found != UINT32_MAX && !several ? base_xstrdup(x->paths.strings[found]) : NULL;
    UNLOCK(x);
    return full;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

char **code_index_paths(const code_index *x)
{
    LOCK(x);
    char **paths = base_xcalloc((size_t)x->paths.n + 1, sizeof *paths);
    size_t n = 0;
    for (uint32_t i = 0; i < x->paths.n; i++)
        if (x->files[i].present) paths[n++] = base_xstrdup(x->paths.strings[i]);
    UNLOCK(x);
    qsort(paths, n, sizeof *paths, by_text);
    return paths;
}

void code_index_paths_free(char **paths)
{
    for (char **p = paths; p != NULL && *p != NULL; p++) free(*p);
    free(paths);
}
