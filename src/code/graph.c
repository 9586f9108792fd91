/*
 * Control flow of each function, by fringes: build(statement, fringe) connects the statements whose control
 * arrives there, and returns those that leave it (as Joern's CfgCreator, one node a statement). What a node
 * type does is a row of flow.c. break and continue find their loop on a list of contexts, goto its label when
 * the function is read.
 *
 * try: every statement of the body may go to each handler. Nesting deeper than MAX_DEPTH is one statement.
 * Names are graph_data.c's, questions graph_query.c's. Called by code_parse_graph, any thread.
 */
#include "code/graph_work.h"

#ifdef KVIST_HAVE_TREE_SITTER

#include <stdlib.h>
#include <string.h>

enum { MAX_DEPTH = 128, MAX_STATEMENTS = 1 << 20, MAX_LABELS = 256, NONE = -1 };

/*
 * Statements whose control goes to whatever comes next: a list in an arena that lives as long as the
 * function.
 */
typedef struct fringe {
    int32_t head, tail;
} fringe;
static const fringe nowhere = {NONE, NONE};

typedef struct link {
    uint32_t statement;
    int32_t next;
} link;

/* A loop or a switch around what is being built. */
typedef struct context {
    struct context *outer;
    bool is_loop;
    uint32_t label; /* node of its label's name; UINT32_MAX: none */
    fringe breaks, continues;
} context;

typedef struct label {
    uint32_t node, statement;
} label;

typedef struct flow {
    code_work w;
    link *links;
    size_t cap_links;
    int32_t n_links;
    context *around;
    uint32_t pending_label; /* of a labelled statement that is about to be built */
    uint32_t control;       /* the predicate that decides about new statements; UINT32_MAX: none */
    uint32_t function, exit;
    label labels[MAX_LABELS], gotos[MAX_LABELS];
    uint32_t n_labels, n_gotos;
} flow;

/* ---- fringes, statements, edges ---- */

static fringe just(flow *b, uint32_t statement)
{
    base_grow(&b->links, &b->cap_links, (size_t)b->n_links + 1, sizeof *b->links);
    b->links[b->n_links] = (link){statement, NONE};
    b->n_links++;
    return (fringe){b->n_links - 1, b->n_links - 1};
}

static fringe join(flow *b, fringe one, fringe other)
{
    if (one.head == NONE) return other;
    if (other.head == NONE) return one;
    b->links[one.tail].next = other.head;
    return (fringe){one.head, other.tail};
}

static void connect(flow *b, fringe in, uint32_t to)
{
    for (int32_t i = in.head; i != NONE; i = b->links[i].next)
        code_work_edge(&b->w, b->links[i].statement, to, CODE_EDGE_FLOW, 0);
}

static uint32_t add_statement(flow *b, uint32_t from, uint32_t to, code_statement_kind kind)
{
    code_graph *x = b->w.x;
    if (x->n_statements == MAX_STATEMENTS) return x->n_statements - 1;
    base_grow(&x->statements, &b->w.cap_statements, (size_t)x->n_statements + 1, sizeof *x->statements);
    x->statements[x->n_statements] =
        (code_statement){.from = from, .to = to, .function = b->function, .kind = (uint8_t)kind};
    if (b->control != UINT32_MAX) code_work_edge(&b->w, b->control, x->n_statements, CODE_EDGE_CONTROL, 0);
    return x->n_statements++;
}

/* A statement at bytes from..to, whose names are looked for below node i. */
static uint32_t place(flow *b, fringe in, uint32_t i, uint32_t from, uint32_t to, code_statement_kind kind)
{
    const code_tree *t = b->w.t;
    const uint32_t s = add_statement(b, from, code_tree_trim(t, from, to), kind);
    connect(b, in, s);
    code_work_collect(&b->w, s, i, false);
    return s;
}

/* ---- one node at a time ---- */

static fringe build(flow *b, uint32_t i, fringe in, int depth);

static unsigned kind_of(const code_tree *t, uint32_t i)
{
    return code_tree_flow(t, i) & FLOW_KINDS;
}

static bool is_comment(const code_tree *t, uint32_t i)
{
    return code_tree_row(t, i)->flags & NODE_COMMENT;
}

static bool is_language(const flow *b, const char *language)
{
    return strcmp(b->w.t->g->name, language) == 0;
}

/* Statements that stand inside an expression run before it: `let x = match y {...};`. */
static fringe build_inner(flow *b, uint32_t i, fringe in, int depth)
{
    const code_tree *t = b->w.t;
    for (uint32_t c = i + 1; c < t->nodes[i].sub_end;) {
        const code_node_row *row = code_tree_row(t, c);
        const bool definition = row->what != NULL && (row->flags & ~NODE_TAIL_RETURNS) == 0;
        if ((row->flags & NODE_LITERAL) || definition) {
            c = t->nodes[c].sub_end;
        } else if (code_flow_is_compound(code_tree_flow(t, c))) {
            in = build(b, c, in, depth + 1);
            c = t->nodes[c].sub_end;
        } else {
            c++;
        }
    }
    return in;
}

/* Where a simple statement's own bytes end: a nested function's or class's body is not its own. */
static uint32_t own_end(const code_tree *t, uint32_t i)
{
    const code_node_row *row = code_tree_row(t, i);
    const bool holds = (row->what != NULL && row->kind < 0) || (row->flags & (NODE_WRAPS | NODE_SCOPE));
    const uint32_t end = holds ? code_tree_block(t, i) : t->nodes[i].to;
    return end > t->nodes[i].from ? end : t->nodes[i].to;
}

static fringe build_simple(flow *b, uint32_t i, fringe in, code_statement_kind kind, int depth)
{
    const code_tree *t = b->w.t;
    const code_node_row *row = code_tree_row(t, i);
    const bool definition = row->what != NULL && row->kind < 0 && !(row->flags & NODE_DECLARES);
    if (!definition && depth < MAX_DEPTH) in = build_inner(b, i, in, depth);
    return just(b, place(b, in, i, t->nodes[i].from, own_end(t, i), kind));
}

/* The children from..end one after the other; false children are left out by `skip`. */
static fringe build_children(flow *b, uint32_t i, uint32_t from, fringe in, int depth)
{
    const code_tree *t = b->w.t;
    for (uint32_t c = from; c < t->nodes[i].sub_end; c = t->nodes[c].sub_end)
        if (!is_comment(t, c)) in = build(b, c, in, depth + 1);
    return in;
}

/* The head of a compound node: from its start, or its condition when that stands behind the body. */
static uint32_t place_head(flow *b, uint32_t i, uint32_t body, fringe in)
{
    const code_tree *t = b->w.t;
    const uint32_t condition = code_tree_child(t, i, FIELD_CONDITION);
    uint32_t from = t->nodes[i].from, to = body != UINT32_MAX ? t->nodes[body].from : code_tree_block(t, i);
    if (condition != UINT32_MAX && t->nodes[condition].from >= to) {
        from = t->nodes[condition].from;
        to = t->nodes[condition].to;
    }
    if (to <= from) to = t->nodes[i].to;
    return place(b, in, i, from, to, CODE_STATEMENT_PREDICATE);
}

/* What a body runs under: `predicate` decides about it. */
static fringe build_under(flow *b, uint32_t predicate, uint32_t body, fringe in, int depth)
{
    const uint32_t before = b->control;
    b->control = predicate;
    const fringe out = body != UINT32_MAX ? build(b, body, in, depth + 1) : in;
    b->control = before;
    return out;
}

/* Returns what leaves its branches; *ret_fall what leaves without having taken one. */
static fringe build_if(flow *b, uint32_t i, fringe in, fringe *ret_fall, int depth)
{
    const code_tree *t = b->w.t;
    uint32_t body = code_tree_body(t, i), initializer = code_tree_child(t, i, FIELD_INITIALIZER);
    if (initializer != UINT32_MAX) in = build_simple(b, initializer, in, CODE_STATEMENT_PLAIN, depth);
    /* bash: [ x ]; then a; b; fi has the statements as children. */
    uint32_t loose = UINT32_MAX;
    if (body == UINT32_MAX) {
        loose = code_tree_first(t, i, false);
        if (loose != UINT32_MAX) loose = t->nodes[loose].sub_end;
        if (loose != UINT32_MAX && loose >= t->nodes[i].sub_end) loose = UINT32_MAX;
    }
    const uint32_t p = place_head(b, i, body != UINT32_MAX ? body : loose, in);
    if (initializer != UINT32_MAX && body != UINT32_MAX) {
        const uint32_t condition = code_tree_child(t, i, FIELD_CONDITION);
        if (condition != UINT32_MAX) b->w.x->statements[p].from = t->nodes[condition].from;
    }
    const uint32_t before = b->control;
    fringe out = body != UINT32_MAX ? build_under(b, p, body, just(b, p), depth) : nowhere;
    fringe fall = just(b, p), running = just(b, p);
    b->control = p;
    for (uint32_t c = loose != UINT32_MAX ? loose : i + 1; c < t->nodes[i].sub_end; c = t->nodes[c].sub_end) {
        if (c == body || c == initializer || is_comment(t, c) || t->nodes[c].field == FIELD_CONDITION)
            continue;
        const unsigned kind = kind_of(t, c);
        if (t->nodes[c].field != FIELD_ALTERNATIVE && kind != FLOW_ELSE &&
            !(kind == FLOW_IF && loose == UINT32_MAX && body != UINT32_MAX && c > body)) {
            if (kind == FLOW_IF && strstr(code_tree_type(t, c), "elif") == NULL) {
                if (loose != UINT32_MAX) running = build(b, c, running, depth + 1);
                continue;
            }
            if (kind != FLOW_IF) {
                if (loose != UINT32_MAX) running = build(b, c, running, depth + 1);
                continue;
            }
        }
        if (kind == FLOW_IF) {
            fringe rest;
            out = join(b, out, build_if(b, c, fall, &rest, depth + 1));
            fall = rest;
        } else {
            out = join(b, out, build(b, c, fall, depth + 1));
            fall = nowhere;
        }
    }
    b->control = before;
    if (loose != UINT32_MAX) out = join(b, out, running);
    if (body == UINT32_MAX && loose == UINT32_MAX) out = just(b, p);
    *ret_fall = fall;
    return out;
}

/* for (;;), while (true), loop, Go's for {}: only a break leaves. */
static bool is_endless(const code_tree *t, uint32_t from, uint32_t to)
{
    static const char *const heads[] = {
        "for(;;)", "for", "while(1)", "while(true)", "whileTrue:", "while1:", "loop", "whiletrue"};
    char head[16];
    size_t n = 0;
    for (uint32_t i = from; i < to; i++) {
        if (strchr(" \t\r\n", t->text[i]) != NULL) continue;
        if (n + 1 == sizeof head || t->text[i] == '\0') return false;
        head[n++] = t->text[i];
    }
    head[n] = '\0';
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++)
        if (strcmp(head, heads[i]) == 0) return true;
    return false;
}

/* A field of the node or of a for_clause in it. */
static uint32_t head_part(const code_tree *t, uint32_t i, uint8_t field)
{
    uint32_t part = code_tree_child(t, i, field);
    for (uint32_t c = i + 1; part == UINT32_MAX && c < t->nodes[i].sub_end; c = t->nodes[c].sub_end)
        if (strcmp(code_tree_type(t, c), "for_clause") == 0) part = code_tree_child(t, c, field);
    return part;
}

static fringe build_loop(flow *b, uint32_t i, fringe in, bool tested_behind, int depth)
{
    const code_tree *t = b->w.t;
    const uint32_t initializer = head_part(t, i, FIELD_INITIALIZER), update = head_part(t, i, FIELD_UPDATE);
    const uint32_t last = code_tree_loop_body(t, i);
    const uint32_t to = last != UINT32_MAX ? t->nodes[last].from : code_tree_block(t, i);
    context here = {b->around, true, b->pending_label, nowhere, nowhere};
    b->pending_label = UINT32_MAX;
    if (tested_behind) {
        const uint32_t first = b->w.x->n_statements;
        b->around = &here;
        const fringe out = last != UINT32_MAX ? build(b, last, in, depth + 1) : in;
        b->around = here.outer;
        const uint32_t p = place_head(b, i, last, join(b, out, here.continues));
        if (first < p) {
            code_work_edge(&b->w, p, first, CODE_EDGE_FLOW, 0);
            for (uint32_t s = first; s < p; s++)
                if (b->control == UINT32_MAX) code_work_edge(&b->w, p, s, CODE_EDGE_CONTROL, 0);
        }
        return join(b, just(b, p), here.breaks);
    }
    if (initializer != UINT32_MAX) in = build_simple(b, initializer, in, CODE_STATEMENT_PLAIN, depth);
    uint32_t from = t->nodes[i].from, end = to;
    if (initializer != UINT32_MAX || update != UINT32_MAX) {
        const uint32_t condition = head_part(t, i, FIELD_CONDITION);
        end = condition != UINT32_MAX ? t->nodes[condition].to : from + 3;
        if (condition != UINT32_MAX) from = t->nodes[condition].from;
    }
    if (end <= from) end = t->nodes[i].to;
    const uint32_t p = place(b, in, i, from, end, CODE_STATEMENT_PREDICATE);
    b->around = &here;
    fringe out = build_under(b, p, last, just(b, p), depth);
    b->around = here.outer;
    out = join(b, out, here.continues);
    if (update != UINT32_MAX) {
        const uint32_t before = b->control;
        b->control = p;
        out = build_simple(b, update, out, CODE_STATEMENT_PLAIN, depth);
        b->control = before;
    }
    connect(b, out, p);
    fringe after = is_endless(t, t->nodes[i].from, to) ? nowhere : just(b, p);
    const uint32_t otherwise = code_tree_child(t, i, FIELD_ALTERNATIVE);
    if (otherwise != UINT32_MAX) after = build(b, otherwise, after, depth + 1);
    return join(b, after, here.breaks);
}

static fringe build_case(flow *b, uint32_t i, fringe in, int depth)
{
    const code_tree *t = b->w.t;
    const uint32_t body = code_tree_case_body(t, i);
    const uint32_t to = body != UINT32_MAX ? t->nodes[body].from : t->nodes[i].to;
    const uint32_t p = place(b, in, i, t->nodes[i].from, to, CODE_STATEMENT_PREDICATE), before = b->control;
    b->control = p;
    fringe out = just(b, p);
    if (body != UINT32_MAX) out = build_children(b, i, body, out, depth);
    b->control = before;
    return out;
}

static bool is_default(const code_tree *t, uint32_t i)
{
    const char *text = t->text + t->nodes[i].from;
    const size_t n = t->nodes[i].to - t->nodes[i].from;
    return strstr(code_tree_type(t, i), "default") != NULL || (n >= 7 && memcmp(text, "default", 7) == 0) ||
           (n >= 6 && memcmp(text, "case _", 6) == 0) || (n >= 2 && text[0] == '_' && text[1] == ' ') ||
           (n >= 2 && memcmp(text, "*)", 2) == 0);
}

static fringe build_switch(flow *b, uint32_t i, fringe in, bool falls, int depth)
{
    const code_tree *t = b->w.t;
    uint32_t body = code_tree_body(t, i), initializer = code_tree_child(t, i, FIELD_INITIALIZER);
    if (initializer != UINT32_MAX) in = build_simple(b, initializer, in, CODE_STATEMENT_PLAIN, depth);
    uint32_t holder = body != UINT32_MAX ? body : i, first = UINT32_MAX;
    for (uint32_t c = holder + 1; first == UINT32_MAX && c < t->nodes[holder].sub_end;
         c = t->nodes[c].sub_end)
        if (kind_of(t, c) == FLOW_CASE) first = c;
    const uint32_t p = place_head(b, i, body != UINT32_MAX ? body : first, in), before = b->control;
    const bool catches = falls || is_language(b, "go");
    context here = {b->around, false, b->pending_label, nowhere, nowhere};
    b->pending_label = UINT32_MAX;
    if (catches) b->around = &here;
    b->control = p;
    fringe out = nowhere, previous = nowhere;
    bool has_default = is_language(b, "rust"); /* a match is exhaustive there */
    for (uint32_t c = holder + 1; c < t->nodes[holder].sub_end; c = t->nodes[c].sub_end) {
        if (is_comment(t, c) || t->nodes[c].from < b->w.x->statements[p].to) continue;
        const unsigned kind = kind_of(t, c);
        if (kind == FLOW_ELSE) { /* Ruby */
            has_default = true;
            out = join(b, out, build(b, c, just(b, p), depth + 1));
        } else if (kind == FLOW_CASE) {
            has_default |= is_default(t, c);
            previous = build_case(b, c, join(b, just(b, p), falls ? previous : nowhere), depth);
            if (!falls) out = join(b, out, previous);
        } else if (falls) { /* a statement between cases belongs to the one before */
            previous = build(b, c, previous, depth + 1);
        }
    }
    if (falls) out = join(b, out, previous);
    b->control = before;
    if (catches) b->around = here.outer;
    if (!has_default) out = join(b, out, just(b, p));
    out = join(b, out, here.breaks);
    if (here.outer != NULL) here.outer->continues = join(b, here.outer->continues, here.continues);
    return out;
}

static fringe build_try(flow *b, uint32_t i, fringe in, int depth)
{
    const code_tree *t = b->w.t;
    const uint32_t first = b->w.x->n_statements;
    fringe out = in, finished = nowhere;
    uint32_t n_body = first;
    bool in_body = true;
    for (uint32_t c = i + 1; c < t->nodes[i].sub_end; c = t->nodes[c].sub_end) {
        if (is_comment(t, c)) continue;
        const unsigned kind = kind_of(t, c);
        if (kind == FLOW_HANDLER || (t->nodes[c].field != FIELD_BODY && kind == FLOW_TRY && !in_body)) {
            if (in_body) n_body = b->w.x->n_statements;
            in_body = false;
            fringe thrown = nowhere;
            for (uint32_t s = first; s < n_body; s++) thrown = join(b, thrown, just(b, s));
            if (n_body == first) thrown = in;
            const uint32_t body = code_tree_body(t, c);
            uint32_t to = body != UINT32_MAX ? t->nodes[body].from : code_tree_block(t, c);
            if (to <= t->nodes[c].from) to = t->nodes[c].to;
            const uint32_t p = place(b, thrown, c, t->nodes[c].from, to, CODE_STATEMENT_PREDICATE);
            fringe handled = just(b, p);
            if (body != UINT32_MAX) handled = build_under(b, p, body, handled, depth);
            finished = join(b, finished, handled);
        } else if (kind == FLOW_FINALLY) {
            out = build_children(b, c, c + 1, join(b, out, finished), depth);
            finished = nowhere;
        } else if (kind == FLOW_ELSE || in_body) { /* its body, Python's else */
            out = build(b, c, out, depth + 1);
        }
    }
    return join(b, out, finished);
}

static bool same_label(const code_tree *t, uint32_t a, uint32_t b)
{
    const code_node *x = &t->nodes[a], *y = &t->nodes[b];
    return x->to - x->from == y->to - y->from &&
           memcmp(t->text + x->from, t->text + y->from, x->to - x->from) == 0;
}

/* break and continue; false: there is nothing to leave. */
static bool leave(flow *b, uint32_t i, uint32_t statement, bool is_break)
{
    const code_tree *t = b->w.t;
    uint32_t name = code_tree_child(t, i, FIELD_LABEL);
    for (uint32_t c = i + 1; name == UINT32_MAX && c < t->nodes[i].sub_end; c = t->nodes[c].sub_end)
        if (strstr(code_tree_type(t, c), "label") != NULL ||
            strstr(code_tree_type(t, c), "statement_id") != NULL)
            name = c;
    for (context *c = b->around; c != NULL; c = c->outer) {
        if (name != UINT32_MAX && (c->label == UINT32_MAX || !same_label(t, c->label, name))) continue;
        if (!is_break && !c->is_loop) continue;
        fringe *to = is_break ? &c->breaks : &c->continues;
        *to = join(b, *to, just(b, statement));
        return true;
    }
    return false;
}

static fringe build_jump(flow *b, uint32_t i, fringe in, unsigned kind, int depth)
{
    const code_tree *t = b->w.t;
    const fringe at = build_simple(b, i, in, CODE_STATEMENT_JUMP, depth);
    const uint32_t s = b->links[at.head].statement;
    if (kind == FLOW_RETURN) {
        connect(b, at, b->exit);
        return nowhere;
    }
    if (kind == FLOW_GOTO) {
        const uint32_t name = code_tree_first(t, i, false);
        if (name != UINT32_MAX && b->n_gotos < MAX_LABELS) b->gotos[b->n_gotos++] = (label){name, s};
        return nowhere;
    }
    return leave(b, i, s, kind == FLOW_BREAK) ? nowhere : at;
}

static fringe build_label(flow *b, uint32_t i, fringe in, int depth)
{
    const code_tree *t = b->w.t;
    const uint32_t name = code_tree_first(t, i, false);
    if (name == UINT32_MAX) return in;
    const uint32_t at = b->w.x->n_statements;
    b->pending_label = name;
    const uint32_t body = t->nodes[name].sub_end;
    fringe out = in;
    if (body < t->nodes[i].sub_end) out = build_children(b, i, body, in, depth);
    b->pending_label = UINT32_MAX;
    if (b->w.x->n_statements == at) /* nothing stands behind it: the label itself is the statement */
        out = just(b, place(b, in, i, t->nodes[i].from, t->nodes[i].to, CODE_STATEMENT_PLAIN));
    if (b->n_labels < MAX_LABELS) b->labels[b->n_labels++] = (label){name, at};
    return out;
}

/* The one child that does everything: `if` below an expression_statement. */
static uint32_t only_child(const code_tree *t, uint32_t i)
{
    const uint32_t first = code_tree_first(t, i, false);
    return first != UINT32_MAX && first == code_tree_first(t, i, true) ? first : UINT32_MAX;
}

static fringe build(flow *b, uint32_t i, fringe in, int depth)
{
    const code_tree *t = b->w.t;
    const unsigned kind = depth < MAX_DEPTH ? kind_of(t, i) : FLOW_NONE;
    fringe fall, out;
    switch (kind) {
    case FLOW_SEQUENCE:
        for (uint32_t c = i + 1; c < t->nodes[i].sub_end; c = t->nodes[c].sub_end)
            if (kind_of(t, c) == FLOW_HANDLER || kind_of(t, c) == FLOW_FINALLY)
                return build_try(b, i, in, depth);
        return build_children(b, i, i + 1, in, depth);
    case FLOW_ELSE: return build_children(b, i, i + 1, in, depth);
    case FLOW_FINALLY: return build_children(b, i, i + 1, in, depth);
    case FLOW_IF: out = build_if(b, i, in, &fall, depth); return join(b, out, fall);
    case FLOW_LOOP:
    case FLOW_FOREVER: return build_loop(b, i, in, false, depth);
    case FLOW_DO: return build_loop(b, i, in, true, depth);
    case FLOW_SWITCH: return build_switch(b, i, in, false, depth);
    case FLOW_FALL: return build_switch(b, i, in, true, depth);
    case FLOW_CASE: return build_case(b, i, in, depth);
    case FLOW_TRY: return build_try(b, i, in, depth);
    case FLOW_RETURN:
    case FLOW_BREAK:
    case FLOW_CONTINUE:
    case FLOW_GOTO: return build_jump(b, i, in, kind, depth);
    case FLOW_LABEL: return build_label(b, i, in, depth);
    case FLOW_HANDLER:
    case FLOW_WITH: {
        const uint32_t body = code_tree_body(t, i);
        if (body == UINT32_MAX) break;
        const uint32_t p = place_head(b, i, body, in);
        return build_under(b, p, body, just(b, p), depth);
    }
    default: break;
    }
    const uint32_t only = only_child(t, i);
    if (depth < MAX_DEPTH && only != UINT32_MAX && kind_of(t, only) != FLOW_NONE &&
        t->nodes[only].field == FIELD_NONE)
        return build(b, only, in, depth + 1);
    return build_simple(b, i, in, CODE_STATEMENT_PLAIN, depth);
}

/* ---- functions ---- */

/* Begins a function whose signature is bytes from..head; build its body between begin and end. */
static fringe begin_function(flow *b, uint32_t definition, uint32_t from, uint32_t head, uint32_t to)
{
    code_graph *x = b->w.x;
    b->control = b->pending_label = UINT32_MAX;
    b->around = NULL;
    b->n_links = 0;
    b->n_labels = b->n_gotos = 0;
    b->function = x->n_functions - 1;
    x->functions[b->function] =
        (code_function){.definition = definition, .from = from, .to = to, .first = x->n_statements};
    const uint32_t entry = add_statement(b, from, head, CODE_STATEMENT_ENTRY);
    b->exit = add_statement(b, to, to, CODE_STATEMENT_EXIT);
    return just(b, entry);
}

static void end_function(flow *b, fringe out)
{
    code_graph *x = b->w.x;
    connect(b, out, b->exit);
    for (uint32_t g = 0; g < b->n_gotos; g++)
        for (uint32_t l = 0; l < b->n_labels; l++)
            if (same_label(b->w.t, b->gotos[g].node, b->labels[l].node)) {
                code_work_edge(&b->w, b->gotos[g].statement, b->labels[l].statement, CODE_EDGE_FLOW, 0);
                break;
            }
    code_function *f = &x->functions[b->function];
    f->n = x->n_statements - f->first;
    code_work_reach(&b->w, f);
}

static void read_function(flow *b, uint32_t i, uint32_t definition)
{
    const code_tree *t = b->w.t;
    const uint32_t body = code_tree_body(t, i);
    uint32_t parameters = code_tree_child(t, i, FIELD_PARAMETERS);
    if (parameters == UINT32_MAX) parameters = code_tree_child(t, i, FIELD_PARAMETER);
    const uint32_t declarator = code_tree_child(t, i, FIELD_DECLARATOR);
    for (uint32_t c = declarator; parameters == UINT32_MAX && declarator != UINT32_MAX &&
                                  c < t->nodes[declarator].sub_end && c - declarator < 64;
         c++)
        if (t->nodes[c].field == FIELD_PARAMETERS) parameters = c;
    const uint32_t head =
        body != UINT32_MAX ? t->nodes[body].from : code_tree_line_end(t, t->nodes[i].from, t->nodes[i].to);
    const fringe in = begin_function(
        b, definition, t->nodes[i].from, code_tree_trim(t, t->nodes[i].from, head), t->nodes[i].to);
    const uint32_t receiver = code_tree_child(t, i, FIELD_RECEIVER), entry = b->exit - 1;
    if (receiver != UINT32_MAX) code_work_collect(&b->w, entry, receiver, true);
    if (parameters != UINT32_MAX) code_work_collect(&b->w, entry, parameters, true);
    fringe out = in;
    if (body != UINT32_MAX) {
        out = build(b, body, in, 0);
    } else { /* Ruby: the statements are children */
        for (uint32_t c = i + 1; c < t->nodes[i].sub_end; c = t->nodes[c].sub_end)
            if (!is_comment(t, c) && t->nodes[c].field == FIELD_NONE) out = build(b, c, out, 1);
    }
    end_function(b, out);
}

static bool is_callable(const char *what)
{
    return strcmp(what, "function") == 0 || strcmp(what, "method") == 0;
}

/* The innermost function of the file that holds ascending bytes. */
typedef struct holder {
    uint32_t next, stack[64], depth;
} holder;

static uint32_t definition_holding(holder *h, const code_file *f, uint32_t at)
{
    for (; h->next < f->n_definitions && f->definitions[h->next].from <= at; h->next++) {
        if (!is_callable(f->definitions[h->next].what) || f->definitions[h->next].is_declaration) continue;
        while (h->depth != 0 && f->definitions[h->next].from >= f->definitions[h->stack[h->depth - 1]].to)
            h->depth--;
        if (h->depth < 64) h->stack[h->depth++] = h->next;
    }
    while (h->depth != 0 && at >= f->definitions[h->stack[h->depth - 1]].to) h->depth--;
    return h->depth != 0 ? h->stack[h->depth - 1] : UINT32_MAX;
}

static int by_kind(const void *a, const void *b)
{
    const code_edge *x = a, *y = b;
    if (x->kind != y->kind) return x->kind < y->kind ? -1 : 1;
    if (x->from != y->from) return x->from < y->from ? -1 : 1;
    return x->to != y->to ? (x->to < y->to ? -1 : 1) : x->name < y->name ? -1 : x->name > y->name;
}

static void count_degrees(code_graph *x)
{
    for (uint32_t e = 0; e < x->n_edges; e++) {
        uint16_t *out = &x->statements[x->edges[e].from].out[x->edges[e].kind];
        uint16_t *in = &x->statements[x->edges[e].to].in[x->edges[e].kind];
        *out += *out != UINT16_MAX;
        *in += *in != UINT16_MAX;
    }
}

void code_graph_build(const code_tree *t, const code_file *f, code_graph *ret)
{
    flow *b = base_xcalloc(1, sizeof *b);
    size_t cap_functions = 0;
    holder h = {0};
    *ret = (code_graph){0};
    b->w.t = t;
    b->w.x = ret;
    for (uint32_t i = 0; i < t->n; i++) {
        const code_node_row *row = code_tree_row(t, i);
        const bool top = i == 0 && kind_of(t, i) == FLOW_SEQUENCE;
        const bool function = (row->flags & NODE_LITERAL) ||
                              (row->what != NULL && is_callable(row->what) && row->kind < 0 &&
                                  !(row->flags & (NODE_DECLARATION | NODE_DECLARES | NODE_IF_FUNCTION)));
        if (!top && !function) continue;
        base_grow(&ret->functions, &cap_functions, (size_t)ret->n_functions + 1, sizeof *ret->functions);
        ret->n_functions++;
        if (top) {
            const fringe in = begin_function(b, UINT32_MAX, 0, 0, t->n_bytes);
            end_function(b, build(b, i, in, 0));
        } else {
            read_function(b, i, definition_holding(&h, f, t->nodes[i].from));
        }
    }
    if (ret->n_edges > 1) qsort(ret->edges, ret->n_edges, sizeof *ret->edges, by_kind);
    count_degrees(ret);
    free(b->links);
    free(b->w.uses);
    free(b->w.names.hashes);
    free(b->w.names.table);
    free(b);
}

#endif
