/*
 * A syntax tree -> definitions and anchors. The tree is flattened once, in pre-order, into an array (children
 * of i: c = i + 1; while c < sub_end; c = sub_end of c), and everything is read off that array with the row
 * of each node type: no recursion, so that a file nested 20,000 deep costs memory, not stack. The tree is
 * freed before the walk.
 *
 * Anchors have two extents (docs/kv.md, "Structure"): core is what to keep first, full the whole expression
 * or statement, stopping in front of any nested body. Called by code_parse from any thread; a parser a call.
 */
#include "code/tree.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "code/inactive.h"

enum {
    MAX_TREE_BYTES = 1 << 20,
    PROBE_ABOVE = 1 << 18, /* larger files are tried on their beginning first */
    PROBE_BYTES = 1 << 16,
    PROBE_ERRORS = PROBE_BYTES / 256,
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

/* Why no grammar should be asked; NULL: it may be. */
static const char *why_not(const char *language, const char *text, size_t n)
{
    if (language == NULL) return "its language is not known";
    if (strcmp(language, "markdown") == 0) return "its headings say it all";
    if (n > MAX_TREE_BYTES) return "it is larger than 1 MiB";
    if (is_minified(text, n)) return "its lines are too long, as of minified or generated text";
    return NULL;
}

#ifdef KVIST_HAVE_TREE_SITTER
static const char no_grammar[] = "no grammar of its language was found";

/*
 * Is this a text of that language at all? A megabyte of random punctuation takes a grammar ten seconds, its
 * beginning one.
 */
static bool is_source(const code_grammar *grammar, const char *text)
{
    code_tree probe;
    if (!code_tree_make(grammar, text, PROBE_BYTES, NULL, &probe)) return false;
    const bool good = probe.n_errors <= PROBE_ERRORS;
    code_tree_free(&probe);
    return good;
}

/* NULL, and why: not to be read by a grammar, or there is none. */
static code_file *parse_with_grammar(code_grammars *g, const char *language, const char *text, size_t n,
    code_graph *graph, code_earlier *earlier, const char **ret_why)
{
    *ret_why = why_not(language, text, n);
    const code_grammar *grammar = *ret_why == NULL ? code_grammar_get(g, language) : NULL;
    code_tree tree;
    if (*ret_why != NULL) return NULL;
    if (grammar == NULL)
        *ret_why = no_grammar;
    else if (n > PROBE_ABOVE && !is_source(grammar, text))
        *ret_why = "its beginning is no text of its language";
    else if (!code_tree_make(grammar, text, n, earlier, &tree))
        *ret_why = "its grammar took too long or too much memory";
    if (*ret_why != NULL) return NULL;
    code_file *f = code_parse_tree(&tree);
    if (graph != NULL) code_graph_build(&tree, f, graph);
    code_tree_leave(&tree, earlier);
    return f;
}
#endif

/*
 * The tree's reading, or the lexical one where that sees more: a grammar without a table, whose names told
 * nothing.
 */
static code_file *choose(
    code_file *f, const char *why, const char *language, const char *path, const char *text, size_t n)
{
    if (f != NULL && (f->n_definitions != 0 || code_table_of(language) != NULL)) return f;
    code_file *lexical = code_parse_lexical(language, path, text, n);
    lexical->why_lexical = why != NULL ? why : "its grammar has no table, and words say more";
    if (f != NULL && lexical->n_definitions == 0) {
        code_file_free(lexical);
        return f;
    }
    code_file_free(f);
    return lexical;
}

code_file *code_parse_graph(
    code_grammars *g, const char *path, const char *text, size_t n, code_graph **ret_graph)
{
    code_graph *graph = ret_graph != NULL ? base_xcalloc(1, sizeof *graph) : NULL;
    if (ret_graph != NULL) *ret_graph = graph;
    if (n >= UINT32_MAX) n = 0;
    const char *language = code_language(path, text, n), *why = NULL;
    code_file *f = NULL;
#ifdef KVIST_HAVE_TREE_SITTER
    f = parse_with_grammar(g, language, text, n, graph, NULL, &why);
#else
    (void)g;
    why = why_not(language, text, n);
    if (why == NULL) why = "this program was built without tree-sitter";
#endif
    f = choose(f, why, language, path, text, n);
    if (f->language == NULL && graph != NULL) code_graph_clear(graph);
    return f;
}

code_file *code_parse(code_grammars *g, const char *path, const char *text, size_t n)
{
    return code_parse_graph(g, path, text, n, NULL);
}

uint64_t code_reader_tag(
    code_grammars *g, const char *path, const char *text, size_t n, const char **ret_language)
{
    const char *language = code_language(path, text, n);
    const char *named = language != NULL ? language : "";
    *ret_language = NULL;
    uint64_t tag = base_hash64(named, strlen(named), CODE_READER_VERSION);
#ifdef KVIST_HAVE_TREE_SITTER
    const code_grammar *grammar = code_grammar_get(g, language);
    if (grammar != NULL) {
        *ret_language = grammar->name;
        tag ^= grammar->tag;
    }
#else
    (void)g;
#endif
    return tag;
}

/* ---- a file that is being edited ---- */

#ifdef KVIST_HAVE_TREE_SITTER
struct code_kept {
    code_earlier earlier;
    char *text;
    uint32_t n;
    const char *language; /* of the grammar, lives as long as it */
};

/* Row and byte column of offset `at`, which is not before `from`, whose point p is. */
static TSPoint point_behind(TSPoint p, const char *text, uint32_t from, uint32_t at)
{
    uint32_t line = from - p.column;
    for (const char *s = text + from; (s = memchr(s, '\n', (size_t)(text + at - s))) != NULL;) {
        s++;
        p.row++;
        line = (uint32_t)(s - text);
    }
    p.column = at - line;
    return p;
}

/* Tells the tree what changed: everything between the common beginning and the common end. */
static void edit_tree(code_kept *k, const char *text, uint32_t n)
{
    const uint32_t least = n < k->n ? n : k->n;
    uint32_t head = 0, tail = 0;
    while (head < least && text[head] == k->text[head]) head++;
    while (tail < least - head && text[n - 1 - tail] == k->text[k->n - 1 - tail]) tail++;
    const TSPoint start = point_behind((TSPoint){0, 0}, text, 0, head);
    const TSInputEdit edit = {.start_byte = head,
        .old_end_byte = k->n - tail,
        .new_end_byte = n - tail,
        .start_point = start,
        .old_end_point = point_behind(start, k->text, head, k->n - tail),
        .new_end_point = point_behind(start, text, head, n - tail)};
    ts_tree_edit(k->earlier.tree, &edit);
    k->earlier.from = edit.start_byte;
    k->earlier.old_to = edit.old_end_byte;
    k->earlier.to = edit.new_end_byte;
}

void code_kept_free(code_kept *k)
{
    if (k == NULL) return;
    code_earlier_free(&k->earlier);
    free(k->text);
    free(k);
}

code_file *code_parse_edited(code_grammars *g, const char *path, const char *text, size_t n, code_kept **kept)
{
    if (n >= UINT32_MAX) n = 0;
    const char *language = code_language(path, text, n), *why = why_not(language, text, n);
    const code_grammar *grammar = code_grammar_get(g, language);
    code_kept *k = *kept;
    if (k != NULL && (grammar == NULL || k->language != grammar->name)) {
        code_kept_free(k);
        k = NULL;
    }
    if (k == NULL && grammar != NULL) {
        k = base_xcalloc(1, sizeof *k);
        k->language = grammar->name;
    } else if (k != NULL) {
        edit_tree(k, text, (uint32_t)n);
    }
    if (k == NULL && why == NULL) why = no_grammar;
    code_file *f = k != NULL ? parse_with_grammar(g, language, text, n, NULL, &k->earlier, &why) : NULL;
    if (f == NULL || n == 0) {
        code_kept_free(k);
        k = NULL;
    } else {
        free(k->text);
        k->text = base_xmalloc(n);
        memcpy(k->text, text, n);
        k->n = (uint32_t)n;
    }
    *kept = k;
    return choose(f, why, language, path, text, n);
}
#else
void code_kept_free(code_kept *k)
{
    (void)k;
}

code_file *code_parse_edited(code_grammars *g, const char *path, const char *text, size_t n, code_kept **kept)
{
    *kept = NULL;
    return code_parse(g, path, text, n);
}
#endif

#ifdef KVIST_HAVE_TREE_SITTER

typedef enum scope_kind { SCOPE_FUNCTION, SCOPE_TYPE, SCOPE_PARENT } scope_kind;

typedef struct scope {
    uint32_t sub_end, definition; /* UINT32_MAX: no definition of its own */
    scope_kind kind;
    const char *name;
} scope;

typedef struct walk {
    const code_tree *t;
    scope *scopes;
    size_t n_scopes, cap_scopes;
    uint32_t n_functions;    /* of the scopes that are open */
    code_inactive *inactive; /* where nothing is defined */
    size_t n_inactive;
    code_builder b;
} walk;

/* ---- extents ---- */

static void add_return(walk *w, code_anchor *a)
{
    uint32_t to = code_tree_line_end(w->t, a->full_from, a->full_to);
    if (to - a->full_from > 32) {
        const uint32_t least = a->full_from + 12;
        to = a->full_from + 32;
        size_t pos, from, end; /* not inside a word */
        while (to > least && (pos = to - 1, code_next_identifier(w->t->text, to + 1, &pos, &from, &end)) &&
               from == to - 1 && end == to + 1u)
            to--;
    }
    a->core_to = code_tree_trim(w->t, a->full_from, to);
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
        if (code_tree_is_name(w->t, i)) {
            r.name = i;
            return r;
        }
        const char *type = code_tree_type(w->t, i);
        if (strcmp(type, "function_declarator") == 0) r.is_function = true;
        if (r.is_function && strcmp(type, "parenthesized_declarator") == 0) r.is_pointer = true;
        uint32_t next = code_tree_child(w->t, i, FIELD_DECLARATOR);
        if (next == UINT32_MAX) {
            next = code_tree_child(w->t, i, FIELD_NAME);
            if (next != UINT32_MAX && w->t->nodes[next].from > w->t->nodes[i].from) {
                r.parent_from = w->t->nodes[i].from;
                r.parent_to = w->t->nodes[next].from;
            }
        }
        if (next == UINT32_MAX) next = code_tree_first(w->t, i, false);
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
    for (size_t i = from; code_next_identifier(w->t->text, to, &pos, &a, &b);) {
        for (; i < a; i++) angle += w->t->text[i] == '<' ? 1 : w->t->text[i] == '>' ? -1 : 0;
        if (angle > 0) continue;
        if (b - a == 9 && memcmp(w->t->text + a, "prototype", 9) == 0) continue;
        best_a = a;
        best_b = b;
    }
    return best_b > best_a ? code_builder_name(&w->b, w->t->text + best_a, best_b - best_a) : "";
}

/*
 * The node that the definition starts and ends with: decorators, export, a declaration around a single name.
 */
static uint32_t outermost(const walk *w, uint32_t i)
{
    for (int depth = 0; depth < 8; depth++) {
        const uint32_t p = w->t->nodes[i].parent;
        if (p == UINT32_MAX) break;
        const unsigned flags = code_tree_row(w->t, p)->flags;
        if (!(flags & (NODE_WRAPS | NODE_WRAPS_ONE)) || code_tree_first(w->t, p, true) != i) break;
        if ((flags & NODE_WRAPS_ONE) && (flags & NODE_WRAPS) == 0) {
            /* Types and modifiers may stand in front (Java), other names may not. */
            bool alone = true;
            for (uint32_t c = p + 1; c < w->t->nodes[p].sub_end; c = w->t->nodes[c].sub_end)
                if (c != i && w->t->nodes[c].symbol == w->t->nodes[i].symbol) alone = false;
            if (!alone) break;
        }
        i = p;
    }
    return i;
}

static uint32_t body_of(const walk *w, uint32_t i)
{
    uint32_t body = code_tree_child(w->t, i, FIELD_BODY);
    if (body != UINT32_MAX) return body;
    const uint32_t type =
        code_tree_child(w->t, i, FIELD_TYPE); /* Go: type_spec > struct_type > field_declaration_list */
    if (type != UINT32_MAX)
        for (uint32_t c = type + 1; c < w->t->nodes[type].sub_end; c = w->t->nodes[c].sub_end)
            if (code_tree_row(w->t, c)->flags & NODE_BLOCK) return c;
    return UINT32_MAX;
}

static void add_signature(walk *w, const code_definition *d, uint32_t index, uint32_t node_from)
{
    static const char *const none[] = {"variable", "field", "constant", "section"};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++)
        if (strcmp(d->what, none[i]) == 0) return;
    uint32_t to = d->body_to != 0 && d->body_from >= d->from ? d->body_from : d->to;
    if (d->body_to == 0 && !d->is_declaration) to = code_tree_line_end(w->t, node_from, d->to);
    if (d->body_to != 0 && d->body_from < d->to && w->t->text[d->body_from] == '{') to = d->body_from + 1;
    to = code_tree_trim(w->t, d->from, to);
    code_builder_anchor(&w->b, &(code_anchor){CODE_SIGNATURE, index, d->from, to, d->from, to});
}

/* C: where an #if cuts a function in two, the grammar takes "if (x) {" for a definition. */
static bool is_control_word(const walk *w, uint32_t name)
{
    static const char *const words[] = {"if", "for", "while", "switch", "return", "sizeof"};
    const code_node *at = &w->t->nodes[name];
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strlen(words[i]) == at->to - at->from &&
            memcmp(w->t->text + at->from, words[i], strlen(words[i])) == 0)
            return true;
    return false;
}

/* Writes the definition that node i is. `holder` is the node whose children lie inside it. */
static void define(walk *w, uint32_t i, uint32_t name, const char *parent, const char *what, uint32_t body,
    bool is_declaration, uint32_t holder)
{
    const code_node *at = &w->t->nodes[name];
    if (at->from == at->to) return; /* a MISSING name */
    if (code_inactive_at(w->inactive, w->n_inactive, at->from)) return;
    if (strcmp(what, "function") == 0 && is_control_word(w, name)) return; /* "if (x) { ... }" behind a cut */
    const uint32_t name_from = at->from + (w->t->text[at->from] == '#');   /* private in JavaScript */
    const uint32_t outer = outermost(w, i);
    code_definition d = {.name = code_builder_name(&w->b, w->t->text + name_from, at->to - name_from),
        .parent = parent,
        .what = what,
        .from = w->t->nodes[outer].from,
        .to = code_tree_trim(w->t, w->t->nodes[outer].from, w->t->nodes[outer].to),
        .name_from = name_from,
        .is_declaration = is_declaration};
    for (uint32_t p = w->t->nodes[outer].prev;
         p != UINT32_MAX && (code_tree_row(w->t, p)->flags & NODE_ATTRIBUTE); p = w->t->nodes[p].prev)
        d.from = w->t->nodes[p].from;
    /*
     * Around a broken place a wrapper may hold other definitions in front of this one: then it is not this
     * one's.
     */
    const code_file *file = w->b.file;
    if (file->n_definitions != 0 && d.from < file->definitions[file->n_definitions - 1].from)
        d.from = w->t->nodes[i].from;
    if (body != UINT32_MAX) {
        d.body_from = w->t->nodes[body].from;
        d.body_to = w->t->nodes[body].to;
    }
    const uint32_t index = code_builder_define(&w->b, &d);
    if (index == UINT32_MAX) return;
    add_signature(w, &d, index, w->t->nodes[i].from);
    const bool function = strcmp(what, "function") == 0 || strcmp(what, "method") == 0;
    if (holder != UINT32_MAX && (function || is_type(what)))
        open_scope(w, w->t->nodes[holder].sub_end, index, function ? SCOPE_FUNCTION : SCOPE_TYPE, d.name);
}

/* C and C++: one definition a declarator. */
static void define_declarators(walk *w, uint32_t i, const code_node_row *row)
{
    const bool is_typedef = strcmp(row->what, "typedef") == 0, is_field = strcmp(row->what, "field") == 0;
    uint32_t n = 0, body = UINT32_MAX, holder = UINT32_MAX;
    if (is_typedef) { /* of a struct: its body; without a name of its own its fields are the typedef's */
        const uint32_t type = code_tree_child(w->t, i, FIELD_TYPE);
        if (type != UINT32_MAX) body = code_tree_child(w->t, type, FIELD_BODY);
        if (body != UINT32_MAX && code_tree_child(w->t, type, FIELD_NAME) == UINT32_MAX) holder = i;
    }
    for (uint32_t c = i + 1; c < w->t->nodes[i].sub_end; c = w->t->nodes[c].sub_end) {
        if (w->t->nodes[c].field != FIELD_DECLARATOR) continue;
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

/*
 * `self.x = 1` in __init__, `this.x = 1` in a constructor: where these languages say which fields a class
 * has.
 */
static void define_attribute(walk *w, uint32_t i, uint32_t left)
{
    static const char *const makers[] = {"__init__", "constructor"};
    static const char *const objects[] = {"self", "this"};
    if (w->n_scopes < 2 || w->scopes[w->n_scopes - 2].kind != SCOPE_TYPE) return;
    const scope *top = &w->scopes[w->n_scopes - 1], *type = top - 1;
    if (top->definition == UINT32_MAX) return;
    const code_file *file = w->b.file;
    if (strstr(code_tree_type(w->t, left), "subscript") != NULL) return; /* this[name] */
    const uint32_t object = code_tree_first(w->t, left, false), name = code_tree_first(w->t, left, true);
    for (size_t k = 0; k < sizeof makers / sizeof *makers; k++) {
        if (strcmp(top->name, makers[k]) != 0 || object == name || name == UINT32_MAX ||
            !code_tree_is_name(w->t, name))
            continue;
        const code_node *o = &w->t->nodes[object], *a = &w->t->nodes[name];
        const size_t n = a->to - a->from;
        if (o->to - o->from != 4 || memcmp(w->t->text + o->from, objects[k], 4) != 0) continue;
        bool again = false;
        for (uint32_t d = type->definition != UINT32_MAX ? type->definition : top->definition;
             d < file->n_definitions && !again; d++)
            again = strlen(file->definitions[d].name) == n &&
                    strcmp(file->definitions[d].parent, type->name) == 0 &&
                    memcmp(file->definitions[d].name, w->t->text + a->from, n) == 0;
        if (!again && file->n_definitions - top->definition < MAX_ATTRIBUTES)
            define(w, i, name, type->name, "field", UINT32_MAX, false, UINT32_MAX);
    }
}

/* A name that gets a value: a function when the value is one, else a variable outside functions. */
static void define_variable(walk *w, uint32_t i, const code_node_row *row)
{
    static const uint8_t names[] = {FIELD_NAME, FIELD_LEFT, FIELD_KEY, FIELD_PROPERTY, FIELD_DECLARATOR};
    uint32_t left = UINT32_MAX;
    for (size_t f = 0; f < sizeof names && left == UINT32_MAX; f++) left = code_tree_child(w->t, i, names[f]);
    if (left == UINT32_MAX) left = code_tree_first(w->t, i, false);
    if (left == UINT32_MAX) return;
    uint32_t value = code_tree_child(w->t, i, FIELD_VALUE);
    if (value == UINT32_MAX) value = code_tree_child(w->t, i, FIELD_RIGHT);
    if (value != UINT32_MAX && (code_tree_row(w->t, value)->flags & NODE_LITERAL)) {
        uint32_t name = left;
        const char *parent = enclosing_name(w);
        if (!code_tree_is_name(w->t, left)) {
            name = code_tree_child(w->t, left, FIELD_PROPERTY);
            if (name == UINT32_MAX || !code_tree_is_name(w->t, name)) return;
            parent = qualifier(w, w->t->nodes[left].from, w->t->nodes[name].from);
            if (strcmp(parent, "exports") == 0 || strcmp(parent, "this") == 0) parent = enclosing_name(w);
        }
        define(w, i, name, parent,
            in_type(w)                         ? "method"
            : strcmp(row->what, "method") == 0 ? "method"
                                               : "function",
            code_tree_child(w->t, value, FIELD_BODY), false, i);
        return;
    }
    if (w->n_functions != 0) define_attribute(w, i, left);
    if ((row->flags & NODE_IF_FUNCTION) || w->n_functions != 0) return;
    const char *what = in_type(w) && strcmp(row->what, "variable") == 0 ? "field" : row->what;
    const uint8_t field = w->t->nodes[left].field;
    for (uint32_t c = left; c < w->t->nodes[i].sub_end; c = w->t->nodes[c].sub_end)
        if (c == left || (field == FIELD_NAME && w->t->nodes[c].field == field)) {
            if (code_tree_is_name(w->t, c))
                define(w, i, c, enclosing_name(w), what, UINT32_MAX, false, UINT32_MAX);
        }
}

static void add_implicit_return(walk *w, uint32_t i)
{
    const uint32_t from = w->t->nodes[i].from;
    uint32_t to = code_tree_block(w->t, i);
    if (to <= from) to = w->t->nodes[i].to;
    code_anchor a = {.kind = CODE_RETURN,
        .definition = innermost(w),
        .core_from = from,
        .full_from = from,
        .full_to = code_tree_trim(w->t, from, to)};
    add_return(w, &a);
    if (a.core_to > a.full_to) a.core_to = a.full_to;
    code_builder_anchor(&w->b, &a);
}

/*
 * Rust, Ruby: the last thing in a body, when it is an expression. `body`: the body, or the method that has
 * none.
 */
static void add_tail(walk *w, uint32_t body)
{
    uint32_t last = code_tree_first(w->t, body, true);
    if (last == UINT32_MAX) return;
    const int kind = code_tree_row(w->t, last)->kind; /* a match's arms speak for themselves */
    if (kind == CODE_RETURN || kind == CODE_CONTROL) return;
    if (w->t->nodes[last].field == FIELD_NAME || w->t->nodes[last].field == FIELD_PARAMETERS) return;
    const unsigned flow = code_tree_flow(w->t, last) & FLOW_KINDS;
    if (flow == FLOW_RETURN || flow == FLOW_HANDLER || flow == FLOW_FINALLY || flow == FLOW_ELSE) return;
    const char *type = code_tree_type(w->t, last);
    if (strstr(type, "statement") != NULL || strstr(type, "declaration") != NULL ||
        strstr(type, "_item") != NULL)
        return;
    add_implicit_return(w, last);
}

static void define_plain(walk *w, uint32_t i, const code_node_row *row)
{
    const uint32_t body = body_of(w, i);
    if ((row->flags & NODE_NEEDS_BODY) && body == UINT32_MAX) return;
    uint32_t at = code_tree_child(w->t, i, FIELD_NAME);
    if (at == UINT32_MAX) at = code_tree_child(w->t, i, FIELD_DECLARATOR);
    named r = {.name = UINT32_MAX};
    if (at != UINT32_MAX)
        r = descend(w, at);
    else if (!(row->flags & NODE_NEEDS_BODY))
        r.name = code_tree_name(w->t, i);
    if (r.name == UINT32_MAX) return;
    const char *what = row->what, *parent = enclosing_name(w);
    const uint32_t embedded = code_tree_child(w->t, i, FIELD_TYPE);
    if (at == UINT32_MAX && strcmp(what, "field") == 0 && embedded != UINT32_MAX &&
        strcmp(code_tree_type(w->t, embedded), "qualified_type") == 0) /* Go: struct { time.Time } */
        r.name = code_tree_child(w->t, embedded, FIELD_NAME);
    if (r.name == UINT32_MAX) return;
    if (r.parent_to != 0) parent = qualifier(w, r.parent_from, r.parent_to);
    if (strcmp(what, "function") == 0 && (in_type(w) || r.parent_to != 0)) what = "method";
    const uint32_t receiver = code_tree_child(w->t, i, FIELD_RECEIVER);
    if (receiver != UINT32_MAX) { /* Go: func (c *Command) Name() */
        for (uint32_t c = receiver; c < w->t->nodes[receiver].sub_end; c++)
            if (code_tree_is_name(w->t, c) && strcmp(code_tree_type(w->t, c), "type_identifier") == 0) {
                parent = code_builder_name(
                    &w->b, w->t->text + w->t->nodes[c].from, w->t->nodes[c].to - w->t->nodes[c].from);
                break;
            }
    }
    const uint32_t type = strcmp(what, "type") == 0 ? code_tree_child(w->t, i, FIELD_TYPE) : UINT32_MAX;
    if (type != UINT32_MAX && strcmp(code_tree_type(w->t, type), "struct_type") == 0) what = "struct";
    if (type != UINT32_MAX && strcmp(code_tree_type(w->t, type), "interface_type") == 0) what = "interface";
    const bool declares =
        (row->flags & NODE_DECLARATION) || (body == UINT32_MAX && (row->flags & NODE_MAY_DECLARE));
    define(w, i, r.name, parent, what, body, declares, i);
    if (strcmp(what, "field") == 0) /* Go: a, b int */
        for (uint32_t c = w->t->nodes[r.name].sub_end; c < w->t->nodes[i].sub_end; c = w->t->nodes[c].sub_end)
            if (w->t->nodes[c].field == FIELD_NAME && code_tree_is_name(w->t, c))
                define(w, i, c, parent, what, UINT32_MAX, false, UINT32_MAX);
    if (row->flags & NODE_TAIL_RETURNS) add_tail(w, body != UINT32_MAX ? body : i);
}

static void define_node(walk *w, uint32_t i, const code_node_row *row)
{
    if (row->what == NULL) {
        if (row->flags & NODE_SCOPE) {
            uint32_t at = code_tree_child(w->t, i, FIELD_TYPE);
            if (at == UINT32_MAX) at = code_tree_child(w->t, i, FIELD_NAME);
            const uint32_t name = at != UINT32_MAX ? code_tree_name(w->t, at) : UINT32_MAX;
            const bool of_type =
                code_tree_child(w->t, i, FIELD_TYPE) != UINT32_MAX; /* impl; a namespace has a name only */
            const char *s = "";
            if (name != UINT32_MAX)
                s = code_builder_name(&w->b, w->t->text + w->t->nodes[name].from,
                    w->t->nodes[name].to - w->t->nodes[name].from);
            open_scope(w, w->t->nodes[i].sub_end, UINT32_MAX, of_type ? SCOPE_TYPE : SCOPE_PARENT, s);
        } else if (row->flags & NODE_LITERAL) {
            const uint32_t body = code_tree_child(w->t, i, FIELD_BODY); /* x => x + 1 returns */
            if (body != UINT32_MAX && !(code_tree_row(w->t, body)->flags & NODE_BLOCK))
                add_implicit_return(w, body);
            open_scope(w, w->t->nodes[i].sub_end, UINT32_MAX, SCOPE_FUNCTION, enclosing_name(w));
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
    const uint32_t arguments = code_tree_child(w->t, i, FIELD_ARGUMENTS),
                   method = code_tree_child(w->t, i, FIELD_METHOD),
                   callee = code_tree_child(w->t, i, FIELD_FUNCTION);
    if (callee != UINT32_MAX && arguments != UINT32_MAX &&
        (code_tree_row(w->t, callee)->flags & NODE_LITERAL)) {
        a->core_from = a->full_from = w->t->nodes[arguments].from; /* func() {...}() */
        a->core_to = a->full_to = w->t->nodes[arguments].to;
        return;
    }
    uint32_t open = arguments != UINT32_MAX ? w->t->nodes[arguments].from : a->full_from;
    if (arguments == UINT32_MAX) { /* macro!(...), a command: up to its bracket or its first name */
        const uint32_t name = method != UINT32_MAX ? method : code_tree_name(w->t, i);
        open = name != UINT32_MAX ? w->t->nodes[name].to : code_tree_line_end(w->t, a->full_from, a->full_to);
        while (open < a->full_to && w->t->text[open] == '!') open++;
    }
    a->core_to = open;
    if (open < a->full_to && (w->t->text[open] == '(' || w->t->text[open] == '[' || w->t->text[open] == '{'))
        a->core_to = open + 1;
    /* A long chain in front of the name says little: begin at the last name. */
    if (open - a->full_from > 64 || code_tree_line_end(w->t, a->full_from, open) != open ||
        memchr(w->t->text + a->full_from, '(', open - a->full_from) != NULL)
        for (uint32_t c = i + 1;
             c < w->t->nodes[i].sub_end && w->t->nodes[c].from < open && c - i < LOOK_AHEAD; c++)
            if (code_tree_is_name(w->t, c) && w->t->nodes[c].to <= open) a->core_from = w->t->nodes[c].from;
    if (a->full_to < a->core_to) a->full_to = a->core_to;
}

static void add_control(walk *w, uint32_t i, code_anchor *a)
{
    const code_tree *t = w->t;
    const uint32_t condition = code_tree_child(t, i, FIELD_CONDITION);
    uint32_t body = code_tree_body(t, i);
    if (body == UINT32_MAX && (code_tree_flow(t, i) & FLOW_KINDS) == FLOW_DO)
        body = code_tree_loop_body(t, i);
    if (body != UINT32_MAX && condition != UINT32_MAX && t->nodes[condition].from > t->nodes[body].from) {
        uint32_t from = t->nodes[body].to; /* do ... while (x), x unless y */
        while (from < t->nodes[condition].from && strchr("; \t\r\n", t->text[from]) != NULL) from++;
        a->core_from = a->full_from = from;
        a->core_to = a->full_to = t->nodes[condition].to;
        return;
    }
    const uint32_t head = code_tree_head(t, i);
    if (head > a->full_from && head < a->full_to) a->full_to = head;
    a->full_to = code_tree_trim(t, a->full_from, a->full_to);
    if (head < t->nodes[i].to && a->full_to > a->full_from + 1 &&
        t->text[a->full_to - 1] == '{') /* switch x { */
        a->full_to = code_tree_trim(t, a->full_from, a->full_to - 1);
    a->core_to = condition != UINT32_MAX || head < t->nodes[i].to
                     ? a->full_to
                     : code_tree_line_end(t, a->full_from, a->full_to);
}

static bool is_step(const walk *w, const code_anchor *a)
{
    const char *text = w->t->text;
    if (a->full_to - a->full_from < 3) return false;
    return memcmp(text + a->full_from, "++", 2) == 0 || memcmp(text + a->full_from, "--", 2) == 0 ||
           memcmp(text + a->full_to - 2, "++", 2) == 0 || memcmp(text + a->full_to - 2, "--", 2) == 0;
}

/* false: it gives no value, as `int x;` in Java or `x: int` in Python. */
static bool add_assign(walk *w, uint32_t i, code_anchor *a)
{
    const code_tree *t = w->t;
    uint32_t value = code_tree_child(t, i, FIELD_VALUE);
    if (value == UINT32_MAX) value = code_tree_child(t, i, FIELD_RIGHT);
    if (value != UINT32_MAX && t->nodes[value].from > a->full_from) {
        a->core_to = code_tree_trim(t, a->full_from, t->nodes[value].from);
        return true;
    }
    const char *equals = memchr(t->text + a->full_from, '=', a->full_to - a->full_from);
    const bool step = is_step(w, a);
    if (!step && equals == NULL) return false;
    a->core_to = step ? code_tree_line_end(t, a->full_from, a->full_to) : (uint32_t)(equals - t->text) + 1;
    return true;
}

static void add_anchor(walk *w, uint32_t i, code_kind kind)
{
    const code_node *at = &w->t->nodes[i];
    const unsigned flags = code_tree_row(w->t, i)->flags;
    if ((flags & NODE_NAMED_JUMP) && (code_tree_flow(w->t, i) & FLOW_KINDS) != FLOW_NONE) kind = CODE_RETURN;
    code_anchor a = {.kind = kind, .definition = innermost(w), .core_from = at->from, .full_from = at->from};
    a.full_to = code_tree_block(w->t, i);
    if (a.full_to <= a.full_from) a.full_to = at->to;
    a.full_to = code_tree_trim(w->t, a.full_from, a.full_to);
    if ((flags & NODE_STEP) && !is_step(w, &a)) return;
    if (kind == CODE_CALL)
        add_call(w, i, &a);
    else if (kind == CODE_CONTROL)
        add_control(w, i, &a);
    else if (kind == CODE_ASSIGN && !add_assign(w, i, &a))
        return;
    else if (kind == CODE_RETURN)
        add_return(w, &a);
    if (a.core_to > a.full_to) a.core_to = a.full_to;
    code_builder_anchor(&w->b, &a);
}

code_file *code_parse_tree(const code_tree *t)
{
    walk w = {.t = t};
    code_builder_begin(&w.b, t->g->name, t->text, t->n_bytes);
    if (code_has_preprocessor(t->g->name))
        w.n_inactive = code_inactive_find(t->text, t->n_bytes, &w.inactive);
    w.b.file->n_errors = t->n_errors;
    w.b.file->error_line = t->error_line;
    for (uint32_t i = 0; i < t->n; i++) {
        while (w.n_scopes != 0 && i >= w.scopes[w.n_scopes - 1].sub_end)
            if (w.scopes[--w.n_scopes].kind == SCOPE_FUNCTION) w.n_functions--;
        const code_node_row *row = code_tree_row(t, i);
        if (row->kind >= 0) add_anchor(&w, i, (code_kind)row->kind);
        if (row->what != NULL || row->flags != 0) define_node(&w, i, row);
    }
    free(w.scopes);
    free(w.inactive);
    return code_builder_end(&w.b);
}

#endif
