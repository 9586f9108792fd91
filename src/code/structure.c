/* Anchors and graph -> pieces; see structure.h. */
#include "code/structure.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

enum { MOST_SYMBOLS = 64, LEAST_SYMBOL = 3 };

typedef struct symbol {
    const char *name;
    size_t n;
} symbol;

typedef struct symbols {
    symbol of[MOST_SYMBOLS];
    uint32_t n;
} symbols;

static const uint16_t mark_of[CODE_N_KINDS] = {
    [CODE_CALL] = CODE_MARK_CALL,
    [CODE_CONTROL] = CODE_MARK_CONTROL,
    [CODE_RETURN] = CODE_MARK_RETURN,
    [CODE_ASSIGN] = CODE_MARK_ASSIGN,
    [CODE_SIGNATURE] = CODE_MARK_SIGNATURE,
};

/* Is it written as no English word is: with _, a digit, a capital inside, or as f()? */
static bool looks_like_code(const char *text, size_t n, size_t from, size_t to)
{
    if (to < n && text[to] == '(') return true;
    for (size_t i = from; i < to; i++)
        if (text[i] == '_' || (text[i] >= '0' && text[i] <= '9') ||
            (i > from && text[i] >= 'A' && text[i] <= 'Z' && text[i - 1] >= 'a' && text[i - 1] <= 'z'))
            return true;
    return false;
}

static bool is_defined(const code_file *f, const char *name, size_t n)
{
    for (uint32_t i = 0; i < f->n_definitions; i++)
        if (!strncmp(f->definitions[i].name, name, n) && !f->definitions[i].name[n]) return true;
    return false;
}

static bool is_symbol(const symbols *s, const char *name, size_t n)
{
    for (uint32_t i = 0; i < s->n; i++)
        if (s->of[i].n == n && !memcmp(s->of[i].name, name, n)) return true;
    return false;
}

/* Names in a request: what stands in backticks, what is written like code, and what this file defines. */
static void find_symbols(const code_file *f, const char *request, symbols *ret)
{
    const size_t n = strlen(request);
    size_t pos = 0, from, to, seen = 0;
    bool is_quoted = false;
    ret->n = 0;
    while (ret->n < MOST_SYMBOLS && code_next_identifier(request, n, &pos, &from, &to)) {
        for (; seen < from; seen++) is_quoted ^= request[seen] == '`';
        const char *name = request + from;
        if (to - from < LEAST_SYMBOL || code_is_keyword(name, to - from) || is_symbol(ret, name, to - from))
            continue;
        if (is_quoted || looks_like_code(request, n, from, to) || is_defined(f, name, to - from))
            ret->of[ret->n++] = (symbol){name, to - from};
    }
}

static bool holds_symbol(const symbols *s, const char *text, uint32_t from, uint32_t to)
{
    size_t pos = 0, a, b;
    while (s->n && code_next_identifier(text + from, to - from, &pos, &a, &b))
        if (is_symbol(s, text + from + a, b - a)) return true;
    return false;
}

/* The last anchor whose core begins before `at`; n_anchors: none. */
static uint32_t anchor_before(const code_file *f, uint32_t at)
{
    uint32_t low = 0, high = f->n_anchors;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (f->anchors[middle].core_from < at)
            low = middle + 1;
        else
            high = middle;
    }
    return low ? low - 1 : f->n_anchors;
}

static uint16_t add_saturating(uint16_t a, uint16_t b)
{
    return (uint16_t)(a > UINT16_MAX - b ? UINT16_MAX : a + b);
}

typedef struct edges {
    uint16_t flow, dependence;
    bool is_used; /* an end of a def-use pair */
} edges;

/* Each statement's edges go to one anchor: the last that begins in it, else the one before it. */
static edges *count_edges(const code_file *f, const code_graph *g, const char *text)
{
    edges *of = base_xcalloc((size_t)f->n_anchors + 1, sizeof *of);
    if (!g) return of;
    for (uint32_t i = 0; i < g->n_statements; i++) {
        const code_statement *s = &g->statements[i];
        const uint32_t a = anchor_before(f, s->to > s->from ? s->to : s->from + 1);
        if (a == f->n_anchors) continue;
        of[a].flow = add_saturating(of[a].flow, s->out[CODE_EDGE_FLOW]);
        of[a].dependence = add_saturating(of[a].dependence, s->out[CODE_EDGE_DATA]);
    }
    code_feature *features = code_graph_features(f, g, text);
    for (uint32_t i = 0; features && i < f->n_anchors; i++)
        of[i].is_used = features[i].data_in || features[i].data_out;
    free(features);
    return of;
}

/* Kinds of all anchors whose core lies in the extent of the i-th. */
static uint16_t marks_within(const code_file *f, uint32_t i)
{
    uint16_t marks = 0;
    const uint32_t to = f->anchors[i].full_to;
    for (uint32_t k = i; k < f->n_anchors && f->anchors[k].core_from < to; k++)
        if (f->anchors[k].core_to <= to) marks |= mark_of[f->anchors[k].kind];
    /* The signature of a nested function is no part of the statement that holds it. */
    return (uint16_t)(f->anchors[i].kind == CODE_SIGNATURE ? marks : marks & ~CODE_MARK_SIGNATURE);
}

uint32_t code_structure(const code_file *f, const code_graph *g, const char *text, size_t n, uint32_t from,
    uint32_t to, const char *request, code_piece **ret)
{
    symbols names = {.n = 0};
    if (request) find_symbols(f, request, &names);
    edges *of = count_edges(f, g, text);
    code_piece *pieces = base_xcalloc(2 * (size_t)f->n_anchors + 1, sizeof *pieces);
    uint32_t count = 0;
    for (uint32_t i = 0; i < f->n_anchors; i++) {
        const code_anchor *a = &f->anchors[i];
        if (a->core_from < from || a->core_from >= to || a->full_to > n || (unsigned)a->kind >= CODE_N_KINDS)
            continue;
        const uint16_t shared =
            (uint16_t)((of[i].is_used ? CODE_MARK_DEFUSE : 0) |
                       (holds_symbol(&names, text, a->full_from, a->full_to) ? CODE_MARK_SYMBOL : 0));
        const uint32_t core_to = a->core_to < to ? a->core_to : to,
                       full_to = a->full_to < to ? a->full_to : to;
        pieces[count++] = (code_piece){.from = a->core_from,
            .to = core_to,
            .kind = a->kind,
            .marks = (uint16_t)(mark_of[a->kind] | CODE_MARK_CORE | shared),
            .n_flow = of[i].flow,
            .n_dependence = of[i].dependence};
        if (a->full_from < a->core_from || full_to > core_to)
            pieces[count++] = (code_piece){.from = a->full_from > from ? a->full_from : from,
                .to = full_to,
                .kind = a->kind,
                .marks = (uint16_t)(marks_within(f, i) | shared)};
    }
    free(of);
    *ret = pieces;
    return count;
}
