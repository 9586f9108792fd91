/*
 * A syntax tree -> definitions and anchors. The tree is flattened once, in pre-order, into an array (children of i: c = i + 1;
 * while c < sub_end; c = sub_end of c), and everything is read off that array with the row of each node type: no recursion, so
 * that a file nested 20,000 deep costs memory, not stack. The tree is freed before the walk.
 *
 * Anchors have two extents (kv.md section 5): core is what to keep first, full the whole expression or statement, stopping in
 * front of any nested body. Called by code_parse from any thread; a parser a call.
 */
#include "code/internal.h"

#include <stdlib.h>
#include <string.h>

enum {
    MAX_TREE_BYTES = 1 << 20,
    PARSE_MICROSECONDS = 5000000, /* a safety net: what is parsed is decided by size, not by load */
    MAX_LINE = 20000,
    MAX_MEAN_LINE = 300,
    LOOK_AHEAD = 4096,
    MAX_ATTRIBUTES = 1024
};

/* Minified or generated: structure would say nothing, and parsing is slow. */
static bool is_minified(const char *text, size_t n)
{
    size_t n_lines = 1, longest = 0;
    for (const char *p = text, *end = text + n; p < end;) {
        const char *stop = memchr(p, '\n', (size_t)(end - p));
        const size_t length = (size_t)((stop != NULL ? stop : end) - p);
        if (length > longest) longest = length;
        if (stop == NULL) break;
        n_lines++;
        p = stop + 1;
    }
    return longest > MAX_LINE || (n > 4096 && n / n_lines > MAX_MEAN_LINE);
}

code_file *code_parse(code_grammars *g, const char *path, const char *text, size_t n)
{
    if (n >= UINT32_MAX) n = 0;
    const char *language = code_language(path, text, n);
#ifdef KVIST_HAVE_TREE_SITTER
    if (n <= MAX_TREE_BYTES && language != NULL && strcmp(language, "markdown") != 0 &&
        !is_minified(text, n)) {
        const code_grammar *grammar = code_grammar_get(g, language);
        code_file *f = grammar != NULL ? code_parse_tree(grammar, text, n) : NULL;
        if (f != NULL && (f->n_definitions != 0 || code_table_of(language) != NULL)) return f;
        /* A grammar without a table, whose names told nothing: the lexical reading may see more. */
        code_file *lexical = code_parse_lexical(language, path, text, n);
        if (f == NULL || lexical->n_definitions != 0) {
            code_file_free(f);
            return lexical;
        }
        code_file_free(lexical);
        return f;
    }
#else
    (void)g;
    (void)is_minified;
#endif
    return code_parse_lexical(language, path, text, n);
}

#ifdef KVIST_HAVE_TREE_SITTER

typedef struct node {
    uint32_t from, to, sub_end, parent, prev; /* prev: the sibling before it, UINT32_MAX: none */
    uint16_t symbol;
    uint8_t field;
} node;

typedef enum scope_kind { SCOPE_FUNCTION, SCOPE_TYPE, SCOPE_PARENT } scope_kind;

typedef struct scope {
    uint32_t sub_end, definition; /* UINT32_MAX: no definition of its own */
    scope_kind kind;
    const char *name;
} scope;

typedef struct walk {
    const code_grammar *g;
    const char *text;
    uint32_t n_bytes;
    node *nodes;
    uint32_t n;
    scope *scopes;
    size_t n_scopes, cap_scopes;
    uint32_t n_functions; /* of the scopes that are open */
    code_builder b;
} walk;

/* ---- flatten ---- */

static void flatten(walk *w, TSTree *tree)
{
    size_t cap = 0, cap_open = 0, depth = 0;
    struct open_node {
        uint32_t index, last; /* last: newest child; index UINT32_MAX: an anonymous node */
    } *open = NULL;
    const TSNode root = ts_tree_root_node(tree);
    const bool has_error = ts_node_has_error(root);
    TSTreeCursor cursor = ts_tree_cursor_new(root);
    for (bool more = true; more;) {
        const TSNode at = ts_tree_cursor_current_node(&cursor);
        const TSSymbol symbol = ts_node_symbol(at);
        if (has_error && (symbol == UINT16_MAX || ts_node_is_missing(at))) {
            w->b.file->n_errors++;
            if (w->b.file->error_line == 0) w->b.file->error_line = ts_node_start_point(at).row + 1;
        }
        uint32_t index = UINT32_MAX;
        if (ts_node_is_named(at)) {
            base_grow(&w->nodes, &cap, (size_t)w->n + 1, sizeof *w->nodes);
            const TSFieldId field = ts_tree_cursor_current_field_id(&cursor);
            uint32_t parent = UINT32_MAX, prev = UINT32_MAX;
            if (depth != 0) {
                parent = open[depth - 1].index;
                prev = open[depth - 1].last;
                open[depth - 1].last = w->n;
            }
            uint32_t from = ts_node_start_byte(at), to = ts_node_end_byte(at);
            if (to > w->n_bytes) to = w->n_bytes;
            if (from > to) from = to;
            index = w->n++;
            w->nodes[index] = (node){.from = from,
                .to = to,
                .sub_end = index + 1,
                .parent = parent,
                .prev = prev,
                .symbol = symbol,
                .field = field <= w->g->n_fields ? w->g->field_of[field] : FIELD_NONE};
        }
        if (ts_tree_cursor_goto_first_child(&cursor)) {
            base_grow(&open, &cap_open, depth + 1, sizeof *open);
            open[depth++] = (struct open_node){index, UINT32_MAX};
            continue;
        }
        while (!ts_tree_cursor_goto_next_sibling(&cursor)) {
            if (depth == 0 || !ts_tree_cursor_goto_parent(&cursor)) {
                more = false;
                break;
            }
            depth--;
            if (open[depth].index != UINT32_MAX) w->nodes[open[depth].index].sub_end = w->n;
        }
    }
    ts_tree_cursor_delete(&cursor);
    free(open);
}

/* ---- reading the flat array ---- */

static const code_node_row *row_of(const walk *w, uint32_t i)
{
    static const code_node_row none = {.kind = -1};
    const uint16_t symbol = w->nodes[i].symbol;
    const uint8_t r = symbol < w->g->n_symbols ? w->g->row_of[symbol] : 0;
    return r != 0 ? &w->g->rows[r - 1] : &none;
}

static bool is_name(const walk *w, uint32_t i)
{
    const node *a = &w->nodes[i];
    return a->symbol < w->g->n_symbols && w->g->is_name[a->symbol] && a->sub_end == i + 1;
}

static const char *type_of(const walk *w, uint32_t i)
{
    const char *name = ts_language_symbol_name(w->g->language, w->nodes[i].symbol);
    return name != NULL ? name : "";
}

static uint32_t child(const walk *w, uint32_t i, uint8_t field)
{
    for (uint32_t c = i + 1; c < w->nodes[i].sub_end; c = w->nodes[c].sub_end)
        if (w->nodes[c].field == field) return c;
    return UINT32_MAX;
}

static uint32_t first_child(const walk *w, uint32_t i, bool last)
{
    uint32_t found = UINT32_MAX;
    for (uint32_t c = i + 1; c < w->nodes[i].sub_end; c = w->nodes[c].sub_end) {
        if (row_of(w, c)->flags & NODE_COMMENT) continue;
        found = c;
        if (!last) break;
    }
    return found;
}

static uint32_t first_name(const walk *w, uint32_t i)
{
    const uint32_t end = w->nodes[i].sub_end;
    for (uint32_t c = i; c < end && c - i < LOOK_AHEAD; c++)
        if (is_name(w, c)) return c;
    return UINT32_MAX;
}

/* The first body inside node i: where extents stop. */
static uint32_t first_block(const walk *w, uint32_t i)
{
    const uint32_t end = w->nodes[i].sub_end;
    for (uint32_t c = i + 1; c < end && c - i < LOOK_AHEAD; c++)
        if (row_of(w, c)->flags & NODE_BLOCK) return w->nodes[c].from;
    return w->nodes[i].to;
}

static uint32_t line_end(const walk *w, uint32_t from, uint32_t to)
{
    const char *end = to > from ? memchr(w->text + from, '\n', to - from) : NULL;
    return end != NULL ? (uint32_t)(end - w->text) : to;
}

static uint32_t trim(const walk *w, uint32_t from, uint32_t to)
{
    while (to > from && memchr(" \t\r\n", w->text[to - 1], 4) != NULL) to--;
    return to;
}

static void add_return(walk *w, code_anchor *a)
{
    uint32_t to = line_end(w, a->full_from, a->full_to);
    if (to - a->full_from > 32) {
        const uint32_t least = a->full_from + 12;
        to = a->full_from + 32;
        size_t pos, from, end; /* not inside a word */
        while (to > least && (pos = to - 1, code_next_identifier(w->text, to + 1, &pos, &from, &end)) &&
               from == to - 1 && end == to + 1u)
            to--;
    }
    a->core_to = trim(w, a->full_from, to);
}

/* ---- definitions ---- */

static bool is_type(const char *what)
{
    static const char *const types[] = {
        "class", "struct", "union", "enum", "interface", "type", "typedef", "module"};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (strcmp(what, types[i]) == 0) return true;
    return false;
}

static const char *enclosing_name(const walk *w)
{
    return w->n_scopes != 0 && w->scopes[w->n_scopes - 1].name != NULL ? w->scopes[w->n_scopes - 1].name : "";
}

static bool in_type(const walk *w)
{
    return w->n_scopes != 0 && w->scopes[w->n_scopes - 1].kind == SCOPE_TYPE;
}

static void open_scope(walk *w, uint32_t sub_end, uint32_t definition, scope_kind kind, const char *name)
{
    base_grow(&w->scopes, &w->cap_scopes, w->n_scopes + 1, sizeof *w->scopes);
    w->scopes[w->n_scopes++] = (scope){sub_end, definition, kind, name};
    if (kind == SCOPE_FUNCTION) w->n_functions++;
}

static uint32_t innermost(const walk *w)
{
    for (size_t s = w->n_scopes; s-- > 0;)
        if (w->scopes[s].definition != UINT32_MAX) return w->scopes[s].definition;
    return UINT32_MAX;
}

/* What a definition's name turned out to be. */
typedef struct named {
    uint32_t name;                   /* node; UINT32_MAX: none */
    uint32_t parent_from, parent_to; /* text of a qualifier in front: A in A::f */
    bool is_function, is_pointer;
} named;

/* Follows declarators down to the name: `char *(*f[2])(int)`, `A::B::operator=`. */
static named descend(const walk *w, uint32_t i)
{
    named r = {.name = UINT32_MAX};
    for (int depth = 0; depth < 64 && i != UINT32_MAX; depth++) {
        if (is_name(w, i)) {
            r.name = i;
            return r;
        }
        const char *type = type_of(w, i);
        if (strcmp(type, "function_declarator") == 0) r.is_function = true;
        if (r.is_function && strcmp(type, "parenthesized_declarator") == 0) r.is_pointer = true;
        uint32_t next = child(w, i, FIELD_DECLARATOR);
        if (next == UINT32_MAX) {
            next = child(w, i, FIELD_NAME);
            if (next != UINT32_MAX && w->nodes[next].from > w->nodes[i].from) {
                r.parent_from = w->nodes[i].from;
                r.parent_to = w->nodes[next].from;
            }
        }
        if (next == UINT32_MAX) next = first_child(w, i, false);
        if (next == UINT32_MAX && strstr(type, "name") != NULL)
            r.name = i; /* destructor_name, operator_name */
        i = next;
    }
    return r;
}

/* The last identifier of a qualifier: "ns::Cls<T>::" gives Cls; "" when there is none. */
static const char *qualifier(walk *w, uint32_t from, uint32_t to)
{
    size_t pos = from, a = 0, b = 0, best_a = 0, best_b = 0;
    int angle = 0;
    for (size_t i = from; code_next_identifier(w->text, to, &pos, &a, &b);) {
        for (; i < a; i++) angle += w->text[i] == '<' ? 1 : w->text[i] == '>' ? -1 : 0;
        if (angle > 0) continue;
        if (b - a == 9 && memcmp(w->text + a, "prototype", 9) == 0) continue;
        best_a = a;
        best_b = b;
    }
    return best_b > best_a ? code_builder_name(&w->b, w->text + best_a, best_b - best_a) : "";
}

/* The node that the definition starts and ends with: decorators, export, a declaration around a single name. */
static uint32_t outermost(const walk *w, uint32_t i)
{
    for (int depth = 0; depth < 8; depth++) {
        const uint32_t p = w->nodes[i].parent;
        if (p == UINT32_MAX) break;
        const unsigned flags = row_of(w, p)->flags;
        if (!(flags & (NODE_WRAPS | NODE_WRAPS_ONE)) || first_child(w, p, true) != i) break;
        if ((flags & NODE_WRAPS_ONE) && (flags & NODE_WRAPS) == 0) {
            /* Types and modifiers may stand in front (Java), other names may not. */
            bool alone = true;
            for (uint32_t c = p + 1; c < w->nodes[p].sub_end; c = w->nodes[c].sub_end)
                if (c != i && w->nodes[c].symbol == w->nodes[i].symbol) alone = false;
            if (!alone) break;
        }
        i = p;
    }
    return i;
}

static uint32_t body_of(const walk *w, uint32_t i)
{
    uint32_t body = child(w, i, FIELD_BODY);
    if (body != UINT32_MAX) return body;
    const uint32_t type = child(w, i, FIELD_TYPE); /* Go: type_spec > struct_type > field_declaration_list */
    if (type != UINT32_MAX)
        for (uint32_t c = type + 1; c < w->nodes[type].sub_end; c = w->nodes[c].sub_end)
            if (row_of(w, c)->flags & NODE_BLOCK) return c;
    return UINT32_MAX;
}

static void add_signature(walk *w, const code_definition *d, uint32_t index, uint32_t node_from)
{
    static const char *const none[] = {"variable", "field", "constant", "section"};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++)
        if (strcmp(d->what, none[i]) == 0) return;
    uint32_t to = d->body_to != 0 && d->body_from >= d->from ? d->body_from : d->to;
    if (d->body_to == 0 && !d->is_declaration) to = line_end(w, node_from, d->to);
    if (d->body_to != 0 && d->body_from < d->to && w->text[d->body_from] == '{') to = d->body_from + 1;
    to = trim(w, d->from, to);
    code_builder_anchor(&w->b, &(code_anchor){CODE_SIGNATURE, index, d->from, to, d->from, to});
}

/* Writes the definition that node i is. `holder` is the node whose children lie inside it. */
static void define(walk *w, uint32_t i, uint32_t name, const char *parent, const char *what, uint32_t body,
    bool is_declaration, uint32_t holder)
{
    const node *at = &w->nodes[name];
    if (at->from == at->to) return;                                   /* a MISSING name */
    const uint32_t name_from = at->from + (w->text[at->from] == '#'); /* private in JavaScript */
    const uint32_t outer = outermost(w, i);
    code_definition d = {.name = code_builder_name(&w->b, w->text + name_from, at->to - name_from),
        .parent = parent,
        .what = what,
        .from = w->nodes[outer].from,
        .to = trim(w, w->nodes[outer].from, w->nodes[outer].to),
        .name_from = name_from,
        .is_declaration = is_declaration};
    for (uint32_t p = w->nodes[outer].prev; p != UINT32_MAX && (row_of(w, p)->flags & NODE_ATTRIBUTE);
         p = w->nodes[p].prev)
        d.from = w->nodes[p].from;
    /* Around a broken place a wrapper may hold other definitions in front of this one: then it is not this one's. */
    const code_file *file = w->b.file;
    if (file->n_definitions != 0 && d.from < file->definitions[file->n_definitions - 1].from)
        d.from = w->nodes[i].from;
    if (body != UINT32_MAX) {
        d.body_from = w->nodes[body].from;
        d.body_to = w->nodes[body].to;
    }
    const uint32_t index = code_builder_define(&w->b, &d);
    if (index == UINT32_MAX) return;
    add_signature(w, &d, index, w->nodes[i].from);
    const bool function = strcmp(what, "function") == 0 || strcmp(what, "method") == 0;
    if (holder != UINT32_MAX && (function || is_type(what)))
        open_scope(w, w->nodes[holder].sub_end, index, function ? SCOPE_FUNCTION : SCOPE_TYPE, d.name);
}

/* C and C++: one definition a declarator. */
static void define_declarators(walk *w, uint32_t i, const code_node_row *row)
{
    const bool is_typedef = strcmp(row->what, "typedef") == 0, is_field = strcmp(row->what, "field") == 0;
    uint32_t n = 0, body = UINT32_MAX, holder = UINT32_MAX;
    if (is_typedef) { /* of a struct: its body; without a name of its own its fields are the typedef's */
        const uint32_t type = child(w, i, FIELD_TYPE);
        if (type != UINT32_MAX) body = child(w, type, FIELD_BODY);
        if (body != UINT32_MAX && child(w, type, FIELD_NAME) == UINT32_MAX) holder = i;
    }
    for (uint32_t c = i + 1; c < w->nodes[i].sub_end; c = w->nodes[c].sub_end) {
        if (w->nodes[c].field != FIELD_DECLARATOR) continue;
        const named r = descend(w, c);
        if (r.name == UINT32_MAX) continue;
        const bool prototype = r.is_function && !r.is_pointer && !is_typedef;
        if (!prototype && !is_typedef && !is_field && w->n_functions != 0) continue;
        const char *what = prototype ? (is_field || in_type(w) ? "method" : "function") : row->what;
        const char *parent = r.parent_to != 0 ? qualifier(w, r.parent_from, r.parent_to) : enclosing_name(w);
        define(w, i, r.name, parent, what, body, prototype, n == 0 ? holder : UINT32_MAX);
        if (++n == 64) break;
    }
}

/* `self.x = 1` in __init__, `this.x = 1` in a constructor: where these languages say which fields a class has. */
static void define_attribute(walk *w, uint32_t i, uint32_t left)
{
    static const char *const makers[] = {"__init__", "constructor"};
    static const char *const objects[] = {"self", "this"};
    if (w->n_scopes < 2 || w->scopes[w->n_scopes - 2].kind != SCOPE_TYPE) return;
    const scope *top = &w->scopes[w->n_scopes - 1], *type = top - 1;
    if (top->definition == UINT32_MAX) return;
    const code_file *file = w->b.file;
    const uint32_t object = first_child(w, left, false), name = first_child(w, left, true);
    for (size_t k = 0; k < sizeof makers / sizeof *makers; k++) {
        if (strcmp(top->name, makers[k]) != 0 || object == name || name == UINT32_MAX || !is_name(w, name))
            continue;
        const node *o = &w->nodes[object], *a = &w->nodes[name];
        const size_t n = a->to - a->from;
        if (o->to - o->from != 4 || memcmp(w->text + o->from, objects[k], 4) != 0) continue;
        bool again = false;
        for (uint32_t d = type->definition != UINT32_MAX ? type->definition : top->definition;
             d < file->n_definitions && !again; d++)
            again = strlen(file->definitions[d].name) == n &&
                    strcmp(file->definitions[d].parent, type->name) == 0 &&
                    memcmp(file->definitions[d].name, w->text + a->from, n) == 0;
        if (!again && file->n_definitions - top->definition < MAX_ATTRIBUTES)
            define(w, i, name, type->name, "field", UINT32_MAX, false, UINT32_MAX);
    }
}

/* A name that gets a value: a function when the value is one, else a variable outside functions. */
static void define_variable(walk *w, uint32_t i, const code_node_row *row)
{
    static const uint8_t names[] = {FIELD_NAME, FIELD_LEFT, FIELD_KEY, FIELD_PROPERTY, FIELD_DECLARATOR};
    uint32_t left = UINT32_MAX;
    for (size_t f = 0; f < sizeof names && left == UINT32_MAX; f++) left = child(w, i, names[f]);
    if (left == UINT32_MAX) left = first_child(w, i, false);
    if (left == UINT32_MAX) return;
    uint32_t value = child(w, i, FIELD_VALUE);
    if (value == UINT32_MAX) value = child(w, i, FIELD_RIGHT);
    if (value != UINT32_MAX && (row_of(w, value)->flags & NODE_LITERAL)) {
        uint32_t name = left;
        const char *parent = enclosing_name(w);
        if (!is_name(w, left)) {
            name = child(w, left, FIELD_PROPERTY);
            if (name == UINT32_MAX || !is_name(w, name)) return;
            parent = qualifier(w, w->nodes[left].from, w->nodes[name].from);
            if (strcmp(parent, "exports") == 0 || strcmp(parent, "this") == 0) parent = enclosing_name(w);
        }
        define(w, i, name, parent,
            in_type(w)                         ? "method"
            : strcmp(row->what, "method") == 0 ? "method"
                                               : "function",
            child(w, value, FIELD_BODY), false, i);
        return;
    }
    if (w->n_functions != 0) define_attribute(w, i, left);
    if ((row->flags & NODE_IF_FUNCTION) || w->n_functions != 0) return;
    const char *what = in_type(w) && strcmp(row->what, "variable") == 0 ? "field" : row->what;
    const uint8_t field = w->nodes[left].field;
    for (uint32_t c = left; c < w->nodes[i].sub_end; c = w->nodes[c].sub_end)
        if (c == left || (field == FIELD_NAME && w->nodes[c].field == field)) {
            if (is_name(w, c)) define(w, i, c, enclosing_name(w), what, UINT32_MAX, false, UINT32_MAX);
        }
}

/* Rust: the last thing in a body, when it is an expression. */
static void add_tail(walk *w, uint32_t body)
{
    const uint32_t last = first_child(w, body, true);
    if (last == UINT32_MAX || row_of(w, last)->kind == CODE_RETURN) return;
    const char *type = type_of(w, last);
    if (strstr(type, "statement") != NULL || strstr(type, "declaration") != NULL ||
        strstr(type, "_item") != NULL)
        return;
    const uint32_t from = w->nodes[last].from;
    uint32_t to = first_block(w, last);
    if (to <= from) to = w->nodes[last].to;
    code_anchor a = {.kind = CODE_RETURN,
        .definition = innermost(w),
        .core_from = from,
        .full_from = from,
        .full_to = trim(w, from, to)};
    add_return(w, &a);
    if (a.core_to > a.full_to) a.core_to = a.full_to;
    code_builder_anchor(&w->b, &a);
}

static void define_plain(walk *w, uint32_t i, const code_node_row *row)
{
    const uint32_t body = body_of(w, i);
    if ((row->flags & NODE_NEEDS_BODY) && body == UINT32_MAX) return;
    uint32_t at = child(w, i, FIELD_NAME);
    if (at == UINT32_MAX) at = child(w, i, FIELD_DECLARATOR);
    named r = {.name = UINT32_MAX};
    if (at != UINT32_MAX)
        r = descend(w, at);
    else if (!(row->flags & NODE_NEEDS_BODY))
        r.name = first_name(w, i);
    if (r.name == UINT32_MAX) return;
    const char *what = row->what, *parent = enclosing_name(w);
    if (r.parent_to != 0) parent = qualifier(w, r.parent_from, r.parent_to);
    if (strcmp(what, "function") == 0 && (in_type(w) || r.parent_to != 0)) what = "method";
    const uint32_t receiver = child(w, i, FIELD_RECEIVER);
    if (receiver != UINT32_MAX) { /* Go: func (c *Command) Name() */
        for (uint32_t c = receiver; c < w->nodes[receiver].sub_end; c++)
            if (is_name(w, c) && strcmp(type_of(w, c), "type_identifier") == 0) {
                parent =
                    code_builder_name(&w->b, w->text + w->nodes[c].from, w->nodes[c].to - w->nodes[c].from);
                break;
            }
    }
    const uint32_t type = strcmp(what, "type") == 0 ? child(w, i, FIELD_TYPE) : UINT32_MAX;
    if (type != UINT32_MAX && strcmp(type_of(w, type), "struct_type") == 0) what = "struct";
    if (type != UINT32_MAX && strcmp(type_of(w, type), "interface_type") == 0) what = "interface";
    define(w, i, r.name, parent, what, body, (row->flags & NODE_DECLARATION) != 0, i);
    if (strcmp(what, "field") == 0) /* Go: a, b int */
        for (uint32_t c = w->nodes[r.name].sub_end; c < w->nodes[i].sub_end; c = w->nodes[c].sub_end)
            if (w->nodes[c].field == FIELD_NAME && is_name(w, c))
                define(w, i, c, parent, what, UINT32_MAX, false, UINT32_MAX);
    if ((row->flags & NODE_TAIL_RETURNS) && body != UINT32_MAX) add_tail(w, body);
}

static void define_node(walk *w, uint32_t i, const code_node_row *row)
{
    if (row->what == NULL) {
        if (row->flags & NODE_SCOPE) {
            uint32_t at = child(w, i, FIELD_TYPE);
            if (at == UINT32_MAX) at = child(w, i, FIELD_NAME);
            const uint32_t name = at != UINT32_MAX ? first_name(w, at) : UINT32_MAX;
            const bool of_type =
                child(w, i, FIELD_TYPE) != UINT32_MAX; /* impl; a namespace has a name only */
            const char *s = "";
            if (name != UINT32_MAX)
                s = code_builder_name(
                    &w->b, w->text + w->nodes[name].from, w->nodes[name].to - w->nodes[name].from);
            open_scope(w, w->nodes[i].sub_end, UINT32_MAX, of_type ? SCOPE_TYPE : SCOPE_PARENT, s);
        } else if (row->flags & NODE_LITERAL) {
            open_scope(w, w->nodes[i].sub_end, UINT32_MAX, SCOPE_FUNCTION, enclosing_name(w));
        }
        return;
    }
    if (row->flags & NODE_DECLARES)
        define_declarators(w, i, row);
    else if (row->flags & (NODE_VARIABLE | NODE_IF_FUNCTION))
        define_variable(w, i, row);
    else
        define_plain(w, i, row);
}

/* ---- anchors ---- */

static void add_call(walk *w, uint32_t i, code_anchor *a)
{
    const uint32_t arguments = child(w, i, FIELD_ARGUMENTS);
    uint32_t open = arguments != UINT32_MAX ? w->nodes[arguments].from : a->full_from;
    if (arguments == UINT32_MAX) { /* macro!(...), a command: up to its bracket or its first name */
        const uint32_t name = first_name(w, i);
        open = name != UINT32_MAX ? w->nodes[name].to : line_end(w, a->full_from, a->full_to);
        while (open < a->full_to && w->text[open] == '!') open++;
    }
    a->core_to = open;
    if (open < a->full_to && (w->text[open] == '(' || w->text[open] == '[' || w->text[open] == '{'))
        a->core_to = open + 1;
    /* A long chain in front of the name says little: begin at the last name. */
    if (open - a->full_from > 64 || line_end(w, a->full_from, open) != open ||
        memchr(w->text + a->full_from, '(', open - a->full_from) != NULL)
        for (uint32_t c = i + 1; c < w->nodes[i].sub_end && w->nodes[c].from < open && c - i < LOOK_AHEAD;
             c++)
            if (is_name(w, c) && w->nodes[c].to <= open) a->core_from = w->nodes[c].from;
    if (a->full_to < a->core_to) a->full_to = a->core_to;
}

static void add_control(walk *w, uint32_t i, code_anchor *a)
{
    uint32_t body = child(w, i, FIELD_CONSEQUENCE);
    if (body == UINT32_MAX) body = child(w, i, FIELD_BODY);
    const uint32_t condition = child(w, i, FIELD_CONDITION);
    if (body == UINT32_MAX) {
        const uint32_t last = first_child(w, i, true);
        if (last != UINT32_MAX && last != condition && strstr(type_of(w, last), "statement") != NULL)
            body = last;
    }
    if (body != UINT32_MAX && condition != UINT32_MAX && w->nodes[condition].from > w->nodes[body].from) {
        a->core_from = a->full_from = w->nodes[condition].from; /* do ... while (x) */
        a->core_to = a->full_to = w->nodes[condition].to;
        return;
    }
    if (body != UINT32_MAX && w->nodes[body].from < a->full_to) a->full_to = w->nodes[body].from;
    a->full_to = trim(w, a->full_from, a->full_to);
    a->core_to =
        condition != UINT32_MAX || body != UINT32_MAX ? a->full_to : line_end(w, a->full_from, a->full_to);
}

static void add_assign(walk *w, uint32_t i, code_anchor *a)
{
    uint32_t value = child(w, i, FIELD_VALUE);
    if (value == UINT32_MAX) value = child(w, i, FIELD_RIGHT);
    if (value != UINT32_MAX && w->nodes[value].from > a->full_from)
        a->core_to = trim(w, a->full_from, w->nodes[value].from);
    else
        a->core_to = line_end(w, a->full_from, a->full_to);
}

static void add_anchor(walk *w, uint32_t i, code_kind kind)
{
    const node *at = &w->nodes[i];
    code_anchor a = {.kind = kind, .definition = innermost(w), .core_from = at->from, .full_from = at->from};
    a.full_to = first_block(w, i);
    if (a.full_to <= a.full_from) a.full_to = at->to;
    a.full_to = trim(w, a.full_from, a.full_to);
    if (kind == CODE_CALL)
        add_call(w, i, &a);
    else if (kind == CODE_CONTROL)
        add_control(w, i, &a);
    else if (kind == CODE_ASSIGN)
        add_assign(w, i, &a);
    else
        add_return(w, &a);
    if (a.core_to > a.full_to) a.core_to = a.full_to;
    code_builder_anchor(&w->b, &a);
}

code_file *code_parse_tree(const code_grammar *g, const char *text, size_t n)
{
    TSParser *parser = ts_parser_new();
    if (parser == NULL) return NULL;
    TSTree *tree = NULL;
    if (ts_parser_set_language(parser, g->language)) {
        ts_parser_set_timeout_micros(parser, PARSE_MICROSECONDS);
        tree = ts_parser_parse_string(parser, NULL, n != 0 ? text : "", (uint32_t)n);
    }
    ts_parser_delete(parser);
    if (tree == NULL) return NULL;
    walk w = {.g = g, .text = text, .n_bytes = (uint32_t)n};
    code_builder_begin(&w.b, g->name, text, n);
    flatten(&w, tree);
    ts_tree_delete(tree);
    for (uint32_t i = 0; i < w.n; i++) {
        while (w.n_scopes != 0 && i >= w.scopes[w.n_scopes - 1].sub_end)
            if (w.scopes[--w.n_scopes].kind == SCOPE_FUNCTION) w.n_functions--;
        const code_node_row *row = row_of(&w, i);
        if (row->kind >= 0) add_anchor(&w, i, (code_kind)row->kind);
        if (row->what != NULL || row->flags != 0) define_node(&w, i, row);
    }
    free(w.nodes);
    free(w.scopes);
    return code_builder_end(&w.b);
}

#endif
