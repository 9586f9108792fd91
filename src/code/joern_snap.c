/*
 * Laying an export over a file: points become anchors and statements of ours, edges between expressions edges
 * between statements.
 */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "code/joern_state.h"

enum { LEAST_PERCENT = 90 };

typedef struct place {
    uint32_t byte, index;
} place;

typedef struct snap {
    const code_joern *j;
    const char *text;
    uint32_t n;
    const code_file *f;
    code_graph *x;
    uint32_t *lines, n_lines; /* bytes where they begin */
    uint8_t *mine;            /* [n_nodes] of this file */
    place *anchors;           /* where they begin, ascending; an anchor may be there twice */
    uint8_t *taken;           /* [f->n_anchors] */
    place *statements;        /* ascending */
    uint32_t n_anchors, n_statements;
} snap;

/* --- which file ----------------------------------------------------------------------------------------- */

/* How many last parts of two paths are equal; 0 unless one of them is used up by that. */
static uint32_t equal_parts(const char *a, const char *b)
{
    size_t n = strlen(a), m = strlen(b);
    uint32_t parts = 0;
    while (n != 0 && m != 0 && a[n - 1] == b[m - 1]) {
        n--;
        m--;
        parts += n == 0 || m == 0 || a[n] == '/';
    }
    const bool is_end = (n == 0 && (m == 0 || b[m - 1] == '/')) || (m == 0 && a[n - 1] == '/');
    return is_end ? parts : 0;
}

static const char *find_path(const code_joern *j, const char *path)
{
    const char *best = NULL;
    uint32_t most = 0;
    while (strncmp(path, "./", 2) == 0) path += 2;
    for (size_t i = 0; i < j->n_nodes; i++) {
        const uint32_t parts = j->nodes[i].path != NULL ? equal_parts(j->nodes[i].path, path) : 0;
        if (parts <= most) continue;
        most = parts;
        best = j->nodes[i].path;
    }
    return best;
}

/* --- points --------------------------------------------------------------------------------------------- */

static void find_lines(snap *s)
{
    size_t cap = 0;
    for (uint32_t at = 0; at <= s->n;) {
        base_grow(&s->lines, &cap, (size_t)s->n_lines + 1, sizeof *s->lines);
        s->lines[s->n_lines++] = at;
        const char *end = at < s->n ? memchr(s->text + at, '\n', s->n - at) : NULL;
        if (end == NULL) break;
        at = (uint32_t)(end - s->text) + 1;
    }
}

static uint32_t line_end(const snap *s, uint32_t line)
{
    return line + 1 < s->n_lines ? s->lines[line + 1] : s->n;
}

/*
 * The byte of a line and column; JOERN_NONE: the file has no such line. Without a column: where the line's
 * text begins.
 */
static uint32_t byte_of(const snap *s, const joern_node *node)
{
    if (node->line == 0 || node->line > s->n_lines) return JOERN_NONE;
    uint32_t at = s->lines[node->line - 1];
    const uint32_t end = line_end(s, node->line - 1);
    if (node->column == JOERN_NONE) {
        while (at < end && (s->text[at] == ' ' || s->text[at] == '\t')) at++;
        return at;
    }
    uint32_t units = node->column >= s->j->first_column ? node->column - s->j->first_column : 0;
    while (units != 0 && at < end) {
        const unsigned char c = (unsigned char)s->text[at];
        const uint32_t bytes = c >= 0xf0   ? 4
                               : c >= 0xe0 ? 3
                               : c >= 0xc0 ? 2
                                           : 1,
                       in_utf16 = bytes == 4 ? 2 : 1;
        at = bytes <= end - at ? at + bytes : end;
        units = units > in_utf16 ? units - in_utf16 : 0;
    }
    return at;
}

static uint32_t line_of(const snap *s, uint32_t byte)
{
    uint32_t low = 0, high = s->n_lines;
    while (high - low > 1) {
        const uint32_t middle = low + (high - low) / 2;
        if (s->lines[middle] <= byte)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* --- anchors -------------------------------------------------------------------------------------------- */

static int by_byte(const void *a, const void *b)
{
    const place *x = a, *y = b;
    if (x->byte != y->byte) return x->byte < y->byte ? -1 : 1;
    return (x->index > y->index) - (x->index < y->index);
}

/* Where anchors begin: as a whole, and their cores. */
static void sort_anchors(snap *s)
{
    s->anchors = base_xmalloc((2 * (size_t)s->f->n_anchors + 1) * sizeof *s->anchors);
    for (uint32_t i = 0; i < s->f->n_anchors; i++) {
        s->anchors[s->n_anchors++] = (place){s->f->anchors[i].full_from, i};
        if (s->f->anchors[i].core_from != s->f->anchors[i].full_from)
            s->anchors[s->n_anchors++] = (place){s->f->anchors[i].core_from, i};
    }
    qsort(s->anchors, s->n_anchors, sizeof *s->anchors, by_byte);
    s->taken = base_xcalloc((size_t)s->f->n_anchors + 1, 1);
}

static uint32_t first_from(const place *places, uint32_t n, uint32_t byte)
{
    uint32_t low = 0, high = n;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (places[middle].byte < byte)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/*
 * The nearest anchor of the kind in the point's line that no other point has; exact: only one that begins
 * there.
 */
static bool take_anchor(snap *s, uint32_t at, code_kind kind, bool exact)
{
    const uint32_t line = line_of(s, at), from = exact ? at : s->lines[line],
                   to = exact ? at + 1 : line_end(s, line);
    uint32_t best = UINT32_MAX, nearest = UINT32_MAX;
    for (uint32_t i = first_from(s->anchors, s->n_anchors, from); i < s->n_anchors && s->anchors[i].byte < to;
         i++) {
        const place *p = &s->anchors[i];
        const uint32_t far = p->byte > at ? p->byte - at : at - p->byte;
        if (s->f->anchors[p->index].kind != kind || s->taken[p->index] || far >= nearest) continue;
        nearest = far;
        best = p->index;
    }
    if (best == UINT32_MAX) return false;
    s->taken[best] = 1;
    return true;
}

/* Points that hit exactly go first, so that no neighbour takes their anchor. */
static void snap_points(snap *s, code_joern_report *ret)
{
    uint8_t *done = base_xcalloc(s->j->n_nodes + 1, 1);
    for (int exact = 1; exact >= 0; exact--)
        for (size_t i = 0; i < s->j->n_nodes; i++) {
            const joern_node *node = &s->j->nodes[i];
            const uint32_t at = s->mine[i] && node->kind >= 0 && !done[i] ? byte_of(s, node) : JOERN_NONE;
            if (at != JOERN_NONE && take_anchor(s, at, (code_kind)node->kind, exact)) {
                done[i] = 1;
                ret->found[node->kind]++;
            }
            if (exact && s->mine[i] && node->kind >= 0) ret->points[node->kind]++;
        }
    free(done);
}

/* --- edges ---------------------------------------------------------------------------------------------- */

static void sort_statements(snap *s)
{
    s->statements = base_xmalloc(((size_t)s->x->n_statements + 1) * sizeof *s->statements);
    for (uint32_t i = 0; i < s->x->n_statements; i++)
        if (s->x->statements[i].kind != CODE_STATEMENT_EXIT)
            s->statements[s->n_statements++] = (place){s->x->statements[i].from, i};
    qsort(s->statements, s->n_statements, sizeof *s->statements, by_byte);
}

/*
 * The innermost statement that holds the byte: of those, the one that begins last. They nest a few deep, in
 * lambdas.
 */
static uint32_t statement_at(const snap *s, uint32_t byte)
{
    enum { MOST_STEPS = 4096 };
    if (byte == JOERN_NONE) return JOERN_NONE;
    uint32_t i = first_from(s->statements, s->n_statements, byte + 1);
    for (uint32_t steps = 0; i-- > 0 && steps < MOST_STEPS; steps++)
        if (s->x->statements[s->statements[i].index].to > byte) return s->statements[i].index;
    return JOERN_NONE;
}

static uint32_t statement_of(const snap *s, uint32_t node)
{
    const joern_node *one = &s->j->nodes[node];
    if (one->label != JOERN_METHOD_RETURN) return statement_at(s, byte_of(s, one));
    const uint32_t entry =
        one->method != JOERN_NONE ? statement_at(s, byte_of(s, &s->j->nodes[one->method])) : JOERN_NONE;
    if (entry == JOERN_NONE) return JOERN_NONE;
    return s->x->functions[s->x->statements[entry].function].first + 1; /* ENTRY, EXIT */
}

static int by_place(const void *a, const void *b)
{
    const code_edge *x = a, *y = b;
    if (x->kind != y->kind) return x->kind < y->kind ? -1 : 1;
    if (x->from != y->from) return x->from < y->from ? -1 : 1;
    if (x->to != y->to) return x->to < y->to ? -1 : 1;
    return (x->name > y->name) - (x->name < y->name);
}

static int by_call(const void *a, const void *b)
{
    const code_joern_call *x = a, *y = b;
    return x->at != y->at ? (x->at < y->at ? -1 : 1) : strcmp(x->name, y->name);
}

/* The graph's edges from the export's: inside one function, between two statements, each once. */
static void take_edges(snap *s, code_joern_report *ret)
{
    static const code_edge_kind kinds[] = {
        [JOERN_FLOW] = CODE_EDGE_FLOW, [JOERN_DATA] = CODE_EDGE_DATA, [JOERN_CONTROL] = CODE_EDGE_CONTROL};
    code_edge *edges = NULL;
    size_t cap = 0, n = 0, cap_calls = 0;
    for (size_t i = 0; i < s->j->n_edges; i++) {
        const joern_edge *e = &s->j->edges[i];
        if (!s->mine[e->from]) continue;
        const joern_node *to = &s->j->nodes[e->to];
        if (e->kind == JOERN_CALL) {
            const uint32_t at = byte_of(s, &s->j->nodes[e->from]);
            if (s->j->nodes[e->from].kind != CODE_CALL || at == JOERN_NONE || to->label != JOERN_METHOD)
                continue;
            base_grow(&ret->calls, &cap_calls, (size_t)ret->n_calls + 1, sizeof *ret->calls);
            ret->calls[ret->n_calls++] = (code_joern_call){.at = at, .name = to->name, .path = to->path};
            continue;
        }
        /* A method's own edges of data say that nothing was defined before; they are no pair. */
        if (e->kind == JOERN_DATA && s->j->nodes[e->from].label == JOERN_METHOD) continue;
        const uint32_t from_at = statement_of(s, e->from), to_at = statement_of(s, e->to);
        if (from_at == JOERN_NONE || to_at == JOERN_NONE) {
            ret->lost++;
            continue;
        }
        if (from_at == to_at || s->x->statements[from_at].function != s->x->statements[to_at].function)
            continue;
        const uint32_t name = e->kind == JOERN_DATA ? byte_of(s, to) : 0;
        base_grow(&edges, &cap, n + 1, sizeof *edges);
        edges[n++] = (code_edge){.from = from_at,
            .to = to_at,
            .kind = (uint8_t)kinds[e->kind],
            .name = name != JOERN_NONE ? name : 0};
    }
    if (n != 0) qsort(edges, n, sizeof *edges, by_place);
    size_t kept = 0;
    for (size_t i = 0; i < n; i++)
        if (kept == 0 || edges[i].kind != edges[kept - 1].kind || edges[i].from != edges[kept - 1].from ||
            edges[i].to != edges[kept - 1].to)
            edges[kept++] = edges[i];
    if (ret->n_calls != 0) qsort(ret->calls, ret->n_calls, sizeof *ret->calls, by_call);
    free(s->x->edges);
    s->x->edges = edges;
    s->x->n_edges = (uint32_t)kept;
}

static void count_edges(code_graph *x)
{
    for (uint32_t i = 0; i < x->n_functions; i++)
        memset(x->functions[i].edges, 0, sizeof x->functions[i].edges);
    for (uint32_t i = 0; i < x->n_statements; i++) {
        memset(x->statements[i].in, 0, sizeof x->statements[i].in);
        memset(x->statements[i].out, 0, sizeof x->statements[i].out);
    }
    for (uint32_t i = 0; i < x->n_edges; i++) {
        const code_edge *e = &x->edges[i];
        code_statement *from = &x->statements[e->from], *to = &x->statements[e->to];
        from->out[e->kind] += from->out[e->kind] != UINT16_MAX;
        to->in[e->kind] += to->in[e->kind] != UINT16_MAX;
        x->functions[from->function].edges[e->kind]++;
    }
}

/* --- all of it ------------------------------------------------------------------------------------------ */

static int check_fit(const code_joern_report *report, const char *path, base_err *err)
{
    uint64_t points = 0, found = 0;
    for (int k = 0; k < CODE_N_KINDS; k++) {
        points += report->points[k];
        found += report->found[k];
    }
    if (found * 100 >= points * LEAST_PERCENT) return 0;
    return base_fail(err, BASE_E_FORMAT,
        "of the export's %llu places in %s only %llu are places of "
        "the file as it is now; export it again from this version",
        (unsigned long long)points, path, (unsigned long long)found);
}

int code_joern_apply(const code_joern *j, const char *path, const char *text, size_t n, const code_file *f,
    code_graph *x, code_joern_report *ret, base_err *err)
{
    snap s = {.j = j, .text = text, .n = (uint32_t)n, .f = f, .x = x};
    const char *file = find_path(j, path);
    *ret = (code_joern_report){.lost = 0};
    if (n >= UINT32_MAX) return base_fail(err, BASE_E_LIMIT, "%s is too large", path);
    if (file == NULL)
        return base_fail(err, BASE_E_NOT_FOUND, "the export has no method in a file that ends as %s", path);
    s.mine = base_xcalloc(j->n_nodes + 1, 1);
    for (size_t i = 0; i < j->n_nodes; i++) {
        const uint32_t method = j->nodes[i].method;
        s.mine[i] = method != JOERN_NONE && strcmp(j->nodes[method].path, file) == 0;
    }
    find_lines(&s);
    sort_anchors(&s);
    snap_points(&s, ret);
    const int rc = check_fit(ret, path, err);
    if (rc == 0) {
        sort_statements(&s);
        take_edges(&s, ret);
        count_edges(x);
    }
    free(s.mine);
    free(s.lines);
    free(s.anchors);
    free(s.taken);
    free(s.statements);
    return rc;
}
