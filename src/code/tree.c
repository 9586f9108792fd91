/*
 * Parses with tree-sitter and flattens: one pass of a cursor, 24 bytes a named node. The parser lives for one
 * call; time is a net, what is parsed at all is decided by size (parse.c). Any thread.
 */
#include "code/tree.h"

#ifdef KVIST_HAVE_TREE_SITTER

#include <stdlib.h>
#include <string.h>

/*
 * The net, many times what a text takes. It grows with the length, since some grammars never end on a little
 * text (Lua's on a file of one word), and that is not worth five seconds. Whole seconds: tree-sitter adds the
 * rest of one to a clock's nanoseconds without a carry (mended by its pull request 1990, behind 0.20.7), and
 * a parse that meets the turn of a second ends there.
 */
enum {
    PARSE_BYTES_A_SECOND = 250000,
    LOOK_AHEAD = 4096,
    MOST_PARSERS = 16, /* made until one's scanner settles (is_settled) */
    SAME_LEAST = 64    /* bytes of a node that are worth a look at the older ones */
};

/* ---- flatten ---- */

/*
 * The older node of a kind and extent that the edit is neither in nor next to; NULL: none. *at: of the older
 * nodes the first that may come; like the new ones they are in the order of their beginnings, outer ones
 * first.
 */
static const code_node *find_same(
    const code_earlier *e, uint32_t *at, uint32_t from, uint32_t to, TSSymbol symbol)
{
    if (to - from < SAME_LEAST || (to >= e->from && from <= e->to)) return NULL;
    const uint32_t moved = from > e->to ? e->to - e->old_to : 0;
    const code_node *n = e->nodes;
    from -= moved;
    to -= moved;
    while (*at < e->n && (n[*at].from < from || (n[*at].from == from && n[*at].to > to))) ++*at;
    for (uint32_t i = *at; i < e->n && n[i].from == from && n[i].to == to; i++)
        if (n[i].symbol == symbol) return n[i].is_wrong ? NULL : &n[i];
    return NULL;
}

/* All of an older node in the place of `top`, which has its parent, its field and its bytes. */
static void copy_same(code_tree *t, size_t *cap, const code_earlier *e, const code_node *same, code_node top)
{
    const uint32_t first = (uint32_t)(same - e->nodes), n = same->sub_end - first, shift = t->n - first;
    base_grow(&t->nodes, cap, (size_t)t->n + n, sizeof *t->nodes);
    for (uint32_t i = 0; i < n; i++) {
        code_node *to = &t->nodes[t->n + i];
        *to = same[i];
        to->from += top.from - same->from;
        to->to += top.from - same->from;
        to->sub_end += shift;
        if (to->parent != UINT32_MAX) to->parent += shift;
        if (to->prev != UINT32_MAX) to->prev += shift;
    }
    top.sub_end = t->n + n;
    t->nodes[t->n] = top;
    t->n += n;
}

/* The nodes above the one that is looked at. */
typedef struct open_node {
    uint32_t index, last; /* last: newest child; index UINT32_MAX: an anonymous node */
} open_node;

/* What flatten has under way. */
typedef struct flattening {
    const code_earlier *earlier; /* NULL: no older node may be copied */
    uint32_t older;              /* find_same's place */
    size_t cap, cap_open, depth; /* of the tree's nodes; of open */
    open_node *open;
    bool has_error;
} flattening;

static void count_error(code_tree *t, TSNode at)
{
    if (ts_node_symbol(at) != UINT16_MAX && !ts_node_is_missing(at)) return;
    t->n_errors++;
    if (t->error_line == 0) t->error_line = ts_node_start_point(at).row + 1;
}

/* Go's grammar takes statements at the top of a file ("\"unsafe\"" between two functions), and its compiler takes none there. */
static void count_stray(code_tree *t, TSNode at)
{
    static const char *const types[] = {"package_clause", "import_declaration", "function_declaration",
        "method_declaration", "type_declaration", "const_declaration", "var_declaration", "comment"};
    if (strcmp(t->g->name, "go") != 0 || ts_node_symbol(at) == UINT16_MAX) return;
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (!strcmp(ts_node_type(at), types[i])) return;
    t->n_errors++;
    if (t->error_line == 0) t->error_line = ts_node_start_point(at).row + 1;
}

/* Puts a named node behind the others, or all of an older one that is the same; true: with its children. */
static bool add_node(code_tree *t, flattening *x, TSNode at, TSFieldId field)
{
    uint32_t from = ts_node_start_byte(at), to = ts_node_end_byte(at);
    if (to > t->n_bytes) to = t->n_bytes;
    if (from > to) from = to;
    code_node node = {.from = from,
        .to = to,
        .sub_end = t->n + 1,
        .parent = UINT32_MAX,
        .prev = UINT32_MAX,
        .symbol = ts_node_symbol(at),
        .field = field <= t->g->n_fields ? t->g->field_of[field] : FIELD_NONE,
        .is_wrong = x->has_error && ts_node_has_error(at)};
    if (x->depth != 0) {
        open_node *above = &x->open[x->depth - 1];
        node.parent = above->index;
        node.prev = above->last;
        above->last = t->n;
    }
    const code_node *same =
        x->earlier && !node.is_wrong ? find_same(x->earlier, &x->older, from, to, node.symbol) : NULL;
    if (same != NULL) {
        copy_same(t, &x->cap, x->earlier, same, node);
    } else {
        base_grow(&t->nodes, &x->cap, (size_t)t->n + 1, sizeof *t->nodes);
        t->nodes[t->n++] = node;
    }
    return same != NULL;
}

/* To the next node that is no child of the one before; false: that was the last one. */
static bool go_on(code_tree *t, flattening *x, TSTreeCursor *cursor)
{
    while (!ts_tree_cursor_goto_next_sibling(cursor)) {
        if (x->depth == 0 || !ts_tree_cursor_goto_parent(cursor)) return false;
        x->depth--;
        const uint32_t index = x->open[x->depth].index;
        if (index != UINT32_MAX) t->nodes[index].sub_end = t->n;
    }
    return true;
}

static void flatten(code_tree *t, TSTree *tree, const code_earlier *earlier)
{
    const TSNode root = ts_tree_root_node(tree);
    flattening x = {
        .earlier = earlier && earlier->nodes ? earlier : NULL, .has_error = ts_node_has_error(root)};
    TSTreeCursor cursor = ts_tree_cursor_new(root);
    for (bool more = true; more;) {
        const TSNode at = ts_tree_cursor_current_node(&cursor);
        const bool is_named = ts_node_is_named(at);
        const uint32_t index = is_named ? t->n : UINT32_MAX;
        if (x.has_error) count_error(t, at);
        if (is_named && x.depth == 1) count_stray(t, at);
        const bool is_whole = is_named && add_node(t, &x, at, ts_tree_cursor_current_field_id(&cursor));
        if (!is_whole && ts_tree_cursor_goto_first_child(&cursor)) {
            base_grow(&x.open, &x.cap_open, x.depth + 1, sizeof *x.open);
            x.open[x.depth++] = (open_node){index, UINT32_MAX};
        } else {
            more = go_on(t, &x, &cursor);
        }
    }
    ts_tree_cursor_delete(&cursor);
    free(x.open);
}

/* ---- reading the flat array ---- */

const code_node_row *code_tree_row(const code_tree *t, uint32_t i)
{
    static const code_node_row none = {.kind = -1};
    const uint16_t symbol = t->nodes[i].symbol;
    const uint8_t r = symbol < t->g->n_symbols ? t->g->row_of[symbol] : 0;
    return r != 0 ? &t->g->rows[r - 1] : &none;
}

/* `return 1` is a command in bash, `raise "x"` a call in Ruby: the name says what it does. */
static code_flow flow_of_name(const code_tree *t, uint32_t i)
{
    static const struct {
        const char *name;
        code_flow flow;
    } jumps[] = {{"return", FLOW_RETURN}, {"exit", FLOW_RETURN}, {"raise", FLOW_RETURN},
        {"abort", FLOW_RETURN}, {"throw", FLOW_RETURN}, {"break", FLOW_BREAK}, {"continue", FLOW_CONTINUE}};
    const code_node *a = &t->nodes[i];
    for (size_t j = 0; j < sizeof jumps / sizeof *jumps; j++) {
        const size_t n = strlen(jumps[j].name);
        if (a->to - a->from < n || memcmp(t->text + a->from, jumps[j].name, n) != 0) continue;
        if (a->to - a->from == n || strchr(" \t\n(;", t->text[a->from + n]) != NULL) return jumps[j].flow;
    }
    return FLOW_NONE;
}

code_flow code_tree_flow(const code_tree *t, uint32_t i)
{
    const uint16_t symbol = t->nodes[i].symbol;
    if (symbol >= t->g->n_symbols) return FLOW_NONE;
    const code_flow flow = t->g->flow_of[symbol];
    if ((flow & FLOW_KINDS) == FLOW_NONE && (code_tree_row(t, i)->flags & NODE_NAMED_JUMP))
        return (code_flow)(flow | flow_of_name(t, i));
    return flow;
}

bool code_tree_is_name(const code_tree *t, uint32_t i)
{
    const code_node *a = &t->nodes[i];
    return a->symbol < t->g->n_symbols && t->g->is_name[a->symbol] && a->sub_end == i + 1;
}

const char *code_tree_type(const code_tree *t, uint32_t i)
{
    const char *name = ts_language_symbol_name(t->g->language, t->nodes[i].symbol);
    return name != NULL ? name : "";
}

uint32_t code_tree_child(const code_tree *t, uint32_t i, uint8_t field)
{
    for (uint32_t c = i + 1; c < t->nodes[i].sub_end; c = t->nodes[c].sub_end)
        if (t->nodes[c].field == field) return c;
    return UINT32_MAX;
}

uint32_t code_tree_first(const code_tree *t, uint32_t i, bool last)
{
    uint32_t found = UINT32_MAX;
    for (uint32_t c = i + 1; c < t->nodes[i].sub_end; c = t->nodes[c].sub_end) {
        if (code_tree_row(t, c)->flags & NODE_COMMENT) continue;
        found = c;
        if (!last) break;
    }
    return found;
}

uint32_t code_tree_name(const code_tree *t, uint32_t i)
{
    const uint32_t end = t->nodes[i].sub_end;
    for (uint32_t c = i; c < end && c - i < LOOK_AHEAD; c++)
        if (code_tree_is_name(t, c)) return c;
    return UINT32_MAX;
}

uint32_t code_tree_block(const code_tree *t, uint32_t i)
{
    const uint32_t end = t->nodes[i].sub_end;
    for (uint32_t c = i + 1; c < end && c - i < LOOK_AHEAD; c++)
        if (code_tree_row(t, c)->flags & NODE_BLOCK) return t->nodes[c].from;
    return t->nodes[i].to;
}

uint32_t code_tree_body(const code_tree *t, uint32_t i)
{
    uint32_t body = code_tree_child(t, i, FIELD_BODY);
    if (body == UINT32_MAX) body = code_tree_child(t, i, FIELD_CONSEQUENCE);
    for (uint32_t c = i + 1; body == UINT32_MAX && c < t->nodes[i].sub_end; c = t->nodes[c].sub_end)
        if (code_tree_row(t, c)->flags & NODE_BLOCK) body = c;
    return body;
}

uint32_t code_tree_loop_body(const code_tree *t, uint32_t i)
{
    const uint32_t body = code_tree_body(t, i);
    if (body != UINT32_MAX) return body;
    const uint32_t last = code_tree_first(t, i, true);
    const bool is_clause = last != UINT32_MAX && strstr(code_tree_type(t, last), "clause") != NULL;
    return last != UINT32_MAX && t->nodes[last].field == FIELD_NONE && !is_clause ? last : UINT32_MAX;
}

/* Is child c part of a case's head? */
static bool is_case_head(const code_tree *t, uint32_t c)
{
    static const char *const words[] = {"pattern", "label", "guard", "if_clause", "condition", "_type"};
    const uint8_t field = t->nodes[c].field;
    if (field == FIELD_BODY || field == FIELD_CONSEQUENCE) return false;
    if (field == FIELD_VALUE) return strcmp(t->g->name, "rust") != 0; /* there it is what the arm gives */
    if (field == FIELD_PATTERN || field == FIELD_CONDITION || field == FIELD_TYPE ||
        field == FIELD_COMMUNICATION)
        return true;
    const char *type = code_tree_type(t, c);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strstr(type, words[i]) != NULL) return true;
    return false;
}

uint32_t code_tree_case_body(const code_tree *t, uint32_t i)
{
    for (uint32_t c = i + 1; c < t->nodes[i].sub_end; c = t->nodes[c].sub_end)
        if (!(code_tree_row(t, c)->flags & NODE_COMMENT) && !is_case_head(t, c)) return c;
    return UINT32_MAX;
}

uint32_t code_tree_head(const code_tree *t, uint32_t i)
{
    const unsigned kind = code_tree_flow(t, i) & FLOW_KINDS;
    uint32_t body = kind == FLOW_CASE                      ? code_tree_case_body(t, i)
                    : kind == FLOW_LOOP || kind == FLOW_DO ? code_tree_loop_body(t, i)
                                                           : code_tree_body(t, i);
    for (uint32_t c = i + 1; body == UINT32_MAX && c < t->nodes[i].sub_end; c = t->nodes[c].sub_end)
        if ((code_tree_flow(t, c) & FLOW_KINDS) == FLOW_CASE) body = c;
    if (body == UINT32_MAX && kind == FLOW_IF) { /* bash: what is behind the test */
        const uint32_t first = code_tree_first(t, i, false);
        if (first != UINT32_MAX && t->nodes[first].sub_end < t->nodes[i].sub_end)
            body = t->nodes[first].sub_end;
    }
    return body != UINT32_MAX ? t->nodes[body].from : t->nodes[i].to;
}

uint32_t code_tree_line_end(const code_tree *t, uint32_t from, uint32_t to)
{
    const char *end = to > from ? memchr(t->text + from, '\n', to - from) : NULL;
    return end != NULL ? (uint32_t)(end - t->text) : to;
}

uint32_t code_tree_trim(const code_tree *t, uint32_t from, uint32_t to)
{
    while (to > from && memchr(" \t\r\n", t->text[to - 1], 4) != NULL) to--;
    return to;
}

/*
 * What a grammar's scanner has to read without an error before it is trusted. Lua's takes memory from malloc and never sets
 * it: where a small number lies there by chance the scanner believes to be inside a string or a comment, and a right file has
 * an error. Behind this text it is outside of both, whatever it began with.
 */
static const struct {
    const char *language, *text;
} probes[] = {{"lua", "local a = 'b' -- c\nlocal d = [[e]]\n"}};

static bool is_settled(TSParser *parser, const char *language)
{
    for (size_t i = 0; i < sizeof probes / sizeof *probes; i++) {
        if (strcmp(language, probes[i].language) != 0) continue;
        TSTree *tree = ts_parser_parse_string(parser, NULL, probes[i].text, (uint32_t)strlen(probes[i].text));
        const bool is_good = tree != NULL && !ts_node_has_error(ts_tree_root_node(tree));
        if (tree != NULL) ts_tree_delete(tree);
        return is_good;
    }
    return true;
}

/* NULL: no memory, a grammar of another ABI, or a scanner that never settles. Freed with ts_parser_delete. */
static TSParser *make_parser(const code_grammar *g)
{
    TSParser *tried[MOST_PARSERS];
    uint32_t n = 0;
    bool is_good = false;
    while (!is_good && n < MOST_PARSERS && (tried[n] = ts_parser_new()) != NULL) {
        TSParser *parser = tried[n++];
        if (!ts_parser_set_language(parser, g->language)) break;
        is_good = is_settled(parser, g->name);
    }
    /* The others are held until now: what is freed would be given out again, with the same numbers in it. */
    for (uint32_t i = 0; i + (is_good ? 1 : 0) < n; i++) ts_parser_delete(tried[i]);
    return is_good ? tried[n - 1] : NULL;
}

bool code_tree_make(const code_grammar *g, const char *text, size_t n, code_earlier *earlier, code_tree *ret)
{
    TSParser *parser = make_parser(g);
    if (parser == NULL) return false;
    ts_parser_set_timeout_micros(parser, (1 + (uint64_t)n / PARSE_BYTES_A_SECOND) * 1000000);
    TSTree *tree = ts_parser_parse_string(
        parser, earlier != NULL ? earlier->tree : NULL, n != 0 ? text : "", (uint32_t)n);
    ts_parser_delete(parser);
    if (tree == NULL) return false;
    *ret = (code_tree){.g = g, .text = text, .n_bytes = (uint32_t)n};
    flatten(ret, tree, earlier);
    if (earlier != NULL) {
        if (earlier->tree != NULL) ts_tree_delete(earlier->tree);
        earlier->tree = tree;
    } else {
        ts_tree_delete(tree);
    }
    return true;
}

void code_tree_free(code_tree *t)
{
    free(t->nodes);
    *t = (code_tree){0};
}

void code_tree_leave(code_tree *t, code_earlier *to)
{
    if (to != NULL) {
        free(to->nodes);
        to->nodes = t->nodes;
        to->n = t->n;
        t->nodes = NULL;
    }
    code_tree_free(t);
}

void code_earlier_free(code_earlier *e)
{
    if (e->tree != NULL) ts_tree_delete(e->tree);
    free(e->nodes);
    *e = (code_earlier){0};
}

#endif
