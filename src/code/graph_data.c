/*
 * Names of statements and what reaches what. A name is defined by what stands left of an assignment, behind
 * "for", in a pattern, among parameters; everything else that is a variable's name is a use, and so is the
 * base of a.b = 1 or a[i] = 1 (no aliases). Reaching definitions by bitsets over a function's definitions,
 * forward until nothing changes; a function with more than MAX_DEFINITIONS is left without data edges, as
 * Joern does. Captured variables of nested functions are ignored.
 */
#include "code/graph_work.h"

#ifdef KVIST_HAVE_TREE_SITTER

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

enum {
    MAX_DEFINITIONS = 4000,
    MAX_WORDS = 1 << 20,
    MAX_PASSES = 64,
    MAX_TARGETS = 64,
    MAX_PAIRS = 1 << 18,
    MAX_EDGES = 1 << 22
};

void code_work_edge(code_work *w, uint32_t from, uint32_t to, code_edge_kind kind, uint32_t name)
{
    code_graph *x = w->x;
    if (x->n_edges == MAX_EDGES) return;
    base_grow(&x->edges, &w->cap_edges, (size_t)x->n_edges + 1, sizeof *x->edges);
    x->edges[x->n_edges++] = (code_edge){from, to, (uint8_t)kind, name};
    x->functions[x->statements[from].function].edges[kind]++;
}

/* ---- names ---- */

static uint32_t number_of(code_names *s, const char *text, size_t n)
{
    const uint64_t hash = base_hash_keyed(text, n);
    if (s->n * 2 >= s->n_table) {
        free(s->table);
        s->n_table = s->n_table != 0 ? s->n_table * 2 : 256;
        s->table = base_xcalloc(s->n_table, sizeof *s->table);
        for (uint32_t i = 0; i < s->n; i++) {
            uint32_t at = (uint32_t)s->hashes[i] & (s->n_table - 1);
            while (s->table[at] != 0) at = (at + 1) & (s->n_table - 1);
            s->table[at] = i + 1;
        }
    }
    uint32_t at = (uint32_t)hash & (s->n_table - 1);
    for (; s->table[at] != 0; at = (at + 1) & (s->n_table - 1))
        if (s->hashes[s->table[at] - 1] == hash) return s->table[at] - 1;
    base_grow(&s->hashes, &s->cap, (size_t)s->n + 1, sizeof *s->hashes);
    s->hashes[s->n] = hash;
    s->table[at] = ++s->n;
    return s->n - 1;
}

static void forget(code_names *s)
{
    for (uint32_t i = 0; i < s->n; i++) {
        uint32_t at = (uint32_t)s->hashes[i] & (s->n_table - 1);
        while (s->table[at] != 0) {
            s->table[at] = 0;
            at = (at + 1) & (s->n_table - 1);
        }
    }
    s->n = 0;
}

static bool is_variable(const code_tree *t, uint32_t i)
{
    const code_node *a = &t->nodes[i];
    if (!code_tree_is_name(t, i)) return false;
    const uint8_t what = t->g->is_name[a->symbol];
    if (what == CODE_NAME_ONLY) return false;
    const uint32_t p = a->parent;
    if (what == CODE_NAME_OF_VARIABLE)
        return p != UINT32_MAX && strcmp(code_tree_type(t, p), "variable_name") == 0;
    if (a->field == FIELD_ATTRIBUTE || a->field == FIELD_FIELD || a->field == FIELD_PROPERTY ||
        a->field == FIELD_METHOD || a->field == FIELD_LABEL)
        return false;
    return !(a->field == FIELD_NAME && p != UINT32_MAX && (code_tree_flow(t, p) & FLOW_MEMBER));
}

static bool is_target(uint8_t field)
{
    static const uint8_t fields[] = {FIELD_LEFT, FIELD_NAME, FIELD_PATTERN, FIELD_DECLARATOR, FIELD_ALIAS,
        FIELD_ARGUMENT, FIELD_VARIABLE, FIELD_PARAMETER};
    return field != FIELD_NONE && memchr(fields, field, sizeof fields) != NULL;
}

/* `x += 1`, `x++`: what stands between both sides begins with neither = nor : (a type, or :=). */
static bool is_compound(const code_tree *t, uint32_t i)
{
    uint32_t left = code_tree_child(t, i, FIELD_LEFT), right = code_tree_child(t, i, FIELD_RIGHT);
    if (right == UINT32_MAX) return code_tree_child(t, i, FIELD_ARGUMENT) != UINT32_MAX;
    if (left == UINT32_MAX) return false;
    const char *p = t->text + t->nodes[left].to, *end = t->text + t->nodes[right].from;
    while (p < end && (*p == ' ' || *p == '\t' || *p == '\n' || *p == '\r')) p++;
    return p < end && *p != '=' && *p != ':' && *p != 'i' && *p != 'o'; /* "in", "of": loops */
}

static void add_use(code_work *w, uint32_t statement, uint32_t i, bool defines)
{
    const code_node *a = &w->t->nodes[i];
    const uint32_t name = number_of(&w->names, w->t->text + a->from, a->to - a->from);
    base_grow(&w->uses, &w->cap_uses, (size_t)w->n_uses + 1, sizeof *w->uses);
    w->uses[w->n_uses++] = (code_use){statement, name, a->from, defines};
}

typedef struct target {
    uint32_t end, blocked; /* nodes before `blocked` are reached through, not defined */
    bool also_used;
} target;

void code_work_collect(code_work *w, uint32_t statement, uint32_t i, bool parameters)
{
    const code_tree *t = w->t;
    const code_statement s = w->x->statements[statement];
    target stack[MAX_TARGETS];
    uint32_t depth = 0;
    if (parameters) stack[depth++] = (target){t->nodes[i].sub_end, 0, false};
    for (uint32_t c = i, end = t->nodes[i].sub_end, next; c < end; c = next) {
        const code_node *a = &t->nodes[c];
        const code_node_row *row = code_tree_row(t, c);
        const code_flow flow = code_tree_flow(t, c);
        next = c + 1;
        if (a->from >= s.to) break;
        while (depth != 0 && stack[depth - 1].end <= c) depth--;
        target *top = depth != 0 ? &stack[depth - 1] : NULL;
        if (c != i) {
            const bool own = (row->flags & (NODE_LITERAL | NODE_BLOCK)) || code_flow_is_compound(flow);
            if (own || a->to <= s.from) { /* nested bodies have statements of their own */
                next = a->sub_end;
                continue;
            }
        }
        if (top != NULL && ((flow & FLOW_REACHES) || a->field == FIELD_VALUE || a->field == FIELD_TYPE) &&
            a->sub_end > top->blocked)
            top->blocked = a->sub_end;
        if (row->what != NULL && !(row->flags & (NODE_DECLARES | NODE_VARIABLE | NODE_IF_FUNCTION))) {
            /* A nested definition: its name is defined here, its inside is its own. */
            const uint32_t name = code_tree_child(t, c, FIELD_NAME);
            if (c != i || !parameters) {
                if (name != UINT32_MAX && is_variable(t, name)) add_use(w, statement, name, true);
                next = a->sub_end;
                continue;
            }
        }
        if (is_variable(t, c)) {
            const bool defines = top != NULL && c >= top->blocked && a->to <= s.to;
            if (!defines || top->also_used) add_use(w, statement, c, false);
            if (defines) add_use(w, statement, c, true);
            continue;
        }
        const bool binds = row->kind == CODE_ASSIGN || (flow & FLOW_BINDS) || (row->flags & NODE_DECLARES);
        if (!binds || depth + 1 >= MAX_TARGETS) continue;
        const bool also = row->kind == CODE_ASSIGN && is_compound(t, c);
        /* Targets of one node do not overlap and ascend: the last one is pushed first. */
        uint32_t found[16], n = 0;
        for (uint32_t k = c + 1; k < a->sub_end && n < 16; k = t->nodes[k].sub_end)
            if (is_target(t->nodes[k].field)) found[n++] = k;
        if (n == 0 && (flow & FLOW_BINDS) && !(flow & FLOW_KINDS)) { /* no field says which: the last child */
            const uint32_t last = code_tree_first(t, c, true);
            if (last != UINT32_MAX) found[n++] = last;
        }
        while (n-- > 0 && depth < MAX_TARGETS) {
            /* A name counts as a definition only inside a target: `blocked` starts at the target itself. */
            stack[depth++] = (target){t->nodes[found[n]].sub_end, found[n], also};
        }
    }
}

/* ---- reaching definitions ---- */

typedef struct reach {
    uint32_t n, words; /* statements of the function, words of a set */
    uint64_t *in, *out;
    uint32_t *def_use;   /* definition number -> index into uses */
    uint32_t *next_same; /* the next definition of the same name; UINT32_MAX: none */
    uint32_t *first_of;  /* by name */
    uint32_t n_defs;
} reach;

static int by_target(const void *a, const void *b)
{
    const code_edge *x = a, *y = b;
    if (x->to != y->to) return x->to < y->to ? -1 : 1;
    return x->from < y->from ? -1 : x->from > y->from;
}

/* in = union of the predecessors' out; out = in without the names defined here, with them. */
static void solve(code_work *w, const code_function *f, reach *r, const code_edge *flow, uint32_t n_flow)
{
    uint64_t *set = base_xcalloc(r->words, sizeof *set);
    bool changed = true;
    for (int pass = 0; changed && pass < MAX_PASSES; pass++) {
        changed = false;
        uint32_t e = 0, d = 0;
        for (uint32_t s = 0; s < r->n; s++) {
            uint64_t *in = r->in + (size_t)s * r->words, *out = r->out + (size_t)s * r->words;
            for (; e < n_flow && flow[e].to == f->first + s; e++) {
                const uint64_t *from = r->out + (size_t)(flow[e].from - f->first) * r->words;
                for (uint32_t k = 0; k < r->words; k++) in[k] |= from[k];
            }
            memcpy(set, in, r->words * sizeof *set);
            const uint32_t first = d;
            for (; d < r->n_defs && w->uses[r->def_use[d]].statement == f->first + s; d++)
                for (uint32_t k = r->first_of[w->uses[r->def_use[d]].name]; k != UINT32_MAX;
                     k = r->next_same[k])
                    set[k / 64] &= ~((uint64_t)1 << (k % 64));
            for (uint32_t k = first; k < d; k++) set[k / 64] |= (uint64_t)1 << (k % 64);
            if (memcmp(set, out, r->words * sizeof *set) != 0) {
                memcpy(out, set, r->words * sizeof *set);
                changed = true;
            }
        }
    }
    free(set);
}

static void add_pairs(code_work *w, const code_function *f, const reach *r)
{
    uint32_t *last_use = base_xmalloc(((size_t)w->names.n + 1) * sizeof *last_use), n_pairs = 0;
    memset(last_use, 0xff, ((size_t)w->names.n + 1) * sizeof *last_use);
    for (uint32_t u = 0; u < w->n_uses; u++) {
        const code_use *use = &w->uses[u];
        if (use->defines || last_use[use->name] == use->statement) continue;
        last_use[use->name] = use->statement;
        const uint64_t *in = r->in + (size_t)(use->statement - f->first) * r->words;
        for (uint32_t d = r->first_of[use->name]; d != UINT32_MAX; d = r->next_same[d])
            if ((in[d / 64] >> (d % 64) & 1) && n_pairs++ < MAX_PAIRS)
                code_work_edge(w, w->uses[r->def_use[d]].statement, use->statement, CODE_EDGE_DATA, use->at);
    }
    free(last_use);
}

void code_work_reach(code_work *w, code_function *f)
{
    reach r = {.n = f->n};
    for (uint32_t u = 0; u < w->n_uses; u++) r.n_defs += w->uses[u].defines;
    r.words = (r.n_defs + 63) / 64;
    f->is_cut = r.n_defs > MAX_DEFINITIONS || (uint64_t)r.words * r.n > MAX_WORDS;
    if (r.n_defs != 0 && !f->is_cut) {
        r.in = base_xcalloc((size_t)r.words * r.n, sizeof *r.in);
        r.out = base_xcalloc((size_t)r.words * r.n, sizeof *r.out);
        r.def_use = base_xmalloc(r.n_defs * sizeof *r.def_use);
        r.next_same = base_xmalloc(r.n_defs * sizeof *r.next_same);
        r.first_of = base_xmalloc(((size_t)w->names.n + 1) * sizeof *r.first_of);
        memset(r.first_of, 0xff, ((size_t)w->names.n + 1) * sizeof *r.first_of);
        uint32_t d = 0;
        for (uint32_t u = 0; u < w->n_uses; u++)
            if (w->uses[u].defines) r.def_use[d++] = u;
        for (d = r.n_defs; d-- > 0;) {
            uint32_t *first = &r.first_of[w->uses[r.def_use[d]].name];
            r.next_same[d] = *first;
            *first = d;
        }
        /* The flow edges of this function stand at the end of the list. */
        uint32_t n_flow = 0;
        code_edge *flow = base_xmalloc(((size_t)f->edges[CODE_EDGE_FLOW] + 1) * sizeof *flow);
        for (uint32_t e = w->x->n_edges; e-- > 0 && n_flow < f->edges[CODE_EDGE_FLOW];)
            if (w->x->edges[e].kind == CODE_EDGE_FLOW) flow[n_flow++] = w->x->edges[e];
        qsort(flow, n_flow, sizeof *flow, by_target);
        solve(w, f, &r, flow, n_flow);
        add_pairs(w, f, &r);
        free(flow);
        free(r.in);
        free(r.out);
        free(r.def_use);
        free(r.next_same);
        free(r.first_of);
    }
    w->n_uses = 0;
    forget(&w->names);
}

#endif
