/* Traits that a description states, held against the code (contract: traits.h). */
#include "code/traits.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/path.h"

/* --- what a definition shows ------------------------------------------------------------------------------ */

/* A definition in its file. */
typedef struct shown {
    const code_traits *t;
    const indexed_file *f;
    const code_definition *d;
} shown;

static size_t head_end(const code_definition *d)
{
    return d->body_to && d->body_from > d->from ? d->body_from : d->to;
}

/* A word of its head, in front of its name or, as "static" of "impl X for Y", nowhere. */
static bool is_marked(const shown *s, const char *word)
{
    return code_has_identifier(s->f->text + s->d->from, s->d->name_from - s->d->from, word);
}

static bool is_language(const shown *s, const char *const *names)
{
    while (*names && strcmp(s->f->file->language ? s->f->file->language : "", *names) != 0) names++;
    return *names != NULL;
}

static bool is_function(const shown *s)
{
    return !strcmp(s->d->what, "function") || !strcmp(s->d->what, "method");
}

static bool is_recursive(const shown *s)
{
    const indexed_file *f = s->f;
    bool is = false;
    for (uint32_t i = 0; i < f->n_calls && !is; i++) {
        const code_call *c = &f->calls[i];
        is = c->from >= s->d->body_from && c->from < s->d->body_to && c->n == strlen(s->d->name) &&
             !memcmp(f->text + c->from, s->d->name, c->n);
    }
    return is;
}

static bool is_unused(const shown *s)
{
    const uint32_t id = code_strings_find(&s->t->x->identifiers, s->d->name, strlen(s->d->name));
    return id != UINT32_MAX && !s->t->is_used[id];
}

static bool is_static(const shown *s)
{
    return is_marked(s, "static") || is_marked(s, "staticmethod");
}

static bool is_public(const shown *s)
{
    static const char *const c[] = {"c", NULL}, *const go[] = {"go", NULL}, *const rust[] = {"rust", NULL},
                             *const marked[] = {"java", "cpp", "c_sharp", "php", "kotlin", NULL};
    const char *name = s->d->name;
    if (is_language(s, c)) return !is_marked(s, "static");
    if (is_language(s, go)) return isupper((unsigned char)*name) != 0;
    if (is_language(s, rust)) return is_marked(s, "pub");
    if (is_language(s, marked)) return !is_marked(s, "private") && !is_marked(s, "protected");
    return *name != '_' && *name != '#' && !is_marked(s, "private") &&
           !(s->d->name_from && s->f->text[s->d->name_from - 1] == '#');
}

static bool is_private(const shown *s)
{
    return !is_public(s) && strncmp(s->d->name, "__init__", 8) != 0;
}

static bool is_async(const shown *s)
{
    return is_marked(s, "async");
}

static bool is_camel(const shown *s)
{
    const char *p = s->d->name;
    bool has_small = false;
    for (; *p; p++) {
        if (has_small && isupper((unsigned char)*p)) return true;
        has_small |= islower((unsigned char)*p) != 0;
    }
    return false;
}

static bool has_underscore(const shown *s)
{
    const char *name = s->d->name + strspn(s->d->name, "_");
    return strchr(name, '_') != NULL;
}

static bool is_variadic(const shown *s)
{
    const char *head = s->f->text + s->d->name_from;
    const size_t n = head_end(s->d) - s->d->name_from;
    return memmem(head, n, "...", 3) || memmem(head, n, "*args", 5);
}

static bool is_test(const shown *s)
{
    const char *name = s->d->name, *parent = s->d->parent;
    const char *path = s->t->x->paths.strings[s->f - s->t->x->files];
    return code_path_is_test(path) || !strncasecmp(name, "test", 4) || !strncasecmp(parent, "test", 4) ||
           !strncasecmp(name, "bench", 5);
}

static bool is_constructor(const shown *s)
{
    const char *name = s->d->name, *head = s->f->text + s->d->name_from;
    return !strcmp(name, s->d->parent) || !strcmp(name, "__init__") || !strcmp(name, "constructor") ||
           !strncasecmp(name, "new", 3) ||
           code_has_identifier(head, head_end(s->d) - s->d->name_from, "Self");
}

static bool is_member(const shown *s)
{
    return *s->d->parent != 0 || !strcmp(s->d->what, "method");
}

static bool is_free(const shown *s)
{
    return !is_member(s);
}

/* --- what is said ----------------------------------------------------------------------------------------- */

/* Words in small letters, all else one blank. */
static const struct trait {
    bool (*shows)(const shown *s);
    bool of_functions; /* of nothing else */
    const char *const *said;
} traits[] = {{is_recursive, true,
                  (const char *const[]){" recursive ", " recursing ", " recurses ", " calls itself ",
                      " calling itself ", NULL}},
    {is_unused, true,
        (const char *const[]){" nobody calls ", " nothing calls ", " no one calls ", " nobody uses ",
            " nothing uses ", " no one uses ", " nobody is calling ", " never called ", " never used ",
            " isn t used ", " isn t called ", " not called ", " not used ", " unused ", " no callers ",
            " without callers ", " without a caller ", " no longer used ", " no longer called ",
            " used nowhere ", " called nowhere ", " called by nobody ", " called by nothing ",
            " used by nobody ", " used by nothing ", " has no caller ", NULL}},
    {is_static, false, (const char *const[]){" static ", NULL}},
    {is_private, false, (const char *const[]){" private ", NULL}},
    {is_public, false, (const char *const[]){" public ", " exported ", NULL}},
    {is_async, true, (const char *const[]){" async ", NULL}},
    {is_camel, false, (const char *const[]){" in camel case ", " in camelcase ", " camel cased ", NULL}},
    {has_underscore, false,
        (const char *const[]){" underscore in its name ", " underscores in its name ",
            " underscore in the name ", " underscores in the name ", " has an underscore ", " in snake case ",
            NULL}},
    {is_variadic, true, (const char *const[]){" variadic ", NULL}},
    {is_test, false,
        (const char *const[]){" the test that ", " the test which ", " the test of ", " the test for ",
            " test case that ", " unit test ", " benchmark ", " test helper ", NULL}},
    {is_constructor, true, (const char *const[]){" constructor ", NULL}},
    {is_member, false, (const char *const[]){" the method ", " method which ", " method that ", NULL}},
    {is_free, true,
        (const char *const[]){" free function ", " package function ", " module level ", " top level ",
            " toplevel ", " package level ", NULL}}};

#define N_TRAITS (sizeof traits / sizeof *traits)
_Static_assert(N_TRAITS <= CODE_MOST_TRAITS, "said has too little room");

static char *flatten(const char *s)
{
    base_buf out = {0};
    base_buf_putc(&out, ' ');
    for (; *s; s++) {
        if (isalnum((unsigned char)*s))
            base_buf_putc(&out, (char)tolower((unsigned char)*s));
        else if (out.data[out.len - 1] != ' ')
            base_buf_putc(&out, ' ');
    }
    if (out.data[out.len - 1] != ' ') base_buf_putc(&out, ' ');
    return base_buf_take(&out);
}

static bool is_type(const code_index *x, uint32_t id)
{
    static const char *const types[] = {"class", "struct", "interface", "enum", "type"};
    const indexed_name *name = &x->names[id];
    bool is = false;
    for (uint32_t i = 0; i < name->n_refs && !is; i++) {
        const indexed_file *f = &x->files[name->refs[i] >> 32];
        const code_definition *d = &f->file->definitions[(uint32_t)name->refs[i]];
        for (size_t k = 0; k < sizeof types / sizeof *types; k++) is |= !strcmp(d->what, types[k]);
    }
    return is;
}

/* The word that ends in front of byte `at`, as bytes from *from to the end returned; 0: none. */
static size_t word_before(const char *s, size_t at, size_t *from)
{
    while (at && !code_is_name_byte(s[at - 1])) {
        if (strchr(".,;:!?", s[at - 1])) return 0;
        at--;
    }
    *from = at;
    while (*from && code_is_name_byte(s[*from - 1])) (*from)--;
    return at;
}

static bool is_any_of(const char *s, size_t from, size_t to, const char *const *words)
{
    while (*words && (strlen(*words) != to - from || strncasecmp(s + from, *words, to - from) != 0)) words++;
    return to && *words;
}

/* "Of X", "on the class X", "in X": and not "belongs in X", where something goes. *ret_goes: it does. */
static bool is_inside(const char *s, size_t at, bool *ret_goes)
{
    static const char *const inside[] = {"of", "in", "on", "inside", "within", NULL};
    static const char *const fillers[] = {
        "the", "our", "class", "struct", "type", "module", "package", "file", "folder", NULL};
    static const char *const goals[] = {"live", "lives", "belong", "belongs", "go", "goes", "put", "it", "be",
        "place", "them", "stand", "sit", "better", NULL};
    size_t from = at, to = word_before(s, at, &from);
    while (is_any_of(s, from, to, fillers)) to = word_before(s, from, &from);
    if (!is_any_of(s, from, to, inside)) return false;
    to = word_before(s, from, &from);
    *ret_goes = is_any_of(s, from, to, goals);
    return true;
}

/* "X's method", "the X method that", and not "the defaults of X's arguments". */
static bool is_followed_by_member(const char *s, size_t to)
{
    static const char *const members[] = {"method", "methods", "field", "member", "property", "constructor",
        "attribute", "accessor", "getter", "setter", "private", "static", NULL};
    size_t pos = to + (s[to] == '\'' && s[to + 1] == 's' ? 2 : 0), from, end;
    const size_t behind = pos + 1;
    return s[pos] == ' ' && code_next_identifier(s, strlen(s), &pos, &from, &end) && from == behind &&
           is_any_of(s, from, end, members);
}

static void read_owner(code_traits *t, const char *s)
{
    for (size_t pos = 0, from, to, n = strlen(s);
         !t->owner && code_next_identifier(s, n, &pos, &from, &to);) {
        const uint32_t id = code_strings_find(&t->x->identifiers, s + from, to - from);
        bool goes = false;
        if (id != UINT32_MAX && is_type(t->x, id) && s[to] != '.' &&
            ((s[to] != '\'' && is_inside(s, from, &goes) && !goes) || is_followed_by_member(s, to)))
            t->owner = t->x->identifiers.strings[id];
    }
}

/* "utils" is a file of that name, whatever its ending, or a folder; "match/debug" a folder below another. */
static bool is_at(const char *path, const char *place)
{
    const size_t n = strlen(place);
    for (const char *p = path; *p; p = strchr(p, '/') ? strchr(p, '/') + 1 : "")
        if (!strncasecmp(p, place, n) && (p[n] == '/' || p[n] == '.')) return true;
    return false;
}

static void read_place(code_traits *t, const char *s)
{
    for (size_t pos = 0, from, to, n = strlen(s);
         !t->place && code_next_identifier(s, n, &pos, &from, &to);) {
        bool goes = false, is_there = false;
        while (s[to] == '/' && code_is_name_byte(s[to + 1]))
            for (to++; code_is_name_byte(s[to]); to++)
                ;
        pos = to;
        if (to - from < 3 || (s[to] == '.' && code_is_name_byte(s[to + 1])) || !is_inside(s, from, &goes) ||
            goes)
            continue;
        char *place = base_xstrndup(s + from, to - from);
        for (uint32_t i = 0; i < t->x->paths.n && !is_there; i++)
            is_there = t->x->files[i].present && t->x->files[i].text && is_at(t->x->paths.strings[i], place);
        if (is_there)
            t->place = place;
        else
            free(place);
    }
}

/* Calls by code outside of tests, and not by the called itself. */
static bool *find_used(const code_index *x)
{
    bool *used = base_xcalloc((size_t)x->identifiers.n + 1, sizeof *used);
    for (uint32_t k = 0; k < x->paths.n; k++) {
        const indexed_file *f = &x->files[k];
        if (!f->present || !f->text || code_path_is_test(x->paths.strings[k])) continue;
        for (uint32_t i = 0; i < f->n_calls; i++) {
            const code_call *c = &f->calls[i];
            const char *by = c->definition == UINT32_MAX ? "" : f->file->definitions[c->definition].name;
            const uint32_t id = code_strings_find(&x->identifiers, f->text + c->from, c->n);
            const bool is_own = strlen(by) == c->n && !memcmp(by, f->text + c->from, c->n);
            if (id != UINT32_MAX && !is_own) used[id] = true;
        }
    }
    return used;
}

void code_traits_read(const code_index *x, const char *request, code_traits *ret)
{
    char *flat = flatten(request);
    bool asks_used = false;
    *ret = (code_traits){.x = x};
    for (size_t i = 0; i < N_TRAITS; i++) {
        for (const char *const *p = traits[i].said; *p; p++) ret->said[i] |= strstr(flat, *p) != NULL;
        asks_used |= ret->said[i] && traits[i].shows == is_unused;
    }
    if (asks_used) ret->is_used = find_used(x);
    read_owner(ret, request);
    read_place(ret, request);
    free(flat);
}

uint32_t code_traits_lacks(const code_traits *t, uint32_t file, const code_definition *d)
{
    const shown s = {.t = t, .f = &t->x->files[file], .d = d};
    uint32_t n = 0;
    for (size_t i = 0; i < N_TRAITS; i++)
        n += t->said[i] && !((is_function(&s) || !traits[i].of_functions) && traits[i].shows(&s));
    n += t->owner && strcmp(d->parent, t->owner) != 0;
    n += t->place && !is_at(t->x->paths.strings[file], t->place);
    return n;
}

void code_traits_free(code_traits *t)
{
    free(t->place);
    free(t->is_used);
    *t = (code_traits){0};
}
