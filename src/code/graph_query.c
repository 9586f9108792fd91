/* Questions about a graph: features of anchors, who calls whom. Pure functions. */
#include "code/graph.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/mem.h"
#include "code/internal.h"

void code_graph_clear(code_graph *x)
{
    free(x->functions);
    free(x->statements);
    free(x->edges);
    *x = (code_graph){0};
}

void code_graph_free(code_graph *x)
{
    if (x == NULL) return;
    code_graph_clear(x);
    free(x);
}

bool code_call_name(const code_anchor *a, const char *text, uint32_t *from, uint32_t *to)
{
    size_t pos = a->core_from, s, e;
    bool found = false;
    while (a->kind == CODE_CALL && code_next_identifier(text, a->core_to, &pos, &s, &e)) {
        *from = (uint32_t)s;
        *to = (uint32_t)e;
        found = true;
    }
    return found;
}

typedef struct place {
    uint32_t from, to, statement;
} place;

static int by_from(const void *a, const void *b)
{
    const place *x = a, *y = b;
    if (x->from != y->from) return x->from < y->from ? -1 : 1;
    return x->to > y->to ? -1 : x->to < y->to; /* the wider one first */
}

/* The innermost statement at core_from, else the first that begins inside the core. */
static uint32_t statement_of(const code_anchor *a, const place *places, uint32_t n)
{
    uint32_t low = 0, high = n;
    while (low < high) { /* the first behind core_from */
        const uint32_t mid = low + (high - low) / 2;
        if (places[mid].from <= a->core_from)
            low = mid + 1;
        else
            high = mid;
    }
    for (uint32_t i = low; i-- > 0 && low - i < 64;)
        if (places[i].to > a->core_from) return places[i].statement;
    return low < n && places[low].from < a->core_to ? places[low].statement : UINT32_MAX;
}

/* How often each name of a definition is defined and called in this file. */
typedef struct tally {
    uint64_t hash;
    uint32_t definitions, calls;
} tally;

static int by_hash(const void *a, const void *b)
{
    const tally *x = a, *y = b;
    return x->hash < y->hash ? -1 : x->hash > y->hash;
}

static tally *find_tally(tally *all, uint32_t n, const char *name, size_t n_name)
{
    const tally key = {.hash = base_hash64(name, n_name, 0)};
    return n != 0 ? bsearch(&key, all, n, sizeof *all, by_hash) : NULL;
}

static tally *tally_names(const code_file *f, uint32_t *ret_n)
{
    tally *all = base_xcalloc((size_t)f->n_definitions + 1, sizeof *all);
    uint32_t n = 0;
    for (uint32_t d = 0; d < f->n_definitions; d++)
        all[d] = (tally){base_hash64(f->definitions[d].name, strlen(f->definitions[d].name), 0), 1, 0};
    qsort(all, f->n_definitions, sizeof *all, by_hash);
    for (uint32_t d = 0; d < f->n_definitions; d++)
        if (n != 0 && all[n - 1].hash == all[d].hash)
            all[n - 1].definitions++;
        else
            all[n++] = all[d];
    *ret_n = n;
    return all;
}

static uint16_t clip(uint32_t n)
{
    return n > UINT16_MAX ? UINT16_MAX : (uint16_t)n;
}

code_feature *code_graph_features(const code_file *f, const code_graph *x, const char *text)
{
    code_feature *features = base_xcalloc((size_t)f->n_anchors + 1, sizeof *features);
    place *places = base_xmalloc(((size_t)x->n_statements + 1) * sizeof *places);
    uint32_t n = 0, n_names;
    tally *names = tally_names(f, &n_names);
    for (uint32_t s = 0; s < x->n_statements; s++)
        if (x->statements[s].to > x->statements[s].from)
            places[n++] = (place){x->statements[s].from, x->statements[s].to, s};
    qsort(places, n, sizeof *places, by_from);
    for (uint32_t i = 0; i < f->n_anchors; i++) {
        const code_anchor *a = &f->anchors[i];
        code_feature *out = &features[i];
        *out = (code_feature){.kind = a->kind, .statement = statement_of(a, places, n)};
        if (out->statement != UINT32_MAX) {
            const code_statement *s = &x->statements[out->statement];
            out->flow_out = s->out[CODE_EDGE_FLOW];
            out->data_in = s->in[CODE_EDGE_DATA];
            out->data_out = s->out[CODE_EDGE_DATA];
            out->control_out = s->out[CODE_EDGE_CONTROL];
        }
        uint32_t from, to;
        if (!code_call_name(a, text, &from, &to)) continue;
        tally *name = find_tally(names, n_names, text + from, to - from);
        if (name == NULL) continue;
        name->calls++;
        out->call_degree = clip(name->definitions);
    }
    for (uint32_t i = 0; i < f->n_anchors; i++) {
        const code_anchor *a = &f->anchors[i];
        if (a->kind != CODE_SIGNATURE || a->definition >= f->n_definitions) continue;
        const char *s = f->definitions[a->definition].name;
        const tally *name = find_tally(names, n_names, s, strlen(s));
        if (name != NULL) features[i].call_degree = clip(name->calls);
    }
    free(names);
    free(places);
    return features;
}
