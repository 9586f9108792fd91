/*
 * Questions about a parsed file: which definition a name means, what a byte lies in, which spans touch a
 * range. Pure functions of a code_file; the rewrite tool, the agent and the cache ask.
 */
#include "code/code.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/mem.h"

/* What a person means first when several things share a name. */
static unsigned rank_of_what(const char *what)
{
    static const char *const order[] = {"function", "method", "class", "struct", "interface", "enum", "union",
        "type", "typedef", "module", "macro", "constant", "variable", "field", "section"};
    unsigned i = 0;
    while (i < sizeof order / sizeof *order && strcmp(order[i], what) != 0) i++;
    return i;
}

typedef struct candidate {
    uint32_t index;
    unsigned cost; /* less is better */
} candidate;

static int by_cost(const void *x, const void *y)
{
    const candidate *a = x, *b = y;
    if (a->cost != b->cost) return a->cost < b->cost ? -1 : 1;
    return a->index < b->index ? -1 : a->index > b->index;
}

static bool equals(const char *s, const char *word, size_t n, bool any_case)
{
    return (any_case ? strncasecmp(s, word, n) : strncmp(s, word, n)) == 0 && s[n] == '\0';
}

/* The last and the last but one component of "ns::Cls.method()". */
static void split(const char *name, const char **last, size_t *n_last, const char **parent, size_t *n_parent)
{
    size_t n = strlen(name);
    while (n > 0 && memchr(" ()*&;", name[n - 1], 6) != NULL) n--;
    size_t at = n;
    while (at > 0 && memchr(".:#>/", name[at - 1], 5) == NULL) at--;
    *last = name + at;
    *n_last = n - at;
    while (at > 0 && memchr(".:#>/-)(*&", name[at - 1], 10) != NULL) at--;
    size_t start = at;
    while (start > 0 && memchr(".:#>/(*&", name[start - 1], 8) == NULL) start--;
    *parent = name + start;
    *n_parent = at - start;
}

static size_t collect(const code_file *f, const char *name, bool any_case, candidate *out)
{
    const char *last, *parent;
    size_t n_last, n_parent, n = 0;
    split(name, &last, &n_last, &parent, &n_parent);
    if (n_last == 0) return 0;
    for (uint32_t i = 0; i < f->n_definitions; i++) {
        const code_definition *d = &f->definitions[i];
        /* A section's name is a sentence: it fits as a whole only. */
        const bool whole = equals(d->name, name, strlen(name), any_case);
        if (!whole && (strcmp(d->what, "section") == 0 || !equals(d->name, last, n_last, any_case))) continue;
        unsigned cost = rank_of_what(d->what);
        if (d->is_declaration) cost += 100;
        if (n_parent != 0 && !whole && !equals(d->parent, parent, n_parent, any_case)) cost += 1000;
        out[n++] = (candidate){i, cost};
    }
    return n;
}

uint32_t code_find_definition(const code_file *f, const char *name, uint32_t *ret, uint32_t cap)
{
    if (f->n_definitions == 0 || name == NULL) return 0;
    candidate *found = base_xcalloc(f->n_definitions, sizeof *found);
    size_t n = collect(f, name, false, found);
    if (n == 0) n = collect(f, name, true, found);
    qsort(found, n, sizeof *found, by_cost);
    /*
     * The right parent rules the others out; so does a definition its declarations, a function a variable of
     * that name.
     */
    size_t keep = n;
    for (size_t i = 1; i < keep; i++)
        if (found[i].cost / 1000 != found[0].cost / 1000 || found[i].cost / 100 != found[0].cost / 100 ||
            (found[i].cost % 100 >= 10 && found[0].cost % 100 < 10))
            keep = i;
    /* `typedef struct x {...} x;` is one thing. */
    if (keep == 2) {
        const code_definition *a = &f->definitions[found[0].index], *b = &f->definitions[found[1].index];
        const bool nested = (a->from <= b->from && b->to <= a->to) || (b->from <= a->from && a->to <= b->to);
        if (nested && strcmp(b->what, "typedef") == 0) {
            if (b->from <= a->from && a->to <= b->to)
                found[0] = found[1]; /* the wider one is what gets replaced */
            keep = 1;
        }
    }
    for (size_t i = 0; i < keep && i < cap; i++) ret[i] = found[i].index;
    free(found);
    return (uint32_t)keep;
}

uint32_t code_definition_at(const code_file *f, uint32_t byte)
{
    uint32_t best = UINT32_MAX;
    for (uint32_t i = 0; i < f->n_definitions && f->definitions[i].from <= byte; i++)
        if (byte < f->definitions[i].to && rank_of_what(f->definitions[i].what) <= rank_of_what("macro"))
            best = i;
    return best;
}
