/*
 * The repository map: definitions ranked by personalised PageRank over the call graph. An edge goes from the
 * definition that calls to each definition of the called name: those of the same file when there are any, a
 * tenth of the weight when more than five share the name, more for names that are long and telling, less for
 * private ones (weights after Aider's repository map). The walk restarts in files in view and at names of the
 * request.
 */
#include "code/map.h"

#include <stdlib.h>
#include <string.h>

#include "code/index_state.h"

enum { ROUNDS = 30, MANY = 5, MAX_NODES = 1 << 21, LINE_BYTES = 110 };
static const double damping = .85, in_view = 50, named = 30, in_test = .1;

typedef struct node {
    uint32_t file, definition;
    double rank, next, restart, out; /* out: sum of the weights of its edges */
} node;

typedef struct edge {
    uint32_t from, to;
    float weight;
} edge;

typedef struct map {
    const code_index *x;
    node *nodes;
    edge *edges;
    uint32_t *first; /* by path id: the file's first node; n_nodes of it follow by definition */
    uint32_t n, n_edges;
    size_t cap_edges;
} map;

static bool is_shown(const code_definition *d)
{
    static const char *const hidden[] = {"field", "variable", "constant", "macro", "section"};
    if (d->is_declaration) return false;
    for (size_t i = 0; i < sizeof hidden / sizeof *hidden; i++)
        if (strcmp(d->what, hidden[i]) == 0) return false;
    return true;
}

static bool is_test(const code_index *x, uint32_t file)
{
    const indexed_file *f = &x->files[file];
    return f->n_chunks != 0 && (x->chunks[f->first_chunk].chunk.flags & CHUNK_TEST);
}

static bool has_word(const char *words, const char *name)
{
    const size_t n = strlen(name);
    for (const char *p = words; n >= 3 && (p = strstr(p, name)) != NULL; p++) {
        size_t pos = (size_t)(p - words), from, to;
        if (p != words) pos--;
        if (code_next_identifier(words, strlen(words), &pos, &from, &to) && to - from == n &&
            from == (size_t)(p - words))
            return true;
    }
    return false;
}

static bool holds_path(const char *const *paths, const char *path)
{
    for (; paths != NULL && *paths != NULL; paths++)
        if (strcmp(*paths, path) == 0) return true;
    return false;
}

/* One node a definition, so that file and definition number give the node. */
static void make_nodes(map *m, const code_map_options *o)
{
    const code_index *x = m->x;
    size_t total = 0;
    m->first = base_xmalloc(((size_t)x->paths.n + 1) * sizeof *m->first);
    for (uint32_t f = 0; f < x->paths.n; f++) {
        m->first[f] = (uint32_t)total;
        if (x->files[f].file != NULL && total + x->files[f].file->n_definitions <= MAX_NODES)
            total += x->files[f].file->n_definitions;
    }
    m->first[x->paths.n] = m->n = (uint32_t)total;
    m->nodes = base_xcalloc(total + 1, sizeof *m->nodes);
    double sum = 0;
    for (uint32_t f = 0; f < x->paths.n; f++) {
        const bool viewed = holds_path(o->paths, x->paths.strings[f]);
        for (uint32_t i = m->first[f]; i < m->first[f + 1]; i++) {
            node *a = &m->nodes[i];
            *a = (node){.file = f, .definition = i - m->first[f], .restart = 1};
            const code_definition *d = &x->files[f].file->definitions[a->definition];
            if (!is_shown(d)) a->restart = 0;
            if (viewed) a->restart *= in_view;
            if (o->words != NULL && has_word(o->words, d->name)) a->restart *= named;
            sum += a->restart;
        }
    }
    for (uint32_t i = 0; i < m->n; i++) m->nodes[i].rank = m->nodes[i].restart /= sum > 0 ? sum : 1;
}

static double weight_of(const char *name, size_t n, uint32_t definers)
{
    double w = definers > MANY ? .1 : 1;
    bool telling = n >= 8 && memchr(name, '_', n) != NULL;
    for (size_t i = 1; i < n && n >= 8 && !telling; i++)
        telling = name[i] >= 'A' && name[i] <= 'Z' && name[i - 1] >= 'a' && name[i - 1] <= 'z';
    if (telling) w *= 10;
    if (name[0] == '_') w *= .1;
    return w / definers;
}

static void add_edges(map *m, uint32_t from, uint32_t file, const char *name, size_t n)
{
    const code_index *x = m->x;
    const uint32_t id = code_strings_find(&x->identifiers, name, n);
    if (id == UINT32_MAX) return;
    const indexed_name *w = &x->names[id];
    uint32_t here = 0, all = 0;
    for (uint32_t r = 0; r < w->n_refs; r++) {
        const uint32_t f = (uint32_t)(w->refs[r] >> 32);
        if (!is_shown(&x->files[f].file->definitions[(uint32_t)w->refs[r]])) continue;
        all++;
        here += f == file;
    }
    if (all == 0) return;
    const double weight = weight_of(name, n, here != 0 ? here : all);
    for (uint32_t r = 0; r < w->n_refs; r++) {
        const uint32_t f = (uint32_t)(w->refs[r] >> 32), d = (uint32_t)w->refs[r];
        const uint32_t to = m->first[f] + d;
        if ((here != 0 && f != file) || !is_shown(&x->files[f].file->definitions[d]) || to == from ||
            to >= m->first[f + 1])
            continue;
        base_grow(&m->edges, &m->cap_edges, (size_t)m->n_edges + 1, sizeof *m->edges);
        m->edges[m->n_edges++] = (edge){from, to, (float)weight};
        m->nodes[from].out += weight;
    }
}

static void make_edges(map *m)
{
    const code_index *x = m->x;
    for (uint32_t f = 0; f < x->paths.n; f++) {
        const indexed_file *file = &x->files[f];
        for (uint32_t c = 0; c < file->n_calls && m->first[f + 1] > m->first[f]; c++) {
            const code_call *call = &file->calls[c];
            if (call->definition == UINT32_MAX || m->n_edges >= 1u << 24) continue;
            add_edges(m, m->first[f] + call->definition, f, file->text + call->from, call->n);
        }
    }
}

static void iterate(map *m)
{
    for (int round = 0; round < ROUNDS; round++) {
        double lost = 0;
        for (uint32_t i = 0; i < m->n; i++) {
            m->nodes[i].next = 0;
            if (m->nodes[i].out <= 0) lost += m->nodes[i].rank;
        }
        for (uint32_t e = 0; e < m->n_edges; e++) {
            const node *from = &m->nodes[m->edges[e].from];
            m->nodes[m->edges[e].to].next += from->rank * m->edges[e].weight / from->out;
        }
        for (uint32_t i = 0; i < m->n; i++) {
            node *a = &m->nodes[i];
            a->rank = (1 - damping) * a->restart + damping * (a->next + lost * a->restart);
        }
    }
}

static int by_rank(const void *a, const void *b)
{
    const node *x = a, *y = b;
    if (x->rank != y->rank) return x->rank > y->rank ? -1 : 1;
    if (x->file != y->file) return x->file < y->file ? -1 : 1;
    return x->definition < y->definition ? -1 : x->definition > y->definition;
}

static int by_place(const void *a, const void *b)
{
    const node *x = a, *y = b;
    if (x->next != y->next) return x->next > y->next ? -1 : 1; /* the best rank of its file */
    if (x->file != y->file) return x->file < y->file ? -1 : 1;
    return x->definition < y->definition ? -1 : x->definition > y->definition;
}

static void put_line(const code_index *x, const node *a, base_buf *out)
{
    const indexed_file *f = &x->files[a->file];
    const code_definition *d = &f->file->definitions[a->definition];
    base_buf_printf(out, "  %u: ", d->line);
    if (d->parent[0] != '\0' && strcmp(d->what, "method") == 0) base_buf_printf(out, "%s: ", d->parent);
    code_signature_line(d, f->text, f->n, LINE_BYTES, out);
    base_buf_putc(out, '\n');
}

/* Takes definitions by rank while they fit; then by file, files by their best one. */
static uint32_t write_map(map *m, size_t budget, base_buf *out)
{
    const code_index *x = m->x;
    qsort(m->nodes, m->n, sizeof *m->nodes, by_rank);
    double *best = base_xcalloc((size_t)x->paths.n + 1, sizeof *best);
    uint32_t taken = 0;
    size_t used = 0;
    base_buf line = {0};
    for (uint32_t i = 0; i < m->n && used < budget; i++) {
        const node a = m->nodes[i];
        if (a.rank <= 0 || !is_shown(&x->files[a.file].file->definitions[a.definition])) continue;
        base_buf_clear(&line);
        put_line(x, &a, &line);
        const size_t size = line.len + (best[a.file] > 0 ? 0 : strlen(x->paths.strings[a.file]) + 2);
        if (used + size > budget) break;
        used += size;
        if (best[a.file] <= 0) best[a.file] = a.rank;
        m->nodes[taken] = a;
        m->nodes[taken++].next = best[a.file];
    }
    qsort(m->nodes, taken, sizeof *m->nodes, by_place);
    for (uint32_t i = 0; i < taken; i++) {
        if (i == 0 || m->nodes[i].file != m->nodes[i - 1].file)
            base_buf_printf(out, "%s:\n", x->paths.strings[m->nodes[i].file]);
        put_line(x, &m->nodes[i], out);
    }
    base_buf_free(&line);
    free(best);
    return taken;
}

uint32_t code_index_map(const code_index *x, const code_map_options *options, base_buf *out)
{
    map m = {.x = x};
    pthread_mutex_lock(&((code_index *)x)->lock);
    make_nodes(&m, options);
    make_edges(&m);
    iterate(&m);
    for (uint32_t i = 0; i < m.n; i++)
        if (is_test(x, m.nodes[i].file)) m.nodes[i].rank *= in_test;
    const uint32_t n = write_map(&m, options->budget_bytes, out);
    pthread_mutex_unlock(&((code_index *)x)->lock);
    free(m.nodes);
    free(m.edges);
    free(m.first);
    return n;
}
